/* What a person, a batch script and the links file are told of a preflight. */
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/stats.h"
#include "base/units.h"
#include "bwprobe/preflight.h"
#include "topology/links_doc.h"

enum { WORST_MAX = 12 };

static double part_of (const struct preflight_hop *h)
{
    return h->got / h->expected;
}

static const char *verdict_of (const struct coordinator *c, const struct preflight_hop *h)
{
    for (int end = 0; end < 2; end++) {
        int rank = end ? h->dst : h->src, at = c->preflight->end[rank];

        if (at < 0 || !coordinator_alive (c, at))
            return end ? "the destination is not there" : "the source is not there";
    }
    if (h->looked && h->verdict == VERDICT_MOMENT)
        return "alone it is fine";
    return results_verdict_text (h->verdict);
}

/* "h3/1" */
static void add_name (const struct preflight *p, int rank, struct text *t)
{
    const struct groups *g = p->groups;

    text_add (t, "%s/%d", g->cluster->node[groups_node (g, rank)].name,
              topology_gpu_index (g->cluster, g->gpu[rank]));
}

/* ---- by kind ---- */

static void print_kinds (const struct preflight *p, FILE *out)
{
    struct table *t = TABLE_OF ("<groups", "number", "ranks", "hops", "measured", "below",
                                "median %", "least %");

    for (int k = 0; k < GROUPS_KINDS && t; k++) {
        const struct groups_part *part = &p->groups->part[k];
        double *v = malloc ((2 * (size_t) part->n + 1) * sizeof *v), least = INFINITY;
        int n = 0, tried = 0, below = 0;

        for (int i = 0; i < 2 * part->n && v; i++) {
            const struct preflight_hop *h = &p->of[k][i];

            tried += h->tried;
            below += preflight_falls_short (h);
            if (h->tried && h->expected > 0)
                least = fmin (least, v[n++] = part_of (h));
        }
        if (part->n > 0) {
            table_cell (t, "%s", groups_name (k));
            table_cell (t, "%d", p->groups->ranks / part->size);
            table_cell (t, "%d", part->size);
            table_cell (t, "%d", 2 * part->n);
            table_cell (t, "%d", tried);
            table_cell (t, "%d", below);
            table_cell (t, n > 0 ? "%.0f" : "-", 100 * stats_median (v, n));
            table_cell (t, n > 0 ? "%.0f" : "-", 100 * least);
        }
        free (v);
    }
    table_end (t, out);
}

/* ---- the worst ---- */

static int by_part (const void *a, const void *b)
{
    const struct preflight_hop *x = *(const struct preflight_hop *const *) a,
                               *y = *(const struct preflight_hop *const *) b;

    if (part_of (x) != part_of (y))
        return part_of (x) < part_of (y) ? -1 : 1;
    return x->src != y->src ? x->src - y->src : x->dst - y->dst;
}

/* What falls short, the worst first.  @return [n] to be freed; NULL: out of memory */
static const struct preflight_hop **find_short (const struct preflight *p, long *n)
{
    const struct preflight_hop **list = malloc (((size_t) p->below + 1) * sizeof *list);

    *n = 0;
    for (long i = 0; i < p->hops && list; i++)
        if (preflight_falls_short (&p->hop[i]))
            list[(*n)++] = &p->hop[i];
    if (*n > 0)
        qsort (list, (size_t) *n, sizeof *list, by_part);
    return list;
}

static void print_worst (const struct coordinator *c, FILE *out)
{
    const struct preflight *p = c->preflight;
    struct table *t =
        TABLE_OF ("<hop", "<groups", "GB/s", "expected", "%", "alone GB/s", "<");
    long n;
    const struct preflight_hop **list = find_short (p, &n);

    for (long i = 0; i < n && i < WORST_MAX && t; i++) {
        const struct preflight_hop *h = list[i];
        const char *verdict = verdict_of (c, h);
        struct text name = {0};

        add_name (p, h->src, &name);
        text_add (&name, " -> ");
        add_name (p, h->dst, &name);
        table_cell (t, "%s", text_str (&name));
        table_cell (t, "%s", groups_name (h->kind));
        table_cell (t, "%.4g", h->got / UNITS_GB);
        table_cell (t, "%.4g", h->expected / UNITS_GB);
        table_cell (t, "%.0f", 100 * part_of (h));
        table_number (t, "%.4g", h->looked ? h->alone / UNITS_GB : NAN);
        table_cell (t, "%s", verdict ? verdict : "");
        text_free (&name);
    }
    fprintf (out,
             "\n%ld of %ld hops are below %.0f %% of what the plan was priced with%s\n",
             p->below, p->tried, 100 * PREFLIGHT_PART,
             p->below > WORST_MAX ? "; the worst:" : ":");
    table_end (t, out);
    free (list);
}

