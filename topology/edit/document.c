/* Documents with large matrices beside them, written whole or not at all. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/npy.h"
#include "topology/edit/edit.h"

void topology_document_release (struct topology_document *d)
{
    for (int k = 0; k < d->n_sides; k++) {
        json_decref (d->side[k].reference);
        free (d->side[k].bytes);
    }
    free (d->side);
    json_decref (d->doc);
    *d = (struct topology_document){0};
}

/* Bytes become a side file of the matrix {"npy": ...}.  Both are stolen. */
static enum status add_side (struct topology_document *d, json_t *reference, char *bytes,
                             size_t len, struct error *err)
{
    if (!reference || !array_grow (&d->side, d->n_sides, sizeof *d->side)) {
        json_decref (reference);
        free (bytes);
        return err_nomem (err);
    }
    d->side[d->n_sides++] = (struct topology_side){reference, bytes, len};
    return ST_OK;
}

static json_t *rows_json (const float *v, int n)
{
    json_t *rows = json_array ();

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float x = v[(size_t) i * (size_t) n + (size_t) j];
            char digits[32];

            /* The shortest text that is this float again. */
            snprintf (digits, sizeof digits, "%.6g", (double) x);
            if (strtof (digits, NULL) != x)
                snprintf (digits, sizeof digits, "%.9g", (double) x);
            json_array_append_new (
                json_row_in (rows, i),
                json_number_or_null (i == j ? NAN : strtod (digits, NULL)));
        }
    return rows;
}

/* The room begins with the header of the .npy file that it may become. */
float *topology_matrix_room (int n)
{
    size_t cells = (size_t) n * (size_t) n;
    char *bytes = malloc (NPY_HEADER + cells * sizeof (float));
    float *v = bytes ? (float *) (void *) (bytes + NPY_HEADER) : NULL;

    for (size_t k = 0; v && k < cells; k++)
        v[k] = NAN;
    return v;
}

static char *bytes_of (float *v)
{
    return (char *) v - NPY_HEADER;
}

void topology_matrix_drop (float *v)
{
    if (v)
        free (bytes_of (v));
}

enum status topology_document_matrix (struct topology_document *d, json_t *object,
                                      const char *key, float *v, int n, bool npy,
                                      struct error *err)
{
    size_t len = NPY_HEADER + (size_t) n * (size_t) n * sizeof *v;
    json_t *reference;

    if (n <= TOPOLOGY_INLINE_MAX && !npy) {
        json_object_set_new (object, key, rows_json (v, n));
        topology_matrix_drop (v);
        return ST_OK;
    }
    npy_header ((size_t) n, sizeof *v, bytes_of (v));
    for (int i = 0; i < n; i++)
        v[(size_t) i * (size_t) n + (size_t) i] = NAN;
    reference = json_pack ("{s:s}", "npy", "");
    json_object_set (object, key, reference);
    return add_side (d, reference, bytes_of (v), len, err);
}

/* ---- writing ---- */

enum status topology_document_write (struct topology_document *d, const char *path,
                                     struct error *err)
{
    char *behind, *folder, *text = NULL;
    const char *base;
    struct file_item *item;
    enum status st;

    if (d->n_sides == 0)
        return json_write (path, d->doc, err);
    behind = file_behind (path);
    base = behind ? file_name (behind) : "";
    folder = behind ? file_folder (behind) : NULL;
    item = calloc ((size_t) d->n_sides + 1, sizeof *item);
    st = folder && item ? ST_OK : err_nomem (err);
    if (st == ST_OK && file_is_stream (path))
        st = err_set (err, ST_USAGE,
                      "%s cannot take matrices of more than %d endpoints: name a file",
                      file_open_number (path) == 1 ? "standard output" : path,
                      TOPOLOGY_INLINE_MAX);
    for (int k = 0; k < d->n_sides && st == ST_OK; k++) {
        struct text name = {0};

        text_add (&name, "%.*s.%d.npy", file_stem (base), base, k); /* of "big.json" */
        item[k] = (struct file_item){name.s, d->side[k].bytes, d->side[k].len, 0644};
        json_object_set_new (d->side[k].reference, "npy", json_string (text_str (&name)));
        if (name.failed)
            st = err_nomem (err);
    }
    THEN (st, (text = json_text (d->doc)) ? ST_OK : err_nomem (err));
    if (st == ST_OK) {
        item[d->n_sides] = (struct file_item){base, text, strlen (text), 0644};
        st = file_write_set (folder, item, d->n_sides + 1, err);
    }
    for (int k = 0; item && k < d->n_sides; k++)
        free ((char *) item[k].path);
    FREE_ALL (item, behind, folder, text);
    return st;
}

/* ---- reading ---- */

/* Take the file of a {"npy": FILE} over. */
static enum status adopt (struct topology_document *d, json_t *matrix, const char *folder,
                          struct error *err)
{
    const char *name = json_member_text (matrix, "npy");
    char path[PATH_MAX], *bytes;
    size_t len;

    if (!name)
        return ST_OK;
    snprintf (path, sizeof path, "%s%s", name[0] == '/' ? "" : folder, name);
    TRY (file_read_bytes (path, &bytes, &len, err));
    return add_side (d, json_incref (matrix), bytes, len, err);
}

static enum status adopt_links (struct topology_document *d, json_t *links,
                                const char *folder, struct error *err)
{
    static const char *const keys[] = {"bandwidth_gb_per_s", "latency_us",
                                       "node_pair_gb_per_s", "estimate_error"};

    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        TRY (adopt (d, json_object_get (links, keys[k]), folder, err));
    return ST_OK;
}

enum status topology_document_adopt (struct topology_document *d, const char *folder,
                                     struct error *err)
{
    json_t *links = json_object_get (d->doc, "links"),
           *intra = json_object_get (links, "intra"),
           *inter = json_object_get (links, "inter"), *one;
    size_t k;

    TRY (adopt_links (d, json_object_get (links, "gpu"), folder, err));
    TRY (adopt_links (d, inter, folder, err));
    TRY (adopt_links (d, intra, folder, err)); /* nothing in a list */
    json_array_foreach (intra, k, one) TRY (adopt_links (d, one, folder, err));
    json_array_foreach (json_object_get (inter, "rails"), k, one)
        TRY (adopt_links (d, one, folder, err));
    return ST_OK;
}

enum status topology_document_read (const char *arg, const char *out,
                                    struct topology_document *d, struct notes *notes,
                                    struct error *err)
{
    struct topology_cluster *c = NULL;
    struct topology_document x = {0};
    char *behind = file_behind (out), *to = behind ? file_folder (behind) : NULL, *from;
    enum status st =
        to ? topology_cluster_read_partial (arg, &c, notes, err) : err_nomem (err);

    if (st == ST_OK) {
        from = c->folder ? c->folder : ".";
        if (!(x.doc = json_deep_copy (c->doc)))
            st = err_nomem (err);
        else if (!file_same (from, to))
            st = topology_document_adopt (&x, c->folder ? c->folder : "", err);
    }
    topology_cluster_destroy (c);
    FREE_ALL (behind, to);
    if (st == ST_OK)
        *d = x;
    else
        topology_document_release (&x);
    return st;
}
