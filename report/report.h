/* One self-contained HTML page: a cluster, a plan on it, or two clusters; a plan as a picture.
 *
 * What the page shows is one JSON document, made here and written into it; the scripts in
 * report/page/ draw it. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "mapper/mapper.h"
#include "topology/survey/survey.h"

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

#endif
