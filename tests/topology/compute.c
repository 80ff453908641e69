/* What bwprobe --compute measured becomes constants of GPU types: medians over the GPUs, the
 * newest of two measurements, sources named; what no such GPU can do is refused. */
#include "tests/lib/fixture.h"

#include "costmodel/costmodel.h"
#include "topology/links_doc.h"

#define NODES                                                       \
    "\"nodes\":[{\"name\":\"a\",\"gpus\":2,\"gpu_type\":\"TYPE\"}," \
    "{\"name\":\"b\",\"gpus\":2,\"gpu_type\":\"TYPE\"}]"
#define PRODUCT(PRECISION, RATE) \
    "{\"precision\":\"" PRECISION "\",\"m\":1,\"n\":1,\"k\":1,\"tflop_per_s\":" RATE "}"
#define GPU(NODE, NUMBER, PRODUCTS, COPY)                                    \
    "{\"node\":\"" NODE "\",\"gpu\":" NUMBER ",\"products\":[" PRODUCTS "]," \
    "\"copy_gb_per_s\":" COPY "}"
#define ATTENTION(KERNELS, RATE) \
    "{\"kernels\":\"" KERNELS "\",\"tokens\":16384,\"heads\":16,\"tflop_per_s\":" RATE "}"
#define AND_ATTENTION(COPY, LIST) COPY ",\"attention\":[" LIST "]"
#define MEASURED(ENDPOINTS) \
    "\"measured\":{\"when\":\"2026-01-02T03:04:05Z\",\"endpoints\":[" ENDPOINTS "]}"

static json_t *document (const char *nodes, const char *type, const char *rest)
{
    struct text t = {0};
    json_t *doc;

    for (const char *s = nodes; *s; s++)
        if (strncmp (s, "TYPE", 4) == 0) {
            text_add (&t, "%s", type);
            s += 3;
        } else {
            text_add (&t, "%c", *s);
        }
    text_add (&t, ",%s", rest);
    char *whole = strdup (text_str (&t));

    text_free (&t);
    text_add (&t, "{\"version\":1,%s}", whole);
    doc = json_loads (text_str (&t), 0, NULL);
    assert_non_null (doc);
    text_free (&t);
    free (whole);
    return doc;
}

static double number (const json_t *doc, const char *type, const char *key)
{
    return json_number_value (json_object_get (
        json_object_get (json_object_get (doc, "gpu_types"), type), key));
}

static const json_t *source (const json_t *doc, const char *type, const char *key)
{
    return json_object_get (
        json_object_get (json_object_get (json_object_get (doc, "gpu_types"), type),
                         "measured"),
        key);
}

/* The constant is .85 of the median GPU's fastest product, and the newest numbers of a GPU
 * hold. */
TEST (medians)
{
    json_t *old = document (
               NODES, "h100-sxm5-80g",
               MEASURED (GPU ("a", "0", PRODUCT ("bf16", "100"), "1000") "," GPU (
                   "b", "1", PRODUCT ("bf16", "700"), "3000"))),
           *new = document (
               NODES, "h100-sxm5-80g",
               MEASURED (GPU (
                   "a", "0",
                   PRODUCT ("bf16", "500") "," PRODUCT ("bf16", "720") "," PRODUCT (
                       "fp8", "1300"),
                   "2900") "," GPU ("a", "1",
                                    PRODUCT ("bf16", "740") "," PRODUCT ("fp8", "1400"),
                                    "2800")));
    const struct topology_compute_source from[] = {{"old", old}, {"new", new}};
    const char *type = "h100-sxm5-80g";
    struct error err = {""};

    ok (topology_compute_apply (new, from, 2, NULL, &err), &err);
    CLOSE (number (new, type, "gemm_efficiency"), .85 * 720 / 989, 1e-6);
    CLOSE (number (new, type, "fp8_gemm_efficiency"), .85 * 1350 / 1979, 1e-6);
    CLOSE (number (new, type, "copy_gb_per_s"), 2900.0, 1e-6);
    assert_null (source (new, type, "tf32_gemm_efficiency"));
    assert_int_equal (json_integer_value (json_object_get (
                          source (new, type, "gemm_efficiency"), "gpus")),
                      3);
    assert_string_equal (
        json_string_value (json_object_get (source (new, type, "copy_gb_per_s"), "file")),
        "new");
    json_decref (old);
    json_decref (new);
}

/* Attention gives constants of its own, the median rate at the shape where they hold; in few tokens
 * of few heads so much less is as good. */
TEST (attention)
{
    json_t *doc = document (
        NODES, "h100-sxm5-80g",
        MEASURED (GPU (
            "a", "0", PRODUCT ("bf16", "700"),
            AND_ATTENTION (
                "2900", ATTENTION ("flash2", "380") "," ATTENTION (
                            "cudnn", "600"))) "," GPU ("a", "1", PRODUCT ("bf16", "700"),
                                                       AND_ATTENTION (
                                                           "2900",
                                                           ATTENTION ("cudnn", "620")))));
    const struct topology_compute_source from = {"links", doc};
    const char *type = "h100-sxm5-80g";
    struct error err = {""};

    ok (topology_compute_apply (doc, &from, 1, NULL, &err), &err);
    CLOSE (number (doc, type, "flash_efficiency"), 610.0 / 989, 1e-6);
    CLOSE (number (doc, type, "flash2_efficiency"), 380.0 / 989, 1e-6);
    CLOSE (number (doc, type, "gemm_efficiency"), .85 * 700 / 989, 1e-6);
    assert_string_equal (json_string_value (json_object_get (
                             source (doc, type, "flash_efficiency"), "kernels")),
                         "cudnn");
    json_decref (doc);
}

