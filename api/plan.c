/* Plans: read, told, priced, checked, emitted. */
#include "api/api.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "calibrate/calibrate.h"
#include "check/check.h"
#include "launch/launch.h"

/* ---- reading ---- */

static enum status digest (const char *file, char hex[65], struct error *err)
{
    char *text;
    size_t len;
    enum status st;

    TRY (file_read (file, &text, &len, err));
    st = topology_file_sha256 (file, text, len, hex, err);
    free (text);
    return st;
}

/* The plan's own cluster: whole, or a reference to its file. */
static enum status own_cluster (const struct workload_plan *plan, const char *plan_name,
                                struct linkwise_cluster **out, struct notes *notes,
                                struct error *err)
{
    json_t *doc = json_object_get (plan->doc, "cluster");
    const char *file = json_member_text (doc, "file");
    const char *sha256 = json_member_text (doc, "sha256");
    struct topology_cluster *c;
    char where[4200], hex[65];
    enum status st;

    snprintf (where, sizeof where, "%.4000s: cluster", plan_name);
    if (!file) {
        TRY (topology_cluster_from_json (doc, where, NULL, &c, notes, err));
        return api_cluster_of (c, NULL, out, err);
    }
    st = file_is_stream (file)
             ? err_set (err, ST_INVALID, "%s: expected a file, found a device or a pipe",
                        file)
             : digest (file, hex, err);
    if (st != ST_OK)
        err_prefix (err, "%s (give CLUSTER as an argument)", where);
    else if (sha256 && strcmp (hex, sha256) != 0)
        st = err_set (
            err, ST_INVALID,
            "%s: %s has changed since the plan was made; give CLUSTER as an argument",
            where, file);
    return st == ST_OK ? api_cluster_read (file, out, notes, err) : st;
}

/* The profile that the plan was made with: the one in it, or the shipped one that it names. */
static enum status own_profile (const struct workload_plan *plan, const char *plan_name,
                                const struct topology_cluster *c,
                                struct workload_profile *out, struct notes *notes,
                                struct error *err)
{
    json_t *doc = json_object_get (plan->doc, "profile");
    struct workload_gpus on = {.n = 0};
    enum status st;

    if (!doc) {
        costmodel_gpus_of_plan (c, plan, &on);
        return workload_profile_for (plan->profile, &plan->model, &on, out, notes, err);
    }
    st = workload_profile_from_json (doc, plan->profile, NULL, out, notes, err);
    if (st != ST_OK)
        err_prefix (err, "%.1000s: profile", plan_name);
    return st;
}

enum status api_plan_from_json (json_t *doc, const char *name, const char *cluster,
                                struct linkwise_plan *p, struct notes *notes,
                                struct error *err)
{
    p->other_cluster = cluster || p->cluster;
    p->lower_bound_s = p->default_order_step_s = NAN;
    TRY (workload_plan_from_json (doc, name, &p->plan, notes, err));
    if (cluster)
        TRY (api_cluster_read (cluster, &p->cluster, notes, err));
    else if (!p->cluster)
        TRY (own_cluster (&p->plan, name, &p->cluster, notes, err));
    workload_recompute_text (&p->plan.config, p->recompute);
    TRY (own_profile (&p->plan, name, p->cluster->c, &p->profile, notes, err));
    workload_profile_pace (&p->profile, &p->plan.model, p->plan.job.precision);
    return ST_OK;
}

enum status api_plan_read (const char *arg, const char *cluster, struct linkwise_plan *p,
                           struct notes *notes, struct error *err)
{
    json_t *doc = NULL;
    enum status st = json_read_told (arg, notes, &doc, err);

    THEN (st, api_plan_from_json (doc, file_title (arg), cluster, p, notes, err));
    json_decref (doc);
    return st;
}

/* A plan from a file's name or, where that is NULL, from a text. */
static enum linkwise_status plan_from (const char *arg, const char *json,
                                       const struct linkwise_cluster *cluster,
                                       struct linkwise_plan **out,
                                       struct linkwise_notes *notes, struct error *err)
{
    struct linkwise_plan p = {.cluster = cluster ? api_cluster_use (cluster) : NULL};
    json_t *doc = NULL;
    enum linkwise_status handed;
    enum status st = arg ? json_read (arg, &doc, err)
                         : json_parse ("plan", json, strlen (json), &doc, err);

    THEN (st, api_plan_from_json (doc, arg ? file_title (arg) : "plan", NULL, &p,
                                  api_notes (notes), err));
    json_decref (doc);
    handed = api_hand_out (st, &p, sizeof p, out, API_ERROR (err));
    if (handed != LINKWISE_OK)
        api_plan_release (&p);
    return handed;
}

