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

struct xml;

/** One importer: is it that format, and its reader, of a whole document or of one machine. */
struct importer {
    struct topology_format format;
    bool (*is) (const char *data);
    const char *root[2]; /* instead: the XML's outermost element has one of these names */
    enum status (*read) (const struct import *in, json_t **doc);
    /** Fill a machine and prepare it; from XML where `root` says so. */
    enum status (*read_machine) (const struct import *in, struct machine *m);
    enum status (*read_xml) (const struct import *in, const struct xml *root,
                             struct machine *m);
    const char *source; /* of a machine */
};

/** Fill a machine with what the importer reads, by read_machine or read_xml. */
enum status import_machine (const struct importer *importer, const struct import *in,
                            struct machine *m);

/* One file each. */
extern const struct importer import_hwloc, import_nccl, import_smi, import_slurm_topology,
    import_slurm_nodes, import_ibnet;

/** "FILE: TEXT" with ST_INVALID, and as a note. */
#define import_fail(in, text, ...) \
    err_set ((in)->err, ST_INVALID, "%s: " text, (in)->name, ##__VA_ARGS__)
#define import_note(in, text, ...) \
    notes_add ((in)->notes, "%s: " text, (in)->name, ##__VA_ARGS__)

/** The next line of a text, without its end (\n, \r\n) and without terminal escapes.
 *
 *  @param[in,out] at    where the line begins; NULL after the last
 *  @param[out]    line  its text; reused by the next call, text_free at the end
 *  @return false at the end, or out of memory (line->failed)
 */
bool import_line (const char **at, struct text *line);

/** Take the lines of a text one by one, numbered from 1; they may be changed. */
enum status import_lines (const struct import *in,
                          enum status (*take) (void *context, char *line, int number),
                          void *context);

#endif
