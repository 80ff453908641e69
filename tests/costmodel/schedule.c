/* The schedules' recurrences equal an event simulation that knows only each stage's order
 * of operations and who waits for whom; skipping periods changes nothing. */
#include "tests/lib/fixture.h"

#include "costmodel/costmodel_private.h"

#define STAGES_MAX 12

struct op {
    bool forward;
    int micro;
};

/* Stage k's operations in order: 1F1B (Narayanan et al., arXiv 2104.04473) or GPipe. */
static int order_of (enum workload_schedule s, int p, int m, int k, struct op *op)
{
    int warm = p - 1 - k < m ? p - 1 - k : m, f = 0, b = 0, n = 0;

    if (s == SCHEDULE_GPIPE)
        warm = m;
    while (f < warm)
        op[n++] = (struct op){true, f++};
    while (f < m) {
        op[n++] = (struct op){true, f++};
        op[n++] = (struct op){false, b++};
    }
    while (b < m)
        op[n++] = (struct op){false, b++};
    return n;
}

/* Run every stage as far as its inputs allow, until all are done. */
static void simulate (enum workload_schedule s, const struct costmodel_pipeline *q,
                      double *end)
{
    int p = q->stages, m = q->microbatches, next[STAGES_MAX] = {0}, left = p * 2 * m;
    double *fwd = malloc ((size_t) (p * m) * sizeof *fwd),
           *back = malloc ((size_t) (p * m) * sizeof *back);
    struct op *op[STAGES_MAX];
    double clock[STAGES_MAX] = {0};

    for (int i = 0; i < p * m; i++)
        fwd[i] = back[i] = -1;
    for (int k = 0; k < p; k++) {
        op[k] = malloc (2 * (size_t) m * sizeof **op);
        assert_int_equal (order_of (s, p, m, k, op[k]), 2 * m);
    }
    while (left > 0) {
        int before = left;

        for (int k = 0; k < p; k++)
            while (next[k] < 2 * m) {
                struct op o = op[k][next[k]];
                double ready = 0;

                if (o.forward && k > 0)
                    ready = fwd[(k - 1) * m + o.micro] < 0
                                ? -1
                                : fwd[(k - 1) * m + o.micro] + q->send_s[k - 1];
                if (!o.forward && k < p - 1)
                    ready = back[(k + 1) * m + o.micro] < 0
                                ? -1
                                : back[(k + 1) * m + o.micro] + q->return_s[k];
                if (ready < 0)
                    break;
                clock[k] =
                    fmax (clock[k], ready) + (o.forward ? q->fwd_s[k] : q->back_s[k]);
                (o.forward ? fwd : back)[k * m + o.micro] = clock[k];
                next[k]++;
                left--;
            }
        assert_true (left < before); /* no deadlock */
    }
    for (int k = 0; k < p; k++) {
        end[k] = back[k * m + m - 1];
        free (op[k]);
    }
    free (fwd);
    free (back);
}

static void random_times (struct rng *r, double *v, int n, double least, double most)
{
    for (int i = 0; i < n; i++)
        v[i] = least + (most - least) * rng_unit (r);
}

TEST (random_pipelines)
{
    struct rng r = {3};

    for (int i = 0; i < 4000; i++) {
        int p = 1 + rng_below (&r, STAGES_MAX), m = 1 + rng_below (&r, i % 10 ? 40 : 400);
        double f[STAGES_MAX], b[STAGES_MAX], x[STAGES_MAX], y[STAGES_MAX],
            want[STAGES_MAX], got[STAGES_MAX], skipped[STAGES_MAX], played[STAGES_MAX];
        struct costmodel_pipeline q = {p, m, 1, f, b, NULL, x, y, false};
        enum workload_schedule s = rng_below (&r, 4) ? SCHEDULE_1F1B : SCHEDULE_GPIPE;
        double *work = malloc ((size_t) COSTMODEL_SCHEDULE_WORK (p, 1) * sizeof *work);

        random_times (&r, f, p, 0.5, 1.5);
        random_times (&r, b, p, 1.0, 3.0);
        random_times (&r, x, p, 0, rng_below (&r, 2) ? 0.1 : 2);
        random_times (&r, y, p, 0, rng_below (&r, 2) ? 0.1 : 2);
        if (rng_below (&r, 3) == 0) /* equal stages, the usual case */
            for (int k = 1; k < p; k++) {
                f[k] = f[0];
                b[k] = b[0];
            }
        simulate (s, &q, want);
        costmodel_schedule (s, &q, false, got, work);
        costmodel_schedule (s, &q, true, skipped, work);
        assert_true (costmodel_play (s, &q, false, played, NULL));
        for (int k = 0; k < p; k++) {
            CLOSE (got[k], want[k], 1e-12);
            CLOSE (skipped[k], want[k], 1e-11);
            CLOSE (played[k], want[k], 1e-12);
        }
        q.blocking = true;
        costmodel_schedule (s, &q, true, skipped, work);
        assert_true (costmodel_play (s, &q, false, played, NULL));
        for (int k = 0; k < p; k++)
            CLOSE (skipped[k], played[k], 1e-11);
        free (work);
    }
}

