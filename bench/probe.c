/* bwprobe's schedule for clusters that nobody has at hand: how long it takes, and what a plan
 * made from a sampled matrix loses against one made from the full one.
 *
 *     make bench
 *
 * Times are the schedule's own, from what a pair and a round are assumed to take over NCCL:
 * 0.2 s for a communicator of two and the transport's default measuring time.  They are
 * simulated, not measured on GPUs.
 *
 * Losses: node pairs get the rates of the bundled cluster of 17 measured nodes, drawn at random
 * for each direction.  Of them the schedule sees a part of its rounds; the others are unmeasured
 * (a links file whose held-out error refuses to estimate them) or the median of what was seen
 * (one whose error allows it).  All plans are priced on the full matrix.  The first table says
 * which part the budget sees: below 16,384 GPUs all of it, so that nothing is lost.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/rng.h"
#include "base/stats.h"
#include "base/text.h"
#include "bwprobe/schedule.h"
#include "mapper/mapper.h"

enum { GPUS = 8, NODES_MAX = 2048 };

static const struct schedule_timing nccl = {.alone_s = 0.2 + 2 * 1.6 * 0.02 + 0.005,
                                            .together_s = 0.2 + 2 * 1.6 * 0.04 + 0.02};

static void die (const struct error *err)
{
    fprintf (stderr, "bench: %s\n", err->text);
    exit (1);
}

static struct schedule_shape shape_of (int nodes)
{
    static int first[NODES_MAX + 1];

    for (int i = 0; i <= nodes; i++)
        first[i] = i * GPUS;
    return (struct schedule_shape){nodes * GPUS, nodes, first};
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
    static const char *const header[] = {
        "GPUs",         "<fabric", "budget s",   "one pass s",
        "node pairs %", "rails %", "all GPUs %", NULL};
    static const int nodes[] = {8, 32, 64, 128, 256, 512, 1024, 2048};
    static const double budget[] = {600, 3600};
    struct table *t = table_create (header);

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

/* Measured rates of the bundled cluster, bytes/s. */
static int measured_rates (double *rate, int most)
{
    struct topology_cluster *c;
    struct error err = {""};
    int n = 0;

    if (topology_cluster_read ("examples/clusters/h100-17.json", &c, NULL, &err) != ST_OK)
        die (&err);
    for (int i = 0; i < c->n_nodes; i++)
        for (int j = 0; j < c->n_nodes && n < most; j++) {
            double x = i == j
                           ? NAN
                           : c->inter.bytes_per_s
                                     .v[(size_t) i * (size_t) c->n_nodes + (size_t) j] *
                                 c->inter.bytes_per_s.scale;

            if (x > 0)
                rate[n++] = x;
        }
    topology_cluster_destroy (c);
    return n;
}

static struct topology_cluster *cluster_of (const double *rate, int nodes)
{
    json_t *rows = json_array (), *list = json_array (), *doc;
    struct topology_cluster *c;
    struct error err = {""};

    for (int i = 0; i < nodes; i++) {
        json_t *row = json_array ();
        char name[16];

        for (int j = 0; j < nodes; j++) {
            double x = rate[i * nodes + j];

            json_array_append_new (row, i == j || isnan (x) ? json_null ()
                                                            : json_real (x * 1e-9));
        }
        json_array_append_new (rows, row);
        snprintf (name, sizeof name, "n%d", i);
        json_array_append_new (list, json_pack ("{s:s, s:i, s:s}", "name", name, "gpus",
                                                GPUS, "gpu_type", "h100-sxm5-80g"));
    }
    doc = json_pack ("{s:i, s:s, s:o, s:{s:{s:f, s:f}, s:{s:o, s:f}}}", "version", 1,
                     "name", "bench", "nodes", list, "links", "intra",
                     "bandwidth_gb_per_s", 370.0, "latency_us", 8.0, "inter",
                     "bandwidth_gb_per_s", rows, "latency_us", 12.0);
    if (topology_cluster_from_json (doc, "bench", NULL, &c, NULL, &err) != ST_OK)
        die (&err);
    json_decref (doc);
    return c;
}

