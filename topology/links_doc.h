/* Pieces of the links file that bwprobe and the importers write alike. */
#ifndef TOPOLOGY_LINKS_DOC_H
#define TOPOLOGY_LINKS_DOC_H

#include <jansson.h>

#include "base/error.h"
#include "base/stats.h"
#include "base/text.h"

/* The assumed latency of links that nobody measured: the defaults of a cluster
 * on one line (docs/cluster.md). */
#define TOPOLOGY_INTRA_LATENCY_US 8.0
#define TOPOLOGY_INTER_LATENCY_US 12.0

/** A links file without nodes and links: `version`, `nodes`, `links`, `measured` with
 *  `tool`, `when` (now, UTC) and `status` "complete".
 *  @return a new reference, or NULL when out of memory */
json_t *topology_links_doc_create (const char *tool);

/** A time since 1970 as files have it, "2025-01-31T12:00:00Z", null where it is none; and
 *  the present one.  New references. */
json_t *topology_links_time (double seconds);
json_t *topology_links_now (void);
/** Seconds since 1970 of such a time, or of a number; NaN otherwise. */
double topology_links_seconds (const json_t *when);

/** Append a node.
 *  @param[in] gpu_type  NULL when not known
 *  @return the node, borrowed, or NULL when out of memory */
json_t *topology_links_doc_node (json_t *doc, const char *name, int gpus,
                                 const char *gpu_type);

/** The endpoint of one of `measured`'s pairs, by `src` or `dst`; NULL: it names none. */
const json_t *topology_measured_end (const json_t *measured, const json_t *pair,
                                     const char *side);

/** Turn any text into a node name that the contract allows: other characters become '-'.
 *  @param[out] out  [TOPOLOGY_NAME_MAX + 1] */
void topology_links_name (const char *text, char *out);

/** `intra` of all nodes out of a list of each one's: one object where all are equal.
 *  @param[in] list  stolen
 *  @return a new reference */
json_t *topology_intra_short (json_t *list);

/** A number for the file, to 7 significant digits: what was measured has no more, and
 *  files stay small.  null when x is not finite.  A new reference. */
json_t *topology_links_number (double x);

/** How samples lie: `samples`, `median`, `mad`, `low`, `high` and the interval's
 *  `confidence`.  A new reference.
 *  @param[in] unit  the file's unit in SI units */
json_t *topology_links_spread (const struct stats_spread *s, double unit);

/** A matrix for the file; the diagonal and what is not finite become null.
 *  @param[in] v     [n*n] row-major, i*n + j is i -> j, in SI units
 *  @param[in] unit  the file's unit in SI units
 *  @return a new reference, or NULL when out of memory */
json_t *topology_links_matrix (const double *v, int n, double unit);

/* ---- what bwprobe --compute measured of GPUs, as constants of their types ---- */

/** A document with `measured.endpoints`, as a links file has them. */
struct topology_compute_source {
    const char *name; /* of its file, for messages and as the constants' source */
    const json_t *doc;
};

/** Put the measured compute of GPUs into a document's `gpu_types`.
 *
 *  For each type the median over its GPUs, of one GPU the newest values:
 *
 *      EFFICIENCY = .85 x the fastest product alone / the type's peak
 *      copy_gb_per_s = what copies reach
 *
 *  with EFFICIENCY gemm_efficiency for bf16 (fp16 where there is none), and the precision's
 *  own for fp8, tf32 and fp32.  .85 is what training reaches of products alone
 *  (docs/formulas.md, T21).  Each key's source is noted in the type's `measured`.  A key that
 *  something else than bwprobe measured (layer times) is kept.
 *
 *  @param[in,out] into   has `nodes`; nodes without a type are passed over
 *  @param[in]     from   [n] the newest last
 *  @param         notes  what each type got; may be NULL
 *  @return ST_OK; ST_NOMEM; ST_INVALID, with the place, for a number that is not above 0 and
 *          at most 1.05 x the type's peak, a GPU that is not in `into`, or a type that is
 *          unknown
 */
enum status topology_compute_apply (json_t *into,
                                    const struct topology_compute_source *from, int n,
                                    struct notes *notes, struct error *err);

#endif
