#include "base/csv.h"

#include <csv.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/memory.h"

#define COLUMNS_MAX 4096

struct reading {
    struct csv_table *t;
    int column; /* of the current row */
    int line;   /* rows seen, the header counted */
    bool failed;
};

static bool push (char ***list, int *n, const char *text, size_t len)
{
    char *copy = strndup (text ? text : "", len);

    if (!copy || !array_grow (list, *n, sizeof **list)) {
        free (copy);
        return false;
    }
    (*list)[(*n)++] = copy;
    return true;
}

static void on_cell (void *text, size_t len, void *context)
{
    struct reading *r = context;

    if (r->failed || r->column >= COLUMNS_MAX)
        return;
    r->column++;
    if (r->line == 0)
        r->failed = !push (&r->t->header, &r->t->columns, text, len);
    else if (r->column <= r->t->columns)
        r->failed = !push (&r->t->cell, &r->t->cells, text, len);
}

/* Note how many cells the row had, and give it as many as the header. */
static bool end_row (struct reading *r)
{
    struct csv_table *t = r->t;

    if (!array_grow (&t->found, t->rows, sizeof *t->found))
        return false;
    t->found[t->rows++] = r->column;
    for (int i = r->column; i < t->columns; i++)
        if (!push (&t->cell, &t->cells, "", 0))
            return false;
    return true;
}

/* The line under the header of a table between bars, "|---|:--:|", is none of its rows. */
static bool drop_rule (struct reading *r)
{
    struct csv_table *t = r->t;
    int first = t->cells - (r->column < t->columns ? r->column : t->columns);
    bool rule = t->separator == '|' && r->line == 1;

    for (int i = first; i < t->cells && rule; i++)
        rule = t->cell[i][strspn (t->cell[i], "-:")] == '\0';
    while (rule && t->cells > first)
        free (t->cell[--t->cells]);
    return rule;
}

static void on_row (int end, void *context)
{
    struct reading *r = context;

    (void) end;
    if (r->line > 0 && !r->failed && !drop_rule (r))
        r->failed = !end_row (r);
    r->line++;
    r->column = 0;
}

/* With its end */
static size_t line_len (const char *data, size_t len)
{
    const char *end = memchr (data, '\n', len);

    return end ? (size_t) (end - data) + 1 : len;
}

/* Spreadsheets of some languages write semicolons, and tables that are copied from pages have tabs:
 * so it is where the header has one of these and no comma.  Markdown's stand between bars. */
static char separator_of (const char *data, size_t len)
{
    size_t n = line_len (data, len);

    return n > 0 && data[0] == '|'  ? '|'
           : memchr (data, ',', n)  ? ','
           : memchr (data, ';', n)  ? ';'
           : memchr (data, '\t', n) ? '\t'
                                    : ',';
}

/* "sep=;", a first line that tells Excel of the separator: its length, or 0 where it is none. */
static size_t excels_line (const char *data, size_t len, char *separator)
{
    size_t n = line_len (data, len);

    if (n < 6 || n > 7 || strncasecmp (data, "sep=", 4) != 0 || !strchr ("\r\n", data[5]))
        return 0;
    *separator = data[4];
    return n;
}

static int cells_of (const char *line, size_t len, char separator)
{
    bool quoted = false;
    int n = 1;

    for (size_t i = 0; i < len; i++) {
        quoted ^= line[i] == '"';
        n += !quoted && line[i] == separator;
    }
    return n;
}

/* Where the header begins, behind comments.  It may begin with a # itself, and then has as many
 * cells as the row below it. */
static size_t header_at (const char *data, size_t len)
{
    size_t at = 0, last = 0, n;
    char separator;
    int cells;

    while (at < len && (data[at] == '#' || data[at] == '\r' || data[at] == '\n')) {
        if (data[at] == '#')
            last = at;
        at += line_len (data + at, len - at);
    }
    if (at == len || data[last] != '#')
        return 0;
    n = line_len (data + last, len - last);
    separator = separator_of (data + last, n);
    cells = cells_of (data + last, n, separator);
    return cells > 1 && cells == cells_of (data + at, line_len (data + at, len - at),
                                           separator)
               ? last
               : at;
}

static enum status parse (const char *path, const char *data, size_t len,
                          struct csv_table *t, struct error *err)
{
    struct reading r = {.t = t};
    struct csv_parser p;
    size_t begin = excels_line (data, len, &t->separator);

    if (csv_init (&p, CSV_STRICT | CSV_STRICT_FINI) != 0)
        return err_nomem (err);
    begin += header_at (data + begin, len - begin);
    data += begin;
    len -= begin;
    if (!t->separator)
        t->separator = separator_of (data, len);
    csv_set_delim (&p, (unsigned char) t->separator);

    bool good = csv_parse (&p, data, len, on_cell, on_row, &r) == len &&
                csv_fini (&p, on_cell, on_row, &r) == 0;
    int why = csv_error (&p);

    csv_free (&p);
    if (r.failed)
        return err_nomem (err);
    if (!good)
        return err_set (err, ST_INVALID, "%s: row %d: not valid CSV: %s", path,
                        r.line + 1, csv_strerror (why));
    if (t->columns == 0)
        return err_set (err, ST_INVALID, "%s: expected a header, found an empty file",
                        path);
    return ST_OK;
}

enum status csv_table_parse (const char *name, const char *data, size_t len,
                             struct csv_table *out, struct error *err)
{
    struct csv_table t = {0};
    const char *why = file_not_text (data, len);
    size_t mark = file_mark (data, len);
    enum status st = why ? err_set (err, ST_INVALID, "%s: %s", name, why)
                         : parse (name, data + mark, len - mark, &t, err);

    if (st == ST_OK)
        *out = t;
    else
        csv_table_release (&t);
    return st;
}

enum status csv_table_read (const char *path, struct csv_table *out, struct error *err)
{
    char *data;
    size_t len;
    enum status st;

    TRY (file_read (path, &data, &len, err));
    st = csv_table_parse (file_title (path), data, len, out, err);
    free (data);
    return st;
}

void csv_table_release (struct csv_table *t)
{
    memory_free_texts (t->header, t->columns);
    memory_free_texts (t->cell, t->cells);
    free (t->found);
    *t = (struct csv_table){0};
}

int csv_table_column (const struct csv_table *t, const char *name, int from)
{
    for (int i = from; i < t->columns; i++)
        if (strcmp (t->header[i], name) == 0)
            return i;
    return -1;
}

void csv_write_cell (FILE *out, const char *text)
{
    if (strpbrk (text, ",\"\r\n"))
        csv_fwrite (out, text, strlen (text));
    else
        fputs (text, out);
}
