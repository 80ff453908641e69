/* Groups of a placed plan, one by one: their rings as laid, and as somebody else chose. */
#include "costmodel/costmodel_private.h"

#include <stdlib.h>

struct costmodel_groups {
    struct terms t;
    enum workload_group_kind kind; /* whose shares are in t.scratch */
    int stage;                     /* of these; -1: none are */
    /* Seconds per byte of a channel, summed over channels; all 0 between calls. */
    double *gpu_inside, *gpu_out, *gpu_in; /* [n_gpus] */
    double *node_out, *node_in;            /* [n_nodes] */
};

enum status costmodel_groups_create (const struct costmodel_problem *p,
                                     const int *gpu_of_rank,
                                     struct costmodel_groups **out, struct error *err)
{
    size_t gpus = (size_t) p->cluster->n_gpus, nodes = (size_t) p->cluster->n_nodes;
    struct costmodel_groups *g = calloc (1, sizeof *g);
    enum status st;

    if (!g)
        return err_nomem (err);
    st = terms_init (&g->t, p, err);
    if (st == ST_OK &&
        !(g->gpu_inside = calloc (3 * gpus + 2 * nodes, sizeof *g->gpu_inside))) {
        terms_release (&g->t);
        st = err_nomem (err);
    }
    if (st != ST_OK) {
        free (g);
        return st;
    }
    g->t.gpu = gpu_of_rank;
    g->stage = -1;
    g->gpu_out = g->gpu_inside + gpus;
    g->gpu_in = g->gpu_out + gpus;
    g->node_out = g->gpu_in + gpus;
    g->node_in = g->node_out + nodes;
    *out = g;
    return ST_OK;
}

void costmodel_groups_destroy (struct costmodel_groups *g)
{
    if (!g)
        return;
    terms_release (&g->t);
    free (g->gpu_inside);
    free (g);
}

static int stage_of (const struct terms *t, int rank)
{
    return rank / (t->slot * t->dp);
}

/* The shares of the stage's tensor-parallel groups; by -1 takes them away. */
static void share_tp (struct costmodel_groups *g, int stage, int by)
{
    change_tp_shares (&g->t, slot_gpus (&g->t, stage, 0), g->t.dp * g->t.cp,
                      g->t.scratch->share, by);
}

/* Let the scratch hold the shares of such groups of the stage of a rank. */
static void share (struct costmodel_groups *g, enum workload_group_kind kind, int first)
{
    int stage = stage_of (&g->t, first);

    if (g->stage == stage && g->kind == kind)
        return;
    if (g->stage >= 0 && g->kind == GROUP_TP)
        share_tp (g, g->stage, -1);
    else
        clear_shares (g->t.scratch);
    if (kind == GROUP_TP)
        share_tp (g, stage, 1);
    else
        add_row_shares (&g->t, stage_groups (&g->t, stage, kind), 1);
    g->kind = kind;
    g->stage = stage;
}

static struct members group (const struct terms *t, enum workload_group_kind kind,
                             int first)
{
    return members_of (t->gpu + first, workload_group_of (&t->problem.config->deg, kind));
}

static const char *use_of (enum workload_group_kind kind)
{
    return kind == GROUP_TP ? "tp" : "dp";
}

struct costmodel_ring costmodel_groups_laid (struct costmodel_groups *g,
                                             enum workload_group_kind kind, int first)
{
    struct members m = group (&g->t, kind, first);

    share (g, kind, first);
    return ring_of (&g->t, &m, g->t.scratch->share, use_of (kind));
}

/* What one channel's hop adds to its GPUs and nodes. */
static void take_hop (struct costmodel_groups *g, int src, int dst, const char *use,
                      struct costmodel_ring *r, double *latency_s)
{
    const struct terms *t = &g->t;
    const struct topology_cluster *c = t->problem.cluster;
    const int *of = t->scratch->share;
    int a = t->node_of[src], b = t->node_of[dst];
    struct topology_link l = link_between (t, src, dst, use, &r->unmeasured);
    double rate = l.bytes_per_s;

