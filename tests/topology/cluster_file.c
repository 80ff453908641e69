/* The cluster file: what is accepted, and what each breach is told as. */
#include "tests/lib/folder.h"

#include "base/json.h"

#define NODES                                                     \
    "\"nodes\":[{\"name\":\"a\",\"gpus\":2,\"gpu_type\":\"t4\"}," \
    "{\"name\":\"b\",\"gpus\":2,\"gpu_type\":\"t4\"}]"
#define INTRA "\"intra\":{\"bandwidth_gb_per_s\":10,\"latency_us\":5}"
#define INTER "\"inter\":{\"bandwidth_gb_per_s\":[[null,3],[2,null]],\"latency_us\":20}"
#define DOC(NODES_, LINKS) \
    "{\"version\":1,\"name\":\"x\"," NODES_ ",\"links\":{" LINKS "}}"

TEST (directed_links)
{
    struct topology_cluster *c = cluster_from (DOC (NODES, INTRA "," INTER));
    struct topology_link l;

    assert_int_equal (c->n_nodes, 2);
    assert_int_equal (c->n_gpus, 4);
    l = topology_link (c, 0, 2); /* a -> b: row a, column b */
    assert_true (l.measured);
    CLOSE (l.bytes_per_s, 3e9, 1e-12);
    CLOSE (l.latency_s, 20e-6, 1e-12);
    l = topology_link (c, 3, 1);
    CLOSE (l.bytes_per_s, 2e9, 1e-12);
    l = topology_link (c, 1, 0);
    CLOSE (l.bytes_per_s, 10e9, 1e-12);
    CLOSE (l.latency_s, 5e-6, 1e-12);
    assert_int_equal (topology_node_find (c, "b"), 1);
    assert_int_equal (topology_node_find (c, "c"), -1);
    topology_cluster_destroy (c);
}

/* A host's name is a node's, or one of the two is short and no other node begins alike. */
TEST (names_of_hosts)
{
    static const struct {
        const char *host;
        int node;
    } known[] = {{"n1.east", 0},  {"n1.west", 1}, {"n1", -2},       {"n1.north", -1},
                 {"n2", 2},       {"n2.lab", 2},  {"n2.x", -1},     {"n3.lab", 4},
                 {"n3", 4},       {"n", -1},      {"n4", 5},        {"n4.lab", -2},
                 {"n4.east", 6},  {"", -1},       {".east", -1},    {"n5", -1},
                 {"n3-a", 3},     {"n3-a.b", 3},  {"n1.east.", -1}, {"10.x", 7},
                 {"10.0.0.9", -1}};
    static const char *const names[] = {"n1.east", "n1.west", "n2.lab",  "n3-a",
                                        "n3",      "n4",      "n4.east", "10"};
    struct text t = {0};

    text_add (&t, "{\"version\":1,\"nodes\":[");
    for (int i = 0; i < 8; i++)
        text_add (&t, "%s{\"name\":\"%s\",\"gpus\":1,\"gpu_type\":\"t4\"}", i ? "," : "",
                  names[i]);
    text_add (&t, "],\"links\":{\"inter\":{\"bandwidth_gb_per_s\":1,\"latency_us\":1}}}");

    struct topology_cluster *c = cluster_from (text_str (&t));

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (topology_node_of_host (c, known[i].host) != known[i].node)
            fail_msg ("%s: expected %d, found %d", known[i].host, known[i].node,
                      topology_node_of_host (c, known[i].host));
    topology_cluster_destroy (c);
    text_free (&t);
}

