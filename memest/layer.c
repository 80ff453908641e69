/* What one layer keeps of a micro-batch for its backward pass, and what it makes again.  A1 to A27
 * are labels of docs/formulas.md. */
#include "memest/memest_private.h"

#include <math.h>

struct memest_shape memest_shape_of (const struct memest_problem *p)
{
    const struct workload_model *m = p->model;
    const struct workload_config *c = p->config;
    double t = c->deg.tp, quantised = workload_quantised_bytes (p->job->precision);

    return (struct memest_shape){
        .p = p,
        .tokens = (double) p->job->seq * c->micro_batch / c->deg.cp,
        .t = t,
        .r = c->sequence_parallel ? t : 1.0,
        .h = m->hidden,
        .q = m->heads * (double) m->head_dim / t,
        .kv = fmax (1.0, m->kv_heads / t) * m->head_dim,
        .mixer = m->linear == LINEAR_NONE ? (struct workload_mixer){0}
                                          : workload_mixer_of (m, t),
        .element =
            workload_element_bytes (workload_kept_precision (p->job, p->profile)) / 2.0,
        .quantised = quantised > 0 && p->profile->compute_of_type ? quantised : 2.0,
    };
}

/* ---- activations of one layer, bytes per token ---- */

/* GELU by separate operations keeps its half, its tanh and one more than that; under autocast,
 * whose cubes are in fp32, the input and the last two in fp32. */
#define SEPARATE_GELU_BYTES 6.0
#define AUTOCAST_GELU_BYTES 12.0

static double gelu_bytes (const struct memest_shape *w)
{
    if (!workload_gelu_is_separate (w->p->model, w->p->job, w->p->profile))
        return 0.0;
    return workload_autocasts (w->p->job, w->p->config, w->p->profile)
               ? AUTOCAST_GELU_BYTES
               : SEPARATE_GELU_BYTES;
}

static double mlp_bytes (const struct memest_shape *w, double ffn)
{
    const struct workload_profile *f = w->p->profile;
    /* The second product's input (A15); a frozen one's is not kept (A16). */
    double input = w->p->job->lora ? 6.0 - 2.0 * w->quantised : 2.0 - w->quantised;

    if (!f->compute_of_type)
        input = 0.0;
    if (!w->p->model->gated_mlp)
        return (f->memory.plain_mlp_bytes - input + gelu_bytes (w)) * ffn;
    return (f->memory.gated_mlp_bytes - input +
            (workload_choose (w->p->job->fused_mlp, f->fused_mlp)
                 ? 0.0
                 : f->memory.unfused_mlp_bytes)) *
           ffn;
}

static bool norms_are_fused (const struct memest_problem *p)
{
    return workload_norms_are_fused (p->model, p->job, p->profile);
}

/* Is all in fp32, products too?  Then nothing has a copy in another precision. */
static bool all_in_fp32 (const struct memest_shape *w)
{
    return w->element > 1.0 && !w->p->profile->autocast;
}

/* What a layer's two norms keep besides where they are not one kernel each.  It is as much in fp32,
 * where no tensor has a copy.  Of it, what frozen weights multiply is not kept. */
#define MULTIPLIED_BYTES 4.0
static double unfused_norm_bytes (const struct memest_shape *w)
{
    double bytes = w->p->profile->memory.unfused_norm_bytes;

    if (norms_are_fused (w->p))
        return 0.0;
    if (w->p->job->lora)
        bytes = fmax (0.0, bytes - MULTIPLIED_BYTES);
    return all_in_fp32 (w) ? bytes / w->element : bytes;
}

/* Context parallelism that exchanges heads: attention's output is kept in whole sequences, and
 * again in this rank's part, whose copies of keys and values may be more (A12). */
static double exchanged_bytes (const struct memest_shape *w)
{
    const struct workload_profile *f = w->p->profile;
    const struct workload_config *c = w->p->config;
    const struct workload_model *m = w->p->model;

    if (!f->cp_all_to_all || c->deg.cp == 1)
        return 0.0;
    if (m->kv_rank > 0)
        return 2.0 * m->heads / w->t * m->v_dim;
    return 2.0 * w->q + 4.0 * (workload_context_kv_heads (m, c, f) * m->head_dim - w->kv);
}

/* Queries, keys, values and output (A7), or latent attention's parts (A7b).  Norms of queries and
 * keys keep their inputs, since what comes out is counted. */
