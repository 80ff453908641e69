/* Layers to stages by the lower bound (recursion.c; with chunks by_end.c), then
 * by the exact schedule: the bound's rows do not know all that stages wait for, so single
 * layers (one of every chunk where chunks hold as many each) are moved between stages, and slow
 * slots too, while that shortens the pipeline as it plays out with the best links. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "mapper/bound/bound_private.h"

#define PLAYED_CELLS 400000 /* stages x stages x chunks x schedules played, about */

/* A split in hand and room to play it out. */
struct hand {
    const struct bound_case *x;
    const struct bound_pipeline *all; /* tails of the stages after stage 0 */
    enum workload_schedule schedule;
    struct costmodel_pipeline pipeline;
    double *fwd_s, *back_s, *send_s, *end_s, *work;
    int *layers, *best_layers;
    bool *slow, *best_slow;
    long left; /* schedules that may still be played */
    double step_s;
};

/* Chunk c of stage k: its share of the stage, and embedding or head. */
static void set_chunk (struct hand *h, int c, int k, const struct stage_times *l)
{
    const struct config_times *times = h->x->times;
    const struct slot_times *s = &times->slot[h->slow[k]];
    int v = h->pipeline.chunks, at = c * times->p + k;
    bool spares = workload_spares_last (h->schedule, times->p, k);
    double layers = workload_chunk_layers (h->layers[k], v, c, spares),
           micro_s = s->micro_s * layers / h->layers[k];

    h->fwd_s[at] = micro_s + layers * l->layer_fwd_s;
    h->back_s[at] = micro_s + layers * l->layer_back_s;
    if (at == 0) {
        h->fwd_s[at] += s->embed_fwd_s;
        h->back_s[at] += s->embed_back_s;
    }
    if (at == times->p * v - 1) {
        h->fwd_s[at] += s->head_fwd_s;
        h->back_s[at] += s->head_back_s;
    }
}

/* What follows the end of a stage after stage 0. */
static double tail_s (const struct hand *h, int k)
{
    const struct stage_tail *t = &h->all->slot[h->slow[k]].other;
    double sync =
        t->sync_fixed_s[h->x->span] + h->layers[k] * t->sync_layer_s[h->x->span];
    double under = 0.0;

    for (int c = 0; c < h->pipeline.chunks; c++)
        under += h->fwd_s[c * h->x->times->p + k] + h->back_s[c * h->x->times->p + k];
    return t->fixed_s + h->layers[k] * t->layer_s +
           costmodel_exposed_s (h->x->times->profile, sync, h->x->times->hides * under);
}

static double play (struct hand *h)
{
    const struct config_times *times = h->x->times;
    int v = h->pipeline.chunks;
    double step;

    for (int k = 0; k < times->p; k++) {
        struct stage_times l = stage_times_of (h->x, k, h->slow[k]);

        for (int c = 0; c < v; c++)
            set_chunk (h, c, k, &l);
        if (k < times->p - 1)
            h->send_s[k] = fmax (0.5 * times->pair_s[h->slow[k]][h->slow[k + 1]],
                                 0.5 * (bound_run_sends_s (times, k + 2) -
                                        bound_run_sends_s (times, k + 1)));
    }
    h->left--;
    costmodel_schedule (h->schedule, &h->pipeline, true, h->end_s, h->work);
    step = h->end_s[0] + first_tail_s (h->x, h->layers[0], h->slow[0], 0.0);
    for (int k = 1; k < times->p; k++)
        step = fmax (step, h->end_s[k] + tail_s (h, k));
    return step;
}

static bool fits (const struct hand *h, int k)
{
    return h->layers[k] >= h->all->least &&
           h->layers[k] <= h->x->cap[h->slow[k] * h->x->times->p + k];
}

static bool better (struct hand *h)
{
    double step = play (h);

    if (!(step < h->step_s * (1.0 - 1e-9)))
        return false;
    h->step_s = step;
    return true;
}

