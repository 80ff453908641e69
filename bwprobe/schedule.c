#include "bwprobe/schedule.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

/* ---- strides ---- */

static int common_divisor (int a, int b)
{
    while (b) {
        int r = a % b;

        a = b;
        b = r;
    }
    return a;
}

/* Nodes `shift` apart make cycles of this length. */
static int cycle_length (int nodes, int shift)
{
    return nodes / common_divisor (nodes, shift);
}

/* Rounds that hold all pairs of a shift: two, three where the cycles are odd. */
static int colours (int nodes, int shift)
{
    int length = cycle_length (nodes, shift);

    return length == 2 ? 1 : length % 2 ? 3 : 2;
}

/* Which round of its shift the pair number t of a cycle is in; the odd one is the last. */
static int colour_of (int length, int t)
{
    return length % 2 && t == length - 1 ? 2 : t % 2;
}

struct shifts {
    int nodes, n;
    int *list;  /* [nodes / 2] */
    char *used; /* [nodes / 2 + 1] */
};

static void add_shift (struct shifts *s, int d)
{
    d = d > s->nodes - d ? s->nodes - d : d;
    if (d <= 0 || s->used[d])
        return;
    s->used[d] = 1;
    s->list[s->n++] = d;
}

static void order_shifts (struct shifts *s, uint64_t seed)
{
    struct rng rng = {seed};
    int half = s->nodes / 2, fixed;

    add_shift (s, 1);
    for (int near = 0; near <= 1; near++)
        for (int k = 2; k <= half; k++)
            if (s->nodes % k == 0) {
                add_shift (s, s->nodes / k - near);
                add_shift (s, s->nodes / k + near);
            }
    /* Plans that leave some nodes out. */
    for (int k = 2; k * k <= s->nodes; k++)
        add_shift (s, s->nodes / k);
    fixed = s->n;
    for (int d = 1; d <= half; d++)
        add_shift (s, d);
    for (int i = s->n - 1; i > fixed; i--) {
        int k = fixed + rng_below (&rng, i + 1 - fixed), x = s->list[i];

        s->list[i] = s->list[k];
        s->list[k] = x;
    }
}

int schedule_strides (int nodes, uint64_t seed, struct schedule_stride *stride)
{
    struct shifts s = {.nodes = nodes,
                       .list = calloc ((size_t) nodes + 1, sizeof *s.list),
                       .used = calloc ((size_t) nodes + 1, 1)};
    int n = 0;

    if (s.list && s.used)
        order_shifts (&s, seed);
    for (int i = 0; i < s.n; i++)
        for (int k = 0; k < colours (nodes, s.list[i]); k++)
            stride[n++] = (struct schedule_stride){s.list[i], k};
    free (s.list);
    free (s.used);
    return n;
}

/* ---- rounds ---- */

int schedule_circle (int n)
{
    return n < 2 ? 0 : n % 2 ? n : n - 1;
}

/* With m = n - 1 (n even) or n (n odd) in the circle, i and j meet where i + j = round mod m;
 * who would meet himself meets the one in the middle, n - 1, or nobody. */
int schedule_partner (int n, int round, int i)
{
    int m = n % 2 ? n : n - 1, j;

    if (n % 2 == 0 && i == n - 1) {
        /* The solution of 2 i = round mod m, which is odd. */
        return (int) ((long) round * ((m + 1) / 2) % m);
    }
    j = ((round - i) % m + m) % m;
    if (j != i)
        return j;
    return n % 2 ? -1 : n - 1;
}

static int gpus_of (const struct schedule_shape *s, int node)
{
    return s->first[node + 1] - s->first[node];
}

static int most_gpus (const struct schedule_shape *s)
{
    int most = 0;

    for (int i = 0; i < s->nodes; i++)
        if (gpus_of (s, i) > most)
            most = gpus_of (s, i);
    return most;
}

int schedule_pairs_max (const struct schedule_shape *s)
{
    /* Inside nodes: one pair each; otherwise disjoint pairs of endpoints. */
    return s->n / 2 + s->nodes + 1;
}

/* Rounds of a node round when only at_once of its node pairs may measure at a time. */
static long slices (const struct schedule_shape *s, int at_once)
{
    int pairs = s->nodes / 2;

    return at_once <= 0 || at_once >= pairs ? 1 : (pairs + at_once - 1) / at_once;
}

