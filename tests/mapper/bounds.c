/* The lower bound at sizes that cannot be enumerated: below every placement of clusters of
 * unlike GPUs, the planner's own ones included, and its recursion over splits equal to
 * trying every split. */
#include "mapper/bound/bound_private.h"
#include "tests/lib/bounds.h"
#include "tests/lib/clusters.h"

/* Two or three types or speeds, nodes of a few sizes, links that differ by type. */
static struct topology_cluster *mixed_cluster (struct rng *r)
{
    bool slow_gpus = rng_below (r, 2);

    return drawn_cluster (r, &(struct cluster_draw){.nodes = 2 + rng_below (r, 4),
                                                    .gpus = 2 << rng_below (r, 3),
                                                    .type = slow_gpus,
                                                    .types = slow_gpus ? 1 : 3,
                                                    .speeds = slow_gpus ? 4 : 0,
                                                    .inside = {230, 230},
                                                    .between = {19, 29},
                                                    .by_type = true,
                                                    .totals = rng_below (r, 3) == 0});
}

/* Is a step of the problem's below no bound? */
static void check_above (const struct mapper_problem *p, const struct setting *s,
                         const int *gpu, double step_s, const char *what)
{
    struct pool pool;
    struct error err = {""};

    ok (pool_init (&pool, p, &err), &err);
    for (int how = BOUND_WORK; how <= BOUND_RUNS; how++) {
        double bound = bound_of (&pool, &s->config, (enum bound_level) how);

        above (s, what, gpu, step_s, 1, &bound);
    }
    pool_release (&pool);
}

/* The same of an order by hand, with just the memory that it takes: of what does not fit, bounds
 * say nothing. */
static void check_by_hand (const struct setting *s, const int *gpu)
{
    struct mapper_problem p = search_problem (s);

    p.memory_limit_pct = least_limit_pct (s, gpu);
    check_above (&p, s, gpu, step_of (s, gpu, NULL), "by hand");
}

TEST (below_everything)
{
    static const char *const profiles[] = {
        "megatron-core", "megatron-deepspeed", "nemo", "torchtitan",
        "fsdp",          "deepspeed",          "xla",  "torchtune"};
    struct rng r = seeded (17);
    int rounds = getenv ("LINKWISE_LONG") ? 1500 : 16, tried = 0;

    for (int round = 0; round < rounds; round++) {
        struct setting s = {
            .cluster = mixed_cluster (&r),
            .model = small_model (6 + rng_below (&r, 20)),
            .job = {.seq = 512 << rng_below (&r, 4),
                    .global_batch = 8 << rng_below (&r, 4),
                    .lora = rng_below (&r, 8) == 0,
                    .precision = rng_below (&r, 4) ? PREC_BF16 : PREC_FP32},
            .profile = profile_of (profiles[rng_below (&r, 8)])};
        struct mapper_problem p = search_problem (&s);

        s.model.mtp_layers = round % 4 == 3;
        s.profile.reduces_bare = rng_below (&r, 4) == 0;
        s.profile.time.reduced_bytes = 2 * rng_below (&r, 3);
        for (int i = 0; i < 60; i++) {
            int gpu[128], dp = 1 << rng_below (&r, 5);

            s.config = config_of (1 << rng_below (&r, 4), 1 + rng_below (&r, 8), dp,
                                  1 << rng_below (&r, 2));
            s.config.deg.cp = rng_below (&r, 5) ? 1 : 2 << rng_below (&r, 2);
            s.config.zero = rng_below (&r, 4);
            draw_recompute (&r, &s);
            s.config.schedule = rng_below (&r, 5) ? SCHEDULE_1F1B : SCHEDULE_GPIPE;
            if (!possible (&s))
                continue;
            tried++;
            draw_layers (&r, &s);
            draw_order (&r, &s, gpu);
            check_by_hand (&s, gpu);
        }
        if (round % 4 == 0) { /* the planner's own */
            struct mapper_settings settings = mapper_settings_default ();
            struct found o;

            settings.top = 50;
            o = search (&p, &settings);
            for (int i = 0; i < o.r.n_top; i++) {
                s.config = o.r.top[i].config;
                check_above (&p, &s, NULL, o.r.top[i].step_s, "planned");
            }
            assert_false (o.info.stopped);
            found_release (&o);
        }
        topology_cluster_destroy (s.cluster);
    }
    assert_true (tried > 5 * rounds);
}

