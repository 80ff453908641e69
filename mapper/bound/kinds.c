/* The GPUs of all classes counted at once.
 *
 * A stage is of the kind of its slowest slot, whichever replica has it.  All replicas split
 * the layers alike and every row (rows.c) holds in each of them, so stage k's row is taken
 * in the replica where its slot is slowest, with all other stages at their best.  A stage's
 * tail waits for its slowest rank in any case.  So for a given end stage k holds at most
 * so many layers on each kind.
 *
 * Stages of classes 0..q have slots of these in all dp replicas, so there are at most
 *
 *     floor (slots of classes 0..q / dp)
 *
 * of them.  Of those that are on one node, each with all its slots, every node has what its
 * GPUs of these classes make; all others synchronise across nodes.  Both counts are nested and
 * slower stages hold no more, so each is a stock of units by kind of which every stage takes
 * one: an assignment.  While that holds fewer layers than the model has, the end is too early.
 * Stage 0's layers, kind and placement set its tail: each is tried. */
#include "mapper/bound/bound_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/extremes.h"
#include "base/memory.h"
#include "base/stats.h"
#include "mapper/bound/kinds.h"

#define NARROW 1e-4 /* part of the bound at which bisection ends */
#define FAR 4.0     /* times the bound so far at which it gives up */

/* GPUs of a stage. */
static int stage_gpus (const struct bounded *b)
{
    const struct workload_degrees *d = &b->c->deg;

    return d->tp * d->cp * d->dp;
}

static bool is_used (const struct kinds *x, int kind)
{
    return kind < x->classes || (kind == x->classes + ALONE && x->used[ALONE]);
}

/* The kinds of slots are below that. */
static int kinds_end (const struct kinds *x)
{
    return x->classes + ALONE + 1;
}

/* The most layers that stage k holds on a class. */
static int cap_of (const struct kinds *x, int class, int k)
{
    return x->kind[class].pipeline.cap[kinds_slot (x, class) * x->p + k];
}

/* ---- stages to units ---- */

static struct assignment assignment_of (const struct kinds *x, enum stock stock)
{
    size_t stages = (size_t) stock * (size_t) x->p;
    struct assignment a = {.kinds = x->classes + (stock == ALONE),
                           .first = x->p,
                           .p = x->p,
                           .most = x->most + stages * KINDS_MAX,
                           .of = x->of + stages};

    memcpy (a.left, x->units[stock], sizeof a.left);
    return a;
}

/* ---- can all end by then? ---- */

/* The most layers of stage k on each kind, in all stocks. */
static void find_most (const struct kinds *x, int k, int below,
                       const struct rows_times *then)
{
    double own[KINDS_MAX];

    for (int j = 0; j < x->classes; j++)
        own[j] = kinds_has_units (x, j) ? kinds_most_layers (x, j, k, below, then)
                                        : IMPOSSIBLE;
    for (enum stock i = BY_CLASS; i < STOCKS; i++) {
        double *most = x->most + ((size_t) i * (size_t) x->p + (size_t) k) * KINDS_MAX;
        double held = IMPOSSIBLE;

        if (x->used[i] && i == ALONE)
            most[x->classes] = held =
                kinds_most_layers (x, x->classes + ALONE, k, below, then);
        for (int j = x->classes - 1; j >= 0; j--)
            most[j] = held = larger (held, own[i == BY_MEMORY ? x->by_memory[j] : j]);
    }
}

/* The latest end of stage 0 with which the step ends by then, or a little later. */
static double end_for (const struct kinds *x, int kind, const struct first *first,
                       double step_s)
{
    const struct pipeline_case *rows = &x->kind[kind].rows;
    double end = step_s;

    for (int round = 0; round < 6 && first->layers > 0; round++)
        end = step_s - rows_tail_s (rows, 0, kinds_slot (x, kind), first->layers,
                                    rows->first, end);
    return end;
}

/* Does stage 0 itself end by then?  It is of its class and, maybe, across nodes. */
static bool first_ends (const struct kinds *x, const struct first *first, int below,
                        double end)
{
    int across = x->classes + ALONE;

    return rows_end_s (&x->kind[first->class].rows, 0, kinds_slot (x, first->class),
                       first->layers, below) <= end &&
           (!first->across ||
            rows_end_s (&x->kind[across].rows, 0, 1, first->layers, below) <= end);
}

