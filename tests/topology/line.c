/* A cluster on one line, and Slurm host lists. */
#include "tests/lib/fixture.h"

static void plain (void **state)
{
    struct topology_cluster *c = cluster_of ("2x8 h100-sxm5-80g intra:370 inter:48");
    struct topology_link l;
    (void) state;

    assert_int_equal (c->n_nodes, 2);
    assert_int_equal (c->n_gpus, 16);
    assert_string_equal (c->node[1].name, "n1");
    l = topology_link (c, 0, 1);
    CLOSE (l.bytes_per_s, 370e9, 1e-12);
    CLOSE (l.latency_s, 8e-6, 1e-12);
    l = topology_link (c, 0, 8);
    CLOSE (l.bytes_per_s, 48e9, 1e-12);
    CLOSE (l.latency_s, 12e-6, 1e-12);
    assert_true (c->node[0].node_bytes_per_s == 0);
    topology_cluster_destroy (c);
}

static void mixed (void **state)
{
    struct topology_cluster *c =
        cluster_of ("2x8 h100-sxm5-80g intra:370 inter:48 node:300 + 1x4 a100-sxm4-40g "
                    "intra:200 inter:20 "
                    "inter-us:30");
    (void) state;

    assert_int_equal (c->n_gpus, 20);
    CLOSE (topology_link (c, 0, 8).bytes_per_s, 48e9, 1e-12);
    CLOSE (topology_link (c, 0, 16).bytes_per_s, 20e9, 1e-12); /* the lower holds */
    CLOSE (topology_link (c, 16, 0).bytes_per_s, 20e9, 1e-12);
    CLOSE (topology_link (c, 16, 0).latency_s, 30e-6, 1e-12);
    CLOSE (topology_link (c, 17, 18).bytes_per_s, 200e9, 1e-12);
    CLOSE (c->node[1].node_bytes_per_s, 300e9, 1e-12);
    assert_true (c->node[2].node_bytes_per_s == 0);
    assert_string_equal (c->node[2].type->name, "a100-sxm4-40g");
    topology_cluster_destroy (c);
}

static void bad_lines (void **state)
{
    static const char *const bad[] = {"2x8 ",
                                      "2x8 h100-sxm5-80g", /* no intra */
                                      "2x1 t4",            /* no inter */
                                      "0x8 t4 intra:1",
                                      "2x0 t4 inter:1",
                                      "2x8 nothing intra:1 inter:1",
                                      "2x8 t4 intra:-1 inter:1",
                                      "2x8 t4 intra:1 inter:nan",
                                      "2x8 t4 intra:1 inter:1e999",
                                      "2x8 t4 intra:1 outer:1",
                                      "2x8 t4 intra inter:1",
                                      "2x8 t4 intra:1 inter:1 + ",
                                      "99999999999x8 t4 intra:1 inter:1",
                                      "-1x8 t4 intra:1",
                                      "2x8 t4 intra:1 inter:1 inter:2"};
    (void) state;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct topology_cluster *c = NULL;
        struct error err = {""};

        if (topology_cluster_read (bad[i], &c, NULL, &err) != ST_INVALID)
            fail_msg ("\"%s\" was accepted", bad[i]);
        assert_true (err.text[0] != '\0' && c == NULL);
    }
}

static void host_lists (void **state)
{
    static const struct {
        const char *list, *names;
    } good[] = {{"n1", "n1 "},
                {"n[1-3]", "n1 n2 n3 "},
                {"n[001-003,020],m7", "n001 n002 n003 n020 m7 "},
                {"n[08-11]", "n08 n09 n10 n11 "},
                {"r[1-2]n[1-2]-ib", "r1n1-ib r1n2-ib r2n1-ib r2n2-ib "},
                {"a,b,a", "a b a "}};
    static const char *const bad[] = {
        "",      ",",   "a,", "n[1-3",         "n[3-1]",  "n[]",  "n[a-b]",      "n[1-]",
        "n[-1]", "n 1", "-n", "n[1-99999999]", "n[1,,2]", "n]1[", "n[1-2000000]"};
    (void) state;

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct text t = {0};
        struct error err = {""};
        char **names;
        int n;

        ok (topology_hostlist_expand (good[i].list, &names, &n, &err), &err);
        for (int k = 0; k < n; k++)
            text_add (&t, "%s ", names[k]);
        assert_string_equal (text_str (&t), good[i].names);
        assert_null (names[n]);
        topology_hostlist_free (names);
        text_free (&t);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {""};
        char **names;
        int n;

        if (topology_hostlist_expand (bad[i], &names, &n, &err) != ST_USAGE)
            fail_msg ("\"%s\" was accepted", bad[i]);
        assert_true (err.text[0] != '\0');
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (plain), cmocka_unit_test (mixed),
                                       cmocka_unit_test (bad_lines),
                                       cmocka_unit_test (host_lists)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
