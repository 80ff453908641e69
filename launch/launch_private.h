/* Shared by the files of launch/ alone. */
#ifndef LAUNCH_LAUNCH_PRIVATE_H
#define LAUNCH_LAUNCH_PRIVATE_H

#include "base/file.h"
#include "base/json.h"
#include "jobs/jobs.h"
#include "launch/launch.h"

/** What a launcher's writer sees. */
struct launch_input {
    const struct workload_plan *plan;
    const struct workload_profile *profile;
    const struct topology_cluster *cluster;
    const int *gpu;           /* [n_ranks] cluster-wide */
    const int *ranks_on_node; /* [n_nodes] */
    int nodes;                /* that hold ranks */
    int most_ranks;           /* on one node */
    const char *linkwise;
};

#define LAUNCH_FILES_MAX 64

/** Which placement a folder holds, as text: the same for all files of a plan on a cluster.  It
 *  stands in the file LAUNCH_SEAL, which is there while the folder is whole, and in every
 *  script, which starts nothing where the two differ. */
#define LAUNCH_GENERATION 17
#define LAUNCH_SEAL "generation"

/** The files so far. */
struct launch_files {
    char generation[LAUNCH_GENERATION];
    struct {
        const char *path; /* a literal */
        struct text text;
        unsigned mode;
    } file[LAUNCH_FILES_MAX];
    int n;
};

/** A file by its path, new and empty unless it is there; write into the text returned. */
struct text *launch_file (struct launch_files *f, const char *path, unsigned mode);

/** A shipped script, launch/scripts/NAME, as a file (once, however often it is asked
 *  for), with the generation. */
void launch_script (struct launch_files *f, const char *path, const char *name);

/** Append the text of launch/scripts/NAME, with the generation in its line for it. */
void launch_script_add (const struct launch_files *f, const char *name, struct text *t);

/** The same, with a value behind the phrase where the script has that. */
void launch_script_filled (const char *name, const char *phrase, const char *value,
                           struct text *t);

/** The shipped scripts, by their names in launch/scripts/. */
extern const struct text_shipped launch_shipped_scripts[];

/** One launcher: its files and its part of the README. */
struct launcher {
    struct text_choice target;
    const char *readme;   /* its own, in its folder */
    const char *paths[6]; /* up to a NULL: everything else that only it writes */
    bool optional; /* a framework that few jobs run: what "all" lacks of it is worth a
                             line of the README alone */
    /** Write the files and the README's part, or say no: ST_NOFIT with the reason and the
     *  nearest thing that works in err, files untouched. */
    enum status (*write) (const struct launch_input *in, struct launch_files *f,
                          struct text *readme, struct error *err);
    /** In its place, of a framework's own file, paths[0]: what writes that, and how a job takes
     *  it, for the README. */
    jobs_writer *config;
    const char *how;
    /** What the plan needs beside that file; NULL: nothing ever. */
    void (*more) (const struct launch_input *in, struct launch_files *f);
};

/* One file each. */
extern const struct launcher launch_openmpi, launch_mpich, launch_slurm, launch_torchrun,
    launch_env, launch_deepspeed, launch_kubernetes, launch_megatron, launch_nemo,
    launch_torchtitan, launch_deepspeed_config;

/** map.txt, the tables of GPUs, the wrapper and the collector, and the README's head. */
enum status launch_generic (const struct launch_input *in, struct launch_files *f,
                            struct text *readme, struct error *err);

/** A launcher's files and its part of the README, as `write` has it. */
enum status launch_write (const struct launcher *l, const struct launch_input *in,
                          struct launch_files *f, struct text *readme, struct error *err);

/** The node of a rank, and what CUDA_VISIBLE_DEVICES is there: a UUID, or NULL. */
const struct topology_node *launch_node_of (const struct launch_input *in, int rank);
const char *launch_uuid_of (const struct launch_input *in, int rank);

/** Are the ranks of every node consecutive, as launchers that order whole nodes need?  Nodes
 *  may hold unlike numbers of them. */
bool launch_by_node (const struct launch_input *in);

/** The two files that Open MPI takes: `rank R=HOST slot=SLOT` and `HOST slots=N`, nodes in
 *  the order of their first ranks.
 *
 *  @return ST_OK, or ST_NOFIT for a node name that its rankfile cannot hold */
enum status launch_rankfile (const struct launch_input *in, const char *slot,
                             struct text *ranks, struct text *hosts, struct error *err);

#endif
