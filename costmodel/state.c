/* A placement whose price follows its changes: an exchange reprices the stages it touches,
 * the boundaries beside them, and the pipelines whose times changed. */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct costmodel_state {
    struct terms t;
    struct costmodel_problem problem; /* of t, with the layers copied */
    struct workload_config config;
    struct scratch scratch;
    int n;
    int *layers, *gpu;
    struct slot_time *slot;    /* [dp * pp], replica-major */
    double *fwd_s, *back_s;    /* [dp * pp] */
    double *send_s, *return_s; /* [dp * pp] */
    double *end_s;             /* [dp * pp] */
    double *ab_s, *ba_s;       /* [dp] scratch of one boundary */
    double *sync_s;            /* [pp] */
    double *optimizer_s;       /* [pp] */
    double *work;
    int *slot_unmeasured; /* [pp], [pp], [pp] */
    int *boundary_unmeasured;
    int *sync_unmeasured;
    double tied_s;
    int tied_unmeasured;
    bool *stage_touched; /* [pp] */
    bool *replica_dirty; /* [dp] */
    struct costmodel_price price;
};

static enum status allocate (struct costmodel_state *s, struct error *err)
{
    const struct terms *t = &s->t;
    size_t pp = (size_t) t->pp, dp = (size_t) t->dp, cells = pp * dp;
    double *d =
        calloc (5 * cells + 2 * dp + 2 * pp + (size_t) pipeline_work (t), sizeof *d);

    s->fwd_s = d;
    s->slot = calloc (cells, sizeof *s->slot);
    s->slot_unmeasured = calloc (3 * pp, sizeof (int));
    s->stage_touched = calloc (pp, sizeof (bool));
    s->replica_dirty = calloc (dp, sizeof (bool));
    s->gpu = malloc ((size_t) s->n * sizeof (int));
    if (!d || !s->slot || !s->slot_unmeasured || !s->stage_touched || !s->replica_dirty ||
        !s->gpu)
        return err_nomem (err);
    s->back_s = d + cells;
    s->send_s = d + 2 * cells;
    s->return_s = d + 3 * cells;
    s->end_s = d + 4 * cells;
    s->ab_s = d + 5 * cells;
    s->ba_s = s->ab_s + dp;
    s->sync_s = s->ba_s + dp;
    s->optimizer_s = s->sync_s + pp;
    s->work = s->optimizer_s + pp;
    s->boundary_unmeasured = s->slot_unmeasured + pp;
    s->sync_unmeasured = s->slot_unmeasured + 2 * pp;
    return ST_OK;
}

/* Store one time; a change makes the replica's pipeline dirty. */
static void put (struct costmodel_state *s, double *at, int d, double value)
{
    if (*at != value) {
        *at = value;
        s->replica_dirty[d] = true;
    }
}

static void reprice_slots (struct costmodel_state *s, int stage)
{
    const struct terms *t = &s->t;
    int pp = t->pp;

    s->slot_unmeasured[stage] =
        stage_price (t, s->gpu, stage, &s->scratch, NULL, &s->slot[stage], pp);
    for (int d = 0; d < t->dp; d++) {
        const struct slot_time *slot = &s->slot[d * pp + stage];

        put (s, &s->fwd_s[d * pp + stage], d, slot->fwd_s);
        put (s, &s->back_s[d * pp + stage], d, slot->back_s);
    }
}

static void reprice_boundary (struct costmodel_state *s, int stage)
{
    const struct terms *t = &s->t;

    s->boundary_unmeasured[stage] =
        boundary_price (t, s->gpu, stage, (stage + 1) % t->pp, t->volume.p2p_bytes,
                        s->ab_s, s->ba_s, 1, &s->scratch, NULL, "pp");
    for (int d = 0; d < t->dp; d++) {
        put (s, &s->send_s[d * t->pp + stage], d, s->ab_s[d]);
        put (s, &s->return_s[d * t->pp + stage], d, s->ba_s[d]);
    }
}