static void print_faults (const struct preflight *p, FILE *out)
{
    fputc ('\n', out);
    if (p->mostly)
        fprintf (out,
                 "nearly all hops fall short: no node is at fault.  Were the cluster's "
                 "links measured over another transport or network?\n");
    for (int i = 0; i < p->n_faults; i++) {
        const struct preflight_fault *f = &p->fault[i];

        fprintf (out, "replace %s", p->groups->cluster->node[f->node].name);
        if (f->rank >= 0)
            fprintf (out, " (GPU %d alone falls short)",
                     topology_gpu_index (p->groups->cluster, p->groups->gpu[f->rank]));
        fputc ('\n', out);
    }
}

void preflight_report (const struct coordinator *c, FILE *out)
{
    const struct preflight *p = c->preflight;

    print_kinds (p, out);
    if (p->below > 0) {
        print_worst (c, out);
        print_faults (p, out);
    } else {
        fprintf (
            out,
            "\nall %ld hops reach %.0f %% or more of what the plan was priced with\n",
            p->tried, 100 * PREFLIGHT_PART);
    }
    if (p->tried < p->hops)
        fprintf (out, "%ld hops did not fit into the budget of %g s\n",
                 p->hops - p->tried, c->set.budget_s);
}

/* ---- --dry-run ---- */

void preflight_report_plan (const struct coordinator *c, FILE *out)
{
    const struct preflight *p = c->preflight;
    struct table *t = TABLE_OF ("<groups", "number", "ranks", "hops", "rounds", "s");

    for (int k = 0; k < GROUPS_KINDS && t; k++) {
        const struct groups_part *part = &p->groups->part[k];

        if (part->n == 0)
            continue;
        table_cell (t, "%s", groups_name (k));
        table_cell (t, "%d", p->groups->ranks / part->size);
        table_cell (t, "%d", part->size);
        table_cell (t, "%d", 2 * part->n);
        table_cell (t, "%d", part->rounds);
        table_cell (t, "%.1f", part->rounds * c->timing.together_s);
    }
    table_end (t, out);
    fprintf (out, "expected time %.0f s of %g s for one pass over %s\n", c->plan.seconds,
             c->set.budget_s, c->transport->name);
}

/* ---- the links file ---- */

json_t *preflight_json (const struct coordinator *c)
{
    const struct preflight *p = c->preflight;
    json_t *list = json_array (), *replace = json_array ();
    long n;
    const struct preflight_hop **worst = find_short (p, &n);

    for (long i = 0; i < n; i++) {
        const struct preflight_hop *h = worst[i];
        const char *verdict = verdict_of (c, h);

        json_array_append_new (
            list,
            json_pack ("{s:s, s:i, s:i, s:o, s:o, s:o, s:s*}", "groups",
                       groups_name (h->kind), "src_rank", h->src, "dst_rank", h->dst,
                       "gb_per_s", topology_links_number (h->got / UNITS_GB),
                       "expected_gb_per_s",
                       topology_links_number (h->expected / UNITS_GB), "alone_gb_per_s",
                       topology_links_number (h->looked ? h->alone / UNITS_GB : NAN),
                       "verdict", verdict));
    }
    free (worst);
    for (int i = 0; i < p->n_faults; i++)
        json_array_append_new (
            replace, json_string (p->groups->cluster->node[p->fault[i].node].name));
    return json_pack ("{s:s, s:f, s:I, s:I, s:o, s:o}", "plan", file_title (c->set.plan),
                      "part", PREFLIGHT_PART, "hops", (json_int_t) p->hops, "measured",
                      (json_int_t) p->tried, "short", list, "replace", replace);
}
