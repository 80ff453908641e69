/* What is read of NCCL's lines: whose they are, communicators, rings, trees, connections, versions;
 * and how files become lines. */
#include <sys/stat.h>

#include "base/text.h"
#include "check/nccl_private.h"
#include "tests/lib/folder.h"

#define A "n0:1:9 [0] NCCL INFO "
#define OLD(RANK, N) "comm 0x10 rank " #RANK " nranks " #N " cudaDev 0 - Init COMPLETE\n"
#define START(COMM, RANK, N) \
    "comm " #COMM " rank " #RANK " nranks " #N " cudaDev 0 commId 0x77 - Init START\n"
#define DONE(COMM, RANK, N)                                                     \
    "comm " #COMM " rank " #RANK " nranks " #N " cudaDev 0 commId 0x77 - Init " \
    "COMPLETE\n"

static struct nccl_log found;
static struct nccl_reader reader;

static int begin (void **state)
{
    (void) state;
    reader = (struct nccl_reader){.log = &found, .file = "log"};
    return 0;
}

static int end (void **state)
{
    (void) state;
    nccl_reader_release (&reader);
    nccl_log_release (&found);
    return 0;
}

#define LOG_TEST(NAME) TEST_BETWEEN (NAME, begin, end)

/* Nothing before a line is part of it, though it looks like it. */
static void read_lines (const char *text)
{
    while (*text) {
        size_t n = strcspn (text, "\n");
        struct text line = {0};

        text_add (&line, "7%.*s", (int) n, text);
        nccl_line_read (&reader, line.s + 1);
        text_free (&line);
        text += n + (text[n] == '\n');
    }
    assert_false (reader.failed);
}

/* ---- what was found, in words ---- */

static void tell_edges (struct text *t, int edge)
{
    static const char *const kind[] = {"ring", "tree", "ringlink", "link"};
    const struct nccl_edge *e;

    if (edge < 0)
        return;
    e = &found.edge[edge];
    tell_edges (t, e->next);
    text_add (t, " %s%d:%d>%d", kind[e->kind], e->channel, e->a, e->b);
    if (e->kind >= NCCL_RING_LINK)
        text_add (t, ",%s%s", check_nccl_via_name ((enum check_nccl_via) e->via),
                  e->receive ? ",in" : "");
}

static void tell_orders (struct text *t, int order)
{
    const struct nccl_order *o;

    if (order < 0)
        return;
    o = &found.order[order];
    tell_orders (t, o->next);
    text_add (t, " order%d:", o->channel);
    for (int i = 0; i < o->n; i++)
        text_add (t, "%s%d", i ? "," : "", found.rank[o->first + (size_t) i]);
}

static void tell_member (struct text *t, const struct nccl_member *m)
{
    const struct nccl_seat *s = &found.seat[m->seat];

    text_add (t, "%s:%d:%d", found.host[s->host], s->pid, s->dev);
    if (s->nvml >= 0)
        text_add (t, "/%d", s->nvml);
    text_add (t, " %d/%d", m->rank, m->n_ranks);
    if (m->comm)
        text_add (t, " comm %llx", (unsigned long long) m->comm);
    if (m->id)
        text_add (t, " id %llx", (unsigned long long) m->id);
    if (m->parent)
        text_add (t, " from %llx.%d.%d", (unsigned long long) m->parent, m->split,
                  m->color);
    if (m->before >= 0)
        text_add (t, " after %d", m->before);
    if (m->done)
        text_add (t, " done");
    if (m->rings)
        text_add (t, " rings");
    if (m->channels)
        text_add (t, " channels %d", m->channels);
    tell_edges (t, m->edge);
    tell_orders (t, m->order);
}

/* Lines of a log, and what they say: members apart by "; ", then lines that are not NCCL's, not
 * understood, or of no member. */
struct lines {
    const char *log, *says;
};

static void expect (const struct lines *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct text says = {0};

        begin (NULL);
        read_lines (t[i].log);
        for (int k = 0; k < found.n_members; k++) {
            text_add (&says, "%s", k ? "; " : "");
            tell_member (&says, &found.member[k]);
        }
        if (found.lines.nccl != found.lines.all)
            text_add (&says, " | %lld others", found.lines.all - found.lines.nccl);
        if (found.lines.unread)
            text_add (&says, " | %lld unread", found.lines.unread);
        if (found.lines.unplaced)
            text_add (&says, " | %lld unplaced", found.lines.unplaced);
        if (strcmp (text_str (&says), t[i].says) != 0)
            fail_msg ("\n%s  expected \"%s\"\n  found    \"%s\"", t[i].log, t[i].says,
                      text_str (&says));
        text_free (&says);
        end (NULL);
    }
}
#define EXPECT(T) expect (T, sizeof (T) / sizeof *(T))

