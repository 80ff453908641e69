/* A model from a preset or config.json as facts, for the row. */
#include "jobs/jobs_private.h"

#include <string.h>

bool jobs_preset (struct jobs_reading *r, const char *name)
{
    const struct workload_model *m = workload_preset_meant (name);

    if (m) {
        r->model = *m;
        r->has_model = true;
    }
    return m != NULL;
}

static void sizes (struct jobs_reading *r, const struct workload_model *m)
{
    const struct {
        const char *name;
        int value;
    } fact[] = {{"layers", m->layers},     {"hidden", m->hidden}, {"heads", m->heads},
                {"kv_heads", m->kv_heads}, {"ffn", m->ffn},       {"vocab", m->vocab}};

    for (size_t i = 0; i < COUNT_OF (fact); i++) {
        long said = jobs_int (r, fact[i].name, fact[i].value);

        /* Padded vocabularies are no other model. */
        if (said != fact[i].value && strcmp (fact[i].name, "vocab") != 0) {
            notes_add (
                r->notes,
                "%s is %ld by the job's options and %d in %.80s: the options hold, "
                "and the model is what they say",
                fact[i].name, said, fact[i].value, m->name);
            r->has_model = false;
        }
        jobs_default_int (r, fact[i].name, fact[i].value);
    }
}

/* Which layers have experts, as Megatron evaluates it and calibrate reads it. */
static void frequency (const struct workload_model *m, char *text, size_t size)
{
    int every = m->expert_every, rest = m->layers - m->dense_layers;

    if (every <= 1)
        snprintf (text, size, "([0]*%d+[1]*%d)", m->dense_layers, rest);
    else if (every == m->dense_layers + 1 && m->layers % every == 0)
        snprintf (text, size, "([0]*%d+[1]*1)*%d", m->dense_layers, m->layers / every);
    else
        snprintf (text, size, "[0]*%d+([1]*1+[0]*%d)*%d+[1]*%d+[0]*%d", m->dense_layers,
                  every - 1, rest / every, rest % every > 0,
                  rest % every > 0 ? rest % every - 1 : 0);
}

static void experts (struct jobs_reading *r, const struct workload_model *m)
{
    char text[96];

    jobs_default_int (r, "num-experts", m->experts);
    jobs_default_int (r, "moe-router-topk", m->top_k);
    jobs_default_int (r, "moe-ffn-hidden-size", m->expert_ffn);
    if (m->shared_ffn > 0)
        jobs_default_int (r, "moe-shared-expert-intermediate-size", m->shared_ffn);
    frequency (m, text, sizeof text);
    if (m->dense_layers > 0)
        jobs_default (r, "moe-layer-freq", text);
    else if (m->expert_every > 1)
        jobs_default_int (r, "moe-layer-freq", m->expert_every);
}

static void latent (struct jobs_reading *r, const struct workload_model *m)
{
    jobs_default (r, "multi-latent-attention", "true");
    jobs_default_int (r, "q-lora-rank", m->q_rank);
    jobs_default_int (r, "kv-lora-rank", m->kv_rank);
    jobs_default_int (r, "qk-pos-emb-head-dim", m->rope_dim);
    jobs_default_int (r, "qk-head-dim", m->nope_dim);
    jobs_default_int (r, "v-head-dim", m->v_dim);
}

void jobs_model_facts (struct jobs_reading *r)
{
    const struct workload_model *m = &r->model;
    bool biased = m->qkv_bias && m->out_bias && m->mlp_bias;

    if (!r->has_model)
        return;
    sizes (r, m);
    jobs_default (r, "model", m->name);
    jobs_default_flag (r, "swiglu", m->gated_mlp);
    jobs_default (r, "normalization", m->norm == NORM_RMS ? "RMSNorm" : "LayerNorm");
    jobs_default_flag (r, "disable-bias-linear", !biased);
    jobs_default_flag (r, "untie-embeddings-and-output-weights", !m->tied);
    jobs_default (r, "transformer-impl", "transformer_engine");
    jobs_default (r, "position-embedding-type",
                  m->positions > 0 ? "learned_absolute" : "rope");
    jobs_default (r, "hidden-dropout", m->dropout ? "0.1" : "0");
    if (m->head_dim * m->heads != m->hidden && m->kv_rank == 0)
        jobs_default_int (r, "kv-channels", m->head_dim);
    if (m->mtp_layers > 0)
        jobs_default_int (r, "mtp-num-layers", m->mtp_layers);
    if (m->experts > 0)
        experts (r, m);
    if (m->kv_rank > 0)
        latent (r, m);
}
