/* The best plans once more, layers and places moved together.  Placing a configuration splits its
 * layers first; where links differ, every placement has a best split of its own. */
#include "mapper/search/looks.h"

#include <stdlib.h>

#define REFINED_GPUS 64 /* of a pool: in larger ones a move costs more, and brings less */
#define REFINED_NEAR 0.02  /* of the best: plans that are taken */
#define REFINED_BOUND 0.01 /* of the step: a bound that leaves too little to gain ... */
#define QUICK_GPUS 16      /* ... and in smaller pools, where moves are quick: */
#define QUICK_ODD_GPUS 48  /* (in odd ones, where more is gained) */
#define QUICK_BOUND 0.002
#define IDLE 2 /* rounds of starts in a row without a gain */

static enum status take_placed (struct search *x, struct looks *l, struct error *err)
{
    double near = search_value (x, x->best).step_s * (1 + REFINED_NEAR);
    int needed = search_value (x, x->best).unmeasured;
    bool *there = search_heap_has (x);
    enum status st = there ? ST_OK : err_nomem (err);

    for (long i = 0; i < x->n_placed && st != ST_NOMEM; i++) {
        const struct kept *k = &x->placed[i];
        struct costmodel_price value = search_value (x, i);
        struct sketch sketch;

        if (value.unmeasured > needed || value.step_s > near)
            continue;
        st = sketch_of (&x->pool, &l->walks, &x->config[k->index], &k->plan, &sketch,
                        NULL);
        THEN (st, looks_add (l, k->index, k->bound, &sketch, err));
        if (st == ST_NOMEM)
            err_nomem (err);
        else if (!there[k->index]) /* for siblings */
            search_push (x, (struct entry){k->bound, k->index, BOUND_RUNS});
    }
    free (there);
    return st == ST_NOMEM ? st : looks_sort (x, l, false, err);
}

/* The best places of several degrees for others of the same.  Each was placed by itself, if at all,
 * with luck of its own. */
static enum status adopt_places (struct search *x, struct looks *l, struct error *err)
{
    looks_sort_heap (x);
    return looks_siblings (x, l, false, err);
}

/* The placed ones that are near the best as looks, from which others start; what they find is kept.
 */
static enum status from_placed (struct search *x, bool adopt, double near,
                                struct error *err)
{
    struct looks l = {0};
    enum status st;

    if (!looks_apply (x) || place_tries_all (&x->pool) ||
        search_least_bound (x) > search_cut (x) * (1 - near))
        return ST_OK;
    st = walks_init (&l.walks, &x->pool, err);
    THEN (st, take_placed (x, &l, err));
    if (st == ST_OK && l.n > 0)
        st = adopt ? adopt_places (x, &l, err) : looks_start_anew (x, &l, 0, IDLE, err);
    for (long i = 0; i < l.n && st == ST_OK; i++)
        st = look_keep (x, &l.look[i], err);
    looks_release (&l);
    return st;
}

enum status search_adopt (struct search *x, struct error *err)
{
    return x->pool.n_gpus <= REFINED_GPUS || x->pool.all_alike
               ? ST_OK
               : from_placed (x, true, REFINED_BOUND, err);
}

enum status search_refine (struct search *x, struct error *err)
{
    double near = x->pool.n_gpus <= (x->odd ? QUICK_ODD_GPUS : QUICK_GPUS)
                      ? QUICK_BOUND
                      : REFINED_BOUND;

    return x->pool.n_gpus > REFINED_GPUS ? ST_OK : from_placed (x, false, near, err);
}
