/* Shared by the files of linkwise check alone. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "check/nccl.h"
#include "cli/cli.h"

/** --nccl-log: what to read, as often as it was given. */
struct check_logs {
    const char **path; /* [n]; release with free */
    int n, n_stdins;
};
extern const struct cli_options check_logs_options;

/** What was found, as `nccl` of docs/outputs.md.  A new reference. */
json_t *check_nccl_json (const struct check_nccl *x, const struct topology_cluster *c);
/** The table of what groups ring as, and what it costs, where a group was compared. */
void check_nccl_print (const struct check_nccl *x);

#endif
