/* Links that were not measured are predicted from their kind or their ends, with an honest low
 * end, and not at all where neither explains them. */
#include "tests/lib/fixture.h"

#include <math.h>

#include "base/rng.h"
#include "bwprobe/models.h"

enum { ENDS = 24 };

struct links {
    struct models_link link[ENDS * ENDS];
    int n;
};

/* About half of all pairs, both ways: half the rate where one of the two ends is in the set
 * `slow`, and `wild` of 100 pairs at a third. */
static struct links drawn (unsigned slow, int wild, uint64_t seed)
{
    struct links l = {.n = 0};
    struct rng r = {seed};

    for (int i = 0; i < ENDS; i++)
        for (int j = 0; j < i; j++) {
            double x = (slow >> i | slow >> j) & 1 ? 5 : 10;

            x *= rng_below (&r, 100) < wild ? 0.3 : 1;
            if (rng_below (&r, 2))
                continue;
            l.link[l.n++] = (struct models_link){i, j, x * (1 + 0.02 * rng_unit (&r)), 1};
            l.link[l.n++] = (struct models_link){j, i, x * (1 + 0.02 * rng_unit (&r)), 1};
        }
    return l;
}

static struct models_trial try (const struct links *l, int n_ends)
{
    struct models_trial t;
    struct error err;

    assert_int_equal (models_try (l->link, l->n, n_ends, &t, &err), ST_OK);
    return t;
}

TEST (a_kind_explains_even_links)
{
    struct links l = drawn (0, 0, 1);
    struct models_trial t;

    t = try (&l, 0);
    assert_true (t.accepted && t.tried == l.n);
    assert_true (t.error_p50 <= t.error_p90 && t.error_p90 < 0.02);
    assert_true (t.low > 0.98 && t.low <= 1);
}

/* A few slow ends: only the model that knows them says so. */
TEST (ends_explain_slow_nodes)
{
    struct links l = drawn (1u << 3 | 1u << 11, 0, 2);
    struct models_trial kind, ends;
    struct models_fit fit;
    struct models_link q = {3, 7, NAN, 1};
    struct error err;

    kind = try (&l, 0);
    ends = try (&l, ENDS);
    assert_true (kind.low < 0.6 && ends.low > 0.95 && ends.accepted);
    assert_int_equal (models_learn (l.link, l.n, ENDS, &fit, &err), ST_OK);
    assert_true (fabs (models_predict (&fit, &q) / 5 - 1) < 0.03);
    q = (struct models_link){11, 3, NAN, 1};
    assert_true (fabs (models_predict (&fit, &q) / 5 - 1) < 0.03);
    q = (struct models_link){7, 9, NAN, 1};
    assert_true (fabs (models_predict (&fit, &q) / 10 - 1) < 0.03);
    models_release (&fit);
}

/* A third of the nodes with half the network: neither kind is the odd one out. */
TEST (ends_explain_mixed_clusters)
{
    struct links l = drawn ((1u << ENDS / 3) - 1, 0, 6);
    struct models_trial t;

    t = try (&l, ENDS);
    assert_true (t.accepted && t.low > 0.95);
    assert_false (try (&l, 0).accepted);
}

/* Slow pairs that nothing explains do not move the middle, but the low end tells of them. */
TEST (wild_links_lower_the_low_end)
{
    struct links l = drawn (0, 6, 3);

    for (int n_ends = 0; n_ends <= ENDS; n_ends += ENDS) {
        struct models_trial t = try (&l, n_ends);

        assert_true (t.accepted && t.error_p50 < 0.02 && t.low < 0.35);
    }
}

TEST (what_nothing_explains_is_refused)
{
    struct links l = drawn (0, 45, 4);

    assert_false (try (&l, 0).accepted);
    assert_false (try (&l, ENDS).accepted);
    l.n = 8;
    assert_false (try (&l, 0).accepted);
    assert_true (isnan (try (&l, 0).low));
    l.n = 0;
    assert_false (try (&l, ENDS).accepted);
}

/* An end with too few links is not guessed. */
TEST (unknown_ends_stay_unknown)
{
    struct links l = drawn (0, 0, 5);
    struct models_fit fit;
    struct models_link q = {ENDS - 1, 2, NAN, 1};
    struct error err;
    int n = 0;

    for (int i = 0; i < l.n; i++)
        if (l.link[i].src != ENDS - 1)
            l.link[n++] = l.link[i];
    assert_int_equal (models_learn (l.link, n, ENDS, &fit, &err), ST_OK);
    assert_true (isnan (models_predict (&fit, &q)));
    q = (struct models_link){2, ENDS - 1, NAN, 1};
    assert_true (models_predict (&fit, &q) > 9);
    models_release (&fit);
}
