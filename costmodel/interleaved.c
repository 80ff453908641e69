/* Interleaved 1F1B (orders.h) in rounds: in round g stage k does the n-th forward of its
 * order, n = (p-1-k) + (v-1) p + g, then backward number g - (p-1-k).  All that either
 * waits for was done in the round before, or is the forward itself, so the latest ends are
 * the state; lengths repeat every p v rounds, and the state itself but for a shift after a
 * few times as many.  With p | m, the n-th forward is chunk n mod (p v) / p. */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <string.h>

struct interleaved {
    const struct costmodel_pipeline *p;
    double *fwd_end, *back_end, *clock; /* [stages] */
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

static double later (double a, double b)
{
    return a > b ? a : b;
}

static void interleaved_round (struct interleaved *x, int round)
{
    const struct costmodel_pipeline *p = x->p;
    int n = p->stages, v = p->chunks, all = p->microbatches * v, last = n - 1;
    int at = (v - 1) * n + round, chunk = at / n % v, to_next = n - at % n;
    double round_end = x->fwd_end[last] + (p->blocking ? 0.0 : p->send_s[last]);

    /* Downwards, so that fwd_end[k-1] still is the round before's. */
    for (int k = last; k >= 0; k--, at++) {
        if (at >= 0 && at < all) {
            double ready = chunk == 0 ? 0.0 : round_end;

            if (k > 0)
                ready = x->fwd_end[k - 1] + (p->blocking ? 0.0 : p->send_s[k - 1]);
            x->fwd_end[k] = x->clock[k] =
                later (x->clock[k], ready) + chunk_fwd_s (p, chunk, k);
        }
        if (--to_next == 0) {
            to_next = n;
            chunk = chunk + 1 < v ? chunk + 1 : 0;
        }
    }
    at = round - last;
    chunk = v - 1 - (at + v * n) / n % v;
    to_next = n - (at + v * n) % n;
    round_end = x->back_end[0] + (p->blocking ? 0.0 : p->return_s[last]);
    for (int k = 0; k <= last; k++, at++) {
        if (at >= 0 && at < all) {
            /* The last chunk follows its own forward, done before. */
            double ready = chunk == v - 1 ? 0.0 : round_end;

            if (k < last)
                ready = x->back_end[k + 1] + (p->blocking ? 0.0 : p->return_s[k]);
            x->back_end[k] = x->clock[k] =
                later (x->clock[k], ready) + chunk_back_s (p, chunk, k);
        }
        if (--to_next == 0) {
            to_next = n;
            chunk = chunk > 0 ? chunk - 1 : v - 1;
        }
    }
}

/* Has every entry of now grown by one amount since then?  If so, that amount. */
static bool shifted (const double *now, const double *then, int n, double *shift)
{
    double d = now[0] - then[0], tol = 1e-13 * fabs (now[0]) + 1e-300;

    for (int i = 1; i < n; i++)
        if (!(fabs (now[i] - then[i] - d) <= tol)) /* also when infinite */
            return false;
    *shift = d;
    return true;
}

void interleaved_play (const struct costmodel_pipeline *p, bool skip, double *end_s,
                       double *work)
{
    int n = p->stages, width = 2 * n, period = n * p->chunks, seen = 0;
    int all = p->microbatches * p->chunks, steady = all - period;
    double *history = work + width;
    struct interleaved x = {p, work, work + n, history + n * width};

    memset (work, 0, (size_t) width * sizeof *work);
    memset (x.clock, 0, (size_t) n * sizeof *x.clock);
    for (int g = 1 - period; g < all + n - 1; g++) {
        double shift;

        interleaved_round (&x, g);
        /* Rounds n-1 .. steady all do one forward and one backward on every stage. */
        if (!skip || g < n - 1 || g > steady || (g - n + 1) % period != 0)
            continue;
        for (int q = 1; q <= seen && q <= n; q++)
            if (shifted (work, history + (seen - q) % n * width, width, &shift)) {
                int periods = (steady - g) / (q * period);

                for (int i = 0; i < width; i++)
                    work[i] += periods * shift;
                memcpy (x.clock, x.back_end, (size_t) n * sizeof *x.clock);
                g += periods * q * period;
                skip = false;
                break;
            }
        memcpy (history + seen++ % n * width, work, (size_t) width * sizeof *work);
    }
    memcpy (end_s, x.back_end, (size_t) n * sizeof *end_s);
}
