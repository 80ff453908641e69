/* Interleaved 1F1B in rounds: in round g stage k does the n-th forward of its
 * order, n = (p-1-k) + (v-1) p + g, then backward number g - (p-1-k).  All that either
 * waits for was done in the round before, or is the forward itself, so the latest ends are
 * the state, and no stage waits for another one's operation of the same round; lengths repeat
 * every p v rounds, and the state itself but for a shift after a few times as many.  With
 * p | m, the n-th forward is chunk n mod (p v) / p.
 *
 * A search plays this more than anything else, so what a round takes is laid out before:
 * lengths by round, and loops without a branch. */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <string.h>

struct interleaved {
    const struct costmodel_pipeline *p;
    double *fwd_end[2],
        *back_end[2]; /* [stages] after the round before and after this one */
    double *clock;    /* [stages] */
    double *fwd_s,
        *back_s; /* [p v * stages] by round: what each stage does, sends included
                               that hold it up */
    const double *way_s, *way_back_s; /* [stages] from a stage to the next, and to it */
};

static double chunk_fwd_s (const struct costmodel_pipeline *p, int chunk, int k)
{
    bool sends = p->blocking && (k < p->stages - 1 || chunk < p->chunks - 1);

    return p->fwd_s[chunk * p->stages + k] + (sends ? p->send_s[k] : 0.0);
}

static double chunk_back_s (const struct costmodel_pipeline *p, int chunk, int k)
{
    bool sends = p->blocking && (k > 0 || chunk > 0);

    return p->back_s[chunk * p->stages + k] +
           (sends ? p->return_s[k > 0 ? k - 1 : p->stages - 1] : 0.0);
}

/* Row r of the lengths is for rounds r, r + p v, ... */
static void lay_out (const struct interleaved *x)
{
    const struct costmodel_pipeline *p = x->p;
    int n = p->stages, v = p->chunks, period = n * v;

    for (int chunk = 0; chunk < v; chunk++)
        for (int k = 0; k < n; k++) {
            double fwd = chunk_fwd_s (p, chunk, k), back = chunk_back_s (p, chunk, k);
            /* Rounds of the first forward, and of the first backward, of the chunk. */
            int f = (chunk * n + k + 1) % period,
                b = ((v - 1 - chunk) * n + n - 1 - k) % period;

            for (int i = 0; i < n; i++) {
                x->fwd_s[f * n + k] = fwd;
                x->back_s[b * n + k] = back;
                f = f + 1 < period ? f + 1 : 0;
                b = b + 1 < period ? b + 1 : 0;
            }
        }
}

/* Stages from..to do a forward. @param[in] new_chunk  stage 0's is of chunk 0 */
static void forwards (const struct interleaved *x, int from, int to, const double *length,
                      bool new_chunk)
{
    int last = x->p->stages - 1;
    const double *restrict was = x->fwd_end[0], *restrict way = x->way_s;
    double *restrict end = x->fwd_end[1], *restrict clock = x->clock;

    if (from == 0) {
        double ready = new_chunk ? 0.0 : was[last] + way[last];

        end[0] = clock[0] = larger (clock[0], ready) + length[0];
        from = 1;
    }
#pragma omp simd
    for (int k = from; k <= to; k++)
        end[k] = clock[k] = larger (clock[k], was[k - 1] + way[k - 1]) + length[k];
}

/* Stages from..to do a backward. @param[in] new_chunk  the last one's follows its own
 * forward, done before */
static void backwards (const struct interleaved *x, int from, int to,
                       const double *length, bool new_chunk)
{
    int last = x->p->stages - 1;
    const double *restrict was = x->back_end[0], *restrict way = x->way_back_s;
    double *restrict end = x->back_end[1], *restrict clock = x->clock;

    if (to == last) {
        double ready = new_chunk ? 0.0 : was[0] + way[last];

        end[last] = clock[last] = larger (clock[last], ready) + length[last];
        to = last - 1;
    }
#pragma omp simd
    for (int k = from; k <= to; k++)
        end[k] = clock[k] = larger (clock[k], was[k + 1] + way[k]) + length[k];
}

static void swap (double *a[2])
{
    double *x = a[0];

    a[0] = a[1];
    a[1] = x;
}

/* @param[in] row  of the lengths */
static void interleaved_round (struct interleaved *x, int round, int row)
{
    const struct costmodel_pipeline *p = x->p;
    int n = p->stages, v = p->chunks, all = p->microbatches * v, last = n - 1;
    size_t bytes = (size_t) n * sizeof (double);
    /* Numbers of the last stage's forward and of stage 0's backward. */
    int at = (v - 1) * n + round, back = round - last;
    int from = at + last >= all ? at + last - all + 1 : 0, to = at < 0 ? last + at : last;

    if (from > 0 || to < last)
        memcpy (x->fwd_end[1], x->fwd_end[0], bytes);
    if (from <= to)
        forwards (x, from, to, x->fwd_s + row * n, row >= 1 && row <= n);
    swap (x->fwd_end);
    from = back < 0 ? -back : 0;
    to = back + last >= all ? all - 1 - back : last;
    if (from > 0 || to < last)
        memcpy (x->back_end[1], x->back_end[0], bytes);
    if (from <= to)
        backwards (x, from, to, x->back_s + row * n, row < n);
    swap (x->back_end);
}

void interleaved_play (const struct costmodel_pipeline *p, bool skip, double *end_s,
                       double *work)
{
    int n = p->stages, width = 2 * n, period = n * p->chunks, seen = 0;
    int all = p->microbatches * p->chunks, steady = all - period;
    double *none = work + 5 * n, *history = work + 6 * n;
    struct interleaved x = {.p = p,
                            .fwd_end = {work, work + n},
                            .back_end = {work + 2 * n, work + 3 * n},
                            .clock = work + 4 * n,
                            .way_s = p->send_s,
                            .way_back_s = p->return_s};

    x.fwd_s = history + (n + 1) * width;
    x.back_s = x.fwd_s + period * n;
    memset (work, 0, 6 * (size_t) n * sizeof *work);
    if (p->blocking)
        x.way_s = x.way_back_s = none;
    lay_out (&x);
    for (int g = 1 - period, row = 1 % period; g < all + n - 1; g++) {
        double *now = history + seen % (n + 1) * width, shift;

        interleaved_round (&x, g, row);
        row = row + 1 < period ? row + 1 : 0;
        /* Rounds n-1 .. steady all do one forward and one backward on every stage. */
        if (!skip || g < n - 1 || g > steady || (g - n + 1) % period != 0)
            continue;
        memcpy (now, x.fwd_end[0], (size_t) n * sizeof *now);
        memcpy (now + n, x.back_end[0], (size_t) n * sizeof *now);
        for (int q = 1; q <= seen && q <= n; q++)
            if (shifted (now, history + (seen - q) % (n + 1) * width, width, &shift)) {
                int periods = (steady - g) / (q * period);

                for (int k = 0; k < n; k++) {
                    x.fwd_end[0][k] += periods * shift;
                    x.clock[k] = x.back_end[0][k] += periods * shift;
                }
                g += periods * q * period;
                skip = false;
                break;
            }
        seen++;
    }
    memcpy (end_s, x.back_end[0], (size_t) n * sizeof *end_s);
}
