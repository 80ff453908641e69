/* A step as Chrome trace events. */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <stdio.h>

#define EVENTS_MAX 5e6

struct tracing {
    struct text *out;
    int replica, chunks;
    bool any;
};

/* Start and end are put on a grid of nanoseconds, what viewers count in: of two events that
 * overlap by one, Perfetto drops the later. */
static void trace_event (struct tracing *x, const char *name, int stage, double start_s,
                         double end_s)
{
    double start_ns = round (1e9 * start_s), end_ns = round (1e9 * end_s);

    text_add (x->out,
              "%s{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
              "\"dur\":%.3f}",
              x->any ? ",\n" : "", name, x->replica, stage, 1e-3 * start_ns,
              1e-3 * (end_ns - start_ns));
    x->any = true;
}

static void trace_name (struct tracing *x, const char *what, int stage, const char *name,
                        int n)
{
    text_add (x->out,
              "%s{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
              "\"args\":{\"name\":\"%s %d\"}}",
              x->any ? ",\n" : "", what, x->replica, stage, name, n);
    x->any = true;
}

static void see (void *context, const struct costmodel_event *e)
{
    static const char *const letter[] = {"F", "B", "W"};
    struct tracing *x = context;
    char name[48];

    if (x->chunks > 1)
        snprintf (name, sizeof name, "%s%d.%d", letter[e->what], e->micro, e->chunk);
    else
        snprintf (name, sizeof name, "%s%d", letter[e->what], e->micro);
    trace_event (x, name, e->stage, e->start_s, e->end_s);
}

static void trace_replicas (const struct pricing *q, struct tracing *tr)
{
    const struct terms *t = &q->t;
    struct costmodel_watch watch = {see, tr};

    for (int d = 0; d < t->dp; d++) {
        tr->replica = d;
        trace_name (tr, "process_name", 0, "replica", d);
        for (int i = 0; i < t->pp; i++)
            trace_name (tr, "thread_name", i, "stage", i);
        pipeline_play (t, replicas_from (&q->r, t, d), false, &watch);
    }
    for (int i = 0; i < t->pp; i++) {
        double end = 0.0; /* replicas wait for the slowest */

        for (int d = 0; d < t->dp; d++)
            end = fmax (end, q->r.end_s[d * t->pp + i]);
        for (tr->replica = 0; tr->replica < t->dp; tr->replica++) {
            if (q->tail_s[i] > 0.0)
                trace_event (tr, "data parallel", i, end, end + q->tail_s[i]);
            trace_event (tr, "optimizer", i, end + q->tail_s[i],
                         end + q->tail_s[i] + q->optimizer_s[i]);
        }
    }
}

enum status costmodel_trace (const struct costmodel_problem *p, const int *gpu_of_rank,
                             struct text *out, struct error *err)
{
    const struct workload_degrees *d = &p->config->deg;
    double events =
        3.0 * workload_microbatches (p->job, p->config) * d->vpp * d->pp * d->dp;
    struct tracing tr = {.out = out, .chunks = d->vpp};
    struct pricing q;
    enum status st;

    if (events > EVENTS_MAX)
        return err_set (err, ST_INVALID,
                        "a trace of %.0f events; at most %.0f are written: fewer "
                        "micro-batches or replicas",
                        events, EVENTS_MAX);
    st = pricing_init (&q, p, gpu_of_rank, NULL, err);
    if (st == ST_OK) {
        text_add (out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
        trace_replicas (&q, &tr);
        text_add (out, "\n]}\n");
        if (out->failed)
            st = err_nomem (err);
    }
    pricing_release (&q);
    return st;
}
