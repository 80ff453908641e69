/* A switch tree for Slurm's topology/tree out of measured links, so that the scheduler keeps slow
 * pairs apart.
 *
 * Nodes are clustered by complete linkage: two groups join at the rate of the slowest pair of
 * theirs, the lower of both directions, the best joint first.  So every pair of a group reaches
 * its last joint's rate.  Sorted, the joints' rates fall slowly within what one tier of the
 * network does and jump between tiers: at each jump (the next is below BREAK of the one before)
 * the groups so far become switches.  Pairs count with what all their GPUs reach together where
 * that is known; what nobody measured counts as the slowest.
 *
 * The joints come from the nearest-neighbour chain (Murtagh, Comput. J. 26, 1983): n^2 steps. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "topology/export/export_private.h"

#define BREAK 0.85
#define DIGITS_MAX \
    9 /* of a number in a bracket, as Slurm and topology_hostlist_expand take it */

struct joint {
    int a, b; /* first nodes of the groups, a < b */
    double bytes_per_s;
};

struct tree {
    int n;
    double *rate;        /* [n*n] symmetric */
    struct joint *joint; /* [n - 1] */
    int *group;          /* [n] first node of each node's group */
    int *below;          /* [n] the same one level down, or -1 */
    int *number;         /* [n] of the switch of the group that begins there */
    int switches;
    double unmeasured; /* pairs */
};

/* ---- how pairs are joined ---- */

/* Both ways at the slower; the lowest of all where nobody measured. */
static void symmetric (struct tree *t)
{
    size_t n = (size_t) t->n;
    double lowest = INFINITY;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            double x = t->rate[i * n + j], y = t->rate[j * n + i];

            x = isnan (x) || isnan (y) ? NAN : x < y ? x : y;
            lowest = x < lowest ? x : lowest;
            t->rate[i * n + j] = t->rate[j * n + i] = x;
        }
    for (size_t k = 0; k < n * n; k++)
        if (isnan (t->rate[k]) && k / n != k % n) {
            t->rate[k] = lowest;
            t->unmeasured += 0.5;
        }
}

static enum status read_rates (struct tree *t, const struct exporting *x,
                               struct error *err)
{
    const struct topology_cluster *c = x->c;
    size_t n = (size_t) c->n_nodes;

    TRY (export_nodes (x, &t->rate, NULL, err));
    for (size_t k = 0; c->has_pair_totals && k < n * n; k++)
        if (k / n != k % n)
            t->rate[k] =
                topology_matrix_at (&c->pair_bytes_per_s, (int) (k / n), (int) (k % n));
    symmetric (t);
    if (n > 1 && isinf (t->rate[1]))
        return err_set (err, ST_INVALID,
                        "%s: no pair of nodes was measured in both directions", x->title);
    return ST_OK;
}

/* The group that a's joins best; the one before in the chain where several are alike. */
static int nearest (const struct tree *t, int a, int best)
{
    const double *row = t->rate + (size_t) a * (size_t) t->n;

    for (int j = 0; j < t->n; j++)
        if (j != a && t->group[j] == j && (best < 0 || row[j] > row[best]))
            best = j;
    return best;
}

static void join (struct tree *t, struct joint *out, int a, int b)
{
    size_t n = (size_t) t->n, keep = (size_t) (a < b ? a : b),
           drop = (size_t) (a < b ? b : a);

    *out = (struct joint){(int) keep, (int) drop, t->rate[keep * n + drop]};
    for (size_t k = 0; k < n; k++) {
        double *row = t->rate + k * n;

        if (row[drop] < row[keep])
            row[keep] = t->rate[keep * n + k] = row[drop];
    }
    t->group[drop] = (int) keep;
}

static int best_first (const void *a, const void *b)
{
    const struct joint *x = a, *y = b;

    if (x->bytes_per_s != y->bytes_per_s)
        return x->bytes_per_s < y->bytes_per_s ? 1 : -1;
    return x->b - y->b; /* a node is b once at most */
}

