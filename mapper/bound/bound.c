/* A lower bound of one configuration over every placement and every split of the layers.
 *
 * Every time is taken at its best (least.c), and GPUs of each class are counted.
 * Slots (one stage of one replica: TP x CP GPUs) are of two kinds: fast ones, whose TP
 * groups lie inside nodes and have no GPU slower than some class, and slow ones.  When the
 * fast slots are too few, some replica has at least
 *
 *     ceil ((slots needed - fast slots) / replicas)
 *
 * stages on slow slots, and the step is at least that replica's.  Every class that can
 * divide fast from slow is tried.  fractions.c and recursion.c have the pipeline
 * of 1F1B and GPipe, pipeline.c that of all schedules, which also tells layers with
 * experts from others.
 *
 * The step is at least the end of stage 0 plus its synchronisation and optimiser, which
 * grow with its layers.  A TP group may span nodes in a placement by hand, and then its
 * data-parallel groups see other links.  So the bound is the least of three cases (enum
 * tp_span):
 *
 * SPAN_NONE: stage 0's TP groups all lie inside nodes, so that the tp groups of its
 * synchronisation share a node's way out, with as many lanes as TP groups fit a node.
 *
 * SPAN_ONE: one of them spans nodes, and pays for that in every layer of stage 0 in
 * its replica.
 *
 * SPAN_ALL: the rings have more lanes than that.  Then a node has more ranks of one
 * TP index than groups fit it, of every index that it has, so it cannot have all: every TP
 * group of stage 0 spans.  How many lanes that leaves is not asked.
 */
#include "mapper/bound/bound_private.h"

#include <math.h>
#include <stdlib.h>

#define PAYS 1.005   /* times a bound: what a further one must be able to reach */
#define CLOSE 1.0005 /* the same where another is little work */
#define BY_ROWS 0.5  /* of the bound that is known: more by rows is played out too */
#define CLOSE_WORK 100000000L /* operations that are played out there */
#define CLOSE_GPUS 64         /* of a pool whose closest bounds are closer yet */
#define MOST_TOLD 16          /* stages that are told apart one by one */
#define TARGETS 3             /* steps that are asked for until one is told ... */
#define FAR 1.05              /* ... where more than that is left */
#define MOST_RUNS 64          /* of stages on a needed node that are told apart */

double bound_tail_s (const struct pool *pool, const struct workload_config *c)
{
    struct least_terms x;
    const struct config_times *times = &x.times;
    double sync;

    least_terms_init (pool, c, TWINS_ANY, &x);
    sync =
        times->sync_layer_s[0][isfinite (times->sync_fixed_s[0][SPAN_NONE]) ? SPAN_NONE
                                                                            : SPAN_ALL];
    return times->tail_layer_s[0] +
           fmax (0.0, sync - times->profile->time.dp_overlap * times->hides *
                                 (times->slot[0].fwd_s + times->slot[0].back_s));
}

/* In some replica at least so many stages are on slots that are not fast: that have a GPU
 * of class `from` or slower or, with `spans`, whose groups span nodes. */
static int slow_stages (const struct pool *pool, const struct workload_config *c,
                        int from, bool spans)
{
    const struct workload_degrees *d = &c->deg;
    long groups = spans ? pool_groups (pool, from - 1, d->tp)
                        : pool_groups (pool, from - 1, 1) / d->tp;
    long missing = (long) d->dp * d->pp - groups / d->cp;

    return missing > 0 ? (int) ((missing + d->dp - 1) / d->dp) : 0;
}

/* SPAN_NONE: the lowest over the ways to place stage 0's experts, or, where these are not
 * to be told apart, with every figure of them at its least. */
