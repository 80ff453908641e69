#include "topology/survey/survey.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/order.h"
#include "base/units.h"

/* From here on a difference between the two directions of a link is worth a word. */
#define ASYMMETRY_NOTED 0.2
#define NAMES_MAX 5

/* @param text  released */
static void add (struct topology_inspection *out, enum topology_verdict verdict,
                 const char *what, struct text *text)
{
    if (out->n < TOPOLOGY_FINDINGS_MAX) {
        out->finding[out->n++] =
            (struct topology_finding){what, verdict, strdup (text_str (text))};
        out->failed += verdict == TOPOLOGY_FAILED;
    }
    text_free (text);
}

/* A list of names that stops after a few. */
static void add_name (struct text *t, int *n, const char *name)
{
    if (*n < NAMES_MAX)
        text_add (t, "%s%s", *n ? ", " : "", name);
    else if (*n == NAMES_MAX)
        text_add (t, ", ...");
    ++*n;
}

/* ---- nodes ---- */

static void look_at_nodes (const struct topology_cluster *c,
                           struct topology_inspection *out)
{
    struct text t = {0}, drained = {0}, open = {0};
    int n_drained = 0, n_open = 0, gpus = 0, listed = 0;

    for (int i = 0; i < c->n_nodes; i++) {
        const struct topology_node *n = &c->node[i];

        listed += n->gpus_listed;
        gpus += n->drained ? 0 : n->gpus;
        if (n->drained)
            add_name (&drained, &n_drained, n->name);
        if (n->gpus_listed == 0 || !n->type)
            add_name (&open, &n_open, n->name);
    }
    text_add (&t, "%d node%s, %d GPU%s", c->n_nodes, TEXT_S (c->n_nodes), listed,
              TEXT_S (listed));
    if (gpus != listed)
        text_add (&t, ", %d of them in use", gpus);
    if (n_drained > 0)
        text_add (&t, "; %d drained: %s", n_drained, text_str (&drained));
    add (out,
         gpus == 0       ? TOPOLOGY_FAILED
         : gpus < listed ? TOPOLOGY_NOTE
                         : TOPOLOGY_OK,
         "nodes", &t);
    if (n_open > 0) {
        text_add (&t, "%d node%s without GPUs or without a GPU type: %s", n_open,
                  TEXT_S (n_open), text_str (&open));
        add (out, TOPOLOGY_FAILED, "GPUs", &t);
    }
    text_free (&drained);
    text_free (&open);
}

/* ---- devices ---- */

struct owner {
    const char *id;
    int gpu;
};

/* Two GPUs of one identity; from a part of `owner` that is filled here. */
static void look_for_twice (const struct topology_cluster *c, struct owner *owner,
                            size_t n, const char *what, struct text *bad)
{
    char a[TOPOLOGY_END_TEXT], b[TOPOLOGY_END_TEXT];

    qsort (owner, n, sizeof *owner, order_texts);
    for (size_t k = 1; k < n; k++)
        if (strcmp (owner[k - 1].id, owner[k].id) == 0) {
            int x = owner[k - 1].gpu, y = owner[k].gpu;

            text_add (
                bad, "%s%s and %s have the %s %.40s", bad->len ? "; " : "",
                topology_end_text (c, (struct topology_end){c->node_of_gpu[x], x}, a),
                topology_end_text (c, (struct topology_end){c->node_of_gpu[y], y}, b),
                what, owner[k].id);
            return;
        }
}

/* NICs that gpu_nic names and nics does not have. */
static void look_at_nics (const struct topology_cluster *c, struct text *bad)
{
    const json_t *nodes = json_object_get (c->doc, "nodes");

    for (int i = 0; i < c->n_nodes; i++) {
        const struct topology_node *n = &c->node[i];
        const json_t *nics = json_object_get (json_array_get (nodes, (size_t) i), "nics"),
                     *nic;
        size_t k;

        for (int g = 0; n->gpu_nic && json_array_size (nics) > 0 && g < n->gpus; g++) {
            bool found = false;

            json_array_foreach (nics, k, nic)
            {
                const char *name = json_member_text (nic, "name");

                found = found || (name && strcmp (name, n->gpu_nic[g]) == 0);
            }
            if (!found) {
                text_add (bad, "%snode %s has no NIC %.40s, but its GPU %d uses it",
                          bad->len ? "; " : "", n->name, n->gpu_nic[g],
                          topology_gpu_index (c, n->first_gpu + g));
                return;
            }
        }
    }
}

