/* The cluster file's links: intra, inter with its rails, gpu, and the price of what nobody
 * measured. */
#include "topology/topology_private.h"

#include <stdlib.h>

#include "base/units.h"

static enum status read_links (struct reader *r, const struct json_at *at, int n,
                               bool over_nodes, const char *known,
                               struct topology_links *l)
{
    struct json_at bw = json_key (at, "bandwidth_gb_per_s"),
                   latency = json_key (at, "latency_us"),
                   error = json_key (at, "estimate_error");

    TRY (json_want_object (at, r->err));
    TRY (topology_matrix_read (r, &bw, n, over_nodes, MATRIX_BANDWIDTH, &l->bytes_per_s));
    TRY (
        topology_matrix_read (r, &latency, n, over_nodes, MATRIX_LATENCY, &l->latency_s));
    TRY_MEMBER (json_get_bool, at, "nominal", &l->nominal, r->err);
    if (json_has (at, "estimate_error")) {
        TRY (topology_matrix_read (r, &error, n, over_nodes, MATRIX_ERROR,
                                   &l->estimate_error));
        l->has_estimates = r->c->has_estimates = true;
    }
    json_note_unknown (at, known, r->notes);
    return ST_OK;
}

static enum status read_one_intra (struct reader *r, const struct json_at *at, int gpus,
                                   struct topology_links *l)
{
    double gb = 0;

    TRY (read_links (r, at, gpus, false,
                     "bandwidth_gb_per_s latency_us estimate_error gpu_gb_per_s nominal "
                     "source",
                     l));
    TRY_MEMBER (json_get_number, at, "gpu_gb_per_s", GB_PER_S_LEAST, true, GB_PER_S_MAX,
                &gb, r->err);
    l->gpu_bytes_per_s = gb * UNITS_GB;
    return ST_OK;
}

/* One object serves all nodes; a matrix in it needs all nodes to have as many GPUs. */
static enum status read_shared_intra (struct reader *r, const struct json_at *at)
{
    struct topology_cluster *c = r->c;
    int gpus = 0;

    for (int i = 0; i < c->n_nodes; i++)
        gpus = c->node[i].gpus_listed > gpus ? c->node[i].gpus_listed : gpus;
    if (!(c->intra = calloc (1, sizeof *c->intra)))
        return err_nomem (r->err);
    c->n_intra = 1;
    TRY (read_one_intra (r, at, gpus, c->intra));
    for (int i = 0; i < c->n_nodes; i++) {
        if (!topology_links_alike (c->intra) && c->node[i].gpus_listed != gpus)
            return json_fail_text (at, r->err,
                                   "one matrix needs nodes of one size: node %s has %d "
                                   "GPUs, another %d; give a list, one per node",
                                   c->node[i].name, c->node[i].gpus_listed, gpus);
        c->node[i].intra = c->intra;
    }
    return ST_OK;
}

static enum status read_intra_list (struct reader *r, const struct json_at *at)
{
    struct topology_cluster *c = r->c;

    if (json_array_size (at->v) != (size_t) c->n_nodes)
        return json_fail (at, r->err, "one object, or a list of %d (one per node)",
                          c->n_nodes);
    if (!(c->intra = calloc ((size_t) c->n_nodes, sizeof *c->intra)))
        return err_nomem (r->err);
    c->n_intra = c->n_nodes;
    json_each (at, one) {
        struct topology_node *node = &c->node[one.index];

        if (json_is_null (one.v))
            continue;
        TRY (read_one_intra (r, &one, node->gpus_listed, &c->intra[one.index]));
        node->intra = &c->intra[one.index];
    }
    return ST_OK;
}

/* Links of the GPUs that are left on a node that has drained ones. */
static enum status pick_intra (struct reader *r, struct topology_node *n)
{
    if (!n->intra || !n->gpu_index || topology_links_alike (n->intra))
        return ST_OK;
    return topology_own_intra (n, n->gpu_index) ? ST_OK : err_nomem (r->err);
}

static enum status read_intra (struct reader *r, const struct json_at *links)
{
    struct json_at at = json_key (links, "intra");

