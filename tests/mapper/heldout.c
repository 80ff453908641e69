/* The gain over the default order on measurements that the plan was not made from: none on
 * noise, found where links are slow every time, equal to pricing the plan by hand. */
#include "tests/lib/clusters.h"
#include "tests/lib/search.h"
#include "topology/edit/edit.h"

static double normal (struct rng *r)
{
    return sqrt (-2 * log (1 - rng_unit (r))) * cos (2 * M_PI * rng_unit (r));
}

static struct setting job_on (const char *cluster)
{
    return (struct setting){.cluster = cluster_of (cluster),
                            .model = model_of ("llama-2-13b"),
                            .job = {.seq = 4096, .global_batch = 64},
                            .profile = profile_of ("megatron-core"),
                            .config = config_of (8, 4, 4, 1)};
}

static struct topology_passes no_passes (const struct setting *s)
{
    return (struct topology_passes){.base = s->cluster, .n = s->cluster->n_nodes};
}

/* One more pass: persist[] times noise. */
static void add_pass (struct topology_passes *p, const double *persist, double sd,
                      double collisions, struct rng *r)
{
    int n = p->n;
    double *rate = malloc ((size_t) (n * n) * sizeof *rate);

    p->rate = realloc (p->rate, ((size_t) p->passes + 1) * sizeof *p->rate);
    assert_non_null (rate);
    assert_non_null (p->rate);
    for (int k = 0; k < n * n; k++) {
        rate[k] = k / n == k % n ? NAN : persist[k] * exp (sd * normal (r));
        if (rng_unit (r) < collisions)
            rate[k] *= 0.5;
    }
    p->rate[p->passes++] = rate;
}

/* Plan on the median of all passes and hold each out in turn. */
static struct mapper_heldout plan_on (const struct setting *s,
                                      const struct topology_passes *p, double quantile,
                                      double *in_sample, struct mapper_result *r)
{
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_heldout_settings how = mapper_heldout_settings_default ();
    struct mapper_problem q = search_config (s);
    struct topology_cluster *c;
    struct mapper_info info;
    struct mapper_heldout h;
    struct error err = {""};
    double *rate = malloc ((size_t) (p->n * p->n) * sizeof *rate);
    bool *use = malloc ((size_t) p->passes * sizeof *use);

    for (int k = 0; k < p->passes; k++)
        use[k] = true;
    how.quantile = quantile;
    how.draws = getenv ("LINKWISE_LONG") ? 200 : 20;
    ok (topology_passes_combine (p, use, quantile, rate, &err), &err);
    ok (topology_passes_cluster (p, rate, &c, &err), &err);
    q.cluster = c;
    ok (mapper_search (&q, &settings, r, &info, &err), &err);
    *in_sample = 1 - r->estimate.step_s / r->default_order_step_s;
    ok (mapper_heldout (&q, &settings, &how, p, NULL, r, &h, &err), &err);
    assert_int_equal (h.measurements, p->passes);
    assert_true (h.low <= h.gain && h.gain <= h.high);
    assert_true (h.kept_default == (h.low <= 0));
    if (h.kept_default) { /* and it is priced as what it is */
        CLOSE (r->estimate.step_s, r->default_order_step_s, 1e-12);
        for (int k = 0; k < (int) workload_world (&r->config.deg); k++)
            assert_int_equal (r->gpu[k], k);
    }
    assert_true (r->lower_bound_s <= r->estimate.step_s);
    mapper_info_release (&info);
    topology_cluster_destroy (c);
    free (rate);
    free (use);
    return h;
}

/* Of clusters without a lasting difference at most 5 % claim a gain. */
TEST (noise)
{
    static const struct {
        int passes;
        double sd, collisions;
    } cases[] = {{2, 0.05, 0}, {3, 0.05, 0}, {2, 0.05, 0.05}, {4, 0.1, 0.02}};
    struct setting s = job_on ("16x8 a100-sxm4-80g intra:230 inter:20");
    bool long_run = getenv ("LINKWISE_LONG");
    int rounds = long_run ? 100 : 1, n = long_run ? 4 : 3, claims = 0, found = 0;
    double flat[16 * 16];
    struct rng r = {5};

    for (int k = 0; k < 16 * 16; k++)
        flat[k] = 20e9;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < n; i++) {
            struct topology_passes p = no_passes (&s);
            struct mapper_result plan;
            struct mapper_heldout h;
            double in_sample;

            for (int k = 0; k < cases[i].passes; k++)
                add_pass (&p, flat, cases[i].sd, cases[i].collisions, &r);
            h = plan_on (&s, &p, 0.5, &in_sample, &plan);
            claims += !h.kept_default;
            found += in_sample > 0.001;
            mapper_result_release (&plan);
            topology_passes_release (&p);
        }
    /* The search believes in a gain, the other measurements do not. */
    assert_true (found > 2 * rounds);
    assert_true (claims <= 0.05 * n * rounds);
    topology_cluster_destroy (s.cluster);
}

