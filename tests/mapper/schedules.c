/* Every schedule, with and without experts: no split of the layers and no placement is
 * below the bounds, and the search takes all of them. */
#include "mapper/bound/bound.h"
#include "memest/memest.h"
#include "tests/lib/fixture.h"

static const enum workload_schedule all[] = {
    SCHEDULE_1F1B, SCHEDULE_GPIPE, SCHEDULE_INTERLEAVED, SCHEDULE_ZB1P,
    SCHEDULE_ZB2P, SCHEDULE_ZBV,   SCHEDULE_V_HALF,      SCHEDULE_V_MIN};

static int one_of (struct rng *r, int a, int b, int c)
{
    int k = rng_below (r, 3);

    return k == 0 ? a : k == 1 ? b : c;
}

/* Dense, or layers with experts behind, between or instead of others. */
static struct workload_model random_model (struct rng *r)
{
    struct workload_model m = small_model (4 + rng_below (r, 13));

    if (rng_below (r, 3) == 0)
        return m;
    m.experts = one_of (r, 4, 8, 12);
    m.top_k = 1 + rng_below (r, 3);
    m.expert_ffn = one_of (r, 256, 1024, 4096);
    m.shared_ffn = rng_below (r, 2) ? 0 : 1024;
    m.dense_layers = rng_below (r, 2) ? 0 : 1 + rng_below (r, 4);
    m.expert_every = 1 + rng_below (r, 2);
    return m;
}

/* One line of equal nodes, or random links, or two generations. */
static struct topology_cluster *any_cluster (struct rng *r)
{
    int nodes = 1 + rng_below (r, 5), gpus = 1 << rng_below (r, 4);
    char line[200];

    if (rng_below (r, 2))
        return random_cluster (r, nodes, gpus, 5, 0, rng_below (r, 2),
                               rng_below (r, 4) == 0);
    snprintf (line, sizeof line, "%dx%d a100-sxm4-80g intra:%d inter:%d%s", nodes, gpus,
              one_of (r, 20, 200, 600), one_of (r, 1, 10, 90),
              rng_below (r, 2) ? " + 2x4 h100-sxm5-80g intra:300 inter:20" : "");
    return cluster_of (line);
}

static bool draw_config (struct rng *r, struct setting *s)
{
    struct workload_config *c = &s->config;
    struct workload_degrees *d = &c->deg;

    *c = config_of (1 << rng_below (r, 4), 1 + rng_below (r, 6), 1 << rng_below (r, 4),
                    1 << rng_below (r, 3));
    c->schedule = all[rng_below (r, 8)];
    d->vpp = c->schedule == SCHEDULE_INTERLEAVED ? 2 + rng_below (r, 3)
                                                 : workload_default_vpp (c->schedule);
    d->cp = rng_below (r, 5) ? 1 : 2;
    if (s->model.experts > 0) {
        d->ep = 1 << rng_below (r, 4);
        d->etp = rng_below (r, 2) ? d->tp : 1 << rng_below (r, 3);
    }
    c->zero = rng_below (r, d->pp == 1 ? 4 : 2);
    c->recompute = (enum workload_recompute) rng_below (r, 3);
    c->sequence_parallel = d->tp > 1 && rng_below (r, 2);
    return workload_config_check (&s->model, &s->job, c, NULL) == ST_OK &&
           workload_world (d) <= s->cluster->n_gpus && s->model.layers % d->vpp == 0;
}

/* Every chunk of a stage holds as many layers. */
static void draw_layers (struct rng *r, struct setting *s)
{
    int pp = s->config.deg.pp, v = s->config.deg.vpp, left = s->model.layers / v;

    if (rng_below (r, 2))
        workload_layers_even (left, pp, s->layers);
    else
        for (int k = 0; k < pp; k++) {
            int rest = pp - 1 - k;

            s->layers[k] = rest ? 1 + rng_below (r, left - rest) : left;
            left -= s->layers[k];
        }
    for (int k = 0; k < pp; k++)
        s->layers[k] *= v;
}

/* Sends that wait, tokens that go to a node once, all-reduces and all-to-alls that are
 * hidden. */
