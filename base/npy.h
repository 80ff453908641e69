/* NumPy .npy matrices (format versions 1 to 3), mapped into memory.
 * Source of the layout: numpy.lib.format, "Format Version 1.0". */
#ifndef BASE_NPY_H
#define BASE_NPY_H

#include <stddef.h>

#include "base/error.h"

/** A square matrix in a file that is mapped: [n*n] row-major, NaN where the file says so; one of v
 *  and f is NULL. */
struct npy {
    double *v;
    float *f;
    size_t n;
    void *map; /* changes of its entries stay in memory */
    size_t map_len;
};

/** Map a two-dimensional square matrix of floats: of 4 or 8 bytes, in either byte order, in C
 *  or Fortran order.
 *
 *  @param[in]  path  a regular file of exactly the size that its header says
 *  @param[out] m     release with npy_close
 *  @return ST_OK, ST_IO, or ST_INVALID for anything but such a matrix
 */
enum status npy_map (const char *path, struct npy *m, struct error *err);

/** Write a square matrix as format version 1, native 8-byte floats in C order, whole or not
 *  at all.
 *
 *  @param[in] v  [n*n] row-major; NaN may occur
 *  @param[in] n  1 or more
 *  @return ST_OK, ST_IO, ST_NOMEM
 */
enum status npy_write (const char *path, const double *v, size_t n, struct error *err);

/** Safe on a zeroed struct. */
void npy_close (struct npy *m);

/** Header of an n x n matrix of native floats in C order, to be written before them.
 *
 *  @param[in]  item  bytes of an entry: 4 or 8
 *  @param[out] out   all NPY_HEADER bytes are filled
 */
#define NPY_HEADER 128
void npy_header (size_t n, int item, char out[NPY_HEADER]);

#endif
