/* Reading and writing the plan's own part of a plan file; estimates are others' work. */
#include "workload/workload.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

/* ---- reading ---- */

static enum status read_word (const struct json_at *root, const char *key, const char **s,
                              struct error *err)
{
    struct json_at at = json_key (root, key);

    return json_want_string (&at, s, err);
}

static enum status read_int (const struct json_at *root, const char *key, int lo, int hi,
                             int *out, struct error *err)
{
    struct json_at at = json_key (root, key);
    long long n;
    enum status st = json_want_int (&at, lo, hi, &n, err);

    if (st == ST_OK)
        *out = (int) n;
    return st;
}

static enum status read_choice (const struct json_at *job, const char *key,
                                enum workload_choice *c, struct error *err)
{
    struct json_at at = json_key (job, key);
    bool yes;
    enum status st = ST_OK;

    if (json_has (job, key)) {
        st = json_want_bool (&at, &yes, err);
        *c = st == ST_OK && yes ? CHOICE_YES : CHOICE_NO;
    }
    return st;
}

/* What only memory depends on. */
static enum status read_memory_job (const struct json_at *job, struct workload_plan *p,
                                    struct error *err)
{
    struct json_at limit = json_key (job, "memory_limit_pct"),
                   risk = json_key (job, "oom_risk"),
                   model = json_key (job, "memory_model"),
                   wta = json_key (job, "wta_crs"), lora = json_key (job, "lora");
    const char *s;
    enum status st = read_choice (job, "fused_norm", &p->job.fused_norm, err);

    if (st == ST_OK)
        st = read_choice (job, "fused_mlp", &p->job.fused_mlp, err);
    if (st == ST_OK)
        st = read_choice (job, "gathered_logits", &p->job.gathered_logits, err);
    if (st == ST_OK && json_has (job, "wta_crs"))
        st = json_want_number (&wta, 0, true, 1, &p->job.wta_crs, err);
    if (st == ST_OK && json_has (job, "lora"))
        st = json_want_bool (&lora, &p->job.lora, err);
    p->memory_limit_pct = 95;
    if (st == ST_OK && json_has (job, "memory_limit_pct"))
        st = json_want_number (&limit, 0, false, 100, &p->memory_limit_pct, err);
    if (st == ST_OK && json_has (job, "oom_risk"))
        st = json_want_number (&risk, 0, true, 0.999999, &p->oom_risk, err);
    strcpy (p->memory_model, "linkwise");
    if (st == ST_OK && json_has (job, "memory_model")) {
        st = json_want_string (&model, &s, err);
        if (st == ST_OK)
            snprintf (p->memory_model, sizeof p->memory_model, "%.31s", s);
    }
    return st;
}

static enum status read_job (const struct json_at *root, struct workload_plan *p,
                             struct error *err)
{
    struct json_at job = json_key (root, "job");
    const char *s;
    enum status st = json_want_object (&job, err);

    if (st == ST_OK)
        st = read_int (&job, "seq", 1, 1 << 30, &p->job.seq, err);
    if (st == ST_OK)
        st = read_int (&job, "global_batch", 1, 1 << 30, &p->job.global_batch, err);
    if (st == ST_OK)
        st = read_word (&job, "precision", &s, err);
    if (st == ST_OK && !workload_precision_parse (s, &p->job.precision)) {
        struct json_at at = json_key (&job, "precision");

        st = json_fail (&at, err, "bf16, fp16, fp8 or fp32");
    }
    if (st == ST_OK && json_has (&job, "attention")) {
        struct json_at at = json_key (&job, "attention");

        st = json_want_string (&at, &s, err);
        if (st == ST_OK && !workload_attention_parse (s, &p->job.attention))
            st = json_fail (&at, err, "flash, fused or unfused");
    }
    snprintf (p->profile, sizeof p->profile, "%s", WORKLOAD_PROFILE_DEFAULT);
    if (st == ST_OK && json_has (&job, "profile")) {
        st = read_word (&job, "profile", &s, err);
        if (st == ST_OK)
            snprintf (p->profile, sizeof p->profile, "%.255s", s);
    }
    return st == ST_OK ? read_memory_job (&job, p, err) : st;
}

static enum status read_degrees (const struct json_at *root, struct workload_plan *p,
                                 struct error *err)
{
    struct json_at at = json_key (root, "degrees");
    struct workload_degrees *d = &p->config.deg;
    enum status st = json_want_object (&at, err);

