/* The cluster file beyond matrices: rules, rails, exceptions, drained GPUs, what is known
 * about devices, and statistics over all of it. */
#include "tests/lib/clusters.h"

#include "topology/survey/survey.h"

#define NODE(NAME, REST) "{\"name\":\"" NAME "\",\"gpus\":2,\"gpu_type\":\"t4\"" REST "}"
#define FOUR                                                                           \
    NODE ("a", ",\"switches\":[\"l0\",\"p0\",\"c\"]")                                  \
    "," NODE ("b", ",\"switches\":[\"l0\",\"p0\",\"c\"]") "," NODE (                   \
        "c", ",\"switches\":[\"l1\",\"p0\",\"c\"]") "," NODE ("d",                     \
                                                              ",\"switches\":[\"l2\"," \
                                                              "\"p1\",\"c\"]")
#define DOC(NODES, LINKS)              \
    "{\"version\":1,\"nodes\":[" NODES \
    "],\"links\":{\"intra\":{\"bandwidth_gb_per_s\":100,\"latency_us\":2}," LINKS "}}"
#define INTER(BW, REST) \
    "\"inter\":{\"bandwidth_gb_per_s\":" BW ",\"latency_us\":10" REST "}"

static double gb (const struct topology_cluster *c, int src, int dst)
{
    return topology_link (c, src, dst).bytes_per_s / 1e9;
}

TEST (by_node)
{
    struct topology_cluster *c =
        cluster_from (DOC (FOUR, INTER ("{\"by_node\":[9,7,null,5]}", "")));

    CLOSE (gb (c, 0, 2), 7.0, 1e-12); /* the lower of both ends */
    CLOSE (gb (c, 2, 6), 5.0, 1e-12);
    CLOSE (gb (c, 6, 2), 5.0, 1e-12);
    assert_false (topology_link (c, 0, 4).measured);
    topology_cluster_destroy (c);
}

TEST (by_hops)
{
    struct topology_cluster *c =
        cluster_from (DOC (FOUR, INTER ("{\"by_hops\":[20,10,5]}", "")));

    assert_int_equal (topology_hops (c, 0, 1), 0);
    assert_int_equal (topology_hops (c, 0, 2), 1);
    assert_int_equal (topology_hops (c, 3, 2), 2);
    CLOSE (gb (c, 0, 2), 20.0, 1e-12);
    CLOSE (gb (c, 0, 4), 10.0, 1e-12);
    CLOSE (gb (c, 7, 4), 5.0, 1e-12);
    topology_cluster_destroy (c);
}

TEST (rails)
{
    struct topology_cluster *c = cluster_from (DOC (
        NODE ("a", "") "," NODE ("b", ",\"gpu_rail\":[1,0]"),
        INTER ("4", ",\"rails\":[{\"bandwidth_gb_per_s\":[[null,30],[31,null]],"
                    "\"latency_us\":6},{\"bandwidth_gb_per_s\":[[null,40],[41,null]],"
                    "\"latency_us\":7}]")));

    assert_true (c->has_gpu_links);
    CLOSE (gb (c, 0, 3), 30.0, 1e-12); /* a:0 and b:1 are on rail 0 */
    CLOSE (gb (c, 3, 0), 31.0, 1e-12);
    CLOSE (gb (c, 1, 2), 40.0, 1e-12);
    CLOSE (topology_link (c, 2, 1).latency_s, 7e-6, 1e-12);
    CLOSE (gb (c, 0, 2), 4.0, 1e-12); /* across rails */
    CLOSE (gb (c, 0, 1), 100.0, 1e-12);
    topology_cluster_destroy (c);
}

