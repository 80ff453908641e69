/* The profile that serves a measured run: by its source, its framework, or what it shows. */
#include "calibrate/calibrate_private.h"

#include <stdlib.h>
#include <string.h>

static struct workload_gpus types_of (const struct calibrate_run *run)
{
    struct workload_gpus all = {.n = run->n_parts};

    for (int i = 0; i < run->n_parts; i++)
        all.name[i] = run->part[i].type->name;
    return all;
}

/* The type that sets the pace of a mix, whose stages the others wait for. */
static const struct topology_gpu_type *slowest_type (const struct calibrate_run *run)
{
    const struct topology_gpu_type *slowest = run->part[0].type;

    for (int i = 1; i < run->n_parts; i++)
        if (costmodel_slower (run->part[i].type, slowest))
            slowest = run->part[i].type;
    return slowest;
}

void calibrate_profile_unknown (struct workload_profile *p)
{
    p->memory.residual = CALIBRATE_UNKNOWN_RESIDUAL;
    p->memory.states_residual = CALIBRATE_UNKNOWN_RESIDUAL;
    p->time.residual = CALIBRATE_UNKNOWN_TIME_RESIDUAL;
    p->measured_rank = MEASURED_MAX;
    p->measured_allocated = false;
    p->flat_step = true; /* as far as a driver can tell */
    p->unknown = true;
}

bool calibrate_names_source (const struct workload_profile *p, const char *source)
{
    for (int i = 0; i < p->n_sources; i++)
        if (strcmp (p->source[i], source) == 0)
            return true;
    return false;
}

/* How well the profile's frameworks name the run's, in letters: "megatron-bridge" says
 * more than "megatron".  Where the row has no framework, its source may name it.
 * @param[out] last  the last release that one of them ran on (behind "@"); "" without one */
static size_t names_framework (const struct workload_profile *p,
                               const struct calibrate_run *run, const char **last)
{
    const char *said = run->framework[0] ? run->framework : run->source;
    size_t most = 0;

    *last = "";
    for (int i = 0; i < p->n_frameworks; i++) {
        size_t n = strcspn (p->framework[i], "@");
        char name[sizeof *p->framework];

        snprintf (name, sizeof name, "%.*s", (int) n, p->framework[i]);
        if (!calibrate_contains_name (said, name))
            continue;
        most = n > most ? n : most;
        if (p->framework[i][n] == '@')
            *last = p->framework[i] + n + 1;
    }
    return most;
}

bool calibrate_serves (const struct workload_profile *p, const struct calibrate_run *run)
{
    const char *last;

    return calibrate_names_source (p, run->source) || names_framework (p, run, &last) > 0;
}

/* A shipped profile, with the facts of its earlier releases behind it. */
static enum status put_on_shelf (struct calibrate_shelf *shelf, const char *name,
                                 struct error *err)
{
    struct workload_profile *current = &shelf->profile[shelf->n];

    TRY (workload_profile_read (name, current, NULL, err));
    shelf->n++;
    for (int i = 0; i < current->n_until; i++) {
        char of[128];

        snprintf (of, sizeof of, "%s@%s", name, current->until[i]);
        TRY (workload_profile_read (of, &shelf->profile[shelf->n], NULL, err));
        shelf->n++;
    }
    return ST_OK;
}

enum status calibrate_shelf_open (struct calibrate_shelf *shelf, struct error *err)
{
    enum status st = ST_OK;
    int n = 0;

    while (workload_profile_shipped (n))
        n++;
    *shelf = (struct calibrate_shelf){
        calloc ((size_t) n * (1 + WORKLOAD_RELEASES_MAX), sizeof *shelf->profile), 0};
    if (!shelf->profile)
        return err_nomem (err);
    for (int i = 0; i < n && st == ST_OK; i++)
        st = put_on_shelf (shelf, workload_profile_shipped (i), err);
    if (st != ST_OK)
        calibrate_shelf_close (shelf);
    return st;
}

void calibrate_shelf_close (struct calibrate_shelf *shelf)
{
    free (shelf->profile);
    *shelf = (struct calibrate_shelf){0};
}

/* Megatron-Core under another name, and what took its layers (LiBai, Galvatron, Merak, Aceso). */
static bool on_megatron (const char *framework)
{
    static const char *const names[] = {"megatron",  "mcore",     "primus", "mindspeed",
                                        "flagscale", "megascale", "libai",  "galvatron",
                                        "merak",     "aceso"};
    bool is = false;

    for (size_t i = 0; i < COUNT_OF (names); i++)
        is = is || calibrate_says (framework, names[i]) == SAID_YES;
    return is;
}

static const struct workload_profile *on_shelf (const struct calibrate_shelf *shelf,
                                                const char *name)
{
    for (int i = 0; i < shelf->n; i++)
        if (strcmp (shelf->profile[i].name, name) == 0)
            return &shelf->profile[i];
    return shelf->profile; /* never: all names are shipped ones */
}

/* Megatron-Core itself, which plans are for: by its name, or Megatron-LM since there are GPUs with
 * fp8.  Of forks less is known. */
static bool is_core (const struct calibrate_run *run)
{
    const char *said = run->framework;

    return calibrate_contains_name (said, "megatron-core") ||
           calibrate_contains_name (said, "mcore") ||
           (calibrate_contains_name (said, "megatron-lm") &&
            slowest_type (run)->fp8_flop_per_s > 0);
}

/* Megatron-LM of 2020 to 2022: in fp16 on GPUs without fp8, by schedules of then, and without flash
 * attention, as is said or by the GPU. */
