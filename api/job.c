/* Models, profiles, jobs and configurations; memory and step time of one configuration. */
#include "api/api.h"

#include <math.h>
#include <stdlib.h>

/* ---- models and profiles ---- */

enum linkwise_status linkwise_model_read (const char *arg, struct linkwise_model **out,
                                          struct linkwise_notes *notes,
                                          struct linkwise_error *err)
{
    struct linkwise_model m;
    enum status st;

    API_NEED (arg);
    API_NEED (out);
    st = workload_model_read (arg, &m.m, api_notes (notes), api_error (err));
    return api_hand_out (st, &m, sizeof m, out, err);
}

enum linkwise_status linkwise_model_parse (const char *json, const char *name,
                                           struct linkwise_model **out,
                                           struct linkwise_notes *notes,
                                           struct linkwise_error *err)
{
    struct linkwise_model m;
    json_t *doc = NULL;
    enum status st;

    API_NEED (json);
    API_NEED (out);
    st = json_parse_config ("model", json, &doc, api_error (err));
    THEN (st, workload_model_from_json (doc, "model", name ? name : "model", &m.m,
                                        api_notes (notes), api_error (err)));
    json_decref (doc);
    return api_hand_out (st, &m, sizeof m, out, err);
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
    struct linkwise_profile p;
    enum status st;

    API_NEED (arg);
    API_NEED (out);
    st = workload_profile_read (arg, &p.p, api_notes (notes), api_error (err));
    return api_hand_out (st, &p, sizeof p, out, err);
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
                         const struct workload_model *m, const struct workload_gpus *on,
                         struct workload_profile *out, struct error *err)
{
    if (!given)
        return workload_profile_default (m, on, out, err);
    return workload_profile_on (&given->p, m, on, out, NULL, err);
}

/* ---- words ---- */

enum status api_job (const struct linkwise_job *in, const struct workload_model *m,
                     struct workload_job *out, struct notes *notes, struct error *err)
{
    struct workload_job j = {.seq = in->seq,
                             .global_batch = in->global_batch,
                             .wta_crs = in->wta_crs,
                             .lora = in->lora};

    if (!(in->wta_crs >= 0 && in->wta_crs <= 1))
        return err_set (err, ST_USAGE, "wta_crs: expected 0 to 1, found %g", in->wta_crs);
    API_WORD (in, precision, workload_precision_parse, &j.precision,
              "bf16, fp16, fp8, fp4, fp32 or tf32");
    API_WORD (in, attention, workload_attention_parse, &j.attention,
              "flash, fused or unfused");
    API_WORD (in, fused_norm, workload_choice_parse, &j.fused_norm, "on or off");
    API_WORD (in, fused_mlp, workload_choice_parse, &j.fused_mlp, "on or off");
    API_WORD (in, gathered_logits, workload_choice_parse, &j.gathered_logits,
              "on or off");
    API_WORD (in, tp_comm_overlap, workload_choice_parse, &j.tp_comm_overlap,
              "on or off");
    workload_job_usual (m, &j, notes);
    TRY (workload_job_check (m, &j, err));
    *out = j;
    return ST_OK;
}

/* As many micro-batches as stages, and twice that where a stage can hold more of them. */
enum status api_filling_batch (const struct workload_config *c, int *global_batch,
                               struct error *err)
{
    long long batch = (long long) c->deg.dp * c->micro_batch;
    bool holds_more = c->schedule == SCHEDULE_INTERLEAVED || c->schedule == SCHEDULE_ZB2P;

    if (*global_batch != 0)
        return ST_OK;
    if (batch < 1 << 30 && c->deg.pp < 1 << 24)
        batch *= (long long) c->deg.pp * (holds_more ? 2 : 1);
    if (batch > 1 << 30)
        return err_set (err, ST_INVALID, "dp, pp and micro-batch: too large");
    *global_batch = (int) batch;
    return ST_OK;
}

