/* A pipeline's case: what layers take on its slots, how its stages may be placed, and what a
 * stage's placing adds to a layer's work and after its end. */
#include "mapper/bound/rows.h"

#include <math.h>

#include "base/extremes.h"
#include "costmodel/prices.h"

#define NEVER_S 1e6 /* of a layer, in a way that cannot be */

static double of_layer (const struct bound_layer *l, enum part part)
{
    return part == FORWARD ? l->fwd_s : part == BACKWARD ? l->back_s : l->input_s;
}

/* Of a pattern: the mean of all layers, and what any of them in a row take less than theirs at
 * most. */
static struct layer_cost line_of_pattern (const struct workload_model *m,
                                          const struct bound_layer *kind, enum part part)
{
    struct layer_cost l = {.least_slope = INFINITY};
    double less = 0.0;

    for (int i = 0; i < m->layers; i++) {
        double s = of_layer (&kind[workload_kind_of (m, i)], part);

        l.slope += s / m->layers;
        l.least_slope = smaller (l.least_slope, s);
    }
    for (int i = 0; i < m->layers; i++) { /* of those that end with layer i */
        less = larger (0.0,
                       less + l.slope - of_layer (&kind[workload_kind_of (m, i)], part));
        l.slack = larger (l.slack, less);
    }
    return l;
}

static struct layer_cost line_of (const struct workload_model *m,
                                  const struct bound_layer *kind, enum part part)
{
    double d = of_layer (&kind[0], part), e = of_layer (&kind[1], part);

    if (m->pattern[0])
        return line_of_pattern (m, kind, part);
    return (struct layer_cost){.dense_s = d,
                               .expert_s = e,
                               .slope =
                                   m->experts == 0 ? d : d + (e - d) / m->expert_every,
                               .least_slope = smaller (d, e)};
}

/* What a layer takes at least more on a slow slot. */
static double least_more (const struct bound_pipeline *x, enum part part)
{
    double least = INFINITY;

    for (int kind = 0; kind < WORKLOAD_KINDS; kind++)
        least = smaller (least, of_layer (&x->slot[1].layer[kind], part) -
                                    of_layer (&x->slot[0].layer[kind], part));
    return x->slow > 0 ? larger (0.0, least) : 0.0;
}

int rows_placings (const struct bound_pipeline *x, const bool span[SPANS],
                   struct stage_placing out[PLACINGS_MAX])
{
    int n = 0;

    for (int k = 1; k <= SPANS; k++) {
        int i = k % SPANS; /* SPAN_NONE last */
        const struct bound_experts *ways = x->experts[i];
        int n_ways = x->n_experts[i];

        for (int w = 0; span[i] && w < n_ways; w++)
            out[n++] = (struct stage_placing){(enum tp_span) i, &ways[w]};
        if (span[i] && n_ways == 0)
            out[n++] = (struct stage_placing){(enum tp_span) i, NULL};
    }
    return n;
}

/* Are all layers of one kind? */
static bool are_alike (const struct workload_model *m)
{
    for (int i = 1; i < m->layers; i++)
        if (workload_kind_of (m, i) != workload_kind_of (m, 0))
            return false;
    return true;
}

bool rows_span (const struct bound_pipeline *x, struct stage_placing placing)
{
    return placing.span == SPAN_ALL ||
           (placing.span == SPAN_ONE && x->slow == 0 && !x->told);
}

bool rows_may_span (const struct bound_pipeline *x, int k, enum tp_span span)
{
    if (!x->has_few)
        return true;
    return k == x->few ? (span != SPAN_NONE) == x->few_spans
                       : span == SPAN_NONE || x->apart_s == 0.0;
}

void rows_init (struct pipeline_case *pc, const struct bound_pipeline *x,
                struct stage_placing first, int *work)
{
    const struct workload_model *m = x->model;

    *pc = (struct pipeline_case){.x = x,
                                 .alike = are_alike (m),
                                 .split = workload_schedule_splits_backward (x->schedule),
                                 .v_shaped = workload_schedule_is_v (x->schedule),
                                 .first = first,
                                 .spans = rows_span (x, first),
                                 .work = work};
    pc->n_placings = rows_placings (x, x->span, pc->placing);
    for (enum part part = 0; part < N_PARTS; part++) {
        for (int i = 0; i < m->layers; i++)
            pc->all_s[part] +=
                of_layer (&x->slot[0].layer[workload_kind_of (m, i)], part);
        for (int kind = 0; kind < 2; kind++)
            pc->part[kind][part] = line_of (m, x->slot[kind].layer, part);
        pc->more_s[part] = least_more (x, part);
    }
}

/* ---- what a placing adds ---- */

/* Is stage k on a badly linked node? */
static bool is_on (const struct bound_pipeline *x, int k)
{
    return x->has_on && k == x->on;
}

/* Has stage k few TP groups on some node? */
static bool has_few (const struct bound_pipeline *x, int k)
{
    return x->has_few && k == x->few && !x->few_spans;
}

