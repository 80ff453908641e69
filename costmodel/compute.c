/* Compute of a configuration on a GPU type, from that of its layers: by kinds of layers, of a
 * stage, of the optimizer; and the least over several types. */
#include "costmodel/compute_private.h"

#include <math.h>
#include <string.h>

/* Per parameter, where a framework's optimizer reduces whole gradients itself: flattened,
 * divided, cast to fp32, copied back twice, scaled, and read for their norm; or, reduced as they
 * are kept, flattened, divided and copied. */
#define REDUCED_WHOLE_TRAFFIC 30.0
#define REDUCED_AS_KEPT_TRAFFIC 12.0

/* Each time of `sum` with as many layers as `layer` stands for. */
static void fold_layers (struct costmodel_layer *sum, const struct costmodel_layer *layer,
                         double count, bool least)
{
    double *to = (double *) sum;
    const double *from = (const double *) layer;

    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] = least ? fmin (to[i], from[i]) : to[i] + count * from[i];
}

/* A layer without, or with, experts whose kind is not told, by those of the model, or by all
 * where there is none such: what each of them takes at least, or their mean. */
static struct costmodel_layer untold (const struct workload_model *m,
                                      const struct costmodel_compute *k, bool expert,
                                      bool least)
{
    struct workload_stage all = workload_all_layers (m);
    bool none = (expert ? all.expert : all.dense) == 0;
    double n = none ? m->layers : expert ? all.expert : all.dense;
    struct costmodel_layer out = {0};
    bool first = true;

    for (int i = 0; i < WORKLOAD_KINDS && m->kinds[i]; i++) {
        if (!none && ((workload_kind_parts (m, i) & PART_EXPERTS) != 0) != expert)
            continue;
        if (least && first)
            out = k->kind[i];
        else
            fold_layers (&out, &k->kind[i], all.of[i] / n, least);
        first = false;
    }
    return out;
}

void costmodel_untold_mean (const struct workload_model *m, struct costmodel_compute *k)
{
    if (!m->pattern[0])
        return;
    k->dense = untold (m, k, false, false);
    k->expert = untold (m, k, true, false);
}

#define GPU_SPREAD 0.02     /* of GPUs of one type */
#define GPU_SPREAD_FROM 8.0 /* GPUs of a node, which change nothing */

double costmodel_slowest (const struct workload_profile *p,
                          const struct workload_degrees *d)
{
    double n = (double) workload_world (d);

    return p->compute_of_type ? 1.0 + GPU_SPREAD * (sqrt (2.0 * log (n)) -
                                                    sqrt (2.0 * log (GPU_SPREAD_FROM)))
                              : 1.0;
}

/* Of an update in one kernel: state and gradient read, state and the 16-bit weight written.  In
 * fp32 the weight is its own master copy, beside two moments; two moments in 16 bits have none
 * beside them, so that it is read, too.  Where compute is the GPU type's, a norm before it reads
 * the gradients, which are then scaled: read and written; these kernels take many tensors each, at
 * a part of the memory's rate (docs/formulas.md, T30). */
#define MANY_TENSORS_RATE 0.82
#define MOMENTS_BYTES 4.0
static double updated_bytes (const struct setting *x, double gradient)
{
    double state = workload_optimizer_bytes (x->c, x->p) + x->j->paged_bytes,
           weight = state > MOMENTS_BYTES ? 2.0 : 4.0;
    double each = workload_keeps_fp32 (x->j, x->p) ? 2.0 * (4.0 + 8.0) + gradient
                                                   : 2.0 * state + gradient + weight;

    return x->p->compute_of_type ? (each + 3.0 * gradient) / MANY_TENSORS_RATE : each;
}

/* The optimizer's step, for each parameter on the rank: reads state and gradients, writes state and
 * weights; then clears gradients. */
static double step_s (const struct setting *x, double shards)
{
    const struct workload_profile *p = x->p;
    double reduced =
        p->time.reduced_as_kept ? REDUCED_AS_KEPT_TRAFFIC : REDUCED_WHOLE_TRAFFIC;
    double hbm = x->plain.memory_rate, gradient = workload_gradient_bytes (x->j, x->c, p),
           whole = gradient + (workload_all_reduces (x->c, p) ? reduced : 0.0);
    double each = p->time.optimizer_passes > 0.0
                      ? p->time.optimizer_passes * fmax (gradient, 2.0)
                      : updated_bytes (x, gradient);
    bool away = workload_optimizer_is_away (x->c);

    if (x->j->lora)
        return host_frozen_s (x) / shards;
    if (x->c->zero == 0)
        shards = 1.0;
    return away ? host_step_s (x) / shards + whole / hbm
                : (each / shards + whole) / hbm + host_paged_s (x) / shards;
}

static struct setting setting_of (const struct workload_model *m,
                                  const struct workload_job *j,
                                  const struct workload_config *c,
                                  const struct workload_profile *p,
                                  const struct topology_gpu_type *t)
{
    enum workload_precision plain =
        workload_quantised_bytes (j->precision) > 0 ? PREC_BF16 : j->precision;

    return (struct setting){.t = t,
                            .m = m,
                            .j = j,
                            .c = c,
                            .p = p,
                            .g = machine_of (t, p, j->precision),
                            .plain = machine_of (t, p, plain),
                            .tokens = (double) j->seq * c->micro_batch / c->deg.cp,
                            .h = m->hidden,
                            .r = c->sequence_parallel ? c->deg.tp : 1.0};
}

