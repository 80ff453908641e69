/* What is trained and how it is split: the model, the job, the configuration, the framework
 * profile, and the plan.
 *
 * These are plain data: anyone may fill them.  The readers check everything once, at the boundary.
 */
#ifndef WORKLOAD_WORKLOAD_H
#define WORKLOAD_WORKLOAD_H

#include "workload/config.h"
#include "workload/model.h"
#include "workload/profile.h"

/** Where one rank runs. */
struct workload_place {
    const char *node; /* borrowed from the plan's document or the cluster */
    int gpu;          /* index on the node */
};

struct workload_plan {
    struct workload_model model;
    struct workload_job job;
    struct workload_config config;
    char profile[256];
    char memory_model[32]; /* its formulas: "linkwise", "fujii", "korthikanti" */
    double memory_limit_pct;
    double oom_risk;       /* above 0: the limit is a chance of running out instead */
    int *layers_per_stage; /* [pp] */
    int *layers_per_chunk; /* [pp * vpp] as workload_stage_of_chunks takes it; NULL: each
                              stage's dealt as workload_chunk_layers does */
    int n_ranks;
    struct workload_place *place; /* [n_ranks] */
    json_t *doc;                  /* when read from a file; owns the names */
};

/** Read a plan file ("-" is standard input) and check that it is whole: degrees fit the
 *  model and multiply to the ranks, every rank is there once, no GPU serves two ranks.
 *
 *  @param[out] p  release with workload_plan_release
 *  @return ST_OK, ST_IO, or ST_INVALID with file, place, expected and found
 */
enum status workload_plan_read (const char *path, struct workload_plan *p,
                                struct error *err);
/** The same from a parsed document.
 *  @param[in] doc    a reference is kept
 *  @param     notes  what of the model is not counted; may be NULL */
enum status workload_plan_from_json (json_t *doc, const char *name,
                                     struct workload_plan *p, struct notes *notes,
                                     struct error *err);
void workload_plan_release (struct workload_plan *p);

/** SHA-256 (64 hexadecimal digits and a NUL) of what the plan's estimate depends on:
 *  model, job, configuration, layers and ranks.  It tells an estimate from a stale one. */
void workload_plan_digest (const struct workload_plan *p, char hex[65]);

/** Layers of a plan's chunk, and what a stage of it holds. */
int workload_plan_chunk (const struct workload_plan *p, int stage, int chunk);
struct workload_stage workload_plan_stage (const struct workload_plan *p, int stage);

/** The plan's part of a plan file: model, job, degrees, layers, ranks.  A new reference;
 *  NULL when out of memory. */
json_t *workload_plan_to_json (const struct workload_plan *p);

#endif
