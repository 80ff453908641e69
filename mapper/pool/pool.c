/* What the search may use: nodes, classes of GPUs, the best links. */
#include "mapper/pool/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/stats.h"

#define POOR 1.3   /* times the usual badness of links */
#define SAMPLED 64 /* links of a node */
#define GOOD 0.9   /* so many of them are no better than those that it can have */

/* GPUs of the max_nodes largest nodes. */
static enum status count_gpus (struct pool *pool, struct error *err)
{
    const struct topology_cluster *c = pool->problem->cluster;
    int most = pool->problem->max_nodes;
    int *size = malloc ((size_t) pool->n_nodes * sizeof (int));

    if (!size)
        return err_nomem (err);
    for (int i = 0; i < pool->n_nodes; i++)
        size[i] = c->node[pool->node[i]].gpus;
    qsort (size, (size_t) pool->n_nodes, sizeof (int), order_ints_down);
    pool->max_node_gpus = size[0];
    for (int i = 0; i < pool->n_nodes; i++) {
        pool->n_gpus += most == 0 || i < most ? size[i] : 0;
        pool->all_gpus += size[i];
    }
    for (int i = 0; i < pool->n_nodes; i++)
        pool->n_pinned +=
            pool->problem->node_pinned && pool->problem->node_pinned[pool->node[i]];
    free (size);
    return ST_OK;
}

/* How many groups of tp GPUs of the classes up to each lie inside nodes, for every tp. */
static enum status count_groups (struct pool *pool, struct error *err)
{
    const struct topology_cluster *c = pool->problem->cluster;
    int width = pool->max_node_gpus + 1, most = pool->n_nodes;
    long *nodes = calloc ((size_t) width, sizeof *nodes); /* with so many such GPUs */

    if (pool->problem->max_nodes > 0 && pool->problem->max_nodes < most)
        most = pool->problem->max_nodes;
    pool->groups = calloc ((size_t) pool->n_classes * (size_t) width, sizeof (long));
    if (!nodes || !pool->groups) {
        free (nodes);
        return err_nomem (err);
    }
    for (int q = 0; q < pool->n_classes; q++) {
        memset (nodes, 0, (size_t) width * sizeof *nodes);
        for (int i = 0; i < pool->n_nodes; i++) {
            const struct topology_node *node = &c->node[pool->node[i]];
            int have = 0;

            for (int k = 0; k < node->gpus; k++)
                have += pool->class_of_gpu[node->first_gpu + k] <= q;
            nodes[have]++;
        }
        for (int tp = 1; tp < width; tp++) {
            long left = most; /* the best nodes that a limit leaves */

            for (int have = width - 1; have >= tp && left > 0; have--) {
                long n = nodes[have] < left ? nodes[have] : left;

                pool->groups[q * width + tp] += n * (have / tp);
                left -= n;
            }
        }
    }
    free (nodes);
    return ST_OK;
}

long pool_groups (const struct pool *pool, int upto, int tp)
{
    return tp > pool->max_node_gpus ? 0
                                    : pool->groups[upto * (pool->max_node_gpus + 1) + tp];
}

/* ---- links ---- */

/* Classes of a node's GPUs, or of one. */
struct class_range {
    int fastest, slowest;
};

static struct class_range range_of (const struct pool *pool, int gpu, int n)
{
    struct class_range r = {pool->class_of_gpu[gpu], pool->class_of_gpu[gpu]};

    for (int k = 1; k < n; k++) {
        int q = pool->class_of_gpu[gpu + k];

        r.fastest = q < r.fastest ? q : r.fastest;
        r.slowest = q > r.slowest ? q : r.slowest;
    }
    return r;
}

int pool_slowest_class (const struct pool *pool, const int *gpu, int n)
{
    int q = 0;

    for (int k = 0; k < n; k++)
        q = pool->class_of_gpu[gpu[k]] > q ? pool->class_of_gpu[gpu[k]] : q;
    return q;
}

int pool_node_class (const struct pool *pool, int node)
{
    const struct topology_node *n = &pool->problem->cluster->node[node];

    return range_of (pool, n->first_gpu, n->gpus).slowest;
}

