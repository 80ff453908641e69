/* linkwise check --nccl-log. */
#include <math.h>
#include <stdlib.h>

#include "cli/check.h"

static void take_log (const struct cli_option *o, const char *given, void *value,
                      struct argp_state *state)
{
    struct check_logs *x = value;
    const char **list = realloc (x->path, ((size_t) x->n + 1) * sizeof *list);
    (void) o;

    if (!list)
        argp_failure (state, 1, 0, "out of memory");
    x->path = list;
    list[x->n++] = given;
    x->n_stdins += cli_is_dash (given);
}

static const struct cli_option options[] = {
    {"nccl-log", 'n', "LOG",
     "compare the rings, trees, channels and transports in NCCL's log with those that "
     "the step-time estimate assumes: a log of NCCL_DEBUG=INFO, "
     "NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET (repeatable), a folder or a pattern of them; - is "
     "standard input",
     .kind = CLI_KIND_TAKEN, .take = take_log},
    {0}};

const struct cli_options check_logs_options = {.line = options};

/* ---- the document ---- */

static json_t *link_json (const struct topology_cluster *c,
                          const struct check_nccl_link *l)
{
    if (l->src_gpu < 0)
        return json_null ();
    return json_pack (
        "{s:s, s:i, s:s, s:i, s:f}", "from", c->node[c->node_of_gpu[l->src_gpu]].name,
        "from_gpu", topology_gpu_index (c, l->src_gpu), "to",
        c->node[c->node_of_gpu[l->dst_gpu]].name, "to_gpu",
        topology_gpu_index (c, l->dst_gpu), "gb_per_s", l->bytes_per_s / 1e9);
}

static json_t *worst_json (const struct topology_cluster *c,
                           const struct check_nccl_group *g)
{
    const struct check_nccl_hops *h = &g->hops;
    json_t *hops = json_pack ("{s:i, s:i, s:i, s:o, s:o, s:o}", "both", h->both,
                              "only_priced", h->laid, "only_nccl", h->chosen,
                              "slowest_both", link_json (c, &h->slowest[0]),
                              "slowest_only_priced", link_json (c, &h->slowest[1]),
                              "slowest_only_nccl", link_json (c, &h->slowest[2]));

    return json_pack (
        "{s:i, s:i, s:i, s:i, s:o, s:i, s:i, s:o, s:o, s:s, s:i, s:o}", "first_rank",
        g->first, "ranks", g->n, "channels", g->channels, "unread_channels", g->unread,
        "hops", hops, "priced_lanes", h->laid_lanes, "nccl_lanes", h->chosen_lanes,
        "priced_s", json_number_or_null (g->laid_s), "nccl_s",
        json_number_or_null (g->chosen_s), "all_reduce", workload_all_reduce_name (g->by),
        "tree_edges", g->tree_hops, "slowest_tree_edge",
        g->tree_hops ? link_json (c, &g->tree) : json_null ());
}

static json_t *groups_json (const struct check_nccl *x, const struct topology_cluster *c)
{
    json_t *list = json_array ();

    for (int i = 0; i < CHECK_NCCL_KINDS; i++) {
        const struct check_nccl_kind *k = &x->kind[i];

        if (k->planned == 0 && k->found == 0)
            continue;
        json_array_append_new (
            list,
            json_pack ("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "group",
                       check_nccl_kind_text (i), "planned", k->planned, "found", k->found,
                       "partly_known", k->partly, "reordered", k->reordered, "compared",
                       k->compared, "differ", k->differ, "worst",
                       k->compared ? worst_json (c, &k->worst) : json_null ()));
    }
    return list;
}

static json_t *ways_json (const struct check_nccl *x, const struct topology_cluster *c)
{
    json_t *list = json_array ();

    for (int i = 0; i < x->n_ways; i++) {
        const struct check_nccl_way *w = &x->way[i];
        json_t *way = json_pack ("{s:s, s:s}", "from", c->node[w->a].name, "to",
                                 c->node[w->b].name);

        for (int k = 0; k < CHECK_NCCL_VIAS; k++)
            json_object_set_new (way, check_nccl_via_name (k),
                                 json_integer (w->times[k]));
        json_array_append_new (list, way);
    }
    return list;
}

static json_t *lines_json (const struct check_nccl_lines *l)
{
    json_t *at = json_array (), *versions = json_array ();

    for (int i = 0; i < CHECK_NCCL_PLACES && i < l->unread; i++) {
        json_t *file = json_string (l->place[i].file); /* NULL: not UTF-8 */

        json_array_append_new (at, json_pack ("{s:o, s:I}", "file",
                                              file ? file : json_null (), "line",
                                              (json_int_t) l->place[i].line));
    }
    for (int i = 0; i < l->versions; i++)
        json_array_append_new (versions, json_string (l->version[i]));
    return json_pack ("{s:i, s:I, s:I, s:I, s:o, s:I, s:o}", "files", l->files, "lines",
                      (json_int_t) l->all, "nccl", (json_int_t) l->nccl, "not_understood",
                      (json_int_t) l->unread, "not_understood_at", at, "unplaced",
                      (json_int_t) l->unplaced, "versions", versions);
}

json_t *check_nccl_json (const struct check_nccl *x, const struct topology_cluster *c)
{
    return json_pack ("{s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:o, s:o}", "log",
                      lines_json (&x->lines), "processes", x->processes, "communicators",
                      x->communicators, "others", x->other, "ambiguous", x->ambiguous,
                      "unfinished", x->unfinished, "jobs", x->jobs, "ranks_known",
                      x->ranks_known, "compared", !x->moved, "groups", groups_json (x, c),
                      "ways", ways_json (x, c));
}

/* ---- the table ---- */

void check_nccl_print (const struct check_nccl *x)
{
    struct table *t = cli_table ("<group", "found", "compared", "differ", "<worst: ranks",
                                 "hops in both", "only priced", "only NCCL's",
                                 "lanes priced", "NCCL's", "priced, s", "NCCL's, s");
    int rows = 0;

    for (int i = 0; i < CHECK_NCCL_KINDS; i++) {
        const struct check_nccl_kind *k = &x->kind[i];
        const struct check_nccl_group *g = &k->worst;

        if (k->compared == 0)
            continue;
        rows++;
        table_cell (t, "%s", check_nccl_kind_text (i));
        table_cell (t, "%d", k->found);
        table_cell (t, "%d", k->compared);
        table_cell (t, "%d", k->differ);
        table_cell (t, "%d from %d", g->n, g->first);
        table_cell (t, "%d", g->hops.both);
        table_cell (t, "%d", g->hops.laid);
        table_cell (t, "%d", g->hops.chosen);
        table_cell (t, "%d", g->hops.laid_lanes);
        table_cell (t, "%d", g->hops.chosen_lanes);
        cli_cell (t, "%.6g", g->laid_s);
        cli_cell (t, "%.6g", g->chosen_s);
    }
    if (rows > 0) {
        cli_print ("\n");
        table_print (t, stdout);
    }
    table_destroy (t);
}
