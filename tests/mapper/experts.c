/* The lower bound of models with experts: below placements that put exchanging ranks or
 * those that hold the same experts on a node, and below what single exchanges make of
 * them; near them where nodes are equal. */
#include "mapper/bound/bound.h"
#include "tests/lib/fixture.h"

/* Experts in all layers, in some, or behind others; what they hold weighs much. */
static struct workload_model expert_model (struct rng *r, bool alike)
{
    struct workload_model m = small_model (2 + rng_below (r, 9));

    m.experts = 4 << rng_below (r, 3);
    m.top_k = 1 + rng_below (r, 3);
    m.expert_ffn = 512 << rng_below (r, 4);
    m.shared_ffn = rng_below (r, 2) ? 0 : 1024;
    if (!alike) {
        m.dense_layers = rng_below (r, 3);
        m.expert_every = 1 + rng_below (r, 3);
    }
    return m;
}

/* Nodes of one size or two, odd ones too; links faster inside or between. */
static struct topology_cluster *expert_cluster (struct rng *r)
{
    static const int sizes[] = {1, 2, 3, 4, 6, 8};
    int gpus = sizes[rng_below (r, 6)], nodes = 1 + rng_below (r, gpus < 4 ? 8 : 4);
    int inside = 10 << rng_below (r, 6), between = 5 << rng_below (r, 7);
    char line[200], more[80] = "";

    if (rng_below (r, 4) == 0)
        return random_cluster (r, nodes, gpus, 5, 0, rng_below (r, 2),
                               rng_below (r, 3) == 0);
    if (rng_below (r, 3) == 0)
        snprintf (more, sizeof more, " + %dx%d %s intra:%d inter:%d",
                  1 + rng_below (r, 3), sizes[rng_below (r, 6)],
                  rng_below (r, 2) ? "a100-sxm4-80g" : "h100-sxm5-80g", inside, between);
    snprintf (line, sizeof line, "%dx%d a100-sxm4-80g intra:%d inter:%d%s", nodes, gpus,
              inside, between, more);
    return cluster_of (line);
}

static bool draw_config (struct rng *r, struct setting *s)
{
    static const enum workload_schedule all[] = {SCHEDULE_1F1B, SCHEDULE_GPIPE,
                                                 SCHEDULE_INTERLEAVED, SCHEDULE_ZB1P};
    struct workload_config *c = &s->config;
    struct workload_degrees *d = &c->deg;

    *c = config_of (1 << rng_below (r, 3), 1, 1, 1 << rng_below (r, 2));
    if (rng_below (r, 2))
        d->pp = 2 + rng_below (r, 3);
    d->cp = rng_below (r, 4) ? 1 : 2;
    d->dp = s->cluster->n_gpus / (d->tp * d->pp * d->cp);
    if (d->dp > 1 && rng_below (r, 4) == 0)
        d->dp = 1 + rng_below (r, d->dp);
    d->ep = rng_below (r, 2) ? 1 << rng_below (r, 5) : 1 + rng_below (r, 8);
    d->etp = rng_below (r, 2) ? 1 : 1 << rng_below (r, 3);
    c->schedule = d->pp > 1 ? all[rng_below (r, 4)] : SCHEDULE_1F1B;
    if (c->schedule == SCHEDULE_INTERLEAVED)
        d->vpp = 2 + rng_below (r, 2);
    c->zero = rng_below (r, d->pp == 1 ? 4 : 2);
    c->recompute = (enum workload_recompute) rng_below (r, 3);
    return d->dp > 0 && workload_config_check (&s->model, &s->job, c, NULL) == ST_OK &&
           workload_world (d) <= s->cluster->n_gpus && s->model.layers % d->vpp == 0;
}

/* Ranks of a stage in tiles of `ep` exchanging ones by `same` that hold the same experts;
 * expert TP groups stay together.  @param[out] rank [stage] in the order of GPUs */
static void tile_stage (const struct workload_degrees *d, int ep, int same, int *rank)
{
    int others = workload_expert_shards (d), n = 0;

    for (int k0 = 0; k0 < others; k0 += same)
        for (int e0 = 0; e0 < d->ep; e0 += ep)
            for (int k = k0; k < k0 + same && k < others; k++)
                for (int e = e0; e < e0 + ep && e < d->ep; e++)
                    for (int t = 0; t < d->etp; t++)
                        rank[n++] = (k * d->ep + e) * d->etp + t;
}

