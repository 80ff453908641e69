/* Other people's cost models, for comparison on the same placement.
 *
 * What they profile or learn (a stage's forward and backward) is this library's compute,
 * so that what is compared is how they put a step together. */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {"critical-path", "pipette", "amp"};

const char *costmodel_kind_name (enum costmodel_kind k)
{
    return names[k];
}

bool costmodel_kind_parse (const char *s, enum costmodel_kind *k)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp (names[i], s) == 0) {
            *k = (enum costmodel_kind) i;
            return true;
        }
    return false;
}

/* Bandwidth of the slowest link between consecutive of n GPUs, `stride` apart, on
 * different nodes or on one, as a ring; INFINITY when there is none of the kind. */
static double slowest (const struct terms *t, const int *gpu, int n, int stride,
                       bool between)
{
    const struct topology_cluster *c = t->problem.cluster;
    double least = INFINITY;

    for (int i = 0; i < n && n > 1; i++) {
        int a = gpu[(size_t) i * (size_t) stride],
            b = gpu[(size_t) ((i + 1) % n) * (size_t) stride];

        if ((c->node_of_gpu[a] != c->node_of_gpu[b]) == between)
            least = fmin (least, topology_link (c, a, b).bytes_per_s);
    }
    return least;
}

/* The largest group on one node, and how many nodes, of n GPUs `stride` apart. */
static void spread_of (const struct terms *t, const int *gpu, int n, int stride,
                       struct scratch *s, int *largest, int *nodes)
{
    const int *node_of = t->problem.cluster->node_of_gpu;

    *largest = *nodes = 0;
    for (int i = 0; i < n; i++) {
        int a = node_of[gpu[(size_t) i * (size_t) stride]];

        if (s->first[a] < 0) {
            s->first[a] = *nodes;
            s->order[*nodes] = a;
            s->count[(*nodes)++] = 0;
        }
        if (++s->count[s->first[a]] > *largest)
            *largest = s->count[s->first[a]];
    }
    for (int i = 0; i < *nodes; i++)
        s->first[s->order[i]] = -1;
}

/* The sends of one micro-batch down the slowest pipeline, `times` over. */
static double slowest_pipeline (const struct pricing *q, const int *gpu, double bytes,
                                double times)
{
    const struct terms *t = &q->t;
    double worst = 0.0;

    for (int lane = 0; lane < t->dp * t->slot; lane++) {
        double sum = 0.0;

        for (int i = 0; i + 1 < t->pp; i++)
            sum += times * bytes /
                   topology_link (t->problem.cluster, gpu[slot_rank (t, i, 0) + lane],
                                  gpu[slot_rank (t, i + 1, 0) + lane])
                       .bytes_per_s;
        worst = fmax (worst, sum);
    }
    return worst;
}

/* A stage's slowest slot. */
static double slot_most (const struct pricing *q, int stage, double fwd, double back)
{
    double most = 0.0;

    for (int d = 0; d < q->t.dp; d++) {
        const struct slot_time *s = &q->x.slot[d * q->t.pp + stage];

        most = fmax (most, fwd * s->fwd_s + back * s->back_s);
    }
    return most;
}

static double message (const struct terms *t)
{
    const struct costmodel_problem *p = &t->problem;

    return 2.0 * p->config->micro_batch * (double) p->job->seq * p->model->hidden;
}

/* Pipette (DATE 2024; FORMULAS T5), without its learned parts. */
static double pipette (struct pricing *q, const int *gpu)
{
    const struct terms *t = &q->t;
    const struct workload_model *m = t->problem.model;
    double h = m->hidden, c = 0.0, pp, intra = 0.0, inter = 0.0;
    double dp_bytes = 2.0 * (h * m->vocab + 16.0 * h * h * m->layers / t->pp) / t->tp;
    int n = t->dp * t->cp, rounds = t->microbatches / t->pp;

    for (int i = 0; i < t->pp; i++)
        c = fmax (c, slot_most (q, i, 1, 1));
    pp = slowest_pipeline (q, gpu, message (t), 2.0);
    for (int j = 0; j < t->tp && n > 1; j++) {
        int largest, nodes;

        spread_of (t, gpu + j, n, t->tp, &q->s, &largest, &nodes);
        if (nodes > 1)
            inter = fmax (inter, 2.0 * (nodes - 1) / nodes * dp_bytes /
                                     slowest (t, gpu + j, n, t->tp, true));
        if (largest > 1)
            intra = fmax (intra, 2.0 * (largest - 1) / largest * dp_bytes /
                                     slowest (t, gpu + j, n, t->tp, false));
    }
    if (rounds < 1)
        return t->pp * c + pp + (t->microbatches - 1) * c + intra + inter;
    return rounds * (t->pp * c + pp) + (t->pp - 1) * c + intra + inter;
}

/* AMP (NeurIPS 2022; FORMULAS T3): three forwards a stage and micro-batch, sends counted
 * once, the slowest stage's gradients. */
static double amp (struct pricing *q, const int *gpu)
{
    const struct terms *t = &q->t;
    double most = 0.0, sum = 0.0, dp = 0.0;
    int n = t->dp * t->cp;

    for (int i = 0; i < t->pp; i++) {
        double c = slot_most (q, i, 3, 0);
        double bytes = 2.0 * (t->params[i].dense + t->params[i].expert);

        most = fmax (most, c);
        sum += c;
        for (int j = 0; j < t->tp && n > 1; j++) {
            const int *g = gpu + slot_rank (t, i, 0) + j;
            double bw =
                fmin (slowest (t, g, n, t->tp, true), slowest (t, g, n, t->tp, false));

            dp = fmax (dp, 2.0 * (n - 1) / n * bytes / bw);
        }
    }
    return (t->microbatches - 1) * most + sum +
           slowest_pipeline (q, gpu, message (t), 1.0) + dp;
}

enum status costmodel_published (enum costmodel_kind kind,
                                 const struct costmodel_problem *p,
                                 const int *gpu_of_rank, double *step_s,
                                 struct error *err)
{
    struct pricing q;
    enum status st = pricing_init (&q, p, gpu_of_rank, NULL, err);

    if (st == ST_OK) {
        *step_s =
            kind == COSTMODEL_PIPETTE ? pipette (&q, gpu_of_rank) : amp (&q, gpu_of_rank);
        if (!isfinite (*step_s))
            st = err_set (err, ST_NOFIT,
                          "ranks that must talk are not connected: no link of that kind "
                          "was measured");
    }
    pricing_release (&q);
    return st;
}
