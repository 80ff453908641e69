/* Random valid configurations, 100,000 in the long form: which change may never raise memory, and
 * which may.
 *
 * Holds everywhere: memory never falls when the micro-batch, the sequence or a stage's
 * layers grow; it is finite, and its kinds are never negative.
 * Never rises with the ZeRO stage up to 2, but for the communication buckets that stages 1
 * and 2 bring; from 2 to 3 it may rise by the gathered weights and gradients at most.
 * Never rises with tp from 2 on (1 to 2 brings a communicator and, with sequence
 * parallelism, a gathered tensor), but for gathered logits, whose vocabulary is padded to
 * more.  The rank's share never rises; the sum over ranks does, where k < t copies
 * key/value heads.
 * Never rises with pp from 2 on (1 to 2 brings a communicator, receive buffers and, with
 * tied embeddings, a second copy), but for the inputs of the embedding, of which more are
 * in flight, in models whose layers are all alike; interleaving is left out, since its
 * first stage holds 1 + (p-1)/(p v) pipelines. */
#include "tests/lib/fixture.h"

#include "memest/memest.h"

#define TRIALS 20000
#define TRIALS_LONG 100000

enum { PROFILES = 8 };
static struct workload_profile profiles[PROFILES];

/* A configuration with everything that it is about. */
struct trial {
    struct workload_model model;
    struct workload_job job;
    struct workload_config config;
    const struct workload_profile *profile;
};

static int power (struct rng *r, int most)
{
    return 1 << rng_below (r, most + 1);
}

static struct workload_model random_model (struct rng *r)
{
    int n;
    const struct workload_model *all = workload_presets (&n);
    struct workload_model m = all[rng_below (r, n)];

    m.layers = 1 + rng_below (r, 128);
    /* One letter more, for a layer more. */
    for (int i = 0, letters = (int) strlen (m.pattern); letters && i <= m.layers; i++)
        m.pattern[i] = m.pattern[i % letters];
    m.dense_layers = m.experts && m.dense_layers < m.layers ? m.dense_layers : 0;
    m.positions = 0;
    return m;
}

/* Draw until valid; seq and micro-batch can be doubled. */
static struct trial random_trial (struct rng *r)
{
    struct trial t;

    do {
        struct workload_degrees *d = &t.config.deg;

        t = (struct trial){.model = random_model (r),
                           .profile = &profiles[rng_below (r, PROFILES)]};
        t.job = (struct workload_job){
            .seq = 128 * power (r, 8),
            .precision = (enum workload_precision) rng_below (r, 5),
            .attention = (enum workload_attention) rng_below (r, 3),
            .fused_norm = (enum workload_choice) rng_below (r, 3),
            .fused_mlp = (enum workload_choice) rng_below (r, 3),
            .gathered_logits = (enum workload_choice) rng_below (r, 3),
            .wta_crs = rng_below (r, 8) ? 0 : 0.01 + 0.99 * rng_unit (r),
            .lora = rng_below (r, 16) == 0};
        *d = (struct workload_degrees){
            power (r, 4), power (r, 4), power (r, 4), power (r, 2), 1, 1, 1};
        d->etp = d->tp;
        if (t.model.experts) {
            d->ep = power (r, 4);
            d->etp = rng_below (r, 2) ? d->tp : 1;
        }
        t.config.schedule = (enum workload_schedule) rng_below (r, SCHEDULES);
        d->vpp = workload_default_vpp (t.config.schedule);
        t.config.micro_batch = power (r, 3);
        t.config.zero = rng_below (r, 4);
        t.config.sequence_parallel = d->tp > 1 && rng_below (r, 2);
        t.config.recompute = (enum workload_recompute) rng_below (r, 3);
        if (t.config.recompute == RECOMPUTE_SELECTIVE && rng_below (r, 2))
            t.config.recompute_modules = (unsigned) rng_below (r, 1 << WORKLOAD_MODULES) &
                                         workload_modules_of (&t.model);
        if (t.config.recompute == RECOMPUTE_FULL)
            t.config.recompute_layers = rng_below (r, t.model.layers + 1);
        t.job.global_batch = 2 * d->dp * t.config.micro_batch * power (r, 7);
    } while (workload_job_check (&t.model, &t.job, NULL) != ST_OK ||
             workload_config_check (&t.model, &t.job, &t.config, NULL) != ST_OK);
    return t;
}

