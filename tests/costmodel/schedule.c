/* The schedules' recurrences equal an event simulation that knows only each stage's order
 * of operations and who waits for whom; skipping periods changes nothing. */
#include "tests/lib/fixture.h"

#include "costmodel/costmodel.h"

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
                clock[k] = fmax (clock[k], ready) + (o.forward ? q->fwd_s[k] : q->back_s[k]);
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

static void random_pipelines (void **state)
{
    struct rng r = {3};
    (void) state;

    for (int i = 0; i < 4000; i++) {
        int p = 1 + rng_below (&r, STAGES_MAX), m = 1 + rng_below (&r, i % 10 ? 40 : 400);
        double f[STAGES_MAX], b[STAGES_MAX], x[STAGES_MAX], y[STAGES_MAX], want[STAGES_MAX],
            got[STAGES_MAX], skipped[STAGES_MAX];
        struct costmodel_pipeline q = {p, m, f, b, x, y};
        enum workload_schedule s = rng_below (&r, 4) ? SCHEDULE_1F1B : SCHEDULE_GPIPE;
        double *work = malloc ((size_t) costmodel_schedule_work (p) * sizeof *work);

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
        for (int k = 0; k < p; k++) {
            CLOSE (got[k], want[k], 1e-12);
            CLOSE (skipped[k], want[k], 1e-11);
        }
        free (work);
    }
}

/* Equal stages, no sends: (m + p - 1)(F + B) for both schedules. */
static void closed_form (void **state)
{
    double f[8], b[8], zero[8] = {0}, end[8];
    double work[2 * 8 * 9];
    (void) state;

    for (int k = 0; k < 8; k++) {
        f[k] = 1;
        b[k] = 2;
    }
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m < 100; m += 7)
            for (int s = 0; s <= 1; s++) {
                struct costmodel_pipeline q = {p, m, f, b, zero, zero};

                costmodel_schedule ((enum workload_schedule) s, &q, true, end, work);
                CLOSE (end[0], 3.0 * (m + p - 1), 1e-12);
            }
}

/* With asynchronous sends the period of equal stages is C + 2x(p-1)/p: every p
 * micro-batches one round trip is exposed. */
static void period_of_equal_stages (void **state)
{
    double f[4] = {1, 1, 1, 1}, b[4] = {2, 2, 2, 2}, x[3] = {.1, .1, .1}, few[4], many[4];
    double work[2 * 4 * 5];
    struct costmodel_pipeline q = {4, 1000, f, b, x, x};
    (void) state;

    costmodel_schedule (SCHEDULE_1F1B, &q, true, few, work);
    q.microbatches = 2000;
    costmodel_schedule (SCHEDULE_1F1B, &q, true, many, work);
    CLOSE ((many[0] - few[0]) / 1000, 3 + 2 * .1 * 3 / 4, 1e-9);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (random_pipelines),
                                       cmocka_unit_test (closed_form),
                                       cmocka_unit_test (period_of_equal_stages)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
