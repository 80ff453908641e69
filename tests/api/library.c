/* liblinkwise by its one header: a plan from a cluster on one line, its parts told, priced,
 * checked, bound, replanned and emitted. */
#include "tests/lib/library.h"

#define GOOD(call) good (call, err)

TEST (a_cluster_is_told)
{
    struct linkwise_node node = {.size = sizeof node};
    struct linkwise_link link = {.size = sizeof link};
    struct linkwise_cluster *again = NULL;
    char *json = NULL;

    assert_int_equal (linkwise_cluster_nodes (w.cluster), 4);
    assert_int_equal (linkwise_cluster_gpus (w.cluster), 32);
    GOOD (linkwise_cluster_node (w.cluster, 2, &node, err));
    assert_string_equal (node.name, "n2");
    assert_string_equal (node.gpu_type, "a100-sxm4-80g");
    assert_int_equal (node.gpus, 8);
    assert_int_equal (node.first_gpu, 16);
    GOOD (linkwise_cluster_link (w.cluster, 0, 1, &link, err));
    assert_true (link.measured && fabs (link.bytes_per_s - 230e9) < 1);
    GOOD (linkwise_cluster_link (w.cluster, 0, 31, &link, err));
    assert_true (fabs (link.bytes_per_s - 20e9) < 1);
    GOOD (linkwise_cluster_to_json (w.cluster, &json, err));
    GOOD (linkwise_cluster_parse (json, NULL, &again, NULL, err));
    assert_int_equal (linkwise_cluster_gpus (again), 32);
    linkwise_free (json);
    linkwise_cluster_destroy (again);
}

/* Matrices say what single links do. */
TEST (links_are_a_matrix)
{
    struct linkwise_cluster *c = NULL;
    int gpu[] = {8, 0, 1};
    double rate[9], latency[9];

    GOOD (linkwise_cluster_links (w.cluster, gpu, 3, rate, latency, err));
    for (int k = 0; k < 9; k++) {
        struct linkwise_link l = {.size = sizeof l};

        assert_int_equal (isnan (rate[k]) && isnan (latency[k]), k / 3 == k % 3);
        if (k / 3 == k % 3)
            continue;
        GOOD (linkwise_cluster_link (w.cluster, gpu[k / 3], gpu[k % 3], &l, err));
        assert_true (rate[k] == l.bytes_per_s && latency[k] == l.latency_s);
    }
    GOOD (linkwise_cluster_links (w.cluster, gpu, 3, NULL, NULL, err));
    GOOD (linkwise_cluster_parse (
        "{\"version\": 1, \"name\": \"c\", \"nodes\": ["
        "{\"name\": \"a\", \"gpus\": 1, \"gpu_type\": \"t4\"},"
        "{\"name\": \"b\", \"gpus\": 1, \"gpu_type\": \"t4\"}], \"links\": "
        "{\"inter\": {\"bandwidth_gb_per_s\": [[null, 3], [null, null]], "
        "\"latency_us\": 5}}}",
        NULL, &c, NULL, err));
    GOOD (linkwise_cluster_links (c, gpu + 1, 2, rate, NULL, err));
    assert_true (rate[1] == 3e9 && isnan (rate[2])); /* 0 -> 1, and back: not measured */
    linkwise_cluster_destroy (c);
}

/* A model from its text is the preset of the same fields. */
TEST (a_model_is_parsed)
{
    struct linkwise_model *m = NULL, *unnamed = NULL;
    const char *json =
        "{\"model_type\": \"llama\", \"hidden_size\": 5120, \"num_hidden_layers\": 40,"
        "\"num_attention_heads\": 40, \"intermediate_size\": 13824, \"vocab_size\": "
        "32000}";

    GOOD (linkwise_model_parse (json, "mine", &m, NULL, err));
    GOOD (linkwise_model_parse (json, NULL, &unnamed, NULL, err));
    assert_string_equal (linkwise_model_name (m), "mine");
    assert_string_equal (linkwise_model_name (unnamed), "model");
    assert_true (linkwise_model_parameters (m) == linkwise_model_parameters (w.model));
    linkwise_model_destroy (m);
    linkwise_model_destroy (unnamed);
}

TEST (clusters_are_compared)
{
    struct linkwise_cluster *slow = NULL;
    struct linkwise_difference d = {.size = sizeof d};

    GOOD (
        linkwise_cluster_read ("4x8 a100-sxm4-80g intra:230 inter:10", &slow, NULL, err));
    GOOD (linkwise_cluster_compare (w.cluster, slow, 0.1, &d, err));
    assert_true (d.same_cluster && d.slower > 0 && d.faster == 0);
    GOOD (linkwise_cluster_compare (w.cluster, w.cluster, 0.1, &d, err));
    assert_true (d.slower == 0 && d.compared > 0 && d.median_ratio == 1.0);
    linkwise_cluster_destroy (slow);
}

