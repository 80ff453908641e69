/* Weights, gradients and optimizer state, activations by schedule and recomputation, logits,
 * buffers and overheads.  Z0 to O3 are labels of docs/formulas.md. */
#include "memest/memest_private.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"

/* Bytes per parameter of weights, gradients and optimizer state, and of the shard in the
 * optimizer's step alone.
 *
 * bf16 with fp32 main gradients: 2 + 4 + 12; fp16 with fp16 gradients: 2 + 2 + 12, and their
 * copies in fp32 from the step's begin to its end, 4; fp32 and tf32: 4 + 4 + 8 (Megatron-Core,
 * distributed optimizer documentation and zero_grad; DeepSpeed, stage_1_and_2.py).  fp8 keeps bf16
 * weights and an fp8 copy with its transpose; fp4's two copies, by rows and by columns, are
 * .56 bytes each with their blocks' scales instead of mxfp8's 1.03. */
#define FP4_LESS (2 * (1.03 - 0.56))

struct state_bytes {
    double weight, gradient, optimizer, unsharded, step;
};

static struct state_bytes state_bytes (const struct workload_job *j,
                                       const struct workload_config *c,
                                       const struct workload_profile *p)
{
    double gradient = workload_gradient_bytes (j, c, p), step = p->memory.step_bytes,
           optimizer = workload_optimizer_bytes (c, p);

    switch (workload_kept_precision (j, p)) {
    case PREC_FP16:
        return (struct state_bytes){2, 2, p->compute_of_type ? optimizer : 12, 0,
                                    fmax (4, step)};
    case PREC_FP32:
    case PREC_TF32:
        return (struct state_bytes){4, 4, 8, 0, step};
    case PREC_FP8:
        return (struct state_bytes){p->memory.fp8_weight_bytes, gradient, optimizer, 0,
                                    step};
    case PREC_FP4:
        return (struct state_bytes){p->memory.fp8_weight_bytes - FP4_LESS, gradient,
                                    optimizer, 0, step};
    case PREC_BF16:
        break;
    }
    return (struct state_bytes){2, gradient, optimizer, p->memory.unsharded_bytes, step};
}

/* ---- how many of them ---- */

/* Layers of each kind, times the micro-batches of them in flight. */
struct flight {
    double dense, expert;
};

/* In a V the first chunk's activations are held while a micro-batch goes to the last stage and
 * back twice, the second's while it goes to the first and back: for 4p - 1 - 2k and 2k + 1 slots
 * of 4p. */
static struct flight flight_in_v (double chunks, int microbatches, int pp, int stage,
                                  const struct workload_stage *held)
{
    double part = (4.0 * pp - 1 - 2 * stage) / (4.0 * pp);
    double first = fmin (part * chunks, microbatches), last = chunks - first;
    const struct workload_layers *a = &held->first, *z = &held->last;

    return (struct flight){first * a->dense + last * z->dense,
                           first * a->expert + last * z->expert};
}

/* When the interleaved schedule is at its worst for chunks that differ: played out over one round
 * of backwards (Megatron-LM schedules.py).  Forwards go p micro-batches a chunk from the first, and
 * backwards from the last. */
