/* The row of a runs file that facts and a log's run make. */
#include "jobs/jobs_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/stats.h"
#include "base/units.h"

/* The columns of a runs file, JOBS_COLUMNS words. */
static const char columns[] =
    "source model params_b layers hidden heads kv_heads ffn vocab seq gpu gpu_mem_gb "
    "gpus gpus_per_node inter_node_gbps tp pp vpp dp cp ep sp zero micro_batch "
    "global_batch precision attention recompute iter_time_s tokens_per_s_per_gpu "
    "tflops_per_gpu mfu peak_mem_gb oom notes framework";

/* Facts that a row has among its notes (docs/runs.md). */
static const char noted[] =
    "swiglu normalization untie-embeddings-and-output-weights disable-bias-linear "
    "hidden-dropout position-embedding-type kv-channels transformer-impl num-experts "
    "mtp-num-layers moe-router-topk moe-ffn-hidden-size moe-layer-freq "
    "moe-shared-expert-intermediate-size expert-tensor-parallel-size "
    "multi-latent-attention q-lora-rank kv-lora-rank qk-pos-emb-head-dim qk-head-dim "
    "v-head-dim attention-backend overlap-moe-expert-parallel-comm "
    "decoder-first-pipeline-num-layers decoder-last-pipeline-num-layers schedule "
    "optimizer-bytes optim offload shard use-lora lora-dropout frozen-weights "
    "num-distributed-optimizer-instances fused-norm "
    "fused-mlp fused-rotary fused-accumulation overlap-grad-reduce tp-comm-overlap "
    "overlap-comm communication-data-type live-parameters reduced-parameters bucket-gb "
    "grad-reduce-in-bf16 fp8-param-gather cuda-graph-impl "
    "use-transformer-engine-op-fuser moe-token-dispatcher-type "
    "moe-expert-capacity-factor moe-pad-expert-input-to-capacity";

void jobs_header_text (struct text *out)
{
    for (const char *c = columns; *c; c++)
        text_add_mem (out, *c == ' ' ? "," : c, 1);
    text_add (out, "\n");
}

enum status jobs_row_text (const struct jobs_job *j, struct text *out, struct error *err)
{
    char *row = NULL;
    size_t len = 0;
    FILE *f = open_memstream (&row, &len);

    if (!f)
        return err_nomem (err);
    for (int i = 0; i < JOBS_COLUMNS; i++) {
        if (i > 0)
            fputc (',', f);
        csv_write_cell (f, j->cell[i] ? j->cell[i] : "");
    }
    if (fclose (f) != 0) {
        free (row);
        return err_nomem (err);
    }
    text_add (out, "%s\n", row);
    free (row);
    return out->failed ? err_nomem (err) : ST_OK;
}

/* ---- facts that follow ---- */

static void take_given (struct jobs_reading *r, const char *name, int given)
{
    long said = jobs_int (r, name, given);

    if (given <= 0)
        return;
    if (said != given)
        notes_add (r->notes,
                   "%s is %ld by the files and %d by the command line: the files "
                   "hold",
                   name, said, given);
    jobs_default_int (r, name, given);
}

/* The product of degrees; 0: one of them is no number. */
static long ranks (const struct jobs_reading *r)
{
    long tp = jobs_int (r, "tp", 1), pp = jobs_int (r, "pp", 1),
         cp = jobs_int (r, "cp", 1);

    if (tp < 1 || pp < 1 || cp < 1 || tp > 1 << 20 || pp > 1 << 20 || cp > 1 << 20)
        return 0;
    return tp * pp * cp <= 1 << 30 ? tp * pp * cp : 0;
}

