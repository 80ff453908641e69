/* Reading and writing the plan's own part of a plan file; estimates are others' work. */
#include "workload/workload.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "workload/workload_private.h"

/* ---- reading ---- */

static enum status read_choice (const struct json_at *job, const char *key,
                                enum workload_choice *c, struct error *err)
{
    bool yes;

    if (!json_has (job, key))
        return ST_OK;
    TRY (json_get_bool (job, key, &yes, err));
    *c = yes ? CHOICE_YES : CHOICE_NO;
    return ST_OK;
}

/* What only memory depends on. */
static enum status read_memory_job (const struct json_at *job, struct workload_plan *p,
                                    struct error *err)
{
    const char *s = "linkwise";

    p->memory_limit_pct = 95;
    TRY (read_choice (job, "fused_norm", &p->job.fused_norm, err));
    TRY (read_choice (job, "fused_mlp", &p->job.fused_mlp, err));
    TRY (read_choice (job, "gathered_logits", &p->job.gathered_logits, err));
    TRY (read_choice (job, "tp_comm_overlap", &p->job.tp_comm_overlap, err));
    TRY_MEMBER (json_get_number, job, "wta_crs", 0, true, 1, &p->job.wta_crs, err);
    TRY_MEMBER (json_get_bool, job, "lora", &p->job.lora, err);
    TRY_MEMBER (json_get_number, job, "memory_limit_pct", 0, false, 100,
                &p->memory_limit_pct, err);
    TRY_MEMBER (json_get_number, job, "oom_risk", 0, true, 0.999999, &p->oom_risk, err);
    TRY_MEMBER (json_get_string, job, "memory_model", &s, err);
    snprintf (p->memory_model, sizeof p->memory_model, "%.31s", s);
    return ST_OK;
}

static enum status read_job (const struct json_at *root, struct workload_plan *p,
                             struct error *err)
{
    struct json_at job = json_key (root, "job");
    const char *profile = WORKLOAD_PROFILE_DEFAULT;

    TRY (json_want_object (&job, err));
    TRY (json_get_int (&job, "seq", 1, 1 << 30, &p->job.seq, err));
    TRY (json_get_int (&job, "global_batch", 1, 1 << 30, &p->job.global_batch, err));
    TRY_WORD (&job, "precision", workload_precision_parse, &p->job.precision,
              WORDS_PRECISION, err);
    if (json_has (&job, "attention"))
        TRY_WORD (&job, "attention", workload_attention_parse, &p->job.attention,
                  "flash, fused or unfused", err);
    TRY_MEMBER (json_get_string, &job, "profile", &profile, err);
    snprintf (p->profile, sizeof p->profile, "%.255s", profile);
    return read_memory_job (&job, p, err);
}

static enum status read_config (const struct json_at *root, struct workload_plan *p,
                                struct error *err)
{
    struct workload_config *c = &p->config;
    struct json_at degrees = json_key (root, "degrees");
    enum status st;

    TRY (workload_degrees_from_json (&degrees, &c->deg, err));
    TRY (workload_settings_from_json (root, c, err));
    TRY (workload_job_check (&p->model, &p->job, err));
    st = workload_config_check (&p->model, &p->job, c, err);
    if (st != ST_OK)
        err_prefix (err, "%s", root->key);
    return st;
}

static enum status read_layers (const struct json_at *root, struct workload_plan *p,
                                struct error *err)
{
    struct json_at at = json_key (root, "layers_per_stage");
    int pp = p->config.deg.pp, sum = 0;

    if (!json_is_array (at.v) || json_array_size (at.v) != (size_t) pp)
        return json_fail (&at, err, "%d numbers (one per stage)", pp);
    if (!(p->layers_per_stage = calloc ((size_t) pp, sizeof (int))))
        return err_nomem (err);
    for (int i = 0; i < pp; i++) {
        struct json_at one = json_entry (&at, (size_t) i);
        long long n;

        TRY (json_want_int (&one, 1, p->model.layers, &n, err));
        p->layers_per_stage[i] = (int) n;
        sum += (int) n;
    }
    REFUSE_AT (&at, err, sum != p->model.layers,
               "the stages hold %d layers, the model has %d", sum, p->model.layers);
    return ST_OK;
}

/* What chunk `chunk` of v has of a stage's layers where the file does not say: as even as can
 * be, later chunks first. */
static int chunk_unsaid (int layers, int v, int chunk)
{
    return layers * (chunk + 1) / v - layers * chunk / v;
}

