/* The cluster file's links: matrices, intra, inter, gpu, and the price of what nobody
 * measured. */
#include "topology/topology_private.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"

#define GB_PER_S_MAX 1e9
#define LATENCY_US_MAX 1e9

/* ---- matrices ---- */

/* What an entry of a matrix may be. */
struct entry_rule {
    double unit; /* the file's unit in SI units */
    bool zero_ok;
    double max; /* in the file's unit */
    const char *what;
};

static const struct entry_rule bandwidth_rule = {UNITS_GB, false, GB_PER_S_MAX,
                                                 "a number > 0 or null"};
static const struct entry_rule latency_rule = {UNITS_US, true, LATENCY_US_MAX,
                                               "a number >= 0 or null"};

static bool entry_ok (const struct entry_rule *rule, double x)
{
    return isnan (x) || ((rule->zero_ok ? x >= 0 : x > 0) && x <= rule->max);
}

static enum status read_rows (struct reader *r, const struct json_at *at, int n,
                              const struct entry_rule *rule, struct topology_matrix *m)
{
    char expected[64];
    size_t rows = json_array_size (at->v);

    snprintf (expected, sizeof expected, "%d rows of %d entries", n, n);
    if (rows != (size_t) n)
        return json_fail (at, r->err, expected);

    double *v = malloc ((size_t) n * (size_t) n * sizeof *v);

    if (!v)
        return err_nomem (r->err);
    m->own = v;
    for (int i = 0; i < n; i++) {
        struct json_at row = json_entry (at, (size_t) i);

        if (!json_is_array (row.v) || json_array_size (row.v) != (size_t) n) {
            snprintf (expected, sizeof expected, "an array of %d", n);
            return json_fail (&row, r->err, expected);
        }
        for (int j = 0; j < n; j++) {
            json_t *x = json_array_get (row.v, (size_t) j);
            double value = json_is_number (x) ? json_number_value (x) : NAN;

            if (i == j)
                value = NAN;
            else if (!(json_is_number (x) || json_is_null (x)) ||
                     !entry_ok (rule, value)) {
                struct json_at e = json_entry (&row, (size_t) j);

                return json_fail (&e, r->err, rule->what);
            }
            v[(size_t) i * (size_t) n + (size_t) j] = value;
        }
    }
    m->v = v;
    m->n = n;
    m->scale = rule->unit;
    return ST_OK;
}

static enum status read_npy (struct reader *r, const struct json_at *at, int n,
                             const struct entry_rule *rule, struct topology_matrix *m)
{
    static const char *const known[] = {"npy", NULL};
    struct json_at file = json_key (at, "npy");
    const char *name;
    char path[PATH_MAX];
    enum status st = json_want_string (&file, &name, r->err);

    if (st != ST_OK)
        return st;
    json_note_unknown (at, known, r->notes);
    if ((size_t) snprintf (path, sizeof path, "%s%s%s",
                           name[0] == '/' || !r->c->folder ? "" : r->c->folder,
                           name[0] == '/' || !r->c->folder ? "" : "/",
                           name) >= sizeof path)
        return json_fail_text (&file, r->err, "the name is too long");
    st = npy_open (path, &m->npy, r->err);
    if (st != ST_OK)
        return st;
    if (m->npy.n != (size_t) n)
        return json_fail_text (&file, r->err, "expected %d x %d entries, found %zu x %zu",
                               n, n, m->npy.n, m->npy.n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double x = m->npy.v[(size_t) i * (size_t) n + (size_t) j];

            if (i != j && !entry_ok (rule, x))
                return json_fail_text (&file, r->err,
                                       "entry [%d][%d]: expected %s (NaN), found %g", i,
                                       j, rule->what, x);
        }
    m->v = m->npy.v;
    m->n = n;
    m->scale = rule->unit;
    return ST_OK;
}

/* A number, an n x n matrix, or {"npy": FILE}. */
static enum status read_matrix (struct reader *r, const struct json_at *at, int n,
                                const struct entry_rule *rule, struct topology_matrix *m)
{
    double x;

    if (json_is_array (at->v))
        return read_rows (r, at, n, rule, m);
    if (json_is_object (at->v))
        return read_npy (r, at, n, rule, m);
    if (!json_is_number (at->v)) {
        char expected[96];

        snprintf (expected, sizeof expected,
                  "a number, %d rows of %d, or {\"npy\": FILE}", n, n);
        return json_fail (at, r->err, expected);
    }

    enum status st = json_want_number (at, 0, rule->zero_ok, rule->max, &x, r->err);

    if (st == ST_OK)
        m->number = x * rule->unit;
    return st;
}

