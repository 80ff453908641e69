/* Links files from what other tools printed: the table of formats, the choice among them,
 * and the document.  links_import_table.c holds what the formats share. */
#include "topology/measured/links_import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/stats.h"
#include "base/units.h"
#include "topology/links_doc.h"
#include "topology/measured/links_import_private.h"
#include "topology/topology.h"

/* `auto` takes the first that the text looks like: the strictest stand first. */
static const struct links_format *const formats[] = {
    &links_format_nccl_tests, &links_format_nvbandwidth, &links_format_p2p,
    &links_format_inspector,  &links_format_perfquery,   &links_format_ibdiagnet,
    &links_format_nvlink,     &links_format_dcgm,        &links_format_mpigraph,
    &links_format_osu,        &links_format_taccl,       &links_format_pairs,
    &links_format_matrix};
enum { FORMATS = sizeof formats / sizeof *formats };

const char *topology_links_import_format_at (int i)
{
    return i < FORMATS ? formats[i]->name : NULL;
}

static bool looks_like (const struct links_format *f, const char *text)
{
    bool json = f->json_has[0] && links_is_json (text), all = true;
    int most = json ? 2 : 3;

    if (!json && !f->text_has[0])
        return f->matches && f->matches (text);
    for (int i = 0; i < most && all; i++) {
        const char *word = json ? f->json_has[i] : f->text_has[i];

        all = !word || strstr (text, word);
    }
    return all;
}

/* By its name; with "auto" what the text looks like.  NULL: none. */
static const struct links_format *find_format (const char *name, const char *text)
{
    for (int i = 0; i < FORMATS; i++)
        if (strcmp (name, "auto") == 0 ? looks_like (formats[i], text)
                                       : strcmp (name, formats[i]->name) == 0)
            return formats[i];
    return NULL;
}

/* ---- the document ---- */

/* The medians as matrices over the endpoints. */
struct matrices {
    int n;
    double *bandwidth, *latency; /* [n*n] NaN: not in the file */
    bool any_latency;
};

/* One directed pair: the samples from `at` to the next pair.  Returns where that begins. */
static size_t add_pair (struct links_table *t, size_t at, double *work,
                        struct matrices *m, json_t *pairs)
{
    const struct links_sample *first = &t->sample[at];
    size_t ij = (size_t) first->src * (size_t) m->n + (size_t) first->dst, end = at;
    json_t *pair = json_pack ("{s:i, s:i}", "src", first->src, "dst", first->dst);
    const char *reason = NULL;
    int n[2] = {0, 0};

    for (; end < t->n_samples && t->sample[end].src == first->src &&
           t->sample[end].dst == first->dst;
         end++)
        ;
    for (int what = LINKS_BANDWIDTH; what <= LINKS_LATENCY; what++) {
        for (size_t k = at; k < end; k++)
            if ((int) t->sample[k].what == what)
                work[n[what]++] = t->sample[k].value;
        if (n[what] == 0)
            continue;

        struct stats_spread s = stats_spread_of (work, n[what]);

        bool latency = what == LINKS_LATENCY;

        (latency ? m->latency : m->bandwidth)[ij] = s.median;
        m->any_latency |= latency;
        json_object_set_new (pair, latency ? "latency_us" : "isolated_gb_per_s",
                             topology_links_spread (&s, latency ? UNITS_US : UNITS_GB));
    }
    for (size_t k = at; k < end; k++)
        if (t->sample[k].what == LINKS_FAILED)
            reason = t->sample[k].reason;
    if (reason && n[LINKS_BANDWIDTH] == 0)
        json_object_set_new (pair, "failed", json_string (reason));
    json_array_append_new (pairs, pair);
    return end;
}

static enum status fill_matrices (struct links_table *t, struct matrices *m,
                                  json_t *pairs)
{
    size_t cells = (size_t) t->n_ends * (size_t) t->n_ends;
    int *place = malloc (((size_t) t->n_ends + 1) * sizeof *place);
    double *work = malloc ((t->n_samples + 1) * sizeof *work);
    enum status st = ST_OK;

    m->n = t->n_ends;
    m->bandwidth = malloc ((cells + 1) * sizeof *m->bandwidth);
    m->latency = malloc ((cells + 1) * sizeof *m->latency);
    if (!place || !work || !m->bandwidth || !m->latency) {
        st = err_nomem (t->err);
    } else {
        /* Endpoints of a node follow each other, in GPU order. */
        order_by_ints (t->end, (size_t) t->n_ends, sizeof *t->end, 2);
        for (int i = 0; i < t->n_ends; i++)
            place[t->end[i].number] = i;
        for (size_t k = 0; k < t->n_samples; k++) {
            t->sample[k].src = place[t->sample[k].src];
            t->sample[k].dst = place[t->sample[k].dst];
        }
        for (size_t k = 0; k < cells; k++)
            m->bandwidth[k] = m->latency[k] = NAN;
        order_by_ints (t->sample, t->n_samples, sizeof *t->sample,
                       3); /* src, dst, what */
        for (size_t at = 0; at < t->n_samples;)
            at = add_pair (t, at, work, m, pairs);
    }
    FREE_ALL (place, work);
    return st;
}