    *d = (struct workload_degrees){.cp = 1, .ep = 1, .vpp = 1};
    if (st == ST_OK)
        st = read_int (&at, "tp", 1, WORKLOAD_RANKS_MAX, &d->tp, err);
    d->etp = d->tp;
    if (st == ST_OK)
        st = read_int (&at, "pp", 1, WORKLOAD_RANKS_MAX, &d->pp, err);
    if (st == ST_OK)
        st = read_int (&at, "dp", 1, WORKLOAD_RANKS_MAX, &d->dp, err);
    if (st == ST_OK && json_has (&at, "cp"))
        st = read_int (&at, "cp", 1, WORKLOAD_RANKS_MAX, &d->cp, err);
    if (st == ST_OK && json_has (&at, "ep"))
        st = read_int (&at, "ep", 1, WORKLOAD_RANKS_MAX, &d->ep, err);
    if (st == ST_OK && json_has (&at, "etp"))
        st = read_int (&at, "etp", 1, WORKLOAD_RANKS_MAX, &d->etp, err);
    if (st == ST_OK && json_has (&at, "vpp"))
        st = read_int (&at, "vpp", 1, WORKLOAD_RANKS_MAX, &d->vpp, err);
    return st;
}

static enum status read_config (const struct json_at *root, struct workload_plan *p,
                                struct error *err)
{
    struct workload_config *c = &p->config;
    struct json_at sp = json_key (root, "sequence_parallel"),
                   recompute = json_key (root, "recompute"),
                   schedule = json_key (root, "schedule");
    const char *s;
    enum status st = read_degrees (root, p, err);

    if (st == ST_OK)
        st = read_int (root, "micro_batch", 1, 1 << 30, &c->micro_batch, err);
    if (st == ST_OK)
        st = read_int (root, "zero", 0, 3, &c->zero, err);
    if (st == ST_OK)
        st = json_want_bool (&sp, &c->sequence_parallel, err);
    if (st == ST_OK)
        st = json_want_string (&recompute, &s, err);
    if (st == ST_OK && !workload_recompute_parse (s, &c->recompute, &c->recompute_layers))
        st = json_fail (&recompute, err, "none, selective, full or full:K");
    if (st == ST_OK)
        st = json_want_string (&schedule, &s, err);
    if (st == ST_OK && !workload_schedule_parse (s, &c->schedule))
        st = json_fail (&schedule, err, "the name of a schedule");
    if (st == ST_OK && (st = workload_job_check (&p->model, &p->job, err)) == ST_OK)
        st = workload_config_check (&p->model, &p->job, c, err);
    else
        return st;
    if (st != ST_OK)
        err_prefix (err, "%s", root->key);
    return st;
}

static enum status read_layers (const struct json_at *root, struct workload_plan *p,
                                struct error *err)
{
    struct json_at at = json_key (root, "layers_per_stage");
    int pp = p->config.deg.pp, sum = 0;
    char expected[64];

    snprintf (expected, sizeof expected, "%d numbers (one per stage)", pp);
    if (!json_is_array (at.v) || json_array_size (at.v) != (size_t) pp)
        return json_fail (&at, err, expected);
    if (!(p->layers_per_stage = calloc ((size_t) pp, sizeof (int))))
        return err_nomem (err);
    for (int i = 0; i < pp; i++) {
        struct json_at one = json_entry (&at, (size_t) i);
        long long n;
        enum status st = json_want_int (&one, 1, p->model.layers, &n, err);

        if (st != ST_OK)
            return st;
        p->layers_per_stage[i] = (int) n;
        sum += (int) n;
    }
    if (sum != p->model.layers)
        return json_fail_text (&at, err, "the stages hold %d layers, the model has %d",
                               sum, p->model.layers);
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
        char expected[64];

        if (!one.v)
            continue;
        if (!json_is_integer (one.v) || json_integer_value (one.v) != want[i].value) {
            snprintf (expected, sizeof expected,
                      "%d (rank %d in the order " WORKLOAD_RANK_ORDER ")", want[i].value,
                      rank);
            return json_fail (&one, err, expected);
        }
    }
    return ST_OK;
}

static enum status read_rank (const struct json_at *at, struct workload_plan *p,
                              struct error *err)
{
    struct json_at rank_at = json_key (at, "rank"), node = json_key (at, "node"),
                   gpu = json_key (at, "gpu");
    long long rank, g;
    const char *name;
    enum status st = json_want_object (at, err);

