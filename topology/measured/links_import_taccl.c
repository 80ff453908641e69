/* A topology of TACCL (Shah et al., NSDI 2023): alpha in us, beta in us a megabyte (1e6
 * bytes), for links inside nodes and between them.
 *
 * It says how fast the classes of links are, not which pair has which: a node with one class
 * gets its number, one with several only the links between nodes.
 */
#include "topology/measured/links_import_private.h"

#include <string.h>

#include "base/units.h"

static bool matches (const char *text)
{
    return text[strspn (text, " \t\r\n")] == '{' &&
           strstr (text, "\"node_betas_list\"") && strstr (text, "\"remote_beta\"");
}

static enum status read_root (struct links_table *t, const struct json_at *root)
{
    struct json_at name = json_key (root, "name"),
                   gpus = json_key (root, "gpus_per_node"),
                   alpha = json_key (root, "alpha"),
                   betas = json_key (root, "node_betas_list"),
                   far_alpha = json_key (root, "remote_alpha"),
                   far_beta = json_key (root, "remote_beta");
    const char *s;
    long long g;
    double near_us, near_beta, far_us, beta;
    size_t classes;
    enum status st = json_want_string (&name, &s, t->err);

    if (st == ST_OK)
        st = json_want_int (&gpus, 1, 1024, &g, t->err);
    if (st == ST_OK)
        st = json_want_number (&alpha, 0, true, 1e9, &near_us, t->err);
    if (st == ST_OK)
        st = json_want_array (&betas, &classes, t->err);
    if (st == ST_OK)
        st = json_want_number (&far_alpha, 0, true, 1e9, &far_us, t->err);
    if (st == ST_OK)
        st = json_want_number (&far_beta, 0, false, 1e9, &beta, t->err);
    if (st != ST_OK)
        return st;
    t->gpus_known = true;
    t->all_inter_bytes_per_s = 1e6 / (beta * UNITS_US);
    t->all_inter_latency_s = far_us * UNITS_US;
    if (classes == 1) {
        struct json_at only = json_entry (&betas, 0);

        st = json_want_number (&only, 0, false, 1e9, &near_beta, t->err);
        if (st != ST_OK)
            return st;
        t->all_intra_bytes_per_s = 1e6 / (near_beta * UNITS_US);
        t->all_intra_latency_s = near_us * UNITS_US;
    } else {
        notes_add (t->notes,
                   "%s: it names %zu classes of links inside a node, not which pair has "
                   "which: only the links between nodes are taken",
                   t->file, classes);
    }
    /* Two nodes stand for as many as there are. */
    for (int i = 0; i < 2; i++) {
        int node = links_table_node (t, i ? "n1" : "n0");

        if (node < 0)
            return ST_NOMEM;
        t->node[node].gpus = (int) g;
    }
    text_add (&t->source, "TACCL topology %.100s", s);
    return ST_OK;
}

static enum status read (struct links_table *t, char *text, size_t len)
{
    json_t *doc;
    enum status st = json_parse (t->file, text, len, &doc, t->err);

    if (st != ST_OK)
        return st;

    struct json_at root = json_root (doc, t->file);

    st = read_root (t, &root);
    json_decref (doc);
    return st;
}

const struct links_format links_format_taccl = {"taccl", matches, read};
