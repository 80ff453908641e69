/* Pipette's own objective: this library's placement beside a plain annealer's and, at 16
 * nodes, beside the optimum.
 *
 *     make bench                       16 and 32 nodes, three runs of the annealer
 *     LINKWISE_LONG=1 make bench       128 nodes too, ten runs
 *
 * The annealer is simulated annealing over the order of the nodes with the moves of
 * Pipette (Yim et al., DATE 2024: swap, insert, reversal), for 1 s a run.  The optimum is
 * found by dynamic programming over sets of nodes and branch and bound over covers; see
 * `struct exact`.  What is compared is what the placement decides, sends and gradients;
 * compute is the same everywhere.  The two real matrices (16 A100 nodes measured by mpiGraph
 * at two times) are read where MATRICES says, when they are there. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/rng.h"
#include "base/text.h"
#include "bench/bench.h"
#include "mapper/mapper.h"
#include "topology/edit/edit.h"

#define MATRICES "../shared/data/links/matrices"
#define NODES_MAX 128
#define EXACT_NODES 16

/* Whole nodes in a grid of stages by replicas, node[stage * columns + replica]. */
struct instance {
    struct topology_cluster *cluster;
    struct workload_model model;
    struct workload_job job;
    struct workload_profile profile;
    int n, rows, columns;
    double weight;                     /* of the slowest pipeline's sends */
    double send[NODES_MAX][NODES_MAX]; /* seconds */
    double ring[NODES_MAX][NODES_MAX]; /* of the ring, were this its slowest */
};

/* ---- instances ---- */

static void fill (struct instance *x, int rows)
{
    double h, message, bytes;
    struct error err;

    if (workload_model_read ("llama-2-70b", &x->model, NULL, &err) != ST_OK ||
        workload_profile_read (WORKLOAD_PROFILE_DEFAULT, &x->profile, NULL, &err) !=
            ST_OK)
        die (&err);
    x->n = x->cluster->n_nodes;
    x->rows = rows;
    x->columns = x->n / rows;
    x->job = (struct workload_job){.seq = 4096, .global_batch = 2 * rows * x->columns};
    x->weight = 2; /* m / p */
    h = x->model.hidden;
    message = 2.0 * x->job.seq * h;
    bytes = 2.0 * (h * x->model.vocab + 16.0 * h * h * x->model.layers / rows) / 8;
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < x->n; j++)
            if (i != j) {
                double bw = topology_node_link (x->cluster, i, j).bytes_per_s;

                x->send[i][j] = 2.0 * message / bw;
                x->ring[i][j] = 2.0 * (x->columns - 1) / x->columns * bytes / bw;
            }
}

static struct instance *drawn (const char *preset, int nodes, int rows)
{
    struct instance *x = calloc (1, sizeof *x);
    struct topology_synth s = topology_synth_default ();
    struct topology_document d = {0};
    struct error err;

    if (!x)
        exit (1);
    s.preset = preset;
    s.nodes = nodes;
    if (topology_synthesize (&s, &d, NULL, &err) != ST_OK)
        die (&err);
    /* Pipette knows no slow GPUs; here they would be a reason to accept slow sends. */
    for (int i = 0; i < nodes; i++)
        json_object_del (json_array_get (json_object_get (d.doc, "nodes"), (size_t) i),
                         "speed");
    if (topology_cluster_from_json (d.doc, preset, NULL, &x->cluster, NULL, &err) !=
        ST_OK)
        die (&err);
    topology_document_release (&d);
    fill (x, rows);
    return x;
}

/* The rows of a matrix file under its two lines of header, MiB/s, as a JSON array in GB/s. */
static void read_rows (FILE *in, struct text *out)
{
    char line[4096];

    for (int row = -2; row < EXACT_NODES && fgets (line, sizeof line, in); row++) {
        const char *at = strchr (line, ',');

        for (int k = 0; row >= 0 && k < EXACT_NODES && at; k++, at = strchr (at, ',')) {
            at++;
            text_add (out, "%s%.6f",
                      k     ? ","
                      : row ? ",["
                            : "[",
                      k == row ? 1.0 : atof (at) * 1048576 / 1e9);
        }
        if (row >= 0)
            text_add (out, "]");
    }
}

