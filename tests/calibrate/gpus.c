/* The GPUs of a runs file: mixes of types and how they are spelled, and the names of types. */
#include "tests/lib/runs.h"

/* Mixes of GPUs: stages fill the nodes in the order said, so that each is as slow as its own
 * type; the profile is the slowest type's in either order; a step lies between those of
 * either type alone. */
TEST (mixes)
{
    static const char *const gpu[] = {"gpu=T4:2", "gpu=V100-SXM2-32GB:2",
                                      "gpu=T4:1+V100-SXM2-32GB:1",
                                      "gpu=V100-SXM2-32GB:1+T4:1"};
    double step_s[4], types_s[2];

    for (int i = 0; i < 4; i++) {
        struct calibrate_runs r = ONE (gpu[i], "precision=fp16", "pp=2");
        struct topology_cluster *c;
        struct workload_profile p;
        struct error err = {""};

        p = runs_profile (&r);
        assert_string_equal (p.name, i == 1 ? "megatron-v100" : "deepspeed-t4");
        if (i == 1)
            ok (workload_profile_read ("deepspeed-t4", &p, NULL, &err), &err);
        ok (calibrate_cluster (&r.run[0], &p, &c, &err), &err);
        assert_int_equal (c->n_gpus, r.run[0].gpus);
        assert_string_equal (c->node[0].type->name, i % 2 ? "v100-sxm2-32g" : "t4");
        assert_string_equal (c->node[1].type->name,
                             i == 1 || i == 2 ? "v100-sxm2-32g" : "t4");
        ok (calibrate_step (&r.run[0], c, &p, &step_s[i], NULL, &err), &err);
        topology_cluster_destroy (c);
        calibrate_runs_release (&r);
    }
    types_s[0] = step_s[0];
    types_s[1] = step_s[1];
    assert_true (types_s[1] < .5 * types_s[0]);
    for (int i = 2; i < 4; i++)
        assert_true (step_s[i] < types_s[0] && step_s[i] > types_s[1]);
    /* The head is on the last stage: worse where that is the slow one. */
    assert_true (step_s[3] > step_s[2]);
}

/* A stage is held against its own GPUs: the fuller first one on 80 GB needs half of what it
 * needs on 40 GB, so that the second decides. */
TEST (mix_memory)
{
    static const char *const gpu[] = {"gpu=A100-SXM4-40GB:2",
                                      "gpu=A100-SXM4-80GB:1+A100-SXM4-40GB:1",
                                      "gpu=A100-SXM4-40GB:1+A100-SXM4-80GB:1"};
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    double need[3];

    for (int i = 0; i < 3; i++) {
        struct calibrate_runs r = ONE (gpu[i], "gpu_mem_gb=", "pp=2", "vocab=1000");

        need[i] = calibrate_need (&r.run[0], &p, MEMEST_LINKWISE);
        assert_true (r.run[0].gpu_bytes < 50e9);
        calibrate_runs_release (&r);
    }
    assert_true (need[1] < 0.99 * need[0]);
    CLOSE (need[2], need[0], 1e-12);
}

/* Usual ways to write a mix are one: numbers of GPUs for nodes, spaces, a network and memory
 * for each part; machines that are named by their maker bring their network. */
