/* The cluster: nodes, GPUs and the directed links between them.
 *
 * GPUs are numbered in node order: node 0's first.  Links are held as they were given
 * (one number, a rule, a matrix per node, node x node matrices per rail, exceptions), never
 * expanded to GPU x GPU, so that a cluster of 100,000 GPUs fits.  A cluster is read-only
 * once made.  Drained GPUs are not in it: what is left of a node is numbered anew, and
 * topology_gpu_index tells the number that the machine gives a GPU.
 */
#ifndef TOPOLOGY_TOPOLOGY_H
#define TOPOLOGY_TOPOLOGY_H

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/npy.h"
#include "base/text.h"

#define TOPOLOGY_NAME_MAX 253 /* characters of a node's name */
#define TOPOLOGY_NODE_GPUS_MAX 1024
#define TOPOLOGY_LINE_NODES_MAX 131072 /* of a cluster on one line */

/** What a GPU type can do.  Rates are the vendor's dense peaks; 0 means that the type does
 *  not have that precision. */
struct topology_gpu_type {
    char name[64];
    double memory_bytes;    /* as the driver reports it, not the label's */
    double hbm_bytes_per_s; /* vendor's peak */
    double bf16_flop_per_s, fp16_flop_per_s, fp8_flop_per_s, fp32_flop_per_s,
        tf32_flop_per_s;    /* products of fp32 numbers, rounded to TF32 */
    int multiprocessors;    /* SMs or CUs */
    double gemm_efficiency; /* part of the peak that large matrix products reach */
    /* part of its links that all-reduces inside NVSwitches (NVLink SHARP) reach; 0: its nodes
     * have none */
    double nvls_efficiency;
    /* For profiles that leave compute to the GPU type; 0: not known. */
    double fp8_gemm_efficiency; /* as gemm_efficiency, of the fp8 peak */
    double flash_efficiency,
        flash2_efficiency; /* of the bf16 peak, causal and forward, in 16,384 tokens of 16
                              heads 128 wide: cuDNN's or FlashAttention 3's kernels,
                              FlashAttention 2's */
    double host_factor;    /* the host's time to launch kernels over an A100's */
    double fp4_flop_per_s, fp4_gemm_efficiency; /* NVFP4, MXFP4; as fp8's */
    /* What measurements alone tell (topology/compute.c); 0: nothing was measured. */
    double tf32_gemm_efficiency, fp32_gemm_efficiency; /* as gemm_efficiency, of theirs */
    double copy_bytes_per_s; /* read and written by copies of its own memory */
    const json_t *measured;  /* by key of the cluster file's type: what measured it; NULL:
                                nothing; the cluster's */
    const char *source; /* of a cluster file's type as it says; NULL: it does not; the
                                cluster's */
    double host_bytes_per_s,     /* topology_host_of; 0: its usual machines' */
        host_memory_bytes_per_s; /* the same */
    /* built-in type that a cluster file's starts from */
    const struct topology_gpu_type *like;
};

/** How much longer flash attention takes on this type in sequences of `seq` tokens, for each
 *  product, than where flash_efficiency holds (docs/formulas.md, T20).
 *  @param rows  queries of all heads and sequences, tokens times heads
 *  @param fixed  tokens that a kernel's start and end are worth: one of the two below */
double topology_flash_over (const struct topology_gpu_type *t, double fixed, double seq,
                            double rows);
#define TOPOLOGY_FLASH_FWD 320.0
#define TOPOLOGY_FLASH_BACK 1000.0

/** A built-in type by its name, or NULL. */
const struct topology_gpu_type *topology_gpu_type_builtin (const char *name);
/** The same, also by other spellings ("h100", "A100-80GB", "8x RTX 4090"), of several types the
 *  usual one; by what drivers call it ("NVIDIA H100 80GB HBM3"); and by what clouds call a machine
 *  ("p4d.24xlarge").  NULL too where the name says a memory that no type of it has. */
const struct topology_gpu_type *topology_gpu_type_meant (const char *name);
/** Where the type's constants come from: what the cluster file says, else of the built-in type of
 *  its name. */
const char *topology_gpu_type_source (const struct topology_gpu_type *t);

