/* One round: orders to the pairs, their results, and who does not answer.
 *
 * A rank always answers within its own time-outs, so one that does not is asked whether it is
 * there, and given up when it is silent.  Its partner's result tells first that something is
 * wrong; the question is put then.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "bwprobe/coordinator_private.h"

/* A partner's result comes this long after the other's, at most, when all is well, and nobody
 * who is there needs longer to say so; with a short time-out they need no longer than that. */
#define PARTNER_S 1.5
#define ANSWER_S 3.0
#define IMPATIENT_S 1.0

struct task {
    int end[2];            /* endpoints: the lead, and its partner */
    bool here;             /* orders were sent */
    bool has[2], ready[2]; /* results; READY, by direction */
    double first_s;        /* when the first of the results came */
    struct msg_result result[2];
};

struct work {
    struct coordinator *c;
    const struct round *r;
    struct task *task;
    uint32_t seq;
    bool split;
    int left;        /* members whose result is not there */
    int gone;        /* directions for which GO was said */
    bool collective; /* the parent communicator failed */
};

static struct member *member_of (const struct work *w, const struct task *t, int role)
{
    return w->c->end[t->end[role]].member;
}

/* ---- the parent communicator ---- */

/* Wait for PARENT_DONE of n members.  @return false when one failed or is gone */
static bool parents_done (struct coordinator *c, int n, unsigned char id[NCCL_ID])
{
    /* Joining takes longer the more there are. */
    double deadline = clock_s () + 3 * c->how.timeout_s + 0.02 * c->shape.n;

    while (n > 0) {
        struct roster_event e = roster_next (c->roster, deadline);
        struct msg_parent_done done;

        if (e.what == ROSTER_NOTHING || e.what == ROSTER_GONE || e.what == ROSTER_WAKE) {
            coordinator_unexpected (c, &e);
            return false;
        }
        if (e.what != ROSTER_MESSAGE || e.frame->type != MSG_PARENT_DONE)
            continue;
        messages_parent_done (e.frame, &done);
        if (!wire_good (e.frame) || done.generation != c->generation)
            continue;
        if (!done.ok) {
            coordinator_say (c, "%s: no communicator over all ranks: %s",
                             e.member->hello.node, done.reason);
            return false;
        }
        memcpy (id, done.id, NCCL_ID);
        n--;
    }
    return true;
}

static void build_parent (struct coordinator *c)
{
    struct msg_parent parent = {.generation = ++c->generation, .make_id = 1};
    struct msg_abort stop = {.seq = STATION_PARENT | c->generation,
                             .reason =
                                 "the communicator over all ranks failed elsewhere"};
    int alive = 0, first = -1;

    for (int i = 0; i < c->shape.n; i++)
        if (coordinator_alive (c, i)) {
            first = first < 0 ? i : first;
            alive++;
        }
    if (first < 0)
        return;
    parent.size = (uint32_t) alive;
    ROSTER_TELL (c->roster, c->end[first].member, MSG_PARENT, messages_parent, &parent);
    c->parent_ok = parents_done (c, 1, parent.id);
    parent.make_id = 0;
    for (int i = 0; i < c->shape.n && c->parent_ok; i++)
        if (coordinator_alive (c, i)) {
            ROSTER_TELL (c->roster, c->end[i].member, MSG_PARENT, messages_parent,
                         &parent);
            parent.rank++;
        }
    c->parent_ok = c->parent_ok && parents_done (c, alive, parent.id);
    if (c->parent_ok)
        return;
    for (int i = 0; i < c->shape.n; i++) {
        ROSTER_TELL (c->roster, c->end[i].member, MSG_ABORT, messages_abort, &stop);
    }
    c->parent_given_up = true;
    coordinator_say (c, "pairs get communicators of their own");
}

/* A split is collective over all ranks: worth it while there are not too many. */
#define SPLIT_MAX 1024

