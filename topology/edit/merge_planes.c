/* The links between nodes of several files, link by link: over nodes where no file tells the
 * GPUs of a node apart, over all GPUs where one does.  The newer file over the older; then
 * merge_history.c weighs what they all measured.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/units.h"
#include "topology/links_doc.h"
#include "topology/edit/merge_private.h"
#include "topology/topology_private.h"

#define GPU_MATRIX_MAX 32768 /* GPUs: 4 GiB */

/* Of links.inter and links.gpu. */
#define KNOWN_KEYS                                                                   \
    "bandwidth_gb_per_s latency_us estimate_error node_gb_per_s node_pair_gb_per_s " \
    "rails nominal source"

/* Keys of `links`.`name` that linkwise does not know, of all files. */
static void keep_unknown (const struct merge *m, const char *name, json_t *object)
{
    const char *key;
    json_t *value;

    for (int k = 0; k < m->n; k++)
        json_object_foreach (
            json_object_get (json_object_get (m->source[k].doc, "links"), name), key,
            value)
        {
            if (!text_has_word (KNOWN_KEYS, key))
                json_object_set (object, key, value);
        }
}

/* ---- between nodes, link by link ---- */

static int end_of (const struct merge_planes *p, int node)
{
    return p->first[node + 1];
}

static enum status make_planes (const struct merge *m, struct merge_planes *p)
{
    size_t total = 0;
    bool estimates = false;

    for (int k = 0; k < m->n; k++)
        estimates = estimates || m->source[k].c->has_estimates;
    p->first = calloc ((size_t) m->n_nodes + 1, sizeof *p->first);
    for (int i = 0; p->first && i < m->n_nodes; i++) {
        total += p->over_gpus ? (size_t) merge_gpus_of (m, i) : 1;
        p->first[i + 1] = (int) total;
    }
    if (p->over_gpus && total > GPU_MATRIX_MAX)
        return err_set (
            m->err, ST_INVALID,
            "several files give the links of single GPUs, %zu in all: a matrix over more "
            "than %d GPUs is not written",
            total, GPU_MATRIX_MAX);
    p->n = (int) total;
    p->node = calloc (total + 1, sizeof *p->node);
    p->bw = topology_matrix_room (p->n);
    p->us = topology_matrix_room (p->n);
    p->error = estimates ? topology_matrix_room (p->n) : NULL;
    p->weak = calloc (total * total + 1, 1);
    p->from = calloc (total * total + 1, sizeof *p->from);
    if (!p->first || !p->node || !p->bw || !p->us || !p->weak || !p->from ||
        (estimates && !p->error))
        return err_nomem (m->err);
    for (int i = 0; i < m->n_nodes; i++)
        for (int k = p->first[i]; k < end_of (p, i); k++)
            p->node[k] = i;
    return ST_OK;
}

static void free_planes (struct merge_planes *p)
{
    FREE_ALL (p->first, p->node, p->weak, p->from);
    topology_matrix_drop (p->bw);
    topology_matrix_drop (p->us);
    topology_matrix_drop (p->error);
}

/* A file that gives links: which, and whether as nominal. */
struct giver {
    int source;
    bool nominal, busy;
};

/* A nominal rate and an estimate give way to any measurement, whatever their age; and what a
 * link reached beside other traffic to what it reaches alone. */
static void put (struct merge_planes *p, const struct giver *from, int i, int j,
                 struct topology_link l, double error)
{
    size_t at = (size_t) i * (size_t) p->n + (size_t) j;
    float new = (float) (l.bytes_per_s / UNITS_GB), old = p->bw[at];
    bool weak = from->nominal || from->busy || !isnan (error);

    if (!l.measured || (weak && !isnan (old) && !p->weak[at]))
        return;
    if (!weak && !p->weak[at] && !isnan (old) && old != new) {
        double share =
            fabs ((double) new - (double) old) / fmax ((double) new, (double) old);

        p->conflicts++;
        if (share > p->largest.share)
            p->largest = (struct merge_conflict){share, i, j, from->source, old, new};
    }
    p->bw[at] = new;
    p->us[at] = (float) (l.latency_s / UNITS_US);
    p->weak[at] = weak;
    if (p->error)
        p->error[at] = (float) error;
}