enum linkwise_status linkwise_plan_read (const char *arg,
                                         const struct linkwise_cluster *cluster,
                                         struct linkwise_plan **out,
                                         struct linkwise_notes *notes,
                                         struct linkwise_error *err)
{
    API_NEED (arg);
    API_NEED (out);
    return plan_from (arg, NULL, cluster, out, notes, api_error (err));
}

enum linkwise_status linkwise_plan_parse (const char *json,
                                          const struct linkwise_cluster *cluster,
                                          struct linkwise_plan **out,
                                          struct linkwise_notes *notes,
                                          struct linkwise_error *err)
{
    API_NEED (json);
    API_NEED (out);
    return plan_from (NULL, json, cluster, out, notes, api_error (err));
}

void linkwise_plan_destroy (struct linkwise_plan *p)
{
    if (p)
        api_plan_release (p);
    free (p);
}

/* ---- what is in it ---- */

enum linkwise_status linkwise_plan_config (const struct linkwise_plan *plan,
                                           struct linkwise_config *out,
                                           struct linkwise_error *err)
{
    const struct workload_config *c;

    API_NEED (plan);
    API_SIZED (out);
    c = &plan->plan.config;
    *out = (struct linkwise_config){
        .size = sizeof *out,
        .tp = c->deg.tp,
        .pp = c->deg.pp,
        .dp = c->deg.dp,
        .cp = c->deg.cp,
        .ep = c->deg.ep,
        .etp = c->deg.etp,
        .vpp = c->deg.vpp,
        .micro_batch = c->micro_batch,
        .zero = c->zero,
        .sequence_parallel = c->sequence_parallel,
        .recompute = plan->recompute,
        .schedule = workload_schedule_name (c->schedule),
        .layers = plan->plan.layers_per_stage,
        .optimizer_bytes = c->optimizer_bytes > 0 ? c->optimizer_bytes : LINKWISE_FREE,
        .offload = workload_offload_name (c->offload),
        .shard = c->shard};
    return LINKWISE_OK;
}

int linkwise_plan_ranks (const struct linkwise_plan *plan)
{
    return plan ? plan->plan.n_ranks : -1;
}

enum linkwise_status linkwise_plan_rank (const struct linkwise_plan *plan, int rank,
                                         struct linkwise_rank *out,
                                         struct linkwise_error *err)
{
    struct workload_coords at;

    API_NEED (plan);
    API_SIZED (out);
    if (rank < 0 || rank >= plan->plan.n_ranks)
        API_REFUSE ("expected a rank from 0 to %d, found %d", plan->plan.n_ranks - 1,
                    rank);
    at = workload_coords_of (&plan->plan.config.deg, rank);
    *out = (struct linkwise_rank){.size = sizeof *out,
                                  .node = plan->plan.place[rank].node,
                                  .gpu = plan->plan.place[rank].gpu,
                                  .tp = at.tp,
                                  .cp = at.cp,
                                  .ep = at.ep,
                                  .dp = at.dp,
                                  .pp = at.pp};
    return LINKWISE_OK;
}

/* ---- what it costs ---- */

enum status api_plan_gpus (const struct linkwise_plan *p,
                           const struct topology_cluster *c, int **gpu,
                           struct notes *notes, struct error *err)
{
    int *list = calloc ((size_t) p->plan.n_ranks, sizeof *list),
        said = -1; /* ranks of one node mostly follow each other */
    enum status st =
        list ? costmodel_plan_gpus (&p->plan, c, list, err) : err_nomem (err);

    if (st != ST_OK) {
        free (list);
        return st;
    }
    for (int r = 0; r < p->plan.n_ranks; r++) {
        int node = c->node_of_gpu[list[r]];

        if (c->node[node].drained && node != said)
            notes_add (notes, "rank %d is on node %s, which is drained", r,
                       c->node[node].name);
        said = node;
    }
    *gpu = list;
    return ST_OK;
}

double api_step_error (const struct mapper_problem *p)
{
    struct calibrate_step_types types = {.n = 0};

    for (int i = 0; i < p->cluster->n_nodes; i++)
        if (mapper_node_allowed (p, i))
            calibrate_step_types_add (&types, p->profile, p->model,
                                      p->cluster->node[i].type);
    return calibrate_step_spread (&types, p->profile, p->model);
}