/* Where single GPUs were measured, the matrix stands over all of a node's. */
static enum status complete_ends (struct links_table *t)
{
    int nodes = 0, end;

    for (int i = 0; i < t->n_nodes; i++)
        for (int k = 0; k < t->n_ends; k++)
            if (t->end[k].node == i) {
                nodes++;
                break;
            }
    if (nodes == t->n_ends)
        return ST_OK;
    for (int i = 0; i < t->n_nodes; i++)
        for (int gpu = 0; gpu < t->node[i].gpus; gpu++)
            TRY (links_table_end (t, i, gpu, &end));
    return ST_OK;
}

/* One object of `links` over n endpoints, -1 where a node has none.
 * @param[in] all  bytes/s of all pairs, instead of what was measured of each; 0: none */
static json_t *links_json (const struct links_table *t, const struct matrices *m,
                           const int *end, int n, bool inside, double all)
{
    double latency_s = inside ? t->all_intra_latency_s : t->all_inter_latency_s;
    double *cut = memory_zeros ((size_t) n * (size_t) n + 1, sizeof *cut);
    json_t *o = json_object ();

    for (int k = 0; k < 2 && cut; k++) {
        const double *from = k ? m->latency : m->bandwidth;

        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                cut[(size_t) i * (size_t) n + (size_t) j] =
                    end[i] < 0 || end[j] < 0
                        ? NAN
                        : from[(size_t) end[i] * (size_t) m->n + (size_t) end[j]];
        if (k == 0)
            json_object_set_new (o, "bandwidth_gb_per_s",
                                 all > 0 ? topology_links_number (all / UNITS_GB)
                                         : topology_links_matrix (cut, n, UNITS_GB));
        else if (m->any_latency && n > 0)
            json_object_set_new (o, "latency_us",
                                 topology_links_matrix (cut, n, UNITS_US));
        else
            json_object_set_new (
                o, "latency_us",
                topology_links_number (latency_s > 0 ? latency_s / UNITS_US
                                       : inside      ? TOPOLOGY_INTRA_LATENCY_US
                                                     : TOPOLOGY_INTER_LATENCY_US));
    }
    free (cut);
    return o;
}

/* True if some node took part with several GPUs. */
static bool single_gpus (const struct links_table *t)
{
    for (int i = 1; i < t->n_ends; i++)
        if (t->end[i].node == t->end[i - 1].node)
            return true;
    return false;
}

/* `links.gpu`: numbers that hold for all pairs of a kind fill what no sample tells. */
static json_t *gpu_json (const struct links_table *t, struct matrices *m, int *end)
{
    for (int i = 0; i < m->n; i++) {
        end[i] = i;
        for (int j = 0; j < m->n; j++) {
            double all = t->end[i].node == t->end[j].node ? t->all_intra_bytes_per_s
                                                          : t->all_inter_bytes_per_s,
                   *v = &m->bandwidth[(size_t) i * (size_t) m->n + (size_t) j];

            if (isnan (*v) && all > 0)
                *v = all;
        }
    }

    return links_json (t, m, end, m->n, t->n_nodes == 1, 0);
}

/* `links`, in the form that fits what was measured: `gpu` over all GPUs where single ones
 * were, `inter` over nodes where each took part with one; numbers that hold for all pairs as
 * `inter` and `intra`. */
static enum status add_links (const struct links_table *t, struct matrices *m,
                              json_t *links)
{
    int *end = malloc (((size_t) t->n_ends + (size_t) t->n_nodes + 1) * sizeof *end);
    bool between = t->all_inter_bytes_per_s > 0 || t->node_bytes_per_s > 0;
    json_t *o = NULL;

    if (!end)
        return err_nomem (t->err);
    for (int i = 0; i < t->n_nodes; i++)
        end[i] = -1;
    for (int i = 0; i < t->n_ends; i++)
        end[t->end[i].node] = i;
    if (single_gpus (t)) {
        o = gpu_json (t, m, end);
        json_object_set_new (links, "gpu", o);
    } else if (between || t->n_samples > 0) {
        o = links_json (t, m, end, t->n_nodes, false, t->all_inter_bytes_per_s);
        json_object_set_new (links, "inter", o);
    }
    if (t->node_bytes_per_s > 0)
        json_object_set_new (o, "node_gb_per_s",
                             topology_links_number (t->node_bytes_per_s / UNITS_GB));
    if (t->all_intra_bytes_per_s > 0 && !single_gpus (t))
        json_object_set_new (links, "intra",
                             links_json (t, m, NULL, 0, true, t->all_intra_bytes_per_s));
    free (end);
    return ST_OK;
}

static bool has_links (const struct links_table *t)
{
    return t->n_samples > 0 || t->all_intra_bytes_per_s > 0 ||
           t->all_inter_bytes_per_s > 0 || t->node_bytes_per_s > 0;
}

