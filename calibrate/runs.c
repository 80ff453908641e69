/* Runs files: a row of published measurements into a model, a job and a configuration.
 *
 * Sources state what they state.  What a row leaves out is taken from its model's family
 * (by name, else by its parameter count), from `key=value` pairs in its notes under
 * Megatron's option names, and from the contract's defaults for empty cells. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"

static bool read_precision (const char *s, enum workload_precision *p)
{
    bool tf32 = calibrate_contains (s, "tf32");

    /* Automatic mixed precision keeps fp32 weights and states. */
    if (calibrate_contains (s, "amp") || (calibrate_contains (s, "fp32") && !tf32))
        *p = PREC_FP32;
    else if (*s == '\0' || calibrate_contains (s, "bf16"))
        *p = PREC_BF16;
    else if (calibrate_contains (s, "fp16"))
        *p = PREC_FP16;
    else if (calibrate_contains (s, "fp8"))
        *p = PREC_FP8;
    else if (calibrate_contains (s, "fp4"))
        *p = PREC_FP4;
    else if (tf32)
        *p = PREC_TF32;
    else
        return false;
    return true;
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
                       {"flash", ATTENTION_FLASH},
                       {"triton", ATTENTION_FLASH},
                       {"sdpa", ATTENTION_FLASH},
                       {"xformers", ATTENTION_FLASH},
                       {"unfused", ATTENTION_UNFUSED},
                       {"fused", ATTENTION_FUSED},
                       {"torch", ATTENTION_UNFUSED},
                       {"eager", ATTENTION_UNFUSED},
                       {"local", ATTENTION_FUSED}};

/* Megatron's --attention-backend: its "fused" is cuDNN's flash attention, and its own
 * paths without flash attention have a fused softmax. */
static const struct attention_word backend_words[] = {{"flash", ATTENTION_FLASH},
                                                      {"unfused", ATTENTION_FUSED},
                                                      {"fused", ATTENTION_FLASH},
                                                      {"local", ATTENTION_FUSED}};

/* Look a source's word up; an empty one says nothing.  @return false if it is unknown */
static bool read_attention (const char *s, const struct attention_word *words, size_t n,
                            struct calibrate_run *run)
{
    for (size_t i = 0; i < n; i++)
        if (calibrate_contains (s, words[i].word)) {
            run->job.attention = words[i].attention;
            run->attention_said = true;
            return true;
        }
    return s[0] == '\0' || strcmp (s, "auto") == 0;
}

/* Whole steps in a CUDA graph: Megatron's --cuda-graph-impl, "full_iteration" or "none"; its other
 * words capture parts, which says nothing of the rest. */
static void read_captured (const struct row *r, struct calibrate_run *run)
{
    char value[32];

    if (!calibrate_note (r, "cuda-graph-impl", value, sizeof value))
        return;
    if (strcmp (value, "full_iteration") == 0)
        run->captured = CHOICE_YES;
    else if (strcmp (value, "none") == 0)
        run->captured = CHOICE_NO;
}

/* The release that ran it: a column of its own, an image's tag ("nemo:26.04"), a date, or the
 * container among the notes ("26.04.01 NeMo Container"). */
static void read_release (const struct row *r, struct calibrate_run *run)
{
    static const char *const columns[] = {"framework_version", "container", "date"};
    const char *notes = calibrate_cell (r, "notes"),
               *end = strstr (notes, " NeMo Container");
    const char *from = end;

    for (size_t i = 0; i < COUNT_OF (columns); i++) {
        const char *said = calibrate_cell (r, columns[i]), *tag = strrchr (said, ':');

        said = tag ? tag + 1 : said;
        if (workload_is_release (said) && strlen (said) < sizeof run->release) {
            snprintf (run->release, sizeof run->release, "%s", said);
            return;
        }
    }
    while (from && from > notes &&
           (isdigit ((unsigned char) from[-1]) || from[-1] == '.'))
        from--;
    if (from && end - from < (long) sizeof run->release)
        snprintf (run->release, sizeof run->release, "%.*s", (int) (end - from), from);
}