/* ---- whose a line is ---- */

#define N50 "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
#define N253 N50 N50 N50 N50 N50 "yyy"

LOG_TEST (origins)
{
    static const struct lines t[] = {
        {A OLD (0, 2), "n0:1:0 0/2 comm 10 done"},
        {"[1,3]<stdout>: a.b_c-d:22:333   [4]   NCCL INFO rank comm 0x10 rank 1 nranks 2 "
         "Init COMPLETE\n",
         "a.b_c-d:22:4 1/2 comm 10 done"},
        {"[rank0]:n0:1:9 NCCL INFO comm 0x10 rank 1 nranks 2 Init COMPLETE\n",
         "n0:1:-1 1/2 comm 10 done"},
        {N253 ":999999999:1 NCCL INFO " OLD (0, 2), N253 ":999999999:0 0/2 comm 10 done"},
        {N253 "x:1:1 NCCL INFO " OLD (0, 2), " | 1 unread"},
        {"n0:1000000000:1 NCCL INFO " OLD (0, 2), " | 1 unread"},
        {"n0:1:9 0] NCCL INFO " OLD (0, 2), " | 1 unread"},
        {"n0:1:9 [] NCCL INFO " OLD (0, 2), " | 1 unread"},
        {"n0:1:9 [0 NCCL INFO " OLD (0, 2), " | 1 unread"},
        {"n0:1: [0] NCCL INFO " OLD (0, 2), " | 1 unread"},
        {"n0:1.9 [0] NCCL INFO " OLD (0, 2), " | 1 unread"},
        {"n0::9 [0] NCCL INFO " OLD (0, 2), " | 1 unread"},
        {"n0.1:9 [0] NCCL INFO " OLD (0, 2), " | 1 unread"},
        {":1:9 [0] NCCL INFO " OLD (0, 2), " | 1 unread"},
        {"NCCL INFO " OLD (0, 2), " | 1 unread"},
        {"5] NCCL INFO " OLD (0, 2), " | 1 unread"},
        /* two writers' lines in one */
        {A OLD (0, 2) A "Trees [0] " A OLD (0, 2), "n0:1:0 0/2 comm 10 done | 1 unread"},
        /* others' lines, warnings, and what is not looked at */
        {"step 1\n" A "Bootstrap : Using eth0\nn0:1:9 [0] misc.cc:1 NCCL WARN x\n",
         " | 1 others"},
        /* hosts, processes and devices are apart */
        {A OLD (0, 3) "n1:1:9 [0] NCCL INFO " OLD (1, 3) "n0:2:9 [0] NCCL INFO " OLD (
             2, 3) "n0:1:9 [0] NCCL INFO comm 0x10 rank 1 nranks 3 cudaDev 1 - Init "
                   "COMPLETE\n",
         "n0:1:0 0/3 comm 10 done; n1:1:0 1/3 comm 10 done; n0:2:0 2/3 comm 10 done; "
         "n0:1:1 "
         "1/3 comm 10 after 0 done"}};

    EXPECT (t);
}

/* Numbers are given to a host, and to a device of a process, once. */
LOG_TEST (numbers)
{
    struct nccl_origin o = {0};

    assert_int_equal (nccl_host (&reader, "n1", 2), 0);
    assert_int_equal (nccl_host (&reader, "n10", 3), 1);
    assert_int_equal (nccl_host (&reader, "n10", 2), 0);
    assert_int_equal (nccl_host (&reader, "n10", 3), 1);
    assert_int_equal (found.n_hosts, 2);
    for (int i = 0; i < 4 * 2 * 2; i++) {
        o = (struct nccl_origin){.host = i / 2 % 2, .pid = i / 4};
        assert_int_equal (nccl_seat_of (&reader, &o, i % 2), i);
        assert_int_equal (nccl_seat_of (&reader, &o, i % 2), i);
    }
}

/* ---- the index ---- */

