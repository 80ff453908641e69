/* NCCL Inspector (ext-profiler/inspector of NCCL): one JSON object a line, one for each
 * operation of a process; the files of several processes one after another.
 *
 *     {"header":{"id":"0x7f","rank":2,"n_ranks":8,"nnodes":1},
 *      "metadata":{"dump_timestamp_us":1748030377748202,"hostname":"n1",...},
 *      "coll_perf":{"coll":"AllReduce","coll_msg_size_bytes":1048576,"coll_busbw_gbs":41.2}}
 *
 * or `p2p_perf` with `p2p` Send or Recv, `p2p_peer` and the same keys under `p2p_`.
 *
 * All this is measured while a job runs: a rate is what its link reached at least.  Times
 * include waiting for the other side, so that of the largest messages of a link the rate
 * that one in ten exceeded is taken.  Who sits at a rank is told by the records of that
 * rank; which GPU of its host it is nobody tells, so that links are between nodes.
 *
 * - Send and Recv, and communicators of two nodes with a rank each: their pair.
 * - Communicators inside one node: every pair inside nodes, as nccl-tests' busbw is.
 * - Others reached what the slowest link of a ring allowed, and nobody tells which.
 */
#include "topology/measured/links_import_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/stats.h"
#include "base/units.h"

#define TIME_MAX_US 4e15 /* the year 2096 */
#define RANKS_MAX 1048576
#define QUANTILE 0.9

/* One operation between two ranks of a communicator; src -1: inside one node. */
struct operation {
    int comm, src, dst; /* later nodes */
    double bytes, rate;
};

struct dump {
    json_t *comms; /* id -> number */
    json_t *seats; /* "comm rank" -> node */
    struct operation *op;
    int n;
    int bad, first_bad, rings, unknown, inside, moved;
    double when_us;
};

static const char *seat_text (int comm, int rank, char buf[32])
{
    snprintf (buf, 32, "%d %d", comm, rank);
    return buf;
}

static enum status add (struct links_table *t, struct dump *d, struct operation op)
{
    if (!array_grow (&d->op, d->n, sizeof *d->op))
        return err_nomem (t->err);
    d->op[d->n++] = op;
    return ST_OK;
}

/* ---- records ---- */

/* What a record says of its communicator and process. */
struct header {
    const char *id, *host;
    int rank, ranks, nodes;
};

static enum status read_header (const struct json_at *root, struct header *h,
                                double *when_us, struct error *err)
{
    struct json_at header = json_key (root, "header"), meta = json_key (root, "metadata");

    TRY (json_get_string (&header, "id", &h->id, err));
    TRY (json_get_int (&header, "n_ranks", 1, RANKS_MAX, &h->ranks, err));
    TRY (json_get_int (&header, "rank", 0, h->ranks - 1, &h->rank, err));
    TRY (json_get_int (&header, "nnodes", 1, RANKS_MAX, &h->nodes, err));
    TRY (json_get_string (&meta, "hostname", &h->host, err));
    return json_get_number (&meta, "dump_timestamp_us", 0, true, TIME_MAX_US, when_us,
                            err);
}

static enum status read_p2p (struct links_table *t, struct dump *d,
                             const struct json_at *p2p, const struct header *h, int comm)
{
    struct operation op = {.comm = comm};
    struct json_at kind = json_key (p2p, "p2p");
    const char *name;
    int peer;
    bool sends;

    TRY (json_want_string (&kind, &name, t->err));
    TRY (json_get_int (p2p, "p2p_peer", 0, h->ranks - 1, &peer, t->err));
    TRY (json_get_number (p2p, "p2p_msg_size_bytes", 0, true, 1e18, &op.bytes, t->err));
    TRY (json_get_number (p2p, "p2p_busbw_gbs", 0, true, 1e9, &op.rate, t->err));
    sends = strcmp (name, "Send") == 0;
    if (!sends && strcmp (name, "Recv") != 0)
        return json_fail (&kind, t->err, "Send or Recv");
    op.src = sends ? h->rank : peer;
    op.dst = sends ? peer : h->rank;
    return op.rate > 0 && peer != h->rank ? add (t, d, op) : ST_OK;
}

static enum status read_collective (struct links_table *t, struct dump *d,
                                    const struct json_at *perf, const struct header *h,
                                    int comm)
{
    struct operation op = {.comm = comm, .src = 0, .dst = 1};

    TRY (json_get_number (perf, "coll_msg_size_bytes", 0, true, 1e18, &op.bytes, t->err));
    TRY (json_get_number (perf, "coll_busbw_gbs", 0, true, 1e9, &op.rate, t->err));
    if (op.rate <= 0 || h->ranks == 1)
        return ST_OK;
    if (h->nodes > 1 && h->ranks > 2) {
        d->rings++;
        return ST_OK;
    }
    if (h->nodes == 1)
        op.src = -1;
    TRY (add (t, d, op));
    op.src = 1;
    op.dst = 0;
    return h->nodes == 1 ? ST_OK : add (t, d, op);
}

/* A rank sits where the last record has it. */
static void take_seat (struct dump *d, int comm, int rank, int node)
{
    char seat[32];
    const json_t *known = json_object_get (d->seats, seat_text (comm, rank, seat));

    if (!known || (int) json_integer_value (known) != node) {
        d->moved += known != NULL;
        json_object_set_new (d->seats, seat, json_integer (node));
    }
}