struct costmodel_compute_key costmodel_compute_key (const struct workload_job *j,
                                                    const struct workload_config *c,
                                                    const struct workload_profile *p)
{
    bool away = c->offload != OFFLOAD_NONE;

    return (struct costmodel_compute_key){
        .tp = c->deg.tp,
        .cp = c->deg.cp,
        .ep = c->deg.ep,
        .etp = c->deg.etp,
        .micro_batch = c->micro_batch,
        .sequence_parallel = c->sequence_parallel,
        .recompute = (int) c->recompute,
        .recompute_layers = c->recompute_layers,
        .recompute_modules = (int) c->recompute_modules,
        .pipeline = c->deg.pp > 1,
        .zero = away ? c->zero : c->zero > 0,
        .autocast = workload_autocasts (j, c, p),
        .offload = (int) c->offload,
        .dense_shards = away ? workload_dense_shards (c) : 0,
        .expert_shards = away ? workload_expert_shards (c) : 0,
        .several = away && workload_microbatches (j, c) > 1};
}

size_t costmodel_compute_hash (const struct costmodel_compute_key *key)
{
    int part[sizeof *key / sizeof (int)];
    uint64_t h = 0;

    memcpy (part, key, sizeof part);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        h = (h ^ (uint64_t) part[i]) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

void costmodel_compute_alike (const struct workload_model *m,
                              const struct workload_job *j,
                              const struct workload_config *c,
                              const struct workload_profile *p,
                              const struct topology_gpu_type *t,
                              struct costmodel_compute *k)
{
    struct setting x = setting_of (m, j, c, p, t);
    double element = x.plain.element_bytes / 2.0, hbm = x.plain.memory_rate;

    *k = (struct costmodel_compute){0};
    for (int i = 0; i < WORKLOAD_KINDS && m->kinds[i]; i++)
        layer_of (&x, workload_kind_parts (m, i), &k->kind[i]);
    if (m->pattern[0]) {
        k->dense = untold (m, k, false, true);
        k->expert = untold (m, k, true, true);
    } else {
        layer_of (&x, WORKLOAD_DENSE_PARTS, &k->dense);
        if (m->experts > 0)
            layer_of (&x, WORKLOAD_EXPERT_PARTS, &k->expert);
    }
    head_time (&x, k);
    k->embed_fwd_s = 4.0 * element * x.tokens * x.h / hbm;
    k->embed_back_s = 6.0 * element * x.tokens * x.h / hbm;
    if (c->offload != OFFLOAD_NONE)
        host_ends (&x, k);
}

void costmodel_compute_rest (const struct workload_model *m, const struct workload_job *j,
                             const struct workload_config *c,
                             const struct workload_profile *p,
                             const struct topology_gpu_type *t,
                             struct costmodel_compute *k)
{
    struct setting x = setting_of (m, j, c, p, t);

    k->optimizer_s = step_s (&x, workload_dense_shards (c));
    k->expert_optimizer_s = step_s (&x, workload_expert_shards (c));
    costmodel_compute_least (k, 1.0 / costmodel_slowest (p, &c->deg), true, k);
}

void costmodel_compute (const struct workload_model *m, const struct workload_job *j,
                        const struct workload_config *c, const struct workload_profile *p,
                        const struct topology_gpu_type *t, struct costmodel_compute *out)
{
    costmodel_compute_alike (m, j, c, p, t, out);
    costmodel_compute_rest (m, j, c, p, t, out);
}

/* So many layers that take this each. */
static void add_layers (struct costmodel_stage_time *out, int n, double again,
                        const struct costmodel_layer *l)
{
    out->fwd_s += n * l->fwd_s;
    out->back_s += n * (l->back_s + again * l->recompute_s);
    out->weight_s += n * l->weight_s;
}

void costmodel_stage_compute (const struct workload_config *c,
                              const struct workload_profile *p,
                              const struct costmodel_compute *k,
                              const struct workload_stage *held,
                              struct costmodel_stage_time *out)
{
    /* Layers of the stage whose forward is repeated in backward. */
    double again = c->recompute == RECOMPUTE_SELECTIVE
                       ? 1.0
                       : costmodel_repeated_part (c, held->dense + held->expert);

    *out = (struct costmodel_stage_time){.fwd_s = 0.5 * p->time.microbatch_s,
                                         .back_s = 0.5 * p->time.microbatch_s};
    if (workload_kinds_told (held)) {
        for (int i = 0; i < WORKLOAD_KINDS; i++)
            add_layers (out, held->of[i], again, &k->kind[i]);
    } else {
        add_layers (out, held->dense, again, &k->dense);
        add_layers (out, held->expert, again, &k->expert);
    }
    if (held->embedding) {
        out->fwd_s += k->embed_fwd_s;
        out->back_s += k->embed_back_s;
    }
    if (held->head) {
        out->fwd_s += k->head_fwd_s;
        out->back_s += k->head_back_s;
        out->weight_s += k->head_weight_s;
    }
}

void costmodel_compute_least (const struct costmodel_compute *k, double speed, bool first,
                              struct costmodel_compute *least)
{
    const double *from = (const double *) k;
    double *to = (double *) least;

    for (size_t i = 0; i < sizeof *k / sizeof *to; i++) {
        double here = from[i] / speed;

        to[i] = first ? here : fmin (to[i], here);
    }
}
