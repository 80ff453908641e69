/* Changes of a cluster in words.  Each form of a statement is one line of the table `forms`: its
 * words, those in capitals being arguments, and what it does to a copy of the cluster's document.
 * The copy is then read as every cluster file is, so that a what-if means what the same edit of
 * the file means, and is checked as strictly. */
#include "topology/edit/change.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stats.h"
#include "base/units.h"
#include "topology/edit/edit.h"
#include "topology/topology_private.h"
#include "topology/typical.h"

#define WORDS_MAX 64

struct change {
    const struct topology_cluster *c; /* as it was */
    json_t *doc;                      /* as it becomes */
    char *arg[WORDS_MAX];             /* the words in capitals */
    int n;
    int max_nodes;
    struct error *err;
};

static json_t *links_of (const struct change *x)
{
    return json_object_get (x->doc, "links");
}

/* Between nodes: links.gpu replaces links.inter. */
static json_t *net_of (const struct change *x)
{
    json_t *gpu = json_object_get (links_of (x), "gpu");

    return gpu ? gpu : json_object_get (links_of (x), "inter");
}

static json_t *node_at (const struct change *x, int i)
{
    return json_array_get (json_object_get (x->doc, "nodes"), (size_t) i);
}

/* ---- arguments ---- */

/* Products with what a file says stay numbers. */
#define NUMBER_MIN 1e-9
#define NUMBER_MAX 1e9

static enum status number_of (struct change *x, int arg, double *out)
{
    char *end;

    *out = strtod (x->arg[arg], &end);
    return end > x->arg[arg] && !*end && *out >= NUMBER_MIN && *out <= NUMBER_MAX
               ? ST_OK
               : err_set (x->err, ST_USAGE,
                          "expected a number from %g to %g, found \"%s\"", NUMBER_MIN,
                          NUMBER_MAX, x->arg[arg]);
}

static enum status count_of (struct change *x, const char *word, int most, int *out)
{
    char *end;
    long n = strtol (word, &end, 10);

    if (end == word || *end || n < 1 || n > most)
        return err_set (x->err, ST_USAGE,
                        "expected a whole number from 1 to %d, found \"%s\"", most, word);
    *out = (int) n;
    return ST_OK;
}

static enum status node_of (struct change *x, const char *name, int *out)
{
    struct text_near near = {.asked = name};
    char hint[TEXT_HINT];

    *out = topology_node_find (x->c, name);
    if (*out >= 0)
        return ST_OK;
    for (int i = 0; i < x->c->n_nodes; i++)
        text_near_try (&near, x->c->node[i].name, strlen (x->c->node[i].name));
    return err_set (x->err, ST_INVALID, "the cluster %s has no node \"%s\"%s", x->c->name,
                    name, text_near_hint (&near, "", hint));
}

/* Do `each` for the nodes of the host lists from an argument on. */
static enum status for_nodes (struct change *x, int from, int to,
                              enum status (*each) (struct change *x, int node))
{
    enum status st = ST_OK;

    for (int a = from; a < to && st == ST_OK; a++) {
        char **names = NULL;
        int n;

        st = topology_hostlist_expand (x->arg[a], &names, &n, x->err);
        for (int k = 0; st == ST_OK && k < n; k++) {
            int node;

            st = node_of (x, names[k], &node);
            if (st == ST_OK)
                st = each (x, node);
        }
        topology_hostlist_free (names);
    }
    return st;
}

/* ---- links ---- */

static enum status except (struct change *x, const char *from, const char *to,
                           json_t *gb_per_s)
{
    json_t *list = json_object_get (links_of (x), "exceptions");

    if (!list) {
        list = json_array ();
        json_object_set_new (links_of (x), "exceptions", list);
    }
    return json_array_append_new (list, json_pack ("{s:s, s:s, s:o}", "from", from, "to",
                                                   to, "bandwidth_gb_per_s", gb_per_s))
               ? err_nomem (x->err)
               : ST_OK;
}

