/* The lower bound where everything is unlike at once: node sizes, types, speeds, links and
 * what nodes reach together, few layers beside a large head, every schedule.  Orders and
 * splits that are far from the planner's climb from there towards the bound. */
#include "mapper/bound/bound_private.h"
#include "mapper/mapper.h"
#include "memest/memest.h"
#include "tests/lib/fixture.h"

#define MOST_GPUS 48
#define MOST_STAGES 8

/* A number of a wide range, or one that many links share. */
static double drawn (struct rng *r, double lo, double hi)
{
    return lo * pow (hi / lo, rng_unit (r));
}

/* One number or a matrix. */
static void add_rates (struct text *t, struct rng *r, int n, double lo, double hi)
{
    bool matrix = n > 1 && rng_below (r, 3) == 0;

    if (!matrix) {
        text_add (t, "%.4g", drawn (r, lo, hi));
        return;
    }
    text_add (t, "[");
    for (int i = 0; i < n; i++) {
        text_add (t, "%s[", i ? "," : "");
        for (int j = 0; j < n; j++)
            text_add (t, "%s%.4g", j ? "," : "", drawn (r, lo, hi));
        text_add (t, "]");
    }
    text_add (t, "]");
}

static int latency_us (struct rng *r)
{
    static const int some[] = {0, 3, 10, 300};

    return some[rng_below (r, 4)];
}

/* What all GPUs of a node reach: together, and to another node. */
static void add_totals (struct text *t, struct rng *r, int nodes)
{
    int how = rng_below (r, 4);

    if (how == 0)
        text_add (t, "\"node_gb_per_s\":%.4g,", drawn (r, 2, 400));
    if (how == 1) {
        text_add (t, "\"node_gb_per_s\":");
        for (int i = 0; i < nodes; i++)
            if (rng_below (r, 5))
                text_add (t, "%s%.4g", i ? "," : "[", drawn (r, 2, 400));
            else
                text_add (t, "%snull", i ? "," : "[");
        text_add (t, "],");
    }
    if (nodes > 1 && rng_below (r, 3) == 0) {
        text_add (t, "\"node_pair_gb_per_s\":");
        add_rates (t, r, nodes, 1, 400);
        text_add (t, ",");
    }
}

/* Links between nodes: of nodes, of rails too, or of single GPUs. */
static void add_between (struct text *t, struct rng *r, int nodes, int gpus)
{
    int how = rng_below (r, 6), rails = 1 + rng_below (r, 4);

    text_add (t, ",\"%s\":{\"latency_us\":", how == 0 ? "gpu" : "inter");
    if (rng_below (r, 4) == 0)
        add_rates (t, r, how == 0 ? gpus : nodes, 1, 1000);
    else
        text_add (t, "%d", latency_us (r));
    text_add (t, ",");
    add_totals (t, r, nodes);
    for (int k = 0; k < rails && how == 1; k++) {
        text_add (t,
                  "%s{\"latency_us\":%d,\"bandwidth_gb_per_s\":", k ? "," : "\"rails\":[",
                  latency_us (r));
        add_rates (t, r, nodes, 1, 100);
        text_add (t, k == rails - 1 ? "}]," : "}");
    }
    text_add (t, "\"bandwidth_gb_per_s\":");
    add_rates (t, r, how == 0 ? gpus : nodes, 1, 100);
    text_add (t, "}");
}

