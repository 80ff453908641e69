/* The cluster file's reader: every check of the contract, once, at the boundary. */
#include "topology/topology_private.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/units.h"

#define NODES_MAX 1048576
#define GB_PER_S_MAX 1e9
#define LATENCY_US_MAX 1e9

struct reader {
    struct topology_cluster *c;
    struct notes *notes;
    struct error *err;
};

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

static enum status read_all_links (struct reader *r, const struct json_at *root)
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
static void find_lowest (struct topology_cluster *c)
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

/* ---- GPU types ---- */

static enum status read_gpu_type (struct reader *r, const struct json_at *at,
                                  const char *name, struct topology_gpu_type *t)
{
    static const char *const known[] = {"like",
                                        "memory_gb",
                                        "memory_gb_per_s",
                                        "bf16_tflop_per_s",
                                        "fp16_tflop_per_s",
                                        "fp8_tflop_per_s",
                                        "fp32_tflop_per_s",
                                        "multiprocessors",
                                        "gemm_efficiency",
                                        "source",
                                        NULL};
    const struct {
        const char *key;
        double *value, unit, max;
        bool zero_ok;
    } field[] = {{"memory_gb", &t->memory_bytes, UNITS_GB, 1e5, false},
                 {"memory_gb_per_s", &t->hbm_bytes_per_s, UNITS_GB, 1e6, false},
                 {"bf16_tflop_per_s", &t->bf16_flop_per_s, 1e12, 1e6, true},
                 {"fp16_tflop_per_s", &t->fp16_flop_per_s, 1e12, 1e6, true},
                 {"fp8_tflop_per_s", &t->fp8_flop_per_s, 1e12, 1e6, true},
                 {"fp32_tflop_per_s", &t->fp32_flop_per_s, 1e12, 1e6, false},
                 {"gemm_efficiency", &t->gemm_efficiency, 1, 1, false}};
    struct json_at like = json_key (at, "like"), sms = json_key (at, "multiprocessors");
    const struct topology_gpu_type *base = topology_gpu_type_builtin (name);
    enum status st = json_want_object (at, r->err);
    const char *like_name;
    long long n;

    if (st == ST_OK && json_has (at, "like")) {
        st = json_want_string (&like, &like_name, r->err);
        if (st == ST_OK && !(base = topology_gpu_type_builtin (like_name)))
            st = json_fail (&like, r->err, "a built-in GPU type");
    }
    if (st != ST_OK)
        return st;
    *t = base ? *base : (struct topology_gpu_type){.gemm_efficiency = 0.6};
    snprintf (t->name, sizeof t->name, "%s", name);
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        struct json_at f = json_key (at, field[i].key);
        double x;

        if (base && !json_has (at, field[i].key))
            continue;
        if (!f.v && field[i].zero_ok)
            continue;
        if (!f.v && strcmp (field[i].key, "gemm_efficiency") == 0)
            continue;
        st = json_want_number (&f, 0, field[i].zero_ok, field[i].max, &x, r->err);
        if (st != ST_OK)
            return st;
        *field[i].value = x * field[i].unit;
    }
    if (!base || json_has (at, "multiprocessors")) {
        st = json_want_int (&sms, 1, 100000, &n, r->err);
        if (st != ST_OK)
            return st;
        t->multiprocessors = (int) n;
    }
    json_note_unknown (at, known, r->notes);
    return ST_OK;
}

static enum status read_gpu_types (struct reader *r, const struct json_at *root)
{
    struct json_at at = json_key (root, "gpu_types");
    const char *name;
    json_t *value;
    enum status st;

    if (!json_has (root, "gpu_types"))
        return ST_OK;
    st = json_want_object (&at, r->err);
    if (st != ST_OK)
        return st;
    r->c->type = calloc (json_object_size (at.v) + 1, sizeof *r->c->type);
    if (!r->c->type)
        return err_nomem (r->err);
    json_object_foreach (at.v, name, value)
    {
        struct json_at one = json_key (&at, name);

        if (!topology_name_ok (name) || strlen (name) >= sizeof r->c->type->name)
            return json_fail_text (&one, r->err, "not a legal name of a GPU type");
        st = read_gpu_type (r, &one, name, &r->c->type[r->c->n_types]);
        if (st != ST_OK)
            return st;
        r->c->n_types++;
    }
    return ST_OK;
}

