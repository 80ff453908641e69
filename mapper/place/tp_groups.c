/* TP groups inside a node: a set partition solved by GLPK.
 *
 * Every subset of tp GPUs is a column; its cost is what a layer takes on it: compute at
 * its slowest GPU and the all-reduces on its best ring.  Since a pipeline runs at the pace
 * of its slowest group, the largest cost is minimised first and the sum second: the
 * smallest threshold is sought under which columns still partition the node, and among
 * those the sum is least. */
#include "mapper/milp.h"
#include "mapper/place/place_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/stats.h"

#define COLUMNS_MAX 20000 /* beyond, index order */
#define TP_MAX 16         /* ring orders are enumerated */
#define MILP_NODES 5000
/* Nobody measured the link: any measured one is better. */
#define UNMEASURED_COST_S 1e3

struct column {
    int gpu[TP_MAX]; /* local numbers, in ring order */
    double cost_s;
};

struct partition {
    const struct topology_cluster *c;
    const struct workload_profile *profile;
    const struct topology_node *node;
    int tp, groups;
    double bytes, layer_s;
    struct column *column;
    int n_columns;
};

/* Time of one all-reduce on a ring in this order. */
static double ring_cost (const struct partition *p, const int *order)
{
    struct costmodel_ring r = {
        .inside_bytes_per_s = INFINITY, .between_bytes_per_s = INFINITY, .nodes = 1};
    int unmeasured = 0;

    for (int i = 0; i < p->tp; i++) {
        struct topology_link l =
            topology_link (p->c, p->node->first_gpu + order[i],
                           p->node->first_gpu + order[(i + 1) % p->tp]);

        r.inside_bytes_per_s = fmin (r.inside_bytes_per_s, l.bytes_per_s);
        r.latency_s += l.latency_s * (p->tp - 1.0) / p->tp;
        unmeasured += !l.measured;
    }
    if (!p->c->has_gpu_links && p->node->intra->gpu_bytes_per_s > 0)
        r.inside_bytes_per_s =
            fmin (r.inside_bytes_per_s, p->node->intra->gpu_bytes_per_s);
    if (r.inside_bytes_per_s <= 0)
        return 2.0 * UNMEASURED_COST_S * p->tp;
    return costmodel_allreduce_s (p->profile, &r, p->tp, p->bytes) +
           unmeasured * UNMEASURED_COST_S;
}

/* The best ring through a subset: its first member stays, the others are permuted.  A
 * branch whose links are already slower than the best ring is cut. */
static void permute (const struct partition *p, int *order, int at, double slowest,
                     int *best, double *best_s)
{
    if (at == p->tp) {
        double cost = ring_cost (p, order);

        if (cost < *best_s) {
            *best_s = cost;
            memcpy (best, order, (size_t) p->tp * sizeof (int));
        }
        return;
    }
    for (int i = at; i < p->tp; i++) {
        int x = order[at];

        order[at] = order[i];
        order[i] = x;

        struct topology_link l = topology_link (p->c, p->node->first_gpu + order[at - 1],
                                                p->node->first_gpu + order[at]);
        struct costmodel_ring one = {.inside_bytes_per_s = l.bytes_per_s,
                                     .between_bytes_per_s = INFINITY,
                                     .nodes = 1};
        double link_s = costmodel_allreduce_s (p->profile, &one, p->tp, p->bytes);

        if (fmax (slowest, link_s) < *best_s)
            permute (p, order, at + 1, fmax (slowest, link_s), best, best_s);
        x = order[at];
        order[at] = order[i];
        order[i] = x;
    }
}

static enum status add_column (struct partition *p, const int *subset, struct error *err)
{
    struct column k = {.cost_s = INFINITY};
    int order[TP_MAX];
    double slowest = INFINITY;

    if (!array_grow (&p->column, p->n_columns, sizeof *p->column))
        return err_nomem (err);
    memcpy (order, subset, (size_t) p->tp * sizeof (int));
    memcpy (k.gpu, subset, (size_t) p->tp * sizeof (int));
    permute (p, order, 1, 0.0, k.gpu, &k.cost_s);
    if (!isfinite (k.cost_s))
        k.cost_s = ring_cost (p, subset);
    for (int i = 0; i < p->tp; i++)
        slowest = fmin (slowest, p->node->speed ? p->node->speed[subset[i]] : 1.0);
    k.cost_s = 4.0 * k.cost_s + p->layer_s / slowest; /* 4 all-reduces a layer */
    p->column[p->n_columns++] = k;
    return ST_OK;
}