static double whole_groups (const struct least_terms *x, struct bound_case one,
                            double (*bound) (const struct bound_case *))
{
    const struct config_times *any = one.times;
    struct config_times times = *any;
    struct line all = least_experts_sync (x, x->expert_share, &x->ways[SPAN_NONE].least);
    double least = INFINITY;

    if (!(x->expert_share > 0.0) || !experts_told_apart (x, x->level > BOUND_FRACTIONS))
        return bound (&one);
    one.times = &times;
    for (int i = 0; i < x->ways[SPAN_NONE].n; i++) {
        const struct expert_way *w = &x->ways[SPAN_NONE].way[i];
        struct line sync = least_experts_sync (x, x->expert_share, w);
        struct both_ways more =
            least_exchanges_more (x, x->expert_share, w->exchange_s, x->exchange_s);

        for (int kind = 0; kind < 2; kind++) {
            times.sync_layer_s[kind][SPAN_NONE] =
                any->sync_layer_s[kind][SPAN_NONE] + sync.each - all.each;
            times.sync_fixed_s[kind][SPAN_NONE] =
                any->sync_fixed_s[kind][SPAN_NONE] + sync.fixed - all.fixed;
        }
        times.first_fwd_s = more.fwd_s;
        times.first_back_s = more.back_s;
        least = fmin (least, bound (&one));
    }
    return least;
}

/* The lowest of the three cases. */
static double any_way (const struct least_terms *x, const struct config_times *times,
                       int slow)
{
    double (*bound) (const struct bound_case *) = x->level == BOUND_FRACTIONS
                                                      ? bound_fractions
                                                  : x->level == BOUND_RUNS ? bound_runs
                                                                           : bound_splits;
    struct bound_case one = {.times = times,
                             .span = SPAN_NONE,
                             .cap = x->cap,
                             .slow = slow,
                             .known_s = x->known_s};
    int tp = x->b.c->deg.tp;
    bool can_span = tp > 1 && isfinite (times->span_fwd_s[0]);
    bool inside = tp * first_takes (x) <= x->b.pool->max_node_gpus;
    double least = inside ? whole_groups (x, one, bound) : INFINITY;
    struct config_times apart = *times;

    /* A group that spans may save crossings, and what it costs counts here. */
    apart.send.crossing_s = apart.send.per_node = 0.0;
    /* The group that spans and the slow slots may be in different replicas.  Where groups
     * do not share what a node reaches, SPAN_ONE is SPAN_NONE and more. */
    if (inside && can_span &&
        (x->span_helps ||
         times->sync_fixed_s[0][SPAN_ONE] < times->sync_fixed_s[0][SPAN_NONE] ||
         times->sync_layer_s[0][SPAN_ONE] < times->sync_layer_s[0][SPAN_NONE])) {
        one.span = SPAN_ONE;
        one.spans_here = slow == 0;
        one.times = one.spans_here ? &apart : times;
        least = fmin (least, bound (&one));
    }
    if (!can_span)
        return least;
    one.times = &apart;
    one.span = SPAN_ALL;
    one.spans_here = true;
    return fmin (least, bound (&one));
}

/* The higher of the bounds that serve.  That of all schedules is the only one of most; it
 * also tells layers with experts from others, and can stop at a bound that is known. */
static double higher_bound (const struct least_terms *x, const struct config_times *times,
                            const struct slow_slots *slots, int slow)
{
    bool experts = experts_told_apart (x, x->level > BOUND_FRACTIONS);
    /* Stage 0's way would be counted beside what its slot has of such exchanges. */
    bool apart = experts && slots && slots->spans;
    bool known = x->on || x->few || apart || (slots && slots->known_s > 0.0);
    double bound = 0.0;

    if (times->total_only || !pool_layers_alike (x->b.pool) || known || experts)
        bound = bound_any_schedule (x, times, slots, slow);
    if (!times->total_only && !known && bound < x->most_s)
        bound = fmax (bound, any_way (x, times, slow));
    return bound;
}

/* The bound when some replica has so many stages on slow slots. */
static double bound_with_slots (const struct least_terms *x,
                                const struct slow_slots *slots, int slow)
{
    bool by_class = slots->slower && !slots->spans;
    struct config_times times = x->times;

    slow_slots_put (x, slots, &times);
    if (slots->on)
        needed_node_put (x, slots->on, &times);
    if (x->caps)
        bound_caps (x->b.pool, times.p, slots->from, !by_class, x->caps, x->cap);
    return higher_bound (x, &times, slots, slow);
}

/* The bound when slots are fast or slow by class `from`; 0 when it tells nothing. */
static double divided_bound (const struct least_terms *x, int from, bool spans)
{
    const struct pool *pool = x->b.pool;
    const struct workload_config *c = x->b.c;
    int slow = slow_stages (pool, c, from, spans);
    struct slow_slots slots;

    if (slow == 0)
        return 0.0;
    if (slow > c->deg.pp || (!spans && from == pool->n_classes))
        return INFINITY; /* fewer GPUs than ranks */
    slow_slots_init (x, from, spans, &slots);
    return bound_with_slots (x, &slots, slow);
}

