/* What a stage's placing adds: to a layer's work, and after its end. */
#include "mapper/bound/rows.h"

#include "base/extremes.h"
#include "costmodel/costmodel.h"

/* Is stage k on a badly linked node? */
static bool is_on (const struct bound_pipeline *x, int k)
{
    return x->has_on && k == x->on;
}

/* Stage k's tail as a kind of slot has it. */
static const struct stage_tail *tail_on (const struct pipeline_case *pc, int k,
                                         const struct bound_slot *slot)
{
    return k == 0 ? &slot->first : k == pc->x->p - 1 ? &slot->last : &slot->other;
}

static double sync_s (const struct stage_tail *t, enum slot_kind kind, double layers,
                      struct stage_placing placing)
{
    double sync = t->sync_fixed_s[placing.span] + layers * t->sync_layer_s[placing.span];

    if (placing.experts)
        sync += placing.experts->sync_fixed_s[kind] +
                layers * placing.experts->sync_layer_s[kind];
    return sync;
}

double rows_tail_under_s (const struct pipeline_case *pc, int k, int kind, double layers,
                          struct stage_placing placing, double under_s)
{
    const struct bound_pipeline *x = pc->x;
    const struct stage_tail *t = tail_on (pc, k, &x->slot[kind]);
    double sync;

    /* The way is that of the rank on the needed node; others of the stage may have another. */
    if (is_on (x, k))
        sync =
            larger (sync_s (t, kind, layers, (struct stage_placing){placing.span, NULL}),
                    sync_s (tail_on (pc, k, &x->on_slot), ON_NEEDED, layers, placing));
    else
        sync = sync_s (t, kind, layers, placing);
    return t->fixed_s + layers * t->layer_s +
           larger (x->bare * sync,
                   costmodel_exposed_s (x->profile, sync, x->hides * under_s));
}

/* A group that spans nodes and the slow slots may be in different replicas.  For the slowest
 * exchange of a stage all its replicas wait. */
struct both_ways rows_layer_more (const struct pipeline_case *pc, int k, int kind,
                                  struct stage_placing placing)
{
    const struct bound_pipeline *x = pc->x;
    struct both_ways more = {0.0, 0.0};

    if (placing.experts)
        more = placing.experts->more[is_on (x, k) ? ON_NEEDED : kind];
    if (rows_span (x, placing)) {
        const struct bound_slot *s = &x->slot[kind];
        const struct stage_tail *t = k == 0 ? &s->first : &s->other;

        more.fwd_s += t->span.fwd_s;
        more.back_s += t->span.back_s;
    }
    return more;
}
