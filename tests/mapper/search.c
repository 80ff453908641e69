/* The search: equal to exhaustive search on small clusters, its bound below everything,
 * never worse than the default order. */
#include "tests/lib/bounds.h"
#include "tests/lib/clusters.h"

/* A plan of a search that went to its end.  @return false when there is none */
static bool finds (const struct mapper_problem *p, enum mapper_granularity g,
                   unsigned long seed, struct found *o)
{
    struct mapper_settings s = mapper_settings_default ();
    struct error err = {""};
    enum status st;

    s.granularity = g;
    s.seed = seed;
    st = try_search (p, &s, o, &err);
    if (st == ST_NOFIT)
        return false;
    ok (st, &err);
    assert_false (o->info.stopped);
    assert_true (o->r.lower_bound_s > 0);
    return true;
}

static struct found searched (const struct mapper_problem *p, enum mapper_granularity g,
                              unsigned long seed)
{
    struct found o;

    assert_true (finds (p, g, seed, &o));
    return o;
}

/* Best step over every injective map of ranks to GPUs; unmeasured links first.  With
 * by_node only maps that give every node consecutive ranks. */
struct exhaustive {
    const struct setting *s;
    int world, n;
    bool by_node;
    int gpu[8];
    bool used[8];
    int unmeasured;
    double step_s;
};

static void enumerate (struct exhaustive *x, int at)
{
    if (at == x->world) {
        int unmeasured = 0;
        double step;

        if (x->by_node && !consecutive (x->s->cluster, x->gpu, at))
            return;
        step = step_of (x->s, x->gpu, &unmeasured);
        if (isfinite (step) && (unmeasured < x->unmeasured ||
                                (unmeasured == x->unmeasured && step < x->step_s))) {
            x->unmeasured = unmeasured;
            x->step_s = step;
        }
        return;
    }
    for (int g = 0; g < x->n; g++)
        if (!x->used[g]) {
            x->used[g] = true;
            x->gpu[at] = g;
            enumerate (x, at + 1);
            x->used[g] = false;
        }
}

/* The same over every split of the layers besides. */
static void enumerate_splits (struct exhaustive *x, struct setting *s, int stage,
                              int left)
{
    int pp = s->config.deg.pp;

    if (stage == pp - 1) {
        s->layers[stage] = left;
        enumerate (x, 0);
        return;
    }
    for (int n = 1; n + pp - 1 - stage <= left; n++) {
        s->layers[stage] = n;
        enumerate_splits (x, s, stage + 1, left - n);
    }
}

TEST (small_clusters)
{
    static const struct {
        int nodes, gpus, tp, pp, dp;
    } cases[] = {{1, 4, 2, 2, 1}, {1, 4, 1, 2, 2}, {2, 2, 2, 2, 1}, {2, 2, 1, 2, 2},
                 {5, 1, 1, 4, 1}, {5, 1, 1, 2, 2}, {6, 1, 1, 3, 2}, {6, 1, 1, 1, 4},
                 {3, 2, 2, 1, 3}, {3, 2, 1, 3, 2}, {2, 3, 1, 2, 2}, {1, 6, 2, 1, 3},
                 {2, 3, 1, 5, 1}, {3, 2, 1, 1, 6}, {1, 5, 2, 2, 1}, {7, 1, 1, 2, 2}};
    struct rng r = seeded (31);
    int long_run = getenv ("LINKWISE_LONG") ? 20 : 1;

    for (int round = 0; round < 2 * long_run; round++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            int nodes = cases[i].nodes, gpus = cases[i].gpus;
            struct setting s = small_job_as (
                random_cluster (&r, nodes, gpus, 6, rng_below (&r, 3) ? 0 : 0.15,
                                rng_below (&r, 2), rng_below (&r, 4) == 0),
                8, 512, 24, config_of (cases[i].tp, cases[i].pp, cases[i].dp, 1));
            struct mapper_problem p;

            if (rng_below (&r, 2))
                draw_recompute (&r, &s);
            s.kind = round < long_run ? COSTMODEL_CRITICAL_PATH
                     : i % 2          ? COSTMODEL_PIPETTE
                                      : COSTMODEL_AMP;
            p = search_config (&s);
            for (int by_node = 0; by_node <= 1; by_node++) {
                struct found o;
                struct exhaustive x = {.s = &s,
                                       .world = (int) workload_world (&s.config.deg),
                                       .n = nodes * gpus,
                                       .by_node = by_node,
                                       .unmeasured = 1 << 30,
                                       .step_s = INFINITY};

                /* The links that are not measured may leave no way between nodes. */
                if (!finds (&p, by_node ? MAPPER_NODE : MAPPER_GPU, 1, &o)) {
                    enumerate (&x, 0);
                    assert_false (isfinite (x.step_s));
                    continue;
                }
                if (s.config.deg.pp <= 3 && x.world <= 4 && round % 2 == 0) {
                    enumerate_splits (&x, &s, 0, s.model.layers);
                } else {
                    take (&s, &o.r);
                    enumerate (&x, 0);
                }
                assert_int_equal (o.r.estimate.n_unmeasured > 0, x.unmeasured > 0);
                CLOSE (o.r.estimate.step_s, x.step_s, 1e-9);
                if (o.r.default_order_unmeasured == 0)
                    assert_true (o.r.estimate.n_unmeasured == 0 &&
                                 o.r.estimate.step_s <=
                                     o.r.default_order_step_s * (1 + 1e-9));
                found_release (&o);
            }
            topology_cluster_destroy (s.cluster);
        }
}

