/* Cluster files made of others: merged, drained, drawn from presets; and written with
 * matrices beside them where these are large. */
#ifndef TOPOLOGY_EDIT_H
#define TOPOLOGY_EDIT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "topology/topology.h"

/** A matrix that is written as a .npy file beside its document. */
struct topology_side {
    json_t *reference; /* the {"npy": NAME} in the document; a reference is held */
    char *bytes;       /* the whole file; owned */
    size_t len;
};

/** A document and the matrices that it names.  Zero-initialise. */
struct topology_document {
    json_t *doc;
    struct topology_side *side;
    int n_sides;
};

void topology_document_release (struct topology_document *d);

/** Room for a matrix that goes into a document: [n*n] row-major in the file's unit, all
 *  NaN, which stands for null.  topology_document_matrix takes it over; topology_matrix_drop
 *  releases it otherwise.  NULL: out of memory. */
float *topology_matrix_room (int n);
void topology_matrix_drop (float *v);

/** Put a matrix into a document: as rows up to TOPOLOGY_INLINE_MAX endpoints, as a side
 *  file above.
 *
 *  @param[in] object   where `key` is set, as in links.inter and bandwidth_gb_per_s
 *  @param[in] v        from topology_matrix_room; stolen; the diagonal is left out
 *  @param[in] npy      write a side file whatever the size
 *  @return ST_OK or ST_NOMEM
 */
#define TOPOLOGY_INLINE_MAX 256
enum status topology_document_matrix (struct topology_document *d, json_t *object,
                                      const char *key, float *v, int n, bool npy,
                                      struct error *err);

/** Write a document and its side files, all or none.  Side files are called after it:
 *  big.json's are big.0.npy, big.1.npy, ...
 *
 *  @param[in] path  "-" is standard output, for documents without side files
 *  @return ST_OK; ST_IO; ST_USAGE for side files on standard output
 */
enum status topology_document_write (struct topology_document *d, const char *path,
                                     struct error *err);

/** Matrices of the document's links that stand in files become side files.
 *  @param[in] folder  where their names lead from, with a '/' at its end, or "" */
enum status topology_document_adopt (struct topology_document *d, const char *folder,
                                     struct error *err);

/** Read a cluster file for changing: its matrices stay where they are when `out` is
 *  written into the same folder, and become side files of it otherwise.
 *
 *  @param[in]  arg  a cluster file, a cluster on one line, or "-"
 *  @param[in]  out  where the changed document will be written
 *  @param[out] d    release with topology_document_release
 *  @return as topology_cluster_read_partial, which checks it
 */
enum status topology_document_read (const char *arg, const char *out,
                                    struct topology_document *d, struct notes *notes,
                                    struct error *err);

/** Name the GPU type of every node that has GPUs and no type; a node without links inside
 *  takes what is known about the type (known_intra).
 *
 *  @param[in] type  built-in, or of the document's gpu_types
 *  @return ST_OK; ST_USAGE for an unknown type
 */
enum status topology_name_type (json_t *doc, const char *type, struct notes *notes,
                                struct error *err);

/** Rename the only node of a document, also where its measurements name it; or name the node
 *  of counters that do not say whose they are.
 *  @return ST_OK; ST_USAGE when it has several, or when its counters name theirs */
enum status topology_rename_node (json_t *doc, const char *name, struct error *err);

/** Are the nodes or at least the GPUs known of all counters in a document?
 *  @param[in] file  for the message
 *  @return ST_OK, or ST_USAGE where --name must tell the node */
enum status topology_counters_named (const json_t *doc, const char *file,
                                     struct error *err);

/** Say when a document's links were measured (0: leave it), and that this was beside other
 *  traffic.  Nothing in a document without `measured`. */
void topology_set_measured (json_t *doc, double when_s, bool busy);

