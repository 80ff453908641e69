/* NCCL's logs, line by line: who opens which communicator, and what its ranks say of rings,
 * trees and connections.
 *
 * A line is `host:pid:tid [device] NCCL INFO text`, whatever a launcher puts before it.  The lines
 * of a communicator are those of one thread from `Init START` to `Init COMPLETE`; versions before
 * 2.18 print no START, so that a thread's lines wait for the COMPLETE that names their
 * communicator.  Connections that are made later, at the first collective, are given to the one
 * communicator of the process in which it has the rank that the line says. */
#include "check/nccl_private.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/file.h"

/* ---- the index ---- */

static uint64_t mix (uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static struct nccl_entry *find (struct nccl_entry *e, size_t room, const uint64_t *key)
{
    size_t at = mix (key[0] + mix (key[1] + mix (key[2] + 1))) & (room - 1);

    while (e[at].used && memcmp (e[at].key, key, sizeof e[at].key) != 0)
        at = (at + 1) & (room - 1);
    return &e[at];
}

static bool widen (struct nccl_index *x)
{
    size_t room = x->room ? 2 * x->room : 64;
    struct nccl_entry *e = calloc (room, sizeof *e);

    if (!e)
        return false;
    for (size_t i = 0; i < x->room; i++)
        if (x->entry[i].used)
            *find (e, room, x->entry[i].key) = x->entry[i];
    free (x->entry);
    x->entry = e;
    x->room = room;
    return true;
}

int *nccl_index_at (struct nccl_index *x, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t key[3] = {a, b, c};
    struct nccl_entry *e;

    if (2 * x->n >= x->room && !widen (x))
        return NULL;
    e = find (x->entry, x->room, key);
    if (!e->used) {
        memcpy (e->key, key, sizeof key);
        e->used = true;
        e->value = -1;
        x->n++;
    }
    return &e->value;
}

void nccl_index_free (struct nccl_index *x)
{
    free (x->entry);
    *x = (struct nccl_index){0};
}

/* ---- a line's words ---- */

static void skip_blanks (const char **s)
{
    *s += strspn (*s, " \t");
}

/* A number of at most nine digits, or -1 and the like. */
static bool take_int (const char **s, int *out)
{
    const char *from;
    size_t digits;
    bool minus;

    skip_blanks (s);
    minus = **s == '-';
    from = *s + minus;
    digits = strspn (from, "0123456789");
    if (digits == 0 || digits > 9)
        return false;
    *out = (int) strtol (from, NULL, 10) * (minus ? -1 : 1);
    *s = from + digits;
    return true;
}

static bool take (const char **s, const char *word)
{
    size_t n = strlen (word);

    skip_blanks (s);
    if (strncmp (*s, word, n) != 0)
        return false;
    *s += n;
    return true;
}

/* The number behind a word of `key value` pairs; hexadecimal ones begin with 0x. */
static bool field (const char *text, const char *key, uint64_t *out)
{
    const char *at = strstr (text, key);
    char *end;

    if (!at)
        return false;
    at += strlen (key);
    if (!isxdigit ((unsigned char) *at) && *at != '-')
        return false;
    *out = strtoull (at, &end, strncmp (at, "0x", 2) == 0 ? 16 : 10);
    return end != at;
}

static int field_int (const char *text, const char *key, int otherwise)
{
    uint64_t x;

    return field (text, key, &x) && (x <= 999999999 || ~x < 999999999) ? (int) x
                                                                       : otherwise;
}

/* ---- reading ---- */

struct reader {
    struct nccl_log *log;
    struct nccl_index hosts, seats, threads, processes;
    struct nccl_index marked; /* processes that print Init START */
    const char *file;
    long long line;
    bool failed; /* out of memory */
};

/* Where a line comes from. */
struct origin {
    int host, pid, tid, dev;
};

static void not_understood (struct reader *x)
{
    struct check_nccl_lines *l = &x->log->lines;

    if (l->unread < CHECK_NCCL_PLACES) {
        l->place[l->unread].file = x->file;
        l->place[l->unread].line = x->line;
    }
    l->unread++;
}

/* The number of a host. @return -1 when out of memory */
static int host_of (struct reader *x, const char *name, size_t len)
{
    struct nccl_log *log = x->log;
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char) name[i]) * 1099511628211u;
    for (uint64_t k = 0;; k++) {
        int *at = nccl_index_at (&x->hosts, hash, len, k);

        if (at && *at >= 0 && strncmp (log->host[*at], name, len) != 0)
            continue; /* another one with the same sum */
        if (at && *at >= 0)
            return *at;
        if (!at || !array_grow (&log->host, (size_t) log->n_hosts, sizeof *log->host) ||
            !(log->host[log->n_hosts] = strndup (name, len))) {
            x->failed = true;
            return -1;
        }
        return *at = log->n_hosts++;
    }
}

