/* Parameter counts (docs/formulas.md, P1 to P5). */
#include "workload/workload.h"

#include <math.h>
#include <string.h>

static double norm_params (const struct workload_model *m, double width)
{
    static const double each[] = {[NORM_RMS] = 1.0,
                                  [NORM_LAYER] = 2.0,
                                  [NORM_LAYER_WEIGHT] = 1.0,
                                  [NORM_LAYER_BARE] = 0.0};

    return each[m->norm] * width;
}

/* Of queries and keys, q and k wide on this rank. */
static double qk_norm_params (const struct workload_model *m, double q, double k)
{
    return (m->qk_norm ? 2.0 * norm_params (m, m->head_dim) : 0.0) +
           (m->wide_qk_norm ? norm_params (m, q) + norm_params (m, k) : 0.0);
}

/* Latent attention: queries and keys/values go through low-rank projections, whose first
 * halves are whole on every tensor-parallel rank (Megatron-Core
 * multi_latent_attention, "duplicated"). */
static double latent_attention_params (const struct workload_model *m, double t)
{
    double h = m->hidden, a = m->heads / t, qk = m->nope_dim + m->rope_dim;
    double q = m->q_rank > 0
                   ? h * m->q_rank + norm_params (m, m->q_rank) + m->q_rank * a * qk
                   : h * a * qk;
    double kv = h * (m->kv_rank + m->rope_dim) + norm_params (m, m->kv_rank) +
                m->kv_rank * a * (m->nope_dim + m->v_dim);

    return q + kv + a * m->v_dim * h;
}

/* Attention and a number of norms on one of t ranks. */
static double attention_params (const struct workload_model *m, double t, int n_norms)
{
    double h = m->hidden, d = m->head_dim;
    double q = m->heads * d / t, kv = 2.0 * d * fmax (1.0, m->kv_heads / t);
    double norms = n_norms * norm_params (m, h);

    if (m->kv_rank > 0)
        return latent_attention_params (m, t) + norms;
    return h * (q + kv) + q * h + (m->qkv_bias ? q + kv : 0.0) + (m->out_bias ? h : 0.0) +
           (m->sinks ? m->heads / t : 0.0) + qk_norm_params (m, q, kv / 2.0) +
           (m->attention_gate ? h * q : 0.0) + norms;
}

/* The linear mixer without the layer's norms.  Its vectors for each head (A, D, dt) are few, so
 * that they are not told apart from 16-bit weights, though some are kept in fp32. */
static double mixer_params (const struct workload_model *m, double t)
{
    struct workload_mixer x = workload_mixer_of (m, t);
    double h = m->hidden, of_heads = 0.0, norm = 0.0;

    switch (m->linear) {
    case LINEAR_SSM:
        of_heads = 3.0 * x.heads;
        norm = m->lin_norm ? x.inner : 0.0;
        break;
    case LINEAR_DELTA:
        of_heads = 2.0 * x.heads;
        norm = m->lin_width; /* one for all heads, whole on every rank */
        break;
    case LINEAR_LIGHTNING:
        norm = x.inner;
        break;
    case LINEAR_CONV:
    case LINEAR_NONE:
        break;
    }
    return h * x.in + x.conv * (m->lin_conv + m->lin_conv_bias) + of_heads + norm +
           x.inner * h + (m->lin_bias ? x.in + h : 0.0);
}

static double mlp_params (const struct workload_model *m, double ffn, double t)
{
    double h = m->hidden, f = ffn / t, in = m->gated_mlp ? 2.0 * f : f;

    return h * in + f * h + (m->mlp_bias ? in + h : 0.0);
}

/* Router, shared experts and their gate. */
static double experts_params (const struct workload_model *m, int tp)
{
    double h = m->hidden, router = h * m->experts + (m->router_bias ? m->experts : 0.0);
    double shared = m->shared_ffn > 0 ? mlp_params (m, m->shared_ffn, tp) : 0.0;

    return router + shared + (m->shared_gate ? h : 0.0);
}

double workload_parts_params (const struct workload_model *m, unsigned parts, int tp)
{
    int norms = workload_norms_of (m, parts);
    double n = parts & PART_ATTENTION ? attention_params (m, tp, norms)
                                      : norms * norm_params (m, m->hidden);

    if (parts & PART_LINEAR)
        n += mixer_params (m, tp);
    if (parts & PART_MLP)
        n += mlp_params (m, m->ffn, tp);
    if (parts & PART_EXPERTS)
        n += experts_params (m, tp);
    return n + m->layer_extra;
}

/* One of several tensor-parallel ranks that hold a model. */
struct rank {
    const struct workload_model *m;
    int tp;
};

static double params_of_parts (const void *about, unsigned parts)
{
    const struct rank *r = about;

    return workload_parts_params (r->m, parts, r->tp);
}

double workload_layer_params (const struct workload_model *m, int tp)
{
    return workload_least_layer (m, false, params_of_parts, &(struct rank){m, tp});
}

/* A decoder's layer has a second attention and its norm.  The first layers of encoder and decoder
 * have a bias for each head and each of 32 distances (T5's relative_attention_num_buckets). */
