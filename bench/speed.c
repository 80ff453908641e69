/* Speed of the pieces and of whole searches, medians of several runs, with units.
 *
 *     make bench
 *
 * Machines are noisy: compare numbers of one run with each other.  Pieces are timed by
 * processor time, whole plans by the clock. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/progress.h"
#include "base/rng.h"
#include "base/stats.h"
#include "base/text.h"
#include "bench/bench.h"
#include "mapper/mapper.h"
#include "topology/edit/edit.h"

#define RUNS 7

static void add_row (struct table *t, const char *what, int digits, double value,
                     const char *unit)
{
    table_cell (t, "%s", what);
    table_cell (t, "%.*f", digits, value);
    table_cell (t, "%s", unit);
}

struct job {
    struct topology_cluster *cluster;
    struct workload_model model;
    struct workload_job job;
    struct workload_profile profile;
};

static struct job job_of (const char *cluster, const char *model, int seq, int batch)
{
    struct job j = {.job = {.seq = seq, .global_batch = batch}};
    struct error err;

    if (topology_cluster_read (cluster, &j.cluster, NULL, &err) != ST_OK ||
        workload_model_read (model, &j.model, NULL, &err) != ST_OK ||
        workload_profile_read (WORKLOAD_PROFILE_DEFAULT, &j.profile, NULL, &err) != ST_OK)
        die (&err);
    return j;
}

static void bench_memory (struct table *t)
{
    struct job j = job_of ("1x1 h100-sxm5-80g", "llama-2-70b", 4096, 1024);
    struct workload_config c = {
        .deg = {8, 4, 4, 1, 1, 8, 1}, .micro_batch = 1, .zero = 1};
    struct memest_problem p = {&j.model, &j.job, &c, &j.profile, MEMEST_LINKWISE, 0, 0};
    struct memest_stage s;
    double rate[RUNS], sum = 0;
    const int n = 1000000;

    for (int run = 0; run < RUNS; run++) {
        double start = cpu_s ();

        for (int i = 0; i < n; i++) {
            struct workload_stage held =
                workload_stage_guess (&j.model, &c, i & 3, 18 + (i & 7));

            memest_stage (&p, i & 3, &held, &s);
            sum += s.peak_bytes;
        }
        rate[run] = n / (cpu_s () - start) / 1e6;
    }
    add_row (t, "memory estimates, one stage each", 2, stats_median (rate, RUNS),
             sum > 0 ? "million/s" : "");
    topology_cluster_destroy (j.cluster);
}

/* A drawn cluster of 8-GPU nodes that reach 380 GB/s together. */
static struct topology_cluster *drawn (const char *preset, int nodes)
{
    struct topology_synth s = topology_synth_default ();
    struct topology_document d = {0};
    struct topology_cluster *c;
    struct error err;

    s.preset = preset;
    s.nodes = nodes;
    if (topology_synthesize (&s, &d, NULL, &err) != ST_OK)
        die (&err);
    json_object_set_new (json_object_get (json_object_get (d.doc, "links"), "inter"),
                         "node_gb_per_s", json_real (380));
    if (topology_cluster_from_json (d.doc, preset, NULL, &c, NULL, &err) != ST_OK)
        die (&err);
    topology_document_release (&d);
    return c;
}

/* Mean time of exchanging `run` GPUs in a row with others, us. */
static double exchange_us (struct costmodel_state *s, struct rng *r, int run)
{
    enum { MOVES = 4000 };
    double start = cpu_s ();

    for (int i = 0; i < MOVES; i++) {
        int units = 1024 / run, x = rng_below (r, units), a[8], b[8];
        int y = (x + 1 + rng_below (r, units - 1)) % units;

        for (int k = 0; k < run; k++) {
            a[k] = run * x + k;
            b[k] = run * y + k;
        }
        costmodel_state_exchange (s, a, b, run);
        if (run < 8) /* or TP groups end up all over the place */
            costmodel_state_exchange (s, a, b, run);
    }
    return (cpu_s () - start) / MOVES / (run < 8 ? 2 : 1) * 1e6;
}

