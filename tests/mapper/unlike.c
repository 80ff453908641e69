/* Clusters of unlike GPUs (types, speeds, node sizes, latencies, unmeasured links) under
 * memory limits and limits on nodes: equal to exhaustive search, never worse than the
 * default order, a plan whenever there is one, and nothing below the bound. */
#include "memest/memest.h"
#include "tests/lib/fixture.h"

static void add_matrix (struct text *t, struct rng *r, int n, double lo, double hi,
                        double unmeasured)
{
    text_add (t, "[");
    for (int i = 0; i < n; i++) {
        text_add (t, "%s[", i ? "," : "");
        for (int j = 0; j < n; j++)
            if (i == j || rng_unit (r) < unmeasured)
                text_add (t, "%snull", j ? "," : "");
            else
                text_add (t, "%s%.4g", j ? "," : "", lo * pow (hi / lo, rng_unit (r)));
        text_add (t, "]");
    }
    text_add (t, "]");
}

/* A number or a matrix. */
static void add_links (struct text *t, struct rng *r, int n, double lo, double hi,
                       double unmeasured)
{
    text_add (t, "{\"bandwidth_gb_per_s\":");
    if (rng_below (r, 3))
        add_matrix (t, r, n, lo, hi, unmeasured);
    else
        text_add (t, "%g", hi / 2);
    text_add (t, ",\"latency_us\":");
    if (rng_below (r, 3) == 0 && unmeasured <= 0)
        add_matrix (t, r, n, 2, 3000, 0);
    else
        text_add (t, "%d", 5 + rng_below (r, 200));
    text_add (t, "}");
}

static struct topology_cluster *unlike_cluster (struct rng *r, int most_gpus)
{
    static const char *const type[] = {"h100-sxm5-80g", "a100-sxm4-40g", "t4", "l40s"};
    static const double speed[] = {1, 0.97, 0.9, 0.5, 1.2};
    double unmeasured = rng_below (r, 3) ? 0 : 0.25;
    struct text t = {0};
    int n_nodes = 1 + rng_below (r, most_gpus < 5 ? most_gpus : 5), size[8];
    int left = most_gpus, types = 1 + rng_below (r, 4);

    text_add (&t, "{\"version\":1,\"name\":\"unlike\",\"nodes\":[");
    for (int i = 0; i < n_nodes; i++) {
        int most = left - (n_nodes - 1 - i);

        size[i] = 1 + rng_below (r, most < 4 ? most : 4);
        left -= size[i];
        text_add (&t, "%s{\"name\":\"n%d\",\"gpus\":%d,\"gpu_type\":\"%s\"", i ? "," : "",
                  i, size[i], type[rng_below (r, types)]);
        if (rng_below (r, 3) == 0) {
            text_add (&t, ",\"speed\":[");
            for (int k = 0; k < size[i]; k++)
                text_add (&t, "%s%g", k ? "," : "", speed[rng_below (r, 5)]);
            text_add (&t, "]");
        }
        text_add (&t, "}");
    }
    text_add (&t, "],\"links\":{\"intra\":[");
    for (int i = 0; i < n_nodes; i++) {
        text_add (&t, i ? "," : "");
        add_links (&t, r, size[i], 10, 400, unmeasured / 2);
    }
    text_add (&t, "]");
    if (n_nodes > 1) {
        text_add (&t, ",\"inter\":");
        add_links (&t, r, n_nodes, 0.5, rng_below (r, 2) ? 10 : 100, unmeasured);
    }
    text_add (&t, "}}");

    struct topology_cluster *c = cluster_from (text_str (&t));

