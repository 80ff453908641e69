/* What the formats share: links as they are visited, and as rates between nodes. */
#include <stdlib.h>
#include <string.h>

#include "topology/export/export_private.h"

struct spreading {
    const struct topology_cluster *c;
    topology_visit_fn *fn;
    void *context;
};

/* One number for all nodes is visited once. */
static void spread (void *context, const struct topology_visited *v)
{
    const struct spreading *s = context;
    struct topology_visited one = *v;

    if (v->from.gpu >= 0 || v->from.node == v->to.node || v->alike <= 1) {
        s->fn (s->context, v);
        return;
    }
    one.alike = 1;
    for (one.from.node = 0; one.from.node < s->c->n_nodes; one.from.node++)
        for (one.to.node = 0; one.to.node < s->c->n_nodes; one.to.node++)
            if (one.from.node != one.to.node)
                s->fn (s->context, &one);
}

void export_visit (const struct exporting *x, topology_visit_fn *fn, void *context)
{
    struct spreading s = {x->c, fn, context};

    topology_links_visit (x->c, spread, &s, x->watch);
}

const char *export_known (const struct topology_cluster *c,
                          const struct topology_visited *v)
{
    const struct topology_links *l = c->has_gpu_matrix ? &c->gpu_links
                                     : v->from.node != v->to.node
                                         ? &c->inter
                                         : c->node[v->from.node].intra;

    if (!v->link.measured)
        return "unmeasured";
    if (!isnan (topology_visited_error (c, v)))
        return "estimated";
    return l && l->nominal ? "nominal" : "measured";
}

struct summing {
    int n;
    double *bytes_per_s, *latency_s, *links;
};

static void sum (void *context, const struct topology_visited *v)
{
    const struct summing *s = context;
    size_t at = (size_t) v->from.node * (size_t) s->n + (size_t) v->to.node;

    if (v->from.node == v->to.node || !v->link.measured)
        return;
    s->bytes_per_s[at] += v->alike * v->link.bytes_per_s;
    s->latency_s[at] += v->alike * v->link.latency_s;
    s->links[at] += v->alike;
}

enum status export_nodes (const struct exporting *x, double **bytes_per_s,
                          double **latency_s, struct error *err)
{
    size_t all = (size_t) x->c->n_nodes * (size_t) x->c->n_nodes;
    struct summing s = {x->c->n_nodes, calloc (all, sizeof *s.links),
                        calloc (all, sizeof *s.links), calloc (all, sizeof *s.links)};
    bool done = s.bytes_per_s && s.latency_s && s.links;

    if (done)
        export_visit (x, sum, &s);
    for (size_t k = 0; done && k < all; k++) {
        s.bytes_per_s[k] = s.links[k] > 0 ? s.bytes_per_s[k] / s.links[k] : NAN;
        s.latency_s[k] = s.links[k] > 0 ? s.latency_s[k] / s.links[k] : NAN;
    }
    free (s.links);
    if (done)
        *bytes_per_s = s.bytes_per_s;
    else
        free (s.bytes_per_s);
    if (done && latency_s)
        *latency_s = s.latency_s;
    else
        free (s.latency_s);
    return done ? ST_OK : err_nomem (err);
}

void export_add_escaped (struct text *t, const char *s)
{
    for (; *s; s++)
        if (*s == '\n')
            text_add (t, "\\n");
        else
            text_add (t, "%s%c", strchr ("\\\"", *s) ? "\\" : "", *s);
}