/* What the schedule's first kind leaves unmeasured when it takes a part of its rounds. */
static void sample (const double *full, int nodes, double part, struct rng *r,
                    double *out)
{
    struct schedule_shape s = shape_of (nodes);
    long rounds = schedule_rounds (&s, SCHEDULE_NODES, 0), taken = 0,
         wanted = (long) ceil (part * (double) rounds);
    struct schedule_pair *pair = malloc ((size_t) schedule_pairs_max (&s) * sizeof *pair);

    for (int i = 0; i < nodes * nodes; i++)
        out[i] = NAN;
    for (long k = 0; k < rounds && pair; k++) {
        if (rng_unit (r) * (double) (rounds - k) >= (double) (wanted - taken))
            continue;
        taken++;
        for (int i = schedule_round (&s, SCHEDULE_NODES, 0, k, pair); i-- > 0;) {
            int a = pair[i].a / GPUS, b = pair[i].b / GPUS;

            out[a * nodes + b] = full[a * nodes + b];
            out[b * nodes + a] = full[b * nodes + a];
        }
    }
    free (pair);
}

/* The median of what was seen in place of what was not. */
static void fill (double *v, int n)
{
    double *known = malloc ((size_t) n * sizeof *known), median;
    int k = 0;

    for (int i = 0; i < n && known; i++)
        if (isfinite (v[i]))
            known[k++] = v[i];
    median = stats_median (known, k);
    for (int i = 0; i < n; i++)
        if (isnan (v[i]))
            v[i] = median;
    free (known);
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
    struct mapper_result r;
    struct mapper_info info;
    struct costmodel_estimate e;
    struct error err = {""};

    p.axes.tp = 8;
    set.granularity = MAPPER_NODE;
    set.time_limit_s = 20;
    if (mapper_search (&p, &set, &r, &info, &err) != ST_OK)
        die (&err);

    struct costmodel_problem price = {.model = &j->model,
                                      .job = &j->job,
                                      .config = &r.config,
                                      .profile = &j->profile,
                                      .cluster = truth,
                                      .layers = r.layers};

    if (costmodel_estimate (&price, r.gpu, true, &e, &err) != ST_OK)
        die (&err);
    free (e.unmeasured);
    mapper_result_release (&r);
    mapper_info_release (&info);
    return e.step_s;
}

static void bench_losses (void)
{
    static const char *const header[] = {
        "GPUs",           "<model", "seen %", "step s, full", "unmeasured: loss %",
        "median: loss %", NULL};
    static const struct {
        int nodes;
        const char *model;
    } cases[] = {
        {8, "llama-3-8b"}, {8, "gpt3-13b"}, {16, "llama-2-70b"}, {32, "llama-3-70b"}};
    static const double part[] = {0.75, 0.5, 0.25};
    static double rate[1024], full[NODES_MAX], seen[NODES_MAX];
    int n = measured_rates (rate, 1024);
    struct table *t = table_create (header);
    struct rng r = {1};

    for (size_t i = 0; i < sizeof cases / sizeof *cases && t; i++) {
        int nodes = cases[i].nodes;
        struct job j = {.job = {.seq = 4096, .global_batch = 1024}};
        struct error err = {""};
        struct topology_cluster *truth;
        double best;

        if (workload_model_read (cases[i].model, &j.model, NULL, &err) != ST_OK ||
            workload_profile_read (WORKLOAD_PROFILE_DEFAULT, &j.profile, NULL, &err) !=
                ST_OK)
            die (&err);
        for (int k = 0; k < nodes * nodes; k++)
            full[k] = rate[rng_below (&r, n)];
        truth = cluster_of (full, nodes);
        best = plan_and_price (&j, truth, truth);
        for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
            double loss[2];

            sample (full, nodes, part[k], &r, seen);
            for (int m = 0; m < 2; m++) {
                struct topology_cluster *c;

                if (m == 1)
                    fill (seen, nodes * nodes);
                c = cluster_of (seen, nodes);
                loss[m] = plan_and_price (&j, c, truth) / best - 1;
                topology_cluster_destroy (c);
            }
            table_cell (t, "%d", nodes * GPUS);
            table_cell (t, "%s", cases[i].model);
            table_cell (t, "%.0f", 100 * part[k]);
            table_cell (t, "%.4f", best);
            table_cell (t, "%.2f", 100 * loss[0]);
            table_cell (t, "%.2f", 100 * loss[1]);
        }
        topology_cluster_destroy (truth);
    }
    if (t)
        table_print (t, stdout);
    table_destroy (t);
}

int main (void)
{
    bench_times ();
    putchar ('\n');
    bench_losses ();
    return 0;
}
