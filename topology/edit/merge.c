/* Merging cluster, node and links files: the files, their order, the nodes, and
 * which links are taken. */
#include "topology/edit/merge_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "topology/links_doc.h"

#define DAY_S 86400.0

/* ---- the files ---- */

/* Drained things in use again, in a copy. */
static json_t *undrained (const json_t *doc)
{
    json_t *copy = json_deep_copy (doc), *node, *one,
           *exceptions = json_object_get (json_object_get (copy, "links"), "exceptions");
    size_t i;

    json_array_foreach (json_object_get (copy, "nodes"), i, node)
        json_object_del (node, "gpu_state");
    for (i = json_array_size (exceptions); i-- > 0;) {
        one = json_array_get (exceptions, i);
        if (json_object_get (one, "state"))
            json_array_remove (exceptions, i);
    }
    return copy;
}

#define A_TIME "a time as 2025-01-31T12:00:00Z"

/* When and beside what the file was measured, or when it was captured. */
static enum status read_measured (struct merge *m, struct merge_source *s)
{
    struct json_at root = json_root (s->doc, s->name),
                   measured = json_key (&root, "measured");
    const struct json_at *of = json_is_object (measured.v) ? &measured : &root;
    const char *key = of == &root ? "captured" : "when",
               *load = json_member_text (measured.v, "load");
    struct json_at when = json_key (of, key);
    struct error why = {""};
    double now_s = (double) time (NULL);

    s->when = topology_links_seconds (when.v);
    s->gpus_weak = json_is_false (json_object_get (measured.v, "gpus_known"));
    s->busy = load && strcmp (load, "busy") == 0;
    if (json_has (&measured, "load") && !s->busy &&
        !(load && strcmp (load, "idle") == 0)) {
        struct json_at at = json_key (&measured, "load");

        return json_fail (&at, m->err, "\"idle\" or \"busy\"");
    }
    if (isnan (s->when) && json_has (&measured, "counters"))
        return json_fail (&when, m->err, A_TIME ", since the file has counters");
    if (isnan (s->when) && json_has (of, key)) {
        json_fail (&when, &why, A_TIME);
        notes_add (m->notes, "%s: the newer files are those named later", why.text);
    }
    if (s->when > now_s + DAY_S)
        notes_add (m->notes,
                   "%s: measured.when: expected a time until now, found one %.6g days "
                   "ahead: its measurements are weighed as if they were of now",
                   s->name, (s->when - now_s) / DAY_S);
    return ST_OK;
}

static enum status read_source (struct merge *m, const char *file, int order)
{
    struct merge_source *s = &m->source[m->n];
    struct topology_cluster *c;
    enum status st;
    json_t *copy;

    TRY (topology_cluster_read_partial (file, &c, m->notes, m->err));
    *s = (struct merge_source){
        .name = file_title (file), .doc = json_incref (c->doc), .order = order};
    m->n++;
    copy = undrained (c->doc);
    st = copy ? topology_cluster_from_json_partial (copy, s->name, c->folder, &s->c, NULL,
                                                    m->err)
              : err_nomem (m->err);
    json_decref (copy);
    topology_cluster_destroy (c);
    return st == ST_OK ? read_measured (m, s) : st;
}

/* The newer the later, where all files say when they were made. */
static void sort_sources (struct merge *m)
{
    for (int i = 0; i < m->n; i++)
        if (isnan (m->source[i].when))
            return;
    qsort (m->source, (size_t) m->n, sizeof *m->source, merge_by_time);
}

/* ---- nodes ---- */

/* Nothing, or no more than another file may know better. */
static bool is_open (const struct merge_source *s, const char *key, const json_t *value)
{
    return json_is_null (value) || (strcmp (key, "gpus") == 0 &&
                                    (json_number_value (value) <= 0 || s->gpus_weak));
}

static void note_conflict (struct merge *m, const char *node, const char *key,
                           const json_t *old, const struct merge_source *s,
                           const json_t *value)
{
    char *a = json_dumps (old, JSON_ENCODE_ANY | JSON_COMPACT),
         *b = json_dumps (value, JSON_ENCODE_ANY | JSON_COMPACT);

    /* A state is meant to change. */
    if (strcmp (key, "state") != 0 && strcmp (key, "reason") != 0 && a && b)
        notes_add (m->notes, "node %s: %s: %.80s is replaced by %.80s of %s", node, key,
                   a, b, s->name);
    FREE_ALL (a, b);
}

