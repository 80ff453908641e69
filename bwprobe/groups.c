#include "bwprobe/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/order.h"

const char *groups_name (int kind)
{
    static const char *const name[GROUPS_KINDS] = {"pp", "dp", "expert dp",
                                                   "cp", "tp", "ep"};

    return name[kind];
}

/* ---- the plan ---- */

enum { RANKS_MAX = 1 << 20 };

struct degrees {
    int tp, pp, dp, cp, ep, etp, vpp;
};

static enum status read_degrees (const struct json_at *plan, struct degrees *d,
                                 struct error *err)
{
    const struct {
        const char *key;
        int *to;
    } all[] = {{"tp", &d->tp}, {"pp", &d->pp},   {"dp", &d->dp},  {"cp", &d->cp},
               {"ep", &d->ep}, {"etp", &d->etp}, {"vpp", &d->vpp}};
    struct json_at at = json_key (plan, "degrees");

    TRY (json_want_object (&at, err));
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        *all[k].to = strcmp (all[k].key, "etp") == 0 ? d->tp : 1;
        TRY_MEMBER (json_get_int, &at, all[k].key, 1, RANKS_MAX, all[k].to, err);
    }

    long long dense = (long long) d->tp * d->cp * d->dp;

    if (dense > RANKS_MAX || dense * d->pp > RANKS_MAX)
        return json_fail_text (&at, err, "more than %d ranks", RANKS_MAX);
    return dense % ((long long) d->etp * d->ep) == 0
               ? ST_OK
               : json_fail_text (&at, err,
                                 "etp %d times ep %d does not divide the %lld ranks of a "
                                 "stage",
                                 d->etp, d->ep, dense);
}

/* Rank = tp_i + tp (cp_i + cp (dp_i + dp pp_i)); experts stand etp apart. */
static void size_groups (struct groups *g, const struct degrees *d)
{
    int dense = d->tp * d->cp * d->dp, experts = d->etp * d->ep;
    const struct groups_part part[GROUPS_KINDS] = {
        [GROUPS_PP] = {.size = d->pp, .stride = dense},
        [GROUPS_DP] = {.size = d->cp * d->dp, .stride = d->tp},
        [GROUPS_EP] = {.size = d->ep, .stride = d->etp},
        [GROUPS_EXPERT_DP] = {.size = d->ep > 1 ? dense / experts : 1, .stride = experts},
        [GROUPS_CP] = {.size = d->cp, .stride = d->tp},
        [GROUPS_TP] = {.size = d->tp, .stride = 1}};

    memcpy (g->part, part, sizeof part);
    g->ranks = dense * d->pp;
}

static enum status read_rank (struct groups *g, const struct json_at *at, char *taken,
                              struct error *err)
{
    struct json_at node = json_key (at, "node"), gpu = json_key (at, "gpu");
    const char *name;
    int rank, index, host;

    TRY (json_get_int (at, "rank", 0, g->ranks - 1, &rank, err));
    TRY (json_want_string (&node, &name, err));
    TRY (json_get_int (at, "gpu", 0, TOPOLOGY_NODE_GPUS_MAX - 1, &index, err));
    host = topology_node_of_host (g->cluster, name);
    if (host < 0)
        return json_fail (&node, err, "a node of the plan's cluster");
    if (g->gpu[rank] >= 0)
        return json_fail_text (at, err, "rank %d is placed twice", rank);
    g->gpu[rank] = topology_gpu_find (g->cluster, host, index);
    if (g->gpu[rank] < 0)
        return json_fail (&gpu, err, "a GPU of %s that is not drained",
                          g->cluster->node[host].name);
    return taken[g->gpu[rank]]++ ? json_fail_text (at, err, "two ranks on one GPU")
                                 : ST_OK;
}

static enum status read_ranks (struct groups *g, const struct json_at *plan,
                               struct error *err)
{
    struct json_at list = json_key (plan, "ranks");
    char *taken = calloc ((size_t) g->cluster->n_gpus + 1, 1);
    size_t n = 0;
    enum status st = json_want_array (&list, &n, err);

    g->gpu = malloc ((size_t) g->ranks * sizeof *g->gpu);
    if (st == ST_OK && (!taken || !g->gpu))
        st = err_nomem (err);
    if (st == ST_OK && n != (size_t) g->ranks)
        st = json_fail_text (
            &list, err, "expected %d ranks, as the degrees say, found %zu", g->ranks, n);
    for (int r = 0; r < g->ranks && st == ST_OK; r++)
        g->gpu[r] = -1;
    for (size_t i = 0; i < n && st == ST_OK; i++) {
        struct json_at at = json_entry (&list, i);

        st = read_rank (g, &at, taken, err);
    }
    free (taken);
    return st;
}

/* What one message of the plan holds: activations of a micro-batch (2 bytes each) between two
 * stages, and a rank's part of its stage's gradients around a ring.  They set how much is sent at
 * a time, no more. */
