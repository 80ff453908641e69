/* What explains a step: the link that binds, the trace, other people's cost models. */
#include "tests/lib/clusters.h"

#include "costmodel/costmodel.h"

static const int in_order[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* Four nodes of one GPU; 1 <-> 2 runs at `slow` GB/s, the others at 10. */
static struct setting chain (double slow)
{
    double rate[4 * 4];

    for (int k = 0; k < 16; k++)
        rate[k] = k == 1 * 4 + 2 || k == 2 * 4 + 1 ? slow : 10;
    return small_job_as (cluster_of_rates (4, 1, "a100-sxm4-80g", false, rate), 8, 1024,
                         16, config_of (1, 4, 1, 1));
}

/* The slow pair is found, and what is promised is what a cluster without it takes. */
TEST (binding)
{
    struct setting s = chain (1.0), even = chain (10.0);
    struct costmodel_problem p = problem_of (&s);
    struct costmodel_binding b;
    struct error err = {""};
    double step_s = step_of (&s, in_order, NULL);
    json_t *doc;
    bool found;

    ok (costmodel_find_binding (&p, in_order, step_s, &b, &found, &err), &err);
    assert_true (found);
    assert_int_equal (b.src_gpu + b.dst_gpu, 3);
    assert_string_equal (b.use, "pp");
    CLOSE (b.bytes_per_s, 1e9, 1e-12);
    CLOSE (b.median_bytes_per_s, 10e9, 1e-12);
    CLOSE (b.step_s, step_of (&even, in_order, NULL), 1e-12);
    assert_true (b.step_s < step_s);
    doc = costmodel_binding_to_json (s.cluster, &b, true);
    CLOSE (json_number_value (json_object_get (doc, "gb_per_s")), 1, 1e-12);
    CLOSE (json_number_value (json_object_get (doc, "median_gb_per_s")), 10, 1e-12);
    json_decref (doc);

    p = problem_of (&even);
    ok (costmodel_find_binding (&p, in_order, b.step_s, &b, &found, &err), &err);
    assert_false (found);
    topology_cluster_destroy (s.cluster);
    topology_cluster_destroy (even.cluster);

    /* Of two nodes one way may be the slow one; a node alone has no way to another. */
    for (int nodes = 1; nodes < 3; nodes++) {
        static const double rate[] = {0, 1, 10, 0};

        s = small_job_as (
            cluster_of_rates (nodes, 2 / nodes, "a100-sxm4-80g", false, rate), 8, 1024,
            16, config_of (1, 2, 1, 1));
        p = problem_of (&s);
        ok (costmodel_find_binding (&p, in_order, step_of (&s, in_order, NULL), &b,
                                    &found, &err),
            &err);
        assert_int_equal (found, nodes > 1);
        topology_cluster_destroy (s.cluster);
    }
}

/* The slowest links that are used, there and back, by their share of what is usual there. */
TEST (slow_links)
{
    static const char line[] =
        "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":4,\"gpu_type\":\"a100-sxm4-"
        "80g\"}],"
        "\"links\":{\"intra\":{\"latency_us\":5,\"bandwidth_gb_per_s\":[[null,45,90,90],"
        "[30,null,90,90],[90,90,null,90],[90,90,90,null]]}}}";
    struct setting of[] = {chain (1.0), chain (1.0)};
    const double least[] = {1e9, 30e9}, next[] = {1e9, 45e9}, usual[] = {10e9, 90e9};

    topology_cluster_destroy (of[1].cluster);
    of[1].cluster = cluster_from (line);
    for (int i = 0; i < 2; i++) {
        struct costmodel_problem p = problem_of (&of[i]);
        struct costmodel_binding slow[COSTMODEL_SLOW_LINKS];
        struct error err = {""};
        int n;

        ok (costmodel_slow_links (&p, in_order, i ? COSTMODEL_INSIDE : COSTMODEL_BETWEEN,
                                  slow, &n, &err),
            &err);
        assert_int_equal (n, 6); /* three boundaries */
        CLOSE (slow[0].bytes_per_s, least[i], 1e-12);
        CLOSE (slow[1].bytes_per_s, next[i], 1e-12);
        for (int k = 0; k < n; k++) {
            assert_true ((slow[k].src_gpu + slow[k].dst_gpu == (i ? 1 : 3)) == (k < 2));
            assert_int_equal (abs (slow[k].src_gpu - slow[k].dst_gpu), 1);
            CLOSE (slow[k].median_bytes_per_s, usual[i], 1e-12);
            CLOSE (slow[k].step_s, step_of (&of[i], in_order, NULL), 1e-12);
        }
        ok (costmodel_slow_links (&p, in_order, i ? COSTMODEL_BETWEEN : COSTMODEL_INSIDE,
                                  slow, &n, &err),
            &err);
        assert_int_equal (n, 0);
        topology_cluster_destroy (of[i].cluster);
    }
}

/* Of more links than are told the slowest are, whatever the order in which they are met. */
TEST (slowest_links)
{
    enum { NODES = 16, MOST = COSTMODEL_SLOW_LINKS };

    for (int down = 0; down < 2; down++) {
        struct costmodel_binding slow[MOST + 1] = {[MOST] = {.src_gpu = -7}};
        struct text line = {0};
        struct setting s;
        struct costmodel_problem p;
        struct error err = {""};
        int gpu[NODES], n;

        for (int i = 0; i < NODES; i++) {
            text_add (&line, "%s1x1 a100-sxm4-80g inter:%d", i ? " + " : "",
                      down ? NODES - i : 1 + i);
            gpu[i] = i;
        }
        s = small_job_as (cluster_of (line.s), NODES, 1024, 16,
                          config_of (1, NODES, 1, 1));
        p = problem_of (&s);
        ok (costmodel_slow_links (&p, gpu, COSTMODEL_BETWEEN, slow, &n, &err), &err);
        assert_int_equal (n, MOST);
        for (int i = 0; i < MOST; i++) /* there and back */
            CLOSE (slow[i].bytes_per_s, (1 + i / 2) * 1e9, 1e-12);
        assert_int_equal (slow[MOST].src_gpu, -7);
        text_free (&line);
        topology_cluster_destroy (s.cluster);
    }
}

/* Estimated links that a placement uses are counted once each, with the worst of their errors. */
TEST (estimated)
{
    struct setting s = chain (10.0);
    struct costmodel_problem p;
    struct costmodel_estimate e;
    struct error err = {""};

    topology_cluster_destroy (s.cluster);
    s.cluster =
        cluster_from ("{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":"
                      "\"a100-sxm4-80g\"},"
                      "{\"name\":\"b\",\"gpus\":1,\"gpu_type\":\"a100-sxm4-80g\"},"
                      "{\"name\":\"c\",\"gpus\":1,\"gpu_type\":\"a100-sxm4-80g\"},"
                      "{\"name\":\"d\",\"gpus\":1,\"gpu_type\":\"a100-sxm4-80g\"}],"
                      "\"links\":{\"inter\":{\"latency_us\":5,\"bandwidth_gb_per_s\":10,"
                      "\"estimate_error\":"
                      "[[null,null,null,0.9],[null,null,0.1,null],[null,0.3,null,null],"
                      "[0.9,null,0.2,null]]}}}");
    p = problem_of (&s);
    ok (costmodel_estimate (&p, in_order, true, &e, &err), &err);
    free (e.unmeasured);
    assert_int_equal (e.links_used, 6);
    assert_int_equal (e.links_estimated, 3);
    CLOSE (e.estimate_error, .3, 1e-12);
    topology_cluster_destroy (s.cluster);
}

/* Without sharing a step is what it is where nobody knows what nodes reach together: with
 * all of experts', context's, gradients' and stages' traffic between nodes. */
TEST (sharing)
{
    static const char *const line[] = {"4x2 a100-sxm4-80g intra:100 inter:10",
                                       "4x2 a100-sxm4-80g intra:100 inter:10 node:11"};
    static const struct workload_degrees deg[] = {
        {2, 4, 1, 1, 1, 2, 1}, {1, 1, 8, 1, 8, 1, 1}, {1, 2, 2, 2, 1, 1, 1}};

    for (size_t i = 0; i < sizeof deg / sizeof *deg; i++) {
        double alone_s = 0, step_s, unshared_s;

        for (int k = 0; k < 2; k++) {
            struct setting s = small_job_as (
                cluster_of (line[k]), 8, 1024, 32,
                (struct workload_config){.deg = deg[i], .micro_batch = 1, .zero = 1});
            struct costmodel_problem p = problem_of (&s);
            struct error err = {""};

            if (deg[i].ep > 1) {
                s.model.experts = 8;
                s.model.top_k = 2;
                s.model.expert_ffn = 1024;
            }
            step_s = step_of (&s, in_order, NULL);
            ok (costmodel_unshared_step (&p, in_order, &unshared_s, &err), &err);
            if (k == 0)
                alone_s = step_s;
            assert_true (unshared_s == alone_s);
            assert_true (k == 0 ? step_s == alone_s : step_s > 1.001 * alone_s);
            topology_cluster_destroy (s.cluster);
        }
    }
}

/* Whole nanoseconds of a trace's microseconds. */
static double whole_ns (json_t *event, const char *key)
{
    double ns = 1e3 * json_number_value (json_object_get (event, key));

    assert_true (fabs (ns - round (ns)) < 1e-3);
    return round (ns);
}

#define TRACKS 64
#define ARROWS 512
struct arrow {
    int seen;
    double ns;
};

/* An arrow's three events are there, in this order, in time. */
static void follow (struct arrow *a, const char *phase, double ns, const char *bind)
{
    static const char order[] = "stf";

    assert_int_equal (phase[0], order[a->seen]);
    assert_true (ns >= a->ns);
    if (a->seen++ == 2)
        assert_string_equal (bind, "e");
    a->ns = ns;
}

/* Every operation is in the trace once, in time; what follows on a track starts no earlier
 * than what was before has ended, in whole nanoseconds, or viewers drop it; the last event
 * ends with the step.  Each track has one name.  An arrow goes from each operation whose output
 * another stage needs over the link's track to the one that needs it, and a send is as long as its
 * rate says. */
TEST (trace)
{
    static const struct {
        enum workload_schedule s;
        int operations; /* of a micro-batch on a stage */
        size_t sends;   /* of a micro-batch; in the middle of a V is none */
        double slow;    /* GB/s of a link: at .05 one send is not over before the next */
    } known[] = {{SCHEDULE_1F1B, 2, 6, 5.0},
                 {SCHEDULE_GPIPE, 2, 6, 5.0},
                 {SCHEDULE_GPIPE, 2, 6, 0.05},
                 {SCHEDULE_ZB1P, 3, 6, 5.0},
                 {SCHEDULE_V_HALF, 6, 12, 5.0}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct setting s = chain (known[i].slow);
        struct costmodel_problem p = problem_of (&s);
        struct text out = {0};
        struct error err = {""};
        double last = 0, free_ns[TRACKS] = {0};
        struct arrow arrow[ARROWS] = {{0}};
        int named[TRACKS] = {0};
        size_t k, operations = 0, sends = 0, arrows = 0;
        json_t *doc, *event;

        s.config.schedule = known[i].s;
        s.config.deg.vpp = workload_default_vpp (known[i].s);
        ok (costmodel_trace (&p, in_order, &out, &err), &err);
        doc = json_loads (text_str (&out), 0, NULL);
        assert_non_null (doc);
        json_array_foreach (json_object_get (doc, "traceEvents"), k, event)
        {
            const char *name = json_string_value (json_object_get (event, "name")),
                       *phase = json_string_value (json_object_get (event, "ph"));
            json_int_t track = json_integer_value (json_object_get (event, "tid")),
                       id = json_integer_value (json_object_get (event, "id"));
            const json_t *sent = json_object_get (event, "args");

            assert_true (track < TRACKS && id < ARROWS);
            named[track] += strcmp (name, "thread_name") == 0;
            if (strchr ("stf", phase[0])) {
                follow (&arrow[id], phase, whole_ns (event, "ts"),
                        json_string_value (json_object_get (event, "bp")));
                arrows++;
            }
            if (phase[0] != 'X')
                continue;
            if (track >= 4) {
                double dur_ns = whole_ns (event, "dur");

                assert_true (
                    fabs (json_number_value (json_object_get (sent, "bytes")) / dur_ns -
                          json_number_value (json_object_get (sent, "gb_per_s"))) <
                    1e-3 * json_number_value (json_object_get (sent, "gb_per_s")));
                sends++;
            }
            assert_true (whole_ns (event, "ts") >= free_ns[track]);
            free_ns[track] = whole_ns (event, "ts") + whole_ns (event, "dur");
            operations += track < 4 && strchr ("FBW", name[0]) != NULL;
            last = fmax (last, json_number_value (json_object_get (event, "ts")) +
                                   json_number_value (json_object_get (event, "dur")));
        }
        assert_int_equal (operations, 16 * 4 * known[i].operations);
        assert_int_equal (sends, 16 * known[i].sends);
        assert_int_equal (arrows, 3 * sends);
        for (k = 0; k < TRACKS; k++)
            assert_int_equal (named[k], free_ns[k] > 0);
        for (k = 0; k < ARROWS; k++)
            assert_true (arrow[k].seen == 0 || arrow[k].seen == 3);
        CLOSE (last * 1e-6, step_of (&s, in_order, NULL), 1e-6);
        json_decref (doc);
        text_free (&out);
        topology_cluster_destroy (s.cluster);
    }
}

/* A document tells what is hidden and what links are estimated where there is any. */
TEST (document)
{
    for (int any = 0; any < 2; any++) {
        struct costmodel_estimate e = {.step_s = 1,
                                       .links_estimated = any,
                                       .links_used = 3,
                                       .ep_hidden_s = .5 * any};
        json_t *doc = costmodel_estimate_to_json (&e);

        assert_int_equal (json_object_get (doc, "estimated_links") != NULL, any);
        assert_int_equal (json_object_get (doc, "ep_hidden_s") != NULL, any);
        assert_int_equal (json_object_size (doc), 8 + 2 * any);
        json_decref (doc);
    }
}

/* Of a micro-batch on a stage's chunk may be three operations, two sends and six arrows; a stage
 * alone sends nothing.  More than five million are refused. */
TEST (traces_too_long)
{
    static const struct {
        int pp, vpp, dp, microbatches;
        const char *said;
    } t[] = {{1, 1, 4, 416667, "a trace of 5000004 events; at most 5000000 are written"},
             {4, 2, 1, 56820, "a trace of 5000160 events; at most 5000000 are written"}};

    for (int i = 0; i < 2; i++) {
        struct setting s = chain (5);
        struct costmodel_problem p = problem_of (&s);
        struct text out = {0};
        struct error err = {""};

        s.config.deg = config_of (1, t[i].pp, t[i].dp, 1).deg;
        s.config.deg.vpp = t[i].vpp;
        s.job.global_batch = t[i].dp * t[i].microbatches;
        assert_int_equal (costmodel_trace (&p, in_order, &out, &err), ST_INVALID);
        assert_non_null (strstr (err.text, t[i].said));
        topology_cluster_destroy (s.cluster);
    }
}

struct seen {
    int n[4];
    double end_s[4];
};

static void see (void *context, const struct costmodel_event *e)
{
    struct seen *x = context;

    x->n[e->stage]++;
    x->end_s[e->stage] = fmax (x->end_s[e->stage], e->end_s);
}

/* Every replica can be watched: all of its operations, and none of another's; the step ends with
 * the last of them and what follows it. */
TEST (replicas)
{
    struct setting s = small_job_as (cluster_of ("8x1 a100-sxm4-80g inter:10"), 8, 1024,
                                     16, config_of (1, 4, 2, 1));
    struct costmodel_problem p = problem_of (&s);
    double step = 0, last[2] = {0};

    s.cluster->node[7].speed = calloc (1, sizeof (double));
    s.cluster->node[7].speed[0] = .5; /* the second replica's last stage */
    for (int d = 0; d < 2; d++) {
        struct seen seen = {{0}, {0}};
        struct costmodel_watch watch = {see, &seen};
        struct costmodel_tail tail[5] = {[4] = {.sync_s = -1}};
        struct error err = {""};

        ok (costmodel_watch_replica (&p, in_order, d, &watch, tail, &err), &err);
        assert_true (tail[4].sync_s == -1);
        for (int k = 0; k < 4; k++) {
            assert_int_equal (seen.n[k], 2 * 8);
            step = fmax (step, seen.end_s[k] + tail[k].sync_s + tail[k].optimizer_s);
            last[d] = fmax (last[d], seen.end_s[k]);
        }
    }
    assert_true (last[0] != last[1]);
    CLOSE (step, step_of (&s, in_order, NULL), 1e-9);
    topology_cluster_destroy (s.cluster);
}

/* Parts of a step are told from another's one by one; cost models have names. */
TEST (words)
{
    struct costmodel_breakdown a = {1, 2, 3, 4, 5, 6, 7, 8}, b = {9, 7, 5, 3, 1, 9, 7, 5};
    static const double less[] = {-8, -5, -2, 1, 4, -3, 0, 3};
    enum costmodel_kind kind = COSTMODEL_CRITICAL_PATH;

    costmodel_breakdown_less (&a, &b);
    for (int k = 0; k < COSTMODEL_PARTS; k++)
        CLOSE (costmodel_part_s (&a, k), less[k], 0);
    for (int k = 0; k < 3; k++) {
        assert_true (
            costmodel_kind_parse (costmodel_kind_name ((enum costmodel_kind) k), &kind));
        assert_int_equal (kind, k);
    }
    assert_false (costmodel_kind_parse ("pip", &kind));
}

/* Pipette's and AMP's sums, added up here from a stage's times (tp 1, dp 1). */
TEST (published)
{
    struct setting s = chain (5.0);
    struct costmodel_problem p = problem_of (&s);
    struct costmodel_compute k;
    struct costmodel_estimate pipette, amp;
    struct error err = {""};
    double most = 0, forward = 0, three = 0, sends;
    double bytes = 2.0 * s.job.seq * s.model.hidden;

    costmodel_compute (&s.model, &s.job, &s.config, &s.profile, s.cluster->node[0].type,
                       &k);
    for (int i = 0; i < 4; i++) {
        struct workload_stage held = workload_stage_of (&s.model, &s.config, s.layers, i);
        struct costmodel_stage_time t;

        costmodel_stage_compute (&s.config, &s.profile, &k, &held, &t);
        most = fmax (most, t.fwd_s + t.back_s);
        forward = fmax (forward, 3 * t.fwd_s);
        three += 3 * t.fwd_s;
    }
    sends = bytes / 10e9 + bytes / 5e9 + bytes / 10e9;
    p.kind = COSTMODEL_PIPETTE;
    ok (costmodel_estimate (&p, in_order, true, &pipette, &err), &err);
    p.kind = COSTMODEL_AMP;
    ok (costmodel_estimate (&p, in_order, true, &amp, &err), &err);
    CLOSE (pipette.step_s, 4 * (4 * most + 2 * sends) + 3 * most, 1e-12);
    CLOSE (amp.step_s, 15 * forward + three + sends, 1e-12);
    topology_cluster_destroy (s.cluster);

    /* AMP's gradients go around the ranks of both dp and cp. */
    struct workload_stage all = {.dense = 8, .embedding = true, .head = true};

    s = chain (10.0);
    s.config = config_of (1, 1, 2, 1);
    s.config.deg.cp = 2;
    s.layers[0] = 8;
    p.cluster = s.cluster;
    ok (costmodel_estimate (&p, in_order, true, &amp, &err), &err);
    bytes = 2 * workload_stage_params (&s.model, &s.config, &all).dense;
    CLOSE (amp.part.dp_s, 2 * 3 / 4. * bytes / 10e9, 1e-12);
    topology_cluster_destroy (s.cluster);
}

/* Of several tensor-parallel ranks' gradients the slowest count, whichever rank's they are. */
TEST (published_ranks)
{
    static const int slow[][4] = {{0, 2, 1, 3}, {2, 0, 3, 1}};

    for (int k = 0; k < 4; k++) {
        struct setting s = small_job_as (
            cluster_of ("2x1 a100-sxm4-80g inter:5 + 2x1 a100-sxm4-80g inter:10"), 8,
            1024, 16, config_of (2, 1, 2, 1));
        struct costmodel_problem p = problem_of (&s);
        struct costmodel_estimate mixed, fast;
        struct error err = {""};

        p.kind = k < 2 ? COSTMODEL_PIPETTE : COSTMODEL_AMP;
        ok (costmodel_estimate (&p, slow[k % 2], true, &mixed, &err), &err);
        topology_cluster_destroy (s.cluster);
        p.cluster = s.cluster = cluster_of ("4x1 a100-sxm4-80g inter:10");
        ok (costmodel_estimate (&p, slow[k % 2], true, &fast, &err), &err);
        assert_true (fast.part.dp_s > 0);
        CLOSE (mixed.part.dp_s, 2 * fast.part.dp_s, 1e-9);
        topology_cluster_destroy (s.cluster);
    }
}
