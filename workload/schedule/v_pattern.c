/* V-Half and V-Min: every micro-batch repeats one pattern of six slots a stage, in which each
 * pass goes from stage to stage at its own pace (Qi et al., arXiv 2405.15362, section 3: 2, 1,
 * 2, 1 and 1, 1, 1, 1 slots a stage for the forwards of both chunks and their backwards);
 * weights' gradients take the slots that are left. */
#include "workload/schedule/schedule_private.h"

#include <limits.h>

/* Of one micro-batch on one stage: forward, backward, weights, twice. */
#define SLOTS WORKLOAD_PATTERN_SLOTS

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

/* Does a pass come before another?  What comes first of one micro-batch goes first in a slot. */
static bool is_earlier (const struct timed *a, const struct timed *b)
{
    return a->slot != b->slot         ? a->slot < b->slot
           : a->op.what != b->op.what ? a->op.what < b->op.what
                                      : a->op.micro < b->op.micro;
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

/* @param[out] slot  [SLOTS] */
static void stage_slots (const struct pattern *t, int stages, int stage, int *slot)
{
    bool used[SLOTS] = {false};

    for (int k = 0; k < 4; k++) {
        slot[k] = slot_of (t, k, stage, stages);
        used[slot[k] % SLOTS] = true;
    }
    for (int k = 2; k < 4; k++)
        slot[k + 2] = free_slot (used, slot[k]);
}

void schedule_pattern_order (int pace, struct workload_pipeline_size size, int stage,
                             struct workload_op *op)
{
    static const struct workload_op passes[SLOTS] = {
        {OPERATION_FORWARD, 0, 0, 0},  {OPERATION_FORWARD, 1, 0, 0},
        {OPERATION_BACKWARD, 1, 0, 0}, {OPERATION_BACKWARD, 0, 0, 0},
        {OPERATION_WEIGHTS, 1, 0, 0},  {OPERATION_WEIGHTS, 0, 0, 0}};
    struct timed next[SLOTS]; /* of each pass, the micro-batch that is next */
    struct pattern t;
    int slot[SLOTS];

    fill_pattern (pace, size.stages, &t);
    stage_slots (&t, size.stages, stage, slot);
    for (int k = 0; k < SLOTS; k++)
        next[k] = (struct timed){passes[k], slot[k]};
    for (int i = 0; i < SLOTS * size.microbatches; i++) {
        int first = 0;

        for (int k = 1; k < SLOTS; k++)
            if (is_earlier (&next[k], &next[first]))
                first = k;
        op[i] = next[first].op;
        next[first].slot += SLOTS;
        if (++next[first].op.micro == size.microbatches)
            next[first].slot = INT_MAX; /* it is through */
    }
}

int schedule_pattern_first (int pace, struct workload_pipeline_size size, int stage)
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

void schedule_pattern_slots (int pace, int stages, int *slot)
{
    struct pattern t;

    fill_pattern (pace, stages, &t);
    for (int i = 0; i < stages; i++)
        stage_slots (&t, stages, i, slot + i * SLOTS);
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

const struct workload_schedule_rules schedule_v_half = {.chunks = 2,
                                                        .v_shaped = true,
                                                        .splits_backward = true,
                                                        .pace = 2,
                                                        .in_flight = half_in_flight};

const struct workload_schedule_rules schedule_v_min = {.chunks = 2,
                                                       .v_shaped = true,
                                                       .splits_backward = true,
                                                       .pace = 1,
                                                       .in_flight = min_in_flight};
