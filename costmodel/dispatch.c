/* Tokens to their experts and back.
 *
 * Routing is taken to be even: every set of top_k experts (in top_groups groups, where the
 * model limits them) is as likely as any other.  Plain dispatchers send a token once to
 * every expert.  Deduplicating ones (DeepEP, github.com/deepseek-ai/DeepEP) send it once to
 * every node where it has experts, over the sender's own lane, and hand it on there once to
 * every GPU where it has some; the way back is the same, with sums made on the way. */
#include "costmodel/costmodel_private.h"

#include <math.h>

static double choose (int n, int k)
{
    double c = 1.0;

    if (k < 0 || k > n)
        return 0.0;
    for (int i = 0; i < k; i++)
        c *= (n - i) / (double) (k - i);
    return c;
}

/* Chance that none of k experts, drawn from `all`, is among `held` of them. */
static double misses (double all, double held, int k)
{
    double chance = 1.0;

    for (int i = 0; i < k; i++)
        chance *= fmax (0.0, all - held - i) / (all - i);
    return chance;
}

double costmodel_visit_chance (const struct workload_model *m, double held)
{
    int groups = m->expert_groups > 0 ? m->expert_groups : 1;
    int top = m->expert_groups > 0 && m->top_groups > 0 ? m->top_groups : groups;
    double size = m->experts / (double) groups, none = 0.0;
    int mine = (int) ceil (held / size - 1e-9); /* groups that they are of */

    for (int j = 0; j <= mine && j <= top; j++)
        none += choose (mine, j) * choose (groups - mine, top - j) /
                choose (groups, top) * misses (top * size, j * held / mine, m->top_k);
    return 1.0 - none;
}

/* What one rank sends to one other. */
struct parcels {
    double near; /* on its own node */
    double far_last;
    int members_last; /* far_last is for a node with so many of the ranks */
};

/* Of a node's ranks, each sends the same to one rank of a node with `members` of them. */
static double far_parcel (const struct terms *t, struct parcels *p, int members)
{
    const struct workload_model *m = t->problem.model;
    int ep = t->problem.config->deg.ep;

    if (t->problem.profile->time.deduplicated_dispatch && members != p->members_last) {
        p->far_last = t->volume.ep_bytes *
                      costmodel_visit_chance (m, members * (double) m->experts / ep) /
                      members;
        p->members_last = members;
    }
    return p->far_last;
}

/* Count the ranks on each one's node into s->member.  @return nodes */
static int count_members (const struct terms *t, const struct members *ep)
{
    struct scratch *s = t->scratch;
    int nodes = bucket (t, ep);

    for (int i = 0; i < ep->n; i++)
        s->member[i] = s->count[s->first[member_node (t, ep, i)]];
    bucketed (t, nodes);
    return nodes;
}

/* Is the link from src the same to both of two GPUs of one node? */
static bool same_way (const struct topology_cluster *c, int src, int one, int other)
{
    const int *node = c->node_of_gpu;
    const struct topology_links *intra = c->node[node[one]].intra;

    return node[one] == node[other] && !c->has_gpu_links &&
           (node[src] != node[one] ||
            (intra->bytes_per_s.n == 0 && intra->latency_s.n == 0));
}

double alltoall_of (const struct terms *t, const struct members *ep, int *unmeasured)
{
    const struct scratch *s = t->scratch;
    const struct topology_cluster *c = t->problem.cluster;
    const struct workload_profile *p = t->problem.profile;
    const struct workload_model *m = t->problem.model;
    double most_inside = 0.0, most_outside = 0.0, latency = 0.0,
           every = t->volume.ep_bytes * m->top_k / ep->n;
    int nodes = count_members (t, ep), before = -1;
    struct parcels parcel = {.near = every, .far_last = every};

    /* GPUs also hand on what came from their peers on other nodes. */
    if (p->time.deduplicated_dispatch)
        parcel.near = nodes * t->volume.ep_bytes *
                      costmodel_visit_chance (m, (double) m->experts / ep->n);
    for (int i = 0; i < ep->n; i++) {
        int src = *member_at (ep, i), a = t->node_of[src];
        double inside = 0.0, outside = 0.0, sent = 0.0, paired = 0.0;
        int missing = *unmeasured, last = -1;
        struct topology_link l = {0};

        /* As the one before, whose links were all measured. */
        if (before >= 0 && same_way (c, src, src, before))
            continue;
        for (int j = 0; j < ep->n; j++) {
            int dst = *member_at (ep, j);
            bool near = t->node_of[dst] == a;
            double bytes = near ? parcel.near : far_parcel (t, &parcel, s->member[j]);

            if (j == i)
                continue;
            if (last < 0 || !l.measured || !same_way (c, src, last, dst))
                l = link_between (t, src, dst, "ep", unmeasured);
            last = dst;
            if (l.bytes_per_s <= 0.0)
                return INFINITY;
            *(near ? &inside : &outside) += bytes / l.bytes_per_s;
            sent += near ? 0.0 : bytes;
            if (!near && t->limited && c->has_pair_totals)
                paired += bytes / topology_pair_total (c, a, t->node_of[dst]);
            latency = fmax (latency, l.latency_s);
        }
        before = *unmeasured == missing ? src : -1;
        /* All groups that leave the node share its way out, and its ways to each other. */
        if (sent > 0.0 && t->limited && c->node[a].node_bytes_per_s > 0)
            paired = fmax (paired, sent / c->node[a].node_bytes_per_s);
        outside =
            fmax (outside, s->member[i] * paired * (s->share[a] > 1 ? s->share[a] : 1));
        most_inside = fmax (most_inside, inside);
        most_outside = fmax (most_outside, outside);
    }
    return costmodel_exchange_s (p, most_inside, most_outside, latency);
}
