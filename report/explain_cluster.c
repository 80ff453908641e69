/* Changes of the cluster are tried as statements of a what-if, so that each gain is what
 * --what-if, or the same edit of the file, says.  One cluster is made at a time: it is priced in
 * place and dropped, and made again for the few that are placed anew. */
#include "report/report_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topology/topology.h"

#define MOST 12 /* of nodes and GPUs that are tried */

/* ---- in place ---- */

/* Try one; what the cluster has no place for is left out. */
static enum status try (struct report_explaining *e, enum report_kind kind,
                        const char *statement)
{
    struct report_whatif_plan in_place = e->plan;
    struct report_what one = {0};
    struct report_gain *g = NULL;
    enum status st;

    report_explain_tell (e, statement);
    in_place.settings = NULL;
    st = report_what_read (e->plan.p->cluster, statement, &one, e->err);
    if (st == ST_INVALID) {
        report_what_release (&one);
        return ST_OK;
    }
    THEN (st, report_what_run (&in_place, &one, e->err));
    if (st == ST_OK && !(g = report_explain_add (e, kind)))
        st = ST_NOMEM;
    if (st == ST_OK) {
        g->is_change = true;
        g->in_place_s = one.in_place_s;
        snprintf (g->what, sizeof g->what, "%s", statement);
        memcpy (g->why, one.why, sizeof g->why);
    }
    report_what_release (&one);
    return st;
}

/* Nodes that are tried, in the order in which something was found about them. */
struct suspects {
    bool *is;  /* [n_nodes] */
    int *node; /* [n] */
    int n;
};

static void suspect (struct suspects *s, int node)
{
    if (!s->is[node])
        s->node[s->n++] = node;
    s->is[node] = true;
}

/* A node's name, or a GPU's. */
static void name_end (const struct topology_cluster *c, int gpu, bool single,
                      char out[300])
{
    const char *node = c->node[c->node_of_gpu[gpu]].name;

    if (single)
        snprintf (out, 300, "%s:%d", node, topology_gpu_index (c, gpu));
    else
        snprintf (out, 300, "%s", node);
}

/* What is found slow at the same level of three sorts. */
static const struct sort {
    enum costmodel_slow slow;
    enum report_kind kind;
    const char *statement;
} sorts[] = {{COSTMODEL_INSIDE, REPORT_INSIDE, "link"},
             {COSTMODEL_TOTALS, REPORT_PAIR, "pair"},
             {COSTMODEL_BETWEEN, REPORT_LINK, "link"}};
#define SORTS ((int) (sizeof sorts / sizeof *sorts))

static enum status try_slow (struct report_explaining *e, const struct sort *sort,
                             const struct costmodel_binding *b, struct suspects *found)
{
    const struct topology_cluster *c = e->plan.p->cluster;
    int from_node = c->node_of_gpu[b->src_gpu], to_node = c->node_of_gpu[b->dst_gpu];
    bool single =
        sort->kind == REPORT_INSIDE || (sort->kind == REPORT_LINK && c->has_gpu_links);
    char from[300], to[300], statement[700];

    if (!(b->bytes_per_s < 0.99 * b->median_bytes_per_s))
        return ST_OK;
    suspect (found, from_node);
    suspect (found, to_node);
    if (sort->kind == REPORT_INSIDE && topology_inside_alike (c, from_node))
        return ST_OK; /* it is the node that is slow, not one link */
    name_end (c, b->src_gpu, single, from);
    name_end (c, b->dst_gpu, single, to);
    snprintf (statement, sizeof statement, "%s %s->%s = %.6g", sort->statement, from, to,
              b->median_bytes_per_s / UNITS_GB);
    return try (e, sort->kind, statement);
}

/* The slowest of each sort, then the second of each: nodes are tried in this order. */
static enum status try_links (struct report_explaining *e, struct suspects *found)
{
    const struct mapper_problem *p = e->plan.p;
    struct costmodel_problem priced = mapper_priced (p, e->plan.config, e->plan.layers);
    struct costmodel_binding slow[SORTS][COSTMODEL_SLOW_LINKS];
    int n[SORTS];

    for (int s = 0; s < SORTS; s++)
        TRY (costmodel_slow_links (&priced, e->plan.gpu, sorts[s].slow, slow[s], &n[s],
                                   e->err));
    for (int k = 0; k < COSTMODEL_SLOW_LINKS; k++)
        for (int s = 0; s < SORTS; s++)
            if (k < n[s])
                TRY (try_slow (e, &sorts[s], &slow[s][k], found));
    return ST_OK;
}

struct slow_gpu {
    int gpu;
    double speed;
};

static int by_speed (const void *a, const void *b)
{
    const struct slow_gpu *x = a, *y = b;

    return x->speed != y->speed ? (x->speed > y->speed) - (x->speed < y->speed)
                                : x->gpu - y->gpu;
}

static enum status try_gpus (struct report_explaining *e, struct suspects *found)
{
    const struct topology_cluster *c = e->plan.p->cluster;
    int world = (int) workload_world (&e->plan.config->deg), n = 0;
    struct slow_gpu *slow = calloc ((size_t) world, sizeof *slow);
    enum status st = slow ? ST_OK : err_nomem (e->err);

