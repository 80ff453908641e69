/* The price that follows exchanges equals the price from scratch, always. */
#include "tests/lib/clusters.h"

/* A position may be named twice: three GPUs go round, and the price is as from scratch.  Undone,
 * all is as it was. */
static void go_round (struct rng *r, struct costmodel_state *x, const struct setting *s)
{
    struct costmodel_price before = costmodel_state_price (x);
    int gpu[12], first = rng_below (r, 10), unmeasured = 0;
    const int a[] = {first, first + 1}, b[] = {first + 1, first + 2};
    double step;

    memcpy (gpu, costmodel_state_gpus (x), sizeof gpu);
    costmodel_state_exchange (x, a, b, 2);
    assert_int_equal (costmodel_state_gpus (x)[first], gpu[first + 1]);
    assert_int_equal (costmodel_state_gpus (x)[first + 1], gpu[first + 2]);
    assert_int_equal (costmodel_state_gpus (x)[first + 2], gpu[first]);
    step = step_of (s, costmodel_state_gpus (x), &unmeasured);
    if (isfinite (step))
        CLOSE (costmodel_state_price (x).step_s, step, 1e-10);
    costmodel_state_undo (x, a, b, 2);
    assert_memory_equal (costmodel_state_gpus (x), gpu, sizeof gpu);
    assert_true (costmodel_state_price (x).step_s == before.step_s);
    assert_int_equal (costmodel_state_price (x).unmeasured, before.unmeasured);
}

TEST (random_exchanges)
{
    static const int degrees[][4] = {{1, 2, 4, 1}, {2, 2, 2, 1}, {2, 1, 4, 1},
                                     {4, 2, 1, 1}, {1, 4, 2, 1}, {2, 2, 1, 2},
                                     {1, 1, 4, 2}, {1, 5, 1, 1}};
    struct rng r = seeded (21);

    for (int i = 0; i < 60; i++) {
        const int *d = degrees[rng_below (&r, 8)];
        struct setting s = {.cluster =
                                random_cluster (&r, 3, 4, 6, 0.1, rng_below (&r, 2),
                                                rng_below (&r, 3) == 0),
                            .model = i % 2 ? small_model (8) : model_of ("gpt2-xl"),
                            .job = {.seq = 512, .global_batch = 32},
                            .profile = profile_of (WORKLOAD_PROFILE_DEFAULT),
                            .config = config_of (i % 2 ? d[0] : 1, d[1], d[2], 1)};
        struct costmodel_problem p;
        struct costmodel_state *x;
        struct error err;
        int gpu[12], world;

        s.config.deg.cp = d[3];
        s.config.zero = rng_below (&r, 4);
        s.config.shard = d[2] % 2 == 0 && s.config.zero > 0 ? 2 * rng_below (&r, 2) : 0;
        s.config.schedule = rng_below (&r, 5) ? SCHEDULE_1F1B : SCHEDULE_GPIPE;
        s.kind = i % 3 ? COSTMODEL_CRITICAL_PATH : (enum costmodel_kind) (1 + i / 3 % 2);
        workload_layers_even (s.model.layers, d[1], s.layers);
        world = (int) workload_world (&s.config.deg);
        for (int k = 0; k < 12; k++)
            gpu[k] = k;
        p = problem_of (&s);
        ok (costmodel_state_create (&p, gpu, 12, &x, &err), &err);
        for (int move = 0; move < 60; move++) {
            int run = 1 + rng_below (&r, 4), a[4], b[4], unmeasured = 0;
            int from = rng_below (&r, 12 - run + 1), to = rng_below (&r, 12 - run + 1);
            struct costmodel_price price;
            double step;

            if (abs (from - to) < run)
                continue;
            for (int k = 0; k < run; k++) {
                a[k] = from + k;
                b[k] = to + k;
            }
            costmodel_state_exchange (x, a, b, run);
            price = costmodel_state_price (x);
            step = step_of (&s, costmodel_state_gpus (x), &unmeasured);
            if (isfinite (step)) {
                CLOSE (price.step_s, step, 1e-10);
                assert_true ((price.unmeasured > 0) == (unmeasured > 0));
                assert_true (price.smooth_s >= price.step_s);
            } else {
                assert_false (isfinite (price.step_s));
            }
            if (run == 1 && from < world && to < world) {
                /* Undoing restores the price exactly enough. */
                costmodel_state_exchange (x, a, b, run);
                costmodel_state_undo (x, a, b, run);
                assert_true (costmodel_state_price (x).step_s == price.step_s);
            }
            go_round (&r, x, &s);
        }
        costmodel_state_destroy (x);
        topology_cluster_destroy (s.cluster);
    }
}

