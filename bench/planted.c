/* Clusters with a planted optimum (`linkwise cluster synth --plant`): is it found?
 *
 *     make bench                       64 and 256 GPUs
 *     LINKWISE_LONG=1 make bench       64 to 1,024 GPUs, three seeds
 *
 * All links of the planted pipelines and rings have one rate, every other link at most
 * three quarters of it, so no placement of those degrees has a shorter step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/text.h"
#include "bench/bench.h"
#include "mapper/mapper.h"
#include "topology/edit/edit.h"
#include "tests/lib/planted.h"

/* How far above the planted placement's step the plan is, %. */
static double above (const char *preset, int nodes, int stages, unsigned long seed,
                     double *seconds)
{
    struct topology_synth s = topology_synth_default ();
    struct topology_document d = {0};
    struct topology_cluster *c = NULL;
    struct workload_model model;
    struct workload_profile profile;
    struct workload_job job = {.seq = 4096};
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_result r;
    struct mapper_info info;
    struct costmodel_estimate e;
    struct error err = {"out of memory"};
    const json_t *planted;
    int dp, *gpu = calloc ((size_t) nodes * 8, sizeof *gpu);
    double found;

    s.preset = preset;
    s.nodes = nodes;
    s.seed = seed;
    s.plant = stages;
    if (!gpu || topology_synthesize (&s, &d, NULL, &err) != ST_OK ||
        topology_cluster_from_json (d.doc, preset, NULL, &c, NULL, &err) != ST_OK ||
        workload_model_read ("llama-2-70b", &model, NULL, &err) != ST_OK ||
        workload_profile_read (WORKLOAD_PROFILE_DEFAULT, &profile, NULL, &err) != ST_OK)
        die (&err);
    planted = json_object_get (d.doc, "planted");
    dp = (int) json_integer_value (json_object_get (planted, "dp"));
    planted_order (c, planted, gpu);
    job.global_batch = 8 * dp;

    struct mapper_problem p = {.model = &model,
                               .job = &job,
                               .profile = &profile,
                               .cluster = c,
                               .axes = mapper_axes_free (),
                               .memory_limit_pct = 1000};

    p.axes.tp = 8;
    p.axes.pp = stages;
    p.axes.dp = dp;
    p.axes.micro_batch = p.axes.zero = p.axes.sequence_parallel = 1;
    p.axes.recompute = RECOMPUTE_SELECTIVE;
    if (mapper_search (&p, &settings, &r, &info, &err) != ST_OK)
        die (&err);

    struct costmodel_problem q = {.model = &model,
                                  .job = &job,
                                  .config = &r.config,
                                  .profile = &profile,
                                  .cluster = c,
                                  .layers = r.layers};

    if (costmodel_estimate (&q, gpu, true, &e, &err) != ST_OK)
        die (&err);
    found = 100 * (r.estimate.step_s / e.step_s - 1);
    *seconds = info.seconds;
    free (e.unmeasured);
    free (gpu);
    mapper_result_release (&r);
    mapper_info_release (&info);
    topology_cluster_destroy (c);
    topology_document_release (&d);
    return found;
}

int main (void)
{
    static const int sizes[][2] = {{8, 4}, {32, 4}, {16, 4}, {64, 8}, {128, 8}};
    struct table *t =
        TABLE_OF ("<planted optimum", "GPUs", "stages", "seed", "above it %", "s");
    bool all = getenv ("LINKWISE_LONG") != NULL;

    for (int k = 0; topology_preset_at (k); k++)
        for (int i = 0; i < (all ? 5 : 2); i++)
            for (unsigned long seed = 1; seed <= (all ? 3 : 1); seed++) {
                double seconds, off = above (topology_preset_at (k)->name, sizes[i][0],
                                             sizes[i][1], seed, &seconds);

                table_cell (t, "%s", topology_preset_at (k)->name);
                table_cell (t, "%d", 8 * sizes[i][0]);
                table_cell (t, "%d", sizes[i][1]);
                table_cell (t, "%lu", seed);
                table_cell (t, "%.3f", off);
                table_cell (t, "%.3f", seconds);
            }
    table_end (t, stdout);
    return 0;
}
