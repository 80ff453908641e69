/* Estimates of measured runs, as their sources measured. */
#include "calibrate/calibrate_private.h"

#include <math.h>
#include <string.h>

enum status calibrate_profile_for (const struct calibrate_run *run,
                                   struct workload_profile *out, struct error *err)
{
    struct workload_profile p, by_gpu;
    bool found = false;
    const char *name;

    for (int i = 0; (name = workload_profile_shipped (i)); i++) {
        enum status st = workload_profile_read (name, &p, NULL, err);

        if (st != ST_OK)
            return st;
        for (int k = 0; k < p.n_sources; k++)
            if (strcmp (p.source[k], run->source) == 0) {
                *out = p;
                return ST_OK;
            }
        if (!found && strcmp (p.gpu, run->part[0].type->name) == 0) {
            by_gpu = p;
            found = true;
        }
    }
    if (!found)
        return workload_profile_read (WORKLOAD_PROFILE_DEFAULT, out, NULL, err);
    *out = by_gpu;
    return ST_OK;
}

static void stage_of (const struct calibrate_run *run, const struct workload_profile *p,
                      enum memest_model by, int stage, struct memest_stage *s)
{
    struct memest_problem problem = {&run->model, &run->job, &run->config, p, by};
    struct workload_stage held =
        workload_stage_of (&run->model, &run->config, run->layers, stage);

    memest_stage (&problem, stage, &held, s);
}

/* As the allocator counts: tensors and what it holds beside them, without the driver. */
static double as_measured (const struct workload_profile *p, const struct memest_stage *s)
{
    return p->measured_allocated
               ? s->peak_bytes - s->overhead_bytes + p->memory.allocated_bytes
               : s->peak_bytes;
}

double calibrate_peak (const struct calibrate_run *run, const struct workload_profile *p,
                       enum memest_model by)
{
    int last = run->config.deg.pp - 1;
    double most = 0.0;

    for (int i = p->measured_last ? last : 0; i <= last; i++) {
        struct memest_stage s;

        stage_of (run, p, by, i, &s);
        most = fmax (most, as_measured (p, &s));
    }
    return most;
}

double calibrate_need (const struct calibrate_run *run, const struct workload_profile *p,
                       enum memest_model by)
{
    double most = 0.0;

    for (int i = 0; i < run->config.deg.pp; i++) {
        struct memest_stage s;

        stage_of (run, p, by, i, &s);
        most = fmax (most, s.peak_bytes);
    }
    return most;
}

double calibrate_static (const struct calibrate_run *run,
                         const struct workload_profile *p)
{
    int last = run->config.deg.pp - 1;
    double most = 0.0;

    for (int i = p->measured_last ? last : 0; i <= last; i++) {
        struct memest_stage s;

        stage_of (run, p, MEMEST_LINKWISE, i, &s);
        most = fmax (most, s.weights_bytes + s.gradients_bytes + s.optimizer_bytes +
                               p->memory.allocated_bytes);
    }
    return most;
}
