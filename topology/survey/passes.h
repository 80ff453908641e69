/* One cluster's links measured several times: by the passes of one measurement, or by
 * several links files. */
#ifndef TOPOLOGY_PASSES_H
#define TOPOLOGY_PASSES_H

#include "base/rng.h"
#include "topology/topology.h"

/** More endpoints than that are not compared: matrices of all pairs are held. */
#define TOPOLOGY_PASSES_ENDPOINTS 2048

/** The same links at several times.  Endpoints are the nodes, or the GPUs where the
 *  cluster has links.gpu. */
struct topology_passes {
    const struct topology_cluster *base; /* borrowed */
    bool over_gpus;
    int n; /* endpoints */
    int passes;
    double **
        rate; /* [passes], each [n*n] bytes/s, i*n + j is i -> j; NaN: not measured then */
    bool by_file;
};

/** The passes of the cluster's own measurement (`measured.pairs[]` with
 *  `isolated_samples_gb_per_s`).  None (passes 0) where it has fewer than two.
 *
 *  @param[in]  base  kept, not copied
 *  @param[out] out   release with topology_passes_release
 *  @return ST_OK or ST_NOMEM */
enum status topology_passes_own (const struct topology_cluster *base,
                                 struct topology_passes *out, struct error *err);

/** The cluster's own rates, then those of other measurements of it: links files or cluster
 *  files, whose nodes are found by name.  A link that the cluster does not have (unmeasured
 *  or drained) stays that way.
 *
 *  @param[in] file  [n] "-" is standard input
 *  @return ST_OK, ST_IO, ST_NOMEM, or ST_INVALID for a file without a link of the cluster,
 *          and for clusters whose links cannot be exchanged (rails, too many endpoints) */
enum status topology_passes_read (const struct topology_cluster *base,
                                  const char *const *file, int n,
                                  struct topology_passes *out, struct notes *notes,
                                  struct error *err);
void topology_passes_release (struct topology_passes *p);

/** Each link's quantile over some passes; NaN where none of them measured it.
 *  @param[in]  use   [passes] @param[in] quantile  0.5: the median
 *  @param[out] rate  [n*n] */
enum status topology_passes_combine (const struct topology_passes *p, const bool *use,
                                     double quantile, double *rate, struct error *err);

/** One pass as it was, its gaps filled with its own median of their kind (inside nodes,
 *  between nodes): what it did not measure tells nothing.  @param[out] rate [n*n] */
enum status topology_passes_fill (const struct topology_passes *p, int pass, double *rate,
                                  struct error *err);

/** The base cluster with other rates; NaN leaves the base's.
 *  @param[out] out  destroy with topology_cluster_destroy; its document stands alone */
enum status topology_passes_cluster (const struct topology_passes *p, const double *rate,
                                     struct topology_cluster **out, struct error *err);

/** How far single measurements lie from the mean of theirs. */
struct topology_noise {
    double *between,
        *inside; /* logarithms of ratios, scaled to one measurement's spread */
    int n_between, n_inside;
};

/** @param[out] out  release with topology_noise_release */
enum status topology_noise_collect (const struct topology_passes *p,
                                    struct topology_noise *out, struct error *err);
void topology_noise_release (struct topology_noise *n);

/** Another measurement as it might have been: every rate of c becomes centre's times a
 *  ratio drawn from the noise.
 *
 *  @param      c       from topology_passes_cluster
 *  @param[in]  centre  [n*n]; NaN leaves c's rate */
void topology_noise_draw (const struct topology_passes *p,
                          const struct topology_noise *noise, const double *centre,
                          struct rng *rng, struct topology_cluster *c);

#endif
