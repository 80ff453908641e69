/* What a stage takes to synchronise gradients and weights over data parallelism, and how much of it
 * hides. */
#include "costmodel/costmodel_private.h"

#include <math.h>

/* Has every node that a kind of groups runs through one kind of link inside, and every pair
 * of nodes one? */
static bool is_plain (const struct terms *t, const struct members *m)
{
    const struct topology_cluster *c = t->problem.cluster;
    bool plain = !c->has_gpu_links;

    for (int i = 0; i < m->n && plain && !t->plain; i++)
        plain = topology_alike_inside (&c->node[t->node_of[*member_at (m, i)]]);
    return plain;
}

/* Seconds of one row of groups that hold `params` parameters each, under t->scratch->share. */
static double row_price (const struct terms *t, const struct members *m,
                         const struct kinds *kinds, const struct costmodel_volume *v,
                         double params, int *unmeasured)
{
    /* Where a kind of groups sees the same links, one of it stands for all; each is listed
     * for itself when links are unmeasured, unless all are one kind. */
    bool one = kinds->n == 1 && is_plain (t, m);
    bool each = !one && (t->log || !t->plain);
    double worst = 0.0;

    for (int j = 0; j < (each ? m->stride : kinds->n); j++) {
        struct members group = members_beside (m, each ? j : kinds->group[j]);
        struct costmodel_ring r = ring_of (t, &group, t->scratch->share, "dp");

        worst =
            larger (worst, costmodel_sync_s (t->problem.profile, &r, m->n, v, params));
        *unmeasured += r.unmeasured * (one || each ? 1 : kinds->times[j]);
    }
    return worst;
}

/* The same of `rows` rows after each other that all send at the same time: the slowest. */
static double ring_price (const struct terms *t, struct members row, int rows,
                          const struct costmodel_volume *v, double params,
                          int *unmeasured)
{
    struct members next = row;
    struct kinds kinds;
    double worst;

    if (row.n == 1)
        return 0.0;
    kinds = kinds_of (t, &row);
    add_shares (t, &row, &kinds);
    for (int k = 1; k < rows; k++) {
        next = next_row (next);
        kinds = kinds_of (t, &next);
        add_shares (t, &next, &kinds);
    }
    /* The kinds in hand are the last row's. */
    worst = row_price (t, &next, &kinds, v, params, unmeasured);
    for (int k = 1; k < rows; k++, row = next_row (row)) {
        kinds = kinds_of (t, &row);
        worst = larger (worst, row_price (t, &row, &kinds, v, params, unmeasured));
    }
    clear_shares (t->scratch);
    return worst;
}

/* Of a stage's traffic of that kind, what nothing hides. */
static double bare_part (const struct terms *t, int stage,
                         const struct costmodel_volume *v)
{
    return costmodel_sync_bare (t->problem.profile, t->problem.config, v,
                                t->problem.layers[stage]);
}

struct sync_time sync_price (const struct terms *t, int stage, int *unmeasured)
{
    const struct workload_config *c = t->problem.config;
    const int *gpu = slot_gpus (t, stage, 0);
    struct members dense = members_of (gpu, workload_shard_group (c, GROUP_SYNC)),
                   experts =
                       members_of (gpu, workload_shard_group (c, GROUP_EXPERT_SYNC)),
                   copies = members_of (gpu, workload_copy_group (c));
    const struct workload_stage_params *params = &t->params[stage];
    struct costmodel_volume between = costmodel_copy_volume (&t->volume);
    bool reduced = between.dp_phases > 0, routed = params->expert > 0;
    double time, copied = 0.0;

    *unmeasured = 0;
    time = ring_price (t, dense, copies.n, &t->volume, params->dense, unmeasured);
    if (routed)
        time += ring_price (t, experts, copies.n, &t->volume, params->expert, unmeasured);
    if (reduced)
        copied = ring_price (t, copies, 1, &between, params->dense / dense.n, unmeasured);
    if (reduced && routed)
        copied +=
            ring_price (t, copies, 1, &between, params->expert / experts.n, unmeasured);
    return (struct sync_time){time + copied, time * bare_part (t, stage, &t->volume) +
                                                 copied * bare_part (t, stage, &between)};
}

enum workload_all_reduce sync_by (const struct terms *t, int stage)
{
    const struct workload_config *c = t->problem.config;
    struct members all = members_of (slot_gpus (t, stage, 0),
                                     workload_shard_copies (c) > 1
                                         ? workload_copy_group (c)
                                         : workload_group_of (&c->deg, GROUP_SYNC));
    struct costmodel_volume between = costmodel_copy_volume (&t->volume);
    bool reduced = between.dp_phases > 0;
    double params = t->params[stage].dense;
    struct costmodel_ring r;

    add_row_shares (t, all, 1);
    r = ring_of (t, &all, t->scratch->share, "dp");
    clear_shares (t->scratch);
    return costmodel_sync_by (t->problem.profile, &r, all.n,
                              reduced ? &between : &t->volume,
                              reduced ? params / workload_dense_shards (c) : params);
}

/* Does one of the stage's data-parallel groups leave a node? */
static bool sync_leaves_node (const struct terms *t, int stage)
{
    struct members all = stage_groups (t, stage, GROUP_SYNC);

    for (int i = all.stride; i < all.n * all.stride; i++)
        if (t->node_of[all.gpu[i]] != t->node_of[all.gpu[i % all.stride]])
            return true;
    return false;
}

double hiding_s (const struct terms *t, int stage, const struct slot_time *slot,
                 int apart)
{
    double times =
        costmodel_sync_window (t->problem.profile, t->problem.config, t->microbatches);
    double under = 0.0, busy = 0.0;
    bool leaves = sync_leaves_node (t, stage);

    /* A ring stands still while any of its members' links are taken. */
    for (int d = 0; d < t->dp; d++, slot += apart) {
        under = larger (under, slot->fwd_s + slot->back_s);
        busy = larger (busy, slot->busy_s[leaves]);
    }
    return times * fmax (0.0, under - busy);
}

double exposed_price (const struct terms *t, int stage, struct sync_time sync,
                      const struct slot_time *slot, int apart)
{
    return fmax (costmodel_exposed_s (t->problem.profile, sync.s,
                                      hiding_s (t, stage, slot, apart)),
                 sync.bare_s);
}
