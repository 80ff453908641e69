/* Finished work on disk: a file beside the links file, a line for each thing measured.
 *
 * The first line of each run says who the endpoints are; the lines after it speak of them by
 * number.  A line that was cut off by a crash ends the reading.  When the disk is full the
 * run goes on, and what could not be written is tried again with the next lines.
 */
#ifndef BWPROBE_JOURNAL_H
#define BWPROBE_JOURNAL_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "bwprobe/results.h"
#include "bwprobe/schedule.h"

/** One thing that was measured. */
struct journal_item {
    int src, dst;            /* endpoints, as they are numbered in this run */
    enum schedule_kind kind; /* SCHEDULE_KINDS: the second look at a suspect */
    int pass;
    bool failed;
    double bytes_per_s, latency_s, residual;
    bool counts_as_alone; /* measured together, but as good as alone */
    const char *reason;
};

/** Take what an item that did not fail says into the results of its pair. */
void journal_item_take (const struct journal_item *item, struct results_pair *p);

struct journal;

/** The run that a journal is of, and who takes what an earlier one measured. */
struct journal_run {
    const char *transport;   /* what measures */
    const char *const *name; /* [n] of the endpoints: "node/gpu" */
    int n;
    bool resume;
    void (*take) (void *context, const struct journal_item *item);
    void *context;
    long taken; /* items that were handed over */
};

/** Open the journal of a links file, "LINKS.part".
 *
 *  @param     run    to resume: what is there is kept and handed over, item by item, for those
 *                    endpoints that are there again; otherwise it is begun anew, and what is
 *                    there is called "LINKS.part.old", or the first of ".old2", ".old3", ... that
 *                    is free
 *  @param     notes  what happened to an older journal
 *  @return ST_OK; ST_IO, also where LINKS is a folder; ST_INVALID when what is there is no
 *          journal, or of another transport */
enum status journal_open (const char *links_path, struct journal_run *run,
                          struct journal **out, struct notes *notes, struct error *err);

/** Append an item; it reaches the disk with the first that comes a second after the last writing,
 *  or with journal_keep or journal_flush. */
void journal_add (struct journal *j, const struct journal_item *item);

/** While nothing comes: write what is not on disk yet, a second after the last writing. */
void journal_keep (struct journal *j);

/** Write what is not on disk yet. */
void journal_flush (struct journal *j);

/** Why the last attempt to write failed, or NULL. */
const char *journal_trouble (const struct journal *j);

/** Write what is left; with `remove` the file goes away: all is in the links file. */
void journal_close (struct journal *j, bool remove);

#endif