/* Move a layer from one stage to another, or exchange their kinds of slots. */
static bool try_move (struct hand *h, int from, int to)
{
    int unit = h->all->unit;

    h->layers[from] -= unit;
    h->layers[to] += unit;
    if (fits (h, from) && fits (h, to) && better (h))
        return true;
    h->layers[from] += unit;
    h->layers[to] -= unit;
    if (h->slow[from] == h->slow[to])
        return false;
    for (int again = 0; again < 2; again++) {
        bool slow = h->slow[from];
        int layers = h->layers[from];

        h->slow[from] = h->slow[to];
        h->slow[to] = slow;
        h->layers[from] = h->layers[to];
        h->layers[to] = layers;
        if (again == 0 && fits (h, from) && fits (h, to) && better (h))
            return true;
    }
    return false;
}

static void better_split (struct hand *h)
{
    int p = h->x->times->p, still = 0;

    h->step_s = play (h);
    /* Until no pair of stages has anything to give. */
    for (int at = 0; still < p * p && h->left > 0; at = (at + 1) % (p * p)) {
        int from = at / p, to = at % p;

        still = from != to && try_move (h, from, to) ? 0 : still + 1;
    }
}

/* Put the stages of one kind of slot before those of the other. */
static void sort_kinds (struct hand *h, bool slow_first)
{
    int p = h->x->times->p;

    for (int i = 1; i < p; i++)
        for (int k = i; k > 0 && h->slow[k] == slow_first && h->slow[k - 1] != slow_first;
             k--) {
            int layers = h->layers[k];

            h->layers[k] = h->layers[k - 1];
            h->layers[k - 1] = layers;
            h->slow[k] = !h->slow[k];
            h->slow[k - 1] = !h->slow[k - 1];
        }
}

/* From the split in hand, and from the same with the slow slots at either end. */
static void better_splits (struct hand *h, int *layers, bool *slow)
{
    size_t p = (size_t) h->x->times->p;
    double best = INFINITY;
    long each = h->left / 3;

    for (int start = 0; start < (h->x->slow > 0 ? 3 : 1); start++) {
        bool legal = true;

        if (start > 0)
            sort_kinds (h, start == 1);
        for (int k = 0; k < h->x->times->p; k++)
            legal = legal && fits (h, k);
        if (!legal)
            continue;
        h->left = each;
        better_split (h);
        if (!(h->step_s < best))
            continue;
        best = h->step_s;
        memcpy (layers, h->layers, p * sizeof *layers);
        memcpy (slow, h->slow, p * sizeof *slow);
    }
    h->step_s = best;
}

/* As the split of a configuration: 1F1B where it puts weights' gradients off. */
static bool hand_init (struct hand *h, const struct bound_case *x,
                       const struct bound_pipeline *all, const struct workload_config *c)
{
    const struct config_times *times = x->times;
    size_t p = (size_t) times->p, v = (size_t) c->deg.vpp;
    double *room = malloc (
        (2 * v * p + 2 * p + (size_t) COSTMODEL_SCHEDULE_WORK (times->p, c->deg.vpp)) *
        sizeof (double));

    *h = (struct hand){.x = x,
                       .all = all,
                       .schedule = c->schedule,
                       .fwd_s = room,
                       .left = PLAYED_CELLS / (times->p * times->p * c->deg.vpp) + 50};
    if (workload_schedule_splits_backward (c->schedule))
        h->schedule = SCHEDULE_1F1B;
    h->layers = malloc (2 * p * sizeof (int));
    h->slow = malloc (2 * p * sizeof (bool));
    if (!room || !h->layers || !h->slow)
        return false;
    h->best_layers = h->layers + p;
    h->best_slow = h->slow + p;
    h->back_s = room + v * p;
    h->send_s = h->back_s + v * p;
    h->end_s = h->send_s + p;
    h->work = h->end_s + p;
    h->send_s[p - 1] =
        0.5 * (times->send.any_s + times->send.crossing_s); /* round to the first stage */
    h->pipeline =
        (struct costmodel_pipeline){.stages = times->p,
                                    .microbatches = times->m,
                                    .chunks = c->deg.vpp,
                                    .fwd_s = h->fwd_s,
                                    .back_s = h->back_s,
                                    .send_s = h->send_s,
                                    .return_s = h->send_s,
                                    .blocking = times->profile->time.blocking_sends};
    return true;
}

