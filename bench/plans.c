/* Whole `linkwise plan` commands on drawn clusters: the proven gap, time and memory, over
 * presets, sizes and seeds, each row printed as soon as it is known; then how time grows with
 * the number of GPUs.
 *
 *     make bench-plans                 8 to 1,024 GPUs, one seed; growth to 4,096
 *     LINKWISE_LONG=1 make bench-plans     to 16,384 GPUs, five seeds
 *     build/bench/plans LINKWISE PRESET GPUS [SEED]    one row
 *     build/bench/plans LINKWISE growth
 *
 * Each plan is a process of its own.  Times are wall clock and processor seconds; a plan
 * stops after LIMIT_S and is then not proven. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/progress.h"
#include "base/stats.h"

#define LIMIT_S "60"
#define MAX_SEEDS 5

static const char *const presets[] = {"calm", "busy", "failing", "mixed"};

/* What is planned on how many GPUs. */
struct row {
    int gpus;
    const char *model, *seq, *batch;
    bool only_long;
};

static const struct row rows[] = {
    {8, "llama-2-7b", "4096", "128", false},
    {16, "llama-2-13b", "4096", "256", false},
    {64, "llama-2-13b", "4096", "256", false},
    {64, "llama-2-70b", "4096", "512", false},
    {128, "llama-2-70b", "4096", "1024", false},
    {512, "llama-2-70b", "4096", "1024", false},
    {1024, "llama-3-70b", "8192", "2048", false},
    {1024, "llama-3-405b", "8192", "1024", true},
    {4096, "llama-3-405b", "8192", "2048", true},
    {16384, "llama-3-405b", "8192", "4096", true},
};

struct figures {
    double gap, step_s, wall_s, cpu_s, mib;
    int tp, pp, dp;
    bool proven, failed;
};

static const char *linkwise = "build/linkwise";

