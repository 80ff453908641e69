/* Shared by check/nccl_*.c alone: what NCCL's logs say, before a plan is held against it. */
#ifndef CHECK_NCCL_PRIVATE_H
#define CHECK_NCCL_PRIVATE_H

#include <stdint.h>

#include "check/check.h"
#include "costmodel/prices.h"

/* ---- numbers for what is met again and again ---- */

/** A map from three numbers to one, -1 until it is set. */
struct nccl_index {
    struct nccl_entry {
        uint64_t key[3];
        int value;
        bool used;
    } * entry; /* [room] */
    size_t n, room;
};
/** @return the number's place until the next call, or NULL when out of memory */
int *nccl_index_at (struct nccl_index *x, uint64_t a, uint64_t b, uint64_t c);
void nccl_index_free (struct nccl_index *x);

/* ---- what was read ---- */

#define NCCL_CHANNELS_MAX 64 /* NCCL's MAXCHANNELS */

/** What a rank says of one of its neighbours. */
enum nccl_edge_kind {
    NCCL_RING,      /* a's successor in a channel's ring is b */
    NCCL_TREE,      /* a's parent in a channel's tree is b */
    NCCL_RING_LINK, /* a sends to b; before all rings were connected */
    NCCL_LINK       /* a sends to b */
};

struct nccl_edge {
    int next; /* of the same member; -1: the last */
    int a, b; /* ranks of the communicator */
    short channel;
    unsigned char kind; /* enum nccl_edge_kind */
    unsigned char via;  /* enum check_nccl_via, of links */
    bool receive;       /* b says it, else a */
};

/** A whole ring, as rank 0 prints it. */
struct nccl_order {
    int next; /* of the same member */
    int channel;
    size_t first; /* in nccl_log.rank */
    int n;        /* ranks printed */
};

/** A device of a process: what becomes a rank of the plan. */
struct nccl_seat {
    int host, pid, dev; /* dev: CUDA's number in the process */
    int nvml;           /* the machine's number of the GPU; -1: not said */
    int rank;           /* of the plan; -1: not known */
};

/** One rank's side of a communicator. */
struct nccl_member {
    int seat;
    int rank, n_ranks; /* -1, 0 while not said */
    uint64_t comm;     /* address in the process; 0: not said */
    uint64_t id;       /* commId; 0: not said */
    uint64_t parent;   /* address of what it was split from; 0: none */
    int split, color;
    int before;      /* the process's last member before it; -1: none */
    bool done;       /* Init COMPLETE */
    bool rings;      /* all rings are connected */
    int channels;    /* for collectives; 0: not said */
    int edge, order; /* the last ones; -1: none */
};

struct nccl_log {
    struct check_nccl_lines lines;
    char **host; /* [n_hosts] */
    int n_hosts;
    struct nccl_seat *seat; /* [n_seats] */
    int n_seats;
    struct nccl_member *member; /* [n_members] in the order of their first lines */
    int n_members;
    struct nccl_edge *edge; /* [n_edges] */
    int n_edges;
    struct nccl_order *order; /* [n_orders] */
    int n_orders;
    int *rank; /* [n_rank] of orders */
    size_t n_rank;
};

/** Read logs.
 *  @param[in]  path  [n] files, folders, patterns as of glob(7), "-"
 *  @param[out] log   release with nccl_log_release, also after a failure
 *  @return ST_OK; ST_IO; ST_NOMEM; ST_INVALID for logs without a communicator */
enum status nccl_log_read (const char *const *path, int n, struct nccl_log *log,
                           struct error *err);
void nccl_log_release (struct nccl_log *log);

/* ---- while logs are read ---- */

/** Logs in the order of their lines. */
struct nccl_reader {
    struct nccl_log *log;
    struct nccl_index hosts, seats, threads, processes;
    struct nccl_index marked; /* processes that print Init START */
    const char *file;
    long long line;
    bool failed; /* out of memory */
};
void nccl_reader_release (struct nccl_reader *x);

/** Where a line comes from. */
struct nccl_origin {
    int host, pid, tid;
    int dev; /* -1: not said */
};

/* These return -1 or NULL when out of memory, and the reader has failed.  Places are good until
 * the next call. */

