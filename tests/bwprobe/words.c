/* What comes from outside: frames, messages, greetings, the launchers' variables and a journal
 * are read back as they were written, and nothing else is. */
#include "tests/lib/folder.h"

#include <net/if.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bwprobe/journal.h"
#include "bwprobe/messages.h"
#include "bwprobe/start.h"

/* A frame's fields as they come out after a way over the wire. */
static struct wire over (struct wire *w)
{
    struct wire r;
    size_t used;

    wire_end (w);
    assert_true (wire_take (&r, w->data, w->len, &used));
    assert_int_equal (used, w->len);
    return r;
}

TEST (messages_come_back)
{
    struct wire w;
    struct msg_hello hello = {.version = 1,
                              .rank = 7,
                              .size = 9,
                              .node = "host-1",
                              .door = {"10.0.0.1", 4711},
                              .gpus = 8,
                              .no_nccl = "why"},
                     hello2;
    struct msg_result result = {.seq = 3,
                                .ok = {1, 0},
                                .measured = 1,
                                .bytes_per_s = 1.5e9,
                                .latency_s = 3e-6,
                                .reason = {"", "broke"}},
                      result2;

    memset (hello.token.byte, 0xa5, sizeof hello.token.byte);
    wire_begin (&w, MSG_HELLO);
    messages_hello (&w, &hello);

    struct wire r = over (&w);

    messages_hello (&r, &hello2);
    assert_true (wire_good (&r));
    assert_string_equal (hello2.node, "host-1");
    assert_string_equal (hello2.door.address, "10.0.0.1");
    assert_int_equal (hello2.door.port, 4711);
    assert_memory_equal (&hello2.token, &hello.token, sizeof hello.token);

    wire_begin (&w, MSG_RESULT);
    messages_result (&w, &result);
    r = over (&w);
    messages_result (&r, &result2);
    assert_true (wire_good (&r) && result2.bytes_per_s == 1.5e9 && result2.ok[0] == 1);
    assert_string_equal (result2.reason[1], "broke");
}

/* All products of a GPU come back; more than there is room for are refused. */
TEST (products_come_back)
{
    struct msg_computed computed = {.ok = 1,
                                    .n_products = MESSAGES_PRODUCTS,
                                    .copy_bytes_per_s = 2e12,
                                    .launch_s = 3e-6,
                                    .kernel_s = 4e-6,
                                    .n_attention = 1,
                                    .attention = {{"cudnn", 16384, 16, 128, 6e14}}},
                        other;
    const struct msg_product *last;
    struct wire w, r;
    uint8_t fine = 1;
    uint32_t many = MESSAGES_PRODUCTS + 1;

    computed.product[MESSAGES_PRODUCTS - 1] =
        (struct msg_product){"fp8", 8192, 512, 1024, 1.25e15};
    wire_begin (&w, MSG_COMPUTED);
    messages_computed (&w, &computed);
    r = over (&w);
    messages_computed (&r, &other);
    assert_true (wire_good (&r));
    assert_int_equal (other.n_products, MESSAGES_PRODUCTS);
    last = &other.product[MESSAGES_PRODUCTS - 1];
    assert_string_equal (last->precision, "fp8");
    assert_true (last->n == 512 && last->k == 1024 && last->flop_per_s == 1.25e15);
    assert_true (other.copy_bytes_per_s == 2e12 && other.kernel_s == 4e-6);
    assert_int_equal (other.n_attention, 1);
    assert_string_equal (other.attention[0].kernels, "cudnn");
    assert_true (other.attention[0].tokens == 16384 && other.attention[0].heads == 16 &&
                 other.attention[0].width == 128 &&
                 other.attention[0].flop_per_s == 6e14);

    wire_begin (&w, MSG_COMPUTED);
    wire_u8 (&w, &fine);
    wire_u32 (&w, &many);
    r = over (&w);
    messages_computed (&r, &other);
    assert_false (wire_good (&r));
    assert_int_equal (other.n_products, 0);
}

