/* All-reduces, by the algorithms that NCCL has and the one that frameworks build on it.
 *
 * Each takes start_s + bytes * s_per_byte.  With n ranks, k on each of N nodes:
 *
 *  - ring: every rank passes 2 (n-1)/n of the bytes on (nccl-tests doc/PERFORMANCE.md);
 *  - tree: double binary trees of nodes, chains inside them.  The bytes go up and down;
 *  - NVLS: NVSwitches add up and multicast.  A rank sends its bytes once to be added and
 *    the n-th part that it keeps once more, and receives as much: (n+1)/n
 *    (NVIDIA/nccl-tests issue 212);
 *  - NVLS tree: the same inside nodes, a tree between them.  Over the way out of one of two
 *    nodes the bytes go once, of an inner one of more twice;
 *  - hierarchical: reduce-scatter inside nodes, rings between the nodes' members of one
 *    place, all-gather inside; three collectives.
 *
 * Which of them groups may use, and what trees make of the bandwidth, is NCCL's
 * src/graph/tuning.cc.  Protocols for short messages (LL, LL128) are
 * not told apart. */
#include "costmodel/costmodel_private.h"

#include <math.h>

/* A tree reaches a little less of the links than the ring does (src/graph/tuning.cc). */
#define TREE_PART 0.92

struct cost {
    double start_s, s_per_byte;
};

static struct cost ring_cost (const struct workload_profile *p,
                              const struct costmodel_ring *r, int n)
{
    return (struct cost){p->time.collective_s + 2.0 * r->latency_s,
                         2.0 * (n - 1.0) / n / (costmodel_ring_rate (r) * p->time.link)};
}

static struct cost tree_cost (const struct workload_profile *p,
                              const struct costmodel_ring *r, int n, double hop)
{
    double members = (double) n / r->nodes;
    double chain = 2.0 * (members - 1.0) / members / r->inside_bytes_per_s;
    double between = 2.0 / r->between_bytes_per_s;

    return (struct cost){p->time.collective_s +
                             2.0 * (ceil (log2 (r->nodes)) + members - 1.0) * hop,
                         fmax (chain, between) / (TREE_PART * p->time.link)};
}

static struct cost nvls_cost (const struct workload_profile *p,
                              const struct costmodel_ring *r, int n, double hop)
{
    double members = (double) n / r->nodes;
    double inside = (1.0 + 1.0 / members) / (r->nvls * r->inside_bytes_per_s);
    double passes = r->nodes > 2 ? 2.0 : r->nodes - 1.0;
    double between = passes / r->between_bytes_per_s;

    return (struct cost){p->time.collective_s +
                             2.0 * (1.0 + ceil (log2 (r->nodes))) * hop,
                         fmax (inside, between) / p->time.link};
}

static struct cost hierarchical_cost (const struct workload_profile *p,
                                      const struct costmodel_ring *r, int n, double hop)
{
    double members = (double) n / r->nodes, nodes = r->nodes;
    double inside = (members - 1.0) / members / r->inside_bytes_per_s;
    double between = (nodes - 1.0) / nodes / r->between_bytes_per_s;

    return (struct cost){3.0 * p->time.collective_s +
                             2.0 * (members - 1.0 + nodes - 1.0) * hop,
                         2.0 * (inside + between) / p->time.link};
}

/* Does the group offer the algorithm? */
static bool offered (enum workload_all_reduce by, const struct costmodel_ring *r, int n)
{
    switch (by) {
    case ALL_REDUCE_TREE:
        return r->nodes > 1;
    case ALL_REDUCE_HIERARCHICAL:
        return r->nodes > 1 && n > r->nodes;
    case ALL_REDUCE_NVLS:
        return r->nvls > 0 && r->nodes == 1;
    case ALL_REDUCE_NVLS_TREE:
        return r->nvls > 0 && r->nodes > 1 && n > r->nodes;
    default:
        return true;
    }
}

static struct cost cost_of (enum workload_all_reduce by, const struct workload_profile *p,
                            const struct costmodel_ring *r, int n)
{
    double hop = r->latency_s / (n - 1);

    switch (by) {
    case ALL_REDUCE_TREE:
        return tree_cost (p, r, n, hop);
    case ALL_REDUCE_HIERARCHICAL:
        return hierarchical_cost (p, r, n, hop);
    case ALL_REDUCE_NVLS:
    case ALL_REDUCE_NVLS_TREE:
        return nvls_cost (p, r, n, hop);
    default:
        return ring_cost (p, r, n);
    }
}

/* What the profile lets a group choose from; the ring is always there. */
static bool allowed (enum workload_all_reduce by, const struct workload_profile *p,
                     const struct costmodel_ring *r, int n)
{
    enum workload_all_reduce fixed = p->time.all_reduce;

    if (fixed == ALL_REDUCE_AUTO || !offered (fixed, r, n))
        return by == ALL_REDUCE_RING ||
               (fixed == ALL_REDUCE_AUTO && by != ALL_REDUCE_HIERARCHICAL &&
                offered (by, r, n));
    return by == fixed;
}

