/* What kinds.c and share.c ask of one stage. */
#include "mapper/bound/kinds.h"

bool kinds_has_units (const struct kinds *x, int class)
{
    bool some = x->used[BY_MEMORY] || x->own_times;

    for (enum stock i = BY_CLASS; i <= ALONE; i++)
        some = some || x->units[i][class] > 0;
    return some;
}

double kinds_most_layers (const struct kinds *x, int kind, int k, int below,
                          const struct rows_times *then)
{
    int *near = x->near + kind * x->p + k;
    int most = rows_most_layers (&x->kind[kind].rows, k, kinds_slot (x, kind), below,
                                 then, *near);

    *near = most;
    return most > 0 ? most : IMPOSSIBLE;
}

bool kinds_goes_around (const struct kinds *x, const struct first *first, double end)
{
    const struct bound_pipeline *any = &x->kind[0].pipeline;
    int rounds = (any->m - 1) / any->p, rest = rounds > 0 ? (any->m - 1) % any->p : 0;

    return any->schedule != SCHEDULE_1F1B ||
           (1 + rounds) * rows_around_s (&x->kind[0].rows) +
                   rest * rows_micro_s (&x->kind[first->class].rows, 0, first->class > 0,
                                        first->layers) <=
               end;
}
