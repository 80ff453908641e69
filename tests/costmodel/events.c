/* Whatever is played out, on random stages and links: an operation starts when its input has
 * arrived and its stage is free, neither before nor later, and takes what it was given; stages
 * that choose take what has arrived, backward before forward before weights' gradients; interleaved
 * stages go in Megatron's order.  All of it is read off the events alone. */
#include "tests/lib/fixture.h"

#include "costmodel/costmodel.h"

#define STAGES_MAX 8
#define CHUNKS_MAX 3
#define MICRO_MAX 24
#define EPS 1e-9

struct film {
    const struct costmodel_pipeline *p;
    enum workload_schedule s;
    struct costmodel_event event[STAGES_MAX][3 * CHUNKS_MAX * MICRO_MAX]; /* by stage */
    int n[STAGES_MAX];
    double end[3][STAGES_MAX * CHUNKS_MAX]
              [MICRO_MAX]; /* of virtual stages; by operation */
};

static void see (void *context, const struct costmodel_event *e)
{
    struct film *f = context;

    f->event[e->stage][f->n[e->stage]++] = *e;
}

/* Virtual stages go round, or down and up again. */
static int virtual_of (const struct film *f, int stage, int chunk)
{
    int p = f->p->stages;

    return chunk * p + (workload_schedule_is_v (f->s) && chunk ? p - 1 - stage : stage);
}

static int stage_of (const struct film *f, int k)
{
    int p = f->p->stages;

    return workload_schedule_is_v (f->s) && k >= p ? 2 * p - 1 - k : k % p;
}

/* Between neighbours, or round from the last stage to the first, of virtual stages. */
static double hop (const struct film *f, int from, int to)
{
    int a = stage_of (f, from), b = stage_of (f, to);

    if (a == b)
        return 0.0;
    if (workload_schedule_is_v (f->s) || abs (a - b) == 1)
        return a < b ? f->p->send_s[a] : f->p->return_s[b];
    return from < to ? f->p->send_s[a] : f->p->return_s[b];
}

/* When the input of a forward or backward of virtual stage k arrives. */
static double arrival (const struct film *f, enum workload_operation what, int k,
                       int micro)
{
    int all = f->p->stages * f->p->chunks;

    if (what == OPERATION_FORWARD)
        return k == 0 ? 0.0 : f->end[what][k - 1][micro] + hop (f, k - 1, k);
    if (k == all - 1)
        return f->end[OPERATION_FORWARD][k][micro];
    return fmax (f->end[OPERATION_FORWARD][k][micro],
                 f->end[what][k + 1][micro] + hop (f, k + 1, k));
}

/* What a stage is still busy with after an operation: what it sends, if it waits. */
static double sending (const struct film *f, const struct costmodel_event *e)
{
    int k = virtual_of (f, e->stage, e->chunk), all = f->p->stages * f->p->chunks;
    int next = e->what == OPERATION_FORWARD ? k + 1 : k - 1;

    if (!f->p->blocking || e->what == OPERATION_WEIGHTS || next < 0 || next >= all)
        return 0.0;
    return hop (f, k, next);
}

/* The i-th operation of a stage that chooses is what it should choose. */
static void check_choice (const struct film *f, int stage, int i, double idle_from)
{
    const struct costmodel_event *e = &f->event[stage][i];
    int done[3][CHUNKS_MAX] = {{0}}, held = 0;
    int limit = f->s == SCHEDULE_ZB1P ? f->p->stages : 2 * f->p->stages;
    double best[2] = {INFINITY, INFINITY}, first;
    bool weights = false;

    for (int j = 0; j < i; j++) {
        const struct costmodel_event *x = &f->event[stage][j];

        done[x->what][x->chunk]++;
        held += x->what == OPERATION_FORWARD;
        held -= x->what == OPERATION_WEIGHTS;
    }
    for (int c = 0; c < f->p->chunks; c++) {
        int k = virtual_of (f, stage, c), m = f->p->microbatches;
        int forward = done[OPERATION_FORWARD][c], back = done[OPERATION_BACKWARD][c];

        weights |= done[OPERATION_WEIGHTS][c] < back;
        if (back < forward)
            best[1] = fmin (best[1], arrival (f, OPERATION_BACKWARD, k, back));
        if (forward < m && held < limit - (c == 0 && f->p->chunks > 1))
            best[0] = fmin (best[0], arrival (f, OPERATION_FORWARD, k, forward));
    }
    first = fmax (idle_from, fmin (best[0], best[1]));
    if (e->what == OPERATION_WEIGHTS) {
        assert_true (first > idle_from - EPS && e->start_s <= idle_from + EPS);
        assert_true (first > e->start_s + EPS || fabs (first - idle_from) < EPS);
        return;
    }
    assert_true (!weights || first <= idle_from + EPS);
    assert_true (fabs (e->start_s - first) < EPS);
    if (e->what == OPERATION_FORWARD)
        assert_true (best[1] > first - EPS);
}

/* Megatron's interleaved order: groups of p micro-batches go through all chunks, backwards
 * the other way round, after 2 (p-1-stage) + (v-1) p forwards one of each in turns. */
