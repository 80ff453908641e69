/* A plan beside logs of NCCL: who is which rank, whose lines are one communicator, and which group
 * of the plan it is. */
#include "tests/lib/nccl.h"

/* ---- the plan's groups ---- */

static bool in_group (enum check_nccl_kind_name name, const struct workload_degrees *d,
                      int a, int b)
{
    struct workload_coords x = workload_coords_of (d, a), y = workload_coords_of (d, b);
    bool tp = x.tp == y.tp, cp = x.cp == y.cp, dp = x.dp == y.dp, pp = x.pp == y.pp;

    switch (name) {
    case NCCL_KIND_TP:
        return cp && dp && pp;
    case NCCL_KIND_CP:
        return tp && dp && pp;
    case NCCL_KIND_SYNC:
        return tp && pp;
    case NCCL_KIND_DP:
        return tp && cp && pp;
    case NCCL_KIND_PP:
        return tp && cp && dp;
    case NCCL_KIND_ENDS:
        return tp && cp && dp && (x.pp == 0 || x.pp == d->pp - 1) &&
               (y.pp == 0 || y.pp == d->pp - 1);
    case NCCL_KIND_PAIR:
        return tp && cp && dp && abs (x.pp - y.pp) <= 1;
    default:
        return name == NCCL_KIND_WORLD;
    }
}

/* A kind's group of a rank begins with the first rank that has its coordinates in common with it,
 * and the rank's place is how many are before it. */
TEST (kinds)
{
    static const int degrees[][4] = {
        {2, 3, 2, 2}, {2, 2, 2, 1}, {1, 4, 1, 1}, {2, 1, 3, 2}};

    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
        const int *d = degrees[i];
        struct workload_plan p = {.config = config_of (d[0], d[1], d[2], 1)};
        const struct workload_degrees *deg = &p.config.deg;

        p.config.deg.cp = d[3];
        p.n_ranks = workload_world (deg);
        for (int k = 0; k < CHECK_NCCL_KINDS; k++) {
            enum check_nccl_kind_name name = (enum check_nccl_kind_name) k;
            struct workload_group g = nccl_kind_group (&p, name);
            bool experts = name >= NCCL_KIND_EXPERT && name <= NCCL_KIND_ETP;
            bool none = experts || (name == NCCL_KIND_DP && d[3] == 1) ||
                        ((name == NCCL_KIND_ENDS || name == NCCL_KIND_PAIR) && d[1] < 3);

            if (none)
                assert_int_equal (g.size, 0);
            for (int r = 0; r < p.n_ranks; r++) {
                int place = -1, before = 0, size = 0, first = -1;

                for (int other = p.n_ranks - 1; other >= 0 && !none; other--)
                    if (in_group (name, deg, r, other) && in_group (name, deg, r, r)) {
                        first = other;
                        before += other < r;
                        size++;
                    }
                if (name == NCCL_KIND_PAIR && !none) {
                    int stage = p.n_ranks / d[1];

                    assert_int_equal (nccl_kind_first (&p, name, r, 0, &place),
                                      r + stage < p.n_ranks ? r : -1);
                    assert_int_equal (nccl_kind_first (&p, name, r, 1, &place),
                                      r >= stage ? r - stage : -1);
                    assert_int_equal (place, 1);
                    continue;
                }
                first = size > 1 ? first : -1;
                assert_int_equal (nccl_kind_first (&p, name, r, 0, &place), first);
                if (first >= 0) {
                    assert_int_equal (place, before);
                    assert_int_equal (g.size, size);
                }
            }
        }
    }
}