/* ---- the recursion against every split ---- */

/* The step of a split: the sum over stages, stage k's part `fwd` and `back` times more and
 * those of the stages behind it `after` times more. */
static double row (const struct bound_case *x, const int *layers, const int *kind, int k,
                   double fwd, double back, double after)
{
    const struct config_times *times = x->times;
    double sum =
        times->dearer_s + times->tail_fixed_s[0] + times->tail_layer_s[0] * layers[0];

    for (int i = 0; i < times->p; i++) {
        struct stage_times l = stage_times_of (x, i, kind[i]);
        double more = i > k ? after : 0;

        sum += (1 + (i == k ? fwd : more)) * (l.fwd_s + layers[i] * l.layer_fwd_s) +
               (1 + (i == k ? back : more)) * (l.back_s + layers[i] * l.layer_back_s);
    }
    return sum;
}

static double longest_row (const struct bound_case *x, const int *layers, const int *kind)
{
    double most = 0.0;

    for (int k = 0; k < x->times->p; k++) {
        int left = bound_rounds_left (x->times, k), run = x->times->p - k;
        int rounds = (left - 1) / run, own = left - rounds * (run - 1);
        double wf, wb;

        bound_row_weights (x->times, k, &wf, &wb);
        most = fmax (most, row (x, layers, kind, k, wf, wb, 0));
        if (left <= 0)
            continue;
        most = fmax (most, row (x, layers, kind, k, left, left, 1));
        most = fmax (most, row (x, layers, kind, k, own, own, 1 + rounds));
    }
    return most;
}

/* The least over the layers of the stages from `stage` on, and which of them are slow. */
static double best_split (const struct bound_case *x, int stage, int left, int slow,
                          int *layers, int *kind)
{
    int p = x->times->p;
    double best = INFINITY;

    if (stage == p)
        return left == 0 && slow >= x->slow ? longest_row (x, layers, kind) : INFINITY;
    for (kind[stage] = 0; kind[stage] < 2; kind[stage]++)
        for (layers[stage] = 1;
             layers[stage] <= left && layers[stage] <= x->cap[kind[stage] * p + stage];
             layers[stage]++)
            best = fmin (best, best_split (x, stage + 1, left - layers[stage],
                                           slow + kind[stage], layers, kind));
    return best;
}

TEST (equal_to_exhaustive)
{
    struct rng r = seeded (5);
    int rounds = getenv ("LINKWISE_LONG") ? 1000 : 60, found = 0;

    for (int round = 0; round < rounds; round++) {
        struct setting s = small_job (mixed_cluster (&r), 6 + rng_below (&r, 7), 1024,
                                      4 << rng_below (&r, 5));
        struct mapper_problem p = search_problem (&s);
        struct pool pool;
        struct error err = {""};
        struct config_times times;
        int cap[16];
        struct bound_case x = {.times = &times, .cap = cap};

        ok (pool_init (&pool, &p, &err), &err);
        s.config = config_of (1, 2 + rng_below (&r, 4), 1, 1);
        if (workload_config_check (&s.model, &s.job, &s.config, NULL) == ST_OK) {
            int layers[16], kind[16];
            double least, mine;

            bound_divided (&pool, &s.config, pool.n_classes > 1 ? 1 : 0, NULL, &times,
                           NULL);
            /* Kinds that differ, a count of slow stages, limits of memory; no sends. */
            times.slot[1].fwd_s *= 1.0 + rng_unit (&r);
            times.slot[1].back_s *= 1.0 + rng_unit (&r);
            times.slot[1].micro_s *= 1.3;
            times.tail_layer_s[1] = times.tail_layer_s[0];
            times.tail_fixed_s[1] = times.tail_fixed_s[0];
            times.send = (struct boundary_sends){0.0, 0.0, 0.0};
            memset (times.pair_s, 0, sizeof times.pair_s);
            x.slow = rng_below (&r, times.p + 1);
            for (int k = 0; k < 2 * times.p; k++)
                cap[k] = 1 + rng_below (&r, times.layers);
            least = best_split (&x, 0, times.layers, 0, layers, kind);
            mine = bound_splits (&x);
            found += isfinite (least);
            assert_true (isfinite (least) == isfinite (mine));
            if (isfinite (least)) /* bisection ends a little below it */
                assert_true (mine >= least * (1 - 1e-4) && mine <= least * (1 + 1e-9));
        }
        pool_release (&pool);
        topology_cluster_destroy (s.cluster);
    }
    assert_true (found > rounds / 4);
}