/* The smooth price has a fiftieth of what the others take: of a chain of stages on one GPU each, by
 * other people's models, the pipeline's sends and the mean stage's gradients. */
TEST (smooth)
{
    for (int dp = 1; dp <= 2; dp++) {
        struct setting s = small_job_as (cluster_of ("8x1 a100-sxm4-80g inter:10"), 8,
                                         1024, 16, config_of (1, 4, dp, 1));
        struct costmodel_problem p;
        struct costmodel_state *x;
        struct costmodel_price price;
        struct error err;
        /* Three sends of 2 bytes there; a ring of two has once its bytes on the way. */
        double sends = 3 * 2.0 * 1024 * 1024 / 10e9, syncs = 0;
        int gpu[8];

        in_file_order (gpu, 8);
        s.kind = COSTMODEL_AMP;
        for (int i = 0; i < 4 && dp == 2; i++) {
            struct workload_stage held =
                workload_stage_of (&s.model, &s.config, s.layers, i);

            syncs +=
                2.0 * workload_stage_params (&s.model, &s.config, &held).dense / 10e9;
        }
        p = problem_of (&s);
        ok (costmodel_state_create (&p, gpu, 8, &x, &err), &err);
        price = costmodel_state_price (x);
        CLOSE (price.smooth_s - price.step_s, .02 * (sends + syncs / 4), 1e-9);
        costmodel_state_destroy (x);
        topology_cluster_destroy (s.cluster);
    }
}

/* A stage's time is that of its layers, all alike, of what stands at the ends, and what every
 * stage takes. */
TEST (ends_and_layers)
{
    static const int splits[][2] = {{2, 6}, {4, 4}};
    struct rng r = seeded (22);
    struct setting s = {.cluster = random_cluster (&r, 2, 1, 2, 0, false, false),
                        .model = small_model (8),
                        .job = {.seq = 512, .global_batch = 32},
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT),
                        .config = config_of (1, 2, 1, 1),
                        .layers = {4, 4}};
    struct costmodel_problem p = problem_of (&s);
    struct costmodel_state *x;
    struct error err;
    int gpu[] = {0, 1};
    double all_s[2][2], end_s, rest_s[2];

    ok (costmodel_state_create (&p, gpu, 2, &x, &err), &err);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 2; i++) {
            costmodel_state_layers (x, splits[i]);
            costmodel_state_exchange (x, NULL, NULL, 0);
            all_s[k][i] = costmodel_state_stage_s (x, k, &end_s);
            assert_true (end_s > 0);
        }
        rest_s[k] =
            all_s[k][1] - end_s -
            splits[1][k] * (all_s[k][1] - all_s[k][0]) / (splits[1][k] - splits[0][k]);
    }
    CLOSE (rest_s[0], rest_s[1], 1e-9);
    costmodel_state_destroy (x);
    topology_cluster_destroy (s.cluster);
}

/* With a limit a price is exact up to it, else above it and no more than it would be; taken back,
 * nothing is left of it. */
static void limit_holds (struct rng *r, struct costmodel_state *x, const int *a,
                         const int *b, int run)
{
    static const double parts[] = {.5, .9, .99, 1, 1.1};
    struct costmodel_price before = costmodel_state_price (x), exact, most, now;
    double part = parts[rng_below (r, 5)];

    costmodel_state_exchange (x, a, b, run);
    exact = costmodel_state_price (x);
    costmodel_state_undo (x, a, b, run);
    most = (struct costmodel_price){0, part * exact.step_s, INFINITY};
    if (rng_below (r, 2))
        most = (struct costmodel_price){0, INFINITY, part * exact.smooth_s};
    costmodel_state_limit (x, most);
    costmodel_state_exchange (x, a, b, run);
    now = costmodel_state_price (x);
    assert_int_equal (now.unmeasured, exact.unmeasured);
    if (now.step_s > most.step_s || now.smooth_s > most.smooth_s) {
        assert_true (now.step_s <= exact.step_s * (1 + 1e-9));
        assert_true (now.smooth_s <= exact.smooth_s * (1 + 1e-9));
    } else {
        assert_true (now.step_s == exact.step_s && now.smooth_s == exact.smooth_s);
    }
    costmodel_state_undo (x, a, b, run);
    now = costmodel_state_price (x);
    assert_true (now.step_s == before.step_s && now.smooth_s == before.smooth_s);
    costmodel_state_limit (x, (struct costmodel_price){0, INFINITY, INFINITY});
}

