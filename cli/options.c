/* Options that several commands share, and turning them into inputs. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/version.h"

enum {
    OPT_SEQ = 256,
    OPT_BATCH,
    OPT_TP,
    OPT_PP,
    OPT_DP,
    OPT_CP,
    OPT_EP,
    OPT_ETP,
    OPT_VPP,
    OPT_MICRO,
    OPT_ZERO,
    OPT_SP,
    OPT_RECOMPUTE,
    OPT_SCHEDULE,
    OPT_PRECISION,
    OPT_ATTENTION,
    OPT_PROFILE,
    OPT_LIMIT,
    OPT_LAYERS,
    OPT_MEMORY_MODEL,
    OPT_RISK,
    OPT_FUSED_NORM,
    OPT_FUSED_MLP,
    OPT_GATHERED,
    OPT_WTA,
    OPT_LORA
};

static const struct argp_option options[] = {
    {"seq", OPT_SEQ, "TOKENS", 0, "tokens of one sequence", 1},
    {"global-batch", OPT_BATCH, "N", 0, "sequences of one optimiser step", 1},
    {"tp", OPT_TP, "N", 0, "tensor-parallel degree", 1},
    {"pp", OPT_PP, "N", 0, "pipeline stages", 1},
    {"dp", OPT_DP, "N", 0, "data-parallel degree, context parallelism not counted", 1},
    {"cp", OPT_CP, "N", 0, "context-parallel degree", 1},
    {"ep", OPT_EP, "N", 0, "expert-parallel degree", 1},
    {"etp", OPT_ETP, "N", 0, "tensor-parallel degree of experts", 1},
    {"vpp", OPT_VPP, "N", 0, "model chunks of a stage", 1},
    {"micro-batch", OPT_MICRO, "N", 0, "sequences of one micro-batch", 1},
    {"zero", OPT_ZERO, "0..3", 0, "ZeRO stage; 1 is Megatron's distributed optimizer", 1},
    {"sequence-parallel", OPT_SP, "on|off", 0,
     "split norms over the tensor-parallel group", 1},
    {"recompute", OPT_RECOMPUTE, "none|selective|full|full:K", 0,
     "activation recomputation; K of a stage's layers", 1},
    {"schedule", OPT_SCHEDULE, "1f1b|interleaved|gpipe|zb1p|zb2p|zbv|v-half|v-min", 0,
     "pipeline schedule (default 1f1b; plan searches those that the profile's framework "
     "runs)",
     1},
    {"precision", OPT_PRECISION, "bf16|fp16|fp8|fp32", 0, "default bf16", 1},
    {"attention", OPT_ATTENTION, "flash|fused|unfused", 0,
     "fused keeps the scores but has one softmax kernel (default flash)", 1},
    {"fused-norm", OPT_FUSED_NORM, "on|off", 0,
     "norms in one kernel (default: the profile's)", 1},
    {"fused-mlp", OPT_FUSED_MLP, "on|off", 0,
     "the MLP's activation in one kernel (default: the profile's)", 1},
    {"gathered-logits", OPT_GATHERED, "on|off", 0,
     "logits gathered over tp, not split (default: the profile's)", 1},
    {"wta-crs", OPT_WTA, "BUDGET", 0,
     "winner-take-all column-row sampling: linear layers keep this part of their inputs "
     "(the published 2.7 times less memory is LoRA and WTA-CRS together)",
     1},
    {"lora", OPT_LORA, NULL, 0, "train adapters alone: no gradients or optimizer state",
     1},
    {"profile", OPT_PROFILE, "NAME|FILE", 0,
     "framework profile (default " WORKLOAD_PROFILE_DEFAULT ")", 1},
    {"memory-limit", OPT_LIMIT, "PCT", 0,
     "part of the memory that the driver reports (default 95; Fujii's rule is 80)", 1},
    {"oom-risk", OPT_RISK, "P", 0, "instead: the largest chance of running out, 0 to 1",
     1},
    {"memory-model", OPT_MEMORY_MODEL, "linkwise|fujii|korthikanti", 0,
     "whose memory formulas (default linkwise)", 1},
    {"layers-per-stage", OPT_LAYERS, "N,N,...", 0, "instead of an even split", 1},
    {0}};

int cli_int (const char *arg, const char *option, int lo, int hi,
             struct argp_state *state)
{
    char *end;

    errno = 0;

    long n = strtol (arg, &end, 10);

    if (end == arg || *end || errno || n < lo || n > hi)
        argp_error (state, "%s: expected a whole number from %d to %d, found \"%s\"",
                    option, lo, hi, arg);
    return (int) n;
}

double cli_number (const char *arg, const char *option, double lo, double hi,
                   struct argp_state *state)
{
    char *end;
    double x = strtod (arg, &end);

    if (end == arg || *end || !isfinite (x) || x <= lo || x > hi)
        argp_error (state, "%s: expected a number above %g, at most %g, found \"%s\"",
                    option, lo, hi, arg);
    return x;
}

double cli_number_from_0 (const char *arg, const char *option, double hi,
                          struct argp_state *state)
{
    char *end;
    double x = strtod (arg, &end);

    if (end == arg || *end || !isfinite (x) || x < 0 || x > hi)
        argp_error (state, "%s: expected a number from 0 to %g, found \"%s\"", option, hi,
                    arg);
    return x;
}

static void parse_choice (const char *arg, const char *option, enum workload_choice *c,
                          struct argp_state *state)
{
    if (!workload_choice_parse (arg, c))
        argp_error (state, "%s: expected on or off, found \"%s\"", option, arg);
}

/* Degrees that exclude each other whatever the model and the cluster. */
static void refuse_contradictions (const struct mapper_axes *a, struct argp_state *state)
{
    bool fixed = a->schedule != MAPPER_FREE;
    enum workload_schedule schedule =
        fixed ? (enum workload_schedule) a->schedule : SCHEDULE_INTERLEAVED;
    const char *name = workload_schedule_name (schedule);
    bool chunks = workload_default_vpp (schedule) > 1;

    if (a->sequence_parallel == 1 && a->tp == 1)
        argp_error (state,
                    "--sequence-parallel on splits over the tensor-parallel group, "
                    "and --tp is 1: leave out one of the two");
    if (a->tp != MAPPER_FREE && a->etp > a->tp)
        argp_error (state, "--etp %d is above --tp %d: ask for %d or less", a->etp, a->tp,
                    a->tp);
    if (a->pp == 1 && chunks && (fixed || a->vpp > 1))
        argp_error (state, "%s needs a pipeline, and --pp is 1: leave out one of the two",
                    fixed ? name : "--vpp above 1");
    if (!fixed || a->vpp == MAPPER_FREE)
        return;
    if (!chunks && a->vpp > 1)
        argp_error (state,
                    "--vpp %d: the %s schedule has one chunk a stage: ask for "
                    "--schedule interleaved, or leave out --vpp",
                    a->vpp, name);
    if (workload_schedule_is_v (schedule) && a->vpp != 2)
        argp_error (state, "--vpp %d: the %s schedule has two chunks a stage", a->vpp,
                    name);
    if (chunks && a->vpp < 2)
        argp_error (state, "--vpp %d: the %s schedule needs 2 or more", a->vpp, name);
}

