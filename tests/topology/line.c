/* A cluster on one line, and Slurm host lists. */
#include "tests/lib/fixture.h"

TEST (plain)
{
    struct topology_cluster *c = cluster_of ("2x8 h100-sxm5-80g intra:370 inter:48");
    struct topology_link l;

    assert_int_equal (c->n_nodes, 2);
    assert_int_equal (c->n_gpus, 16);
    assert_string_equal (c->node[1].name, "n1");
    l = topology_link (c, 0, 1);
    CLOSE (l.bytes_per_s, 370e9, 1e-12);
    CLOSE (l.latency_s, 8e-6, 1e-12);
    l = topology_link (c, 0, 8);
    CLOSE (l.bytes_per_s, 48e9, 1e-12);
    CLOSE (l.latency_s, 12e-6, 1e-12);
    assert_true (c->node[0].node_bytes_per_s == 0);
    topology_cluster_destroy (c);
}

TEST (mixed)
{
    struct topology_cluster *c =
        cluster_of ("2x8 h100-sxm5-80g intra:370 inter:48 node:300 + 1x4 a100-sxm4-40g "
                    "intra:200 inter:20 "
                    "inter-us:30");

    assert_int_equal (c->n_gpus, 20);
    CLOSE (topology_link (c, 0, 8).bytes_per_s, 48e9, 1e-12);
    CLOSE (topology_link (c, 0, 16).bytes_per_s, 20e9, 1e-12); /* the lower holds */
    CLOSE (topology_link (c, 16, 0).bytes_per_s, 20e9, 1e-12);
    CLOSE (topology_link (c, 16, 0).latency_s, 30e-6, 1e-12);
    CLOSE (topology_link (c, 17, 18).bytes_per_s, 200e9, 1e-12);
    CLOSE (c->node[1].node_bytes_per_s, 300e9, 1e-12);
    assert_true (c->node[2].node_bytes_per_s == 0);
    assert_string_equal (c->node[2].type->name, "a100-sxm4-40g");
    topology_cluster_destroy (c);
}

/* PCIe by its generation, and by whether GPUs reach each other past the host's memory. */
TEST (pcie)
{
    double four = topology_usual_links ("rtx-4090").intra_gb_per_s,
           five = topology_usual_links ("rtx-5090").intra_gb_per_s;

    CLOSE (topology_usual_links ("rtx-pro-6000").intra_gb_per_s, 40, 0.01);
    assert_true (five > 2 * four && five < 40);
    CLOSE (topology_usual_links ("rtx-5060-ti").intra_gb_per_s, five / 2, 1e-9);
    CLOSE (topology_usual_links ("rtx-6000-ada").intra_gb_per_s, four, 1e-9);
    CLOSE (topology_usual_links ("rtx-5000-ada").intra_gb_per_s, four, 1e-9);
    CLOSE (topology_usual_links ("rtx-2080-ti").intra_gb_per_s, four / 2, 1e-9);
}