/* Are the chunks dealt as the search deals them? */
static bool is_dealt (const struct workload_plan *p)
{
    int v = p->config.deg.vpp;

    for (int i = 0; i < p->config.deg.pp * v; i++)
        if (p->layers_per_chunk[i] !=
            workload_layers_of_chunk (&p->config, i / v, p->layers_per_stage[i / v],
                                      i % v))
            return false;
    return true;
}

/* One stage's chunks. */
static enum status read_stage_chunks (const struct json_at *stages, int stage,
                                      struct workload_plan *p, struct error *err)
{
    struct json_at at = json_entry (stages, (size_t) stage);
    int v = p->config.deg.vpp, layers = p->layers_per_stage[stage], sum = 0;
    int *chunk = p->layers_per_chunk + stage * v;

    if (stages->v && (!json_is_array (at.v) || json_array_size (at.v) != (size_t) v))
        return json_fail (&at, err, "%d numbers (one per chunk)", v);
    for (int i = 0; i < v; i++) {
        struct json_at one = json_entry (&at, (size_t) i);
        long long n = chunk_unsaid (layers, v, i);

        if (stages->v)
            TRY (json_want_int (&one, 0, layers, &n, err));
        chunk[i] = (int) n;
        sum += chunk[i];
    }
    return sum == layers
               ? ST_OK
               : json_fail_text (&at, err, "the chunks hold %d layers, the stage has %d",
                                 sum, layers);
}

static enum status read_chunks (const struct json_at *root, struct workload_plan *p,
                                struct error *err)
{
    struct json_at at = json_key (root, "layers_per_chunk");
    int pp = p->config.deg.pp, v = p->config.deg.vpp;

    if (at.v && (!json_is_array (at.v) || json_array_size (at.v) != (size_t) pp))
        return json_fail (&at, err, "%d lists (one per stage)", pp);
    if (!(p->layers_per_chunk = calloc ((size_t) pp * (size_t) v, sizeof (int))))
        return err_nomem (err);
    for (int i = 0; i < pp; i++)
        TRY (read_stage_chunks (&at, i, p, err));
    if (is_dealt (p)) {
        free (p->layers_per_chunk);
        p->layers_per_chunk = NULL;
    }
    return ST_OK;
}

/* The rank's own coordinates, where the file gives them, must be those of its number. */
static enum status check_coords (const struct json_at *at,
                                 const struct workload_degrees *d, int rank,
                                 struct error *err)
{
    struct workload_coords k = workload_coords_of (d, rank);
    const struct {
        const char *name;
        int value;
    } want[] = {{"tp", k.tp}, {"cp", k.cp}, {"ep", k.ep}, {"dp", k.dp}, {"pp", k.pp}};

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct json_at one = json_key (at, want[i].name);

        if (one.v &&
            (!json_is_integer (one.v) || json_integer_value (one.v) != want[i].value))
            return json_fail (&one, err,
                              "%d (rank %d in the order " WORKLOAD_RANK_ORDER ")",
                              want[i].value, rank);
    }
    return ST_OK;
}

static enum status read_rank (const struct json_at *at, struct workload_plan *p,
                              struct error *err)
{
    struct json_at rank_at = json_key (at, "rank");
    int rank, gpu;
    const char *node;

    TRY (json_want_object (at, err));
    TRY (json_get_int (at, "rank", 0, p->n_ranks - 1, &rank, err));
    REFUSE_AT (&rank_at, err, p->place[rank].node, "rank %d appears twice", rank);
    TRY (json_get_string (at, "node", &node, err));
    TRY (json_get_int (at, "gpu", 0, 1 << 20, &gpu, err));
    TRY (check_coords (at, &p->config.deg, rank, err));
    p->place[rank] = (struct workload_place){node, gpu};
    return ST_OK;
}

static int by_place (const void *a, const void *b)
{
    const struct workload_place *const *x = a, *const *y = b;
    int order = strcmp ((*x)->node, (*y)->node);

    return order ? order : ((*x)->gpu > (*y)->gpu) - ((*x)->gpu < (*y)->gpu);
}

