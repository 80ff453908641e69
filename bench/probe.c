/* bwprobe's schedule for clusters that nobody has at hand: how long it takes, and what a plan
 * made from a sampled matrix loses against one made from the full one.
 *
 *     make bench
 *
 * Times are the schedule's own, from what a pair and a round are assumed to take over NCCL:
 * 0.2 s for a communicator of two and the transport's default measuring time.  They are
 * simulated, not measured on GPUs.
 *
 * Losses: of a cluster drawn from a preset, or with the rates of the bundled 17 measured nodes
 * drawn at random for each pair, the schedule sees a part of its rounds between nodes.  What it
 * does not see is left out, or takes the median of what was seen, or what bwprobe writes: the low
 * end of its best model.  The plan made from that is priced on the whole matrix, beside the plan
 * made from the whole matrix; the worst of three drawings is printed.  The first table says which
 * part the budget sees: all of it up to 8,192 GPUs.  The parts that it sees above are tried at
 * smaller sizes too, where a plan takes no minutes, and at one of 16,384 GPUs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/progress.h"
#include "base/rng.h"
#include "base/stats.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/planned.h"
#include "bwprobe/models.h"
#include "bwprobe/schedule.h"
#include "topology/edit/edit.h"

enum {
    GPUS = 8,
    NODES_MAX = 2048,
    SEEDS = 3,
    PARTS_MAX = 4,
    COMPARED = 2 /* the part at which other ways to fill the matrix are tried */
};

static const struct schedule_timing nccl = {.alone_s = 0.2 + 2 * 1.6 * 0.02 + 0.005,
                                            .together_s = 0.2 + 2 * 1.6 * 0.04 + 0.02};

static struct schedule_shape shape_of (int nodes)
{
    static int first[NODES_MAX + 1];

    for (int i = 0; i <= nodes; i++)
        first[i] = i * GPUS;
    return (struct schedule_shape){.n = nodes * GPUS, .nodes = nodes, .first = first};
}

/* ---- times ---- */

static double share (const struct schedule_plan *p, enum schedule_kind kind)
{
    return p->part[kind].rounds
               ? (double) p->part[kind].taken / (double) p->part[kind].rounds
               : 1;
}

static void bench_times (void)
{
    static const int nodes[] = {8, 32, 64, 128, 256, 512, 1024, 2048};
    static const double budget[] = {600, 3600};
    struct table *t = TABLE_OF ("GPUs", "<fabric", "budget s", "one pass s",
                                "node pairs %", "rails %", "all GPUs %");

    for (size_t i = 0; i < sizeof nodes / sizeof *nodes && t; i++)
        for (int b = 0; b < 2; b++)
            for (int levelled = 1; levelled >= 0; levelled--) {
                struct schedule_shape s = shape_of (nodes[i]);
                struct schedule_plan p =
                    schedule_plan_make (&s, &nccl, 0, levelled, 1, budget[b]);

                table_cell (t, "%d", s.n);
                table_cell (t, levelled ? "non-blocking" : "blocking");
                table_cell (t, "%.0f", budget[b]);
                table_cell (t, "%.0f", p.seconds);
                table_cell (t, "%.0f",
                            100 * share (&p, levelled ? SCHEDULE_RAILS_TOGETHER
                                                      : SCHEDULE_NODES));
                table_cell (t, "%.0f", 100 * share (&p, SCHEDULE_RAILS_TOGETHER));
                table_cell (t, "%.0f",
                            100 *
                                share (&p, levelled ? SCHEDULE_TOGETHER : SCHEDULE_REST));
            }
    if (t)
        table_print (t, stdout);
    table_destroy (t);
}

/* ---- losses ---- */

/* Rates of node pairs, GB/s, [nodes * nodes], with the document that they go into. */
struct rates {
    int nodes;
    json_t *doc;
    float *v;
    float *error; /* of estimates, NaN elsewhere; NULL: there are none */
};

/* What is seen of a cluster and how the rest is filled. */
enum fill { LEFT_OUT, MEDIANS, AS_BWPROBE, FILLS };

/* Scratch. */
static char folder[] = "/tmp/linkwise-bench-XXXXXX";

