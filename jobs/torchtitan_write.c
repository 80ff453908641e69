/* A plan's configuration as TorchTitan's TOML.  Names: torchtitan/config/job_config.py; the
 * stages by torchtitan/distributed/pipeline_parallel.py. */
#include "jobs/jobs_private.h"

#include <stdarg.h>
#include <string.h>

/* ---- what TorchTitan cannot be told ---- */

static enum status check_schedule (const struct workload_plan *p, struct error *err)
{
    const struct workload_config *c = &p->config;
    int micro = workload_microbatches (&p->job, c), rounds = micro / c->deg.pp;

    if (c->deg.pp == 1)
        return ST_OK;
    CANNOT (!jobs_titan_schedule (c->schedule),
            "TorchTitan has no %s schedule of %d chunks a stage; plan with --schedule "
            "1f1b",
            workload_schedule_name (c->schedule), c->deg.vpp);
    CANNOT (c->schedule == SCHEDULE_INTERLEAVED && rounds > 1 && micro % rounds != 0,
            "PyTorch's interleaved schedule takes %d micro-batches in %d equal rounds; "
            "plan with --schedule 1f1b",
            micro, rounds);
    return ST_OK;
}

static enum status check_sharding (const struct workload_config *c, struct error *err)
{
    const struct workload_degrees *d = &c->deg;

    CANNOT (c->zero == 1 && workload_dense_shards (c) > 1,
            "TorchTitan shards gradients where it shards optimizer states (zero 1); "
            "plan with --zero 2 or --zero 3");
    CANNOT (c->zero == 0 && workload_dense_shards (c) > 1 && d->tp * d->pp * d->cp > 1,
            "TorchTitan replicates weights (zero 0) under data parallelism alone; plan "
            "with --zero 3");
    return ST_OK;
}

static enum status check_experts (const struct workload_plan *p, struct error *err)
{
    const struct workload_degrees *d = &p->config.deg;
    int whole = d->cp * (d->etp == 1 ? d->tp : 1);

    if (p->model.experts == 0 || (d->ep == 1 && d->etp == d->tp))
        return ST_OK;
    CANNOT (d->etp != 1 && d->etp != d->tp,
            "TorchTitan splits an expert over 1 or %d GPUs; plan with --etp 1", d->tp);
    CANNOT (d->ep % whole != 0,
            "TorchTitan's expert groups hold whole context%s groups; plan with --ep %d",
            d->etp == 1 && d->tp > 1 ? " and tensor" : "", whole);
    return ST_OK;
}

static enum status check (const struct workload_plan *p, struct error *err)
{
    const struct workload_config *c = &p->config;
    enum workload_precision precision = p->job.precision;

    TRY (check_schedule (p, err));
    TRY (check_sharding (c, err));
    TRY (check_experts (p, err));
    CANNOT (c->recompute_layers != 0 || c->recompute_modules != 0,
            "TorchTitan recomputes all layers or a selection of its own; plan with "
            "--recompute full or selective");
    CANNOT (p->model.mtp_layers > 0,
            "TorchTitan has no multi-token prediction; plan without --mtp-num-layers");
    CANNOT (precision != PREC_BF16 && precision != PREC_FP32 && precision != PREC_FP8,
            "TorchTitan has no %s; plan with --precision bf16",
            workload_precision_name (precision));
    CANNOT (c->deg.tp > 1 && !c->sequence_parallel,
            "TorchTitan's tensor parallelism has sequence parallelism; plan with "
            "--sequence-parallel on");
    CANNOT (c->offload != OFFLOAD_NONE && c->offload != OFFLOAD_ALL,
            "TorchTitan offloads all states or none; plan with --offload all");
    CANNOT (c->optimizer_bytes != 0,
            "TorchTitan's optimizer keeps fp32 states alone; plan without "
            "--optimizer-bytes");
    return ST_OK;
}

/* ---- one setting ---- */

struct writing {
    struct text *out;
    char table[JOBS_KEY_MAX]; /* the one that is open */
};

/* Entries of one table are said one after another: TOML has no table twice.
 * @param value  as TOML has it; strings in quotes */
