#include "check/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "memest/memest.h"

static void say (struct check_report *r, const char *what, enum check_verdict verdict,
                 const char *fmt, ...) __attribute__ ((format (printf, 4, 5)));

static void say (struct check_report *r, const char *what, enum check_verdict verdict,
                 const char *fmt, ...)
{
    struct check_item *item = &r->item[r->n++];
    va_list ap;

    item->what = what;
    item->verdict = verdict;
    va_start (ap, fmt);
    vsnprintf (item->text, sizeof item->text, fmt, ap);
    va_end (ap);
    r->failed += verdict == CHECK_FAILED;
}

/* The one-to-one test of the reader, once more and by counting. */
static void check_gpus (const struct workload_plan *p, const struct topology_cluster *c,
                        const int *gpu, int *uses, struct check_report *r)
{
    int twice = -1, drained = -1;

    for (int k = 0; k < p->n_ranks; k++) {
        if (uses[gpu[k]]++ > 0)
            twice = k;
        if (c->node[c->node_of_gpu[gpu[k]]].drained)
            drained = k;
    }
    if (twice >= 0)
        say (r, "GPUs", CHECK_FAILED, "rank %d shares GPU %d of node %s", twice,
             p->place[twice].gpu, p->place[twice].node);
    else if (drained >= 0)
        say (r, "GPUs", CHECK_FAILED, "rank %d is on node %s, which is drained", drained,
             p->place[drained].node);
    else
        say (r, "GPUs", CHECK_OK, "%d ranks on %d different GPUs", p->n_ranks,
             p->n_ranks);
}

static void check_degrees (const struct workload_plan *p, struct check_report *r)
{
    const struct workload_degrees *d = &p->config.deg;
    long long product = (long long) d->tp * d->cp * d->dp * d->pp;
    long long batch = (long long) p->config.micro_batch * d->dp *
                      workload_microbatches (&p->job, &p->config);
    int layers = 0;

    for (int i = 0; i < d->pp; i++)
        layers += p->layers_per_stage[i];
    say (r, "degrees", product == p->n_ranks ? CHECK_OK : CHECK_FAILED,
         "tp %d x cp %d x dp %d x pp %d = %lld of %d ranks", d->tp, d->cp, d->dp, d->pp,
         product, p->n_ranks);
    say (r, "batch", batch == p->job.global_batch ? CHECK_OK : CHECK_FAILED,
         "%d replicas x %d micro-batches x %d = %lld of %d sequences", d->dp,
         workload_microbatches (&p->job, &p->config), p->config.micro_batch, batch,
         p->job.global_batch);
    say (r, "layers", layers == p->model.layers ? CHECK_OK : CHECK_FAILED,
         "%d stages hold %d of %d layers", d->pp, layers, p->model.layers);
}

static void check_memory (const struct workload_plan *p, const struct topology_cluster *c,
                          const struct workload_profile *profile, const int *gpu,
                          struct check_report *r)
{
    const struct workload_degrees *d = &p->config.deg;
    int per_stage = p->n_ranks / d->pp, worst = 0;
    struct memest_problem memory = {&p->model, &p->job, &p->config, profile,
                                    MEMEST_LINKWISE};
    double most = -1, peak = 0, limit = 0;

    memest_model_parse (p->memory_model, &memory.by);
    for (int i = 0; i < d->pp; i++) {
        struct workload_stage held =
            workload_stage_of (&p->model, &p->config, p->layers_per_stage, i);
        struct memest_stage s;
        double least = INFINITY;

        memest_stage (&memory, i, &held, &s);
        for (int k = 0; k < per_stage; k++)
            least = fmin (least,
                          topology_gpu_type_of (c, gpu[i * per_stage + k])->memory_bytes);
        least = memest_limit (profile, least, p->memory_limit_pct, p->oom_risk);
        if (s.peak_bytes / least > most) {
            most = s.peak_bytes / least;
            worst = i;
            peak = s.peak_bytes;
            limit = least;
        }
    }
    say (r, "memory", most <= 1.0 ? CHECK_OK : CHECK_FAILED,
         "stage %d needs %.1f GiB, the limit is %.1f GiB", worst, peak / UNITS_GIB,
         limit / UNITS_GIB);
}

/* A number of the plan's `estimate`, NAN when it is not there. */
static double estimate_number (const struct workload_plan *p, const char *key)
{
    json_t *v = json_object_get (json_object_get (p->doc, "estimate"), key);

    return json_is_number (v) ? json_number_value (v) : NAN;
}

static bool is_stale (const struct workload_plan *p)
{
    json_t *v = json_object_get (json_object_get (p->doc, "estimate"), "digest");
    char digest[65];

    workload_plan_digest (p, digest);
    return !json_is_string (v) || strcmp (json_string_value (v), digest) != 0;
}

static void check_time (const struct workload_plan *p, const struct costmodel_estimate *e,
                        struct check_report *r)
{
    double said = estimate_number (p, "step_s"),
           bound = estimate_number (p, "lower_bound_s");
    bool agrees = fabs (said - e->step_s) <= 1e-6 * e->step_s;
    size_t listed = json_array_size (json_object_get (p->doc, "unmeasured_links_used"));

    r->step_s = e->step_s;
    if (is_stale (p)) {
        say (r, "step time", CHECK_NOTE,
             "%.6g s played out; the file's own estimate is of another placement and is "
             "ignored",
             e->step_s);
        if (e->n_unmeasured > 0)
            say (r, "links", CHECK_NOTE, "%d links that nobody measured are used",
                 e->n_unmeasured);
        return;
    }
    say (r, "step time", agrees ? CHECK_OK : CHECK_FAILED,
         "%.6g s played out, the file says %.6g s", e->step_s, said);
    say (r, "lower bound", bound <= e->step_s * (1 + 1e-9) ? CHECK_OK : CHECK_FAILED,
         "%.6g s is not above the step", bound);
    say (r, "links", (size_t) e->n_unmeasured == listed ? CHECK_OK : CHECK_FAILED,
         "%d links that nobody measured are used, the file lists %zu", e->n_unmeasured,
         listed);
}

enum status check_plan (const struct workload_plan *p, const struct topology_cluster *c,
                        const struct workload_profile *profile, struct check_report *r,
                        struct error *err)
{
    struct costmodel_problem problem = {.model = &p->model,
                                        .job = &p->job,
                                        .config = &p->config,
                                        .profile = profile,
                                        .cluster = c,
                                        .layers = p->layers_per_stage};
    int *gpu = malloc ((size_t) p->n_ranks * sizeof *gpu);
    int *uses = calloc ((size_t) c->n_gpus, sizeof *uses);
    struct costmodel_estimate e = {0};
    struct error why;
    enum status st;

    *r = (struct check_report){0};
    if (!gpu || !uses) {
        free (gpu);
        free (uses);
        return err_nomem (err);
    }
    st = costmodel_plan_gpus (p, c, gpu, &why);
    if (st == ST_OK) {
        check_gpus (p, c, gpu, uses, r);
        check_degrees (p, r);
        check_memory (p, c, profile, gpu, r);
        st = costmodel_estimate (&problem, gpu, false, &e, &why);
        if (st == ST_OK)
            check_time (p, &e, r);
        else
            say (r, "step time", CHECK_FAILED, "%.200s", why.text);
    } else {
        say (r, "GPUs", CHECK_FAILED, "%.200s", why.text);
    }
    free (e.unmeasured);
    free (gpu);
    free (uses);
    return st == ST_NOMEM ? err_nomem (err) : ST_OK;
}
