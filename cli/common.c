/* What commands say alike. */
#include "cli/cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/units.h"

bool cli_is_dash (const char *arg)
{
    return arg && file_open_number (arg) == 1;
}

const char *cli_input_name (const char *arg)
{
    return cli_is_dash (arg) ? "standard input" : arg;
}

void cli_one_stdin (int n, struct argp_state *state)
{
    if (n > 1)
        usage_error (state, "only one input can be standard input (-)");
}

bool cli_hosts_stdin (const char *list)
{
    return list && strcmp (list, "@-") == 0;
}

enum status cli_hosts_read (const struct topology_cluster *c, const char *option,
                            bool empty_ok, const char **list, struct text *kept,
                            struct notes *notes, struct error *err)
{
    const char *file = *list ? *list + 1 : NULL, *name = cli_input_name (file);
    char *text = NULL;
    size_t len;
    enum status st;

    if (!*list || **list != '@')
        return ST_OK;
    TRY (file_read (file, &text, &len, err));
    st =
        topology_hostlist_known (c, name, text + file_mark (text, len), kept, notes, err);
    free (text);
    if (st != ST_OK)
        return st;
    if (kept->len == 0 && !empty_ok)
        return err_set (err, ST_INVALID, "%s: %s names no node of the cluster %s", option,
                        name, c->name);
    *list = kept->len > 0 ? text_str (kept) : NULL;
    return ST_OK;
}

/* Of the program, which runs one command. */
static bool quiet;

void cli_be_quiet (void)
{
    quiet = true;
}

bool cli_is_quiet (void)
{
    return quiet;
}

void cli_progress_start (struct progress *p)
{
    progress_start (p);
    p->on = p->on && !quiet;
}

void cli_warn (const char *who, struct notes *notes)
{
    for (int i = 0; i < notes->n && !quiet; i++)
        fprintf (stderr, "%s: warning: %s\n", who, notes->line[i]);
    if (notes->dropped > 0 && !quiet)
        fprintf (stderr, "%s: warning: %d more warnings\n", who, notes->dropped);
    notes_free (notes);
}

static void print_clean (const char *format, va_list ap, void (*clean) (char *))
{
    char *text;

    if (vasprintf (&text, format, ap) < 0) {
        text = NULL;
        memory_lost ();
    }
    if (text) {
        clean (text);
        fputs (text, stdout);
    }
    free (text);
}

void cli_print (const char *format, ...)
{
    va_list ap;

    va_start (ap, format);
    print_clean (format, ap, text_clean_lines);
    va_end (ap);
}

void cli_print_inline (const char *format, ...)
{
    va_list ap;

    va_start (ap, format);
    print_clean (format, ap, text_clean_line);
    va_end (ap);
}

enum cli_colors cli_colors (int when)
{
    const char *no = getenv ("NO_COLOR"), *color = getenv ("COLORTERM"),
               *term = getenv ("TERM");

    if (when == CLI_COLOR_NEVER ||
        (when == CLI_COLOR_AUTO && ((no && *no) || (term && strcmp (term, "dumb") == 0) ||
                                    isatty (STDOUT_FILENO) != 1)))
        return CLI_COLORS_NONE;
    if (color && (strcmp (color, "truecolor") == 0 || strcmp (color, "24bit") == 0))
        return CLI_COLORS_ALL;
    return when == CLI_COLOR_ALWAYS || (term && strstr (term, "256color"))
               ? CLI_COLORS_256
               : CLI_COLORS_NONE;
}

void cli_paint (enum cli_colors colors, struct topology_shade shade, const char *text)
{
    unsigned r = shade.fill >> 16, g = shade.fill >> 8 & 255, b = shade.fill & 255;
    int ink = shade.light ? 16 : 231;

    if (colors == CLI_COLORS_NONE)
        cli_print ("%s", text);
    else if (colors == CLI_COLORS_ALL)
        printf ("\033[48;2;%u;%u;%u;38;5;%dm%s\033[0m", r, g, b, ink, text);
    else /* the nearest of the cube of 6 x 6 x 6 */
        printf ("\033[48;5;%u;38;5;%dm%s\033[0m",
                16 + 36 * ((r + 25) / 51) + 6 * ((g + 25) / 51) + (b + 25) / 51, ink,
                text);
}

