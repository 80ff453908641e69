/* What tests of lower bounds draw, and what they must hold for. */
#ifndef TESTS_LIB_BOUNDS_H
#define TESTS_LIB_BOUNDS_H

#include "mapper/bound/bound.h"
#include "tests/lib/clusters.h"
#include "tests/lib/search.h"

/* bound_of in a pool of its own: BOUND_RUNS when tight, else BOUND_FRACTIONS. */
static inline enum status bound_of_problem (const struct mapper_problem *p,
                                            const struct workload_config *c, bool tight,
                                            double *bound_s, struct error *err)
{
    struct pool pool;

    TRY (pool_init (&pool, p, err));
    *bound_s = bound_of (&pool, c, tight ? BOUND_RUNS : BOUND_FRACTIONS);
    pool_release (&pool);
    return ST_OK;
}

/* Experts' all-to-alls that hide under compute: none, a part or all, at some cost; experts
 * that drop tokens or not, under or over their mean; and attention in a ring or in pieces. */
static inline void draw_overlap (struct rng *r, struct workload_profile *p)
{
    p->cp_by_pieces = rng_below (r, 2);
    p->drops_tokens = rng_below (r, 3) == 0;
    p->time.expert_capacity = .5 + .5 * rng_below (r, 4);
    p->time.moe_overlap = .5 * rng_below (r, 3);
    p->time.overlap_slowdown = rng_below (r, 3) ? 0 : .3;
}

/* The fewest layers of a stage, and what more it may have comes in multiples of. */
static inline void layer_units (const struct setting *s, int *least, int *unit)
{
    *unit = workload_layers_unit (&s->config, &s->profile);
    *least = *unit == s->config.deg.vpp ? *unit
                                        : workload_layers_least (&s->model, &s->config);
}

/* A configuration that the setting's cluster can run. */
static inline bool possible (const struct setting *s)
{
    int least, unit;

    if (workload_config_check (&s->model, &s->job, &s->config, NULL) != ST_OK)
        return false;
    layer_units (s, &least, &unit);
    return workload_world (&s->config.deg) <= s->cluster->n_gpus &&
           s->model.layers % unit == 0 && s->model.layers >= s->config.deg.pp * least;
}

/* Nothing, the framework's own selective, modules of the model, or all. */
static inline void draw_recompute (struct rng *r, struct setting *s)
{
    struct workload_config *c = &s->config;

    c->recompute = (enum workload_recompute) rng_below (r, 3);
    c->recompute_layers = c->recompute == RECOMPUTE_FULL && rng_below (r, 3) == 0
                              ? 1 + rng_below (r, 3)
                              : 0;
    if (c->recompute == RECOMPUTE_SELECTIVE && rng_below (r, 3))
        c->recompute_modules = (unsigned) rng_below (r, 1 << WORKLOAD_MODULES) &
                               workload_modules_of (&s->model);
}

/* An even split, one that is nearly so, or any; every chunk of a stage holds as many unless it
 * may be otherwise. */
static inline void draw_layers (struct rng *r, struct setting *s)
{
    int pp = s->config.deg.pp, how = rng_below (r, 3), least, unit, units;

    layer_units (s, &least, &unit);
    units = (s->model.layers - pp * least) / unit; /* beyond the least of each */
    workload_layers_even (units + pp, pp, s->layers);
    if (how == 1)
        split_anyhow (r, units + pp, pp, s->layers);
    for (int moves = how == 2 ? rng_below (r, 6) : 0; moves > 0; moves--) {
        int from = rng_below (r, pp), to = rng_below (r, pp);

        if (s->layers[from] > 1) {
            s->layers[from]--;
            s->layers[to]++;
        }
    }
    for (int k = 0; k < pp; k++)
        s->layers[k] = least + (s->layers[k] - 1) * unit;
}

/* GPUs in file order, backwards, at random or a few of them exchanged, or ranks of TP groups
 * apart.  @param[out] gpu  [the cluster's n_gpus] */
static inline void draw_order (struct rng *r, const struct setting *s, int *gpu)
{
    const struct workload_degrees *d = &s->config.deg;
    int n = s->cluster->n_gpus, world = (int) workload_world (d), how = rng_below (r, 5);

    in_file_order (gpu, n);
    if (how == 0)
        shuffle (r, gpu, n);
    for (int k = 0; k < world && how == 1; k++) /* a group's next rank is dp x pp on */
        gpu[k] = k % d->tp * (world / d->tp) + k / d->tp;
    for (int k = 0; k < n && how == 2; k++)
        gpu[k] = n - 1 - k;
    for (int k = 0; k < 3 && how == 3; k++) {
        int a = rng_below (r, n), b = rng_below (r, n), x = gpu[a];

        gpu[a] = gpu[b];
        gpu[b] = x;
    }
}

/* The least step that exchanges of two GPUs lead to. */
static inline double climb (struct rng *r, const struct setting *s, int *gpu, int moves)
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

/* A step of the setting's configuration is below none of its bounds.  `what` says where it
 * is from; gpu may be NULL. */
