#include "check/check.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/units.h"
#include "memest/memest.h"

#define AGREES 1e-6    /* relative */
#define PLAYED_MAX 3e7 /* micro-batches over all stages and replicas */

void check_say (struct check_report *r, const char *what, enum check_verdict verdict,
                const char *fmt, ...)
{
    struct check_item *item = &r->item[r->n];
    va_list ap;

    assert (r->n < CHECK_ITEMS_MAX);
    r->n++;
    item->what = what;
    item->verdict = verdict;
    va_start (ap, fmt);
    vsnprintf (item->text, sizeof item->text, fmt, ap);
    va_end (ap);
    r->failed += verdict == CHECK_FAILED;
}

static enum check_verdict verdict_of (bool holds)
{
    return holds ? CHECK_OK : CHECK_FAILED;
}

/* A number of an object, NAN when it is not there. */
static double number_of (const json_t *object, const char *key)
{
    json_t *v = json_object_get (object, key);

    return json_is_number (v) ? json_number_value (v) : NAN;
}

/* A number of the file for a message: it may be missing. */
struct said {
    char s[32];
};

static struct said said_text (double x)
{
    struct said said;

    if (isfinite (x))
        snprintf (said.s, sizeof said.s, "%.6g", x);
    else
        strcpy (said.s, "nothing");
    return said;
}

/* Equal but for rounding: the planner skips whole periods of a pipeline, the checker plays
 * them, and both add a great many numbers. */
static bool same (double said, double found)
{
    return fabs (said - found) <= AGREES * fabs (found);
}

/* The cost model that the file's estimate is by. */
static enum costmodel_kind kind_of (const struct workload_plan *p)
{
    enum costmodel_kind kind = COSTMODEL_CRITICAL_PATH;
    const char *name =
        json_member_text (json_object_get (p->doc, "estimate"), "cost_model");

    if (name)
        costmodel_kind_parse (name, &kind);
    return kind;
}

/* Is the file's estimate one of another placement?  Without a digest it is taken at its
 * word. */
static bool is_stale (const struct workload_plan *p)
{
    json_t *v = json_object_get (json_object_get (p->doc, "estimate"), "digest");
    char digest[65];

    workload_plan_digest (p, digest);
    return v && (!json_is_string (v) || strcmp (json_string_value (v), digest) != 0);
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
        check_say (r, "GPUs", CHECK_FAILED, "rank %d shares GPU %d of node %s", twice,
                   p->place[twice].gpu, p->place[twice].node);
    else if (drained >= 0)
        check_say (r, "GPUs", CHECK_FAILED, "rank %d is on node %s, which is drained",
                   drained, p->place[drained].node);
    else
        check_say (r, "GPUs", CHECK_OK, "%d rank%s on %d different GPU%s", p->n_ranks,
                   TEXT_S (p->n_ranks), p->n_ranks, TEXT_S (p->n_ranks));
}

static void check_degrees (const struct workload_plan *p, struct check_report *r)
{
    const struct workload_degrees *d = &p->config.deg;
    long long product = (long long) d->tp * d->cp * d->dp * d->pp;
    int microbatches = workload_microbatches (&p->job, &p->config);
    long long batch = (long long) p->config.micro_batch * d->dp * microbatches;
    double said = number_of (p->doc, "microbatches");
    int layers = 0;

    for (int i = 0; i < d->pp; i++)
        layers += p->layers_per_stage[i];
    check_say (r, "degrees", verdict_of (product == p->n_ranks),
               "tp %d x cp %d x dp %d x pp %d = %lld of %d ranks", d->tp, d->cp, d->dp,
               d->pp, product, p->n_ranks);
    if (isnan (said) || same (said, microbatches))
        check_say (r, "batch", verdict_of (batch == p->job.global_batch),
                   "%d replica%s x %d micro-batch%s x %d = %lld of %d sequences", d->dp,
                   TEXT_S (d->dp), microbatches, microbatches == 1 ? "" : "es",
                   p->config.micro_batch, batch, p->job.global_batch);
    else
        check_say (r, "batch", CHECK_FAILED,
                   "%d sequences make %d micro-batches of %d on each of %d replicas, the "
                   "file says %g",
                   p->job.global_batch, microbatches, p->config.micro_batch, d->dp, said);
    check_say (r, "layers", verdict_of (layers == p->model.layers),
               "%d stage%s %d of %d layers", d->pp, d->pp == 1 ? " holds" : "s hold",
               layers, p->model.layers);
}