/* The unit that stage 0 takes of a stock: of memory any that is enough may be its own, and the
 * last leaves most to others.  Below 0: there is none. */
static int unit_of_first (const struct kinds *x, const struct first *first,
                          enum stock stock)
{
    int unit = x->classes - 1;

    if (stock != BY_MEMORY)
        return stock == ALONE && first->across ? x->classes : first->class;
    while (unit >= 0 && cap_of (x, x->by_memory[unit], 0) < first->layers)
        unit--;
    return unit;
}

/* Give all other stages units, the last one first.  @return the layers that they hold in
 * every stock, negative where there are none */
static double held_by_others (const struct kinds *x, const struct first *first,
                              const struct rows_times *then)
{
    bool alone = first->layers > 0;
    struct assignment a[STOCKS];
    double below = 0.0;

    for (enum stock i = BY_CLASS; i < STOCKS; i++) {
        a[i] = assignment_of (x, i);
        if (x->used[i] && alone && !assign_unit (&a[i], unit_of_first (x, first, i)))
            return -1.0;
    }
    for (int k = x->p - 1; k >= alone && below >= 0.0; k--) {
        find_most (x, k, (int) below, then);
        below = INFINITY;
        for (enum stock i = BY_CLASS; i < STOCKS; i++)
            if (x->used[i])
                below = assign_next (&a[i]) ? smaller (below, a[i].held) : -1.0;
    }
    return below;
}

/* How many stages can be on several nodes, when all hold the layers that find_most left? */
static int most_across (struct kinds *x, const struct first *first)
{
    const double *most = x->most + (size_t) ALONE * (size_t) x->p * KINDS_MAX;
    double left = first->layers - x->x->times.layers;
    int alone = first->layers > 0, n = first->across, others = 0;

    for (int k = alone; k < x->p; k++) {
        const double *of_kind = most + k * KINDS_MAX;

        left += of_kind[0];
        x->loss[others++] = of_kind[0] - of_kind[x->classes];
    }
    stats_sort (x->loss, others);
    for (int i = 0; i < others && x->loss[i] <= left; i++, n++)
        left -= x->loss[i];
    return n;
}

/* Is a stage on several nodes where no TP group of it spans them? */
static bool has_rings (const struct bounded *b)
{
    return b->c->deg.dp * b->c->deg.cp > 1;
}

/* Does a stage that is on one node leave no room there for a slot of another? */
static bool fills_node (const struct bounded *b)
{
    const struct workload_degrees *d = &b->c->deg;
    int slot = d->tp * d->cp;

    return b->pool->max_node_gpus - slot * d->dp < slot;
}

/* Boundaries at which all slots of a stage that is on one node send to other nodes, at least,
 * when so many stages are on several: these have two each, and what shares a node one less than
 * it is.  A stage that fills its node leaves it at both. */
static int apart (const struct kinds *x, int across)
{
    int share = x->x->b.pool->max_node_gpus / stage_gpus (&x->x->b),
        alone = x->p - across;

    if (fills_node (&x->x->b))
        return x->p - (across > 1 ? across : 1);
    return x->p - 1 - 2 * across - (alone - (alone + share - 1) / share);
}

/* Put what is known of sends into all rows.  @return is it more than before? */
static bool put_sends (struct kinds *x, int n_apart)
{
    const struct bound_pipeline *any = &x->kind[0].pipeline;
    double sends =
        n_apart > 0 ? n_apart * x->apart_s + (x->p - 1 - n_apart) * any->any_s : 0.0;
    bool more = sends > x->kind[0].rows.row_sends_s;

    for (int j = 0; j < kinds_end (x); j++)
        if (is_used (x, j))
            x->kind[j].rows.row_sends_s = sends;
    return more;
}

/* The same with the sends that are known. */
static bool can_hold (struct kinds *x, const struct first *first,
                      const struct rows_times *then)
{
    int layers = x->x->times.layers;
    double below;

    kinds_put_above (x, then->end_s);
    if (!kinds_goes_around (x, first, then->end_s) ||
        (first->layers > 0 && !first_ends (x, first, layers, then->end_s)))
        return false;
    below = held_by_others (x, first, then);
    return below >= 0.0 && below + first->layers >= layers &&
           (first->layers == 0 || first_ends (x, first, (int) below, then->end_s)) &&
           kinds_share_ends (x, first, then);
}

