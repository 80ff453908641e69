/* Shared by the files of calibrate/ alone. */
#ifndef CALIBRATE_CALIBRATE_PRIVATE_H
#define CALIBRATE_CALIBRATE_PRIVATE_H

#include "calibrate/calibrate.h"

/** A row of a runs file and where its columns are. */
struct row {
    const struct csv_table *table;
    int index;
    int column[64]; /* of the contract's columns, in their order */
};

/** The model of a row.  @return NULL, or why the row must be skipped (a literal) */
const char *calibrate_read_model (const struct row *r, struct workload_model *m);

/** Count a row under a reason; the last of CALIBRATE_REASONS_MAX takes all that is new. */
void calibrate_count_reason (struct calibrate_reason *list, int *n, const char *why,
                             int row);

/** Has the run figures that the part's fit looks at? */
bool calibrate_has_figures (const struct calibrate_run *run, enum calibrate_part part);

/** The text of a cell by the column's name. */
const char *calibrate_cell (const struct row *r, const char *name);
/** A whole number of a cell, 0 to 2^30; absent when empty, -1 when it is none. */
int calibrate_whole (const struct row *r, const char *name, int absent);
/** Does s contain part, whatever the case? */
bool calibrate_contains (const char *s, const char *part);
/** The value of `key=value` among the notes (separated by ";"). */
bool calibrate_note (const struct row *r, const char *key, char *value, size_t size);
/** A whole number among the notes, as calibrate_whole. */
int calibrate_note_int (const struct row *r, const char *key, int absent);
/** Is there key=true? */
bool calibrate_note_true (const struct row *r, const char *key);

#endif
