/* The history of each link of the planes in the merged files: which measurements there are,
 * which counters accuse it, and what of that goes into the document. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/units.h"
#include "topology/edit/merge_private.h"
#include "topology/topology_private.h"

#define DAY_S 86400.0
#define LISTED_MAX 256 /* links in the document, the ones that changed most */

/* A link whose estimate is not its newest measurement. */
struct finding {
    int from, to;
    struct history_finding of;
};

struct walk {
    struct merge *m;
    struct merge_planes *p;
    int *giver; /* [givers] sources that give links, by time */
    int givers;
    int *at; /* [givers * n_nodes] their node of each merged one, -1: none */
    struct end {
        int low, seen;               /* links to other nodes: low now, and all */
        double network, inside;      /* since when counters accuse; NaN: never */
    } * end;                         /* [p->n] */
    struct history_sample *s, *work; /* [givers], [2 * givers] */
    struct finding *found;           /* [n_found <= 2 * LISTED_MAX] */
    int n_found;
    double links, by[HISTORY_WHYS]; /* links with several measurements, and why */
};

/* ---- what is looked at ---- */

static int by_when (const void *a, const void *b, void *merge)
{
    const struct merge_source *s = ((const struct merge *) merge)->source,
                              *x = &s[*(const int *) a], *y = &s[*(const int *) b];

    return merge_by_time (x, y);
}

/* @return false: there is no history to be seen */
static bool find_givers (struct walk *w)
{
    struct merge *m = w->m;

    for (int k = 0; k < m->n; k++) {
        if (!merge_gives_between (&m->source[k]))
            continue;
        if (isnan (m->source[k].when)) {
            if (m->n_accused > 0)
                notes_add (m->notes,
                           "%s: without a time in measured.when the newest measurements "
                           "are used, without a history",
                           m->source[k].name);
            return false;
        }
        w->giver[w->givers++] = k;
    }
    qsort_r (w->giver, (size_t) w->givers, sizeof *w->giver, by_when, m);
    return w->givers > 1;
}

static void find_nodes (struct walk *w)
{
    for (int k = 0; k < w->givers; k++)
        for (int i = 0; i < w->m->n_nodes; i++)
            w->at[(size_t) k * (size_t) w->m->n_nodes + (size_t) i] =
                topology_node_find (w->m->source[w->giver[k]].c, merge_name_of (w->m, i));
}

/* Is the accused port, as mlx5_0/1, of the GPU's network card, or may it be? */
static bool uses_port (const struct walk *w, int end, const char *port)
{
    const json_t *nics =
        json_object_get (merge_node_at (w->m, w->p->node[end]), "gpu_nic");
    int gpu = end - w->p->first[w->p->node[end]];
    const char *own = json_string_value (json_array_get (nics, (size_t) gpu)), *nic;
    size_t k, len = port ? strcspn (port, "/") : 0;
    json_t *one;

    if (!w->p->over_gpus || !own || !port)
        return true;
    if (strncmp (own, port, len) == 0 && own[len] == '\0')
        return true;
    /* A card that is no GPU's may be named otherwise there: it is held to be everybody's. */
    json_array_foreach (nics, k, one)
    {
        nic = json_string_value (one);
        if (nic && strncmp (nic, port, len) == 0 && nic[len] == '\0')
            return false;
    }
    return true;
}

static void find_accused (struct walk *w)
{
    for (int i = 0; i < w->p->n; i++)
        w->end[i].network = w->end[i].inside = NAN;
    for (int k = 0; k < w->m->n_accused; k++) {
        const struct merge_accused *a = &w->m->accused[k];

        for (int i = w->p->first[a->node]; i < w->p->first[a->node + 1]; i++) {
            bool nvlink = a->gpu >= 0;
            double *since = nvlink ? &w->end[i].inside : &w->end[i].network;

            if (nvlink ? w->p->over_gpus && i - w->p->first[a->node] == a->gpu
                       : uses_port (w, i, a->nic))
                *since = fmin (*since, a->since_s); /* fmin passes NaN over */
        }
    }
}

/* ---- one link ---- */

