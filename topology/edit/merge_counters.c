/* Which links the counters of merged files accuse.
 *
 * A counter accuses its place while it grows by more than topology_counter_allowed allows from
 * one file to the next.  The accusation begins with the reading before the first growth, and
 * ends with a reading that grew no more.  A counter that went backwards was cleared: what it
 * has counted since is its growth.  Of readings at one time the highest holds.
 */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "topology/topology_private.h"
#include "topology/edit/merge_private.h"
#include "topology/links_doc.h"

#define TOLD_MAX 5 /* in notes; the document has all */

/* A counter in the course of the files: in a table by place and name. */
struct course {
    int node, gpu;
    const char *port; /* borrowed from a source */
    const struct topology_counter *kind;
    double last, last_s;
    double grew, since_s; /* 0: it accuses nobody */
};

struct courses {
    struct course *v;
    int n;
    int cleared;    /* of the file that is read */
    json_t *place;  /* words -> index */
    json_t *gpu_of; /* UUID -> [node, gpu] */
};

/* ---- whose counter it is ---- */

static void find_uuids (const struct merge *m, struct courses *c)
{
    for (int i = 0; i < m->n_nodes; i++) {
        const json_t *list = json_object_get (merge_node_at (m, i), "gpu_uuid"), *uuid;
        size_t gpu;

        json_array_foreach ((json_t *) list, gpu, uuid) json_object_set_new (
            c->gpu_of, json_string_value (uuid), json_pack ("[i, i]", i, (int) gpu));
    }
}

/* The merged node and GPU of an entry; node -1: of none. */
static void find_place (const struct merge *m, const struct courses *c, const json_t *one,
                        int *node, int *gpu)
{
    const char *name = json_member_text (one, "node"),
               *uuid = json_member_text (one, "uuid");
    const json_t *at = name ? json_object_get (m->index, name) : NULL,
                 *known = uuid ? json_object_get (c->gpu_of, uuid) : NULL,
                 *index = json_object_get (one, "gpu");

    *node = at ? (int) json_integer_value (at) : -1;
    *gpu = index ? (int) json_integer_value (index) : -1;
    if (known && (!name || at)) {
        *node = (int) json_integer_value (json_array_get (known, 0));
        *gpu = (int) json_integer_value (json_array_get (known, 1));
    }
}

/* ---- one reading after another ---- */

static void note_reset (struct merge *m, const struct merge_source *s,
                        const struct course *c, double x)
{
    notes_add (m->notes,
               "%s: %s of %s %s: expected %.0f or more as before, found %.0f: it was "
               "cleared in between, and is counted from 0",
               s->name, c->kind->name, merge_name_of (m, c->node), c->port ? c->port : "",
               c->last, x);
}

static void read_again (struct merge *m, const struct merge_source *s,
                        struct courses *all, struct course *c, double x)
{
    double grew = x - c->last;

    if (s->when == c->last_s) {
        c->last = fmax (c->last, x);
        return;
    }
    if (grew < 0) {
        if (all->cleared++ == 0)
            note_reset (m, s, c, x);
        grew = x;
    }
    if (grew <= topology_counter_allowed (c->kind, s->when - c->last_s)) {
        c->grew = 0;
    } else {
        c->since_s = c->grew > 0 ? c->since_s : c->last_s;
        c->grew += grew;
    }
    c->last = x;
    c->last_s = s->when;
}

static enum status read_count (struct merge *m, const struct merge_source *s,
                               struct courses *c, struct course now, double x)
{
    int k = json_number_of (c->place, "%d %d %s %s", now.node, now.gpu,
                            now.port ? now.port : "", now.kind->name);

    if (k < 0 || (k == c->n && !array_grow (&c->v, c->n, sizeof *c->v)))
        return err_nomem (m->err);
    if (k < c->n) {
        read_again (m, s, c, &c->v[k], x);
        return ST_OK;
    }
    now.last = x;
    now.last_s = s->when;
    c->v[c->n++] = now;
    return ST_OK;
}

static enum status read_entry (struct merge *m, const struct merge_source *s,
                               struct courses *c, const struct json_at *at,
                               int *strangers)
{
    struct json_at counts = json_key (at, "counts");
    struct course now = {.port = json_member_text (at->v, "port")};
    const char *name;
    json_t *value;
    int index;

    TRY (json_want_object (&counts, m->err));
    TRY_MEMBER (json_get_int, at, "gpu", 0, TOPOLOGY_NODE_GPUS_MAX - 1, &index, m->err);
    find_place (m, c, at->v, &now.node, &now.gpu);
    if (now.node < 0 || now.gpu >= merge_gpus_of (m, now.node)) {
        ++*strangers;
        return ST_OK;
    }
    json_object_foreach (counts.v, name, value)
    {
        struct json_at one = json_key (&counts, name);
        double x;

        if (!(now.kind = topology_counter_named (name)))
            continue;
        TRY (json_want_number (&one, 0, true, 1e19, &x, m->err));
        TRY (read_count (m, s, c, now, x));
    }
    return ST_OK;
}

