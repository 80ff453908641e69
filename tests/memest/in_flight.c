/* Memory: how many micro-batches' activations a stage keeps, by schedule, chunks and their layers.
 */
#include "tests/lib/memory.h"

/* Micro-batches in flight of every stage, against the papers: 1F1B holds p - i, GPipe all,
 * interleaved 2 (p - 1 - i) + (v - 1) p + 1 chunks of 1/v (Narayanan et al., arXiv
 * 2104.04473), ZB1P p, ZB2P 2p (arXiv 2401.10241), ZBV p, V-Half (p + 2) / 2, V-Min
 * (p + 4) / 3 rounded down (arXiv 2405.15362). */
TEST (in_flight)
{
    const struct {
        enum workload_schedule schedule;
        double held[4]; /* stages 0 to 3 of 4, 16 micro-batches */
    } expected[] = {{SCHEDULE_1F1B, {4, 3, 2, 1}},
                    {SCHEDULE_GPIPE, {16, 16, 16, 16}},
                    {SCHEDULE_INTERLEAVED, {5.5, 4.5, 3.5, 2.5}},
                    {SCHEDULE_ZB1P, {4, 4, 4, 4}},
                    {SCHEDULE_ZB2P, {8, 8, 8, 8}},
                    {SCHEDULE_ZBV, {4, 4, 4, 4}},
                    {SCHEDULE_V_HALF, {3, 3, 3, 3}},
                    {SCHEDULE_V_MIN, {2, 2, 2, 2}},
                    {SCHEDULE_DUALPIPEV, {4.5, 4.5, 4.5, 4.5}}};

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct workload_config c = config_of (1, 4, 1, 1);

        c.schedule = expected[i].schedule;
        c.deg.vpp = workload_default_vpp (c.schedule);
        for (int stage = 0; stage < 4; stage++) {
            CLOSE (workload_in_flight (&c, 16, stage), expected[i].held[stage], 1e-12);
            /* Not more than there are. */
            assert_true (workload_in_flight (&c, 2, stage) <= 2);
        }
    }
}

/* As many micro-batches as a batch may have. */
TEST (many_microbatches)
{
    struct workload_config c = config_of (1, 4, 1, 1);

    for (int s = SCHEDULE_1F1B; s < SCHEDULES; s++) {
        c.schedule = (enum workload_schedule) s;
        c.deg.vpp = workload_default_vpp (c.schedule);
        for (int stage = 0; stage < 4; stage++) {
            double held = workload_in_flight (&c, 1 << 30, stage);

            assert_true (held >= 1 && held <= (s == SCHEDULE_GPIPE ? 1 << 30 : 8));
        }
    }
}

/* The estimate multiplies a layer by them. */
TEST (flight_scales)
{
    struct workload_model m = small_model (16);
    struct workload_job j = {.seq = 512, .global_batch = 16};
    struct workload_config c = config_of (1, 4, 1, 1);
    double one = layer_of (&m, &j, &c, 3);

    for (int i = 0; i < 4; i++)
        CLOSE (layer_of (&m, &j, &c, i), (4 - i) * one, 1e-12);
    c.schedule = SCHEDULE_ZB2P;
    CLOSE (layer_of (&m, &j, &c, 3), 8 * one, 1e-12);
}

/* Where all-to-alls run beside another micro-batch's compute, a stage holds a layer more than its
 * 2 (p - 1 - i) + (v - 1) p + 1 chunks, or its micro-batch without a pipeline: a forward's layer
 * comes while a backward's goes. */