/* A null link is priced at the lowest measured bandwidth of its kind. */
TEST (unmeasured_links)
{
    struct topology_cluster *c = cluster_from (
        DOC ("\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":\"t4\"},{\"name\":\"b\","
             "\"gpus\":1,"
             "\"gpu_type\":\"t4\"},{\"name\":\"c\",\"gpus\":1,\"gpu_type\":\"t4\"}]",
             "\"inter\":{\"latency_us\":1,\"bandwidth_gb_per_s\":[[0,3,null],[4,0,7],[5,"
             "6,0]]}"));
    struct topology_link l = topology_link (c, 0, 2);
    struct topology_link_stats s;
    struct error err;

    assert_false (l.measured);
    CLOSE (l.bytes_per_s, 3e9, 1e-12);
    ok (topology_inter_stats (c, &s, &err), &err);
    assert_int_equal (s.pairs, 6);
    assert_int_equal (s.unmeasured, 1);
    CLOSE (s.median_bytes_per_s, 5e9, 1e-12);
    topology_cluster_destroy (c);

    /* Nothing of the kind was measured: no price. */
    c = cluster_from (DOC (NODES,
                           INTRA ",\"inter\":{\"latency_us\":1,\"bandwidth_gb_per_s\":"
                                 "[[null,null],[null,null]]}"));
    l = topology_link (c, 0, 2);
    assert_true (!l.measured && l.bytes_per_s == 0);
    topology_cluster_destroy (c);
}

TEST (per_node_and_per_gpu)
{
    struct topology_cluster *c = cluster_from (
        DOC ("\"nodes\":[{\"name\":\"a\",\"gpus\":2,\"gpu_type\":\"t4\"},{\"name\":\"b\","
             "\"gpus\":1,\"gpu_type\":\"my\",\"speed\":[0.5],\"rack\":\"r1\",\"state\":"
             "\"drained\",\"gpu_uuid\":[\"GPU-1\"],\"gpu_numa\":[1],\"gpu_nic\":[\"mlx5_"
             "0\"]}],"
             "\"gpu_types\":{\"my\":{\"like\":\"l4\",\"memory_gb\":10}}",
             "\"intra\":[{\"bandwidth_gb_per_s\":[[0,11],[12,0]],\"latency_us\":1},null],"
             "\"inter\":{\"bandwidth_gb_per_s\":2,\"latency_us\":1,\"node_gb_per_s\":[4,"
             "null]}"));

    CLOSE (topology_link (c, 0, 1).bytes_per_s, 11e9, 1e-12);
    CLOSE (topology_link (c, 1, 0).bytes_per_s, 12e9, 1e-12);
    CLOSE (topology_link (c, 2, 0).bytes_per_s, 2e9, 1e-12);
    CLOSE (c->node[0].node_bytes_per_s, 4e9, 1e-12);
    assert_true (c->node[1].node_bytes_per_s == 0 && c->node[1].drained);
    CLOSE (topology_gpu_speed (c, 2), 0.5, 0);
    CLOSE (c->node[1].type->memory_bytes, 1e10, 1e-12);
    CLOSE (c->node[1].type->bf16_flop_per_s, 121e12, 1e-12);
    assert_string_equal (c->node[1].gpu_nic[0], "mlx5_0");
    topology_cluster_destroy (c);

    c = cluster_from (DOC (NODES,
                           "\"gpu\":{\"latency_us\":1,\"bandwidth_gb_per_s\":[[0,1,2,3],"
                           "[4,0,5,6],[7,8,0,9],[10,11,null,0]]}"));
    assert_true (c->has_gpu_links);
    CLOSE (topology_link (c, 2, 1).bytes_per_s, 8e9, 1e-12);
    CLOSE (topology_link (c, 3, 2).bytes_per_s, 1e9, 1e-12); /* lowest inside nodes */
    assert_true (isinf (topology_share (c, 0, 1, 3, 4)));
    topology_cluster_destroy (c);
}

/* What flows that go at one time can have: of their nodes' totals, and of the pair's. */
TEST (shares)
{
    struct topology_cluster *c = cluster_from (
        DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":2,\"latency_us\":1,"
                          "\"node_gb_per_s\":[12,null],"
                          "\"node_pair_gb_per_s\":[[null,6],[null,null]]}"));
    json_t *doc;

    CLOSE (topology_share (c, 0, 1, 1, 1), 6e9, 1e-12);
    CLOSE (topology_share (c, 0, 1, 4, 1), 1.5e9, 1e-12);
    CLOSE (topology_share (c, 0, 1, 1, 4), 1.5e9, 1e-12);
    CLOSE (topology_share (c, 1, 0, 1, 4), 1.5e9,
           1e-12); /* nobody measured: the lowest */
    doc = topology_cluster_to_json (c);
    assert_non_null (json_object_get (
        json_object_get (json_object_get (doc, "links"), "inter"), "node_pair_gb_per_s"));
    json_decref (doc);
    topology_cluster_destroy (c);

    c = cluster_from (DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":2,"
                                        "\"latency_us\":1,\"node_gb_per_s\":[12,null]}"));
    CLOSE (topology_share (c, 0, 1, 3, 100), 4e9, 1e-12);
    topology_cluster_destroy (c);
}

