/* linkwise cluster show, check, export: a cluster's nodes and links. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "topology/export/export.h"
#include "topology/survey/survey.h"

struct show_input {
    const char *cluster, *to, *node, *out;
    int worst, cells;
    int color; /* a word of the option's */
    bool json, prometheus;
};

#define INPUT struct show_input
#define FINDINGS_MAX 10 /* that are printed; the file has more */

/* ---- tables ---- */

/* Nothing measured is "-". */
static void rate_cell (struct table *t, double bytes_per_s)
{
    table_cell (t, bytes_per_s > 0 ? "%.4g" : "-", bytes_per_s / UNITS_GB);
}

static void print_nodes (const struct topology_cluster *c, const struct topology_stats *s)
{
    struct table *t = TABLE_OF ("<node", "GPUs", "<type", "<state", "<switch or rack",
                                "out GB/s", "in GB/s", "lowest", "<to", "unmeasured out");

    for (int i = 0; i < c->n_nodes; i++) {
        const struct topology_node *n = &c->node[i];
        const struct topology_node_stats *x = &s->node[i];

        table_cell (t, "%s", n->name);
        table_cell (t, "%d", n->gpus_listed);
        table_cell (t, "%s", n->type ? n->type->name : "-");
        if (!n->drained && n->gpus < n->gpus_listed)
            table_cell (t, "%d drained", n->gpus_listed - n->gpus);
        else
            table_cell (t, "%s", n->drained ? "drained" : "ok");
        table_cell (t, "%s", n->levels > 0 ? n->switches[0] : n->rack ? n->rack : "-");
        rate_cell (t, x->out_bytes_per_s);
        rate_cell (t, x->in_bytes_per_s);
        rate_cell (t, x->lowest_bytes_per_s);
        table_cell (t, "%s", x->lowest_node >= 0 ? c->node[x->lowest_node].name : "-");
        table_cell (t, "%.0f", x->unmeasured);
    }
    table_end (t, stdout);
}

static void print_tiers (const struct topology_cluster *c, const struct topology_stats *s)
{
    struct table *t = TABLE_OF ("<links", "number", "unmeasured", "min GB/s", "5 %",
                                "median", "95 %", "max", "CV %", "latency us");
    char name[64];

    for (int k = 0; k < s->n_tiers; k++) {
        const struct topology_tier *x = &s->tier[k];
        bool any = x->quantile_bytes_per_s[QUANTILE_MAX] > 0;

        table_cell (t, "%s", topology_tier_text (c, x, name));
        table_cell (t, "%.0f", x->links);
        table_cell (t, "%.0f", x->unmeasured);
        for (int q = QUANTILE_MIN; q <= QUANTILE_MAX; q++)
            rate_cell (t, x->quantile_bytes_per_s[q]);
        table_cell (t, any ? "%.1f" : "-", 100 * x->cv);
        table_cell (t, any ? "%.3g" : "-", x->latency_s / UNITS_US);
    }
    table_end (t, stdout);
    if (s->asymmetry_pairs > 0)
        cli_print (
            "the two directions of a pair differ by %.1f %% (mean), at most %.1f %%; "
            "%.0f links are under %.0f %% of their median\n",
            100 * s->asymmetry_mean, 100 * s->asymmetry_max, s->slow,
            100 * TOPOLOGY_SLOW);
    if (s->sampled)
        cli_print ("percentiles come from a sample of the links\n");
}

static void print_totals (const struct topology_cluster *c,
                          const struct topology_totals *t)
{
    if (t->pairs == 0)
        return;
    cli_print ("all GPUs of a pair of nodes reach %.4g to %.4g GB/s together, %s -> %s "
               "the least",
               t->lowest_bytes_per_s / UNITS_GB, t->highest_bytes_per_s / UNITS_GB,
               c->node[t->lowest_from].name, c->node[t->lowest_to].name);
    if (t->unmeasured > 0)
        cli_print ("; %.0f of %.0f pairs are unmeasured", t->unmeasured, t->pairs);
    cli_print ("\n");
}

/* The model by which links were estimated: of those used the one whose low end is nearest. */
static const json_t *model_of (const json_t *estimates)
{
    const json_t *list = json_object_get (estimates, "models"), *best = NULL, *m;
    size_t i;

    json_array_foreach (list, i, m)
    {
        if (json_is_true (json_object_get (m, "used")) &&
            (!best || json_member_number (m, "low") > json_member_number (best, "low")))
            best = m;
    }
    return best;
}

/* Links that nobody measured and bwprobe estimated, of a links file or what was merged from
 * one. */
