/* The search's certificate under attack: on drawn labs, whose nodes differ in size, type, speed
 * and links, an annealer that moves layers together with GPUs looks for a step below the bound of
 * a configuration, and here and there for one that beats the plan for it.  Each lab has its own
 * draws: LINKWISE_LAB=N starts at the one that failed. */
#include "tests/lib/bounds.h"

#define LABS 1
#define LABS_LONG 600 /* some 300 processor seconds */
#define PLANNED 10    /* a lab in so many has a configuration planned */
#define SAID 50       /* labs between two lines of a long run */
#define BEATEN .005   /* of the step: more than moves may find that the plan lacks */
#define MOST_GPUS 32
#define MOST_STAGES 10

/* Three to eight nodes of up to four types: Ethernet or InfiniBand, some links several times
 * as slow, or all of one node. */
static struct topology_cluster *cluster_of_lab (struct rng *r)
{
    double between = drawn (r, .5, 40), inside = drawn (r, 8, 400);
    bool calm = rng_below (r, 2);

    return drawn_cluster (r, &(struct cluster_draw){
                                 .nodes = 3 + rng_below (r, 6),
                                 .gpus = 1 << rng_below (r, 4),
                                 .most_gpus = rng_below (r, 3) ? MOST_GPUS : 0,
                                 .type = rng_below (r, 2),
                                 .types = 1 + rng_below (r, 4),
                                 .speeds = rng_below (r, 3) ? 0 : 8,
                                 .inside = {calm ? inside : .3 * inside, inside},
                                 .between = {calm ? .9 * between : .1 * between, between},
                                 .bad = rng_below (r, 2) ? .5 : 0,
                                 .by_type = rng_below (r, 2),
                                 .totals = rng_below (r, 3) == 0,
                                 .forms = rng_below (r, 4) == 0});
}

/* Layers that weigh something beside what is sent, of which there may be few. */
static struct workload_model lab_model (struct rng *r)
{
    struct workload_model m = small_model (4 + rng_below (r, 28));

    m.hidden = 512 << rng_below (r, 4);
    m.ffn = 4 * m.hidden;
    m.head_dim = m.hidden / m.heads;
    m.vocab = 1000 << rng_below (r, 8);
    m.tied = rng_below (r, 3) == 0;
    if (rng_below (r, 4))
        return m;
    m.experts = 4 << rng_below (r, 2);
    m.top_k = 1 + rng_below (r, 2);
    m.expert_ffn = m.hidden;
    m.expert_every = 1 + rng_below (r, 2);
    return m;
}

static bool draw_config (struct rng *r, struct setting *s)
{
    static const enum workload_schedule all[] = {
        SCHEDULE_1F1B,        SCHEDULE_1F1B,  SCHEDULE_1F1B, SCHEDULE_INTERLEAVED,
        SCHEDULE_INTERLEAVED, SCHEDULE_GPIPE, SCHEDULE_ZB1P, SCHEDULE_ZBV};
    struct workload_config *c = &s->config;
    struct workload_degrees *d = &c->deg;
    int room;

    *c = config_of (rng_below (r, 2) ? 1 : 1 << rng_below (r, 3),
                    1 + rng_below (r, MOST_STAGES), 1, 1 << rng_below (r, 2));
    d->cp = rng_below (r, 6) ? 1 : 2;
    room = s->cluster->n_gpus / (d->tp * d->pp * d->cp);
    if (room < 1)
        return false;
    d->dp = rng_below (r, 4) ? room : 1 + rng_below (r, room);
    c->schedule = d->pp > 1 ? all[rng_below (r, 8)] : SCHEDULE_1F1B;
    d->vpp = c->schedule == SCHEDULE_INTERLEAVED ? 2 + rng_below (r, 4)
                                                 : workload_default_vpp (c->schedule);
    if (s->model.experts > 0)
        d->ep = 1 << rng_below (r, 3);
    s->job.global_batch = d->dp * c->micro_batch * d->pp * (1 + rng_below (r, 8));
    c->zero = rng_below (r, d->pp == 1 ? 4 : 2);
    c->recompute = (enum workload_recompute) rng_below (r, 3);
    return possible (s);
}

/* The state's layers and GPUs after a move, or taken back. */
struct walker {
    struct setting *s;
    struct costmodel_state *state;
    double step;
    int least, unit; /* layers of a stage, of a move */
};

