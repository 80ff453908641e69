/* The checker: sound plans pass, each kind of damage is found, hand edits are taken as
 * they are; and the plan file's reader says what is wrong where. */
#include "base/json.h"
#include "check/check.h"
#include "tests/lib/folder.h"
#include "tests/lib/search.h"

static json_t *good; /* a plan as the planner writes it */

static int make_plan (void **state)
{
    struct setting s =
        small_job (cluster_of ("3x2 a100-sxm4-80g intra:200 inter:20"), 8, 512, 16);
    struct mapper_problem p = search_degrees (&s, 2, 2, 1);
    struct found o;
    (void) state;

    p.axes.schedule = SCHEDULE_1F1B;
    o = search (&p, NULL);
    good = mapper_plan_to_json (&p, &o.r, &o.info, NULL, NULL);
    found_release (&o);
    topology_cluster_destroy (s.cluster);
    return 0;
}

ALL_BETWEEN (make_plan, NULL)

static enum status read_plan (json_t *doc, struct workload_plan *plan, struct error *err)
{
    assert_int_equal (json_dump_file (doc, in_folder ("plan"), 0), 0);
    return workload_plan_read (in_folder ("plan"), plan, err);
}

static struct check_report check_doc (json_t *doc)
{
    struct workload_plan plan;
    struct workload_profile profile = small_job (NULL, 1, 512, 16).profile;
    struct topology_cluster *c;
    struct check_report r;
    struct error err = {""};

    ok (read_plan (doc, &plan, &err), &err);
    ok (topology_cluster_from_json (json_object_get (plan.doc, "cluster"), "c", NULL, &c,
                                    NULL, &err),
        &err);
    ok (check_plan (&plan, c, &profile, &r, &err), &err);
    workload_plan_release (&plan);
    topology_cluster_destroy (c);
    return r;
}

static enum check_verdict verdict_of (const struct check_report *r, const char *what)
{
    for (int i = 0; i < r->n; i++)
        if (strcmp (r->item[i].what, what) == 0)
            return r->item[i].verdict;
    fail_msg ("no check of %s", what);
    return CHECK_FAILED;
}

static json_t *rank_of (json_t *doc, int rank)
{
    return json_array_get (json_object_get (doc, "ranks"), (size_t) rank);
}

static void set_path (json_t *doc, const char *where, json_t *value)
{
    char copy[64], *save, *key, *next;

    strcpy (copy, where);
    key = strtok_r (copy, ".", &save);
    while ((next = strtok_r (NULL, ".", &save))) {
        doc = json_is_array (doc) ? json_array_get (doc, (size_t) atoi (key))
                                  : json_object_get (doc, key);
        key = next;
    }
    if (!value)
        json_object_del (doc, key);
    else if (json_is_array (doc))
        json_array_set_new (doc, (size_t) atoi (key), value);
    else
        json_object_set_new (doc, key, value);
}

/* The good plan with one value replaced, or removed (NULL). */
static json_t *with (const char *where, json_t *value)
{
    json_t *doc = json_deep_copy (good);

    set_path (doc, where, value);
    return doc;
}

static json_t *damaged (const char *where, const char *value)
{
    return with (where, value ? json_loads (value, JSON_DECODE_ANY, NULL) : NULL);
}

/* Check a document once. */
static struct check_report check_once (json_t *doc)
{
    struct check_report r = check_doc (doc);

    json_decref (doc);
    return r;
}

/* What a document is found to be in one respect. */
static enum check_verdict verdict_on (json_t *doc, const char *what)
{
    struct check_report r = check_once (doc);

    return verdict_of (&r, what);
}

/* A member of the good plan by its way. */
static double number_at (const char *where)
{
    const char *dot = strchr (where, '.');
    char key[32];

    snprintf (key, sizeof key, "%.*s", (int) (dot - where), where);
    return json_number_value (json_object_get (json_object_get (good, key), dot + 1));
}

