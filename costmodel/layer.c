/* One layer as its matrix products, its attention and its elementwise kernels; and the head.
 *
 * The host's launches are a floor under a layer's time, joined smoothly by fourth powers
 * (docs/formulas.md, T14).  Backward does every product twice, once for the inputs'
 * gradients and once for the weights'. */
#include "costmodel/compute_private.h"

#include <math.h>

/* Bytes that elementwise kernels move per token and hidden unit in one forward pass: two
 * norms read and write, two residual additions read two and write one, at 2 bytes; a norm
 * of separate operations casts, squares, averages and scales in fp32. */
#define LAYER_TRAFFIC 20.0
#define NORM_TRAFFIC 4.0          /* of it, per norm */
#define UNFUSED_NORM_TRAFFIC 30.0 /* more, per norm */
#define DROPOUT_TRAFFIC 6.0
/* More under autocast (docs/formulas.md, T29): a copy for each product that reads a norm's fp32
 * result; residual additions of 16 bits to fp32; a norm that casts nothing, or in one kernel reads
 * and writes fp32; rotary embeddings in fp32, cast for attention. */
#define AUTOCAST_COPY_TRAFFIC 6.0
#define AUTOCAST_SUM_TRAFFIC 4.0
#define AUTOCAST_UNFUSED_NORM_TRAFFIC (-6.0)
#define AUTOCAST_NORM_TRAFFIC 4.0
#define AUTOCAST_ROTARY_TRAFFIC 16.0
/* ... and per token and column of the MLP's inside: the activation reads and writes. */
#define GATED_TRAFFIC 6.0
#define PLAIN_TRAFFIC 4.0
#define UNFUSED_MLP_TRAFFIC 4.0 /* more */
/* More again, of GELU's tanh approximation: a cube, three products with numbers, a sum, a tanh, one
 * more and a product read and write 36 bytes. */
#define SEPARATE_GELU_TRAFFIC 28.0
/* Rotary embedding or its like, per element of queries and keys. */
#define ROTARY_TRAFFIC 4.0
#define UNFUSED_ROTARY_TRAFFIC 20.0 /* halves negated, joined, two products, a sum */
/* Tokens sorted by expert and back: read and written twice, per token-expert pair and
 * hidden unit. */
#define PERMUTE_TRAFFIC 8.0
/* Biases of experts' second products, in separate operations where the activation is not part of
 * the products: each is multiplied by the router's probability, added in fp32, joined with the
 * others and cast, 28 bytes forward and 40 backward per token-expert pair and hidden unit
 * (Megatron-Core, transformer/moe/experts.py, _apply_bias); a third, as backward counts twice. */
#define EXPERT_BIAS_TRAFFIC (68.0 / 3.0)
/* Loss over a vocabulary entry, forward and backward together (docs/formulas.md, T16): by one
 * kernel each, or by separate operations: cast to fp32, log-softmax, and three gradients, all read
 * and written.  Logits that are gathered from all ranks are separate operations over all entries;
 * beyond one rank the gathered parts are copied twice (Aleph Alpha's framework). */
#define LOSS_TRAFFIC 13.0
#define UNFUSED_LOSS_TRAFFIC 40.0
#define GATHER_COPY_TRAFFIC 8.0
/* In place, where nothing but 16-bit logits is kept: read for their sum, read and written for the
 * gradient (llm.c, llmc/fused_classifier.cuh). */
#define LOSS_IN_PLACE_BYTES 2.0
#define LOSS_IN_PLACE_TRAFFIC 6.0
/* Launches of attention's adapters over a dense layer's: a dropout, two small products and a sum
 * for each product that has one.  Experts have none, and launch no more. */
#define LORA_LAUNCHES 1.5
/* The same of context parallelism, for each piece of the keys: a flash kernel of its own, what it
 * is given and what its sums with the others take, and a send (Transformer Engine,
 * attention/dot_product_attention/context_parallel.py, AttnFuncWithCPAndKVP2P). */
#define PIECE_LAUNCHES 0.15
/* Bytes that they move per token and hidden unit, forward: attention's input dropped out and
 * read, the results written and added to the products'. */
#define LORA_TRAFFIC 20.0
/* The same of adapters in fp32 by PyTorch's operations, of each product, per token and element of
 * its input and of its output.  Forward the input is cast, dropped out and read, 19 bytes; the
 * adapter's result is written, scaled, added to the product's and cast back, 28; backward 29 and 28
 * (PEFT, tuners/lora/layer.py).  A third of the sums, as backward counts twice. */
