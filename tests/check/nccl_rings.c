/* A plan beside logs of NCCL: rings, trees and connections as they are read, beside those that the
 * price lays, and what is said of them. */
#include "tests/lib/nccl.h"

/* ---- rings ---- */

#define THREE                                                                            \
    "1x2 h100-sxm5-80g intra:370 inter:48 + 1x2 h100-sxm5-80g intra:370 inter:40 + 1x2 " \
    "h100-sxm5-80g intra:370 inter:20"
#define ALL6 "0 1 2 3 4 5"

PLAN_TEST (as_priced)
{
    const struct check_nccl_group *w = &kind (NCCL_KIND_SYNC)->worst;

    make_plan (THREE, config_of (1, 1, 6, 1), NULL);
    comm ((struct comm){.ranks = ALL6,
                        .name = "commId 0x1",
                        .edges = ALL6 "/1 0 3 2 5 4",
                        .channels = 2});
    check ();
    counts (NCCL_KIND_SYNC, 1, 0, 0, 1, 0);
    assert_int_equal (kind (NCCL_KIND_WORLD)->found, 0); /* the same ranks */
    hops (NCCL_KIND_SYNC, 3, 0, 0, 2, 2);
    link_is (&w->hops.slowest[0], 2, 4, 20);
    link_is (&w->hops.slowest[1], -1, -1, 0);
    link_is (&w->hops.slowest[2], -1, -1, 0);
    assert_int_equal (w->first, 0);
    assert_int_equal (w->n, 6);
    assert_int_equal (w->channels, 2);
    assert_int_equal (w->unread, 0);
    CLOSE (w->chosen_s, w->laid_s, 1e-9);
    assert_true (w->laid_s > 0);
    assert_int_equal (found.communicators, 1);
    assert_int_equal (found.processes, 6);
    assert_int_equal (found.ranks_known, 6);
    is_said ("nccl rings", CHECK_OK,
             "1 groups ring from node to node as priced; 0 could not be read");
    is_said ("nccl ranks", CHECK_OK, "6 of 6 ranks are known, on their planned hosts");
    is_said ("nccl cost", CHECK_OK, "at most 0 s a step (of 1 s): dp +0 s");
    is_said ("nccl groups", CHECK_OK,
             "communicators: 1 dp; 0 others; 0 known by some ranks only; 0 with");
    is_said ("nccl channels", CHECK_OK,
             "dp, from rank 0: 2 channels, at least 2 lanes between two nodes; the price "
             "has 2");
    is_said ("nccl log", CHECK_OK, "(no version named) in 1 files: 6 processes, 1 comm");
    not_said ("nccl gaps");
    not_said ("nccl jobs");
    not_said ("nccl lines");
    not_said ("nccl trees");
    not_said ("nccl transports");
}

/* One of two lanes: the same hops, for twice the bytes' time. */
PLAN_TEST (one_lane)
{
    const struct check_nccl_group *w = &kind (NCCL_KIND_SYNC)->worst;
    char says[128];

    make_plan ("2x2 h100-sxm5-80g intra:370 inter:20 inter-us:0 intra-us:0",
               config_of (1, 1, 4, 1), NULL);
    comm ((struct comm){
        .ranks = "0 1 2 3", .name = "commId 0x1", .edges = "0 1 2 3", .channels = 3});
    check ();
    counts (NCCL_KIND_SYNC, 1, 0, 0, 1, 1);
    hops (NCCL_KIND_SYNC, 2, 0, 0, 2, 1);
    assert_int_equal (w->channels, 1);
    assert_int_equal (w->unread, 2);
    assert_true (w->chosen_s > 1.9 * w->laid_s && w->chosen_s <= 2 * w->laid_s);
    is_said ("nccl rings", CHECK_NOTE,
             "1 of 1 groups ring otherwise than priced (0 not read); worst dp, from rank "
             "0: the "
             "priced hops, over 1 lanes instead of 2");
    is_said ("nccl channels", CHECK_NOTE,
             "dp, from rank 0: 1 channels read, others not, at least 1 lanes between two "
             "nodes; "
             "the price has 2");
    snprintf (says, sizeof says, "at most %.4g s a step (of 1 s): dp %+.4g s",
              w->chosen_s - w->laid_s, w->chosen_s - w->laid_s);
    is_said ("nccl cost", CHECK_NOTE, says);
}