/* Evaluate and change a placement of 1,024 GPUs whose links all differ: pp 8, dp 16 for tp
 * 8, whose groups fill nodes, and pp 8, dp 32 for tp 4. */
static void bench_prices (struct table *t)
{
    struct job j = job_of ("1x1 h100-sxm5-80g", "llama-3-70b", 8192, 2048);
    struct workload_config c = {.deg = {8, 8, 16, 1, 1, 8, 1},
                                .micro_batch = 1,
                                .zero = 1,
                                .sequence_parallel = true},
                           half = c;
    int layers[8], gpu[1024];
    struct costmodel_problem p = {.model = &j.model,
                                  .job = &j.job,
                                  .config = &c,
                                  .profile = &j.profile,
                                  .layers = layers},
                             q = p;
    struct costmodel_state *s, *of_half;
    struct costmodel_estimate e;
    struct rng r = {1};
    struct error err;
    double full[RUNS], node[RUNS], group[RUNS], single[RUNS];

    topology_cluster_destroy (j.cluster);
    j.cluster = drawn ("calm", 128);
    p.cluster = q.cluster = j.cluster;
    half.deg.tp = half.deg.etp = 4;
    half.deg.dp = 32;
    q.config = &half;
    workload_layers_even (80, 8, layers);
    for (int i = 0; i < 1024; i++)
        gpu[i] = i;
    if (costmodel_state_create (&p, gpu, 1024, &s, &err) != ST_OK ||
        costmodel_state_create (&q, gpu, 1024, &of_half, &err) != ST_OK)
        die (&err);
    for (int run = 0; run < RUNS; run++) {
        double start = cpu_s ();

        for (int i = 0; i < 20; i++) {
            if (costmodel_estimate (&p, gpu, true, &e, &err) != ST_OK)
                die (&err);
            free (e.unmeasured);
        }
        full[run] = (cpu_s () - start) / 20 * 1e3;
        node[run] = exchange_us (s, &r, 8);
        group[run] = exchange_us (of_half, &r, 4);
        single[run] = exchange_us (s, &r, 1);
    }
    add_row (t, "price of a placement, 1,024 GPUs, from scratch", 3,
             stats_median (full, RUNS), "ms");
    add_row (t, "price after exchanging two nodes (TP groups of 8)", 2,
             stats_median (node, RUNS), "us");
    add_row (t, "price after exchanging two half nodes (TP groups of 4)", 2,
             stats_median (group, RUNS), "us");
    add_row (t, "price after exchanging two GPUs of such groups of 8", 2,
             stats_median (single, RUNS), "us");
    costmodel_state_destroy (s);
    costmodel_state_destroy (of_half);
    topology_cluster_destroy (j.cluster);
}

static void bench_schedule (struct table *t)
{
    enum { P = 64, M = 4096 };
    static double f[P], b[P], x[P], end[P], work[COSTMODEL_SCHEDULE_WORK (P, 1)];
    struct costmodel_pipeline p = {P, M, 1, f, b, NULL, x, x, false};
    double skipped[RUNS], played[RUNS];
    struct rng r = {1};

    for (int k = 0; k < P; k++) {
        f[k] = 1 + 0.1 * rng_unit (&r);
        b[k] = 2 + 0.1 * rng_unit (&r);
        x[k] = 0.01;
    }
    for (int run = 0; run < RUNS; run++) {
        double start = cpu_s ();

        costmodel_schedule (SCHEDULE_1F1B, &p, true, end, work);
        skipped[run] = (cpu_s () - start) * 1e3;
        start = cpu_s ();
        costmodel_schedule (SCHEDULE_1F1B, &p, false, end, work);
        played[run] = (cpu_s () - start) * 1e3;
    }
    add_row (t, "1F1B, 64 stages, 4,096 micro-batches, periods skipped", 3,
             stats_median (skipped, RUNS), "ms");
    add_row (t, "the same played out", 3, stats_median (played, RUNS), "ms");
}

