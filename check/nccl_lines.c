/* One line of NCCL's logs: `host:pid:tid [device] NCCL INFO text`, whatever a launcher puts before
 * it.  Its text opens a communicator, or says what a rank has of rings, trees and connections. */
#include "check/nccl_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

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
    *out = strtoull (at, &end, strncmp (at, "0x", 2) == 0 ? 16 : 10);
    return end != at;
}

static int field_int (const char *text, const char *key, int otherwise)
{
    uint64_t x;

    return field (text, key, &x) && (x <= 999999999 || ~x < 999999999) ? (int) x
                                                                       : otherwise;
}

/* What became of a line. */
enum outcome { TAKEN, NOT_UNDERSTOOD, OF_NOBODY };

static void count (struct nccl_reader *x, enum outcome o)
{
    struct check_nccl_lines *l = &x->log->lines;

    if (o == NOT_UNDERSTOOD && l->unread < CHECK_NCCL_PLACES) {
        l->place[l->unread].file = x->file;
        l->place[l->unread].line = x->line;
    }
    l->unread += o == NOT_UNDERSTOOD;
    l->unplaced += o == OF_NOBODY;
}

/* ---- whose it is ---- */

/* Digits that end before *end and are not before `from`. */
static bool back_int (const char *from, const char **end, int *out)
{
    const char *s = *end, *digits;

    while (s > from && isdigit ((unsigned char) s[-1]))
        s--;
    digits = s;
    if (!take_int (&digits, out))
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
static bool find_origin (struct nccl_reader *x, const char *from, const char *end,
                         struct nccl_origin *o)
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
    o->host = nccl_host (x, s, (size_t) (end - s));
    return o->host >= 0;
}

/* ---- what lines say ---- */

/* Init START and Init COMPLETE: `comm 0x.. rank 0 nranks 8 cudaDev 0 nvmlDev 0 ...`. */
static enum outcome read_init (struct nccl_reader *x, const struct nccl_origin *o,
                               const char *text, bool start)
{
    int *thread = nccl_thread (x, o), *marked = nccl_marked (x, o), dev, nvml;
    struct nccl_member *m = NULL;
    uint64_t comm = 0;
    int rank = field_int (text, " rank ", -1), n = field_int (text, " nranks ", 0);

    if (rank < 0 || rank >= n || !field (text, "comm ", &comm))
        return NOT_UNDERSTOOD;
    if (!thread || !marked)
        return TAKEN;
    if (!start && *thread >= 0)
        m = &x->log->member[*thread];
    if (m && m->comm && m->comm != comm)
        m = NULL; /* its own START is not in the log */
    if (!m && !(m = nccl_member_open (x, o)))
        return TAKEN;
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
    if ((m->seat = nccl_seat_of (x, o, dev)) < 0)
        m->seat = 0;
    else if (nvml >= 0)
        x->log->seat[m->seat].nvml = nvml;
    if (!start)
        *thread = -1;
    return TAKEN;
}

/* @param m  NULL: nobody says it */
static enum outcome add_edge (struct nccl_reader *x, struct nccl_member *m,
                              struct nccl_edge e)
{
    struct nccl_log *log = x->log;

    if (!m)
        return OF_NOBODY;
    if (!array_grow (&log->edge, (size_t) log->n_edges, sizeof *log->edge)) {
        x->failed = true;
        return TAKEN;
    }
    e.next = m->edge;
    log->edge[log->n_edges] = e;
    m->edge = log->n_edges++;
    return TAKEN;
}

/* `0   5   4   7`: the ranks of a ring.  One that ends in "..." was cut, perhaps inside its
 * last number. */
