/* Every function of liblinkwise says what is wrong with what it is given, and touches nothing
 * then. */
#include "tests/lib/library.h"

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
    refused (linkwise_cluster_links (w->cluster, (int[]){0, 32}, 2, NULL, NULL, &w->err),
             LINKWISE_USAGE, &w->err, "0 to 31, found 32");
    refused (linkwise_cluster_links (w->cluster, NULL, 2, NULL, NULL, &w->err),
             LINKWISE_USAGE, &w->err, "gpu");
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
    refused (linkwise_model_parse (NULL, NULL, &m, NULL, &w->err), LINKWISE_USAGE,
             &w->err, "json");
    refused (linkwise_model_parse ("{\"hidden_size\": -1}", NULL, &m, NULL, &w->err),
             LINKWISE_INVALID, &w->err, "model");
    refused (linkwise_model_parse ("[", NULL, &m, NULL, &w->err), LINKWISE_INVALID,
             &w->err, "model");
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
    job = linkwise_job (0, -1);
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
    refused (linkwise_plan_parse (NULL, NULL, &p, NULL, &w->err), LINKWISE_USAGE, &w->err,
             "json");
    refused (linkwise_plan_parse ("{}", NULL, &p, NULL, &w->err), LINKWISE_INVALID,
             &w->err, "plan: ");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test (nothing_is_looked_at),
                                       cmocka_unit_test (clusters_refuse),
                                       cmocka_unit_test (models_and_profiles_refuse),
                                       cmocka_unit_test (estimates_refuse),
                                       cmocka_unit_test (searches_refuse),
                                       cmocka_unit_test (plans_refuse)};

    return cmocka_run_group_tests (tests, set_up, tear_down);
}