TEST (exchanges_beside_compute)
{
    struct workload_model m = small_model (16);
    struct workload_job j = {.seq = 512, .global_batch = 32};
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);

    m.experts = 8;
    m.top_k = 2;
    m.expert_ffn = 1024;
    for (int pp = 1; pp <= 4; pp += 3) {
        struct workload_config c = config_of (1, pp, 2, 1);
        struct memest_problem q = {&m, &j, &c, &p, MEMEST_LINKWISE, 0, 0};
        struct workload_stage held;
        struct memest_stage s;
        double bare, layers = pp == 1 ? 4 : 2 * (2 * 2 + 4 + 1);

        c.deg.ep = 2;
        c.deg.vpp = pp == 1 ? 1 : 2;
        c.schedule = pp == 1 ? SCHEDULE_1F1B : SCHEDULE_INTERLEAVED;
        held = (struct workload_stage){.expert = 4,
                                       .first = {.expert = 4 / c.deg.vpp},
                                       .last = {.expert = 4 / c.deg.vpp}};
        p.time.moe_overlap = 0;
        memest_stage (&q, pp == 1 ? 0 : 1, &held, &s);
        bare = s.activations_bytes;
        p.time.moe_overlap = 1;
        memest_stage (&q, pp == 1 ? 0 : 1, &held, &s);
        CLOSE (s.activations_bytes, bare * (layers + 1) / layers, 1e-9);
        if (pp == 1) { /* the only micro-batch has nothing beside it */
            j.global_batch = 2;
            memest_stage (&q, 0, &held, &s);
            CLOSE (s.activations_bytes, bare, 0);
            j.global_batch = 32;
        }
        c.recompute = RECOMPUTE_FULL;
        memest_stage (&q, 0, &held, &s);
        bare = s.activations_bytes;
        p.time.moe_overlap = 0;
        memest_stage (&q, 0, &held, &s);
        CLOSE (s.activations_bytes, bare, 0);
    }
}

/* Chunks that differ: stage 0 of 4 with 5 layers in chunks of 2 and 3 has run 11 forwards,
 * 7 of its first chunk and 4 of its second (p = 4 a chunk in turn), before its first
 * backward: 7 x 2 + 4 x 3 layers, not 5.5 x 5.  Of the embedding's inputs, 8 bytes a
 * token, two groups of 4 are held. */
TEST (uneven_chunks)
{
    struct workload_model m = model_of ("llama-2-7b");
    struct workload_job j = {.seq = 2048, .global_batch = 32};
    struct workload_config c = config_of (1, 4, 1, 1);
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct memest_problem q = {&m, &j, &c, &p, MEMEST_LINKWISE, 0, 0};
    const int layers[] = {5, 4, 4, 4}, even[] = {4, 4, 4, 4};
    struct workload_stage held;
    struct memest_stage s;
    double layer;

    m.layers = 17;
    layer = layer_of (&m, &j, &c, 3);
    c.schedule = SCHEDULE_INTERLEAVED;
    c.deg.vpp = 2;
    held = workload_stage_of (&m, &c, layers, 0);
    assert_true (held.first.dense == 2 && held.last.dense == 3 && held.dense == 5);
    memest_stage (&q, 0, &held, &s);
    CLOSE (s.activations_bytes, 26 * layer + 8 * 8 * 2048, 1e-12);
    /* A micro-batch a chunk is all there is. */
    j.global_batch = 4;
    memest_stage (&q, 0, &held, &s);
    CLOSE (s.activations_bytes, 4 * 5 * layer + 4 * 8 * 2048, 1e-12);
    /* Alike, they are as many as chunks over v. */
    j.global_batch = 32;
    m.layers = 16;
    held = workload_stage_of (&m, &c, even, 0);
    memest_stage (&q, 0, &held, &s);
    CLOSE (s.activations_bytes, 5.5 * 4 * layer + 8 * 8 * 2048, 1e-12);
}

/* In a V the first chunk is held for 4p - 1 - 2k of 4p slots on stage k, but no more than there are
 * micro-batches. */
