/* Files of a job: what each is, and what they say together. */
#include "jobs/jobs_private.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"

#define KINDS                                                                        \
    "looked for: a Megatron-LM command line or script, a log of Megatron-LM, NeMo, " \
    "TorchTitan, DeepSpeed or nanotron, YAML of NeMo, Megatron Bridge or nanotron, " \
    "TOML "                                                                          \
    "of TorchTitan, JSON of DeepSpeed (ds_config) or of a model (config.json)"

/* ---- what a key states ---- */

static const struct jobs_dialect *dialect_of (const struct jobs_reading *r,
                                              const struct jobs_said *s)
{
    const struct jobs_dialect *own = s->run >= 0 ? r->run[s->run].dialect : NULL;

    return own ? own : s->run >= 0 ? &jobs_megatron : r->of_file[s->file];
}

/* "${model.encoder_seq_length}" and "${.hidden_size}": what the other entry has. */
static const char *referred (const struct jobs_reading *r, const struct jobs_said *s)
{
    size_t n = strlen (s->value);
    const char *dot = strrchr (s->key, '.');
    char name[256];

    if (n < 4 || n > 200 || strncmp (s->value, "${", 2) != 0 || s->value[n - 1] != '}')
        return s->value;
    snprintf (name, sizeof name, "%.*s%.*s",
              s->value[2] == '.' && dot && dot - s->key < 50 ? (int) (dot - s->key) : 0,
              s->key, (int) (n - 3), s->value + 2);
    for (int i = 0; i < r->n_said; i++)
        if (r->said[i].file == s->file && strcmp (r->said[i].key, name) == 0 &&
            r->said[i].value[0] != '$')
            return r->said[i].value;
    return NULL;
}

static void lower_truth (char *value)
{
    if (strcmp (value, "True") == 0 || strcmp (value, "False") == 0)
        value[0] = (char) tolower ((unsigned char) value[0]);
}

/* What any log may name: the product, and its memory. */
static bool is_printed_gpu (const struct jobs_said *s)
{
    return s->run >= 0 &&
           (strcmp (s->key, "gpu") == 0 || strcmp (s->key, "gpu_mem_gb") == 0);
}

static enum status state (struct jobs_reading *r, const struct jobs_said *s)
{
    const struct jobs_dialect *d = dialect_of (r, s);
    char fact[JOBS_FACT_MAX];
    const char *value = referred (r, s);

    if (is_printed_gpu (s))
        snprintf (fact, sizeof fact, "%s", s->key);
    else if (!jobs_fact_of (d, s->key, fact))
        return ST_OK;
    if (!value) {
        notes_add (r->notes, "%s:%d: %.60s: %.60s cannot be evaluated",
                   file_title (r->file[s->file]), s->line, s->key, s->value);
        return ST_OK;
    }
    lower_truth (s->value);
    return jobs_set (r, fact, value, s->file, s->line, s->run >= 0);
}

/* Each dialect's own conclusions, once. */
static enum status finish (struct jobs_reading *r, int run)
{
    static const struct jobs_dialect *const order[] = {
        &jobs_nanotron, &jobs_torchtitan, &jobs_nemo, &jobs_deepspeed, &jobs_megatron};

    for (size_t i = 0; i < COUNT_OF (order); i++) {
        bool used = run >= 0 && r->run[run].dialect == order[i];

        for (int f = 0; f < r->n_files; f++)
            used = used || r->of_file[f] == order[i];
        if (used && order[i]->finish)
            TRY (order[i]->finish (r));
    }
    return ST_OK;
}

/* @param run  of the logs; -1: there is none */
static enum status make_job (struct jobs_reading *r, const struct jobs_given *given,
                             int run, struct jobs *out)
{
    struct workload_model model = r->model;
    bool has_model = r->has_model;
    enum status st = ST_OK;

    for (int log = 0; log < 2; log++)
        for (int i = 0; i < r->n_said && st == ST_OK; i++)
            if (log ? run >= 0 && r->said[i].run == run : r->said[i].run < 0)
                st = state (r, &r->said[i]);
    if (st == ST_OK)
        st = finish (r, run);
    if (jobs_value (r, "optimizer") && !strcasestr (jobs_value (r, "optimizer"), "adam"))
        notes_add (r->notes, "the optimizer is %.40s: the estimate has Adam's states",
                   jobs_value (r, "optimizer"));
    if (st == ST_OK && !array_grow (&out->job, (size_t) out->n, sizeof *out->job))
        st = err_nomem (r->err);
    if (st == ST_OK)
        st = jobs_row (r, given, run >= 0 ? &r->run[run] : NULL, &out->job[out->n++]);
    jobs_forget_all (r);
    r->model = model;
    r->has_model = has_model;
    return st;
}