/* A number in any of the three places is another key; what is set stays while the table grows. */
LOG_TEST (index_of_three)
{
    struct nccl_index x = {0};

    for (int i = 0; i < 1000; i++) {
        int *at = nccl_index_at (&x, (uint64_t) i % 10, (uint64_t) i / 10 % 10,
                                 (uint64_t) i / 100);

        assert_int_equal (*at, -1);
        *at = i;
        assert_true (2 * (x.n - 1) < x.room);
    }
    assert_int_equal (x.n, 1000);
    assert_int_equal (x.room, 2048);
    for (int i = 0; i < 1000; i++)
        assert_int_equal (*nccl_index_at (&x, (uint64_t) i % 10, (uint64_t) i / 10 % 10,
                                          (uint64_t) i / 100),
                          i);
    nccl_index_free (&x);
}

/* ---- communicators ---- */

LOG_TEST (inits)
{
    static const struct lines t[] = {
        {A START (0x10, 1, 4) A DONE (0x10, 1, 4), "n0:1:0 1/4 comm 10 id 77 done"},
        {A START (0x10, 0, 1), "n0:1:0 0/1 comm 10 id 77"},
        /* a device that the line says itself, and its number on the machine */
        {"n0:1:9 [5] NCCL INFO comm 0x1 rank 0 nranks 2 nvmlDev 0 - Init COMPLETE\n",
         "n0:1:5/0 0/2 comm 1 done"},
        {A "comm 0x1 rank 0 nranks 2 cudaDev 3 nvmlDev 6 - Init COMPLETE\n" A
           "comm 0x2 rank 0 nranks 2 cudaDev 3 - Init COMPLETE\n",
         "n0:1:3/6 0/2 comm 1 done; n0:1:3/6 0/2 comm 2 after 0 done"},
        /* no rank of it, or nothing to know it by */
        {A "comm 0x1 rank 2 nranks 2 - Init COMPLETE\n", " | 1 unread"},
        {A "comm 0x1 rank -1 nranks 2 - Init COMPLETE\n", " | 1 unread"},
        {A "comm 0x1 nranks 2 - Init COMPLETE\n", " | 1 unread"},
        {A "comm 0x1 rank 0 cudaDev 0 - Init COMPLETE\n", " | 1 unread"},
        {A "comm x rank 0 nranks 2 - Init START\n", " | 1 unread"},
        {A "rank 0 nranks 2 cudaDev 0 - Init START\n", " | 1 unread"},
        {A "comm 0x1 rank 1000000000 nranks 1000000001 - Init START\n", " | 1 unread"},
        {A "comm 1f rank 999999998 nranks 999999999 commId 20 - Init START\n",
         "n0:1:0 999999998/999999999 comm 1 id 14"},
        /* splits, as two versions count them */
        {A
         "comm 0x2 rank 0 nranks 2 parent 0xa0 splitCount 3 color -7 key 0- Init START\n",
         "n0:1:0 0/2 comm 2 from a0.3.-7"},
        {A "comm 0x2 rank 0 nranks 2 parent 0xa0 childCount 4 color 999999999 - Init "
           "START\n",
         "n0:1:0 0/2 comm 2 from a0.4.999999999"},
        {A "comm 0x2 rank 0 nranks 2 parent 0xa0 - Init START\n",
         "n0:1:0 0/2 comm 2 from a0.0.0"},
        {A "comm 0x2 rank 0 nranks 2 parent 0xa0 color -999999999 - Init START\n",
         "n0:1:0 0/2 comm 2 from a0.0.-999999999"},
        {A "comm 0x2 rank 0 nranks 2 parent 0xa0 color -1000000000 - Init START\n",
         "n0:1:0 0/2 comm 2 from a0.0.0"},
        {A "comm 0x2 rank 0 nranks 2 parent 0xa0 color 1000000000 - Init START\n",
         "n0:1:0 0/2 comm 2 from a0.0.0"},
        /* one that never completes, and one whose START is not in the log */
        {A START (0x10, 0, 4) A START (0x20, 0, 4) A DONE (0x20, 0, 4),
         "n0:1:0 0/4 comm 10 id 77; n0:1:0 0/4 comm 20 id 77 after 0 done"},
        {A START (0x10, 0, 4) A DONE (0x20, 0, 4),
         "n0:1:0 0/4 comm 10 id 77; n0:1:0 0/4 comm 20 id 77 after 0 done"},
        {A DONE (0x10, 0, 4) A DONE (0x20, 0, 4),
         "n0:1:0 0/4 comm 10 id 77 done; n0:1:0 0/4 comm 20 id 77 after 0 done"},
        /* how many channels, and whether all rings are connected */
        {A START (0x10, 0, 4) A "16 coll channels, 0 collnet channels\n" A
                                "Connected all rings, use ring PXN 0\n",
         "n0:1:0 0/4 comm 10 id 77 rings channels 16"},
        {A "2 coll channels, 0 collnet channels\n" A OLD (0, 4) A "Connected all rings\n",
         "n0:1:0 0/4 comm 10 done channels 2"},
        {A DONE (0x10, 0, 4) A START (0x20, 0, 4) A "2 p2p channels\n" A DONE (0x20, 0, 4)
             A "8 coll channels\n",
         "n0:1:0 0/4 comm 10 id 77 done; n0:1:0 0/4 comm 20 id 77 after 0 done"}};

    EXPECT (t);
}

