/* The heat map of the links between nodes as a picture that stands alone: every cell has a digit
 * beside its colour, and its rate as a tooltip; the worst links are outlined, numbered and
 * listed. */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topology/export/export_private.h"

#define CELLS_MAX 64 /* on a side; a cell covers several nodes in larger clusters */
#define WORST 10     /* links that are marked */
#define SEEN 1000    /* the worst of all, to find those between nodes */
#define CELL 18      /* pixels, as all below */
#define LINE 16
#define LETTER 7
#define TOP 64

struct drawing {
    const struct exporting *x;
    struct text *t;
    const struct topology_stats *stats;
    const struct topology_heat *heat;
    int left;   /* of the cells */
    int marked; /* links */
};

static void add_xml (struct text *t, const char *s)
{
    static const char *const entity[] = {"&amp;", "&lt;", "&gt;", "&quot;"};

    for (; *s; s++) {
        const char *at = strchr ("&<>\"", *s);

        if (at)
            text_add (t, "%s", entity[at - strchr ("&<>\"", '&')]);
        else
            text_add (t, "%c", *s);
    }
}

/* A cell's nodes: its first, and that there are more. */
static void add_cell_name (const struct drawing *d, int cell)
{
    int first = d->heat->first[cell], end = d->heat->first[cell + 1];

    text_add (d->t, "%s%s", d->x->c->node[first].name, end - first > 1 ? " ..." : "");
}

static void add_square (const struct drawing *d, int left, int top,
                        struct topology_shade s)
{
    text_add (d->t,
              "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\"/>"
              "<text x=\"%d\" y=\"%d\" fill=\"%s\" text-anchor=\"middle\">%c</text>",
              left, top, CELL, CELL, s.fill, left + CELL / 2, top + CELL - 5,
              s.light ? "#000" : "#fff", s.letter);
}

static void add_cell (const struct drawing *d, int i, int j)
{
    double share = d->heat->share[(size_t) i * (size_t) d->heat->n + (size_t) j];
    int left = d->left + j * CELL, top = TOP + i * CELL;

    if (isnan (share) && i == j)
        return;
    text_add (d->t, "<g><title>%s to ", d->x->c->node[d->heat->first[i]].name);
    add_cell_name (d, j);
    if (isnan (share))
        text_add (d->t, ": unmeasured");
    else
        text_add (d->t, ": %.4g GB/s", share * d->heat->median_bytes_per_s / UNITS_GB);
    text_add (d->t, "</title>");
    add_square (d, left, top, topology_heat_shade (share));
    text_add (d->t, "</g>\n");
}

static int cell_of (const struct topology_heat *h, int node)
{
    int cell = 0;

    while (h->first[cell + 1] <= node)
        cell++;
    return cell;
}

/* Outlines and the list; what is listed is numbered from 1. */
static void add_worst (struct drawing *d)
{
    int top = TOP + (d->heat->n + 2) * CELL;

    for (int k = 0; k < d->stats->n_worst && d->marked < WORST; k++) {
        const struct topology_outlier *o = &d->stats->worst[k];
        char from[TOPOLOGY_END_TEXT], to[TOPOLOGY_END_TEXT];
        int left, row;

        if (o->from.node == o->to.node)
            continue;
        left = d->left + cell_of (d->heat, o->to.node) * CELL;
        row = TOP + cell_of (d->heat, o->from.node) * CELL;
        d->marked++;
        text_add (
            d->t,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
            "stroke=\"#d00000\" stroke-width=\"2\"/>\n"
            "<text x=\"%d\" y=\"%d\" font-size=\"7\" fill=\"#d00000\" stroke=\"#fff\" "
            "stroke-width=\"2\" paint-order=\"stroke\">%d</text>\n"
            "<text x=\"8\" y=\"%d\">%d: %s to %s, %.4g GB/s, %.0f %% of the "
            "median</text>\n",
            left + 1, row + 1, CELL - 2, CELL - 2, left + CELL - 5, row + 6, d->marked,
            top + d->marked * LINE, d->marked, topology_end_text (d->x->c, o->from, from),
            topology_end_text (d->x->c, o->to, to), o->bytes_per_s / UNITS_GB,
            100 * o->share);
    }
}

