/* Clusters of unlike GPUs (types, speeds, node sizes, latencies, unmeasured links) under
 * memory limits and limits on nodes: equal to exhaustive search, never worse than the
 * default order, a plan whenever there is one, and nothing below the bound. */
#include "tests/lib/clusters.h"
#include "tests/lib/bounds.h"

static struct topology_cluster *unlike_cluster (struct rng *r, int most_gpus)
{
    return drawn_cluster (
        r,
        &(struct cluster_draw){.nodes = 1 + rng_below (r, most_gpus < 5 ? most_gpus : 5),
                               .gpus = 4,
                               .most_gpus = most_gpus,
                               .types = 1 + rng_below (r, 6),
                               .speeds = rng_below (r, 3) ? 8 : 0,
                               .inside = {10, 400},
                               .between = {.5, rng_below (r, 2) ? 10 : 100},
                               .unmeasured = rng_below (r, 3) ? 0 : .25,
                               .forms = true});
}

/* A problem and what the test itself says of it. */
struct trial {
    struct setting s;
    struct mapper_problem p;
    enum mapper_granularity granularity;
    double peak_bytes[8]; /* by stage */
};

static int world_of (const struct trial *t)
{
    return (int) workload_world (&t->s.config.deg);
}

static int nodes_of (const struct trial *t, const int *gpu)
{
    int n = 0;

    for (int a = 0; a < world_of (t); a++) {
        bool seen = false;

        for (int b = 0; b < a && !seen; b++)
            seen = t->s.cluster->node_of_gpu[gpu[b]] == t->s.cluster->node_of_gpu[gpu[a]];
        n += !seen;
    }
    return n;
}

static bool legal (const struct trial *t, const int *gpu)
{
    int per_stage = world_of (t) / t->s.config.deg.pp;

    if (t->p.max_nodes > 0 && nodes_of (t, gpu) > t->p.max_nodes)
        return false;
    for (int k = 0; k < world_of (t); k++)
        if (t->peak_bytes[k / per_stage] >
            memest_limit (&t->s.profile,
                          topology_gpu_type_of (t->s.cluster, gpu[k])->memory_bytes,
                          t->p.memory_limit_pct, 0))
            return false;
    return true;
}

/* Every legal placement, priced by the cost model's state. */
struct all {
    const struct trial *t;
    struct costmodel_state *state;
    int gpu[8];
    bool used[8];
    struct costmodel_price best;
};

static void enumerate (struct all *x, int at)
{
    int n = x->t->s.cluster->n_gpus;

    if (at == world_of (x->t)) {
        int whole[8], k = at;
        struct costmodel_price price;

        if (!legal (x->t, x->gpu) || (x->t->granularity == MAPPER_NODE &&
                                      !consecutive (x->t->s.cluster, x->gpu, at)))
            return;
        memcpy (whole, x->gpu, sizeof whole);
        for (int g = 0; g < n; g++)
            if (!x->used[g])
                whole[k++] = g;
        costmodel_state_reset (x->state, whole);
        price = costmodel_state_price (x->state);
        if (price.unmeasured < x->best.unmeasured ||
            (price.unmeasured == x->best.unmeasured && price.step_s < x->best.step_s))
            x->best = price;
        return;
    }
    for (int g = 0; g < n; g++)
        if (!x->used[g]) {
            x->used[g] = true;
            x->gpu[at] = g;
            enumerate (x, at + 1);
            x->used[g] = false;
        }
}

static struct costmodel_price exhaustive (const struct trial *t)
{
    struct costmodel_problem problem = problem_of (&t->s);
    struct all x = {.t = t, .best = {.unmeasured = 1 << 30, .step_s = INFINITY}};
    struct error err = {""};
    int first[8] = {0, 1, 2, 3, 4, 5, 6, 7};

    ok (costmodel_state_create (&problem, first, t->s.cluster->n_gpus, &x.state, &err),
        &err);
    enumerate (&x, 0);
    costmodel_state_destroy (x.state);
    return x.best;
}

/* Draw degrees that the cluster can hold, and a job with them. */
static bool draw (struct rng *r, struct trial *t, int most_gpus)
{
    static const int batch[] = {4, 8, 24, 12, 64, 6};
    struct workload_config *c = &t->s.config;

    *t = (struct trial){.s = small_job (unlike_cluster (r, most_gpus),
                                        4 + rng_below (r, 9), 512 << rng_below (r, 2),
                                        batch[rng_below (r, 6)])};
    t->granularity = (enum mapper_granularity) (MAPPER_NODE + rng_below (r, 2));
    *c = config_of (1 << rng_below (r, 2), 1 + rng_below (r, 4), 1 + rng_below (r, 4), 1);
    c->deg.cp = rng_below (r, 5) ? 1 : 2;
    c->zero = rng_below (r, c->deg.pp == 1 ? 4 : 2);
    draw_recompute (r, &t->s);
    t->p = search_config (&t->s);
    /* 2 GB, or what the model takes about */
    t->p.memory_limit_pct = rng_below (r, 3) ? 95 : 2 + 12 * rng_unit (r);
    if (rng_below (r, 4) == 0 && t->s.cluster->n_nodes > 1)
        t->p.max_nodes = 1 + rng_below (r, t->s.cluster->n_nodes - 1);
    if (possible (&t->s))
        return true;
    topology_cluster_destroy (t->s.cluster);
    return false;
}