/* A late line is of the one communicator of its process in which it has that rank, and that has its
 * neighbour; where the process prints no START it begins another. */
LOG_TEST (late_lines)
{
    static const struct lines t[] = {
        {A START (0x10, 0, 4) A DONE (0x10, 0, 4) A START (0x20, 0, 2) A DONE (0x20, 0, 2)
             A "Channel 00/0 : 0[0] -> 2[0] via P2P\n" A
               "Channel 00/0 : 0[0] -> 1[0] via P2P\n",
         "n0:1:0 0/4 comm 10 id 77 done link0:0>2,p2p; n0:1:0 0/2 comm 20 id 77 after 0 "
         "done "
         "| 1 unplaced"},
        {A START (0x10, 1, 4) A DONE (0x10, 1, 4) A START (0x20, 0, 2) A DONE (0x20, 0, 2)
             A "Channel 00/0 : 1[0] -> 0[0] via P2P\n" A
               "Channel 00/0 : 1[0] -> 0[0] [receive] via P2P\n",
         "n0:1:0 1/4 comm 10 id 77 done link0:1>0,p2p; n0:1:0 0/2 comm 20 id 77 after 0 "
         "done "
         "link0:1>0,p2p,in"},
        /* of two devices of one process, by the line's own */
        {A START (0x10, 0, 4)
             A DONE (0x10, 0, 4) "n0:1:8 [1] NCCL INFO comm 0x20 rank 0 nranks "
                                 "4 cudaDev 1 commId 0x78 - Init START\n"
                                 "n0:1:8 [1] NCCL INFO comm 0x20 rank 0 nranks 4 cudaDev "
                                 "1 commId 0x78 - Init COMPLETE\n"
                                 "n0:1:7 [0] NCCL INFO Channel 00/0 : 0 -> 1 via P2P\n"
                                 "n0:1:7 NCCL INFO Channel 01/0 : 0 -> 1 via P2P\n",
         "n0:1:0 0/4 comm 10 id 77 done link0:0>1,p2p; n0:1:1 0/4 comm 20 id 78 after 0 "
         "done "
         "| 1 unplaced"},
        /* no rank is said: nobody's */
        {A START (0x10, 0, 4) "n0:1:8 [0] NCCL INFO 2 coll channels\n",
         "n0:1:0 0/4 comm 10 id 77"},
        {A "Channel 00 : 0 1\nn0:1:8 [1] NCCL INFO comm 0x10 rank 0 nranks 2 cudaDev 1 - "
           "Init "
           "START\nn0:1:7 [0] NCCL INFO 2 coll channels\n",
         "n0:1:0 -1/0 order0:0,1; n0:1:1 0/2 comm 10 after 0"},
        /* another thread's communicator is not this one's */
        {A START (0x10, 0, 4) "n0:1:8 [0] NCCL INFO " START (0x20, 1, 4) A
         "Channel 00/0 : 0 -> 1 via P2P\n",
         "n0:1:0 0/4 comm 10 id 77 ringlink0:0>1,p2p; n0:1:0 1/4 comm 20 id 77 after 0"},
        /* without START a ring's line begins a communicator, others wait for one to be complete */
        {A "Ring 00 : 0 -> 1 via P2P\n" A OLD (0, 2),
         "n0:1:0 0/2 comm 10 done ringlink0:0>1,p2p"},
        {A "Channel 00/1 : 0 -> 1 via P2P\n" A OLD (0, 2) A
         "Channel 00/1 : 0 -> 1 via P2P\n" A "Ring 00 : 1 -> 0 via P2P\n",
         "n0:1:0 0/2 comm 10 done link0:0>1,p2p; n0:1:0 -1/0 after 0 ringlink0:1>0,p2p | "
         "1 "
         "unplaced"},
        {A START (0x10, 0, 2) A "Channel 00/1 : 1 -> 0 via P2P\n",
         "n0:1:0 0/2 comm 10 id 77 link0:1>0,p2p"}};

    EXPECT (t);
}

