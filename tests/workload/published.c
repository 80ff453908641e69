/* Published parameter counts, to the last, of models on the Hugging Face hub by the fields
 * of their config.json. */
#include "tests/lib/fields.h"

/* Where a count was read.  Weights stored twice (Qwen3-0.6B's head) are counted once, the
 * layers of multi-token prediction are not: the hub's count of GLM-4.5 is 5,539,962,272
 * higher, that of GLM-4.5-Air 3,616,573,568, both of which are those layers to the last.
 * keras-hub drops OPT's two spare positions and the 64 words that Gemma 3's larger models have
 * for images. */
enum source {
    HUB,   /* the hub's own safetensors.total, in two public lists of it: an audit of
              2026-09-25 that names the API, and GIMMICK's get_safetensors_metadata */
    KERAS, /* "params" in keras-hub's *_presets.py */
    CODE,  /* printed or asserted by public code that loaded the weights: llama.cpp's
              n_params, xtuner's and ChatGLM's logs, sums over tensors */
    SUM /* no copy of the hub's count was found to check it by: what the formula gives, so
              that a change shows */
};

/* Attention in the layers 5, 15, 25 and 35; in every eighth one. */
#define TEN                                                                         \
    "'mamba','mamba','mamba','mamba','mamba','attention','mamba','mamba','mamba','" \
    "mamba'"
#define GRANITE_LAYERS TEN "," TEN "," TEN "," TEN
#define EIGHTHS "0,0,0,0,0,0,0,1"

