/* Framework profiles: shipped ones are linked into the library from
 * workload/profiles/<name>.json, others are read from files of the same form. */
#include "workload/workload.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "workload/workload_private.h"

#define MEMORY(KEY, FIELD, UNIT, LEAST, MOST, ABSENT, SPREAD)                     \
    {                                                                             \
        KEY, offsetof (struct workload_profile, memory.FIELD), UNIT, LEAST, MOST, \
            ABSENT, SPREAD, true                                                  \
    }
#define TIME(KEY, FIELD, UNIT, LEAST, MOST, ABSENT, SPREAD)                             \
    {                                                                                   \
        KEY, offsetof (struct workload_profile, time.FIELD), UNIT, LEAST, MOST, ABSENT, \
            SPREAD, false                                                               \
    }

static const struct workload_constant constants[] = {
    MEMORY ("gradient_bytes", gradient_bytes, 1, 0, 16, NAN, 0),
    MEMORY ("optimizer_bytes", optimizer_bytes, 1, 0, 64, NAN, 0),
    MEMORY ("fp8_weight_bytes", fp8_weight_bytes, 1, 0, 16, 4, 0),
    MEMORY ("step_bytes", step_bytes, 1, 0, 64, 0, 0),
    MEMORY ("step_cached_bytes", step_cached_bytes, 1, 0, 64, 0, 0),
    MEMORY ("expert_token_bytes", expert_token_bytes, 1, 0, 64, 4, 0),
    MEMORY ("unsharded_bytes", unsharded_bytes, 1, 0, 64, 0, 0),
    MEMORY ("norm_bytes", norm_bytes, 1, 0, 256, NAN, 0),
    MEMORY ("unfused_norm_bytes", unfused_norm_bytes, 1, 0, 256, 16, .15),
    MEMORY ("gated_mlp_bytes", gated_mlp_bytes, 1, 0, 256, NAN, 0),
    MEMORY ("unfused_mlp_bytes", unfused_mlp_bytes, 1, 0, 256, 2, 0),
    MEMORY ("plain_mlp_bytes", plain_mlp_bytes, 1, 0, 256, NAN, 0),
    MEMORY ("attention_bytes", attention_bytes, 1, 0, 256, 0, .3),
    MEMORY ("dropout_bytes", dropout_bytes, 1, 0, 64, NAN, 0),
    MEMORY ("fused_score_bytes", fused_score_bytes, 1, 0, 256, 5, .15),
    MEMORY ("score_bytes", score_bytes, 1, 0, 256, 7, .15),
    MEMORY ("logit_bytes", logit_bytes, 1, 0, 256, NAN, .2),
    MEMORY ("gathered_logit_bytes", gathered_logit_bytes, 1, 0, 256, 16, .15),
    MEMORY ("gather_copy_bytes", gather_copy_bytes, 1, 0, 256, 6, .3),
    MEMORY ("recompute_workspace", recompute_workspace, 1, 0, 16, NAN, .5),
    MEMORY ("expert_imbalance", expert_imbalance, 1, 1, 64, 1, 0),
    MEMORY ("wta_input_bytes", wta_input_bytes, 1, 0, 64, 2, 0),
    MEMORY ("wta_dropped_bytes", wta_dropped_bytes, 1, 0, 256, 0, 0),
    MEMORY ("wta_lora_bytes", wta_lora_bytes, 1, 0, 64, 0, 0),
    MEMORY ("bucket_gb", bucket_bytes, UNITS_GB, 0, 64, 0, 0),
    MEMORY ("live_parameters", live_params, 1, 0, 1e12, 0, 0),
    MEMORY ("reduced_parameters", reduced_params, 1, 0, 1e12, 0, 0),
    MEMORY ("base_gb", base_bytes, UNITS_GB, 0, 64, NAN, .3),
    MEMORY ("group_gb", group_bytes, UNITS_GB, 0, 64, NAN, .3),
    MEMORY ("allocated_gb", allocated_bytes, UNITS_GB, 0, 64, 0.1, 0),
    MEMORY ("fragmentation", fragmentation, 1, 1, 4, NAN, .02),
    MEMORY ("residual", residual, 1, 0.001, 1, 0.05, .5),
    MEMORY ("states_residual", states_residual, 1, 0.001, 1, 0.03, 0),
    TIME ("gemm", gemm, 1, 1e-3, 4, 1, .1),
    TIME ("attention", attention, 1, 1e-3, 2, .6, .15),
    TIME ("attention_back", attention_back, 1, 1e-3, 1, .5, .15),
    TIME ("attention1", attention1, 1, 1e-3, 1, .3, .15),
    TIME ("score_traffic", score_traffic, 1, 0, 1e3, 74, .3),
    TIME ("fused_score_traffic", fused_score_traffic, 1, 0, 1e3, 20, .3),
    TIME ("wave_us", wave_s, UNITS_US, 0, 1e3, 0, 0),
    TIME ("memory_bandwidth", memory_bandwidth, 1, 1e-3, 1, .8, .15),
    TIME ("layer_launch_fwd_us", layer_launch_fwd_s, UNITS_US, 0, 1e6, 600, .2),
    TIME ("layer_launch_back_us", layer_launch_back_s, UNITS_US, 0, 1e6, 900, .2),
    TIME ("link", link, 1, 1e-3, 1.5, .85, .3),
    TIME ("link_out", link_out, 1, 1e-3, 1.5, .9, 1),
    TIME ("job_size_power", job_size_power, 1, 0, 2, 0, 0),
    TIME ("send_link", send_link, 1, 1e-3, 2, 1, .3),
    TIME ("collective_us", collective_s, UNITS_US, 0, 1e6, 45, .3),
    TIME ("dp_bucket_mb", dp_bucket_bytes, 1e6, 0, 1e6, 400, 0),
    TIME ("reduced_bytes", reduced_bytes, 1, 0, 4, 0, 0),
    TIME ("dp_overlap", dp_overlap, 1, 0, 1, .3, .5),
    TIME ("tp_overlap", tp_overlap, 1, 0, 1, .5, .5),
    TIME ("moe_overlap", moe_overlap, 1, 0, 1, 0, 0),
    TIME ("moe_overlap_out", moe_overlap_out, 1, 0, 1, 0, 0),
    TIME ("expert_capacity", expert_capacity, 1, .1, 64, 1, 0),
    TIME ("overlap_slowdown", overlap_slowdown, 1, 0, 1, 0, 0),
    TIME ("microbatch_us", microbatch_s, UNITS_US, 0, 1e6, 1000, .5),
    TIME ("step_ms", step_s, 1e-3, 0, 1e6, 0, .5),
    TIME ("optimizer_passes", optimizer_passes, 1, 0, 200, 0, 0),
    TIME ("residual", residual, 1, 0.001, 1, .08, .5),
};

