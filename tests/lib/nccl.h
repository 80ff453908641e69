/* A plan, and logs of NCCL that are written for it line by line; what the check finds in them. */
#ifndef TESTS_LIB_NCCL_H
#define TESTS_LIB_NCCL_H

#include "base/text.h"
#include "check/nccl_private.h"
#include "tests/lib/folder.h"

enum { RANKS = 64 };

/* ---- a plan, and a log for it ---- */

static struct {
    struct topology_cluster *cluster;
    struct workload_profile profile;
    struct workload_plan p;
    struct workload_place place[RANKS];
    int layers[8];
    struct text log;
    int job; /* number of the start that writes the log */
} plan;
static struct check_report report;
static struct check_nccl found;

/* A small model's plan with rank r on the cluster's GPU gpu[r]; NULL: r. */
static inline void make_plan (const char *cluster, struct workload_config config,
                              const int *gpu)
{
    int n = workload_world (&config.deg);

    plan.cluster = cluster_of (cluster);
    plan.profile = profile_of (WORKLOAD_PROFILE_DEFAULT);
    workload_layers_even (8, config.deg.pp, plan.layers);
    for (int r = 0; r < n; r++) {
        int at = gpu ? gpu[r] : r;

        plan.place[r] = (struct workload_place){
            plan.cluster->node[plan.cluster->node_of_gpu[at]].name,
            topology_gpu_index (plan.cluster, at)};
    }
    plan.p =
        (struct workload_plan){.model = small_model (8),
                               .job = {.seq = 512, .global_batch = 4 * config.deg.dp},
                               .config = config,
                               .layers_per_stage = plan.layers,
                               .n_ranks = n,
                               .place = plan.place};
}

static inline int begin (void **state)
{
    (void) state;
    plan.job = 0;
    return 0;
}

static inline void forget (void)
{
    check_nccl_release (&found);
    text_free (&plan.log);
}

static inline int end (void **state)
{
    (void) state;
    forget ();
    topology_cluster_destroy (plan.cluster);
    plan.cluster = NULL;
    return 0;
}

/* A line of a plan's rank, by the host and device where it runs. */
static inline void say_from (const char *host, int dev, int rank, const char *text)
{
    text_add (&plan.log, "%s:%d:9 [%d] NCCL INFO %s\n", host,
              100 + rank + 1000 * plan.job, dev, text);
}