static enum outcome read_order (struct nccl_reader *x, const struct nccl_origin *o,
                                int channel, const char *s)
{
    struct nccl_log *log = x->log;
    struct nccl_member *m = nccl_member_of (x, o, 0, -1);
    struct nccl_order order = {.channel = channel, .first = log->n_rank};
    bool room;
    int rank;

    if (!m)
        return OF_NOBODY;
    while ((room = array_grow (&log->rank, log->n_rank, sizeof *log->rank)) &&
           take_int (&s, &rank)) {
        log->rank[log->n_rank++] = rank;
        order.n++;
    }
    skip_blanks (&s);
    if (strncmp (s, "...", 3) == 0)
        order.n--;
    else if (room && *s)
        return NOT_UNDERSTOOD;
    if (!room || !array_grow (&log->order, (size_t) log->n_orders, sizeof *log->order)) {
        x->failed = true;
        return TAKEN;
    }
    order.next = m->order;
    log->order[log->n_orders] = order;
    m->order = log->n_orders++;
    return TAKEN;
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
static enum outcome read_link (struct nccl_reader *x, const struct nccl_origin *o,
                               struct nccl_edge e, bool ring, const char *s)
{
    struct nccl_member *m;
    int *thread, own, peer;

    e.receive = take (&s, "[receive]");
    if (!e.receive)
        take (&s, "[send]");
    if (!take (&s, "via "))
        return NOT_UNDERSTOOD;
    e.via = (unsigned char) via_of (s);
    thread = nccl_thread (x, o);
    own = e.receive ? e.b : e.a;
    peer = e.receive ? e.a : e.b;
    m = ring || (thread && *thread >= 0) ? nccl_member_of (x, o, own, peer)
                                         : nccl_member_late (x, o, own, peer);
    e.kind = ring && m && !m->rings && !m->done ? NCCL_RING_LINK : NCCL_LINK;
    return add_edge (x, m, e);
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
static enum outcome read_channel (struct nccl_reader *x, const struct nccl_origin *o,
                                  const char *s)
{
    struct nccl_edge e = {0};
    int channel, part = 0, third;
    const char *ranks;

    if (!take_int (&s, &channel) || channel < 0 || channel >= NCCL_CHANNELS_MAX ||
        (*s == '/' && (s++, !take_int (&s, &part))) || !take (&s, ":"))
        return NOT_UNDERSTOOD;
    ranks = s;
    e.channel = (short) channel;
    if (!take_rank (&s, &e.a))
        return NOT_UNDERSTOOD;
    if (!take (&s, "->"))
        return read_order (x, o, channel, ranks);
    if (!take_rank (&s, &e.b))
        return NOT_UNDERSTOOD;
    if (!take (&s, "->"))
        return read_link (x, o, e, part == 0, s);
    if (!take_int (&s, &third))
        return NOT_UNDERSTOOD;
    e.a = e.b;
    e.b = third;
    return add_edge (x, nccl_member_of (x, o, e.a, third), e);
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
static enum outcome read_trees (struct nccl_reader *x, const struct nccl_origin *o,
                                const char *s)
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
        if (n == 0 && !(m = nccl_member_of (x, o, me, up)))
            return OF_NOBODY;
        if (up >= 0)
            add_edge (
                x, m,
                (struct nccl_edge){
                    .a = me, .b = up, .channel = (short) channel, .kind = NCCL_TREE});
    }
    return n == 0 ? NOT_UNDERSTOOD : TAKEN;
}

static void read_version (struct nccl_reader *x, const char *s)
{
    struct check_nccl_lines *l = &x->log->lines;
    size_t n = strspn (s, "0123456789.");
    int major = 0, minor = 0;

    if (n < 3 || n >= sizeof l->version[0])
        return;
    sscanf (s, "%9d.%9d", &major, &minor);
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
static enum outcome read_message (struct nccl_reader *x, const struct nccl_origin *o,
                                  const char *s)
{
    struct nccl_member *m;
    const char *number = s;
    int channels, *thread;

    if (strstr (s, "- Init START"))
        return read_init (x, o, s, true);
    if (strstr (s, "Init COMPLETE"))
        return read_init (x, o, s, false);
    if (strncmp (s, "Channel ", 8) == 0)
        return read_channel (x, o, s + 8);
    if (strncmp (s, "Ring ", 5) == 0)
        return read_channel (x, o, s + 5);
    if (strncmp (s, "Trees ", 6) == 0)
        return read_trees (x, o, s + 6);
    if (strncmp (s, "Connected all rings", 19) == 0) {
        if ((thread = nccl_thread (x, o)) && *thread >= 0)
            x->log->member[*thread].rings = true;
    } else if (take_int (&number, &channels) && take (&number, "coll channels") &&
               (m = nccl_member_of (x, o, -1, -1)))
        m->channels = channels;
    return TAKEN;
}

void nccl_line_read (struct nccl_reader *x, const char *line)
{
    static const char info[] = "NCCL INFO ";
    const char *at = strstr (line, info), *version = strstr (line, "NCCL version ");
    struct nccl_origin o;

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
        count (x, NOT_UNDERSTOOD); /* two writers' lines in one */
    else if (find_origin (x, line, at, &o))
        count (x, read_message (x, &o, at + sizeof info - 1));
    else if (!version && !x->failed)
        count (x, NOT_UNDERSTOOD);
}
