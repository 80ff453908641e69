/* Model presets: the fields of each model's published config.json (Hugging Face hub), and
 * for GPT-3 Table 2.1 of Brown et al., arXiv 2005.14165, with GPT-2's vocabulary. */
#include "workload/workload.h"

#include <string.h>

/* name, type, layers, hidden, heads, key/value heads, width of a head, ffn, vocabulary */
#define HEADS(NAME, TYPE, L, H, A, K, D, F, V) \
    SIZES (2, 1, NAME, TYPE, L, H, A, K, D, F, V)
/* the same behind norms of a layer, and of how many layers one has experts */
#define SIZES(NORMS, EVERY, NAME, TYPE, L, H, A, K, D, F, V)                         \
    .name = NAME, .type = TYPE, .layers = L, .hidden = H, .heads = A, .kv_heads = K, \
    .head_dim = D, .ffn = F, .vocab = V, .expert_every = EVERY, .norms = NORMS
#define SHAPE(NAME, TYPE, L, H, A, K, F, V) \
    HEADS (NAME, TYPE, L, H, A, K, (H) / (A), F, V)
#define LLAMA(NAME, TYPE, L, H, A, K, F, V) \
    SHAPE (NAME, TYPE, L, H, A, K, F, V), .gated_mlp = true
#define TIED(NAME, TYPE, L, H, A, K, F, V) \
    SHAPE (NAME, TYPE, L, H, A, K, F, V), .gated_mlp = true, .tied = true
#define QWEN2(NAME, L, H, A, K, F, V, TIES)                                       \
    SHAPE (NAME, "qwen2", L, H, A, K, F, V), .gated_mlp = true, .qkv_bias = true, \
                                             .tied = TIES
/* experts, those of a token, width of one */
#define EXPERTS(N, K, F) .gated_mlp = true, .experts = N, .top_k = K, .expert_ffn = F
#define MIXTRAL(NAME, L, H, A, K, F, V) \
    SHAPE (NAME, "mixtral", L, H, A, K, F, V), EXPERTS (8, 2, F)
#define BIASES .qkv_bias = true, .out_bias = true, .mlp_bias = true
#define BIASED BIASES, .norm = NORM_LAYER
#define QWEN3(NAME, L, H, A, F, TIES)                                     \
    HEADS (NAME, "qwen3", L, H, A, 8, 128, F, 151936), .gated_mlp = true, \
                                                       .qk_norm = true, .tied = TIES
#define GEMMA(NORMS, NAME, TYPE, L, H, A, K, D, F, V) \
    SIZES (NORMS, 1, NAME, TYPE, L, H, A, K, D, F, V), .gated_mlp = true, .tied = true
/* Every second layer of Gemma 2 and five of six of Gemma 3 have a window. */
#define GEMMA2(NAME, L, H, A, K, D, F)                                   \
    GEMMA (4, NAME, "gemma2", L, H, A, K, D, F, 256000), .window = 4096, \
                                                         .window_layers = (L) / 2
#define GEMMA3(NAME, L, H, A, K, D, F, V, WINDOW)        \
    GEMMA (4, NAME, "gemma3_text", L, H, A, K, D, F, V), \
        .qk_norm = true, .window = WINDOW, .window_layers = (L) - (L) / 6
/* layers, experts */
#define GPT_OSS(NAME, L, N)                                                          \
    HEADS (NAME, "gpt_oss", L, 2880, 64, 8, 64, 2880, 201088), EXPERTS (N, 4, 2880), \
        BIASES, .router_bias = true, .sinks = true, .window = 128,                   \
                .window_layers = (L) / 2
/* OLMo 2 and 3 */
#define OLMO(NAME, TYPE, L, H, A, K, F, V) \
    SHAPE (NAME, TYPE, L, H, A, K, F, V), .gated_mlp = true, .wide_qk_norm = true
#define GPT(NAME, L, H, A, POSITIONS, GELU)                   \
    SHAPE (NAME, "gpt2", L, H, A, A, 4 * (H), 50257), BIASED, \
        .positions = POSITIONS, .tied = true, .dropout = true, .separate_gelu = GELU
