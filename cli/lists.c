/* linkwise gpus, linkwise models: the built-in tables. */
#include "cli/cli.h"

#include "base/units.h"

struct list_input {
    bool json;
};

#define INPUT struct list_input

static const struct cli_option options[] = {{CLI_JSON}, {0}};

/* By the keys of `gpu_types` in cluster files, from which a type of one's own may start. */
static json_t *gpu_json (const struct topology_gpu_type *g)
{
    const struct {
        const char *key;
        double value;
    } number[] = {{"memory_gb", g->memory_bytes / UNITS_GB},
                  {"memory_gb_per_s", g->hbm_bytes_per_s / UNITS_GB},
                  {"bf16_tflop_per_s", g->bf16_flop_per_s / 1e12},
                  {"fp16_tflop_per_s", g->fp16_flop_per_s / 1e12},
                  {"fp8_tflop_per_s", g->fp8_flop_per_s / 1e12},
                  {"fp4_tflop_per_s", g->fp4_flop_per_s / 1e12},
                  {"fp32_tflop_per_s", g->fp32_flop_per_s / 1e12},
                  {"tf32_tflop_per_s", g->tf32_flop_per_s / 1e12},
                  {"gemm_efficiency", g->gemm_efficiency},
                  {"fp8_gemm_efficiency", g->fp8_gemm_efficiency},
                  {"fp4_gemm_efficiency", g->fp4_gemm_efficiency},
                  {"flash_efficiency", g->flash_efficiency},
                  {"flash2_efficiency", g->flash2_efficiency},
                  {"host_factor", g->host_factor},
                  {"nvls_efficiency", g->nvls_efficiency}};
    json_t *o =
        json_pack ("{s:s, s:s, s:i}", "name", g->name, "source",
                   topology_gpu_type_source (g), "multiprocessors", g->multiprocessors);

    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        json_object_set_new (o, number[i].key, json_real (number[i].value));
    return o;
}

static enum status run_gpus (void *input, struct notes *notes, struct error *err)
{
    const struct list_input *in = input;
    struct table *t =
        TABLE_OF ("<type", "memory GB", "memory GB/s", "bf16 TF/s", "fp16 TF/s",
                  "fp8 TF/s", "fp4 TF/s", "fp32 TF/s", "tf32 TF/s", "SMs");
    json_t *list = json_array ();
    int n;
    const struct topology_gpu_type *all = topology_gpu_types_builtin (&n);

    (void) notes;
    for (int i = 0; i < n; i++) {
        const struct topology_gpu_type *g = &all[i];
        double rate[] = {g->bf16_flop_per_s, g->fp16_flop_per_s, g->fp8_flop_per_s,
                         g->fp4_flop_per_s,  g->fp32_flop_per_s, g->tf32_flop_per_s};

        json_array_append_new (list, gpu_json (g));
        table_cell (t, "%s", g->name);
        table_cell (t, "%.1f", g->memory_bytes / UNITS_GB);
        table_cell (t, "%.0f", g->hbm_bytes_per_s / UNITS_GB);
        for (int k = 0; k < 6; k++)
            table_cell (t, rate[k] > 0 ? "%.1f" : "-", rate[k] / 1e12);
        table_cell (t, "%d", g->multiprocessors);
    }
    return cli_answer (in->json, t, json_pack ("{s:i, s:o}", "version", 1, "gpus", list),
                       err);
}

const struct cli_command cli_gpus = {.help =
                                         "List the built-in GPU types with the vendors' "
                                         "dense peaks.",
                                     .options = {.line = options},
                                     CLI_RUN (run_gpus)};

static enum status run_models (void *input, struct notes *notes, struct error *err)
{
    const struct list_input *in = input;
    struct table *t = TABLE_OF ("<model", "parameters 1e9", "layers", "hidden", "heads",
                                "kv heads", "ffn", "vocabulary");
    json_t *list = json_array ();
    int n;
    const struct workload_model *all = workload_presets (&n);

    (void) notes;
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
    return cli_answer (in->json, t,
                       json_pack ("{s:i, s:o}", "version", 1, "models", list), err);
}

const struct cli_command cli_models = {
    .help = "List the model presets.  Every MODEL argument takes their names.",
    .options = {.line = options},
    CLI_RUN (run_models)};
