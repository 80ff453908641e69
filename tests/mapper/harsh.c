/* The lower bound where everything is unlike at once: node sizes, types, speeds, links and
 * what nodes reach together, few layers beside a large head, every schedule.  Orders and
 * splits that are far from the planner's climb from there towards the bound. */
#include "mapper/bound/bound_private.h"
#include "tests/lib/bounds.h"
#include "tests/lib/clusters.h"

#define MOST_GPUS 48
#define MOST_STAGES 8

/* Up to five nodes of one size or of several, of one type or of three. */
static struct topology_cluster *harsh_cluster (struct rng *r)
{
    bool slow_inside = rng_below (r, 3) == 0, unlike = rng_below (r, 2);

    return drawn_cluster (
        r,
        &(struct cluster_draw){.nodes = 1 + rng_below (r, 5),
                               .gpus = unlike ? 8 : 1 + rng_below (r, 8),
                               .most_gpus = unlike ? MOST_GPUS : 0,
                               .type = rng_below (r, 2),
                               .types = 1 + rng_below (r, 3),
                               .speeds = rng_below (r, 3) ? 0 : 4,
                               .inside = {slow_inside ? 1 : 100, slow_inside ? 30 : 400},
                               .between = {1, 100},
                               .forms = true});
}

/* Few layers beside a head of any size; with experts in all layers, some or none. */
static struct workload_model harsh_model (struct rng *r)
{
    struct workload_model m = small_model (2 + rng_below (r, 15));

    m.hidden = 256 << rng_below (r, 4);
    m.ffn = 4 * m.hidden;
    m.head_dim = m.hidden / m.heads;
    m.vocab = 1000 << rng_below (r, 10);
    m.tied = rng_below (r, 4) == 0;
    if (rng_below (r, 6) == 0) { /* latent attention */
        m.q_rank = rng_below (r, 2) ? 0 : m.hidden / 4;
        m.kv_rank = m.hidden / 8;
        m.nope_dim = m.v_dim = m.head_dim;
        m.rope_dim = m.head_dim / 2;
    }
    if (rng_below (r, 2))
        return m;
    m.experts = 4 << rng_below (r, 3);
    m.top_k = 1 + rng_below (r, 4);
    m.expert_ffn = 256 << rng_below (r, 5);
    m.shared_ffn = rng_below (r, 2) ? 0 : 1024;
    m.dense_layers = rng_below (r, 2) ? 0 : rng_below (r, 4);
    m.expert_every = rng_below (r, 2) ? 1 : 1 + rng_below (r, 3);
    return m;
}

/* What frameworks do unlike each other, some of it in no shipped profile. */
static struct workload_profile harsh_profile (struct rng *r)
{
    static const char *const names[] = {"megatron-core",   "megatron-v100",
                                        "megatron-bridge", "nemo-h100",
                                        "llm-foundry",     "megatron-deepspeed"};
    struct workload_profile p = profile_of (names[rng_below (r, 6)]);

    draw_overlap (r, &p);
    if (rng_below (r, 3))
        return p;
    p.time.all_reduce = (enum workload_all_reduce) rng_below (r, 6);
    p.time.blocking_sends = rng_below (r, 2);
    p.time.deduplicated_dispatch = rng_below (r, 2);
    p.time.all_reduced_gradients = rng_below (r, 2);
    p.time.tp_comm_overlap = rng_below (r, 2);
    p.time.tp_overlap = .5 * rng_below (r, 3);
    p.time.dp_overlap = .5 * rng_below (r, 3);
    p.time.dp_bucket_bytes = rng_below (r, 2) ? 0 : 1e6 * (1 + rng_below (r, 100));
    p.time.collective_s = rng_below (r, 2) ? 1e-5 : 1e-4;
    p.time.microbatch_s = rng_below (r, 2) ? 0 : 1e-3;
    p.separate_gate = rng_below (r, 2);
    return p;
}