/** Put nodes and links together.
 *
 *  Nodes are joined by name, in order of their first file.  Of two values for one thing the
 *  newer file's holds: by the time in `measured.when` or `captured` where all files have
 *  one, else the file named later; a measured rate holds against a nominal one, and
 *  something against null.  Different values that met are noted.  Keys that linkwise does
 *  not know are kept.  What is left open is filled from the nodes' types and NICs, as
 *  nominal.
 *
 *  @param[in]  file      [n] cluster, node and links files; "-" is standard input
 *  @param[in]  gpu_type  for nodes whose type no file names; NULL: none
 *  @param[out] out       release with topology_document_release
 *  @return ST_OK; ST_IO; ST_NOMEM; ST_USAGE for an unknown gpu_type; ST_INVALID for bad
 *          files, a node without GPUs or type, or links that nobody gives
 */
enum status topology_merge (const char *const *file, int n, const char *gpu_type,
                            double half_life_s, struct topology_document *out,
                            struct notes *notes, struct error *err);

/** Take nodes, GPUs or links out of use, or back.
 *
 *  @param[in,out] doc  a cluster file's document that reads well
 *  @param[in]     what host list (n[1-3]), NODE:GPU, or a link FROM->TO or A<->B (A--B) of
 *                      nodes or GPUs
 *  @param[in]     back put it back into use
 *  @param[in]     reason  kept with a drained node; may be NULL
 *  @return ST_OK; ST_USAGE for what is not in the cluster
 */
enum status topology_drain (json_t *doc, const char *what, bool back, const char *reason,
                            struct error *err);

/** The i-th preset of clusters as they are, or NULL after the last. */
const struct text_choice *topology_preset_at (int i);

struct topology_synth {
    const char *preset;
    int nodes, gpus;
    const char *gpu_type;
    unsigned long seed;
    unsigned long epoch;   /* another measurement of the same cluster */
    int leaf, pod;         /* nodes under a leaf switch, leaves in a pod */
    double intra_gb_per_s; /* 0: the type's */
    double inter_gb_per_s; /* of one GPU pair */
    int plant;             /* pipeline stages of a planted optimum; 0: none */
    bool npy;              /* matrices beside the file whatever their size */
    bool (*progress) (void *context, double share); /* or NULL; true stops: ST_IO */
    void *context;
};
struct topology_synth topology_synth_default (void);

/** Draw a cluster.  The same settings draw the same one; another epoch draws the same nodes
 *  and links measured at another time.
 *  @return ST_OK; ST_USAGE for what cannot be; ST_NOMEM */
enum status topology_synthesize (const struct topology_synth *s,
                                 struct topology_document *out, struct notes *notes,
                                 struct error *err);

/* ---- what-ifs: changes of a cluster in words, as in "drain n7; link n3->n9 = 25" ---- */

/** A cluster that was changed.  Zero-initialise. */
struct topology_changed {
    struct topology_cluster *c; /* owned */
    int max_nodes;              /* "nodes N": plans use at most so many; 0: not said */
};
void topology_changed_release (struct topology_changed *x);

/** The statements of a what-if, which ';' separates, without blanks around them and
 *  cleaned as names are (text_clean_line).
 *
 *  @param[out] list  [*n] texts; release with memory_free_texts
 *  @return ST_OK, ST_NOMEM; ST_USAGE where there is none, or an empty one between two */
enum status topology_changes_split (const char *text, char ***list, int *n,
                                    struct error *err);

/** Change a cluster by one statement of docs/whatif.md.  The file that it came from stays as it
 *  is.
 *
 *  @param[in]     c  the cluster before
 *  @param[in,out] x  its cluster becomes the one after; may hold `c`
 *  @return ST_OK, ST_NOMEM; ST_USAGE for a statement of no known form; ST_INVALID for what
 *          the cluster does not have; x is untouched then */
enum status topology_change (const struct topology_cluster *c, const char *statement,
                             struct topology_changed *x, struct error *err);

#endif
