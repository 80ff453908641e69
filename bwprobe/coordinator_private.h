/* Shared by the files of the coordinator alone. */
#ifndef BWPROBE_COORDINATOR_PRIVATE_H
#define BWPROBE_COORDINATOR_PRIVATE_H

#include <jansson.h>

#include "base/progress.h"
#include "base/rng.h"
#include "base/text.h"
#include "bwprobe/coordinator.h"
#include "bwprobe/journal.h"
#include "bwprobe/models.h"
#include "bwprobe/results.h"
#include "bwprobe/roster.h"
#include "bwprobe/schedule.h"
#include "bwprobe/transport.h"

/** What measures: one rank. */
struct endpoint {
    int node, gpu; /* by which they are sorted; gpu: index on the node */
    struct member *member;
    char name[MESSAGES_NAME + 16]; /* "node/gpu", as in the journal */
    struct msg_computed computed;
    bool has_computed;
};

struct node {
    char name[MESSAGES_NAME]; /* fit for a cluster file */
    int gpus;                 /* that it has, as far as known: at least its endpoints */
};

struct coordinator {
    struct coordinator_settings set;
    struct roster *roster;
    int wake[2]; /* a pipe: a byte ends the run */
    bool interrupted;

    const struct transport *transport;
    struct msg_welcome how;
    struct endpoint *end; /* [shape.n] in node order */
    struct node *node;    /* [shape.nodes] */
    int *first;           /* behind shape.first */
    struct schedule_shape shape;
    struct schedule_stride *stride; /* [n_strides] (schedule_strides) */
    int n_strides;
    struct schedule_plan plan;
    struct schedule_timing timing; /* running averages */
    int at_once_checked;  /* pairs compared for the plan's at_once; 0: not needed */
    double at_once_worst; /* their worst ratio of together to alone */

    struct preflight *preflight; /* of --plan (preflight.h); NULL: none */

    struct results results;
    struct journal *journal; /* NULL: none is kept */
    bool journal_told;       /* its fault was reported */
    struct rng rng;
    uint32_t seq;
    uint32_t generation; /* of the parent communicator; 0: none yet */
    bool parent_ok, parent_given_up;
    uint64_t *done; /* [n_done] what an earlier run measured (passes.c) */
    size_t n_done;

    double begun_s; /* the measurements began */
    int passes_done;
    struct progress progress;
    double said_s; /* a progress line without a terminal */
    char doing[160];
    long rounds_done, rounds_all;

    char (*fault)[512]; /* [n_faults] for the record */
    int n_faults;
    long refused; /* foreign connections, at the ranks' doors */
};

/* ---- coordinator_say.c ---- */

