/* What a person reads at the end: a heat map, a line for each kind of link, the worst ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bwprobe/preflight.h"

enum { MAP_MAX = 64, WORST_MAX = 12, NAME_SHOWN = 14 };

/* Part of the kind's median, the sign in the map, and its colour (256-colour background). */
static const struct {
    double from;
    char sign;
    int color;
} shades[] = {
    {0.97, '#', 22}, {0.9, '+', 28}, {0.7, 'o', 100}, {0.4, '-', 130}, {0, '.', 88}};
enum { SHADES = sizeof shades / sizeof *shades };

static FILE *out_file (const struct coordinator *c)
{
    return strcmp (c->set.output, "-") == 0 ? stderr : stdout;
}

/* ---- the heat map ---- */

/* One cell stands for a pair of endpoints, or of nodes, or of groups of nodes. */
struct cell {
    double worst; /* lowest part of its kind's median; NaN: not measured */
    bool failed;
};

/* Groups of endpoints that make at most MAP_MAX rows: each endpoint, each node, or several
 * nodes together.  @return rows; @param[out] group [n] */
static int make_groups (const struct coordinator *c, int *group, int *nodes_each)
{
    *nodes_each = 0;
    if (c->shape.n <= MAP_MAX) {
        for (int i = 0; i < c->shape.n; i++)
            group[i] = i;
        return c->shape.n;
    }
    *nodes_each = (c->shape.nodes + MAP_MAX - 1) / MAP_MAX;
    for (int i = 0; i < c->shape.n; i++)
        group[i] = c->end[i].node / *nodes_each;
    return (c->shape.nodes + *nodes_each - 1) / *nodes_each;
}

static struct cell *fill_cells (const struct coordinator *c,
                                const struct estimate_tier *tier, const int *group,
                                int rows)
{
    struct cell *cell = malloc ((size_t) rows * (size_t) rows * sizeof *cell);

    for (int i = 0; i < rows * rows && cell; i++)
        cell[i] = (struct cell){NAN, false};
    for (size_t i = 0; i < c->results.n && cell; i++) {
        const struct results_pair *p = &c->results.pair[i];
        struct cell *x = &cell[group[p->src] * rows + group[p->dst]];
        double part = estimate_part (c, tier, p);

        if (isfinite (part))
            x->worst = isnan (x->worst) ? part : fmin (x->worst, part);
        else if (p->failures > 0)
            x->failed = true;
    }
    return cell;
}

static void print_cell (const struct coordinator *c, FILE *out, const struct cell *x,
                        bool diagonal)
{
    int k = 0;

    if (x->failed) {
        fputs (c->set.color ? "\033[48;5;196mX\033[0m" : "X", out);
    } else if (isnan (x->worst)) {
        fputc (diagonal ? '\\' : ' ', out);
    } else {
        while (k < SHADES - 1 && x->worst < shades[k].from)
            k++;
        if (c->set.color)
            fprintf (out, "\033[48;5;%dm%c\033[0m", shades[k].color, shades[k].sign);
        else
            fputc (shades[k].sign, out);
    }
}

static void print_map (const struct coordinator *c, const struct estimate_tier *tier)
{
    FILE *out = out_file (c);
    int *group = malloc ((size_t) c->shape.n * sizeof *group), each, rows;
    struct cell *cell;

    if (!group)
        return;
    rows = make_groups (c, group, &each);
    cell = fill_cells (c, tier, group, rows);
    if (each > 1)
        fprintf (out, "a cell is the worst link between two groups of %d nodes\n", each);
    else if (each == 1)
        fprintf (out, "a cell is the worst link between two nodes\n");
    for (int i = 0; i < rows && cell; i++) {
        const char *name = each == 0 ? c->end[i].name : c->node[i * each].name;

        fprintf (out, "%*.*s ", NAME_SHOWN, NAME_SHOWN, name);
        for (int j = 0; j < rows; j++)
            print_cell (c, out, &cell[i * rows + j], i == j);
        fputc ('\n', out);
    }
    fprintf (out,
             "from row to column, part of the median of its kind: # 97 %% or more, + 90, "
             "o 70, - 40, . less, X failed\n\n");
    free (cell);
    free (group);
}

/* ---- kinds of links ---- */