static struct memest_stage stage_of (const struct trial *t, int stage, int layers)
{
    struct memest_problem p = {&t->model,       &t->job, &t->config, t->profile,
                               MEMEST_LINKWISE, 0,       0};
    struct workload_stage held =
        workload_stage_guess (&t->model, &t->config, stage, layers);
    struct memest_stage s;

    memest_stage (&p, stage, &held, &s);
    return s;
}

/* The fullest stage of an even split. */
static double peak_of (const struct trial *t)
{
    struct memest_problem p = {&t->model,       &t->job, &t->config, t->profile,
                               MEMEST_LINKWISE, 0,       0};
    int layers[512];
    double most = 0;

    workload_layers_even (t->model.layers, t->config.deg.pp, layers);
    for (int i = 0; i < t->config.deg.pp; i++) {
        struct workload_stage held = workload_stage_of (&t->model, &t->config, layers, i);
        struct memest_stage s;

        memest_stage (&p, i, &held, &s);
        most = fmax (most, s.peak_bytes);
    }
    return most;
}

static bool valid (const struct trial *t)
{
    return workload_config_check (&t->model, &t->job, &t->config, NULL) == ST_OK;
}

/* b is at most a, but for rounding and `slack`. */
static void at_most (const char *what, const struct trial *t, double b, double a,
                     double slack)
{
    const struct workload_degrees *d = &t->config.deg;

    if (b > a * (1 + 1e-12) + slack)
        fail_msg ("%s: %s %s tp %d pp %d dp %d cp %d ep %d zero %d %s b %d seq %d: %.17g "
                  "> %.17g",
                  what, t->model.name, t->profile->name, d->tp, d->pp, d->dp, d->cp,
                  d->ep, t->config.zero, workload_schedule_name (t->config.schedule),
                  t->config.micro_batch, t->job.seq, b, a);
}

static void check_kinds (const struct trial *t)
{
    for (int i = 0; i < t->config.deg.pp; i++) {
        struct memest_stage s = stage_of (t, i, 1 + t->model.layers / t->config.deg.pp);
        const double kind[] = {s.weights_bytes,     s.gradients_bytes, s.optimizer_bytes,
                               s.activations_bytes, s.logits_bytes,    s.buffers_bytes,
                               s.overhead_bytes};

        assert_true (isfinite (s.peak_bytes) && s.peak_bytes > 0);
        for (int k = 0; k < 7; k++)
            assert_true (isfinite (kind[k]) && kind[k] >= 0);
    }
}

static bool reduces_once (const struct trial *t)
{
    return workload_reduces_once (t->profile, &t->config,
                                  workload_microbatches (&t->job, &t->config));
}

static void check_growth (const struct trial *t, int stage)
{
    int layers = 1 + t->model.layers / t->config.deg.pp;
    double now = stage_of (t, stage, layers).peak_bytes, all = peak_of (t);
    struct trial more = *t;

    if (!more.model.kinds[1] || t->config.deg.vpp == 1) /* else chunks shift */
        at_most ("a layer less", t, now, stage_of (t, stage, layers + 1).peak_bytes, 0);
    more.config.micro_batch *= 2;
    /* Gradients of the only micro-batch need no sum. */
    if (valid (&more) && reduces_once (&more) == reduces_once (t)) {
        at_most ("half the micro-batch", t, now,
                 stage_of (&more, stage, layers).peak_bytes, 0);
        at_most ("half the micro-batch, all", t, all, peak_of (&more), 0);
    }
    more = *t;
    more.job.seq *= 2;
    if (valid (&more)) {
        at_most ("half the sequence", t, now, stage_of (&more, stage, layers).peak_bytes,
                 0);
        at_most ("half the sequence, all", t, all, peak_of (&more), 0);
    }
    more = *t;
    more.model.layers++;
    if (valid (&more) && t->model.experts == 0 && !t->model.kinds[1] &&
        workload_default_vpp (t->config.schedule) == 1)
        at_most ("a layer less, all", t, all, peak_of (&more), 0);
    more = *t;
    more.job.wta_crs = 0;
    at_most (
        "WTA-CRS", t, now, stage_of (&more, stage, layers).peak_bytes,
        32.0 * layers * t->job.seq * t->config.micro_batch *
            fmax (t->config.deg.pp * 2, workload_microbatches (&t->job, &t->config)));
}

