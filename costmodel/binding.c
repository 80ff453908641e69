/* Which links hold a step up, and what that and sharing cost. */
#include "costmodel/costmodel_private.h"

#include <stdlib.h>

#include "base/units.h"

#define NODES_MAX 4096 /* beyond, the median of all links takes longer than the plan */

/* What is usual for a sort; nothing is noted where that is not known. */
static enum status find_usual (const struct topology_cluster *c, struct slow_links *slow,
                               struct error *err)
{
    struct topology_link_stats stats = {0};

    if (slow->sort == COSTMODEL_INSIDE)
        return topology_inside_create (c, &slow->inside, err);
    if (slow->sort == COSTMODEL_TOTALS)
        return topology_pair_typical (c, &slow->median_bytes_per_s, err);
    if (c->n_nodes > 1)
        TRY (topology_inter_stats (c, &stats, err));
    slow->median_bytes_per_s = stats.median_bytes_per_s;
    return ST_OK;
}

/* The step, with the slowest links in use noted where asked for. */
static enum status step_of (const struct costmodel_problem *p, const int *gpu_of_rank,
                            struct slow_links *slow, double *step_s, struct error *err)
{
    struct costmodel_estimate e;

    TRY (estimate_noting (p, gpu_of_rank, true, slow, &e, err));
    free (e.unmeasured);
    *step_s = e.step_s;
    return ST_OK;
}

enum status costmodel_find_binding (const struct costmodel_problem *p,
                                    const int *gpu_of_rank, double step_s,
                                    struct costmodel_binding *out, bool *found,
                                    struct error *err)
{
    struct slow_links slow = {.sort = COSTMODEL_BETWEEN};
    double now_s;
    enum status st;

    *found = false;
    if (p->cluster->n_nodes < 2 || p->cluster->n_nodes > NODES_MAX)
        return ST_OK;
    st = find_usual (p->cluster, &slow, err);
    THEN (st, step_of (p, gpu_of_rank, &slow, &now_s, err));
    for (int i = 0; i < slow.n && st == ST_OK; i++) {
        struct costmodel_binding *b = &slow.link[i];
        struct costmodel_what_if what_if = {b->src_gpu, b->dst_gpu,
                                            slow.median_bytes_per_s};
        struct costmodel_problem q = *p;

        if (!(b->bytes_per_s < 0.99 * slow.median_bytes_per_s))
            break;
        q.what_if = &what_if;
        st = step_of (&q, gpu_of_rank, NULL, &b->step_s, err);
        if (st == ST_OK && b->step_s < (*found ? out->step_s : step_s * (1.0 - 1e-9))) {
            *out = *b;
            *found = true;
        }
    }
    return st;
}

enum status costmodel_slow_links (const struct costmodel_problem *p,
                                  const int *gpu_of_rank, enum costmodel_slow sort,
                                  struct costmodel_binding out[COSTMODEL_SLOW_LINKS],
                                  int *n, struct error *err)
{
    struct slow_links slow = {.sort = sort, .directed = true};
    double step_s;
    enum status st;

    *n = 0;
    if (p->cluster->n_nodes > NODES_MAX)
        return ST_OK;
    st = find_usual (p->cluster, &slow, err);
    THEN (st, step_of (p, gpu_of_rank, &slow, &step_s, err));
    for (; st == ST_OK && *n < slow.n; ++*n) {
        out[*n] = slow.link[*n];
        out[*n].step_s = step_s;
    }
    topology_inside_destroy (slow.inside);
    return st;
}

enum status costmodel_unshared_step (const struct costmodel_problem *p,
                                     const int *gpu_of_rank, double *step_s,
                                     struct error *err)
{
    struct costmodel_problem alone = *p;

    alone.unshared = true;
    return step_of (&alone, gpu_of_rank, NULL, step_s, err);
}

json_t *costmodel_binding_to_json (const struct topology_cluster *c,
                                   const struct costmodel_binding *b, bool found)
{
    if (!found)
        return json_null ();
    return json_pack ("{s:[s, s], s:s, s:f, s:f, s:f}", "nodes",
                      c->node[c->node_of_gpu[b->src_gpu]].name,
                      c->node[c->node_of_gpu[b->dst_gpu]].name, "use", b->use, "gb_per_s",
                      b->bytes_per_s / UNITS_GB, "median_gb_per_s",
                      b->median_bytes_per_s / UNITS_GB, "step_s_at_median", b->step_s);
}