TEST (exceptions)
{
    struct topology_cluster *c = cluster_from (DOC (
        FOUR, INTER ("10", "") ",\"exceptions\":["
                               "{\"from\":\"a\",\"to\":\"b\",\"bandwidth_gb_per_s\":3},"
                               "{\"from\":\"c:1\",\"to\":\"d:0\","
                               "\"bandwidth_gb_per_s\":null},"
                               "{\"from\":\"d:0\",\"to\":\"d:1\","
                               "\"bandwidth_gb_per_s\":50,\"latency_us\":4},"
                               "{\"from\":\"a\",\"to\":\"b\",\"latency_us\":99}]"));

    CLOSE (gb (c, 0, 2), 3.0, 1e-12);
    CLOSE (gb (c, 1, 3), 3.0, 1e-12);
    CLOSE (topology_link (c, 0, 2).latency_s, 99e-6, 1e-12);
    CLOSE (gb (c, 2, 0), 10.0, 1e-12); /* one way */
    assert_false (topology_link (c, 5, 6).measured);
    assert_true (topology_link (c, 5, 7).measured);
    assert_true (topology_link (c, 4, 6).measured);
    CLOSE (gb (c, 6, 7), 50.0, 1e-12);
    CLOSE (topology_link (c, 6, 7).latency_s, 4e-6, 1e-12);
    CLOSE (gb (c, 7, 6), 100.0, 1e-12);
    CLOSE (gb (c, 0, 1), 100.0, 1e-12); /* the other nodes keep what they share */
    topology_cluster_destroy (c);
}

/* GPUs are numbered anew; the machine's numbers and what belongs to them stay together. */
TEST (drained_gpus)
{
    struct topology_cluster *c = cluster_from (
        "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":3,\"gpu_type\":\"t4\","
        "\"gpu_state\":[\"ok\",\"drained\",\"ok\"],\"speed\":[1,0.5,0.7],"
        "\"gpu_cpus\":[\"0-3\",\"0-3\",\"4-7,12\"],\"gpu_numa\":[0,0,1],"
        "\"gpu_nic\":[\"m0\",\"m1\",\"m2\"]},"
        "{\"name\":\"b\",\"gpus\":1,\"gpu_type\":\"t4\"}],"
        "\"links\":{\"gpu\":{\"latency_us\":1,\"bandwidth_gb_per_s\":"
        "[[0,1,2,3],[4,0,5,6],[7,8,0,9],[10,11,12,0]]}}}");

    assert_int_equal (c->n_gpus, 3);
    assert_int_equal (c->node[0].gpus, 2);
    assert_int_equal (c->node[0].gpus_listed, 3);
    assert_int_equal (topology_gpu_index (c, 1), 2);
    assert_int_equal (topology_gpu_find (c, 0, 2), 1);
    assert_int_equal (topology_gpu_find (c, 0, 1), -1);
    assert_string_equal (c->node[0].gpu_cpus[1], "4-7,12");
    assert_null (c->node[1].gpu_cpus);
    assert_string_equal (c->node[0].gpu_nic[1], "m2");
    assert_int_equal (c->node[0].gpu_numa[1], 1);
    CLOSE (topology_gpu_speed (c, 1), 0.7, 0);
    CLOSE (gb (c, 0, 1), 2.0, 1e-12); /* rows and columns of the file's GPUs 0 and 2 */
    CLOSE (gb (c, 1, 2), 9.0, 1e-12);
    CLOSE (gb (c, 2, 1), 12.0, 1e-12);
    topology_cluster_destroy (c);

    c = cluster_from ("{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":"
                      "\"t4\",\"gpu_state\":[\"drained\"]}]}");
    assert_true (c->node[0].drained);
    topology_cluster_destroy (c);
}

