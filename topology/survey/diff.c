/* The snapshot that tells more links apart is walked; the other is asked for the same
 * link.  Medians of ratios come from a sample where there are very many links. */
#include "topology/survey/survey.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/stats.h"
#include "topology/links_doc.h"
#include "topology/topology_private.h"

#define RATIOS_MAX (1 << 18)

bool topology_same_cluster (const struct topology_cluster *a,
                            const struct topology_cluster *b)
{
    int shared = 0;

    for (int i = 0; i < a->n_nodes; i++) {
        int k = topology_node_find (b, a->node[i].name);

        if (k < 0)
            continue;
        shared++;
        if (a->node[i].gpus_listed != b->node[k].gpus_listed || !a->node[i].type ||
            !b->node[k].type ||
            strcmp (a->node[i].type->name, b->node[k].type->name) != 0)
            return false;
    }
    return shared > 0 && (shared == a->n_nodes || shared == b->n_nodes);
}

/* ---- intervals ---- */

/* {"n0:3>n1:2": the pair's isolated_gb_per_s}; "n0>n1" where nodes took part with one
 * GPU.  A new reference. */
static json_t *intervals_of (const struct topology_cluster *c)
{
    json_t *measured = json_object_get (c->doc, "measured"), *pair, *end,
           *seen = json_object (), *map = json_object ();
    bool single = false;
    size_t k;

    json_array_foreach (json_object_get (measured, "endpoints"), k, end)
    {
        const char *node = json_member_text (end, "node");

        if (node && json_object_get (seen, node))
            single = true;
        else if (node)
            json_object_set_new (seen, node, json_true ());
    }
    json_array_foreach (json_object_get (measured, "pairs"), k, pair)
    {
        const char *const sides[] = {"src", "dst"};
        json_t *spread = json_object_get (pair, "isolated_gb_per_s");
        struct text key = {0};

        for (int s = 0; s < 2; s++) {
            const json_t *at = topology_measured_end (measured, pair, sides[s]);
            const char *node = json_member_text (at, "node");

            text_add (&key, single ? "%s%s:%d" : "%s%s", s ? ">" : "", node ? node : "",
                      (int) json_member_int (at, "gpu"));
        }
        if (json_is_number (json_object_get (spread, "low")) &&
            json_is_number (json_object_get (spread, "high")))
            json_object_set (map, text_str (&key), spread);
        text_free (&key);
    }
    json_decref (seen);
    return map;
}

static bool interval (const json_t *map, const struct topology_cluster *c,
                      struct topology_end from, struct topology_end to, double *low,
                      double *high)
{
    char a[TOPOLOGY_END_TEXT], b[TOPOLOGY_END_TEXT], key[2 * TOPOLOGY_END_TEXT];
    const json_t *spread = NULL;

    for (int whole = 0; whole < 2 && !spread && json_object_size (map) > 0; whole++) {
        snprintf (key, sizeof key, "%s>%s", topology_end_text (c, from, a),
                  topology_end_text (c, to, b));
        spread = json_object_get (map, key);
        from.gpu = to.gpu = -1;
    }
    if (!spread)
        return false;
    *low = json_member_number (spread, "low");
    *high = json_member_number (spread, "high");
    return true;
}

/* ---- going through the links ---- */

struct walk {
    const struct topology_cluster *a, *b; /* before, after */
    bool walks_b;                         /* the links visited are b's */
    int *other_node; /* [n_nodes] of the one visited: in the other one, or -1 */
    json_t *interval_a, *interval_b;
    double share;
    int most;
    struct topology_diff *out;
    double *ratio; /* [n_ratios] a sample */
    int n_ratios;
    double seen;
    struct rng rng;
};

/* The same end of a link visited in the other cluster. */
static bool find_end (const struct walk *w, struct topology_end e,
                      struct topology_end *out)
{
    const struct topology_cluster *here = w->walks_b ? w->b : w->a,
                                  *there = w->walks_b ? w->a : w->b;
    int node = w->other_node[e.node];

    *out = (struct topology_end){node, -1};
    if (node >= 0 && e.gpu >= 0)
        out->gpu = topology_gpu_find (there, node, topology_gpu_index (here, e.gpu));
    return node >= 0 && (e.gpu < 0 || out->gpu >= 0);
}

/* A link as it was given; an end that names a node stands for its first GPU. */
static struct topology_link given (const struct topology_cluster *c,
                                   struct topology_end from, struct topology_end to)
{
    int src = from.gpu >= 0 ? from.gpu : c->node[from.node].first_gpu;
    int dst = to.gpu >= 0 ? to.gpu
                          : c->node[to.node].first_gpu + (from.node == to.node ? 1 : 0);
    struct topology_link l;

    if (c->node[from.node].gpus < 1 ||
        c->node[to.node].gpus < (from.node == to.node ? 2 : 1))
        return (struct topology_link){0};
    if (from.node != to.node ? !c->has_inter && !c->has_gpu_matrix
                             : !c->node[from.node].intra && !c->has_gpu_matrix)
        return (struct topology_link){0};
    l = topology_link_given (c, src, dst);
    /* An estimate tells nothing about what became of a link. */
    l.measured = l.measured && !(c->has_estimates &&
                                 !isnan (topology_link_estimate_error (c, src, dst)));
    return l;
}

