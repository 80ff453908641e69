/* Presets: their published sizes, and the names that people give them. */
#include "tests/lib/fixture.h"

#include "workload/workload.h"

/* Counts in 1e9 parameters as their authors, papers and the Hugging Face hub give them; of weights
 * that are stored twice once. */
static void counts (void **state)
{
    static const struct {
        const char *name;
        double params_b;
    } known[] = {{"gpt2", .124440},
                 {"gpt2-medium", .354823},
                 {"gpt2-large", .774030},
                 {"gpt2-xl", 1.557611},
                 {"gpt-neo-125m", .125199},
                 {"gpt-neo-1.3b", 1.315576},
                 {"gpt-neo-2.7b", 2.651307},
                 {"gpt-j-6b", 6.050883},
                 {"gpt-neox-20b", 20.554568},
                 {"pythia-70m", .070427},
                 {"pythia-160m", .162323},
                 {"pythia-410m", .405334},
                 {"pythia-1b", 1.011782},
                 {"pythia-1.4b", 1.414648},
                 {"pythia-2.8b", 2.775209},
                 {"pythia-6.9b", 6.857302},
                 {"pythia-12b", 11.846072},
                 {"stablelm-alpha-3b", 3.638},
                 {"stablelm-alpha-7b", 7.869},
                 {"opt-125m", .125239},
                 {"opt-1.3b", 1.315758},
                 {"opt-2.7b", 2.651597},
                 {"opt-6.7b", 6.658474},
                 {"opt-13b", 12.853},
                 {"opt-30b", 29.975},
                 {"opt-66b", 65.72},
                 {"opt-175b", 174.6},
                 {"bloom-560m", .559215},
                 {"bloom-1b1", 1.065314},
                 {"bloom-1b7", 1.722408},
                 {"bloom-3b", 3.002557},
                 {"bloom-7b1", 7.069016},
                 {"bloom-176b", 176.247271},
                 {"falcon-7b", 6.922},
                 {"mpt-7b", 6.649},
                 {"mpt-30b", 29.957},
                 {"t5-small", .060507},
                 {"t5-base", .222904},
                 {"t5-large", .737668},
                 {"t5-3b", 2.851598},
                 {"t5-11b", 11.307321},
                 {"flan-t5-xl", 2.849757},
                 {"flan-t5-xxl", 11.135333},
                 {"llama-2-7b", 6.738},
                 {"llama-2-13b", 13.016},
                 {"llama-33b", 32.529},
                 {"llama-65b", 65.286},
                 {"code-llama-34b", 33.744},
                 {"open-llama-3b", 3.4265},
                 {"tinyllama-1.1b", 1.100048},
                 {"smollm2-135m", .134515},
                 {"smollm2-360m", .361821},
                 {"smollm2-1.7b", 1.711376},
                 {"yi-6b", 6.061036},
                 {"yi-9b", 8.829},
                 {"yi-34b", 34.388917},
                 {"baichuan-7b", 7.00056},
                 {"baichuan-13b", 13.2649},
                 {"baichuan2-7b", 7.506},
                 {"baichuan2-13b", 13.897},
                 {"internlm-7b", 7.322},
                 {"internlm-20b", 20.09},
                 {"internlm2-1.8b", 1.889},
                 {"internlm2-7b", 7.737709},
                 {"internlm2-20b", 19.86115},
                 {"internlm3-8b", 8.804241},
                 {"chatglm3-6b", 6.243584},
                 {"glm-4-9b", 9.399951},
                 {"phi-1.5", 1.418271},
                 {"phi-2", 2.779684},
                 {"phi-3-mini", 3.82108},
                 {"phi-3-medium", 13.960238},
                 {"phi-3.5-moe", 41.873153},
                 {"phi-4-mini", 3.836022},
                 {"gemma-2b", 2.506172},
                 {"gemma-7b", 8.537681},
                 {"gemma-2-2b", 2.614342},
                 {"gemma-2-9b", 9.241706},
                 {"gemma-2-27b", 27.227128},
                 {"gemma-3-1b", .999886},
                 {"gemma-3-4b", 3.880263},
                 {"gemma-3-12b", 11.766},
                 {"gemma-3-27b", 27.009346},
                 {"ministral-8b", 8.01981},
                 {"codestral-22b", 22.247283},
                 {"mistral-large-123b", 122.610},
                 {"dbrx", 131.596524},
                 {"qwen1.5-0.5b", .463988},
                 {"qwen1.5-1.8b", 1.836829},
                 {"qwen1.5-4b", 3.95037},
                 {"qwen1.5-7b", 7.721325},
                 {"qwen1.5-14b", 14.167291},
                 {"qwen1.5-32b", 32.512218},
                 {"qwen1.5-72b", 72.287920},
                 {"qwen1.5-110b", 111.209914},
                 {"qwen1.5-moe-a2.7b", 14.315784},
                 {"qwen2-57b-a14b", 57.409},
                 {"qwen2.5-0.5b", .494033},
                 {"qwen2.5-1.5b", 1.543714},
                 {"qwen2.5-3b", 3.085939},
                 {"qwen3-0.6b", .59605},
                 {"qwen3-1.7b", 1.720575},
                 {"qwen3-4b", 4.022468},
                 {"qwen3-coder-480b-a35b", 480.154875},
                 {"deepseek-llm-7b", 6.910366},
                 {"deepseek-llm-67b", 67.425},
                 {"deepseek-coder-1.3b", 1.346472},
                 {"deepseek-coder-6.7b", 6.740513},
                 {"deepseek-coder-33b", 33.343},
                 {"deepseek-moe-16b", 16.375728},
                 {"deepseek-v2-lite", 15.706484},
                 {"moonlight-16b-a3b", 15.960},
                 {"olmo-1b", 1.176764},
                 {"olmo-7b", 6.888096},
                 {"olmoe-1b-7b", 6.919162},
                 {"olmo-2-1b", 1.484917},
                 {"nemotron-4-15b", 15.6},
                 {"nemotron-4-340b", 341},
                 {"starcoder2-3b", 3.030371},
                 {"starcoder2-7b", 7.173924},
                 {"starcoder2-15b", 15.957889},
                 {"starcoder-15.5b", 15.517456},
                 {"santacoder-1.1b", 1.124887},
                 {"stablelm-2-1.6b", 1.644515},
                 {"command-r-35b", 34.980831},
                 {"command-r-plus-104b", 103.810675},
                 {"llama-4-maverick", 400.711849},
                 {"granite-3.3-2b", 2.53354},
                 {"granite-4.0-1b", 1.631750},
                 {"granite-4.0-h-tiny", 6.939037},
                 {"granite-4.0-h-small", 32.207338},
                 {"gpt3-125m", .125},
                 {"gpt3-2.7b", 2.65},
                 {"gpt3-1t", 1008},
                 {"mt-nlg-530b", 530}};
    (void) state;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct workload_model *m = workload_preset_find (known[i].name);

        assert_non_null (m);
        if (fabs (workload_model_params (m) / 1e9 / known[i].params_b - 1) > 2e-3)
            fail_msg ("%s: %.4f", known[i].name, workload_model_params (m) / 1e9);
    }
}

