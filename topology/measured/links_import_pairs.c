/* One link a line, comma between cells, the columns named in the first line.
 *
 * `src`,`dst` or `from`,`to` are a directed link; `a`,`b` or `node_a`,`node_b` one that is alike
 * both ways.  Rates: `gb_per_s`, `bandwidth_gb_per_s`, `GB/s`, `gbps`, `Gbit/s`, `busbw_GBs`,
 * `oop_busbw_GBs`; latencies: `latency_us`, `delay_ms` (one way).  With `bytes` and `oop_us` (or
 * `us`), several sizes of one link are one measurement: the rate is that of the largest, the
 * latency where the line through time over bytes meets zero.  With `gpus_per_node` and `op`, only
 * single GPUs' sendrecv counts: other rows tell what several links reach together.
 */
#include "topology/measured/links_import_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/stats.h"
#include "base/units.h"

enum { COLUMNS_MAX = 32 };

enum column { SRC, DST, A, B, RATE, LATENCY, BYTES, TIME, GPUS, OP, NONE };

static const struct {
    const char *name;
    enum column column;
    double unit;
} columns[] = {{"src", SRC, 0},
               {"dst", DST, 0},
               {"from", SRC, 0},
               {"to", DST, 0},
               {"a", A, 0},
               {"b", B, 0},
               {"node_a", A, 0},
               {"node_b", B, 0},
               {"gb_per_s", RATE, UNITS_GB},
               {"bandwidth_gb_per_s", RATE, UNITS_GB},
               {"GB/s", RATE, UNITS_GB},
               {"Gbit/s", RATE, 1.25e8},
               {"gbps", RATE, 1.25e8},
               {"busbw_GBs", RATE, UNITS_GB},
               {"oop_busbw_GBs", RATE, UNITS_GB},
               {"latency_us", LATENCY, UNITS_US},
               {"delay_ms", LATENCY, 1e-3},
               {"bytes", BYTES, 1},
               {"oop_us", TIME, UNITS_US},
               {"us", TIME, UNITS_US},
               {"gpus_per_node", GPUS, 1},
               {"op", OP, 0}};

struct form {
    int at[NONE]; /* place of each column, -1: none */
    double unit[NONE];
};

/* One line of the file. */
struct item {
    int a, b; /* endpoints */
    double rate, latency, bytes, time;
};

static bool read_form (struct form *f, char **word, int n)
{
    for (int c = 0; c < NONE; c++)
        f->at[c] = -1;
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
            if (strcmp (word[i], columns[k].name) == 0 && f->at[columns[k].column] < 0) {
                f->at[columns[k].column] = i;
                f->unit[columns[k].column] = columns[k].unit;
            }
    return ((f->at[SRC] >= 0 && f->at[DST] >= 0) || (f->at[A] >= 0 && f->at[B] >= 0)) &&
           (f->at[RATE] >= 0 || f->at[LATENCY] >= 0);
}

static bool matches (const char *text)
{
    char line[1024], *word[COLUMNS_MAX];
    struct form f;

    text = links_first_line (text);
    snprintf (line, sizeof line, "%.*s", (int) (strcspn (text, "\r\n") % sizeof line),
              text);
    return read_form (&f, word, text_cells (line, ',', LINKS_BLANKS, word, COLUMNS_MAX));
}

/* NAN where the column or its number is absent. */
static enum status cell (struct links_table *t, const struct form *f, char **word,
                         enum column c, double *x)
{
    *x = NAN;
    if (f->at[c] < 0 || links_absent (word[f->at[c]]))
        return ST_OK;
    if (!links_number (word[f->at[c]], x) || *x < 0 || (c == RATE && *x <= 0))
        return links_fail (t, "expected a number, found \"%.40s\"", word[f->at[c]]);
    *x *= f->unit[c];
    return ST_OK;
}

/* @return ST_OK with it->a < 0 for a row that is left out */
static enum status read_item (struct links_table *t, const struct form *f, char **word,
                              int n, struct item *it)
{
    bool directed = f->at[SRC] >= 0 && f->at[DST] >= 0;
    int place[2] = {f->at[directed ? SRC : A], f->at[directed ? DST : B]}, end[2];
    double gpus;

    it->a = -1;
    for (int c = 0; c < NONE; c++)
        if (f->at[c] >= n)
            return links_fail (t, "expected at least %d cells, found %d", f->at[c] + 1,
                               n);
    TRY (cell (t, f, word, GPUS, &gpus));
    if (gpus > 1 || (f->at[OP] >= 0 && strncmp (word[f->at[OP]], "sendrecv", 8) != 0))
        return ST_OK;
    for (int k = 0; k < 2; k++)
        TRY (links_table_place (t, word[place[k]], 0, &end[k]));
    if (end[0] == end[1])
        return links_fail (t, "a link from \"%.60s\" to itself", word[place[0]]);
    it->b = end[1];
    TRY (cell (t, f, word, RATE, &it->rate));
    TRY (cell (t, f, word, LATENCY, &it->latency));
    TRY (cell (t, f, word, BYTES, &it->bytes));
    TRY (cell (t, f, word, TIME, &it->time));
    it->a = end[0];
    return ST_OK;
}

