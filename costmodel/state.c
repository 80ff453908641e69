/* A placement whose price follows its changes.
 *
 * An exchange reprices the slots that it touches, their sends, the synchronisation of
 * their stages, and the pipelines whose times changed.  Slots and sends also depend on how
 * many others use a node's way out: those counts are kept, and what sees one of them
 * change is repriced too. */
#include "costmodel/state_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static enum status allocate (struct costmodel_state *s, struct error *err)
{
    const struct terms *t = &s->t;
    size_t pp = (size_t) t->pp, dp = (size_t) t->dp, cells = pp * dp;
    size_t rows = pp + 1, nodes = (size_t) s->nodes;
    double *d = calloc (2 * pp + (size_t) t->world + dp, sizeof *d);
    int *i =
        calloc (pp * nodes + 2 * rows * nodes + 2 * cells + 2 * rows * dp, sizeof *i);
    bool *b = calloc (cells + rows * dp + 2 * pp + rows + dp, sizeof *b);

    s->latest_s = d;
    s->slot_node = i;
    s->slots.is = b;
    s->begun = malloc (dp * sizeof *s->begun);
    s->stage_end = calloc (pp, sizeof *s->stage_end);
    s->gpu = malloc ((size_t) s->n * sizeof (int));
    s->stamp = calloc (rows * nodes, sizeof *s->stamp);
    if (!d || !i || !b || !s->begun || !s->stage_end || !s->gpu || !s->stamp)
        return err_nomem (err);
    s->t.gpu = s->gpu;
    s->sum_s = d + pp;
    s->lane_s = s->sum_s + pp;
    s->pipe_s = s->lane_s + t->world;
    s->slots.list = i + cells;
    s->tp_share = s->slots.list + cells;
    s->flows_out = s->tp_share + pp * nodes;
    s->flows_in = s->flows_out + rows * nodes;
    s->sends.list = s->flows_in + rows * nodes;
    s->sends_unmeasured = s->sends.list + rows * dp;
    s->sends.is = b + cells;
    s->stage_dirty = s->sends.is + rows * dp;
    s->crossing = s->stage_dirty + pp;
    s->boundary_dirty = s->crossing + pp;
    s->replica_dirty = s->boundary_dirty + rows;
    return journal_init (s, err);
}

/* ---- what an exchange touches ---- */

/* GPUs of the slot with that number. */
static const int *gpus_of (const struct costmodel_state *s, int slot)
{
    return slot_gpus (&s->t, 0, slot);
}

/* Number of the slot that sends `k` go to. */
static int target_of (const struct costmodel_state *s, int k)
{
    const struct terms *t = &s->t;
    int row = k / t->dp, d = k % t->dp;

    return row == t->pp ? d : (row + 1) % t->pp * t->dp + d;
}

/* Number of the slot that they come from. */
static int source_of (const struct costmodel_state *s, int k)
{
    const struct terms *t = &s->t;

    return k < t->pp * t->dp ? k : k - t->dp;
}

/* Take the flows of sends off their nodes or put them on, and mark those nodes. */
static void count_flows (struct costmodel_state *s, int k, int by)
{
    const int *node_of = s->t.node_of;
    int from = source_of (s, k), to = target_of (s, k);
    int a = s->slot_node[from], b = s->slot_node[to];
    const int *src = gpus_of (s, from), *dst = gpus_of (s, to);
    size_t row = (size_t) (k / s->t.dp) * (size_t) s->nodes;
    int *out = s->flows_out + row, *in = s->flows_in + row;
    unsigned *stamp = s->stamp + row;

    if (a != SPREAD && b != SPREAD) {
        if (a != b) {
            out[a] += by * s->t.slot;
            in[b] += by * s->t.slot;
        }
        stamp[a] = stamp[b] = s->exchanges;
        return;
    }
    change_flow_shares (&s->t, src, dst, out, in, by);
    for (int r = 0; r < s->t.slot; r++)
        stamp[node_of[src[r]]] = stamp[node_of[dst[r]]] = s->exchanges;
}

/* Do published models price the placement? */
static bool is_published (const struct costmodel_state *s)
{
    return s->problem.kind != COSTMODEL_CRITICAL_PATH;
}

/* Are there sends from this stage to the next? */
static bool has_sends (const struct costmodel_state *s, int stage)
{
    return is_published (s) ? stage < s->t.pp - 1 : has_boundary (&s->t, stage);
}

