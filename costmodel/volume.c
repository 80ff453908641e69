/* What the ranks send, and how many FLOPs a model needs. */
#include "costmodel/prices.h"

/* Whose operations are counted. */
struct about {
    const struct workload_model *m;
    const struct workload_config *c;
};

/* Of experts, and `others` before them: the shared ones', and with expert tensor parallelism the
 * gathered token-expert pairs. */
static double experts_operations (const struct about *x, double others)
{
    const struct workload_degrees *d = &x->c->deg;

    return others + (x->m->shared_ffn > 0) +
           (d->etp > 1 ? x->m->top_k * d->etp / (double) d->tp : 0.0);
}

/* A layer's mixers add up before their one operation. */
static double layer_operations (const void *about, unsigned parts)
{
    double mixers = parts & (PART_ATTENTION | PART_LINEAR) ? 1.0 : 0.0;

    if (parts & PART_MLP)
        return mixers + 1.0;
    return parts & PART_EXPERTS ? experts_operations (about, mixers) : mixers;
}

/* Those that backward repeats where modules are recomputed. */
static double repeated_operations (const void *about, unsigned parts)
{
    const struct about *x = about;

    if (parts & PART_MLP)
        return workload_recomputes (x->c, MODULE_MLP) ? 1.0 : 0.0;
    if (!(parts & PART_EXPERTS))
        return 0.0;
    if (workload_recomputes (x->c, MODULE_MOE)) /* all but attention's */
        return experts_operations (x, 0.0);
    return workload_recomputes (x->c, MODULE_SHARED_EXPERTS) && x->m->shared_ffn > 0
               ? 1.0
               : 0.0;
}

void costmodel_tp_operations (const struct workload_model *m,
                              const struct workload_config *c,
                              const struct workload_stage *held, double *fwd,
                              double *back)
{
    const struct about x = {m, c};
    double once = workload_held_sum (m, held, layer_operations, &x),
           again = costmodel_repeated_part (c, held->dense + held->expert);
    double mtp =
        held->head ? m->mtp_layers : 0; /* with a projection and a head of its own */
    double of_mtp = mtp > 0 ? mtp * layer_operations (&x, workload_mtp_parts (m)) : 0.0;

    *fwd = once + of_mtp + mtp + held->embedding;
    *back = once * (1.0 + again) + workload_held_sum (m, held, repeated_operations, &x) +
            of_mtp * (c->recompute == RECOMPUTE_FULL ? 2.0 : 1.0) + 2.0 * mtp +
            held->head;
}

static double gated_mlps (const void *about, unsigned parts)
{
    const struct about *x = about;

    return parts & PART_MLP || (parts & PART_EXPERTS && x->m->shared_ffn > 0);
}

double costmodel_gate_operations (const struct workload_model *m,
                                  const struct workload_config *c,
                                  const struct workload_profile *p,
                                  const struct workload_stage *held)
{
    return p->separate_gate && m->gated_mlp && !c->sequence_parallel
               ? workload_held_sum (m, held, gated_mlps, &(struct about){m, c})
               : 0;
}

/* Weights gathered layer by layer: for every forward and backward, or, where they stay between the
 * two, until gradients are reduced; once beside a pipeline (torchtitan's fsdp.py: not resharded
 * after forward). */
static void layers_volume (const struct workload_config *c, int layers, int micro,
                           int reduces, double gradient, double weight,
                           struct costmodel_volume *v)
{
    int gathers = c->deg.pp > 1 ? 1 : c->zero == 2 ? reduces : 2 * micro;

    v->dp_bytes = reduces * gradient + gathers * weight;
    v->dp_phases = (reduces + gathers) * layers;
}

/* @param micro    micro-batches, which gather weights under ZeRO 3
 *  @param reduces  how often gradients are reduced under ZeRO 2 and 3
 *  @param times    that groups with the same shards reduce gradients with each other */
static void dp_volume (const struct workload_config *c, const struct workload_profile *p,
                       int layers, int micro, int reduces, int times, double gradient,
                       double weight, struct costmodel_volume *v)
{
    /* An all-reduce is a reduce-scatter and an all-gather. */
    int halves = workload_all_reduces (c, p) ? 2 : 1;
    bool by_layer = workload_gathers_by_layer (c, p);
    bool apart = p->reduces_bare || (c->deg.pp > 1 && (c->zero >= 2 || p->reduces_late));
    double late = apart ? 1.0 : 0.0;

    if (c->zero == 0) {
        v->dp_bytes = gradient;
        v->dp_bare_bytes = p->reduces_late || p->reduces_bare ? gradient : 0.0;
        v->dp_phases = 1;
        v->dp_all_reduce = true;
        return;
    }
    if (by_layer) {
        layers_volume (c, layers, micro, reduces, gradient, weight, v);
    } else {
        v->dp_bytes = halves * reduces * gradient + weight;
        v->dp_phases = halves * reduces + 1;
    }
    v->dp_bare_bytes = late * (by_layer ? 1 : halves) * reduces * gradient +
                       (p->gathers_at_step && !by_layer ? weight : 0.0);
    if (workload_shard_copies (c) == 1 || !(gradient > 0.0))
        return;
    v->copy_bytes = times * gradient;
    v->copy_bare_bytes = late * v->copy_bytes;
    v->copy_phases = times * (by_layer ? layers : 1);
}

/* What a rank has of a layer's queries, keys, values and attention's output together, which it
 * exchanges for whole sequences of fewer heads (DeepSpeed, ulysses_sp.py, UlyssesSPAttentionHF).
 * @param kv  elements of keys and values a token */