/* Are the stages that may be on one node few enough to be tried? */
static bool runs_are_few (const struct least_terms *x)
{
    int p = x->times.p, most = x->b.pool->max_node_gpus / x->b.c->deg.tp;

    return x->level >= BOUND_PLAYED && x->b.c->deg.vpp > 1 && p > 1 &&
           p * (most < p ? most : p) <= MOST_RUNS;
}

/* The bound when some replica has TP groups of those stages on a badly linked node, and of no
 * others. */
static double run_bound (const struct least_terms *x, const struct slow_slots *on)
{
    struct slow_slots slots = *on;
    struct needed_node node;

    slots.on = &node;
    return bound_needed_node (x, slots.run, &node)
               ? bound_with_slots (x, &slots, slots.run)
               : 0.0;
}

/* The least over the stages that may be there.  Those that are make runs, of which each alone
 * costs no more: a run's ends are boundaries to stages elsewhere. */
static double least_run_bound (const struct least_terms *x, const struct slow_slots *on)
{
    int p = x->times.p, most = x->b.pool->max_node_gpus / x->b.c->deg.tp;
    struct slow_slots slots = *on;
    double least = INFINITY;

    for (slots.run = most < p ? most : p; slots.run > 0; slots.run--)
        for (slots.run_first = 0;
             slots.run_first < (slots.run < p ? p : 1) && least > on->known_s;
             slots.run_first++)
            least = fmin (least, run_bound (x, &slots));
    return least;
}

/* The bound of any stage that has a TP group which spans nodes. */
static double spanning_bound (const struct least_terms *x, double known)
{
    struct slow_slots spans;

    if (x->b.c->deg.tp == 1 || !isfinite (x->tp.across))
        return INFINITY;
    slow_slots_init (x, x->b.pool->n_classes, true, &spans);
    spans.known_s = known;
    return bound_with_slots (x, &spans, 1);
}

/* The bound by a badly linked node that is needed: some replica has a TP group on it, or one
 * that spans nodes.  @return `known`, a bound, or more */
static double needed_bound (const struct least_terms *x, double known)
{
    double bound;
    struct needed_node node;
    struct slow_slots on = {.on = &node,
                            .alike = true,
                            .known_s = known,
                            .from = x->b.pool->n_classes,
                            .tp_s = x->tp.least};

    if (!(known > 0.0) || !isfinite (known) || !bound_needed_node (x, 1, &node))
        return known;
    bound = spanning_bound (x, known);
    if (bound > known && x->b.c->deg.tp <= x->b.pool->max_node_gpus)
        bound = fmin (bound, runs_are_few (x) ? least_run_bound (x, &on)
                                              : bound_with_slots (x, &on, 1));
    return fmax (bound, known);
}

/* The highest of all ways to divide slots into fast and slow ones. */
static double highest_divided (const struct least_terms *x)
{
    const struct pool *pool = x->b.pool;
    const struct workload_config *c = x->b.c;
    double most = 0.0;

    for (int from = 1; from <= pool->n_classes && most < x->most_s; from++) {
        most = fmax (most, divided_bound (x, from, false));
        /* Where groups inside nodes are fewer, some slot is slow or spans. */
        if (x->tp.across > x->tp.inside && c->deg.tp <= pool->max_node_gpus &&
            slow_stages (pool, c, from, true) > slow_stages (pool, c, from, false))
            most = fmax (most, divided_bound (x, from, true));
    }
    if (most <= 0.0) {
        if (x->caps)
            bound_caps (pool, c->deg.pp, 0, true, x->caps, x->cap);
        most = higher_bound (x, &x->times, NULL, 0);
    }
    return most;
}

/* The bound by such a node with the slow slots of every class beside it: wherever these are, some
 * stage synchronises through that node, and all replicas wait for it.  Or a TP group spans nodes.
 * Asked of experts alone, whose rings weigh most.
 * @return `known`, a bound, or more */
