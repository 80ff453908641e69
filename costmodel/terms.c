/* The pieces of a placed plan's price: stages and boundaries (sync.c: synchronisation). */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

void terms_hold (struct terms *t, int stage, const struct workload_stage *held)
{
    const struct costmodel_problem *p = &t->problem;

    t->held[stage] = *held;
    t->params[stage] = workload_stage_params (p->model, p->config, held);
    costmodel_tp_operations (p->model, p->config, held, &t->tp_fwd[stage],
                             &t->tp_back[stage]);
    t->tp_back[stage] +=
        costmodel_gate_operations (p->model, p->config, p->profile, held);
    for (int k = 0; k < t->n_types; k++)
        if (!t->refused[k])
            costmodel_stage_compute (p->config, p->profile, &t->compute[k], held,
                                     &t->stage[stage * t->n_types + k]);
}

/* What a micro-batch takes on each stage and GPU type at speed 1. */
static enum status price_stages (struct terms *t, struct error *err)
{
    const struct costmodel_problem *p = &t->problem;
    size_t types = (size_t) t->n_types;

    t->stage = calloc ((size_t) t->pp * types, sizeof *t->stage);
    if (!t->stage) {
        terms_release (t);
        return err_nomem (err);
    }
    for (int i = 0; i < t->pp; i++) {
        struct workload_stage held =
            p->chunks ? workload_stage_of_chunks (p->model, p->config, p->chunks, i)
                      : workload_stage_of (p->model, p->config, p->layers, i);

        terms_hold (t, i, &held);
    }
    return ST_OK;
}

enum status terms_init (struct terms *t, const struct costmodel_problem *p,
                        struct error *err)
{
    const struct topology_cluster *c = p->cluster;
    const struct workload_degrees *d = &p->config->deg;

    *t = (struct terms){.problem = *p,
                        .tp = d->tp,
                        .cp = d->cp,
                        .dp = d->dp,
                        .pp = d->pp,
                        .microbatches = workload_microbatches (p->job, p->config),
                        .slot = d->tp * d->cp,
                        .world = (int) workload_world (d),
                        .node_of = c->node_of_gpu};
    costmodel_volume (p->model, p->job, p->config, p->profile, &t->volume);
    t->type_of_node = malloc ((size_t) c->n_nodes * sizeof (int));
    t->held = calloc ((size_t) d->pp, sizeof *t->held);
    t->params = calloc ((size_t) d->pp, sizeof *t->params);
    t->tp_fwd = malloc (2 * (size_t) d->pp * sizeof *t->tp_fwd);
    t->scratch = scratch_create (c->n_nodes, t->world);
    if (!t->type_of_node || !t->held || !t->params || !t->tp_fwd || !t->scratch) {
        terms_release (t);
        return err_nomem (err);
    }
    t->tp_back = t->tp_fwd + d->pp;
    t->limited = c->has_pair_totals && !p->unshared;
    t->plain = !c->has_gpu_links;
    for (int i = 0; i < c->n_nodes; i++) {
        const struct topology_gpu_type *type = c->node[i].type;
        int k = 0;

        while (k < t->n_types && t->type[k] != type)
            k++;
        if (k == t->n_types) {
            if (k == TYPES_MAX) {
                terms_release (t);
                return err_set (err, ST_INVALID, "more than %d GPU types in one cluster",
                                TYPES_MAX);
            }
            t->type[k] = type;
            t->refused[k] = costmodel_matrix_rate (type, p->job->precision) <= 0;
            if (!t->refused[k])
                costmodel_compute (p->model, p->job, p->config, p->profile, type,
                                   &t->compute[k]);
            t->n_types++;
        }
        t->type_of_node[i] = k;
        t->limited = t->limited || (c->node[i].node_bytes_per_s > 0 && !p->unshared);
        t->plain = t->plain && topology_alike_inside (&c->node[i]);
    }
    return price_stages (t, err);
}

void terms_release (struct terms *t)
{
    FREE_ALL (t->type_of_node, t->held, t->params, t->tp_fwd, t->stage);
    scratch_destroy (t->scratch);
    *t = (struct terms){0};
}