/* Is it the node, and not some pair?  Then most of its links are as bad as all together. */
static bool most_links_are_bad (const struct pool *pool, int i, double usual)
{
    const struct topology_cluster *c = pool->problem->cluster;
    int bad = 0;

    for (int k = 0; k < pool->n_nodes; k++) {
        int a = pool->node[i], b = pool->node[k];

        bad += k != i && (pool_link_badness (c, a, b) + pool_link_badness (c, b, a)) *
                                 (pool->n_nodes - 1) >
                             POOR * usual;
    }
    return 2 * bad > pool->n_nodes - 1;
}

static enum status find_poorness (struct pool *pool, struct error *err)
{
    double *some = malloc ((size_t) pool->n_nodes * sizeof *some);

    pool->poorness = malloc ((size_t) pool->n_nodes * sizeof *pool->poorness);
    if (!some || !pool->poorness) {
        free (some);
        return err_nomem (err);
    }
    for (int q = 0; q < pool->n_classes; q++) {
        int n = 0;
        double usual;

        for (int i = 0; i < pool->n_nodes; i++)
            if (pool_node_class (pool, pool->node[i]) == q)
                some[n++] = pool->badness[i];
        usual = stats_median (some, n);
        for (int i = 0; i < pool->n_nodes; i++) {
            double times = pool->badness[i] / usual;

            if (pool_node_class (pool, pool->node[i]) == q)
                pool->poorness[i] = times > POOR && isfinite (times) &&
                                            most_links_are_bad (pool, i, usual)
                                        ? times
                                        : 1.0;
        }
    }
    free (some);
    return ST_OK;
}

static void keep_best (struct best_link *best, struct topology_link l)
{
    if (!(best->bytes_per_s > 0) || l.latency_s < best->latency_s)
        best->latency_s = l.latency_s;
    best->bytes_per_s = fmax (best->bytes_per_s, l.bytes_per_s);
}

/* A link between GPUs of these classes. */
static void see_link (struct pool *pool, bool inside, struct topology_link l,
                      struct class_range a, struct class_range b)
{
    if (!(l.bytes_per_s > 0))
        return;
    /* Every link touches some class; find_touching has those that touch a faster one. */
    keep_best (&pool->touching[!inside][a.slowest > b.slowest ? a.slowest : b.slowest],
               l);
    for (int q = 0; q < pool->n_classes; q++)
        if ((a.fastest <= q && q <= a.slowest) || (b.fastest <= q && q <= b.slowest))
            keep_best (&pool->own[!inside][q], l);
    for (int q = a.fastest; q <= a.slowest && pool->n_classes <= CLASSES_FEW; q++)
        for (int other = b.fastest; other <= b.slowest; other++) {
            keep_best (&pool->pairing[!inside][q][other], l);
            keep_best (&pool->pairing[!inside][other][q], l);
        }
    for (int q = 1 + (a.fastest < b.fastest ? a.fastest : b.fastest); q < pool->n_classes;
         q++)
        if ((a.fastest < q && q <= b.slowest) || (b.fastest < q && q <= a.slowest))
            keep_best (&pool->mixing[!inside][q], l);
}

/* A link that touches a class touches "this class or slower" of every faster one. */
static void find_touching (struct pool *pool)
{
    for (int kind = 0; kind < 2; kind++)
        for (int q = pool->n_classes - 1; q > 0; q--) {
            const struct best_link *slower = &pool->touching[kind][q];

            if (slower->bytes_per_s > 0)
                keep_best (&pool->touching[kind][q - 1],
                           (struct topology_link){.bytes_per_s = slower->bytes_per_s,
                                                  .latency_s = slower->latency_s});
        }
    pool->intra_bytes_per_s = pool->touching[0][0].bytes_per_s;
    pool->inter_bytes_per_s = pool->touching[1][0].bytes_per_s;
    pool->intra_latency_s =
        pool->intra_bytes_per_s > 0 ? pool->touching[0][0].latency_s : INFINITY;
    pool->inter_latency_s =
        pool->inter_bytes_per_s > 0 ? pool->touching[1][0].latency_s : INFINITY;
}