static double projections_bytes (const struct memest_shape *w)
{
    const struct workload_model *m = w->p->model;
    double a = m->heads / w->t;
    double norms =
        m->qk_norm || m->wide_qk_norm ? 2.0 + unfused_norm_bytes (w) / 2.0 : 0.0;

    if (m->kv_rank == 0) /* a gate keeps itself and its product */
        return 4.0 * w->q + 4.0 * (w->p->profile->repeats_kv ? w->q : w->kv) +
               norms * (w->q + w->kv) + (m->attention_gate ? 4.0 * w->q : 0.0);
    return (4.0 * m->q_rank + 2.0 * (m->kv_rank + m->rope_dim) + 2.0 * m->kv_rank) /
               w->r +
           4.0 * a * (m->nope_dim + m->rope_dim) + 4.0 * a * m->v_dim;
}

/* What a linear mixer's kernels keep for backward (A20). */
static double mixer_bytes (const struct memest_shape *w)
{
    const struct workload_model *m = w->p->model;
    const struct workload_mixer *x = &w->mixer;

    switch (m->linear) {
    case LINEAR_SSM:
    case LINEAR_LIGHTNING:
        return 2.0 * x->in + 4.0 * x->inner;
    case LINEAR_DELTA: /* keys and queries for every head of values, two gates, and A */
        return 2.0 * x->conv + 2.0 * (x->heads * 2.0 * m->lin_state + x->inner) +
               x->heads * (6.0 + 2.0 * m->lin_chunk) + 6.0 * x->inner;
    case LINEAR_CONV:
        return 2.0 * x->in + 6.0 * x->inner;
    case LINEAR_NONE:
        break;
    }
    return 0.0;
}

/* What they make again for the backward of one layer: the convolution's output, and the states
 * at the chunks' ends with their gradients, in fp32. */
static double mixer_rebuilt (const struct memest_shape *w)
{
    const struct workload_mixer *x = &w->mixer;
    double states =
        w->p->model->lin_chunk > 0 ? 8.0 * x->states / w->p->model->lin_chunk : 0.0;

    return (w->p->model->linear == LINEAR_SSM ? 2.0 * x->conv : 0.0) +
           states / w->element;
}

/* The gathered input of a column-parallel layer, where it is kept instead of gathered
 * again in backward, over the part that the norm's output is counted with; or that of each
 * such layer, where each has a copy (A22). */
static double gathered_bytes (const struct memest_shape *w, int layers)
{
    const struct workload_profile *f = w->p->profile;

    if (f->copies_inputs && w->t > 1)
        return 2.0 * w->h * (layers - 1.0 / w->r);
    return f->keeps_gathered ? 2.0 * w->h * (1.0 - 1.0 / w->r) : 0.0;
}

/* Of the mixer: queries, keys and values come from layers of their own; of the MLP: its gate. */
#define MIXER_LAYERS 3
static int mlp_layers (const struct memest_shape *w)
{
    return w->p->model->gated_mlp ? 2 : 1;
}

/* Not the inputs of frozen products, but the adapters' own: attention's with its dropout, whole on
 * every rank, and the output's.  Where adapters are in fp32 each product, of queries, keys and
 * values three or one, and the output's has a copy (PEFT, lora/layer.py), and with dropout a mask
 * of a byte. */
static double adapter_inputs (const struct memest_shape *w)
{
    double each = w->p->job->lora_dropout ? 5.0 : 4.0;

    return w->p->profile->fp32_adapters
               ? each * (workload_qkv_products (w->p->model) * w->h + w->q)
               : 3.0 * w->h + 3.0 * w->q;
}

/* Under autocast (A27) a norm's result is in fp32, and each product that reads it has a 16-bit
 * copy: one or three in attention, one for each of an MLP's first matrices. */
static double autocast_bytes (const struct memest_shape *w, unsigned parts)
{
    double copies = 0.0;

    if (!workload_autocasts (w->p->job, w->p->config, w->p->profile))
        return 0.0;
    if (parts & PART_ATTENTION)
        copies += workload_qkv_products (w->p->model) - 1.0;
    if (parts & PART_MLP && w->p->model->gated_mlp)
        copies += 1.0;
    return 2.0 * (workload_sublayers (parts) + copies) * w->h / w->r;
}

/* Norms, attention but for its scores, the linear mixer, and residuals. */
static double layer_token_bytes (const struct memest_shape *w, unsigned parts)
{
    const struct workload_model *m = w->p->model;
    const struct workload_profile *f = w->p->profile;
    double part = workload_sublayers (parts) / 2.0;
    double attention = parts & PART_ATTENTION ? f->memory.attention_bytes / 2.0 : 0.0;
    double bytes = (part * f->memory.norm_bytes + attention) * w->h / w->r;

    bytes += attention * w->h / w->t;
    if (f->compute_of_type && w->p->job->lora)
        bytes += adapter_inputs (w) - 4.0 * w->h / w->r;
    else if (f->compute_of_type) /* inputs of the first products */
        bytes -= 2.0 * part * (2.0 - w->quantised) * w->h / w->r;
    bytes += part * unfused_norm_bytes (w) * w->h / w->r + autocast_bytes (w, parts);
    if (m->dropout)
        bytes += part * f->memory.dropout_bytes * w->h / w->r;
    if (parts & PART_LINEAR)
        bytes += mixer_bytes (w);
    if (parts & PART_ATTENTION)
        bytes += projections_bytes (w) + exchanged_bytes (w);
    return bytes + (parts & (PART_ATTENTION | PART_LINEAR)
                        ? gathered_bytes (w, MIXER_LAYERS)
                        : 0.0);
}