/* Kernels: of the attention, and what the notes say of norms, MLP and logits. */
static const char *read_kernels (const struct row *r, struct calibrate_run *run)
{
    const char *s = calibrate_cell (r, "attention");
    struct workload_job *j = &run->job;
    char backend[64] = "";

    calibrate_note (r, "attention-backend", backend, sizeof backend);
    j->attention = ATTENTION_FLASH;
    if (!read_attention (s, attention_words, COUNT_OF (attention_words), run) ||
        !read_attention (backend, backend_words, COUNT_OF (backend_words), run))
        return "attention not understood";
    if (calibrate_contains (s, "RMS kernel"))
        j->fused_norm = CHOICE_YES;
    if (!read_choice (r, "fused-norm", &j->fused_norm) ||
        !read_choice (r, "fused-mlp", &j->fused_mlp) ||
        !read_choice (r, "gathered-logits", &j->gathered_logits))
        return "a kernel's note is neither true nor false";
    if (!read_choice (r, "overlap-moe-expert-parallel-comm", &run->exchange_overlap))
        return "the overlap of experts' all-to-alls is neither true nor false";
    return NULL;
}

static void read_sampling (const struct row *r, struct workload_job *j)
{
    const char *notes = calibrate_cell (r, "notes"), *at = strstr (notes, "WTA-CRS");
    double budget;

    j->lora = calibrate_contains (notes, "LoRA") ||
              calibrate_contains (calibrate_cell (r, "model"), "lora");
    if (at &&
        (sscanf (at, "WTA-CRS k/|D|=%lf", &budget) == 1 ||
         sscanf (at, "WTA-CRS %lf", &budget) == 1) &&
        budget > 0 && budget <= 1)
        j->wta_crs = budget;
}

/* "16 B/parameter" among the notes; 0: they do not say. */
static double said_state_bytes (const char *notes)
{
    const char *at = strstr (notes, " B/parameter");
    double bytes = 0.0;

    while (at && at > notes && (isdigit ((unsigned char) at[-1]) || at[-1] == '.'))
        at--;
    if (at)
        bytes = strtod (at, NULL);
    if (!at && calibrate_contains (notes, "8-bit Adam") &&
        !calibrate_contains (notes, "no 8-bit Adam"))
        bytes = 6.0; /* 16-bit weights and gradients, two moments of a byte */
    /* Moments are paged out, and a layer's gradients go as soon as it has stepped. */
    if (!at && calibrate_contains (notes, "paged 8-bit") &&
        calibrate_contains (notes, "fused in backward"))
        bytes = 2.0;
    return bytes >= 2.0 && bytes <= 64.0 ? bytes : 0.0;
}

/* A batch that nobody states, from the measured step and tokens a second; 0: not measured.  Ranks
 * of one replica have whole sequences. */
static int implied_batch (const struct row *r, const struct calibrate_run *run)
{
    double step_s, tokens_per_s, batch;

    if (!calibrate_stated (r, "iter_time_s", 0, &step_s) ||
        !calibrate_stated (r, "tokens_per_s_per_gpu", 0, &tokens_per_s))
        return 0;
    batch = step_s * tokens_per_s * run->gpus / fmax (1, run->job.seq);
    return batch >= 0.5 && batch < 1 << 30 ? (int) lround (batch) : 0;
}

static const char *read_job (const struct row *r, struct calibrate_run *run)
{
    struct workload_job *j = &run->job;

    j->seq = calibrate_whole (r, "seq", 0);
    j->global_batch = calibrate_whole (r, "global_batch", implied_batch (r, run));
    if (j->seq < 1)
        return "seq unknown";
    if (j->global_batch < 1)
        return "global_batch unknown";
    run->precision_said = calibrate_cell (r, "precision")[0] != '\0';
    if (!read_precision (calibrate_cell (r, "precision"), &j->precision))
        return "precision not supported";
    run->chunked_loss =
        calibrate_contains (calibrate_cell (r, "notes"), "chunked cross-entropy");
    run->fused_loss =
        calibrate_contains (calibrate_cell (r, "notes"), "lmhead-chunks=") ||
        calibrate_contains (calibrate_cell (r, "notes"), "liger");
    read_captured (r, run);
    run->state_bytes = said_state_bytes (calibrate_cell (r, "notes"));
    if (calibrate_contains (calibrate_cell (r, "notes"), "with CPU offload") ||
        calibrate_contains (calibrate_cell (r, "notes"), "and CPU offload") ||
        calibrate_contains (calibrate_cell (r, "notes"), "offloads to host memory"))
        return "offloading to the host is not supported";
    if (calibrate_contains (calibrate_cell (r, "notes"), "quant=bnb") ||
        calibrate_contains (calibrate_cell (r, "notes"), "QLoRA"))
        return "quantised weights are not supported";
    read_sampling (r, j);
    return read_kernels (r, run);
}

