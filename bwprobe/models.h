/* Models that predict a link from others, and how far to trust them.
 *
 * A model says value = factor * basis, with a basis that the caller chooses (1: the factor is
 * a median), or value = factor * min (out[src], in[dst]), by the rates of its two ends with
 * others: a link is as fast as the slower of its ends.  Both are fitted by quantiles, so that a
 * few wild links do not move them, and tried on links that are held out, a fifth of the pairs
 * at a time, both directions of a pair together.
 */
#ifndef BWPROBE_MODELS_H
#define BWPROBE_MODELS_H

#include <stdbool.h>

#include "base/error.h"

/** A measured link. */
struct models_link {
    int src, dst; /* ends, 0 .. n_ends - 1 */
    double value; /* above 0 */
    double basis; /* above 0; 1 where nothing is known but its kind */
};

/** A model. */
struct models_fit {
    double factor; /* NaN: nothing was there to learn from */
    double *out,
        *in; /* [n_ends] factors of the ends; NaN where an end's are not known; NULL:
                         the model has none */
};

/** Its errors on held-out links. */
struct models_trial {
    int tried;
    double error_p50, error_p90; /* relative; NaN when too few were tried */
    double low; /* 99 of 100 reach this part of the prediction, at most 1; NaN */
    /* three of four come within 10 %: their kind or their ends explain them */
    bool accepted;
};

/** Fit a model.
 *  @param[in]  link    [n]
 *  @param[in]  n_ends  0: factor * basis; else the basis is left aside
 *  @param[out] fit     release with models_release */
enum status models_learn (const struct models_link *link, int n, int n_ends,
                          struct models_fit *fit, struct error *err);

/** Try a model on links held out.  Of very many links a part is taken, the same every time. */
enum status models_try (const struct models_link *link, int n, int n_ends,
                        struct models_trial *trial, struct error *err);

/** The model's prediction for a link; NaN where it knows too little. */
double models_predict (const struct models_fit *fit, const struct models_link *link);

void models_release (struct models_fit *fit);

#endif