/* Two ranks on one GPU are found where no reader has refused them. */
TEST (shared)
{
    struct workload_profile profile = small_job (NULL, 1, 512, 16).profile;
    struct workload_plan plan;
    struct topology_cluster *c = cluster_of ("3x2 a100-sxm4-80g intra:200 inter:20");
    struct check_report r;
    struct error err = {""};

    ok (read_plan (good, &plan, &err), &err);
    plan.place[0] = plan.place[1];
    ok (check_plan (&plan, c, &profile, &r, &err), &err);
    assert_int_equal (verdict_of (&r, "GPUs"), CHECK_FAILED);
    workload_plan_release (&plan);
    topology_cluster_destroy (c);
}

static const char *text_of (const struct check_report *r, const char *what)
{
    verdict_of (r, what);
    for (int i = 0; i < r->n; i++)
        if (strcmp (r->item[i].what, what) == 0)
            return r->item[i].text;
    return "";
}

/* What is recomputed reads as what the file says. */
TEST (sound)
{
    struct check_report r = check_doc (good);
    double said[2], found[2];

    assert_int_equal (r.failed, 0);
    for (int i = 0; i < r.n; i++)
        assert_int_equal (r.item[i].verdict, CHECK_OK);
    assert_int_equal (sscanf (text_of (&r, "memory said"),
                              "the file says %lf of %lf GiB, recomputed: %lf of %lf",
                              &said[0], &said[1], &found[0], &found[1]),
                      4);
    CLOSE (said[0], found[0], 1e-5);
    CLOSE (said[1], found[1], 1e-5);
    assert_int_equal (sscanf (text_of (&r, "gap"),
                              "the file says %lf, step / lower bound - 1 is %lf",
                              &said[0], &found[0]),
                      2);
    assert_true (fabs (said[0] - found[0]) < 1e-5);
}

/* So is a plan with replicas. */
TEST (replicas)
{
    struct setting s =
        small_job (cluster_of ("3x2 a100-sxm4-80g intra:200 inter:20"), 8, 512, 24);
    struct mapper_problem p = search_degrees (&s, 1, 2, 3);
    struct found o = search (&p, NULL);
    json_t *doc = mapper_plan_to_json (&p, &o.r, &o.info, NULL, NULL);

    assert_int_equal (check_doc (doc).failed, 0);
    json_decref (doc);
    found_release (&o);
    topology_cluster_destroy (s.cluster);
}

TEST (wrong_claims)
{
    double above = number_at ("estimate.step_s") * 1.01;
    json_t *doc = json_deep_copy (good), *node,
           *nodes = json_object_get (json_object_get (doc, "cluster"), "nodes");
    size_t i;

    json_array_foreach (nodes, i, node)
        json_object_set_new (node, "state", json_string ("drained"));
    assert_int_equal (verdict_on (doc, "GPUs"), CHECK_FAILED);
    doc = with ("ranks.0.node", json_string ("n2"));
    set_path (doc, "ranks.0.gpu", json_integer (5));
    assert_int_equal (verdict_on (doc, "GPUs"), CHECK_FAILED);
    assert_int_equal (
        verdict_on (with ("estimate.step_s", json_real (above)), "step time"),
        CHECK_FAILED);
    assert_int_equal (
        verdict_on (with ("estimate.lower_bound_s", json_real (above)), "lower bound"),
        CHECK_FAILED);
}

/* Ranks exchanged by hand: the old estimate is stale, which is no failure. */
TEST (edited_by_hand)
{
    json_t *doc = json_deep_copy (good), *a = rank_of (doc, 0), *b = rank_of (doc, 3);
    json_t *node = json_incref (json_object_get (a, "node")),
           *gpu = json_incref (json_object_get (a, "gpu"));
    struct check_report r;

    json_object_set (a, "node", json_object_get (b, "node"));
    json_object_set (a, "gpu", json_object_get (b, "gpu"));
    json_object_set_new (b, "node", node);
    json_object_set_new (b, "gpu", gpu);
    r = check_doc (doc);
    assert_int_equal (r.failed, 0);
    assert_int_equal (verdict_of (&r, "step time"), CHECK_NOTE);
    assert_true (r.step_s > 0);
    json_decref (doc);
}

