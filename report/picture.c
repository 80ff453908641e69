/* A plan's placement as a picture: every node in use is a box in the row of its first pipeline
 * stage, its GPUs with stage and replica; lines have the rates of the links that the plan uses;
 * below, the heat map with the nodes in the same order, where groups of well-linked nodes are
 * blocks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report/report_private.h"
#include "topology/export/picture.h"

#define NODES_MAX 64 /* that can still be read */

/* Pixels. */
#define LEFT 16
#define BOXES_LEFT 88 /* right of the rows' labels */
#define BOXES_TOP 138 /* below the headings */
#define GAP 44        /* between boxes: a figure has room in it */
#define BELOW 64      /* between rows */
#define NAME_HIGH 18  /* of a box */
#define GPU_HIGH 16
#define GPUS_BELOW 4 /* rows of GPUs in a box; the columns follow */
#define BRACKET 110  /* right of the map */

enum { PIPELINE = 1, GROUP = 2 }; /* what goes from node to node */

struct box {
    int node, stage, last_stage; /* of its ranks */
    int row, column;
};

struct drawing {
    const struct topology_cluster *c;
    const struct workload_plan *plan;
    const int *gpu;
    struct text *t;
    /* of totals, or of single pairs; n is 0 where all are alike */
    struct topology_heat heat;
    struct box box[NODES_MAX];
    int boxes, rows, columns;
    int box_of[NODES_MAX];                   /* [n_nodes] -1: not used */
    unsigned char use[NODES_MAX][NODES_MAX]; /* bits, from node to node */
    int gpus_across, gpus_down, gpu_wide, box_wide, box_high;
};

/* ---- what there is ---- */

/* Ranks are numbered stage by stage, so boxes come in the order of their first stages. */
static void find_boxes (struct drawing *d)
{
    const struct workload_degrees *deg = &d->plan->config.deg;

    for (int i = 0; i < d->c->n_nodes; i++)
        d->box_of[i] = -1;
    for (int r = 0; r < d->plan->n_ranks; r++) {
        int node = d->c->node_of_gpu[d->gpu[r]], stage = workload_coords_of (deg, r).pp;

        if (d->box_of[node] < 0) {
            const struct box *last = d->boxes > 0 ? &d->box[d->boxes - 1] : NULL;
            bool same = last && last->stage == stage;

            d->rows += !same;
            d->box_of[node] = d->boxes;
            d->box[d->boxes++] = (struct box){.node = node,
                                              .stage = stage,
                                              .row = d->rows - 1,
                                              .column = same ? last->column + 1 : 0};
            if (d->box[d->boxes - 1].column >= d->columns)
                d->columns = d->box[d->boxes - 1].column + 1;
        }
        d->box[d->box_of[node]].last_stage = stage;
    }
}

/* From every rank to the next one of its group; experts go to all of theirs. */
static void find_uses (struct drawing *d)
{
    static const enum workload_group_kind kinds[] = {GROUP_TP, GROUP_CP, GROUP_EP,
                                                     GROUP_DP, GROUP_PP};
    const struct workload_degrees *deg = &d->plan->config.deg;

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct workload_group g = workload_group_of (deg, kinds[k]);
        int far = kinds[k] == GROUP_EP ? g.size - 1 : g.size > 1 ? 1 : 0;

        for (int r = 0; r < d->plan->n_ranks; r++)
            for (int by = 1; by <= far; by++) {
                int at = r / g.stride % g.size,
                    next = r + ((at + by) % g.size - at) * g.stride;
                int a = d->c->node_of_gpu[d->gpu[r]], b = d->c->node_of_gpu[d->gpu[next]];

                if (kinds[k] != GROUP_PP)
                    d->use[a][b] |= GROUP;
                else if (at + 1 < g.size || deg->vpp > 1)
                    d->use[a][b] |= PIPELINE, d->use[b][a] |= PIPELINE;
            }
    }
}

