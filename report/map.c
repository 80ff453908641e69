/* Stages on GPUs, as rows of cells. */
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

/* The shades of topology_heat_shade, and a step that goes through all of them. */
#define SHADES 11
#define SHADE_STEP 4

/* Do two nodes look alike? */
static bool alike (const struct report_map *m, const struct topology_cluster *c, int a,
                   int b)
{
    const struct topology_node *x = &c->node[a], *y = &c->node[b];

    if (x->gpus != y->gpus)
        return false;
    for (int k = 0; k < x->gpus; k++)
        if (m->stage[x->first_gpu + k] != m->stage[y->first_gpu + k] ||
            (m->replicas && m->replica[x->first_gpu + k] != m->replica[y->first_gpu + k]))
            return false;
    return true;
}

/* The row that the node belongs to; -1: to none yet. */
static int row_of (const struct report_map *m, const struct topology_cluster *c, int node)
{
    for (int i = m->apart || m->n_rows == 0 ? 0 : m->n_rows - 1; i < m->n_rows; i++)
        if (alike (m, c, m->row[i].node, node))
            return i;
    return -1;
}

/* Fill at most so many rows. */
static void fold (struct report_map *m, const struct topology_cluster *c, int most)
{
    m->n_rows = m->rest = 0;
    for (int i = 0; i < c->n_nodes; i++) {
        int row = row_of (m, c, i);

        if (row >= 0)
            m->row[row].nodes++;
        else if (m->n_rows < most)
            m->row[m->n_rows++] = (struct report_map_row){i, 1};
        else
            m->rest++;
    }
}

enum status report_map_collect (const struct topology_cluster *c,
                                const struct workload_degrees *d, const int *gpu,
                                int most, struct report_map *out, struct error *err)
{
    struct report_map m = {.replicas = true};
    int world = (int) workload_world (d);

    m.stage = malloc ((size_t) c->n_gpus * sizeof *m.stage);
    m.replica = malloc ((size_t) c->n_gpus * sizeof *m.replica);
    m.row = malloc ((size_t) most * sizeof *m.row);
    if (!m.stage || !m.replica || !m.row) {
        report_map_release (&m);
        return err_nomem (err);
    }
    for (int g = 0; g < c->n_gpus; g++)
        m.stage[g] = m.replica[g] = -1;
    for (int r = 0; r < world; r++) {
        struct workload_coords at = workload_coords_of (d, r);

        m.stage[gpu[r]] = at.pp;
        m.replica[gpu[r]] = at.dp;
    }
    fold (&m, c, most);
    if (m.rest > 0) {
        m.replicas = false;
        fold (&m, c, most);
    }
    if (m.rest > 0) {
        m.apart = true;
        fold (&m, c, most);
    }
    *out = m;
    return ST_OK;
}

void report_map_release (struct report_map *m)
{
    FREE_ALL (m->stage, m->replica, m->row);
    *m = (struct report_map){0};
}

const char *report_replica_text (int replica, char *buf)
{
    char letters[8], *at = buf;
    int n = 0;

    for (int k = replica; k >= 0; k = k / 26 - 1)
        letters[n++] = (char) ('A' + k % 26);
    while (n > 0)
        *at++ = letters[--n];
    *at = '\0';
    return buf;
}

const char *report_place_text (int stage, int replica, char buf[REPORT_PLACE_TEXT])
{
    report_replica_text (replica,
                         buf + snprintf (buf, REPORT_PLACE_TEXT - 8, "%d", stage));
    return buf;
}

double report_stage_share (int stage, int pp)
{
    int shade = pp > SHADES ? stage * SHADE_STEP % SHADES
                : pp > 1    ? stage * (SHADES - 1) / (pp - 1)
                            : 0;

    return shade / (double) (SHADES - 1);
}
