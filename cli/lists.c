/* linkwise gpus, linkwise models: the built-in tables. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/units.h"

struct list_input {
    bool json;
};

static error_t parse_list (int key, char *arg, struct argp_state *state)
{
    struct list_input *in = state->input;

    switch (key) {
    case 'j':
        in->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error (state, "no argument expected, found \"%s\"", arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option list_options[] = {
    {"json", 'j', NULL, 0, "print one JSON document", 0}, {0}};

static struct list_input parse (int argc, char **argv, const char *doc)
{
    struct list_input in = {0};
    struct argp argp = {.options = list_options, .parser = parse_list, .doc = doc};

    cli_parse (&argp, argc, argv, &in);
    return in;
}

static int print_list (const char *command, const char *key, json_t *list)
{
    struct error err;

    return cli_end (
        command, cli_print_json (json_pack ("{s:i, s:o}", "version", 1, key, list), &err),
        &err);
}

int cli_gpus (int argc, char **argv)
{
    static const char *const header[] = {"<type",     "memory GB", "memory GB/s",
                                         "bf16 TF/s", "fp16 TF/s", "fp8 TF/s",
                                         "fp32 TF/s", "SMs",       NULL};
    struct list_input in =
        parse (argc, argv, "The built-in GPU types: dense vendor peaks.");
    struct table *t = table_create (header);
    json_t *list = json_array ();
    int n;
    const struct topology_gpu_type *all = topology_gpu_types_builtin (&n);

    for (int i = 0; i < n; i++) {
        const struct topology_gpu_type *g = &all[i];
        double rate[] = {g->bf16_flop_per_s, g->fp16_flop_per_s, g->fp8_flop_per_s,
                         g->fp32_flop_per_s};

        json_array_append_new (
            list, json_pack ("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:f, s:f}", "name",
                             g->name, "memory_gb", g->memory_bytes / UNITS_GB,
                             "memory_gb_per_s", g->hbm_bytes_per_s / UNITS_GB,
                             "bf16_tflop_per_s", rate[0] / 1e12, "fp16_tflop_per_s",
                             rate[1] / 1e12, "fp8_tflop_per_s", rate[2] / 1e12,
                             "fp32_tflop_per_s", rate[3] / 1e12, "multiprocessors",
                             g->multiprocessors, "gemm_efficiency", g->gemm_efficiency,
                             "nvls_efficiency", g->nvls_efficiency));
        table_cell (t, "%s", g->name);
        table_cell (t, "%.1f", g->memory_bytes / UNITS_GB);
        table_cell (t, "%.0f", g->hbm_bytes_per_s / UNITS_GB);
        for (int k = 0; k < 4; k++)
            table_cell (t, rate[k] > 0 ? "%.1f" : "-", rate[k] / 1e12);
        table_cell (t, "%d", g->multiprocessors);
    }
    if (in.json) {
        table_destroy (t);
        return print_list ("gpus", "gpus", list);
    }
    table_print (t, stdout);
    table_destroy (t);
    json_decref (list);
    return 0;
}

int cli_models (int argc, char **argv)
{
    static const char *const header[] = {"<model", "parameters 1e9", "layers",
                                         "hidden", "heads",          "kv heads",
                                         "ffn",    "vocabulary",     NULL};
    struct list_input in =
        parse (argc, argv, "The model presets; any command takes their names.");
    struct table *t = table_create (header);
    json_t *list = json_array ();
    int n;
    const struct workload_model *all = workload_presets (&n);

    for (int i = 0; i < n; i++) {
        const struct workload_model *m = &all[i];
        const int size[] = {m->layers,   m->hidden, m->heads,
                            m->kv_heads, m->ffn,    m->vocab};

        json_array_append_new (list, workload_model_to_json (m));
        table_cell (t, "%s", m->name);
        table_cell (t, "%.3f", workload_model_params (m) / 1e9);
        for (int k = 0; k < 6; k++)
            table_cell (t, "%d", size[k]);
    }
    if (in.json) {
        table_destroy (t);
        return print_list ("models", "models", list);
    }
    table_print (t, stdout);
    table_destroy (t);
    json_decref (list);
    return 0;
}
