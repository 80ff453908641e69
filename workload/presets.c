/* Model presets: the fields of each model's published config.json (Hugging Face hub), and
 * for GPT-3 Table 2.1 of Brown et al., arXiv 2005.14165, with GPT-2's vocabulary. */
#include "workload/workload.h"

#define LLAMA(NAME, L, H, A, K, F, V)                                                  \
    {                                                                                  \
        .name = NAME, .type = "llama", .layers = L, .hidden = H, .heads = A,           \
        .kv_heads = K, .head_dim = (H) / (A), .ffn = F, .vocab = V, .gated_mlp = true, \
        .norm = NORM_RMS                                                               \
    }
#define QWEN2(NAME, L, H, A, K, F, V)                                                  \
    {                                                                                  \
        .name = NAME, .type = "qwen2", .layers = L, .hidden = H, .heads = A,           \
        .kv_heads = K, .head_dim = (H) / (A), .ffn = F, .vocab = V, .gated_mlp = true, \
        .qkv_bias = true, .norm = NORM_RMS                                             \
    }
#define GPT(NAME, L, H, A, POSITIONS)                                                \
    {                                                                                \
        .name = NAME, .type = "gpt2", .layers = L, .hidden = H, .heads = A,          \
        .kv_heads = A, .head_dim = (H) / (A), .ffn = 4 * (H), .vocab = 50257,        \
        .positions = POSITIONS, .tied = true, .qkv_bias = true, .linear_bias = true, \
        .dropout = true, .norm = NORM_LAYER                                          \
    }

static const struct workload_model presets[] = {
    GPT ("gpt2-xl", 48, 1600, 25, 1024),
    GPT ("gpt3-6.7b", 32, 4096, 32, 2048),
    GPT ("gpt3-13b", 40, 5120, 40, 2048),
    GPT ("gpt3-175b", 96, 12288, 96, 2048),
    LLAMA ("llama-2-7b", 32, 4096, 32, 32, 11008, 32000),
    LLAMA ("llama-2-13b", 40, 5120, 40, 40, 13824, 32000),
    LLAMA ("llama-2-70b", 80, 8192, 64, 8, 28672, 32000),
    LLAMA ("llama-3-8b", 32, 4096, 32, 8, 14336, 128256),
    LLAMA ("llama-3-70b", 80, 8192, 64, 8, 28672, 128256),
    LLAMA ("llama-3-405b", 126, 16384, 128, 8, 53248, 128256),
    LLAMA ("mistral-7b", 32, 4096, 32, 8, 14336, 32000),
    QWEN2 ("qwen2.5-7b", 28, 3584, 28, 4, 18944, 152064),
    QWEN2 ("qwen2.5-72b", 80, 8192, 64, 8, 29568, 152064),
};

const struct workload_model *workload_presets (int *n)
{
    *n = (int) (sizeof presets / sizeof *presets);
    return presets;
}