bool api_parse_recompute (const char *word, void *axes)
{
    struct mapper_axes *a = axes;
    struct workload_config c = {0};
    bool known = workload_recompute_parse (word, &c);

    a->recompute = (int) c.recompute;
    a->recompute_layers = c.recompute_layers;
    a->recompute_modules = c.recompute_modules;
    return known;
}

bool api_parse_schedule (const char *word, void *axis)
{
    return workload_word_parse (workload_schedule_words, word, axis);
}

bool api_parse_offload (const char *word, void *axis)
{
    return workload_word_parse (workload_offload_words, word, axis);
}

enum status api_axes (const struct linkwise_config *in, struct mapper_axes *out,
                      struct error *err)
{
    const struct linkwise_config none = linkwise_config ();
    const struct linkwise_config *c = in ? in : &none;
    struct mapper_axes a = mapper_axes_free ();
    const struct {
        const char *what;
        int value, lo, hi;
        int *axis;
    } axes[] = {{"tp", c->tp, 1, 1 << 20, &a.tp},
                {"pp", c->pp, 1, 1 << 20, &a.pp},
                {"dp", c->dp, 1, 1 << 20, &a.dp},
                {"cp", c->cp, 1, 1 << 20, &a.cp},
                {"ep", c->ep, 1, 1 << 20, &a.ep},
                {"etp", c->etp, 1, 1 << 20, &a.etp},
                {"vpp", c->vpp, 1, 1 << 20, &a.vpp},
                {"micro_batch", c->micro_batch, 1, 1 << 20, &a.micro_batch},
                {"zero", c->zero, 0, 3, &a.zero},
                {"shard", c->shard, 0, 1 << 20, &a.shard},
                {"optimizer_bytes", c->optimizer_bytes, 1, WORKLOAD_OPTIMIZER_BYTES_MAX,
                 &a.optimizer_bytes},
                {"sequence_parallel", c->sequence_parallel, 0, 1, &a.sequence_parallel}};

    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        int value = axes[i].value;

        if (value != LINKWISE_FREE && (value < axes[i].lo || value > axes[i].hi))
            return err_set (err, ST_USAGE, "%s: expected %d to %d or -1, found %d",
                            axes[i].what, axes[i].lo, axes[i].hi, value);
        *axes[i].axis = value;
    }
    API_WORD (c, recompute, api_parse_recompute, &a,
              "none, selective, full, full:K or MODULE,...");
    API_WORD (c, schedule, api_parse_schedule, &a.schedule,
              "1f1b, interleaved, gpipe, zb1p, zb2p, zbv, v-half, v-min or dualpipev");
    API_WORD (c, offload, api_parse_offload, &a.offload,
              "none, optimizer, all or checkpoints");
    *out = a;
    return ST_OK;
}

enum status api_split_layers (struct linkwise_plan *x, struct error *err)
{
    int pp = x->plan.config.deg.pp;

    if (!(x->plan.layers_per_stage = malloc ((size_t) pp * sizeof (int))))
        return err_nomem (err);
    workload_layers_split (&x->plan.model, x->profile.partition, pp,
                           x->plan.layers_per_stage);
    return ST_OK;
}

/* A job's configuration, what is not given at its usual value, as a plan without ranks.
 * on: the GPU types that a profile is chosen for.  dp is what the cluster's GPUs leave where it is
 * not given; no cluster: 1, and the batch is what fills the pipeline. */
static enum status
describe (const struct linkwise_model *model, const struct linkwise_profile *profile,
          const struct linkwise_job *job, const struct linkwise_config *config,
          const struct workload_gpus *on, const struct topology_cluster *c,
          struct linkwise_plan *x, struct notes *notes, struct error *err)
{
    struct workload_plan *p = &x->plan;
    struct linkwise_job asked = *job;
    struct mapper_axes axes;
    int all = model->m.layers;
    long long sum = 0;

