/* What the importers of links share: the table that they fill, and words and lines. */
#ifndef TOPOLOGY_LINKS_IMPORT_PRIVATE_H
#define TOPOLOGY_LINKS_IMPORT_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "topology/topology_private.h"

/** The links that a file tells, filled by an importer.  Samples of one link may be added as
 *  often as the file has them: the document holds their median and spread. */
struct links_table {
    const char *file; /* for messages */
    struct notes *notes;
    struct error *err;
    char *next; /* where the text's next line begins; NULL: there is none */
    int line;   /* the number of the line given last, from 1; for messages */

    struct links_node {
        char *name;
        char *product; /* GPU's product name, or NULL */
        int gpus;      /* what the file says, or how many endpoints there are */
    } * node;
    int n_nodes;
    bool gpus_known; /* the file lists all GPUs of its nodes */
    struct links_end {
        int node, gpu; /* gpu: index on the node */
        int number;    /* by which samples name it */
    } * end;
    int n_ends;
    struct links_sample {
        int src, dst; /* endpoints */
        enum links_quantity { LINKS_BANDWIDTH, LINKS_LATENCY, LINKS_FAILED } what;
        double value;       /* bytes/s or seconds */
        const char *reason; /* of a failure: a constant text */
    } * sample;
    size_t n_samples;

    /* One number that the file gives for every pair of its kind; 0: none. */
    double all_intra_bytes_per_s, all_inter_bytes_per_s;
    double all_intra_latency_s, all_inter_latency_s;
    double node_bytes_per_s; /* what all GPUs of a node reach together; 0: none */
    struct text source;      /* one sentence for `source` */
    double when_s;    /* since 1970, of the last measurement; 0: the file does not say */
    bool busy;        /* measured beside a job's traffic */
    json_t *counters; /* `measured.counters`, or NULL */
    json_t *counter_at; /* place in words -> index of it there */
};

/** Find a node by name, or add it.  A name that the contract does not allow has its other
 *  characters turned into '-'.
 *  @param[out] node  its index
 *  @return ST_OK, ST_NOMEM, or ST_INVALID for more than can be held */
enum status links_table_node (struct links_table *t, const char *name, int *node);
/** The same of an endpoint. */
enum status links_table_end (struct links_table *t, int node, int gpu, int *end);
/** The same by the node's name. */
enum status links_table_place (struct links_table *t, const char *name, int gpu,
                               int *end);

/** Add a sample; src != dst are endpoints. */
enum status links_table_add (struct links_table *t, int src, int dst,
                             enum links_quantity what, double value);
/** Add it for both directions. */
enum status links_table_add_both (struct links_table *t, int a, int b,
                                  enum links_quantity what, double value);
/** Add that the measurement failed.  @param[in] reason  a constant text */
enum status links_table_failed (struct links_table *t, int src, int dst,
                                const char *reason);

/** Name a node's GPU product, if it has none yet. */
enum status links_table_product (struct links_table *t, int node, const char *product);

/** Where a counter is.  NULL and -1: the file does not say, or it is another kind of place. */
struct links_counter {
    const char *node, *uuid; /* of the GPU */
    const char *port;        /* a network card's, or a GPU's NVLink */
    int gpu;                 /* index on the node; -1: a network card's port */
};
/** Add what a counter says, by the tool's own name for it; one that linkwise does not know
 *  (topology/counters.c) is passed over.  Of two values for one counter the larger holds:
 *  tools print old, narrow counters beside the wide ones.
 *  @param[in] word  its value as the file has it; one that is no number is passed over
 *                   where links_absent or DCGM's blank, refused elsewhere */
enum status links_table_count (struct links_table *t, const struct links_counter *at,
                               const char *name, const char *word);

/** "FILE: line N: TEXT" with ST_INVALID. */
#define links_fail(t, text, ...)                                               \
    err_set ((t)->err, ST_INVALID, "%s: line %d: " text, (t)->file, (t)->line, \
             ##__VA_ARGS__)

/** The text's next line without its end, or NULL.  It lies in the text. */
char *links_line (struct links_table *t);
/** Where the first line begins that is neither empty nor a comment; "" where all are. */
const char *links_first_line (const char *text);

/** What stands around the cells of a line, for text_cells. */
#define LINKS_BLANKS " \t\""

/** Read a number that fills the whole word. */
bool links_number (const char *word, double *x);
/** True for what tools print where there is no number: "", "nan", "N/A", "-". */
bool links_absent (const char *word);
/** True if the word is a whole number from lo to hi. */
bool links_whole (const char *word, long lo, long hi, long *n);

/** A square table, such as tools print: a header of column names, then a row name and
 *  numbers.  Released with links_grid_free. */
enum { LINKS_GRID_MAX = 1024 };
struct links_grid {
    int n;     /* at most LINKS_GRID_MAX */
    double *v; /* [n*n], NaN where the text has none */
};
/** Read the rows `index v v v ...` that follow a header `... 0 1 2 ...`.
 *
 *  @param[in]     header  the line given last, read for the number of columns
 *  @param[in]     skip    words of the header before the first column
 *  @param[in,out] grid    free it, also after a failure
 */
enum status links_grid_read (struct links_table *t, char *header, int skip,
                             struct links_grid *grid);
/** Add what it has above 0 as samples.
 *  @param[in] end        [n] endpoints of its rows and columns
 *  @param[in] unit       the table's unit in SI units
 *  @param[in] row_sends  a row's numbers are of what it sends; else of what it receives */
enum status links_grid_add (struct links_table *t, const struct links_grid *g,
                            const int *end, enum links_quantity what, double unit,
                            bool row_sends);
void links_grid_free (struct links_grid *g);

/** Does a text look like a JSON object? */
static inline bool links_is_json (const char *text)
{
    return text[strspn (text, " \t\r\n")] == '{';
}

/** A format: one of the links_import_*.c files. */
struct links_format {
    const char *name;
    /* Words that stand in all its texts, and in its JSON; where neither is given, `matches` says
     * whether a text looks like one. */
    const char *text_has[3], *json_has[2];
    bool (*matches) (const char *text);
    /** Read the table's text, NUL-terminated and the importer's to change; NULL: there is only
     *  JSON. */
    enum status (*read) (struct links_table *t);
    /** Read JSON; NULL: there is none. */
    enum status (*read_json) (struct links_table *t, const struct json_at *root);
};

extern const struct links_format links_format_nccl_tests, links_format_nvbandwidth,
    links_format_p2p, links_format_mpigraph, links_format_osu, links_format_matrix,
    links_format_pairs, links_format_taccl, links_format_inspector,
    links_format_perfquery, links_format_ibdiagnet, links_format_nvlink,
    links_format_dcgm;

#endif
