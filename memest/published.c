/* Other people's memory models, for comparison on the same configurations. */
#include "memest/memest_private.h"

static const char *const names[] = {"linkwise", "fujii", "korthikanti", NULL};

const char *memest_model_name (enum memest_model m)
{
    return names[m];
}

bool memest_model_parse (const char *s, enum memest_model *m)
{
    return workload_word_parse (names, s, m);
}

static double sbh (const struct memest_problem *p)
{
    return (double) p->job->seq * p->config->micro_batch * p->model->hidden;
}

/* arXiv 2411.06465, eq. 4 and 12. */
static void fujii (const struct memest_problem *p, int stage,
                   const struct workload_stage *held, struct memest_stage *s)
{
    const struct workload_model *m = p->model;
    const struct workload_config *c = p->config;
    struct workload_stage_params n = workload_stage_params (m, c, held);
    double all = n.dense + n.expert, shards = c->zero >= 1 ? c->deg.dp * c->deg.cp : 1.0;
    double flight = workload_in_flight (c, workload_microbatches (p->job, c), stage);
    double kv = m->heads > 0 ? 4.0 * m->kv_heads / m->heads : 0.0;
    double layer =
        sbh (p) * (12.0 + kv + 8.0 * m->ffn / m->hidden) / (c->deg.tp * c->deg.cp);

    if (c->recompute == RECOMPUTE_FULL)
        layer = 2.0 * sbh (p) / c->deg.cp;
    s->weights_bytes = 2.0 * all;
    s->gradients_bytes = 4.0 * all;
    s->optimizer_bytes = 12.0 * all / shards;
    s->activations_bytes = flight * (held->dense + held->expert) * layer;
}

/* arXiv 2205.05198: eq. 1 (tp 1), 2 (tp), 4 (tp with sequence parallelism), selective
 * recomputation without the scores, full with the layer's input alone; eq. 5's first
 * stage. */
static void korthikanti (const struct memest_problem *p, int stage,
                         const struct workload_stage *held, struct memest_stage *s)
{
    const struct workload_model *m = p->model;
    const struct workload_config *c = p->config;
    double h = m->hidden, q = (double) m->heads * m->head_dim, t = c->deg.tp;
    double kv = (double) m->kv_heads * m->head_dim;
    double weights = h * (2.0 * q + 2.0 * kv) + (m->gated_mlp ? 3.0 : 2.0) * h * m->ffn;
    double scores =
        c->recompute != RECOMPUTE_FULL && !workload_recomputes (c, MODULE_CORE_ATTN)
            ? 5.0 * m->heads * (double) p->job->seq / h
            : 0.0;
    double layer = c->sequence_parallel ? sbh (p) / t * (34.0 + scores)
                                        : sbh (p) * (10.0 + (24.0 + scores) / t);
    double flight = workload_in_flight (c, workload_microbatches (p->job, c), stage);
    int layers = held->dense + held->expert;

    /* Their figures count the first stage of an interleaved pipeline as 1 + (p-1)/(p v)
     * pipelines of layers. */
    if (c->schedule == SCHEDULE_INTERLEAVED)
        flight =
            c->deg.pp * (1.0 + (c->deg.pp - 1.0) / ((double) c->deg.pp * c->deg.vpp));
    if (c->recompute == RECOMPUTE_FULL)
        layer = 2.0 * sbh (p) / (c->sequence_parallel ? t : 1.0);
    s->weights_bytes = 2.0 * layers * weights / t;
    s->gradients_bytes = 4.0 * layers * weights / t;
    s->optimizer_bytes = 12.0 * layers * weights / t;
    s->activations_bytes = flight * layers * layer / c->deg.cp;
}

void memest_stage_published (const struct memest_problem *p, int stage,
                             const struct workload_stage *held, struct memest_stage *out)
{
    struct memest_stage s = {0};

    if (p->by == MEMEST_FUJII)
        fujii (p, stage, held, &s);
    else
        korthikanti (p, stage, held, &s);
    s.peak_bytes =
        s.weights_bytes + s.gradients_bytes + s.optimizer_bytes + s.activations_bytes;
    *out = s;
}