#define FP32_LORA_INPUT_TRAFFIC (48.0 / 3.0)
#define FP32_LORA_OUTPUT_TRAFFIC (56.0 / 3.0)
/* Tokens in the experts' order by PyTorch's operations: gathered, masked, masked again, multiplied,
 * gathered back and summed; and the mask over the first product (transformers, integrations/moe.py,
 * grouped_mm_experts_forward). */
#define UNFUSED_PERMUTE_TRAFFIC 32.0
#define UNFUSED_MASK_TRAFFIC 8.0 /* per column of the first product */
/* Experts on a GPU that computes by its type's constants: kernels of a layer over a dense one's,
 * for routing and sorting, and for each expert of the rank, whose products and casts are launched
 * one by one; more where experts are modules in a loop, each of which waits for its tokens'
 * numbers; and the rate of those products over single ones. */
#define EXPERT_LAYER_LAUNCHES 2.1
#define EXPERT_LAUNCHES 0.15
#define LOOP_LAYER_LAUNCHES 5.0
#define LOOP_EXPERT_LAUNCHES 0.35
#define EXPERT_RATE 0.9
#define EXPERT_HALF_TOKENS 200.0 /* of one expert, where it is half of that */
/* One kernel for all (PyTorch's grouped_mm) launches no expert, and is as fast as single products
 * of many tokens (docs/formulas.md, T20). */
#define GROUPED_HALF_TOKENS 100.0
#define EXPERT_PADDING 64.0 /* tokens */
/* What is left of launches that a graph has captured (docs/formulas.md, T14). */
#define CAPTURED_LAUNCHES 0.1
/* Casts to fp8, per element of a product's input or of its output's gradient: read in 16
 * bits, written and transposed in 8, with the search for the largest. */
#define CAST_TRAFFIC 4.5
/* To fp4 also Hadamard transforms and random rounding: with casts the linear layers of a 5B model
 * are 1.41 times as fast as in mxfp8 on B300, without them 1.87 (Transformer Engine's
 * documentation, low_precision_training). */
#define FP4_CAST_TRAFFIC 5.7

/* What a layer's pieces add up to. */
struct sums {
    double products_s, inputs_s, weights_s; /* forward; backward's two halves */
    double traffic;                         /* bytes, forward */
    double params;                          /* whose gradients are accumulated */
    double cast_fwd, cast_back;             /* elements that are cast to fp8 or fp4 */
    double launches;                        /* kernels over a dense layer's, */
    double expert_launches;                 /* and those of experts */
    double again_s;                         /* forward, of what modules repeat */
    double last_s;                  /* forward, of what recomputation leaves out */
    double scan_fwd_s, scan_back_s; /* of linear mixers */
};

bool costmodel_takes_blocks (enum workload_precision precision,
                             const struct topology_gpu_type *t)
{
    return workload_quantised_bytes (precision) > 0 && t->fp4_flop_per_s > 0;
}

/* What a scan over layers keeps, if it recomputes none, goes through buffers of all layers, and its
 * elementwise kernels are not fused: so many times what fused ones move (docs/formulas.md, T32). */
#define SCAN_TRAFFIC 2.8
static double scan_traffic (const struct setting *x)
{
    return x->p->scanned_layers && x->c->recompute == RECOMPUTE_NONE ? SCAN_TRAFFIC : 1.0;
}

static double traffic_s (const struct setting *x, double bytes_per_token)
{
    return bytes_per_token * x->plain.element_bytes / 2.0 * x->tokens /
           x->plain.memory_rate;
}

static double cast_s (const struct setting *x)
{
    double traffic = x->j->precision == PREC_FP4 ? FP4_CAST_TRAFFIC : CAST_TRAFFIC;

    return x->p->compute_of_type ? traffic / x->plain.memory_rate : 0.0;
}

/* So far, attention's scores left out. */
static double forward_s (const struct setting *x, const struct sums *s)
{
    return s->products_s + traffic_s (x, s->traffic) + cast_s (x) * s->cast_fwd;
}

/* What came since `before_s` is repeated in backward if the module is. */
static void repeat (const struct setting *x, struct sums *s, enum workload_module module,
                    double before_s)
{
    if (workload_recomputes (x->c, module))
        s->again_s += forward_s (x, s) - before_s;
}