/* A unit of layers to another stage and GPUs exchanged: either or both. */
static void move (struct rng *r, struct walker *w, double heat)
{
    struct setting *s = w->s;
    int pp = s->config.deg.pp, n = s->cluster->n_gpus;
    int from = rng_below (r, pp), to = rng_below (r, pp);
    int a[2] = {rng_below (r, n), rng_below (r, n)};
    int how = rng_below (r, 3), gpus = how != 0 && n > 1 && a[0] != a[1];
    bool layers = how != 1 && from != to && s->layers[from] - w->unit >= w->least;
    double now;

    if (layers) {
        s->layers[from] -= w->unit;
        s->layers[to] += w->unit;
    }
    costmodel_state_layers (w->state, s->layers);
    costmodel_state_exchange (w->state, &a[0], &a[1], gpus);
    now = costmodel_state_price (w->state).step_s;
    if (now <= w->step || rng_unit (r) < exp ((w->step - now) / (heat * w->step))) {
        w->step = now;
        return;
    }
    if (layers) {
        s->layers[from] += w->unit;
        s->layers[to] -= w->unit;
    }
    costmodel_state_layers (w->state, s->layers);
    costmodel_state_undo (w->state, &a[0], &a[1], gpus);
}

/* @param[in,out] gpu  the order to start from, then the best one found */
static double anneal (struct rng *r, struct setting *s, int *gpu, int moves)
{
    struct costmodel_problem p = problem_of (s);
    struct walker w = {.s = s};
    struct error err = {""};
    int n = s->cluster->n_gpus, best_layers[MOST_STAGES];
    double best;

    layer_units (s, &w.least, &w.unit);
    ok (costmodel_state_create (&p, gpu, n, &w.state, &err), &err);
    best = w.step = costmodel_state_price (w.state).step_s;
    memcpy (best_layers, s->layers, sizeof best_layers);
    for (int i = 0; i < moves; i++) {
        move (r, &w, .1 * pow (1e-3, i / (double) moves));
        if (w.step < best) {
            best = w.step;
            memcpy (gpu, costmodel_state_gpus (w.state), (size_t) n * sizeof (int));
            memcpy (best_layers, s->layers, sizeof best_layers);
        }
    }
    costmodel_state_destroy (w.state);
    memcpy (s->layers, best_layers, sizeof best_layers);
    return step_of (s, gpu, NULL);
}

/* Orders that have no recurrence take minutes to plan: each move plays them out. */
static bool is_quick (const struct workload_config *c)
{
    return c->schedule == SCHEDULE_1F1B || c->schedule == SCHEDULE_GPIPE ||
           c->schedule == SCHEDULE_INTERLEAVED;
}

/* The plan for the setting's configuration is as good as an annealed step. */
static void check_planned (struct rng *r, const struct setting *s, const int *gpu,
                           double step)
{
    struct mapper_problem p = unlimited (s);
    struct mapper_settings how = mapper_settings_default ();
    double least;
    struct found o;

    p.axes = mapper_axes_of (&s->config);
    how.granularity = MAPPER_GPU;
    how.tie = 0;
    how.seed = rng_next (r);
    o = search (&p, &how);
    least = o.r.estimate.step_s * (1 - BEATEN);
    above (s, "annealed, where the plan is", gpu, step, 1, &least);
    found_release (&o);
}

/* @return how far the step is above the bound, of the step */
static double attack (struct rng *r, struct setting *s, int lab, int moves, bool plan)
{
    struct mapper_problem p = unlimited (s);
    char what[64];
    double bound[BOUND_RUNS + 1], step;
    int gpu[DRAWN_GPUS];

    draw_layers (r, s);
    draw_order (r, s, gpu);
    step = anneal (r, s, gpu, moves);
    bounds_in (&p, &s->config, true, bound);
    snprintf (what, sizeof what, "LINKWISE_LAB=%d, annealed", lab);
    above (s, what, gpu, step, BOUND_RUNS + 1, bound);
    check_in_its_own (s, gpu, step);
    if (plan)
        check_planned (r, s, gpu, step);
    return 1 - bound[BOUND_RUNS] / step;
}

TEST (below_every_plan)
{
    bool long_run = getenv ("LINKWISE_LONG");
    int moves = 3000, tried = 0, planned = 0, left = 0;
    const char *from = getenv ("LINKWISE_LAB");
    int labs = long_run || from ? LABS_LONG : LABS;
    double closest = INFINITY;

    for (int lab = from ? atoi (from) : 0; lab < labs; lab++) {
        struct rng r = seeded (71 + (uint64_t) lab);
        struct setting s = {.cluster = cluster_of_lab (&r),
                            .model = lab_model (&r),
                            .job = {.seq = 512 << rng_below (&r, 4)},
                            .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};

        /* Where none of a lab's is quick, the next one's is planned. */
        left += lab % PLANNED == 0;
        for (int i = 0; i < 8; i++)
            if (draw_config (&r, &s)) {
                bool plan = left > 0 && is_quick (&s.config);

                closest = fmin (closest, attack (&r, &s, lab, moves, plan));
                left -= plan;
                planned += plan;
                tried++;
            }
        topology_cluster_destroy (s.cluster);
        if (long_run && (lab + 1) % SAID == 0)
            fprintf (
                stderr,
                "# %d of %d labs: %d configurations, %d of them planned; closest %.2g %% "
                "above its bound\n",
                lab + 1, labs, tried, planned, 100 * closest);
    }
    assert_true (from || planned > 0);
    assert_true (from || tried > 2 * labs);
}
