/* linkwise calibrate: fit a framework profile to measured runs. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/progress.h"

struct calibrate_input {
    const char *runs, *profile, *name, *out;
    bool json;
};

enum { OPT_PROFILE = 256, OPT_NAME };

static const struct argp_option options[] = {
    {"profile", OPT_PROFILE, "NAME|FILE", 0,
     "where the fit starts (default: the shipped profile of most rows)", 0},
    {"name", OPT_NAME, "NAME", 0, "of the fitted profile (default: PROFILE's file name)",
     0},
    {"output", 'o', "PROFILE", 0, "write the fitted profile; - is standard output, alone",
     0},
    {"json", 'j', NULL, 0, "print one JSON document", 0},
    {0}};

static error_t parse (int key, char *arg, struct argp_state *state)
{
    struct calibrate_input *in = state->input;

    switch (key) {
    case OPT_PROFILE:
        in->profile = arg;
        return 0;
    case OPT_NAME:
        in->name = arg;
        return 0;
    case 'o':
        in->out = arg;
        return 0;
    case 'j':
        in->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0)
            argp_error (state, "one RUNS.csv expected, found \"%s\" too", arg);
        in->runs = arg;
        return 0;
    case ARGP_KEY_END:
        if (!in->runs)
            argp_error (state, "RUNS.csv is required");
        if (in->json && in->out && strcmp (in->out, "-") == 0)
            argp_error (state, "--json and -o - both want standard output");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- memory ---- */

/* How well profiles meet the runs. */
struct memory_scores {
    struct calibrate_errors peaks;
    struct calibrate_labels labels;
};

/* The memory part of a calibration. */
struct memory_part {
    struct calibrate_fit fit;
    struct memory_scores start, fitted, held_out;
    enum calibrate_grouping by;
    int groups; /* left out one at a time; 1: there is nothing to hold out */
};

/* Everything that one call is about. */
struct calibration {
    struct calibrate_runs runs;
    struct workload_profile start, fitted;
    struct memory_part memory;
};

static enum status score (const struct calibrate_runs *runs,
                          const struct workload_profile *profile, /* [runs->n] */
                          struct memory_scores *s, struct error *err)
{
    enum status st = calibrate_memory_errors (runs, profile, false, NULL, &s->peaks, err);

    return st == ST_OK ? calibrate_memory_labels (runs, profile, MEMEST_LINKWISE, 1.0,
                                                  &s->labels, err)
                       : st;
}

static enum status score_one (const struct calibrate_runs *runs,
                              const struct workload_profile *p,
                              struct workload_profile *work, struct memory_scores *s,
                              struct error *err)
{
    enum status st = calibrate_profiles (runs, p, work, err);

    return st == ST_OK ? score (runs, work, s, err) : st;
}

static void on_fold (void *context, int done, int of)
{
    progress_show (context, "fitting: %d of %d groups held out", done, of);
}

/* Models are left out one at a time; where there is one model alone, configurations. */
static enum status choose_groups (const struct calibrate_runs *runs,
                                  struct memory_part *m, int *group, struct error *err)
{
    enum status st;

    m->by = CALIBRATE_BY_MODEL;
    st = calibrate_groups (runs, m->by, group, &m->groups, err);
    if (st != ST_OK || m->groups > 1)
        return st;
    m->by = CALIBRATE_BY_CONFIG;
    return calibrate_groups (runs, m->by, group, &m->groups, err);
}

static enum status fit_memory (struct calibration *c, struct progress *progress,
                               struct error *err)
{
    size_t n = (size_t) c->runs.n;
    struct workload_profile *work = calloc (n, sizeof *work);
    int *group = calloc (n, sizeof *group);
    struct memory_part *m = &c->memory;
    enum status st = work && group ? ST_OK : err_nomem (err);

    if (st == ST_OK)
        st = calibrate_memory (&c->runs, NULL, &c->fitted, &m->fit, err);
    if (st == ST_OK)
        st = score_one (&c->runs, &c->start, work, &m->start, err);
    if (st == ST_OK)
        st = score_one (&c->runs, &c->fitted, work, &m->fitted, err);
    if (st == ST_OK)
        st = choose_groups (&c->runs, m, group, err);
    if (st == ST_OK && m->groups > 1) {
        st = calibrate_held_out (&c->runs, group, m->groups, &c->start, on_fold, progress,
                                 work, err);
        if (st == ST_OK)
            st = score (&c->runs, work, &m->held_out, err);
    }
    free (work);
    free (group);
    return st;
}