/* Run a command with its output in a file (or dropped). */
static bool run (char *const argv[], const char *out, struct figures *f)
{
    double start = clock_s ();
    struct rusage use;
    int state;
    pid_t child = fork ();

    if (child == 0) {
        int fd = open (out, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        if (fd < 0 || dup2 (fd, 1) < 0)
            _exit (127);
        execv (argv[0], argv);
        _exit (127);
    }
    if (child < 0 || wait4 (child, &state, 0, &use) != child)
        return false;
    f->wall_s = clock_s () - start;
    f->cpu_s = (double) (use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
               1e-6 * (double) (use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    f->mib = (double) use.ru_maxrss / 1024;
    return WIFEXITED (state) && WEXITSTATUS (state) == 0;
}

static bool draw (const char *preset, int gpus, int seed, const char *path)
{
    char nodes[16], number[16];
    struct figures ignored;
    char *argv[] = {(char *) linkwise,
                    "cluster",
                    "synth",
                    (char *) preset,
                    "--nodes",
                    nodes,
                    "--gpus",
                    "8",
                    "--gpu-type",
                    "h100-sxm5-80g",
                    "--seed",
                    number,
                    "-o",
                    (char *) path,
                    NULL};

    snprintf (nodes, sizeof nodes, "%d", gpus / 8);
    snprintf (number, sizeof number, "%d", seed);
    return run (argv, "/dev/null", &ignored);
}

static struct figures plan (const struct row *r, const char *cluster, const char *out)
{
    struct figures f = {0};
    char *argv[] = {
        (char *) linkwise, "plan",          (char *) cluster, (char *) r->model,
        "--seq",           (char *) r->seq, "--global-batch", (char *) r->batch,
        "--time-limit",    LIMIT_S,         "--json",         NULL};
    struct error err;
    json_t *doc = NULL, *part;

    f.failed = !run (argv, out, &f) || json_read (out, &doc, &err) != ST_OK;
    if (f.failed)
        return f;
    part = json_object_get (doc, "estimate");
    f.gap = 100 * json_number_value (json_object_get (part, "gap"));
    f.step_s = json_number_value (json_object_get (part, "step_s"));
    part = json_object_get (doc, "search");
    f.proven = json_is_true (json_object_get (part, "proven"));
    part = json_object_get (doc, "degrees");
    f.tp = (int) json_integer_value (json_object_get (part, "tp"));
    f.pp = (int) json_integer_value (json_object_get (part, "pp"));
    f.dp = (int) json_integer_value (json_object_get (part, "dp"));
    json_decref (doc);
    return f;
}

/* Draw a cluster and plan on it. */
static struct figures drawn_plan (const struct row *r, const char *preset, int seed,
                                  const char *folder)
{
    char cluster[512], out[512];
    struct figures f;

    snprintf (cluster, sizeof cluster, "%s/cluster.json", folder);
    snprintf (out, sizeof out, "%s/plan.json", folder);
    if (!draw (preset, r->gpus, seed, cluster)) {
        fprintf (stderr, "bench: %s cluster synth failed\n", linkwise);
        exit (1);
    }
    f = plan (r, cluster, out);
    if (f.failed) {
        fprintf (stderr, "bench: no plan for %s, %d GPUs, seed %d\n", preset, r->gpus,
                 seed);
        exit (1);
    }
    return f;
}

/* One preset and size over its seeds: the median and the worst. */
static void measure (const struct row *r, const char *preset, int first, int seeds,
                     const char *folder)
{
    double gap[MAX_SEEDS], wall[MAX_SEEDS], cpu[MAX_SEEDS], mib = 0;
    char degrees[40];
    struct figures f = {0};
    int proven = 0;

    for (int k = 0; k < seeds; k++) {
        f = drawn_plan (r, preset, first + k, folder);
        gap[k] = f.gap;
        wall[k] = f.wall_s;
        cpu[k] = f.cpu_s;
        mib = f.mib > mib ? f.mib : mib;
        proven += f.proven;
    }
    stats_sort (gap, seeds);
    stats_sort (wall, seeds);
    stats_sort (cpu, seeds);
    snprintf (degrees, sizeof degrees, "%d x %d x %d", f.tp, f.pp, f.dp);
    printf ("%-8s %6d  %-13s %13s %7.3f %7.3f %5d/%d %6.2f %6.2f %6.2f %5.0f\n", preset,
            r->gpus, r->model, degrees, gap[seeds / 2], gap[seeds - 1], proven, seeds,
            wall[seeds / 2], wall[seeds - 1], cpu[seeds / 2], mib);
    fflush (stdout);
}

/* Processor seconds of one job on ever more GPUs, and the exponent of a power that goes
 * through the first and the last. */
static void growth (int most, const char *folder)
{
    struct row r = {1024, "llama-3-405b", "8192", "4096", false};
    struct figures f = {0};
    double first = 0;

    printf ("\n%-8s %6s  %-13s %7s %6s %6s %5s  %s\n", "growth", "GPUs", "model", "gap %",
            "s", "CPU s", "MiB", "exponent from 1,024");
    for (; r.gpus <= most; r.gpus *= 2) {
        f = drawn_plan (&r, "calm", 1, folder);
        if (r.gpus == 1024)
            first = f.cpu_s;
        printf ("%-8s %6d  %-13s %7.3f %6.2f %6.2f %5.0f", "calm", r.gpus, r.model, f.gap,
                f.wall_s, f.cpu_s, f.mib);
        if (r.gpus > 1024)
            printf ("  %.2f", log (f.cpu_s / first) / log (r.gpus / 1024.0));
        printf ("\n");
        fflush (stdout);
    }
}

/* Is the row asked for?  Without a preset and a number of GPUs, the shorter ones are. */
static bool asked (const struct row *r, const char *preset, int argc, char **argv,
                   bool all)
{
    if (argc > 3)
        return atoi (argv[3]) == r->gpus && strstr (argv[2], preset) != NULL;
    return argc <= 2 && (all || !r->only_long);
}

int main (int argc, char **argv)
{
    bool all = getenv ("LINKWISE_LONG") != NULL;
    const char *tmp = getenv ("TMPDIR");
    int first = argc > 4 ? atoi (argv[4]) : 1, seeds = all && argc <= 4 ? MAX_SEEDS : 1;
    char folder[256], command[300];

    if (argc > 1)
        linkwise = argv[1];
    snprintf (folder, sizeof folder, "%s/linkwise-bench.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp (folder))
        return 1;
    if (argc != 3)
        printf ("%-8s %6s  %-13s %13s %7s %7s %7s %6s %6s %6s %5s\n", "preset", "GPUs",
                "model", "tp x pp x dp", "gap %", "worst", "proven", "s", "worst",
                "CPU s", "MiB");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof presets / sizeof *presets; k++)
            if (asked (&rows[i], presets[k], argc, argv, all))
                measure (&rows[i], presets[k], first, seeds, folder);
    if (argc <= 3)
        growth (all || argc == 3 ? 16384 : 4096, folder);
    snprintf (command, sizeof command, "rm -rf '%s'", folder);
    return system (command) == 0 ? 0 : 1;
}