static void reprice_tied (struct costmodel_state *s)
{
    const struct terms *t = &s->t;
    double worst = 0.0;

    s->tied_unmeasured = boundary_price (t, s->gpu, t->pp - 1, 0, t->volume.tied_bytes,
                                         s->ab_s, s->ba_s, 1, &s->scratch, NULL, "dp");
    for (int d = 0; d < t->dp; d++)
        worst = fmax (worst, fmax (s->ab_s[d], s->ba_s[d]));
    s->tied_s = worst;
}

static bool same_part (const struct costmodel_stage_time *a,
                       const struct costmodel_stage_time *b)
{
    return !(a->fwd_s < b->fwd_s || a->fwd_s > b->fwd_s || a->back_s < b->back_s ||
             a->back_s > b->back_s || a->weight_s < b->weight_s ||
             a->weight_s > b->weight_s);
}

/* Do two replicas take as long everywhere, as they do where links and GPUs are alike? */
static bool same_times (const struct costmodel_state *s, int a, int b)
{
    size_t pp = (size_t) s->t.pp, bytes = pp * sizeof (double);
    size_t x = (size_t) a * pp, y = (size_t) b * pp;
    bool same = memcmp (s->fwd_s + x, s->fwd_s + y, bytes) == 0 &&
                memcmp (s->back_s + x, s->back_s + y, bytes) == 0 &&
                memcmp (s->send_s + x, s->send_s + y, bytes) == 0 &&
                memcmp (s->return_s + x, s->return_s + y, bytes) == 0;

    for (size_t i = 0; i < pp && same; i++) {
        const struct slot_time *p = &s->slot[x + i], *q = &s->slot[y + i];

        same = same_part (&p->embedding, &q->embedding) &&
               same_part (&p->head, &q->head) &&
               !(p->weight_s < q->weight_s || p->weight_s > q->weight_s);
    }
    return same;
}

/* Play the pipelines of the dirty replicas, two at a time; those that are like the first of
 * them end when it does. */
static void play_dirty (struct costmodel_state *s)
{
    const struct terms *t = &s->t;
    int pp = t->pp, waiting = -1, first = -1;

    for (int d = 0; d < t->dp; d++) {
        if (!s->replica_dirty[d])
            continue;
        if (first < 0)
            first = d;
        else if (same_times (s, first, d))
            continue;
        s->replica_dirty[d] = false;
        if (waiting < 0) {
            waiting = d * pp;
            continue;
        }

        const struct slot_time *const slot[] = {s->slot + waiting, s->slot + d * pp};
        const double *const send_s[] = {s->send_s + waiting, s->send_s + d * pp};
        const double *const return_s[] = {s->return_s + waiting, s->return_s + d * pp};
        double *const end_s[] = {s->end_s + waiting, s->end_s + d * pp};

        pipeline_play_two (t, slot, send_s, return_s, end_s, s->work);
        waiting = -1;
    }
    if (waiting >= 0)
        pipeline_play (t, s->slot + waiting, s->send_s + waiting, s->return_s + waiting,
                       true, NULL, s->end_s + waiting, s->work);
    for (int d = 0; d < t->dp; d++)
        if (s->replica_dirty[d]) {
            memcpy (s->end_s + d * pp, s->end_s + first * pp,
                    (size_t) pp * sizeof (double));
            s->replica_dirty[d] = false;
        }
}

/* The largest end decides; the others count a little, so that a search sees a way where
 * the largest alone is flat. */
#define SMOOTH_WEIGHT 0.02

static void sum_up (struct costmodel_state *s)
{
    const struct terms *t = &s->t;
    struct costmodel_price price = {0};
    double others = 0.0;
    int pp = t->pp;

    for (int i = 0; i < pp; i++) {
        double end = 0.0, sum = 0.0, tail = s->sync_s[i] + s->optimizer_s[i];

        if (i == 0 || i == pp - 1)
            tail += s->tied_s;
        for (int d = 0; d < t->dp; d++) {
            end = fmax (end, s->end_s[d * pp + i]);
            sum += s->end_s[d * pp + i];
        }
        price.step_s = fmax (price.step_s, end + tail);
        others += sum / t->dp + tail;
        price.unmeasured += s->slot_unmeasured[i] + s->sync_unmeasured[i] +
                            (has_boundary (t, i) ? s->boundary_unmeasured[i] : 0);
    }
    price.unmeasured += s->tied_unmeasured;
    if (!isfinite (price.step_s))
        price.step_s = INFINITY;
    price.smooth_s = price.step_s + SMOOTH_WEIGHT * others / pp;
    s->price = price;
}