/** What a name says of a GPU. */
struct topology_gpu_reading {
    const struct topology_gpu_type *type; /* NULL: of a GPU that is not built in */
    double said_gb; /* memory that the name says and the type has not; 0: none */
    double
        node_bytes_per_s; /* the network of the machine that is named; 0: the type's usual */
    bool other_memory;    /* than the type's is said */
    bool strange;         /* words stand beside that are no GPU's */
    bool several;         /* another type is named, too */
};
/** The same of a table of runs: the nearest type, and where it differs.
 *  @param[in]  gb   memory that is stated beside it; 0: none
 *  @return false: it names none that is known */
bool topology_gpu_read (const char *name, double gb, struct topology_gpu_reading *out);
/** The name of the built-in type of a product, such as "NVIDIA H100 80GB HBM3".
 *
 *  A product with several memory sizes under one name is the usual one of them unless
 *  memory_bytes tells otherwise; one with another memory than any type has no answer.
 *
 *  @param[in] product       as cuDeviceGetName, nvidia-smi or nccl-tests give it
 *  @param[in] memory_bytes  what the driver reports, or 0 when not known
 *  @return a name that topology_gpu_type_builtin knows, or NULL
 */
const char *topology_gpu_type_of_product (const char *product, double memory_bytes);
/** "1g.10gb": a slice of a GPU, as MIG names it, is no type. */
bool topology_gpu_is_slice (const char *name);
/** "; did you mean h100-sxm5-80g?", or what else can be said, for a name that is no type's; or
 *  "". */
const char *topology_gpu_type_hint (const char *name, char buf[TEXT_HINT]);
/** The type that an option names, with a note where that is not its own name.
 *  @param[in] option  begins messages: "--gpu"
 *  @return ST_OK, or ST_USAGE with what may have been meant */
enum status topology_gpu_type_take (const char *option, const char *name,
                                    const struct topology_gpu_type **out,
                                    struct notes *notes, struct error *err);
/** All built-in types. @param[out] n how many */
const struct topology_gpu_type *topology_gpu_types_builtin (int *n);

/** What one GPU has of its host. */
struct topology_host {
    double link_bytes_per_s;   /* to the host's memory, and as much back */
    double memory_bytes_per_s; /* its share of the bandwidth of the host's memory */
    bool nominal;              /* some of it is its type's usual machines' */
};
struct topology_host topology_host_of (const struct topology_gpu_type *t);

struct topology_pattern;
struct pairs;

/** A matrix of one quantity over n endpoints, or one number for all pairs. */
struct topology_matrix {
    int n;           /* 0: one number for all pairs */
    double number;   /* when n == 0, in SI units */
    double scale;    /* v's unit in SI units */
    const double *v; /* [n*n] row-major, entry i*n + j is i -> j; NaN is unmeasured; NULL
                        where npy.f or the pattern has them */
    struct npy npy;  /* owns v when it came from a file */
    double *own;     /* owns v otherwise */
    struct topology_pattern *pattern; /* a rule instead of entries, or NULL; owned */
};

/** The same as topology_matrix_at, of a pattern. */
double topology_matrix_entry (const struct topology_matrix *m, int i, int j);

/** Entry i -> j in SI units; NaN when unmeasured. */
static inline double topology_matrix_at (const struct topology_matrix *m, int i, int j)
{
    size_t at = (size_t) i * (size_t) m->n + (size_t) j;

    if (m->n == 0)
        return m->number;
    return m->v       ? m->v[at] * m->scale
           : m->npy.f ? (double) m->npy.f[at] * m->scale
                      : topology_matrix_entry (m, i, j);
}

/** Links of a GPU type's usual machines (usual.c): of a pair inside, and a node's NICs together. */
struct topology_usual {
    double intra_gb_per_s, intra_us, node_gb_per_s;
};
struct topology_usual topology_usual_links (const char *type);
/** GPUs of the nodes whose NICs these are: of a GB10 its one, else 8. */
int topology_usual_node_gpus (const char *type);
/** GPUs of an NVL72 rack that a job uses, so that degrees divide: the rack is one NVLink domain,
 *  whatever its trays are called.  0: machines with this type are single nodes. */