/* Placements of experts, whose groups only some renumberings of replicas, and of TP groups, leave
 * as they are. */
TEST (small_experts)
{
    static const struct {
        int nodes, gpus, tp, cp, pp, dp, ep, etp;
    } cases[] = {
        {1, 4, 1, 1, 1, 4, 2, 1}, {1, 4, 2, 1, 1, 2, 2, 2}, {4, 1, 1, 1, 1, 4, 2, 1},
        {6, 1, 1, 1, 1, 6, 2, 1}, {6, 1, 1, 1, 1, 6, 3, 1}, {1, 6, 1, 1, 1, 6, 2, 1},
        {5, 1, 1, 1, 1, 4, 4, 1}, {6, 1, 1, 1, 2, 2, 2, 1}, {1, 6, 1, 1, 1, 4, 2, 1},
        {6, 1, 2, 1, 1, 3, 2, 1}, {5, 1, 2, 1, 1, 2, 4, 1}, {6, 1, 4, 1, 1, 1, 4, 1},
        {5, 1, 2, 2, 1, 1, 2, 2}, {6, 1, 1, 2, 1, 2, 2, 1}, {1, 6, 2, 1, 1, 3, 3, 1},
        {6, 1, 1, 2, 1, 3, 1, 1}, {6, 1, 2, 1, 1, 3, 3, 2}, {6, 1, 4, 1, 1, 1, 2, 2}};
    struct rng r = seeded (23);
    int rounds = getenv ("LINKWISE_LONG") ? 40 : 2;

    for (int i = 0; i < rounds * (int) (sizeof cases / sizeof *cases); i++) {
        int k = i % (int) (sizeof cases / sizeof *cases);
        struct setting s = small_job_as (
            random_cluster (&r, cases[k].nodes, cases[k].gpus, 6, 0, rng_below (&r, 2),
                            false),
            4, 512, 24, config_of (cases[k].tp, cases[k].pp, cases[k].dp, 1));
        struct exhaustive x = {.s = &s,
                               .n = cases[k].nodes * cases[k].gpus,
                               .unmeasured = 1 << 30,
                               .step_s = INFINITY};
        struct mapper_problem p;
        struct found o;

        s.model.experts = 12;
        s.model.top_k = 2;
        s.model.expert_ffn = s.model.ffn;
        s.model.expert_every = 1;
        s.config.deg.cp = cases[k].cp;
        s.config.deg.ep = cases[k].ep;
        s.config.deg.etp = cases[k].etp;
        x.world = (int) workload_world (&s.config.deg);
        draw_recompute (&r, &s);
        p = search_config (&s);
        o = searched (&p, MAPPER_GPU, 1);
        take (&s, &o.r);
        enumerate (&x, 0);
        CLOSE (o.r.estimate.step_s, x.step_s, 1e-9);
        found_release (&o);
        topology_cluster_destroy (s.cluster);
    }
}

/* Which modules are recomputed is searched: the best of all ways that fit, tried one by one,
 * whatever the memory is.  Modules win where there is too little for all activations. */