/* `count` products of rows x in by in x out. */
static void add_product (struct sums *s, const struct machine *g, double count,
                         double rows, double in, double out)
{
    s->products_s += product_s (g, count, rows, out, in);
    s->inputs_s += product_s (g, count, rows, in, out);
    s->weights_s += weights_product_s (g, count, in, out, rows);
    s->params += count * in * out;
    if (g->element_bytes < 2.0) {
        s->cast_fwd += count * rows * in;
        s->cast_back += count * rows * out;
    }
}

static bool autocasts (const struct setting *x)
{
    return workload_autocasts (x->j, x->c, x->p);
}

static double rotary_traffic (const struct setting *x)
{
    if (x->p->fused_rotary)
        return ROTARY_TRAFFIC;
    return UNFUSED_ROTARY_TRAFFIC + (autocasts (x) ? AUTOCAST_ROTARY_TRAFFIC : 0.0);
}

/* Of a norm, per element of its input. */
static double norm_traffic (const struct setting *x)
{
    bool fused = workload_norms_are_fused (x->m, x->j, x->p);
    double more = fused ? AUTOCAST_NORM_TRAFFIC : AUTOCAST_UNFUSED_NORM_TRAFFIC;

    return NORM_TRAFFIC + (fused ? 0.0 : UNFUSED_NORM_TRAFFIC) +
           (autocasts (x) ? more : 0.0);
}

/* Beside norms and rotary embeddings, per token and hidden unit. */
static double autocast_traffic (const struct setting *x, unsigned parts)
{
    double copies = 0.0;

    if (!autocasts (x))
        return 0.0;
    if (parts & PART_ATTENTION)
        copies += workload_qkv_products (x->m);
    if (parts & PART_MLP)
        copies += x->m->gated_mlp ? 2.0 : 1.0;
    return AUTOCAST_COPY_TRAFFIC * copies +
           AUTOCAST_SUM_TRAFFIC * workload_sublayers (parts);
}

static void add_projections (const struct setting *x, struct sums *s)
{
    const struct workload_model *m = x->m;
    double t = x->c->deg.tp, a = m->heads / t, d = m->head_dim;

    if (m->kv_rank > 0) { /* latent attention: the first halves are whole on each rank */
        double qk = m->nope_dim + m->rope_dim, before;

        add_product (s, &x->g, 1, x->tokens, x->h, m->q_rank > 0 ? m->q_rank : a * qk);
        add_product (s, &x->g, 1, x->tokens, x->h, m->kv_rank + m->rope_dim);
        add_product (s, &x->g, 1, x->tokens, a * m->v_dim, x->h);
        before = forward_s (x, s);
        if (m->q_rank > 0)
            add_product (s, &x->g, 1, x->tokens, m->q_rank, a * qk);
        add_product (s, &x->g, 1, x->tokens, m->kv_rank, a * (m->nope_dim + m->v_dim));
        s->traffic += rotary_traffic (x) * 2.0 * a * qk;
        repeat (x, s, MODULE_MLA_UP_PROJ, before);
    } else {
        double kv = fmax (1.0, m->kv_heads / t) * d;

        add_product (s, &x->g, 1, x->tokens, x->h,
                     (m->attention_gate ? 2.0 : 1.0) * a * d + 2.0 * kv);
        add_product (s, &x->g, 1, x->tokens, a * d, x->h);
        if (m->attention_gate)
            s->traffic += GATED_TRAFFIC * a * d;
        if (m->qk_norm || m->wide_qk_norm)
            s->traffic += norm_traffic (x) * (a * d + kv);
        if (m->positions == 0)
            s->traffic += rotary_traffic (x) * (a * d + kv);
    }
}

/* Bytes of the activation inside an MLP, per token and column. */
static double activation_traffic (const struct setting *x)
{
    double per = x->m->gated_mlp ? GATED_TRAFFIC : PLAIN_TRAFFIC;

    if (workload_gelu_is_separate (x->m, x->j, x->p))
        per += SEPARATE_GELU_TRAFFIC;
    return per + (workload_choose (x->j->fused_mlp, x->p->fused_mlp)
                      ? 0.0
                      : UNFUSED_MLP_TRAFFIC);
}