TEST (breaches)
{
    static const struct {
        const char *doc, *says;
    } bad[] = {
        {"[]", "expected an object, found an array of 0"},
        {"{\"version\":2}", "version: expected 1, found 2"},
        {"{\"version\":1}", "nodes: expected an array, found nothing"},
        {"{\"version\":1,\"nodes\":[]}", "nodes: expected 1 to 1048576 nodes"},
        {DOC ("\"nodes\":[{\"name\":\"-a\",\"gpus\":1,\"gpu_type\":\"t4\"}]", ""),
         "nodes[0].name: expected a name matching"},
        {DOC ("\"nodes\":[{\"name\":\"a b\",\"gpus\":1,\"gpu_type\":\"t4\"}]", ""),
         "nodes[0].name"},
        {DOC ("\"nodes\":[{\"name\":\"a\",\"gpus\":0,\"gpu_type\":\"t4\"}]", ""),
         "nodes[0].gpus: expected a whole number from 1 to 1024, found 0"},
        {DOC ("\"nodes\":[{\"name\":\"a\",\"gpus\":2000,\"gpu_type\":\"t4\"}]", ""),
         "found 2000"},
        {DOC ("\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":\"h10o\"}]", ""),
         "unknown GPU type \"h10o\"; did you mean h100-sxm5-80g?"},
        {DOC (
             "\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":\"t4\"},{\"name\":\"a\","
             "\"gpus\":1,\"gpu_type\":\"t4\"}]",
             INTER),
         "two nodes are named \"a\""},
        {DOC (NODES, INTER), "intra: required, since node a has 2 GPUs"},
        {DOC (NODES, INTRA), "inter: required, since there are 2 nodes"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":[[null,-1],[2,null]],"
                           "\"latency_us\":1}"),
         "links.inter.bandwidth_gb_per_s[0][1]: expected a number > 0 or null, found -1"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":[[null,0],[2,null]],"
                           "\"latency_us\":1}"),
         "[0][1]: expected a number > 0 or null, found 0"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":[[null,1e-10],[2,null]],"
                           "\"latency_us\":1}"),
         "[0][1]: expected a number >= 1e-9 or null, found 1e-10"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":[[null,2e9],[2,null]],"
                           "\"latency_us\":1}"),
         "[0][1]: expected a number <= 1e9 or null, found 2"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":[[null,\"3\"],[2,null]],"
                           "\"latency_us\":1}"),
         "[0][1]: expected a number > 0 or null, found \"3\""},
        {DOC (NODES,
              INTRA ",\"inter\":{\"bandwidth_gb_per_s\":[[null,3]],\"latency_us\":1}"),
         "bandwidth_gb_per_s: expected 2 rows of 2 entries, found an array of 1"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":[[null,3],[2]],"
                           "\"latency_us\":1}"),
         "bandwidth_gb_per_s[1]: expected an array of 2, found an array of 1"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":3,\"latency_us\":-1}"),
         "latency_us: expected a number >= 0"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":3}"),
         "latency_us: expected"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":3,\"latency_us\":1,"
                           "\"node_gb_per_s\":[1]}"),
         "node_gb_per_s: expected a number, or a list of 2"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":3,\"latency_us\":1,"
                           "\"node_gb_per_s\":1e-10}"),
         "node_gb_per_s: expected a number >= 1e-09 and <= 1e+09, found 1e-10"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":3,\"latency_us\":1},"
                           "\"exceptions\":[{\"from\":\"a\",\"to\":\"b\","
                           "\"bandwidth_gb_per_s\":1e-10}]"),
         "bandwidth_gb_per_s: expected a number >= 1e-09 and <= 1e+09, found 1e-10"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":3,\"latency_us\":1,"
                           "\"node_pair_gb_per_s\":[1,2]}"),
         "node_pair_gb_per_s[0]: expected an array of 2"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":3,\"latency_us\":1,"
                           "\"node_pair_gb_per_s\":[[null,0],[1,null]]}"),
         "node_pair_gb_per_s[0][1]: expected a number > 0 or null, found 0"},
        {DOC (NODES, "\"intra\":[{\"bandwidth_gb_per_s\":10,\"latency_us\":5}]," INTER),
         "intra: expected one object, or a list of 2"},
        {DOC ("\"nodes\":[{\"name\":\"a\",\"gpus\":2,\"gpu_type\":\"t4\",\"speed\":[1]}]",
              INTRA),
         "speed: expected a list of 2 numbers"},
        {DOC ("\"nodes\":[{\"name\":\"a\",\"gpus\":2,\"gpu_type\":\"t4\",\"speed\":[1,0]}"
              "]",
              INTRA),
         "speed[1]: expected a number > 0"},
        {DOC ("\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":\"t4\",\"state\":"
              "\"down\"}]",
              ""),
         "state: expected \"ok\" or \"drained\", found \"down\""},
        {DOC (NODES ",\"gpu_types\":{\"my\":{\"memory_gb\":10}}", INTRA "," INTER),
         "gpu_types.my.memory_gb_per_s: expected a number > 0"},
        {DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":{\"npy\":\"none.npy\"},"
                           "\"latency_us\":1}"),
         "none.npy: No such file"}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_not_equal (cluster_refused (bad[i].doc, bad[i].says), ST_OK);
}

