/* What tells two cluster files apart: all that is in them, the matrices beside them too. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "topology/topology.h"

/* Append the digests of the .npy files that a document names. */
static enum status add_matrices (const json_t *doc, const char *folder, int folder_len,
                                 struct text *all, struct error *err)
{
    const char *name = json_member_text (doc, "npy"), *key;
    json_t *value;
    size_t i;

    if (name) {
        struct text path = {0};
        char *data, hex[65];
        size_t len;
        enum status st;

        text_add (&path, "%.*s%s", name[0] == '/' ? 0 : folder_len, folder, name);
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
        TRY (add_matrices (value, folder, folder_len, all, err));
    json_array_foreach (doc, i, value)
        TRY (add_matrices (value, folder, folder_len, all, err));
    return ST_OK;
}

enum status topology_file_sha256 (const char *file, const char *data, size_t len,
                                  char hex[65], struct error *err)
{
    struct text all = {0};
    json_t *doc;
    enum status st;

    file_sha256 (data, len, hex);
    if (!memmem (data, len, "\"npy\"", strlen ("\"npy\"")))
        return ST_OK;
    TRY (json_parse (file_title (file), data, len, &doc, err));
    text_add (&all, "%s", hex);
    st = add_matrices (doc, file, (int) (file_name (file) - file), &all, err);
    if (st == ST_OK && all.failed)
        st = err_nomem (err);
    if (st == ST_OK)
        file_sha256 (text_str (&all), all.len, hex);
    json_decref (doc);
    text_free (&all);
    return st;
}