/* All pairs of GPUs of two nodes, or of one.  @return was any link measured? */
static bool see_pairs (struct pool *pool, const struct topology_node *a,
                       const struct topology_node *b)
{
    bool measured = false;

    for (int x = a->first_gpu; x < a->first_gpu + a->gpus; x++)
        for (int y = b->first_gpu; y < b->first_gpu + b->gpus; y++) {
            struct topology_link l = topology_link (pool->problem->cluster, x, y);

            if (x == y)
                continue;
            measured = measured || l.measured;
            see_link (pool, a == b, l, range_of (pool, x, 1), range_of (pool, y, 1));
        }
    return measured;
}

/* ---- islands ---- */

static int island_of (int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* @param[in] parent  [n_nodes] nodes joined, as island_of() follows it */
static void count_islands (struct pool *pool, int *parent)
{
    int *gpus = pool->island_gpus;

    for (int i = 0; i < pool->n_nodes; i++)
        gpus[island_of (parent, i)] += pool->problem->cluster->node[pool->node[i]].gpus;
    for (int i = 0; i < pool->n_nodes; i++) {
        int at = pool->n_islands, n = gpus[i];

        if (n == 0)
            continue;
        for (; at > 0 && gpus[at - 1] < n; at--)
            gpus[at] = gpus[at - 1];
        gpus[at] = n;
        pool->n_islands++;
    }
}

int pool_unmeasured_at_least (const struct pool *pool, long long world)
{
    int n = 0;

    for (long long held = 0; held < world && n < pool->n_islands; n++)
        held += pool->island_gpus[n];
    return n > 1 ? n : 0;
}

static double rate_between (const struct topology_cluster *c, int a, int b)
{
    return topology_link (c, c->node[a].first_gpu, c->node[b].first_gpu).bytes_per_s;
}

static enum status find_usual (struct pool *pool, struct error *err)
{
    const struct topology_cluster *c = pool->problem->cluster;
    double some[SAMPLED];

    pool->usual = calloc ((size_t) c->n_nodes, sizeof *pool->usual);
    if (!pool->usual)
        return err_nomem (err);
    for (int i = 0; i < pool->n_nodes; i++) {
        int n = 0, all = pool->n_nodes - 1, most = all < SAMPLED ? all : SAMPLED;

        for (int k = 0; k < most; k++) {
            int a = pool->node[i],
                b = pool->node[(i + 1 + (int) ((long) k * all / most)) % pool->n_nodes];

            some[n++] = fmin (rate_between (c, a, b), rate_between (c, b, a));
        }
        stats_sort (some, n);
        pool->usual[pool->node[i]] = n > 0 ? stats_quantile (some, n, GOOD) : INFINITY;
    }
    return ST_OK;
}

/* ---- all links ---- */

static enum status find_reach (struct pool *pool, struct error *err)
{
    const struct topology_cluster *c = pool->problem->cluster;
    bool unlike = !c->has_gpu_links && c->has_inter && c->inter.bytes_per_s.n > 0;

    pool->reach = malloc (2 * (size_t) pool->n_nodes * sizeof *pool->reach);
    if (!pool->reach)
        return err_nomem (err);
    pool->one_way = pool->reach + pool->n_nodes;
    for (int i = 0; i < pool->n_nodes; i++) {
        double out = 0.0, in = 0.0;

        for (int j = 0; j < pool->n_nodes && unlike; j++) {
            int a = pool->node[i], b = pool->node[j];

            if (i == j)
                continue;
            out = fmax (out, topology_node_link (c, a, b).bytes_per_s);
            in = fmax (in, topology_node_link (c, b, a).bytes_per_s);
        }
        pool->reach[i] = unlike ? fmin (out, in) : INFINITY;
        pool->one_way[i] = unlike ? fmax (out, in) : INFINITY;
    }
    return ST_OK;
}

/* Is every link between nodes like every other? */
static bool links_are_one (const struct pool *pool)
{
    const struct topology_cluster *c = pool->problem->cluster;

    return !c->has_gpu_links &&
           (!c->has_inter || (c->inter.bytes_per_s.n == 0 && c->inter.latency_s.n == 0));
}

/* All links between nodes.
 * @param[in]     range   [n_nodes] of their GPUs
 * @param[in,out] parent  [n_nodes] as island_of() follows it */
static void see_node_links (struct pool *pool, const struct class_range *range,
                            int *parent)
{
    const struct topology_cluster *c = pool->problem->cluster;

    for (int i = 0; i < pool->n_nodes; i++)
        for (int j = 0; j < pool->n_nodes; j++) {
            int a = pool->node[i], b = pool->node[j];
            bool measured;

            if (i == j)
                continue;
            if (c->has_gpu_links) {
                measured = see_pairs (pool, &c->node[a], &c->node[b]);
            } else {
                struct topology_link l = topology_node_link (c, a, b);

                measured = l.measured;
                see_link (pool, false, l, range[i], range[j]);
            }
            if (measured)
                parent[island_of (parent, i)] = island_of (parent, j);

            double badness = pool_link_badness (c, a, b);

            pool->badness[i] += badness;
            pool->badness[j] += badness;
        }
}

/* The same where they are all alike: one of each two ranges of classes is seen. */
static void see_one_link (struct pool *pool, const struct class_range *range, int *parent)
{
    const struct topology_cluster *c = pool->problem->cluster;
    int kind[CLASSES_MAX * CLASSES_MAX], kinds = 0; /* nodes, each with another range */

    for (int i = 0; i < pool->n_nodes && pool->n_nodes > 1; i++) {
        int from = pool->node[i], to = pool->node[i > 0 ? 0 : 1];
        struct topology_link l = topology_node_link (c, from, to);
        bool seen = false;

        for (int k = 0; k < kinds; k++) {
            const struct class_range *r = &range[kind[k]];

            see_link (pool, false, l, range[i], *r);
            seen = seen ||
                   (r->fastest == range[i].fastest && r->slowest == range[i].slowest);
        }
        if (!seen)
            kind[kinds++] = i;
        if (l.measured)
            parent[i] = 0;
        pool->badness[i] = 2.0 * (pool->n_nodes - 1) * pool_link_badness (c, from, to);
    }
}

/* The best links of each kind, over all links that the pool can use. */
static enum status see_links (struct pool *pool, struct error *err)
{
    const struct topology_cluster *c = pool->problem->cluster;
    enum workload_all_reduce by = pool->problem->profile->time.all_reduce;
    struct class_range *range = malloc ((size_t) pool->n_nodes * sizeof *range);
    int *parent = malloc ((size_t) pool->n_nodes * sizeof *parent);

    pool->badness = calloc ((size_t) pool->n_nodes, sizeof *pool->badness);
    pool->island_gpus = calloc ((size_t) pool->n_nodes, sizeof *pool->island_gpus);
    if (!range || !parent || !pool->badness || !pool->island_gpus) {
        FREE_ALL (range, parent);
        return err_nomem (err);
    }
    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *a = &c->node[pool->node[i]];

        parent[i] = i;
        range[i] = range_of (pool, a->first_gpu, a->gpus);
        if (!c->has_gpu_links && a->gpus > 1 && a->intra->bytes_per_s.n == 0 &&
            a->intra->latency_s.n == 0)
            see_link (pool, true, topology_link (c, a->first_gpu, a->first_gpu + 1),
                      range[i], range[i]);
        else
            see_pairs (pool, a, a);
    }
    if (links_are_one (pool))
        see_one_link (pool, range, parent);
    else
        see_node_links (pool, range, parent);
    count_islands (pool, parent);
    FREE_ALL (range, parent);
    find_touching (pool);
    pool->node_bytes_per_s = pool->nvls = 0;
    for (int i = 0; i < pool->n_nodes; i++) {
        double total = c->node[pool->node[i]].node_bytes_per_s;

        pool->node_bytes_per_s =
            fmax (pool->node_bytes_per_s, total > 0 ? total : INFINITY);
        pool->nvls = fmax (pool->nvls, c->node[pool->node[i]].type->nvls_efficiency);
        pool->nvls_or_ring =
            pool->nvls_or_ring || !(c->node[pool->node[i]].type->nvls_efficiency > 0);
    }
    pool->nvls_or_ring = pool->nvls_or_ring && pool->nvls > 0 &&
                         (by == ALL_REDUCE_NVLS || by == ALL_REDUCE_NVLS_TREE);
    return ST_OK;
}

