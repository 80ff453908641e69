/* Estimates of measured runs, as their sources measured. */
#include "calibrate/calibrate_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

bool calibrate_has_figures (const struct calibrate_run *run, enum calibrate_part part)
{
    return part == CALIBRATE_TIME
               ? !isnan (run->iter_time_s) && !run->doubt_time
               : (!isnan (run->peak_bytes) && !run->doubt_peak) || run->oom >= 0;
}

static const int *layers_of (const struct calibrate_run *run,
                             const struct workload_profile *p)
{
    return run->layers + (int) p->partition * run->config.deg.pp;
}

/* More spread where a row does not state the network between its nodes. */
#define SPREAD_NETWORK 0.08

double calibrate_time_spread (const struct calibrate_run *run,
                              const struct workload_profile *p, double open)
{
    struct calibrate_step_types types = {.n = 0};
    bool silent = run->part[0].inter_bytes_per_s <= 0 && run->gpus > run->gpus_per_node;
    double spread;

    if (calibrate_names_source (p, run->source) && !p->compute_of_type)
        return p->time.residual;
    for (int i = 0; i < run->n_parts; i++)
        calibrate_step_types_add (&types, p, &run->model, run->part[i].type);
    spread = hypot (calibrate_step_spread (&types, p, &run->model), open);
    return hypot (hypot (spread, silent ? SPREAD_NETWORK : 0.0), run->assumed);
}

/* An assumed shape moves memory twice as far as time, which goes with parameters. */
#define ASSUMED_MEMORY 2.0

/* A profile with the spreads of this run's memory. */
static struct workload_profile spread_of (const struct calibrate_run *run,
                                          const struct workload_profile *p)
{
    struct workload_profile own = *p;
    double assumed = ASSUMED_MEMORY * run->assumed;

    own.memory.residual = hypot (p->memory.residual, assumed);
    own.memory.states_residual = hypot (p->memory.states_residual, assumed);
    return own;
}

/* A parameter's weight, gradient and optimizer state in bytes, where the run says more of them than
 * the framework usually has; 0: it does not. */
static double state_bytes_said (const struct calibrate_run *run,
                                const struct workload_profile *p)
{
    double usual = 2.0 + p->memory.gradient_bytes + p->memory.optimizer_bytes;

    if (run->state_bytes > 0.0 || calibrate_names_source (p, run->source))
        return run->state_bytes;
    return run->states == STATES_MIXED && usual < 16.0 ? 16.0
           : run->states == STATES_PURE && usual > 8.0 ? 8.0
                                                       : 0.0;
}

#define HALF_GRADIENT 2.0
#define WHOLE_GRADIENT 4.0
#define QUANTISED_WEIGHT 2.06 /* two copies with their scales */
#define COPIED_WEIGHT 4.0     /* and the 16-bit one */

static void take_choice (enum workload_choice said, bool *fact)
{
    *fact = workload_choose (said, *fact);
}

static void take_number (double said, double *number)
{
    if (said > 0.0)
        *number = said;
}

static void take_bytes (enum workload_choice said, double yes, double no, double *bytes)
{
    if (said != CHOICE_PROFILE)
        *bytes = said == CHOICE_YES ? yes : no;
}

/* What the row says in a word each. */
static void take_facts (const struct calibrate_run *run, struct workload_profile *own)
{
    const struct calibrate_facts *f = &run->facts;

    take_choice (f->tensor_overlap, &own->time.tp_comm_overlap);
    take_choice (f->fused_experts, &own->fused_experts);
    take_choice (f->fused_rotary, &own->fused_rotary);
    take_choice (f->fused_accumulation, &own->fused_accumulation);
    take_choice (f->whole_gradients, &own->whole_gradients);
    take_bytes (f->half_gradients, HALF_GRADIENT, WHOLE_GRADIENT,
                &own->memory.gradient_bytes);
    take_bytes (f->quantised_weights, QUANTISED_WEIGHT, COPIED_WEIGHT,
                &own->memory.fp8_weight_bytes);
    take_number (f->reduced_bytes, &own->time.reduced_bytes);
    take_number (f->live_params, &own->memory.live_params);
    take_number (f->reduced_params, &own->memory.reduced_params);
    take_number (f->bucket_bytes, &own->memory.bucket_bytes);
    if (f->reduce_overlap != CHOICE_PROFILE)
        own->reduces_bare = f->reduce_overlap == CHOICE_NO;
    /* Of a fitted profile, what hides where it does is a constant of its runs. */
    if (f->data_overlap == CHOICE_NO)
        own->time.dp_overlap = 0.0;
    else if ((f->data_overlap == CHOICE_YES || f->reduce_overlap == CHOICE_YES) &&
             own->compute_of_type)
        own->time.dp_overlap = 1.0;
    if (f->exchange_overlap == CHOICE_NO)
        own->time.moe_overlap = 0.0;
    else if (f->exchange_overlap == CHOICE_YES && own->time.moe_overlap <= 0.0)
        own->time.moe_overlap = 1.0;
}