/* NULL where the file is not there. */
static struct instance *measured (int time, int rows)
{
    struct instance *x = calloc (1, sizeof *x);
    struct text text = {0};
    struct error err = {"a matrix is no matrix"};
    json_t *doc;
    char path[256];
    FILE *in;

    snprintf (path, sizeof path,
              MATRICES "/pipette_16xA100node_time_%d_send_to_MiBps.csv", time);
    in = fopen (path, "r");
    if (!in || !x) {
        free (x);
        return NULL;
    }
    text_add (&text, "{\"version\":1,\"name\":\"measured\",\"nodes\":[");
    for (int i = 0; i < EXACT_NODES; i++)
        text_add (&text, "%s{\"name\":\"n%d\",\"gpus\":8,\"gpu_type\":\"a100-sxm4-80g\"}",
                  i ? "," : "", i);
    text_add (&text,
              "],\"links\":{\"intra\":{\"bandwidth_gb_per_s\":230,\"latency_us\":8},"
              "\"inter\":{\"latency_us\":12,\"bandwidth_gb_per_s\":[");
    read_rows (in, &text);
    text_add (&text, "]}}}");
    fclose (in);
    doc = json_loads (text_str (&text), 0, NULL);
    if (!doc || topology_cluster_from_json (doc, "measured", NULL, &x->cluster, NULL,
                                            &err) != ST_OK)
        die (&err);
    json_decref (doc);
    text_free (&text);
    fill (x, rows);
    return x;
}

/* ---- the objective ---- */

static double cost_of (const struct instance *x, const int *node)
{
    double slowest = 0.0, ring = 0.0;

    for (int d = 0; d < x->columns; d++) {
        double sum = 0.0;

        for (int i = 0; i + 1 < x->rows; i++)
            sum += x->send[node[i * x->columns + d]][node[(i + 1) * x->columns + d]];
        slowest = sum > slowest ? sum : slowest;
    }
    for (int d = 0; d < x->columns && x->columns > 1; d++) {
        double t = x->ring[node[d]][node[(d + 1) % x->columns]];

        ring = t > ring ? t : ring;
    }
    return x->weight * slowest + ring;
}

/* ---- the plain annealer ---- */

static void change (struct rng *r, int *node, int n)
{
    int kind = rng_below (r, 3), i = rng_below (r, n), j = rng_below (r, n), x = node[i];

    if (kind == 0) {
        node[i] = node[j];
        node[j] = x;
    } else if (kind == 1) { /* take one out and put it in elsewhere */
        for (; i < j; i++)
            node[i] = node[i + 1];
        for (; i > j; i--)
            node[i] = node[i - 1];
        node[j] = x;
    } else { /* reverse a stretch */
        for (int a = i < j ? i : j, b = i < j ? j : i; a < b; a++, b--) {
            x = node[a];
            node[a] = node[b];
            node[b] = x;
        }
    }
}

/* The best of one run of so many seconds. */
static double anneal (const struct instance *x, double seconds, uint64_t seed)
{
    struct rng r = {seed};
    int node[NODES_MAX], next[NODES_MAX];
    double here, best, hot, start = cpu_s (), temperature = 0.0;

    for (int i = 0; i < x->n; i++)
        node[i] = i;
    for (int i = x->n - 1; i > 0; i--) {
        int j = rng_below (&r, i + 1), k = node[i];

        node[i] = node[j];
        node[j] = k;
    }
    here = best = cost_of (x, node);
    hot = 0.02 * here;
    for (long k = 0;; k++) {
        double there;

        if (k % 256 == 0) {
            double done = (cpu_s () - start) / seconds;

            if (done >= 1)
                return best;
            temperature = hot * pow (1e-4, done);
        }
        memcpy (next, node, (size_t) x->n * sizeof (int));
        change (&r, next, x->n);
        there = cost_of (x, next);
        if (there <= here || rng_unit (&r) < exp ((here - there) / temperature)) {
            memcpy (node, next, (size_t) x->n * sizeof (int));
            here = there;
            best = here < best ? here : best;
        }
    }
}

