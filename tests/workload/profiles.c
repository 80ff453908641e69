/* Profiles: which of their releases' facts hold for a release, by name, from files, and what is
 * refused; and how far step times may be off: experts, mixes of GPUs, and GPU types that a profile
 * was not fitted on add to its residual, as squares. */
#include "tests/lib/fields.h"
#include "tests/lib/folder.h"

/* The facts of a release of the file. */
static enum status read_release (const char *release, struct workload_profile *p,
                                 struct error *err)
{
    char name[FOLDER_PATH + 32];

    snprintf (name, sizeof name, "%s@%s", in_folder ("own"), release);
    return workload_profile_read (name, p, NULL, err);
}

/* The shipped default under another name, with these releases, in a file. */
static void write_profile (const char *releases)
{
    struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
    json_t *doc = workload_profile_to_json (&p, "a test");

    json_object_set_new (doc, "name", json_string ("own"));
    json_object_set_new (doc, "releases", json_loads (releases, 0, NULL));
    assert_int_equal (json_dump_file (doc, in_folder ("own"), 0), 0);
    json_decref (doc);
}

TEST (release_words)
{
    static const char *const yes[] = {"26",      "26.04",      "26.04.01",
                                      "v0.15.2", "2026-04-30", "20260430"};
    static const char *const no[] = {"",         "x",        "v",        "26.",
                                     "26.x",     "26..04",   "1234567",  "1.2.3.4.5",
                                     "20261301", "20260400", "19991231", "202604011",
                                     "v20260401"};

    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true (workload_is_release (yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false (workload_is_release (no[i]));
}

/* The first entry that the release is not after; patches are of what they mend, and a date is its
 * month's release. */
TEST (order)
{
    struct workload_profile p = {.until = {"25.04", "26.04"}, .n_until = 2};
    static const struct {
        const char *release;
        int of;
    } known[] = {{"25.04", 0},    {"24.12", 0},      {"25.04.02", 0},   {"25.05", 1},
                 {"26.04.01", 1}, {"26.04", 1},      {"26.05", 2},      {"27", 2},
                 {"", 2},         {"2026-04-30", 1}, {"2026-05-01", 2}, {"next", 2},
                 {"0.4.1", 2},    {"20260430", 1},   {"20260501", 2},   {"20250430", 0}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal (workload_release_of (&p, known[i].release), known[i].of);
}

/* What stands behind the @ of a framework is the last release that it ran on. */
TEST (frameworks)
{
    static const char *const words[] = {"own", "own@25.10", "own@", "own@new",
                                        "own@25.10@25.11"};

    for (int i = 0; i < 5; i++) {
        struct workload_profile p = profile_of (WORKLOAD_PROFILE_DEFAULT);
        struct error err = {""};
        json_t *doc;

        p.n_frameworks = 1;
        snprintf (p.framework[0], sizeof *p.framework, "%s", words[i]);
        doc = workload_profile_to_json (&p, "a test");
        assert_int_equal (json_dump_file (doc, in_folder ("own"), 0), 0);
        json_decref (doc);
        if (i < 2)
            ok (workload_profile_read (in_folder ("own"), &p, NULL, &err), &err);
        else
            expect (
                workload_profile_read (in_folder ("own"), &p, NULL, &err), &err,
                "frameworks[0]: expected a word, or one and a release (\"fms@25.10\")");
    }
}

/* An entry has what differs; the rest is the profile's own. */
TEST (by_name)
{
    struct workload_profile now, old, older;
    const char *own = in_folder ("own");
    struct error err = {""};

    write_profile ("[{\"until\": \"1.0\", \"time\": {\"gemm\": 0.5}},"
                   " {\"until\": \"2.0\", \"cuda_graphs\": \"all\", \"zero\": 0,"
                   " \"offload\": [\"checkpoints\"]}]");
    ok (workload_profile_read (own, &now, NULL, &err), &err);
    ok (read_release ("1.5", &old, &err), &err);
    ok (read_release ("0.9", &older, &err), &err);
    assert_true (now.n_until == 2 && now.release[0] == '\0' && now.graphs == GRAPHS_NONE);
    assert_string_equal (now.name, "own");
    assert_string_equal (old.name, "own@2.0");
    assert_string_equal (old.release, "2.0");
    assert_int_equal (strncmp (old.from, own, strlen (own)), 0);
    assert_string_equal (old.from + strlen (own), "@1.5");
    assert_true (old.graphs == GRAPHS_ALL && old.time.gemm == now.time.gemm);
    assert_true (older.graphs == GRAPHS_NONE && older.time.gemm == 0.5);
    assert_int_equal (now.offloads, 1u << OFFLOAD_OPTIMIZER);
    assert_int_equal (old.offloads, 1u << OFFLOAD_CHECKPOINTS); /* a list is whole */
    assert_true (older.time.link == now.time.link && older.zero == now.zero);
}

TEST (refused)
{
    static const struct {
        const char *releases, *says;
    } bad[] = {
        {"{}", "releases: expected an array"},
        {"[1]", "releases[0]: expected an object"},
        {"[{}]", "releases[0].until: "},
        {"[{\"until\": \"new\"}]", "releases[0].until: expected a release"},
        {"[{\"until\": \"2\"}, {\"until\": \"1\"}]", "releases[1].until: "},
        {"[{\"until\": \"2\"}, {\"until\": \"2.1\"}]", "releases[1].until: "},
        {"[{\"until\": \"2\"}, {\"until\": \"26.04\"}]", "releases[1].until: "},
        {"[{\"until\": \"2\", \"time\": {\"gemm\": 9}}]", "releases[0]: time.gemm: "},
        {"[{\"until\": \"2\", \"releases\": [{\"until\": \"1\"}]}]",
         "releases[0].releases: expected a key that differs between releases, found"},
        {"[{\"until\": \"2\", \"name\": \"other\"}]", "releases[0].name: expected"},
        {"[{\"until\": \"2\", \"cuda_graphs\": \"some\"}]", "none, dense, blocks or all"},
        {"[{\"until\":\"1\"},{\"until\":\"2\"},{\"until\":\"3\"},{\"until\":\"4\"},"
         "{\"until\":\"5\"}]",
         "at most 4"}};
    struct workload_profile p;
    struct error err = {""};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_profile (bad[i].releases);
        expect (workload_profile_read (in_folder ("own"), &p, NULL, &err), &err,
                bad[i].says);
    }
    expect (workload_profile_read ("megatron-bridge@new", &p, NULL, &err), &err,
            "expected a release after @");
    expect (workload_profile_read ("deepspeed@1.0", &p, NULL, &err), &err,
            "one release alone");
    expect (workload_profile_read ("megatron-bridge@0.4.1", &p, NULL, &err), &err,
            "expected a release as 26.04, found 0.4.1");
    assert_int_equal (workload_profile_read ("no-such@1.0", &p, NULL, &err), ST_IO);
}

/* What all times of a model take over the constants' is read, written and put into these, of that
 * precision, and of that model in any spelling. */
TEST (paces)
{
    static const struct {
        const char *models, *says;
    } bad[] = {
        {"{}", "models: expected an array"},
        {"[1]", "models[0]: expected an object"},
        {"[{\"precision\": \"bf16\", \"time_factor\": 1}]", "models[0].model"},
        {"[{\"model\": \"x\", \"precision\": \"b\", \"time_factor\": 1}]",
         "models[0].precision: expected"},
        {"[{\"model\": \"x\", \"precision\": \"bf16\", \"time_factor\": 0}]",
         "models[0].time_factor: expected"},
        {"[{\"model\": \"x\", \"precision\": \"bf16\"}]", "models[0].time_factor"},
        {"[{\"model\": \"llama-3-8b\", \"precision\": \"bf16\", \"time_factor\": 1},"
         " {\"model\": \"Llama3_8B\", \"precision\": \"bf16\", \"time_factor\": 1}]",
         "models[1].model: expected each model once in a precision"}};
    struct workload_profile p = profile_of ("fsdp"), back, was = p;
    struct workload_model named = model_of ("llama-3-8b"),
                          other = model_of ("llama-2-7b");
    struct error err = {""};
    json_t *doc;

    p.pace[p.n_paces++] = (struct workload_pace){"Meta-Llama-3-8B", PREC_BF16, 1.25};
    doc = workload_profile_to_json (&p, "a test");
    assert_int_equal (json_dump_file (doc, in_folder ("own"), 0), 0);
    ok (workload_profile_read (in_folder ("own"), &back, NULL, &err), &err);
    assert_int_equal (back.n_paces, 1);
    assert_true (back.pace[0].precision == PREC_BF16 && back.pace[0].factor == 1.25);
    assert_string_equal (back.pace[0].model, "llama-3-8b");
    p = back;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct workload_profile q;

        json_object_set_new (doc, "models", json_loads (bad[i].models, 0, NULL));
        assert_int_equal (json_dump_file (doc, in_folder ("own"), 0), 0);
        expect (workload_profile_read (in_folder ("own"), &q, NULL, &err), &err,
                bad[i].says);
    }
    json_decref (doc);

    back = p;
    workload_profile_pace (&back, &other, PREC_BF16);
    assert_true (back.n_paces == 0 && back.time.gemm == was.time.gemm);
    back = p;
    workload_profile_pace (&back, &named, PREC_FP8);
    assert_true (back.n_paces == 0 && back.time.gemm == was.time.gemm);
    workload_profile_pace (&p, &named, PREC_BF16);
    assert_int_equal (p.n_paces, 0);
    CLOSE (p.time.gemm, was.time.gemm / 1.25, 1e-9);
    CLOSE (p.time.layer_launch_fwd_s, was.time.layer_launch_fwd_s * 1.25, 1e-9);
    CLOSE (p.time.collective_s, was.time.collective_s * 1.25, 1e-9);
    assert_true (p.time.dp_overlap == was.time.dp_overlap);
    assert_memory_equal (&p.memory, &was.memory, sizeof p.memory);
}

/* Whole steps are captured of dense models without a pipeline, of gated experts where products take
 * blocks with scales; where such experts' products are fused with their activation. */
TEST (captured)
{
    struct workload_model dense = model_of ("llama-3-8b"),
                          experts = model_of ("qwen3-30b-a3b"),
                          plain = model_of ("nemotron-3-nano-30b-a3b");
    struct workload_config one = config_of (1, 1, 8, 1), pipe = config_of (1, 4, 2, 1);
    struct workload_profile now = profile_of ("megatron-bridge"),
                            old = profile_of ("megatron-bridge@26.04");

    for (int blocks = 0; blocks < 2; blocks++) {
        assert_true (workload_is_captured (&now, &dense, &one, blocks));
        assert_true (workload_is_captured (&old, &dense, &one, blocks));
        assert_false (workload_is_captured (&now, &dense, &pipe, blocks));
        assert_int_equal (workload_is_captured (&now, &experts, &pipe, blocks), blocks);
        assert_false (workload_is_captured (&old, &experts, &one, blocks));
        assert_false (workload_is_captured (&now, &plain, &one, blocks));
        assert_int_equal (workload_fuses_experts (&now, &experts, blocks), blocks);
        assert_false (workload_fuses_experts (&old, &experts, blocks));
        assert_false (workload_fuses_experts (&now, &plain, blocks));
        assert_false (workload_fuses_experts (&now, &dense, blocks));
    }
    now.graphs = GRAPHS_ALL;
    assert_true (workload_is_captured (&now, &experts, &pipe, false));
    now.graphs = GRAPHS_NONE;
    assert_false (workload_is_captured (&now, &dense, &one, true));
}

/* ---- how far step times may be off ---- */

static const struct workload_model dense = {.layers = 2},
                                   moe = {.layers = 2, .experts = 8};

TEST (grows)
{
    struct workload_profile p = profile_of ("nemo");
    double own = p.time.residual, experts = workload_step_spread (&p, &moe, false, false),
           mixed = workload_step_spread (&p, &dense, false, true);

    assert_true (workload_step_spread (&p, &dense, false, false) == own);
    assert_true (experts > own && mixed > experts);
    assert_true (fabs (workload_step_spread (&p, &moe, false, true) -
                       sqrt (experts * experts + mixed * mixed - own * own)) < 1e-12);
}

/* A fitted profile elsewhere is as unsure as a composed one. */
TEST (off_its_fit)
{
    static const struct {
        const char *profile, *gpu;
        const struct workload_model *m;
        bool fitted;
    } known[] = {{"megatron-core", "a100-sxm4-80g", &dense, true},
                 {"megatron-core", "a100-sxm4-80g", &moe, false},
                 {"megatron-core", "h100-sxm5-80g", &dense, false},
                 {"megatron-v100", "v100-sxm2-16g", &dense, true},
                 {"nemo", "h100-sxm5-80g", &dense, false}};
    struct workload_profile p = profile_of ("megatron-core");
    double composed = profile_of ("megatron-core-composed").time.residual,
           off = workload_step_spread (&p, &dense, false, false);

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct workload_profile own = profile_of (known[i].profile);

        assert_int_equal (workload_is_fitted (&own, known[i].m, known[i].gpu),
                          known[i].fitted);
    }
    assert_true (workload_step_spread (&p, &dense, true, false) == p.time.residual);
    assert_true (fabs (off - composed) < 1e-12);
    assert_true (workload_step_spread (&p, &moe, false, false) > off);
    p.fitted_experts = true;
    assert_true (workload_is_fitted (&p, &moe, "a100-sxm4-80g"));
    p.n_fitted_on = 0; /* an older file does not say */
    assert_true (workload_is_fitted (&p, &moe, "h100-sxm5-80g"));
}

