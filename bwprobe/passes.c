/* The plan, and the passes over it.
 *
 * Alone and together.  A pair is measured alone when no other pair of the job shares anything
 * with it.  One pair at a time is that for certain, and is done where there is time for it.
 * Otherwise a few pairs are measured one at a time and again amid others, from all endpoints
 * at once down to ever fewer node pairs, and the largest number at which they reach what they
 * reach alone is taken: on a fabric that does not block, all at once.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "bwprobe/coordinator_private.h"

enum { SAMPLE = 8 }; /* pairs that are compared */

/* As good as alone: half of the pairs within 3 %, none below 90 %. */
#define LEVEL_MEDIAN 0.97
#define LEVEL_WORST 0.90

static void shuffle (struct rng *r, long *v, long n)
{
    for (long i = n - 1; i > 0; i--) {
        long k = (long) (rng_unit (r) * (double) (i + 1)), x = v[i];

        v[i] = v[k];
        v[k] = x;
    }
}

/* ---- how many at once ---- */

/* Random pairs between different nodes (inside the node when there is only one), no node
 * twice. */
static int choose_sample (struct coordinator *c, struct schedule_pair *pair)
{
    const struct schedule_shape *s = &c->shape;
    long *node = malloc ((size_t) s->nodes * sizeof *node);
    int n = 0;

    if (!node)
        return 0;
    for (int i = 0; i < s->nodes; i++)
        node[i] = i;
    shuffle (&c->rng, node, s->nodes);
    for (int i = 0; i + 1 < s->nodes && n < SAMPLE; i += 2) {
        int a = (int) node[i], b = (int) node[i + 1];

        pair[n++] = (struct schedule_pair){
            s->first[a] + rng_below (&c->rng, s->first[a + 1] - s->first[a]),
            s->first[b] + rng_below (&c->rng, s->first[b + 1] - s->first[b])};
    }
    if (s->nodes == 1)
        for (int i = 0; i + 1 < s->n && n < SAMPLE; i += 2)
            pair[n++] = (struct schedule_pair){i, i + 1};
    free (node);
    return n;
}

/* The sample amid others: all endpoints, or `at_once` node pairs, the sample's first. */
static int fill_round (struct coordinator *c, const struct schedule_pair *sample, int n,
                       int at_once, bool all, struct schedule_pair *pair)
{
    const struct schedule_shape *s = &c->shape;
    char *taken = calloc ((size_t) s->n + 1, 1);
    int k = n;

    if (!taken)
        return 0;
    memcpy (pair, sample, (size_t) n * sizeof *pair);
    for (int i = 0; i < n; i++)
        for (int side = 0; side < 2; side++) {
            int end = side ? sample[i].b : sample[i].a, node = c->end[end].node;

            /* Amid node pairs a node takes part once, amid endpoints each of them. */
            for (int e = all ? end : s->first[node];
                 e < (all ? end + 1 : s->first[node + 1]); e++)
                taken[e] = 1;
        }
    for (int a = 0; a < s->n && (all || k < at_once); a++) {
        int b = a + 1;

        if (taken[a] || !coordinator_alive (c, a) ||
            (!all && a != s->first[c->end[a].node]))
            continue;
        while (b < s->n && (taken[b] || !coordinator_alive (c, b) ||
                            (s->nodes > 1 && c->end[b].node == c->end[a].node) ||
                            (!all && b != s->first[c->end[b].node])))
            b++;
        if (b == s->n)
            continue;
        taken[a] = taken[b] = 1;
        pair[k++] = (struct schedule_pair){a, b};
    }
    free (taken);
    return k;
}

/* Lowest and median ratio of together to alone over the sample's directions. */
static bool as_good (const struct round_value *alone, const struct round_value *amid,
                     int n, double *worst)
{
    double ratio[2 * SAMPLE];
    int k = 0;

    for (int i = 0; i < n; i++)
        for (int d = 0; d < 2; d++)
            if (alone[i].bytes_per_s[d] > 0 && amid[i].bytes_per_s[d] > 0)
                ratio[k++] = amid[i].bytes_per_s[d] / alone[i].bytes_per_s[d];
    if (k == 0)
        return false;

    double median = stats_median (ratio, k);

    *worst = ratio[0];
    return median >= LEVEL_MEDIAN && *worst >= LEVEL_WORST;
}