/* What the framework does not offer fails, also where no replica is there to shard over. */
TEST (not_offered)
{
    static const struct {
        const char *where, *value, *says; /* NULL: it is offered */
    } t[] = {{"zero", "1", NULL},
             {"zero", "3", "zero 3 with pp 2: profile"},
             {"offload", "\"all\"", "offload all: "}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct check_report r = check_once (damaged (t[i].where, t[i].value));

        assert_int_equal (r.failed, t[i].says != NULL);
        if (t[i].says)
            assert_non_null (strstr (text_of (&r, "framework"), t[i].says));
    }
}

/* Hosts are spoken of where something is in their memory. */
TEST (hosts)
{
    static const char *const words[] = {"checkpoints", "optimizer"};

    for (int i = 0; i < 2; i++) { /* the plan recomputes nothing */
        struct check_report r = check_once (with ("offload", json_string (words[i])));
        bool said = false;

        for (int k = 0; k < r.n; k++)
            said = said || strcmp (r.item[k].what, "host memory") == 0;
        assert_int_equal (said, i);
    }
    /* Of nodes that tell what they have, the one whose part is the largest is named. */
    for (size_t small = 0; small < 3; small++) {
        json_t *doc = with ("offload", json_string ("optimizer")), *node;
        json_t *nodes = json_object_get (json_object_get (doc, "cluster"), "nodes");
        bool used = false;
        struct check_report r;
        char says[64];
        size_t i;

        json_array_foreach (nodes, i, node) json_object_set_new (
            node, "host_memory_gib", json_real (i == small ? 1 : 99));
        node = json_array_get (nodes, small);
        for (int k = 0; k < 4; k++)
            used = used || json_equal (json_object_get (node, "name"),
                                       json_object_get (rank_of (doc, k), "node"));
        snprintf (says, sizeof says, "node %s needs",
                  json_string_value (json_object_get (node, "name")));
        r = check_once (doc);
        assert_int_equal (strstr (text_of (&r, "host memory"), says) != NULL, used);
    }
}

/* A rank moved by hand to the spare node: what it is there for decides, whichever rank it is. */
TEST (moved_by_hand)
{
    for (int rank = 0; rank < 4; rank++) {
        json_t *doc = json_deep_copy (good), *cluster = json_object_get (doc, "cluster");
        json_t *nodes = json_object_get (cluster, "nodes"), *node, *spare = NULL;
        const char *stage[] = {"stage 0 needs", "stage 1 needs"};
        struct check_report r;
        bool said = false;
        size_t i;

        json_array_foreach (nodes, i, node)
        {
            bool used = false;

            for (int k = 0; k < 4; k++)
                used = used || json_equal (json_object_get (node, "name"),
                                           json_object_get (rank_of (doc, k), "node"));
            spare = used ? spare : node;
        }
        json_object_set (rank_of (doc, rank), "node", json_object_get (spare, "name"));
        json_object_set_new (rank_of (doc, rank), "gpu", json_integer (0));
        /* Half of the memory, of which 95 % may be used: its stage is the fullest. */
        json_object_set_new (spare, "gpu_type", json_string ("a100-sxm4-40g"));
        r = check_doc (doc);
        assert_int_equal (r.failed, 0);
        for (int k = 0; k < r.n; k++)
            said = said || (strstr (r.item[k].text, stage[rank / 2]) &&
                            strstr (r.item[k].text, "the limit is 37.4 GiB"));
        if (!said)
            fail_msg ("rank %d: %s", rank, r.item[4].text);
        json_object_set_new (spare, "state", json_string ("drained"));
        assert_int_equal (verdict_on (doc, "GPUs"), CHECK_FAILED);
    }
}

/* A figure is off by a factor: rounding passes, what is more than a millionth does not; the gap may
 * be ten of these off, and the bound no more above the step than one. */
