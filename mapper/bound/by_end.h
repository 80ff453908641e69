/* Lower bounds of the schedules other than 1F1B and GPipe: interleaved, and the
 * zero-bubble ones. */
#ifndef MAPPER_BOUND_BY_END_H
#define MAPPER_BOUND_BY_END_H

#include "mapper/bound/bound.h"

/** Seconds of a micro-batch in each direction. */
struct both_ways {
    double fwd_s, back_s;
};

/** One layer for one micro-batch, at best. */
struct bound_layer {
    double fwd_s, back_s;
    double input_s; /* backward without what zero-bubble schedules put off */
};

/** What is known of a stage's TP groups: all lie inside nodes; one of some replica spans
 *  nodes; all do. */
enum tp_span { SPAN_NONE, SPAN_ONE, SPAN_ALL, SPANS };

/** What follows a stage's last backward at best, linear in the stage's layers, and what a
 *  TP group that spans nodes adds to a layer. */
struct stage_tail {
    struct both_ways span;
    double sync_layer_s[SPANS], sync_fixed_s[SPANS]; /* synchronisation */
    double layer_s, fixed_s; /* what nothing hides: optimiser, tied */
    /* More for each layer that is known to have experts */
    double expert_sync_s[SPANS], expert_s;
};

/** A stage of one replica, at best. */
struct bound_slot {
    struct bound_layer layer[WORKLOAD_KINDS]; /* by workload_kind_of; of a kind that the
                                                 model has not, another one's */
    double micro_s; /* half of what every micro-batch costs a stage */
    double tp_s;    /* the all-reduce of the embedding, and that of the head */
    double embed_fwd_s, embed_back_s;
    double head_fwd_s, head_back_s, head_input_s;
    /* Stage 0's tail, with the embedding; the last one's, with the head; and others'. */
    struct stage_tail first, last, other;
};

/** What a way to place a stage's experts adds: to a layer, and to synchronisation. */
#define EXPERT_WAYS 8
enum slot_kind { ANY_SLOT, SLOW_SLOT, ON_NEEDED, SLOT_KINDS };
struct bound_experts {
    struct both_ways more[SLOT_KINDS];
    double sync_layer_s[SLOT_KINDS], sync_fixed_s[SLOT_KINDS];
    bool many;            /* not where the stage has few TP groups on some node */
    struct both_ways few; /* of a layer, there */
};

/** What of a micro-batch's work on a stage hides its synchronisation, where the slowest GPU of the
 *  stage is of some class. */
#define HIDING_CLASSES 8
struct bound_hiding {
    double least_s; /* a layer takes so long at least */
    double layer_s; /* and hides so much at most */
    /* What else a stage has, and the one with the embedding and with the head */
    double fixed_s, embedding_s, head_s;
};

/** A configuration with every time at its best. */
struct bound_pipeline {
    const struct workload_model *model;
    const struct workload_profile *profile;
    enum workload_schedule schedule;
    int m, p, v; /* micro-batches, stages, chunks of a stage */
    /* A stage's layers come in multiples of `unit`, `least` or more: v and v where all its
     * chunks hold as many, 1 where some may hold one more than others. */
    int unit, least;
    int slow; /* of one replica, so many stages at least are on slow slots */
    /* The replica is told by something else, so that a TP group that spans nodes may be in another
     * one though no slot is slow. */
    bool told;
    /* Where it is known which: `run` stages from stage run_first on, going round from the last to
     * the first, and no others; 0: any. */
    int run_first, run;
    struct bound_slot slot[2]; /* any, and a slow one: nowhere less */
    /* Where has_on is set, stage `on` synchronises as slot on_slot does, or longer, in every
     * replica: some rank of it is on a badly linked node. */
    bool has_on;
    int on;
    struct bound_slot on_slot;
    /* Where has_few is set, stage `few` has few TP groups on some node: it synchronises as slot
     * few_slot does, or longer, in every replica.  With few_spans one spans nodes instead. */
    bool has_few, few_spans;
    int few;
    struct bound_slot few_slot;
    double
        apart_s; /* where it alone does: what boundaries between others take one way; or 0 */
    bool span[SPANS];       /* which are possible for a stage */
    bool first_span[SPANS]; /* and for stage 0 */
    /* One boundary in one direction: anywhere, and between nodes where a node holds at most
     * per_node stages of a pipeline; per_node 0: any number. */
    double any_s, cross_s;
    int per_node;
    /* Ways to place a stage's experts where its TP groups lie inside nodes, and where some span
     * them: beside each other, not beside what is above.  0: nothing is added. */
    struct bound_experts experts[SPANS][EXPERT_WAYS];
    int n_experts[SPANS];
    int dense_first; /* layers of the model, which have none: of others alone they are told */
    double pair_s[2][2]; /* one in one direction by the kinds of its slots, where those of
                            the first kind are not slow */
    double known_s;      /* a bound that is known: it may stand for any lower one; or 0 */
    double most_s;       /* up to which it is told: a higher one may be any beyond */
    long *work; /* operations that may yet be played out at the closest level; or NULL */
    double hides; /* times of one micro-batch that can hide synchronisation */
    double bare;  /* the part of it that nothing hides */
    struct bound_hiding hiding[HIDING_CLASSES]; /* by class */
    int n_hiding[SPANS];                        /* classes; 0: it is not told */
    bool hides_more; /* may a layer hide more than it takes, so that fewer end later? */
    const int *cap;  /* [2 * p] most layers in memory, on any slot and on a slow one;
                            or NULL */
};

/** A number that no placement beats with any split of the layers into such chunks.
 *
 *  @param how  over fractions of layers; over whole ones within `cap`; and splits played out
 *  @return INFINITY where no such split fits the caps */
double bound_by_end (const struct bound_pipeline *x, enum bound_level level);

/** The split that the tight bound comes from, nearly, for schedules that do not put
 *  weights' gradients off.
 *
 *  @param[out] layers  [p] multiples of unit
 *  @param[out] slow    [p] is the stage on slow slots?
 *  @return false when there is none, or no memory */
bool bound_by_end_split (const struct bound_pipeline *x, int *layers, bool *slow);

#endif
