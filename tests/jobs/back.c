/* A plan's configuration and the facts of its profile, written as each framework's file and read
 * again, are the same: over random plans and all profiles.  What a framework cannot be told is
 * refused, with what works. */
#include "tests/lib/folder.h"

#include "base/json.h"
#include "calibrate/calibrate.h"
#include "jobs/jobs.h"

#define PLANS 400
#define COUNT_OF(ARRAY) ((int) (sizeof (ARRAY) / sizeof *(ARRAY)))

/* ---- random plans ---- */

static int power (struct rng *r, int most)
{
    return 1 << rng_below (r, most + 1);
}

static void draw_degrees (struct rng *r, const struct workload_model *m,
                          struct workload_config *c)
{
    struct workload_degrees *d = &c->deg;

    *d = (struct workload_degrees){.tp = power (r, 3),
                                   .pp = power (r, 3),
                                   .dp = power (r, 3),
                                   .cp = power (r, rng_below (r, 2)),
                                   .ep = 1,
                                   .vpp = 1};
    d->etp = m->experts > 0 && rng_below (r, 2) ? 1 : d->tp;
    if (m->experts > 0)
        d->ep = power (r, 4);
    c->schedule = d->pp > 1 && rng_below (r, 2)
                      ? (enum workload_schedule) rng_below (r, SCHEDULES)
                      : SCHEDULE_1F1B;
    d->vpp = c->schedule == SCHEDULE_INTERLEAVED ? 2 + rng_below (r, 2)
                                                 : workload_default_vpp (c->schedule);
}

static void draw_recompute (struct rng *r, const struct workload_model *m,
                            struct workload_config *c, int least)
{
    c->recompute = (enum workload_recompute) rng_below (r, 3);
    c->recompute_layers =
        c->recompute == RECOMPUTE_FULL && rng_below (r, 2) ? 1 + rng_below (r, least) : 0;
    c->recompute_modules =
        c->recompute == RECOMPUTE_SELECTIVE && rng_below (r, 2)
            ? (unsigned) rng_below (r, 1 << WORKLOAD_MODULES) & workload_modules_of (m)
            : 0;
}

/* As even as can be, then a few layers from one stage to another. */
static void draw_layers (struct rng *r, const struct workload_plan *p, int *layers)
{
    int pp = p->config.deg.pp;

    workload_layers_even (p->model.layers, pp, layers);
    for (int moves = pp > 1 ? rng_below (r, 3) : 0; moves > 0; moves--) {
        int from = rng_below (r, pp);

        if (layers[from] > p->config.deg.vpp + 1) {
            layers[from]--;
            layers[rng_below (r, pp)]++;
        }
    }
}

/* Of some plans every chunk is given, too: layers move from one chunk of a stage to another. */
static void draw_chunks (struct rng *r, struct workload_plan *p, int *chunks)
{
    int pp = p->config.deg.pp, v = p->config.deg.vpp;

    p->layers_per_chunk = NULL;
    if (v == 1 || rng_below (r, 2))
        return;
    for (int i = 0; i < pp * v; i++)
        chunks[i] = workload_plan_chunk (p, i / v, i % v);
    for (int moves = 1 + rng_below (r, 4); moves > 0; moves--) {
        int stage = rng_below (r, pp), from = rng_below (r, v);

        if (chunks[stage * v + from] > 0) {
            chunks[stage * v + from]--;
            chunks[stage * v + rng_below (r, v)]++;
        }
    }
    p->layers_per_chunk = chunks;
}