#define N_CONSTANTS ((int) (sizeof constants / sizeof *constants))

const struct workload_constant *workload_constants (int *n)
{
    *n = N_CONSTANTS;
    return constants;
}

static enum status read_constants (const struct json_at *at, bool memory,
                                   struct workload_profile *p, struct notes *notes,
                                   struct error *err)
{
    struct text known = {0};
    enum status st = json_want_object (at, err);

    for (int i = 0; i < N_CONSTANTS && st == ST_OK; i++) {
        const struct workload_constant *k = &constants[i];
        struct json_at one = json_key (at, k->key);
        double x = k->absent;

        if (k->memory != memory)
            continue;
        text_add (&known, "%s ", k->key);
        if (one.v || isnan (k->absent))
            st = json_want_number (&one, k->least, true, k->most, &x, err);
        if (st == ST_OK)
            *workload_constant_of (p, k) = x * k->unit;
    }
    if (st == ST_OK)
        json_note_unknown (at, text_str (&known), notes);
    text_free (&known);
    return st;
}

/* ---- what the framework keeps and offers ---- */

/* What is true or false of a framework: a member, and its key where that is another word. */
#define NAMED_FACT(KEY, MEMBER)                         \
    {                                                   \
        KEY, offsetof (struct workload_profile, MEMBER) \
    }
#define FACT(MEMBER) NAMED_FACT (#MEMBER, MEMBER)
#define TIME_FACT(MEMBER) NAMED_FACT (#MEMBER, time.MEMBER)
#define FACTS(...)   \
    {                \
        __VA_ARGS__, \
        {            \
            NULL, 0  \
        }            \
    }