    if (json_has (links, "intra"))
        TRY (json_is_array (at.v) ? read_intra_list (r, &at)
                                  : read_shared_intra (r, &at));
    for (int i = 0; i < r->c->n_nodes; i++) {
        struct topology_node *n = &r->c->node[i];

        if (n->gpus > 1 && !n->intra && !r->c->has_gpu_matrix && !r->partial)
            return json_fail_text (links, r->err,
                                   "intra: required, since node %s has %d GPUs", n->name,
                                   n->gpus);
        TRY (pick_intra (r, n));
    }
    return ST_OK;
}

/* node_gb_per_s of `inter` or `gpu`: a number, or a list with one entry per node. */
static enum status read_node_totals (struct reader *r, const struct json_at *inter)
{
    struct topology_cluster *c = r->c;
    struct json_at at = json_key (inter, "node_gb_per_s");
    bool list = json_is_array (at.v);

    if (!json_has (inter, "node_gb_per_s"))
        return ST_OK;
    if (list && json_array_size (at.v) != (size_t) c->n_nodes)
        return json_fail (&at, r->err, "a number, or a list of %d (one per node)",
                          c->n_nodes);
    for (int i = 0; i < c->n_nodes; i++) {
        struct json_at one = list ? json_entry (&at, (size_t) i) : at;
        double gb;

        if (json_is_null (one.v))
            continue;
        TRY (json_want_number (&one, GB_PER_S_LEAST, true, GB_PER_S_MAX, &gb, r->err));
        c->node[i].node_bytes_per_s = gb * UNITS_GB;
    }
    return ST_OK;
}

/* node_pair_gb_per_s of `inter` or `gpu`: over nodes. */
static enum status read_pair_totals (struct reader *r, const struct json_at *inter)
{
    struct topology_cluster *c = r->c;
    struct json_at at = json_key (inter, "node_pair_gb_per_s");

    if (!json_has (inter, "node_pair_gb_per_s"))
        return ST_OK;
    TRY (topology_matrix_read (r, &at, c->n_nodes, true, MATRIX_BANDWIDTH,
                               &c->pair_bytes_per_s));
    c->lowest_pair_bytes_per_s = topology_matrix_lowest (&c->pair_bytes_per_s);
    c->has_pair_totals = c->lowest_pair_bytes_per_s > 0;
    return ST_OK;
}

/* links.gpu: over the GPUs that the file lists, drained ones included. */
static enum status read_gpu_matrix (struct reader *r, const struct json_at *links)
{
    struct topology_cluster *c = r->c;
    struct json_at at = json_key (links, "gpu");
    int listed = 0;

    for (int i = 0; i < c->n_nodes; i++)
        listed += c->node[i].gpus_listed;
    TRY (read_links (r, &at, listed, false,
                     "bandwidth_gb_per_s latency_us estimate_error node_gb_per_s "
                     "node_pair_gb_per_s nominal source",
                     &c->gpu_links));
    TRY (read_node_totals (r, &at));
    TRY (read_pair_totals (r, &at));
    c->has_gpu_links = c->has_gpu_matrix = true;
    if (listed == c->n_gpus)
        return ST_OK;
    if (!(c->gpu_row = malloc ((size_t) c->n_gpus * sizeof *c->gpu_row)))
        return err_nomem (r->err);
    for (int i = 0, row = 0; i < c->n_nodes; row += c->node[i++].gpus_listed)
        for (int k = 0; k < c->node[i].gpus; k++)
            c->gpu_row[c->node[i].first_gpu + k] =
                row + topology_gpu_index (c, c->node[i].first_gpu + k);
    return ST_OK;
}

/* inter.rails: GPUs of one rail see these links, those of different rails inter's own. */
static enum status read_rails (struct reader *r, const struct json_at *inter)
{
    struct topology_cluster *c = r->c;
    struct json_at at = json_key (inter, "rails");
    size_t n;