/* What follows stage 0 is shortest where all is hidden, where just the part is left that nothing
 * hides, or with most or fewest layers. */
TEST (shortest_tail)
{
    struct rng r = seeded (11);
    struct setting s = small_job (mixed_cluster (&r), 12, 1024, 64);
    struct mapper_problem p = search_problem (&s);
    struct workload_profile profile = s.profile;
    struct pool pool;
    struct error err = {""};
    struct config_times times;
    struct bound_case x = {.times = &times};
    int between = 0;

    ok (pool_init (&pool, &p, &err), &err);
    s.config = config_of (1, 3, 2, 1);
    bound_divided (&pool, &s.config, 0, NULL, &times, NULL);
    times.profile = &profile;
    for (int i = 0; i < 400; i++) {
        double layer = times.slot[0].fwd_s + times.slot[0].back_s, end, least = INFINITY;
        int at = 0, steps = 200 * (times.layers - times.p);

        times.tail_fixed_s[0] = times.tail_layer_s[0] = 0;
        times.sync_fixed_s[0][0] = times.sync_layer_s[0][0] = 0;
        end = bound_fractions (&x);
        profile.time.dp_overlap = .5 + .5 * rng_unit (&r);
        profile.time.overlap_slowdown = i % 2 ? .3 * rng_unit (&r) : 0;
        times.bare = i % 4 < 2 ? rng_unit (&r) : 0;
        times.tail_layer_s[0] = .1 * layer * rng_unit (&r);
        times.sync_layer_s[0][0] = layer * rng_unit (&r);
        times.sync_fixed_s[0][0] = times.layers * layer * rng_unit (&r);
        for (int k = 0; k <= steps; k++) {
            double tail = first_tail_s (&x, 1 + k / 200.0, 0, 0);

            at = tail < least ? k : at;
            least = fmin (least, tail);
        }
        between += times.bare > 0 && at > 0 && at < steps;
        assert_true (bound_fractions (&x) <= (end + least) * (1 + 1e-12));
        assert_true (bound_fractions (&x) >= end + least - .02 * layer);
    }
    assert_true (between > 10);
    pool_release (&pool);
    topology_cluster_destroy (s.cluster);
}

/* ---- what the bound of split layers must not miss ---- */

/* A pool of nodes of four, of so many types in turn; all links of the first node are worse,
 * or none is. */
static struct topology_cluster *nodes_of_four (int nodes, int types, double gb_per_s,
                                               double bad)
{
    struct text t = {0};

    for (int i = 0; i < nodes; i++)
        add_node (&t, i, 4, drawn_types[i % types].name, NULL);
    text_add (&t, "],\"links\":{\"intra\":{\"bandwidth_gb_per_s\":200,\"latency_us\":3},"
                  "\"inter\":{\"latency_us\":10,\"bandwidth_gb_per_s\":[");
    for (int i = 0; i < nodes; i++) {
        double rate[DRAWN_NODES];

        for (int j = 0; j < nodes; j++)
            rate[j] = gb_per_s * (i == 0 || j == 0 ? bad : 1.0);
        text_add (&t, i ? "," : "");
        add_list (&t, nodes, rate);
    }
    text_add (&t, "]}}}");
    return cluster_written (&t);
}

/* By how much do exchanges of GPUs and the best split leave the bound behind? */
static void check_gap (struct topology_cluster *cluster, struct workload_config config,
                       const int *layers, int batch, double gap)
{
    struct rng r = seeded (3);
    struct setting s = small_job_as (cluster, 24, 4096, batch, config);
    struct mapper_problem p;
    double bound[2], step = INFINITY;
    int gpu[32];

    s.model.hidden = 4096;
    s.model.ffn = 16384;
    s.model.head_dim = 256;
    p = unlimited (&s);
    for (int k = 0; k < config.deg.pp && layers; k++)
        s.layers[k] = layers[k];
    find_bounds (&p, &s, bound);
    for (int i = 0; i < 20; i++) {
        in_file_order (gpu, cluster->n_gpus);
        if (i > 0)
            shuffle (&r, gpu, cluster->n_gpus);
        step = fmin (step, climb (&r, &s, gpu, 2000));
    }
    above (&s, "climbed", NULL, step, 2, bound);
    assert_true (step < bound[1] * (1.0 + gap));
    topology_cluster_destroy (cluster);
}