/** The number of a host, by its name. */
int nccl_host (struct nccl_reader *x, const char *name, size_t len);
/** The seat of a device of the line's process. */
int nccl_seat_of (struct nccl_reader *x, const struct nccl_origin *o, int dev);
/** The member that the line's thread is setting up, or -1. */
int *nccl_thread (struct nccl_reader *x, const struct nccl_origin *o);
/** 1 where the line's process prints Init START, else -1. */
int *nccl_marked (struct nccl_reader *x, const struct nccl_origin *o);
/** A new member, which the line's thread sets up. */
struct nccl_member *nccl_member_open (struct nccl_reader *x, const struct nccl_origin *o);
/** The member that a line belongs to; one is opened where the process's version prints no
 *  START.  rank, peer: what the line says of its own and of another; -1: nothing.
 *  @return NULL also for none */
struct nccl_member *nccl_member_of (struct nccl_reader *x, const struct nccl_origin *o,
                                    int rank, int peer);
/** The member that a late line of a process belongs to: the only one with that rank, and with
 *  as many ranks as its neighbour's number needs.  @return NULL also for none */
struct nccl_member *nccl_member_late (struct nccl_reader *x, const struct nccl_origin *o,
                                      int rank, int peer);

/** Read one line, of NCCL or not. */
void nccl_line_read (struct nccl_reader *x, const char *line);

/* ---- communicators ---- */

/** Members of one communicator: nccl_comms.member[first .. first + n), by rank. */
struct nccl_comm {
    int first, n; /* n: that the logs have */
    int n_ranks, channels;
    bool ambiguous; /* a rank is there twice: cannot be told apart */
};

struct nccl_comms {
    struct nccl_comm *comm; /* [n] */
    int n;
    int *member;    /* [n_members] numbers of nccl_log.member */
    int ambiguous;  /* communicators, and members without one */
    int unfinished; /* members that never completed */
    int jobs;       /* that the logs hold: processes that say to be the same rank */
};

/** Who is who, and which members are one communicator: seats get their ranks.
 *
 *  A seat is a plan's rank where a communicator of all ranks says so, else by its host and the
 *  machine's number of its GPU.  Members are one communicator by commId; split ones by their
 *  parent, colour and number of the split; those of old versions by the only group of the plan
 *  that has such a rank in such a place and agrees with its connections.
 *
 *  @param[out] out  release with nccl_comms_release, also after a failure
 *  @return ST_OK or ST_NOMEM */
enum status nccl_comms_find (struct nccl_log *log, const struct workload_plan *p,
                             const struct topology_cluster *c, struct nccl_comms *out,
                             struct error *err);
void nccl_comms_release (struct nccl_comms *x);

/* ---- the plan's groups ---- */

/** The plan's groups of a kind, as struct workload_group; size 0 or 1: there are none, or
 *  another kind has the same. */
struct workload_group nccl_kind_group (const struct workload_plan *p,
                                       enum check_nccl_kind_name kind);
/** Does the price have collectives that go around such a group's ring? */
static inline bool nccl_kind_priced (enum check_nccl_kind_name kind)
{
    return kind == NCCL_KIND_TP || kind == NCCL_KIND_SYNC || kind == NCCL_KIND_EXPERT;
}
/** The first rank of the group of that kind which has this rank; -1: none.  A rank between two
 *  is in two pairs of neighbours: `at` says as which of the two it is meant.
 *  @param[out] place  of the rank in it */
int nccl_kind_first (const struct workload_plan *p, enum check_nccl_kind_name kind,
                     int rank, int at, int *place);

/* ---- one communicator beside its group ---- */

struct nccl_compare {
    const struct nccl_log *log;
    const struct nccl_comms *comms;
    const struct workload_plan *p;
    const struct topology_cluster *c;
    struct costmodel_groups *groups;
    const int *planned;      /* [n_ranks] cluster-wide GPUs */
    int *seat_of;            /* [n_ranks] of the communicator in hand; -1 between calls */
    const int *node_of_host; /* [n_hosts] -1: not of the cluster */
    int *node_first;         /* [n_nodes] -1 between calls */
    int *gpu_met; /* [n_gpus] the last hop, by number, that a GPU received in */
    int hops_met;
    struct nccl_index ways; /* of two nodes */
    struct check_nccl *out;
};

/** Which group is a communicator, in what order, and what does its graph cost?  Adds it to its
 *  kind, and its connections to the ways.  @return false when out of memory */
bool nccl_compare_one (struct nccl_compare *x, const struct nccl_comm *comm);

#endif
