/* Shared by the files of topology/ alone. */
#ifndef TOPOLOGY_TOPOLOGY_PRIVATE_H
#define TOPOLOGY_TOPOLOGY_PRIVATE_H

#include <jansson.h>

#include "base/json.h"
#include "base/pairs.h"
#include "topology/topology.h"

/** Bandwidths that files may have, GB/s: times of slower links lose their meaning in sums. */
#define GB_PER_S_LEAST 1e-9
#define GB_PER_S_MAX 1e9

/** What every part of the cluster file's reader needs. */
struct reader {
    struct topology_cluster *c;
    struct notes *notes;
    struct error *err;
    bool partial;      /* what planning needs may be missing */
    const char *meant; /* the GPU type last read, as the file spells it; NULL: none */
};

/** Read `nodes`. */
enum status topology_nodes_read (struct reader *r, const struct json_at *root);

/** True if a text is a list of cores as the kernel writes it: "0-15,64". */
bool topology_cpus_ok (const char *s);

/** Read `links`; the nodes are known. */
enum status topology_links_read (struct reader *r, const struct json_at *root);

/** Read `links.exceptions` and apply them; all other links are known. */
enum status topology_exceptions_read (struct reader *r, const struct json_at *links);

/** The rail that a GPU is on, where there are rails. */
int topology_rail_of (const struct topology_cluster *c, int gpu);

/** The link src -> dst as it was given: 0 bytes/s when unmeasured. */
struct topology_link topology_link_given (const struct topology_cluster *c, int src,
                                          int dst);

/** Fill the lowest measured bandwidth of each kind, the price of an unmeasured link. */
void topology_find_lowest (struct topology_cluster *c);

/** Read `gpu_types`, if there. */
enum status topology_types_read (struct reader *r, const struct json_at *root);

/** A type as a document has it: of its gpu_types, or built in. */
enum status topology_type_in (const json_t *doc, const char *name,
                              struct topology_gpu_type *t, struct error *err);

/** Find a node's `gpu_type` among the file's own and the built-in ones. */
enum status topology_type_find (struct reader *r, const struct json_at *at,
                                const struct topology_gpu_type **out);

/** Turn a cluster on one line into the document of a cluster file.
 *  @param[out] doc  a new reference */
enum status topology_line_to_json (const char *line, json_t **doc, struct notes *notes,
                                   struct error *err);

/* ---- matrices ---- */

/** Entries by a rule: one number, the worse of both ends' numbers, or a number for each
 *  count of switch levels between them; and exceptions. */
struct topology_pattern {
    const struct topology_cluster *c; /* for by_hops */
    bool larger_is_worse;             /* latency */
    double number;                    /* SI units, where neither list is there */
    double *by_node;                  /* [n] SI units, or NULL */
    double *by_hops; /* [n_hops] SI units; the last also beyond; or NULL */
    int n_hops;
    struct pairs *except;
};

/** What a matrix holds: which unit and limits its numbers have. */
enum matrix_of { MATRIX_BANDWIDTH, MATRIX_LATENCY, MATRIX_ERROR };

/** Read a number, n x n rows, {"npy": FILE}, {"by_node": LIST} or {"by_hops": LIST}.
 *
 *  @param[in]  over_nodes  the endpoints are the nodes: only then rules are allowed
 *  @param[out] m           release with topology_matrix_release, also after a failure
 */
enum status topology_matrix_read (struct reader *r, const struct json_at *at, int n,
                                  bool over_nodes, enum matrix_of what,
                                  struct topology_matrix *m);

/** Change entry i -> j, in SI units (NaN: unmeasured), of a matrix over n endpoints. */
bool topology_matrix_set (struct topology_matrix *m, int n, int i, int j, double x);

/** The lowest measured entry off the diagonal in SI units; 0 when there is none. */
double topology_matrix_lowest (const struct topology_matrix *m);

/** Take x where it is measured and below the lowest so far; 0: there is none yet. */
void topology_lower (double *lowest, double x);

/** A matrix over n endpoints as rows of a document; the diagonal and what is unmeasured are null.
 *  @param[in] unit  the document's in SI units */
json_t *topology_matrix_json (const struct topology_matrix *m, int n, double unit);
void topology_matrix_release (struct topology_matrix *m);

/** Give a node links of its own: those between its GPUs keep[0..gpus) of the links that it
 *  has.  @return false: out of memory */
bool topology_own_intra (struct topology_node *n, const int *keep);
/** Change entry i -> j of links over n endpoints (NaN: unmeasured); this
 *  bandwidth replaces an estimate.  @return false: out of memory */
bool topology_links_set (struct topology_links *l, int n, int i, int j,
                         double bytes_per_s);
void topology_links_release (struct topology_links *l);
/** Has nothing of them a matrix? */
static inline bool topology_links_alike (const struct topology_links *l)
{
    return l->bytes_per_s.n == 0 && l->latency_s.n == 0 && l->estimate_error.n == 0;
}

/* ---- what is known of GPU types without measuring: names, rates of data sheets ---- */

/** The built-in GPU type of a device; any argument may be unknown (NULL, 0).
 *
 *  @param[in] model           as the driver prints it, as in "NVIDIA A100-SXM4-80GB"
 *  @param[in] vendor, device  PCI numbers
 *  @return its name, or NULL
 */
const char *known_gpu_type (const char *model, unsigned vendor, unsigned device);

/** GB/s one way that one NVLink (or xGMI link) of a type carries; 0: it has none, or the
 *  type is not known. */
double known_link_gb_per_s (const char *type);

/** The same by compute capability x 10. */
double known_sm_link_gb_per_s (int sm);

/** GB/s one way between any two GPUs of one node of a type, where the data sheet is
 *  enough to know it: all links through a switch, or PCIe; 0 otherwise. */
double known_pair_gb_per_s (const char *type);

/** `intra` of a node from what is known about its type: NVLinks counted in gpu_path times
 *  the rate of one; without any there, known_pair_gb_per_s between all.  Where only some
 *  pairs have NVLink, the others are null.
 *
 *  @param[in] node             its gpus and gpu_path are read
 *  @param[in] type             or NULL
 *  @param[in] link_gb_per_s    used where the type does not tell; 0: unknown
 *  @return a new reference; NULL where nothing is known
 */
json_t *known_intra (const json_t *node, const char *type, double link_gb_per_s);

/** `intra` of the rates that a description gives; equal ones become one number.
 *  @param[in] gb_per_s  [n*n] row-major, one way; 0: no link; n is 2 or more */
json_t *known_intra_of (const double *gb_per_s, size_t n, const char *source);

/* ---- counters of network ports and NVLinks: their names, and by how much they may grow ---- */

/** One kind of counter. */
struct topology_counter {
    const char *name;      /* in `measured.counters[].counts` */
    const char *spellings; /* as tools print it, one blank between them */
    /* A counter that grows by more between two readings accuses its link; by that much a
     * second with `per_second`.  Infinite: it tells of traffic, not of a fault. */
    double allowed;
    int per_second;
};

/** The counter that a tool names so, or that files name so; NULL: none. */
const struct topology_counter *topology_counter_spelled (const char *spelling);
const struct topology_counter *topology_counter_named (const char *name);

/** How far it may grow in that time and accuse nobody. */
double topology_counter_allowed (const struct topology_counter *c, double seconds);

#endif
