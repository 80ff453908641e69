/* What clusters and plans are told as: one self-contained HTML page, a picture, comparisons,
 * what-ifs, explanations. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "mapper/mapper.h"
#include "topology/edit/edit.h"
#include "topology/survey/survey.h"
#include "topology/topology.h"
#include "workload/workload.h"

/* ---- the page: one JSON document is made here and written into it; the scripts in report/page/
 * draw it ---- */

/** Links of all pairs of nodes take at most that many characters of a page's document: beyond,
 *  neighbouring nodes share a cell. */
#define REPORT_MATRIX_MAX 4250000

/** A cluster as an object: topology_stats_json's keys, `source`, `slow_share`, and the matrices
 *  `links` and `pairs` (what all GPUs of a pair reach together), null where there are none.
 *
 *  @param[in]  most   characters of a matrix, REPORT_MATRIX_MAX or less
 *  @param[in]  watch  may be NULL
 *  @param[out] out    a new reference
 *  @return ST_OK or ST_NOMEM */
enum status report_cluster (const struct topology_cluster *c, double most,
                            const struct topology_watch *watch, json_t **out,
                            struct error *err);

/** A plan's placement and what it means, as an object: `ranks` with the rate to the next rank
 *  of each of their groups, `estimate`, `step_parts` (keys and words of its parts), `memory`,
 *  `schedule`.
 *
 *  @param[in]  p       the plan's job, limits and cluster
 *  @param[in]  plan    its configuration and layers
 *  @param[in]  gpu     [n_ranks] cluster-wide
 *  @param[out] out     a new reference
 *  @return ST_OK, ST_NOMEM, or as costmodel_estimate */
enum status report_placement (const struct mapper_problem *p,
                              const struct workload_plan *plan, const int *gpu,
                              json_t **out, struct error *err);

/** Append a plan's placement as a picture (SVG).
 *
 *  @param[in] gpu       [n_ranks] cluster-wide
 *  @param[in] estimate  the plan file's `estimate`; NULL where it is of another placement
 *  @return ST_OK, ST_NOMEM, or ST_INVALID for more nodes than can be read in a picture */
enum status report_picture (const struct topology_cluster *c,
                            const struct workload_plan *plan, const int *gpu,
                            const json_t *estimate, struct text *out, struct error *err);

/** Append the page that shows a document.
 *  @return ST_OK or ST_NOMEM */
enum status report_page (const json_t *doc, struct text *out, struct error *err);

/* ---- which stage every GPU serves, for who draws it in cells: one a GPU, a row a node or, where
 * there are many, a row for all nodes that look alike ---- */

struct report_map_row {
    int node;  /* the first node of the row; its GPUs are the cells */
    int nodes; /* how many look like it, itself included */
};

struct report_map {
    int *stage;                 /* [n_gpus] -1: idle */
    int *replica;               /* [n_gpus] of data parallelism; -1: idle */
    struct report_map_row *row; /* [n_rows] in the order of their first nodes */
    int n_rows;
    int rest;      /* nodes that are on no row */
    bool replicas; /* are nodes of one row alike in replicas too, not in stages alone? */
    bool apart;    /* may nodes of one row stand apart from each other? */
};

/** Fold the nodes into rows: first neighbours that serve the same stages and replicas; where rows
 *  are too many then, neighbours that serve the same stages; then such nodes wherever they stand.
 *
 *  @param[in]  gpu   [workload_world (d)] cluster-wide GPU of each rank
 *  @param[in]  most  rows, 1 or more
 *  @param[out] out   release with report_map_release; untouched on failure
 *  @return ST_OK or ST_NOMEM */
enum status report_map_collect (const struct topology_cluster *c,
                                const struct workload_degrees *d, const int *gpu,
                                int most, struct report_map *out, struct error *err);
void report_map_release (struct report_map *m);

/** A GPU's label: "3B": stage 3, the second replica. */
#define REPORT_PLACE_TEXT 24
const char *report_place_text (int stage, int replica, char buf[REPORT_PLACE_TEXT]);
/** A replica's letters alone: "A", ..., "Z", "AA", ...  buf of 8 bytes. */
const char *report_replica_text (int replica, char *buf);