static double lowest (const struct coordinator *c, int tier, double *amid_part)
{
    size_t n = c->results.n;
    double *ratio = malloc ((n + 1) * sizeof *ratio), low = NAN;
    int k = 0;

    for (size_t i = 0; i < n && ratio; i++) {
        const struct results_pair *p = &c->results.pair[i];
        double x = results_median (p, RESULTS_ALONE),
               amid = results_median (p, RESULTS_TOGETHER);

        if (estimate_tier_of (c, p->src, p->dst) != tier || !isfinite (x))
            continue;
        low = isnan (low) ? x : fmin (low, x);
        if (isfinite (amid))
            ratio[k++] = amid / x;
    }
    *amid_part = stats_median (ratio, k);
    free (ratio);
    return low;
}

/* Nine of ten held-out links came so near to what the model that is used says of them. */
static double error_of (const struct estimate_tier *tier)
{
    double low = 0, error = NAN;

    for (int m = 0; m < ESTIMATE_MODELS; m++) {
        const struct models_trial *t = &tier->model[m].trial;

        if (t->accepted && t->low > low) {
            low = t->low;
            error = t->error_p90;
        }
    }
    return error;
}

static void print_tiers (const struct coordinator *c, const struct estimate_tier *tier)
{
    struct table *t = TABLE_OF ("<links", "measured", "median GB/s", "lowest GB/s",
                                "together %", "estimated", "within %", "unknown");

    for (int k = 0; k < ESTIMATE_TIERS && t; k++) {
        double amid, low = lowest (c, k, &amid);

        if (tier[k].measured + tier[k].unmeasured == 0)
            continue;
        table_cell (t, "%s", tier[k].name);
        table_cell (t, "%ld", tier[k].measured);
        table_number (t, "%.4g", tier[k].median_bytes_per_s / UNITS_GB);
        table_number (t, "%.4g", low / UNITS_GB);
        table_number (t, "%.0f", amid / 0.01);
        table_cell (t, "%ld", tier[k].estimated);
        table_number (t, "%.2g",
                      tier[k].estimated > 0 ? error_of (&tier[k]) / 0.01 : NAN);
        table_cell (t, "%ld", tier[k].unmeasured - tier[k].estimated);
    }
    table_end (t, out_file (c));
}

/* ---- the worst links ---- */

struct bad {
    const struct results_pair *p;
    double part; /* of its kind's median; -1: failed */
};

static int by_part (const void *a, const void *b)
{
    const struct bad *x = a, *y = b;

    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return x->p->src != y->p->src ? x->p->src - y->p->src : x->p->dst - y->p->dst;
}

static void print_bad (const struct coordinator *c, const struct bad *bad, int n)
{
    struct table *t = TABLE_OF ("<link", "GB/s", "% of median", "together GB/s",
                                "latency us", "samples", "<");

    for (int i = 0; i < n && t; i++) {
        const struct results_pair *p = bad[i].p;
        const char *verdict = results_verdict_text ((enum results_verdict) p->verdict);
        bool failed = bad[i].part < 0;

        table_cell (t, "%s -> %s", c->end[p->src].name, c->end[p->dst].name);
        table_number (t, "%.4g", results_median (p, RESULTS_ALONE) / UNITS_GB);
        table_number (t, "%.0f", failed ? NAN : bad[i].part / 0.01);
        table_number (t, "%.4g", results_median (p, RESULTS_TOGETHER) / UNITS_GB);
        table_number (t, "%.1f", results_median (p, RESULTS_LATENCY) / UNITS_US);
        table_cell (t, "%d", p->n[RESULTS_ALONE]);
        if (failed)
            table_cell (t, "failed: %s%s%s", p->reason ? p->reason : "",
                        verdict ? "; " : "", verdict ? verdict : "");
        else
            table_cell (t, "%s", verdict ? verdict : "");
    }
    table_end (t, out_file (c));
}