static bool draw_plan (struct rng *r, struct workload_plan *p, int *layers, int *chunks)
{
    static const char *const models[] = {
        "llama-3-8b", "llama-2-13b",        "mixtral-8x7b", "qwen3-30b-a3b",
        "gpt3-6.7b",  "deepseek-v3",        "llama-3-70b",  "qwen2.5-7b",
        "mistral-7b", "nemotron-nano-9b-v2"};
    static const enum workload_precision precisions[] = {
        PREC_BF16, PREC_BF16, PREC_BF16, PREC_FP16, PREC_FP8, PREC_FP32, PREC_FP4};
    static const int bytes[] = {0, 0, 0, 0, 12, 10, 8, 6, 4};
    struct workload_config *c = &p->config;

    *p = (struct workload_plan){.layers_per_stage = layers};
    p->model = *workload_preset_find (models[rng_below (r, COUNT_OF (models))]);
    workload_model_predict (&p->model, rng_below (r, 4) ? 0 : 1 + rng_below (r, 2));
    *c = (struct workload_config){.micro_batch = power (r, 2), .zero = rng_below (r, 4)};
    draw_degrees (r, &p->model, c);
    if (rng_below (r, 4) == 0 && c->zero > 0)
        c->shard = power (r, 2);
    c->sequence_parallel = c->deg.tp > 1 && rng_below (r, 4);
    c->optimizer_bytes = bytes[rng_below (r, COUNT_OF (bytes))];
    c->offload = rng_below (r, 16)
                     ? OFFLOAD_NONE
                     : (enum workload_offload) rng_below (r, WORKLOAD_OFFLOADS);
    draw_recompute (r, &p->model, c, p->model.layers / c->deg.pp);
    p->job = (struct workload_job){
        .seq = 1024 * power (r, 3),
        .attention = (enum workload_attention) rng_below (r, 3),
        .tp_comm_overlap = (enum workload_choice) rng_below (r, 3),
        .precision = precisions[rng_below (r, COUNT_OF (precisions))]};
    p->job.global_batch = c->micro_batch * c->deg.dp * c->deg.pp * power (r, 3);
    if (workload_config_check (&p->model, &p->job, c, NULL) != ST_OK ||
        c->deg.pp * c->deg.vpp > p->model.layers)
        return false;
    draw_layers (r, p, layers);
    draw_chunks (r, p, chunks);
    return true;
}

/* Any profile, and a GPU type with blocks or racks or neither. */
static void draw_priced (struct rng *r, struct workload_profile *profile,
                         struct jobs_priced *by)
{
    static const char *const types[] = {"a100-sxm4-80g", "h100-sxm5-80g", "b200-192g",
                                        "gb200-192g"};
    int n = 0;

    while (workload_profile_shipped (n))
        n++;
    *profile = profile_of (workload_profile_shipped (rng_below (r, n)));
    if (rng_below (r, 4) == 0) {
        profile->drops_tokens = true;
        profile->time.expert_capacity = 1.25;
    }
    by->profile = profile;
    by->gpu = topology_gpu_type_builtin (types[rng_below (r, COUNT_OF (types))]);
}

/* ---- the frameworks ---- */

enum facts { DEEPSPEED_FACTS, TITAN_FACTS, BRIDGE_FACTS, MEGATRON_FACTS }; /* each more */

static const struct framework {
    const char *file;
    jobs_writer *write;
    bool has_model, has_seq, has_recompute, exact; /* the model, all of it */
    enum facts facts;
    const char *framework;
    int least; /* of PLANS: written */
} frameworks[] = {
    {"args", jobs_megatron_write, false, false, true, true, MEGATRON_FACTS,
     "megatron-core", 75},
    {"overrides.yaml", jobs_nemo_write, true, true, true, false, BRIDGE_FACTS,
     "megatron-bridge", 50},
    {"job.toml", jobs_torchtitan_write, true, true, true, true, TITAN_FACTS, "torchtitan",
     7},
    {"ds_config.json", jobs_deepspeed_write, false, false, false, true, DEEPSPEED_FACTS,
     "deepspeed", 5},
};

/* ---- the same? ---- */

#define SAME(A, B)                                                           \
    do {                                                                     \
        if ((A) != (B))                                                      \
            fail_msg ("%s: %s is %g, %s %g\n%s", what, #A, (double) (A), #B, \
                      (double) (B), written);                                \
    } while (0)

static unsigned modules_of (const struct workload_config *c)
{
    return c->recompute == RECOMPUTE_SELECTIVE && c->recompute_modules == 0
               ? 1u << MODULE_CORE_ATTN
               : c->recompute_modules;
}

