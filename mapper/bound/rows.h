/* What is certain of one stage of a bound_pipeline, for by_end.c alone. */
#ifndef MAPPER_BOUND_ROWS_H
#define MAPPER_BOUND_ROWS_H

#include "mapper/bound/by_end.h"

/** What of a layer's work: INPUT is the backward without what zero-bubble schedules put
 *  off. */
enum part { FORWARD, BACKWARD, INPUT, N_PARTS };

/** Least seconds of n layers as a function of n: the larger of n slope - slack, with the
 *  slack of where they start, and n least_slope, the cheaper kind alone. */
struct layer_cost {
    double dense_s, expert_s; /* of a model without a pattern */
    double slope, least_slope;
    double slack; /* of a pattern, wherever it starts */
};

/** How a stage is placed: its TP groups, and the way of its experts or NULL. */
struct stage_placing {
    enum tp_span span;
    const struct bound_experts *experts;
};

/** All ways to place a stage for which its TP groups may be placed in the ways span[].
 *  @return how many */
#define PLACINGS_MAX (EXPERT_WAYS * SPANS)
int rows_placings (const struct bound_pipeline *x, const bool span[SPANS],
                   struct stage_placing out[PLACINGS_MAX]);

/** Does a group of that stage span nodes in this replica?  One alone may be in another than slow
 *  slots. */
bool rows_span (const struct bound_pipeline *x, struct stage_placing placing);

/** May TP groups of stage k be so, by what is told of a stage with few of them on some node or with
 *  one that spans nodes? */
bool rows_may_span (const struct bound_pipeline *x, int k, enum tp_span span);

/** May stage k be on that kind of slot? */
static inline bool rows_may_be (const struct bound_pipeline *x, int k, int kind)
{
    return x->run == 0 || kind == ((k - x->run_first + x->p) % x->p < x->run);
}

/** What is known of the boundary after stage k, the last one's to the first: a way of it takes so
 *  long at least, or 0. */
static inline double rows_apart_s (const struct bound_pipeline *x, int k)
{
    return k == x->few || (k + 1) % x->p == x->few ? 0.0 : x->apart_s;
}

/** How many of stage k's layers its chunk c has. */
static inline int rows_chunk_layers (const struct bound_pipeline *x, int k, int layers,
                                     int c)
{
    return workload_chunk_layers (layers, x->v, c,
                                  workload_spares_last (x->schedule, x->p, k));
}

static inline int rows_first_share (const struct bound_pipeline *x)
{
    return workload_first_share (x->schedule, x->v, x->unit);
}

/** A pipeline whose stage 0 is placed in one way. */
struct pipeline_case {
    const struct bound_pipeline *x;
    struct layer_cost part[2][N_PARTS]; /* by kind of slot */
    double all_s[N_PARTS];              /* all layers once, on any slots */
    double more_s[N_PARTS];             /* a layer on a slow slot, beyond any */
    bool alike;                         /* all layers of the model take as long */
    bool split;                         /* weights' gradients are put off */
    bool v_shaped;
    struct stage_placing first; /* stage 0 */
    /* that any other stage may be placed in */
    struct stage_placing placing[PLACINGS_MAX];
    int n_placings;
    bool spans; /* a group that spans nodes, and is paid for, may save crossings */
    /* all boundaries once in one direction, where more is known; or 0 */
    double row_sends_s;
    /* All layers once, forward and backward, on the slots of this replica, beyond any slots, where
     * it is known. */
    double way_more_s[N_PARTS];
    int slow_layers; /* on slow slots, at least: raised as more is known */
    /* [p] 1F1B: a micro-batch on all stages above each at most, for the end that was asked for
     * (rows_put_above); NULL: not told. */
    double *above_s;
    int *work; /* [2 * p] of by_end.c; NULL for the loose bound */
    /* Where a stage's one TP group that spans nodes may be in another replica than the slow slots:
     * one without these.  NULL: not asked for. */
    const struct pipeline_case *calm;
};

/** n layers in a row of which the first is layer `start` of the model or a later one take at
 *  least n mean_s - slack: the first dense_layers have no experts, of the others every
 *  expert_every-th has. */
static inline double rows_slack (const struct pipeline_case *pc,
                                 const struct layer_cost *l, int start)
{
    const struct workload_model *m = pc->x->model;
    int more = m->dense_layers > start ? m->dense_layers - start : 0;

    if (pc->alike)
        return 0.0;
    if (m->pattern[0])
        return l->slack;
    if (l->expert_s > l->dense_s)
        return (l->expert_s - l->dense_s) * (more + m->expert_every - 1) /
               m->expert_every;
    return (l->dense_s - l->expert_s) * (m->expert_every - 1) / m->expert_every;
}
void rows_init (struct pipeline_case *pc, const struct bound_pipeline *x,
                struct stage_placing first, int *work);

/** 1F1B: what the stages above each take at most for a micro-batch, if the pipeline ends by then.
 *  Rows are then those of an end by then alone.
 *  @param[out] above_s  [p]; in use until the next call or rows_init */
void rows_put_above (struct pipeline_case *pc, double end_s, double *above_s);

/** The end that stage k decides when it holds so many layers on a kind of slot and the
 *  stages after it at most `below`: stage 0's, or, where weights' gradients are put off,
 *  the stage's own with what follows it. */
double rows_end_s (const struct pipeline_case *pc, int k, int kind, int layers,
                   int below);

/** When does the pipeline end, and the step? */
struct rows_times {
    double end_s, step_s;
};

/** The most layers, in whole chunks, that stage k can hold for both; 0: none (rows_most.c).
 *  @param[in] near  what they may be, where it looks first */
int rows_most_layers (const struct pipeline_case *pc, int k, int kind, int below,
                      const struct rows_times *then, int near);

/** The least step that stage k's own end allows with what follows it, or any up to `enough` where
 *  there is one: stage 0 placed as the case has it, others in the best of all ways.
 *  @param bare  without what follows the stage's end */
double rows_step_s (const struct pipeline_case *pc, int k, int kind, int layers,
                    int below, bool bare, double enough);

/** The same, when it ends at `end` or later, over the ways in which that is below `most`, INFINITY
 *  where none is; and what these let a layer of the stage take more at least, in every replica. */
double rows_step_below (const struct pipeline_case *pc, int k, int kind, int layers,
                        int below, double end, double most, struct both_ways *more);

/** What a layer of stage k takes more in such a way, in the mean of so many, in a replica that has
 *  as many slow slots as any has at least. */
struct both_ways rows_layer_more (const struct pipeline_case *pc, int k, int kind,
                                  double layers, struct stage_placing placing);

/** What follows stage k's end, when a micro-batch takes so long there at most: more with more
 *  layers. */
double rows_tail_under_s (const struct pipeline_case *pc, int k, int kind, double layers,
                          struct stage_placing placing, double under_s);

/** The same when stage k ends by then: the end and it together are more with more layers. */
double rows_tail_s (const struct pipeline_case *pc, int k, int kind, double layers,
                    struct stage_placing placing, double end);

/** A micro-batch's whole way down and up. */
double rows_around_s (const struct pipeline_case *pc);

/** The layers of stage k for one micro-batch: in the mean of these more with more of them. */
double rows_layers_s (const struct pipeline_case *pc, enum part part, int k, int kind,
                      double layers);

/** One micro-batch on stage k. */
double rows_micro_s (const struct pipeline_case *pc, int k, int kind, double layers);

/** What stage k takes in row (1) with no layers anywhere. */
double rows_fixed_s (const struct pipeline_case *pc, int k);

#endif
