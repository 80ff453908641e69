/* The links file (docs/probe.md, docs/schema/links.schema.json).
 *
 * `nodes` and `links` (links_matrix.c) are what the planner reads.  All that is known about each
 * pair stands in `measured`.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/units.h"
#include "base/version.h"
#include "bwprobe/coordinator_private.h"
#include "bwprobe/preflight.h"
#include "topology/links_doc.h"

enum { PAIRS_MAX = 65536 }; /* more pairs go into a .csv file */

/* A slow GPU is told from noise at this difference. */
#define SPEED_NOISE 0.02

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
    JSON_DECREF_ALL (uuid, speed);
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
    for (uint32_t i = 0; i < m->n_attention; i++) {
        const struct msg_attention *a = &m->attention[i];

        json_array_append_new (json_array_in (o, "attention"),
                               json_pack ("{s:s, s:i, s:i, s:i, s:o}", "kernels",
                                          a->kernels, "tokens", (int) a->tokens, "heads",
                                          (int) a->heads, "head_dim", (int) a->width,
                                          "tflop_per_s",
                                          topology_links_number (a->flop_per_s / 1e12)));
    }
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
    /* A pass each, then those of the second look. */
    for (int i = 0; p->n[RESULTS_ALONE] > 1 && i < p->n[RESULTS_ALONE]; i++)
        json_array_append_new (
            json_array_in (o, "isolated_samples_gb_per_s"),
            topology_links_number ((double) p->sample[RESULTS_ALONE][i] / UNITS_GB));
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
static enum status write_pairs_csv (struct links_writer *w, json_t *measured)
{
    const struct coordinator *c = w->c;
    struct text t = {0};
    const char *base;
    char *path = links_beside (w, "pairs.csv", &base);
    enum status st;

    text_add (&t, "src,dst,samples,isolated_gb_per_s,mad,low,high,concurrent_gb_per_s,"
                  "latency_us,failures\n");
    for (size_t i = 0; i < c->results.n; i++) {
        const struct results_pair *p = &c->results.pair[i];
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

static enum status add_pairs (struct links_writer *w, json_t *measured)
{
    const struct coordinator *c = w->c;
    json_t *pairs = json_array ();
    bool all = c->results.n <= PAIRS_MAX || strcmp (c->set.output, "-") == 0;

    for (size_t i = 0; i < c->results.n; i++) {
        const struct results_pair *p = &c->results.pair[i];

        if (all || p->failures > 0 || p->verdict != VERDICT_NONE)
            json_array_append_new (pairs, pair_json (p));
    }
    json_object_set_new (measured, "pairs", pairs);
    return all ? ST_OK : write_pairs_csv (w, measured);
}

/* How the links that nobody measured were estimated, and how good that is. */
static json_t *estimates_json (const struct links_writer *w)
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

static enum status add_measured (struct links_writer *w, const char *status)
{
    struct coordinator *c = w->c;
    /* Pairs at a time where a link is said to be measured alone. */
    int at_once = c->plan.levelled      ? c->shape.n / 2
                  : c->plan.at_once > 0 ? c->plan.at_once
                                        : 1;
    json_t *m = json_object_get (w->doc, "measured"), *faults = json_array (),
           *isolation = json_pack ("{s:i}", "pairs_at_once", at_once);
    long refused = roster_refused (c->roster) + c->refused;

    if (c->at_once_checked > 0)
        json_object_set_new (isolation, "worst_of_checked",
                             topology_links_number (c->at_once_worst));
    for (int i = 0; i < c->n_faults; i++)
        json_array_append_new (faults, json_string (c->fault[i]));
    json_object_update_new (
        m, json_pack (
               "{s:s, s:s, s:o, s:i, s:i, s:o, s:i, s:I, s:o, s:o, s:I, s:o, s:o}",
               "status", status, "transport", c->transport->name, "versions",
               versions_json (c), "passes", c->passes_done, "passes_asked", c->set.passes,
               "seconds", topology_links_number (coordinator_elapsed (c)), "ranks",
               roster_size (c->roster), "seed", (json_int_t) c->set.seed, "isolation",
               isolation, "faults", faults, "refused_connections", (json_int_t) refused,
               "estimates", estimates_json (w), "endpoints", endpoints_json (c)));
    if (c->preflight)
        json_object_set_new (m, "preflight", preflight_json (c));
    /* One rank a node says nothing of how many GPUs it has. */
    if (c->shape.n == c->shape.nodes)
        json_object_set_new (m, "gpus_known", json_false ());
    return add_pairs (w, m);
}

enum status links_write (struct coordinator *c, const char *status,
                         struct estimate_tier *tier, struct error *err)
{
    struct links_writer w = {.c = c, .tier = tier, .err = err};
    struct topology_compute_source from = {file_title (c->set.output), NULL};
    struct error why;
    enum status st;

    w.doc = topology_links_doc_create ("bwprobe");
    if (!w.doc)
        return err_nomem (err);
    for (int k = 0; k < c->shape.nodes; k++) {
        json_t *node = topology_links_doc_node (w.doc, c->node[k].name, c->node[k].gpus,
                                                gpu_type_of (c, k));

        if (node)
            add_gpus (c, k, node);
    }
    st = links_add (&w);
    THEN (st, add_measured (&w, status));
    /* What --compute measured as constants of the GPU types.  What no such GPU can do is for
     * whoever merges the file: here it must not cost the links. */
    from.doc = w.doc;
    if (st == ST_OK && topology_compute_apply (w.doc, &from, 1, NULL, &why) != ST_OK)
        coordinator_say (c, "no constants of GPU types: %s", why.text);
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
