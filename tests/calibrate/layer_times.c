/* Layer times of other tools give the efficiency with which estimates meet them: an efficiency
 * that was put in comes out, from every format; what cannot be is refused with its place. */
#include "tests/lib/folder.h"

#include "calibrate/layer_times.h"
#include "costmodel/costmodel.h"

static void write_text (const char *text)
{
    write_in_folder ("t", text, strlen (text));
}

/* What a stage of some layers takes on an H100 whose products reach `efficiency`. */
static struct costmodel_stage_time layers_at (double efficiency, int micro_batch, int tp,
                                              const struct workload_stage *held)
{
    struct topology_gpu_type type = *topology_gpu_type_builtin ("h100-sxm5-80g");
    struct workload_model m = model_of ("llama-2-7b");
    struct workload_profile p = profile_of ("torchtitan");
    struct workload_job j = {.seq = 4096, .global_batch = micro_batch};
    struct workload_config c = config_of (tp, 1, 1, micro_batch);
    struct costmodel_compute k;
    struct costmodel_stage_time t;

    type.gemm_efficiency = efficiency;
    p.time.microbatch_s = 0;
    c.sequence_parallel = tp > 1;
    costmodel_compute (&m, &j, &c, &p, &type, &k);
    costmodel_stage_compute (&c, &p, &k, held, &t);
    return t;
}

static enum status fit (struct calibrate_layer_fit *out, struct error *err)
{
    struct workload_model m = model_of ("llama-2-7b");
    struct workload_profile p = profile_of ("torchtitan");
    struct workload_job j = {.seq = 4096};
    struct calibrate_layer_times t = {0};
    enum status st = calibrate_layer_times_read (in_folder ("t"), &t, err);

    if (st == ST_OK)
        st = calibrate_layer_times_fit (
            &t, &m, &j, &p, topology_gpu_type_builtin ("h100-sxm5-80g"), out, err);
    calibrate_layer_times_release (&t);
    return st;
}

static void comes_out (double efficiency, int used)
{
    struct calibrate_layer_fit f = {0};
    struct error err = {""};

    ok (fit (&f, &err), &err);
    assert_string_equal (f.key, "gemm_efficiency");
    CLOSE (f.efficiency, efficiency, 1e-4);
    assert_int_equal (f.used, used);
    assert_true (f.spread < 1e-3);
}

/* Rows with tp, with and without backward, and one that launches decide. */
TEST (table)
{
    const struct workload_stage one = {.dense = 1};
    struct costmodel_stage_time a = layers_at (.5, 2, 1, &one),
                                b = layers_at (.5, 4, 2, &one);
    struct text t = {0};

    text_add (&t, "micro_batch,tp,forward_ms,backward_ms,seq\n2,1,%.9g,%.9g,\n",
              a.fwd_s * 1e3, a.back_s * 1e3);
    text_add (&t, "4,2,%.9g,,4096\n", b.fwd_s * 1e3);
    text_add (&t, "1,8,%.9g,,128\n", 0.25);
    write_text (text_str (&t));
    text_free (&t);
    comes_out (.5, 2);
}

/* Behind a byte-order mark. */
TEST (galvatron)
{
    const struct workload_stage one = {.dense = 1};
    struct calibrate_layer_times times;
    struct error err = {""};
    struct text t = {0};

    text_add (&t, "\xef\xbb\xbf{\"layernum[2]_bsz1_seq4096\": 17.1");
    for (int b = 1; b <= 4; b *= 2)
        text_add (&t,
                  ", \"layertype_0_bsz%d_seq4096\": %.9g, "
                  "\"layertype_other_bsz%d_seq4096\": 3",
                  b, layers_at (.6, b, 1, &one).fwd_s * 1e3 / b, b);
    text_add (&t, ", \"layertype_1_bsz1_seq4096\": 3, \"layertype_2_bsz1\": 3}");
    write_text (text_str (&t));
    text_free (&t);
    comes_out (.6, 3);
    ok (calibrate_layer_times_read (in_folder ("t"), &times, &err), &err);
    assert_int_equal (times.n, 3);
    assert_int_equal (times.others, 2);
    calibrate_layer_times_release (&times);
}

