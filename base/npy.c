#include "base/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define HOST_IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* Where entry i, j lies. */
static unsigned char *place (const struct npy *m, size_t i, size_t j)
{
    return m->entry + (m->fortran ? j * m->n + i : i * m->n + j) * (size_t) m->item;
}

static bool swapped (const struct npy *m)
{
    return m->big_endian != HOST_IS_BIG_ENDIAN;
}

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

/* How many entries there are, and of which kind. */
static enum status read_dict (const char *path, const char *dict, struct npy *m,
                              struct error *err)
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
    m->big_endian = sign == '>' || (sign == '=' && HOST_IS_BIG_ENDIAN);
    m->fortran = strncmp (order, "True", 4) == 0;
    m->item = item;
    m->n = (size_t) rows;
    return ST_OK;
}

/* What the header of the mapped file says. */
static enum status parse_header (const char *path, struct npy *m, struct error *err)
{
    char dict[DICT_MAX + 1];
    size_t start = 0, entries;
    bool plain;

    TRY (find_dict (path, m, dict, &start, err));
    TRY (read_dict (path, dict, m, err));
    m->entry = (unsigned char *) m->map + start;
    entries = m->n * m->n * (size_t) m->item;
    if (m->map_len != start + entries)
        return err_set (err, ST_INVALID,
                        "%s: expected %zu bytes for %zu x %zu entries, found %zu", path,
                        start + entries, m->n, m->n, m->map_len);
    plain = !swapped (m) && !m->fortran && start % (size_t) m->item == 0;
    if (plain && m->item == 8)
        m->v = (const double *) (const void *) m->entry;
    if (plain && m->item == 4)
        m->f = (const float *) (const void *) m->entry;
    return ST_OK;
}

static double load (const unsigned char *from, int item, bool swap)
{
    uint32_t four;
    uint64_t eight;
    float f;
    double d;

    if (item == 4) {
        memcpy (&four, from, sizeof four);
        four = swap ? __builtin_bswap32 (four) : four;
        memcpy (&f, &four, sizeof f);
        return (double) f;
    }
    memcpy (&eight, from, sizeof eight);
    eight = swap ? __builtin_bswap64 (eight) : eight;
    memcpy (&d, &eight, sizeof d);
    return d;
}

double npy_at (const struct npy *m, size_t i, size_t j)
{
    return m->v ? m->v[i * m->n + j] : load (place (m, i, j), m->item, swapped (m));
}

void npy_strip (const struct npy *m, bool columns, size_t first, size_t n, double *out)
{
    size_t item = (size_t) m->item;
    bool swap = swapped (m);

    /* Memory in its order, whichever way `out` goes. */
    if (columns == m->fortran) {
        const unsigned char *from = m->entry + first * m->n * item;

        for (size_t k = 0; k < n * m->n; k++)
            out[k] = load (from + k * item, m->item, swap);
        return;
    }
    for (size_t x = 0; x < m->n; x++)
        for (size_t k = 0; k < n; k++)
            out[k * m->n + x] =
                load (m->entry + (x * m->n + first + k) * item, m->item, swap);
}

void npy_set (struct npy *m, size_t i, size_t j, double x)
{
    float f = (float) x;
    uint32_t four;
    uint64_t eight;

    if (m->item == 4) {
        memcpy (&four, &f, sizeof four);
        four = swapped (m) ? __builtin_bswap32 (four) : four;
        memcpy (place (m, i, j), &four, sizeof four);
        return;
    }
    memcpy (&eight, &x, sizeof eight);
    eight = swapped (m) ? __builtin_bswap64 (eight) : eight;
    memcpy (place (m, i, j), &eight, sizeof eight);
}

enum status npy_map (const char *path, struct npy *m, struct error *err)
{
    struct stat sb;
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return file_failed (path, err);
    if (fstat (fd, &sb) != 0 || !S_ISREG (sb.st_mode)) {
        close (fd);
        return err_set (err, ST_INVALID, "%s: expected a regular file", path);
    }

    size_t len = (size_t) sb.st_size;
    struct npy found = {.map_len = len};
    enum status st;

    found.map =
        len ? mmap (NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0)
            : NULL;
    st = found.map == MAP_FAILED ? file_failed (path, err) : ST_OK;
    close (fd);
    if (len == 0)
        return err_set (err, ST_INVALID, "%s: expected a .npy file, found an empty file",
                        path);
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