/* What NCCL printed: as many ranks as its largest communicator there are at least. */
static void take_nccl (struct jobs_reading *r, const struct jobs_run *run)
{
    long said = jobs_int (r, "gpus", 0), ranks = run ? run->nccl_ranks : 0,
         nodes = run ? run->nccl_nodes : 0;

    if (ranks < 2)
        return;
    if (nodes > 0 && ranks % nodes == 0)
        jobs_default_int (r, "gpus_per_node", ranks / nodes);
    if (said == 0)
        notes_add (r->notes,
                   "the GPUs are not stated: %ld, as NCCL's largest communicator has",
                   ranks);
    else if (said < ranks)
        notes_add (
            r->notes,
            "%s: NCCL has a communicator of %ld ranks, the files say %ld GPUs: the "
            "files hold",
            file_title (r->file[run->file]), ranks, said);
    jobs_default_int (r, "gpus", ranks);
}

/* Replicas by the batch, where all of it is stated; 0: it is not. */
static long replicas (const struct jobs_reading *r)
{
    const struct jobs_fact *said = jobs_find (r, "accumulation");
    long global = jobs_int (r, "global_batch", 0), micro = jobs_int (r, "micro_batch", 0),
         steps = jobs_int (r, "accumulation", 0), each = micro * steps;

    if (jobs_int (r, "dp", 0) > 0)
        return jobs_int (r, "dp", 0);
    return said && said->file >= 0 && each > 0 && global % each == 0 ? global / each : 0;
}

static void find_gpus (struct jobs_reading *r, const struct jobs_given *given,
                       const struct jobs_run *run)
{
    long nodes = jobs_int (r, "nodes", 0), each = jobs_int (r, "gpus_per_node", 0),
         dp = replicas (r), rest = ranks (r);

    take_given (r, "gpus_per_node", given->gpus_per_node);
    if (nodes > 0 && each > 0 && nodes * each <= 1 << 24) {
        if (jobs_int (r, "gpus", nodes * each) != nodes * each)
            notes_add (r->notes,
                       "%ld nodes of %ld GPUs are stated and %ld GPUs: the latter hold",
                       nodes, each, jobs_int (r, "gpus", 0));
        jobs_default_int (r, "gpus", nodes * each);
    }
    take_given (r, "gpus", given->gpus);
    if (dp > 0 && rest > 0 && dp * rest <= 1 << 24)
        jobs_default_int (r, "gpus", dp * rest);
    take_nccl (r, run);
    if (given->file_gpus > 0)
        jobs_default_int (r, "gpus", given->file_gpus);
    if (given->gpu) {
        jobs_override (r, "gpu", given->gpu);
        jobs_forget (r, "gpu_mem_gb");
    } else if (given->file_gpu)
        jobs_default (r, "gpu", given->file_gpu);
}

/* dp by the GPUs, which are certain; then batches from each other. */
static void find_batch (struct jobs_reading *r)
{
    long gpus = jobs_int (r, "gpus", 0), rest = ranks (r), dp = jobs_int (r, "dp", 0),
         micro = jobs_int (r, "micro_batch", 0), steps = jobs_int (r, "accumulation", 0),
         own;

    if (gpus > 0 && rest > 0 && gpus % rest == 0) {
        own = gpus / rest;
        if (dp > 0 && dp != own)
            notes_add (r->notes,
                       "dp is %ld by the files, and %ld GPUs leave %ld: these "
                       "hold",
                       dp, gpus, own);
        jobs_forget (r, "dp");
        jobs_default_int (r, "dp", dp = own);
    }
    if (dp <= 0 || dp > 1 << 24 || micro > 1 << 20 || steps > 1 << 20)
        return;
    own = jobs_int (r, "global_batch", 0);
    if (jobs_find (r, "global_batch")) {
        if (micro == 0 && steps > 0 && own % (dp * steps) == 0 && own > 0)
            jobs_default_int (r, "micro_batch", own / (dp * steps));
    } else if (micro > 0 && steps > 0 && dp * micro <= (1 << 30) / steps)
        jobs_default_int (r, "global_batch", dp * micro * steps);
    else if (micro > 0) {
        notes_add (r->notes,
                   "the global batch is not stated: %ld, one micro-batch a rank",
                   dp * micro);
        jobs_default_int (r, "global_batch", dp * micro);
    }
}