/* All subsets of tp out of the node's GPUs, in lexicographic order. */
static enum status make_columns (struct partition *p, struct error *err)
{
    int n = p->node->gpus, subset[TP_MAX];

    for (int i = 0; i < p->tp; i++)
        subset[i] = i;
    for (;;) {
        int i = p->tp - 1;

        TRY (add_column (p, subset, err));
        while (i >= 0 && subset[i] == n - p->tp + i)
            i--;
        if (i < 0)
            return ST_OK;
        subset[i]++;
        for (int k = i + 1; k < p->tp; k++)
            subset[k] = subset[k - 1] + 1;
    }
}

/* The set partition of least sum over columns of at most max_cost: rows are GPUs (each in
 * at most one group) and the number of groups.  chosen receives `groups` columns. */
static enum status solve (const struct partition *p, double max_cost, int *chosen,
                          struct error *err)
{
    glp_prob *mip = glp_create_prob ();
    int n = p->node->gpus, used = 0;
    int row[TP_MAX + 2];
    double one[TP_MAX + 2];
    int *column_of = malloc (((size_t) p->n_columns + 1) * sizeof (int));
    enum status st = column_of ? ST_OK : err_nomem (err);

    glp_set_obj_dir (mip, GLP_MIN);
    glp_add_rows (mip, n + 1);
    for (int i = 1; i <= n; i++)
        glp_set_row_bnds (mip, i, GLP_UP, 0, 1);
    glp_set_row_bnds (mip, n + 1, GLP_FX, p->groups, p->groups);
    for (int k = 0; k < p->n_columns && st == ST_OK; k++) {
        int col;

        if (p->column[k].cost_s > max_cost)
            continue;
        col = glp_add_cols (mip, 1);
        column_of[used++] = k;
        glp_set_col_kind (mip, col, GLP_BV);
        glp_set_obj_coef (mip, col, p->column[k].cost_s);
        for (int i = 0; i < p->tp; i++) {
            row[i + 1] = p->column[k].gpu[i] + 1;
            one[i + 1] = 1;
        }
        row[p->tp + 1] = n + 1;
        one[p->tp + 1] = 1;
        glp_set_mat_col (mip, col, p->tp + 1, row, one);
    }
    if (st == ST_OK && used < p->groups)
        st = ST_NOFIT;
    THEN (st, milp_solve (&mip, MILP_NODES, err));
    if (st == ST_OK) {
        int found = 0;

        for (int i = 0; i < used && found < p->groups; i++)
            if (glp_mip_col_val (mip, i + 1) > 0.5)
                chosen[found++] = column_of[i];
    }
    milp_done (mip);
    free (column_of);
    return st;
}

/* Bisect the columns' costs for the smallest threshold that still partitions. */
static enum status partition_node (const struct partition *p, int *chosen,
                                   struct error *err)
{
    double *cost = malloc ((size_t) p->n_columns * sizeof *cost);
    int *try = malloc ((size_t) p->groups * sizeof (int));
    enum status st = cost && try ? solve (p, INFINITY, chosen, err) : err_nomem (err);

    if (st == ST_OK) {
        double most = 0;
        int lo = 0, hi = 0; /* thresholds cost[lo..hi), all below the known partition */

        for (int k = 0; k < p->groups; k++)
            most = fmax (most, p->column[chosen[k]].cost_s);
        for (int k = 0; k < p->n_columns; k++)
            if (p->column[k].cost_s < most * (1 - 1e-9))
                cost[hi++] = p->column[k].cost_s;
        stats_sort (cost, hi);
        while (lo < hi) {
            int mid = lo + (hi - lo) / 2;
            enum status found = solve (p, cost[mid] * (1 + 1e-12), try, err);

            if (found == ST_OK) {
                memcpy (chosen, try, (size_t) p->groups * sizeof (int));
                hi = mid;
            } else if (found == ST_NOFIT) {
                lo = mid + 1;
            } else {
                st = found;
                break;
            }
        }
    }
    FREE_ALL (cost, try);
    return st;
}

static bool node_alike (const struct topology_cluster *c, const struct topology_node *n)
{
    for (int k = 1; n->speed && k < n->gpus; k++)
        if (n->speed[k] != n->speed[0])
            return false;
    return !c->has_gpu_links &&
           (n->gpus == 1 || (n->intra->bytes_per_s.n == 0 && n->intra->latency_s.n == 0));
}

static double binomial (int n, int k)
{
    double x = 1;

    for (int i = 1; i <= k; i++)
        x = x * (n - k + i) / i;
    return x;
}