static void print_worst (const struct coordinator *c, const struct estimate_tier *tier)
{
    size_t n = c->results.n;
    struct bad *bad = malloc ((n + 1) * sizeof *bad);
    int k = 0;

    for (size_t i = 0; i < n && bad; i++) {
        const struct results_pair *p = &c->results.pair[i];
        double part = estimate_part (c, tier, p);

        if (p->failures > 0 && !isfinite (part))
            part = -1;
        if (part < shades[1].from)
            bad[k++] = (struct bad){p, part};
    }
    if (k > 0) {
        qsort (bad, (size_t) k, sizeof *bad, by_part);
        fprintf (out_file (c),
                 "\n%d links are below %.0f %% of the median of their kind or failed%s\n",
                 k, 100 * shades[1].from, k > WORST_MAX ? "; the worst:" : ":");
        print_bad (c, bad, k < WORST_MAX ? k : WORST_MAX);
    } else {
        fprintf (out_file (c), "\nno link is below %.0f %% of the median of its kind\n",
                 100 * shades[1].from);
    }
    free (bad);
}

static double best_attention (const struct msg_computed *m)
{
    double best = NAN;

    for (uint32_t i = 0; i < m->n_attention; i++)
        best = fmax (best, m->attention[i].flop_per_s);
    return best;
}

/* The fastest product in each precision, and what else was measured of the GPUs. */
static void print_compute (const struct coordinator *c)
{
    static const char *const precisions[] = {"bf16", "fp16", "fp8", "tf32", "fp32"},
                             *const header[] = {
                                 "<GPU", "bf16 TFLOP/s", "fp16",      "fp8",       "tf32",
                                 "fp32", "attention",    "copy GB/s", "launch us", NULL};
    struct table *t = NULL;

    for (int i = 0; i < c->shape.n; i++) {
        const struct endpoint *e = &c->end[i];

        if (!e->has_computed || (!t && !(t = table_create (header))))
            continue;
        table_cell (t, "%s", e->name);
        for (size_t k = 0; k < sizeof precisions / sizeof *precisions; k++) {
            double best = NAN;

            for (uint32_t p = 0; p < e->computed.n_products; p++)
                if (strcmp (e->computed.product[p].precision, precisions[k]) == 0)
                    best = fmax (best, e->computed.product[p].flop_per_s);
            table_number (t, "%.1f", best / 1e12);
        }
        table_number (t, "%.1f", best_attention (&e->computed) / 1e12);
        table_number (t, "%.0f", e->computed.copy_bytes_per_s / UNITS_GB);
        table_number (t, "%.2f",
                      e->computed.launch_s > 0 ? e->computed.launch_s / UNITS_US : NAN);
    }
    if (t) {
        fputc ('\n', out_file (c));
        table_print (t, out_file (c));
    }
    table_destroy (t);
}

void report_print (struct coordinator *c, const struct estimate_tier *tier)
{
    FILE *out = out_file (c);

    if (c->preflight) {
        preflight_report (c, out);
    } else if (c->shape.n > 1) {
        print_map (c, tier);
        print_tiers (c, tier);
        print_worst (c, tier);
    }
    print_compute (c);
    if (c->set.output[0] != '-')
        fprintf (out, "\nlinks written to %s (%s, %.1f s)\n", c->set.output,
                 c->transport->name, coordinator_elapsed (c));
    fflush (out);
}

/* ---- --dry-run ---- */

static const char *const kind_name[SCHEDULE_KINDS] = {
    "first GPUs of the nodes", "inside nodes",           "same index, together",
    "same index, alone",       "all endpoints together", "other pairs, alone"};

void report_plan (struct coordinator *c)
{
    struct table *t = TABLE_OF ("<rounds", "in a pass", "taken", "passes", "s");
    FILE *out = stdout;

    fprintf (out, "%d endpoints on %d nodes over %s, %d passes, budget %g s\n",
             c->shape.n, c->shape.nodes, c->transport->name, c->set.passes,
             c->set.budget_s);
    for (int k = 0; k < SCHEDULE_KINDS && t; k++) {
        const struct schedule_part *p = &c->plan.part[k];

        if (p->rounds == 0)
            continue;
        table_cell (t, "%s", kind_name[k]);
        table_cell (t, "%ld", p->rounds);
        table_cell (t, "%ld", p->taken);
        table_cell (t, "%d", p->passes);
        table_cell (t, "%.1f", p->seconds);
    }
    table_end (t, out);
    fprintf (out, "expected time %.0f s%s\n", c->plan.seconds,
             c->plan.whole ? ""
                           : "; the budget is too short for every pair in every pass");
    if (c->plan.at_once == 0)
        fprintf (out,
                 "(if pairs do not slow each other down: bwprobe measures that first and "
                 "adapts)\n");
}