/* One class, one size of node, one number per kind of link: then every placement that
 * fills nodes in turn costs the same, and only the layout matters. */
static bool is_all_alike (const struct pool *pool)
{
    const struct topology_cluster *c = pool->problem->cluster;
    const struct topology_node *first = &c->node[pool->node[0]];

    if (pool->n_classes != 1 || pool->best_speed[0] != pool->class[0].speed ||
        !links_are_one (pool) || (c->has_pair_totals && c->pair_bytes_per_s.n > 0))
        return false;
    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *n = &c->node[pool->node[i]];

        if (n->gpus != first->gpus || n->node_bytes_per_s != first->node_bytes_per_s)
            return false;
        if (n->gpus > 1 &&
            (n->intra->bytes_per_s.n > 0 || n->intra->latency_s.n > 0 ||
             n->intra->bytes_per_s.number != first->intra->bytes_per_s.number ||
             n->intra->latency_s.number != first->intra->latency_s.number ||
             n->intra->gpu_bytes_per_s != first->intra->gpu_bytes_per_s))
            return false;
    }
    return true;
}

/* The allowed nodes that can run the precision, and their classes. */
static enum status find_nodes (struct pool *pool, struct error *err)
{
    const struct mapper_problem *p = pool->problem;
    const struct topology_cluster *c = p->cluster;
    bool any = false;