static void merge_node (struct merge *m, const struct merge_source *s, json_t *into,
                        const json_t *node)
{
    const char *name = json_member_text (node, "name"), *key;
    json_t *value;

    json_object_foreach ((json_t *) node, key, value)
    {
        json_t *old = json_object_get (into, key);
        bool open = old && (json_is_null (old) ||
                            (strcmp (key, "gpus") == 0 && json_number_value (old) <= 0));

        if (old && !open && is_open (s, key, value))
            continue;
        if (old && !open && !json_equal (old, value))
            note_conflict (m, name, key, old, s, value);
        json_object_set (into, key, value);
    }
}

/* Lists with one entry per GPU that do not fit the number of GPUs that holds. */
static void drop_lists (struct merge *m, json_t *node)
{
    static const char *const keys[] = {"speed",    "gpu_uuid", "gpu_numa",
                                       "gpu_nic",  "gpu_cpus", "gpu_pci",
                                       "gpu_rail", "gpu_path", "gpu_state"};
    size_t gpus = (size_t) json_member_int (node, "gpus");

    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        json_t *list = json_object_get (node, keys[k]);

        if (!list || json_array_size (list) == gpus)
            continue;
        notes_add (m->notes, "node %s has %zu GPUs: %s with %zu entries is ignored",
                   json_member_text (node, "name"), gpus, keys[k],
                   json_array_size (list));
        json_object_del (node, keys[k]);
    }
}

/* Counts that only tell how many took part in a measurement come last. */
static void merge_nodes (struct merge *m)
{
    json_t *node;
    size_t i;

    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < m->n; k++)
            json_array_foreach (json_object_get (m->source[k].doc, "nodes"), i, node)
            {
                const char *name = json_member_text (node, "name");
                size_t at = (size_t) json_number_of (m->index, "%s", name);

                if (at == json_array_size (m->nodes))
                    json_array_append_new (m->nodes, json_object ());
                if ((pass == 0) == !m->source[k].gpus_weak)
                    merge_node (m, &m->source[k], json_array_get (m->nodes, at), node);
            }
    json_array_foreach (m->nodes, i, node) drop_lists (m, node);
    m->n_nodes = (int) json_array_size (m->nodes);
}

/* Slurm and fabrics name hosts of every kind: those without GPUs go, unless a file of that one node
 * or one with links names them, too. */
static void leave_others_out (struct merge *m)
{
    json_t *meant = json_object (), *nodes = json_array (), *node;
    const char *first = NULL;
    size_t i, left;

    for (int k = 0; k < m->n; k++)
        if (m->source[k].c->n_nodes == 1 || merge_gives_between (&m->source[k]))
            json_array_foreach (json_object_get (m->source[k].doc, "nodes"), i, node)
                json_object_set_new (meant, json_member_text (node, "name"),
                                     json_true ());
    json_array_foreach (m->nodes, i, node)
    {
        const char *name = json_member_text (node, "name");

        if (json_member_number (node, "gpus") > 0 || json_object_get (meant, name))
            json_array_append (nodes, node);
        else
            first = first ? first : name;
    }
    left = json_array_size (m->nodes) - json_array_size (nodes);
    if (left > 0 && json_array_size (nodes) > 0) {
        notes_add (m->notes,
                   "hosts to which no file gives GPUs are left out, %zu in all, as %s",
                   left, first);
        json_array_clear (m->nodes);
        json_array_extend (m->nodes, nodes);
        json_object_clear (m->index);
        json_array_foreach (m->nodes, i, node)
            json_number_of (m->index, "%s", json_member_text (node, "name"));
        m->n_nodes = (int) json_array_size (m->nodes);
    }
    JSON_DECREF_ALL (meant, nodes);
}

/* Hosts that some files call by their full names, others by these up to the first dot. */
static void note_doubles (struct merge *m)
{
    char name[TOPOLOGY_NAME_MAX + 1];
    const char *first = NULL;
    json_t *node;
    size_t i;
    int n = 0;

    json_array_foreach (m->nodes, i, node)
    {
        const char *full = json_member_text (node, "name");

        snprintf (name, sizeof name, "%.*s", (int) topology_host_length (full), full);
        if (strcmp (name, full) == 0 || !json_object_get (m->index, name))
            continue;
        first = first ? first : full;
        n++;
    }
    if (n > 0)
        notes_add (m->notes,
                   "hosts under a full and a short name are two nodes each, %d in all, "
                   "as %s and "
                   "%.*s: name a host alike in all files (`linkwise topo --name`)",
                   n, first, (int) topology_host_length (first), first);
}

/* ---- the rest of the document ---- */