static struct flight flight_of (const struct memest_problem *p, int stage,
                                const struct workload_stage *held, double dense_bytes,
                                double expert_bytes)
{
    const struct workload_config *c = p->config;
    int m = workload_microbatches (p->job, c), pp = c->deg.pp, v = c->deg.vpp;
    const struct workload_layers *a = &held->first, *z = &held->last;
    double each = fmin (m, workload_in_flight (c, m, stage)), most = -1.0;
    struct flight worst = {each * held->dense, each * held->expert};
    bool alike = a->dense == z->dense && a->expert == z->expert &&
                 v * a->dense == held->dense && v * a->expert == held->expert;
    int chunks = (int) lround (each * v), first = 0, last = 0;
    double mid_dense, mid_expert;

    if (alike || a->dense + a->expert + z->dense + z->expert == 0)
        return worst;
    if (workload_schedule_is_v (c->schedule))
        return flight_in_v (each * v, m, pp, stage, held);
    if (c->schedule != SCHEDULE_INTERLEAVED)
        return worst;
    mid_dense = v > 2 ? (held->dense - a->dense - z->dense) / (v - 2.0) : 0.0;
    mid_expert = v > 2 ? (held->expert - a->expert - z->expert) / (v - 2.0) : 0.0;
    for (int k = 0; k < chunks + pp * v && k < m * (long long) v; k++) {
        struct flight now;
        double bytes;

        first += k / pp % v == 0;
        last += k / pp % v == v - 1;
        if (k >= chunks) {
            first -= (k - chunks) / pp % v == v - 1;
            last -= (k - chunks) / pp % v == 0;
        }
        now.dense = mid_dense * (fmin (k + 1, chunks) - first - last) + a->dense * first +
                    z->dense * last;
        now.expert = mid_expert * (fmin (k + 1, chunks) - first - last) +
                     a->expert * first + z->expert * last;
        bytes = now.dense * dense_bytes + now.expert * expert_bytes;
        if (bytes > most) {
            most = bytes;
            worst = now;
        }
    }
    return worst;
}

/* Micro-batches of the embedding's inputs: of an interleaved first chunk, two groups. */
static double embedding_flight (const struct workload_config *c, int microbatches)
{
    return c->schedule == SCHEDULE_INTERLEAVED ? fmin (2.0 * c->deg.pp, microbatches)
                                               : workload_in_flight (c, microbatches, 0);
}

/* A stage's layers without, or with, experts: their mean, which is any one's in a model whose
 * layers differ in nothing else, and the fullest one. */
static double mean_layer (const struct memest_shape *w, const struct workload_stage *held,
                          bool expert, double *most)
{
    double sum =
        workload_class_sum (w->p->model, held, expert, memest_layer_bytes, w, most);

    return workload_kinds_told (held) && sum > 0.0
               ? sum / (expert ? held->expert : held->dense)
               : *most;
}

/* Of offloaded checkpoints so many are still on their way to the host (A23: torchtune's and TRL's
 * max_fwd_stash_size). */
#define CHECKPOINTS_HERE 5.0

/* Of the logits' peak, what a module of multi-token prediction keeps until its backward: the
 * softmax, 4 of 6.6 bytes. */
#define MTP_LOGITS 0.6

/* Of one micro-batch, which the head's stage has forward and at once backward: what a layer of
 * multi-token prediction keeps, or its input where all are recomputed, and the inputs of three
 * norms, of its projection, 2 h wide, and of the head. */
static double mtp_bytes (const struct memest_shape *w)
{
    double tensor = w->element * 2.0 * w->tokens * w->h / w->r;
    double layer = w->p->config->recompute == RECOMPUTE_FULL
                       ? tensor
                       : memest_layer_bytes (w, workload_mtp_parts (w->p->model));

    return w->p->model->mtp_layers * (layer + 6.0 * tensor);
}

/* Does a chunk's forward run beside another micro-batch's backward, layer by layer?  A layer's
 * activations go before the next one's come: one layer more is there, not a chunk (Megatron-Core,
 * model_chunk_schedule_plan.py). */
static bool two_at_once (const struct memest_problem *p, int stage)
{
    const struct workload_config *c = p->config;
    int m = workload_microbatches (p->job, c);

    return workload_exchanges_overlap (p->profile, c) &&
           !workload_schedule_rules (c->schedule)->joined &&
           workload_in_flight (c, m, stage) < m;
}

/* What a scan over layers keeps of those that it does not recompute: its elementwise kernels are
 * not fused over forward and backward, and every product's weight is there in 16 bits, too, if it
 * is not kept so (A29). */
#define SCAN_KEEPS 2.0
static double scanned (const struct memest_shape *w, const struct workload_stage *held,
                       double bytes)
{
    const struct workload_config *c = w->p->config;
    struct workload_stage inside = *held;
    struct workload_stage_params n;
    bool cast = !w->p->job->lora && !workload_keeps_fp32 (w->p->job, w->p->profile);

    if (!w->p->profile->scanned_layers || c->recompute == RECOMPUTE_SELECTIVE)
        return bytes;
    inside.embedding = inside.head = false;
    n = workload_stage_params (w->p->model, c, &inside);
    if (c->zero >= 3) {
        n.dense /= workload_dense_shards (c);
        n.expert /= workload_expert_shards (c);
    }
    return SCAN_KEEPS * bytes + (cast ? 2.0 * (n.dense + n.expert) : 0.0);
}