static const struct {
    const char *key;
    size_t at;
} flags[] = FACTS (
    FACT (splits_sequences), FACT (fused_norm), FACT (fused_mlp), FACT (fused_loss),
    FACT (gathered_logits), FACT (fused_experts), FACT (grouped_experts),
    FACT (cp_by_pieces), FACT (cp_all_to_all), FACT (fp32_adapters), FACT (autocast),
    FACT (drops_tokens), FACT (chunked_loss), FACT (repeats_kv), FACT (keeps_gathered),
    FACT (gathers_fp8), FACT (uneven_chunks), FACT (fused_rotary),
    FACT (fused_accumulation), FACT (separate_gate),
    NAMED_FACT ("compute_of_gpu_type", compute_of_type),
    NAMED_FACT ("flash_attention_2", flash2), FACT (sums_in_products),
    FACT (gradients_freed), FACT (bucket_copies), FACT (without_dropout),
    FACT (logits_freed), FACT (autocast_copies), FACT (whole_gradients),
    FACT (frozen_gradients), FACT (whole_adapters), FACT (offloads_gradients),
    FACT (flat_step), FACT (zero_always), FACT (gathers_by_layer), FACT (gathers_at_step),
    FACT (reduces_late), FACT (reduces_bare),
    NAMED_FACT ("copies_reduced_once", copies_once), FACT (copies_inputs),
    FACT (fitted_experts), FACT (one_split), FACT (unsharded_in_fp32),
    FACT (one_sequence), NAMED_FACT ("dp_overlaps_chunks", time.dp_chunks),
    TIME_FACT (all_reduced_gradients), TIME_FACT (reduced_as_kept),
    TIME_FACT (blocking_sends), TIME_FACT (tp_comm_overlap),
    TIME_FACT (deduplicated_dispatch));

static bool *flag_of (struct workload_profile *p, size_t i)
{
    return (bool *) ((char *) p + flags[i].at);
}

static enum status read_flags (const struct json_at *root, struct workload_profile *p,
                               struct error *err)
{
    for (size_t i = 0; flags[i].key; i++) {
        struct json_at at = json_key (root, flags[i].key);

        if (at.v)
            TRY (json_want_bool (&at, flag_of (p, i), err));
    }
    return ST_OK;
}

static bool schedule_bit (const char *word, unsigned *bit)
{
    enum workload_schedule s;
    bool known = workload_schedule_parse (word, &s);

    *bit = known ? 1u << s : 0u;
    return known;
}

const char *const workload_parallel_names[] = {"tp", "sp", "pp", "cp", "ep", NULL};

static bool parallel_bit (const char *word, unsigned *bit)
{
    *bit = 0u;
    for (int i = 0; i < WORKLOAD_PARALLELS; i++)
        if (strcmp (word, workload_parallel_names[i]) == 0)
            *bit = 1u << i;
    return *bit != 0u;
}

static bool offload_bit (const char *word, unsigned *bit)
{
    enum workload_offload o;
    bool known = workload_offload_parse (word, &o) && o != OFFLOAD_NONE;

    *bit = known ? 1u << o : 0u;
    return known;
}

/* A list of words as bits; where the key is absent they stay. */
static enum status read_words (const struct json_at *root, const char *key,
                               bool (*bit_of) (const char *word, unsigned *bit),
                               const char *expected, unsigned *bits, struct error *err)
{
    struct json_at list = json_key (root, key);

    if (!list.v)
        return ST_OK;
    TRY (json_want_array (&list, NULL, err));
    *bits = 0;
    json_each (&list, one) {
        const char *word;
        unsigned bit;

        TRY (json_want_string (&one, &word, err));
        if (!bit_of (word, &bit))
            return json_fail (&one, err, "%s", expected);
        *bits |= bit;
    }
    return ST_OK;
}

/* A list of numbers as bits beside those that are there. */
static enum status read_bits (const struct json_at *root, const char *key, int least,
                              int most, unsigned long long *bits, struct error *err)
{
    struct json_at list = json_key (root, key);

    if (list.v)
        TRY (json_want_array (&list, NULL, err));
    json_each (&list, one) {
        long long number;

        TRY (json_want_int (&one, least, most, &number, err));
        *bits |= 1ull << number;
    }
    return ST_OK;
}

/* Sets of modules, none where the key is absent.
 * @param[out] sets  [most] */