TEST (mixes_spelled)
{
    static const struct {
        const char *cell[4];
        double gbps[2];
    } t[] = {
        {{"gpu=V100-SXM2-16GB:1+T4:1", "inter_node_gbps=10"}, {10, 10}},
        {{"gpu=V100:8+T4:8", "inter_node_gbps=10", "gpu_mem_gb=16"}, {10, 10}},
        {{"gpu=V100:1 + T4:1", "inter_node_gbps=10/5", "gpu_mem_gb=16+16"}, {10, 5}},
        {{"gpu=V100 (P3.8xlarge):1+T4 (G4dn.12xlarge):1", "gpu_mem_gb=16"}, {10, 16}},
        {{"gpu=V100-16GB:1+T4:1", "inter_node_gbps=25 + 50"}, {25, 16}},
        {{"gpu=8xV100, 8xT4", "inter_node_gbps=10", "gpu_mem_gb=16"}, {10, 10}},
        {{"gpu=V100 x8 & T4 x8", "inter_node_gbps=10", "gpu_mem_gb=16"}, {10, 10}},
        {{"gpu=V100 + T4", "inter_node_gbps=10", "gpu_mem_gb=16"}, {10, 10}}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = one (t[i].cell);

        assert_int_equal (r.run[0].n_parts, 2);
        assert_string_equal (r.run[0].part[0].type->name, "v100-sxm2-16g");
        assert_string_equal (r.run[0].part[1].type->name, "t4");
        for (int k = 0; k < 2; k++) {
            assert_int_equal (r.run[0].part[k].nodes, 1);
            CLOSE (r.run[0].part[k].inter_bytes_per_s, t[i].gbps[k] * 1.25e8, 1e-12);
        }
        calibrate_runs_release (&r);
    }
}

/* Nodes that nobody states are such that each part is whole ones, and a choice is no mix. */
TEST (mix_of_small_nodes)
{
    struct calibrate_runs r =
        ONE ("gpu=RTX 3090:4+RTX 4090:2", "gpus=6", "tp=2", "pp=3", "layers=33");
    struct text t = {0};
    struct error err = {""};

    assert_int_equal (r.run[0].gpus_per_node, 2);
    assert_int_equal (r.run[0].part[0].nodes, 2);
    assert_int_equal (r.run[0].part[1].nodes, 1);
    calibrate_runs_release (&r);
    text_add (&t, "%s\n", RUNS_HEADER);
    ROW (&t, "gpu=RTX 3090:4+RTX 4090:2", "gpus=6", "gpus_per_node=4", "tp=2", "pp=3");
    ROW (&t, "gpu=V100 / T4");
    for (int i = 0; i < 100; i++) /* a node is not looked for above its parts: at once */
        ROW (&t, "gpu=RTX 3090:4+RTX 4090:2", "gpus=6", "gpus_per_node=1073741823");
    assert_int_equal (runs_read (text_str (&t), &r, &err), ST_INVALID);
    assert_non_null (strstr (err.text, "do not make up gpus"));
    assert_non_null (strstr (err.text, "a mix TYPE:N+TYPE:N"));
    text_free (&t);
}

/* A cell that says more than one type, and no mix of types that are known, is refused; beside one
 * type there may be remarks. */
TEST (mix_or_remark)
{
    static const char *const bad[] = {"V100 + P100",
                                      "T4 + P100",
                                      "8x A100 + 8x TPUv4",
                                      "H100 + Gaudi2",
                                      "8x RTX 3090, 8x GTX 1080 Ti",
                                      "V100:8,P100:8",
                                      "V100:8+T4",
                                      "H100; baseline: A100",
                                      "H100, H200 not used",
                                      "L4, L40",
                                      "A100 or H100",
                                      "A100 and H100",
                                      "A100 vs H100",
                                      "A100 (not H100)",
                                      "A100 40GB or 80GB",
                                      "A100-40GB / A100-80GB",
                                      "A100 80GB, Standard_ND96asr_v4",
                                      "H100 (p4d.24xlarge)",
                                      "8x H100 or 8x A100"};
    static const struct {
        const char *cell, *first;
        int parts;
    } good[] = {{"DGX A100, 8x A100", "a100-sxm4-80g", 1},
                {"8x A10G, g5.48xlarge", "a10g", 1},
                {"8x A100 + NVLink", "a100-sxm4-80g", 1},
                {"A100 (NVLink + IB)", "a100-sxm4-80g", 1},
                {"A100; NVLink", "a100-sxm4-80g", 1},
                {"A100, Standard_ND96amsr_A100_v4", "a100-sxm4-80g", 1},
                {"GH200 96GB (480GB LPDDR5X)", "gh200-96g", 1},
                {"V100 + T4 + IB", "v100-sxm2-32g", 2},
                {"8x V100, 8x T4, NVLink", "v100-sxm2-32g", 2}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct calibrate_runs r = {0};
        struct error err = {""};
        struct text t = {0};

        text_add (&t, "model,gpu,gpus,seq,global_batch\nllama-2-7b,\"%s\",16,4096,16\n",
                  bad[i]);
        if (runs_read (text_str (&t), &r, &err) == ST_OK)
            fail_msg ("\"%s\" is taken as %d of %s", bad[i], r.run[0].n_parts,
                      r.run[0].part[0].type->name);
        assert_non_null (strstr (err.text, "a mix TYPE:N+TYPE:N"));
        text_free (&t);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct calibrate_runs r = {0};
        struct text t = {0};

        text_add (&t, "model,gpu,gpus,seq,global_batch\nllama-2-7b,\"%s\",%d,4096,16\n",
                  good[i].cell, 8 * good[i].parts);
        r = runs_of (text_str (&t));
        assert_int_equal (r.run[0].n_parts, good[i].parts);
        assert_string_equal (r.run[0].part[0].type->name, good[i].first);
        calibrate_runs_release (&r);
        text_free (&t);
    }
}