static enum status find_gpu_type (struct reader *r, const struct json_at *at,
                                  const struct topology_gpu_type **out)
{
    const char *name;
    enum status st = json_want_string (at, &name, r->err);
    int n;

    if (st != ST_OK)
        return st;
    for (int i = 0; i < r->c->n_types; i++)
        if (strcmp (r->c->type[i].name, name) == 0) {
            *out = &r->c->type[i];
            return ST_OK;
        }
    if ((*out = topology_gpu_type_builtin (name)))
        return ST_OK;

    const struct topology_gpu_type *all = topology_gpu_types_builtin (&n);
    const char *near = NULL;

    for (int i = 0; i < n && !near; i++)
        if (name[0] && strncasecmp (all[i].name, name, strcspn (name, "-_ ")) == 0)
            near = all[i].name;
    return json_fail_text (at, r->err,
                           "unknown GPU type \"%.60s\"%s%s%s; `linkwise gpus` "
                           "lists the built-in ones, gpu_types adds others",
                           name, near ? " (did you mean " : "", near ? near : "",
                           near ? "?)" : "");
}

/* ---- nodes ---- */

/* An optional list with one text per GPU. */
static enum status read_texts (struct reader *r, const struct json_at *node,
                               const char *key, int gpus, char ***out)
{
    struct json_at at = json_key (node, key);
    char expected[64];

    if (!json_has (node, key))
        return ST_OK;
    snprintf (expected, sizeof expected, "a list of %d texts (one per GPU)", gpus);
    if (!json_is_array (at.v) || json_array_size (at.v) != (size_t) gpus)
        return json_fail (&at, r->err, expected);
    if (!(*out = calloc ((size_t) gpus, sizeof **out)))
        return err_nomem (r->err);
    for (int k = 0; k < gpus; k++) {
        struct json_at one = json_entry (&at, (size_t) k);
        const char *s;
        enum status st = json_want_string (&one, &s, r->err);

        if (st != ST_OK)
            return st;
        if (!((*out)[k] = strdup (s)))
            return err_nomem (r->err);
    }
    return ST_OK;
}

static enum status read_numbers (struct reader *r, const struct json_at *node,
                                 struct topology_node *n)
{
    struct json_at speed = json_key (node, "speed"), numa = json_key (node, "gpu_numa");
    char expected[64];
    enum status st = ST_OK;

    snprintf (expected, sizeof expected, "a list of %d numbers (one per GPU)", n->gpus);
    if (json_has (node, "speed")) {
        if (!json_is_array (speed.v) || json_array_size (speed.v) != (size_t) n->gpus)
            return json_fail (&speed, r->err, expected);
        if (!(n->speed = calloc ((size_t) n->gpus, sizeof *n->speed)))
            return err_nomem (r->err);
        for (int k = 0; k < n->gpus && st == ST_OK; k++) {
            struct json_at one = json_entry (&speed, (size_t) k);

            st = json_want_number (&one, 0, false, 1e3, &n->speed[k], r->err);
        }
    }
    if (st == ST_OK && json_has (node, "gpu_numa")) {
        if (!json_is_array (numa.v) || json_array_size (numa.v) != (size_t) n->gpus)
            return json_fail (&numa, r->err, expected);
        if (!(n->gpu_numa = calloc ((size_t) n->gpus, sizeof *n->gpu_numa)))
            return err_nomem (r->err);
        for (int k = 0; k < n->gpus && st == ST_OK; k++) {
            struct json_at one = json_entry (&numa, (size_t) k);
            long long x = 0;

            st = json_want_int (&one, -1, 65535, &x, r->err);
            n->gpu_numa[k] = (int) x;
        }
    }
    return st;
}

static enum status read_node (struct reader *r, const struct json_at *at,
                              struct topology_node *n)
{
    static const char *const known[] = {"name",     "gpus",     "gpu_type", "speed",
                                        "gpu_uuid", "gpu_numa", "gpu_nic",  "rack",
                                        "state",    NULL};
    struct json_at name = json_key (at, "name"), gpus = json_key (at, "gpus"),
                   type = json_key (at, "gpu_type"), rack = json_key (at, "rack"),
                   state = json_key (at, "state");
    const char *s;
    long long k;
    enum status st = json_want_object (at, r->err);