/* Where stages must be on one node each, sends between them cross. */
static bool can_end (struct kinds *x, const struct first *first, double step_s)
{
    struct rows_times then = {end_for (x, first->class, first, step_s), step_s};

    if (first->across)
        then.end_s = smaller (then.end_s, end_for (x, x->classes + ALONE, first, step_s));
    put_sends (x, 0);
    do
        if (!can_hold (x, first, &then))
            return false;
    while (x->used[ALONE] && put_sends (x, apart (x, most_across (x, first))));
    return !x->roams || most_across (x, first) > fills_node (&x->x->b);
}

/* The least step with stage 0 so, between two, or a little less. */
static double least_step (struct kinds *x, const struct first *first, double lo,
                          double hi)
{
    if (!can_end (x, first, hi))
        return hi;
    while (hi - lo > NARROW * lo) {
        double mid = 0.5 * (lo + hi);

        if (can_end (x, first, mid))
            hi = mid;
        else
            lo = mid;
    }
    return lo;
}

/* ---- over all that stage 0 may be ---- */

/* The least step over stage 0's layers, between two: from the even split on, which leaves
 * little to try. */
static double least_over_layers (struct kinds *x, struct first first, double lo,
                                 double hi)
{
    const struct bound_pipeline *any = &x->kind[0].pipeline;
    int layers = any->model->layers, even = (layers / x->p - any->least) / any->unit;
    int most = (layers - x->p * any->least) / any->unit + 1;
    struct rows_times then = {hi, hi};
    double others; /* that all other stages hold at most, however few stage 0 has */

    first.layers = any->least;
    put_sends (x, 0);
    kinds_put_above (x, hi);
    others = held_by_others (x, &first, &then);
    for (int step = 0; step < most && hi > lo && others >= 0.0; step++) {
        first.layers = any->least + (even + step) % most * any->unit;
        if (first.layers <= cap_of (x, first.class, 0) && first.layers + others >= layers)
            hi = least_step (x, &first, lo, hi);
    }
    return hi;
}

/* Is there room for stage 0 on GPUs of classes 0..upto, and for its twins beside them? */
static bool has_room (const struct kinds *x, int upto)
{
    const struct pool *pool = x->x->b.pool;
    int room = 0;

    if (x->x->twins != TWINS_TOGETHER)
        return true;
    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *n = &pool->problem->cluster->node[pool->node[i]];
        int fast = 0;

        for (int g = n->first_gpu; g < n->first_gpu + n->gpus; g++)
            fast += pool->class_of_gpu[g] <= upto;
        room += fast < n->gpus / 2 ? fast : n->gpus / 2;
    }
    return room >= stage_gpus (&x->x->b);
}

/* Can stage 0 be of that class, with TP groups that span nodes or not, on several nodes or on one?
 */
static bool can_be_first (const struct kinds *x, int class, bool spans, bool across)
{
    int taken = stage_gpus (&x->x->b) * first_takes (x->x);
    bool may = !x->used[ALONE] ? !across
               : across        ? spans || has_rings (&x->x->b)
                               : !spans && taken <= x->x->b.pool->max_node_gpus;

    return may && has_room (x, class);
}

/* The same over its classes, on one node and on several. */
static double least_over_kinds (struct kinds *x, bool spans, double lo, double hi)
{
    for (int j = 0; j < x->classes; j++) {
        /* Is it the slowest of any stage?  Faster ones may be enough for all stages, and yet have
         * no room for stage 0 and its twins. */
        bool needed = kinds_has_units (x, j) || (j > 0 && !has_room (x, j - 1));

        for (int across = 0; across < 2 && hi > lo && needed; across++)
            if (can_be_first (x, j, spans, across == 1))
                hi = least_over_layers (
                    x, (struct first){.class = j, .across = across == 1}, lo, hi);
    }
    return hi;
}

/* The same over the ways to place stage 0. */
static double least_over_placings (struct kinds *x, double lo, double hi)
{
    struct stage_placing placing[PLACINGS_MAX];
    const struct bound_pipeline *any = &x->kind[0].pipeline;
    int n = rows_placings (any, any->first_span, placing);

    for (int i = 0; i < n && hi > lo; i++) {
        for (int j = 0; j < kinds_end (x); j++)
            if (is_used (x, j))
                rows_init (&x->kind[j].rows, &x->kind[j].pipeline, placing[i], NULL);
        if (workload_schedule_splits_backward (any->schedule))
            return least_step (x, &(struct first){.layers = 0}, lo, hi);
        hi = least_over_kinds (x, placing[i].span != SPAN_NONE, lo, hi);
    }
    return hi;
}

