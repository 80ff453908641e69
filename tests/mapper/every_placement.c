/* Lower bounds by brute force: on drawn clusters of 4 to 6 GPUs (8 in a long run), whose nodes
 * differ in size, type and links, every placement and every split of a drawn configuration is
 * priced, and none is below a bound of any level.  Drawn is all that a bound has to know:
 * schedules, experts, what a profile fixes, what nobody else's draws have. */
#include "tests/lib/bounds.h"

#define ROUNDS 150
#define ROUNDS_LONG 600
#define PRICES 3000 /* of one configuration at most */
#define PRICES_LONG 40000
#define MOST_STAGES 5

/* Two to five nodes of one to four GPUs; every second one has rates and totals of all forms. */
static struct topology_cluster *tiny_cluster (struct rng *r, int gpus)
{
    double between = drawn (r, .5, 50), inside = drawn (r, 4, 400);
    double unlike = rng_below (r, 2) ? .9 : .05;
    bool speeds = rng_below (r, 4) == 0;

    return drawn_cluster (
        r, &(struct cluster_draw){.nodes = 2 + rng_below (r, 4),
                                  .gpus = 4,
                                  .most_gpus = gpus,
                                  .type = rng_below (r, 2),
                                  .types = rng_below (r, 2) ? 1 : 1 + rng_below (r, 3),
                                  .speeds = speeds ? 8 : 0,
                                  .inside = {unlike * inside, inside},
                                  .between = {unlike * between, between},
                                  .unmeasured = rng_below (r, 5) ? 0 : .2,
                                  .bad = rng_below (r, 4) ? 0 : .3,
                                  .by_type = rng_below (r, 2),
                                  .totals = rng_below (r, 3) == 0,
                                  .gpu_links = rng_below (r, 8) == 0,
                                  .forms = rng_below (r, 3) == 0});
}

/* A framework's, with what it fixes drawn anew. */
static struct workload_profile any_profile (struct rng *r)
{
    static const char *const some[] = {"megatron-core", "megatron-deepspeed", "deepspeed",
                                       "nemo-h100",     "torchtitan",         "fsdp",
                                       "internevo",     "megatron-bridge",    "xla",
                                       "torchtune"};
    struct workload_profile p = profile_of (some[rng_below (r, 10)]);

    draw_overlap (r, &p);
    if (rng_below (r, 2))
        p.time.all_reduce =
            (enum workload_all_reduce) rng_below (r, ALL_REDUCE_NVLS_TREE + 1);
    if (rng_below (r, 3) == 0)
        p.graphs = (enum workload_graphs) rng_below (r, GRAPHS_ALL + 1);
    if (rng_below (r, 3) == 0)
        p.time.link_out = .3 + rng_unit (r);
    p.uneven_chunks = rng_below (r, 2);
    p.cp_all_to_all = rng_below (r, 2);
    p.time.tp_comm_overlap = rng_below (r, 3) == 0;
    p.time.deduplicated_dispatch = rng_below (r, 2);
    p.time.all_reduced_gradients = rng_below (r, 2);
    p.time.dp_chunks = rng_below (r, 2);
    p.copies_once = rng_below (r, 2);
    p.gathers_at_step = rng_below (r, 2);
    p.reduces_late = rng_below (r, 2);
    p.gathers_by_layer = rng_below (r, 2);
    p.time.blocking_sends = rng_below (r, 3) == 0;
    p.time.dp_overlap = .5 * rng_below (r, 3);
    p.reduces_bare = rng_below (r, 4) == 0;
    p.time.reduced_bytes = 2 * rng_below (r, 3);
    return p;
}

/* Layers that weigh something beside what is sent; windows, tied embeddings, experts. */
static struct workload_model any_model (struct rng *r)
{
    struct workload_model m = small_model (1);

    m.hidden = 512 << rng_below (r, 4);
    m.ffn = 4 * m.hidden;
    m.head_dim = m.hidden / m.heads;
    m.vocab = 1000 << rng_below (r, 8);
    m.tied = rng_below (r, 2);
    m.mtp_layers = rng_below (r, 3) == 0;
    m.head_bias = rng_below (r, 2);
    if (rng_below (r, 4) == 0)
        m.window = 128 << rng_below (r, 3);
    m.window_chunks = m.window > 0 && rng_below (r, 3) == 0;
    if (rng_below (r, 3))
        return m;
    m.experts = 4 << rng_below (r, 2);
    m.top_k = 1 + rng_below (r, 3);
    m.expert_ffn = rng_below (r, 2) ? m.hidden / 2 : m.hidden * 4;
    m.dense_layers = rng_below (r, 2);
    m.expert_every = 1 + rng_below (r, 2);
    return m;
}