static int by_first (const void *a, const void *b)
{
    const struct column *const *x = a, *const *y = b;

    return (*x)->gpu[0] - (*y)->gpu[0];
}

/* Write the chosen groups in order of their first GPU, then the GPUs left over. */
static void write_groups (const struct partition *p, const int *chosen, int *gpu)
{
    const struct column *group[TOPOLOGY_NODE_GPUS_MAX];
    bool used[TOPOLOGY_NODE_GPUS_MAX] = {false};
    int at = 0;

    for (int k = 0; k < p->groups; k++)
        group[k] = &p->column[chosen[k]];
    qsort (group, (size_t) p->groups, sizeof *group, by_first);
    for (int k = 0; k < p->groups; k++)
        for (int i = 0; i < p->tp; i++) {
            gpu[at++] = group[k]->gpu[i];
            used[group[k]->gpu[i]] = true;
        }
    for (int i = 0; i < p->node->gpus; i++)
        if (!used[i])
            gpu[at++] = i;
}

enum status place_tp_groups (const struct topology_cluster *c,
                             const struct workload_profile *profile, int node, int tp,
                             double bytes, double layer_s, int *gpu, struct error *err)
{
    const struct topology_node *n = &c->node[node];
    struct partition p = {.c = c,
                          .profile = profile,
                          .node = n,
                          .tp = tp,
                          .groups = n->gpus / tp,
                          .bytes = bytes,
                          .layer_s = layer_s};
    int *chosen;
    enum status st;

    for (int i = 0; i < n->gpus; i++)
        gpu[i] = i;
    if (tp == 1 || p.groups == 0 || tp > TP_MAX || node_alike (c, n) ||
        binomial (n->gpus, tp) > COLUMNS_MAX)
        return ST_OK;
    chosen = malloc ((size_t) p.groups * sizeof (int));
    st = chosen ? make_columns (&p, err) : err_nomem (err);
    THEN (st, partition_node (&p, chosen, err));
    if (st == ST_OK)
        write_groups (&p, chosen, gpu);
    FREE_ALL (chosen, p.column);
    return st == ST_NOFIT ? ST_OK : st; /* index order is a partition too */
}

enum status groups_init (struct groups *g, const struct pool *pool,
                         const struct workload_config *config, struct error *err)
{
    const struct mapper_problem *p = pool->problem;
    const struct topology_cluster *c = p->cluster;
    struct workload_config one = *config;
    struct costmodel_volume v;
    struct costmodel_compute k;
    enum status st = ST_OK;

    *g = (struct groups){.tp = config->deg.tp};
    g->gpu = malloc ((size_t) c->n_gpus * sizeof (int));
    g->grouped = malloc ((size_t) c->n_nodes * sizeof (int));
    if (!g->gpu || !g->grouped) {
        groups_release (g);
        return err_nomem (err);
    }
    /* One micro-batch of one sequence stands for all: what matters is which link is
     * slower, and that does not change with the payload. */
    one.micro_batch = 1;
    costmodel_volume (p->model, p->job, &one, p->profile, &v);
    for (int i = 0; i < pool->n_nodes && st == ST_OK; i++) {
        const struct topology_node *n = &c->node[pool->node[i]];
        const struct topology_node *before = i > 0 ? &c->node[pool->node[i - 1]] : n;
        int *gpu = g->gpu + n->first_gpu;
        bool same = i > 0 && !c->has_gpu_links && n->intra == before->intra &&
                    !n->speed && !before->speed && n->gpus == before->gpus &&
                    n->type == before->type;

        if (same) { /* one set of links serves both */
            for (int x = 0; x < n->gpus; x++)
                gpu[x] = g->gpu[before->first_gpu + x] - before->first_gpu + n->first_gpu;
        } else {
            costmodel_compute (p->model, p->job, &one, p->profile, n->type, &k);
            st = place_tp_groups (c, p->profile, pool->node[i], g->tp, v.tp_bytes,
                                  k.dense.fwd_s + k.dense.back_s, gpu, err);
            for (int x = 0; x < n->gpus && st == ST_OK; x++)
                gpu[x] += n->first_gpu;
        }
        g->grouped[pool->node[i]] =
            g->tp > pool->max_node_gpus ? n->gpus : n->gpus / g->tp * g->tp;
    }
    if (st != ST_OK)
        groups_release (g);
    return st;
}

void groups_release (struct groups *g)
{
    FREE_ALL (g->gpu, g->grouped);
    *g = (struct groups){0};
}