/* ---- what a file is ---- */

static bool ends_with (const char *s, const char *end)
{
    size_t n = strlen (s), k = strlen (end);

    return n > k && strcasecmp (s + n - k, end) == 0;
}

/* Does a line begin with one of the words? */
static bool has_line (const char *text, const char *const *word)
{
    for (const char *s = text; s; s = strchr (s, '\n')) {
        s += *s == '\n';
        for (const char *const *w = word; *w; w++)
            if (strncmp (s, *w, strlen (*w)) == 0)
                return true;
    }
    return false;
}

static int known_statements (const struct jobs_reading *r, int from,
                             const struct jobs_dialect *d)
{
    char fact[JOBS_FACT_MAX];
    int n = 0;

    for (int i = from; i < r->n_said; i++)
        n += jobs_fact_of (d, r->said[i].key, fact);
    return n;
}

static enum status foreign (struct jobs_reading *r, int file, const char *as)
{
    return err_set (r->err, ST_INVALID, "%s: %s; " KINDS, file_title (r->file[file]), as);
}

static void name_format (struct jobs_reading *r, int file, const char *dialect,
                         const char *what, struct text *formats)
{
    text_add (formats, "%s%s: %s%s%s", formats->len ? ", " : "",
              file_name (file_title (r->file[file])), dialect, *dialect ? " " : "", what);
}

/* The dialect with most known keys among those given takes the file. */
static enum status adopt (struct jobs_reading *r, int file, int from, const char *what,
                          const struct jobs_dialect *const *list, struct text *formats)
{
    const struct jobs_dialect *best = NULL;
    int most = 0;

    for (; *list; list++) {
        int n = known_statements (r, from, *list);

        if (n > most) {
            most = n;
            best = *list;
        }
    }
    if (!best) {
        char why[96];

        snprintf (why, sizeof why, "%s without an option that is known", what);
        return foreign (r, file, why);
    }
    r->of_file[file] = best;
    name_format (r, file, best->name, what, formats);
    return ST_OK;
}

static enum status read_json (struct jobs_reading *r, int file, const char *data,
                              size_t len, struct text *formats)
{
    static const struct jobs_dialect *const list[] = {&jobs_deepspeed, NULL};
    const char *name = file_title (r->file[file]);
    json_t *doc;
    int from = r->n_said;
    enum status st;

    TRY (json_parse (name, data, len, &doc, r->err));
    if (json_object_get (doc, "model_type") || json_object_get (doc, "architectures") ||
        json_object_get (doc, "hidden_size") || json_object_get (doc, "n_embd")) {
        st = strcmp (r->file[file], "-") == 0
                 ? workload_model_from_json (doc, name, "model", &r->model, r->notes,
                                             r->err)
                 : workload_model_read (r->file[file], &r->model, r->notes, r->err);
        r->has_model = st == ST_OK;
        if (st == ST_OK)
            name_format (r, file, "", "model", formats);
    } else {
        st = jobs_json_read (r, file, doc);
        if (st == ST_OK)
            st = adopt (r, file, from, "JSON", list, formats);
    }
    json_decref (doc);
    return st;
}

static void drop_from (struct jobs_reading *r, int said, int runs)
{
    for (; r->n_said > said; r->n_said--) {
        free (r->said[r->n_said - 1].key);
        free (r->said[r->n_said - 1].value);
    }
    for (; r->n_runs > runs; r->n_runs--) {
        free (r->run[r->n_runs - 1].step_s);
        free (r->run[r->n_runs - 1].tokens_per_s);
        free (r->run[r->n_runs - 1].samples_per_s);
    }
}