static void touch_sends (struct costmodel_state *s, int k)
{
    if (touch (&s->sends, k))
        s->boundary_dirty[k / s->t.dp] = true;
}

/* A slot, and the sends from and to it. */
static void touch_slot (struct costmodel_state *s, int slot)
{
    const struct terms *t = &s->t;
    int stage = slot / t->dp, d = slot % t->dp, before = (stage + t->pp - 1) % t->pp;

    touch (&s->slots, slot); /* its layers may have been, without its sends */
    s->stage_dirty[stage] = true;
    if (has_sends (s, stage))
        touch_sends (s, slot);
    if (has_sends (s, before))
        touch_sends (s, before * t->dp + d);
    if (t->volume.tied_bytes > 0 && !is_published (s) &&
        (stage == 0 || stage == t->pp - 1))
        touch_sends (s, t->pp * t->dp + d);
}

static int *tp_share_of (const struct costmodel_state *s, int stage)
{
    return s->tp_share + (size_t) stage * (size_t) s->nodes;
}

/* Take what is touched out of the counts, or put it back. */
static void count_touched (struct costmodel_state *s, int by)
{
    const struct terms *t = &s->t;

    for (int i = 0; i < s->slots.n; i++) {
        int slot = s->slots.list[i], stage = slot / t->dp;

        if (s->slot_node[slot] == SPREAD &&
            change_tp_shares (t, gpus_of (s, slot), t->cp, tp_share_of (s, stage), by))
            s->crossing[stage] = true;
    }
    for (int i = 0; i < s->sends.n && t->limited; i++)
        count_flows (s, s->sends.list[i], by);
}

/* After a change of GPUs. */
static void find_slot_nodes (struct costmodel_state *s)
{
    const struct terms *t = &s->t;

    for (int i = 0; i < s->slots.n; i++) {
        int slot = s->slots.list[i];
        const int *g = gpus_of (s, slot);

        s->slot_node[slot] = inside_node (t, g, t->slot) ? t->node_of[g[0]] : SPREAD;
    }
}

/* Add what sees a changed count. */
static void touch_sharers (struct costmodel_state *s)
{
    const struct terms *t = &s->t;

    for (int i = 0; i < t->pp; i++) {
        for (int k = i * t->dp; k < (i + 1) * t->dp && s->crossing[i]; k++)
            if (s->slot_node[k] == SPREAD)
                touch (&s->slots, k);
        s->crossing[i] = false;
    }
    for (int i = 0; i <= t->pp && t->limited; i++) {
        const unsigned *stamp = s->stamp + (size_t) i * (size_t) s->nodes;

        if (!s->boundary_dirty[i])
            continue;

        const int *from = s->slot_node + source_of (s, i * t->dp),
                  *to = s->slot_node + target_of (s, i * t->dp);

        for (int d = 0; d < t->dp; d++)
            if (from[d] == SPREAD || to[d] == SPREAD || stamp[from[d]] == s->exchanges ||
                stamp[to[d]] == s->exchanges)
                touch_sends (s, i * t->dp + d);
    }
}

/* ---- repricing ---- */

static void reprice_slot (struct costmodel_state *s, int k)
{
    const struct terms *t = &s->t;
    int stage = k / t->dp, d = k % t->dp;
    struct slot_time *slot = &s->r.slot[d * t->pp + stage], old = *slot;

    if (is_joint (t, stage))
        return; /* with its whole stage */
    journal_slot (s, d * t->pp + stage);
    slot_price (t, stage, d, tp_share_of (s, stage), slot);
    s->unmeasured += slot->unmeasured - old.unmeasured;
    if (!same_times (slot, &old))
        s->replica_dirty[d] = true;
}

/* The slots of a stage that are priced together, if they are. */
static void reprice_stage (struct costmodel_state *s, int stage)
{
    const struct terms *t = &s->t;
    struct stage_end *end = &s->stage_end[stage];
    struct slot_time *slot = &s->r.slot[stage];
    int before = end->experts_unmeasured, first = s->was.n_slots;

    end->experts_unmeasured = 0;
    if (is_joint (t, stage)) {
        for (int d = 0; d < t->dp; d++) {
            journal_slot (s, d * t->pp + stage);
            before += slot[d * t->pp].unmeasured;
        }
        end->experts_unmeasured = stage_price (t, stage, slot, t->pp);
        for (int d = 0; d < t->dp; d++) {
            s->unmeasured += slot[d * t->pp].unmeasured;
            if (s->was.idle ||
                !same_times (&slot[d * t->pp], &s->was.slot[first + d].time))
                s->replica_dirty[d] = true;
        }
    }
    s->unmeasured += end->experts_unmeasured - before;
}