/* Times are of no unit: a power of two of all is in every digit that of the ends. */
TEST (no_unit)
{
    static const double factor[] = {0x1p-40, 0x1p30};

    for (int i = 0; i < 2 * (SCHEDULE_DUALPIPEV + 1); i++) {
        enum workload_schedule s = (enum workload_schedule) (i / 2);
        struct rng r = {37};
        double time[2][4][8], end[2][4]; /* forward, backward, of weights; sends */

        for (int j = 0; j < 8; j++) {
            for (int k = 0; k < 4; k++)
                time[0][k][j] = 1 + rng_unit (&r);
            time[0][1][j] += time[0][2][j];
            for (int k = 0; k < 4; k++)
                time[1][k][j] = factor[i % 2] * time[0][k][j];
        }
        for (int x = 0; x < 2; x++) {
            double *t[] = {time[x][0], time[x][1], time[x][2], time[x][3]};
            struct costmodel_pipeline q = {
                4, 16, workload_default_vpp (s), t[0], t[1], t[2], t[3], t[3] + 4, false};

            assert_true (costmodel_play (s, &q, false, end[x], NULL));
        }
        for (int j = 0; j < 4; j++)
            assert_true (end[1][j] == factor[i % 2] * end[0][j]);
    }
}

/* Skipping periods changes nothing, blocking or not, also where a link is not there. */
TEST (skipped)
{
    struct rng r = {5};

    for (int i = 0; i < 4000; i++) {
        int p = 1 + rng_below (&r, STAGES_MAX), m = 1 + rng_below (&r, i % 10 ? 40 : 400);
        double v[4][STAGES_MAX], all[STAGES_MAX], end[STAGES_MAX];
        double work[COSTMODEL_SCHEDULE_WORK (STAGES_MAX, 4)];
        struct costmodel_pipeline q = {
            p, m, 1, v[0], v[1], NULL, v[2], v[3], rng_below (&r, 4) == 0};
        enum workload_schedule s = rng_below (&r, 4) ? SCHEDULE_1F1B : SCHEDULE_GPIPE;

        for (int k = 0; k < 4; k++)
            random_times (&r, v[k], p, 0, rng_below (&r, 2) ? 0.1 : 2);
        if (rng_below (&r, 8) == 0)
            v[2][0] = INFINITY;
        costmodel_schedule (s, &q, false, all, work);
        costmodel_schedule (s, &q, true, end, work);
        for (int k = 0; k < p; k++)
            if (isfinite (all[k]))
                CLOSE (end[k], all[k], 1e-11);
            else
                assert_false (isfinite (end[k]));
    }
}

/* Equal stages, no sends: (m + p - 1)(F + B) for both schedules. */
TEST (closed_form)
{
    double f[8], b[8], zero[8] = {0}, end[8];
    double work[COSTMODEL_SCHEDULE_WORK (8, 4)];

    for (int k = 0; k < 8; k++) {
        f[k] = 1;
        b[k] = 2;
    }
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m < 100; m += 7)
            for (int s = 0; s <= 1; s++) {
                struct costmodel_pipeline q = {p, m, 1, f, b, NULL, zero, zero, false};

                costmodel_schedule ((enum workload_schedule) s, &q, true, end, work);
                CLOSE (end[0], 3.0 * (m + p - 1), 1e-12);
            }
}

/* With asynchronous sends the period of equal stages is C + 2x(p-1)/p: every p
 * micro-batches one round trip is exposed. */
TEST (period_of_equal_stages)
{
    double f[4] = {1, 1, 1, 1}, b[4] = {2, 2, 2, 2}, x[4] = {.1, .1, .1}, few[4], many[4];
    double work[COSTMODEL_SCHEDULE_WORK (4, 4)];
    struct costmodel_pipeline q = {4, 1000, 1, f, b, NULL, x, x, false};

    costmodel_schedule (SCHEDULE_1F1B, &q, true, few, work);
    q.microbatches = 2000;
    costmodel_schedule (SCHEDULE_1F1B, &q, true, many, work);
    CLOSE ((many[0] - few[0]) / 1000, 3 + 2 * .1 * 3 / 4, 1e-9);
}