/* A log, else a script. */
static enum status read_other (struct jobs_reading *r, int file, char *data, size_t len,
                               struct text *formats)
{
    static const struct jobs_dialect *const list[] = {&jobs_megatron, NULL};
    static const char *const script[] = {"#!", "#SBATCH", NULL};
    const char *first = data + strspn (data, " \t\r\n");
    bool is_script =
        ends_with (r->file[file], ".sh") ||
        (strncmp (first, "--", 2) == 0 && isalpha ((unsigned char) first[2])) ||
        ends_with (r->file[file], ".sbatch") || ends_with (r->file[file], ".slurm") ||
        has_line (data, script);
    int from = r->n_said, runs = r->n_runs;
    bool known = false;
    char *copy;
    enum status st;

    if (!is_script) {
        if (!(copy = malloc (len + 1)))
            return err_nomem (r->err);
        memcpy (copy, data, len + 1);
        st = jobs_log_read (r, file, copy, &known);
        free (copy);
        TRY (st);
    }
    if (known) {
        const struct jobs_dialect *d = r->run[r->n_runs - 1].dialect;

        name_format (r, file, d ? d->name : "", "log", formats);
        return ST_OK;
    }
    drop_from (r, from, runs);
    TRY (jobs_shell_read (r, file, data));
    return adopt (r, file, from, "script", list, formats);
}

static enum status read_text (struct jobs_reading *r, int file, char *data, size_t len,
                              struct text *formats)
{
    static const struct jobs_dialect *const yaml[] = {&jobs_nemo, &jobs_nanotron, NULL},
                                            *const toml[] = {&jobs_torchtitan, NULL};
    static const char *const yaml_lines[] = {"parallelism:", "model:", "trainer:",
                                             "tokens:",      "train:", NULL},
                             *const toml_lines[] = {"[model]", "[training]",
                                                    "[parallelism]", "[job]", NULL};
    const char *path = r->file[file];
    size_t blank = strspn (data, " \t\r\n");
    int from = r->n_said;

    if (blank == len)
        return foreign (r, file, "an empty file");
    if (data[blank] == '{')
        return read_json (r, file, data, len, formats);
    if (ends_with (path, ".toml") || has_line (data, toml_lines)) {
        TRY (jobs_toml_read (r, file, data));
        return adopt (r, file, from, "TOML", toml, formats);
    }
    if (ends_with (path, ".yaml") || ends_with (path, ".yml") ||
        has_line (data, yaml_lines)) {
        TRY (jobs_yaml_read (r, file, data, len));
        return adopt (r, file, from, "YAML", yaml, formats);
    }
    return read_other (r, file, data, len, formats);
}

static enum status read_file (struct jobs_reading *r, int file, struct text *formats)
{
    char *data = NULL;
    size_t len = 0, mark;
    const char *why;
    enum status st;

    TRY (file_read (r->file[file], &data, &len, r->err));
    why = file_not_text (data, len);
    mark = file_mark (data, len);
    if (why)
        st = err_set (r->err, ST_INVALID, "%s: %s", file_title (r->file[file]), why);
    else if (strlen (data) < len)
        st = foreign (r, file, "not a text file");
    else
        st = read_text (r, file, data + mark, len - mark, formats);
    free (data);
    return st;
}

/* ---- all of them ---- */

static bool chooses_nothing (const char *value)
{
    char *end;

    return strcasecmp (value, "false") == 0 || strcasecmp (value, "none") == 0 ||
           (strtod (value, &end) == 0 && end != value && *end == '\0');
}

#define REPEATED_WITHIN 256

/* Was the same said a little before, as by a variable that another holds? */
static bool listed (const struct jobs *out, const char *file, const struct jobs_said *s)
{
    for (int i = out->n_unknown - 1; i >= 0 && i >= out->n_unknown - REPEATED_WITHIN;
         i--) {
        const struct jobs_unknown *u = &out->unknown[i];

        if (u->file == file && strcmp (u->key, s->key) == 0 &&
            strcmp (u->value, s->value) == 0)
            return true;
    }
    return false;
}

static enum status list_unknown (struct jobs_reading *r, struct jobs *out)
{
    for (int i = 0; i < r->n_said; i++) {
        const struct jobs_said *s = &r->said[i];
        const struct jobs_dialect *d = dialect_of (r, s);
        struct jobs_unknown one = {.file = r->file[s->file], .line = s->line};
        char fact[JOBS_FACT_MAX];

        /* A log lists every option, with its default: nobody chose those. */
        if (s->run >= 0 || jobs_fact_of (d, s->key, fact) || !jobs_matters (d, s->key) ||
            chooses_nothing (s->value) || listed (out, one.file, s))
            continue;
        one.key = strdup (s->key);
        one.value = strdup (s->value);
        if (!one.key || !one.value ||
            !array_grow (&out->unknown, (size_t) out->n_unknown, sizeof *out->unknown)) {
            free (one.key);
            free (one.value);
            return err_nomem (r->err);
        }
        text_clean_line (one.key);
        text_clean_line (one.value);
        out->unknown[out->n_unknown++] = one;
    }
    return ST_OK;
}