/* What a line leaves out is that of the type's usual machines, and marked. */
TEST (nominal)
{
    static const struct {
        const char *line, *type;
        double intra, inter, node;
        const char *links; /* that are nominal */
    } rows[] = {
        {"4x8 h100", "h100-sxm5-80g", 370e9, 48e9, 384e9, "[\"intra\", \"inter\"]"},
        {"2x4 A100-80GB", "a100-sxm4-80g", 230e9, 12e9, 48e9, "[\"intra\", \"inter\"]"},
        {"2x8 h100 intra:360", "h100-sxm5-80g", 360e9, 48e9, 384e9, "[\"inter\"]"},
        {"2x8 h100 inter:40", "h100-sxm5-80g", 370e9, 40e9, 0, "[\"intra\"]"},
        {"2x8 h100 node:100", "h100-sxm5-80g", 370e9, 48e9, 100e9,
         "[\"intra\", \"inter\"]"},
        {"2x8 p4d.24xlarge", "a100-sxm4-40g", 230e9, 12e9, 48e9,
         "[\"intra\", \"inter\"]"},
        {"2x4 a3-megagpu-8g", "h100-sxm5-80g", 370e9, 24e9, 96e9,
         "[\"intra\", \"inter\"]"},
        {"2x1 t4", "t4", 0, 6e9, 6e9, "[\"inter\"]"},
        {"2x1 gb10", "gb10", 0, 24e9, 24e9, "[\"inter\"]"},
        {"2x64 gb200", "gb200-192g", 700e9, 48e9, 3072e9, "[\"intra\", \"inter\"]"},
        {"2x8 b200 intra:700 inter:48", "b200-192g", 700e9, 48e9, 0, "[]"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct topology_cluster *c = cluster_of (rows[i].line);
        json_t *links = topology_nominal (c);
        char *found = json_dumps (links, 0);

        assert_string_equal (c->node[0].type->name, rows[i].type);
        if (rows[i].intra > 0)
            CLOSE (topology_link (c, 0, 1).bytes_per_s, rows[i].intra, 1e-12);
        CLOSE (topology_link (c, 0, c->n_gpus - 1).bytes_per_s, rows[i].inter, 1e-12);
        CLOSE (c->node[1].node_bytes_per_s, rows[i].node, 1e-12);
        assert_string_equal (found, rows[i].links);
        free (found);
        json_decref (links);
        topology_cluster_destroy (c);
    }
}

/* Trays of an NVL72 rack reach each other as GPUs of one node do; racks by the network. */
TEST (racks)
{
    static const struct {
        const char *line;
        int domain; /* nodes of the first rack */
    } t[] = {{"64x4 gb200", 16},        {"36x4 gb300", 18}, {"18x4 gb200", 18},
             {"2x4 gb200", 2},          {"4x64 gb200", 1},  {"4x4 gb200 inter:48", 1},
             {"4x4 gb200 node:192", 1}, {"4x8 b200", 1}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct topology_cluster *c = cluster_of (t[i].line);
        double inside = topology_link (c, 0, 1).bytes_per_s;
        int g = c->node[0].gpus, a = t[i].domain;

        for (int n = 1; n < c->n_nodes && n <= a; n++) {
            struct topology_link l = topology_link (c, 0, n * g);

            assert_true (n < a ? l.bytes_per_s == inside : l.bytes_per_s < inside / 4);
            if (n < a)
                assert_true (l.latency_s == topology_link (c, 0, 1).latency_s);
        }
        /* What leaves a rack is no more than the NICs carry. */
        if (a > 1 && a < c->n_nodes) {
            assert_true (topology_pair_total (c, 0, 1) == inside * g);
            assert_true (topology_pair_total (c, 0, a) < inside * g / 4);
        }
        assert_int_equal (c->n_nodes == 1 || a == 1 || c->inter.nominal, 1);
        topology_cluster_destroy (c);
    }
}

/* Short and other spellings of GPU types, and what is none. */
TEST (spellings)
{
    static const struct {
        const char *name, *type;
    } rows[] = {{"h100", "h100-sxm5-80g"},
                {"H100-SXM", "h100-sxm5-80g"},
                {"h100-pcie", "h100-pcie-80g"},
                {"a100", "a100-sxm4-80g"},
                {"A100-40GB", "a100-sxm4-40g"},
                {"a100_80g", "a100-sxm4-80g"},
                {"v100", "v100-sxm2-32g"},
                {"mi300", "mi300x"},
                {"h20", "h20-96g"},
                {"h200", "h200-sxm-141g"},
                {"4090", "rtx-4090"},
                {"a10", "a10"},
                {"h100-nvl", "h100-nvl-94g"},
                {"h1", NULL},
                {"80g", NULL},
                {"sxm", NULL},
                {"", NULL},
                {"a1000", NULL},
                {"rtx4090", "rtx-4090"},
                {"RTXA6000", "rtx-a6000"},
                {"NVIDIA H100 80GB HBM3", "h100-sxm5-80g"},
                {"NVIDIA-A100-SXM4-80GB", "a100-sxm4-80g"},
                {"NVIDIA-GeForce-RTX-4090", "rtx-4090"},
                {"NVIDIA A100 80GB PCIe", "a100-pcie-80g"},
                {"NVIDIA L4", "l4"},
                {"Tesla T4", "t4"},
                {"NVIDIA H100 NVL", "h100-nvl-94g"},
                {"NVIDIA H20-3e", "h20-141g"},
                {"h20-141g", "h20-141g"},
                {"H20 141GB", "h20-141g"},
                {"NVIDIA L40S", "l40s"},
                {"Tesla V100-SXM2-32GB", "v100-sxm2-32g"},
                {"Tesla V100-PCIE-16GB", "v100-pcie-16g"},
                {"V100S-PCIE-32GB", "v100s-pcie-32g"},
                {"titan rtx", "titan-rtx"},
                {"2080ti", "rtx-2080-ti"},
                {"rtx6000ada", "rtx-6000-ada"},
                {"RTX 6000 Ada Generation", "rtx-6000-ada"},
                {"RTX 5060 Ti 16GB", "rtx-5060-ti"},
                {"GeForce RTX 3080 Ti", "rtx-3080-ti"},
                {"GB200 NVL72", "gb200-192g"},
                {"B200 180GB", "b200-192g"},
                {"MI300X-192GB", "mi300x"},
                {"AMD Instinct MI250X", "mi250x"},
                {"MI250", "mi250"},
                {"DGX H100", "h100-sxm5-80g"},
                {"DGX Spark", "gb10"},
                {"Grace Hopper", "gh200-96g"},
                {"H100 SXM", "h100-sxm5-80g"},
                {"A100 40GB", "a100-sxm4-40g"},
                {"A100-PCIE-40GB", "a100-pcie-40g"},
                {"A800 40GB", "a800-pcie-40g"},
                {"H800 PCIe", "h800-pcie-80g"},
                {"H200-NVL-141GB", "h200-nvl-141g"},
                {"H100-94GB", "h100-nvl-94g"},
                {"H100-SXM5-94GB", "h100-sxm5-96g"},
                {"h100-96", "h100-sxm5-96g"},
                {"GH200 480GB", "gh200-96g"},
                {"GH200 144GB", "gh200-144g"},
                {"8x A100 80GB", "a100-sxm4-80g"},
                {"p4d.24xlarge", "a100-sxm4-40g"},
                {"p4de.24xlarge", "a100-sxm4-80g"},
                {"p6-b200.48xlarge", "b200-192g"},
                {"p6e-gb200.36xlarge", "gb200-192g"},
                {"a4x-highgpu-4g", "gb200-192g"},
                {"p5.48xlarge", "h100-sxm5-80g"},
                {"g5.12xlarge", "a10g"},
                {"a3-highgpu-8g", "h100-sxm5-80g"},
                {"Quadro RTX 6000", "quadro-rtx-6000"},
                {"RTX TITAN", "titan-rtx"},
                {"RTX 4090 D", "rtx-4090-d"},
                {"RTX 4070 Ti SUPER", "rtx-4070-ti-super"},
                {"RTX 4070 SUPER", NULL},
                {"H100 MIG 1g.10gb", NULL},
                {"h100-64g", NULL},
                {"RTX 5090 D", NULL},
                {"A100 40GB 80GB", NULL},
                {"A100 H100", NULL},
                {"RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000"},
                {"NVIDIA GeForce RTX 4070 Laptop GPU", NULL},
                {"RTX 2080 Max-Q", NULL},
                {"RTX 3080 Mobile", NULL},
                {"RTX A4000", "rtx-a4000"},
                {"RTX A4000 Ada", NULL},
                {"h100 2x8 a100", NULL},
                {"t4 intra", NULL}};
    char hint[TEXT_HINT];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct topology_gpu_type *t = topology_gpu_type_meant (rows[i].name);

        if (!rows[i].type ? t != NULL : !t || strcmp (t->name, rows[i].type) != 0)
            fail_msg ("\"%s\" is taken as %s", rows[i].name, t ? t->name : "nothing");
    }
    assert_string_equal (topology_gpu_type_hint ("rtx-5090-d", hint),
                         "; that GPU is not built in");
    assert_string_equal (topology_gpu_type_hint ("rtx4090", hint),
                         "; did you mean rtx-4090?");
    assert_string_equal (topology_gpu_type_hint ("abacus", hint), "");
}

