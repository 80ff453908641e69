/* Framework profiles: shipped ones are linked into the library from
 * workload/profiles/<name>.json, others are read from files of the same form. */
#include "workload/workload.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "workload/workload_private.h"

#define AT(MEMBER) offsetof (struct workload_profile, MEMBER)
#define MEMORY(KEY, FIELD) KEY, AT (memory.FIELD), true
#define TIME(KEY, FIELD) KEY, AT (time.FIELD), false

static const struct workload_constant constants[] = {
    {MEMORY ("gradient_bytes", gradient_bytes), 1, 0, 16, NAN, 0},
    {MEMORY ("optimizer_bytes", optimizer_bytes), 1, 0, 64, NAN, 0},
    {MEMORY ("fp8_weight_bytes", fp8_weight_bytes), 1, 0, 16, 4, 0},
    {MEMORY ("step_bytes", step_bytes), 1, 0, 64, 0, 0},
    {MEMORY ("step_cached_bytes", step_cached_bytes), 1, 0, 64, 0, 0},
    {MEMORY ("expert_token_bytes", expert_token_bytes), 1, 0, 64, 4, 0},
    {MEMORY ("unsharded_bytes", unsharded_bytes), 1, 0, 64, 0, 0},
    {MEMORY ("norm_bytes", norm_bytes), 1, 0, 256, NAN, 0},
    {MEMORY ("unfused_norm_bytes", unfused_norm_bytes), 1, 0, 256, 16, .15},
    {MEMORY ("gated_mlp_bytes", gated_mlp_bytes), 1, 0, 256, NAN, 0},
    {MEMORY ("unfused_mlp_bytes", unfused_mlp_bytes), 1, 0, 256, 2, 0},
    {MEMORY ("plain_mlp_bytes", plain_mlp_bytes), 1, 0, 256, NAN, 0},
    {MEMORY ("attention_bytes", attention_bytes), 1, 0, 256, 0, .3},
    {MEMORY ("dropout_bytes", dropout_bytes), 1, 0, 64, NAN, 0},
    {MEMORY ("fused_score_bytes", fused_score_bytes), 1, 0, 256, 5, .15},
    {MEMORY ("score_bytes", score_bytes), 1, 0, 256, 7, .15},
    {MEMORY ("logit_bytes", logit_bytes), 1, 0, 256, NAN, .2},
    {MEMORY ("gathered_logit_bytes", gathered_logit_bytes), 1, 0, 256, 16, .15},
    {MEMORY ("gather_copy_bytes", gather_copy_bytes), 1, 0, 256, 6, .3},
    {MEMORY ("recompute_workspace", recompute_workspace), 1, 0, 16, NAN, .5},
    {MEMORY ("expert_imbalance", expert_imbalance), 1, 1, 64, 1, 0},
    {MEMORY ("wta_input_bytes", wta_input_bytes), 1, 0, 64, 2, 0},
    {MEMORY ("wta_dropped_bytes", wta_dropped_bytes), 1, 0, 256, 0, 0},
    {MEMORY ("wta_lora_bytes", wta_lora_bytes), 1, 0, 64, 0, 0},
    {MEMORY ("bucket_gb", bucket_bytes), UNITS_GB, 0, 64, 0, 0},
    {MEMORY ("live_parameters", live_params), 1, 0, 1e12, 0, 0},
    {MEMORY ("reduced_parameters", reduced_params), 1, 0, 1e12, 0, 0},
    {MEMORY ("base_gb", base_bytes), UNITS_GB, 0, 64, NAN, .3},
    {MEMORY ("group_gb", group_bytes), UNITS_GB, 0, 64, NAN, .3},
    {MEMORY ("allocated_gb", allocated_bytes), UNITS_GB, 0, 64, 0.1, 0},
    {MEMORY ("fragmentation", fragmentation), 1, 1, 4, NAN, .02},
    {MEMORY ("residual", residual), 1, 0.001, 1, 0.05, .5},
    {MEMORY ("states_residual", states_residual), 1, 0.001, 1, 0.03, 0},
    {TIME ("gemm", gemm), 1, 1e-3, 4, 1, .1},
    {TIME ("attention", attention), 1, 1e-3, 2, .6, .15},
    {TIME ("attention_back", attention_back), 1, 1e-3, 1, .5, .15},
    {TIME ("attention1", attention1), 1, 1e-3, 1, .3, .15},
    {TIME ("score_traffic", score_traffic), 1, 0, 1e3, 74, .3},
    {TIME ("fused_score_traffic", fused_score_traffic), 1, 0, 1e3, 20, .3},
    {TIME ("wave_us", wave_s), UNITS_US, 0, 1e3, 0, 0},
    {TIME ("memory_bandwidth", memory_bandwidth), 1, 1e-3, 1, .8, .15},
    {TIME ("layer_launch_fwd_us", layer_launch_fwd_s), UNITS_US, 0, 1e6, 600, .2},
    {TIME ("layer_launch_back_us", layer_launch_back_s), UNITS_US, 0, 1e6, 900, .2},
    {TIME ("link", link), 1, 1e-3, 1.5, .85, .3},
    {TIME ("link_out", link_out), 1, 1e-3, 1.5, .9, 1},
    {TIME ("job_size_power", job_size_power), 1, 0, 2, 0, 0},
    {TIME ("send_link", send_link), 1, 1e-3, 2, 1, .3},
    {TIME ("collective_us", collective_s), UNITS_US, 0, 1e6, 45, .3},
    {TIME ("dp_bucket_mb", dp_bucket_bytes), 1e6, 0, 1e6, 400, 0},
    {TIME ("reduced_bytes", reduced_bytes), 1, 0, 4, 0, 0},
    {TIME ("dp_overlap", dp_overlap), 1, 0, 1, .3, .5},
    {TIME ("tp_overlap", tp_overlap), 1, 0, 1, .5, .5},
    {TIME ("moe_overlap", moe_overlap), 1, 0, 1, 0, 0},
    {TIME ("moe_overlap_out", moe_overlap_out), 1, 0, 1, 0, 0},
    {TIME ("expert_capacity", expert_capacity), 1, .1, 64, 1, 0},
    {TIME ("overlap_slowdown", overlap_slowdown), 1, 0, 1, 0, 0},
    {TIME ("microbatch_us", microbatch_s), UNITS_US, 0, 1e6, 1000, .5},
    {TIME ("step_ms", step_s), 1e-3, 0, 1e6, 0, .5},
    {TIME ("optimizer_passes", optimizer_passes), 1, 0, 200, 0, 0},
    {TIME ("residual", residual), 1, 0.001, 1, .08, .5},
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

/* ---- the other members ---- */

static const char *const partitions[] = {"even", "parameters", "modules", "cost", NULL};
static const char *const selectives[] = {"attention", "products", "layers", "between",
                                         NULL};
static const char *const graphs[] = {"none", "dense", "blocks", "all", NULL};
static const char *const captured_parts[] = {"nowhere", "racks", "everywhere", NULL};
static const char *const measured_ranks[] = {"max", "last", "first", NULL};
static const char *const measured_memories[] = {"driver", "allocated", NULL};
const char *const workload_parallel_names[] = {"tp", "sp", "pp", "cp", "ep", NULL};

struct member {
    const char *key;
    size_t at; /* in struct workload_profile */
    enum {
        FLAG,
        STAGE,   /* of ZeRO: an int */
        WORD,    /* an enum */
        EITHER,  /* of two words: a bool */
        NAME,    /* char[64] */
        NAMES,   /* char[room][64] */
        WORDS,   /* bits of an unsigned */
        NUMBERS, /* bits of an unsigned long long */
        MODULES, /* that are recomputed: bits of an unsigned */
        SETS,    /* of modules: unsigned[room] */
        PACES,   /* struct workload_pace[room] */
        PART     /* constants, of memory where `least` is 1 */
    } kind;
    const char *const *words;
    const char *expected; /* NULL: one of the words */
    int least, most;      /* numbers, words from `least` on */
    int room;             /* for names and sets; 0: for any number */
    size_t n_at;          /* where it stands how many these are */
    bool or_null;         /* null is as if it were not there */
    bool if_any;          /* names that are written where there are any */
};

#define HAS(KEY, MEMBER, KIND) .key = KEY, .at = AT (MEMBER), .kind = KIND
#define N_NAMES(MEMBER, ROOM) .n_at = AT (MEMBER), .room = ROOM
#define NUMBERED(LEAST, MOST) .least = LEAST, .most = MOST
#define SCHEDULES_EXPECTED \
    .words = workload_schedule_words, .expected = "the name of a schedule"
#define RECOMPUTED                                                            \
    .words = workload_recompute_words, .expected = "selective, none or full", \
    .or_null = true

/* What is true or false of a framework: a member, and its key where that is another word. */
#define FACT(MEMBER) NAMED_FACT (#MEMBER, MEMBER)
#define NAMED_FACT(KEY, MEMBER) \
    {                           \
        HAS (KEY, MEMBER, FLAG) \
    }
#define FACTS                                                                         \
    FACT (splits_sequences), FACT (fused_norm), FACT (fused_mlp), FACT (fused_loss),  \
        FACT (gathered_logits), FACT (fused_experts), FACT (grouped_experts),         \
        FACT (cp_by_pieces), FACT (cp_all_to_all), FACT (fp32_adapters),              \
        FACT (autocast), FACT (drops_tokens), FACT (chunked_loss), FACT (repeats_kv), \
        FACT (keeps_gathered), FACT (gathers_fp8), FACT (uneven_chunks),              \
        FACT (fused_rotary), FACT (fused_accumulation), FACT (separate_gate),         \
        NAMED_FACT ("compute_of_gpu_type", compute_of_type),                          \
        NAMED_FACT ("flash_attention_2", flash2), FACT (sums_in_products),            \
        FACT (gradients_freed), FACT (bucket_copies), FACT (without_dropout),         \
        FACT (logits_freed), FACT (autocast_copies), FACT (whole_gradients),          \
        FACT (frozen_gradients), FACT (whole_adapters), FACT (offloads_gradients),    \
        FACT (flat_step), FACT (zero_always), FACT (gathers_by_layer),                \
        FACT (gathers_at_step), FACT (reduces_late), FACT (reduces_bare),             \
        NAMED_FACT ("copies_reduced_once", copies_once), FACT (copies_inputs),        \
        FACT (fitted_experts), FACT (one_split), FACT (unsharded_in_fp32),            \
        FACT (one_sequence), FACT (recompute_ends_early), FACT (scanned_layers),      \
        NAMED_FACT ("dp_overlaps_chunks", time.dp_chunks),                            \
        NAMED_FACT ("all_reduced_gradients", time.all_reduced_gradients),             \
        NAMED_FACT ("reduced_as_kept", time.reduced_as_kept),                         \
        NAMED_FACT ("blocking_sends", time.blocking_sends),                           \
        NAMED_FACT ("tp_comm_overlap", time.tp_comm_overlap),                         \
        NAMED_FACT ("deduplicated_dispatch", time.deduplicated_dispatch)

/* What a file has beside its version, name and source, in the order in which it is written. */
static const struct member members[] = {
    {HAS ("sources", source, NAMES), N_NAMES (n_sources, WORKLOAD_SOURCES_MAX)},
    {HAS ("frameworks", framework, NAMES), N_NAMES (n_frameworks, WORKLOAD_SOURCES_MAX)},
    {HAS ("precision", precision, WORD), .words = workload_precision_words,
     .expected = WORDS_PRECISION},
    {HAS ("measured_rank", measured_rank, WORD), .words = measured_ranks},
    {HAS ("measured_memory", measured_allocated, EITHER), .words = measured_memories,
     .expected = "\"driver\" or \"allocated\""},
    {HAS ("attention", attention, WORD), .words = workload_attention_words},
    {HAS ("recompute", recompute, WORD), RECOMPUTED},
    {HAS ("all_reduce", time.all_reduce, WORD), .words = workload_all_reduce_words},
    {HAS ("selective_recompute", selective, WORD), .words = selectives},
    {HAS ("partition", partition, WORD), .words = partitions},
    {HAS ("zero", zero, STAGE)},
    {HAS ("zero_with_pipeline", zero_with_pipeline, STAGE)},
    {HAS ("zero_stages", zero_stages, NUMBERS), NUMBERED (0, 3)},
    {HAS ("shard_stages", shard_stages, NUMBERS), NUMBERED (1, 3)},
    {HAS ("schedules", schedules, WORDS), SCHEDULES_EXPECTED},
    {HAS ("schedules_on_request", schedules_on_request, WORDS), SCHEDULES_EXPECTED},
    {HAS ("memory", memory, PART), .least = 1},
    {HAS ("time", time, PART)},
    {HAS ("cuda_graphs", graphs, WORD), .words = graphs},
    {HAS ("captured_parts", captured_parts, WORD), .words = captured_parts},
    {HAS ("recompute_sharded", recompute_sharded, WORD), RECOMPUTED},
    FACTS,
    {HAS ("parallelism", parallelism, WORDS), .words = workload_parallel_names},
    {HAS ("zero_with_tensor", zero_with_tensor, STAGE)},
    {HAS ("zero_with_experts", zero_with_experts, STAGE)},
    {HAS ("offload", offloads, WORDS), .words = workload_offload_words,
     .least = OFFLOAD_NONE + 1},
    {HAS ("recompute_modules", recompute_modules, MODULES), .room = WORKLOAD_MODULES},
    {HAS ("recompute_searched", searched, SETS),
     N_NAMES (n_searched, WORKLOAD_SEARCHED_MAX)},
    {HAS ("optimizer_bytes_offered", optimizer_choices, NUMBERS),
     NUMBERED (1, WORKLOAD_OPTIMIZER_BYTES_MAX)},
    {HAS ("gpu", gpu, NAME), .or_null = true, .if_any = true},
    {HAS ("elsewhere", elsewhere, NAME), .or_null = true, .if_any = true},
    {HAS ("fitted_on", fitted_on, NAMES), N_NAMES (n_fitted_on, WORKLOAD_FITTED_MAX),
     .if_any = true},
    {HAS ("all_to_all", all_to_all, NAMES), N_NAMES (n_all_to_all, WORKLOAD_FITTED_MAX),
     .if_any = true},
    {HAS ("all_to_all_outside_racks", all_to_all_outside_racks, NAMES),
     N_NAMES (n_all_to_all_outside_racks, WORKLOAD_FITTED_MAX), .if_any = true},
    {HAS ("models", pace, PACES), N_NAMES (n_paces, WORKLOAD_PACED_MAX), .if_any = true},
};

#define N_MEMBERS (sizeof members / sizeof *members)

static void *place (struct workload_profile *p, size_t at)
{
    return (char *) p + at;
}

/* ---- reading ---- */

/* One of the member's words, as its number. */
static enum status read_word (const struct json_at *at, const struct member *m,
                              int *number, struct error *err)
{
    struct text all = {0};
    const char *s;

    TRY (json_want_string (at, &s, err));
    if (workload_word_parse (m->words, s, number) && *number >= m->least)
        return ST_OK;
    for (int k = m->least; m->words[k]; k++)
        text_add (&all, "%s%s",
                  k == m->least     ? ""
                  : m->words[k + 1] ? ", "
                                    : " or ",
                  m->words[k]);
    json_fail (at, err, "%s", m->expected ? m->expected : text_str (&all));
    text_free (&all);
    return ST_INVALID;
}

static enum status read_name (const struct json_at *at, char name[64], struct error *err)
{
    const char *s;

    TRY (json_want_string (at, &s, err));
    snprintf (name, 64, "%.63s", s);
    return ST_OK;
}

static enum status read_modules (const struct json_at *at, unsigned *modules,
                                 struct error *err)
{
    const char *s;

    TRY (json_want_string (at, &s, err));
    return workload_modules_parse (s, modules)
               ? ST_OK
               : json_fail (at, err,
                            "modules that are recomputed (core_attn, layernorm, mlp, "
                            "moe_act, mla_up_proj, moe, shared_experts)");
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

/* @param[in,out] p  has the paces before this one */
static enum status read_pace (const struct json_at *at, struct workload_profile *p,
                              struct error *err)
{
    static const struct member word = {.words = workload_precision_words,
                                       .expected = WORDS_PRECISION};
    struct json_at model = json_key (at, "model"), precision = json_key (at, "precision"),
                   factor = json_key (at, "time_factor");
    struct workload_pace *pace = &p->pace[at->index];
    const char *s;
    int found = 0;

    TRY (json_want_object (at, err));
    TRY (json_want_string (&model, &s, err));
    TRY (read_word (&precision, &word, &found, err));
    TRY (json_want_number (&factor, WORKLOAD_PACE_LEAST, true, WORKLOAD_PACE_MOST,
                           &pace->factor, err));
    if (workload_pace_of (p, s, found))
        return json_fail (&model, err, "each model once in a precision");
    cut_text (workload_pace_name (s), pace->model, sizeof pace->model);
    pace->precision = found;
    p->n_paces = (int) at->index + 1;
    return ST_OK;
}

/* An entry of a list, as a bit, a name, a set or a pace. */
static enum status read_entry (const struct json_at *at, const struct member *m,
                               struct workload_profile *p, struct error *err)
{
    void *to = place (p, m->at);
    unsigned modules = 0;
    long long number = 0;
    int word = 0;

    switch (m->kind) {
    case NAMES:
        return read_name (at, ((char (*)[64]) to)[at->index], err);
    case SETS:
        return read_modules (at, (unsigned *) to + at->index, err);
    case PACES:
        return read_pace (at, p, err);
    case MODULES:
        TRY (read_modules (at, &modules, err));
        *(unsigned *) to |= modules;
        return ST_OK;
    case WORDS:
        TRY (read_word (at, m, &word, err));
        *(unsigned *) to |= 1u << word;
        return ST_OK;
    default: /* NUMBERS */
        TRY (json_want_int (at, m->least, m->most, &number, err));
        *(unsigned long long *) to |= 1ull << number;
        return ST_OK;
    }
}

static enum status read_list (const struct json_at *list, const struct member *m,
                              struct workload_profile *p, struct error *err)
{
    size_t n;

    TRY (json_want_array (list, &n, err));
    if (m->room > 0 && n > (size_t) m->room)
        return json_fail (list, err, "at most %d %s", m->room,
                          m->kind == NAMES ? "names" : "entries");
    if (m->kind == WORDS) /* in place of the usual ones */
        *(unsigned *) place (p, m->at) = 0;
    json_each (list, one)
        TRY (read_entry (&one, m, p, err));
    if (m->n_at > 0)
        *(int *) place (p, m->n_at) = (int) n;
    return ST_OK;
}

static enum status read_member (const struct json_at *root, const struct member *m,
                                struct workload_profile *p, struct error *err)
{
    struct json_at at = json_key (root, m->key);
    void *to = place (p, m->at);
    int word = 0;

    if (!at.v || (m->or_null && json_is_null (at.v)))
        return ST_OK;
    switch (m->kind) {
    case FLAG:
        return json_want_bool (&at, to, err);
    case STAGE:
        return json_get_int (root, m->key, 0, 3, to, err);
    case NAME:
        return read_name (&at, to, err);
    case WORD:
        return read_word (&at, m, to, err);
    case PART: /* is read behind all others */
        return ST_OK;
    case EITHER:
        TRY (read_word (&at, m, &word, err));
        *(bool *) to = word == 1;
        return ST_OK;
    default:
        return read_list (&at, m, p, err);
    }
}

/* What follows from several members. */
static enum status settle (const struct json_at *root, struct workload_profile *p,
                           struct error *err)
{
    struct json_at stages = json_key (root, "zero_stages"),
                   searched = json_key (root, "recompute_searched");

    if (!json_has (root, "recompute_sharded"))
        p->recompute_sharded = p->recompute;
    if (!stages.v)
        p->zero_stages = 0xf;
    else if (!p->zero_always)
        p->zero_stages |= 1u;
    if (!(p->zero_stages >> p->zero & 1))
        return json_fail (&stages, err, "a list that has zero, %d", p->zero);
    for (int i = 0; i < p->n_searched; i++)
        if (p->searched[i] & ~p->recompute_modules)
            return json_fail (&searched, err, "modules of recompute_modules alone");
    return ST_OK;
}

static void note_unknown (const struct json_at *root, struct notes *notes)
{
    struct text known = {0};

    text_add (&known, "version name source releases fit");
    for (size_t i = 0; i < N_MEMBERS; i++)
        text_add (&known, " %s", members[i].key);
    json_note_unknown (root, text_str (&known), notes);
    text_free (&known);
}

enum status workload_profile_from_current (json_t *doc, const char *file,
                                           struct workload_profile *out,
                                           struct notes *notes, struct error *err)
{
    struct json_at root = json_root (doc, file), memory = json_key (&root, "memory"),
                   time = json_key (&root, "time");
    struct workload_profile p = {.fused_norm = true,
                                 .fused_mlp = true,
                                 .fused_rotary = true,
                                 .fused_loss = true,
                                 .fused_accumulation = true,
                                 .recompute = RECOMPUTE_SELECTIVE,
                                 .zero_with_pipeline = 1,
                                 .zero_with_tensor = 3,
                                 .zero_with_experts = 3,
                                 .parallelism = ~0u,
                                 .schedules =
                                     1u << SCHEDULE_1F1B | 1u << SCHEDULE_INTERLEAVED};
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
    p.schedules_on_request = json_has (&root, "schedules") ? 0 : 1u << SCHEDULE_GPIPE;
    for (size_t i = 0; i < N_MEMBERS; i++)
        TRY (read_member (&root, &members[i], &p, err));
    TRY (settle (&root, &p, err));
    TRY (read_constants (&memory, true, &p, notes, err));
    TRY (read_constants (&time, false, &p, notes, err));
    note_unknown (&root, notes);
    *out = p;
    return ST_OK;
}

/* ---- writing ---- */

static json_t *constants_json (struct workload_profile *p, bool memory)
{
    json_t *part = json_object ();

    for (int i = 0; i < N_CONSTANTS; i++)
        if (constants[i].memory == memory)
            json_object_set_new (
                part, constants[i].key,
                json_real (*workload_constant_of (p, &constants[i]) / constants[i].unit));
    return part;
}

static json_t *modules_json (unsigned modules)
{
    struct workload_config c = {.recompute = RECOMPUTE_SELECTIVE,
                                .recompute_modules = modules};
    char text[WORKLOAD_RECOMPUTE_TEXT];

    return json_string (workload_recompute_text (&c, text));
}

static json_t *pace_json (const struct workload_pace *pace)
{
    return json_pack ("{s:s, s:s, s:f}", "model", pace->model, "precision",
                      workload_precision_name (pace->precision), "time_factor",
                      pace->factor);
}

static json_t *list_json (const struct member *m, struct workload_profile *p)
{
    json_t *list = json_array ();
    void *from = place (p, m->at);
    int n = m->n_at > 0 ? *(int *) place (p, m->n_at) : 0;
    unsigned long long bits = m->n_at > 0          ? 0
                              : m->kind == NUMBERS ? *(unsigned long long *) from
                                                   : *(unsigned *) from;

    for (int i = 0; i < n; i++)
        json_array_append_new (
            list, m->kind == NAMES   ? json_string (((char (*)[64]) from)[i])
                  : m->kind == PACES ? pace_json ((struct workload_pace *) from + i)
                                     : modules_json (((unsigned *) from)[i]));
    for (int i = 0; i < 64 && (m->kind != WORDS || m->words[i]); i++)
        if (bits >> i & 1)
            json_array_append_new (list, m->kind == WORDS     ? json_string (m->words[i])
                                         : m->kind == MODULES ? modules_json (1u << i)
                                                              : json_integer (i));
    return list;
}

static json_t *member_json (const struct member *m, struct workload_profile *p)
{
    void *from = place (p, m->at);

    switch (m->kind) {
    case FLAG:
        return json_boolean (*(bool *) from);
    case STAGE:
        return json_integer (*(int *) from);
    case WORD:
        return json_string (m->words[*(int *) from]);
    case EITHER:
        return json_string (m->words[*(bool *) from]);
    case NAME:
        return json_string (from);
    case PART:
        return constants_json (p, m->least == 1);
    default:
        return list_json (m, p);
    }
}

json_t *workload_profile_to_json (const struct workload_profile *p, const char *source)
{
    json_t *doc =
        json_pack ("{s:i, s:s, s:s}", "version", 1, "name", p->name, "source", source);
    struct workload_profile copy = *p;

    for (const struct member *m = members; m < members + N_MEMBERS; m++)
        if (!(m->if_any && *(char *) place (&copy, m->at) == '\0'))
            json_object_set_new (doc, m->key, member_json (m, &copy));
    return doc;
}
