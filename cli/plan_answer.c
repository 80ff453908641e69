/* What linkwise plan says: first the answer in a few lines, then what is behind it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/plan.h"

/* ---- what ---- */

/* @param[in] named  nodes that are left out, by name */
static void print_gpus (const struct planning *x, int named)
{
    const struct topology_cluster *c = x->p.cluster;
    const struct mapper_result *r = &x->r;
    long long world = workload_world (&r->config.deg);
    bool *used = calloc ((size_t) c->n_nodes, sizeof *used);
    int n = 0, shown = 0;

    if (!used)
        return;
    for (long long k = 0; k < world; k++)
        used[c->node_of_gpu[r->gpu[k]]] = true;
    for (int i = 0; i < c->n_nodes; i++)
        n += used[i];
    cli_print ("GPUs     %lld of %d on %d of %d nodes", world, c->n_gpus, n, c->n_nodes);
    for (int i = 0; i < c->n_nodes && shown < named; i++)
        if (!used[i])
            cli_print ("%s%s", shown++ ? ", " : "; left out: ", c->node[i].name);
    if (c->n_nodes - n > shown)
        cli_print (" and %d more", c->n_nodes - n - shown);
    cli_print ("\n");
    free (used);
}

/* ---- how long, how sure ---- */

double plan_step_interval (const struct planning *x)
{
    return cli_step_interval (x->r.estimate.kind, x->p.profile, x->p.model, x->p.cluster,
                              x->r.gpu, (int) workload_world (&x->r.config.deg));
}

static void print_step (const struct planning *x)
{
    const struct mapper_problem *p = &x->p;
    const struct costmodel_estimate *e = &x->r.estimate;
    char step[CLI_STEP_TEXT];

    cli_print ("step     %s, %.0f tokens/s, MFU %.1f %%",
               cli_step_text (e->step_s, plan_step_interval (x), step), e->tokens_per_s,
               100.0 * e->mfu);
    if (p->cost_model != COSTMODEL_CRITICAL_PATH)
        cli_print (", by the cost model %s", cli_model_authors (p->cost_model));
    cli_print ("\n");
    if (p->objective == MAPPER_GPU_HOURS)
        cli_print ("cost     %.1f GPU hours for 1e9 tokens\n",
                   mapper_gpu_hours (p->job, &x->r.config, e->step_s));
    plan_goodput_print (p, &x->r);
}

double plan_peak_interval (const struct planning *x)
{
    return cli_peak_interval (x->p.memory_model, x->p.profile,
                              &x->r.memory[mapper_tightest_stage (&x->p, &x->r)]);
}

static void print_memory (const struct planning *x)
{
    const struct mapper_problem *p = &x->p;
    int at = mapper_tightest_stage (p, &x->r);
    const struct memest_stage *s = &x->r.memory[at];
    char words[32];

    cli_print ("memory   %.1f GiB peak, limit %.1f GiB; chance of running out %s\n",
               s->peak_bytes / UNITS_GIB,
               mapper_stage_limit (p, s, x->r.gpu_bytes[at]) / UNITS_GIB,
               cli_chance (mapper_chance (p, &x->r), words));
    if (x->info.safer == MAPPER_SAFER_STOPPED)
        cli_print ("         the search stopped before it looked for a smaller chance\n");
    if (x->info.safer == MAPPER_SAFER_NONE)
        cli_print (
            "         no plan that was found has a smaller chance: more GPUs or shorter "
            "sequences would\n");
}

