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

static enum status allocate (struct costmodel_state *s, struct error *err)
{
    const struct terms *t = &s->t;
    size_t pp = (size_t) t->pp, dp = (size_t) t->dp, cells = pp * dp;
    size_t rows = pp + 1, nodes = (size_t) s->nodes;
    double *d =
        calloc (3 * cells + 2 * dp + 2 * pp + (size_t) pipeline_work (t), sizeof *d);
    int *i =
        calloc (pp * nodes + 2 * rows * nodes + 2 * cells + 2 * rows * dp, sizeof *i);
    bool *b = calloc (cells + rows * dp + 2 * pp + rows + dp, sizeof *b);

    s->send_s = d;
    s->slot_node = i;
    s->slot_dirty = b;
    s->slot = calloc (cells, sizeof *s->slot);
    s->stage_end = calloc (pp, sizeof *s->stage_end);
    s->gpu = malloc ((size_t) s->n * sizeof (int));
    s->lane_s = calloc ((size_t) t->world + dp, sizeof *s->lane_s);
    s->stamp = calloc (rows * nodes, sizeof *s->stamp);
    if (!d || !i || !b || !s->slot || !s->stage_end || !s->gpu || !s->stamp || !s->lane_s)
        return err_nomem (err);
    s->return_s = d + cells;
    s->end_s = s->return_s + cells;
    s->tied_ab_s = s->end_s + cells;
    s->tied_ba_s = s->tied_ab_s + dp;
    s->latest_s = s->tied_ba_s + dp;
    s->sum_s = s->latest_s + pp;
    s->work = s->sum_s + pp;
    s->touched_slot = i + cells;
    s->tp_share = s->touched_slot + cells;
    s->flows_out = s->tp_share + pp * nodes;
    s->flows_in = s->flows_out + rows * nodes;
    s->touched_sends = s->flows_in + rows * nodes;
    s->sends_unmeasured = s->touched_sends + rows * dp;
    s->pipe_s = s->lane_s + t->world;
    s->sends_dirty = b + cells;
    s->stage_dirty = s->sends_dirty + rows * dp;
    s->crossing = s->stage_dirty + pp;
    s->boundary_dirty = s->crossing + pp;
    s->replica_dirty = s->boundary_dirty + rows;
    return journal_init (s, err);
}

/* ---- what an exchange touches ---- */

static const int *slot_gpus (const struct costmodel_state *s, int slot)
{
    return s->gpu + (size_t) slot * (size_t) s->t.slot;
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
    const int *node_of = s->t.problem.cluster->node_of_gpu;
    int from = source_of (s, k), to = target_of (s, k);
    int a = s->slot_node[from], b = s->slot_node[to];
    const int *src = slot_gpus (s, from), *dst = slot_gpus (s, to);
    size_t row = (size_t) (k / s->t.dp) * (size_t) s->nodes;

    if (a != SPREAD && b != SPREAD) {
        if (a != b) {
            s->flows_out[row + (size_t) a] += by * s->t.slot;
            s->flows_in[row + (size_t) b] += by * s->t.slot;
        }
        s->stamp[row + (size_t) a] = s->stamp[row + (size_t) b] = s->exchanges;
        return;
    }
    change_flow_shares (&s->t, src, dst, s->flows_out + row, s->flows_in + row, by);
    for (int r = 0; r < s->t.slot; r++) {
        s->stamp[row + (size_t) node_of[src[r]]] = s->exchanges;
        s->stamp[row + (size_t) node_of[dst[r]]] = s->exchanges;
    }
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
    if (s->sends_dirty[k])
        return;
    s->sends_dirty[k] = s->boundary_dirty[k / s->t.dp] = true;
    s->touched_sends[s->n_sends++] = k;
}

/* A slot, and the sends from and to it. */
static void touch_slot (struct costmodel_state *s, int slot)
{
    const struct terms *t = &s->t;
    int stage = slot / t->dp, d = slot % t->dp, before = (stage + t->pp - 1) % t->pp;

    if (s->slot_dirty[slot])
        return;
    s->slot_dirty[slot] = s->stage_dirty[stage] = true;
    s->touched_slot[s->n_slots++] = slot;
    if (has_sends (s, stage))
        touch_sends (s, slot);
    if (has_sends (s, before))
        touch_sends (s, before * t->dp + d);
    if (t->volume.tied_bytes > 0 && !is_published (s) &&
        (stage == 0 || stage == t->pp - 1))
        touch_sends (s, t->pp * t->dp + d);
}

