/* What a placement takes at least of which only the first ranks are known, for searches that try
 * them one by one.
 *
 * Ranks follow each other stage by stage, so that the first replicas of the last stage are a
 * stage of fewer replicas.  More replicas share its links, add expert groups to wait for and are
 * slower or not: its slots take no less then, and all their micro-batches one after the other. */
#include "costmodel/state_private.h"

#include <math.h>

/* Of a stage that has so many replicas. */
static double least_of (struct terms *t, int stage, struct slot_time *slot)
{
    double most_s = 0.0;

    stage_price (t, stage, slot, 1);
    for (int d = 0; d < t->dp; d++)
        most_s = fmax (most_s, slot[d].fwd_s + slot[d].back_s);
    return t->microbatches * most_s + optimizer_price (t, stage);
}

double costmodel_state_begun_s (struct costmodel_state *s, const int *gpu, int ranks)
{
    struct terms *t = &s->t;
    int dp = t->dp, slots = ranks / t->slot, stage;
    double least_s;

    if (slots == 0 || s->problem.kind != COSTMODEL_CRITICAL_PATH)
        return 0.0;
    stage = (slots - 1) / dp;
    t->dp = s->config.deg.dp = slots - stage * dp;
    t->gpu = gpu + (size_t) stage * (size_t) (dp - t->dp) * (size_t) t->slot;
    least_s = least_of (t, stage, s->begun);
    t->dp = s->config.deg.dp = dp;
    t->gpu = s->gpu;
    return least_s;
}