static enum status look_at_devices (const struct topology_cluster *c,
                                    struct topology_inspection *out, struct error *err)
{
    struct owner *owner = malloc (((size_t) c->n_gpus + 1) * sizeof *owner);
    struct text bad = {0};
    size_t uuids = 0;

    if (!owner)
        return err_nomem (err);
    for (int i = 0; i < c->n_nodes; i++)
        for (int k = 0; c->node[i].gpu_uuid && k < c->node[i].gpus; k++)
            owner[uuids++] =
                (struct owner){c->node[i].gpu_uuid[k], c->node[i].first_gpu + k};
    look_for_twice (c, owner, uuids, "UUID", &bad);
    for (int i = 0; i < c->n_nodes && bad.len == 0; i++) {
        size_t n = 0;

        for (int k = 0; c->node[i].gpu_pci && k < c->node[i].gpus; k++)
            owner[n++] = (struct owner){c->node[i].gpu_pci[k], c->node[i].first_gpu + k};
        look_for_twice (c, owner, n, "PCI address", &bad);
    }
    look_at_nics (c, &bad);
    if (bad.len > 0)
        add (out, TOPOLOGY_FAILED, "devices", &bad);
    free (owner);
    return ST_OK;
}

static void look_at_cores (const struct topology_cluster *c,
                           struct topology_inspection *out)
{
    struct text t = {0};
    int known = 0;

    for (int i = 0; i < c->n_nodes; i++)
        known += c->node[i].gpu_cpus != NULL;
    text_add (&t, "known for the GPUs of %d of %d nodes", known, c->n_nodes);
    if (known < c->n_nodes)
        text_add (&t,
                  "; other ranks are not bound to cores (`linkwise topo` finds them)");
    add (out, known < c->n_nodes ? TOPOLOGY_NOTE : TOPOLOGY_OK, "cores", &t);
}

/* ---- links ---- */

static bool is_nominal (const struct topology_cluster *c, const struct topology_tier *t)
{
    if (c->has_gpu_matrix)
        return c->gpu_links.nominal;
    if (t->where == TOPOLOGY_BETWEEN)
        return c->inter.nominal;
    for (int i = 0; i < c->n_nodes; i++)
        if (c->node[i].intra && c->node[i].intra->nominal)
            return true;
    return false;
}

static void look_at_tier (const struct topology_cluster *c, const struct topology_tier *t,
                          struct topology_inspection *out)
{
    static const char *const words[] = {"links inside", "links between"};
    const double *q = t->quantile_bytes_per_s;
    bool nominal = is_nominal (c, t);
    struct text s = {0};
    char name[64];

    text_add (&s, "%s: %.0f links", topology_tier_text (c, t, name), t->links);
    if (q[QUANTILE_MAX] > 0)
        text_add (&s, ", %.4g / %.4g / %.4g GB/s (min / median / max)",
                  q[QUANTILE_MIN] / UNITS_GB, q[QUANTILE_50] / UNITS_GB,
                  q[QUANTILE_MAX] / UNITS_GB);
    if (nominal)
        text_add (&s, ", from data sheets: not measured");
    if (t->unmeasured > 0)
        text_add (&s, "; %.0f unmeasured", t->unmeasured);
    add (out,
         q[QUANTILE_MAX] <= 0           ? TOPOLOGY_FAILED
         : nominal || t->unmeasured > 0 ? TOPOLOGY_NOTE
                                        : TOPOLOGY_OK,
         words[t->where == TOPOLOGY_BETWEEN], &s);
}

/* What all GPUs of pairs of nodes reach together, where the cluster says it. */
static void look_at_totals (const struct topology_cluster *c,
                            struct topology_inspection *out)
{
    struct topology_totals totals;
    struct text t = {0};

