/* One replica's stages as a pipeline of chunks. */
#include "costmodel/costmodel_private.h"

#include <math.h>

int pipeline_work (const struct terms *t)
{
    return 6 * t->pp * t->problem.config->deg.vpp +
           COSTMODEL_SCHEDULE_WORK (t->pp, t->problem.config->deg.vpp);
}

/* A stage's layers in chunk `chunk`, as workload_stage_of deals them. */
static double chunk_share (const struct terms *t, int stage, int chunk)
{
    int v = t->problem.config->deg.vpp, layers = t->problem.layers[stage];

    return (double) workload_chunk_layers (layers, v, chunk) / layers;
}

/* Fill one replica's pipeline.  @return false when a rank of it cannot be reached */
static bool fill (const struct terms *t, const struct slot_time *slot,
                  const double *send_s, const double *return_s,
                  struct costmodel_pipeline *p, double *work)
{
    int pp = t->pp, v = t->problem.config->deg.vpp;
    double *fwd = work, *back = work + pp * v, *weight = work + 2 * pp * v;

    *p = (struct costmodel_pipeline){.stages = pp,
                                     .microbatches = t->microbatches,
                                     .chunks = v,
                                     .fwd_s = fwd,
                                     .back_s = back,
                                     .weight_s = weight,
                                     .send_s = send_s,
                                     .return_s = return_s,
                                     .blocking = t->problem.profile->time.blocking_sends};
    for (int i = 0; i < pp; i++) {
        const struct slot_time *s = &slot[i];
        const struct costmodel_stage_time *a = &s->embedding, *b = &s->head;

        for (int c = 0; c < v; c++) {
            double share = v == 1 ? 1.0 : chunk_share (t, i, c);
            int first = c == 0, last = c == v - 1;

            fwd[c * pp + i] = share * (s->fwd_s - a->fwd_s - b->fwd_s) +
                              first * a->fwd_s + last * b->fwd_s;
            back[c * pp + i] = share * (s->back_s - a->back_s - b->back_s) +
                               first * a->back_s + last * b->back_s;
            weight[c * pp + i] = share * (s->weight_s - b->weight_s) + last * b->weight_s;
        }
        if (!isfinite (s->fwd_s + s->back_s))
            return false;
    }
    return true;
}

static void never (int stages, double *end_s)
{
    for (int k = 0; k < stages; k++)
        end_s[k] = INFINITY;
}

void pipeline_play (const struct terms *t, const struct slot_time *slot,
                    const double *send_s, const double *return_s, bool skip,
                    const struct costmodel_watch *watch, double *end_s, double *work)
{
    enum workload_schedule schedule = t->problem.config->schedule;
    struct costmodel_pipeline p;

    if (!fill (t, slot, send_s, return_s, &p, work))
        never (t->pp, end_s);
    else if (!watch)
        costmodel_schedule (schedule, &p, skip, end_s, work + 6 * p.chunks * p.stages);
    else if (!costmodel_play (schedule, &p, end_s, watch))
        never (t->pp, end_s);
}

void pipeline_play_two (const struct terms *t, const struct slot_time *const *slot,
                        const double *const *send_s, const double *const *return_s,
                        double *const *end_s, double *work)
{
    enum workload_schedule schedule = t->problem.config->schedule;
    int one = 3 * t->pp * t->problem.config->deg.vpp;
    struct costmodel_pipeline p[2];
    bool ok[2];

    for (int y = 0; y < 2; y++) {
        ok[y] = fill (t, slot[y], send_s[y], return_s[y], &p[y], work + y * one);
        if (!ok[y])
            never (t->pp, end_s[y]);
    }
    if (ok[0] && ok[1])
        costmodel_schedule_two (schedule, p, end_s, work + 2 * one);
    else if (ok[0] || ok[1])
        costmodel_schedule (schedule, &p[ok[1]], true, end_s[ok[1]], work + 2 * one);
}