/* Those of experts are there with experts alone. */
TEST (expert_kinds)
{
    struct workload_plan p = {.config = config_of (1, 1, 8, 1), .n_ranks = 8};
    int place;

    p.model.experts = 8;
    p.config.deg.ep = 4;
    assert_int_equal (nccl_kind_group (&p, NCCL_KIND_EP).size, 4);
    assert_int_equal (nccl_kind_group (&p, NCCL_KIND_EXPERT).size, 2);
    assert_int_equal (nccl_kind_first (&p, NCCL_KIND_EP, 6, 0, &place), 4);
    assert_int_equal (place, 2);
    assert_int_equal (nccl_kind_first (&p, NCCL_KIND_EXPERT, 6, 0, &place), 2);
    assert_int_equal (place, 1);
}

/* ---- which group ---- */

PLAN_TEST (which_group)
{
    static const struct {
        const char *ranks;
        unsigned silent;
        int kind; /* -1: of the others */
        bool partly, reordered;
    } t[] = {{"0 1", 0, NCCL_KIND_TP, false, false},
             {"1 0", 0, NCCL_KIND_TP, false, true},
             {"0 2 4", 0, NCCL_KIND_SYNC, false, false},
             {"3 1 5", 0, NCCL_KIND_SYNC, false, true},
             {"0 2 5", 0, -1, false, false},
             {"0 6", 0, NCCL_KIND_PP, false, false},
             {"0 2", 0, -1, false, false},
             {"6 8 10", 2, NCCL_KIND_SYNC, true, false},
             {"6 8 10", 6, NCCL_KIND_SYNC, true, false},
             {"8 6 10", 4, -1, false, false},
             {"0 1", 2, -1, false, false},          /* tp's, or the pipeline's? */
             {"1 0", 2, NCCL_KIND_PP, true, false}, /* tp's in order has 1 behind 0 */
             {"6 7", 1, -1, false, false},
             {"6 7", 2, NCCL_KIND_TP, true, false},
             {"0 1 2 3 4 5 6 7 8 9 10 11", 0, NCCL_KIND_WORLD, false, false},
             {"5", 0, -1, false, false}};
    static const char world[] = "0 1 2 3 4 5 6 7 8 9 10 11";

    make_plan ("3x4 h100-sxm5-80g intra:370 inter:48", config_of (2, 2, 3, 1), NULL);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        bool whole = t[i].kind == NCCL_KIND_WORLD;

        comm ((struct comm){.ranks = world, .name = "commId 0x1"});
        comm ((struct comm){
            .ranks = t[i].ranks, .name = "commId 0x2", .silent = t[i].silent});
        check ();
        assert_int_equal (found.communicators, 2);
        assert_int_equal (found.ambiguous, 0);
        if (found.other != (t[i].kind < 0))
            fail_msg ("%s without %u: %d others", t[i].ranks, t[i].silent, found.other);
        if (t[i].kind >= 0)
            counts ((enum check_nccl_kind_name) t[i].kind, 1 + whole, t[i].partly,
                    t[i].reordered, 0, 0);
        is_said ("nccl groups", t[i].partly || t[i].reordered ? CHECK_NOTE : CHECK_OK,
                 t[i].kind < 0 ? "1 others" : "0 others");
        forget ();
    }
    assert_int_equal (kind (NCCL_KIND_TP)->planned, 0);
    comm ((struct comm){.ranks = "0 1", .name = "commId 0x2"});
    check (); /* by their hosts and devices */
    assert_int_equal (kind (NCCL_KIND_TP)->planned, 6);
    assert_int_equal (kind (NCCL_KIND_SYNC)->planned, 4);
    assert_int_equal (kind (NCCL_KIND_PP)->planned, 6);
    assert_int_equal (kind (NCCL_KIND_WORLD)->planned, 1);
    assert_int_equal (kind (NCCL_KIND_CP)->planned, 0);
    say_from ("x0", 0, 50, "comm 0x9 rank 0 nranks 2 commId 0x9 - Init START");
    check (); /* one of nobody */
    assert_int_equal (found.other, 1);
    counts (NCCL_KIND_TP, 1, 0, 0, 0, 0);
    is_said ("nccl ranks", CHECK_NOTE, "2 of 12 ranks are known");
}