int topology_usual_rack (const char *type);
/** How many of so many nodes with so many GPUs of this type share their NVLink, as the trays of an
 *  NVL72 rack do: 16 where whole racks are used so, else all 18.  1: none. */
int topology_usual_domain (const char *type, int nodes, int gpus);
#define TOPOLOGY_NIC_GB_PER_S 12.5 /* the slowest NIC that such machines have */

/** Bandwidth and latency over one kind of endpoint. */
struct topology_links {
    struct topology_matrix bytes_per_s; /* one-way payload of one pair alone */
    struct topology_matrix latency_s;
    double gpu_bytes_per_s; /* intra only: one GPU's total; 0 when not given */
    bool nominal;           /* figures of data sheets, not measurements */
    bool has_estimates;     /* estimate_error is there */
    /* of links that were estimated from others: 9 of 10 that were held out came within this part
     * of their estimates; NaN: not an estimate */
    struct topology_matrix estimate_error;
};

#define TOPOLOGY_SWITCHES_MAX 16 /* levels of switches above a node */

struct topology_node {
    char *name;
    int gpus;                             /* that are not drained */
    int first_gpu;                        /* cluster-wide number of its first GPU */
    const struct topology_gpu_type *type; /* NULL only where the file leaves it open */
    const struct topology_links *intra;   /* NULL when not given */
    /* what all its GPUs reach together off the node; 0: not given */
    double node_bytes_per_s;
    double host_memory_bytes; /* for all its GPUs; 0: not told */
    double *speed;            /* [gpus] factors, or NULL: all 1 */
    char **gpu_uuid;          /* [gpus], or NULL */
    int *gpu_numa;            /* [gpus], or NULL */
    char **gpu_nic;           /* [gpus], or NULL */
    char **gpu_cpus; /* [gpus] cores of the GPU's NUMA node as in "0-15,64-79", or NULL */
    char **gpu_pci;  /* [gpus] PCI addresses, or NULL */
    int *gpu_rail;   /* [gpus] the rail that each is on, or NULL */
    int *gpu_index;  /* [gpus] the machine's numbers, or NULL: 0, 1, ... */
    int gpus_listed; /* with the drained ones */
    char *rack;      /* or NULL */
    char **switches; /* NULL-terminated, from the nearest one upwards; or NULL */
    int *switch_id;  /* [levels] equal where the names are */
    int levels;      /* of switches */
    bool drained;
    struct topology_links *own_intra; /* what only this node has, or NULL; owned */
};

/** Has the node one kind of link for all its GPUs? */
static inline bool topology_alike_inside (const struct topology_node *n)
{
    return !n->intra || (n->intra->bytes_per_s.n == 0 && n->intra->latency_s.n == 0);
}

struct topology_cluster {
    char *name;
    int n_nodes, n_gpus;
    struct topology_node *node; /* [n_nodes] */
    int *node_of_gpu;           /* [n_gpus] */
    bool has_inter;
    bool has_gpu_links; /* the links differ between the GPUs of a node: by links.gpu, by
                           rails, or by an exception that names a GPU */
    struct topology_links inter;     /* over nodes, when has_inter */
    struct topology_links gpu_links; /* over GPUs, replaces intra and inter: links.gpu */
    bool has_gpu_matrix;             /* gpu_links is there */
    bool has_estimates;              /* some links may be estimates */
    bool has_pair_totals;            /* pair_bytes_per_s is there */
    struct topology_matrix pair_bytes_per_s; /* over nodes: what all GPUs of one send to
                                                those of another together */
    double lowest_pair_bytes_per_s;          /* lowest measured of it */
    struct topology_links *rail;             /* [n_rails] over nodes: GPUs of one rail */
    int n_rails;
    /* a GPU's share of its node's host memory, the least of the nodes that tell theirs and are
     * not drained; 0: none does */
    double host_share_bytes;
    double lowest_intra_bytes_per_s; /* lowest measured inside nodes; 0: none */
    double lowest_inter_bytes_per_s; /* lowest measured between nodes; 0: none */
    json_t *doc; /* the document, .npy references resolved on demand */