/* Reprice what the touched stages concern, and forget the touches. */
static void reprice (struct costmodel_state *s)
{
    const struct terms *t = &s->t;
    int pp = t->pp;

    for (int i = 0; i < pp; i++) {
        if (s->stage_touched[i]) {
            reprice_slots (s, i);
            s->sync_s[i] = exposed_price (
                t, s->gpu, i,
                sync_price (t, s->gpu, i, &s->scratch, NULL, &s->sync_unmeasured[i]),
                &s->slot[i], pp);
            s->optimizer_s[i] = optimizer_price (t, s->gpu, i);
        }
        if (has_boundary (t, i) &&
            (s->stage_touched[i] || s->stage_touched[(i + 1) % pp]))
            reprice_boundary (s, i);
    }
    if (t->volume.tied_bytes > 0 && (s->stage_touched[0] || s->stage_touched[pp - 1]))
        reprice_tied (s);
    memset (s->stage_touched, 0, (size_t) pp * sizeof *s->stage_touched);
    play_dirty (s);
    sum_up (s);
}

enum status costmodel_state_create (const struct costmodel_problem *p, const int *gpu,
                                    int n, struct costmodel_state **out,
                                    struct error *err)
{
    struct costmodel_state *s = calloc (1, sizeof *s);
    size_t pp = (size_t) p->config->deg.pp;
    enum status st = s ? ST_OK : err_nomem (err);

    if (st == ST_OK && !(s->layers = malloc (pp * sizeof (int))))
        st = err_nomem (err);
    if (st == ST_OK) {
        memcpy (s->layers, p->layers, pp * sizeof (int));
        s->config = *p->config;
        s->problem = *p;
        s->problem.layers = s->layers;
        s->problem.config = &s->config;
        s->n = n;
        st = terms_init (&s->t, &s->problem, err);
    }
    if (st == ST_OK)
        st = scratch_init (&s->scratch, &s->t, err);
    if (st == ST_OK)
        st = allocate (s, err);
    if (st != ST_OK) {
        costmodel_state_destroy (s);
        return st;
    }
    costmodel_state_reset (s, gpu);
    *out = s;
    return ST_OK;
}

void costmodel_state_destroy (struct costmodel_state *s)
{
    if (!s)
        return;
    terms_release (&s->t);
    scratch_release (&s->scratch);
    free (s->layers);
    free (s->gpu);
    free (s->slot);
    free (s->fwd_s);
    free (s->slot_unmeasured);
    free (s->stage_touched);
    free (s->replica_dirty);
    free (s);
}

void costmodel_state_reset (struct costmodel_state *s, const int *gpu)
{
    memcpy (s->gpu, gpu, (size_t) s->n * sizeof (int));
    memset (s->stage_touched, true, (size_t) s->t.pp * sizeof *s->stage_touched);
    memset (s->replica_dirty, true, (size_t) s->t.dp * sizeof *s->replica_dirty);
    reprice (s);
}

static void touch (struct costmodel_state *s, int position)
{
    if (position < s->t.world)
        s->stage_touched[position / (s->t.slot * s->t.dp)] = true;
}

void costmodel_state_exchange (struct costmodel_state *s, const int *a, const int *b,
                               int n)
{
    for (int k = 0; k < n; k++) {
        int x = s->gpu[a[k]];

        s->gpu[a[k]] = s->gpu[b[k]];
        s->gpu[b[k]] = x;
        touch (s, a[k]);
        touch (s, b[k]);
    }
    reprice (s);
}

struct costmodel_price costmodel_state_price (const struct costmodel_state *s)
{
    return s->price;
}

const int *costmodel_state_gpus (const struct costmodel_state *s)
{
    return s->gpu;
}