    pool->node = malloc (2 * (size_t) c->n_nodes * sizeof (int));
    pool->class_of_gpu = malloc ((size_t) c->n_gpus * sizeof (int));
    if (!pool->node || !pool->class_of_gpu)
        return err_nomem (err);
    for (int g = 0; g < c->n_gpus; g++)
        pool->class_of_gpu[g] = -1;
    for (int i = 0; i < c->n_nodes; i++) {
        bool allowed = mapper_node_allowed (p, i);

        any = any || allowed;
        if (allowed && costmodel_matrix_rate (c->node[i].type, p->job->precision) > 0)
            pool->node[pool->n_nodes++] = i;
    }
    if (pool->n_nodes == 0)
        return any ? err_set (err, ST_INVALID, "no GPU of %s can run %s", c->name,
                              workload_precision_name (p->job->precision))
                   : err_set (err, ST_NOFIT,
                              "no node of %s is left to use: all are excluded or drained",
                              c->name);
    pool->in_file = pool->node + pool->n_nodes;
    memcpy (pool->in_file, pool->node, (size_t) pool->n_nodes * sizeof (int));
    pool_order_nodes (pool, links_are_one (pool));
    TRY (count_gpus (pool, err));
    return pool_classes_init (pool, err);
}

/* @param[in] value  what the classes are to be sorted by; NULL: speed */
static enum status describe (struct pool *pool, const double *value, struct error *err)
{
    const struct workload_model *m = pool->problem->model;

    for (int i = 0; i < m->layers; i++)
        pool->layers_of[workload_kind_of (m, i)]++;
    TRY (find_nodes (pool, err));
    if (value)
        pool_classes_sort (pool, value);
    TRY (see_links (pool, err));
    TRY (find_reach (pool, err));
    TRY (pool_rings_init (pool, err));
    TRY (find_poorness (pool, err));
    TRY (find_usual (pool, err));
    TRY (count_groups (pool, err));
    pool->all_alike = is_all_alike (pool);
    return ST_OK;
}

enum status pool_init (struct pool *pool, const struct mapper_problem *p,
                       struct error *err)
{
    double links[CLASSES_MAX];
    enum status st;

    *pool = (struct pool){.problem = p};
    pool->computes = pool_computes_create ();
    st = pool->computes ? describe (pool, NULL, err) : err_nomem (err);
    if (st == ST_OK && pool_classes_by_links (pool, links)) {
        pool->by_links = calloc (1, sizeof *pool->by_links);
        if (pool->by_links)
            *pool->by_links = (struct pool){.problem = p, .computes = pool->computes};
        st = pool->by_links ? describe (pool->by_links, links, err) : err_nomem (err);
    }
    if (st != ST_OK)
        pool_release (pool);
    return st;
}

