/* Orders in which forwards and backwards take turns. */
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

void schedule_take_turns (struct workload_pipeline_size size, int warm,
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
