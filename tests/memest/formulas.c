/* Memory: the published closed forms, kinds that sum, what never falls. */
#include "tests/lib/fixture.h"

#include "memest/memest.h"

static struct memest_stage stage_of (const struct workload_model *m,
                                     const struct workload_job *j,
                                     const struct workload_config *c, int stage, int layers)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct memest_stage s;

    memest_stage (m, j, c, &p, stage, layers, &s);
    return s;
}

/* Korthikanti et al., arXiv 2205.05198: activations of a layer are s b h (34 + 5 a s / h)
 * (eq. 1), over t with tensor and sequence parallelism (eq. 4), 34 s b h / t with
 * selective recomputation, and s b h (10 + 24/t + 5 a s / (h t)) with tensor parallelism
 * alone (eq. 2).  Read off as the difference that one more layer makes. */
static void korthikanti (void **state)
{
    struct workload_model m = model_of ("gpt3-175b");
    struct workload_job j = {.seq = 2048, .global_batch = 8, .attention = ATTENTION_UNFUSED};
    double s = 2048, b = 2, h = m.hidden, a = m.heads, t = 8, sbh = s * b * h;
    const struct {
        int tp;
        bool sp;
        enum workload_recompute recompute;
        double bytes;
    } eq[] = {{1, false, RECOMPUTE_NONE, sbh * (34 + 5 * a * s / h)},
              {8, false, RECOMPUTE_NONE, sbh * (10 + 24 / t + 5 * a * s / (h * t))},
              {8, true, RECOMPUTE_NONE, sbh / t * (34 + 5 * a * s / h)},
              {8, true, RECOMPUTE_SELECTIVE, 34 * sbh / t}};
    (void) state;

    for (size_t i = 0; i < sizeof eq / sizeof *eq; i++) {
        struct workload_config c = config_of (eq[i].tp, 1, 1, 2);
        struct memest_stage one, two;

        c.sequence_parallel = eq[i].sp;
        c.recompute = eq[i].recompute;
        one = stage_of (&m, &j, &c, 0, 1);
        two = stage_of (&m, &j, &c, 0, 2);
        CLOSE (two.activations_bytes - one.activations_bytes, eq[i].bytes, 1e-12);
    }

    /* Full recomputation keeps a layer's input alone: 2 s b h. */
    struct workload_config c = config_of (8, 1, 1, 2);

    c.sequence_parallel = false;
    c.recompute = RECOMPUTE_FULL;
    CLOSE (stage_of (&m, &j, &c, 0, 3).activations_bytes -
               stage_of (&m, &j, &c, 0, 2).activations_bytes,
           2 * sbh, 1e-12);
    /* Recomputing 2 of 4 layers keeps two inputs and two whole layers. */
    c.recompute_layers = 2;
    CLOSE (stage_of (&m, &j, &c, 0, 4).activations_bytes -
               stage_of (&m, &j, &c, 0, 3).activations_bytes,
           eq[1].bytes, 1e-12);
}

/* Bytes per parameter: 18 in bf16, 6 + 12/dp under ZeRO-1, 2 + 16/dp under 2, 18/dp
 * under 3 (Rajbhandari et al., arXiv 1910.02054, with fp32 gradients). */
static void model_states (void **state)
{
    struct workload_model m = model_of ("llama-2-7b");
    struct workload_job j = {.seq = 128, .global_batch = 64};
    const double per_param[] = {18, 6 + 12 / 8.0, 2 + 16 / 8.0, 18 / 8.0};
    (void) state;

    for (int zero = 0; zero <= 3; zero++) {
        struct workload_config c = config_of (1, 1, 8, 1);
        struct memest_stage s;

        c.zero = zero;
        s = stage_of (&m, &j, &c, 0, m.layers);
        CLOSE (s.weights_bytes + s.gradients_bytes + s.optimizer_bytes,
               per_param[zero] * workload_model_params (&m), 1e-12);
    }
}

/* Megatron-LM's functional tests, 7B GPT, tp 4 pp 1 dp 2 with the distributed optimizer:
 * 12 bytes per parameter (alloc_bytes of gpt3_7b_tp4_pp1 less 0.07 to 0.1 GiB). */
static void distributed_optimizer (void **state)
{
    struct workload_model m = model_of ("gpt3-6.7b");
    struct workload_job j = {.seq = 2048, .global_batch = 8};
    struct workload_config c = config_of (4, 1, 2, 1);
    struct memest_stage s = stage_of (&m, &j, &c, 0, m.layers);
    (void) state;

    CLOSE (s.weights_bytes + s.gradients_bytes + s.optimizer_bytes,
           12 * workload_stage_params (&m, &c, 0, m.layers), 1e-12);
}

