/* Parameter counts (FORMULAS.md P1 and P5 with CORRECTIONS.md). */
#include "workload/workload.h"

#include <math.h>

static double norm_params (const struct workload_model *m)
{
    return (m->norm == NORM_LAYER ? 2.0 : 1.0) * m->hidden;
}

double workload_layer_params (const struct workload_model *m, int tp)
{
    double h = m->hidden, d = m->head_dim, t = tp;
    double q = m->heads * d / t;
    double kv = 2.0 * d * fmax (1.0, m->kv_heads / t);
    double f = m->ffn / t, inner = m->gated_mlp ? 2.0 * f : f;
    double weights = h * (q + kv) + q * h + inner * h + f * h;
    double biases = 0;

    if (m->qkv_bias)
        biases += q + kv;
    if (m->linear_bias)
        biases += h + inner + h; /* attention output, MLP in (split), MLP out */
    return weights + biases + 2.0 * norm_params (m);
}

double workload_padded_vocab (const struct workload_model *m, int tp)
{
    double unit = 128.0 * tp;

    return ceil (m->vocab / unit) * unit;
}

double workload_embedding_params (const struct workload_model *m, int tp)
{
    double h = m->hidden;

    return h * workload_padded_vocab (m, tp) / tp + h * m->positions;
}

double workload_head_params (const struct workload_model *m, int tp, int pp)
{
    double matrix = m->tied && pp == 1
                        ? 0.0
                        : (double) m->hidden * workload_padded_vocab (m, tp) / tp;

    return norm_params (m) + matrix;
}

double workload_stage_params (const struct workload_model *m,
                              const struct workload_config *c, int stage, int layers)
{
    int tp = c->deg.tp, pp = c->deg.pp;

    return layers * workload_layer_params (m, tp) +
           (stage == 0 ? workload_embedding_params (m, tp) : 0.0) +
           (stage == pp - 1 ? workload_head_params (m, tp, pp) : 0.0);
}

double workload_model_params (const struct workload_model *m)
{
    double h = m->hidden;

    return m->layers * workload_layer_params (m, 1) + h * m->vocab * (m->tied ? 1 : 2) +
           h * m->positions + norm_params (m);
}