void api_before_search (struct mapper_problem *p, int asked, struct notes *notes)
{
    int n = 0;

    for (int i = 0; i < p->cluster->n_nodes; i++)
        n += p->node_allowed[i];
    if (asked > n)
        notes_add (notes, "%d nodes are asked for, but only %d can be used", asked, n);
    p->step_error = api_step_error;
    costmodel_note_types (p->cluster, p->job->precision, notes);
}

static const struct topology_cluster *cluster_for (const struct linkwise_plan *p,
                                                   const struct linkwise_cluster *given)
{
    return given ? given->c : p->cluster->c;
}

enum linkwise_status linkwise_plan_estimate (const struct linkwise_plan *plan,
                                             const struct linkwise_cluster *cluster,
                                             const char *cost_model,
                                             struct linkwise_estimate *out,
                                             struct linkwise_error *err)
{
    struct costmodel_problem priced;
    int *gpu = NULL;
    enum status st;

    API_NEED (plan);
    API_SIZED (out);
    priced = api_plan_priced (plan, cluster_for (plan, cluster));
    st = api_cost_model (cost_model, &priced.kind, api_error (err));
    THEN (st, api_plan_gpus (plan, priced.cluster, &gpu, NULL, api_error (err)));
    THEN (st, api_price (&priced, gpu, out, api_error (err)));
    if (st == ST_OK && !cluster && !cost_model) {
        out->lower_bound_s = plan->lower_bound_s;
        out->default_order_step_s = plan->default_order_step_s;
    }
    free (gpu);
    return (enum linkwise_status) st;
}

enum linkwise_status linkwise_plan_memory (const struct linkwise_plan *plan,
                                           struct linkwise_memory *out,
                                           struct linkwise_error *err)
{
    const struct topology_cluster *c;
    struct mapper_problem problem;
    double most = -1.0;
    int *gpu = NULL;
    enum status st;

    API_NEED (plan);
    API_SIZED (out);
    c = plan->cluster->c;
    st = api_plan_gpus (plan, c, &gpu, NULL, api_error (err));
    if (st != ST_OK)
        return (enum linkwise_status) st;
    problem = api_plan_problem (plan, c);
    for (int i = 0; i < plan->plan.config.deg.pp; i++) {
        struct memest_stage s;
        double gpu_bytes = mapper_stage_memory (&problem, &plan->plan.config,
                                                plan->plan.layers_per_stage, gpu, i, &s);

        if (s.peak_bytes / gpu_bytes <= most)
            continue;
        most = s.peak_bytes / gpu_bytes;
        api_memory (&problem, &s, i, gpu_bytes, out);
    }
    free (gpu);
    return LINKWISE_OK;
}

/* ---- checking ---- */

struct linkwise_check {
    struct check_report report;
};

enum linkwise_status linkwise_plan_check (const struct linkwise_plan *plan,
                                          const struct linkwise_cluster *cluster,
                                          struct linkwise_check **out,
                                          struct linkwise_error *err)
{
    struct linkwise_check c;
    enum status st;

    API_NEED (plan);
    API_NEED (out);
    st = check_plan (&plan->plan, cluster_for (plan, cluster), &plan->profile, &c.report,
                     api_error (err));
    return api_hand_out (st, &c, sizeof c, out, err);
}

void linkwise_check_destroy (struct linkwise_check *c)
{
    free (c);
}

int linkwise_check_count (const struct linkwise_check *check)
{
    return check ? check->report.n : -1;
}

int linkwise_check_failed (const struct linkwise_check *check)
{
    return check ? check->report.failed : -1;
}

enum linkwise_status linkwise_check_at (const struct linkwise_check *check, int i,
                                        struct linkwise_finding *out,
                                        struct linkwise_error *err)
{
    API_NEED (check);
    API_SIZED (out);
    if (i < 0 || i >= check->report.n)
        API_REFUSE ("expected a finding from 0 to %d, found %d", check->report.n - 1, i);
    *out = (struct linkwise_finding){
        .size = sizeof *out,
        .what = check->report.item[i].what,
        .verdict = (enum linkwise_verdict) check->report.item[i].verdict,
        .found = check->report.item[i].text};
    return LINKWISE_OK;
}

/* ---- writing ---- */

/* The file that a plan names instead of a cluster of many nodes, and the digest of its text.
 * file: NULL where the cluster is written whole. */
static enum status reference (const struct linkwise_cluster *c, const char **file,
                              char hex[65], struct error *err)
{
    *file = c->c->n_nodes > MAPPER_WHOLE_CLUSTER_NODES ? c->file : NULL;
    return *file ? digest (*file, hex, err) : ST_OK;
}

