/* The chance of running out, limits by percent and by risk, and the smallest change. */
#include "tests/lib/fixture.h"

#include "memest/memest.h"

static double chance (const struct workload_profile *p, double peak, double gpu)
{
    return memest_oom_probability (p, (struct memest_load){peak, 0}, gpu);
}

TEST (probability)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    double before = 0;

    /* An estimate of just the GPU's memory is a coin's toss. */
    CLOSE (chance (&p, 8e10, 8e10), 0.5, 1e-12);
    /* One residual above it: the normal distribution's .841. */
    CLOSE (chance (&p, 8e10 * exp (p.memory.residual), 8e10), 0.8413447460685429, 1e-12);
    CLOSE (chance (&p, 8e10 * exp (-2 * p.memory.residual), 8e10), 0.022750131948179195,
           1e-9);
    for (double peak = 1e9; peak < 1e12; peak *= 1.01) {
        double now = chance (&p, peak, 8e10);

        assert_true (now >= before && now >= 0 && now <= 1);
        before = now;
    }
    assert_true (chance (&p, 1e300, 1) == 1);
    assert_true (chance (&p, 1, 1e300) == 0);
}

/* Weights, gradients and optimizer state are surer than the rest, and err with it. */
TEST (surer_states)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT), alike = p;
    double before = 1, wide = INFINITY;

    p.memory.residual = 0.2;
    p.memory.states_residual = 0.03;
    for (int tenths = 0; tenths <= 10; tenths++) {
        struct memest_load load = {7e10, tenths * 7e9};
        double now = memest_oom_probability (&p, load, 8e10),
               factor = memest_interval (&p, load);

        assert_true (now < before && factor < wide);
        before = now;
        wide = factor;
        CLOSE (memest_peak_at (&p, load, 0), 7e10, 1e-12);
        CLOSE (memest_peak_at (&p, load, 2),
               load.states_bytes * exp (0.06) + (7e10 - load.states_bytes) * exp (0.4),
               1e-12);
        for (double z = -4; z <= 4; z += 0.5)
            assert_true (
                fabs (memest_deviations (&p, load, memest_peak_at (&p, load, z)) - z) <
                1e-9);
    }
    CLOSE (before, 0.5 * erfc (log (8 / 7.0) / 0.03 / sqrt (2.0)), 1e-9);
    CLOSE (wide, exp (1.645 * 0.03), 1e-12);
    /* What is less sure than the rest counts as the rest. */
    alike.memory.states_residual = 1;
    CLOSE (memest_oom_probability (&alike, (struct memest_load){7e10, 6e10}, 8e10),
           chance (&alike, 7e10, 8e10), 1e-9);
}

/* A limit by risk leaves that risk; wider residuals leave less. */
TEST (limits)
{
    static const double risks[] = {1e-9, 1e-4, 0.01, 0.1, 0.5, 0.9, 0.999999};
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT), wide = p;

    wide.memory.residual *= 2;
    CLOSE (memest_limit (&p, 8e10, 80, 0), 6.4e10, 1e-12);
    for (size_t i = 0; i < sizeof risks / sizeof *risks; i++) {
        double limit = memest_limit (&p, 8e10, 95, risks[i]);

        CLOSE (chance (&p, limit, 8e10), risks[i], 1e-6);
        assert_true (chance (&p, limit, 8e10) <= risks[i]);
        if (risks[i] < 0.5)
            assert_true (memest_limit (&wide, 8e10, 95, risks[i]) < limit);
        if (i > 0)
            assert_true (memest_limit (&p, 8e10, 95, risks[i - 1]) < limit);
    }
    /* The widest residual that a profile may have, and next to no risk. */
    wide.memory.residual = 1;
    CLOSE (chance (&wide, memest_limit (&wide, 8e10, 95, 1e-300), 8e10), 1e-300, 1e-6);
}