/* Take what is touched out of the counts, or put it back. */
static void count_touched (struct costmodel_state *s, int by)
{
    const struct terms *t = &s->t;

    for (int i = 0; i < s->n_slots; i++) {
        int slot = s->touched_slot[i], stage = slot / t->dp;

        if (s->slot_node[slot] == SPREAD &&
            change_tp_shares (t, slot_gpus (s, slot), t->cp,
                              s->tp_share + (size_t) stage * (size_t) s->nodes, by))
            s->crossing[stage] = true;
    }
    for (int i = 0; i < s->n_sends && t->limited; i++)
        count_flows (s, s->touched_sends[i], by);
}

/* After a change of GPUs. */
static void find_slot_nodes (struct costmodel_state *s)
{
    const struct terms *t = &s->t;

    for (int i = 0; i < s->n_slots; i++) {
        const int *g = slot_gpus (s, s->touched_slot[i]);

        s->slot_node[s->touched_slot[i]] =
            inside_node (t, g, t->slot) ? t->problem.cluster->node_of_gpu[g[0]] : SPREAD;
    }
}

/* Add what sees a changed count. */
static void touch_sharers (struct costmodel_state *s)
{
    const struct terms *t = &s->t;

    for (int i = 0; i < t->pp; i++) {
        for (int k = i * t->dp; k < (i + 1) * t->dp && s->crossing[i]; k++)
            if (s->slot_node[k] == SPREAD && !s->slot_dirty[k]) {
                s->slot_dirty[k] = true;
                s->touched_slot[s->n_slots++] = k;
            }
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

static bool same_times (const struct slot_time *a, const struct slot_time *b)
{
    return a->fwd_s == b->fwd_s && a->back_s == b->back_s && a->weight_s == b->weight_s &&
           memcmp (&a->embedding, &b->embedding, sizeof a->embedding) == 0 &&
           memcmp (&a->head, &b->head, sizeof a->head) == 0;
}

static void reprice_slot (struct costmodel_state *s, int k)
{
    const struct terms *t = &s->t;
    int stage = k / t->dp, d = k % t->dp;
    struct slot_time *slot = &s->slot[d * t->pp + stage], old = *slot;

    s->slot_dirty[k] = false;
    if (is_joint (t, stage))
        return; /* with its whole stage */
    journal_slot (s, d * t->pp + stage);
    slot_price (t, s->gpu, stage, d, s->tp_share + (size_t) stage * (size_t) s->nodes,
                &s->scratch, NULL, slot);
    s->unmeasured += slot->unmeasured - old.unmeasured;
    if (!same_times (slot, &old))
        s->replica_dirty[d] = true;
}

static void reprice_stage (struct costmodel_state *s, int stage)
{
    const struct terms *t = &s->t;
    int unmeasured;

    for (int d = 0; d < t->dp; d++)
        journal_slot (s, d * t->pp + stage);
    unmeasured =
        stage_price (t, s->gpu, stage, &s->scratch, NULL, &s->slot[stage], t->pp);
    s->unmeasured += unmeasured - s->stage_end[stage].unmeasured;
    s->stage_end[stage].unmeasured = unmeasured;
    memset (s->replica_dirty, true, (size_t) t->dp * sizeof *s->replica_dirty);
}

static void count_unmeasured_sends (struct costmodel_state *s, int k, int unmeasured)
{
    s->sends_dirty[k] = false;
    s->unmeasured += unmeasured - s->sends_unmeasured[k];
    s->sends_unmeasured[k] = unmeasured;
}

static void reprice_lanes (struct costmodel_state *s, int k)
{
    count_unmeasured_sends (
        s, k,
        published_sends (&s->t, slot_gpus (s, source_of (s, k)),
                         slot_gpus (s, target_of (s, k)), NULL,
                         s->lane_s + (size_t) k * (size_t) s->t.slot));
    s->replica_dirty[k % s->t.dp] = true;
}

static void reprice_sends (struct costmodel_state *s, int k)
{
    const struct terms *t = &s->t;
    int row = k / t->dp, d = k % t->dp, unmeasured;
    bool tied = row == t->pp;
    double *ab = sends_there (s, k), *ba = sends_back (s, k), there, back;

    journal_sends (s, k);
    unmeasured =
        sends_price (t, slot_gpus (s, source_of (s, k)), slot_gpus (s, target_of (s, k)),
                     tied ? t->volume.tied_bytes : t->volume.p2p_bytes,
                     s->flows_out + (size_t) row * (size_t) s->nodes,
                     s->flows_in + (size_t) row * (size_t) s->nodes, NULL,
                     tied ? "dp" : "pp", &there, &back);
    count_unmeasured_sends (s, k, unmeasured);
    if (*ab == there && *ba == back)
        return;
    *ab = there;
    *ba = back;
    if (!tied)
        s->replica_dirty[d] = true;
}

static void reprice_tail (struct costmodel_state *s, int stage)
{
    const struct terms *t = &s->t;
    struct stage_end *end = &s->stage_end[stage];
    int unmeasured;

    if (is_published (s)) {
        end->sync_s = published_sync_s (t, s->gpu, stage, &s->scratch, NULL, &unmeasured);
    } else {
        double sync_s = sync_price (t, s->gpu, stage, s->slot_node + stage * t->dp,
                                    &s->scratch, NULL, &unmeasured);

        end->sync_s = exposed_price (t, s->gpu, stage, sync_s, &s->slot[stage], t->pp);
        end->optimizer_s = optimizer_price (t, s->gpu, stage);
    }
    s->unmeasured += unmeasured - end->sync_unmeasured;
    end->sync_unmeasured = unmeasured;
}

/* Do two replicas take as long everywhere, as they do where links and GPUs are alike? */
static bool same_replicas (const struct costmodel_state *s, int a, int b)
{
    size_t pp = (size_t) s->t.pp, x = (size_t) a * pp, y = (size_t) b * pp;
    bool same = memcmp (s->send_s + x, s->send_s + y, pp * sizeof (double)) == 0 &&
                memcmp (s->return_s + x, s->return_s + y, pp * sizeof (double)) == 0;

    for (size_t i = 0; i < pp && same; i++)
        same = same_times (&s->slot[x + i], &s->slot[y + i]);
    return same;
}

/* Play the pipelines of the dirty replicas, two at a time; those that are like the first of
 * them end when it does. */
static void play_dirty (struct costmodel_state *s)
{
    const struct terms *t = &s->t;
    int pp = t->pp, waiting = -1, first = -1;

    for (int d = 0; d < t->dp; d++) {
        if (!s->replica_dirty[d])
            continue;
        journal_replica (s, d);
        if (first < 0)
            first = d;
        else if (same_replicas (s, first, d))
            continue;
        s->replica_dirty[d] = false;
        if (waiting < 0) {
            waiting = d * pp;
            continue;
        }

        const struct slot_time *const slot[] = {s->slot + waiting, s->slot + d * pp};
        const double *const send_s[] = {s->send_s + waiting, s->send_s + d * pp};
        const double *const return_s[] = {s->return_s + waiting, s->return_s + d * pp};
        double *const end_s[] = {s->end_s + waiting, s->end_s + d * pp};

        pipeline_play_two (t, slot, send_s, return_s, end_s, s->work);
        waiting = -1;
    }
    if (waiting >= 0)
        pipeline_play (t, s->slot + waiting, s->send_s + waiting, s->return_s + waiting,
                       true, NULL, s->end_s + waiting, s->work);
    for (int d = 0; d < t->dp; d++)
        if (s->replica_dirty[d]) {
            memcpy (s->end_s + d * pp, s->end_s + first * pp,
                    (size_t) pp * sizeof (double));
            s->replica_dirty[d] = false;
        }
}

/* The largest end decides; the others count a little, so that a search sees a way where
 * the largest alone is flat. */
#define SMOOTH_WEIGHT 0.02

static void sum_up (struct costmodel_state *s)
{
    const struct terms *t = &s->t;
    struct costmodel_price price = {.unmeasured = s->unmeasured};
    double others = 0.0;
    int pp = t->pp;

    memset (s->latest_s, 0, (size_t) pp * sizeof *s->latest_s);
    memset (s->sum_s, 0, (size_t) pp * sizeof *s->sum_s);
    for (int d = 0; d < t->dp; d++) {
        const double *end = s->end_s + d * pp;

        for (int i = 0; i < pp; i++) {
            s->latest_s[i] = end[i] > s->latest_s[i] ? end[i] : s->latest_s[i];
            s->sum_s[i] += end[i];
        }
    }
    for (int i = 0; i < pp; i++) {
        double tail = s->stage_end[i].sync_s + s->stage_end[i].optimizer_s;

        if (i == 0 || i == pp - 1)
            tail += s->tied_s;
        price.step_s = fmax (price.step_s, s->latest_s[i] + tail);
        others += s->sum_s[i] / t->dp + tail;
    }
    if (!isfinite (price.step_s))
        price.step_s = INFINITY;
    price.smooth_s = price.step_s + SMOOTH_WEIGHT * others / pp;
    s->price = price;
}

/* Add up the slowest lane of every dirty replica. */
static void sum_dirty (struct costmodel_state *s)
{
    const struct terms *t = &s->t;

    for (int d = 0; d < t->dp; d++) {
        if (!s->replica_dirty[d])
            continue;
        s->replica_dirty[d] = false;
        s->pipe_s[d] = 0.0;
        for (int r = 0; r < t->slot; r++) {
            double sum = 0.0;

            for (int i = 0; i + 1 < t->pp; i++)
                sum +=
                    s->lane_s[(size_t) (i * t->dp + d) * (size_t) t->slot + (size_t) r];
            s->pipe_s[d] = fmax (s->pipe_s[d], sum);
        }
    }
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
        for (int i = 0; i < t->pp; i++)
            s->latest_s[i] =
                fmax (s->latest_s[i], published_compute_s (t, &s->slot[d * t->pp + i]));
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
    for (int i = 0; i < s->n_slots; i++)
        reprice_slot (s, s->touched_slot[i]);
    for (int i = 0; i < s->n_sends; i++)
        (is_published (s) ? reprice_lanes : reprice_sends) (s, s->touched_sends[i]);
    for (int i = 0; i < t->pp; i++) {
        if (!s->stage_dirty[i])
            continue;
        s->stage_dirty[i] = false;
        if (is_joint (t, i))
            reprice_stage (s, i);
        reprice_tail (s, i);
    }
    if (s->boundary_dirty[t->pp]) {
        s->tied_s = 0.0;
        for (int d = 0; d < t->dp; d++)
            s->tied_s = fmax (s->tied_s, fmax (s->tied_ab_s[d], s->tied_ba_s[d]));
    }
    memset (s->boundary_dirty, 0, (size_t) (t->pp + 1) * sizeof *s->boundary_dirty);
    s->n_slots = s->n_sends = 0;
    if (is_published (s)) {
        sum_dirty (s);
        sum_published (s);
    } else {
        play_dirty (s);
        sum_up (s);
    }
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
        s->nodes = p->cluster->n_nodes;
        st = terms_init (&s->t, &s->problem, err);
    }
    if (st == ST_OK)
        st = scratch_init (&s->scratch, &s->t, err);
    if (st == ST_OK)
        st = allocate (s, err);
    if (st != ST_OK) {
        costmodel_state_destroy (s);
        return st;
    }
    costmodel_state_reset (s, gpu);
    *out = s;
    return ST_OK;
}

void costmodel_state_destroy (struct costmodel_state *s)
{
    if (!s)
        return;
    terms_release (&s->t);
    scratch_release (&s->scratch);
    free (s->layers);
    free (s->gpu);
    free (s->slot);
    free (s->stage_end);
    free (s->send_s);
    free (s->lane_s);
    free (s->slot_node);
    free (s->stamp);
    free (s->slot_dirty);
    journal_release (s);
    free (s);
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
    reprice (s);
}

/* Exchange the GPUs and keep the counts; what is touched is left on the lists. */
static void exchange (struct costmodel_state *s, const int *a, const int *b, int n)
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
    for (int k = 0; k < n; k++) {
        int x = s->gpu[a[k]];

        s->gpu[a[k]] = s->gpu[b[k]];
        s->gpu[b[k]] = x;
    }
    find_slot_nodes (s);
    count_touched (s, 1);
}

void costmodel_state_exchange (struct costmodel_state *s, const int *a, const int *b,
                               int n)
{
    exchange (s, a, b, n);
    touch_sharers (s);
    reprice (s);
}

void costmodel_state_undo (struct costmodel_state *s, const int *a, const int *b, int n)
{
    size_t pp = (size_t) s->t.pp;

    if (is_published (s)) { /* these have no journal of their lanes */
        costmodel_state_exchange (s, a, b, n);
        return;
    }
    exchange (s, a, b, n);
    for (int i = 0; i < s->n_slots; i++)
        s->slot_dirty[s->touched_slot[i]] = false;
    for (int i = 0; i < s->n_sends; i++)
        s->sends_dirty[s->touched_sends[i]] = false;
    s->n_slots = s->n_sends = 0;
    memset (s->stage_dirty, 0, pp * sizeof *s->stage_dirty);
    memset (s->crossing, 0, pp * sizeof *s->crossing);
    memset (s->boundary_dirty, 0, (pp + 1) * sizeof *s->boundary_dirty);
    journal_restore (s);
}

struct costmodel_price costmodel_state_price (const struct costmodel_state *s)
{
    return s->price;
}

const int *costmodel_state_gpus (const struct costmodel_state *s)
{
    return s->gpu;
}