static enum status read_file (struct merge *m, const struct merge_source *s,
                              struct courses *c)
{
    struct json_at root = json_root (s->doc, s->name),
                   measured = json_key (&root, "measured"),
                   list = json_key (&measured, "counters");
    int strangers = 0;
    size_t n;

    c->cleared = 0;
    TRY (json_want_array (&list, &n, m->err));
    json_each (&list, one)
        TRY (read_entry (m, s, c, &one, &strangers));
    if (c->cleared > 1)
        notes_add (m->notes, "%s: %d more counters were cleared in between", s->name,
                   c->cleared - 1);
    if (strangers > 0)
        notes_add (m->notes,
                   "%s: measured.counters: expected GPUs and ports of the merged nodes, "
                   "found %d of %zu that are not: they are left out",
                   s->name, strangers, n);
    return ST_OK;
}

/* ---- what they accuse ---- */

static enum status accuse (struct merge *m, const struct course *c, int told)
{
    const char *name = merge_name_of (m, c->node), *port = c->port ? c->port : "";
    char since[32];
    json_t *when = topology_links_time (c->since_s), *one;

    snprintf (since, sizeof since, "%s",
              json_is_string (when) ? json_string_value (when) : "?");
    one = json_pack ("{s:s, s:s*, s:s, s:f, s:o}", "node", name, "port", c->port,
                     "counter", c->kind->name, "grew", c->grew, "since", when);
    if (c->gpu >= 0)
        json_object_set_new (one, "gpu", json_integer (c->gpu));
    if (!m->told)
        m->told = json_array ();
    if (!array_grow (&m->accused, m->n_accused, sizeof *m->accused) ||
        json_array_append_new (m->told, one) != 0)
        return err_nomem (m->err);
    m->accused[m->n_accused++] =
        (struct merge_accused){c->node, c->gpu, c->gpu < 0 ? c->port : NULL, c->since_s};
    if (told < TOLD_MAX) {
        char gpu[16] = "";

        if (c->gpu >= 0)
            snprintf (gpu, sizeof gpu, ":%d", c->gpu);
        notes_add (m->notes,
                   "counters accuse the links of %s%s%s%s%s: %s grew by %.0f since %s",
                   name, gpu, *port ? " (" : "", port, *port ? ")" : "", c->kind->name,
                   c->grew, since);
    }
    return ST_OK;
}

static int by_growth (const void *a, const void *b)
{
    const struct course *x = *(const struct course *const *) a,
                        *y = *(const struct course *const *) b;

    if (x->grew != y->grew)
        return x->grew > y->grew ? -1 : 1;
    return x < y ? -1 : 1;
}

static enum status accuse_all (struct merge *m, const struct courses *c)
{
    const struct course **grown = calloc ((size_t) c->n + 1, sizeof *grown);
    enum status st = grown ? ST_OK : err_nomem (m->err);
    int n = 0;

    for (int i = 0; i < c->n && st == ST_OK; i++)
        if (c->v[i].grew > 0)
            grown[n++] = &c->v[i];
    if (n > 1)
        qsort (grown, (size_t) n, sizeof *grown, by_growth);
    for (int i = 0; i < n && st == ST_OK; i++)
        st = accuse (m, grown[i], i);
    if (st == ST_OK && n > TOLD_MAX)
        notes_add (m->notes, "counters accuse %d more: measured.accused lists all",
                   n - TOLD_MAX);
    free (grown);
    return st;
}

static int by_when (const void *a, const void *b)
{
    const struct merge_source *x = *(const struct merge_source *const *) a,
                              *y = *(const struct merge_source *const *) b;

    return merge_by_time (x, y);
}

enum status merge_counters (struct merge *m)
{
    const struct merge_source **file = calloc ((size_t) m->n + 1, sizeof *file);
    struct courses c = {.place = json_object (), .gpu_of = json_object ()};
    enum status st = file && c.place && c.gpu_of ? ST_OK : err_nomem (m->err);
    int n = 0;

    for (int k = 0; k < m->n && st == ST_OK; k++)
        if (json_object_get (json_object_get (m->source[k].doc, "measured"), "counters"))
            file[n++] = &m->source[k];
    if (n > 0) {
        qsort (file, (size_t) n, sizeof *file, by_when);
        find_uuids (m, &c);
    }
    for (int k = 0; k < n && st == ST_OK; k++)
        st = read_file (m, file[k], &c);
    if (st == ST_OK && n == 1)
        notes_add (m->notes,
                   "%s: one reading of counters does not tell which grow: add an earlier "
                   "or later one",
                   file[0]->name);
    THEN (st, accuse_all (m, &c));
    JSON_DECREF_ALL (c.place, c.gpu_of);
    FREE_ALL (file, c.v);
    return st;
}