static struct topology_cluster *cluster_of (const struct rates *r)
{
    struct topology_document d = {.doc = json_deep_copy (r->doc)};
    json_t *inter = json_object_get (json_object_get (d.doc, "links"), "inter");
    size_t cells = (size_t) r->nodes * (size_t) r->nodes;
    float *v = topology_matrix_room (r->nodes);
    char path[sizeof folder + 32];
    struct topology_cluster *c = NULL;
    struct error err = {""};

    snprintf (path, sizeof path, "%s/cluster.json", folder);
    memcpy (v, r->v, cells * sizeof *v);
    if (r->error) {
        float *error = topology_matrix_room (r->nodes);

        memcpy (error, r->error, cells * sizeof *error);
        if (topology_document_matrix (&d, inter, "estimate_error", error, r->nodes, false,
                                      &err) != ST_OK)
            die (&err);
    }
    if (topology_document_matrix (&d, inter, "bandwidth_gb_per_s", v, r->nodes, false,
                                  &err) != ST_OK ||
        topology_document_write (&d, path, &err) != ST_OK ||
        topology_cluster_read (path, &c, NULL, &err) != ST_OK)
        die (&err);
    topology_document_release (&d);
    return c;
}

/* The off-diagonal rates of a cluster, GB/s. */
static int rates_of (const struct topology_cluster *c, float *v, bool square)
{
    int n = 0;

    for (int i = 0; i < c->n_nodes; i++)
        for (int j = 0; j < c->n_nodes; j++) {
            double x = i == j ? NAN : topology_matrix_at (&c->inter.bytes_per_s, i, j);

            if (square || x > 0)
                v[n++] = (float) (x * 1e-9);
        }
    return n;
}

/* A preset; "measured" has the rates of the bundled cluster of 17 measured nodes, drawn at
 * random for each pair of nodes. */
static void draw (const char *preset, int nodes, int seed, struct rates *r)
{
    struct rng rng = {(uint64_t) seed};
    bool measured = strcmp (preset, "measured") == 0;
    struct topology_synth s = topology_synth_default ();
    struct topology_document d = {0};
    struct topology_cluster *c = NULL;
    struct error err = {""};
    static float known[17 * 17];
    char path[sizeof folder + 32];

    snprintf (path, sizeof path, "%s/drawn.json", folder);
    s.preset = measured ? "calm" : preset;
    s.nodes = nodes;
    s.gpus = GPUS;
    s.seed = (uint64_t) seed;
    if (topology_synthesize (&s, &d, NULL, &err) != ST_OK ||
        topology_document_write (&d, path, &err) != ST_OK ||
        topology_cluster_read (path, &c, NULL, &err) != ST_OK)
        die (&err);
    topology_document_release (&d);
    *r = (struct rates){nodes, json_deep_copy (c->doc), topology_matrix_room (nodes),
                        NULL};
    rates_of (c, r->v, true);
    topology_cluster_destroy (c);
    if (!measured)
        return;
    if (topology_cluster_read ("examples/clusters/h100-17.json", &c, NULL, &err) != ST_OK)
        die (&err);

    int n = rates_of (c, known, false);

    for (int i = 0; i < nodes; i++)
        for (int j = 0; j < i; j++)
            r->v[i * nodes + j] = r->v[j * nodes + i] = known[rng_below (&rng, n)];
    topology_cluster_destroy (c);
}

/* What the schedule leaves unmeasured when it takes a part of the rounds between nodes. */
static void sample (const struct rates *full, double part, float *out)
{
    struct schedule_shape s = shape_of (full->nodes);
    struct schedule_stride stride[3 * NODES_MAX / 2 + 1];
    size_t n = (size_t) full->nodes;
    long wanted = (long) ceil (part * (double) schedule_rounds (&s, SCHEDULE_NODES, 0));
    struct schedule_pair *pair = malloc ((size_t) schedule_pairs_max (&s) * sizeof *pair);

    s.stride = stride;
    s.n_strides = schedule_strides (full->nodes, 1, stride);
    for (size_t i = 0; i < n * n; i++)
        out[i] = NAN;
    for (long k = 0; k < wanted && pair; k++)
        for (int i = schedule_round (&s, SCHEDULE_NODES, 0, k, pair); i-- > 0;) {
            size_t a = (size_t) (pair[i].a / GPUS), b = (size_t) (pair[i].b / GPUS);

            out[a * n + b] = full->v[a * n + b];
            out[b * n + a] = full->v[b * n + a];
        }
    free (pair);
}