#define OPT(NAME, L, H, A)                                   \
    SHAPE (NAME, "opt", L, H, A, A, 4 * (H), 50272), BIASED, \
        .positions = 2048, .spare_positions = 2, .tied = true, .dropout = true
#define GPT_NEO(NAME, L, H, A)                                                     \
    SHAPE (NAME, "gpt_neo", L, H, A, A, 4 * (H), 50257),                           \
        .out_bias = true, .mlp_bias = true, .norm = NORM_LAYER, .positions = 2048, \
        .tied = true
#define NEOX(NAME, L, H, A, V) SHAPE (NAME, "gpt_neox", L, H, A, A, 4 * (H), V), BIASED
#define BLOOM(NAME, L, H, A)                                                  \
    SHAPE (NAME, "bloom", L, H, A, A, 4 * (H), 250880), BIASED, .tied = true, \
                                                                .embedding_norm = true
#define FALCON(NORMS, NAME, L, H, A, K)                                      \
    SIZES (NORMS, 1, NAME, "falcon", L, H, A, K, (H) / (A), 4 * (H), 65024), \
        .norm = NORM_LAYER, .tied = true
#define NEMOTRON(NAME, L, H, A, K) \
    SHAPE (NAME, "nemotron", L, H, A, K, 4 * (H), 256000), .norm = NORM_LAYER
#define STARCODER2(NAME, L, H, A, K, TIES) \
    SHAPE (NAME, "starcoder2", L, H, A, K, 4 * (H), 49152), BIASED, .tied = TIES
/* Layers of either side, width of a head. */
#define T5(NAME, L, H, A, D, F) \
    HEADS (NAME, "t5", L, H, A, A, D, F, 32128), .decoder_layers = L, .dropout = true
#define LATENT_KEYS .kv_rank = 512, .rope_dim = 64, .nope_dim = 128, .v_dim = 128
#define LATENT .q_rank = 1536, LATENT_KEYS

/* heads, width of one, groups, chunk: Mamba-2 with a state of 128 */
#define SSM(HEADS, WIDTH, GROUPS, CHUNK)                                                \
    .linear = LINEAR_SSM, .lin_heads = HEADS, .lin_width = WIDTH, .lin_groups = GROUPS, \
    .lin_state = 128, .lin_conv = 4, .lin_chunk = CHUNK, .lin_conv_bias = true,         \
    .lin_norm = true
#define GRANITE_H(NAME, H, A, K, F, N, TOP, SHARED, HEADS, WIDTH)  \
    SHAPE (NAME, "granitemoehybrid", 40, H, A, K, SHARED, 100352), \
        SSM (HEADS, WIDTH, 1, 256), EXPERTS (N, TOP, F),           \
        .shared_ffn = SHARED, .tied = true,                        \
        .pattern = "LLLLLALLLLLLLLLALLLLLLLLLALLLLLLLLLALLLL", .kinds = "LA"