static double exchanged_bytes (const struct workload_model *m,
                               const struct workload_config *c, double token_bytes,
                               double kv)
{
    double width =
        m->kv_rank > 0 ? m->nope_dim + m->rope_dim + m->v_dim : 2 * m->head_dim;

    return token_bytes * (m->heads / (double) c->deg.tp * width + kv);
}

/* Of a tensor of so many bytes, what a tensor-parallel all-reduce carries: under sequence
 * parallelism one half is a reduce-scatter, the other an all-gather of what products read. */
static double tensor_payload (const struct workload_job *j,
                              const struct workload_config *c,
                              const struct workload_profile *p, double bytes)
{
    return c->sequence_parallel && p->gathers_fp8 && j->precision == PREC_FP8
               ? 0.75 * bytes
               : bytes;
}

/* Bytes of a weight that replicas gather.  Layer by layer those of products may be cast to fp8
 * before; embedding, head and experts are not (torchao, fsdp_utils.py; TorchTitan's docs/float8.md,
 * enable_fsdp_float8_all_gather). */
static double gathered_weight (const struct workload_model *m,
                               const struct workload_job *j,
                               const struct workload_config *c,
                               const struct workload_profile *p)
{
    double kept = workload_element_bytes (workload_kept_precision (j, p)), cast;

    if (j->lora)
        return j->frozen_bytes > 0.0 ? j->frozen_bytes : kept;
    if (!p->gathers_fp8 || j->precision != PREC_FP8 || m->experts > 0 ||
        !workload_gathers_by_layer (c, p))
        return kept;
    cast = workload_embedding_params (m, 1) + workload_head_params (m, 1, true);
    cast = 1.0 - cast / workload_model_params (m);
    return kept - cast * (kept - workload_quantised_bytes (PREC_FP8));
}

void costmodel_volume (const struct workload_model *m, const struct workload_job *j,
                       const struct workload_config *c, const struct workload_profile *p,
                       struct costmodel_volume *out)
{
    double element = workload_element_bytes (j->precision);
    double tokens = (double) j->seq * c->micro_batch / c->deg.cp, t = c->deg.tp;
    double tensor = element * tokens * m->hidden;
    double share = c->sequence_parallel ? tensor / t : tensor;
    double kv = m->kv_rank > 0 ? m->heads / t * (m->nope_dim + m->rope_dim + m->v_dim)
                               : 2.0 * workload_context_kv_heads (m, c, p) * m->head_dim;
    struct costmodel_volume v = {
        .tp_bytes = tensor_payload (j, c, p, tensor),
        .p2p_bytes = share,
        .cp_bytes = element * tokens * kv,
        .cp_back_bytes = (element + (p->cp_by_pieces ? 4.0 : element)) * tokens * kv,
        .ep_bytes = m->experts > 0 ? share * workload_expert_capacity (p) : 0.0,
    };

    if (p->cp_all_to_all)
        v.cp_bytes = v.cp_back_bytes = exchanged_bytes (m, c, element * tokens, kv);

    int micro = workload_microbatches (j, c);
    int reduces = c->zero >= 2 && !workload_reduces_once (p, c, micro) ? micro : 1;
    double weight = gathered_weight (m, j, c, p);

    if (!j->lora || workload_gathers_by_layer (c, p))
        dp_volume (c, p, (m->layers + c->deg.pp - 1) / c->deg.pp, micro, reduces,
                   p->copies_once ? 1 : reduces,
                   j->lora ? 0.0 : workload_reduced_bytes (j, c, p), weight, &v);
    if (m->tied && c->deg.pp > 1 && !workload_schedule_is_v (c->schedule) && !j->lora)
        v.tied_bytes = workload_gradient_bytes (j, c, p) * m->hidden *
                       workload_padded_vocab (m, c->deg.tp) / t;
    *out = v;
}

/* Is it one of these parts' layers? */
static double parts_count (const void *about, unsigned parts)
{
    return (parts & *(const unsigned *) about) != 0;
}

/* @param each  per matmul parameter and token */
static double step_flop (const struct workload_model *m, const struct workload_job *j,
                         double each)
{
    double h = m->hidden, tokens = (double) j->seq * j->global_batch;
    double width = m->kv_rank > 0 ? 0.5 * (m->nope_dim + m->rope_dim + m->v_dim)
                                  : (double) m->head_dim;
    struct workload_stage all = workload_all_layers (m);
    double attentions =
        workload_held_sum (m, &all, parts_count, &(unsigned){PART_ATTENTION}) +
        2.0 * m->decoder_layers + m->mtp_layers;
    double windowed = workload_windowed (m);
    double mixers = workload_held_sum (m, &all, parts_count, &(unsigned){PART_LINEAR});
    attentions *= 1.0 - windowed + windowed * workload_window_pairs (m, j->seq, 0.0);
    /* The input embedding is a table, unless it is the output's matrix too. */
    double tables = h * (m->positions + (m->tied ? 0.0 : m->vocab));

    /* Passes of the head that have no matrix of their own. */
    double passes = h * m->mtp_layers * (double) m->vocab;

    return tokens * (each * (workload_active_params (m) - tables + passes) +
                     12.0 * attentions * m->heads * width * j->seq +
                     3.0 * mixers * workload_recurrence_flop (m));
}

double costmodel_model_flop (const struct workload_model *m, const struct workload_job *j)
{
    return step_flop (m, j, 6.0);
}

double costmodel_trained_flop (const struct workload_model *m,
                               const struct workload_job *j)
{
    return step_flop (m, j, j->lora ? 4.0 : 6.0);
}
