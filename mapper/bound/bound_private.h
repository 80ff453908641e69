/* Shared by the files of the lower bound alone: bound.c (cases and kinds of slots),
 * least.c (every time at its best), links.c (the links), experts.c;
 * 1F1B's and GPipe's rows (fractions.c) and layers to stages (recursion.c);
 * pipeline.c, which makes of all that what by_end.c takes. */
#ifndef MAPPER_BOUND_BOUND_PRIVATE_H
#define MAPPER_BOUND_BOUND_PRIVATE_H

#include "base/extremes.h"
#include "mapper/bound/bound.h"
#include "mapper/bound/by_end.h"

/** A configuration in a pool, and what its ranks send. */
struct bounded {
    const struct pool *pool;
    const struct workload_config *c;
    struct costmodel_volume volume;
};
struct bounded bounded_of (const struct pool *pool, const struct workload_config *c);

/** Groups of ranks that reduce gradients between each other under hybrid sharding; 1: none do. */
static inline int bound_copies (const struct bounded *b)
{
    return b->volume.copy_phases > 0 ? workload_shard_copies (b->c) : 1;
}

/** So much for each of several, and once. */
struct line {
    double each, fixed;
};

static inline struct line add_lines (struct line a, struct line b)
{
    return (struct line){a.each + b.each, a.fixed + b.fixed};
}

static inline struct line larger_line (struct line a, struct line b)
{
    return (struct line){larger (a.each, b.each), larger (a.fixed, b.fixed)};
}

/** Least seconds of one micro-batch on a slot. */
struct slot_times {
    double fwd_s, back_s; /* per layer, of the cheaper kind */
    double micro_s;       /* half of what every micro-batch costs a stage */
    double embed_fwd_s, embed_back_s, head_fwd_s, head_back_s;
};

/** Sends over the boundaries between a pipeline's stages, there and back. */
struct boundary_sends {
    double any_s;      /* of each boundary */
    double crossing_s; /* beyond that, of each that crosses nodes */
    double per_node;   /* stages that share a node at most; 0: no crossing is certain */
};

/** The least times of a configuration. */
struct config_times {
    int m, p, layers;          /* micro-batches, stages, the model's layers */
    struct slot_times slot[2]; /* of any slot; of a slow one */
    double dearer_s; /* all layers once, forward and backward, beyond as many of the
                         cheaper kind */
    struct boundary_sends send;
    double pair_s[2]
                 [2]; /* a boundary's sends, there and back, by the kinds of its slots */
    /* Added per layer of a stage whose TP group spans, by kind of slot */
    double span_fwd_s[2], span_back_s[2];
    /* the most that a layer of a kind takes more on a slow slot */
    struct both_ways slow_more;
    double tp_s[2], fwd_ops, back_ops; /* one all-reduce of a slot; fewest of a layer */
    double first_fwd_s, first_back_s;  /* added per layer of stage 0: its exchanges */
    /* Stage 0's on either kind of slot, and for each layer of others */
    double sync_layer_s[2][SPANS], sync_fixed_s[2][SPANS], other_layer_s[2][SPANS];
    double tail_layer_s[2], tail_fixed_s[2]; /* what nothing hides: optimiser, tied */
    /* More for each layer with experts, where a stage's number of them is not in the above */
    double expert_sync_s[2][SPANS], expert_tail_s[2];
    /* Of both, on the last of several stages */
    double head_sync_s[2][SPANS], head_tail_s[2];
    const struct workload_profile *profile;
    double hides; /* times of one micro-batch that can hide the synchronisation */
    double bare;  /* the part of it that nothing hides */
    bool gpipe;
    bool total_only; /* by_end.c alone knows this schedule */
};

/** One replica's pipeline under 1F1B or GPipe in one case: where stage 0's TP groups are, and
 *  how many stages are on slow slots. */
struct bound_case {
    const struct config_times *times;
    enum tp_span span; /* of stage 0's TP groups */
    bool spans_here;   /* one of them is in this replica, which pays for it */
    int slow;          /* at least so many stages of this replica are on slow slots */
    double known_s;    /* a bound: it may stand for any that is lower; or 0 */
    const int *cap;    /* [2 * p] most layers in memory, on any slot and on a slow one; or
                       NULL */
};

/* ---- bound.c ---- */