/* What no framework of the profile runs is refused as bind and plan do. */
static void check_offered (const struct workload_plan *p,
                           const struct workload_profile *profile, struct check_report *r)
{
    struct error why;

    if (workload_config_offered (&p->model, &p->config, profile, &why) != ST_OK)
        check_say (r, "framework", CHECK_FAILED, "%.200s", why.text);
}

/* Can the framework run chunks of unlike numbers of layers, where a stage has such? */
static void check_chunks (const struct workload_plan *p,
                          const struct workload_profile *profile, struct check_report *r)
{
    int v = p->config.deg.vpp, least = p->model.layers, most = 0;

    for (int i = 0; i < p->config.deg.pp * v; i++) {
        int held = workload_plan_chunk (p, i / v, i % v);

        least = held < least ? held : least;
        most = held > most ? held : most;
    }
    if (v > 1 && most > least)
        check_say (r, "chunks", profile->uneven_chunks ? CHECK_OK : CHECK_NOTE,
                   "of %d to %d layers, which profile %s %s", least, most, profile->name,
                   profile->uneven_chunks ? "runs" : "does not say that it runs");
}

/* The file's own figures of memory. */
static void check_memory_said (const struct workload_plan *p, double peak, double limit,
                               struct check_report *r)
{
    json_t *memory = json_object_get (p->doc, "memory");
    double said = number_of (memory, "peak_bytes"),
           said_limit = number_of (memory, "limit_bytes");

    if (!json_is_object (memory))
        check_say (r, "memory said", CHECK_NOTE, "the file has no memory figures");
    else if (is_stale (p))
        check_say (r, "memory said", CHECK_NOTE, "for another placement, ignored");
    else
        check_say (r, "memory said",
                   verdict_of (same (said, peak) && same (said_limit, limit)),
                   "the file says %s of %s GiB, recomputed: %.6g of %.6g",
                   said_text (said / UNITS_GIB).s, said_text (said_limit / UNITS_GIB).s,
                   peak / UNITS_GIB, limit / UNITS_GIB);
}

static void check_memory (const struct workload_plan *p, const struct topology_cluster *c,
                          const struct workload_profile *profile, const int *gpu,
                          struct check_report *r)
{
    const struct workload_degrees *d = &p->config.deg;
    int per_stage = p->n_ranks / d->pp, worst = 0;
    struct memest_problem memory = {&p->model,
                                    &p->job,
                                    &p->config,
                                    profile,
                                    MEMEST_LINKWISE,
                                    0,
                                    memest_states_less (profile, p->oom_risk)};
    double most = -1, peak = 0, limit = 0;

    memest_model_parse (p->memory_model, &memory.by);
    for (int i = 0; i < d->pp; i++) {
        struct workload_stage held = workload_plan_stage (p, i);
        struct memest_stage s;
        double least = INFINITY;

        memest_stage (&memory, i, &held, &s);
        for (int k = 0; k < per_stage; k++)
            least = fmin (least,
                          topology_gpu_type_of (c, gpu[i * per_stage + k])->memory_bytes);
        least = memest_limit_of (
            &memory, &s, memest_limit (profile, least, p->memory_limit_pct, p->oom_risk));
        if (s.peak_bytes / least > most) {
            most = s.peak_bytes / least;
            worst = i;
            peak = s.peak_bytes;
            limit = least;
        }
    }
    check_say (r, "memory", verdict_of (most <= 1.0),
               "stage %d needs %.1f GiB, the limit is %.1f GiB", worst, peak / UNITS_GIB,
               limit / UNITS_GIB);
    check_memory_said (p, peak, limit, r);
}

