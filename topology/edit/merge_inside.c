/* The links inside the nodes of merged files: the newest file's, the gaps of its matrix filled by
 * older ones; where several files measured a link, their history decides (history.c). */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/units.h"
#include "topology/edit/merge_private.h"
#include "topology/links_doc.h"

/* A file about one node: its GPU matrix is the links inside. */
static bool inside_only (const struct merge_source *s)
{
    return s->c->has_gpu_matrix && s->c->n_nodes == 1;
}

/* A source's links inside one of its nodes as an `intra` object, or NULL. */
static json_t *intra_of (const struct merge_source *s, int node)
{
    json_t *links = json_object_get (s->doc, "links"),
           *intra = json_object_get (links, "intra");

    if (inside_only (s)) {
        json_t *copy = topology_cluster_to_json (s->c), *gpu;

        gpu = json_incref (json_object_get (json_object_get (copy, "links"), "gpu"));
        json_object_del (gpu, "node_gb_per_s");
        json_decref (copy);
        return gpu;
    }
    if (json_is_array (intra))
        intra = json_array_get (intra, (size_t) node);
    return json_is_object (intra) && s->c->node[node].gpus > 1 ? json_deep_copy (intra)
                                                               : NULL;
}

/* Whether a bandwidth leaves pairs open, or has estimates of some. */
static bool has_gaps (const struct topology_links *l, int gpus)
{
    for (int i = 0; i < gpus; i++)
        for (int j = 0; j < gpus; j++)
            if (i != j && (isnan (topology_matrix_at (&l->bytes_per_s, i, j)) ||
                           !isnan (merge_error_at (l, i, j))))
                return true;
    return false;
}

/* A file's links inside its node of that number with so many GPUs, or NULL. */
static const struct topology_links *inside_links (const struct merge_source *s, int node,
                                                  int gpus)
{
    if (node < 0 || s->c->node[node].gpus != gpus)
        return NULL;
    return inside_only (s) ? &s->c->gpu_links : s->c->node[node].intra;
}

/* Who knows best what a link inside a node gives. */
enum { KNOWN_MEASURED, KNOWN_ESTIMATED, KNOWN_NOMINAL, KNOWN_KINDS };

/* One node, and its links in all files. */
struct inside {
    struct merge *m;
    int at, gpus; /* of the merged nodes */
    int *node;    /* [m->n] its number in each file, -1: none */
    bool uniform; /* no file tells its pairs apart, and no counter accuses one */
    bool timed;   /* every measurement has a time */
    bool slow;    /* most of its links are low in their newest measurement */
    bool changed; /* several measurements come to another rate than the newest */
    struct history_sample *s, *work; /* [m->n], [2 m->n] */
};

/* Since when counters accuse the NVLinks of one of the two GPUs, as merge_weigh has it. */
static double accused_since (const struct inside *x, int i, int j)
{
    double since = x->slow ? INFINITY : NAN;

    for (int k = 0; k < x->m->n_accused; k++) {
        const struct merge_accused *a = &x->m->accused[k];

        if (a->node == x->at && a->gpu >= 0 && (a->gpu == i || a->gpu == j))
            since = fmin (since, a->since_s); /* fmin passes NaN over */
    }
    return since;
}

/* What a file measured, GB/s; NaN: it did not. */
static double measured_entry (const struct inside *x, int k, int i, int j)
{
    const struct topology_links *l = inside_links (&x->m->source[k], x->node[k], x->gpus);

    return l && !l->nominal && isnan (merge_error_at (l, i, j))
               ? topology_matrix_at (&l->bytes_per_s, i, j) / UNITS_GB
               : NAN;
}

/* What several measurements of i -> j come to, accused since then or not (NaN); false: there are
 * fewer than two, or no times. */
static bool weigh (struct inside *x, int i, int j, double since,
                   struct history_finding *f)
{
    int n = 0;

    if (!x->timed || x->m->half_life_s <= 0)
        return false;
    for (int k = 0; k < x->m->n; k++) {
        double rate = measured_entry (x, k, i, j);

        if (!isnan (rate))
            x->s[n++] = merge_sample (&x->m->source[k], rate);
    }
    return merge_weigh (x->m, x->s, n, since, x->work, f);
}

/* Entry i -> j of the newest file that knows it; measured before estimated before nominal.
 * @param[out] error  of an estimate, NaN else */
static json_t *entry (struct inside *x, int i, int j, double *error)
{
    const struct merge *m = x->m;
    struct history_finding f;

    *error = NAN;
    if (weigh (x, i, j, accused_since (x, i, j), &f))
        return json_real (f.e.rate);
    for (int kind = 0; kind < KNOWN_KINDS; kind++)
        for (int k = m->n - 1; k >= 0; k--) {
            const struct topology_links *l =
                inside_links (&m->source[k], x->node[k], x->gpus);
            double rate, e;

            if (!l)
                continue;
            rate = topology_matrix_at (&l->bytes_per_s, i, j);
            e = merge_error_at (l, i, j);
            if (isnan (rate) || kind != (l->nominal  ? KNOWN_NOMINAL
                                         : isnan (e) ? KNOWN_MEASURED
                                                     : KNOWN_ESTIMATED))
                continue;
            *error = e;
            return json_real (rate / UNITS_GB);
        }
    return json_null ();
}

