/* What a row says of its job, its kernels and its framework's release. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* Words of sources for a precision.  The first of these that a cell has is of the products:
 * "bf16/fp32" multiplies in bf16, "fp32 (TF32)" in tf32. */
static const struct precision_word {
    const char *word;
    enum workload_precision precision;
} precision_words[] = {
    {"fp4", PREC_FP4},       {"fp8", PREC_FP8},    {"float8", PREC_FP8},
    {"e4m3", PREC_FP8},      {"e5m2", PREC_FP8},   {"bf16", PREC_BF16},
    {"bfloat16", PREC_BF16}, {"tf32", PREC_TF32},  {"fp16", PREC_FP16},
    {"float16", PREC_FP16},  {"half", PREC_FP16},  {"fp32", PREC_FP32},
    {"float32", PREC_FP32},  {"16", PREC_FP16},    {"32", PREC_FP32},
    {"amp", PREC_BF16},      {"mixed", PREC_BF16}, {"autocast", PREC_BF16},
    {"nf4", PREC_BF16},      {"int4", PREC_BF16},  {"4bit", PREC_BF16},
    {"4-bit", PREC_BF16},    {"int8", PREC_BF16},  {"8bit", PREC_BF16},
    {"8-bit", PREC_BF16}}; /* frozen weights: see there */

/* Does a precision's cell have the word, and not deny it, "bf16 (no fp8)"? */
static bool has (const char *s, const char *word)
{
    return calibrate_contains (s, word) && calibrate_says (s, word) != SAID_NO;
}

static bool has_word (const char *s, const char *const *words)
{
    while (*words && !has (s, *words))
        words++;
    return *words != NULL;
}

/* Mixed precision keeps weights and states in fp32, pure one nothing; Lightning's words for these
 * are "bf16-mixed" and "bf16-true". */
static bool read_precision (const char *s, struct calibrate_run *run)
{
    static const char *const mixed[] = {"amp",  "mixed",   "autocast",
                                        "fp32", "float32", NULL},
                             *const pure[] = {"true", "pure", NULL};
    size_t i = 0, n = COUNT_OF (precision_words);
    enum workload_precision *p = &run->job.precision;

    while (i < n && !has (s, precision_words[i].word))
        i++;
    *p = i < n && *s ? precision_words[i].precision : PREC_BF16;
    if (*p == PREC_BF16 || *p == PREC_FP16)
        run->states = has_word (s, pure)    ? STATES_PURE
                      : has_word (s, mixed) ? STATES_MIXED
                                            : STATES_USUAL;
    /* Losses in fp16 are scaled, and PyTorch's scaler takes no gradients of fp16 weights. */
    if (*p == PREC_FP16 && run->states == STATES_USUAL)
        run->states = STATES_MIXED;
    /* Which 16 bits nobody says: those that the GPUs have. */
    for (int k = 0; k < run->n_parts && *s && *p == PREC_BF16; k++)
        if (!calibrate_contains (s, "bf") && run->part[k].type->bf16_flop_per_s <= 0)
            *p = PREC_FP16;
    return i < n || *s == '\0';
}

/* key=true or key=false among the notes; false when it is something else. */
static bool read_choice (const struct row *r, const char *key, enum workload_choice *c)
{
    char value[8];

    if (!calibrate_note (r, key, value, sizeof value))
        return true;
    *c = strcmp (value, "true") == 0 ? CHOICE_YES : CHOICE_NO;
    return *c == CHOICE_YES || strcmp (value, "false") == 0;
}

