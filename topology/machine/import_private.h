/* What the importers of topology/ share. */
#ifndef TOPOLOGY_IMPORT_PRIVATE_H
#define TOPOLOGY_IMPORT_PRIVATE_H

#include <stdbool.h>

#include "topology/machine/import.h"
#include "topology/machine/machine.h"

/** A file to be imported. */
struct import {
    const char *name; /* for messages */
    const char *data; /* NUL-terminated text without other NULs */
    size_t len;
    struct notes *notes;
    struct error *err;
};

/** One importer: is it that format, and its reader. */
struct importer {
    struct topology_format format;
    bool (*is) (const char *data, size_t len);
    enum status (*read) (const struct import *in, json_t **doc);
};

/* One file each. */
extern const struct importer import_hwloc, import_nccl, import_smi, import_slurm_topology,
    import_slurm_nodes, import_ibnet;

/** Fill a machine from hwloc's XML; machine_prepare has been called.  For
 *  topology_capture, which adds to it. */
enum status import_hwloc_machine (const struct import *in, struct machine *m);

/** The name that a file gives to what has none: without folder and last suffix. */
char *import_base_name (const char *path);

/** Whether the first tag of a text that is XML has that name. */
bool import_is_xml (const char *data, const char *root);

/** The next line of a text, without its end (\n, \r\n) and without terminal escapes.
 *
 *  @param[in,out] at    where the line begins; NULL after the last
 *  @param[out]    line  its text; reused by the next call, text_free at the end
 *  @return false at the end, or out of memory (line->failed)
 */
bool import_line (const char **at, struct text *line);

/** Split a line at blanks, in place.  @return the number of words, at most max */
int import_words (char *line, char **word, int max);

#endif