/* @param[in,out] host_bytes  with what of them is on the host
 * @param[out] one            the fullest layer in its backward pass, with its gradients (A10) */
static double activation_bytes (const struct memest_shape *w, int stage,
                                const struct workload_stage *held, double *host_bytes,
                                double *one)
{
    const struct workload_config *c = w->p->config;
    double most_dense, most_expert;
    double dense = mean_layer (w, held, false, &most_dense);
    double expert = mean_layer (w, held, true, &most_expert);
    double checkpoint = 2.0 * w->element * w->tokens * w->h / w->r;
    int layers = held->dense + held->expert;
    struct flight flight = flight_of (w->p, stage, held, dense, expert);
    double bytes = scanned (w, held, flight.dense * dense + flight.expert * expert);

    *one = (1.0 + w->p->profile->memory.recompute_workspace) *
           fmax (most_dense, most_expert);
    if (two_at_once (w->p, stage))
        bytes += fmax (most_dense, most_expert);
    if (c->recompute == RECOMPUTE_FULL) {
        int n = c->recompute_layers > 0 && c->recompute_layers < layers
                    ? c->recompute_layers
                    : layers;
        double again = (double) n / layers;
        double here =
            w->p->config->offload == OFFLOAD_CHECKPOINTS ? CHECKPOINTS_HERE : INFINITY;
        double all = again * (flight.dense + flight.expert);

        *host_bytes += fmax (0.0, all - here) * checkpoint;
        bytes = fmin (all, here) * checkpoint + (1.0 - again) * bytes;
    }
    if (held->embedding)
        bytes += embedding_flight (c, workload_microbatches (w->p->job, c)) * w->tokens *
                 (8.0 + (w->p->model->dropout ? w->h / w->r : 0.0));
    if (held->head)
        bytes += 4.0 * w->element * w->tokens * w->h / w->r + /* final norm */
                 (w->p->model->mtp_layers > 0 ? mtp_bytes (w) : 0.0);
    return bytes;
}

/* The most that is made again for the backward pass of one layer. */
static double rebuilt_bytes (const struct memest_shape *w,
                             const struct workload_stage *held)
{
    double dense, expert;

    if (w->p->config->recompute != RECOMPUTE_SELECTIVE &&
        w->p->model->linear == LINEAR_NONE)
        return 0.0;
    workload_class_sum (w->p->model, held, false, memest_layer_rebuilt, w, &dense);
    workload_class_sum (w->p->model, held, true, memest_layer_rebuilt, w, &expert);
    return fmax (dense, expert);
}

/* The head's logits, softmax and gradient: split over the vocabulary, or gathered and then
 * not divided by tp (A9).  A chunked loss casts an eighth of the tokens at a time, of logits that
 * are there in 16 bits. */
#define LOSS_CHUNKS 8.0
static double logit_bytes (const struct memest_shape *w)
{
    const struct workload_profile *f = w->p->profile;
    double vocab = workload_padded_vocab (w->p->model, w->p->config->deg.tp);

    if (w->p->model->decoder_layers > 0)
        return 0.0; /* targets are taken to be a few tokens */
    if (!workload_choose (w->p->job->gathered_logits, f->gathered_logits))
        return (f->chunked_loss ? 2.0 + f->memory.logit_bytes / LOSS_CHUNKS
                                : f->memory.logit_bytes) *
               w->tokens * vocab / w->t;
    return w->tokens * vocab *
           (f->memory.gathered_logit_bytes +
            (w->t > 1 ? f->memory.gather_copy_bytes + 2.0 / w->t : 0.0));
}

/* Communicators in use: each holds its channels' buffers. */
static int groups_in_use (const struct workload_config *c)
{
    const struct workload_degrees *d = &c->deg;

    return (d->tp > 1) + (d->pp > 1) + (d->dp * d->cp > 1) + (d->cp > 1) + (d->ep > 1) +
           (workload_shard_copies (c) > 1);
}