TEST (breaches)
{
    static const struct {
        const char *doc, *says;
    } bad[] = {
        {DOC (FOUR, INTER ("{\"by_node\":[1,2]}", "")), "by_node"},
        {DOC (FOUR, INTER ("{\"by_node\":[1,2,0,3]}", "")), "by_node[2]"},
        {DOC (FOUR, INTER ("{\"by_hops\":[]}", "")), "by_hops"},
        {DOC (FOUR, INTER ("{\"by_moon\":[]}", "")), "bandwidth_gb_per_s"},
        {DOC (NODE ("a", ",\"gpu_rail\":[0,5]") "," NODE ("b", ""),
              INTER ("4", ",\"rails\":[{\"bandwidth_gb_per_s\":3,\"latency_us\":1}]")),
         "a GPU of node a is on rail 5"},
        {DOC (FOUR, INTER ("4", ",\"rails\":[]")), "rails"},
        {DOC (FOUR, INTER ("4", "") ",\"exceptions\":[{\"from\":\"x\",\"to\":\"a\","
                                    "\"bandwidth_gb_per_s\":1}]"),
         "exceptions[0].from"},
        {DOC (FOUR, INTER ("4", "") ",\"exceptions\":[{\"from\":\"a\",\"to\":\"b:2\","
                                    "\"bandwidth_gb_per_s\":1}]"),
         "node b has GPUs 0 to 1"},
        {DOC (FOUR, INTER ("4", "") ",\"exceptions\":[{\"from\":\"a\",\"to\":\"a\","
                                    "\"bandwidth_gb_per_s\":1}]"),
         "expected two GPUs or two nodes"},
        {DOC (FOUR, INTER ("4", "") ",\"exceptions\":[{\"from\":\"a\",\"to\":\"b\"}]"),
         "expected bandwidth_gb_per_s, latency_us or both"},
        {DOC (NODE ("a", ",\"gpu_state\":[\"ok\"]"), INTER ("4", "")), "gpu_state"},
        {DOC (NODE ("a", ",\"gpu_cpus\":[\"0-3\",\"x\"]"), INTER ("4", "")),
         "gpu_cpus[1]: expected a list of cores"},
        {DOC (NODE ("a", ",\"switches\":\"l0\""), INTER ("4", "")), "switches"},
        {"{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":0,\"gpu_type\":null}]}",
         "has no GPUs to plan on"},
        {"{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":null}]}",
         "the GPU type of node"}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal (cluster_refused (bad[i].doc, bad[i].says), ST_INVALID);
}

/* ---- statistics ---- */

TEST (tiers)
{
    struct topology_cluster *c = cluster_from (DOC (
        FOUR, INTER ("[[null,10,8,4],[12,null,8,4],[8,8,null,null],[4,4,1,null]]", "")));
    struct topology_stats s;
    struct error err;
    char text[64];

    ok (topology_stats_collect (c, 3, NULL, &s, &err), &err);
    assert_int_equal (s.n_tiers, 4);
    assert_true (s.tier[0].where == TOPOLOGY_INSIDE && s.tier[0].links == 8);
    CLOSE (s.tier[0].quantile_bytes_per_s[QUANTILE_50], 100e9, 1e-12);
    assert_int_equal (s.tier[1].hops, 0);
    CLOSE (s.tier[1].quantile_bytes_per_s[QUANTILE_50], 11e9, 1e-12);
    assert_string_equal (topology_tier_text (c, &s.tier[1], text),
                         "between nodes, same leaf");
    assert_int_equal (s.tier[3].hops, 2);
    assert_true (s.tier[3].links == 6 && s.tier[3].unmeasured == 1);
    CLOSE (s.tier[3].quantile_bytes_per_s[QUANTILE_MIN], 1e9, 1e-12);
    CLOSE (s.tier[3].quantile_bytes_per_s[QUANTILE_50], 4e9, 1e-12);
    /* The worst is so against its own tier: d -> c with a quarter. */
    assert_int_equal (s.worst[0].from.node, 3);
    assert_int_equal (s.worst[0].to.node, 2);
    CLOSE (s.worst[0].share, 0.25, 1e-12);
    assert_true (s.worst[0].back_bytes_per_s == 0 && s.slow == 1);
    /* a <-> b: 10 and 12; all others alike. */
    assert_true (s.asymmetry_pairs == 5);
    CLOSE (s.asymmetry_max, 2.0 / 12, 1e-12);
    CLOSE (s.asymmetry_mean, 2.0 / 12 / 5, 1e-12);
    assert_int_equal (s.node[3].lowest_node, 2);
    CLOSE (s.node[0].out_bytes_per_s, 22e9 / 3, 1e-12);
    CLOSE (s.node[0].in_bytes_per_s, 24e9 / 3, 1e-12);
    assert_true (s.node[2].unmeasured == 1);
    topology_stats_release (&s);
    topology_cluster_destroy (c);
}

