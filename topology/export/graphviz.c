/* Drawings for GraphViz: the nodes with their links, or one node's GPUs, NUMA nodes and NICs. */
#include <stdlib.h>

#include "base/json.h"
#include "base/units.h"
#include "topology/export/export_private.h"

#define NODES_DRAWN 32 /* with the links of all pairs */

static void quote (struct text *t, const char *s)
{
    text_add (t, "\"");
    export_add_escaped (t, s);
    text_add (t, "\"");
}

/* A link both ways: dashed where a direction is unmeasured, thin where it is slow. */
static void edge (struct text *t, const char *from, const char *to, double there,
                  double back, double median)
{
    double low = there < back ? there : back;
    bool known = there > 0 && back > 0;

    text_add (t, "    \"%s\" -- \"%s\" [label=\"", from, to);
    if (!known)
        text_add (t, "unmeasured\", style=dashed];\n");
    else if (there == back)
        text_add (t, "%.4g\", penwidth=%.2f];\n", there / UNITS_GB, 3 * low / median);
    else
        text_add (t, "%.4g / %.4g\", penwidth=%.2f];\n", there / UNITS_GB,
                  back / UNITS_GB, 3 * low / median);
}

static void begin (const struct exporting *x, const char *name, const char *what)
{
    text_add (x->file, "graph ");
    quote (x->file, name);
    text_add (x->file,
              " {\n    label=\"%s: GB/s there / back\";\n    node [shape=box];\n", what);
}

/* ---- the cluster ---- */

static enum status cluster (const struct exporting *x, struct error *err)
{
    const struct topology_cluster *c = x->c;
    size_t n = (size_t) c->n_nodes;
    bool all = c->n_nodes <= NODES_DRAWN;
    struct topology_stats s;
    double *bw = NULL;
    enum status st;

    TRY (topology_stats_collect (c, 0, x->watch, &s, err));
    st = export_nodes (x, &bw, NULL, err);
    begin (x, x->title,
           all ? "one GPU pair alone"
               : "links under 80 % of the median, one GPU pair alone");
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        const struct topology_node *node = &c->node[i];

        text_add (x->file, "    \"%s\" [label=\"%s\\n%d x ", node->name, node->name,
                  node->gpus_listed);
        export_add_escaped (x->file, node->type ? node->type->name : "GPU");
        text_add (x->file, "%s\"%s];\n", node->drained ? "\\ndrained" : "",
                  node->drained ? ", style=dotted" : "");
    }
    for (size_t i = 0; st == ST_OK && i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            double there = bw[i * n + j], back = bw[j * n + i];

            if (all || fmin (there, back) < TOPOLOGY_SLOW * s.between_median_bytes_per_s)
                edge (x->file, c->node[i].name, c->node[j].name, there, back,
                      s.between_median_bytes_per_s);
        }
    text_add (x->file, "}\n");
    free (bw);
    topology_stats_release (&s);
    return st;
}

/* ---- a node ---- */

static void add_gpu (const struct exporting *x, const struct topology_node *n, int k)
{
    int number = topology_gpu_index (x->c, n->first_gpu + k);
    bool numa = n->gpu_numa && n->gpu_numa[k] >= 0;

    /* Subgraphs of one name are one. */
    if (numa)
        text_add (x->file, "    subgraph cluster_numa%d { label=\"NUMA %d\"; ",
                  n->gpu_numa[k], n->gpu_numa[k]);
    text_add (x->file, "%s\"GPU %d\";%s\n", numa ? "" : "    ", number, numa ? " }" : "");
    if (!n->gpu_nic)
        return;
    text_add (x->file, "    \"GPU %d\" -- ", number);
    quote (x->file, n->gpu_nic[k]);
    text_add (x->file, ";\n");
}

static void add_nics (const struct exporting *x, int node)
{
    const json_t *list = json_object_get (
                     json_array_get (json_object_get (x->c->doc, "nodes"), (size_t) node),
                     "nics"),
                 *nic;
    size_t k;

    json_array_foreach (list, k, nic)
    {
        const char *name = json_member_text (nic, "name");
        const json_t *rate = json_object_get (nic, "gb_per_s");

        if (!name)
            continue;
        text_add (x->file, "    ");
        quote (x->file, name);
        text_add (x->file, " [shape=ellipse, label=\"");
        export_add_escaped (x->file, name);
        if (json_is_number (rate))
            text_add (x->file, "\\n%.4g GB/s", json_number_value (rate));
        text_add (x->file, "\"];\n");
    }
}

static double rate (const struct topology_cluster *c, int from, int to)
{
    struct topology_link l = topology_link (c, from, to);

    return l.measured ? l.bytes_per_s : 0;
}

static enum status one_node (const struct exporting *x, struct error *err)
{
    int i = topology_node_find (x->c, x->node);
    const struct topology_node *n = i >= 0 ? &x->c->node[i] : NULL;
    double best = 0;

    if (!n)
        return err_set (err, ST_USAGE, "--node: the cluster has no node \"%s\"", x->node);
    begin (x, n->name, n->name);
    add_nics (x, i);
    for (int k = 0; k < n->gpus; k++)
        add_gpu (x, n, k);
    for (int pass = 0; pass < 2; pass++) /* the fastest first: widths are shares of it */
        for (int a = n->first_gpu; a < n->first_gpu + n->gpus; a++)
            for (int b = a + 1; b < n->first_gpu + n->gpus; b++) {
                double there = rate (x->c, a, b), back = rate (x->c, b, a);
                char from[32], to[32];

                best = fmax (best, fmax (there, back));
                snprintf (from, sizeof from, "GPU %d", topology_gpu_index (x->c, a));
                snprintf (to, sizeof to, "GPU %d", topology_gpu_index (x->c, b));
                if (pass == 1)
                    edge (x->file, from, to, there, back, best);
            }
    text_add (x->file, "}\n");
    return ST_OK;
}

static enum status write (struct exporting *x, struct error *err)
{
    return x->node ? one_node (x, err) : cluster (x, err);
}

const struct export_format export_graphviz = {
    .format = {"graphviz", "nodes and links, or the inside of one --node"},
    .of_node = true,
    .write = write};
