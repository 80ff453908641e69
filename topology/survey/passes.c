#include "topology/survey/survey.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/stats.h"
#include "base/units.h"
#include "topology/links_doc.h"
#include "topology/topology_private.h"

#define NOISE_MAX 65536 /* ratios that are kept of each kind */

static size_t cell (const struct topology_passes *p, int i, int j)
{
    return (size_t) i * (size_t) p->n + (size_t) j;
}

static int node_of (const struct topology_passes *p, int end)
{
    return p->over_gpus ? p->base->node_of_gpu[end] : end;
}

static bool is_inside (const struct topology_passes *p, int i, int j)
{
    return node_of (p, i) == node_of (p, j);
}

/* What the cluster itself has for a link; 0 bytes/s where nobody measured it. */
static double own_rate (const struct topology_passes *p, int i, int j)
{
    struct topology_link l =
        p->over_gpus ? topology_link (p->base, i, j) : topology_node_link (p->base, i, j);

    return l.measured ? l.bytes_per_s : NAN;
}

/* Room for one more pass, all NaN. */
static double *add_pass (struct topology_passes *p)
{
    size_t cells = (size_t) p->n * (size_t) p->n;
    double *rate = malloc (cells * sizeof *rate);

    if (!rate || !array_grow (&p->rate, p->passes, sizeof *p->rate)) {
        free (rate);
        return NULL;
    }
    for (size_t k = 0; k < cells; k++)
        rate[k] = NAN;
    return p->rate[p->passes++] = rate;
}

void topology_passes_release (struct topology_passes *p)
{
    for (int k = 0; k < p->passes; k++)
        free (p->rate[k]);
    free (p->rate);
    *p = (struct topology_passes){0};
}

static struct topology_passes passes_of (const struct topology_cluster *base)
{
    return (struct topology_passes){.base = base,
                                    .over_gpus = base->has_gpu_matrix,
                                    .n = base->has_gpu_matrix ? base->n_gpus
                                                              : base->n_nodes};
}

/* ---- the cluster's own passes ---- */

/* The endpoint of the passes that one of `measured` is; -1: none. */
static int own_end (const struct topology_passes *p, const json_t *end)
{
    const char *name = json_member_text (end, "node");
    int node = name ? topology_node_find (p->base, name) : -1;

    if (node < 0 || !p->over_gpus)
        return node;
    return topology_gpu_find (p->base, node, (int) json_member_int (end, "gpu"));
}

static void put_samples (struct topology_passes *p, int i, int j, json_t *samples)
{
    size_t k;
    json_t *x;

    json_array_foreach (samples, k, x)
    {
        double gb = json_number_value (x);

        if ((int) k < p->passes && gb > 0 && isfinite (gb) &&
            isnan (p->rate[k][cell (p, i, j)]))
            p->rate[k][cell (p, i, j)] = gb * UNITS_GB;
    }
}

enum status topology_passes_own (const struct topology_cluster *base,
                                 struct topology_passes *out, struct error *err)
{
    struct topology_passes p = passes_of (base);
    json_t *measured = json_object_get (base->doc, "measured"),
           *pairs = json_object_get (measured, "pairs"), *pair;
    int passes = (int) json_member_int (measured, "passes");
    size_t k, found = 0;

    *out = p;
    if (passes < 2 || passes > 1000 || p.n > TOPOLOGY_PASSES_ENDPOINTS ||
        base->n_rails > 0)
        return ST_OK;
    json_array_foreach (pairs, k, pair) found +=
        json_array_size (json_object_get (pair, "isolated_samples_gb_per_s")) > 1;
    for (int i = 0; i < passes && found > 0; i++)
        if (!add_pass (&p)) {
            topology_passes_release (&p);
            return err_nomem (err);
        }
    json_array_foreach (pairs, k, pair)
    {
        int i = own_end (&p, topology_measured_end (measured, pair, "src"));
        int j = own_end (&p, topology_measured_end (measured, pair, "dst"));

        if (i >= 0 && j >= 0 && i != j && !isnan (own_rate (&p, i, j)))
            put_samples (&p, i, j, json_object_get (pair, "isolated_samples_gb_per_s"));
    }
    *out = p;
    return ST_OK;
}

/* ---- files ---- */

/* A link of another file by the nodes' names; NaN where it has none. */
static double file_rate (const struct topology_passes *p,
                         const struct topology_cluster *c, const int *end, int i, int j)
{
    const struct topology_links *given;
    struct topology_link l;
    int a = end[i], b = end[j];
    double error = NAN;
    bool single;

    if (a < 0 || b < 0)
        return NAN;
    given = c->has_gpu_matrix     ? &c->gpu_links
            : is_inside (p, i, j) ? c->node[c->node_of_gpu[a]].intra
            : c->has_inter        ? &c->inter
                                  : NULL;
    if (!given || given->nominal) /* a data sheet is no measurement */
        return NAN;
    if (!p->over_gpus && c->has_gpu_matrix) {
        if (c->node[a].gpus == 0 || c->node[b].gpus == 0)
            return NAN;
        a = c->node[a].first_gpu;
        b = c->node[b].first_gpu;
    }
    single = p->over_gpus || c->has_gpu_matrix;
    if (given->has_estimates) /* nor is an estimate */
        error = single ? topology_link_estimate_error (c, a, b)
                       : topology_matrix_at (&given->estimate_error, a, b);
    l = single ? topology_link (c, a, b) : topology_node_link (c, a, b);
    return l.measured && isnan (error) ? l.bytes_per_s : NAN;
}