/* More nodes than are looked at together: the same as link by link. */
TEST (link_by_link)
{
    enum { N = 45 };
    struct topology_cluster *c;
    struct topology_stats s;
    struct rng r = seeded (3);
    struct error err;
    double rate[N * N], sum = 0, most = 0, lowest = INFINITY;
    int pairs = 0, unmeasured = 0, from = -1, to = -1;

    for (int k = 0; k < N * N; k++)
        rate[k] = rng_below (&r, 20) ? 10 + 20 * rng_unit (&r) : NAN;
    c = cluster_of_rates (N, 2, "t4", false, rate);
    ok (topology_stats_collect (c, 3, NULL, &s, &err), &err);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            struct topology_link l, back;

            if (i == j)
                continue;
            l = topology_node_link (c, i, j);
            back = topology_node_link (c, j, i);
            unmeasured += !l.measured;
            if (l.measured && l.bytes_per_s < lowest) {
                lowest = l.bytes_per_s;
                from = i;
                to = j;
            }
            if (i < j && l.measured && back.measured) {
                double d = fabs (l.bytes_per_s - back.bytes_per_s) /
                           fmax (l.bytes_per_s, back.bytes_per_s);

                pairs++;
                sum += d;
                most = fmax (most, d);
            }
        }
    assert_true (unmeasured > 0 && s.tier[1].unmeasured == unmeasured);
    assert_true (s.asymmetry_pairs == pairs);
    CLOSE (s.asymmetry_mean, sum / pairs, 1e-12);
    CLOSE (s.asymmetry_max, most, 1e-12);
    assert_int_equal (s.n_worst, 3);
    assert_int_equal (s.worst[0].from.node, from);
    assert_int_equal (s.worst[0].to.node, to);
    for (int k = 0; k < 3; k++) {
        struct topology_link back =
            topology_node_link (c, s.worst[k].to.node, s.worst[k].from.node);

        CLOSE (s.worst[k].back_bytes_per_s, back.measured ? back.bytes_per_s : 0.0,
               1e-12);
        assert_true (k == 0 || s.worst[k].share >= s.worst[k - 1].share);
    }
    topology_stats_release (&s);
    topology_cluster_destroy (c);
}

/* One number for all pairs counts for all, and is looked at once. */
TEST (one_for_all)
{
    struct topology_cluster *c = cluster_of ("2000x8 h100-sxm5-80g intra:370 inter:48");
    struct topology_stats s;
    struct topology_heat h;
    struct error err;

    ok (topology_stats_collect (c, 3, NULL, &s, &err), &err);
    assert_int_equal (s.n_tiers, 2);
    assert_true (s.tier[0].links == 2000.0 * 56);
    assert_true (s.tier[1].links == 2000.0 * 1999 && s.n_worst == 0);
    ok (topology_heat_collect (c, 10, s.between_median_bytes_per_s, NULL, &h, &err),
        &err);
    assert_int_equal (h.n, 0);
    topology_stats_release (&s);
    topology_cluster_destroy (c);
}