static const json_t *estimates_of (const struct topology_cluster *c)
{
    const json_t *list =
        json_object_get (json_object_get (c->doc, "measured"), "estimates");

    return json_is_array (list) ? list : NULL;
}

static void print_estimates (const struct topology_cluster *c,
                             const struct topology_stats *s)
{
    const json_t *one;
    size_t i;

    if (s->estimated > 0)
        cli_print (
            "%.0f of %.0f links are estimated, not measured: 90 %% of held-out links "
            "came within %.2g %%\n",
            s->estimated, s->links, 100 * s->estimate_error);
    json_array_foreach (estimates_of (c), i, one)
    {
        double n = json_member_number (one, "estimated");
        const json_t *model = model_of (one);
        const char *links = json_member_text (one, "links"),
                   *from = json_member_text (model, "from");

        if (n > 0 && links && from)
            cli_print (
                "%.0f links (%s) are estimated from %s: 90 %% of held-out links came "
                "within %.2g %%; the file has %.0f %% of the estimate\n",
                n, links, from, 100 * json_member_number (model, "error_p90"),
                100 * json_member_number (model, "low"));
    }
}

/* What counters accuse, and what several measurements of one link came to. */
static void print_history (const struct topology_cluster *c)
{
    const json_t *measured = json_object_get (c->doc, "measured"),
                 *history = json_object_get (measured, "history"), *one;
    size_t i;

    json_array_foreach (json_object_get (measured, "accused"), i, one)
    {
        const char *node = json_member_text (one, "node"),
                   *port = json_member_text (one, "port"),
                   *counter = json_member_text (one, "counter"),
                   *since = json_member_text (one, "since");
        char gpu[16] = "";

        if (json_is_integer (json_object_get (one, "gpu")))
            snprintf (gpu, sizeof gpu, ":%.0f", json_member_number (one, "gpu"));
        if (node && counter)
            cli_print ("counters accuse %s%s%s%s: %s grew by %.0f since %s\n", node, gpu,
                       port ? " " : "", port ? port : "", counter,
                       json_member_number (one, "grew"), since ? since : "?");
    }
    json_array_foreach (json_object_get (history, "findings"), i, one)
    {
        const char *from = json_member_text (one, "from"),
                   *to = json_member_text (one, "to"),
                   *why = json_member_text (one, "why");

        if (from && to && why && i < FINDINGS_MAX)
            cli_print (
                "history: %s -> %s is %.4g GB/s (%s; the newest of %.0f measurements "
                "is %.4g, %.0f are under load, the age is %.3g days)\n",
                from, to, json_member_number (one, "gb_per_s"), why,
                json_member_number (one, "measurements"),
                json_member_number (one, "newest_gb_per_s"),
                json_member_number (one, "busy"), json_member_number (one, "age_days"));
    }
}

static void print_worst (const struct topology_cluster *c, const struct topology_stats *s)
{
    struct table *t =
        TABLE_OF ("<worst links", "<to", "GB/s", "back GB/s", "% of median");
    char from[TOPOLOGY_END_TEXT], to[TOPOLOGY_END_TEXT];

    for (int k = 0; k < s->n_worst; k++) {
        const struct topology_outlier *o = &s->worst[k];

        table_cell (t, "%s", topology_end_text (c, o->from, from));
        table_cell (t, "%s", topology_end_text (c, o->to, to));
        rate_cell (t, o->bytes_per_s);
        rate_cell (t, o->back_bytes_per_s);
        table_cell (t, "%.0f", 100 * o->share);
    }
    putchar ('\n');
    table_end (t, stdout);
}

/* ---- the heat map ---- */

/* @param[in] of  what the tenths are of; printed with h's rate */
static void print_heat (const struct topology_cluster *c, const struct topology_heat *h,
                        const char *what, const char *of, enum cli_colors colors)
{
    int width = 4;

    if (h->n == 0)
        return;
    for (int i = 0; i < h->n; i++) {
        int len = (int) strlen (c->node[h->first[i]].name);

        width = len > width ? len : width;
    }
    width = width > 24 ? 24 : width;
    cli_print ("\n%s from row to column, in tenths of the %s of %.4g GB/s (#: 95 %% or "
               "more, ?: unmeasured)%s\n",
               what, of, h->of_bytes_per_s / UNITS_GB,
               h->n < c->n_nodes ? "; a cell covers several nodes, the first is named"
                                 : "");
    for (int i = 0; i < h->n; i++) {
        cli_print ("%-*.*s", width, width, c->node[h->first[i]].name);
        for (int j = 0; j < h->n; j++) {
            double share = h->share[(size_t) i * (size_t) h->n + (size_t) j];
            struct topology_shade shade = topology_heat_shade (share);

            if (i == j && isnan (share))
                cli_print (" .");
            else
                cli_paint (colors, shade, (char[]){' ', shade.letter, '\0'});
        }
        putchar ('\n');
    }
}