/* GPUs of the first classes by memory. */
static long gpus_by_memory (const struct kinds *x, int upto)
{
    const struct pool *pool = x->x->b.pool;
    long n = 0;

    for (int g = 0; g < pool->problem->cluster->n_gpus; g++)
        for (int j = 0; j <= upto; j++)
            n += pool->class_of_gpu[g] == x->by_memory[j];
    return n;
}

/* The stages of classes 0..upto that there can be at most. */
static int stages_of (const struct kinds *x, int upto, enum stock stock)
{
    const struct pool *pool = x->x->b.pool;
    int stage = stage_gpus (&x->x->b);
    long stages = stock == BY_CLASS ? pool_groups (pool, upto, 1) / stage
                  : stock == ALONE  ? pool_groups (pool, upto, stage)
                                    : gpus_by_memory (x, upto) / stage;

    return stages < x->p ? (int) stages : x->p;
}

/* Order the classes by what they hold.  @return is one that is slower before a faster one? */
static bool order_by_memory (struct kinds *x)
{
    long held[KINDS_MAX];
    bool roomier = false;

    for (int j = 0; j < x->classes; j++) {
        int at = j;

        held[j] = 0;
        for (int k = 0; k < x->p; k++) {
            held[j] += x->x->caps[j * x->p + k];
            roomier = roomier || (j > 0 && x->x->caps[j * x->p + k] >
                                               x->x->caps[(j - 1) * x->p + k]);
        }
        for (; at > 0 && held[x->by_memory[at - 1]] < held[j]; at--)
            x->by_memory[at] = x->by_memory[at - 1];
        x->by_memory[at] = j;
    }
    return roomier;
}

/* @return are there more than two classes, or stages that may be on one node each; or has stage
 * 0 to leave room for its twins; or is the tail of other stages known here alone? */
static bool find_units (struct kinds *x)
{
    const struct least_terms *t = x->x;
    int stage = stage_gpus (&t->b);
    bool tells = t->twins == TWINS_TOGETHER || !t->times.total_only || x->own_times;

    x->used[BY_CLASS] = true;
    x->used[ALONE] = stage > 1 && stage <= t->b.pool->max_node_gpus;
    x->used[BY_MEMORY] = order_by_memory (x);
    for (enum stock i = BY_CLASS; i < STOCKS; i++) {
        int some = 0, before = 0;

        for (int j = 0; j < x->classes && x->used[i]; j++) {
            int now = stages_of (x, j, i);

            x->units[i][j] = now - before;
            some += now > before;
            before = now;
        }
        x->units[i][x->classes] = i == ALONE ? x->p : 0;
        tells = tells || some > 2 || (i != BY_CLASS && x->used[i]);
    }
    return tells;
}

/* Synchronisation of a stage whose TP groups lie inside nodes, of which it has several, when
 * each of its GPUs takes so many of a node. */
static struct line sync_across (const struct least_terms *t, int taken)
{
    struct link_rates rates = link_rates_of (t->b.pool, 0);
    int n = workload_dense_shards (t->b.c), tp = t->b.c->deg.tp;
    int room = t->b.pool->max_node_gpus / (tp * taken);

    if (workload_shard_copies (t->b.c) > 1) /* each group may be on one of them */
        return least_sync_terms (&t->b, &rates, SPAN_NONE, taken);
    return bound_sync (&t->b, &rates, n, tp, room < n ? room : n - 1, room, tp);
}

/* The slots of a kind, and the times with them as the slow ones. */
static void find_slots (const struct kinds *x, int kind, struct slow_slots *slots,
                        struct config_times *times)
{
    const struct least_terms *t = x->x;

    if (kind >= x->classes) {
        *slots =
            (struct slow_slots){.alike = true, .from = x->classes, .tp_s = t->tp.least};
        config_times_put_sync (t, sync_across (t, 1), sync_across (t, first_takes (t)), 1,
                               SPAN_NONE, times);
    } else if (x->own_times) {
        slow_slots_of_class (t, kind, slots);
    } else {
        slow_slots_init (t, kind, false, slots);
    }
    slow_slots_put (t, slots, times);
}