/* The usual spellings of models, as tables of runs have them. */
static void spelled (void **state)
{
    static const struct {
        const char *name, *preset;
    } t[] = {{"llama-7b", "llama-2-7b"},
             {"LLaMA 7B", "llama-2-7b"},
             {"LLaMA-13B", "llama-2-13b"},
             {"llama-30b", "llama-33b"},
             {"llama-65b", "llama-65b"},
             {"llama-2-7b", "llama-2-7b"},
             {"Llama 2 7 B", "llama-2-7b"},
             {"llama2-70b-lora", "llama-2-70b"},
             {"Llama-2-7b-chat-hf", "llama-2-7b"},
             {"meta-llama/Llama-2-13b-hf", "llama-2-13b"},
             {"llama3-8b", "llama-3-8b"},
             {"Meta-Llama-3-8B-Instruct", "llama-3-8b"},
             {"llama3.1-405B-v32k", "llama-3-405b"},
             {"llama31_405b", "llama-3-405b"},
             {"LLAMA3_8B", "llama-3-8b"},
             {"Llama-3.3-70B-Instruct", "llama-3-70b"},
             {"Llama 3.2 1B", "llama-3.2-1b"},
             {"meta-llama/Llama-3.2-3B", "llama-3.2-3b"},
             {"Llama4_Scout-17B", "llama-4-scout"},
             {"llama-4-maverick-17b-128e", "llama-4-maverick"},
             {"CodeLlama-34b", "code-llama-34b"},
             {"codellama/CodeLlama-7b-hf", "llama-2-7b"},
             {"lmsys/vicuna-7b-v1.5", "llama-2-7b"},
             {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"},
             {"tinyllama", "tinyllama-1.1b"},
             {"Qwen-7B", "qwen1.5-7b"},
             {"Qwen1.5-14B-Chat", "qwen1.5-14b"},
             {"Qwen2-7B", "qwen2.5-7b"},
             {"Qwen2-0.5B", "qwen2.5-0.5b"},
             {"Qwen2.5-0.5B", "qwen2.5-0.5b"},
             {"Qwen2.5-1.5B", "qwen2.5-1.5b"},
             {"Qwen2.5-3B", "qwen2.5-3b"},
             {"Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"},
             {"qwen2.5-coder-32b", "qwen2.5-32b"},
             {"Qwen3-235B", "qwen3-235b-a22b"},
             {"Qwen3-235B-A22B", "qwen3-235b-a22b"},
             {"Qwen/Qwen3 30B_A3B (tokendrop)", "qwen3-30b-a3b"},
             {"Qwen3-0.6B", "qwen3-0.6b"},
             {"qwen3-4b-instruct-2507", "qwen3-4b"},
             {"Mistral-7B-Instruct-v0.2", "mistral-7b"},
             {"mistralai/Mistral-7B-v0.1", "mistral-7b"},
             {"mistral7b", "mistral-7b"},
             {"Mixtral-8x7B-v0.1", "mixtral-8x7b"},
             {"mixtral 8x22b", "mixtral-8x22b"},
             {"Mistral-Nemo-Instruct-2407", "mistral-nemo"},
             {"Mistral-Large-Instruct-2407", "mistral-large-123b"},
             {"gemma-2b", "gemma-2b"},
             {"google/gemma-7b-it", "gemma-7b"},
             {"gemma-2-9b", "gemma-2-9b"},
             {"gemma2-27b", "gemma-2-27b"},
             {"gemma-3-27b-it", "gemma-3-27b"},
             {"gemma3-4b", "gemma-3-4b"},
             {"phi-2", "phi-2"},
             {"microsoft/phi-1_5", "phi-1.5"},
             {"phi-1.5 1.3 B", "phi-1.5"},
             {"Phi-3-mini-4k-instruct", "phi-3-mini"},
             {"phi3-14b", "phi-3-medium"},
             {"phi-4", "phi-4"},
             {"Phi-4-mini", "phi-4-mini"},
             {"OPT-175B", "opt-175b"},
             {"opt-13b", "opt-13b"},
             {"facebook/opt-6.7b", "opt-6.7b"},
             {"pythia-12b", "pythia-12b"},
             {"EleutherAI/pythia-6.9b-deduped", "pythia-6.9b"},
             {"gpt2", "gpt2"},
             {"GPT-2", "gpt2"},
             {"gpt2-medium", "gpt2-medium"},
             {"gpt2-xl", "gpt2-xl"},
             {"GPT2-1.5B", "gpt2-xl"},
             {"gpt-j-6b", "gpt-j-6b"},
             {"EleutherAI/gpt-j-6B", "gpt-j-6b"},
             {"gpt-neox-20b", "gpt-neox-20b"},
             {"GPT-NeoX-20B", "gpt-neox-20b"},
             {"gpt-neo-2.7B", "gpt-neo-2.7b"},
             {"falcon-7b", "falcon-7b"},
             {"falcon-40b-instruct", "falcon-40b"},
             {"tiiuae/falcon-180B", "falcon-180b"},
             {"bloom-7b1", "bloom-7b1"},
             {"bloom-560m", "bloom-560m"},
             {"bloom", "bloom-176b"},
             {"bloomz-7b1", "bloom-7b1"},
             {"BLOOM-176B", "bloom-176b"},
             {"Nemotron-4 15B", "nemotron-4-15b"},
             {"nemotron4-340b", "nemotron-4-340b"},
             {"Nemotron-4-340B-Base", "nemotron-4-340b"},
             {"MT-NLG 530B", "mt-nlg-530b"},
             {"Megatron-Turing NLG 530B", "mt-nlg-530b"},
             {"GPT-3 175B", "gpt3-175b"},
             {"gpt3-175b", "gpt3-175b"},
             {"GPT-3 1.3B", "gpt3-1.3b"},
             {"gpt-13b", "gpt3-13b"},
             {"gpt3_20b", "gpt3-20b"},
             {"gpt3-5b", "gpt3-5b"},
             {"gpt3-6.7b", "gpt3-6.7b"},
             {"t5-base", "t5-base"},
             {"t5-11b", "t5-11b"},
             {"flan-t5-xl", "flan-t5-xl"},
             {"google/flan-t5-xxl", "flan-t5-xxl"},
             {"Yi-6B", "yi-6b"},
             {"Yi-34B-200K", "yi-34b"},
             {"Yi-1.5-9B", "yi-9b"},
             {"deepseek-llm-7b-base", "deepseek-llm-7b"},
             {"deepseek-7b", "deepseek-llm-7b"},
             {"DeepSeek-67B", "deepseek-llm-67b"},
             {"deepseek-v2", "deepseek-v2"},
             {"DeepSeek-V2-Lite", "deepseek-v2-lite"},
             {"DeepSeekV3 (w/o MTP)", "deepseek-v3"},
             {"deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"},
             {"DeepSeek-V3 671B", "deepseek-v3"},
             {"deepseek-r1", "deepseek-v3"},
             {"DeepSeek-R1-Distill-Llama-8B", "llama-3-8b"},
             {"DeepSeek-R1-Distill-Qwen-7B", "qwen2.5-7b"},
             {"deepseek-coder-33b", "deepseek-coder-33b"},
             {"gpt-oss-20b", "gpt-oss-20b"},
             {"GPT OSS 120B", "gpt-oss-120b"},
             {"Kimi_K2", "kimi-k2"},
             {"Kimi-K2-Instruct", "kimi-k2"},
             {"GLM-4.5", "glm-4.5"},
             {"GLM-4.5-Air", "glm-4.5-air"},
             {"glm-4-9b-chat", "glm-4-9b"},
             {"chatglm3-6b", "chatglm3-6b"},
             {"ChatGLM2-6B", "chatglm3-6b"},
             {"OLMo-7B", "olmo-7b"},
             {"OLMo-2-1124-7B", "olmo-2-7b"},
             {"OLMo-1B", "olmo-1b"},
             {"SmolLM-135M", "smollm2-135m"},
             {"SmolLM2-1.7B", "smollm2-1.7b"},
             {"SmolLM3-3B", "smollm3-3b"},
             {"StarCoder2-15B", "starcoder2-15b"},
             {"starcoder", "starcoder-15.5b"},
             {"santacoder-1.1B", "santacoder-1.1b"},
             {"Baichuan-7B", "baichuan-7b"},
             {"Baichuan2-13B-Chat", "baichuan2-13b"},
             {"internlm-7B", "internlm-7b"},
             {"InternLM2-20B", "internlm2-20b"},
             {"internlm2_5-7b-chat", "internlm2-7b"},
             {"dbrx", "dbrx"},
             {"DBRX-132B", "dbrx"},
             {"grok-1", "grok-1"},
             {"mpt-7b", "mpt-7b"},
             {"MPT-30B", "mpt-30b"},
             {"Moonlight-16B-A3B", "moonlight-16b-a3b"},
             {"OLMoE-1B-7B", "olmoe-1b-7b"},
             {"Nemotron 3 Nano", "nemotron-3-nano-30b-a3b"},
             {"minimax-m2", "minimax-m2"},
             {"command-r-plus", "command-r-plus-104b"},
             {"granite-3.3-8b-instruct", "granite-3.3-8b"},
             {"ibm-granite/granite-4.0-h-small-base", "granite-4.0-h-small"},
             {"microsoft/phi-4-reasoning", "phi-4"},
             {"microsoft/Phi-4-reasoning-plus", "phi-4"},
             {"Phi-4-mini-reasoning", "phi-4-mini"},
             {"meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama-4-scout"},
             {"allenai/OLMo-2-0325-32B", "olmo-2-32b"},
             {"allenai/Olmo-3-1025-7B", "olmo-3-7b"},
             {"mistralai/Mistral-Nemo-Base-2407", "mistral-nemo"},
             {"mistralai/Mistral-Small-24B-Base-2501", "mistral-small-24b"},
             {"Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3-30b-a3b"},
             {"zai-org/GLM-4.6", "glm-4.5"},
             {"meta-llama/Llama-3.1-405B-FP8", "llama-3-405b"},
             {"Llama-4-8B", NULL},
             {"llama", NULL},
             {"Llama38B", "llama-3-8b"},
             {"GPT-3 (6.7B)", "gpt3-6.7b"},
             {"GPT-2 (774M)", "gpt2-large"},
             {"GPT-3 (6.7 B)", "gpt3-6.7b"},
             {"Qwen3 (30B-A3B)", "qwen3-30b-a3b"},
             {"GPT-2 (10B tokens)", "gpt2"},
             {"Llama-3 (8B tokens)", NULL},
             {"Llama 3 (70B teacher)", NULL},
             {"Llama 3 (1M context)", NULL},
             {"Llama 3 (8B parameters)", "llama-3-8b"},
             {"GPT-3 175B (96 layers)", "gpt3-175b"},
             {"Qwen3-30B (3B active)", "qwen3-30b-a3b"},
             {"Qwen3-30", NULL},
             {"Qwen2.5-VL-7B", NULL},
             {"llama-7b-moe", NULL},
             {"gpt-h1024-l16", NULL},
             {"my-own-7b", NULL},
             {"mistral", "mistral-7b"},
             {"StableLM Alpha 3 B", "stablelm-alpha-3b"},
             {"PowerLM-3B", NULL},
             {"bert-large", "bert-large"},
             {"Nemotron_3_Super", NULL},
             {"1234567890123456789012345678901234567890123456789012345678901234567890",
              NULL}};
    (void) state;

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const struct workload_model *m = workload_preset_meant (t[i].name);
        const char *is = m ? m->name : "nothing";

        if (strcmp (is, t[i].preset ? t[i].preset : "nothing") != 0)
            fail_msg ("%s: is read as %s", t[i].name, is);
    }
}

