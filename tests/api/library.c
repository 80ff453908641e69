/* liblinkwise by its one header: a plan from a cluster on one line, its parts told, priced,
 * checked, bound, replanned and emitted; every function says what is wrong with what it is
 * given, and touches nothing then. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "linkwise.h"

#define CLUSTER "4x8 a100-sxm4-80g intra:230 inter:20"

static void good (enum linkwise_status st, const struct linkwise_error *err)
{
    if (st != LINKWISE_OK)
        fail_msg ("%s", err->text);
}

/* A refusal: the status, and a text that holds a word. */
static void refused (enum linkwise_status st, enum linkwise_status expected,
                     struct linkwise_error *err, const char *word)
{
    if (st != expected || !strstr (err->text, word))
        fail_msg ("status %d, expected %d; \"%s\" expected in: %s", (int) st,
                  (int) expected, word, err->text);
    err->text[0] = '\0';
}

/* What most tests need. */
struct world {
    struct linkwise_cluster *cluster;
    struct linkwise_model *model;
    struct linkwise_plan *plan;
    struct linkwise_job job;
    struct linkwise_error err;
};

static int set_up (void **state)
{
    static struct world w;
    struct linkwise_config c = linkwise_config ();

    w.job = linkwise_job (4096, 128);
    good (linkwise_cluster_read (CLUSTER, &w.cluster, NULL, &w.err), &w.err);
    good (linkwise_model_read ("llama-2-13b", &w.model, NULL, &w.err), &w.err);
    c.tp = 4;
    c.pp = 2;
    good (linkwise_search (w.cluster, w.model, NULL, &w.job, &c, NULL, &w.plan, NULL,
                           &w.err),
          &w.err);
    *state = &w;
    return 0;
}

static int tear_down (void **state)
{
    struct world *w = *state;

    /* In the order that is not that of their creation. */
    linkwise_cluster_destroy (w->cluster);
    linkwise_model_destroy (w->model);
    linkwise_plan_destroy (w->plan);
    return 0;
}

/* ---- what it does ---- */

static void a_cluster_is_told (void **state)
{
    struct world *w = *state;
    struct linkwise_node node = {.size = sizeof node};
    struct linkwise_link link = {.size = sizeof link};
    struct linkwise_cluster *again = NULL;
    char *json = NULL;

    assert_int_equal (linkwise_cluster_nodes (w->cluster), 4);
    assert_int_equal (linkwise_cluster_gpus (w->cluster), 32);
    good (linkwise_cluster_node (w->cluster, 2, &node, &w->err), &w->err);
    assert_string_equal (node.name, "n2");
    assert_string_equal (node.gpu_type, "a100-sxm4-80g");
    assert_int_equal (node.gpus, 8);
    assert_int_equal (node.first_gpu, 16);
    good (linkwise_cluster_link (w->cluster, 0, 1, &link, &w->err), &w->err);
    assert_true (link.measured && fabs (link.bytes_per_s - 230e9) < 1);
    good (linkwise_cluster_link (w->cluster, 0, 31, &link, &w->err), &w->err);
    assert_true (fabs (link.bytes_per_s - 20e9) < 1);
    good (linkwise_cluster_to_json (w->cluster, &json, &w->err), &w->err);
    good (linkwise_cluster_parse (json, NULL, &again, NULL, &w->err), &w->err);
    assert_int_equal (linkwise_cluster_gpus (again), 32);
    linkwise_free (json);
    linkwise_cluster_destroy (again);
}

static void clusters_are_compared (void **state)
{
    struct world *w = *state;
    struct linkwise_cluster *slow = NULL;
    struct linkwise_difference d = {.size = sizeof d};

    good (linkwise_cluster_read ("4x8 a100-sxm4-80g intra:230 inter:10", &slow, NULL,
                                 &w->err),
          &w->err);
    good (linkwise_cluster_compare (w->cluster, slow, 0.1, &d, &w->err), &w->err);
    assert_true (d.same_cluster && d.slower > 0 && d.faster == 0);
    good (linkwise_cluster_compare (w->cluster, w->cluster, 0.1, &d, &w->err), &w->err);
    assert_true (d.slower == 0 && d.compared > 0 && d.median_ratio == 1.0);
    linkwise_cluster_destroy (slow);
}

