/* Does a configuration fit the model and the job?  Its ranks' coordinates, and its form in JSON. */
#include "workload/workload.h"

#include "base/json.h"
#include "workload/workload_private.h"

#define TOKENS_MAX (1 << 30)

/* A reason and ST_INVALID where something is so; like TRY it may leave the function. */
#define REFUSE(IF, ...)                                    \
    do {                                                   \
        if (IF)                                            \
            return err_set (err, ST_INVALID, __VA_ARGS__); \
    } while (0)

/* "(1, 2, 4 would)": the divisors of n, for a message. */
static void list_divisors (long long n, char *buf, size_t size)
{
    size_t used = 0;
    int shown = 0;
    long long root = 1;

    while ((root + 1) * (root + 1) <= n)
        root++;
    buf[0] = '\0';
    /* Those up to the root, then their partners. */
    for (long long k = 1; k <= 2 * root && shown < 16 && used + 24 < size; k++) {
        long long d = k <= root ? k : 2 * root + 1 - k;

        if (n % d != 0 || (k > root && d * d == n))
            continue;
        used += (size_t) snprintf (buf + used, size - used, "%s%lld", shown ? ", " : "(",
                                   k <= root ? d : n / d);
        shown++;
    }
    snprintf (buf + used, size - used, "%s would)", shown == 16 ? ", ..." : "");
}

static enum status divides (const char *what, long long d, long long n, const char *of,
                            struct error *err)
{
    char list[400];

    if (d >= 1 && n % d == 0)
        return ST_OK;
    if (!err)
        return ST_INVALID;
    list_divisors (n, list, sizeof list);
    return err_set (err, ST_INVALID, "%s %lld does not divide %lld %s %s", what, d, n, of,
                    list);
}

enum status workload_job_check (const struct workload_model *m,
                                const struct workload_job *j, struct error *err)
{
    REFUSE (j->seq < 1 || j->seq > TOKENS_MAX, "seq: expected 1 to %d tokens, found %d",
            TOKENS_MAX, j->seq);
    REFUSE (j->global_batch < 1 || j->global_batch > TOKENS_MAX,
            "global batch: expected 1 to %d sequences, found %d", TOKENS_MAX,
            j->global_batch);
    REFUSE (m->positions > 0 && j->seq > m->positions,
            "seq: %s has learned positions for %d tokens, found seq %d", m->name,
            m->positions, j->seq);
    REFUSE (workload_has_parts (m, PART_LINEAR) && (j->lora || j->wta_crs > 0),
            "%s: not modelled for %s, which has state-space, linear attention or "
            "convolution mixers",
            j->lora ? "LoRA" : "WTA-CRS", m->name);
    return ST_OK;
}

/* Tensor parallelism splits a linear mixer's heads and groups, of which Megatron wants one or more
 * whole on each rank (megatron/core/ssm/mamba_mixer.py). */
static enum status check_mixer (const struct workload_model *m,
                                const struct workload_config *c, struct error *err)
{
    static const char *const groups[] = {
        [LINEAR_SSM] = "groups of the state-space layers",
        [LINEAR_DELTA] = "key heads of the linear attention"};

    if (!workload_has_parts (m, PART_LINEAR))
        return ST_OK;
    REFUSE (c->deg.cp > 1,
            "cp %d: context parallelism is not modelled for layers with state-space, "
            "linear attention or convolution mixers",
            c->deg.cp);
    if (m->linear == LINEAR_SSM || m->linear == LINEAR_DELTA)
        TRY (divides ("tp", c->deg.tp, m->lin_groups, groups[m->linear], err));
    return divides ("tp", c->deg.tp, m->lin_heads,
                    m->linear == LINEAR_CONV ? "channels of the convolution"
                                             : "heads of the linear mixer",
                    err);
}

/* Tensor parallelism splits heads, key/value heads and the MLP's inside. */
static enum status check_tp (const struct workload_model *m,
                             const struct workload_config *c, struct error *err)
{
    int tp = c->deg.tp;

    TRY (check_mixer (m, c, err));
    if (!workload_has_parts (m, PART_ATTENTION))
        return divides ("tp", tp, m->ffn, "columns of the MLP", err);
    TRY (divides ("tp", tp, m->heads, "attention heads", err));
    if (tp < m->kv_heads)
        TRY (divides ("tp", tp, m->kv_heads, "key/value heads", err));
    REFUSE (tp > m->kv_heads && tp % m->kv_heads != 0,
            "tp %d is not a multiple of %d key/value heads", tp, m->kv_heads);
    return divides ("tp", tp, m->ffn, "columns of the MLP", err);
}