static void on_links (void *context, double share)
{
    progress_part (context, share, "reading links: %.0f %%", 100 * share);
}

struct topology_watch cli_watch (struct progress *p)
{
    cli_progress_start (p);
    return (struct topology_watch){on_links, p};
}

void cli_looking (void *context, double share, const char *what)
{
    progress_part (context, share, "looking at %.100s", what);
}

void cli_finding (struct table *t, json_t *list, const char *what, int verdict,
                  const char *found)
{
    static const char *const verdicts[] = {"ok", "note", "FAILED"};

    table_cell (t, "%s", what);
    table_cell (t, "%s", verdicts[verdict]);
    table_cell (t, "%s", found);
    json_array_append_new (list, json_pack ("{s:s, s:s, s:s}", "check", what, "verdict",
                                            verdicts[verdict], "found", found));
}

enum status cli_answer (bool json, struct table *t, json_t *doc, struct error *err)
{
    if (json) {
        table_destroy (t);
        return cli_print_json (doc, err);
    }
    json_decref (doc);
    table_end (t, stdout);
    return ST_OK;
}

enum status cli_print_json (json_t *doc, struct error *err)
{
    enum status st = doc ? json_write ("-", doc, err) : err_nomem (err);

    json_decref (doc);
    return st;
}

const char *cli_seconds (double s, char buf[32])
{
    if (!isfinite (s))
        snprintf (buf, 32, "-");
    else if (s >= 1.0)
        snprintf (buf, 32, "%.3f s", s);
    else if (s >= 1e-3)
        snprintf (buf, 32, "%.2f ms", s * 1e3);
    else
        snprintf (buf, 32, "%.1f us", s * 1e6);
    return buf;
}

double cli_step_interval (enum costmodel_kind by, const struct workload_profile *p,
                          const struct workload_model *m,
                          const struct topology_cluster *c, const int *gpu, int n)
{
    struct calibrate_step_types types = {.n = 0};

    if (by != COSTMODEL_CRITICAL_PATH)
        return NAN;
    for (int i = 0; i < n; i++)
        calibrate_step_types_add (&types, p, m, topology_gpu_type_of (c, gpu[i]));
    return workload_interval (calibrate_step_spread (&types, p, m));
}

double cli_peak_interval (enum memest_model by, const struct workload_profile *p,
                          const struct memest_stage *s)
{
    return by == MEMEST_LINKWISE ? memest_interval (p, memest_load_of (s)) : NAN;
}

/* Decimals that make three digits of x. */
static int decimals (double x)
{
    return x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
}

const char *cli_step_text (double step_s, double factor, char buf[CLI_STEP_TEXT])
{
    /* The unit that cli_seconds takes. */
    double unit = step_s >= 1.0 ? 1.0 : step_s >= 1e-3 ? 1e-3 : 1e-6;
    double low = step_s / factor / unit, high = step_s * factor / unit;
    char step[32];

    cli_seconds (step_s, step);
    if (isfinite (high))
        snprintf (buf, CLI_STEP_TEXT, "%s (90 %% of runs: %.*f to %.*f%s)", step,
                  decimals (low), low, decimals (high), high, strchr (step, ' '));
    else
        snprintf (buf, CLI_STEP_TEXT, "%s", step);
    return buf;
}

const char *cli_peak_text (double peak_bytes, double factor, char buf[CLI_STEP_TEXT])
{
    double peak = peak_bytes / UNITS_GIB;

    buf[0] = '\0';
    if (isfinite (factor))
        snprintf (buf, CLI_STEP_TEXT, "; 90 %% of runs: %.1f to %.1f GiB", peak / factor,
                  peak * factor);
    return buf;
}

