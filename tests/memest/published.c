/* The estimators of other authors give their papers' figures. */
#include "tests/lib/fixture.h"

#include "memest/memest.h"

#define GIB 1073741824.0

/* Korthikanti et al., arXiv 2205.05198, table 3 models at sequence 2048, tp 8, the first
 * stage; GiB as the memory columns of their figures 1 and 7: states, then activations
 * with tensor parallelism alone, and with sequence parallelism and selective
 * recomputation. */
static void korthikanti (void **state)
{
    static const struct {
        const char *name;
        int layers, hidden, heads, pp, vpp, micro;
        double states, plain, selective;
    } known[] = {{"22B", 48, 6144, 64, 1, 1, 4, 45.5625, 59.25, 9.5625},
                 {"175B", 96, 12288, 96, 8, 3, 1, 45.5625, 66.84375, 12.3515625},
                 {"530B", 105, 20480, 128, 35, 3, 1, 31.640625, 114.0234375, 23.076171875},
                 {"1T", 128, 25600, 160, 64, 1, 1, 32.958984375, 131.25, 26.5625}};
    (void) state;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct workload_model m = model_of ("gpt3-175b");
        struct workload_job j = {
            .seq = 2048, .global_batch = 512, .attention = ATTENTION_FUSED};
        struct workload_config c = config_of (8, known[i].pp, 1, known[i].micro);
        struct workload_profile p = profile_of ("megatron-core");
        struct memest_problem q = {&m, &j, &c, &p, MEMEST_KORTHIKANTI};
        struct workload_stage held = {.dense = known[i].layers / known[i].pp,
                                      .embedding = true,
                                      .head = known[i].pp == 1};
        struct memest_stage e;
        double states;

        m.layers = known[i].layers;
        m.hidden = known[i].hidden;
        m.heads = m.kv_heads = known[i].heads;
        m.head_dim = m.hidden / m.heads;
        m.ffn = 4 * m.hidden;
        c.deg.vpp = known[i].vpp;
        if (c.deg.vpp > 1)
            c.schedule = SCHEDULE_INTERLEAVED;
        c.sequence_parallel = false;
        memest_stage (&q, 0, &held, &e);
        states = e.weights_bytes + e.gradients_bytes + e.optimizer_bytes;
        CLOSE (states / GIB, known[i].states, 1e-9);
        CLOSE (e.activations_bytes / GIB, known[i].plain, 1e-9);
        c.sequence_parallel = true;
        c.recompute = RECOMPUTE_SELECTIVE;
        memest_stage (&q, 0, &held, &e);
        CLOSE (e.activations_bytes / GIB, known[i].selective, 1e-9);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (korthikanti)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