/* What goes from a node to another at its best, and which share of what is usual that is. */
static double rate_of (const struct drawing *d, int a, int b, double *share)
{
    struct topology_link link;

    if (d->heat.n > 0) {
        *share = d->heat.share[(size_t) a * (size_t) d->heat.n + (size_t) b];
        return *share * d->heat.of_bytes_per_s;
    }
    link = topology_link (d->c, d->c->node[a].first_gpu, d->c->node[b].first_gpu);
    *share = link.measured ? 1.0 : NAN;
    return link.bytes_per_s;
}

static enum status find_rates (struct drawing *d, struct error *err)
{
    struct topology_stats stats;
    enum status st;

    if (d->c->has_pair_totals)
        return topology_heat_totals (d->c, NODES_MAX, &d->heat, err);
    TRY (topology_stats_collect (d->c, 0, NULL, &stats, err));
    st = topology_heat_collect (d->c, NODES_MAX, stats.between_median_bytes_per_s, NULL,
                                &d->heat, err);
    topology_stats_release (&stats);
    return st;
}

/* ---- boxes ---- */

static void measure_boxes (struct drawing *d)
{
    const struct workload_degrees *deg = &d->plan->config.deg;
    int most = 1, name = 0;
    char label[REPORT_PLACE_TEXT];

    for (int k = 0; k < d->boxes; k++) {
        const struct topology_node *node = &d->c->node[d->box[k].node];
        int len = picture_name_length (node->name);

        most = node->gpus > most ? node->gpus : most;
        name = len > name ? len : name;
    }
    report_place_text (deg->pp - 1, deg->dp - 1, label);
    d->gpus_across = (most + GPUS_BELOW - 1) / GPUS_BELOW;
    d->gpus_down = (most + d->gpus_across - 1) / d->gpus_across;
    d->gpu_wide = PICTURE_LETTER * (int) strlen (label) + 8;
    d->box_wide = d->gpus_across * d->gpu_wide;
    if (d->box_wide < PICTURE_LETTER * name + 6)
        d->box_wide = PICTURE_LETTER * name + 6;
    d->box_high = NAME_HIGH + d->gpus_down * GPU_HIGH + 4;
}

static int box_left (const struct drawing *d, const struct box *b)
{
    return BOXES_LEFT + b->column * (d->box_wide + GAP);
}

static int box_middle (const struct drawing *d, const struct box *b)
{
    return box_left (d, b) + d->box_wide / 2;
}

static int row_top (const struct drawing *d, int row)
{
    return BOXES_TOP + row * (d->box_high + BELOW);
}

/* Light yellow to dark violet, as the page has stages. */
static unsigned stage_fill (int stage, int stages)
{
    static const int stop[][3] = {
        {253, 224, 94}, {122, 198, 110}, {42, 150, 138}, {58, 90, 146}, {84, 28, 104}};
    double at = stages > 1 ? 4.0 * stage / (stages - 1) : 1.0;
    int k = at < 3.0 ? (int) at : 3;
    unsigned fill = 0;

    for (int i = 0; i < 3; i++)
        fill = fill << 8 |
               (unsigned) lround (stop[k][i] + (at - k) * (stop[k + 1][i] - stop[k][i]));
    return fill;
}

static void add_gpu (const struct drawing *d, const struct box *b, int at, int rank)
{
    const struct workload_degrees *deg = &d->plan->config.deg;
    int inner = (d->box_wide - d->gpus_across * d->gpu_wide) / 2;
    int x = box_left (d, b) + inner + at % d->gpus_across * d->gpu_wide,
        y = row_top (d, b->row) + NAME_HIGH + at / d->gpus_across * GPU_HIGH;
    struct workload_coords place;
    unsigned fill, light;
    char label[REPORT_PLACE_TEXT];

    if (rank < 0) {
        text_add (
            d->t,
            "<text class=\"m q\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">-</text>\n",
            x + d->gpu_wide / 2, y + GPU_HIGH - 4);
        return;
    }
    place = workload_coords_of (deg, rank);
    report_place_text (place.pp, place.dp, label);
    fill = stage_fill (place.pp, deg->pp);
    light = 299 * (fill >> 16) + 587 * (fill >> 8 & 255) + 114 * (fill & 255);
    text_add (d->t,
              "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\"/>"
              "<text class=\"m %s\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
              x + 1, y + 1, d->gpu_wide - 2, GPU_HIGH - 2, fill,
              light > 140000 ? "k" : "w", x + d->gpu_wide / 2, y + GPU_HIGH - 4, label);
}