/* GB/s that a source measured, NaN: it did not. */
static double measured_rate (const struct walk *w, int k, int i, int j)
{
    const struct topology_cluster *c = w->m->source[w->giver[k]].c;
    const struct merge_planes *p = w->p;
    const int *at = w->at + (size_t) k * (size_t) w->m->n_nodes;
    int a = at[p->node[i]], b = at[p->node[j]], x = i - p->first[p->node[i]],
        y = j - p->first[p->node[j]];
    const struct topology_links *given;
    struct topology_link l;
    double error;

    if (a < 0 || b < 0)
        return NAN;
    given = c->has_gpu_matrix ? &c->gpu_links : a == b ? c->node[a].intra : &c->inter;
    if (!given || given->nominal)
        return NAN;
    if (p->over_gpus) {
        if (x >= c->node[a].gpus || y >= c->node[b].gpus)
            return NAN;
        x += c->node[a].first_gpu;
        y += c->node[b].first_gpu;
        l = topology_link_given (c, x, y);
        error = topology_link_estimate_error (c, x, y);
    } else {
        l = topology_node_link (c, a, b);
        error = merge_error_at (&c->inter, a, b);
    }
    return l.measured && isnan (error) ? l.bytes_per_s / UNITS_GB : NAN;
}

static double change (const struct finding *f)
{
    return fabs (log (f->of.e.rate / f->of.newest));
}

static int by_change (const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    double dx = change (x), dy = change (y);

    if (dx != dy)
        return dx > dy ? -1 : 1;
    return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
                              : (x->to > y->to) - (x->to < y->to);
}

/* The findings with the largest changes are kept. */
static void keep_finding (struct walk *w, struct finding f)
{
    if (w->n_found == 2 * LISTED_MAX) {
        qsort (w->found, (size_t) w->n_found, sizeof *w->found, by_change);
        w->n_found = LISTED_MAX;
    }
    w->found[w->n_found++] = f;
}

struct history_sample merge_sample (const struct merge_source *s, double rate)
{
    return (struct history_sample){fmin (s->when, (double) time (NULL)), rate, s->busy};
}

bool merge_weigh (const struct merge *m, const struct history_sample *s, int n,
                  double accused_s, struct history_sample *work,
                  struct history_finding *f)
{
    if (n < 2)
        return false;
    *f = (struct history_finding){
        .e = history_estimate (s, n, m->half_life_s, accused_s, work),
        .newest = s[n - 1].rate};
    for (int k = 0; k < n; k++)
        f->busy += s[k].busy;
    if (isinf (accused_s) && f->e.why == HISTORY_ACCUSED)
        f->e.why = HISTORY_CHANGED;
    return true;
}

/* What a link's measurements come to; false: it has fewer than two. */
static bool estimate (struct walk *w, int i, int j, struct finding *f)
{
    struct merge_planes *p = w->p;
    size_t at = (size_t) i * (size_t) p->n + (size_t) j;
    const struct end *a = &w->end[i], *b = &w->end[j];
    bool inside = p->node[i] == p->node[j];
    int n = 0;

    if (isnan (p->bw[at]))
        return false;
    for (int k = 0; k < w->givers; k++) {
        double rate = w->giver[k] < p->from[at] ? NAN : measured_rate (w, k, i, j);

        if (!isnan (rate))
            w->s[n++] = merge_sample (&w->m->source[w->giver[k]], rate);
    }
    f->from = i;
    f->to = j;
    return merge_weigh (w->m, w->s, n,
                        inside ? fmin (a->inside, b->inside)
                               : fmin (a->network, b->network),
                        w->work, &f->of);
}

/* Other traffic does not slow most links of one end at once: then the newest are believed. */
static void find_slow_ends (struct walk *w)
{
    struct merge_planes *p = w->p;
    struct finding f;

    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->n; j++) {
            if (p->node[i] == p->node[j] || !estimate (w, i, j, &f))
                continue;
            w->end[i].seen++;
            w->end[j].seen++;
            w->end[i].low += f.of.e.why == HISTORY_COLLISION;
            w->end[j].low += f.of.e.why == HISTORY_COLLISION;
        }
    for (struct end *e = w->end; e < w->end + p->n; e++)
        if (e->seen >= MERGE_LINKS_MIN && 2 * e->low > e->seen && isnan (e->network))
            e->network = INFINITY;
}

static void see_links (struct walk *w)
{
    struct merge_planes *p = w->p;
    struct finding f;

    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->n; j++) {
            if (i == j || !estimate (w, i, j, &f))
                continue;
            w->links++;
            w->by[f.of.e.why]++;
            p->bw[(size_t) i * (size_t) p->n + (size_t) j] = (float) f.of.e.rate;
            if (f.of.e.why != HISTORY_NEWEST)
                keep_finding (w, f);
        }
}

