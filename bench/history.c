/* What measurements of thirty days are worth on the next one.
 *
 *     make bench
 *
 * A cluster of 16 nodes of four GPUs is drawn (tests/lib/days.h).  The plan is made from
 * the newest day's file alone, from the newest value of each link in all files, and from
 * their history with and without counters; each is priced on the true rates of the next
 * day.  No time is measured.  Printed are the step's losses against the plan made from the true
 * rates, and how often the history's plan is the better one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/stats.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/planned.h"
#include "tests/lib/days.h"
#include "topology/edit/edit.h"

enum { SEEDS = 8, DAYS = 30, GPUS = 4 };
enum seen { TRUTH, NEWEST, EACH, LINKS, HISTORY, SEEN };

static char folder[] = "/tmp/linkwise-bench-XXXXXX";

static struct topology_cluster *cluster_of (json_t *doc)
{
    struct topology_cluster *c;
    struct error err = {""};

    if (topology_cluster_from_json (doc, "days", NULL, &c, NULL, &err) != ST_OK)
        die (&err);
    json_decref (doc);
    return c;
}

/* The files of the last `days` days merged, those with counters or without. */
static struct topology_cluster *merged (int days, bool counters, double half_life_days)
{
    static char path[2 * DAYS][64];
    const char *file[2 * DAYS];
    struct topology_document d = {0};
    struct error err = {""};
    json_t *doc;
    int n = 0;

    for (int k = DAYS - days + 1; k <= DAYS; k++)
        for (int c = 0; c <= counters; c++) {
            snprintf (path[n], sizeof path[n], "%s/%s%d.json", folder, c ? "c" : "", k);
            file[n] = path[n];
            n++;
        }
    if (topology_merge (file, n, NULL, half_life_days * 86400, &d, NULL, &err) != ST_OK)
        die (&err);
    doc = json_incref (d.doc);
    topology_document_release (&d);
    return cluster_of (doc);
}

/* The step on the true rates of a plan made from others. */
static double step_of (const struct topology_cluster *seen,
                       const struct topology_cluster *truth)
{
    struct workload_model model;
    struct workload_profile profile;
    struct workload_job job = {.seq = 4096, .global_batch = 16};
    struct workload_config config = {.deg = {GPUS, 4, 4, 1, 1, GPUS, 1},
                                     .micro_batch = 1,
                                     .zero = 1,
                                     .sequence_parallel = true};
    struct mapper_problem p = {.model = &model,
                               .job = &job,
                               .profile = &profile,
                               .cluster = seen,
                               .memory_limit_pct = 95};
    struct mapper_settings set = mapper_settings_default ();
    struct error err = {""};
    double step_s = 0.0;

    p.axes = mapper_axes_of (&config);
    set.granularity = MAPPER_NODE;
    if (workload_model_read ("llama-2-13b", &model, NULL, &err) != ST_OK ||
        workload_profile_read (WORKLOAD_PROFILE_DEFAULT, &profile, NULL, &err) != ST_OK ||
        planned_step (&p, &set, truth, &step_s, &err) != ST_OK)
        die (&err);
    return step_s;
}

static void run (const struct days_weather *w, unsigned long seed, double step_s[SEEN])
{
    struct days d = days_begin (*w, DAYS, seed);
    struct topology_cluster *c[SEEN];

    if (!days_write (&d, DAYS, GPUS, folder))
        die (&(struct error){"cannot write the drawn days"});
    c[TRUTH] = cluster_of (days_links (&d, GPUS, true));
    c[NEWEST] = merged (1, false, 0);
    c[EACH] = merged (DAYS, false, 0);
    c[LINKS] = merged (DAYS, false, 7);
    c[HISTORY] = merged (DAYS, true, 7);
    for (int k = 0; k < SEEN; k++)
        step_s[k] = step_of (c[k], c[TRUTH]);
    for (int k = 0; k < SEEN; k++)
        topology_cluster_destroy (c[k]);
}

static void add_row (struct table *t, const char *name, const struct days_weather *w)
{
    double loss[SEEN][SEEDS], gain[SEEDS];
    int wins = 0, ties = 0;

    for (int s = 0; s < SEEDS; s++) {
        double step_s[SEEN];

        run (w, (unsigned long) s + 1, step_s);
        for (int k = 0; k < SEEN; k++)
            loss[k][s] = 100 * (step_s[k] / step_s[TRUTH] - 1);
        gain[s] = 100 * (step_s[NEWEST] / step_s[HISTORY] - 1);
        wins += step_s[HISTORY] < step_s[NEWEST] * (1 - 1e-6);
        ties += fabs (step_s[HISTORY] - step_s[NEWEST]) <= step_s[NEWEST] * 1e-6;
    }
    table_cell (t, "%s", name);
    for (int k = NEWEST; k < SEEN; k++)
        table_cell (t, "%.2f", stats_median (loss[k], SEEDS));
    table_cell (t, "%.2f", stats_median (gain, SEEDS));
    table_cell (t, "%d/%d/%d", wins, ties, SEEDS - wins - ties);
}

static void clean_up (void)
{
    for (int k = 1; k <= DAYS; k++)
        for (int c = 0; c < 2; c++) {
            char path[64];

            snprintf (path, sizeof path, "%s/%s%d.json", folder, c ? "c" : "", k);
            unlink (path);
        }
    rmdir (folder);
}

int main (void)
{
    static const struct {
        const char *name;
        struct days_weather w;
    } row[] = {{"drift, faults and collisions", {.025, .005, .1, 1, 2, 0, 6}},
               {"two cards fail on the last day", {.025, .005, .1, 1, 0, 2, 0}},
               {"no collisions", {.025, .005, 0, 1, 2, 0, 6}},
               {"no faults", {.025, .005, .1, 1, 0, 0, 0}},
               {"many collisions", {.025, .005, .3, 1, 2, 0, 6}},
               {"each day sees half of the links", {.025, .005, .1, .5, 2, 0, 6}}};
    struct table *t =
        TABLE_OF ("<thirty days", "newest, %", "newest a link, %", "history, %",
                  "with counters, %", "gain, %", "better/same/worse");

    if (!t || !mkdtemp (folder))
        die (&(struct error){"no room for the drawn days"});
    atexit (clean_up);
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        add_row (t, row[k].name, &row[k].w);
    table_end (t, stdout);
    return 0;
}
