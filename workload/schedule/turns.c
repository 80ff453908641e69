/* Schedules in which forwards and backwards take turns.
 *
 * 1F1B: p-1-i forwards, then one forward and one backward in turn (Narayanan et al., arXiv
 * 2104.04473, section 2.2).  Interleaved, 1F1B over chunks, in groups of p micro-batches, with
 * 2 (p-1-i) + (v-1) p forwards of chunks first (Megatron-Core's
 * forward_backward_pipelining_with_interleaving).  GPipe: all forwards, then all backwards (Huang
 * et al., arXiv 1811.06965). */
#include "workload/schedule/schedule_private.h"

/* The n-th forward. */
static struct workload_op forward_at (struct workload_pipeline_size size, int n)
{
    int group = size.stages * size.chunks, first = n / group * size.stages;
    int members = schedule_least (size.microbatches - first, size.stages);
    int rest = n % group;

    return (struct workload_op){.what = OPERATION_FORWARD,
                                .chunk = rest / members,
                                .micro = first + rest % members};
}

static struct workload_op backward_at (struct workload_pipeline_size size, int n)
{
    struct workload_op op = forward_at (size, n);

    op.what = OPERATION_BACKWARD;
    op.chunk = size.chunks - 1 - op.chunk;
    return op;
}

/* `warm` forwards, then one forward and one backward in turn, then the backwards that are left.
 * Groups of `stages` micro-batches (the last may be smaller) go through all chunks before the next
 * group starts.
 * @param[out] op  [2 * chunks * microbatches] */
static void take_turns (struct workload_pipeline_size size, int warm,
                        struct workload_op *op)
{
    int all = size.microbatches * size.chunks, n = 0;

    for (int i = 0; i < warm; i++)
        op[n++] = forward_at (size, i);
    for (int i = warm; i < all; i++) {
        op[n++] = forward_at (size, i);
        op[n++] = backward_at (size, i - warm);
    }
    for (int i = all - warm; i < all; i++)
        op[n++] = backward_at (size, i);
}

static int before_turns (struct workload_pipeline_size size, int stage)
{
    int after = size.stages - 1 - stage;

    return size.chunks > 1 ? 2 * after + (size.chunks - 1) * size.stages : after;
}

static int forwards_first (struct workload_pipeline_size size, int stage)
{
    return schedule_warm_up (size, before_turns (size, stage) + 1);
}

static double in_flight (struct workload_pipeline_size size, int stage)
{
    double most = before_turns (size, stage) + 1,
           all = (double) size.microbatches * size.chunks;

    return (most < all ? most : all) / size.chunks;
}

static void order (struct workload_pipeline_size size, int stage, struct workload_op *op)
{
    take_turns (size, schedule_warm_up (size, before_turns (size, stage)), op);
}

const struct workload_schedule_rules schedule_1f1b = {.chunks = 1,
                                                      .in_flight = in_flight,
                                                      .forwards_first = forwards_first,
                                                      .order = order};

const struct workload_schedule_rules schedule_interleaved = {.chunks = 2,
                                                             .whole_groups = true,
                                                             .in_flight = in_flight,
                                                             .forwards_first =
                                                                 forwards_first,
                                                             .order = order};

static double all_in_flight (struct workload_pipeline_size size, int stage)
{
    (void) stage;
    return size.microbatches;
}

static int all_first (struct workload_pipeline_size size, int stage)
{
    (void) stage;
    return size.microbatches * size.chunks;
}

static void all_then_back (struct workload_pipeline_size size, int stage,
                           struct workload_op *op)
{
    take_turns (size, all_first (size, stage), op);
}

const struct workload_schedule_rules schedule_gpipe = {.chunks = 1,
                                                       .in_flight = all_in_flight,
                                                       .forwards_first = all_first,
                                                       .order = all_then_back};
