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