/* All slots of a stage send at once, but to ranks that are in what it leaves of its node. */
static double apart_s (const struct bounded *b)
{
    const struct pool *pool = b->pool;
    int stage = stage_gpus (b), flows = stage;

    if (fills_node (b))
        flows -= pool->max_node_gpus - stage;
    return bound_flow_s (b,
                         fmin (pool->inter_bytes_per_s, pool->node_bytes_per_s / flows),
                         pool->inter_latency_s);
}

bool bound_apart_sends (const struct bounded *b, struct boundary_sends *sends)
{
    int stage = stage_gpus (b), most = b->pool->max_node_gpus;
    double any_s = bound_sends (b, 0.0, INFINITY).any_s, cross_s = 2.0 * apart_s (b);

    if (b->c->deg.pp == 1 || stage == 1 || stage > most || !(cross_s > any_s) ||
        !isfinite (cross_s))
        return false;
    *sends = fills_node (b)
                 ? (struct boundary_sends){cross_s, 0.0, 0.0}
                 : (struct boundary_sends){any_s, cross_s - any_s, most / stage};
    return true;
}

static void find_kinds (struct kinds *x)
{
    const struct least_terms *t = x->x;

    for (int j = 0; j < kinds_end (x); j++) {
        struct kind *kind = &x->kind[j];
        int *cap = x->cap + (size_t) j * 2 * (size_t) x->p;
        struct slow_slots slots = {0};

        if (!is_used (x, j))
            continue;
        kind->times = t->times;
        if (kinds_slot (x, j))
            find_slots (x, j, &slots, &kind->times);
        bound_caps (t->b.pool, x->p, j, j >= x->classes, t->caps, cap);
        for (int i = 0; i < 2 && j < x->classes; i++)
            memcpy (cap + i * x->p, t->caps + (size_t) j * (size_t) x->p,
                    (size_t) x->p * sizeof *cap);
        kind->pipeline =
            bound_pipeline_of (t, &kind->times, &slots, kinds_slot (x, j), cap);
        /* The replica in which a group spans, if it does; one slot must. */
        if (slots.alike) {
            kind->pipeline.slow = 0;
            kind->pipeline.span[SPAN_NONE] &= has_rings (&t->b);
        }
    }
}

/* The least step from `least` on: near it at first, which is quick where that is possible. */
static double least_from (struct kinds *x, double least, double most)
{
    double near = least * (1.0 + NARROW), bound = least_over_placings (x, least, near);

    return bound < near || near >= most
               ? bound
               : least_over_placings (x, near, smaller (most, least * FAR));
}

static double least_step_from (const struct least_terms *terms, bool roams, bool play,
                               double least, double most)
{
    size_t p = (size_t) terms->times.p;
    int classes = terms->b.pool->n_classes;
    size_t kinds = (size_t) classes + ALONE + 1;
    struct kinds *x;
    double bound = least;

    if (p == 1 || classes >= KINDS_MAX || !isfinite (least))
        return least;
    x = calloc (1, sizeof *x);
    if (!x)
        return least;
    x->x = terms;
    x->roams = roams;
    x->p = (int) p;
    x->classes = classes;
    x->own_times = terms->b.pool->by_links != NULL ||
                   bound_disorder_s (terms->b.pool, terms->b.c) > 0.0;
    if (find_units (x)) {
        x->cap = calloc ((3 * kinds + STOCKS) * p, sizeof *x->cap);
        x->most = malloc ((STOCKS * KINDS_MAX + 1 + kinds) * p * sizeof *x->most);
    }
    if (x->cap && x->most) {
        x->near = x->cap + 2 * kinds * p;
        x->of = x->near + kinds * p;
        x->loss = x->most + STOCKS * p * KINDS_MAX;
        x->above = terms->closer ? x->loss + p : NULL;
        x->apart_s = apart_s (&terms->b);
        find_kinds (x);
        kinds_share_init (x);
        bound = least_from (x, least, most);
        if (play && bound < most)
            bound = kinds_played (x, bound, most);
    }
    FREE_ALL (x->cap, x->most, x->own, x);
    return bound;
}

double bound_kinds (const struct least_terms *x, bool play, double least, double most)
{
    return least_step_from (x, false, play, least, most);
}

double bound_roams (const struct least_terms *x, double least)
{
    return least_step_from (x, true, false, least, INFINITY);
}
