/* Is a plan's gain over the default order there in another measurement too? */
#ifndef MAPPER_HELDOUT_H
#define MAPPER_HELDOUT_H

#include "mapper/search/search.h"
#include "topology/survey/survey.h"

struct mapper_heldout_settings {
    double quantile;   /* of each link over the passes planned on; 0.5: the median */
    double confidence; /* of the interval */
    int draws; /* measurements drawn to tell how far a gain is off by chance, and how far
                          steps spread */
};
struct mapper_heldout_settings mapper_heldout_settings_default (void);

/** The gain over the default order, 1 - step / default order's step, on measurements that
 *  the placement was not made from. */
struct mapper_heldout {
    double gain, low, high; /* NAN: the default order cannot run, or nothing was priced */
    double step_p50_s,
        step_p95_s; /* of the placement that is kept, over such measurements drawn
                                      from the passes' noise; NAN: nothing was priced */
    double confidence, quantile;
    int measurements; /* that were priced */
    bool by_file;
    bool kept_default; /* the interval has 0 in it: the plan is the default order */
};

/** Price the result's configuration on measurements held out, and keep the default order
 *  where the gain is not certain.
 *
 *  Without `held_out` every pass is held out in turn: the configuration is placed anew from
 *  the others and priced on it.  With it the result's own placement is priced on those.
 *
 *  The interval is gain -+ z se.  The standard error is that of a gain on one measurement,
 *  from measurements drawn around each link's mean with the noise that the passes show,
 *  over the root of how many are priced; where passes are held out in turn, n of them count
 *  as 1 / (1/n + 1/(n-1)), since the placements are made from the same passes (Nadeau and
 *  Bengio, Machine Learning 52, 2003).
 *
 *  @param[in]     p         the result's problem
 *  @param[in]     held_out  [passes->passes] those that were not planned on; NULL: all in
 *                           turn, 2 at least
 *  @param[in,out] r         becomes the default order of its configuration and layers where
 *                           the interval has 0 in it
 *  @return ST_OK or ST_NOMEM
 */
enum status mapper_heldout (const struct mapper_problem *p,
                            const struct mapper_settings *s,
                            const struct mapper_heldout_settings *how,
                            const struct topology_passes *passes, const bool *held_out,
                            struct mapper_result *r, struct mapper_heldout *out,
                            struct error *err);

/** Put `gain_heldout` and what belongs to it into a plan's document. */
void mapper_heldout_to_json (const struct mapper_heldout *h, json_t *doc);

#endif