static enum status print_heats (const struct topology_cluster *c,
                                const struct topology_stats *s,
                                const struct topology_totals *t,
                                const struct show_input *in, struct error *err)
{
    struct topology_heat links = {0}, totals = {0};
    struct progress progress;
    struct topology_watch watch = cli_watch (&progress);
    enum cli_colors colors = cli_colors (in->color);
    enum status st = topology_heat_collect (c, in->cells, s->between_median_bytes_per_s,
                                            &watch, &links, err);

    if (st == ST_OK && t->lowest_bytes_per_s < t->highest_bytes_per_s)
        st = topology_heat_totals (c, in->cells, &totals, err);
    progress_end (&progress);
    if (st == ST_OK) {
        print_heat (c, &links, "links", "median", colors);
        print_heat (c, &totals, "all GPUs of a pair of nodes", "highest", colors);
    }
    topology_heat_release (&links);
    topology_heat_release (&totals);
    return st;
}

/* ---- show ---- */

static enum status print_json (const struct topology_cluster *c,
                               const struct topology_stats *s,
                               const struct topology_totals *t, struct error *err)
{
    static const char *const kept[] = {"accused", "history"};
    json_t *doc = json_pack ("{s:i}", "version", 1);

    json_object_update_new (doc, topology_stats_json (c, s));
    if (s->estimated > 0)
        json_object_set_new (
            doc, "estimated_links",
            json_pack ("{s:I, s:I, s:f}", "links", (json_int_t) s->estimated, "of",
                       (json_int_t) s->links, "held_out_error", s->estimate_error));
    if (t->pairs > 0)
        json_object_set_new (doc, "pair_totals",
                             json_pack ("{s:I, s:I, s:f, s:f, s:s, s:s}", "pairs",
                                        (json_int_t) t->pairs, "unmeasured",
                                        (json_int_t) t->unmeasured, "min_gb_per_s",
                                        t->lowest_bytes_per_s / UNITS_GB, "max_gb_per_s",
                                        t->highest_bytes_per_s / UNITS_GB, "min_from",
                                        c->node[t->lowest_from].name, "min_to",
                                        c->node[t->lowest_to].name));
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        json_object_set (doc, kept[k],
                         json_object_get (json_object_get (c->doc, "measured"), kept[k]));
    if (estimates_of (c))
        json_object_set (doc, "estimates", (json_t *) estimates_of (c));
    return cli_print_json (doc, err);
}

static enum status show (void *input, struct notes *notes, struct error *err)
{
    const struct show_input *in = input;
    struct topology_cluster *c = NULL;
    struct topology_stats s = {0};
    struct topology_totals totals = {0};
    enum status st = topology_cluster_read_partial (in->cluster, &c, notes, err);
    struct progress progress;
    struct topology_watch watch = cli_watch (&progress);
    int gpus = 0;

    cli_hint (CLI_CLUSTER, in->cluster, st, err);
    THEN (st, topology_stats_collect (c, in->worst, &watch, &s, err));
    if (st == ST_OK)
        topology_totals_collect (c, &totals);
    progress_end (&progress);
    if (st == ST_OK && in->prometheus)
        st = topology_export (c, "prometheus", NULL, "-", NULL, err);
    else if (st == ST_OK && in->json)
        st = print_json (c, &s, &totals, err);
    else if (st == ST_OK) {
        for (int i = 0; i < c->n_nodes; i++)
            gpus += c->node[i].gpus_listed;
        cli_print_inline ("%s: %d node%s, %d GPU%s", c->name, c->n_nodes,
                          TEXT_S (c->n_nodes), gpus, TEXT_S (gpus));
        cli_print ("\n\n");
        print_nodes (c, &s);
        if (s.n_tiers > 0) {
            putchar ('\n');
            print_tiers (c, &s);
            print_totals (c, &totals);
            if (cli_nominal (c))
                cli_print ("links %s are nominal: not measured\n", cli_nominal (c));
            print_estimates (c, &s);
            print_history (c);
        }
        if (s.n_worst > 0)
            print_worst (c, &s);
        if (in->cells > 0)
            st = print_heats (c, &s, &totals, in, err);
    }
    topology_stats_release (&s);
    topology_cluster_destroy (c);
    return st;
}