static const struct {
    const char *name, *fields; /* with ' for "; NULL: of the preset */
    double params;
    enum source source;
} known[] = {
    {"gpt2-xl", NULL, 1557611200, HUB},
    {"llama-2-7b", NULL, 6738415616, HUB},
    {"llama-2-13b", NULL, 13015864320, HUB},
    {"llama-2-70b", NULL, 68976648192, HUB},
    {"llama-3-8b", NULL, 8030261248, HUB},
    {"llama-3-70b", NULL, 70553706496, HUB},
    {"llama-3-405b", NULL, 405853388800, HUB},
    {"mistral-7b", NULL, 7241732096, HUB},
    {"mixtral-8x7b", NULL, 46702792704, HUB},
    {"mixtral-8x22b", NULL, 140620634112, HUB},
    {"qwen2.5-7b", NULL, 7615616512, HUB},
    {"qwen2.5-72b", NULL, 72706203648, HUB},
    {"qwen3-235b-a22b", NULL, 235093634560, HUB},
    {"deepseek-v2", NULL, 235741434880, HUB},
    {"deepseek-v3", NULL, 671026419200, HUB}, /* without its multi-token module */
    {"gpt-neox-20b", NULL, 20554567680, HUB},
    {"bloom-176b", NULL, 176247271424, HUB},
    {"falcon-40b", NULL, 41303293952, HUB},
    {"llama-3.2-1b", SHAPE ("llama", 2048, 16, 32, 8, 8192, 128256, TIED), 1235814400,
     HUB},
    {"gemma-2b", SHAPE ("gemma", 2048, 18, 8, 1, 16384, 256000, HEADS (256)), 2506172416,
     HUB},
    {"gemma-7b", NULL, 8537680896, HUB},
    {"gemma-2-2b", SHAPE ("gemma2", 2304, 26, 8, 4, 9216, 256000, HEADS (256)),
     2614341888, HUB},
    {"gemma-2-9b", NULL, 9241705984, HUB},
    {"gemma-2-27b", NULL, 27227128320, HUB},
    {"qwen2-0.5b", SHAPE ("qwen2", 896, 24, 14, 2, 4864, 151936, TIED), 494032768, HUB},
    {"qwen3-0.6b", SHAPE ("qwen3", 1024, 28, 16, 8, 3072, 151936, HEADS (128) TIED),
     596049920, HUB},
    {"qwen3-8b", SHAPE ("qwen3", 4096, 36, 32, 8, 12288, 151936, HEADS (128)), 8190735360,
     HUB},
    {"qwen3-30b-a3b",
     SHAPE ("qwen3_moe", 2048, 48, 32, 4, 6144, 151936,
            ",'head_dim':128,'num_experts':128,'num_experts_per_tok':8,"
            "'moe_intermediate_size':768,'decoder_sparse_step':1,'mlp_only_layers':[]"),
     30532122624, HUB},
    {"qwen1.5-moe-a2.7b",
     SHAPE ("qwen2_moe", 2048, 24, 16, 16, 5632, 151936,
            ",'num_experts':60,'num_experts_per_tok':4,'moe_intermediate_size':1408,"
            "'shared_expert_intermediate_size':5632"),
     14315784192, HUB},
    {"deepseek-v2-lite",
     SHAPE ("deepseek_v2", 2048, 27, 16, 16, 10944, 102400,
            ",'q_lora_rank':null,'kv_lora_rank':512,'qk_rope_head_dim':64,"
            "'qk_nope_head_dim':128,'v_head_dim':128,'n_routed_experts':64,"
            "'n_shared_experts':2,'num_experts_per_tok':6,'moe_intermediate_size':1408,"
            "'first_k_dense_replace':1,'moe_layer_freq':1"),
     15706484224, HUB},
    {"falcon-7b",
     "'model_type':'falcon','hidden_size':4544,'num_hidden_layers':32,"
     "'num_attention_heads':71,'vocab_size':65024,'multi_query':true,"
     "'parallel_attn':true,'new_decoder_architecture':false,'bias':false",
     6921720704, HUB},
    /* The same, and Falcon-40B, as they were published first. */
    {"falcon-7b, old",
     "'model_type':'RefinedWebModel','hidden_size':4544,'n_layer':32,'n_head':71,"
     "'vocab_size':65024,'multi_query':true,'parallel_attn':true,'bias':false",
     6921720704, HUB},
    {"falcon-40b, old",
     "'model_type':'RefinedWeb','hidden_size':8192,'n_layer':60,'n_head':128,"
     "'n_head_kv':8,'vocab_size':65024,'parallel_attn':true,'bias':false",
     41303293952, HUB},
    {"phi-3-mini", SHAPE ("phi3", 3072, 32, 32, 32, 8192, 32064), 3821079552, HUB},
    /* A head's width that the file leaves to transformers' default. */
    {"gemma-2-2b, no head_dim", SHAPE ("gemma2", 2304, 26, 8, 4, 9216, 256000),
     2614341888, HUB},
    /* The language model of a multimodal one. */
    {"llama in llava",
     "'model_type':'llava','vision_config':{},'text_config':{" SHAPE (
         "llama", 2048, 16, 32, 8, 8192, 128256, TIED) "}",
     1235814400, HUB},
    {"pythia-70m",
     "'model_type':'gpt_neox','hidden_size':512,'num_hidden_layers':6,"
     "'num_attention_heads':8,'intermediate_size':2048,'vocab_size':50304",
     70426624, HUB},
    {"gpt2",
     "'model_type':'gpt2','n_embd':768,'n_layer':12,'n_head':12,'n_positions':1024,"
     "'vocab_size':50257",
     124439808, HUB},
    {"gpt2-medium", NULL, 354823168, HUB},
    {"bloom-560m",
     "'model_type':'bloom','hidden_size':1024,'n_layer':24,'n_head':16,"
     "'vocab_size':250880",
     559214592, HUB},
    {"bloom-560m, as on the hub",
     "'model_type':'bloom','n_embed':1024,'n_layer':24,'num_attention_heads':16,"
     "'n_inner':null,'vocab_size':250880",
     559214592, HUB},
    {"bloom-7b1", NULL, 7069016064, HUB},
    {"t5-base",
     "'model_type':'t5','d_model':768,'num_layers':12,'num_heads':12,'d_kv':64,"
     "'d_ff':3072,'vocab_size':32128",
     222903552, HUB},
    {"t5-small", NULL, 60506624, HUB},
    {"t5-v1_1-base",
     "'model_type':'t5','d_model':768,'num_layers':12,'num_heads':12,'d_kv':64,"
     "'d_ff':2048,'vocab_size':32128,'feed_forward_proj':'gated-gelu',"
     "'tie_word_embeddings':false",
     247577856, HUB},
    {"mpt-7b",
     "'model_type':'mpt','d_model':4096,'n_layers':32,'n_heads':32,'vocab_size':50432,"
     "'max_seq_len':2048,'expansion_ratio':4,'no_bias':true,"
     "'attn_config':{'alibi':true}",
     6649286656, SUM},
    {"dbrx",
     "'model_type':'dbrx','d_model':6144,'n_layers':40,'n_heads':48,"
     "'vocab_size':100352,'max_seq_len':32768,'attn_config':{'kv_n_heads':8,"
     "'clip_qkv':8},'ffn_config':{'ffn_hidden_size':10752,'moe_num_experts':16,"
     "'moe_top_k':4}",
     131596523520, SUM},
    {"llama-3.2-3b", SHAPE ("llama", 3072, 28, 24, 8, 8192, 128256, HEADS (128) TIED),
     3212749824, HUB},
    {"smollm2-135m", NULL, 134515008, HUB},
    {"smollm2-360m", NULL, 361821120, HUB},
    {"smollm2-1.7b", NULL, 1711376384, HUB},
    {"smollm3-3b", SHAPE ("smollm3", 2048, 36, 16, 4, 11008, 128256), 3075098624, HUB},
    {"mistral-7b-v0.3", SHAPE ("mistral", 4096, 32, 32, 8, 14336, 32768), 7248023552,
     HUB},
    {"mistral-small-24b", SHAPE ("mistral", 5120, 40, 32, 8, 32768, 131072, HEADS (128)),
     23572403200, HUB},
    {"qwen2.5-1.5b", NULL, 1543714304, HUB},
    {"qwen2.5-3b", NULL, 3085938688, HUB},
    {"qwen2.5-32b", SHAPE ("qwen2", 5120, 64, 40, 8, 27648, 152064), 32763876352, HUB},
    {"qwen3-4b", SHAPE ("qwen3", 2560, 36, 32, 8, 9728, 151936, TIED), 4022468096, HUB},
    {"qwen3-32b", SHAPE ("qwen3", 5120, 64, 64, 8, 25600, 151936), 32762123264, HUB},
    {"gemma-3-1b", SHAPE ("gemma3_text", 1152, 26, 4, 1, 6912, 262144, HEADS (256)),
     999885952, HUB},
    {"gemma-3-4b",
     "'model_type':'gemma3','text_config':{'model_type':'gemma3_text',"
     "'hidden_size':2560,'intermediate_size':10240,'num_hidden_layers':34,"
     "'sliding_window':1024},'vision_config':{}",
     3880263168, KERAS},
    {"phi-4", NULL, 14659507200, HUB},
    {"phi-4-mini", SHAPE ("phi3", 3072, 32, 24, 8, 8192, 200064, TIED), 3836021760, HUB},
    {"gpt-oss-20b",
     SHAPE ("gpt_oss", 2880, 24, 64, 8, 2880, 201088,
            ",'head_dim':64,'num_local_experts':32,'num_experts_per_tok':4"),
     20914757184, HUB},
    {"olmo-2-7b", SHAPE ("olmo2", 4096, 32, 32, 32, 11008, 100352), 7298617344, HUB},
    {"granite-3.3-2b", SHAPE ("granite", 2048, 40, 32, 8, 8192, 49159, TIED), 2533539840,
     HUB},
    {"granite-3.3-8b", NULL, 8170864640, HUB},
    {"aya-expanse-8b", SHAPE ("cohere", 4096, 32, 32, 8, 14336, 256000), 8028033024, HUB},
    {"glm-4.5-air",
     SHAPE ("glm4_moe", 4096, 46, 96, 8, 10944, 151552,
            ",'head_dim':128,'attention_bias':true,'use_qk_norm':false,"
            "'n_routed_experts':128,'n_shared_experts':1,'num_experts_per_tok':8,"
            "'n_group':1,'topk_group':1,'moe_intermediate_size':1408,"
            "'first_k_dense_replace':1,'num_nextn_predict_layers':1"),
     106852251264, CODE},
    {"glm-4.5",
     SHAPE ("glm4_moe", 5120, 92, 96, 8, 12288, 151552,
            ",'head_dim':128,'attention_bias':true,'use_qk_norm':true,"
            "'n_routed_experts':160,'n_shared_experts':1,'num_experts_per_tok':8,"
            "'n_group':1,'topk_group':1,'moe_intermediate_size':1536,"
            "'first_k_dense_replace':3"),
     352797829024, CODE},
    {"kimi-k2",
     SHAPE ("kimi_k2", 7168, 61, 64, 64, 18432, 163840,
            ",'q_lora_rank':1536,'kv_lora_rank':512,'qk_rope_head_dim':64,"
            "'qk_nope_head_dim':128,'v_head_dim':128,'n_routed_experts':384,"
            "'n_shared_experts':1,'num_experts_per_tok':8,'n_group':1,'topk_group':1,"
            "'moe_intermediate_size':2048,'first_k_dense_replace':1"),
     1026408232448, CODE},
    {"internlm2-7b", SHAPE ("internlm2", 4096, 32, 32, 8, 14336, 92544, ",'bias':false"),
     7737708544, HUB},
    {"internlm2-20b", NULL, 19861149696, HUB},
    {"minimax-m2",
     SHAPE ("minimax", 3072, 62, 48, 8, 1536, 200064,
            ",'head_dim':128,'num_local_experts':256,'num_experts_per_tok':8,"
            "'attn_type_list':[1,1]"),
     228689764864, HUB},
    {"granite-4.0-1b",
     SHAPE ("granitemoehybrid", 2048, 40, 16, 4, 4096, 100352,
            ",'shared_intermediate_size':4096,'num_local_experts':0,"
            "'num_experts_per_tok':0,'layer_types':['attention','attention'],"
            "'mamba_d_state':128" TIED),
     1631750144, HUB},
    {"mamba2-2.7b",
     "'model_type':'mamba2','hidden_size':2560,'num_hidden_layers':64,'num_heads':80,"
     "'head_dim':64,'n_groups':1,'state_size':128,'vocab_size':50288" TIED,
     2702599680, SUM},
    {"mamba2-130m",
     "'model_type':'mamba2','hidden_size':768,'num_hidden_layers':24,'num_heads':24,"
     "'head_dim':64,'n_groups':1,'state_size':128,'vocab_size':50288" TIED,
     128989632, SUM},
    {"nemotron-nano-9b-v2",
     SHAPE ("nemotron_h", 4480, 56, 40, 8, 15680, 131072,
            ",'head_dim':128,"
            "'hybrid_override_pattern':'M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-"
            "M-M-M-M-',"
            "'mamba_num_heads':128,'mamba_head_dim':80,'n_groups':8,"
            "'ssm_state_size':128,'conv_kernel':4,'chunk_size':128"),
     8888227328, HUB},
    {"nemotron-h-8b",
     "'model_type':'nemotron_h','hidden_size':4096,'vocab_size':131072,"
     "'hybrid_override_pattern':'M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-'",
     8100852736, SUM},
    {"nemotron-3-nano-30b-a3b",
     SHAPE ("nemotron_h", 2688, 52, 32, 2, 1856, 131072,
            ",'head_dim':128,"
            "'hybrid_override_pattern':'MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*"
            "EMEMEMEME',"
            "'mamba_num_heads':64,'mamba_head_dim':64,'n_groups':8,"
            "'ssm_state_size':128,'n_routed_experts':128,'num_experts_per_tok':6,"
            "'n_shared_experts':1,'n_group':1,'topk_group':1,"
            "'moe_intermediate_size':1856,'moe_shared_expert_intermediate_size':3712"),
     31577940288, CODE},
    {"qwen3-next-80b-a3b",
     SHAPE ("qwen3_next", 2048, 48, 16, 2, 5120, 151936,
            ",'head_dim':256,'num_experts':512,'num_experts_per_tok':10,"
            "'moe_intermediate_size':512,'shared_expert_intermediate_size':512,"
            "'full_attention_interval':4,'linear_num_value_heads':32,"
            "'linear_num_key_heads':16,'linear_key_head_dim':128,"
            "'linear_value_head_dim':128,'linear_conv_kernel_dim':4"),
     79674391296, CODE},
    {"qwen3.5-2b",
     SHAPE ("qwen3_5_text", 2048, 24, 8, 2, 6144, 248320,
            ",'head_dim':256,'linear_num_value_heads':16,'linear_num_key_heads':16" TIED),
     1881825088, CODE},
    {"granite-4.0-h-small",
     SHAPE ("granitemoehybrid", 4096, 40, 32, 8, 768, 100352,
            ",'shared_intermediate_size':1536,'num_local_experts':72,"
            "'num_experts_per_tok':10,'layer_types':[" GRANITE_LAYERS
            "],'mamba_n_heads':128,'mamba_d_head':64,'mamba_d_state':128,"
            "'mamba_n_groups':1,'mamba_d_conv':4,'mamba_expand':2" TIED),
     32207337984, HUB},
    {"granite-4.0-h-tiny",
     SHAPE ("granitemoehybrid", 1536, 40, 12, 4, 512, 100352,
            ",'shared_intermediate_size':1024,'num_local_experts':64,"
            "'num_experts_per_tok':6,'layer_types':[" GRANITE_LAYERS
            "],'mamba_n_heads':48,'mamba_d_head':'auto','mamba_d_state':128,"
            "'mamba_n_groups':1" TIED),
     6939037248, SUM},
    {"bamba-9b",
     SHAPE ("bamba", 4096, 32, 32, 8, 14336, 128256,
            ",'attn_layer_indices':[9,18,27],'mamba_n_heads':128,'mamba_d_head':64,"
            "'mamba_n_groups':1,'mamba_d_state':128"),
     9780235392, SUM},
    {"falcon-h1-0.5b",
     SHAPE ("falcon_h1", 1024, 36, 8, 2, 2048, 32784,
            ",'head_dim':64,'mamba_d_ssm':1536,'mamba_n_heads':24,'mamba_d_head':64,"
            "'mamba_n_groups':1,'mamba_d_state':128"),
     521411104, SUM},
    {"minimax-text-01",
     SHAPE ("minimax_text_01", 6144, 80, 64, 8, 9216, 200064,
            ",'head_dim':128,'num_local_experts':32,'num_experts_per_tok':2,"
            "'attn_type_list':[" EIGHTHS "," EIGHTHS "," EIGHTHS "," EIGHTHS "," EIGHTHS
            "," EIGHTHS "," EIGHTHS "," EIGHTHS "," EIGHTHS "," EIGHTHS "]"),
     456089655296, HUB},
    {"lfm2-1.2b",
     SHAPE ("lfm2", 2048, 16, 32, 8, 12288, 65536,
            ",'full_attn_idxs':[2,5,8,10,12,14],'conv_L_cache':3"),
     1170340608, CODE},
    {"qwen3-1.7b", NULL, 1720574976, KERAS},
    {"qwen3-14b", NULL, 14768307200, KERAS},
    {"gemma-3-270m", SHAPE ("gemma3_text", 640, 18, 4, 1, 2048, 262144, HEADS (256)),
     268098176, KERAS},
    {"gemma-3-27b", NULL, 27009346304, KERAS},
    {"gpt-oss-120b", NULL, 116829156672, KERAS},
    {"opt-125m",
     "'model_type':'opt','hidden_size':768,'num_hidden_layers':12,"
     "'num_attention_heads':12,'ffn_dim':3072,'max_position_embeddings':2048,"
     "'vocab_size':50272",
     125239296, KERAS},
    {"opt-1.3b", NULL, 1315758080, KERAS},
    {"gpt2-large", NULL, 774030080, KERAS},
    {"tinyllama-1.1b", SHAPE ("llama", 2048, 22, 32, 4, 5632, 32000), 1100048384, CODE},
    {"mistral-nemo", NULL, 12247782400, CODE},
    {"yi-6b", NULL, 6061035520, CODE},
    {"yi-34b", NULL, 34388917248, CODE},
    {"deepseek-coder-1.3b", NULL, 1346471936, CODE},
    {"qwen2.5-14b", NULL, 14770033664, CODE},
    {"qwen3-coder-480b-a35b",
     SHAPE ("qwen3_moe", 6144, 62, 96, 8, 8192, 151936,
            ",'head_dim':128,'num_experts':160,'num_experts_per_tok':8,"
            "'moe_intermediate_size':2560"),
     480154875392, CODE},
    {"phi-2", SHAPE ("phi", 2560, 32, 32, 32, 10240, 51200, ",'qk_layernorm':false"),
     2779683840, CODE},
    {"phi-1.5", SHAPE ("phi", 2048, 24, 32, 32, 8192, 51200), 1418270720, CODE},
    {"phi-3-medium", NULL, 13960238080, CODE},
    {"olmo-1b", SHAPE ("olmo", 2048, 16, 16, 16, 8192, 50304, TIED), 1176764416, CODE},
    {"olmo-2-13b", NULL, 13716198400, CODE},
    {"olmo-2-32b", NULL, 32234279936, CODE},
    {"olmo-3-7b", SHAPE ("olmo3", 4096, 32, 32, 32, 11008, 100278), 7298011136, CODE},
    {"olmoe-1b-7b",
     SHAPE ("olmoe", 2048, 16, 16, 16, 1024, 50304,
            ",'num_experts':64,'num_experts_per_tok':8"),
     6919161856, CODE},
    {"granite-3.1-1b-a400m",
     SHAPE ("granitemoe", 1024, 24, 16, 8, 512, 49155,
            ",'num_local_experts':32,'num_experts_per_tok':8" TIED),
     1334628352, CODE},
    {"qwen-7b",
     "'model_type':'qwen','hidden_size':4096,'num_hidden_layers':32,"
     "'num_attention_heads':32,'intermediate_size':22016,'vocab_size':151936,"
     "'no_bias':true,'tie_word_embeddings':false",
     7721324544, CODE},
    {"glm-4-9b-0414",
     SHAPE ("glm4", 4096, 40, 32, 2, 13696, 151552,
            ",'head_dim':128,'attention_bias':true"),
     9400279040, CODE},
    {"chatglm3-6b",
     "'model_type':'chatglm','hidden_size':4096,'num_layers':28,"
     "'num_attention_heads':32,'multi_query_group_num':2,'kv_channels':128,"
     "'ffn_hidden_size':13696,'padded_vocab_size':65024,'add_qkv_bias':true",
     6243584000, CODE},
    {"glm-4-9b", NULL, 9399951360, CODE},
    {"deepseek-moe-16b",
     SHAPE ("deepseek", 2048, 28, 16, 16, 10944, 102400,
            ",'n_routed_experts':64,'n_shared_experts':2,'num_experts_per_tok':6,"
            "'moe_intermediate_size':1408,'first_k_dense_replace':1"),
     16375728128, CODE},
    {"ernie-4.5-0.3b",
     SHAPE ("ernie4_5", 1024, 18, 16, 2, 3072, 103424,
            ",'head_dim':128,'use_bias':false"),
     360748032, CODE},
    {"seed-oss-36b",
     SHAPE ("seed_oss", 5120, 64, 80, 8, 27648, 155136,
            ",'head_dim':128,'attention_bias':true,'attention_out_bias':false"),
     36151104512, CODE},
    {"llama-4-maverick",
     SHAPE ("llama4_text", 5120, 48, 40, 8, 8192, 202048,
            ",'head_dim':128,'intermediate_size_mlp':16384,'num_local_experts':128,"
            "'num_experts_per_tok':1,'interleave_moe_layer_step':2"),
     400711848960, CODE},
    {"gpt-j-6b",
     "'model_type':'gptj','n_embd':4096,'n_layer':28,'n_head':16,'vocab_size':50400,"
     "'n_inner':null,'tie_word_embeddings':false",
     6050882784, CODE},
    {"starcoder-15.5b",
     "'model_type':'gpt_bigcode','n_embd':6144,'n_layer':40,'n_head':48,"
     "'n_inner':24576,'n_positions':8192,'vocab_size':49152,'multi_query':true",
     15517456384, CODE},
    {"stablelm-2-1.6b",
     SHAPE ("stablelm", 2048, 24, 32, 32, 5632, 100352, ",'use_qkv_bias':true"),
     1644515328, CODE},
    {"pythia-160m", NULL, 162322944, CODE},
    {"pythia-1.4b", NULL, 1414647808, CODE},
    {"codestral-22b", NULL, 22247282688, SUM},
    {"deepseek-coder-6.7b", NULL, 6740512768, SUM},
    {"deepseek-llm-7b", NULL, 6910365696, SUM},
    {"falcon3-7b", SHAPE ("llama", 3072, 28, 12, 4, 23040, 131072, HEADS (256)),
     7455550464, SUM},
    {"phi-3.5-moe",
     SHAPE ("phimoe", 4096, 32, 32, 8, 6400, 32064,
            ",'attention_bias':true,'lm_head_bias':true,'num_local_experts':16,"
            "'num_experts_per_tok':2"),
     41873153344, SUM},
    {"olmo-7b", SHAPE ("olmo", 4096, 32, 32, 32, 11008, 50304), 6888095744, SUM},
    {"olmo-2-1b", NULL, 1484916736, SUM},
    {"granite-3.1-3b-a800m",
     SHAPE ("granitemoe", 1536, 32, 24, 8, 512, 49155,
            ",'num_local_experts':40,'num_experts_per_tok':8" TIED),
     3298793472, SUM},
    {"command-r-35b", NULL, 34980831232, SUM},
    {"command-r-plus-104b",
     SHAPE ("cohere", 12288, 64, 96, 8, 33792, 256000, ",'use_qk_norm':true"),
     103810674688, SUM},
    {"command-a", SHAPE ("cohere2", 12288, 64, 96, 8, 36864, 256000), 111057580032, SUM},
    {"starcoder2-3b",
     SHAPE ("starcoder2", 3072, 30, 24, 2, 12288, 49152, ",'use_bias':true"), 3030371328,
     SUM},
    {"starcoder2-7b", NULL, 7173923840, SUM},
    {"starcoder2-15b",
     SHAPE ("starcoder2", 6144, 40, 48, 4, 24576, 49152,
            ",'use_bias':true,'tie_word_embeddings':false"),
     15957889024, SUM},
    {"internlm3-8b",
     SHAPE ("internlm3", 4096, 48, 32, 2, 10240, 128512,
            ",'qkv_bias':false,'bias':false,'head_dim':128"),
     8804241408, SUM},
    {"ernie-4.5-21b",
     SHAPE ("ernie4_5_moe", 2560, 28, 20, 4, 12288, 103424,
            ",'use_bias':false,'moe_num_experts':64,'moe_k':6,"
            "'moe_intermediate_size':1536,'moe_num_shared_experts':2,"
            "'moe_layer_start_index':1,'moe_layer_interval':1,'moe_layer_end_index':-1"),
     21825437888, SUM},
    {"hunyuan-a13b",
     SHAPE ("hunyuan_v1_moe", 4096, 32, 32, 8, 3072, 128167,
            ",'attention_bias':false,'head_dim':128,'num_experts':64,'moe_topk':[8,8],"
            "'moe_intermediate_size':[3072,3072],'num_shared_expert':[1,1]" TIED),
     80393183232, SUM},
    {"hunyuan-0.5b",
     SHAPE ("hunyuan_v1_dense", 1024, 24, 16, 8, 3584, 120818, HEADS (128) TIED),
     539010048, SUM},
    {"opt-6.7b", NULL, 6658473984, SUM},
    {"gpt-neo-125m",
     "'model_type':'gpt_neo','hidden_size':768,'num_layers':12,'num_heads':12,"
     "'max_position_embeddings':2048,'vocab_size':50257,'intermediate_size':null",
     125198592, SUM},
    {"gpt-neo-1.3b",
     "'model_type':'gpt_neo','hidden_size':2048,'num_layers':24,'num_heads':16,"
     "'max_position_embeddings':2048,'vocab_size':50257",
     1315575808, SUM},
    {"santacoder-1.1b", NULL, 1124886528, SUM},
    {"stablelm-3b-4e1t", SHAPE ("stablelm", 2560, 32, 32, 32, 6912, 50304), 2795443200,
     SUM},
    {"exaone-3.5-7.8b",
     "'model_type':'exaone','hidden_size':4096,'num_layers':32,"
     "'num_attention_heads':32,'num_key_value_heads':8,'intermediate_size':14336,"
     "'vocab_size':102400",
     7818448896, SUM},
    {"exaone-4-32b", SHAPE ("exaone4", 5120, 64, 40, 8, 27392, 102400, HEADS (128)),
     32003216384, SUM},
    {"baichuan-7b",
     "'model_type':'baichuan','hidden_size':4096,'num_hidden_layers':32,"
     "'num_attention_heads':32,'intermediate_size':11008,'vocab_size':64000",
     7000559616, SUM},
    {"dots.llm1",
     SHAPE ("dots1", 4096, 62, 32, 32, 10944, 152064,
            ",'head_dim':128,'n_routed_experts':128,'n_shared_experts':2,"
            "'num_experts_per_tok':6,'moe_intermediate_size':1408,"
            "'first_k_dense_replace':1,'n_group':1,'topk_group':1"),
     142774381696, SUM},
    {"glm-4.7-flash",
     SHAPE ("glm4_moe_lite", 2048, 47, 20, 20, 10240, 154880,
            ",'q_lora_rank':768,'kv_lora_rank':512,'qk_rope_head_dim':64,"
            "'qk_nope_head_dim':192,'v_head_dim':256,'n_routed_experts':64,"
            "'n_shared_experts':1,'num_experts_per_tok':4,'n_group':1,'topk_group':1,"
            "'moe_intermediate_size':1536,'first_k_dense_replace':1"),
     29943393920, SUM},
    {"distilgpt2",
     "'model_type':'gpt2','n_embd':768,'n_layer':6,'n_head':12,'n_positions':1024,"
     "'vocab_size':50257",
     81912576, SUM},
    {"pythia-6.9b", NULL, 6857302016, SUM},
    {"ling-mini-2.0",
     SHAPE ("bailing_moe_v2", 2048, 20, 16, 4, 5120, 157184,
            ",'head_dim':128,'num_experts':256,'num_shared_experts':1,"
            "'num_experts_per_tok':8,'n_group':8,'topk_group':4,"
            "'moe_intermediate_size':512,'first_k_dense_replace':1"),
     16255643392, SUM},
    {"ling-lite",
     SHAPE ("bailing_moe", 2048, 28, 16, 4, 5632, 126464,
            ",'num_experts':64,'num_experts_per_tok':6,'moe_intermediate_size':1408,"
            "'num_shared_experts':2,'use_bias':false"),
     16801974272, SUM},
    {"lfm2-8b-a1b",
     SHAPE ("lfm2_moe", 2048, 24, 32, 8, 7168, 65536,
            ",'num_experts':32,'num_experts_per_tok':4,'moe_intermediate_size':1792,"
            "'num_dense_layers':2,'layer_types':['conv','conv','full_attention','conv',"
            "'conv','conv','full_attention','conv','conv','conv','full_attention',"
            "'conv','conv','conv','full_attention','conv','conv','conv',"
            "'full_attention','conv','conv','full_attention','conv','conv']"),
     8339930560, SUM},
    {"apertus-8b", SHAPE ("apertus", 4096, 32, 32, 8, 21504, 131072), 8053338176, SUM},
    {"bitnet-b1.58-2b-4t", SHAPE ("bitnet", 2560, 30, 20, 5, 6912, 128256), 2412820480,
     SUM},
    {"persimmon-8b",
     SHAPE ("persimmon", 4096, 36, 64, 64, 16384, 262144, ",'qk_layernorm':true"),
     9397175296, SUM},
    {"minicpm3-4b",
     SHAPE ("minicpm3", 2560, 62, 40, 40, 6400, 73448,
            ",'q_lora_rank':768,'kv_lora_rank':256,'qk_nope_head_dim':64,"
            "'qk_rope_head_dim':32"),
     4073875968, SUM},
    {"k-exaone-236b-a23b",
     SHAPE ("exaone_moe", 6144, 48, 64, 8, 18432, 153600,
            ",'head_dim':128,'num_experts':128,'num_experts_per_tok':8,"
            "'moe_intermediate_size':2048,'num_shared_experts':1,"
            "'first_k_dense_replace':1,'n_group':1,'topk_group':1"),
     236571156352, SUM},
    {"trinity-mini",
     SHAPE ("afmoe", 2048, 32, 32, 4, 6144, 200192,
            ",'head_dim':128,'num_experts':128,'num_experts_per_tok':8,"
            "'moe_intermediate_size':1024,'num_shared_experts':1,'num_dense_layers':2"),
     26123974400, SUM},
    {"flexolmo-7x7b",
     SHAPE ("flex_olmo", 4096, 32, 32, 32, 11008, 100352,
            ",'num_experts':7,'num_experts_per_tok':5"),
     33270665216, SUM},
    {"the first of cohere2_moe", /* transformers' defaults, and a dense layer */
     SHAPE ("cohere2_moe", 8192, 40, 64, 8, 22528, 256000,
            ",'num_experts':8,'num_experts_per_tok':2,'num_shared_experts':1,"
            "'prefix_dense_intermediate_size':24576,'mlp_layer_types':['dense']"),
     203074314240, SUM},
    {"telechat-7b",
     "'model_type':'telechat','hidden_size':4096,'n_layer':30,'n_head':32,"
     "'ffn_hidden_size':12288,'vocab_size':160256",
     7856427008, SUM},
    {"telechat2-7b", SHAPE ("telechat2", 4096, 30, 32, 32, 12288, 160256), 7856427008,
     SUM},
    {"mamba2-2.7b, its authors' file",
     "'d_model':2560,'d_intermediate':0,'n_layer':64,'vocab_size':50277,"
     "'ssm_cfg':{'layer':'Mamba2'},'attn_layer_idx':[],'attn_cfg':{},'rms_norm':true,"
     "'pad_vocab_size_multiple':16",
     2702599680, SUM},
};

