/* Weights, gradients and optimizer state (FORMULAS Z0-Z3), activations by schedule and
 * recomputation (A1-A10), logits (A9), buffers and overheads. */
#include "memest/memest.h"

#include <math.h>

/* Bytes per parameter of weights, gradients and optimizer state.
 *
 * bf16 with fp32 main gradients: 2 + 4 + 12; fp16 with fp16 gradients: 2 + 2 + 16; fp32:
 * 4 + 4 + 8 (Megatron-Core, distributed optimizer documentation).  fp8 keeps bf16 weights
 * and an fp8 copy with its transpose. */
struct state_bytes {
    double weight, gradient, optimizer;
};

static struct state_bytes state_bytes (enum workload_precision precision,
                                       const struct workload_profile *p)
{
    switch (precision) {
    case PREC_FP16:
        return (struct state_bytes){2, 2, 16};
    case PREC_FP32:
        return (struct state_bytes){4, 4, 8};
    case PREC_FP8:
        return (struct state_bytes){4, p->memory.gradient_bytes,
                                    p->memory.optimizer_bytes};
    case PREC_BF16:
        break;
    }
    return (struct state_bytes){2, p->memory.gradient_bytes, p->memory.optimizer_bytes};
}

/* Bytes per element of activations. */
static double element_bytes (const struct workload_job *j)
{
    return j->precision == PREC_FP32 ? 2.0 : 1.0; /* times the 16-bit formulas */
}

/* Bytes kept per token by one layer, nothing recomputed (FORMULAS A7 with CORRECTIONS):
 * norms and residual, attention, MLP. */
static double layer_token_bytes (const struct workload_model *m,
                                 const struct workload_job *j,
                                 const struct workload_config *c,
                                 const struct workload_profile *p)
{
    double t = c->deg.tp, r = c->sequence_parallel ? t : 1.0, h = m->hidden;
    double q = m->heads * (double) m->head_dim / t;
    double kv = fmax (1.0, m->kv_heads / t) * m->head_dim;
    double mlp = m->gated_mlp ? p->memory.gated_mlp_bytes : p->memory.plain_mlp_bytes;
    double bytes = p->memory.norm_bytes * h / r + 4.0 * q + 4.0 * kv + mlp * m->ffn / t;

    if (m->dropout)
        bytes += p->memory.dropout_bytes * h / r;
    bytes *= element_bytes (j);
    if (j->attention == ATTENTION_FLASH)
        bytes += 4.0 * m->heads / t; /* log-sum-exp of each row, fp32 */
    else if (c->recompute != RECOMPUTE_SELECTIVE)
        bytes += p->memory.score_bytes * element_bytes (j) * m->heads / t * j->seq;
    return bytes;
}

/* Micro-batches whose activations a stage holds at once (FORMULAS A8). */
static double in_flight (const struct workload_config *c, int microbatches, int stage)
{
    int held = c->schedule == SCHEDULE_GPIPE ? microbatches : c->deg.pp - stage;

    return held < microbatches ? held : microbatches;
}

static double activation_bytes (const struct workload_model *m,
                                const struct workload_job *j,
                                const struct workload_config *c,
                                const struct workload_profile *p, int stage, int layers)
{
    double tokens = (double) j->seq * c->micro_batch / c->deg.cp;
    double r = c->sequence_parallel ? c->deg.tp : 1.0;
    double held = in_flight (c, workload_microbatches (j, c), stage);
    double whole = tokens * layer_token_bytes (m, j, c, p);
    double checkpoint = 2.0 * element_bytes (j) * tokens * m->hidden / r;
    double bytes = held * layers * whole;

    if (c->recompute == RECOMPUTE_FULL) {
        int n = c->recompute_layers > 0 && c->recompute_layers < layers
                    ? c->recompute_layers
                    : layers;

        /* Checkpoints in flight, and the layer that is being recomputed with its
         * gradients (A10). */
        bytes = held * (n * checkpoint + (layers - n) * whole) +
                (1.0 + p->memory.recompute_workspace) * whole;
    }
    if (stage == 0)
        bytes += held * tokens * (8.0 + (m->dropout ? m->hidden / r : 0.0));
    if (stage == c->deg.pp - 1)
        bytes += 4.0 * element_bytes (j) * tokens * m->hidden / r; /* final norm */
    return bytes;
}