static void size_messages (struct groups *g, const struct json_at *plan,
                           const struct degrees *d)
{
    const json_t *stages =
        json_object_get (json_object_get (plan->v, "memory"), "per_stage");
    double seq = json_member_number (json_object_get (plan->v, "job"), "seq"),
           hidden =
               json_member_number (json_object_get (plan->v, "model"), "hidden_size"),
           micro = json_member_number (plan->v, "micro_batch"),
           gradients = json_member_number (json_array_get (stages, 0), "gradients_bytes");
    bool parted = json_is_true (json_object_get (plan->v, "sequence_parallel"));
    double tokens = 2 * seq * hidden * micro / d->cp, part = tokens / d->tp;

    g->part[GROUPS_PP].bytes = parted ? part : tokens;
    g->part[GROUPS_CP].bytes = g->part[GROUPS_TP].bytes = part;
    g->part[GROUPS_EP].bytes = part / d->ep;
    g->part[GROUPS_DP].bytes = gradients / g->part[GROUPS_DP].size;
    g->part[GROUPS_EXPERT_DP].bytes = gradients / g->part[GROUPS_EXPERT_DP].size;
}

static enum status read_plan (struct groups *g, json_t *doc, const char *path,
                              struct error *err)
{
    struct json_at plan = json_root (doc, path), cluster = json_key (&plan, "cluster");
    struct degrees d;
    const char *schedule;

    TRY (json_want_object (&plan, err));
    TRY (read_degrees (&plan, &d, err));
    TRY (json_get_string (&plan, "schedule", &schedule, err));
    TRY (json_want_object (&cluster, err));
    if (!json_has (&cluster, "nodes"))
        return json_fail_text (&cluster, err,
                               "it only refers to its file: take the plan.json that "
                               "linkwise emit writes, which holds it");
    TRY (topology_cluster_from_json (cluster.v, path, NULL, &g->cluster, NULL, err));
    size_groups (g, &d);
    size_messages (g, &plan, &d);
    g->closed = d.vpp > 1 && strcmp (schedule, "interleaved") == 0;
    return read_ranks (g, &plan, err);
}

enum status groups_read (const char *path, struct groups **out, struct error *err)
{
    struct groups *g = calloc (1, sizeof *g);
    json_t *doc = NULL;
    enum status st = g ? json_read (path, &doc, err) : err_nomem (err);

    THEN (st, read_plan (g, doc, path, err));
    json_decref (doc);
    if (st == ST_OK)
        *out = g;
    else
        groups_destroy (g);
    return st;
}

void groups_destroy (struct groups *g)
{
    if (!g)
        return;
    for (int k = 0; k < GROUPS_KINDS; k++)
        FREE_ALL (g->part[k].pair, g->part[k].first);
    topology_cluster_destroy (g->cluster);
    FREE_ALL (g->gpu, g);
}

/* ---- rounds ---- */

/* Pairs as they come, with their rounds. */
struct laying {
    const struct groups *g;
    bool inside, failed;
    struct laid {
        int round;
        struct schedule_pair pair;
    } * laid;
    int n;
    unsigned char *busy; /* [ranks] bit i: in a pair of round i */
};

static void lay (struct laying *l, int a, int b, int round)
{
    if (!l->inside && groups_node (l->g, a) == groups_node (l->g, b))
        return;
    if (array_grow (&l->laid, (size_t) l->n, sizeof *l->laid))
        l->laid[l->n++] = (struct laid){round, {a, b}};
    else
        l->failed = true;
}

/* In the first round in which both are free: of a ring's at most four pairs for a rank, one
 * meets at most six others, so eight bits are enough. */
static void lay_free (struct laying *l, int a, int b)
{
    int round = 0;

    if (!l->inside && groups_node (l->g, a) == groups_node (l->g, b))
        return;
    while ((l->busy[a] | l->busy[b]) >> round & 1)
        round++;
    l->busy[a] |= (unsigned char) (1 << round);
    l->busy[b] |= (unsigned char) (1 << round);
    lay (l, a, b, round);
}

/* member: [n], around; two members are one pair. */
static void lay_around (struct laying *l, const int *member, int n, bool closed)
{
    for (int i = 0; i + 1 < n; i++)
        lay_free (l, member[i], member[i + 1]);
    if (closed && n > 2)
        lay_free (l, member[n - 1], member[0]);
}

/* Put members of one node together, nodes in the order in which they come.
 *  @param[out] first  [nodes + 1]  @return nodes */
static int by_node (const struct groups *g, int *member, int n, int *first)
{
    int nodes = 0;

    for (int at = 0; at < n;) {
        int node = groups_node (g, member[at]);

        first[nodes++] = at++;
        for (int i = at; i < n; i++) {
            int x = member[i];

            if (groups_node (g, x) != node)
                continue;
            memmove (member + at + 1, member + at, (size_t) (i - at) * sizeof *member);
            member[at++] = x;
        }
    }
    first[nodes] = n;
    return nodes;
}