static void check_zero (const struct trial *t, int stage)
{
    int layers = 1 + t->model.layers / t->config.deg.pp;
    double fragmentation = t->profile->memory.fragmentation;
    struct trial low = *t, high = *t;

    for (int zero = 0; zero < 3; zero++) {
        double slack = zero == 0 ? t->profile->memory.bucket_bytes *
                                       workload_element_bytes (t->job.precision) / 2.0
                                 : 0;

        low.config.zero = zero;
        high.config.zero = zero + 1;
        if (workload_gathers_by_layer (&high.config, t->profile)) {
            struct memest_stage s = stage_of (&high, stage, layers),
                                l = stage_of (&low, stage, layers);

            /* Gathered weights are in it, and the largest unit's gradients, in the logits' or the
             * optimizer's place. */
            slack = s.buffers_bytes + fmax (0, s.activations_bytes - l.activations_bytes);
        }
        at_most ("a ZeRO stage more", &high, stage_of (&high, stage, layers).peak_bytes,
                 stage_of (&low, stage, layers).peak_bytes, slack * fragmentation);
    }
}

static bool gathered (const struct trial *t)
{
    return workload_choose (t->job.gathered_logits, t->profile->gathered_logits);
}

static void check_tensor_parallel (const struct trial *t, int stage)
{
    int layers = 1 + t->model.layers / t->config.deg.pp;
    struct trial more = *t;

    more.config.deg.tp *= 2;
    more.config.deg.etp =
        t->config.deg.etp == t->config.deg.tp ? more.config.deg.tp : t->config.deg.etp;
    if (t->config.deg.tp == 1 || !valid (&more) || gathered (t))
        return;
    at_most ("tp doubled", &more, stage_of (&more, stage, layers).peak_bytes,
             stage_of (t, stage, layers).peak_bytes, 0);
}

static void check_pipeline (const struct trial *t)
{
    const struct workload_model *m = &t->model;
    int pp = t->config.deg.pp;
    double tokens = (double) t->job.seq * t->config.micro_batch / t->config.deg.cp;
    struct trial more = *t;

    more.config.deg.pp *= 2;
    if (pp == 1 || t->config.schedule == SCHEDULE_INTERLEAVED || !valid (&more) ||
        m->layers % (2 * pp * t->config.deg.vpp) != 0 ||
        (m->experts > 0 && m->dense_layers > 0) || m->kinds[1])
        return;
    at_most ("pp doubled", &more, peak_of (&more), peak_of (t),
             t->profile->memory.fragmentation * 2 * pp * tokens *
                 (8 + (m->dropout ? 2.0 * m->hidden : 0)));
}

TEST (random_configurations)
{
    static const char *const names[] = {
        "megatron-core", "megatron-deepspeed", "aleph-alpha", "llm-foundry",
        "nemo",          "nanotron",           "fsdp",        "deepspeed"};
    struct rng r = seeded (2024);
    int trials = getenv ("LINKWISE_LONG") ? TRIALS_LONG : TRIALS;

    for (int i = 0; i < PROFILES; i++) {
        profiles[i] = profile_of (names[i]);
        profiles[i].gradients_freed = false; /* beside several micro-batches they stay */
    }
    for (int i = 0; i < trials; i++) {
        struct trial t = random_trial (&r);
        int stage = rng_below (&r, t.config.deg.pp);

        check_kinds (&t);
        check_growth (&t, stage);
        check_zero (&t, stage);
        check_tensor_parallel (&t, stage);
        check_pipeline (&t);
    }
}

