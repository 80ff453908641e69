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

/** The text of a cell by the column's name. */
const char *calibrate_cell (const struct row *r, const char *name);
/** A whole number of a cell; absent when empty, -1 when it is no such number. */
int calibrate_whole (const struct row *r, const char *name, int absent);
/** Does s contain part, whatever the case? */
bool calibrate_contains (const char *s, const char *part);
/** The value of `key=value` among the notes (separated by ";"). */
bool calibrate_note (const struct row *r, const char *key, char *value, size_t size);
int calibrate_note_int (const struct row *r, const char *key, int absent);
/** Is there key=true? */
bool calibrate_note_true (const struct row *r, const char *key);

#endif
