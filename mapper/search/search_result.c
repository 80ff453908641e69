/* The choice among the configurations that were placed. */
#include "mapper/search/search_private.h"

#include <math.h>
#include <stdlib.h>

#define SAME 1e-12 /* of a step */

/* A chance of running out above MAPPER_RISK is worth SAFER of the objective to be rid of: a job
 * that dies of it loses more. */
#define SAFER 0.01

/* ---- the objective ---- */

struct costmodel_price search_value (const struct search *x, long i)
{
    struct costmodel_price v = x->placed[i].plan.price;

    v.step_s *= mapper_weight (x->p, &x->config[x->placed[i].index]);
    return v;
}

bool search_better (const struct search *x, long i, long than)
{
    struct costmodel_price a = search_value (x, i), b = search_value (x, than);

    return mapper_price_less (&a, &b);
}

double search_least_bound (const struct search *x)
{
    double least = fmin (x->unplaced_bound, x->waiting_bound_s);

    least = fmin (least, fmin (search_lowest_left (x), x->unlisted_bound_s));
    for (long i = 0; i < x->n_placed; i++)
        least = fmin (least, x->placed[i].bound);
    return least;
}

/* ---- which ---- */

long search_simplest (const struct search *x)
{
    struct costmodel_price most = search_value (x, x->best);
    long pick = x->best;

    most.step_s *= 1.0 + x->s->tie;
    for (long i = 0; i < x->n_placed && x->s->tie > 0; i++) {
        const struct workload_config *c = &x->config[x->placed[i].index],
                                     *p = &x->config[x->placed[pick].index];
        struct costmodel_price v = search_value (x, i);

        if (!mapper_price_less (&most, &v) &&
            (config_simpler (c, p) ||
             (!config_simpler (p, c) && search_better (x, i, pick))))
            pick = i;
    }
    return pick;
}

/* The largest chance of a stage of running out of memory; NAN where nobody knows it. */
static double chance_of (const struct search *x, long i)
{
    const struct workload_config *c = &x->config[x->placed[i].index];
    const struct placed *placed = &x->placed[i].plan;
    double most = 0.0;

    for (int k = 0; k < c->deg.pp; k++) {
        struct memest_stage s;
        double gpu_bytes =
            mapper_stage_memory (x->p, c, placed->layers, placed->gpu, k, &s);

        most =
            memest_larger_chance (most, memest_chance (x->p->memory_model, x->p->profile,
                                                       memest_load_of (&s), gpu_bytes));
    }
    return most;
}

/* The simplest; where it may run out of memory, the best of those nearly as good that
 * hardly can.  Who names the chance that may be taken (or no ties) gets what he asks. */
static long choice (const struct search *x)
{
    struct costmodel_price most = search_value (x, x->best);
    long simple = search_simplest (x), pick = -1;

    most.step_s *= 1.0 + SAFER;
    if (x->s->tie <= 0 || x->p->oom_risk > 0 || !(chance_of (x, simple) > MAPPER_RISK))
        return simple;
    for (long i = 0; i < x->n_placed; i++) {
        struct costmodel_price v = search_value (x, i);

        if (!mapper_price_less (&most, &v) && (pick < 0 || search_better (x, i, pick)) &&
            chance_of (x, i) <= MAPPER_RISK)
            pick = i;
    }
    return pick < 0 ? simple : pick;
}

/* ---- the result ---- */

struct ranked {
    struct costmodel_price price;
    long at;
};

static int by_price (const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (mapper_price_less (&x->price, &y->price))
        return -1;
    if (mapper_price_less (&y->price, &x->price))
        return 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Is it within the model's error of the best? */
static bool is_tie (const struct search *x, long i, double error)
{
    struct costmodel_price v = search_value (x, i), best = search_value (x, x->best);

    return v.unmeasured == best.unmeasured && v.step_s <= best.step_s * (1.0 + error);
}

static enum status list_top (const struct search *x, struct mapper_result *r,
                             struct error *err)
{
    struct ranked *list = malloc ((size_t) x->n_placed * sizeof *list);
    int n = x->s->top < x->n_placed ? x->s->top : (int) x->n_placed;

    r->top = calloc ((size_t) n + 1, sizeof *r->top);
    if (!list || !r->top) {
        free (list);
        return err_nomem (err);
    }
    for (long i = 0; i < x->n_placed; i++)
        list[i] = (struct ranked){search_value (x, i), i};
    qsort (list, (size_t) x->n_placed, sizeof *list, by_price);
    for (int i = 0; i < n; i++) {
        long at = list[i].at;
        const struct workload_config *c = &x->config[x->placed[at].index];

        r->top[i] = (struct mapper_choice){
            .config = *c,
            .step_s = x->placed[at].plan.price.step_s,
            .lower_bound_s = fmin (x->placed[at].bound, list[i].price.step_s) /
                             mapper_weight (x->p, c),
            .tie = is_tie (x, at, r->model_error)};
    }
    r->n_top = n;
    free (list);
    return ST_OK;
}

/* The default order where it is as good as the best: no file has to say where ranks go. */
static enum status prefer_default (const struct search *x, struct mapper_result *r,
                                   struct error *err)
{
    struct costmodel_price most = search_value (x, x->best);
    double node_step_s = r->node_step_s, gpu_step_s = r->gpu_step_s;
    struct costmodel_price value = {.unmeasured = r->default_order_unmeasured,
                                    .step_s = r->default_order_step_s *
                                              mapper_weight (x->p, &r->config)};
    enum status st;
    int *gpu;

    most.step_s *= 1.0 + x->s->tie;
    if (x->s->tie <= 0 || !isfinite (value.step_s) || mapper_price_less (&most, &value))
        return ST_OK;
    gpu = malloc ((size_t) x->p->cluster->n_gpus * sizeof *gpu);
    st = gpu ? pool_default_order (&x->pool, gpu, err) : err_nomem (err);
    THEN (st, result_put (&x->pool, &r->config, r->layers, gpu, r, err));
    r->node_step_s = node_step_s;
    r->gpu_step_s = gpu_step_s;
    free (gpu);
    return st;
}

enum status search_finish (struct search *x, struct mapper_result *out, struct error *err)
{
    long pick = choice (x);
    const struct placed *placed = &x->placed[pick].plan;
    const struct workload_config *c = &x->config[x->placed[pick].index];
    double w = mapper_weight (x->p, c);
    struct mapper_result r = {.lower_bound_s = search_least_bound (x) / w,
                              .model_error = mapper_step_error (x->p)};
    enum status st;

    for (long i = 0; i < x->n_placed; i++)
        r.ties += is_tie (x, i, r.model_error);
    st = list_top (x, &r, err);
    THEN (st, result_put (&x->pool, c, placed->layers, placed->gpu, &r, err));
    r.granularity = placed->granularity;
    r.node_step_s = placed->node_step_s;
    r.gpu_step_s = placed->gpu_step_s;
    THEN (st, prefer_default (x, &r, err));
    if (st == ST_OK) {
        double more = r.estimate.step_s * w / search_value (x, x->best).step_s - 1.0;

        /* Two prices of one plan may differ in the last bits. */
        r.given_up = more > SAME ? more : 0.0;
        *out = r;
    } else
        mapper_result_release (&r);
    return st;
}