    if (!json_has (inter, "rails"))
        return ST_OK;
    TRY (json_want_array (&at, &n, r->err));
    if (n == 0 || n > TOPOLOGY_NODE_GPUS_MAX)
        return json_fail (&at, r->err, "a list with one object per rail");
    if (!(c->rail = calloc (n, sizeof *c->rail)))
        return err_nomem (r->err);
    c->n_rails = (int) n;
    c->has_gpu_links = true;
    json_each (&at, rail)
        TRY (read_links (r, &rail, c->n_nodes, true,
                         "bandwidth_gb_per_s latency_us estimate_error source",
                         &c->rail[rail.index]));
    for (int i = 0; i < c->n_nodes; i++)
        for (int k = 0; c->node[i].gpu_rail && k < c->node[i].gpus; k++)
            if (c->node[i].gpu_rail[k] >= c->n_rails)
                return json_fail_text (
                    &at, r->err, "%d rails, but a GPU of node %s is on rail %d",
                    c->n_rails, c->node[i].name, c->node[i].gpu_rail[k]);
    return ST_OK;
}

static enum status read_inter (struct reader *r, const struct json_at *links)
{
    struct json_at at = json_key (links, "inter");

    r->c->has_inter = true;
    TRY (read_links (r, &at, r->c->n_nodes, true,
                     "bandwidth_gb_per_s latency_us estimate_error nominal node_gb_per_s "
                     "node_pair_gb_per_s rails source",
                     &r->c->inter));
    TRY (read_node_totals (r, &at));
    TRY (read_pair_totals (r, &at));
    return read_rails (r, &at);
}

enum status topology_links_read (struct reader *r, const struct json_at *root)
{
    struct topology_cluster *c = r->c;
    struct json_at links = json_key (root, "links");

    if (!json_has (root, "links") && (r->partial || (c->n_nodes == 1 && c->n_gpus == 1)))
        return ST_OK;
    TRY (json_want_object (&links, r->err));
    json_note_unknown (&links, "intra inter gpu exceptions source", r->notes);
    if (json_has (&links, "gpu"))
        TRY (read_gpu_matrix (r, &links));
    TRY (read_intra (r, &links));
    if (json_has (&links, "inter") && !c->has_gpu_matrix)
        TRY (read_inter (r, &links));
    if (c->n_nodes > 1 && !c->has_inter && !c->has_gpu_matrix && !r->partial)
        return json_fail_text (&links, r->err,
                               "inter: required, since there are %d nodes", c->n_nodes);
    return topology_exceptions_read (r, &links);
}

static void lowest_of_gpu_matrix (struct topology_cluster *c)
{
    for (int i = 0; i < c->n_gpus; i++)
        for (int j = 0; j < c->n_gpus; j++)
            if (i != j)
                topology_lower (c->node_of_gpu[i] == c->node_of_gpu[j]
                                    ? &c->lowest_intra_bytes_per_s
                                    : &c->lowest_inter_bytes_per_s,
                                topology_link_given (c, i, j).bytes_per_s);
}

/* The lowest measured bandwidth of each kind, the price of an unmeasured link. */
void topology_find_lowest (struct topology_cluster *c)
{
    const struct topology_links *seen = NULL;
    size_t at = 0;
    double x;
    int i, j;

    if (c->has_gpu_matrix) {
        lowest_of_gpu_matrix (c);
        return;
    }
    for (int k = 0; k < c->n_nodes; k++)
        if (c->node[k].gpus > 1 && c->node[k].intra && c->node[k].intra != seen) {
            seen = c->node[k].intra;
            topology_lower (&c->lowest_intra_bytes_per_s,
                            topology_matrix_lowest (&seen->bytes_per_s));
        }
    if (c->has_inter)
        c->lowest_inter_bytes_per_s = topology_matrix_lowest (&c->inter.bytes_per_s);
    for (int k = 0; k < c->n_rails; k++)
        topology_lower (&c->lowest_inter_bytes_per_s,
                        topology_matrix_lowest (&c->rail[k].bytes_per_s));
    while (pairs_next (c->except_bytes_per_s, &at, &i, &j, &x))
        topology_lower (&c->lowest_inter_bytes_per_s, x);
}