/* The count, the same of the preset of that name, and again from what a plan keeps of the model. */
TEST (counts)
{
    int checked = 0;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct workload_model *preset = workload_preset_find (known[i].name);
        struct workload_model m, back;
        struct error err = {""};
        json_t *again;

        if (known[i].fields)
            ok (read_fields (known[i].fields, &m, NULL, &err), &err);
        else
            m = *preset;
        if (preset && workload_model_params (preset) != workload_model_params (&m))
            fail_msg ("%s: the preset is another model", known[i].name);
        if (fabs (workload_model_params (&m) - known[i].params) > 0.5)
            fail_msg ("%s: %.0f parameters, published %.0f", known[i].name,
                      workload_model_params (&m), known[i].params);
        again = workload_model_to_json (&m);
        ok (workload_model_from_json (again, "f", "m", &back, NULL, &err), &err);
        CLOSE (workload_active_params (&back), workload_active_params (&m), 0);
        CLOSE (workload_layer_params (&back, 2), workload_layer_params (&m, 2), 0);
        CLOSE (workload_head_params (&back, 1, true), workload_head_params (&m, 1, true),
               0);
        if (workload_model_params (&back) != workload_model_params (&m) ||
            back.head_dim != m.head_dim || back.dropout != m.dropout ||
            back.norm != m.norm || back.ffn != m.ffn)
            fail_msg ("%s: not the same model when read back", known[i].name);
        json_decref (again);
        checked += known[i].source != SUM;
    }
    assert_true (checked >= 100);
}

