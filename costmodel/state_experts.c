/* All-to-alls of a placement whose price follows its changes.
 *
 * A stage waits for the slowest all-to-all of all its expert groups.  An exchange changes those of
 * the ranks that it moves, and where nodes' ways are shared all of the stage's, since groups that
 * leave a node take from each other.  Most often the slowest one stays as it was: then only the
 * slots that were moved take another time. */
#include "costmodel/state_private.h"

#include <stdlib.h>

enum status exchanges_init (struct costmodel_state *s, struct error *err)
{
    struct exchanges *x = &s->x;
    struct journal *w = &s->was;
    const struct workload_degrees *d = &s->config.deg;
    size_t pp = (size_t) d->pp, slots = pp * (size_t) d->dp, rows;

    x->any = d->ep > 1 && d->cp == 1;
    if (!x->any)
        return ST_OK;
    x->rows = workload_group_of (d, GROUP_EXPERT_SYNC).size;
    x->ranks = d->dp * s->t.slot / x->rows;
    rows = pp * (size_t) x->rows;
    x->alone = calloc (slots, sizeof *x->alone);
    x->row = calloc (rows, sizeof *x->row);
    x->added = calloc (pp, sizeof *x->added);
    x->dirty.list = malloc (rows * sizeof *x->dirty.list);
    x->dirty.is = calloc (rows, sizeof *x->dirty.is);
    w->alone = malloc (slots * sizeof *w->alone);
    w->row = malloc (rows * sizeof *w->row);
    w->added = malloc (pp * sizeof *w->added);
    return x->alone && x->row && x->added && x->dirty.list && x->dirty.is && w->alone &&
                   w->row && w->added
               ? ST_OK
               : err_nomem (err);
}

void exchanges_release (struct costmodel_state *s)
{
    free (s->x.alone);
    free (s->x.row);
    free (s->x.added);
    free (s->x.dirty.list);
    free (s->x.dirty.is);
    free (s->was.alone);
    free (s->was.row);
    free (s->was.added);
}

void exchanges_touch (struct costmodel_state *s, int position)
{
    if (s->x.any && position < s->t.world)
        touch (&s->x.dirty, position / s->x.ranks);
}

void exchanges_touch_all (struct costmodel_state *s)
{
    for (int k = 0; k < s->t.pp * s->x.rows; k++)
        touch (&s->x.dirty, k);
}

/* Its slots that are touched, as if they had no experts. */
static void price_alone (struct costmodel_state *s, int stage)
{
    const struct terms *t = &s->t;

    for (int d = 0; d < t->dp; d++) {
        int at = d * t->pp + stage;
        struct slot_time *alone = &s->x.alone[at];

        if (!s->slots.is[stage * t->dp + d])
            continue;
        journal_alone (s, at);
        s->unmeasured -= alone->unmeasured;
        slot_price (t, stage, d, s->tp_share + (size_t) stage * (size_t) s->nodes, alone);
        s->unmeasured += alone->unmeasured;
    }
}

/* Its rows.  @return all of them */
static struct exchange_row price_rows (struct costmodel_state *s, int stage)
{
    const struct terms *t = &s->t;
    struct exchanges *x = &s->x;
    struct exchange_row all = {0};
    bool any = false;

    for (int k = stage * x->rows; k < (stage + 1) * x->rows; k++)
        any = any || x->dirty.is[k];
    if (any && t->limited)
        share_exchanges (t, stage);
    for (int k = stage * x->rows; k < (stage + 1) * x->rows; k++) {
        if (x->dirty.is[k] || (any && t->limited)) {
            journal_row (s, k);
            x->row[k] = exchange_price (t, stage, k - stage * x->rows);
        }
        all = exchange_add (all, x->row[k]);
    }
    clear_shares (t->scratch);
    return all;
}

void exchanges_reprice (struct costmodel_state *s, int stage)
{
    const struct terms *t = &s->t;
    struct exchange_row *added = &s->x.added[stage], was = *added;
    bool all;

    price_alone (s, stage);
    *added = price_rows (s, stage);
    if (!has_experts (t, stage))
        *added = (struct exchange_row){0};
    s->unmeasured += added->unmeasured - was.unmeasured;
    all = added->once_s != was.once_s || added->leaves != was.leaves;
    for (int d = 0; d < t->dp; d++) {
        int at = d * t->pp + stage;
        struct slot_time slot = s->x.alone[at];

        if (!all && !s->slots.is[stage * t->dp + d])
            continue;
        if (added->once_s > 0.0)
            slot_exchange (t, stage, added->once_s, added->leaves, &slot);
        journal_slot (s, at);
        if (!same_times (&slot, &s->r.slot[at]))
            s->replica_dirty[d] = true;
        s->r.slot[at] = slot;
    }
}