/* Stage after stage in tiles, or at random. */
static void draw_order (struct rng *r, const struct setting *s, int *gpu)
{
    const struct workload_degrees *d = &s->config.deg;
    int n = s->cluster->n_gpus, stage = d->tp * d->cp * d->dp, rank[128];
    int ep = 1 + rng_below (r, d->ep),
        same = 1 + rng_below (r, workload_expert_shards (d));

    for (int k = 0; k < n; k++)
        gpu[k] = k;
    if (rng_below (r, 5) == 0) {
        shuffle (r, gpu, n);
        return;
    }
    tile_stage (d, ep, same, rank);
    for (int p = 0; p < d->pp; p++)
        for (int k = 0; k < stage; k++)
            gpu[p * stage + rank[k]] = p * stage + k;
}

static void draw_layers (struct rng *r, struct setting *s)
{
    int pp = s->config.deg.pp, v = s->config.deg.vpp;

    workload_layers_even (s->model.layers / v, pp, s->layers);
    for (int moves = rng_below (r, 3); moves > 0; moves--) {
        int from = rng_below (r, pp), to = rng_below (r, pp);

        if (s->layers[from] > 1) {
            s->layers[from]--;
            s->layers[to]++;
        }
    }
    for (int k = 0; k < pp; k++)
        s->layers[k] *= v;
}

/* The least step that exchanges of two GPUs lead to from an order. */
static double climb (struct rng *r, const struct setting *s, int *gpu, int moves)
{
    struct costmodel_problem p = problem_of (s);
    struct costmodel_state *state;
    struct error err = {""};
    int n = s->cluster->n_gpus;
    double step;

    ok (costmodel_state_create (&p, gpu, n, &state, &err), &err);
    step = costmodel_state_price (state).step_s;
    for (int i = 0; i < moves && n > 1; i++) {
        int a = rng_below (r, n), b = rng_below (r, n);
        double now;

        if (a == b)
            continue;
        costmodel_state_exchange (state, &a, &b, 1);
        now = costmodel_state_price (state).step_s;
        if (now <= step)
            step = now;
        else
            costmodel_state_exchange (state, &a, &b, 1);
    }
    memcpy (gpu, costmodel_state_gpus (state), (size_t) n * sizeof (int));
    costmodel_state_destroy (state);
    return step;
}

static struct mapper_problem problem_for (const struct setting *s)
{
    return (struct mapper_problem){.model = &s->model,
                                   .job = &s->job,
                                   .profile = &s->profile,
                                   .cluster = s->cluster,
                                   .axes = mapper_axes_free (),
                                   .memory_limit_pct = 1e9}; /* no limit */
}

static void check_below (struct rng *r, struct setting *s, int orders)
{
    struct mapper_problem p = problem_for (s);
    struct error err = {""};
    double loose, tight;
    int gpu[128];

    ok (bound_of_problem (&p, &s->config, false, &loose, &err), &err);
    ok (bound_of_problem (&p, &s->config, true, &tight, &err), &err);
    for (int i = 0; i < orders; i++) {
        const struct workload_degrees *d = &s->config.deg;
        double step;

        draw_layers (r, s);
        draw_order (r, s, gpu);
        climb (r, s, gpu, 60);
        step = step_of (s, gpu, NULL);
        if (step < loose * (1 - 1e-9) || step < tight * (1 - 1e-9))
            fail_msg (
                "%s, tp %d pp %d dp %d cp %d ep %d etp %d vpp %d zero %d: step %.9g "
                "below a bound, %.9g or %.9g",
                workload_schedule_name (s->config.schedule), d->tp, d->pp, d->dp, d->cp,
                d->ep, d->etp, d->vpp, s->config.zero, step, loose, tight);
    }
}

static void below_everything (void **state)
{
    static const char *const profiles[] = {"megatron-core", "megatron-v100",
                                           "megatron-bridge", "nemo-h100"};
    struct rng r = seeded (31);
    int rounds = getenv ("LINKWISE_LONG") ? 3000 : 120, tried = 0;
    (void) state;

    for (int round = 0; round < rounds; round++) {
        struct setting s = {.cluster = expert_cluster (&r),
                            .model = expert_model (&r, rng_below (&r, 3)),
                            .job = {.seq = 256 << rng_below (&r, 3),
                                    .global_batch = 4 << rng_below (&r, 5)},
                            .profile = profile_of (profiles[rng_below (&r, 4)])};

        draw_overlap (&r, &s.profile);
        for (int i = 0; i < 60; i++)
            if (draw_config (&r, &s)) {
                check_below (&r, &s, 3);
                tried++;
            }
        topology_cluster_destroy (s.cluster);
    }
    assert_true (tried > 3 * rounds);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (below_everything)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