TEST (heat)
{
    struct topology_cluster *c = cluster_from (DOC (
        FOUR, INTER ("[[null,10,8,4],[12,null,8,4],[8,8,null,null],[4,4,1,null]]", "")));
    struct topology_stats s;
    struct topology_heat h;
    struct error err;

    ok (topology_stats_collect (c, 0, NULL, &s, &err), &err);
    CLOSE (s.between_median_bytes_per_s, 8e9, 1e-12);
    assert_int_equal (s.n_worst, 0);
    topology_stats_release (&s);
    ok (topology_heat_collect (c, 10, 8e9, NULL, &h, &err), &err);
    assert_int_equal (h.n, 4);
    CLOSE (h.of_bytes_per_s, 8e9, 1e-12);
    CLOSE (h.share[0 * 4 + 1], 1.25, 1e-12);
    assert_true (isnan (h.share[2 * 4 + 3]) && isnan (h.share[0]));
    topology_heat_release (&h);
    ok (topology_heat_collect (c, 2, 8e9, NULL, &h, &err), &err);
    assert_int_equal (h.n, 2);
    assert_true (h.first[0] == 0 && h.first[1] == 2 && h.first[2] == 4);
    CLOSE (h.share[0 * 2 + 1], (8 + 4 + 8 + 4) / 4.0 / 8, 1e-12);
    CLOSE (h.share[0], 11.0 / 8, 1e-12);
    topology_heat_release (&h);
    topology_cluster_destroy (c);
}

/* Links of GPUs are looked at one by one, those across rails together. */
TEST (rails_visited)
{
    struct topology_cluster *c = cluster_from (
        DOC (NODE ("a", "") "," NODE ("b", ""),
             INTER ("4", ",\"rails\":[{\"bandwidth_gb_per_s\":30,\"latency_us\":6},"
                         "{\"bandwidth_gb_per_s\":40,\"latency_us\":7}]")));
    struct topology_stats s;
    struct error err;

    ok (topology_stats_collect (c, 3, NULL, &s, &err), &err);
    assert_int_equal (s.n_tiers, 3);
    assert_int_equal (s.tier[1].rail, 1);
    assert_true (s.tier[1].links == 4 && s.tier[2].links == 4);
    CLOSE (s.tier[1].quantile_bytes_per_s[QUANTILE_50], 35e9, 1e-12);
    CLOSE (s.tier[2].quantile_bytes_per_s[QUANTILE_50], 4e9, 1e-12);
    topology_stats_release (&s);
    topology_cluster_destroy (c);
}

struct visits {
    const struct topology_cluster *c;
    double inside, between; /* links that were stood for */
};

/* As looked up for GPUs that the visit stands for. */
static void visited (void *context, const struct topology_visited *v)
{
    struct visits *all = context;
    const struct topology_cluster *c = all->c;
    int src = v->from.gpu, dst = v->to.gpu;
    bool inside = v->from.node == v->to.node;
    struct topology_link l;

    if (!inside)
        assert_int_equal (src >= 0, c->has_gpu_links);
    assert_int_equal (src >= 0, dst >= 0);
    if (src < 0) {
        src = c->node[v->from.node].first_gpu;
        dst = c->node[v->to.node].first_gpu + inside;
    }
    assert_true (c->node_of_gpu[src] == v->from.node &&
                 c->node_of_gpu[dst] == v->to.node);
    l = topology_link (c, src, dst);
    assert_int_equal (v->link.measured, l.measured);
    assert_true (v->link.bytes_per_s == (l.measured ? l.bytes_per_s : 0.0));
    if (l.measured)
        assert_true (v->link.latency_s == l.latency_s);
    *(inside ? &all->inside : &all->between) += v->alike;
}

/* Each link once, however the file gives it: between nodes, or between GPUs where it tells those
 * apart. */
TEST (every_link_visited)
{
    static const char *const links[] = {
        INTER ("7", ""),
        INTER ("{\"by_node\":[9,7,8,5]}", ""),
        INTER ("{\"by_node\":[9,7,null,5]}", ""),
        INTER ("{\"by_hops\":[20,10,5]}", ""),
        INTER ("[[null,1,2,3],[4,null,5,6],[7,8,null,9],[10,11,null,null]]", ""),
        INTER ("4", ",\"rails\":[{\"bandwidth_gb_per_s\":30,\"latency_us\":6},"
                    "{\"bandwidth_gb_per_s\":40,\"latency_us\":7}]"),
        INTER ("7", "") ",\"exceptions\":[{\"from\":\"a:0\",\"to\":\"c:1\","
                        "\"bandwidth_gb_per_s\":3}]"};

    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        struct text t = {0};
        struct topology_cluster *c;
        struct visits all = {0};

        text_add (&t, DOC (FOUR, "%s"), links[i]);
        all.c = c = cluster_written (&t);
        topology_links_visit (c, visited, &all, NULL);
        assert_true (all.inside == 4 * 2);
        assert_true (all.between == 4 * 3 * (c->has_gpu_links ? 4 : 1));
        topology_cluster_destroy (c);
    }
}

