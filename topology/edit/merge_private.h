/* Shared by the files of the merge. */
#ifndef TOPOLOGY_MERGE_PRIVATE_H
#define TOPOLOGY_MERGE_PRIVATE_H

#include <math.h>
#include <stdbool.h>

#include "base/json.h"
#include "topology/edit/edit.h"
#include "topology/topology.h"

/* ---- one rate of a link out of measurements of several days ---- */

/** One measurement of a link. */
struct history_sample {
    double when_s; /* since 1970 */
    double rate;   /* any unit; > 0 */
    bool busy;     /* beside other traffic: what the link reached at least */
};

/** Why an estimate is not the newest measurement. */
enum history_why {
    HISTORY_NEWEST,    /* it is, or nearly */
    HISTORY_COLLISION, /* the newest is low and older ones are not: it met other traffic */
    HISTORY_HIGH,      /* the newest is high and older ones are not */
    HISTORY_CHANGED,   /* the newest two agree that the link is another than before */
    HISTORY_ACCUSED,   /* counters accuse it: it is believed to be as low as it seems */
    HISTORY_BUSY       /* it reached more, or is known alone, beside other traffic */
};
#define HISTORY_WHYS 6
const char *history_why_text (enum history_why why);

struct history_estimate {
    double rate;
    enum history_why why;
    int samples;  /* that it rests on */
    double age_s; /* of the newest of these, before the newest of all */
};

/** The estimate.
 *
 *  A measurement of age a weighs 2^(-a / half_life); the estimate is the weighted median, so
 *  that one measurement that met other traffic moves nothing, and of two the newer holds.
 *  Exceptions:
 *  - The newest two agree within 10 %, and both lie over 10 % below or above the weighted
 *    median of those before: the link has changed, and the older ones are forgotten.
 *  - The link is accused: what was measured before its counters grew is forgotten, if it was
 *    measured since; then the lower of the newest and the weighted median holds, of two the
 *    lower.
 *  - A busy measurement is a lower bound: it counts where it is above the estimate of the
 *    others, and where there are no others; of busy ones alone, the highest of the last half-life.
 *
 *  @param[in]  s              [n] oldest first; n >= 1
 *  @param[in]  half_life_s    > 0
 *  @param[in]  accused_s      since when counters accuse the link; NaN: they do not
 *  @param      work           [2 n] room
 */
struct history_estimate history_estimate (const struct history_sample *s, int n,
                                          double half_life_s, double accused_s,
                                          struct history_sample *work);

/* ---- the merge ---- */

/** One of the files. */
struct merge_source {
    const char *name;           /* for messages */
    json_t *doc;                /* as it was read */
    struct topology_cluster *c; /* the same with drained GPUs and links in use: what is
                                   known about them is not lost */
    double when;                /* seconds since 1970, NaN: the file does not say */
    int order;                  /* of the arguments */
    bool busy;                  /* measured beside other traffic */
    bool gpus_weak; /* its GPU counts are those that took part in a measurement */
};

struct merge {
    struct merge_source *source; /* [n] the newer the later */
    int n;
    json_t *doc;   /* the result */
    json_t *nodes; /* of it */
    json_t *index; /* node name -> place in nodes */
    int n_nodes;
    double half_life_s; /* 0: the newest measurement alone holds */
    struct merge_accused {
        int node, gpu;   /* gpu -1: a network port */
        const char *nic; /* whose port it is as far as a '/', or NULL */
        double since_s;
    } * accused; /* by counters that grew */
    int n_accused;
    json_t *told;    /* `measured.accused`, or NULL */
    json_t *history; /* `measured.history`, or NULL */
    struct topology_document *out;
    struct notes *notes;
    struct error *err;
};

/** Of two struct merge_source, for qsort: the older first; of one time, as they were named. */
static inline int merge_by_time (const void *a, const void *b)
{
    const struct merge_source *x = a, *y = b;

    return x->when != y->when ? (x->when > y->when) - (x->when < y->when)
                              : x->order - y->order;
}

