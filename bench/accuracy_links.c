/* Links on measured tables: the last part of make accuracy RUNS=DIR, where
 * DIR/../links/nccl-pairwise has every pair of nodes at several message sizes.
 *
 * The line that bwprobe and the importers fit (base/stats.h) goes through a pair's times at
 * every other size and predicts the others; or through those up to 1 GiB, and predicts
 * larger ones.  Steady are pairs whose line meets the sizes that it was fitted to within
 * 10 %: what bwprobe records as fit_residual.  imported: the bandwidth that `cluster
 * import` takes from the 1 GiB table, with the latency that it assumes, predicts all other
 * sizes.  again: how far the same run's in-place times are from the out-of-place ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/runs_dir.h"
#include "topology/measured/links_import.h"
#include "topology/topology.h"

#define SIZES_MAX 16
#define GIB 1073741824.0
#define STEADY 0.1

static struct table *table;

/* One operation on one pair of nodes. */
struct pair {
    char cluster[32], a[64], b[64], op[64];
    int gpus; /* per node */
    int sizes;
    double bytes[SIZES_MAX], s[SIZES_MAX], again_s[SIZES_MAX];
};

/* By cluster, operation and GPUs a node: one row of the table. */
static int by_group (const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int by_cluster = strcmp (x->cluster, y->cluster), by_op = strcmp (x->op, y->op);

    return by_cluster ? by_cluster : by_op ? by_op : x->gpus - y->gpus;
}

static bool same (const struct pair *x, const struct pair *y)
{
    return by_group (x, y) == 0 && strcmp (x->a, y->a) == 0 && strcmp (x->b, y->b) == 0;
}

/* Rows of a pair stand together, sizes rising.  A row without a time is left out. */
static struct pair *read_pairs (const char *path, int *n)
{
    struct pair *list = NULL;
    char *text, *line, *next;
    struct error err;
    size_t len;

    *n = 0;
    if (file_read (path, &text, &len, &err) != ST_OK)
        return NULL;
    for (line = text; line; line = next) {
        struct pair p = {.sizes = 1};

        if ((next = strchr (line, '\n')))
            *next++ = '\0';
        if (sscanf (line, "%31[^,],%d,%63[^,],%63[^,],%63[^,],%lf,%lf,%*[^,],%lf",
                    p.cluster, &p.gpus, p.a, p.b, p.op, &p.bytes[0], &p.s[0],
                    &p.again_s[0]) != 8 ||
            !(p.s[0] > 0) || !(p.again_s[0] > 0))
            continue;
        p.s[0] *= UNITS_US;
        p.again_s[0] *= UNITS_US;
        if (*n > 0 && same (&list[*n - 1], &p) && list[*n - 1].sizes < SIZES_MAX) {
            struct pair *last = &list[*n - 1];

            last->bytes[last->sizes] = p.bytes[0];
            last->again_s[last->sizes] = p.again_s[0];
            last->s[last->sizes++] = p.s[0];
            continue;
        }
        list = realloc (list, (size_t) (*n + 1) * sizeof *list);
        list[(*n)++] = p;
    }
    free (text);
    if (list)
        qsort (list, (size_t) *n, sizeof *list, by_group);
    return list;
}

/* ---- errors ---- */

struct errors {
    double *v;
    int n, cap;
};

static void add (struct errors *e, double predicted, double measured)
{
    if (e->n == e->cap) {
        e->cap = e->cap ? 2 * e->cap : 256;
        e->v = realloc (e->v, (size_t) e->cap * sizeof *e->v);
    }
    e->v[e->n++] = 100.0 * fabs (predicted / measured - 1.0);
}

static double mean (const struct errors *e)
{
    double sum = 0.0;

    for (int i = 0; i < e->n; i++)
        sum += e->v[i];
    return e->n ? sum / e->n : NAN;
}

/* Fit where `fitted`, predict where not.
 * @return is the pair steady? */
static bool predict (const struct pair *p, const bool *fitted, struct errors *all,
                     struct errors *steady)
{
    double bytes[SIZES_MAX], s[SIZES_MAX];
    struct stats_line line;
    bool good;
    int n = 0;

    for (int i = 0; i < p->sizes; i++)
        if (fitted[i]) {
            bytes[n] = p->bytes[i];
            s[n++] = p->s[i];
        }
    line = stats_fit_line (bytes, s, n);
    good = line.groups > 1 && line.residual <= STEADY;
    for (int i = 0; i < p->sizes && line.groups > 1; i++)
        if (!fitted[i]) {
            double predicted = line.intercept + line.slope * p->bytes[i];

            add (all, predicted, p->s[i]);
            if (good)
                add (steady, predicted, p->s[i]);
        }
    return good;
}