static double decoder_params (const struct workload_model *m, int tp)
{
    double cross =
        attention_params (m, tp, m->norms) - (m->norms - 1) * norm_params (m, m->hidden);

    return m->decoder_layers * (workload_layer_params (m, tp) + cross) +
           (m->decoder_layers > 0 ? norm_params (m, m->hidden) + 2.0 * 32 * m->heads / tp
                                  : 0.0);
}

double workload_expert_layer_params (const struct workload_model *m, int tp)
{
    return workload_least_layer (m, true, params_of_parts, &(struct rank){m, tp});
}

double workload_expert_params (const struct workload_model *m)
{
    return mlp_params (m, m->expert_ffn, 1);
}

double workload_padded_vocab (const struct workload_model *m, int tp)
{
    double unit = 128.0 * tp;

    return ceil (m->vocab / unit) * unit;
}

static double embedding_extras (const struct workload_model *m)
{
    double h = m->hidden;

    return h * (m->positions + m->spare_positions) +
           (m->embedding_norm ? norm_params (m, h) : 0.0);
}

double workload_embedding_params (const struct workload_model *m, int tp)
{
    return m->hidden * workload_padded_vocab (m, tp) / tp + embedding_extras (m);
}

/* Multi-token prediction on one of tp ranks, without routed experts.  A stage without the
 * embedding has a copy of it for the next tokens, unless its head's matrix is that. */
static double mtp_params (const struct workload_model *m, int tp, bool same)
{
    double h = m->hidden;

    if (m->mtp_layers == 0)
        return 0.0;
    return m->mtp_layers * (workload_parts_params (m, workload_mtp_parts (m), tp) +
                            2.0 * h * h / tp + 3.0 * norm_params (m, h)) +
           (same || m->tied ? 0.0 : h * workload_padded_vocab (m, tp) / tp);
}

double workload_head_params (const struct workload_model *m, int tp, bool same)
{
    double columns = workload_padded_vocab (m, tp) / tp;
    double matrix = m->tied && same ? 0.0 : m->hidden * columns;

    return norm_params (m, m->hidden) + matrix + (m->head_bias ? columns : 0.0) +
           mtp_params (m, tp, same);
}

static double params_with (const struct workload_model *m, double experts)
{
    double h = m->hidden;
    struct workload_stage all = workload_all_layers (m);
    double layers = workload_held_sum (m, &all, params_of_parts, &(struct rank){m, 1}) +
                    (all.expert > 0 ? (all.expert + workload_mtp_experts (m, true)) *
                                          experts * workload_expert_params (m)
                                    : 0.0);

    return layers + mtp_params (m, 1, true) + decoder_params (m, 1) +
           h * m->vocab * (m->tied ? 1 : 2) + (m->head_bias ? m->vocab : 0.0) +
           embedding_extras (m) + norm_params (m, h);
}

double workload_model_params (const struct workload_model *m)
{
    return params_with (m, m->experts);
}

double workload_active_params (const struct workload_model *m)
{
    return params_with (m, m->top_k);
}

/* ---- stages ---- */

/* Count a layer, or (by = -1) take it away again.  Behind the last one none is of any kind. */
static void count_layer (const struct workload_model *m, int index, int by,
                         struct workload_layers *l)
{
    *(workload_is_expert_layer (m, index) ? &l->expert : &l->dense) += by;
    if (m->pattern[0] && index < m->layers)
        l->of[workload_kind_of (m, index)] += by;
}

static struct workload_layers count_layers (const struct workload_model *m, int first,
                                            int n)
{
    struct workload_layers l = {0};

    for (int i = first; i < first + n; i++)
        count_layer (m, i, 1, &l);
    return l;
}

/* The layers first .. first+n-1. */
static inline struct workload_layers layers_at (const struct workload_model *m, int first,
                                                int n)
{
    return m->experts == 0 && !m->pattern[0] ? (struct workload_layers){.dense = n}
                                             : count_layers (m, first, n);
}

int workload_chunk_layers (int layers, int v, int chunk, bool spares_last)
{
    int more = layers % v, end = v - spares_last; /* of those that get one more */

    return layers < v ? chunk < layers
                      : layers / v + (chunk < end && chunk >= end - more);
}

/* Give a stage these layers as chunk `chunk` of v. */
static void put_chunk (const struct workload_model *m, int chunk, int v,
                       struct workload_layers l, struct workload_stage *s)
{
    s->dense += l.dense;
    s->expert += l.expert;
    for (int kind = 0; kind < WORKLOAD_KINDS && m->pattern[0]; kind++)
        s->of[kind] += l.of[kind];
    if (v > 1 && chunk == 0)
        s->first = l;
    if (v > 1 && chunk == v - 1)
        s->last = l;
}

static struct workload_stage ends_of (const struct workload_config *c, int stage)
{
    int last = workload_schedule_is_v (c->schedule) ? 0 : c->deg.pp - 1;

    return (struct workload_stage){.embedding = stage == 0, .head = stage == last};
}