static void names_are_listed (void **state)
{
    struct world *w = *state;
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
    assert_string_equal (linkwise_model_name (w->model), "llama-2-13b");
    assert_true (fabs (linkwise_model_parameters (w->model) - 13.0e9) < 0.1e9);
    good (linkwise_profile_read ("megatron-core", &p, NULL, &w->err), &w->err);
    assert_string_equal (linkwise_profile_name (p), "megatron-core");
    linkwise_profile_destroy (p);
}

static void a_plan_is_told (void **state)
{
    struct world *w = *state;
    struct linkwise_config c = linkwise_config ();
    struct linkwise_rank r = {.size = sizeof r};
    struct linkwise_estimate e = linkwise_estimate (), same = e;
    struct linkwise_memory m = {.size = sizeof m};
    int layers = 0;
    double sum;

    good (linkwise_plan_config (w->plan, &c, &w->err), &w->err);
    assert_int_equal (c.tp, 4);
    assert_int_equal (c.pp, 2);
    assert_int_equal (linkwise_plan_ranks (w->plan), c.tp * c.pp * c.dp * c.cp);
    for (int i = 0; i < c.pp; i++)
        layers += c.layers[i];
    assert_int_equal (layers, 40);
    good (linkwise_plan_rank (w->plan, 5, &r, &w->err), &w->err);
    assert_int_equal (r.tp, 5 % c.tp);
    assert_true (r.node[0] == 'n' && r.gpu >= 0 && r.gpu < 8);
    good (linkwise_plan_estimate (w->plan, NULL, NULL, &e, &w->err), &w->err);
    assert_true (e.lower_bound_s > 0 && e.lower_bound_s <= e.step_s);
    sum = e.compute_s + e.tp_s + e.cp_s + e.ep_s + e.bubble_s + e.pp_s + e.dp_s +
          e.optimizer_s;
    assert_true (fabs (sum - e.step_s) < 1e-9 * e.step_s);
    good (linkwise_plan_estimate (w->plan, w->cluster, NULL, &same, &w->err), &w->err);
    assert_true (same.step_s == e.step_s && isnan (same.lower_bound_s));
    good (linkwise_plan_estimate (w->plan, NULL, "pipette", &same, &w->err), &w->err);
    assert_true (same.step_s != e.step_s);
    good (linkwise_plan_memory (w->plan, &m, &w->err), &w->err);
    assert_true (m.peak_bytes > 0 && m.peak_bytes <= m.limit_bytes &&
                 m.limit_bytes < m.gpu_bytes);
}

static void one_configuration_is_estimated (void **state)
{
    struct world *w = *state;
    struct linkwise_config c = linkwise_config ();
    struct linkwise_estimate e = linkwise_estimate (), slower = e;
    struct linkwise_memory all = {.size = sizeof all}, last = {.size = sizeof last};
    struct linkwise_notes *notes = linkwise_notes_create ();
    int uneven[] = {10, 30};

    c.tp = 8;
    c.pp = 2;
    good (
        linkwise_time (w->cluster, w->model, NULL, &w->job, &c, NULL, &e, NULL, &w->err),
        &w->err);
    c.layers = uneven;
    good (linkwise_time (w->cluster, w->model, NULL, &w->job, &c, NULL, &slower, NULL,
                         &w->err),
          &w->err);
    assert_true (slower.step_s > e.step_s);
    good (linkwise_memory (w->model, NULL, &w->job, &c, "a100-sxm4-80g", -1, &all, NULL,
                           &w->err),
          &w->err);
    good (linkwise_memory (w->model, NULL, &w->job, &c, "v100-sxm2-32g", 1, &last, notes,
                           &w->err),
          &w->err);
    assert_int_equal (all.stage, 1); /* which has thirty layers */
    assert_int_equal (last.stage, 1);
    assert_true (all.peak_bytes > 0 && last.peak_bytes > 0);
    assert_int_equal (linkwise_notes_count (notes), 1); /* no bf16 there */
    assert_non_null (strstr (linkwise_notes_at (notes, 0), "bf16"));
    assert_null (linkwise_notes_at (notes, 1));
    linkwise_notes_destroy (notes);
}

