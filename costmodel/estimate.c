/* The price of one placement from scratch, with its breakdown. */
#include "costmodel/costmodel_private.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* The sends from a stage to the next one, or (tied) from the last to the first: of all
 * replicas at the same time.
 * @param[in] at, apart  where those of replica 0 are in the replicas' sends, and the next */
static void price_boundary (struct pricing *q, int stage, bool tied, int at, int apart)
{
    const struct terms *t = &q->t;
    const int *from = slot_gpus (t, stage, 0),
              *to = slot_gpus (t, (stage + 1) % t->pp, 0);
    int *out = t->scratch->share, *in = t->scratch->share_in, n = t->dp * t->slot;

    for (int i = 0; i < n; i += t->slot)
        change_flow_shares (t, from + i, to + i, out, in, 1);
    for (int i = 0; i < n; i += t->slot, at += apart)
        sends_price (t, from + i, to + i, tied, out, in, &q->r.send_s[at],
                     &q->r.return_s[at]);
    for (int i = 0; i < n; i += t->slot)
        change_flow_shares (t, from + i, to + i, out, in, -1);
}

/* Slots, boundaries and synchronisation of every stage. */
static void price_parts (struct pricing *q)
{
    const struct terms *t = &q->t;
    struct replicas *r = &q->r;
    int pp = t->pp, ignored;

    for (int i = 0; i < pp; i++) {
        stage_price (t, i, &r->slot[i], pp);
        if (has_boundary (t, i))
            price_boundary (q, i, false, i, pp);
        q->tail_s[i] = exposed_price (t, i, sync_price (t, i, &ignored), &r->slot[i], pp);
        q->optimizer_s[i] = optimizer_price (t, i);
    }
    if (t->volume.tied_bytes > 0) {
        double worst = 0.0;

        price_boundary (q, pp - 1, true, t->dp * pp, 1);
        for (int at = t->dp * pp; at < t->dp * (pp + 1); at++)
            worst = fmax (worst, fmax (r->send_s[at], r->return_s[at]));
        q->tail_s[0] += worst;
        q->tail_s[pp - 1] += worst;
    }
}

/* The stage and replica that end last, and the step's parts along them. */
static void find_path (const struct pricing *q, bool skip, struct costmodel_estimate *e)
{
    const struct terms *t = &q->t;
    const double *end_s = q->r.end_s;
    int pp = t->pp;

    e->step_s = -1.0;
    for (int i = 0; i < pp; i++) {
        int slowest = 0;

        for (int d = 1; d < t->dp; d++)
            if (end_s[d * pp + i] > end_s[slowest * pp + i])
                slowest = d;

        double end = end_s[slowest * pp + i] + q->tail_s[i] + q->optimizer_s[i];

        if (end > e->step_s) {
            e->step_s = end;
            e->stage = i;
            e->replica = slowest;
        }
    }

    /* The same pipeline with sends that take no time tells bubble from P2P. */
    struct replicas alone = replicas_from (&q->r, t, e->replica);
    double end = alone.end_s[e->stage], without_sends;

    alone.send_s = alone.return_s = q->zero_s;
    alone.end_s = q->without_sends_s;
    pipeline_play (t, alone, skip, NULL);
    without_sends = alone.end_s[e->stage];

    const struct slot_time *slot = &alone.slot[e->stage];
    double busy = t->microbatches * (slot->fwd_s + slot->back_s);

    e->tp_by = slot->tp_by;
    e->ep_hidden_s = t->microbatches * slot->ep_hidden_s;
    e->part = (struct costmodel_breakdown){
        .tp_s = t->microbatches * slot->tp_s,
        .cp_s = t->microbatches * slot->cp_s,
        .ep_s = t->microbatches * slot->ep_s,
        .bubble_s = fmax (0.0, without_sends - busy),
        .pp_s = fmax (0.0, end - without_sends),
        .dp_s = q->tail_s[e->stage],
        .optimizer_s = q->optimizer_s[e->stage],
    };
    e->part.compute_s = e->step_s - e->part.tp_s - e->part.cp_s - e->part.ep_s -
                        e->part.bubble_s - e->part.pp_s - e->part.dp_s -
                        e->part.optimizer_s;
}

static void rates (const struct terms *t, struct costmodel_estimate *e)
{
    const struct costmodel_problem *p = &t->problem;
    double peak = 0.0;

    for (int r = 0; r < t->world; r++)
        peak += costmodel_matrix_rate (topology_gpu_type_of (p->cluster, t->gpu[r]),
                                       p->job->precision);
    e->mfu = costmodel_trained_flop (p->model, p->job) / (e->step_s * peak);
    e->tokens_per_s = (double) p->job->seq * p->job->global_batch / e->step_s;
}

static enum status check_types (const struct terms *t, struct error *err)
{
    for (int r = 0; r < t->world; r++) {
        int node = t->node_of[t->gpu[r]], k = t->type_of_node[node];

        if (t->refused[k])
            return err_set (err, ST_INVALID, "node %s: GPU type %s cannot run %s",
                            t->problem.cluster->node[node].name, t->type[k]->name,
                            workload_precision_name (t->problem.job->precision));
    }
    return ST_OK;
}