/* Context parallelism deals every rank two chunks, one from each end of the sequence, so
 * that causal attention is balanced; sequence parallelism splits a rank's tokens again. */
static enum status check_seq (const struct workload_job *j,
                              const struct workload_config *c, struct error *err)
{
    long long parts = c->deg.cp > 1 ? 2LL * c->deg.cp : 1;

    if (c->sequence_parallel)
        parts *= c->deg.tp;
    REFUSE (j->seq % parts != 0,
            "seq %d cannot be split into %lld equal parts (cp %d, tp %d, sequence "
            "parallelism %s)",
            j->seq, parts, c->deg.cp, c->deg.tp, c->sequence_parallel ? "on" : "off");
    return ST_OK;
}

/* Expert parallelism deals out experts; expert tensor parallelism splits each. */
static enum status check_experts (const struct workload_model *m,
                                  const struct workload_config *c, struct error *err)
{
    const struct workload_degrees *d = &c->deg;
    long long ranks = (long long) d->tp * d->cp * d->dp;

    if (m->experts == 0) {
        REFUSE (d->ep > 1 || d->etp != d->tp, "ep %d, etp %d: %s has no experts", d->ep,
                d->etp, m->name);
        return ST_OK;
    }
    TRY (divides ("ep", d->ep, m->experts, "experts", err));
    TRY (divides ("etp", d->etp, m->expert_ffn, "columns of an expert", err));
    REFUSE (d->etp > d->tp, "etp %d is above tp %d", d->etp, d->tp);
    if (d->etp == d->tp)
        TRY (divides ("ep", d->ep, (long long) d->dp * d->cp, "ranks of dp x cp", err));
    REFUSE (ranks % ((long long) d->etp * d->ep) != 0,
            "etp %d x ep %d does not divide tp x cp x dp = %lld", d->etp, d->ep, ranks);
    return ST_OK;
}

/* Interleaving needs as many rounds as stages; V shapes have two chunks. */
static enum status check_chunks (const struct workload_model *m,
                                 const struct workload_job *j,
                                 const struct workload_config *c, struct error *err)
{
    const struct workload_degrees *d = &c->deg;
    const char *name = workload_schedule_name (c->schedule);
    int micro = workload_microbatches (j, c);

    REFUSE (c->schedule != SCHEDULE_1F1B && c->schedule != SCHEDULE_GPIPE &&
                (long long) micro * d->vpp > WORKLOAD_CHUNK_RUNS_MAX,
            "%d micro-batches x %d chunks: the %s schedule can be priced up to %d in "
            "all",
            micro, d->vpp, name, WORKLOAD_CHUNK_RUNS_MAX);
    if (workload_default_vpp (c->schedule) == 1) {
        REFUSE (d->vpp != 1, "vpp %d: the %s schedule has one chunk a stage", d->vpp,
                name);
        return ST_OK;
    }
    REFUSE (d->pp == 1, "schedule %s needs a pipeline, pp is 1", name);
    REFUSE (workload_schedule_is_v (c->schedule) && d->vpp != 2,
            "vpp %d: the %s schedule has two chunks a stage", d->vpp, name);
    REFUSE (d->vpp < 2, "vpp %d: the interleaved schedule needs 2 or more", d->vpp);
    /* Interleaved, the last chunk of some stages may be empty. */
    REFUSE ((long long) d->pp * d->vpp >=
                m->layers + (c->schedule == SCHEDULE_INTERLEAVED ? d->pp : 1LL),
            "pp %d x vpp %d: %s has %d layers", d->pp, d->vpp, m->name, m->layers);
    REFUSE (workload_schedule_rules (c->schedule)->whole_groups && micro % d->pp != 0,
            "the %s schedule needs a multiple of pp %d micro-batches, found %d", name,
            d->pp, micro);
    REFUSE (micro < workload_schedule_rules (c->schedule)->rounds * d->pp,
            "the %s schedule needs %d micro-batches for each of pp %d stages, found %d",
            name, workload_schedule_rules (c->schedule)->rounds, d->pp, micro);
    return ST_OK;
}

int workload_layers_unit (const struct workload_config *c,
                          const struct workload_profile *p)
{
    bool uneven =
        p->uneven_chunks &&
        (c->schedule == SCHEDULE_INTERLEAVED || workload_schedule_is_v (c->schedule)) &&
        (c->recompute != RECOMPUTE_FULL || c->recompute_layers == 0);

    return uneven ? 1 : c->deg.vpp;
}