PLAN_TEST (pipelines)
{
    make_plan ("2x4 h100-sxm5-80g intra:370 inter:48", config_of (1, 4, 2, 1), NULL);
    comm ((struct comm){.ranks = "0 2 4 6", .name = "commId 0x1"});
    comm ((struct comm){.ranks = "0 6", .name = "commId 0x2"});
    comm ((struct comm){.ranks = "3 5", .name = "commId 0x3"});
    comm ((struct comm){.ranks = "5 3",
                        .name = "commId 0x4"}); /* no pair begins with 5 and has 3 */
    check ();
    counts (NCCL_KIND_PP, 1, 0, 0, 0, 0);
    counts (NCCL_KIND_ENDS, 1, 0, 0, 0, 0);
    counts (NCCL_KIND_PAIR, 1, 0, 0, 0, 0);
    assert_int_equal (found.other, 1);
    assert_int_equal (kind (NCCL_KIND_PAIR)->planned, 6);
    assert_int_equal (kind (NCCL_KIND_ENDS)->planned, 2);
    assert_int_equal (kind (NCCL_KIND_PP)->planned, 2);
}

/* As many communicators as large as the plan's groups, and none is one: the job has others. */
PLAN_TEST (foreign)
{
    make_plan ("2x4 h100-sxm5-80g intra:370 inter:48", config_of (2, 1, 4, 1), NULL);
    comm ((struct comm){.ranks = "0 1 2 3 4 5 6 7", .name = "commId 0x9"});
    comm ((struct comm){.ranks = "0 2", .name = "commId 0x1"});
    comm ((struct comm){.ranks = "1 3", .name = "commId 0x2"});
    comm ((struct comm){.ranks = "4 6", .name = "commId 0x3"});
    check ();
    is_said ("nccl groups", CHECK_OK, "communicators: 1 all ranks; 3 others;");
    comm ((struct comm){.ranks = "5 7", .name = "commId 0x4", .silent = 2});
    check ();
    assert_int_equal (found.other, 4);
    is_said ("nccl groups", CHECK_OK, "1 all ranks; 4 others;");
    comm ((struct comm){.ranks = "5 7", .name = "commId 0x5"});
    check ();
    is_said (
        "nccl groups", CHECK_FAILED,
        "4 communicators have as many ranks as the plan's tp groups, and none is one");
    assert_int_equal (report.failed, 1);
    comm ((struct comm){.ranks = "6 7", .name = "commId 0x6"});
    check ();
    is_said ("nccl groups", CHECK_OK, "1 tp, 1 all ranks; 5 others");
    forget ();
    comm ((struct comm){.ranks = "0 1 2", .name = "commId 0x1"});
    check ();
    is_said ("nccl groups", CHECK_NOTE,
             "communicators: none of the plan's groups; 1 others");
}

/* ---- who is who ---- */