static enum status read_record (struct links_table *t, struct dump *d,
                                const struct json_at *root)
{
    struct json_at coll = json_key (root, "coll_perf"), p2p = json_key (root, "p2p_perf");
    struct header h;
    double when_us;
    int comm, node;

    TRY (read_header (root, &h, &when_us, t->err));
    d->when_us = fmax (d->when_us, when_us);
    if ((comm = json_number_of (d->comms, "%s", h.id)) < 0)
        return err_nomem (t->err);
    TRY (links_table_node (t, h.host, &node));
    take_seat (d, comm, h.rank, node);
    if (json_is_object (p2p.v))
        return read_p2p (t, d, &p2p, &h, comm);
    return json_is_object (coll.v) ? read_collective (t, d, &coll, &h, comm) : ST_OK;
}

/* A line that is cut off, as the last of a running process is, is passed over and told;
 * one that is whole and wrong is not. */
static enum status read_line (struct links_table *t, struct dump *d, const char *line)
{
    char name[300];
    struct json_at root = {.key = name};
    enum status st;

    snprintf (name, sizeof name, "%.250s: line %d", t->file, t->line);
    if (json_parse (name, line, strlen (line), &root.v, NULL) != ST_OK) {
        d->first_bad = d->bad++ ? d->first_bad : t->line;
        return ST_OK;
    }
    st = read_record (t, d, &root);
    json_decref (root.v);
    return st;
}

/* ---- links ---- */

/* Ranks become nodes; operations without both are dropped. */
static void seat_all (struct dump *d)
{
    int kept = 0;

    for (int i = 0; i < d->n; i++) {
        struct operation op = d->op[i];
        char seat[32];
        const json_t *src, *dst;

        if (op.src >= 0) {
            src = json_object_get (d->seats, seat_text (op.comm, op.src, seat));
            dst = json_object_get (d->seats, seat_text (op.comm, op.dst, seat));
            if (!src || !dst) {
                d->unknown++;
                continue;
            }
            op.src = (int) json_integer_value (src);
            op.dst = (int) json_integer_value (dst);
            if (op.src == op.dst) {
                d->inside++;
                continue;
            }
        }
        d->op[kept++] = op;
    }
    d->n = kept;
}

static int by_link (const void *a, const void *b)
{
    const struct operation *x = a, *y = b;

    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->src >= 0 && x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->rate > y->rate) - (x->rate < y->rate);
}

static enum status add_link (struct links_table *t, const struct operation *op, int n,
                             double *work)
{
    double rate;
    int largest = 0, a, b;

    while (largest < n && op[largest].bytes == op[0].bytes) {
        work[largest] = op[largest].rate;
        largest++;
    }
    rate = stats_quantile (work, largest, QUANTILE) * UNITS_GB;
    if (op->src < 0) {
        t->all_intra_bytes_per_s = rate;
        return ST_OK;
    }
    TRY (links_table_end (t, op->src, 0, &a));
    TRY (links_table_end (t, op->dst, 0, &b));
    return links_table_add (t, a, b, LINKS_BANDWIDTH, rate);
}

static enum status add_links (struct links_table *t, struct dump *d)
{
    double *work = malloc (((size_t) d->n + 1) * sizeof *work);
    enum status st = work ? ST_OK : err_nomem (t->err);

    seat_all (d);
    if (d->n > 0)
        qsort (d->op, (size_t) d->n, sizeof *d->op, by_link);
    for (int i = 0, end; i < d->n && st == ST_OK; i = end) {
        for (end = i; end < d->n && d->op[end].src == d->op[i].src &&
                      (d->op[i].src < 0 || d->op[end].dst == d->op[i].dst);
             end++)
            ;
        st = add_link (t, d->op + i, end - i, work);
    }
    free (work);
    return st;
}

static void note_rest (struct links_table *t, const struct dump *d)
{
    const struct {
        int n;
        const char *what;
    } rest[] = {
        {d->moved, "records name another host for a rank of a communicator than the "
                   "records before: the last one is taken; give each job's files by "
                   "themselves"},
        {d->rings, "collectives of more than two ranks on several nodes are left out: "
                   "which of their links was the slowest is not told"},
        {d->inside, "sends inside nodes are left out: which GPUs they are of is not "
                    "told"},
        {d->unknown, "operations are left out: no record tells the host of one of their "
                     "ranks; give the files of all processes, one after another"}};

    if (d->bad > 0)
        notes_add (
            t->notes,
            "%s: %d lines are no whole JSON objects, the first is line %d: they are "
            "left out",
            t->file, d->bad, d->first_bad);
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        if (rest[i].n > 0)
            notes_add (t->notes, "%s: %d %s", t->file, rest[i].n, rest[i].what);
}

static bool matches (const char *text)
{
    return links_is_json (text) &&
           (strstr (text, "\"coll_perf\"") || strstr (text, "\"p2p_perf\"")) &&
           strstr (text, "\"dump_timestamp_us\"");
}

static enum status read (struct links_table *t)
{
    struct dump d = {.comms = json_object (), .seats = json_object ()};
    enum status st = d.comms && d.seats ? ST_OK : err_nomem (t->err);

    for (char *line; st == ST_OK && (line = links_line (t));)
        if (line[strspn (line, " \t")])
            st = read_line (t, &d, line);
    THEN (st, add_links (t, &d));
    if (st == ST_OK) {
        note_rest (t, &d);
        t->when_s = d.when_us * UNITS_US;
        t->busy = true;
    }
    JSON_DECREF_ALL (d.comms, d.seats);
    free (d.op);
    return st;
}

const struct links_format links_format_inspector = {
    .name = "nccl-inspector", .matches = matches, .read = read};