/** Print "bwprobe: ..." to standard error, past the progress line. */
void coordinator_say (struct coordinator *c, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
/** Record a fault and say it. */
void coordinator_fault (struct coordinator *c, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
/** Say once that finished work does not get to the disk. */
void coordinator_check_journal (struct coordinator *c);
/** Show what is being done, how far it is and the time left. */
void coordinator_show (struct coordinator *c);
/** An event that nobody was waiting for: a rank that is gone, a signal. */
void coordinator_unexpected (struct coordinator *c, const struct roster_event *e);
/** True if an endpoint's rank is there. */
static inline bool coordinator_alive (const struct coordinator *c, int end)
{
    return c->end[end].member->state == MEMBER_HERE;
}
double coordinator_elapsed (const struct coordinator *c);

/* ---- gather.c ---- */

/** Wait for the ranks, choose the transport, have it opened, number the endpoints. */
enum status gather_ranks (struct coordinator *c, struct error *err);
/** Have every GPU measured (--gemm, --compute). */
void gather_compute (struct coordinator *c);

/* ---- round.c ---- */

struct round {
    enum schedule_kind kind; /* SCHEDULE_KINDS: a second look */
    int pass;
    bool together;
    bool fresh;           /* new communicators, not split from a parent */
    bool counts_as_alone; /* measured together, but as good as alone */
    bool trial;           /* results are only looked at by the caller */
    uint64_t bytes;       /* largest message; 0: what fits the time */
    const struct schedule_pair *pair;
    int n;
};

/** The result of one pair: bytes/s of a -> b and b -> a, NaN where it failed. */
struct round_value {
    double bytes_per_s[2];
};

/** Measure a round's pairs at the same time; pairs with a rank that is gone are left out.
 *  @param[out] value  [n], or NULL
 *  @return seconds that it took */
double round_run (struct coordinator *c, const struct round *r,
                  struct round_value *value);

/** Measure a pair of endpoints again, alone and over a new connection.
 *  @return bytes/s of src -> dst; NaN where it failed */
double round_again (struct coordinator *c, int src, int dst);

/* ---- passes.c ---- */

/** What a round is expected to take, before the first. */
struct schedule_timing passes_timing (const struct coordinator *c);
/** Measure the time of a round and how many pairs may measure at once; make the plan. */
void passes_prepare (struct coordinator *c);
/** All passes. */
void passes_run (struct coordinator *c);
/** Take a journal's item into the results. */
void passes_take (void *coordinator, const struct journal_item *item);

/* ---- suspects.c ---- */

/** Measure again what failed or is slow, and say why. */
void suspects_run (struct coordinator *c);

/* ---- estimate.c ---- */

/** Estimates of links that were not measured, and their errors on links that were. */
struct estimate_tier {
    const char *name;          /* "inside nodes", "same GPU index", "other GPU index" */
    long measured, unmeasured; /* directed pairs */
    long estimated;            /* of those, written by links_write with an estimate */
    double median_bytes_per_s; /* of those measured; NaN */
    double high_latency_s;     /* 99 of 100 of those measured have at most this; NaN */
    struct estimate_model {
        const char *name; /* what it predicts from */
        struct models_trial trial;
        struct models_fit fit;
    } model[4];
};
enum { TIER_INSIDE, TIER_RAIL, TIER_CROSS, ESTIMATE_TIERS };
enum { MODEL_MEDIAN, MODEL_ENDS, MODEL_NODES, MODEL_TOGETHER, ESTIMATE_MODELS };

/** Tier of a directed pair. */
int estimate_tier_of (const struct coordinator *c, int src, int dst);
/** The medians of one quantity of the tier's pairs that have it.
 *  @param[out] v  [results.n]
 *  @return how many */
int estimate_values (const struct coordinator *c, int tier, enum results_what what,
                     double *v);
/** The part of its tier's median that a pair reaches alone; NaN. */
double estimate_part (const struct coordinator *c, const struct estimate_tier *tier,
                      const struct results_pair *p);
/** Try the models, links held out in turn.
 *  @param[out] tier  release with estimate_release */
enum status estimate_try (const struct coordinator *c,
                          struct estimate_tier tier[ESTIMATE_TIERS], struct error *err);
void estimate_release (struct estimate_tier tier[ESTIMATE_TIERS]);
/** The low end of a directed pair's estimate, by the best accepted model that applies;
 *  NaN if there is none.
 *  @param[out] error  of that model, held out; untouched where there is no estimate */
double estimate_value (const struct coordinator *c, const struct estimate_tier *tier,
                       int src, int dst, double *error);

/* ---- links.c ---- */

/** The links file.
 *  @param[in] status  "complete", "faults" or "interrupted"
 *  @param     tier    how many links were estimated is filled in */
enum status links_write (struct coordinator *c, const char *status,
                         struct estimate_tier *tier, struct error *err);

/* ---- report.c ---- */

/** Heat map, summary and the worst links, to standard output (standard error when the links
 *  file goes there). */
void report_print (struct coordinator *c, const struct estimate_tier *tier);
/** The rounds and the expected time. */
void report_plan (struct coordinator *c);

/* ---- links_matrix.c, a part of links.c ---- */

struct links_writer {
    struct coordinator *c;
    struct estimate_tier *tier;
    bool estimates; /* among the links that were written last */
    json_t *doc;
    struct error *err;
};

/** "DIR/NAME-what", where the links file is DIR/NAME.json.
 *  @param[out] base  the name in its folder, a part of the result
 *  @return to be freed; NULL: out of memory */
char *links_beside (const struct links_writer *w, const char *what, const char **base);

/** Add the matrices to the document's `links`.  @return ST_OK, ST_IO or ST_NOMEM */
enum status links_add (struct links_writer *w);

#endif
