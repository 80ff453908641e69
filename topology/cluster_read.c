/* The cluster file's reader: every check of the contract, once, at the boundary. */
#include "topology/topology_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/units.h"

/* ---- the document ---- */

static enum status read_document (struct reader *r, const struct json_at *root,
                                  const char *name)
{
    const char *s = name;
    int version;

    TRY (json_want_object (root, r->err));
    TRY (json_get_int (root, "version", 1, 1, &version, r->err));
    TRY_MEMBER (json_get_string, root, "name", &s, r->err);
    if (!(r->c->name = strdup (s)))
        return err_nomem (r->err);
    /* A misspelled key is said before the right one is missed. */
    json_note_unknown (
        root, "version name nodes links source gpu_types measured captured synth planted",
        r->notes);
    TRY (topology_types_read (r, root));
    TRY (topology_nodes_read (r, root));
    TRY (topology_links_read (r, root));
    return ST_OK;
}

static enum status from_json (json_t *doc, const char *name, const char *folder,
                              bool partial, struct topology_cluster **out,
                              struct notes *notes, struct error *err)
{
    struct reader r = {
        .c = calloc (1, sizeof *r.c), .notes = notes, .err = err, .partial = partial};
    struct json_at root = json_root (doc, name);

    if (!r.c || (folder && !(r.c->folder = strdup (folder)))) {
        topology_cluster_destroy (r.c);
        return err_nomem (err);
    }
    r.c->doc = json_incref (doc);

    enum status st = read_document (&r, &root, name);

    if (st != ST_OK) {
        topology_cluster_destroy (r.c);
        return st;
    }
    topology_find_lowest (r.c);
    *out = r.c;
    return ST_OK;
}

enum status topology_cluster_from_json (json_t *doc, const char *name, const char *folder,
                                        struct topology_cluster **out,
                                        struct notes *notes, struct error *err)
{
    return from_json (doc, name, folder, false, out, notes, err);
}

enum status topology_cluster_from_json_partial (json_t *doc, const char *name,
                                                const char *folder,
                                                struct topology_cluster **out,
                                                struct notes *notes, struct error *err)
{
    return from_json (doc, name, folder, true, out, notes, err);
}

enum status topology_folder (const char *file, char **folder, struct error *err)
{
    char *behind = file_behind (file);
    bool here = behind && !strchr (behind, '/');

    *folder = behind && !here ? file_folder (behind) : NULL;
    free (behind);
    return *folder || here ? ST_OK : err_nomem (err);
}

static enum status read_cluster (const char *arg, bool partial,
                                 struct topology_cluster **out, struct notes *notes,
                                 struct error *err)
{
    struct stat sb;
    json_t *doc = NULL;
    bool line = strchr (arg, ' ') && stat (arg, &sb) != 0;
    char *folder = NULL;
    enum status st = line ? topology_line_to_json (arg, &doc, notes, err)
                          : json_read_told (arg, notes, &doc, err);

    if (!line)
        THEN (st, topology_folder (arg, &folder, err));
    THEN (st, from_json (doc, file_title (arg), folder, partial, out, notes, err));
    json_decref (doc);
    free (folder);
    return st;
}

enum status topology_cluster_read (const char *arg, struct topology_cluster **out,
                                   struct notes *notes, struct error *err)
{
    return read_cluster (arg, false, out, notes, err);
}

enum status topology_cluster_read_partial (const char *arg, struct topology_cluster **out,
                                           struct notes *notes, struct error *err)
{
    return read_cluster (arg, true, out, notes, err);
}

/* ---- writing ---- */

json_t *topology_matrix_json (const struct topology_matrix *m, int n, double unit)
{
    json_t *rows = json_array ();

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            json_array_append_new (
                json_row_in (rows, i),
                json_number_or_null (i == j ? NAN : topology_matrix_at (m, i, j) / unit));
    return rows;
}

/* Write a matrix that came from a .npy file into its place in the document. */
static void inline_matrix (json_t *links, const char *key,
                           const struct topology_matrix *m, double unit)
{
    if (json_object_get (json_object_get (links, key), "npy"))
        json_object_set_new (links, key, topology_matrix_json (m, m->n, unit));
}

static void inline_npy (json_t *links, const struct topology_links *l)
{
    inline_matrix (links, "bandwidth_gb_per_s", &l->bytes_per_s, UNITS_GB);
    inline_matrix (links, "latency_us", &l->latency_s, UNITS_US);
    inline_matrix (links, "estimate_error", &l->estimate_error, 1.0);
}

json_t *topology_cluster_to_json (const struct topology_cluster *c)
{
    json_t *doc = json_deep_copy (c->doc), *links = json_object_get (doc, "links"),
           *intra = json_object_get (links, "intra");

    if (!doc)
        return NULL;
    if (c->has_gpu_matrix)
        inline_npy (json_object_get (links, "gpu"), &c->gpu_links);
    if (c->has_inter)
        inline_npy (json_object_get (links, "inter"), &c->inter);
    inline_matrix (json_object_get (links, c->has_gpu_matrix ? "gpu" : "inter"),
                   "node_pair_gb_per_s", &c->pair_bytes_per_s, UNITS_GB);
    for (int k = 0; k < c->n_rails; k++)
        inline_npy (
            json_array_get (json_object_get (json_object_get (links, "inter"), "rails"),
                            (size_t) k),
            &c->rail[k]);
    for (int k = 0; k < c->n_intra; k++)
        inline_npy (json_is_array (intra) ? json_array_get (intra, (size_t) k) : intra,
                    &c->intra[k]);
    return doc;
}

/* ---- what tells two files apart: all that is in them, the matrices beside them too ---- */

/* Append the digests of the .npy files that a document names. */
static enum status add_matrices (const json_t *doc, const char *folder, struct text *all,
                                 struct error *err)
{
    const char *name = json_member_text (doc, "npy"), *key;
    json_t *value;
    size_t i;

    if (name) {
        struct text path = {0};
        char *data, hex[65];
        size_t len;
        enum status st;

        text_add (&path, "%s%s", name[0] == '/' || !folder ? "" : folder, name);
        st = path.failed ? err_nomem (err)
                         : file_read_bytes (text_str (&path), &data, &len, err);
        text_free (&path);
        if (st != ST_OK)
            return st;
        file_sha256 (data, len, hex);
        free (data);
        text_add (all, "%s", hex);
    }
    json_object_foreach ((json_t *) doc, key, value)
        TRY (add_matrices (value, folder, all, err));
    json_array_foreach (doc, i, value) TRY (add_matrices (value, folder, all, err));
    return ST_OK;
}

enum status topology_file_sha256 (const char *file, const char *data, size_t len,
                                  char hex[65], struct error *err)
{
    struct text all = {0};
    char *folder;
    json_t *doc;
    enum status st;

    file_sha256 (data, len, hex);
    if (!memmem (data, len, "\"npy\"", strlen ("\"npy\"")))
        return ST_OK;
    TRY (json_parse (file_title (file), data, len, &doc, err));
    text_add (&all, "%s", hex);
    st = topology_folder (file, &folder, err);
    THEN (st, add_matrices (doc, folder, &all, err));
    if (st == ST_OK && all.failed)
        st = err_nomem (err);
    if (st == ST_OK)
        file_sha256 (text_str (&all), all.len, hex);
    json_decref (doc);
    free (folder);
    text_free (&all);
    return st;
}
