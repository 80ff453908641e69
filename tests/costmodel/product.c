/* One matrix product (docs/formulas.md, T13): tiles, waves, alignment, operands. */
#include "tests/lib/fixture.h"

#include "costmodel/costmodel_private.h"

/* Of an aligned product's FLOPs over the rate; a wave starts in a hundredth of that. */
TEST (product_waves)
{
    static const struct {
        double batch, m, n, k, multiprocessors;
        double time, waves;
    } t[] = {
        {1, 128, 256, 64, 1, 1, 1},      /* one tile, one wave */
        {1, 256, 128, 64, 1, 1, 1},      /* the same lying */
        {3, 128, 256, 64, 3, 1, 1},      /* a batch fills the wave */
        {2, 128, 256, 64, 1, 1, 2},      /* two waves */
        {1, 128, 256, 64, 4, 1 / .7, 1}, /* smaller tiles, all four busy */
        {1, 128, 128, 64, 1, 1 / .9, 1},
        {1, 128, 256, 2048, 4, 1, 1}, /* four parts of the inner dimension */
        {1, 128, 256, 1536, 4, .37 + .63 * 4 / 3, 1}, /* three, one idle */
        {1, 256, 384, 64, 2, 1 / .9, 3},              /* three waves of smaller tiles */
    };

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        double flop = 2 * t[i].batch * t[i].m * t[i].n * t[i].k;
        struct machine g = {.matrix_rate = 1e12,
                            .memory_rate = 1e30,
                            .wave_s = 1e-3 * flop / 1e12,
                            .multiprocessors = t[i].multiprocessors,
                            .element_bytes = 2};
        double s = product_s (&g, t[i].batch, t[i].m, t[i].n, t[i].k) / flop * 1e12;

        if (fabs (s - t[i].time - 1e-3 * t[i].waves) > 1e-9)
            fail_msg ("product %zu takes %.6f, not %.6f", i, s,
                      t[i].time + 1e-3 * t[i].waves);
    }
}

/* The worse of the two rows' alignment slows it; at least its operands are moved. */
TEST (product_limits)
{
    static const double n[] = {128, 96, 80, 72, 68}, part[] = {1, .9, .8, .65, .15};
    struct machine g = {.matrix_rate = 1e12,
                        .memory_rate = 1e30,
                        .multiprocessors = 1,
                        .element_bytes = 2};
    double whole = product_s (&g, 1, 128, 128, 128);

    for (int i = 0; i < 5; i++) { /* one tile pads any of these to 128 */
        double k = product_s (&g, 1, 128, 128, n[i]) / n[i] * 128;

        CLOSE (k, whole / part[i], 1e-9);
        CLOSE (product_s (&g, 1, 128, n[i], 128),
               fmin (1 / .9 * (.37 * n[i] + .63 * 128) / 128,
                     1 / .7 * (.37 * n[i] + .63 * (n[i] > 64 ? 128 : 64)) / 128) *
                   .9 * whole / part[i],
               1e-9);
    }
    for (int i = 0; i < 5; i++) { /* tokens are no row's length, inputs and outputs are */
        CLOSE (weights_product_s (&g, 1, 128, 128, n[i]), n[i] / 128 * whole, 1e-9);
        CLOSE (weights_product_s (&g, 1, n[i], 128, 128),
               product_s (&g, 1, 128, n[i], 128), 1e-9);
    }
    /* A transaction has fewer wide elements, more narrow ones. */
    for (int i = 0; i < 5; i++) {
        g.element_bytes = 4;
        CLOSE (product_s (&g, 1, 128, 128, n[i] / 2), n[i] / 256 * whole / part[i], 1e-9);
        g.element_bytes = 1;
        CLOSE (product_s (&g, 1, 128, 128, n[i] * 2), n[i] / 64 * whole / part[i], 1e-9);
        g.element_bytes = .56; /* .5, and a scale for every block */
        CLOSE (product_s (&g, 1, 128, 256, n[i] * 4),
               n[i] / 32 * 2 * .9 * whole / part[i], 1e-9);
        g.element_bytes = 2;
    }
    g.memory_rate = 1e6;
    CLOSE (product_s (&g, 3, 128, 64, 32),
           2.0 * 3 * (128 * 64 + 64 * 32 + 128 * 32) / 1e6, 1e-12);
}