/* A random split and placement: its step, or INFINITY when it is not legal. */
static double random_step (struct rng *r, struct trial *t)
{
    int gpu[64];

    draw_layers (r, &t->s);
    find_peaks (&t->s, t->peak_bytes);
    in_file_order (gpu, t->s.cluster->n_gpus);
    shuffle (r, gpu, t->s.cluster->n_gpus);
    if (!legal (t, gpu) ||
        (t->granularity == MAPPER_NODE && !consecutive (t->s.cluster, gpu, world_of (t))))
        return INFINITY;
    return step_of (&t->s, gpu, NULL);
}

static void check_fixed (struct rng *r, struct trial *t, long *placed)
{
    struct mapper_settings settings = mapper_settings_default ();
    struct found o;
    struct error err = {""};
    enum status st;

    settings.granularity = t->granularity;
    st = try_search (&t->p, &settings, &o, &err);
    if (st == ST_OK) {
        struct costmodel_price best;

        (*placed)++;
        take (&t->s, &o.r);
        find_peaks (&t->s, t->peak_bytes);
        assert_true (legal (t, o.r.gpu));
        best = exhaustive (t);
        if (best.unmeasured == 0)
            assert_int_equal (o.r.estimate.n_unmeasured, 0);
        CLOSE (o.r.estimate.step_s, best.step_s, 1e-9);
        if (o.r.default_order_unmeasured == 0 && t->granularity == MAPPER_GPU)
            assert_true (o.r.estimate.step_s <= o.r.default_order_step_s * (1 + 1e-9));
        for (int i = 0; i < 30; i++)
            above (&t->s, "by hand", NULL, random_step (r, t), 1, &o.r.lower_bound_s);
        found_release (&o);
    } else if (st == ST_NOFIT) {
        for (int i = 0; i < 60; i++)
            if (isfinite (random_step (r, t)))
                fail_msg ("there is a plan, but: %s", err.text);
    } else if (t->p.max_nodes == 0) {
        fail_msg ("status %d: %s", st, err.text); /* a limit may leave too few GPUs */
    }
}

/* All replicas round by one: the same rings, also of context parallelism, which attention on the
 * ring's own GPUs hides (every placement is tried once up to such turns). */
TEST (turned_replicas)
{
    struct rng r = seeded (5);
    int turned = 0;

    for (int round = 0; round < 6000; round++) {
        struct trial t;
        int gpu[8], ahead[8];

        if (!draw (&r, &t, 5))
            continue;
        if (t.s.cluster->n_nodes == t.s.cluster->n_gpus && t.s.config.deg.pp == 1 &&
            t.s.config.deg.dp > 1 && t.s.config.deg.cp > 1) {
            int n = world_of (&t), slot = n / t.s.config.deg.dp;

            in_file_order (gpu, t.s.cluster->n_gpus);
            shuffle (&r, gpu, t.s.cluster->n_gpus);
            draw_layers (&r, &t.s);
            memcpy (ahead, gpu, sizeof ahead);
            for (int k = 0; k < n; k++)
                ahead[k] = gpu[(k + slot) % n];
            CLOSE (step_of (&t.s, ahead, NULL), step_of (&t.s, gpu, NULL), 1e-9);
            turned++;
        }
        topology_cluster_destroy (t.s.cluster);
    }
    assert_true (turned > 3);
}

TEST (equal_to_exhaustive)
{
    struct rng r = seeded (77);
    int rounds = getenv ("LINKWISE_LONG") ? 20000 : 40;
    long placed = 0;

    for (int i = 0; i < rounds; i++) {
        struct trial t;

        while (!draw (&r, &t, i % 64 ? 5 : 6))
            ;
        check_fixed (&r, &t, &placed);
        topology_cluster_destroy (t.s.cluster);
    }
    assert_true (placed > rounds / 2);
}

/* Node by node, a small pool may have no placement of the splits that are shortest with
 * GPUs anywhere. */