static void add_mlp (const struct setting *x, struct sums *s, double count, double rows,
                     double ffn)
{
    const struct workload_model *m = x->m;

    if (m->gated_mlp && x->p->separate_gate) {
        add_product (s, &x->g, count, rows, x->h, ffn);
        add_product (s, &x->g, count, rows, x->h, ffn);
    } else {
        add_product (s, &x->g, count, rows, x->h, (m->gated_mlp ? 2.0 : 1.0) * ffn);
    }
    add_product (s, &x->g, count, rows, ffn, x->h);
    if (x->fused) {
        s->cast_fwd -= count * rows * ffn;
        s->cast_back -= count * rows * (m->gated_mlp ? 2.0 : 1.0) * ffn;
        return;
    }
    s->traffic += activation_traffic (x) * ffn * count * rows / x->tokens;
}

/* Bytes of attention's adapters, per token. */
static double adapter_traffic (const struct setting *x)
{
    const struct workload_model *m = x->m;
    double t = x->c->deg.tp, q = m->heads / t * m->head_dim,
           kv = fmax (1.0, m->kv_heads / t) * m->head_dim;

    if (!x->p->fp32_adapters)
        return LORA_TRAFFIC * x->h;
    return FP32_LORA_INPUT_TRAFFIC * (3.0 * x->h + q) +
           FP32_LORA_OUTPUT_TRAFFIC * (q + 2.0 * kv + x->h);
}

static void add_elementwise (const struct setting *x, struct sums *s, unsigned parts)
{
    double part = workload_sublayers (parts) / 2.0;
    double per = part * LAYER_TRAFFIC + (x->m->dropout ? part * DROPOUT_TRAFFIC : 0.0);
    bool fused = workload_norms_are_fused (x->m, x->j, x->p);

    per += workload_norms_of (x->m, parts) * (norm_traffic (x) - NORM_TRAFFIC);
    if (workload_recomputes (x->c, MODULE_LAYERNORM))
        s->again_s += traffic_s (x, workload_own_norms (x->m, fused, parts) *
                                        norm_traffic (x) * x->h / x->r);
    per += autocast_traffic (x, parts);
    s->traffic += per * x->h / x->r + (x->j->lora ? adapter_traffic (x) : 0.0);
}

/* Bytes that adding a micro-batch's gradient of one parameter to the sum moves, beside
 * the product that makes it.  Fused, the product reads and writes the sum.  Else what it leaves, 2
 * bytes or in fp32 4, is added to a sum of as many, or cast first and the cast added. */
static double accumulation_bytes (const struct setting *x)
{
    double sum = workload_gradient_bytes (x->j, x->c, x->p);
    bool cast = sum > 2.0 && !workload_keeps_fp32 (x->j, x->p);

    if (x->p->fused_accumulation)
        return 2.0 * sum;
    return 3.0 * sum + (cast ? 2.0 + sum : 0.0);
}

/* Bytes that casting a frozen weight to 16 bits before a product moves. */
static double unpacking_bytes (const struct workload_job *j)
{
    return j->lora && j->frozen_bytes > 0.0 ? j->frozen_bytes + 2.0 : 0.0;
}

/* Elements that a mixer's kernels read and write beside its products, per token: the
 * convolution's channels in and out; the scan's inputs and output; the gate, the norm and their
 * result; and the states at the chunks' ends in fp32, written, passed on and read. */
static double mixer_elements (const struct setting *x, const struct workload_mixer *mixer)
{
    double states = x->m->lin_chunk > 0 ? 8.0 * mixer->states / x->m->lin_chunk : 0.0;

    return 2.0 * mixer->conv + mixer->inner + 2.0 * mixer->keys + mixer->inner +
           3.0 * mixer->inner + states;
}

/* Scans take about five times what the roofline says: they are several kernels in turn, bound by
 * latency and by what they write for each other (docs/formulas.md, T22). */
#define SCAN_OVER_ROOFLINE 5.0

/* A linear mixer: its two projections, and the chunkwise scan over the roofline: its products at
 * flash attention's rate, or what it moves, whichever takes longer.  A short convolution has no
 * scan: one kernel, at what it moves. */
