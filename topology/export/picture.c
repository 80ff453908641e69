#include "topology/export/picture.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

#define NAME 16    /* characters of a name */
#define LEGEND 220 /* pixels */
#define SHADES 12  /* digits, '#' and '?' */

void picture_add_escaped (struct text *t, const char *s)
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

int picture_name_length (const char *name)
{
    size_t len = strlen (name);

    return len < NAME ? (int) len : NAME;
}

void picture_add_name (struct text *t, const char *name)
{
    size_t len = strlen (name);

    if (len > NAME)
        text_add (t, "…%s", name + len - NAME + 1);
    else
        text_add (t, "%s", name);
}

/* ---- shades ---- */

/* The share that the k-th shade begins with; the last one is for what nobody measured. */
static double share_from (int k)
{
    return k < 10 ? 0.1 * k : k == 10 ? 0.95 : NAN;
}

static int shade_number (double share)
{
    char letter = topology_heat_shade (share).letter;

    return letter == '?' ? 11 : letter == '#' ? 10 : letter - '0';
}

/* A cell of each shade, to be used by its number. */
static void add_shades (struct text *t)
{
    text_add (t, "<defs>");
    for (int k = 0; k < SHADES; k++) {
        /* In the middle of the shade: its limits are sums of tenths. */
        struct topology_shade s = topology_heat_shade (share_from (k) + 0.01);

        text_add (
            t,
            "<g id=\"s%d\"><rect width=\"%d\" height=\"%d\" fill=\"#%06x\"/>"
            "<text class=\"m %s\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%c</text>"
            "</g>",
            k, PICTURE_CELL, PICTURE_CELL, s.fill, s.light ? "k" : "w", PICTURE_CELL / 2,
            PICTURE_CELL - 5, s.letter);
    }
    text_add (t, "</defs>\n");
}

void picture_begin (struct text *t, int width, int height, const char *title,
                    const char *about)
{
    text_add (t,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
              "aria-labelledby=\"title about\" viewBox=\"0 0 %d %d\" width=\"%d\" "
              "height=\"%d\">\n<title id=\"title\">",
              width, height, width, height);
    picture_add_escaped (t, title);
    text_add (t, "</title>\n<desc id=\"about\">");
    picture_add_escaped (t, about);
    text_add (
        t, "</desc>\n<style>"
           "text{font:12px system-ui,sans-serif;fill:#1f2328}"
           ".m{font:11px ui-monospace,monospace}"
           ".h{font-size:18px;font-weight:600}.b{font-weight:600}.q{fill:#59636e}"
           ".k{fill:#000}.w{fill:#fff}.g{fill:#fff}"
           ".l{stroke:#59636e;fill:none;stroke-width:2}.p{stroke-dasharray:4 "
           "3}.box{stroke:#8c959f;fill:#f6f8fa}"
           ".u{stroke:#0550ae;fill:none;stroke-width:2.5}"
           ".o{stroke:#d1001f;fill:none;stroke-width:2}"
           ".n{font-size:8px;font-weight:600;fill:#d1001f;stroke:#fff;stroke-width:2;"
           "paint-order:stroke}"
           "@media(prefers-color-scheme:dark){"
           "text{fill:#e6edf3}.q{fill:#9198a1}.k{fill:#000}.w{fill:#fff}.g{fill:#0d1117}"
           ".l{stroke:#9198a1}.box{stroke:#656c76;fill:#151b23}.u{stroke:#79c0ff}"
           ".o{stroke:#ff7b72}.n{fill:#ff7b72;stroke:#000}}"
           "</style>\n<rect class=\"g\" width=\"100%%\" height=\"100%%\"/>\n");
    add_shades (t);
}

void picture_add_figure (struct text *t, int x, int y, double bytes_per_s, double share)
{
    struct topology_shade s = topology_heat_shade (share);
    char figure[32] = "?";
    int width;

    if (!isnan (share))
        snprintf (figure, sizeof figure, "%.3g", bytes_per_s / UNITS_GB);
    width = PICTURE_LETTER * (int) strlen (figure) + 6;
    text_add (t,
              "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"16\" rx=\"3\" "
              "fill=\"#%06x\"/><text class=\"m %s\" x=\"%d\" y=\"%d\" "
              "text-anchor=\"middle\">%s</text>\n",
              x - width / 2, y - 8, width, s.fill, s.light ? "k" : "w", x, y + 4, figure);
}

/* ---- maps ---- */

static const char *cell_name (const struct picture_map *m, int k)
{
    return m->c->node[m->heat->first[m->cell[k]]].name;
}

static bool is_shared (const struct picture_map *m, int k)
{
    int cell = m->cell[k];

    return m->heat->first[cell + 1] - m->heat->first[cell] > 1;
}

/* Pixels of the longest name. */
static int names_width (const struct picture_map *m)
{
    int longest = 0;

    for (int k = 0; k < m->n; k++) {
        int len = picture_name_length (cell_name (m, k)) + (is_shared (m, k) ? 4 : 0);

        longest = len > longest ? len : longest;
    }
    return PICTURE_LETTER * longest + 6;
}