/* Up to five nodes of one size or of several, of one type or of three. */
static struct topology_cluster *harsh_cluster (struct rng *r)
{
    static const char *const type[] = {"h100-sxm5-80g", "a100-sxm4-80g", "v100-sxm2-32g"};
    static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 8};
    struct text t = {0};
    int nodes = 1 + rng_below (r, 5), size[5], all = sizes[rng_below (r, 9)], gpus = 0;
    int types = 1 + rng_below (r, 3), unlike = rng_below (r, 2),
        slower = rng_below (r, 3) == 0, slow_inside = rng_below (r, 3) == 0;

    text_add (&t, "{\"version\":1,\"name\":\"harsh\",\"nodes\":[");
    for (int i = 0; i < nodes; i++) {
        size[i] = unlike ? sizes[rng_below (r, 9)] : all;
        gpus += size[i];
        text_add (&t, "%s{\"name\":\"n%d\",\"gpus\":%d,\"gpu_type\":\"%s\"", i ? "," : "",
                  i, size[i], type[rng_below (r, types)]);
        if (slower) {
            text_add (&t, ",\"speed\":[");
            for (int k = 0; k < size[i]; k++)
                text_add (&t, "%s%g", k ? "," : "", rng_below (r, 5) ? 1.0 : 0.6);
            text_add (&t, "]");
        }
        text_add (&t, "}");
    }
    text_add (&t, "],\"links\":{\"intra\":[");
    for (int i = 0; i < nodes; i++) {
        text_add (&t, "%s{\"latency_us\":%d,", i ? "," : "", latency_us (r));
        if (rng_below (r, 6) == 0)
            text_add (&t, "\"gpu_gb_per_s\":%.4g,", drawn (r, 1, 400));
        text_add (&t, "\"bandwidth_gb_per_s\":");
        add_rates (&t, r, size[i], slow_inside ? 1 : 100, slow_inside ? 30 : 400);
        text_add (&t, "}");
    }
    text_add (&t, "]");
    if (nodes > 1)
        add_between (&t, r, nodes, gpus);
    text_add (&t, "}}");

    struct topology_cluster *c = cluster_from (text_str (&t));

    text_free (&t);
    return c;
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
        SCHEDULE_V_MIN,       SCHEDULE_INTERLEAVED, SCHEDULE_1F1B};
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
    c->schedule = d->pp > 1 ? all[rng_below (r, 11)] : SCHEDULE_1F1B;
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
    c->recompute = (enum workload_recompute) rng_below (r, 3);
    if (c->recompute == RECOMPUTE_FULL && rng_below (r, 2))
        c->recompute_layers = 1 + rng_below (r, 2);
    c->sequence_parallel = d->tp > 1 && rng_below (r, 2);
    return workload_config_check (&s->model, &s->job, c, NULL) == ST_OK &&
           s->model.layers % d->vpp == 0;
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

/* GPUs in file order or at random, and ranks of TP groups beside each other or apart. */
static void draw_order (struct rng *r, const struct setting *s, int *gpu)
{
    const struct workload_degrees *d = &s->config.deg;
    int n = s->cluster->n_gpus, world = (int) workload_world (d), how = rng_below (r, 4);

    for (int k = 0; k < n; k++)
        gpu[k] = k;
    if (how == 0)
        shuffle (r, gpu, n);
    for (int k = 0; how == 1 && k < world; k++) /* a group's next rank is dp x pp on */
        gpu[k] = k % d->tp * (world / d->tp) + k / d->tp;
    for (int k = 0; how == 2 && k < world; k++)
        gpu[k] = world - 1 - k;
}

/* The least step that exchanges of two GPUs lead to. */
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
    return step_of (s, gpu, NULL);
}

/* A chunk's layer of one stage to another where that is no longer. */
static double climb_layers (struct rng *r, struct setting *s, const int *gpu, double step,
                            int moves)
{
    int pp = s->config.deg.pp, v = s->config.deg.vpp;

    for (int i = 0; i < moves && pp > 1; i++) {
        int from = rng_below (r, pp), to = rng_below (r, pp);
        double now;

        if (from == to || s->layers[from] <= v)
            continue;
        s->layers[from] -= v;
        s->layers[to] += v;
        now = step_of (s, gpu, NULL);
        if (now <= step) {
            step = now;
        } else {
            s->layers[from] += v;
            s->layers[to] -= v;
        }
    }
    return step;
}

