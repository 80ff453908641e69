/* What no merged file gives, from data sheets; and the measurements that come along. */

#include "topology/topology_private.h"
#include "topology/links_doc.h"
#include "topology/edit/merge_private.h"

/* ---- nominal links ---- */

static enum status fill_intra (struct merge *m, json_t *links)
{
    json_t *intra = json_object_get (links, "intra"), *list, *node;
    size_t i;

    if (json_is_object (intra))
        return ST_OK;
    list = json_array ();
    json_array_foreach (m->nodes, i, node)
    {
        json_t *one = json_array_get (intra, i);
        long long gpus = json_member_int (node, "gpus");

        json_array_append (list, json_is_object (one) ? one : json_null ());
        if (gpus < 2 || json_is_object (one))
            continue;
        one = known_intra (node, json_member_text (node, "gpu_type"), 0);
        if (!one) {
            json_decref (list);
            return err_set (
                m->err, ST_INVALID,
                "links.intra: no file gives the links inside node %s (%lld GPUs), and "
                "its GPU type has no known rate: add a links file (bwprobe, `linkwise "
                "cluster import`)",
                json_member_text (node, "name"), gpus);
        }
        json_array_set_new (list, i, one);
        notes_add (m->notes,
                   "node %s: its inside links have the nominal rate of its GPU "
                   "type",
                   json_member_text (node, "name"));
    }
    list = topology_intra_short (list);
    if (json_is_null (list))
        json_decref (list);
    else
        json_object_set_new (links, "intra", list);
    return ST_OK;
}

/* The rate of the slowest NIC that a node's GPUs use, and of all that they use; 0: unknown. */
static double nic_rates (const json_t *node, double *total)
{
    const json_t *used = json_object_get (node, "gpu_nic"), *name, *nic;
    double slowest = 0;
    size_t i, k;

    *total = 0;
    json_array_foreach (json_object_get (node, "nics"), k, nic)
    {
        double rate = json_member_number (nic, "gb_per_s");
        bool uses = false;

        json_array_foreach (used, i, name) uses =
            uses || json_equal (name, json_object_get (nic, "name"));
        if (!uses)
            continue;
        if (rate <= 0)
            return 0;
        *total += rate;
        slowest = slowest <= 0 || rate < slowest ? rate : slowest;
    }
    return slowest;
}

static enum status fill_inter (struct merge *m, json_t *links)
{
    json_t *rates, *totals, *node;
    size_t i;

    if (m->n_nodes < 2 || json_object_get (links, "inter") ||
        json_object_get (links, "gpu"))
        return ST_OK;
    rates = json_array ();
    totals = json_array ();
    json_array_foreach (m->nodes, i, node)
    {
        double total, rate = nic_rates (node, &total);

        if (rate <= 0) {
            JSON_DECREF_ALL (rates, totals);
            return err_set (
                m->err, ST_INVALID,
                "links.inter: no file gives the links between the nodes, and the NIC "
                "rates of node %s are unknown: add a links file (bwprobe, `linkwise "
                "cluster import`)",
                json_member_text (node, "name"));
        }
        json_array_append_new (rates, json_real (rate));
        json_array_append_new (totals, json_real (total));
    }
    notes_add (m->notes, "links between nodes have the nominal rates of their NICs");
    json_object_set_new (links, "inter",
                         json_pack ("{s:{s:o}, s:f, s:o, s:b, s:s}", "bandwidth_gb_per_s",
                                    "by_node", rates, "latency_us",
                                    TOPOLOGY_INTER_LATENCY_US, "node_gb_per_s", totals,
                                    "nominal", 1, "source", "rates of the NICs"));
    return ST_OK;
}

enum status merge_fill (struct merge *m)
{
    json_t *links = json_object_get (m->doc, "links");

    if (!json_object_get (links, "gpu"))
        TRY (fill_intra (m, links));
    return fill_inter (m, links);
}

/* ---- measured ---- */

