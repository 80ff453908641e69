/* Bandwidth and latency as matrices for NumPy, in the cluster file's units: over nodes, or over
 * GPUs where their links differ. */
#include <stdlib.h>

#include "base/memory.h"
#include "base/units.h"
#include "topology/export/export_private.h"

#define ENDPOINTS_MAX 8192 /* two matrices of half a GiB */

static void add_matrix (struct text *t, const double *v, size_t n, double unit)
{
    char header[NPY_HEADER];

    npy_header (n, sizeof *v, header);
    text_add_mem (t, header, sizeof header);
    for (size_t k = 0; k < n * n; k++) {
        double entry = v[k] / unit;

        text_add_mem (t, (const char *) &entry, sizeof entry);
    }
}

static enum status over_gpus (const struct topology_cluster *c, double **bytes_per_s,
                              double **latency_s, struct error *err)
{
    size_t n = (size_t) c->n_gpus;
    double *bw = malloc (n * n * sizeof *bw), *latency = malloc (n * n * sizeof *latency);

    if (!bw || !latency) {
        FREE_ALL (bw, latency);
        return err_nomem (err);
    }
    for (size_t k = 0; k < n * n; k++) {
        int from = (int) (k / n), to = (int) (k % n);
        struct topology_link l = {0};

        if (from != to)
            l = topology_link (c, from, to);
        bw[k] = l.measured ? l.bytes_per_s : NAN;
        latency[k] = l.measured ? l.latency_s : NAN;
    }
    *bytes_per_s = bw;
    *latency_s = latency;
    return ST_OK;
}

static enum status write (struct exporting *x, struct error *err)
{
    const struct topology_cluster *c = x->c;
    int n = c->has_gpu_links ? c->n_gpus : c->n_nodes;
    double *bytes_per_s = NULL, *latency_s = NULL;

    if (n < 1 || n > ENDPOINTS_MAX)
        return err_set (err, ST_INVALID,
                        "%s: expected 1 to %d endpoints for a matrix, found %d", x->title,
                        ENDPOINTS_MAX, n);
    TRY (c->has_gpu_links ? over_gpus (c, &bytes_per_s, &latency_s, err)
                          : export_nodes (x, &bytes_per_s, &latency_s, err));
    add_matrix (x->file, bytes_per_s, (size_t) n, UNITS_GB);
    add_matrix (x->second, latency_s, (size_t) n, UNITS_US);
    FREE_ALL (bytes_per_s, latency_s);
    return ST_OK;
}

const struct export_format export_npy = {
    .format = {"npy", "matrices: GB/s in FILE, us in .latency.npy beside it"},
    .second = ".latency.npy",
    .write = write};
