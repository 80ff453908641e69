/* One replica's stages as a pipeline of chunks. */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <stdlib.h>

enum status replicas_init (struct replicas *r, const struct terms *t, struct error *err)
{
    size_t n = (size_t) t->dp * (size_t) t->pp;
    int pp = t->pp, v = t->problem.config->deg.vpp;
    int work = 3 * pp * v + COSTMODEL_SCHEDULE_WORK (pp, v);

    r->slot = calloc (n, sizeof *r->slot);
    r->send_s = calloc (3 * n + 2 * (size_t) t->dp + (size_t) work, sizeof *r->send_s);
    if (!r->slot || !r->send_s)
        return err_nomem (err);
    r->return_s = r->send_s + n + t->dp;
    r->end_s = r->return_s + n + t->dp;
    r->work = r->end_s + n;
    return ST_OK;
}

void replicas_release (struct replicas *r)
{
    free (r->slot);
    free (r->send_s);
}

/* The share of a stage's layers that chunk `chunk` holds. */
static double chunk_share (const struct terms *t, int stage, int chunk)
{
    int v = t->problem.config->deg.vpp, layers = t->problem.layers[stage];
    int held = t->problem.chunks
                   ? t->problem.chunks[stage * v + chunk]
                   : workload_layers_of_chunk (t->problem.config, stage, layers, chunk);

    return (double) held / layers;
}

/* Fill the first replica's pipeline, the times of the first `chunks` of each stage.
 * @return false when a rank of it cannot be reached */
static bool fill (const struct terms *t, const struct replicas *r, int chunks,
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
                                     .send_s = r->send_s,
                                     .return_s = r->return_s,
                                     .blocking = t->problem.profile->time.blocking_sends};
    for (int i = 0; i < pp; i++) {
        const struct slot_time *s = &r->slot[i];
        const struct costmodel_stage_time *a = &s->embedding, *b = &s->head;

        for (int c = 0; c < chunks; c++) {
            double share = chunk_share (t, i, c);
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

void pipeline_play (const struct terms *t, struct replicas r, bool skip,
                    const struct costmodel_watch *watch)
{
    enum workload_schedule schedule = t->problem.config->schedule;
    struct costmodel_pipeline p;

    if (!fill (t, &r, t->problem.config->deg.vpp, &p, r.work))
        never (t->pp, r.end_s);
    else if (!watch)
        costmodel_schedule (schedule, &p, skip, r.end_s,
                            r.work + 3 * p.chunks * p.stages);
    else if (!costmodel_play (schedule, &p, false, r.end_s, watch))
        never (t->pp, r.end_s);
}

/* Rows (1) to (3) of mapper/bound/recursion.c: when stage 0 ends at least, by what stage k has to
 * do, whose C is `both`; `way` is one micro-batch's down and up, `after` that of the stages after
 * k, with their sends. */
static double row_of (const struct costmodel_pipeline *p, int k, double way, double after)
{
    int run = p->stages - k, left = p->microbatches - run;
    double both = p->fwd_s[k] + p->back_s[k];
    double end = way + (p->microbatches - 1) * p->back_s[k];

    if (left <= 0)
        return end;

    int rounds = (left - 1) / run, rest = left - 1 - rounds * run;

    return fmax (end + left * p->fwd_s[k], way +
                                               rounds * fmax (both * run, both + after) +
                                               (rest + 1) * both + after);
}

bool pipeline_least (const struct terms *t, struct replicas r)
{
    const struct workload_config *c = t->problem.config;
    bool plain = c->schedule == SCHEDULE_1F1B && c->deg.vpp == 1;
    double way = 0.0, up = 0.0, after = 0.0, most = 0.0;
    struct costmodel_pipeline p;

    if (!plain && c->schedule != SCHEDULE_INTERLEAVED && c->schedule != SCHEDULE_GPIPE)
        return false;
    if (!fill (t, &r, 1, &p, r.work)) {
        never (t->pp, r.end_s);
        return true;
    }
    for (int k = 0; k < t->pp; k++) {
        if (k > 0) {
            way += p.send_s[k - 1];
            up += p.return_s[k - 1];
        }
        /* Through the first chunks down to stage k and back, in between all that it does. */
        r.end_s[k] = way + up + t->microbatches * (r.slot[k].fwd_s + r.slot[k].back_s);
        way += p.fwd_s[k];
        up += p.back_s[k];
    }
    way += up;
    if (!isfinite (way)) { /* else ends would be infinity less infinity */
        never (t->pp, r.end_s);
        return true;
    }
    for (int k = t->pp - 1; k >= 0; k--) {
        up -= p.back_s[k];
        if (plain)
            most = fmax (most, row_of (&p, k, way, after));
        most = fmax (most, r.end_s[k]);
        r.end_s[k] = most - up;
        after += p.fwd_s[k] + p.back_s[k];
        if (k > 0) {
            after += p.send_s[k - 1] + p.return_s[k - 1];
            up -= p.return_s[k - 1];
        }
    }
    return true;
}