unsigned workload_modules_of (const struct workload_model *m)
{
    bool experts = false, dense = false;
    unsigned all = 1u << MODULE_LAYERNORM;

    for (int i = 0; i < m->layers && !m->pattern[0]; i++) {
        experts = experts || workload_is_expert_layer (m, i);
        dense = dense || !workload_is_expert_layer (m, i);
    }
    if (m->pattern[0]) {
        experts = workload_has_parts (m, PART_EXPERTS);
        dense = workload_has_parts (m, PART_MLP);
    }
    all |= workload_has_parts (m, PART_ATTENTION) ? 1u << MODULE_CORE_ATTN : 0;
    all |= dense ? 1u << MODULE_MLP : 0;
    all |= experts ? 1u << MODULE_MOE_ACT | 1u << MODULE_MOE : 0;
    all |= experts && m->shared_ffn > 0 ? 1u << MODULE_SHARED_EXPERTS : 0;
    all |= m->kv_rank > 0 ? 1u << MODULE_MLA_UP_PROJ : 0;
    return all;
}

/* The modules of a set as text. */
static const char *modules_text (unsigned modules, char buf[WORKLOAD_RECOMPUTE_TEXT])
{
    struct workload_config c = {.recompute = RECOMPUTE_SELECTIVE,
                                .recompute_modules = modules};

    return modules ? workload_recompute_text (&c, buf) : "none";
}

/* Modules are those of the model, and optimizer states can be chosen where there is a 16-bit
 * weight beside them. */
static enum status check_memory_options (const struct workload_model *m,
                                         const struct workload_job *j,
                                         const struct workload_config *c,
                                         struct error *err)
{
    unsigned none =
        c->recompute_modules ? c->recompute_modules & ~workload_modules_of (m) : 0;
    char text[WORKLOAD_RECOMPUTE_TEXT];

    REFUSE (none, "recompute %s: %s has no such part", modules_text (none, text),
            m->name);
    REFUSE (c->recompute_modules && j->wta_crs > 0,
            "recompute %s: WTA-CRS keeps a part of the same inputs",
            modules_text (c->recompute_modules, text));
    REFUSE (c->optimizer_bytes < 0 || c->optimizer_bytes > WORKLOAD_OPTIMIZER_BYTES_MAX,
            "optimizer bytes: expected 1 to %d, found %d", WORKLOAD_OPTIMIZER_BYTES_MAX,
            c->optimizer_bytes);
    REFUSE (c->optimizer_bytes > 0 && j->precision != PREC_BF16 &&
                workload_quantised_bytes (j->precision) == 0,
            "optimizer bytes %d: they can be chosen in bf16, fp8 and fp4, not in %s",
            c->optimizer_bytes, workload_precision_name (j->precision));
    return ST_OK;
}

/* A group that shards is a run of whole replicas, and its experts' ranks are as many in each. */
static enum status check_shard (const struct workload_config *c, struct error *err)
{
    const struct workload_degrees *d = &c->deg;

    if (c->shard == 0)
        return ST_OK;
    TRY (divides ("shard", c->shard, d->dp, "data-parallel ranks", err));
    REFUSE (c->zero == 0 && c->shard < d->dp, "shard %d: zero 0 shards nothing",
            c->shard);
    REFUSE (c->shard == 1 && d->cp == 1 && d->dp > 1,
            "shard 1: one rank keeps all, which is zero 0, found zero %d", c->zero);
    REFUSE ((long long) d->tp * d->cp * c->shard % ((long long) d->etp * d->ep) != 0,
            "shard %d: etp %d x ep %d does not divide tp x cp x shard = %lld", c->shard,
            d->etp, d->ep, (long long) d->tp * d->cp * c->shard);
    return ST_OK;
}

/* What the profile's framework can recompute and keep. */
static enum status memory_options_offered (const struct workload_config *c,
                                           const struct workload_profile *p,
                                           struct error *err)
{
    unsigned other = c->recompute_modules & ~p->recompute_modules;
    char text[WORKLOAD_RECOMPUTE_TEXT], offered[WORKLOAD_RECOMPUTE_TEXT];
    struct text bytes = {0};