/* The same with drawn clusters, whose nodes differ too: a seed each, so that nothing lasts. */
TEST (noise_of_nodes)
{
    struct setting s = job_on ("16x8 a100-sxm4-80g intra:230 inter:24");
    struct topology_synth draw = topology_synth_default ();
    int rounds = getenv ("LINKWISE_LONG") ? 200 : 1, claims = 0;

    draw.preset = "calm";
    draw.gpu_type = "a100-sxm4-80g";
    for (int round = 0; round < rounds; round++) {
        struct topology_passes p = no_passes (&s);
        struct mapper_result plan;
        double in_sample;

        for (int k = 0; k < 2; k++) {
            struct topology_cluster *c;
            double persist[16 * 16];
            struct rng unused = {1};

            draw.seed = (unsigned long) (2 * round + k);
            c = cluster_synthesized (&draw);
            for (int i = 0; i < 16; i++)
                for (int j = 0; j < 16; j++)
                    persist[i * 16 + j] =
                        i == j ? 1 : topology_node_link (c, i, j).bytes_per_s;
            add_pass (&p, persist, 0, 0, &unused);
            topology_cluster_destroy (c);
        }
        claims += !plan_on (&s, &p, 0.5, &in_sample, &plan).kept_default;
        mapper_result_release (&plan);
        topology_passes_release (&p);
    }
    assert_true (claims <= 0.05 * rounds);
    topology_cluster_destroy (s.cluster);
}

/* Links that are slow every time are left, and the gain is claimed. */
TEST (planted)
{
    struct setting s = job_on ("17x8 a100-sxm4-80g intra:230 inter:20");
    double persist[17 * 17];
    struct rng r = {9};

    for (int k = 0; k < 17 * 17; k++)
        persist[k] = 20e9;
    /* Between nodes that follow each other in the default order's first ring, and one of a
     * pipeline. */
    persist[0 * 17 + 1] = persist[1 * 17 + 0] = 4e9;
    persist[2 * 17 + 6] = persist[6 * 17 + 2] = 4e9;
    for (int passes = 2; passes <= (getenv ("LINKWISE_LONG") ? 3 : 2); passes++) {
        struct topology_passes p = no_passes (&s);
        struct mapper_result plan;
        struct mapper_heldout h;
        double in_sample;

        for (int k = 0; k < passes; k++)
            add_pass (&p, persist, 0.03, 0, &r);
        h = plan_on (&s, &p, 0.5, &in_sample, &plan);
        assert_false (h.kept_default);
        assert_true (h.low > 0.01);
        assert_true (h.gain < in_sample + 0.01);
        /* No replica ring of stage 0 has nodes 0 and 1 both. */
        for (int stage = 0; stage < 4; stage++) {
            bool zero = false, one = false;

            for (int k = stage * 32; k < stage * 32 + 32; k++) {
                zero |= plan.gpu[k] / 8 == 0;
                one |= plan.gpu[k] / 8 == 1;
            }
            assert_false (zero && one);
        }
        mapper_result_release (&plan);
        topology_passes_release (&p);
    }
    topology_cluster_destroy (s.cluster);
}

/* The step's spread over measurements: none where they are the same, wider with their noise. */
TEST (spread)
{
    struct setting s = job_on ("9x8 a100-sxm4-80g intra:230 inter:20");
    double rate[9 * 9], wide = 0, in_sample;
    struct rng r = {13};

    s.config = config_of (8, 4, 2, 1);
    for (int k = 0; k < 9 * 9; k++)
        rate[k] = 5e9;
    for (int i = 0; i < 3; i++) {
        struct topology_passes p = no_passes (&s);
        struct mapper_result plan;
        struct mapper_heldout h;

        for (int k = 0; k < 3; k++)
            add_pass (&p, rate, .06 * i, 0, &r);
        h = plan_on (&s, &p, 0.5, &in_sample, &plan);
        if (i == 0)
            CLOSE (h.step_p50_s, plan.estimate.step_s, 1e-9);
        assert_true (h.step_p95_s / h.step_p50_s >= 1 + 1.3 * wide);
        wide = h.step_p95_s / h.step_p50_s - 1;
        assert_true (i == 0 ? wide < 1e-9 : wide > .002 * i);
        mapper_result_release (&plan);
        topology_passes_release (&p);
    }
    topology_cluster_destroy (s.cluster);
}

/* A link that is bad in one measurement of three: the median does not see it, a low
 * quantile does. */
