/* nccl-tests: the text that it prints, and the JSON of -J; several runs one after another.
 *
 * What a run says about links depends on who took part:
 * - two ranks: the busbw of the largest message, in both directions at once (that is how
 *   the tests send), for this pair, and from sendrecv the latency, where the line through
 *   time over bytes meets zero;
 * - all ranks on one node: busbw is defined as the rate of the slowest link of the ring
 *   (nccl-tests doc/PERFORMANCE.md), taken for every pair inside nodes;
 * - one rank on each of several nodes: the same for every pair between nodes;
 * - several ranks on several nodes: what all GPUs of a node reach together.  A ring passes
 *   busbw through each node; in alltoall, each of a node's g ranks sends to the R - g ranks
 *   elsewhere, of its R - 1 peers.  sendrecv there is one ring whose slowest hop may be
 *   anywhere, and says nothing about links.
 */
#include "topology/measured/links_import_private.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/stats.h"
#include "base/units.h"

enum {
    RANKS_MAX = 4096,
    ROWS_MAX = 512,
    WORDS_MAX = 64,
    DEVICES_MAX = 1024,
    PREFIX_MAX = 80
};

static const char n_thread[] = "# nThread ", starting[] = "# Collective test starting: ";

#define REDUCTIONS "sum prod max min avg"

struct row {
    double bytes, time_s, alg, bus; /* alg and bus in bytes/s */
};

struct run {
    int line;                /* where it began; 0 before the first */
    char prefix[PREFIX_MAX]; /* of its lines, from the launcher */
    char op[64];             /* "sendrecv_perf", "" when the file does not say */
    bool reduces;            /* an operation such as sum was named */
    int rank_node[RANKS_MAX], rank_gpu[RANKS_MAX], ranks;
    struct row row[ROWS_MAX];
    int rows;
    int time_at, alg_at, bus_at; /* columns of the rows; time_at 0: not yet known */
};

/* ---- what a run says ---- */

/* The tests' factors from algbw to busbw tell operations apart where the file does not name
 * them (doc/PERFORMANCE.md): sendrecv 1, alltoall and gathers (n-1)/n. */
static bool is_op (const struct run *r, const char *name)
{
    double n = r->ranks, ratio;
    const struct row *last = &r->row[r->rows - 1];

    if (r->op[0])
        return strncmp (r->op, name, strlen (name)) == 0;
    if (r->reduces || last->alg <= 0)
        return false;
    ratio = last->bus / last->alg;
    if (strcmp (name, "sendrecv") == 0)
        return fabs (ratio - 1) < 0.01;
    return strcmp (name, "alltoall") == 0 && fabs (ratio - (n - 1) / n) < 0.01;
}

static int nodes_of (const struct run *r, int *most)
{
    int nodes = 0;

    *most = 0;
    for (int i = 0; i < r->ranks; i++) {
        int first = i, same = 0;

        for (int k = 0; k < r->ranks; k++)
            if (r->rank_node[k] == r->rank_node[i]) {
                first = k < first ? k : first;
                same++;
            }
        nodes += first == i;
        *most = same > *most ? same : *most;
    }
    return nodes;
}

static enum status pair_run (struct links_table *t, const struct run *r, double bus)
{
    double bytes[ROWS_MAX], seconds[ROWS_MAX];
    int a, b;

    TRY (links_table_end (t, r->rank_node[0], r->rank_gpu[0], &a));
    TRY (links_table_end (t, r->rank_node[1], r->rank_gpu[1], &b));
    if (a == b)
        return err_set (t->err, ST_INVALID,
                        "%s: line %d: two ranks of this run share one GPU", t->file,
                        r->line);
    for (int i = 0; i < r->rows; i++) {
        bytes[i] = r->row[i].bytes;
        seconds[i] = r->row[i].time_s;
    }

    struct stats_line fit = stats_fit_line (bytes, seconds, r->rows);

    if (r->rows == 0) {
        TRY (links_table_failed (t, a, b, "the run printed no result"));
        return links_table_failed (t, b, a, "the run printed no result");
    }
    TRY (links_table_add_both (t, a, b, LINKS_BANDWIDTH, bus));
    return is_op (r, "sendrecv") && fit.groups >= 2 && fit.intercept > 0
               ? links_table_add_both (t, a, b, LINKS_LATENCY, fit.intercept)
               : ST_OK;
}

static enum status finish_run (struct links_table *t, struct run *r)
{
    int most, nodes = nodes_of (r, &most);
    double bus = 0, largest = 0;

