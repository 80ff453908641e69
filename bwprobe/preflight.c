#include "bwprobe/preflight.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"

/* Second looks: of the worst hops, each of them three orders at most. */
enum { LOOKS_MAX = 16 };
/* Part of the budget that is kept for them. */
#define LOOKS_SHARE 0.25

void preflight_destroy (struct preflight *p)
{
    if (!p)
        return;
    free (p->hop);
    groups_destroy (p->groups);
    FREE_ALL (p->end, p->fault, p);
}

/* ---- whose rank is whose ---- */

/* Another rank before this one on the same GPU of the same host; -1. */
static int shares_gpu (const struct coordinator *c, int rank)
{
    const struct member *m = roster_member (c->roster, rank);

    for (int r = 0; r < rank && m->opened.gpu.uuid[0]; r++) {
        const struct member *other = roster_member (c->roster, r);

        if (other->endpoint >= 0 &&
            strcmp (other->opened.gpu.uuid, m->opened.gpu.uuid) == 0)
            return r;
    }
    return -1;
}

/* Does a rank run where the plan has it? */
static enum status check_place (const struct coordinator *c, int rank, struct error *err)
{
    const struct groups *g = c->preflight->groups;
    const struct topology_node *n = &g->cluster->node[groups_node (g, rank)];
    const struct member *m = roster_member (c->roster, rank);
    const char *uuid = n->gpu_uuid ? n->gpu_uuid[g->gpu[rank] - n->first_gpu] : NULL;
    int other = shares_gpu (c, rank);

    if (topology_node_of_host (g->cluster, m->hello.node) != groups_node (g, rank))
        return err_set (
            err, ST_INVALID,
            "%s: ranks[%d]: planned on %s, but rank %d of this job runs on %s: "
            "start bwprobe as the job is started (exec.sh)",
            c->set.plan, rank, n->name, rank, m->hello.node);
    if (other >= 0)
        return err_set (
            err, ST_INVALID,
            "%s: ranks[%d]: it measures the GPU of rank %d, %s of %s: has the "
            "node a GPU for each, and does each rank see its own?",
            c->set.plan, rank, other, m->opened.gpu.uuid, n->name);
    if (uuid && m->opened.gpu.uuid[0] && strcmp (uuid, m->opened.gpu.uuid) != 0)
        return err_set (err, ST_INVALID,
                        "%s: ranks[%d]: planned on GPU %s of %s, but rank %d measures %s",
                        c->set.plan, rank, uuid, n->name, rank, m->opened.gpu.uuid);
    return ST_OK;
}

/* Endpoints get the names and numbers that the plan knows them by. */
static void name_endpoints (struct coordinator *c)
{
    struct preflight *p = c->preflight;
    const struct groups *g = p->groups;

    for (int i = 0; i < c->shape.n; i++) {
        struct endpoint *e = &c->end[i];
        int gpu = g->gpu[e->member->rank];
        const struct topology_node *n = &g->cluster->node[g->cluster->node_of_gpu[gpu]];

        e->gpu = topology_gpu_index (g->cluster, gpu);
        snprintf (c->node[e->node].name, sizeof c->node->name, "%s", n->name);
        snprintf (e->name, sizeof e->name, "%s/%d", n->name, e->gpu);
    }
    order_by_ints (c->end, (size_t) c->shape.n, sizeof *c->end, 2);
    for (int i = 0; i < c->shape.n; i++) {
        struct endpoint *e = &c->end[i];
        struct node *n = &c->node[e->node];

        e->member->endpoint = i;
        p->end[e->member->rank] = i;
        n->gpus = e->gpu < n->gpus ? n->gpus : e->gpu + 1;
    }
}

static enum status take_hops (struct preflight *p, struct error *err)
{
    const struct groups_part *part = p->groups->part;
    struct preflight_hop *next;

    for (int k = 0; k < GROUPS_KINDS; k++)
        p->hops += 2 * part[k].n;
    next = p->hop = calloc ((size_t) p->hops + 1, sizeof *p->hop);
    if (!next)
        return err_nomem (err);
    for (int k = 0; k < GROUPS_KINDS; k++) {
        p->of[k] = next;
        for (int i = 0; i < part[k].n; i++) {
            int a = part[k].pair[i].a, b = part[k].pair[i].b;

            *next++ = (struct preflight_hop){.kind = k, .src = a, .dst = b};
            *next++ = (struct preflight_hop){.kind = k, .src = b, .dst = a};
        }
    }
    return ST_OK;
}

