/* The price of one placement from scratch, with its breakdown. */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <stdlib.h>

static enum status priced_init (struct priced *x, const struct terms *t,
                                struct error *err)
{
    size_t n = (size_t) t->dp * (size_t) t->pp;

    *x = (struct priced){.t = t};
    x->slot = calloc (n, sizeof *x->slot);
    x->send_s = calloc (3 * n + 2 * (size_t) t->pp + 2 * (size_t) t->dp, sizeof (double));
    x->work = calloc ((size_t) pipeline_work (t), sizeof (double));
    if (!x->slot || !x->send_s || !x->work)
        return err_nomem (err);
    x->return_s = x->send_s + n;
    x->end_s = x->return_s + n;
    x->tail_s = x->end_s + n;
    x->optimizer_s = x->tail_s + t->pp;
    return ST_OK;
}

static void priced_release (struct priced *x)
{
    free (x->slot);
    free (x->send_s);
    free (x->work);
}

/* Slots, boundaries and synchronisation of every stage. */
static void price_parts (struct priced *x, const int *gpu, struct scratch *s,
                         struct use_log *log)
{
    const struct terms *t = x->t;
    int pp = t->pp, ignored;

    for (int i = 0; i < pp; i++) {
        stage_price (t, gpu, i, s, log, &x->slot[i], pp);
        if (has_boundary (t, i))
            boundary_price (t, gpu, i, (i + 1) % pp, t->volume.p2p_bytes, x->send_s + i,
                            x->return_s + i, pp, s, log, "pp");
        x->tail_s[i] = exposed_price (
            t, gpu, i, sync_price (t, gpu, i, NULL, s, log, &ignored), &x->slot[i], pp);
        x->optimizer_s[i] = optimizer_price (t, gpu, i);
    }
    if (t->volume.tied_bytes > 0) {
        double worst = 0.0;

        /* end_s is free until the schedules are played. */
        boundary_price (t, gpu, pp - 1, 0, t->volume.tied_bytes, x->end_s,
                        x->end_s + t->dp, 1, s, log, "dp");
        for (int d = 0; d < 2 * t->dp; d++)
            worst = fmax (worst, x->end_s[d]);
        x->tail_s[0] += worst;
        x->tail_s[pp - 1] += worst;
    }
}

static void play (const struct priced *x, int d, bool skip, const double *send_s,
                  const double *return_s, double *end_s)
{
    pipeline_play (x->t, x->slot + d * x->t->pp, send_s, return_s, skip, NULL, end_s,
                   x->work);
}

/* The stage and replica that end last, and the step's parts along them. */
static enum status find_path (const struct priced *x, bool skip,
                              struct costmodel_estimate *e, struct error *err)
{
    const struct terms *t = x->t;
    int pp = t->pp;

    e->step_s = -1.0;
    for (int i = 0; i < pp; i++) {
        int slowest = 0;

        for (int d = 1; d < t->dp; d++)
            if (x->end_s[d * pp + i] > x->end_s[slowest * pp + i])
                slowest = d;

        double end = x->end_s[slowest * pp + i] + x->tail_s[i] + x->optimizer_s[i];

        if (end > e->step_s) {
            e->step_s = end;
            e->stage = i;
            e->replica = slowest;
        }
    }

    /* The same pipeline with sends that take no time tells bubble from P2P. */
    double *zero = calloc (2 * (size_t) pp, sizeof *zero);

    if (!zero)
        return err_nomem (err);
    play (x, e->replica, skip, zero, zero, zero + pp);

    double without_sends = zero[pp + e->stage];
    const struct slot_time *slot = &x->slot[e->replica * pp + e->stage];
    double busy = t->microbatches * (slot->fwd_s + slot->back_s);

    e->tp_by = slot->tp_by;
    e->ep_hidden_s = t->microbatches * slot->ep_hidden_s;

    free (zero);
    e->part = (struct costmodel_breakdown){
        .tp_s = t->microbatches * slot->tp_s,
        .cp_s = t->microbatches * slot->cp_s,
        .ep_s = t->microbatches * slot->ep_s,
        .bubble_s = fmax (0.0, without_sends - busy),
        .pp_s = fmax (0.0, x->end_s[e->replica * pp + e->stage] - without_sends),
        .dp_s = x->tail_s[e->stage],
        .optimizer_s = x->optimizer_s[e->stage],
    };
    e->part.compute_s = e->step_s - e->part.tp_s - e->part.cp_s - e->part.ep_s -
                        e->part.bubble_s - e->part.pp_s - e->part.dp_s -
                        e->part.optimizer_s;
    return ST_OK;
}

static void rates (const struct terms *t, const int *gpu, struct costmodel_estimate *e)
{
    const struct costmodel_problem *p = &t->problem;
    double peak = 0.0;

    for (int r = 0; r < t->world; r++)
        peak += costmodel_matrix_rate (topology_gpu_type_of (p->cluster, gpu[r]),
                                       p->job->precision);
    e->mfu = costmodel_model_flop (p->model, p->job) / (e->step_s * peak);
    e->tokens_per_s = (double) p->job->seq * p->job->global_batch / e->step_s;
}