/* A beginning takes no more than the whole, and as much where it is all of one slot. */
static void begun_is_less (struct rng *r, struct costmodel_state *x,
                           const struct setting *s, double step_s)
{
    int world = (int) workload_world (&s->config.deg), ranks = 1 + rng_below (r, world);
    const int *gpu = costmodel_state_gpus (x);

    assert_true (costmodel_state_begun_s (x, gpu, ranks) <= step_s * (1 + 1e-12));
    if (s->config.deg.pp == 1 && s->config.deg.dp == 1 && isfinite (step_s))
        CLOSE (costmodel_state_begun_s (x, gpu, world), step_s, 1e-12);
}

/* Long walks on larger clusters, with all that makes slots see each other: node totals,
 * groups over nodes, experts, chunks, context parallelism, tied embeddings, groups that shard. */
TEST (long_walks)
{
    static const struct {
        int tp, pp, dp, cp, ep, vpp;
        bool tied, joins;
        int zero, shard;
        enum workload_offload offload;
    } cases[] = {{4, 2, 4, 1, 1, 1, .tied = false},
                 {8, 4, 1, 1, 1, 1, .tied = true},
                 {2, 4, 4, 1, 1, 2, .tied = false},
                 {2, 2, 4, 2, 1, 1, .tied = true},
                 {1, 4, 8, 1, 4, 1, .tied = false},
                 {4, 4, 2, 1, 2, 1, .tied = false},
                 {3, 2, 5, 1, 1, 1, .tied = true},
                 {1, 8, 4, 1, 1, 1, .tied = true, .shard = 2},
                 {1, 4, 8, 1, 4, 2, .tied = false},
                 {2, 1, 8, 1, 4, 1, .tied = false},
                 {2, 1, 4, 2, 8, 1, .tied = false},
                 {8, 1, 1, 1, 1, 1, .tied = false},
                 {1, 4, 8, 1, 4, 2, .joins = true},
                 {2, 2, 8, 1, 4, 2, .joins = true, .shard = 4},
                 {1, 8, 4, 1, 1, 2, .joins = true, .offload = OFFLOAD_OPTIMIZER},
                 {2, 1, 8, 1, 4, 1, .zero = 2, .shard = 4},
                 {2, 1, 8, 2, 4, 1, .zero = 3, .shard = 2, .offload = OFFLOAD_ALL}};
    struct rng r = seeded (22);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct setting s = small_job_as (
            random_cluster (&r, 8, 4, 4, i % 3 ? 0 : 0.05, i % 4 != 3, i % 4 == 2), 16,
            512, 64, config_of (cases[i].tp, cases[i].pp, cases[i].dp, 1));
        struct costmodel_problem p;
        struct costmodel_state *x;
        struct error err;
        int gpu[32], unmeasured;

        s.config.deg.cp = cases[i].cp;
        s.config.deg.ep = cases[i].ep;
        s.config.deg.vpp = cases[i].vpp;
        s.config.schedule = cases[i].joins     ? SCHEDULE_DUALPIPEV
                            : cases[i].vpp > 1 ? SCHEDULE_INTERLEAVED
                                               : SCHEDULE_1F1B;
        if (cases[i].zero > 0)
            s.config.zero = cases[i].zero;
        s.config.shard = cases[i].shard;
        s.config.offload = cases[i].offload;
        s.model.tied = cases[i].tied;
        if (cases[i].ep > 1) {
            s.model.experts = 8;
            s.model.top_k = 2;
            s.model.expert_ffn = 1024;
            s.model.dense_layers = i > 4 ? 3 : 0; /* all that a stage may have */
            s.profile.time.moe_overlap = .5;
        }
        for (int k = 0; k < 32; k++)
            gpu[k] = k;
        p = problem_of (&s);
        ok (costmodel_state_create (&p, gpu, 32, &x, &err), &err);
        for (int move = 0; move < 1500; move++) {
            int run = 1 << rng_below (&r, 4), a[8], b[8];
            int from = rng_below (&r, 32 / run) * run,
                to = rng_below (&r, 32 / run) * run;

            for (int k = 0; k < run; k++) {
                a[k] = from + k;
                b[k] = to + k;
            }
            if (from != to) {
                limit_holds (&r, x, a, b, run);

                struct costmodel_price before = costmodel_state_price (x);
                int layers[8], pp = cases[i].pp, v = cases[i].vpp;

                memcpy (layers, s.layers, sizeof layers);
                if (rng_below (&r, 2) == 0) { /* a chunk's worth goes elsewhere too */
                    int least = rng_below (&r, pp);

                    if (s.layers[least] > v) {
                        s.layers[least] -= v;
                        s.layers[rng_below (&r, pp)] += v;
                        costmodel_state_layers (x, s.layers);
                    }
                }
                costmodel_state_exchange (x, a, b, run);
                if (rng_below (&r, 3) == 0) {
                    memcpy (s.layers, layers, sizeof layers);
                    costmodel_state_layers (x, layers);
                    costmodel_state_undo (x, a, b, run);
                    assert_memory_equal (&before.step_s,
                                         &(double){costmodel_state_price (x).step_s},
                                         sizeof (double));
                    assert_int_equal (before.unmeasured,
                                      costmodel_state_price (x).unmeasured);
                }
            }
            if (move % 7 == 0) {
                double step = step_of (&s, costmodel_state_gpus (x), &unmeasured);

                begun_is_less (&r, x, &s, step);
                if (isfinite (step))
                    CLOSE (costmodel_state_price (x).step_s, step, 1e-10);
                else
                    assert_false (isfinite (costmodel_state_price (x).step_s));
            }
        }
        /* Nothing is left of the way: equal to a state that starts here, and to one that stood
         * elsewhere before. */
        struct costmodel_state *fresh;

        memcpy (gpu, costmodel_state_gpus (x), sizeof gpu);
        ok (costmodel_state_create (&p, NULL, 32, &fresh, &err), &err);
        shuffle (&r, gpu, 32);
        costmodel_state_reset (fresh, gpu);
        costmodel_state_reset (fresh, costmodel_state_gpus (x));
        assert_true (costmodel_state_price (x).step_s ==
                     costmodel_state_price (fresh).step_s);
        assert_true (costmodel_state_price (x).smooth_s ==
                     costmodel_state_price (fresh).smooth_s);
        assert_int_equal (costmodel_state_price (x).unmeasured,
                          costmodel_state_price (fresh).unmeasured);
        costmodel_state_destroy (fresh);
        costmodel_state_destroy (x);
        topology_cluster_destroy (s.cluster);
    }
}