static double beside_needed (const struct least_terms *any, double known)
{
    struct least_terms x = *any;
    struct on_needed on = {.known_s = known, .times = any->times};
    double least = INFINITY;

    if (any->ways[SPAN_NONE].n == 0 || any->b.pool->n_classes < 2 || any->times.p == 1 ||
        any->times.p > MOST_TOLD || !(known > 0.0) || !isfinite (known) ||
        !bound_needed_node (any, 1, &on.node))
        return known;
    needed_node_put (any, &on.node, &on.times);
    x.on = &on;
    for (; on.stage < any->times.p && least > known; on.stage++)
        least = fmin (least, highest_divided (&x));
    return least > known ? fmax (known, fmin (least, spanning_bound (any, known)))
                         : known;
}

/* The bound where it takes longer than `known` for stages to be on several nodes: either the
 * step is as long as that, or they are on one node each and send to each other at such cost. */
static double apart_bound (const struct least_terms *any, double known)
{
    struct least_terms x = *any;
    double roams, apart;

    if (!isfinite (known) || !bound_apart_sends (&x.b, &x.apart))
        return known;
    roams = bound_roams (any, known);
    if (!(roams > known * PAYS))
        return known;
    least_terms_put_sends (&x, x.tp.inside, 0, &x.times);
    apart = fmax (known, highest_divided (&x));
    return apart < roams ? fmin (roams, bound_kinds (&x, false, apart, roams)) : roams;
}

/* Is it enough above what is known to look on?  What is told up to most_s alone is, at that. */
static bool is_higher (const struct least_terms *x, double bound, double known)
{
    return bound >= fmin (known * CLOSE, x->most_s);
}

/* The step where stage k is as `few` says, at least. */
static double odd_stage_bound (const struct least_terms *any, struct few_groups *few,
                               int k)
{
    struct least_terms x = *any;

    few->stage = k;
    x.few = few;
    return highest_divided (&x);
}

/* A stage is odd that has few TP groups on some node, or one that spans nodes. */
struct odd_stages {
    struct least_terms x;
    struct few_groups few, spans;
    double spans_s; /* the step where any stage is of the second sort */
};

/* @param[in] most  a step beyond that is of no use */
static void odd_stages_init (const struct least_terms *x, int groups, double spans_s,
                             double known, double most, struct odd_stages *odd)
{
    *odd = (struct odd_stages){.x = *x, .spans_s = spans_s};
    odd->x.most_s = fmin (most, x->most_s);
    few_groups_init (x, groups, BY_ROWS * known, &odd->few);
    odd->spans = (struct few_groups){.spans = true, .known_s = odd->few.known_s};
}

/* The step where stage k is one, and, where apart_s is above 0, no other is. */
static double odd_bound (struct odd_stages *odd, int k, double apart_s)
{
    double few, spans = odd->spans_s;

    odd->few.apart_s = odd->spans.apart_s = apart_s;
    few = odd_stage_bound (&odd->x, &odd->few, k);
    if (spans < fmin (few, odd->x.most_s))
        spans = fmax (spans, odd_stage_bound (&odd->x, &odd->spans, k));
    return fmin (few, spans);
}

/* The least steps with which one stage is odd and no other, two neighbours are, and any two. */
struct odd_bounds {
    double one, neighbours, two;
};

/* Only as far as they tell more than is known: the last stages first, which have most time. */
static struct odd_bounds odd_bounds (const struct least_terms *x, int groups,
                                     double spans_s, bool alone, double known,
                                     double most)
{
    struct odd_bounds out = {INFINITY, INFINITY, INFINITY};
    struct odd_stages odd;
    double before = INFINITY, last = INFINITY, beside;
    int least = 0, k = x->times.p - 1;

    odd_stages_init (x, groups, spans_s, known, most, &odd);
    for (; k >= 0 && is_higher (x, out.two, known); k--) {
        double one = odd_bound (&odd, k, 0.0);

        out.neighbours = fmin (out.neighbours, fmax (one, before));
        out.two = fmin (out.two, fmax (one, out.one));
        least = one < out.one ? k : least;
        out.one = fmin (out.one, one);
        before = one;
        last = k == x->times.p - 1 ? one : last;
    }
    if (k >= 0) /* of others it is not known */
        return (struct odd_bounds){0.0, 0.0, 0.0};
    if (x->b.c->deg.vpp > 1) /* chunks go round */
        out.neighbours = fmin (out.neighbours, fmax (before, last));
    beside = bound_beside_few_s (&x->b); /* all others have most of their nodes then */
    if (alone && isfinite (beside) && out.one < out.two)
        out.one = fmax (out.one, odd_bound (&odd, least, beside));
    return out;
}