/* ---- what is told ---- */

static json_t *finding_json (const char *from, const char *to,
                             const struct history_finding *f)
{
    return json_pack ("{s:s, s:s, s:s, s:f, s:f, s:i, s:f, s:i}", "from", from, "to", to,
                      "why", history_why_text (f->e.why), "gb_per_s", f->e.rate,
                      "newest_gb_per_s", f->newest, "measurements", f->e.samples,
                      "age_days", f->e.age_s / DAY_S, "busy", f->busy);
}

static json_t *list_findings (struct walk *w)
{
    json_t *list = json_array ();
    char from[TOPOLOGY_PLACE_TEXT], to[TOPOLOGY_PLACE_TEXT];

    qsort (w->found, (size_t) w->n_found, sizeof *w->found, by_change);
    for (int k = 0; k < w->n_found && k < LISTED_MAX; k++) {
        const struct finding *f = &w->found[k];

        json_array_append_new (
            list, finding_json (merge_end_text (w->m, w->p, f->from, from),
                                merge_end_text (w->m, w->p, f->to, to), &f->of));
    }
    return list;
}

/* As a file has it, with these numbers so far. */
static json_t *history_json (const struct merge *m, int files, double links,
                             const double by[HISTORY_WHYS], json_t *findings)
{
    json_t *counts = json_object ();

    for (int k = 0; k < HISTORY_WHYS; k++)
        json_object_set_new (counts, history_why_text ((enum history_why) k),
                             json_integer ((json_int_t) by[k]));
    return json_pack ("{s:f, s:i, s:I, s:o, s:o}", "half_life_days",
                      m->half_life_s / DAY_S, "files", files, "links", (json_int_t) links,
                      "counts", counts, "findings", findings);
}

static void add_one (json_t *object, const char *key)
{
    json_object_set_new (
        object, key,
        json_integer (json_integer_value (json_object_get (object, key)) + 1));
}

void merge_history_inside (struct merge *m, const char *from, const char *to,
                           const struct history_finding *f)
{
    static const double none[HISTORY_WHYS];
    json_t *findings;

    if (!m->history)
        m->history = history_json (m, m->n, 0, none, json_array ());
    add_one (m->history, "links");
    add_one (json_object_get (m->history, "counts"), history_why_text (f->e.why));
    findings = json_object_get (m->history, "findings");
    if (f->e.why == HISTORY_NEWEST || json_array_size (findings) >= LISTED_MAX)
        return;
    json_array_append_new (findings, finding_json (from, to, f));
}

static void tell (struct walk *w)
{
    struct merge *m = w->m;

    m->history = history_json (m, w->givers, w->links, w->by, list_findings (w));
    if (w->n_found > 0)
        notes_add (m->notes,
                   "history: of %.0f links in several of %d files, %.0f were slow by a "
                   "collision in their newest measurement, %.0f fast, %.0f have changed, "
                   "%.0f are accused by counters, %.0f reached more under load "
                   "(measured.history)",
                   w->links, w->givers, w->by[HISTORY_COLLISION], w->by[HISTORY_HIGH],
                   w->by[HISTORY_CHANGED], w->by[HISTORY_ACCUSED], w->by[HISTORY_BUSY]);
}

enum status merge_history (struct merge *m, struct merge_planes *p)
{
    size_t n = (size_t) m->n + 1;
    struct walk w = {.m = m,
                     .p = p,
                     .giver = calloc (n, sizeof *w.giver),
                     .at = calloc (n * ((size_t) m->n_nodes + 1), sizeof *w.at),
                     .end = calloc ((size_t) p->n + 1, sizeof *w.end),
                     .s = calloc (n, sizeof *w.s),
                     .work = calloc (2 * n, sizeof *w.work),
                     .found = calloc (2 * LISTED_MAX + 1, sizeof *w.found)};
    enum status st =
        w.giver && w.at && w.end && w.s && w.work && w.found ? ST_OK : err_nomem (m->err);

    if (st == ST_OK && m->half_life_s > 0 && find_givers (&w)) {
        find_nodes (&w);
        find_accused (&w);
        find_slow_ends (&w);
        see_links (&w);
        if (w.links > 0)
            tell (&w);
    }
    FREE_ALL (w.giver, w.at, w.end, w.s, w.work, w.found);
    return st;
}
