/* The best plan of a part of the cluster, searched for by itself.
 *
 * A plan of a part is a plan of the whole.  Yet with every node that is there the search has more
 * to look at, and what it is drawn to is luck: a cluster with one old node more must not get a
 * longer step.  So where the best plan of a small pool leaves nodes idle, what is left is searched
 * again without them, as if they were not there, and so on. */
#include "mapper/search/search_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"

#define PARTS 3       /* one in another */
#define PART_GPUS 64  /* of a pool: larger ones take long */
#define PART_TIME 0.5 /* of what is left of a time limit */

/* Which nodes the part has: all that hold ranks of the best plan, and of the idle ones those that
 * are not of the slowest class among them, if there are several.
 * @param[out] in  [n_nodes] @return whether it is a part */
static bool choose_nodes (const struct search *x, bool *in)
{
    const struct kept *best = &x->placed[x->best];
    const struct topology_cluster *c = x->p->cluster;
    int world = (int) workload_world (&x->config[best->index].deg), slowest = -1;

    memset (in, 0, (size_t) c->n_nodes * sizeof *in);
    for (int r = 0; r < world; r++)
        in[c->node_of_gpu[best->plan.gpu[r]]] = true;
    for (int i = 0; i < x->pool.n_nodes; i++) {
        int node = x->pool.node[i], class = pool_node_class (&x->pool, node);

        if (!in[node] && class > slowest)
            slowest = class;
    }
    for (int i = 0; i < x->pool.n_nodes; i++)
        if (pool_node_class (&x->pool, x->pool.node[i]) < slowest)
            in[x->pool.node[i]] = true;
    return slowest >= 0;
}

/* The part's search shows the whole one's progress, and ends with it. */
static bool show_whole (void *whole, long done, long total, double best_s, double bound_s)
{
    (void) done, (void) total, (void) best_s, (void) bound_s;
    return search_show_progress (whole);
}

static bool stop_with_whole (void *whole)
{
    const struct search *x = whole;

    return x->s->stop && x->s->stop (x->s->context);
}

/* Where a configuration is in the list; -1: nowhere. */
static long find_config (const struct search *x, const struct workload_config *c)
{
    const struct mapper_axes axes = mapper_axes_of (c);

    for (long i = 0; i < x->n; i++)
        if (mapper_axes_hold (&axes, &x->config[i]) &&
            x->config[i].optimizer_bytes == c->optimizer_bytes)
            return i;
    return -1;
}

/* Its bound so far: it is placed, or waits in the heap. */
static double bound_so_far (const struct search *x, long index)
{
    if (x->placed_at[index] > 0)
        return x->placed[x->placed_at[index] - 1].bound;
    for (long i = 0; i < x->heap_n; i++)
        if (x->heap[i].index == index)
            return x->heap[i].bound_s;
    return search_bound (x, &x->config[index], BOUND_FRACTIONS, 0, search_reach (x));
}

/* Keep the part's plan among the whole's; takes its places and layers over. */
static enum status keep (struct search *x, struct mapper_result *r, struct error *err)
{
    long index = find_config (x, &r->config);
    struct placed p = {.layers = r->layers,
                       .gpu = r->gpu,
                       .price = {.unmeasured = r->estimate.n_unmeasured,
                                 .step_s = r->estimate.step_s,
                                 .smooth_s = r->estimate.step_s},
                       .node_step_s = r->node_step_s,
                       .gpu_step_s = r->gpu_step_s,
                       .skipped_s = INFINITY,
                       .granularity = r->granularity};

    if (index < 0)
        return ST_OK;
    r->layers = r->gpu = NULL;
    return search_keep (
        x, &p, &(struct entry){bound_so_far (x, index), index, BOUND_FRACTIONS}, err);
}

enum status search_part (struct search *x, struct error *err)
{
    struct mapper_problem part = *x->p;
    struct mapper_settings s = *x->s;
    struct mapper_result r = {0};
    struct mapper_info info;
    bool *in;
    enum status st;

    if (x->part >= PARTS || !x->annealed || x->best < 0 || x->pool.n_gpus > PART_GPUS ||
        deadline_passed (&x->deadline))
        return ST_OK;
    if (!(in = malloc ((size_t) part.cluster->n_nodes * sizeof *in)))
        return err_nomem (err);
    part.node_allowed = in;
    s.top = 0;
    s.tie = 0;
    s.progress = show_whole;
    s.stop = stop_with_whole;
    s.context = x;
    if (isfinite (x->deadline.until_s))
        s.time_limit_s = fmax (1e-3, PART_TIME * (x->deadline.until_s - clock_s ()));
    if (choose_nodes (x, in)) {
        st = x->search_nodes (&part, &s, x->part + 1, &r, &info, err);
        mapper_info_release (&info);
        THEN (st, keep (x, &r, err));
        mapper_result_release (&r);
    } else {
        st = ST_OK;
    }
    free (in);
    return st == ST_NOMEM ? st : ST_OK;
}
