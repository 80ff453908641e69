/* The lower bounds of drawn problems are what they were.  A change of any of their terms shows
 * here, also one that leaves the bound true but lower, which no plan can tell.  Where it is meant,
 * the row that is printed is written anew: a lower figure is a weaker bound, a higher one must be
 * shown to be true by the tests beside this one. */
#include "tests/lib/bounds.h"

enum { LEVELS = BOUND_RUNS + 1 };

/* Means of the bounds' logarithms by level, from BOUND_WORK on. */
static const double known[SCHEDULES][LEVELS] = {
    {-2.049259494, -1.590403758, -1.537721360, -1.526683799, -1.526683799,
     -1.526626724}, /* 73 of 1f1b */
    {-1.896442018, -1.474847790, -1.456071418, -1.418209879, -1.418209879,
     -1.418209879}, /* 92 of gpipe */
    {-2.175766169, -1.797617811, -1.715762195, -1.677192931, -1.658427202,
     -1.658427202}, /* 23 of interleaved */
    {-2.024265217, -1.635162319, -1.586794660, -1.503531945, -1.503531945,
     -1.503531945}, /* 96 of zb1p */
    {-1.935176256, -1.569981538, -1.523529774, -1.421913957, -1.421913957,
     -1.421913957}, /* 94 of zb2p */
    {-2.349728339, -1.903803027, -1.797295878, -1.761744981, -1.761650389,
     -1.761650389}, /* 51 of zbv */
    {-2.304494737, -1.851723512, -1.737764993, -1.660192927, -1.659964937,
     -1.659964937}, /* 43 of v-half */
    {-2.353771405, -1.907303513, -1.769094138, -1.714134542, -1.713459210,
     -1.713459210}, /* 51 of v-min */
    {-1.643912783, -1.306338715, -1.231763536, -1.217149413, -1.217102250,
     -1.217102250}, /* 34 of dualpipev */
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
    draw_recompute (r, s);
}

static void as_they_were (void **state)
{
    struct rng r = {31}; /* so that these are the same each time */
    double sum[SCHEDULES][LEVELS] = {{0}};
    int n[SCHEDULES] = {0};
    bool same = true;
    (void) state;

    for (int round = 0; round < 40; round++) {
        struct setting s = drawn_setting (&r);
        struct mapper_problem p = search_problem (&s);
        struct pool pool;
        struct error err = {""};

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
        }
        pool_release (&pool);
        topology_cluster_destroy (s.cluster);
    }
    for (int k = 0; k < SCHEDULES; k++) {
        bool row = true;

        for (int l = 0; l < LEVELS; l++)
            row = row && fabs (sum[k][l] / n[k] - known[k][l]) < 2e-9;
        if (!row) {
            print_message ("    {");
            for (int l = 0; l < LEVELS; l++)
                print_message ("%s%.9f", l ? ", " : "", sum[k][l] / n[k]);
            print_message ("}, /* %d of %s */\n", n[k],
                           workload_schedule_name ((enum workload_schedule) k));
        }
        same = same && row;
    }
    assert_true (same);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (as_they_were)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
