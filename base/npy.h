/* NumPy .npy matrices (format versions 1 to 3), mapped into memory.
 * Source of the layout: numpy.lib.format, "Format Version 1.0". */
#ifndef BASE_NPY_H
#define BASE_NPY_H

#include <stddef.h>

#include "base/error.h"

/** A square matrix from a file. */
struct npy {
    const double *v; /* [n*n] row-major; NaN where the file says so */
    size_t n;
    void *map; /* the mapping, or NULL when v was converted into own memory */
    size_t map_len;
    double *own;
};

/** Map a two-dimensional square matrix of floats.
 *
 *  Native 8-byte floats in C order are used where they lie; 4-byte floats, the other
 *  byte order and Fortran order are converted into memory.
 *
 *  @param[in]  path  a regular file of exactly the size that its header says
 *  @param[out] m     release with npy_close
 *  @return ST_OK, ST_IO, ST_NOMEM, or ST_INVALID for anything but such a matrix
 */
enum status npy_open (const char *path, struct npy *m, struct error *err);

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

#endif