static int type_of (const struct terms *t, int gpu)
{
    return t->type_of_node[t->node_of[gpu]];
}

/* ---- one stage of one replica ---- */

bool change_tp_shares (const struct terms *t, const int *gpu, int groups, int *share,
                       int by)
{
    bool any = false;

    if (t->tp == 1)
        return false;
    for (int k = 0; k < groups; k++) {
        const int *g = gpu + k * t->tp;

        if (inside_node (t, g, t->tp))
            continue;
        any = true;
        for (int i = 0; i < t->tp; i++) {
            bool seen = false;

            for (int j = 0; j < i && !seen; j++)
                seen = t->node_of[g[j]] == t->node_of[g[i]];
            if (!seen)
                share[t->node_of[g[i]]] += by;
        }
    }
    return any;
}

/* The embedding's and the head's part of a slot, which belong to its first and last
 * chunk. */
static void slot_ends (const struct terms *t, int type, int stage, double speed,
                       struct slot_time *out)
{
    const struct costmodel_compute *k = &t->compute[type];

    if (t->held[stage].embedding) {
        out->embedding.fwd_s = fmax (out->embedding.fwd_s, k->embed_fwd_s / speed);
        out->embedding.back_s = fmax (out->embedding.back_s, k->embed_back_s / speed);
    }
    if (t->held[stage].head) {
        out->head.fwd_s = fmax (out->head.fwd_s, k->head_fwd_s / speed);
        out->head.back_s = fmax (out->head.back_s, k->head_back_s / speed);
        out->head.weight_s = fmax (out->head.weight_s, k->head_weight_s / speed);
    }
}

/* Compute of the slot's slowest GPU. */
static void slot_compute (const struct terms *t, const int *gpu, int stage,
                          struct slot_time *out)
{
    const struct topology_cluster *c = t->problem.cluster;

    for (int i = 0; i < t->slot; i++) {
        int node = t->node_of[gpu[i]], k = t->type_of_node[node];
        const struct costmodel_stage_time *once = &t->stage[stage * t->n_types + k];
        double speed = topology_gpu_speed (c, gpu[i]);

        if (t->refused[k]) {
            out->fwd_s = out->back_s = INFINITY;
            return;
        }
        if (i > 0 && !c->node[node].speed && t->node_of[gpu[i - 1]] == node)
            continue; /* as the one before */
        out->fwd_s = larger (out->fwd_s, once->fwd_s / speed);
        out->back_s = larger (out->back_s, once->back_s / speed);
        out->weight_s = larger (out->weight_s, once->weight_s / speed);
        slot_ends (t, k, stage, speed, out);
    }
}

/* What one of a slot's groups takes for a layer, and what all of its traffic does. */
struct context_time {
    double fwd_s, back_s, busy_s;
};

/* Ring steps that attention does not hide (docs/formulas.md, T11), forward's once more where it is
 * recomputed.  Or all-to-alls, of which it hides none.
 * @param again  part of the stage's layers that backward recomputes */
static struct context_time context_time (const struct terms *t,
                                         const struct costmodel_ring *r, int n,
                                         const struct costmodel_layer *k, double again)
{
    const struct workload_profile *p = t->problem.profile;
    const struct costmodel_volume *v = &t->volume;
    double steps = n - 1.0, rate = costmodel_ring_rate (r),
           latency_s = r->latency_s / steps, fwd, back, shown;

    if (p->cp_all_to_all) {
        fwd = costmodel_cp_exchange_s (p, r, n, 1, v->cp_bytes);
        back = costmodel_cp_exchange_s (p, r, n, 1.0 + again, v->cp_back_bytes);
        return (struct context_time){fwd, back, fwd + back};
    }
    fwd = costmodel_cp_hop_s (p, v->cp_bytes, rate, latency_s);
    back = costmodel_cp_back_s (p, v, n, rate, latency_s, 0.0); /* hidden or not */
    shown = costmodel_cp_exposed_s (n, p->cp_by_pieces, fwd, k->attention_fwd_s);
    return (struct context_time){
        shown,
        again * shown +
            costmodel_cp_back_s (p, v, n, rate, latency_s, k->attention_back_s),
        steps * (1.0 + again) * fwd + back};
}