/* The least step where boundaries are such.  @return `known`, a bound, or more */
static double apart_step (const struct least_terms *x, double known)
{
    double bound = fmax (known, highest_divided (x));

    /* Elsewhere another replica may have such sends (leaving). */
    if (x->ways[SPAN_NONE].n > 0) {
        bound = needed_bound (x, bound);
        bound = beside_needed (x, bound);
    }
    return bound_kinds (x, false, bound, x->most_s);
}

/* The step with some odd stage, up to `step`; or with two neighbours.  The nearer is what is asked
 * for, the more splits can be played out up to it: if not at once, something lower is asked for. */
static double odd_step (const struct least_terms *x, int groups, double spans_s,
                        bool alone, bool some, double known, double step)
{
    double told = known;

    step = fmin (step, x->most_s);
    for (int i = 0; i < TARGETS && (i == 0 || step > told * FAR); i++) {
        struct odd_bounds by = odd_bounds (x, groups, spans_s, alone, known, step);
        double least = some ? by.neighbours : fmin (by.one, by.two);

        if (least >= step)
            return step;
        told = fmax (told, least);
        if (!isfinite (step))
            break;
        step = 0.5 * (told + step);
    }
    return told;
}

/* The bound by how many stages share a node (lanes.c): no more than so many, or some stage is odd.
 * Of one stage on a node two neighbours must be odd, too.  @return `known`, a bound, or more */
static double sharing_bound (const struct least_terms *any, int share, double spans,
                             double known)
{
    int groups = any->b.pool->max_node_gpus / any->b.c->deg.tp / (share + 1);
    struct least_terms inside = *any;
    double bound = known;

    least_terms_keep_inside (&inside);
    for (int some = 0; some < (share == 1 ? 2 : 1); some++) {
        struct least_terms apart = inside;
        double step;

        if (!bound_shared_sends (&any->b, share, some == 1, &apart.apart))
            continue;
        least_terms_put_sends (&apart, apart.tp.inside, 0, &apart.times);
        step = apart_step (&apart, bound);
        if (!is_higher (any, step, bound))
            continue;
        /* Where nodes differ, a bound so near is far from plans for other reasons. */
        if (!is_higher (any, spans, bound) && !any->b.pool->all_alike &&
            step < bound * FAR)
            continue;
        if (spans < step) /* one such stage is enough */
            step = fmax (spans,
                         odd_step (any, groups, spans, share == 1, false, known, step));
        if (!is_higher (any, step, bound))
            continue;
        step = odd_step (&inside, groups, INFINITY, share == 1, some, known, step);
        bound = fmax (bound, step);
    }
    return bound;
}

/* The highest of these. */
static double sharing_bounds (const struct least_terms *x, double known)
{
    int room = x->b.pool->max_node_gpus / x->b.c->deg.tp;
    double spans;

    if (!isfinite (known) || x->times.p == 1 || x->times.p > MOST_TOLD || room < 2 ||
        !(bound_has_lanes (&x->b) || experts_told_apart (x, true)))
        return known;
    spans = spanning_bound (x, known);
    for (int share = 1; share < x->times.p && room / (share + 1) > 0; share++)
        if (room / (share + 1) < room / share) /* else as with one stage less */
            known = sharing_bound (x, share, spans, known);
    return known;
}

bool bound_plays (const struct workload_config *c)
{
    return c->deg.vpp > 1 ||
           (c->deg.ep > 1 && !workload_schedule_splits_backward (c->schedule));
}