    p->model = model->m;
    TRY (api_profile (profile, &p->model, on, &x->profile, err));
    TRY (api_axes (config, &axes, err));
    p->config = mapper_axes_config (&axes);
    if (c)
        TRY (mapper_axes_config_on (c, &axes, &p->config, err));
    else
        TRY (api_filling_batch (&p->config, &asked.global_batch, err));
    mapper_axes_usual (&axes, &x->profile, &p->config);
    TRY (api_job (&asked, &p->model, &p->job, notes, err));
    workload_profile_pace (&x->profile, &p->model, p->job.precision);
    TRY (workload_config_check (&p->model, &p->job, &p->config, err));
    TRY (workload_config_offered (&p->model, &p->config, &x->profile, err));
    TRY (api_split_layers (x, err));
    if (!config || !config->layers)
        return ST_OK;
    for (int i = 0; i < p->config.deg.pp; i++) {
        p->layers_per_stage[i] = config->layers[i];
        sum = config->layers[i] < 1 ? all + 1LL : sum + config->layers[i];
    }
    if (sum == all)
        return ST_OK;
    return err_set (err, ST_INVALID,
                    "layers: expected one or more on each stage and %d in all", all);
}

/* ---- one configuration ---- */

void api_memory (const struct mapper_problem *p, const struct memest_stage *s, int stage,
                 double gpu_bytes, struct linkwise_memory *out)
{
    *out = (struct linkwise_memory){
        .size = sizeof *out,
        .stage = stage,
        .peak_bytes = s->peak_bytes,
        .gpu_bytes = gpu_bytes,
        .limit_bytes = mapper_stage_limit (p, s, gpu_bytes),
        .oom_probability =
            memest_chance (p->memory_model, p->profile, memest_load_of (s), gpu_bytes),
        .weights_bytes = s->weights_bytes,
        .gradients_bytes = s->gradients_bytes,
        .optimizer_bytes = s->optimizer_bytes,
        .activations_bytes = s->activations_bytes,
        .logits_bytes = s->logits_bytes,
        .buffers_bytes = s->buffers_bytes,
        .overhead_bytes = s->overhead_bytes};
}

int api_stages (const struct mapper_problem *p, const struct linkwise_plan *x,
                double gpu_bytes, struct memest_stage *stage)
{
    const struct memest_problem memory = mapper_memory_problem (p, &x->plan.config);
    int tightest = 0;

    for (int i = 0; i < x->plan.config.deg.pp; i++) {
        struct workload_stage held = workload_plan_stage (&x->plan, i);

        memest_stage (&memory, i, &held, &stage[i]);
        if (mapper_stage_full (p, &stage[i], gpu_bytes) >
            mapper_stage_full (p, &stage[tightest], gpu_bytes))
            tightest = i;
    }
    return tightest;
}

enum linkwise_status
linkwise_memory (const struct linkwise_model *model,
                 const struct linkwise_profile *profile, const struct linkwise_job *job,
                 const struct linkwise_config *config, const char *gpu, int stage,
                 struct linkwise_memory *out, struct linkwise_notes *notes,
                 struct linkwise_error *err)
{
    const struct topology_gpu_type *type;
    struct linkwise_plan x = {.cluster = NULL};
    struct workload_gpus on;
    struct mapper_problem p;
    struct memest_stage *s = NULL;
    int pp, tightest;
    enum status st;

    API_NEED (model);
    API_SIZED (job);
    if (config)
        API_SIZED (config);
    API_NEED (gpu);
    API_SIZED (out);
    st = topology_gpu_type_take ("gpu", gpu, &type, api_notes (notes), api_error (err));
    if (st != ST_OK)
        return (enum linkwise_status) st;
    on = (struct workload_gpus){.name = {type->name}, .n = 1};
    st = describe (model, profile, job, config, &on, NULL, &x, api_notes (notes),
                   api_error (err));
    if (st == ST_OK && !(costmodel_matrix_rate (type, x.plan.job.precision) > 0))
        st = err_set (api_error (err), ST_INVALID, "GPU type %s cannot run %s", gpu,
                      workload_precision_name (x.plan.job.precision));
    pp = x.plan.config.deg.pp;
    if (st == ST_OK && (stage < -1 || stage >= pp))
        st = err_set (api_error (err), ST_USAGE, "stage: expected -1 to %d, found %d",
                      pp - 1, stage);
    if (st == ST_OK && !(s = calloc ((size_t) pp, sizeof *s)))
        st = err_nomem (api_error (err));
    if (st == ST_OK) {
        costmodel_note_type (type, x.plan.job.precision, api_notes (notes));
        p = api_plan_problem (&x, NULL);
        p.memory_limit_pct = memest_usual_limit_pct (p.memory_model);
        tightest = api_stages (&p, &x, type->memory_bytes, s);
        stage = stage < 0 ? tightest : stage;
        api_memory (&p, &s[stage], stage, type->memory_bytes, out);
    }
    free (s);
    api_plan_release (&x);
    return (enum linkwise_status) st;
}