TEST (names_are_listed)
{
    struct linkwise_profile *p = NULL;
    int types = 0, presets = 0, launchers = 0;

    while (linkwise_gpu_type_at (types))
        types++;
    while (linkwise_model_preset_at (presets))
        presets++;
    while (linkwise_launcher_at (launchers))
        launchers++;
    assert_true (types > 10 && presets > 10 && launchers > 5);
    assert_null (linkwise_gpu_type_at (-1));
    assert_null (linkwise_model_preset_at (-1));
    assert_null (linkwise_launcher_at (-1));
    assert_true (linkwise_version ()[0] != '\0');
    assert_string_equal (linkwise_model_name (w.model), "llama-2-13b");
    assert_true (fabs (linkwise_model_parameters (w.model) - 13.0e9) < 0.1e9);
    GOOD (linkwise_profile_read ("megatron-core", &p, NULL, err));
    assert_string_equal (linkwise_profile_name (p), "megatron-core");
    linkwise_profile_destroy (p);
}

TEST (a_plan_is_told)
{
    struct linkwise_config c = linkwise_config ();
    struct linkwise_rank r = {.size = sizeof r};
    struct linkwise_estimate e = linkwise_estimate (), same = e;
    struct linkwise_memory m = {.size = sizeof m};
    int layers = 0;
    double sum;

    GOOD (linkwise_plan_config (w.plan, &c, err));
    assert_int_equal (c.tp, 4);
    assert_int_equal (c.pp, 2);
    assert_int_equal (linkwise_plan_ranks (w.plan), c.tp * c.pp * c.dp * c.cp);
    for (int i = 0; i < c.pp; i++)
        layers += c.layers[i];
    assert_int_equal (layers, 40);
    GOOD (linkwise_plan_rank (w.plan, 5, &r, err));
    assert_int_equal (r.tp, 5 % c.tp);
    assert_true (r.node[0] == 'n' && r.gpu >= 0 && r.gpu < 8);
    GOOD (linkwise_plan_estimate (w.plan, NULL, NULL, &e, err));
    assert_true (e.lower_bound_s > 0 && e.lower_bound_s <= e.step_s);
    sum = e.compute_s + e.tp_s + e.cp_s + e.ep_s + e.bubble_s + e.pp_s + e.dp_s +
          e.optimizer_s;
    assert_true (fabs (sum - e.step_s) < 1e-9 * e.step_s);
    GOOD (linkwise_plan_estimate (w.plan, w.cluster, NULL, &same, err));
    assert_true (same.step_s == e.step_s && isnan (same.lower_bound_s));
    GOOD (linkwise_plan_estimate (w.plan, NULL, "pipette", &same, err));
    assert_true (same.step_s != e.step_s);
    GOOD (linkwise_plan_memory (w.plan, &m, err));
    assert_true (m.peak_bytes > 0 && m.peak_bytes <= m.limit_bytes &&
                 m.limit_bytes < m.gpu_bytes);
}

/* Off the GPU types that it was fitted on the default profile gives way, named or not; a file does
 * not. */
TEST (the_default_gives_way)
{
    static const char *const name[] = {NULL, "megatron-core",
                                       "workload/profiles/megatron-core.json"};
    struct linkwise_config c = linkwise_config ();
    struct linkwise_cluster *h100 = NULL;
    double step_s[3];

    c.tp = 8;
    c.pp = 2;
    GOOD (
        linkwise_cluster_read ("2x8 h100-sxm5-80g intra:370 inter:48", &h100, NULL, err));
    for (int i = 0; i < 3; i++) {
        struct linkwise_profile *p = NULL;
        struct linkwise_estimate e = linkwise_estimate ();

        if (name[i])
            GOOD (linkwise_profile_read (name[i], &p, NULL, err));
        GOOD (linkwise_time (h100, w.model, p, &w.job, &c, NULL, &e, NULL, err));
        step_s[i] = e.step_s;
        linkwise_profile_destroy (p);
    }
    assert_true (step_s[1] == step_s[0]);
    assert_true (step_s[2] != step_s[0]);
    linkwise_cluster_destroy (h100);
}

TEST (one_configuration_is_estimated)
{
    struct linkwise_config c = linkwise_config ();
    struct linkwise_estimate e = linkwise_estimate (), slower = e;
    struct linkwise_memory all = {.size = sizeof all}, last = {.size = sizeof last};
    struct linkwise_notes *notes = linkwise_notes_create ();
    int uneven[] = {10, 30};

    c.tp = 8;
    c.pp = 2;
    GOOD (linkwise_time (w.cluster, w.model, NULL, &w.job, &c, NULL, &e, NULL, err));
    c.layers = uneven;
    GOOD (linkwise_time (w.cluster, w.model, NULL, &w.job, &c, NULL, &slower, NULL, err));
    assert_true (slower.step_s > e.step_s);
    GOOD (linkwise_memory (w.model, NULL, &w.job, &c, "a100-sxm4-80g", -1, &all, NULL,
                           err));
    GOOD (linkwise_memory (w.model, NULL, &w.job, &c, "v100-sxm2-32g", 1, &last, notes,
                           err));
    assert_int_equal (all.stage, 1); /* which has thirty layers */
    assert_int_equal (last.stage, 1);
    assert_true (all.peak_bytes > 0 && last.peak_bytes > 0);
    assert_int_equal (linkwise_notes_count (notes), 1); /* no bf16 there */
    assert_non_null (strstr (linkwise_notes_at (notes, 0), "bf16"));
    assert_null (linkwise_notes_at (notes, 1));
    linkwise_notes_destroy (notes);
}