/* Two parts of one type are that type: also their network, which depends on the job's
 * nodes. */
TEST (mix_of_one_type)
{
    static const char *const gpu[] = {"gpu=A100-SXM4-80GB:2",
                                      "gpu=A100-SXM4-80GB:1+A100-SXM4-80GB:1"};
    double step_s[2];

    for (int i = 0; i < 2; i++) {
        struct calibrate_runs r = ONE (gpu[i]);
        struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);

        step_s[i] = runs_step (&r.run[0], &p);
        calibrate_runs_release (&r);
    }
    CLOSE (step_s[0], step_s[1], 1e-12);
}

/* Names as sources spell them: the type that they mean, with the memory that they or the row say.
 */
TEST (gpu_names)
{
    static const struct {
        const char *spelled, *gb, *type;
        double gib; /* 0: the type's own */
    } known[] = {{"A100-SXM4-80GB", "80", "a100-sxm4-80g", 0},
                 {"A100-80GB", "", "a100-sxm4-80g", 0},
                 {"A100", "40", "a100-sxm4-40g", 0},
                 {"h100_80gb", "", "h100-sxm5-80g", 0},
                 {"GB200", "186", "gb200-192g", 0},
                 {"T4 (G4dn.12xlarge)", "", "t4", 0},
                 {"V100", "32", "v100-sxm2-32g", 0},
                 {"V100", "16", "v100-sxm2-16g", 0},
                 {"NVIDIA H100 PCIe", "80", "h100-pcie-80g", 0},
                 {"NVIDIA A100 40 GB", "", "a100-sxm4-40g", 0},
                 {"8xA100", "80", "a100-sxm4-80g", 0},
                 {"GH200", "144", "gh200-144g", 0},
                 {"H20", "141", "h20-141g", 0},
                 {"B200-SXM-180GB", "180", "b200-192g", 0},
                 {"ND96isr_H100_v5", "", "h100-sxm5-80g", 0},
                 {"A100 64GB", "", "a100-sxm4-80g", 64},
                 {"H100", "64", "h100-sxm5-80g", 64},
                 {"RTX 5060 Ti 8GB", "", "rtx-5060-ti", 8},
                 {"RTX TITAN", "24", "titan-rtx", 0},
                 {"H100 (ND96isr_v5)", "", "h100-sxm5-80g", 0},
                 {"H100 (96 GB)", "", "h100-sxm5-96g", 0},
                 {"H100-SXM5-96", "", "h100-sxm5-96g", 0},
                 {"Standard_ND40rs_v2", "", "v100-sxm2-32g", 0},
                 {"BM.GPU4.8", "", "a100-sxm4-40g", 0},
                 {"DGX-2", "", "v100-sxm2-32g", 0},
                 {"NVIDIA DGX 2x H100", "", "h100-sxm5-80g", 0},
                 {"DGX 2 nodes", "", NULL, 0},
                 {"A100 (a2-ultragpu-8g)", "", "a100-sxm4-80g", 0},
                 {"A100 NVLink 40", "", "a100-sxm4-40g", 0},
                 {"V100 FHHL 16", "", "v100-sxm2-16g", 0},
                 {"ND96asr_v4", "", "a100-sxm4-40g", 0},
                 {"8x A100 (NVLink + IB)", "80", "a100-sxm4-80g", 0},
                 {"RTX A1000", "8", NULL, 0},
                 {"RTX 4070 Laptop", "", NULL, 0},
                 {"GeForce RTX 3080 Mobile", "16", NULL, 0},
                 {"RTX 2080 with Max-Q Design", "", NULL, 0},
                 {"RTX A4000 Ada", "", NULL, 0},
                 {"RTX PRO 6000 Blackwell Max-Q", "", "rtx-pro-6000", 0},
                 {"GT40", "16", NULL, 0},
                 {"TPUv4", "32", NULL, 0}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct text t = {0};
        struct calibrate_runs r = {0};
        struct error err = {""};

        text_add (
            &t,
            "model,gpu,gpu_mem_gb,gpus,seq,global_batch\nllama-2-7b,%s,%s,8,4096,16\n",
            known[i].spelled, known[i].gb);
        if (!known[i].type) {
            assert_int_equal (runs_read (text_str (&t), &r, &err), ST_INVALID);
            assert_non_null (strstr (err.text, "expected one of `linkwise gpus`"));
        } else {
            r = runs_of (text_str (&t));
            assert_string_equal (r.run[0].part[0].type->name, known[i].type);
            CLOSE (r.run[0].gpu_bytes,
                   known[i].gib > 0 ? known[i].gib * 1073741824.0
                                    : r.run[0].part[0].type->memory_bytes,
                   1e-12);
        }
        calibrate_runs_release (&r);
        text_free (&t);
    }
}