TEST (long_split_by_node)
{
    static const char five[] =
        "{\"version\":1,\"nodes\":["
        "{\"name\":\"n0\",\"gpus\":1,\"gpu_type\":\"t4\",\"speed\":[0.97]},"
        "{\"name\":\"n1\",\"gpus\":1,\"gpu_type\":\"a100-sxm4-40g\"},"
        "{\"name\":\"n2\",\"gpus\":2,\"gpu_type\":\"h100-sxm5-80g\"},"
        "{\"name\":\"n3\",\"gpus\":1,\"gpu_type\":\"a100-sxm4-40g\",\"speed\":[0.5]}],"
        "\"links\":{\"intra\":{\"latency_us\":100,\"bandwidth_gb_per_s\":100},"
        "\"inter\":{\"latency_us\":96,\"bandwidth_gb_per_s\":[[null,2.777,0.9706,12.56],"
        "[33.48,null,26.32,11.34],[36.89,1.424,null,3.204],[9.454,2.796,1.064,null]]}}}";
    struct trial t = {
        .s = small_job_as (cluster_from (five), 6, 1024, 64, config_of (1, 3, 1, 1)),
        .granularity = MAPPER_NODE};
    struct rng r = seeded (79);
    long placed = 0;

    t.s.config.zero = 0;
    t.s.config.recompute = RECOMPUTE_FULL;
    t.p = search_config (&t.s);
    t.p.memory_limit_pct = 7.5745406;
    check_fixed (&r, &t, &placed);
    assert_int_equal (placed, 1);
    topology_cluster_destroy (t.s.cluster);
}

/* Larger than what is enumerated: a plan where there is one, within its limits, no worse
 * than the default order, and above the bound whatever is tried. */
TEST (larger_pools)
{
    struct rng r = seeded (78);
    int rounds = getenv ("LINKWISE_LONG") ? 2000 : 3;
    long placed = 0;

    for (int i = 0; i < rounds; i++) {
        struct mapper_settings settings = mapper_settings_default ();
        struct found o;
        struct error err = {""};
        struct trial t;
        enum status st;

        while (!draw (&r, &t, 9 + rng_below (&r, 8)))
            ;
        settings.granularity = t.granularity = MAPPER_GPU;
        st = try_search (&t.p, &settings, &o, &err);
        if (st == ST_OK) {
            placed++;
            take (&t.s, &o.r);
            find_peaks (&t.s, t.peak_bytes);
            assert_true (legal (&t, o.r.gpu));
            if (isfinite (o.r.default_order_step_s) &&
                o.r.default_order_unmeasured == 0) {
                assert_int_equal (o.r.estimate.n_unmeasured, 0);
                assert_true (o.r.estimate.step_s <=
                             o.r.default_order_step_s * (1 + 1e-9));
            }
        }
        for (int k = 0; k < 100; k++) {
            double step = random_step (&r, &t);

            if (st == ST_NOFIT && isfinite (step))
                fail_msg ("there is a plan, but: %s", err.text);
            if (st == ST_OK)
                above (&t.s, "by hand", NULL, step, 1, &o.r.lower_bound_s);
        }
        if (st == ST_OK)
            found_release (&o);
        topology_cluster_destroy (t.s.cluster);
    }
    assert_true (placed > rounds / 2);
}

/* One replica has both middle GPUs, the other the fastest and the slowest: which is the cheaper one
 * depends on the prices, so what is known of one may not be taken for the other. */
TEST (replicas_of_other_prices)
{
    static const char three[] =
        "{\"version\":1,\"nodes\":["
        "{\"name\":\"n0\",\"gpus\":3,\"gpu_type\":\"a100-sxm4-80g\","
        "\"speed\":[0.866564,1,0.866564]},"
        "{\"name\":\"n1\",\"gpus\":1,\"gpu_type\":\"a100-sxm4-80g\",\"speed\":[0.487593]}"
        ","
        "{\"name\":\"n2\",\"gpus\":1,\"gpu_type\":\"a100-sxm4-80g\",\"speed\":[0.487593]}"
        "],"
        "\"links\":{\"intra\":{\"latency_us\":2,\"bandwidth_gb_per_s\":900},"
        "\"inter\":{\"latency_us\":3,\"bandwidth_gb_per_s\":800}}}";
    static const int gpu[] = {0, 1, 2, 3, 4};
    struct setting s =
        small_job_as (cluster_from (three), 11, 4096, 8, config_of (1, 2, 2, 1));
    struct mapper_problem p = unlimited (&s);
    double bound[BOUND_RUNS + 1];

    s.model.vocab = 4000;
    s.model.mtp_layers = 1;
    s.job.seq = 4096;
    s.config.zero = 1;
    s.layers[0] = 9;
    s.layers[1] = 2;
    bounds_in (&p, &s.config, true, bound);
    above (&s, "by hand", gpu, step_of (&s, gpu, NULL), BOUND_RUNS + 1, bound);
    topology_cluster_destroy (s.cluster);
}