/* What bwprobe writes for what was not seen: the low end of its best model, or of the median
 * the middle. */
static void fill (float *v, float *error, int n, enum fill how)
{
    struct models_link *link = malloc ((size_t) n * (size_t) n * sizeof *link), one;
    struct models_fit fit[2];
    struct models_trial t[2];
    struct error err = {""};
    int k = 0, best = 0;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (v[(size_t) i * (size_t) n + (size_t) j] > 0)
                link[k++] = (struct models_link){
                    i, j, (double) v[(size_t) i * (size_t) n + (size_t) j], 1};
    for (int m = 0; m < 2; m++)
        if (models_learn (link, k, m * n, &fit[m], &err) != ST_OK ||
            models_try (link, k, m * n, &t[m], &err) != ST_OK)
            die (&err);
    if (how == AS_BWPROBE && t[1].accepted && t[1].low > t[0].low)
        best = 1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float *x = &v[(size_t) i * (size_t) n + (size_t) j];

            error[(size_t) i * (size_t) n + (size_t) j] = NAN;
            one = (struct models_link){i, j, 1, 1};
            if (i == j || !isnan (*x) || (how != MEDIANS && !t[best].accepted))
                continue;
            *x = (float) (models_predict (&fit[best], &one) *
                          (how == MEDIANS ? 1 : t[best].low));
            error[(size_t) i * (size_t) n + (size_t) j] = (float) t[best].error_p90;
        }
    for (int m = 0; m < 2; m++)
        models_release (&fit[m]);
    free (link);
}

struct job {
    struct workload_model model;
    struct workload_job job;
    struct workload_profile profile;
};

/* Plan on one cluster, and price the plan on another. */
static double plan_and_price (const struct job *j, const struct topology_cluster *seen,
                              const struct topology_cluster *truth)
{
    struct mapper_problem p = {.model = &j->model,
                               .job = &j->job,
                               .profile = &j->profile,
                               .cluster = seen,
                               .axes = mapper_axes_free (),
                               .memory_limit_pct = 95};
    struct mapper_settings set = mapper_settings_default ();
    struct error err = {""};
    double step_s = 0.0;

    p.axes.tp = GPUS;
    /* So many nodes leave no time for every configuration: which ones are reached would count
     * for more than where their ranks are. */
    if (seen->n_nodes == NODES_MAX) {
        p.axes.pp = 16;
        p.axes.vpp = 2;
        p.axes.micro_batch = 1;
    }
    set.granularity = MAPPER_NODE;
    set.time_limit_s = 10;
    if (planned_step (&p, &set, truth, &step_s, &err) != ST_OK)
        die (&err);
    return step_s;
}

/* What one case loses when a part of it is seen, in % of the step of the plan made from all. */
struct loss {
    const char *preset, *model;
    int nodes;
    const double *part; /* [parts] */
    int parts;
    double worst[PARTS_MAX][FILLS]; /* over the seeds; NaN: not tried */
};

/* What is not written by bwprobe is tried at one part and seed: enough to show why not. */
static bool is_tried (const struct loss *l, int part, enum fill how, int seed)
{
    return how == AS_BWPROBE ||
           (seed == 1 && part == COMPARED && l->nodes < NODES_MAX && l->parts > COMPARED);
}

/* One drawn cluster of a case. */
static void lose (struct loss *l, int seed)
{
    struct job j = {.job = {.seq = 4096, .global_batch = 16 * l->nodes}};
    struct error err = {""};
    struct rates full, seen;
    float *errors;
    struct topology_cluster *truth;
    double best;

    if (workload_model_read (l->model, &j.model, NULL, &err) != ST_OK ||
        workload_profile_read (WORKLOAD_PROFILE_DEFAULT, &j.profile, NULL, &err) != ST_OK)
        die (&err);
    draw (l->preset, l->nodes, seed, &full);
    seen = full;
    seen.v = topology_matrix_room (l->nodes);
    errors = topology_matrix_room (l->nodes);
    truth = cluster_of (&full);
    best = plan_and_price (&j, truth, truth);
    for (int k = 0; k < l->parts; k++)
        for (int how = 0; how < FILLS; how++) {
            struct topology_cluster *c;

            if (!is_tried (l, k, (enum fill) how, seed))
                continue;
            sample (&full, l->part[k], seen.v);
            seen.error = how == LEFT_OUT ? NULL : errors;
            if (how != LEFT_OUT)
                fill (seen.v, errors, l->nodes, (enum fill) how);
            c = cluster_of (&seen);
            l->worst[k][how] =
                fmax (l->worst[k][how], 100 * (plan_and_price (&j, c, truth) / best - 1));
            topology_cluster_destroy (c);
        }
    topology_cluster_destroy (truth);
    topology_matrix_drop (seen.v);
    topology_matrix_drop (errors);
    topology_matrix_drop (full.v);
    json_decref (full.doc);
}