static void add_boxes (const struct drawing *d, const int *rank_at)
{
    for (int k = 0; k < d->boxes; k++) {
        const struct box *b = &d->box[k];
        const struct topology_node *node = &d->c->node[b->node];

        text_add (d->t,
                  "<rect class=\"box\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                  "rx=\"4\"/><text class=\"m\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                  box_left (d, b), row_top (d, b->row), d->box_wide, d->box_high,
                  box_middle (d, b), row_top (d, b->row) + NAME_HIGH - 5);
        picture_add_name (d->t, node->name);
        text_add (d->t, "</text>\n");
        for (int i = 0; i < node->gpus; i++)
            add_gpu (d, b, i, rank_at[node->first_gpu + i]);
    }
}

/* The row of box k in words, "stage 2", "stages 2 to 4"; the first box of the next row. */
static int add_row_name (const struct drawing *d, int k, int x, int y)
{
    int first = d->box[k].stage, last = first, row = d->box[k].row;

    for (; k < d->boxes && d->box[k].row == row; k++)
        last = d->box[k].last_stage > last ? d->box[k].last_stage : last;
    text_add (d->t, "<text class=\"b\" x=\"%d\" y=\"%d\">stage%s %d", x, y,
              last > first ? "s" : "", first);
    if (last > first)
        text_add (d->t, " to %d", last);
    text_add (d->t, "</text>\n");
    return k;
}

/* ---- lines ---- */

static void add_figure (const struct drawing *d, int x, int y, const struct box *a,
                        const struct box *b)
{
    double share, rate = rate_of (d, a->node, b->node, &share);

    picture_add_figure (d->t, x, y, rate, share);
}

/* A group's ring: to the box at the right, and from a row's end over the row back to its start. */
static void add_ring (const struct drawing *d, const struct box *a, const struct box *b)
{
    int top = row_top (d, a->row), over = top - 14;
    int x1 = box_middle (d, a), x2 = box_middle (d, b);

    if (b->column == a->column + 1) {
        int y = top + d->box_high / 2, right = box_left (d, a) + d->box_wide;

        text_add (d->t, "<path class=\"l\" d=\"M%d %dh%d\"/>\n", right, y, GAP);
        add_figure (d, right + GAP / 2, y, a, b);
    } else if (b->column == 0 && a->column > 1) {
        text_add (d->t, "<path class=\"l\" d=\"M%d %dV%dH%dV%d\"/>\n", x1, top, over, x2,
                  top);
        add_figure (d, x2 + (x1 - x2) * 3 / 4, over, a, b);
    }
}

/* The pipeline, to the next row; a box's first line has its figure. */
static void add_sends (const struct drawing *d, const struct box *a)
{
    bool said = false;

    for (int k = 0; k < d->boxes; k++) {
        const struct box *b = &d->box[k];
        int x1 = box_middle (d, a), x2 = box_middle (d, b);
        int y1 = row_top (d, a->row) + d->box_high, y2 = row_top (d, b->row);

        if (b->row != a->row + 1 || !(d->use[a->node][b->node] & PIPELINE))
            continue;
        text_add (d->t, "<path class=\"l p\" d=\"M%d %dL%d %d\"/>\n", x1, y1, x2, y2);
        if (!said)
            add_figure (d, x1 + (x2 - x1) / 3, y1 + (y2 - y1) / 3, a, b);
        said = true;
    }
}

static void add_lines (const struct drawing *d)
{
    for (int k = 0; k < d->boxes; k++) {
        const struct box *a = &d->box[k];

        add_sends (d, a);
        for (int i = 0; i < d->boxes; i++)
            if (d->box[i].row == a->row && d->use[a->node][d->box[i].node] & GROUP)
                add_ring (d, a, &d->box[i]);
    }
}

/* ---- the map ---- */