/* When and how it was measured, beside what. */
static void set_measured (const struct links_table *t, json_t *measured)
{
    json_object_set_new (measured, "gpus_known", json_boolean (t->gpus_known));
    if (t->when_s > 0)
        json_object_set_new (measured, "when", topology_links_time (t->when_s));
    if (t->busy)
        json_object_set_new (measured, "load", json_string ("busy"));
    if (t->counters)
        json_object_set (measured, "counters", t->counters);
}

static enum status to_json (struct links_table *t, const char *tool, json_t **doc)
{
    struct matrices m = {0};
    json_t *d = topology_links_doc_create (tool), *pairs = json_array (),
           *ends = json_array (), *measured = json_object_get (d, "measured");
    enum status st = d && pairs && ends ? complete_ends (t) : err_nomem (t->err);

    THEN (st, fill_matrices (t, &m, pairs));

    if (st == ST_OK) {
        for (int i = 0; i < t->n_ends; i++)
            json_array_append_new (ends, json_pack ("{s:s, s:i}", "node",
                                                    t->node[t->end[i].node].name, "gpu",
                                                    t->end[i].gpu));
        for (int i = 0; i < t->n_nodes; i++)
            topology_links_doc_node (
                d, t->node[i].name, t->node[i].gpus,
                t->node[i].product ? topology_gpu_type_of_product (t->node[i].product, 0)
                                   : NULL);
        st = add_links (t, &m, json_object_get (d, "links"));
    }
    if (st == ST_OK) {
        if (t->source.len > 0)
            json_object_set_new (d, "source", json_string (text_str (&t->source)));
        if (has_links (t) && !m.any_latency && t->all_intra_latency_s <= 0 &&
            t->all_inter_latency_s <= 0) {
            json_object_set_new (measured, "latency_assumed", json_true ());
            notes_add (
                t->notes,
                "%s: the file has no latencies: %g us inside nodes and %g us between "
                "them are assumed",
                t->file, TOPOLOGY_INTRA_LATENCY_US, TOPOLOGY_INTER_LATENCY_US);
        }
        set_measured (t, measured);
        json_object_set (measured, "endpoints", ends);
        json_object_set (measured, "pairs", pairs);
        *doc = d;
        d = NULL;
    }
    JSON_DECREF_ALL (d, pairs, ends);
    FREE_ALL (m.bandwidth, m.latency);
    return st;
}

static void release (struct links_table *t)
{
    for (int i = 0; i < t->n_nodes; i++)
        FREE_ALL (t->node[i].name, t->node[i].product);
    FREE_ALL (t->node, t->end, t->sample);
    JSON_DECREF_ALL (t->counters, t->counter_at);
    text_free (&t->source);
}

/* ---- reading ---- */

/* A text, or the JSON that some tools write instead. */
static enum status read_as (struct links_table *t, const struct links_format *f,
                            char *text)
{
    struct json_at root = {.key = t->file};
    enum status st;

    t->next = text;
    if (f->read && !(f->read_json && links_is_json (text)))
        return f->read (t);
    TRY (json_parse (t->file, text, strlen (text), &root.v, t->err));
    st = f->read_json (t, &root);
    json_decref (root.v);
    return st;
}

static enum status read_text (struct links_table *t, const char *format, char *text,
                              size_t len, json_t **doc)
{
    const struct links_format *f;

    if (strlen (text) != len)
        return err_set (t->err, ST_INVALID, "%s: expected text, found binary data",
                        t->file);
    text += file_mark (text, len);
    if (!(f = find_format (format, text)))
        return err_set (t->err, ST_INVALID,
                        "%s: expected the output of nccl-tests, nvbandwidth, "
                        "p2pBandwidthLatencyTest, mpiGraph, OSU or NCCL Inspector, a "
                        "table of links (CSV with the columns src,dst,gb_per_s), or "
                        "counters (perfquery, ibdiagnet, nvidia-smi nvlink -e, DCGM); "
                        "found none of these",
                        t->file);
    TRY (read_as (t, f, text));
    if (!has_links (t) && json_array_size (t->counters) == 0)
        return err_set (t->err, ST_INVALID,
                        "%s: neither links nor counters in this output of %s", t->file,
                        f->name);
    return to_json (t, f->name, doc);
}

enum status topology_links_import (const char *path, const char *format, json_t **doc,
                                   struct notes *notes, struct error *err)
{
    struct links_table t = {.file = file_title (path), .notes = notes, .err = err};
    struct text names = {0};
    char *text;
    size_t len;

    if (strcmp (format, "auto") != 0 && !find_format (format, NULL)) {
        for (int i = 0; i < FORMATS; i++)
            text_add (&names, ", %s", formats[i]->name);
        err_set (err, ST_USAGE, "format: expected auto%s; found \"%.60s\"",
                 text_str (&names), format);
        text_free (&names);
        return ST_USAGE;
    }

    TRY (file_read (path, &text, &len, err));

    enum status st = read_text (&t, format, text, len, doc);

    release (&t);
    free (text);
    return st;
}
