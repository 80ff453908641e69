/* Attention's scores, their softmax and what they weigh: by a flash kernel, or product by product.
 * Flash attention's backward takes 2.5 times its forward (FlashAttention-2, arXiv 2307.08691,
 * section 3.2). */
#include "costmodel/compute_private.h"

#include <math.h>

#define FLASH_UNKNOWN 0.4 /* of a type that does not say */
/* Of its rate alone, between the other kernels of a training step (docs/formulas.md, T20). */
#define FLASH_IN_TRAINING 0.93
#define FLASH_SINKS 0.5 /* with a number of each head in the softmax (gpt-oss) */
/* FlashAttention 1 and its form in Triton over FlashAttention 2: half, and in Triton .71 forward
 * and half backward (arXiv 2307.08691, section 4.1), here as one. */
#define FLASH1_FWD 0.6
#define FLASH1_BACK 0.5

/* Products in heads of this width: narrow ones wait for their softmax, others are padded to whole
 * tiles (docs/formulas.md, T20).  A model without attention has no width; its scans alone ask. */
static double flash_width (double width, bool second)
{
    double tile = second ? 32.0 : 64.0;

    if (width <= 0.0)
        return 1.0;
    if (width <= 64.0)
        return (second ? 0.87 : 0.75) * width / 64.0;
    return width / (tile * ceil (width / tile));
}

/* Part of the 16-bit peak that a flash attention kernel reaches, forward in long sequences. */
static double flash_efficiency (const struct setting *x)
{
    bool first = x->j->attention == ATTENTION_FLASH1, second = first || x->p->flash2;
    double of_type = second ? x->t->flash2_efficiency : x->t->flash_efficiency;

    return (of_type > 0 ? of_type : FLASH_UNKNOWN) * FLASH_IN_TRAINING *
           flash_width (x->m->head_dim, second) * (first ? FLASH1_FWD : 1.0) *
           (x->m->sinks ? FLASH_SINKS : 1.0);
}

/* Flash kernels take 16 bits alone.  In fp32 and tf32 PyTorch runs its memory-efficient kernel,
 * whose products are three in TF32 each, in fp32 where there is none (docs/formulas.md, T20). */
#define WIDE_PART 0.4
#define WIDE_BACK 0.82
static bool is_wide (const struct setting *x)
{
    return x->plain.element_bytes > 2.0;
}

double flash_rate (const struct setting *x, double part)
{
    double rate = x->plain.matrix_rate / x->p->time.gemm;

    if (x->p->compute_of_type)
        rate = is_wide (x)
                   ? WIDE_PART * (x->t->tf32_flop_per_s > 0 ? x->t->tf32_flop_per_s / 3.0
                                                            : x->t->fp32_flop_per_s)
                   : costmodel_matrix_rate (x->t, PREC_BF16) * flash_efficiency (x);
    return rate * part;
}

/* Backward's rate over forward's of a composed profile's kernel, in long sequences. */
static double flash_back (const struct setting *x)
{
    if (is_wide (x)) /* FlashAttention 1 has no such kernel */
        return WIDE_BACK;
    return x->j->attention == ATTENTION_FLASH1 ? FLASH1_BACK / FLASH1_FWD : 1.0;
}

/* How much longer a flash kernel of a composed profile takes in sequences of `seq` tokens. */
static double flash_over (const struct setting *x, double fixed, double seq)
{
    if (!x->p->compute_of_type || is_wide (x))
        return 1.0;
    return topology_flash_over (x->t, fixed, seq, x->tokens * x->m->heads / x->c->deg.tp);
}

/* Seconds of the pairs under the diagonal, `flop` in a layer that sees all: of such layers, and of
 * those with a window, whose kernels look at whole blocks of keys and end as early as those of
 * a sequence twice as long as the window. */
#define WINDOW_BLOCK 128.0
static double flash_s (const struct setting *x, double flop, double rate, double fixed)
{
    double seq = x->j->seq, windowed = workload_windowed (x->m);
    double reach = fmin (seq, 2.0 * (x->m->window + WINDOW_BLOCK));
    double near = windowed * workload_window_pairs (x->m, seq, WINDOW_BLOCK);

    return flop *
           ((1.0 - windowed) * flash_over (x, fixed, seq) +
            near * flash_over (x, fixed, reach)) /
           rate;
}

/* What summing the pieces of context parallelism moves, for each element of the queries: forward
 * for every piece but the first, and once; backward the same.  Pieces of the output are cast to
 * fp32, weighed by their log-sum-exps and added; gradients of queries, keys and values are added
 * in fp32 and joined for the next rank (PyTorch, distributed/tensor/experimental/_attention.py). */
#define PIECE_FWD_TRAFFIC 46.0
#define PIECES_FWD_TRAFFIC 12.0
#define PIECE_BACK_TRAFFIC 60.0
#define PIECES_BACK_TRAFFIC 40.0

static void add_pieces (const struct setting *x, double width, double *fwd, double *back)
{
    double more = x->c->deg.cp - 1.0, each = x->tokens * width / x->plain.memory_rate;

    *fwd += (PIECE_FWD_TRAFFIC * more + PIECES_FWD_TRAFFIC) * each;
    *back += (PIECE_BACK_TRAFFIC * more + PIECES_BACK_TRAFFIC) * each;
}

/* Dropout of scores reads and writes each in 16 bits, and a byte of its mask, forward and
 * backward. */
#define DROPPED_TRAFFIC 10.0

void attention_time (const struct setting *x, double *fwd, double *back)
{
    const struct workload_model *m = x->m;
    const struct workload_profile *p = x->p;
    bool latent = m->kv_rank > 0;
    double a = m->heads / (double) x->c->deg.tp, seq = x->j->seq;
    double qk = latent ? m->nope_dim + m->rope_dim : m->head_dim;
    double v = latent ? m->v_dim : m->head_dim;
    double flop = 2.0 * x->tokens * seq * a * (qk + v);

    if (workload_attention_is_flash (x->j->attention)) {
        bool first = x->j->attention == ATTENTION_FLASH1 && !p->compute_of_type;
        double rate = flash_rate (x, first ? p->time.attention1 : p->time.attention);
        double back_rate =
            p->compute_of_type
                ? rate * flash_back (x)
                : flash_rate (x, first ? p->time.attention1 : p->time.attention_back);

        *fwd = flash_s (x, 0.5 * flop, rate, TOPOLOGY_FLASH_FWD);
        *back = flash_s (x, 2.5 * 0.5 * flop, back_rate, TOPOLOGY_FLASH_BACK);
        if (p->cp_by_pieces && x->c->deg.cp > 1)
            add_pieces (x, a * qk, fwd, back);
        return;
    }

    double per = (x->j->attention == ATTENTION_FUSED ? p->time.fused_score_traffic
                                                     : p->time.score_traffic) +
                 (m->dropout ? DROPPED_TRAFFIC : 0.0);
    double rows = seq / x->c->deg.cp, batch = x->c->micro_batch * a;
    double traffic =
        per * x->plain.element_bytes / 2.0 * x->tokens * seq * a / x->plain.memory_rate;
    double products = product_s (&x->plain, batch, rows, seq, qk) +
                      product_s (&x->plain, batch, rows, v, seq);

    *fwd = products + traffic / 3.0;
    *back = 2.0 * products + traffic * 2.0 / 3.0;
}