/* Stages beside the rows of their nodes, and what is not used. */
static void add_brackets (const struct drawing *d, const struct picture_map *m)
{
    int x = picture_map_left (m) + m->n * PICTURE_CELL + 8, top = picture_map_top (m);

    for (int k = 0, next; k < m->n; k = next) {
        int low = top + k * PICTURE_CELL, middle;

        for (next = k;
             next < m->n &&
             (k < d->boxes ? next < d->boxes && d->box[next].row == d->box[k].row
                           : true);)
            next++;
        middle = (low + top + next * PICTURE_CELL) / 2 + 4;
        text_add (d->t, "<path class=\"l\" d=\"M%d %dh5V%dh-5\"/>\n", x, low + 3,
                  top + next * PICTURE_CELL - 3);
        if (k < d->boxes)
            add_row_name (d, k, x + 12, middle);
        else
            text_add (d->t, "<text class=\"q\" x=\"%d\" y=\"%d\">not used</text>\n",
                      x + 12, middle);
    }
}

static void add_map (const struct drawing *d, const struct picture_map *m)
{
    text_add (
        d->t,
        "<text class=\"b\" x=\"%d\" y=\"%d\">From node to node%s</text>\n"
        "<text class=\"q\" x=\"%d\" y=\"%d\">nodes in the order above; outlined: links "
        "that the plan uses</text>\n",
        LEFT, m->top - 32,
        d->c->has_pair_totals ? ", all GPUs of both at once" : ", one GPU of each alone",
        LEFT, m->top - 14);
    picture_add_map (d->t, m);
    for (int i = 0; i < d->boxes; i++)
        for (int j = 0; j < d->boxes; j++)
            if (i != j && d->use[d->box[i].node][d->box[j].node])
                picture_mark (d->t, m, i, j, 0);
    add_brackets (d, m);
}

/* ---- words ---- */

/* ": pp 2, dp 64" */
static void add_degrees (struct text *t, const struct workload_degrees *deg)
{
    const struct {
        const char *name;
        int degree;
    } degrees[] = {{"tp", deg->tp},
                   {"cp", deg->cp},
                   {"ep", deg->ep},
                   {"pp", deg->pp},
                   {"dp", deg->dp}};
    const char *before = ": ";

    for (size_t k = 0; k < sizeof degrees / sizeof *degrees; k++)
        if (degrees[k].degree > 1) {
            text_add (t, "%s%s %d", before, degrees[k].name, degrees[k].degree);
            before = ", ";
        }
}

/* "Estimated step: 5.79 s; 6.52 s in Megatron's rank order: this placement saves 11.2 %" */
static void add_step (struct text *t, const json_t *estimate)
{
    double step_s = json_member_number (estimate, "step_s"),
           default_s = json_member_number (estimate, "default_order_step_s");

    if (!(step_s > 0))
        return;
    text_add (t, "Estimated step: %.2f s", step_s);
    if (default_s > 1.001 * step_s)
        text_add (t, "; %.2f s in Megatron's rank order: this placement saves %.1f %%",
                  default_s, 100 * (1 - step_s / default_s));
}

/* What goes along the lines that there are. */
static const char *lines_words (const struct drawing *d)
{
    return d->rows > 1 && d->columns > 1 ? "Across: rings that sum gradients over a "
                                           "stage's replicas. Down, dashed: "
                                           "activations from stage to stage."
           : d->rows > 1    ? "Down, dashed: activations from stage to stage."
           : d->columns > 1 ? "Across: rings of the ranks that work together."
                            : "";
}

static void add_heading (const struct drawing *d, const char *title,
                         const json_t *estimate)
{
    text_add (d->t, "<text class=\"h\" x=\"%d\" y=\"28\">", LEFT);
    picture_add_escaped (d->t, title);
    text_add (d->t, "</text>\n<text x=\"%d\" y=\"50\">%d GPUs of %d nodes", LEFT,
              d->plan->n_ranks, d->boxes);
    add_degrees (d->t, &d->plan->config.deg);
    text_add (d->t, "</text>\n<text class=\"b\" x=\"%d\" y=\"68\">", LEFT);
    add_step (d->t, estimate);
    text_add (
        d->t,
        "</text>\n<text class=\"q\" x=\"%d\" y=\"88\">A GPU: its pipeline stage and "
        "its replica's letter. On lines: GB/s of %s.</text>\n"
        "<text class=\"q\" x=\"%d\" y=\"104\">%s</text>\n",
        LEFT,
        d->c->has_pair_totals ? "all GPUs of both nodes at once"
                              : "one GPU of each node alone",
        LEFT, lines_words (d));
}

