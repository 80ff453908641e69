/* What the importers of links share: the table, and cutting texts into lines and words. */
#include "topology/measured/links_import_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/units.h"
#include "topology/links_doc.h"
#include "topology/topology.h"

#define ENDS_MAX 4096 /* the document holds matrices over them */
#define COUNTERS_MAX 262144

/* ---- the table ---- */

static enum status too_many (const struct links_table *t, int most, const char *what)
{
    return err_set (t->err, ST_INVALID, "%s: expected at most %d %s, found more", t->file,
                    most, what);
}

enum status links_table_node (struct links_table *t, const char *name, int *node)
{
    char clean[TOPOLOGY_NAME_MAX + 1];
    int i = t->n_nodes - 1;

    topology_links_name (name, clean);
    while (i >= 0 && strcmp (t->node[i].name, clean) != 0)
        i--;
    if (i < 0) {
        if (t->n_nodes == ENDS_MAX)
            return too_many (t, ENDS_MAX, "nodes");
        if (!array_grow (&t->node, t->n_nodes, sizeof *t->node))
            return err_nomem (t->err);
        i = t->n_nodes;
        t->node[i] = (struct links_node){.name = strdup (clean), .gpus = 1};
        if (!t->node[i].name)
            return err_nomem (t->err);
        t->n_nodes++;
    }
    *node = i;
    return ST_OK;
}

enum status links_table_end (struct links_table *t, int node, int gpu, int *end)
{
    int i = t->n_ends - 1;

    while (i >= 0 && (t->end[i].node != node || t->end[i].gpu != gpu))
        i--;
    if (i < 0) {
        if (t->n_ends == ENDS_MAX)
            return too_many (t, ENDS_MAX, "GPUs");
        if (!array_grow (&t->end, t->n_ends, sizeof *t->end))
            return err_nomem (t->err);
        i = t->n_ends++;
        t->end[i] = (struct links_end){node, gpu, i};
        if (t->node[node].gpus <= gpu)
            t->node[node].gpus = gpu + 1;
    }
    *end = i;
    return ST_OK;
}

enum status links_table_place (struct links_table *t, const char *name, int gpu, int *end)
{
    int node;

    TRY (links_table_node (t, name, &node));
    return links_table_end (t, node, gpu, end);
}

static enum status add_sample (struct links_table *t, struct links_sample s)
{
    if (!array_grow (&t->sample, t->n_samples, sizeof *t->sample))
        return err_nomem (t->err);
    t->sample[t->n_samples++] = s;
    return ST_OK;
}

enum status links_table_add (struct links_table *t, int src, int dst,
                             enum links_quantity what, double value)
{
    /* What a cluster file may hold. */
    if ((what == LINKS_BANDWIDTH && !(value > 0 && value <= 1e9 * UNITS_GB)) ||
        (what == LINKS_LATENCY && !(value >= 0 && value <= 1e9 * UNITS_US)))
        return err_set (t->err, ST_INVALID, "%s: %s %g %s is impossible for a link",
                        t->file,
                        what == LINKS_BANDWIDTH ? "a bandwidth of" : "a latency of",
                        value / (what == LINKS_BANDWIDTH ? UNITS_GB : UNITS_US),
                        what == LINKS_BANDWIDTH ? "GB/s" : "us");
    return add_sample (t, (struct links_sample){src, dst, what, value, NULL});
}

enum status links_table_add_both (struct links_table *t, int a, int b,
                                  enum links_quantity what, double value)
{
    TRY (links_table_add (t, a, b, what, value));
    return links_table_add (t, b, a, what, value);
}

enum status links_table_failed (struct links_table *t, int src, int dst,
                                const char *reason)
{
    return add_sample (t, (struct links_sample){src, dst, LINKS_FAILED, 0, reason});
}

enum status links_table_product (struct links_table *t, int node, const char *product)
{
    if (t->node[node].product || !*product)
        return ST_OK;
    t->node[node].product = strdup (product);
    return t->node[node].product ? ST_OK : err_nomem (t->err);
}

/* ---- counters ---- */

/* What DCGM prints for "not known", and values near it, is no count. */
#define COUNT_MAX 9.0e18

/* The entry of a place, appended where there is none. */
static enum status counter_entry (struct links_table *t, const struct links_counter *at,
                                  json_t **one)
{
    int n;

    if (!t->counters)
        t->counters = json_array ();
    if (!t->counter_at)
        t->counter_at = json_object ();
    n = json_number_of (t->counter_at, "%s %d %s %s", at->node ? at->node : "", at->gpu,
                        at->uuid ? at->uuid : "", at->port ? at->port : "");
    if (n < 0)
        return err_nomem (t->err);
    if (n >= COUNTERS_MAX)
        return too_many (t, COUNTERS_MAX, "ports");
    *one = json_array_get (t->counters, (size_t) n);
    if (*one)
        return ST_OK;
    *one = json_pack ("{s:s*, s:s*, s:s*, s:{}}", "node", at->node, "uuid", at->uuid,
                      "port", at->port, "counts");
    if (at->gpu >= 0)
        json_object_set_new (*one, "gpu", json_integer (at->gpu));
    return json_array_append_new (t->counters, *one) == 0 ? ST_OK : err_nomem (t->err);
}