/* Every preset is found by its own name, however it is written. */
static void own_names (void **state)
{
    int n;
    const struct workload_model *all = workload_presets (&n);
    (void) state;

    for (int i = 0; i < n; i++) {
        char name[192];

        snprintf (name, sizeof name, "some-lab/%s-Instruct-v0.3", all[i].name);
        for (char *c = name; *c; c++)
            *c = *c == '-' ? '_' : *c;
        assert_ptr_equal (workload_preset_meant (all[i].name), &all[i]);
        if (workload_preset_meant (name) != &all[i])
            fail_msg ("%s", name);
    }
}

/* Sizes that names say where no preset is meant; of experts they do not tell the shape. */
static void sizes (void **state)
{
    static const char *const experts[] = {
        "mine-8x7b",     "new-21B-A3B",     "GPT-MoE", "MoE 7B",     "my-16-expert",
        "gpt-8experts",  "Switch-Base-128", "OLMoE",   "qwen2moe",   "gpt_moe16"};
    static const char *const dense[] = {"moe/gpt-1.3b", "gpt 1.3B (no MoE)", "llama-2-7b",
                                        "moebius-7b",   "switchboard-1b",    "gpt-16"};
    (void) state;
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

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (counts), cmocka_unit_test (spelled),
        cmocka_unit_test (own_names), cmocka_unit_test (sizes)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
