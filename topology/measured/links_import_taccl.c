/* A topology of TACCL (Shah et al., NSDI 2023): alpha in us, beta in us a megabyte (1e6
 * bytes), for links inside nodes and between them.
 *
 * It says how fast the classes of links are, not which pair has which: a node with one class
 * gets its number, one with several only the links between nodes.
 */
#include "topology/measured/links_import_private.h"

#include "base/units.h"

static enum status read_json (struct links_table *t, const struct json_at *root)
{
    struct json_at betas = json_key (root, "node_betas_list"),
                   only = json_entry (&betas, 0);
    const char *name;
    int gpus;
    double near_us, near_beta, far_us, beta;
    size_t classes;

    TRY (json_get_string (root, "name", &name, t->err));
    TRY (json_get_int (root, "gpus_per_node", 1, 1024, &gpus, t->err));
    TRY (json_get_number (root, "alpha", 0, true, 1e9, &near_us, t->err));
    TRY (json_want_array (&betas, &classes, t->err));
    TRY (json_get_number (root, "remote_alpha", 0, true, 1e9, &far_us, t->err));
    TRY (json_get_number (root, "remote_beta", 0, false, 1e9, &beta, t->err));
    t->gpus_known = true;
    t->all_inter_bytes_per_s = 1e6 / (beta * UNITS_US);
    t->all_inter_latency_s = far_us * UNITS_US;
    if (classes == 1) {
        TRY (json_want_number (&only, 0, false, 1e9, &near_beta, t->err));
        t->all_intra_bytes_per_s = 1e6 / (near_beta * UNITS_US);
        t->all_intra_latency_s = near_us * UNITS_US;
    } else {
        notes_add (t->notes,
                   "%s: it names %zu classes of links inside a node, but not their "
                   "pairs: only the links between nodes are used",
                   t->file, classes);
    }
    /* Two nodes stand for as many as there are. */
    for (int i = 0; i < 2; i++) {
        int node;

        TRY (links_table_node (t, i ? "n1" : "n0", &node));
        t->node[node].gpus = gpus;
    }
    text_add (&t->source, "TACCL topology %.100s", name);
    return ST_OK;
}

const struct links_format links_format_taccl = {
    .name = "taccl",
    .json_has = {"\"node_betas_list\"", "\"remote_beta\""},
    .read_json = read_json};
