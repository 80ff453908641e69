/* Descriptions of machines and networks from elsewhere, turned into node files: cluster
 * files in which what is not known yet is left open, for `cluster merge`. */
#ifndef TOPOLOGY_IMPORT_H
#define TOPOLOGY_IMPORT_H

#include <jansson.h>

#include "base/error.h"
#include "base/text.h"

/** The i-th format that can be read, as --format takes it, or NULL after the last. */
const struct text_choice *topology_format_at (int i);

/** The format that a file's content looks like, or NULL. */
const struct text_choice *topology_format_detect (const char *data, size_t len);

/** Read a description of machines.
 *
 *  @param[in]  name    the file's name, for messages; a machine that has no name of its
 *                      own is called after it
 *  @param[in]  format  a format's name, or "auto"
 *  @param[out] doc     a cluster file's document (topology_cluster_from_json_partial); a
 *                      new reference
 *  @param      notes   what is missing in the description
 *  @return ST_OK; ST_INVALID for bad content or none of the formats; ST_USAGE for an
 *          unknown format name; ST_NOMEM
 */
enum status topology_import (const char *name, const char *data, size_t len,
                             const char *format, json_t **doc, struct notes *notes,
                             struct error *err);

/** Describe the machine that this runs on: hwloc's view, and what the NVIDIA driver's
 *  management library (loaded when there is one) and the kernel tell about its GPUs and
 *  NICs.
 *
 *  @return ST_OK, also without any GPU; ST_IO when hwloc cannot look; ST_NOMEM
 */
enum status topology_capture (json_t **doc, struct notes *notes, struct error *err);

#endif