/* Digits that end before *end and are not before `from`. */
static bool back_int (const char *from, const char **end, int *out)
{
    const char *s = *end, *digits;

    while (s > from && isdigit ((unsigned char) s[-1]))
        s--;
    digits = s;
    if (s == *end || *end - s > 9 || !take_int (&digits, out))
        return false;
    *end = s;
    return true;
}

static bool back (const char *from, const char **end, char c)
{
    if (*end == from || (*end)[-1] != c)
        return false;
    --*end;
    return true;
}

/* `host:pid:tid [device] ` that ends at `end`. */
static bool find_origin (struct reader *x, const char *from, const char *end,
                         struct origin *o)
{
    const char *s;

    o->dev = -1;
    while (back (from, &end, ' '))
        ;
    if (back (from, &end, ']') &&
        (!back_int (from, &end, &o->dev) || !back (from, &end, '[')))
        return false;
    while (back (from, &end, ' '))
        ;
    if (!back_int (from, &end, &o->tid) || !back (from, &end, ':') ||
        !back_int (from, &end, &o->pid) || !back (from, &end, ':'))
        return false;
    s = end;
    while (s > from && (isalnum ((unsigned char) s[-1]) || strchr ("._-", s[-1])))
        s--;
    if (s == end || end - s > 253)
        return false;
    o->host = host_of (x, s, (size_t) (end - s));
    return o->host >= 0;
}

static uint64_t process_of (const struct origin *o)
{
    return (uint64_t) o->host << 32 | (unsigned) o->pid;
}

/* What the thread is setting up: a member, or -1. */
static int *thread_of (struct reader *x, const struct origin *o)
{
    int *at = nccl_index_at (&x->threads, process_of (o), (unsigned) o->tid, 0);

    x->failed |= !at;
    return at;
}

/* The seat of a device. @return -1 when out of memory */
static int seat_of (struct reader *x, const struct origin *o, int dev)
{
    struct nccl_log *log = x->log;
    int *at = nccl_index_at (&x->seats, process_of (o), (unsigned) dev, 0);

    if (at && *at >= 0)
        return *at;
    if (!at || !array_grow (&log->seat, (size_t) log->n_seats, sizeof *log->seat)) {
        x->failed = true;
        return -1;
    }
    log->seat[log->n_seats] = (struct nccl_seat){o->host, o->pid, dev, -1, -1};
    return *at = log->n_seats++;
}

/* A new member that the thread sets up. @return NULL when out of memory */
static struct nccl_member *open_member (struct reader *x, const struct origin *o)
{
    struct nccl_log *log = x->log;
    int seat = seat_of (x, o, o->dev), *thread = thread_of (x, o);
    int *last = nccl_index_at (&x->processes, process_of (o), 0, 0);

    if (seat < 0 || !thread || !last ||
        !array_grow (&log->member, (size_t) log->n_members, sizeof *log->member)) {
        x->failed = true;
        return NULL;
    }
    log->member[log->n_members] = (struct nccl_member){
        .seat = seat, .rank = -1, .before = *last, .edge = -1, .order = -1};
    *last = *thread = log->n_members;
    return &log->member[log->n_members++];
}

/* ---- what lines say ---- */

/* Init START and Init COMPLETE: `comm 0x.. rank 0 nranks 8 cudaDev 0 nvmlDev 0 ...`. */
static void read_init (struct reader *x, const struct origin *o, const char *text,
                       bool start)
{
    int *thread = thread_of (x, o), *marked, dev, nvml;
    struct nccl_member *m = NULL;
    uint64_t comm = 0;
    int rank = field_int (text, " rank ", -1), n = field_int (text, " nranks ", 0);

    if (rank < 0 || rank >= n || !field (text, "comm ", &comm)) {
        not_understood (x);
        return;
    }
    if (!thread || !(marked = nccl_index_at (&x->marked, process_of (o), 0, 0))) {
        x->failed = true;
        return;
    }
    if (!start && *thread >= 0)
        m = &x->log->member[*thread];
    if (m && m->comm && m->comm != comm)
        m = NULL; /* its own START is not in the log */
    if (!m && !(m = open_member (x, o)))
        return;
    if (start)
        *marked = 1;
    dev = field_int (text, " cudaDev ", o->dev);
    nvml = field_int (text, " nvmlDev ", -1);
    m->rank = rank;
    m->n_ranks = n;
    m->comm = comm;
    field (text, " commId ", &m->id);
    field (text, " parent ", &m->parent);
    m->split = field_int (text, " splitCount ", field_int (text, " childCount ", 0));
    m->color = field_int (text, " color ", 0);
    m->done = !start;
    if ((m->seat = seat_of (x, o, dev)) < 0)
        m->seat = 0;
    else if (nvml >= 0)
        x->log->seat[m->seat].nvml = nvml;
    if (!start)
        *thread = -1;
}