TEST (a_plan_goes_through_a_file)
{
    char folder[] = "/tmp/linkwise-api.XXXXXX", path[64], *text = NULL, *again = NULL;
    struct linkwise_plan *read = NULL, *parsed = NULL;
    struct linkwise_check *check = NULL;

    assert_non_null (mkdtemp (folder));
    snprintf (path, sizeof path, "%s/plan.json", folder);
    GOOD (linkwise_plan_write (w.plan, path, err));
    GOOD (linkwise_plan_read (path, NULL, &read, NULL, err));
    GOOD (linkwise_plan_to_json (w.plan, &text, err));
    GOOD (linkwise_plan_to_json (read, &again, err));
    assert_string_equal (text, again);
    GOOD (linkwise_plan_parse (text, NULL, &parsed, NULL, err));
    linkwise_free (again);
    GOOD (linkwise_plan_to_json (parsed, &again, err));
    assert_string_equal (text, again);
    GOOD (linkwise_plan_check (read, NULL, &check, err));
    assert_true (linkwise_check_count (check) > 5);
    assert_int_equal (linkwise_check_failed (check), 0);
    for (int i = 0; i < linkwise_check_count (check); i++) {
        struct linkwise_finding f = {.size = sizeof f};

        GOOD (linkwise_check_at (check, i, &f, err));
        assert_true (f.what[0] != '\0' && f.verdict != LINKWISE_CHECK_FAILED);
    }
    GOOD (linkwise_plan_emit (read, "openmpi,env", folder, NULL, err));
    snprintf (path, sizeof path, "%s/openmpi/rankfile", folder);
    assert_int_equal (access (path, R_OK), 0);
    linkwise_check_destroy (check);
    linkwise_plan_destroy (read);
    linkwise_plan_destroy (parsed);
    linkwise_free (text);
    linkwise_free (again);
    snprintf (path, sizeof path, "rm -r %s", folder);
    assert_int_equal (system (path), 0);
}

static bool stop_at_once (void *context, long done, long total, double best_step_s,
                          double lower_bound_s)
{
    int *calls = context;

    (void) done;
    (void) total;
    (void) best_step_s;
    (void) lower_bound_s;
    ++*calls;
    return true;
}

TEST (nodes_and_settings_hold)
{
    struct linkwise_settings s = linkwise_settings ();
    struct linkwise_plan *p = NULL, *bound = NULL;
    struct linkwise_rank r = {.size = sizeof r};
    int calls = 0;

    s.exclude = "n1";
    s.granularity = "node";
    s.progress = stop_at_once;
    s.context = &calls;
    GOOD (linkwise_search (w.cluster, w.model, NULL, &w.job, NULL, &s, &p, NULL, err));
    assert_true (calls > 0);
    for (int k = 0; k < linkwise_plan_ranks (p); k++) {
        GOOD (linkwise_plan_rank (p, k, &r, err));
        assert_string_not_equal (r.node, "n1");
    }
    linkwise_plan_destroy (p);
    GOOD (linkwise_bind (w.plan, NULL, "n[0-3]", &bound, NULL, err));
    assert_int_equal (linkwise_plan_ranks (bound), linkwise_plan_ranks (w.plan));
    linkwise_plan_destroy (bound);
}

/* A chance of running out instead of a part of the memory, in the plan file too. */
TEST (a_risk_limits_memory)
{
    struct linkwise_settings s = linkwise_settings ();
    struct linkwise_memory m = {.size = sizeof m};
    struct linkwise_plan *p = NULL, *again = NULL;

    s.oom_risk = 0.01;
    GOOD (linkwise_search (w.cluster, w.model, NULL, &w.job, NULL, &s, &p, NULL, err));
    GOOD (linkwise_plan_memory (p, &m, err));
    assert_true (m.oom_probability <= 0.01);
    GOOD (linkwise_replan (w.plan, NULL, &s, NULL, &again, NULL, err));
    linkwise_plan_destroy (p);
    linkwise_plan_destroy (again);
}

TEST (a_running_job_is_replanned)
{
    struct linkwise_replanning how = linkwise_replanning ();
    struct linkwise_cluster *now = NULL;
    struct linkwise_plan *same = NULL, *moved = NULL;

    GOOD (linkwise_replan (w.plan, NULL, NULL, &how, &same, NULL, err));
    assert_int_equal (how.ranks_moved, 0);
    GOOD (linkwise_cluster_read (CLUSTER " + 1x8 a100-sxm4-80g intra:230 inter:20", &now,
                                 NULL, err));
    how.move_cost_s = 1e9;
    GOOD (linkwise_replan (w.plan, now, NULL, &how, &moved, NULL, err));
    assert_int_equal (how.ranks_moved, 0);
    assert_true (how.stay_step_s > 0);
    linkwise_plan_destroy (same);
    linkwise_plan_destroy (moved);
    linkwise_cluster_destroy (now);
}