static enum status read_modules (const struct json_at *root, const char *key, int most,
                                 unsigned *sets, int *n_sets, struct error *err)
{
    struct json_at list = json_key (root, key);
    size_t n = 0;

    if (list.v)
        TRY (json_want_array (&list, &n, err));
    if (n > (size_t) most)
        return json_fail (&list, err, "at most %d entries", most);
    json_each (&list, one) {
        const char *words;

        TRY (json_want_string (&one, &words, err));
        if (!workload_modules_parse (words, &sets[one.index]))
            return json_fail (&one, err,
                              "modules that are recomputed (core_attn, "
                              "layernorm, mlp, moe_act, mla_up_proj, moe, "
                              "shared_experts)");
    }
    *n_sets = (int) n;
    return ST_OK;
}

/* The memory options that the framework offers. */
static enum status read_memory_options (const struct json_at *root,
                                        struct workload_profile *p, struct error *err)
{
    struct json_at searched = json_key (root, "recompute_searched");
    unsigned offered[WORKLOAD_MODULES];
    int n_offered;

    TRY (read_modules (root, "recompute_modules", WORKLOAD_MODULES, offered, &n_offered,
                       err));
    for (int i = 0; i < n_offered; i++)
        p->recompute_modules |= offered[i];
    TRY (read_modules (root, "recompute_searched", WORKLOAD_SEARCHED_MAX, p->searched,
                       &p->n_searched, err));
    for (int i = 0; i < p->n_searched; i++)
        if (p->searched[i] & ~p->recompute_modules)
            return json_fail (&searched, err, "modules of recompute_modules alone");
    return read_bits (root, "optimizer_bytes_offered", 1, WORKLOAD_OPTIMIZER_BYTES_MAX,
                      &p->optimizer_choices, err);
}

/* A list of names, none where the key is absent.
 * @param[out] name  [most] */
static enum status read_names (const struct json_at *root, const char *key, int most,
                               char name[][64], int *n_names, struct error *err)
{
    struct json_at list = json_key (root, key);
    const char *s;
    size_t n = 0;

    if (list.v)
        TRY (json_want_array (&list, &n, err));
    if (n > (size_t) most)
        return json_fail (&list, err, "at most %d names", most);
    json_each (&list, one) {
        TRY (json_want_string (&one, &s, err));
        snprintf (name[(*n_names)++], 64, "%.63s", s);
    }
    return ST_OK;
}

static enum status read_served (const struct json_at *root, struct workload_profile *p,
                                struct error *err)
{
    const struct {
        const char *key;
        char *word; /* [64] */
    } words[] = {{"gpu", p->gpu}, {"elsewhere", p->elsewhere}};
    const char *s;

    TRY (read_names (root, "sources", WORKLOAD_SOURCES_MAX, p->source, &p->n_sources,
                     err));
    TRY (read_names (root, "frameworks", WORKLOAD_SOURCES_MAX, p->framework,
                     &p->n_frameworks, err));
    TRY (read_names (root, "fitted_on", WORKLOAD_FITTED_MAX, p->fitted_on,
                     &p->n_fitted_on, err));
    TRY (read_names (root, "all_to_all", WORKLOAD_FITTED_MAX, p->all_to_all,
                     &p->n_all_to_all, err));
    TRY (read_names (root, "all_to_all_outside_racks", WORKLOAD_FITTED_MAX,
                     p->all_to_all_outside_racks, &p->n_all_to_all_outside_racks, err));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!json_has (root, words[i].key))
            continue;
        TRY (json_get_string (root, words[i].key, &s, err));
        snprintf (words[i].word, 64, "%.63s", s);
    }
    return ST_OK;
}

/* One of the words, as its number; the first where the key is absent.
 * @param[in] words  with NULL at their end  @param[out] out  an enum or an int */
static enum status read_word (const struct json_at *root, const char *key,
                              const char *const *words, void *out, struct error *err)
{
    struct json_at at = json_key (root, key);
    struct text all = {0};
    const char *s = words[0];
    enum status st = at.v ? json_want_string (&at, &s, err) : ST_OK;

    for (int k = 0; words[k] && st == ST_OK; k++) {
        if (strcmp (words[k], s) == 0) {
            *(int *) out = k;
            text_free (&all);
            return ST_OK;
        }
        text_add (&all, "%s%s", k == 0 ? "" : words[k + 1] ? ", " : " or ", words[k]);
    }
    THEN (st, json_fail (&at, err, "%s", text_str (&all)));
    text_free (&all);
    return st;
}

static const char *const partitions[] = {"even", "parameters", "modules", "cost", NULL};
static const char *const selectives[] = {"attention", "products", "layers", "between",
                                         NULL};
