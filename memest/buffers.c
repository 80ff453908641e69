/* Tensors that are neither states nor activations: gathered weights, gradients before they are
 * reduced, buckets, copies, and what is received; and what lies on the host instead.  A12 to A27
 * are labels of docs/formulas.md. */
#include "memest/memest_private.h"

#include <math.h>

/* Parameters of a layer of these parts. */
static double layer_weights (const void *about, unsigned parts)
{
    const struct memest_problem *p = about;
    const struct workload_model *m = p->model;
    const struct workload_degrees *d = &p->config->deg;

    return workload_parts_params (m, parts, d->tp) +
           (parts & PART_EXPERTS
                ? (double) m->experts / d->ep * workload_expert_params (m) / d->etp
                : 0.0);
}

bool memest_is_packed (const struct memest_problem *p)
{
    return p->job->lora && p->job->frozen_bytes > 0.0;
}

static double largest_matrix (const struct memest_problem *p)
{
    const struct workload_model *m = p->model;
    double attention = m->heads * (double) m->head_dim / p->config->deg.tp,
           mlp = fmax (m->ffn / (double) p->config->deg.tp,
                       m->expert_ffn / (double) p->config->deg.etp);

    return m->hidden * fmax (attention, mlp);
}

bool memest_frozen_have_gradients (const struct memest_problem *p)
{
    return p->profile->frozen_gradients && p->config->zero >= 2 &&
           p->job->frozen_bytes <= 0.0;
}

/* Where there is a limit, one matrix may be beyond it. */
static double within (double params, double limit, double matrix)
{
    return limit > 0.0 ? fmin (params, limit + matrix) : params;
}

/* Weights that are there at once where they are gathered layer by layer, beyond the state's, and
 * the gradients of the largest unit before they are reduced, or summed with those that are whole:
 * that is another tensor (PyTorch, _fsdp_param.py, to_accumulated_grad_if_needed; of a flat
 * parameter autograd's own sum).  Units are layers, of which the next one is fetched ahead, and
 * what is in none: embedding and head, which stay gathered (PyTorch FSDP's root).  Beside a
 * pipeline all stay gathered from the first forward to the last backward.  Under ZeRO 2 the state's
 * are the gathered ones, and their shard is beyond it.  DeepSpeed gathers matrix by matrix while no
 * more than so many parameters are live, and reduces when a bucket is full, which is always there.
 */
static struct memest_buffers gathered_weights (const struct memest_problem *p,
                                               const struct workload_stage *held)
{
    struct workload_stage ends = {.embedding = held->embedding, .head = held->head};
    struct workload_stage_params all = workload_stage_params (p->model, p->config, held);
    double root = workload_stage_params (p->model, p->config, &ends).dense;
    double layer, dense, packed = memest_is_packed (p) ? p->job->frozen_bytes / 2.0 : 1.0;
    double layers = all.dense + all.expert - root, weights, unit;
    double table = (double) p->model->hidden *
                   workload_padded_vocab (p->model, p->config->deg.tp) /
                   p->config->deg.tp;
    double matrix = fmax (largest_matrix (p), root > 0.0 ? table : 0.0);

    /* Those with experts are the larger ones, unless kinds differ in more. */
    workload_class_sum (p->model, held, true, layer_weights, p, &layer);
    workload_class_sum (p->model, held, false, layer_weights, p, &dense);
    if (held->expert == 0 || workload_kinds_told (held))
        layer = fmax (layer, dense);
    unit = p->job->lora && !memest_frozen_have_gradients (p) ? 0.0 : fmax (layer, root);
    if (p->config->zero == 2)
        weights =
            (packed * (all.dense - root) + root) / workload_dense_shards (p->config) +
            packed * all.expert / workload_expert_shards (p->config);
    else if (p->config->deg.pp > 1)
        weights = packed * layers + root;
    else {
        weights =
            within (2.0 * packed * layer + root, p->profile->memory.live_params, matrix);
        unit = within (unit, p->profile->memory.reduced_params, matrix);
    }
    return (struct memest_buffers){.bytes = weights, .gradients = unit};
}

/* Autocast's copies of weights that products read (A27): of the embedding where it is the head,
 * too.  Those of recomputed layers go with autocast's cache when the forward pass ends. */
static void add_autocast_copies (const struct memest_problem *p,
                                 const struct workload_stage *held,
                                 struct memest_buffers *b)
{
    struct workload_stage read = *held, ends = {.head = held->head};
    struct workload_stage_params n;
    double all, root, again = 0.0;
    int layers = held->dense + held->expert, some = p->config->recompute_layers;

    read.embedding = ends.embedding = p->model->tied && held->head;
    n = workload_stage_params (p->model, p->config, &read);
    all = 2.0 * (n.dense + n.expert);
    root = 2.0 * workload_stage_params (p->model, p->config, &ends).dense;
    if (p->config->recompute == RECOMPUTE_FULL)
        again = some > 0 && some < layers ? (double) some / layers : 1.0;
    b->bytes += all - again * (all - root);
    b->forward += again * (all - root);
}

bool memest_weights_are_away (const struct memest_problem *p)
{
    return p->config->offload == OFFLOAD_ALL && p->config->zero == 3;
}

bool memest_gathers (const struct memest_problem *p)
{
    const struct workload_config *c = p->config;

    return workload_gathers_by_layer (c, p->profile) &&
           (workload_dense_shards (c) * workload_expert_shards (c) > 1 ||
            memest_weights_are_away (p));
}

bool memest_gradients_are_away (const struct memest_problem *p)
{
    return memest_weights_are_away (p) ||
           (workload_optimizer_is_away (p->config) && p->profile->offloads_gradients &&
            p->config->zero >= 2);
}

struct memest_buffers memest_buffers (const struct memest_shape *w,
                                      const struct workload_stage *held)
{
    const struct workload_config *c = w->p->config;
    const struct workload_profile *f = w->p->profile;
    struct memest_buffers b = {.bytes = 0.0}, gathered = {0};
    double tensor = 2.0 * w->element * w->tokens * w->h;

    /* The largest matrix of a layer, which a product has in 16 bits. */
    if (memest_is_packed (w->p))
        b.bytes = 2.0 * largest_matrix (w->p);
    if (c->sequence_parallel)
        b.bytes += tensor; /* the gathered input of a column-parallel layer */
    if (c->deg.pp > 1)
        b.bytes += 2.0 * tensor / w->r; /* received activation and gradient */
    /* Context parallelism (A12): two key/value buffers of the ring, and two for their gradients; or
     * what an all-to-all sends and receives of queries or output. */
    if (c->deg.cp > 1)
        b.bytes +=
            2.0 * w->element * w->tokens * (f->cp_all_to_all ? 2.0 * w->q : 8.0 * w->kv);
    if (memest_gathers (w->p))
        gathered = gathered_weights (w->p, held);
    b.bytes += 2.0 * w->element * gathered.bytes;
    if (f->logits_freed && f->memory.reduced_params <= 0.0)
        b.gradients = 2.0 * w->element * gathered.gradients;
    else
        b.bytes += 2.0 * w->element * gathered.gradients;
    if (workload_autocasts (w->p->job, c, f))
        add_autocast_copies (w->p, held, &b);
    if (c->zero == 1 || c->zero == 2) {
        struct workload_stage_params n = workload_stage_params (w->p->model, c, held);

        /* Two for reduction, one for gathering, none longer than what it carries; of so many
         * elements, which are twice as wide in fp32. */
        b.bytes +=
            w->element * fmin (f->memory.bucket_bytes, 3.0 * 2.0 * (n.dense + n.expert));
    }
    return b;
}
