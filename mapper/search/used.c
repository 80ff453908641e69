/* The profile that serves on the GPU types in use.
 *
 * A default profile that was fitted on some types has a composed form for others, and for mixes.  A
 * problem is searched by the one that serves on all nodes that it may use; a plan on fewer types is
 * priced by the one that serves on these, so that idle nodes change no estimate. */
#include "mapper/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum status mapper_profile_allowed (const struct mapper_problem *p,
                                    struct workload_profile *profile, struct error *err)
{
    struct workload_gpus on = {.n = 0};

    for (int i = 0; i < p->cluster->n_nodes; i++)
        if (mapper_node_allowed (p, i))
            workload_gpus_add (&on, p->cluster->node[i].type->name);
    return workload_profile_serve (profile, &on, p->model, p->job->precision, err);
}

enum status mapper_serving_nodes (const struct mapper_problem *p, bool **marks,
                                  struct error *err)
{
    const struct topology_cluster *c = p->cluster;

    *marks = calloc ((size_t) c->n_nodes, sizeof **marks);
    if (!*marks)
        return err_nomem (err);
    for (int i = 0; i < c->n_nodes; i++) {
        const struct workload_gpus own = {.name = {c->node[i].type->name}, .n = 1};

        (*marks)[i] = mapper_node_allowed (p, i) &&
                      !workload_profile_strange (p->profile, p->model, &own);
    }
    return ST_OK;
}

enum status mapper_result_use (struct mapper_problem *p, struct workload_profile *profile,
                               struct mapper_result *r, struct error *err)
{
    struct mapper_problem own = *p;
    struct workload_profile serving = *profile;
    double gap = r->lower_bound_s / r->estimate.step_s;
    bool *marks = NULL;
    enum status st;

    TRY (costmodel_profile_used (&serving, p->cluster, r->gpu,
                                 (int) workload_world (&r->config.deg), p->model, p->job,
                                 err));
    if (strcmp (serving.name, profile->name) == 0)
        return ST_OK;
    own.profile = &serving;
    st = mapper_serving_nodes (&own, &marks, err);
    own.node_allowed = marks;
    THEN (st, mapper_result_put (&own, &r->config, r->layers, r->gpu, r, err));
    if (st == ST_OK) {
        r->lower_bound_s = gap * r->estimate.step_s;
        r->model_error = mapper_step_error (&own);
        r->n_top = 0;
        *profile = serving;
        p->profile = profile;
    }
    free (marks);
    return st;
}

enum status mapper_search_serving (const struct mapper_problem *p,
                                   struct mapper_problem *used,
                                   const struct mapper_settings *s,
                                   struct mapper_result *r, struct mapper_info *info,
                                   struct error *err)
{
    struct mapper_problem some = *p;
    struct mapper_result found = {0};
    struct mapper_info more = {0};
    struct error why = {""};
    double gap = r->lower_bound_s / r->estimate.step_s;
    bool *marks = NULL;
    enum status st;

    some.profile = used->profile;
    st = mapper_serving_nodes (&some, &marks, err);
    some.node_allowed = marks;
    THEN (st, mapper_search_prudent (&some, s, &found, &more, &why));
    free (marks);
    more.seconds += info->seconds;
    if (st == ST_OK && mapper_objective_of (p, &found.config, found.estimate.step_s) <=
                           mapper_objective_of (p, &r->config, r->estimate.step_s)) {
        found.lower_bound_s = fmin (found.lower_bound_s, gap * found.estimate.step_s);
        more.proven = more.proven && info->proven;
        mapper_result_release (r);
        mapper_info_release (info);
        *r = found;
        *info = more;
        some.node_allowed = p->node_allowed;
        *used = some;
        return ST_OK;
    }
    mapper_result_release (&found);
    mapper_info_release (&more);
    return st == ST_NOMEM ? err_nomem (err) : ST_OK;
}

enum status mapper_search_used (struct mapper_problem *p,
                                struct workload_profile *profile,
                                const struct mapper_settings *s, struct mapper_result *r,
                                struct mapper_info *info, struct error *err)
{
    const struct mapper_problem asked = *p;
    struct mapper_settings left;
    char name[sizeof profile->name];
    enum status st;

    memcpy (name, profile->name, sizeof name);
    TRY (mapper_search_prudent (p, s, r, info, err));
    st = mapper_result_use (p, profile, r, err);
    left = mapper_settings_left (s, info->seconds);
    if (st == ST_OK && !info->stopped && strcmp (name, profile->name) != 0)
        st = mapper_search_serving (&asked, p, &left, r, info, err);
    if (st != ST_OK)
        mapper_result_release (r);
    return st;
}