/* Context parallelism of a slot, by its slowest group.  t->scratch->share has the rings of all
 * replicas. */
static void slot_cp (const struct terms *t, int stage, int d, struct slot_time *out)
{
    const struct costmodel_problem *p = &t->problem;
    struct members cp = stage_groups (t, stage, GROUP_CP);
    int own = p->layers[stage], mtp = t->held[stage].head ? p->model->mtp_layers : 0,
        layers = own + mtp;
    double again = costmodel_repeated_part (p->config, own);
    struct context_time most = {0};
    bool out_of_node = false;

    if (mtp > 0 && again > 0.0) /* which is recomputed with any of them */
        again = (again * own + mtp) / layers;
    for (int j = 0; j < cp.stride; j++) {
        struct members one = members_beside (&cp, d * t->slot + j);
        struct costmodel_ring r = ring_of (t, &one, t->scratch->share, "cp");
        const struct costmodel_compute *k = &t->compute[type_of (t, one.gpu[0])];
        struct context_time now = context_time (t, &r, cp.n, &k->dense, again);

        out->unmeasured += r.unmeasured;
        out_of_node |= r.nodes > 1;
        most.fwd_s = fmax (most.fwd_s, now.fwd_s);
        most.back_s = fmax (most.back_s, now.back_s);
        most.busy_s = fmax (most.busy_s, now.busy_s);
    }
    out->busy_s[out_of_node] += layers * most.busy_s;
    out->fwd_s += layers * most.fwd_s;
    out->back_s += layers * most.back_s;
    out->cp_s = layers * (most.fwd_s + most.back_s);
}

/* What one operation of a TP group takes. */
struct tp_operation {
    double once_s;
    enum workload_all_reduce by;
    int unmeasured;
    bool leaves; /* the group leaves a node */
};

static struct tp_operation price_operation (const struct terms *t, const int *gpu,
                                            const int *share)
{
    const struct costmodel_problem *p = &t->problem;
    struct costmodel_ring r = ring_of (t, &(struct members){gpu, t->tp, 1}, share, "tp");

    return (struct tp_operation){
        costmodel_tp_operation_s (p->profile, p->config, &r, t->volume.tp_bytes),
        p->config->sequence_parallel
            ? ALL_REDUCE_RING
            : costmodel_allreduce_by (p->profile, &r, t->tp, t->volume.tp_bytes),
        r.unmeasured, r.nodes > 1};
}

void slot_price (const struct terms *t, int stage, int d, const int *share,
                 struct slot_time *out)
{
    const struct costmodel_problem *p = &t->problem;
    const int *g = slot_gpus (t, stage, d);
    struct slot_time slot = {.tp_by = ALL_REDUCE_RING};
    double once = 0.0, fwd_ops = t->tp_fwd[stage], back_ops = t->tp_back[stage];
    bool out_of_node = false;

    slot_compute (t, g, stage, &slot);
    for (int k = 0; k < t->cp && t->tp > 1; k++) {
        struct tp_operation op = price_operation (t, g + k * t->tp, share);

        if (op.once_s > once) {
            once = op.once_s;
            slot.tp_by = op.by;
        }
        out_of_node |= op.leaves;
        slot.unmeasured += op.unmeasured;
    }
    if (once > 0.0) {
        double fwd = costmodel_tp_exposed_s (p->profile, p->job, p->config,
                                             fwd_ops * once, slot.fwd_s),
               back = costmodel_tp_exposed_s (p->profile, p->job, p->config,
                                              back_ops * once, slot.back_s);

        slot.fwd_s += fwd;
        slot.back_s += back;
        slot.tp_s = fwd + back;
        slot.busy_s[out_of_node] = (fwd_ops + back_ops) * once;
    }
    *out = slot;
}

/* All replicas' rings of keys and values at the same time. */
static void cp_price (const struct terms *t, int stage, struct slot_time *out, int apart)
{
    add_row_shares (t, stage_groups (t, stage, GROUP_CP), t->dp);
    for (int d = 0; d < t->dp; d++)
        if (isfinite (out[d * apart].fwd_s))
            slot_cp (t, stage, d, &out[d * apart]);
    clear_shares (t->scratch);
}