/* Cut, flipped and random frames are refused or read as something, never past their end. */
TEST (broken_frames_are_refused)
{
    struct rng r = {5};
    unsigned char bytes[512];
    struct wire w, x;
    size_t used;

    for (int t = 0; t < 20000; t++) {
        struct msg_run run;
        struct msg_result result;
        struct msg_hello hello;
        size_t n = 5 + (size_t) rng_below (&r, 500);

        for (size_t i = 0; i < n; i++)
            bytes[i] = (unsigned char) rng_next (&r);
        bytes[0] = (unsigned char) n;
        bytes[1] = (unsigned char) (n >> 8);
        bytes[2] = bytes[3] = 0;
        assert_true (wire_take (&w, bytes, n, &used) && used == n);
        x = w;
        messages_run (&x, &run);
        assert_true (memchr (run.partner_node, 0, sizeof run.partner_node) != NULL);
        x = w;
        messages_result (&x, &result);
        assert_true (memchr (result.reason[0], 0, sizeof result.reason[0]) != NULL);
        x = w;
        messages_hello (&x, &hello);
        assert_true (memchr (hello.door.address, 0, sizeof hello.door.address) != NULL);
    }
    memset (bytes, 0xff, sizeof bytes);
    assert_false (wire_take (&w, bytes, sizeof bytes, &used));
    memset (bytes, 0, sizeof bytes);
    assert_false (wire_take (&w, bytes, sizeof bytes, &used));
    assert_true (wire_take (&w, bytes, 3, &used) && used == 0);
}

TEST (greetings_need_the_token)
{
    struct net_token token, other;
    struct net_greeting g = {NET_DATA, 77, 3}, got;
    unsigned char bytes[NET_GREETING];

    net_token_of_text ("job 1", &token);
    net_token_of_text ("job 2", &other);
    assert_false (net_token_equal (&token, &other));
    net_greeting_write (&token, &g, bytes);
    assert_true (net_greeting_read (&token, bytes, &got));
    assert_true (got.purpose == NET_DATA && got.seq == 77 && got.from == 3);
    assert_false (net_greeting_read (&other, bytes, &got));
    for (int i = 0; i < 24; i++) {
        bytes[i] ^= 1;
        assert_false (net_greeting_read (&token, bytes, &got));
        bytes[i] ^= 1;
    }
}

/* ---- variables ---- */

static const char *variables; /* "NAME=value NAME=value" */

static char *get (const char *name)
{
    static char value[4][64]; /* some may be in use at a time */
    static int next;
    size_t n = strlen (name);

    for (const char *v = variables; *v; v += strcspn (v, " "), v += *v == ' ')
        if (strncmp (v, name, n) == 0 && v[n] == '=') {
            next = (next + 1) % 4;
            snprintf (value[next], 64, "%.*s", (int) strcspn (v + n + 1, " "), v + n + 1);
            return value[next];
        }
    return NULL;
}

static enum status find (const char *v, uint32_t port, struct start *s, struct error *err)
{
    variables = v;
    *s = (struct start){.rank = 99};
    return start_from_variables (get, port, s, err);
}

/* The token that a message tells to pass. */
static void made_up (const struct error *err, char token[33])
{
    const char *at = strstr (err->text, "export BWPROBE_TOKEN=");

    assert_non_null (at);
    assert_int_equal (sscanf (at, "export BWPROBE_TOKEN=%32[0-9a-f]", token), 1);
    assert_int_equal (strlen (token), 32);
}

TEST (launchers_variables)
{
#define AT_10 " MASTER_ADDR=10.1.2.3"
#define SLURM(job, rank)  \
    "SLURM_PROCID=" #rank \
    " SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NODELIST=10.9.8.7 SLURM_JOB_ID=" #job
    static const char torch[] =
        "RANK=3 WORLD_SIZE=8" AT_10 " MASTER_PORT=29500 BWPROBE_TOKEN=secret",
                      agent[] = "RANK=0 WORLD_SIZE=2" AT_10 " MASTER_PORT=29500 "
                                "TORCHELASTIC_USE_AGENT_STORE=True BWPROBE_TOKEN=secret",
                      slurm[] = SLURM (77, 1) " BWPROBE_TOKEN=other",
                      slurm2[] = SLURM (78, 2) " BWPROBE_TOKEN=secret",
                      open_mpi[] = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2" AT_10
                                   " OMPI_MCA_orte_precondition_transports="
                                   "eade9859a09d965f-a13d518d93742aa1",
                      local[] = "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1";
    static const char *const wrong[] = {"",
                                        "RANK=0",
                                        "RANK=x WORLD_SIZE=2" AT_10,
                                        "RANK=-1 WORLD_SIZE=2" AT_10,
                                        "RANK=2 WORLD_SIZE=2" AT_10,
                                        "RANK=0 WORLD_SIZE=99999999" AT_10,
                                        "RANK=1 WORLD_SIZE=2" AT_10,
                                        "RANK=0 WORLD_SIZE=2" AT_10};
    struct error err;
    char first[33], second[33];
    struct start s, other;

    ok (find (torch, 0, &s, &err), &err);
    assert_true (s.rank == 3 && s.size == 8 && s.meet.port == 29500 && !s.mpi);
    assert_string_equal (s.meet.address, "10.1.2.3");
    ok (find (torch, 1234, &s, &err), &err);
    assert_int_equal (s.meet.port, 1234);
    ok (find (agent, 0, &s, &err), &err);
    assert_int_equal (s.meet.port, 29501);
    ok (find (slurm, 0, &s, &err), &err);
    assert_true (s.rank == 1 && s.size == 4 && s.meet.port >= 15000 &&
                 s.meet.port < 30000);
    ok (find (slurm2, 0, &other, &err), &err);
    assert_false (net_token_equal (&s.token, &other.token));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal (find (wrong[i], 0, &s, &err), ST_USAGE);
        assert_int_equal (s.rank, 99);
    }
    /* Without a secret one is made up, and never the same. */
    made_up (&err, first);
    find (wrong[7], 0, &s, &err);
    made_up (&err, second);
    assert_string_not_equal (first, second);
    ok (find (local, 0, &s, &err), &err);
    ok (find (open_mpi, 0, &other, &err), &err);
    assert_false (net_token_equal (&s.token, &other.token));
}

