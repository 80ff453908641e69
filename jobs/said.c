/* Statements of files, and the facts that come of them. */
#include "jobs/jobs_private.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

enum status jobs_refuse (struct jobs_reading *r, int line, const char *fmt, ...)
{
    char why[sizeof r->err->text];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (why, sizeof why, fmt, ap);
    va_end (ap);
    return err_set (r->err, ST_INVALID, "%s: line %d: %s", file_title (r->file[r->at]),
                    line, why);
}

enum status jobs_say (struct jobs_reading *r, int line, const char *key,
                      const char *value)
{
    struct jobs_said one = {
        .file = r->at, .line = line, .run = r->log ? r->n_runs - 1 : -1};

    if (r->n_said >= JOBS_SAID_MAX * r->n_files)
        return jobs_refuse (r, line, "more than %d options", JOBS_SAID_MAX);
    one.key = strdup (key);
    one.value = strndup (value, JOBS_VALUE_MAX);
    if (!one.key || !one.value ||
        !array_grow (&r->said, (size_t) r->n_said, sizeof *r->said)) {
        FREE_ALL (one.key, one.value);
        return err_nomem (r->err);
    }
    r->said[r->n_said++] = one;
    return ST_OK;
}

struct jobs_fact *jobs_find (const struct jobs_reading *r, const char *name)
{
    for (int i = 0; i < r->n_facts; i++)
        if (strcmp (r->fact[i].name, name) == 0)
            return &r->fact[i];
    return NULL;
}

/* 8, 8.0 and "8" are one number; words are compared whatever their case. */
static bool same (const char *a, const char *b)
{
    double x, y;

    if (text_number (a, &x) && text_number (b, &y))
        return x == y;
    return strcasecmp (a, b) == 0;
}

static void place (const struct jobs_reading *r, int file, int line, struct text *out)
{
    text_add (out, "%s", file < 0 ? "the command line" : file_title (r->file[file]));
    if (line > 0)
        text_add (out, ":%d", line);
}

/* "a.sh:12 says tp 4, run.log:3 says 8: the log holds" */
static void note_contradiction (const struct jobs_reading *r, const struct jobs_fact *old,
                                const char *value, int file, int line, bool log)
{
    struct text t = {0};

    place (r, old->file, old->line, &t);
    text_add (&t, " says %s %.60s, ", old->name, old->value);
    place (r, file, line, &t);
    text_add (&t, " says %.60s: %s", value,
              log ? "what the log printed is what ran" : "the later file holds");
    notes_add (r->notes, "%s", text_str (&t));
    text_free (&t);
}

void jobs_drop (struct jobs_reading *r, int said, int runs)
{
    for (; r->n_said > said; r->n_said--)
        FREE_ALL (r->said[r->n_said - 1].key, r->said[r->n_said - 1].value);
    for (; r->n_runs > runs; r->n_runs--) {
        struct jobs_run *run = &r->run[r->n_runs - 1];

        FREE_ALL (run->steps_s.x, run->tokens_per_s.x, run->samples_per_s.x);
        for (int k = 0; k < JOBS_TIMERS; k++)
            free (run->timer_s[k].x);
    }
}

/* "8_192", as Python, TOML and YAML spell whole numbers, to "8192": groups of three digits, so that
 * a date stays what it is. */
static void join_digits (char *s)
{
    size_t first = strspn (s, "0123456789");
    char *to = s + first;

    for (const char *at = to; *at; at += 4)
        if (first == 0 || first > 3 || *at != '_' || strspn (at + 1, "0123456789") != 3)
            return;
    for (const char *at = to; *at; at++)
        if (*at != '_')
            *to++ = *at;
    *to = '\0';
}

void jobs_set (struct jobs_reading *r, const char *name, const char *value, int file,
               int line, bool log)
{
    struct jobs_fact *old = jobs_find (r, name);
    char *own = NULL, *copy;

    if (r->st != ST_OK)
        return;
    if (!(copy = strdup (value)) ||
        (!old && (!(own = strdup (name)) ||
                  !array_grow (&r->fact, (size_t) r->n_facts, sizeof *r->fact)))) {
        FREE_ALL (own, copy);
        r->st = err_nomem (r->err);
        return;
    }
    join_digits (copy);
    if (old && !same (old->value, copy) && old->file >= 0 && file >= 0 &&
        (old->file != file || (log && !old->log)))
        note_contradiction (r, old, copy, file, line, log);
    if (!old) {
        old = &r->fact[r->n_facts++];
        *old = (struct jobs_fact){.name = own};
    }
    free (old->value);
    old->value = copy;
    old->file = file;
    old->line = line;
    old->log = log;
}

void jobs_override (struct jobs_reading *r, const char *name, const char *value)
{
    jobs_set (r, name, value, -1, 0, false);
}

void jobs_default (struct jobs_reading *r, const char *name, const char *value)
{
    if (!jobs_find (r, name))
        jobs_override (r, name, value);
}

void jobs_default_flag (struct jobs_reading *r, const char *name, bool is)
{
    jobs_default (r, name, is ? "true" : "false");
}

void jobs_default_int (struct jobs_reading *r, const char *name, long value)
{
    char text[32];

    snprintf (text, sizeof text, "%ld", value);
    jobs_default (r, name, text);
}

void jobs_defaults (struct jobs_reading *r, const char *list)
{
    char word[JOBS_WORD_MAX];

    while (jobs_next_word (&list, word)) {
        char *fact = strchr (word, '?'), *value = strchr (word, '=');

        *value++ = '\0';
        if (fact)
            *fact++ = '\0';
        if (!fact || jobs_true (r, word))
            jobs_default (r, fact ? fact : word, value);
    }
}

void jobs_forget (struct jobs_reading *r, const char *name)
{
    struct jobs_fact *f = jobs_find (r, name);

    if (!f)
        return;
    FREE_ALL (f->name, f->value);
    *f = r->fact[--r->n_facts];
}

const char *jobs_value (const struct jobs_reading *r, const char *name)
{
    const struct jobs_fact *f = jobs_find (r, name);

    return f ? f->value : NULL;
}

bool jobs_chooses (const char *value)
{
    static const char *const nothing[] = {"",   "none",  "null", "[]",
                                          "{}", "false", "no",   "off"};
    char *end;

    for (size_t i = 0; value && i < COUNT_OF (nothing); i++)
        if (strcasecmp (value, nothing[i]) == 0)
            return false;
    return value && (strtod (value, &end) != 0 || *end != '\0');
}

bool jobs_true (const struct jobs_reading *r, const char *name)
{
    return jobs_chooses (jobs_value (r, name));
}

bool jobs_is (const struct jobs_reading *r, const char *name, const char *word)
{
    const char *v = jobs_value (r, name);

    return v && strcasecmp (v, word) == 0;
}

long jobs_int (const struct jobs_reading *r, const char *name, long absent)
{
    const char *v = jobs_value (r, name);
    double x;

    if (!v || !text_number (v, &x) || !(x >= 0 && x <= 1 << 30) || x != (double) (long) x)
        return absent;
    return (long) x;
}

long jobs_layers (const struct jobs_reading *r, long absent)
{
    return jobs_int (r, "layers", r->has_model ? r->model.layers : absent);
}

void jobs_forget_all (struct jobs_reading *r)
{
    for (int i = 0; i < r->n_facts; i++)
        FREE_ALL (r->fact[i].name, r->fact[i].value);
    free (r->fact);
    r->fact = NULL;
    r->n_facts = 0;
}