    if (st == ST_OK)
        st = json_want_string (&name, &s, r->err);
    if (st != ST_OK)
        return st;
    if (!topology_name_ok (s))
        return json_fail (&name, r->err,
                          "a name matching [A-Za-z0-9][A-Za-z0-9._-]{0,252}");
    if (!(n->name = strdup (s)))
        return err_nomem (r->err);
    st = json_want_int (&gpus, 1, TOPOLOGY_NODE_GPUS_MAX, &k, r->err);
    if (st == ST_OK) {
        n->gpus = (int) k;
        st = find_gpu_type (r, &type, &n->type);
    }
    if (st == ST_OK)
        st = read_numbers (r, at, n);
    if (st == ST_OK)
        st = read_texts (r, at, "gpu_uuid", n->gpus, &n->gpu_uuid);
    if (st == ST_OK)
        st = read_texts (r, at, "gpu_nic", n->gpus, &n->gpu_nic);
    if (st == ST_OK && json_has (at, "rack")) {
        st = json_want_string (&rack, &s, r->err);
        if (st == ST_OK && !(n->rack = strdup (s)))
            st = err_nomem (r->err);
    }
    if (st == ST_OK && json_has (at, "state")) {
        st = json_want_string (&state, &s, r->err);
        if (st == ST_OK && strcmp (s, "ok") != 0 && strcmp (s, "drained") != 0)
            st = json_fail (&state, r->err, "\"ok\" or \"drained\"");
        n->drained = st == ST_OK && strcmp (s, "drained") == 0;
    }
    if (st == ST_OK)
        json_note_unknown (at, known, r->notes);
    return st;
}

static int by_name (const void *a, const void *b)
{
    const struct topology_node *const *x = a, *const *y = b;

    return strcmp ((*x)->name, (*y)->name);
}

static enum status check_unique (struct reader *r, const struct json_at *nodes)
{
    struct topology_cluster *c = r->c;
    const struct topology_node **sorted = calloc ((size_t) c->n_nodes, sizeof *sorted);
    enum status st = ST_OK;

    if (!sorted)
        return err_nomem (r->err);
    for (int i = 0; i < c->n_nodes; i++)
        sorted[i] = &c->node[i];
    qsort (sorted, (size_t) c->n_nodes, sizeof *sorted, by_name);
    for (int i = 1; i < c->n_nodes && st == ST_OK; i++)
        if (strcmp (sorted[i - 1]->name, sorted[i]->name) == 0)
            st = json_fail_text (nodes, r->err, "two nodes are named \"%s\"",
                                 sorted[i]->name);
    free (sorted);
    return st;
}

static enum status read_nodes (struct reader *r, const struct json_at *root)
{
    struct topology_cluster *c = r->c;
    struct json_at nodes = json_key (root, "nodes");
    size_t n;
    enum status st = json_want_array (&nodes, &n, r->err);

    if (st != ST_OK)
        return st;
    if (n == 0 || n > NODES_MAX)
        return json_fail (&nodes, r->err, "1 to 1048576 nodes");
    if (!(c->node = calloc (n, sizeof *c->node)))
        return err_nomem (r->err);
    c->n_nodes = (int) n;
    for (size_t i = 0; i < n && st == ST_OK; i++) {
        struct json_at one = json_entry (&nodes, i);

        st = read_node (r, &one, &c->node[i]);
        c->node[i].first_gpu = c->n_gpus;
        c->n_gpus += c->node[i].gpus;
    }
    if (st == ST_OK)
        st = check_unique (r, &nodes);
    if (st == ST_OK && !(c->node_of_gpu = calloc ((size_t) c->n_gpus, sizeof (int))))
        st = err_nomem (r->err);
    for (int i = 0; i < c->n_nodes && st == ST_OK; i++)
        for (int k = 0; k < c->node[i].gpus; k++)
            c->node_of_gpu[c->node[i].first_gpu + k] = i;
    return st;
}