/* Stage k's tail as a kind of slot has it. */
static const struct stage_tail *tail_on (const struct pipeline_case *pc, int k,
                                         const struct bound_slot *slot)
{
    return k == 0 ? &slot->first : k == pc->x->p - 1 ? &slot->last : &slot->other;
}

/* Of so many layers, those that are known to have experts: before stage k there is one of each
 * stage above it. */
static double with_experts (const struct bound_pipeline *x, int k, double layers)
{
    return larger (0.0, layers - larger (0.0, x->dense_first - k));
}

/* @param experts  layers that are known to have them */
static double sync_s (const struct stage_tail *t, enum slot_kind kind, double layers,
                      double experts, struct stage_placing placing)
{
    double sync = t->sync_fixed_s[placing.span] + layers * t->sync_layer_s[placing.span] +
                  experts * t->expert_sync_s[placing.span];

    if (placing.experts && experts > 0.0)
        sync += placing.experts->sync_fixed_s[kind] +
                experts * placing.experts->sync_layer_s[kind];
    return sync;
}

double rows_tail_under_s (const struct pipeline_case *pc, int k, int kind, double layers,
                          struct stage_placing placing, double under_s)
{
    const struct bound_pipeline *x = pc->x;
    const struct stage_tail *t = tail_on (pc, k, &x->slot[kind]);
    double experts = with_experts (x, k, layers), sync;

    /* The way is that of the rank on the needed node; others of the stage may have another. */
    if (is_on (x, k))
        sync = larger (
            sync_s (t, kind, layers, experts, (struct stage_placing){placing.span, NULL}),
            sync_s (tail_on (pc, k, &x->on_slot), ON_NEEDED, layers, experts, placing));
    else
        sync = sync_s (t, kind, layers, experts, placing);
    if (has_few (x, k))
        sync = larger (sync, sync_s (tail_on (pc, k, &x->few_slot), ANY_SLOT, layers,
                                     experts, placing));
    return t->fixed_s + layers * t->layer_s + experts * t->expert_s +
           larger (x->bare * sync,
                   costmodel_exposed_s (x->profile, sync, x->hides * under_s));
}

/* So late ends a stage at least whose slowest GPU is of a class: it does all micro-batches. */
static double end_of_class (const struct bound_pipeline *x, int class, double layers)
{
    return x->m * layers * x->hiding[class].least_s;
}

/* What hides the synchronisation of stage k that ends by then: a micro-batch's work, an m-th of the
 * end at most. */
static double most_hiding_s (const struct pipeline_case *pc, int k, double layers,
                             enum tp_span span, double end)
{
    const struct bound_pipeline *x = pc->x;
    bool head = k == (pc->v_shaped ? 0 : x->p - 1);
    double most = x->n_hiding[span] > 0 ? 0.0 : end / x->m;

    for (int q = 0; q < x->n_hiding[span]; q++) {
        const struct bound_hiding *h = &x->hiding[q];
        double work = h->fixed_s + layers * h->layer_s + (k == 0 ? h->embedding_s : 0.0) +
                      (head ? h->head_s : 0.0);

        if (end_of_class (x, q, layers) <= end)
            most = larger (most, smaller (end / x->m, work));
    }
    return most;
}

/* It may end later, too, so that slower GPUs hide more. */
double rows_tail_s (const struct pipeline_case *pc, int k, int kind, double layers,
                    struct stage_placing placing, double end)
{
    const struct bound_pipeline *x = pc->x;
    double least = rows_tail_under_s (pc, k, kind, layers, placing,
                                      most_hiding_s (pc, k, layers, placing.span, end));

    for (int q = 0; q < x->n_hiding[placing.span]; q++) {
        double later = end_of_class (x, q, layers);

        if (later > end && later - end < least)
            least = smaller (least,
                             later - end +
                                 rows_tail_under_s (
                                     pc, k, kind, layers, placing,
                                     most_hiding_s (pc, k, layers, placing.span, later)));
    }
    return least;
}

/* A group that spans nodes and the slow slots may be in different replicas.  For the slowest
 * exchange of a stage all its replicas wait. */
struct both_ways rows_layer_more (const struct pipeline_case *pc, int k, int kind,
                                  double layers, struct stage_placing placing)
{
    const struct bound_pipeline *x = pc->x;
    struct both_ways more = {0.0, 0.0};

    if (placing.experts && layers > 0.0) {
        double part = with_experts (x, k, layers) / layers;

        more = placing.experts->more[is_on (x, k) ? ON_NEEDED : kind];
        if (has_few (x, k) && placing.experts->many)
            more = (struct both_ways){NEVER_S, NEVER_S};
        else if (has_few (x, k))
            more = (struct both_ways){larger (more.fwd_s, placing.experts->few.fwd_s),
                                      larger (more.back_s, placing.experts->few.back_s)};
        more.fwd_s *= part;
        more.back_s *= part;
    }
    if (rows_span (x, placing)) {
        const struct bound_slot *s = &x->slot[kind];
        const struct stage_tail *t = k == 0 ? &s->first : &s->other;

        more.fwd_s += t->span.fwd_s;
        more.back_s += t->span.back_s;
    }
    return more;
}