/* NODE or NODE:GPU. */
static enum status check_end (struct change *x, const char *end)
{
    char name[TOPOLOGY_NAME_MAX + 1];
    int node;

    snprintf (name, sizeof name, "%.*s", (int) strcspn (end, ":"), end);
    return node_of (x, name, &node);
}

/* A->B or A<->B into its ends. */
static enum status ends_of (struct change *x, char **from, char **to, bool *both)
{
    char *arrow = strstr (x->arg[0], "->");

    if (!arrow || arrow == x->arg[0] || !arrow[2])
        return err_set (x->err, ST_USAGE, "expected A->B or A<->B, found \"%s\"",
                        x->arg[0]);
    *both = arrow[-1] == '<';
    arrow[*both ? -1 : 0] = '\0';
    *from = x->arg[0];
    *to = arrow + 2;
    TRY (check_end (x, *from));
    return check_end (x, *to);
}

static enum status set_link (struct change *x)
{
    char *from = NULL, *to = NULL;
    bool both = false, broken = strcmp (x->arg[1], "null") == 0;
    double gb_per_s = NAN;

    if (!broken && number_of (x, 1, &gb_per_s) != ST_OK)
        return err_set (x->err, ST_USAGE, "expected GB/s > 0 or null, found \"%s\"",
                        x->arg[1]);
    TRY (ends_of (x, &from, &to, &both));
    TRY (except (x, from, to, json_number_or_null (gb_per_s)));
    return both ? except (x, to, from, json_number_or_null (gb_per_s)) : ST_OK;
}

/* ---- what all GPUs of two nodes reach together ---- */

/* The rows of node_pair_gb_per_s, made where the file has a number, a rule or another file. */
static json_t *total_rows (struct change *x)
{
    const struct topology_cluster *c = x->c;
    json_t *rows = json_object_get (net_of (x), "node_pair_gb_per_s");

    if (json_is_array (rows))
        return rows;
    rows = json_array ();
    for (int i = 0; i < c->n_nodes; i++) {
        json_t *row = json_array ();

        for (int j = 0; j < c->n_nodes; j++) {
            double pair = topology_matrix_at (&c->pair_bytes_per_s, i, j);

            json_array_append_new (row,
                                   json_number_or_null (i == j ? NAN : pair / UNITS_GB));
        }
        json_array_append_new (rows, row);
    }
    json_object_set_new (net_of (x), "node_pair_gb_per_s", rows);
    return rows;
}

static void put_total (struct change *x, int from, int to, double bytes_per_s)
{
    json_array_set_new (json_array_get (total_rows (x), (size_t) from), (size_t) to,
                        json_number_or_null (bytes_per_s / UNITS_GB));
}

static enum status need_totals (const struct change *x)
{
    return x->c->has_pair_totals
               ? ST_OK
               : err_set (x->err, ST_INVALID,
                          "the cluster %s does not say what the GPUs of two nodes reach "
                          "together (links.inter.node_pair_gb_per_s)",
                          x->c->name);
}

static enum status set_total (struct change *x)
{
    char *from = NULL, *to = NULL;
    bool both = false;
    double gb_per_s;
    int a, b;

    TRY (number_of (x, 1, &gb_per_s));
    TRY (need_totals (x));
    TRY (ends_of (x, &from, &to, &both));
    TRY (node_of (x, from, &a));
    TRY (node_of (x, to, &b));
    if (a == b)
        return err_set (x->err, ST_INVALID, "expected two nodes, found %s twice", from);
    put_total (x, a, b, gb_per_s * UNITS_GB);
    if (both)
        put_total (x, b, a, gb_per_s * UNITS_GB);
    return ST_OK;
}

static enum status pairs (struct change *x)
{
    json_t *row;
    double by;
    size_t i;

    TRY (number_of (x, 0, &by));
    TRY (need_totals (x));
    json_array_foreach (total_rows (x), i, row)
    {
        for (size_t j = 0; j < json_array_size (row); j++) {
            const json_t *pair = json_array_get (row, j);

            if (json_is_number (pair))
                json_array_set_new (row, j, json_real (by * json_number_value (pair)));
        }
    }
    return ST_OK;
}