static bool use_split (struct coordinator *c, const struct round *r)
{
    if (!c->transport->parent || r->fresh || c->parent_given_up || c->shape.n > SPLIT_MAX)
        return false;
    if (!c->parent_ok)
        build_parent (c);
    return c->parent_ok;
}

/* ---- orders ---- */

static void send_run (struct work *w, int index, int role)
{
    const struct task *t = &w->task[index];
    struct member *m = member_of (w, t, role), *other = member_of (w, t, 1 - role);
    struct msg_run run = {.seq = w->seq,
                          .kind = w->r->together ? RUN_TOGETHER : RUN_ALONE,
                          .lead = role == 0,
                          .split = w->split,
                          .color = (uint32_t) index,
                          .bytes = w->r->bytes,
                          .partner = other->rank,
                          .door = other->hello.door};

    memcpy (run.partner_node, other->hello.node, sizeof run.partner_node);
    ROSTER_TELL (w->c->roster, m, MSG_RUN, messages_run, &run);
    m->work = index;
    w->left++;
}

static void give_orders (struct work *w)
{
    struct coordinator *c = w->c;
    struct msg_run out = {.seq = w->seq, .kind = RUN_SIT_OUT, .split = 1};

    for (int i = 0; i < w->r->n; i++) {
        struct task *t = &w->task[i];
        /* Together, all GPUs of a node send in the same half, and share what it has. */
        bool swap = !w->r->together && (rng_next (&c->rng) & 1);

        t->end[swap] = w->r->pair[i].a;
        t->end[!swap] = w->r->pair[i].b;
        t->here = coordinator_alive (c, t->end[0]) && coordinator_alive (c, t->end[1]);
        for (int role = 0; role < 2 && t->here; role++)
            send_run (w, i, role);
    }
    for (int i = 0; i < c->shape.n && w->split; i++) {
        struct member *m = c->end[i].member;

        if (m->state != MEMBER_HERE || m->work >= 0)
            continue;
        ROSTER_TELL (c->roster, m, MSG_RUN, messages_run, &out);
        m->work = w->r->n; /* no task of its own */
        w->left++;
    }
}

/* ---- results ---- */

static void settle (struct work *w, struct member *m, const struct msg_result *result)
{
    if (m->work < 0)
        return;
    if (m->work < w->r->n) {
        struct task *t = &w->task[m->work];
        int role = m->endpoint == t->end[0] ? 0 : 1;

        t->result[role] = *result;
        t->has[role] = true;
        if (t->first_s == 0)
            t->first_s = clock_s ();
    }
    w->collective |= result->collective != 0;
    m->work = -1;
    w->left--;
}

/* What stands for the result of a rank that is gone. */
static void settle_gone (struct work *w, struct member *m)
{
    struct msg_result none = {.seq = w->seq};

    for (int k = 0; k < 2; k++)
        snprintf (none.reason[k], sizeof none.reason[k], "%.60s: %.180s",
                  m->endpoint >= 0 ? w->c->end[m->endpoint].name : m->hello.node,
                  m->gone);
    settle (w, m, &none);
}

static void note_refused (struct coordinator *c, const struct member *m,
                          const struct msg_result *r)
{
    if (r->refused == 0)
        return;
    c->refused += r->refused;
    coordinator_say (c, "%s refused %u foreign connection%s, the last from %s",
                     m->hello.node, r->refused, r->refused > 1 ? "s" : "",
                     r->refused_from);
}

static void take (struct work *w, const struct roster_event *e)
{
    struct msg_result result;
    struct msg_seq ready;

    switch (e->frame->type) {
    case MSG_RESULT:
        messages_result (e->frame, &result);
        if (!wire_good (e->frame) || result.seq != w->seq)
            break;
        note_refused (w->c, e->member, &result);
        settle (w, e->member, &result);
        break;
    case MSG_READY:
        messages_seq (e->frame, &ready);
        if (wire_good (e->frame) && ready.seq == w->seq && ready.direction < 2 &&
            e->member->work >= 0 && e->member->work < w->r->n)
            w->task[e->member->work].ready[ready.direction] = true;
        break;
    default:
        break;
    }
}