/* ---- the optimum ---- */

/* Cheapest pipelines down a set of nodes from each first node, by dynamic programming over
 * subsets; then covers of all nodes by such sets, the set of the lowest free node first,
 * cut by the slowest pipeline so far and the best ring that there is.  First nodes and the
 * ring are enumerated at the leaves. */
struct exact {
    const struct instance *x;
    double (*path)[EXACT_NODES]; /* [2^n] from each first node; INFINITY */
    double *least;               /* [2^n] the best of them */
    double best_ring, best;
    unsigned set[EXACT_NODES];
    int head[EXACT_NODES];
    long leaves;
};

/* The least slowest link of a ring that goes on from `at`, of `left` more nodes. */
static double best_ring (const struct instance *x, int first, int at, unsigned used,
                         int left, double slowest, double best)
{
    if (slowest >= best)
        return best;
    if (left == 0)
        return fmin (best, fmax (slowest, x->ring[at][first]));
    for (int i = 0; i < x->n; i++)
        if (!(used >> i & 1))
            best = best_ring (x, first, i, used | 1u << i, left - 1,
                              fmax (slowest, x->ring[at][i]), best);
    return best;
}

/* Rings through the heads, the first of them fixed. */
static void try_rings (struct exact *e, int at, double slowest_path, double slowest)
{
    const struct instance *x = e->x;

    if (x->weight * slowest_path + slowest >= e->best)
        return;
    if (at == x->columns) {
        slowest = fmax (slowest, x->ring[e->head[at - 1]][e->head[0]]);
        e->best = fmin (e->best, x->weight * slowest_path + slowest);
        return;
    }
    for (int k = at; k < x->columns; k++) {
        int h = e->head[k];

        e->head[k] = e->head[at];
        e->head[at] = h;
        try_rings (e, at + 1, slowest_path, fmax (slowest, x->ring[e->head[at - 1]][h]));
        e->head[at] = e->head[k];
        e->head[k] = h;
    }
}

static void try_heads (struct exact *e, int at, double slowest)
{
    if (e->x->weight * slowest + e->best_ring >= e->best)
        return;
    if (at == e->x->columns) {
        e->leaves++;
        try_rings (e, 1, slowest, 0.0);
        return;
    }
    for (int h = 0; h < e->x->n; h++)
        if (e->set[at] >> h & 1) {
            e->head[at] = h;
            try_heads (e, at + 1, fmax (slowest, e->path[e->set[at]][h]));
        }
}

static void cover (struct exact *e, int at, unsigned used, double slowest)
{
    const struct instance *x = e->x;
    unsigned all = (1u << x->n) - 1, rest = all & ~used, lowest = rest & -rest;

    if (x->weight * slowest + e->best_ring >= e->best)
        return;
    if (rest == 0) {
        try_heads (e, 0, 0.0);
        return;
    }
    for (unsigned set = rest; set; set = (set - 1) & rest)
        if (set & lowest && __builtin_popcount (set) == x->rows) {
            e->set[at] = set;
            cover (e, at + 1, used | set, fmax (slowest, e->least[set]));
        }
}

/* @param[in] known  what some placement costs */
static double optimum (const struct instance *x, double known)
{
    struct exact e = {.x = x, .best_ring = INFINITY, .best = known * (1 + 1e-12)};
    size_t sets = (size_t) 1 << x->n;

    e.path = malloc (sets * sizeof *e.path);
    e.least = malloc (sets * sizeof *e.least);
    if (!e.path || !e.least)
        exit (1);
    for (size_t set = 1; set < sets; set++) {
        e.least[set] = INFINITY;
        for (int h = 0; h < x->n; h++) {
            size_t rest = set & ~((size_t) 1 << h);

            e.path[set][h] = rest || !(set >> h & 1) ? INFINITY : 0.0;
            for (int k = 0; k < x->n && set >> h & 1; k++)
                if (rest >> k & 1)
                    e.path[set][h] =
                        fmin (e.path[set][h], x->send[h][k] + e.path[rest][k]);
            e.least[set] = fmin (e.least[set], e.path[set][h]);
        }
    }
    for (int i = 0; i < x->n; i++)
        e.best_ring = best_ring (x, i, i, 1u << i, x->columns - 1, 0.0, e.best_ring);
    cover (&e, 0, 0, 0.0);
    free (e.path);
    free (e.least);
    return e.best;
}