/* What is in the hosts' memory, and what their links and memory are taken to be. */
static void print_host (const struct planning *x)
{
    const struct topology_cluster *c = x->p.cluster;
    const struct mapper_result *r = &x->r;
    const struct topology_host h = topology_host_of (topology_gpu_type_of (c, r->gpu[0]));
    double bytes;
    int most = mapper_fullest_host (&x->p, r, &bytes);

    if (most < 0)
        return;
    cli_print ("host     offload %s%s: %.1f GiB of the memory of node %s",
               workload_offload_name (r->config.offload),
               x->in->job.axes.offload == MAPPER_FREE && !x->in->from.file
                   ? ", since nothing fits without"
                   : "",
               bytes / UNITS_GIB, c->node[most].name);
    if (c->node[most].host_memory_bytes > 0)
        cli_print (", which has %.1f GiB\n", c->node[most].host_memory_bytes / UNITS_GIB);
    else
        cli_print (", whose size is not told (host_memory_gib)\n");
    cli_print (
        "         a GPU's link to its host %.0f GB/s, its share of the host's memory "
        "%.0f GB/s%s\n",
        h.link_bytes_per_s / UNITS_GB, h.memory_bytes_per_s / UNITS_GB,
        h.nominal ? ": nominal, not measured" : "");
}

/* How much better a plan could be, and what is as good. */
static void print_gap (const struct planning *x)
{
    const struct mapper_result *r = &x->r;
    double gap = r->estimate.step_s / r->lower_bound_s - 1.0;
    char bound[32];

    cli_seconds (r->lower_bound_s, bound);
    if (x->info.proven && gap < 1e-6)
        cli_print (
            "gap      none: proven that no plan in the searched space is below %s\n",
            bound);
    else
        cli_print (
            "gap      %.2f %% at most to the best plan: none in the searched space is "
            "below %s%s\n",
            100.0 * gap, bound,
            x->info.proven    ? ""
            : x->info.stopped ? "\n         (not proven: the search stopped early)"
            : x->info.unplaced > 0
                ? "\n         (not proven: some configurations could not be placed)"
                : "\n         (searched to the end; the bound may be loose)");
    if (r->ties > 1)
        cli_print ("ties     %d placed configurations cannot be told apart: "
                   "the model's error is %.1f %%\n",
                   r->ties, 100 * r->model_error);
    if (r->given_up > 5e-5)
        cli_print (
            "         the plan is simpler or leaves more memory free, and is %.2f %% "
            "above the best (--tie)\n",
            100 * r->given_up);
}

/* What of the links nobody measured. */
static void print_links (const struct planning *x)
{
    const struct topology_cluster *c = x->p.cluster;

    if (cli_nominal (c))
        cli_print ("links    nominal %s: not measured\n", cli_nominal (c));
    if (x->r.estimate.n_unmeasured > 0)
        cli_print ("links    %d unmeasured links had to be used\n",
                   x->r.estimate.n_unmeasured);
    if (x->info.joined_gpus > 0)
        cli_print ("links    only %d GPUs are connected by measured links: to use more, "
                   "measure more links or fix higher degrees\n",
                   x->info.joined_gpus);
    cli_print_estimated (&x->r.estimate, "this plan");
}

/* ---- against others ---- */

static void print_default (const struct mapper_result *r)
{
    char step[32];

    if (isfinite (r->default_order_step_s))
        cli_print ("default  %s in Megatron's rank order: this plan saves %.2f %%",
                   cli_seconds (r->default_order_step_s, step),
                   100.0 * (1.0 - r->estimate.step_s / r->default_order_step_s));
    else
        cli_print ("default  Megatron's rank order does not fit in memory or is not "
                   "connected");
    if (r->default_order_unmeasured > 0)
        cli_print (" (%d links there are unmeasured)", r->default_order_unmeasured);
    cli_print ("\n");
}

/* What a larger chance of running out would gain. */
static void print_risk (const struct planning *x)
{
    const struct mapper_riskier *k = &x->r.riskier;
    const struct mapper_problem *p = &x->p;
    char step[32], words[32];

    if (k->step_s > 0)
        cli_print (
            "risky    %s (%.1f %% less%s), chance of running out %s: --oom-risk %.3f "
            "takes it\n",
            cli_seconds (k->step_s, step),
            100 * (1 - mapper_objective_of (p, &k->config, k->step_s) /
                           mapper_objective_of (p, &x->r.config, x->r.estimate.step_s)),
            p->objective == MAPPER_GPU_HOURS ? " GPU hours"
            : p->objective == MAPPER_GOODPUT ? " for the tokens of all time"
                                             : "",
            cli_chance (k->chance, words), ceil (1000 * k->chance) / 1000);
}

