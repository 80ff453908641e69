/* Nodes of which some have bad links and some a slow GPU: with experts on 128, both come to the
 * stage whose layers were split for them, wherever the best start has them, whatever the seed. */
#include "mapper/place/place.h"
#include "tests/lib/clusters.h"
#include "tests/lib/search.h"

/* The step of an interleaved configuration, or of the best one.
 * @param[out] bound_s  of the same space */
static double step_on (const struct topology_synth *y, struct setting s, int chunks,
                       bool free_axes, uint64_t seed, double *bound_s)
{
    struct mapper_settings how = mapper_settings_default ();
    struct mapper_problem p;
    struct found f;
    double step;

    s.cluster = cluster_synthesized (y);
    s.config.deg.vpp = chunks;
    s.config.schedule = SCHEDULE_INTERLEAVED;
    s.config.sequence_parallel = s.config.deg.tp > 1;
    p = search_problem (&s);
    p.axes = free_axes ? mapper_axes_free () : mapper_axes_of (&s.config);
    how.seed = seed;
    f = search (&p, &how);
    step = f.r.estimate.step_s;
    *bound_s = f.r.lower_bound_s;
    found_release (&f);
    topology_cluster_destroy (s.cluster);
    return step;
}

/* What that is above the bound, as a share of it. */
static double beyond_bound (const struct topology_synth *y, struct setting s, int chunks,
                            uint64_t seed)
{
    double bound, step = step_on (y, s, chunks, false, seed, &bound);

    return step / bound - 1.0;
}

static struct topology_synth failing (int nodes, const char *type, uint64_t seed)
{
    struct topology_synth y = topology_synth_default ();

    y.preset = "failing";
    y.nodes = nodes;
    y.gpu_type = type;
    y.seed = seed;
    return y;
}

/* Of Mixtral on clusters of eight GPUs a node, a sequence for each. */
static double experts_on (const struct topology_synth *y, const char *profile, int tp,
                          int pp, int chunks, uint64_t seed)
{
    int gpus = 8 * y->nodes;
    struct setting s = {.model = model_of ("mixtral-8x7b"),
                        .job = {.seq = 4096, .global_batch = gpus},
                        .profile = profile_of (profile),
                        .config = config_of (tp, pp, gpus / pp / tp, 1)};

    s.config.deg.ep = 8;
    s.config.deg.etp = 1;
    return beyond_bound (y, s, chunks, seed);
}

static double experts_beyond (const char *type, const char *profile,
                              uint64_t cluster_seed, int tp, int chunks, uint64_t seed)
{
    struct topology_synth y = failing (128, type, cluster_seed);

    return experts_on (&y, profile, tp, 4, chunks, seed);
}

/* The node with the slow GPU was left in another stage than that split for it, and compute of the
 * slow stage hides more of its ring than a fast one's would. */
TEST (slow_gpu)
{
    for (uint64_t seed = 1; seed <= 3; seed += 2)
        assert_true (experts_beyond ("h100-sxm5-80g", "megatron-core-composed", 3, 1, 5,
                                     seed) < .05);
}

/* The best start has its stages in the order of classes. */
TEST (stages_by_class)
{
    for (uint64_t cluster = 1; cluster <= 5; cluster += 4)
        assert_true (experts_beyond ("a100-sxm4-80g", "megatron-core", cluster, 2, 3, 1) <
                     .1);
}

/* One of two stages has a slow GPU, and one a badly linked node: the same, or all wait for both,
 * which is told where what either takes is far from the plan. */
TEST (slow_gpu_and_bad_links)
{
    struct topology_synth y = failing (64, "h100-sxm5-80g", 1);

    assert_true (experts_on (&y, "megatron-core-composed", 1, 2, 8, 1) < .09);
}

/* Eight stages of uneven chunks have too many splits to play each out. */
TEST (many_splits)
{
    struct topology_synth y = failing (16, "h100-sxm5-80g", 1);
    struct setting s = {.model = model_of ("llama-3-70b"),
                        .job = {.seq = 4096, .global_batch = 64},
                        .profile = profile_of ("megatron-core"),
                        .config = config_of (4, 8, 4, 1)};

    s.config.recompute = RECOMPUTE_SELECTIVE;
    for (int chunks = 5; chunks <= 6; chunks++)
        assert_true (beyond_bound (&y, s, chunks, 1) < .01);
}

/* One configuration is best at the places of another one of its degrees, and its sketch is none of
 * the best. */
TEST (places_for_others)
{
    struct topology_synth y = failing (64, "h100-sxm5-80g", 1);
    struct setting s = {.model = model_of ("gpt-oss-20b"),
                        .job = {.seq = 4096, .global_batch = 256},
                        .profile = profile_of ("megatron-core-composed"),
                        .config = config_of (2, 4, 64, 1)};
    double bound;

    s.config.deg.ep = 8;
    s.config.deg.etp = 1;
    for (uint64_t seed = 2; seed <= (getenv ("LINKWISE_LONG") ? 4 : 2); seed++)
        assert_true (step_on (&y, s, 4, true, seed, &bound) <
                     1.005 * step_on (&y, s, 4, false, seed, &bound));
}

/* One placing without repetition, as most configurations of a search get: its step. */
static double placed_once (const struct pool *pool, const struct groups *g,
                           const struct workload_config *c, uint64_t seed)
{
    struct deadline never = {.until_s = INFINITY};
    struct effort effort = {
        .grid = 1, .exact = 1, .rival_s = INFINITY, .tries = 100, .deadline = &never};
    struct placed placed = {0};
    struct error err;
    double step;

    ok (place_config (pool, g, c, MAPPER_AUTO, effort, seed, &placed, &err), &err);
    step = placed.price.step_s;
    placed_release (&placed);
    return step;
}

/* Expert groups on four nodes each: their exchanges and both sorts of rings use no bad link,
 * whatever the seed. */
TEST (groups_on_several_nodes)
{
    struct topology_synth y = failing (128, "h100-sxm5-80g", 1);
    struct setting s = {.model = model_of ("gpt-oss-120b"),
                        .job = {.seq = 4096, .global_batch = 1024},
                        .profile = profile_of ("megatron-core-composed"),
                        .config = config_of (1, 4, 256, 1)};
    struct mapper_problem p;
    struct groups groups;
    struct pool pool;
    struct error err;
    double best = INFINITY, worst = 0.0;

    s.config.deg.ep = 32;
    s.config.deg.etp = 1;
    s.config.deg.vpp = 5;
    s.config.schedule = SCHEDULE_INTERLEAVED;
    s.cluster = cluster_synthesized (&y);
    p = search_problem (&s);
    ok (pool_init (&pool, &p, &err), &err);
    ok (groups_init (&groups, &pool, &s.config, &err), &err);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        double step = placed_once (&pool, &groups, &s.config, seed);

        best = fmin (best, step);
        worst = fmax (worst, step);
    }
    assert_true (worst < 1.02 * best);
    groups_release (&groups);
    pool_release (&pool);
    topology_cluster_destroy (s.cluster);
}