/* Say GO when every pair that still measures is ready for the next direction. */
static void maybe_go (struct work *w)
{
    while (w->r->together && w->gone < 2) {
        struct msg_seq go = {.seq = w->seq, .direction = (uint8_t) w->gone};

        for (int i = 0; i < w->r->n; i++) {
            const struct task *t = &w->task[i];

            if (t->here && !t->ready[w->gone] && !t->has[0] && !t->has[1])
                return;
        }
        for (int i = 0; i < w->r->n; i++) {
            const struct task *t = &w->task[i];

            if (!t->here || !t->ready[w->gone])
                continue;
            ROSTER_TELL (w->c->roster, member_of (w, t, w->gone), MSG_GO, messages_seq,
                         &go);
        }
        w->gone++;
    }
}

/* Ask those who should have answered; give up those who do not, or who never finish. */
static void press (struct work *w, double limit)
{
    double now = clock_s ();
    double patience_s = fmax (IMPATIENT_S, w->c->how.timeout_s),
           answer_s = fmin (ANSWER_S, patience_s),
           partner_s = fmin (PARTNER_S, patience_s);
    bool late = now > limit;
    struct msg_abort stop = {.seq = w->seq, .reason = "it took longer than any time-out"};

    for (int i = 0; i < w->c->shape.n; i++) {
        struct member *m = w->c->end[i].member;
        const struct task *t;

        if (m->state != MEMBER_HERE || m->work < 0)
            continue;
        t = m->work < w->r->n ? &w->task[m->work] : NULL;
        if (late && m->pinged == 0) {
            ROSTER_TELL (w->c->roster, m, MSG_ABORT, messages_abort, &stop);
        }
        if (late || (t && t->first_s > 0 && now - t->first_s > partner_s))
            roster_ping (w->c->roster, m);
        if (m->pinged > 0 && now - m->pinged > answer_s)
            roster_drop (w->c->roster, m, "it does not answer");
        else if (now > limit + 5 * w->c->how.timeout_s + 10)
            roster_drop (w->c->roster, m, "it does not finish");
    }
}

static void wait_for_results (struct work *w)
{
    struct coordinator *c = w->c;
    double limit = clock_s () + (w->r->together ? 10 : 6) * c->how.timeout_s +
                   6 * (c->how.together_s + c->how.alone_s) + 5;

    while (w->left > 0) {
        struct roster_event e = roster_next (c->roster, clock_s () + 0.2);

        switch (e.what) {
        case ROSTER_MESSAGE:
            take (w, &e);
            break;
        case ROSTER_GONE:
            coordinator_unexpected (c, &e);
            settle_gone (w, e.member);
            break;
        case ROSTER_HELLO:
            break;
        case ROSTER_WAKE:
            /* The partners' time-outs end the round soon enough; what they found counts. */
            coordinator_unexpected (c, &e);
            limit = fmin (limit, clock_s () + 0.5);
            break;
        case ROSTER_NOTHING:
            press (w, limit);
            coordinator_show (c);
            if (c->journal)
                journal_keep (c->journal);
            break;
        }
        maybe_go (w);
        if (c->interrupted && clock_s () > limit)
            break;
    }
}

/* ---- the record ---- */

/* Of the two ranks' reasons the one that says more: a partner who gave up knows why. */
static const char *reason_of (const struct task *t, int direction)
{
    const char *sender = t->result[direction].reason[direction],
               *receiver = t->result[!direction].reason[direction];

    if (!*sender || (strncmp (sender, "the partner", 11) == 0 && *receiver))
        return *receiver ? receiver : "the times were too short or too few for a rate";
    return sender;
}