/* Are there scores in memory?  An encoder-decoder's relative position bias keeps its own. */
static bool has_scores (const struct memest_shape *w, unsigned parts)
{
    return parts & PART_ATTENTION &&
           (!workload_attention_is_flash (w->p->job->attention) ||
            w->p->model->decoder_layers > 0);
}

/* Scores and their softmax.  PyTorch's softmax is in fp32, of which 16 bits have a copy of 2 bytes;
 * the fused one is in the tensors' precision, and its dropout has a mask of 1 byte. */
static double score_token_bytes (const struct memest_shape *w)
{
    const struct workload_profile *f = w->p->profile;
    bool fused = w->p->job->attention == ATTENTION_FUSED;
    double per_score = fused ? f->memory.fused_score_bytes : f->memory.score_bytes;

    if (all_in_fp32 (w))
        per_score = fmax (0.0, fused ? 2.0 * per_score - 1.0 : per_score - 2.0);
    else
        per_score *= w->element;
    return per_score * w->p->model->heads / w->t * w->p->job->seq;
}

/* What WTA-CRS saves of the inputs of linear layers (A14), of the attention, of its output
 * projection, of the MLP and of its second matrix: they are kept in part with their row numbers. */
static double sampled_away (const struct memest_shape *w, double ffn)
{
    double budget = w->p->job->wta_crs, inputs = 2.0 * w->h / w->r + w->q + ffn / w->t;

    if (budget <= 0.0)
        return 0.0;
    return (1.0 - budget) * w->p->profile->memory.wta_input_bytes * inputs +
           w->p->profile->memory.wta_dropped_bytes * w->h / w->r - 4.0 * 8.0 * budget;
}

/* What PyTorch's selective recomputation keeps of a layer: its input, attention's output and
 * the outputs of every second product (A17). */
static double every_second_bytes (const struct memest_shape *w, unsigned parts,
                                  double ffn)
{
    double kept = workload_sublayers (parts) * w->h / w->r;

    if (parts & PART_ATTENTION)
        kept = kept + 2.0 * w->q + w->kv;
    if (parts & PART_LINEAR)
        kept += w->mixer.inner + w->mixer.in;
    if (parts & PART_MLP)
        kept += ffn;
    return 2.0 * w->element * kept;
}

/* What JAX's checkpoint_dots_with_no_batch_dims keeps: a layer's input and the results of products
 * that backward needs, which an MLP's last is not (A17). */
static double products_bytes (const struct memest_shape *w, unsigned parts, double ffn)
{
    double kept = 0.0;

    if (parts & PART_ATTENTION)
        kept = 2.0 * w->h / w->r + w->q + 2.0 * w->kv;
    if (parts & PART_LINEAR)
        kept += 2.0 * w->h / w->r + w->mixer.in;
    if (parts & PART_MLP)
        kept += (w->p->model->gated_mlp ? 2.0 : 1.0) * ffn;
    return 2.0 * w->element * kept;
}

/* Token-expert pairs of a rank for each of its tokens (A11): it dispatches these to top_k
 * experts, and works on as many pairs, times etp since they are gathered over it; the fullest
 * rank has `expert_imbalance` times the mean. */
static double pairs_per_token (const struct memest_problem *p)
{
    const struct workload_config *c = p->config;
    double split = c->sequence_parallel ? c->deg.etp / (double) c->deg.tp : 1.0;

    return split * p->model->top_k * p->profile->memory.expert_imbalance;
}

/* A pair keeps its input, the expert's inside and its output. */
static double pair_bytes (const struct memest_shape *w)
{
    return w->p->profile->memory.expert_token_bytes * w->h +
           mlp_bytes (w, w->p->model->expert_ffn / (double) w->p->config->deg.etp);
}

static double shared_bytes (const struct memest_shape *w)
{
    return w->p->model->shared_ffn > 0 ? mlp_bytes (w, w->p->model->shared_ffn / w->t)
                                       : 0.0;
}

/* What a layer keeps less per token where modules of it are recomputed (A19): what is counted
 * for a module but for its own input.  The inputs of frozen products are not counted. */
