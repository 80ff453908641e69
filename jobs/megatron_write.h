/* Shared by the files that write Megatron's words: megatron_write.c, and megatron_facts.c below it.
 */
#ifndef JOBS_MEGATRON_WRITE_H
#define JOBS_MEGATRON_WRITE_H

#include "jobs/jobs_private.h"

/** Bytes of Megatron's usual optimizer state per parameter. */
#define JOBS_MEGATRON_STATE 12

/** The sections of Megatron Bridge's configuration that are written. */
enum section { MODEL, TRAIN, DIST, DDP, OPTIMIZER, COMM_OVERLAP, DATASET, SECTIONS };

extern const char *const jobs_megatron_section[SECTIONS]; /* their names */

struct writing {
    const struct jobs_dialect *dialect;
    bool yaml;
    struct text part[SECTIONS]; /* arguments are all in the first */
    struct text *beside;        /* for the README */
};

/** One option.
 *  @param fact  of the dialect's table;  value  "true" is a flag alone among arguments */
void jobs_megatron_say (struct writing *w, enum section s, const char *fact,
                        const char *value);
/** One that may have no value, NULL: what is not set a recipe may have set, so that it is said as
 *  `unset`; the arguments have it by default. */
void jobs_megatron_choose (struct writing *w, enum section s, const char *fact,
                           const char *value, const char *unset);
void jobs_megatron_say_flag (struct writing *w, enum section s, const char *fact,
                             bool on);

/** The facts of the profile that are options, and those that are none beside. */
void jobs_megatron_facts (const struct workload_plan *p, const struct jobs_priced *by,
                          struct writing *w);

#endif
