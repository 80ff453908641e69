/* Models, profiles, jobs and configurations; memory and step time of one configuration. */
#include "api/api.h"

#include <math.h>
#include <stdlib.h>

/* ---- models and profiles ---- */

enum linkwise_status linkwise_model_read (const char *arg, struct linkwise_model **out,
                                          struct linkwise_notes *notes,
                                          struct linkwise_error *err)
{
    struct linkwise_model *m;
    enum status st;

    API_NEED (arg);
    API_NEED (out);
    m = malloc (sizeof *m);
    st = m ? workload_model_read (arg, &m->m, api_notes (notes), api_error (err))
           : err_nomem (api_error (err));
    if (st == ST_OK)
        *out = m;
    else
        free (m);
    return (enum linkwise_status) st;
}

void linkwise_model_destroy (struct linkwise_model *m)
{
    free (m);
}

const char *linkwise_model_name (const struct linkwise_model *m)
{
    return m ? m->m.name : NULL;
}

double linkwise_model_parameters (const struct linkwise_model *m)
{
    return m ? workload_model_params (&m->m) : NAN;
}

const char *linkwise_model_preset_at (int i)
{
    int n;
    const struct workload_model *m = workload_presets (&n);

    return i >= 0 && i < n ? m[i].name : NULL;
}

enum linkwise_status linkwise_profile_read (const char *arg,
                                            struct linkwise_profile **out,
                                            struct linkwise_notes *notes,
                                            struct linkwise_error *err)
{
    struct linkwise_profile *p;
    enum status st;

    API_NEED (arg);
    API_NEED (out);
    p = malloc (sizeof *p);
    st = p ? workload_profile_read (arg, &p->p, api_notes (notes), api_error (err))
           : err_nomem (api_error (err));
    if (st == ST_OK)
        *out = p;
    else
        free (p);
    return (enum linkwise_status) st;
}

void linkwise_profile_destroy (struct linkwise_profile *p)
{
    free (p);
}

const char *linkwise_profile_name (const struct linkwise_profile *p)
{
    return p ? p->p.name : NULL;
}

enum status api_profile (const struct linkwise_profile *given,
                         struct workload_profile *out, struct error *err)
{
    if (!given)
        return workload_profile_read (WORKLOAD_PROFILE_DEFAULT, out, NULL, err);
    *out = given->p;
    return ST_OK;
}

/* ---- words ---- */

static enum status unknown (struct error *err, const char *what, const char *found)
{
    return err_set (err, ST_USAGE, "%s: unknown word \"%s\"", what, found);
}

static enum status choice (const char *what, const char *word, enum workload_choice *out,
                           struct error *err)
{
    return !word || workload_choice_parse (word, out) ? ST_OK : unknown (err, what, word);
}

enum status api_job (const struct linkwise_job *in, const struct workload_model *m,
                     struct workload_job *out, struct error *err)
{
    struct workload_job j = {.seq = in->seq,
                             .global_batch = in->global_batch,
                             .wta_crs = in->wta_crs,
                             .lora = in->lora};
    enum status st = ST_OK;

    if (in->precision && !workload_precision_parse (in->precision, &j.precision))
        return unknown (err, "precision", in->precision);
    if (in->attention && !workload_attention_parse (in->attention, &j.attention))
        return unknown (err, "attention", in->attention);
    st = choice ("fused_norm", in->fused_norm, &j.fused_norm, err);
    if (st == ST_OK)
        st = choice ("fused_mlp", in->fused_mlp, &j.fused_mlp, err);
    if (st == ST_OK)
        st = choice ("gathered_logits", in->gathered_logits, &j.gathered_logits, err);
    if (st == ST_OK)
        st = workload_job_check (m, &j, err);
    if (st == ST_OK)
        *out = j;
    return st;
}

/* A value that is free, or within limits. */
static enum status in_limits (const char *what, int value, int lo, int hi,
                              struct error *err)
{
    if (value == LINKWISE_FREE || (value >= lo && value <= hi))
        return ST_OK;
    return err_set (err, ST_USAGE, "%s: expected %d to %d or -1, found %d", what, lo, hi,
                    value);
}

enum status api_axes (const struct linkwise_config *in, struct mapper_axes *out,
                      struct error *err)
{
    struct mapper_axes a = mapper_axes_free ();
    const struct {
        const char *what;
        int value, lo, hi;
        int *axis;
    } axes[] = {{"tp", in ? in->tp : -1, 1, 1 << 20, &a.tp},
                {"pp", in ? in->pp : -1, 1, 1 << 20, &a.pp},
                {"dp", in ? in->dp : -1, 1, 1 << 20, &a.dp},
                {"cp", in ? in->cp : -1, 1, 1 << 20, &a.cp},
                {"ep", in ? in->ep : -1, 1, 1 << 20, &a.ep},
                {"etp", in ? in->etp : -1, 1, 1 << 20, &a.etp},
                {"vpp", in ? in->vpp : -1, 1, 1 << 20, &a.vpp},
                {"micro_batch", in ? in->micro_batch : -1, 1, 1 << 20, &a.micro_batch},
                {"zero", in ? in->zero : -1, 0, 3, &a.zero},
                {"sequence_parallel", in ? in->sequence_parallel : -1, 0, 1,
                 &a.sequence_parallel}};
    enum workload_recompute recompute;
    enum workload_schedule schedule;

    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        enum status st =
            in_limits (axes[i].what, axes[i].value, axes[i].lo, axes[i].hi, err);