/* A matrix in a .npy file beside the cluster file, and its way back into JSON. */
TEST (npy_matrix)
{
    static const char doc_text[] =
        DOC (NODES, INTRA ",\"inter\":{\"bandwidth_gb_per_s\":{\"npy\":\"m.npy\"},"
                          "\"latency_us\":1}");
    const double v[] = {NAN, 3, 2, NAN};
    struct topology_cluster *c;
    json_t *doc, *rows;
    FILE *f;

    f = fopen (in_folder ("m.npy"), "wb");
    fprintf (f, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, 0, 118, 0,
             "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }");
    fwrite (v, 8, 4, f);
    fclose (f);
    write_in_folder ("c.json", doc_text, strlen (doc_text));
    c = cluster_of (in_folder ("c.json"));
    CLOSE (topology_link (c, 0, 2).bytes_per_s, 3e9, 1e-12);
    doc = topology_cluster_to_json (c);
    rows = json_object_get (json_object_get (json_object_get (doc, "links"), "inter"),
                            "bandwidth_gb_per_s");
    CLOSE (json_number_value (json_array_get (json_array_get (rows, 1), 0)), 2.0, 1e-12);
    assert_true (json_is_null (json_array_get (json_array_get (rows, 0), 0)));
    json_decref (doc);
    topology_cluster_destroy (c);
}

TEST (unknown_keys_warn)
{
    json_t *doc = json_loads (DOC (NODES ",\"colour\":1", INTRA "," INTER), 0, NULL);
    struct topology_cluster *c;
    struct notes notes = {0};
    struct error err;

    ok (topology_cluster_from_json (doc, "c.json", NULL, &c, &notes, &err), &err);
    assert_int_equal (notes.n, 1);
    assert_string_equal (notes.line[0], "c.json: colour: unknown key, ignored");
    notes_free (&notes);
    topology_cluster_destroy (c);
    json_decref (doc);
}

/* A type by another spelling is taken, with a word for all its nodes. */
TEST (types_by_short_names)
{
    json_t *doc =
        json_loads (DOC ("\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":\"h100\"},"
                         "{\"name\":\"b\",\"gpus\":1,\"gpu_type\":\"h100\"}]",
                         INTER),
                    0, NULL);
    struct topology_cluster *c;
    struct notes notes = {0};
    struct error err;

    ok (topology_cluster_from_json (doc, "c.json", NULL, &c, &notes, &err), &err);
    for (int i = 0; i < 2; i++)
        assert_string_equal (c->node[i].type->name, "h100-sxm5-80g");
    assert_int_equal (notes.n, 1);
    assert_non_null (strstr (notes.line[0], "h100: taken as h100-sxm5-80g"));
    notes_free (&notes);
    topology_cluster_destroy (c);
    json_decref (doc);
}