/* ---- the file ---- */

static void print_next (const struct planning *x)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789./_-+=:,@";
    const char *name = x->in->out ? x->in->out : "plan.json";
    struct text next = {0};

    text_add (&next, "linkwise emit ");
    if (name[strspn (name, plain)]) /* as it is typed */
        text_add_sh (&next, name);
    else
        text_add (&next, "%s", name);
    text_add (&next, " --to all -d job");
    if (x->in->out)
        cli_print ("\nplan written to %s\nnext     %s\n", x->in->out, text_str (&next));
    else
        cli_print ("\nnext     -o plan.json keeps the plan; then: %s\n",
                   text_str (&next));
    text_free (&next);
}

/* ---- details ---- */

static void print_cluster (const struct topology_cluster *c)
{
    struct topology_link_stats s;

    cli_print ("\n");
    cli_print_inline ("cluster  %s: %d node%s, %d GPU%s (", c->name, c->n_nodes,
                      TEXT_S (c->n_nodes), c->n_gpus, TEXT_S (c->n_gpus));
    for (int i = 0; i < c->n_nodes; i++) {
        bool seen = false;

        for (int k = 0; k < i && !seen; k++)
            seen = c->node[k].type == c->node[i].type;
        if (!seen)
            cli_print ("%s%s", i ? ", " : "", c->node[i].type->name);
    }
    cli_print (")\n");
    if (c->n_nodes > 1 && topology_inter_stats (c, &s, NULL) == ST_OK) {
        cli_print ("network  %.2f / %.2f / %.2f GB/s between nodes (min / median / max)",
                   s.min_bytes_per_s / UNITS_GB, s.median_bytes_per_s / UNITS_GB,
                   s.max_bytes_per_s / UNITS_GB);
        if (s.unmeasured > 0)
            cli_print ("; %ld of %ld unmeasured", s.unmeasured, s.pairs);
        cli_print ("\n");
    }
}

static void print_search (const struct mapper_info *info)
{
    cli_print ("search   %ld configurations: %ld refused for memory, ",
               info->configurations, info->refused_memory);
    if (info->sketched > 0)
        cli_print ("%ld sketched, ", info->sketched);
    cli_print ("%ld placed, ", info->placed);
    if (info->unplaced > 0)
        cli_print ("%ld impossible to place, ", info->unplaced);
    cli_print ("%ld %s; %.2f s\n",
               info->configurations - info->refused_memory - info->placed -
                   info->sketched - info->unplaced,
               info->stopped ? "pruned by bounds or not reached" : "pruned by bounds",
               info->seconds);
}

static void print_layers (const struct mapper_result *r)
{
    int pp = r->config.deg.pp;
    bool even = true;

    for (int i = 1; i < pp; i++)
        even = even && r->layers[i] == r->layers[0];
    if (pp == 1)
        return;
    cli_print ("layers  ");
    if (even)
        cli_print (" %d on each of %d stages", r->layers[0], pp);
    for (int i = 0; i < pp && !even; i++)
        cli_print (" %d", r->layers[i]);
    cli_print ("%s\n", even ? "" : " by stage");
}

static void print_granularity (const struct mapper_result *r)
{
    if (isfinite (r->gpu_step_s) && isfinite (r->node_step_s) &&
        r->gpu_step_s < r->node_step_s * (1.0 - 1e-6))
        cli_print ("placing  single GPUs instead of whole nodes %s %.2f %%\n",
                   r->granularity == MAPPER_GPU ? "gains" : "would gain only",
                   100.0 * (1.0 - r->gpu_step_s / r->node_step_s));
}