#define ARGUMENTS(TP, RECOMPUTE)                                          \
    "  context_parallel_size ........................... 1\n"             \
    "  data_parallel_size .............................. 2\n"             \
    "  global_batch_size ............................... 16\n"            \
    "  micro_batch_size ................................ 1\n"             \
    "  num_layers ...................................... 32\n"            \
    "  pipeline_model_parallel_size .................... 4\n"             \
    "  recompute_granularity ........................... " RECOMPUTE "\n" \
    "  seq_length ...................................... 4096\n"          \
    "  tensor_model_parallel_size ...................... " TP "\n"

/* Eight layers of a middle stage, eight micro-batches; the first report is a start-up's. */
TEST (megatron)
{
    const struct workload_stage eight = {.dense = 8};
    struct costmodel_stage_time s = layers_at (.55, 1, 1, &eight);
    struct text t = {0};

    text_add (&t, "%s", ARGUMENTS ("1", "None"));
    for (int i = 0; i < 3; i++)
        text_add (&t,
                  " (min, max) time across ranks (ms):\n"
                  "    forward-backward ...............................: (900.1, 901.2)\n"
                  "    forward-compute ................................: (%.6f, 999.9)\n"
                  "    backward-compute ...............................: (%.6f, 999.9)\n",
                  8e3 * s.fwd_s * (i ? 1 : 5), 8e3 * s.back_s * (i ? 1 : 5));
    write_text (text_str (&t));
    text_free (&t);
    comes_out (.55, 1);
}

TEST (refused)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"micro_batch,tp,forward_ms\n1,1,0\n",
         "row 1: forward_ms: expected a number above 0"},
        {"micro_batch,tp,forward_ms\n1,1,9\n1,1,nan\n", "row 2: forward_ms"},
        {"micro_batch,tp,forward_ms\n1,1,inf\n", "row 1: forward_ms"},
        {"micro_batch,tp,forward_ms\n1,1.5,9\n", "row 1: tp: expected a whole number"},
        {"micro_batch,forward_ms\n1,9\n", "row 1: tp"},
        {"micro_batch,tp,forward_ms\n1,3,9\n", "row 1: "},
        {"micro_batch,tp,forward_ms\n1,1,0.5\n",
         "row 1: 0.5 ms is less than the products"},
        {"micro_batch,tp,forward_ms\n1,1,99999\n", "no row tells how fast products are"},
        {"micro_batch,tp,forward_ms\n", "holds no layer times"},
        {"{\"layertype_0_bsz1_seq4096\": -1}", "layertype_0_bsz1_seq4096"},
        {"{\"layertype_0_bsz0_seq4096\": 1}", "layertype_0_bsz0_seq4096"},
        {"{\"layertype_0\": 1}", "holds no layer times"},
        {"hello", "no layer times"},
        {ARGUMENTS ("2", "None") "forward-compute ...: (1, 2)\n",
         "tensor_model_parallel_size: expected 1"},
        {ARGUMENTS ("1", "full") "forward-compute ...: (1, 2)\n",
         "recompute_granularity"},
        {ARGUMENTS ("1", "None") "forward-compute ...: (0, 2)\n",
         "report 1 of forward-compute"},
        {"forward-compute ...: (1, 2)\n",
         "num_layers: expected \"num_layers ...... VALUE\""},
        {"num_layers ... x\nforward-compute ...: (1, 2)\n",
         "num_layers: expected a whole number, found \"x\""},
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct calibrate_layer_fit f = {.used = -7};
        struct error err = {""};

        write_text (bad[i].text);
        assert_int_equal (fit (&f, &err), ST_INVALID);
        assert_int_equal (f.used, -7);
        if (!strstr (err.text, bad[i].says))
            fail_msg ("\"%s\" does not say \"%s\"", err.text, bad[i].says);
    }
}
