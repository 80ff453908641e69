/* Searches of a setting, and what they find. */
#ifndef TESTS_LIB_SEARCH_H
#define TESTS_LIB_SEARCH_H

#include "mapper/mapper.h"
#include "memest/memest.h"
#include "tests/lib/fixture.h"

/* Every axis free. */
static inline struct mapper_problem search_problem (const struct setting *s)
{
    return (struct mapper_problem){.model = &s->model,
                                   .job = &s->job,
                                   .profile = &s->profile,
                                   .cluster = s->cluster,
                                   .axes = mapper_axes_free (),
                                   .memory_limit_pct = 95,
                                   .cost_model = s->kind};
}

/* These degrees alone, or free ones. */
static inline struct mapper_problem search_degrees (const struct setting *s, int tp,
                                                    int pp, int dp)
{
    struct mapper_problem p = search_problem (s);

    p.axes.tp = tp;
    p.axes.pp = pp;
    p.axes.dp = dp;
    return p;
}

/* The setting's configuration alone. */
static inline struct mapper_problem search_config (const struct setting *s)
{
    struct mapper_problem p = search_problem (s);

    p.axes = mapper_axes_of (&s->config);
    return p;
}

struct found {
    struct mapper_result r;
    struct mapper_info info;
};

/* Nothing is left to release where it does not succeed.  @param[in] how  NULL: as usual */
static inline enum status try_search (const struct mapper_problem *p,
                                      const struct mapper_settings *how, struct found *o,
                                      struct error *err)
{
    struct mapper_settings usual = mapper_settings_default ();
    enum status st;

    *o = (struct found){0};
    st = mapper_search (p, how ? how : &usual, &o->r, &o->info, err);
    if (st == ST_OK)
        assert_true (o->r.lower_bound_s <= o->r.estimate.step_s);
    else
        mapper_info_release (&o->info);
    return st;
}

static inline struct found search (const struct mapper_problem *p,
                                   const struct mapper_settings *how)
{
    struct found o;
    struct error err = {""};

    ok (try_search (p, how, &o, &err), &err);
    return o;
}

static inline void found_release (struct found *o)
{
    mapper_result_release (&o->r);
    mapper_info_release (&o->info);
}

/* Price what was found: its configuration and layers are the setting's now. */
static inline void take (struct setting *s, const struct mapper_result *r)
{
    s->config = r->config;
    memcpy (s->layers, r->layers, (size_t) r->config.deg.pp * sizeof (int));
}

/* @param[out] peak_bytes  [pp] of each stage with the setting's layers */
static inline void find_peaks (const struct setting *s, double *peak_bytes)
{
    struct memest_problem memory = {&s->model,       &s->job, &s->config, &s->profile,
                                    MEMEST_LINKWISE, 0,       0};

    for (int i = 0; i < s->config.deg.pp; i++) {
        struct workload_stage held =
            workload_stage_of (&s->model, &s->config, s->layers, i);
        struct memest_stage m;

        memest_stage (&memory, i, &held, &m);
        peak_bytes[i] = m.peak_bytes;
    }
}

/* Does every node have ranks that follow each other?  @param[in] gpu  [world] */
static inline bool consecutive (const struct topology_cluster *c, const int *gpu,
                                int world)
{
    for (int a = 0; a < world; a++)
        for (int b = a + 2; b < world; b++)
            if (c->node_of_gpu[gpu[a]] == c->node_of_gpu[gpu[b]] &&
                c->node_of_gpu[gpu[b - 1]] != c->node_of_gpu[gpu[b]])
                return false;
    return true;
}

/* The node that holds all dp replicas of a stage. */
static inline int node_of_stage (const struct topology_cluster *c, const int *gpu, int dp,
                                 int stage)
{
    for (int d = 1; d < dp; d++)
        assert_int_equal (c->node_of_gpu[gpu[stage * dp + d]],
                          c->node_of_gpu[gpu[stage * dp]]);
    return c->node_of_gpu[gpu[stage * dp]];
}

#endif
