/* Matrices over nodes or GPUs: the ways that a file can give one, and looking entries up. */
#include "topology/topology_private.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/units.h"

/* What an entry of a matrix may be. */
struct entry_rule {
    double unit; /* the file's unit in SI units */
    bool zero_ok;
    double max; /* in the file's unit */
    const char *what;
};

#define TOLD_ROWS 256 /* between two calls that tell of reading */

static const struct entry_rule rules[] = {
    {UNITS_GB, false, GB_PER_S_MAX, "a number > 0 or null"}, /* bandwidth */
    {UNITS_US, true, 1e9, "a number >= 0 or null"},          /* latency */
    {1.0, true, 1e9, "a number >= 0 or null"}};              /* a relative error */

static bool entry_ok (const struct entry_rule *rule, double x)
{
    return isnan (x) || (x >= (rule->zero_ok ? 0 : GB_PER_S_LEAST) && x <= rule->max);
}

/* What is expected in place of an entry. */
static const char *wanted (const struct entry_rule *rule, double x)
{
    return x > 0 && x < GB_PER_S_LEAST ? "a number >= 1e-9 or null"
           : x > rule->max             ? "a number <= 1e9 or null"
                                       : rule->what;
}

/* A number or null (NaN). */
static enum status read_entry (struct reader *r, const struct json_at *at,
                               const struct entry_rule *rule, double *x)
{
    *x = json_is_number (at->v) ? json_number_value (at->v) : NAN;
    return (json_is_number (at->v) || json_is_null (at->v)) && entry_ok (rule, *x)
               ? ST_OK
               : json_fail (at, r->err, "%s", wanted (rule, *x));
}

static enum status read_rows (struct reader *r, const struct json_at *at, int n,
                              const struct entry_rule *rule, struct topology_matrix *m)
{
    double *v;

    if (json_array_size (at->v) != (size_t) n)
        return json_fail (at, r->err, "%d rows of %d entries", n, n);
    m->own = v = malloc ((size_t) n * (size_t) n * sizeof *v);
    if (!v)
        return err_nomem (r->err);
    for (int i = 0; i < n; i++) {
        struct json_at row = json_entry (at, (size_t) i);

        if (i % TOLD_ROWS == 0)
            notes_reading (r->notes, r->c->name, (double) i / n);
        if (!json_is_array (row.v) || json_array_size (row.v) != (size_t) n)
            return json_fail (&row, r->err, "an array of %d", n);
        for (int j = 0; j < n; j++) {
            struct json_at e = json_entry (&row, (size_t) j);
            double *x = &v[(size_t) i * (size_t) n + (size_t) j];

            *x = NAN;
            if (i != j)
                TRY (read_entry (r, &e, rule, x));
        }
    }
    notes_reading (r->notes, r->c->name, 1.0);
    m->v = v;
    m->n = n;
    m->scale = rule->unit;
    return ST_OK;
}

static enum status read_npy (struct reader *r, const struct json_at *at, int n,
                             const struct entry_rule *rule, struct topology_matrix *m)
{
    struct json_at file = json_key (at, "npy");
    const char *name;
    char path[PATH_MAX];

    TRY (json_want_string (&file, &name, r->err));
    json_note_unknown (at, "npy", r->notes);
    if ((size_t) snprintf (path, sizeof path, "%s%s%s",
                           name[0] == '/' || !r->c->folder ? "" : r->c->folder,
                           name[0] == '/' || !r->c->folder ? "" : "/",
                           name) >= sizeof path)
        return json_fail_text (&file, r->err, "the name is too long");
    TRY (npy_map (path, &m->npy, r->err));
    if (m->npy.n != (size_t) n)
        return json_fail_text (&file, r->err, "expected %d x %d entries, found %zu x %zu",
                               n, n, m->npy.n, m->npy.n);
    for (int i = 0; i < n; i++) {
        if (i % TOLD_ROWS == 0)
            notes_reading (r->notes, name, (double) i / n);
        for (int j = 0; j < n; j++) {
            size_t k = (size_t) i * (size_t) n + (size_t) j;
            double x = m->npy.v ? m->npy.v[k] : (double) m->npy.f[k];

            if (!entry_ok (rule, x) && i != j)
                return json_fail_text (&file, r->err,
                                       "entry [%d][%d]: expected %s (NaN), found %g", i,
                                       j, wanted (rule, x), x);
        }
    }
    notes_reading (r->notes, name, 1.0);
    m->v = m->npy.v;
    m->n = n;
    m->scale = rule->unit;
    return ST_OK;
}