static const char *grouping_name (enum calibrate_grouping by)
{
    return by == CALIBRATE_BY_MODEL ? "model" : "configuration";
}

static void print_constants (const struct calibrate_fit *fit)
{
    static const char *const header[] = {"<constant", "before", "after", "<", NULL};
    struct table *t = table_create (header);

    for (int i = 0; i < fit->n; i++) {
        const struct calibrate_fitted *k = &fit->constant[i];

        table_cell (t, "%s", k->constant->key);
        table_cell (t, "%.4g", k->before);
        table_cell (t, "%.4g", k->after);
        table_cell (t, "%s", k->told ? "fitted" : "not told by these runs");
    }
    printf ("\nmemory constants (docs/profile.md has their units):\n");
    table_print (t, stdout);
    table_destroy (t);
}

static void score_row (struct table *t, const char *name, const struct memory_scores *s)
{
    bool peaks = s->peaks.n > 0;

    table_cell (t, "%s", name);
    cli_cell (t, "%.2f", peaks ? 100 * s->peaks.mape : NAN);
    cli_cell (t, "%.2f", peaks ? 100 * s->peaks.median : NAN);
    cli_cell (t, "%.2f", peaks ? 100 * s->peaks.worst : NAN);
    if (s->labels.n > 0)
        cli_label_cells (t, &s->labels);
    else
        for (int i = 0; i < 5; i++)
            table_cell (t, "-");
}

static void print_memory (const struct memory_part *m)
{
    static const char *const header[] = {
        "<profile",    "peak MAPE %", "median %", "worst %",
        "OOM AUC",     "precision",   "recall",   "precision at recall .99",
        "Brier score", NULL};
    struct table *t = table_create (header);
    char name[64];

    print_constants (&m->fit);
    score_row (t, "before", &m->start);
    score_row (t, "fitted, on the runs that it saw", &m->fitted);
    snprintf (name, sizeof name, "fitted, each %s left out", grouping_name (m->by));
    if (m->groups > 1)
        score_row (t, name, &m->held_out);
    printf ("\n%d peaks and %d out-of-memory labels:\n", m->start.peaks.n,
            m->start.labels.n);
    table_print (t, stdout);
    if (m->groups == 1)
        printf ("all runs are of one configuration: there is none to leave out\n");
    table_destroy (t);
}

static json_t *scores_json (const struct memory_scores *s)
{
    return json_pack ("{s:o, s:o}", "peak", cli_errors_json (&s->peaks), "oom",
                      cli_labels_json (&s->labels));
}

static json_t *memory_json (const struct memory_part *m)
{
    json_t *list = json_array (), *doc;

    for (int i = 0; i < m->fit.n; i++) {
        const struct calibrate_fitted *k = &m->fit.constant[i];

        json_array_append_new (list, json_pack ("{s:s, s:f, s:f, s:b}", "constant",
                                                k->constant->key, "before", k->before,
                                                "after", k->after, "told", k->told));
    }
    doc =
        json_pack ("{s:i, s:o, s:o, s:o}", "runs", m->fit.used, "constants", list,
                   "before", scores_json (&m->start), "fitted", scores_json (&m->fitted));
    if (doc)
        json_object_set_new (doc, "left_out",
                             m->groups > 1 ? scores_json (&m->held_out) : json_null ());
    if (doc && m->groups > 1)
        json_object_set_new (doc, "left_out_by", json_string (grouping_name (m->by)));
    return doc;
}

/* ---- the profile ---- */

/* The shipped profile that serves most rows. */
static enum status usual_profile (const struct calibrate_runs *runs,
                                  struct workload_profile *p, struct notes *notes,
                                  struct error *err)
{
    struct workload_profile *each = calloc ((size_t) runs->n, sizeof *each);
    enum status st = each ? calibrate_profiles (runs, NULL, each, err) : err_nomem (err);
    int most = 0;

    for (int i = 0; i < runs->n && st == ST_OK; i++) {
        int n = 0;

        if (i > 0 && strcmp (each[i].name, each[i - 1].name) == 0)
            continue;
        for (int k = 0; k < runs->n; k++)
            n += strcmp (each[i].name, each[k].name) == 0;
        if (n > most) {
            most = n;
            *p = each[i];
        }
    }
    if (st == ST_OK && most < runs->n)
        notes_add (notes,
                   "%d of %d rows are served by other profiles than %s; all are fitted "
                   "on it",
                   runs->n - most, runs->n, p->name);
    free (each);
    return st;
}