static enum status check_one_to_one (const struct json_at *at,
                                     const struct workload_plan *p, struct error *err)
{
    const struct workload_place **sorted = calloc ((size_t) p->n_ranks, sizeof *sorted);
    enum status st = ST_OK;

    if (!sorted)
        return err_nomem (err);
    for (int r = 0; r < p->n_ranks; r++)
        sorted[r] = &p->place[r];
    qsort (sorted, (size_t) p->n_ranks, sizeof *sorted, by_place);
    for (int r = 1; r < p->n_ranks && st == ST_OK; r++)
        if (by_place (&sorted[r - 1], &sorted[r]) == 0)
            st = json_fail_text (at, err, "ranks %d and %d are both on node %s, GPU %d",
                                 (int) (sorted[r - 1] - p->place),
                                 (int) (sorted[r] - p->place), sorted[r]->node,
                                 sorted[r]->gpu);
    free (sorted);
    return st;
}

static enum status read_ranks (const struct json_at *root, struct workload_plan *p,
                               struct error *err)
{
    struct json_at at = json_key (root, "ranks");
    long long world = workload_world (&p->config.deg);
    size_t n;

    TRY (json_want_array (&at, &n, err));
    REFUSE_AT (&at, err, (long long) n != world,
               "expected %lld ranks (tp x cp x dp x pp), found %zu", world, n);
    p->n_ranks = (int) world;
    if (!(p->place = calloc (n, sizeof *p->place)))
        return err_nomem (err);
    json_each (&at, one)
        TRY (read_rank (&one, p, err));
    return check_one_to_one (&at, p, err);
}

/* Launchers would number the ranks otherwise than the plan does. */
static enum status check_order (const struct json_at *root, struct error *err)
{
    struct json_at order = json_key (root, "rank_order");
    const char *s;

    if (!json_has (root, "rank_order"))
        return ST_OK;
    TRY (json_want_string (&order, &s, err));
    return strcmp (s, WORKLOAD_RANK_ORDER) == 0
               ? ST_OK
               : json_fail (&order, err, WORKLOAD_RANK_ORDER);
}

static enum status read_plan (const struct json_at *root, struct workload_plan *p,
                              struct notes *notes, struct error *err)
{
    struct json_at model = json_key (root, "model");
    char where[4200];
    int version;

    TRY (json_want_object (root, err));
    TRY (json_get_int (root, "version", 1, 1, &version, err));
    TRY (json_want_object (&model, err));
    snprintf (where, sizeof where, "%s: model", root->key);
    TRY (workload_model_from_json (model.v, where, "model", &p->model, notes, err));
    TRY (read_job (root, p, err));
    TRY (read_config (root, p, err));
    TRY (check_order (root, err));
    TRY (read_layers (root, p, err));
    TRY (read_chunks (root, p, err));
    return read_ranks (root, p, err);
}

enum status workload_plan_from_json (json_t *doc, const char *name,
                                     struct workload_plan *out, struct notes *notes,
                                     struct error *err)
{
    struct workload_plan p = {.doc = json_incref (doc)};
    struct json_at root = json_root (p.doc, name);
    enum status st = read_plan (&root, &p, notes, err);

    if (st == ST_OK)
        *out = p;
    else
        workload_plan_release (&p);
    return st;
}

enum status workload_plan_read (const char *path, struct workload_plan *out,
                                struct error *err)
{
    json_t *doc = NULL;
    enum status st = json_read (path, &doc, err);

    THEN (st, workload_plan_from_json (doc, file_title (path), out, NULL, err));
    json_decref (doc);
    return st;
}

void workload_plan_release (struct workload_plan *p)
{
    FREE_ALL (p->layers_per_stage, p->layers_per_chunk, p->place);
    json_decref (p->doc);
    *p = (struct workload_plan){0};
}

/* ---- writing ---- */

static json_t *ranks_json (const struct workload_plan *p)
{
    json_t *ranks = json_array ();

    for (int r = 0; r < p->n_ranks; r++) {
        struct workload_coords k = workload_coords_of (&p->config.deg, r);

        json_array_append_new (
            ranks, json_pack ("{s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "rank", r,
                              "node", p->place[r].node, "gpu", p->place[r].gpu, "tp",
                              k.tp, "cp", k.cp, "ep", k.ep, "dp", k.dp, "pp", k.pp));
    }
    return ranks;
}

static void put_choice (json_t *job, const char *key, enum workload_choice c)
{
    if (c != CHOICE_PROFILE)
        json_object_set_new (job, key, json_boolean (c == CHOICE_YES));
}