enum status preflight_prepare (struct coordinator *c, struct error *err)
{
    struct preflight *p = calloc (1, sizeof *p);
    int size = roster_size (c->roster);
    bool inside = strcmp (c->transport->name, "socket") != 0;

    c->preflight = p;
    if (!p)
        return err_nomem (err);
    TRY (groups_read (c->set.plan, &p->groups, err));
    if (p->groups->ranks != size)
        return err_set (err, ST_INVALID,
                        "%s: a plan of %d ranks, found %d ranks in this job", c->set.plan,
                        p->groups->ranks, size);
    for (int r = 0; r < size; r++)
        if (roster_member (c->roster, r)->endpoint >= 0)
            TRY (check_place (c, r, err));
    p->end = malloc ((size_t) size * sizeof *p->end);
    if (!p->end)
        return err_nomem (err);
    for (int r = 0; r < size; r++)
        p->end[r] = -1;
    name_endpoints (c);
    /* Inside a node host memory says nothing of GPUs' links. */
    TRY (groups_lay (p->groups, inside, err));
    TRY (take_hops (p, err));
    c->timing = passes_timing (c);
    for (int k = 0; k < GROUPS_KINDS; k++)
        c->rounds_all += p->groups->part[k].rounds;
    c->plan.seconds = (double) c->rounds_all * c->timing.together_s;
    return p->hops > 0 ? ST_OK
                       : err_set (err, ST_NOFIT,
                                  "%s: no group of it has ranks %s: nothing to measure",
                                  c->set.plan, inside ? "that talk" : "on several nodes");
}

/* ---- all at once ---- */

static bool is_there (const struct coordinator *c, int rank)
{
    int end = c->preflight->end[rank];

    return end >= 0 && coordinator_alive (c, end);
}

static enum status expect_round (struct preflight *p, int kind, int from, int n,
                                 struct error *err)
{
    double *rate = malloc (((size_t) n + 1) * sizeof *rate);
    enum status st = rate ? ST_OK : err_nomem (err);

    for (int d = 0; d < 2 && st == ST_OK; d++) {
        st =
            groups_expect (p->groups, p->groups->part[kind].pair + from, n, d, rate, err);
        for (int i = 0; i < n && st == ST_OK; i++)
            p->of[kind][2 * (from + i) + d].expected = rate[i];
    }
    free (rate);
    return st;
}

/* Pairs whose ranks are not there are tried too, and reach nothing. */
static enum status measure_round (struct coordinator *c, int kind, int round,
                                  struct error *err)
{
    struct preflight *p = c->preflight;
    const struct groups_part *part = &p->groups->part[kind];
    int from = part->first[round], n = part->first[round + 1] - from, k = 0;
    struct schedule_pair *pair = malloc (((size_t) n + 1) * sizeof *pair);
    struct round_value *value = malloc (((size_t) n + 1) * sizeof *value);
    struct round r = {.kind = SCHEDULE_TOGETHER,
                      .together = true,
                      .pair = pair,
                      .bytes = (uint64_t) fmin (fmax (part->bytes, 0), 1e15)};
    enum status st =
        pair && value ? expect_round (p, kind, from, n, err) : err_nomem (err);

    for (int i = 0; i < n && st == ST_OK; i++) {
        int a = part->pair[from + i].a, b = part->pair[from + i].b;

        if (is_there (c, a) && is_there (c, b))
            pair[k++] = (struct schedule_pair){p->end[a], p->end[b]};
    }
    r.n = k;
    if (st == ST_OK)
        c->timing.together_s =
            fmax (0.5 * c->timing.together_s, round_run (c, &r, value));
    k = 0;
    for (int i = 0; i < n && st == ST_OK; i++) {
        const struct schedule_pair *x = &part->pair[from + i];
        bool ran = k < r.n && p->end[x->a] == pair[k].a && p->end[x->b] == pair[k].b;

        for (int d = 0; d < 2; d++) {
            struct preflight_hop *hop = &p->of[kind][2 * (from + i) + d];

            hop->tried = true;
            hop->got = fmax (hop->got, ran ? value[k].bytes_per_s[d] : NAN);
        }
        k += ran;
    }
    FREE_ALL (pair, value);
    return st;
}