static void same_config (const struct workload_plan *p, const struct calibrate_run *run,
                         const struct framework *f, const char *what, const char *written)
{
    const struct workload_config *c = &p->config, *o = &run->config;
    bool experts = p->model.experts > 0, alone = workload_dense_shards (c) == 1;
    int bytes = c->optimizer_bytes == 12 ? 0 : c->optimizer_bytes;

    SAME (c->deg.tp, o->deg.tp);
    SAME (c->deg.pp, o->deg.pp);
    SAME (c->deg.dp, o->deg.dp);
    SAME (c->deg.cp, o->deg.cp);
    SAME (c->deg.ep, o->deg.ep);
    SAME (c->deg.vpp, o->deg.vpp);
    if (experts)
        SAME (c->deg.etp, o->deg.etp);
    if (c->deg.pp > 1)
        SAME (c->schedule, o->schedule);
    SAME (c->micro_batch, o->micro_batch);
    if (!alone || strcmp (f->framework, "torchtitan") != 0)
        SAME (c->zero, o->zero);
    SAME (workload_shard_copies (c), workload_shard_copies (o));
    SAME (c->sequence_parallel, o->sequence_parallel);
    SAME (bytes, o->optimizer_bytes);
    SAME (c->offload, o->offload);
    SAME (p->job.global_batch, run->job.global_batch);
    SAME (p->job.seq, run->job.seq);
    SAME (p->job.precision, run->job.precision);
    SAME (p->job.lora, run->job.lora);
    if (f->has_recompute) {
        SAME (c->recompute, o->recompute);
        SAME (c->recompute_layers, o->recompute_layers);
        SAME (modules_of (c), modules_of (o));
    }
    for (int i = 0; i < c->deg.pp * c->deg.vpp && c->deg.vpp > 1; i++)
        SAME (workload_plan_chunk (p, i / c->deg.vpp, i % c->deg.vpp),
              run->chunks ? run->chunks[i]
                          : workload_layers_of_chunk (c, i / c->deg.vpp,
                                                      run->layers[i / c->deg.vpp],
                                                      i % c->deg.vpp));
    /* Other splits are a module's beside DeepSpeed's file. */
    for (int i = 0; i < c->deg.pp && c->deg.vpp == 1 &&
                    (f->framework[0] != 'd' || jobs_deepspeed_splits (p));
         i++)
        SAME (
            p->layers_per_stage[i],
            run->layers[(f->framework[0] == 'd' ? PARTITION_PARAMETERS : PARTITION_EVEN) *
                            c->deg.pp +
                        i]);
}

#define SAID_FACTS "megatron-core-composed" /* what a row says is put on */

static void same_experts (const struct workload_plan *p, const struct jobs_priced *by,
                          const struct workload_profile *said, const char *what,
                          const char *written)
{
    const struct workload_config *c = &p->config;
    bool blocks = costmodel_takes_blocks (p->job.precision, by->gpu),
         dropped = by->profile->drops_tokens,
         flex = by->profile->time.deduplicated_dispatch && !dropped;

    SAME (dropped, said->drops_tokens);
    if (dropped)
        SAME (by->profile->time.expert_capacity, said->time.expert_capacity);
    SAME (workload_exchanges_overlap (by->profile, c),
          workload_exchanges_overlap (said, c));
    if (c->deg.ep * c->deg.etp > 1)
        SAME (flex, said->time.deduplicated_dispatch);
    SAME (by->profile->fused_experts && blocks, said->fused_experts && blocks);
}

/* DeepSpeed's overlap, the type that gradients travel in, and how many are there at once. */
static void same_limits (const struct workload_plan *p, const struct jobs_priced *by,
                         const struct workload_profile *said, const char *what,
                         const char *written)
{
    const struct workload_profile *own = by->profile;
    const struct workload_config *c = &p->config;
    bool late = own->reduces_late && (c->deg.pp > 1 || c->zero == 0),
         overlap = own->time.dp_overlap > 0.0 && !late && !own->reduces_bare;

    SAME (overlap, !said->reduces_bare);
    SAME (workload_reduced_bytes (&p->job, c, own) > 2.0,
          workload_reduced_bytes (&p->job, c, said) > 2.0);
    if (c->zero == 3 && own->memory.live_params > 0.0) {
        SAME (own->memory.live_params, said->memory.live_params);
        SAME (own->memory.reduced_params, said->memory.reduced_params);
    }
    if ((c->zero == 1 || c->zero == 2) && own->memory.bucket_bytes > 0.0)
        CLOSE (own->memory.bucket_bytes, said->memory.bucket_bytes, 1e-6);
}