/* Words of sources for attention; the first one found decides. */
static const struct attention_word {
    const char *word;
    enum workload_attention attention;
} attention_words[] = {{"flash_attentionv1", ATTENTION_FLASH1},
                       {"triton", ATTENTION_FLASH1},
                       {"flash", ATTENTION_FLASH},
                       {"math", ATTENTION_UNFUSED},
                       {"sdpa", ATTENTION_FLASH},
                       {"xformers", ATTENTION_FLASH},
                       {"unfused", ATTENTION_UNFUSED},
                       {"fused", ATTENTION_FUSED},
                       {"torch", ATTENTION_UNFUSED},
                       {"eager", ATTENTION_UNFUSED},
                       {"dot_product", ATTENTION_UNFUSED},
                       {"naive", ATTENTION_UNFUSED},
                       {"vanilla", ATTENTION_UNFUSED},
                       {"standard", ATTENTION_UNFUSED},
                       {"cudnn", ATTENTION_FLASH},
                       {"flex", ATTENTION_FLASH},
                       {"ring", ATTENTION_FLASH},
                       {"ulysses", ATTENTION_FLASH},
                       {"efficient", ATTENTION_FLASH},
                       {"fa2", ATTENTION_FLASH},
                       {"fa3", ATTENTION_FLASH},
                       {"fa4", ATTENTION_FLASH},
                       {"splash", ATTENTION_FLASH},
                       {"pallas", ATTENTION_FLASH},
                       {"unsloth", ATTENTION_FLASH},
                       {"aiter", ATTENTION_FLASH},
                       {"composable", ATTENTION_FLASH},
                       {"transformer engine", ATTENTION_FLASH},
                       {"local", ATTENTION_FUSED}};

/* Megatron's --attention-backend: its "fused" is cuDNN's flash attention, and its own
 * paths without flash attention have a fused softmax. */
static const struct attention_word backend_words[] = {{"flash", ATTENTION_FLASH},
                                                      {"unfused", ATTENTION_FUSED},
                                                      {"fused", ATTENTION_FLASH},
                                                      {"local", ATTENTION_FUSED}};

/* Look a source's word up; an empty one says nothing, and without flash attention PyTorch's
 * operations are left where no other word stands there.  @return false if it is unknown */
static bool read_attention (const char *s, const struct attention_word *words, size_t n,
                            struct calibrate_run *run)
{
    size_t i = 0;

    while (i < n && calibrate_says (s, words[i].word) != SAID_YES)
        i++;
    if (i < n || calibrate_says (s, "flash") == SAID_NO) {
        run->job.attention = i < n ? words[i].attention : ATTENTION_UNFUSED;
        run->attention_said = true;
        return true;
    }
    return s[0] == '\0' || strcmp (s, "auto") == 0;
}

/* Is "CUDA graphs" an item of the notes, and nothing else of it? */
static bool says_graphs (const struct row *r)
{
    const char *notes = calibrate_cell (r, "notes");
    char item[CALIBRATE_ITEM], joined[CALIBRATE_JOINED];

    while (calibrate_next_item (&notes, item)) {
        calibrate_join (item, joined);
        if (text_has_word ("cudagraph cudagraphs withcudagraphs", joined))
            return true;
    }
    return false;
}

/* Do the notes say that there are no CUDA graphs? */
static bool denies_graphs (const struct row *r)
{
    const char *notes = calibrate_cell (r, "notes");

    return calibrate_says (notes, "CUDA graphs") == SAID_NO ||
           calibrate_says (notes, "CUDA graph") == SAID_NO;
}

/* Whole steps in a CUDA graph: Megatron's --cuda-graph-impl, "full_iteration" or "none"; its other
 * words capture parts of layers.  Who says no more than "CUDA graphs" captures what can be: dense
 * layers whole, of those with experts what surrounds them. */
static void read_captured (const struct row *r, struct calibrate_run *run)
{
    bool experts = run->model.experts > 0;
    char value[32];

    if (!calibrate_note (r, "cuda-graph-impl", value, sizeof value)) {
        if (denies_graphs (r))
            run->captured = CHOICE_NO;
        else if (says_graphs (r) && experts)
            run->captured_parts = true;
        else if (says_graphs (r))
            run->captured = CHOICE_YES;
        return;
    }
    if (strcmp (value, "full_iteration") == 0)
        run->captured = CHOICE_YES;
    else if (strcmp (value, "none") == 0)
        run->captured = CHOICE_NO;
    else
        run->captured_parts = true;
}

/* Experts that drop tokens: Megatron's --moe-expert-capacity-factor, or in a word.  They are padded
 * to their capacity unless the row says otherwise: then their tokens differ, as without one.
 * @return NULL, or why the row is skipped */