static inline void above (const struct setting *s, const char *what, const int *gpu,
                          double step, int n, const double *bound)
{
    const struct workload_config *c = &s->config;
    const struct workload_degrees *d = &c->deg;

    for (int i = 0; i < n; i++)
        if (!(step >= bound[i] * (1 - 1e-9))) {
            struct text t = {0};

            for (int k = 0; k < d->pp; k++)
                text_add (&t, " %d", s->layers[k]);
            text_add (&t, gpu ? "; GPUs" : "");
            for (int k = 0; gpu && k < workload_world (d); k++)
                text_add (&t, " %d", gpu[k]);
            fail_msg (
                "%s, %s, tp %d pp %d dp %d cp %d ep %d etp %d vpp %d zero %d "
                "recompute %d:%d, micro-batch %d of %d, experts %d: step %.9g below "
                "bound %d of %d, %.9g; layers%s",
                what, workload_schedule_name (c->schedule), d->tp, d->pp, d->dp, d->cp,
                d->ep, d->etp, d->vpp, c->zero, (int) c->recompute, c->recompute_layers,
                c->micro_batch, s->job.global_batch, s->model.experts, step, i, n,
                bound[i], text_str (&t));
        }
}

/* The loose bound of the setting's configuration and the tight one. */
static inline void find_bounds (const struct mapper_problem *p, const struct setting *s,
                                double bound[2])
{
    struct error err = {""};

    for (int tight = 0; tight < 2; tight++)
        ok (bound_of_problem (p, &s->config, tight, &bound[tight], &err), &err);
}

/* The same where no memory limits it. */
static inline struct mapper_problem unlimited (const struct setting *s)
{
    struct mapper_problem p = search_problem (s);

    p.memory_limit_pct = 1e9;
    return p;
}

/* The bounds in a pool; `hurried`: also where the search asks for no more than it needs. */
static inline void bounds_in (const struct mapper_problem *p,
                              const struct workload_config *c, bool hurried,
                              double bound[BOUND_RUNS + 1])
{
    struct pool pool;
    struct error err = {""};
    double least, played;

    ok (pool_init (&pool, p, &err), &err);
    for (int how = BOUND_WORK; how <= BOUND_RUNS; how++)
        bound[how] = bound_of (&pool, c, (enum bound_level) how);
    played = bound[BOUND_PLAYED];
    least = .99 * bound[BOUND_RUNS];
    /* What classes hold by then may come and go with whole layers, so that bisection from elsewhere
     * ends at another edge, and more splits are played out up to a plan: each is a bound, and the
     * search keeps the highest that it was told. */
    assert_true (!hurried || bound_up_to (&pool, c, BOUND_RUNS, 0, least) >= .95 * least);
    for (int far = 0; hurried && far < 2; far++) {
        double enough = (far ? 1.3 : 1.01) * bound[BOUND_RUNS];
        double most = bound_up_to (&pool, c, BOUND_RUNS, 0, enough);

        assert_false (most < .9 * fmin (enough, played));
        if (most > bound[BOUND_RUNS])
            bound[BOUND_RUNS] = most;
        /* A lower one that is known beside it. */
        for (int how = BOUND_FRACTIONS; how <= BOUND_RUNS; how++) {
            double known = .95 * bound[how];

            most = bound_up_to (&pool, c, (enum bound_level) how, known, 1.3 * known);
            assert_true (most >= known * (1 - 1e-9));
            if (most > bound[how])
                bound[how] = most;
        }
    }
    pool_release (&pool);
    /* Bisection ends within a ten-millionth. */
    assert_true (bound[BOUND_SPLITS] >= bound[BOUND_FRACTIONS] * (1 - 1e-6));
    assert_true (bound[BOUND_RUNS] >= bound[BOUND_FRACTIONS] * (1 - 1e-6));
}

/* The least memory limit that an order keeps, in percent. */
static inline double least_limit_pct (const struct setting *s, const int *gpu)
{
    int pp = s->config.deg.pp, slot = (int) workload_world (&s->config.deg) / pp;
    double peak[64], most = 0.0;

    find_peaks (s, peak);
    for (int k = 0; k < pp * slot; k++)
        most = fmax (most, peak[k / slot] /
                               topology_gpu_type_of (s->cluster, gpu[k])->memory_bytes);
    return 100 * most * (1 + 1e-12);
}

/* The bound of no more nodes, and no more memory, than an order takes; in the long form also where
 * the search asks for no more than it needs. */
static inline void check_in_its_own (const struct setting *s, const int *gpu, double step)
{
    struct mapper_problem p = unlimited (s);
    bool used[DRAWN_NODES] = {false};
    double bound[BOUND_RUNS + 1];

    for (int k = 0; k < workload_world (&s->config.deg); k++)
        used[s->cluster->node_of_gpu[gpu[k]]] = true;
    p.node_allowed = used;
    p.memory_limit_pct = least_limit_pct (s, gpu);
    bounds_in (&p, &s->config, getenv ("LINKWISE_LONG"), bound);
    above (s, "by hand", gpu, step, BOUND_RUNS + 1, bound);
}

#endif