/** A stage's place on topology_heat_shade's scale from 0 to 1: stages after each other differ. */
double report_stage_share (int stage, int pp);

/* ---- what two clusters, or one at two times, mean for training a model ---- */

/** The best plan on one cluster. */
struct report_best {
    bool fits;
    char why[256]; /* where it does not */
    struct mapper_result plan;
    struct mapper_info info;
    double gpu_hours; /* for 1e9 tokens, on the GPUs that the plan uses */
};

/** Search; that nothing fits is an answer too.
 *  @param[in,out] used  the problem's profile, which becomes that of the GPU types that the plan
 *                       uses; NULL: it stays
 *  @param[out] out  zeros before; release its plan and info */
enum status report_find_best (const struct mapper_problem *p,
                              const struct mapper_settings *settings,
                              struct workload_profile *used, struct report_best *out,
                              struct error *err);

/** The same GPUs in another cluster's numbers.
 *  @param[out] out  [n] -1 for one that is not there, or drained
 *  @return how many are not */
long long report_carry (const struct topology_cluster *from,
                        const struct topology_cluster *to, const int *gpu, long long n,
                        int *out);

/** The best plans of one model, and the first plan on the second cluster. */
struct report_compared {
    struct report_best best[2];
    /* Where the second cluster is the first at another time, and both have a plan: */
    bool has_kept;
    double kept_step_s; /* the first one's plan on the second's links; INFINITY when it
                           cannot run there */
    int moved;          /* ranks that the second plan puts elsewhere; -1: other degrees */
};

/** Plan on both clusters.
 *
 *  @param[in]  a, b      the same job on two clusters
 *  @param[in]  snapshots b's cluster is a's at another time
 *  @param[out] out       release with report_compared_release
 *  @return ST_OK, also where nothing fits; what mapper_search returns otherwise
 */
enum status report_compare (const struct mapper_problem *a,
                            const struct mapper_problem *b, bool snapshots,
                            const struct mapper_settings *settings,
                            struct report_compared *out, struct error *err);
void report_compared_release (struct report_compared *r);

/* ---- what changes of the cluster would do to a plan: kept in place, and planned anew ---- */

/** One change, or all together. */
struct report_what {
    char *change; /* the statement; NULL: the cluster as it is; "all together" */
    struct topology_changed changed;
    double in_place_s;            /* the plan's placement there; INFINITY: not possible */
    char why[256];                /* where it is not */
    struct report_best replanned; /* never worse than in place */
};

struct report_whatif {
    struct report_what *what; /* [n] the cluster as it is, each change, all together */
    int n;
};

/** The plan that is asked about, and how one is searched. */
struct report_whatif_plan {
    /* On the cluster as it is; the nodes that may be used are chosen anew from `nodes`. */
    const struct mapper_problem *p;
    const struct mapper_nodes *nodes;
    /* NULL: in place alone, nothing is searched. */
    const struct mapper_settings *settings;
    const struct workload_config *config;
    const int *layers; /* [pp] */
    const int *gpu;    /* [world] of the cluster as it is */
    /* Of the search that found it; 0: it comes from elsewhere, and the cluster as it is is
     * searched too. */
    double lower_bound_s;
};

/** Read the changes of a what-if and make the clusters.
 *  @param[out] w  release with report_whatif_release
 *  @return ST_OK, ST_NOMEM; ST_USAGE for malformed text, ST_INVALID for what the cluster does not
 *          have, both with the statement's number */
enum status report_whatif_read (const struct topology_cluster *c, const char *text,
                                struct report_whatif *w, struct error *err);
void report_whatif_release (struct report_whatif *w);

/** One change, by itself.
 *  @param[in,out] one  zeros before; release it also after a failure
 *  @return as topology_change */
enum status report_what_read (const struct topology_cluster *from, const char *statement,
                              struct report_what *one, struct error *err);
enum status report_what_run (const struct report_whatif_plan *plan,
                             struct report_what *what, struct error *err);
void report_what_release (struct report_what *one);

/** Price and search.
 *  @param show   called before each search with what it is about
 *  @return ST_OK, also where some changes leave no plan; ST_NOMEM, ST_USAGE as
 *          mapper_choose_nodes */