/* Where none is named: the default where it was fitted, elsewhere its composed form, which has its
 * facts. */
TEST (serves)
{
    static const struct {
        const char *gpu, *profile;
    } known[] = {{"a100-sxm4-80g", "megatron-core"},
                 {"a100-pcie-80g", "megatron-core"},
                 {"a800-sxm4-80g", "megatron-core"},
                 {"h100-sxm5-80g", "megatron-core-composed"},
                 {"v100-sxm2-32g", "megatron-core-composed"},
                 {"mine", "megatron-core-composed"}};
    const struct workload_gpus a100 = {.name = {"a100-sxm4-80g"}, .n = 1},
                               mixed = {.name = {"a100-sxm4-80g", "h100-sxm5-80g"},
                                        .n = 2};
    struct workload_profile p, fitted = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct error err = {""};

    /* One GPU type that it was not fitted on, slower or faster, and it serves no more. */
    ok (workload_profile_default (&dense, &mixed, &p, &err), &err);
    assert_string_equal (p.name, "megatron-core-composed");
    assert_non_null (strstr (p.why, "h100-sxm5-80g"));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct workload_gpus on = {.name = {known[i].gpu}, .n = 1};

        ok (workload_profile_default (&dense, &on, &p, &err), &err);
        assert_string_equal (p.name, known[i].profile);
        assert_true (p.why[0] != '\0');
        assert_true (p.schedules == fitted.schedules && p.zero == fitted.zero &&
                     p.recompute_modules == fitted.recompute_modules &&
                     p.optimizer_choices == fitted.optimizer_choices);
        ok (workload_profile_for (fitted.name, &dense, &on, &p, NULL, &err), &err);
        assert_string_equal (p.name, known[i].profile);
    }
    ok (workload_profile_for ("nemo", &dense, &a100, &p, NULL, &err), &err);
    assert_string_equal (p.name, "nemo"); /* has none for other types */
    ok (workload_profile_for ("workload/profiles/megatron-core.json", &dense, &mixed, &p,
                              NULL, &err),
        &err);
    assert_string_equal (p.name, fitted.name); /* a file is itself everywhere */
    /* None of its runs had experts. */
    ok (workload_profile_for (fitted.name, &moe, &a100, &p, NULL, &err), &err);
    assert_string_equal (p.name, "megatron-core-composed");
    assert_non_null (strstr (p.why, "models with experts"));
}
