/* Groups of ranks equal those of Megatron's two rank generators, on random degrees.
 *
 * The rule, from megatron/core/parallel_state.py: in the order tp-cp-ep-dp-pp the first
 * degree runs fastest through the global ranks, and a group of some degrees is the ranks
 * that agree in all the others.  The generator of everything but experts has ep 1; the
 * experts' has etp for tp, cp 1, and for dp what is left of the world. */
#include "tests/lib/fixture.h"

#define DEGREES 5
enum { TP, CP, EP, DP, PP };

struct generator {
    int degree[DEGREES];
};

/* A rank's coordinates, fastest first. */
static void coordinates (const struct generator *g, int rank, int *at)
{
    for (int k = 0; k < DEGREES; k++) {
        at[k] = rank % g->degree[k];
        rank /= g->degree[k];
    }
}

/* Which ranks are in one's group over the degrees of a mask?  In ascending order. */
static int members_of (const struct generator *g, unsigned mask, int world, int rank,
                       int *member)
{
    int mine[DEGREES], other[DEGREES], n = 0;

    coordinates (g, rank, mine);
    for (int r = 0; r < world; r++) {
        bool together = true;

        coordinates (g, r, other);
        for (int k = 0; k < DEGREES; k++)
            together = together && (mask >> k & 1 || mine[k] == other[k]);
        if (together)
            member[n++] = r;
    }
    return n;
}

static void check_group (const struct workload_degrees *d, const struct generator *g,
                         unsigned mask, enum workload_group_kind kind, int world,
                         int rank)
{
    struct workload_group group = workload_group_of (d, kind);
    int member[4096], n = members_of (g, mask, world, rank, member);
    int first = rank - rank / group.stride % group.size * group.stride;
    bool same = n == group.size;

    for (int i = 0; i < n && same; i++)
        same = member[i] == first + i * group.stride;
    if (!same)
        fail_msg ("tp %d cp %d dp %d pp %d ep %d etp %d, rank %d: group %d differs",
                  d->tp, d->cp, d->dp, d->pp, d->ep, d->etp, rank, (int) kind);
}

static int random_divisor (struct rng *r, int n)
{
    int d;

    do
        d = 1 + rng_below (r, n);
    while (n % d != 0);
    return d;
}

TEST (random_degrees)
{
    static const struct {
        enum workload_group_kind kind;
        bool expert;
        unsigned mask;
    } groups[] = {{GROUP_TP, false, 1 << TP}, {GROUP_CP, false, 1 << CP},
                  {GROUP_DP, false, 1 << DP}, {GROUP_SYNC, false, 1 << DP | 1 << CP},
                  {GROUP_PP, false, 1 << PP}, {GROUP_ETP, true, 1 << TP},
                  {GROUP_EP, true, 1 << EP},  {GROUP_EXPERT_SYNC, true, 1 << DP},
                  {GROUP_PP, true, 1 << PP}};
    struct rng r = {5};
    int other_etp = 0;

    for (int round = 0; round < 10000; round++) {
        struct workload_degrees d = {.tp = 1 + rng_below (&r, 8),
                                     .pp = 1 + rng_below (&r, 4),
                                     .dp = 1 + rng_below (&r, 8),
                                     .cp = 1 + rng_below (&r, 4),
                                     .vpp = 1};
        int stage = d.tp * d.cp * d.dp, world = stage * d.pp;

        d.etp = rng_below (&r, 2) ? d.tp : random_divisor (&r, d.tp);
        d.ep = random_divisor (&r, stage / d.etp);
        other_etp += d.etp != d.tp;

        struct generator dense = {{d.tp, d.cp, 1, d.dp, d.pp}};
        struct generator expert = {{d.etp, 1, d.ep, stage / (d.etp * d.ep), d.pp}};

        for (int tries = 0; tries < 4; tries++) {
            int rank = rng_below (&r, world), at[DEGREES];
            struct workload_coords k = workload_coords_of (&d, rank);

            for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
                check_group (&d, groups[i].expert ? &expert : &dense, groups[i].mask,
                             groups[i].kind, world, rank);
            coordinates (&dense, rank, at);
            assert_true (k.tp == at[TP] && k.cp == at[CP] && k.dp == at[DP] &&
                         k.pp == at[PP]);
            coordinates (&expert, rank, at);
            assert_int_equal (k.ep, at[EP]);
        }
        assert_int_equal (workload_expert_shards (&(struct workload_config){.deg = d}),
                          expert.degree[DP]);
    }
    assert_true (other_etp > 2000);
}

/* Of one kind of parameters: who has the same of them, and so reduces its gradients? */
static bool same_parameters (const struct workload_degrees *d, bool expert, int a, int b)
{
    struct workload_coords x = workload_coords_of (d, a), y = workload_coords_of (d, b);

    return x.pp == y.pp &&
           (expert ? x.ep == y.ep && a % d->etp == b % d->etp : x.tp == y.tp);
}

/* With hybrid sharding ranks with the same parameters are cut into groups by their replica, in
 * order, and ranks of the same place in these reduce with each other: every rank's members, one
 * by one. */
TEST (shard_groups)
{
    struct rng r = {6};
    int copies = 0;

    for (int round = 0; round < 4000; round++) {
        struct workload_degrees d = {.tp = 1 + rng_below (&r, 4),
                                     .pp = 1 + rng_below (&r, 3),
                                     .dp = 1 + rng_below (&r, 12),
                                     .cp = 1 + rng_below (&r, 3),
                                     .vpp = 1};
        struct workload_config c = {.zero = 1 + rng_below (&r, 3),
                                    .shard = random_divisor (&r, d.dp)};
        int stage = d.tp * d.cp * d.dp, run = d.tp * d.cp * c.shard,
            rank = rng_below (&r, stage * d.pp);

        d.etp = random_divisor (&r, d.tp);
        d.ep = random_divisor (&r, run / d.etp);
        c.deg = d;
        copies += workload_shard_copies (&c) > 1;
        for (int expert = 0; expert < 2; expert++) {
            struct workload_group g = workload_shard_group (&c, expert ? GROUP_EXPERT_SYNC
                                                                       : GROUP_SYNC),
                                  between = workload_copy_group (&c);
            int first = rank - rank / g.stride % g.size * g.stride, n = 0;
            int lowest = rank - rank / between.stride % between.size * between.stride;

            for (int k = 0; k < stage * d.pp; k++)
                if (same_parameters (&d, expert, rank, k) && k / run == rank / run)
                    assert_int_equal (k, first + n++ * g.stride);
            assert_int_equal (n, g.size);
            n = 0;
            for (int k = 0; k < stage * d.pp; k++)
                if (k / stage == rank / stage && k % run == rank % run)
                    assert_int_equal (k, lowest + n++ * between.stride);
            assert_int_equal (n, between.size);
        }
    }
    assert_true (copies > 1000);
}
