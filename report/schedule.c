/* The played-out schedule of one replica, packed.
 *
 * A stage is a text of varints.  Every event is its kind (operation + 3 chunk, twice, and one
 * more where its micro-batch is not the one after the kind's last, which then follows), and the
 * pause before it in units of unit_s.  How long an event takes is said once per kind.  Where a
 * stage has more events than are drawn, those in the middle of the step are left out. */
#include <stdlib.h>

#include "base/memory.h"
#include "report/report_private.h"

#define UNITS 4e6        /* a step has */
#define EVENTS_MAX 45000 /* drawn of all stages */

/* A kind of event on a stage: operation and chunk. */
struct kind {
    unsigned units;
    bool seen;
    int micro; /* the last one's */
};

struct stage {
    struct text events;
    long all, at;                /* events, and those seen so far */
    unsigned end;                /* of the last one that was written */
    unsigned gap_start, gap_end; /* of what is left out */
    struct kind *kind;
};

struct packing {
    struct stage *stage;
    int kinds;
    long drawn; /* of each stage, at each end */
    double unit_s;
};

static void count (void *context, const struct costmodel_event *e)
{
    struct packing *x = context;

    x->stage[e->stage].all++;
}

/* The clock is the reader's.  Times and durations are rounded down: what an event loses, the pause
 * after it gets, so that nothing adds up. */
static void pack (void *context, const struct costmodel_event *e)
{
    struct packing *x = context;
    struct stage *s = &x->stage[e->stage];
    int number = (int) e->what + 3 * e->chunk;
    struct kind *k = &s->kind[number];
    unsigned start = (unsigned) (e->start_s / x->unit_s);
    long at = s->at++;
    bool next;

    if (!k->seen)
        *k = (struct kind){(unsigned) ((e->end_s - e->start_s) / x->unit_s), true, -1};
    if (at == x->drawn && s->all > 2 * x->drawn)
        s->gap_start = s->end;
    if (at >= x->drawn && at < s->all - x->drawn)
        return;
    if (at == s->all - x->drawn && s->all > 2 * x->drawn)
        s->gap_end = start;
    next = e->micro == k->micro + 1;
    k->micro = e->micro;
    start = start > s->end ? start : s->end;
    report_add_varint (&s->events, 2 * (unsigned) number + !next);
    if (!next)
        report_add_varint (&s->events, (unsigned) e->micro);
    report_add_varint (&s->events, start - s->end);
    s->end = start + k->units;
}

static json_t *stage_json (const struct packing *x, const struct stage *s,
                           const struct costmodel_tail *tail)
{
    json_t *doc, *units = json_array ();

    for (int k = 0; k < x->kinds; k++)
        json_array_append_new (units, json_integer (s->kind[k].units));
    doc = json_pack ("{s:s, s:o, s:I, s:f, s:f, s:f}", "events", text_str (&s->events),
                     "units", units, "n", (json_int_t) s->all, "end_s", tail->start_s,
                     "sync_s", tail->sync_s, "optimizer_s", tail->optimizer_s);
    if (s->gap_end > s->gap_start)
        json_object_set_new (doc, "left_out",
                             json_pack ("{s:I, s:I, s:I}", "n",
                                        (json_int_t) (s->all - 2 * x->drawn), "start",
                                        (json_int_t) s->gap_start, "end",
                                        (json_int_t) s->gap_end));
    return doc;
}

enum status report_schedule (const struct costmodel_problem *p, const int *gpu,
                             const struct costmodel_estimate *e, json_t **out,
                             struct error *err)
{
    int pp = p->config->deg.pp, kinds = 3 * p->config->deg.vpp;
    struct costmodel_tail *tail = calloc ((size_t) pp, sizeof *tail);
    struct kind *kind = calloc ((size_t) pp * (size_t) kinds, sizeof *kind);
    struct packing x = {.stage = calloc ((size_t) pp, sizeof *x.stage),
                        .kinds = kinds,
                        .drawn = EVENTS_MAX / 2 / pp,
                        .unit_s = e->step_s / UNITS};
    json_t *stages = json_array ();
    enum status st = tail && kind && x.stage ? ST_OK : err_nomem (err);

    THEN (st, costmodel_watch_replica (p, gpu, e->replica,
                                       &(struct costmodel_watch){count, &x}, tail, err));
    for (int i = 0; i < pp && st == ST_OK; i++)
        x.stage[i].kind = kind + (size_t) i * (size_t) kinds;
    THEN (st, costmodel_watch_replica (p, gpu, e->replica,
                                       &(struct costmodel_watch){pack, &x}, tail, err));
    for (int i = 0; i < pp && x.stage; i++) {
        /* A schedule that is played out without memory ends early, and does not say so. */
        if (st == ST_OK && x.stage[i].at != x.stage[i].all)
            st = err_nomem (err);
        if (st == ST_OK)
            json_array_append_new (stages, stage_json (&x, &x.stage[i], &tail[i]));
        text_free (&x.stage[i].events);
    }
    if (st == ST_OK)
        *out = json_pack ("{s:i, s:f, s:O}", "replica", e->replica, "unit_s", x.unit_s,
                          "stages", stages);
    json_decref (stages);
    FREE_ALL (x.stage, kind, tail);
    return st;
}
