/* How the ranks of a job find each other before any of them has spoken to rank 0.
 *
 * Under mpirun, mpiexec and `srun --mpi=pmix` by MPI where its library is; otherwise by what
 * the launcher puts into the environment: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (torchrun
 * and most others), or Slurm's own variables.  MPI is used for this alone: all later words travel
 * over TCP, so that a lost rank does not disturb MPI.
 */
#ifndef BWPROBE_START_H
#define BWPROBE_START_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "bwprobe/net.h"

struct start {
    char by[160]; /* "Open MPI v4.1.4", "Slurm", "RANK and WORLD_SIZE", "no launcher" */
    uint32_t rank, size;
    bool mpi;      /* MPI carries the meeting point and the token */
    bool outlives; /* this mpirun does not end by itself when a host is lost */
    /* Without MPI: where rank 0 listens, and the token. */
    struct net_place meet;
    struct net_token token;
};

/** What is needed for all ranks to meet; the same bytes on every rank. */
struct start_meeting {
    struct net_place place;
    struct net_token token;
    uint32_t ok; /* rank 0 listens */
};

/** Find out who this rank is.
 *
 *  Without MPI the token is made from the environment's BWPROBE_TOKEN, or from the key that
 *  Open MPI gives each job.  Without these, ST_USAGE with a made-up token to pass, unless rank
 *  0 is on the loopback: there it is made from the job's name (job and step number, or
 *  MASTER_ADDR and MASTER_PORT), which keeps other jobs out.
 *
 *  The way to rank 0 is the one that MASTER_ADDR or Slurm's node list names.
 *
 *  @param[in] port  where rank 0 listens without MPI; 0: MASTER_PORT, one above it where
 *                   torchrun's own store has it, or a port made from Slurm's job number
 *  @param[in] alone a process that nothing started as a rank of several is a job of one
 *  @return ST_OK; ST_USAGE when nothing started this process as a rank of several, unless
 *          `alone`, or the variables contradict each other; ST_IO
 */
enum status start_find (int *argc, char ***argv, uint32_t port, bool alone,
                        struct start *s, struct error *err);

/** The same by variables alone, from any environment.
 *  @param[in] get  getenv */
enum status start_from_variables (char *(*get) (const char *), uint32_t port,
                                  struct start *s, struct error *err);

/** Hand rank 0's meeting point to all; without MPI every rank has it already.  All call it.
 *  @return ST_OK, or ST_IO, also when rank 0 says that it is not ok */
enum status start_share (const struct start *s, struct start_meeting *m,
                         struct error *err);

/** Leave MPI; not after a fault, since the others may never come. */
void start_mpi_finish (void);

#endif