#define LOOKED_BACK 256 /* members of a process that a late line may belong to */

/* The member that a late line of a process belongs to: the only one with that rank, and with
 * as many ranks as its neighbour's number needs. */
static struct nccl_member *late_member (struct reader *x, const struct origin *o,
                                        int rank, int peer)
{
    struct nccl_log *log = x->log;
    int *last = nccl_index_at (&x->processes, process_of (o), 0, 0), looked = 0;
    struct nccl_member *found = NULL;

    if (!last) {
        x->failed = true;
        return NULL;
    }
    for (int i = *last; i >= 0; i = log->member[i].before) {
        struct nccl_member *m = &log->member[i];

        if (++looked > LOOKED_BACK)
            return NULL;
        if (m->rank != rank || peer >= m->n_ranks ||
            (o->dev >= 0 && log->seat[m->seat].dev != o->dev))
            continue;
        if (found)
            return NULL;
        found = m;
    }
    return found;
}

/* The member that a line belongs to; one is opened where the process's version prints no
 * START.  rank, peer: what the line says of its own and of another; -1: nothing.
 * @return NULL: none */
static struct nccl_member *member_of (struct reader *x, const struct origin *o, int rank,
                                      int peer)
{
    int *thread = thread_of (x, o), *marked;

    if (thread && *thread >= 0)
        return &x->log->member[*thread];
    marked = nccl_index_at (&x->marked, process_of (o), 0, 0);
    if (!thread || !marked) {
        x->failed = true;
        return NULL;
    }
    if (*marked < 0)
        return open_member (x, o);
    return rank >= 0 ? late_member (x, o, rank, peer) : NULL;
}

static void add_edge (struct reader *x, struct nccl_member *m, struct nccl_edge e)
{
    struct nccl_log *log = x->log;

    if (!array_grow (&log->edge, (size_t) log->n_edges, sizeof *log->edge)) {
        x->failed = true;
        return;
    }
    e.next = m->edge;
    log->edge[log->n_edges] = e;
    m->edge = log->n_edges++;
}

/* `0   5   4   7`: the ranks of a ring.  One that ends in "..." was cut, perhaps inside its
 * last number. */
static void read_order (struct reader *x, const struct origin *o, int channel,
                        const char *s)
{
    struct nccl_log *log = x->log;
    struct nccl_member *m = member_of (x, o, 0, -1);
    struct nccl_order order = {.channel = channel, .first = log->n_rank};
    int rank;

    if (!m) {
        log->lines.unplaced++;
        return;
    }
    while (take_int (&s, &rank)) {
        if (!array_grow (&log->rank, log->n_rank, sizeof *log->rank)) {
            x->failed = true;
            return;
        }
        log->rank[log->n_rank++] = rank;
        order.n++;
    }
    skip_blanks (&s);
    if (strncmp (s, "...", 3) == 0 && order.n > 0)
        order.n--;
    else if (*s) {
        not_understood (x);
        return;
    }
    if (!array_grow (&log->order, (size_t) log->n_orders, sizeof *log->order)) {
        x->failed = true;
        return;
    }
    order.next = m->order;
    log->order[log->n_orders] = order;
    m->order = log->n_orders++;
}

static enum check_nccl_via via_of (const char *s)
{
    if (strncmp (s, "P2P", 3) == 0)
        return NCCL_P2P;
    if (strncmp (s, "SHM", 3) == 0 || strncmp (s, "direct shared memory", 20) == 0)
        return NCCL_SHM;
    if (strncmp (s, "NET/Socket", 10) == 0)
        return NCCL_SOCKET;
    if (strncmp (s, "NET/", 4) == 0)
        return strstr (s, "/GDRDMA") ? NCCL_NET_GDR : NCCL_NET;
    return NCCL_VIA_OTHER;
}

