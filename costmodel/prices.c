/* What ranks send, priced over rates: the price of a placement asks with the links it has, the
 * lower bound with the best that there are. */
#include "costmodel/prices.h"

#include <math.h>

double costmodel_send_s (const struct workload_profile *p, double bytes,
                         double bytes_per_s, double latency_s)
{
    return bytes_per_s > 0 ? p->time.collective_s + latency_s +
                                 bytes / (bytes_per_s * p->time.send_link)
                           : INFINITY;
}

double costmodel_tp_operation_s (const struct workload_profile *p,
                                 const struct workload_config *c,
                                 const struct costmodel_ring *r, double bytes)
{
    return c->sequence_parallel
               ? 2.0 * costmodel_half_allreduce_s (p, r, c->deg.tp, bytes)
               : costmodel_allreduce_s (p, r, c->deg.tp, bytes);
}

double costmodel_cp_hop_s (const struct workload_profile *p, double bytes,
                           double bytes_per_s, double latency_s)
{
    return bytes_per_s > 0 ? latency_s + p->time.collective_s + bytes / bytes_per_s
                           : INFINITY;
}

double costmodel_cp_exposed_s (int cp, bool gathered, double hop_s, double attention_s)
{
    return gathered ? fmax (0.0, (cp - 1.0) * hop_s - attention_s / cp)
                    : (cp - 1.0) * fmax (0.0, hop_s - attention_s / cp);
}

double costmodel_cp_back_s (const struct workload_profile *p,
                            const struct costmodel_volume *v, int cp, double bytes_per_s,
                            double latency_s, double attention_s)
{
    double gradients =
        p->cp_by_pieces ? v->cp_back_bytes - v->cp_bytes : v->cp_back_bytes;
    double hop_s = costmodel_cp_hop_s (p, gradients, bytes_per_s, latency_s);
    double exposed_s = costmodel_cp_exposed_s (cp, false, hop_s, attention_s);

    if (!p->cp_by_pieces)
        return exposed_s;
    return exposed_s + hop_s +
           costmodel_cp_exposed_s (
               cp, true, costmodel_cp_hop_s (p, v->cp_bytes, bytes_per_s, latency_s),
               attention_s);
}

#define EXCHANGES 4.0

double costmodel_cp_exchange_s (const struct workload_profile *p,
                                const struct costmodel_ring *r, int n, double times,
                                double bytes)
{
    double nodes = r->nodes, members = n / nodes, inside = 0.0, outside = 0.0;

    bytes *= times;
    if (members > 1.0)
        inside = r->inside_bytes_per_s > 0
                     ? bytes * (members - 1.0) / n / r->inside_bytes_per_s
                     : INFINITY;
    if (r->nodes > 1)
        outside = r->between_bytes_per_s > 0
                      ? bytes * members * (1.0 - 1.0 / nodes) / r->between_bytes_per_s
                      : INFINITY;
    return EXCHANGES * times * (p->time.collective_s + r->latency_s / (n - 1)) +
           fmax (inside, outside) / p->time.link;
}

double costmodel_exchange_s (const struct workload_profile *p, double inside_s,
                             double outside_s, double latency_s)
{
    return p->time.collective_s + latency_s +
           fmax (inside_s, outside_s / p->time.link_out) / p->time.link;
}

/* ---- what compute hides ---- */

double costmodel_tp_exposed_s (const struct workload_profile *p,
                               const struct workload_job *j,
                               const struct workload_config *c, double tp_s,
                               double under_s)
{
    bool pieces = workload_choose (j->tp_comm_overlap, p->time.tp_comm_overlap);
    double hidden = pieces && c->sequence_parallel && isfinite (tp_s)
                        ? fmin (p->time.tp_overlap * tp_s, under_s)
                        : 0.0;

    return tp_s - hidden + p->time.overlap_slowdown * hidden;
}

double costmodel_sync_window (const struct workload_profile *p,
                              const struct workload_config *c, int microbatches)
{
    double v = c->deg.vpp;

    if (c->deg.pp == 1 &&
        (c->zero == 3 || (c->zero == 2 && !workload_reduces_once (p, c, microbatches))))
        return microbatches;
    if (p->time.dp_chunks && c->schedule == SCHEDULE_INTERLEAVED)
        return fmax (1.0, (v - 1.0) / v * fmin (microbatches, c->deg.pp));
    return 1.0;
}

double costmodel_sync_bare (const struct workload_profile *p,
                            const struct workload_config *c,
                            const struct costmodel_volume *v, int layers)
{
    double said = v->dp_bare_bytes > 0.0 ? v->dp_bare_bytes / v->dp_bytes : 0.0;
    bool late = p->reduces_late || p->reduces_bare;

    if (p->compute_of_type && workload_gathers_by_layer (c, p) && c->deg.pp == 1)
        return fmax (said, 1.0 / fmax (1.0, layers));
    if (p->time.dp_chunks && !late && c->schedule == SCHEDULE_INTERLEAVED)
        return 1.0 / c->deg.vpp;
    return said;
}

double costmodel_exposed_s (const struct workload_profile *p, double sync_s,
                            double under_s)
{
    double exposed = fmax (0.0, sync_s - p->time.dp_overlap * under_s);

    if (!isfinite (sync_s))
        return sync_s; /* ranks that are not connected */
    return exposed + p->time.overlap_slowdown * (sync_s - exposed);
}

/* Of a stage's chunks, the part whose exchanges have another micro-batch's compute beside them. */
static double joined_part (const struct workload_config *c, int microbatches, int stage)
{
    const struct workload_pipeline_size size = {c->deg.pp, c->deg.vpp, microbatches};
    const struct workload_schedule_rules *rules = workload_schedule_rules (c->schedule);
    double chunks = (double) microbatches * c->deg.vpp;

    return rules->joined
               ? rules->joined (size, stage) / chunks
               : 1.0 - workload_forwards_first (c->schedule, c->deg.pp, c->deg.vpp,
                                                microbatches, stage) /
                           chunks;
}

double costmodel_ep_exposed_s (const struct workload_profile *p,
                               const struct workload_config *c, int microbatches,
                               int stage, double ep_s, double under_s, double *hidden_s)
{
    /* A schedule that is made for it hides them all. */
    double most =
        workload_schedule_rules (c->schedule)->joined ? 1.0 : p->time.moe_overlap;

    *hidden_s = 0.0;
    if (isfinite (ep_s) && workload_exchanges_overlap (p, c))
        *hidden_s = fmin (most * ep_s, under_s) * joined_part (c, microbatches, stage);
    return ep_s - *hidden_s + p->time.overlap_slowdown * *hidden_s;
}