/** A configuration at its best, its slots divided into those without a GPU of class `from`
 *  or slower and the others; not divided for 0.
 *  @param[in]  cap       [2 * pp] as bound_caps leaves it, or NULL
 *  @param[out] pipeline  the same for by_end.h, or NULL
 *  @return struct bound_case's `slow` */
int bound_divided (const struct pool *pool, const struct workload_config *c, int from,
                   const int *cap, struct config_times *times,
                   struct bound_pipeline *pipeline);

/* ---- links.c ---- */

/** The best links that there are, or those that a slow slot touches. */
struct link_rates {
    struct best_link inside, between;
    double node_bytes_per_s, nvls;
};
struct link_rates link_rates_of (const struct pool *pool, int from);

/** Those that touch a GPU of that class. */
struct link_rates link_rates_of_class (const struct pool *pool, int class);

/** One TP all-reduce inside a node, across nodes, and the less of the two; INFINITY where
 *  impossible. */
struct tp_times {
    double inside, across, least;
};
struct tp_times bound_tp (const struct bounded *b, const struct link_rates *r);

/** The boundaries of a pipeline, at one TP collective inside a node and across nodes. */
struct boundary_sends bound_sends (const struct bounded *b, double inside, double across);

/** By the kinds of the two slots, when the slow ones have a GPU of class `from` or slower;
 *  0: all alike. */
void bound_pairs (const struct bounded *b, int from, double pair_s[2][2]);

/** Sends between `stages` consecutive stages, there and back, by how many nodes they need;
 *  and at least, when `slow` of them or more are on slow slots. */
double bound_run_sends_s (const struct config_times *times, int stages);
double bound_slow_run_sends_s (const struct config_times *times, int stages, int slow);

/** Context parallelism per layer, not hidden by the attention. */
struct both_ways bound_cp (const struct bounded *b, struct both_ways attention);

/** Synchronisation of stage 0 for each parameter, and its fixed part, when a node can hold
 *  `per_node` of a group's n members, each `each` of its GPUs, some node no more than `lanes` of
 *  them, and `share` groups leave it together. */
struct line bound_sync (const struct bounded *b, const struct link_rates *r, int n,
                        int each, int per_node, int lanes, double share);

/** The same under hybrid sharding: of a group's n ranks, which shard, and of those that hold the
 *  same, which reduce gradients with each other.  Groups are on one node each, whose ranks leave it
 *  together to reduce with others, or some group is on several. */
struct line bound_hybrid_sync (const struct bounded *b, const struct link_rates *r, int n,
                               int each, int per_node, int lanes, int share);

/** Of the rings of n members through a TP group that is on one node, on which there are so many
 *  GPUs, those that leave it and share what it reaches, at least; 1: no more are certain.
 *  @param[in] rings  that different ranks of the group are in */
int bound_rings_through (int gpus, int tp, int rings, int n);

/** The same when its ring must leave a node with so much for it. */
struct line bound_sync_through (const struct bounded *b, const struct link_rates *r,
                                int n, int per_node, double bytes_per_s);

/** One boundary in one direction. */
double bound_flow_s (const struct bounded *b, double bytes_per_s, double latency_s);

/** Where the first stage and the last one have the same embedding: is every rank of the first
 *  on the node of its twin, or some rank not?  ANY: either, at the best of both. */
enum twins { TWINS_ANY, TWINS_APART, TWINS_TOGETHER };

/** All-reduce of tied embeddings. */
double bound_tied_s (const struct pool *pool, double bytes, enum twins twins);

/* ---- experts.c ---- */

/** One all-to-all of experts, wherever the group's ranks are; 0 where there is none. */
double bound_exchange_s (const struct bounded *b);

/** The same of a group with ranks of a TP group that spans nodes. */
double bound_exchange_spanning_s (const struct bounded *b);

/** A way to place the experts of a stage, at best. */
struct expert_way {
    double exchange_s; /* one all-to-all */
    struct line sync;  /* for each parameter */
    int low, high;     /* of a group are on a rank's node, with itself */
    int unit;          /* GPUs of a node that each of them takes */
};

/** All of them: what exchanges on one node is synchronised across nodes, and the other way
 *  round.  Several that are much alike may be in one. */
struct expert_ways {
    int n;
    struct expert_way way[EXPERT_WAYS];
    struct expert_way least; /* every figure at its least over them */
};

/** @param[in] span  where the stage's TP groups are */
struct expert_ways bound_expert_ways (const struct bounded *b, enum tp_span span);