/* All links between GPUs of two nodes of a source; a may be b. */
static void put_gpus (struct merge_planes *p, const struct merge_source *s,
                      const struct giver *from, int a, int b, int into_a, int into_b)
{
    const struct topology_node *x = &s->c->node[a], *y = &s->c->node[b];
    int most_x = end_of (p, into_a) - p->first[into_a],
        most_y = end_of (p, into_b) - p->first[into_b];

    for (int i = 0; i < x->gpus && i < most_x; i++)
        for (int j = 0; j < y->gpus && j < most_y; j++)
            if (a != b || i != j)
                put (p, from, p->first[into_a] + i, p->first[into_b] + j,
                     topology_link_given (s->c, x->first_gpu + i, y->first_gpu + j),
                     topology_link_estimate_error (s->c, x->first_gpu + i,
                                                   y->first_gpu + j));
}

/* Endpoints of a source's measured pairs: merged endpoints from..to. */
static bool endpoint (const struct merge *m, const struct merge_planes *p,
                      const json_t *end, int *from, int *to)
{
    const json_t *at = json_object_get (m->index, json_member_text (end, "node"));
    int i = (int) json_integer_value (at), gpu = (int) json_member_int (end, "gpu");

    if (!at)
        return false;
    *from = p->first[i];
    *to = end_of (p, i);
    if (p->over_gpus && gpu >= 0 && gpu < *to - *from) {
        *from += gpu;
        *to = *from + 1;
    }
    return true;
}

/* What a file found failed is unknown, whatever older ones say. */
static void forget_failed (const struct merge *m, struct merge_planes *p, int k)
{
    const json_t *measured = json_object_get (m->source[k].doc, "measured"),
                 *pairs = json_object_get (measured, "pairs"), *pair;
    size_t at_pair;

    json_array_foreach ((json_t *) pairs, at_pair, pair)
    {
        int a, a_end, b, b_end;

        if (!json_object_get (pair, "failed") ||
            !endpoint (m, p, topology_measured_end (measured, pair, "src"), &a, &a_end) ||
            !endpoint (m, p, topology_measured_end (measured, pair, "dst"), &b, &b_end))
            continue;
        for (int i = a; i < a_end; i++)
            for (int j = b; j < b_end; j++) {
                size_t at = (size_t) i * (size_t) p->n + (size_t) j;

                p->bw[at] = NAN;
                p->from[at] = (unsigned short) (k < USHRT_MAX ? k + 1 : USHRT_MAX);
                if (p->error)
                    p->error[at] = NAN;
            }
    }
}

/* What a source gives, either its nominal or its measured links. */
static void put_source (const struct merge *m, struct merge_planes *p, int k,
                        bool nominal)
{
    const struct merge_source *s = &m->source[k];
    const struct topology_cluster *c = s->c;
    struct giver from = {k, nominal, s->busy && m->half_life_s > 0};

    for (int a = 0; a < c->n_nodes; a++)
        for (int b = 0; b < c->n_nodes; b++) {
            int i = merge_place_of (m, s, a), j = merge_place_of (m, s, b);
            const struct topology_links *l = c->has_gpu_matrix ? &c->gpu_links
                                             : a == b          ? c->node[a].intra
                                                               : &c->inter;

            if (!l || l->nominal != nominal || (a != b && !merge_gives_between (s)))
                continue;
            if (p->over_gpus)
                put_gpus (p, s, &from, a, b, i, j);
            else if (a != b)
                put (p, &from, i, j, topology_node_link (c, a, b),
                     merge_error_at (&c->inter, a, b));
        }
    if (!nominal)
        forget_failed (m, p, k);
}

static void note_conflicts (const struct merge *m, const struct merge_planes *p)
{
    char from[TOPOLOGY_PLACE_TEXT], to[TOPOLOGY_PLACE_TEXT];

    if (p->conflicts > 0)
        notes_add (
            m->notes,
            "%.0f links are in several files: %s; the largest change is %s -> %s, from "
            "%.4g to %.4g GB/s (%s)",
            p->conflicts,
            m->history ? "what their history says is used" : "the newest values are used",
            merge_end_text (m, p, p->largest.from, from),
            merge_end_text (m, p, p->largest.to, to), (double) p->largest.old,
            (double) p->largest.new, m->source[p->largest.source].name);
}

/* A plane becomes a matrix of the document. */
static enum status set_plane (const struct merge *m, json_t *object, const char *key,
                              float **v, int n)
{
    float *given = *v;

    *v = NULL;
    return topology_document_matrix (m->out, object, key, given, n, false, m->err);
}