    if (st == ST_OK)
        st = json_want_int (&rank_at, 0, p->n_ranks - 1, &rank, err);
    if (st == ST_OK && p->place[rank].node)
        st = json_fail_text (&rank_at, err, "rank %lld is there twice", rank);
    if (st == ST_OK)
        st = json_want_string (&node, &name, err);
    if (st == ST_OK)
        st = json_want_int (&gpu, 0, 1 << 20, &g, err);
    if (st == ST_OK)
        st = check_coords (at, &p->config.deg, (int) rank, err);
    if (st == ST_OK)
        p->place[rank] = (struct workload_place){name, (int) g};
    return st;
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
    enum status st = json_want_array (&at, &n, err);

    if (st != ST_OK)
        return st;
    if ((long long) n != world)
        return json_fail_text (
            &at, err, "expected %lld ranks (tp x cp x dp x pp), found %zu", world, n);
    p->n_ranks = (int) world;
    if (!(p->place = calloc (n, sizeof *p->place)))
        return err_nomem (err);
    for (size_t i = 0; i < n && st == ST_OK; i++) {
        struct json_at one = json_entry (&at, i);

        st = read_rank (&one, p, err);
    }
    return st == ST_OK ? check_one_to_one (&at, p, err) : st;
}

/* Launchers would number the ranks otherwise than the plan does. */
static enum status check_order (const struct json_at *root, struct error *err)
{
    struct json_at order = json_key (root, "rank_order");
    const char *s;
    enum status st = ST_OK;

    if (json_has (root, "rank_order"))
        st = json_want_string (&order, &s, err);
    if (st == ST_OK && json_has (root, "rank_order") &&
        strcmp (s, WORKLOAD_RANK_ORDER) != 0)
        st = json_fail (&order, err, WORKLOAD_RANK_ORDER);
    return st;
}

static enum status read_plan (const struct json_at *root, struct workload_plan *p,
                              struct notes *notes, struct error *err)
{
    struct json_at version = json_key (root, "version"), model = json_key (root, "model");
    long long v;
    enum status st = json_want_object (root, err);

    if (st == ST_OK)
        st = json_want_int (&version, 1, 1, &v, err);
    if (st == ST_OK)
        st = json_want_object (&model, err);
    if (st == ST_OK) {
        char where[4200];

        snprintf (where, sizeof where, "%s: model", root->key);
        st = workload_model_from_json (model.v, where, "model", &p->model, notes, err);
    }
    if (st == ST_OK)
        st = read_job (root, p, err);
    if (st == ST_OK)
        st = read_config (root, p, err);
    if (st == ST_OK)
        st = check_order (root, err);
    if (st == ST_OK)
        st = read_layers (root, p, err);
    if (st == ST_OK)
        st = read_ranks (root, p, err);
    return st;
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
                                struct notes *notes, struct error *err)
{
    json_t *doc = NULL;
    enum status st = json_read (path, &doc, err);

    if (st == ST_OK)
        st = workload_plan_from_json (
            doc, strcmp (path, "-") == 0 ? "standard input" : path, out, notes, err);
    json_decref (doc);
    return st;
}

void workload_plan_release (struct workload_plan *p)
{
    free (p->layers_per_stage);
    free (p->place);
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

json_t *workload_plan_to_json (const struct workload_plan *p)
{
    const struct workload_config *c = &p->config;
    const struct workload_degrees *d = &c->deg;
    json_t *layers = json_array ();
    char recompute[24];

    for (int i = 0; i < d->pp; i++)
        json_array_append_new (layers, json_integer (p->layers_per_stage[i]));

    json_t *job = job_json (p);
    json_t *degrees =
        json_pack ("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "tp", d->tp, "pp", d->pp, "dp",
                   d->dp, "cp", d->cp, "ep", d->ep, "etp", d->etp, "vpp", d->vpp);

    return json_pack ("{s:o, s:o, s:o, s:i, s:i, s:i, s:b, s:s, s:s, s:o, s:s, s:o}",
                      "model", workload_model_to_json (&p->model), "job", job, "degrees",
                      degrees, "micro_batch", c->micro_batch, "microbatches",
                      workload_microbatches (&p->job, c), "zero", c->zero,
                      "sequence_parallel", c->sequence_parallel, "recompute",
                      workload_recompute_text (c, recompute), "schedule",
                      workload_schedule_name (c->schedule), "layers_per_stage", layers,
                      "rank_order", WORKLOAD_RANK_ORDER, "ranks", ranks_json (p));
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
