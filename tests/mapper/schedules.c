/* Every schedule, with and without experts: no split of the layers and no placement is
 * below the bounds. */
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
              one_of (r, 50, 200, 600), one_of (r, 1, 10, 200),
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

static void bound_holds (void **state)
{
    struct rng r = {71};
    int rounds = getenv ("LINKWISE_LONG") ? 4000 : 250, tried[8] = {0};
    (void) state;

    for (int round = 0; round < rounds; round++) {
        struct setting s = {.cluster = any_cluster (&r),
                            .model = random_model (&r),
                            .job = {.seq = 512, .global_batch = 1 << rng_below (&r, 8)},
                            .profile = profile_of (rng_below (&r, 4) ? "megatron-core"
                                                                     : "megatron-v100")};
        struct mapper_problem p = {.model = &s.model,
                                   .job = &s.job,
                                   .profile = &s.profile,
                                   .cluster = s.cluster,
                                   .axes = mapper_axes_free (),
                                   .memory_limit_pct = 1e9}; /* no limit */
        int n = s.cluster->n_gpus, gpu[128];

        for (int i = 0; i < 300; i++) {
            double loose, tight, step;
            struct error err = {""};

            if (!draw_config (&r, &s))
                continue;
            ok (mapper_lower_bound (&p, &s.config, false, &loose, &err), &err);
            ok (mapper_lower_bound (&p, &s.config, true, &tight, &err), &err);
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

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (bound_holds)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