    *latency_s += l.latency_s;
    if (a == b) {
        const struct topology_links *intra = c->node[a].intra;

        if (!c->has_gpu_links && intra && intra->gpu_bytes_per_s > 0)
            rate = smaller (rate, intra->gpu_bytes_per_s);
        g->gpu_inside[src] += 1.0 / rate;
        return;
    }
    rate *= t->problem.profile->time.link_out;
    g->gpu_out[src] += 1.0 / rate;
    g->gpu_in[dst] += 1.0 / rate;
    if (t->limited) {
        rate = topology_share (c, a, b, of[a], of[b]) * t->problem.profile->time.link_out;
        g->node_out[a] += 1.0 / rate;
        g->node_in[b] += 1.0 / rate;
    }
}

/* The busiest of the group's GPUs and nodes; all of them are 0 again after it. */
static void take_busiest (struct costmodel_groups *g, const int *gpu, int n,
                          double *inside, double *between)
{
    double *const way[] = {g->gpu_out, g->gpu_in, g->node_out, g->node_in};

    for (int i = 0; i < n; i++) {
        *inside = larger (*inside, g->gpu_inside[gpu[i]]);
        g->gpu_inside[gpu[i]] = 0.0;
        for (int k = 0; k < 4; k++) {
            int at = k < 2 ? gpu[i] : g->t.node_of[gpu[i]];

            *between = larger (*between, way[k][at]);
            way[k][at] = 0.0;
        }
    }
}

struct costmodel_ring costmodel_groups_chosen (struct costmodel_groups *g,
                                               enum workload_group_kind kind, int first,
                                               const int *gpu, int channels)
{
    struct costmodel_ring laid = costmodel_groups_laid (g, kind, first);
    struct costmodel_ring r = {.nodes = laid.nodes, .nvls = laid.nvls};
    int n = workload_group_of (&g->t.problem.config->deg, kind).size;
    double inside = 0.0, between = 0.0;

    for (int c = 0; c < channels; c++) {
        const int *ring = gpu + (size_t) c * (size_t) n;
        double latency_s = 0.0;

        for (int i = 0; i < n; i++)
            take_hop (g, ring[i], ring[(i + 1) % n], use_of (kind), &r, &latency_s);
        r.latency_s = larger (r.latency_s, latency_s * (n - 1.0) / n);
    }
    take_busiest (g, gpu, n, &inside, &between);
    r.inside_bytes_per_s = channels / inside;
    r.between_bytes_per_s = channels / between;
    return r;
}

double costmodel_groups_step_s (const struct costmodel_groups *g,
                                enum workload_group_kind kind, int first,
                                const struct costmodel_ring *r,
                                enum workload_all_reduce *by)
{
    const struct terms *t = &g->t;
    const struct costmodel_problem *p = &t->problem;
    int stage = stage_of (t, first), n = workload_group_of (&p->config->deg, kind).size;
    double params = kind == GROUP_SYNC ? t->params[stage].dense : t->params[stage].expert;

    if (kind == GROUP_TP) {
        double fwd, back, bytes = t->volume.tp_bytes;

        costmodel_tp_operations (p->model, p->config, &t->held[stage], &fwd, &back);
        back +=
            costmodel_gate_operations (p->model, p->config, p->profile, &t->held[stage]);
        *by = p->config->sequence_parallel
                  ? ALL_REDUCE_RING
                  : costmodel_allreduce_by (p->profile, r, n, bytes);
        return t->microbatches * (fwd + back) *
               costmodel_tp_operation_s (p->profile, p->config, r, bytes);
    }
    *by = costmodel_sync_by (p->profile, r, n, &t->volume, params);
    return params > 0 ? costmodel_sync_s (p->profile, r, n, &t->volume, params) : 0.0;
}