/** One all-to-all in such a way of a rank with no better a link to other nodes. */
double bound_exchange_through_s (const struct bounded *b, const struct expert_way *w,
                                 double bytes_per_s);

/** And of a rank whose node has so many TP groups of its stage. */
double bound_exchange_few_s (const struct bounded *b, int groups);

/** Is some way of a below all of b in something? */
bool bound_ways_differ (const struct expert_ways *a, const struct expert_ways *b);

/* ---- least.c ---- */

/** One layer of a kind, with its all-reduces and all-to-alls; input_s: back_s without what
 *  zero-bubble schedules put off. */
struct layer_times {
    double fwd_s, back_s, input_s, fwd_ops, back_ops;
};

/** The least of each compute term over some classes; in place of what zero-bubble schedules
 *  put off (weight_s, head_weight_s), the rest of backward. */
struct least_compute {
    struct costmodel_compute k;
    double speed;
    /* Each class with the links that its GPUs have, which makes an all-reduce so long beside the
     * least of compute alone. */
    struct layer_times layer[WORKLOAD_KINDS];
    double tp_s;
    struct both_ways attention; /* the largest: what hides CP */
};

/** A configuration at its best, and what tells its slots apart. */
struct least_terms {
    struct bounded b;
    enum twins twins;
    double known_s;         /* nor is one below that, and it may stand for that */
    double most_s;          /* a bound beyond that is of no use */
    long *work;             /* as in struct bound_pipeline */
    bool closer;            /* is more work in place for a closer bound? */
    enum bound_level level; /* how closely? */
    const int *caps;        /* as pool_memory_fits leaves it; NULL: memory left aside */
    int *cap;               /* [2 * pp] as bound_caps leaves it; or NULL */
    const struct on_needed *on;   /* a stage of which more is known; or NULL */
    const struct few_groups *few; /* another one, or the same; or NULL */
    struct boundary_sends apart;  /* where stages are on nodes of their own; or 0 */
    struct config_times times;
    struct least_compute all;
    struct tp_times tp;
    struct both_ways cp;
    /* Experts. */
    double exchange_s;    /* their all-to-all, wherever they are */
    double spanning_s;    /* the same with a TP group that spans nodes */
    double expert_params; /* of a layer's experts on a rank */
    double expert_share;  /* of stage 0's layers that have them, where known */
    /* Of a stage's layers beyond the first ones of the model, which may have none, such a part has
     * them: the same part, or all. */
    double told_share;
    int dense_first;
    struct expert_ways ways[SPANS]; /* by where stage 0's TP groups are */
    bool span_helps;                /* has the second of these what the first has not? */
};
void least_terms_init (const struct pool *pool, const struct workload_config *c,
                       enum twins twins, struct least_terms *x);

/** Where no TP group spans nodes. */
void least_terms_keep_inside (struct least_terms *x);

/** How far layers of one class after the other are from taking longer each time. */
double bound_disorder_s (const struct pool *pool, const struct workload_config *c);

/** Are the pool's classes by their links the closer order, in which layers take longer from class
 *  to class?  With TP the faster GPUs may be those with the better links. */
bool bound_links_order (const struct pool *pool, const struct workload_config *c);

/** One micro-batch's compute in all layers of the model, each on the GPUs that are fastest with
 *  it. */
double least_work_s (const struct pool *pool, const struct workload_config *c);

/** The boundaries between stages at their best, by the kinds of their slots, at one TP collective
 *  inside a node. */
void least_terms_put_sends (const struct least_terms *x, double inside, int from,
                            struct config_times *times);

/** Slow slots: those with a GPU of class `from` or slower, or, with `spans`, those whose
 *  groups span nodes too; or those with a whole TP group on a badly linked node (`on`). */
struct slow_slots {
    struct needed_node *on; /* or NULL */
    int run_first, run;     /* as in struct bound_pipeline: the stages that are on it */
    double known_s; /* a bound that is known: it may stand for any that is lower; or 0 */
    int from;
    bool slower, spans; /* can a slot be slow for its GPUs, for its links? */
    bool alike;         /* neither: only what follows its end is slow */
    struct least_compute k;
    double tp_s;
    struct link_rates rates;
};
void slow_slots_init (const struct least_terms *x, int from, bool spans,
                      struct slow_slots *s);

/** Those whose slowest GPU is of that class. */
void slow_slots_of_class (const struct least_terms *x, int class, struct slow_slots *s);

