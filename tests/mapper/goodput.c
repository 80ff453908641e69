/* Goodput against jobs that are played through their failures, and against limits that can be
 * written down. */
#include "tests/lib/fixture.h"

#define HOUR 3600.0

static const struct mapper_reliability usual = {50000 * HOUR, 60, 900, 24 * HOUR};

static double until_failure (struct rng *from, double mtbf_s)
{
    return -mtbf_s * log1p (-rng_unit (from));
}

/* The share of 200,000 lives that is kept with checkpoints every `every` seconds of training: each
 * begins with a restart and loses what came after its last checkpoint. */
static double kept_share (const struct mapper_reliability *r, double mtbf_s, double every)
{
    struct rng from = seeded (7);
    double all = 0, kept = 0;

    for (int i = 0; i < 200000; i++) {
        double life = until_failure (&from, mtbf_s);

        all += life;
        if (life > r->restart_s)
            kept += floor ((life - r->restart_s) / (every + r->checkpoint_s)) * every;
    }
    return kept / all;
}

/* What is saved is what a played job keeps, from a day between failures to twenty minutes; no other
 * interval saves more by over a thousandth. */
TEST (saved)
{
    static const double gpus[] = {2000, 16384, 150000};

    for (int i = 0; i < 3; i++) {
        struct mapper_goodput g = mapper_goodput (&usual, gpus[i], 0);

        CLOSE (g.mtbf_s, 50000 * HOUR / gpus[i], 1e-12);
        CLOSE (g.saved, kept_share (&usual, g.mtbf_s, g.checkpoint_every_s), .01);
        for (double part = .25; part < 4; part *= 1.1) {
            double t = part * g.checkpoint_every_s;

            assert_true (t / (g.mtbf_s * exp (usual.restart_s / g.mtbf_s) *
                              expm1 ((t + usual.checkpoint_s) / g.mtbf_s)) <
                         g.saved * 1.001);
        }
    }
}

/* The share of 300,000 failures' time that more nodes are in repair than there are spares: repairs
 * take what they take, and nothing fails while the job waits. */
static double waiting_share (double mtbf_s, double repair_s, int spares)
{
    struct rng from = seeded (11);
    double done[64], now = 0, waited = 0; /* when each repair is done, in order */
    int n = 0;

    for (int i = 0; i < 300000; i++) {
        now += until_failure (&from, mtbf_s);
        while (n > 0 && done[0] <= now)
            memmove (done, done + 1, (size_t) --n * sizeof *done);
        done[n++] = now + repair_s;
        if (n > spares) {
            waited += done[0] - now;
            now = done[0];
            memmove (done, done + 1, (size_t) --n * sizeof *done);
        }
    }
    return waited / now;
}

TEST (spares)
{
    double before = 1;

    for (int s = 0; s < 4; s++) {
        struct mapper_goodput g = mapper_goodput (&usual, 2000, s);

        CLOSE (g.waiting, waiting_share (g.mtbf_s, usual.repair_s, s), .06);
        CLOSE (g.share, g.saved * (1 - g.waiting), 1e-12);
        assert_true (g.waiting < before);
        before = g.waiting;
    }
    CLOSE (mapper_goodput (&usual, 2000, 0).waiting, .96 / 1.96, 1e-12);
}

/* Nothing that can be asked gives less than nothing, more than all, or no number. */
TEST (limits)
{
    static const double some[] = {1e-3, 1, 1e4, 1e9};

    for (int i = 0; i < 4 * 4 * 4 * 4; i++) {
        struct mapper_reliability r = {some[i % 4] * 10, some[i / 4 % 4],
                                       some[i / 16 % 4], some[i / 64]};
        struct mapper_goodput g = mapper_goodput (&r, 8, i % 3);

        assert_true (g.share > 0 && g.share <= 1 && g.saved >= 0 && g.saved <= 1);
        assert_true (g.checkpoint_every_s > 0 && g.waiting >= 0 && g.waiting <= 1);
    }
    struct mapper_goodput never =
        mapper_goodput (&(struct mapper_reliability){1e-300, 1, 1e7, 1e9}, 1e5, 1);

    assert_true (never.share > 0 && never.share < 1e-9 && never.waiting == 1);
}

/* A plan of fewer GPUs with spares wins where repairs take long; where they take nothing all GPUs
 * are used. */
TEST (objective)
{
    struct topology_cluster *c = cluster_of ("9x8 h100-sxm5-80g intra:400 inter:50");
    struct workload_config all = config_of (1, 1, 72, 1), most = config_of (1, 1, 64, 1);
    struct mapper_problem p = {.cluster = c, .objective = MAPPER_GOODPUT};

    p.reliability = (struct mapper_reliability){1000 * HOUR, 60, 600, 48 * HOUR};
    assert_int_equal (mapper_goodput_of (&p, 72).spares, 0);
    assert_int_equal (mapper_goodput_of (&p, 64).spares, 1);
    assert_int_equal (mapper_goodput_of (&p, 57).spares, 1);
    assert_true (mapper_weight (&p, &all) * 64 > mapper_weight (&p, &most) * 72);
    p.reliability.repair_s = 1;
    assert_true (mapper_weight (&p, &all) * 64 < mapper_weight (&p, &most) * 72);
    topology_cluster_destroy (c);
}
