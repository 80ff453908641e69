/* The heat maps of the links between nodes as a picture that stands alone: one pair of GPUs alone,
 * its worst links outlined, numbered and listed; where the cluster says it, what all GPUs of a
 * pair of nodes reach together.  Where single pairs are all alike, the totals stand alone. */
#include <stdlib.h>

#include "base/units.h"
#include "topology/export/export_private.h"
#include "topology/export/picture.h"

#define CELLS_MAX 64 /* on a side; a cell covers several nodes in larger clusters */
#define WORST 10     /* links that are marked */
#define SEEN 1000    /* the worst of all, to find those between nodes */
#define HEAD 36      /* pixels of a map's heading */
#define LEFT 16

struct drawing {
    const struct exporting *x;
    struct text *t;
    const struct topology_stats *stats;
    struct picture_map links, totals; /* n is 0 where there is none to draw */
};

static int cell_of (const struct topology_heat *h, int node)
{
    int cell = 0;

    while (h->first[cell + 1] <= node)
        cell++;
    return cell;
}

/* Outlines and the list; what is listed is numbered from 1. */
static void add_worst (const struct drawing *d)
{
    const struct picture_map *m = &d->links;
    int top = picture_map_bottom (m) + 8;

    for (int k = 0, marked = 0; k < d->stats->n_worst && marked < WORST; k++) {
        const struct topology_outlier *o = &d->stats->worst[k];
        char from[TOPOLOGY_END_TEXT], to[TOPOLOGY_END_TEXT];

        if (o->from.node == o->to.node)
            continue;
        marked++;
        picture_mark (d->t, m, cell_of (m->heat, o->from.node),
                      cell_of (m->heat, o->to.node), marked);
        text_add (d->t,
                  "<text x=\"%d\" y=\"%d\">%d: %s to %s, %.4g GB/s, %.0f %% of the "
                  "median</text>\n",
                  m->left, top + marked * PICTURE_LINE, marked,
                  topology_end_text (d->x->c, o->from, from),
                  topology_end_text (d->x->c, o->to, to), o->bytes_per_s / UNITS_GB,
                  100 * o->share);
    }
}

static void add_heading (const struct drawing *d, const struct picture_map *m,
                         const char *what)
{
    text_add (d->t, "<text class=\"b\" x=\"%d\" y=\"%d\">%s</text>\n", m->left,
              m->top - 12, what);
}

/* What screen readers say. */
static void describe (const struct drawing *d, struct text *about)
{
    if (d->links.n > 0)
        text_add (
            about,
            "From row to column. The median of %d nodes is %.4g GB/s; %.0f links are "
            "under %.0f %% of their median. The worst are listed below the map.%s",
            d->x->c->n_nodes, d->links.heat->of_bytes_per_s / UNITS_GB, d->stats->slow,
            100 * TOPOLOGY_SLOW,
            d->totals.n > 0 ? " A second map has what all GPUs of a pair of nodes reach "
                              "together."
                            : "");
    else
        text_add (
            about,
            "From row to column: what all GPUs of a pair of nodes reach together, at "
            "most %.4g GB/s. Single pairs of GPUs are all alike.",
            d->totals.heat->of_bytes_per_s / UNITS_GB);
}

static int larger (int a, int b)
{
    return a > b ? a : b;
}

static void draw (struct drawing *d)
{
    struct text title = {0}, about = {0};
    int right = 480, bottom = d->links.top - HEAD;

    if (d->links.n > 0) {
        right = larger (right, picture_map_right (&d->links));
        bottom = picture_map_bottom (&d->links) + (WORST + 2) * PICTURE_LINE;
    }
    if (d->totals.n > 0) {
        d->totals.top = bottom + HEAD;
        right = larger (right, picture_map_right (&d->totals));
        bottom = picture_map_bottom (&d->totals);
    }
    text_add (&title, "Links between the nodes of %s", d->x->title);
    describe (d, &about);
    picture_begin (d->t, right, bottom + LEFT, text_str (&title), text_str (&about));
    d->t->failed |= title.failed || about.failed;
    text_free (&title);
    text_free (&about);
    text_add (d->t, "<text class=\"h\" x=\"%d\" y=\"28\">", LEFT);
    picture_add_escaped (d->t, d->x->title);
    text_add (d->t, "</text>\n");
    if (d->links.n > 0) {
        add_heading (d, &d->links, "One GPU of each node alone");
        picture_add_map (d->t, &d->links);
        add_worst (d);
    }
    if (d->totals.n > 0) {
        add_heading (d, &d->totals, "All GPUs of both nodes at once, together");
        picture_add_map (d->t, &d->totals);
    }
    text_add (d->t, "</svg>\n");
}

/* The maps of a cluster whose links differ: n of one of the two may be 0. */
static enum status write_maps (struct exporting *x, const struct topology_stats *stats,
                               const struct topology_heat *links,
                               const struct topology_heat *totals, struct error *err)
{
    struct drawing d = {.x = x, .t = x->file, .stats = stats};
    int n = larger (links->n, totals->n), *cell = calloc ((size_t) n, sizeof *cell);

    if (!cell)
        return err_nomem (err);
    for (int k = 0; k < n; k++)
        cell[k] = k;
    d.links = (struct picture_map){.c = x->c,
                                   .heat = links,
                                   .cell = cell,
                                   .n = links->n,
                                   .left = LEFT,
                                   .top = 36 + HEAD,
                                   .legend_after = 20};
    d.totals = d.links;
    d.totals.heat = totals;
    d.totals.n = totals->n;
    draw (&d);
    free (cell);
    return ST_OK;
}

static enum status write (struct exporting *x, struct error *err)
{
    struct topology_stats stats = {0};
    struct topology_heat links = {0}, totals = {0};
    enum status st = topology_stats_collect (x->c, SEEN, x->watch, &stats, err);

    THEN (st, topology_heat_collect (x->c, CELLS_MAX, stats.between_median_bytes_per_s,
                                     x->watch, &links, err));
    THEN (st, topology_heat_totals (x->c, CELLS_MAX, &totals, err));
    if (st == ST_OK && totals.n > 0 && links.n == 0 && x->c->pair_bytes_per_s.n == 0)
        totals.n = 0; /* one number for all */
    if (st == ST_OK && links.n == 0 && totals.n == 0)
        st = err_set (err, ST_INVALID,
                      "%s: expected links that differ between nodes, found none to draw",
                      x->title);
    THEN (st, write_maps (x, &stats, &links, &totals, err));
    topology_heat_release (&links);
    topology_heat_release (&totals);
    topology_stats_release (&stats);
    return st;
}

const struct export_format export_svg = {
    .format = {"svg", "the heat maps as a picture, the worst links marked"},
    .write = write};