/* Latencies as one number where they are; what nobody measured is left out of that. */
static enum status set_latency (struct merge *m, struct merge_planes *p, json_t *object)
{
    float one = NAN;
    bool same = true;

    for (size_t k = 0; k < (size_t) p->n * (size_t) p->n; k++) {
        one = isnan (one) ? p->us[k] : one;
        same = same && (isnan (p->us[k]) || p->us[k] == one);
    }
    if (!same)
        return set_plane (m, object, "latency_us", &p->us, p->n);
    json_object_set_new (
        object, "latency_us",
        json_real (isnan (one) ? TOPOLOGY_INTER_LATENCY_US : (double) one));
    return ST_OK;
}

/* Which links are still estimates. */
static enum status set_estimates (struct merge *m, struct merge_planes *p, json_t *object)
{
    bool any = false;

    for (size_t k = 0; p->error && k < (size_t) p->n * (size_t) p->n && !any; k++)
        any = !isnan (p->error[k]);
    return any ? set_plane (m, object, "estimate_error", &p->error, p->n) : ST_OK;
}

/* What all GPUs of a node reach together: of the newest file that says. */
static void set_totals (struct merge *m, json_t *object)
{
    json_t *list = json_array ();
    bool any = false;

    for (int i = 0; i < m->n_nodes; i++) {
        double total = 0;

        for (int k = 0; k < m->n; k++) {
            int node = topology_node_find (m->source[k].c, merge_name_of (m, i));

            if (node >= 0 && m->source[k].c->node[node].node_bytes_per_s > 0)
                total = m->source[k].c->node[node].node_bytes_per_s / UNITS_GB;
        }
        any = any || total > 0;
        json_array_append_new (list, total > 0 ? json_real (total) : json_null ());
    }
    if (any)
        json_object_set (object, "node_gb_per_s", list);
    json_decref (list);
}

/* One file's totals over those of older ones. */
static void put_pair_totals (const struct merge *m, const struct merge_source *s,
                             float *gb)
{
    const struct topology_cluster *c = s->c;

    for (int a = 0; a < c->n_nodes; a++)
        for (int b = 0; b < c->n_nodes; b++) {
            size_t i = (size_t) merge_place_of (m, s, a),
                   j = (size_t) merge_place_of (m, s, b);
            double x = a == b ? NAN : topology_matrix_at (&c->pair_bytes_per_s, a, b);

            if (!isnan (x))
                gb[i * (size_t) m->n_nodes + j] = (float) (x / UNITS_GB);
        }
}

/* What all GPUs of a node send to those of another together, the same. */
static enum status set_pair_totals (struct merge *m, json_t *object)
{
    float *gb = NULL;

    for (int k = 0; k < m->n; k++) {
        if (!m->source[k].c->has_pair_totals)
            continue;
        if (!gb && !(gb = topology_matrix_room (m->n_nodes)))
            return err_nomem (m->err);
        put_pair_totals (m, &m->source[k], gb);
    }
    return gb ? set_plane (m, object, "node_pair_gb_per_s", &gb, m->n_nodes) : ST_OK;
}

static enum status set_planes (struct merge *m, struct merge_planes *p, json_t *object)
{
    note_conflicts (m, p);
    keep_unknown (m, p->over_gpus ? "gpu" : "inter", object);
    TRY (set_plane (m, object, "bandwidth_gb_per_s", &p->bw, p->n));
    TRY (set_latency (m, p, object));
    TRY (set_estimates (m, p, object));
    set_totals (m, object);
    return set_pair_totals (m, object);
}

enum status merge_between (struct merge *m, json_t *links)
{
    struct merge_planes p = {0};
    json_t *object = json_object ();
    enum status st;

    for (int k = 0; k < m->n; k++)
        p.over_gpus = p.over_gpus || (merge_gives_between (&m->source[k]) &&
                                      m->source[k].c->has_gpu_links);
    st = make_planes (m, &p);
    /* Nominal rates first: an estimate is newer than they are. */
    for (int nominal = 1; nominal >= 0 && st == ST_OK; nominal--)
        for (int k = 0; k < m->n; k++)
            put_source (m, &p, k, nominal);
    THEN (st, merge_history (m, &p));
    THEN (st, set_planes (m, &p, object));
    if (st == ST_OK)
        json_object_set (links, p.over_gpus ? "gpu" : "inter", object);
    json_decref (object);
    free_planes (&p);
    return st;
}
