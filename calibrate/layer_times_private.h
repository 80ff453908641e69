/* Shared by the readers of layer times. */
#ifndef CALIBRATE_LAYER_TIMES_PRIVATE_H
#define CALIBRATE_LAYER_TIMES_PRIVATE_H

#include "base/memory.h"
#include "calibrate/layer_times.h"

/** One tool's form of layer times. */
struct layer_times_format {
    const char *name;
    /** Is the file's text of this form? */
    bool (*is) (const char *text);
    /** Add the rows of a file whose text is there, too. */
    enum status (*read) (const char *path, const char *text,
                         struct calibrate_layer_times *out, struct error *err);
};

extern const struct layer_times_format layer_times_csv, layer_times_galvatron,
    layer_times_megatron;

/** Add a row. */
static inline enum status layer_times_add (struct calibrate_layer_times *t,
                                           const struct calibrate_layer_time *row,
                                           struct error *err)
{
    if (!array_grow (&t->row, (size_t) t->n, sizeof *t->row))
        return err_nomem (err);
    t->row[t->n++] = *row;
    return ST_OK;
}

#endif