/* ---- the journal ---- */

static struct journal_item taken[64];
static int n_taken;

static void take (void *context, const struct journal_item *item)
{
    (void) context;
    if (n_taken < 64)
        taken[n_taken++] = *item;
}

/* Open the journal of endpoints a/0, b/0, ...  n: how many. */
static char path[FOLDER_PATH], part[FOLDER_PATH + 16]; /* of a file, and of its journal */

static void name_file (const char *name)
{
    snprintf (path, sizeof path, "%s", in_folder (name));
    snprintf (part, sizeof part, "%s.part", path);
    n_taken = 0;
}

static enum status reopen (int n, const char *transport, bool resume, struct journal **j,
                           struct notes *notes, struct error *err)
{
    static const char *const names[] = {"a/0", "b/0", "c/0"};
    struct journal_run run = {transport, names, n, resume, take, NULL, 0};

    return journal_open (path, &run, j, notes, err);
}

TEST (journal_is_read_back)
{
    static const char *const later[] = {"c/0", "a/0"};
    struct journal_run run = {"socket", later, 2, true, take, NULL, 0};
    struct error err = {""};
    struct notes notes = {.n = 0};
    struct journal *j = NULL;
    char *data;
    size_t len;

    name_file ("read back");
    ok (reopen (3, "socket", false, &j, &notes, &err), &err);
    for (int i = 0; i < 3; i++)
        journal_add (j, &(struct journal_item){.src = i,
                                               .dst = (i + 1) % 3,
                                               .kind = SCHEDULE_RAILS,
                                               .pass = i,
                                               .bytes_per_s = 1e9 * (i + 1),
                                               .latency_s = 5e-6});
    journal_add (
        j, &(struct journal_item){
               .src = 2, .dst = 0, .failed = true, .reason = "a \"quoted\" reason"});
    journal_close (j, false);

    /* A line that a crash cut off is not read, and not kept. */
    ok (file_read (part, &data, &len, &err), &err);
    data = realloc (data, len + 32);
    strcpy (data + len, "[2,0,1,3,0,1.5");
    ok (file_write (part, data, len + 14, &err), &err);
    free (data);

    /* Another order of endpoints, one of them gone. */
    n_taken = 0;
    ok (journal_open (path, &run, &j, &notes, &err), &err);
    journal_close (j, false);
    assert_int_equal (run.taken, 2);
    assert_true (taken[0].src == 0 && taken[0].dst == 1 && taken[0].pass == 2);
    assert_true (fabs (taken[0].bytes_per_s - 3e9) < 1 && !taken[0].failed);
    assert_true (taken[1].failed);

    assert_int_equal (reopen (3, "nccl", true, &j, &notes, &err), ST_INVALID);
    /* Without --resume it is set aside, and so is the next one. */
    for (int i = 0; i < 2; i++) {
        ok (reopen (3, "nccl", false, &j, &notes, &err), &err);
        assert_true (notes.n == i + 1 &&
                     strstr (notes.line[i], i ? ".part.old2" : ".part.old"));
        journal_close (j, i == 1);
    }
    assert_int_not_equal (access (part, F_OK), 0);
    strcat (part, ".old");
    ok (file_read (part, &data, &len, &err), &err);
    assert_non_null (strstr (data, "quoted"));
    free (data);
    assert_int_equal (unlink (part), 0);
    strcat (part, "2");
    assert_int_equal (unlink (part), 0);

    part[strlen (part) - 5] = '\0';
    ok (file_write (part, "something else\n", 15, &err), &err);
    assert_int_equal (reopen (3, "nccl", true, &j, &notes, &err), ST_INVALID);
    notes_free (&notes);
}