/* ---- the configuration ---- */

/* Megatron's list, "[layernorm moe_act]"; a recipe may name modules that its model has not. */
static bool read_modules (char *list, const struct workload_model *m,
                          struct workload_config *c)
{
    size_t n = strlen (list);

    if (n < 2 || list[0] != '[' || list[n - 1] != ']')
        return workload_modules_parse (list, &c->recompute_modules);
    list[n - 1] = '\0';
    if (list[1] && !workload_modules_parse (list + 1, &c->recompute_modules))
        return false;
    c->recompute_modules &= workload_modules_of (m);
    if (c->recompute_modules == 0)
        c->recompute = RECOMPUTE_NONE;
    return true;
}

static bool read_recompute (const struct row *r, const struct workload_model *m,
                            struct workload_config *c)
{
    const char *s = calibrate_cell (r, "recompute");
    int layers = calibrate_note_int (r, "recompute-num-layers", 0);
    char method[64] = "", word[WORKLOAD_RECOMPUTE_TEXT],
         list[WORKLOAD_RECOMPUTE_TEXT] = "";
    size_t n = strcspn (s, "(");

    /* "selective (per op)": what the brackets say is the framework's way. */
    while (n > 0 && s[n - 1] == ' ')
        n--;
    snprintf (word, sizeof word, "%.*s", (int) n, s);
    if (!workload_recompute_parse (*s ? word : "selective", c))
        return false;
    if (c->recompute == RECOMPUTE_SELECTIVE && c->recompute_modules == 0 &&
        calibrate_note (r, "recompute-modules", list, sizeof list) &&
        !read_modules (list, m, c))
        return false;
    /* Megatron's block method recomputes so many layers of a stage, its uniform method all
     * of them in groups. */
    calibrate_note (r, "recompute-method", method, sizeof method);
    if (c->recompute == RECOMPUTE_FULL && strcmp (method, "block") == 0 && layers > 0)
        c->recompute_layers = layers;
    return true;
}

static bool read_schedule (const struct row *r, struct workload_config *c)
{
    static const struct {
        const char *word;
        enum workload_schedule s;
    } words[] = {{"1f1b-interleaved", SCHEDULE_INTERLEAVED},
                 {"1f1b", SCHEDULE_1F1B},
                 {"gpipe", SCHEDULE_GPIPE},
                 {"zero-bubble", SCHEDULE_ZB1P},
                 {"zbb", SCHEDULE_ZB1P},
                 {"zb1p", SCHEDULE_ZB1P},
                 {"zb2p", SCHEDULE_ZB2P},
                 {"zbv", SCHEDULE_ZBV},
                 {"v-half", SCHEDULE_V_HALF},
                 {"v-min", SCHEDULE_V_MIN}};
    const char *said = strstr (calibrate_cell (r, "notes"), "schedule=");

    size_t i = 0, n = COUNT_OF (words);

    c->schedule = c->deg.pp > 1 && c->deg.vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    while (said && i < n &&
           strncmp (said + 9, words[i].word, strlen (words[i].word)) != 0)
        i++;
    if (i == n)
        return false;
    if (said)
        c->schedule = words[i].s;
    /* The file's vpp is what the tool was given; a chunk more is no other memory. */
    if (c->schedule != SCHEDULE_INTERLEAVED)
        c->deg.vpp = workload_default_vpp (c->schedule);
    return true;
}

