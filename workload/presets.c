/* Model presets: the fields of each model's published config.json (Hugging Face hub), and
 * for GPT-3 Table 2.1 of Brown et al., arXiv 2005.14165, with GPT-2's vocabulary. */
#include "workload/workload.h"

/* name, type, layers, hidden, heads, key/value heads, ffn, vocabulary */
#define SHAPE(NAME, TYPE, L, H, A, K, F, V)                                          \
    .name = NAME, .type = TYPE, .layers = L, .hidden = H, .heads = A, .kv_heads = K, \
    .head_dim = (H) / (A), .ffn = F, .vocab = V, .norms = 2, .expert_every = 1
#define LLAMA(NAME, TYPE, L, H, A, K, F, V)                     \
    {                                                           \
        SHAPE (NAME, TYPE, L, H, A, K, F, V), .gated_mlp = true \
    }
#define QWEN2(NAME, L, H, A, K, F, V)                                                \
    {                                                                                \
        SHAPE (NAME, "qwen2", L, H, A, K, F, V), .gated_mlp = true, .qkv_bias = true \
    }
#define MIXTRAL(NAME, L, H, A, K, F, V)                                             \
    {                                                                               \
        SHAPE (NAME, "mixtral", L, H, A, K, F, V), .gated_mlp = true, .experts = 8, \
                                                   .top_k = 2, .expert_ffn = F      \
    }
#define BIASED .qkv_bias = true, .out_bias = true, .mlp_bias = true, .norm = NORM_LAYER
#define GPT(NAME, L, H, A, POSITIONS)                             \
    {                                                             \
        SHAPE (NAME, "gpt2", L, H, A, A, 4 * (H), 50257), BIASED, \
            .positions = POSITIONS, .tied = true, .dropout = true \
    }
#define LATENT(Q)                                                                    \
    .gated_mlp = true, .q_rank = Q, .kv_rank = 512, .rope_dim = 64, .nope_dim = 128, \
    .v_dim = 128

static const struct workload_model presets[] = {
    GPT ("gpt2-xl", 48, 1600, 25, 1024),
    GPT ("gpt3-6.7b", 32, 4096, 32, 2048),
    GPT ("gpt3-13b", 40, 5120, 40, 2048),
    GPT ("gpt3-175b", 96, 12288, 96, 2048),
    LLAMA ("llama-2-7b", "llama", 32, 4096, 32, 32, 11008, 32000),
    LLAMA ("llama-2-13b", "llama", 40, 5120, 40, 40, 13824, 32000),
    LLAMA ("llama-2-70b", "llama", 80, 8192, 64, 8, 28672, 32000),
    LLAMA ("llama-3-8b", "llama", 32, 4096, 32, 8, 14336, 128256),
    LLAMA ("llama-3-70b", "llama", 80, 8192, 64, 8, 28672, 128256),
    LLAMA ("llama-3-405b", "llama", 126, 16384, 128, 8, 53248, 128256),
    LLAMA ("mistral-7b", "mistral", 32, 4096, 32, 8, 14336, 32000),
    MIXTRAL ("mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000),
    MIXTRAL ("mixtral-8x22b", 56, 6144, 48, 8, 16384, 32000),
    QWEN2 ("qwen2.5-7b", 28, 3584, 28, 4, 18944, 152064),
    QWEN2 ("qwen2.5-72b", 80, 8192, 64, 8, 29568, 152064),
    {.name = "qwen3-235b-a22b",
     .type = "qwen3_moe",
     .layers = 94,
     .hidden = 4096,
     .heads = 64,
     .kv_heads = 4,
     .head_dim = 128,
     .ffn = 12288,
     .vocab = 151936,
     .norms = 2,
     .gated_mlp = true,
     .qk_norm = true,
     .experts = 128,
     .top_k = 8,
     .expert_ffn = 1536,
     .expert_every = 1},
    {.name = "deepseek-v2",
     .type = "deepseek_v2",
     .layers = 60,
     .hidden = 5120,
     .heads = 128,
     .kv_heads = 128,
     .head_dim = 192,
     .ffn = 12288,
     .vocab = 102400,
     .norms = 2,
     LATENT (1536),
     .experts = 160,
     .top_k = 6,
     .expert_groups = 8,
     .top_groups = 3,
     .expert_ffn = 1536,
     .shared_experts = 2,
     .shared_ffn = 3072,
     .dense_layers = 1,
     .expert_every = 1},
    {.name = "deepseek-v3",
     .type = "deepseek_v3",
     .layers = 61,
     .hidden = 7168,
     .heads = 128,
     .kv_heads = 128,
     .head_dim = 192,
     .ffn = 18432,
     .vocab = 129280,
     .norms = 2,
     LATENT (1536),
     .experts = 256,
     .top_k = 8,
     .expert_groups = 8,
     .top_groups = 4,
     .expert_ffn = 2048,
     .shared_experts = 1,
     .shared_ffn = 2048,
     .router_bias = true,
     .dense_layers = 3,
     .expert_every = 1},
    {SHAPE ("gpt-neox-20b", "gpt_neox", 44, 6144, 64, 64, 24576, 50432), BIASED},
    {SHAPE ("bloom-176b", "bloom", 70, 14336, 112, 112, 57344, 250880), BIASED,
     .tied = true, .embedding_norm = true},
    {SHAPE ("falcon-40b", "falcon", 60, 8192, 128, 8, 32768, 65024), .norm = NORM_LAYER,
     .tied = true},
};

const struct workload_model *workload_presets (int *n)
{
    *n = (int) (sizeof presets / sizeof *presets);
    return presets;
}