static const struct cli_option show_options[] = {
    {"worst", 0, "N", "number of worst links to list (default 10)",
     CLI_INT (worst, 0, 100000), .usual = "10"},
    {"cells", 0, "N",
     "rows and columns of the heat map (default 40; in larger clusters a cell covers "
     "several nodes); 0: no heat map",
     CLI_INT (cells, 0, 400), .usual = "40"},
    {"color", 0, "auto|always|never",
     "colour the heat map (default auto: on a terminal with 256 colours or more, unless "
     "NO_COLOR is set)",
     CLI_WORD (color)},
    {"prometheus", 0, NULL, "print link health as `cluster export --to prometheus` does",
     CLI_FLAG (prometheus)},
    {CLI_JSON},
    {0}};

const struct cli_command cli_cluster_show = {
    .arguments = "CLUSTER",
    .help =
        "Show a cluster: its nodes, its links by tier, the worst links and heat maps.\v"
        "Example: linkwise cluster show examples/clusters/h100-17.json",
    .options = {.line = show_options},
    .places = {1, 1, "CLUSTER",
               "CLUSTER is required, as in: linkwise cluster show cluster.json"},
    .at = {CLI_PLACE (cluster)},
    CLI_RUN (show)};

/* ---- check ---- */

static enum status answer (const struct show_input *in,
                           const struct topology_inspection *x, struct error *err)
{
    struct table *t = TABLE_OF ("<check", "<", "<found");
    json_t *list = json_array ();
    enum status st;

    for (int k = 0; k < x->n; k++)
        cli_finding (t, list, x->finding[k].what, x->finding[k].verdict,
                     x->finding[k].text);
    st = cli_answer (
        in->json, t,
        json_pack ("{s:i, s:b, s:o}", "version", 1, "ok", x->failed == 0, "checks", list),
        err);
    return st != ST_OK || x->failed == 0
               ? st
               : err_set (err, ST_INVALID, "%s: %d of %d checks failed", in->cluster,
                          x->failed, x->n);
}

static enum status check (void *input, struct notes *notes, struct error *err)
{
    const struct show_input *in = input;
    struct topology_cluster *c = NULL;
    struct topology_inspection x = {.n = 0};
    struct progress progress;
    struct topology_watch watch = cli_watch (&progress);
    enum status st = topology_cluster_read (in->cluster, &c, notes, err);

    cli_hint (CLI_CLUSTER, in->cluster, st, err);
    THEN (st, topology_inspect (c, &watch, &x, err));
    progress_end (&progress);
    THEN (st, answer (in, &x, err));
    topology_inspection_release (&x);
    topology_cluster_destroy (c);
    return st;
}

const struct cli_command cli_cluster_check = {
    .arguments = "CLUSTER",
    .help = "Check that a cluster file can be used, and note oddities.\v"
            "Example: linkwise cluster check examples/clusters/h100-17.json\n\n"
            "Exit code 1: the file breaks the format, or a check failed.",
    .options = {.line = (const struct cli_option[]){{CLI_JSON}, {0}}},
    .places = {1, 1, "CLUSTER",
               "CLUSTER is required, as in: linkwise cluster check cluster.json"},
    .at = {CLI_PLACE (cluster)},
    CLI_RUN (check)};

/* ---- export ---- */

static enum status write_export (void *input, struct notes *notes, struct error *err)
{
    const struct show_input *in = input;
    struct topology_cluster *c = NULL;
    struct progress progress;
    struct topology_watch watch = cli_watch (&progress);
    enum status st = topology_cluster_read_partial (in->cluster, &c, notes, err);

    cli_hint (CLI_CLUSTER, in->cluster, st, err);
    THEN (st, topology_export (c, in->to, in->node, in->out, &watch, err));
    progress_end (&progress);
    if (st == ST_OK && !cli_is_dash (in->out))
        cli_print ("%s written to %s\n", in->to, in->out);
    topology_cluster_destroy (c);
    return st;
}

static const struct cli_option export_options[] = {
    {"to", 't', "NAME", "what to write", CLI_TEXT (to), .needed = true},
    {"node", 0, "NODE", "draw this node alone (graphviz)", CLI_TEXT (node)},
    {CLI_OUTPUT, .group = 1},
    {0}};

const struct cli_command cli_cluster_export = {
    .arguments = "CLUSTER",
    .help = "Write a cluster's links for other tools.\v"
            "Example: linkwise cluster export --to svg examples/clusters/h100-17.json -o "
            "h100-17.svg\n\n"
            "Formats:\n",
    .choice = topology_export_at,
    .choice_width = 14,
    .options = {.line = export_options},
    .places = {1, 1, "CLUSTER",
               "CLUSTER, --to FORMAT and -o FILE are required, as in: linkwise cluster "
               "export cluster.json --to csv -o links.csv"},
    .at = {CLI_PLACE (cluster)},
    CLI_RUN (write_export)};