/* What breaks: each a case where memory does rise. */
TEST (exceptions)
{
    struct workload_profile core = profile_of ("megatron-core");
    struct trial t = {
        .model = model_of ("llama-3-8b"),
        .job = {.seq = 8192, .global_batch = 16, .gathered_logits = CHOICE_YES},
        .config = config_of (2, 1, 1, 1),
        .profile = &core};
    double before, copied;

    /* Gathered logits: 128256 is a multiple of 128 x 2, not of 128 x 4 = 512. */
    before = stage_of (&t, 0, 1).logits_bytes;
    t.config = config_of (4, 1, 1, 1);
    assert_true (stage_of (&t, 0, 1).logits_bytes > before * 0.97);
    t.model.vocab = 128 * 2 * 3;
    t.config = config_of (8, 1, 1, 1);
    copied = stage_of (&t, 0, 1).logits_bytes;
    t.config = config_of (2, 1, 1, 1);
    assert_true (copied > stage_of (&t, 0, 1).logits_bytes);

    /* k < t: all ranks together hold more key/value weights. */
    t.model = model_of ("llama-3-8b");
    assert_true (16 * workload_layer_params (&t.model, 16) >
                 8 * workload_layer_params (&t.model, 8) + 8.0 * t.model.hidden);

    /* Interleaving: the first stage of more stages holds more than one pipeline. */
    t.job = (struct workload_job){.seq = 8192, .global_batch = 64};
    t.config = config_of (1, 2, 1, 1);
    t.config.schedule = SCHEDULE_INTERLEAVED;
    t.config.deg.vpp = 2;
    before = stage_of (&t, 0, 16).activations_bytes;
    t.config.deg.pp = 4;
    assert_true (stage_of (&t, 0, 8).activations_bytes > before);

    /* Without data parallelism ZeRO 3 has nothing to shard or to gather. */
    t.config = config_of (1, 1, 1, 1);
    before = stage_of (&t, 0, 32).peak_bytes;
    t.config.zero = 3;
    assert_true (stage_of (&t, 0, 32).peak_bytes == before);
}

static struct memest_stage least_of (const struct trial *t, int stage, int layers)
{
    struct memest_problem p = {&t->model,       &t->job, &t->config, t->profile,
                               MEMEST_LINKWISE, 0,       0};
    struct memest_stage s;

    memest_stage_least (&p, stage, layers, &s);
    return s;
}

/* Whole chunks of any split, of models whose layers differ in any way: no stage needs less
 * than memest_stage_least says, and the fullest no less than memest_states_least, also where
 * gradients do not outlive a step. */
TEST (least_of_all)
{
    struct rng r = {8};
    int tried = 0;

    while (tried < 5000) {
        struct trial t = random_trial (&r);
        struct workload_profile profile = *t.profile;
        struct memest_problem p = {&t.model,        &t.job, &t.config, &profile,
                                   MEMEST_LINKWISE, 0,      0};
        int pp = t.config.deg.pp, v = t.config.deg.vpp, layers[16];
        int left = t.model.layers / v;
        struct workload_stage all;
        double fullest = 0;

        t.profile = &profile;
        profile.gradients_freed = rng_below (&r, 2);
        if (rng_below (&r, 2)) /* the only micro-batch, of few tokens */
            t.job = (struct workload_job){
                .seq = 64, .global_batch = t.config.deg.dp * t.config.micro_batch};
        t.model.layers = left * v;
        if (t.model.experts == 0 || left < pp || !valid (&t))
            continue;
        t.model.expert_every = 1 + rng_below (&r, 4);
        t.model.dense_layers = rng_below (&r, 2) ? 0 : rng_below (&r, t.model.layers);
        for (int k = 0; k < pp; k++) {
            int rest = pp - 1 - k;

            layers[k] = (rest ? 1 + rng_below (&r, left - rest) : left) * v;
            left -= layers[k] / v;
        }
        for (int k = 0; k < pp; k++) {
            struct workload_stage held =
                workload_stage_of (&t.model, &t.config, layers, k);
            struct memest_stage s;

            memest_stage (&p, k, &held, &s);
            at_most ("the least of a stage", &t, least_of (&t, k, layers[k]).peak_bytes,
                     s.peak_bytes, 0);
            fullest = fmax (fullest, s.peak_bytes);
        }
        all = workload_all_layers (&t.model);
        at_most ("the least of states", &t, memest_states_least (&p, &all), fullest, 0);
        tried++;
    }
}

