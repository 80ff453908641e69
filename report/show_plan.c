/* A plan as the page draws it: where its ranks are, what their links reach, memory by stage. */
#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "report/report_private.h"

#define NUMBERS_MAX 1024 /* ranks whose links are written as numbers */

/* The rate from every rank to the next one of its group, for every kind of group that has two ranks
 * or more.  NULL: out of memory. */
static json_t *links_json (const struct topology_cluster *c,
                           const struct workload_degrees *d, const int *gpu)
{
    static const struct {
        const char *name;
        enum workload_group_kind kind;
    } kinds[] = {{"tp", GROUP_TP},
                 {"cp", GROUP_CP},
                 {"ep", GROUP_EP},
                 {"dp", GROUP_DP},
                 {"pp", GROUP_PP}};
    int world = (int) workload_world (d);
    double *gb_per_s = calloc ((size_t) world, sizeof *gb_per_s);
    json_t *doc = gb_per_s ? json_object () : NULL;

    for (size_t k = 0; doc && k < sizeof kinds / sizeof *kinds; k++) {
        struct workload_group g = workload_group_of (d, kinds[k].kind);

        if (g.size < 2)
            continue;
        for (int r = 0; r < world; r++) {
            int at = r / g.stride % g.size,
                next = r + ((at + 1) % g.size - at) * g.stride;
            struct topology_link link = topology_link (c, gpu[r], gpu[next]);

            gb_per_s[r] = link.measured ? link.bytes_per_s / UNITS_GB : NAN;
        }
        json_object_set_new (
            doc, kinds[k].name,
            report_rates (gb_per_s, (size_t) world, world <= NUMBERS_MAX ? 0 : 2));
    }
    free (gb_per_s);
    return doc;
}

static json_t *ranks_json (const struct topology_cluster *c,
                           const struct workload_degrees *d, const int *gpu)
{
    json_t *node = json_array (), *number = json_array ();

    for (int r = 0; r < workload_world (d); r++) {
        json_array_append_new (node, json_integer (c->node_of_gpu[gpu[r]]));
        json_array_append_new (number, json_integer (topology_gpu_index (c, gpu[r])));
    }
    return json_pack ("{s:o, s:o, s:o}", "node", node, "gpu", number, "links",
                      links_json (c, d, gpu));
}

static json_t *memory_json (const struct mapper_problem *p,
                            const struct workload_plan *plan, const int *gpu)
{
    json_t *list = json_array ();

    for (int i = 0; i < plan->config.deg.pp; i++) {
        struct memest_stage s;
        double gpu_bytes =
            mapper_stage_memory (p, &plan->config, plan->layers_per_stage, gpu, i, &s);
        json_t *one = memest_stage_to_json (&s);

        json_object_set_new (one, "layers", json_integer (plan->layers_per_stage[i]));
        json_object_set_new (one, "gpu_bytes", json_real (gpu_bytes));
        json_object_set_new (one, "limit_bytes",
                             json_real (mapper_stage_limit (p, &s, gpu_bytes)));
        json_object_set_new (
            one, "oom_probability",
            json_number_or_null (memest_chance (p->memory_model, p->profile,
                                                memest_load_of (&s), gpu_bytes)));
        json_array_append_new (list, one);
    }
    return list;
}

enum status report_placement (const struct mapper_problem *p,
                              const struct workload_plan *plan, const int *gpu,
                              json_t **out, struct error *err)
{
    struct costmodel_problem priced =
        mapper_priced (p, &plan->config, plan->layers_per_stage);
    struct costmodel_estimate e;
    struct costmodel_binding binding;
    json_t *schedule = NULL, *estimate, *parts;
    bool found = false;
    enum status st;

    priced.chunks = plan->layers_per_chunk;
    TRY (costmodel_estimate (&priced, gpu, true, &e, err));
    st = costmodel_find_binding (&priced, gpu, e.step_s, &binding, &found, err);
    THEN (st, report_schedule (&priced, gpu, &e, &schedule, err));
    if (st == ST_OK) {
        parts = json_array ();
        for (int k = 0; k < COSTMODEL_PARTS; k++)
            json_array_append_new (parts, json_pack ("[s, s]", costmodel_parts[k].key,
                                                     costmodel_parts[k].words));
        estimate = costmodel_estimate_to_json (&e);
        json_object_set_new (estimate, "binding_link",
                             costmodel_binding_to_json (p->cluster, &binding, found));
        *out = json_pack ("{s:o, s:o, s:o, s:o, s:o}", "step_parts", parts, "ranks",
                          ranks_json (p->cluster, &plan->config.deg, gpu), "estimate",
                          estimate, "memory", memory_json (p, plan, gpu), "schedule",
                          schedule);
        st = *out ? ST_OK : err_nomem (err);
    }
    free (e.unmeasured);
    return st;
}
