/* The schedule: every pair of a kind once in a pass, disjoint pairs in a round, and a plan that
 * keeps within its budget. */
#include "tests/lib/fixture.h"

#include "bwprobe/schedule.h"

/* A shape whose nodes have g[i] GPUs. */
struct shape {
    struct schedule_shape s;
    int first[65];
};

static void make (struct shape *x, const int *g, int nodes)
{
    x->first[0] = 0;
    for (int i = 0; i < nodes; i++)
        x->first[i + 1] = x->first[i] + g[i];
    x->s =
        (struct schedule_shape){.n = x->first[nodes], .nodes = nodes, .first = x->first};
}

static int node_of (const struct shape *x, int end)
{
    int k = 0;

    while (x->first[k + 1] <= end)
        k++;
    return k;
}

static bool belongs (const struct shape *x, enum schedule_kind kind, int a, int b)
{
    int na = node_of (x, a), nb = node_of (x, b), i = a - x->first[na],
        j = b - x->first[nb];

    switch (kind) {
    case SCHEDULE_NODES:
        return na != nb && i == 0 && j == 0;
    case SCHEDULE_INSIDE:
        return na == nb;
    case SCHEDULE_RAILS_TOGETHER:
        return na != nb && i == j;
    case SCHEDULE_RAILS:
        return na != nb && i == j && i > 0;
    case SCHEDULE_TOGETHER:
        return true;
    default:
        return na != nb && i != j;
    }
}

static void covers (const struct shape *x, enum schedule_kind kind, int at_once)
{
    int n = x->s.n, *seen = calloc ((size_t) n * (size_t) n, sizeof *seen);
    struct schedule_pair *pair =
        calloc ((size_t) schedule_pairs_max (&x->s), sizeof *pair);
    int *busy = calloc ((size_t) n, sizeof *busy);
    long rounds = schedule_rounds (&x->s, kind, at_once);

    for (long r = 0; r < rounds; r++) {
        int k = schedule_round (&x->s, kind, at_once, r, pair), between = 0;

        assert_true (k <= schedule_pairs_max (&x->s));
        memset (busy, 0, (size_t) n * sizeof *busy);
        for (int i = 0; i < k; i++) {
            int a = pair[i].a, b = pair[i].b;

            assert_true (a >= 0 && a < b && b < n);
            assert_false (busy[a]++ || busy[b]++);
            assert_true (belongs (x, kind, a, b));
            seen[a * n + b]++;
            between += node_of (x, a) != node_of (x, b);
        }
        if (!schedule_is_together (kind) && at_once > 0)
            assert_true (between <= at_once);
    }
    for (int a = 0; a < n && rounds > 0; a++)
        for (int b = a + 1; b < n; b++)
            assert_int_equal (seen[a * n + b], belongs (x, kind, a, b));
    free (seen);
    free (pair);
    free (busy);
}

TEST (every_pair_once)
{
    static const int shapes[][8] = {{1, 1},
                                    {2},
                                    {8},
                                    {1, 1, 1},
                                    {1, 1, 1, 1, 1, 1, 1, 1},
                                    {8, 8},
                                    {4, 4, 4, 4, 4},
                                    {8, 4, 1},
                                    {2, 3, 4, 5, 6, 7},
                                    {3, 3, 3, 3, 3, 3, 3}};
    struct shape x;

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int nodes = 0;

        while (nodes < 8 && shapes[i][nodes] > 0)
            nodes++;
        make (&x, shapes[i], nodes);
        for (int kind = 0; kind < SCHEDULE_KINDS; kind++)
            for (int at_once = 0; at_once < 4; at_once++)
                covers (&x, (enum schedule_kind) kind, at_once);
    }
}

/* Strides cover the pairs of nodes as the circle method does, nearest neighbours first. */
TEST (strides_cover_too)
{
    static int gpus[64];
    struct schedule_stride stride[3 * 32 + 1];
    struct shape x;

    for (int nodes = 1; nodes <= 64; nodes++) {
        for (int i = 0; i < nodes; i++)
            gpus[i] = nodes > 40 ? 1 : 1 + i % 3;
        make (&x, gpus, nodes);
        x.s.stride = stride;
        x.s.n_strides = schedule_strides (nodes, (uint64_t) nodes, stride);
        assert_true (x.s.n_strides <= schedule_strides_max (nodes));
        assert_true (nodes < 2 || stride[0].shift == 1);
        for (int at_once = 0; at_once < 4; at_once++) {
            covers (&x, SCHEDULE_NODES, at_once);
            covers (&x, SCHEDULE_RAILS_TOGETHER, at_once);
        }
    }
}