/* ---- as good as others ---- */

/* Raise what is below the median of all links between nodes, to and from one. */
static enum status mend_links (struct change *x, int node)
{
    struct topology_link_stats stats = {0};
    const struct topology_cluster *c = x->c;

    if (c->n_nodes > 1)
        TRY (topology_inter_stats (c, &stats, x->err));
    for (int k = 0; k < 2 * c->n_nodes; k++) {
        int other = k / 2, a = k % 2 ? other : node, b = k % 2 ? node : other;
        struct topology_link l;

        if (other == node || c->node[other].drained)
            continue;
        l = topology_link (c, c->node[a].first_gpu, c->node[b].first_gpu);
        if (!l.measured || l.bytes_per_s < stats.median_bytes_per_s)
            TRY (except (x, c->node[a].name, c->node[b].name,
                         json_real (stats.median_bytes_per_s / UNITS_GB)));
    }
    return ST_OK;
}

/* The same of what the GPUs of one and of each other node reach together. */
static enum status mend_totals (struct change *x, int node)
{
    const struct topology_matrix *m = &x->c->pair_bytes_per_s;
    double typical;

    TRY (topology_pair_typical (x->c, &typical, x->err));
    for (int k = 0; k < 2 * x->c->n_nodes && !isnan (typical); k++) {
        int other = k / 2, a = k % 2 ? other : node, b = k % 2 ? node : other;

        if (other != node && !(topology_matrix_at (m, a, b) >= typical))
            put_total (x, a, b, typical);
    }
    return ST_OK;
}

/* A link inside a node that is below what is usual. */
static enum status mend_inside_link (struct change *x, struct topology_inside *usual,
                                     int src, int dst)
{
    struct topology_link l = topology_link_given (x->c, src, dst);
    double typical = topology_inside_typical (usual, src, dst);
    const char *name = x->c->node[x->c->node_of_gpu[src]].name;
    char from[TOPOLOGY_NAME_MAX + 16], to[TOPOLOGY_NAME_MAX + 16];

    if (isnan (typical) || (l.measured && l.bytes_per_s >= typical))
        return ST_OK;
    snprintf (from, sizeof from, "%s:%d", name, topology_gpu_index (x->c, src));
    snprintf (to, sizeof to, "%s:%d", name, topology_gpu_index (x->c, dst));
    return except (x, from, to, json_real (typical / UNITS_GB));
}

static enum status mend_inside (struct change *x, int node)
{
    int first = x->c->node[node].first_gpu, n = x->c->node[node].gpus;
    struct topology_inside *usual;
    enum status st;

    if (n < 2 || (!x->c->node[node].intra && !x->c->has_gpu_matrix))
        return ST_OK;
    st = topology_inside_create (x->c, &usual, x->err);
    if (st != ST_OK)
        return st;
    for (int k = 0; k < n * n && st == ST_OK; k++)
        if (k / n != k % n)
            st = mend_inside_link (x, usual, first + k / n, first + k % n);
    topology_inside_destroy (usual);
    return st;
}

static enum status mend_node (struct change *x, int node)
{
    json_object_del (node_at (x, node), "speed");
    json_object_del (node_at (x, node), "state");
    TRY (mend_links (x, node));
    TRY (mend_totals (x, node));
    return mend_inside (x, node);
}

static enum status mend (struct change *x)
{
    return for_nodes (x, 0, x->n, mend_node);
}

/* ---- nodes and GPUs ---- */

static enum status drain (struct change *x)
{
    for (int k = 0; k < x->n; k++) {
        char **names;
        enum status st;
        int n;

        if (!strpbrk (x->arg[k], ":>")) { /* no GPU, no link */
            TRY (topology_hostlist_expand (x->arg[k], &names, &n, x->err));
            topology_hostlist_free (names);
        }
        st = topology_drain (x->doc, x->arg[k], false, NULL, x->err);
        if (st != ST_OK)
            return st == ST_USAGE ? ST_INVALID
                                  : st; /* it is well-formed, but not there */
    }
    return ST_OK;
}

