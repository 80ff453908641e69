/* The links file (docs/probe.md, docs/schema/links.schema.json).
 *
 * `links` is what the planner reads: over all GPUs while there are not too many, else over
 * nodes with the GPUs inside each; over nodes where each took part with one endpoint.  All
 * that is known about each pair stands in `measured`.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/npy.h"
#include "base/units.h"
#include "base/version.h"
#include "bwprobe/preflight.h"
#include "topology/compute.h"
#include "topology/gpu_product.h"
#include "topology/links_doc.h"
#include "topology/topology.h"

enum {
    INLINE_MAX = 256, /* larger matrices go into .npy files */
    GPUS_MAX = 4096,  /* more GPUs are written as nodes and what is inside */
    PAIRS_MAX = 65536 /* more pairs go into a .csv file */
};

/* A slow GPU is told from noise at this difference. */
#define SPEED_NOISE 0.02

struct writer {
    const struct coordinator *c;
    struct estimate_tier *tier;
    bool estimates; /* among the links that were written last */
    json_t *doc;
    struct error *err;
};

/* ---- files beside the links file ---- */

/* "DIR/NAME-what", where the links file is DIR/NAME.json; *base is the name in its folder. */
static char *beside (const struct writer *w, const char *what, const char **base)
{
    const char *path = w->c->set.output;
    struct text t = {0};

    text_add (&t, "%.*s-%s", file_stem (path), path, what);
    if (t.failed) {
        text_free (&t);
        return NULL;
    }
    *base = file_name (t.s);
    return t.s;
}

