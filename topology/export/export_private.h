/* Shared by the formats. */
#ifndef TOPOLOGY_EXPORT_PRIVATE_H
#define TOPOLOGY_EXPORT_PRIVATE_H

#include "topology/export/export.h"

struct exporting {
    const struct topology_cluster *c;
    const char *title; /* the cluster's name on one line, without control characters */
    const char *node;  /* or NULL */
    bool yaml;
    const struct topology_watch *watch;
    struct text *file;   /* the answer */
    struct text *second; /* another file beside it, where it is not empty */
};

struct export_format {
    struct text_choice format;
    const char *second; /* ending of the second file; NULL: there is none */
    bool of_node;       /* --node makes sense */
    enum status (*write) (struct exporting *x, struct error *err);
};

extern const struct export_format export_slurm, export_prometheus, export_csv, export_npy,
    export_svg, export_graphviz;

/** topology_links_visit, and each pair of nodes also where all of them are alike. */
void export_visit (const struct exporting *x, topology_visit_fn *fn, void *context);

/** How a link is known: "measured", "estimated" from others, "nominal" (a data sheet's), or
 *  "unmeasured". */
const char *export_known (const struct topology_cluster *c,
                          const struct topology_visited *v);

/** What GPUs of two nodes reach: the mean of their pairs, each alone.
 *  @param[out] bytes_per_s  [n_nodes * n_nodes], i*n + j is i -> j; NaN where unmeasured, and on
 *                           the diagonal; to be freed
 *  @param[out] latency_s    the same; may be NULL */
enum status export_nodes (const struct exporting *x, double **bytes_per_s,
                          double **latency_s, struct error *err);

/** Append s with quotes and backslashes behind a backslash, newlines as \n. */
void export_add_escaped (struct text *t, const char *s);

#endif
