/* Going through a cluster's links: each once, those that are alike together. */
#include "topology/survey/survey.h"
#include "topology/topology_private.h"

const char *topology_end_text (const struct topology_cluster *c, struct topology_end e,
                               char buf[TOPOLOGY_END_TEXT])
{
    return topology_place_text (c->node[e.node].name,
                                e.gpu < 0 ? -1 : topology_gpu_index (c, e.gpu), buf);
}

static void visit_pair (const struct topology_cluster *c, int x, int y, double alike,
                        topology_visit_fn *fn, void *context)
{
    struct topology_visited v = {{c->node_of_gpu[x], x},
                                 {c->node_of_gpu[y], y},
                                 topology_link_given (c, x, y),
                                 alike};

    fn (context, &v);
}

static void visit_inside (const struct topology_cluster *c, int i, topology_visit_fn *fn,
                          void *context)
{
    const struct topology_node *n = &c->node[i];
    double g = n->gpus;

    if (n->gpus < 2 || (!n->intra && !c->has_gpu_matrix))
        return;
    if (!c->has_gpu_matrix && topology_links_alike (n->intra)) {
        struct topology_visited v = {
            {i, -1},
            {i, -1},
            topology_link_given (c, n->first_gpu, n->first_gpu + 1),
            g * (g - 1)};

        fn (context, &v);
        return;
    }
    for (int x = n->first_gpu; x < n->first_gpu + n->gpus; x++)
        for (int y = n->first_gpu; y < n->first_gpu + n->gpus; y++)
            if (x != y)
                visit_pair (c, x, y, 1, fn, context);
}

#define TOLD_EVERY 64 /* nodes */

static void tell (const struct topology_watch *watch, int done, int all)
{
    if (watch && done % TOLD_EVERY == 0)
        watch->progress (watch->context, (double) done / all);
}

/* All GPUs of two nodes alike. */
static void visit_nodes (const struct topology_cluster *c, topology_visit_fn *fn,
                         void *context, const struct topology_watch *watch)
{
    int n = c->n_nodes;
    bool alike = topology_links_alike (&c->inter);

    for (int i = 0; i < (alike ? 1 : n); i++) {
        tell (alike ? NULL : watch, i, n);
        for (int j = 0; j < (alike ? 2 : n); j++) {
            struct topology_visited v = {
                {i, -1},
                {j, -1},
                topology_link_priced (topology_matrix_at (&c->inter.bytes_per_s, i, j),
                                      topology_matrix_at (&c->inter.latency_s, i, j),
                                      0.0),
                alike ? (double) n * (n - 1) : 1};

            if (i != j)
                fn (context, &v);
        }
    }
}

static int rail_number (const struct topology_cluster *c, int gpu)
{
    return c->n_rails > 0 ? topology_rail_of (c, gpu) : -1;
}

/* The GPUs of two nodes.  Those of different rails see one link where no exception names
 * a GPU, so that one visit is enough for them. */
static void visit_gpus (const struct topology_cluster *c, int i, int j,
                        topology_visit_fn *fn, void *context)
{
    const struct topology_node *a = &c->node[i], *b = &c->node[j];
    bool single = c->has_gpu_matrix || c->except_bytes_per_s || c->except_latency_s;
    int crossing = 0, first_x = -1, first_y = -1;

    for (int x = a->first_gpu; x < a->first_gpu + a->gpus; x++)
        for (int y = b->first_gpu; y < b->first_gpu + b->gpus; y++) {
            if (!single && rail_number (c, x) != rail_number (c, y)) {
                first_x = crossing == 0 ? x : first_x;
                first_y = crossing == 0 ? y : first_y;
                crossing++;
                continue;
            }
            visit_pair (c, x, y, 1, fn, context);
        }
    if (crossing > 0)
        visit_pair (c, first_x, first_y, crossing, fn, context);
}

void topology_links_visit (const struct topology_cluster *c, topology_visit_fn *fn,
                           void *context, const struct topology_watch *watch)
{
    for (int i = 0; i < c->n_nodes; i++)
        visit_inside (c, i, fn, context);
    if (c->n_nodes > 1 && !c->has_gpu_links && c->has_inter)
        visit_nodes (c, fn, context, watch);
    for (int i = 0; c->has_gpu_links && i < c->n_nodes; i++) {
        tell (watch, i, c->n_nodes);
        for (int j = 0; j < c->n_nodes; j++)
            if (i != j)
                visit_gpus (c, i, j, fn, context);
    }
}

double topology_visited_error (const struct topology_cluster *c,
                               const struct topology_visited *v)
{
    int src = v->from.gpu, dst = v->to.gpu;

    if (!c->has_estimates || !v->link.measured)
        return NAN;
    if (src < 0 && v->from.node != v->to.node)
        return c->inter.has_estimates ? topology_matrix_at (&c->inter.estimate_error,
                                                            v->from.node, v->to.node)
                                      : NAN;
    if (src < 0) {
        src = c->node[v->from.node].first_gpu;
        dst = src + 1;
    }
    return topology_link_estimate_error (c, src, dst);
}