static void add_mixer (const struct setting *x, struct sums *s)
{
    struct workload_mixer mixer = workload_mixer_of (x->m, x->c->deg.tp);
    double rate = flash_rate (x, x->p->time.attention);
    double fwd, again, moved, over = x->m->lin_chunk > 0 ? SCAN_OVER_ROOFLINE : 1.0;

    workload_scan_flop (x->m, x->c->deg.tp, &fwd, &again);
    moved = traffic_s (x, 2.0 * mixer_elements (x, &mixer));
    fwd *= x->tokens / rate;
    again *= x->tokens / rate;
    s->scan_fwd_s = over * fmax (fwd, moved);
    s->scan_back_s = over * fmax (2.0 * fwd + again, 2.0 * moved);
    add_product (s, &x->g, 1, x->tokens, x->h, mixer.in);
    add_product (s, &x->g, 1, x->tokens, mixer.inner, x->h);
}

/* A floor under the GPU's time, joined smoothly. */
static double with_floor (double gpu_s, double floor_s)
{
    double a = gpu_s * gpu_s, b = floor_s * floor_s;

    return sqrt (sqrt (a * a + b * b));
}

/* Are attention and router captured, if the step is not?  Megatron-Core captures no part of a layer
 * that it recomputes whole (transformer_config.py). */
static bool captures_parts (const struct workload_config *c,
                            const struct workload_profile *p,
                            const struct topology_gpu_type *t)
{
    return c->recompute != RECOMPUTE_FULL && (p->captured_parts == CAPTURED_EVERYWHERE ||
                                              (p->captured_parts == CAPTURED_IN_RACKS &&
                                               topology_usual_rack (t->name) > 0));
}

enum costmodel_capture costmodel_capture (const struct workload_model *m,
                                          const struct workload_job *j,
                                          const struct workload_config *c,
                                          const struct workload_profile *p,
                                          const struct topology_gpu_type *t)
{
    if (workload_is_captured (p, m, c, costmodel_takes_blocks (j->precision, t)))
        return COSTMODEL_CAPTURE_STEP;
    return m->experts > 0 && captures_parts (c, p, t) ? COSTMODEL_CAPTURE_PARTS
                                                      : COSTMODEL_CAPTURE_NOTHING;
}

static void layer_time (const struct setting *x, const struct sums *s, unsigned parts,
                        struct costmodel_layer *out)
{
    const struct workload_profile *p = x->p;
    double traffic = scan_traffic (x) * traffic_s (x, s->traffic);
    double accumulate = accumulation_bytes (x) * s->params / x->g.memory_rate;
    double unpack = unpacking_bytes (x->j) * s->params / x->g.memory_rate;
    double fwd, back, weight, floor = x->t->host_factor;
    double launches = s->launches, expert_launches = s->expert_launches;
    bool waits = (parts & PART_EXPERTS) && p->compute_of_type && !p->drops_tokens &&
                 !(p->grouped_experts && x->c->deg.ep == 1);
    enum costmodel_capture capture = costmodel_capture (x->m, x->j, x->c, p, x->t);

    if (x->j->lora) /* frozen weights have no gradients */
        weight = 0.0;
    else if (p->sums_in_products) /* the products' own time leaves memory free for them */
        weight = fmax (s->weights_s, accumulate);
    else
        weight = s->weights_s + accumulate;
    if (!p->compute_of_type || floor <= 0)
        floor = 1.0;
    if (x->j->lora)
        launches += LORA_LAUNCHES * workload_sublayers (parts) / 2.0;
    if ((parts & PART_ATTENTION) && x->c->deg.cp > 1 && !p->cp_all_to_all)
        launches += PIECE_LAUNCHES * x->c->deg.cp;
    if (capture == COSTMODEL_CAPTURE_STEP) {
        launches *= CAPTURED_LAUNCHES;
        expert_launches *= CAPTURED_LAUNCHES;
        waits = false;
    } else if ((parts & PART_EXPERTS) && capture == COSTMODEL_CAPTURE_PARTS) {
        launches *= CAPTURED_LAUNCHES;
        waits = false;
    }
    floor *= launches + expert_launches;