/* The last 256 communicators of a process are looked at. */
LOG_TEST (looked_back)
{
    struct nccl_origin o = {.pid = 1};

    nccl_member_open (&reader, &o)->rank = 5;
    found.member[0].n_ranks = 8;
    for (int i = 1; i < 256; i++)
        nccl_member_open (&reader, &o);
    assert_ptr_equal (nccl_member_late (&reader, &o, 5, 7), &found.member[0]);
    assert_null (nccl_member_late (&reader, &o, 5, 8));
    nccl_member_open (&reader, &o);
    assert_null (nccl_member_late (&reader, &o, 5, 7));
    o.pid = 2;
    assert_null (nccl_member_late (&reader, &o, 5, 7));
}

/* ---- rings, trees, connections ---- */

LOG_TEST (channels)
{
    static const struct lines t[] = {
        {A "Channel 00/02 : 0 1 3 2\n" A "Channel 63 :    0   3\n" A OLD (0, 4),
         "n0:1:0 0/4 comm 10 done order0:0,1,3,2 order63:0,3"},
        {A "Channel 00/02 : 0 1 3...\n" A "Channel 01/02 : 0 1 ...\n",
         "n0:1:0 -1/0 order0:0,1 order1:0"},
        {A "Channel 00/02 : 0 999999999\n", "n0:1:0 -1/0 order0:0,999999999"},
        {A "Channel 00/02 : 0 1000000000\n" A "Channel 00/02 : 0 x\n" A
           "Channel 00/02 : 0 1..\n",
         "n0:1:0 -1/0 | 3 unread"},
        {A START (0x10, 2, 4) A DONE (0x10, 2, 4) A "Channel 00/02 : 0 1 2 3\n",
         "n0:1:0 2/4 comm 10 id 77 done | 1 unplaced"},
        {A START (0x10, 0, 4) A DONE (0x10, 0, 4) A START (0x20, 1, 4) A DONE (0x20, 1, 4)
             A "Channel 00/02 : 1 0\n",
         "n0:1:0 0/4 comm 10 id 77 done order0:1,0; n0:1:0 1/4 comm 20 id 77 after 0 "
         "done"},
        /* a rank between its neighbours: what follows it */
        {A START (0x10, 2, 4) A "Ring 00 : 1 -> 2 -> 3\n" A "Ring 63 : 3 -> 2 -> 1\n",
         "n0:1:0 2/4 comm 10 id 77 ring0:2>3 ring63:2>1"},
        {A START (0x10, 2, 4) A DONE (0x10, 2, 4) A "Ring 00 : 1 -> 2 -> 3\n" A
                                                    "Ring 00 : 1 -> 2 -> 4\n" A
                                                    "Ring 00 : 2 -> 1 -> 3\n",
         "n0:1:0 2/4 comm 10 id 77 done ring0:2>3 | 2 unplaced"},
        {A "Channel 64/0 : 0 1\n" A "Channel -1 : 0 1\n" A "Channel x : 0 1\n" A
           "Channel 00/x : 0 1\n" A "Channel 00 0 1\n" A "Channel 00 : x\n" A
           "Channel 00 : 0 -> x\n" A "Channel 00 : 0 -> 1 -> x\n" A
           "Channel 00 : 0[z] -> 1\n" A "Channel 00 : 0 -> 1[z] via P2P\n" A
           "Channel 00 : 0[1 -> 1 via P2P\n",
         " | 11 unread"}};

    EXPECT (t);
}