/* A stage fits a limit by risk up to where its chance is the risk, whatever part are states. */
TEST (limits_of_stages)
{
    static const double risks[] = {1e-9, 0.01, 0.2, 0.5, 0.9};
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct memest_problem q = {.profile = &p};

    p.memory.residual = 0.15;
    assert_true (memest_states_less (&p, 0) == 0);
    for (size_t i = 0; i < sizeof risks / sizeof *risks; i++)
        for (int tenths = 0; tenths <= 10; tenths++) {
            double limit = memest_limit (&p, 8e10, 95, risks[i]), states, rest;
            struct memest_stage s = {.peak_bytes = 0};

            q.states_less = memest_states_less (&p, risks[i]);
            rest = (1 - tenths / 10.0) * limit;
            states = (limit - rest) / (1 - q.states_less);
            s.weights_bytes = states / 2;
            s.gradients_bytes = states / 3;
            s.optimizer_bytes = states / 6;
            s.activations_bytes = rest;
            s.peak_bytes = (states + rest) * (1 - 1e-9);
            CLOSE (memest_oom_probability (&p, memest_load_of (&s), 8e10), risks[i],
                   1e-5);
            assert_true (memest_fits (&q, &s, limit));
            CLOSE (memest_limit_of (&q, &s, limit), states + rest, 1e-7);
            s.peak_bytes *= 1 + 1e-8;
            assert_false (memest_fits (&q, &s, limit));
        }
}

/* ---- the smallest change ---- */

/* Every stage of the profile's split within the limit? */
static bool fits (const struct memest_problem *now, const struct workload_config *c,
                  double limit)
{
    struct memest_problem p = *now;
    int layers[512];

    if (workload_config_check (p.model, p.job, c, NULL) != ST_OK ||
        workload_config_offered (p.model, c, p.profile, NULL) != ST_OK)
        return false;
    p.config = c;
    workload_layers_split (p.model, p.profile->partition, c->deg.pp, layers);
    for (int i = 0; i < c->deg.pp; i++) {
        struct workload_stage held = workload_stage_of (p.model, c, layers, i);
        struct memest_stage s;

        memest_stage (&p, i, &held, &s);
        if (s.peak_bytes > limit)
            return false;
    }
    return true;
}

/* All single changes from the cheapest on, one at a time; false beyond the last. */
static bool change (const struct memest_problem *p, int number, struct workload_config *c)
{
    int layers = p->model->layers, *degree[4];

    *c = *p->config;
    if (number == 0) {
        c->sequence_parallel = c->deg.tp > 1;
        return true;
    }
    if (number == 1) {
        c->zero = c->zero > 1 ? c->zero : 1;
        return true;
    }
    if (number == 2) {
        if (c->recompute == RECOMPUTE_NONE)
            c->recompute = RECOMPUTE_SELECTIVE;
        return true;
    }
    number -= 3;
    if (number < c->micro_batch - 1) {
        c->micro_batch -= number + 1;
        return true;
    }
    number -= c->micro_batch - 1;
    if (number < layers) {
        if (c->recompute != RECOMPUTE_FULL || c->recompute_layers > 0)
            c->recompute_layers = number + 1;
        c->recompute = RECOMPUTE_FULL;
        return true;
    }
    number -= layers;
    if (number < 2) {
        c->zero = c->zero > number + 2 ? c->zero : number + 2;
        return true;
    }
    number -= 2;
    degree[0] = &c->deg.dp;
    degree[1] = &c->deg.cp;
    degree[2] = &c->deg.pp;
    degree[3] = &c->deg.tp;
    if (number >= 48)
        return false;
    *degree[number % 4] <<= number / 4 + 1; /* by the GPUs that it takes */
    if (number % 4 == 3) {
        c->deg.etp = c->deg.tp;
        c->sequence_parallel = true;
    }
    return true;
}