/* @return is there such a one? */
static bool draw_config (struct rng *r, struct setting *s)
{
    struct workload_config *c = &s->config;
    struct workload_degrees *d = &c->deg;
    int n = s->cluster->n_gpus, room;

    *c = config_of (rng_below (r, 2) ? 1 : 1 + rng_below (r, 4),
                    1 + rng_below (r, MOST_STAGES), 1, 1 << rng_below (r, 2));
    d->cp = rng_below (r, 4) ? 1 : 2 << rng_below (r, 2);
    room = n / (d->tp * d->pp * d->cp);
    if (room < 1)
        return false;
    d->dp = rng_below (r, 3) ? room : 1 + rng_below (r, room);
    c->schedule =
        d->pp > 1 ? (enum workload_schedule) rng_below (r, SCHEDULES) : SCHEDULE_1F1B;
    d->vpp = workload_default_vpp (c->schedule);
    if (c->schedule == SCHEDULE_INTERLEAVED)
        d->vpp = 2 + rng_below (r, 2);
    s->model.layers =
        d->pp * d->vpp + rng_below (r, 5) - (d->vpp > 1 && rng_below (r, 4) == 0);
    s->model.window_layers = s->model.window ? 1 + rng_below (r, s->model.layers) : 0;
    if (s->model.experts > 0) {
        d->ep = 1 + rng_below (r, 4);
        d->etp = rng_below (r, 2) ? d->tp : 1;
    }
    s->job.global_batch = d->dp * c->micro_batch * (1 + rng_below (r, 4 * d->pp));
    c->zero = rng_below (r, 4);
    c->shard = d->dp > 1 && rng_below (r, 3) == 0 ? 2 + rng_below (r, d->dp / 2) : 0;
    c->sequence_parallel = d->tp > 1 && rng_below (r, 2);
    if (rng_below (r, 5) == 0 && !s->job.lora)
        c->offload = OFFLOAD_OPTIMIZER;
    draw_recompute (r, s);
    return possible (s);
}

/* What is tried, and the least of it. */
struct enumeration {
    struct setting *s;
    struct costmodel_state *state;     /* NULL: orders are not priced */
    int n, world, kind_of[DRAWN_GPUS]; /* GPUs of one kind may change places */
    void (*see) (struct enumeration *x,
                 const int *gpu); /* an order; NULL: they are counted */
    long orders, splits;
    double best;
    int layers[MOST_STAGES], gpu[DRAWN_GPUS]; /* of the best */
    const struct pool *pool;                  /* of rings */
    double seen[3];                           /* the best rates, as pool.h has them */
};

/* GPUs of a node that nothing tells apart are of one kind. */
static void find_kinds (struct enumeration *x)
{
    const struct topology_cluster *c = x->s->cluster;

    for (int g = 0; g < x->n; g++) {
        const struct topology_node *node = &c->node[c->node_of_gpu[g]];
        bool alike = !c->has_gpu_links && !node->speed &&
                     (node->gpus == 1 ||
                      (node->intra->bytes_per_s.n == 0 && node->intra->latency_s.n == 0));

        x->kind_of[g] = alike ? node->first_gpu : g;
    }
}

static void price (struct enumeration *x, const int *gpu)
{
    double step = costmodel_state_price (x->state).step_s;

    if (!(step < x->best))
        return;
    x->best = step;
    memcpy (x->layers, x->s->layers, sizeof x->layers);
    memcpy (x->gpu, gpu, (size_t) x->n * sizeof (int));
}

/* Every order of the GPUs from rank k on; gpu [n] is the one so far. */
static void every_order (struct enumeration *x, int *gpu, int k)
{
    bool seen[DRAWN_GPUS] = {false};

    if (k == x->world) {
        x->orders++;
        if (x->see)
            x->see (x, gpu);
        return;
    }
    for (int i = k; i < x->n; i++) {
        int was = gpu[k], kind = x->kind_of[gpu[i]], moved = i != k && x->state;

        if (seen[kind])
            continue;
        seen[kind] = true;
        gpu[k] = gpu[i], gpu[i] = was;
        if (moved)
            costmodel_state_exchange (x->state, &i, &k, 1);
        every_order (x, gpu, k + 1);
        gpu[i] = gpu[k], gpu[k] = was;
        if (moved)
            costmodel_state_exchange (x->state, &i, &k, 1);
    }
}