    if (r->line == 0)
        return ST_OK;
    for (int i = 0; i < r->rows; i++)
        if (r->row[i].bytes >= largest) {
            largest = r->row[i].bytes;
            bus = r->row[i].bus;
        }
    if (r->ranks == 2)
        return pair_run (t, r, bus);
    if (r->ranks == 0 && r->rows == 0) /* its first line alone */
        return ST_OK;
    if (r->ranks < 2 || r->rows == 0) {
        notes_add (t->notes,
                   "%s: line %d: a run of %d ranks with %d results says nothing "
                   "about links",
                   t->file, r->line, r->ranks, r->rows);
    } else if (nodes == 1) {
        t->all_intra_bytes_per_s = fmax (t->all_intra_bytes_per_s, bus);
        notes_add (
            t->notes,
            "%s: line %d: the busbw of %d ranks on one node, %.4g GB/s, is used for "
            "every pair inside nodes",
            t->file, r->line, r->ranks, bus / UNITS_GB);
    } else if (most == 1) {
        t->all_inter_bytes_per_s = fmax (t->all_inter_bytes_per_s, bus);
        notes_add (
            t->notes,
            "%s: line %d: the busbw over %d nodes, %.4g GB/s, is used for every pair "
            "between nodes",
            t->file, r->line, nodes, bus / UNITS_GB);
    } else if (is_op (r, "sendrecv")) {
        notes_add (
            t->notes,
            "%s: line %d: a sendrecv ring over %d ranks on %d nodes does not show its "
            "slowest hop: left out; run sendrecv_perf on pairs",
            t->file, r->line, r->ranks, nodes);
    } else {
        double g = most, ranks = r->ranks;
        double node = is_op (r, "alltoall") ? g * (ranks - g) / (ranks - 1) * bus : bus;

        t->node_bytes_per_s = fmax (t->node_bytes_per_s, node);
    }
    return ST_OK;
}

static enum status add_rank (struct links_table *t, struct run *r, const char *host,
                             int device, const char *product)
{
    int node;

    TRY (links_table_node (t, host, &node));
    if (r->ranks == RANKS_MAX || device >= DEVICES_MAX)
        return links_fail (t, "more than %d ranks, or device %d", RANKS_MAX, device);
    r->rank_node[r->ranks] = node;
    r->rank_gpu[r->ranks++] = device;
    if (t->node[node].gpus <= device)
        t->node[node].gpus = device + 1;
    return links_table_product (t, node, product);
}

/* @param[in] op  its name, or "" */
static enum status start_run (struct links_table *t, struct run *r, const char *op)
{
    char name[sizeof r->op]; /* op may be the last run's */

    snprintf (name, sizeof name, "%s", op);
    TRY (finish_run (t, r));
    strcpy (r->op, name);
    r->line = t->line;
    r->reduces = false;
    r->ranks = r->rows = r->time_at = 0;
    return ST_OK;
}

/* A row in the file's units. */
static void keep_row (struct run *r, const struct row *row)
{
    struct row si = {row->bytes, row->time_s * UNITS_US, row->alg * UNITS_GB,
                     row->bus * UNITS_GB};

    if (si.bus > 0 && si.time_s > 0 && r->rows < ROWS_MAX)
        r->row[r->rows++] = si;
}

/* ---- text ---- */

/* "#  Rank  0 Group  0 Pid   6899 on HOST device  0 [0000:04:00] NVIDIA H100 80GB HBM3" */
static enum status read_rank (struct links_table *t, struct run *r, char *line)
{
    char *on = strstr (line, " on "), *device = on ? strstr (on, " device ") : NULL;
    char *word[2], *product;
    long gpu;

    if (!device || !(product = strchr (device, ']')))
        return links_fail (t, "expected `# Rank N ... on HOST device N [BUS] NAME`");
    *device = '\0';
    if (text_words (on + 4, word, 1) != 1)
        return links_fail (t, "expected a host's name after \"on\"");

    char *host = word[0];

    if (text_words (device + 8, word, 1) != 1 ||
        !links_whole (word[0], 0, DEVICES_MAX - 1, &gpu))
        return links_fail (t, "expected a device's number");
    product++;
    product += strspn (product, " ");
    return add_rank (t, r, host, (int) gpu, product);
}

/* The header names the columns: the first time, algbw and busbw are out of place. */
static void read_header (struct run *r, char **word, int n)
{
    r->time_at = r->alg_at = r->bus_at = 0;
    for (int i = 1; i < n; i++) {
        if (!r->time_at &&
            (strcmp (word[i], "time") == 0 || strcmp (word[i], "cputime") == 0))
            r->time_at = i - 1;
        if (!r->alg_at && strcmp (word[i], "algbw") == 0)
            r->alg_at = i - 1;
        if (!r->bus_at && strcmp (word[i], "busbw") == 0)
            r->bus_at = i - 1;
    }
}

static enum status read_row (struct links_table *t, struct run *r, char **word, int n)
{
    struct row row = {0};

    if (n <= r->bus_at || !links_number (word[0], &row.bytes) || row.bytes < 0)
        return links_fail (t, "expected a row of results, found \"%.40s\"", word[0]);
    if (links_absent (word[r->bus_at]) || row.bytes == 0)
        return ST_OK;
    if (!links_number (word[r->time_at], &row.time_s) ||
        !links_number (word[r->alg_at], &row.alg) ||
        !links_number (word[r->bus_at], &row.bus))
        return links_fail (t, "expected numbers for time, algbw and busbw");
    if (r->rows == ROWS_MAX)
        return links_fail (t, "more than %d results of one run", ROWS_MAX);
    keep_row (r, &row);
    for (int i = 2; i < r->time_at; i++)
        r->reduces |= text_has_word (REDUCTIONS, word[i]);
    return ST_OK;
}

