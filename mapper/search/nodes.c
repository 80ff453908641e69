/* Which nodes a search may use, and which it must. */
#include <stdlib.h>

#include "mapper/search/search.h"

/* Nodes that must hold ranks: among those allowed, no more than may be used. */
static enum status pin_nodes (const struct mapper_nodes *x,
                              const struct topology_cluster *c, const bool *allowed,
                              int max_nodes, bool *pinned, struct error *err)
{
    int n = 0;

    TRY (topology_mark_nodes (c, x->pin, "--pin", true, pinned, err));
    for (int i = 0; i < c->n_nodes; i++) {
        n += pinned[i];
        if (pinned[i] && !allowed[i])
            return err_set (err, ST_USAGE, "--pin: --only or --exclude rules out node %s",
                            c->node[i].name);
    }
    if (n == 0)
        return err_set (err, ST_USAGE, "--pin %s: all these nodes are drained", x->pin);
    if (max_nodes > 0 && n > max_nodes)
        return err_set (
            err, ST_USAGE,
            "--pin: %d nodes are pinned, but --nodes or --spares allow only %d", n,
            max_nodes);
    return ST_OK;
}

/* How many nodes are left to use, at most so many of them. */
static enum status count_nodes (const struct mapper_nodes *x,
                                const struct topology_cluster *c, const bool *allowed,
                                int *max_nodes, struct error *err)
{
    int n = 0;

    for (int i = 0; i < c->n_nodes; i++)
        n += allowed[i];
    if (n == 0)
        return err_set (
            err, ST_NOFIT,
            "%s has no node left to use: shorten --exclude, name other nodes in --only, "
            "or put drained ones back (linkwise cluster drain --undrain)",
            c->name);
    if (x->nodes > c->n_nodes)
        return err_set (err, ST_USAGE,
                        "--nodes %d: the cluster %s has %d: ask for that many or fewer",
                        x->nodes, c->name, c->n_nodes);
    if (x->spares >= n && x->spares > 0)
        return err_set (err, ST_USAGE,
                        "--spares %d: only %d nodes can be used, and at least one must "
                        "stay in use",
                        x->spares, n);
    *max_nodes = x->nodes;
    if (x->spares > 0 && (*max_nodes == 0 || *max_nodes > n - x->spares))
        *max_nodes = n - x->spares;
    return ST_OK;
}

enum status mapper_choose_nodes (const struct mapper_nodes *x, struct mapper_problem *p,
                                 bool **marks, struct error *err)
{
    const struct topology_cluster *c = p->cluster;
    bool *allowed = calloc (2 * (size_t) c->n_nodes, sizeof *allowed), *pinned;

    if (!(*marks = allowed))
        return err_nomem (err);
    pinned = allowed + c->n_nodes;
    for (int i = 0; i < c->n_nodes; i++)
        allowed[i] = !x->only && !c->node[i].drained;
    if (x->only)
        TRY (topology_mark_nodes (c, x->only, "--only", true, allowed, err));
    if (x->exclude)
        TRY (topology_mark_nodes (c, x->exclude, "--exclude", false, allowed, err));
    TRY (count_nodes (x, c, allowed, &p->max_nodes, err));
    if (x->pin)
        TRY (pin_nodes (x, c, allowed, p->max_nodes, pinned, err));
    p->node_allowed = allowed;
    p->node_pinned = x->pin ? pinned : NULL;
    return ST_OK;
}
