/* The lowest bound, compute alone: of one configuration in closed form, of the whole space the
 * least of all, tried one by one. */
#include "mapper/bound/bound.h"
#include "mapper/pool/pool.h"
#include "tests/lib/search.h"

enum { LAYERS = 8, BATCH = 8, SEQ = 512 };

/* Seconds of one micro-batch through all layers, times its GPUs: on the faster of the types. */
static double by_hand (const struct setting *s, const struct workload_config *c)
{
    bool experts = s->model.experts > 0;
    double least = INFINITY;

    for (int i = 0; i < s->cluster->n_nodes; i++) {
        struct costmodel_compute k;

        costmodel_compute (&s->model, &s->job, c, &s->profile, s->cluster->node[i].type,
                           &k);
        least = fmin (least, experts ? k.expert.fwd_s + k.expert.back_s
                                     : k.dense.fwd_s + k.dense.back_s);
    }
    return LAYERS * least * c->deg.tp * c->deg.cp;
}

static double seconds (const struct mapper_problem *p)
{
    struct pool pool;
    struct error err = {""};
    double s;

    ok (pool_init (&pool, p, &err), &err);
    s = bound_gpu_seconds (&pool);
    pool_release (&pool);
    return s;
}

/* The least with these degrees, over what divides the batch, the experts and the TP group. */
static double least_by_hand (const struct setting *s, int tp, int cp)
{
    int all = s->model.experts > 0 ? s->model.experts : 1;
    double least = INFINITY;

    for (int sp = 0; sp < 2; sp++)
        for (int b = 1; b <= BATCH; b *= 2)
            for (int ep = 1; ep <= all; ep *= 2)
                for (int etp = 1; etp <= tp; etp *= 2) {
                    struct workload_config c = {.deg = {tp, 1, 1, cp, ep, etp, 1},
                                                .micro_batch = b,
                                                .sequence_parallel = sp};

                    if (s->model.experts == 0 && etp < tp)
                        continue;
                    least = fmin (least, by_hand (s, &c) * BATCH / b);
                }
    return least;
}

TEST (the_least_of_all)
{
    for (int experts = 0; experts <= 4; experts += 4) {
        struct setting s = small_job (
            cluster_of ("2x4 a100-sxm4-80g intra:200 inter:20 + 2x4 h100-sxm5-80g "
                        "intra:300 inter:20"),
            LAYERS, SEQ, BATCH);
        struct mapper_problem p;
        double least = INFINITY;

        s.model.experts = experts;
        s.model.top_k = experts ? 2 : 0;
        s.model.expert_ffn = experts ? 1024 : 0;
        for (int tp = 1; tp <= s.model.heads; tp *= 2)
            for (int cp = 1; cp <= 16; cp *= 2) {
                double here = least_by_hand (&s, tp, cp);

                p = search_degrees (&s, tp, MAPPER_FREE, MAPPER_FREE);
                p.axes.cp = cp;
                CLOSE (seconds (&p), here, 1e-9);
                least = fmin (least, here);
            }
        p = search_problem (&s);
        assert_true (seconds (&p) <= least * (1 + 1e-9));
        p.axes.cp = 1; /* small products take longer: a whole one is the least */
        CLOSE (seconds (&p), least_by_hand (&s, 1, 1), 1e-9);
        p.axes.micro_batch = 2;
        p.axes.ep = p.axes.etp = 1;
        CLOSE (seconds (&p),
               by_hand (&s, &(struct workload_config){.deg = {1, 1, 1, 1, 1, 1, 1},
                                                      .micro_batch = 2}) *
                   BATCH / 2,
               1e-9);
        topology_cluster_destroy (s.cluster);
    }
}

/* Frameworks that sum gradients in fp32 where ZeRO does not shard them take longer there, and those
 * that capture what has no pipeline less: what is kept of one is not the other's. */
TEST (kept_apart)
{
    struct setting s =
        small_job (cluster_of ("1x8 a100-sxm4-80g intra:230"), LAYERS, SEQ, BATCH);
    struct mapper_problem p = search_problem (&s);
    struct bound_works *w = bound_works_create ();
    struct error err = {""};
    struct pool pool;
    double afresh[2][3];

    s.profile = profile_of ("deepspeed");
    s.profile.graphs = GRAPHS_DENSE;
    s.profile.sums_in_products = false;
    ok (pool_init (&pool, &p, &err), &err);
    for (int zero = 0; zero < 2; zero++)
        for (int pp = 1; pp <= 2; pp++) {
            struct workload_config c = {
                .deg = {1, pp, 1, 1, 1, 1, 1}, .micro_batch = 1, .zero = zero};

            afresh[zero][pp] = bound_work (NULL, &pool, &c);
            CLOSE (bound_work (w, &pool, &c), afresh[zero][pp], 1e-12);
        }
    assert_true (afresh[0][1] > afresh[1][1] * 1.01);
    assert_true (afresh[0][2] > afresh[0][1] * 2);
    bound_works_destroy (w);
    pool_release (&pool);
    topology_cluster_destroy (s.cluster);
}

/* What is kept is of configurations that compute alike: what crosses a slow link to the host
 * depends on the shards. */
TEST (kept)
{
    struct setting s =
        small_job (cluster_of ("1x8 rtx-4090 intra:12"), LAYERS, SEQ, BATCH);
    struct mapper_problem p = search_problem (&s);
    struct bound_works *w = bound_works_create ();
    struct topology_gpu_type slow = *s.cluster->node[0].type;
    struct workload_config c = {
        .deg = {1, 1, 1, 1, 1, 1, 1}, .micro_batch = 1, .zero = 3};
    struct error err = {""};
    struct pool pool;
    double before = INFINITY;

    slow.host_bytes_per_s = 1e7;
    s.cluster->node[0].type = &slow;
    s.profile = profile_of ("deepspeed");
    ok (pool_init (&pool, &p, &err), &err);
    for (int i = 0; i < 4; i++, c.deg.dp *= 2) {
        double afresh;

        c.offload = OFFLOAD_ALL;
        afresh = bound_work (NULL, &pool, &c);
        CLOSE (bound_work (w, &pool, &c), afresh, 1e-12);
        assert_true (afresh / c.deg.dp < before); /* micro-batches are fewer, too */
        before = afresh;
        c.offload = OFFLOAD_NONE;
        CLOSE (bound_work (w, &pool, &c), bound_work (NULL, &pool, &c), 1e-12);
    }
    bound_works_destroy (w);
    pool_release (&pool);
    topology_cluster_destroy (s.cluster);
}