/* The file's endpoint of each of ours, or -1. */
static void find_ends (const struct topology_passes *p, const struct topology_cluster *c,
                       int *end)
{
    for (int i = 0; i < p->n; i++) {
        const char *name = p->base->node[node_of (p, i)].name;
        int node = topology_node_find (c, name);

        end[i] = node < 0 || !p->over_gpus
                     ? node
                     : topology_gpu_find (c, node, topology_gpu_index (p->base, i));
    }
}

static enum status put_file (struct topology_passes *p, const char *file,
                             struct notes *notes, struct error *err)
{
    struct topology_cluster *c = NULL;
    int *end = malloc ((size_t) p->n * sizeof *end);
    double *rate = add_pass (p);
    long found = 0;
    enum status st = end && rate ? topology_cluster_read_partial (file, &c, notes, err)
                                 : err_nomem (err);

    if (st == ST_OK) {
        find_ends (p, c, end);
        for (int i = 0; i < p->n; i++)
            for (int j = 0; j < p->n; j++)
                if (i != j && !isnan (own_rate (p, i, j))) {
                    rate[cell (p, i, j)] = file_rate (p, c, end, i, j);
                    found += !isnan (rate[cell (p, i, j)]);
                }
        if (found == 0)
            st = err_set (err, ST_INVALID,
                          "%s: expected another measurement of %s, found no link between "
                          "its nodes",
                          file, p->base->name);
    }
    topology_cluster_destroy (c);
    free (end);
    return st;
}

enum status topology_passes_read (const struct topology_cluster *base,
                                  const char *const *file, int n,
                                  struct topology_passes *out, struct notes *notes,
                                  struct error *err)
{
    struct topology_passes p = passes_of (base);
    double *rate;
    enum status st = ST_OK;

    p.by_file = true;
    if (p.n > TOPOLOGY_PASSES_ENDPOINTS)
        return err_set (
            err, ST_INVALID,
            "%s: measurements of at most %d endpoints can be compared, it has %d",
            base->name, TOPOLOGY_PASSES_ENDPOINTS, p.n);
    if (base->n_rails > 0)
        return err_set (err, ST_INVALID,
                        "%s: only measurements between nodes or between GPUs can be "
                        "compared, not of rails",
                        base->name);
    if (!(rate = add_pass (&p)))
        return err_nomem (err);
    for (int i = 0; i < p.n; i++)
        for (int j = 0; j < p.n; j++)
            if (i != j)
                rate[cell (&p, i, j)] = own_rate (&p, i, j);
    for (int k = 0; k < n && st == ST_OK; k++)
        st = put_file (&p, file[k], notes, err);
    if (st == ST_OK)
        *out = p;
    else
        topology_passes_release (&p);
    return st;
}

/* ---- putting passes together ---- */

enum status topology_passes_combine (const struct topology_passes *p, const bool *use,
                                     double quantile, double *rate, struct error *err)
{
    double *v = malloc ((size_t) p->passes * sizeof *v);

    if (!v)
        return err_nomem (err);
    for (size_t at = 0; at < (size_t) p->n * (size_t) p->n; at++) {
        int n = 0;

        for (int k = 0; k < p->passes; k++)
            if (use[k] && !isnan (p->rate[k][at]))
                v[n++] = p->rate[k][at];
        stats_sort (v, n);
        rate[at] = stats_quantile (v, n, quantile);
    }
    free (v);
    return ST_OK;
}

enum status topology_passes_fill (const struct topology_passes *p, int pass, double *rate,
                                  struct error *err)
{
    size_t cells = (size_t) p->n * (size_t) p->n;
    double *v = malloc (cells * sizeof *v), median[2];

    if (!v)
        return err_nomem (err);
    for (int inside = 0; inside < 2; inside++) {
        int n = 0;

        for (int i = 0; i < p->n; i++)
            for (int j = 0; j < p->n; j++)
                if (is_inside (p, i, j) == (inside == 1) &&
                    !isnan (p->rate[pass][cell (p, i, j)]))
                    v[n++] = p->rate[pass][cell (p, i, j)];
        median[inside] = stats_median (v, n);
    }
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->n; j++) {
            size_t at = cell (p, i, j);
            bool ours = i != j && !isnan (own_rate (p, i, j));

            rate[at] = ours && isnan (p->rate[pass][at]) ? median[is_inside (p, i, j)]
                                                         : p->rate[pass][at];
        }
    free (v);
    return ST_OK;
}