static void add_rows (struct table *t, const struct loss *l)
{
    for (int k = 0; k < l->parts; k++) {
        table_cell (t, "%d", l->nodes * GPUS);
        table_cell (t, "%s", l->preset);
        table_cell (t, "%.0f", 100 * l->part[k]);
        for (int how = FILLS; how-- > 0;)
            table_number (t, "%.2f", l->worst[k][how]);
    }
}

static void losses_of (struct table *t, struct loss *l)
{
    /* The largest takes the planner's whole time limit: one drawing must do. */
    int seeds = l->nodes == NODES_MAX ? 1 : SEEDS;

    for (int k = 0; k < PARTS_MAX; k++)
        for (int how = 0; how < FILLS; how++)
            l->worst[k][how] = NAN;
    for (int seed = 1; seed <= seeds; seed++)
        lose (l, seed);
    add_rows (t, l);
}

/* The part of the pairs of nodes that the usual budget sees at most GPUs. */
static double part_seen (bool levelled)
{
    struct schedule_shape s = shape_of (NODES_MAX);
    struct schedule_plan p = schedule_plan_make (&s, &nccl, 0, levelled, 1, 600);

    return share (&p, levelled ? SCHEDULE_RAILS_TOGETHER : SCHEDULE_NODES);
}

static void bench_losses (void)
{
    static const char *const preset[] = {"calm", "busy", "failing", "mixed", "measured"};
    static const struct {
        int nodes;
        const char *model;
    } cases[] = {{16, "llama-2-70b"},
                 {32, "llama-3-70b"},
                 {45, "llama-3-70b"},
                 {64, "llama-3-70b"},
                 {NODES_MAX, "llama-3-405b"}};
    /* More and less than what the usual budget sees at most GPUs, on the fabric on which that is
     * less. */
    const double part[] = {0.75, fmin (part_seen (false), part_seen (true)), 0.4, 0.25};
    struct table *t = TABLE_OF ("GPUs", "<cluster", "seen %", "bwprobe: loss %",
                                "median: loss %", "left out: loss %");

    for (size_t i = 0; i < sizeof cases / sizeof *cases && t; i++)
        for (size_t k = 0; k < sizeof preset / sizeof *preset; k++) {
            bool largest = cases[i].nodes == NODES_MAX;
            struct loss l = {.preset = preset[k],
                             .model = cases[i].model,
                             .nodes = cases[i].nodes,
                             .part = largest ? part + 1 : part,
                             .parts = largest ? 2 : PARTS_MAX};

            /* Where every plan takes the planner's whole time, a few cases must do. */
            if ((strcmp (l.preset, "mixed") == 0 && l.nodes != 32 && !largest) ||
                (largest && strcmp (l.preset, "measured") == 0))
                continue;
            losses_of (t, &l);
        }
    if (t)
        table_print (t, stdout);
    table_destroy (t);
}

/* The scratch folder holds what cluster_of and draw write. */
static void clean_up (void)
{
    static const char *const name[] = {"cluster.json", "cluster.0.npy", "drawn.json",
                                       "drawn.0.npy"};
    char path[sizeof folder + 32];

    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        snprintf (path, sizeof path, "%s/%s", folder, name[i]);
        unlink (path);
    }
    rmdir (folder);
}

int main (void)
{
    if (!mkdtemp (folder)) {
        perror (folder);
        return 1;
    }
    bench_times ();
    putchar ('\n');
    bench_losses ();
    clean_up ();
    return 0;
}
