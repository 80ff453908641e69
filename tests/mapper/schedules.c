/* Every schedule, with and without experts: no split of the layers and no placement is
 * below the bounds, and the search takes all of them. */
#include "tests/lib/bounds.h"
#include "tests/lib/clusters.h"

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
    c->schedule = (enum workload_schedule) rng_below (r, SCHEDULES);
    d->vpp = c->schedule == SCHEDULE_INTERLEAVED ? 2 + rng_below (r, 3)
                                                 : workload_default_vpp (c->schedule);
    d->cp = rng_below (r, 5) ? 1 : 2;
    if (s->model.experts > 0) {
        d->ep = 1 << rng_below (r, 4);
        d->etp = rng_below (r, 2) ? d->tp : 1 << rng_below (r, 3);
    }
    c->zero = rng_below (r, 4);
    draw_recompute (r, s);
    c->sequence_parallel = d->tp > 1 && rng_below (r, 2);
    return possible (s);
}

/* Sends that wait, tokens that go to a node once, all-reduces and all-to-alls that are
 * hidden. */
TEST (bound_holds)
{
    static const char *const profiles[] = {"megatron-core", "megatron-v100",
                                           "megatron-bridge", "nemo-h100"};
    struct rng r = seeded (71);
    int rounds = getenv ("LINKWISE_LONG") ? 4000 : 60, tried[SCHEDULES] = {0};

    for (int round = 0; round < rounds; round++) {
        struct setting s = {.cluster = any_cluster (&r),
                            .model = random_model (&r),
                            .job = {.seq = 512, .global_batch = 1 << rng_below (&r, 8)},
                            .profile = profile_of (profiles[rng_below (&r, 4)])};
        struct mapper_problem p = unlimited (&s);
        int gpu[128];

        draw_overlap (&r, &s.profile);
        for (int i = 0; i < 300; i++) {
            double bound[2];

            if (!draw_config (&r, &s))
                continue;
            find_bounds (&p, &s, bound);
            for (int tries = 0; tries < 4; tries++) {
                draw_layers (&r, &s);
                draw_order (&r, &s, gpu);
                above (&s, "by hand", gpu, step_of (&s, gpu, NULL), 2, bound);
            }
            tried[s.config.schedule]++;
        }
        topology_cluster_destroy (s.cluster);
    }
    for (int k = 0; k < SCHEDULES; k++)
        assert_true (tried[k] > rounds / 4);
}