TEST (bad_lines)
{
    static const char *const bad[] = {"2x8 ",
                                      "0x8 t4 intra:1",
                                      "2x0 t4 inter:1",
                                      "2x8 nothing intra:1 inter:1",
                                      "2x8 t4 intra:-1 inter:1",
                                      "2x8 t4 intra:1 inter:nan",
                                      "2x8 t4 intra:1 inter:1e999",
                                      "2x8 t4 intra:1 outer:1",
                                      "2x8 t4 intra inter:1",
                                      "2x8 t4 intra:1 inter:1 + ",
                                      "99999999999x8 t4 intra:1 inter:1",
                                      "-1x8 t4 intra:1",
                                      "2x8 t4 intra:1 inter:1 inter:2"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct topology_cluster *c = NULL;
        struct error err = {""};

        if (topology_cluster_read (bad[i], &c, NULL, &err) != ST_INVALID)
            fail_msg ("\"%s\" was accepted", bad[i]);
        assert_true (err.text[0] != '\0' && c == NULL);
    }
}

TEST (host_lists)
{
    static const struct {
        const char *list, *names;
    } good[] = {{"n1", "n1 "},
                {"n[1-3]", "n1 n2 n3 "},
                {"n[001-003,020],m7", "n001 n002 n003 n020 m7 "},
                {"n[08-11]", "n08 n09 n10 n11 "},
                {"r[1-2]n[1-2]-ib", "r1n1-ib r1n2-ib r2n1-ib r2n2-ib "},
                {"a,b,a", "a b a "}};
    static const char *const bad[] = {
        "",        ",",    "a,",           "n[1-3",
        "n[3-1]",  "n[]",  "n[a-b]",       "n[1-]",
        "n[-1]",   "n 1",  "-n",           "n[1-99999999]",
        "n[1,,2]", "n]1[", "n[1-2000000]", "n[1-1000][1-1001]"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct text t = {0};
        struct error err = {""};
        char **names;
        int n;

        ok (topology_hostlist_expand (good[i].list, &names, &n, &err), &err);
        for (int k = 0; k < n; k++)
            text_add (&t, "%s ", names[k]);
        assert_string_equal (text_str (&t), good[i].names);
        assert_null (names[n]);
        topology_hostlist_free (names);
        text_free (&t);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {""};
        char **names;
        int n;

        if (topology_hostlist_expand (bad[i], &names, &n, &err) != ST_USAGE)
            fail_msg ("\"%s\" was accepted", bad[i]);
        assert_true (err.text[0] != '\0');
    }
}