/* Of a gradient on the host, which the optimizer there takes in fp32 (hybrid_optimizer.py of
 * Megatron-Core, stage_1_and_2.py of DeepSpeed). */
#define HOST_GRADIENT 4.0

/* Weights, gradients and optimizer state.  Adapters leave the weights alone frozen. */
static void state_of (const struct memest_problem *p, const struct workload_stage *held,
                      struct memest_stage *s)
{
    const struct workload_config *c = p->config;
    struct state_bytes per = state_bytes (p->job, c, p->profile);
    struct workload_stage_params n = workload_stage_params (p->model, c, held);
    double dense = workload_dense_shards (c), expert = workload_expert_shards (c);
    double quantised = workload_quantised_bytes (p->job->precision);
    double all = n.dense + n.expert, shards = n.dense / dense + n.expert / expert;

    if (p->job->lora && p->profile->compute_of_type && quantised > 0)
        per.weight = quantised; /* frozen: no transpose is kept */
    if (memest_is_packed (p)) { /* embedding, head and norms are not */
        struct workload_stage ends = {.embedding = held->embedding, .head = held->head};
        double root = workload_stage_params (p->model, c, &ends).dense;

        per.weight = (per.weight * root + p->job->frozen_bytes * (all - root)) / all;
    }
    if (memest_weights_are_away (p))
        s->host_bytes = per.weight * shards;
    else
        s->weights_bytes = per.weight * (c->zero >= 3 ? shards : all);
    if ((!p->job->lora || memest_frozen_have_gradients (p)) &&
        !memest_gradients_are_away (p))
        s->gradients_bytes = per.gradient * (c->zero >= 2 ? shards : all);
    if (p->job->lora)
        s->weights_bytes +=
            p->job->wta_crs > 0 ? p->profile->memory.wta_lora_bytes * all : 0.0;
    else if (workload_optimizer_is_away (p->config))
        s->host_bytes += (per.optimizer + HOST_GRADIENT) * (c->zero >= 1 ? shards : all);
    else
        s->optimizer_bytes =
            per.optimizer * (c->zero >= 1 ? shards : all) + per.unsharded * all;
}

/* Gradients that are summed whole until the last micro-batch has them reduced, over what the
 * shards take (A21): those of FSDP's no_sync are as wide as the gathered weights. */
static double whole_gradients (const struct memest_problem *p,
                               const struct workload_stage *held)
{
    const struct workload_config *c = p->config;
    struct workload_stage_params n = workload_stage_params (p->model, c, held);
    struct state_bytes per = state_bytes (p->job, c, p->profile);
    double summed =
        c->deg.pp > 1
            ? per.gradient
            : fmin (per.gradient, workload_element_bytes (
                                      workload_kept_precision (p->job, p->profile)));

    /* Of shards in the host's memory nothing is here that could take a part. */
    double here =
        memest_gradients_are_away (p)
            ? 0.0
            : n.dense / workload_dense_shards (c) + n.expert / workload_expert_shards (c);

    if (!workload_reduces_once (p->profile, c, workload_microbatches (p->job, c)) ||
        (p->job->lora && !memest_frozen_have_gradients (p)))
        return 0.0;
    return fmax (0.0, summed * (n.dense + n.expert) - per.gradient * here);
}

/* Bytes of the optimizer's step, so many for each parameter that it updates. */
static double of_step (const struct memest_problem *p, const struct workload_stage *held,
                       double each)
{
    const struct workload_config *c = p->config;
    struct workload_stage_params n = workload_stage_params (p->model, c, held);
    double dense = c->zero >= 1 ? workload_dense_shards (c) : 1.0,
           expert = c->zero >= 1 ? workload_expert_shards (c) : 1.0;

    return p->job->lora || workload_optimizer_is_away (p->config)
               ? 0.0
               : each * (n.dense / dense + n.expert / expert);
}

/* What the optimizer's step holds beside the states, when activations are gone. */
static double step_bytes (const struct memest_problem *p,
                          const struct workload_stage *held)
{
    return of_step (p, held, state_bytes (p->job, p->config, p->profile).step);
}

