/* Shared by the files of the lower bound alone: bound.c (cases and kinds of slots),
 * bound_best.c (every time at its best), bound_links.c (the links), bound_experts.c;
 * 1F1B's and GPipe's rows (bound_fractions.c) and layers to stages (bound_stages.c);
 * bound_pipeline.c, which makes of all that what bound_schedule.c takes. */
#ifndef MAPPER_BOUND_BOUND_PRIVATE_H
#define MAPPER_BOUND_BOUND_PRIVATE_H

#include "mapper/bound/bound.h"
#include "mapper/bound/schedule.h"

/** Seconds of one micro-batch on a slot at best. */
struct slot_pace {
    double fwd_s, back_s; /* per layer, of the cheaper kind */
    double micro_s;       /* half of what every micro-batch costs a stage */
    double embed_fwd_s, embed_back_s, head_fwd_s, head_back_s;
};

/** Everything of a configuration at its best. */
struct best {
    int m, p, layers;
    struct slot_pace slot[2]; /* of any slot; of a slow one */
    double more_s;    /* all layers once, forward and backward, beyond as many of the
                         cheaper kind */
    double send_s[3]; /* bound_sends */
    double pair_s[2]
                 [2]; /* a boundary's sends, there and back, by the kinds of its slots */
    /* Added per layer of a stage whose TP group spans, by kind of slot */
    double span_fwd_s[2], span_back_s[2];
    double tp_s[2], fwd_ops, back_ops; /* one all-reduce of a slot; fewest of a layer */
    double first_fwd_s, first_back_s;  /* added per layer of stage 0: its exchanges */
    /* Stage 0's on either kind of slot */
    double sync_layer_s[2][BOUND_WAYS], sync_fixed_s[2][BOUND_WAYS];
    double tail_layer_s[2], tail_fixed_s[2]; /* what nothing hides: optimiser, tied */
    const struct workload_profile *profile;
    double hides; /* times of one micro-batch that can hide the synchronisation */
    bool gpipe;
    bool total_only; /* of this schedule only a stage's total work is known to hold */
};

/** One case: how stage 0's layers are priced. */
struct pace {
    const struct best *b;
    enum bound_way way;
    bool span;      /* stage 0's TP group spans in this replica */
    int slow;       /* at least so many stages of this replica are on slow slots */
    const int *cap; /* [2 * p] most layers in memory, on any slot and on a slow one; or
                       NULL */
};

/* ---- bound.c ---- */

/** A configuration at its best, its slots divided into those without a GPU of class `from`
 *  or slower and the others; not divided for 0.
 *  @param[in]  cap       [2 * pp] as bound_caps leaves it, or NULL
 *  @param[out] pipeline  the same for bound_schedule.h, or NULL
 *  @return struct pace's `slow` */
int bound_divided (const struct pool *pool, const struct workload_config *c, int from,
                   const int *cap, struct best *b, struct bound_pipeline *pipeline);

/** Most layers of each stage in the memory of any class, and of those from `from` on (with
 *  `spans`, of any too).
 *  @param[in]  caps  as pool_memory_fits leaves it
 *  @param[out] cap   [2 * pp] */
void bound_caps (const struct pool *pool, int pp, int from, bool spans, const int *caps,
                 int *cap);

/* ---- bound_links.c ---- */

/** The best links that there are, or those that a slow slot touches. */
struct best_rates {
    struct best_link inside, between;
    double node_bytes_per_s, nvls;
};
struct best_rates bound_rates (const struct pool *pool, int from);

/** One TP all-reduce inside a node and across nodes; INFINITY where impossible. */
void bound_tp (const struct pool *pool, const struct best_rates *r,
               const struct workload_config *c, const struct costmodel_volume *v,
               double *inside, double *across);

/** The same on at least so many nodes. */
double bound_tp_across (const struct pool *pool, const struct best_rates *r,
                        const struct workload_config *c, const struct costmodel_volume *v,
                        int least_nodes);

/** The sends of a pipeline, there and back: of each boundary, beyond that of each that
 *  crosses nodes, and how many stages at most share a node (0: no crossing is certain). */
void bound_sends (const struct pool *pool, const struct workload_config *c,
                  const struct costmodel_volume *v, double inside, double across,
                  double send_s[3]);

/** By the kinds of the two slots, when the slow ones have a GPU of class `from` or slower;
 *  0: all alike. */
void bound_pairs (const struct pool *pool, const struct workload_config *c,
                  const struct costmodel_volume *v, int from, double pair_s[2][2]);

/** Sends between `stages` consecutive stages, there and back, by how many nodes they need;
 *  and at least, when `slow` of them or more are on slow slots. */
