/* OSU micro-benchmarks: osu_bw, osu_bibw, osu_latency, osu_mbw_mr, one after another in any
 * number.  MB/s is 1e6 bytes.
 *
 * They do not name their hosts: rank 0's is called n0, rank 1's n1.  osu_bw sends from rank 0
 * to rank 1 and says nothing about the way back; osu_bibw loads both ways at once, half each;
 * osu_latency is half of a round trip, so the same both ways; osu_mbw_mr is what its pairs
 * reach together.
 */
#include "topology/measured/links_import_private.h"

#include <string.h>

#include "base/units.h"

#define OSU "# OSU MPI"

enum kind { NONE, BANDWIDTH, BOTH_WAYS, LATENCY, MULTIPLE };

/* "# OSU MPI-CUDA Latency Test v7.4"; collectives, one-sided and threaded tests have more words in
 * between, and time other things. */
static enum kind kind_of (const char *line)
{
    static const struct {
        const char *words;
        enum kind kind;
    } tests[] = {{" Multiple Bandwidth", MULTIPLE},
                 {" Bi-Directional Bandwidth", BOTH_WAYS},
                 {" Bandwidth Test", BANDWIDTH},
                 {" Latency Test", LATENCY}};

    line += strlen (OSU);
    line += strcspn (line, " ");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (strncmp (line, tests[i].words, strlen (tests[i].words)) == 0)
            return tests[i].kind;
    return NONE;
}

/* The table read last: its largest message's rate, or its smallest one's latency. */
struct osu_table {
    enum kind kind;
    double best_bytes, value;
    bool any;
};

static enum status finish (struct links_table *t, const struct osu_table *o)
{
    int a, b;

    if (!o->any || o->kind == NONE)
        return ST_OK;
    TRY (links_table_place (t, "n0", 0, &a));
    TRY (links_table_place (t, "n1", 0, &b));
    switch (o->kind) {
    case NONE:
        break;
    case BANDWIDTH:
        return links_table_add (t, a, b, LINKS_BANDWIDTH, o->value * 1e6);
    case BOTH_WAYS:
        return links_table_add_both (t, a, b, LINKS_BANDWIDTH, 0.5 * o->value * 1e6);
    case LATENCY:
        return links_table_add_both (t, a, b, LINKS_LATENCY, o->value * UNITS_US);
    case MULTIPLE:
        t->node_bytes_per_s = o->value * 1e6;
        break;
    }
    return ST_OK;
}

static enum status read (struct links_table *t)
{
    struct osu_table o = {.kind = NONE};

    for (char *line; (line = links_line (t));) {
        char *word[4];
        double bytes, value;

        if (strncmp (line, OSU, strlen (OSU)) == 0) {
            TRY (finish (t, &o));
            o = (struct osu_table){.kind = kind_of (line)};
            if (o.kind == NONE)
                notes_add (t->notes, "%s: line %d: %.60s: left out", t->file, t->line,
                           line + 2);
            continue;
        }
        if (o.kind == NONE || text_words (line, word, 4) < 2 ||
            !links_number (word[0], &bytes) || !links_number (word[1], &value))
            continue;
        if (bytes < 0 || value <= 0)
            return links_fail (t, "expected a size and a number > 0");
        if (!o.any || (o.kind == LATENCY ? bytes < o.best_bytes : bytes > o.best_bytes)) {
            o.any = true;
            o.best_bytes = bytes;
            o.value = value;
        }
    }
    TRY (finish (t, &o));
    if (t->n_nodes > 0)
        notes_add (
            t->notes,
            "%s: the file does not name its hosts: the nodes of ranks 0 and 1 are named "
            "n0 and n1",
            t->file);
    return ST_OK;
}

const struct links_format links_format_osu = {
    .name = "osu", .text_has = {OSU}, .read = read};
