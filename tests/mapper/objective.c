/* What is to be least: GPU hours find what every number of GPUs costs, with a bound that holds
 * for them, and so does goodput; plans that are as good give way to the simplest; GPUs that do not
 * factor are left out as pays. */
#include "tests/lib/clusters.h"
#include "tests/lib/search.h"

static struct mapper_problem problem_for (const struct setting *s,
                                          enum mapper_objective objective)
{
    struct mapper_problem p = search_problem (s);

    p.objective = objective;
    p.reliability = (struct mapper_reliability){200 * 3600.0, 60, 900, 24 * 3600.0};
    return p;
}

static bool finds (const struct mapper_problem *p, double tie, struct found *o)
{
    struct mapper_settings how = mapper_settings_default ();
    struct error err = {""};

    how.tie = tie;
    how.top = 1000;
    return try_search (p, &how, o, &err) == ST_OK;
}

static double value (const struct mapper_problem *p, const struct mapper_result *r)
{
    long gpus = workload_world (&r->config.deg);

    return r->estimate.step_s * (p->objective == MAPPER_GPU_HOURS ? (double) gpus
                                 : p->objective == MAPPER_GOODPUT
                                     ? 1 / mapper_goodput_of (p, gpus).share
                                     : 1);
}

static struct setting a_job (struct topology_cluster *c)
{
    return small_job (c, 6, 1024, 24);
}

/* Bounds of so many GPUs' hours and of the step are one but for the weight: what only says that a
 * bound is not high enough is none, however it is rounded. */
TEST (weight_alone)
{
    struct rng rng = seeded (11);
    int rounds = getenv ("LINKWISE_LONG") ? 300 : 6;

    for (int round = 0; round < rounds; round++) {
        struct setting s = a_job (random_cluster (&rng, 4, 3, 8, 0, true, true));
        double bound[2];

        s.config = config_of (1, round % 2 ? 11 : 9, 1, 1);
        s.model.layers = 12 + rng_below (&rng, 20);
        s.job.global_batch = 8 + rng_below (&rng, 64);
        for (int hours = 0; hours < 2; hours++) {
            struct mapper_problem p = search_config (&s);
            struct found o;

            p.objective = hours ? MAPPER_GPU_HOURS : MAPPER_STEP;
            assert_true (finds (&p, 0, &o));
            bound[hours] = o.r.lower_bound_s;
            found_release (&o);
        }
        CLOSE (bound[1], bound[0], 1e-9);
        topology_cluster_destroy (s.cluster);
    }
}

/* Every tp, pp and dp by itself: none is below the bound, and the least is what was found. */
TEST (least_of_all)
{
    struct rng rng = seeded (23);
    int rounds = getenv ("LINKWISE_LONG") ? 20 : 1;

    for (int round = 0; round < rounds; round++)
        for (int objective = 0; objective < 3; objective++) {
            struct setting s = a_job (random_cluster (&rng, 3, 2, 3, 0, false, false));
            struct mapper_problem p = problem_for (&s, (enum mapper_objective) objective);
            struct found best, one;
            double least = INFINITY, bound;

            p.axes.micro_batch = p.axes.zero = 1;
            assert_true (finds (&p, 0, &best));
            assert_true (best.info.proven);
            bound = best.r.lower_bound_s * value (&p, &best.r) / best.r.estimate.step_s;
            for (int tp = 1; tp <= 2; tp++)
                for (int pp = 1; pp <= 6; pp++)
                    for (int dp = 1; dp <= 6; dp++) {
                        p.axes.tp = tp;
                        p.axes.pp = pp;
                        p.axes.dp = dp;
                        if (tp * pp * dp > s.cluster->n_gpus || !finds (&p, 0, &one))
                            continue;
                        assert_true (value (&p, &one.r) >= bound * (1 - 1e-9));
                        least = fmin (least, value (&p, &one.r));
                        found_release (&one);
                    }
            /* The search of all places each with the same effort or more. */
            assert_true (value (&p, &best.r) <= least * (1 + 1e-3));
            found_release (&best);
            topology_cluster_destroy (s.cluster);
        }
}

