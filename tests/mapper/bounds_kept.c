/* The lower bounds of drawn problems are what they were.  A change of any of their terms shows
 * here, also one that leaves the bound true but lower, which no plan can tell.  Where it is meant,
 * the row that is printed is written anew: a lower figure is a weaker bound, a higher one must be
 * shown to be true by the tests beside this one. */
#include "tests/lib/bounds.h"

enum { LEVELS = BOUND_RUNS + 1 };

/* Means of the bounds' logarithms by level, from BOUND_WORK on. */
static const double known[SCHEDULES][LEVELS] = {
    {-1.600143921, -1.230931206, -1.184991499, -1.180135035, -1.179570269,
     -1.176056825}, /* 58 of 1f1b */
    {-1.660382972, -1.174799670, -1.144321192, -1.114673831, -1.114381241,
     -1.106720841}, /* 77 of gpipe */
    {-1.458245670, -1.082039212, -0.961730915, -0.945970062, -0.931622304,
     -0.927937474}, /* 27 of interleaved */
    {-1.647216240, -1.281747136, -1.224387495, -1.154989582, -1.154989582,
     -1.154989582}, /* 69 of zb1p */
    {-1.960121166, -1.547992838, -1.463798833, -1.320254313, -1.320254313,
     -1.320254313}, /* 58 of zb2p */
    {-2.197144276, -1.686864489, -1.498638888, -1.478444848, -1.477546581,
     -1.477546581}, /* 31 of zbv */
    {-2.140003080, -1.729909716, -1.522267331, -1.042198920, -0.909716786,
     -0.909716786}, /* 42 of v-half */
    {-2.058441625, -1.635915021, -1.463169913, -1.424101544, -1.423980307,
     -1.423980307}, /* 32 of v-min */
    {-1.574589590, -1.272710327, -1.136756251, -1.136698956, -1.136506739,
     -1.136506739}, /* 27 of dualpipev */
};

static struct setting drawn_setting (struct rng *r)
{
    static const char *const profiles[] = {"megatron-core", "megatron-deepspeed", "nemo",
                                           "torchtitan"};
    struct setting s = {
        .cluster =
            drawn_cluster (r, &(struct cluster_draw){.nodes = 2 + rng_below (r, 3),
                                                     .gpus = 2 << rng_below (r, 2),
                                                     .types = 1 + rng_below (r, 3),
                                                     .speeds = 4 * rng_below (r, 2),
                                                     .inside = {50, 300},
                                                     .between = {5, 40},
                                                     .totals = rng_below (r, 3) == 0}),
        .model = small_model (8 + 4 * rng_below (r, 4)),
        .job = {.seq = 512 << rng_below (r, 3), .global_batch = 8 << rng_below (r, 4)},
        .profile = profile_of (profiles[rng_below (r, 4)])};

    if (rng_below (r, 2)) {
        s.model.experts = 8;
        s.model.top_k = 2;
        s.model.expert_ffn = 1024;
        s.model.dense_layers = rng_below (r, 3);
    }
    s.model.mtp_layers = rng_below (r, 5) == 0;
    s.model.tied = rng_below (r, 3) == 0;
    draw_overlap (r, &s.profile);
    return s;
}

static void draw_config (struct rng *r, struct setting *s)
{
    struct workload_config *c = &s->config;

    *c = config_of (1 << rng_below (r, 3), 1 + rng_below (r, 4), 1 << rng_below (r, 3),
                    1 << rng_below (r, 2));
    c->schedule = (enum workload_schedule) rng_below (r, SCHEDULES);
    c->deg.vpp = workload_default_vpp (c->schedule);
    c->deg.cp = rng_below (r, 5) ? 1 : 2;
    c->deg.ep = s->model.experts && rng_below (r, 2) ? 2 : 1;
    c->zero = rng_below (r, c->deg.pp == 1 ? 4 : 2);
    if (c->zero > 0 && c->deg.dp % 2 == 0)
        c->shard = 2 * rng_below (r, 2);
    if (rng_below (r, 6) == 0)
        c->offload = OFFLOAD_OPTIMIZER;
    draw_recompute (r, s);
}

/* ... and of those of other people's models. */
static const double known_published[] = {-1.510767225, -1.643315591};

/* A bisection that another compiler's rounding ends a step earlier: 1e-4 of one of 25 bounds. */
#define ROUNDING 4e-6

/* Is the mean what it was?  If not, it is printed. */
static bool kept (const char *what, const double *sum, const double *were, int n, int of)
{
    bool same = true;

    for (int i = 0; i < n; i++)
        same = same && fabs (sum[i] / of - were[i]) < ROUNDING;
    if (!same) {
        print_message ("    {");
        for (int i = 0; i < n; i++)
            print_message ("%s%.9f", i ? ", " : "", sum[i] / of);
        print_message ("}, /* %d of %s */\n", of, what);
    }
    return same;
}

TEST (as_they_were)
{
    struct rng r = {31}; /* so that these are the same each time */
    double sum[SCHEDULES][LEVELS] = {{0}}, published[2] = {0};
    int n[SCHEDULES] = {0}, all = 0;
    bool same = true;

    for (int round = 0; round < 40; round++) {
        struct setting s = drawn_setting (&r);
        struct mapper_problem p = search_problem (&s);
        struct pool pool;
        struct error err = {""};

        if (rng_below (&r, 2)) /* some of the splits do not fit */
            p.memory_limit_pct = 3 + rng_below (&r, 12);
        ok (pool_init (&pool, &p, &err), &err);
        for (int i = 0; i < 40; i++) {
            double bound[LEVELS];

            draw_config (&r, &s);
            if (!possible (&s))
                continue;
            for (int k = 0; k < LEVELS; k++)
                bound[k] = bound_of (&pool, &s.config, (enum bound_level) k);
            if (!isfinite (bound[LEVELS - 1]))
                continue;
            n[s.config.schedule]++;
            for (int k = 0; k < LEVELS; k++)
                sum[s.config.schedule][k] += log (bound[k]);
            for (int k = 0; k < 2; k++) {
                p.cost_model = k ? COSTMODEL_PIPETTE : COSTMODEL_AMP;
                published[k] += log (bound_published (&pool, &s.config));
            }
            p.cost_model = COSTMODEL_CRITICAL_PATH;
        }
        pool_release (&pool);
        topology_cluster_destroy (s.cluster);
    }
    for (int k = 0; k < SCHEDULES; k++) {
        same = kept (workload_schedule_name ((enum workload_schedule) k), sum[k],
                     known[k], LEVELS, n[k]) &&
               same;
        all += n[k];
    }
    same = kept ("published", published, known_published, 2, all) && same;
    assert_true (same);
}