LOG_TEST (connections)
{
    static const struct lines t[] = {
        {A START (0x10, 0, 4) A
         "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n" A
         "Channel 01/0 : 0[1b000] -> 1[aAfF] via P2P/IPC\n" A
         "Channel 02/0 : 0[0] -> 1[1] via SHM/direct/direct\n" A
         "Channel 03 : 0[0] -> 1[1] via direct shared memory\n" A
         "Channel 04/0 : 0 -> 1 [send] via NET/IB/0/GDRDMA/Shared\n" A
         "Channel 05/0 : 0 -> 1 [send] via NET/IB/0\n" A
         "Channel 06/0 : 0 -> 1 [send] via NET/Socket/0/GDRDMA\n" A
         "Channel 07/0 : 1 -> 0 [receive] via NET/OFI/0/GDRDMA\n" A
         "Channel 08/0 : 0 -> 1 via NVLS\n" A "Channel 09/0 : 0 -> 1 via NET\n",
         "n0:1:0 0/4 comm 10 id 77 ringlink0:0>1,p2p ringlink1:0>1,p2p ringlink2:0>1,shm "
         "ringlink3:0>1,shm ringlink4:0>1,net_gdr ringlink5:0>1,net ringlink6:0>1,socket "
         "ringlink7:1>0,net_gdr,in ringlink8:0>1,other ringlink9:0>1,other"},
        /* Once all rings are connected they are trees', and some are no channel's of either. */
        {A START (0x10, 0, 4) A
         "Channel 00/0 : 0 -> 1 via P2P\n" A "Channel 00/1 : 0 -> 1 via P2P\n" A
         "Connected all rings\n" A "Channel 00/0 : 0 -> 2 via P2P\n",
         "n0:1:0 0/4 comm 10 id 77 rings ringlink0:0>1,p2p link0:0>1,p2p link0:0>2,p2p"},
        {A START (0x10, 0, 4) A "Channel 00/0 : 0[0]->1[1] via P2P\n",
         "n0:1:0 0/4 comm 10 id 77 ringlink0:0>1,p2p"},
        {A START (0x10, 0, 4) A DONE (0x10, 0, 4) A "Channel 00/0 : 0 -> 1 via P2P\n",
         "n0:1:0 0/4 comm 10 id 77 done link0:0>1,p2p"},
        {A START (0x10, 0, 4) A "Channel 00/0 : 0 -> 1\n" A
                                "Channel 00/0 : 0 -> 1 [send] P2P\n",
         "n0:1:0 0/4 comm 10 id 77 | 2 unread"}};

    EXPECT (t);
}

LOG_TEST (trees)
{
    static const struct lines t[] = {
        {A START (0x10, 2, 8) A
         "Trees [0] 3/-1/-1->2->1 [1] -1/-1/-1->2->3 [63] 5/6/7->2->0\n",
         "n0:1:0 2/8 comm 10 id 77 tree0:2>1 tree1:2>3 tree63:2>0"},
        /* the top of one has nobody above it */
        {A START (0x10, 0, 4) A "Trees [0] 3/-1/-1->0->-1 [1] 1->0->-1/-1/-1\n",
         "n0:1:0 0/4 comm 10 id 77 tree1:0>1"},
        /* two versions before: upwards first, and both of a channel's trees */
        {A START (0x10, 2, 4) A "Trees [0] 1->2->3/-1/-1 [1] -1->2->3/-1/-1\n",
         "n0:1:0 2/4 comm 10 id 77 tree0:2>1"},
        {A START (0x10, 2, 4) A
         "Trees [0] 3/-1/-1->2->1|1->2->3/-1/-1 [1] -1/-1/-1->2->3|3->2->-1\n",
         "n0:1:0 2/4 comm 10 id 77 tree0:2>1 tree1:2>3"},
        /* cut, or wrong, after the first */
        {A START (0x10, 2, 4) A "Trees [0] 3/-1/-1->2->1 [1] 3/-1/-1->2\n" A
                                "Trees [0] 3/-1/-1->2->1 [64] 3/-1/-1->2->1\n" A
                                "Trees [0] 3/-1/-1->2->1 [-1] 3/-1/-1->2->1\n" A
                                "Trees [0] 3/-1/-1->2->1 [1] 3/x->2->1\n" A
                                "Trees [0] 3/-1/-1->2->1 [1] 3->2->1/\n" A
                                "Trees [0] 3/-1/-1->2->1 [1 3->2->1\n" A
                                "Trees [0] 3/-1/-1->2->1 [1] 3 2->1\n",
         "n0:1:0 2/4 comm 10 id 77 tree0:2>1 tree0:2>1 tree0:2>1 tree0:2>1 tree0:2>1 "
         "tree0:2>1 tree0:2>1"},
        {A START (0x10, 2, 4) A "Trees zz\n" A "Trees [0] x\n" A
                                "Trees [64] 3/-1->2->1\n" A "Trees [0] 3/-1->x->1\n",
         "n0:1:0 2/4 comm 10 id 77 | 4 unread"},
        {A START (0x10, 2, 4) A DONE (0x10, 2, 4) A
         "Trees [0] 3/-1/-1->1->2 [1] 3/-1/-1->2->1\n",
         "n0:1:0 2/4 comm 10 id 77 done | 1 unplaced"},
        {A START (0x10, 2, 4) A DONE (0x10, 2, 4) A "Trees [0] 3/-1/-1->2->1\n" A
                                                    "Trees [0] 3/-1/-1->2->4\n",
         "n0:1:0 2/4 comm 10 id 77 done tree0:2>1 | 1 unplaced"}};

    EXPECT (t);
}