/* ---- what was measured ---- */

/* The first line of several is of a cold start. */
static int sorted (const struct jobs_samples *samples, double **from)
{
    int skip = samples->n > 1;

    *from = samples->x + skip;
    stats_sort (*from, samples->n - skip);
    return samples->n - skip;
}

static void set_number (struct jobs_reading *r, const char *name, const char *format,
                        double value)
{
    char text[48];

    snprintf (text, sizeof text, format, value);
    jobs_override (r, name, text);
}

static void measure_step (struct jobs_reading *r, const struct jobs_run *run,
                          struct jobs_job *out)
{
    double tokens =
        (double) jobs_int (r, "seq", 0) * (double) jobs_int (r, "global_batch", 0);
    double gpus = (double) jobs_int (r, "gpus", 0),
           batch = (double) jobs_int (r, "global_batch", 0);
    const struct jobs_samples *rates = NULL;
    double *x, work = 0.0, q[3]; /* quartiles of the step */

    if (run->tokens_per_s.n > 0 && tokens > 0 && gpus > 0) {
        work = tokens / gpus;
        rates = &run->tokens_per_s;
    } else if (run->samples_per_s.n > 0 && batch > 0) {
        work = batch;
        rates = &run->samples_per_s;
    }
    if (run->steps_s.n > 0)
        rates = NULL;
    else if (!rates)
        return;
    out->n_steps = sorted (rates ? rates : &run->steps_s, &x);
    for (int i = 0; i < 3; i++)
        q[i] = rates ? work / stats_quantile (x, out->n_steps, 0.25 * (3 - i))
                     : stats_quantile (x, out->n_steps, 0.25 * (i + 1));
    out->step_low_s = q[0];
    out->step_high_s = q[2];
    set_number (r, "iter_time_s", "%.6g", q[1]);
    if (tokens > 0 && gpus > 0)
        set_number (r, "tokens_per_s_per_gpu", "%.6g", tokens / q[1] / gpus);
}

static void measure (struct jobs_reading *r, const struct jobs_run *run,
                     struct jobs_job *out)
{
    bool reserved = run->dialect && run->dialect->reserved;
    double first = reserved ? run->reserved_bytes : run->allocated_bytes,
           second = reserved ? run->allocated_bytes : run->reserved_bytes,
           peak = first > 0 ? first : second;

    measure_step (r, run, out);
    for (int k = 0; k < JOBS_TIMERS; k++)
        if (run->timer_s[k].n > 0) {
            double *x;
            int n = sorted (&run->timer_s[k], &x);

            out->timer_s[k] = stats_quantile (x, n, 0.5);
        }
    if (run->reserved_bytes > 0)
        out->reserved_gb = run->reserved_bytes / UNITS_GIB;
    if (run->allocated_bytes > 0)
        out->allocated_gb = run->allocated_bytes / UNITS_GIB;
    if (peak > 0)
        set_number (r, "peak_mem_gb", "%.6g", peak / UNITS_GIB);
    if (run->tflops > 0)
        set_number (r, "tflops_per_gpu", "%.6g", run->tflops);
    if (run->mfu > 0)
        set_number (r, "mfu", "%.4g", run->mfu);
    if (run->oom && out->n_steps == 0)
        jobs_override (r, "oom", "1");
    else if (out->n_steps > 0 || peak > 0)
        jobs_override (r, "oom", "0");
}

/* ---- the row ---- */

static enum status check_needed (struct jobs_reading *r)
{
    static const struct {
        const char *name, *what;
    } needed[] = {{"layers", "the model (config.json beside, or its sizes)"},
                  {"hidden", "the hidden size"},
                  {"heads", "the attention heads"},
                  {"ffn", "the width of the MLP"},
                  {"vocab", "the vocabulary (a file with the line --vocab-size N does)"},
                  {"seq", "the sequence length (--seq N)"},
                  {"gpus", "the number of GPUs (--gpus N)"},
                  {"gpu", "the GPU type (--gpu TYPE, or --cluster)"},
                  {"global_batch", "the global batch"}};
    bool model = jobs_find (r, "layers") != NULL;
    struct text t = {0};
    enum status st = ST_OK;