/* What the ranks of a node keep in its host's memory together. */
static enum status check_host (const struct workload_plan *p,
                               const struct topology_cluster *c,
                               const struct workload_profile *profile, const int *gpu,
                               struct check_report *r, struct error *err)
{
    struct memest_problem memory = {&p->model,       &p->job, &p->config, profile,
                                    MEMEST_LINKWISE, 0,       0};
    int per_stage = p->n_ranks / p->config.deg.pp, worst = 0;
    double *bytes = calloc ((size_t) c->n_nodes, sizeof *bytes), most = -1.0, sum = 0.0;

    if (!bytes)
        return err_nomem (err);
    for (int i = 0; i < p->config.deg.pp; i++) {
        struct workload_stage held = workload_plan_stage (p, i);
        struct memest_stage s;

        memest_stage (&memory, i, &held, &s);
        sum += s.host_bytes;
        for (int k = i * per_stage; k < (i + 1) * per_stage; k++)
            bytes[c->node_of_gpu[gpu[k]]] += s.host_bytes;
    }
    for (int i = 0; i < c->n_nodes; i++) {
        double has = c->node[i].host_memory_bytes, part = has > 0 ? bytes[i] / has : 0.0;

        if (part > most) {
            most = part;
            worst = i;
        }
    }
    if (most > 0)
        check_say (r, "host memory", verdict_of (most <= 1.0),
                   "node %.60s needs %.1f of its %.1f GiB", c->node[worst].name,
                   bytes[worst] / UNITS_GIB,
                   c->node[worst].host_memory_bytes / UNITS_GIB);
    else if (sum > 0)
        check_say (r, "host memory", CHECK_NOTE,
                   "what is offloaded needs some, and no node in use tells how much it "
                   "has");
    free (bytes);
    return ST_OK;
}

/* The lower bound, and what follows from it and the step. */
static void check_bound (const json_t *estimate, double step_s, struct check_report *r)
{
    double bound = number_of (estimate, "lower_bound_s"),
           gap = number_of (estimate, "gap");
    bool holds = bound > 0 && bound <= step_s * (1 + AGREES);

    if (isnan (bound))
        check_say (r, "lower bound", CHECK_FAILED, "the file has no lower bound");
    else
        check_say (r, "lower bound", verdict_of (holds), "%.6g s is %s", bound,
                   holds       ? "not above the step time"
                   : bound > 0 ? "above the step time"
                               : "not a time");
    check_say (r, "gap",
               verdict_of (holds && fabs (gap - (step_s / bound - 1)) <= 10 * AGREES),
               "the file says %s, step / lower bound - 1 is %s", said_text (gap).s,
               said_text (holds ? step_s / bound - 1 : NAN).s);
}

/* The estimate's other figures: rates, the parts of the step, the default order. */
static void check_figures (const json_t *estimate, const struct costmodel_estimate *e,
                           struct check_report *r)
{
    double mfu = number_of (estimate, "mfu"),
           tokens = number_of (estimate, "tokens_per_s"),
           other = number_of (estimate, "default_order_step_s"), sum = 0.0;
    json_t *parts = json_object_get (estimate, "breakdown_s"), *part;
    const char *key;

