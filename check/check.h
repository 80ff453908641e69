/* An independent check of a plan: the planner's claims are computed again from the
 * memory estimator and a full simulation of the schedule, with no code of the search. */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "costmodel/costmodel.h"
#include "topology/topology.h"
#include "workload/workload.h"

enum check_verdict { CHECK_OK, CHECK_NOTE, CHECK_FAILED };

/** One thing that was checked. */
struct check_item {
    const char *what; /* "GPUs", "layers", "memory", ... */
    enum check_verdict verdict;
    char text[256]; /* what was found */
};

#define CHECK_ITEMS_MAX 48
struct check_report {
    struct check_item item[CHECK_ITEMS_MAX];
    int n;
    int failed;
    double step_s; /* simulated in full; 0 when that failed */
};

/** Add what was found. */
void check_say (struct check_report *r, const char *what, enum check_verdict verdict,
                const char *fmt, ...) __attribute__ ((format (printf, 4, 5)));

/** Check a plan that workload_plan_read accepted.
 *
 *  Checked: every rank on a GPU of the cluster that is not drained, once; degrees multiply to
 *  the ranks and layers sum to the model's; the profile's framework offers the configuration;
 *  every stage fits the memory limit of its smallest GPU; unmeasured links are listed; the step
 *  time, with every micro-batch simulated, is what the file says, and not below its lower bound
 *  (beyond 30 million micro-batches over all stages and replicas, whole periods are skipped);
 *  the file's other figures (gap, rates, breakdown, memory) agree with it; the default order is
 *  not faster.  If ranks or configuration were edited after planning, the estimate is stale (it
 *  carries a digest of them): a note, not a failure.
 *
 *  @param[out] r  filled also when something failed
 *  @return ST_OK when the check ran, whatever it found; ST_NOMEM
 */
enum status check_plan (const struct workload_plan *p, const struct topology_cluster *c,
                        const struct workload_profile *profile, struct check_report *r,
                        struct error *err);

/* ---- a running job ---- */

/** Where a rank says that it is: `host gpu`, gpu the UUID or the index on the node of the
 *  program's device LOCAL_RANK, CHECK_NO_GPU where the program sees no such device, or "-". */
#define CHECK_NO_GPU "none"
struct check_place {
    char host[256]; /* "" until the rank has reported */
    char gpu[128];
};

/** Read a table `rank host gpu-uuid`, a rank a line in any order, as where.sh prints it;
 *  empty lines and lines that begin with # are skipped.
 *
 *  @param[in]  name   for messages
 *  @param[out] place  [n_ranks]; a rank that is not in the table keeps an empty host
 *  @return ST_OK, or ST_INVALID with name, line, expected and found: another number of
 *          words, a rank beyond n_ranks or repeated, no host name
 */
enum status check_running_parse (const char *name, const char *text, int n_ranks,
                                 struct check_place *place, struct error *err);

/** One rank that is not where it was planned. */
struct check_difference {
    int rank;
    bool host, gpu; /* which of the two differs; neither: the rank did not report */
};

struct check_running {
    int n_ranks, reported;
    struct check_difference *difference; /* [n_differences] by rank; release with free */
    int n_differences;
    double planned_step_s; /* of the plan, priced now */
    double step_s;         /* as the job runs; NAN when it cannot be priced */
};

/** Compare a running job with its plan.
 *
 *  Hosts are compared by name, a short name standing for a full one; GPUs by UUID where the
 *  cluster has them and by index where the job reports that, and two ranks on one GPU are
 *  found in any case.  A GPU that cannot be identified counts as the planned one; a rank that
 *  sees none is on another GPU than planned.
 *
 *  @param[in,out] r    items are added: ranks, hosts, GPUs and the step as the job runs
 *  @param[out]    out  also when something differs
 *  @return ST_OK when the check ran, whatever it found; ST_INVALID if the plan is not one
 *          of the cluster; ST_NOMEM
 */
enum status check_running (const struct workload_plan *p,
                           const struct topology_cluster *c,
                           const struct workload_profile *profile,
                           const struct check_place *place, struct check_report *r,
                           struct check_running *out, struct error *err);

/* ---- a plan beside what NCCL chose: the rings, trees, channels and transports of a job's logs
 * (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET) ---- */

/** How two ranks are connected. */
enum check_nccl_via {
    NCCL_P2P,     /* NVLink, or PCIe from GPU to GPU */
    NCCL_SHM,     /* the host's memory */
    NCCL_NET_GDR, /* a network that reads and writes the GPU's memory */
    NCCL_NET,     /* one that does not */
    NCCL_SOCKET,
    NCCL_VIA_OTHER
};
#define CHECK_NCCL_VIAS 6
const char *check_nccl_via_name (enum check_nccl_via via);