    text_free (&t);
    return c;
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

/* After the layers were set. */
static void find_peaks (struct trial *t)
{
    struct memest_problem memory = {&t->s.model, &t->s.job, &t->s.config, &t->s.profile,
                                    MEMEST_LINKWISE};

    for (int i = 0; i < t->s.config.deg.pp; i++) {
        struct workload_stage held =
            workload_stage_of (&t->s.model, &t->s.config, t->s.layers, i);
        struct memest_stage m;

        memest_stage (&memory, i, &held, &m);
        t->peak_bytes[i] = m.peak_bytes;
    }
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

static bool consecutive (const struct trial *t, const int *gpu)
{
    const int *node_of = t->s.cluster->node_of_gpu;

    for (int a = 0; a < world_of (t); a++)
        for (int b = a + 2; b < world_of (t); b++)
            if (node_of[gpu[a]] == node_of[gpu[b]] &&
                node_of[gpu[b - 1]] != node_of[gpu[b]])
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

        if (!legal (x->t, x->gpu) ||
            (x->t->granularity == MAPPER_NODE && !consecutive (x->t, x->gpu)))
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

    *t = (struct trial){.s = {.cluster = unlike_cluster (r, most_gpus),
                              .model = small_model (4 + rng_below (r, 9)),
                              .job = {.seq = 512 << rng_below (r, 2),
                                      .global_batch = batch[rng_below (r, 6)]},
                              .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)}};
    t->granularity = (enum mapper_granularity) (MAPPER_NODE + rng_below (r, 2));
    *c = config_of (1 << rng_below (r, 2), 1 + rng_below (r, 4), 1 + rng_below (r, 4), 1);
    c->deg.cp = rng_below (r, 5) ? 1 : 2;
    c->zero = rng_below (r, c->deg.pp == 1 ? 4 : 2);
    c->recompute = (enum workload_recompute) rng_below (r, 3);
    t->p = (struct mapper_problem){.model = &t->s.model,
                                   .job = &t->s.job,
                                   .profile = &t->s.profile,
                                   .cluster = t->s.cluster,
                                   .axes = mapper_axes_free (),
                                   /* 2 GB, or what the model takes about */
                                   .memory_limit_pct =
                                       rng_below (r, 3) ? 95 : 2 + 12 * rng_unit (r)};
    if (rng_below (r, 4) == 0 && t->s.cluster->n_nodes > 1)
        t->p.max_nodes = 1 + rng_below (r, t->s.cluster->n_nodes - 1);
    if (world_of (t) <= t->s.cluster->n_gpus &&
        workload_config_check (&t->s.model, &t->s.job, c, NULL) == ST_OK)
        return true;
    topology_cluster_destroy (t->s.cluster);
    return false;
}

static void fix (struct mapper_axes *a, const struct workload_config *c)
{
    a->tp = c->deg.tp;
    a->pp = c->deg.pp;
    a->dp = c->deg.dp;
    a->cp = c->deg.cp;
    a->micro_batch = c->micro_batch;
    a->zero = c->zero;
    a->recompute = (int) c->recompute;
    a->sequence_parallel = c->sequence_parallel;
    a->ep = c->deg.ep;
    a->etp = c->deg.etp;
    a->vpp = c->deg.vpp;
    a->schedule = (int) c->schedule;
}

/* A random split and placement: its step, or INFINITY when it is not legal. */
static double random_step (struct rng *r, struct trial *t)
{
    int gpu[64], left = t->s.model.layers, pp = t->s.config.deg.pp;

    for (int k = 0; k < pp; k++) {
        int rest = pp - 1 - k;

        t->s.layers[k] = rest ? 1 + rng_below (r, left - rest) : left;
        left -= t->s.layers[k];
    }
    if (rng_below (r, 2))
        workload_layers_even (t->s.model.layers, pp, t->s.layers);
    find_peaks (t);
    for (int k = 0; k < t->s.cluster->n_gpus; k++)
        gpu[k] = k;
    shuffle (r, gpu, t->s.cluster->n_gpus);
    if (!legal (t, gpu) || (t->granularity == MAPPER_NODE && !consecutive (t, gpu)))
        return INFINITY;
    return step_of (&t->s, gpu, NULL);
}

static void check_fixed (struct rng *r, struct trial *t, long *placed)
{
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_result result = {0};
    struct mapper_info info;
    struct error err = {""};
    enum status st;

    settings.granularity = t->granularity;
    fix (&t->p.axes, &t->s.config);
    st = mapper_search (&t->p, &settings, &result, &info, &err);
    if (st == ST_OK) {
        struct costmodel_price best;

        (*placed)++;
        memcpy (t->s.layers, result.layers, (size_t) t->s.config.deg.pp * sizeof (int));
        find_peaks (t);
        assert_true (legal (t, result.gpu));
        best = exhaustive (t);
        if (best.unmeasured == 0)
            assert_int_equal (result.estimate.n_unmeasured, 0);
        CLOSE (result.estimate.step_s, best.step_s, 1e-9);
        if (result.default_order_unmeasured == 0 && t->granularity == MAPPER_GPU)
            assert_true (result.estimate.step_s <=
                         result.default_order_step_s * (1 + 1e-9));
        assert_true (result.lower_bound_s <= result.estimate.step_s);
        for (int i = 0; i < 30; i++) {
            double x = random_step (r, t);
            const struct workload_config *c = &t->s.config;

            if (x < result.lower_bound_s * (1 - 1e-9))
                fail_msg ("tp %d pp %d dp %d cp %d, micro-batch %d, zero %d, recompute "
                          "%d: step %.9g below the bound %.9g",
                          c->deg.tp, c->deg.pp, c->deg.dp, c->deg.cp, c->micro_batch,
                          c->zero, (int) c->recompute, x, result.lower_bound_s);
        }
        mapper_result_release (&result);
    } else if (st == ST_NOFIT) {
        for (int i = 0; i < 60; i++)
            if (isfinite (random_step (r, t)))
                fail_msg ("there is a plan, but: %s", err.text);
    } else if (t->p.max_nodes == 0) {
        fail_msg ("status %d: %s", st, err.text); /* a limit may leave too few GPUs */
    }
    mapper_info_release (&info);
}

static void equal_to_exhaustive (void **state)
{
    struct rng r = seeded (77);
    int rounds = getenv ("LINKWISE_LONG") ? 20000 : 2000;
    long placed = 0;
    (void) state;

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
static void long_split_by_node (void **state)
{
    struct trial t = {
        .s = {.cluster = cluster_from (
                  "{\"version\":1,\"name\":\"five\",\"nodes\":["
                  "{\"name\":\"n0\",\"gpus\":1,\"gpu_type\":\"t4\",\"speed\":[0.97]},"
                  "{\"name\":\"n1\",\"gpus\":1,\"gpu_type\":\"a100-sxm4-40g\"},"
                  "{\"name\":\"n2\",\"gpus\":2,\"gpu_type\":\"h100-sxm5-80g\"},"
                  "{\"name\":\"n3\",\"gpus\":1,\"gpu_type\":\"a100-sxm4-40g\","
                  "\"speed\":[0.5]}],\"links\":{\"intra\":{\"latency_us\":100,"
                  "\"bandwidth_gb_per_s\":100},\"inter\":{\"latency_us\":96,"
                  "\"bandwidth_gb_per_s\":[[null,2.777,0.9706,12.56],"
                  "[33.48,null,26.32,11.34],[36.89,1.424,null,3.204],"
                  "[9.454,2.796,1.064,null]]}}}"),
              .model = small_model (6),
              .job = {.seq = 1024, .global_batch = 64},
              .profile = profile_of (WORKLOAD_PROFILE_DEFAULT),
              .config = config_of (1, 3, 1, 1)},
        .granularity = MAPPER_NODE};
    struct rng r = seeded (79);
    long placed = 0;
    (void) state;

    t.s.config.zero = 0;
    t.s.config.recompute = RECOMPUTE_FULL;
    t.p = (struct mapper_problem){.model = &t.s.model,
                                  .job = &t.s.job,
                                  .profile = &t.s.profile,
                                  .cluster = t.s.cluster,
                                  .axes = mapper_axes_free (),
                                  .memory_limit_pct = 7.5745406};
    check_fixed (&r, &t, &placed);
    assert_int_equal (placed, 1);
    topology_cluster_destroy (t.s.cluster);
}

/* Larger than what is enumerated: a plan where there is one, within its limits, no worse
 * than the default order, and above the bound whatever is tried. */
static void larger_pools (void **state)
{
    struct rng r = seeded (78);
    int rounds = getenv ("LINKWISE_LONG") ? 2000 : 100;
    long placed = 0;
    (void) state;

    for (int i = 0; i < rounds; i++) {
        struct mapper_settings settings = mapper_settings_default ();
        struct mapper_result result = {0};
        struct mapper_info info;
        struct error err = {""};
        struct trial t;
        enum status st;

        while (!draw (&r, &t, 9 + rng_below (&r, 8)))
            ;
        settings.granularity = t.granularity = MAPPER_GPU;
        fix (&t.p.axes, &t.s.config);
        st = mapper_search (&t.p, &settings, &result, &info, &err);
        if (st == ST_OK) {
            placed++;
            memcpy (t.s.layers, result.layers, (size_t) t.s.config.deg.pp * sizeof (int));
            find_peaks (&t);
            assert_true (legal (&t, result.gpu));
            if (isfinite (result.default_order_step_s) &&
                result.default_order_unmeasured == 0) {
                assert_int_equal (result.estimate.n_unmeasured, 0);
                assert_true (result.estimate.step_s <=
                             result.default_order_step_s * (1 + 1e-9));
            }
        }
        for (int k = 0; k < 100; k++) {
            double step = random_step (&r, &t);

            if (st == ST_NOFIT && isfinite (step))
                fail_msg ("there is a plan, but: %s", err.text);
            if (st == ST_OK)
                assert_true (step >= result.lower_bound_s * (1 - 1e-9));
        }
        if (st == ST_OK)
            mapper_result_release (&result);
        mapper_info_release (&info);
        topology_cluster_destroy (t.s.cluster);
    }
    assert_true (placed > rounds / 2);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (equal_to_exhaustive),
                                       cmocka_unit_test (long_split_by_node),
                                       cmocka_unit_test (larger_pools)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