/* From the links file that the importer makes of the table at 1 GiB. */
static void predict_imported (const struct topology_cluster *c, const struct pair *p,
                              struct errors *e)
{
    int a = topology_node_find (c, p->a), b = topology_node_find (c, p->b);
    struct topology_link l;

    if (a < 0 || b < 0)
        return;
    l = topology_node_link (c, a, b);
    for (int i = 0; i < p->sizes && l.measured; i++)
        if (p->bytes[i] != GIB)
            add (e, l.latency_s + p->bytes[i] / l.bytes_per_s, p->s[i]);
}

static struct topology_cluster *import (const char *dir, const struct pair *p)
{
    struct topology_cluster *c = NULL;
    char path[4096];
    struct error err;
    json_t *doc;

    snprintf (path, sizeof path, "%s/%s_%s_G%d_1024MiB.csv", dir, p->cluster, p->op,
              p->gpus);
    if (topology_links_import (path, "matrix", &doc, NULL, &err) != ST_OK)
        return NULL;
    if (topology_cluster_from_json_partial (doc, path, NULL, &c, NULL, &err) != ST_OK)
        die (&err);
    json_decref (doc);
    return c;
}

/* ---- the table ---- */

static void print_group (const char *dir, const struct pair *p, int n)
{
    enum { ALL, STEADY_ONES, LARGER, LARGER_STEADY, IMPORTED, AGAIN, COLUMNS };
    struct errors e[COLUMNS] = {{0}};
    struct topology_cluster *c = import (dir, p);
    int good = 0;

    for (int i = 0; i < n; i++) {
        bool odd[SIZES_MAX], small[SIZES_MAX];

        for (int k = 0; k < p[i].sizes; k++) {
            odd[k] = k % 2 == 0;
            small[k] = p[i].bytes[k] <= GIB;
            add (&e[AGAIN], p[i].again_s[k], p[i].s[k]);
        }
        good += predict (&p[i], odd, &e[ALL], &e[STEADY_ONES]);
        predict (&p[i], small, &e[LARGER], &e[LARGER_STEADY]);
        /* What each of a node's GPUs sends to the other node's is no link's rate. */
        if (c && p->gpus == 1 && strcmp (p->op, "sendrecv_perf") == 0)
            predict_imported (c, &p[i], &e[IMPORTED]);
    }
    table_cell (table, "%s, %s, %d GPU%s", p->cluster, p->op, p->gpus,
                p->gpus > 1 ? "s" : "");
    table_cell (table, "%d", n);
    table_cell (table, "%d", good);
    for (int k = 0; k < COLUMNS; k++) {
        table_cell (table, e[k].n ? "%.2f" : "-", mean (&e[k]));
        if (k == ALL)
            table_cell (table, "%.2f", stats_median (e[k].v, e[k].n));
        free (e[k].v);
    }
    table_cell (table, "%s", strcmp (p->cluster, "cluster00") == 0 ? "<= 3" : "");
    topology_cluster_destroy (c);
}

int main (int argc, char **argv)
{
    char dir[2048], path[4096];
    struct pair *p;
    int n;

    runs_dir_check (argc);
    snprintf (dir, sizeof dir, "%s/../links/nccl-pairwise", argv[1]);
    snprintf (path, sizeof path, "%s/xxrjun_pairwise_long.csv", dir);
    if (!(p = read_pairs (path, &n)))
        return 0;
    table = TABLE_OF ("<MAPE of times, %", "pairs", "steady", "half: all", "median",
                      "steady", "large: all", "steady", "imported", "again", "<wanted");
    for (int i = 0, from = 0; i < n; i++)
        if (i + 1 == n || by_group (&p[i], &p[i + 1]) != 0) {
            print_group (dir, &p[from], i + 1 - from);
            from = i + 1;
        }
    printf (
        "\nLinks.  Times of NCCL between two nodes of 17 (cluster00, 32 MiB to 16 GiB) "
        "and 10 (cluster01,\n4 to 16 GiB) with H100, by the GPUs that a node takes "
        "part with, at sizes that the line did not\nsee.  half: fitted on every other "
        "size; large: up to 1 GiB, beyond it; steady: pairs whose line meets\nits own "
        "sizes within 10 %%.\n");
    table_end (table, stdout);
    free (p);
    return 0;
}