static void check_megatron (const struct film *f, int stage)
{
    int p = f->p->stages, v = f->p->chunks, all = f->p->microbatches * v;
    int warm = 2 * (p - 1 - stage) + (v - 1) * p, did[2] = {0};

    warm = warm < all ? warm : all;
    for (int i = 0; i < 2 * all; i++) {
        const struct costmodel_event *e = &f->event[stage][i];
        bool forward = i < warm || (i < 2 * all - warm && (i - warm) % 2 == 0);
        int n = did[!forward]++, chunk = n / p % v;

        assert_int_equal (e->what, forward ? OPERATION_FORWARD : OPERATION_BACKWARD);
        assert_int_equal (e->chunk, forward ? chunk : v - 1 - chunk);
        assert_int_equal (e->micro, n / (p * v) * p + n % p);
    }
}

/* What an operation takes, as it was given. */
static double length (const struct film *f, const struct costmodel_event *e)
{
    int cell = e->chunk * f->p->stages + e->stage;

    if (e->what == OPERATION_FORWARD)
        return f->p->fwd_s[cell];
    if (e->what == OPERATION_WEIGHTS)
        return f->p->weight_s[cell];
    return f->p->back_s[cell] -
           (workload_schedule_splits_backward (f->s) ? f->p->weight_s[cell] : 0.0);
}

static void check (struct film *f)
{
    const struct costmodel_pipeline *p = f->p;
    bool chooses = workload_schedule_is_greedy (f->s);

    for (int i = 0; i < p->stages; i++)
        for (int j = 0; j < f->n[i]; j++) {
            const struct costmodel_event *e = &f->event[i][j];

            f->end[e->what][virtual_of (f, i, e->chunk)][e->micro] = e->end_s;
        }
    for (int i = 0; i < p->stages; i++) {
        double idle_from = 0.0;

        assert_int_equal (f->n[i], (workload_schedule_splits_backward (f->s) ? 3 : 2) *
                                       p->chunks * p->microbatches);
        for (int j = 0; j < f->n[i]; j++) {
            const struct costmodel_event *e = &f->event[i][j];
            int k = virtual_of (f, i, e->chunk);
            double input = e->what == OPERATION_WEIGHTS
                               ? f->end[OPERATION_BACKWARD][k][e->micro]
                               : arrival (f, e->what, k, e->micro);

            assert_true (fabs (e->end_s - e->start_s - length (f, e)) < EPS);
            assert_true (e->start_s >= input - EPS);
            assert_true (fabs (e->start_s - fmax (idle_from, input)) < EPS);
            if (chooses)
                check_choice (f, i, j, idle_from);
            idle_from = e->end_s + sending (f, e);
        }
        if (f->s == SCHEDULE_INTERLEAVED)
            check_megatron (f, i);
    }
}

static void random_times (struct rng *r, double *v, int n, double least, double most)
{
    for (int i = 0; i < n; i++)
        v[i] = least + (most - least) * rng_unit (r);
}

/* All but DualPipeV, whose operations are joined (tests/costmodel/schedule.c). */
TEST (random_films)
{
    static const enum workload_schedule all[] = {
        SCHEDULE_1F1B, SCHEDULE_GPIPE, SCHEDULE_INTERLEAVED, SCHEDULE_ZB1P,
        SCHEDULE_ZB2P, SCHEDULE_ZBV,   SCHEDULE_V_HALF,      SCHEDULE_V_MIN};
    static struct film f;
    struct rng r = {31};

    for (int round = 0; round < 8000; round++) {
        enum workload_schedule s = all[round % 8];
        int p = 2 + rng_below (&r, STAGES_MAX - 1);
        int v = s == SCHEDULE_INTERLEAVED ? 2 + rng_below (&r, CHUNKS_MAX - 1)
                                          : workload_default_vpp (s);
        int m = s == SCHEDULE_INTERLEAVED ? p * (1 + rng_below (&r, MICRO_MAX / p))
                                          : 1 + rng_below (&r, MICRO_MAX);
        double fwd[STAGES_MAX * CHUNKS_MAX], back[STAGES_MAX * CHUNKS_MAX],
            weight[STAGES_MAX * CHUNKS_MAX], there[STAGES_MAX], home[STAGES_MAX],
            end[STAGES_MAX], slow = rng_below (&r, 2) ? 0.1 : 2.0;
        struct costmodel_pipeline q = {
            p, m, v, fwd, back, weight, there, home, rng_below (&r, 3) == 0};
        struct costmodel_watch watch = {see, &f};

        random_times (&r, fwd, p * v, 0.5, 1.5);
        random_times (&r, weight, p * v, 0.5, 1.5);
        random_times (&r, back, p * v, 0.5, 1.5);
        for (int i = 0; i < p * v; i++)
            back[i] += weight[i];
        random_times (&r, there, p, 0, slow);
        random_times (&r, home, p, 0, slow);
        memset (&f, 0, sizeof f);
        f.p = &q;
        f.s = s;
        assert_true (costmodel_play (s, &q, false, end, &watch));
        check (&f);
        for (int i = 0; i < p; i++) {
            const struct costmodel_event *last = &f.event[i][f.n[i] - 1];

            CLOSE (end[i], last->end_s + sending (&f, last), 1e-12);
        }
    }
}