/** Merged node number i: its document, its name, its GPUs. */
static inline const json_t *merge_node_at (const struct merge *m, int i)
{
    return json_array_get (m->nodes, (size_t) i);
}
static inline const char *merge_name_of (const struct merge *m, int i)
{
    return json_member_text (merge_node_at (m, i), "name");
}
static inline int merge_gpus_of (const struct merge *m, int i)
{
    return (int) json_member_int (merge_node_at (m, i), "gpus");
}

/** Place of a source's node in the merged nodes. */
static inline int merge_place_of (const struct merge *m, const struct merge_source *s,
                                  int node)
{
    return (int) json_member_int (m->index, s->c->node[node].name);
}
static inline bool merge_gives_between (const struct merge_source *s)
{
    return s->c->n_nodes > 1 && (s->c->has_inter || s->c->has_gpu_matrix);
}
static inline double merge_error_at (const struct topology_links *l, int i, int j)
{
    return l->has_estimates ? topology_matrix_at (&l->estimate_error, i, j) : NAN;
}

/** `measured` of the merged document; the nodes are there. */
void merge_measured (struct merge *m);

/* What is filled: rows over nodes, or over GPUs. */
struct merge_planes {
    bool over_gpus;
    int n;          /* endpoints */
    int *node;      /* [n] of each endpoint */
    int *first;     /* [n_nodes + 1] its first endpoint, and the end */
    float *bw, *us; /* [n*n] GB/s and us; NaN: unknown */
    float
        *error; /* [n*n] of estimates, as topology_links has it; NULL: no file has any */
    char *
        weak; /* [n*n] 1: nominal, busy or an estimate: a measurement alone replaces it */
    unsigned short *from; /* [n*n] sources before it are forgotten: the link failed */
    double conflicts;
    struct merge_conflict {
        double share; /* of the larger rate */
        int from, to, source;
        float old, new;
    } largest; /* of the conflicts */
};

/** The links between nodes into `links.inter` or `links.gpu`. */
enum status merge_between (struct merge *m, json_t *links);
/** An endpoint in words: "n1" or "n1:3". */
static inline const char *merge_end_text (const struct merge *m,
                                          const struct merge_planes *p, int end,
                                          char buf[TOPOLOGY_PLACE_TEXT])
{
    return topology_place_text (merge_name_of (m, p->node[end]),
                                p->over_gpus ? end - p->first[p->node[end]] : -1, buf);
}

/** What counters accuse: `m->accused` is filled. */
enum status merge_counters (struct merge *m);

/** Rates of links that several files measured, by history_estimate: p->bw and
 *  `m->history` are set.  Nothing where a file that gives links has no time. */
enum status merge_history (struct merge *m, struct merge_planes *p);

/** Directed links of an end, or inside a node, that are enough to judge it. */
#define MERGE_LINKS_MIN 6

/** What came of a link's measurements. */
struct history_finding {
    struct history_estimate e;
    double newest;
    int busy; /* measurements under load */
};
/** What n measurements come to, oldest first, of a link that counters accuse since then (NaN: they
 *  do not; INFINITY: most links of its end are slow, so that the newest are believed).
 *  @param work  [2 n] room
 *  @return false: there are fewer than two */
bool merge_weigh (const struct merge *m, const struct history_sample *s, int n,
                  double accused_s, struct history_sample *work,
                  struct history_finding *f);
/** A measurement of a source as of now at the latest. */
struct history_sample merge_sample (const struct merge_source *s, double rate);
/** Add a link inside a node to `m->history`, after merge_history. */
void merge_history_inside (struct merge *m, const char *from, const char *to,
                           const struct history_finding *f);

/** `links.intra`.  @return ST_OK or ST_NOMEM */
enum status merge_inside (struct merge *m, json_t *links);

/** Links that no file gives, from what is known about types and NICs. */
enum status merge_fill (struct merge *m);

#endif