    json_object_foreach (parts, key, part) sum += json_number_value (part);
    check_say (r, "rates",
               verdict_of (same (mfu, e->mfu) &&
                           (isnan (tokens) || same (tokens, e->tokens_per_s))),
               "MFU %.4g, the file says %s", e->mfu, said_text (mfu).s);
    check_say (r, "breakdown", verdict_of (same (sum, e->step_s)),
               "the parts add up to %.6g s", sum);
    if (isfinite (other) && e->n_unmeasured == 0) {
        json_int_t unmeasured =
            json_member_int (estimate, "default_order_unmeasured_links");
        bool faster = other < e->step_s * (1 - AGREES);

        /* A step over links that nobody measured is no promise, whatever its price. */
        if (faster && unmeasured > 0)
            check_say (r, "default", CHECK_OK, "%.6g s, but over %lld unmeasured links",
                       other, (long long) unmeasured);
        else
            check_say (r, "default", verdict_of (!faster), "%.6g s, %s than the plan",
                       other, faster ? "faster" : "no faster");
    }
}

static void check_time (const struct workload_plan *p, const struct costmodel_estimate *e,
                        struct check_report *r)
{
    json_t *estimate = json_object_get (p->doc, "estimate");
    double said = number_of (estimate, "step_s");
    size_t listed = json_array_size (json_object_get (p->doc, "unmeasured_links_used"));

    r->step_s = e->step_s;
    if (!json_is_object (estimate) || is_stale (p)) {
        check_say (r, "step time", CHECK_NOTE, "%.6g s simulated; %s", e->step_s,
                   json_is_object (estimate)
                       ? "the file's estimate is for another placement and is ignored"
                       : "the file has no estimate");
        if (e->n_unmeasured > 0)
            check_say (r, "links", CHECK_NOTE, "%d unmeasured links are used",
                       e->n_unmeasured);
        return;
    }
    check_say (r, "step time", verdict_of (same (said, e->step_s)),
               "%.6g s simulated, the file says %s s", e->step_s, said_text (said).s);
    check_bound (estimate, e->step_s, r);
    check_figures (estimate, e, r);
    check_say (r, "links", verdict_of ((size_t) e->n_unmeasured == listed),
               "%d unmeasured links are used, the file lists %zu", e->n_unmeasured,
               listed);
}

/* Is the step short enough to be played out in full?  Beyond, whole periods are skipped, as
 * the planner does: playing would take minutes and add its own rounding. */
static bool plays_out (const struct workload_plan *p)
{
    const struct workload_degrees *d = &p->config.deg;

    return (double) workload_microbatches (&p->job, &p->config) * d->dp * d->pp <=
           PLAYED_MAX;
}

enum status check_plan (const struct workload_plan *p, const struct topology_cluster *c,
                        const struct workload_profile *profile, struct check_report *r,
                        struct error *err)
{
    struct costmodel_problem problem = costmodel_plan_problem (p, c, profile);
    int *gpu = malloc ((size_t) p->n_ranks * sizeof *gpu);
    int *uses = calloc ((size_t) c->n_gpus, sizeof *uses);
    struct costmodel_estimate e = {0};
    struct error why;
    enum status st;

    problem.kind = kind_of (p);
    *r = (struct check_report){0};
    if (!gpu || !uses) {
        FREE_ALL (gpu, uses);
        return err_nomem (err);
    }
    st = costmodel_plan_gpus (p, c, gpu, &why);
    if (st == ST_OK) {
        check_gpus (p, c, gpu, uses, r);
        check_degrees (p, r);
        check_offered (p, profile, r);
        check_chunks (p, profile, r);
        check_memory (p, c, profile, gpu, r);
        if (p->config.offload != OFFLOAD_NONE)
            st = check_host (p, c, profile, gpu, r, &why);
        THEN (st, costmodel_estimate (&problem, gpu, !plays_out (p), &e, &why));
        if (st == ST_OK)
            check_time (p, &e, r);
        else
            check_say (r, "step time", CHECK_FAILED, "%.200s", why.text);
    } else {
        check_say (r, "GPUs", CHECK_FAILED, "%.200s", why.text);
    }
    FREE_ALL (e.unmeasured, gpu, uses);
    return st == ST_NOMEM ? err_nomem (err) : ST_OK;
}