/** Put the slow slots into the times: of a layer, the kind where it takes least more. */
void slow_slots_put (const struct least_terms *x, const struct slow_slots *s,
                     struct config_times *times);

/** What a layer of a kind takes more on a slow slot than on any. */
struct layer_times slow_slots_more (const struct least_terms *x,
                                    const struct slow_slots *s, int kind);

/** Parameters of stage 0 on a rank, at least: of each layer (of one with experts what it
 *  holds beside the routed ones), and fixed. */
struct line least_first_params (const struct bounded *b);

/** Synchronisation of a stage's data-parallel groups for each parameter, and its start, when
 *  each of its GPUs takes so many of a node: 2 for stage 0 together with its twins.  Where TP
 *  groups span, a node may hold more ranks of one than TP groups fit it, though the node with
 *  the fewest does not. */
struct line least_sync_terms (const struct bounded *b, const struct link_rates *r,
                              enum tp_span span, int taken);

/** Parameters of the head on a rank of the last stage; 0 where that is stage 0. */
double least_head_params (const struct bounded *b);

/** GPUs of a node that each of stage 0's takes. */
int first_takes (const struct least_terms *x);

/** Synchronisation of a stage out of its seconds for each parameter and its start, the
 *  experts' at their least; and stage 0's out of its own. */
void config_times_put_sync (const struct least_terms *x, struct line sync,
                            struct line first, int kind, enum tp_span span,
                            struct config_times *times);

/** What a stage's synchronisation takes more on the second kind of slot where experts are in this
 *  way, beyond their least. */
void config_times_put_experts (const struct least_terms *x, const struct expert_way *way,
                               enum tp_span span, struct config_times *times);

/** Seconds that experts add to a stage's synchronisation for each layer, of which such a share has
 *  them. */
struct line least_experts_sync (const struct least_terms *x, double share,
                                const struct expert_way *w);

/** What a layer takes more for its exchanges, in the mean of a stage with such a share of them, of
 *  `takes_s` each rather than `least_s`. */
struct both_ways least_exchanges_more (const struct least_terms *x, double share,
                                       double takes_s, double least_s);

/** Does it pay to look at each way to place a stage's experts? */
bool experts_told_apart (const struct least_terms *x, bool tight);

/** Most layers of each stage in the memory of any class, and of those from `from` on (with
 *  `spans`, of any too).
 *  @param[in]  caps  as pool_memory_fits leaves it
 *  @param[out] cap   [2 * pp] */
void bound_caps (const struct pool *pool, int pp, int from, bool spans, const int *caps,
                 int *cap);

/* ---- hiding.c ---- */

/** @param[out] out  [HIDING_CLASSES]
 *  @param[out] n    classes that are told, by where the stage's TP groups are; 0: nothing is */
void bound_hiding (const struct bounded *b, struct bound_hiding *out, int n[SPANS]);

/* ---- pipeline.c ---- */

/** A configuration as by_end.c takes it, with so many stages of a replica on slow
 *  slots.  Experts add nothing yet.
 *  @param[in] slots  unused for 0 slow stages */
struct bound_pipeline bound_pipeline_of (const struct least_terms *x,
                                         const struct config_times *times,
                                         const struct slow_slots *slots, int slow,
                                         const int *cap);

/** Its bound by by_end.c, over all ways to place stage 0 and the experts. */
double bound_any_schedule (const struct least_terms *x, const struct config_times *times,
                           const struct slow_slots *slots, int slow);

/* ---- kinds.c ---- */

/** The bound with the GPUs of all classes counted at once, where they are of several.
 *  @param[in] play   splits out, of a replica that has no more than its share of fast slots
 *  @param[in] least  a bound: nothing below it is looked at
 *  @param[in] most   a bound beyond that is of no use
 *  @return `least` or more */
double bound_kinds (const struct least_terms *x, bool play, double least, double most);

/** Can stages be on one node each, with all slots?  And what do boundaries take then? */
bool bound_apart_sends (const struct bounded *b, struct boundary_sends *sends);

/** The least step, from `least` on, at which so many stages can be on several nodes that sends
 *  need not take that. */
double bound_roams (const struct least_terms *x, double least);

/* ---- needed.c ---- */