static const char *read_dropped (const struct row *r, struct calibrate_run *run)
{
    enum workload_choice padded = CHOICE_PROFILE;
    char value[32] = "";

    calibrate_note (r, "moe-expert-capacity-factor", value, sizeof value);
    run->expert_capacity = fmax (0.0, strtod (value, NULL)); /* "None" is none */
    if (!(run->expert_capacity <= CALIBRATE_CAPACITY_MOST))
        return "capacity of experts out of range";
    if (!read_choice (r, "moe-pad-expert-input-to-capacity", &padded))
        return "whether experts are padded is neither true nor false";
    run->drops_tokens = padded != CHOICE_NO &&
                        (calibrate_contains (calibrate_cell (r, "model"), "tokendrop") ||
                         calibrate_contains (calibrate_cell (r, "notes"), "token drop") ||
                         run->expert_capacity > 0.0);
    return NULL;
}

/* Who sends experts their tokens: Megatron's "flex" dispatchers once to every node and GPU. */
static const char *read_dispatcher (const struct row *r, struct calibrate_run *run)
{
    char value[32];

    if (!calibrate_note (r, "moe-token-dispatcher-type", value, sizeof value))
        return NULL;
    run->deduplicated = strcmp (value, "flex") == 0 ? CHOICE_YES : CHOICE_NO;
    return run->deduplicated == CHOICE_YES || strcmp (value, "alltoall") == 0 ||
                   strcmp (value, "allgather") == 0
               ? NULL
               : "dispatcher of tokens not understood";
}

/* The numbers that a cell begins with, up to a word behind them ("26.04-py3") or a time of day.
 * @return false where they are no release */
static bool take_release (const char *said, struct calibrate_run *run)
{
    size_t n = strspn (said, "v0123456789.-");

    if (strchr ("T ", said[n]) == NULL && (n == 0 || !strchr (".-", said[n - 1])))
        return false;
    while (n > 0 && said[n] && strchr (".-", said[n - 1]))
        n--;
    if (n >= sizeof run->release)
        return false;
    snprintf (run->release, sizeof run->release, "%.*s", (int) n, said);
    if (!workload_is_release (run->release))
        run->release[0] = '\0';
    return run->release[0] != '\0';
}

/* When the results of an MLPerf Training round ("MLPerf_Training_v3.0") were published. */
static void read_round (const char *source, struct calibrate_run *run)
{
    static const struct {
        const char *round, *date;
    } rounds[] = {{"v2.0", "2022-06"}, {"v2.1", "2022-11"}, {"v3.0", "2023-06"},
                  {"v3.1", "2023-11"}, {"v4.0", "2024-06"}, {"v4.1", "2024-11"},
                  {"v5.0", "2025-06"}, {"v5.1", "2025-11"}};

    for (size_t i = 0; i < COUNT_OF (rounds) && calibrate_contains (source, "mlperf");
         i++)
        if (calibrate_contains (source, rounds[i].round))
            snprintf (run->release, sizeof run->release, "%s", rounds[i].date);
}

/* The release that ran it: an image's tag ("nemo:26.04"), a column of its own, a date, the
 * container among the notes ("26.04.01 NeMo Container"), or the round of MLPerf that it is of. */
static void read_release (const struct row *r, struct calibrate_run *run)
{
    static const char *const columns[] = {"container", "framework_version", "date"};
    const char *notes = calibrate_cell (r, "notes"),
               *end = strstr (notes, " NeMo Container");
    const char *from = end;

    for (size_t i = 0; i < COUNT_OF (columns); i++) {
        const char *said = calibrate_cell (r, columns[i]), *tag = strrchr (said, ':');
        bool is_date = strcmp (columns[i], "date") == 0;

        if (take_release (tag && !is_date ? tag + 1 : said, run))
            return;
    }
    while (from && from > notes &&
           (isdigit ((unsigned char) from[-1]) || from[-1] == '.'))
        from--;
    if (from && end - from < (long) sizeof run->release)
        snprintf (run->release, sizeof run->release, "%.*s", (int) (end - from), from);
    else
        read_round (calibrate_cell (r, "source"), run);
}