/* NCCL's words for interfaces, and addresses that are asked for. */
TEST (interfaces_are_chosen)
{
    static const struct {
        const char *list, *name;
        bool taken;
    } c[] = {{"eth", "eth0", true},       {"eth", "ib0", false},
             {"ib,eth", "eth1", true},    {"=eth0", "eth0", true},
             {"=eth0", "eth01", false},   {"=ib0,eth0", "eth0", true},
             {"^docker,lo", "lo", false}, {"^docker,lo", "eth0", true},
             {"^=lo", "lo1", true},       {"^=lo", "lo", false},
             {"eth0,", "ib0", false},     {",", "eth0", false}};
    static const char *const bad[] = {"127.0.0.0/x",  "127.0.0.0/", "127.0.0.0/33",
                                      "127.0.0.0/-1", "nosuch0",    "127.0.0.1/8x"};
    char address[NET_ADDRESS], name[IF_NAMESIZE];
    struct error err;

    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        assert_int_equal (net_nccl_takes (c[i].list, c[i].name), c[i].taken);
    ok (net_own_address ("127.0.0.0/8", address, name, &err), &err);
    assert_string_equal (address, "127.0.0.1");
    assert_string_equal (name, "lo");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal (net_own_address (bad[i], address, NULL, &err), ST_USAGE);

    /* The user's choice for NCCL holds, --interface goes first and is handed on. */
    setenv ("NCCL_SOCKET_IFNAME", "=lo", 1);
    ok (net_settle (NULL, address, &err), &err);
    assert_string_equal (address, "127.0.0.1");
    setenv ("NCCL_SOCKET_IFNAME", "=nosuch0", 1);
    ok (net_settle (NULL, address, &err), &err);
    assert_string_equal (address, "");
    ok (net_settle ("lo", address, &err), &err);
    assert_string_equal (getenv ("NCCL_SOCKET_IFNAME"), "=nosuch0");
    unsetenv ("NCCL_SOCKET_IFNAME");
    ok (net_settle ("127.0.0.1", address, &err), &err);
    assert_string_equal (getenv ("NCCL_SOCKET_IFNAME"), "=lo");
    unsetenv ("NCCL_SOCKET_IFNAME");
    assert_int_equal (net_settle ("nosuch0", address, &err), ST_USAGE);
    assert_null (getenv ("NCCL_SOCKET_IFNAME"));
}

static long size_of_part (void)
{
    struct stat sb;

    return stat (part, &sb) == 0 ? (long) sb.st_size : -1;
}

/* What was added waits for a second at most, although nothing more comes. */
TEST (a_silent_journal_is_kept)
{
    const struct timespec nap = {0, 20000000};
    struct notes notes = {0};
    struct error err = {""};
    struct journal *j;
    long header;

    name_file ("silent");
    ok (reopen (2, "socket", false, &j, &notes, &err), &err);
    header = size_of_part ();
    journal_add (j, &(struct journal_item){.src = 0, .dst = 1, .bytes_per_s = 1e9});
    for (int i = 0; i < 500 && size_of_part () == header; i++) {
        nanosleep (&nap, NULL);
        journal_keep (j);
    }
    assert_true (size_of_part () > header);
    journal_close (j, true);
    notes_free (&notes);
}

/* A bad sector in the middle costs the lines that it hit, not those behind it. */
TEST (a_damaged_journal_keeps_the_rest)
{
    static const char text[] =
        "{\"transport\":\"socket\",\"endpoints\":[\"a/0\",\"b/0\"]}\n"
        "[0,1,0,0,0,1,5,0]\n"
        "[1,0,0,0,0,\001\002\003\n"
        "[0,7,0,0,0,1,5,0]\n"
        "[0,1,0,3,0,1e300,5,0]\n"
        "[0,1,0,3,0,1,-5,0]\n"
        "[1,0,0,1,0,2,5,0]\n"
        "[0,1,0,2,";
    struct error err = {""};
    struct notes notes = {.n = 0};
    struct journal *j = NULL;

    name_file ("damaged");
    ok (file_write (part, text, sizeof text - 1, &err), &err);
    ok (reopen (2, "socket", true, &j, &notes, &err), &err);
    journal_close (j, true);
    assert_int_equal (n_taken, 2);
    assert_true (taken[0].src == 0 && taken[1].src == 1 && taken[1].pass == 1);
    assert_true (notes.n == 1 && strstr (notes.line[0], "4 lines are damaged"));
    notes_free (&notes);
}