/* What a layer takes at least where PyTorch's compiler launches it, as in the profile of
 * TorchTitan, which compiles. */
#define COMPILED_FWD_S 300e-6
#define COMPILED_BACK_S 450e-6
static void compile (struct workload_profile *p)
{
    if (!p->compute_of_type)
        return;
    p->time.layer_launch_fwd_s = fmin (p->time.layer_launch_fwd_s, COMPILED_FWD_S);
    p->time.layer_launch_back_s = fmin (p->time.layer_launch_back_s, COMPILED_BACK_S);
}

/* Does the model's name, as a source writes it, mean one of these presets? */
static bool is_among (const struct calibrate_run *run, const char names[][64], int n)
{
    const char *name = n > 0 ? workload_pace_name (run->model.name) : "";

    for (int i = 0; i < n; i++)
        if (strcmp (names[i], name) == 0)
            return true;
    return false;
}

/* How Megatron Bridge's recipes exchange experts' tokens, where a run says nothing: some models'
 * once to every expert; and beside another micro-batch's compute with the precisions whose steps
 * they capture whole, or where chunks are there and exchanges leave NVLink. */
static void exchange_as_recipes (const struct calibrate_run *run,
                                 struct workload_profile *own)
{
    const struct workload_degrees *d = &run->config.deg;
    const struct topology_gpu_type *t = run->part[0].type;
    bool blocks = costmodel_takes_blocks (run->job.precision, t);
    bool recipe = workload_is_captured (own, &run->model, &run->config, blocks);
    bool captured = workload_choose (run->captured, recipe);

    if ((!captured && is_among (run, own->all_to_all, own->n_all_to_all)) ||
        (topology_usual_rack (t->name) == 0 &&
         is_among (run, own->all_to_all_outside_racks, own->n_all_to_all_outside_racks)))
        own->time.deduplicated_dispatch = false;
    if (own->graphs == GRAPHS_BLOCKS && !recipe)
        own->time.moe_overlap = 0.0;
    if (d->vpp > 1 && d->ep * d->etp > calibrate_domain (run))
        own->time.moe_overlap = fmax (own->time.moe_overlap, own->time.moe_overlap_out);
}

struct workload_profile calibrate_profile_as_said (const struct calibrate_run *run,
                                                   const struct workload_profile *p)
{
    struct workload_profile own = *p;
    double said = state_bytes_said (run, p);
    double gradient =
        said >= 16.0 && run->job.precision != PREC_FP16 ? 4.0 : fmin (2.0, said - 2.0);

    if (said > 0.0) { /* a 16-bit weight is worked with in any case */
        own.memory.gradient_bytes = gradient;
        own.memory.optimizer_bytes = fmax (0.0, said - 2.0 - gradient);
        own.memory.step_bytes = own.memory.step_bytes > 0.0 ? gradient : 0.0;
    }
    if (run->fused_optimizer && own.time.optimizer_passes > 0.0)
        own.memory.step_bytes = own.time.optimizer_passes = 0.0;
    if (run->compiled)
        compile (&own);
    own.chunked_loss = own.chunked_loss || run->chunked_loss;
    own.fused_loss = own.fused_loss || run->logit_bytes > 0.0 || run->fused_loss;
    if (run->logit_bytes > 0.0)
        own.memory.logit_bytes = fmin (run->logit_bytes, own.memory.logit_bytes);
    if (run->fused_loss) {
        own.memory.logit_bytes /= 8.0;
        own.chunked_loss = false;
    }
    exchange_as_recipes (run, &own);
    own.time.deduplicated_dispatch =
        workload_choose (run->deduplicated, own.time.deduplicated_dispatch);
    if (run->drops_tokens) { /* which Megatron-Core offers with plain all-to-alls alone */
        own.drops_tokens = true;
        own.time.deduplicated_dispatch = false;
        if (run->expert_capacity > 0.0) {
            own.time.expert_capacity = run->expert_capacity;
            own.memory.expert_imbalance = fmax (1.0, run->expert_capacity);
        }
    }
    if (run->captured != CHOICE_PROFILE)
        own.graphs = run->captured == CHOICE_YES ? GRAPHS_ALL : GRAPHS_NONE;
    if (run->captured == CHOICE_NO)
        own.captured_parts = CAPTURED_NOWHERE;
    else if (run->captured_parts)
        own.captured_parts = CAPTURED_EVERYWHERE;
    take_facts (run, &own);
    workload_profile_pace (&own, &run->model, run->job.precision);
    return own;
}