    if (parts & PART_ATTENTION)
        attention_time (x, &out->attention_fwd_s, &out->attention_back_s);
    fwd = s->products_s + out->attention_fwd_s + traffic + cast_s (x) * s->cast_fwd +
          s->scan_fwd_s + unpack;
    back = s->inputs_s + weight + out->attention_back_s + 2.0 * traffic +
           cast_s (x) * s->cast_back + s->scan_back_s + unpack;
    /* After the wait for its experts' tokens the GPU has nothing queued. */
    out->fwd_s = waits ? fwd + floor * p->time.layer_launch_fwd_s
                       : with_floor (fwd, floor * p->time.layer_launch_fwd_s);
    out->back_s = with_floor (back, floor * p->time.layer_launch_back_s);
    out->weight_s = weight * out->back_s / back;
    if (x->c->recompute == RECOMPUTE_FULL)
        out->recompute_s =
            s->last_s > 0.0
                ? with_floor (fwd - s->last_s, floor * p->time.layer_launch_fwd_s)
                : out->fwd_s;
    else if (x->c->recompute == RECOMPUTE_SELECTIVE)
        out->recompute_s =
            p->selective == SELECTIVE_PRODUCTS ? 0.5 * s->products_s + traffic
            : p->selective == SELECTIVE_BETWEEN
                ? traffic + out->attention_fwd_s
                /* launches count in proportion */
                : s->again_s * out->fwd_s / fwd +
                      (workload_recomputes (x->c, MODULE_CORE_ATTN) ? out->attention_fwd_s
                                                                    : 0.0);
}

/* Plain all-to-alls bring tokens in the order of their ranks; a rank with several experts sorts
 * them again, and back before they return (Megatron-Core, transformer/moe/token_dispatcher.py,
 * sort_chunks_by_idxs). */
static bool sorts_twice (const struct setting *x)
{
    int ep = x->c->deg.ep;

    return ep > 1 && x->m->experts > ep && !x->p->time.deduplicated_dispatch;
}

/* Bytes that bring tokens to their experts and back, per token-expert pair. */
static double permute_traffic (const struct setting *x)
{
    double columns = (x->m->gated_mlp ? 2.0 : 1.0) * x->m->expert_ffn / x->c->deg.etp;

    if (!x->p->grouped_experts || workload_choose (x->j->fused_mlp, x->p->fused_mlp))
        return (sorts_twice (x) ? 2.0 : 1.0) * PERMUTE_TRAFFIC * x->h;
    return UNFUSED_PERMUTE_TRAFFIC * x->h + UNFUSED_MASK_TRAFFIC * columns;
}

/* The launches and the rate of products of `mine` experts with `rows` tokens each, on a GPU that
 * computes by its type's constants. */
static void price_grouping (struct setting *x, struct sums *s, double mine, double rows)
{
    bool loop = !x->p->grouped_experts && !x->p->fused_mlp;

    if (!x->p->compute_of_type)
        return;
    if (x->fused || x->p->grouped_experts)
        x->g.wave_s = COSTMODEL_WAVE_S;
    s->launches = loop ? LOOP_LAYER_LAUNCHES : EXPERT_LAYER_LAUNCHES;
    if (x->p->grouped_experts) {
        x->g.matrix_rate *= rows / (rows + GROUPED_HALF_TOKENS);
    } else {
        x->g.matrix_rate *= EXPERT_RATE * rows / (rows + EXPERT_HALF_TOKENS);
        s->expert_launches =
            x->fused ? 0.0 : (loop ? LOOP_EXPERT_LAUNCHES : EXPERT_LAUNCHES) * mine;
    }
}

/* Router, shared experts and the rank's own, each of which gets the mean number of tokens. */
static void add_experts (const struct setting *x, struct sums *s)
{
    const struct workload_model *m = x->m;
    const struct workload_degrees *d = &x->c->deg;
    double mine = m->experts / (double) d->ep;
    /* Of a rank, after dispatch: experts with a capacity are padded to it. */
    double pairs =
        x->tokens * m->top_k * d->etp / d->tp * workload_expert_capacity (x->p);
    bool whole = workload_recomputes (x->c, MODULE_MOE);
    double rows, before = forward_s (x, s), shared;
    struct setting grouped;

    add_product (s, &x->plain, 1, x->tokens / x->r, x->h, m->experts);
    shared = forward_s (x, s);
    if (m->shared_ffn > 0)
        add_mlp (x, s, 1, x->tokens, m->shared_ffn / (double) d->tp);
    if (!whole)
        repeat (x, s, MODULE_SHARED_EXPERTS, shared);
    /* Kernels pad every expert's tokens; their mean need not even be whole. */
    rows = EXPERT_PADDING * ceil (pairs / mine / EXPERT_PADDING);
    grouped = *x;
    grouped.fused =
        workload_fuses_experts (x->p, m, costmodel_takes_blocks (x->j->precision, x->t));
    price_grouping (&grouped, s, mine, rows);
    add_mlp (&grouped, s, mine, rows, m->expert_ffn / (double) d->etp);
    s->traffic += permute_traffic (x) * pairs / x->tokens;
    if (m->mlp_bias && !grouped.fused)
        s->traffic += EXPERT_BIAS_TRAFFIC * x->h * pairs / x->tokens;
    repeat (x, s, MODULE_MOE, before);
    if (!whole && workload_recomputes (x->c, MODULE_MOE_ACT))
        s->again_s += traffic_s (x, activation_traffic (x) * m->expert_ffn / d->etp *
                                        pairs / x->tokens);
}