static error_t parse_job (int key, char *arg, struct argp_state *state)
{
    struct cli_job *j = state->input;
    struct mapper_axes *a = &j->axes;
    const int most = 1 << 30;
    enum workload_recompute recompute;
    enum workload_schedule schedule;

    switch (key) {
    case OPT_SEQ:
        j->seq = cli_int (arg, "--seq", 1, most, state);
        return 0;
    case OPT_BATCH:
        j->global_batch = cli_int (arg, "--global-batch", 1, most, state);
        return 0;
    case OPT_TP:
        a->tp = cli_int (arg, "--tp", 1, most, state);
        return 0;
    case OPT_PP:
        a->pp = cli_int (arg, "--pp", 1, most, state);
        return 0;
    case OPT_DP:
        a->dp = cli_int (arg, "--dp", 1, most, state);
        return 0;
    case OPT_CP:
        a->cp = cli_int (arg, "--cp", 1, most, state);
        return 0;
    case OPT_EP:
        a->ep = cli_int (arg, "--ep", 1, most, state);
        return 0;
    case OPT_ETP:
        a->etp = cli_int (arg, "--etp", 1, most, state);
        return 0;
    case OPT_VPP:
        a->vpp = cli_int (arg, "--vpp", 1, most, state);
        return 0;
    case OPT_MICRO:
        a->micro_batch = cli_int (arg, "--micro-batch", 1, most, state);
        return 0;
    case OPT_ZERO:
        a->zero = cli_int (arg, "--zero", 0, 3, state);
        return 0;
    case OPT_SP:
        if (strcmp (arg, "on") != 0 && strcmp (arg, "off") != 0)
            argp_error (state, "--sequence-parallel: expected on or off, found \"%s\"",
                        arg);
        a->sequence_parallel = strcmp (arg, "on") == 0;
        return 0;
    case OPT_RECOMPUTE:
        if (!workload_recompute_parse (arg, &recompute, &a->recompute_layers))
            argp_error (
                state,
                "--recompute: expected none, selective, full or full:K, found \"%s\"",
                arg);
        a->recompute = (int) recompute;
        return 0;
    case OPT_SCHEDULE:
        if (!workload_schedule_parse (arg, &schedule))
            argp_error (
                state,
                "--schedule: expected 1f1b, interleaved, gpipe, zb1p, zb2p, zbv, v-half "
                "or v-min, found \"%s\"",
                arg);
        a->schedule = (int) schedule;
        return 0;
    case OPT_PRECISION:
        if (!workload_precision_parse (arg, &j->precision))
            argp_error (state,
                        "--precision: expected bf16, fp16, fp8 or fp32, found \"%s\"",
                        arg);
        return 0;
    case OPT_ATTENTION:
        if (!workload_attention_parse (arg, &j->attention))
            argp_error (state,
                        "--attention: expected flash, fused or unfused, found \"%s\"",
                        arg);
        return 0;
    case OPT_PROFILE:
        j->profile = arg;
        return 0;
    case OPT_LIMIT:
        j->memory_limit_pct = cli_number (arg, "--memory-limit", 0, 100, state);
        return 0;
    case OPT_LAYERS:
        j->layers = arg;
        return 0;
    case OPT_MEMORY_MODEL:
        if (!memest_model_parse (arg, &j->memory_model))
            argp_error (
                state,
                "--memory-model: expected linkwise, fujii or korthikanti, found \"%s\"",
                arg);
        return 0;
    case OPT_RISK:
        j->oom_risk = cli_number (arg, "--oom-risk", 0, 0.999999, state);
        return 0;
    case OPT_FUSED_NORM:
        parse_choice (arg, "--fused-norm", &j->fused_norm, state);
        return 0;
    case OPT_FUSED_MLP:
        parse_choice (arg, "--fused-mlp", &j->fused_mlp, state);
        return 0;
    case OPT_GATHERED:
        parse_choice (arg, "--gathered-logits", &j->gathered_logits, state);
        return 0;
    case OPT_WTA:
        j->wta_crs = cli_number (arg, "--wta-crs", 0, 1, state);
        return 0;
    case OPT_LORA:
        j->lora = true;
        return 0;
    case ARGP_KEY_END:
        if (j->oom_risk > 0 && j->memory_limit_pct > 0)
            argp_error (state, "--memory-limit and --oom-risk contradict each other");
        if (j->oom_risk > 0 && j->memory_model != MEMEST_LINKWISE)
            argp_error (state, "--oom-risk: only linkwise's own memory model has one");
        if ((j->lora || j->wta_crs > 0) && j->memory_model != MEMEST_LINKWISE)
            argp_error (state, "%s: only linkwise's own memory model knows it",
                        j->lora ? "--lora" : "--wta-crs");
        refuse_contradictions (&j->axes, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp cli_job_argp = {.options = options, .parser = parse_job};

struct cli_job cli_job_default (void)
{
    return (struct cli_job){.axes = mapper_axes_free (),
                            .profile = WORKLOAD_PROFILE_DEFAULT};
}

double cli_memory_limit (const struct cli_job *j)
{
    if (j->memory_limit_pct > 0)
        return j->memory_limit_pct;
    return j->memory_model == MEMEST_FUJII ? 80 : 95;
}

enum status cli_job_resolve (const struct cli_job *in, const struct workload_model *m,
                             struct workload_job *job, struct workload_profile *profile,
                             struct notes *notes, struct error *err)
{
    *job = (struct workload_job){.seq = in->seq,
                                 .global_batch = in->global_batch,
                                 .precision = in->precision,
                                 .attention = in->attention,
                                 .fused_norm = in->fused_norm,
                                 .fused_mlp = in->fused_mlp,
                                 .gathered_logits = in->gathered_logits,
                                 .wta_crs = in->wta_crs,
                                 .lora = in->lora};

    enum status st = workload_job_check (m, job, err);

    return st == ST_OK ? workload_profile_read (in->profile, profile, notes, err) : st;
}

static int or_default (int value, int fallback)
{
    return value == MAPPER_FREE ? fallback : value;
}

struct mapper_problem cli_problem (const struct cli_job *in,
                                   const struct workload_model *m,
                                   const struct workload_job *job,
                                   const struct workload_profile *profile,
                                   const struct topology_cluster *c)
{
    return (struct mapper_problem){.model = m,
                                   .job = job,
                                   .profile = profile,
                                   .cluster = c,
                                   .axes = in->axes,
                                   .memory_limit_pct = cli_memory_limit (in),
                                   .oom_risk = in->oom_risk,
                                   .memory_model = in->memory_model};
}

struct workload_config cli_job_config (const struct cli_job *in)
{
    const struct mapper_axes *a = &in->axes;
    struct workload_config c = {
        .deg = {.tp = or_default (a->tp, 1),
                .pp = or_default (a->pp, 1),
                .dp = or_default (a->dp, 1),
                .cp = or_default (a->cp, 1),
                .ep = or_default (a->ep, 1)},
        .micro_batch = or_default (a->micro_batch, 1),
        .zero = or_default (a->zero, 1),
        .recompute = (enum workload_recompute) or_default (a->recompute, RECOMPUTE_NONE),
        .recompute_layers = a->recompute_layers,
        .schedule = (enum workload_schedule) or_default (a->schedule, SCHEDULE_1F1B)};

    c.deg.vpp = or_default (a->vpp, workload_default_vpp (c.schedule));
    c.deg.etp = or_default (a->etp, c.deg.tp);
    c.sequence_parallel = c.deg.tp > 1 && or_default (a->sequence_parallel, 1);
    return c;
}

enum status cli_job_layers (const struct cli_job *in, const struct workload_model *m,
                            const struct workload_config *c,
                            const struct workload_profile *profile, int *layers,
                            struct error *err)
{
    const char *p = in->layers;
    long sum = 0;

    if (!p) {
        workload_layers_split (m, profile->partition, c->deg.pp, layers);
        return ST_OK;
    }
    for (int i = 0; i < c->deg.pp; i++) {
        char *end;
        long n = strtol (p, &end, 10);

        if (end == p || n < 1 || n > m->layers ||
            *end != (i + 1 < c->deg.pp ? ',' : '\0'))
            return err_set (err, ST_USAGE,
                            "--layers-per-stage: expected %d numbers from 1 to %d, found "
                            "\"%s\"",
                            c->deg.pp, m->layers, in->layers);
        layers[i] = (int) n;
        sum += n;
        p = end + 1;
    }
    if (sum != m->layers)
        return err_set (err, ST_INVALID,
                        "--layers-per-stage: %s sums to %ld, the model has %d layers",
                        in->layers, sum, m->layers);
    return ST_OK;
}

/* The plan's own cluster: whole, or a reference to its file. */
static enum status cluster_of_plan (const struct workload_plan *plan,
                                    const char *plan_name,
                                    struct topology_cluster **cluster,
                                    struct notes *notes, struct error *err)
{
    json_t *doc = json_object_get (plan->doc, "cluster");
    const char *file = json_string_value (json_object_get (doc, "file"));
    const char *sha256 = json_string_value (json_object_get (doc, "sha256"));
    char where[4200], hex[65], *text;
    size_t len;
    enum status st;

    snprintf (where, sizeof where, "%.4000s: cluster", plan_name);
    if (!file)
        return topology_cluster_from_json (doc, where, NULL, cluster, notes, err);
    st = file_read (file, &text, &len, err);
    if (st != ST_OK) {
        err_prefix (err, "%s (give the CLUSTER as an argument)", where);
        return st;
    }
    file_sha256 (text, len, hex);
    free (text);
    if (sha256 && strcmp (hex, sha256) != 0)
        return err_set (
            err, ST_INVALID,
            "%s: %s has changed since the plan was made; give the CLUSTER as an "
            "argument",
            where, file);
    return topology_cluster_read (file, cluster, notes, err);
}

enum status cli_plan_read (const char *plan_arg, const char *cluster_arg,
                           struct workload_plan *plan, struct topology_cluster **cluster,
                           struct workload_profile *profile, struct notes *notes,
                           struct error *err)
{
    enum status st = workload_plan_read (plan_arg, plan, notes, err);

    if (st != ST_OK)
        return st;
    st = cluster_arg ? topology_cluster_read (cluster_arg, cluster, notes, err)
                     : cluster_of_plan (plan, plan_arg, cluster, notes, err);
    if (st == ST_OK) {
        st = workload_profile_read (plan->profile, profile, notes, err);
        if (st != ST_OK)
            topology_cluster_destroy (*cluster);
    }
    if (st != ST_OK)
        workload_plan_release (plan);
    return st;
}

/* Nodes of a rack, or below a switch, of that name. */
static enum status mark_rack (const struct topology_cluster *c, const char *rack,
                              const char *option, bool value, bool *allowed,
                              struct error *err)
{
    int found = 0;

    for (int i = 0; i < c->n_nodes; i++) {
        const struct topology_node *n = &c->node[i];
        bool is_in = n->rack && strcmp (n->rack, rack) == 0;

        for (int k = 0; k < n->levels && !is_in; k++)
            is_in = strcmp (n->switches[k], rack) == 0;
        if (is_in)
            allowed[i] = value && !n->drained;
        found += is_in;
    }
    return found > 0 ? ST_OK
                     : err_set (err, ST_USAGE,
                                "%s: the cluster %s has no rack and no switch \"%s\"",
                                option, c->name, rack);
}

static enum status mark_node (const struct topology_cluster *c, const char *name,
                              const char *option, bool value, bool *allowed,
                              struct error *err)
{
    int node = topology_node_of_host (c, name);

    if (node == -2)
        return err_set (err, ST_USAGE,
                        "%s: \"%s\" may be several nodes of the cluster %s, whose names "
                        "differ after the first dot",
                        option, name, c->name);
    if (node < 0)
        return err_set (err, ST_USAGE, "%s: the cluster %s has no node \"%s\"", option,
                        c->name, name);
    allowed[node] = value && !c->node[node].drained;
    return ST_OK;
}

enum status cli_mark_nodes (const struct topology_cluster *c, const char *list,
                            const char *option, bool value, bool *allowed,
                            struct error *err)
{
    bool racks = strncmp (list, "rack:", 5) == 0;
    char **names;
    int n;
    enum status st = topology_hostlist_expand (list + (racks ? 5 : 0), &names, &n, err);

    if (st != ST_OK) {
        err_prefix (err, "%s", option);
        return st;
    }
    for (int i = 0; i < n && st == ST_OK; i++)
        st = (racks ? mark_rack : mark_node) (c, names[i], option, value, allowed, err);
    topology_hostlist_free (names);
    return st;
}

enum status cli_cluster_reference (const char *arg, const struct topology_cluster *c,
                                   const char **file, char hex[65], struct error *err)
{
    char *text;
    size_t len;
    enum status st;

    *file = NULL;
    if (c->n_nodes <= 256 || strcmp (arg, "-") == 0 || strchr (arg, ' '))
        return ST_OK;
    st = file_read (arg, &text, &len, err);
    if (st == ST_OK) {
        file_sha256 (text, len, hex);
        free (text);
        *file = arg;
    }
    return st;
}

enum status cli_plan_document (const struct workload_plan *plan, const char *cluster_arg,
                               const struct topology_cluster *c, json_t **out,
                               struct error *err)
{
    json_t *doc = json_copy (plan->doc), *own = json_object_get (doc, "cluster");
    char hex[65] = "", where[PATH_MAX];
    const char *file = json_string_value (json_object_get (own, "file"));
    enum status st = doc ? ST_OK : err_nomem (err);

    if (st == ST_OK && cluster_arg)
        st = cli_cluster_reference (cluster_arg, c, &file, hex, err);
    if (st != ST_OK) {
        json_decref (doc);
        return st;
    }
    if (file && realpath (file, where)) {
        own = cluster_arg ? json_pack ("{s:s, s:i, s:s}", "name", c->name, "nodes",
                                       c->n_nodes, "sha256", hex)
                          : json_copy (own);
        json_object_set_new (own, "file", json_string (where));
        json_object_set_new (doc, "cluster", own);
    } else if (cluster_arg) {
        json_object_set_new (doc, "cluster", topology_cluster_to_json (c));
    }
    *out = doc;
    return ST_OK;
}
