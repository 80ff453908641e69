/* Many placements of one configuration, for searches. */
#ifndef COSTMODEL_STATE_H
#define COSTMODEL_STATE_H

#include "costmodel/costmodel.h"

/** A placement whose price follows its changes.
 *
 *  Positions 0..world-1 are the ranks, the others are idle GPUs.  Hidden, since the price
 *  is kept up to date part by part. */
struct costmodel_state;

/** @param[in] gpu    [n] distinct GPUs, n >= world; NULL: there is no price before a reset
 *  @param[out] out   destroy with costmodel_state_destroy
 *  @return ST_OK, ST_NOMEM, or ST_INVALID if a GPU type cannot run the precision */
enum status costmodel_state_create (const struct costmodel_problem *p, const int *gpu,
                                    int n, struct costmodel_state **out,
                                    struct error *err);
void costmodel_state_destroy (struct costmodel_state *s);

/** Place anew: gpu [n] as at creation. */
void costmodel_state_reset (struct costmodel_state *s, const int *gpu);

/** Exchange the GPUs at positions a[k] and b[k] for every k < n, one after the other, and
 *  reprice. */
void costmodel_state_exchange (struct costmodel_state *s, const int *a, const int *b,
                               int n);

/** Take the last exchange back, which had these arguments; nothing was done to the state
 *  since.  Cheaper than exchanging back, and the price is what it was to the bit. */
void costmodel_state_undo (struct costmodel_state *s, const int *a, const int *b, int n);

/** Give the stages other layers, [pp], dealt to their chunks, in the next reset, exchange
 *  (of none, too) or undo: who takes an exchange back that came with layers gives those
 *  back first that were before. */
void costmodel_state_layers (struct costmodel_state *s, const int *layers);

/** What the placement costs.  Compare unmeasured first: a link that nobody measured is
 *  used only when nothing else is possible. */
struct costmodel_price {
    int unmeasured;
    double step_s;   /* INFINITY when some link has no price */
    double smooth_s; /* step_s plus a little of every other replica's and stage's end: a
                        guide for searches where step_s alone is flat */
};

/** From now on prices need not be exact that use as many unmeasured links as `most` or more and
 *  whose step_s or smooth_s is above that of `most`: where that is seen before the pipelines are
 *  played, the price is what it is at least, and a reset or that exchange's undo comes next, or an
 *  exchange that is not undone.  At creation all are exact. */
void costmodel_state_limit (struct costmodel_state *s, struct costmodel_price most);

/** What a micro-batch takes on a stage's slowest slot, there and back.
 *  @param[out] end_s  of it the embedding's and the head's, whatever the layers */
double costmodel_state_stage_s (const struct costmodel_state *s, int stage,
                                double *end_s);

/** When would the step be over by a stage, if its synchronisation took no time, and how much
 *  compute can hide it?  Of a price that is exact. */
void costmodel_state_stage_end (const struct costmodel_state *s, int stage, double *end_s,
                                double *hides_s);

/** A step that no placement beats whose first `ranks` ranks are these, 1 or more: that of the last
 *  stage that they begin, of its whole replicas and expert groups among them.  0 by published
 *  models.  The placement in hand stays. */
double costmodel_state_begun_s (struct costmodel_state *s, const int *gpu, int ranks);

struct costmodel_price costmodel_state_price (const struct costmodel_state *s);

/** The placement: [n], owned by the state. */
const int *costmodel_state_gpus (const struct costmodel_state *s);

#endif