/* The first rounds hold the links of rings over neighbours and of pipelines of 2, 4 and 8. */
TEST (strides_serve_the_listed_order)
{
    enum { NODES = 32, TAKEN = 8 };
    struct schedule_stride stride[3 * NODES / 2 + 1];
    struct schedule_pair pair[NODES];
    bool seen[NODES][NODES] = {{false}};
    int gpus[NODES];
    struct shape x;

    for (int i = 0; i < NODES; i++)
        gpus[i] = 1;
    make (&x, gpus, NODES);
    x.s.stride = stride;
    x.s.n_strides = schedule_strides (NODES, 1, stride);
    for (int r = 0; r < TAKEN; r++)
        for (int k = schedule_round (&x.s, SCHEDULE_NODES, 0, r, pair); k-- > 0;)
            seen[pair[k].a][pair[k].b] = seen[pair[k].b][pair[k].a] = true;
    for (int i = 0; i < NODES; i++) {
        assert_true (seen[i][(i + 1) % NODES]);
        for (int pp = 2; pp <= 8; pp *= 2)
            assert_true (seen[i][(i + NODES / pp) % NODES]);
    }
}

/* Together with NODES, INSIDE, RAILS and REST a pass has every pair alone exactly once. */
TEST (kinds_make_a_pass)
{
    static const int gpus[] = {4, 2, 4, 4};
    struct shape x;
    struct schedule_pair pair[32];
    int seen[14][14] = {{0}};

    make (&x, gpus, 4);
    for (int kind = 0; kind < SCHEDULE_KINDS; kind++)
        for (long r = 0; r < schedule_rounds (&x.s, (enum schedule_kind) kind, 1) &&
                         !schedule_is_together ((enum schedule_kind) kind);
             r++)
            for (int k = schedule_round (&x.s, (enum schedule_kind) kind, 1, r, pair);
                 k-- > 0;)
                seen[pair[k].a][pair[k].b]++;
    for (int a = 0; a < 14; a++)
        for (int b = a + 1; b < 14; b++)
            assert_int_equal (seen[a][b], 1);
}

TEST (the_budget_holds)
{
    struct rng r = {11};
    int gpus[64];
    struct shape x;

    for (int t = 0; t < 2000; t++) {
        int nodes = 1 + rng_below (&r, 64), g = 1 + rng_below (&r, 8);
        struct schedule_timing timing = {0.01 + rng_unit (&r), 0.01 + rng_unit (&r)};
        double budget = 1 + 1000 * rng_unit (&r);

        for (int i = 0; i < nodes; i++)
            gpus[i] = g;
        make (&x, gpus, nodes);

        struct schedule_plan p =
            schedule_plan_make (&x.s, &timing, rng_below (&r, 4), rng_below (&r, 2),
                                1 + rng_below (&r, 5), budget);

        assert_true (p.seconds <= budget * (1 + 1e-9));
        for (int k = 0; k < SCHEDULE_KINDS; k++) {
            assert_true (p.part[k].taken >= 0 && p.part[k].taken <= p.part[k].rounds);
            assert_true (!p.whole || p.part[k].taken == p.part[k].rounds);
            /* No pair of nodes is left out that there would have been time for. */
            assert_true (!schedule_is_strided ((enum schedule_kind) k) ||
                         p.part[k].taken == p.part[k].rounds ||
                         p.seconds + fmax (timing.alone_s, timing.together_s) >=
                             (1 - SCHEDULE_RESERVE) * budget - 1e-6);
        }
    }
}

/* With room, every pass of every kind; the most valuable first without. */
TEST (what_goes_first)
{
    static const int gpus[] = {8, 8, 8, 8};
    struct schedule_timing timing = {0.1, 0.1};
    struct schedule_plan p;
    struct shape x;

    make (&x, gpus, 4);
    p = schedule_plan_make (&x.s, &timing, 0, false, 3, 1e6);
    assert_true (p.whole);
    for (int k = 0; k < SCHEDULE_KINDS; k++)
        assert_int_equal (p.part[k].passes, 3);
    /* 3 rounds of first GPUs and 28 inside nodes take 3.1 s; half of the rest serves others. */
    p = schedule_plan_make (&x.s, &timing, 0, false, 3, 4);
    assert_false (p.whole);
    assert_int_equal (p.part[SCHEDULE_NODES].taken, 3);
    assert_int_equal (p.part[SCHEDULE_INSIDE].taken, 28);
    assert_true (p.part[SCHEDULE_REST].taken < p.part[SCHEDULE_REST].rounds);
}