    for (int r = 0; slow && r < world; r++) {
        double speed = topology_gpu_speed (c, e->plan.gpu[r]);

        if (speed < 1.0)
            slow[n++] = (struct slow_gpu){e->plan.gpu[r], speed};
    }
    if (n > 1)
        qsort (slow, (size_t) n, sizeof *slow, by_speed);
    for (int k = 0; k < n && k < MOST && st == ST_OK; k++) {
        int node = c->node_of_gpu[slow[k].gpu];
        char statement[300];

        snprintf (statement, sizeof statement, "gpu %s:%d speed 1", c->node[node].name,
                  topology_gpu_index (c, slow[k].gpu));
        st = try (e, REPORT_GPU, statement);
        suspect (found, node);
    }
    free (slow);
    return st;
}

static enum status try_nodes (struct report_explaining *e, const struct suspects *found)
{
    const struct topology_cluster *c = e->plan.p->cluster;
    char statement[300];

    for (int k = 0; k < found->n && k < MOST; k++) {
        snprintf (statement, sizeof statement, "mend %s", c->node[found->node[k]].name);
        TRY (try (e, REPORT_NODE, statement));
    }
    return ST_OK;
}

/* What is slow, from the surest to blame on a node to the least. */
static enum status try_slow_parts (struct report_explaining *e)
{
    size_t n = (size_t) e->plan.p->cluster->n_nodes;
    struct suspects found = {calloc (n, sizeof *found.is), calloc (n, sizeof *found.node),
                             0};
    enum status st = found.is && found.node ? try_gpus (e, &found) : err_nomem (e->err);

    THEN (st, try_links (e, &found));
    THEN (st, try_nodes (e, &found));
    free (found.is);
    free (found.node);
    return st;
}

/* ---- placed anew ---- */

/* The same change with a search; the base is what a search finds without it. */
static enum status replan (struct report_explaining *e, struct report_gain *g)
{
    struct report_what one = {0};
    enum status st;

    report_explain_tell (e, g->what);
    st = report_what_read (e->plan.p->cluster, g->what, &one, e->err);
    THEN (st, report_what_run (&e->plan, &one, e->err));
    e->searched++;
    if (st == ST_OK) {
        g->replanned_s =
            one.replanned.fits ? one.replanned.plan.estimate.step_s : INFINITY;
        if (one.replanned.fits)
            g->certain = report_certain (&e->base, &one.replanned.plan);
        else
            memcpy (g->why, one.replanned.why, sizeof g->why);
    }
    report_what_release (&one);
    return st;
}

/* The kind's largest gain in place; -1: none gains. */
static int best_of_kind (const struct report_explained *x, enum report_kind kind)
{
    int best = -1;

    for (int k = 0; k < x->n_gains; k++)
        if (x->gain[k].kind == kind && x->gain[k].is_change &&
            (best < 0 || x->gain[k].in_place_s < x->gain[best].in_place_s))
            best = k;
    return best;
}

static enum status replan_best (struct report_explaining *e)
{
    struct report_what as_it_is = {0};
    enum status st;

    report_explain_tell (e, "the cluster as it is");
    st = report_what_run (&e->plan, &as_it_is, e->err);
    e->searched++;
    if (st == ST_OK && as_it_is.replanned.fits) {
        e->x->replanned_s = as_it_is.replanned.plan.estimate.step_s;
        e->base = as_it_is.replanned.plan;
        as_it_is.replanned.plan = (struct mapper_result){0};
    }
    report_what_release (&as_it_is);
    for (int kind = 0; kind < REPORT_KINDS && st == ST_OK && e->base.gpu; kind++) {
        int k = best_of_kind (e->x, (enum report_kind) kind);

        if (k >= 0)
            st = replan (e, &e->x->gain[k]);
        else
            e->searched++;
    }
    return st;
}

/* The node whose mending gains most, without it. */
static enum status try_drain (struct report_explaining *e)
{
    int k = best_of_kind (e->x, REPORT_NODE);
    struct report_gain *g;

    if (k < 0 || !e->base.gpu) {
        e->searched++;
        return ST_OK;
    }
    if (!(g = report_explain_add (e, REPORT_NODE)))
        return ST_NOMEM;
    g->is_change = true;
    snprintf (g->what, sizeof g->what, "drain %.300s",
              e->x->gain[k].what + strlen ("mend "));
    return replan (e, g);
}

enum status report_explain_cluster (struct report_explaining *e)
{
    TRY (try_slow_parts (e));
    TRY (try (e, REPORT_SETTING, "nics x 2"));
    TRY (try (e, REPORT_SETTING, "pairs x 2"));
    TRY (replan_best (e));
    TRY (try_drain (e));
    if (!e->base.gpu)
        return ST_OK;
    TRY (try (e, REPORT_SETTING, "memory x 1.1"));
    return replan (e, &e->x->gain[e->x->n_gains - 1]);
}