/* Measure the sample with at_once pairs at a time (all: amid all endpoints). */
static bool try_level (struct coordinator *c, const struct schedule_pair *sample,
                       const struct round_value *alone, int n, int at_once, bool all,
                       double *worst)
{
    struct schedule_pair *pair =
        malloc ((size_t) schedule_pairs_max (&c->shape) * sizeof *pair);
    struct round_value *value =
        malloc ((size_t) schedule_pairs_max (&c->shape) * sizeof *value);
    struct round_value amid[SAMPLE];
    int step = all || at_once > n ? n : at_once;

    for (int from = 0; from < n && pair && value; from += step) {
        int part = n - from < step ? n - from : step;
        struct round r = {.kind = SCHEDULE_TOGETHER, .together = true, .trial = true};

        /* A last part that is too small is filled with the first pairs again. */
        if (part < step && from >= step) {
            from = n - step;
            part = step;
        }
        r.n = fill_round (c, sample + from, part, at_once, all, pair);
        r.pair = pair;
        c->timing.together_s = round_run (c, &r, value);
        memcpy (amid + from, value, (size_t) part * sizeof *amid);
    }
    FREE_ALL (pair, value);
    return pair && value && as_good (alone, amid, n, worst);
}

static void choose_level (struct coordinator *c, int *at_once, bool *levelled)
{
    struct schedule_pair sample[SAMPLE];
    struct round_value alone[SAMPLE];
    int n = choose_sample (c, sample), most = c->shape.nodes / 2, kept = 0;
    double seconds = 0;

    snprintf (c->doing, sizeof c->doing, "how many pairs can measure at once");
    for (int i = 0; i < n && !c->interrupted; i++) {
        struct round r = {
            .kind = SCHEDULE_NODES, .trial = true, .pair = &sample[i], .n = 1};

        seconds += round_run (c, &r, &alone[kept]);
        /* A pair that fails tells nothing here. */
        if (alone[kept].bytes_per_s[0] > 0 && alone[kept].bytes_per_s[1] > 0)
            sample[kept++] = sample[i];
    }
    *at_once = 1;
    *levelled = false;
    if (kept == 0)
        return;
    c->timing.alone_s = seconds / n;
    c->at_once_checked = kept;
    if (try_level (c, sample, alone, kept, 0, true, &c->at_once_worst)) {
        *levelled = true;
        *at_once = 0;
        return;
    }
    for (int k = most; k > 1 && !c->interrupted; k /= 2)
        if (try_level (c, sample, alone, kept, k, false, &c->at_once_worst)) {
            *at_once = k;
            return;
        }
    c->at_once_worst = 1;
}

struct schedule_timing passes_timing (const struct coordinator *c)
{
    double setup_s = c->transport->defaults.setup_s;

    /* Latency, size and check take about half of a direction's time again. */
    return (struct schedule_timing){.alone_s = setup_s + 2 * 1.6 * c->how.alone_s + 0.005,
                                    .together_s =
                                        setup_s + 2 * 1.6 * c->how.together_s + 0.02};
}

void passes_prepare (struct coordinator *c)
{
    int at_once = 1;
    bool levelled = false;

    c->timing = passes_timing (c);
    if (!schedule_one_at_a_time (&c->shape, &c->timing, c->set.passes, c->set.budget_s)) {
        at_once = 0;
        if (!c->set.dry_run)
            choose_level (c, &at_once, &levelled);
    }
    c->plan = schedule_plan_make (&c->shape, &c->timing, at_once, levelled, c->set.passes,
                                  c->set.budget_s - coordinator_elapsed (c));
    for (int k = 0; k < SCHEDULE_KINDS; k++)
        c->rounds_all += c->plan.part[k].taken * c->plan.part[k].passes;
    if (!c->plan.whole && !c->set.dry_run)
        coordinator_say (
            c,
            "the budget of %g s is too short for every pair in every pass: pairs that "
            "plans use first are measured (--dry-run tells more)",
            c->set.budget_s);
    /* Without memory for them the circle method's rounds serve. */
    c->stride =
        malloc ((size_t) schedule_strides_max (c->shape.nodes) * sizeof *c->stride);
    if (c->stride)
        c->n_strides = schedule_strides (c->shape.nodes, c->set.seed, c->stride);
}

/* ---- what an earlier run did ---- */

/* A direction of a kind and pass, as one number. */
static uint64_t key_of (int kind, int pass, int src, int dst)
{
    return (uint64_t) kind << 60 | (uint64_t) (pass & 0xfff) << 48 |
           (uint64_t) (uint32_t) src << 24 | (uint64_t) (uint32_t) dst;
}

static int by_key (const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}

void passes_take (void *coordinator, const struct journal_item *item)
{
    struct coordinator *c = coordinator;
    struct results_pair *p = results_get (&c->results, item->src, item->dst);

    /* What failed is measured again. */
    if (!p || item->failed || !(item->bytes_per_s > 0))
        return;
    journal_item_take (item, p);
    if (item->kind == SCHEDULE_KINDS)
        return;
    if (array_grow (&c->done, c->n_done, sizeof *c->done))
        c->done[c->n_done++] = key_of (item->kind, item->pass, item->src, item->dst);
}

static bool is_done (const struct coordinator *c, int kind, int pass,
                     const struct schedule_pair *p)
{
    uint64_t there = key_of (kind, pass, p->a, p->b),
             back = key_of (kind, pass, p->b, p->a);

    return c->n_done > 0 && bsearch (&there, c->done, c->n_done, sizeof there, by_key) &&
           bsearch (&back, c->done, c->n_done, sizeof back, by_key);
}