/* What items of the notes, between commas or semicolons, say of operations that are one kernel:
 * PyTorch's compiler fuses them, but for rotary embeddings in complex numbers, eager mode none;
 * IBM's "fused kernels" (fms-acceleration's foak) and Liger's are written by hand.  The former's
 * loss works on fp32 copies of transformers' logits, FlashAttention's on the 16-bit logits
 * (flash_attn/losses/cross_entropy.py, inplace_backward), as Unsloth's does
 * (unsloth/kernels/cross_entropy_loss.py). */
static const struct fused_words {
    const char *begins, *contains; /* "": anything */
    enum workload_choice norm, mlp, rotary;
    double
        logit_bytes; /* with a loss whose gradient takes the logits' place; 0: not said */
} fused_words[] = {
    {"eager", "", CHOICE_NO, CHOICE_NO, CHOICE_PROFILE, 0},
    {"fused kernels", "", CHOICE_YES, CHOICE_PROFILE, CHOICE_YES, 8},
    {"fused ", "Norm", CHOICE_YES, CHOICE_PROFILE, CHOICE_PROFILE, 0},
    {"fused ", "MLP", CHOICE_PROFILE, CHOICE_YES, CHOICE_PROFILE, 0},
    {"fused ", "cross-entropy", CHOICE_PROFILE, CHOICE_PROFILE, CHOICE_PROFILE, 2},
    {"Liger kernel", "", CHOICE_YES, CHOICE_YES, CHOICE_YES, 0},
    {"unsloth", "", CHOICE_YES, CHOICE_YES, CHOICE_YES, 2},
};

static void take_choice (enum workload_choice said, enum workload_choice *c)
{
    if (said != CHOICE_PROFILE)
        *c = said;
}

static void set_compiled (struct calibrate_run *run)
{
    run->compiled = true;
    run->job.fused_norm = run->job.fused_mlp = CHOICE_YES;
}

/* "as before" among the notes: compiled, too, where the row before it was, unless they deny it. */
void calibrate_take_before (const struct row *r, const struct calibrate_run *before,
                            struct calibrate_run *run)
{
    const char *notes = calibrate_cell (r, "notes");

    if (before->compiled && before->row == run->row - 1 &&
        strcmp (before->source, run->source) == 0 &&
        calibrate_says (notes, "as before") == SAID_YES &&
        calibrate_says (notes, "compile") != SAID_NO &&
        !calibrate_says_word (notes, "eager"))
        set_compiled (run);
}

/* "compile", "torch.compile", "torch_compile=true": all of the item, as what follows may say when
 * or why not. */
static bool says_compiled (const char *item)
{
    char joined[CALIBRATE_JOINED];

    calibrate_join (item, joined);
    return text_has_word ("compile compiled compiletrue compileon torchcompile "
                          "torchcompiletrue torchcompileon torchcompileyes "
                          "torchcompileenabled withtorchcompile",
                          joined);
}

/* One item; a word is all of it unless more of them may follow ("fused kernels (foak)"). */
static void read_fused_item (const char *item, struct calibrate_run *run)
{
    run->fused_optimizer |=
        strcmp (item, "fused AdamW") == 0 || strcmp (item, "adamw_torch_fused") == 0;
    if (says_compiled (item))
        set_compiled (run);
    for (size_t i = 0; i < COUNT_OF (fused_words); i++) {
        const struct fused_words *w = &fused_words[i];
        size_t n = strlen (w->begins);
        bool alone = strpbrk (w->begins, " ") == NULL;

        if (strncasecmp (item, w->begins, n) != 0 || (alone && item[n] != '\0') ||
            !strstr (item, w->contains) || calibrate_denied (item, item, n))
            continue;
        take_choice (w->norm, &run->job.fused_norm);
        take_choice (w->mlp, &run->job.fused_mlp);
        take_choice (w->rotary, &run->facts.fused_rotary);
        run->logit_bytes = fmax (run->logit_bytes, w->logit_bytes);
    }
}

