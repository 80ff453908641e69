/* The subcommands of `linkwise cluster`. */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H

#include "cli/cli.h"

int cli_cluster_show (int argc, char **argv);
int cli_cluster_check (int argc, char **argv);
int cli_cluster_merge (int argc, char **argv);
int cli_cluster_import (int argc, char **argv);
int cli_cluster_drain (int argc, char **argv);
int cli_cluster_synth (int argc, char **argv);

#endif