/* The nodes in the other order: hops of the price's alone, and of NCCL's. */
PLAN_TEST (other_hops)
{
    make_plan (THREE, config_of (1, 1, 6, 1), NULL);
    comm ((struct comm){.ranks = ALL6, .name = "commId 0x1", .edges = "0 1 4 5 2 3"});
    check ();
    counts (NCCL_KIND_SYNC, 1, 0, 0, 1, 1);
    hops (NCCL_KIND_SYNC, 0, 3, 3, 2, 1);
    link_is (&hops_of (NCCL_KIND_SYNC)->slowest[1], 2, 4, 20);
    link_is (&hops_of (NCCL_KIND_SYNC)->slowest[2], 1, 4, 20);
    is_said ("nccl rings", CHECK_NOTE,
             "from rank 0: 0 hops in both, 3 only priced, 3 only NCCL's (slowest: n0 -> "
             "n2, 20 "
             "GB/s)");
}

/* Rings may enter a node twice: more hops than the price's. */
PLAN_TEST (hops_besides)
{
    make_plan ("3x2 h100-sxm5-80g intra:370 inter:48", config_of (1, 1, 6, 1), NULL);
    comm ((struct comm){
        .ranks = ALL6, .name = "commId 0x1", .edges = "0 1 2 3 4 5/0 1 2 4 3 5"});
    check ();
    /* 1>2, 2>4, 4>3, 3>5, 5>0: back from n2 to n1 */
    hops (NCCL_KIND_SYNC, 3, 0, 1, 2, 1);
    counts (NCCL_KIND_SYNC, 1, 0, 0, 1, 1);
    is_said ("nccl rings", CHECK_NOTE, "3 hops in both, 0 only priced, 1 only NCCL's");
}

/* Lanes of a hop: GPUs that send, or that receive, whichever are fewer. */
PLAN_TEST (lanes)
{
    static const struct {
        const char *rings;
        int lanes;
    } t[] = {{"0 1 2 3 4 5 6 7", 1},
             /* 3 > 4, 5, or 3, 2 > 4; two lanes back */
             {"0 1 2 3 4 5 6 7/1 0 2 3 5 4 7 6", 1},
             {"0 1 2 3 4 5 6 7/1 0 3 2 4 5 7 6", 1},
             {"0 1 2 3 4 5 6 7/1 0 3 2 5 4 7 6", 2},
             {"0 1 2 3 4 5 6 7/1 0 3 2 5 4 7 6/0 1 2 3 5 4 7 6/1 0 3 2 4 5 6 7", 2},
             {"3 2 1 0 4 5 6 7/0 3 2 1 5 6 7 4/1 0 3 2 6 7 4 5/2 1 0 3 7 4 5 6", 4}};

    make_plan ("2x4 h100-sxm5-80g intra:370 inter:48", config_of (1, 1, 8, 1), NULL);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        comm ((struct comm){
            .ranks = "0 1 2 3 4 5 6 7", .name = "commId 0x1", .edges = t[i].rings});
        check ();
        hops (NCCL_KIND_SYNC, 2, 0, 0, 4, t[i].lanes);
        counts (NCCL_KIND_SYNC, 1, 0, 0, 1, t[i].lanes < 4);
        forget ();
    }
}

/* The price's ring: node by node as they first appear, with as many lanes as both nodes have. */
PLAN_TEST (laid)
{
    static const int mixed[] = {4, 0, 5, 1, 6, 2, 3};

    make_plan (
        "1x4 h100-sxm5-80g intra:370 inter:48 + 1x3 h100-sxm5-80g intra:370 inter:40",
        config_of (1, 1, 7, 1), mixed);
    comm ((struct comm){.ranks = "0 1 2 3 4 5 6",
                        .name = "commId 0x1",
                        .edges = "0 2 4 1 3 5 6/2 4 0 3 5 6 1/4 0 2 5 6 1 3"});
    check ();
    hops (NCCL_KIND_SYNC, 2, 0, 0, 3, 3);
    counts (NCCL_KIND_SYNC, 1, 0, 0, 1, 0);
    assert_int_equal (plan.cluster->node_of_gpu[3], 0);
}

/* Each rank's own lines go before rank 0's, these before the connections; a channel that goes not
 * once around all ranks is not read. */
