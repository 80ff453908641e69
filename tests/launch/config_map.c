/* A ConfigMap holds 1 MiB, the limit of Kubernetes, and what is a byte more is refused. */
#include "launch/launch_private.h"
#include "tests/lib/fixture.h"

/* What the manifests take beside a map of so many bytes, in the count that a refusal says. */
static enum status emitted (const struct launch_input *in, size_t map, size_t *needs)
{
    struct launch_files f = {.generation = "0123456789abcdef"};
    struct text readme = {0}, *t = launch_file (&f, "map.txt", 0644);
    struct error err = {""};
    enum status st;
    const char *said;

    for (size_t i = 0; i < map; i++)
        text_add_mem (t, "x", 1);
    st = launch_kubernetes.write (in, &f, &readme, &err);
    said = strstr (err.text, "ConfigMap of ");
    if (said)
        *needs = strtoul (said + strlen ("ConfigMap of "), NULL, 10);
    if (st == ST_OK) {
        json_t *doc = NULL, *value;
        const char *key;

        *needs = 0;
        for (int i = 0; i < f.n; i++)
            if (strcmp (f.file[i].path, "kubernetes/configmap.json") == 0)
                doc = json_loads (text_str (&f.file[i].text), 0, NULL);
        assert_non_null (doc);
        json_object_foreach (json_object_get (doc, "data"), key, value) *needs +=
            json_string_length (value);
        json_decref (doc);
    }
    for (int i = 0; i < f.n; i++)
        text_free (&f.file[i].text);
    text_free (&readme);
    return st;
}

static void holds_a_mebibyte (void **state)
{
    struct topology_cluster *c = cluster_of ("1x2 h100-sxm5-80g intra:400");
    struct workload_plan plan = {.n_ranks = 2};
    const int gpu[] = {0, 1}, on_node[] = {2};
    struct launch_input in = {.plan = &plan,
                              .cluster = c,
                              .gpu = gpu,
                              .ranks_on_node = on_node,
                              .nodes = 1,
                              .most_ranks = 2,
                              .linkwise = "linkwise"};
    size_t rest, needs = 0, all = 1 << 20;
    (void) state;

    assert_int_equal (emitted (&in, 0, &rest), ST_OK);
    assert_true (rest > 0 && rest < all);
    assert_int_equal (emitted (&in, all - rest, &needs), ST_OK);
    assert_int_equal (needs, all);
    assert_int_equal (emitted (&in, all - rest + 1, &needs), ST_NOFIT);
    assert_int_equal (needs, all + 1);
    topology_cluster_destroy (c);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (holds_a_mebibyte)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