static const char *const graphs[] = {"none", "dense", "blocks", "all", NULL};
static const char *const captured_parts[] = {"nowhere", "racks", "everywhere", NULL};
static const char *const recomputes[] = {"selective", "none", "full", NULL};
static const char *const measured_ranks[] = {"max", "last", "first", NULL};

static enum status read_measured (const struct json_at *root, struct workload_profile *p,
                                  struct error *err)
{
    struct json_at memory = json_key (root, "measured_memory");
    const char *s;

    TRY (read_word (root, "measured_rank", measured_ranks, &p->measured_rank, err));
    if (!memory.v)
        return ST_OK;
    TRY (json_want_string (&memory, &s, err));
    p->measured_allocated = strcmp (s, "allocated") == 0;
    return p->measured_allocated || strcmp (s, "driver") == 0
               ? ST_OK
               : json_fail (&memory, err, "\"driver\" or \"allocated\"");
}

/* What is recomputed; as it was where the key is absent. */
static enum status read_recompute (const struct json_at *root, const char *key,
                                   enum workload_recompute *out, struct error *err)
{
    struct workload_config config = {0};
    int word;

    if (!json_has (root, key))
        return ST_OK;
    TRY (read_word (root, key, recomputes, &word, err));
    workload_recompute_parse (recomputes[word], &config);
    *out = config.recompute;
    return ST_OK;
}

/* The defaults that a run of the framework has. */
static enum status read_defaults (const struct json_at *root, struct workload_profile *p,
                                  struct error *err)
{
    if (json_key (root, "attention").v)
        TRY_WORD (root, "attention", workload_attention_parse, &p->attention,
                  "flash, fused, unfused or flash1", err);
    if (json_key (root, "precision").v)
        TRY_WORD (root, "precision", workload_precision_parse, &p->precision,
                  WORDS_PRECISION, err);
    p->recompute = RECOMPUTE_SELECTIVE;
    TRY (read_recompute (root, "recompute", &p->recompute, err));
    p->recompute_sharded = p->recompute;
    TRY (read_recompute (root, "recompute_sharded", &p->recompute_sharded, err));
    if (json_key (root, "all_reduce").v)
        TRY_WORD (root, "all_reduce", workload_all_reduce_parse, &p->time.all_reduce,
                  "auto, ring, tree, hierarchical, nvls or nvls-tree", err);
    TRY (read_word (root, "selective_recompute", selectives, &p->selective, err));
    TRY (read_word (root, "cuda_graphs", graphs, &p->graphs, err));
    TRY (read_word (root, "captured_parts", captured_parts, &p->captured_parts, err));
    return read_word (root, "partition", partitions, &p->partition, err);
}

/* The stages of ZeRO: the usual one, the highest beside what else is split, and all that the
 * framework has. */
static enum status read_zero (const struct json_at *root, struct workload_profile *p,
                              struct error *err)
{
    const struct {
        const char *key;
        int *stage;
    } stages[] = {{"zero", &p->zero},
                  {"zero_with_pipeline", &p->zero_with_pipeline},
                  {"zero_with_tensor", &p->zero_with_tensor},
                  {"zero_with_experts", &p->zero_with_experts}};
    struct json_at list = json_key (root, "zero_stages");
    unsigned long long has = !list.v ? 0xfu : p->zero_always ? 0u : 1u, shards = 0;

    p->zero_with_pipeline = 1;
    p->zero_with_tensor = p->zero_with_experts = 3;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (json_key (root, stages[i].key).v)
            TRY (json_get_int (root, stages[i].key, 0, 3, stages[i].stage, err));
    TRY (read_bits (root, "zero_stages", 0, 3, &has, err));
    TRY (read_bits (root, "shard_stages", 1, 3, &shards, err));
    p->zero_stages = (unsigned) has;
    p->shard_stages = (unsigned) shards;
    return has >> p->zero & 1
               ? ST_OK
               : json_fail (&list, err, "a list that has zero, %d", p->zero);
}

static enum status read_framework (const struct json_at *root, struct workload_profile *p,
                                   struct error *err)
{
    static const char schedule[] = "the name of a schedule";