/* ---- the passes ---- */

static bool failed_before (const struct coordinator *c, const struct schedule_pair *p)
{
    const struct results_pair *there = results_find (&c->results, p->a, p->b),
                              *back = results_find (&c->results, p->b, p->a);

    return (there && there->failures > 0) || (back && back->failures > 0);
}

/* The pairs of a round that are still to be measured.  Pairs that failed wait for the second
 * look: each would cost a time-out.  Together with others all pairs are measured, or none. */
static int still_to_do (const struct coordinator *c, int kind, int pass,
                        struct schedule_pair *pair, int n)
{
    int kept = 0, done = 0;

    for (int i = 0; i < n; i++)
        done += is_done (c, kind, pass, &pair[i]);
    if (done == n)
        return 0;
    for (int i = 0; i < n; i++) {
        if (!coordinator_alive (c, pair[i].a) || !coordinator_alive (c, pair[i].b) ||
            failed_before (c, &pair[i]))
            continue;
        if (schedule_is_together (kind) || !is_done (c, kind, pass, &pair[i]))
            pair[kept++] = pair[i];
    }
    return kept;
}

/* With one GPU a node, rails together are all endpoints together. */
static bool counts_as_alone (const struct coordinator *c, int kind)
{
    bool single = c->shape.n == c->shape.nodes;

    return c->plan.levelled &&
           kind == (single ? SCHEDULE_RAILS_TOGETHER : SCHEDULE_TOGETHER);
}

/* One kind's rounds of one pass, in random order: those of greatest value between nodes, a random
 * choice otherwise.  @return false when the time is over */
static bool run_part (struct coordinator *c, int kind, int pass,
                      struct schedule_pair *pair)
{
    const struct schedule_part *part = &c->plan.part[kind];
    struct schedule_shape shape = c->shape;
    bool together = schedule_is_together (kind), strided = part->taken < part->rounds &&
                                                           schedule_is_strided (kind) &&
                                                           c->n_strides > 0;
    double *typical = together ? &c->timing.together_s : &c->timing.alone_s;
    double until = (1 - 0.5 * SCHEDULE_RESERVE) * c->set.budget_s;
    long *order = malloc (((size_t) part->rounds + 1) * sizeof *order);

    if (strided) {
        shape.stride = c->stride;
        shape.n_strides = c->n_strides;
    }
    for (long i = 0; i < part->rounds && order; i++)
        order[i] = i;
    if (order)
        shuffle (&c->rng, order, strided ? part->taken : part->rounds);
    for (long i = 0; i < part->taken && order && !c->interrupted; i++, c->rounds_done++) {
        struct round r = {.kind = kind,
                          .pass = pass,
                          .together = together,
                          .counts_as_alone = counts_as_alone (c, kind),
                          .pair = pair};

        if (coordinator_elapsed (c) + *typical > until) {
            free (order);
            return false;
        }
        r.n = schedule_round (&shape, r.kind, c->plan.at_once, order[i], pair);
        r.n = still_to_do (c, kind, pass, pair, r.n);
        if (r.n == 0)
            continue;
        coordinator_show (c);
        *typical += 0.1 * (round_run (c, &r, NULL) - *typical);
        coordinator_check_journal (c);
    }
    free (order);
    return true;
}

void passes_run (struct coordinator *c)
{
    struct schedule_pair *pair =
        malloc ((size_t) schedule_pairs_max (&c->shape) * sizeof *pair);
    bool time = pair != NULL;

    if (c->n_done > 0)
        qsort (c->done, c->n_done, sizeof *c->done, by_key);
    for (int pass = 0; pass < c->set.passes && time && !c->interrupted; pass++) {
        double until = clock_s () + (pass > 0 ? c->set.pause_s : 0);

        snprintf (c->doing, sizeof c->doing, "waiting before the next pass");
        while (!c->interrupted && clock_s () < until) {
            struct roster_event e =
                roster_next (c->roster, fmin (until, clock_s () + 0.5));

            coordinator_unexpected (c, &e);
            coordinator_show (c);
        }
        snprintf (c->doing, sizeof c->doing, "pass %d of %d", pass + 1, c->set.passes);
        for (int kind = 0; kind < SCHEDULE_KINDS && time && !c->interrupted; kind++)
            if (c->plan.part[kind].passes > pass)
                time = run_part (c, kind, pass, pair);
        if (time && !c->interrupted)
            c->passes_done++;
        /* The next value may be a pause away. */
        if (c->journal)
            journal_flush (c->journal);
    }
    if (!time)
        coordinator_say (c,
                         "the budget of %g s is used up: %ld of %ld rounds are left out",
                         c->set.budget_s, c->rounds_all - c->rounds_done, c->rounds_all);
    free (pair);
}