static int node_rounds_of (const struct schedule_shape *s)
{
    return s->stride ? s->n_strides : schedule_circle (s->nodes);
}

long schedule_rounds (const struct schedule_shape *s, enum schedule_kind kind,
                      int at_once)
{
    long node_rounds = node_rounds_of (s), g = most_gpus (s);

    switch (kind) {
    case SCHEDULE_NODES:
        return node_rounds * slices (s, at_once);
    case SCHEDULE_INSIDE:
        return g * (g - 1) / 2;
    case SCHEDULE_RAILS_TOGETHER:
        return node_rounds;
    case SCHEDULE_RAILS:
        return (g - 1) * node_rounds * slices (s, at_once);
    case SCHEDULE_TOGETHER:
        return g > 1 ? schedule_circle (s->n) : 0;
    case SCHEDULE_REST:
        return g * (g - 1) * node_rounds * slices (s, at_once);
    case SCHEDULE_KINDS:
        break;
    }
    return 0;
}

/* What pairs of nodes a round is asked for. */
struct wanted {
    int slice, of; /* the slice'th part of them */
    int i, j;      /* GPU i of one with GPU j of the other */
};

/* Add nodes a and b, number `seen` of the round's pairs, where they have such GPUs. */
static int add_pair (const struct schedule_shape *s, const struct wanted *w, int seen,
                     int a, int b, struct schedule_pair *pair)
{
    if (seen % w->of != w->slice || w->i >= gpus_of (s, a) || w->j >= gpus_of (s, b))
        return 0;
    *pair = (struct schedule_pair){s->first[a] + w->i, s->first[b] + w->j};
    return 1;
}

static int between_strided (const struct schedule_shape *s, const struct wanted *w,
                            int round, struct schedule_pair *pair)
{
    const struct schedule_stride *x = &s->stride[round];
    int n = 0, seen = 0, length = cycle_length (s->nodes, x->shift);

    for (int start = 0; start < s->nodes / length; start++)
        for (int t = 0, a = start; t < (length == 2 ? 1 : length); t++) {
            int b = (a + x->shift) % s->nodes;

            if (colour_of (length, t) == x->colour)
                n += a < b ? add_pair (s, w, seen++, a, b, pair + n)
                           : add_pair (s, w, seen++, b, a, pair + n);
            a = b;
        }
    return n;
}

/* Pairs GPU i of one node with GPU j of the other over the node pairs of a node round; the
 * slice'th part of them when there are several. */
static int between (const struct schedule_shape *s, int at_once, int node_round,
                    int slice, int i, int j, struct schedule_pair *pair)
{
    const struct wanted w = {slice, (int) slices (s, at_once), i, j};
    int n = 0, seen = 0;

    if (s->stride)
        return between_strided (s, &w, node_round, pair);
    for (int a = 0; a < s->nodes; a++) {
        int b = schedule_partner (s->nodes, node_round, a);

        if (b > a)
            n += add_pair (s, &w, seen++, a, b, pair + n);
    }
    return n;
}

static int inside (const struct schedule_shape *s, long round, struct schedule_pair *pair)
{
    int n = 0;

    for (int k = 0; k < s->nodes; k++) {
        long g = gpus_of (s, k), i = 0, r = round;

        if (r >= g * (g - 1) / 2)
            continue;
        while (r >= g - 1 - i)
            r -= g - 1 - i++;
        pair[n++] = (struct schedule_pair){s->first[k] + (int) i,
                                           s->first[k] + (int) (i + 1 + r)};
    }
    return n;
}