PLAN_TEST (sources)
{
    static const struct {
        struct comm c;
        int channels, unread;
        bool backwards; /* of the nodes */
    } t[] = {
        {{.edges = ALL6}, 1, 0, false},
        {{.orders = ALL6}, 1, 0, false},
        {{.links = ALL6}, 1, 0, false},
        {{.edges = ALL6, .orders = "5 4 3 2 1 0", .links = "5 4 3 2 1 0"}, 1, 0, false},
        {{.orders = ALL6, .links = "5 4 3 2 1 0"}, 1, 0, false},
        {{.orders = "5 4 3 2 1 0", .links = ALL6}, 1, 0, true},
        {{.edges = "0 1 2/" ALL6, .orders = ALL6}, 2, 0, false},
        {{.edges = "0 1 2", .orders = "0 1 2 3 4 0", .links = ALL6}, 1, 0, false},
        {{.edges = "0 1 2/" ALL6, .orders = "0 1 2 4 3", .links = "0 1 2"}, 1, 1, false},
        {{.edges = ALL6, .silent = 1 << 4, .links = ALL6}, 0, 0, false},
        {{.edges = ALL6 "/" ALL6, .channels = 4}, 2, 2, false},
        {{.orders = ALL6 "//" ALL6}, 2, 1, false},
        {{.links = ALL6 "/" ALL6, .channels = 2}, 2, 0, false}};

    make_plan (THREE, config_of (1, 1, 6, 1), NULL);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const struct check_nccl_group *w = &kind (NCCL_KIND_SYNC)->worst;
        struct comm c = t[i].c;
        bool only_links = !c.edges && !c.orders;

        c.ranks = ALL6;
        c.name = "commId 0x1";
        c.channels += only_links && !c.channels;
        comm (c);
        check ();
        if (w->channels != t[i].channels || w->unread != t[i].unread)
            fail_msg ("%zu: %d channels, %d not read", i, w->channels, w->unread);
        assert_int_equal (kind (NCCL_KIND_SYNC)->compared, t[i].channels > 0);
        assert_int_equal (hops_of (NCCL_KIND_SYNC)->laid, t[i].backwards ? 3 : 0);
        if (t[i].channels == 0)
            is_said ("nccl rings", CHECK_NOTE,
                     "no tensor- or data-parallel group's ring");
        forget ();
    }
}

/* More channels than there are, and ranks that are none, are left out. */
PLAN_TEST (beyond)
{
    const struct check_nccl_group *w = &kind (NCCL_KIND_SYNC)->worst;

    make_plan ("2x2 h100-sxm5-80g intra:370 inter:48", config_of (1, 1, 4, 1), NULL);
    comm ((struct comm){.ranks = "0 1 2 3",
                        .name = "commId 0x1",
                        .edges = "0 1 2 3/1 0 3 2",
                        .channels = 999});
    say (0, "Channel 63/64 : 1 0 3 2");
    check ();
    assert_int_equal (w->channels, 3);
    assert_int_equal (w->unread, NCCL_CHANNELS_MAX - 3);
    forget ();
    comm ((struct comm){.ranks = "0 1 2 3",
                        .name = "commId 0x1",
                        .edges = "0 1 2 3",
                        .unfinished = true});
    say (0, "Ring 01 : 3 -> 0 -> 4");
    say (1, "Ring 01 : 0 -> -1 -> 2");
    say (1, "Channel 01/0 : 1 -> 4 via NET/IB/0");
    say (1, "Channel 01/0 : -1 -> 2 via NET/IB/0");
    say (1, "Trees [0] -1->7->2 [1] -1/-1->1->4");
    check ();
    assert_int_equal (w->channels, 1);
    assert_int_equal (w->unread, 1);
    assert_int_equal (w->tree_hops, 0);
    assert_int_equal (found.n_ways, 0);
    is_said ("nccl gaps", CHECK_NOTE,
             "4 communicators never completed, 0 cannot be told");
}

/* ---- trees ---- */

