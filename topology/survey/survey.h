/* Surveys of a cluster: what its links look like, what to know before planning on it, what changed
 * between two snapshots, what several passes measured. */
#ifndef TOPOLOGY_SURVEY_SURVEY_H
#define TOPOLOGY_SURVEY_SURVEY_H

#include "base/rng.h"
#include "topology/topology.h"

/* ---- links: tiers, percentiles, asymmetry, the worst ones ---- */

/** One end of a link: a node, or one GPU of it. */
struct topology_end {
    int node;
    int gpu; /* cluster-wide, or -1: all GPUs of the node see the same */
};

/** "n3", or "n3:5" with the machine's own number of the GPU; buf has room for both. */
#define TOPOLOGY_END_TEXT TOPOLOGY_PLACE_TEXT
const char *topology_end_text (const struct topology_cluster *c, struct topology_end e,
                               char buf[TOPOLOGY_END_TEXT]);

/** A directed link that the cluster file tells apart. */
struct topology_visited {
    struct topology_end from, to;
    struct topology_link link; /* 0 bytes/s and not measured where nobody measured */
    double alike; /* how many links it stands for: a number for all nodes is one call */
};
typedef void topology_visit_fn (void *context, const struct topology_visited *v);

/** The held-out error of a link that is an estimate; NaN for what was measured. */
double topology_visited_error (const struct topology_cluster *c,
                               const struct topology_visited *v);

/** Told now and then which share of a long walk is done. */
struct topology_watch {
    void (*progress) (void *context, double share);
    void *context;
};

/** Visit the links inside nodes, then those between nodes, row by row.
 *  @param[in] watch  may be NULL */
void topology_links_visit (const struct topology_cluster *c, topology_visit_fn *fn,
                           void *context, const struct topology_watch *watch);

enum topology_where {
    TOPOLOGY_INSIDE,  /* a node */
    TOPOLOGY_BETWEEN, /* nodes */
};

/** Links of one kind: inside nodes, or between nodes at one distance. */
struct topology_tier {
    enum topology_where where;
    int hops; /* levels of switches up, -1 when unknown; with racks: 0 in one, 1 in two */
    int rail; /* 1 same rail, 0 different ones, -1 no rails */
    double links, unmeasured;       /* directed */
    double quantile_bytes_per_s[5]; /* lowest, 5 %, median, 95 %, highest; 0 when none */
    double latency_s;               /* median of the measured */
    double cv;                      /* standard deviation / mean */
};

enum { QUANTILE_MIN, QUANTILE_5, QUANTILE_50, QUANTILE_95, QUANTILE_MAX };

/** "inside nodes", "between nodes, one leaf switch", ...; buf of 64. */
const char *topology_tier_text (const struct topology_cluster *c,
                                const struct topology_tier *t, char buf[64]);

/** A link that stands out. */
struct topology_outlier {
    struct topology_end from, to;
    double bytes_per_s, back_bytes_per_s; /* back is 0 when unmeasured */
    double share;                         /* of its tier's median */
};

/** A node's links to and from other nodes. */
struct topology_node_stats {
    double out_bytes_per_s, in_bytes_per_s; /* means; 0 when nothing was measured */
    double lowest_bytes_per_s;
    int lowest_node;            /* the other end of the lowest one out, or -1 */
    double out_links, in_links; /* measured */
    double unmeasured;          /* out */
};

struct topology_stats {
    struct topology_tier *tier; /* [n_tiers] inside first, then by distance */
    int n_tiers;
    double asymmetry_mean, asymmetry_max; /* of |ab - ba| / larger, both measured */
    double asymmetry_pairs;         /* how many pairs have both directions measured */
    double slow;                    /* links under TOPOLOGY_SLOW of their tier's median */
    struct topology_outlier *worst; /* [n_worst] lowest share first, under 100 % */
    int n_worst;
    struct topology_node_stats *node; /* [n_nodes] */
    double links;                     /* all */
    double estimated; /* of these, estimated from others (topology_link_estimate_error) */
    double estimate_error; /* the largest held-out error of estimates; 0: none */
    double between_median_bytes_per_s; /* of all tiers between nodes; 0: none measured */
    bool sampled; /* the percentiles come from a sample of the links */
};
#define TOPOLOGY_SLOW 0.8

/** Look at all links.
 *
 *  Percentiles are exact up to a million links of a kind, and of a fixed sample of
 *  the links beyond; counts, lowest, highest and worst are always exact.
 *
 *  @param[in]  worst  how many of the worst links to list
 *  @param[in]  watch  may be NULL
 *  @param[out] out    release with topology_stats_release
 *  @return ST_OK or ST_NOMEM
 */
enum status topology_stats_collect (const struct topology_cluster *c, int worst,
                                    const struct topology_watch *watch,
                                    struct topology_stats *out, struct error *err);
void topology_stats_release (struct topology_stats *s);

/** The same as a document without `version`: name, n_nodes, n_gpus, nodes, tiers,
 *  asymmetry, slow_links, worst, sampled.  @return a new reference; NULL: out of memory */
json_t *topology_stats_json (const struct topology_cluster *c,
                             const struct topology_stats *s);