/* @param chain  [n] room */
static void join_all (struct tree *t, int *chain)
{
    int len = 0, done = 0;

    for (int i = 0; i < t->n; i++)
        t->group[i] = i;
    while (done < t->n - 1) {
        if (len == 0)
            chain[len++] = 0; /* node 0 is the first of its group for ever */
        int end = chain[len - 1], before = len > 1 ? chain[len - 2] : -1;
        int best = nearest (t, end, before);

        if (best != before) {
            chain[len++] = best;
            continue;
        }
        join (t, &t->joint[done++], end, before);
        len -= 2;
    }
    qsort (t->joint, (size_t) (t->n > 1 ? t->n - 1 : 0), sizeof *t->joint, best_first);
}

/* ---- host lists ---- */

struct host {
    const char *name;
    size_t prefix; /* letters before the number at its end; all where there is none */
    long number;
};

static struct host host_of (const char *name)
{
    struct host h = {name, strlen (name), 0};
    size_t len = h.prefix;

    while (h.prefix > 0 && isdigit ((unsigned char) name[h.prefix - 1]))
        h.prefix--;
    if (h.prefix == 0 || h.prefix == len || len - h.prefix > DIGITS_MAX)
        h.prefix = len;
    else
        h.number = strtol (name + h.prefix, NULL, 10);
    return h;
}

static int by_number (const void *a, const void *b)
{
    const struct host *x = a, *y = b;
    size_t n = x->prefix < y->prefix ? x->prefix : y->prefix;
    int order = strncmp (x->name, y->name, n);

    if (order != 0 || x->prefix != y->prefix)
        return order != 0 ? order : x->prefix < y->prefix ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return strcmp (x->name, y->name); /* n01 and n1 */
}

/* Does b follow a in a bracket?  "09" is followed by "10", "9" too, "09" not by "9". */
static bool follows (const struct host *first, const struct host *a, const struct host *b)
{
    const char *digits = b->name + b->prefix;
    char expected[32];

    snprintf (expected, sizeof expected, "%0*ld",
              (int) strlen (first->name + first->prefix), a->number + 1);
    return strcmp (expected, digits) == 0;
}

static bool same_prefix (const struct host *a, const struct host *b)
{
    return a->prefix == b->prefix && a->name[a->prefix] && b->name[b->prefix] &&
           strncmp (a->name, b->name, a->prefix) == 0;
}

/* Append names as n[0-3,7],m1.  @param host  [n]; sorted here */
static void add_hosts (struct text *t, struct host *host, int n)
{
    qsort (host, (size_t) n, sizeof *host, by_number);
    for (int k = 0, end; k < n; k = end) {
        for (end = k + 1; end < n && same_prefix (&host[k], &host[end]);)
            end++;
        text_add (t, "%s", k ? "," : "");
        if (end == k + 1) {
            text_add (t, "%s", host[k].name);
            continue;
        }
        text_add (t, "%.*s[", (int) host[k].prefix, host[k].name);
        for (int lo = k, hi; lo < end; lo = hi + 1) {
            for (hi = lo; hi + 1 < end && follows (&host[lo], &host[hi], &host[hi + 1]);)
                hi++;
            text_add (t, "%s%s", lo > k ? "," : "", host[lo].name + host[lo].prefix);
            if (hi > lo)
                text_add (t, "-%s", host[hi].name + host[hi].prefix);
        }
        text_add (t, "]");
    }
}

/* ---- switches ---- */

/* A switch over nodes, or over the switches below; the list is text already. */
static void add_switch (const struct exporting *x, int number, bool leaf,
                        const char *list, int members, double low)
{
    struct text *t = x->file;
    const char *indent = x->yaml ? "      " : "";

    if (low < INFINITY)
        text_add (t, "%s# %d %s, each pair at %.4g GB/s or more\n", indent, members,
                  leaf ? "nodes" : "switches", low / UNITS_GB);
    if (x->yaml)
        text_add (t, "      - switch: s%d\n        %s: %s\n", number,
                  leaf ? "nodes" : "children", list);
    else
        text_add (t, "SwitchName=s%d %s=%s\n", number, leaf ? "Nodes" : "Switches", list);
}