    /* owned tables behind the pointers above */
    const struct topology_node **by_name; /* [n_nodes] */
    struct topology_gpu_type *type;
    int n_types;
    struct topology_links *intra;
    int n_intra;
    int *gpu_row; /* [n_gpus] row of each GPU in links.gpu, or NULL: its number */
    struct pairs *except_bytes_per_s, *except_latency_s; /* between GPUs */
    char *folder; /* of the file, for relative .npy names */
};

/** Read a cluster file, a cluster on one line, or "-" for standard input.
 *
 *  An argument with a blank in it that is not the name of an existing file is a cluster
 *  on one line: `2x8 h100-sxm5-80g intra:370 inter:48 [intra-us:8] [inter-us:12]
 *  [node:300]`, parts joined by " + "; bandwidths in GB/s.  Between nodes of different
 *  parts the lower `inter` holds.  Without `intra` or `inter`, links are the GPU type's
 *  usual ones, marked as nominal, and a note says so.
 *
 *  @param[out] out    destroy with topology_cluster_destroy
 *  @param      notes  unknown keys are noted here; may be NULL
 *  @return ST_OK; ST_IO; ST_INVALID for any breach of the cluster file's contract
 */
enum status topology_cluster_read (const char *arg, struct topology_cluster **out,
                                   struct notes *notes, struct error *err);

/** The same, but what planning needs may be missing, as in the description of a machine:
 *  nodes without GPUs, types or links that nobody named.  Only for commands that look at
 *  clusters or put them together; topology_link knows no link then (0 bytes/s). */
enum status topology_cluster_read_partial (const char *arg, struct topology_cluster **out,
                                           struct notes *notes, struct error *err);

/** SHA-256 of a cluster file; where it names .npy files, of its digest and theirs, in its order.
 *  @param[in] file  its name: .npy files are beside it
 *  @param[in] data  [len] what is in it
 *  @return ST_OK, ST_NOMEM; ST_IO where a .npy file cannot be read, ST_INVALID for bad JSON */
enum status topology_file_sha256 (const char *file, const char *data, size_t len,
                                  char hex[65], struct error *err);

/** Where a file's relative .npy names lead from: its folder, behind symbolic links, with a '/' at
 *  the end.  @param[out] folder  to be freed; NULL: the current folder */
enum status topology_folder (const char *file, char **folder, struct error *err);

/** topology_cluster_read from a parsed document.
 *
 *  @param[in] doc     borrowed; a reference is kept
 *  @param[in] name    for messages
 *  @param[in] folder  where relative .npy names are looked up; NULL: the current folder
 */
enum status topology_cluster_from_json (json_t *doc, const char *name, const char *folder,
                                        struct topology_cluster **out,
                                        struct notes *notes, struct error *err);

/** topology_cluster_read_partial from a parsed document. */
enum status topology_cluster_from_json_partial (json_t *doc, const char *name,
                                                const char *folder,
                                                struct topology_cluster **out,
                                                struct notes *notes, struct error *err);

/** The cluster as a document that stands alone: .npy matrices are written out.
 *  @return a new reference, or NULL when out of memory */
json_t *topology_cluster_to_json (const struct topology_cluster *c);

void topology_cluster_destroy (struct topology_cluster *c);

/** Which links are figures of data sheets, not measurements: "intra", "inter" or both in a list.
 *  A new reference. */
json_t *topology_nominal (const struct topology_cluster *c);

/** Index of the node with that name, or -1. */
int topology_node_find (const struct topology_cluster *c, const char *name);
/** How many nodes have these GPUs?  All, where memory is short.  @param[in] gpu [n] */
int topology_nodes_under (const struct topology_cluster *c, const int *gpu, int n);

/** Length of a host's name without its domain: up to the first dot, and all of an address. */
size_t topology_host_length (const char *host);
/** Index of the node that a host's name means: the node of that name or, where one of the
 *  two is short, the only one that is the same up to the first dot.
 *  @return -1 for none, -2 where a short name is ambiguous */
int topology_node_of_host (const struct topology_cluster *c, const char *host);

/** True if a text is a legal node name: [A-Za-z0-9][A-Za-z0-9._-]{0,252}. */
bool topology_name_ok (const char *name);