/* Does a round have to be measured again? */
static bool falls_short (const struct preflight *p, int kind, int round)
{
    const int *first = p->groups->part[kind].first + round;

    for (int i = 2 * first[0]; i < 2 * first[1]; i++)
        if (preflight_falls_short (&p->of[kind][i]))
            return true;
    return false;
}

static enum status run_pass (struct coordinator *c, int pass, double until,
                             struct error *err)
{
    struct preflight *p = c->preflight;

    for (int k = 0; k < GROUPS_KINDS; k++) {
        snprintf (c->doing, sizeof c->doing, "pass %d, groups of %s", pass + 1,
                  groups_name (k));
        for (int r = 0; r < p->groups->part[k].rounds && !c->interrupted; r++) {
            if (pass > 0 && !falls_short (p, k, r))
                continue;
            if (coordinator_elapsed (c) + c->timing.together_s > until)
                return ST_OK;
            coordinator_show (c);
            TRY (measure_round (c, k, r, err));
            c->rounds_done += pass == 0;
        }
    }
    return ST_OK;
}

/* ---- a second look ---- */

/* A rank on a third node, with the fewest hops that fall short; -1: there is none.
 * @param[in] short_at  [ranks] how many do */
static int other_rank (const struct coordinator *c, const struct preflight_hop *h,
                       const int *short_at)
{
    const struct groups *g = c->preflight->groups;
    int best = -1;

    for (int r = 0; r < g->ranks; r++)
        if (is_there (c, r) && groups_node (g, r) != groups_node (g, h->src) &&
            groups_node (g, r) != groups_node (g, h->dst) &&
            (best < 0 || short_at[r] < short_at[best]))
            best = r;
    return best;
}

/* @param[out] rate  bytes/s of src -> dst alone, over a new connection; NaN */
static bool does_well (struct coordinator *c, int src, int dst, double *rate)
{
    const int *end = c->preflight->end;

    *rate = is_there (c, src) && is_there (c, dst) ? round_again (c, end[src], end[dst])
                                                   : NAN;
    return *rate >= PREFLIGHT_PART * groups_expect_alone (c->preflight->groups, src, dst);
}

static void look_again (struct coordinator *c, struct preflight_hop *h,
                        const int *short_at)
{
    int other = other_rank (c, h, short_at);
    bool source_fine, destination_fine;
    double rate;

    h->looked = true;
    h->verdict = VERDICT_MOMENT;
    if (does_well (c, h->src, h->dst, &h->alone))
        return;
    h->verdict = VERDICT_LINK;
    if (other < 0)
        return;
    source_fine = does_well (c, h->src, other, &rate);
    destination_fine = does_well (c, other, h->dst, &rate);
    h->verdict = results_verdict_of (source_fine, destination_fine);
}

/* The worst hop between nodes that nobody looked at again, one of each pair of ranks. */
static struct preflight_hop *next_to_look (const struct coordinator *c)
{
    const struct preflight *p = c->preflight;
    struct preflight_hop *worst = NULL;

    for (struct preflight_hop *h = p->hop; h < p->hop + p->hops; h++)
        if (!h->looked && preflight_falls_short (h) && is_there (c, h->src) &&
            is_there (c, h->dst) &&
            groups_node (p->groups, h->src) != groups_node (p->groups, h->dst) &&
            (!worst || h->got * worst->expected < worst->got * h->expected))
            worst = h;
    return worst;
}

static enum status second_looks (struct coordinator *c, struct error *err)
{
    struct preflight *p = c->preflight;
    int *short_at = calloc ((size_t) p->groups->ranks, sizeof *short_at);
    struct preflight_hop *h;

    if (!short_at)
        return err_nomem (err);
    snprintf (c->doing, sizeof c->doing, "looking again at what falls short");
    for (h = p->hop; h < p->hop + p->hops; h++)
        if (preflight_falls_short (h)) {
            short_at[h->src]++;
            short_at[h->dst]++;
        }
    for (int i = 0; i < LOOKS_MAX && (h = next_to_look (c)) && !c->interrupted &&
                    coordinator_elapsed (c) + 3 * c->timing.alone_s < c->set.budget_s;
         i++) {
        coordinator_show (c);
        look_again (c, h, short_at);
    }
    free (short_at);
    return ST_OK;
}

