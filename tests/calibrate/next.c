/* The run to measure next: near those given, on their GPUs and in their memory, new, and worth
 * it. */
#include "tests/lib/runs.h"

#include <math.h>
#include <string.h>

#include "calibrate/calibrate_private.h"

/* What calibrate says after runs that took as long as the profile has it. */
static struct calibrate_next next_of (const char *rows, struct calibrate_runs *r)
{
    struct workload_profile p = profile_of ("nemo");
    struct calibrate_next next;
    struct error err = {""};

    *r = runs_of (rows);
    for (int i = 0; i < r->n; i++)
        r->run[i].iter_time_s = runs_step (&r->run[i], &p);
    ok (calibrate_next_run (r, &p, true, &next, &err), &err);
    return next;
}

static bool was_measured (const struct calibrate_runs *r, const struct calibrate_run *run)
{
    const struct workload_degrees *a = &run->config.deg, *b;

    for (int i = 0; i < r->n; i++) {
        b = &r->run[i].config.deg;
        if (r->run[i].gpus == run->gpus && r->run[i].job.seq == run->job.seq &&
            r->run[i].job.global_batch == run->job.global_batch &&
            r->run[i].config.micro_batch == run->config.micro_batch && a->tp == b->tp &&
            a->pp == b->pp && a->cp == b->cp)
            return true;
    }
    return false;
}

/* The run that is named, as a row. */
static void add_run (struct text *t, const struct calibrate_run *run)
{
    char cell[7][32];

    snprintf (cell[0], sizeof cell[0], "gpus=%d", run->gpus);
    snprintf (cell[1], sizeof cell[1], "tp=%d", run->config.deg.tp);
    snprintf (cell[2], sizeof cell[2], "pp=%d", run->config.deg.pp);
    snprintf (cell[3], sizeof cell[3], "cp=%d", run->config.deg.cp);
    snprintf (cell[4], sizeof cell[4], "micro_batch=%d", run->config.micro_batch);
    snprintf (cell[5], sizeof cell[5], "seq=%d", run->job.seq);
    snprintf (cell[6], sizeof cell[6], "global_batch=%d", run->job.global_batch);
    ROW (t, cell[0], cell[1], cell[2], cell[3], cell[4], cell[5], cell[6]);
}

/* What a constant moves is told, too, where it is at a bound, from the one side that it has. */
TEST (at_a_bound)
{
    struct calibrate_runs r =
        ONE ("dp=64", "gpus=64", "gpus_per_node=1", "global_batch=64");
    struct workload_profile p = profile_of ("nemo");
    struct topology_cluster *cluster = NULL;
    struct error err = {""};
    int n;
    const struct workload_constant *k = workload_constants (&n);
    double at, below;

    while (strcmp (k->key, "dp_overlap") != 0)
        k++;
    ok (calibrate_cluster (r.run, &p, &cluster, &err), &err);
    p.time.dp_overlap = 1.0;
    at = calibrate_slope (r.run, cluster, &p, k);
    p.time.dp_overlap = .97;
    below = calibrate_slope (r.run, cluster, &p, k);
    assert_true (below < -1e-4 && fabs (at / below - 1.0) < .1);
    topology_cluster_destroy (cluster);
    calibrate_runs_release (&r);
}

/* From one run on, each time the run that is named is added; the next one is another, of those
 * near, and step times are known better, until a run more tells next to nothing. */
TEST (one_after_another)
{
    struct text t = {0};
    double before = 0.0, known = 0.0;
    bool found = true;
    int n = 0;

    text_add (&t, "%s\n", RUNS_HEADER);
    ROW (&t, "gpus=32", "seq=8192");
    for (; found && n < 12; n++) {
        struct calibrate_runs r;
        struct calibrate_next next = next_of (text_str (&t), &r);
        const struct calibrate_run *run = &next.run;
        int power = abs ((int) round (4 * log2 ((double) next.to / next.from)));

        assert_true (next.row >= 0 && next.row < r.n);
        assert_true (power == 4 || power == 8);
        assert_true (run->gpus <= 32);
        assert_true (workload_world (&run->config.deg) == run->gpus);
        assert_false (was_measured (&r, run));
        assert_true (next.next_spread < next.spread);
        assert_true (next.spread <= next.prior_spread * (1 + 1e-9));
        assert_true (next.next_step_spread < next.step_spread);
        before = n == 0 ? next.step_spread : before;
        known = next.next_step_spread;
        found = next.found;
        add_run (&t, run);
        calibrate_runs_release (&r);
    }
    assert_true (n > 3); /* one run leaves much to be told */
    assert_true (known < 0.6 * before);
    text_free (&t);
}

/* On one GPU no run tells of links. */
TEST (no_more_gpus)
{
    struct calibrate_runs r;
    struct calibrate_next next;
    struct text t = {0};

    text_add (&t, "%s\n", RUNS_HEADER);
    ROW (&t, "gpus=1", "tp=1", "pp=1", "layers=4", "vocab=3200", "seq=16384");
    next = next_of (text_str (&t), &r);
    assert_true (next.found && next.run.gpus == 1);
    assert_true (!next.constant || !strstr (next.constant->key, "link"));
    calibrate_runs_release (&r);
    text_free (&t);
}

/* Runs on GPUs of several types are left alone. */
TEST (none)
{
    struct calibrate_runs r;
    struct calibrate_next next;
    struct text t = {0};

    text_add (&t, "%s\n", RUNS_HEADER);
    ROW (&t, "gpus=8", "gpu=A100-80GB:1+t4:1", "gpus_per_node=4");
    next = next_of (text_str (&t), &r);
    assert_false (next.found);
    assert_true (next.step_spread == 0.0);
    calibrate_runs_release (&r);
    text_free (&t);
}
