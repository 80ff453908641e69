/* Compute on a roofline, and what the ranks send.
 *
 * A layer's forward time is the sum of its matrix products at the rate that large ones
 * reach, attention at the rate of its kernel, and the elementwise kernels at memory
 * speed; the host's launches are a floor under that sum, joined smoothly
 * (CORRECTIONS T14: fourth powers).  Backward does the products twice and the attention
 * 2.5 times (FlashAttention-2, arXiv 2307.08691, section 3.2). */
#include "costmodel/costmodel.h"

#include <math.h>

/* Bytes that elementwise kernels move per token and hidden unit in one forward pass: two
 * norms read and write, two residual additions read two and write one, at 2 bytes. */
#define NORM_TRAFFIC 20.0
/* ... and per token and column of the MLP's inside: the activation reads and writes. */
#define GATED_TRAFFIC 6.0
#define PLAIN_TRAFFIC 4.0
/* Rotary embedding or its like, per element of queries and keys. */
#define ROTARY_TRAFFIC 4.0
/* Scores of unfused attention with a fused softmax, forward and backward together
 * (CORRECTIONS T15); a third of it forward. */
#define SCORE_TRAFFIC 28.0
/* Loss over a vocabulary entry, forward and backward together (CORRECTIONS T16). */
#define LOSS_TRAFFIC 13.0

double costmodel_matrix_rate (const struct topology_gpu_type *t,
                              enum workload_precision precision)
{
    switch (precision) {
    case PREC_FP16:
        return t->fp16_flop_per_s;
    case PREC_FP8:
        return t->fp8_flop_per_s;
    case PREC_FP32:
        return t->fp32_flop_per_s;
    case PREC_BF16:
        break;
    }
    return t->bf16_flop_per_s > 0 ? t->bf16_flop_per_s : t->fp16_flop_per_s;
}

/* A rank's widths. */
struct widths {
    double tokens, seq, h, q, kv, f, inner, scores, element;
};

static struct widths widths_of (const struct workload_model *m,
                                const struct workload_job *j,
                                const struct workload_config *c)
{
    double t = c->deg.tp, tokens = (double) j->seq * c->micro_batch / c->deg.cp;

    return (struct widths){
        .tokens = tokens,
        .seq = j->seq,
        .h = m->hidden,
        .q = m->heads * (double) m->head_dim / t,
        .kv = fmax (1.0, m->kv_heads / t) * m->head_dim,
        .f = m->ffn / t,
        .inner = (m->gated_mlp ? 2.0 : 1.0) * m->ffn / t,
        .scores = tokens * j->seq * m->heads / t,
        .element = j->precision == PREC_FP32 ? 2.0 : 1.0,
    };
}

static double matmul_weights (const struct widths *w)
{
    return w->h * (2.0 * w->q + 2.0 * w->kv + w->inner + w->f);
}

/* A floor under the GPU's time, joined smoothly. */
static double with_floor (double gpu_s, double floor_s)
{
    return pow (pow (gpu_s, 4) + pow (floor_s, 4), 0.25);
}

static void attention_time (const struct widths *w, const struct workload_job *j,
                            const struct workload_profile *p,
                            const struct topology_gpu_type *t, double mm_rate, double hbm,
                            struct costmodel_compute *out)
{
    double flop = 4.0 * w->tokens * w->seq * w->q; /* both products, all pairs */
    double rate =
        costmodel_matrix_rate (t, j->precision == PREC_FP8 ? PREC_BF16 : j->precision);

    if (j->attention == ATTENTION_FLASH) {
        /* Causal: half the pairs. */
        out->attention_fwd_s = 0.5 * flop / (rate * p->time.attention);
        out->attention_back_s = 2.5 * 0.5 * flop / (rate * p->time.attention_back);
        return;
    }

    double traffic = SCORE_TRAFFIC * w->element * w->scores / hbm;

    out->attention_fwd_s = flop / mm_rate + traffic / 3.0;
    out->attention_back_s = 2.0 * flop / mm_rate + traffic * 2.0 / 3.0;
}

