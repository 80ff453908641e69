/* Shared by the files of workload/ alone. */
#ifndef WORKLOAD_WORKLOAD_PRIVATE_H
#define WORKLOAD_WORKLOAD_PRIVATE_H

/** A shipped profile: its name and its JSON text.  The table is generated from
 *  workload/profiles/ and ends with a NULL name. */
struct workload_shipped {
    const char *name, *text;
};
extern const struct workload_shipped workload_shipped_profiles[];

#endif