double bound_sends_s (const struct best *b, int stages);
double bound_slow_sends_s (const struct best *b, int stages, int slow);

/** Context parallelism per layer, not hidden by the attention. */
void bound_cp (const struct pool *pool, const struct workload_config *c,
               const struct costmodel_volume *v, double attention_fwd_s,
               double attention_back_s, double *fwd_s, double *back_s);

/** Synchronisation of stage 0 per parameter, and its fixed part, when a node can hold
 *  `per_node` of a group's n members and `share` groups leave it together. */
void bound_sync (const struct pool *pool, const struct best_rates *r, int n,
                 const struct costmodel_volume *v, int per_node, double share,
                 double *per_param, double *fixed);

/** The same when some node holds no more than `lanes` of them. */
void bound_sync_lanes (const struct pool *pool, const struct best_rates *r, int n,
                       const struct costmodel_volume *v, int per_node, int lanes,
                       double share, double *per_param, double *fixed);

/** All-reduce of tied embeddings. */
double bound_tied_s (const struct pool *pool, double bytes);

/* ---- bound_experts.c ---- */

/** One all-to-all of experts, wherever the group's ranks are; 0 where there is none. */
double bound_exchange_s (const struct pool *pool, const struct workload_config *c,
                         const struct costmodel_volume *v);

/** A way to place the experts of a stage, at best. */
struct expert_way {
    double exchange_s;         /* one all-to-all */
    double per_param, start_s; /* their synchronisation */
};

/** All of them: what exchanges on one node is synchronised across nodes, and the other way
 *  round.  Several that are much alike may be in one. */
struct expert_ways {
    int n;
    struct expert_way way[EXPERT_WAYS];
    struct expert_way least; /* every figure at its least over them */
};

/** @param[in] whole  all TP groups of the stage lie inside nodes */
void bound_expert_ways (const struct pool *pool, const struct workload_config *c,
                        const struct costmodel_volume *v, bool whole,
                        struct expert_ways *out);

/** Is some way of a below all of b in something? */
bool bound_ways_differ (const struct expert_ways *a, const struct expert_ways *b);

/* ---- bound_best.c ---- */

/** The least of each compute term over some classes; in place of what zero-bubble schedules
 *  put off (weight_s, head_weight_s), the rest of backward. */
struct least_compute {
    struct costmodel_compute k;
    double speed;
    double attention_fwd_s, attention_back_s; /* the largest: what hides CP */
};

/** A configuration at its best, and what tells its slots apart. */
struct bests {
    struct best b;
    struct least_compute all;
    double inside, across;
    double cp_fwd_s, cp_back_s;
    struct costmodel_volume volume;
    /* Experts. */
    double exchange_s;              /* their all-to-all, wherever they are */
    double expert_params;           /* of a layer's experts on a rank */
    double expert_share;            /* of stage 0's layers that have them, where known */
    struct expert_ways whole, span; /* stage 0's TP groups inside nodes; any */
    bool span_helps;                /* has the second what the first has not? */
};
void bests_init (const struct pool *pool, const struct workload_config *c,
                 struct bests *x);

/** Slow slots: those with a GPU of class `from` or slower, or, with `spans`, those whose
 *  groups span nodes too. */
struct slow_slots {
    int from;
    bool slower, spans; /* can a slot be slow for its GPUs, for its links? */
    struct least_compute k;
    double tp_s;
    struct best_rates rates;
};
void slow_slots_init (const struct pool *pool, const struct workload_config *c,
                      const struct bests *x, int from, bool spans, struct slow_slots *s);

/** Put the slow slots into b: of a layer, the kind where it takes least more. */
void slow_slots_put (const struct pool *pool, const struct workload_config *c,
                     const struct bests *x, const struct slow_slots *s, struct best *b);

/** One layer of a kind, with its all-reduces and all-to-alls; input_s: back_s without what
 *  zero-bubble schedules put off. */
struct layer_pace {
    double fwd_s, back_s, input_s, fwd_ops, back_ops;
};

/** @param tp_s, exchange_s  one all-reduce, one all-to-all */
struct layer_pace bests_layer (const struct mapper_problem *p,
                               const struct workload_config *c,
                               const struct costmodel_compute *k, bool expert,
                               double tp_s, double exchange_s);

/** What a layer of a kind takes more on a slow slot than on any. */
struct layer_pace slow_slots_more (const struct pool *pool,
                                   const struct workload_config *c, const struct bests *x,
                                   const struct slow_slots *s, bool expert);

/** How many layers of the model have experts, or have none? */
int count_layers (const struct workload_model *m, bool expert);

/** What a layer takes more when its group spans nodes, at across_s an all-reduce. */
void best_set_spans (double across_s, struct best *b);

