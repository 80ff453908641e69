/* On a drawn cluster whose links drift, fail and meet other traffic for thirty days, a plan
 * from their history is better on the next day than one from the newest measurement. */
#include "tests/lib/folder.h"
#include "tests/lib/search.h"
#include "tests/lib/days.h"
#include "topology/edit/edit.h"

enum { DAYS = 30, GPUS = 4, SEEDS_MOST = 5 };

static const char *file_of (bool counters, int day)
{
    static char path[2][DAYS + 1][FOLDER_PATH];

    snprintf (path[counters][day], sizeof path[counters][day], "%s/%s%d.json", folder,
              counters ? "c" : "", day);
    return path[counters][day];
}

static struct topology_cluster *cluster_of_doc (json_t *doc)
{
    struct topology_cluster *c;
    struct error err = {""};

    ok (topology_cluster_from_json (doc, "days", NULL, &c, NULL, &err), &err);
    json_decref (doc);
    return c;
}

static struct topology_cluster *merged (int first, bool counters)
{
    const char *file[2 * DAYS];
    struct topology_document d = {0};
    struct error err = {""};
    json_t *doc;
    int n = 0;

    for (int day = first; day <= DAYS; day++)
        for (int c = 0; c <= counters; c++)
            file[n++] = file_of (c, day);
    ok (topology_merge (file, n, NULL, 7 * 86400.0, &d, NULL, &err), &err);
    doc = json_incref (d.doc);
    topology_document_release (&d);
    return cluster_of_doc (doc);
}

/* The step on the truth of a plan made from what was seen, which is released. */
static double next_step (struct topology_cluster *seen,
                         const struct topology_cluster *truth)
{
    struct setting s = {.cluster = seen,
                        .model = model_of ("llama-2-13b"),
                        .job = {.seq = 4096, .global_batch = 16},
                        .profile = profile_of ("megatron-core"),
                        .config = config_of (GPUS, 4, 4, 1)};
    struct mapper_problem p = search_config (&s);
    struct mapper_settings how = mapper_settings_default ();
    struct costmodel_estimate e;
    struct error err = {""};
    struct found o;

    how.granularity = MAPPER_NODE;
    o = search (&p, &how);

    struct costmodel_problem price = {.model = &s.model,
                                      .job = &s.job,
                                      .config = &o.r.config,
                                      .profile = &s.profile,
                                      .cluster = truth,
                                      .layers = o.r.layers};

    ok (costmodel_estimate (&price, o.r.gpu, true, &e, &err), &err);
    free (e.unmeasured);
    found_release (&o);
    topology_cluster_destroy (seen);
    return e.step_s;
}

TEST (next_day)
{
    const struct days_weather weather = {.025, .005, .1, 1, 2, 0, 6};
    double mean = 0.0;
    int seeds = getenv ("LINKWISE_LONG") ? SEEDS_MOST : 1, wins = 0;

    for (int k = 0; k < seeds; k++) {
        struct days d = days_begin (weather, DAYS, seeded ((uint64_t) k + 1).state);
        struct topology_cluster *truth;
        double gain;

        assert_true (days_write (&d, DAYS, GPUS, folder));
        truth = cluster_of_doc (days_links (&d, GPUS, true));
        gain = next_step (merged (DAYS, false), truth) /
                   next_step (merged (1, true), truth) -
               1;
        wins += gain > 0;
        mean += gain / seeds;
        topology_cluster_destroy (truth);
    }
    if (mean < 0.001 || wins < seeds - 1)
        fail_msg ("the history wins %d of %d times, by %.2f %% in the mean", wins, seeds,
                  100 * mean);
}

/* A fault of the last day has been measured once.  Since it slows most links of its node, it
 * is no collision, also where there are no counters. */
TEST (late_faults)
{
    const struct days_weather weather = {.025, .005, .1, 1, 0, 2, 0};
    double step_s[2][2];
    int seeds = getenv ("LINKWISE_LONG") ? 2 : 1;

    for (int k = 0; k < seeds; k++) {
        struct days d = days_begin (weather, DAYS, seeded ((uint64_t) k + 1).state);
        struct topology_cluster *truth;

        assert_true (days_write (&d, DAYS, GPUS, folder));
        truth = cluster_of_doc (days_links (&d, GPUS, true));
        for (int newest = 0; newest < 2; newest++)
            step_s[newest][k] = next_step (merged (newest ? DAYS : 1, false), truth);
        topology_cluster_destroy (truth);
        if (step_s[0][k] > 1.02 * step_s[1][k])
            fail_msg ("%g s from the history, %g s from the newest", step_s[0][k],
                      step_s[1][k]);
    }
}