static enum status check_types (const struct terms *t, const int *gpu, struct error *err)
{
    for (int r = 0; r < t->world; r++) {
        int node = t->problem.cluster->node_of_gpu[gpu[r]];
        int k = t->type_of_node[node];

        if (t->refused[k])
            return err_set (err, ST_INVALID, "node %s: GPU type %s cannot run %s",
                            t->problem.cluster->node[node].name, t->type[k]->name,
                            workload_precision_name (t->problem.job->precision));
    }
    return ST_OK;
}

void pricing_release (struct pricing *p)
{
    use_log_release (&p->log);
    priced_release (&p->x);
    scratch_release (&p->s);
    terms_release (&p->t);
}

enum status pricing_init (struct pricing *q, const struct costmodel_problem *p,
                          const int *gpu_of_rank, struct slow_links *slow,
                          struct error *err)
{
    enum status st;

    *q = (struct pricing){.log.all = p->cluster->has_estimates};
    st = terms_init (&q->t, p, err);
    q->t.slow = slow;
    if (st == ST_OK)
        st = check_types (&q->t, gpu_of_rank, err);
    if (st == ST_OK)
        st = scratch_init (&q->s, &q->t, err);
    if (st == ST_OK)
        st = priced_init (&q->x, &q->t, err);
    if (st == ST_OK && p->kind == COSTMODEL_CRITICAL_PATH)
        price_parts (&q->x, gpu_of_rank, &q->s, &q->log);
    return st;
}

enum status estimate_noting (const struct costmodel_problem *p, const int *gpu_of_rank,
                             bool skip, struct slow_links *slow,
                             struct costmodel_estimate *out, struct error *err)
{
    struct pricing q;
    struct costmodel_estimate e = {.kind = p->kind};
    enum status st = pricing_init (&q, p, gpu_of_rank, slow, err);

    if (st == ST_OK && p->kind != COSTMODEL_CRITICAL_PATH) {
        st = published_price (&q, gpu_of_rank, &e, err);
    } else if (st == ST_OK) {
        for (int d = 0; d < q.t.dp; d++)
            play (&q.x, d, skip, q.x.send_s + d * q.t.pp, q.x.return_s + d * q.t.pp,
                  q.x.end_s + d * q.t.pp);
        st = find_path (&q.x, skip, &e, err);
        e.dp_by = sync_by (&q.t, gpu_of_rank, e.stage, &q.s);
    }
    if (st == ST_OK && q.log.failed)
        st = err_nomem (err);
    if (st == ST_OK && !isfinite (e.step_s))
        st = err_set (err, ST_NOFIT,
                      "ranks that must talk are not connected: no link of "
                      "that kind was measured");
    if (st == ST_OK) {
        rates (&q.t, gpu_of_rank, &e);
        e.unmeasured = q.log.list;
        e.n_unmeasured = q.log.n;
        q.log.list = NULL;
        use_log_count (&q.log, p->cluster, &e);
        *out = e;
    }
    pricing_release (&q);
    return st;
}

enum status costmodel_estimate (const struct costmodel_problem *p, const int *gpu_of_rank,
                                bool skip, struct costmodel_estimate *out,
                                struct error *err)
{
    return estimate_noting (p, gpu_of_rank, skip, NULL, out, err);
}

json_t *costmodel_estimate_to_json (const struct costmodel_estimate *e)
{
    const struct costmodel_breakdown *b = &e->part;
    json_t *doc = json_pack (
        "{s:f, s:f, s:f, s:i, s:i, s:s, s:s, s:{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}}",
        "step_s", e->step_s, "mfu", e->mfu, "tokens_per_s", e->tokens_per_s,
        "binding_stage", e->stage, "binding_replica", e->replica, "tp_collective",
        workload_all_reduce_name (e->tp_by), "dp_collective",
        workload_all_reduce_name (e->dp_by), "breakdown_s", "compute", b->compute_s, "tp",
        b->tp_s, "cp", b->cp_s, "ep", b->ep_s, "bubble", b->bubble_s, "pp", b->pp_s, "dp",
        b->dp_s, "optimizer", b->optimizer_s);

    if (e->ep_hidden_s > 0.0)
        json_object_set_new (doc, "ep_hidden_s", json_real (e->ep_hidden_s));
    if (e->links_estimated > 0)
        json_object_set_new (doc, "estimated_links",
                             json_pack ("{s:i, s:i, s:f}", "used", e->links_estimated,
                                        "of", e->links_used, "held_out_error",
                                        e->estimate_error));
    if (e->kind != COSTMODEL_CRITICAL_PATH)
        json_object_set_new (doc, "cost_model",
                             json_string (costmodel_kind_name (e->kind)));
    return doc;
}