/* `[send] via NET/IB/0/GDRDMA`, after `Channel 00/0 : a[x] -> b[y]`.  Connections that are not a
 * ring's or tree's (Channel 00/1) come after the communicator is complete. */
static void read_link (struct reader *x, const struct origin *o, struct nccl_edge e,
                       bool ring, const char *s)
{
    struct nccl_member *m;
    int *thread, own, peer;

    e.receive = take (&s, "[receive]");
    if (!e.receive)
        take (&s, "[send]");
    if (!take (&s, "via ")) {
        not_understood (x);
        return;
    }
    e.via = (unsigned char) via_of (s);
    thread = thread_of (x, o);
    own = e.receive ? e.b : e.a;
    peer = e.receive ? e.a : e.b;
    m = ring || (thread && *thread >= 0) ? member_of (x, o, own, peer)
                                         : late_member (x, o, own, peer);
    if (!m) {
        x->log->lines.unplaced++;
        return;
    }
    e.kind = ring && !m->rings && !m->done ? NCCL_RING_LINK : NCCL_LINK;
    add_edge (x, m, e);
}

/* A rank, and what its brackets say of its GPU. */
static bool take_rank (const char **s, int *rank)
{
    if (!take_int (s, rank))
        return false;
    if (**s == '[') {
        size_t n = strspn (*s + 1, "0123456789abcdefABCDEF");

        if ((*s)[1 + n] != ']')
            return false;
        *s += n + 2;
    }
    return true;
}

/* What follows `Channel` or `Ring`: a ring's ranks, a rank's neighbours, or a connection. */
static void read_channel (struct reader *x, const struct origin *o, const char *s)
{
    struct nccl_edge e = {0};
    int channel, part = 0, third;
    const char *ranks;
    struct nccl_member *m;

    if (!take_int (&s, &channel) || channel < 0 || channel >= NCCL_CHANNELS_MAX ||
        (*s == '/' && (s++, !take_int (&s, &part))) || !take (&s, ":")) {
        not_understood (x);
        return;
    }
    ranks = s;
    e.channel = (short) channel;
    if (!take_rank (&s, &e.a)) {
        not_understood (x);
    } else if (!take (&s, "->")) {
        read_order (x, o, channel, ranks);
    } else if (!take_rank (&s, &e.b)) {
        not_understood (x);
    } else if (!take (&s, "->")) {
        read_link (x, o, e, part == 0, s);
    } else if (!take_int (&s, &third)) {
        not_understood (x);
    } else if (!(m = member_of (x, o, e.b, third))) {
        x->log->lines.unplaced++;
    } else {
        e = (struct nccl_edge){.a = e.b, .b = third, .channel = e.channel};
        add_edge (x, m, e);
    }
}

/* `2/-1/-1` or `2`. @return how many ranks there are, 0 for none */
static int take_down (const char **s, int *first)
{
    int n = 0, rank;

    do {
        if (!take_int (s, &rank))
            return 0;
        if (n++ == 0)
            *first = rank;
    } while (**s == '/' && (*s)++);
    return n;
}

/* `[0] down/down/down->me->up [1] ...`, or up->me->down/down/down before 2.6; lines end at a
 * kilobyte, in the middle of an entry. */
static void read_trees (struct reader *x, const struct origin *o, const char *s)
{
    struct nccl_member *m = NULL;
    int channel, left = -1, me, right = -1, n = 0;

    for (; take (&s, "[") && take_int (&s, &channel) && take (&s, "]"); n++) {
        int downs = take_down (&s, &left), up;

        if (downs == 0 || !take (&s, "->") || !take_int (&s, &me) || !take (&s, "->") ||
            take_down (&s, &right) == 0)
            break;
        up = downs > 1 ? right : left;
        s += strcspn (s, " [");
        if (channel < 0 || channel >= NCCL_CHANNELS_MAX)
            break;
        if (n == 0 && !(m = member_of (x, o, me, up))) {
            x->log->lines.unplaced++;
            return;
        }
        if (up >= 0)
            add_edge (
                x, m,
                (struct nccl_edge){
                    .a = me, .b = up, .channel = (short) channel, .kind = NCCL_TREE});
    }
    if (n == 0)
        not_understood (x);
}