/* A model that is one stage is known: where layers are of several kinds, the least is what it
 * takes.  With less of them counted as states, a limit by risk would allow it less. */
TEST (least_of_one_stage)
{
    struct workload_profile torchtune = profile_of ("torchtune");
    struct trial t = {.model = model_of ("nemotron-nano-9b-v2"),
                      .job = {.seq = 2048, .global_batch = 2, .precision = PREC_TF32},
                      .config = config_of (4, 1, 2, 1),
                      .profile = &torchtune};
    struct memest_problem p = {&t.model,        &t.job, &t.config, &torchtune,
                               MEMEST_LINKWISE, 0,      0};
    struct memest_stage s, least;

    t.config.zero = 0;
    t.config.offload = OFFLOAD_ALL;
    t.config.recompute = RECOMPUTE_FULL;
    p.states_less = memest_states_less (&torchtune, .01);
    s = stage_of (&t, 0, t.model.layers);
    least = least_of (&t, 0, t.model.layers);
    assert_true (least.peak_bytes == s.peak_bytes);
    for (double limit = 1e9; limit < 2 * s.peak_bytes; limit *= 1.001)
        assert_true (memest_fits (&p, &least, limit) == memest_fits (&p, &s, limit));
}

/* memest_max_layers is what trying every number of whole chunks finds, of models whose
 * layers differ too. */
TEST (most_layers)
{
    struct rng r = {7};

    for (int i = 0; i < 5000; i++) {
        struct trial t = random_trial (&r);
        struct memest_problem p = {&t.model,        &t.job, &t.config, t.profile,
                                   MEMEST_LINKWISE, 0,      0};
        int stage = rng_below (&r, t.config.deg.pp), most = 0, v, chunks, n, unit;
        double limit;

        if (t.config.schedule == SCHEDULE_INTERLEAVED)
            t.config.deg.vpp = 2 + rng_below (&r, 3);
        v = t.config.deg.vpp;
        chunks = t.model.layers / v;
        t.model.layers = chunks * v;
        if (chunks < t.config.deg.pp || !valid (&t))
            continue;
        if (t.model.experts > 0) {
            t.model.expert_every = 1 + rng_below (&r, 4);
            t.model.dense_layers = rng_below (&r, 2) ? 0 : rng_below (&r, t.model.layers);
        }
        n = v * (1 + rng_below (&r, chunks));
        limit = least_of (&t, stage, n).peak_bytes *
                (rng_below (&r, 4) ? 0.5 + rng_unit (&r) : 1.0);
        unit = workload_layers_unit (&t.config, t.profile);
        for (int k = unit; k <= t.model.layers; k += unit)
            most = least_of (&t, stage, k).peak_bytes <= limit ? k : most;
        assert_int_equal (memest_max_layers (&p, stage, t.model.layers, limit), most);
    }
}

/* The largest sizes that a config.json may state stay finite. */
TEST (absurd_sizes)
{
    struct workload_profile core = profile_of ("megatron-core");
    struct trial t = {
        .model = {.name = "huge",
                  .type = "mixtral",
                  .layers = 10000,
                  .hidden = 1 << 20,
                  .heads = 1 << 20,
                  .kv_heads = 1 << 20,
                  .head_dim = 1 << 20,
                  .ffn = 1 << 24,
                  .vocab = 1 << 24,
                  .gated_mlp = true,
                  .norms = 2,
                  .experts = 65536,
                  .top_k = 65536,
                  .expert_ffn = 1 << 24,
                  .expert_every = 1},
        .job = {.seq = 1 << 30, .global_batch = 1 << 30, .attention = ATTENTION_UNFUSED},
        .config = config_of (1, 1, 1, 1 << 30),
        .profile = &core};
    struct memest_load load = {0};

    assert_true (valid (&t));
    load.peak_bytes = stage_of (&t, 0, 10000).peak_bytes;
    assert_true (isfinite (load.peak_bytes));
    assert_true (isfinite (workload_model_params (&t.model)));
    assert_true (memest_oom_probability (&core, load, 8e10) == 1);
}
