/* A table with node names on both edges, comma or tab between cells: row i, column j is the
 * rate from i to j.  Comments before it may name the unit (GB/s where they do not, MiB/s,
 * Gbit/s, MB/s), say that rows receive ("recv_from", also in the file's name), and how many
 * GPUs each node brought ("gpus/node=8").  An empty cell is unmeasured, "nan" failed.
 */
#include "topology/measured/links_import_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"

enum { COLUMNS_MAX = 4096 };

static const struct {
    const char *word;
    double unit;
} units[] = {{"MiB/s", 1048576.0}, {"MiBps", 1048576.0}, {"Gbit/s", 1.25e8},
             {"Gbps", 1.25e8},     {"GB/s", UNITS_GB},   {"MB/s", 1e6}};

struct form {
    double unit;
    bool rows_receive;
    int gpus; /* a node, as a comment says; 0: not said */
};

/* What a comment, or the file's name, says about the table. */
static void read_hint (struct form *f, const char *s)
{
    const char *gpus = strstr (s, "gpus/node=");

    for (size_t i = 0; f->unit == 0 && i < sizeof units / sizeof *units; i++)
        if (strstr (s, units[i].word))
            f->unit = units[i].unit;
    if (strcasestr (s, "recv_from") || strcasestr (s, "receive from"))
        f->rows_receive = true;
    if (gpus && atoi (gpus + 10) >= 1 && atoi (gpus + 10) <= 1024)
        f->gpus = atoi (gpus + 10);
}

static bool matches (const char *text)
{
    const char *s = links_first_line (text);
    size_t n = strcspn (s, "\n");

    return n > 2 && (*s == ',' || *s == '\t') && s[1] != *s && memchr (s + 1, *s, n - 1);
}

static enum status read_cells (struct links_table *t, const struct form *f, int row,
                               const int *end, int n, char **word, int words)
{
    if (words != n + 1)
        return links_fail (t, "expected a name and %d cells, found %d cells", n,
                           words - 1);
    for (int j = 0; j < n; j++) {
        int a = end[f->rows_receive ? j : row], b = end[f->rows_receive ? row : j];
        double x;

        if (j == row || !*word[j + 1])
            continue;
        if (links_absent (word[j + 1]))
            TRY (links_table_failed (t, a, b, "the file says nan"));
        else if (!links_number (word[j + 1], &x) || x <= 0)
            return links_fail (t, "expected a number > 0, found \"%.40s\"", word[j + 1]);
        else
            TRY (links_table_add (t, a, b, LINKS_BANDWIDTH, x * f->unit));
    }
    return ST_OK;
}

static enum status read (struct links_table *t)
{
    struct form f = {0};
    char **word = malloc ((COLUMNS_MAX + 2) * sizeof *word);
    int *end = malloc (COLUMNS_MAX * sizeof *end), n = 0, row = 0;
    char separator = 0;
    enum status st = word && end ? ST_OK : err_nomem (t->err);

    for (char *line; st == ST_OK && (line = links_line (t));) {
        int words, node = 0;

        if (line[0] == '#') {
            read_hint (&f, line);
            if (t->source.len == 0)
                text_add (&t->source, "%.400s", line + 1 + strspn (line + 1, " "));
            continue;
        }
        if (!*line)
            continue;
        if (!separator) {
            separator = *line == '\t' ? '\t' : ',';
            read_hint (&f, t->file);
            f.unit = f.unit > 0 ? f.unit : UNITS_GB;
            words = text_cells (line, separator, LINKS_BLANKS, word, COLUMNS_MAX + 2);
            for (int j = 1; j < words && st == ST_OK; j++) {
                st = j > COLUMNS_MAX ? links_fail (t, "more than %d columns", COLUMNS_MAX)
                                     : links_table_place (t, word[j], 0, &end[n]);
                if (st == ST_OK && end[n] != n)
                    st = links_fail (t, "\"%.60s\" appears twice", word[j]);
                else if (st == ST_OK && f.gpus > 0)
                    t->node[t->end[n].node].gpus = f.gpus;
                n++;
            }
            continue;
        }
        words = text_cells (line, separator, LINKS_BLANKS, word, COLUMNS_MAX + 2);
        st = links_table_node (t, word[0], &node);
        if (st == ST_OK && (row >= n || node != t->end[end[row]].node))
            st = links_fail (t,
                             "expected row %d of %d, in the order of the columns, found "
                             "\"%.60s\"",
                             row + 1, n, word[0]);
        THEN (st, read_cells (t, &f, row, end, n, word, words));
        row++;
    }
    if (st == ST_OK && row != n)
        st = links_fail (t, "expected %d rows, found %d", n, row);
    if (st == ST_OK && f.gpus > 1)
        notes_add (t->notes,
                   "%s: %d GPUs per node took part: the rates may not be those of one "
                   "pair alone",
                   t->file, f.gpus);
    free (word);
    free (end);
    return st;
}

const struct links_format links_format_matrix = {
    .name = "matrix", .matches = matches, .read = read};
