/* Which nodes a search may use, and which it must. */
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
            return err_set (err, ST_USAGE,
                            "--pin: %s is left out by --only or --exclude: leave it out "
                            "of one of the two",
                            c->node[i].name);
    }
    if (n == 0)
        return err_set (err, ST_USAGE, "--pin %s: all of them are drained", x->pin);
    if (max_nodes > 0 && n > max_nodes)
        return err_set (err, ST_USAGE,
                        "--pin: %d nodes are pinned, and --nodes or --spares leave %d", n,
                        max_nodes);
    return ST_OK;
}

enum status mapper_choose_nodes (const struct mapper_nodes *x,
                                 const struct topology_cluster *c, bool *allowed,
                                 bool *pinned, int *max_nodes, struct error *err)
{
    int n = 0;

    for (int i = 0; i < c->n_nodes; i++)
        allowed[i] = !x->only && !c->node[i].drained;
    if (x->only)
        TRY (topology_mark_nodes (c, x->only, "--only", true, allowed, err));
    if (x->exclude)
        TRY (topology_mark_nodes (c, x->exclude, "--exclude", false, allowed, err));
    for (int i = 0; i < c->n_nodes; i++)
        n += allowed[i];
    if (n == 0)
        return err_set (
            err, ST_NOFIT,
            "no node of %s is left to use: shorten --exclude, name other nodes "
            "in --only, or put drained ones back (linkwise cluster drain "
            "--undrain)",
            c->name);
    if (x->nodes > c->n_nodes)
        return err_set (err, ST_USAGE,
                        "--nodes %d: the cluster %s has %d: ask for that "
                        "many or fewer",
                        x->nodes, c->name, c->n_nodes);
    if (x->spares >= n && x->spares > 0)
        return err_set (err, ST_USAGE,
                        "--spares %d: only %d nodes can be used, and one at "
                        "least must be",
                        x->spares, n);
    *max_nodes = x->nodes;
    if (x->spares > 0 && (*max_nodes == 0 || *max_nodes > n - x->spares))
        *max_nodes = n - x->spares;
    return x->pin ? pin_nodes (x, c, allowed, *max_nodes, pinned, err) : ST_OK;
}