    REFUSE (other, "recompute %s: profile %s does not offer it by itself (modules: %s)",
            modules_text (other, text), p->name,
            modules_text (p->recompute_modules, offered));
    if (c->optimizer_bytes == 0 || c->optimizer_bytes == p->memory.optimizer_bytes)
        return ST_OK;
    if (p->optimizer_choices >> c->optimizer_bytes & 1) {
        REFUSE (
            c->zero == 0,
            "optimizer bytes %d need zero 1 or more: only sharded states have a choice "
            "of precision",
            c->optimizer_bytes);
        return ST_OK;
    }
    for (int i = 1; i <= WORKLOAD_OPTIMIZER_BYTES_MAX && err; i++)
        if (p->optimizer_choices >> i & 1 || i == p->memory.optimizer_bytes)
            text_add (&bytes, "%s%d", text_str (&bytes)[0] ? ", " : "", i);
    err_set (err, ST_INVALID, "optimizer bytes %d: profile %s offers %s",
             c->optimizer_bytes, p->name, text_str (&bytes));
    text_free (&bytes);
    return ST_INVALID;
}

/* What the framework keeps in the host's memory. */
static enum status offload_offered (const struct workload_config *c,
                                    const struct workload_profile *p, struct error *err)
{
    if (c->offload == OFFLOAD_NONE)
        return ST_OK;
    REFUSE (!(p->offloads >> c->offload & 1), "offload %s: profile %s does not have it",
            workload_offload_name (c->offload), p->name);
    REFUSE (c->offload == OFFLOAD_OPTIMIZER && c->zero == 0,
            "offload optimizer needs zero 1 or more: only sharded states go to the host");
    /* Megatron-Core's optimizer on the host has fp32 moments and master weights. */
    REFUSE (c->offload == OFFLOAD_OPTIMIZER && c->optimizer_bytes > 0 &&
                c->optimizer_bytes != p->memory.optimizer_bytes,
            "offload optimizer: on the host profile %s keeps %g bytes a parameter, not "
            "optimizer bytes %d",
            p->name, p->memory.optimizer_bytes, c->optimizer_bytes);
    REFUSE (c->offload == OFFLOAD_ALL && c->zero != 3,
            "offload all: weights leave the GPU under zero 3 alone, found zero %d",
            c->zero);
    REFUSE (c->offload == OFFLOAD_CHECKPOINTS && c->recompute != RECOMPUTE_FULL,
            "offload checkpoints: there are none without recompute full");
    return ST_OK;
}

/* What the profile's framework can split. */
static enum status parallelism_offered (const struct workload_config *c,
                                        const struct workload_profile *p,
                                        struct error *err)
{
    const struct workload_degrees *d = &c->deg;
    const struct {
        enum workload_parallel over;
        int degree; /* 1: it is not */
        const char *what;
    } split[] = {{PARALLEL_TP, d->tp, "tensor parallelism"},
                 {PARALLEL_PP, d->pp, "pipeline"},
                 {PARALLEL_CP, d->cp, "context parallelism"},
                 {PARALLEL_EP, d->ep, "expert parallelism"}};

    for (size_t i = 0; i < sizeof split / sizeof *split; i++)
        REFUSE (split[i].degree > 1 && !(p->parallelism >> split[i].over & 1),
                "%s %d: profile %s has no %s", workload_parallel_names[split[i].over],
                split[i].degree, p->name, split[i].what);
    REFUSE (c->sequence_parallel && d->tp > 1 && !(p->parallelism >> PARALLEL_SP & 1),
            "sequence parallelism on: profile %s does not have it", p->name);
    return ST_OK;
}

enum status workload_heads_exchanged (const struct workload_model *m,
                                      const struct workload_degrees *d, struct error *err)
{
    int kv = m->kv_heads;

    if (d->cp == 1)
        return ST_OK;
    REFUSE (m->kv_rank > 0,
            "cp %d: exchanged heads of queries, keys and values are of one width, "
            "those of %s's latent attention are not",
            d->cp, m->name);
    TRY (divides ("cp", d->cp, m->heads, "attention heads", err));
    REFUSE (kv % d->cp != 0 && d->cp % kv != 0,
            "cp %d neither divides %d key/value heads nor is a multiple of them", d->cp,
            kv);
    return ST_OK;
}

/* Ulysses is beside data parallelism alone: Megatron-DeepSpeed, parallel_state.py, "does not work
 * with tensor parallel or pipeline parallel". */
static enum status exchange_offered (const struct workload_model *m,
                                     const struct workload_config *c,
                                     const struct workload_profile *p, struct error *err)
{
    const struct workload_degrees *d = &c->deg;

    if (!p->cp_all_to_all || d->cp == 1)
        return ST_OK;
    REFUSE (d->tp > 1 || d->pp > 1,
            "cp %d: profile %s has no context parallelism beside %s", d->cp, p->name,
            d->tp > 1 ? "tensor parallelism" : "a pipeline");
    return workload_heads_exchanged (m, d, err);
}