TEST (uneven_v)
{
    struct workload_model m = model_of ("gpt2-xl");
    struct workload_job j = {.seq = 1024, .global_batch = 32};
    struct workload_config c = config_of (1, 4, 1, 1);
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct memest_problem q = {&m, &j, &c, &p, MEMEST_LINKWISE, 0, 0};
    double layer = layer_of (&m, &j, &c, 3);

    m.layers = 17;
    c.schedule = SCHEDULE_ZBV;
    c.deg.vpp = 2;
    for (int k = 0; k < 4; k++) {
        int layers[] = {4, 4, 4, 4};
        struct workload_stage even = workload_stage_of (&m, &c, layers, k), held;
        struct memest_stage of_even, s;

        layers[k] = 5;
        held = workload_stage_of (&m, &c, layers, k);
        assert_true (held.first.dense == 3 && held.last.dense == 2);
        for (int few = 0; few < 2; few++) {
            double first = few ? 4 : 8 * (15 - 2 * k) / 16.;

            j.global_batch = few ? 4 : 32;
            memest_stage (&q, k, &even, &of_even);
            memest_stage (&q, k, &held, &s);
            CLOSE (s.activations_bytes - of_even.activations_bytes,
                   (first * 3 + (8 - first) * 2 - 4 * 4) * layer, 1e-9);
        }
    }
}

/* The most that an interleaved stage's chunks hold, each with layers of its own: forwards of the
 * chunks in turn, p micro-batches each, and from `ahead` on a backward after each, of the chunks in
 * reverse. */
static double most_held (int pp, int v, int microbatches, int ahead, const double *bytes)
{
    double now = 0, most = 0;

    for (int k = 0; k < microbatches * v; k++) {
        now += bytes[k / pp % v];
        if (k >= ahead)
            now -= bytes[v - 1 - (k - ahead) / pp % v];
        most = fmax (most, now);
    }
    return most;
}

/* First, last and other chunks with any layers, with and without experts; some in the first. */
TEST (unlike_chunks)
{
    struct workload_model m = small_model (16);
    struct workload_job j = {.seq = 512};
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct workload_config c = config_of (1, 4, 1, 1);
    struct memest_problem q = {&m, &j, &c, &p, MEMEST_LINKWISE, 0, 0};
    struct rng r = seeded (3);

    m.experts = 8;
    m.top_k = 2;
    m.expert_ffn = 1024;
    for (int i = 0; i < 300; i++) {
        int stage = rng_below (&r, 4), n[2][3], v = 2 + rng_below (&r, 2);
        struct workload_stage held = {0}, one[2] = {{.dense = 1}, {.expert = 1}};
        double bytes[3] = {0}, ahead;
        struct memest_stage s;

        c.deg.pp = 1;
        c.deg.vpp = 1;
        c.schedule = SCHEDULE_1F1B;
        j.global_batch = 1;
        for (int k = 0; k < 2; k++) {
            memest_stage (&q, 0, &one[k], &s);
            for (int chunk = 0; chunk < v; chunk++)
                n[k][chunk] = rng_below (&r, 3) + (chunk == 0 && k == i % 2);
            if (v > 2 && i % 4 == 0) /* their mean is the first's */
                n[k][1] = n[k][0] * 2 > n[k][2] ? n[k][0] * 2 - n[k][2] : 0;
            for (int chunk = 0; chunk < v; chunk++)
                bytes[chunk] += n[k][chunk] * s.activations_bytes;
        }
        c.deg.pp = 4;
        c.deg.vpp = v;
        c.schedule = SCHEDULE_INTERLEAVED;
        j.global_batch = 4 * (1 + rng_below (&r, 4));
        held.first = (struct workload_layers){.dense = n[0][0], .expert = n[1][0]};
        held.last = (struct workload_layers){.dense = n[0][v - 1], .expert = n[1][v - 1]};
        held.dense = n[0][0] + n[0][1] + (v > 2 ? n[0][2] : 0);
        held.expert = n[1][0] + n[1][1] + (v > 2 ? n[1][2] : 0);
        ahead = fmin (j.global_batch * v, 2 * (4 - 1 - stage) + (v - 1) * 4 + 1);
        memest_stage (&q, stage, &held, &s);
        CLOSE (s.activations_bytes, most_held (4, v, j.global_batch, (int) ahead, bytes),
               1e-9);
    }
}