static void say (struct writing *w, const char *fact, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

static void say (struct writing *w, const char *fact, const char *format, ...)
{
    char key[JOBS_KEY_MAX], value[160], *dot;
    va_list args;

    jobs_key_of (&jobs_torchtitan, fact, key);
    dot = strchr (key, '.');
    *dot = '\0';
    va_start (args, format);
    vsnprintf (value, sizeof value, format, args);
    va_end (args);
    if (strcmp (key, w->table) != 0)
        text_add (w->out, "%s[%s]\n", *w->table ? "\n" : "", key);
    snprintf (w->table, sizeof w->table, "%s", key);
    text_add (w->out, "%s = %s\n", dot + 1, value);
}

/* ---- the model ---- */

static bool same_shape (const struct workload_model *a, const struct workload_model *b)
{
    json_t *one = workload_model_to_json (a), *other = workload_model_to_json (b);
    bool same;

    /* Not the shape: the name, and what it was trained on. */
    for (const char *const *k = (const char *const[]){"name", "_name_or_path",
                                                      "max_position_embeddings", NULL};
         *k; k++) {
        json_object_del (one, *k);
        json_object_del (other, *k);
    }
    same = one && json_equal (one, other);
    json_decref (one);
    json_decref (other);
    return same;
}

/* Is it built as Llama is: a flavor of TorchTitan's llama3 with other numbers? */
static bool like_llama (const struct workload_model *m)
{
    return !m->pattern[0] && m->decoder_layers == 0 && m->experts == 0 &&
           m->kv_rank == 0 && m->gated_mlp && m->norm == NORM_RMS && m->positions == 0 &&
           !m->qkv_bias && !m->out_bias && !m->mlp_bias && !m->qk_norm &&
           !m->wide_qk_norm && !m->tied && !m->embedding_norm && m->norms == 2 &&
           m->head_dim * m->heads == m->hidden;
}

/* A name that no plan's author chose: of the preset of this shape, or its sizes. */
static void name_flavor (const struct workload_model *m, char name[64])
{
    int n;
    const struct workload_model *all = workload_presets (&n);

    snprintf (name, 64, "%dx%d", m->layers, m->hidden);
    for (int i = 0; i < n; i++)
        if (same_shape (&all[i], m))
            snprintf (name, 64, "%.60s", all[i].name);
}

static enum status write_model (const struct workload_model *m, struct writing *w,
                                struct text *beside, struct error *err)
{
    char name[64];

    for (const struct jobs_flavor *f = jobs_titan_flavors; f->preset; f++)
        if (same_shape (workload_preset_find (f->preset), m)) {
            say (w, "titan-model", "\"%s\"", f->model);
            say (w, "titan-flavor", "\"%s\"", f->flavor);
            return ST_OK;
        }
    CANNOT (!like_llama (m),
            "TorchTitan has no flavor of this model, nor one that is built like it; "
            "plan one of its models (llama-3-8b, qwen3-8b, deepseek-v3), or take --to "
            "nemo");
    name_flavor (m, name);
    say (w, "titan-model", "\"llama3\"");
    say (w, "titan-flavor", "\"%s\"", name);
    text_add (
        beside,
        "TorchTitan has no flavor of this shape.  Add one named \"%s\" to its llama3 "
        "models\n(torchtitan/models/llama3/__init__.py):\n\n"
        "    width %d, layers %d, heads %d, key and value heads %d, MLP %d, "
        "vocabulary %d\n",
        name, m->hidden, m->layers, m->heads, m->kv_heads, m->ffn, m->vocab);
    return ST_OK;
}

/* ---- the stages ---- */

/* Layers of model part i, in the order of the layers; a V goes back through the stages. */
static int part_layers (const struct workload_plan *p, int i)
{
    int pp = p->config.deg.pp, round = i / pp, stage = i % pp;

    if (round % 2 == 1 && workload_schedule_is_v (p->config.schedule))
        stage = pp - 1 - stage;
    return workload_plan_chunk (p, stage, round);
}

/* Every part by its modules' names. */
static void write_parts (const struct workload_plan *p, struct writing *w)
{
    int parts = p->config.deg.pp * p->config.deg.vpp, layer = 0;
    char key[JOBS_KEY_MAX];

    jobs_key_of (&jobs_torchtitan, "titan-parts", key);
    text_add (w->out, "%s = [\n", strchr (key, '.') + 1);
    for (int i = 0; i < parts; i++) {
        const char *before = "";

        text_add (w->out, "    [");
        if (i == 0) {
            text_add (w->out, "\"tok_embeddings\"");
            before = ", ";
        }
        for (int k = part_layers (p, i); k > 0; k--, before = ", ")
            text_add (w->out, "%s\"layers.%d\"", before, layer++);
        text_add (w->out, "%s],\n", i == parts - 1 ? ", \"norm\", \"output\"" : "");
    }
    text_add (w->out, "]\n");
}

/* Equal parts, but for fewer layers in the first and the last one, are a rule; others are
 * spelled out. */
static void write_stages (const struct workload_plan *p, struct writing *w)
{
    int parts = p->config.deg.pp * p->config.deg.vpp, most = part_layers (p, parts > 2),
        first = most - part_layers (p, 0), last = most - part_layers (p, parts - 1);
    bool rule = first >= 0 && last >= 0 && first < most && last < most;

    for (int i = 1; i < parts - 1; i++)
        rule = rule && part_layers (p, i) == most;
    if (!rule) {
        write_parts (p, w);
        return;
    }
    say (w, "titan-part-layers", "%d", most);
    say (w, "titan-first-less", "%d", first);
    say (w, "titan-last-less", "%d", last);
}

/* ---- the file ---- */

/* Kernels that PyTorch's compiler fuses, as asynchronous tensor parallelism has to be. */
static bool is_compiled (const struct workload_profile *by)
{
    return by->fused_norm && by->fused_mlp;
}

static void write_parallelism (const struct workload_plan *p,
                               const struct workload_profile *by, struct writing *w)
{
    const struct workload_config *c = &p->config;
    const struct workload_degrees *d = &c->deg;
    int replicas = c->zero == 0 ? d->dp : workload_shard_copies (c);
    bool pieces = workload_choose (p->job.tp_comm_overlap, by->time.tp_comm_overlap);

    say (w, "titan-replicate", "%d", replicas);
    say (w, "titan-shard", "%d", d->dp / replicas);
    say (w, "titan-reshard", "\"%s\"", c->zero == 2 ? "never" : "default");
    say (w, "tp", "%d", d->tp);
    say (w, "tp-comm-overlap",
         pieces && is_compiled (by) && d->tp > 1 ? "true" : "false");
    say (w, "cp", "%d", d->cp);
    if (d->ep > 1) {
        say (w, "ep", "%d", d->ep);
        say (w, "expert-tensor-parallel-size", "%d", d->etp);
    }
    say (w, "pp", "%d", d->pp);
    if (d->pp == 1)
        return;
    say (w, "titan-schedule", "\"%s\"", jobs_titan_schedule (c->schedule));
    say (w, "titan-micro-batch", "%d", c->micro_batch);
    write_stages (p, w);
}

static void write_training (const struct workload_plan *p,
                            const struct workload_profile *by, struct writing *w)
{
    const struct workload_config *c = &p->config;
    bool pipeline = c->deg.pp > 1; /* which cuts a rank's batch */

    say (w, "micro_batch", "%d",
         pipeline ? p->job.global_batch / c->deg.dp : c->micro_batch);
    say (w, "titan-batch", "%d", p->job.global_batch);
    say (w, "seq", "%d", p->job.seq);
    say (w, "training.mixed_precision_param", "\"%s\"",
         p->job.precision == PREC_FP32 ? "float32" : "bfloat16");
    say (w, "titan-reduce", "\"%s\"",
         by->memory.gradient_bytes <= 2.0 ? "bfloat16" : "float32");
    if (c->offload == OFFLOAD_ALL)
        say (w, "titan-offload", "true");
}

enum status jobs_torchtitan_write (const struct workload_plan *p,
                                   const struct jobs_priced *by, struct text *out,
                                   struct text *beside, struct error *err)
{
    struct writing w = {.out = out};
    enum workload_recompute recompute = p->config.recompute;

    TRY (check (p, err));
    TRY (write_model (&p->model, &w, beside, err));
    if (p->job.precision == PREC_FP8)
        say (&w, "titan-converters", "[\"quantize.linear.float8\"]");
    write_training (p, by->profile, &w);
    write_parallelism (p, by->profile, &w);
    say (&w, "activation_checkpoint.mode", "\"%s\"",
         recompute == RECOMPUTE_FULL        ? "full"
         : recompute == RECOMPUTE_SELECTIVE ? "selective"
                                            : "none");
    if (recompute == RECOMPUTE_SELECTIVE)
        say (&w, "activation_checkpoint.selective_ac_option", "\"op\"");
    say (&w, "titan-compile", is_compiled (by->profile) ? "true" : "false");
    return ST_OK;
}