/* A node's factors, all 1 where it has none. */
static json_t *speeds_of (struct change *x, int node)
{
    json_t *list = json_object_get (node_at (x, node), "speed");

    if (!list) {
        list = json_array ();
        for (int k = 0; k < x->c->node[node].gpus_listed; k++)
            json_array_append_new (list, json_real (1.0));
        json_object_set_new (node_at (x, node), "speed", list);
    }
    return list;
}

static enum status gpu_speed (struct change *x)
{
    char *colon = strchr (x->arg[0], ':'), *end;
    double speed;
    long gpu;
    int node;

    TRY (number_of (x, 1, &speed));
    gpu = colon ? strtol (colon + 1, &end, 10) : 0;
    if (!colon || end == colon + 1 || *end)
        return err_set (x->err, ST_USAGE, "expected NODE:GPU, found \"%s\"", x->arg[0]);
    *colon = '\0';
    TRY (node_of (x, x->arg[0], &node));
    if (gpu < 0 || gpu >= x->c->node[node].gpus_listed)
        return err_set (x->err, ST_INVALID, "node %s has GPUs 0 to %d, found %ld",
                        x->arg[0], x->c->node[node].gpus_listed - 1, gpu);
    json_array_set_new (speeds_of (x, node), (size_t) gpu, json_real (speed));
    return ST_OK;
}

static enum status all_speeds (struct change *x, int node)
{
    json_t *list = speeds_of (x, node);
    double speed;

    TRY (number_of (x, x->n - 1, &speed));
    for (size_t k = 0; k < json_array_size (list); k++)
        json_array_set_new (list, k, json_real (speed));
    return ST_OK;
}

static enum status node_speed (struct change *x)
{
    return for_nodes (x, 0, 1, all_speeds);
}

static enum status set_type (struct change *x, int node)
{
    json_object_set_new (node_at (x, node), "gpu_type", json_string (x->arg[x->n - 1]));
    return ST_OK;
}

/* TYPE for all nodes, or NODES = TYPE. */
static enum status type (struct change *x)
{
    const char *name = x->arg[x->n - 1];
    struct topology_gpu_type t;
    char hint[TEXT_HINT];

    if (topology_type_in (x->doc, name, &t, NULL) != ST_OK)
        return err_set (x->err, ST_USAGE,
                        "unknown GPU type \"%s\"%s (`linkwise gpus` lists them)", name,
                        topology_gpu_type_hint (name, hint));
    for (int i = 0; x->n == 1 && i < x->c->n_nodes; i++)
        TRY (set_type (x, i));
    return x->n == 1 ? ST_OK : for_nodes (x, 0, 1, set_type);
}

static enum status nodes (struct change *x)
{
    int in_use = 0;

    for (int i = 0; i < x->c->n_nodes; i++)
        in_use += !x->c->node[i].drained;
    TRY (count_of (x, x->arg[0], 1 << 30, &x->max_nodes));
    return x->max_nodes <= in_use
               ? ST_OK
               : err_set (x->err, ST_INVALID,
                          "the cluster %s has %d nodes in use, found %d (+N nodes like "
                          "NODE adds some)",
                          x->c->name, in_use, x->max_nodes);
}

/* ---- more nodes ---- */

/* The ends of a matrix of the larger cluster: nodes, or all GPUs that are listed. */
struct ends {
    int *home;  /* [n] the end of the smaller one that it is like */
    int *owner; /* [n] its node in the larger one */
    int n, old;
};

