/* A placement as rows of cells: a node a row, a GPU a cell with its stage and replica. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/report.h"

#define ROWS_MOST 22     /* with heading and last line it fills a usual terminal */
#define COLUMNS_MOST 100 /* and a page */
#define COLUMNS_LEAST 40
#define NAME_MOST 20 /* characters of a node's name */
#define CELL_TEXT REPORT_PLACE_TEXT

/* How a node's GPUs are written, from what says most to what is shortest. */
enum style {
    REPLICAS, /* 0A 0A 1A 1A: a stage and its replica */
    STAGES,   /* 0011, or 11 11 12 12 */
    COUNTS,   /* 2x0 2x1: two GPUs of either */
    STYLES
};

struct drawing {
    const struct topology_cluster *c;
    const struct report_map *map;
    int pp;
    enum style style;
    enum cli_colors colors;
    int columns;  /* of the terminal */
    int name;     /* characters */
    bool counted; /* does a row stand for several nodes? */
};

static int columns_of_terminal (void)
{
    struct winsize w;
    int n = COLUMNS_MOST;

    if (ioctl (STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
        n = w.ws_col;
    return n > COLUMNS_MOST ? COLUMNS_MOST : n < COLUMNS_LEAST ? COLUMNS_LEAST : n;
}

/* One cell, and how many GPUs of the node from k on it stands for. */
static int cell (const struct drawing *d, const struct topology_node *n, int k,
                 char out[CELL_TEXT])
{
    const int *stage = d->map->stage + n->first_gpu;
    int same = 1;

    while (d->style == COUNTS && k + same < n->gpus && stage[k + same] == stage[k])
        same++;
    if (stage[k] < 0)
        snprintf (out, CELL_TEXT, d->style == COUNTS ? "%dx." : ".", same);
    else if (d->style == COUNTS)
        snprintf (out, CELL_TEXT, "%dx%d", same, stage[k]);
    else if (d->style == REPLICAS)
        report_place_text (stage[k], d->map->replica[n->first_gpu + k], out);
    else
        snprintf (out, CELL_TEXT, "%d", stage[k]);
    return same;
}

/* Characters that all cells of a row take: the widest of the map. */
static int cell_width (const struct drawing *d)
{
    char text[CELL_TEXT];
    int width = 1;

    for (int i = 0; i < d->map->n_rows; i++) {
        const struct topology_node *n = &d->c->node[d->map->row[i].node];

        for (int k = 0; k < n->gpus;) {
            k += cell (d, n, k, text);
            if ((int) strlen (text) > width)
                width = (int) strlen (text);
        }
    }
    return width;
}

/* Single digits stand side by side. */
static int gap_of (const struct drawing *d, int width)
{
    return d->style == STAGES && width == 1 ? 0 : 1;
}

static int cells_of (const struct drawing *d, const struct topology_node *n)
{
    char text[CELL_TEXT];
    int cells = 0;

    for (int k = 0; k < n->gpus; cells++)
        k += cell (d, n, k, text);
    return cells;
}

/* What is left of a line for the cells. */
static int room (const struct drawing *d)
{
    return d->columns - d->name - 2 - (d->counted ? 9 : 0);
}

static bool fits (const struct drawing *d)
{
    int width = cell_width (d), most = 0;

    for (int i = 0; i < d->map->n_rows; i++) {
        int n = cells_of (d, &d->c->node[d->map->row[i].node]);

        most = n > most ? n : most;
    }
    return most * (width + gap_of (d, width)) <= room (d);
}

/* Names are letters, digits, dots and dashes; of a long one the end tells it from others. */
static void print_name (const struct drawing *d, const char *name)
{
    int len = (int) strlen (name);

    if (len > d->name)
        cli_print ("..%s  ", name + len - (d->name - 2));
    else
        cli_print ("%-*s  ", d->name, name);
}

static void print_row (const struct drawing *d, const struct report_map_row *row,
                       int width)
{
    const struct topology_node *n = &d->c->node[row->node];
    int gap = gap_of (d, width), left = room (d) / (width + gap);
    char text[CELL_TEXT], count[16] = "", padded[64];

    print_name (d, n->name);
    if (d->counted) {
        snprintf (count, sizeof count, "x%d", row->nodes);
        cli_print ("%-7s  ", count);
    }
    for (int k = 0, i = 0; k < n->gpus; i++) {
        int stage = d->map->stage[n->first_gpu + k];

        if (i == left - 1 && cells_of (d, n) > left) {
            cli_print ("..");
            break;
        }
        k += cell (d, n, k, text);
        snprintf (padded, sizeof padded, "%*s", width, text);
        if (stage < 0)
            cli_print ("%s", padded);
        else
            cli_paint (d->colors, topology_heat_shade (report_stage_share (stage, d->pp)),
                       padded);
        if (k < n->gpus)
            cli_print ("%*s", gap, "");
    }
    cli_print ("\n");
}

static void print_heading (const struct drawing *d, const struct workload_degrees *deg)
{
    char last[REPORT_PLACE_TEXT];

    cli_print ("\nplaces   ");
    if (deg->pp == 1)
        cli_print ("stage 0");
    else
        cli_print ("stages 0 to %d", deg->pp - 1);
    if (d->style == REPLICAS)
        cli_print (" of replicas A to %s", report_replica_text (deg->dp - 1, last));
    cli_print (d->style == COUNTS ? ", NxS: N GPUs of stage S; . idle"
                                  : ", a cell a GPU; . idle");
    if (d->counted)
        cli_print (d->map->apart ? "; xN: N nodes alike, the first is named"
                                 : "; xN: N nodes in a row are alike");
    cli_print ("\n");
}

enum status cli_print_places (const struct topology_cluster *c,
                              const struct workload_degrees *deg, const int *gpu,
                              struct error *err)
{
    struct report_map map;
    struct drawing d = {.c = c,
                        .map = &map,
                        .pp = deg->pp,
                        .colors = cli_colors (CLI_COLOR_AUTO),
                        .columns = columns_of_terminal ()};
    int width;

    TRY (report_map_collect (c, deg, gpu, ROWS_MOST, &map, err));
    for (int i = 0; i < map.n_rows; i++) {
        int len = (int) strlen (c->node[map.row[i].node].name);

        d.name = len > d.name ? len : d.name;
        d.counted = d.counted || map.row[i].nodes > 1;
    }
    d.name = d.name > NAME_MOST ? NAME_MOST : d.name;
    d.style = map.replicas && deg->dp > 1 ? REPLICAS : STAGES;
    while (d.style < COUNTS && !fits (&d))
        d.style++;
    width = cell_width (&d);
    print_heading (&d, deg);
    for (int i = 0; i < map.n_rows; i++)
        print_row (&d, &map.row[i], width);
    if (map.rest > 0)
        cli_print ("and %d nodes that look otherwise (`linkwise report` draws all)\n",
                   map.rest);
    report_map_release (&map);
    return ST_OK;
}