PLAN_TEST (trees)
{
    const struct check_nccl_group *w = &kind (NCCL_KIND_SYNC)->worst;
    struct workload_config config = config_of (1, 1, 6, 1);

    config.zero = 0;
    make_plan (THREE, config, NULL);
    for (int by = 0; by < 2; by++) {
        plan.profile.time.all_reduce = by ? ALL_REDUCE_TREE : ALL_REDUCE_RING;
        comm ((struct comm){.ranks = ALL6,
                            .name = "commId 0x1",
                            .edges = ALL6 "/1 0 3 2 5 4",
                            .trees = "1>0 2>0 3>1 5>1 4>2"});
        check ();
        assert_int_equal (w->by, by ? ALL_REDUCE_TREE : ALL_REDUCE_RING);
        assert_int_equal (w->tree_hops, 3); /* n1 > n0, n2 > n0, n2 > n1 */
        link_is (&w->tree, 5, 1, 20);
        if (by)
            is_said ("nccl trees", CHECK_OK,
                     "dp goes by trees: 3 edges between nodes, slowest n2 -> n0, 20 GB/s "
                     "(priced: n1 -> n2, 20 GB/s)");
        else
            not_said ("nccl trees");
        forget ();
    }
    comm ((struct comm){
        .ranks = ALL6, .name = "commId 0x1", .orders = ALL6, .trees = "2>1 1>0"});
    check ();
    assert_int_equal (w->tree_hops, 1);
    link_is (&w->tree, 2, 1, 40);
    forget ();
    comm ((struct comm){
        .ranks = ALL6, .name = "commId 0x1", .edges = ALL6, .trees = "1>0"});
    check ();
    assert_int_equal (w->tree_hops, 0);
    not_said ("nccl trees");
}

/* The tree's slowest link is held against the slowest of all hops of the price's ring, also of
 * those that NCCL does not have. */
PLAN_TEST (slow_trees)
{
    static const struct {
        const char *rings, *trees, *says;
        enum check_verdict verdict;
    } t[] = {{"0 1 2 3", "1>0", "slowest n1 -> n0, 48 GB/s (priced: n2 -> n3, 20 GB/s)",
              CHECK_OK},
             {"0 3 2 1", "1>0", "slowest n1 -> n0, 48 GB/s (priced: n2 -> n3, 20 GB/s)",
              CHECK_OK},
             {"0 1 3 2", "1>0", "slowest n1 -> n0, 48 GB/s (priced: n2 -> n3, 20 GB/s)",
              CHECK_OK},
             {"0 2 3 1", "2>1", "slowest n2 -> n1, 40 GB/s (priced: n2 -> n3, 20 GB/s)",
              CHECK_OK},
             {"0 1 2 3", "3>0", "slowest n3 -> n0, 20 GB/s (priced: n2 -> n3, 20 GB/s)",
              CHECK_OK}};
    struct workload_config config = config_of (1, 1, 4, 1);

    config.zero = 0;
    make_plan (
        "1x1 h100-sxm5-80g inter:48 + 1x1 h100-sxm5-80g inter:48 + 1x1 h100-sxm5-80g "
        "inter:40 + 1x1 h100-sxm5-80g inter:20",
        config, NULL);
    plan.profile.time.all_reduce = ALL_REDUCE_TREE;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        comm ((struct comm){.ranks = "0 1 2 3",
                            .name = "commId 0x1",
                            .edges = t[i].rings,
                            .trees = t[i].trees});
        check ();
        is_said ("nccl trees", t[i].verdict, t[i].says);
        forget ();
    }
    end (NULL);
    make_plan ("2x1 h100-sxm5-80g inter:20", config_of (1, 1, 2, 1), NULL);
    plan.p.config.zero = 0;
    plan.profile.time.all_reduce = ALL_REDUCE_TREE;
    comm ((struct comm){
        .ranks = "0 1", .name = "commId 0x1", .edges = "0 1", .trees = "1>0"});
    check ();
    is_said ("nccl trees", CHECK_OK, "slowest n1 -> n0, 20 GB/s (priced: n0 -> n1, 20");
}

/* ---- prices ---- */

/* The worst of several is the one that loses most, of equals the one with more hops of its own. */
PLAN_TEST (worst)
{
    make_plan ("4x2 h100-sxm5-80g intra:370 inter:48", config_of (2, 1, 4, 1), NULL);
    for (int first = 0; first < 2; first++) {
        comm ((struct comm){.ranks = "0 1 2 3 4 5 6 7", .name = "commId 0x9"});
        comm ((struct comm){.ranks = first ? "1 3 5 7" : "0 2 4 6",
                            .name = "commId 0x1",
                            .edges = "0 3 2 1"}); /* four hops of its own */
        comm ((struct comm){.ranks = first ? "0 2 4 6" : "1 3 5 7",
                            .name = "commId 0x2",
                            .edges = "0 2 1 3"}); /* three */
        check ();
        counts (NCCL_KIND_SYNC, 2, 0, 0, 2, 2);
        assert_int_equal (kind (NCCL_KIND_SYNC)->worst.first, first);
        hops (NCCL_KIND_SYNC, 0, 4, 4, 1, 1);
        forget ();
    }
    end (NULL);
    make_plan (THREE, config_of (1, 1, 6, 1), NULL);
    comm (
        (struct comm){.ranks = ALL6, .name = "commId 0x1", .edges = ALL6 "/1 0 3 2 5 4"});
    comm ((struct comm){.ranks = ALL6, .name = "commId 0x2", .edges = ALL6});
    comm (
        (struct comm){.ranks = ALL6, .name = "commId 0x3", .edges = ALL6 "/1 0 3 2 5 4"});
    check ();
    counts (NCCL_KIND_SYNC, 3, 0, 0, 3, 1);
    assert_int_equal (kind (NCCL_KIND_SYNC)->worst.channels, 1);
}