/* The row of an endpoint in the file's matrix, which has drained GPUs too. */
static int row_of (const struct topology_passes *p, int end)
{
    return p->over_gpus && p->base->gpu_row ? p->base->gpu_row[end] : end;
}

static int rows (const struct topology_passes *p)
{
    int n = 0;

    for (int i = 0; i < p->base->n_nodes; i++)
        n += p->over_gpus ? p->base->node[i].gpus_listed : 1;
    return n;
}

enum status topology_passes_cluster (const struct topology_passes *p, const double *rate,
                                     struct topology_cluster **out, struct error *err)
{
    int n = rows (p);
    double *v = malloc ((size_t) n * (size_t) n * sizeof *v);
    json_t *doc = topology_cluster_to_json (p->base),
           *links = json_object_get (doc, "links");
    enum status st = v && doc ? ST_OK : err_nomem (err);

    if (st == ST_OK && p->n > 1) {
        for (size_t k = 0; k < (size_t) n * (size_t) n; k++)
            v[k] = NAN;
        for (int i = 0; i < p->n; i++)
            for (int j = 0; j < p->n; j++)
                if (i != j) {
                    double x = rate[cell (p, i, j)];

                    v[(size_t) row_of (p, i) * (size_t) n + (size_t) row_of (p, j)] =
                        isnan (x) ? own_rate (p, i, j) : x;
                }

        json_t *object = json_object_get (links, p->over_gpus ? "gpu" : "inter"),
               *matrix = topology_links_matrix (v, n, UNITS_GB);

        if (!matrix || json_object_set_new (object, "bandwidth_gb_per_s", matrix) != 0)
            st = err_nomem (err);
    }
    THEN (st, topology_cluster_from_json (doc, p->base->name, NULL, out, NULL, err));
    json_decref (doc);
    free (v);
    return st;
}

/* ---- noise ---- */

/* One kind's ratios; beyond NOISE_MAX later ones replace earlier ones at random places. */
struct ratios {
    double *v;
    int n;
    long seen;
};

static void keep_ratio (struct ratios *r, struct rng *rng, double x)
{
    r->seen++;
    if (r->n < NOISE_MAX) {
        r->v[r->n++] = x;
        return;
    }

    long at = (long) (rng_unit (rng) * (double) r->seen);

    if (at < NOISE_MAX)
        r->v[at] = x;
}

/* The ratios of one link's measurements to their geometric mean; n of them have lost one
 * degree of freedom to the mean. */
static void keep_link (const struct topology_passes *p, size_t at, struct ratios *r,
                       struct rng *rng)
{
    double sum = 0;
    int n = 0;

    for (int k = 0; k < p->passes; k++)
        if (!isnan (p->rate[k][at])) {
            sum += log (p->rate[k][at]);
            n++;
        }
    for (int k = 0; k < p->passes && n > 1; k++)
        if (!isnan (p->rate[k][at]))
            keep_ratio (r, rng, (log (p->rate[k][at]) - sum / n) * sqrt (n / (n - 1.0)));
}

enum status topology_noise_collect (const struct topology_passes *p,
                                    struct topology_noise *out, struct error *err)
{
    struct ratios kind[2] = {{malloc (NOISE_MAX * sizeof (double)), 0, 0},
                             {malloc (NOISE_MAX * sizeof (double)), 0, 0}};
    struct rng rng = {1};

    if (!kind[0].v || !kind[1].v) {
        FREE_ALL (kind[0].v, kind[1].v);
        return err_nomem (err);
    }
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->n; j++)
            if (i != j)
                keep_link (p, cell (p, i, j), &kind[is_inside (p, i, j)], &rng);
    *out = (struct topology_noise){.between = kind[0].v,
                                   .n_between = kind[0].n,
                                   .inside = kind[1].v,
                                   .n_inside = kind[1].n};
    return ST_OK;
}

void topology_noise_release (struct topology_noise *n)
{
    FREE_ALL (n->between, n->inside);
    *n = (struct topology_noise){0};
}

void topology_noise_draw (const struct topology_passes *p,
                          const struct topology_noise *noise, const double *centre,
                          struct rng *rng, struct topology_cluster *c)
{
    struct topology_matrix *m =
        p->over_gpus ? &c->gpu_links.bytes_per_s : &c->inter.bytes_per_s;

    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->n; j++) {
            bool inside = is_inside (p, i, j);
            int n = inside ? noise->n_inside : noise->n_between;
            double x = centre[cell (p, i, j)], draw = 0;

            if (i == j || isnan (x))
                continue;
            if (n > 0)
                draw = (inside ? noise->inside : noise->between)[rng_below (rng, n)];
            topology_matrix_set (m, m->n, row_of (p, i), row_of (p, j), x * exp (draw));
        }
}