static void print_top (const struct planning *x)
{
    bool experts = x->p.model->experts > 0;
    struct table *t =
        experts ? TABLE_OF ("step s", "bound s", "tp", "pp", "dp", "cp", "ep", "etp",
                            "micro-batch", "zero", "SP", "<recompute", "<schedule")
                : TABLE_OF ("step s", "bound s", "tp", "pp", "dp", "cp", "micro-batch",
                            "zero", "SP", "<recompute", "<schedule");

    for (int i = 0; i < x->r.n_top; i++) {
        const struct workload_config *c = &x->r.top[i].config;
        const struct workload_degrees *d = &c->deg;
        const int number[] = {d->tp, d->pp,  d->dp,          d->cp,
                              d->ep, d->etp, c->micro_batch, c->zero};
        char word[WORKLOAD_RECOMPUTE_TEXT];

        table_cell (t, "%.4f", x->r.top[i].step_s);
        table_cell (t, "%.4f", x->r.top[i].lower_bound_s);
        for (int k = 0; k < 8; k++)
            if (experts || k < 4 || k > 5) /* ep and etp */
                table_cell (t, "%d", number[k]);
        table_cell (t, "%s", c->sequence_parallel ? "on" : "off");
        table_cell (t, "%s", workload_recompute_text (c, word));
        table_cell (t, d->vpp > 1 ? "%s, vpp %d" : "%s",
                    workload_schedule_name (c->schedule), d->vpp);
    }
    cli_print ("\nbest configurations after placement");
    if (x->r.ties > 1)
        cli_print (" (the first %d cannot be told apart)",
                   x->r.ties < x->r.n_top ? x->r.ties : x->r.n_top);
    cli_print (":\n");
    table_end (t, stdout);
}

static void print_details (const struct planning *x)
{
    const struct mapper_problem *p = &x->p;
    const struct mapper_result *r = &x->r;
    struct costmodel_binding binding;
    int at = mapper_tightest_stage (p, r);
    char ends[CLI_STEP_TEXT];
    double unshared_s;
    bool found;

    print_cluster (p->cluster);
    cli_print ("model    %s: %.2f billion parameters; %d sequences of %d tokens a step\n",
               p->model->name, workload_model_params (p->model) / 1e9,
               p->job->global_batch, p->job->seq);
    print_search (&x->info);
    print_layers (r);
    cli_print ("peak     of memory: stage %d%s\n", at,
               cli_peak_text (r->memory[at].peak_bytes, plan_peak_interval (x), ends));
    print_granularity (r);
    cli_print_parts (p->profile, p->cluster);
    if (p->cost_model == COSTMODEL_CRITICAL_PATH)
        cli_print_record (p->profile, p->cluster);
    cli_print ("\n");
    cli_print_breakdown (&r->estimate);
    if (mapper_explain (p, r, &binding, &found, &unshared_s, NULL) == ST_OK)
        cli_print_binding (p->cluster, found ? &binding : NULL, unshared_s,
                           r->estimate.step_s);
    if (r->n_top > 1)
        print_top (x);
}

/* ---- all ---- */

enum status plan_answer_print (const struct planning *x, struct error *err)
{
    const struct plan_input *in = x->in;
    char config[CLI_CONFIG_TEXT];

    if (cli_is_quiet () && in->out)
        return ST_OK;
    if (in->from.file)
        plan_from_print (&in->from, &x->r);
    cli_print ("plan     %s\n", cli_config_text (&x->r.config, config));
    print_gpus (x, in->verbose ? 8 : 3);
    print_step (x);
    print_memory (x);
    print_host (x);
    print_gap (x);
    print_links (x);
    print_default (&x->r);
    plan_passes_print (&in->passes);
    print_risk (x);
    if (!cli_is_quiet ())
        TRY (cli_print_places (x->p.cluster, &x->r.config.deg, x->r.gpu, err));
    if (in->from.file && !cli_is_quiet ())
        plan_from_print_moves (&in->from, x->p.cluster);
    if (in->what_if)
        cli_whatif_print (&x->what_if);
    if (!cli_is_quiet ())
        print_next (x);
    if (in->verbose)
        print_details (x);
    return ST_OK;
}