/* ---- versions ---- */

LOG_TEST (versions)
{
    static const struct {
        const char *line, *version; /* NULL: none */
        bool unknown;
    } t[] = {{"NCCL version 2.21.5+cuda12.4\n", "2.21.5", false},
             {A "NCCL version 2.26.2+cuda12.8\n", "2.26.2", false},
             {"[rank0]: NCCL INFO NCCL version 2.4\n", "2.4", false},
             {"NCCL version 2.28\n", "2.28", false},
             {"NCCL version 2.3.7\n", "2.3.7", true},
             {"NCCL version 2.29.1\n", "2.29.1", true},
             {"NCCL version 1.10\n", "1.10", true},
             {"NCCL version 3.10\n", "3.10", true},
             {"NCCL version 210\n", "210", true},
             {"NCCL version 21\n", NULL, false},
             {"NCCL version 2.10.000000000000000000000000000\n", NULL, false},
             {"NCCL version 2.10.00000000000000000000000000\n",
              "2.10.00000000000000000000000000", false}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        begin (NULL);
        read_lines (t[i].line);
        assert_int_equal (found.lines.nccl, 1);
        assert_int_equal (found.lines.unread, 0);
        assert_int_equal (found.lines.unknown_version, t[i].unknown);
        assert_int_equal (found.lines.versions, t[i].version != NULL);
        if (t[i].version)
            assert_string_equal (found.lines.version[0], t[i].version);
        end (NULL);
    }
    begin (NULL);
    read_lines (
        "NCCL version 2.10.1\nNCCL version 2.10\nNCCL version 2.10\nNCCL version 2.11\n"
        "NCCL version 2.12\nNCCL version 2.13\nNCCL version 2.12\n");
    assert_int_equal (found.lines.versions, 4);
    assert_string_equal (found.lines.version[1], "2.10");
    assert_string_equal (found.lines.version[3], "2.12");
    assert_false (found.lines.unknown_version);
}

/* ---- files ---- */

static enum status read_logs (const char *first, const char *second, struct error *err)
{
    const char *path[] = {first, second};

    return nccl_log_read (path, second ? 2 : 1, &found, err);
}

static void refused (const char *name, const char *says)
{
    struct error err = {""};
    enum status st = read_logs (in_folder (name), NULL, &err);

    if (st == ST_OK || !strstr (err.text, says))
        fail_msg ("%s: \"%s\" does not say \"%s\"", name, err.text, says);
    end (NULL);
}

static void write_log (const char *name, const char *text)
{
    write_in_folder (name, text, strlen (text));
}

/* A line ends at its newline or the file's end, has blanks for what is no text, and is cut where it
 * is longer than any of NCCL's. */
LOG_TEST (files)
{
    enum { BUFFER = 16384 };
    static const char holes[] =
        "\0\0n0:1:9 [0] NCCL INFO Channel 00 :\0 0 1\r\n" A OLD (0, 2) A "Trees zz";
    static const int length[] = {BUFFER - 13, BUFFER - 12,    BUFFER - 11,   BUFFER - 10,
                                 BUFFER,      2 * BUFFER - 9, 3 * BUFFER - 9};
    static char x[3 * BUFFER];
    struct text t = {0};
    struct error err = {""};

    write_in_folder ("holes", holes, sizeof holes - 1);
    ok (read_logs (in_folder ("holes"), NULL, &err), &err);
    assert_int_equal (found.n_orders, 1);
    assert_int_equal (found.lines.all, 3);
    assert_int_equal (found.lines.unread, 1);
    assert_int_equal (found.lines.place[0].line, 3);
    end (NULL);

    for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
        memset (x, 'x', sizeof x);
        t.len = 0;
        text_add (&t, "%.*s NCCL WARN \n" A OLD (0, 2) A "Trees zz\n", length[i], x);
        write_log ("long", t.s);
        ok (read_logs (in_folder ("long"), NULL, &err), &err);
        assert_int_equal (found.lines.all, 3);
        assert_int_equal (found.lines.nccl, length[i] + 11 <= BUFFER ? 3 : 2);
        assert_int_equal (found.lines.place[0].line, 3);
        end (NULL);
    }
    t.len = 0;
    for (int i = 0; i < 1000; i++) /* across the ends of buffers */
        text_add (&t, A "Channel 00 : %d %d\n", i, 1000 - i);
    text_add (&t, A OLD (0, 2));
    write_log ("many", t.s);
    ok (read_logs (in_folder ("many"), NULL, &err), &err);
    assert_int_equal (found.n_orders, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal (found.rank[2 * i] + found.rank[2 * i + 1], 1000);
    text_free (&t);
}

