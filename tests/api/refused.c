/* Every function of liblinkwise says what is wrong with what it is given, and touches nothing
 * then. */
#include "tests/lib/library.h"

/* A call that is no use of the function. */
#define REFUSED(call, says) refused (call, LINKWISE_USAGE, err, says)

/* NULL is fine wherever something is destroyed or looked at. */
TEST (nothing_is_looked_at)
{
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

TEST (clusters_refuse)
{
    struct linkwise_cluster *c = NULL;
    struct linkwise_node node = {.size = 1};
    struct linkwise_link link = {.size = sizeof link};
    struct linkwise_difference d = {.size = sizeof d};
    char *json = NULL;

    REFUSED (linkwise_cluster_read (NULL, &c, NULL, err),
             "arg: expected an object, found NULL");
    REFUSED (linkwise_cluster_read (CLUSTER, NULL, NULL, err), "out");
    refused (linkwise_cluster_read ("/nowhere.json", &c, NULL, err), LINKWISE_IO, err,
             "nowhere");
    REFUSED (linkwise_cluster_parse (NULL, NULL, &c, NULL, err), "json");
    refused (linkwise_cluster_parse ("{", NULL, &c, NULL, err), LINKWISE_INVALID, err,
             "cluster");
    refused (linkwise_cluster_parse ("{}", NULL, &c, NULL, err), LINKWISE_INVALID, err,
             "version");
    assert_null (c);
    assert_int_equal (linkwise_cluster_read (NULL, NULL, NULL, NULL), LINKWISE_USAGE);
    REFUSED (linkwise_cluster_node (w.cluster, 0, &node, err), "size");
    node.size = sizeof node;
    REFUSED (linkwise_cluster_node (NULL, 0, &node, err), "NULL");
    REFUSED (linkwise_cluster_node (w.cluster, 4, &node, err), "0 to 3, found 4");
    assert_null (node.name);
    REFUSED (linkwise_cluster_link (w.cluster, 0, 32, &link, err), "0 to 31");
    REFUSED (linkwise_cluster_link (w.cluster, 7, 7, &link, err), "two GPUs");
    REFUSED (linkwise_cluster_links (w.cluster, (int[]){0, 32}, 2, NULL, NULL, err),
             "0 to 31, found 32");
    REFUSED (linkwise_cluster_links (w.cluster, NULL, 2, NULL, NULL, err), "gpu");
    REFUSED (linkwise_cluster_to_json (NULL, &json, err), "NULL");
    REFUSED (linkwise_cluster_to_json (w.cluster, NULL, err), "json");
    REFUSED (linkwise_cluster_compare (w.cluster, NULL, 0.1, &d, err), "after");
    REFUSED (linkwise_cluster_compare (w.cluster, w.cluster, NAN, &d, err), "share");
}

TEST (models_and_profiles_refuse)
{
    struct linkwise_model *m = NULL;
    struct linkwise_profile *p = NULL;

    REFUSED (linkwise_model_read (NULL, &m, NULL, err), "arg");
    REFUSED (linkwise_model_read ("llama-2-7b", NULL, NULL, err), "out");
    assert_int_not_equal (linkwise_model_read ("no-such-model", &m, NULL, err),
                          LINKWISE_OK);
    REFUSED (linkwise_model_parse (NULL, NULL, &m, NULL, err), "json");
    refused (linkwise_model_parse ("{\"hidden_size\": -1}", NULL, &m, NULL, err),
             LINKWISE_INVALID, err, "model");
    refused (linkwise_model_parse ("[", NULL, &m, NULL, err), LINKWISE_INVALID, err,
             "model");
    REFUSED (linkwise_profile_read (NULL, &p, NULL, err), "arg");
    assert_int_not_equal (linkwise_profile_read ("no-such", &p, NULL, err), LINKWISE_OK);
    assert_true (m == NULL && p == NULL);
}

TEST (estimates_refuse)
{
    struct linkwise_job job = w.job;
    struct linkwise_config c = linkwise_config ();
    struct linkwise_estimate e = linkwise_estimate ();
    struct linkwise_memory m = {.size = sizeof m};
    int layers[] = {1, 2};

#define TIME(CLUSTER_, MODEL, JOB, CONFIG, KIND, OUT) \
    linkwise_time (CLUSTER_, MODEL, NULL, JOB, CONFIG, KIND, OUT, NULL, err)
#define MEMORY(JOB, CONFIG, GPU, STAGE, OUT) \
    linkwise_memory (w.model, NULL, JOB, CONFIG, GPU, STAGE, OUT, NULL, err)
    REFUSED (TIME (NULL, w.model, &job, NULL, NULL, &e), "cluster");
    REFUSED (TIME (w.cluster, NULL, &job, NULL, NULL, &e), "model");
    REFUSED (TIME (w.cluster, w.model, NULL, NULL, NULL, &e), "job");
    REFUSED (TIME (w.cluster, w.model, &job, NULL, NULL, NULL), "out");
    REFUSED (TIME (w.cluster, w.model, &job, NULL, "guess", &e),
             "cost_model: expected critical-path, pipette or amp, found \"guess\"");
    c.tp = 3;
    refused (TIME (w.cluster, w.model, &job, &c, NULL, &e), LINKWISE_INVALID, err, "3");
    c.tp = 64;
    assert_int_equal (TIME (w.cluster, w.model, &job, &c, NULL, &e), LINKWISE_INVALID);
    c = linkwise_config ();
    c.zero = 7;
    REFUSED (TIME (w.cluster, w.model, &job, &c, NULL, &e), "zero: expected 0 to 3");
    c = linkwise_config ();
    c.recompute = "some";
    REFUSED (TIME (w.cluster, w.model, &job, &c, NULL, &e), "recompute");
    c = linkwise_config ();
    c.size = 3;
    REFUSED (TIME (w.cluster, w.model, &job, &c, NULL, &e), "config: expected size");
    c = linkwise_config ();
    c.pp = 2;
    c.layers = layers;
    refused (TIME (w.cluster, w.model, &job, &c, NULL, &e), LINKWISE_INVALID, err,
             "layers");
    job.precision = "fp3";
    REFUSED (TIME (w.cluster, w.model, &job, NULL, NULL, &e),
             "precision: expected bf16, fp16, fp8, fp4, fp32 or tf32, found \"fp3\"");
    for (int i = 0; i < 3; i++) {
        job = w.job;
        job.wta_crs = (double[]){NAN, -0.5, 1.5}[i];
        REFUSED (TIME (w.cluster, w.model, &job, NULL, NULL, &e),
                 "wta_crs: expected 0 to 1");
    }
    job = linkwise_job (0, -1);
    assert_int_equal (TIME (w.cluster, w.model, &job, NULL, NULL, &e), LINKWISE_INVALID);
    assert_true (e.step_s == 0.0);
    job = w.job;
    REFUSED (MEMORY (&job, NULL, NULL, -1, &m), "gpu");
    REFUSED (MEMORY (&job, NULL, "abacus", -1, &m), "abacus");
    REFUSED (MEMORY (&job, NULL, "a100-sxm4-80g", 1, &m), "stage");
    m.size = 0;
    REFUSED (MEMORY (&job, NULL, "a100-sxm4-80g", 0, &m), "out: expected size");
    job.precision = "fp8";
    m.size = sizeof m;
    refused (MEMORY (&job, NULL, "a100-sxm4-80g", 0, &m), LINKWISE_INVALID, err, "fp8");
}

TEST (searches_refuse)
{
    struct linkwise_settings s = linkwise_settings ();
    struct linkwise_config c = linkwise_config ();
    struct linkwise_plan *p = NULL;
    struct linkwise_cluster *small = NULL;
    struct linkwise_model *large = NULL;

#define SEARCH(CLUSTER_, MODEL, JOB, FIXED, SETTINGS, OUT) \
    linkwise_search (CLUSTER_, MODEL, NULL, JOB, FIXED, SETTINGS, OUT, NULL, err)
    REFUSED (SEARCH (NULL, w.model, &w.job, NULL, NULL, &p), "cluster");
    REFUSED (SEARCH (w.cluster, NULL, &w.job, NULL, NULL, &p), "model");
    REFUSED (SEARCH (w.cluster, w.model, NULL, NULL, NULL, &p), "job");
    REFUSED (SEARCH (w.cluster, w.model, &w.job, NULL, NULL, NULL), "out");
    s.size = 5;
    REFUSED (SEARCH (w.cluster, w.model, &w.job, NULL, &s, &p),
             "settings: expected size");
    s = linkwise_settings ();
    s.objective = "fun";
    REFUSED (SEARCH (w.cluster, w.model, &w.job, NULL, &s, &p),
             "objective: expected step or gpu-hours, found \"fun\"");
    s = linkwise_settings ();
    s.tie = NAN;
    REFUSED (SEARCH (w.cluster, w.model, &w.job, NULL, &s, &p), "tie: expected 0 to 1");
    s = linkwise_settings ();
    s.memory_limit_pct = 90;
    s.oom_risk = 0.1;
    REFUSED (SEARCH (w.cluster, w.model, &w.job, NULL, &s, &p), "contradict");
    s = linkwise_settings ();
    s.only = "x[1-2]";
    REFUSED (SEARCH (w.cluster, w.model, &w.job, NULL, &s, &p), "x1");
    s = linkwise_settings ();
    s.spares = 4;
    REFUSED (SEARCH (w.cluster, w.model, &w.job, NULL, &s, &p), "spares");
    c.tp = 3;
    refused (SEARCH (w.cluster, w.model, &w.job, &c, NULL, &p), LINKWISE_INVALID, err,
             "tp");
    good (linkwise_cluster_read ("1x1 t4", &small, NULL, err), err);
    good (linkwise_model_read ("llama-3-405b", &large, NULL, err), err);
    refused (SEARCH (small, large, &w.job, NULL, NULL, &p), LINKWISE_NOFIT, err,
             "nothing fits in memory; closest: tp 1, pp 1");
    SEARCH (small, large, &w.job, NULL, NULL, &p);
    assert_non_null (strstr (err->text, ": stage 0 with 126 layers needs "));
    assert_non_null (strstr (err->text, "GiB; it would fit on "));
    assert_null (strchr (err->text, '?'));
    assert_null (p);
    linkwise_cluster_destroy (small);
    linkwise_model_destroy (large);
}

TEST (plans_refuse)
{
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

    good (
        linkwise_cluster_read ("2x4 a100-sxm4-80g intra:230 inter:20", &other, NULL, err),
        err);
    REFUSED (linkwise_plan_read (NULL, NULL, &p, NULL, err), "arg");
    refused (linkwise_plan_read ("/nowhere.json", NULL, &p, NULL, err), LINKWISE_IO, err,
             "nowhere");
    REFUSED (linkwise_plan_parse (NULL, NULL, &p, NULL, err), "json");
    refused (linkwise_plan_parse ("{}", NULL, &p, NULL, err), LINKWISE_INVALID, err,
             "plan: ");
    REFUSED (linkwise_plan_to_json (NULL, &text, err), "plan:");
    REFUSED (linkwise_plan_write (w.plan, NULL, err), "path");
    refused (linkwise_plan_write (w.plan, "/nowhere/plan.json", err), LINKWISE_IO, err,
             "nowhere");
    REFUSED (linkwise_plan_config (w.plan, &c, err), "size");
    REFUSED (linkwise_plan_rank (w.plan, linkwise_plan_ranks (w.plan), &r, err), "rank");
    REFUSED (linkwise_plan_rank (NULL, 0, &r, err), "plan:");
    REFUSED (linkwise_plan_estimate (NULL, NULL, NULL, &e, err), "plan:");
    /* A cluster of another plan: it lacks the nodes. */
    refused (linkwise_plan_estimate (w.plan, other, NULL, &e, err), LINKWISE_INVALID, err,
             "rank");
    assert_true (e.step_s == 0.0);
    REFUSED (linkwise_plan_memory (NULL, &m, err), "plan:");
    REFUSED (linkwise_plan_check (NULL, NULL, &check, err), "plan:");
    good (linkwise_plan_check (w.plan, other, &check, err), err);
    assert_true (linkwise_check_failed (check) > 0);
    REFUSED (linkwise_check_at (check, 1000, &f, err), "finding");
    REFUSED (linkwise_check_at (NULL, 0, &f, err), "check:");
    linkwise_check_destroy (check);
    REFUSED (linkwise_plan_emit (NULL, "all", "/tmp", NULL, err), "plan:");
    REFUSED (linkwise_plan_emit (w.plan, "bus", "/tmp", NULL, err), "bus");
    REFUSED (linkwise_plan_emit (w.plan, "all", "", NULL, err), "folder");
    REFUSED (linkwise_bind (w.plan, NULL, NULL, &p, NULL, err), "only");
    REFUSED (linkwise_bind (w.plan, NULL, "n9", &p, NULL, err), "n9");
    assert_int_not_equal (linkwise_bind (w.plan, NULL, "n0", &p, NULL, err), LINKWISE_OK);
    REFUSED (linkwise_bind (NULL, NULL, "n0", &p, NULL, err), "plan");
    REFUSED (linkwise_replan (NULL, NULL, NULL, NULL, &p, NULL, err), "plan");
    how.move_cost_s = -1;
    REFUSED (linkwise_replan (w.plan, NULL, NULL, &how, &p, NULL, err), "0 or more");
    how.size = 0;
    REFUSED (linkwise_replan (w.plan, NULL, NULL, &how, &p, NULL, err),
             "how: expected size");
    assert_true (p == NULL && text == NULL);
    linkwise_cluster_destroy (other);
}
