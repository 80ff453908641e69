/* One fit of the constants that sources share, to all sources together. */
#ifndef BENCH_JOINT_H
#define BENCH_JOINT_H

#include "calibrate/calibrate.h"

#define JOINT_NAME 96
#define JOINT_MAX 64     /* constants */
#define JOINT_SOURCES 64 /* sources */

/** A source of a joint fit. */
struct joint_source {
    const struct calibrate_runs *runs;
    const bool *use; /* [runs->n] has a step time that counts */
};

struct joint_constant {
    char name[JOINT_NAME];
    double factor;               /* fitted over shipped */
    double prior_spread, spread; /* standard deviations of its logarithm */
    bool told;                   /* the runs narrow it */
};

/** Constants shared by sources: of GPU generations, of all frameworks, of one. */
struct joint_fit {
    struct joint_constant constant[JOINT_MAX];
    int n;
    /** [runs->n] each: step times by the constants that the other sources tell, no profile naming
     *  the source; NAN: not estimated, or not among the rows taken */
    double *left_out_s[JOINT_SOURCES];
    /** [runs->n] each: calibrate_time_spread of a source that no profile names */
    double *left_out_spread[JOINT_SOURCES];
    int n_sources;
};

/** Fit them to all sources together; see joint.c.
 *  @param[out] out  release with joint_release
 *  @return ST_OK; ST_INVALID for a number of sources out of range; ST_NOMEM */
enum status joint_fit (const struct joint_source *source, int n, struct joint_fit *out,
                       struct error *err);
void joint_release (struct joint_fit *j);

#endif