/* Tensor-parallel rings are priced, too; pipelines' are not; nor is dp's under hybrid sharding. */
PLAN_TEST (priced_kinds)
{
    struct workload_config config = config_of (2, 2, 4, 1);

    make_plan ("4x4 h100-sxm5-80g intra:370 inter:48", config, NULL);
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        plan.p.config.shard = hybrid ? 2 : 0;
        comm ((struct comm){.ranks = "0 1", .name = "commId 0x1", .edges = "0 1"});
        comm ((struct comm){
            .ranks = "0 2 4 6", .name = "commId 0x2", .edges = "0 1 2 3/1 0 3 2"});
        comm ((struct comm){
            .ranks = "1 3 5 7", .name = "commId 0x5", .edges = "0 1 2 3/1 0 3 2"});
        comm ((struct comm){.ranks = "0 8", .name = "commId 0x3", .edges = "0 1"});
        comm ((struct comm){.ranks = "2 3", .name = "commId 0x4"});
        check ();
        assert_true (kind (NCCL_KIND_TP)->worst.laid_s > 0);
        CLOSE (kind (NCCL_KIND_TP)->worst.chosen_s, kind (NCCL_KIND_TP)->worst.laid_s,
               1e-9);
        assert_int_equal (isnan (kind (NCCL_KIND_SYNC)->worst.laid_s), hybrid);
        assert_int_equal (isnan (kind (NCCL_KIND_SYNC)->worst.chosen_s), hybrid);
        assert_true (isnan (kind (NCCL_KIND_PP)->worst.laid_s));
        counts (NCCL_KIND_PP, 1, 0, 0, 1, 0);
        is_said ("nccl rings", CHECK_NOTE,
                 "3 groups ring from node to node as priced; 1 could");
        is_said ("nccl cost", CHECK_OK, hybrid ? "tp +0 s, if" : "tp +0 s, dp +0 s, if");
        is_said ("nccl channels", CHECK_OK,
                 "dp, from rank 0: 2 channels, at least 2 lanes");
        forget ();
    }
}

/* ---- connections ---- */

static const struct check_nccl_way *way (int a, int b)
{
    for (int i = 0; i < found.n_ways; i++)
        if (found.way[i].a == a && found.way[i].b == b)
            return &found.way[i];
    return NULL;
}

PLAN_TEST (ways)
{
    make_plan ("3x2 h100-sxm5-80g intra:370 inter:48", config_of (1, 1, 6, 1), NULL);
    comm ((struct comm){.ranks = ALL6, .name = "commId 0x1", .links = ALL6});
    check ();
    assert_int_equal (found.n_ways, 6);
    for (int i = 1; i < found.n_ways; i++) /* by nodes */
        assert_true (found.way[i - 1].a < found.way[i].a ||
                     (found.way[i - 1].a == found.way[i].a &&
                      found.way[i - 1].b < found.way[i].b));
    assert_int_equal (way (0, 0)->times[NCCL_P2P], 1);
    assert_int_equal (way (0, 1)->times[NCCL_NET_GDR], 2);
    assert_null (way (1, 0));
    assert_false (way (0, 1)->gdr_missing[0] || way (0, 1)->gdr_missing[1]);
    is_said (
        "nccl transports", CHECK_OK,
        "connections: 3 P2P, 0 shared memory, 6 network with GPUDirect, 0 without, 0 "
        "sockets, 0 other");
    comm ((struct comm){.ranks = ALL6,
                        .name = "commId 0x2",
                        .links = "0 1 2 3",
                        .inside = "SHM/direct",
                        .between = "NET/Socket/0"});
    comm ((struct comm){.ranks = "0 2", /* of no group */
                        .name = "commId 0x3",
                        .links = "0 1",
                        .between = "NET/IB/0"});
    check ();
    assert_int_equal (way (0, 0)->times[NCCL_SHM], 1);
    assert_int_equal (way (0, 1)->times[NCCL_SOCKET], 2);
    assert_int_equal (way (1, 0)->times[NCCL_SOCKET], 2);
    assert_int_equal (way (1, 0)->times[NCCL_NET], 2);
    assert_true (way (1, 0)->gdr_missing[0] && way (1, 0)->gdr_missing[1]);
    is_said (
        "nccl transports", CHECK_NOTE,
        "connections: 3 P2P, 2 shared memory, 6 network with GPUDirect, 4 without, 4 "
        "sockets, 0 other");
    is_said ("nccl sockets", CHECK_NOTE,
             "by sockets, not the fast network: n0 to n1, n1 to n0");
    is_said ("nccl memory", CHECK_NOTE, "inside by shared memory, not P2P: n0, n1");
    is_said ("nccl GPUDirect", CHECK_NOTE, "no GPUDirect on: n0, n1");
    not_said ("nccl network");
    forget ();
    comm ((struct comm){
        .ranks = ALL6, .name = "commId 0x1", .links = ALL6, .between = "NET/Socket/0"});
    check ();
    is_said ("nccl sockets", CHECK_NOTE, "n0 to n1, n1 to n2, n2 to n0");
    for (int i = 0; i < report.n; i++)
        assert_null (strstr (report.item[i].text, " more"));
}