static double buffer_bytes (const struct workload_model *m, const struct workload_job *j,
                            const struct workload_config *c, double weight_bytes)
{
    double tokens = (double) j->seq * c->micro_batch / c->deg.cp;
    double tensor = 2.0 * element_bytes (j) * tokens * m->hidden;
    double r = c->sequence_parallel ? c->deg.tp : 1.0;
    double bytes = 0;

    if (c->sequence_parallel)
        bytes += tensor; /* the gathered input of a column-parallel layer */
    if (c->deg.pp > 1)
        bytes += 2.0 * tensor / r; /* received activation and gradient */
    if (c->deg.cp > 1) {
        double kv = fmax (1.0, (double) m->kv_heads / c->deg.tp) * m->head_dim;

        /* Two key/value buffers of the ring, and two for their gradients (A12). */
        bytes += 4.0 * 2.0 * element_bytes (j) * tokens * 2.0 * kv;
    }
    if (c->zero == 3) {
        double unit = workload_layer_params (m, c->deg.tp);

        /* The gathered weights of a layer and of the next one, and the gradients of one
         * before they are reduced. */
        bytes += 3.0 * weight_bytes * unit;
    }
    return bytes;
}

/* Communicators in use: each holds its channels' buffers. */
static int groups_in_use (const struct workload_degrees *d)
{
    return (d->tp > 1) + (d->pp > 1) + (d->dp * d->cp > 1) + (d->cp > 1);
}

void memest_stage (const struct workload_model *m, const struct workload_job *j,
                   const struct workload_config *c, const struct workload_profile *p,
                   int stage, int layers, struct memest_stage *out)
{
    struct state_bytes per = state_bytes (j->precision, p);
    double params = workload_stage_params (m, c, stage, layers);
    double shards = (double) c->deg.dp * c->deg.cp;
    struct memest_stage s = {0};

    s.weights_bytes = per.weight * params / (c->zero >= 3 ? shards : 1.0);
    s.gradients_bytes = per.gradient * params / (c->zero >= 2 ? shards : 1.0);
    s.optimizer_bytes = per.optimizer * params / (c->zero >= 1 ? shards : 1.0);
    s.activations_bytes = activation_bytes (m, j, c, p, stage, layers);
    s.buffers_bytes = buffer_bytes (m, j, c, per.weight);
    if (stage == c->deg.pp - 1)
        s.logits_bytes = p->memory.logit_bytes * ((double) j->seq * c->micro_batch) /
                         c->deg.cp * workload_padded_vocab (m, c->deg.tp) / c->deg.tp;

    double tensors = s.weights_bytes + s.gradients_bytes + s.optimizer_bytes +
                     s.activations_bytes + s.buffers_bytes + s.logits_bytes;

    s.overhead_bytes = p->memory.base_bytes +
                       groups_in_use (&c->deg) * p->memory.group_bytes +
                       (p->memory.fragmentation - 1.0) * tensors;
    s.peak_bytes = tensors + s.overhead_bytes;
    *out = s;
}

int memest_max_layers (const struct workload_model *m, const struct workload_job *j,
                       const struct workload_config *c, const struct workload_profile *p,
                       int stage, int layers, double limit_bytes)
{
    struct memest_stage s;
    int fits = 0, over = layers + 1;

    /* The even split is the usual question, so the search starts there. */
    for (int try = (layers + c->deg.pp - 1) / c->deg.pp; over - fits > 1;
         try = fits + (over - fits) / 2) {
        memest_stage (m, j, c, p, stage, try, &s);
        if (s.peak_bytes <= limit_bytes)
            fits = try;
        else
            over = try;
    }
    return fits;
}

json_t *memest_stage_to_json (const struct memest_stage *s)
{
    return json_pack ("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "weights_bytes",
                      s->weights_bytes, "gradients_bytes", s->gradients_bytes,
                      "optimizer_bytes", s->optimizer_bytes, "activations_bytes",
                      s->activations_bytes, "logits_bytes", s->logits_bytes,
                      "buffers_bytes", s->buffers_bytes, "overhead_bytes",
                      s->overhead_bytes, "peak_bytes", s->peak_bytes);
}