static enum status read_links (struct reader *r, const struct json_at *at, int n,
                               const char *const *known, struct topology_links *l)
{
    struct json_at bw = json_key (at, "bandwidth_gb_per_s"),
                   latency = json_key (at, "latency_us");
    enum status st = json_want_object (at, r->err);

    if (st == ST_OK)
        st = read_matrix (r, &bw, n, &bandwidth_rule, &l->bytes_per_s);
    if (st == ST_OK)
        st = read_matrix (r, &latency, n, &latency_rule, &l->latency_s);
    if (st == ST_OK)
        json_note_unknown (at, known, r->notes);
    return st;
}

/* ---- links ---- */

static enum status read_one_intra (struct reader *r, const struct json_at *at, int gpus,
                                   struct topology_links *l)
{
    static const char *const known[] = {"bandwidth_gb_per_s", "latency_us",
                                        "gpu_gb_per_s", "source", NULL};
    struct json_at total = json_key (at, "gpu_gb_per_s");
    double gb = 0;
    enum status st = read_links (r, at, gpus, known, l);

    if (st == ST_OK && json_has (at, "gpu_gb_per_s"))
        st = json_want_number (&total, 0, false, GB_PER_S_MAX, &gb, r->err);
    if (st == ST_OK)
        l->gpu_bytes_per_s = gb * UNITS_GB;
    return st;
}

/* One object serves all nodes; a matrix in it needs all nodes to have as many GPUs. */
static enum status read_shared_intra (struct reader *r, const struct json_at *at)
{
    struct topology_cluster *c = r->c;
    int gpus = 0;

    for (int i = 0; i < c->n_nodes; i++)
        gpus = c->node[i].gpus > gpus ? c->node[i].gpus : gpus;
    c->intra = calloc (1, sizeof *c->intra);
    if (!c->intra)
        return err_nomem (r->err);
    c->n_intra = 1;

    enum status st = read_one_intra (r, at, gpus, c->intra);

    for (int i = 0; i < c->n_nodes && st == ST_OK; i++) {
        if (c->intra->bytes_per_s.n > 0 && c->node[i].gpus != gpus)
            return json_fail_text (at, r->err,
                                   "one matrix serves nodes of one size: node %s has %d "
                                   "GPUs, another %d; give a list, one per node",
                                   c->node[i].name, c->node[i].gpus, gpus);
        c->node[i].intra = c->intra;
    }
    return st;
}

static enum status read_intra_list (struct reader *r, const struct json_at *at)
{
    struct topology_cluster *c = r->c;
    char expected[64];

    if (json_array_size (at->v) != (size_t) c->n_nodes) {
        snprintf (expected, sizeof expected, "one object, or a list of %d (one per node)",
                  c->n_nodes);
        return json_fail (at, r->err, expected);
    }
    c->intra = calloc ((size_t) c->n_nodes, sizeof *c->intra);
    if (!c->intra)
        return err_nomem (r->err);
    c->n_intra = c->n_nodes;
    for (int i = 0; i < c->n_nodes; i++) {
        struct json_at one = json_entry (at, (size_t) i);

        if (json_is_null (one.v))
            continue;

        enum status st = read_one_intra (r, &one, c->node[i].gpus, &c->intra[i]);

        if (st != ST_OK)
            return st;
        c->node[i].intra = &c->intra[i];
    }
    return ST_OK;
}

static enum status read_intra (struct reader *r, const struct json_at *links)
{
    struct json_at at = json_key (links, "intra");
    enum status st = ST_OK;

    if (json_has (links, "intra"))
        st = json_is_array (at.v) ? read_intra_list (r, &at) : read_shared_intra (r, &at);
    for (int i = 0; i < r->c->n_nodes && st == ST_OK; i++)
        if (r->c->node[i].gpus > 1 && !r->c->node[i].intra && !r->c->has_gpu_links)
            st = json_fail_text (links, r->err,
                                 "intra: required, since node %s has %d GPUs",
                                 r->c->node[i].name, r->c->node[i].gpus);
    return st;
}