/* The fastest for so many bytes. */
static double fastest (const struct workload_profile *p, const struct costmodel_ring *r,
                       int n, double bytes, enum workload_all_reduce *by)
{
    double best = INFINITY;

    *by = ALL_REDUCE_RING;
    if (!(costmodel_ring_rate (r) > 0.0))
        return INFINITY;
    for (int a = ALL_REDUCE_RING; a <= ALL_REDUCE_NVLS_TREE; a++) {
        enum workload_all_reduce one = (enum workload_all_reduce) a;
        struct cost c;

        if (!allowed (one, p, r, n))
            continue;
        c = cost_of (one, p, r, n);
        if (c.start_s + bytes * c.s_per_byte < best) {
            best = c.start_s + bytes * c.s_per_byte;
            *by = one;
        }
    }
    return best;
}

double costmodel_allreduce_s (const struct workload_profile *p,
                              const struct costmodel_ring *r, int n, double bytes)
{
    enum workload_all_reduce ignored;

    return n == 1 ? 0.0 : fastest (p, r, n, bytes, &ignored);
}

enum workload_all_reduce costmodel_allreduce_by (const struct workload_profile *p,
                                                 const struct costmodel_ring *r, int n,
                                                 double bytes)
{
    enum workload_all_reduce by = ALL_REDUCE_RING;

    if (n > 1)
        fastest (p, r, n, bytes, &by);
    return by;
}

void costmodel_allreduce_least (const struct workload_profile *p,
                                const struct costmodel_ring *r, int n, double *start_s,
                                double *s_per_byte)
{
    *start_s = *s_per_byte = n == 1 ? 0.0 : INFINITY;
    for (int a = ALL_REDUCE_RING; a <= ALL_REDUCE_NVLS_TREE && n > 1; a++)
        if (allowed ((enum workload_all_reduce) a, p, r, n)) {
            struct cost c = cost_of ((enum workload_all_reduce) a, p, r, n);

            *start_s = fmin (*start_s, c.start_s);
            *s_per_byte = fmin (*s_per_byte, c.s_per_byte);
        }
}

/* One reduce-scatter or all-gather: half a ring's all-reduce. */
static struct cost half_cost (const struct workload_profile *p,
                              const struct costmodel_ring *r, int n)
{
    return (struct cost){p->time.collective_s + r->latency_s,
                         (n - 1.0) / n / (costmodel_ring_rate (r) * p->time.link)};
}

double costmodel_half_allreduce_s (const struct workload_profile *p,
                                   const struct costmodel_ring *r, int n, double bytes)
{
    struct cost c = half_cost (p, r, n);

    if (n == 1)
        return 0.0;
    return costmodel_ring_rate (r) > 0.0 ? c.start_s + bytes * c.s_per_byte : INFINITY;
}

/* ---- data parallelism ---- */

/* Buckets beside the first of every phase. */
static double buckets_per_byte (const struct workload_profile *p)
{
    return p->time.dp_bucket_bytes > 0 ? 1.0 / p->time.dp_bucket_bytes : 0.0;
}

double costmodel_sync_s (const struct workload_profile *p, const struct costmodel_ring *r,
                         int n, const struct costmodel_volume *v, double params)
{
    double bytes = v->dp_bytes * params, buckets;

    if (n == 1)
        return 0.0;
    if (!(costmodel_ring_rate (r) > 0.0))
        return INFINITY;
    if (!v->dp_all_reduce) {
        double start, each;

        costmodel_sync_least (p, r, n, v, &start, &each);
        return start + each * params;
    }
    buckets = v->dp_phases + bytes * buckets_per_byte (p);
    return buckets * costmodel_allreduce_s (p, r, n, bytes / buckets);
}

enum workload_all_reduce costmodel_sync_by (const struct workload_profile *p,
                                            const struct costmodel_ring *r, int n,
                                            const struct costmodel_volume *v,
                                            double params)
{
    double bytes = v->dp_bytes * params;

    return v->dp_all_reduce
               ? costmodel_allreduce_by (
                     p, r, n, bytes / (v->dp_phases + bytes * buckets_per_byte (p)))
               : ALL_REDUCE_RING;
}

void costmodel_sync_least (const struct workload_profile *p,
                           const struct costmodel_ring *r, int n,
                           const struct costmodel_volume *v, double *start_s,
                           double *s_per_param)
{
    struct cost c = half_cost (p, r, n);

    if (v->dp_all_reduce)
        costmodel_allreduce_least (p, r, n, &c.start_s, &c.s_per_byte);
    *start_s = v->dp_phases * c.start_s;
    *s_per_param = v->dp_bytes * (c.s_per_byte + c.start_s * buckets_per_byte (p));
}
