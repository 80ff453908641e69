/* Orders of operations that do not depend on how long they take. */
#include "costmodel/orders.h"

#include <stdlib.h>

/* The n-th forward of an interleaved schedule: groups of p micro-batches (the last may be
 * smaller) go through all chunks before the next group starts. */
static struct order_op forward_at (const struct costmodel_pipeline *p, int n)
{
    int group = p->stages * p->chunks, first = n / group * p->stages;
    int size = p->microbatches - first < p->stages ? p->microbatches - first : p->stages;
    int rest = n % group;

    return (struct order_op){OPERATION_FORWARD, rest / size, first + rest % size};
}

static struct order_op backward_at (const struct costmodel_pipeline *p, int n)
{
    struct order_op op = forward_at (p, n);

    op.what = OPERATION_BACKWARD;
    op.chunk = p->chunks - 1 - op.chunk;
    return op;
}

/* ---- V-shaped patterns ---- */

#define SLOTS 6 /* of one micro-batch on one stage: forward, backward, weights, twice */

/* When the passes of a pattern start on their first stage: forward of chunk 0 at 0, of
 * chunk 1, backward of chunk 1, of chunk 0; and their paces. */
struct pattern {
    int start[4], pace[4];
};

/* On which slot does pass k meet stage i?  Chunk 1's forward and chunk 0's backward go
 * from the last stage to the first. */
static int slot_of (const struct pattern *t, int k, int stage, int p)
{
    return t->start[k] + t->pace[k] * (k % 2 ? p - 1 - stage : stage);
}

/* Do passes 0..k use different slots on every stage? */
static bool apart (const struct pattern *t, int k, int p)
{
    for (int i = 0; i < p; i++)
        for (int j = 0; j < k; j++)
            if ((slot_of (t, k, i, p) - slot_of (t, j, i, p)) % SLOTS == 0)
                return false;
    return true;
}

/* The earliest starts that keep all passes apart. */
static void fill_pattern (enum workload_schedule s, int p, struct pattern *t)
{
    int fast = s == SCHEDULE_V_MIN ? 1 : 2;

    *t = (struct pattern){{0}, {fast, 1, fast, 1}};
    for (int k = 1; k < 4; k++) {
        int last = k % 2 ? p - 1 : 0; /* the stage where pass k-1 ends and k begins */

        t->start[k] = slot_of (t, k - 1, last, p) + 1;
        for (int tries = 0; tries < SLOTS && !apart (t, k, p); tries++)
            t->start[k]++;
    }
}

struct timed {
    struct order_op op;
    int slot;
};

static int by_slot (const void *a, const void *b)
{
    const struct timed *x = a, *y = b;

    return x->slot != y->slot ? (x->slot > y->slot) - (x->slot < y->slot)
                              : (int) x->op.what - (int) y->op.what;
}

/* The first slot after `slot` that no pass uses; marks it used. */
static int free_slot (bool *used, int slot)
{
    do
        slot++;
    while (used[slot % SLOTS]);
    used[slot % SLOTS] = true;
    return slot;
}

static void pattern_order (enum workload_schedule s, const struct costmodel_pipeline *p,
                           int stage, struct order_op *op)
{
    static const struct order_op passes[4] = {{OPERATION_FORWARD, 0, 0},
                                              {OPERATION_FORWARD, 1, 0},
                                              {OPERATION_BACKWARD, 1, 0},
                                              {OPERATION_BACKWARD, 0, 0}};
    struct pattern t;
    struct timed once[SLOTS], *all;
    bool used[SLOTS] = {false};
    int n = SLOTS * p->microbatches;

    fill_pattern (s, p->stages, &t);
    for (int k = 0; k < 4; k++) {
        once[k] = (struct timed){passes[k], slot_of (&t, k, stage, p->stages)};
        used[once[k].slot % SLOTS] = true;
    }
    for (int k = 2; k < 4; k++)
        once[k + 2] = (struct timed){{OPERATION_WEIGHTS, passes[k].chunk, 0},
                                     free_slot (used, once[k].slot)};
    all = malloc ((size_t) n * sizeof *all);
    for (int i = 0; i < n; i++) {
        struct timed x = once[i % SLOTS];

        x.op.micro = i / SLOTS;
        x.slot += SLOTS * x.op.micro;
        if (all)
            all[i] = x;
        else
            op[i] = x.op; /* out of memory: an order all the same, if a slow one */
    }
    if (!all)
        return;
    qsort (all, (size_t) n, sizeof *all, by_slot);
    for (int i = 0; i < n; i++)
        op[i] = all[i].op;
    free (all);
}

/* Of 1F1B, interleaved or not, and GPipe: forwards before one forward and one backward
 * take turns. */
static int warm_up (enum workload_schedule s, int stages, int chunks, int microbatches,
                    int stage)
{
    int all = microbatches * chunks, warm = stages - 1 - stage;

    if (s == SCHEDULE_GPIPE)
        return all;
    if (chunks > 1)
        warm = 2 * warm + (chunks - 1) * stages;
    return warm < all ? warm : all;
}

int order_memory_limit (enum workload_schedule s, int stages)
{
    return s == SCHEDULE_ZB1P ? stages : 2 * stages;
}

int costmodel_forwards_first (enum workload_schedule s, int stages, int chunks,
                              int microbatches, int stage)
{
    int n = 0, all = microbatches * chunks;

    if (!costmodel_schedule_splits_backward (s))
        n = warm_up (s, stages, chunks, microbatches, stage) + 1;
    else if (costmodel_schedule_is_greedy (s))
        n = order_memory_limit (s, stages);
    else {
        struct pattern t;

        fill_pattern (s, stages, &t);
        for (int k = 0; k < 2; k++) {
            int slots = slot_of (&t, 2, stage, stages) - slot_of (&t, k, stage, stages);

            n += slots > 0 ? (slots - 1) / SLOTS + 1 : 0;
        }
    }
    return n < all ? n : all;
}

void order_of_stage (enum workload_schedule s, const struct costmodel_pipeline *p,
                     int stage, struct order_op *op)
{
    int all = p->microbatches * p->chunks, warm, n = 0;

    if (costmodel_schedule_splits_backward (s)) {
        pattern_order (s, p, stage, op);
        return;
    }
    warm = warm_up (s, p->stages, p->chunks, p->microbatches, stage);
    for (int i = 0; i < warm; i++)
        op[n++] = forward_at (p, i);
    for (int i = warm; i < all; i++) {
        op[n++] = forward_at (p, i);
        op[n++] = backward_at (p, i - warm);
    }
    for (int i = all - warm; i < all; i++)
        op[n++] = backward_at (p, i);
}