/* What the ends of one node typically have to others. */
static double typical (const struct topology_matrix *m, const struct ends *e, int node)
{
    double *v = calloc ((size_t) e->old * (size_t) e->old + 1, sizeof *v), median;
    int n = 0;

    for (int i = 0; v && i < e->old; i++)
        for (int j = 0; j < e->old && e->owner[i] == node; j++)
            if (e->owner[j] != node && !isnan (topology_matrix_at (m, i, j)))
                v[n++] = topology_matrix_at (m, i, j);
    median = v ? stats_median (v, n) : NAN;
    free (v);
    return median;
}

/* Rows of the larger matrix instead of a smaller one or a rule; a number holds for all. */
static void widen (json_t *object, const char *key, const struct topology_matrix *m,
                   const struct ends *e, int like, double unit)
{
    json_t *rows = json_array ();
    double among;

    if (!json_object_get (object, key) ||
        json_is_number (json_object_get (object, key))) {
        json_decref (rows);
        return;
    }
    among = typical (m, e, like);
    for (int i = 0; i < e->n; i++) {
        json_t *row = json_array ();

        for (int j = 0; j < e->n; j++) {
            bool kin = e->owner[e->home[i]] == e->owner[e->home[j]] &&
                       e->owner[i] != e->owner[j];
            double v = i == j ? NAN
                       : kin  ? among
                              : topology_matrix_at (m, e->home[i], e->home[j]);

            json_array_append_new (row, json_number_or_null (v / unit));
        }
        json_array_append_new (rows, row);
    }
    json_object_set_new (object, key, rows);
}

static void widen_links (json_t *object, const struct topology_links *l,
                         const struct ends *e, int like)
{
    widen (object, "bandwidth_gb_per_s", &l->bytes_per_s, e, like, UNITS_GB);
    widen (object, "latency_us", &l->latency_s, e, like, UNITS_US);
    widen (object, "estimate_error", &l->estimate_error, e, like, 1.0);
}

/* @param[in] gpus  all GPUs are ends, not nodes */
static bool ends_init (struct ends *e, const struct topology_cluster *c, int like,
                       int more, bool gpus)
{
    int n = c->n_nodes, start = 0;
    size_t most = 0;

    for (int i = 0; i < n + more; i++)
        most += (size_t) (gpus ? c->node[i < n ? i : like].gpus_listed : 1);
    *e = (struct ends){.home = calloc (2 * most, sizeof (int))};
    if (!e->home)
        return false;
    e->owner = e->home + most;
    for (int i = 0; i < n + more; i++) {
        if (i == like)
            start = e->n;
        for (int k = 0; k < (gpus ? c->node[i < n ? i : like].gpus_listed : 1); k++) {
            e->home[e->n] = i < n ? e->n : start + k;
            e->owner[e->n++] = i;
        }
        if (i < n)
            e->old = e->n;
    }
    return true;
}

static enum status more_links (struct change *x, int like, int more)
{
    const struct topology_cluster *c = x->c;
    json_t *net = net_of (x), *rail;
    struct ends of_nodes, e;
    size_t k;

    if (!ends_init (&of_nodes, c, like, more, false))
        return err_nomem (x->err);
    if (!ends_init (&e, c, like, more, c->has_gpu_matrix)) {
        free (of_nodes.home);
        return err_nomem (x->err);
    }
    widen_links (net, c->has_gpu_matrix ? &c->gpu_links : &c->inter, &e, like);
    widen (net, "node_pair_gb_per_s", &c->pair_bytes_per_s, &of_nodes, like, UNITS_GB);
    json_array_foreach (json_object_get (net, "rails"), k, rail)
        widen_links (rail, &c->rail[k], &of_nodes, like);
    free (of_nodes.home);
    free (e.home);
    return ST_OK;
}

/* A node's document again, without what is one machine's own. */
static json_t *twin_of (struct change *x, int like, int *number)
{
    static const char *const own[] = {"gpu_uuid", "state", "gpu_state", "reason"};
    json_t *node = json_deep_copy (node_at (x, like));
    char name[32];

    do
        snprintf (name, sizeof name, "new%d", ++*number);
    while (topology_node_find (x->c, name) >= 0);
    json_object_set_new (node, "name", json_string (name));
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        json_object_del (node, own[k]);
    return node;
}

