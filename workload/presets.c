/* Model presets: the fields of each model's published config.json (Hugging Face hub), and
 * for GPT-3 Table 2.1 of Brown et al., arXiv 2005.14165, with GPT-2's vocabulary. */
#include "workload/workload.h"

/* name, type, layers, hidden, heads, key/value heads, width of a head, ffn, vocabulary */
#define HEADS(NAME, TYPE, L, H, A, K, D, F, V)                                       \
    .name = NAME, .type = TYPE, .layers = L, .hidden = H, .heads = A, .kv_heads = K, \
    .head_dim = D, .ffn = F, .vocab = V, .expert_every = 1, .norms = 2
#define SHAPE(NAME, TYPE, L, H, A, K, F, V) \
    HEADS (NAME, TYPE, L, H, A, K, (H) / (A), F, V)
#define LLAMA(NAME, TYPE, L, H, A, K, F, V)                     \
    {                                                           \
        SHAPE (NAME, TYPE, L, H, A, K, F, V), .gated_mlp = true \
    }
#define QWEN2(NAME, L, H, A, K, F, V)                                                \
    {                                                                                \
        SHAPE (NAME, "qwen2", L, H, A, K, F, V), .gated_mlp = true, .qkv_bias = true \
    }
/* experts, those of a token, width of one */
#define EXPERTS(N, K, F) .gated_mlp = true, .experts = N, .top_k = K, .expert_ffn = F
#define MIXTRAL(NAME, L, H, A, K, F, V)                              \
    {                                                                \
        SHAPE (NAME, "mixtral", L, H, A, K, F, V), EXPERTS (8, 2, F) \
    }
#define BIASES .qkv_bias = true, .out_bias = true, .mlp_bias = true
#define BIASED BIASES, .norm = NORM_LAYER
#define QWEN3(NAME, L, H, A, F)                                               \
    {                                                                         \
        HEADS (NAME, "qwen3", L, H, A, 8, 128, F, 151936), .gated_mlp = true, \
                                                           .qk_norm = true    \
    }
/* layers, experts */
#define GPT_OSS(NAME, L, N)                                                              \
    {                                                                                    \
        HEADS (NAME, "gpt_oss", L, 2880, 64, 8, 64, 2880, 201088), EXPERTS (N, 4, 2880), \
            BIASES, .router_bias = true, .sinks = true, .window = 128,                   \
                    .window_layers = (L) / 2                                             \
    }
/* OLMo 2 and 3 */
#define OLMO(NAME, TYPE, L, H, A, K, F, V) \
    SHAPE (NAME, TYPE, L, H, A, K, F, V), .gated_mlp = true, .wide_qk_norm = true
#define GPT(NAME, L, H, A, POSITIONS)                             \
    {                                                             \
        SHAPE (NAME, "gpt2", L, H, A, A, 4 * (H), 50257), BIASED, \
            .positions = POSITIONS, .tied = true, .dropout = true \
    }
#define LATENT \
    .q_rank = 1536, .kv_rank = 512, .rope_dim = 64, .nope_dim = 128, .v_dim = 128