/** Parameters of stage 0 on a rank, at least: of a layer (of one with experts what it holds
 *  beside the routed ones), and fixed. */
void bests_first_params (const struct pool *pool, const struct workload_config *c,
                         double *layer, double *fixed);

/** Synchronisation of a stage's data-parallel groups per parameter, and its start.  Where
 *  TP groups span, a node may hold more ranks of one than TP groups fit it, though the
 *  node with the fewest does not. */
void bests_sync_of (const struct pool *pool, const struct best_rates *r,
                    const struct workload_config *c, const struct costmodel_volume *v,
                    enum bound_way way, double *each, double *start);

/** Is synchronisation hidden under more of a stage's work than every end contains? */
bool sync_is_hidden (const struct workload_config *c);

/** Synchronisation of stage 0 out of its seconds per parameter and its start, the experts'
 *  at their least. */
void bests_sync (const struct pool *pool, const struct workload_config *c,
                 const struct bests *x, double each, double start, int kind,
                 enum bound_way way, struct best *b);

/** Seconds that experts add to stage 0's synchronisation, as far as its layers with them
 *  are known. */
void bests_experts_sync (const struct workload_config *c, const struct bests *x,
                         const struct expert_way *w, double *layer_s, double *fixed_s);

/** What a layer of stage 0 takes more for its exchanges than one anywhere. */
void bests_exchanges_more (const struct workload_config *c, const struct bests *x,
                           const struct expert_way *w, double *fwd_s, double *back_s);

/** Does it pay to look at each way to place stage 0's experts? */
bool experts_told_apart (const struct workload_config *c, const struct bests *x,
                         bool tight);

/* ---- bound_pipeline.c ---- */

/** A configuration as bound_schedule.c takes it, with so many stages of a replica on slow
 *  slots.  Experts add nothing yet.
 *  @param[in] slots  unused for 0 slow stages */
struct bound_pipeline bound_pipeline_of (const struct pool *pool,
                                         const struct workload_config *c,
                                         const struct bests *x, const struct best *b,
                                         const struct slow_slots *slots, int slow,
                                         const int *cap);

/** Its bound by bound_schedule.c, over all ways to place stage 0 and the experts. */
double bound_by_schedule (const struct pool *pool, const struct workload_config *c,
                          const struct bests *x, const struct best *b,
                          const struct slow_slots *slots, int slow, const int *cap,
                          enum bound_how how);

/* ---- bound_fractions.c ---- */

/** One stage on one kind of slot: fixed part and per layer. */
struct stage_line {
    double fwd_s, back_s, layer_fwd_s, layer_back_s;
};
struct stage_line bound_line (const struct pace *x, int k, int kind);

/** How often stage k's forward counts beyond S in row (1): those left after its first
 *  backward begins; and its backward. */
void bound_row_weights (const struct best *b, int k, double *fwd, double *back);

/** M + 1 of row (2); 0 where the row does not hold. */
int bound_rounds_left (const struct best *b, int k);

/** What S holds beyond the sum of the stages' C and the sends. */
double bound_beyond (const struct best *b);

/** S when all are fast slots, with the sends that the slow ones cost. */
double bound_sum_fast (const struct pace *x);

/** The least P of the rows, and the least end of stage 0 with no slow slots. */
double bound_least_pace (const struct pace *x);
double bound_least_end (const struct pace *x);

/** How much more than at least may stage 0, with `first` layers, take in another replica
 *  that does not end later than end_s?  That replica's end is at least least_s. */
double bound_ahead (const struct pace *x, int first, double end_s, double least_s);

/** The end in the replica whose first stage spans nodes, where the slow slots are in
 *  another one; 0 elsewhere. */
double bound_span_end (const struct pace *x, int first);

/** What follows stage 0's end when it holds `first` layers on that kind of slot.
 *  @param[in] ahead  bound_ahead */
double bound_tail (const struct pace *x, double first, int kind, double ahead);

/** The least step over splits in fractions of layers. */
double bound_fractions (const struct pace *x);

/* ---- bound_stages.c ---- */

/** The least step over splits of whole layers within memory.  INFINITY: there is none; out
 *  of memory: bound_fractions. */
double bound_splits (const struct pace *x);

/** The same, knowing also the sends inside runs of stages: higher and much slower. */
double bound_runs (const struct pace *x);

/** The split that bound_splits comes from, nearly.
 *
 *  @param[out] layers  [p]
 *  @param[out] slow    [p] is the stage on slow slots?
 *  @return ST_OK, ST_NOMEM, or ST_NOFIT when there is none */
enum status bound_best_split (const struct pace *x, double *step_s, int *layers,
                              bool *slow, struct error *err);

#endif
