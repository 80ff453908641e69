/* Presets: their published sizes, and the names that people give them. */
#include "tests/lib/fixture.h"

#include "workload/workload.h"

static void count_is (const char *name, double params_b, double within)
{
    const struct workload_model *m = workload_preset_find (name);

    assert_non_null (m);
    if (fabs (workload_model_params (m) / 1e9 / params_b - 1) > within)
        fail_msg ("%s: %.4f", name, workload_model_params (m) / 1e9);
}

/* Counts in 1e9 parameters as authors and papers round them, and of weights that are stored twice
 * once; those that are known to the last are in published.c. */
TEST (counts)
{
    static const struct {
        const char *name;
        double params_b;
    } known[] = {{"gpt-neo-2.7b", 2.651307},
                 {"pythia-410m", .405334},
                 {"pythia-1b", 1.011782},
                 {"pythia-2.8b", 2.775209},
                 {"pythia-12b", 11.846072},
                 {"stablelm-alpha-3b", 3.638},
                 {"stablelm-alpha-7b", 7.869},
                 {"opt-2.7b", 2.651597},
                 {"opt-13b", 12.853},
                 {"opt-30b", 29.975},
                 {"opt-66b", 65.72},
                 {"opt-175b", 174.6},
                 {"bloom-1b1", 1.065314},
                 {"bloom-1b7", 1.722408},
                 {"bloom-3b", 3.002557},
                 {"mpt-30b", 29.957},
                 {"t5-large", .737668},
                 {"t5-3b", 2.851598},
                 {"t5-11b", 11.307321},
                 {"flan-t5-xl", 2.849757},
                 {"flan-t5-xxl", 11.135333},
                 {"llama-33b", 32.529},
                 {"llama-65b", 65.286},
                 {"code-llama-34b", 33.744},
                 {"open-llama-3b", 3.4265},
                 {"yi-9b", 8.829},
                 {"baichuan-13b", 13.2649},
                 {"baichuan2-7b", 7.506},
                 {"baichuan2-13b", 13.897},
                 {"internlm-7b", 7.322},
                 {"internlm-20b", 20.09},
                 {"internlm2-1.8b", 1.889},
                 {"gemma-3-12b", 11.766},
                 {"ministral-8b", 8.01981},
                 {"mistral-large-123b", 122.610},
                 {"qwen1.5-0.5b", .463988},
                 {"qwen1.5-1.8b", 1.836829},
                 {"qwen1.5-4b", 3.95037},
                 {"qwen1.5-7b", 7.721325},
                 {"qwen1.5-14b", 14.167291},
                 {"qwen1.5-32b", 32.512218},
                 {"qwen1.5-72b", 72.287920},
                 {"qwen1.5-110b", 111.209914},
                 {"qwen2-57b-a14b", 57.409},
                 {"qwen2.5-0.5b", .494033},
                 {"deepseek-llm-67b", 67.425},
                 {"deepseek-coder-33b", 33.343},
                 {"moonlight-16b-a3b", 15.960},
                 {"nemotron-4-15b", 15.6},
                 {"nemotron-4-340b", 341},
                 {"gpt3-125m", .125},
                 {"gpt3-2.7b", 2.65},
                 {"gpt3-1t", 1008},
                 {"mt-nlg-530b", 530}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        count_is (known[i].name, known[i].params_b, 2e-3);
    count_is ("gpt3-6.7b", 6.7, .01);
    count_is ("gpt3-13b", 13, .02);
    count_is ("gpt3-175b", 175, .005);
}

/* The usual spellings of models, as tables of runs have them, beside their own names. */
TEST (spelled)
{
    static const struct {
        const char *preset, *spellings; /* with ", " between; NULL: they mean none */
    } t[] = {
        {"llama-2-7b",
         "llama-7b, Llama_2_7b_chat_hf, LLaMA 7B, Llama 2 7 B, Llama-2-7b-chat-hf, "
         "codellama/CodeLlama-7b-hf, lmsys/vicuna-7b-v1.5"},
        {"llama-2-13b", "LLaMA-13B, meta-llama/Llama-2-13b-hf"},
        {"llama-33b", "llama-30b"},
        {"llama-2-70b", "llama2-70b-lora"},
        {"llama-3-8b", "Llama 3 (8B parameters), llama3-8b, meta-llama/Llama-3-8B, "
                       "meta-llama/Meta-Llama-3-8B-Instruct, "
                       "Meta-Llama-3-8B-Instruct, LLAMA3_8B, "
                       "DeepSeek-R1-Distill-Llama-8B, Llama38B"},
        {"llama-3-405b", "llama3.1-405B-v32k, llama31_405b, "
                         "meta-llama/Llama-3.1-405B-FP8"},
        {"llama-3-70b", "meta-llama/Llama-3.1-70B, Llama-3.3-70B-Instruct"},
        {"llama-3.2-1b", "Llama 3.2 1B"},
        {"llama-3.2-3b", "meta-llama/Llama-3.2-3B"},
        {"llama-4-scout", "Llama4_Scout-17B, meta-llama/Llama-4-Scout-17B-16E-Instruct"},
        {"llama-4-maverick", "llama-4-maverick-17b-128e"},
        {"code-llama-34b", "CodeLlama-34b"},
        {"tinyllama-1.1b", "TinyLlama/TinyLlama-1.1B-Chat-v1.0, tinyllama"},
        {"qwen1.5-7b", "Qwen-7B"},
        {"qwen1.5-14b", "Qwen1.5-14B-Chat"},
        {"qwen2.5-7b", "Qwen2-7B, Qwen/Qwen2.5-7B-Instruct, "
                       "DeepSeek-R1-Distill-Qwen-7B"},
        {"qwen2.5-0.5b", "Qwen2-0.5B, Qwen2.5-0.5B"},
        {"qwen2.5-1.5b", "Qwen2.5-1.5B"},
        {"qwen2.5-3b", "Qwen2.5-3B"},
        {"qwen2.5-32b", "qwen2.5-coder-32b"},
        {"qwen3-235b-a22b", "Qwen3-235B, Qwen3-235B-A22B"},
        {"qwen3-30b-a3b",
         "Qwen3 (30B-A3B), Qwen3-30B (3B active), Qwen/Qwen3 30B_A3B (tokendrop), "
         "Qwen/Qwen3-Coder-30B-A3B-Instruct"},
        {"qwen3-0.6b", "Qwen3-0.6B"},
        {"qwen3-4b", "qwen3-4b-instruct-2507"},
        {"qwen3-8b", "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B"},
        {"mistral-7b", "Mistral-7B-Instruct-v0.2, mistralai/Mistral-7B-v0.1, "
                       "mistral7b, mistral"},
        {"mixtral-8x7b", "Mixtral-8x7B-v0.1, mistralai/Mixtral-8x7B-Instruct-v0.1"},
        {"mixtral-8x22b", "mixtral 8x22b"},
        {"mistral-nemo", "Mistral-Nemo-Instruct-2407, mistralai/Mistral-Nemo-Base-2407"},
        {"mistral-large-123b", "Mistral-Large-Instruct-2407"},
        {"gemma-7b", "google/gemma-7b-it"},
        {"gemma-2-27b", "gemma2-27b"},
        {"gemma-3-27b", "gemma-3-27b-it"},
        {"gemma-3-4b", "gemma3-4b"},
        {"phi-1.5", "microsoft/phi-1_5, phi-1.5 1.3 B"},
        {"phi-3-mini", "Phi-3-mini-4k-instruct"},
        {"phi-3-medium", "phi3-14b"},
        {"phi-4", "microsoft/phi-4-reasoning, microsoft/Phi-4-reasoning-plus"},
        {"phi-4-mini", "Phi-4-mini, Phi-4-mini-reasoning"},
        {"opt-175b", "OPT-175B"},
        {"opt-6.7b", "facebook/opt-6.7b"},
        {"pythia-6.9b", "EleutherAI/pythia-6.9b-deduped"},
        {"gpt2", "GPT-2 (10B tokens), GPT-2"},
        {"gpt2-xl", "GPT2-1.5B"},
        {"gpt-j-6b", "EleutherAI/gpt-j-6B"},
        {"gpt-neox-20b", "GPT-NeoX-20B"},
        {"gpt-neo-2.7b", "gpt-neo-2.7B"},
        {"falcon-40b", "falcon-40b-instruct"},
        {"falcon-180b", "tiiuae/falcon-180B"},
        {"bloom-7b1", "bloomz-7b1"},
        {"bloom-176b", "bloom, BLOOM-176B"},
        {"nemotron-4-15b", "Nemotron-4 15B"},
        {"nemotron-4-340b", "nemotron4-340b, Nemotron-4-340B-Base"},
        {"mt-nlg-530b", "MT-NLG 530B, Megatron-Turing NLG 530B, GPT 530B"},
        {"gpt3-175b", "GPT-3 175B (96 layers), GPT-3 175B"},
        {"gpt3-1.3b", "GPT-3 1.3B"},
        {"gpt3-6.7b", "GPT-3 (6.7B), GPT-3 (6.7 B)"},
        {"gpt2-large", "GPT-2 (774M)"},
        {"gpt2-medium", "GPT2-345M"},
        {"mistral-large-123b", "Mistral-Large-2, Mistral Large 2"},
        {"gpt3-13b", "gpt-13b"},
        {"gpt3-20b", "gpt3_20b"},
        {"flan-t5-xxl", "google/flan-t5-xxl"},
        {"yi-6b", "Yi-6B"},
        {"yi-34b", "Yi-34B-200K"},
        {"yi-9b", "Yi-1.5-9B"},
        {"deepseek-llm-7b", "deepseek-llm-7b-base, deepseek-7b"},
        {"deepseek-llm-67b", "DeepSeek-67B"},
        {"deepseek-v2-lite", "DeepSeek-V2-Lite"},
        {"deepseek-v3", "DeepSeekV3 (w/o MTP), deepseek-ai/DeepSeek-V3-0324, "
                        "DeepSeek-V3 671B, deepseek-r1, deepseek-ai/DeepSeek-V3.1"},
        {"gpt-oss-120b", "GPT OSS 120B"},
        {"kimi-k2", "Kimi_K2, Kimi-K2-Instruct"},
        {"glm-4.5", "GLM-4.5, zai-org/GLM-4.6, zai-org/GLM-4.7"},
        {"glm-4.5-air", "GLM-4.5-Air"},
        {"glm-4-9b", "glm-4-9b-chat"},
        {"chatglm3-6b", "ChatGLM2-6B"},
        {"olmo-7b", "OLMo-7B"},
        {"olmo-2-7b", "OLMo-2-1124-7B"},
        {"olmo-1b", "OLMo-1B"},
        {"smollm2-135m", "SmolLM-135M"},
        {"smollm2-1.7b", "SmolLM2-1.7B"},
        {"smollm3-3b", "SmolLM3-3B"},
        {"starcoder2-15b", "StarCoder2-15B"},
        {"starcoder-15.5b", "starcoder"},
        {"santacoder-1.1b", "santacoder-1.1B"},
        {"baichuan-7b", "Baichuan-7B"},
        {"baichuan2-13b", "Baichuan2-13B-Chat"},
        {"internlm-7b", "internlm-7B"},
        {"internlm2-20b", "InternLM2-20B"},
        {"internlm2-7b", "internlm2_5-7b-chat"},
        {"dbrx", "DBRX-132B"},
        {"mpt-30b", "MPT-30B"},
        {"moonlight-16b-a3b", "Moonlight-16B-A3B"},
        {"olmoe-1b-7b", "OLMoE-1B-7B"},
        {"nemotron-3-nano-30b-a3b", "Nemotron 3 Nano"},
        {"command-r-plus-104b", "command-r-plus, CohereLabs/c4ai-command-r-plus"},
        {"granite-3.3-8b", "granite-3.3-8b-instruct"},
        {"granite-4.0-h-small", "ibm-granite/granite-4.0-h-small-base"},
        {"olmo-2-32b", "allenai/OLMo-2-0325-32B"},
        {"olmo-3-7b", "allenai/Olmo-3-1025-7B"},
        {"mistral-small-24b", "mistralai/Mistral-Small-24B-Base-2501, "
                              "mistralai/Mistral-Small-3.2-24B-Instruct-2506, "
                              "mistralai/Magistral-Small-2509, Devstral-Small-2507"},
        {NULL, "DeepSeek-V3.2, GLM-4.7-Flash, Devstral-Small-2-24B, Llama-3 (8B tokens), "
               "Llama 3 (70B teacher), Llama 3 (1M context), "
               "Llama-4-8B, llama, Qwen3-30, Qwen2.5-VL-7B, llama-7b-moe, "
               "gpt-h1024-l16, my-own-7b, PowerLM-3B, Nemotron_3_Super, "
               "1234567890123456789012345678901234567890123456789012345678901234567890"},
        {"stablelm-alpha-3b", "StableLM Alpha 3 B"},
    };

    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (const char *s = t[i].spellings; *s; s += strspn (s, ", ")) {
            const struct workload_model *m;
            char name[96];

            snprintf (name, sizeof name, "%.*s", (int) strcspn (s, ","), s);
            m = workload_preset_meant (name);
            if (strcmp (m ? m->name : "", t[i].preset ? t[i].preset : "") != 0)
                fail_msg ("%s: is read as %s", name, m ? m->name : "nothing");
            s += strlen (name);
        }
}

/* Every preset is found by its own name, however it is written, and none by no name. */
TEST (own_names)
{
    int n;
    const struct workload_model *all = workload_presets (&n);

    for (int i = 0; i < n; i++) {
        char name[192];

        snprintf (name, sizeof name, "some-lab/%s-Instruct-v0.3", all[i].name);
        for (char *c = name; *c; c++)
            *c = *c == '-' ? '_' : *c;
        assert_ptr_equal (workload_preset_meant (all[i].name), &all[i]);
        if (workload_preset_meant (name) != &all[i])
            fail_msg ("%s", name);
    }
    assert_true (!workload_preset_meant ("") && !workload_preset_meant ("/"));
}

/* Sizes that names say where no preset is meant; of experts they do not tell the shape. */
TEST (sizes)
{
    static const char *const experts[] = {
        "mine-8x7b",    "new-21B-A3B",     "GPT-MoE", "MoE 7B",   "my-16-expert",
        "gpt-8experts", "Switch-Base-128", "OLMoE",   "qwen2moe", "gpt_moe16"};
    static const char *const dense[] = {"moe/gpt-1.3b", "gpt 1.3B (no MoE)", "llama-2-7b",
                                        "moebius-7b",   "switchboard-1b",    "gpt-16"};
    CLOSE (workload_name_params ("my-own-7b"), 7e9, 1e-12);
    CLOSE (workload_name_params ("PowerLM 3 B"), 3e9, 1e-12);
    CLOSE (workload_name_params ("350M dense"), 350e6, 1e-12);
    assert_true (workload_name_params ("my-own") == 0);
    assert_true (workload_name_params ("mine-8x7b") == 0);
    assert_true (workload_name_params ("mine-moe-7b") == 0);
    assert_true (workload_name_params ("gpt-h1024-l16") == 0);
    for (size_t i = 0; i < sizeof experts / sizeof *experts; i++)
        if (!workload_name_has_experts (experts[i]))
            fail_msg ("%s is dense", experts[i]);
    for (size_t i = 0; i < sizeof dense / sizeof *dense; i++)
        if (workload_name_has_experts (dense[i]))
            fail_msg ("%s has experts", dense[i]);
}