/* DeepSpeed's automatic tensor parallelism has no pipeline and splits experts like all else, its
 * automatic expert parallelism is beside replicas alone (module_inject/auto_ep_config.py). */
static enum status split_offered (const struct workload_model *m,
                                  const struct workload_config *c,
                                  const struct workload_profile *p, struct error *err)
{
    const struct workload_degrees *d = &c->deg;
    int splits = (d->tp > 1) + (d->pp > 1) + (d->cp > 1) + (d->ep > 1);

    if (!p->one_split)
        return ST_OK;
    REFUSE (splits > 1,
            "tp %d, pp %d, cp %d, ep %d: profile %s has one of them at a time", d->tp,
            d->pp, d->cp, d->ep, p->name);
    REFUSE (m->experts > 0 && d->etp != d->tp, "etp %d: profile %s has etp tp, %d",
            d->etp, p->name, d->tp);
    return ST_OK;
}

enum status workload_config_offered (const struct workload_model *m,
                                     const struct workload_config *c,
                                     const struct workload_profile *p, struct error *err)
{
    const struct {
        const char *name, *what;
        int degree, most; /* stage of ZeRO */
    } beside[] = {{"pp", "a pipeline", c->deg.pp, p->zero_with_pipeline},
                  {"tp", "tensor parallelism", c->deg.tp, p->zero_with_tensor},
                  {"ep", "expert parallelism", c->deg.ep, p->zero_with_experts}};

    TRY (memory_options_offered (c, p, err));
    TRY (offload_offered (c, p, err));
    TRY (parallelism_offered (c, p, err));
    TRY (exchange_offered (m, c, p, err));
    TRY (split_offered (m, c, p, err));
    REFUSE (!((p->schedules | p->schedules_on_request) >> c->schedule & 1),
            "profile %s does not support the %s schedule", p->name,
            workload_schedule_name (c->schedule));
    /* Where there is nothing to shard, no stage is as good as any. */
    REFUSE (!(p->zero_stages >> c->zero & 1) &&
                (c->zero > 0 || workload_dense_shards (c) > 1),
            "zero %d: profile %s has no such stage", c->zero, p->name);
    REFUSE (workload_shard_copies (c) > 1 && !(p->shard_stages >> c->zero & 1),
            "shard %d of dp %d: profile %s shards over all ranks under zero %d", c->shard,
            c->deg.dp, p->name, c->zero);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        REFUSE (beside[i].degree > 1 && c->zero > beside[i].most,
                "zero %d with %s %d: profile %s supports at most zero %d with %s",
                c->zero, beside[i].name, beside[i].degree, p->name, beside[i].most,
                beside[i].what);
    return ST_OK;
}

enum status workload_config_check (const struct workload_model *m,
                                   const struct workload_job *j,
                                   const struct workload_config *c, struct error *err)
{
    const struct workload_degrees *d = &c->deg;
    const struct {
        const char *name;
        int value;
    } degree[] = {{"tp", d->tp}, {"pp", d->pp},   {"dp", d->dp},  {"cp", d->cp},
                  {"ep", d->ep}, {"etp", d->etp}, {"vpp", d->vpp}};

    for (size_t i = 0; i < sizeof degree / sizeof *degree; i++)
        REFUSE (degree[i].value < 1 || degree[i].value > WORKLOAD_RANKS_MAX,
                "%s: expected 1 to %d, found %d", degree[i].name, WORKLOAD_RANKS_MAX,
                degree[i].value);
    REFUSE (workload_world (d) > WORKLOAD_RANKS_MAX,
            "tp %d x cp %d x dp %d x pp %d: expected at most %d ranks", d->tp, d->cp,
            d->dp, d->pp, WORKLOAD_RANKS_MAX);
    REFUSE (c->micro_batch < 1, "micro-batch: expected 1 or more, found %d",
            c->micro_batch);
    REFUSE (c->zero < 0 || c->zero > 3, "zero: expected 0 to 3, found %d", c->zero);
    REFUSE (d->pp > m->layers, "pp %d: %s has %d layers, and every stage needs one",
            d->pp, m->name, m->layers);
    REFUSE (c->recompute == RECOMPUTE_FULL && c->recompute_layers > m->layers,
            "recompute full:%d: %s has %d layers", c->recompute_layers, m->name,
            m->layers);

    TRY (check_memory_options (m, j, c, err));
    REFUSE (m->decoder_layers > 0 && (d->tp > 1 || d->pp > 1 || d->cp > 1),
            "tp %d, pp %d, cp %d: encoder-decoder models such as %s support data "
            "parallelism only",
            d->tp, d->pp, d->cp, m->name);

    TRY (check_tp (m, c, err));
    TRY (check_experts (m, c, err));
    TRY (check_seq (j, c, err));
    TRY (check_shard (c, err));
    TRY (divides ("dp", d->dp, j->global_batch, "sequences of the global batch", err));
    TRY (divides ("micro-batch", c->micro_batch, j->global_batch / d->dp,
                  "sequences of a data-parallel replica", err));
    return check_chunks (m, j, c, err);
}