static enum status more (struct change *x)
{
    json_t *list[] = {json_object_get (links_of (x), "intra"),
                      json_object_get (net_of (x), "node_gb_per_s")};
    int n, like, number = 0;

    TRY (count_of (x, x->arg[0] + 1, 100000, &n));
    TRY (node_of (x, x->arg[1], &like));
    TRY (more_links (x, like, n));
    for (int k = 0; k < n; k++) {
        json_array_append_new (json_object_get (x->doc, "nodes"),
                               twin_of (x, like, &number));
        for (size_t i = 0; i < sizeof list / sizeof *list; i++)
            if (json_is_array (list[i]))
                json_array_append (list[i], json_array_get (list[i], (size_t) like));
    }
    return ST_OK;
}

/* ---- all of a kind ---- */

static enum status nics (struct change *x)
{
    json_t *list;
    double by;

    TRY (number_of (x, 0, &by));
    if (!json_object_get (net_of (x), "node_gb_per_s"))
        return err_set (x->err, ST_INVALID,
                        "the cluster %s does not say what a node's GPUs reach together "
                        "(links.inter.node_gb_per_s)",
                        x->c->name);
    list = json_array ();
    for (int i = 0; i < x->c->n_nodes; i++) {
        double gb_per_s = by * x->c->node[i].node_bytes_per_s / UNITS_GB;

        json_array_append_new (list, json_number_or_null (gb_per_s > 0 ? gb_per_s : NAN));
    }
    json_object_set_new (net_of (x), "node_gb_per_s", list);
    return ST_OK;
}

static enum status memory (struct change *x)
{
    json_t *types = json_object_get (x->doc, "gpu_types");
    double by;

    TRY (number_of (x, 0, &by));
    if (!types) {
        types = json_object ();
        json_object_set_new (x->doc, "gpu_types", types);
    }
    for (int i = 0; i < x->c->n_nodes; i++) {
        const struct topology_gpu_type *t = x->c->node[i].type;
        json_t *one = json_object_get (types, t->name);

        if (!one) {
            one = json_pack ("{s:s}", "like", t->name);
            json_object_set_new (types, t->name, one);
        }
        json_object_set_new (one, "memory_gb",
                             json_real (by * t->memory_bytes / UNITS_GB));
    }
    return ST_OK;
}

/* ---- forms ---- */

static const struct form {
    const char *words;
    enum status (*apply) (struct change *x);
} forms[] = {{"drain NODES...", drain},
             {"mend NODES...", mend},
             {"link A->B = GB/S", set_link},
             {"pair A->B = GB/S", set_total},
             {"gpu NODE:GPU speed F", gpu_speed},
             {"node NODES speed F", node_speed},
             {"+N nodes like NODE", more},
             {"nodes N", nodes},
             {"type TYPE", type},
             {"type NODES = TYPE", type},
             {"nics x F", nics},
             {"pairs x F", pairs},
             {"memory x F", memory}};
#define FORMS (sizeof forms / sizeof *forms)

void topology_change_forms (struct text *out)
{
    for (size_t k = 0; k < FORMS; k++)
        text_add (out, "  %s\n", forms[k].words);
}

/* Do the words have the form?  Then its arguments are known. */
static bool fits (const struct form *f, char **word, int n, struct change *x)
{
    char form[64], *part[8];
    int parts;

    snprintf (form, sizeof form, "%s", f->words);
    parts = text_words (form, part, 8);
    x->n = 0;
    for (int k = 0; k < parts; k++) {
        bool plus = part[k][0] == '+', open = strstr (part[k], "...") != NULL;

        if (k >= n || (plus && word[k][0] != '+'))
            return false;
        if (!isupper ((unsigned char) part[k][plus])) {
            if (strcmp (part[k], word[k]) != 0)
                return false;
            continue;
        }
        x->arg[x->n++] = word[k];
        for (int more_of = k + 1; open && more_of < n; more_of++)
            x->arg[x->n++] = word[more_of];
        if (open)
            return true;
    }
    return parts == n;
}