static void stage_of (const struct calibrate_run *run, const struct workload_profile *p,
                      enum memest_model by, int stage, struct memest_stage *s)
{
    struct workload_profile own = calibrate_profile_as_said (run, p);
    struct memest_problem problem = {&run->model, &run->job, &run->config, &own, by,
                                     0,           0};
    struct workload_stage held =
        run->chunks
            ? workload_stage_of_chunks (&run->model, &run->config, run->chunks, stage)
            : workload_stage_of (&run->model, &run->config, layers_of (run, p), stage);

    memest_stage (&problem, stage, &held, s);
}

/* As the allocator counts: tensors and what it holds beside them, without the driver.  The driver
 * counts its cache, too, as far as the GPU has room for it. */
static double as_measured (const struct calibrate_run *run,
                           const struct workload_profile *p, const struct memest_stage *s)
{
    return p->measured_allocated
               ? s->peak_bytes - s->overhead_bytes + p->memory.allocated_bytes
               : fmax (s->peak_bytes,
                       fmin (s->peak_bytes + s->cached_bytes, run->gpu_bytes));
}

/* The stages whose fullest one was measured: first .. last. */
static void measured_stages (const struct calibrate_run *run,
                             const struct workload_profile *p, int *first, int *last)
{
    int end = run->config.deg.pp - 1;

    *first = p->measured_rank == MEASURED_LAST ? end : 0;
    *last = p->measured_rank == MEASURED_FIRST ? 0 : end;
}

/* The fullest of the measured stages, as measured. */
static struct memest_load measured_load (const struct calibrate_run *run,
                                         const struct workload_profile *p)
{
    struct memest_load most = {0.0, 0.0};
    int first, last;

    measured_stages (run, p, &first, &last);
    for (int i = first; i <= last; i++) {
        struct memest_stage s;
        struct memest_load load;

        stage_of (run, p, MEMEST_LINKWISE, i, &s);
        load = memest_load_of (&s);
        load.peak_bytes = as_measured (run, p, &s);
        if (load.peak_bytes > most.peak_bytes)
            most = load;
    }
    return most;
}

double calibrate_peak (const struct calibrate_run *run, const struct workload_profile *p)
{
    return measured_load (run, p).peak_bytes;
}

double calibrate_peak_interval (const struct calibrate_run *run,
                                const struct workload_profile *p)
{
    struct workload_profile own = spread_of (run, p);

    return memest_interval (&own, measured_load (run, p));
}

/* Memory of the smallest GPU that a stage's ranks stand on, over the run's smallest. */
static double room_of (const struct calibrate_run *run, int stage)
{
    long long ranks = workload_world (&run->config.deg) / run->config.deg.pp;
    long long first = stage * ranks, end = first + ranks, at = 0;
    double least = INFINITY, smallest = INFINITY;

    for (int i = 0; i < run->n_parts; i++) {
        double bytes = run->part[i].type->memory_bytes;
        long long next = at + (long long) run->part[i].nodes * run->gpus_per_node;

        smallest = fmin (smallest, bytes);
        if (first < next && end > at)
            least = fmin (least, bytes);
        at = next;
    }
    return isfinite (least) ? least / smallest : 1.0;
}