/* The list of a rule. */
static enum status read_list (struct reader *r, const struct json_at *at,
                              const struct entry_rule *rule, double **out, size_t n)
{
    if (!(*out = calloc (n + 1, sizeof **out)))
        return err_nomem (r->err);
    json_each (at, one) {
        TRY (read_entry (r, &one, rule, &(*out)[one.index]));
        (*out)[one.index] *= rule->unit;
    }
    return ST_OK;
}

static enum status read_by_node (struct reader *r, const struct json_at *at, int n,
                                 const struct entry_rule *rule,
                                 struct topology_pattern *p)
{
    if (!json_is_array (at->v) || json_array_size (at->v) != (size_t) n)
        return json_fail (at, r->err, "a list of %d (one per node)", n);
    return read_list (r, at, rule, &p->by_node, (size_t) n);
}

static enum status read_by_hops (struct reader *r, const struct json_at *at,
                                 const struct entry_rule *rule,
                                 struct topology_pattern *p)
{
    size_t k = json_array_size (at->v);

    if (!json_is_array (at->v) || k == 0 || k > TOPOLOGY_SWITCHES_MAX + 1)
        return json_fail (
            at, r->err, "a list with one entry per level of switches, from the leaf up");
    for (int i = 0; i < r->c->n_nodes; i++)
        if (r->c->node[i].levels == 0)
            return json_fail_text (at, r->err,
                                   "needs nodes[].switches, which node %s lacks",
                                   r->c->node[i].name);
    p->n_hops = (int) k;
    return read_list (r, at, rule, &p->by_hops, k);
}

static enum status read_rule (struct reader *r, const struct json_at *at, int n,
                              const struct entry_rule *rule, struct topology_matrix *m)
{
    struct json_at by_node = json_key (at, "by_node"), by_hops = json_key (at, "by_hops");
    struct topology_pattern *p = calloc (1, sizeof *p);

    if (!p)
        return err_nomem (r->err);
    m->pattern = p;
    m->n = n;
    p->c = r->c;
    p->larger_is_worse = rule->zero_ok;
    if (by_node.v && by_hops.v)
        return json_fail_text (at, r->err, "by_node and by_hops exclude each other");
    json_note_unknown (at, "by_node by_hops", r->notes);
    return by_node.v ? read_by_node (r, &by_node, n, rule, p)
                     : read_by_hops (r, &by_hops, rule, p);
}

enum status topology_matrix_read (struct reader *r, const struct json_at *at, int n,
                                  bool over_nodes, enum matrix_of what,
                                  struct topology_matrix *m)
{
    const struct entry_rule *rule = &rules[what];
    double x;

    if (json_is_array (at->v))
        return read_rows (r, at, n, rule, m);
    if (json_is_object (at->v) && over_nodes &&
        (json_object_get (at->v, "by_node") || json_object_get (at->v, "by_hops")))
        return read_rule (r, at, n, rule, m);
    if (json_is_object (at->v))
        return read_npy (r, at, n, rule, m);
    if (!json_is_number (at->v))
        return json_fail (at, r->err, "a number, %d rows of %d, or {\"npy\": FILE}", n,
                          n);
    TRY (json_want_number (at, 0, rule->zero_ok, rule->max, &x, r->err));
    if (!entry_ok (rule, x))
        return json_fail (at, r->err, "%s", wanted (rule, x));
    m->number = x * rule->unit;
    return ST_OK;
}

int topology_hops (const struct topology_cluster *c, int a, int b)
{
    const struct topology_node *x = &c->node[a], *y = &c->node[b];

    for (int i = 0; i < x->levels; i++)
        for (int j = 0; j < y->levels; j++)
            if (x->switch_id[i] == y->switch_id[j])
                return i > j ? i : j;
    return -1;
}

static double worse (const struct topology_pattern *p, double x, double y)
{
    if (isnan (x) || isnan (y))
        return NAN;
    return (x > y) == p->larger_is_worse ? x : y;
}

double topology_matrix_entry (const struct topology_matrix *m, int i, int j)
{
    const struct topology_pattern *p = m->pattern;
    double x;

    if (pairs_get (p->except, i, j, &x))
        return x;
    if (p->by_node)
        return worse (p, p->by_node[i], p->by_node[j]);
    if (p->by_hops) {
        int hops = topology_hops (p->c, i, j);

        return p->by_hops[hops < 0 || hops >= p->n_hops ? p->n_hops - 1 : hops];
    }
    return p->number;
}

