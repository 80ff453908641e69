/* The links between nodes as a picture of a few cells. */
#include <math.h>
#include <stdlib.h>

#include "topology/survey/stats.h"

struct drawing {
    const struct topology_cluster *c;
    struct topology_heat *out;
    double *links; /* [n*n] measured, in each cell */
    int *cell;     /* [n_nodes] */
};

static void add (void *context, const struct topology_visited *v)
{
    struct drawing *d = context;
    size_t at = (size_t) d->cell[v->from.node] * (size_t) d->out->n +
                (size_t) d->cell[v->to.node];

    if (v->from.node == v->to.node || !v->link.measured)
        return;
    d->out->share[at] += v->alike * v->link.bytes_per_s;
    d->links[at] += v->alike;
}

static void finish (struct drawing *d)
{
    struct topology_heat *h = d->out;

    for (int i = 0; i <= h->n; i++) {
        /* The smallest node whose cell is i. */
        long long low = (long long) i * d->c->n_nodes;

        h->first[i] = (int) ((low + h->n - 1) / h->n);
    }
    for (size_t k = 0; k < (size_t) h->n * (size_t) h->n; k++)
        h->share[k] =
            d->links[k] > 0 ? h->share[k] / d->links[k] / h->median_bytes_per_s : NAN;
}

enum status topology_heat_collect (const struct topology_cluster *c, int cells,
                                   double median_bytes_per_s,
                                   const struct topology_watch *watch,
                                   struct topology_heat *out, struct error *err)
{
    struct topology_heat h = {.n = c->n_nodes < cells ? c->n_nodes : cells,
                              .median_bytes_per_s = median_bytes_per_s};
    struct drawing d = {.c = c, .out = &h};
    enum status st = ST_OK;

    if (median_bytes_per_s <= 0 || (!c->has_gpu_links && c->inter.bytes_per_s.n == 0)) {
        *out = (struct topology_heat){0};
        return ST_OK;
    }
    h.first = calloc ((size_t) h.n + 1, sizeof *h.first);
    h.share = calloc ((size_t) h.n * (size_t) h.n, sizeof *h.share);
    d.links = calloc ((size_t) h.n * (size_t) h.n, sizeof *d.links);
    d.cell = calloc ((size_t) c->n_nodes, sizeof *d.cell);
    for (int i = 0; d.cell && i < c->n_nodes; i++)
        d.cell[i] = (int) ((long long) i * h.n / c->n_nodes);
    if (h.first && h.share && d.links && d.cell &&
        topology_links_visit (c, add, &d, watch))
        finish (&d);
    else
        st = err_nomem (err);
    free (d.links);
    free (d.cell);
    if (st == ST_OK)
        *out = h;
    else
        topology_heat_release (&h);
    return st;
}

void topology_heat_release (struct topology_heat *h)
{
    free (h->first);
    free (h->share);
    *h = (struct topology_heat){0};
}

/* Colours from 0 % of the median to 95 % and more: cividis (Nunez, Anderton, Renslow, PLoS ONE 13,
 * 2018), which readers with any colour vision see alike. */
struct topology_shade topology_heat_shade (double share)
{
    static const unsigned fill[] = {0x00224e, 0x0d346d, 0x35456c, 0x4c556c,
                                    0x60656f, 0x727274, 0x868479, 0x9d9676,
                                    0xb8ab6d, 0xd4c15e, 0xfee838};
    int k;

    if (isnan (share))
        return (struct topology_shade){'?', 0xffffff, true};
    k = share >= 0.95 ? 10 : (int) (10 * share);
    return (struct topology_shade){k == 10 ? '#' : (char) ('0' + k), fill[k], k > 5};
}