static void read_version (struct reader *x, const char *s)
{
    struct check_nccl_lines *l = &x->log->lines;
    size_t n = strspn (s, "0123456789.");
    int major = 0, minor = 0;
    const char *at = s;

    if (n < 3 || n >= sizeof l->version[0])
        return;
    if (take_int (&at, &major) && *at == '.')
        at++;
    take_int (&at, &minor);
    l->unknown_version |= major != 2 || minor < 4 || minor > 28;
    for (int i = 0; i < l->versions; i++)
        if (strlen (l->version[i]) == n && memcmp (l->version[i], s, n) == 0)
            return;
    if (l->versions < (int) (sizeof l->version / sizeof *l->version)) {
        memcpy (l->version[l->versions], s, n);
        l->version[l->versions++][n] = '\0';
    }
}

/* What NCCL says, by its first words. */
static void read_message (struct reader *x, const struct origin *o, const char *s)
{
    struct nccl_member *m;
    const char *number = s;
    int channels;

    if (strstr (s, "- Init START"))
        read_init (x, o, s, true);
    else if (strstr (s, "Init COMPLETE"))
        read_init (x, o, s, false);
    else if (strncmp (s, "Channel ", 8) == 0)
        read_channel (x, o, s + 8);
    else if (strncmp (s, "Ring ", 5) == 0)
        read_channel (x, o, s + 5);
    else if (strncmp (s, "Trees ", 6) == 0)
        read_trees (x, o, s + 6);
    else if (strncmp (s, "Connected all rings", 19) == 0) {
        int *thread = thread_of (x, o);

        if (thread && *thread >= 0)
            x->log->member[*thread].rings = true;
    } else if (take_int (&number, &channels) && take (&number, "coll channels") &&
               channels > 0 && (m = member_of (x, o, -1, -1)))
        m->channels = channels;
}

static void read_line (struct reader *x, const char *line)
{
    static const char info[] = "NCCL INFO ";
    const char *at = strstr (line, info), *version = strstr (line, "NCCL version ");
    struct origin o;

    x->line++;
    x->log->lines.all++;
    if (version)
        read_version (x, version + 13);
    if (!at) {
        x->log->lines.nccl += version || strstr (line, "NCCL WARN ");
        return;
    }
    x->log->lines.nccl++;
    if (strstr (at + 1, info))
        not_understood (x); /* two writers' lines in one */
    else if (find_origin (x, line, at, &o))
        read_message (x, &o, at + sizeof info - 1);
    else if (!version && !x->failed)
        not_understood (x);
}

/* ---- files ---- */

#define LINE_MAX_BYTES 16384 /* NCCL prints a kilobyte; what is longer is cut */
#define STREAM_MAX_BYTES \
    (16 << 20) /* without a line of NCCL, of what is no text and no file */

/* Let the reader see a buffer's whole lines, or all of it where it is full or the last.
 * @return bytes that it used */
static size_t read_lines (struct reader *x, char *buf, size_t n, bool last, bool *skip)
{
    size_t from = 0;

    while (from < n) {
        char *end = memchr (buf + from, '\n', n - from);
        bool cut = !end && !last && from == 0 && n == LINE_MAX_BYTES;

        if (!end && !last && !cut)
            break;
        if (!end)
            end = buf + n;
        *end = '\0';
        if (end > buf + from && end[-1] == '\r')
            end[-1] = ' ';
        for (char *hole = buf + from;
             (hole = memchr (hole, '\0', (size_t) (end - hole)));)
            *hole = ' '; /* as several writers leave them in one file */
        if (!*skip)
            read_line (x, buf + from);
        *skip = cut;
        from = (size_t) (end - buf) + !cut;
    }
    return from < n ? from : n;
}

static enum status read_stream (struct reader *x, const char *path, FILE *f,
                                struct error *err)
{
    char buf[LINE_MAX_BYTES + 1];
    size_t n = 0, got;
    long long before = x->log->lines.nccl;
    const char *why = NULL;
    bool first = true, skip = false;
    struct stat sb;
    bool ends = fstat (fileno (f), &sb) == 0 && S_ISREG (sb.st_mode);
    long long left = STREAM_MAX_BYTES;

    while ((got = fread (buf + n, 1, LINE_MAX_BYTES - n, f)) > 0) {
        size_t used;

        if (first)
            why = file_not_text (buf, got);
        first = false;
        n += got;
        used = read_lines (x, buf, n, false, &skip);
        n -= used;
        memmove (buf, buf + used, n);
        left -= (long long) got;
        if (why && !ends && left < 0 && x->log->lines.nccl == before)
            break; /* a device may have no end */
    }
    if (ferror (f))
        return file_failed (path, err);
    read_lines (x, buf, n, true, &skip);
    if (why && x->log->lines.nccl == before)
        return err_set (err, ST_INVALID, "%s: %s", file_title (path), why);
    return x->failed ? err_nomem (err) : ST_OK;
}