TEST (knows_all_types)
{
    const int layers[] = {3, 8, 1, 3, 8, 1};

    check_gap (nodes_of_four (6, 3, 20, 1), config_of (1, 6, 4, 1), layers, 1024, .2);
}

/* With TP the faster GPUs are those with the better links, whose products take longer. */
TEST (knows_types_with_slow_links)
{
    check_gap (cluster_of ("2x4 a100-sxm4-80g intra:200 inter:10 inter-us:10 + "
                           "2x4 l40s intra:10 inter:10 inter-us:10"),
               config_of (2, 1, 8, 1), NULL, 64, .2);
}

TEST (knows_needed_nodes)
{
    check_gap (nodes_of_four (4, 1, 20, .4), config_of (1, 1, 16, 1), NULL, 32, .02);
}

TEST (knows_what_must_cross)
{
    check_gap (nodes_of_four (4, 1, 1, 1), config_of (1, 4, 4, 1), NULL, 64, .15);
}

/* Is the split below no bound where it fits, whichever stage the last of four GPUs has?
 * @return in how many such orders it fits */
static int check_where_it_fits (const struct setting *s, double limit_pct,
                                const double bound[BOUND_RUNS + 1])
{
    int fits = 0;

    for (int stage = 0; stage < 4; stage++) {
        int gpu[] = {0, 1, 2, 3};

        gpu[3] = gpu[stage];
        gpu[stage] = 3;
        if (least_limit_pct (s, gpu) > limit_pct)
            continue;
        above (s, "what fits", gpu, step_of (s, gpu, NULL), BOUND_RUNS + 1, bound);
        fits++;
    }
    return fits;
}

/* A split that is too large for the small GPUs may be faster than the bound, what fits is not. */
TEST (knows_what_does_not_fit)
{
    struct setting s = small_job_as (
        cluster_of ("3x1 v100-sxm2-32g inter:20 + 1x1 a100-sxm4-80g inter:20"), 12, 2048,
        16, config_of (1, 4, 1, 1));
    struct mapper_problem p = search_problem (&s);
    const int gpu[] = {0, 1, 2, 3};
    double bound[BOUND_RUNS + 1];
    int fits = 0;

    s.config.schedule = SCHEDULE_GPIPE;
    p.memory_limit_pct = .9 * least_limit_pct (&s, gpu);
    bounds_in (&p, &s.config, true, bound);
    assert_true (step_of (&s, gpu, NULL) < .95 * bound[BOUND_RUNS]);
    for (int split = 0; split < 9 * 9 * 9; split++) {
        int a = 1 + split / 81, b = 1 + split / 9 % 9, c = 1 + split % 9;

        memcpy (s.layers, (int[]){a, b, c, 12 - a - b - c}, 4 * sizeof (int));
        if (s.layers[3] > 0)
            fits += check_where_it_fits (&s, p.memory_limit_pct, bound);
    }
    assert_true (fits > 10);
    topology_cluster_destroy (s.cluster);
}

/* Rings with two lanes would take too long: each node is of one stage, and all sends cross. */
TEST (knows_nodes_of_one_stage)
{
    struct workload_config config = config_of (1, 2, 12, 1);

    config.schedule = SCHEDULE_INTERLEAVED;
    config.deg.vpp = 6;
    check_gap (nodes_of_four (6, 1, 10, 1), config, NULL, 72, .001);
}

/* Two stages share a node, so that every other send crosses wherever layers and stages are. */
TEST (knows_crossings_of_chunks)
{
    struct workload_config config = config_of (1, 4, 4, 1);

    config.schedule = SCHEDULE_INTERLEAVED;
    config.deg.vpp = 2;
    check_gap (cluster_of ("2x8 a100-sxm4-80g intra:200 inter:1 inter-us:10"), config,
               NULL, 64, .001);
}

/* Half of every stage on each node: no send crosses. */
TEST (knows_what_need_not_cross)
{
    const int gpu[] = {0, 1, 4, 5, 2, 3, 6, 7};
    struct setting s =
        small_job_as (nodes_of_four (2, 2, .04, 1), 2, 2048, 256, config_of (1, 2, 4, 1));
    struct mapper_problem p = unlimited (&s);
    double bound[BOUND_RUNS + 1];

    bounds_in (&p, &s.config, true, bound);
    above (&s, "halves", gpu, step_of (&s, gpu, NULL), BOUND_RUNS + 1, bound);
    topology_cluster_destroy (s.cluster);
}