struct workload_coords workload_coords_of (const struct workload_degrees *d, int rank)
{
    struct workload_group experts = workload_group_of (d, GROUP_EP);
    struct workload_coords k;

    k.ep = rank / experts.stride % experts.size;
    k.tp = rank % d->tp;
    rank /= d->tp;
    k.cp = rank % d->cp;
    rank /= d->cp;
    k.dp = rank % d->dp;
    k.pp = rank / d->dp;
    return k;
}

/* ---- as members of JSON documents ---- */

json_t *workload_degrees_to_json (const struct workload_degrees *d)
{
    return json_pack ("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "tp", d->tp, "pp", d->pp,
                      "dp", d->dp, "cp", d->cp, "ep", d->ep, "etp", d->etp, "vpp",
                      d->vpp);
}

json_t *workload_settings_to_json (const struct workload_config *c)
{
    char recompute[WORKLOAD_RECOMPUTE_TEXT];
    json_t *doc = json_pack ("{s:i, s:i, s:b, s:s, s:s}", "micro_batch", c->micro_batch,
                             "zero", c->zero, "sequence_parallel", c->sequence_parallel,
                             "recompute", workload_recompute_text (c, recompute),
                             "schedule", workload_schedule_name (c->schedule));

    if (doc && c->offload != OFFLOAD_NONE)
        json_object_set_new (doc, "offload",
                             json_string (workload_offload_name (c->offload)));
    if (doc && workload_shard_copies (c) > 1)
        json_object_set_new (doc, "shard", json_integer (c->shard));
    return doc;
}

enum status workload_degrees_from_json (const struct json_at *at,
                                        struct workload_degrees *d, struct error *err)
{
    const struct {
        const char *key;
        int *value;
        bool needed;
    } degree[] = {{"tp", &d->tp, true},   {"pp", &d->pp, true},  {"dp", &d->dp, true},
                  {"cp", &d->cp, false},  {"ep", &d->ep, false}, {"etp", &d->etp, false},
                  {"vpp", &d->vpp, false}};

    *d = (struct workload_degrees){.cp = 1, .ep = 1, .vpp = 1};
    TRY (json_want_object (at, err));
    for (size_t i = 0; i < sizeof degree / sizeof *degree; i++)
        if (degree[i].needed || json_has (at, degree[i].key))
            TRY (json_get_int (at, degree[i].key, 1, WORKLOAD_RANKS_MAX, degree[i].value,
                               err));
    if (!json_has (at, "etp"))
        d->etp = d->tp;
    return ST_OK;
}

enum status workload_settings_from_json (const struct json_at *at,
                                         struct workload_config *c, struct error *err)
{
    TRY (json_get_int (at, "micro_batch", 1, 1 << 30, &c->micro_batch, err));
    TRY (json_get_int (at, "zero", 0, 3, &c->zero, err));
    TRY (json_get_bool (at, "sequence_parallel", &c->sequence_parallel, err));
    TRY_WORD (at, "recompute", workload_recompute_parse, c,
              "none, selective, full, full:K or modules (layernorm,mlp)", err);
    c->shard = 0;
    TRY_MEMBER (json_get_int, at, "shard", 1, WORKLOAD_RANKS_MAX, &c->shard, err);
    TRY_MEMBER (json_get_int, at, "optimizer_bytes", 1, WORKLOAD_OPTIMIZER_BYTES_MAX,
                &c->optimizer_bytes, err);
    if (json_has (at, "offload"))
        TRY_WORD (at, "offload", workload_offload_parse, &c->offload,
                  "none, optimizer, all or checkpoints", err);
    TRY_WORD (at, "schedule", workload_schedule_parse, &c->schedule,
              "the name of a schedule", err);
    return ST_OK;
}
