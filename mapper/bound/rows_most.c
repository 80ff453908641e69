/* How many layers a stage holds at most for the pipeline and the step to end by some time. */
#include "mapper/bound/rows.h"

/* A stage, and what it is to end by. */
struct hold {
    const struct pipeline_case *pc;
    int k, kind, below;
    const struct rows_times *then;
};

/* Does its part of both hold with so many layers, with its tail or without? */
static bool ends_by (const struct hold *h, int layers, bool bare)
{
    const struct pipeline_case *pc = h->pc;
    double by = pc->split ? h->then->end_s : h->then->step_s;

    if (!pc->split && rows_end_s (pc, h->k, h->kind, layers, h->below) > h->then->end_s)
        return false;
    return (h->k == 0 && !pc->split) ||
           rows_step_s (pc, h->k, h->kind, layers, h->below, bare, by) <= by;
}

/* The most layers, in units, where fewer end no later. */
static int most_units (const struct hold *h, bool bare, int least, int most, int near)
{
    int unit = h->pc->x->unit, fits = 0, over = most + 1;

    for (int try = near > least ? near : least, step = 1; over - fits > 1 && over > least;
         step *= 2) {
        if (try <= fits || try >= over)
            try = fits + (over - fits) / 2;
        if (ends_by (h, try * unit, bare)) {
            fits = try;
            try += step;
        } else {
            over = try;
            try -= step;
        }
    }
    return fits;
}

int rows_most_layers (const struct pipeline_case *pc, int k, int kind, int below,
                      const struct rows_times *then, int near)
{
    const struct bound_pipeline *x = pc->x;
    struct hold h = {pc, k, kind, below, then};
    int most = x->model->layers - (x->p - 1) * x->least, least = x->least / x->unit, fits;

    if (x->cap && x->cap[kind * x->p + k] < most)
        most = x->cap[kind * x->p + k];
    most /= x->unit;
    fits = most_units (&h, false, least, most, near / x->unit);
    /* Where more layers hide more of the tail they may end sooner: without it they do not. */
    if (x->hides_more && fits < most) {
        most = most_units (&h, true, least, most, fits + 1);
        while (most > fits && !ends_by (&h, most * x->unit, false))
            most--;
        fits = most > fits ? most : fits;
    }
    return fits * x->unit < x->least ? 0 : fits * x->unit;
}