static double freed_bytes (const struct memest_shape *w, unsigned parts)
{
    const struct workload_model *m = w->p->model;
    const struct workload_config *c = w->p->config;
    const struct workload_profile *f = w->p->profile;
    bool fused = norms_are_fused (w->p);
    double input = f->compute_of_type && w->p->job->lora ? 0.0 : w->quantised;
    double norm = (input + unfused_norm_bytes (w) / 2.0) * w->h / w->r;
    double freed = 0.0;

    if (c->recompute_modules == 0)
        return 0.0;
    if (workload_recomputes (c, MODULE_LAYERNORM))
        freed += workload_own_norms (m, fused, parts) * norm;
    if (parts & PART_ATTENTION &&
        workload_recomputes (c, MODULE_MLA_UP_PROJ)) /* the output stays */
        freed += m->heads / w->t * (4.0 * (m->nope_dim + m->rope_dim) + 2.0 * m->v_dim);
    if (parts & PART_MLP &&
        workload_recomputes (c, MODULE_MLP)) /* a fused norm is part of it */
        freed += (fused ? norm : 0.0) + mlp_bytes (w, m->ffn / w->t) +
                 gathered_bytes (w, mlp_layers (w));
    if (!(parts & PART_EXPERTS))
        return freed;
    if (workload_recomputes (c, MODULE_MOE))
        return freed + pairs_per_token (w->p) * pair_bytes (w) + shared_bytes (w);
    if (workload_recomputes (c, MODULE_MOE_ACT))
        freed += pairs_per_token (w->p) * input * m->expert_ffn / c->deg.etp;
    if (workload_recomputes (c, MODULE_SHARED_EXPERTS))
        freed += shared_bytes (w);
    return freed;
}

/* What a layer keeps of them; flash attention keeps a log-sum-exp per row. */
static double scores_of (const struct memest_shape *w, unsigned parts)
{
    if (!(parts & PART_ATTENTION))
        return 0.0;
    if (!has_scores (w, parts))
        return 4.0 * w->p->model->heads / w->t;
    return workload_recomputes (w->p->config, MODULE_CORE_ATTN) ? 0.0
                                                                : score_token_bytes (w);
}

/* Those of one layer that is recomputed, with their gradients. */
static double scores_rebuilt (const struct memest_shape *w, unsigned parts)
{
    return has_scores (w, parts) && workload_recomputes (w->p->config, MODULE_CORE_ATTN)
               ? (1.0 + w->p->profile->memory.recompute_workspace) * score_token_bytes (w)
               : 0.0;
}

/* A layer's activations per token (A7), but for what its modules free. */
static double dense_layer_bytes (const struct memest_shape *w, unsigned parts)
{
    double ffn = w->p->model->ffn / w->t;
    double kept = layer_token_bytes (w, parts);

    if (parts & PART_MLP)
        kept = kept + mlp_bytes (w, ffn) + gathered_bytes (w, mlp_layers (w));
    kept = w->element * kept + scores_of (w, parts);

    if (w->p->profile->selective == SELECTIVE_BETWEEN &&
        w->p->config->recompute == RECOMPUTE_SELECTIVE)
        return products_bytes (w, parts, ffn);
    if (w->p->profile->selective == SELECTIVE_PRODUCTS &&
        w->p->config->recompute == RECOMPUTE_SELECTIVE)
        return every_second_bytes (w, parts, ffn) +
               (parts & PART_ATTENTION ? 4.0 * w->p->model->heads / w->t : 0.0);
    return fmax (0.0, kept - sampled_away (w, w->p->model->ffn) -
                          w->element * freed_bytes (w, parts));
}

/* A layer with experts. */
static double expert_layer_bytes (const struct memest_shape *w, unsigned parts)
{
    double kept = layer_token_bytes (w, parts) + shared_bytes (w) +
                  pairs_per_token (w->p) * pair_bytes (w);

    return w->element * fmax (0.0, kept - freed_bytes (w, parts)) + scores_of (w, parts) +
           4.0 * w->p->model->experts / w->r;
}

double memest_layer_bytes (const void *about, unsigned parts)
{
    const struct memest_shape *w = about;

    return w->tokens * (parts & PART_EXPERTS ? expert_layer_bytes (w, parts)
                                             : dense_layer_bytes (w, parts));
}

double memest_layer_rebuilt (const void *about, unsigned parts)
{
    const struct memest_shape *w = about;
    double mixer = parts & PART_LINEAR ? mixer_rebuilt (w) : 0.0;

    return w->tokens *
           (w->element * (freed_bytes (w, parts) + mixer) + scores_rebuilt (w, parts));
}
