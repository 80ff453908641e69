/* mpiGraph: the tables that it prints, the same as CSV, and the JSON that Pipette's scripts
 * make of them.
 *
 * "A to: ..." holds what A sends to each column, "A from: ..." what A receives from each
 * column; both time the same messages from their two ends, so both are samples of the link.
 * What it calls MB/s is 2^20 bytes (mpiGraph.c: MBsec).  Pipette's "0" is the receive table,
 * "1" the send table, and their diagonal is filler.
 */
#include "topology/measured/links_import_private.h"

#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0

enum { COLUMNS_MAX = 4096 };

struct header {
    int end[COLUMNS_MAX], n; /* endpoints of the columns */
    bool sends;
};

/* "host:rank" as an endpoint.  Ranks of one host are its GPUs 0, 1, ... in their order. */
static enum status end_of (struct links_table *t, const struct header *h, char *label,
                           int *end)
{
    char *colon = strrchr (label, ':');
    int node, gpu = 0;

    if (colon)
        *colon = '\0';
    TRY (links_table_node (t, label, &node));
    for (int i = 0; i < h->n; i++)
        gpu += t->end[h->end[i]].node == node;
    return links_table_end (t, node, gpu, end);
}

static enum status read_columns (struct links_table *t, struct header *h, char **word,
                                 int n)
{
    h->n = 0;
    h->sends = strcmp (word[0], "Send") == 0;
    for (int i = 1; i < n; i++) {
        if (!*word[i]) /* lines end with a separator */
            continue;
        if (h->n == COLUMNS_MAX)
            return links_fail (t, "more than %d columns", COLUMNS_MAX);
        TRY (end_of (t, h, word[i], &h->end[h->n]));
        h->n++;
    }
    if (h->n < 2)
        return links_fail (t, "expected at least 2 columns of hosts, found %d", h->n);
    return ST_OK;
}

static enum status read_row (struct links_table *t, const struct header *h, int row,
                             char **word, int n)
{
    if (n < h->n + 1 || row >= h->n)
        return links_fail (t, "expected a row of %d numbers, found %d", h->n, n - 1);
    for (int j = 0; j < h->n; j++) {
        int a = h->end[row], b = h->end[j];
        double x;

        if (j == row || links_absent (word[j + 1]))
            continue;
        if (!links_number (word[j + 1], &x))
            return links_fail (t, "expected a number, found \"%.40s\"", word[j + 1]);
        if (x > 0)
            TRY (links_table_add (t, h->sends ? a : b, h->sends ? b : a, LINKS_BANDWIDTH,
                                  x * MIB));
    }
    return ST_OK;
}

static enum status read (struct links_table *t)
{
    struct header *h = calloc (1, sizeof *h);
    char **word = malloc ((COLUMNS_MAX + 2) * sizeof *word);
    int row = -1;
    enum status st = h && word ? ST_OK : err_nomem (t->err);

    for (char *line; st == ST_OK && (line = links_line (t));) {
        bool title = strncmp (line, "Send", 4) == 0 || strncmp (line, "Recv", 4) == 0;
        char sep = strchr (line, '\t') ? '\t' : ',';

        if (title && line[4] == sep) {
            st = read_columns (
                t, h, word, text_cells (line, sep, LINKS_BLANKS, word, COLUMNS_MAX + 2));
            row = 0;
        } else if (row >= 0 && row < h->n && strchr (line, sep)) {
            st = read_row (t, h, row, word,
                           text_cells (line, sep, LINKS_BLANKS, word, COLUMNS_MAX + 2));
            row++;
        } else if (row >= 0 && row < h->n) {
            st = links_fail (t, "expected row %d of %d", row + 1, h->n);
        }
    }
    if (st == ST_OK && row >= 0 && row < h->n)
        st = links_fail (t, "expected %d rows, found %d", h->n, row);
    free (h);
    free (word);
    return st;
}

/* {"0": {"gpus": [HOST...], "bandwidth": [[...]]}, "1": ...} */
static enum status read_table (struct links_table *t, const struct json_at *at,
                               bool sends)
{
    struct json_at hosts = json_key (at, "gpus"), rows = json_key (at, "bandwidth");
    size_t n, n_rows;
    int end[COLUMNS_MAX];

    TRY (json_want_array (&hosts, &n, t->err));
    TRY (json_want_array (&rows, &n_rows, t->err));
    if (n < 2 || n > COLUMNS_MAX || n != n_rows)
        return json_fail (&rows, t->err, "as many rows as there are hosts, from 2");
    json_each (&hosts, one) {
        const char *name;

        TRY (json_want_string (&one, &name, t->err));
        TRY (links_table_place (t, name, 0, &end[one.index]));
    }
    json_each (&rows, row) {
        size_t width;

        TRY (json_want_array (&row, &width, t->err));
        if (width != n)
            return json_fail (&row, t->err, "as many entries as there are hosts");
        json_each (&row, cell) {
            int a = end[row.index], b = end[cell.index];
            double x;

            if (a == b || json_is_null (cell.v))
                continue;
            TRY (json_want_number (&cell, 0, false, 1e9, &x, t->err));
            TRY (links_table_add (t, sends ? a : b, sends ? b : a, LINKS_BANDWIDTH,
                                  x * MIB));
        }
    }
    return ST_OK;
}

static enum status read_json (struct links_table *t, const struct json_at *root)
{
    struct json_at recv = json_key (root, "0"), send = json_key (root, "1");

    TRY (read_table (t, &recv, false));
    return read_table (t, &send, true);
}

static bool matches (const char *text)
{
    for (const char *s = text + strspn (text, " \t\r\n"); s;
         s = (s = strchr (s, '\n')) ? s + 1 : NULL)
        if ((strncmp (s, "Send", 4) == 0 || strncmp (s, "Recv", 4) == 0) &&
            (s[4] == '\t' || s[4] == ','))
            return true;
    return false;
}

const struct links_format links_format_mpigraph = {
    .name = "mpigraph",
    .json_has = {"\"gpus\"", "\"bandwidth\""},
    .matches = matches,
    .read = read,
    .read_json = read_json};
