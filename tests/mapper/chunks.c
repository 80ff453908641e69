/* Uneven chunks: no split of the layers and no placement is below a bound of any level, and the
 * search finds the best of all splits. */
#include "tests/lib/bounds.h"
#include "tests/lib/clusters.h"

/* Dense, or with experts behind or between other layers. */
static struct workload_model random_model (struct rng *r)
{
    struct workload_model m = small_model (5 + rng_below (r, 20));

    if (rng_below (r, 3) == 0)
        return m;
    m.experts = 8;
    m.top_k = 1 + rng_below (r, 3);
    m.expert_ffn = rng_below (r, 2) ? 256 : 4096;
    m.dense_layers = rng_below (r, 5);
    m.expert_every = 1 + rng_below (r, 2);
    return m;
}

static bool draw_uneven (struct rng *r, struct setting *s)
{
    struct workload_degrees *d = &s->config.deg;

    s->config = config_of (1 << rng_below (r, 2), 2 + rng_below (r, 4),
                           1 << rng_below (r, 2), 1 << rng_below (r, 2));
    s->config.schedule = SCHEDULE_INTERLEAVED;
    d->vpp = 2 + rng_below (r, 5);
    if (s->model.experts > 0)
        d->ep = 1 << rng_below (r, 2);
    s->config.zero = rng_below (r, 2);
    s->config.recompute = (enum workload_recompute) rng_below (r, 3);
    s->config.sequence_parallel = d->tp > 1 && rng_below (r, 2);
    return possible (s) && workload_layers_unit (&s->config, &s->profile) < d->vpp;
}

enum { LEVELS = BOUND_RUNS + 1 };

struct attack {
    struct setting *s;
    struct rng *r;
    double bound[LEVELS], best_s;
    int least, tried;
};

/* Every split of `left` layers over the stages from k on, each placed as in the file and at
 * random. */
static void attack_splits (struct attack *x, int k, int left)
{
    struct setting *s = x->s;
    int pp = s->config.deg.pp, gpu[64];

    for (int n = x->least; k < pp - 1 && n + (pp - 1 - k) * x->least <= left; n++) {
        s->layers[k] = n;
        attack_splits (x, k + 1, left - n);
    }
    if (k < pp - 1)
        return;
    s->layers[k] = left;
    x->tried++;
    in_file_order (gpu, s->cluster->n_gpus);
    for (int tries = 0; tries < 2; tries++) {
        double step = step_of (s, gpu, NULL);

        above (s, "by hand", gpu, step, LEVELS, x->bound);
        x->best_s = fmin (x->best_s, step);
        shuffle (x->r, gpu, s->cluster->n_gpus);
    }
}

/* On 8 GPUs every placement is priced: nothing tried here is better. */
static void finds_the_best (const struct attack *x, double *gap)
{
    struct mapper_problem p = search_config (x->s);
    struct mapper_settings settings = mapper_settings_default ();
    struct found o;

    p.memory_limit_pct = 1e9;
    settings.granularity = MAPPER_GPU;
    o = search (&p, &settings);
    assert_true (o.r.estimate.step_s <= x->best_s * (1 + 1e-9));
    *gap += o.r.estimate.step_s / o.r.lower_bound_s - 1;
    found_release (&o);
}

TEST (all_splits)
{
    struct rng r = seeded (91);
    int rounds = getenv ("LINKWISE_LONG") ? 500 : 60, empty = 0, tried = 0;
    double gap = 0.0;

    for (int round = 0; round < rounds; round++) {
        struct setting s = {
            .cluster = round % 2
                           ? random_cluster (&r, 2, 4, 5, 0, rng_below (&r, 2), false)
                           : cluster_of ("2x4 a100-sxm4-80g "
                                         "intra:200 inter:10"),
            .job = {.seq = 512},
            .profile = profile_of ("megatron-core")};
        struct mapper_problem p = unlimited (&s);
        struct attack x = {.s = &s, .r = &r, .best_s = INFINITY};
        struct pool pool;
        struct error err = {""};
        int unit;

        do {
            s.model = random_model (&r);
            s.job.global_batch = 1 + rng_below (&r, 48);
        } while (!draw_uneven (&r, &s));
        layer_units (&s, &x.least, &unit);
        empty += x.least < s.config.deg.vpp;
        ok (pool_init (&pool, &p, &err), &err);
        for (int level = 0; level < LEVELS; level++) {
            x.bound[level] = bound_of (&pool, &s.config, (enum bound_level) level);
            assert_true (level == 0 || level == BOUND_SPLITS ||
                         x.bound[level] >= x.bound[level - 1] * (1 - 1e-6));
        }
        pool_release (&pool);
        attack_splits (&x, 0, s.model.layers);
        tried += x.tried;
        finds_the_best (&x, &gap);
        topology_cluster_destroy (s.cluster);
    }
    print_message ("%d splits, mean gap %.2f %%\n", tried, 100 * gap / rounds);
    assert_true (empty > 0 && tried > 10 * rounds);
}

/* Llama 3.1 405B as published: 126 layers in 16 x 8 chunks, those of the last stages one
 * short. */
TEST (published_layout)
{
    struct setting s = {.cluster = cluster_of ("16x8 h100-sxm5-96g intra:370 inter:48"),
                        .model = model_of ("llama-3-405b"),
                        .job = {.seq = 8192, .global_batch = 16},
                        .profile = profile_of ("megatron-core"),
                        .config = config_of (8, 16, 1, 1)};
    struct mapper_problem p;
    struct found o;
    double even_s;

    s.config.schedule = SCHEDULE_INTERLEAVED;
    s.config.sequence_parallel = true;
    s.config.recompute = RECOMPUTE_FULL;
    s.config.deg.vpp = 7;
    p = search_config (&s);
    p.memory_limit_pct = 1e9; /* as many replicas share it */
    o = search (&p, NULL);
    even_s = o.r.estimate.step_s;
    found_release (&o);
    s.config.deg.vpp = 8;
    p.axes.vpp = 8;
    o = search (&p, NULL);
    for (int k = 0; k < 16; k++)
        assert_int_equal (o.r.layers[k], k < 14 ? 8 : 7);
    assert_true (o.r.estimate.step_s < 0.95 * even_s);
    found_release (&o);
    /* Only frameworks that run uneven chunks have them. */
    s.profile.uneven_chunks = false;
    assert_int_equal (try_search (&p, NULL, &o, &(struct error){""}), ST_INVALID);
    topology_cluster_destroy (s.cluster);
}