enum status report_whatif_run (const struct report_whatif_plan *plan,
                               struct report_whatif *w,
                               void (*show) (void *context, const char *what),
                               void *context, struct error *err);

/** Is a plan of `after` surely better than any of `before` (1), surely worse (-1), or may the
 *  difference be what the search missed (0)?  By the steps and the lower bounds. */
int report_certain (const struct mapper_result *before,
                    const struct mapper_result *after);
/** The same as a word: "shorter", "longer", "within the gap". */
const char *report_surely (const struct mapper_result *before,
                           const struct mapper_result *after);

/** Degrees and settings as documents have them.  A new reference. */
json_t *report_config_json (const struct workload_config *c);

/** The documents' `what_if`: a list, the cluster as it is first.  A new reference. */
json_t *report_whatif_to_json (const struct report_whatif *w);

/* ---- what would make a plan's step shorter, and why other configurations lose ---- */

enum report_kind {
    REPORT_LINK,   /* between nodes */
    REPORT_INSIDE, /* a link inside a node */
    REPORT_PAIR,   /* what all GPUs of two nodes reach together */
    REPORT_NODE,
    REPORT_GPU,
    REPORT_SETTING,
    REPORT_KINDS
};
const char *report_kind_name (enum report_kind k);

/** One thing that could be otherwise. */
struct report_gain {
    enum report_kind kind;
    char what[512];     /* as --what-if takes it, or a setting in words */
    bool is_change;     /* of the cluster: --what-if takes it */
    double in_place_s;  /* the same placement; INFINITY: not possible, NAN: not tried */
    double replanned_s; /* placed anew with its tp, pp, cp and ep; else the same */
    int certain;        /* of replanned_s, as report_certain */
    char why[256];      /* where neither is possible */
    double share;       /* of the step, that it saves */
};

/** Another configuration that the search placed, and what makes it longer. */
struct report_rival {
    struct workload_config config;
    double step_s;                     /* INFINITY: it has no plan here */
    struct costmodel_breakdown more_s; /* than the plan's, part by part */
    char why[256];
};

struct report_explained {
    struct costmodel_estimate estimate; /* as it is; `unmeasured` is not there */
    double replanned_s;                 /* as it is, placed anew as the changes are */
    struct report_gain *gain;           /* [n_gains] the largest gain first */
    int n_gains;
    struct report_rival *rival; /* [n_rivals] in the plan file's order */
    int n_rivals;
};

/** Explain a plan.
 *
 *  Links and pairs: those of the slowest in use (costmodel_slow_links) that are below what is
 *  usual.  Nodes: their ends, and those with slow GPUs, mended; the best also drained.  GPUs:
 *  those below speed 1.  Settings: one step away in each.  What gains most of each kind is also
 *  placed anew.
 *
 *  @param[in]  p     the plan's problem, whatever its axes
 *  @param[in]  plan  with its document: the rivals are those that its `search.top` lists
 *  @param[in]  gpu   [world]
 *  @param      show  called before each change with what it is and which share of the searches,
 *                    which take longest, is done
 *  @param[out] out   release with report_explained_release
 *  @return as costmodel_estimate */
enum status report_explain (const struct mapper_problem *p,
                            const struct workload_plan *plan, const int *gpu,
                            void (*show) (void *context, double share, const char *what),
                            void *context, struct report_explained *out,
                            struct error *err);
void report_explained_release (struct report_explained *x);

/** "in place" where that saves REPORT_WORTH or more, which is exact; "yes" where what is saved by
 *  placing anew is more than the searches may have missed; else "within the gap"; NULL where it
 *  is not possible. */
#define REPORT_WORTH 1e-4 /* of the step */
const char *report_gain_surely (const struct report_explained *x,
                                const struct report_gain *g);

/** "0.90 s more pipeline bubble, 0.20 s less tensor parallel": the three largest parts, but
 *  for those below 2 % of the largest. */
#define REPORT_MORE_TEXT 320
const char *report_more_text (const struct costmodel_breakdown *more_s,
                              char buf[REPORT_MORE_TEXT]);

/** explain --json.  A new reference. */
json_t *report_explained_to_json (const struct report_explained *x);

#endif
