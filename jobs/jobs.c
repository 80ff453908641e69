/* Files of a job: what they say together. */
#include "jobs/jobs_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

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

/* What any log may name: the product, and its memory. */
static bool is_printed_gpu (const struct jobs_said *s)
{
    return s->run >= 0 &&
           (strcmp (s->key, "gpu") == 0 || strcmp (s->key, "gpu_mem_gb") == 0);
}

static void state (struct jobs_reading *r, const struct jobs_said *s)
{
    const struct jobs_dialect *d = dialect_of (r, s);
    char fact[JOBS_WORD_MAX];
    const char *value = referred (r, s);

    if (is_printed_gpu (s))
        snprintf (fact, sizeof fact, "%s", s->key);
    else if (!jobs_fact_of (d, s->key, fact))
        return;
    if (!value) {
        notes_add (r->notes, "%s:%d: %.60s: %.60s cannot be evaluated",
                   file_title (r->file[s->file]), s->line, s->key, s->value);
        return;
    }
    if (strcmp (s->value, "True") == 0 || strcmp (s->value, "False") == 0)
        s->value[0] = (char) tolower ((unsigned char) s->value[0]);
    jobs_set (r, fact, value, s->file, s->line, s->run >= 0);
}

/* Numbers that are none, as of a variable that is set elsewhere, count as not stated. */
static void forget_words (struct jobs_reading *r)
{
    const char *numbers = "layers hidden heads kv_heads ffn seq vocab gpus nodes "
                          "gpus_per_node tp pp vpp dp "
                          "cp ep micro_batch global_batch accumulation";
    char name[JOBS_WORD_MAX];

    while (jobs_next_word (&numbers, name)) {
        const struct jobs_fact *f = jobs_find (r, name);
        double x;

        if (!f || strcasecmp (f->value, "none") == 0 || text_number (f->value, &x))
            continue;
        notes_add (r->notes,
                   "%s:%d: %s is no number (\"%.40s\"): it counts as not stated",
                   file_title (r->file[f->file]), f->line, name, f->value);
        jobs_forget (r, name);
    }
}

/* Each dialect's own conclusions, once. */
static void finish (struct jobs_reading *r, int run)
{
    static const struct jobs_dialect *const order[] = {&jobs_nanotron,  &jobs_torchtitan,
                                                       &jobs_nemo,      &jobs_trainer,
                                                       &jobs_deepspeed, &jobs_megatron};

    for (size_t i = 0; i < COUNT_OF (order) && r->st == ST_OK; i++) {
        bool used = (run >= 0 && r->run[run].dialect == order[i]) ||
                    (order[i] == &jobs_deepspeed && /* by a Trainer's own words */
                     jobs_is (r, "framework", "deepspeed"));

        for (int f = 0; f < r->n_files; f++)
            used = used || r->of_file[f] == order[i];
        if (used)
            order[i]->finish (r);
    }
}

/* Is one of the words within it, whatever the case? */
static bool has_one (const char *s, const char *words)
{
    char word[JOBS_WORD_MAX];

    while (s && jobs_next_word (&words, word))
        if (strcasestr (s, word))
            return true;
    return false;
}

/* An optimizer's state is Adam's, but where a row has its name and a runs file's reader knows how
 * much it keeps (docs/runs.md). */
static void note_optimizer (struct jobs_reading *r)
{
    const char *name = jobs_value (r, "optimizer");
    bool adam = has_one (name, "adam");

    if (!name || has_one (jobs_value (r, "optim"), "adafactor lion sgd momentum") ||
        (adam && !has_one (name, "4bit torch_8bit fp8 galore apollo mini")))
        return;
    notes_add (r->notes, "the optimizer is %.40s: the estimate has Adam's states%s", name,
               adam ? " in full" : "");
    jobs_forget (r, "optim"); /* a row that names one nobody knows is refused */
}

/* @param run  of the logs; -1: there is none */
static enum status make_job (struct jobs_reading *r, const struct jobs_given *given,
                             int run, struct jobs *out)
{
    struct workload_model model = r->model;
    bool has_model = r->has_model;

    for (int log = 0; log < 2; log++)
        for (int i = 0; i < r->n_said; i++)
            if (log ? run >= 0 && r->said[i].run == run : r->said[i].run < 0)
                state (r, &r->said[i]);
    forget_words (r);
    finish (r, run);
    note_optimizer (r);
    if (!array_grow (&out->job, (size_t) out->n, sizeof *out->job))
        r->st = err_nomem (r->err);
    THEN (r->st,
          jobs_row (r, given, run >= 0 ? &r->run[run] : NULL, &out->job[out->n++]));
    jobs_forget_all (r);
    r->model = model;
    r->has_model = has_model;
    return r->st;
}

/* ---- all of them ---- */

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
        char fact[JOBS_WORD_MAX];

        /* A log lists every option, with its default: nobody chose those. */
        if (s->run >= 0 || jobs_fact_of (d, s->key, fact) || !jobs_matters (d, s->key) ||
            !jobs_chooses (s->value) || listed (out, one.file, s))
            continue;
        one.key = strdup (s->key);
        one.value = strdup (s->value);
        if (!one.key || !one.value ||
            !array_grow (&out->unknown, (size_t) out->n_unknown, sizeof *out->unknown)) {
            FREE_ALL (one.key, one.value);
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
        int lines = run->steps_s.n + run->tokens_per_s.n + run->samples_per_s.n;

        if (i > 0 && r->run[i - 1].file == run->file)
            notes_add (r->notes,
                       "%s: another run begins in this log (number %d): each is a "
                       "row, and the estimate is of the last",
                       file, i + 1);
        if (lines == 0)
            notes_add (
                r->notes,
                "%s: no line with a step's time%s: there is no time to compare with",
                file,
                run->oom ? ", and it ran out of memory" : ", as of a log that was cut");
        else if (lines < 3)
            notes_add (r->notes, "%s: %d lines with a step's time: too few to trust",
                       file, lines);
    }
}

enum status jobs_read (const char *const *file, int n, const struct jobs_given *given,
                       struct jobs *out, struct notes *notes, struct error *err)
{
    struct jobs_reading r = {.file = file, .n_files = n, .notes = notes, .err = err};
    struct jobs jobs = {.n = 0};
    enum status st = n > JOBS_FILES_MAX
                         ? err_set (err, ST_INVALID, "more than %d files", JOBS_FILES_MAX)
                         : ST_OK;

    for (; r.at < n && st == ST_OK; r.at++)
        st = jobs_file_read (&r);
    if (st == ST_OK) {
        note_unlike (&r);
        note_runs (&r);
    }
    for (int k = 0; k < r.n_runs && st == ST_OK; k++)
        st = make_job (&r, given, k, &jobs);
    if (st == ST_OK && r.n_runs == 0)
        st = make_job (&r, given, -1, &jobs);
    THEN (st, list_unknown (&r, &jobs));
    text_clean (&r.formats);
    jobs.formats = r.formats;
    jobs_drop (&r, 0, 0);
    FREE_ALL (r.said, r.run);
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
    for (int i = 0; i < j->n_unknown; i++)
        FREE_ALL (j->unknown[i].key, j->unknown[i].value);
    FREE_ALL (j->job, j->unknown);
    text_free (&j->formats);
    *j = (struct jobs){0};
}