static const char *read_degrees (const struct row *r, struct calibrate_run *run)
{
    struct workload_degrees *d = &run->config.deg;
    long long rest;
    int dp;

    d->tp = calibrate_whole (r, "tp", 1);
    d->pp = calibrate_whole (r, "pp", 1);
    d->cp = calibrate_whole (r, "cp", 1);
    d->ep = calibrate_whole (r, "ep", 1);
    d->vpp = calibrate_whole (r, "vpp", 1);
    d->etp = calibrate_note_int (r, "expert-tensor-parallel-size", d->tp);
    if (d->tp < 1 || d->pp < 1 || d->cp < 1 || d->ep < 1 || d->vpp < 1 || d->etp < 1)
        return "a degree is not a whole number";
    rest = (long long) d->tp * d->pp;
    if (rest <= run->gpus)
        rest *= d->cp;
    dp = calibrate_whole (r, "dp", 0);
    if (calibrate_cell (r, "dp")[0] != '\0' && dp < 1)
        return "dp is not a whole number";
    /* A pipeline is no default where the other degrees leave room for one. */
    if (calibrate_cell (r, "pp")[0] == '\0' && dp > 0 && rest * dp < run->gpus &&
        (long long) d->ep * rest * dp != run->gpus)
        return "pp unknown: the other degrees do not make up gpus";
    /* The GPUs are what is certain: some sources' dp counts cp too, or less. */
    if (run->gpus % rest != 0)
        return "tp x pp x cp does not divide gpus";
    d->dp = (int) (run->gpus / rest);
    /* Megatron's recipes with more expert ranks than dp x cp leave experts whole. */
    if (d->ep > 1 && (long long) d->dp * d->cp % d->ep != 0 &&
        calibrate_note_int (r, "expert-tensor-parallel-size", 0) == 0)
        d->etp = 1;
    return NULL;
}

static const char *read_config (const struct row *r, struct calibrate_run *run)
{
    struct workload_config *c = &run->config;
    const char *why = read_degrees (r, run), *sp = calibrate_cell (r, "sp");

    if (why)
        return why;
    c->micro_batch = calibrate_whole (r, "micro_batch", 1);
    c->zero = calibrate_whole (r, "zero", 0);
    run->zero_said = calibrate_cell (r, "zero")[0] != '\0';
    run->micro_batch_said = calibrate_cell (r, "micro_batch")[0] != '\0';
    if (c->micro_batch < 1)
        return "micro_batch is not a whole number";
    if (c->zero < 0 || c->zero > 3)
        return "zero is not 0 to 3";
    if (sp[0] != '\0' && strcmp (sp, "0") != 0 && strcmp (sp, "1") != 0)
        return "sp is neither 0 nor 1";
    run->sequence_parallel_said = sp[0] != '\0';
    c->sequence_parallel = c->deg.tp > 1 && sp[0] == '1';
    run->recompute_said = calibrate_cell (r, "recompute")[0] != '\0';
    c->optimizer_bytes = calibrate_note_int (r, "optimizer-bytes", 0);
    if (c->optimizer_bytes < 0 || c->optimizer_bytes > WORKLOAD_OPTIMIZER_BYTES_MAX)
        return "optimizer-bytes is out of range";
    if (!read_recompute (r, &run->model, c))
        return "recompute not supported";
    if (!read_schedule (r, c))
        return "schedule not understood";
    if (run->model.experts == 0)
        c->deg.etp = c->deg.tp;
    return NULL;
}

/* ---- what was measured ---- */

static const char *read_measured (const struct row *r, struct calibrate_run *run)
{
    const char *oom = calibrate_cell (r, "oom");
    char value[64];

    run->static_bytes = NAN;
    run->oom = -1;
    if (!calibrate_stated (r, "iter_time_s", NAN, &run->iter_time_s))
        return "iter_time_s is not a positive number";
    if (!calibrate_stated (r, "peak_mem_gb", NAN, &run->peak_bytes))
        return "peak_mem_gb is not a positive number";
    run->peak_bytes *= UNITS_GIB;
    if (calibrate_note (r, "alloc_bytes", value, sizeof value) &&
        strtod (value, NULL) > 0)
        run->static_bytes = strtod (value, NULL);
    if (oom[0] != '\0' && strcmp (oom, "0") != 0 && strcmp (oom, "1") != 0)
        return "oom is neither 0 nor 1";
    if (oom[0] != '\0')
        run->oom = oom[0] == '1';
    return NULL;
}

/* ---- rows together ---- */