    topology_totals_collect (c, &totals);
    if (totals.pairs == 0)
        return;
    text_add (&t, "all GPUs of a pair of nodes together: %.4g to %.4g GB/s",
              totals.lowest_bytes_per_s / UNITS_GB,
              totals.highest_bytes_per_s / UNITS_GB);
    if (totals.unmeasured > 0)
        text_add (&t, "; %.0f of %.0f pairs unmeasured count as the lowest",
                  totals.unmeasured, totals.pairs);
    add (out, totals.unmeasured > 0 ? TOPOLOGY_NOTE : TOPOLOGY_OK, "pairs", &t);
}

static void look_at_shape (const struct topology_cluster *c,
                           const struct topology_stats *s,
                           struct topology_inspection *out)
{
    struct text t = {0};
    char from[TOPOLOGY_END_TEXT], to[TOPOLOGY_END_TEXT];

    if (s->slow > 0 && s->n_worst > 0) {
        text_add (&t,
                  "%.0f links under %.0f %% of their tier's median; the worst is %s -> "
                  "%s with %.4g GB/s, %.0f %%",
                  s->slow, 100 * TOPOLOGY_SLOW,
                  topology_end_text (c, s->worst[0].from, from),
                  topology_end_text (c, s->worst[0].to, to),
                  s->worst[0].bytes_per_s / UNITS_GB, 100 * s->worst[0].share);
        add (out, TOPOLOGY_NOTE, "slow links", &t);
    }
    if (s->asymmetry_pairs > 0) {
        text_add (
            &t, "the two directions of a pair differ by %.1f %% (mean), at most %.1f %%",
            100 * s->asymmetry_mean, 100 * s->asymmetry_max);
        add (out, s->asymmetry_max > ASYMMETRY_NOTED ? TOPOLOGY_NOTE : TOPOLOGY_OK,
             "asymmetry", &t);
    }
}

/* Nodes that no measured link leaves or reaches. */
static void look_at_lonely (const struct topology_cluster *c,
                            const struct topology_stats *s,
                            struct topology_inspection *out)
{
    struct text t = {0}, names = {0};
    int n = 0;

    for (int i = 0; i < c->n_nodes && c->n_nodes > 1; i++)
        if (!c->node[i].drained && c->node[i].gpus > 0 &&
            (s->node[i].out_links <= 0 || s->node[i].in_links <= 0))
            add_name (&names, &n, c->node[i].name);
    if (n > 0) {
        text_add (&t, "%d node%s without a measured link in or out: %s", n, TEXT_S (n),
                  text_str (&names));
        add (out, n == c->n_nodes ? TOPOLOGY_FAILED : TOPOLOGY_NOTE, "connection", &t);
    }
    text_free (&names);
}

enum status topology_inspect (const struct topology_cluster *c,
                              const struct topology_watch *watch,
                              struct topology_inspection *out, struct error *err)
{
    struct topology_inspection x = {.n = 0};
    struct topology_stats s = {0};
    enum status st = topology_stats_collect (c, 1, watch, &s, err);

    if (st == ST_OK) {
        look_at_nodes (c, &x);
        st = look_at_devices (c, &x, err);
    }
    if (st == ST_OK) {
        for (int k = 0; k < s.n_tiers; k++)
            look_at_tier (c, &s.tier[k], &x);
        look_at_totals (c, &x);
        look_at_shape (c, &s, &x);
        look_at_lonely (c, &s, &x);
        look_at_cores (c, &x);
    }
    topology_stats_release (&s);
    for (int k = 0; k < x.n; k++)
        if (!x.finding[k].text && st == ST_OK)
            st = err_nomem (err);
    if (st == ST_OK)
        *out = x;
    else
        topology_inspection_release (&x);
    return st;
}

void topology_inspection_release (struct topology_inspection *i)
{
    for (int k = 0; k < i->n; k++)
        free (i->finding[k].text);
    *i = (struct topology_inspection){.n = 0};
}
