/* Tables in CSV files (RFC 4180), through libcsv. */
#ifndef BASE_CSV_H
#define BASE_CSV_H

#include <stdio.h>

#include "base/error.h"

/** A table; the first line is the header, behind lines that begin with # and Excel's "sep=;". */
struct csv_table {
    char **header; /* [columns] */
    char **cell;   /* [rows * columns], row-major; "" where empty */
    int *found;    /* [rows] cells that the row had in the file */
    int rows, columns;
    int cells; /* that are allocated in cell */
    /* of its cells: a comma; a semicolon or a tab where the header has no comma; a bar where the
     * header begins with one, as in Markdown, whose empty first and last columns are kept; or what
     * Excel is told */
    char separator;
};

/** Read a whole file ("-" is standard input).  A short row is filled up with empty
 *  cells, a long one is cut; `found` has the number in the file.  Empty lines are skipped.
 *  @param[out] t  release with csv_table_release
 *  @return ST_OK, ST_IO, ST_NOMEM, or ST_INVALID */
enum status csv_table_read (const char *path, struct csv_table *t, struct error *err);
/** The same of text.  @param[in] name  for messages */
enum status csv_table_parse (const char *name, const char *data, size_t len,
                             struct csv_table *t, struct error *err);
void csv_table_release (struct csv_table *t);

/** The first column with that name at or after `from`, or -1. */
int csv_table_column (const struct csv_table *t, const char *name, int from);

/** Write one cell, quoted where it must be. */
void csv_write_cell (FILE *out, const char *text);

#endif