static void record (struct work *w, const struct task *t, int direction,
                    struct round_value *value)
{
    struct coordinator *c = w->c;
    const struct round *r = w->r;
    const struct msg_result *sent = &t->result[direction],
                            *received = &t->result[!direction];
    int src = t->end[direction], dst = t->end[!direction];
    bool ok = sent->ok[direction] && received->ok[direction] && sent->measured &&
              sent->bytes_per_s > 0 && isfinite (sent->bytes_per_s);
    struct journal_item item = {.src = src,
                                .dst = dst,
                                .kind = r->kind,
                                .pass = r->pass,
                                .failed = !ok,
                                .bytes_per_s = sent->bytes_per_s,
                                .latency_s = sent->latency_s,
                                .residual = sent->residual,
                                .counts_as_alone = r->counts_as_alone,
                                .reason = ok ? NULL : reason_of (t, direction)};
    struct results_pair *p;

    /* value[] is by the pair as the caller gave it. */
    if (value && ok)
        value->bytes_per_s[src == r->pair[t - w->task].a ? 0 : 1] = sent->bytes_per_s;
    if (r->trial || !(p = results_get (&c->results, src, dst)))
        return;
    if (ok) {
        journal_item_take (&item, p);
    } else {
        bool first = p->failures == 0;

        results_fail (p, item.reason);
        if (first && coordinator_alive (c, src) && coordinator_alive (c, dst))
            coordinator_say (c, "%s -> %s failed: %s", c->end[src].name, c->end[dst].name,
                             item.reason);
    }
    if (c->journal)
        journal_add (c->journal, &item);
}

static bool was_measured (const struct task *t)
{
    return t->result[0].ok[1] && t->result[1].ok[1];
}

/* A parent that failed says nothing about the pairs: those that were not measured all the same get
 * another try without it. */
static void try_again (struct work *w, struct round *again, struct schedule_pair *pair)
{
    again->n = 0;
    if (!w->collective)
        return;
    w->c->parent_ok = false;
    w->c->parent_given_up = true;
    coordinator_say (w->c, "the communicator over all ranks was lost: pairs get "
                           "communicators of their own");
    for (int i = 0; i < w->r->n; i++)
        if (w->task[i].here && !was_measured (&w->task[i]))
            pair[again->n++] = w->r->pair[i];
    again->pair = pair;
}

double round_run (struct coordinator *c, const struct round *r, struct round_value *value)
{
    struct work w = {.c = c, .r = r, .split = use_split (c, r)};
    struct round again = *r;
    struct schedule_pair *pair = malloc (((size_t) r->n + 1) * sizeof *pair);
    double start = clock_s ();

    for (int i = 0; i < r->n && value; i++)
        value[i].bytes_per_s[0] = value[i].bytes_per_s[1] = NAN;
    w.task = calloc ((size_t) r->n + 1, sizeof *w.task);
    if (!w.task || !pair) {
        FREE_ALL (w.task, pair);
        return 0;
    }
    w.seq = ++c->seq;
    give_orders (&w);
    wait_for_results (&w);
    for (int i = 0; i < c->shape.n; i++)
        c->end[i].member->work = -1;
    again.fresh = true;
    try_again (&w, &again, pair);
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < 2 && (again.n == 0 || was_measured (&w.task[i])); k++)
            if (w.task[i].here)
                record (&w, &w.task[i], k, value ? &value[i] : NULL);
    /* The caller's values, by place, are not known for those that start anew. */
    if (again.n > 0)
        round_run (c, &again, NULL);
    FREE_ALL (w.task, pair);
    return clock_s () - start;
}

double round_again (struct coordinator *c, int src, int dst)
{
    struct schedule_pair pair = {src, dst};
    struct round r = {.kind = SCHEDULE_KINDS, .fresh = true, .pair = &pair, .n = 1};
    struct round_value v = {{NAN, NAN}};

    round_run (c, &r, &v);
    return v.bytes_per_s[0];
}