/* GPUs that the name counts, and memory behind their number, which is none of them. */
TEST (gpus_counted)
{
    static const struct {
        const char *gpu;
        int gpus;
    } t[] = {{"8x H100", 8},       {"2x8 A100 80GB", 16}, {"2x 8 A100", 16},
             {"2x4 GB200", 8},     {"2x8 GH200", 16},     {"8x80GB H100", 8},
             {"8x80G H100", 8},    {"8x 80 GiB H100", 8}, {"4x32G V100", 4},
             {"4x 16-GB V100", 4}, {"8x 40 gb A100", 8},  {"8x 4090", 8},
             {"8x141GB H200", 8}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r = {0};
        struct text file = {0};

        text_add (&file, "model,gpu,seq,global_batch\nllama-2-7b,%s,4096,16\n", t[i].gpu);
        r = runs_of (text_str (&file));
        if (r.run[0].gpus != t[i].gpus)
            fail_msg ("\"%s\" is %d GPUs", t[i].gpu, r.run[0].gpus);
        calibrate_runs_release (&r);
        text_free (&file);
    }
}

/* What is usual between the nodes of a row that is silent: of a GB10 its own card, of others the
 * share of a node of eight, but a card. */
TEST (network_of_nodes)
{
    static const struct {
        const char *gpu, *node;
        double gb_per_s;
    } t[] = {{"gpu=GB10", "gpus_per_node=1", 25},
             {"gpu=A100-SXM4-80GB", "gpus_per_node=8", 100},
             {"gpu=A100-SXM4-80GB", "gpus_per_node=2", 50},
             {"gpu=A100-SXM4-80GB", "gpus_per_node=1", 25}};
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct calibrate_runs r =
            ONE (t[i].gpu, t[i].node, "gpu_mem_gb=", "inter_node_gbps=");
        struct topology_cluster *c;
        struct error err = {""};

        ok (calibrate_cluster (&r.run[0], &p, &c, &err), &err);
        CLOSE (c->node[0].node_bytes_per_s, t[i].gb_per_s * 1e9, 1e-5);
        topology_cluster_destroy (c);
        calibrate_runs_release (&r);
    }
}
