/* How annealing moves a sketch on: what changes places at once. */
#include "mapper/place/sketch.h"
#include "tests/lib/clusters.h"
#include "tests/lib/search.h"

#define LAYERS 12

/* A stage moves to idle GPUs of another node as a whole, though single ones of it would have their
 * gradients cross. */
TEST (stages_move_whole)
{
    struct setting s =
        small_job_as (cluster_of ("1x6 l40s intra:100 inter:0.5 + 1x3 l40s intra:100"),
                      LAYERS, 512, 24, config_of (1, 2, 3, 1));
    struct mapper_problem p = search_config (&s);
    const struct costmodel_price none = {.step_s = INFINITY, .smooth_s = INFINITY};
    int layers[] = {LAYERS / 2, LAYERS / 2}, gpu[] = {0, 1, 2, 6, 7, 8, 3, 4, 5};
    const struct sketch from = {layers, gpu, none};
    struct sketch k;
    struct pool pool;
    struct walks walks;
    struct error err = {""};

    ok (pool_init (&pool, &p, &err), &err);
    ok (walks_init (&walks, &pool, &err), &err);
    ok (sketch_copy (&from, 2, 9, &k, &err), &err);
    ok (sketch_anneal (&pool, &walks, &s.config, 500, 1e-3, 1,
                       &(struct deadline){.until_s = INFINITY}, &k, &err),
        &err);
    assert_int_equal (node_of_stage (s.cluster, k.gpu, 3, 0),
                      node_of_stage (s.cluster, k.gpu, 3, 1));
    sketch_release (&k);
    walks_release (&walks);
    pool_release (&pool);
    topology_cluster_destroy (s.cluster);
}

/* In how many of 20 annealings, cold and short, a placement comes to as short a step as another. */
static int times_found (const struct setting *s, int *layers, int *gpu, const int *as)
{
    const struct costmodel_price none = {.step_s = INFINITY, .smooth_s = INFINITY};
    const struct sketch from = {layers, gpu, none};
    struct mapper_problem p = search_config (s);
    double step_s = step_of (s, as, NULL);
    struct pool pool;
    struct walks walks;
    struct error err = {""};
    int found = 0;

    ok (pool_init (&pool, &p, &err), &err);
    ok (walks_init (&walks, &pool, &err), &err);
    for (unsigned long seed = 1; seed <= 20; seed++) {
        struct sketch k;

        ok (sketch_copy (&from, s->config.deg.pp, pool.n_gpus, &k, &err), &err);
        ok (sketch_anneal (&pool, &walks, &s->config, 1000, 1e-3, seed,
                           &(struct deadline){.until_s = INFINITY}, &k, &err),
            &err);
        found += k.price.step_s <= step_s * (1 + 1e-9);
        sketch_release (&k);
    }
    walks_release (&walks);
    pool_release (&pool);
    return found;
}

/* Nodes that each hold two stages, on a chain of fast links: where two of them stand in the wrong
 * place, the others move up in one move.  One by one they would leave more fast links first. */
TEST (runs_of_stages_move)
{
    enum { NODES = 6, GPUS = 2, N = NODES * GPUS };
    const int order[NODES] = {0, 4, 5, 1, 2, 3};
    double rate[N * N];
    struct setting s = small_job_as (NULL, LAYERS, 2048, 48, config_of (1, N, 1, 1));
    int layers[N], gpu[N], straight[N];

    for (int i = 0; i < N * N; i++) {
        int from = i / N / GPUS, to = i % N / GPUS;

        rate[i] = from == to ? 100 : abs (from - to) == 1 ? 10 : 1;
    }
    s.cluster = cluster_of_rates (NODES, GPUS, "h100-sxm5-80g", true, rate);
    for (int i = 0; i < N; i++) {
        layers[i] = s.layers[i] = 1;
        straight[i] = i;
        gpu[i] = order[i / GPUS] * GPUS + i % GPUS;
    }
    assert_true (times_found (&s, layers, gpu, straight) >= 10);
    topology_cluster_destroy (s.cluster);
}

/* Pairs of fast links inside nodes: a pair holds two stages in a row of a replica, and not two
 * replicas of a stage, which all change at once. */
TEST (stages_are_laid_out_anew)
{
    enum { STAGES = 4, REPLICAS = 8, N = STAGES * REPLICAS };
    double rate[N * N];
    struct setting s =
        small_job_as (NULL, LAYERS, 2048, 512, config_of (1, STAGES, REPLICAS, 1));
    int layers[STAGES], by_stage[N], by_replica[N];

    for (int i = 0; i < N * N; i++)
        rate[i] = i / N / 2 == i % N / 2 ? 100 : i / N / 8 == i % N / 8 ? 10 : 5;
    s.cluster = cluster_of_rates (N / 8, 8, "h100-sxm5-80g", true, rate);
    for (int i = 0; i < STAGES; i++)
        layers[i] = s.layers[i] = LAYERS / STAGES;
    for (int i = 0; i < N; i++) {
        by_stage[i] = i;
        by_replica[i] = i % REPLICAS * STAGES + i / REPLICAS;
    }
    assert_true (times_found (&s, layers, by_stage, by_replica) >= 18);
    topology_cluster_destroy (s.cluster);
}

/* Pairs of fast links in nodes whose pairs are joined more slowly than nodes are: stages on a node
 * each exchange a pair at once.  A single GPU leaves both rings on the slow links. */
TEST (pairs_move_whole)
{
    enum { REPLICAS = 4, N = 2 * REPLICAS };
    double rate[N * N];
    struct setting s =
        small_job_as (NULL, LAYERS, 2048, 48, config_of (1, 2, REPLICAS, 1));
    int layers[] = {LAYERS / 2, LAYERS / 2}, gpu[N], mixed[] = {0, 1, 6, 7, 4, 5, 2, 3};

    for (int i = 0; i < N * N; i++)
        rate[i] = i / N / 2 == i % N / 2 ? 100 : i / N / 4 == i % N / 4 ? 1 : 10;
    s.cluster = cluster_of_rates (2, N / 2, "h100-sxm5-80g", true, rate);
    for (int i = 0; i < N; i++)
        gpu[i] = i;
    s.layers[0] = s.layers[1] = LAYERS / 2;
    assert_true (times_found (&s, layers, gpu, mixed) >= 18);
    topology_cluster_destroy (s.cluster);
}

/* GPUs of two types, one of each in every TP group: those of the faster type make a stage of their
 * own, which has more layers.  Before the last of them has come it is as slow as it was, and one by
 * one so many do not come. */
TEST (fast_gpus_gather)
{
    enum { REPLICAS = 12, STAGE = 2 * REPLICAS, N = 2 * STAGE };
    struct setting s =
        small_job_as (cluster_of ("24x1 h100-sxm5-80g inter:50 + 24x1 v100-sxm2-32g"),
                      LAYERS, 2048, 48, config_of (2, 2, REPLICAS, 1));
    int layers[] = {LAYERS / 2, LAYERS / 2}, gpu[N], gathered[N];

    for (int i = 0; i < N; i++) {
        gpu[i] = i % 2 * STAGE + i / 2;
        gathered[i] = i;
    }
    s.layers[0] = LAYERS - 2;
    s.layers[1] = 2;
    assert_true (times_found (&s, layers, gpu, gathered) >= 15);
    topology_cluster_destroy (s.cluster);
}