/* Of a dense MLP, its last product, whose result backward needs if a norm follows it.  Dropout's
 * mask is made after it, unless a compiler makes it alone. */
static double last_product_s (const struct setting *x, double ffn)
{
    bool needed = x->m->norms > 2 || (x->m->dropout && !x->p->scanned_layers);

    return x->p->recompute_ends_early && !needed
               ? product_s (&x->g, 1, x->tokens, x->h, ffn)
               : 0.0;
}

void layer_of (const struct setting *x, unsigned parts, struct costmodel_layer *out)
{
    double part = workload_sublayers (parts) / 2.0;
    struct sums s = {.launches = part};

    if (parts & PART_ATTENTION)
        add_projections (x, &s);
    if (parts & PART_LINEAR)
        add_mixer (x, &s);
    if (parts & PART_MLP) {
        double before = forward_s (x, &s), ffn = x->m->ffn / (double) x->c->deg.tp;

        add_mlp (x, &s, 1, x->tokens, ffn);
        s.last_s = last_product_s (x, ffn);
        repeat (x, &s, MODULE_MLP, before);
    }
    if (parts & PART_EXPERTS)
        add_experts (x, &s);
    add_elementwise (x, &s, parts);
    layer_time (x, &s, parts, out);
    if (x->c->offload != OFFLOAD_NONE)
        host_layer (x, parts, out);
}

/* Multi-token prediction: each module's layer, its projection of the hidden states and the next
 * tokens' embeddings, and another pass of the head. */
static void add_mtp (const struct setting *x, struct costmodel_compute *k)
{
    double n = x->m->mtp_layers, again = x->c->recompute == RECOMPUTE_NONE ? 0.0 : 1.0;
    struct costmodel_layer layer = {0};
    struct sums s = {0};

    layer_of (x, workload_mtp_parts (x->m), &layer);
    add_product (&s, &x->g, 1, x->tokens, 2.0 * x->h, x->h / x->c->deg.tp);
    if (x->j->lora)
        s.weights_s = 0.0;
    k->head_fwd_s += n * (k->head_fwd_s + layer.fwd_s + s.products_s);
    k->head_back_s += n * (k->head_back_s + layer.back_s + again * layer.recompute_s +
                           s.inputs_s + s.weights_s);
    k->head_weight_s += n * (k->head_weight_s + layer.weight_s + s.weights_s);
}

void head_time (const struct setting *x, struct costmodel_compute *k)
{
    double vocab = workload_padded_vocab (x->m, x->c->deg.tp) / x->c->deg.tp;
    bool gathered = workload_choose (x->j->gathered_logits, x->p->gathered_logits);
    double t = x->c->deg.tp, copies = t > 1 ? GATHER_COPY_TRAFFIC : 0.0;
    bool in_place = x->p->memory.logit_bytes <= LOSS_IN_PLACE_BYTES;
    double traffic = gathered            ? (UNFUSED_LOSS_TRAFFIC + copies) * t
                     : !x->p->fused_loss ? UNFUSED_LOSS_TRAFFIC
                     : in_place          ? LOSS_IN_PLACE_TRAFFIC
                                         : LOSS_TRAFFIC;
    double loss = x->tokens * vocab * traffic / x->plain.memory_rate;
    struct sums s = {0};

    add_product (&s, &x->plain, 1, x->tokens, x->h, vocab);
    k->head_fwd_s = s.products_s + loss / 3.0;
    if (!x->j->lora)
        k->head_weight_s =
            s.weights_s + accumulation_bytes (x) * x->h * vocab / x->g.memory_rate;
    k->head_back_s = s.inputs_s + k->head_weight_s + loss * 2.0 / 3.0;
    if (x->m->mtp_layers > 0)
        add_mtp (x, k);
}