/* ---- two snapshots ---- */

TEST (snapshots)
{
    struct topology_cluster *a =
        cluster_from (DOC (FOUR, INTER ("{\"by_node\":[10,10,10,10]}", "")));
    struct topology_cluster *b = cluster_from (
        DOC (FOUR, INTER ("{\"by_node\":[10,10,10,10]}",
                          "") ",\"exceptions\":[{\"from\":\"a\",\"to\":\"b\","
                              "\"bandwidth_gb_per_s\":5},{\"from\":\"b\",\"to\":\"a\","
                              "\"bandwidth_gb_per_s\":30},{\"from\":\"c\",\"to\":\"d\","
                              "\"bandwidth_gb_per_s\":null},{\"from\":\"d\",\"to\":"
                              "\"c\",\"bandwidth_gb_per_s\":10.5}]"));
    struct topology_cluster *other = cluster_of ("4x2 t4 intra:100 inter:10");
    struct topology_diff d;
    struct error err;

    assert_true (topology_same_cluster (a, b));
    assert_false (topology_same_cluster (a, other));
    ok (topology_diff_collect (a, b, 0.1, 9, &d, &err), &err);
    /* 4 nodes x 2 directions inside (one rate each, so all 8) and 11 of 12 between. */
    assert_true (d.compared == 8 + 11 && d.vanished == 1 && d.appeared == 0);
    assert_true (d.slower == 1 && d.faster == 1 && d.n == 2);
    /* Threefold is more than half. */
    assert_int_equal (d.change[0].from.node, 1);
    CLOSE (d.change[0].new_bytes_per_s, 30e9, 1e-12);
    assert_int_equal (d.change[1].from.node, 0);
    CLOSE (d.median_ratio, 1.0, 1e-12);
    topology_diff_release (&d);
    /* The other way round: it is found again, from the finer one. */
    ok (topology_diff_collect (b, a, 0.1, 1, &d, &err), &err);
    assert_true (d.slower == 1 && d.faster == 1 && d.appeared == 1 && d.n == 1);
    topology_diff_release (&d);
    topology_cluster_destroy (a);
    topology_cluster_destroy (b);
    topology_cluster_destroy (other);
}

TEST (inspection)
{
    struct topology_cluster *c = cluster_from (DOC (
        NODE ("a", ",\"gpu_pci\":[\"0000:01:00.0\",\"0000:01:00.0\"]") "," NODE ("b", ""),
        INTER ("[[null,null],[null,null]]", "")));
    struct topology_inspection x;
    struct error err;
    bool twice = false, lonely = false;

    ok (topology_inspect (c, NULL, &x, &err), &err);
    for (int k = 0; k < x.n; k++) {
        twice = twice || strstr (x.finding[k].text,
                                 "a:0 and a:1 have the PCI address 0000:01:00.0");
        lonely = lonely || strstr (x.finding[k].text, "2 nodes without a measured link");
    }
    assert_true (twice && lonely && x.failed == 3); /* and no link between is measured */
    topology_inspection_release (&x);
    topology_cluster_destroy (c);

    /* A node alone misses no links to others. */
    c = cluster_from (DOC (NODE ("a", ""), INTER ("4", "")));
    ok (topology_inspect (c, NULL, &x, &err), &err);
    for (int k = 0; k < x.n; k++)
        assert_string_not_equal (x.finding[k].what, "connection");
    assert_int_equal (x.failed, 0);
    topology_inspection_release (&x);
    topology_cluster_destroy (c);
}
