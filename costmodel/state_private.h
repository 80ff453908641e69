/* Shared by the files of struct costmodel_state alone: state.c (what an exchange changes),
 * state_play.c (the same of pipelines) and state_journal.c (what was before). */
#ifndef COSTMODEL_STATE_PRIVATE_H
#define COSTMODEL_STATE_PRIVATE_H

#include <string.h>

#include "costmodel/costmodel_private.h"
#include "costmodel/state.h"

/** A slot whose GPUs are on several nodes. */
#define SPREAD (-1)

/** What follows a stage's last backward, and the unmeasured links of its expert groups and of its
 *  synchronisation. */
struct stage_end {
    double sync_s, optimizer_s;
    int experts_unmeasured, sync_unmeasured;
};

/** What the last exchange changed, as it was before. */
struct journal {
    int n_slots, n_sends, n_replicas;
    struct {
        int at; /* in replicas.slot */
        struct slot_time time;
    } * slot; /* [pp * dp] */
    struct {
        int k, unmeasured;
        double there_s, back_s;
    } * sends;                   /* [(pp + 1) * dp] */
    int *replica;                /* [dp] which */
    double *end_s;               /* [dp * pp] */
    struct stage_end *stage_end; /* [pp] */
    double tied_s;
    int unmeasured;
    struct costmodel_price price;
    bool idle; /* all is placed anew, which is never taken back: nothing is noted */
};

/** Numbers of what is to be repriced. */
struct touched {
    int n, *list;
    bool *is; /* by number: is it on the list? */
};

/** Slots are numbered stage by stage, as their ranks are: stage * dp + d.  The sends of
 *  slot [stage, d] to the next stage have its number; row pp is tied embeddings', from the
 *  last stage to the first. */
struct costmodel_state {
    struct terms t;
    struct costmodel_problem problem; /* of t, with the layers copied */
    struct workload_config config;
    int n, nodes;
    int *layers, *gpu;
    struct replicas r;
    struct slot_time *begun;     /* [dp] scratch of costmodel_state_begun_s */
    struct stage_end *stage_end; /* [pp] */
    double *latest_s, *sum_s;    /* [pp] scratch */
    double *lane_s; /* [world] published models: sends of each rank to the next stage */
    double *pipe_s; /* [dp] their slowest sum down a replica */
    double tied_s;
    struct costmodel_price most; /* costmodel_state_limit */
    int *slot_node;              /* [pp * dp] the slot's node, or SPREAD */
    int *tp_share;               /* [pp * nodes] TP groups that cross nodes */
    int *flows_out, *flows_in;   /* [(pp + 1) * nodes] of all replicas' sends */
    unsigned *stamp;             /* [(pp + 1) * nodes] exchange that last changed flows */
    int *sends_unmeasured;       /* [(pp + 1) * dp] */
    struct touched slots, sends; /* [pp * dp], [(pp + 1) * dp] */
    bool *stage_dirty;           /* [pp] some slot of it is touched */
    bool *boundary_dirty;        /* [pp + 1] some sends of it are */
    bool *crossing;              /* [pp] counts of TP groups that cross nodes changed */
    bool *replica_dirty;         /* [dp] */
    unsigned exchanges;          /* so far, for stamp[] */
    int unmeasured;              /* links, of everything that is priced */
    struct costmodel_price price;
    struct journal was;
};

/** Where sends k are in send_s and return_s. */
static inline int sends_at (const struct costmodel_state *s, int k)
{
    int row = k / s->t.dp, d = k % s->t.dp;

    return row == s->t.pp ? k : d * s->t.pp + row;
}

/** Note a number that is to be repriced.  @return was it not touched yet? */
static inline bool touch (struct touched *x, int number)
{
    if (x->is[number])
        return false;
    x->is[number] = true;
    x->list[x->n++] = number;
    return true;
}

/** Nothing is touched any more. */
static inline void forget (struct touched *x)
{
    while (x->n > 0)
        x->is[x->list[--x->n]] = false;
}

/** Do two slots take as long in a pipeline? */
static inline bool same_times (const struct slot_time *a, const struct slot_time *b)
{
    return a->fwd_s == b->fwd_s && a->back_s == b->back_s && a->weight_s == b->weight_s &&
           memcmp (&a->embedding, &b->embedding, sizeof a->embedding) == 0 &&
           memcmp (&a->head, &b->head, sizeof a->head) == 0;
}

/* ---- state_play.c ---- */

/** The largest end decides; the others count a little, so that a search sees a way where
 *  the largest alone is flat. */
#define SMOOTH_WEIGHT 0.02

/** What follows a stage's last backward. */
double stage_tail_s (const struct costmodel_state *s, int stage);

/** Play the dirty replicas and price the whole; where it is above s->most, only so far. */
void play_replicas (struct costmodel_state *s);

/* ---- state_journal.c ---- */

/** @return ST_OK or ST_NOMEM; its arrays are freed with the state in any case */
enum status journal_init (struct costmodel_state *s, struct error *err);

/** Forget what was before: what is repriced from now on is one exchange's. */
void journal_begin (struct costmodel_state *s);

/** Note what is about to be repriced, each at most once: slot[at], sends k, the ends of
 *  replica d. */
void journal_slot (struct costmodel_state *s, int at);
void journal_sends (struct costmodel_state *s, int k);
void journal_replica (struct costmodel_state *s, int d);

/** Put all times and the price back as they were at journal_begin. */
void journal_restore (struct costmodel_state *s);

#endif
