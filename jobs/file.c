/* One file of a job: what it is, and what it states. */
#include "jobs/jobs_private.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

#define KINDS                                                                         \
    "looked for: a command line or script of Megatron-LM or Hugging Face's Trainer, " \
    "a log of Megatron-LM, NeMo, TorchTitan, DeepSpeed or nanotron, YAML of "         \
    "Megatron-LM, NeMo, Megatron Bridge, nanotron or the Trainer, TOML of "           \
    "TorchTitan, JSON of DeepSpeed (ds_config) or of a model (config.json)"

static bool ends_with (const char *s, const char *end)
{
    size_t n = strlen (s), k = strlen (end);

    return n > k && strcasecmp (s + n - k, end) == 0;
}

/* Does a line begin with one of the words, which have blanks between them? */
static bool has_line (const char *text, const char *words)
{
    char word[JOBS_WORD_MAX];

    for (const char *s = text; s; s = strchr (s, '\n')) {
        s += *s == '\n';
        for (const char *list = words; jobs_next_word (&list, word);)
            if (strncmp (s, word, strlen (word)) == 0)
                return true;
    }
    return false;
}

static enum status foreign (struct jobs_reading *r, const char *as)
{
    return err_set (r->err, ST_INVALID, "%s: %s; " KINDS, file_title (r->file[r->at]),
                    as);
}

static void name_format (struct jobs_reading *r, const char *dialect, const char *what)
{
    text_add (&r->formats, "%s%s: %s%s%s", r->formats.len ? ", " : "",
              file_name (file_title (r->file[r->at])), dialect, *dialect ? " " : "",
              what);
}

/* The dialect with most known keys among those given takes the file. */
static enum status adopt (struct jobs_reading *r, int from, const char *what,
                          const struct jobs_dialect *const *list)
{
    const struct jobs_dialect *best = NULL;
    int most = 0;

    for (; *list; list++) {
        char fact[JOBS_WORD_MAX];
        int n = 0;

        for (int i = from; i < r->n_said; i++)
            n += jobs_fact_of (*list, r->said[i].key, fact);
        if (n > most) {
            most = n;
            best = *list;
        }
    }
    if (!best) {
        char why[96];

        snprintf (why, sizeof why, "%s without an option that is known", what);
        return foreign (r, why);
    }
    r->of_file[r->at] = best;
    name_format (r, best->name, what);
    return ST_OK;
}

static enum status read_json (struct jobs_reading *r, const char *data)
{
    static const struct jobs_dialect *const list[] = {&jobs_deepspeed, &jobs_trainer,
                                                      NULL};
    const char *path = r->file[r->at], *name = file_title (path);
    json_t *doc;
    int from = r->n_said;
    enum status st;

    TRY (json_parse_config (name, data, &doc, r->err));
    if (json_object_get (doc, "model_type") || json_object_get (doc, "architectures") ||
        json_object_get (doc, "hidden_size") || json_object_get (doc, "n_embd")) {
        st = strcmp (path, "-") == 0
                 ? workload_model_from_json (doc, name, "model", &r->model, r->notes,
                                             r->err)
                 : workload_model_read (path, &r->model, r->notes, r->err);
        r->has_model = st == ST_OK;
        if (st == ST_OK)
            name_format (r, "", "model");
    } else {
        st = jobs_json_read (r, doc);
        THEN (st, adopt (r, from, "JSON", list));
    }
    json_decref (doc);
    return st;
}

static bool is_script (const char *path, const char *data)
{
    const char *first = data + strspn (data, " \t\r\n");

    return ends_with (path, ".sh") || ends_with (path, ".sbatch") ||
           ends_with (path, ".slurm") || has_line (data, "#! #SBATCH") ||
           (strncmp (first, "--", 2) == 0 && isalpha ((unsigned char) first[2]));
}

/* A log, else a script. */
static enum status read_other (struct jobs_reading *r, char *data, size_t len)
{
    static const struct jobs_dialect *const list[] = {&jobs_megatron, &jobs_trainer,
                                                      NULL};
    int from = r->n_said, runs = r->n_runs;
    bool known = false;
    char *copy;
    enum status st;

    if (!is_script (r->file[r->at], data)) {
        if (!(copy = malloc (len + 1)))
            return err_nomem (r->err);
        memcpy (copy, data, len + 1);
        r->log = true;
        st = jobs_log_read (r, copy, &known);
        r->log = false;
        free (copy);
        TRY (st);
    }
    if (known) {
        const struct jobs_dialect *d = r->run[r->n_runs - 1].dialect;

        name_format (r, d ? d->name : "", "log");
        return ST_OK;
    }
    jobs_drop (r, from, runs);
    TRY (jobs_shell_read (r, data));
    return adopt (r, from, "script", list);
}

static enum status read_text (struct jobs_reading *r, char *data, size_t len)
{
    static const struct jobs_dialect *const
        yaml[] = {&jobs_nemo, &jobs_nanotron, &jobs_trainer, NULL},
        *const args[] = {&jobs_megatron, NULL}, *const toml[] = {&jobs_torchtitan, NULL};
    static const char yaml_lines[] =
        "parallelism: model: trainer: tokens: train: MODEL_ARGS: model_name_or_path: "
        "base_model: distributed_type:";
    const char *path = r->file[r->at];
    size_t blank = strspn (data, " \t\r\n");
    int from = r->n_said;

    if (blank == len)
        return foreign (r, "an empty file");
    if (data[blank] == '{')
        return read_json (r, data);
    if (ends_with (path, ".toml") ||
        has_line (data, "[model] [training] [parallelism] [job]")) {
        TRY (jobs_toml_read (r, data));
        return adopt (r, from, "TOML", toml);
    }
    if (ends_with (path, ".yaml") || ends_with (path, ".yml") ||
        (has_line (data, yaml_lines) && !is_script (path, data))) {
        TRY (jobs_yaml_read (r, data, len));
        return adopt (r, from, "YAML", has_line (data, "MODEL_ARGS:") ? args : yaml);
    }
    return read_other (r, data, len);
}

enum status jobs_file_read (struct jobs_reading *r)
{
    char *data = NULL;
    size_t len = 0, mark;
    enum status st;

    TRY (file_read (r->file[r->at], &data, &len, r->err));
    mark = file_mark (data, len);
    st = read_text (r, data + mark, len - mark);
    free (data);
    return st;
}
