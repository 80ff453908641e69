/* What a GPU type reaches in practice: its rates, by the type's constants and the profile's. */
#include "costmodel/compute_private.h"

double costmodel_matrix_rate (const struct topology_gpu_type *t,
                              enum workload_precision precision)
{
    switch (precision) {
    case PREC_FP16:
        return t->fp16_flop_per_s;
    case PREC_FP8:
        return t->fp8_flop_per_s;
    case PREC_FP4:
        return t->fp4_flop_per_s;
    case PREC_FP32:
        return t->fp32_flop_per_s;
    case PREC_TF32:
        return t->tf32_flop_per_s;
    case PREC_BF16:
        break;
    }
    return t->bf16_flop_per_s > 0 ? t->bf16_flop_per_s : t->fp16_flop_per_s;
}

bool costmodel_slower (const struct topology_gpu_type *a,
                       const struct topology_gpu_type *b)
{
    return costmodel_matrix_rate (a, PREC_FP16) * a->gemm_efficiency <
           costmodel_matrix_rate (b, PREC_FP16) * b->gemm_efficiency;
}

void costmodel_gpus (const struct topology_cluster *c, struct workload_gpus *all)
{
    bool drained = true;

    for (int i = 0; i < c->n_nodes; i++)
        drained = drained && c->node[i].drained;
    for (int i = 0; i < c->n_nodes; i++)
        if (drained || !c->node[i].drained)
            workload_gpus_add (all, c->node[i].type->name);
}

void costmodel_gpus_of_plan (const struct topology_cluster *c,
                             const struct workload_plan *p, struct workload_gpus *all)
{
    for (int r = 0; r < p->n_ranks; r++) {
        int node = topology_node_find (c, p->place[r].node);

        if (node >= 0)
            workload_gpus_add (all, c->node[node].type->name);
    }
}

enum status costmodel_profile_used (struct workload_profile *p,
                                    const struct topology_cluster *c, const int *gpu,
                                    int n, const struct workload_model *m,
                                    const struct workload_job *j, struct error *err)
{
    struct workload_gpus on = {.n = 0};

    if (!p->meant[0])
        return ST_OK;
    for (int r = 0; r < n; r++)
        workload_gpus_add (&on, c->node[c->node_of_gpu[gpu[r]]].type->name);
    return workload_profile_serve (p, &on, m, j->precision, err);
}

/* Part of the peak that large products reach, of the GPU type and the profile. */
static double gemm_efficiency (const struct topology_gpu_type *t,
                               const struct workload_profile *p,
                               enum workload_precision precision)
{
    double own = precision == PREC_TF32                        ? t->tf32_gemm_efficiency
                 : precision == PREC_FP32                      ? t->fp32_gemm_efficiency
                 : precision == PREC_FP8 && p->compute_of_type ? t->fp8_gemm_efficiency
                 : precision == PREC_FP4                       ? t->fp4_gemm_efficiency
                                                               : 0.0;

    return (own > 0 ? own : t->gemm_efficiency) * p->time.gemm;
}

/* Part of the memory's peak that copies reach where a profile's memory_bandwidth was fitted:
 * .79 on A100, .87 on H100, .83 on H200 (docs/formulas.md, T21). */
#define COPY_PART .83

/* A wave's start on a GPU that computes by its type's constants. */
#define TYPE_WAVE_S 4e-6
static double wave_s (const struct workload_profile *p)
{
    if (p->time.wave_s > 0)
        return p->time.wave_s;
    return p->compute_of_type ? TYPE_WAVE_S : COSTMODEL_WAVE_S;
}

struct machine machine_of (const struct topology_gpu_type *t,
                           const struct workload_profile *p,
                           enum workload_precision precision)
{
    double quantised = workload_quantised_bytes (precision);

    return (struct machine){
        .wave_s = wave_s (p),
        .matrix_rate =
            costmodel_matrix_rate (t, precision) * gemm_efficiency (t, p, precision),
        .memory_rate = (t->copy_bytes_per_s > 0 ? t->copy_bytes_per_s / COPY_PART
                                                : t->hbm_bytes_per_s) *
                       p->time.memory_bandwidth,
        .multiprocessors = t->multiprocessors,
        .element_bytes = quantised > 0 ? quantised : workload_element_bytes (precision),
    };
}

bool costmodel_note_type (const struct topology_gpu_type *t,
                          enum workload_precision precision, struct notes *notes)
{
    if (precision != PREC_BF16 || t->bf16_flop_per_s > 0)
        return false;
    notes_add (notes, "GPU type %s has no bf16; its fp16 rate is used", t->name);
    return true;
}

void costmodel_note_types (const struct topology_cluster *c,
                           enum workload_precision precision, struct notes *notes)
{
    const struct topology_gpu_type *said = NULL;

    for (int i = 0; i < c->n_nodes; i++) {
        const struct topology_gpu_type *t = c->node[i].type;

        if (t != said && costmodel_note_type (t, precision, notes))
            said = t;
    }
}