/* The groups of a level become switches, but for those that are one switch already.
 * @param host, name  [n] room */
static void add_level (struct tree *t, const struct exporting *x, int joined,
                       struct host *host, char (*name)[16])
{
    bool leaf = t->below[0] < 0;
    struct text list = {0};

    for (int g = 0; g < t->n; g++) {
        double low = INFINITY;
        int members = 0;

        if (t->group[g] != g)
            continue;
        for (int i = g; i < t->n; i++)
            if (t->group[i] == g && (leaf || t->below[i] == i)) {
                snprintf (name[members], sizeof *name, "s%d", t->number[i]);
                host[members] = host_of (leaf ? x->c->node[i].name : name[members]);
                members++;
            }
        if (!leaf && members == 1)
            continue;
        for (int k = 0; k < joined; k++)
            if (t->group[t->joint[k].a] == g)
                low = t->joint[k].bytes_per_s;
        list.len = 0;
        add_hosts (&list, host, members);
        t->number[g] = t->switches++;
        add_switch (x, t->number[g], leaf, text_str (&list), members, low);
    }
    x->file->failed = x->file->failed || list.failed;
    text_free (&list);
}

/* The first node of a group is its name. */
static void unite (struct tree *t, int a, int b)
{
    int first = a < b ? a : b, other = a < b ? b : a;

    for (int i = other; i < t->n; i++)
        if (t->group[i] == other)
            t->group[i] = first;
}

static void add_switches (struct tree *t, const struct exporting *x, struct host *host,
                          char (*name)[16])
{
    for (int i = 0; i < t->n; i++) {
        t->group[i] = i;
        t->below[i] = -1;
    }
    for (int k = 0; k < t->n; k++) {
        const struct joint *j = &t->joint[k];

        if (k == t->n - 1 ||
            (k > 0 && j->bytes_per_s < BREAK * t->joint[k - 1].bytes_per_s)) {
            add_level (t, x, k, host, name);
            memcpy (t->below, t->group, (size_t) t->n * sizeof *t->below);
        }
        if (k < t->n - 1)
            unite (t, t->group[j->a], t->group[j->b]);
    }
}

static void add_head (const struct tree *t, const struct exporting *x)
{
    text_add (x->file,
              "# %s: %s of %s, grouped by its links.\n"
              "# Groups are nodes whose pairs reach about the same, %s;\n"
              "# %.0f of %.0f pairs are unmeasured and count as the slowest.\n",
              x->yaml ? "topology.yaml" : "topology.conf (TopologyPlugin=topology/tree)",
              "switches", x->title,
              x->c->has_pair_totals ? "all their GPUs together" : "a GPU pair alone",
              t->unmeasured, 0.5 * t->n * (t->n - 1));
    if (x->yaml)
        text_add (x->file, "---\n- topology: linkwise\n  cluster_default: true\n"
                           "  tree:\n    switches:\n");
}

static enum status write (struct exporting *x, struct error *err)
{
    size_t n = (size_t) x->c->n_nodes;
    struct tree t = {.n = x->c->n_nodes};
    struct host *host = malloc (n * sizeof *host);
    char (*name)[16] = malloc (n * sizeof *name);
    enum status st = read_rates (&t, x, err);

    t.joint = calloc (n, sizeof *t.joint);
    t.group = calloc (n, sizeof *t.group);
    t.below = calloc (n, sizeof *t.below);
    t.number = calloc (n, sizeof *t.number);
    if (st == ST_OK && !(host && name && t.joint && t.group && t.below && t.number))
        st = err_nomem (err);
    if (st == ST_OK) {
        join_all (&t, t.number);
        add_head (&t, x);
        add_switches (&t, x, host, name);
    }
    FREE_ALL (t.rate, t.joint, t.group, t.below, t.number, host, name);
    return st;
}

const struct export_format export_slurm = {
    .format = {"slurm-topology", "switches that keep slow pairs apart, .conf or .yaml"},
    .write = write};