static bool is_early (const struct calibrate_run *run)
{
    const struct topology_gpu_type *type = slowest_type (run);
    enum workload_schedule s = run->config.schedule;
    bool softmax = run->attention_said ? !workload_attention_is_flash (run->job.attention)
                                       : type->bf16_flop_per_s <= 0;

    return calibrate_contains_name (run->framework, "megatron-lm") && softmax &&
           run->job.precision == PREC_FP16 && type->fp8_flop_per_s <= 0 &&
           (s == SCHEDULE_1F1B || s == SCHEDULE_INTERLEAVED || s == SCHEDULE_GPIPE);
}

/* What a run is taken for where no profile names what ran it: Megatron's own as plans are, by the
 * default profile.  Megatron-Core shards no parameters in the runs that people publish of it, and
 * NVIDIA's GPUs with fp8 came with today's recipes.  A framework that nobody here knows has none:
 * it splits models as Megatron-Core does, or keeps weights whole on every rank, which FSDP does
 * not, or it is PyTorch's, as is what people run on cards of workstations. */
static const char *usual_profile (const struct calibrate_shelf *shelf,
                                  const struct calibrate_run *run)
{
    const struct workload_degrees *d = &run->config.deg;
    const struct topology_gpu_type *type = slowest_type (run);
    const struct workload_profile *standard = on_shelf (shelf, WORKLOAD_PROFILE_DEFAULT);
    const struct workload_gpus on = types_of (run);
    const char *serving = workload_profile_serving (standard, &run->model, &on);
    bool recipes = type->fp8_flop_per_s > 0 && strncmp (type->name, "mi", 2) != 0,
         splits = d->tp > 1 || d->pp > 1 || d->ep > 1,
         whole = run->zero_said && run->config.zero <= 1 && d->dp > 1 &&
                 !calibrate_contains (run->framework, "torch");

    if (is_early (run))
        return "megatron-lm-composed";
    if (on_megatron (run->framework))
        return serving;
    for (int i = 0; i < shelf->n && (!run->framework[0] || splits || whole); i++)
        if (strcmp (shelf->profile[i].gpu, type->name) == 0)
            return shelf->profile[i].name;
    if (run->zero_said && run->config.zero == 3)
        return "fsdp";
    if (run->framework[0] != '\0' || strncmp (type->name, "rtx", 3) == 0)
        return splits || whole ? serving : "fsdp";
    if (run->model.experts > 0 && recipes)
        return "megatron-bridge";
    return recipes ? "nemo" : serving;
}

/* The facts of the run's release, of a profile on the shelf.
 * @param last  the framework's last one, where the run does not say */
static void take_release (const struct workload_profile *p,
                          const struct calibrate_run *run, const char *last,
                          const char *why, struct workload_profile *out)
{
    int i = workload_release_of (p, run->release[0] ? run->release : last);

    *out = i < p->n_until ? p[1 + i] : *p;
    snprintf (out->why, sizeof out->why, "%s", why);
}

void calibrate_shelf_find (const struct calibrate_shelf *shelf,
                           const struct calibrate_run *run, struct workload_profile *out)
{
    const struct workload_profile *named = NULL;
    const char *last = "";
    size_t letters = 0;
    bool known;

    for (int i = 0; i < shelf->n; i++) {
        const struct workload_profile *p = &shelf->profile[i];
        const char *of;
        size_t n;

        if (p->release[0]) /* found by its current one */
            continue;
        if (calibrate_names_source (p, run->source)) {
            const struct workload_gpus on = types_of (run);
            const char *name = workload_profile_serving (p, &run->model, &on);

            take_release (on_shelf (shelf, name), run, "", "its source", out);
            return;
        }
        n = names_framework (p, run, &of);
        if (n > letters) {
            letters = n;
            last = of;
            named = p;
        }
    }
    /* "verl (Megatron)", where frameworks that shard all of a model by themselves stand on it. */
    if (named && named->zero == 3 && on_megatron (run->framework))
        named = NULL;
    if (named) {
        take_release (named, run, last, "its framework", out);
        return;
    }
    known = is_core (run) || is_early (run);
    take_release (on_shelf (shelf, usual_profile (shelf, run)), run, "",
                  known               ? "its framework"
                  : run->framework[0] ? "usual of its framework and GPU type"
                                      : "usual of its GPU type",
                  out);
    if (known) /* with its spreads, as a plan has */
        return;
    calibrate_profile_unknown (out);
    if (on_megatron (run->framework)) {
        out->memory.residual = out->memory.states_residual = CALIBRATE_FORK_RESIDUAL;
        out->unknown = false; /* what it keeps is Megatron's */
    } else {
        out->time.gemm *= CALIBRATE_UNKNOWN_GEMM;
    }
}

/* Shipped facts are of today.  Recipes that hide tensor-parallel communication came with GPUs that
 * have fp8: published runs on others had none of it. */
static void date (const struct calibrate_run *run, struct workload_profile *p)
{
    if (slowest_type (run)->fp8_flop_per_s <= 0 &&
        !calibrate_names_source (p, run->source))
        p->time.tp_comm_overlap = false;
}

enum status calibrate_profiles (const struct calibrate_runs *runs,
                                const struct workload_profile *forced,
                                struct workload_profile *out, struct error *err)
{
    struct calibrate_shelf shelf = {0};
    enum status st = forced ? ST_OK : calibrate_shelf_open (&shelf, err);

    for (int i = 0; i < runs->n && st == ST_OK; i++)
        if (forced)
            out[i] = *forced;
        else {
            calibrate_shelf_find (&shelf, &runs->run[i], &out[i]);
            date (&runs->run[i], &out[i]);
        }
    calibrate_shelf_close (&shelf);
    return st;
}
