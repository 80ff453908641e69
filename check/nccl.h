/* A plan beside what NCCL chose: the rings, trees, channels and transports of a job's logs
 * (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET). */
#ifndef CHECK_NCCL_H
#define CHECK_NCCL_H

#include "check/check.h"

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
