/* Shared by the files of workload/ alone. */
#ifndef WORKLOAD_WORKLOAD_PRIVATE_H
#define WORKLOAD_WORKLOAD_PRIVATE_H

#include "base/json.h"
#include "workload/workload.h"

/** A field of config.json and the part of struct workload_model that it is. */
struct workload_field {
    const char *key; /* NULL ends a table */
    size_t offset;
    int max;
    bool needed; /* must be there */
    bool flag;   /* a bool, not an int */
    int least;   /* of an int: 1, or 0 where that is a size too */
    bool other;  /* an older name of the field of the same member that follows in the
                    table; read, but never written */
};

/** A model family. */
struct workload_family {
    const char *type; /* model_type */
    const struct workload_field *fields;
    bool tied; /* embeddings, unless the file says otherwise */
    enum status (*finish) (const struct json_at *at, struct workload_model *m,
                           struct notes *notes, struct error *err);
};

/** The family of a model_type, or NULL. */
const struct workload_family *workload_family_find (const char *type);
/** Append the known model types, quoted, to a message. */
void workload_family_list (struct text *out);

/** A shipped profile: its name and its JSON text.  The table is generated from
 *  workload/profiles/ and ends with a NULL name. */
struct workload_shipped {
    const char *name, *text;
};
extern const struct workload_shipped workload_shipped_profiles[];

#endif
