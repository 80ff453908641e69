/* Whole `linkwise plan` commands on drawn clusters: the proven gap, time and memory, over
 * presets, sizes and seeds.
 *
 *     make bench-plans                 8 to 1,024 GPUs, three seeds
 *     LINKWISE_LONG=1 make bench-plans     to 16,384 GPUs, five seeds
 *     build/bench/plans LINKWISE PRESET GPUS SEED    one row
 *
 * Each plan is a process of its own.  Times are wall clock and processor seconds; a plan
 * stops after LIMIT_S and is then not proven. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/progress.h"
#include "base/text.h"

#define LIMIT_S "60"
#define MAX_SEEDS 5

static const char *const presets[] = {"calm", "busy", "failing", "mixed"};

/* What is planned on how many GPUs, and the gap that issue 5 of the project asks for. */
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

static int by_value (const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

/* One preset and size over its seeds: the median and the worst. */
static void measure (struct table *t, const struct row *r, const char *preset, int first,
                     int seeds, const char *folder)
{
    double gap[MAX_SEEDS], wall[MAX_SEEDS], cpu[MAX_SEEDS], mib = 0;
    char cluster[512], out[512];
    struct figures f = {0};
    int proven = 0;

    snprintf (cluster, sizeof cluster, "%s/cluster.json", folder);
    snprintf (out, sizeof out, "%s/plan.json", folder);
    for (int k = 0; k < seeds; k++) {
        if (!draw (preset, r->gpus, first + k, cluster)) {
            fprintf (stderr, "bench: %s cluster synth failed\n", linkwise);
            exit (1);
        }
        f = plan (r, cluster, out);
        if (f.failed) {
            fprintf (stderr, "bench: no plan for %s, %d GPUs, seed %d\n", preset, r->gpus,
                     first + k);
            exit (1);
        }
        gap[k] = f.gap;
        wall[k] = f.wall_s;
        cpu[k] = f.cpu_s;
        mib = f.mib > mib ? f.mib : mib;
        proven += f.proven;
    }
    qsort (gap, (size_t) seeds, sizeof *gap, by_value);
    qsort (wall, (size_t) seeds, sizeof *wall, by_value);
    qsort (cpu, (size_t) seeds, sizeof *cpu, by_value);
    table_cell (t, "%s", preset);
    table_cell (t, "%d", r->gpus);
    table_cell (t, "%s", r->model);
    table_cell (t, "%d x %d x %d", f.tp, f.pp, f.dp);
    table_cell (t, "%.3f", gap[seeds / 2]);
    table_cell (t, "%.3f", gap[seeds - 1]);
    table_cell (t, "%d/%d", proven, seeds);
    table_cell (t, "%.2f", wall[seeds / 2]);
    table_cell (t, "%.2f", wall[seeds - 1]);
    table_cell (t, "%.2f", cpu[seeds / 2]);
    table_cell (t, "%.0f", mib);
}

int main (int argc, char **argv)
{
    static const char *const header[] = {"<preset", "GPUs",  "<model", "tp x pp x dp",
                                         "gap %",   "worst", "proven", "s",
                                         "worst",   "CPU s", "MiB",    NULL};
    bool all = getenv ("LINKWISE_LONG") != NULL;
    const char *tmp = getenv ("TMPDIR");
    struct table *t = table_create (header);
    char folder[256], command[300];

    if (argc > 1)
        linkwise = argv[1];
    snprintf (folder, sizeof folder, "%s/linkwise-bench.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp (folder))
        return 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof presets / sizeof *presets; k++) {
            bool asked = argc > 3 && atoi (argv[3]) == rows[i].gpus &&
                         strstr (argv[2], presets[k]) != NULL;

            if (argc > 3 ? !asked : rows[i].only_long && !all)
                continue;
            measure (t, &rows[i], presets[k], argc > 4 ? atoi (argv[4]) : 1,
                     argc > 4 ? 1
                     : all    ? 5
                              : 3,
                     folder);
        }
    table_print (t, stdout);
    table_destroy (t);
    snprintf (command, sizeof command, "rm -rf '%s'", folder);
    return system (command) == 0 ? 0 : 1;
}