PLAN_TEST (hosts)
{
    make_plan ("2x2 h100-sxm5-80g intra:370 inter:48", config_of (1, 1, 4, 1), NULL);
    /* Ranks of nobody's hosts are taken to be where they are planned, by a communicator of all. */
    for (int r = 0; r < 4; r++) {
        char text[96];

        snprintf (text, sizeof text,
                  "comm 0x1 rank %d nranks 4 cudaDev 0 - Init COMPLETE", r);
        say_from (r < 3 ? "elsewhere" : "n1", r < 3 ? 0 : 1, r, text);
    }
    say_from ("elsewhere", 0, 2, "Channel 00/1 : 2 -> 3 via P2P");
    say_from ("elsewhere", 0, 2, "Channel 00/1 : 2 -> 0 via NET/IB/0");
    check ();
    assert_int_equal (found.ranks_known, 4);
    assert_int_equal (found.n_ways, 2);
    assert_true (found.way[0].a == 1 && found.way[0].b == 0);
    assert_true (found.way[1].a == 1 && found.way[1].b == 1);
    is_said ("nccl ranks", CHECK_NOTE,
             "4 of 4 ranks are known; 3 on hosts that the cluster");
    forget ();
    /* The first and the last on each other's hosts: nothing is compared. */
    for (int r = 0; r < 4; r++) {
        char text[128];

        snprintf (text, sizeof text,
                  "comm 0x1 rank %d nranks 4 cudaDev 0 nvmlDev 0 commId 0x1 - Init START",
                  r);
        say_from (r == 0 || r == 2 ? "n1" : "n0", 0, r, text);
        snprintf (text, sizeof text, "Ring 00 : %d -> %d -> %d", (r + 3) % 4, r,
                  (r + 1) % 4);
        say_from (r == 0 || r == 2 ? "n1" : "n0", 0, r, text);
    }
    check ();
    assert_true (found.moved);
    assert_int_equal (report.failed, 1);
    is_said ("nccl ranks", CHECK_FAILED,
             "2 ranks are on another host than planned, rank 0 on n1 instead of n0");
    counts (NCCL_KIND_SYNC, 1, 0, 0, 0, 0);
    not_said ("nccl rings");
    not_said ("nccl cost");
    forget ();
    /* On their hosts, but on each other's devices; one does not say. */
    for (int r = 0; r < 4; r++) {
        static const char *const device[] = {" nvmlDev 1", " nvmlDev 0", "",
                                             " nvmlDev 1"};
        char text[128];

        snprintf (text, sizeof text,
                  "comm 0x1 rank %d nranks 4 cudaDev 0%s - Init COMPLETE", r, device[r]);
        say_from (r < 2 ? "n0" : "n1", 0, r, text);
    }
    check ();
    assert_false (found.moved);
    is_said ("nccl ranks", CHECK_NOTE, "4 of 4 ranks are known; 2 have another GPU");
    forget ();
    /* Without one of all ranks the host and the machine's number say it, and nothing else does. */
    say_from ("n1", 0, 1, "comm 0x1 rank 0 nranks 3 cudaDev 0 nvmlDev 1 - Init COMPLETE");
    say_from ("n0", 0, 2, "comm 0x1 rank 1 nranks 3 cudaDev 0 nvmlDev 0 - Init COMPLETE");
    say_from ("n0", 0, 3, "comm 0x1 rank 1 nranks 3 cudaDev 0 nvmlDev 2 - Init COMPLETE");
    say_from ("n0", 0, 4, "comm 0x1 rank 1 nranks 3 cudaDev 0 - Init COMPLETE");
    say_from ("x0", 0, 5, "comm 0x1 rank 1 nranks 3 cudaDev 0 nvmlDev 0 - Init COMPLETE");
    check ();
    assert_int_equal (found.ranks_known, 2);
    assert_int_equal (found.processes, 5);
    is_said ("nccl ranks", CHECK_NOTE, "2 of 4 ranks are known, on their planned hosts");
    forget ();
    say_from ("x0", 0, 5, "comm 0x1 rank 1 nranks 3 cudaDev 0 nvmlDev 0 - Init COMPLETE");
    check ();
    is_said ("nccl ranks", CHECK_FAILED, "none of 1 processes is a rank of the plan");
    not_said ("nccl groups");
    not_said ("nccl transports");
}

