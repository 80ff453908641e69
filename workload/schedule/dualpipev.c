/* DualPipeV: DeepSeek's DualPipe, which hides experts' all-to-alls, with two chunks a stage in a V
 * in place of two copies of the weights (DeepSeek-V3, arXiv 2412.19437, section 3.2.1;
 * deepseek-ai/DualPipe, dualpipev.py; ScheduleDualPipeV of PyTorch).
 *
 * Once all stages are busy, each runs a forward joined with the backward of another micro-batch in
 * the other chunk, so that one computes while the other's tokens travel. */
#include "workload/schedule/schedule_private.h"

/* A stage's operations while they are listed. */
struct list {
    struct workload_op *op;
    int n, next[2][2]; /* micro-batch of the next forward, backward of each chunk */
    int put_off; /* from this entry on, backwards put off their weights' gradients */
};

/* A backward alone leaves its weights for later. */
static void add (struct list *l, enum workload_operation what, int chunk)
{
    l->op[l->n++] = (struct workload_op){
        .what = what, .chunk = chunk, .micro = l->next[what][chunk]++};
}

static void add_weights (struct list *l, struct workload_op of)
{
    of.what = OPERATION_WEIGHTS;
    l->op[l->n++] = of;
}

static void backward (struct list *l, int chunk)
{
    add (l, OPERATION_BACKWARD, chunk);
    add_weights (l, l->op[l->n - 1]);
    l->op[l->n - 2].joined = 1;
}

/* A forward of one chunk with a backward of the other. */
static void both (struct list *l, int chunk)
{
    add (l, OPERATION_FORWARD, chunk);
    backward (l, 1 - chunk);
    l->op[l->n - 3].joined = 2;
}

/* The weights that were put off first. */
static void late_weights (struct list *l)
{
    while (l->op[l->put_off].what != OPERATION_BACKWARD)
        l->put_off++;
    add_weights (l, l->op[l->put_off++]);
}

static void begin (struct list *l, int after, int before)
{
    for (int i = 0; i < 2 * after; i++)
        add (l, OPERATION_FORWARD, 0);
    for (int i = 0; i < before; i++) {
        add (l, OPERATION_FORWARD, 0);
        add (l, OPERATION_FORWARD, 1);
    }
    for (int i = 0; i < after; i++) {
        add (l, OPERATION_BACKWARD, 1);
        add_weights (l, l->op[l->n - 1]);
        add (l, OPERATION_FORWARD, 1);
    }
}

static void end (struct list *l, int after, int before)
{
    for (int i = 0; i < before; i++)
        backward (l, i % 2 ? 0 : 1);
    l->put_off = l->n;
    for (int i = before; i < 2 * before; i++)
        add (l, OPERATION_BACKWARD, i % 2 ? 0 : 1);
    for (int i = 0; i < after; i++) {
        late_weights (l);
        add (l, OPERATION_BACKWARD, 0);
    }
    for (int i = 0; i < before; i++)
        late_weights (l);
}

/* Micro-batches that meet both chunks of a stage while all stages are busy. */
static int steady (struct workload_pipeline_size size, int stage)
{
    return size.microbatches - 2 * size.stages + stage + 1;
}

static void order (struct workload_pipeline_size size, int stage, struct workload_op *op)
{
    int after = size.stages - 1 - stage, before = stage + 1;
    struct list l = {.op = op};

    begin (&l, after, before);
    for (int i = 0; i < steady (size, stage); i++) {
        both (&l, 0);
        both (&l, 1);
    }
    if (after == 0) /* the first two are one after the other */
        op[2 * size.stages].joined = 0;
    for (int i = 0; i < after; i++) {
        backward (&l, 1);
        both (&l, 1);
    }
    end (&l, after, before);
}

static int forwards_first (struct workload_pipeline_size size, int stage)
{
    return 2 * size.stages + (stage == size.stages - 1);
}

static double in_flight (struct workload_pipeline_size size, int stage)
{
    double most = size.stages + 0.5;

    (void) stage;
    return most < size.microbatches ? most : size.microbatches;
}

/* The last stage's first forward has the backward of its own micro-batch after it. */
static int joined (struct workload_pipeline_size size, int stage)
{
    int after = size.stages - 1 - stage;

    return 2 * steady (size, stage) + after - (after == 0);
}

const struct workload_schedule_rules schedule_dualpipev = {.chunks = 2,
                                                           .rounds = 2,
                                                           .v_shaped = true,
                                                           .splits_backward = true,
                                                           .in_flight = in_flight,
                                                           .forwards_first =
                                                               forwards_first,
                                                           .joined = joined,
                                                           .order = order};