/* "drain NODES..." for words that begin as it does; all forms where none does. */
static enum status refuse (char **word, int n, struct error *err)
{
    struct text expected = {0};
    enum status st;

    for (int all = 0; all < 2 && expected.len == 0; all++)
        for (size_t k = 0; k < FORMS; k++)
            if (all ||
                (n > 0 && strcspn (forms[k].words, " ") == strlen (word[0]) &&
                 strncmp (forms[k].words, word[0], strlen (word[0])) == 0) ||
                (n > 0 && word[0][0] == '+' && forms[k].words[0] == '+'))
                text_add (&expected, "%s\"%s\"", expected.len ? " or " : "",
                          forms[k].words);
    st = err_set (err, ST_USAGE, "expected %s", text_str (&expected));
    text_free (&expected);
    return st;
}

/* The statement's words, '=' always one of them. */
static char *spaced (const char *statement)
{
    struct text t = {0};

    for (const char *s = statement; *s; s++)
        text_add (&t, *s == '=' ? " = " : "%c", *s);
    return t.s ? t.s : strdup ("");
}

static enum status apply (struct change *x, const char *statement)
{
    char *word[WORDS_MAX], *text = spaced (statement);
    const struct form *f = NULL;
    enum status st;
    int n;

    if (!text)
        return err_nomem (x->err);
    n = text_words (text, word, WORDS_MAX);
    for (size_t k = 0; k < FORMS && !f; k++)
        f = fits (&forms[k], word, n, x) ? &forms[k] : NULL;
    st = f ? f->apply (x) : refuse (word, n, x->err);
    free (text);
    return st;
}

enum status topology_change (const struct topology_cluster *c, const char *statement,
                             struct topology_changed *out, struct error *err)
{
    struct change x = {.c = c, .doc = json_deep_copy (c->doc), .err = err};
    struct topology_cluster *changed = NULL;
    enum status st = x.doc ? apply (&x, statement) : err_nomem (err);

    if (st == ST_OK)
        st = topology_cluster_from_json (x.doc, c->name, c->folder, &changed, NULL, err);
    json_decref (x.doc);
    if (st != ST_OK) {
        err_prefix (err, "\"%.200s\"", statement);
        return st;
    }
    topology_cluster_destroy (out->c);
    out->c = changed;
    if (x.max_nodes > 0)
        out->max_nodes = x.max_nodes;
    return ST_OK;
}

void topology_changed_release (struct topology_changed *x)
{
    topology_cluster_destroy (x->c);
    *x = (struct topology_changed){0};
}

/* ---- statements ---- */

enum status topology_changes_split (const char *text, char ***list, int *n,
                                    struct error *err)
{
    char **out = calloc (strlen (text) + 2, sizeof *out);
    int k = 0, number = 1;

    if (!out)
        return err_nomem (err);
    for (const char *s = text;; number++) {
        const char *end = s + strcspn (s, ";"), *last = end;

        while (s < last && isspace ((unsigned char) *s))
            s++;
        while (last > s && isspace ((unsigned char) last[-1]))
            last--;
        if (s < last && !(out[k++] = strndup (s, (size_t) (last - s)))) {
            topology_changes_free (out, k - 1);
            return err_nomem (err);
        }
        if (s < last)
            text_clean_line (out[k - 1]);
        if (s == last && (*end || k == 0)) { /* only the last may be empty */
            topology_changes_free (out, k);
            return err_set (err, ST_USAGE,
                            "statement %d: expected one, as \"%s\", found nothing",
                            number, forms[0].words);
        }
        if (!*end)
            break;
        s = end + 1;
    }
    *list = out;
    *n = k;
    return ST_OK;
}

void topology_changes_free (char **list, int n)
{
    for (int k = 0; list && k < n; k++)
        free (list[k]);
    free (list);
}