static inline void say (int rank, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
static inline void say (int rank, const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start (args, fmt);
    vsnprintf (text, sizeof text, fmt, args);
    va_end (args);
    say_from (plan.place[rank].node, plan.place[rank].gpu, rank, text);
}

/* ---- a communicator's lines ---- */

struct comm {
    const char *ranks; /* the plan's, in its order: "0 1 2 3" */
    /* rings as each rank has its part: "0 1 2 3/0 2 1 3", by channel */
    const char *edges;
    const char *orders; /* ... as rank 0 prints them */
    const char *links;  /* ... as they are connected */
    const char *trees;  /* "1>0 2>0": ranks below others, on channel 0 */
    const char *name;   /* "commId 0x1"; NULL: of an old version, without START */
    const char *inside, *between; /* transports; NULL: P2P, NET/IB/0/GDRDMA */
    int address;                  /* of comm */
    int channels;                 /* that it says to have; 0: does not say */
    unsigned silent;              /* a bit for each of its ranks whose log is not there */
    bool unfinished;
    bool nobody; /* no device is named */
};

static inline int numbers (const char *s, int *out)
{
    int n = 0, used;

    while (sscanf (s, "%d%n", &out[n], &used) == 1) {
        s += used;
        n++;
    }
    return n;
}

static inline void init (const struct comm *c, const int *rank, int n, const char *what)
{
    for (int i = 0; i < n; i++) {
        char device[48];
        int gpu = plan.place[rank[i]].gpu;

        snprintf (device, sizeof device, "cudaDev %d nvmlDev %d ", gpu, gpu);
        if (!(c->silent >> i & 1))
            say (rank[i], "comm 0x%x rank %d nranks %d %s%s - Init %s", c->address, i, n,
                 c->nobody ? "" : device, c->name ? c->name : "", what);
    }
}

static inline void connect_ranks (const struct comm *c, const int *rank, int channel,
                                  int a, int b)
{
    const char *ends[] = {" [send]", " [receive]", ""};
    bool same = strcmp (plan.place[rank[a]].node, plan.place[rank[b]].node) == 0;
    const char *via = same ? (c->inside ? c->inside : "P2P/CUMEM")
                           : (c->between ? c->between : "NET/IB/0/GDRDMA");

    for (int side = 0; side < (same ? 1 : 2); side++)
        if (!(c->silent >> (side ? b : a) & 1))
            say (rank[side ? b : a], "Channel %02d/0 : %d[0] -> %d[0]%s via %s", channel,
                 a, b, ends[same ? 2 : side], via);
}

enum said { EDGES, ORDERS, LINKS };

static inline void rings (const struct comm *c, const int *rank, const char *s,
                          enum said how)
{
    for (int channel = 0; s; channel++) {
        int of[RANKS], n = numbers (s, of);

        for (int i = 0; i < n && how != ORDERS; i++) {
            int me = of[i], next = of[(i + 1) % n];

            if (how == LINKS)
                connect_ranks (c, rank, channel, me, next);
            else if (!(c->silent >> me & 1))
                say (rank[me], "Ring %02d : %d -> %d -> %d", channel, of[(i + n - 1) % n],
                     me, next);
        }
        if (how == ORDERS && n > 0)
            say (rank[0], "Channel %02d/02 : %.*s", channel, (int) strcspn (s, "/"), s);
        if ((s = strchr (s, '/')))
            s++;
    }
}

static inline void comm (struct comm c)
{
    int rank[RANKS], n = numbers (c.ranks, rank), a, b, used;

    if (c.name)
        init (&c, rank, n, "START");
    rings (&c, rank, c.edges, EDGES);
    rings (&c, rank, c.orders, ORDERS);
    rings (&c, rank, c.links, LINKS);
    for (const char *s = c.trees; s && sscanf (s, "%d>%d%n", &a, &b, &used) == 2;
         s += used)
        say (rank[a], "Trees [0] -1/-1/-1->%d->%d", a, b);
    for (int i = 0; i < n && c.channels; i++)
        say (rank[i], "%d coll channels, 0 collnet channels", c.channels);
    if (!c.unfinished)
        init (&c, rank, n, "COMPLETE");
}

static inline enum status check_log (struct error *err)
{
    const char *path = in_folder ("log");

    write_in_folder ("log", text_str (&plan.log), plan.log.len);
    report = (struct check_report){.step_s = 1.0};
    return check_nccl (&plan.p, plan.cluster, &plan.profile, &path, 1, &report, &found,
                       err);
}

/* What the log says; more may be added to it, and be read again. */
static inline void check (void)
{
    struct error err = {""};

    check_nccl_release (&found);
    ok (check_log (&err), &err);
}

static inline void is_said (const char *what, enum check_verdict verdict,
                            const char *text)
{
    for (int i = 0; i < report.n; i++)
        if (strcmp (report.item[i].what, what) == 0) {
            if (report.item[i].verdict != verdict || !strstr (report.item[i].text, text))
                fail_msg ("%s: %d, \"%s\", expected %d, \"%s\"", what,
                          report.item[i].verdict, report.item[i].text, verdict, text);
            return;
        }
    if (*text)
        fail_msg ("nothing is said of %s", what);
}

static inline void not_said (const char *what)
{
    for (int i = 0; i < report.n; i++)
        assert_string_not_equal (report.item[i].what, what);
}

static inline const struct check_nccl_kind *kind (enum check_nccl_kind_name name)
{
    return &found.kind[name];
}

static inline const struct check_nccl_hops *hops_of (enum check_nccl_kind_name name)
{
    return &found.kind[name].worst.hops;
}

/* found, partly known, reordered, compared, different */
static inline void counts (enum check_nccl_kind_name name, int n, int partly,
                           int reordered, int compared, int differ)
{
    const struct check_nccl_kind *k = kind (name);

    assert_int_equal (k->found, n);
    assert_int_equal (k->partly, partly);
    assert_int_equal (k->reordered, reordered);
    assert_int_equal (k->compared, compared);
    assert_int_equal (k->differ, differ);
}

/* Hops in both, only the price's, only NCCL's; lanes of each. */
static inline void hops (enum check_nccl_kind_name name, int both, int laid, int chosen,
                         int laid_lanes, int chosen_lanes)
{
    const struct check_nccl_hops *h = hops_of (name);

    assert_int_equal (h->both, both);
    assert_int_equal (h->laid, laid);
    assert_int_equal (h->chosen, chosen);
    assert_int_equal (h->laid_lanes, laid_lanes);
    assert_int_equal (h->chosen_lanes, chosen_lanes);
}

static inline void link_is (const struct check_nccl_link *l, int src, int dst,
                            double gb_per_s)
{
    assert_int_equal (l->src_gpu, src);
    assert_int_equal (l->dst_gpu, dst);
    if (src >= 0)
        CLOSE (l->bytes_per_s, gb_per_s * 1e9, 1e-12);
}

#define PLAN_TEST(NAME) TEST_BETWEEN (NAME, begin, end)

#endif
