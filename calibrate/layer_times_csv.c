/* Layer times as a table: micro_batch, tp, forward_ms; optional backward_ms and seq. */
#include "calibrate/layer_times_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/csv.h"

static bool is_csv (const char *text)
{
    size_t line = strcspn (text, "\n");
    const char *column = strstr (text, "forward_ms");

    return column && (size_t) (column - text) < line;
}

/* A number above 0 in a column; `absent` where the column or the cell is empty, unless it is
 * NAN for a column that must be there. */
static enum status read_cell (const char *path, const struct csv_table *t, int row,
                              const char *name, bool needed, bool whole, double *x,
                              struct error *err)
{
    int column = csv_table_column (t, name, 0);
    const char *s = column < 0 ? "" : t->cell[row * t->columns + column];
    double value;

    if (!*s && !needed)
        return ST_OK;
    if (!text_number (s, &value) || value <= 0 || value > 1e9 ||
        (whole && value != floor (value)))
        return err_set (err, ST_INVALID,
                        "%s: row %d: %s: expected a %snumber above 0, found \"%.40s\"",
                        path, row + 1, name, whole ? "whole " : "", s);
    *x = value;
    return ST_OK;
}

static enum status read_row (const char *path, const struct csv_table *t, int row,
                             struct calibrate_layer_times *out, struct error *err)
{
    double micro_batch = 1, tp = 1, seq = 0, fwd_ms = NAN, back_ms = NAN;
    struct calibrate_layer_time one;

    TRY (read_cell (path, t, row, "micro_batch", true, true, &micro_batch, err));
    TRY (read_cell (path, t, row, "tp", true, true, &tp, err));
    TRY (read_cell (path, t, row, "seq", false, true, &seq, err));
    TRY (read_cell (path, t, row, "forward_ms", true, false, &fwd_ms, err));
    TRY (read_cell (path, t, row, "backward_ms", false, false, &back_ms, err));
    one = (struct calibrate_layer_time){.micro_batch = (int) micro_batch,
                                        .tp = (int) tp,
                                        .seq = (int) seq,
                                        .layers = 1,
                                        .fwd_s = fwd_ms * 1e-3,
                                        .back_s = back_ms * 1e-3};
    snprintf (one.place, sizeof one.place, "row %d", row + 1);
    return layer_times_add (out, &one, err);
}

static enum status read_csv (const char *path, const char *text,
                             struct calibrate_layer_times *out, struct error *err)
{
    struct csv_table t = {0};
    enum status st = csv_table_read (path, &t, err);

    (void) text;
    for (int i = 0; i < t.rows && st == ST_OK; i++)
        st = read_row (path, &t, i, out, err);
    csv_table_release (&t);
    return st;
}

const struct layer_times_format layer_times_csv = {"table", is_csv, read_csv};