/** What all GPUs of one node reach to all of another (node_pair_gb_per_s). */
struct topology_totals {
    double pairs, unmeasured; /* directed; pairs 0: the cluster does not say it */
    double lowest_bytes_per_s, highest_bytes_per_s;
    int lowest_from, lowest_to; /* nodes; the first such pair */
};
void topology_totals_collect (const struct topology_cluster *c,
                              struct topology_totals *out);

/** The links between nodes as a square picture. */
struct topology_heat {
    int n;      /* cells on a side; 0: all pairs of nodes are alike, or there are none */
    int *first; /* [n + 1] first node of each cell, and the end */
    double *share; /* [n*n] mean rate from row to column over of_bytes_per_s; NaN where
                      nothing was measured; the diagonal holds links of a cell's own
                      nodes, NaN where it is a single one */
    double of_bytes_per_s; /* the median of all links, or of totals the highest */
};

/** Draw the links between nodes into at most `cells` x `cells`; neighbouring nodes share a
 *  cell where there are more.
 *  @param[in]  median_bytes_per_s  of all links between nodes, from topology_stats_collect
 *  @param[in]  watch  may be NULL
 *  @param[out] out    release with topology_heat_release
 *  @return ST_OK or ST_NOMEM */
enum status topology_heat_collect (const struct topology_cluster *c, int cells,
                                   double median_bytes_per_s,
                                   const struct topology_watch *watch,
                                   struct topology_heat *out, struct error *err);

/** The same of what all GPUs of one node reach to those of another (node_pair_gb_per_s); n is 0
 *  where the cluster does not say it.
 *  @param[out] out  release with topology_heat_release
 *  @return ST_OK or ST_NOMEM */
enum status topology_heat_totals (const struct topology_cluster *c, int cells,
                                  struct topology_heat *out, struct error *err);
void topology_heat_release (struct topology_heat *h);

/** How a cell is shown: the letter says what the colour says. */
struct topology_shade {
    /* tenths of what is usual as a digit, '#' from 95 % on, '?' unmeasured */
    char letter;
    unsigned fill; /* 0xrrggbb */
    bool light;    /* letters on it are black */
};
struct topology_shade topology_heat_shade (double share);

/* ---- what somebody should know before planning ---- */

enum topology_verdict { TOPOLOGY_OK, TOPOLOGY_NOTE, TOPOLOGY_FAILED };

struct topology_finding {
    const char *what; /* a word or two, constant */
    enum topology_verdict verdict;
    char *text;
};

#define TOPOLOGY_FINDINGS_MAX 16
struct topology_inspection {
    struct topology_finding finding[TOPOLOGY_FINDINGS_MAX];
    int n, failed;
};

/** Look a cluster over: nodes and GPUs, links inside and between nodes (unmeasured,
 *  nominal, slow, asymmetric), nodes that nothing connects, devices that cannot be right
 *  (one UUID on two GPUs, one PCI address twice in a node, a NIC that the node does not
 *  list), cores near GPUs.
 *
 *  @param[in]  c    as topology_cluster_read or its partial form gives it
 *  @param[in]  watch  may be NULL
 *  @param[out] out  release with topology_inspection_release
 *  @return ST_OK or ST_NOMEM
 */
enum status topology_inspect (const struct topology_cluster *c,
                              const struct topology_watch *watch,
                              struct topology_inspection *out, struct error *err);
void topology_inspection_release (struct topology_inspection *i);

/* ---- two snapshots of one cluster ---- */

/** A link whose rate is another one now. */
struct topology_change {
    struct topology_end from, to;            /* in the old cluster's numbers */
    double old_bytes_per_s, new_bytes_per_s; /* 0: unmeasured */
    bool by_interval; /* the intervals of both measurements do not meet */
};

struct topology_diff {
    double compared;           /* links that both have a rate for */
    double with_intervals;     /* of these, both with an interval */
    double slower, faster;     /* of these, changed */
    double appeared, vanished; /* measured in only one of the two */
    double median_ratio;       /* new / old over the compared; 1 where there are none */
    struct topology_change *change; /* [n] the largest changes first, by ratio */
    int n;
    int nodes_gone, nodes_new; /* only in the old, only in the new one */
};

/** True if two clusters are one at two times: they share nodes (by name), and every shared
 *  node has the same type and number of GPUs; one's nodes are among the other's. */
bool topology_same_cluster (const struct topology_cluster *a,
                            const struct topology_cluster *b);

/** Compare the links of two snapshots, of the nodes that both have.
 *
 *  A link changed when the intervals of its two measurements (`measured` in the files) do
 *  not meet; without intervals, when its rate differs by more than a share.
 *
 *  @param[in]  a, b     before and after; topology_same_cluster
 *  @param[in]  share    as in 0.1 for 10 %
 *  @param[in]  most     how many changes to list
 *  @param[out] out      release with topology_diff_release
 *  @return ST_OK or ST_NOMEM
 */
enum status topology_diff_collect (const struct topology_cluster *a,
                                   const struct topology_cluster *b, double share,
                                   int most, struct topology_diff *out,
                                   struct error *err);
void topology_diff_release (struct topology_diff *d);

/* ---- one cluster's links measured several times: by passes, or by several files ---- */

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
