/* What a profile says of a job, and how far its estimates may be off. */
#include "workload/workload.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

double workload_expert_capacity (const struct workload_profile *p)
{
    return p->drops_tokens ? p->time.expert_capacity : 1.0;
}

bool workload_exchanges_overlap (const struct workload_profile *p,
                                 const struct workload_config *c)
{
    bool joins = c->deg.pp == 1 ? c->schedule == SCHEDULE_1F1B
                                : c->schedule == SCHEDULE_INTERLEAVED && c->deg.vpp > 1;

    return ((p->time.moe_overlap > 0.0 && joins) ||
            workload_schedule_rules (c->schedule)->joined) &&
           c->deg.ep > 1 && !workload_repeats_exchange (c);
}

bool workload_reduces_once (const struct workload_profile *p,
                            const struct workload_config *c, int microbatches)
{
    return c->zero >= 2 && ((p->whole_gradients && microbatches > 1) || c->deg.pp > 1);
}

bool workload_autocasts (const struct workload_job *j, const struct workload_config *c,
                         const struct workload_profile *p)
{
    /* Weights that lie on the host are FSDP's, of one rank, too. */
    bool sharded = workload_dense_shards (c) > 1.0 || c->offload == OFFLOAD_ALL;
    bool whole = !workload_gathers_by_layer (c, p) || !sharded;

    return p->autocast_copies && p->memory.gradient_bytes >= 4.0 &&
           j->precision == PREC_BF16 && !j->lora && whole;
}

bool workload_is_captured (const struct workload_profile *p,
                           const struct workload_model *m,
                           const struct workload_config *c, bool blocks)
{
    bool dense = m->experts == 0 && c->deg.pp == 1;

    return p->graphs == GRAPHS_ALL || (p->graphs >= GRAPHS_DENSE && dense) ||
           (p->graphs == GRAPHS_BLOCKS && m->experts > 0 && m->gated_mlp && blocks);
}

bool workload_fuses_experts (const struct workload_profile *p,
                             const struct workload_model *m, bool blocks)
{
    return p->fused_experts && m->experts > 0 && m->gated_mlp && blocks;
}

void workload_constant_times (struct workload_profile *p,
                              const struct workload_constant *k, double factor)
{
    double *value = workload_constant_of (p, k), next = *value / k->unit * factor;

    *value = fmin (fmax (next, k->least), k->most) * k->unit;
}

/* Times among the constants have units below 1; others are what comes of rates. */
void workload_constant_pace (struct workload_profile *p,
                             const struct workload_constant *k, double factor)
{
    static const char rates[] = "gemm attention attention_back attention1 "
                                "memory_bandwidth link send_link";
    bool rate = text_has_word (rates, k->key);

    if (!k->memory && (rate || k->unit < 1.0))
        workload_constant_times (p, k, rate ? 1.0 / factor : factor);
}

void workload_profile_pace (struct workload_profile *p, const struct workload_model *m,
                            enum workload_precision precision)
{
    int n;
    const struct workload_constant *all = workload_constants (&n);
    const struct workload_pace *pace = workload_pace_of (p, m->name, precision);

    for (int k = 0; k < n && pace; k++)
        workload_constant_pace (p, &all[k], pace->factor);
    memset (p->pace, 0, sizeof p->pace);
    p->n_paces = 0;
}

double workload_interval (double residual)
{
    return exp (WORKLOAD_INTERVAL * residual);
}

double workload_residual (double interval)
{
    return log (interval) / WORKLOAD_INTERVAL;
}

bool workload_is_fitted (const struct workload_profile *p, const struct workload_model *m,
                         const char *gpu)
{
    bool on = false;

    if (p->n_fitted_on == 0)
        return !p->compute_of_type;
    for (int i = 0; i < p->n_fitted_on; i++)
        on = on || strncmp (gpu, p->fitted_on[i], strlen (p->fitted_on[i])) == 0;
    return on && (m->experts == 0 || p->fitted_experts);
}

#define SPREAD_UNFITTED 0.14 /* of composed profiles (docs/accuracy.md) */
#define SPREAD_EXPERTS 0.15
#define SPREAD_MIX 0.2

double workload_step_spread (const struct workload_profile *p,
                             const struct workload_model *m, bool fitted, bool mixed)
{
    double least = p->compute_of_type && p->n_fitted_on == 0 ? 0.0 : SPREAD_UNFITTED;
    double square = p->time.residual * p->time.residual;

    if (!fitted && square < least * least)
        square = least * least;
    if (m->experts > 0 && !fitted)
        square += SPREAD_EXPERTS * SPREAD_EXPERTS;
    if (mixed)
        square += SPREAD_MIX * SPREAD_MIX;
    return sqrt (square);
}
