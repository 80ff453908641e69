/* Cross-fitting: what is placed on some measurements is priced on others.
 *
 * A search picks the placement whose links were measured fastest, and so the one that chance
 * favoured most; on another measurement that part of the gain is gone.  Only what is left
 * there is a gain. */
#include "mapper/replan/heldout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/stats.h"

struct mapper_heldout_settings mapper_heldout_settings_default (void)
{
    return (struct mapper_heldout_settings){
        .quantile = 0.5, .confidence = 0.95, .draws = 200};
}

/* One placement that is priced on measurements it was not made from. */
struct fold {
    int *layers, *gpu;
};

struct heldout {
    const struct mapper_problem *p;
    const struct mapper_settings *s;
    const struct mapper_heldout_settings *how;
    const struct topology_passes *passes;
    const struct workload_config *config;
    int world;
    int *ordered;      /* the default order */
    struct fold *fold; /* [passes] */
    double *gain;      /* [passes]; NAN: not held out, or without a price */
    double *rate;      /* [n*n] scratch */
};

/* The step of a placement on a cluster; INFINITY without a price. */
static double step_on (const struct heldout *h, const struct topology_cluster *c,
                       const int *layers, const int *gpu)
{
    struct costmodel_problem p = mapper_priced (h->p, h->config, layers);
    struct costmodel_estimate e;

    p.cluster = c;
    if (costmodel_estimate (&p, gpu, true, &e, NULL) != ST_OK)
        return INFINITY;
    free (e.unmeasured);
    return e.step_s;
}

static double gain_on (const struct heldout *h, const struct topology_cluster *c,
                       const struct fold *f)
{
    double ordered = step_on (h, c, f->layers, h->ordered),
           placed = step_on (h, c, f->layers, f->gpu);

    return isfinite (ordered) && isfinite (placed) ? 1.0 - placed / ordered : NAN;
}

/* ---- the folds ---- */

/* Place the configuration from all passes but one. */
static enum status place_without (struct heldout *h, int pass, struct error *err)
{
    struct mapper_problem p = *h->p;
    struct mapper_settings s = *h->s;
    struct mapper_result r;
    struct mapper_info info = {0};
    struct topology_cluster *c = NULL;
    bool *use = malloc ((size_t) h->passes->passes * sizeof *use);
    enum status st = ST_OK;

    if (!use)
        return err_nomem (err);
    for (int k = 0; k < h->passes->passes; k++)
        use[k] = k != pass;
    st = topology_passes_combine (h->passes, use, h->how->quantile, h->rate, err);
    THEN (st, topology_passes_cluster (h->passes, h->rate, &c, err));
    if (st == ST_OK) {
        p.cluster = c;
        p.axes = mapper_axes_of (h->config);
        s.polish = s.polish < 4 ? s.polish : 4;
        s.tie = 0;
        st = mapper_search (&p, &s, &r, &info, err);
    }
    if (st == ST_OK) {
        h->fold[pass] = (struct fold){r.layers, r.gpu};
        r.layers = r.gpu = NULL;
        mapper_result_release (&r);
    }
    mapper_info_release (&info);
    topology_cluster_destroy (c);
    free (use);
    return st == ST_NOMEM ? st : ST_OK; /* what cannot be placed is not priced */
}

/* Price a pass's fold on it. */
static enum status price_pass (struct heldout *h, int pass, struct error *err)
{
    struct topology_cluster *c = NULL;
    enum status st = topology_passes_fill (h->passes, pass, h->rate, err);

    THEN (st, topology_passes_cluster (h->passes, h->rate, &c, err));
    if (st == ST_OK)
        h->gain[pass] = gain_on (h, c, &h->fold[pass]);
    topology_cluster_destroy (c);
    return st;
}

static enum status copy_result (struct heldout *h, int pass,
                                const struct mapper_result *r, struct error *err)
{
    size_t pp = (size_t) h->config->deg.pp, world = (size_t) h->world;
    struct fold *f = &h->fold[pass];

    f->layers = malloc (pp * sizeof (int));
    f->gpu = malloc (world * sizeof (int));
    if (!f->layers || !f->gpu)
        return err_nomem (err);
    memcpy (f->layers, r->layers, pp * sizeof (int));
    memcpy (f->gpu, r->gpu, world * sizeof (int));
    return ST_OK;
}

