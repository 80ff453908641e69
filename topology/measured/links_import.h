/* Links files from what other tools printed. */
#ifndef TOPOLOGY_LINKS_IMPORT_H
#define TOPOLOGY_LINKS_IMPORT_H

#include <jansson.h>

#include "base/error.h"
#include "base/text.h"

/** Read another tool's output and turn it into a links file (docs/probe.md).
 *
 *  Formats: `nccl-tests` (text, or the JSON of -J; several runs one after another are
 *  fine), `nvbandwidth` (text or JSON), `p2p` (p2pBandwidthLatencyTest), `mpigraph`,
 *  `osu`, `matrix` (a table with node names on both edges), `pairs` (one link a line),
 *  `taccl` (a topology with alpha and beta), `nccl-inspector` (measured beside a job);
 *  and without links, but with counters of ports, `perfquery`, `ibdiagnet` (its db_csv),
 *  `nvlink` (nvidia-smi nvlink -e, dcgmi nvlink -e) and `dcgm` (dcgm-exporter).
 *  docs/probe.md tells what is taken from each, in which direction, and what is assumed.
 *
 *  @param[in]  path    a file; "-" is standard input
 *  @param[in]  format  one of these names, or "auto": the first that the text looks like
 *  @param[out] doc     a new reference: json_decref it
 *  @param      notes   what was assumed or left out; may be NULL
 *  @return ST_OK; ST_IO; ST_NOMEM; ST_USAGE for an unknown format; ST_INVALID, with the
 *          line, for a text that is not of that format or says nothing about links
 */
enum status topology_links_import (const char *path, const char *format, json_t **doc,
                                   struct notes *notes, struct error *err);

/** The name of the i-th format, or NULL after the last. */
const char *topology_links_import_format_at (int i);

#endif
