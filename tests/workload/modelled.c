/* Parameter counts summed by hand over the modules of transformers' modeling_*.py, of models for
 * which no published count was found: families that differ from another in one thing, and parts of
 * multimodal models, which may leave out what their type has anyway. */
#include "tests/lib/fields.h"

#define PART(TEXT, ...) \
    "'model_type':'any','vision_config':{},'text_config':{" TEXT "}" __VA_ARGS__
#define MLA(Q, KV, ROPE, NOPE, V)                                            \
    ",'q_lora_rank':" #Q ",'kv_lora_rank':" #KV ",'qk_rope_head_dim':" #ROPE \
    ",'qk_nope_head_dim':" #NOPE ",'v_head_dim':" #V
/* DeepSeek's experts: how many, of a token, shared ones, their width, dense layers. */
#define ROUTED(N, K, SHARED, F, DENSE)                            \
    ",'n_routed_experts':" #N ",'num_experts_per_tok':" #K        \
    ",'n_shared_experts':" #SHARED ",'moe_intermediate_size':" #F \
    ",'first_k_dense_replace':" #DENSE
#define EXPERTS(N, K, F) \
    ",'num_experts':" #N ",'num_experts_per_tok':" #K ",'moe_intermediate_size':" #F

static const struct {
    const char *name, *fields; /* with ' for " */
    double params;
    int notes; /* but for that of the vision part */
} known[] = {
    {"Qwen3-Omni-30B-A3B's thinker",
     "'model_type':'any','thinker_config':{'text_config':{" SHAPE (
         "qwen3_omni_moe_text", 2048, 48, 32, 4, 768, 152064,
         HEADS (128) EXPERTS (128, 8, 768)) "}}",
     30532646912, 0},
    {"Qwen2.5-Omni-7B's thinker",
     PART (SHAPE ("qwen2_5_omni_text", 3584, 28, 28, 4, 18944, 152064)), 7615616512, 0},
    {"Qwen3-VL-2B, tied outside",
     PART (SHAPE ("qwen3_vl_text", 2048, 28, 16, 8, 6144, 151936, HEADS (128)), TIED),
     1720574976, 0},
    {"Qwen3.5-0.8B, tied outside",
     PART (SHAPE ("qwen3_5_text", 1024, 24, 8, 2, 3584, 248320,
                  HEADS (256) ",'linear_num_key_heads':16,'linear_num_value_heads':16"),
           TIED),
     752393024, 0},
    {"Qwen3.5-35B-A3B",
     PART ("'model_type':'qwen3_5_moe_text','hidden_size':2048,'num_hidden_layers':40,"
           "'num_attention_heads':16,'num_key_value_heads':2,'vocab_size':248320,"
           "'shared_expert_intermediate_size':512" EXPERTS (256, 8, 512)),
     34660610688, 0},
    {"GLM-4.5V, its biases not told",
     PART (SHAPE ("glm4v_moe_text", 4096, 46, 96, 8, 10944, 151552,
                  HEADS (128) ROUTED (128, 8, 1, 1408, 1))),
     106852251264, 0},
    {"GLM-4.1V", PART (SHAPE ("glm4v_text", 4096, 40, 32, 2, 13696, 151552)), 9400279040,
     0},
    {"Mistral Small 3.1, short",
     PART ("'model_type':'mistral','hidden_size':5120,'num_hidden_layers':40,"
           "'intermediate_size':32768,'vocab_size':131072" HEADS (128)),
     23572403200, 1},
    {"LLaVA 1.5 7B",
     PART ("'model_type':'llama','_name_or_path':'lmsys/vicuna-7b-v1.5',"
           "'vocab_size':32064"),
     6738939904, 1},
    {"LLaVA 1.6 Mistral",
     PART ("'model_type':'mistral','intermediate_size':14336,'num_key_value_heads':8,"
           "'vocab_size':32064"),
     7242256384, 1},
    {"Gemma 3's defaults", PART ("'model_type':'gemma3_text'"), 2628658432, 1},
    {"Mistral Small 4",
     PART (SHAPE ("mistral4", 4096, 36, 32, 32, 12288, 131072,
                  MLA (1024, 256, 64, 64, 128) ROUTED (128, 4, 1, 2048, 0))),
     118972826624, 0},
    {"DeepSeek-OCR, without latent attention",
     PART (SHAPE ("deepseek_v2", 1280, 12, 10, 10, 6848, 129280,
                  MLA (null, null, 0, 0, 0)
                      ROUTED (64, 6, 2, 896, 1) ",'use_mla':false")),
     2934734080, 0},
    {"DeepSeek's dense layers as a list",
     SHAPE ("deepseek_v3", 2048, 4, 16, 16, 11264, 163840,
            MLA (null, 512, 64, 128, 128)
                ROUTED (64, 6, 2, 1408, 0) ","
                                           "'moe_layer_freq':[0,1,1,1]"),
     2508607680, 0},
    {"Hy3",
     SHAPE ("hy_v3", 4096, 80, 64, 8, 13312, 120832,
            EXPERTS (192, 8, 1536) ",'num_shared_experts':1"),
     295033543488, 0},
    {"Solar Open",
     "'model_type':'solar_open','hidden_size':4096,'num_hidden_layers':48,"
     "'num_attention_heads':64,'num_key_value_heads':8,'vocab_size':196608" ROUTED (
         128, 8, 1, 1280, 0),
     102651799552, 0},
    {"Mellum 2", SHAPE ("mellum", 2304, 28, 32, 4, 7168, 98304, EXPERTS (64, 8, 896)),
     12149923072, 0},
    {"Olmo Hybrid",
     SHAPE ("olmo_hybrid", 3840, 32, 30, 30, 11008, 100352,
            ",'linear_num_key_heads':30,'linear_num_value_heads':30,"
            "'linear_key_head_dim':96,'linear_value_head_dim':192"),
     7430870688, 0},
    {"Youtu-LLM-2B",
     SHAPE ("youtu", 2048, 32, 16, 16, 6144, 128256, MLA (1536, 512, 64, 128, 128)),
     1961560064, 0},
    {"Jais 2", SHAPE ("jais2", 3328, 32, 26, 26, 26624, 150272), 8090401280, 0},
    {"nanochat", SHAPE ("nanochat", 1280, 20, 10, 10, 5120, 65536), 560988160, 0},
    {"HyperCLOVA X 14B",
     SHAPE ("hyperclovax", 6144, 38, 48, 8, 14336, 110592,
            HEADS (128) ",'use_post_norm':true"),
     14748112896, 0},
    {"the same with two norms",
     SHAPE ("hyperclovax", 6144, 38, 48, 8, 14336, 110592, ",'use_post_norm':false"),
     14747645952, 0},
    {"VaultGemma 1B", SHAPE ("vaultgemma", 1152, 26, 4, 4, 6912, 256000), 1038741120, 0},
    {"Granite with sinks", SHAPE ("granite_swa", 2560, 24, 20, 4, 8192, 100352),
     2144463840, 0},
    {"the same with experts",
     SHAPE ("granitemoe_swa", 2048, 24, 16, 4, 512, 100352,
            ",'num_local_experts':32,'num_experts_per_tok':8,"
            "'shared_intermediate_size':0" TIED),
     2874771840, 0},
    {"Muse Glimmer's language model",
     PART (SHAPE ("muse_glimmer_text", 6656, 52, 32, 2, 19968, 202048)), 27854780928, 0},
    {"Cohere's compass, whose defaults are Command R's",
     PART (SHAPE ("cohere_compass_text", 8192, 40, 64, 8, 22528, 256000)), 30283210752,
     0},
    {"Grok-1",
     SHAPE ("grok-1", 6144, 64, 48, 8, 32768, 131072,
            ",'num_experts':8,'num_experts_per_tok':2"),
     315684820992, 0},
    {"Aria",
     PART (SHAPE ("aria_text", 2560, 28, 20, 20, 1664, 100352,
                  ",'moe_num_experts':64,'moe_topk':6,'moe_num_shared_experts':2")),
     24869091840, 0},
    {"MiniCPM-2B", SHAPE ("minicpm", 2304, 40, 36, 36, 5760, 122753), 2724880896, 0},
    {"Orion-14B", SHAPE ("orion", 5120, 40, 40, 40, 15360, 84608), 14498703360, 0},
    {"openPangu 7B",
     SHAPE ("PanguEmbedded", 4096, 34, 32, 8, 12800, 153376, ",'bias':true"), 8030887936,
     0},
    {"CodeGen-2B",
     "'model_type':'codegen','n_embd':2560,'n_layer':32,'n_head':32,'n_positions':2048,"
     "'vocab_size':51200,'tie_word_embeddings':false",
     2779356160, 0},
    {"Jais 13B",
     "'model_type':'jais','n_embd':5120,'n_layer':40,'n_head':40,'n_inner':13653,"
     "'n_positions':2048,'vocab_size':84992,'activation_function':'swiglu'",
     13020811920, 0},
    {"XGLM 564M", /* as published */
     "'model_type':'xglm','d_model':1024,'num_layers':24,'attention_heads':16,"
     "'ffn_dim':4096,'vocab_size':256008",
     564463616, 0},
    {"OPT without biases",
     "'model_type':'opt','hidden_size':64,'num_hidden_layers':2,"
     "'num_attention_heads':4,'ffn_dim':128,'max_position_embeddings':30,"
     "'vocab_size':100,'enable_bias':false",
     74624, 0},
    {"MPT with norms on queries and keys",
     "'model_type':'mpt','d_model':64,'n_layers':2,'n_heads':4,'vocab_size':100,"
     "'max_seq_len':30,'attn_config':{'alibi':true,'qk_ln':true}",
     105280, 0},
    {"GPT-NeoX without biases in attention",
     SHAPE ("gpt_neox", 64, 2, 4, 4, 256, 100, ",'attention_bias':false"), 112384, 0},
    {"GPT-NeoX Japanese 2.7B, but for one bias",
     "'model_type':'gpt_neox_japanese','hidden_size':2560,'num_hidden_layers':32,"
     "'num_attention_heads':32,'intermediate_multiple_size':4,'vocab_size':32000",
     2598835200, 0},
    {"experts in every second layer, from the second on",
     SHAPE ("qwen3_moe", 64, 3, 4, 4, 32, 100,
            HEADS (16) EXPERTS (4, 2, 16) ",'decoder_sparse_step':2"),
     87328, 0},
    {"experts in every second layer, from the third on",
     SHAPE ("deepseek", 64, 4, 4, 4, 32, 100,
            ROUTED (4, 2, 0, 16, 1) ",'moe_layer_freq':2"),
     109888, 0},
    {"Ling-1T",
     SHAPE ("bailing_moe_v2", 8192, 80, 64, 8, 18432, 157184,
            HEADS (128)
                EXPERTS (256, 8, 2048) ",'num_shared_experts':1,'n_group':8,"
                                       "'topk_group':4,'first_k_dense_replace':4"),
     999705328640, 0},
    {"ERNIE 4.5 as lists",
     SHAPE ("ernie4_5_moe", 2560, 28, 20, 4, 12288, 103424,
            ",'moe_num_experts':64,'moe_k':6,'moe_intermediate_size':1536,"
            "'moe_num_shared_experts':2,'mlp_layer_types':['dense','sparse']"),
     21825437888, 0},
    {"Falcon-180B",
     "'model_type':'falcon','hidden_size':14848,'num_hidden_layers':80,"
     "'num_attention_heads':232,'num_kv_heads':8,'vocab_size':65024,"
     "'new_decoder_architecture':true",
     178557088768, 0},
    {"Falcon2-11B",
     "'model_type':'falcon','hidden_size':4096,'num_hidden_layers':60,"
     "'num_attention_heads':32,'num_kv_heads':8,'vocab_size':65024,"
     "'new_decoder_architecture':true,'ffn_hidden_size':16384,"
     "'num_ln_in_parallel_attn':1,'tie_word_embeddings':false",
     11102822400, 0},
    {"Llama with what it does not need",
     "'model_type':'llama','hidden_size':4096,'num_hidden_layers':32,"
     "'num_attention_heads':32,'num_key_value_heads':null,'head_dim':null,"
     "'intermediate_size':11008,'vocab_size':32000,'dtype':'bfloat16',"
     "'rope_parameters':{'rope_type':'default'},'num_kv_shared_layers':0,"
     "'auto_map':{'AutoConfig':'x'},'quantization_config':{'bits':4}",
     6738415616, 0},
};

TEST (counts)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct workload_model m, back;
        struct notes notes = {0};
        struct error err = {""};
        json_t *again;

        if (read_fields (known[i].fields, &m, &notes, &err) != ST_OK)
            fail_msg ("%s: %s", known[i].name, err.text);
        if (workload_model_params (&m) != known[i].params)
            fail_msg ("%s: %.0f parameters, not %.0f", known[i].name,
                      workload_model_params (&m), known[i].params);
        if (notes.n != known[i].notes + (strstr (known[i].fields, "'any'") != NULL))
            fail_msg ("%s: %d notes", known[i].name, notes.n);
        again = workload_model_to_json (&m);
        ok (workload_model_from_json (again, "f", "m", &back, NULL, &err), &err);
        if (workload_model_params (&back) != known[i].params || back.window != m.window ||
            back.window_layers != m.window_layers)
            fail_msg ("%s: not the same when read back", known[i].name);
        json_decref (again);
        notes_free (&notes);
    }
}