/* DDP's buckets hold the gradients once more, from step to step (PyTorch's
 * gradient_as_bucket_view is false unless asked for). */
static double bucket_copies (const struct memest_problem *p, double gradients_bytes)
{
    bool replicated = p->config->zero == 0 && p->config->deg.dp * p->config->deg.cp > 1;

    return replicated && p->profile->bucket_copies ? gradients_bytes : 0.0;
}

/* Gradients that the only backward pass makes: under ZeRO 2 a layer's come when its gathered
 * weights go. */
static double late_gradients (const struct memest_problem *p,
                              const struct memest_stage *s)
{
    return p->profile->gradients_freed && p->config->zero == 2 && memest_gathers (p)
               ? fmax (0.0, s->gradients_bytes - s->weights_bytes)
               : s->gradients_bytes;
}

/* Of these gradients, those of a layer that come last, of the smaller kind of layers, with the
 * embedding's, which has one since the head's backward pass where it is the head's matrix. */
static double last_gradients (const struct memest_problem *p,
                              const struct workload_stage *held, double gradients_bytes)
{
    struct workload_stage_params all = workload_stage_params (p->model, p->config, held);
    double embedding = held->embedding && !p->model->tied
                           ? workload_embedding_params (p->model, p->config->deg.tp)
                           : 0.0;
    double least = INFINITY;

    for (int kind = 0; kind < 2; kind++) {
        struct workload_stage one = {.dense = kind == 0, .expert = kind == 1};
        struct workload_stage_params n;

        if ((kind == 0 ? held->dense : held->expert) == 0)
            continue;
        n = workload_stage_params (p->model, p->config, &one);
        least = fmin (least, embedding + n.dense + n.expert);
    }
    return least < all.dense + all.expert
               ? gradients_bytes * least / (all.dense + all.expert)
               : gradients_bytes;
}

/* The peak is in the backward pass, or in the optimizer's step, when activations, logits and
 * buffers are gone (A18).  Of gradients on one side, activations and logits on the other, only the
 * larger is there at once where gradients begin with the only backward pass; or all gradients but
 * the first layer's, which is in its backward pass (`one` bytes).  In a scan over layers all of
 * them are there beside what it keeps and the layer that it is at (`scan` bytes), of several
 * micro-batches twice.  What is more at the peak stays with the activations.  A step's flat buffer
 * finds no block of theirs that it could take. */
static void meet (const struct memest_problem *p, const struct workload_stage *held,
                  double one, double scan, double step_bytes, struct memest_stage *s)
{
    const struct workload_config *c = p->config;
    bool freed = p->profile->gradients_freed && c->deg.pp == 1 &&
                 workload_microbatches (p->job, c) == 1;
    double more = s->activations_bytes + s->logits_bytes;

    if (freed)
        s->gradients_bytes = late_gradients (p, s);
    s->cached_bytes =
        p->profile->flat_step ? fmin (more + s->buffers_bytes, step_bytes) : 0.0;
    if (p->profile->scanned_layers)
        more = freed ? fmax (more - s->gradients_bytes, scan)
                     : fmax (more, scan + s->gradients_bytes);
    else if (freed)
        more = fmax (more - s->gradients_bytes,
                     one - last_gradients (p, held, s->gradients_bytes));
    more = fmax (more, step_bytes - s->buffers_bytes);
    s->activations_bytes = fmax (0.0, more - s->logits_bytes);
    s->logits_bytes = fmin (s->logits_bytes, fmax (0.0, more));
}

/* What is there without any tensor. */
static double fixed_bytes (const struct memest_problem *p)
{
    return p->profile->memory.base_bytes +
           groups_in_use (p->config) * p->profile->memory.group_bytes;
}

double memest_states_least (const struct memest_problem *p,
                            const struct workload_stage *all)
{
    struct memest_stage s = {0};

    if (p->by != MEMEST_LINKWISE)
        return 0.0;
    state_of (p, all, &s);
    if (p->config->deg.pp == 1)
        s.gradients_bytes = late_gradients (p, &s);
    return (p->profile->memory.fragmentation - p->states_less) *
               memest_load_of (&s).states_bytes / p->config->deg.pp +
           fixed_bytes (p);
}