/* A type's keys over those of an older file; what measured a key goes along with it. */
static void merge_type (struct merge *m, const struct merge_source *s, json_t *types,
                        const char *name, const json_t *type)
{
    json_t *old = json_object_get (types, name), *both = json_deep_copy (old), *sources;
    const char *key;
    json_t *value;

    if (!old) {
        json_object_set_new (types, name, json_deep_copy (type));
        return;
    }
    if (!json_equal (old, type))
        notes_add (m->notes, "gpu_types.%s: what %s says is used", name, s->name);
    sources = json_incref (json_object_get (both, "measured"));
    json_object_foreach ((json_t *) type, key, value) json_object_del (sources, key);
    json_object_update (sources, json_object_get (type, "measured"));
    json_object_update (both, (json_t *) type);
    if (sources)
        json_object_set_new (both, "measured", sources);
    json_object_set_new (types, name, both);
}

static bool has_type (const struct merge *m, const char *type)
{
    for (int i = 0; i < m->n_nodes; i++)
        if (strcmp (json_member_text (merge_node_at (m, i), "gpu_type"), type) == 0)
            return true;
    return false;
}

/* Measured constants of a type that no node has are somebody else's. */
static enum status check_measured (struct merge *m)
{
    const char *type;
    json_t *value;

    for (int k = 0; k < m->n; k++)
        json_object_foreach (json_object_get (m->source[k].doc, "gpu_types"), type, value)
        {
            if (json_object_get (value, "measured") && !has_type (m, type))
                return err_set (m->err, ST_INVALID,
                                "%s: gpu_types.%s: measured, but no node of the merged "
                                "cluster has GPUs of this type",
                                m->source[k].name, type);
        }
    return ST_OK;
}

/* Constants of what bwprobe --compute measured. */
static enum status merge_compute (struct merge *m)
{
    struct topology_compute_source *from = calloc ((size_t) m->n + 1, sizeof *from);
    enum status st = from ? check_measured (m) : err_nomem (m->err);

    for (int k = 0; k < m->n && from; k++)
        from[k] = (struct topology_compute_source){m->source[k].name, m->source[k].doc};
    THEN (st, topology_compute_apply (m->doc, from, m->n, m->notes, m->err));
    free (from);
    return st;
}

static void merge_top (struct merge *m)
{
    const char *key, *type;
    json_t *value, *one;

    for (int k = 0; k < m->n; k++)
        json_object_foreach (m->source[k].doc, key, value)
        {
            json_t *types = json_object_get (m->doc, "gpu_types");

            if (strcmp (key, "nodes") == 0 || strcmp (key, "links") == 0 ||
                strcmp (key, "measured") == 0 || json_is_null (value))
                continue;
            if (strcmp (key, "gpu_types") != 0 || !types) {
                json_object_set_new (m->doc, key, json_deep_copy (value));
                continue;
            }
            json_object_foreach (value, type, one)
                merge_type (m, &m->source[k], types, type, one);
        }
    /* What the result is made of says more than the last file's own sentence. */
    if (m->n > 1) {
        struct text t = {0};

        for (int k = 0; k < m->n; k++) {
            const char *source = json_member_text (m->source[k].doc, "source");

            text_add (&t, "%s%s%s%s", k ? "; " : "merged: ", m->source[k].name,
                      source ? ": " : "", source ? source : "");
        }
        json_object_set_new (m->doc, "source", json_string (text_str (&t)));
        text_free (&t);
    }
    /* A machine's name is not the cluster's. */
    if (m->n_nodes > 1 && json_object_get (m->index, json_member_text (m->doc, "name")))
        json_object_del (m->doc, "name");
    if (m->n > 1)
        json_object_del (m->doc, "captured");
    json_object_set (m->doc, "nodes", m->nodes);
}

/* ---- the links ----
 *
 * When one file alone gives the links between nodes, over just the merged nodes, its
 * `links` are taken as they stand.  Otherwise merge_planes.c looks them up one by one. */

/* Whether a file's nodes are the merged ones, in their order and with their GPUs. */
static bool same_nodes (const struct merge *m, const struct merge_source *s)
{
    if (s->c->n_nodes != m->n_nodes)
        return false;
    for (int i = 0; i < m->n_nodes; i++)
        if (merge_place_of (m, s, i) != i ||
            merge_gpus_of (m, i) != s->c->node[i].gpus_listed)
            return false;
    return true;
}

/* Exceptions that say what is drained, of all files; the newest of two on one link. */
static void keep_drained (struct merge *m, json_t *links)
{
    json_t *list, *one;
    size_t i;

    for (int k = 0; k < m->n; k++)
        json_array_foreach (
            json_object_get (json_object_get (m->source[k].doc, "links"), "exceptions"),
            i, one)
        {
            bool known = false;

            if (!json_object_get (one, "state"))
                continue;
            list = json_array_in (links, "exceptions");
            for (size_t j = 0; j < json_array_size (list) && !known; j++)
                known = json_equal (json_array_get (list, j), one);
            if (!known)
                json_array_append (list, one);
        }
}