/* ---- this library ---- */

static double place (const struct instance *x, double *seconds)
{
    enum { RUNS = 5 };
    struct mapper_problem p = {.model = &x->model,
                               .job = &x->job,
                               .profile = &x->profile,
                               .cluster = x->cluster,
                               .axes = mapper_axes_free (),
                               .memory_limit_pct = 1000,
                               .cost_model = COSTMODEL_PIPETTE};
    struct mapper_settings s = mapper_settings_default ();
    double cost = 0.0, wall[RUNS];
    int node[NODES_MAX];

    p.axes.tp = 8;
    p.axes.pp = x->rows;
    p.axes.dp = x->columns;
    p.axes.micro_batch = p.axes.zero = p.axes.sequence_parallel = 1;
    p.axes.recompute = RECOMPUTE_SELECTIVE;
    for (int run = 0; run < RUNS; run++) {
        struct mapper_result r;
        struct mapper_info info;
        struct error err;

        if (mapper_search (&p, &s, &r, &info, &err) != ST_OK)
            die (&err);
        wall[run] = info.seconds;
        for (int i = 0; i < x->n; i++)
            node[i] = x->cluster->node_of_gpu[r.gpu[8 * i]];
        cost = cost_of (x, node);
        if (fabs (r.estimate.part.pp_s + r.estimate.part.dp_s - cost) > 1e-9 * cost)
            die (&(struct error){"the objectives differ"});
        mapper_result_release (&r);
        mapper_info_release (&info);
    }
    *seconds = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        int before = 0;

        for (int k = 0; k < RUNS; k++)
            before += wall[k] < wall[run] || (!(wall[run] < wall[k]) && k < run);
        if (before == RUNS / 2)
            *seconds = wall[run];
    }
    return cost;
}

static void bench (struct table *t, const char *name, struct instance *x, int runs)
{
    double seconds, ours, theirs = INFINITY;

    if (!x)
        return;
    ours = place (x, &seconds);
    for (int run = 0; run < runs; run++)
        theirs = fmin (theirs, anneal (x, 1.0, (uint64_t) run + 1));
    table_cell (t, "%s", name);
    table_cell (t, "%d", x->n);
    table_cell (t, "%d", x->rows);
    table_cell (t, "%.2f", 1e3 * ours);
    table_cell (t, "%.3f", seconds);
    table_cell (t, "%.2f", 1e3 * theirs);
    table_cell (t, "%+.2f", 100 * (ours / theirs - 1));
    table_number (
        t, "%+.2f",
        x->n <= EXACT_NODES ? 100 * (ours / optimum (x, fmin (ours, theirs)) - 1) : NAN);
    topology_cluster_destroy (x->cluster);
    free (x);
}

int main (void)
{
    static const char *const presets[] = {"calm", "failing", "busy"};
    struct table *t = TABLE_OF ("<Pipette's objective", "nodes", "stages", "ms", "s",
                                "annealer ms", "above it %", "optimum %");
    bool all = getenv ("LINKWISE_LONG") != NULL;
    int runs = all ? 10 : 3;

    bench (t, "measured, first time", measured (0, 4), runs);
    bench (t, "measured, second time", measured (1, 4), runs);
    for (int k = 0; k < (all ? 3 : 2); k++) {
        bench (t, presets[k], drawn (presets[k], 16, 4), runs);
        bench (t, presets[k], drawn (presets[k], 16, 8), runs);
        bench (t, presets[k], drawn (presets[k], 32, 4), runs);
        if (all)
            bench (t, presets[k], drawn (presets[k], 128, 8), runs);
    }
    table_print (t, stdout);
    printf ("ms: what placement decides, sends and gradients; annealer: the best of %d "
            "runs of "
            "1 s\n",
            runs);
    table_destroy (t);
    return 0;
}
