/* What has moved falls into groups: two nodes belong together when some rank goes from one to the
 * other.  A group's ranks end on GPUs that its own ranks left or that were idle, so every choice of
 * groups is a placement: groups that bring nothing are taken back, the others listed with their
 * gains. */
#include "mapper/replan/moves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define GREEDY_WORK 1000000L /* groups squared times ranks, priced for their gains */

struct groups_of_moves {
    int *of_node; /* [n_nodes] */
    int *gpu;     /* [world] where the ranks end */
    int n;        /* groups that have moves */
    bool *forced; /* [n] */
};

static int root (int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

static void groups_of_moves_release (struct groups_of_moves *g)
{
    FREE_ALL (g->of_node, g->gpu, g->forced);
}

static bool has_moved (const struct mover *x, const struct groups_of_moves *g, int r)
{
    return g->gpu[r] != x->home[r];
}

static int group_of_rank (const struct mover *x, const struct groups_of_moves *g, int r)
{
    return has_moved (x, g, r) ? g->of_node[x->priced.cluster->node_of_gpu[g->gpu[r]]]
                               : -1;
}

/* Join the nodes between which ranks go. */
static enum status find_groups (const struct mover *x, struct groups_of_moves *g,
                                struct error *err)
{
    const struct topology_cluster *c = x->priced.cluster;
    int *parent = malloc ((size_t) c->n_nodes * sizeof *parent);

    *g = (struct groups_of_moves){.of_node = malloc ((size_t) c->n_nodes * sizeof (int)),
                                  .gpu = malloc ((size_t) x->world * sizeof (int)),
                                  .forced = calloc ((size_t) c->n_nodes, sizeof (bool))};
    if (!parent || !g->of_node || !g->gpu || !g->forced) {
        free (parent);
        groups_of_moves_release (g);
        return err_nomem (err);
    }
    memcpy (g->gpu, mover_gpus (x), (size_t) x->world * sizeof (int));
    for (int i = 0; i < c->n_nodes; i++) {
        parent[i] = i;
        g->of_node[i] = -1;
    }
    for (int r = 0; r < x->world; r++)
        if (has_moved (x, g, r) && x->home[r] >= 0)
            parent[root (parent, c->node_of_gpu[x->home[r]])] =
                root (parent, c->node_of_gpu[g->gpu[r]]);
    for (int r = 0; r < x->world; r++) {
        int top = has_moved (x, g, r) ? root (parent, c->node_of_gpu[g->gpu[r]]) : -1;

        if (top >= 0 && g->of_node[top] < 0)
            g->of_node[top] = g->n++;
        if (top >= 0 && x->home[r] < 0)
            g->forced[g->of_node[top]] = true;
    }
    for (int i = 0; i < c->n_nodes; i++)
        g->of_node[i] = g->of_node[root (parent, i)];
    free (parent);
    return ST_OK;
}

/* Put the ranks of the groups that `made` marks where they end, the others at home.  Ranks
 * whose home is gone always end where they do. */
static void put_groups (struct mover *x, const struct groups_of_moves *g,
                        const bool *made)
{
    int *gpu = x->order;

    for (int r = 0; r < x->world; r++) {
        int group = group_of_rank (x, g, r);

        gpu[r] = group < 0 || !made[group] ? x->home[r] : g->gpu[r];
    }
    mover_put (x, gpu);
}

/* Is there time to try every group again after each that is settled? */
static bool few_groups (const struct mover *x, const struct groups_of_moves *g)
{
    return (long) g->n * g->n * x->world <= GREEDY_WORK;
}

/* The group of those made without which the step is shortest, as long as it is within
 * `most`; with many groups the first such.  -1: none */
static int least_of_groups (struct mover *x, const struct groups_of_moves *g, bool *made,
                            const bool *needed, const struct costmodel_price *most)
{
    struct costmodel_price best = *most;
    int pick = -1;

    for (int k = 0; k < g->n; k++) {
        struct costmodel_price price;

        if (!made[k] || needed[k])
            continue;
        made[k] = false;
        put_groups (x, g, made);
        price = mover_price (x);
        made[k] = true;
        if (mapper_price_less (&best, &price) || !mover_legal (x, mover_gpus (x)))
            continue;
        best = price;
        pick = k;
        if (!few_groups (x, g))
            break;
    }
    return pick;
}

enum status mover_trim_groups (struct mover *x, const struct costmodel_price *most,
                               struct error *err)
{
    struct groups_of_moves g;
    bool *made;
    int k;

    TRY (find_groups (x, &g, err));
    if (!(made = malloc (((size_t) g.n + 1) * sizeof *made))) {
        groups_of_moves_release (&g);
        return err_nomem (err);
    }
    memset (made, true, ((size_t) g.n + 1) * sizeof *made);
    while ((k = least_of_groups (x, &g, made, g.forced, most)) >= 0)
        made[k] = false;
    put_groups (x, &g, made);
    free (made);
    groups_of_moves_release (&g);
    return ST_OK;
}

static enum status fill_move (const struct mover *x, const struct groups_of_moves *g,
                              int group, struct mapper_move *m, struct error *err)
{
    const struct topology_cluster *c = x->priced.cluster;

    *m = (struct mapper_move){.rank = malloc ((size_t) x->world * sizeof (int)),
                              .node = malloc ((size_t) c->n_nodes * sizeof (int)),
                              .forced = g->forced[group]};
    if (!m->rank || !m->node)
        return err_nomem (err);
    for (int r = 0; r < x->world; r++)
        if (group_of_rank (x, g, r) == group)
            m->rank[m->n_ranks++] = r;
    for (int i = 0; i < c->n_nodes; i++)
        if (g->of_node[i] == group)
            m->node[m->n_nodes++] = i;
    return ST_OK;
}

/* The group that shortens the step most on top of those made; where there are too many to
 * try them all, simply the next. */
static int next_group (struct mover *x, const struct groups_of_moves *g, bool *made)
{
    struct costmodel_price best = {0};
    int pick = -1;

    for (int k = 0; k < g->n; k++) {
        struct costmodel_price price;

        if (made[k])
            continue;
        if (!few_groups (x, g))
            return k;
        made[k] = true;
        put_groups (x, g, made);
        price = mover_price (x);
        made[k] = false;
        if (pick < 0 || mapper_height (&price) < mapper_height (&best)) {
            pick = k;
            best = price;
        }
    }
    return pick;
}

static enum status list_groups (struct mover *x, const struct groups_of_moves *g,
                                bool *made, struct mapper_move *list, struct error *err)
{
    int n = 0;
    double before;
    enum status st = ST_OK;

    for (int k = 0; k < g->n; k++)
        made[k] = g->forced[k];
    for (int k = 0; k < g->n && st == ST_OK; k++)
        if (g->forced[k]) {
            st = fill_move (x, g, k, &list[n], err);
            list[n++].gain_s = NAN;
        }
    put_groups (x, g, made);
    before = mover_price (x).step_s;
    while (st == ST_OK && n < g->n) {
        int k = next_group (x, g, made);

        made[k] = true;
        put_groups (x, g, made);
        st = fill_move (x, g, k, &list[n], err);
        list[n++].gain_s = before - mover_price (x).step_s;
        before = mover_price (x).step_s;
    }
    return st;
}

enum status mover_list (struct mover *x, struct mapper_move **out, int *n,
                        struct error *err)
{
    struct groups_of_moves g;
    enum status st;

    TRY (find_groups (x, &g, err));

    bool *made = calloc ((size_t) g.n + 1, sizeof *made);
    struct mapper_move *list = calloc ((size_t) g.n + 1, sizeof *list);

    st = made && list ? list_groups (x, &g, made, list, err) : err_nomem (err);
    if (st == ST_OK) {
        *out = list;
        *n = g.n;
    } else {
        for (int k = 0; list && k < g.n; k++)
            FREE_ALL (list[k].rank, list[k].node);
        free (list);
    }
    free (made);
    groups_of_moves_release (&g);
    return st;
}