/* A matrix, in the file or beside it.  Standard output has no "beside". */
static json_t *matrix_json (struct writer *w, double *v, int n, double unit,
                            const char *what)
{
    const char *base;
    char *path;
    json_t *o = NULL;

    if (n <= INLINE_MAX || strcmp (w->c->set.output, "-") == 0)
        return topology_links_matrix (v, n, unit);
    path = beside (w, what, &base);
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

/* ---- nodes ---- */

/* The type that all of a node's GPUs have, or NULL. */
static const char *gpu_type_of (const struct coordinator *c, int node)
{
    const char *type = NULL;

    for (int i = c->shape.first[node]; i < c->shape.first[node + 1]; i++) {
        const struct gpu_description *g = &c->end[i].member->opened.gpu;
        const char *one = g->product[0]
                              ? topology_gpu_type_of_product (g->product, g->memory_bytes)
                              : NULL;

        if (!one || (type && strcmp (type, one) != 0))
            return NULL;
        type = one;
    }
    return type;
}

static double median_gemm (const struct coordinator *c, const char *product)
{
    double *v = malloc (((size_t) c->shape.n + 1) * sizeof *v), median;
    int n = 0;

    for (int i = 0; i < c->shape.n && v; i++)
        if (c->end[i].has_computed &&
            strcmp (c->end[i].member->opened.gpu.product, product) == 0)
            v[n++] = c->end[i].computed.product[0].flop_per_s;
    median = stats_median (v, n);
    free (v);
    return median;
}

/* What is known of each GPU of a node whose GPUs all took part. */
static void add_gpus (const struct coordinator *c, int node, json_t *o)
{
    int from = c->shape.first[node], to = c->shape.first[node + 1];
    json_t *uuid = json_array (), *speed = json_array ();
    bool uuids = to - from == c->node[node].gpus, speeds = uuids, slow = false;

    for (int i = from; i < to; i++) {
        const struct gpu_description *g = &c->end[i].member->opened.gpu;
        double x = c->end[i].has_computed ? c->end[i].computed.product[0].flop_per_s /
                                                median_gemm (c, g->product)
                                          : NAN;

        uuids &= g->uuid[0] != '\0';
        speeds &= x > 0;
        if (fabs (x - 1) < SPEED_NOISE)
            x = 1;
        slow |= x < 1 || x > 1;
        json_array_append_new (uuid, json_string (g->uuid));
        json_array_append_new (speed, topology_links_number (round (x * 1e4) / 1e4));
    }
    if (uuids)
        json_object_set (o, "gpu_uuid", uuid);
    if (speeds && slow)
        json_object_set (o, "speed", speed);
    json_decref (uuid);
    json_decref (speed);
}

static void add_nodes (const struct writer *w)
{
    const struct coordinator *c = w->c;

    for (int k = 0; k < c->shape.nodes; k++) {
        json_t *node = topology_links_doc_node (w->doc, c->node[k].name, c->node[k].gpus,
                                                gpu_type_of (c, k));

        if (node)
            add_gpus (c, k, node);
    }
}

/* ---- links ---- */

/* The matrices of an object of `links`. */
enum { PLANE_BANDWIDTH, PLANE_LATENCY, PLANE_ERROR, PLANES };

static const struct {
    const char *key, *file;
    double unit;
} plane[PLANES] = {{"bandwidth_gb_per_s", "bandwidth.npy", UNITS_GB},
                   {"latency_us", "latency.npy", UNITS_US},
                   {"estimate_error", "estimate-error.npy", 1}};

/* Bandwidth alone and latency: measured, or estimated where a model was accepted. */
static void link_of (struct writer *w, int src, int dst, double value[PLANES])
{
    const struct results_pair *p = results_find (w->c->results, src, dst);
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

static void fill_planes (struct writer *w, const int *place, int n, double *v[PLANES])
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
static json_t *links_over (struct writer *w, const int *place, int n, const char *what)
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
        sum += results_median (results_find (c->results, from + i, to + i),
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

static enum status add_node_totals (struct writer *w, json_t *links)
{
    const struct coordinator *c = w->c;
    size_t n = (size_t) c->shape.nodes, cells = n * n;
    double *total = malloc (2 * (cells + 1) * sizeof *total), *work;
    json_t *list = json_array (), *pairs = NULL;
    bool differ, any = false;

    if (c->shape.n == c->shape.nodes || !total) {
        json_decref (list);
        free (total);
        return c->shape.n == c->shape.nodes ? ST_OK : err_nomem (w->err);
    }
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

static enum status add_inside (struct writer *w, json_t *links, int *place)
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

static enum status add_links (struct writer *w)
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

/* ---- measured ---- */

/* What --gemm and --compute measured of a GPU. */
static void add_computed (const struct msg_computed *m, json_t *o)
{
    json_t *list = json_array ();

    json_object_set_new (o, "gemm_tflop_per_s",
                         topology_links_number (m->product[0].flop_per_s / 1e12));
    json_object_set_new (o, "gemm_precision", json_string (m->product[0].precision));
    json_object_set_new (o, "copy_gb_per_s",
                         topology_links_number (m->copy_bytes_per_s / UNITS_GB));
    if (m->launch_s > 0) {
        json_object_set_new (o, "launch_us",
                             topology_links_number (m->launch_s / UNITS_US));
        json_object_set_new (o, "kernel_us",
                             topology_links_number (m->kernel_s / UNITS_US));
        json_object_set (o, "products", list);
    }
    for (uint32_t i = 0; i < m->n_products; i++) {
        const struct msg_product *p = &m->product[i];

        json_array_append_new (
            list, json_pack ("{s:s, s:i, s:i, s:i, s:o}", "precision", p->precision, "m",
                             (int) p->m, "n", (int) p->n, "k", (int) p->k, "tflop_per_s",
                             topology_links_number (p->flop_per_s / 1e12)));
    }
    json_decref (list);
}

static json_t *endpoints_json (const struct coordinator *c)
{
    json_t *ends = json_array ();

    for (int i = 0; i < c->shape.n; i++) {
        const struct endpoint *e = &c->end[i];
        json_t *o = json_pack ("{s:s, s:i, s:i, s:b}", "node", c->node[e->node].name,
                               "gpu", e->gpu, "rank", (int) e->member->rank, "survived",
                               e->member->state == MEMBER_HERE);

        if (e->has_computed)
            add_computed (&e->computed, o);
        json_array_append_new (ends, o);
    }
    return ends;
}

/* The isolated samples, a pass each, then those of the second look. */
static json_t *samples_json (const struct results_pair *p)
{
    json_t *list = json_array ();

    for (int i = 0; i < p->n[RESULTS_ALONE]; i++)
        json_array_append_new (
            list,
            topology_links_number ((double) p->sample[RESULTS_ALONE][i] / UNITS_GB));
    return list;
}

static json_t *pair_json (const struct results_pair *p)
{
    static const struct {
        enum results_what what;
        const char *key;
        double unit;
    } part[] = {{RESULTS_ALONE, "isolated_gb_per_s", UNITS_GB},
                {RESULTS_TOGETHER, "concurrent_gb_per_s", UNITS_GB},
                {RESULTS_LATENCY, "latency_us", UNITS_US}};
    json_t *o = json_pack ("{s:i, s:i}", "src", p->src, "dst", p->dst);
    const char *verdict = results_verdict_text ((enum results_verdict) p->verdict);

    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
        struct stats_spread s = results_spread (p, part[k].what);

        if (s.n > 0)
            json_object_set_new (o, part[k].key,
                                 topology_links_spread (&s, part[k].unit));
    }
    if (p->n[RESULTS_ALONE] > 1)
        json_object_set_new (o, "isolated_samples_gb_per_s", samples_json (p));
    if (p->n[RESULTS_ALONE] + p->n[RESULTS_TOGETHER] > 0)
        json_object_set_new (o, "fit_residual",
                             topology_links_number ((double) p->residual));
    if (p->failures > 0) {
        json_object_set_new (o, p->n[RESULTS_ALONE] ? "failed_once" : "failed",
                             json_string (p->reason ? p->reason : "unknown"));
        json_object_set_new (o, "failures", json_integer (p->failures));
    }
    if (verdict)
        json_object_set_new (o, "verdict", json_string (verdict));
    return o;
}

/* All pairs as a table, when there are too many for the file. */
static enum status write_pairs_csv (struct writer *w, json_t *measured)
{
    const struct coordinator *c = w->c;
    struct text t = {0};
    const char *base;
    char *path = beside (w, "pairs.csv", &base);
    enum status st;

    text_add (&t, "src,dst,samples,isolated_gb_per_s,mad,low,high,concurrent_gb_per_s,"
                  "latency_us,failures\n");
    for (size_t i = 0; i < results_count (c->results); i++) {
        const struct results_pair *p = results_at (c->results, i);
        struct stats_spread s = results_spread (p, RESULTS_ALONE);
        const double v[6] = {s.median / UNITS_GB,
                             s.mad / UNITS_GB,
                             s.low / UNITS_GB,
                             s.high / UNITS_GB,
                             results_median (p, RESULTS_TOGETHER) / UNITS_GB,
                             results_median (p, RESULTS_LATENCY) / UNITS_US};

        text_add (&t, "%d,%d,%d", p->src, p->dst, s.n);
        for (int k = 0; k < 6; k++)
            text_add (&t, isfinite (v[k]) ? ",%.7g" : ",", v[k]);
        text_add (&t, ",%d\n", p->failures);
    }
    st = path && !t.failed ? file_write (path, t.s, t.len, w->err) : err_nomem (w->err);
    if (st == ST_OK)
        json_object_set_new (measured, "pairs_csv", json_string (base));
    free (path);
    text_free (&t);
    return st;
}

static enum status add_pairs (struct writer *w, json_t *measured)
{
    const struct coordinator *c = w->c;
    json_t *pairs = json_array ();
    bool all =
        results_count (c->results) <= PAIRS_MAX || strcmp (c->set.output, "-") == 0;

    for (size_t i = 0; i < results_count (c->results); i++) {
        const struct results_pair *p = results_at (c->results, i);

        if (all || p->failures > 0 || p->verdict != VERDICT_NONE)
            json_array_append_new (pairs, pair_json (p));
    }
    json_object_set_new (measured, "pairs", pairs);
    return all ? ST_OK : write_pairs_csv (w, measured);
}

/* How the links that nobody measured were estimated, and how good that is. */
static json_t *estimates_json (const struct writer *w)
{
    json_t *list = json_array ();

    for (int t = 0; t < ESTIMATE_TIERS; t++) {
        const struct estimate_tier *tier = &w->tier[t];

        if (tier->measured + tier->unmeasured == 0)
            continue;

        json_t *models = json_array ();

        for (int m = 0; m < ESTIMATE_MODELS; m++) {
            const struct estimate_model *e = &tier->model[m];

            json_array_append_new (
                models,
                json_pack ("{s:s, s:b, s:i, s:o, s:o, s:o}", "from", e->name, "used",
                           e->trial.accepted, "held_out", e->trial.tried, "error_p50",
                           topology_links_number (e->trial.error_p50), "error_p90",
                           topology_links_number (e->trial.error_p90), "low",
                           topology_links_number (e->trial.low)));
        }
        json_array_append_new (
            list, json_pack ("{s:s, s:I, s:I, s:I, s:o}", "links", tier->name, "measured",
                             (json_int_t) tier->measured, "unmeasured",
                             (json_int_t) tier->unmeasured, "estimated",
                             (json_int_t) tier->estimated, "models", models));
    }
    return list;
}

static json_t *versions_json (const struct coordinator *c)
{
    json_t *o = json_pack ("{s:s}", "bwprobe", LINKWISE_VERSION);
    const char *first = NULL;

    if (c->set.started_by)
        json_object_set_new (o, "started_by", json_string (c->set.started_by));
    for (int i = 0; i < c->shape.n; i++) {
        const char *v = c->end[i].member->opened.versions;

        if (v[0] && !first) {
            first = v;
            json_object_set_new (o, "gpu_libraries", json_string (v));
        } else if (v[0] && strcmp (first, v) != 0) {
            json_object_set_new (o, "gpu_libraries_differ", json_string (v));
        }
    }
    return o;
}

/* How many pairs measured at a time where a link is said to be measured alone. */
static json_t *isolation_json (const struct coordinator *c)
{
    json_t *o = json_pack ("{s:i}", "pairs_at_once",
                           c->plan.levelled      ? c->shape.n / 2
                           : c->plan.at_once > 0 ? c->plan.at_once
                                                 : 1);

    if (c->at_once_checked > 0)
        json_object_set_new (o, "worst_of_checked",
                             topology_links_number (c->at_once_worst));
    return o;
}

static enum status add_measured (struct writer *w, const char *status)
{
    struct coordinator *c = (struct coordinator *) w->c;
    json_t *m = json_object_get (w->doc, "measured"), *faults = json_array ();
    long refused = roster_refused (c->roster) + c->refused;

    for (int i = 0; i < c->n_faults; i++)
        json_array_append_new (faults, json_string (c->fault[i].text));
    json_object_update_new (
        m, json_pack ("{s:s, s:s, s:o, s:i, s:i, s:o, s:i, s:I, s:o, s:o, s:I, s:o, s:o}",
                      "status", status, "transport", c->transport->name, "versions",
                      versions_json (c), "passes", c->passes_done, "passes_asked",
                      c->set.passes, "seconds",
                      topology_links_number (coordinator_elapsed (c)), "ranks",
                      roster_size (c->roster), "seed", (json_int_t) c->set.seed,
                      "isolation", isolation_json (c), "faults", faults,
                      "refused_connections", (json_int_t) refused, "estimates",
                      estimates_json (w), "endpoints", endpoints_json (c)));
    if (c->preflight)
        json_object_set_new (m, "preflight", preflight_json (c));
    /* One rank a node says nothing of how many GPUs it has. */
    if (c->shape.n == c->shape.nodes)
        json_object_set_new (m, "gpus_known", json_false ());
    return add_pairs (w, m);
}

/* What --compute measured as constants of the GPU types.  What no such GPU can do is for
 * whoever merges the file: here it must not cost the links. */
static void add_types (struct writer *w)
{
    const struct coordinator *c = w->c;
    struct topology_compute_source from = {file_title (c->set.output), w->doc};
    struct error why;

    if (topology_compute_apply (w->doc, &from, 1, NULL, &why) != ST_OK)
        coordinator_say ((struct coordinator *) c, "no constants of GPU types: %s",
                         why.text);
}

enum status links_write (struct coordinator *c, const char *status,
                         struct estimate_tier *tier, struct error *err)
{
    struct writer w = {.c = c, .tier = tier, .err = err};
    enum status st;

    w.doc = topology_links_doc_create ("bwprobe");
    if (!w.doc)
        return err_nomem (err);
    add_nodes (&w);
    st = add_links (&w);
    if (st == ST_OK)
        st = add_measured (&w, status);
    if (st == ST_OK)
        add_types (&w);
    if (st == ST_OK) {
        char *s = json_dumps (w.doc, JSON_COMPACT | JSON_REAL_PRECISION (7));
        struct text t = {0};

        text_add (&t, "%s\n", s ? s : "");
        st = s && !t.failed ? file_write (c->set.output, t.s, t.len, err)
                            : err_nomem (err);
        text_free (&t);
        free (s);
    }
    json_decref (w.doc);
    return st;
}