static void a_plan_goes_through_a_file (void **state)
{
    struct world *w = *state;
    char folder[] = "/tmp/linkwise-api.XXXXXX", path[64], *text = NULL, *again = NULL;
    struct linkwise_plan *read = NULL;
    struct linkwise_check *check = NULL;

    assert_non_null (mkdtemp (folder));
    snprintf (path, sizeof path, "%s/plan.json", folder);
    good (linkwise_plan_write (w->plan, path, &w->err), &w->err);
    good (linkwise_plan_read (path, NULL, &read, NULL, &w->err), &w->err);
    good (linkwise_plan_to_json (w->plan, &text, &w->err), &w->err);
    good (linkwise_plan_to_json (read, &again, &w->err), &w->err);
    assert_string_equal (text, again);
    good (linkwise_plan_check (read, NULL, &check, &w->err), &w->err);
    assert_true (linkwise_check_count (check) > 5);
    assert_int_equal (linkwise_check_failed (check), 0);
    for (int i = 0; i < linkwise_check_count (check); i++) {
        struct linkwise_finding f = {.size = sizeof f};

        good (linkwise_check_at (check, i, &f, &w->err), &w->err);
        assert_true (f.what[0] != '\0' && f.verdict != LINKWISE_CHECK_FAILED);
    }
    good (linkwise_plan_emit (read, "openmpi,env", folder, NULL, &w->err), &w->err);
    snprintf (path, sizeof path, "%s/openmpi/rankfile", folder);
    assert_int_equal (access (path, R_OK), 0);
    linkwise_check_destroy (check);
    linkwise_plan_destroy (read);
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

static void nodes_and_settings_hold (void **state)
{
    struct world *w = *state;
    struct linkwise_settings s = linkwise_settings ();
    struct linkwise_plan *p = NULL, *bound = NULL;
    struct linkwise_rank r = {.size = sizeof r};
    int calls = 0;

    s.exclude = "n1";
    s.granularity = "node";
    s.progress = stop_at_once;
    s.context = &calls;
    good (linkwise_search (w->cluster, w->model, NULL, &w->job, NULL, &s, &p, NULL,
                           &w->err),
          &w->err);
    assert_true (calls > 0);
    for (int k = 0; k < linkwise_plan_ranks (p); k++) {
        good (linkwise_plan_rank (p, k, &r, &w->err), &w->err);
        assert_string_not_equal (r.node, "n1");
    }
    linkwise_plan_destroy (p);
    good (linkwise_bind (w->plan, NULL, "n[0-3]", &bound, NULL, &w->err), &w->err);
    assert_int_equal (linkwise_plan_ranks (bound), linkwise_plan_ranks (w->plan));
    linkwise_plan_destroy (bound);
}

/* A chance of running out instead of a part of the memory, in the plan file too. */
static void a_risk_limits_memory (void **state)
{
    struct world *w = *state;
    struct linkwise_settings s = linkwise_settings ();
    struct linkwise_memory m = {.size = sizeof m};
    struct linkwise_plan *p = NULL, *again = NULL;

    s.oom_risk = 0.01;
    good (linkwise_search (w->cluster, w->model, NULL, &w->job, NULL, &s, &p, NULL,
                           &w->err),
          &w->err);
    good (linkwise_plan_memory (p, &m, &w->err), &w->err);
    assert_true (m.oom_probability <= 0.01);
    good (linkwise_replan (w->plan, NULL, &s, NULL, &again, NULL, &w->err), &w->err);
    linkwise_plan_destroy (p);
    linkwise_plan_destroy (again);
}

static void a_running_job_is_replanned (void **state)
{
    struct world *w = *state;
    struct linkwise_replanning how = linkwise_replanning ();
    struct linkwise_cluster *now = NULL;
    struct linkwise_plan *same = NULL, *moved = NULL;

    good (linkwise_replan (w->plan, NULL, NULL, &how, &same, NULL, &w->err), &w->err);
    assert_int_equal (how.ranks_moved, 0);
    good (linkwise_cluster_read (CLUSTER " + 1x8 a100-sxm4-80g intra:230 inter:20", &now,
                                 NULL, &w->err),
          &w->err);
    how.move_cost_s = 1e9;
    good (linkwise_replan (w->plan, now, NULL, &how, &moved, NULL, &w->err), &w->err);
    assert_int_equal (how.ranks_moved, 0);
    assert_true (how.stay_step_s > 0);
    linkwise_plan_destroy (same);
    linkwise_plan_destroy (moved);
    linkwise_cluster_destroy (now);
}

/* ---- what it refuses ---- */

/* NULL is fine wherever something is destroyed or looked at. */
static void nothing_is_looked_at (void **state)
{
    (void) state;
    linkwise_cluster_destroy (NULL);
    linkwise_model_destroy (NULL);
    linkwise_profile_destroy (NULL);
    linkwise_plan_destroy (NULL);
    linkwise_check_destroy (NULL);
    linkwise_notes_destroy (NULL);
    linkwise_free (NULL);
    assert_int_equal (linkwise_notes_count (NULL), 0);
    assert_null (linkwise_notes_at (NULL, 0));
    assert_int_equal (linkwise_cluster_nodes (NULL), -1);
    assert_int_equal (linkwise_cluster_gpus (NULL), -1);
    assert_null (linkwise_model_name (NULL));
    assert_true (isnan (linkwise_model_parameters (NULL)));
    assert_null (linkwise_profile_name (NULL));
    assert_int_equal (linkwise_plan_ranks (NULL), -1);
    assert_int_equal (linkwise_check_count (NULL), -1);
    assert_int_equal (linkwise_check_failed (NULL), -1);
}

static void clusters_refuse (void **state)
{
    struct world *w = *state;
    struct linkwise_cluster *c = NULL;
    struct linkwise_node node = {.size = 1};
    struct linkwise_link link = {.size = sizeof link};
    struct linkwise_difference d = {.size = sizeof d};
    char *json = NULL;

    refused (linkwise_cluster_read (NULL, &c, NULL, &w->err), LINKWISE_USAGE, &w->err,
             "arg: expected an object, found NULL");
    refused (linkwise_cluster_read (CLUSTER, NULL, NULL, &w->err), LINKWISE_USAGE,
             &w->err, "out");
    refused (linkwise_cluster_read ("/nowhere.json", &c, NULL, &w->err), LINKWISE_IO,
             &w->err, "nowhere");
    refused (linkwise_cluster_parse (NULL, NULL, &c, NULL, &w->err), LINKWISE_USAGE,
             &w->err, "json");
    refused (linkwise_cluster_parse ("{", NULL, &c, NULL, &w->err), LINKWISE_INVALID,
             &w->err, "cluster");
    refused (linkwise_cluster_parse ("{}", NULL, &c, NULL, &w->err), LINKWISE_INVALID,
             &w->err, "version");
    assert_null (c);
    assert_int_equal (linkwise_cluster_read (NULL, NULL, NULL, NULL), LINKWISE_USAGE);
    refused (linkwise_cluster_node (w->cluster, 0, &node, &w->err), LINKWISE_USAGE,
             &w->err, "size");
    node.size = sizeof node;
    refused (linkwise_cluster_node (NULL, 0, &node, &w->err), LINKWISE_USAGE, &w->err,
             "NULL");
    refused (linkwise_cluster_node (w->cluster, 4, &node, &w->err), LINKWISE_USAGE,
             &w->err, "0 to 3, found 4");
    assert_null (node.name);
    refused (linkwise_cluster_link (w->cluster, 0, 32, &link, &w->err), LINKWISE_USAGE,
             &w->err, "0 to 31");
    refused (linkwise_cluster_link (w->cluster, 7, 7, &link, &w->err), LINKWISE_USAGE,
             &w->err, "two GPUs");
    refused (linkwise_cluster_to_json (NULL, &json, &w->err), LINKWISE_USAGE, &w->err,
             "NULL");
    refused (linkwise_cluster_to_json (w->cluster, NULL, &w->err), LINKWISE_USAGE,
             &w->err, "json");
    refused (linkwise_cluster_compare (w->cluster, NULL, 0.1, &d, &w->err),
             LINKWISE_USAGE, &w->err, "after");
    refused (linkwise_cluster_compare (w->cluster, w->cluster, NAN, &d, &w->err),
             LINKWISE_USAGE, &w->err, "share");
}

static void models_and_profiles_refuse (void **state)
{
    struct world *w = *state;
    struct linkwise_model *m = NULL;
    struct linkwise_profile *p = NULL;

    refused (linkwise_model_read (NULL, &m, NULL, &w->err), LINKWISE_USAGE, &w->err,
             "arg");
    refused (linkwise_model_read ("llama-2-7b", NULL, NULL, &w->err), LINKWISE_USAGE,
             &w->err, "out");
    assert_int_not_equal (linkwise_model_read ("no-such-model", &m, NULL, &w->err),
                          LINKWISE_OK);
    refused (linkwise_profile_read (NULL, &p, NULL, &w->err), LINKWISE_USAGE, &w->err,
             "arg");
    assert_int_not_equal (linkwise_profile_read ("no-such", &p, NULL, &w->err),
                          LINKWISE_OK);
    assert_true (m == NULL && p == NULL);
}

static void estimates_refuse (void **state)
{
    struct world *w = *state;
    struct linkwise_job job = w->job;
    struct linkwise_config c = linkwise_config ();
    struct linkwise_estimate e = linkwise_estimate ();
    struct linkwise_memory m = {.size = sizeof m};
    int layers[] = {1, 2};

#define TIME(CLUSTER_, MODEL, JOB, CONFIG, KIND, OUT) \
    linkwise_time (CLUSTER_, MODEL, NULL, JOB, CONFIG, KIND, OUT, NULL, &w->err)
#define MEMORY(JOB, CONFIG, GPU, STAGE, OUT) \
    linkwise_memory (w->model, NULL, JOB, CONFIG, GPU, STAGE, OUT, NULL, &w->err)
    refused (TIME (NULL, w->model, &job, NULL, NULL, &e), LINKWISE_USAGE, &w->err,
             "cluster");
    refused (TIME (w->cluster, NULL, &job, NULL, NULL, &e), LINKWISE_USAGE, &w->err,
             "model");
    refused (TIME (w->cluster, w->model, NULL, NULL, NULL, &e), LINKWISE_USAGE, &w->err,
             "job");
    refused (TIME (w->cluster, w->model, &job, NULL, NULL, NULL), LINKWISE_USAGE, &w->err,
             "out");
    refused (TIME (w->cluster, w->model, &job, NULL, "guess", &e), LINKWISE_USAGE,
             &w->err, "cost_model: unknown word \"guess\"");
    c.tp = 3;
    refused (TIME (w->cluster, w->model, &job, &c, NULL, &e), LINKWISE_INVALID, &w->err,
             "3");
    c.tp = 64;
    assert_int_equal (TIME (w->cluster, w->model, &job, &c, NULL, &e), LINKWISE_INVALID);
    c = linkwise_config ();
    c.zero = 7;
    refused (TIME (w->cluster, w->model, &job, &c, NULL, &e), LINKWISE_USAGE, &w->err,
             "zero: expected 0 to 3");
    c = linkwise_config ();
    c.recompute = "some";
    refused (TIME (w->cluster, w->model, &job, &c, NULL, &e), LINKWISE_USAGE, &w->err,
             "recompute");
    c = linkwise_config ();
    c.size = 3;
    refused (TIME (w->cluster, w->model, &job, &c, NULL, &e), LINKWISE_USAGE, &w->err,
             "config: expected size");
    c = linkwise_config ();
    c.pp = 2;
    c.layers = layers;
    refused (TIME (w->cluster, w->model, &job, &c, NULL, &e), LINKWISE_INVALID, &w->err,
             "layers");
    job.precision = "fp3";
    refused (TIME (w->cluster, w->model, &job, NULL, NULL, &e), LINKWISE_USAGE, &w->err,
             "precision: unknown word \"fp3\"");
    for (int i = 0; i < 3; i++) {
        job = w->job;
        job.wta_crs = (double[]){NAN, -0.5, 1.5}[i];
        refused (TIME (w->cluster, w->model, &job, NULL, NULL, &e), LINKWISE_USAGE,
                 &w->err, "wta_crs: expected 0 to 1");
    }
    job = linkwise_job (0, 0);
    assert_int_equal (TIME (w->cluster, w->model, &job, NULL, NULL, &e),
                      LINKWISE_INVALID);
    assert_true (e.step_s == 0.0);
    job = w->job;
    refused (MEMORY (&job, NULL, NULL, -1, &m), LINKWISE_USAGE, &w->err, "gpu");
    refused (MEMORY (&job, NULL, "abacus", -1, &m), LINKWISE_USAGE, &w->err, "abacus");
    refused (MEMORY (&job, NULL, "a100-sxm4-80g", 1, &m), LINKWISE_USAGE, &w->err,
             "stage");
    m.size = 0;
    refused (MEMORY (&job, NULL, "a100-sxm4-80g", 0, &m), LINKWISE_USAGE, &w->err,
             "out: expected size");
    job.precision = "fp8";
    m.size = sizeof m;
    refused (MEMORY (&job, NULL, "a100-sxm4-80g", 0, &m), LINKWISE_INVALID, &w->err,
             "fp8");
}

static void searches_refuse (void **state)
{
    struct world *w = *state;
    struct linkwise_settings s = linkwise_settings ();
    struct linkwise_config c = linkwise_config ();
    struct linkwise_plan *p = NULL;
    struct linkwise_cluster *small = NULL;
    struct linkwise_model *large = NULL;

#define SEARCH(CLUSTER_, MODEL, JOB, FIXED, SETTINGS, OUT) \
    linkwise_search (CLUSTER_, MODEL, NULL, JOB, FIXED, SETTINGS, OUT, NULL, &w->err)
    refused (SEARCH (NULL, w->model, &w->job, NULL, NULL, &p), LINKWISE_USAGE, &w->err,
             "cluster");
    refused (SEARCH (w->cluster, NULL, &w->job, NULL, NULL, &p), LINKWISE_USAGE, &w->err,
             "model");
    refused (SEARCH (w->cluster, w->model, NULL, NULL, NULL, &p), LINKWISE_USAGE, &w->err,
             "job");
    refused (SEARCH (w->cluster, w->model, &w->job, NULL, NULL, NULL), LINKWISE_USAGE,
             &w->err, "out");
    s.size = 5;
    refused (SEARCH (w->cluster, w->model, &w->job, NULL, &s, &p), LINKWISE_USAGE,
             &w->err, "settings: expected size");
    s = linkwise_settings ();
    s.objective = "fun";
    refused (SEARCH (w->cluster, w->model, &w->job, NULL, &s, &p), LINKWISE_USAGE,
             &w->err, "objective: unknown word \"fun\"");
    s = linkwise_settings ();
    s.tie = NAN;
    refused (SEARCH (w->cluster, w->model, &w->job, NULL, &s, &p), LINKWISE_USAGE,
             &w->err, "tie: expected 0 to 1");
    s = linkwise_settings ();
    s.memory_limit_pct = 90;
    s.oom_risk = 0.1;
    refused (SEARCH (w->cluster, w->model, &w->job, NULL, &s, &p), LINKWISE_USAGE,
             &w->err, "contradict");
    s = linkwise_settings ();
    s.only = "x[1-2]";
    refused (SEARCH (w->cluster, w->model, &w->job, NULL, &s, &p), LINKWISE_USAGE,
             &w->err, "x1");
    s = linkwise_settings ();
    s.spares = 4;
    refused (SEARCH (w->cluster, w->model, &w->job, NULL, &s, &p), LINKWISE_USAGE,
             &w->err, "spares");
    c.tp = 3;
    refused (SEARCH (w->cluster, w->model, &w->job, &c, NULL, &p), LINKWISE_INVALID,
             &w->err, "tp");
    good (linkwise_cluster_read ("1x1 t4", &small, NULL, &w->err), &w->err);
    good (linkwise_model_read ("llama-3-405b", &large, NULL, &w->err), &w->err);
    refused (SEARCH (small, large, &w->job, NULL, NULL, &p), LINKWISE_NOFIT, &w->err,
             "nothing fits in memory; closest: tp 1, pp 1");
    SEARCH (small, large, &w->job, NULL, NULL, &p);
    assert_non_null (strstr (w->err.text, ": stage 0 with 126 layers needs "));
    assert_non_null (strstr (w->err.text, "GiB; it would fit on "));
    assert_null (strchr (w->err.text, '?'));
    assert_null (p);
    linkwise_cluster_destroy (small);
    linkwise_model_destroy (large);
}

static void plans_refuse (void **state)
{
    struct world *w = *state;
    struct linkwise_estimate e = linkwise_estimate ();
    struct linkwise_config c = {.size = 2};
    struct linkwise_memory m = {.size = sizeof m};
    struct linkwise_rank r = {.size = sizeof r};
    struct linkwise_finding f = {.size = sizeof f};
    struct linkwise_replanning how = linkwise_replanning ();
    struct linkwise_cluster *other = NULL;
    struct linkwise_plan *p = NULL;
    struct linkwise_check *check = NULL;
    char *text = NULL;

    good (linkwise_cluster_read ("2x4 a100-sxm4-80g intra:230 inter:20", &other, NULL,
                                 &w->err),
          &w->err);
    refused (linkwise_plan_read (NULL, NULL, &p, NULL, &w->err), LINKWISE_USAGE, &w->err,
             "arg");
    refused (linkwise_plan_read ("/nowhere.json", NULL, &p, NULL, &w->err), LINKWISE_IO,
             &w->err, "nowhere");
    refused (linkwise_plan_to_json (NULL, &text, &w->err), LINKWISE_USAGE, &w->err,
             "plan:");
    refused (linkwise_plan_write (w->plan, NULL, &w->err), LINKWISE_USAGE, &w->err,
             "path");
    refused (linkwise_plan_write (w->plan, "/nowhere/plan.json", &w->err), LINKWISE_IO,
             &w->err, "nowhere");
    refused (linkwise_plan_config (w->plan, &c, &w->err), LINKWISE_USAGE, &w->err,
             "size");
    refused (linkwise_plan_rank (w->plan, linkwise_plan_ranks (w->plan), &r, &w->err),
             LINKWISE_USAGE, &w->err, "rank");
    refused (linkwise_plan_rank (NULL, 0, &r, &w->err), LINKWISE_USAGE, &w->err, "plan:");
    refused (linkwise_plan_estimate (NULL, NULL, NULL, &e, &w->err), LINKWISE_USAGE,
             &w->err, "plan:");
    /* A cluster of another plan: it lacks the nodes. */
    refused (linkwise_plan_estimate (w->plan, other, NULL, &e, &w->err), LINKWISE_INVALID,
             &w->err, "rank");
    assert_true (e.step_s == 0.0);
    refused (linkwise_plan_memory (NULL, &m, &w->err), LINKWISE_USAGE, &w->err, "plan:");
    refused (linkwise_plan_check (NULL, NULL, &check, &w->err), LINKWISE_USAGE, &w->err,
             "plan:");
    good (linkwise_plan_check (w->plan, other, &check, &w->err), &w->err);
    assert_true (linkwise_check_failed (check) > 0);
    refused (linkwise_check_at (check, 1000, &f, &w->err), LINKWISE_USAGE, &w->err,
             "finding");
    refused (linkwise_check_at (NULL, 0, &f, &w->err), LINKWISE_USAGE, &w->err, "check:");
    linkwise_check_destroy (check);
    refused (linkwise_plan_emit (NULL, "all", "/tmp", NULL, &w->err), LINKWISE_USAGE,
             &w->err, "plan:");
    refused (linkwise_plan_emit (w->plan, "bus", "/tmp", NULL, &w->err), LINKWISE_USAGE,
             &w->err, "bus");
    refused (linkwise_plan_emit (w->plan, "all", "", NULL, &w->err), LINKWISE_USAGE,
             &w->err, "folder");
    refused (linkwise_bind (w->plan, NULL, NULL, &p, NULL, &w->err), LINKWISE_USAGE,
             &w->err, "only");
    refused (linkwise_bind (w->plan, NULL, "n9", &p, NULL, &w->err), LINKWISE_USAGE,
             &w->err, "n9");
    assert_int_not_equal (linkwise_bind (w->plan, NULL, "n0", &p, NULL, &w->err),
                          LINKWISE_OK);
    refused (linkwise_bind (NULL, NULL, "n0", &p, NULL, &w->err), LINKWISE_USAGE, &w->err,
             "plan");
    refused (linkwise_replan (NULL, NULL, NULL, NULL, &p, NULL, &w->err), LINKWISE_USAGE,
             &w->err, "plan");
    how.move_cost_s = -1;
    refused (linkwise_replan (w->plan, NULL, NULL, &how, &p, NULL, &w->err),
             LINKWISE_USAGE, &w->err, "0 or more");
    how.size = 0;
    refused (linkwise_replan (w->plan, NULL, NULL, &how, &p, NULL, &w->err),
             LINKWISE_USAGE, &w->err, "how: expected size");
    assert_true (p == NULL && text == NULL);
    linkwise_cluster_destroy (other);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (a_cluster_is_told),
                                       cmocka_unit_test (clusters_are_compared),
                                       cmocka_unit_test (names_are_listed),
                                       cmocka_unit_test (a_plan_is_told),
                                       cmocka_unit_test (one_configuration_is_estimated),
                                       cmocka_unit_test (a_plan_goes_through_a_file),
                                       cmocka_unit_test (nodes_and_settings_hold),
                                       cmocka_unit_test (a_risk_limits_memory),
                                       cmocka_unit_test (a_running_job_is_replanned),
                                       cmocka_unit_test (nothing_is_looked_at),
                                       cmocka_unit_test (clusters_refuse),
                                       cmocka_unit_test (models_and_profiles_refuse),
                                       cmocka_unit_test (estimates_refuse),
                                       cmocka_unit_test (searches_refuse),
                                       cmocka_unit_test (plans_refuse)};

    return cmocka_run_group_tests (tests, set_up, tear_down);
}