void pool_release (struct pool *pool)
{
    if (pool->by_links) {
        pool->by_links->computes = NULL; /* the pool's own */
        pool_release (pool->by_links);
    }
    pool_computes_destroy (pool->computes);
    FREE_ALL (pool->by_links, pool->node, pool->class_of_gpu, pool->groups,
              pool->island_gpus, pool->reach, pool->rings, pool->inside_from,
              pool->badness, pool->poorness, pool->usual);
    *pool = (struct pool){0};
}

/* Is the i-th node among the max_nodes largest, the earlier one first among equals? */
static bool among_largest (const struct pool *pool, const int *node, int i)
{
    const struct topology_node *of = pool->problem->cluster->node;
    int before = 0;

    for (int k = 0; k < pool->n_nodes; k++)
        before += of[node[k]].gpus > of[node[i]].gpus ||
                  (of[node[k]].gpus == of[node[i]].gpus && k < i);
    return before < pool->problem->max_nodes;
}

void pool_sequence (const struct pool *pool, bool in_file, int *seq)
{
    const int *node = in_file ? pool->in_file : pool->node;
    int n = 0;

    for (int first = 2; first >= 0; first--)
        for (int i = 0; i < pool->n_nodes; i++) {
            bool may = !pool_nodes_limited (pool) || among_largest (pool, node, i);

            if ((pool_is_pinned (pool, node[i]) ? 2 : may) == first)
                seq[n++] = node[i];
        }
}

bool pool_pins_hold (const struct pool *pool, const int *gpu, int world)
{
    const int *node_of = pool->problem->cluster->node_of_gpu;
    int found = 0;

    for (int i = 0; i < pool->n_nodes && pool->n_pinned > 0; i++) {
        bool used = false;

        for (int r = 0; r < world && pool_is_pinned (pool, pool->node[i]) && !used; r++)
            used = node_of[gpu[r]] == pool->node[i];
        found += used;
    }
    return found == pool->n_pinned;
}

bool pool_nodes_fit (const struct pool *pool, const int *gpu, int world)
{
    const struct mapper_problem *p = pool->problem;

    return (!pool_nodes_limited (pool) ||
            topology_nodes_under (p->cluster, gpu, world) <= p->max_nodes) &&
           pool_pins_hold (pool, gpu, world);
}

void pool_gpus_of (const struct pool *pool, const int *seq, int *gpu)
{
    const struct topology_cluster *c = pool->problem->cluster;

    for (int i = 0, n = 0; i < pool->n_nodes; i++)
        for (int k = 0; k < c->node[seq[i]].gpus; k++)
            gpu[n++] = c->node[seq[i]].first_gpu + k;
}

enum status pool_default_order (const struct pool *pool, int *gpu, struct error *err)
{
    int *seq = malloc ((size_t) pool->n_nodes * sizeof (int));

    if (!seq)
        return err_nomem (err);
    pool_sequence (pool, true, seq);
    pool_gpus_of (pool, seq, gpu);
    free (seq);
    return ST_OK;
}

bool pool_is_by_node (const struct pool *pool, const int *gpu, int world)
{
    const struct topology_cluster *c = pool->problem->cluster;
    bool *closed = calloc ((size_t) c->n_nodes, sizeof *closed), ok = closed != NULL;

    for (int k = 1; k < world && ok; k++) {
        int before = c->node_of_gpu[gpu[k - 1]], here = c->node_of_gpu[gpu[k]];

        closed[before] = closed[before] || here != before;
        ok = !closed[here];
    }
    free (closed);
    return ok;
}

bool pool_gpus_differ (const struct pool *pool)
{
    const struct topology_cluster *c = pool->problem->cluster;

    if (c->has_gpu_links)
        return true;
    for (int i = 0; i < pool->n_nodes; i++) {
        const struct topology_node *n = &c->node[pool->node[i]];

        if (n->speed ||
            (n->gpus > 1 && (n->intra->bytes_per_s.n > 0 || n->intra->latency_s.n > 0)))
            return true;
    }
    return false;
}