void cli_interval_json (json_t *doc, double value, double factor, const char *low,
                        const char *high)
{
    json_object_set_new (doc, low, json_number_or_null (value / factor));
    json_object_set_new (doc, high, json_number_or_null (value * factor));
}

const char *cli_chance (double p, char buf[32])
{
    double pct = 100.0 * p;

    if (isnan (pct))
        snprintf (buf, 32, "unknown under this model");
    else if (pct < 0.001)
        snprintf (buf, 32, "< 0.001 %%");
    else if (pct > 99.999)
        snprintf (buf, 32, "> 99.999 %%");
    else if (pct >= 10.0)
        snprintf (buf, 32, pct > 99.0 ? "%.3f %%" : "%.0f %%", pct);
    else
        snprintf (buf, 32, "%.2g %%", pct);
    return buf;
}

static void part_cells (struct table *t, const char *words, double s, double step_s)
{
    table_cell (t, "%s", words);
    table_cell (t, "%.4f", s);
    table_cell (t, "%.1f", 100.0 * s / step_s);
}

void cli_print_breakdown (const struct costmodel_estimate *e)
{
    const struct costmodel_breakdown *b = &e->part;
    struct table *t = TABLE_OF ("<step goes to", "s", "%");

    for (int k = 0; k < COSTMODEL_PARTS; k++)
        if (costmodel_part_s (b, k) != 0.0)
            part_cells (t, costmodel_parts[k].words, costmodel_part_s (b, k), e->step_s);
    part_cells (t, "step", e->step_s, e->step_s);
    table_end (t, stdout);
    cli_print ("times of stage %d, replica %d, which ends last", e->stage, e->replica);
    if (b->tp_s > 0)
        cli_print ("; tensor parallelism uses %s", workload_all_reduce_name (e->tp_by));
    if (b->dp_s > 0)
        cli_print ("; data parallelism uses %s", workload_all_reduce_name (e->dp_by));
    cli_print ("\n");
    if (e->ep_hidden_s > 0)
        cli_print (
            "hidden   %.4f s of expert-parallel exchanges behind other micro-batches' "
            "compute\n",
            e->ep_hidden_s);
}

const char *cli_nominal (const struct topology_cluster *c)
{
    json_t *links = topology_nominal (c);
    size_t n = json_array_size (links);
    const char *first = json_string_value (json_array_get (links, 0));
    bool inside = first && strcmp (first, "intra") == 0;

    json_decref (links);
    return n == 0            ? NULL
           : c->n_nodes == 1 ? "inside the node"
           : n == 2          ? "inside and between nodes"
           : inside          ? "inside nodes"
                             : "between nodes";
}

void cli_print_estimated (const struct costmodel_estimate *e, const char *who)
{
    if (e->links_estimated > 0)
        cli_print ("links    %d of the %d links of %s are estimated: 90 %% of held-out "
                   "links came within %.2g %%\n",
                   e->links_estimated, e->links_used, who, 100 * e->estimate_error);
}

/* Less than this part of a step is not worth a line. */
#define WORTH_SAYING 1e-4

void cli_print_binding (const struct topology_cluster *c,
                        const struct costmodel_binding *b, double unshared_step_s,
                        double step_s)
{
    char step[32];

    if (b && b->step_s < step_s * (1.0 - WORTH_SAYING))
        cli_print (
            "link     %s - %s (%s, %.2f GB/s) delays the step most: at the median of "
            "%.2f GB/s it would take %s (%.2f %% less)\n",
            c->node[c->node_of_gpu[b->src_gpu]].name,
            c->node[c->node_of_gpu[b->dst_gpu]].name, b->use, b->bytes_per_s / UNITS_GB,
            b->median_bytes_per_s / UNITS_GB, cli_seconds (b->step_s, step),
            100.0 * (1.0 - b->step_s / step_s));
    if (unshared_step_s < step_s * (1.0 - WORTH_SAYING))
        cli_print ("sharing  GPUs of a node that send at once share its bandwidth: this "
                   "costs %.2f %% of the step\n",
                   100.0 * (1.0 - unshared_step_s / step_s));
}