static const char *read_row (const struct row *r, struct calibrate_run *run)
{
    const char *why = r->table->found[r->index] == r->table->columns
                          ? calibrate_read_model (r, &run->model)
                          : "more or fewer cells than the header";

    snprintf (run->source, sizeof run->source, "%.63s", calibrate_cell (r, "source"));
    snprintf (run->framework, sizeof run->framework, "%.63s",
              calibrate_cell (r, "framework"));
    read_release (r, run);
    if (!why)
        why = calibrate_read_machines (r, run);
    if (!why)
        why = read_job (r, run);
    if (!why)
        why = read_config (r, run);
    if (!why && workload_job_check (&run->model, &run->job, NULL) != ST_OK)
        why = "seq does not fit the model";
    if (!why &&
        workload_config_check (&run->model, &run->job, &run->config, NULL) != ST_OK)
        why = "degrees or batch do not divide";
    if (!why)
        why = calibrate_read_layers (r, run);
    return why ? why : read_measured (r, run);
}

void calibrate_count_reason (struct calibrate_reason *list, int *n, const char *why,
                             int row)
{
    char reason[sizeof list->reason];
    int i = 0;

    snprintf (reason, sizeof reason, "%s", why);
    while (i < *n && strcmp (list[i].reason, reason) != 0)
        i++;
    if (i == CALIBRATE_REASONS_MAX)
        i--; /* the last stands for all others */
    if (i == *n) {
        list[i] = (struct calibrate_reason){.first_row = row};
        memcpy (list[i].reason, reason, sizeof reason);
        ++*n;
    }
    list[i].count++;
}

static enum status assume_framework (struct calibrate_runs *runs, struct error *err)
{
    struct calibrate_shelf shelf;
    struct workload_profile p;

    TRY (calibrate_shelf_open (&shelf, err));
    for (int i = 0; i < runs->n; i++) {
        calibrate_shelf_find (&shelf, &runs->run[i], &p);
        calibrate_assume (&runs->run[i], &p);
    }
    calibrate_shelf_close (&shelf);
    return ST_OK;
}

/* The rows of a table, which is taken over. */
static enum status read_table (const char *path, struct csv_table *table,
                               struct calibrate_runs *out, struct error *err)
{
    struct calibrate_runs runs = {.table = *table};
    struct row r = {.table = &runs.table};
    enum status st = calibrate_check_columns (path, &runs, err);

    if (st == ST_OK &&
        !(runs.run = calloc ((size_t) runs.table.rows + 1, sizeof *runs.run)))
        st = err_nomem (err);
    for (r.index = 0; r.index < runs.table.rows && st == ST_OK; r.index++) {
        struct calibrate_run *run = &runs.run[runs.n];
        const char *why;

        memset (run, 0, sizeof *run);
        run->row = r.index;
        why = read_row (&r, run);
        if (!why) {
            runs.n++;
            continue;
        }
        free (run->layers);
        calibrate_count_reason (runs.skipped, &runs.n_skipped, why, r.index);
    }
    if (st == ST_OK && runs.n == 0) {
        struct text why = {0};

        for (int i = 0; i < runs.n_skipped; i++)
            text_add (&why, "%s%d %s", i ? ", " : ": ", runs.skipped[i].count,
                      runs.skipped[i].reason);
        st = err_set (err, ST_INVALID, "%s: no row is left of %d%s", file_title (path),
                      runs.table.rows, text_str (&why));
        text_free (&why);
    }
    if (st == ST_OK)
        st = assume_framework (&runs, err);
    if (st == ST_OK)
        *out = runs;
    else
        calibrate_runs_release (&runs);
    return st;
}

enum status calibrate_runs_read (const char *path, struct calibrate_runs *out,
                                 struct error *err)
{
    struct csv_table table;

    TRY (csv_table_read (path, &table, err));
    return read_table (path, &table, out, err);
}

enum status calibrate_runs_parse (const char *name, const char *data, size_t len,
                                  struct calibrate_runs *out, struct error *err)
{
    struct csv_table table;

    TRY (csv_table_parse (name, data, len, &table, err));
    return read_table (name, &table, out, err);
}

void calibrate_runs_release (struct calibrate_runs *r)
{
    for (int i = 0; i < r->n; i++)
        free (r->run[i].layers);
    free (r->run);
    csv_table_release (&r->table);
    *r = (struct calibrate_runs){0};
}