static bool draw_config (struct rng *r, struct setting *s)
{
    static const enum workload_schedule all[] = {
        SCHEDULE_INTERLEAVED, SCHEDULE_INTERLEAVED, SCHEDULE_1F1B, SCHEDULE_GPIPE,
        SCHEDULE_ZB1P,        SCHEDULE_ZB2P,        SCHEDULE_ZBV,  SCHEDULE_V_HALF,
        SCHEDULE_V_MIN,       SCHEDULE_INTERLEAVED, SCHEDULE_1F1B, SCHEDULE_DUALPIPEV};
    struct workload_config *c = &s->config;
    struct workload_degrees *d = &c->deg;
    int room;

    *c = config_of (1 << rng_below (r, 4), 1 + rng_below (r, MOST_STAGES), 1,
                    1 << rng_below (r, 3));
    d->cp = rng_below (r, 4) ? 1 : 1 + rng_below (r, 4);
    room = s->cluster->n_gpus / (d->tp * d->pp * d->cp);
    d->dp = room > 1 && rng_below (r, 2) ? 1 + rng_below (r, room) : room;
    if (room < 1)
        return false;
    c->schedule = d->pp > 1 ? all[rng_below (r, 12)] : SCHEDULE_1F1B;
    d->vpp = c->schedule == SCHEDULE_INTERLEAVED ? 2 + rng_below (r, 3)
                                                 : workload_default_vpp (c->schedule);
    if (s->model.experts > 0) {
        d->ep = rng_below (r, 2) ? 1 << rng_below (r, 4) : 1 + rng_below (r, 8);
        d->etp = rng_below (r, 2) ? d->tp : 1 << rng_below (r, 3);
    }
    /* Any number of micro-batches, most often few. */
    s->job.global_batch =
        d->dp * c->micro_batch *
        (c->schedule == SCHEDULE_INTERLEAVED ? d->pp * (1 + rng_below (r, 5))
                                             : 1 + rng_below (r, 20));
    c->zero = rng_below (r, d->pp == 1 || rng_below (r, 4) == 0 ? 4 : 2);
    c->shard = d->dp > 1 && rng_below (r, 3) == 0 ? 2 + rng_below (r, d->dp / 2) : 0;
    c->recompute = (enum workload_recompute) rng_below (r, 3);
    if (c->recompute == RECOMPUTE_FULL && rng_below (r, 2))
        c->recompute_layers = 1 + rng_below (r, 2);
    c->sequence_parallel = d->tp > 1 && rng_below (r, 2);
    return possible (s);
}

/* A layer (of each chunk where these hold as many) of one stage to another where that is no longer.
 */
static double climb_layers (struct rng *r, struct setting *s, const int *gpu, double step,
                            int moves)
{
    int pp = s->config.deg.pp, least, unit;

    layer_units (s, &least, &unit);
    for (int i = 0; i < moves && pp > 1; i++) {
        int from = rng_below (r, pp), to = rng_below (r, pp);
        double now;

        if (from == to || s->layers[from] - unit < least)
            continue;
        s->layers[from] -= unit;
        s->layers[to] += unit;
        now = step_of (s, gpu, NULL);
        if (now <= step) {
            step = now;
        } else {
            s->layers[from] += unit;
            s->layers[to] -= unit;
        }
    }
    return step;
}

/* What the planner finds for the configuration, and what exchanges make of it. */
static void check_planned (struct rng *r, struct setting *s,
                           const double bound[BOUND_RUNS + 1])
{
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_problem p = unlimited (s);
    struct found o;
    struct error err = {""};
    int n = s->cluster->n_gpus, gpu[MOST_GPUS], at = 0;
    bool used[MOST_GPUS] = {false};
    double step;

    p.axes = mapper_axes_of (&s->config);
    settings.granularity = (enum mapper_granularity) rng_below (r, 3);
    settings.threads = 1;
    settings.seed = rng_next (r);
    if (try_search (&p, &settings, &o, &err) != ST_OK)
        return;
    take (s, &o.r);
    for (; at < workload_world (&s->config.deg); at++)
        used[gpu[at] = o.r.gpu[at]] = true;
    for (int k = 0; k < n; k++)
        if (!used[k])
            gpu[at++] = k;
    step = climb (r, s, gpu, 100);
    above (s, "planned", gpu, step, BOUND_RUNS + 1, bound);
    check_in_its_own (s, gpu, step);
    found_release (&o);
}