/* ---- the interval ---- */

/* Measurements as they might have been, one after the other. */
struct draws {
    struct topology_noise noise;
    struct topology_cluster *c;
    struct rng rng;
};

static enum status draws_start (struct heldout *h, struct draws *d, struct error *err)
{
    int passes = h->passes->passes;
    bool *all = malloc ((size_t) passes * sizeof *all);
    enum status st = all ? ST_OK : err_nomem (err);

    *d = (struct draws){.rng = {h->s->seed}};
    for (int k = 0; k < passes && st == ST_OK; k++)
        all[k] = true;
    THEN (st, topology_noise_collect (h->passes, &d->noise, err));
    THEN (st, topology_passes_combine (h->passes, all, 0.5, h->rate, err));
    THEN (st, topology_passes_cluster (h->passes, h->rate, &d->c, err));
    free (all);
    return st;
}

static void draws_end (struct draws *d)
{
    topology_cluster_destroy (d->c);
    topology_noise_release (&d->noise);
}

/* Variance of a fold's gain over measurements drawn around the mean, averaged over the
 * folds. */
static enum status draw_gains (struct heldout *h, double *variance, struct error *err)
{
    int passes = h->passes->passes, n = 0;
    double *sum = calloc ((size_t) passes, sizeof *sum),
           *square = calloc ((size_t) passes, sizeof *square);
    struct draws d = {.c = NULL};
    enum status st = sum && square ? draws_start (h, &d, err) : err_nomem (err);

    for (int i = 0; i < h->how->draws && st == ST_OK; i++) {
        topology_noise_draw (h->passes, &d.noise, h->rate, &d.rng, d.c);
        for (int k = 0; k < passes; k++) {
            double g = isnan (h->gain[k]) ? 0 : gain_on (h, d.c, &h->fold[k]);

            sum[k] += g;
            square[k] += g * g;
        }
    }
    *variance = 0;
    for (int k = 0; k < passes && st == ST_OK; k++)
        if (!isnan (h->gain[k])) {
            double mean = sum[k] / h->how->draws;

            *variance += fmax (0.0, square[k] / h->how->draws - mean * mean);
            n++;
        }
    *variance /= n > 0 ? n : 1;
    draws_end (&d);
    FREE_ALL (sum, square);
    return st;
}

/* The step's spread, of the placement that is kept. */
static enum status draw_steps (struct heldout *h, const struct mapper_result *r,
                               struct mapper_heldout *out, struct error *err)
{
    int n = h->how->draws;
    double *step = malloc ((size_t) n * sizeof *step);
    struct draws d = {.c = NULL};
    enum status st = step ? draws_start (h, &d, err) : err_nomem (err);

    for (int i = 0; i < n && st == ST_OK; i++) {
        topology_noise_draw (h->passes, &d.noise, h->rate, &d.rng, d.c);
        step[i] = step_on (h, d.c, r->layers, r->gpu);
    }
    if (st == ST_OK) {
        stats_sort (step, n);
        out->step_p50_s = stats_quantile (step, n, 0.5);
        out->step_p95_s = stats_quantile (step, n, 0.95);
    }
    draws_end (&d);
    free (step);
    return st;
}

/* z with P (|N (0, 1)| <= z) = confidence, by bisection. */
static double normal_z (double confidence)
{
    double low = 0, high = 10;

    for (int i = 0; i < 60; i++) {
        double z = 0.5 * (low + high);

        *(erf (z / M_SQRT2) < confidence ? &low : &high) = z;
    }
    return low;
}

static enum status find_interval (struct heldout *h, bool in_turn,
                                  struct mapper_heldout *out, struct error *err)
{
    double variance, sum = 0, z = normal_z (h->how->confidence), weight;