/* Blocking sends: C + 2x a micro-batch for three stages or more, C + x for two. */
TEST (blocking_period)
{
    double f[5] = {1, 1, 1, 1, 1}, b[5] = {2, 2, 2, 2, 2}, x[5] = {.1, .1, .1, .1, .1};
    double few[5], many[5], work[COSTMODEL_SCHEDULE_WORK (5, 4)];

    for (int p = 2; p <= 5; p++) {
        struct costmodel_pipeline q = {p, 1000, 1, f, b, NULL, x, x, true};

        costmodel_schedule (SCHEDULE_1F1B, &q, true, few, work);
        q.microbatches = 2000;
        costmodel_schedule (SCHEDULE_1F1B, &q, true, many, work);
        CLOSE ((many[0] - few[0]) / 1000, p == 2 ? 3.1 : 3.2, 1e-9);
    }
}

/* What a watched pipeline did. */
struct seen {
    int count[STAGES_MAX][3], held[STAGES_MAX], peak[STAGES_MAX];
    int forwards_first[STAGES_MAX]; /* before the first backward */
    double last[STAGES_MAX];
    bool splits; /* memory is released by weights' gradients */
};

static void see (void *context, const struct costmodel_event *e)
{
    struct seen *s = context;

    assert_true (e->start_s >= s->last[e->stage] - 1e-9 && e->end_s >= e->start_s);
    s->last[e->stage] = e->end_s;
    s->count[e->stage][e->what]++;
    if (s->count[e->stage][OPERATION_BACKWARD] == 0)
        s->forwards_first[e->stage]++;
    if (e->what == OPERATION_FORWARD)
        s->held[e->stage]++;
    else if ((e->what == OPERATION_WEIGHTS) == s->splits)
        s->held[e->stage]--;
    if (s->held[e->stage] > s->peak[e->stage])
        s->peak[e->stage] = s->held[e->stage];
}

static double played (enum workload_schedule s, int p, int m, int v, struct seen *seen)
{
    double f[2 * STAGES_MAX * 4], b[2 * STAGES_MAX * 4], w[2 * STAGES_MAX * 4],
        zero[STAGES_MAX] = {0}, end[STAGES_MAX], last = 0;
    struct costmodel_pipeline q = {p, m, v, f, b, w, zero, zero, false};
    struct costmodel_watch watch = {see, seen};

    for (int i = 0; i < p * v; i++) {
        f[i] = w[i] = 1.0 / v;
        b[i] = 2.0 / v;
    }
    *seen = (struct seen){.splits = workload_schedule_splits_backward (s)};
    assert_true (costmodel_play (s, &q, false, end, &watch));
    for (int k = 0; k < p; k++)
        last = fmax (last, end[k]);
    return last;
}

/* Every stage does every operation once and in time, holds no more than the schedule
 * promises (memest's numbers), and waits as long as published: (p-1)/v of a micro-batch
 * when interleaved (arXiv 2104.04473, section 2.2.2); with F = B = W, and stages that
 * start when their input comes, a third to a half in ZB1P, a third in ZB2P, about a half
 * in V-Half and two thirds in V-Min (arXiv 2405.15362, table 1). */
TEST (other_schedules)
{
    static const struct {
        enum workload_schedule s;
        int v;
        double least, most; /* bubble, of (p-1) whole micro-batches */
        double held, per_p; /* chunks: held + per_p p */
    } known[] = {{SCHEDULE_INTERLEAVED, 2, .499, .501, -1, 3},
                 {SCHEDULE_INTERLEAVED, 4, .249, .251, -1, 5},
                 {SCHEDULE_ZB1P, 1, .32, .56, 0, 1},
                 {SCHEDULE_ZB2P, 1, .32, .34, 0, 2},
                 {SCHEDULE_ZBV, 2, .15, .26, 0, 2},
                 {SCHEDULE_V_HALF, 2, .5, .62, 3, 1},
                 {SCHEDULE_V_MIN, 2, .55, .69, 2.7, .667},
                 {SCHEDULE_DUALPIPEV, 2, .32, .34, 1, 2}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int p = 4; p <= STAGES_MAX; p += 4)
            for (int m = 4 * p; m <= 8 * p; m += 4 * p) {
                int v = known[i].v;
                struct seen seen;
                double t = played (known[i].s, p, m, v, &seen);
                double bubble = (t - 3.0 * m) / (3.0 * (p - 1));

                if (bubble < known[i].least || bubble > known[i].most)
                    fail_msg ("%s, %d stages, %d micro-batches: bubble %g",
                              workload_schedule_name (known[i].s), p, m, bubble);
                for (int k = 0; k < p; k++) {
                    int first = workload_forwards_first (known[i].s, p, v, m, k);

                    /* Orders that follow from the times may do fewer. */
                    assert_true (seen.forwards_first[k] <= first);
                    if (!workload_schedule_is_greedy (known[i].s))
                        assert_int_equal (seen.forwards_first[k], first);
                    for (int what = 0; what < 2 + seen.splits; what++)
                        assert_int_equal (seen.count[k][what], m * v);
                    if (seen.peak[k] > known[i].held + known[i].per_p * p + 1e-9)
                        fail_msg ("%s, %d stages: %d chunks on stage %d",
                                  workload_schedule_name (known[i].s), p, seen.peak[k],
                                  k);
                }
            }
}