    p->fused_norm = p->fused_mlp = p->fused_rotary = p->fused_loss = true;
    p->fused_accumulation = true;
    TRY (read_defaults (root, p, err));
    TRY (read_flags (root, p, err));
    TRY (read_zero (root, p, err));
    p->parallelism = ~0u;
    TRY (read_words (root, "parallelism", parallel_bit, "tp, sp, pp, cp or ep",
                     &p->parallelism, err));
    p->schedules = 1u << SCHEDULE_1F1B | 1u << SCHEDULE_INTERLEAVED;
    p->schedules_on_request = json_has (root, "schedules") ? 0 : 1u << SCHEDULE_GPIPE;
    TRY (read_words (root, "schedules", schedule_bit, schedule, &p->schedules, err));
    TRY (read_words (root, "schedules_on_request", schedule_bit, schedule,
                     &p->schedules_on_request, err));
    TRY (read_memory_options (root, p, err));
    TRY (read_words (root, "offload", offload_bit, "optimizer, all or checkpoints",
                     &p->offloads, err));
    TRY (read_served (root, p, err));
    return read_measured (root, p, err);
}

/* As much of a text as fits, in whole characters. */
static void cut_text (const char *s, char *out, size_t size)
{
    size_t n = strlen (s);

    if (n >= size)
        for (n = size - 1; n > 0 && ((unsigned char) s[n] & 0xc0) == 0x80;)
            n--;
    memcpy (out, s, n);
    out[n] = '\0';
}

static void note_unknown (const struct json_at *root, struct notes *notes)
{
    struct text known = {0};

    text_add (&known,
              "version name source sources frameworks gpu fitted_on all_to_all "
              "all_to_all_outside_racks elsewhere "
              "precision zero attention recompute recompute_sharded "
              "selective_recompute all_reduce partition cuda_graphs captured_parts "
              "zero_with_pipeline zero_with_tensor zero_with_experts zero_stages "
              "shard_stages parallelism schedules schedules_on_request "
              "recompute_modules recompute_searched optimizer_bytes_offered offload "
              "memory time measured_rank measured_memory releases fit");
    for (size_t i = 0; flags[i].key; i++)
        text_add (&known, " %s", flags[i].key);
    json_note_unknown (root, text_str (&known), notes);
    text_free (&known);
}

enum status workload_profile_from_current (json_t *doc, const char *file,
                                           struct workload_profile *out,
                                           struct notes *notes, struct error *err)
{
    struct json_at root = json_root (doc, file), memory = json_key (&root, "memory"),
                   time = json_key (&root, "time");
    struct workload_profile p = {0};
    const char *s;
    int version;

    TRY (json_want_object (&root, err));
    TRY (json_get_int (&root, "version", 1, 1, &version, err));
    TRY (json_get_string (&root, "name", &s, err));
    snprintf (p.name, sizeof p.name, "%.63s", s);
    snprintf (p.from, sizeof p.from, "%.255s", file);
    if (json_has (&root, "source")) {
        TRY (json_get_string (&root, "source", &s, err));
        cut_text (s, p.origin, sizeof p.origin);
    }
    TRY (read_framework (&root, &p, err));
    TRY (read_constants (&memory, true, &p, notes, err));
    TRY (read_constants (&time, false, &p, notes, err));
    note_unknown (&root, notes);
    *out = p;
    return ST_OK;
}

/* ---- writing ---- */

static json_t *constants_json (const struct workload_profile *p, bool memory)
{
    struct workload_profile copy = *p;
    json_t *part = json_object ();

    for (int i = 0; i < N_CONSTANTS; i++)
        if (constants[i].memory == memory)
            json_object_set_new (part, constants[i].key,
                                 json_real (*workload_constant_of (&copy, &constants[i]) /
                                            constants[i].unit));
    return part;
}

static json_t *schedules_json (unsigned schedules)
{
    json_t *list = json_array ();

    for (int s = 0; s < SCHEDULES; s++)
        if (schedules >> s & 1)
            json_array_append_new (
                list, json_string (workload_schedule_name ((enum workload_schedule) s)));
    return list;
}

static json_t *modules_json (unsigned modules)
{
    struct workload_config c = {.recompute = RECOMPUTE_SELECTIVE,
                                .recompute_modules = modules};
    char text[WORKLOAD_RECOMPUTE_TEXT];

    return json_string (workload_recompute_text (&c, text));
}

/* The numbers of bits. */
static json_t *numbers_json (unsigned long long bits)
{
    json_t *list = json_array ();

    for (int i = 0; i < 64; i++)
        if (bits >> i & 1)
            json_array_append_new (list, json_integer (i));
    return list;
}