/* A rank's first communicator of all ranks says which it is; what is there twice is another job. */
PLAN_TEST (two_jobs)
{
    make_plan ("2x2 h100-sxm5-80g intra:370 inter:48", config_of (1, 1, 4, 1), NULL);
    comm ((struct comm){
        .ranks = "0 1 2 3", .name = "commId 0x1", .edges = "0 1 2 3/1 0 3 2"});
    comm ((struct comm){.ranks = "3 2 1 0", .name = "commId 0x2", .edges = "0 1 2 3"});
    check ();
    assert_int_equal (found.jobs, 1);
    counts (NCCL_KIND_SYNC, 2, 0, 1, 2, 1);
    not_said ("nccl jobs");
    plan.job = 1;
    comm ((struct comm){
        .ranks = "0 1 2 3", .name = "commId 0x3", .edges = "0 1 2 3/1 0 3 2"});
    check ();
    assert_int_equal (found.jobs, 2);
    assert_int_equal (found.processes, 8);
    assert_int_equal (found.ranks_known, 4);
    counts (NCCL_KIND_SYNC, 3, 0, 1, 3, 1);
    is_said ("nccl jobs", CHECK_NOTE, "2 jobs or starts: up to 2 processes");
    /* With the same name they cannot be told apart. */
    comm ((struct comm){.ranks = "0 1 2 3", .name = "commId 0x1"});
    comm ((struct comm){.ranks = "0 1 2 3", .name = "commId 0x4", .silent = 14});
    check ();
    assert_int_equal (found.ambiguous, 1);
    comm ((struct comm){.ranks = "0 1 2 3", .name = "commId 0x4", .silent = 14});
    check ();
    assert_int_equal (found.ambiguous, 2);
    assert_int_equal (found.other, 0);
    counts (NCCL_KIND_SYNC, 2, 0, 1, 2, 1);
    is_said ("nccl gaps", CHECK_NOTE, "2 cannot be told apart");
}

/* One rank of the plan in two places of a communicator. */
PLAN_TEST (twice)
{
    make_plan ("2x2 h100-sxm5-80g intra:370 inter:48", config_of (2, 1, 2, 1), NULL);
    say_from ("n0", 0, 0,
              "comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 commId 0x1 - Init START");
    say_from ("n0", 0, 1,
              "comm 0x1 rank 1 nranks 2 cudaDev 0 nvmlDev 0 commId 0x1 - Init START");
    check ();
    assert_int_equal (found.ambiguous, 1);
    assert_int_equal (found.other, 0);
    counts (NCCL_KIND_TP, 0, 0, 0, 0, 0);
}

/* ---- whose lines are one communicator ---- */

/* Split ones: by what they are split from, the number of the split, its colour and their size. */
PLAN_TEST (splits)
{
    make_plan ("2x4 h100-sxm5-80g intra:370 inter:48", config_of (2, 2, 2, 1), NULL);
    comm ((struct comm){.ranks = "0 1 2 3 4 5 6 7", .name = "commId 0x1", .address = 1});
    comm ((struct comm){
        .ranks = "0 1", .name = "parent 0x1 splitCount 1 color 0", .address = 2});
    comm ((struct comm){
        .ranks = "2 3", .name = "parent 0x1 splitCount 1 color 1", .address = 2});
    comm ((struct comm){
        .ranks = "0 2", .name = "parent 0x1 splitCount 2 color 0", .address = 3});
    comm ((struct comm){
        .ranks = "1 3", .name = "parent 0x1 splitCount 2 color 1", .address = 3});
    check ();
    assert_int_equal (found.communicators, 5);
    counts (NCCL_KIND_TP, 2, 0, 0, 0, 0);
    counts (NCCL_KIND_SYNC, 2, 0, 0, 0, 0);
    /* ... of one that was split itself, and of one that is not in the log */
    comm ((struct comm){
        .ranks = "0 1", .name = "parent 0x2 splitCount 1 color 0", .address = 4});
    check ();
    assert_int_equal (found.communicators, 6);
    counts (NCCL_KIND_TP, 3, 0, 0, 0, 0);
    assert_int_equal (found.ambiguous, 0);
    comm ((struct comm){
        .ranks = "0 1", .name = "parent 0x9 splitCount 1 color 0", .address = 5});
    check ();
    assert_int_equal (found.communicators, 6);
    assert_int_equal (found.ambiguous, 2); /* members */
    /* A name of its own is enough. */
    comm ((struct comm){.ranks = "6 7",
                        .name = "commId 0x2 parent 0x9 splitCount 1 color 0",
                        .address = 6});
    comm ((struct comm){.ranks = "4 5", .name = "commId 0x3", .address = 7});
    check ();
    assert_int_equal (found.communicators, 8);
    counts (NCCL_KIND_TP, 5, 0, 0, 0, 0);
    assert_int_equal (found.ambiguous, 2);
}