/* As calibrate_need, of what the row states: of the fullest stage, or of the likeliest to run
 * out. */
static struct memest_load need_as_said (const struct calibrate_run *run,
                                        const struct workload_profile *p,
                                        enum memest_model by, bool likeliest)
{
    struct memest_load most = {0.0, 0.0};

    for (int i = 0; i < run->config.deg.pp; i++) {
        double room = room_of (run, i);
        struct memest_stage s;
        struct memest_load load;

        stage_of (run, p, by, i, &s);
        load = memest_load_of (&s);
        load = (struct memest_load){load.peak_bytes / room, load.states_bytes / room};
        if (likeliest ? memest_deviations (p, load, run->gpu_bytes) <
                            memest_deviations (p, most, run->gpu_bytes)
                      : load.peak_bytes > most.peak_bytes)
            most = load;
    }
    return most;
}

/* Two moments in 16 bits, and no master copy. */
#define LEAN_OPTIMIZER_BYTES 4.0
/* Of each logit, the least of shipped profiles whose logits are not in pieces. */
#define LEAN_LOGIT_BYTES 6.0

/* A framework that nobody knows may keep as little as known ones do: half of the shipped profiles
 * have gradients in 16 bits, those of PyTorch's libraries all states, and most have norms, rotary
 * embeddings and activations in a kernel each. */
static struct workload_profile leanest_facts (const struct workload_profile *p)
{
    struct workload_profile own = *p;

    if (p->unknown) {
        own.memory.gradient_bytes = fmin (HALF_GRADIENT, p->memory.gradient_bytes);
        own.memory.optimizer_bytes =
            fmin (LEAN_OPTIMIZER_BYTES, p->memory.optimizer_bytes);
        own.memory.logit_bytes = fmin (LEAN_LOGIT_BYTES, p->memory.logit_bytes);
        own.fused_norm = own.fused_rotary = own.fused_mlp = true;
    }
    return own;
}

static struct memest_load load_needed (const struct calibrate_run *run,
                                       const struct workload_profile *p,
                                       enum memest_model by, bool likeliest)
{
    const struct workload_profile own = leanest_facts (p);
    struct calibrate_run leanest = *run;
    struct memest_load need = need_as_said (run, &own, by, likeliest), least;

    if (run->recompute_said && !run->layers_open)
        return need;
    /* It ran, or did not, with whatever recomputation it took. */
    leanest.config.recompute = RECOMPUTE_FULL;
    leanest.config.recompute_layers = 0;
    least = need_as_said (&leanest, &own, by, likeliest);
    return least.peak_bytes < need.peak_bytes ? least : need;
}

double calibrate_need (const struct calibrate_run *run, const struct workload_profile *p,
                       enum memest_model by)
{
    return load_needed (run, p, by, false).peak_bytes;
}

double calibrate_deviations (const struct calibrate_run *run,
                             const struct workload_profile *p)
{
    struct workload_profile own = spread_of (run, p);

    return memest_deviations (&own, load_needed (run, p, MEMEST_LINKWISE, true),
                              run->gpu_bytes);
}

double calibrate_chance (const struct calibrate_run *run,
                         const struct workload_profile *p)
{
    return stats_normal_above (calibrate_deviations (run, p));
}

double calibrate_static (const struct calibrate_run *run,
                         const struct workload_profile *p)
{
    double most = 0.0;
    int first, last;

    measured_stages (run, p, &first, &last);
    for (int i = first; i <= last; i++) {
        struct memest_stage s;

        stage_of (run, p, MEMEST_LINKWISE, i, &s);
        most = fmax (most, s.weights_bytes + s.gradients_bytes + s.optimizer_bytes +
                               p->memory.allocated_bytes);
    }
    return most;
}