/* What launchers put before every line, "[1,0]<stdout>: ", "0: ", a time, is what is before the
 * first line of a run, but for its numbers.  Other lines are another process's. */
static char *without_prefix (struct run *r, char *line)
{
    static const char digits[] = "0123456789";
    char *start = strstr (line, n_thread), *at = line;

    start = start ? start : strstr (line, starting);
    if (start && start - line < PREFIX_MAX)
        snprintf (r->prefix, sizeof r->prefix, "%.*s", (int) (start - line), line);
    for (const char *p = r->prefix; *p;) {
        size_t number = strspn (p, digits), here = strspn (at, digits);

        if ((number > 0) != (here > 0) || (number == 0 && *p != *at))
            return NULL;
        p += number > 0 ? number : 1;
        at += here > 0 ? here : 1;
    }
    return at;
}

static enum status read_line (struct links_table *t, struct run *r, char *line)
{
    char *word[WORDS_MAX];

    if (!(line = without_prefix (r, line)))
        return ST_OK;
    if (strncmp (line, n_thread, sizeof n_thread - 1) ==
        0) /* the name may stand before */
        return start_run (t, r, r->line && r->ranks == 0 ? r->op : "");
    if (strncmp (line, starting, sizeof starting - 1) == 0)
        return start_run (t, r, line + sizeof starting - 1);
    if (line[0] == '#' && strstr (line, " Rank ") && strstr (line, " device "))
        return r->line ? read_rank (t, r, line)
                       : links_fail (t, "a rank before any `# nThread` line");
    if (line[0] == '#' && strstr (line, "busbw")) {
        int n = text_words (line, word, WORDS_MAX);

        read_header (r, word, n);
        return ST_OK;
    }

    size_t blank = strspn (line, " \t");

    if (r->time_at == 0 || line[blank] < '0' || line[blank] > '9')
        return ST_OK; /* a comment, or what NCCL and the launcher say in between */
    return read_row (t, r, word, text_words (line, word, WORDS_MAX));
}

/* ---- JSON ---- */

static enum status read_devices (struct links_table *t, struct run *r,
                                 const struct json_at *config)
{
    struct json_at devices = json_key (config, "devices");
    int threads, gpus;

    TRY (json_want_array (&devices, NULL, t->err));
    TRY (json_get_int (config, "nthreads", 1, DEVICES_MAX, &threads, t->err));
    TRY (json_get_int (config, "ngpus", 1, DEVICES_MAX, &gpus, t->err));
    json_each (&devices, one) {
        struct json_at info = json_key (&one, "device_info");
        const char *name, *product = "";
        int first;

        TRY (json_get_string (&one, "hostname", &name, t->err));
        TRY (json_get_int (&one, "device", 0, DEVICES_MAX - 1, &first, t->err));
        if (info.v)
            TRY (json_want_string (&info, &product, t->err));
        /* One entry a process, although each may drive several GPUs. */
        for (int k = 0; k < threads * gpus; k++)
            TRY (add_rank (t, r, name, first + k, product));
    }
    return ST_OK;
}

static enum status read_result (struct links_table *t, struct run *r,
                                const struct json_at *one)
{
    struct json_at place = json_key (one, "out_of_place");
    const char *op = json_member_text (one->v, "redop");
    struct row row;

    if (!json_is_object (place.v))
        place = json_key (one, "in_place");

    const char *time = json_object_get (place.v, "time") ? "time" : "cpu_time";

    TRY (json_get_number (one, "size", 0, true, 1e18, &row.bytes, t->err));
    TRY (json_get_number (&place, time, 0, true, 1e12, &row.time_s, t->err));
    TRY (json_get_number (&place, "alg_bw", 0, true, 1e9, &row.alg, t->err));
    TRY (json_get_number (&place, "bus_bw", 0, true, 1e9, &row.bus, t->err));
    r->reduces |= op && text_has_word (REDUCTIONS, op);
    keep_row (r, &row);
    return ST_OK;
}

static enum status read_json (struct links_table *t, const struct json_at *root)
{
    struct json_at config = json_key (root, "config"),
                   results = json_key (root, "results"), args = json_key (root, "args"),
                   program = json_entry (&args, 0);
    const char *path = json_string_value (program.v);
    struct run r = {.line = 1};

    t->line = 1;
    if (path)
        snprintf (r.op, sizeof r.op, "%s", file_name (path));
    TRY (read_devices (t, &r, &config));
    TRY (json_want_array (&results, NULL, t->err));
    json_each (&results, one)
        TRY (read_result (t, &r, &one));
    return finish_run (t, &r);
}

static enum status read (struct links_table *t)
{
    struct run r = {.line = 0};

    for (char *line; (line = links_line (t));)
        TRY (read_line (t, &r, line));
    return finish_run (t, &r);
}

const struct links_format links_format_nccl_tests = {
    .name = "nccl-tests",
    .text_has = {n_thread, "busbw"},
    .json_has = {"\"out_of_place\"", "\"bus_bw\""},
    .read = read,
    .read_json = read_json};
