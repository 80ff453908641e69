/* Naming what a description leaves open: the GPU type of nodes, with what is known about
 * it; a node. */
#include <string.h>

#include "base/json.h"
#include "topology/edit/edit.h"
#include "topology/topology_private.h"
#include "topology/links_doc.h"
#include "topology/topology.h"

/* intra of all nodes as a list, or NULL where the document has none of its own. */
static json_t *intra_list (json_t *doc)
{
    json_t *links = json_object_get (doc, "links"),
           *intra = json_object_get (links, "intra"), *list;
    size_t n = json_array_size (json_object_get (doc, "nodes"));

    if (json_is_array (intra))
        return json_incref (intra);
    list = json_array ();
    for (size_t i = 0; i < n; i++)
        json_array_append (list, json_is_object (intra) ? intra : json_null ());
    return list;
}

/* Is what a file calls the GPUs, such as Slurm's "a100", another type, whatever its memory and
 * form, which follow the first '-'? */
static bool is_other (const json_t *node, const char *type)
{
    const char *model = json_member_text (node, "gpu_model");
    const struct topology_gpu_type *meant =
        model ? topology_gpu_type_meant (model) : NULL;
    size_t n = strcspn (type, "-");

    return meant &&
           (strcspn (meant->name, "-") != n || memcmp (meant->name, type, n) != 0);
}

enum status topology_name_type (json_t *doc, const char *type, struct notes *notes,
                                struct error *err)
{
    const struct topology_gpu_type *builtin = NULL;
    json_t *nodes = json_object_get (doc, "nodes"), *list, *node, *other = NULL;
    bool any = false;
    int others = 0;
    size_t i;

    if (!json_object_get (json_object_get (doc, "gpu_types"), type)) {
        TRY (topology_gpu_type_take ("--gpu-type", type, &builtin, notes, err));
        type = builtin->name;
    }
    list = intra_list (doc);
    json_array_foreach (nodes, i, node)
    {
        long long gpus = json_member_int (node, "gpus");

        if (gpus > 0 && !json_is_string (json_object_get (node, "gpu_type"))) {
            json_object_set_new (node, "gpu_type", json_string (type));
            if (builtin && is_other (node, type) && others++ == 0)
                other = node;
        }
        if (gpus > 1 && json_is_null (json_array_get (list, i))) {
            json_t *intra = known_intra (node, json_member_text (node, "gpu_type"), 0);

            if (intra)
                json_array_set_new (list, i, intra);
        }
        any = any || json_is_object (json_array_get (list, i));
    }
    if (other)
        notes_add (
            notes,
            "--gpu-type %s is taken on nodes that name other GPUs, %d in all, as %s: "
            "%s",
            type, others, json_member_text (other, "name"),
            json_member_text (other, "gpu_model"));
    if (!any || json_object_get (json_object_get (doc, "links"), "gpu"))
        json_decref (list);
    else
        json_object_set_new (json_object_in (doc, "links"), "intra",
                             topology_intra_short (list));
    return ST_OK;
}

enum status topology_rename_node (json_t *doc, const char *name, struct error *err)
{
    json_t *nodes = json_object_get (doc, "nodes"), *end,
           *measured = json_object_get (doc, "measured"),
           *counters = json_object_get (measured, "counters");
    size_t i;

    json_array_foreach (counters, i, end)
    {
        if (json_object_get (end, "node"))
            return err_set (err, ST_USAGE,
                            "--name: the file names the nodes of its counters itself: "
                            "\"%s\"",
                            json_member_text (end, "node"));
    }
    json_array_foreach (counters, i, end)
        json_object_set_new (end, "node", json_string (name));
    if (json_array_size (counters) > 0 && json_array_size (nodes) == 0)
        return ST_OK;
    if (json_array_size (nodes) != 1)
        return err_set (err, ST_USAGE, "--name: the file describes %zu nodes, not one",
                        json_array_size (nodes));
    json_object_set_new (json_array_get (nodes, 0), "name", json_string (name));
    if (json_object_get (doc, "name"))
        json_object_set_new (doc, "name", json_string (name));
    json_array_foreach (json_object_get (measured, "endpoints"), i, end)
        json_object_set_new (end, "node", json_string (name));
    return ST_OK;
}

enum status topology_counters_named (const json_t *doc, const char *file,
                                     struct error *err)
{
    const json_t *measured = json_object_get (doc, "measured"), *one;
    size_t i;

    json_array_foreach (json_object_get (measured, "counters"), i, one)
    {
        if (!json_object_get (one, "node") && !json_object_get (one, "uuid"))
            return err_set (err, ST_USAGE,
                            "%s: expected the host of its counters, found none: give "
                            "--name NODE",
                            file);
    }
    return ST_OK;
}

void topology_set_measured (json_t *doc, double when_s, bool busy)
{
    json_t *measured = json_object_get (doc, "measured");

    if (when_s > 0)
        json_object_set_new (measured, "when", topology_links_time (when_s));
    if (busy)
        json_object_set_new (measured, "load", json_string ("busy"));
}