/* Lists out of files: names of the cluster alone, in their order. */
TEST (host_files)
{
    static const struct {
        const char *text, *list, *note;
    } good[] = {
        {"n1\nn0\n", "n1,n0", NULL},
        {" n0\r\n\r\nn2, n3 \t", "n0,n2,n3", NULL},
        {"n[0,2-3]\nn1", "n0,n2,n3,n1", NULL},
        {"n0\nx1\nn0\nx2\n", "n0,n0",
         "f: 2 of 4 names are no nodes of the cluster 4x2 h100, the first \"x1\""},
        {"n1.lab.example", "n1.lab.example", NULL},
        {"x", "",
         "f: 1 of 1 names are no nodes of the cluster 4x2 h100, the first \"x\""},
        {" ,\n,", "", NULL},
        {"", "", NULL},
    };
    static const char *const bad[] = {"n[0", "n0]\n", "-x", "n0;n1", "\x1b[1m"};
    struct topology_cluster *c = cluster_of ("4x2 h100");

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct text list = {0};
        struct notes notes = {.n = 0};
        struct error err = {""};
        char *text = strdup (good[i].text);

        ok (topology_hostlist_known (c, "f", text, &list, &notes, &err), &err);
        assert_string_equal (text_str (&list), good[i].list);
        assert_int_equal (notes.n, good[i].note != NULL);
        if (good[i].note)
            assert_string_equal (notes.line[0], good[i].note);
        notes_free (&notes);
        text_free (&list);
        free (text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct text list = {0};
        struct error err = {""};
        char *text = strdup (bad[i]);

        if (topology_hostlist_known (c, "f", text, &list, NULL, &err) != ST_INVALID)
            fail_msg ("\"%s\" was accepted", bad[i]);
        assert_int_equal (strncmp (err.text, "f: host list: ", 14), 0);
        assert_null (strchr (err.text, 27));
        text_free (&list);
        free (text);
    }
    topology_cluster_destroy (c);
}