/* Price a row of a stage's expert groups under t->scratch->share, which has those of the stage. */
static struct exchange_row price_exchange (const struct terms *t,
                                           const struct members *ep, int row)
{
    int ranks = ep->n * ep->stride;
    struct exchange_row out = {.leaves = !inside_node (t, ep->gpu + row * ranks, ranks)};

    for (int j = 0; j < ep->stride; j++) {
        struct members one = members_beside (ep, row * ranks + j);

        out.once_s = fmax (out.once_s, alltoall_of (t, &one, &out.unmeasured));
    }
    return out;
}

/* The links between GPUs that are on one node, where they are alike on all nodes that have them and
 * none is noted or changed; else NULL. */
static const struct topology_links *links_alike (const struct terms *t, const int *gpu,
                                                 int n)
{
    return t->plain && !t->log && !t->slow && !t->problem.what_if &&
                   inside_node (t, gpu, n)
               ? t->problem.cluster->node[t->node_of[gpu[0]]].intra
               : NULL;
}

static struct exchange_row exchange_price (const struct terms *t,
                                           const struct members *ep, int row)
{
    struct scratch *s = t->scratch;
    int ranks = ep->n * ep->stride;
    const struct topology_links *intra = links_alike (t, ep->gpu + row * ranks, ranks);

    if (!intra)
        return price_exchange (t, ep, row);
    if (s->exchange_of != intra) {
        s->exchange = price_exchange (t, ep, row);
        s->exchange_of = intra;
    }
    return s->exchange;
}

struct exchange_row exchange_add (struct exchange_row a, struct exchange_row b)
{
    return (struct exchange_row){fmax (a.once_s, b.once_s), a.unmeasured + b.unmeasured,
                                 a.leaves || b.leaves};
}

/* All groups of a stage. */
static struct exchange_row ep_price (const struct terms *t, int stage)
{
    struct members ep = stage_groups (t, stage, GROUP_EP);
    int rows = stage_groups (t, stage, GROUP_EXPERT_SYNC).n;
    struct exchange_row all = {0};

    add_row_shares (t, ep, rows);
    for (int k = 0; k < rows; k++)
        all = exchange_add (all, exchange_price (t, &ep, k));
    clear_shares (t->scratch);
    return all;
}

/* Add to a slot its all-to-alls, of once_s one way each: forward, as many backward, and as many
 * more where that recomputes.  Compute is all that it has so far but for other communication. */
static void slot_exchange (const struct terms *t, int stage, double once_s,
                           bool out_of_node, struct slot_time *slot)
{
    double fwd_s = 2.0 * stage_experts (t, stage) * once_s;
    const struct workload_config *c = t->problem.config;
    double times = workload_repeats_exchange (c) ? 3.0 : 2.0, all = times * fwd_s;
    double compute = slot->fwd_s + slot->back_s - slot->tp_s - slot->cp_s;

    slot->ep_s = costmodel_ep_exposed_s (t->problem.profile, c, t->microbatches, stage,
                                         all, compute, &slot->ep_hidden_s);
    slot->fwd_s += slot->ep_s / times;
    slot->back_s += (times - 1.0) / times * slot->ep_s;
    slot->busy_s[out_of_node] += all;
}

/* Has a slot the GPUs and the links of the one before, so that it takes as long? */
static bool is_like_before (const struct terms *t, int stage, int d)
{
    const struct topology_cluster *c = t->problem.cluster;
    const int *gpu = slot_gpus (t, stage, d), *before = gpu - t->slot;
    const struct topology_links *links;

    for (int i = 0; i < t->slot; i++)
        if (type_of (t, gpu[i]) != type_of (t, before[i]) ||
            topology_gpu_speed (c, gpu[i]) != topology_gpu_speed (c, before[i]))
            return false;
    if (t->slot == 1)
        return true;
    links = links_alike (t, gpu, t->slot);
    return links && links == links_alike (t, before, t->slot);
}