/** "n3", or "n3:5" with a GPU's number; buf has room for both.  @param[in] gpu  below 0: none */
#define TOPOLOGY_PLACE_TEXT (TOPOLOGY_NAME_MAX + 16)
const char *topology_place_text (const char *node, int gpu,
                                 char buf[TOPOLOGY_PLACE_TEXT]);

/** One directed link. */
struct topology_link {
    double bytes_per_s; /* what to price it at; 0: nothing of its kind was measured */
    double latency_s;
    bool measured;
};

/** The link src -> dst between two different GPUs.
 *
 *  An unmeasured link is priced at the lowest measured bandwidth of its kind (inside
 *  nodes, between nodes).
 */
struct topology_link topology_link (const struct topology_cluster *c, int src, int dst);

/** The held-out error of the link src -> dst where it is an estimate (topology_links); NaN
 *  where it is none.  Only where the cluster has estimates. */
double topology_link_estimate_error (const struct topology_cluster *c, int src, int dst);

/** A link of these matrix entries (NaN: unmeasured), priced at `lowest` where nobody
 *  measured it. */
static inline struct topology_link topology_link_priced (double bytes_per_s,
                                                         double latency_s, double lowest)
{
    if (isnan (latency_s))
        latency_s = 0.0;
    if (isnan (bytes_per_s))
        return (struct topology_link){lowest, latency_s, false};
    return (struct topology_link){bytes_per_s, latency_s, true};
}

/** The link from node a to node b where all their GPUs see the same one, that is when the
 *  cluster has no links.gpu.  a != b. */
static inline struct topology_link topology_node_link (const struct topology_cluster *c,
                                                       int a, int b)
{
    if (!c->has_inter)
        return (struct topology_link){0};
    return topology_link_priced (topology_matrix_at (&c->inter.bytes_per_s, a, b),
                                 topology_matrix_at (&c->inter.latency_s, a, b),
                                 c->lowest_inter_bytes_per_s);
}

/** What all GPUs of node a send to those of node b together, a != b; a pair that nobody
 *  measured has the lowest of all.  The cluster must have pair totals. */
static inline double topology_pair_total (const struct topology_cluster *c, int a, int b)
{
    double pair = topology_matrix_at (&c->pair_bytes_per_s, a, b);

    return isnan (pair) ? c->lowest_pair_bytes_per_s : pair;
}

/** The most that a flow from node a to b can have, a != b, while `out` flows leave a and `in`
 *  flows reach b: its share of each node's total, and of the total from all GPUs of a to
 *  those of b.
 *
 *  @param[in] out, in  1 or more (less counts as 1)
 *  @return bytes/s; INFINITY where no total is known */
static inline double topology_share (const struct topology_cluster *c, int a, int b,
                                     int out, int in)
{
    double from = c->node[a].node_bytes_per_s, to = c->node[b].node_bytes_per_s;
    double share = INFINITY;

    out = out > 1 ? out : 1;
    in = in > 1 ? in : 1;
    if (from > 0)
        share = from / out;
    if (to > 0)
        share = to / in < share ? to / in : share;
    if (c->has_pair_totals) {
        double pair = topology_pair_total (c, a, b) / (out > in ? out : in);

        share = pair < share ? pair : share;
    }
    return share;
}

/** One GPU's speed factor. */
static inline double topology_gpu_speed (const struct topology_cluster *c, int gpu)
{
    const struct topology_node *n = &c->node[c->node_of_gpu[gpu]];

    return n->speed ? n->speed[gpu - n->first_gpu] : 1.0;
}

/** The number that the machine gives a GPU on its node: what CUDA_VISIBLE_DEVICES and a
 *  plan's `gpu` mean.  Differs from its place in the node where GPUs are drained. */
static inline int topology_gpu_index (const struct topology_cluster *c, int gpu)
{
    const struct topology_node *n = &c->node[c->node_of_gpu[gpu]];
    int k = gpu - n->first_gpu;

    return n->gpu_index ? n->gpu_index[k] : k;
}

/** The GPU with that number on a node; -1 when there is none or it is drained. */
int topology_gpu_find (const struct topology_cluster *c, int node, int index);