/* The best split of one division of the slots, when it is better than *step_s. */
static enum status
split_divided (const struct pool *pool, const struct workload_config *c,
               const struct bound_case *x, const struct bound_pipeline *all, int from,
               double *step_s, int *layers, int *class_of_stage, struct error *err)
{
    struct hand h;
    enum status st = hand_init (&h, x, all, c) ? ST_OK : err_nomem (err);
    double bound;

    if (st == ST_OK && c->deg.vpp > 1) {
        if (!bound_by_end_split (all, h.layers, h.slow))
            st = err_set (err, ST_NOFIT, "no split of the chunks was found");
    } else if (st == ST_OK)
        st = bound_least_split (x, &bound, h.layers, h.slow, err);
    if (st == ST_OK) {
        better_splits (&h, h.best_layers, h.best_slow);
        if (!isfinite (h.step_s))
            st = err_set (err, ST_NOFIT, "no split of the layers was found");
    }
    if (st == ST_OK) {
        for (int k = 0; k < c->deg.pp && h.step_s > *step_s; k++) {
            layers[k] = h.best_layers[k];
            class_of_stage[k] =
                h.best_slow[k] || x->slow == 0 ? pool->n_classes - 1 : from - 1;
        }
        *step_s = fmax (*step_s, h.step_s);
    }
    FREE_ALL (h.fwd_s, h.layers, h.slow);
    return st;
}

/* Stages of slow slots hold all slow nodes, badly linked ones too: those are in the ring of
 * their synchronisation. */
static void slow_rings (const struct pool *pool, int from, struct config_times *times,
                        struct bound_pipeline *all)
{
    double poor = 1.0;

    for (int i = 0; i < pool->n_nodes; i++)
        if (pool_node_class (pool, pool->node[i]) >= from)
            poor = fmax (poor, pool->poorness[i]);
    for (int span = 0; span < SPANS; span++) {
        times->sync_layer_s[1][span] *= poor;
        times->sync_fixed_s[1][span] *= poor;
        all->slot[1].other.sync_layer_s[span] *= poor;
        all->slot[1].other.sync_fixed_s[span] *= poor;
    }
}

enum status bound_split (const struct pool *pool, const struct workload_config *c,
                         bool by_class, const int *caps, int *layers, int *class_of_stage,
                         struct error *err)
{
    int *cap = malloc (2 * (size_t) c->deg.pp * sizeof (int));
    enum status st = cap ? ST_OK : err_nomem (err);
    double step_s = 0.0;

    /* The division that costs most decides; where none binds, none. */
    for (int from = by_class ? pool->n_classes - 1 : 0; st == ST_OK && from >= 0;
         from--) {
        struct config_times times;
        struct bound_case x = {.times = &times, .cap = cap};
        struct bound_pipeline all;

        x.slow = bound_divided (pool, c, from, cap, &times, &all);
        x.span = times.sync_fixed_s[0][SPAN_NONE] < INFINITY &&
                         c->deg.tp <= pool->max_node_gpus
                     ? SPAN_NONE
                     : SPAN_ALL;
        if ((x.slow == 0 && (from > 0 || step_s > 0.0)) || x.slow > c->deg.pp)
            continue;
        bound_caps (pool, c->deg.pp, from, false, caps, cap);
        if (x.slow > 0)
            slow_rings (pool, from, &times, &all);
        st =
            split_divided (pool, c, &x, &all, from, &step_s, layers, class_of_stage, err);
    }
    free (cap);
    if (st == ST_OK && !(step_s > 0.0))
        st = err_set (err, ST_NOFIT, "no split of the layers fits in memory");
    return st;
}