TEST (ways_to_recompute)
{
    static const char *const ways[] = {"none", "mlp", "moe_act", "full"};
    int won[4] = {0};

    for (int experts = 0; experts <= 1; experts++)
        for (double pct = 5; pct < 30; pct += .75) {
            struct setting s = small_job_as (cluster_of ("1x2 a100-sxm4-80g intra:200"),
                                             16, 8192, 16, config_of (1, 2, 1, 1));
            struct mapper_problem p;
            struct found o;
            double best = INFINITY;
            int by = -1;

            if (experts) {
                s.model.experts = 4;
                s.model.top_k = 2;
                s.model.expert_ffn = s.model.ffn;
                s.model.expert_every = 1;
            }
            for (int i = 0; i < 4; i++) {
                assert_true (workload_recompute_parse (ways[i], &s.config));
                if (!possible (&s))
                    continue;
                p = search_config (&s);
                p.memory_limit_pct = pct;
                if (try_search (&p, NULL, &o, NULL) != ST_OK)
                    continue;
                by = o.r.estimate.step_s < best ? i : by;
                best = fmin (best, o.r.estimate.step_s);
                found_release (&o);
            }
            p.axes.recompute = MAPPER_FREE;
            if (try_search (&p, NULL, &o, NULL) == ST_OK) {
                CLOSE (o.r.estimate.step_s, best, 1e-9);
                assert_true (o.info.proven);
                won[by]++;
                found_release (&o);
            } else {
                assert_int_equal (by, -1);
            }
            topology_cluster_destroy (s.cluster);
        }
    assert_true (won[0] > 0 && won[1] > 0 && won[2] > 0 && won[3] > 0);
}

/* All nodes of another GPU type. */
static void retype (struct setting *s, const char *type)
{
    json_t *doc = topology_cluster_to_json (s->cluster), *node;
    struct error err = {""};
    size_t i;

    json_array_foreach (json_object_get (doc, "nodes"), i, node)
        json_object_set_new (node, "gpu_type", json_string (type));
    topology_cluster_destroy (s->cluster);
    ok (topology_cluster_from_json (doc, "retyped", NULL, &s->cluster, NULL, &err), &err);
    json_decref (doc);
}

/* Random configurations, layer splits and placements never beat the bound. */
TEST (bound_holds)
{
    struct rng r = seeded (43);
    int rounds = getenv ("LINKWISE_LONG") ? 40 : 5;

    for (int round = 0; round < rounds; round++) {
        int nodes = 1 + rng_below (&r, 5), gpus = 1 << rng_below (&r, 3),
            n = nodes * gpus;
        struct setting s =
            small_job (random_cluster (&r, nodes, gpus, 5, rng_below (&r, 2) ? 0 : 0.1,
                                       rng_below (&r, 2), rng_below (&r, 4) == 0),
                       4 + rng_below (&r, 9), 512, 8 << rng_below (&r, 4));

        if (rng_below (&r, 2))
            retype (&s, "h100-sxm5-80g");
        s.profile.time.all_reduce = (enum workload_all_reduce) rng_below (&r, 6);
        s.profile.time.tp_comm_overlap = rng_below (&r, 2);

        struct mapper_problem p = search_problem (&s);
        struct found o = searched (&p, MAPPER_GPU, 1);
        int tried = 0;

        for (int i = 0; i < 4000 && tried < 150; i++) {
            int gpu[64];
            double bound[3];

            s.config = config_of (1 << rng_below (&r, 4), 1 + rng_below (&r, 6),
                                  1 << rng_below (&r, 3), 1 << rng_below (&r, 3));
            s.config.zero = rng_below (&r, 2);
            s.config.sequence_parallel &= rng_below (&r, 2);
            draw_recompute (&r, &s);
            s.config.schedule = rng_below (&r, 4) ? SCHEDULE_1F1B : SCHEDULE_GPIPE;
            if (!possible (&s))
                continue;
            tried++;
            draw_layers (&r, &s);
            draw_order (&r, &s, gpu);
            find_bounds (&p, &s, bound);
            bound[2] = o.r.lower_bound_s;
            above (&s, "by hand", gpu, step_of (&s, gpu, NULL),
                   s.config.schedule == SCHEDULE_1F1B ? 3 : 2, bound);
        }
        assert_true (tried > 20 || n == 1);
        found_release (&o);
        topology_cluster_destroy (s.cluster);
    }
}

/* A step of the free space is never above a step with any axis fixed, nor above the
 * default order; seeds hardly matter. */