static void check_below (struct rng *r, struct setting *s, int orders)
{
    struct mapper_problem p = unlimited (s);
    double bound[BOUND_RUNS + 1];
    int gpu[MOST_GPUS];

    bounds_in (&p, &s->config, true, bound);
    for (int i = 0; i < orders; i++) {
        double step;

        draw_layers (r, s);
        draw_order (r, s, gpu);
        step = climb (r, s, gpu, 100);
        step = climb_layers (r, s, gpu, step, 20);
        step = climb (r, s, gpu, 100);
        above (s, "by hand", gpu, step, BOUND_RUNS + 1, bound);
        check_in_its_own (s, gpu, step);
    }
    /* Smaller ones are enumerated; larger ones take seconds. */
    if (s->cluster->n_gpus > 8 && rng_below (r, 16) == 0 &&
        (s->cluster->n_gpus <= 16 || getenv ("LINKWISE_LONG")))
        check_planned (r, s, bound);
}

TEST (below_everything)
{
    struct rng r = seeded (53);
    int rounds = getenv ("LINKWISE_LONG") ? 3000 : 3, tried = 0;

    for (int round = 0; round < rounds; round++) {
        struct setting s = {.cluster = harsh_cluster (&r),
                            .model = harsh_model (&r),
                            .job = {.seq = 256 << rng_below (&r, 4)},
                            .profile = harsh_profile (&r)};

        for (int i = 0; i < 60; i++)
            if (draw_config (&r, &s)) {
                check_below (&r, &s, 3);
                tried++;
            }
        topology_cluster_destroy (s.cluster);
    }
    assert_true (tried > 2 * rounds);
}

/* One order by hand; the cluster is released. */
static void check_order (struct setting *s, const int *gpu)
{
    struct mapper_problem p = unlimited (s);
    double bound[2];

    find_bounds (&p, s, bound);
    above (s, "by hand", gpu, step_of (s, gpu, NULL), 2, bound);
    topology_cluster_destroy (s->cluster);
}

/* A node of an order by hand, with links of one rate inside. */
struct by_hand {
    int gpus;
    const char *type;
    double speed[8]; /* 0 where all are alike */
    int latency_us;
    double gb_per_s;
};

static struct topology_cluster *cluster_by_hand (int nodes, const struct by_hand *node,
                                                 const char *inter)
{
    struct text t = {0};

    for (int i = 0; i < nodes; i++)
        add_node (&t, i, node[i].gpus, node[i].type,
                  node[i].speed[0] > 0 ? node[i].speed : NULL);
    text_add (&t, "],\"links\":{\"intra\":[");
    for (int i = 0; i < nodes; i++)
        text_add (&t, "%s{\"latency_us\":%d,\"bandwidth_gb_per_s\":%g}", i ? "," : "",
                  node[i].latency_us, node[i].gb_per_s);
    text_add (&t, "],\"inter\":{%s}}}", inter);
    return cluster_written (&t);
}

