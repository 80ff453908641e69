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
    size_t pp = (size_t) s->t.pp, dp = (size_t) s->t.dp, cells = pp * dp;
    size_t sends = cells + dp;

    w->slot_time = malloc (cells * sizeof *w->slot_time);
    w->there_s = malloc ((2 * sends + cells) * sizeof (double));
    w->stage_end = malloc (pp * sizeof *w->stage_end);
    w->slot = malloc ((cells + 2 * sends + dp) * sizeof (int));
    if (!w->slot_time || !w->there_s || !w->stage_end || !w->slot)
        return err_nomem (err);
    w->back_s = w->there_s + sends;
    w->end_s = w->back_s + sends;
    w->sends = w->slot + cells;
    w->sends_unmeasured = w->sends + sends;
    w->replica = w->sends_unmeasured + sends;
    return ST_OK;
}

void journal_release (struct costmodel_state *s)
{
    free (s->was.slot);
    free (s->was.slot_time);
    free (s->was.there_s);
    free (s->was.stage_end);
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
    s->was.slot[s->was.n_slots] = at;
    s->was.slot_time[s->was.n_slots++] = s->slot[at];
}

void journal_sends (struct costmodel_state *s, int k)
{
    struct journal *w = &s->was;

    w->sends[w->n_sends] = k;
    w->there_s[w->n_sends] = *sends_there (s, k);
    w->back_s[w->n_sends] = *sends_back (s, k);
    w->sends_unmeasured[w->n_sends++] = s->sends_unmeasured[k];
}

void journal_replica (struct costmodel_state *s, int d)
{
    struct journal *w = &s->was;
    size_t pp = (size_t) s->t.pp;

    memcpy (w->end_s + (size_t) w->n_replicas * pp, s->end_s + (size_t) d * pp,
            pp * sizeof (double));
    w->replica[w->n_replicas++] = d;
}

void journal_restore (struct costmodel_state *s)
{
    const struct journal *w = &s->was;
    size_t pp = (size_t) s->t.pp;

    for (int i = 0; i < w->n_slots; i++)
        s->slot[w->slot[i]] = w->slot_time[i];
    for (int i = 0; i < w->n_sends; i++) {
        *sends_there (s, w->sends[i]) = w->there_s[i];
        *sends_back (s, w->sends[i]) = w->back_s[i];
        s->sends_unmeasured[w->sends[i]] = w->sends_unmeasured[i];
    }
    for (int i = 0; i < w->n_replicas; i++)
        memcpy (s->end_s + (size_t) w->replica[i] * pp, w->end_s + (size_t) i * pp,
                pp * sizeof (double));
    memcpy (s->stage_end, w->stage_end, pp * sizeof *s->stage_end);
    s->tied_s = w->tied_s;
    s->unmeasured = w->unmeasured;
    s->price = w->price;
}