static bool in_memory (const struct setting *s, double limit_bytes)
{
    double peak[32];

    find_peaks (s, peak);
    for (int i = 0; i < s->config.deg.pp; i++)
        if (peak[i] > limit_bytes)
            return false;
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
TEST (whole_space)
{
    struct rng r = seeded (72);
    int rounds = getenv ("LINKWISE_LONG") ? 300 : 8, chunked = 0, experts = 0;

    for (int round = 0; round < rounds || (round < 8 * rounds && chunked * experts == 0);
         round++) {
        int nodes = 1 + rng_below (&r, 2), gpus = 4 / nodes, n = nodes * gpus;
        struct setting s = {.cluster =
                                random_cluster (&r, nodes, gpus, 4, 0, false, false),
                            .model = random_model (&r),
                            .job = {.seq = 512, .global_batch = 8 << rng_below (&r, 3)},
                            .profile = profile_of ("megatron-core")};
        double pct = rng_below (&r, 3) ? 95 : 3 + 10 * rng_unit (&r);
        double limit = pct / 100 * topology_gpu_type_of (s.cluster, 0)->memory_bytes;
        struct mapper_problem p = search_problem (&s), fixed;
        struct mapper_settings settings = mapper_settings_default ();
        struct found best, other;
        struct error err = {""};
        enum status st;
        int gpu[16];

        p.memory_limit_pct = pct;
        /* A framework that runs everything. */
        s.profile.schedules = (1u << SCHEDULES) - 1;
        if (round % 3) /* else replicas alone are best, most often */
            p.axes.pp = 2;
        settings.granularity = MAPPER_GPU;
        st = try_search (&p, &settings, &best, &err);
        if (st == ST_OK) {
            /* Which stage gets which kind of layer is not tried out. */
            assert_true (best.info.proven || s.model.dense_layers > 0 ||
                         s.model.expert_every > 1);
            take (&s, &best.r);
            assert_true (in_memory (&s, limit));
            assert_true (
                lists (&best.info, "schedule",
                       json_string (workload_schedule_name (s.config.schedule))));
            assert_true (lists (&best.info, "ep", json_integer (s.config.deg.ep)));
            assert_true (lists (&best.info, "etp", json_integer (s.config.deg.etp)));
            assert_true (lists (&best.info, "vpp", json_integer (s.config.deg.vpp)));
            chunked += s.config.deg.vpp > 1;
            experts += s.config.deg.ep > 1;
        } else
            assert_int_equal (st, ST_NOFIT);
        for (int i = 0; i < 400; i++) {
            if (!draw_config (&r, &s) ||
                (p.axes.pp != MAPPER_FREE && s.config.deg.pp != p.axes.pp))
                continue;
            draw_layers (&r, &s);
            in_file_order (gpu, n);
            shuffle (&r, gpu, n);
            if (!in_memory (&s, limit))
                continue;
            if (st != ST_OK)
                fail_msg ("%s fits, but: %s", workload_schedule_name (s.config.schedule),
                          err.text);
            above (&s, "by hand", gpu, step_of (&s, gpu, NULL), 1, &best.r.lower_bound_s);
        }
        if (st == ST_OK) {
            fixed = p;
            fixed.axes.schedule = rng_below (&r, SCHEDULES);
            if (try_search (&fixed, &settings, &other, &err) == ST_OK) {
                assert_int_equal (other.r.config.schedule, fixed.axes.schedule);
                assert_true (best.r.estimate.step_s <=
                             other.r.estimate.step_s * (1 + 1e-9));
                /* Bisection ends within a ten-millionth. */
                assert_true (best.r.lower_bound_s <= other.r.lower_bound_s * (1 + 1e-7));
                found_release (&other);
            }
            found_release (&best);
        }
        topology_cluster_destroy (s.cluster);
    }
    assert_true (chunked > 0 && experts > 0);
}

/* Placements of a setting, with any layers. */
static void stay_above (struct rng *r, struct setting *s, int orders)
{
    struct mapper_problem p = unlimited (s);
    double bound[BOUND_RUNS + 1];
    int gpu[DRAWN_NODES];

    bounds_in (&p, &s->config, false, bound);
    for (int i = 0; i < orders; i++) {
        draw_layers (r, s);
        in_file_order (gpu, s->cluster->n_gpus);
        shuffle (r, gpu, s->cluster->n_gpus);
        above (s, "few micro-batches", gpu, climb (r, s, gpu, 30), BOUND_RUNS + 1, bound);
    }
}

/* With few micro-batches a stage ends hardly later with a layer more, which hides more of its
 * synchronisation: it may end too late with one layer and in time with three. */
TEST (few_micro_batches)
{
    struct setting s = {.model = small_model (6),
                        .profile = profile_of ("megatron-core")};
    struct rng r = seeded (3);
    int rounds = getenv ("LINKWISE_LONG") ? 200 : 20, tried = 0;

    s.model.vocab *= 4;
    for (int i = 0; i < rounds * 10 * SCHEDULES; i++) {
        char line[80];

        snprintf (line, sizeof line, "2x6 a100-sxm4-80g intra:200 inter:%d",
                  1 << rng_below (&r, 7));
        s.cluster = cluster_of (line);
        s.config = config_of (1, 2 + rng_below (&r, 2), 0, 1);
        s.config.deg.dp = 12 / s.config.deg.pp;
        s.config.schedule = (enum workload_schedule) (i % SCHEDULES);
        s.config.deg.vpp = s.config.schedule == SCHEDULE_INTERLEAVED
                               ? 2
                               : workload_default_vpp (s.config.schedule);
        s.config.zero = rng_below (&r, 3);
        s.job.seq = 512 << rng_below (&r, 5);
        s.job.global_batch = s.config.deg.dp * (1 + rng_below (&r, 5));
        s.profile.time.dp_overlap = .25 * (1 + rng_below (&r, 4));
        if (possible (&s)) {
            stay_above (&r, &s, 4);
            tried++;
        }
        topology_cluster_destroy (s.cluster);
    }
    assert_true (tried > 10 * rounds);
}

/* What only forks of the framework run is priced when asked for, never chosen. */
TEST (on_request)
{
    struct setting s =
        small_job (cluster_of ("2x4 a100-sxm4-80g intra:200 inter:10"), 12, 2048, 16);
    struct mapper_problem p = search_problem (&s);
    struct mapper_settings settings = mapper_settings_default ();
    struct found o;

    settings.granularity = MAPPER_GPU;
    p.axes.pp = 4;
    o = search (&p, &settings);
    assert_true (lists (&o.info, "schedule", json_string ("1f1b")));
    assert_true (lists (&o.info, "schedule", json_string ("interleaved")));
    assert_false (lists (&o.info, "schedule", json_string ("gpipe")));
    assert_false (lists (&o.info, "schedule", json_string ("zb2p")));
    found_release (&o);
    p.axes.schedule = SCHEDULE_ZB2P;
    o = search (&p, &settings);
    assert_int_equal (o.r.config.schedule, SCHEDULE_ZB2P);
    found_release (&o);
    s.profile.schedules = 1u << SCHEDULE_1F1B | 1u << SCHEDULE_ZB2P;
    p.axes.schedule = MAPPER_FREE;
    o = search (&p, &settings);
    assert_true (lists (&o.info, "schedule", json_string ("zb2p")));
    found_release (&o);
    topology_cluster_destroy (s.cluster);
}