static enum status read_file (struct reader *x, const char *path, struct error *err)
{
    struct check_nccl_lines *l = &x->log->lines;
    bool dash = strcmp (path, "-") == 0;
    FILE *f = dash ? stdin : fopen (path, "r");
    enum status st;

    if (!f)
        return file_failed (path, err);
    if (!array_grow (&l->name, (size_t) l->names, sizeof *l->name) ||
        !(l->name[l->names] = strdup (file_title (path)))) {
        st = err_nomem (err);
    } else {
        x->file = l->name[l->names++];
        x->line = 0;
        l->files++;
        st = read_stream (x, path, f, err);
    }
    if (!dash)
        fclose (f);
    return st;
}

static bool is_folder (const char *path)
{
    struct stat sb;

    return stat (path, &sb) == 0 && S_ISDIR (sb.st_mode);
}

static bool is_file (const char *path)
{
    struct stat sb;

    return stat (path, &sb) == 0 && S_ISREG (sb.st_mode);
}

/* Every file that a pattern means; a pipe among them would be waited for. */
static enum status read_pattern (struct reader *x, const char *path, const char *pattern,
                                 struct error *err)
{
    glob_t g;
    int rc = glob (pattern, 0, NULL, &g);
    enum status st = ST_OK;

    if (rc != 0) {
        globfree (&g);
        errno = ENOENT;
        return rc == GLOB_NOSPACE ? err_nomem (err) : file_failed (path, err);
    }
    for (size_t i = 0; i < g.gl_pathc && st == ST_OK; i++)
        if (is_file (g.gl_pathv[i]))
            st = read_file (x, g.gl_pathv[i], err);
    globfree (&g);
    return st;
}

/* A folder's own name may have a pattern's characters in it. */
static enum status read_folder (struct reader *x, const char *path, struct error *err)
{
    struct text pattern = {0};
    enum status st;

    for (const char *s = path; *s; s++)
        text_add (&pattern, strchr ("*?[\\", *s) ? "\\%c" : "%c", *s);
    text_add (&pattern, "/*");
    st = pattern.failed ? err_nomem (err)
                        : read_pattern (x, path, text_str (&pattern), err);
    text_free (&pattern);
    return st;
}

static enum status read_path (struct reader *x, const char *path, struct error *err)
{
    struct stat sb;

    if (strcmp (path, "-") == 0)
        return read_file (x, path, err);
    if (is_folder (path))
        return read_folder (x, path, err);
    if (stat (path, &sb) != 0 && strpbrk (path, "*?["))
        return read_pattern (x, path, path, err);
    return read_file (x, path, err);
}

enum status nccl_log_read (const char *const *path, int n, struct nccl_log *log,
                           struct error *err)
{
    struct reader x = {.log = log};
    enum status st = ST_OK;

    *log = (struct nccl_log){0};
    for (int i = 0; i < n && st == ST_OK; i++)
        st = read_path (&x, path[i], err);
    nccl_index_free (&x.hosts);
    nccl_index_free (&x.seats);
    nccl_index_free (&x.threads);
    nccl_index_free (&x.processes);
    nccl_index_free (&x.marked);
    if (st != ST_OK)
        return st;
    if (log->lines.nccl == 0)
        return err_set (
            err, ST_INVALID,
            "%s: expected lines of NCCL (\"host:pid:tid [0] NCCL INFO ...\", with "
            "NCCL_DEBUG=INFO), found %s%lld lines without any",
            file_title (path[0]), log->lines.files > 1 ? "in all files " : "",
            log->lines.all);
    for (int i = 0; i < log->n_members; i++)
        if (log->member[i].n_ranks > 0)
            return ST_OK;
    return err_set (
        err, ST_INVALID,
        "%s: expected a communicator (\"comm ... Init COMPLETE\", with "
        "NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET), found none in "
        "%lld lines of NCCL",
        file_title (path[0]), log->lines.nccl);
}

void nccl_log_release (struct nccl_log *log)
{
    for (int i = 0; i < log->n_hosts; i++)
        free (log->host[i]);
    for (int i = 0; i < log->lines.names; i++)
        free (log->lines.name[i]);
    free (log->lines.name);
    free (log->host);
    free (log->seat);
    free (log->member);
    free (log->edge);
    free (log->order);
    free (log->rank);
    *log = (struct nccl_log){0};
}
