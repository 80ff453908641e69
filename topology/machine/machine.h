/* One machine while it is being described, whatever it is described from; then the node file made
 * of it; and what the importers share.  Private to topology/. */
#ifndef TOPOLOGY_MACHINE_H
#define TOPOLOGY_MACHINE_H

#include <stdbool.h>

#include "topology/machine/import.h"

struct xml;

/** How two devices are connected, from near to far: nvidia-smi's words. */
enum machine_path { PATH_UNKNOWN, PATH_PIX, PATH_PXB, PATH_PHB, PATH_NODE, PATH_SYS };

/** The word, "" for PATH_UNKNOWN. */
const char *machine_path_word (enum machine_path p);

#define MACHINE_PCI_TEXT 24

struct machine_gpu {
    char pci[MACHINE_PCI_TEXT]; /* "0000:07:00.0", or "" */
    unsigned vendor, device;    /* PCI numbers; 0: unknown */
    char *model, *uuid;         /* or NULL */
    int sm;                     /* CUDA compute capability x 10, as NCCL gives it; 0 */
    int numa;                   /* -1: unknown */
    char *cpus;                 /* "0-15,64", or NULL */
    const struct xml *at;       /* the element that describes it, while XML is read */
};

struct machine_nic {
    char *name;
    char pci[MACHINE_PCI_TEXT];
    int numa;
    bool rdma;
    double gb_per_s;      /* 0: unknown */
    const struct xml *at; /* as of a GPU */
};

struct machine_numa {
    int id;
    char *cpus; /* or NULL */
};

struct machine {
    char *name; /* or NULL */
    char *source;
    int packages; /* 0: unknown */
    char *cpu_model;
    double memory_bytes; /* of the host; 0: unknown */
    struct machine_numa *numa;
    int n_numa;
    struct machine_gpu *gpu;
    int n_gpus;
    struct machine_nic *nic;
    int n_nics;
    bool has_nvlinks; /* whether the source tells of NVLinks at all */
    /* All [n_gpus * n_gpus], row i to column j; made by machine_prepare. */
    double *links;               /* NVLinks between two GPUs, their number; 0 none */
    double *nvlink_gb_per_s;     /* all of them together where the source says; 0 */
    enum machine_path *gpu_path; /* beside NVLink */
    enum machine_path *nic_path; /* [n_gpus * n_nics] GPU i to NIC j */
};

/** Append one; the caller fills it.  NULL: out of memory. */
struct machine_gpu *machine_add_gpu (struct machine *m);
struct machine_nic *machine_add_nic (struct machine *m);
struct machine_numa *machine_add_numa (struct machine *m);

/** When all GPUs and NICs are there: sort the GPUs by PCI address, the order of
 *  CUDA_DEVICE_ORDER=PCI_BUS_ID, check that no address and no NIC comes twice, and make
 *  the matrices.
 *  @param[in] where  for messages
 *  @return ST_OK, ST_INVALID or ST_NOMEM */
enum status machine_prepare (struct machine *m, const char *where, struct error *err);

/** Two GPUs behind switches reach what the one has to them and the other from them: add that.
 *  @param[in]     to, from  [n_gpus]
 *  @param[in,out] between   [n_gpus * n_gpus] */
void machine_join_switches (const struct machine *m, const double *to, const double *from,
                            double *between);

/** How GPUs reach each other and the NICs, from the elements that describe them. */
void machine_find_paths (struct machine *m,
                         enum machine_path (*between) (const struct xml *a,
                                                       const struct xml *b));

void machine_release (struct machine *m);

/** Normalise a PCI address to "dddd:bb:dd.f" in lower case: a missing domain is 0, an
 *  eight-digit one is cut, a missing function is 0.
 *  @return false when s is no PCI address; out is "" then */
bool machine_pci (const char *s, char out[MACHINE_PCI_TEXT]);

/** Index of the GPU with that (normalised) address, or -1. */
int machine_find_gpu (const struct machine *m, const char *pci);

/** A cpuset as hwloc, the kernel and NCCL write it (hexadecimal words of 32 bits with
 *  commas, with or without 0x) as a list of cores ("0-15,64").
 *  @return to be freed; NULL when s is none, or is empty or endless */
char *machine_cpus (const char *s);

/** The node file of a machine that was prepared.  What is missing is noted, also a name
 *  that is no node name and had to change.
 *
 *  @param[in]  where  for messages
 *  @param[out] doc    a new reference
 */
enum status machine_to_json (const struct machine *m, const char *where, json_t **doc,
                             struct notes *notes, struct error *err);

/* ---- importers ---- */

/** A file to be imported. */
struct import {
    const char *name; /* for messages */
    const char *data; /* NUL-terminated text without other NULs */
    size_t len;
    struct notes *notes;
    struct error *err;
};

/** One importer: is it that format, and its reader, of a whole document or of one machine. */
struct importer {
    struct text_choice format;
    bool (*is) (const char *data);
    const char *root[2]; /* instead: the XML's outermost element has one of these names */
    enum status (*read) (const struct import *in, json_t **doc);
    /** Fill a machine and prepare it; from XML where `root` says so. */
    enum status (*read_machine) (const struct import *in, struct machine *m);
    enum status (*read_xml) (const struct import *in, const struct xml *root,
                             struct machine *m);
    const char *source; /* of a machine */
};

/** Fill a machine with what the importer reads, by read_machine or read_xml. */
enum status import_machine (const struct importer *importer, const struct import *in,
                            struct machine *m);

/* One file each. */
extern const struct importer import_hwloc, import_nccl, import_smi, import_slurm_topology,
    import_slurm_nodes, import_ibnet;

/** "FILE: TEXT" with ST_INVALID, and as a note. */
#define import_fail(in, text, ...) \
    err_set ((in)->err, ST_INVALID, "%s: " text, (in)->name, ##__VA_ARGS__)
#define import_note(in, text, ...) \
    notes_add ((in)->notes, "%s: " text, (in)->name, ##__VA_ARGS__)

/** The next line of a text, without its end (\n, \r\n) and without terminal escapes.
 *
 *  @param[in,out] at    where the line begins; NULL after the last
 *  @param[out]    line  its text; reused by the next call, text_free at the end
 *  @return false at the end, or out of memory (line->failed)
 */
bool import_line (const char **at, struct text *line);

/** Take the lines of a text one by one, numbered from 1; they may be changed. */
enum status import_lines (const struct import *in,
                          enum status (*take) (void *context, char *line, int number),
                          void *context);

#endif
