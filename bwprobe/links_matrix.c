/* `links` of a links file, as matrices: over all GPUs while there are not too many, else over nodes
 * with the GPUs inside each; over nodes where each took part with one endpoint. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/npy.h"
#include "base/units.h"
#include "bwprobe/coordinator_private.h"
#include "topology/links_doc.h"

enum {
    INLINE_MAX = 256, /* larger matrices go into .npy files */
    GPUS_MAX = 4096   /* more GPUs are written as nodes and what is inside */
};

char *links_beside (const struct links_writer *w, const char *what, const char **base)
{
    char *path = file_behind (w->c->set.output);
    struct text t = {0};

    if (path)
        text_add (&t, "%.*s-%s", file_stem (path), path, what);
    free (path);
    if (!t.s || t.failed) {
        text_free (&t);
        return NULL;
    }
    *base = file_name (t.s);
    return t.s;
}

/* A matrix, in the file or beside it.  Standard output has no "beside". */
static json_t *matrix_json (struct links_writer *w, double *v, int n, double unit,
                            const char *what)
{
    const char *base;
    char *path;
    json_t *o = NULL;

    if (n <= INLINE_MAX || strcmp (w->c->set.output, "-") == 0)
        return topology_links_matrix (v, n, unit);
    path = links_beside (w, what, &base);
    if (!path) {
        err_nomem (w->err);
        return NULL;
    }
    for (size_t i = 0; i < (size_t) n * (size_t) n; i++)
        v[i] /= unit;
    if (npy_write (path, v, (size_t) n, w->err) == ST_OK)
        o = json_pack ("{s:s}", "npy", base);
    free (path);
    return o;
}

/* The matrices of an object of `links`. */
enum { PLANE_BANDWIDTH, PLANE_LATENCY, PLANE_ERROR, PLANES };

static const struct {
    const char *key, *file;
    double unit;
} plane[PLANES] = {{"bandwidth_gb_per_s", "bandwidth.npy", UNITS_GB},
                   {"latency_us", "latency.npy", UNITS_US},
                   {"estimate_error", "estimate-error.npy", 1}};

/* Bandwidth alone and latency: measured, or estimated where a model was accepted. */
static void link_of (struct links_writer *w, int src, int dst, double value[PLANES])
{
    const struct results_pair *p = results_find (&w->c->results, src, dst);
    struct estimate_tier *tier = &w->tier[estimate_tier_of (w->c, src, dst)];

    value[PLANE_BANDWIDTH] = results_median (p, RESULTS_ALONE);
    value[PLANE_LATENCY] = results_median (p, RESULTS_LATENCY);
    value[PLANE_ERROR] = NAN;
    if (isfinite (value[PLANE_BANDWIDTH]))
        return;
    value[PLANE_BANDWIDTH] =
        estimate_value (w->c, w->tier, src, dst, &value[PLANE_ERROR]);
    if (!isfinite (value[PLANE_BANDWIDTH]))
        return;
    tier->estimated++;
    w->estimates = true;
    if (!isfinite (value[PLANE_LATENCY]))
        value[PLANE_LATENCY] = tier->high_latency_s;
}

static void fill_planes (struct links_writer *w, const int *place, int n,
                         double *v[PLANES])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double value[PLANES] = {NAN, NAN, NAN};

            if (i != j && place[i] >= 0 && place[j] >= 0)
                link_of (w, place[i], place[j], value);
            for (int k = 0; k < PLANES; k++)
                v[k][(size_t) i * (size_t) n + (size_t) j] = value[k];
        }
}

/* An object of `links` over places, each an endpoint or -1 where none was measured. */
static json_t *links_over (struct links_writer *w, const int *place, int n,
                           const char *what)
{
    double *v[PLANES],
        *all = malloc ((PLANES * (size_t) n * (size_t) n + 1) * sizeof *all);
    json_t *o = all ? json_object () : NULL;

    for (int k = 0; k < PLANES && o; k++)
        v[k] = all + (size_t) k * (size_t) n * (size_t) n;
    w->estimates = false;
    if (o)
        fill_planes (w, place, n, v);
    else
        err_nomem (w->err);
    for (int k = 0; k < (w->estimates ? PLANES : PLANE_ERROR) && o; k++) {
        char name[64];
        json_t *m;

        snprintf (name, sizeof name, "%s-%s", what, plane[k].file);
        m = matrix_json (w, v[k], n, plane[k].unit, name);
        if (!m) {
            json_decref (o);
            o = NULL;
        } else {
            json_object_set_new (o, plane[k].key, m);
        }
    }
    free (all);
    return o;
}

/* What all GPUs of a node send to those of another together, each measured amid the others;
 * NaN. */