/** Levels of switches from node a up to the first switch that is above b too: 0 under one
 *  leaf switch; -1 when unknown or not connected. */
int topology_hops (const struct topology_cluster *c, int a, int b);

static inline const struct topology_gpu_type *
topology_gpu_type_of (const struct topology_cluster *c, int gpu)
{
    return c->node[c->node_of_gpu[gpu]].type;
}

/** Expand a Slurm host list: `n[001-016,020],m3` (also nested products, `r[1-2]n[1-4]`).
 *
 *  @param[in]  list   text; blanks are not allowed
 *  @param[out] names  NULL-terminated array; release with topology_hostlist_free
 *  @param[out] n      how many, at most 1,000,000
 *  @return ST_OK, ST_NOMEM, or ST_USAGE for a malformed list or too many names
 */
enum status topology_hostlist_expand (const char *list, char ***names, int *n,
                                      struct error *err);
void topology_hostlist_free (char **names);

/** A host list of those nodes that the cluster has, out of the text of a file: host lists with
 *  commas, blanks or new lines between them, as `sinfo -h -N -o %N` prints them.
 *
 *  @param[in]     file   its name, for messages
 *  @param[in,out] text   is changed
 *  @param[in,out] list   what is added; nothing where the cluster has none of them
 *  @param[out]    notes  how many names the cluster does not have, and the first of them
 *  @return ST_OK, ST_NOMEM, or ST_INVALID for a malformed list */
enum status topology_hostlist_known (const struct topology_cluster *c, const char *file,
                                     char *text, struct text *list, struct notes *notes,
                                     struct error *err);

/** Set marked[] of the nodes of a host list to value, or with "rack:LIST" of all nodes in
 *  racks or below switches of those names; a drained node is never marked.
 *
 *  @param[in]     option  what the list was given for, for messages
 *  @param[in,out] marked  [n_nodes]
 *  @return ST_OK, ST_NOMEM, or ST_USAGE for a list or name that is not right */
enum status topology_mark_nodes (const struct topology_cluster *c, const char *list,
                                 const char *option, bool value, bool *marked,
                                 struct error *err);

/** The first `most` GPUs that are in use, node by node in file order.
 *  @param[out] gpu  [most]  @return how many there are */
int topology_gpus_in_order (const struct topology_cluster *c, int most, int *gpu);

/** Statistics of the measured links between nodes (and GPUs, with links.gpu). */
struct topology_link_stats {
    long pairs, unmeasured;                                      /* directed */
    double min_bytes_per_s, median_bytes_per_s, max_bytes_per_s; /* 0 when none */
};
enum status topology_inter_stats (const struct topology_cluster *c,
                                  struct topology_link_stats *s, struct error *err);

/* ---- what a link has where nothing is wrong: the figure that a mended one gets ---- */

/** Links inside nodes.  Nodes are of one kind that list as many GPUs of one type.  A link's figure
 *  is the median of the links at its place (the GPUs' numbers) in the nodes of the kind: links
 *  that are slower by design are so in all of them.  With fewer than TOPOLOGY_TYPICAL_NODES of
 *  these it is the median of all links inside nodes of the kind. */
struct topology_inside;
#define TOPOLOGY_TYPICAL_NODES 3

/** @param[in]  c    borrowed until topology_inside_destroy
 *  @return ST_OK or ST_NOMEM */
enum status topology_inside_create (const struct topology_cluster *c,
                                    struct topology_inside **out, struct error *err);
void topology_inside_destroy (struct topology_inside *x);

/** The figure for the link between two GPUs of one node, bytes/s; NaN where no such link was
 *  measured.  The first question about a place works it out. */
double topology_inside_typical (struct topology_inside *x, int src_gpu, int dst_gpu);

/** Are the links inside a node all alike? */
bool topology_inside_alike (const struct topology_cluster *c, int node);

/** The median of what all GPUs of two nodes reach together, over all pairs of nodes that are in
 *  use; NaN where the cluster does not say it.
 *  @return ST_OK or ST_NOMEM */
enum status topology_pair_typical (const struct topology_cluster *c, double *bytes_per_s,
                                   struct error *err);

#endif