static void bound_holds (void **state)
{
    static const char *const profiles[] = {"megatron-core", "megatron-v100",
                                           "megatron-bridge", "nemo-h100"};
    struct rng r = seeded (71);
    int rounds = getenv ("LINKWISE_LONG") ? 4000 : 250, tried[8] = {0};
    (void) state;

    for (int round = 0; round < rounds; round++) {
        struct setting s = {.cluster = any_cluster (&r),
                            .model = random_model (&r),
                            .job = {.seq = 512, .global_batch = 1 << rng_below (&r, 8)},
                            .profile = profile_of (profiles[rng_below (&r, 4)])};
        struct mapper_problem p = {.model = &s.model,
                                   .job = &s.job,
                                   .profile = &s.profile,
                                   .cluster = s.cluster,
                                   .axes = mapper_axes_free (),
                                   .memory_limit_pct = 1e9}; /* no limit */
        int n = s.cluster->n_gpus, gpu[128];

        draw_overlap (&r, &s.profile);
        for (int i = 0; i < 300; i++) {
            double loose, tight, step;
            struct error err = {""};

            if (!draw_config (&r, &s))
                continue;
            ok (bound_of_problem (&p, &s.config, false, &loose, &err), &err);
            ok (bound_of_problem (&p, &s.config, true, &tight, &err), &err);
            for (int k = 0; k < n; k++)
                gpu[k] = k;
            for (int tries = 0; tries < 4; tries++) {
                draw_layers (&r, &s);
                if (rng_below (&r, 3))
                    shuffle (&r, gpu, n);
                step = step_of (&s, gpu, NULL);
                if (step < loose * (1 - 1e-9) || step < tight * (1 - 1e-9))
                    fail_msg ("%s, tp %d pp %d dp %d cp %d ep %d etp %d vpp %d: step "
                              "%.9g below a bound, %.9g or %.9g",
                              workload_schedule_name (s.config.schedule), s.config.deg.tp,
                              s.config.deg.pp, s.config.deg.dp, s.config.deg.cp,
                              s.config.deg.ep, s.config.deg.etp, s.config.deg.vpp, step,
                              loose, tight);
            }
            tried[s.config.schedule]++;
        }
        topology_cluster_destroy (s.cluster);
    }
    for (int k = 0; k < 8; k++)
        assert_true (tried[k] > rounds / 4);
}

static struct mapper_result search (const struct mapper_problem *p,
                                    struct mapper_info *info)
{
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_result r = {0};
    struct error err = {""};

    settings.granularity = MAPPER_GPU;
    ok (mapper_search (p, &settings, &r, info, &err), &err);
    return r;
}

static bool in_memory (const struct setting *s, double limit_bytes)
{
    struct memest_problem memory = {&s->model, &s->job, &s->config, &s->profile,
                                    MEMEST_LINKWISE};

    for (int i = 0; i < s->config.deg.pp; i++) {
        struct workload_stage held =
            workload_stage_of (&s->model, &s->config, s->layers, i);
        struct memest_stage m;

        memest_stage (&memory, i, &held, &m);
        if (m.peak_bytes > limit_bytes)
            return false;
    }
    return true;
}

static bool lists (const struct mapper_info *info, const char *axis, json_t *value)
{
    json_t *list = json_object_get (info->space, axis), *v;
    size_t i;
    bool found = false;

    json_array_foreach (list, i, v) found = found || json_equal (v, value);
    json_decref (value);
    return found;
}

/* With every axis free: a legal plan, no configuration, split or placement below its bound,
 * and no axis that is better fixed. */