/* Layers of every stage, or (given) of every chunk. */
static struct workload_stage stage_of (const struct workload_model *m,
                                       const struct workload_config *c, const int *layers,
                                       bool given, int stage)
{
    struct workload_stage s = ends_of (c, stage);
    int pp = c->deg.pp, v = c->deg.vpp, first = 0;

    for (int chunk = 0; chunk < v; chunk++)
        for (int k = 0; k < pp; k++) {
            int at = workload_schedule_is_v (c->schedule) && chunk % 2 ? pp - 1 - k : k;
            int n = given ? layers[at * v + chunk]
                          : workload_layers_of_chunk (c, at, layers[at], chunk);

            if (at == stage)
                put_chunk (m, chunk, v, layers_at (m, first, n), &s);
            first += n;
        }
    return s;
}

struct workload_stage workload_stage_of (const struct workload_model *m,
                                         const struct workload_config *c,
                                         const int *layers, int stage)
{
    return stage_of (m, c, layers, false, stage);
}

struct workload_stage workload_stage_of_chunks (const struct workload_model *m,
                                                const struct workload_config *c,
                                                const int *chunks, int stage)
{
    return stage_of (m, c, chunks, true, stage);
}

struct workload_stage workload_stage_from (const struct workload_model *m,
                                           const struct workload_config *c, int stage,
                                           int first, int layers)
{
    struct workload_stage s = ends_of (c, stage);
    int v = c->deg.vpp;

    for (int chunk = 0; chunk < v; chunk++) {
        int n = workload_layers_of_chunk (c, stage, layers, chunk);

        put_chunk (m, chunk, v, layers_at (m, first, n), &s);
        first += n;
    }
    return s;
}

struct workload_stage workload_stage_guess (const struct workload_model *m,
                                            const struct workload_config *c, int stage,
                                            int layers)
{
    return workload_stage_from (m, c, stage, stage, layers);
}

static double layers_params (const struct workload_model *m,
                             const struct workload_layers *l)
{
    struct workload_stage s = {.dense = l->dense, .expert = l->expert};

    memcpy (s.of, l->of, sizeof s.of);
    return workload_held_sum (m, &s, params_of_parts, &(struct rank){m, 1});
}

/* The same of n layers in a row that start at least and at most so far down the model: those
 * with the fewest experts, their kinds not told, and with the most, of which those with most
 * parameters. */
static void range_at (const struct workload_model *m, int least, int most, int n,
                      struct workload_layers *fewest,
                      struct workload_layers *most_experts)
{
    /* From there on it repeats. */
    int ends = m->pattern[0] ? m->layers : m->dense_layers + m->expert_every;
    struct workload_layers l = layers_at (m, least, n);
    double params = m->pattern[0] ? layers_params (m, &l) : 0.0;

    *fewest = *most_experts = l;
    for (int first = least + 1; first <= most && first < least + ends; first++) {
        double here;

        count_layer (m, first - 1, -1, &l);
        count_layer (m, first + n - 1, 1, &l);
        here = m->pattern[0] ? layers_params (m, &l) : 0.0;
        if (l.expert < fewest->expert)
            *fewest = l;
        if (l.expert > most_experts->expert ||
            (l.expert == most_experts->expert && here > params)) {
            *most_experts = l;
            params = here;
        }
    }
    memset (fewest->of, 0, sizeof fewest->of);
}

void workload_stage_range (const struct workload_model *m,
                           const struct workload_config *c, int stage, int layers,
                           struct workload_stage *fewest, struct workload_stage *most)
{
    int pp = c->deg.pp, v = c->deg.vpp;

    *fewest = *most = ends_of (c, stage);
    for (int chunk = 0; chunk < v; chunk++) {
        int k =
            workload_schedule_is_v (c->schedule) && chunk % 2 ? pp - 1 - stage : stage;
        int before = chunk * pp + k;
        int n = workload_layers_of_chunk (c, stage, layers, chunk);
        int after = pp * v - 1 - before, last; /* it starts there at most */
        struct workload_layers few, many;

        if (pp * v > m->layers) { /* last chunks may be empty */
            before -= chunk == v - 1 ? k : 0;
            after = chunk == v - 1 ? 0 : after - pp;
        }
        last = m->layers - n - after;

        if (before == 0)
            last = 0;
        range_at (m, chunk == v - 1 && k == pp - 1 && last > before ? last : before, last,
                  n, &few, &many);
        put_chunk (m, chunk, v, few, fewest);
        put_chunk (m, chunk, v, many, most);
    }
}

struct workload_stage_params workload_stage_params (const struct workload_model *m,
                                                    const struct workload_config *c,
                                                    const struct workload_stage *s)
{
    int tp = c->deg.tp;
    int experts = s->expert + workload_mtp_experts (m, s->head);
    struct workload_stage_params p = {0};

    p.dense = workload_held_sum (m, s, params_of_parts, &(struct rank){m, tp});
    if (experts > 0)
        p.expert = experts * (double) m->experts / c->deg.ep *
                   workload_expert_params (m) / c->deg.etp;
    if (s->embedding)
        p.dense += workload_embedding_params (m, tp) + decoder_params (m, tp);
    if (s->head)
        p.dense += workload_head_params (m, tp, s->embedding);
    return p;
}