static void every_split (struct enumeration *x, int stage, int left)
{
    struct setting *s = x->s;
    int least, unit, gpu[DRAWN_GPUS];

    if (stage == s->config.deg.pp) {
        x->splits += left == 0;
        if (left > 0 || !x->see)
            return;
        in_file_order (gpu, x->n);
        costmodel_state_layers (x->state, s->layers);
        costmodel_state_reset (x->state, gpu);
        every_order (x, gpu, 0);
        return;
    }
    layer_units (s, &least, &unit);
    for (int n = least; n <= left; n += unit) {
        s->layers[stage] = n;
        every_split (x, stage + 1, left - n);
    }
}

/* @return false where there are too many */
static bool try_all (struct enumeration *x, long most)
{
    struct setting *s = x->s;
    struct costmodel_problem p = problem_of (s);
    struct error err = {""};
    int gpu[DRAWN_GPUS];

    in_file_order (gpu, x->n);
    every_order (x, gpu, 0);
    every_split (x, 0, s->model.layers);
    if (x->splits == 0 || x->orders * x->splits > most)
        return false;
    x->see = price;
    workload_layers_even (s->model.layers, s->config.deg.pp, s->layers);
    ok (costmodel_state_create (&p, gpu, x->n, &x->state, &err), &err);
    every_split (x, 0, s->model.layers);
    costmodel_state_destroy (x->state);
    return true;
}

/* What knows more of the plan than a configuration, or less. */
static void check_others (const struct enumeration *x, const struct mapper_problem *p)
{
    struct setting *s = x->s;
    int caps[CLASSES_MAX * MOST_STAGES];
    struct mapper_problem own = *p;
    struct error err = {""};
    struct pool pool;
    double bound[2];

    own.axes = mapper_axes_of (&s->config);
    ok (pool_init (&pool, &own, &err), &err);
    assert_true (pool_memory_fits (&pool, &s->config, caps));
    bound[0] = bound_of_split (&pool, &s->config, caps, s->layers);
    bound[1] = bound_gpu_seconds (&pool) / x->world;
    pool_release (&pool);
    above (s, "the best plan's split, GPU seconds", x->gpu, x->best, 2, bound);
}

/* @return how far the best plan is above its bound, of its step; NAN where not all was tried */
static double attack (struct setting *s, long most)
{
    struct enumeration x = {.s = s,
                            .n = s->cluster->n_gpus,
                            .world = (int) workload_world (&s->config.deg),
                            .best = INFINITY};
    struct mapper_problem p = unlimited (s);
    double bound[BOUND_RUNS + 1];

    find_kinds (&x);
    if (!try_all (&x, most) || !isfinite (x.best))
        return NAN;
    memcpy (s->layers, x.layers, sizeof x.layers);
    CLOSE (step_of (s, x.gpu, NULL), x.best, 1e-9);
    bounds_in (&p, &s->config, true, bound);
    above (s, "the best plan", x.gpu, x.best, BOUND_RUNS + 1, bound);
    check_others (&x, &p);
    check_in_its_own (s, x.gpu, x.best);
    return 1 - bound[BOUND_RUNS] / x.best;
}

TEST (below_the_best)
{
    struct rng r = seeded (83);
    bool long_run = getenv ("LINKWISE_LONG");
    int rounds = long_run ? ROUNDS_LONG : ROUNDS, tried = 0, schedules = 0;

    for (int round = 0; round < rounds; round++) {
        struct setting s = {
            .cluster = tiny_cluster (&r, 4 + rng_below (&r, long_run ? 5 : 3)),
            .model = any_model (&r),
            .job = {.seq = 32 << rng_below (&r, 8),
                    .lora = rng_below (&r, 5) == 0,
                    .precision = rng_below (&r, 4) ? PREC_BF16 : PREC_FP32},
            .profile = any_profile (&r)};

        for (int i = 0; i < 6; i++)
            if (draw_config (&r, &s) &&
                !isnan (attack (&s, long_run ? PRICES_LONG : PRICES))) {
                tried++;
                schedules |= 1 << s.config.schedule;
            }
        topology_cluster_destroy (s.cluster);
    }
    print_message ("%d configurations\n", tried);
    assert_int_equal (schedules, (1 << SCHEDULES) - 1);
    assert_true (tried > rounds / 2);
}