/* What is more than at the logits' peak, in their backward pass: when the forward pass ends, with
 * all but the 16-bit gradient of every logit, or when the first layer is rebuilt and they are gone.
 */
#define LOGITS_BACK 2.0
static double beside_logits (const struct memest_problem *p, double logits_bytes,
                             double rebuilt, const struct memest_buffers *b)
{
    double each = p->profile->memory.logit_bytes;
    double back = each > LOGITS_BACK ? LOGITS_BACK / each * logits_bytes : logits_bytes;

    return fmax (0.0, fmax (rebuilt + b->gradients - logits_bytes, b->forward - back));
}

/* @param step  bytes of the optimizer's step, which may be the peak */
static void stage_bytes (const struct memest_problem *p, int stage,
                         const struct workload_stage *held, double step,
                         struct memest_stage *out)
{
    struct memest_shape w = memest_shape_of (p);
    struct memest_stage s = {0};
    struct memest_buffers buffers;
    double one, workspace, rebuilt, copies, scan;

    if (p->by != MEMEST_LINKWISE) {
        memest_stage_published (p, stage, held, out);
        return;
    }
    state_of (p, held, &s);
    s.gradients_bytes += whole_gradients (p, held);
    s.activations_bytes = activation_bytes (&w, stage, held, &s.host_bytes, &one);
    workspace = p->config->recompute == RECOMPUTE_FULL ? one : 0.0;
    buffers = memest_buffers (&w, held);
    s.buffers_bytes = buffers.bytes;
    if (held->head)
        s.logits_bytes = (1.0 + MTP_LOGITS * p->model->mtp_layers) * logit_bytes (&w);
    rebuilt = rebuilt_bytes (&w, held);
    scan = s.activations_bytes + rebuilt + workspace;
    s.activations_bytes +=
        p->profile->logits_freed
            ? beside_logits (p, s.logits_bytes, rebuilt + workspace, &buffers)
            : fmax (0.0, rebuilt - s.logits_bytes) + workspace + buffers.forward;

    copies = bucket_copies (p, s.gradients_bytes);
    meet (p, held, one, scan, step, &s);
    s.gradients_bytes += copies;

    double tensors = s.weights_bytes + s.gradients_bytes + s.optimizer_bytes +
                     s.activations_bytes + s.buffers_bytes + s.logits_bytes;

    s.overhead_bytes =
        fixed_bytes (p) + (p->profile->memory.fragmentation - 1.0) * tensors;
    s.peak_bytes = tensors + s.overhead_bytes;
    *out = s;
}

void memest_stage (const struct memest_problem *p, int stage,
                   const struct workload_stage *held, struct memest_stage *out)
{
    stage_bytes (p, stage, held, step_bytes (p, held), out);
    if (p->profile->flat_step && p->config->zero < 3)
        out->cached_bytes += of_step (p, held, p->profile->memory.step_cached_bytes);
}

void memest_stage_least (const struct memest_problem *p, int stage, int layers,
                         struct memest_stage *out)
{
    struct workload_stage fewest, most;
    struct memest_stage s;
    double step;

    if (p->config->deg.pp == 1 && layers == p->model->layers) { /* these are all */
        fewest = workload_stage_guess (p->model, p->config, stage, layers);
        memest_stage (p, stage, &fewest, out);
        return;
    }
    workload_stage_range (p->model, p->config, stage, layers, &fewest, &most);
    memset (most.of, 0, sizeof most.of);
    /* Each kind grows with its experts or falls, but for what one of them adds at once: so does
     * the step, and of the two peaks the least of each is taken. */
    step = fmin (step_bytes (p, &fewest), step_bytes (p, &most));
    stage_bytes (p, stage, &fewest, step, out);
    if (fewest.expert == most.expert)
        return;
    stage_bytes (p, stage, &most, step, &s);
    out->weights_bytes = fmin (out->weights_bytes, s.weights_bytes);
    out->gradients_bytes = fmin (out->gradients_bytes, s.gradients_bytes);
    out->optimizer_bytes = fmin (out->optimizer_bytes, s.optimizer_bytes);
    out->activations_bytes = fmin (out->activations_bytes, s.activations_bytes);
    out->logits_bytes = fmin (out->logits_bytes, s.logits_bytes);
    out->buffers_bytes = fmin (out->buffers_bytes, s.buffers_bytes);
    out->overhead_bytes = fmin (out->overhead_bytes, s.overhead_bytes);
    out->host_bytes = fmin (out->host_bytes, s.host_bytes);
    out->peak_bytes = out->weights_bytes + out->gradients_bytes + out->optimizer_bytes +
                      out->activations_bytes + out->logits_bytes + out->buffers_bytes +
                      out->overhead_bytes;
}