TEST (margins)
{
    static const struct {
        const char *where, *what;
        double factor;
        bool passes;
    } t[] = {{"estimate.step_s", "step time", 1 + 5e-7, true},
             {"estimate.step_s", "step time", 1 - 5e-7, true},
             {"estimate.step_s", "step time", 1 + 3e-6, false},
             {"estimate.step_s", "step time", 1 - 3e-6, false},
             {"estimate.mfu", "rates", 1 + 3e-6, false},
             {"estimate.mfu", "rates", 1 - 5e-7, true},
             {"estimate.tokens_per_s", "rates", 1 + 3e-6, false},
             {"estimate.tokens_per_s", "rates", 1 + 5e-7, true},
             {"memory.peak_bytes", "memory said", 1 + 3e-6, false},
             {"memory.peak_bytes", "memory said", 1 - 3e-6, false},
             {"memory.limit_bytes", "memory said", 1 - 3e-6, false},
             {"memory.limit_bytes", "memory said", 1 + 5e-7, true}};
    double step = number_at ("estimate.step_s");

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        double x = number_at (t[i].where) * t[i].factor;
        struct check_report r = check_once (with (t[i].where, json_real (x)));

        if ((verdict_of (&r, t[i].what) == CHECK_OK) != t[i].passes)
            fail_msg ("%s times %.7f", t[i].where, t[i].factor);
        assert_true (t[i].passes || r.failed > 0);
    }
    for (int i = 0; i < 8; i++) {
        static const double above[] = {-.5, 5e-7, 3e-6, 1}, off[] = {5e-6, 2e-5};
        double bound = step * (1 + above[i / 2]);
        json_t *doc = with ("estimate.lower_bound_s", json_real (bound));
        struct check_report r;

        set_path (doc, "estimate.gap", json_real (step / bound - 1 + off[i % 2]));
        r = check_once (doc);
        assert_int_equal (verdict_of (&r, "lower bound"),
                          i < 4 ? CHECK_OK : CHECK_FAILED);
        assert_int_equal (verdict_of (&r, "gap"),
                          i < 4 && i % 2 == 0 ? CHECK_OK : CHECK_FAILED);
    }
    /* The default order may be no slower than the plan, and no faster either. */
    for (int i = 0; i < 3; i++) {
        static const double times[] = {1, 1 - 5e-7, 1 - 3e-6};
        json_t *doc = with ("estimate.default_order_step_s", json_real (step * times[i]));

        set_path (doc, "estimate.default_order_unmeasured_links", json_integer (0));
        assert_int_equal (verdict_on (doc, "default"), i < 2 ? CHECK_OK : CHECK_FAILED);
    }
}

/* What is counted is said. */
TEST (counts)
{
    static const struct {
        const char *what, *says;
    } t[] = {{"GPUs", "4 ranks on 4 different GPUs"},
             {"degrees", "tp 2 x cp 1 x dp 1 x pp 2 = 4 of 4 ranks"},
             {"layers", "2 stages hold 8 of 8 layers"},
             {"links", "0 unmeasured links are used, the file lists 0"}};
    struct check_report r = check_doc (good);

    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (int k = 0; k < r.n; k++)
            if (strcmp (r.item[k].what, t[i].what) == 0)
                assert_string_equal (r.item[k].text, t[i].says);
    /* A list of links that are not used. */
    assert_int_equal (verdict_on (damaged ("unmeasured_links_used", "[{}]"), "links"),
                      CHECK_FAILED);
}

/* Every figure that follows from others is compared; one that is missing is said to be,
 * and never NaN. */