/* ---- the document ---- */

static enum status read_document (struct reader *r, const struct json_at *root,
                                  const char *name)
{
    static const char *const known[] = {"version", "name",      "nodes",    "links",
                                        "source",  "gpu_types", "measured", NULL};
    struct json_at version = json_key (root, "version"), title = json_key (root, "name");
    const char *s = name;
    long long v;
    enum status st = json_want_object (root, r->err);

    if (st == ST_OK)
        st = json_want_int (&version, 1, 1, &v, r->err);
    if (st == ST_OK && json_has (root, "name"))
        st = json_want_string (&title, &s, r->err);
    if (st == ST_OK && !(r->c->name = strdup (s)))
        st = err_nomem (r->err);
    if (st == ST_OK)
        st = read_gpu_types (r, root);
    if (st == ST_OK)
        st = read_nodes (r, root);
    if (st == ST_OK)
        st = read_all_links (r, root);
    if (st == ST_OK)
        json_note_unknown (root, known, r->notes);
    return st;
}

enum status topology_cluster_from_json (json_t *doc, const char *name, const char *folder,
                                        struct topology_cluster **out,
                                        struct notes *notes, struct error *err)
{
    struct reader r = {.c = calloc (1, sizeof *r.c), .notes = notes, .err = err};
    struct json_at root = json_root (doc, name);

    if (!r.c || (folder && !(r.c->folder = strdup (folder)))) {
        topology_cluster_destroy (r.c);
        return err_nomem (err);
    }
    r.c->doc = json_incref (doc);

    enum status st = read_document (&r, &root, name);

    if (st != ST_OK) {
        topology_cluster_destroy (r.c);
        return st;
    }
    find_lowest (r.c);
    *out = r.c;
    return ST_OK;
}

enum status topology_cluster_read (const char *arg, struct topology_cluster **out,
                                   struct notes *notes, struct error *err)
{
    struct stat sb;
    json_t *doc = NULL;
    bool line = strchr (arg, ' ') && stat (arg, &sb) != 0;
    const char *slash = strrchr (arg, '/');
    char *folder = slash && !line ? strndup (arg, (size_t) (slash - arg) + 1) : NULL;
    enum status st =
        line ? topology_line_to_json (arg, &doc, err) : json_read (arg, &doc, err);

    if (st == ST_OK)
        st = topology_cluster_from_json (doc,
                                         strcmp (arg, "-") == 0 ? "standard input" : arg,
                                         folder, out, notes, err);
    json_decref (doc);
    free (folder);
    return st;
}

/* ---- writing ---- */

static json_t *matrix_json (const struct topology_matrix *m, double unit)
{
    json_t *rows = json_array ();

    for (int i = 0; i < m->n; i++) {
        json_t *row = json_array ();

        for (int j = 0; j < m->n; j++)
            json_array_append_new (
                row, i == j ? json_null ()
                            : json_number_or_null (topology_matrix_at (m, i, j) / unit));
        json_array_append_new (rows, row);
    }
    return rows;
}

/* Write a matrix that came from a .npy file into its place in the document. */
static void inline_npy (json_t *links, const struct topology_links *l)
{
    if (json_is_object (json_object_get (links, "bandwidth_gb_per_s")))
        json_object_set_new (links, "bandwidth_gb_per_s",
                             matrix_json (&l->bytes_per_s, UNITS_GB));
    if (json_is_object (json_object_get (links, "latency_us")))
        json_object_set_new (links, "latency_us", matrix_json (&l->latency_s, UNITS_US));
}

json_t *topology_cluster_to_json (const struct topology_cluster *c)
{
    json_t *doc = json_deep_copy (c->doc), *links = json_object_get (doc, "links"),
           *intra = json_object_get (links, "intra");

    if (!doc)
        return NULL;
    if (c->has_gpu_links)
        inline_npy (json_object_get (links, "gpu"), &c->gpu_links);
    if (c->has_inter)
        inline_npy (json_object_get (links, "inter"), &c->inter);
    for (int k = 0; k < c->n_intra; k++)
        inline_npy (json_is_array (intra) ? json_array_get (intra, (size_t) k) : intra,
                    &c->intra[k]);
    return doc;
}
