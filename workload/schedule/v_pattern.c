/* V-Half and V-Min: every micro-batch repeats one pattern of six slots a stage, in which each
 * pass goes from stage to stage at its own pace (Qi et al., arXiv 2405.15362, section 3: 2, 1,
 * 2, 1 and 1, 1, 1, 1 slots a stage for the forwards of both chunks and their backwards);
 * weights' gradients take the slots that are left. */
#include "workload/schedule/schedule_private.h"

#include <stdlib.h>

#define PACE_HALF 2 /* of the passes that are not as fast as can be */
#define PACE_MIN 1
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

/* The earliest starts that keep all passes apart.
 * @param[in] pace  slots a stage that the forwards of chunk 0 and the backwards of chunk 1
 *                  take; the others take one */
static void fill_pattern (int pace, int p, struct pattern *t)
{
    *t = (struct pattern){{0}, {pace, 1, pace, 1}};
    for (int k = 1; k < 4; k++) {
        int last = k % 2 ? p - 1 : 0; /* the stage where pass k-1 ends and k begins */

        t->start[k] = slot_of (t, k - 1, last, p) + 1;
        for (int tries = 0; tries < SLOTS && !apart (t, k, p); tries++)
            t->start[k]++;
    }
}

struct timed {
    struct workload_op op;
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

static void pattern_order (int pace, struct workload_pipeline_size size, int stage,
                           struct workload_op *op)
{
    static const struct workload_op passes[4] = {{OPERATION_FORWARD, 0, 0},
                                                 {OPERATION_FORWARD, 1, 0},
                                                 {OPERATION_BACKWARD, 1, 0},
                                                 {OPERATION_BACKWARD, 0, 0}};
    struct pattern t;
    struct timed once[SLOTS], *all;
    bool used[SLOTS] = {false};
    int n = SLOTS * size.microbatches;

    fill_pattern (pace, size.stages, &t);
    for (int k = 0; k < 4; k++) {
        once[k] = (struct timed){passes[k], slot_of (&t, k, stage, size.stages)};
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

static int pattern_first (int pace, struct workload_pipeline_size size, int stage)
{
    struct pattern t;
    int n = 0;

    fill_pattern (pace, size.stages, &t);
    for (int k = 0; k < 2; k++) {
        int slots =
            slot_of (&t, 2, stage, size.stages) - slot_of (&t, k, stage, size.stages);

        n += slots > 0 ? (slots - 1) / SLOTS + 1 : 0;
    }
    return schedule_warm_up (size, n);
}

static double half_in_flight (struct workload_pipeline_size size, int stage)
{
    (void) stage;
    return schedule_least ((size.stages + 2) / 2, size.microbatches);
}

static double min_in_flight (struct workload_pipeline_size size, int stage)
{
    (void) stage;
    return schedule_least ((size.stages + 4) / 3, size.microbatches);
}

static int half_first (struct workload_pipeline_size size, int stage)
{
    return pattern_first (PACE_HALF, size, stage);
}

static int min_first (struct workload_pipeline_size size, int stage)
{
    return pattern_first (PACE_MIN, size, stage);
}

static void half_order (struct workload_pipeline_size size, int stage,
                        struct workload_op *op)
{
    pattern_order (PACE_HALF, size, stage, op);
}

static void min_order (struct workload_pipeline_size size, int stage,
                       struct workload_op *op)
{
    pattern_order (PACE_MIN, size, stage, op);
}

const struct workload_schedule_rules schedule_v_half = {.name = "v-half",
                                                        .chunks = 2,
                                                        .v_shaped = true,
                                                        .splits_backward = true,
                                                        .in_flight = half_in_flight,
                                                        .forwards_first = half_first,
                                                        .order = half_order};

const struct workload_schedule_rules schedule_v_min = {.name = "v-min",
                                                       .chunks = 2,
                                                       .v_shaped = true,
                                                       .splits_backward = true,
                                                       .in_flight = min_in_flight,
                                                       .forwards_first = min_first,
                                                       .order = min_order};
