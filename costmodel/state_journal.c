/* What the last exchange of a costmodel_state changed, so that it can be taken back without
 * pricing it again.
 *
 * Slots, sends and replicas are noted one by one; what every exchange may change, the
 * stages' synchronisation and the sums, is copied as a whole.  GPUs and the counts of who
 * shares what follow from exchanging back (costmodel_state_undo).  Published models' lanes
 * are not noted. */
#include "costmodel/state_private.h"

#include <stdlib.h>
#include <string.h>

enum status journal_init (struct costmodel_state *s, struct error *err)
{
    struct journal *w = &s->was;
    size_t pp = (size_t) s->t.pp, dp = (size_t) s->t.dp;

    w->slot = malloc (pp * dp * sizeof *w->slot);
    w->sends = malloc ((pp + 1) * dp * sizeof *w->sends);
    w->replica = malloc (dp * sizeof *w->replica);
    w->end_s = malloc (pp * dp * sizeof *w->end_s);
    w->stage_end = malloc (pp * sizeof *w->stage_end);
    return w->slot && w->sends && w->replica && w->end_s && w->stage_end
               ? ST_OK
               : err_nomem (err);
}

void journal_begin (struct costmodel_state *s)
{
    struct journal *w = &s->was;

    w->n_slots = w->n_sends = w->n_replicas = 0;
    memcpy (w->stage_end, s->stage_end, (size_t) s->t.pp * sizeof *w->stage_end);
    w->tied_s = s->tied_s;
    w->unmeasured = s->unmeasured;
    w->price = s->price;
}

void journal_slot (struct costmodel_state *s, int at)
{
    struct journal *w = &s->was;

    if (w->idle)
        return;
    w->slot[w->n_slots].at = at;
    w->slot[w->n_slots++].time = s->r.slot[at];
}

void journal_sends (struct costmodel_state *s, int k)
{
    struct journal *w = &s->was;
    int at = sends_at (s, k);

    if (w->idle)
        return;
    w->sends[w->n_sends].k = k;
    w->sends[w->n_sends].unmeasured = s->sends_unmeasured[k];
    w->sends[w->n_sends].there_s = s->r.send_s[at];
    w->sends[w->n_sends++].back_s = s->r.return_s[at];
}

/* One replica's ends. */
static void copy_ends (const struct costmodel_state *s, double *to, int i,
                       const double *from, int k)
{
    size_t pp = (size_t) s->t.pp;

    memcpy (to + (size_t) i * pp, from + (size_t) k * pp, pp * sizeof *to);
}

void journal_replica (struct costmodel_state *s, int d)
{
    struct journal *w = &s->was;

    if (w->idle)
        return;
    copy_ends (s, w->end_s, w->n_replicas, s->r.end_s, d);
    w->replica[w->n_replicas++] = d;
}

void journal_restore (struct costmodel_state *s)
{
    const struct journal *w = &s->was;

    for (int i = 0; i < w->n_slots; i++)
        s->r.slot[w->slot[i].at] = w->slot[i].time;
    for (int i = 0; i < w->n_sends; i++) {
        int k = w->sends[i].k, at = sends_at (s, k);

        s->r.send_s[at] = w->sends[i].there_s;
        s->r.return_s[at] = w->sends[i].back_s;
        s->sends_unmeasured[k] = w->sends[i].unmeasured;
    }
    for (int i = 0; i < w->n_replicas; i++)
        copy_ends (s, s->r.end_s, w->replica[i], w->end_s, i);
    memcpy (s->stage_end, w->stage_end, (size_t) s->t.pp * sizeof *s->stage_end);
    s->tied_s = w->tied_s;
    s->unmeasured = w->unmeasured;
    s->price = w->price;
}