/* The number of an endpoint in the merged list, appended when it is new; what a newer file
 * says of it holds. */
static int end_number (json_t *ends, json_t *numbers, const json_t *end)
{
    int n = json_number_of (numbers, "%s:%lld", json_member_text (end, "node"),
                            (long long) json_member_int (end, "gpu"));
    json_t *known = json_array_get (ends, (size_t) n);

    if (known)
        json_object_update (known, (json_t *) end);
    else
        json_array_append_new (ends, json_copy ((json_t *) end));
    return n;
}

/* The pairs of one file, over those of older ones. */
static void add_pairs (const json_t *measured, json_t *ends, json_t *numbers,
                       json_t *pairs, json_t *place)
{
    const json_t *list = json_object_get (measured, "pairs"), *pair;
    size_t k;

    json_array_foreach ((json_t *) list, k, pair)
    {
        const json_t *src = topology_measured_end (measured, pair, "src"),
                     *dst = topology_measured_end (measured, pair, "dst");
        json_t *copy;
        int s, d, at;

        if (!src || !dst)
            continue;
        s = end_number (ends, numbers, src);
        d = end_number (ends, numbers, dst);
        copy = json_copy ((json_t *) pair);
        json_object_set_new (copy, "src", json_integer (s));
        json_object_set_new (copy, "dst", json_integer (d));
        at = json_number_of (place, "%d %d", s, d);
        if (json_array_get (pairs, (size_t) at))
            json_array_set_new (pairs, (size_t) at, copy);
        else
            json_array_append_new (pairs, copy);
    }
}

/* One file of those that were merged. */
static json_t *file_json (const struct merge_source *s, const json_t *measured)
{
    static const char *const kept[] = {"tool", "when", "load", "estimates"};
    json_t *file = json_pack ("{s:s}", "file", s->name);
    const char *csv = json_member_text (measured, "pairs_csv");

    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        json_object_set (file, kept[k], json_object_get (measured, kept[k]));
    /* Its table stays where it is. */
    if (csv) {
        struct text path = {0};

        text_add (&path, "%s%s", csv[0] != '/' && s->c->folder ? s->c->folder : "", csv);
        json_object_set_new (file, "pairs_csv", json_string (text_str (&path)));
        text_free (&path);
    }
    return file;
}

/* `measured` of the newest file, with the endpoints and pairs of all, and what was merged. */
void merge_measured (struct merge *m)
{
    json_t *ends = json_array (), *numbers = json_object (), *pairs = json_array (),
           *place = json_object (), *files = json_array (), *result = NULL;

    for (int k = 0; k < m->n; k++) {
        json_t *measured = json_object_get (m->source[k].doc, "measured");

        if (!json_is_object (measured))
            continue;
        add_pairs (measured, ends, numbers, pairs, place);
        /* What measured no link says least of the result. */
        if (!result || !json_object_get (measured, "counters")) {
            json_decref (result);
            result = json_copy (measured);
        }
        json_array_append_new (files, file_json (&m->source[k], measured));
    }
    if (result) {
        json_object_del (result, "gpus_known");
        /* What each file estimated, and where its table is, is told with the file. */
        if (json_array_size (files) > 1)
            json_object_del (result, "estimates");
        if (json_array_size (files) > 1 || json_object_get (result, "pairs_csv"))
            json_object_set (result, "files", files);
        json_object_del (result, "pairs_csv");
        json_object_del (result, "counters");
        if (m->n > 1) {
            json_object_del (result, "accused");
            json_object_del (result, "history");
        }
        if (m->told)
            json_object_set (result, "accused", m->told);
        if (m->history)
            json_object_set (result, "history", m->history);
        if (json_array_size (pairs) > 0) {
            json_object_set (result, "endpoints", ends);
            json_object_set (result, "pairs", pairs);
        }
        json_object_set (m->doc, "measured", result);
    }
    JSON_DECREF_ALL (result, ends, numbers, pairs, place, files);
}
