/* Other people's cost models, for comparison on the same placement.
 *
 * What they profile or learn (a stage's forward and backward) is this library's compute,
 * so that what is compared is how they put a step together:
 *
 *  Pipette (Yim et al., DATE 2024)  floor(m/p) [p C + T_PP] + (p-1) C + gradients inside
 *      nodes + between them, of the first stage; C = F + B of the slowest stage, T_PP the
 *      slowest pipeline's sends both ways; m < p: T_PP + (p+m-1) C + gradients
 *  AMP (Li et al., NeurIPS 2022)  (m-1) max C + sum of C + sends + the slowest stage's
 *      gradients, C three forwards */
#include "costmodel/costmodel_private.h"

#include <math.h>

static const char *const names[] = {"critical-path", "pipette", "amp", NULL};

const char *costmodel_kind_name (enum costmodel_kind k)
{
    return names[k];
}

bool costmodel_kind_parse (const char *s, enum costmodel_kind *k)
{
    return workload_word_parse (names, s, k);
}

/* Bandwidth of the slowest link between consecutive members on different nodes or on one, as a
 * ring; INFINITY when there is none of the kind. */
static double slowest (const struct terms *t, const struct members *m, bool between,
                       int *unmeasured)
{
    double least = INFINITY;

    for (int i = 0; i < m->n && m->n > 1; i++) {
        int a = *member_at (m, i), b = *member_at (m, (i + 1) % m->n);

        if ((t->node_of[a] != t->node_of[b]) == between)
            least = fmin (least, link_between (t, a, b, "dp", unmeasured).bytes_per_s);
    }
    return least;
}

/* Seconds of a ring of `size` for so many bytes. */
static double ring_s (double size, double bytes, double bytes_per_s)
{
    return 2.0 * (size - 1) / size * bytes / bytes_per_s;
}

double published_compute_s (const struct terms *t, const struct slot_time *slot)
{
    return t->problem.kind == COSTMODEL_PIPETTE ? slot->fwd_s + slot->back_s
                                                : 3.0 * slot->fwd_s;
}

int published_sends (const struct terms *t, const int *src, const int *dst,
                     double *lane_s)
{
    const struct costmodel_problem *p = &t->problem;
    double ways = p->kind == COSTMODEL_PIPETTE ? 2.0 : 1.0;
    double bytes = costmodel_published_message_bytes (p->model, p->job, p->config);
    int flows = uniform_flows (t, src, dst) ? 1 : t->slot, unmeasured = 0;

    for (int i = 0; i < t->slot; i++)
        lane_s[i] =
            i < flows
                ? ways * bytes /
                      link_between (t, src[i], dst[i], "pp", &unmeasured).bytes_per_s
                : lane_s[0];
    return unmeasured;
}

double published_pipe_s (const struct terms *t, const double *lane_s, size_t apart)
{
    double slowest_s = 0.0;

    for (size_t r = 0; r < (size_t) t->slot; r++) {
        double sum = 0.0;

        for (size_t i = 0; i + 1 < (size_t) t->pp; i++)
            sum += lane_s[i * apart + r];
        slowest_s = fmax (slowest_s, sum);
    }
    return slowest_s;
}

/* Rings of the first stage's gradients: between nodes and inside them. */
static double pipette_sync_s (const struct terms *t, int *unmeasured)
{
    double bytes = costmodel_pipette_gradient_bytes (t->problem.model, t->problem.config);
    double intra = 0.0, inter = 0.0;

    for (int j = 0; j < t->tp; j++) {
        struct members m = {t->gpu + j, t->dp * t->cp, t->tp};
        int nodes = bucket (t, &m), largest = 0;

        for (int k = 0; k < nodes; k++)
            if (t->scratch->count[k] > largest)
                largest = t->scratch->count[k];
        bucketed (t, nodes);
        if (nodes > 1)
            inter =
                fmax (inter, ring_s (nodes, bytes, slowest (t, &m, true, unmeasured)));
        if (largest > 1)
            intra =
                fmax (intra, ring_s (largest, bytes, slowest (t, &m, false, unmeasured)));
    }
    return intra + inter;
}

static double amp_sync_s (const struct terms *t, int stage, int *unmeasured)
{
    double bytes = 2.0 * (t->params[stage].dense + t->params[stage].expert), worst = 0.0;

    for (int j = 0; j < t->tp; j++) {
        struct members m = {slot_gpus (t, stage, 0) + j, t->dp * t->cp, t->tp};
        double bw =
            fmin (slowest (t, &m, true, unmeasured), slowest (t, &m, false, unmeasured));

        worst = fmax (worst, ring_s (m.n, bytes, bw));
    }
    return worst;
}

double published_sync_s (const struct terms *t, int stage, int *unmeasured)
{
    *unmeasured = 0;
    if (t->problem.kind == COSTMODEL_AMP)
        return amp_sync_s (t, stage, unmeasured);
    return stage == 0 ? pipette_sync_s (t, unmeasured) : 0.0;
}

struct costmodel_breakdown published_step (const struct terms *t, const double *compute_s,
                                           double sends_s, const double *sync_s)
{
    int m = t->microbatches, rounds = m / t->pp;
    double most = 0.0, sum = 0.0, sync = 0.0;

    for (int i = 0; i < t->pp; i++) {
        most = fmax (most, compute_s[i]);
        sum += compute_s[i];
        sync = fmax (sync, sync_s[i]);
    }
    if (t->problem.kind == COSTMODEL_AMP)
        return (struct costmodel_breakdown){
            .compute_s = m * most, .bubble_s = sum - most, .pp_s = sends_s, .dp_s = sync};
    return (struct costmodel_breakdown){.compute_s =
                                            (rounds < 1 ? m : rounds * t->pp) * most,
                                        .bubble_s = (t->pp - 1) * most,
                                        .pp_s = (rounds < 1 ? 1 : rounds) * sends_s,
                                        .dp_s = sync};
}

enum status published_price (struct pricing *q, struct costmodel_estimate *e,
                             struct error *err)
{
    const struct terms *t = &q->t;
    int pp = t->pp, unmeasured;
    size_t slot = (size_t) t->slot;
    double *compute_s = calloc ((size_t) pp * (2 + slot), sizeof *compute_s), *sync_s,
           *lane_s, slowest_s = 0.0;

    if (!compute_s)
        return err_nomem (err);
    sync_s = compute_s + pp;
    lane_s = sync_s + pp;
    for (int i = 0; i < pp; i++) {
        stage_price (t, i, &q->r.slot[i], pp);
        sync_s[i] = published_sync_s (t, i, &unmeasured);
        for (int d = 0; d < t->dp; d++)
            compute_s[i] =
                fmax (compute_s[i], published_compute_s (t, &q->r.slot[d * pp + i]));
        if (compute_s[i] > compute_s[e->stage])
            e->stage = i;
    }
    for (int d = 0; d < t->dp; d++) {
        double pipe_s;

        for (int i = 0; i + 1 < pp; i++)
            published_sends (t, slot_gpus (t, i, d), slot_gpus (t, i + 1, d),
                             lane_s + (size_t) i * slot);
        pipe_s = published_pipe_s (t, lane_s, slot);
        if (pipe_s > slowest_s) {
            slowest_s = pipe_s;
            e->replica = d;
        }
    }
    e->part = published_step (t, compute_s, slowest_s, sync_s);
    e->step_s = published_sum_s (&e->part);
    e->tp_by = q->r.slot[e->replica * pp + e->stage].tp_by;
    e->dp_by = ALL_REDUCE_RING;
    free (compute_s);
    return ST_OK;
}