TEST (robust)
{
    struct setting s = job_on ("17x8 a100-sxm4-80g intra:230 inter:20");
    struct topology_passes p = no_passes (&s);
    double good[17 * 17], bad[17 * 17], in_sample;
    struct mapper_result plan;
    struct rng r = {11};

    for (int k = 0; k < 17 * 17; k++)
        good[k] = bad[k] = 20e9;
    bad[0 * 17 + 1] = bad[1 * 17 + 0] = 2e9;
    add_pass (&p, good, 0, 0, &r);
    add_pass (&p, bad, 0, 0, &r);
    add_pass (&p, good, 0, 0, &r);
    plan_on (&s, &p, 0.5, &in_sample, &plan);
    assert_true (in_sample < 1e-6);
    mapper_result_release (&plan);
    plan_on (&s, &p, 0.05, &in_sample, &plan);
    assert_true (in_sample > 0.02);
    mapper_result_release (&plan);
    topology_passes_release (&p);
    topology_cluster_destroy (s.cluster);
}

/* Two real measurements of 16 nodes: planned on one and priced on the other is what a hand
 * would price. */
TEST (two_real_ones)
{
    static const char *const file[] = {"examples/clusters/a100-16-before.json",
                                       "examples/clusters/a100-16-after.json"};

    for (int k = 0; k < (getenv ("LINKWISE_LONG") ? 2 : 1); k++) {
        struct setting s = job_on (file[k]), other = s;
        struct topology_passes p;
        struct mapper_settings settings = mapper_settings_default ();
        struct mapper_heldout_settings how = mapper_heldout_settings_default ();
        struct mapper_problem q = search_config (&s);
        const bool held_out[] = {false, true};
        struct found o;
        struct mapper_heldout h;
        struct error err = {""};
        int order[128], placed[128];
        double gain;

        other.cluster = cluster_of (file[1 - k]);
        for (int i = 0; i < 128; i++)
            order[i] = i;
        ok (topology_passes_read (s.cluster, &file[1 - k], 1, &p, NULL, &err), &err);
        assert_int_equal (p.passes, 2);
        o = search (&q, NULL);
        memcpy (placed, o.r.gpu, sizeof placed);
        memcpy (other.layers, o.r.layers, 4 * sizeof (int));
        ok (mapper_heldout (&q, &settings, &how, &p, held_out, &o.r, &h, &err), &err);
        gain = 1 - step_of (&other, placed, NULL) / step_of (&other, order, NULL);
        assert_true (fabs (h.gain - gain) < 1e-6);
        assert_true (h.high - h.low > 1e-4);
        found_release (&o);
        topology_passes_release (&p);
        topology_cluster_destroy (other.cluster);
        topology_cluster_destroy (s.cluster);
    }
}

/* The samples of a cluster's own measurement. */
TEST (own_passes)
{
    const char *text =
        "{\"version\":1,\"name\":\"t\",\"nodes\":["
        "{\"name\":\"a\",\"gpus\":1,\"gpu_type\":\"t4\"},"
        "{\"name\":\"b\",\"gpus\":1,\"gpu_type\":\"t4\"}],\"links\":{\"inter\":"
        "{\"bandwidth_gb_per_s\":[[null,2],[3,null]],\"latency_us\":9}},"
        "\"measured\":{\"tool\":\"bwprobe\",\"passes\":2,"
        "\"endpoints\":[{\"node\":\"b\",\"gpu\":0},{\"node\":\"a\",\"gpu\":0}],"
        "\"pairs\":[{\"src\":1,\"dst\":0,\"isolated_samples_gb_per_s\":[1.5,2.5,9]},"
        "{\"src\":0,\"dst\":1,\"isolated_samples_gb_per_s\":[3]}]}}";
    struct topology_cluster *c = cluster_from (text), *median;
    struct topology_passes p;
    struct error err = {""};
    double rate[4];

    ok (topology_passes_own (c, &p, &err), &err);
    assert_int_equal (p.passes, 2);
    assert_false (p.by_file);
    CLOSE (p.rate[0][1], 1.5e9, 1e-12);
    CLOSE (p.rate[1][1], 2.5e9, 1e-12);
    CLOSE (p.rate[0][2], 3e9, 1e-12);
    assert_true (isnan (p.rate[1][2]));
    ok (topology_passes_fill (&p, 1, rate, &err), &err);
    CLOSE (rate[2], 2.5e9, 1e-12); /* the pass's median */
    ok (topology_passes_combine (&p, (const bool[]){true, true}, 0.5, rate, &err), &err);
    ok (topology_passes_cluster (&p, rate, &median, &err), &err);
    CLOSE (topology_node_link (median, 0, 1).bytes_per_s, 2e9, 1e-12);
    CLOSE (topology_node_link (median, 1, 0).bytes_per_s, 3e9, 1e-12);
    topology_cluster_destroy (median);
    topology_passes_release (&p);
    topology_cluster_destroy (c);
}