static void say_failed (const struct setting *s, const int *gpu, double step,
                        const double *bound)
{
    const struct workload_config *c = &s->config;
    const struct workload_degrees *d = &c->deg;
    struct text t = {0};

    for (int k = 0; k < d->pp; k++)
        text_add (&t, " %d", s->layers[k]);
    text_add (&t, "; GPUs");
    for (int k = 0; k < workload_world (d); k++)
        text_add (&t, " %d", gpu[k]);
    fail_msg (
        "%s, tp %d pp %d dp %d cp %d ep %d etp %d vpp %d zero %d recompute %d:%d, "
        "%d micro-batches, experts %d: step %.9g below a bound, %.9g %.9g %.9g; layers%s",
        workload_schedule_name (c->schedule), d->tp, d->pp, d->dp, d->cp, d->ep, d->etp,
        d->vpp, c->zero, (int) c->recompute, c->recompute_layers,
        workload_microbatches (&s->job, c), s->model.experts, step, bound[0], bound[1],
        bound[2], text_str (&t));
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

/* The bounds in a pool. */
static void bounds_in (const struct mapper_problem *p, const struct workload_config *c,
                       double bound[BOUND_RUNS + 1])
{
    struct pool pool;
    struct error err = {""};

    ok (pool_init (&pool, p, &err), &err);
    for (int how = BOUND_FRACTIONS; how <= BOUND_RUNS; how++)
        bound[how] = bound_of (&pool, c, (enum bound_level) how);
    pool_release (&pool);
    /* Bisection ends within a ten-millionth. */
    assert_true (bound[BOUND_SPLITS] >= bound[BOUND_FRACTIONS] * (1 - 1e-6));
    assert_true (bound[BOUND_RUNS] >= bound[BOUND_FRACTIONS] * (1 - 1e-6));
}

static void check_step (const struct setting *s, const int *gpu, double step,
                        const double bound[BOUND_RUNS + 1])
{
    for (int how = BOUND_FRACTIONS; how <= BOUND_RUNS; how++)
        if (!(step >= bound[how] * (1 - 1e-9)))
            say_failed (s, gpu, step, bound);
}

/* The least memory limit that an order keeps, in percent. */
static double least_limit_pct (const struct setting *s, const int *gpu)
{
    struct memest_problem memory = {&s->model, &s->job, &s->config, &s->profile,
                                    MEMEST_LINKWISE};
    int pp = s->config.deg.pp, slot = (int) workload_world (&s->config.deg) / pp;
    double most = 0.0;

    for (int i = 0; i < pp; i++) {
        struct workload_stage held =
            workload_stage_of (&s->model, &s->config, s->layers, i);
        struct memest_stage m;

        memest_stage (&memory, i, &held, &m);
        for (int k = i * slot; k < (i + 1) * slot; k++)
            most =
                fmax (most, m.peak_bytes /
                                topology_gpu_type_of (s->cluster, gpu[k])->memory_bytes);
    }
    return 100 * most * (1 + 1e-12);
}

/* The bound of no more nodes, and no more memory, than an order takes. */
static void check_in_its_own (const struct setting *s, const int *gpu, double step)
{
    struct mapper_problem p = problem_for (s);
    bool used[5] = {false};
    double bound[BOUND_RUNS + 1];

    for (int k = 0; k < workload_world (&s->config.deg); k++)
        used[s->cluster->node_of_gpu[gpu[k]]] = true;
    p.node_allowed = used;
    p.memory_limit_pct = least_limit_pct (s, gpu);
    bounds_in (&p, &s->config, bound);
    check_step (s, gpu, step, bound);
}

/* What the planner finds for the configuration, and what exchanges make of it. */
static void check_planned (struct rng *r, struct setting *s,
                           const double bound[BOUND_RUNS + 1])
{
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_problem p = problem_for (s);
    struct mapper_result result = {0};
    struct mapper_info info;
    struct error err = {""};
    int n = s->cluster->n_gpus, gpu[MOST_GPUS], at = 0;
    bool used[MOST_GPUS] = {false};
    double step;

    p.axes = mapper_axes_of (&s->config);
    settings.granularity = (enum mapper_granularity) rng_below (r, 3);
    settings.threads = 1;
    settings.seed = rng_next (r);
    if (mapper_search (&p, &settings, &result, &info, &err) == ST_OK) {
        assert_true (result.lower_bound_s <= result.estimate.step_s * (1 + 1e-12));
        memcpy (s->layers, result.layers, (size_t) s->config.deg.pp * sizeof (int));
        for (; at < workload_world (&s->config.deg); at++)
            used[gpu[at] = result.gpu[at]] = true;
        for (int k = 0; k < n; k++)
            if (!used[k])
                gpu[at++] = k;
        step = climb (r, s, gpu, 100);
        check_step (s, gpu, step, bound);
        check_in_its_own (s, gpu, step);
        mapper_result_release (&result);
    }
    mapper_info_release (&info);
}

static void check_below (struct rng *r, struct setting *s, int orders)
{
    struct mapper_problem p = problem_for (s);
    double bound[BOUND_RUNS + 1];
    int gpu[MOST_GPUS];

    bounds_in (&p, &s->config, bound);
    for (int i = 0; i < orders; i++) {
        double step;

        draw_layers (r, s);
        draw_order (r, s, gpu);
        step = climb (r, s, gpu, 100);
        step = climb_layers (r, s, gpu, step, 20);
        step = climb (r, s, gpu, 100);
        check_step (s, gpu, step, bound);
        check_in_its_own (s, gpu, step);
    }
    if (s->cluster->n_gpus > 8 &&
        rng_below (r, 16) == 0) /* smaller ones are enumerated */
        check_planned (r, s, bound);
}

static void below_everything (void **state)
{
    struct rng r = seeded (53);
    int rounds = getenv ("LINKWISE_LONG") ? 3000 : 40, tried = 0;
    (void) state;

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
    assert_true (tried > 3 * rounds);
}

/* One order by hand; the cluster is released. */
static void check_order (struct setting *s, const int *gpu)
{
    struct mapper_problem p = problem_for (s);
    double loose, tight, step = step_of (s, gpu, NULL);
    struct error err = {""};

    ok (bound_of_problem (&p, &s->config, false, &loose, &err), &err);
    ok (bound_of_problem (&p, &s->config, true, &tight, &err), &err);
    if (!(step >= loose * (1 - 1e-9) && step >= tight * (1 - 1e-9)))
        fail_msg ("step %.9g below a bound, %.9g or %.9g", step, loose, tight);
    topology_cluster_destroy (s->cluster);
}

/* A node of an order by hand, with links of one rate inside. */
struct by_hand {
    int gpus;
    const char *type;
    const char *speed; /* a list; NULL where all are alike */
    int latency_us;
    double gb_per_s;
};

static struct topology_cluster *cluster_by_hand (int nodes, const struct by_hand *node,
                                                 const char *inter)
{
    struct text t = {0};

    text_add (&t, "{\"version\":1,\"name\":\"by hand\",\"nodes\":[");
    for (int i = 0; i < nodes; i++) {
        text_add (&t, "%s{\"name\":\"n%d\",\"gpus\":%d,\"gpu_type\":\"%s\"", i ? "," : "",
                  i, node[i].gpus, node[i].type);
        if (node[i].speed)
            text_add (&t, ",\"speed\":[%s]", node[i].speed);
        text_add (&t, "}");
    }
    text_add (&t, "],\"links\":{\"intra\":[");
    for (int i = 0; i < nodes; i++)
        text_add (&t, "%s{\"latency_us\":%d,\"bandwidth_gb_per_s\":%g}", i ? "," : "",
                  node[i].latency_us, node[i].gb_per_s);
    text_add (&t, "],\"inter\":{%s}}}", inter);

    struct topology_cluster *c = cluster_from (text_str (&t));

    text_free (&t);
    return c;
}

/* Nothing crosses from slower to faster GPUs where no stage is on these. */
static void all_on_slower (void **state)
{
    const struct by_hand node[] = {{6, "a100-sxm4-80g", NULL, 300, 267},
                                   {3, "h100-sxm5-80g", NULL, 10, 284}};
    struct setting s = {.cluster = cluster_by_hand (
                            2, node, "\"latency_us\":300,\"bandwidth_gb_per_s\":1.2"),
                        .model = small_model (10),
                        .job = {.seq = 512, .global_batch = 2},
                        .profile = profile_of ("nemo-h100"),
                        .config = config_of (1, 5, 1, 2),
                        .layers = {1, 2, 3, 3, 1}};
    const int gpu[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    (void) state;

    check_order (&s, gpu);
}

/* A group that has to span nodes lies between those of two nodes, and half of it crosses
 * on either side. */
static void spanning_saves_crossings (void **state)
{
    const struct by_hand node[] = {{6, "h100-sxm5-80g", NULL, 10, 245},
                                   {6, "h100-sxm5-80g", NULL, 3, 200},
                                   {2, "h100-sxm5-80g", NULL, 10, 155},
                                   {4, "h100-sxm5-80g", NULL, 0, 124}};
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
    (void) state;

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
static void uneven_rings (void **state)
{
    const struct by_hand node[] = {{3, "h100-sxm5-80g", "0.6,1,1", 0, 380},
                                   {3, "h100-sxm5-80g", "1,1,0.6", 3, 338},
                                   {3, "h100-sxm5-80g", "1,1,0.6", 0, 242},
                                   {3, "h100-sxm5-80g", "0.6,1,1", 3, 163},
                                   {3, "h100-sxm5-80g", "1,1,1", 10, 273}};
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
    (void) state;

    s.model.hidden = 512;
    s.model.head_dim = 32;
    s.model.ffn = 2048;
    s.model.vocab = 256000;
    s.config.zero = 0;
    s.config.recompute = RECOMPUTE_FULL;
    check_order (&s, gpu);
}

/* Where NVLS is all that a profile allows, GPUs without it go by rings: of two, sooner. */
static void rings_without_nvls (void **state)
{
    const struct by_hand node[] = {{2, "h100-sxm5-80g", NULL, 3, 1},
                                   {2, "a100-sxm4-80g", NULL, 3, 1}};
    const char *between = "\"latency_us\":3,\"bandwidth_gb_per_s\":0.5";
    struct setting s = {.cluster = cluster_by_hand (2, node, between),
                        .model = small_model (4),
                        .job = {.seq = 512, .global_batch = 2},
                        .profile = profile_of ("megatron-core"),
                        .config = config_of (1, 1, 2, 1),
                        .layers = {4}};
    const int gpu[] = {2, 3, 0, 1};
    (void) state;

    s.profile.time.all_reduce = ALL_REDUCE_NVLS;
    s.config.zero = 0;
    check_order (&s, gpu);
    s.cluster = cluster_by_hand (2, node, between);
    s.config = config_of (2, 1, 1, 1);
    s.config.sequence_parallel = false;
    check_order (&s, gpu);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (below_everything), cmocka_unit_test (all_on_slower),
        cmocka_unit_test (spanning_saves_crossings), cmocka_unit_test (uneven_rings),
        cmocka_unit_test (rings_without_nvls)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