/* Several files, each with lines of its own numbers; the first three places are kept. */
LOG_TEST (several)
{
    char first[FOLDER_PATH];
    struct error err = {""};

    write_log ("a", A "Trees zz\n" A OLD (0, 2));
    write_log ("b", "x\n" A "Trees zz\n" A "Trees zz\n" A "Trees zz\n");
    snprintf (first, sizeof first, "%s", in_folder ("a"));
    ok (read_logs (first, in_folder ("b"), &err), &err);
    assert_int_equal (found.lines.files, 2);
    assert_int_equal (found.lines.unread, 4);
    for (int i = 0; i < CHECK_NCCL_PLACES; i++) {
        assert_int_equal (found.lines.place[i].line, 1 + i);
        assert_string_equal (strrchr (found.lines.place[i].file, '/'), i ? "/b" : "/a");
    }
}

/* A folder's files, those of a pattern, and names that look like one. */
LOG_TEST (folders)
{
    static const struct {
        const char *path;
        int files; /* 0: refused */
    } t[] = {{"[a]*?", 2}, {"[a]*?/1", 1}, {"[a]*?/x*", 0}, {"p/[12]", 2}, {"p/?", 3}};
    struct error err = {""};

    assert_int_equal (mkdir (in_folder ("[a]*?"), 0700), 0);
    assert_int_equal (mkdir (in_folder ("bare"), 0700), 0);
    assert_int_equal (mkdir (in_folder ("p"), 0700), 0);
    assert_int_equal (mkdir (in_folder ("[a]*?/folder"), 0700), 0);
    assert_int_equal (mkfifo (in_folder ("[a]*?/pipe"), 0700), 0);
    write_log ("[a]*?/1", A OLD (0, 2));
    write_log ("[a]*?/2", A OLD (1, 2));
    for (char name[] = "p/1"; name[2] <= '3'; name[2]++)
        write_log (name, A OLD (0, 2));
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        assert_int_equal (read_logs (in_folder (t[i].path), NULL, &err) == ST_OK,
                          t[i].files > 0);
        if (t[i].files > 0)
            assert_int_equal (found.lines.files, t[i].files);
        end (NULL);
    }
    refused ("bare", "bare: expected logs, found an empty folder");
    refused ("none", "No such file");
    refused ("none*", "No such file");
}

/* What is no log says what it is. */
LOG_TEST (no_logs)
{
    static const char packed[] = "\x1f\x8b\x08\0\0", mixed[] = "\x1f\x8b\n" A OLD (0, 2);
    char first[FOLDER_PATH];
    struct error err = {""};

    write_log ("empty", "");
    refused ("empty", "empty: expected lines of NCCL");
    refused ("empty", "found 0 lines without any");
    write_log ("words", "a\nb");
    refused ("words", "found 2 lines without any");
    snprintf (first, sizeof first, "%s", in_folder ("words"));
    assert_int_equal (read_logs (first, in_folder ("empty"), &err), ST_INVALID);
    assert_non_null (strstr (err.text, "found in all files 2 lines"));
    end (NULL);
    write_log ("nobody", A "Bootstrap : Using eth0\n" A "Channel 00 : 0 1\n");
    refused ("nobody", "expected a communicator");
    refused ("nobody", "none in 2 lines of NCCL");
    write_in_folder ("packed", packed, sizeof packed - 1);
    refused ("packed", "packed: ");
    write_in_folder ("mixed", mixed, sizeof mixed - 1);
    ok (read_logs (in_folder ("mixed"), NULL, &err), &err);
    end (NULL);
    assert_int_equal (read_logs ("/dev/zero", NULL, &err), ST_INVALID);
    assert_non_null (strstr (err.text, "/dev/zero: binary data"));
}
