/* A step as Chrome trace events: what stages do, what links carry, and arrows from the operation
 * that sends through the send to the one that waits for it (Trace Event Format: "X", "M", and the
 * flow events "s", "t" and "f"). */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/units.h"

#define EVENTS_MAX 5e6
/* At most of a micro-batch on a stage's chunk: F, B and W; F's and B's sends and three arrows. */
#define CHUNK_EVENTS(pp) ((pp) > 1 ? 3 + 2 * 4 : 3)

/* A track of a link.  The model lets a stage send on while the send before is on its way; then
 * the link has several. */
struct lane {
    int from, to;
    double free_ns;
};

struct tracing {
    struct text *out;
    const struct terms *t;
    int replica, chunks;
    struct lane *lane; /* [lanes] of the replica in hand */
    int lanes;
    bool any, failed;
};

/* Start and end are put on a grid of nanoseconds, what viewers count in: of two events that
 * overlap by one, Perfetto drops the later. */
static double ns (double s)
{
    return round (1e9 * s);
}

static void trace_begin (struct tracing *x, const char *name, const char *phase,
                         int track)
{
    text_add (x->out, "%s{\"name\":\"%s\",\"ph\":\"%s\",\"pid\":%d,\"tid\":%d",
              x->any ? ",\n" : "", name, phase, x->replica, track);
    x->any = true;
}

static void trace_event (struct tracing *x, const char *name, int track, double start_s,
                         double end_s)
{
    trace_begin (x, name, "X", track);
    text_add (x->out, ",\"ts\":%.3f,\"dur\":%.3f}", 1e-3 * ns (start_s),
              1e-3 * (ns (end_s) - ns (start_s)));
}

static void trace_name (struct tracing *x, const char *what, int track, const char *name)
{
    trace_begin (x, what, "M", track);
    text_add (x->out, ",\"args\":{\"name\":\"%s\"}}", name);
}

/* The arrow of what reaches virtual stage `number`; it holds on to the event around at_ns. */
static void trace_flow (struct tracing *x, const char *phase, int track,
                        const struct costmodel_event *e, int number, double at_ns)
{
    double virtuals = (double) x->t->pp * x->chunks;
    double way = (2.0 * x->replica + (e->what == OPERATION_BACKWARD)) * virtuals + number;

    trace_begin (x, "send", phase, track);
    text_add (x->out, ",\"cat\":\"send\",\"id\":%.0f,\"ts\":%.3f%s}",
              way * x->t->microbatches + e->micro, 1e-3 * at_ns,
              phase[0] == 'f' ? ",\"bp\":\"e\"" : "");
}

/* ---- sends ---- */

static void name_lane (struct tracing *x, int track, int from, int to)
{
    const struct topology_cluster *c = x->t->problem.cluster;
    int src = *slot_gpus (x->t, from, x->replica),
        dst = *slot_gpus (x->t, to, x->replica);
    struct text name = {0};

    text_add (&name, "stage %d to %d: %s:%d to %s:%d", from, to,
              c->node[x->t->node_of[src]].name, topology_gpu_index (c, src),
              c->node[x->t->node_of[dst]].name, topology_gpu_index (c, dst));
    trace_name (x, "thread_name", track, text_str (&name));
    x->failed = x->failed || name.failed;
    text_free (&name);
}

/* A track of the link that is free then; -1: out of memory. */
static int lane_at (struct tracing *x, const struct costmodel_event *e)
{
    for (int k = 0; k < x->lanes; k++)
        if (x->lane[k].from == e->stage && x->lane[k].to == e->to &&
            x->lane[k].free_ns <= ns (e->end_s))
            return k;
    if (!array_grow (&x->lane, (size_t) x->lanes, sizeof *x->lane)) {
        x->failed = true;
        return -1;
    }
    x->lane[x->lanes] = (struct lane){.from = e->stage, .to = e->to};
    name_lane (x, x->t->pp + x->lanes, e->stage, e->to);
    return x->lanes++;
}