static double size_of (const struct topology_change *x)
{
    return fabs (log (x->new_bytes_per_s / x->old_bytes_per_s));
}

/* Keep the list of the largest changes sorted; it is short. */
static void insert (struct walk *w, struct topology_change x)
{
    struct topology_diff *out = w->out;
    int k = out->n;

    if (k == w->most) {
        if (k == 0 || size_of (&x) <= size_of (&out->change[k - 1]))
            return;
        k--;
    } else
        out->n++;
    for (; k > 0 && size_of (&out->change[k - 1]) < size_of (&x); k--)
        out->change[k] = out->change[k - 1];
    out->change[k] = x;
}

static void sample (struct walk *w, double ratio)
{
    w->seen++;
    if (w->n_ratios < RATIOS_MAX)
        w->ratio[w->n_ratios++] = ratio;
    else if (rng_unit (&w->rng) < RATIOS_MAX / w->seen)
        w->ratio[rng_below (&w->rng, RATIOS_MAX)] = ratio;
}

static void compare (struct walk *w, struct topology_end from_a, struct topology_end to_a,
                     struct topology_end from_b, struct topology_end to_b, double alike)
{
    struct topology_link x = given (w->a, from_a, to_a), y = given (w->b, from_b, to_b);
    double low_a, high_a, low_b, high_b, ratio;
    struct topology_change change = {from_a, to_a, x.bytes_per_s, y.bytes_per_s, false};

    if (!x.measured || !y.measured) {
        w->out->appeared += y.measured ? alike : 0;
        w->out->vanished += x.measured ? alike : 0;
        return;
    }
    ratio = y.bytes_per_s / x.bytes_per_s;
    w->out->compared += alike;
    sample (w, ratio);
    if (interval (w->interval_a, w->a, from_a, to_a, &low_a, &high_a) &&
        interval (w->interval_b, w->b, from_b, to_b, &low_b, &high_b)) {
        w->out->with_intervals += alike;
        change.by_interval = true;
        if (low_b <= high_a && low_a <= high_b)
            return;
    } else if (fabs (ratio - 1) <= w->share)
        return;
    *(ratio < 1 ? &w->out->slower : &w->out->faster) += alike;
    insert (w, change);
}

static void visit (void *context, const struct topology_visited *v)
{
    struct walk *w = context;
    struct topology_end from, to; /* in the other cluster */

    if (!find_end (w, v->from, &from) || !find_end (w, v->to, &to))
        return;
    if (w->walks_b)
        compare (w, from, to, v->from, v->to, v->alike);
    else
        compare (w, v->from, v->to, from, to, v->alike);
}

/* How finely a cluster tells its links apart. */
static int detail (const struct topology_cluster *c)
{
    return c->has_gpu_links ? 2 : c->has_inter && c->inter.bytes_per_s.n > 0 ? 1 : 0;
}

static int missing (const struct topology_cluster *a, const struct topology_cluster *b)
{
    int n = 0;

    for (int i = 0; i < a->n_nodes; i++)
        n += topology_node_find (b, a->node[i].name) < 0;
    return n;
}

enum status topology_diff_collect (const struct topology_cluster *a,
                                   const struct topology_cluster *b, double share,
                                   int most, struct topology_diff *out, struct error *err)
{
    struct topology_diff d = {.median_ratio = 1};
    struct walk w = {.a = a,
                     .b = b,
                     .walks_b = detail (b) > detail (a),
                     .interval_a = intervals_of (a),
                     .interval_b = intervals_of (b),
                     .share = share,
                     .most = most,
                     .out = &d,
                     .ratio = malloc (RATIOS_MAX * sizeof *w.ratio),
                     .rng = {1}};
    const struct topology_cluster *here = w.walks_b ? b : a;
    enum status st = ST_OK;

    d.change = calloc ((size_t) most + 1, sizeof *d.change);
    w.other_node = calloc ((size_t) here->n_nodes, sizeof *w.other_node);
    for (int i = 0; w.other_node && i < here->n_nodes; i++)
        w.other_node[i] = topology_node_find (w.walks_b ? a : b, here->node[i].name);
    if (!w.interval_a || !w.interval_b || !w.ratio || !d.change || !w.other_node) {
        st = err_nomem (err);
    } else {
        topology_links_visit (here, visit, &w, NULL);
        if (w.n_ratios > 0)
            d.median_ratio = stats_median (w.ratio, w.n_ratios);
        d.nodes_gone = missing (a, b);
        d.nodes_new = missing (b, a);
    }
    JSON_DECREF_ALL (w.interval_a, w.interval_b);
    free (w.ratio);
    free (w.other_node);
    if (st == ST_OK)
        *out = d;
    else
        topology_diff_release (&d);
    return st;
}

void topology_diff_release (struct topology_diff *d)
{
    free (d->change);
    *d = (struct topology_diff){0};
}