int memest_max_layers (const struct memest_problem *p, int stage, int layers,
                       double limit_bytes)
{
    struct memest_stage s;
    int unit = workload_layers_unit (p->config, p->profile), fits = 0,
        over = layers / unit + 1;

    /* The even split is the usual question, so the search starts there. */
    for (int try = (layers / unit + p->config->deg.pp - 1) / p->config->deg.pp;
         over - fits > 1; try = fits + (over - fits) / 2) {
        memest_stage_least (p, stage, try * unit, &s);
        if (memest_fits (p, &s, limit_bytes))
            fits = try;
        else
            over = try;
    }
    return fits * unit;
}

/* ---- risk ---- */

/* States are never less sure than the rest. */
static double states_residual (const struct workload_profile *p)
{
    return fmin (p->memory.states_residual, p->memory.residual);
}

double memest_peak_at (const struct workload_profile *p, struct memest_load load,
                       double z)
{
    return load.states_bytes * exp (states_residual (p) * z) +
           (load.peak_bytes - load.states_bytes) * exp (p->memory.residual * z);
}

double memest_interval (const struct workload_profile *p, struct memest_load load)
{
    return memest_peak_at (p, load, WORKLOAD_INTERVAL) / load.peak_bytes;
}

double memest_deviations (const struct workload_profile *p, struct memest_load load,
                          double measured_bytes)
{
    double a = states_residual (p), r = p->memory.residual;
    double off = log (measured_bytes / load.peak_bytes), states = load.states_bytes;
    double lo = fmin (off / a, off / r), hi = fmax (off / a, off / r);

    if (!(states > 0.0))
        return off / r;
    if (!isfinite (lo) || !isfinite (hi))
        return off;
    /* Between what either part alone would be off; the peak grows with z. */
    for (int i = 0; i < 60; i++) {
        double mid = 0.5 * (lo + hi);

        if (memest_peak_at (p, load, mid) < measured_bytes)
            lo = mid;
        else
            hi = mid;
    }
    return 0.5 * (lo + hi);
}

double memest_oom_probability (const struct workload_profile *p, struct memest_load load,
                               double gpu_bytes)
{
    return stats_normal_above (memest_deviations (p, load, gpu_bytes));
}

/* Deviations that are exceeded with this chance, a hair more: rounding takes no more risk. */
static double deviations_of (double risk)
{
    return stats_normal_quantile (risk) + 1e-9;
}

double memest_limit (const struct workload_profile *p, double gpu_bytes, double pct,
                     double risk)
{
    return risk > 0.0 ? gpu_bytes * exp (-p->memory.residual * deviations_of (risk))
                      : gpu_bytes * pct / 100.0;
}

double memest_states_less (const struct workload_profile *p, double risk)
{
    return risk > 0.0 ? 1.0 - exp ((states_residual (p) - p->memory.residual) *
                                   deviations_of (risk))
                      : 0.0;
}

json_t *memest_stage_to_json (const struct memest_stage *s)
{
    json_t *doc = json_pack ("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "weights_bytes",
                             s->weights_bytes, "gradients_bytes", s->gradients_bytes,
                             "optimizer_bytes", s->optimizer_bytes, "activations_bytes",
                             s->activations_bytes, "logits_bytes", s->logits_bytes,
                             "buffers_bytes", s->buffers_bytes, "overhead_bytes",
                             s->overhead_bytes, "peak_bytes", s->peak_bytes);

    if (doc && s->host_bytes > 0.0)
        json_object_set_new (doc, "host_bytes", json_real (s->host_bytes));
    return doc;
}
