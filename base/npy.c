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

struct header {
    bool big_endian, fortran;
    int item; /* bytes: 4 or 8 */
    size_t n;
    size_t data; /* offset of the first entry */
};

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

static enum status parse_header (const char *path, const unsigned char *map, size_t len,
                                 struct header *h, struct error *err)
{
    if (len < 12 || memcmp (map, "\x93NUMPY", 6) != 0)
        return err_set (err, ST_INVALID, "%s: expected a .npy file, found something else",
                        path);

    int major = map[6];
    size_t dict_len, start;

    if (major == 1) {
        dict_len = (size_t) map[8] | (size_t) map[9] << 8;
        start = 10;
    } else if (major == 2 || major == 3) {
        dict_len = (size_t) map[8] | (size_t) map[9] << 8 | (size_t) map[10] << 16 |
                   (size_t) map[11] << 24;
        start = 12;
    } else {
        return err_set (err, ST_INVALID,
                        "%s: expected .npy format version 1 to 3, found %d", path, major);
    }
    if (dict_len > 65536 || dict_len > len - start)
        return err_set (err, ST_INVALID, "%s: the .npy header is cut off", path);

    char dict[65537];

    memcpy (dict, map + start, dict_len);
    dict[dict_len] = '\0';

    const char *descr = member (dict, "'descr'"),
               *order = member (dict, "'fortran_order'"),
               *shape = member (dict, "'shape'");
    unsigned long long rows, cols;
    char sign, quote;
    int item;

    if (!descr || !order || !shape)
        return err_set (err, ST_INVALID,
                        "%s: the .npy header lacks descr, fortran_order "
                        "or shape",
                        path);
    if (sscanf (descr, "'%cf%d%c", &sign, &item, &quote) != 3 || quote != '\'' ||
        (item != 4 && item != 8) || !strchr ("<>=", sign))
        return err_set (err, ST_INVALID,
                        "%s: expected entries of type f4 or f8, found %.16s", path,
                        descr);
    if (sscanf (shape, "(%llu, %llu)", &rows, &cols) != 2 || rows != cols || rows == 0 ||
        rows > 1 << 20)
        return err_set (err, ST_INVALID,
                        "%s: expected a square matrix, found shape %.40s", path, shape);
    h->big_endian = sign == '>';
    h->fortran = strncmp (order, "True", 4) == 0;
    h->item = item;
    h->n = (size_t) rows;
    h->data = start + dict_len;
    if (len != h->data + h->n * h->n * (size_t) item)
        return err_set (err, ST_INVALID,
                        "%s: expected %zu bytes for %zu x %zu entries, found %zu", path,
                        h->data + h->n * h->n * (size_t) item, h->n, h->n, len);
    return ST_OK;
}

static double entry (const unsigned char *p, const struct header *h)
{
    unsigned char b[8];
    float f;
    double d;

    for (int i = 0; i < h->item; i++)
        b[i] = p[h->big_endian ? h->item - 1 - i : i];
    if (h->item == 4) {
        memcpy (&f, b, sizeof f);
        return (double) f;
    }
    memcpy (&d, b, sizeof d);
    return d;
}

static enum status convert (const unsigned char *map, const struct header *h,
                            struct npy *m, struct error *err)
{
    const unsigned char *data = map + h->data;
    double *own = malloc (h->n * h->n * sizeof *own);

    if (!own)
        return err_nomem (err);
    for (size_t i = 0; i < h->n; i++)
        for (size_t j = 0; j < h->n; j++) {
            size_t at = h->fortran ? j * h->n + i : i * h->n + j;

            own[i * h->n + j] = entry (data + at * (size_t) h->item, h);
        }
    *m = (struct npy){.v = own, .n = h->n, .own = own};
    return ST_OK;
}

enum status npy_open (const char *path, struct npy *m, struct error *err)
{
    struct stat sb;
    struct header h;
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return err_set (err, ST_IO, "%s: %s", path, strerror (errno));
    if (fstat (fd, &sb) != 0 || !S_ISREG (sb.st_mode)) {
        close (fd);
        return err_set (err, ST_INVALID, "%s: expected a regular file", path);
    }

    size_t len = (size_t) sb.st_size;
    unsigned char *map =
        len ? mmap (NULL, len, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    int why = errno;

    close (fd);
    if (len == 0)
        return err_set (err, ST_INVALID, "%s: expected a .npy file, found an empty file",
                        path);
    if (map == MAP_FAILED)
        return err_set (err, ST_IO, "%s: %s", path, strerror (why));

    enum status st = parse_header (path, map, len, &h, err);

    if (st == ST_OK && !h.big_endian && !h.fortran && h.item == 8 && h.data % 8 == 0) {
        *m = (struct npy){.v = (const double *) (const void *) (map + h.data),
                          .n = h.n,
                          .map = map,
                          .map_len = len};
        return ST_OK;
    }
    if (st == ST_OK)
        st = convert (map, &h, m, err);
    munmap (map, len);
    return st;
}

enum status npy_write (const char *path, const double *v, size_t n, struct error *err)
{
    enum { START = 10, HEADER = 118 }; /* together a multiple of 64, as the format asks */
    const uint16_t probe = 1;
    char order = *(const unsigned char *) &probe ? '<' : '>';
    size_t len = START + HEADER + n * n * sizeof *v;
    char *out = malloc (len + 1);

    if (!out)
        return err_nomem (err);
    memcpy (out, "\x93NUMPY\x01\x00", 8);
    out[8] = HEADER;
    out[9] = 0;

    int used = snprintf (
        out + START, HEADER,
        "{'descr': '%cf8', 'fortran_order': False, 'shape': (%zu, %zu), }", order, n, n);

    memset (out + START + used, ' ', (size_t) (HEADER - used));
    out[START + HEADER - 1] = '\n';
    memcpy (out + START + HEADER, v, n * n * sizeof *v);

    enum status st = file_write (path, out, len, err);

    free (out);
    return st;
}

void npy_close (struct npy *m)
{
    if (m->map)
        munmap (m->map, m->map_len);
    free (m->own);
    *m = (struct npy){0};
}
