/* Layers without launches and the sums that their times are made of, for tests of compute. */
#ifndef TESTS_LAYERS_H
#define TESTS_LAYERS_H

#include "tests/lib/fixture.h"

#include "costmodel/costmodel_private.h"

struct parts {
    const struct machine *g;
    double fwd, inputs, weights, params, traffic; /* traffic in bytes a token */
};

static inline void product (struct parts *x, double count, double rows, double in,
                            double out)
{
    x->fwd += product_s (x->g, count, rows, out, in);
    x->inputs += product_s (x->g, count, rows, in, out);
    x->weights += weights_product_s (x->g, count, in, out, rows);
    x->params += count * in * out;
}

/* Of the type's 16-bit products, a wave of which starts as by a fitted profile. */
static inline struct machine machine_by (const struct topology_gpu_type *t,
                                         const struct workload_profile *p)
{
    return (struct machine){.wave_s = 1e-6,
                            .matrix_rate =
                                t->bf16_flop_per_s * t->gemm_efficiency * p->time.gemm,
                            .memory_rate = t->hbm_bytes_per_s * p->time.memory_bandwidth,
                            .multiprocessors = t->multiprocessors,
                            .element_bytes = 2};
}

static inline struct machine machine_in (const struct setting *s)
{
    return machine_by (s->cluster->node[0].type, &s->profile);
}

/* No launches; kernels fused or not; constants that differ from each other. */
static inline struct setting layer_job (const char *model, int tp, bool sp, bool fused)
{
    struct setting s = small_job_as (cluster_of ("1x8 h100-sxm5-80g intra:400"), 4, 1024,
                                     64, config_of (tp, 1, 1, 2));
    struct workload_profile *p = &s.profile;

    s.model = model_of (model);
    s.config.sequence_parallel = sp;
    p->compute_of_type = p->sums_in_products = p->separate_gate = false;
    p->fused_norm = p->fused_mlp = p->fused_rotary = p->fused_accumulation = fused;
    p->time.layer_launch_fwd_s = p->time.layer_launch_back_s = 0;
    p->time.attention = .5;
    p->time.attention_back = .4;
    p->memory.gradient_bytes = 4;
    return s;
}

static inline struct costmodel_compute compute_of (const struct setting *s)
{
    struct costmodel_compute k;

    costmodel_compute (&s->model, &s->job, &s->config, &s->profile,
                       s->cluster->node[0].type, &k);
    return k;
}

/* Norms and residuals: 20 h, 30 h more a norm of separate operations, as no LayerNorm of PyTorch's
 * is; 6 h of dropout. */
static inline double elementwise (const struct setting *s, bool fused)
{
    const struct workload_model *m = &s->model;
    bool one = fused || m->norm != NORM_RMS;
    double per = 20 + (one ? 0 : 30.0 * m->norms) + (m->dropout ? 6 : 0);

    return per * m->hidden / (s->config.sequence_parallel ? s->config.deg.tp : 1);
}

static inline void check_layer (const struct setting *s, const struct parts *x,
                                double tokens, double width,
                                const struct costmodel_layer *got)
{
    const struct workload_profile *p = &s->profile;
    double heads = s->model.heads / (double) s->config.deg.tp;
    double moved = x->traffic * tokens / x->g->memory_rate,
           peak = x->g->matrix_rate / p->time.gemm;
    /* Scores and values, half of them masked; backward 2.5 times. */
    double attention = tokens * s->job.seq * heads * width / peak;
    double bytes = p->fused_accumulation ? 2 * 4 : 3 * 4 + 2 + 4;
    double weights = x->weights + bytes * x->params / x->g->memory_rate;

    CLOSE (got->attention_fwd_s, attention / p->time.attention, 1e-9);
    CLOSE (got->attention_back_s, 2.5 * attention / p->time.attention_back, 1e-9);
    CLOSE (got->fwd_s, x->fwd + moved + got->attention_fwd_s, 1e-9);
    CLOSE (got->weight_s, weights, 1e-9);
    CLOSE (got->back_s, x->inputs + weights + 2 * moved + got->attention_back_s, 1e-9);
}

#endif