/* Of the Trainer's words for an optimizer, those for one kernel. */
static void read_optim (const struct row *r, struct calibrate_run *run)
{
    char optim[48] = "";

    calibrate_note (r, "optim", optim, sizeof optim);
    run->fused_optimizer |= strstr (optim, "fused") != NULL;
}

static void read_fused (const struct row *r, struct calibrate_run *run)
{
    const char *notes = calibrate_cell (r, "notes");
    char item[CALIBRATE_ITEM];

    while (calibrate_next_item (&notes, item))
        read_fused_item (item, run);
    if (calibrate_says (run->framework, "unsloth") == SAID_YES)
        read_fused_item ("unsloth", run);
}

/* DeepSpeed's words of what gradients travel in, and of how much is there at once, by the names
 * that a profile has for these. */
static const char *read_limits (const struct row *r, struct calibrate_facts *f)
{
    const struct {
        const char *key;
        double unit, *value;
    } limits[] = {{"live-parameters", 1.0, &f->live_params},
                  {"reduced-parameters", 1.0, &f->reduced_params},
                  {"bucket-gb", UNITS_GB, &f->bucket_bytes}};
    char word[32];
    double x;

    if (calibrate_note (r, "communication-data-type", word, sizeof word)) {
        f->reduced_bytes = strcmp (word, "fp32") == 0 ? 4.0 : 2.0;
        if (f->reduced_bytes < 4.0 && strcmp (word, "fp16") && strcmp (word, "bf16"))
            return "communication-data-type is not fp16, bf16 or fp32";
    }
    for (size_t i = 0; i < COUNT_OF (limits); i++) {
        if (!calibrate_note (r, limits[i].key, word, sizeof word))
            continue;
        *limits[i].value = text_number (word, &x) ? x * limits[i].unit : 0.0;
        if (!(*limits[i].value > 0.0 && *limits[i].value <= 1e12))
            return "a limit of parameters or buckets is out of range";
    }
    return NULL;
}

/* TorchTitan's asynchronous tensor parallelism: collectives in pieces beside the products.  A TPU
 * is none. */
static enum workload_choice says_pieces (const char *notes)
{
    static const char *const names[] = {"async tp", "asynchronous tp",
                                        "async tensor parallel",
                                        "asynchronous tensor parallel"};
    enum workload_choice said = CHOICE_PROFILE;

    for (const char *at = notes; *at && said != CHOICE_YES; at++)
        for (size_t i = 0; i < COUNT_OF (names); i++) {
            size_t n = calibrate_spelled (at, names[i]);
            bool whole = i >= 2 || !isalpha ((unsigned char) at[n]);

            if (n > 0 && whole)
                said = calibrate_denied (notes, at, n) ? CHOICE_NO : CHOICE_YES;
        }
    return said;
}

/* What notes say in one word.  @return NULL, or why the row is skipped */
static const char *read_facts (const struct row *r, struct calibrate_run *run)
{
    struct calibrate_facts *f = &run->facts;
    const struct {
        const char *key;
        enum workload_choice *choice;
    } facts[] = {{"fused-norm", &run->job.fused_norm},
                 {"fused-mlp", &run->job.fused_mlp},
                 {"gathered-logits", &run->job.gathered_logits},
                 {"overlap-grad-reduce", &f->data_overlap},
                 {"tp-comm-overlap", &f->tensor_overlap},
                 {"overlap-moe-expert-parallel-comm", &f->exchange_overlap},
                 {"grad-reduce-in-bf16", &f->half_gradients},
                 {"fp8-param-gather", &f->quantised_weights},
                 {"use-transformer-engine-op-fuser", &f->fused_experts},
                 {"fused-rotary", &f->fused_rotary},
                 {"fused-accumulation", &f->fused_accumulation},
                 {"overlap-comm", &f->reduce_overlap},
                 {"no-sync", &f->whole_gradients}};

    for (size_t i = 0; i < COUNT_OF (facts); i++)
        if (!read_choice (r, facts[i].key, facts[i].choice))
            return "a note that is true or false is neither";
    if (f->tensor_overlap == CHOICE_PROFILE)
        f->tensor_overlap = says_pieces (calibrate_cell (r, "notes"));
    return read_limits (r, f);
}