int picture_map_left (const struct picture_map *m)
{
    return m->left + names_width (m);
}

int picture_map_top (const struct picture_map *m)
{
    return m->top + names_width (m);
}

int picture_map_right (const struct picture_map *m)
{
    return picture_map_left (m) + m->n * PICTURE_CELL + m->legend_after + LEGEND;
}

int picture_map_bottom (const struct picture_map *m)
{
    int legend = (SHADES + 2) * (PICTURE_CELL + 2), cells = m->n * PICTURE_CELL;

    return picture_map_top (m) + (cells > legend ? cells : legend);
}

static void add_cell_name (struct text *t, const struct picture_map *m, int k)
{
    picture_add_name (t, cell_name (m, k));
    text_add (t, "%s", is_shared (m, k) ? " ..." : "");
}

static void add_names (struct text *t, const struct picture_map *m)
{
    int left = picture_map_left (m), top = picture_map_top (m);

    text_add (t,
              "<text class=\"q\" x=\"%d\" y=\"%d\" text-anchor=\"end\">from \\ to"
              "</text>\n",
              left - 4, top - 5);
    for (int k = 0; k < m->n; k++) {
        int middle = k * PICTURE_CELL + PICTURE_CELL - 5;

        text_add (t, "<text class=\"m\" x=\"%d\" y=\"%d\" text-anchor=\"end\">", left - 4,
                  top + middle);
        add_cell_name (t, m, k);
        text_add (t,
                  "</text><text class=\"m\" transform=\"translate(%d %d)rotate(-90)\">",
                  left + middle, top - 4);
        add_cell_name (t, m, k);
        text_add (t, "</text>\n");
    }
}

static double share_at (const struct picture_map *m, int row, int column)
{
    return m->heat
        ->share[(size_t) m->cell[row] * (size_t) m->heat->n + (size_t) m->cell[column]];
}

static void add_cell (struct text *t, const struct picture_map *m, int row, int column)
{
    double share = share_at (m, row, column);

    if (isnan (share) && row == column)
        return;
    text_add (t, "<use href=\"#s%d\" x=\"%d\"><title>%s to %s", shade_number (share),
              column * PICTURE_CELL, cell_name (m, row), cell_name (m, column));
    if (isnan (share))
        text_add (t, ": unmeasured");
    else
        text_add (t, ": %.4g GB/s", share * m->heat->of_bytes_per_s / UNITS_GB);
    text_add (t, "</title></use>\n");
}

/* The rates of the k-th shade: "7   70 to 80". */
static void add_range (struct text *t, const struct picture_map *m, int k)
{
    double of = m->heat->of_bytes_per_s / UNITS_GB;

    if (k == 11)
        text_add (t, "not measured");
    else if (k == 10)
        text_add (t, "%.3g or more", share_from (k) * of);
    else
        text_add (t, "%.3g to %.3g", share_from (k) * of, share_from (k + 1) * of);
}

/* The shades that occur, the fastest first. */
static void add_legend (struct text *t, const struct picture_map *m)
{
    bool seen[SHADES] = {false};
    int left = picture_map_right (m) - LEGEND, top = picture_map_top (m);

    for (int i = 0; i < m->n; i++)
        for (int j = 0; j < m->n; j++)
            if (i != j || !isnan (share_at (m, i, j)))
                seen[shade_number (share_at (m, i, j))] = true;
    text_add (t, "<text class=\"b\" x=\"%d\" y=\"%d\">GB/s</text>\n", left, top + 12);
    for (int row = 1, k = SHADES - 2; k >= -1; k--) {
        int shade = k < 0 ? SHADES - 1 : k, y = top + row * (PICTURE_CELL + 2);

        if (!seen[shade])
            continue;
        text_add (t, "<use href=\"#s%d\" x=\"%d\" y=\"%d\"/><text x=\"%d\" y=\"%d\">",
                  shade, left, y, left + PICTURE_CELL + 8, y + PICTURE_CELL - 5);
        add_range (t, m, shade);
        text_add (t, "</text>\n");
        row++;
    }
}

void picture_add_map (struct text *t, const struct picture_map *m)
{
    add_names (t, m);
    for (int i = 0; i < m->n; i++) {
        text_add (t, "<g transform=\"translate(%d %d)\">\n", picture_map_left (m),
                  picture_map_top (m) + i * PICTURE_CELL);
        for (int j = 0; j < m->n; j++)
            add_cell (t, m, i, j);
        text_add (t, "</g>\n");
    }
    add_legend (t, m);
}

void picture_mark (struct text *t, const struct picture_map *m, int row, int column,
                   int number)
{
    int x = picture_map_left (m) + column * PICTURE_CELL,
        y = picture_map_top (m) + row * PICTURE_CELL;

    text_add (t, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
              number > 0 ? "o" : "u", x + 1, y + 1, PICTURE_CELL - 2, PICTURE_CELL - 2);
    if (number > 0)
        text_add (t, "<text class=\"n\" x=\"%d\" y=\"%d\">%d</text>\n",
                  x + PICTURE_CELL - 6, y + 6, number);
}