/* Interleaved by its recurrence, with and without skipping, equals playing every operation
 * out. */
TEST (interleaved)
{
    struct rng r = {17};

    for (int round = 0; round < 3000; round++) {
        int p = 2 + rng_below (&r, STAGES_MAX - 1), v = 2 + rng_below (&r, 3);
        int m = p * (1 + rng_below (&r, round % 8 ? 6 : 60));
        double f[4 * STAGES_MAX], b[4 * STAGES_MAX], there[STAGES_MAX], back[STAGES_MAX];
        double played_end[STAGES_MAX], all[STAGES_MAX], skipped[STAGES_MAX];
        double work[COSTMODEL_SCHEDULE_WORK (STAGES_MAX, 4)];
        double slow = rng_below (&r, 3) ? 0.1 : 5.0;
        struct costmodel_pipeline q = {
            p, m, v, f, b, NULL, there, back, rng_below (&r, 3) == 0};
        bool even = rng_below (&r, 2);

        for (int i = 0; i < v * p; i++) {
            f[i] = even ? 1.0 : 0.5 + rng_unit (&r);
            b[i] = even ? 2.0 : 0.5 + 2.0 * rng_unit (&r);
        }
        for (int k = 0; k < p; k++) {
            there[k] = slow * rng_unit (&r);
            back[k] = slow * rng_unit (&r);
        }
        if (p == 2) { /* the way round is the one back */
            there[1] = back[0];
            back[1] = there[0];
        }
        assert_true (costmodel_play (SCHEDULE_INTERLEAVED, &q, false, played_end, NULL));
        costmodel_schedule (SCHEDULE_INTERLEAVED, &q, false, all, work);
        costmodel_schedule (SCHEDULE_INTERLEAVED, &q, true, skipped, work);
        for (int k = 0; k < p; k++) {
            CLOSE (all[k], played_end[k], 1e-12);
            CLOSE (skipped[k], played_end[k], 1e-9);
        }
    }
}

/* Patterns of slots by their recurrence equal playing every operation out, in every digit where
 * nothing is skipped. */
TEST (patterns)
{
    struct rng r = {29};

    for (int round = 0; round < 3000; round++) {
        enum workload_schedule s = round % 2 ? SCHEDULE_V_HALF : SCHEDULE_V_MIN;
        int p = 1 + rng_below (&r, STAGES_MAX);
        int m = 1 + rng_below (&r, round % 8 < 6 ? 60 : 400);
        double f[2 * STAGES_MAX], b[2 * STAGES_MAX], w[2 * STAGES_MAX];
        double there[STAGES_MAX], back[STAGES_MAX],
            work[COSTMODEL_SCHEDULE_WORK (STAGES_MAX, 2)];
        double want[STAGES_MAX], all[STAGES_MAX], skipped[STAGES_MAX];
        double slow = rng_below (&r, 3) ? 0.1 : 5.0;
        struct costmodel_pipeline q = {
            p, m, 2, f, b, w, there, back, rng_below (&r, 3) == 0};

        random_times (&r, f, 2 * p, 0.5, rng_below (&r, 2) ? 0.5 : 1.5);
        random_times (&r, w, 2 * p, 0.5, rng_below (&r, 2) ? 0.5 : 1.5);
        for (int i = 0; i < 2 * p; i++)
            b[i] = w[i] + 0.5 + rng_below (&r, 2) * rng_unit (&r);
        random_times (&r, there, p, 0, slow);
        random_times (&r, back, p, 0, slow);
        assert_true (costmodel_play (s, &q, false, want, NULL));
        assert_true (pattern_play (s, &q, false, all, work));
        costmodel_schedule (s, &q, true, skipped, work);
        for (int k = 0; k < p; k++) {
            assert_true (all[k] == want[k]);
            CLOSE (skipped[k], want[k], 1e-11);
        }
    }
}