/* ---- all ---- */

/* @param[in] rank_at  [n_gpus] -1: none
 * @param     cell     [n_nodes] for the map's order */
static void draw (struct drawing *d, const int *rank_at, int *cell, const char *title,
                  const json_t *estimate)
{
    int bottom = row_top (d, d->rows - 1) + d->box_high, n = d->boxes;
    int right = BOXES_LEFT + d->columns * (d->box_wide + GAP) - GAP + LEFT;
    struct picture_map m = {.c = d->c,
                            .heat = &d->heat,
                            .cell = cell,
                            .left = LEFT,
                            .top = bottom + 76,
                            .legend_after = BRACKET};
    bool has_map = d->heat.n > 0 && d->boxes > 1;

    for (int k = 0; k < d->boxes; k++)
        cell[k] = d->box[k].node;
    for (int i = 0; i < d->c->n_nodes; i++)
        if (d->box_of[i] < 0)
            cell[n++] = i;
    m.n = n;
    if (has_map) {
        bottom = picture_map_bottom (&m);
        right = picture_map_right (&m) > right ? picture_map_right (&m) : right;
    }
    picture_begin (
        d->t, right > 720 ? right : 720, bottom + LEFT, title,
        "Where each pipeline stage and replica is, the rates of the links that "
        "the plan uses, and those of all pairs of nodes in the same order.");
    add_heading (d, title, estimate);
    for (int k = 0; k < d->boxes;)
        k = add_row_name (d, k, LEFT, row_top (d, d->box[k].row) + d->box_high / 2 + 4);
    add_lines (d);
    add_boxes (d, rank_at);
    if (has_map)
        add_map (d, &m);
    text_add (d->t, "</svg>\n");
}

static enum status draw_all (struct drawing *d, const json_t *estimate, struct error *err)
{
    int *rank_at = calloc ((size_t) d->c->n_gpus, sizeof *rank_at),
        *cell = calloc ((size_t) d->c->n_nodes, sizeof *cell);
    struct text title = {0};
    enum status st = ST_OK;

    text_add (&title, "%s on %s", d->plan->model.name, d->c->name);
    if (rank_at && cell && !title.failed) {
        for (int i = 0; i < d->c->n_gpus; i++)
            rank_at[i] = -1;
        for (int r = 0; r < d->plan->n_ranks; r++)
            rank_at[d->gpu[r]] = r;
        draw (d, rank_at, cell, text_str (&title), estimate);
        text_clean (d->t);
    }
    if (!rank_at || !cell || title.failed || d->t->failed)
        st = err_nomem (err);
    text_free (&title);
    free (rank_at);
    free (cell);
    return st;
}

enum status report_picture (const struct topology_cluster *c,
                            const struct workload_plan *plan, const int *gpu,
                            const json_t *estimate, struct text *out, struct error *err)
{
    struct drawing *d;
    enum status st;

    if (c->n_nodes > NODES_MAX)
        return err_set (err, ST_INVALID,
                        "%s: expected at most %d nodes for a picture, found %d (the HTML "
                        "page has any number)",
                        c->name, NODES_MAX, c->n_nodes);
    if (!(d = calloc (1, sizeof *d)))
        return err_nomem (err);
    *d = (struct drawing){.c = c, .plan = plan, .gpu = gpu, .t = out};
    st = find_rates (d, err);
    if (st == ST_OK) {
        find_boxes (d);
        find_uses (d);
        measure_boxes (d);
        st = draw_all (d, estimate, err);
    }
    topology_heat_release (&d->heat);
    free (d);
    return st;
}
