/* Boundaries that cross nodes: every way to put stages on nodes has one of the sets. */
#include <stdbool.h>

#include "base/rng.h"
#include "mapper/bound_cuts.h"
#include "tests/lib/fixture.h"

/* Stages put on nodes at random, each node with room for so many. */
static uint64_t crossings (struct rng *r, int stages, int per_node, int beside)
{
    int node[CUTS_STAGES], held[CUTS_STAGES] = {0};
    uint64_t set = 0;

    for (int k = 0; k < stages; k++) {
        int room, same = k > 0 && rng_below (r, 3) > 0;

        node[k] = same ? node[k - 1] : rng_below (r, stages);
        for (;; node[k] = (node[k] + 1) % stages) {
            room = k > 0 && node[k] == node[0] ? beside : per_node;
            if (held[node[k]] < room)
                break;
        }
        held[node[k]]++;
    }
    for (int k = 0; k < stages; k++)
        if (node[k] != node[(k + 1) % stages])
            set |= UINT64_C (1) << k;
    return set;
}

static void one_of_the_sets (void **state)
{
    static uint64_t sets[CUTS_MAX];
    struct rng r = seeded (5);
    int known = 0;
    (void) state;

    for (int i = 0; i < 20000; i++) {
        int stages = 2 + rng_below (&r, 15), per_node = 1 + rng_below (&r, 5);
        int beside = 1 + rng_below (&r, per_node), n;
        bool round = rng_below (&r, 2), found = false;
        uint64_t set = crossings (&r, stages, per_node, beside);

        n = bound_cuts (stages, round, per_node, beside, sets);
        known += n > 0;
        for (int k = 0; k < n && !found; k++)
            found = (sets[k] & ~set) == 0;
        assert_true (found || n == 0);
    }
    assert_true (known > 19000);
}

/* Four stages to a node of two: between the pairs and back; or the ends together. */
static void known_sets (void **state)
{
    static uint64_t sets[CUTS_MAX];
    (void) state;

    assert_int_equal (bound_cuts (4, true, 2, 2, sets), 2);
    assert_int_equal (sets[0] | sets[1], 1 | 2 | 4 | 8);
    assert_int_equal (sets[0] & sets[1], 0);
    assert_int_equal (bound_cuts (4, false, 4, 4, sets), 1);
    assert_int_equal (sets[0], 0);
    assert_int_equal (bound_cuts (CUTS_STAGES, true, 2, 2, sets), 0); /* too many */
    assert_int_equal (bound_cuts (CUTS_STAGES + 1, true, 64, 64, sets), 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (one_of_the_sets),
                                       cmocka_unit_test (known_sets)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