int stage_price (const struct terms *t, int stage, struct slot_time *out, int apart)
{
    const int *g = slot_gpus (t, stage, 0);
    int *share = t->scratch->share;
    struct exchange_row all = {0};

    if (has_experts (t, stage))
        all = ep_price (t, stage);
    change_tp_shares (t, g, t->dp * t->cp, share, 1);
    for (int d = 0; d < t->dp; d++)
        if (d > 0 && is_like_before (t, stage, d))
            out[d * apart] = out[(d - 1) * apart];
        else
            slot_price (t, stage, d, share, &out[d * apart]);
    change_tp_shares (t, g, t->dp * t->cp, share, -1);
    if (t->cp > 1)
        cp_price (t, stage, out, apart);
    for (int d = 0; d < t->dp && all.once_s > 0.0; d++)
        slot_exchange (t, stage, all.once_s, all.leaves, &out[d * apart]);
    return all.unmeasured;
}

/* ---- stage boundaries ---- */

/* Flows between two slots at the same time as others. */
struct flows {
    double bytes;
    const char *use;
    int unmeasured;
};

/* Seconds of one of them, src -> dst, when so many share its nodes' ways. */
static double flow_s (const struct terms *t, struct flows *f, int src, int dst, int out,
                      int in)
{
    int a = t->node_of[src], b = t->node_of[dst];
    struct topology_link l = link_between (t, src, dst, f->use, &f->unmeasured);
    double bw = l.bytes_per_s;

    if (a != b && t->limited)
        bw = smaller (bw, topology_share (t->problem.cluster, a, b, out, in));
    return costmodel_send_s (t->problem.profile, f->bytes, bw, l.latency_s);
}

bool uniform_flows (const struct terms *t, const int *src, const int *dst)
{
    const struct topology_cluster *c = t->problem.cluster;

    if (c->has_gpu_links || !inside_node (t, src, t->slot) ||
        !inside_node (t, dst, t->slot))
        return false;
    return t->node_of[src[0]] != t->node_of[dst[0]] ||
           topology_alike_inside (&c->node[t->node_of[src[0]]]);
}

void change_flow_shares (const struct terms *t, const int *src, const int *dst,
                         int *share, int *share_in, int by)
{
    for (int i = 0; i < t->slot; i++)
        if (t->node_of[src[i]] != t->node_of[dst[i]]) {
            share[t->node_of[src[i]]] += by;
            share_in[t->node_of[dst[i]]] += by;
        }
}

int sends_price (const struct terms *t, const int *src, const int *dst, bool tied,
                 const int *share, const int *share_in, double *there, double *back)
{
    struct flows f = {tied ? t->volume.tied_bytes : t->volume.p2p_bytes,
                      tied ? "dp" : "pp", 0};
    int n = uniform_flows (t, src, dst) ? 1 : t->slot, like = 0;

    *there = *back = 0.0;
    for (int i = 0; i < n; i++) {
        int a = t->node_of[src[i]], b = t->node_of[dst[i]], before = f.unmeasured;

        /* As the one before, between the same two nodes. */
        if (i > 0 && !t->log && a != b && a == t->node_of[src[i - 1]] &&
            b == t->node_of[dst[i - 1]] && !t->problem.cluster->has_gpu_links) {
            f.unmeasured += like;
            continue;
        }
        *there = larger (*there, flow_s (t, &f, src[i], dst[i], share[a], share_in[b]));
        *back = larger (*back, flow_s (t, &f, dst[i], src[i], share_in[b], share[a]));
        like = f.unmeasured - before;
    }
    return f.unmeasured;
}

double optimizer_price (const struct terms *t, int stage)
{
    const int *g = slot_gpus (t, stage, 0);
    const struct workload_stage_params *n = &t->params[stage];
    double worst = 0.0;
    int n_gpus = t->n_types == 1 ? 1 : t->dp * t->slot; /* the type is all that tells */

    for (int i = 0; i < n_gpus; i++) {
        const struct costmodel_compute *k = &t->compute[type_of (t, g[i])];

        worst =
            fmax (worst, n->dense * k->optimizer_s + n->expert * k->expert_optimizer_s);
    }
    return worst + t->problem.profile->time.step_s;
}