static const struct workload_model presets[] = {
    {GPT ("gpt2", 12, 768, 12, 1024, true)},
    {GPT ("gpt2-medium", 24, 1024, 16, 1024, true)},
    {GPT ("gpt2-large", 36, 1280, 20, 1024, true)},
    {GPT ("gpt2-xl", 48, 1600, 25, 1024, true)},
    {SHAPE ("bert-base", "gpt2", 12, 768, 12, 12, 3072, 30522), BIASED, .positions = 512,
     .tied = true, .dropout = true}, /* but for its attention, which is not causal */
    {SHAPE ("bert-large", "gpt2", 24, 1024, 16, 16, 4096, 30522), BIASED,
     .positions = 512, .tied = true, .dropout = true},
    {GPT ("gpt3-125m", 12, 768, 12, 2048, false)},
    {GPT ("gpt3-350m", 24, 1024, 16, 2048, false)},
    {GPT ("gpt3-760m", 24, 1536, 16, 2048, false)},
    {GPT ("gpt3-1.3b", 24, 2048, 16, 2048, false)},
    {GPT ("gpt3-2.7b", 32, 2560, 32, 2048, false)},
    {GPT ("gpt3-5b", 24, 4096, 32, 2048, false)},
    {GPT ("gpt3-6.7b", 32, 4096, 32, 2048, false)},
    {GPT ("gpt3-13b", 40, 5120, 40, 2048, false)},
    {GPT ("gpt3-20b", 44, 6144, 48, 2048, false)},
    {GPT ("gpt3-22b", 48, 6144, 64, 2048, false)},
    {GPT ("gpt3-40b", 48, 8192, 64, 2048, false)},
    {GPT ("gpt3-175b", 96, 12288, 96, 2048, false)},
    {GPT ("mt-nlg-530b", 105, 20480, 128, 2048, false)},
    {GPT ("gpt3-1t", 128, 25600, 160, 2048, false)},
    {GPT_NEO ("gpt-neo-125m", 12, 768, 12)},
    {GPT_NEO ("gpt-neo-1.3b", 24, 2048, 16)},
    {GPT_NEO ("gpt-neo-2.7b", 32, 2560, 20)},
    {SIZES (1, 1, "gpt-j-6b", "gptj", 28, 4096, 16, 16, 256, 16384, 50400),
     .mlp_bias = true, .norm = NORM_LAYER, .head_bias = true},
    {NEOX ("gpt-neox-20b", 44, 6144, 64, 50432)},
    {NEOX ("pythia-70m", 6, 512, 8, 50304)},
    {NEOX ("pythia-160m", 12, 768, 12, 50304)},
    {NEOX ("pythia-410m", 24, 1024, 16, 50304)},
    {NEOX ("pythia-1b", 16, 2048, 8, 50304)},
    {NEOX ("pythia-1.4b", 24, 2048, 16, 50304)},
    {NEOX ("pythia-2.8b", 32, 2560, 32, 50304)},
    {NEOX ("pythia-6.9b", 32, 4096, 32, 50432)},
    {NEOX ("pythia-12b", 36, 5120, 40, 50688)},
    {NEOX ("stablelm-alpha-3b", 16, 4096, 32, 50688)},
    {NEOX ("stablelm-alpha-7b", 16, 6144, 48, 50432)},
    {OPT ("opt-125m", 12, 768, 12)},
    {OPT ("opt-1.3b", 24, 2048, 32)},
    {OPT ("opt-2.7b", 32, 2560, 32)},
    {OPT ("opt-6.7b", 32, 4096, 32)},
    {OPT ("opt-13b", 40, 5120, 40)},
    {OPT ("opt-30b", 48, 7168, 56)},
    {OPT ("opt-66b", 64, 9216, 72)},
    {OPT ("opt-175b", 96, 12288, 96)},
    {BLOOM ("bloom-560m", 24, 1024, 16)},
    {BLOOM ("bloom-1b1", 24, 1536, 16)},
    {BLOOM ("bloom-1b7", 24, 2048, 16)},
    {BLOOM ("bloom-3b", 30, 2560, 32)},
    {BLOOM ("bloom-7b1", 30, 4096, 32)},
    {BLOOM ("bloom-176b", 70, 14336, 112)},
    {FALCON (1, "falcon-7b", 32, 4544, 71, 1)},
    {FALCON (2, "falcon-40b", 60, 8192, 128, 8)},
    {FALCON (2, "falcon-180b", 80, 14848, 232, 8)},
    {SHAPE ("mpt-7b", "mpt", 32, 4096, 32, 32, 16384, 50432), .norm = NORM_LAYER_WEIGHT,
     .tied = true},
    {SHAPE ("mpt-30b", "mpt", 48, 7168, 64, 64, 28672, 50432), .norm = NORM_LAYER_WEIGHT,
     .tied = true},
    {T5 ("t5-small", 6, 512, 8, 64, 2048), .tied = true},
    {T5 ("t5-base", 12, 768, 12, 64, 3072), .tied = true},
    {T5 ("t5-large", 24, 1024, 16, 64, 4096), .tied = true},
    {T5 ("t5-3b", 24, 1024, 32, 128, 16384), .tied = true},
    {T5 ("t5-11b", 24, 1024, 128, 128, 65536), .tied = true},
    {T5 ("flan-t5-xl", 24, 2048, 32, 64, 5120), .gated_mlp = true},
    {T5 ("flan-t5-xxl", 24, 4096, 64, 64, 10240), .gated_mlp = true},
    {LLAMA ("llama-2-7b", "llama", 32, 4096, 32, 32, 11008, 32000)},
    {LLAMA ("llama-2-13b", "llama", 40, 5120, 40, 40, 13824, 32000)},
    {LLAMA ("llama-2-70b", "llama", 80, 8192, 64, 8, 28672, 32000)},
    {LLAMA ("llama-33b", "llama", 60, 6656, 52, 52, 17920, 32000)},
    {LLAMA ("llama-65b", "llama", 80, 8192, 64, 64, 22016, 32000)},
    {LLAMA ("code-llama-34b", "llama", 48, 8192, 64, 8, 22016, 32000)},
    {LLAMA ("llama-3-8b", "llama", 32, 4096, 32, 8, 14336, 128256)},
    {LLAMA ("llama-3-70b", "llama", 80, 8192, 64, 8, 28672, 128256)},
    {LLAMA ("llama-3-405b", "llama", 126, 16384, 128, 8, 53248, 128256)},
    {TIED ("llama-3.2-1b", "llama", 16, 2048, 32, 8, 8192, 128256)},
    {TIED ("llama-3.2-3b", "llama", 28, 3072, 24, 8, 8192, 128256)},
    {HEADS ("llama-4-scout", "llama4_text", 48, 5120, 40, 8, 128, 16384, 202048),
     EXPERTS (16, 1, 8192), .shared_ffn = 8192, .window = 8192, .window_layers = 36,
     .window_chunks = true},
    {SIZES (2, 2, "llama-4-maverick", "llama4_text", 48, 5120, 40, 8, 128, 16384, 202048),
     EXPERTS (128, 1, 8192), .shared_ffn = 8192, .dense_layers = 1, .window = 8192,
     .window_layers = 36, .window_chunks = true},
    {LLAMA ("open-llama-3b", "llama", 26, 3200, 32, 32, 8640, 32000)},
    {LLAMA ("tinyllama-1.1b", "llama", 22, 2048, 32, 4, 5632, 32000)},
    {TIED ("smollm2-135m", "llama", 30, 576, 9, 3, 1536, 49152)},
    {TIED ("smollm2-360m", "llama", 32, 960, 15, 5, 2560, 49152)},
    {TIED ("smollm2-1.7b", "llama", 24, 2048, 32, 32, 8192, 49152)},
    {TIED ("smollm3-3b", "smollm3", 36, 2048, 16, 4, 11008, 128256)},
    {TIED ("granite-3.3-2b", "granite", 40, 2048, 32, 8, 8192, 49159)},
    {TIED ("granite-3.3-8b", "granite", 40, 4096, 32, 8, 12800, 49159)},
    {TIED ("granite-4.0-1b", "granitemoehybrid", 40, 2048, 16, 4, 4096, 100352)},
    {GRANITE_H ("granite-4.0-h-tiny", 1536, 12, 4, 512, 64, 6, 1024, 48, 64)},
    {GRANITE_H ("granite-4.0-h-small", 4096, 32, 8, 768, 72, 10, 1536, 128, 64)},
    {LLAMA ("yi-6b", "llama", 32, 4096, 32, 4, 11008, 64000)},
    {LLAMA ("yi-9b", "llama", 48, 4096, 32, 4, 11008, 64000)},
    {LLAMA ("yi-34b", "llama", 60, 7168, 56, 8, 20480, 64000)},
    {LLAMA ("baichuan-7b", "baichuan", 32, 4096, 32, 32, 11008, 64000)},
    {LLAMA ("baichuan-13b", "baichuan", 40, 5120, 40, 40, 13696, 64000)},
    {LLAMA ("baichuan2-7b", "baichuan", 32, 4096, 32, 32, 11008, 125696)},
    {LLAMA ("baichuan2-13b", "baichuan", 40, 5120, 40, 40, 13696, 125696)},
    {SHAPE ("internlm-7b", "internlm", 32, 4096, 32, 32, 11008, 103168),
     .gated_mlp = true, .qkv_bias = true, .out_bias = true},
    {LLAMA ("internlm-20b", "internlm2", 60, 5120, 40, 40, 13824, 103168)},
    {LLAMA ("internlm2-1.8b", "internlm2", 24, 2048, 16, 8, 8192, 92544)},
    {LLAMA ("internlm2-7b", "internlm2", 32, 4096, 32, 8, 14336, 92544)},
    {LLAMA ("internlm2-20b", "internlm2", 48, 6144, 48, 8, 16384, 92544)},
    {HEADS ("internlm3-8b", "internlm3", 48, 4096, 32, 2, 128, 10240, 128512),
     .gated_mlp = true},
    {HEADS ("chatglm3-6b", "chatglm", 28, 4096, 32, 2, 128, 13696, 65024),
     .gated_mlp = true, .qkv_bias = true},
    {HEADS ("glm-4-9b", "chatglm", 40, 4096, 32, 2, 128, 13696, 151552),
     .gated_mlp = true, .qkv_bias = true},
    {SIZES (1, 1, "phi-1.5", "phi", 24, 2048, 32, 32, 64, 8192, 51200), BIASED,
     .head_bias = true},
    {SIZES (1, 1, "phi-2", "phi", 32, 2560, 32, 32, 80, 10240, 51200), BIASED,
     .head_bias = true},
    {LLAMA ("phi-3-mini", "phi3", 32, 3072, 32, 32, 8192, 32064)},
    {LLAMA ("phi-3-medium", "phi3", 40, 5120, 40, 10, 17920, 32064)},
    {SHAPE ("phi-3.5-moe", "phimoe", 32, 4096, 32, 8, 6400, 32064), EXPERTS (16, 2, 6400),
     .qkv_bias = true, .out_bias = true, .head_bias = true, .norm = NORM_LAYER},
    {LLAMA ("phi-4", "phi3", 40, 5120, 40, 10, 17920, 100352)},
    {TIED ("phi-4-mini", "phi3", 32, 3072, 24, 8, 8192, 200064)},
    {GEMMA (2, "gemma-2b", "gemma", 18, 2048, 8, 1, 256, 16384, 256000)},
    {GEMMA (2, "gemma-7b", "gemma", 28, 3072, 16, 16, 256, 24576, 256000)},
    {GEMMA2 ("gemma-2-2b", 26, 2304, 8, 4, 256, 9216)},
    {GEMMA2 ("gemma-2-9b", 42, 3584, 16, 8, 256, 14336)},
    {GEMMA2 ("gemma-2-27b", 46, 4608, 32, 16, 128, 36864)},
    {GEMMA3 ("gemma-3-1b", 26, 1152, 4, 1, 256, 6912, 262144, 512)},
    {GEMMA3 ("gemma-3-4b", 34, 2560, 8, 4, 256, 10240, 262208, 1024)},
    {GEMMA3 ("gemma-3-12b", 48, 3840, 16, 8, 256, 15360, 262208, 1024)},
    {GEMMA3 ("gemma-3-27b", 62, 5376, 32, 16, 128, 21504, 262208, 1024)},
    {LLAMA ("mistral-7b", "mistral", 32, 4096, 32, 8, 14336, 32000)},
    {LLAMA ("ministral-8b", "mistral", 36, 4096, 32, 8, 12288, 131072)},
    {HEADS ("mistral-nemo", "mistral", 40, 5120, 32, 8, 128, 14336, 131072),
     .gated_mlp = true},
    {LLAMA ("codestral-22b", "mistral", 56, 6144, 48, 8, 16384, 32768)},
    {HEADS ("mistral-small-24b", "mistral", 40, 5120, 32, 8, 128, 32768, 131072),
     .gated_mlp = true},
    {LLAMA ("mistral-large-123b", "mistral", 88, 12288, 96, 8, 28672, 32768)},
    {MIXTRAL ("mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000)},
    {MIXTRAL ("mixtral-8x22b", 56, 6144, 48, 8, 16384, 32000)},
    {SHAPE ("grok-1", "mixtral", 64, 6144, 48, 8, 32768, 131072), EXPERTS (8, 2, 32768),
     .tied = true},
    {SHAPE ("dbrx", "dbrx", 40, 6144, 48, 8, 10752, 100352), EXPERTS (16, 4, 10752),
     .norm = NORM_LAYER_WEIGHT},
    {QWEN2 ("qwen1.5-0.5b", 24, 1024, 16, 16, 2816, 151936, true)},
    {QWEN2 ("qwen1.5-1.8b", 24, 2048, 16, 16, 5504, 151936, false)},
    {QWEN2 ("qwen1.5-4b", 40, 2560, 20, 20, 6912, 151936, false)},
    {QWEN2 ("qwen1.5-7b", 32, 4096, 32, 32, 11008, 151936, false)},
    {QWEN2 ("qwen1.5-14b", 40, 5120, 40, 40, 13696, 152064, false)},
    {QWEN2 ("qwen1.5-32b", 64, 5120, 40, 8, 27392, 152064, false)},
    {QWEN2 ("qwen1.5-72b", 80, 8192, 64, 64, 24576, 152064, false)},
    {QWEN2 ("qwen1.5-110b", 80, 8192, 64, 8, 49152, 152064, false)},
    {SHAPE ("qwen1.5-moe-a2.7b", "qwen2_moe", 24, 2048, 16, 16, 5632, 151936),
     EXPERTS (60, 4, 1408), .shared_ffn = 5632, .shared_gate = true, .qkv_bias = true},
    {SHAPE ("qwen2-57b-a14b", "qwen2_moe", 28, 3584, 28, 4, 18944, 151936),
     EXPERTS (64, 8, 2560), .shared_ffn = 20480, .shared_gate = true, .qkv_bias = true},
    {QWEN2 ("qwen2.5-0.5b", 24, 896, 14, 2, 4864, 151936, true)},
    {QWEN2 ("qwen2.5-1.5b", 28, 1536, 12, 2, 8960, 151936, true)},
    {QWEN2 ("qwen2.5-3b", 36, 2048, 16, 2, 11008, 151936, true)},
    {QWEN2 ("qwen2.5-7b", 28, 3584, 28, 4, 18944, 152064, false)},
    {QWEN2 ("qwen2.5-14b", 48, 5120, 40, 8, 13824, 152064, false)},
    {QWEN2 ("qwen2.5-32b", 64, 5120, 40, 8, 27648, 152064, false)},
    {QWEN2 ("qwen2.5-72b", 80, 8192, 64, 8, 29568, 152064, false)},
    {QWEN3 ("qwen3-0.6b", 28, 1024, 16, 3072, true)},
    {QWEN3 ("qwen3-1.7b", 28, 2048, 16, 6144, true)},
    {QWEN3 ("qwen3-4b", 36, 2560, 32, 9728, true)},
    {QWEN3 ("qwen3-8b", 36, 4096, 32, 12288, false)},
    {QWEN3 ("qwen3-14b", 40, 5120, 40, 17408, false)},
    {QWEN3 ("qwen3-32b", 64, 5120, 64, 25600, false)},
    {HEADS ("qwen3-30b-a3b", "qwen3_moe", 48, 2048, 32, 4, 128, 6144, 151936),
     EXPERTS (128, 8, 768), .qk_norm = true},
    {HEADS ("qwen3-235b-a22b", "qwen3_moe", 94, 4096, 64, 4, 128, 12288, 151936),
     EXPERTS (128, 8, 1536), .qk_norm = true},
    {HEADS ("qwen3-coder-480b-a35b", "qwen3_moe", 62, 6144, 96, 8, 128, 8192, 151936),
     EXPERTS (160, 8, 2560), .qk_norm = true},
    {LLAMA ("deepseek-llm-7b", "llama", 30, 4096, 32, 32, 11008, 102400)},
    {LLAMA ("deepseek-llm-67b", "llama", 95, 8192, 64, 8, 22016, 102400)},
    {LLAMA ("deepseek-coder-1.3b", "llama", 24, 2048, 16, 16, 5504, 32256)},
    {LLAMA ("deepseek-coder-6.7b", "llama", 32, 4096, 32, 32, 11008, 32256)},
    {LLAMA ("deepseek-coder-33b", "llama", 62, 7168, 56, 8, 19200, 32256)},
    {SHAPE ("deepseek-moe-16b", "deepseek", 28, 2048, 16, 16, 10944, 102400),
     EXPERTS (64, 6, 1408), .shared_experts = 2, .shared_ffn = 2816, .dense_layers = 1},
    {HEADS ("deepseek-v2", "deepseek_v2", 60, 5120, 128, 128, 192, 12288, 102400), LATENT,
     EXPERTS (160, 6, 1536), .expert_groups = 8, .top_groups = 3, .shared_experts = 2,
     .shared_ffn = 3072, .dense_layers = 1},
    {HEADS ("deepseek-v2-lite", "deepseek_v2", 27, 2048, 16, 16, 192, 10944, 102400),
     LATENT_KEYS, EXPERTS (64, 6, 1408), .shared_experts = 2, .shared_ffn = 2816,
     .dense_layers = 1},
    {HEADS ("deepseek-v3", "deepseek_v3", 61, 7168, 128, 128, 192, 18432, 129280), LATENT,
     EXPERTS (256, 8, 2048), .expert_groups = 8, .top_groups = 4, .shared_experts = 1,
     .shared_ffn = 2048, .router_bias = true, .dense_layers = 3},
    {HEADS ("moonlight-16b-a3b", "deepseek_v3", 27, 2048, 16, 16, 192, 11264, 163840),
     LATENT_KEYS, EXPERTS (64, 6, 1408), .expert_groups = 1, .top_groups = 1,
     .shared_experts = 2, .shared_ffn = 2816, .router_bias = true, .dense_layers = 1},
    {HEADS ("kimi-k2", "deepseek_v3", 61, 7168, 64, 64, 192, 18432, 163840), LATENT,
     EXPERTS (384, 8, 2048), .expert_groups = 1, .top_groups = 1, .shared_experts = 1,
     .shared_ffn = 2048, .router_bias = true, .dense_layers = 1},
    {GPT_OSS ("gpt-oss-20b", 24, 32)},
    {GPT_OSS ("gpt-oss-120b", 36, 128)},
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
    {OLMO ("olmo-2-1b", "olmo2", 16, 2048, 16, 16, 8192, 100352)},
    {OLMO ("olmo-2-7b", "olmo2", 32, 4096, 32, 32, 11008, 100352)},
    {OLMO ("olmo-2-13b", "olmo2", 40, 5120, 40, 40, 13824, 100352)},
    {OLMO ("olmo-2-32b", "olmo2", 64, 5120, 40, 8, 27648, 100352)},
    {OLMO ("olmo-3-7b", "olmo3", 32, 4096, 32, 32, 11008, 100278), .window = 4096,
     .window_layers = 24},
    {SHAPE ("olmo-1b", "olmo", 16, 2048, 16, 16, 8192, 50304), .gated_mlp = true,
     .tied = true, .norm = NORM_LAYER_BARE},
    {SHAPE ("olmo-7b", "olmo", 32, 4096, 32, 32, 11008, 50304), .gated_mlp = true,
     .norm = NORM_LAYER_BARE},
    {SHAPE ("olmoe-1b-7b", "olmoe", 16, 2048, 16, 16, 1024, 50304), EXPERTS (64, 8, 1024),
     .wide_qk_norm = true},
    {NEMOTRON ("nemotron-3-8b", 32, 4096, 32, 32)},
    {NEMOTRON ("nemotron-4-15b", 32, 6144, 48, 8)},
    {NEMOTRON ("nemotron-4-340b", 96, 18432, 96, 8)},
    {STARCODER2 ("starcoder2-3b", 30, 3072, 24, 2, true)},
    {STARCODER2 ("starcoder2-7b", 32, 4608, 36, 4, true)},
    {STARCODER2 ("starcoder2-15b", 40, 6144, 48, 4, false)},
    {SHAPE ("starcoder-15.5b", "gpt_bigcode", 40, 6144, 48, 1, 24576, 49152), BIASED,
     .positions = 8192, .tied = true, .dropout = true},
    {SHAPE ("santacoder-1.1b", "gpt_bigcode", 24, 2048, 16, 1, 8192, 49280), BIASED,
     .positions = 2048, .tied = true, .dropout = true},
    {SHAPE ("stablelm-2-1.6b", "stablelm", 24, 2048, 32, 32, 5632, 100352),
     .gated_mlp = true, .qkv_bias = true, .norm = NORM_LAYER},
    {SIZES (1, 1, "command-r-35b", "cohere", 40, 8192, 64, 64, 128, 22528, 256000),
     .gated_mlp = true, .tied = true, .norm = NORM_LAYER_WEIGHT},
    {SIZES (1, 1, "command-r-plus-104b", "cohere", 64, 12288, 96, 8, 128, 33792, 256000),
     .gated_mlp = true, .tied = true, .norm = NORM_LAYER_WEIGHT, .wide_qk_norm = true},
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
};

const struct workload_model *workload_presets (int *n)
{
    *n = (int) (sizeof presets / sizeof *presets);
    return presets;
}

/* ---- the job that a model is usually trained with, where nobody says: presets' as published,
 * others' by a rule of thumb ---- */

#define USUAL_SEQ 4096
#define USUAL_TOKENS (4L << 20) /* of a step */

/* Pre-training's main part.  GPT-2: its report; GPT-3: Brown et al. 2020, Table 2.1 (tokens, over
 * 2048); Llama 2 and 3: Touvron et al. 2023, Dubey et al. 2024 (16 million tokens); DeepSeek-V2 and
 * V3: their reports, after the ramp; GPT-NeoX: Black et al. 2022 (1538, here what divides); BLOOM,
 * Falcon: their model cards. */
static const struct {
    const char *name; /* or its beginning */
    int seq, batch;   /* 0: by the rule */
} usual[] = {{"gpt2-xl", 1024, 512},       {"gpt3-175b", 2048, 1536},
             {"gpt3-", 2048, 1024},        {"llama-2-", 4096, 1024},
             {"llama-3-405b", 8192, 2048}, {"llama-3", 8192, 0},
             {"deepseek-v2", 4096, 9216},  {"deepseek-v3", 4096, 15360},
             {"gpt-neox-20b", 2048, 1536}, {"bloom-176b", 2048, 2048},
             {"falcon-40b", 2048, 1152}};
#define N_USUAL (sizeof usual / sizeof *usual)

static int least_of (int a, int b)
{
    return b > 0 && b < a ? b : a;
}

void workload_job_usual (const struct workload_model *m, struct workload_job *j,
                         struct notes *notes)
{
    size_t i = 0;
    int seq = USUAL_SEQ, batch = 1;

    while (i < N_USUAL && strncmp (m->name, usual[i].name, strlen (usual[i].name)) != 0)
        i++;
    if (i < N_USUAL)
        seq = usual[i].seq;
    seq = least_of (least_of (seq, m->positions), m->context);
    if (j->seq == 0) {
        j->seq = seq;
        notes_add (notes, "no --seq: %d tokens, as %s is usually trained", seq, m->name);
    }
    if (j->global_batch != 0)
        return;
    while (2L * batch * j->seq <= USUAL_TOKENS)
        batch *= 2;
    if (i < N_USUAL && usual[i].batch > 0 && usual[i].seq == j->seq)
        batch = usual[i].batch;
    j->global_batch = batch;
    notes_add (notes, "no --global-batch: %d sequences, %.1f million tokens a step",
               batch, (double) batch * j->seq / 1e6);
}
