/* Which nodes a search may use, and which it must. */
#include "mapper/search/search.h"

/* Nodes that must hold ranks: among those allowed, no more than may be used. */
static enum status pin_nodes (const struct mapper_nodes *x,
                              const struct topology_cluster *c, const bool *allowed,
                              int max_nodes, bool *pinned, struct error *err)
{
    enum status st = topology_mark_nodes (c, x->pin, "--pin", true, pinned, err);
    int n = 0;

    for (int i = 0; i < c->n_nodes && st == ST_OK; i++) {
        n += pinned[i];
        if (pinned[i] && !allowed[i])
            st = err_set (err, ST_USAGE,
                          "--pin: --only or --exclude rules out node %s",
                          c->node[i].name);
    }
    if (st == ST_OK && n == 0)
        st = err_set (err, ST_USAGE, "--pin %s: all these nodes are drained", x->pin);
    if (st == ST_OK && max_nodes > 0 && n > max_nodes)
        st = err_set (err, ST_USAGE,
                      "--pin: %d nodes are pinned, but --nodes or --spares allow only "
                      "%d", n,
                      max_nodes);
    return st;
}

enum status mapper_choose_nodes (const struct mapper_nodes *x,
                                 const struct topology_cluster *c, bool *allowed,
                                 bool *pinned, int *max_nodes, struct error *err)
{
    enum status st = ST_OK;
    int n = 0;

    for (int i = 0; i < c->n_nodes; i++)
        allowed[i] = !x->only && !c->node[i].drained;
    if (x->only)
        st = topology_mark_nodes (c, x->only, "--only", true, allowed, err);
    if (st == ST_OK && x->exclude)
        st = topology_mark_nodes (c, x->exclude, "--exclude", false, allowed, err);
    if (st != ST_OK)
        return st;
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
                        "--nodes %d: the cluster %s has %d: ask for that "
                        "many or fewer",
                        x->nodes, c->name, c->n_nodes);
    if (x->spares >= n && x->spares > 0)
        return err_set (err, ST_USAGE,
                        "--spares %d: only %d nodes can be used, and at least one must "
                        "stay in use",
                        x->spares, n);
    *max_nodes = x->nodes;
    if (x->spares > 0 && (*max_nodes == 0 || *max_nodes > n - x->spares))
        *max_nodes = n - x->spares;
    return x->pin ? pin_nodes (x, c, allowed, *max_nodes, pinned, err) : ST_OK;
}
