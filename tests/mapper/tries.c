/* In a small pool a configuration tries no more placements than it may, and of one with very many
 * splits of its layers, which proves nothing, far fewer. */
#include "mapper/place/place.h"
#include "tests/lib/search.h"
#include "tests/lib/clusters.h"

#define NODES 6
#define GIVEN \
    3000 /* the placements of the split that comes first, and one split's bound */
#define MANY 60000 /* with very many splits */

/* @param[in] layers  of a model on NODES single GPUs of unlike speed, a stage each */
static struct placed place (struct rng *r, int layers, long tries)
{
    struct deadline never = {.until_s = INFINITY};
    struct effort effort = {1, 1, INFINITY, tries, &never, NULL};
    struct setting s =
        small_job_as (drawn_cluster (r, &(struct cluster_draw){.nodes = NODES,
                                                               .gpus = 1,
                                                               .most_gpus = NODES,
                                                               .types = 3,
                                                               .speeds = 4,
                                                               .inside = {50, 300},
                                                               .between = {1, 10}}),
                      layers, 512, 24, config_of (1, NODES, 1, 1));
    struct mapper_problem p = search_config (&s);
    struct groups groups;
    struct pool pool;
    struct placed placed = {0};
    struct error err = {""};

    ok (pool_init (&pool, &p, &err), &err);
    ok (groups_init (&groups, &pool, &s.config, &err), &err);
    ok (place_config (&pool, &groups, &s.config, MAPPER_AUTO, effort, 1, &placed, &err),
        &err);
    groups_release (&groups);
    pool_release (&pool);
    topology_cluster_destroy (s.cluster);
    return placed;
}

TEST (no_more_than_may_be)
{
    static const struct {
        int layers;
        long tries, most;
        bool exact;
    } cases[] = {
        {6, 1000000, 1000000, true}, /* one split */
        {8, 1000000, 1000000, true}, /* 21 */
        {12, 4000, 4000, false},     /* 462 */
        {48, 1500000, MANY, false},  /* 1.5 million */
        {48, 5000, 5000, false},
    };
    struct rng r = seeded (77);

    for (int i = 0; i < 5; i++) {
        struct placed placed = place (&r, cases[i].layers, cases[i].tries);

        assert_in_range (placed.tried, 1, cases[i].most + GIVEN);
        assert_int_equal (placed.exact, cases[i].exact);
        placed_release (&placed);
    }
}