/* What ranks hold of a tensor-parallel layer adds up to it, but for what each holds whole:
 * sinks and wide norms are shared out like the heads, biases of rows are not. */
TEST (shares)
{
    static const struct {
        const char *name;
        double whole; /* on every rank */
    } part[] = {{"gpt-oss-20b",
                 2 * 2880 + 2880 + 2880 * 32 + 32}, /* norms, output's bias, router */
                {"olmo-2-13b", 2 * 5120},
                {"phi-2", 2 * 2560 + 2 * 2560}}; /* a LayerNorm, the biases of two rows */

    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
        struct workload_model m = model_of (part[k].name);
        double (*held) (const struct workload_model *, int) =
            m.experts > 0 ? workload_expert_layer_params : workload_layer_params;

        CLOSE (4 * (held (&m, 4) - part[k].whole), held (&m, 1) - part[k].whole, 1e-12);
    }
}

/* The bias of the output matrix is cut with its columns, and a second copy of a tied matrix
 * has it, too; rows of positions that no token has are held with the others. */
TEST (ends)
{
    struct workload_model m = model_of ("gpt2-xl");
    double head = workload_head_params (&m, 4, false),
           embedding = workload_embedding_params (&m, 4);

    m.head_bias = true;
    CLOSE (workload_head_params (&m, 4, false) - head, 50688 / 4.0, 1e-12);
    assert_true (workload_head_params (&m, 4, true) == 2.0 * m.hidden + 50688 / 4);
    m.spare_positions = 2;
    CLOSE (workload_embedding_params (&m, 4) - embedding, 2.0 * m.hidden, 1e-12);
}