static void count_unmeasured_sends (struct costmodel_state *s, int k, int unmeasured)
{
    s->unmeasured += unmeasured - s->sends_unmeasured[k];
    s->sends_unmeasured[k] = unmeasured;
}

static void reprice_lanes (struct costmodel_state *s, int k)
{
    count_unmeasured_sends (
        s, k,
        published_sends (&s->t, gpus_of (s, source_of (s, k)),
                         gpus_of (s, target_of (s, k)),
                         s->lane_s + (size_t) k * (size_t) s->t.slot));
    s->replica_dirty[k % s->t.dp] = true;
}

static void reprice_sends (struct costmodel_state *s, int k)
{
    const struct terms *t = &s->t;
    int row = k / t->dp, at = sends_at (s, k);
    size_t nodes = (size_t) row * (size_t) s->nodes;
    double there, back;

    journal_sends (s, k);
    count_unmeasured_sends (s, k,
                            sends_price (t, gpus_of (s, source_of (s, k)),
                                         gpus_of (s, target_of (s, k)), row == t->pp,
                                         s->flows_out + nodes, s->flows_in + nodes,
                                         &there, &back));
    if (s->r.send_s[at] == there && s->r.return_s[at] == back)
        return;
    s->r.send_s[at] = there;
    s->r.return_s[at] = back;
    if (row < t->pp)
        s->replica_dirty[k % t->dp] = true;
}

static void reprice_tail (struct costmodel_state *s, int stage)
{
    const struct terms *t = &s->t;
    struct stage_end *end = &s->stage_end[stage];
    int unmeasured;

    if (is_published (s)) {
        end->sync_s = published_sync_s (t, stage, &unmeasured);
    } else {
        struct sync_time sync = sync_price (t, stage, &unmeasured);

        end->sync_s = exposed_price (t, stage, sync, &s->r.slot[stage], t->pp);
        end->optimizer_s = optimizer_price (t, stage);
    }
    s->unmeasured += unmeasured - end->sync_unmeasured;
    end->sync_unmeasured = unmeasured;
}

static void sum_published (struct costmodel_state *s)
{
    const struct terms *t = &s->t;
    struct costmodel_breakdown part;
    double slowest = 0.0, pipes = 0.0, syncs = 0.0;

    for (int i = 0; i < t->pp; i++) {
        s->latest_s[i] = 0.0;
        s->sum_s[i] = s->stage_end[i].sync_s;
        syncs += s->sum_s[i];
    }
    for (int d = 0; d < t->dp; d++) {
        if (s->replica_dirty[d])
            s->pipe_s[d] =
                published_pipe_s (t, s->lane_s + d * t->slot, (size_t) (t->dp * t->slot));
        s->replica_dirty[d] = false;
        for (int i = 0; i < t->pp; i++)
            s->latest_s[i] =
                fmax (s->latest_s[i], published_compute_s (t, &s->r.slot[d * t->pp + i]));
        slowest = fmax (slowest, s->pipe_s[d]);
        pipes += s->pipe_s[d];
    }
    part = published_step (t, s->latest_s, slowest, s->sum_s);
    s->price = (struct costmodel_price){.unmeasured = s->unmeasured,
                                        .step_s = published_sum_s (&part)};
    if (!isfinite (s->price.step_s))
        s->price.step_s = INFINITY;
    s->price.smooth_s = s->price.step_s + SMOOTH_WEIGHT * (pipes / t->dp + syncs / t->pp);
}