static double pair_total (const struct coordinator *c, int node, int other)
{
    int from = c->shape.first[node], g = c->shape.first[node + 1] - from;
    int to = c->shape.first[other];
    double sum = 0;

    if (node == other || c->shape.first[other + 1] - to < g)
        return NAN;
    for (int i = 0; i < g; i++)
        sum += results_median (results_find (&c->results, from + i, to + i),
                               RESULTS_TOGETHER);
    return sum;
}

/* The q-quantile of the finite ones of v. */
static double quantile (const double *v, size_t n, double q, double *work)
{
    int k = 0;

    for (size_t i = 0; i < n; i++)
        if (isfinite (v[i]))
            work[k++] = v[i];
    stats_sort (work, k);
    return stats_quantile (work, k, q);
}

/* Where totals differ by where they go to, each pair's is written, and a node reaches what it
 * does where nothing else is in the way; else the median says all. */
#define TOTALS_DIFFER 0.1
#define TOTALS_BEST 0.95

static enum status add_node_totals (struct links_writer *w, json_t *links)
{
    const struct coordinator *c = w->c;
    size_t n = (size_t) c->shape.nodes, cells = n * n;
    double *total, *work;
    json_t *list, *pairs = NULL;
    bool differ, any = false;

    if (c->shape.n == c->shape.nodes)
        return ST_OK;
    if (!(total = malloc (2 * (cells + 1) * sizeof *total)))
        return err_nomem (w->err);
    list = json_array ();
    work = total + cells + 1;
    for (size_t k = 0; k < cells; k++)
        total[k] = pair_total (c, (int) (k / n), (int) (k % n));
    differ = quantile (total, cells, 1 - TOTALS_BEST, work) <
             (1 - TOTALS_DIFFER) * quantile (total, cells, TOTALS_BEST, work);
    for (size_t k = 0; k < n; k++) {
        double x = quantile (total + k * n, n, differ ? TOTALS_BEST : 0.5, work);

        any |= isfinite (x);
        json_array_append_new (list, topology_links_number (x / UNITS_GB));
    }
    if (any)
        json_object_set (links, "node_gb_per_s", list);
    json_decref (list);
    if (differ && (pairs = matrix_json (w, total, (int) n, UNITS_GB, "node-pairs.npy")))
        json_object_set_new (links, "node_pair_gb_per_s", pairs);
    free (total);
    return !differ || pairs ? ST_OK : ST_IO;
}

/* Places of all GPUs of some nodes, as the cluster file counts them. */
static int fill_places (const struct coordinator *c, int from, int to, int *place)
{
    int n = 0;

    for (int k = from; k < to; k++) {
        for (int g = 0; g < c->node[k].gpus; g++)
            place[n + g] = -1;
        for (int i = c->shape.first[k]; i < c->shape.first[k + 1]; i++)
            place[n + c->end[i].gpu] = i;
        n += c->node[k].gpus;
    }
    return n;
}

static enum status add_inside (struct links_writer *w, json_t *links, int *place)
{
    json_t *list = json_array ();

    for (int k = 0; k < w->c->shape.nodes; k++) {
        char what[32];
        json_t *o = NULL;
        int n = fill_places (w->c, k, k + 1, place);

        snprintf (what, sizeof what, "inside-%d", k);
        if (n > 1 && !(o = links_over (w, place, n, what))) {
            json_decref (list);
            return ST_IO;
        }
        json_array_append_new (list, o ? o : json_null ());
    }
    json_object_set_new (links, "intra", list);
    return ST_OK;
}

enum status links_add (struct links_writer *w)
{
    const struct coordinator *c = w->c;
    json_t *links = json_object_get (w->doc, "links"), *o;
    bool by_node = c->shape.n == c->shape.nodes;
    long gpus = 0;
    int *place, n = 0;
    enum status st = ST_OK;

    for (int k = 0; k < c->shape.nodes; k++)
        gpus += c->node[k].gpus;
    place = malloc (((size_t) gpus + 1) * sizeof *place);
    if (!place)
        return err_nomem (w->err);
    if (!by_node && gpus > GPUS_MAX && c->shape.nodes > 1) {
        st = add_inside (w, links, place);
        by_node = true;
    }
    if (by_node)
        for (; n < c->shape.nodes; n++)
            place[n] = c->shape.first[n];
    else
        n = fill_places (c, 0, c->shape.nodes, place);
    o = st == ST_OK ? links_over (w, place, n, "links") : NULL;
    st = o ? add_node_totals (w, o) : ST_IO;
    if (o)
        json_object_set_new (links, by_node ? "inter" : "gpu", o);
    free (place);
    return st;
}