/* Each of the findings alone, and whose fault it is. */
PLAN_TEST (way_findings)
{
    static const struct {
        const char *inside, *between, *what, *says;
    } t[] = {
        {NULL, "NET/Socket/0", "nccl sockets", "n0 to n1, n1 to n2, n2 to n3 and 1 more"},
        {NULL, "NET/IB/0", "nccl GPUDirect", "on: n0, n1, n2 and 1 more"},
        {"SHM", NULL, "nccl memory", "P2P: n0, n1, n2 and 1 more"},
        {"NET/Socket/0", NULL, "nccl network", "P2P: n0, n1, n2 and 1 more"},
        {"NET/IB/0", NULL, "nccl network", "P2P: n0, n1, n2 and 1 more"},
        {"NET/IB/0/GDRDMA", NULL, "nccl network", "P2P: n0, n1, n2 and 1 more"},
        {"P2P", "NVLS", NULL, NULL}};
    static const char *const findings[] = {"nccl sockets", "nccl GPUDirect",
                                           "nccl memory", "nccl network"};

    make_plan ("4x2 h100-sxm5-80g intra:370 inter:48", config_of (1, 1, 8, 1), NULL);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        comm ((struct comm){.ranks = "0 1 2 3 4 5 6 7",
                            .name = "commId 0x1",
                            .links = "0 1 2 3 4 5 6 7",
                            .inside = t[i].inside,
                            .between = t[i].between});
        check ();
        is_said ("nccl transports", t[i].what ? CHECK_NOTE : CHECK_OK, "connections: ");
        for (size_t k = 0; k < sizeof findings / sizeof *findings; k++)
            if (t[i].what && strcmp (t[i].what, findings[k]) == 0)
                is_said (findings[k], CHECK_NOTE, t[i].says);
            else
                not_said (findings[k]);
        forget ();
    }
    end (NULL);
    /* Each side says it for itself: rank 2 receives from n0 and sends to n2. */
    make_plan ("4x2 h100-sxm5-80g intra:370 inter:48", config_of (2, 1, 4, 1), NULL);
    comm ((struct comm){.ranks = "0 2 4 6",
                        .name = "commId 0x2",
                        .links = "0 1 2 3",
                        .silent = 1 | 4 | 8,
                        .between = "NET/IB/0"});
    check ();
    assert_int_equal (found.n_ways, 2);
    assert_true (way (0, 1)->gdr_missing[1] && !way (0, 1)->gdr_missing[0]);
    assert_true (way (1, 2)->gdr_missing[0] && !way (1, 2)->gdr_missing[1]);
    is_said ("nccl GPUDirect", CHECK_NOTE, "no GPUDirect on: n1");
    end (NULL);
    /* Without fast links, and with one GPU, shared memory is as good. */
    make_plan ("1x2 h100-sxm5-80g intra:64 + 1x1 h100-sxm5-80g", config_of (1, 1, 3, 1),
               NULL);
    comm ((struct comm){
        .ranks = "0 1 2", .name = "commId 0x1", .links = "0 1 2", .inside = "SHM"});
    check ();
    not_said ("nccl memory");
}