    for (int k = 0; k < h->passes->passes; k++)
        if (!isnan (h->gain[k])) {
            sum += h->gain[k];
            out->measurements++;
        }
    if (out->measurements == 0)
        return ST_OK;
    TRY (draw_gains (h, &variance, err));
    weight = 1.0 / out->measurements;
    if (in_turn && out->measurements > 1)
        weight += 1.0 / (out->measurements - 1);
    out->gain = sum / out->measurements;
    out->low = out->gain - z * sqrt (variance * weight);
    out->high = out->gain + z * sqrt (variance * weight);
    return ST_OK;
}

/* ---- all ---- */

static enum status heldout_init (struct heldout *h, struct error *err)
{
    size_t passes = (size_t) h->passes->passes, n = (size_t) h->passes->n;

    h->world = (int) workload_world (&h->config->deg);
    h->ordered = malloc ((size_t) h->p->cluster->n_gpus * sizeof (int));
    h->fold = calloc (passes, sizeof *h->fold);
    h->gain = malloc (passes * sizeof *h->gain);
    h->rate = malloc (n * n * sizeof *h->rate);
    if (!h->ordered || !h->fold || !h->gain || !h->rate)
        return err_nomem (err);
    for (size_t k = 0; k < passes; k++)
        h->gain[k] = NAN;
    return mapper_default_order (h->p, h->ordered, err);
}

enum status mapper_heldout (const struct mapper_problem *p,
                            const struct mapper_settings *s,
                            const struct mapper_heldout_settings *how,
                            const struct topology_passes *passes, const bool *held_out,
                            struct mapper_result *r, struct mapper_heldout *out,
                            struct error *err)
{
    const struct workload_config config = r->config;
    struct mapper_problem own = *p; /* places may be on nodes where its profile serves */
    struct heldout h = {
        .p = &own, .s = s, .how = how, .passes = passes, .config = &config};
    bool *marks = NULL;
    enum status st;

    *out = (struct mapper_heldout){.gain = NAN,
                                   .low = NAN,
                                   .high = NAN,
                                   .step_p50_s = NAN,
                                   .step_p95_s = NAN,
                                   .confidence = how->confidence,
                                   .quantile = how->quantile,
                                   .by_file = passes->by_file};
    if (!isfinite (r->default_order_step_s))
        return ST_OK;
    st = mapper_serving_nodes (p, &marks, err);
    own.node_allowed = marks;
    THEN (st, heldout_init (&h, err));
    for (int k = 0; k < passes->passes && st == ST_OK; k++) {
        if (held_out && !held_out[k])
            continue;
        st = held_out ? copy_result (&h, k, r, err) : place_without (&h, k, err);
        if (st == ST_OK && h.fold[k].gpu)
            st = price_pass (&h, k, err);
    }
    THEN (st, find_interval (&h, !held_out, out, err));
    /* Also where the gain is certain to be none. */
    if (st == ST_OK && out->low <= 0 &&
        r->default_order_unmeasured <= r->estimate.n_unmeasured) {
        st = mapper_result_put (&own, &config, r->layers, h.ordered, r, err);
        out->kept_default = st == ST_OK;
    }
    THEN (st, draw_steps (&h, r, out, err));
    for (int k = 0; h.fold && k < passes->passes; k++)
        FREE_ALL (h.fold[k].layers, h.fold[k].gpu);
    FREE_ALL (h.ordered, h.fold, h.gain, h.rate, marks);
    return st;
}

void mapper_heldout_to_json (const struct mapper_heldout *h, json_t *doc)
{
    json_t *estimate = json_object_get (doc, "estimate"),
           *search = json_object_get (doc, "search");

    json_object_set_new (estimate, "gain_heldout", json_number_or_null (h->gain));
    json_object_set_new (estimate, "gain_heldout_interval",
                         json_pack ("[o, o]", json_number_or_null (h->low),
                                    json_number_or_null (h->high)));
    json_object_set_new (estimate, "step_p50_s", json_number_or_null (h->step_p50_s));
    json_object_set_new (estimate, "step_p95_s", json_number_or_null (h->step_p95_s));
    json_object_set_new (search, "heldout",
                         json_pack ("{s:i, s:s, s:f, s:f, s:b}", "measurements",
                                    h->measurements, "by", h->by_file ? "file" : "pass",
                                    "confidence", h->confidence, "quantile", h->quantile,
                                    "kept_default_order", h->kept_default));
}