static void whole_space (void **state)
{
    struct rng r = seeded (72);
    int rounds = getenv ("LINKWISE_LONG") ? 300 : 16, chunked = 0, experts = 0;
    (void) state;

    for (int round = 0; round < rounds; round++) {
        int nodes = 1 + rng_below (&r, 2), gpus = 4 / nodes, n = nodes * gpus;
        struct setting s = {.cluster =
                                random_cluster (&r, nodes, gpus, 4, 0, false, false),
                            .model = random_model (&r),
                            .job = {.seq = 512, .global_batch = 8 << rng_below (&r, 3)},
                            .profile = profile_of ("megatron-core")};
        double pct = rng_below (&r, 3) ? 95 : 3 + 10 * rng_unit (&r);
        double limit = pct / 100 * topology_gpu_type_of (s.cluster, 0)->memory_bytes;
        struct mapper_problem p = {.model = &s.model,
                                   .job = &s.job,
                                   .profile = &s.profile,
                                   .cluster = s.cluster,
                                   .axes = mapper_axes_free (),
                                   .memory_limit_pct = pct},
                              fixed;
        struct mapper_settings settings = mapper_settings_default ();
        struct mapper_result best = {0}, other;
        struct mapper_info info;
        struct error err = {""};
        enum status st;
        int gpu[16];

        /* A framework that runs everything. */
        s.profile.schedules = (1u << SCHEDULES) - 1;
        if (round % 3) /* else replicas alone are best, most often */
            p.axes.pp = 2;
        settings.granularity = MAPPER_GPU;
        st = mapper_search (&p, &settings, &best, &info, &err);
        if (st == ST_OK) {
            /* Which stage gets which kind of layer is not tried out. */
            assert_true (info.proven || s.model.dense_layers > 0 ||
                         s.model.expert_every > 1);
            s.config = best.config;
            memcpy (s.layers, best.layers, (size_t) s.config.deg.pp * sizeof (int));
            assert_true (in_memory (&s, limit));
            assert_true (
                lists (&info, "schedule",
                       json_string (workload_schedule_name (s.config.schedule))));
            assert_true (lists (&info, "ep", json_integer (s.config.deg.ep)));
            assert_true (lists (&info, "etp", json_integer (s.config.deg.etp)));
            assert_true (lists (&info, "vpp", json_integer (s.config.deg.vpp)));
            chunked += s.config.deg.vpp > 1;
            experts += s.config.deg.ep > 1;
        } else
            assert_int_equal (st, ST_NOFIT);
        for (int i = 0; i < 400; i++) {
            double step;

            if (!draw_config (&r, &s) ||
                (p.axes.pp != MAPPER_FREE && s.config.deg.pp != p.axes.pp))
                continue;
            draw_layers (&r, &s);
            for (int k = 0; k < n; k++)
                gpu[k] = k;
            shuffle (&r, gpu, n);
            if (!in_memory (&s, limit))
                continue;
            if (st != ST_OK)
                fail_msg ("%s fits, but: %s", workload_schedule_name (s.config.schedule),
                          err.text);
            step = step_of (&s, gpu, NULL);
            if (step < best.lower_bound_s * (1 - 1e-9))
                fail_msg ("%s, tp %d pp %d dp %d ep %d vpp %d: step %.9g below %.9g",
                          workload_schedule_name (s.config.schedule), s.config.deg.tp,
                          s.config.deg.pp, s.config.deg.dp, s.config.deg.ep,
                          s.config.deg.vpp, step, best.lower_bound_s);
        }
        mapper_info_release (&info);
        if (st == ST_OK) {
            fixed = p;
            fixed.axes.schedule = (int) all[rng_below (&r, 8)];
            if (mapper_search (&fixed, &settings, &other, &info, &err) == ST_OK) {
                assert_int_equal (other.config.schedule, fixed.axes.schedule);
                assert_true (best.estimate.step_s <= other.estimate.step_s * (1 + 1e-9));
                assert_true (best.lower_bound_s <= other.lower_bound_s * (1 + 1e-9));
                mapper_result_release (&other);
            }
            mapper_info_release (&info);
        }
        mapper_result_release (&best);
        topology_cluster_destroy (s.cluster);
    }
    assert_true (chunked > 0 && experts > 0);
}

/* What only forks of the framework run is priced when asked for, never chosen. */
static void on_request (void **state)
{
    struct setting s = {.cluster = cluster_of ("2x4 a100-sxm4-80g intra:200 inter:10"),
                        .model = small_model (12),
                        .job = {.seq = 2048, .global_batch = 16},
                        .profile = profile_of ("megatron-core")};
    struct mapper_problem p = {.model = &s.model,
                               .job = &s.job,
                               .profile = &s.profile,
                               .cluster = s.cluster,
                               .axes = mapper_axes_free (),
                               .memory_limit_pct = 95};
    struct mapper_info info;
    struct mapper_result r;
    (void) state;

    p.axes.pp = 4;
    r = search (&p, &info);
    assert_true (lists (&info, "schedule", json_string ("1f1b")));
    assert_true (lists (&info, "schedule", json_string ("interleaved")));
    assert_false (lists (&info, "schedule", json_string ("gpipe")));
    assert_false (lists (&info, "schedule", json_string ("zb2p")));
    mapper_result_release (&r);
    mapper_info_release (&info);
    p.axes.schedule = SCHEDULE_ZB2P;
    r = search (&p, &info);
    assert_int_equal (r.config.schedule, SCHEDULE_ZB2P);
    mapper_result_release (&r);
    mapper_info_release (&info);
    s.profile.schedules = 1u << SCHEDULE_1F1B | 1u << SCHEDULE_ZB2P;
    p.axes.schedule = MAPPER_FREE;
    r = search (&p, &info);
    assert_true (lists (&info, "schedule", json_string ("zb2p")));
    mapper_result_release (&r);
    mapper_info_release (&info);
    topology_cluster_destroy (s.cluster);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (bound_holds),
                                       cmocka_unit_test (whole_space),
                                       cmocka_unit_test (on_request)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