/* One more word of a list. */
static void add_word (char buf[CLI_CONFIG_TEXT], const char *fmt, ...)
{
    size_t len = strlen (buf);
    va_list ap;

    len += (size_t) snprintf (buf + len, CLI_CONFIG_TEXT - len, "%s", len ? ", " : "");
    va_start (ap, fmt);
    vsnprintf (buf + len, CLI_CONFIG_TEXT - len, fmt, ap);
    va_end (ap);
}

/* Where the expert width follows tp, it says nothing. */
static int own_etp (const struct workload_config *c)
{
    return c->deg.etp == c->deg.tp ? 0 : c->deg.etp;
}

/* Where ZeRO shards over all ranks, it says nothing; from is no whole configuration. */
static int sharded_over (const struct workload_config *c)
{
    return c->shard > 0 && c->shard < c->deg.dp ? c->shard : 0;
}

const char *cli_config_change (const struct workload_config *c,
                               const struct workload_config *from,
                               char buf[CLI_CONFIG_TEXT])
{
    static const struct workload_config plain = {.deg = {.cp = 1, .ep = 1, .vpp = 1},
                                                 .zero = -1};
    const struct workload_config *f = from ? from : &plain;
    const struct workload_degrees *d = &c->deg, *was = &f->deg;
    char word[WORKLOAD_RECOMPUTE_TEXT], old[WORKLOAD_RECOMPUTE_TEXT];
    const struct {
        const char *name;
        int now, was;
    } numbers[] = {{"tp", d->tp, was->tp},
                   {"pp", d->pp, was->pp},
                   {"dp", d->dp, was->dp},
                   {"cp", d->cp, was->cp},
                   {"ep", d->ep, was->ep},
                   {"etp",
                    own_etp (c)   ? d->etp
                    : own_etp (f) ? d->tp
                                  : 0,
                    own_etp (f)},
                   {"micro-batch", c->micro_batch, f->micro_batch},
                   {"zero", c->zero, f->zero},
                   {"shard", sharded_over (c), sharded_over (f)}};

    buf[0] = '\0';
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (numbers[k].now != numbers[k].was)
            add_word (buf, "%s %d", numbers[k].name, numbers[k].now);
    if (!from || c->sequence_parallel != f->sequence_parallel)
        add_word (buf, "sequence parallelism %s", c->sequence_parallel ? "on" : "off");
    workload_recompute_text (c, word);
    if (!from || strcmp (word, workload_recompute_text (f, old)) != 0)
        add_word (buf, "recompute %s", word);
    if (c->optimizer_bytes != f->optimizer_bytes)
        add_word (buf, c->optimizer_bytes ? "optimizer %d B" : "optimizer as usual",
                  c->optimizer_bytes);
    if (c->offload != f->offload)
        add_word (buf, "offload %s", workload_offload_name (c->offload));
    if (!from || c->schedule != f->schedule)
        add_word (buf, "%s", workload_schedule_name (c->schedule));
    if (d->vpp != was->vpp)
        add_word (buf, "vpp %d", d->vpp);
    return buf;
}

const char *cli_config_text (const struct workload_config *c, char buf[CLI_CONFIG_TEXT])
{
    return cli_config_change (c, NULL, buf);
}

bool cli_parse_cost_model (const char *word, void *kind)
{
    return costmodel_kind_parse (word, kind);
}

const char *cli_model_authors (enum costmodel_kind kind)
{
    return kind == COSTMODEL_PIPETTE ? "Pipette (DATE 2024)" : "AMP (NeurIPS 2022)";
}