/* Is the plan with all stages on one node, whose embedding is beside its twin, below no bound?
 * @param[in] gpu  of each rank */
static void check_twins (struct topology_cluster *c, struct workload_config config,
                         const int *gpu)
{
    struct setting s = small_job_as (c, 4, 512, 4, config);
    struct mapper_problem p = unlimited (&s);
    double bound[BOUND_RUNS + 1];

    s.model.tied = true;
    bounds_in (&p, &s.config, true, bound);
    above (&s, "one node", gpu, step_of (&s, gpu, NULL), BOUND_RUNS + 1, bound);
    topology_cluster_destroy (s.cluster);
}

/* No link reaches the lone GPU, where no TP group can be. */
TEST (knows_where_no_group_can_be)
{
    check_twins (
        cluster_from (
            "{\"version\":1,\"name\":\"lone\",\"nodes\":[{\"name\":\"a\",\"gpus\":4,"
            "\"gpu_type\":\"h100-sxm5-80g\"},{\"name\":\"b\",\"gpus\":1,\"gpu_type\":"
            "\"l40s\"}],\"links\":{\"intra\":{\"latency_us\":3,\"bandwidth_gb_per_s\":"
            "370},"
            "\"inter\":{\"latency_us\":9,\"bandwidth_gb_per_s\":[[null,null],[null,null]]"
            "}}}"),
        config_of (2, 2, 1, 1), (const int[]){0, 1, 2, 3, 4});
}

/* Faster GPUs are as many as ranks, but each on a node of its own. */
TEST (knows_where_twins_can_be)
{
    check_twins (
        cluster_of ("1x1 h100-sxm5-80g inter:.02 + 1x1 a100-sxm4-80g inter:.02 + "
                    "1x2 v100-sxm2-32g intra:100 inter:.02"),
        config_of (1, 2, 1, 1), (const int[]){2, 3, 0, 1});
}

/* Groups that shard are on one node each, or on several: then their rings have few lanes, or many
 * groups are on each node, whose copies few can be on it too.  Experts reduce between copies as
 * well. */
TEST (knows_what_copies_share)
{
    int gpu[64];

    for (int i = 0; i < 64; i++)
        gpu[i] = i;
    for (int experts = 0; experts < 2; experts++) {
        struct setting s = {.cluster =
                                cluster_of ("8x8 h100-sxm5-80g intra:450 inter:48"),
                            .model = model_of (experts ? "gpt-oss-20b" : "llama-3-8b"),
                            .job = {.seq = 4096, .global_batch = 64},
                            .profile = profile_of ("fsdp"),
                            .config = config_of (1, 1, 64, 1)};
        struct mapper_problem p = unlimited (&s);
        struct error err = {""};
        double bound = 0.0, step;

        s.config.zero = 3;
        s.config.shard = 8;
        s.layers[0] = s.model.layers;
        ok (bound_of_problem (&p, &s.config, true, &bound, &err), &err);
        step = step_of (&s, gpu, NULL);
        assert_true (bound <= step * (1 + 1e-9) && bound > .98 * step);
        topology_cluster_destroy (s.cluster);
    }
}

/* Gathers after the step are bare, what groups with the same shards reduce is not: of both together
 * no more is bare than of either. */
TEST (knows_what_copies_hide)
{
    static const int gpu[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct setting s = small_job_as (cluster_of ("2x4 h100-sxm5-80g intra:300 inter:40"),
                                     8, 1024, 64, config_of (1, 1, 8, 1));
    struct mapper_problem p;
    struct error err = {""};
    double bound = 0.0, step;

    s.config.zero = 1;
    s.config.shard = 2;
    s.config.micro_batch = 8;
    s.profile.gathers_at_step = true;
    s.profile.time.dp_overlap = 1;
    s.profile.time.overlap_slowdown = 0;
    workload_layers_even (8, 1, s.layers);
    p = unlimited (&s);
    ok (bound_of_problem (&p, &s.config, true, &bound, &err), &err);
    step = step_of (&s, gpu, NULL);
    assert_true (bound <= step * (1 + 1e-9) && bound > .95 * step);
    topology_cluster_destroy (s.cluster);
}