void costmodel_compute (const struct workload_model *m, const struct workload_job *j,
                        const struct workload_config *c, const struct workload_profile *p,
                        const struct topology_gpu_type *t, struct costmodel_compute *out)
{
    struct widths w = widths_of (m, j, c);
    double r = c->sequence_parallel ? c->deg.tp : 1.0;
    double mm_rate =
        costmodel_matrix_rate (t, j->precision) * t->gemm_efficiency * p->time.gemm;
    double hbm = t->hbm_bytes_per_s * p->time.memory_bandwidth;
    double matmul = 2.0 * w.tokens * matmul_weights (&w) / mm_rate;
    double traffic =
        w.element * w.tokens *
        (NORM_TRAFFIC * w.h / r + (m->gated_mlp ? GATED_TRAFFIC : PLAIN_TRAFFIC) * w.f +
         ROTARY_TRAFFIC * (w.q + w.kv)) /
        hbm;
    double gradient =
        2.0 * p->memory.gradient_bytes / hbm; /* read and write, accumulating */
    double vocab = workload_padded_vocab (m, c->deg.tp) / c->deg.tp;
    double head = 2.0 * w.tokens * w.h * vocab / mm_rate;
    double loss = LOSS_TRAFFIC * w.tokens * vocab / hbm;
    struct costmodel_compute k = {0};

    attention_time (&w, j, p, t, mm_rate, hbm, &k);
    k.layer_fwd_s =
        with_floor (matmul + k.attention_fwd_s + traffic, p->time.layer_launch_fwd_s);
    k.layer_back_s = with_floor (2.0 * matmul + k.attention_back_s + 2.0 * traffic +
                                     gradient * workload_layer_params (m, c->deg.tp),
                                 p->time.layer_launch_back_s);
    if (c->recompute == RECOMPUTE_FULL)
        k.layer_recompute_s = k.layer_fwd_s;
    else if (c->recompute == RECOMPUTE_SELECTIVE)
        k.layer_recompute_s = k.attention_fwd_s;
    k.embed_fwd_s = 4.0 * w.element * w.tokens * w.h / hbm;
    k.embed_back_s = 6.0 * w.element * w.tokens * w.h / hbm;
    k.head_fwd_s = head + loss / 3.0;
    k.head_back_s = 2.0 * head + loss * 2.0 / 3.0 + gradient * w.h * vocab;

    double shards = c->zero >= 1 ? (double) c->deg.dp * c->deg.cp : 1.0;

    /* Reads state and gradients, writes state and weights; then clears gradients. */
    k.optimizer_s =
        ((2.0 * p->memory.optimizer_bytes + p->memory.gradient_bytes + 2.0) / shards +
         p->memory.gradient_bytes) /
        hbm;
    *out = k;
}

/* Layers of a stage whose forward is repeated in backward. */
static int recomputed_layers (const struct workload_config *c, int layers)
{
    if (c->recompute == RECOMPUTE_NONE)
        return 0;
    return c->recompute_layers > 0 && c->recompute_layers < layers ? c->recompute_layers
                                                                   : layers;
}

void costmodel_stage_compute (const struct workload_config *c,
                              const struct workload_profile *p,
                              const struct costmodel_compute *k, int stage, int layers,
                              double *fwd_s, double *back_s)
{
    double fwd = 0.5 * p->time.microbatch_s + layers * k->layer_fwd_s;
    double back = 0.5 * p->time.microbatch_s + layers * k->layer_back_s +
                  recomputed_layers (c, layers) * k->layer_recompute_s;

    if (stage == 0) {
        fwd += k->embed_fwd_s;
        back += k->embed_back_s;
    }
    if (stage == c->deg.pp - 1) {
        fwd += k->head_fwd_s;
        back += k->head_back_s;
    }
    *fwd_s = fwd;
    *back_s = back;
}

void costmodel_tp_operations (const struct workload_config *c, int stage, int layers,
                              int *fwd, int *back)
{
    int again = c->recompute == RECOMPUTE_FULL ? recomputed_layers (c, layers) : 0;

    *fwd = 2 * layers + (stage == 0);
    *back = 2 * layers + 2 * again + (stage == c->deg.pp - 1);
}

void costmodel_volume (const struct workload_model *m, const struct workload_job *j,
                       const struct workload_config *c, const struct workload_profile *p,
                       struct costmodel_volume *out)
{
    struct widths w = widths_of (m, j, c);
    double tensor = 2.0 * w.element * w.tokens * w.h;
    double weight = 2.0 * w.element, gradient = p->memory.gradient_bytes;
    int micro = workload_microbatches (j, c);
    struct costmodel_volume v = {
        .tp_bytes = tensor,
        .p2p_bytes = c->sequence_parallel ? tensor / c->deg.tp : tensor,
        .cp_bytes = 2.0 * w.element * w.tokens * 2.0 * w.kv,
    };

    switch (c->zero) {
    case 0:
        v.dp_bytes = 2.0 * gradient;
        v.dp_phases = 2;
        break;
    case 1:
        v.dp_bytes = gradient + weight;
        v.dp_phases = 2;
        break;
    case 2: /* gradients are reduced after every micro-batch */
        v.dp_bytes = micro * gradient + weight;
        v.dp_phases = micro + 1;
        break;
    default: /* and weights are gathered for every forward and backward */
        v.dp_bytes = micro * (gradient + 2.0 * weight);
        v.dp_phases = 3 * micro;
        break;
    }
    if (m->tied && c->deg.pp > 1)
        v.tied_bytes = gradient * w.h * workload_padded_vocab (m, c->deg.tp) / c->deg.tp;
    *out = v;
}

double costmodel_model_flop (const struct workload_model *m, const struct workload_job *j)
{
    double h = m->hidden, ad = (double) m->heads * m->head_dim;
    double matmul = m->layers * (h * (2.0 * ad + 2.0 * m->kv_heads * m->head_dim) +
                                 h * (m->gated_mlp ? 3.0 : 2.0) * m->ffn) +
                    h * m->vocab;
    double tokens = (double) j->seq * j->global_batch;

    return tokens * (6.0 * matmul + 12.0 * m->layers * ad * j->seq);
}