static json_t *job_json (const struct workload_plan *p)
{
    json_t *job = json_pack ("{s:i, s:i, s:s, s:s, s:s, s:f}", "seq", p->job.seq,
                             "global_batch", p->job.global_batch, "precision",
                             workload_precision_name (p->job.precision), "attention",
                             workload_attention_name (p->job.attention), "profile",
                             p->profile, "memory_limit_pct", p->memory_limit_pct);

    put_choice (job, "fused_norm", p->job.fused_norm);
    put_choice (job, "fused_mlp", p->job.fused_mlp);
    put_choice (job, "gathered_logits", p->job.gathered_logits);
    put_choice (job, "tp_comm_overlap", p->job.tp_comm_overlap);
    if (p->job.wta_crs > 0)
        json_object_set_new (job, "wta_crs", json_real (p->job.wta_crs));
    if (p->job.lora)
        json_object_set_new (job, "lora", json_true ());
    if (p->oom_risk > 0)
        json_object_set_new (job, "oom_risk", json_real (p->oom_risk));
    if (strcmp (p->memory_model, "linkwise") != 0)
        json_object_set_new (job, "memory_model", json_string (p->memory_model));
    return job;
}

int workload_plan_chunk (const struct workload_plan *p, int stage, int chunk)
{
    int v = p->config.deg.vpp;

    return p->layers_per_chunk
               ? p->layers_per_chunk[stage * v + chunk]
               : workload_layers_of_chunk (&p->config, stage, p->layers_per_stage[stage],
                                           chunk);
}

struct workload_stage workload_plan_stage (const struct workload_plan *p, int stage)
{
    return p->layers_per_chunk
               ? workload_stage_of_chunks (&p->model, &p->config, p->layers_per_chunk,
                                           stage)
               : workload_stage_of (&p->model, &p->config, p->layers_per_stage, stage);
}

/* NULL, which leaves the key out, where files without it say the same. */
static json_t *chunks_json (const struct workload_plan *p)
{
    json_t *stages = json_array ();
    bool same = true;

    for (int i = 0; i < p->config.deg.pp; i++) {
        json_t *chunks = json_array ();
        int v = p->config.deg.vpp, n = p->layers_per_stage[i];

        for (int k = 0; k < v; k++) {
            int held = workload_plan_chunk (p, i, k);

            same = same && held == chunk_unsaid (n, v, k);
            json_array_append_new (chunks, json_integer (held));
        }
        json_array_append_new (stages, chunks);
    }
    if (!same)
        return stages;
    json_decref (stages);
    return NULL;
}

json_t *workload_plan_to_json (const struct workload_plan *p)
{
    const struct workload_config *c = &p->config;
    json_t *layers = json_array ();
    char recompute[WORKLOAD_RECOMPUTE_TEXT];

    for (int i = 0; i < c->deg.pp; i++)
        json_array_append_new (layers, json_integer (p->layers_per_stage[i]));

    json_t *job = job_json (p);
    json_t *doc = json_pack (
        "{s:o, s:o, s:o, s:i, s:i, s:i, s:b, s:s, s:s, s:o, s:o*, s:s, s:o}", "model",
        workload_model_to_json (&p->model), "job", job, "degrees",
        workload_degrees_to_json (&c->deg), "micro_batch", c->micro_batch, "microbatches",
        workload_microbatches (&p->job, c), "zero", c->zero, "sequence_parallel",
        c->sequence_parallel, "recompute", workload_recompute_text (c, recompute),
        "schedule", workload_schedule_name (c->schedule), "layers_per_stage", layers,
        "layers_per_chunk", chunks_json (p), "rank_order", WORKLOAD_RANK_ORDER, "ranks",
        ranks_json (p));

    if (doc && workload_shard_copies (c) > 1)
        json_object_set_new (doc, "shard", json_integer (c->shard));
    if (doc && c->optimizer_bytes > 0)
        json_object_set_new (doc, "optimizer_bytes", json_integer (c->optimizer_bytes));
    if (doc && c->offload != OFFLOAD_NONE)
        json_object_set_new (doc, "offload",
                             json_string (workload_offload_name (c->offload)));
    return doc;
}

void workload_plan_digest (const struct workload_plan *p, char hex[65])
{
    json_t *doc = workload_plan_to_json (p);
    /* Numbers with few digits, so that a value that was written and read again gives the
     * same text. */
    char *s =
        doc ? json_dumps (doc, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION (9))
            : NULL;

    file_sha256 (s ? s : "", s ? strlen (s) : 0, hex);
    free (s);
    json_decref (doc);
}