/* It really fits, and nothing cheaper does. */
TEST (smallest_change)
{
    static const char *const models[] = {"llama-2-13b", "llama-3-70b", "mixtral-8x7b",
                                         "gpt3-6.7b", "deepseek-v2"};
    static const char *const frameworks[] = {"megatron-core", "aleph-alpha",
                                             "llm-foundry"};
    struct rng r = {11};
    int found = 0, none = 0, kinds[8] = {0};

    for (int trial = 0; trial < 2000; trial++) {
        struct workload_model m = model_of (models[rng_below (&r, 5)]);
        struct workload_profile f = profile_of (frameworks[rng_below (&r, 3)]);
        struct workload_job j = {.seq = 2048 << rng_below (&r, 4),
                                 .global_batch = 512,
                                 .attention =
                                     (enum workload_attention) rng_below (&r, 3)};
        struct workload_config c = config_of (
                                   1 << rng_below (&r, 4), 1 << rng_below (&r, 3),
                                   1 << rng_below (&r, 5), 1 << rng_below (&r, 4)),
                               out, cheapest;
        struct memest_problem p = {&m, &j, &c, &f, MEMEST_LINKWISE, 0, 0};
        double limit = 7.6e10 * (0.3 + rng_unit (&r));
        struct text words = {0};
        int layers[512], number = 0;
        bool any = false, more;

        c.sequence_parallel = c.sequence_parallel && rng_below (&r, 2);
        c.zero = rng_below (&r, 2);
        c.recompute = (enum workload_recompute) rng_below (&r, 3);
        c.recompute_layers = c.recompute == RECOMPUTE_FULL ? rng_below (&r, 8) : 0;
        if (workload_config_check (&m, &j, &c, NULL) != ST_OK ||
            workload_config_offered (&m, &c, &f, NULL) != ST_OK || fits (&p, &c, limit))
            continue;
        workload_layers_split (&m, f.partition, c.deg.pp, layers);
        do {
            more = change (&p, number++, &cheapest);
            any = more && fits (&p, &cheapest, limit);
        } while (more && !any);
        assert_true (memest_smallest_change (&p, layers, limit, &out, &words) == any);
        if (any) {
            assert_memory_equal (&out.deg, &cheapest.deg, sizeof out.deg);
            assert_int_equal (out.zero, cheapest.zero);
            assert_int_equal (out.micro_batch, cheapest.micro_batch);
            assert_int_equal (out.recompute, cheapest.recompute);
            assert_int_equal (out.sequence_parallel, cheapest.sequence_parallel);
            if (out.recompute == RECOMPUTE_FULL)
                assert_int_equal (out.recompute_layers, cheapest.recompute_layers);
            assert_true (words.len > 0);
            kinds[out.zero != c.zero                 ? 0
                  : out.recompute != c.recompute     ? 1
                  : out.micro_batch != c.micro_batch ? 2
                  : out.deg.pp != c.deg.pp           ? 3
                  : out.deg.tp != c.deg.tp           ? 4
                  : out.deg.cp != c.deg.cp           ? 5
                                                     : 6]++;
        }
        found += any;
        none += !any;
        text_free (&words);
    }
    /* All kinds of change occur, and cases without one. */
    assert_true (found > 100 && none > 0);
    for (int k = 0; k < 6; k++)
        assert_true (kinds[k] > 0);
}

/* What a stage has most of, whichever of the seven it is. */
TEST (largest_kind)
{
    static const char *const name[] = {"weights",     "gradients", "optimizer state",
                                       "activations", "logits",    "buffers",
                                       "overhead"};

    for (int i = 0; i < 7; i++) {
        struct memest_stage s = {.weights_bytes = 1 + (i == 0),
                                 .gradients_bytes = 1 + (i == 1),
                                 .optimizer_bytes = 1 + (i == 2),
                                 .activations_bytes = 1 + (i == 3),
                                 .logits_bytes = 1 + (i == 4),
                                 .buffers_bytes = 1 + (i == 5),
                                 .overhead_bytes = 1 + (i == 6)};
        double bytes;

        assert_string_equal (memest_largest_kind (&s, &bytes), name[i]);
        assert_true (bytes == 2);
    }
}

/* A document has all kinds, and what is on the host where anything is. */
TEST (document)
{
    struct memest_stage s = {1, 2, 3, 4, 5, 6, 7, 28, 0, 0};

    for (int host = 0; host < 2; host++) {
        json_t *doc, *value;
        const char *key;
        double sum = 0;

        s.host_bytes = host;
        doc = memest_stage_to_json (&s);
        json_object_foreach (doc, key, value) sum +=
            json_number_value (value) * (strcmp (key, "peak_bytes") ? 1 : -1);
        assert_int_equal (json_object_size (doc), 8 + host);
        CLOSE (sum, host, 0);
        json_decref (doc);
    }
}