/** Groups of ranks that a communicator may be of. */
enum check_nccl_kind_name {
    NCCL_KIND_TP,
    NCCL_KIND_CP,
    NCCL_KIND_SYNC,   /* dp and cp together */
    NCCL_KIND_EXPERT, /* ranks with the same experts */
    NCCL_KIND_EP,
    NCCL_KIND_ETP,
    NCCL_KIND_DP,
    NCCL_KIND_PP,
    NCCL_KIND_ENDS, /* first and last stage of a pipeline */
    NCCL_KIND_PAIR, /* two neighbours in a pipeline */
    NCCL_KIND_WORLD
};
#define CHECK_NCCL_KINDS 11

/** A directed link between nodes, or inside one, at its rate; nodes -1: none. */
struct check_nccl_link {
    int src_gpu, dst_gpu; /* cluster-wide */
    double bytes_per_s;
};

/** Hops between nodes of one group's rings. */
struct check_nccl_hops {
    int both, laid, chosen;            /* in both; only the price's; only NCCL's */
    struct check_nccl_link slowest[3]; /* of each, in that order; GPU -1: none */
    int laid_lanes, chosen_lanes;      /* least number of lanes of a hop; 0: no hops */
};

/** One communicator beside its group. */
struct check_nccl_group {
    int first, n; /* the group's first rank, and size */
    int channels; /* whose rings could be read */
    int unread;   /* channels whose rings could not */
    struct check_nccl_hops hops;
    double laid_s, chosen_s;     /* seconds a step if nothing hides it; NAN: not priced */
    enum workload_all_reduce by; /* as the price has it go */
    int tree_hops;               /* between nodes; 0: none, or not logged */
    struct check_nccl_link tree; /* the slowest of them */
};

/** All communicators of a kind. */
struct check_nccl_kind {
    int planned;   /* groups of the plan with two ranks or more; 0: none */
    int found;     /* communicators */
    int partly;    /* of these, only known by some of their ranks */
    int reordered; /* whose ranks are in another order than the plan's */
    int compared;  /* with a ring that could be read */
    int differ;    /* of these, with other hops or lanes between nodes */
    struct check_nccl_group worst; /* of the compared: costs most, or differs most */
};

/** Where transports were met between two nodes, or inside one (a = b). */
struct check_nccl_way {
    int a, b;                   /* nodes of the cluster */
    int times[CHECK_NCCL_VIAS]; /* connections */
    bool gdr_missing[2];        /* the sender's, the receiver's side without GPUDirect */
};

#define CHECK_NCCL_PLACES 3
/** What the logs were made of. */
struct check_nccl_lines {
    int files;
    long long all, nccl; /* lines; of these NCCL's */
    long long unread;    /* of known kinds, but not understood */
    struct {
        const char *file; /* borrowed from the log's names */
        long long line;
    } place[CHECK_NCCL_PLACES]; /* the first of them */
    long long unplaced;         /* connections of no communicator, or of several */
    char version[4][32];        /* the first that are named */
    int versions;
    bool unknown_version; /* one is not from 2.4 to 2.28 */
    char **name;          /* [names] of the files */
    int names;
};

struct check_nccl {
    struct check_nccl_lines lines;
    int processes, communicators, other, ambiguous, unfinished, jobs;
    int ranks_known;
    bool moved; /* hosts contradict the plan: nothing was compared */
    struct check_nccl_kind kind[CHECK_NCCL_KINDS];
    struct check_nccl_way *way; /* [n_ways] */
    int n_ways;
};

/** Compare what NCCL chose with what the plan's price assumed.
 *
 *  @param[in]     path  [n] files, folders, patterns, "-"
 *  @param[in,out] r     items are added; they fail only where the logs contradict the plan
 *  @param[out]    out   release with check_nccl_release
 *  @return ST_OK when the check ran, whatever it found; ST_INVALID for logs without a
 *          communicator, or a plan that is not one of the cluster; ST_IO; ST_NOMEM */
enum status check_nccl (const struct workload_plan *p, const struct topology_cluster *c,
                        const struct workload_profile *profile, const char *const *path,
                        int n, struct check_report *r, struct check_nccl *out,
                        struct error *err);
void check_nccl_release (struct check_nccl *x);

/** "tp", "dp", "expert dp", ... */
const char *check_nccl_kind_text (enum check_nccl_kind_name kind);

#endif
