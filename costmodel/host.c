/* What offloading to the host's memory costs: the link to it beside compute, and the optimizer's
 * step on the host (docs/formulas.md, T28). */
#include "costmodel/compute_private.h"

#include <math.h>

/* The part of the host's memory bandwidth that Adam reaches on it: 10 billion parameters in 2.6 s
 * on a DGX-2's, 256 GB/s (Ren et al., ZeRO-Offload, arXiv 2101.06840, Adam latencies). */
#define HOST_ADAM 0.46

/* Where PyTorch's tensors lie on the host (FSDP's offloading): an AdamW of many kernels takes so
 * many times a fused one's time, and clipping moves 12 bytes of each gradient, in 16 bits as long,
 * at such a part of the memory's bandwidth (docs/gpu-check.md, 16 cores beside an H100). */
#define HOST_UNFUSED_ADAM 4.0
#define HOST_CLIP 0.23
#define HOST_CLIP_BYTES 12.0

static double element_bytes (const struct setting *x)
{
    return workload_element_bytes (workload_kept_precision (x->j, x->p));
}

/* Bytes that go to the host for each parameter's gradient. */
static double gradient_bytes (const struct setting *x)
{
    return x->j->lora ? 0.0 : workload_gradient_bytes (x->j, x->c, x->p);
}

static bool is_fsdp (const struct setting *x)
{
    return x->c->offload == OFFLOAD_ALL && !x->p->offloads_gradients;
}

/* And that come back for its weight: fewer of frozen ones that are kept so.  FSDP brings a shard as
 * it is kept, and casts it on the GPU. */
static double weight_bytes (const struct setting *x)
{
    if (x->j->lora && x->j->frozen_bytes > 0.0)
        return x->j->frozen_bytes;
    return is_fsdp (x) ? fmax (element_bytes (x), gradient_bytes (x)) : element_bytes (x);
}

/* Are a shard's gradients sent on as they are reduced (A23), after every micro-batch? */
static bool sends_gradients (const struct setting *x)
{
    bool sends =
        x->c->offload == OFFLOAD_ALL || (x->c->offload == OFFLOAD_OPTIMIZER &&
                                         x->p->offloads_gradients && x->c->zero >= 2);

    return sends &&
           !workload_reduces_once (x->p, x->c, workload_microbatches (x->j, x->c));
}

/* Does each micro-batch gather weights?  Beside a pipeline they stay on the GPU once they are
 * gathered. */
static bool gathers_weights (const struct setting *x)
{
    return x->c->offload == OFFLOAD_ALL && x->c->deg.pp == 1;
}

/* Carry weights up for forward, and again for backward, whose gradients go down meanwhile: what
 * compute is too short for is waited for. */
static void beside (const struct setting *x, double shard, double *fwd_s, double *back_s)
{
    double link = topology_host_of (x->t).link_bytes_per_s;
    double up_s = gathers_weights (x) ? shard * weight_bytes (x) / link : 0.0;
    double down_s = sends_gradients (x) ? shard * gradient_bytes (x) / link : 0.0;

    *fwd_s = fmax (*fwd_s, up_s);
    *back_s = fmax (*back_s, fmax (up_s, down_s));
}

void host_layer (const struct setting *x, unsigned parts, struct costmodel_layer *k)
{
    const struct workload_degrees *d = &x->c->deg;
    double dense = workload_parts_params (x->m, parts, d->tp),
           expert = parts & PART_EXPERTS ? (double) x->m->experts / d->ep *
                                               workload_expert_params (x->m) / d->etp
                                         : 0.0;

    if (x->c->offload == OFFLOAD_CHECKPOINTS) {
        double s = element_bytes (x) * x->tokens * x->h / x->r /
                   topology_host_of (x->t).link_bytes_per_s;

        /* Recomputed layers alone have one: both ways count with what these add. */
        k->recompute_s = fmax (k->recompute_s, s - k->back_s) + fmax (0.0, s - k->fwd_s);
        return;
    }
    beside (x,
            dense / workload_dense_shards (x->c) + expert / workload_expert_shards (x->c),
            &k->fwd_s, &k->back_s);
}

void host_ends (const struct setting *x, struct costmodel_compute *k)
{
    const struct workload_degrees *d = &x->c->deg;
    double shards = workload_dense_shards (x->c);

    beside (x, workload_embedding_params (x->m, d->tp) / shards, &k->embed_fwd_s,
            &k->embed_back_s);
    beside (x, workload_head_params (x->m, d->tp, d->pp == 1) / shards, &k->head_fwd_s,
            &k->head_back_s);
}

static double adam_s (const struct setting *x, double memory_bytes_per_s)
{
    double s = (2.0 * workload_optimizer_bytes (x->c, x->p) + gradient_bytes (x) +
                weight_bytes (x)) /
               (HOST_ADAM * memory_bytes_per_s);

    if (!is_fsdp (x))
        return s;
    return (x->p->time.optimizer_passes > 0.0 ? HOST_UNFUSED_ADAM : 1.0) * s +
           HOST_CLIP_BYTES / (HOST_CLIP * memory_bytes_per_s);
}

double host_step_s (const struct setting *x)
{
    const struct topology_host h = topology_host_of (x->t);
    double step = adam_s (x, h.memory_bytes_per_s);
    double down_s = sends_gradients (x) ? 0.0 : gradient_bytes (x) / h.link_bytes_per_s;
    double up_s = gathers_weights (x) ? 0.0 : weight_bytes (x) / h.link_bytes_per_s;

    /* Megatron-Core has an optimizer a parameter, whose copies run beside the others' steps
     * (hybrid_optimizer.py, overlap_cpu_optimizer_d2h_h2d); others step on all, then copy. */
    return x->p->offloads_gradients || x->c->offload == OFFLOAD_ALL
               ? down_s + step + up_s
               : fmax (step, fmax (down_s, up_s));
}

double host_paged_s (const struct setting *x)
{
    return x->j->paged_bytes / topology_host_of (x->t).link_bytes_per_s;
}

double host_frozen_s (const struct setting *x)
{
    return x->c->offload == OFFLOAD_ALL && !gathers_weights (x)
               ? weight_bytes (x) / topology_host_of (x->t).link_bytes_per_s
               : 0.0;
}