TEST (free_beats_fixed)
{
    bool long_run = getenv ("LINKWISE_LONG");
    struct setting s = {.cluster =
                            cluster_of (long_run ? "examples/clusters/h100-17.json"
                                                 : "examples/clusters/h100-10.json"),
                        .model = model_of ("llama-2-13b"),
                        .job = {.seq = 4096, .global_batch = 1024},
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
    struct mapper_problem p = search_problem (&s), fixed;
    struct found one = searched (&p, MAPPER_AUTO, 1), other;
    int times = long_run ? 2 : 8;

    other = searched (&p, MAPPER_AUTO, 99);
    CLOSE (other.r.estimate.step_s, one.r.estimate.step_s, 0.01);
    found_release (&other);
    assert_int_equal (one.r.estimate.n_unmeasured, 0);
    assert_true (one.r.estimate.step_s <= one.r.default_order_step_s);
    for (int tp = 1; tp <= 8; tp *= times) {
        fixed = p;
        fixed.axes.tp = tp;
        other = searched (&fixed, MAPPER_AUTO, 1);
        assert_int_equal (other.r.config.deg.tp, tp);
        assert_true (other.r.lower_bound_s >= one.r.lower_bound_s * (1 - 1e-9));
        /* The free search may stop within 0.5 % of single GPUs' gain. */
        assert_true (one.r.estimate.step_s <= other.r.estimate.step_s * 1.006);
        found_release (&other);
    }
    found_release (&one);
    topology_cluster_destroy (s.cluster);
}

/* 17 measured nodes, 16 of them needed: the worst one stays out, and no link that nobody
 * measured is used. */
TEST (leaves_out_the_worst)
{
    struct setting s = {.cluster = cluster_of ("examples/clusters/h100-17.json"),
                        .model = model_of ("llama-2-70b"),
                        .job = {.seq = 4096, .global_batch = 1024},
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
    struct mapper_problem p = search_degrees (&s, 8, 4, 4);
    struct found o;
    bool used[17] = {false};
    int out = -1, order[128], n = 0;

    o = searched (&p, MAPPER_AUTO, 1);
    assert_int_equal (o.r.estimate.n_unmeasured, 0);
    for (int k = 0; k < 128; k++)
        used[s.cluster->node_of_gpu[o.r.gpu[k]]] = true;
    for (int i = 0; i < 17; i++)
        if (!used[i])
            out = i;
    /* Leaving out any other node, the rest in file order, is never faster. */
    take (&s, &o.r);
    for (int skip = 0; skip < 17; skip++) {
        n = 0;
        for (int i = 0; i < 17; i++)
            for (int k = 0; k < 8 && i != skip; k++)
                order[n++] = 8 * i + k;
        assert_true (step_of (&s, order, NULL) >= o.r.estimate.step_s * (1 - 1e-9));
    }
    assert_true (out >= 0);
    found_release (&o);
    topology_cluster_destroy (s.cluster);
}

/* Nodes of different sizes and generations; a link nobody measured is used only when
 * nothing else is possible. */
TEST (odd_clusters)
{
    struct setting s = small_job (NULL, 12, 1024, 48);
    struct mapper_problem p;
    struct found o;

    s.cluster = cluster_of ("1x8 a100-sxm4-80g intra:200 inter:20 + 1x4 a100-sxm4-80g "
                            "intra:200 inter:20 + 1x3 a100-sxm4-80g intra:200 inter:20");
    p = search_problem (&s);
    o = searched (&p, MAPPER_AUTO, 1);
    assert_true (workload_world (&o.r.config.deg) >= 12);
    found_release (&o);
    topology_cluster_destroy (s.cluster);

    /* A pipeline over two generations: the fast stages take more layers. */
    s.cluster = cluster_of ("1x4 h100-sxm5-80g intra:370 inter:40 + 1x4 v100-sxm2-32g "
                            "intra:130 inter:40");
    p = search_degrees (&s, 4, 2, 1);
    o = searched (&p, MAPPER_AUTO, 1);
    assert_true (o.r.layers[0] != o.r.layers[1]);
    for (int i = 0; i < 2; i++) {
        bool fast = s.cluster->node_of_gpu[o.r.gpu[4 * i]] == 0;

        assert_true (fast == (o.r.layers[i] > o.r.layers[1 - i]));
    }
    found_release (&o);
    topology_cluster_destroy (s.cluster);

    /* One slow node of three equals none at two stages. */
    s.cluster = cluster_from (
        "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":\"t4\"},{"
        "\"name\":"
        "\"b\",\"gpus\":1,\"gpu_type\":\"t4\"},{\"name\":\"c\",\"gpus\":1,\"gpu_type\":"
        "\"t4\"}],"
        "\"links\":{\"inter\":{\"latency_us\":1,\"bandwidth_gb_per_s\":[[null,null,1],"
        "[null,null,1],[1,1,null]]}}}");
    p = search_problem (&s);
    p.axes.pp = 2;
    p.axes.dp = 1;
    o = searched (&p, MAPPER_AUTO, 1);
    assert_int_equal (o.r.estimate.n_unmeasured, 0);
    found_release (&o);
    p.axes.pp = 3; /* a chain a-c-b has only measured links */
    o = searched (&p, MAPPER_AUTO, 1);
    assert_int_equal (o.r.estimate.n_unmeasured, 0);
    assert_int_equal (s.cluster->node_of_gpu[o.r.gpu[1]], 2);
    found_release (&o);
    p.axes.pp = 1;
    p.axes.dp = 3; /* a ring of three cannot avoid a-b */
    o = searched (&p, MAPPER_AUTO, 1);
    assert_true (o.r.estimate.n_unmeasured > 0);
    found_release (&o);
    topology_cluster_destroy (s.cluster);
}

/* Slots of three or six GPUs on nodes of eight: more blocks than nodes, which are filled one
 * after the other. */
TEST (blocks_across_nodes)
{
    static const int degrees[][4] = {{2, 2, 1, 3}, {1, 1, 4, 3}, {1, 2, 1, 6}};
    struct rng r = seeded (37);

    for (int i = getenv ("LINKWISE_LONG") ? 2 : 0; i >= 0; i--) {
        struct setting s =
            small_job (random_cluster (&r, 2, 8, 2, 0, false, false), 12, 3072, 8);
        struct mapper_problem p =
            search_degrees (&s, degrees[i][0], degrees[i][1], degrees[i][2]);
        struct found o;

        p.axes.cp = degrees[i][3];
        o = searched (&p, MAPPER_AUTO, 1);
        assert_false (mapper_default_is_better (&o.r));
        found_release (&o);
        topology_cluster_destroy (s.cluster);
    }
}

/* Links as slow as a file may have them: all of them, or a few. */
TEST (dead_links)
{
    for (int dead = 1; dead <= 2; dead++) {
        struct setting s = small_job (NULL, 12, 1024, 48);
        struct mapper_problem p;
        struct found o;
        double rate[4 * 4];

        for (int k = 0; k < 16; k++)
            rate[k] = (k / 4 + k % 4) % dead == 0 ? 1e-9 : 20;
        s.cluster = cluster_of_rates (4, 4, "a100-sxm4-80g", false, rate);
        p = search_degrees (&s, 4, 2, 2);
        if (!getenv ("LINKWISE_LONG"))
            p.axes.micro_batch = 1;
        o = searched (&p, MAPPER_AUTO, 1);
        assert_true (isfinite (o.r.estimate.step_s));
        found_release (&o);
        topology_cluster_destroy (s.cluster);
    }
}

static bool space_has (const struct found *o, const char *axis, int value)
{
    json_t *list = json_object_get (o->info.space, axis), *v;
    size_t i;

    json_array_foreach (list, i, v) if (json_integer_value (v) == value) return true;
    return false;
}

/* Axes that are not given are searched: cp for long sequences, the ZeRO stages that the
 * profile offers, tp beyond nodes that are small. */
TEST (axes_searched)
{
    struct setting s =
        small_job (cluster_of ("2x4 a100-sxm4-80g intra:200 inter:20"), 8, 16384, 8);
    struct mapper_problem p = search_problem (&s);
    struct found o = searched (&p, MAPPER_AUTO, 1);

    assert_true (space_has (&o, "cp", 1) && space_has (&o, "cp", 4) &&
                 !space_has (&o, "cp", 8));
    assert_true (space_has (&o, "zero", 3) && space_has (&o, "tp", 8));
    found_release (&o);
    s.job.global_batch = 1; /* one sequence: only tp, pp and cp can share it */
    p.axes.tp = 1;
    p.axes.pp = 1;
    o = searched (&p, MAPPER_AUTO, 1);
    assert_int_equal (o.r.config.deg.cp, 4);
    found_release (&o);
    s.profile.zero_with_pipeline = 0;
    s.job.global_batch = 8;
    p.axes.pp = 2;
    o = searched (&p, MAPPER_AUTO, 1);
    assert_true (space_has (&o, "zero", 0) && !space_has (&o, "zero", 1));
    found_release (&o);
    topology_cluster_destroy (s.cluster);

    /* Fits only with tensor parallelism across nodes of one GPU. */
    s = (struct setting){.cluster = cluster_of ("4x1 h100-sxm5-80g inter:20"),
                         .model = model_of ("llama-2-7b"),
                         .job = {.seq = 2048, .global_batch = 4},
                         .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
    p = search_problem (&s);
    p.axes.pp = 1;
    p.axes.dp = 1;
    p.axes.cp = 1;
    o = searched (&p, MAPPER_AUTO, 1);
    assert_true (o.r.config.deg.tp > 1);
    found_release (&o);
    topology_cluster_destroy (s.cluster);
}

TEST (outcomes)
{
    struct setting s = {.cluster = cluster_of ("1x2 t4 intra:10"),
                        .model = model_of ("llama-2-70b"),
                        .job = {.seq = 4096, .global_batch = 4},
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
    struct mapper_problem p = search_problem (&s);
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_result r = {0};
    struct mapper_info info;
    struct error err = {""};
    struct text words = {0};
    const bool none[1] = {false};

    assert_int_equal (mapper_search (&p, &settings, &r, &info, &err), ST_NOFIT);
    assert_true (info.missed && info.refused_memory == info.configurations);
    assert_true (info.miss.memory.peak_bytes > info.miss.limit_bytes);
    mapper_explain_miss (&p, &info, &words);
    assert_non_null (strstr (text_str (&words), "it would fit on"));
    text_free (&words);
    mapper_info_release (&info);

    p.axes.tp = 3;
    assert_int_equal (mapper_search (&p, &settings, &r, &info, &err), ST_INVALID);
    assert_non_null (strstr (err.text, "tp 3 does not divide 64 attention heads"));
    mapper_info_release (&info);
    p.axes.tp = 2;
    p.axes.pp = 2;
    assert_int_equal (mapper_search (&p, &settings, &r, &info, &err), ST_INVALID);
    assert_non_null (strstr (err.text, "needs 4 GPUs, 2 can be used"));
    mapper_info_release (&info);
    p.axes = mapper_axes_free ();
    p.node_allowed = none;
    assert_int_equal (mapper_search (&p, &settings, &r, &info, &err), ST_NOFIT);
    mapper_info_release (&info);
    topology_cluster_destroy (s.cluster);
}

/* Every split and placement of a small pool is tried: the gap is 0. */
TEST (small_and_proven)
{
    struct rng r = seeded (43);
    int rounds = getenv ("LINKWISE_LONG") ? 500 : 6;

    for (int round = 0; round < rounds; round++) {
        int gpus = 1 + rng_below (&r, 4), nodes = 1 + rng_below (&r, 8 / gpus);
        struct setting s =
            small_job (random_cluster (&r, nodes, gpus, 6, 0, rng_below (&r, 2),
                                       rng_below (&r, 4) == 0),
                       8, 512, 24);
        struct mapper_problem p = search_problem (&s);
        struct found o;

        p.axes.micro_batch = 1;
        p.axes.recompute = RECOMPUTE_NONE;
        o = searched (&p, MAPPER_GPU, 1);
        CLOSE (o.r.lower_bound_s, o.r.estimate.step_s, 1e-9);
        found_release (&o);
        topology_cluster_destroy (s.cluster);
    }
}

/* Where one number stands for all links between nodes, slow ones get the layers and places that
 * they get where every link has a number of its own. */
TEST (slow_links_of_one_rate)
{
    enum { NODES = 5, GPUS = 2, N = NODES * GPUS };
    double rate[N * N], step_s[2];

    for (int i = 0; i < N * N; i++)
        rate[i] = i / N / GPUS == i % N / GPUS ? 12 : .29;
    for (int each = 0; each < 2; each++) {
        struct setting s = {.model = model_of ("gpt2-medium"),
                            .job = {.seq = 1024, .global_batch = 32},
                            .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
        struct mapper_problem p;
        struct found o;

        s.cluster =
            each ? cluster_of_rates (NODES, GPUS, "a100-sxm4-40g", true, rate)
                 : cluster_of (
                       "5x2 a100-sxm4-40g intra:12 intra-us:10 inter:0.29 inter-us:10");
        p = search_degrees (&s, 1, MAPPER_FREE, 1);
        p.axes.micro_batch = 2;
        p.axes.zero = 0;
        o = search (&p, NULL);
        step_s[each] = o.r.estimate.step_s;
        found_release (&o);
        topology_cluster_destroy (s.cluster);
    }
    assert_true (step_s[0] < 1.001 * step_s[1]);
}
