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

/* Is the link from src the same to both of two GPUs of one node? */
static bool same_way (const struct topology_cluster *c, int src, int one, int other)
{
    const int *node = c->node_of_gpu;
    const struct topology_links *intra = c->node[node[one]].intra;

    return node[one] == node[other] && !c->has_gpu_links &&
           (node[src] != node[one] ||
            (intra->bytes_per_s.n == 0 && intra->latency_s.n == 0));
}

/* What one rank sends to all others. */
struct sending {
    double inside_s, outside_s, bytes; /* bytes to other nodes */
    double paired_s;                   /* where pairs of nodes have totals, on those */
    double latency_s;
};

/* Add what it sends to n ranks of one node, itself not counted: links that are alike and measured
 * are looked up once.  @return false where one of them has no price */
static bool send_to (const struct terms *t, int src, const int *dst, int n, double bytes,
                     struct sending *sum, int *unmeasured)
{
    const struct topology_cluster *c = t->problem.cluster;
    int a = t->node_of[src], b = t->node_of[dst[0]], left = n - (a == b);

    for (int j = 0; j < n && left > 0; j++) {
        struct topology_link l;
        int alike;

        if (dst[j] == src)
            continue;
        l = link_between (t, src, dst[j], "ep", unmeasured);
        if (l.bytes_per_s <= 0.0)
            return false;
        alike = l.measured && same_way (c, src, dst[j], dst[j]) ? left : 1;
        left -= alike;
        *(a == b ? &sum->inside_s : &sum->outside_s) += alike * bytes / l.bytes_per_s;
        sum->latency_s = fmax (sum->latency_s, l.latency_s);
        if (a == b)
            continue;
        sum->bytes += alike * bytes;
        if (t->limited && c->has_pair_totals)
            sum->paired_s += alike * bytes / topology_pair_total (c, a, b);
    }
    return true;
}

double alltoall_of (const struct terms *t, const struct members *ep, int *unmeasured)
{
    const struct scratch *s = t->scratch;
    const struct topology_cluster *c = t->problem.cluster;
    const struct workload_profile *p = t->problem.profile;
    const struct workload_model *m = t->problem.model;
    double most_inside = 0.0, most_outside = 0.0, latency = 0.0,
           every = t->volume.ep_bytes * m->top_k / ep->n;
    int nodes = bucket (t, ep);
    struct parcels parcel = {.near = every, .far_last = every};

    list_members (t, ep, nodes);
    bucketed (t, nodes);
    /* GPUs also hand on what came from their peers on other nodes. */
    if (p->time.deduplicated_dispatch)
        parcel.near = nodes * t->volume.ep_bytes *
                      costmodel_visit_chance (m, (double) m->experts / ep->n);
    for (int k = 0, at = 0; k < nodes; at += s->count[k++])
        for (int i = 0; i < s->count[k]; i++) {
            int src = s->member[at + i], a = t->node_of[src], missing = *unmeasured;
            struct sending sum = {0};

            for (int q = 0, to = 0; q < nodes; to += s->count[q++])
                if (!send_to (t, src, s->member + to, s->count[q],
                              q == k ? parcel.near : far_parcel (t, &parcel, s->count[q]),
                              &sum, unmeasured))
                    return INFINITY;
            /* All groups that leave the node share its way out, and its ways to each other. */
            if (sum.bytes > 0.0 && t->limited && c->node[a].node_bytes_per_s > 0)
                sum.paired_s =
                    fmax (sum.paired_s, sum.bytes / c->node[a].node_bytes_per_s);
            sum.outside_s = fmax (sum.outside_s, s->count[k] * sum.paired_s *
                                                     (s->share[a] > 1 ? s->share[a] : 1));
            most_inside = fmax (most_inside, sum.inside_s);
            most_outside = fmax (most_outside, sum.outside_s);
            latency = fmax (latency, sum.latency_s);
            /* The others of its node send the same. */
            if (i + 1 < s->count[k] && *unmeasured == missing &&
                same_way (c, src, src, src))
                break;
        }
    return costmodel_exchange_s (p, most_inside, most_outside, latency);
}