enum status api_cost_model (const char *word, enum costmodel_kind *out, struct error *err)
{
    if (!word || costmodel_kind_parse (word, out))
        return ST_OK;
    return err_set (err, ST_USAGE, "cost_model: expected %s, found \"%s\"",
                    API_COST_MODELS, word);
}

enum status api_price (const struct costmodel_problem *p, const int *gpu,
                       struct linkwise_estimate *out, struct error *err)
{
    struct costmodel_estimate e;
    const struct costmodel_breakdown *b = &e.part;

    TRY (costmodel_estimate (p, gpu, true, &e, err));
    free (e.unmeasured);
    *out = (struct linkwise_estimate){.size = sizeof *out,
                                      .step_s = e.step_s,
                                      .tokens_per_s = e.tokens_per_s,
                                      .mfu = e.mfu,
                                      .compute_s = b->compute_s,
                                      .tp_s = b->tp_s,
                                      .cp_s = b->cp_s,
                                      .ep_s = b->ep_s,
                                      .bubble_s = b->bubble_s,
                                      .pp_s = b->pp_s,
                                      .dp_s = b->dp_s,
                                      .optimizer_s = b->optimizer_s,
                                      .stage = e.stage,
                                      .replica = e.replica,
                                      .unmeasured_links = e.n_unmeasured,
                                      .lower_bound_s = NAN,
                                      .default_order_step_s = NAN};
    return ST_OK;
}

enum linkwise_status
linkwise_time (const struct linkwise_cluster *cluster, const struct linkwise_model *model,
               const struct linkwise_profile *profile, const struct linkwise_job *job,
               const struct linkwise_config *config, const char *cost_model,
               struct linkwise_estimate *out, struct linkwise_notes *notes,
               struct linkwise_error *err)
{
    struct linkwise_plan x = {.cluster = NULL};
    struct costmodel_problem priced = api_plan_priced (&x, cluster ? cluster->c : NULL);
    struct workload_gpus on = {.n = 0};
    int world, *gpu = NULL;
    enum status st;

    API_NEED (cluster);
    API_NEED (model);
    API_SIZED (job);
    if (config)
        API_SIZED (config);
    API_SIZED (out);
    st = api_cost_model (cost_model, &priced.kind, api_error (err));
    costmodel_gpus (cluster->c, &on);
    THEN (st, describe (model, profile, job, config, &on, cluster->c, &x,
                        api_notes (notes), api_error (err)));
    world = (int) workload_world (&x.plan.config.deg);
    if (st == ST_OK && !(gpu = malloc ((size_t) world * sizeof *gpu)))
        st = err_nomem (api_error (err));
    if (st == ST_OK) {
        costmodel_note_types (cluster->c, x.plan.job.precision, api_notes (notes));
        topology_gpus_in_order (cluster->c, world, gpu);
        st = costmodel_profile_used (&x.profile, cluster->c, gpu, world, &x.plan.model,
                                     &x.plan.job, api_error (err));
    }
    if (st == ST_OK) {
        priced.layers = x.plan.layers_per_stage;
        st = api_price (&priced, gpu, out, api_error (err));
    }
    api_plan_release (&x);
    free (gpu);
    return (enum linkwise_status) st;
}