/* @param[in] known, most  a bound below that or beyond that is of no use */
static double bound_with_twins (const struct pool *pool, const struct workload_config *c,
                                enum twins twins, const int *caps, int *cap, double known,
                                double most, enum bound_level level)
{
    bool last = level >= (bound_plays (c) ? BOUND_PLAYED : BOUND_SPLITS);
    long work = CLOSE_WORK;
    struct least_terms x;
    double bound;

    least_terms_init (pool, c, twins, &x);
    x.known_s = known;
    x.most_s = most;
    x.caps = caps;
    x.cap = cap;
    x.level =
        level == BOUND_KINDS ? BOUND_FRACTIONS : level; /* counts two classes at a time */
    x.closer = level > BOUND_KINDS;
    x.work = level == BOUND_RUNS && pool->n_gpus <= CLOSE_GPUS ? &work : NULL;
    if (caps && isfinite (most) && bound_kinds (&x, false, most, most) > most)
        return most;
    bound = fmax (known, highest_divided (&x));
    if (!caps || bound >= most)
        return bound;
    bound = needed_bound (&x, bound);
    bound = bound_kinds (&x, x.work != NULL, bound, most);
    if (last && bound < most)
        bound = beside_needed (&x, bound);
    if (!last || bound >= most)
        return bound;
    bound = sharing_bounds (&x, bound);
    return apart_bound (&x, bound);
}

/* Ranks with the same embedding are all together or some are apart. */
static double bound_with (const struct pool *pool, const struct workload_config *c,
                          const int *caps, int *cap, double known, double most,
                          enum bound_level level)
{
    struct bounded b = bounded_of (pool, c);
    double apart;

    if (!caps || !(b.volume.tied_bytes > 0))
        return bound_with_twins (pool, c, TWINS_ANY, caps, cap, known, most, level);
    apart = bound_with_twins (pool, c, TWINS_APART, caps, cap, known, most, level);
    return fmin (apart, bound_with_twins (pool, c, TWINS_TOGETHER, caps, cap, known,
                                          fmin (apart, most), level));
}

/* The bound with classes in the pool's order. */
static double bound_in (const struct pool *pool, const struct workload_config *c,
                        enum bound_level level, double known, double most)
{
    size_t pp = (size_t) c->deg.pp;
    int *caps = NULL;
    double bound;

    if (level > BOUND_FRACTIONS)
        caps = malloc (((size_t) pool->n_classes + 2) * pp * sizeof (int));
    if (caps &&
        (!pool_memory_fits (pool, c, caps) || !pool_large_gpus_suffice (pool, c, caps))) {
        free (caps);
        return INFINITY;
    }
    bound = bound_with (pool, c, caps, caps ? caps + (size_t) pool->n_classes * pp : NULL,
                        known, most, caps ? level : BOUND_FRACTIONS);
    free (caps);
    return bound;
}

double bound_up_to (const struct pool *pool, const struct workload_config *c,
                    enum bound_level level, double known, double most)
{
    double bound;

    if (level == BOUND_WORK)
        return bound_work (NULL, pool, c);
    bound = bound_in (pool, c, level, known, most);
    return bound < most && bound_links_order (pool, c)
               ? fmax (bound, bound_in (pool->by_links, c, level, known, most))
               : bound;
}

double bound_of (const struct pool *pool, const struct workload_config *c,
                 enum bound_level level)
{
    return bound_up_to (pool, c, level, 0.0, INFINITY);
}

/* No stage has more layers than in the split, so that it is the only one. */
double bound_of_split (const struct pool *pool, const struct workload_config *c,
                       const int *caps, const int *layers)
{
    int pp = c->deg.pp, n = pool->n_classes * pp;
    int *most = malloc (((size_t) n + 2 * (size_t) pp) * sizeof (int));
    double bound;

    if (!most)
        return 0.0;
    for (int i = 0; i < n; i++)
        most[i] = caps[i] < layers[i % pp] ? caps[i] : layers[i % pp];
    bound = bound_with (pool, c, most, most + n, 0.0, INFINITY, BOUND_PLAYED);
    free (most);
    return bound;
}

int bound_divided (const struct pool *pool, const struct workload_config *c, int from,
                   const int *cap, struct config_times *times,
                   struct bound_pipeline *pipeline)
{
    struct least_terms x;
    struct slow_slots slots;
    int slow = from > 0 ? slow_stages (pool, c, from, false) : 0;

    least_terms_init (pool, c, TWINS_ANY, &x);
    *times = x.times;
    if (slow > 0) {
        slow_slots_init (&x, from, false, &slots);
        slow_slots_put (&x, &slots, times);
    }
    if (pipeline)
        *pipeline = bound_pipeline_of (&x, times, &slots, slow, cap);
    return slow;
}
