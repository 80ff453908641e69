/* What readers of log lines share: numbers behind phrases, samples, runs. */
#include "jobs/jobs_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define SAMPLES_MAX 1000000

void jobs_sample (struct jobs_reading *r, struct jobs_samples *to, double value)
{
    if (!(value > 0) || value > 1e15 || to->n >= SAMPLES_MAX)
        return;
    if (array_grow (&to->x, (size_t) to->n, sizeof *to->x))
        to->x[to->n++] = value;
    else
        r->st = err_nomem (r->err);
}

/* "1.2K", "3G"; "MiB", "GB" and "TFLOP" are units of what the caller knows. */
static double thousands (const char *suffix)
{
    static const char letters[] = "KMGT";
    const char *at = *suffix ? strchr (letters, *suffix) : NULL;
    double by = 1;

    if (!at || (*suffix != 'K' && suffix[1] && strchr ("iBF", suffix[1])))
        return 1;
    for (const char *c = letters; c <= at; c++)
        by *= 1e3;
    return by;
}

bool jobs_after (const char *line, const char *phrase, double *x)
{
    const char *at = strstr (line, phrase);
    char digits[48], *end;
    double value;
    size_t n = 0;

    if (!at)
        return false;
    at += strlen (phrase);
    at += strspn (at, " \t:=|");
    for (; n < sizeof digits - 1 && *at &&
           (isdigit ((unsigned char) *at) || strchr (".,eE+-", *at));
         at++)
        if (*at != ',')
            digits[n++] = *at;
        else if (!isdigit ((unsigned char) at[1]))
            break;
    digits[n] = '\0';
    value = strtod (digits, &end);
    if (end == digits || !(value >= 0 && value < 1e18))
        return false;
    *x = value * thousands (at);
    return true;
}

void jobs_peak (const char *line, const char *phrase, double unit, double *peak_bytes)
{
    double x;

    if (jobs_after (line, phrase, &x))
        *peak_bytes = fmax (*peak_bytes, x * unit);
}

void jobs_printed (struct jobs_reading *r, const char *key, double value)
{
    char text[32];

    snprintf (text, sizeof text, "%.0f", value);
    for (int i = r->n_said - 1; i >= 0 && r->said[i].run == r->n_runs - 1; i--)
        if (strcmp (r->said[i].key, key) == 0 && strcmp (r->said[i].value, text) == 0)
            return; /* as every step's line says it */
    if (value < 1e15)
        THEN (r->st, jobs_say (r, r->number, key, text));
}

bool jobs_printed_after (struct jobs_reading *r, const char *line, const char *phrase,
                         const char *key)
{
    double x;
    bool is = jobs_after (line, phrase, &x);

    if (is)
        jobs_printed (r, key, x);
    return is;
}

struct jobs_run *jobs_begin_run (struct jobs_reading *r,
                                 const struct jobs_dialect *dialect)
{
    if (!array_grow (&r->run, (size_t) r->n_runs, sizeof *r->run)) {
        r->st = err_nomem (r->err);
        return NULL;
    }
    r->run[r->n_runs] =
        (struct jobs_run){.dialect = dialect, .iteration = -1, .file = r->at};
    return &r->run[r->n_runs++];
}

struct jobs_run *jobs_starting (struct jobs_reading *r, struct jobs_run *run)
{
    return run->iteration < 0 ? run : jobs_begin_run (r, NULL);
}

struct jobs_run *jobs_iteration (struct jobs_reading *r, struct jobs_run *run,
                                 const char *line, const char *phrase)
{
    double x;

    if (!jobs_after (line, phrase, &x))
        return run;
    /* Ranks that print side by side may be a step apart. */
    if (run->iteration > (long) x + 1)
        run = jobs_begin_run (r, run->dialect);
    if (run)
        run->iteration = (long) x;
    return run;
}