/* "x/mine.json" is mine. */
static void name_profile (const struct calibrate_input *in, struct workload_profile *p)
{
    const char *base = in->out, *slash = base ? strrchr (base, '/') : NULL;
    size_t n;

    if (in->name)
        snprintf (p->name, sizeof p->name, "%.63s", in->name);
    if (in->name || !base || strcmp (base, "-") == 0)
        return;
    base = slash ? slash + 1 : base;
    n = strlen (base);
    if (n > 5 && strcmp (base + n - 5, ".json") == 0)
        n -= 5;
    snprintf (p->name, sizeof p->name, "%.*s", n > 63 ? 63 : (int) n, base);
}

/* The fitted profile serves the runs' sources. */
static void name_sources (const struct calibrate_runs *runs, struct workload_profile *p)
{
    p->n_sources = 0;
    for (int i = 0; i < runs->n && p->n_sources < WORKLOAD_SOURCES_MAX; i++) {
        bool known = false;

        for (int k = 0; k < p->n_sources; k++)
            known |= strcmp (p->source[k], runs->run[i].source) == 0;
        if (!known && runs->run[i].source[0])
            snprintf (p->source[p->n_sources++], sizeof p->source[0], "%s",
                      runs->run[i].source);
    }
}

static json_t *profile_json (const struct calibration *c)
{
    char source[128];
    json_t *doc;

    snprintf (source, sizeof source, "fitted by linkwise calibrate, from profile %s",
              c->start.name);
    doc = workload_profile_to_json (&c->fitted, source);
    if (doc)
        json_object_set_new (doc, "fit",
                             json_pack ("{s:s, s:i, s:o}", "start", c->start.from, "rows",
                                        c->runs.n, "memory", memory_json (&c->memory)));
    return doc;
}

static enum status answer (const struct calibrate_input *in, const struct calibration *c,
                           struct error *err)
{
    json_t *profile = profile_json (c), *doc;
    bool to_stdout = in->out && strcmp (in->out, "-") == 0;
    enum status st = profile ? ST_OK : err_nomem (err);

    if (st == ST_OK && in->out)
        st = json_write (in->out, profile, err);
    if (st == ST_OK && in->json) {
        doc = json_pack ("{s:i, s:s, s:o, s:O}", "version", 1, "start", c->start.from,
                         "memory", memory_json (&c->memory), "profile", profile);
        st = cli_rows_json (doc, &c->runs, err);
        if (st == ST_OK)
            st = cli_print_json (json_incref (doc), err);
        json_decref (doc);
    } else if (st == ST_OK && !to_stdout) {
        cli_print_rows (in->runs, &c->runs);
        printf ("the fit starts from profile %s\n", c->start.from);
        print_memory (&c->memory);
        if (in->out)
            printf ("\nprofile written to %s\n", in->out);
    }
    json_decref (profile);
    return st;
}

/* ---- the command ---- */

static enum status run (const struct calibrate_input *in, struct notes *notes,
                        struct error *err)
{
    struct calibration c = {0};
    struct progress progress;
    enum status st = calibrate_runs_read (in->runs, &c.runs, err);

    progress_start (&progress);
    if (st == ST_OK)
        st = in->profile ? workload_profile_read (in->profile, &c.start, notes, err)
                         : usual_profile (&c.runs, &c.start, notes, err);
    c.fitted = c.start;
    if (st == ST_OK)
        st = fit_memory (&c, &progress, err);
    progress_end (&progress);
    if (st == ST_OK) {
        name_profile (in, &c.fitted);
        name_sources (&c.runs, &c.fitted);
        st = answer (in, &c, err);
    }
    calibrate_runs_release (&c.runs);
    return st;
}

int cli_calibrate (int argc, char **argv)
{
    const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "RUNS.csv",
        .doc = "Fit the constants of a framework profile to measured runs.\v"
               "Example: linkwise calibrate runs.csv -o mine.json\n\nA handful of runs "
               "will do: constants start at the profile's values, stay near them unless "
               "the runs say otherwise, and those that the runs cannot tell are left "
               "alone and named.  The error that counts is that of the runs left out of "
               "the fit.  RUNS.csv is a runs file (docs/runs.md) or - for standard "
               "input."};
    struct calibrate_input in = {0};
    struct notes notes = {0};
    struct error err = {""};

    cli_parse (&argp, argc, argv, &in);

    enum status st = run (&in, &notes, &err);

    cli_warn ("calibrate", &notes);
    return cli_end ("calibrate", st, &err);
}
