/* Pipeline schedules: one file a kind, one line each in the table of schedule.c.
 *
 * The rooms above ask here for everything that tells one schedule from another: memest how
 * much a stage holds, costmodel the order of operations, the lower bound how far forwards can
 * run ahead, the search and the readers what is legal.  1F1B, GPipe, the interleaved schedule
 * and patterns of slots have faster recurrences besides (costmodel/schedule.c); a new
 * schedule needs none. */
#ifndef WORKLOAD_SCHEDULE_SCHEDULE_H
#define WORKLOAD_SCHEDULE_SCHEDULE_H

#include <stdbool.h>

enum workload_schedule {
    SCHEDULE_1F1B,
    SCHEDULE_GPIPE,
    SCHEDULE_INTERLEAVED,
    SCHEDULE_ZB1P, /* zero-bubble schedules: Qi et al., arXiv 2401.10241, 2405.15362 */
    SCHEDULE_ZB2P,
    SCHEDULE_ZBV,
    SCHEDULE_V_HALF,
    SCHEDULE_V_MIN,
    SCHEDULE_DUALPIPEV,
    SCHEDULES
};

enum workload_operation { OPERATION_FORWARD, OPERATION_BACKWARD, OPERATION_WEIGHTS };

/** One operation: a chunk of a stage on one micro-batch. */
struct workload_op {
    enum workload_operation what;
    int chunk, micro;
    int joined; /* with so many after it: they begin together, when all their inputs are there,
                   and what they send leaves when the last one ends */
};

struct workload_pipeline_size {
    int stages, chunks, microbatches; /* chunks of layers on every stage */
};

#define WORKLOAD_PATTERN_SLOTS 6

/** What a schedule is. */
struct workload_schedule_rules {
    int chunks; /* of layers on every stage unless told otherwise; 1: always one */
    /* two chunks, the second placed in reverse: the first stage also has the last layers */
    bool v_shaped;
    bool splits_backward; /* weights' gradients are put off */
    bool whole_groups;    /* needs a multiple of `stages` micro-batches */
    int rounds;           /* needs at least so many micro-batches for each stage */

    /* Where the order follows from the times: chunks whose activations a stage may hold, times
     * the number of stages; 0: the schedule fixes it. */
    int held;
    /* Where every micro-batch repeats one pattern of slots (v_pattern.c): those a stage that its
     * slower passes take; 0: there is none. */
    int pace;

    /** Activations that a stage holds at most, in micro-batches of all its chunks; NULL where
     *  `held` says it. */
    double (*in_flight) (struct workload_pipeline_size size, int stage);

    /** Forwards of chunks that a stage does before its first backward, whatever they take:
     *  at most so many; NULL where `held` or `pace` says it. */
    int (*forwards_first) (struct workload_pipeline_size size, int stage);

    /** Of a stage's forwards of chunks, those that run joined with the backward of another
     *  micro-batch, whose exchanges each hides; NULL: the schedule joins none by itself. */
    int (*joined) (struct workload_pipeline_size size, int stage);

    /** A stage's operations in order; NULL where `held` or `pace` says it.
     *  @param[out] op  [workload_schedule_operations] */
    void (*order) (struct workload_pipeline_size size, int stage, struct workload_op *op);
};
const struct workload_schedule_rules *workload_schedule_rules (enum workload_schedule s);

/** Their names on the command line and in files, with NULL at the end. */
extern const char *const workload_schedule_words[];

static inline const char *workload_schedule_name (enum workload_schedule s)
{
    return workload_schedule_words[s];
}
bool workload_schedule_parse (const char *s, enum workload_schedule *out);

static inline bool workload_schedule_is_v (enum workload_schedule s)
{
    return workload_schedule_rules (s)->v_shaped;
}

static inline bool workload_schedule_splits_backward (enum workload_schedule s)
{
    return workload_schedule_rules (s)->splits_backward;
}

static inline int workload_default_vpp (enum workload_schedule s)
{
    return workload_schedule_rules (s)->chunks;
}

/** Does the order follow from the times? */
static inline bool workload_schedule_is_greedy (enum workload_schedule s)
{
    return workload_schedule_rules (s)->held > 0;
}

/** The schedule's in_flight, forwards_first and order, whatever says them. */
double workload_schedule_in_flight (enum workload_schedule s,
                                    struct workload_pipeline_size size, int stage);
int workload_forwards_first (enum workload_schedule s, int stages, int chunks,
                             int microbatches, int stage);
void workload_schedule_order (enum workload_schedule s,
                              struct workload_pipeline_size size, int stage,
                              struct workload_op *op);

/** Of a schedule with a pace, the slots of the first micro-batch's forwards of chunks 0 and 1,
 *  backwards of chunks 1 and 0, weights of chunks 1 and 0; each next micro-batch is
 *  WORKLOAD_PATTERN_SLOTS later.  What an operation waits for is in an earlier slot, up to so many
 *  before.
 *  @param[out] slot  [stages * WORKLOAD_PATTERN_SLOTS] */
void workload_schedule_slots (enum workload_schedule s, int stages, int *slot);

/** Operations of one stage in all. */
static inline int workload_schedule_operations (enum workload_schedule s,
                                                struct workload_pipeline_size size)
{
    return (workload_schedule_splits_backward (s) ? 3 : 2) * size.chunks *
           size.microbatches;
}

#endif
