/* What is certain of one stage of a bound_pipeline, for bound_schedule.c alone. */
#ifndef MAPPER_BOUND_ROWS_H
#define MAPPER_BOUND_ROWS_H

#include "mapper/bound/schedule.h"

/** What of a layer's work: INPUT is the backward without what zero-bubble schedules put
 *  off. */
enum part { FORWARD, BACKWARD, INPUT, N_PARTS };

/** Least seconds of n layers as a function of n: the larger of n slope - slack, with the
 *  slack of where they start, and n least_slope, the cheaper kind alone. */
struct line {
    double dense_s, expert_s;
    double slope, least_slope;
};

/** How a stage is placed: its TP groups, and the way of its experts or NULL. */
struct how {
    enum bound_way way;
    const struct bound_experts *experts;
};

/** All ways to place a stage for which its TP groups may be placed in the ways way[].
 *  @return how many */
#define HOWS_MAX (EXPERT_WAYS + BOUND_WAYS - 1)
int rows_hows (const struct bound_pipeline *x, const bool way[BOUND_WAYS],
               struct how out[HOWS_MAX]);

/** A pipeline whose stage 0 is placed in one way. */
struct frame {
    const struct bound_pipeline *x;
    struct line part[2][N_PARTS]; /* by kind of slot */
    double all_s[N_PARTS];        /* all layers once, on any slots */
    double more_s[N_PARTS];       /* a layer on a slow slot, beyond any */
    bool split;                   /* weights' gradients are put off */
    bool v_shaped;
    struct how first;         /* stage 0 */
    struct how how[HOWS_MAX]; /* that any other stage may be placed in */
    int n_hows;
    bool spans;      /* a group that spans nodes, and is paid for, may save crossings */
    int slow_layers; /* on slow slots, at least: raised as more is known */
    int *work;       /* [2 * p] of bound_schedule.c; NULL for the loose bound */
};
void rows_init (struct frame *f, const struct bound_pipeline *x, struct how first,
                int *work);

/** The end that stage k decides when it holds so many layers on a kind of slot and the
 *  stages after it at most `below`: stage 0's, or, where weights' gradients are put off,
 *  the stage's own with what follows it. */
double rows_end_s (const struct frame *f, int k, int kind, int layers, int below);

/** When does the pipeline end, and the step? */
struct rows_times {
    double end_s, step_s;
};

/** The most layers, in whole chunks, that stage k can hold for both; 0: none. */
int rows_most_layers (const struct frame *f, int k, int kind, int below,
                      const struct rows_times *then);

/** The least step that stage k's own end allows with what follows it, when it ends at
 *  `end_s` or later: stage 0 in the frame's way, others in the best of all. */
double rows_step_s (const struct frame *f, int k, int kind, int layers, int below,
                    double end_s);

/** What a layer of stage k takes more in such a way, in a replica that has as many slow
 *  slots as any has at least. */
void rows_layer_more (const struct frame *f, int k, int kind, struct how how,
                      double *fwd_s, double *back_s);

/** What follows stage k's end. */
double rows_tail_s (const struct frame *f, int k, int kind, double layers, struct how how,
                    double end);

/** What stage k takes in row (1) with no layers anywhere. */
double rows_fixed_s (const struct frame *f, int k);

#endif