static void in_flight (void **state)
{
    struct workload_model m = small_model (16);
    struct workload_job j = {.seq = 512, .global_batch = 16};
    struct workload_config c = config_of (1, 4, 1, 1);
    double one = 0;
    (void) state;

    c.recompute = RECOMPUTE_NONE;
    for (int i = 3; i >= 0; i--) {
        double layer = stage_of (&m, &j, &c, i, 3).activations_bytes -
                       stage_of (&m, &j, &c, i, 2).activations_bytes;

        one = i == 3 ? layer : one;
        CLOSE (layer, (4 - i) * one, 1e-12); /* 1F1B: p - i micro-batches */
    }
    c.schedule = SCHEDULE_GPIPE;
    CLOSE (stage_of (&m, &j, &c, 0, 3).activations_bytes -
               stage_of (&m, &j, &c, 0, 2).activations_bytes,
           16 * one, 1e-12);
    c.schedule = SCHEDULE_1F1B;
    j.global_batch = 2; /* two micro-batches cannot hold more than two */
    CLOSE (stage_of (&m, &j, &c, 0, 3).activations_bytes -
               stage_of (&m, &j, &c, 0, 2).activations_bytes,
           2 * one, 1e-12);
}

static double sum_of (const struct memest_stage *s)
{
    return s->weights_bytes + s->gradients_bytes + s->optimizer_bytes + s->activations_bytes +
           s->logits_bytes + s->buffers_bytes + s->overhead_bytes;
}

/* On random configurations: kinds sum to the peak and are not negative; memory does not
 * fall when micro-batch, sequence or layers grow, and does not rise with the ZeRO stage up
 * to 2 (stage 3 gathers weights into buffers). */
static void monotone (void **state)
{
    static const char *const names[] = {"llama-2-7b", "llama-2-70b", "gpt3-13b",
                                        "qwen2.5-7b"};
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct rng r = {7};
    int tried = 0;
    (void) state;

    while (tried < 20000) {
        struct workload_model m = model_of (names[rng_below (&r, 4)]);
        struct workload_job j = {.seq = 256 << rng_below (&r, 4), .global_batch = 1024};
        struct workload_config c = config_of (1 << rng_below (&r, 4), 1 + rng_below (&r, 8),
                                              1 << rng_below (&r, 5), 1 << rng_below (&r, 3));
        int stage, layers;
        struct memest_stage s, more;

        c.zero = c.deg.pp > 1 ? rng_below (&r, 2) : rng_below (&r, 3);
        c.recompute = (enum workload_recompute) rng_below (&r, 3);
        j.attention = (enum workload_attention) rng_below (&r, 2);
        c.sequence_parallel = c.deg.tp > 1 && rng_below (&r, 2);
        if (workload_config_check (&m, &j, &c, NULL) != ST_OK)
            continue;
        tried++;
        stage = rng_below (&r, c.deg.pp);
        layers = 1 + rng_below (&r, m.layers - 1);
        memest_stage (&m, &j, &c, &p, stage, layers, &s);
        CLOSE (sum_of (&s), s.peak_bytes, 1e-12);
        assert_true (s.activations_bytes >= 0 && s.overhead_bytes >= 0 &&
                     s.buffers_bytes >= 0 && s.logits_bytes >= 0);

        memest_stage (&m, &j, &c, &p, stage, layers + 1, &more);
        assert_true (more.peak_bytes > s.peak_bytes);
        if (j.seq < 2048) {
            j.seq *= 2;
            memest_stage (&m, &j, &c, &p, stage, layers, &more);
            assert_true (more.peak_bytes > s.peak_bytes);
            j.seq /= 2;
        }
        if (workload_microbatches (&j, &c) >= 2 * c.deg.pp) {
            c.micro_batch *= 2;
            memest_stage (&m, &j, &c, &p, stage, layers, &more);
            assert_true (more.peak_bytes > s.peak_bytes);
            c.micro_batch /= 2;
        }
        if (c.zero < 2 && c.deg.pp == 1) {
            c.zero++;
            memest_stage (&m, &j, &c, &p, stage, layers, &more);
            assert_true (more.peak_bytes <= s.peak_bytes);
        }
    }
}

static void max_layers (void **state)
{
    struct workload_model m = model_of ("llama-2-70b");
    struct workload_job j = {.seq = 4096, .global_batch = 64};
    struct workload_config c = config_of (8, 4, 1, 1);
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct memest_stage s;
    (void) state;

    for (double limit = 1e9; limit < 2e11; limit *= 1.3) {
        int n = memest_max_layers (&m, &j, &c, &p, 0, 80, limit);

        if (n > 0) {
            memest_stage (&m, &j, &c, &p, 0, n, &s);
            assert_true (s.peak_bytes <= limit);
        }
        if (n < 80) {
            memest_stage (&m, &j, &c, &p, 0, n + 1, &s);
            assert_true (s.peak_bytes > limit);
        }
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (korthikanti), cmocka_unit_test (model_states),
        cmocka_unit_test (distributed_optimizer), cmocka_unit_test (in_flight),
        cmocka_unit_test (monotone), cmocka_unit_test (max_layers)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
