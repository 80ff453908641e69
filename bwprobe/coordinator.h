/* Rank 0's second half: it orders the measurements and records their results.  It
 * runs in a thread of its own and speaks to all ranks, its own included, over the control
 * channel. */
#ifndef BWPROBE_COORDINATOR_H
#define BWPROBE_COORDINATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "bwprobe/net.h"

struct coordinator_settings {
    const char *transport; /* "nccl", "socket" or "auto" */
    const char *output;    /* the links file; "-" is standard output */
    const char *plan;      /* measure this plan's groups instead of all pairs; or NULL */
    int passes;            /* 1 or more */
    double budget_s;
    double pause_s;     /* between passes */
    double start_s;     /* for all ranks to come */
    double timeout_s;   /* without progress; 0: the transport's */
    double measure_s;   /* of a direction alone; 0: the transport's */
    uint64_t max_bytes; /* 0: the transport's */
    uint64_t seed;
    bool gemm, compute, resume, dry_run;
    bool color;             /* colours in the report */
    const char *started_by; /* "Open MPI v4.1.4", ...: for the links file */
    bool mpi_outlives;      /* its mpirun does not end by itself when a host is lost */
};

/* Are GPUs measured, besides links?  Then a single one is enough. */
static inline bool coordinator_computes (const struct coordinator_settings *set)
{
    return set->gemm || set->compute;
}

struct coordinator_outcome {
    int exit_code;
    bool faults; /* somebody failed: nobody should wait for anybody in MPI_Finalize */
};

struct coordinator;

/** Listen on an address for size ranks that know the token.
 *  @param[in,out] place  its port is filled in */
enum status coordinator_create (const struct coordinator_settings *set, int size,
                                struct net_place *place, const struct net_token *token,
                                struct coordinator **out, struct error *err);

/** Do everything: wait for the ranks, measure, write the links file and the report, say
 *  goodbye.  Messages go to standard error, the report to standard output. */
struct coordinator_outcome coordinator_run (struct coordinator *c);

/** Have a run in another thread end early and write what it has; safe in a signal handler. */
void coordinator_interrupt (struct coordinator *c);

void coordinator_destroy (struct coordinator *c);

#endif