/* 256 nodes of 8 GPUs whose pairs differ by a few per cent, every tenth by a third. */
static void write_uneven (const char *file)
{
    FILE *f = fopen (file, "w");
    struct rng r = {1};

    if (!f)
        die (&(struct error){"no file for the uneven cluster"});
    fprintf (f, "{\"version\":1,\"name\":\"uneven\",\"nodes\":[");
    for (int i = 0; i < 256; i++)
        fprintf (f, "%s{\"name\":\"n%d\",\"gpus\":8,\"gpu_type\":\"h100-sxm5-80g\"}",
                 i ? "," : "", i);
    fprintf (f, "],\"links\":{\"intra\":{\"bandwidth_gb_per_s\":370,\"latency_us\":8},"
                "\"inter\":{\"latency_us\":12,\"node_gb_per_s\":380,"
                "\"bandwidth_gb_per_s\":[");
    for (int i = 0; i < 256; i++)
        for (int k = 0; k < 256; k++)
            fprintf (f, "%s%.2f%s",
                     k   ? ","
                     : i ? ",["
                         : "[",
                     (rng_below (&r, 10) ? 48 : 32) * (0.97 + 0.06 * rng_unit (&r)),
                     k == 255 ? "]" : "");
    fprintf (f, "]}}}\n");
    fclose (f);
}

static void bench_plan (struct table *t, const char *name, const char *cluster,
                        const char *model, int seq, int batch, struct mapper_axes axes)
{
    struct job j = job_of (cluster, model, seq, batch);
    struct mapper_problem p = {.model = &j.model,
                               .job = &j.job,
                               .profile = &j.profile,
                               .cluster = j.cluster,
                               .axes = axes,
                               .memory_limit_pct = 95};
    struct mapper_settings s = mapper_settings_default ();
    double seconds[RUNS], gap = 0;
    char what[96];

    for (int run = 0; run < RUNS; run++) {
        struct mapper_result r;
        struct mapper_info info;
        struct error err;
        double start = clock_s ();

        if (mapper_search (&p, &s, &r, &info, &err) != ST_OK)
            die (&err);
        seconds[run] = clock_s () - start;
        gap = 100 * (r.estimate.step_s / r.lower_bound_s - 1);
        mapper_result_release (&r);
        mapper_info_release (&info);
    }
    snprintf (what, sizeof what, "plan: %s", name);
    add_row (t, what, 3, stats_median (seconds, RUNS), "s");
    add_row (t, "   its gap", 2, gap, "%");
    topology_cluster_destroy (j.cluster);
}

int main (void)
{
    static const char uneven[] = "build/bench/uneven.json";
    struct table *t = TABLE_OF ("<measured", "median", "<unit");
    struct mapper_axes axes = mapper_axes_free ();
    struct rusage use;

    bench_memory (t);
    bench_prices (t);
    bench_schedule (t);
    bench_plan (t, "llama-2-70b on 17 measured nodes, 136 GPUs",
                "examples/clusters/h100-17.json", "llama-2-70b", 4096, 1024, axes);
    bench_plan (t, "llama-3-70b on 1,024 GPUs, all alike",
                "128x8 h100-sxm5-80g intra:370 inter:48", "llama-3-70b", 8192, 2048,
                axes);
    axes.tp = 4;
    axes.pp = 8;
    axes.dp = 64;
    axes.micro_batch = axes.zero = axes.sequence_parallel = 1;
    axes.recompute = RECOMPUTE_SELECTIVE;
    write_uneven (uneven);
    bench_plan (t, "all axes fixed, as bind does, 2,048 GPUs, uneven pairs", uneven,
                "llama-2-70b", 4096, 2048, axes);
    remove (uneven);
    getrusage (RUSAGE_SELF, &use);
    add_row (t, "peak memory of all of this", 0, (double) use.ru_maxrss / 1024, "MiB");
    table_end (t, stdout);
    return 0;
}