int schedule_round (const struct schedule_shape *s, enum schedule_kind kind, int at_once,
                    long round, struct schedule_pair *pair)
{
    long parts = slices (s, at_once), node_rounds = node_rounds_of (s);
    int slice = (int) (round % parts), g = most_gpus (s), n = 0;
    long rest = round / parts;
    int node_round = node_rounds ? (int) (rest % node_rounds) : 0;

    rest = node_rounds ? rest / node_rounds : 0;
    switch (kind) {
    case SCHEDULE_NODES:
        return between (s, at_once, node_round, slice, 0, 0, pair);
    case SCHEDULE_RAILS:
        return between (s, at_once, node_round, slice, (int) rest + 1, (int) rest + 1,
                        pair);
    case SCHEDULE_REST: {
        int i = (int) rest / (g - 1), j = (int) rest % (g - 1);

        return between (s, at_once, node_round, slice, i, j < i ? j : j + 1, pair);
    }
    case SCHEDULE_INSIDE:
        return inside (s, round, pair);
    case SCHEDULE_RAILS_TOGETHER:
        for (int i = 0; i < g; i++)
            n += between (s, 0, (int) round, 0, i, i, pair + n);
        return n;
    case SCHEDULE_TOGETHER:
        for (int a = 0; a < s->n; a++) {
            int b = schedule_partner (s->n, (int) round, a);

            if (b > a)
                pair[n++] = (struct schedule_pair){a, b};
        }
        return n;
    case SCHEDULE_KINDS:
        break;
    }
    return 0;
}

/* ---- the plan ---- */

/* Part of the time left that a choice of a kind's rounds takes before those after it. */
static const double share[SCHEDULE_KINDS] = {
    [SCHEDULE_NODES] = 0.6,          [SCHEDULE_INSIDE] = 0.5,
    [SCHEDULE_RAILS_TOGETHER] = 0.5, [SCHEDULE_RAILS] = 0.5,
    [SCHEDULE_TOGETHER] = 1.0 / 3,   [SCHEDULE_REST] = 1.0 / 3};

static double cost (const struct schedule_timing *t, int kind)
{
    return schedule_is_together (kind) ? t->together_s : t->alone_s;
}

/* What nobody has taken goes to the nodes' pairs, where these could not have all.  Of the other
 * kinds a sample is enough for their models. */
static void take_the_rest (struct schedule_plan *p, const struct schedule_timing *t,
                           double left)
{
    for (int k = 0; k < SCHEDULE_KINDS; k++) {
        struct schedule_part *part = &p->part[k];
        long missing = part->rounds - part->taken, more = (long) (left / cost (t, k));

        if (!schedule_is_strided (k) || missing <= 0 || more <= 0)
            continue;
        more = more < missing ? more : missing;
        part->taken += more;
        part->passes = 1;
        part->seconds += (double) more * cost (t, k);
        left -= (double) more * cost (t, k);
    }
}

struct schedule_plan schedule_plan_make (const struct schedule_shape *s,
                                         const struct schedule_timing *t, int at_once,
                                         bool levelled, int passes, double budget_s)
{
    struct schedule_plan p = {.at_once = at_once, .levelled = levelled, .whole = true};
    double left = (1 - SCHEDULE_RESERVE) * budget_s;

    /* Where together is as good as alone, one round of all endpoints serves both. */
    for (int k = 0; k < SCHEDULE_KINDS; k++)
        if (!levelled || schedule_is_together (k))
            p.part[k].rounds = schedule_rounds (s, k, at_once);
    for (int pass = 0; pass < passes; pass++)
        for (int k = 0; k < SCHEDULE_KINDS; k++) {
            struct schedule_part *part = &p.part[k];
            double whole = (double) part->rounds * cost (t, k);

            if (part->rounds == 0 || part->passes < pass)
                continue;
            if (whole <= left) {
                part->taken = part->rounds;
                part->passes = pass + 1;
                part->seconds += whole;
                left -= whole;
                continue;
            }
            p.whole = false;
            if (pass == 0) {
                long some = (long) (share[k] * left / cost (t, k));

                part->taken = some < part->rounds ? some : part->rounds;
                part->passes = part->taken > 0;
                part->seconds = (double) part->taken * cost (t, k);
                left -= part->seconds;
            }
        }
    take_the_rest (&p, t, left);
    for (int k = 0; k < SCHEDULE_KINDS; k++) {
        /* A choice of rounds is not repeated: other rounds tell more. */
        if (p.part[k].taken < p.part[k].rounds && p.part[k].passes > 1)
            p.part[k].passes = 1;
        p.seconds += p.part[k].seconds;
    }
    return p;
}

bool schedule_one_at_a_time (const struct schedule_shape *s,
                             const struct schedule_timing *t, int passes, double budget_s)
{
    double rounds = 0;

    for (int k = 0; k < SCHEDULE_KINDS; k++)
        if (!schedule_is_together (k))
            rounds += (double) schedule_rounds (s, k, 1);
    return rounds * passes * t->alone_s <= 0.5 * budget_s;
}