static void trace_send (struct tracing *x, const struct costmodel_event *e,
                        const char *name)
{
    int next = e->number + (e->what == OPERATION_FORWARD ? 1 : -1), lane = lane_at (x, e);
    double bytes = x->t->volume.p2p_bytes, end_ns = ns (e->end_s);

    if (lane < 0)
        return;
    x->lane[lane].free_ns = ns (e->arrive_s);
    trace_flow (x, "s", e->stage, e, next, fmax (ns (e->start_s), end_ns - 1.0));
    trace_begin (x, name, "X", x->t->pp + lane);
    text_add (x->out, ",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"bytes\":%.0f", 1e-3 * end_ns,
              1e-3 * (ns (e->arrive_s) - end_ns), bytes);
    if (e->arrive_s > e->end_s)
        text_add (x->out, ",\"gb_per_s\":%.4g",
                  bytes / (e->arrive_s - e->end_s) / UNITS_GB);
    text_add (x->out, "}}");
    trace_flow (x, "t", x->t->pp + lane, e, next, end_ns);
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
    if (e->from >= 0)
        trace_flow (x, "f", e->stage, e, e->number, ns (e->start_s));
    if (e->to >= 0 && isfinite (e->arrive_s))
        trace_send (x, e, name);
}

/* Replicas wait for the slowest. */
static struct costmodel_tail tail_of (const struct pricing *q, int stage)
{
    double end_s = 0.0;

    for (int d = 0; d < q->t.dp; d++)
        end_s = fmax (end_s, q->r.end_s[d * q->t.pp + stage]);
    return (struct costmodel_tail){end_s, q->tail_s[stage], q->optimizer_s[stage]};
}

static void trace_replicas (const struct pricing *q, struct tracing *tr)
{
    const struct terms *t = &q->t;
    struct costmodel_watch watch = {see, tr};
    char name[32];

    for (int d = 0; d < t->dp; d++) {
        tr->replica = d;
        snprintf (name, sizeof name, "replica %d", d);
        trace_name (tr, "process_name", 0, name);
        for (int i = 0; i < t->pp; i++) {
            snprintf (name, sizeof name, "stage %d", i);
            trace_name (tr, "thread_name", i, name);
        }
        pipeline_play (t, replicas_from (&q->r, t, d), false, &watch);
        free (tr->lane);
        tr->lane = NULL;
        tr->lanes = 0;
    }
    for (int i = 0; i < t->pp; i++) {
        const struct costmodel_tail tail = tail_of (q, i);
        double synced_s = tail.start_s + tail.sync_s;

        for (tr->replica = 0; tr->replica < t->dp; tr->replica++) {
            if (tail.sync_s > 0.0)
                trace_event (tr, "data parallel", i, tail.start_s, synced_s);
            trace_event (tr, "optimizer", i, synced_s, synced_s + tail.optimizer_s);
        }
    }
}

enum status costmodel_trace (const struct costmodel_problem *p, const int *gpu_of_rank,
                             struct text *out, struct error *err)
{
    const struct workload_degrees *d = &p->config->deg;
    double events = (double) workload_microbatches (p->job, p->config) * d->vpp * d->pp *
                    d->dp * CHUNK_EVENTS (d->pp);
    struct pricing q;
    struct tracing tr = {.out = out, .t = &q.t, .chunks = d->vpp};
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
        if (out->failed || tr.failed)
            st = err_nomem (err);
    }
    pricing_release (&q);
    return st;
}

enum status costmodel_watch_replica (const struct costmodel_problem *p,
                                     const int *gpu_of_rank, int replica,
                                     const struct costmodel_watch *watch,
                                     struct costmodel_tail *tail, struct error *err)
{
    struct pricing q;
    enum status st = pricing_init (&q, p, gpu_of_rank, NULL, err);

    if (st == ST_OK) {
        for (int d = 0; d < q.t.dp; d++)
            pipeline_play (&q.t, replicas_from (&q.r, &q.t, d), true,
                           d == replica ? watch : NULL);
        for (int i = 0; i < q.t.pp; i++)
            tail[i] = tail_of (&q, i);
    }
    pricing_release (&q);
    return st;
}