/* node_gb_per_s of `inter` or `gpu`: a number, or a list with one entry per node. */
static enum status read_node_totals (struct reader *r, const struct json_at *inter)
{
    struct topology_cluster *c = r->c;
    struct json_at at = json_key (inter, "node_gb_per_s");
    bool list = json_is_array (at.v);
    char expected[64];

    if (!json_has (inter, "node_gb_per_s"))
        return ST_OK;
    if (list && json_array_size (at.v) != (size_t) c->n_nodes) {
        snprintf (expected, sizeof expected, "a number, or a list of %d (one per node)",
                  c->n_nodes);
        return json_fail (&at, r->err, expected);
    }
    for (int i = 0; i < c->n_nodes; i++) {
        struct json_at one = list ? json_entry (&at, (size_t) i) : at;
        double gb;

        if (json_is_null (one.v))
            continue;

        enum status st = json_want_number (&one, 0, false, GB_PER_S_MAX, &gb, r->err);

        if (st != ST_OK)
            return st;
        c->node[i].node_bytes_per_s = gb * UNITS_GB;
    }
    return ST_OK;
}

static enum status read_inter (struct reader *r, const struct json_at *links,
                               const char *key, int n, struct topology_links *l)
{
    static const char *const known[] = {"bandwidth_gb_per_s", "latency_us",
                                        "node_gb_per_s", "source", NULL};
    struct json_at at = json_key (links, key);
    enum status st = read_links (r, &at, n, known, l);

    return st == ST_OK ? read_node_totals (r, &at) : st;
}

enum status topology_links_read (struct reader *r, const struct json_at *root)
{
    static const char *const known[] = {"intra", "inter", "gpu", "source", NULL};
    struct topology_cluster *c = r->c;
    struct json_at links = json_key (root, "links");
    enum status st = ST_OK;

    if (!json_has (root, "links") && c->n_nodes == 1 && c->n_gpus == 1)
        return ST_OK;
    st = json_want_object (&links, r->err);
    if (st != ST_OK)
        return st;
    json_note_unknown (&links, known, r->notes);
    if (json_has (&links, "gpu")) {
        st = read_inter (r, &links, "gpu", c->n_gpus, &c->gpu_links);
        c->has_gpu_links = st == ST_OK;
    }
    if (st == ST_OK)
        st = read_intra (r, &links);
    if (st == ST_OK && json_has (&links, "inter") && !c->has_gpu_links) {
        st = read_inter (r, &links, "inter", c->n_nodes, &c->inter);
        c->has_inter = st == ST_OK;
    }
    if (st == ST_OK && c->n_nodes > 1 && !c->has_inter && !c->has_gpu_links)
        st = json_fail_text (&links, r->err, "inter: required, since there are %d nodes",
                             c->n_nodes);
    return st;
}

static void lower (double *lowest, double bw)
{
    if (!isnan (bw) && (*lowest == 0 || bw < *lowest))
        *lowest = bw;
}

/* The lowest measured bandwidth of each kind, the price of an unmeasured link. */
void topology_find_lowest (struct topology_cluster *c)
{
    const struct topology_matrix *gpu = &c->gpu_links.bytes_per_s;

    if (c->has_gpu_links) {
        for (int i = 0; i < c->n_gpus; i++)
            for (int j = 0; j < c->n_gpus; j++)
                if (i != j)
                    lower (c->node_of_gpu[i] == c->node_of_gpu[j]
                               ? &c->lowest_intra_bytes_per_s
                               : &c->lowest_inter_bytes_per_s,
                           topology_matrix_at (gpu, i, j));
        return;
    }
    for (int k = 0; k < c->n_intra; k++) {
        const struct topology_matrix *m = &c->intra[k].bytes_per_s;

        for (int i = 0; i < (m->n ? m->n : 1); i++)
            for (int j = 0; j < (m->n ? m->n : 1); j++)
                if (m->n == 0 ? m->number > 0 : i != j)
                    lower (&c->lowest_intra_bytes_per_s, topology_matrix_at (m, i, j));
    }
    if (!c->has_inter)
        return;
    for (int i = 0; i < c->n_nodes; i++)
        for (int j = 0; j < c->n_nodes; j++) {
            if (i != j)
                lower (&c->lowest_inter_bytes_per_s,
                       topology_matrix_at (&c->inter.bytes_per_s, i, j));
            if (c->inter.bytes_per_s.n == 0 && c->lowest_inter_bytes_per_s > 0)
                return;
        }
}