/* Where the order follows from the times, skipping periods changes no digit. */
TEST (orders_by_time)
{
    static const enum workload_schedule greedy[] = {SCHEDULE_ZB1P, SCHEDULE_ZB2P,
                                                    SCHEDULE_ZBV};
    struct rng r = {31};

    for (int round = 0; round < 1500; round++) {
        enum workload_schedule s = greedy[round % 3];
        int p = 1 + rng_below (&r, STAGES_MAX), v = workload_default_vpp (s);
        int m = 1 + rng_below (&r, round % 8 < 6 ? 60 : 400);
        double f[2 * STAGES_MAX], b[2 * STAGES_MAX], w[2 * STAGES_MAX];
        double there[STAGES_MAX], back[STAGES_MAX],
            work[COSTMODEL_SCHEDULE_WORK (STAGES_MAX, 2)];
        double want[STAGES_MAX], skipped[STAGES_MAX];
        double slow = rng_below (&r, 3) ? 0.1 : 5.0;
        struct costmodel_pipeline q = {
            p, m, v, f, b, w, there, back, rng_below (&r, 3) == 0};

        random_times (&r, f, v * p, 0.5, rng_below (&r, 2) ? 0.5 : 1.5);
        random_times (&r, w, v * p, 0.5, rng_below (&r, 2) ? 0.5 : 1.5);
        for (int i = 0; i < v * p; i++)
            b[i] = w[i] + 0.5 + rng_below (&r, 2) * rng_unit (&r);
        random_times (&r, there, p, 0, slow);
        random_times (&r, back, p, 0, slow);
        costmodel_schedule (s, &q, false, want, work);
        costmodel_schedule (s, &q, true, skipped, work);
        assert_memory_equal (skipped, want, (size_t) p * sizeof *want);
    }
}

/* What is known of a pipeline without playing it is never above what it takes.  It is that where
 * stages are alike and sends take no time; of drawn ones it is near. */
TEST (known_at_least)
{
    static const enum workload_schedule schedules[] = {SCHEDULE_1F1B, SCHEDULE_GPIPE,
                                                       SCHEDULE_INTERLEAVED};
    struct rng r = {17}; /* so that these are the same each time */
    double near[] = {.951, .891, .929}, least[3] = {0}, played[3] = {0};

    for (int i = 0; i < 1500; i++) {
        int way = i % 3, p = 2 + rng_below (&r, 6), m = p * (1 + rng_below (&r, 4));
        bool alike = rng_below (&r, 3) == 0;
        struct setting s = small_job_as (cluster_of ("1x8 a100-sxm4-80g intra:300"),
                                         2 * p, 128, m, config_of (1, p, 1, 1));
        struct costmodel_problem q;
        struct terms t;
        struct replicas x;
        struct error err;
        double end[8];

        s.config.schedule = schedules[way];
        s.config.deg.vpp = workload_default_vpp (s.config.schedule);
        q = problem_of (&s);
        ok (terms_init (&t, &q, &err), &err);
        ok (replicas_init (&x, &t, &err), &err);
        for (int k = 0; k < p; k++) {
            x.slot[k].fwd_s = 1e-3 * (alike ? 1 : 0.5 + rng_unit (&r));
            x.slot[k].back_s = 1e-3 * (alike ? 2 : 0.5 + 2 * rng_unit (&r));
            x.send_s[k] = alike ? 0 : 2e-4 * rng_unit (&r);
            x.return_s[k] = alike ? 0 : 2e-4 * rng_unit (&r);
        }
        assert_true (pipeline_least (&t, x));
        memcpy (end, x.end_s, (size_t) p * sizeof *end);
        pipeline_play (&t, x, false, NULL);
        for (int k = 0; k < p; k++) {
            assert_true (end[k] <= x.end_s[k] * (1 + 1e-12));
            if (alike && way < 2)
                CLOSE (end[k], x.end_s[k], 1e-12);
            least[way] += alike ? 0 : end[k];
            played[way] += alike ? 0 : x.end_s[k];
        }
        replicas_release (&x);
        terms_release (&t);
        topology_cluster_destroy (s.cluster);
    }
    for (int way = 0; way < 3; way++)
        assert_true (least[way] > near[way] * played[way]);
}