/* What a step is priced by, of what the framework has an option for. */
static void same_facts (const struct workload_plan *p, const struct jobs_priced *by,
                        const struct calibrate_run *run, const struct framework *f,
                        const char *what, const char *written)
{
    const struct workload_profile *own = by->profile, neutral = profile_of (SAID_FACTS),
                                  said = calibrate_profile_as_said (run, &neutral);
    const struct workload_config *c = &p->config;
    bool quantised = workload_quantised_bytes (p->job.precision) > 0,
         fused = workload_choose (run->job.fused_mlp, said.fused_mlp);

    if (f->facts == DEEPSPEED_FACTS)
        same_limits (p, by, &said, what, written);
    else if (f->facts != TITAN_FACTS)
        SAME (own->time.dp_overlap > 0.0, said.time.dp_overlap > 0.0);
    if (p->job.precision == PREC_BF16 || (quantised && f->facts != DEEPSPEED_FACTS))
        SAME (own->memory.gradient_bytes <= 2.0 &&
                  (f->facts != DEEPSPEED_FACTS || c->zero > 0),
              said.memory.gradient_bytes <= 2.0);
    if (f->facts == TITAN_FACTS)
        SAME (own->fused_mlp && own->fused_norm, fused);
    if (f->facts < BRIDGE_FACTS)
        return;
    SAME (own->fused_mlp, fused);
    SAME (workload_choose (p->job.tp_comm_overlap, own->time.tp_comm_overlap) &&
              c->sequence_parallel,
          said.time.tp_comm_overlap && c->sequence_parallel);
    SAME (own->fused_rotary, said.fused_rotary);
    SAME (own->fused_accumulation && c->zero < 2, said.fused_accumulation);
    SAME (p->job.attention, run->job.attention);
    SAME (costmodel_capture (&p->model, &p->job, c, own, by->gpu),
          costmodel_capture (&p->model, &p->job, c, &said, by->gpu));
    if (f->facts == MEGATRON_FACTS && quantised && c->zero > 0)
        SAME (own->memory.fp8_weight_bytes < 3.0, said.memory.fp8_weight_bytes < 3.0);
    if (p->model.experts > 0)
        same_experts (p, by, &said, what, written);
}

static void same_model (const struct workload_model *a, const struct workload_model *b,
                        const char *what, const char *written)
{
    SAME (a->layers, b->layers);
    SAME (a->hidden, b->hidden);
    SAME (a->heads, b->heads);
    SAME (a->kv_heads, b->kv_heads);
    SAME (a->ffn, b->ffn);
    SAME (a->vocab, b->vocab);
    SAME (a->tied, b->tied);
    SAME (a->gated_mlp, b->gated_mlp);
    SAME (a->norm, b->norm);
    SAME (a->experts, b->experts);
    SAME (a->top_k, b->top_k);
    SAME (a->expert_ffn, b->expert_ffn);
    SAME (a->shared_ffn, b->shared_ffn);
    SAME (a->dense_layers, b->dense_layers);
    SAME (a->kv_rank, b->kv_rank);
    SAME (a->mtp_layers, b->mtp_layers);
    CLOSE (workload_model_params (a), workload_model_params (b), 0.005);
}

/* ---- there and back ---- */

static void read_back (const struct workload_plan *p, const struct jobs_priced *by,
                       const struct framework *f, const char *path, const char *config,
                       const char *written)
{
    const char *files[] = {path, config};
    const struct jobs_given given = {.gpus = (int) workload_world (&p->config.deg),
                                     .gpu = by->gpu->name,
                                     .seq = f->has_seq ? 0 : p->job.seq};
    bool beside = !f->has_model || p->model.pattern[0];
    struct jobs jobs;
    struct notes notes = {0};
    struct error err = {""};
    struct calibrate_runs runs;
    struct text row = {0};
    char what[256];

    if (jobs_read (files, beside ? 2 : 1, &given, &jobs, &notes, &err) != ST_OK)
        fail_msg ("%s: %s\n%s", f->file, err.text, written);
    snprintf (what, sizeof what, "%s of %s", f->file, p->model.name);
    if (jobs.n_unknown > 0)
        fail_msg ("%s: %s is not known\n%s", what, jobs.unknown[0].key, written);
    assert_int_equal (jobs.n, 1);
    jobs_header_text (&row);
    ok (jobs_row_text (&jobs.job[0], &row, &err), &err);
    if (calibrate_runs_parse ("row", text_str (&row), row.len, &runs, &err) != ST_OK)
        fail_msg ("%s: %s\n%s", what, err.text, written);
    assert_string_equal (runs.run[0].framework, f->framework);
    same_config (p, &runs.run[0], f, what, written);
    same_facts (p, by, &runs.run[0], f, what, written);
    same_model (&p->model, f->exact || beside ? &jobs.job[0].model : &runs.run[0].model,
                what, written);
    calibrate_runs_release (&runs);
    text_free (&row);
    jobs_release (&jobs);
    notes_free (&notes);
}

