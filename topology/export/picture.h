/* Parts of pictures (SVG) that stand alone: they follow the reader's light or dark setting, need
 * no script and no font, and no colour says what no character beside it says. */
#ifndef TOPOLOGY_EXPORT_PICTURE_H
#define TOPOLOGY_EXPORT_PICTURE_H

#include "topology/survey/survey.h"

/* Pixels. */
#define PICTURE_CELL 18 /* a side of a map's cell */
#define PICTURE_LINE 16
#define PICTURE_LETTER 7 /* of names and figures */

/** Append text from a file, as XML has it.  Control characters are the caller's to clean. */
void picture_add_escaped (struct text *t, const char *s);

/** Append a node's name, of a long one the end; how many characters that takes. */
void picture_add_name (struct text *t, const char *name);
int picture_name_length (const char *name);

/** Begin a picture; "</svg>" ends it.
 *  @param[in] title, about  what screen readers say; escaped here */
void picture_begin (struct text *t, int width, int height, const char *title,
                    const char *about);

/** A figure in a box of its shade; its middle is at x, y. */
void picture_add_figure (struct text *t, int x, int y, double bytes_per_s, double share);

/** A heat map: names above and left, a legend with the rates of its shades at the right. */
struct picture_map {
    const struct topology_cluster *c;
    const struct topology_heat *heat;
    const int *cell; /* [n] the heat's cells in the order in which they are drawn */
    int n;
    int left, top;    /* of the whole */
    int legend_after; /* pixels between the cells and the legend */
};

/** Where its cells begin and where the whole ends. */
int picture_map_left (const struct picture_map *m);
int picture_map_top (const struct picture_map *m);
int picture_map_right (const struct picture_map *m);
int picture_map_bottom (const struct picture_map *m);

void picture_add_map (struct text *t, const struct picture_map *m);

/** Outline the cell in a row and column as drawn.
 *  @param[in] number  beside it; 0: none, and the outline is that of links in use */
void picture_mark (struct text *t, const struct picture_map *m, int row, int column,
                   int number);

#endif