        if (st != ST_OK)
            return st;
        *axes[i].axis = axes[i].value;
    }
    if (in && in->recompute) {
        if (!workload_recompute_parse (in->recompute, &recompute, &a.recompute_layers))
            return unknown (err, "recompute", in->recompute);
        a.recompute = (int) recompute;
    }
    if (in && in->schedule) {
        if (!workload_schedule_parse (in->schedule, &schedule))
            return unknown (err, "schedule", in->schedule);
        a.schedule = (int) schedule;
    }
    *out = a;
    return ST_OK;
}

static enum status take_layers (const int *given, const struct workload_model *m,
                                enum workload_partition by, int pp, int **out,
                                struct error *err)
{
    int *layers = malloc ((size_t) pp * sizeof *layers);
    long long sum = 0;

    if (!layers)
        return err_nomem (err);
    if (!given)
        workload_layers_split (m, by, pp, layers);
    for (int i = 0; i < pp; i++) {
        layers[i] = given ? given[i] : layers[i];
        sum = layers[i] < 1 ? m->layers + 1LL : sum + layers[i];
    }
    if (sum != m->layers) {
        free (layers);
        return err_set (err, ST_INVALID,
                        "layers: expected one or more on each stage and %d in all",
                        m->layers);
    }
    *out = layers;
    return ST_OK;
}

enum status api_config (const struct linkwise_config *in, const struct workload_model *m,
                        const struct workload_job *job,
                        const struct workload_profile *profile,
                        const struct topology_cluster *c, struct workload_config *out,
                        int **layers, struct error *err)
{
    struct mapper_axes axes;
    struct workload_config config;
    enum status st = api_axes (in, &axes, err);

    if (st == ST_OK && c)
        st = mapper_axes_config_on (c, &axes, &config, err);
    else if (st == ST_OK)
        config = mapper_axes_config (&axes);
    if (st == ST_OK)
        st = workload_config_check (m, job, &config, err);
    if (st == ST_OK)
        st = workload_config_offered (&config, profile, err);
    if (st == ST_OK)
        st = take_layers (in ? in->layers : NULL, m, profile->partition, config.deg.pp,
                          layers, err);
    if (st == ST_OK)
        *out = config;
    return st;
}

/* ---- one configuration ---- */

void api_memory (const struct memest_stage *s, int stage, double gpu_bytes,
                 double limit_bytes, double chance, struct linkwise_memory *out)
{
    *out = (struct linkwise_memory){.size = sizeof *out,
                                    .stage = stage,
                                    .peak_bytes = s->peak_bytes,
                                    .gpu_bytes = gpu_bytes,
                                    .limit_bytes = limit_bytes,
                                    .oom_probability = chance,
                                    .weights_bytes = s->weights_bytes,
                                    .gradients_bytes = s->gradients_bytes,
                                    .optimizer_bytes = s->optimizer_bytes,
                                    .activations_bytes = s->activations_bytes,
                                    .logits_bytes = s->logits_bytes,
                                    .buffers_bytes = s->buffers_bytes,
                                    .overhead_bytes = s->overhead_bytes};
}

/* The stage asked for, or the fullest. */
static enum status pick_stage (const struct memest_problem *p, const int *layers,
                               int stage, struct memest_stage *out, int *at,
                               struct error *err)
{
    int pp = p->config->deg.pp;

    if (stage < -1 || stage >= pp)
        return err_set (err, ST_USAGE, "stage: expected -1 to %d, found %d", pp - 1,
                        stage);
    *at = -1;
    for (int i = stage < 0 ? 0 : stage; i <= (stage < 0 ? pp - 1 : stage); i++) {
        struct workload_stage held = workload_stage_of (p->model, p->config, layers, i);
        struct memest_stage s;

        memest_stage (p, i, &held, &s);
        if (*at < 0 || s.peak_bytes > out->peak_bytes) {
            *out = s;
            *at = i;
        }
    }
    return ST_OK;
}

enum linkwise_status
linkwise_memory (const struct linkwise_model *model,
                 const struct linkwise_profile *profile, const struct linkwise_job *job,
                 const struct linkwise_config *config, const char *gpu, int stage,
                 struct linkwise_memory *out, struct linkwise_notes *notes,
                 struct linkwise_error *err)
{
    const struct topology_gpu_type *type;
    struct workload_profile p;
    struct workload_config c;
    struct workload_job j;
    struct memest_problem problem;
    struct memest_stage s = {0};
    int *layers = NULL, at = 0;
    enum status st;