/* Old versions': the only group that has the rank in that place, or whose nodes are connected
 * so. */
PLAN_TEST (without_names)
{
    /* of ranks that it does not have */
    static const char *const stray[] = {"2 -> 0", "0 -> 2", "-1 -> 0", "0 -> -1"};
    static const struct {
        const char *ranks, *inside, *between;
        int tp, dp, ambiguous;
    } t[] = {
        {"0 1", "P2P/IPC", NULL, 1, 0, 0},
        {"0 1", "SHM/direct", NULL, 1, 0, 0},
        {"0 2", NULL, "NET/Socket/0", 0, 1, 0},
        {"0 2", NULL, "NVLS", 0, 1, 1}, /* says nothing of nodes: rank 0 may be of both */
        {"0 1", "NET/IB/0", NULL, 1, 0, 0}}; /* which rank 0 takes for dp's */

    make_plan ("4x2 h100-sxm5-80g intra:370 inter:48", config_of (2, 1, 4, 1), NULL);
    comm ((struct comm){.ranks = "0 1 2 3 4 5 6 7"});
    comm ((struct comm){.ranks = "0 2 4 6"});
    comm ((struct comm){.ranks = "0 2 4 6"});
    comm ((struct comm){.ranks = "0 1"});
    comm ((struct comm){.ranks = "2 3"});
    comm ((struct comm){.ranks = "1 0"}); /* of no group in these places */
    check ();
    assert_int_equal (found.communicators, 5);
    counts (NCCL_KIND_SYNC, 2, 0, 0, 0, 0);
    counts (NCCL_KIND_TP, 2, 0, 0, 0, 0);
    counts (NCCL_KIND_WORLD, 1, 0, 0, 0, 0);
    assert_int_equal (found.ambiguous, 2);
    end (NULL);

    make_plan ("2x2 h100-sxm5-80g intra:370 inter:48", config_of (2, 1, 2, 1), NULL);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        comm ((struct comm){.ranks = "0 1 2 3"});
        for (size_t k = 0; k < sizeof stray / sizeof *stray; k++)
            say (0, "Ring 00 : %s via P2P", stray[k]);
        comm ((struct comm){.ranks = t[i].ranks,
                            .links = "0 1",
                            .inside = t[i].inside,
                            .between = t[i].between});
        check ();
        if (found.ambiguous != t[i].ambiguous || kind (NCCL_KIND_TP)->found != t[i].tp ||
            kind (NCCL_KIND_SYNC)->found != t[i].dp)
            fail_msg ("%zu: %d cannot be told, %d tp, %d dp", i, found.ambiguous,
                      kind (NCCL_KIND_TP)->found, kind (NCCL_KIND_SYNC)->found);
        forget ();
    }
    /* Nor can a process of no rank, though there is a group of that size. */
    comm ((struct comm){.ranks = "0 1", .nobody = true});
    check ();
    assert_int_equal (found.ambiguous, 2);
}

/* Other plans: one that is not the cluster's. */
PLAN_TEST (other_cluster)
{
    struct error err = {""};

    make_plan ("2x2 h100-sxm5-80g intra:370 inter:48", config_of (1, 1, 4, 1), NULL);
    comm ((struct comm){.ranks = "0 1 2 3", .name = "commId 0x1", .links = "0 1 2 3"});
    plan.place[3].gpu = 7;
    assert_int_equal (check_log (&err), ST_INVALID);
    assert_int_equal (found.lines.names, 0);
    assert_null (found.way);
}
