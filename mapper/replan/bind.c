/* A plan placed anew on the nodes that a scheduler gave. */
#include <stdlib.h>
#include <string.h>

#include "mapper/replan/replan.h"

/* Did every node of the plan hold consecutive ranks, as node-aware libraries assume? */
static bool is_by_node (const struct workload_plan *plan)
{
    json_t *search = json_object_get (plan->doc, "search");
    const char *s = json_string_value (
        json_object_get (json_object_get (search, "granularity"), "chosen"));

    return s && strcmp (s, "node") == 0;
}

/* The split of the layers is part of the job's arguments and of its checkpoints: it stays,
 * whatever the search chose for these nodes.  Then the better of the placement found and
 * the default order is kept. */
static enum status keep_layers (const struct mapper_problem *p,
                                const struct workload_plan *plan, struct mapper_result *r,
                                struct error *err)
{
    enum status st =
        mapper_result_put (p, &plan->config, plan->layers_per_stage, r->gpu, r, err);
    int *gpu = NULL;

    if (st == ST_OK && mapper_default_is_better (r)) {
        gpu = malloc ((size_t) p->cluster->n_gpus * sizeof *gpu);
        st = gpu ? mapper_default_order (p, gpu, err) : err_nomem (err);
        THEN (st,
              mapper_result_put (p, &plan->config, plan->layers_per_stage, gpu, r, err));
    }
    r->n_top = 0;
    free (gpu);
    return st;
}

enum status mapper_bind (const struct mapper_problem *p, const struct workload_plan *plan,
                         struct mapper_result *r, struct mapper_info *info,
                         struct error *err)
{
    struct mapper_settings settings = mapper_settings_default ();
    enum status st;

    settings.polish = 2; /* nodes are held while this runs */
    st = mapper_search (p, &settings, r, info, err);

    if (st == ST_OK && is_by_node (plan) && r->granularity == MAPPER_GPU) {
        struct mapper_result by_node;
        struct mapper_info second;

        settings.granularity = MAPPER_NODE;
        if (mapper_search (p, &settings, &by_node, &second, NULL) == ST_OK) {
            mapper_result_release (r);
            mapper_info_release (info);
            *r = by_node;
            *info = second;
        } else {
            mapper_info_release (&second);
        }
    }
    if (st == ST_OK && memcmp (plan->layers_per_stage, r->layers,
                               (size_t) plan->config.deg.pp * sizeof (int)) != 0)
        st = keep_layers (p, plan, r, err);
    return st;
}