/* What the framework splits, and its memory options. */
static void put_options (const struct workload_profile *p, json_t *doc)
{
    json_t *offloads = json_array (), *modules = json_array (), *searched = json_array (),
           *parallel = json_array ();

    for (int i = 0; i < WORKLOAD_MODULES; i++)
        if (p->recompute_modules >> i & 1)
            json_array_append_new (modules, modules_json (1u << i));
    for (int i = 0; i < p->n_searched; i++)
        json_array_append_new (searched, modules_json (p->searched[i]));
    for (int i = OFFLOAD_NONE + 1; i < WORKLOAD_OFFLOADS; i++)
        if (p->offloads >> i & 1)
            json_array_append_new (offloads, json_string (workload_offload_name (
                                                 (enum workload_offload) i)));
    for (int i = 0; i < WORKLOAD_PARALLELS; i++)
        if (p->parallelism >> i & 1)
            json_array_append_new (parallel, json_string (workload_parallel_names[i]));
    json_object_set_new (doc, "parallelism", parallel);
    json_object_set_new (doc, "zero_with_tensor", json_integer (p->zero_with_tensor));
    json_object_set_new (doc, "zero_with_experts", json_integer (p->zero_with_experts));
    json_object_set_new (doc, "offload", offloads);
    json_object_set_new (doc, "recompute_modules", modules);
    json_object_set_new (doc, "recompute_searched", searched);
    json_object_set_new (doc, "optimizer_bytes_offered",
                         numbers_json (p->optimizer_choices));
}

static json_t *names_json (const char name[][64], int n)
{
    json_t *list = json_array ();

    for (int i = 0; i < n; i++)
        json_array_append_new (list, json_string (name[i]));
    return list;
}

json_t *workload_profile_to_json (const struct workload_profile *p, const char *source)
{
    json_t *sources = names_json (p->source, p->n_sources),
           *frameworks = names_json (p->framework, p->n_frameworks), *doc;
    struct workload_config config = {.recompute = p->recompute},
                           sharded = {.recompute = p->recompute_sharded};
    struct workload_profile copy = *p;
    char word[WORKLOAD_RECOMPUTE_TEXT], sharded_word[WORKLOAD_RECOMPUTE_TEXT];

    doc = json_pack (
        "{s:i, s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, "
        "s:i, s:i, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:s, s:s, s:s}",
        "version", 1, "name", p->name, "source", source, "sources", sources, "frameworks",
        frameworks, "precision", workload_precision_name (p->precision), "measured_rank",
        measured_ranks[p->measured_rank], "measured_memory",
        p->measured_allocated ? "allocated" : "driver", "attention",
        workload_attention_name (p->attention), "recompute",
        workload_recompute_text (&config, word), "all_reduce",
        workload_all_reduce_name (p->time.all_reduce), "selective_recompute",
        selectives[p->selective], "partition", partitions[p->partition], "zero", p->zero,
        "zero_with_pipeline", p->zero_with_pipeline, "zero_stages",
        numbers_json (p->zero_stages), "shard_stages", numbers_json (p->shard_stages),
        "schedules", schedules_json (p->schedules), "schedules_on_request",
        schedules_json (p->schedules_on_request), "memory", constants_json (p, true),
        "time", constants_json (p, false), "cuda_graphs", graphs[p->graphs],
        "captured_parts", captured_parts[p->captured_parts], "recompute_sharded",
        workload_recompute_text (&sharded, sharded_word));
    for (size_t i = 0; doc && flags[i].key; i++)
        json_object_set_new (doc, flags[i].key, json_boolean (*flag_of (&copy, i)));
    if (doc)
        put_options (p, doc);
    if (doc && p->gpu[0])
        json_object_set_new (doc, "gpu", json_string (p->gpu));
    if (doc && p->elsewhere[0])
        json_object_set_new (doc, "elsewhere", json_string (p->elsewhere));
    if (doc && p->n_fitted_on > 0)
        json_object_set_new (doc, "fitted_on", names_json (p->fitted_on, p->n_fitted_on));
    if (doc && p->n_all_to_all > 0)
        json_object_set_new (doc, "all_to_all",
                             names_json (p->all_to_all, p->n_all_to_all));
    if (doc && p->n_all_to_all_outside_racks > 0)
        json_object_set_new (
            doc, "all_to_all_outside_racks",
            names_json (p->all_to_all_outside_racks, p->n_all_to_all_outside_racks));
    return doc;
}