void pricing_release (struct pricing *q)
{
    use_log_release (&q->log);
    replicas_release (&q->r);
    terms_release (&q->t);
    free (q->tail_s);
}

enum status pricing_init (struct pricing *q, const struct costmodel_problem *p,
                          const int *gpu_of_rank, struct slow_links *slow,
                          struct error *err)
{
    int pp = p->config->deg.pp;
    enum status st;

    *q = (struct pricing){.log.all = p->cluster->has_estimates,
                          .tail_s = calloc (4 * (size_t) pp, sizeof *q->tail_s)};
    st = q->tail_s ? terms_init (&q->t, p, err) : err_nomem (err);
    if (st == ST_OK) {
        q->optimizer_s = q->tail_s + pp;
        q->zero_s = q->optimizer_s + pp;
        q->without_sends_s = q->zero_s + pp;
        q->t.gpu = gpu_of_rank;
        q->t.log = &q->log;
        q->t.slow = slow;
        q->t.plain = q->t.plain && !(slow && slow->sort == COSTMODEL_INSIDE);
        st = check_types (&q->t, err);
    }
    THEN (st, replicas_init (&q->r, &q->t, err));
    if (st == ST_OK && p->kind == COSTMODEL_CRITICAL_PATH)
        price_parts (q);
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
        st = published_price (&q, &e, err);
    } else if (st == ST_OK) {
        for (int d = 0; d < q.t.dp; d++)
            pipeline_play (&q.t, replicas_from (&q.r, &q.t, d), skip, NULL);
        find_path (&q, skip, &e);
        q.t.log = NULL; /* all is listed */
        e.dp_by = sync_by (&q.t, e.stage);
    }
    if (st == ST_OK && q.log.failed)
        st = err_nomem (err);
    if (st == ST_OK && !isfinite (e.step_s))
        st = err_set (err, ST_NOFIT,
                      "ranks that must talk are not connected: no link of "
                      "that kind was measured");
    if (st == ST_OK) {
        rates (&q.t, &e);
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

#define PART(member) offsetof (struct costmodel_breakdown, member)
const struct costmodel_part costmodel_parts[COSTMODEL_PARTS] = {
    {"compute", "compute", PART (compute_s)},
    {"tp", "tensor parallelism", PART (tp_s)},
    {"cp", "context parallelism", PART (cp_s)},
    {"ep", "expert parallelism", PART (ep_s)},
    {"bubble", "pipeline bubble", PART (bubble_s)},
    {"pp", "pipeline sends", PART (pp_s)},
    {"dp", "data parallelism", PART (dp_s)},
    {"optimizer", "optimizer", PART (optimizer_s)}};

void costmodel_breakdown_less (struct costmodel_breakdown *b,
                               const struct costmodel_breakdown *of)
{
    for (int k = 0; k < COSTMODEL_PARTS; k++)
        *(double *) (void *) ((char *) b + costmodel_parts[k].at) -=
            costmodel_part_s (of, k);
}

json_t *costmodel_breakdown_to_json (const struct costmodel_breakdown *b)
{
    json_t *doc = json_object ();

    for (int k = 0; k < COSTMODEL_PARTS; k++)
        json_object_set_new (doc, costmodel_parts[k].key,
                             json_real (costmodel_part_s (b, k)));
    return doc;
}

json_t *costmodel_estimate_to_json (const struct costmodel_estimate *e)
{
    json_t *doc = json_pack ("{s:f, s:f, s:f, s:i, s:i, s:s, s:s, s:o}", "step_s",
                             e->step_s, "mfu", e->mfu, "tokens_per_s", e->tokens_per_s,
                             "binding_stage", e->stage, "binding_replica", e->replica,
                             "tp_collective", workload_all_reduce_name (e->tp_by),
                             "dp_collective", workload_all_reduce_name (e->dp_by),
                             "breakdown_s", costmodel_breakdown_to_json (&e->part));

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

enum status costmodel_plan_gpus (const struct workload_plan *p,
                                 const struct topology_cluster *c, int *gpu,
                                 struct error *err)
{
    for (int r = 0; r < p->n_ranks; r++) {
        int node = topology_node_find (c, p->place[r].node);
        const struct topology_node *n = node >= 0 ? &c->node[node] : NULL;

        if (!n)
            return err_set (err, ST_INVALID, "rank %d: the cluster %s has no node \"%s\"",
                            r, c->name, p->place[r].node);
        gpu[r] = topology_gpu_find (c, node, p->place[r].gpu);
        if (gpu[r] < 0)
            return err_set (err, ST_INVALID,
                            "rank %d: node %s has GPUs 0 to %d%s, the plan says %d", r,
                            n->name, n->gpus_listed - 1,
                            n->gpus < n->gpus_listed ? ", some of them drained" : "",
                            p->place[r].gpu);
    }
    return ST_OK;
}
