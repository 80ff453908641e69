#include "topology/machine/import_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static const struct importer *const importers[] = {
    &import_hwloc,          &import_nccl,        &import_smi,
    &import_slurm_topology, &import_slurm_nodes, &import_ibnet};

#define N_IMPORTERS ((int) (sizeof importers / sizeof *importers))

const struct topology_format *topology_format_at (int i)
{
    return i < N_IMPORTERS ? &importers[i]->format : NULL;
}

const struct topology_format *topology_format_detect (const char *data, size_t len)
{
    for (int i = 0; i < N_IMPORTERS; i++)
        if (!file_not_text (data, len) && importers[i]->is (data, len))
            return &importers[i]->format;
    return NULL;
}

static const struct importer *choose (const struct import *in, const char *format,
                                      enum status *st)
{
    struct text names = {0};
    const struct importer *found = NULL;

    for (int i = 0; i < N_IMPORTERS && !found; i++)
        if (strcmp (format, "auto") == 0
                ? importers[i]->is (in->data, in->len)
                : strcmp (format, importers[i]->format.name) == 0)
            found = importers[i];
    for (int i = 0; i < N_IMPORTERS; i++)
        text_add (&names, "%s%s", i ? ", " : "", importers[i]->format.name);
    *st = found ? ST_OK
          : strcmp (format, "auto") == 0
              ? err_set (in->err, ST_INVALID,
                         "%s: not in a known format (%s); --format names one", in->name,
                         text_str (&names))
              : err_set (in->err, ST_USAGE, "--format: expected auto, %s; found \"%s\"",
                         text_str (&names), format);
    text_free (&names);
    return found;
}

/* The first line that is no UTF-8, 0 when all is.  XML names its own encoding. */
static int foreign_line (const char *data, size_t len)
{
    int line = 1;

    if (data[strspn (data, "\xef\xbb\xbf \t\r\n")] == '<')
        return 0;
    for (const char *p = data; p < data + len; line++) {
        const char *end = memchr (p, '\n', (size_t) (data + len - p));
        size_t n = end ? (size_t) (end - p) : (size_t) (data + len - p);
        json_t *text = json_stringn (p, n);

        if (!text)
            return line;
        json_decref (text);
        p += n + 1;
    }
    return 0;
}

enum status topology_import (const char *name, const char *data, size_t len,
                             const char *format, json_t **doc, struct notes *notes,
                             struct error *err)
{
    struct import in = {name, data, len, notes, err};
    const char *why = file_not_text (data, len);
    enum status st;
    int line;

    if (len == 0)
        return err_set (err, ST_INVALID, "%s: an empty file", name);
    if (why)
        return err_set (err, ST_INVALID, "%s: %s", name, why);
    if ((line = foreign_line (data, len)) > 0)
        return err_set (err, ST_INVALID, "%s: line %d: not UTF-8", name, line);

    const struct importer *importer = choose (&in, format, &st);

    return importer ? importer->read (&in, doc) : st;
}

/* ---- what importers share ---- */

char *import_base_name (const char *path)
{
    const char *slash = strrchr (path, '/'), *base = slash ? slash + 1 : path,
               *dot = strrchr (base, '.');

    return strndup (base, dot && dot > base ? (size_t) (dot - base) : strlen (base));
}

bool import_is_xml (const char *data, const char *root)
{
    size_t n = strlen (root);

    data += file_mark (data, strlen (data));
    for (;;) {
        data += strspn (data, " \t\r\n");
        if (*data != '<')
            return false;
        if (strncmp (data, "<!--", 4) == 0) {
            data = strstr (data, "-->");
            if (!data)
                return false;
            data += 3;
        } else if (data[1] == '?' || data[1] == '!') {
            /* A document type may hold tags of its own; they come before the root. */
            bool subset = false;

            for (; *data && (*data != '>' || subset); data++)
                subset = *data == '[' || (subset && *data != ']');
            if (!*data++)
                return false;
        } else
            return strncmp (data + 1, root, n) == 0 &&
                   strchr (" \t\r\n>/", data[n + 1]) != NULL && data[n + 1] != '\0';
    }
}

bool import_line (const char **at, struct text *line)
{
    const char *p = *at;
    size_t n;

    if (!p || !*p)
        return false;
    n = strcspn (p, "\n");
    line->len = 0;
    text_add_mem (line, "", 0);
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\033' && i + 1 < n && p[i + 1] == '[') {
            /* An escape sequence ends with a letter. */
            for (i += 2; i < n && !isalpha ((unsigned char) p[i]);)
                i++;
            continue;
        }
        if (p[i] != '\r')
            text_add_mem (line, &p[i], 1);
    }
    *at = p[n] ? p + n + 1 : p + n;
    return !line->failed;
}

int import_words (char *line, char **word, int max)
{
    char *save;
    int n = 0;

    for (char *w = strtok_r (line, " \t", &save); w && n < max;
         w = strtok_r (NULL, " \t", &save))
        word[n++] = w;
    return n;
}
