/* Matrix products on a GPU: tiles, waves, alignment. */
#include "costmodel/costmodel_private.h"

#include <math.h>

/* Output tiles of the vendors' libraries, and the part of the best rate that a kernel with
 * such tiles reaches (docs/formulas.md, T13; the small ones keep the ratio of reuse,
 * m n / (m + n), in between). */
static const struct {
    double m, n, part;
} tiles[] = {
    {128, 256, 1.0}, {256, 128, 1.0}, {128, 128, .9}, {128, 64, .7}, {64, 64, .5}};

/* How much of a wave's idle multiprocessors costs time (persistent kernels and split-K
 * hide the rest; the same source). */
#define QUANTISATION 0.63
/* More than rounding takes of a time. */
#define ALMOST (1 - 1e-12)
/* Least depth of one part when the inner dimension is split among multiprocessors. */
#define SPLIT_DEPTH 512.0

/* Rows of n elements that do not start on a full memory transaction (128 bytes: NVIDIA,
 * "Matrix Multiplication Background") are read in pieces.  Odd sizes leave the tensor cores'
 * 16-byte loads altogether.  An element of fewer bytes than one has half of one: its block's
 * scale lies elsewhere. */
static double alignment (double n, double element_bytes)
{
    double bytes = n * (element_bytes < 1.0 ? 0.5 : element_bytes);

    if (fmod (bytes, 128) == 0)
        return 1.0;
    if (fmod (bytes, 64) == 0)
        return .9;
    if (fmod (bytes, 32) == 0)
        return .8;
    return fmod (bytes, 16) == 0 ? .65 : .15;
}

/* The product whose operands lie in memory by rows of `one` and `other` elements. */
static double by_rows_s (const struct machine *g, double batch, double m, double n,
                         double k, double one, double other)
{
    double flop = 2.0 * batch * m * n * k, best = INFINITY;
    double bytes = g->element_bytes * batch * (m * k + k * n + m * n);
    double rate = g->matrix_rate * smaller (alignment (one, g->element_bytes),
                                            alignment (other, g->element_bytes));

    double full_s = ALMOST * flop / rate; /* nothing padded, in the best tiles */

    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        double waves, split, whole, padded;

        if (full_s >= best * tiles[i].part)
            continue; /* it cannot be less */
        waves =
            batch * ceil (m / tiles[i].m) * ceil (n / tiles[i].n) / g->multiprocessors;
        split = waves < 0.5 ? smaller (floor (1.0 / waves), ceil (k / SPLIT_DEPTH)) : 1;
        whole = ceil (waves * split);
        padded = larger (flop, whole / split * g->multiprocessors * 2.0 * tiles[i].m *
                                   tiles[i].n * k);
        best = smaller (best, ((1.0 - QUANTISATION) * flop + QUANTISATION * padded) /
                                      (rate * tiles[i].part) +
                                  whole * g->wave_s);
    }
    return larger (best, bytes / g->memory_rate);
}

double product_s (const struct machine *g, double batch, double m, double n, double k)
{
    return by_rows_s (g, batch, m, n, k, n, k);
}

double weights_product_s (const struct machine *g, double batch, double m, double n,
                          double k)
{
    return by_rows_s (g, batch, m, n, k, m, n);
}