/* A constant that layer times gave is kept; so is a peak that the file states. */
TEST (kept)
{
    json_t *doc = document (
        NODES, "t4",
        "\"gpu_types\":{\"t4\":{\"fp16_tflop_per_s\":100,\"gemm_efficiency\":0.5,"
        "\"measured\":{\"gemm_efficiency\":{\"by\":\"layer times\"}}}}," MEASURED (
            GPU ("a", "0", PRODUCT ("fp16", "90") "," PRODUCT ("fp32", "4"), "250")));
    const struct topology_compute_source from = {"doc", doc};
    struct error err = {""};

    ok (topology_compute_apply (doc, &from, 1, NULL, &err), &err);
    CLOSE (number (doc, "t4", "gemm_efficiency"), .5, 1e-9);
    CLOSE (number (doc, "t4", "fp32_gemm_efficiency"), .85 * 4 / 8.1, 1e-6);
    CLOSE (number (doc, "t4", "fp16_tflop_per_s"), 100.0, 1e-9);
    json_decref (doc);
}

TEST (refused)
{
    static const struct {
        const char *gpu, *says;
    } bad[] = {
        {GPU ("a", "0", PRODUCT ("bf16", "9"),
              AND_ATTENTION ("9", "{\"kernels\":\"fa9\"}")),
         "attention[0].kernels: expected cudnn or flash2"},
        {GPU ("a", "0", PRODUCT ("bf16", "9"),
              AND_ATTENTION ("9", ATTENTION ("cudnn", "1040"))),
         "attention[0].tflop_per_s: 1040 is more than 105 %"},
        {GPU ("a", "0", PRODUCT ("bf16", "9"), "9,\"attention\":4"),
         "endpoints[0].attention"},
        {GPU ("a", "0", PRODUCT ("bf16", "0"), "9"), "products[0].tflop_per_s"},
        {GPU ("a", "0", PRODUCT ("bf16", "-1"), "9"), "endpoints[0]"},
        {GPU ("a", "0", PRODUCT ("bf16", "null"), "9"), "tflop_per_s"},
        {GPU ("a", "0", PRODUCT ("bf16", "1040"), "9"), "105 % of what a h100-sxm5-80g"},
        {GPU ("a", "0", PRODUCT ("int4", "9"), "9"), "products[0].precision"},
        {GPU ("a", "0", PRODUCT ("bf16", "9"), "3600"), "endpoints[0].copy_gb_per_s"},
        {GPU ("a", "0", PRODUCT ("bf16", "9"), "0"), "copy_gb_per_s"},
        {GPU ("a", "2", PRODUCT ("bf16", "9"), "9"), "GPU 2 of node a"},
        {GPU ("c", "0", PRODUCT ("bf16", "9"), "9"), "node c is not in the cluster"},
    };
    struct error err = {""};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct text t = {0};
        json_t *doc;

        text_add (&t, "\"measured\":{\"endpoints\":[%s]}", bad[i].gpu);
        doc = document (NODES, "h100-sxm5-80g", text_str (&t));

        const struct topology_compute_source from = {"links.json", doc};

        assert_int_equal (topology_compute_apply (doc, &from, 1, NULL, &err), ST_INVALID);
        if (!strstr (err.text, bad[i].says) || !strstr (err.text, "links.json"))
            fail_msg ("\"%s\" does not say \"%s\"", err.text, bad[i].says);
        assert_null (json_object_get (doc, "gpu_types"));
        json_decref (doc);
        text_free (&t);
    }
}

/* A cluster file's measured constants are used, and say what measured them. */
TEST (used)
{
    json_t *doc = json_loads (
        "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1,\"gpu_type\":"
        "\"a100-sxm4-80g\"}],\"gpu_types\":{\"a100-sxm4-80g\":{\"tf32_gemm_efficiency\":"
        "0.6,\"copy_gb_per_s\":1692.37,\"measured\":{\"copy_gb_per_s\":{\"by\":"
        "\"bwprobe\"}}}},\"links\":{}}",
        0, NULL);
    const struct topology_gpu_type *plain = topology_gpu_type_builtin ("a100-sxm4-80g");
    struct topology_cluster *c = NULL;
    struct workload_profile p = profile_of ("torchtitan");
    struct workload_model m = model_of ("llama-2-7b");
    struct workload_job j = {.seq = 2048, .global_batch = 1, .precision = PREC_TF32};
    struct workload_config one = config_of (1, 1, 1, 1);
    struct costmodel_compute shipped, measured;
    struct error err = {""};

    assert_non_null (doc);
    ok (topology_cluster_from_json (doc, "test", NULL, &c, NULL, &err), &err);
    assert_non_null (json_object_get (c->node[0].type->measured, "copy_gb_per_s"));
    costmodel_compute (&m, &j, &one, &p, plain, &shipped);
    costmodel_compute (&m, &j, &one, &p, c->node[0].type, &measured);
    /* Copies that are as fast as usual change nothing, products at .6 instead of .74 do. */
    CLOSE (measured.embed_fwd_s, shipped.embed_fwd_s, 1e-4);
    assert_true (measured.dense.fwd_s > 1.1 * shipped.dense.fwd_s);
    assert_true (measured.dense.fwd_s < .74 / .6 * shipped.dense.fwd_s);
    topology_cluster_destroy (c);
    json_decref (doc);
}

TEST (source_of_nothing)
{
    assert_int_equal (
        cluster_refused ("{\"version\":1,\"nodes\":[{\"name\":\"a\",\"gpus\":1,"
                         "\"gpu_type\":\"t4\"}],\"gpu_types\":{\"t4\":{\"measured\":{"
                         "\"gemm_efficiency\":{\"by\":\"x\"}}}},\"links\":{}}",
                         "gpu_types.t4.measured.gemm_efficiency"),
        ST_INVALID);
}