/* Each member to its like on the next node, and around inside nodes. */
static void lay_ring (struct laying *l, int *member, int n, int *first)
{
    int nodes = by_node (l->g, member, n, first);

    for (int k = 0; k < nodes; k++) {
        int next = (k + 1) % nodes, here = first[k + 1] - first[k],
            there = first[next + 1] - first[next];

        for (int i = 0; i < here && i < there && (nodes > 2 || k < next); i++)
            lay_free (l, member[first[k] + i], member[first[next] + i]);
    }
    for (int k = 0; k < nodes; k++)
        lay_around (l, member + first[k], first[k + 1] - first[k], true);
}

/* Everybody with everybody by the circle method. */
static void lay_all (struct laying *l, const int *member, int n)
{
    for (int round = 0; round < schedule_circle (n); round++)
        for (int a = 0; a < n; a++) {
            int b = schedule_partner (n, round, a);

            if (b > a)
                lay (l, member[a], member[b], round);
        }
}

/* The pairs into their part, round after round; rounds without a pair are none. */
static enum status sort_rounds (struct laying *l, struct groups_part *p,
                                struct error *err)
{
    order_by_ints (l->laid, (size_t) l->n, sizeof *l->laid, 3);
    p->pair = malloc (((size_t) l->n + 1) * sizeof *p->pair);
    p->first = malloc (((size_t) l->n + 1) * sizeof *p->first);
    if (l->failed || !p->pair || !p->first)
        return err_nomem (err);
    for (int i = 0; i < l->n; i++) {
        if (i == 0 || l->laid[i].round != l->laid[i - 1].round)
            p->first[p->rounds++] = i;
        p->pair[p->n++] = l->laid[i].pair;
    }
    p->first[p->rounds] = p->n;
    return ST_OK;
}

static enum status lay_part (struct groups *g, int kind, bool inside, int *member,
                             int *first, unsigned char *busy, struct error *err)
{
    struct groups_part *p = &g->part[kind];
    struct laying l = {.g = g, .inside = inside, .busy = busy};
    enum status st;

    memset (busy, 0, (size_t) g->ranks);
    for (int r = 0; r < g->ranks && p->size > 1; r++) {
        if (r / p->stride % p->size != 0)
            continue;
        for (int i = 0; i < p->size; i++)
            member[i] = r + i * p->stride;
        if (kind == GROUPS_EP)
            lay_all (&l, member, p->size);
        else if (kind == GROUPS_PP)
            lay_around (&l, member, p->size, g->closed);
        else
            lay_ring (&l, member, p->size, first);
    }
    st = sort_rounds (&l, p, err);
    free (l.laid);
    return st;
}

enum status groups_lay (struct groups *g, bool inside, struct error *err)
{
    size_t n = (size_t) g->ranks + 1;
    int *member = malloc (n * sizeof *member), *first = malloc (n * sizeof *first);
    unsigned char *busy = malloc (n);
    enum status st = member && first && busy ? ST_OK : err_nomem (err);

    for (int k = 0; k < GROUPS_KINDS && st == ST_OK; k++)
        st = lay_part (g, k, inside, member, first, busy, err);
    FREE_ALL (member, first, busy);
    return st;
}

/* ---- what the price takes ---- */

/* @param[in] out, in  flows that leave src's node and reach dst's */
static double expected (const struct groups *g, int src, int dst, int out, int in)
{
    const struct topology_cluster *c = g->cluster;
    int a = groups_node (g, src), b = groups_node (g, dst);
    double link = topology_link (c, g->gpu[src], g->gpu[dst]).bytes_per_s;

    if (a != b)
        return fmin (link, topology_share (c, a, b, out, in));
    if (!c->has_gpu_links && c->node[a].intra && c->node[a].intra->gpu_bytes_per_s > 0)
        return fmin (link, c->node[a].intra->gpu_bytes_per_s);
    return link;
}

enum status groups_expect (const struct groups *g, const struct schedule_pair *pair,
                           int n, int direction, double *bytes_per_s, struct error *err)
{
    size_t nodes = (size_t) g->cluster->n_nodes;
    int *out = calloc (2 * nodes, sizeof *out), *in = out ? out + nodes : NULL;

    if (!out)
        return err_nomem (err);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++) {
            int src = direction ? pair[i].b : pair[i].a,
                dst = direction ? pair[i].a : pair[i].b, a = groups_node (g, src),
                b = groups_node (g, dst);

            if (pass == 1)
                bytes_per_s[i] = expected (g, src, dst, out[a], in[b]);
            else if (a != b)
                out[a]++, in[b]++;
        }
    free (out);
    return ST_OK;
}

double groups_expect_alone (const struct groups *g, int src, int dst)
{
    return expected (g, src, dst, 1, 1);
}