/* Fewer GPUs cost fewer GPU hours where links are slow, more make the step shorter. */
TEST (few_or_many)
{
    struct setting s = a_job (cluster_of ("4x2 a100-sxm4-80g intra:200 inter:1"));
    struct mapper_problem step = problem_for (&s, MAPPER_STEP),
                          hours = problem_for (&s, MAPPER_GPU_HOURS);
    struct found a, b;

    assert_true (finds (&step, 0, &a));
    assert_true (finds (&hours, 0, &b));
    assert_true (value (&hours, &b.r) < value (&hours, &a.r));
    assert_true (a.r.estimate.step_s < b.r.estimate.step_s);
    assert_true (workload_world (&b.r.config.deg) < workload_world (&a.r.config.deg));
    found_release (&a);
    found_release (&b);
    topology_cluster_destroy (s.cluster);
}

/* 7 GPUs and a batch of 24: 6 serve, or 7 as a pipeline of 7 of the 14 layers. */
TEST (gpus_that_do_not_factor)
{
    struct setting s = a_job (cluster_of ("7x1 a100-sxm4-80g inter:20"));
    struct mapper_problem p = problem_for (&s, MAPPER_STEP);
    struct found all, fewer;

    assert_true (finds (&p, 0, &all));
    assert_true (workload_world (&all.r.config.deg) >= 6);
    for (int nodes = 1; nodes < 7; nodes++) {
        p.max_nodes = nodes;
        assert_true (finds (&p, 0, &fewer));
        assert_true (workload_world (&fewer.r.config.deg) <= nodes);
        assert_true (fewer.r.estimate.step_s >= all.r.estimate.step_s * (1 - 1e-9));
        found_release (&fewer);
    }
    found_release (&all);
    topology_cluster_destroy (s.cluster);
}

static int axes_in_use (const struct workload_degrees *d)
{
    return (d->tp > 1) + (d->pp > 1) + (d->dp > 1) + (d->cp > 1) + (d->ep > 1) +
           (d->vpp > 1);
}

/* The simplest within the tie is never worse than the best by more than it, says what it
 * gives up, and no other that is as good has fewer axes. */
TEST (ties)
{
    struct rng rng = seeded (41);
    int simpler = 0, ordered = 0;

    for (int round = 0; round < 4; round++) {
        struct setting s = a_job (random_cluster (&rng, 3, 2, 1.2, 0, false, false));
        struct mapper_problem p = problem_for (&s, MAPPER_STEP);
        struct found best, tied;
        double tie = round % 2 ? 0.1 : 0.4;

        if (round >= 2) { /* ZeRO and sequence parallelism are left to choose */
            p.axes.tp = 2;
            p.axes.dp = 3;
        }
        assert_true (finds (&p, 0, &best));
        assert_true (finds (&p, tie, &tied));
        assert_true (tied.r.estimate.step_s <=
                     best.r.estimate.step_s * (1 + tie) * (1 + 1e-12));
        CLOSE (tied.r.estimate.step_s, best.r.estimate.step_s * (1 + tied.r.given_up),
               1e-9);
        assert_true (best.r.given_up < 1e-12);
        CLOSE (tied.r.lower_bound_s, best.r.lower_bound_s, 1e-12);
        assert_true (tied.r.ties >= 1 && tied.r.ties <= tied.info.placed);
        for (int k = 0; k < tied.r.n_top; k++) {
            const struct mapper_choice *c = &tied.r.top[k];

            assert_int_equal (c->tie, c->step_s <= tied.r.top[0].step_s *
                                                       (1 + tied.r.model_error));
            if (c->step_s <= tied.r.top[0].step_s * (1 + tie))
                assert_true (axes_in_use (&tied.r.config.deg) <=
                             axes_in_use (&c->config.deg));
        }
        simpler += tied.r.config.zero < best.r.config.zero ||
                   tied.r.config.sequence_parallel < best.r.config.sequence_parallel;
        /* The default order, where it is as good as the best. */
        if (tied.r.default_order_step_s <= best.r.estimate.step_s * (1 + tie)) {
            ordered++;
            CLOSE (tied.r.estimate.step_s, tied.r.default_order_step_s, 1e-12);
        }
        found_release (&best);
        found_release (&tied);
        topology_cluster_destroy (s.cluster);
    }
    assert_true (simpler > 0 && ordered > 0);
}