/* TOML refuses a table that stands twice, YAML's readers take the last one alone: each line that
 * opens one, "[training]" or "model:", is there once. */
static void no_table_twice (const char *written)
{
    char line[128];

    for (const char *s = written; *s; s += strcspn (s, "\n"), s += *s == '\n') {
        int n = (int) strcspn (s, "\n");

        if (*s != '[' && (*s == ' ' || n == 0 || s[n - 1] != ':'))
            continue;
        snprintf (line, sizeof line, "\n%.*s\n", n, s);
        if (strstr (s + n, line))
            fail_msg ("%.*s stands twice:\n%s", n, s, written);
    }
}

static bool there_and_back (const struct workload_plan *p, const struct jobs_priced *by,
                            const struct framework *f)
{
    struct text out = {0}, beside = {0};
    struct error err = {""};
    enum status st = f->write (p, by, &out, &beside, &err);
    char path[FOLDER_PATH], config[FOLDER_PATH];

    if (st == ST_NOFIT) {
        if (!strstr (err.text, "; plan") || out.len > 0)
            fail_msg ("%s: \"%s\" says nothing that works, or it was written", f->file,
                      err.text);
    } else {
        json_t *doc = workload_model_to_json (&p->model);
        char *model = json_dumped (doc, 0);

        ok (st, &err);
        no_table_twice (text_str (&out));
        write_in_folder (f->file, text_str (&out), out.len);
        snprintf (path, sizeof path, "%s", in_folder (f->file));
        write_in_folder ("config.json", model, strlen (model));
        snprintf (config, sizeof config, "%s", in_folder ("config.json"));
        read_back (p, by, f, path, config, text_str (&out));
        free (model);
        json_decref (doc);
    }
    text_free (&out);
    text_free (&beside);
    return st == ST_OK;
}

/* Is it a configuration that the profile offers, in a precision that the file can say? */
static bool is_deepspeeds (const struct workload_plan *p,
                           const struct workload_profile *deepspeed)
{
    return workload_quantised_bytes (p->job.precision) <= 0.0 &&
           workload_config_offered (&p->model, &p->config, deepspeed, NULL) == ST_OK;
}

TEST (reads_what_was_written)
{
    const struct workload_profile deepspeed = profile_of ("deepspeed");
    int offered = 0;
    struct rng r = seeded (26);
    int written[sizeof frameworks / sizeof *frameworks] = {0}, layers[64], chunks[192];

    for (int n = 0; n < PLANS;) {
        struct workload_profile profile;
        struct jobs_priced by;
        struct workload_plan p;

        if (!draw_plan (&r, &p, layers, chunks))
            continue;
        n++;
        draw_priced (&r, &profile, &by);
        for (int i = 0; i < COUNT_OF (frameworks); i++) {
            bool was = there_and_back (&p, &by, &frameworks[i]);

            written[i] += was;
            if (frameworks[i].facts == DEEPSPEED_FACTS && is_deepspeeds (&p, &deepspeed))
                offered += was ? 1 : 1000; /* what a search takes can be written */
        }
    }
    assert_true (offered > 0 && offered < PLANS);
    for (int i = 0; i < COUNT_OF (frameworks); i++) {
        print_message ("# %s: %d of %d\n", frameworks[i].file, written[i], PLANS);
        assert_true (written[i] >= frameworks[i].least && written[i] < PLANS);
    }
}