/* Kernels: of the attention, and what the notes say of others. */
static const char *read_kernels (const struct row *r, struct calibrate_run *run)
{
    const char *s = calibrate_cell (r, "attention");
    struct workload_job *j = &run->job;
    char backend[64] = "";

    read_fused (r, run);
    read_optim (r, run);
    calibrate_note (r, "attention-backend", backend, sizeof backend);
    j->attention = ATTENTION_FLASH;
    if (!read_attention (s, attention_words, COUNT_OF (attention_words), run))
        return calibrate_refuse (r, "attention", "flash, fused, unfused or eager");
    if (!read_attention (backend, backend_words, COUNT_OF (backend_words), run))
        return "attention-backend not understood";
    /* PyTorch's products about Megatron's own softmax, which --masked-softmax-fusion, its default,
     * fuses. */
    if (strcmp (s, "torch") == 0 &&
        calibrate_contains (calibrate_cell (r, "framework"), "megatron"))
        j->attention = ATTENTION_FUSED;
    if (calibrate_contains (s, "RMS kernel"))
        j->fused_norm = CHOICE_YES;
    return read_facts (r, run);
}

/* Is the word said, in any case, and not denied? */
static bool says (const char *s, const char *word)
{
    size_t n = strlen (word);

    for (const char *at = s; (at = strcasestr (at, word)); at += n)
        if (!calibrate_denied (s, at, n))
            return true;
    return false;
}

/* "LoRA" among prose; the ranks of latent attention, "q-lora-rank=1536", are none. */
static bool says_lora (const char *notes)
{
    static const char word[] = "lora";
    size_t n = sizeof word - 1;

    for (const char *s = notes; (s = strcasestr (s, word)); s += n) {
        bool rank = strspn (s + n, "-_") == 1 && strncasecmp (s + n + 1, "rank", 4) == 0,
             latent =
                 rank && s >= notes + 2 && strchr ("-_", s[-1]) && strchr ("qvQV", s[-2]);

        if (!latent && !calibrate_denied (notes, s, n))
            return true;
    }
    return false;
}

/* A column that says what is trained: all, or LoRA's adapters, and of these no two.
 * @return false: it is something else */
static bool read_tuning (const struct row *r, struct workload_job *j)
{
    static const char all[] =
        "full fullfinetuning fullfinetune fullft fullparameter fullparameters "
        "fullparameterfinetuning fft ft sft finetuning finetune pretraining pretrain "
        "training none no false off 0";
    const char *cell = calibrate_cell (r, "tuning");
    char first[CALIBRATE_JOINED], joined[CALIBRATE_JOINED];
    bool adapters = says_lora (cell), full;

    snprintf (first, sizeof first, "%.*s", (int) strcspn (cell, "(,;"), cell);
    calibrate_join (first, joined);
    full = text_has_word (all, joined) ||
           (!adapters && calibrate_says (cell, "lora") == SAID_NO);
    if (cell[0] == '\0')
        return true;
    j->lora = adapters; /* whatever a name or the notes have */
    return adapters ? !full && !calibrate_contains (cell, "full") &&
                          !calibrate_contains (cell, "dora")
                    : full;
}

static void read_sampling (const struct row *r, struct workload_job *j)
{
    static const char *const columns[] = {"model", "framework"};
    const char *notes = calibrate_cell (r, "notes"), *at = strstr (notes, "WTA-CRS");
    char dropout[32];
    double budget;

    j->lora = says_lora (notes);
    for (size_t i = 0; i < COUNT_OF (columns); i++)
        j->lora = j->lora || says_lora (calibrate_cell (r, columns[i]));
    if (calibrate_note (r, "lora-dropout", dropout, sizeof dropout))
        j->lora_dropout = strtod (dropout, NULL) > 0.0;
    if (at &&
        (sscanf (at, "WTA-CRS k/|D|=%lf", &budget) == 1 ||
         sscanf (at, "WTA-CRS %lf", &budget) == 1) &&
        budget > 0 && budget <= 1)
        j->wta_crs = budget;
}