/* A stage on a node that no link reaches is beyond any limit, and nothing is left of it. */
TEST (unreachable)
{
    for (int dp = 1; dp <= 2; dp++) {
        static const double none[] = {NAN, NAN, NAN, NAN};
        struct setting s =
            small_job_as (cluster_of_rates (2, 4, "a100-sxm4-80g", false, none), 8, 512,
                          16, config_of (1, 4 / dp, dp, 1));
        struct costmodel_problem p;
        struct costmodel_state *x;
        struct costmodel_price before, most = {0, INFINITY, INFINITY};
        struct error err;
        int gpu[8], a = 0, b = 7;

        in_file_order (gpu, 8);
        p = problem_of (&s);
        ok (costmodel_state_create (&p, gpu, 8, &x, &err), &err);
        before = costmodel_state_price (x);
        most.step_s = before.step_s;
        costmodel_state_limit (x, most);
        costmodel_state_exchange (x, &a, &b, 1);
        assert_false (isfinite (costmodel_state_price (x).step_s));
        assert_false (isnan (costmodel_state_price (x).smooth_s));
        costmodel_state_undo (x, &a, &b, 1);
        assert_true (costmodel_state_price (x).step_s == before.step_s &&
                     costmodel_state_price (x).smooth_s == before.smooth_s);
        costmodel_state_destroy (x);
        topology_cluster_destroy (s.cluster);
    }
}