/* Keys beside intra, inter, gpu and exceptions. */
static void keep_links_keys (struct merge *m, json_t *links)
{
    const char *key;
    json_t *value;

    for (int k = 0; k < m->n; k++)
        json_object_foreach (json_object_get (m->source[k].doc, "links"), key, value)
        {
            if (!text_has_word ("intra inter gpu exceptions", key) &&
                !json_object_get (links, key))
                json_object_set (links, key, value);
        }
}

/* One file's links as they stand, with the links inside nodes that others add. */
static enum status take_whole (struct merge *m, const struct merge_source *s)
{
    json_t *links = json_deep_copy (json_object_get (s->doc, "links"));

    if (!links)
        return err_nomem (m->err);
    json_object_set_new (m->doc, "links", links);
    TRY (topology_document_adopt (m->out, s->c->folder ? s->c->folder : "", m->err));
    if (!s->c->has_gpu_matrix)
        TRY (merge_inside (m, links));
    return ST_OK;
}

static enum status merge_links (struct merge *m)
{
    const struct merge_source *giver = NULL;
    int giving = 0;
    json_t *links;

    for (int k = 0; k < m->n; k++)
        if (merge_gives_between (&m->source[k])) {
            giving++;
            giver = &m->source[k];
        }
    if (giving == 1 && same_nodes (m, giver))
        TRY (take_whole (m, giver));
    else {
        links = json_object ();
        json_object_set_new (m->doc, "links", links);
        if (giving > 0)
            TRY (merge_between (m, links));
        if (!json_object_get (links, "gpu"))
            TRY (merge_inside (m, links));
    }
    links = json_object_get (m->doc, "links");
    keep_drained (m, links);
    keep_links_keys (m, links);
    return ST_OK;
}

/* ---- all ---- */

static enum status check_nodes (struct merge *m)
{
    const json_t *node;
    size_t i;

    json_array_foreach (m->nodes, i, node)
    {
        const char *name = json_member_text (node, "name");

        if (json_member_number (node, "gpus") <= 0)
            return err_set (
                m->err, ST_INVALID,
                "node %s has no GPUs: no file gives their number; leave its file out, or "
                "add one that does (topo, scontrol show node)",
                name);
        if (!json_is_string (json_object_get (node, "gpu_type")))
            return err_set (
                m->err, ST_INVALID,
                "node %s: no file names the type of its GPUs: give --gpu-type TYPE "
                "(`linkwise gpus` lists them)",
                name);
    }
    return ST_OK;
}

/* The result as a planner will read it; what lies in side files is not there yet. */
static enum status check_result (struct merge *m)
{
    struct topology_cluster *c;

    if (m->out->n_sides > 0)
        return ST_OK;
    TRY (topology_cluster_from_json (m->doc, "the merged cluster", NULL, &c, NULL,
                                     m->err));
    topology_cluster_destroy (c);
    return ST_OK;
}

static enum status merge_all (struct merge *m, const char *gpu_type)
{
    sort_sources (m);
    merge_nodes (m);
    leave_others_out (m);
    merge_top (m);
    if (memory_take_lost ())
        return err_nomem (m->err); /* nodes without a name, or fewer of them */
    note_doubles (m);
    TRY (merge_counters (m));
    TRY (merge_links (m));
    merge_measured (m);
    if (gpu_type)
        TRY (topology_name_type (m->doc, gpu_type, m->notes, m->err));
    TRY (check_nodes (m));
    TRY (merge_compute (m));
    TRY (merge_fill (m));
    return check_result (m);
}

enum status topology_merge (const char *const *file, int n, const char *gpu_type,
                            double half_life_s, struct topology_document *out,
                            struct notes *notes, struct error *err)
{
    struct topology_document d = {0};
    struct merge m = {.source = calloc ((size_t) n + 1, sizeof *m.source),
                      .doc = json_object (),
                      .nodes = json_array (),
                      .index = json_object (),
                      .half_life_s = half_life_s,
                      .out = &d,
                      .notes = notes,
                      .err = err};
    enum status st = m.source && m.doc && m.nodes && m.index ? ST_OK : err_nomem (err);

    d.doc = m.doc;
    for (int i = 0; i < n && st == ST_OK; i++)
        st = read_source (&m, file[i], i);
    THEN (st, merge_all (&m, gpu_type));
    for (int i = 0; i < m.n; i++) {
        topology_cluster_destroy (m.source[i].c);
        json_decref (m.source[i].doc);
    }
    FREE_ALL (m.source, m.accused);
    JSON_DECREF_ALL (m.told, m.history, m.nodes, m.index);
    if (st == ST_OK)
        *out = d;
    else
        topology_document_release (&d);
    return st;
}