enum status calibrate_step_by (const struct calibrate_run *run,
                               const struct topology_cluster *cluster,
                               const struct workload_profile *p, enum costmodel_kind kind,
                               double *step_s, struct error *err)
{
    struct workload_profile own = calibrate_profile_as_said (run, p);
    struct costmodel_problem problem = {.model = &run->model,
                                        .job = &run->job,
                                        .config = &run->config,
                                        .profile = &own,
                                        .cluster = cluster,
                                        .layers = layers_of (run, p),
                                        .chunks = run->chunks,
                                        .kind = kind};
    int world = (int) workload_world (&run->config.deg);
    int *gpu;
    struct costmodel_estimate e = {0};
    enum status st;

    if (world > cluster->n_gpus)
        return err_set (err, ST_INVALID, "%d ranks on %d GPUs", world, cluster->n_gpus);
    gpu = malloc ((size_t) world * sizeof *gpu);
    if (!gpu)
        return err_nomem (err);
    for (int i = 0; i < world; i++)
        gpu[i] = i;
    st = costmodel_estimate (&problem, gpu, true, &e, err);
    free (e.unmeasured);
    if (st == ST_OK)
        *step_s = e.step_s;
    free (gpu);
    return st;
}

/* Hosts launch kernels at rates of their own: in Megatron-LM's tests a layer of a small model takes
 * 1.2 (H100) to 3.5 times (A100) the launches of the default profile. */
#define LAUNCH_SPREAD 0.7
#define LAUNCHES_MORE 1.05 /* to see what they are of a step */

/* The spread of a step's time for this, by how much of it is launches. */
static enum status launch_spread (const struct calibrate_run *run,
                                  const struct topology_cluster *cluster,
                                  const struct workload_profile *p, double step_s,
                                  double *spread, struct error *err)
{
    struct workload_profile more = *p;
    double more_s;

    more.time.layer_launch_fwd_s *= LAUNCHES_MORE;
    more.time.layer_launch_back_s *= LAUNCHES_MORE;
    TRY (calibrate_step_by (run, cluster, &more, COSTMODEL_CRITICAL_PATH, &more_s, err));
    *spread = LAUNCH_SPREAD * fmax (0.0, log (more_s / step_s) / log (LAUNCHES_MORE));
    return ST_OK;
}

void calibrate_set_way (struct calibrate_run *run, const struct calibrate_way *w)
{
    struct workload_config *c = &run->config;

    c->deg.ep = w->ep;
    if (c->schedule == SCHEDULE_1F1B || c->schedule == SCHEDULE_INTERLEAVED)
        c->schedule = w->vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    c->deg.vpp = w->vpp;
    run->job.precision = w->precision;
    c->recompute = w->recompute;
    c->recompute_layers = w->recompute_layers;
    c->micro_batch = w->micro_batch;
}

/* The step over all readings of what the row leaves open, and their spread. */
static enum status step_of_ways (const struct calibrate_run *run,
                                 const struct topology_cluster *cluster,
                                 const struct workload_profile *p, double *step_s,
                                 double *open, struct error *err)
{
    double sum = 0.0, squares = 0.0;

    for (int i = 0; i < run->n_ways; i++) {
        const struct calibrate_way *w = &run->way[i];
        struct calibrate_run as = *run;
        double s = 0.0;

        calibrate_set_way (&as, w);
        if (w->weight <= 0.0)
            continue;
        TRY (calibrate_step_by (&as, cluster, p, COSTMODEL_CRITICAL_PATH, &s, err));
        sum += w->weight * log (s);
        squares += w->weight * log (s) * log (s);
    }
    *step_s = exp (sum);
    *open = sqrt (fmax (0.0, squares - sum * sum));
    return ST_OK;
}

enum status calibrate_step (const struct calibrate_run *run,
                            const struct topology_cluster *cluster,
                            const struct workload_profile *p, double *step_s,
                            double *open, struct error *err)
{
    double ways = 0.0, launches = 0.0, s = 0.0;

    if (run->n_ways > 0)
        TRY (step_of_ways (run, cluster, p, step_s, &ways, err));
    if (run->n_ways == 0 || open)
        TRY (calibrate_step_by (run, cluster, p, COSTMODEL_CRITICAL_PATH, &s, err));
    if (open)
        TRY (launch_spread (run, cluster, p, s, &launches, err));
    if (run->n_ways == 0)
        *step_s = s;
    if (open)
        *open = hypot (ways, launches);
    return ST_OK;
}