/* Nothing crosses from slower to faster GPUs where no stage is on these. */
TEST (all_on_slower)
{
    const struct by_hand node[] = {{6, "a100-sxm4-80g", {0}, 300, 267},
                                   {3, "h100-sxm5-80g", {0}, 10, 284}};
    struct setting s = {.cluster = cluster_by_hand (
                            2, node, "\"latency_us\":300,\"bandwidth_gb_per_s\":1.2"),
                        .model = small_model (10),
                        .job = {.seq = 512, .global_batch = 2},
                        .profile = profile_of ("nemo-h100"),
                        .config = config_of (1, 5, 1, 2),
                        .layers = {1, 2, 3, 3, 1}};
    const int gpu[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

    check_order (&s, gpu);
}

/* A group that has to span nodes lies between those of two nodes, and half of it crosses
 * on either side. */
TEST (spanning_saves_crossings)
{
    const struct by_hand node[] = {{6, "h100-sxm5-80g", {0}, 10, 245},
                                   {6, "h100-sxm5-80g", {0}, 3, 200},
                                   {2, "h100-sxm5-80g", {0}, 10, 155},
                                   {4, "h100-sxm5-80g", {0}, 0, 124}};
    struct setting s = {.cluster =
                            cluster_by_hand (4, node,
                                             "\"latency_us\":300,\"node_gb_per_s\":2.243,"
                                             "\"bandwidth_gb_per_s\":60"),
                        .model = small_model (11),
                        .job = {.seq = 2048, .global_batch = 2},
                        .profile = profile_of ("megatron-deepspeed"),
                        .config = config_of (4, 4, 1, 2),
                        .layers = {3, 6, 1, 1}};
    const int gpu[] = {17, 15, 16, 14, 9, 6, 7, 11, 10, 8, 3, 0, 2, 4, 5, 1, 12, 13};

    s.model.hidden = 512;
    s.model.head_dim = 32;
    s.model.ffn = 2048;
    s.model.vocab = 64000;
    s.config.schedule = SCHEDULE_ZB1P;
    s.config.recompute = RECOMPUTE_SELECTIVE;
    s.config.sequence_parallel = false;
    check_order (&s, gpu);
}

/* Rings of one lane whose members are on two nodes, though TP groups would need three. */
TEST (uneven_rings)
{
    const struct by_hand node[] = {{3, "h100-sxm5-80g", {0.6, 1, 1}, 0, 380},
                                   {3, "h100-sxm5-80g", {1, 1, 0.6}, 3, 338},
                                   {3, "h100-sxm5-80g", {1, 1, 0.6}, 0, 242},
                                   {3, "h100-sxm5-80g", {0.6, 1, 1}, 3, 163},
                                   {3, "h100-sxm5-80g", {1, 1, 1}, 10, 273}};
    struct setting s = {.cluster =
                            cluster_by_hand (5, node,
                                             "\"latency_us\":3,\"node_gb_per_s\":33.58,"
                                             "\"bandwidth_gb_per_s\":6"),
                        .model = small_model (11),
                        .job = {.seq = 1024, .global_batch = 24},
                        .profile = profile_of ("megatron-v100"),
                        .config = config_of (4, 1, 3, 1),
                        .layers = {11}};
    const int gpu[] = {0, 1, 6, 8, 3, 12, 7, 14, 4, 2, 10, 13, 5, 9, 11};

    s.model.hidden = 512;
    s.model.head_dim = 32;
    s.model.ffn = 2048;
    s.model.vocab = 256000;
    s.config.zero = 0;
    s.config.recompute = RECOMPUTE_FULL;
    check_order (&s, gpu);
}

/* Where NVLS is all that a profile allows, GPUs without it go by rings: of two, sooner. */
TEST (rings_without_nvls)
{
    const struct by_hand node[] = {{2, "h100-sxm5-80g", {0}, 3, 1},
                                   {2, "a100-sxm4-80g", {0}, 3, 1}};
    const char *between = "\"latency_us\":3,\"bandwidth_gb_per_s\":0.5";
    struct setting s = {.cluster = cluster_by_hand (2, node, between),
                        .model = small_model (4),
                        .job = {.seq = 512, .global_batch = 2},
                        .profile = profile_of ("megatron-core"),
                        .config = config_of (1, 1, 2, 1),
                        .layers = {4}};
    const int gpu[] = {2, 3, 0, 1};

    s.profile.time.all_reduce = ALL_REDUCE_NVLS;
    s.config.zero = 0;
    check_order (&s, gpu);
    s.cluster = cluster_by_hand (2, node, between);
    s.config = config_of (2, 1, 1, 1);
    s.config.sequence_parallel = false;
    check_order (&s, gpu);
}
