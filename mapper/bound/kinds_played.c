/* The GPUs of all classes in one replica, its splits played out.
 *
 * Were every replica dearer than the mean, all would be too (share.c).  So some replica's slots
 * cost no more than that, and its splits are played out with each stage on a slot of any class, as
 * far as the price goes.  Prices count slots of classes 0..q, for every q, those of one end four
 * times those of the next: then whole slots tell, as where each replica has one of the slowest
 * class and only some one of the class before.  Both ends are tried, and the higher bound holds.
 *
 * A slot of a class sends to one of another over the best link between such GPUs, and inside a node
 * where some node has both.  Where no node has room for two stages, a stage is either on one node or
 * its rings cross nodes, in all replicas; and between two that are on one node each, all that they
 * send crosses. */
#include "mapper/bound/kinds.h"

#include <math.h>
#include <stdlib.h>

#include "base/extremes.h"
#include "mapper/bound/played.h"

#define STEEP 4

/* What is played: a stage's class, and whether it is on several nodes. */
struct table {
    struct kind kind[2][CLASSES_FEW];
    bool apart; /* is the second told? */
    double send_s[CLASSES_FEW][CLASSES_FEW];
    double lone_s[CLASSES_FEW][CLASSES_FEW];   /* both stages are on one node */
    double beside_s[CLASSES_FEW][CLASSES_FEW]; /* one of them is */
};

/* From a GPU of one class to one of another, or back: between nodes, so many at once; 0 flows: or
 * inside one. */
static double link_s (const struct bounded *b, int from, int to, int flows)
{
    const struct pool *pool = b->pool;
    const struct best_link *in = &pool->pairing[0][from][to],
                           *out = &pool->pairing[1][from][to];
    double cross = bound_flow_s (
        b, fmin (out->bytes_per_s, pool->node_bytes_per_s / (flows > 0 ? flows : 1)),
        out->latency_s);

    return flows > 0 ? cross
                     : fmin (cross, bound_flow_s (b, in->bytes_per_s, in->latency_s));
}

/* A slot's slowest GPU sends to one of the other's, which may be faster than its slowest.
 * @return 0 where there is no link: nothing is known */
static double boundary_s (const struct bounded *b, int from, int to, int flows)
{
    bool one = b->c->deg.tp * b->c->deg.cp == 1;
    double here = INFINITY, there = INFINITY, s;

    for (int q = one ? to : 0; q <= to; q++)
        here = smaller (here, link_s (b, from, q, flows));
    for (int q = one ? from : 0; q <= from; q++)
        there = smaller (there, link_s (b, q, to, flows));
    s = larger (here, there);
    return isfinite (s) ? s : 0.0;
}

static void table_init (const struct kinds *x, bool apart, struct table *t)
{
    const struct bounded *b = &x->x->b;
    const struct workload_degrees *d = &b->c->deg;
    int stage = d->tp * d->cp * d->dp, most = b->pool->max_node_gpus;

    t->apart = apart;
    for (int q = 0; q < x->classes; q++) {
        t->kind[0][q].pipeline = x->kind[q].pipeline;
        for (int across = 0; across < 2 && t->apart; across++)
            kinds_on_nodes (x, q, across == 1, &t->kind[across][q]);
    }
    for (int i = 0; i < x->classes; i++)
        for (int j = 0; j < x->classes; j++) {
            double any = larger (boundary_s (b, i, j, 0), x->kind[0].pipeline.any_s);

            t->send_s[i][j] = any;
            t->lone_s[i][j] = larger (any, boundary_s (b, i, j, stage));
            t->beside_s[i][j] = kinds_fills_node (b)
                                    ? larger (any, boundary_s (b, i, j, 2 * stage - most))
                                    : any;
        }
}

/* @return does the budget leave out any slots, or nodes tell something? */
static bool find_prices (const struct kinds *x, const struct table *t, bool slowest_first,
                         struct played_replica *r)
{
    const struct workload_degrees *d = &x->x->b.c->deg;
    long slots = (long) x->p * d->dp, sum = 0;
    int weight = 1;
    bool tells = t->apart;

    for (int i = 0; i < x->classes - 1; i++, weight *= STEEP) {
        int upto = slowest_first ? i : x->classes - 2 - i;
        long fast = pool_groups (x->x->b.pool, upto, 1) / (d->tp * d->cp);

        sum += weight * (fast < slots ? fast : slots);
        tells = tells || fast < slots;
        for (int q = 0; q <= upto; q++)
            r->kind[q].price += weight;
    }
    r->budget = (int) (sum / d->dp);
    return tells;
}

/* The kinds that are played, by class: of stages on one node, then of those on several. */
static void put_kinds (const struct kinds *x, struct table *t, struct played_replica *r)
{
    int n = x->classes;

    r->kinds = t->apart ? 2 * n : n;
    for (int i = 0; i < r->kinds; i++) {
        struct played_kind *kind = &r->kind[i];

        kind->rows = &t->kind[i / n][i % n].rows;
        kind->slot = i >= n || kinds_slot (x, i % n);
        kind->price = r->kind[i % n].price;
        kind->alone = t->apart && i < n;
        for (int j = 0; j < r->kinds; j++)
            r->send_s[i][j] = (!t->apart || (i >= n && j >= n) ? t->send_s
                               : i < n && j < n                ? t->lone_s
                                                : t->beside_s)[i % n][j % n];
    }
    for (int q = 0; q < n; q++)
        r->alone += x->units[ALONE][q];
}

/* Stage 0 in one way to be placed. */
static void put_first (const struct kinds *x, struct table *t, struct stage_placing first,
                       struct played_replica *r)
{
    for (int i = 0; i < r->kinds; i++) {
        struct kind *kind = &t->kind[i / x->classes][i % x->classes];
        bool spans = first.span != SPAN_NONE, across = i >= x->classes;

        rows_init (&kind->rows, &kind->pipeline, first, NULL);
        r->kind[i].not_first =
            t->apart && !kinds_can_be_first (x, i % x->classes, spans, across);
    }
}

/* The bound of some prices, over the ways to place stage 0. */
static double with_prices (const struct kinds *x, struct table *t, bool slowest_first,
                           double known, double most)
{
    struct stage_placing placing[PLACINGS_MAX];
    struct bound_pipeline *any = &t->kind[0][0].pipeline;
    int n = rows_placings (&x->kind[0].pipeline, any->first_span, placing);
    struct played_replica r = {0};
    double least = most;

    if (!find_prices (x, t, slowest_first, &r))
        return known;
    put_kinds (x, t, &r);
    for (int i = 0; i < n && least > known; i++) {
        put_first (x, t, placing[i], &r);
        any->most_s = least;
        any->work = x->x->work;
        least = smaller (least, bound_played (&r, known));
    }
    return larger (known, least);
}

double kinds_played (struct kinds *x, double known, double most)
{
    const struct workload_degrees *d = &x->x->b.c->deg;
    bool lone = 2 * d->tp * d->cp * d->dp > x->x->b.pool->max_node_gpus;
    struct table *t;

    if (x->classes > CLASSES_FEW ||
        workload_schedule_splits_backward (x->x->b.c->schedule))
        return known;
    t = calloc (1, sizeof *t);
    if (!t)
        return known;
    for (int apart = 0; apart <= (x->used[ALONE] && lone) && known < most; apart++) {
        table_init (x, apart == 1, t);
        known = with_prices (x, t, true, known, most);
        if (x->classes > 2 && known < most)
            known = with_prices (x, t, false, known, most);
    }
    free (t);
    return known;
}