/* ---- what is at fault ---- */

/* How much of a hop's shortness is put down to the node of one of its ends. */
static double blame (const struct coordinator *c, const struct preflight_hop *h,
                     bool source)
{
    double part = 1 - h->got / h->expected;
    int rank = source ? h->src : h->dst, other = source ? h->dst : h->src;

    if (is_there (c, rank) != is_there (c, other))
        return is_there (c, rank) ? 0 : part;
    switch (h->verdict) {
    case VERDICT_SOURCE:
        return source ? part : 0;
    case VERDICT_DESTINATION:
        return source ? 0 : part;
    case VERDICT_BOTH:
        return part;
    default:
        return 0.5 * part;
    }
}

static bool is_named (const struct preflight *p, int node)
{
    for (int i = 0; i < p->n_faults; i++)
        if (p->fault[i].node == node)
            return true;
    return false;
}

/* The rank of a node that all its hops that fall short have in common, where one of its others' is
 * as it should be; -1. */
static int only_rank (const struct preflight *p, int node)
{
    const struct groups *g = p->groups;
    int only = -1, found = 0;

    for (int r = 0; r < g->ranks; r++) {
        bool any = false, all = groups_node (g, r) == node, others_fine = false;

        for (const struct preflight_hop *h = p->hop; all && h < p->hop + p->hops; h++) {
            bool falls_short = preflight_falls_short (h), on = h->src == r || h->dst == r;

            if (groups_node (g, h->src) != node && groups_node (g, h->dst) != node)
                continue;
            any |= falls_short;
            all = on || !falls_short;
            others_fine |= !on && h->tried && !falls_short;
        }
        if (any && all) {
            found++;
            only = others_fine ? r : -1;
        }
    }
    return found == 1 ? only : -1;
}

/* The node to which most is put down; -1 when nothing is left.  @param weight [n_nodes] */
static int worst_node (const struct coordinator *c, double *weight)
{
    const struct preflight *p = c->preflight;
    int nodes = p->groups->cluster->n_nodes, worst = 0;

    for (int i = 0; i < nodes; i++)
        weight[i] = 0;
    /* What falls short, and no node named so far explains. */
    for (const struct preflight_hop *h = p->hop; h < p->hop + p->hops; h++) {
        int src = groups_node (p->groups, h->src), dst = groups_node (p->groups, h->dst);

        if (preflight_falls_short (h) && !is_named (p, src) && !is_named (p, dst)) {
            weight[src] += blame (c, h, true);
            weight[dst] += blame (c, h, false);
        }
    }
    for (int i = 1; i < nodes; i++)
        if (weight[i] > weight[worst])
            worst = i;
    return weight[worst] > 0 ? worst : -1;
}

static enum status find_faults (struct coordinator *c, struct error *err)
{
    struct preflight *p = c->preflight;
    int nodes = p->groups->cluster->n_nodes, node;
    double *weight = malloc ((size_t) nodes * sizeof *weight);

    p->fault = malloc ((size_t) nodes * sizeof *p->fault);
    if (!weight || !p->fault) {
        free (weight);
        return err_nomem (err);
    }
    for (long i = 0; i < p->hops; i++) {
        p->tried += p->hop[i].tried;
        p->below += preflight_falls_short (&p->hop[i]);
    }
    while ((node = worst_node (c, weight)) >= 0)
        p->fault[p->n_faults++] = (struct preflight_fault){node, only_rank (p, node)};
    free (weight);
    return ST_OK;
}

enum status preflight_run (struct coordinator *c, struct error *err)
{
    struct preflight *p = c->preflight;
    const struct groups *g = p->groups;
    int used = topology_nodes_under (g->cluster, g->gpu, g->ranks);

    for (int pass = 0; pass < c->set.passes && !c->interrupted; pass++) {
        TRY (run_pass (c, pass, (1 - LOOKS_SHARE) * c->set.budget_s, err));
        c->passes_done++;
    }
    if (!c->interrupted)
        TRY (second_looks (c, err));
    TRY (find_faults (c, err));
    /* Nearly all hops, of most nodes: the expectation is wrong, not the nodes. */
    p->mostly = 2 * p->n_faults >= used && 10 * p->below >= 9 * p->tried && used > 2;
    if (p->mostly)
        p->n_faults = 0;
    return ST_OK;
}