    for (size_t i = 0; i < COUNT_OF (needed); i++)
        if (!jobs_find (r, needed[i].name) && (model || i == 0 || i > 4))
            text_add (&t, "%s%s", t.len ? "; " : "", needed[i].what);
    if (t.len > 0)
        st = err_set (r->err, ST_INVALID, "%s: nothing says %s", file_title (r->file[0]),
                      text_str (&t));
    text_free (&t);
    return st;
}

/* Notes, then where the row comes from. */
static char *notes_of (struct jobs_reading *r)
{
    const char *list = noted;
    char name[JOBS_WORD_MAX];
    struct text t = {0};

    while (jobs_next_word (&list, name)) {
        const char *value = jobs_value (r, name);

        if (value && strchr (value, ';')) /* which would begin another note */
            notes_add (r->notes, "%s is \"%.40s\", with a ';': it counts as not stated",
                       name, value);
        else if (value)
            text_add (&t, "%s%s=%.200s", t.len ? "; " : "", name, value);
    }
    if (jobs_find (r, "partition"))
        text_add (&t, "%spartition %s", t.len ? "; " : "", jobs_value (r, "partition"));
    text_clean (&t);
    if (t.failed) {
        text_free (&t);
        return NULL;
    }
    return t.s ? t.s : strdup ("");
}

static void name_model (struct jobs_reading *r)
{
    bool llama = jobs_true (r, "swiglu") && jobs_is (r, "normalization", "RMSNorm") &&
                 jobs_true (r, "disable-bias-linear");
    char name[96];

    /* Families of names that a runs file's reader knows. */
    snprintf (name, sizeof name, "%s %ldx%ld", llama ? "llama" : "gpt",
              jobs_int (r, "layers", 0), jobs_int (r, "hidden", 0));
    jobs_default (r, "model", name);
    if (r->has_model)
        set_number (r, "params_b", "%.5g", workload_model_params (&r->model) / 1e9);
}

/* All that the row's cells say. */
static enum status state_row (struct jobs_reading *r, const struct jobs_given *given,
                              const struct jobs_run *run, struct jobs_job *out)
{
    jobs_model_facts (r);
    find_gpus (r, given, run);
    find_batch (r);
    take_given (r, "seq", given->seq);
    TRY (r->st);
    TRY (check_needed (r));
    jobs_defaults (r, "tp=1 pp=1 vpp=1 cp=1 ep=1"); /* which nobody states: a row does */
    name_model (r);
    if (run)
        measure (r, run, out);
    jobs_default (r, "source", file_name (file_title (r->file[0])));
    return r->st;
}

enum status jobs_row (struct jobs_reading *r, const struct jobs_given *given,
                      const struct jobs_run *run, struct jobs_job *out)
{
    const char *list = columns;
    char name[JOBS_WORD_MAX];
    enum status st;

    *out = (struct jobs_job){
        .step_low_s = NAN, .step_high_s = NAN, .reserved_gb = NAN, .allocated_gb = NAN};
    for (int k = 0; k < JOBS_TIMERS; k++)
        out->timer_s[k] = NAN;
    st = state_row (r, given, run, out);
    out->has_model = r->has_model;
    out->model = r->model;
    for (int i = 0; st == ST_OK && jobs_next_word (&list, name); i++) {
        const char *value = jobs_value (r, name);

        if (strcmp (name, "notes") == 0)
            out->cell[i] = notes_of (r);
        else if (strcmp (name, "sp") == 0 && value)
            out->cell[i] = strdup (jobs_true (r, "sp") ? "1" : "0");
        else
            out->cell[i] = strdup (value ? value : "");
        if (!out->cell[i])
            st = err_nomem (r->err);
        else
            text_clean_line (out->cell[i]);
    }
    return st;
}
