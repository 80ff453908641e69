/* The GPUs of all classes in one replica, its splits played out.
 *
 * Were every replica dearer than the mean, all would be too (share.c).  So some replica's slots
 * cost no more than that, and its splits are played out with each stage on a slot of any class, as
 * far as the price goes.  Prices count slots of classes 0..q, for every q, those of one end four
 * times those of the next: then whole slots tell, as where each replica has one of the slowest
 * class and only some one of the class before.  Both ends are tried, and the higher bound holds.
 *
 * A slot of a class sends to one of another over the best link between such GPUs, and inside a node
 * where some node has both. */
#include "mapper/bound/kinds.h"

#include <math.h>

#include "base/extremes.h"
#include "mapper/bound/played.h"

#define STEEP 4

/* From a GPU of one class to one of another, or back: between nodes, or inside one. */
static double link_s (const struct bounded *b, int from, int to)
{
    const struct pool *pool = b->pool;
    const struct best_link *in = &pool->pairing[0][from][to],
                           *out = &pool->pairing[1][from][to];

    return fmin (
        bound_flow_s (b, fmin (out->bytes_per_s, pool->node_bytes_per_s), out->latency_s),
        bound_flow_s (b, in->bytes_per_s, in->latency_s));
}

/* A slot's slowest GPU sends to one of the other's, which may be faster than its slowest.
 * @return 0 where there is no link: nothing is known */
static double boundary_s (const struct bounded *b, int from, int to)
{
    bool one = b->c->deg.tp * b->c->deg.cp == 1;
    double here = INFINITY, there = INFINITY, s;

    for (int q = one ? to : 0; q <= to; q++)
        here = smaller (here, link_s (b, from, q));
    for (int q = one ? from : 0; q <= from; q++)
        there = smaller (there, link_s (b, q, to));
    s = larger (here, there);
    return isfinite (s) ? s : 0.0;
}

/* @return does the budget leave out any slots? */
static bool find_prices (const struct kinds *x, bool slowest_first,
                         struct played_replica *r)
{
    const struct workload_degrees *d = &x->x->b.c->deg;
    long slots = (long) x->p * d->dp, sum = 0;
    int weight = 1;
    bool tells = false;

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

/* The classes that are played. */
static void put_kinds (struct kinds *x, struct played_replica *r)
{
    const struct bounded *b = &x->x->b;

    r->kinds = x->classes;
    for (int i = 0; i < r->kinds; i++) {
        r->kind[i].rows = &x->kind[i].rows;
        r->kind[i].slot = kinds_slot (x, i);
        for (int j = 0; j < r->kinds; j++)
            r->send_s[i][j] = larger (boundary_s (b, i, j), x->kind[0].pipeline.any_s);
    }
}

/* The bound of some prices, over the ways to place stage 0. */
static double with_prices (struct kinds *x, bool slowest_first, double known, double most)
{
    struct stage_placing placing[PLACINGS_MAX];
    struct bound_pipeline *any = &x->kind[0].pipeline;
    int n = rows_placings (any, any->first_span, placing);
    struct played_replica r = {0};
    double least = most;

    if (!find_prices (x, slowest_first, &r))
        return known;
    put_kinds (x, &r);
    for (int i = 0; i < n && least > known; i++) {
        for (int k = 0; k < r.kinds; k++)
            rows_init (&x->kind[k].rows, &x->kind[k].pipeline, placing[i], NULL);
        any->most_s = least;
        any->work = x->x->work;
        least = smaller (least, bound_played (&r, known));
    }
    return larger (known, least);
}

double kinds_played (struct kinds *x, double known, double most)
{
    if (x->classes > CLASSES_FEW ||
        workload_schedule_splits_backward (x->x->b.c->schedule))
        return known;
    kinds_put_told (x, true);
    known = with_prices (x, true, known, most);
    return x->classes > 2 && known < most ? with_prices (x, false, known, most) : known;
}