static int by_link (const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int ends = order_ints (a, b, 2);

    return ends ? ends : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static enum status add (struct links_table *t, bool directed, const struct item *it,
                        enum links_quantity what, double x)
{
    return directed ? links_table_add (t, it->a, it->b, what, x)
                    : links_table_add_both (t, it->a, it->b, what, x);
}

/* The lines of one link, sorted by size. */
static enum status add_link (struct links_table *t, const struct form *f,
                             const struct item *it, int n, double *work)
{
    bool directed = f->at[SRC] >= 0 && f->at[DST] >= 0, sizes = f->at[BYTES] >= 0;
    const struct item *largest = &it[n - 1];
    double *bytes = work, *seconds = work + n;
    int k = 0;

    for (int i = 0; i < n; i++) {
        if (!isnan (it[i].latency))
            TRY (add (t, directed, &it[i], LINKS_LATENCY, it[i].latency));
        if (!isnan (it[i].bytes) && !isnan (it[i].time)) {
            bytes[k] = it[i].bytes;
            seconds[k++] = it[i].time;
        }
        if (sizes && it[i].bytes < largest->bytes)
            continue;
        if (!isnan (it[i].rate))
            TRY (add (t, directed, &it[i], LINKS_BANDWIDTH, it[i].rate));
        else if (f->at[RATE] >= 0)
            for (int way = 0; way < (directed ? 1 : 2); way++)
                TRY (links_table_failed (t, way ? it[i].b : it[i].a,
                                         way ? it[i].a : it[i].b,
                                         "the file has no number"));
    }

    struct stats_line fit = stats_fit_line (bytes, seconds, k);

    return f->at[LATENCY] < 0 && fit.groups >= 2 && fit.intercept > 0
               ? add (t, directed, largest, LINKS_LATENCY, fit.intercept)
               : ST_OK;
}

static enum status add_links (struct links_table *t, const struct form *f,
                              struct item *it, int n)
{
    double *work = malloc ((2 * (size_t) n + 1) * sizeof *work);
    enum status st = work ? ST_OK : err_nomem (t->err);

    if (n > 0)
        qsort (it, (size_t) n, sizeof *it, by_link);
    for (int i = 0, end; i < n && st == ST_OK; i = end) {
        for (end = i; end < n && it[end].a == it[i].a && it[end].b == it[i].b; end++)
            ;
        st = add_link (t, f, it + i, end - i, work);
    }
    free (work);
    return st;
}

static enum status read (struct links_table *t)
{
    struct form f;
    struct item *item = NULL;
    char *word[COLUMNS_MAX];
    int n = 0, left_out = 0;
    bool header = false;
    enum status st = ST_OK;

    for (char *line; st == ST_OK && (line = links_line (t));) {
        if (line[0] == '#' && t->source.len == 0)
            text_add (&t->source, "%.400s", line + 1 + strspn (line + 1, " "));
        if (line[0] == '#' || !*line)
            continue;

        int words = text_cells (line, ',', LINKS_BLANKS, word, COLUMNS_MAX);

        if (!header) {
            header = true;
            if (!read_form (&f, word, words))
                st = links_fail (
                    t,
                    "expected columns src,dst or from,to or a,b and a rate or a latency");
            continue;
        }
        if (!array_grow (&item, n, sizeof *item)) {
            st = err_nomem (t->err);
            break;
        }
        st = read_item (t, &f, word, words, &item[n]);
        if (st == ST_OK && item[n].a >= 0)
            n++;
        else
            left_out++;
    }
    THEN (st, add_links (t, &f, item, n));
    if (st == ST_OK && left_out > 0)
        notes_add (
            t->notes,
            "%s: %d rows are left out: several GPUs per node, or another operation than "
            "sendrecv",
            t->file, left_out);
    free (item);
    return st;
}

const struct links_format links_format_pairs = {
    .name = "pairs", .matches = matches, .read = read};
