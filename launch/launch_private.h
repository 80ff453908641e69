/* Shared by the files of launch/ alone. */
#ifndef LAUNCH_LAUNCH_PRIVATE_H
#define LAUNCH_LAUNCH_PRIVATE_H

#include "base/file.h"
#include "launch/launch.h"

/** What a launcher's writer sees. */
struct launch_input {
    const struct workload_plan *plan;
    const struct topology_cluster *cluster;
    const int *gpu;           /* [n_ranks] cluster-wide */
    const int *ranks_on_node; /* [n_nodes] */
};

#define LAUNCH_FILES_MAX 32

/** The files so far. */
struct launch_files {
    struct {
        const char *path; /* a literal */
        struct text text;
        unsigned mode;
    } file[LAUNCH_FILES_MAX];
    int n;
};

/** A new, empty file; write into the text returned. */
struct text *launch_file (struct launch_files *f, const char *path, unsigned mode);

/** One launcher: its files and its part of the README. */
struct launcher {
    struct launch_target target;
    const char *const *paths; /* NULL-terminated: everything that it may write */
    void (*write) (const struct launch_input *in, struct launch_files *f,
                   struct text *readme);
};

/* One file each. */
extern const struct launcher launch_openmpi, launch_slurm;

/** map.txt, gpu-uuid.txt and exec.sh. */
enum status launch_generic (const struct launch_input *in, struct launch_files *f,
                            struct text *readme, struct error *err);

#endif