TEST (false_figures)
{
    const struct {
        const char *where, *value, *what;
    } bad[] = {{"job.memory_limit_pct", "1", "memory"},
               {"ranks.0.node", "\"elsewhere\"", "GPUs"},
               {"estimate.gap", "0.9", "gap"},
               {"estimate.mfu", "9", "rates"},
               {"estimate.breakdown_s.compute", "1", "breakdown"},
               {"estimate.default_order_step_s", "1e-9", "default"},
               {"estimate.lower_bound_s", "-1", "lower bound"},
               {"estimate.lower_bound_s", "0", "lower bound"},
               {"estimate.lower_bound_s", NULL, "lower bound"},
               {"estimate.step_s", NULL, "step time"},
               {"microbatches", "3", "batch"},
               {"memory.peak_bytes", "1", "memory said"},
               {"memory.limit_bytes", "1e15", "memory said"},
               {"memory.limit_bytes", NULL, "memory said"}};
    struct check_report r;
    json_t *doc;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        r = check_once (damaged (bad[i].where, bad[i].value));
        if (verdict_of (&r, bad[i].what) != CHECK_FAILED)
            fail_msg ("%s passes", bad[i].where);
        for (int k = 0; k < r.n; k++) {
            assert_null (strstr (r.item[k].text, "nan"));
            if (strcmp (bad[i].where, "microbatches") == 0 &&
                strcmp (r.item[k].what, "batch") == 0)
                assert_non_null (strstr (r.item[k].text, "the file says 3"));
        }
    }
    /* A default order that is faster over links that nobody measured promises nothing. */
    doc = damaged ("estimate.default_order_step_s", "1e-9");
    set_path (doc, "estimate.default_order_unmeasured_links", json_integer (2));
    assert_int_equal (verdict_on (doc, "default"), CHECK_OK);
    /* No digest: the estimate is taken at its word. */
    assert_int_equal (check_once (damaged ("estimate.digest", NULL)).failed, 0);
    doc = damaged ("estimate.digest", NULL);
    set_path (doc, "estimate.step_s", json_real (1));
    r = check_doc (doc);
    assert_int_equal (verdict_of (&r, "step time"), CHECK_FAILED);
    set_path (doc, "estimate", NULL); /* nothing said is nothing false */
    set_path (doc, "memory", NULL);
    r = check_once (doc);
    assert_int_equal (r.failed, 0);
    assert_int_equal (verdict_of (&r, "step time"), CHECK_NOTE);
}

TEST (breaches)
{
    const struct {
        const char *where, *value, *says;
    } bad[] = {
        {"version", "3", "version: expected 1, found 3"},
        {"model", NULL, "model: expected an object, found nothing"},
        {"model.hidden_size", NULL, "hidden_size: expected"},
        {"degrees.tp", "3", "tp 3 does not divide 16 attention heads"},
        {"degrees.dp", "2", "ranks: expected 8 ranks (tp x cp x dp x pp), found 4"},
        {"micro_batch", "0", "micro_batch: expected a whole number from 1"},
        {"rank_order", "\"tp-pp-dp\"", "rank_order: expected tp-cp-ep-dp-pp"},
        {"degrees", "{\"tp\":1,\"pp\":8,\"dp\":16777216,\"cp\":8388608}",
         "expected at most 16777216 ranks"},
        {"zero", "7", "zero: expected a whole number from 0 to 3"},
        {"recompute", "\"some\"",
         "recompute: expected none, selective, full, full:K or modules"},
        {"schedule", "\"zigzag\"", "schedule: expected the name of a schedule"},
        {"layers_per_stage", "[8]", "layers_per_stage: expected 2 numbers"},
        {"layers_per_chunk", "[[6],[1,1]]", "layers_per_chunk[1]: expected 1 numbers"},
        {"layers_per_chunk", "[[5],[3]]", "the chunks hold 5 layers, the stage has 6"},
        {"layers_per_stage", "[5,5]", "the stages hold 10 layers, the model has 8"},
        {"ranks.3.rank", "0", "rank 0 appears twice"},
        {"ranks.0.rank", "9",
         "ranks[0].rank: expected a whole number from 0 to 3, found 9"},
        {"ranks.0.node", NULL, "ranks[0].node: expected a text, found nothing"},
        {"ranks.0.pp", "1", "ranks[0].pp: expected 0 (rank 0"},
        {"job.global_batch", "0", "job.global_batch: expected a whole number from 1"},
        {"job.precision", "\"int4\"",
         "job.precision: expected bf16, fp16, fp8, fp4, fp32 or tf32"}};
    struct workload_plan plan;
    struct error err = {""};
    json_t *doc;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        doc = damaged (bad[i].where, bad[i].value);
        assert_int_equal (read_plan (doc, &plan, &err), ST_INVALID);
        if (!strstr (err.text, bad[i].says))
            fail_msg ("%s: \"%s\" does not say \"%s\"", bad[i].where, err.text,
                      bad[i].says);
        json_decref (doc);
    }
    /* Two ranks on one GPU. */
    doc = json_deep_copy (good);
    json_object_set (rank_of (doc, 1), "node",
                     json_object_get (rank_of (doc, 0), "node"));
    json_object_set (rank_of (doc, 1), "gpu", json_object_get (rank_of (doc, 0), "gpu"));
    assert_int_equal (read_plan (doc, &plan, &err), ST_INVALID);
    assert_non_null (strstr (err.text, "ranks 0 and 1 are both on node"));
    json_decref (doc);
}