/* Reprice what is touched, and forget the touches. */
static void reprice (struct costmodel_state *s)
{
    const struct terms *t = &s->t;

    journal_begin (s);
    for (int i = 0; i < s->slots.n; i++)
        reprice_slot (s, s->slots.list[i]);
    for (int i = 0; i < s->sends.n; i++)
        (is_published (s) ? reprice_lanes : reprice_sends) (s, s->sends.list[i]);
    for (int i = 0; i < t->pp; i++) {
        if (!s->stage_dirty[i])
            continue;
        s->stage_dirty[i] = false;
        reprice_stage (s, i);
        reprice_tail (s, i);
    }
    if (s->boundary_dirty[t->pp]) {
        s->tied_s = 0.0;
        for (int at = t->dp * t->pp; at < t->dp * (t->pp + 1); at++)
            s->tied_s = fmax (s->tied_s, fmax (s->r.send_s[at], s->r.return_s[at]));
    }
    memset (s->boundary_dirty, 0, (size_t) (t->pp + 1) * sizeof *s->boundary_dirty);
    forget (&s->slots);
    forget (&s->sends);
    (is_published (s) ? sum_published : play_replicas) (s);
}

enum status costmodel_state_create (const struct costmodel_problem *p, const int *gpu,
                                    int n, struct costmodel_state **out,
                                    struct error *err)
{
    struct costmodel_state *s = calloc (1, sizeof *s);
    size_t pp = (size_t) p->config->deg.pp;
    enum status st = s ? ST_OK : err_nomem (err);

    if (st == ST_OK && !(s->layers = malloc (pp * sizeof (int))))
        st = err_nomem (err);
    if (st == ST_OK) {
        memcpy (s->layers, p->layers, pp * sizeof (int));
        s->config = *p->config;
        s->problem = *p;
        s->problem.layers = s->layers;
        s->problem.config = &s->config;
        s->n = n;
        s->most = (struct costmodel_price){0, INFINITY, INFINITY};
        s->nodes = p->cluster->n_nodes;
        st = terms_init (&s->t, &s->problem, err);
    }
    THEN (st, replicas_init (&s->r, &s->t, err));
    THEN (st, allocate (s, err));
    if (st != ST_OK) {
        costmodel_state_destroy (s);
        return st;
    }
    if (gpu)
        costmodel_state_reset (s, gpu);
    *out = s;
    return ST_OK;
}

void costmodel_state_destroy (struct costmodel_state *s)
{
    if (!s)
        return;
    terms_release (&s->t);
    replicas_release (&s->r);
    FREE_ALL (s->layers, s->gpu, s->begun, s->stage_end, s->latest_s, s->slot_node,
              s->stamp, s->slots.is, s->was.slot, s->was.sends, s->was.replica,
              s->was.end_s, s->was.stage_end, s);
}

void costmodel_state_reset (struct costmodel_state *s, const int *gpu)
{
    const struct terms *t = &s->t;
    size_t pp = (size_t) t->pp, nodes = (size_t) s->nodes;

    memcpy (s->gpu, gpu, (size_t) s->n * sizeof (int));
    memset (s->tp_share, 0, pp * nodes * sizeof (int));
    memset (s->flows_out, 0, (pp + 1) * nodes * sizeof (int));
    memset (s->flows_in, 0, (pp + 1) * nodes * sizeof (int));
    memset (s->replica_dirty, true, (size_t) t->dp * sizeof *s->replica_dirty);
    for (int k = 0; k < t->pp * t->dp; k++)
        touch_slot (s, k);
    find_slot_nodes (s);
    count_touched (s, 1);
    s->was.idle = true;
    reprice (s);
    s->was.idle = false;
}

/* Exchange the GPUs, or back, and keep the counts; what is touched is left on the lists. */
static void exchange (struct costmodel_state *s, const int *a, const int *b, int n,
                      bool back)
{
    const struct terms *t = &s->t;

    s->exchanges++;
    for (int k = 0; k < n; k++) {
        if (a[k] < t->world)
            touch_slot (s, a[k] / t->slot);
        if (b[k] < t->world)
            touch_slot (s, b[k] / t->slot);
    }
    count_touched (s, -1);
    for (int i = 0; i < n; i++) {
        int k = back ? n - 1 - i : i, x = s->gpu[a[k]];

        s->gpu[a[k]] = s->gpu[b[k]];
        s->gpu[b[k]] = x;
    }
    find_slot_nodes (s);
    count_touched (s, 1);
}

void costmodel_state_exchange (struct costmodel_state *s, const int *a, const int *b,
                               int n)
{
    exchange (s, a, b, n, false);
    touch_sharers (s);
    reprice (s);
}