/** What links a node that some rank must be on, at best. */
struct needed_node {
    /* payload of one synchronisation ring through it, by its stage's TP groups; INFINITY: none
     * needs to pass */
    double ring_bytes_per_s[SPANS];
    /* The same of experts, by their way on it, of x->ways */
    double experts_bytes_per_s[SPANS][EXPERT_WAYS];
    double one_way_bytes_per_s; /* a link out of it or into it */
    double send_s;              /* a boundary between it and another, there and back */
    /* Out of needed_node_put: those of a rank on it, where they are known */
    struct expert_ways experts[SPANS];
    bool tells_experts;
};

/** @param[in] stages  of one replica that have a whole TP group each on it
 *  @return is there one, and worse linked than others? */
bool bound_needed_node (const struct least_terms *x, int stages,
                        struct needed_node *node);

/** Slots on it into the times. */
void needed_node_put (const struct least_terms *x, struct needed_node *node,
                      struct config_times *times);

/** A stage that has a TP group on it in some replica: its rings pass the node, for all of them. */
struct on_needed {
    int stage;
    double known_s;            /* as in struct slow_slots */
    struct config_times times; /* on it */
    struct needed_node node;
};

/* ---- lanes.c ---- */

/** Have a stage's rings of synchronisation a lane at most for each of its TP groups on a node? */
bool bound_has_lanes (const struct bounded *b);

/** The boundaries where a node holds TP groups of so many stages at most, or, with `some`, of one
 *  stage of any two neighbours; and no TP group spans nodes.
 *  @return are they slower than any? */
bool bound_shared_sends (const struct bounded *b, int share, bool some,
                         struct boundary_sends *sends);

/** One way of a boundary between two stages that have more than half of each of their nodes, which
 *  a stage with few TP groups there may share. */
double bound_beside_few_s (const struct bounded *b);

/** A stage with so few TP groups on some node; or, with `spans`, one that spans nodes, of which
 *  groups and ways tell nothing. */
struct few_groups {
    int stage, groups;
    bool spans;
    double known_s;    /* as in struct slow_slots */
    int ways_from;     /* its experts are in this way or a later one */
    double exchange_s; /* one all-to-all of theirs there, at least */
    /* What boundaries between others take one way at least, where no other stage is so; or 0 */
    double apart_s;
    struct config_times times; /* its synchronisation, as that of slow slots */
};
void few_groups_init (const struct least_terms *x, int groups, double known_s,
                      struct few_groups *few);

/* ---- fractions.c ---- */

/** One stage on one kind of slot: fixed part and per layer. */
struct stage_times {
    double fwd_s, back_s, layer_fwd_s, layer_back_s;
};
struct stage_times stage_times_of (const struct bound_case *x, int k, int kind);

/** How often stage k's forward counts beyond S in row (1): those left after its first
 *  backward begins; and its backward. */
void bound_row_weights (const struct config_times *times, int k, double *fwd,
                        double *back);

/** M + 1 of row (2); 0 where the row does not hold. */
int bound_rounds_left (const struct config_times *times, int k);

/** S when all are fast slots, with the sends that the slow ones cost. */
double bound_least_way_s (const struct bound_case *x);

/** The least P of the rows, and the least end of stage 0 with no slow slots. */
double bound_least_rest_s (const struct bound_case *x);
double bound_least_end (const struct bound_case *x);

/** How much more than at least may stage 0, with `first` layers, take in another replica
 *  that does not end later than end_s?  That replica's end is at least least_s. */
double bound_ahead (const struct bound_case *x, int first, double end_s, double least_s);

/** What follows stage 0's end when it holds `first` layers on that kind of slot.
 *  @param[in] ahead  bound_ahead */
double first_tail_s (const struct bound_case *x, double first, int kind, double ahead);

/** The least step over splits in fractions of layers. */
double bound_fractions (const struct bound_case *x);

/* ---- recursion.c ---- */

/** The least step over splits of whole layers within memory.  INFINITY: there is none; out
 *  of memory: bound_fractions. */
double bound_splits (const struct bound_case *x);

/** The same, knowing also the sends inside runs of stages: higher and much slower. */
double bound_runs (const struct bound_case *x);

/** The split that bound_splits comes from, nearly.
 *
 *  @param[out] layers  [p]
 *  @param[out] slow    [p] is the stage on slow slots?
 *  @return ST_OK, ST_NOMEM, or ST_NOFIT when there is none */
enum status bound_least_split (const struct bound_case *x, double *step_s, int *layers,
                               bool *slow, struct error *err);

#endif
