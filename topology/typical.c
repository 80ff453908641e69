#include "topology/topology.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/stats.h"
#include "topology/topology_private.h"

#define LINKS_MOST (1 << 24) /* that a kind's median is taken of: the first ones */
#define GPUS_MOST \
    64 /* of a node of which each place has its own median: a table is g x g */

struct kind {
    int first;       /* a node of it */
    int nodes;       /* in use */
    double median;   /* of all its links; NaN: none, or not yet known */
    bool known;      /* median is */
    double *typical; /* [g*g] of each place; NaN: not yet known; NULL: too many GPUs */
};

struct topology_inside {
    const struct topology_cluster *c;
    int *kind_of;      /* [n_nodes] */
    struct kind *kind; /* [n_kinds] */
    int n_kinds;
    double *v; /* [room] links of one place, or of a whole kind */
    size_t room;
};

bool topology_inside_alike (const struct topology_cluster *c, int node)
{
    const struct topology_links *intra = c->node[node].intra;

    return !c->has_gpu_matrix && (!intra || intra->bytes_per_s.n == 0);
}

/* ---- kinds ---- */

static bool same_kind (const struct topology_node *a, const struct topology_node *b)
{
    return a->type == b->type && a->gpus_listed == b->gpus_listed;
}

/* Neighbours in the file are mostly of one kind: the last one found is asked first. */
static void find_kinds (struct topology_inside *x)
{
    const struct topology_cluster *c = x->c;
    int k = 0;

    for (int i = 0; i < c->n_nodes; i++) {
        if (x->n_kinds == 0 || !same_kind (&c->node[x->kind[k].first], &c->node[i]))
            for (k = 0; k < x->n_kinds; k++)
                if (same_kind (&c->node[x->kind[k].first], &c->node[i]))
                    break;
        if (k == x->n_kinds)
            x->kind[x->n_kinds++] = (struct kind){.first = i};
        x->kind_of[i] = k;
        x->kind[k].nodes += !c->node[i].drained;
    }
}

static bool make_tables (struct topology_inside *x)
{
    for (int k = 0; k < x->n_kinds; k++) {
        int g = x->c->node[x->kind[k].first].gpus_listed;

        if (g > GPUS_MOST || x->kind[k].nodes < TOPOLOGY_TYPICAL_NODES)
            continue;
        x->kind[k].typical = malloc ((size_t) g * (size_t) g * sizeof (double) + 1);
        if (!x->kind[k].typical)
            return false;
        for (int i = 0; i < g * g; i++)
            x->kind[k].typical[i] = NAN;
    }
    return true;
}

enum status topology_inside_create (const struct topology_cluster *c,
                                    struct topology_inside **out, struct error *err)
{
    struct topology_inside *x = calloc (1, sizeof *x);
    size_t n = (size_t) c->n_nodes;

    if (!x)
        return err_nomem (err);
    x->c = c;
    x->kind_of = calloc (n, sizeof *x->kind_of);
    x->kind = calloc (n, sizeof *x->kind);
    if (x->kind_of && x->kind) {
        find_kinds (x);
        for (int i = 0; i < c->n_nodes; i++) {
            size_t g = (size_t) c->node[i].gpus;

            x->room += topology_inside_alike (c, i) ? 1 : g * g;
        }
        if (x->room > LINKS_MOST)
            x->room = LINKS_MOST;
        x->v = malloc ((x->room + n) * sizeof *x->v); /* a place has one link a node */
    }
    if (!x->v || !make_tables (x)) {
        topology_inside_destroy (x);
        return err_nomem (err);
    }
    *out = x;
    return ST_OK;
}

void topology_inside_destroy (struct topology_inside *x)
{
    if (!x)
        return;
    for (int k = 0; k < x->n_kinds; k++)
        free (x->kind[k].typical);
    FREE_ALL (x->kind, x->kind_of, x->v, x);
}

/* ---- medians ---- */

static int keep (struct topology_inside *x, int n, int src, int dst)
{
    struct topology_link l = topology_link_given (x->c, src, dst);

    if (l.measured && (size_t) n < x->room + (size_t) x->c->n_nodes)
        x->v[n++] = l.bytes_per_s;
    return n;
}

/* Of all links; a node whose links are alike counts once. */
static double of_kind (struct topology_inside *x, int k)
{
    const struct topology_cluster *c = x->c;
    struct kind *kind = &x->kind[k];
    int n = 0;

    for (int i = 0; i < c->n_nodes && !kind->known; i++) {
        int first = c->node[i].first_gpu, g = c->node[i].gpus;

        if (x->kind_of[i] != k || g < 2)
            continue;
        if (topology_inside_alike (c, i)) {
            n = keep (x, n, first, first + 1);
            continue;
        }
        for (int a = first; a < first + g; a++)
            for (int b = first; b < first + g; b++)
                if (a != b)
                    n = keep (x, n, a, b);
    }
    if (!kind->known)
        kind->median = stats_median (x->v, n);
    kind->known = true;
    return kind->median;
}

/* Of the links at one place; NaN where too few were measured. */
static double of_place (struct topology_inside *x, int k, int a, int b)
{
    int n = 0;

    for (int i = 0; i < x->c->n_nodes; i++) {
        int src, dst;

        if (x->kind_of[i] != k || x->c->node[i].drained)
            continue;
        src = topology_gpu_find (x->c, i, a);
        dst = topology_gpu_find (x->c, i, b);
        if (src >= 0 && dst >= 0)
            n = keep (x, n, src, dst);
    }
    return n >= TOPOLOGY_TYPICAL_NODES ? stats_median (x->v, n) : NAN;
}

double topology_inside_typical (struct topology_inside *x, int src_gpu, int dst_gpu)
{
    int k = x->kind_of[x->c->node_of_gpu[src_gpu]];
    int g = x->c->node[x->kind[k].first].gpus_listed;
    int a = topology_gpu_index (x->c, src_gpu), b = topology_gpu_index (x->c, dst_gpu);
    double *at;

    if (!x->kind[k].typical || a >= g || b >= g)
        return of_kind (x, k);
    at = &x->kind[k].typical[a * g + b];
    if (isnan (*at))
        *at = of_place (x, k, a, b);
    if (isnan (*at))
        *at = of_kind (x, k);
    return *at;
}

enum status topology_pair_typical (const struct topology_cluster *c, double *bytes_per_s,
                                   struct error *err)
{
    size_t n = (size_t) c->n_nodes;
    double *v;
    int kept = 0;

    *bytes_per_s = NAN;
    if (!c->has_pair_totals)
        return ST_OK;
    if (c->pair_bytes_per_s.n == 0) {
        *bytes_per_s = c->pair_bytes_per_s.number;
        return ST_OK;
    }
    if (!(v = malloc (n * n * sizeof *v)))
        return err_nomem (err);
    for (int i = 0; i < c->n_nodes; i++)
        for (int j = 0; j < c->n_nodes && !c->node[i].drained; j++) {
            double pair = topology_matrix_at (&c->pair_bytes_per_s, i, j);

            if (i != j && !c->node[j].drained && !isnan (pair))
                v[kept++] = pair;
        }
    *bytes_per_s = stats_median (v, kept);
    free (v);
    return ST_OK;
}