/* heads, width of one, groups, chunk: Mamba-2 with a state of 128 */
#define SSM(HEADS, WIDTH, GROUPS, CHUNK)                                                \
    .linear = LINEAR_SSM, .lin_heads = HEADS, .lin_width = WIDTH, .lin_groups = GROUPS, \
    .lin_state = 128, .lin_conv = 4, .lin_chunk = CHUNK, .lin_conv_bias = true,         \
    .lin_norm = true

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
    {SHAPE ("llama-3.2-1b", "llama", 16, 2048, 32, 8, 8192, 128256), .gated_mlp = true,
     .tied = true},
    {SHAPE ("llama-3.2-3b", "llama", 28, 3072, 24, 8, 8192, 128256), .gated_mlp = true,
     .tied = true},
    {HEADS ("llama-4-scout", "llama4_text", 48, 5120, 40, 8, 128, 16384, 202048),
     EXPERTS (16, 1, 8192), .shared_ffn = 8192, .window = 8192, .window_layers = 36,
     .window_chunks = true},
    {SHAPE ("smollm3-3b", "smollm3", 36, 2048, 16, 4, 11008, 128256), .gated_mlp = true,
     .tied = true},
    {SHAPE ("granite-3.3-8b", "granite", 40, 4096, 32, 8, 12800, 49159),
     .gated_mlp = true, .tied = true},
    LLAMA ("phi-4", "phi3", 40, 5120, 40, 10, 17920, 100352),
    LLAMA ("mistral-7b", "mistral", 32, 4096, 32, 8, 14336, 32000),
    {HEADS ("mistral-nemo", "mistral", 40, 5120, 32, 8, 128, 14336, 131072),
     .gated_mlp = true},
    {HEADS ("mistral-small-24b", "mistral", 40, 5120, 32, 8, 128, 32768, 131072),
     .gated_mlp = true},
    MIXTRAL ("mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000),
    MIXTRAL ("mixtral-8x22b", 56, 6144, 48, 8, 16384, 32000),
    QWEN2 ("qwen2.5-7b", 28, 3584, 28, 4, 18944, 152064),
    QWEN2 ("qwen2.5-14b", 48, 5120, 40, 8, 13824, 152064),
    QWEN2 ("qwen2.5-32b", 64, 5120, 40, 8, 27648, 152064),
    QWEN2 ("qwen2.5-72b", 80, 8192, 64, 8, 29568, 152064),
    QWEN3 ("qwen3-8b", 36, 4096, 32, 12288),
    QWEN3 ("qwen3-14b", 40, 5120, 40, 17408),
    QWEN3 ("qwen3-32b", 64, 5120, 64, 25600),
    {HEADS ("qwen3-235b-a22b", "qwen3_moe", 94, 4096, 64, 4, 128, 12288, 151936),
     EXPERTS (128, 8, 1536), .qk_norm = true},
    {HEADS ("qwen3-30b-a3b", "qwen3_moe", 48, 2048, 32, 4, 128, 6144, 151936),
     EXPERTS (128, 8, 768), .qk_norm = true},
    {HEADS ("deepseek-v2", "deepseek_v2", 60, 5120, 128, 128, 192, 12288, 102400), LATENT,
     EXPERTS (160, 6, 1536), .expert_groups = 8, .top_groups = 3, .shared_experts = 2,
     .shared_ffn = 3072, .dense_layers = 1},
    {HEADS ("deepseek-v3", "deepseek_v3", 61, 7168, 128, 128, 192, 18432, 129280), LATENT,
     EXPERTS (256, 8, 2048), .expert_groups = 8, .top_groups = 4, .shared_experts = 1,
     .shared_ffn = 2048, .router_bias = true, .dense_layers = 3},
    {HEADS ("kimi-k2", "deepseek_v3", 61, 7168, 64, 64, 192, 18432, 163840), LATENT,
     EXPERTS (384, 8, 2048), .expert_groups = 1, .top_groups = 1, .shared_experts = 1,
     .shared_ffn = 2048, .router_bias = true, .dense_layers = 1},
    GPT_OSS ("gpt-oss-20b", 24, 32),
    GPT_OSS ("gpt-oss-120b", 36, 128),
    {HEADS ("glm-4.5-air", "glm4_moe", 46, 4096, 96, 8, 128, 10944, 151552),
     EXPERTS (128, 8, 1408), .qkv_bias = true, .router_bias = true, .expert_groups = 1,
     .top_groups = 1, .shared_experts = 1, .shared_ffn = 1408, .dense_layers = 1},
    {HEADS ("glm-4.5", "glm4_moe", 92, 5120, 96, 8, 128, 12288, 151552),
     EXPERTS (160, 8, 1536), .qkv_bias = true, .qk_norm = true, .router_bias = true,
     .expert_groups = 1, .top_groups = 1, .shared_experts = 1, .shared_ffn = 1536,
     .dense_layers = 3},
    {HEADS ("minimax-m2", "minimax_m2", 62, 3072, 48, 8, 128, 1536, 200064),
     EXPERTS (256, 8, 1536), .wide_qk_norm = true, .router_bias = true},
    {HEADS ("seed-oss-36b", "seed_oss", 64, 5120, 80, 8, 128, 27648, 155136),
     .gated_mlp = true, .qkv_bias = true},
    {OLMO ("olmo-2-7b", "olmo2", 32, 4096, 32, 32, 11008, 100352)},
    {OLMO ("olmo-2-13b", "olmo2", 40, 5120, 40, 40, 13824, 100352)},
    {OLMO ("olmo-2-32b", "olmo2", 64, 5120, 40, 8, 27648, 100352)},
    {OLMO ("olmo-3-7b", "olmo3", 32, 4096, 32, 32, 11008, 100278), .window = 4096,
     .window_layers = 24},
    {SHAPE ("gpt-neox-20b", "gpt_neox", 44, 6144, 64, 64, 24576, 50432), BIASED},
    {HEADS ("qwen3-next-80b-a3b", "qwen3_next", 48, 2048, 16, 2, 256, 0, 151936),
     EXPERTS (512, 10, 512), .shared_ffn = 512, .shared_gate = true, .qk_norm = true,
     .attention_gate = true, .linear = LINEAR_DELTA, .lin_heads = 32, .lin_width = 128,
     .lin_groups = 16, .lin_state = 128, .lin_conv = 4, .lin_chunk = 64,
     .pattern = "LLLALLLALLLALLLALLLALLLALLLALLLALLLALLLALLLALLLA", .kinds = "LA"},
    {HEADS ("nemotron-nano-9b-v2", "nemotron_h", 56, 4480, 40, 8, 128, 15680, 131072),
     SSM (128, 80, 8, 128),
     .pattern = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
     .kinds = "M-*"},
    {HEADS ("nemotron-3-nano-30b-a3b", "nemotron_h", 52, 2688, 32, 2, 128, 0, 131072),
     SSM (64, 64, 8, 128), .experts = 128, .top_k = 6, .expert_ffn = 1856,
     .shared_experts = 1, .shared_ffn = 3712, .expert_groups = 1, .top_groups = 1,
     .router_bias = true,
     .pattern = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", .kinds = "ME*"},
    {HEADS ("mamba2-2.7b", "mamba2", 64, 2560, 0, 0, 0, 0, 50288), SSM (80, 64, 1, 256),
     .tied = true, .kinds = "M",
     .pattern = "MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM"},
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