/* ---- rings ---- */

/* Does every TP group lie inside a node? */
static bool is_whole (const struct enumeration *x, const int *gpu)
{
    const int *node = x->s->cluster->node_of_gpu;

    for (int k = 0; k < x->world; k++)
        if (node[gpu[k]] != node[gpu[k - k % x->s->config.deg.tp]])
            return false;
    return true;
}

/* No ring is faster than the pool knows: of members that are a TP group inside a node, or a GPU
 * where some group spans. */
static void see_rings (struct enumeration *x, const int *gpu)
{
    struct costmodel_problem p = problem_of (x->s);
    bool whole = is_whole (x, gpu);
    int n = x->s->config.deg.dp, each = whole ? x->s->config.deg.tp : 1;
    const double most[] = {
        pool_ring_between (x->pool, n, each) * x->s->profile.time.link_out,
        pool_ring_inside (x->pool, n, each), pool_ring_on_one (x->pool, n, each)};
    struct costmodel_groups *groups;
    struct error err = {""};

    ok (costmodel_groups_create (&p, gpu, &groups, &err), &err);
    for (int k = 0; k < x->s->config.deg.tp; k++) {
        struct costmodel_ring r = costmodel_groups_laid (groups, GROUP_SYNC, k);
        const double rate[] = {r.nodes > 1 ? r.between_bytes_per_s : 0,
                               r.nodes > 1 ? r.inside_bytes_per_s : 0,
                               r.nodes > 1 ? 0 : r.inside_bytes_per_s};

        for (int i = 0; i < 3; i++) {
            if (!(rate[i] <= most[i] * (1 + 1e-9)))
                fail_msg ("a ring of %d x %d GPUs, rate %d: %.9g above %.9g", n, each, i,
                          rate[i], most[i]);
            if (whole)
                x->seen[i] = fmax (x->seen[i], rate[i]);
        }
    }
    costmodel_groups_destroy (groups);
}

/* @param[in,out] met  how many of the pool's rates some ring has, and how many there are */
static void check_rings (struct setting *s, const struct pool *pool, int each, int n,
                         int met[2])
{
    struct enumeration x = {.s = s,
                            .n = s->cluster->n_gpus,
                            .world = n * each,
                            .see = see_rings,
                            .pool = pool};
    int gpu[DRAWN_GPUS];

    s->config = config_of (each, 1, n, 1);
    s->job.global_batch = n;
    if (workload_config_check (&s->model, &s->job, &s->config, NULL) != ST_OK)
        return;
    in_file_order (gpu, x.n);
    find_kinds (&x);
    every_order (&x, gpu, 0);
    if (x.seen[0] > 0) {
        met[0] += x.seen[0] >= (1 - 1e-9) * pool_ring_between (pool, n, each) *
                                   s->profile.time.link_out;
        met[1]++;
    }
    if (x.seen[2] > 0) {
        met[0] += x.seen[2] >= (1 - 1e-9) * pool_ring_on_one (pool, n, each);
        met[1]++;
    }
}

TEST (no_ring_is_faster)
{
    struct rng r = seeded (89);
    int rounds = getenv ("LINKWISE_LONG") ? 2000 : 50, met[2] = {0};

    for (int round = 0; round < rounds; round++) {
        struct setting s = {.cluster = tiny_cluster (&r, 4 + rng_below (&r, 3)),
                            .model = small_model (4),
                            .job = {.seq = 512},
                            .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
        struct mapper_problem p = unlimited (&s);
        struct error err = {""};
        struct pool pool;

        s.layers[0] = 4;
        ok (pool_init (&pool, &p, &err), &err);
        for (int each = 1; each <= 4; each *= 2)
            for (int n = 2; n * each <= s.cluster->n_gpus; n++)
                check_rings (&s, &pool, each, n, met);
        pool_release (&pool);
        topology_cluster_destroy (s.cluster);
    }
    print_message ("%d of %d rates met\n", met[0], met[1]);
    assert_true (met[0] > met[1] / 4);
}