/* A node's matrix, its gaps filled by other files. */
static void fill (struct inside *x, json_t *intra)
{
    json_t *rows = json_array (), *errors = json_array ();
    bool any = false;

    for (int i = 0; i < x->gpus; i++)
        for (int j = 0; j < x->gpus; j++) {
            double error = NAN;

            json_array_append_new (json_row_in (rows, i),
                                   i == j ? json_null () : entry (x, i, j, &error));
            json_array_append_new (json_row_in (errors, i), json_number_or_null (error));
            any = any || !isnan (error);
        }
    json_object_set_new (intra, "bandwidth_gb_per_s", rows);
    if (any)
        json_object_set (intra, "estimate_error", errors);
    else
        json_object_del (intra, "estimate_error");
    json_decref (errors);
}

/* Other traffic does not slow most links of one node at once.  One number is of all of them. */
static bool is_slow (struct inside *x)
{
    struct history_finding f;
    int seen = 0, low = 0;

    for (int i = 0; i < x->gpus && (i < 1 || !x->uniform); i++)
        for (int j = 0; j < x->gpus && (j < 2 || !x->uniform); j++) {
            if (i == j || !weigh (x, i, j, NAN, &f))
                continue;
            seen++;
            low += f.e.why == HISTORY_COLLISION;
        }
    return 2 * low > seen && x->gpus * (x->gpus - 1) >= MERGE_LINKS_MIN;
}

/* Looks whether several measurements come to another rate than the newest, and tells. */
static void see (struct inside *x)
{
    char from[TOPOLOGY_PLACE_TEXT], to[TOPOLOGY_PLACE_TEXT];
    const char *name = merge_name_of (x->m, x->at);
    struct history_finding f;

    x->slow = is_slow (x);
    for (int i = 0; i < x->gpus && (i < 1 || !x->uniform); i++)
        for (int j = 0; j < x->gpus && (j < 2 || !x->uniform); j++) {
            if (i == j || !weigh (x, i, j, accused_since (x, i, j), &f))
                continue;
            x->changed = x->changed || f.e.why != HISTORY_NEWEST;
            merge_history_inside (
                x->m, topology_place_text (name, x->uniform ? -1 : i, from),
                topology_place_text (name, x->uniform ? -1 : j, to), &f);
        }
}

/* The newest file's links inside the node as they stand: measured before nominal.
 * @param[out] known  in how many files they are */
static int newest (struct inside *x, int *known)
{
    const struct topology_links *l, *best = NULL;
    int at = -1;

    *known = 0;
    for (int k = 0; k < x->m->n; k++) {
        const struct merge_source *s = &x->m->source[k];

        x->node[k] = topology_node_find (s->c, merge_name_of (x->m, x->at));
        l = inside_links (s, x->node[k], x->gpus);
        if (!l || x->gpus < 2)
            continue;
        ++*known;
        x->uniform = x->uniform && l->bytes_per_s.n == 0;
        x->timed = x->timed && (l->nominal || !isnan (s->when));
        if (!best || !l->nominal || best->nominal) {
            best = l;
            at = k;
        }
    }
    for (int k = 0; k < x->m->n_accused; k++)
        x->uniform =
            x->uniform && !(x->m->accused[k].node == x->at && x->m->accused[k].gpu >= 0);
    return at;
}

/* One node's `intra`: the newest file's, the gaps of its matrix filled by older ones, and what
 * several of them measured weighed. */
static json_t *merge_intra (struct inside *x)
{
    int known, at = newest (x, &known);
    struct history_finding f;
    json_t *intra;

    if (at < 0 || !(intra = intra_of (&x->m->source[at], x->node[at])))
        return NULL;
    if (known > 1)
        see (x);
    if (x->changed && x->uniform && weigh (x, 0, 1, accused_since (x, 0, 1), &f))
        json_object_set_new (intra, "bandwidth_gb_per_s", json_real (f.e.rate));
    else if (x->changed ||
             (known > 1 &&
              has_gaps (inside_links (&x->m->source[at], x->node[at], x->gpus), x->gpus)))
        fill (x, intra);
    return intra;
}

enum status merge_inside (struct merge *m, json_t *links)
{
    size_t n = (size_t) m->n + 1;
    json_t *list = json_array ();
    struct inside x = {.m = m,
                       .node = calloc (n, sizeof *x.node),
                       .s = calloc (n, sizeof *x.s),
                       .work = calloc (2 * n, sizeof *x.work)};
    enum status st = x.node && x.s && x.work && list ? ST_OK : err_nomem (m->err);
    bool any = false;

    for (int i = 0; i < m->n_nodes && st == ST_OK; i++) {
        json_t *one;

        x.at = i;
        x.gpus = merge_gpus_of (m, i);
        x.uniform = x.timed = true;
        x.changed = x.slow = false;
        one = merge_intra (&x);
        any = any || one;
        json_array_append_new (list, one ? one : json_null ());
    }
    if (any)
        json_object_set_new (links, "intra", topology_intra_short (list));
    else
        json_decref (list);
    FREE_ALL (x.node, x.s, x.work);
    return st;
}
