/* --plan: do the plan's groups reach what the plan was priced with, on the machines that the job
 * is about to start on?
 *
 * Rank r of the job is the plan's rank r.  All groups of a kind measure together (groups.h), and
 * each hop, from one rank to one other, is compared with its link in the plan's cluster, shared
 * as the price shares it.  What falls short in every pass is measured again alone, its source
 * with another destination and its destination with another source; the nodes at fault are then
 * named in the order in which they should be replaced.
 */
#ifndef BWPROBE_PREFLIGHT_H
#define BWPROBE_PREFLIGHT_H

#include <stdio.h>

#include "bwprobe/coordinator_private.h"
#include "bwprobe/groups.h"

/** A hop falls short below this part of what is expected. */
#define PREFLIGHT_PART 0.8

/** The program's exit code when something falls short. */
enum { PREFLIGHT_SHORT = 4 };

/** From one rank to another, among all of its kind. */
struct preflight_hop {
    int kind;             /* enum groups_kind */
    int src, dst;         /* ranks */
    double got, expected; /* bytes/s: the best of the passes; 0: it failed */
    bool tried;
    bool looked;  /* a second time, alone: */
    double alone; /* bytes/s; NaN: it failed */
    enum results_verdict verdict;
};

/** A node to be replaced. */
struct preflight_fault {
    int node; /* of the plan's cluster */
    int rank; /* whose GPU alone is at fault; -1: the node is */
};

struct preflight {
    struct groups *groups;
    int *end;                  /* [ranks] endpoint of each; -1: it is not there */
    struct preflight_hop *hop; /* [hops] kind after kind: a -> b, b -> a of each pair */
    struct preflight_hop *of[GROUPS_KINDS]; /* where each kind's begin */
    struct preflight_fault *fault;          /* [n_faults] the worst first */
    int n_faults;
    long hops, tried, below; /* all; measured; of these, that fall short */
    bool mostly;             /* most hops fall short: no node is named */
};

/** Read c->set.plan and give its ranks to those of the job.
 *  @return ST_OK; ST_INVALID where this is not the plan's job: other hosts, another number of
 *          ranks, GPUs that are missing; as groups_read */
enum status preflight_prepare (struct coordinator *c, struct error *err);

/** Measure, look again, find what is at fault.  @return ST_OK or ST_NOMEM */
enum status preflight_run (struct coordinator *c, struct error *err);

static inline bool preflight_falls_short (const struct preflight_hop *h)
{
    return h->tried && h->expected > 0 && h->got < PREFLIGHT_PART * h->expected;
}

void preflight_destroy (struct preflight *p);

/* ---- preflight_report.c ---- */

/** What fell short, and a line `replace NODE` for each node at fault. */
void preflight_report (const struct coordinator *c, FILE *out);
/** The rounds of --dry-run. */
void preflight_report_plan (const struct coordinator *c, FILE *out);
/** The links file's measured.preflight.  A new reference. */
json_t *preflight_json (const struct coordinator *c);

#endif
