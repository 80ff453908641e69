/* The links between nodes as a picture of a few cells, and their totals in a few numbers. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "topology/survey/survey.h"

struct drawing {
    const struct topology_cluster *c;
    struct topology_heat *out;
    double *links; /* [n*n] measured, in each cell */
    int *cell;     /* [n_nodes] */
};

/* `alike` links of one rate from node to node. */
static void add (struct drawing *d, int from, int to, double bytes_per_s, double alike)
{
    size_t at = (size_t) d->cell[from] * (size_t) d->out->n + (size_t) d->cell[to];

    d->out->share[at] += alike * bytes_per_s;
    d->links[at] += alike;
}

static void add_link (void *context, const struct topology_visited *v)
{
    if (v->from.node != v->to.node && v->link.measured)
        add (context, v->from.node, v->to.node, v->link.bytes_per_s, v->alike);
}

static void add_totals (struct drawing *d)
{
    for (int i = 0; i < d->c->n_nodes; i++)
        for (int j = 0; j < d->c->n_nodes; j++) {
            double rate = topology_matrix_at (&d->c->pair_bytes_per_s, i, j);

            if (i == j || isnan (rate))
                continue;
            add (d, i, j, rate, 1.0);
            d->out->of_bytes_per_s = fmax (d->out->of_bytes_per_s, rate);
        }
}

static bool start (struct drawing *d, int cells)
{
    struct topology_heat *h = d->out;
    int nodes = d->c->n_nodes;

    h->n = nodes < cells ? nodes : cells;
    h->first = calloc ((size_t) h->n + 1, sizeof *h->first);
    h->share = calloc ((size_t) h->n * (size_t) h->n, sizeof *h->share);
    d->links = calloc ((size_t) h->n * (size_t) h->n, sizeof *d->links);
    d->cell = calloc ((size_t) nodes, sizeof *d->cell);
    for (int i = 0; d->cell && i < nodes; i++)
        d->cell[i] = (int) ((long long) i * h->n / nodes);
    return h->first && h->share && d->links && d->cell;
}

/* @param[in] ok  there was memory for all */
static enum status finish (struct drawing *d, bool ok, struct topology_heat *out,
                           struct error *err)
{
    struct topology_heat *h = d->out;

    for (int i = 0; ok && i <= h->n; i++) {
        /* The smallest node whose cell is i. */
        long long low = (long long) i * d->c->n_nodes;

        h->first[i] = (int) ((low + h->n - 1) / h->n);
    }
    for (size_t k = 0; ok && k < (size_t) h->n * (size_t) h->n; k++)
        h->share[k] =
            d->links[k] > 0 ? h->share[k] / d->links[k] / h->of_bytes_per_s : NAN;
    FREE_ALL (d->links, d->cell);
    if (!ok) {
        topology_heat_release (h);
        return err_nomem (err);
    }
    *out = *h;
    return ST_OK;
}

/* The cluster's links, or its totals where no median is given. */
static enum status draw (const struct topology_cluster *c, int cells,
                         const double *median, const struct topology_watch *watch,
                         struct topology_heat *out, struct error *err)
{
    struct topology_heat h = {.of_bytes_per_s = median ? *median : 0};
    struct drawing d = {.c = c, .out = &h};
    bool ok = start (&d, cells);

    if (ok && median)
        topology_links_visit (c, add_link, &d, watch);
    else if (ok)
        add_totals (&d);
    return finish (&d, ok, out, err);
}

enum status topology_heat_collect (const struct topology_cluster *c, int cells,
                                   double median_bytes_per_s,
                                   const struct topology_watch *watch,
                                   struct topology_heat *out, struct error *err)
{
    *out = (struct topology_heat){0};
    return median_bytes_per_s <= 0 || (!c->has_gpu_links && c->inter.bytes_per_s.n == 0)
               ? ST_OK
               : draw (c, cells, &median_bytes_per_s, watch, out, err);
}

enum status topology_heat_totals (const struct topology_cluster *c, int cells,
                                  struct topology_heat *out, struct error *err)
{
    *out = (struct topology_heat){0};
    return c->has_pair_totals ? draw (c, cells, NULL, NULL, out, err) : ST_OK;
}

void topology_heat_release (struct topology_heat *h)
{
    FREE_ALL (h->first, h->share);
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

void topology_totals_collect (const struct topology_cluster *c,
                              struct topology_totals *out)
{
    struct topology_totals t = {.lowest_bytes_per_s = INFINITY};

    for (int i = 0; c->has_pair_totals && i < c->n_nodes; i++)
        for (int j = 0; j < c->n_nodes; j++) {
            double rate = i == j ? NAN : topology_matrix_at (&c->pair_bytes_per_s, i, j);

            t.pairs += i != j;
            t.unmeasured += i != j && isnan (rate);
            if (rate < t.lowest_bytes_per_s) {
                t.lowest_bytes_per_s = rate;
                t.lowest_from = i;
                t.lowest_to = j;
            }
            t.highest_bytes_per_s = fmax (t.highest_bytes_per_s, rate);
        }
    *out = t;
}
