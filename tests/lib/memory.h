/* What a stage keeps, for tests of memory: of a stage that a test has made, and by the default
 * profile. */
#ifndef TESTS_LIB_MEMORY_H
#define TESTS_LIB_MEMORY_H

#include "tests/lib/fixture.h"

#include "memest/memest.h"

struct stage {
    struct workload_model m;
    struct workload_job j;
    struct workload_config c;
    struct workload_profile p;
    struct workload_stage held;
};

/* Three layers by a profile whose constants all differ, that has none of the habits of some. */
static inline struct stage distinct_stage (const char *model, int tp, bool sp)
{
    struct stage s = {.m = model_of (model),
                      .j = {.seq = 1024, .global_batch = 64},
                      .c = config_of (tp, 1, 1, 2),
                      .p = profile_of (WORKLOAD_PROFILE_DEFAULT),
                      .held = {.dense = 3}};

    s.c.sequence_parallel = sp;
    s.c.zero = 0;
    s.p.compute_of_type = s.p.keeps_gathered = s.p.repeats_kv = s.p.gradients_freed =
        s.p.whole_gradients = s.p.frozen_gradients = s.p.copies_inputs = s.p.flat_step =
            false;
    s.p.chunked_loss = s.p.gathered_logits = false;
    s.p.fused_norm = s.p.fused_mlp = true;
    s.p.memory.norm_bytes = 9;
    s.p.memory.attention_bytes = 2.6;
    s.p.memory.unfused_norm_bytes = 17;
    s.p.memory.dropout_bytes = 2.2;
    s.p.memory.gated_mlp_bytes = 6.1;
    s.p.memory.unfused_mlp_bytes = 3.3;
    s.p.memory.plain_mlp_bytes = 4.4;
    s.p.memory.score_bytes = 7.7;
    s.p.memory.fused_score_bytes = 5.5;
    s.p.memory.expert_token_bytes = 4.7;
    s.p.memory.expert_imbalance = 1.3;
    s.p.memory.logit_bytes = 6.6;
    s.p.memory.gathered_logit_bytes = 8.8;
    s.p.memory.gather_copy_bytes = 1.9;
    s.p.memory.recompute_workspace = .4;
    s.p.memory.unsharded_bytes = .7;
    s.p.memory.base_bytes = 1e9;
    s.p.memory.group_bytes = 3e8;
    s.p.memory.fragmentation = 1.25;
    s.p.memory.bucket_bytes = 5e7;
    return s;
}

static inline struct memest_stage memory_of (const struct stage *s)
{
    struct memest_problem q = {&s->m, &s->j, &s->c, &s->p, MEMEST_LINKWISE, 0, 0};
    struct memest_stage out;

    memest_stage (&q, 0, &s->held, &out);
    return out;
}

/* So many layers on a stage of the default profile. */
static inline struct memest_stage stage_of (const struct workload_model *m,
                                            const struct workload_job *j,
                                            const struct workload_config *c, int stage,
                                            int layers)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct memest_problem problem = {m, j, c, &p, MEMEST_LINKWISE, 0, 0};
    struct workload_stage held = workload_stage_guess (m, c, stage, layers);
    struct memest_stage s;

    memest_stage (&problem, stage, &held, &s);
    return s;
}

/* What one more layer keeps. */
static inline double layer_of (const struct workload_model *m,
                               const struct workload_job *j,
                               const struct workload_config *c, int stage)
{
    return stage_of (m, j, c, stage, 9).activations_bytes -
           stage_of (m, j, c, stage, 8).activations_bytes;
}

#endif
