/* What configurations have in common: those of one key (costmodel_compute_key) compute alike. */
#include "tests/lib/fixture.h"

#include "base/rng.h"

/* Any in which what compute may depend on differs, within a few values each. */
static struct workload_config drawn_config (struct rng *r)
{
    static const unsigned modules[] = {0, 1u << MODULE_MLP,
                                       1u << MODULE_LAYERNORM | 1u << MODULE_MOE_ACT};
    int tp = 1 << rng_below (r, 2);

    return (struct workload_config){
        .deg = {tp, 1 << rng_below (r, 2), 2 << rng_below (r, 2), 1 << rng_below (r, 2),
                1 << rng_below (r, 2), rng_below (r, 2) ? tp : 1, 1},
        .micro_batch = 1 << rng_below (r, 2),
        .zero = rng_below (r, 4),
        .shard = rng_below (r, 2),
        .sequence_parallel = rng_below (r, 2),
        .recompute = (enum workload_recompute) rng_below (r, 3),
        .recompute_modules = modules[rng_below (r, 3)],
        .offload = rng_below (r, 3)
                       ? OFFLOAD_NONE
                       : (enum workload_offload) rng_below (r, WORKLOAD_OFFLOADS),
        .schedule = rng_below (r, 2) ? SCHEDULE_1F1B : SCHEDULE_ZB1P};
}

/* Configurations of one key compute alike, to the last bit, whatever else tells them apart. */
TEST (alike)
{
    static const char *const models[] = {"llama-2-7b", "mixtral-8x7b", "deepseek-v3",
                                         "nemotron-nano-9b-v2", "gpt3-6.7b"};
    static const char *const profiles[] = {"megatron-core", "deepspeed", "torchtitan",
                                           "megatron-bridge", "megatron-deepspeed"};
    enum { DRAWN = 400 };
    struct topology_cluster *cluster = cluster_of ("1x8 rtx-4090 intra:12");
    const struct topology_gpu_type *type = cluster->node[0].type;
    struct rng r = {1};
    int same = 0;

    for (int trial = 0; trial < 25; trial++) {
        struct workload_model m = model_of (models[trial % 5]);
        struct workload_profile p = profile_of (profiles[trial / 5]);
        struct workload_job j = {.seq = 4096, .global_batch = 4, .lora = trial % 3 == 0};
        struct costmodel_compute_key key[DRAWN];
        static struct costmodel_compute k[DRAWN];

        p.autocast_copies = trial % 2;
        p.graphs = (enum workload_graphs) (trial % 3);
        for (int i = 0; i < DRAWN; i++) {
            struct workload_config c = drawn_config (&r);

            key[i] = costmodel_compute_key (&j, &c, &p);
            costmodel_compute_alike (&m, &j, &c, &p, type, &k[i]);
            for (int before = 0; before < i; before++)
                if (memcmp (&key[before], &key[i], sizeof key[i]) == 0) {
                    assert_memory_equal (&k[before], &k[i], sizeof k[i]);
                    same++;
                }
        }
    }
    assert_true (same > 500);
    topology_cluster_destroy (cluster);
}