enum status links_table_count (struct links_table *t, const struct links_counter *at,
                               const char *name, const char *word)
{
    const struct topology_counter *kind = topology_counter_spelled (name);
    char node[TOPOLOGY_NAME_MAX + 1];
    struct links_counter clean = *at;
    json_t *one = NULL, *counts;
    double x;

    if (!kind || links_absent (word))
        return ST_OK;
    if (!links_number (word, &x) || x < 0)
        return links_fail (t, "%s: expected a count, found \"%.40s\"", name, word);
    if (x > COUNT_MAX)
        return ST_OK;
    if (at->node) {
        topology_links_name (at->node, node);
        clean.node = node;
    }
    TRY (counter_entry (t, &clean, &one));
    counts = json_object_get (one, "counts");
    if (x >= json_member_number (counts, kind->name))
        json_object_set_new (counts, kind->name,
                             x < 1e15 ? json_integer ((json_int_t) x) : json_real (x));
    return ST_OK;
}

/* ---- lines and words ---- */

char *links_line (struct links_table *t)
{
    char *line = t->next;

    if (!line || !*line)
        return NULL;

    size_t n = strcspn (line, "\n");

    t->next = line[n] ? line + n + 1 : NULL;
    line[n] = '\0';
    if (n > 0 && line[n - 1] == '\r')
        line[n - 1] = '\0';
    t->line++;
    return line;
}

const char *links_first_line (const char *text)
{
    while (*text == '#' || *text == '\n' || *text == '\r') {
        text += strcspn (text, "\n");
        text += *text == '\n';
    }
    return text;
}

bool links_number (const char *word, double *x)
{
    /* No hexadecimal, no "inf" or "nan". */
    return strspn (word, "0123456789.eE+-") == strlen (word) && text_number (word, x);
}

bool links_absent (const char *word)
{
    static const char *const absent[] = {"", "nan", "-nan", "N/A", "-", "null", "None"};

    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (strcasecmp (word, absent[i]) == 0)
            return true;
    return false;
}

bool links_whole (const char *word, long lo, long hi, long *n)
{
    return isdigit ((unsigned char) word[0]) && text_whole (word, lo, hi, n);
}

/* ---- tables with numbered rows and columns ---- */

enum status links_grid_read (struct links_table *t, char *header, int skip,
                             struct links_grid *grid)
{
    char *word[LINKS_GRID_MAX + 2];
    int n = text_words (header, word, LINKS_GRID_MAX + 2) - skip;
    long index;

    for (int j = 0; j < n; j++)
        if (!links_whole (word[skip + j], j, j, &index))
            return links_fail (t, "expected column %d of a matrix, found \"%.40s\"", j,
                               word[skip + j]);
    if (n < 1 || n > LINKS_GRID_MAX)
        return links_fail (t, "expected the columns of a matrix, 0 to %d",
                           LINKS_GRID_MAX - 1);
    links_grid_free (grid);
    grid->n = n;
    if (!(grid->v = malloc ((size_t) n * (size_t) n * sizeof *grid->v)))
        return err_nomem (t->err);
    for (int i = 0; i < n; i++) {
        char *line = links_line (t);
        int words = line ? text_words (line, word, LINKS_GRID_MAX + 2) : 0;

        if (words != n + 1 || !links_whole (word[0], i, i, &index))
            return links_fail (t, "expected row %d of a matrix of %d, found %s", i, n,
                               line ? "something else" : "the end of the file");
        for (int j = 0; j < n; j++) {
            double *v = &grid->v[i * n + j];

            *v = NAN;
            if (!links_absent (word[j + 1]) && !links_number (word[j + 1], v))
                return links_fail (t, "expected a number, found \"%.40s\"", word[j + 1]);
        }
    }
    return ST_OK;
}

enum status links_grid_add (struct links_table *t, const struct links_grid *g,
                            const int *end, enum links_quantity what, double unit,
                            bool row_sends)
{
    for (int i = 0; i < g->n; i++)
        for (int j = 0; j < g->n; j++) {
            double x = g->v[i * g->n + j] * unit;

            if (i != j && x > 0)
                TRY (links_table_add (t, end[row_sends ? i : j], end[row_sends ? j : i],
                                      what, x));
        }
    return ST_OK;
}

void links_grid_free (struct links_grid *g)
{
    free (g->v);
    *g = (struct links_grid){0};
}