static void add_names (const struct drawing *d)
{
    for (int i = 0; i < d->heat->n; i++) {
        text_add (d->t, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", d->left - 4,
                  TOP + (i + 1) * CELL - 5);
        add_cell_name (d, i);
        text_add (d->t, "</text>\n");
    }
}

static void add_legend (const struct drawing *d)
{
    int top = TOP + d->heat->n * CELL + 6;

    for (int k = 0; k <= 10; k++)
        add_square (d, 8 + k * CELL, top, topology_heat_shade (0.1 * k));
    text_add (d->t,
              "<text x=\"%d\" y=\"%d\">tenths of the median of %.4g GB/s; #: 95 %% or "
              "more; ?: unmeasured</text>\n",
              16 + 11 * CELL, top + CELL - 5, d->heat->median_bytes_per_s / UNITS_GB);
}

/* Title and description are what screen readers say. */
static void draw (struct drawing *d)
{
    const struct topology_cluster *c = d->x->c;
    size_t longest = 0;
    int width, height;

    for (int i = 0; i < d->heat->n; i++) {
        size_t len = strlen (c->node[d->heat->first[i]].name) + 4;

        longest = len > longest ? len : longest;
    }
    d->left = 12 + LETTER * (int) longest;
    width = d->left + d->heat->n * CELL + 8;
    width = width > 680 ? width : 680; /* the legend */
    height = TOP + (d->heat->n + 2) * CELL + (WORST + 1) * LINE;
    text_add (d->t,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
              "aria-labelledby=\"title desc\" viewBox=\"0 0 %d %d\" width=\"%d\" "
              "height=\"%d\" font-family=\"monospace\" font-size=\"11\">\n"
              "<title id=\"title\">Links between the nodes of ",
              width, height, width, height);
    add_xml (d->t, d->x->title);
    text_add (d->t,
              "</title>\n<desc id=\"desc\">From row to column. The median of %d nodes is "
              "%.4g GB/s; %.0f links are under %.0f %% of their median. The worst are "
              "listed below the map.</desc>\n"
              "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
              "<text x=\"8\" y=\"24\" font-size=\"16\">",
              c->n_nodes, d->heat->median_bytes_per_s / UNITS_GB, d->stats->slow,
              100 * TOPOLOGY_SLOW);
    add_xml (d->t, d->x->title);
    text_add (d->t, "</text>\n<text x=\"8\" y=\"44\">one GPU pair alone, from row to "
                    "column, columns in the order of the rows</text>\n");
    add_names (d);
    for (int i = 0; i < d->heat->n; i++)
        for (int j = 0; j < d->heat->n; j++)
            add_cell (d, i, j);
    add_legend (d);
    add_worst (d);
    text_add (d->t, "</svg>\n");
}

static enum status write (struct exporting *x, struct error *err)
{
    struct topology_stats stats = {0};
    struct topology_heat heat = {0};
    struct drawing d = {.x = x, .t = x->file, .stats = &stats, .heat = &heat};
    enum status st = topology_stats_collect (x->c, SEEN, x->watch, &stats, err);

    if (st == ST_OK)
        st = topology_heat_collect (x->c, CELLS_MAX, stats.between_median_bytes_per_s,
                                    x->watch, &heat, err);
    if (st == ST_OK && heat.n == 0)
        st = err_set (err, ST_INVALID,
                      "%s: expected links that differ between nodes, found none to draw",
                      x->title);
    if (st == ST_OK)
        draw (&d);
    topology_heat_release (&heat);
    topology_stats_release (&stats);
    return st;
}

const struct export_format export_svg = {
    .name = "svg",
    .what = "the heat map as a picture, the worst links marked",
    .write = write};
