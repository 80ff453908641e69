#include "base/npy.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define HOST_IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* The text after 'key': in the header's Python dictionary, or NULL. */
static const char *member (const char *dict, const char *key)
{
    const char *p = strstr (dict, key);

    if (!p)
        return NULL;
    p += strlen (key);
    while (*p == ' ' || *p == ':')
        p++;
    return p;
}

#define DICT_MAX 65536

/* The mapped file's header without its numbers: a Python dictionary.
 * @param[out] start  where the entries begin */
static enum status find_dict (const char *path, const struct npy *m,
                              char dict[DICT_MAX + 1], size_t *start, struct error *err)
{
    const unsigned char *map = m->map;
    size_t dict_len, from;
    int major;

    if (m->map_len < 12 || memcmp (map, "\x93NUMPY", 6) != 0)
        return err_set (err, ST_INVALID, "%s: expected a .npy file, found something else",
                        path);
    major = map[6];
    if (major < 1 || major > 3)
        return err_set (err, ST_INVALID,
                        "%s: expected .npy format version 1 to 3, found %d", path, major);
    dict_len = (size_t) map[8] | (size_t) map[9] << 8;
    if (major > 1)
        dict_len |= (size_t) map[10] << 16 | (size_t) map[11] << 24;
    from = major > 1 ? 12 : 10;
    if (dict_len > DICT_MAX || dict_len > m->map_len - from)
        return err_set (err, ST_INVALID, "%s: the .npy header is cut off", path);
    memcpy (dict, map + from, dict_len);
    dict[dict_len] = '\0';
    *start = from + dict_len;
    return ST_OK;
}

/* What the header says of the entries. */
struct form {
    size_t item; /* bytes of an entry */
    bool swapped, fortran;
};

/* How many entries there are, and of which kind. */
static enum status read_dict (const char *path, const char *dict, struct npy *m,
                              struct form *form, struct error *err)
{
    const char *descr = member (dict, "'descr'"),
               *order = member (dict, "'fortran_order'"),
               *shape = member (dict, "'shape'");
    unsigned long long rows, cols;
    char sign, quote;
    int item;

    if (!descr || !order || !shape)
        return err_set (err, ST_INVALID,
                        "%s: the .npy header lacks descr, fortran_order or shape", path);
    if (sscanf (descr, "'%cf%d%c", &sign, &item, &quote) != 3 || quote != '\'' ||
        (item != 4 && item != 8) || !strchr ("<>=", sign))
        return err_set (err, ST_INVALID,
                        "%s: expected entries of type f4 or f8, found %.*s", path,
                        (int) strcspn (descr, ",}"), descr);
    if (sscanf (shape, "(%llu, %llu)", &rows, &cols) != 2 || rows != cols || rows == 0 ||
        rows > 1 << 20)
        return err_set (err, ST_INVALID,
                        "%s: expected a square matrix, found shape %.*s)", path,
                        (int) strcspn (shape, ")}\n"), shape);
    *form = (struct form){(size_t) item, sign == (HOST_IS_BIG_ENDIAN ? '<' : '>'),
                          strncmp (order, "True", 4) == 0};
    m->n = (size_t) rows;
    return ST_OK;
}

static void exchange (unsigned char *a, unsigned char *b, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        unsigned char x = a[k];

        a[k] = b[k];
        b[k] = x;
    }
}

/* Entries as the host has them, in C order: what lies otherwise is put right in the mapping, which
 * is private. */
static void put_right (struct npy *m, unsigned char *entry, const struct form *form)
{
    size_t n = m->n, item = form->item;

    if ((size_t) (entry - (unsigned char *) m->map) % item != 0)
        entry = memmove (m->map, entry, n * n * item);
    for (size_t k = 0; form->swapped && k < n * n * item; k += item)
        for (size_t b = 0; b < item / 2; b++)
            exchange (entry + k + b, entry + k + item - 1 - b, 1);
    for (size_t i = 0; form->fortran && i < n; i++)
        for (size_t j = 0; j < i; j++)
            exchange (entry + (i * n + j) * item, entry + (j * n + i) * item, item);
    if (item == 8)
        m->v = (double *) (void *) entry;
    else
        m->f = (float *) (void *) entry;
}

/* What the header of the mapped file says. */
static enum status parse_header (const char *path, struct npy *m, struct error *err)
{
    char dict[DICT_MAX + 1];
    size_t start = 0, entries;
    struct form form = {0};

    TRY (find_dict (path, m, dict, &start, err));
    TRY (read_dict (path, dict, m, &form, err));
    entries = m->n * m->n * form.item;
    if (m->map_len != start + entries)
        return err_set (err, ST_INVALID,
                        "%s: expected %zu bytes for %zu x %zu entries, found %zu", path,
                        start + entries, m->n, m->n, m->map_len);
    put_right (m, (unsigned char *) m->map + start, &form);
    return ST_OK;
}

enum status npy_map (const char *path, struct npy *m, struct error *err)
{
    struct npy found = {0};
    enum status st = ST_OK;
    struct stat sb;
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return file_failed (path, err);
    if (fstat (fd, &sb) != 0 || !S_ISREG (sb.st_mode)) {
        st = err_set (err, ST_INVALID, "%s: expected a regular file", path);
    } else if (sb.st_size == 0) {
        st = err_set (err, ST_INVALID, "%s: expected a .npy file, found an empty file",
                      path);
    } else {
        found.map_len = (size_t) sb.st_size;
        found.map = mmap (NULL, found.map_len, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_NORESERVE, fd, 0);
        st = found.map == MAP_FAILED ? file_failed (path, err) : ST_OK;
    }
    close (fd);
    TRY (st);
    st = parse_header (path, &found, err);
    if (st == ST_OK)
        *m = found;
    else
        npy_close (&found);
    return st;
}

void npy_close (struct npy *m)
{
    if (m->map)
        munmap (m->map, m->map_len);
    *m = (struct npy){0};
}

void npy_header (size_t n, int item, char out[NPY_HEADER])
{
    enum { PREAMBLE = 10 };
    char dict[NPY_HEADER];
    size_t used = (size_t) snprintf (
        dict, sizeof dict,
        "{'descr': '%cf%d', 'fortran_order': False, 'shape': (%zu, %zu), }",
        HOST_IS_BIG_ENDIAN ? '>' : '<', item, n, n);

    memset (out, ' ', NPY_HEADER);
    memcpy (out, "\x93NUMPY\x01\x00", 8);
    out[8] = NPY_HEADER - PREAMBLE;
    out[9] = 0;
    memcpy (out + PREAMBLE, dict, used);
    out[NPY_HEADER - 1] = '\n';
}

enum status npy_write (const char *path, const double *v, size_t n, struct error *err)
{
    size_t len = NPY_HEADER + n * n * sizeof *v;
    char *out = malloc (len);
    enum status st;

    if (!out)
        return err_nomem (err);
    npy_header (n, sizeof *v, out);
    memcpy (out + NPY_HEADER, v, n * n * sizeof *v);
    st = file_write (path, out, len, err);
    free (out);
    return st;
}
