#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum status report_find_best (const struct mapper_problem *p,
                              const struct mapper_settings *settings,
                              struct workload_profile *used, struct report_best *out,
                              struct error *err)
{
    struct error why = {""};
    struct mapper_problem own = *p;
    enum status st =
        used ? mapper_search_used (&own, used, settings, &out->plan, &out->info, &why)
             : mapper_search_prudent (&own, settings, &out->plan, &out->info, &why);

    if (st == ST_NOFIT || st == ST_INVALID) {
        snprintf (out->why, sizeof out->why, "%.255s", why.text);
        return ST_OK;
    }
    if (st != ST_OK)
        return err_set (err, st, "%s", why.text);

    out->fits = true;
    out->gpu_hours =
        mapper_gpu_hours (p->job, &out->plan.config, out->plan.estimate.step_s);
    return ST_OK;
}

long long report_carry (const struct topology_cluster *from,
                        const struct topology_cluster *to, const int *gpu, long long n,
                        int *out)
{
    long long lost = 0;

    for (long long r = 0; r < n; r++) {
        int node = topology_node_find (to, from->node[from->node_of_gpu[gpu[r]]].name);

        out[r] = node < 0 || to->node[node].drained
                     ? -1
                     : topology_gpu_find (to, node, topology_gpu_index (from, gpu[r]));
        lost += out[r] < 0;
    }
    return lost;
}

static bool same_degrees (const struct workload_degrees *x,
                          const struct workload_degrees *y)
{
    return x->tp == y->tp && x->pp == y->pp && x->dp == y->dp && x->cp == y->cp &&
           x->ep == y->ep && x->etp == y->etp && x->vpp == y->vpp;
}

static enum status keep (const struct mapper_problem *a, const struct mapper_problem *b,
                         struct report_compared *out, struct error *err)
{
    const struct mapper_result *old = &out->best[0].plan, *new = &out->best[1].plan;
    long long world = workload_world (&old->config.deg);
    struct costmodel_problem p = {.model = b->model,
                                  .job = b->job,
                                  .config = &old->config,
                                  .profile = b->profile,
                                  .cluster = b->cluster,
                                  .layers = old->layers};
    struct costmodel_estimate e;
    int *gpu = malloc ((size_t) world * sizeof *gpu);
    enum status st;

    if (!gpu)
        return err_nomem (err);
    out->has_kept = true;
    out->kept_step_s = INFINITY;
    out->moved = -1;
    if (report_carry (a->cluster, b->cluster, old->gpu, world, gpu) == 0) {
        st = costmodel_estimate (&p, gpu, true, &e, err);
        if (st == ST_OK) {
            out->kept_step_s = e.step_s;
            free (e.unmeasured);
        } else if (st != ST_NOFIT) {
            free (gpu);
            return st;
        }
        if (same_degrees (&old->config.deg, &new->config.deg)) {
            out->moved = 0;
            for (long long r = 0; r < world; r++)
                out->moved += gpu[r] != new->gpu[r];
        }
    }
    free (gpu);
    return ST_OK;
}

enum status report_compare (const struct mapper_problem *a,
                            const struct mapper_problem *b, bool snapshots,
                            const struct mapper_settings *settings,
                            struct report_compared *out, struct error *err)
{
    struct report_compared x = {.kept_step_s = INFINITY, .moved = -1};
    enum status st = report_find_best (a, settings, NULL, &x.best[0], err);

    THEN (st, report_find_best (b, settings, NULL, &x.best[1], err));
    if (st == ST_OK && snapshots && x.best[0].fits && x.best[1].fits)
        st = keep (a, b, &x, err);
    if (st == ST_OK)
        *out = x;
    else
        report_compared_release (&x);
    return st;
}

void report_compared_release (struct report_compared *r)
{
    for (int k = 0; k < 2; k++) {
        mapper_result_release (&r->best[k].plan);
        mapper_info_release (&r->best[k].info);
    }
    *r = (struct report_compared){.moved = -1};
}