/* What was written is what is read, and its digest is the same. */
TEST (round_trip)
{
    struct workload_plan plan;
    struct error err = {""};
    char digest[65];
    json_t *again;
    const char *key;
    json_t *value;

    ok (read_plan (good, &plan, &err), &err);
    workload_plan_digest (&plan, digest);
    assert_string_equal (digest, json_string_value (json_object_get (
                                     json_object_get (good, "estimate"), "digest")));
    again = workload_plan_to_json (&plan);
    json_object_foreach (again, key, value)
    {
        if (!json_equal (value, json_object_get (good, key)))
            fail_msg ("%s differs", key);
    }
    json_decref (again);
    workload_plan_release (&plan);
}

/* ---- a running job ---- */

/* What four ranks report of the plan's places: as planned but for the last or the first. */
TEST (running)
{
    enum {
        AS_PLANNED,
        BY_UUID,
        NO_INDEX,
        SILENT,
        STRANGER,
        FOREIGN,
        SHARED,
        EXCHANGED,
        FULL,
        ONE_UNKNOWN,
        BLIND,
        ELSEWHERE, /* two, on GPUs that they do not tell */
        CASES
    };
    static const struct {
        int reported, differ;
        enum check_verdict ranks, hosts, gpus;
        const char *says;
        bool priced;
    } want[CASES] = {
        {4, 0, CHECK_OK, CHECK_OK, CHECK_OK, "as planned: +0.00 %", true},
        {4, 0, CHECK_OK, CHECK_OK, CHECK_OK, "as planned: +0.00 %", true},
        {4, 0, CHECK_OK, CHECK_OK, CHECK_NOTE, "4 ranks have an unknown GPU", true},
        {3, 1, CHECK_FAILED, CHECK_OK, CHECK_OK, "some ranks did not report", false},
        {4, 1, CHECK_OK, CHECK_FAILED, CHECK_OK,
         "1 ranks are on another host than planned; x is", false},
        {4, 1, CHECK_OK, CHECK_OK, CHECK_FAILED, "1 ranks are on the planned host",
         false},
        {4, 1, CHECK_OK, CHECK_OK, CHECK_FAILED, "ranks 0 and 1 are on the same GPU",
         false},
        {4, 2, CHECK_OK, CHECK_FAILED, CHECK_OK, "2 ranks are on another host", true},
        {4, 2, CHECK_OK, CHECK_FAILED, CHECK_NOTE, "more ranks than it has GPUs", false},
        {4, 0, CHECK_OK, CHECK_OK, CHECK_NOTE, "1 ranks have an unknown GPU", true},
        {4, 1, CHECK_OK, CHECK_OK, CHECK_FAILED, "1 ranks see no device LOCAL_RANK",
         false},
        {4, 2, CHECK_OK, CHECK_FAILED, CHECK_NOTE, "2 ranks are on another host", true}};
    struct workload_profile profile = small_job (NULL, 1, 512, 16).profile;
    struct topology_cluster *c;
    struct workload_plan plan;
    struct error err = {""};

    ok (read_plan (good, &plan, &err), &err);
    ok (topology_cluster_from_json (json_object_get (good, "cluster"), "c", NULL, &c,
                                    NULL, &err),
        &err);
    for (int n = 0; n < c->n_nodes; n++) {
        c->node[n].gpu_uuid = calloc ((size_t) c->node[n].gpus, sizeof (char *));
        for (int k = 0; k < c->node[n].gpus; k++) {
            char uuid[32];

            snprintf (uuid, sizeof uuid, "GPU-%d-%d", n, k);
            c->node[n].gpu_uuid[k] = strdup (uuid);
        }
    }
    /* Ranks 0 and 1 on one node, 2 and 3 on another. */
    assert_string_equal (plan.place[0].node, plan.place[1].node);
    assert_string_not_equal (plan.place[0].node, plan.place[3].node);
    for (int i = 0; i < CASES; i++) {
        struct check_place place[4] = {0}, x;
        struct check_report r = {0};
        struct check_running out;
        bool said = false;

        for (int k = 0; k < 4; k++) {
            const struct workload_place *at = &plan.place[i == FULL ? k / 4 : k];

            snprintf (place[k].host, sizeof place[k].host, "%s", at->node);
            snprintf (place[k].gpu, sizeof place[k].gpu, "%d", at->gpu);
            if (i == BY_UUID)
                snprintf (place[k].gpu, sizeof place[k].gpu, "GPU-%d-%d",
                          topology_node_find (c, at->node), at->gpu);
            if (i == NO_INDEX || i == FULL)
                strcpy (place[k].gpu, "-");
        }
        if (i == SILENT)
            place[3].host[0] = '\0';
        if (i == STRANGER)
            strcpy (place[3].host, "x");
        if (i == FOREIGN)
            strcpy (place[3].gpu, "9");
        if (i == SHARED)
            place[1] = place[0];
        if (i == ONE_UNKNOWN)
            strcpy (place[3].gpu, "-");
        if (i == BLIND)
            strcpy (place[3].gpu, CHECK_NO_GPU);
        for (int k = 0; k < 2 && i == ELSEWHERE; k++) {
            int node = 0; /* that no rank is on */

            while (strcmp (c->node[node].name, plan.place[0].node) == 0 ||
                   strcmp (c->node[node].name, plan.place[3].node) == 0)
                node++;
            snprintf (place[k].host, sizeof place[k].host, "%s", c->node[node].name);
            strcpy (place[k].gpu, "-");
        }
        if (i == EXCHANGED) {
            x = place[0];
            place[0] = place[3];
            place[3] = x;
        }
        ok (check_running (&plan, c, &profile, place, &r, &out, &err), &err);
        assert_int_equal (out.n_ranks, 4);
        assert_int_equal (out.reported, want[i].reported);
        assert_int_equal (out.n_differences, want[i].differ);
        assert_int_equal (verdict_of (&r, "running ranks"), want[i].ranks);
        assert_int_equal (verdict_of (&r, "running hosts"), want[i].hosts);
        assert_int_equal (verdict_of (&r, "running GPUs"), want[i].gpus);
        assert_true (out.planned_step_s > 0 && isfinite (out.step_s) == want[i].priced);
        if (i <= NO_INDEX ||
            (i >= ONE_UNKNOWN && want[i].priced)) /* all nodes are alike */
            CLOSE (out.step_s, out.planned_step_s, 1e-12);
        for (int k = 0; k < r.n; k++)
            said = said || strstr (r.item[k].text, want[i].says);
        if (!said)
            fail_msg ("case %d does not say \"%s\"", i, want[i].says);
        free (out.difference);
    }
    workload_plan_release (&plan);
    topology_cluster_destroy (c);
}