/* Whose words a file has, a log too; NULL: nobody's, as a model's. */
static const struct jobs_dialect *of_file (const struct jobs_reading *r, int file)
{
    const struct jobs_dialect *d = r->of_file[file];

    for (int k = 0; k < r->n_runs && !d; k++)
        if (r->run[k].file == file)
            d = r->run[k].dialect;
    return d;
}

/* May one job have words of both?  Others run on DeepSpeed. */
static bool akin (const struct jobs_dialect *a, const struct jobs_dialect *b)
{
    return a == b || a->like == b || b->like == a || a == &jobs_deepspeed ||
           b == &jobs_deepspeed;
}

static void note_unlike (struct jobs_reading *r)
{
    for (int i = 1; i < r->n_files; i++)
        for (int k = 0; k < i; k++) {
            const struct jobs_dialect *a = of_file (r, k), *b = of_file (r, i);

            if (!a || !b || akin (a, b))
                continue;
            notes_add (r->notes,
                       "%s is of %s, %s of %s: are they of one job? What both say is "
                       "taken together",
                       file_title (r->file[k]), a->name, file_title (r->file[i]),
                       b->name);
            return;
        }
}

static void note_runs (struct jobs_reading *r)
{
    for (int i = 0; i < r->n_runs; i++) {
        const struct jobs_run *run = &r->run[i];
        const char *file = file_title (r->file[run->file]);

        if (i > 0 && r->run[i - 1].file == run->file)
            notes_add (r->notes,
                       "%s: another run begins in this log (number %d): each is a "
                       "row, and the estimate is of the last",
                       file, i + 1);
        if (run->n_steps + run->n_tokens + run->n_samples == 0)
            notes_add (
                r->notes,
                "%s: no line with a step's time%s: there is no time to compare with",
                file,
                run->oom ? ", and it ran out of memory"
                         : ", as of a log that "
                           "was cut");
        else if (run->n_steps + run->n_tokens + run->n_samples < 3)
            notes_add (r->notes, "%s: %d lines with a step's time: too few to trust",
                       file, run->n_steps + run->n_tokens + run->n_samples);
    }
}

static void release (struct jobs_reading *r)
{
    jobs_forget_all (r);
    drop_from (r, 0, 0);
    free (r->said);
    free (r->run);
}

enum status jobs_read (const char *const *file, int n, const struct jobs_given *given,
                       struct jobs *out, struct notes *notes, struct error *err)
{
    struct jobs_reading r = {.file = file, .n_files = n, .notes = notes, .err = err};
    struct jobs jobs = {.n = 0};
    enum status st = n > JOBS_FILES_MAX
                         ? err_set (err, ST_INVALID, "more than %d files", JOBS_FILES_MAX)
                         : ST_OK;

    for (int i = 0; i < n && st == ST_OK; i++)
        st = read_file (&r, i, &jobs.formats);
    if (st == ST_OK) {
        note_unlike (&r);
        note_runs (&r);
    }
    for (int k = 0; k < r.n_runs && st == ST_OK; k++)
        st = make_job (&r, given, k, &jobs);
    if (st == ST_OK && r.n_runs == 0)
        st = make_job (&r, given, -1, &jobs);
    if (st == ST_OK)
        st = list_unknown (&r, &jobs);
    text_clean (&jobs.formats);
    release (&r);
    if (st == ST_OK)
        *out = jobs;
    else
        jobs_release (&jobs);
    return st;
}

void jobs_release (struct jobs *j)
{
    for (int i = 0; i < j->n; i++)
        for (int k = 0; k < JOBS_COLUMNS; k++)
            free (j->job[i].cell[k]);
    for (int i = 0; i < j->n_unknown; i++) {
        free (j->unknown[i].key);
        free (j->unknown[i].value);
    }
    free (j->job);
    free (j->unknown);
    text_free (&j->formats);
    *j = (struct jobs){0};
}