bool topology_matrix_set (struct topology_matrix *m, int n, int i, int j, double x)
{
    if (m->n == 0) {
        if (!(m->pattern = calloc (1, sizeof *m->pattern)))
            return false;
        m->pattern->number = m->number;
        m->n = n;
    }
    if (m->pattern)
        return pairs_set (&m->pattern->except, i, j, x);

    size_t at = (size_t) i * (size_t) n + (size_t) j;

    if (m->own)
        m->own[at] = x / m->scale;
    else if (m->npy.v)
        m->npy.v[at] = x / m->scale;
    else
        m->npy.f[at] = (float) (x / m->scale);
    return true;
}

void topology_lower (double *lowest, double x)
{
    if (x > 0 && (*lowest <= 0 || x < *lowest))
        *lowest = x;
}

static double pattern_lowest (const struct topology_matrix *m)
{
    const struct topology_pattern *p = m->pattern;
    double lowest = 0, x;
    size_t at = 0, others = (size_t) m->n * (size_t) (m->n - 1);
    int i, j;

    for (int k = 0; p->by_node && k < m->n; k++)
        topology_lower (&lowest, p->by_node[k]);
    for (int k = 0; p->by_hops && k < p->n_hops; k++)
        topology_lower (&lowest, p->by_hops[k]);
    while (pairs_next (p->except, &at, &i, &j, &x)) {
        topology_lower (&lowest, x);
        others -= i != j;
    }
    /* A number that no pair has, since all are exceptions, is nobody's rate. */
    if (!p->by_node && !p->by_hops && others > 0)
        topology_lower (&lowest, p->number);
    return lowest;
}

double topology_matrix_lowest (const struct topology_matrix *m)
{
    double lowest = 0;

    if (m->n == 0)
        return m->number > 0 ? m->number : 0;
    if (m->pattern)
        return pattern_lowest (m);
    for (int i = 0; i < m->n; i++)
        for (int j = 0; j < m->n; j++)
            if (i != j)
                topology_lower (&lowest, topology_matrix_at (m, i, j));
    return lowest;
}

void topology_matrix_release (struct topology_matrix *m)
{
    npy_close (&m->npy);
    free (m->own);
    if (m->pattern) {
        pairs_free (m->pattern->except);
        FREE_ALL (m->pattern->by_node, m->pattern->by_hops, m->pattern);
    }
    *m = (struct topology_matrix){0};
}

/* A matrix of its own with rows and columns keep[0..n). */
static bool pick (const struct topology_matrix *from, const int *keep, int n,
                  struct topology_matrix *to)
{
    *to = (struct topology_matrix){.number = from->number};
    if (from->n == 0)
        return true;
    if (!(to->own = malloc ((size_t) n * (size_t) n * sizeof *to->own)))
        return false;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            to->own[i * n + j] = topology_matrix_at (from, keep[i], keep[j]);
    to->v = to->own;
    to->n = n;
    to->scale = 1.0;
    return true;
}

/* ---- links ---- */

bool topology_own_intra (struct topology_node *n, const int *keep)
{
    const struct topology_links *from = n->intra;
    struct topology_links *own = calloc (1, sizeof *own);

    if (!own)
        return false;
    n->intra = n->own_intra = own;
    own->gpu_bytes_per_s = from->gpu_bytes_per_s;
    own->nominal = from->nominal;
    own->has_estimates = from->has_estimates;
    return pick (&from->bytes_per_s, keep, n->gpus, &own->bytes_per_s) &&
           pick (&from->latency_s, keep, n->gpus, &own->latency_s) &&
           (!from->has_estimates ||
            pick (&from->estimate_error, keep, n->gpus, &own->estimate_error));
}

bool topology_links_set (struct topology_links *l, int n, int i, int j,
                         double bytes_per_s)
{
    return topology_matrix_set (&l->bytes_per_s, n, i, j, bytes_per_s) &&
           (!l->has_estimates || topology_matrix_set (&l->estimate_error, n, i, j, NAN));
}

void topology_links_release (struct topology_links *l)
{
    topology_matrix_release (&l->bytes_per_s);
    topology_matrix_release (&l->latency_s);
    topology_matrix_release (&l->estimate_error);
}