    API_NEED (model);
    API_SIZED (job);
    if (config)
        API_SIZED (config);
    API_NEED (gpu);
    API_SIZED (out);
    if (!(type = topology_gpu_type_builtin (gpu)))
        return (enum linkwise_status) unknown (api_error (err), "gpu", gpu);
    st = api_profile (profile, &p, api_error (err));
    if (st == ST_OK)
        st = api_job (job, &model->m, &j, api_error (err));
    if (st == ST_OK && !(costmodel_matrix_rate (type, j.precision) > 0))
        st = err_set (api_error (err), ST_INVALID, "GPU type %s cannot run %s", gpu,
                      workload_precision_name (j.precision));
    if (st == ST_OK)
        st = api_config (config, &model->m, &j, &p, NULL, &c, &layers, api_error (err));
    problem = (struct memest_problem){&model->m, &j, &c, &p, MEMEST_LINKWISE};
    if (st == ST_OK)
        st = pick_stage (&problem, layers, stage, &s, &at, api_error (err));
    free (layers);
    if (st == ST_OK) {
        costmodel_note_type (type, j.precision, api_notes (notes));
        api_memory (&s, at, type->memory_bytes,
                    memest_limit (&p, type->memory_bytes,
                                  memest_usual_limit_pct (MEMEST_LINKWISE), 0),
                    memest_chance (MEMEST_LINKWISE, &p, s.peak_bytes, type->memory_bytes),
                    out);
    }
    return (enum linkwise_status) st;
}

static void fill_estimate (const struct costmodel_estimate *e,
                           struct linkwise_estimate *out)
{
    const struct costmodel_breakdown *b = &e->part;

    *out = (struct linkwise_estimate){.size = sizeof *out,
                                      .step_s = e->step_s,
                                      .tokens_per_s = e->tokens_per_s,
                                      .mfu = e->mfu,
                                      .compute_s = b->compute_s,
                                      .tp_s = b->tp_s,
                                      .cp_s = b->cp_s,
                                      .ep_s = b->ep_s,
                                      .bubble_s = b->bubble_s,
                                      .pp_s = b->pp_s,
                                      .dp_s = b->dp_s,
                                      .optimizer_s = b->optimizer_s,
                                      .stage = e->stage,
                                      .replica = e->replica,
                                      .unmeasured_links = e->n_unmeasured,
                                      .lower_bound_s = NAN,
                                      .default_order_step_s = NAN};
}

enum status api_cost_model (const char *word, enum costmodel_kind *out, struct error *err)
{
    *out = COSTMODEL_CRITICAL_PATH;
    return !word || costmodel_kind_parse (word, out) ? ST_OK
                                                     : unknown (err, "cost_model", word);
}

enum status api_price (const struct costmodel_problem *p, const int *gpu,
                       struct linkwise_estimate *out, struct error *err)
{
    struct costmodel_estimate e;
    enum status st = costmodel_estimate (p, gpu, true, &e, err);

    if (st != ST_OK)
        return st;
    fill_estimate (&e, out);
    free (e.unmeasured);
    return ST_OK;
}

enum linkwise_status
linkwise_time (const struct linkwise_cluster *cluster, const struct linkwise_model *model,
               const struct linkwise_profile *profile, const struct linkwise_job *job,
               const struct linkwise_config *config, const char *cost_model,
               struct linkwise_estimate *out, struct linkwise_notes *notes,
               struct linkwise_error *err)
{
    struct workload_profile p;
    struct workload_config c;
    struct workload_job j;
    enum costmodel_kind kind;
    int *layers = NULL, *gpu = NULL;
    enum status st;

    API_NEED (cluster);
    API_NEED (model);
    API_SIZED (job);
    if (config)
        API_SIZED (config);
    API_SIZED (out);
    st = api_cost_model (cost_model, &kind, api_error (err));
    if (st == ST_OK)
        st = api_profile (profile, &p, api_error (err));
    if (st == ST_OK)
        st = api_job (job, &model->m, &j, api_error (err));
    if (st == ST_OK)
        st = api_config (config, &model->m, &j, &p, cluster->c, &c, &layers,
                         api_error (err));
    if (st == ST_OK && !(gpu = malloc ((size_t) workload_world (&c.deg) * sizeof *gpu)))
        st = err_nomem (api_error (err));
    if (st == ST_OK) {
        struct costmodel_problem priced = {.model = &model->m,
                                           .job = &j,
                                           .config = &c,
                                           .profile = &p,
                                           .cluster = cluster->c,
                                           .layers = layers,
                                           .kind = kind};

        costmodel_note_types (cluster->c, j.precision, api_notes (notes));
        topology_gpus_in_order (cluster->c, (int) workload_world (&c.deg), gpu);
        st = api_price (&priced, gpu, out, api_error (err));
    }
    free (layers);
    free (gpu);
    return (enum linkwise_status) st;
}
