/* linkwise mem: memory by stage and by kind. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/units.h"
#include "memest/memest.h"

struct mem_input {
    struct cli_job job;
    const char *model, *gpu;
    bool json;
};

static const struct argp_option options[] = {
    {"gpu", 'g', "TYPE", 0, "GPU type (`linkwise gpus` lists them)", 0},
    {"json", 'j', NULL, 0, "print one JSON document", 0},
    {0}};

static error_t parse (int key, char *arg, struct argp_state *state)
{
    struct mem_input *in = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &in->job;
        return 0;
    case 'g':
        in->gpu = arg;
        return 0;
    case 'j':
        in->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0)
            argp_error (state, "one MODEL expected, found \"%s\" too", arg);
        in->model = arg;
        return 0;
    case ARGP_KEY_END:
        if (!in->model || !in->gpu || in->job.seq == 0)
            argp_error (state, "MODEL, --gpu and --seq are required");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_stages (const struct memest_stage *s, const int *layers, int pp,
                          double limit_bytes)
{
    static const char *const header[] = {
        "stage",  "layers",  "weights",  "gradients", "optimizer", "activations",
        "logits", "buffers", "overhead", "peak",      "limit",     NULL};
    struct table *t = table_create (header);

    for (int i = 0; i < pp; i++) {
        const double kind[] = {
            s[i].weights_bytes,     s[i].gradients_bytes, s[i].optimizer_bytes,
            s[i].activations_bytes, s[i].logits_bytes,    s[i].buffers_bytes,
            s[i].overhead_bytes,    s[i].peak_bytes,      limit_bytes};

        table_cell (t, "%d", i);
        table_cell (t, "%d", layers[i]);
        for (size_t k = 0; k < sizeof kind / sizeof *kind; k++)
            table_cell (t, "%.2f", kind[k] / UNITS_GIB);
    }
    printf ("GiB on one GPU of each stage:\n");
    table_print (t, stdout);
    table_destroy (t);
}

static json_t *stages_json (const struct memest_stage *s, const int *layers, int pp,
                            int worst, double gpu_bytes, double limit_bytes)
{
    json_t *list = json_array ();

    for (int i = 0; i < pp; i++) {
        json_t *one = memest_stage_to_json (&s[i]);

        json_object_set_new (one, "layers", json_integer (layers[i]));
        json_array_append_new (list, one);
    }
    return json_pack ("{s:i, s:f, s:f, s:f, s:b, s:n, s:i, s:o}", "version", 1,
                      "peak_bytes", s[worst].peak_bytes, "gpu_bytes", gpu_bytes,
                      "limit_bytes", limit_bytes, "fits",
                      s[worst].peak_bytes <= limit_bytes, "oom_probability",
                      "binding_stage", worst, "per_stage", list);
}

static enum status estimate (struct mem_input *in, struct notes *notes, struct error *err)
{
    const struct topology_gpu_type *gpu = topology_gpu_type_builtin (in->gpu);
    struct workload_model m;
    struct workload_job job;
    struct workload_profile profile;
    struct workload_config c = cli_job_config (&in->job);
    struct memest_stage *s = NULL;
    int *layers = NULL, worst = 0;
    enum status st;

    if (!gpu)
        return err_set (err, ST_INVALID,
                        "--gpu: unknown type \"%s\" (`linkwise gpus` lists "
                        "them)",
                        in->gpu);
    /* Without a batch, one that fills the pipeline. */
    if (in->job.global_batch == 0) {
        long long batch = (long long) c.deg.dp * c.micro_batch;

        if (batch < 1 << 30 && c.deg.pp < 1 << 24)
            batch *= c.deg.pp;
        if (batch > 1 << 30)
            return err_set (err, ST_INVALID, "dp, pp and micro-batch: too large");
        in->job.global_batch = (int) batch;
    }
    st = workload_model_read (in->model, &m, notes, err);
    if (st == ST_OK)
        st = cli_job_resolve (&in->job, &m, &job, &profile, notes, err);
    if (st == ST_OK)
        st = workload_config_check (&m, &job, &c, err);
    if (st == ST_OK) {
        s = calloc ((size_t) c.deg.pp, sizeof *s);
        layers = calloc ((size_t) c.deg.pp, sizeof *layers);
        st = s && layers ? cli_job_layers (&in->job, &m, &c, layers, err)
                         : err_nomem (err);
    }
    if (st == ST_OK) {
        double limit = mapper_limit_bytes (gpu, in->job.memory_limit_pct);

        for (int i = 0; i < c.deg.pp; i++) {
            memest_stage (&m, &job, &c, &profile, i, layers[i], &s[i]);
            worst = s[i].peak_bytes > s[worst].peak_bytes ? i : worst;
        }
        if (in->json) {
            st = cli_print_json (
                stages_json (s, layers, c.deg.pp, worst, gpu->memory_bytes, limit), err);
        } else {
            struct text words = {0};

            cli_describe_config (&c, &words);
            printf ("%s, %.2f billion parameters, on %s\n%s\n", m.name,
                    workload_model_params (&m) / 1e9, gpu->name, text_str (&words));
            text_free (&words);
            print_stages (s, layers, c.deg.pp, limit);
            printf ("stage %d peaks at %.2f GiB of %.2f GiB: %s\n", worst,
                    s[worst].peak_bytes / UNITS_GIB, limit / UNITS_GIB,
                    s[worst].peak_bytes <= limit ? "fits" : "does not fit");
        }
    }
    free (s);
    free (layers);
    return st;
}

int cli_mem (int argc, char **argv)
{
    const struct argp_child children[] = {{&cli_job_argp, 0, "The job:", 1}, {0}};
    const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "MODEL",
        .doc = "Estimate the memory of one GPU of every stage, by kind, in GiB.\v"
               "Example: linkwise mem llama-2-70b --gpu h100-sxm5-80g --seq 4096 --tp 8 "
               "--pp 4 --dp 4\n\nMODEL is a Hugging Face config.json, a preset "
               "(`linkwise models`), or - for standard input.  Degrees default to 1, the "
               "global batch to one that fills the pipeline.",
        .children = children};
    struct mem_input in = {.job = cli_job_default ()};
    struct notes notes = {0};
    struct error err = {""};

    cli_parse (&argp, argc, argv, &in);

    enum status st = estimate (&in, &notes, &err);

    cli_warn ("mem", &notes);
    return cli_end ("mem", st, &err);
}