/* What adapters leave frozen, bytes a weight: NF4 in blocks of 64 with a scale each, in fp32, or
 * with "double quantisation" in 8 bits and a second one for 256 of them (QLoRA, arXiv 2305.14314);
 * LLM.int8.  The first that the notes or the model's name say, or the precision. */
#define NF4 (.5 + 4. / 64)
#define NF4_DOUBLE (.5 + 1. / 64 + 4. / (64 * 256))
static const struct {
    const char *word;
    double bytes;
    bool precision; /* said of a precision alone */
} frozen_words[] = {{"nf4-dq", NF4_DOUBLE, false},
                    {"fp4-dq", NF4_DOUBLE, false},
                    {"double quant", NF4_DOUBLE, false},
                    {"nf4", NF4, false},
                    {"bnb.fp4", NF4, false},
                    {"in_4bit", NF4, false},
                    {"bnb-4bit", NF4, false},
                    {"4-bit base", NF4, false},
                    {"4-bit weight", NF4, false},
                    {"int4", NF4, true},
                    {"4bit", NF4, true},
                    {"4-bit", NF4, true},
                    {"bnb.int8", 1, false},
                    {"in_8bit", 1, false},
                    {"8-bit base", 1, false},
                    {"8-bit weight", 1, false},
                    {"int8", 1, true},
                    {"8bit", 1, true},
                    {"8-bit", 1, true},
                    {"qlora", NF4_DOUBLE, false}};

static const char *read_frozen (const struct row *r, struct workload_job *j)
{
    static const char *const columns[] = {"precision", "model", "notes", "framework",
                                          "tuning"};

    for (size_t i = 0; i < COUNT_OF (frozen_words); i++)
        for (size_t k = 0; k < (frozen_words[i].precision ? 1 : COUNT_OF (columns)); k++)
            if (j->frozen_bytes <= 0.0 &&
                says (calibrate_cell (r, columns[k]), frozen_words[i].word))
                j->frozen_bytes = frozen_words[i].bytes;
    if (calibrate_contains (calibrate_cell (r, "precision"), "nf4") ||
        calibrate_contains (calibrate_cell (r, "model"), "bnb-4bit"))
        j->lora = true; /* which is for nothing else */
    return j->frozen_bytes > 0.0 && !j->lora
               ? "weights in 4 or 8 bits without adapters (LoRA) are not supported"
               : NULL;
}

const char *calibrate_read_job (const struct row *r, struct calibrate_run *run)
{
    static const char *const optimizer_words[] = {"adam", "optim", "lion", NULL};
    struct workload_job *j = &run->job;
    char precision[64] = "", dropout[32];

    read_release (r, run);
    j->seq = calibrate_whole (r, "seq", 0);
    if (j->seq < 1)
        return "seq unknown";
    snprintf (precision, sizeof precision, "%.*s", (int) sizeof precision - 1,
              calibrate_cell (r, "precision"));
    if (!precision[0])
        calibrate_note (r, "precision", precision, sizeof precision);
    run->precision_said = precision[0] != '\0';
    run->dropout_said = calibrate_note (r, "hidden-dropout", dropout, sizeof dropout);
    if (!read_precision (precision, run) ||
        has_word (precision, optimizer_words)) /* their bits */
        return calibrate_refuse (r, "precision",
                                 "bf16, fp16, fp8, fp4, fp32, tf32 or amp, no optimizer");
    run->chunked_loss =
        calibrate_says (calibrate_cell (r, "notes"), "chunked cross-entropy") == SAID_YES;
    run->fused_loss =
        calibrate_contains (calibrate_cell (r, "notes"), "lmhead-chunks=") ||
        calibrate_says (calibrate_cell (r, "notes"), "liger") == SAID_YES;
    read_captured (r, run);
    TRY_ROW (read_dropped (r, run));
    TRY_ROW (read_dispatcher (r, run));
    read_sampling (r, j);
    if (!read_tuning (r, j))
        return calibrate_refuse (r, "tuning", "full, LoRA or QLoRA");
    TRY_ROW (read_frozen (r, j));
    TRY_ROW (calibrate_read_optimizer (r, run));
    return read_kernels (r, run);
}
