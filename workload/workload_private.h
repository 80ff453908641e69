/* Shared by the files of workload/ alone. */
#ifndef WORKLOAD_WORKLOAD_PRIVATE_H
#define WORKLOAD_WORKLOAD_PRIVATE_H

#include "base/json.h"
#include "workload/workload.h"

/** A field of config.json and the part of struct workload_model that it is. */
struct workload_field {
    const char *key; /* NULL ends a table */
    size_t offset;
    enum {
        FIELD_NEEDED, /* an int from 1 that must be there */
        FIELD_SIZE,   /* an int from 0 that may be left out */
        FIELD_COUNT,  /* the same from 1 */
        FIELD_OLDER,  /* the same, an older name of the field of the same member that
                         follows in the table; read, but never written */
        FIELD_FLAG    /* a bool */
    } kind;
    int max;
};

/** A model while it is read. */
struct workload_reading {
    const struct json_at *at;
    struct notes *notes;
    struct error *err;
};

/** A model family. */
struct workload_family {
    const char *type; /* model_type */
    const struct workload_field *fields;
    struct workload_model base; /* what stands where the file has nothing */
    /** What the fields do not say; may be NULL. */
    enum status (*finish) (const struct workload_reading *r, struct workload_model *m);
};

/** The family of a model_type, or NULL. */
const struct workload_family *workload_family_find (const char *type);
/** The family of which an unknown model_type has the fields, with a note.  Where none is so,
 *  or something in the file says that its layers are others, ST_INVALID. */
enum status workload_family_guess (const struct workload_reading *r, const char *type,
                                   const struct workload_family **family);
/** Are all layers attention, by what the file lists?  ST_INVALID names the first other. */
enum status workload_family_layers (const struct workload_reading *r);

/** The shipped profiles as JSON, by their names in workload/profiles/. */
extern const struct text_shipped workload_shipped_profiles[];

#endif