void costmodel_state_undo (struct costmodel_state *s, const int *a, const int *b, int n)
{
    size_t pp = (size_t) s->t.pp;

    exchange (s, a, b, n, true);
    if (is_published (s)) { /* these have no journal of their lanes */
        touch_sharers (s);
        reprice (s);
        return;
    }
    forget (&s->slots);
    forget (&s->sends);
    memset (s->stage_dirty, 0, pp * sizeof *s->stage_dirty);
    memset (s->crossing, 0, pp * sizeof *s->crossing);
    memset (s->boundary_dirty, 0, (pp + 1) * sizeof *s->boundary_dirty);
    memset (s->replica_dirty, 0, (size_t) s->t.dp * sizeof *s->replica_dirty);
    journal_restore (s);
}

static bool holds_same (const struct workload_stage *a, const struct workload_stage *b)
{
    return a->dense == b->dense && a->expert == b->expert &&
           memcmp (a->of, b->of, sizeof a->of) == 0 && a->first.dense == b->first.dense &&
           a->first.expert == b->first.expert && a->last.dense == b->last.dense &&
           a->last.expert == b->last.expert;
}

void costmodel_state_layers (struct costmodel_state *s, const int *layers)
{
    struct terms *t = &s->t;
    const struct costmodel_problem *p = &s->problem;
    bool dealt = !t->problem.chunks;

    s->problem.chunks = t->problem.chunks = NULL;
    for (int i = 0; i < t->pp; i++) {
        struct workload_stage held = workload_stage_of (p->model, p->config, layers, i);

        if (dealt && s->layers[i] == layers[i] && holds_same (&held, &t->held[i]))
            continue;
        s->layers[i] = layers[i];
        terms_hold (t, i, &held);
        s->stage_dirty[i] = true;
        for (int d = 0; d < t->dp; d++)
            touch (&s->slots, i * t->dp + d); /* sends are as they were */
    }
}

double costmodel_state_stage_s (const struct costmodel_state *s, int stage, double *end_s)
{
    double most = 0.0;

    *end_s = 0.0;
    for (int d = 0; d < s->t.dp; d++) {
        const struct slot_time *slot = &s->r.slot[d * s->t.pp + stage];
        double all = slot->fwd_s + slot->back_s;

        if (all > most) {
            most = all;
            *end_s = slot->embedding.fwd_s + slot->embedding.back_s + slot->head.fwd_s +
                     slot->head.back_s;
        }
    }
    return most;
}

void costmodel_state_stage_end (const struct costmodel_state *s, int stage, double *end_s,
                                double *hides_s)
{
    *end_s = 0.0;
    for (int d = 0; d < s->t.dp; d++)
        *end_s = larger (*end_s, s->r.end_s[d * s->t.pp + stage]);
    *end_s += stage_tail_s (s, stage) - s->stage_end[stage].sync_s;
    *hides_s = hiding_s (&s->t, stage, &s->r.slot[stage], s->t.pp);
}

/* ---- a placement of which only the first ranks are known ---- */

/* Ranks follow each other stage by stage, so that the first replicas of the last stage are a
 * stage of fewer replicas.  More replicas share its links, add expert groups to wait for and are
 * slower or not: its slots take no less then, and all their micro-batches one after the other. */
static double least_of (struct terms *t, int stage, struct slot_time *slot)
{
    double most_s = 0.0;

    stage_price (t, stage, slot, 1);
    for (int d = 0; d < t->dp; d++)
        most_s = fmax (most_s, slot[d].fwd_s + slot[d].back_s);
    return t->microbatches * most_s + optimizer_price (t, stage);
}

double costmodel_state_begun_s (struct costmodel_state *s, const int *gpu, int ranks)
{
    struct terms *t = &s->t;
    int dp = t->dp, slots = ranks / t->slot, stage;
    double least_s;

    if (slots == 0 || s->problem.kind != COSTMODEL_CRITICAL_PATH)
        return 0.0;
    stage = (slots - 1) / dp;
    t->dp = s->config.deg.dp = slots - stage * dp;
    t->gpu = gpu + (size_t) stage * (size_t) (dp - t->dp) * (size_t) t->slot;
    least_s = least_of (t, stage, s->begun);
    t->dp = s->config.deg.dp = dp;
    t->gpu = s->gpu;
    return least_s;
}

void costmodel_state_limit (struct costmodel_state *s, struct costmodel_price most)
{
    s->most = most;
}

struct costmodel_price costmodel_state_price (const struct costmodel_state *s)
{
    return s->price;
}

const int *costmodel_state_gpus (const struct costmodel_state *s)
{
    return s->gpu;
}