enum status api_result_document (const struct mapper_problem *p,
                                 const struct mapper_result *r,
                                 const struct mapper_info *info,
                                 const struct linkwise_cluster *cluster, json_t **out,
                                 struct error *err)
{
    char hex[65] = "";
    const char *file;
    bool shipped = false;

    TRY (reference (cluster, &file, hex, err));
    if (!(*out = mapper_plan_to_json (p, r, info, file, hex)))
        return err_nomem (err);
    for (int i = 0; workload_profile_shipped (i); i++)
        shipped |= strcmp (workload_profile_shipped (i), p->profile->from) == 0;
    /* Another one is put into the document: its file may be gone when the plan is read. */
    return shipped || json_object_set_new (
                          *out, "profile",
                          workload_profile_to_json (p->profile, p->profile->origin)) == 0
               ? ST_OK
               : err_nomem (err);
}

/* The plan as it can be read from any folder: with its cluster, or the cluster's file by an
 * absolute name.  out: a new reference. */
static enum status portable (const struct linkwise_plan *p, json_t **out,
                             struct error *err)
{
    json_t *doc, *own = json_object_get (p->plan.doc, "cluster");
    char hex[65], where[PATH_MAX];
    const char *file = json_member_text (own, "file");

    if (p->other_cluster)
        TRY (reference (p->cluster, &file, hex, err));
    if (!(doc = json_copy (p->plan.doc)))
        return err_nomem (err);
    if (file && realpath (file, where)) {
        own = p->other_cluster
                  ? json_pack ("{s:s, s:i, s:s}", "name", p->cluster->c->name, "nodes",
                               p->cluster->c->n_nodes, "sha256", hex)
                  : json_copy (own);
        json_object_set_new (own, "file", json_string (where));
        json_object_set_new (doc, "cluster", own);
    } else if (p->other_cluster) {
        json_object_set_new (doc, "cluster", topology_cluster_to_json (p->cluster->c));
    }
    *out = doc;
    return ST_OK;
}

/* The document with the cluster that the plan is for. */
static enum status document (const struct linkwise_plan *p, json_t **out,
                             struct error *err)
{
    if (p->other_cluster)
        return portable (p, out, err);
    *out = json_incref (p->plan.doc);
    return ST_OK;
}

enum linkwise_status linkwise_plan_to_json (const struct linkwise_plan *plan, char **json,
                                            struct linkwise_error *err)
{
    json_t *doc;
    enum status st;

    API_NEED (plan);
    API_NEED (json);
    st = document (plan, &doc, api_error (err));
    return st == ST_OK ? api_text (doc, json, err) : (enum linkwise_status) st;
}

enum linkwise_status linkwise_plan_write (const struct linkwise_plan *plan,
                                          const char *path, struct linkwise_error *err)
{
    json_t *doc = NULL;
    enum status st;

    API_NEED (plan);
    API_NEED (path);
    st = document (plan, &doc, api_error (err));
    THEN (st, json_write (path, doc, api_error (err)));
    json_decref (doc);
    return (enum linkwise_status) st;
}

enum status api_emit (const struct linkwise_plan *p, const char *to, const char *folder,
                      const char *program, struct notes *notes, struct notes *refused,
                      struct error *err)
{
    json_t *doc = NULL;
    int *gpu = NULL;
    enum status st = api_plan_gpus (p, p->cluster->c, &gpu, notes, err);

    THEN (st, portable (p, &doc, err));
    if (st == ST_OK) {
        const struct launch_request request = {.plan = &p->plan,
                                               .profile = &p->profile,
                                               .cluster = p->cluster->c,
                                               .gpu = gpu,
                                               .doc = doc,
                                               .linkwise = program,
                                               .to = to};

        st = launch_emit (&request, folder, refused, err);
    }
    json_decref (doc);
    free (gpu);
    return st;
}

enum linkwise_status linkwise_plan_emit (const struct linkwise_plan *plan, const char *to,
                                         const char *folder, struct linkwise_notes *notes,
                                         struct linkwise_error *err)
{
    API_NEED (plan);
    API_NEED (to);
    API_NEED (folder);
    if (folder[0] == '\0')
        API_REFUSE ("%s: expected a name, found \"\"", "folder");
    return (enum linkwise_status) api_emit (plan, to, folder, "linkwise", NULL,
                                            api_notes (notes), api_error (err));
}

const char *linkwise_launcher_at (int i)
{
    const struct text_choice *t = i >= 0 ? launch_target_at (i) : NULL;

    return t ? t->name : NULL;
}
