/* Which config.json files are read as which family, warned of or refused. */
#include <sys/stat.h>

#include "tests/lib/fields.h"
#include "tests/lib/folder.h"

/* As Python writes what JSON has no number for; of a file, as the hub has it. */
TEST (not_quite_json)
{
    static const char text[] =
        "{\"model_type\": \"nemotron_h\", \"hidden_size\": 4096, \"vocab_size\": "
        "131072,\n"
        " \"hybrid_override_pattern\": \"M-M*\", \"num_attention_heads\": 32,\n"
        " \"mamba_num_heads\": 128, \"mamba_head_dim\": 64, \"n_groups\": 8,\n"
        " \"ssm_state_size\": 128, \"time_step_limit\": [0.0, Infinity]}";
    struct workload_model m;
    struct error err = {""};

    write_in_folder ("config.json", text, sizeof text - 1);
    ok (workload_model_read (in_folder ("config.json"), &m, NULL, &err), &err);
    assert_int_equal (m.layers, 4);
}

#define LLAMA                                                                          \
    "'model_type':'llama','hidden_size':64,'num_hidden_layers':2,'intermediate_size':" \
    "128,'vocab_size':100"

TEST (refused)
{
    static const struct {
        const char *fields, *says;
    } bad[] = {
        {"", "model_type: expected a known family"},
        {"'peft_type':'LORA','base_model_name_or_path':'x','r':8",
         "peft_type: an adapter's file: take the config.json of its base model"},
        {"'dim':4096,'n_layers':32,'n_heads':32,'n_kv_heads':8,'vocab_size':128256",
         "n_kv_heads: a params.json: take the config.json"},
        {"'metadata':{},'weight_map':{'lm_head.weight':'x'}", "weight_map: a list of"},
        {"'model_type':'resnet'", "model_type: expected a known family (docs/model.md), "
                                  "or the fields of one, found \"resnet\""},
        {LLAMA,
         "num_attention_heads: expected a whole number from 1 to 1048576, found nothing"},
        {LLAMA ",'num_attention_heads':5",
         "5 attention heads do not divide the hidden size 64"},
        {LLAMA ",'num_attention_heads':4,'num_key_value_heads':3",
         "3 key/value heads do not divide 4 attention heads"},
        {LLAMA ",'num_attention_heads':4,'num_key_value_heads':8",
         "8 key/value heads do not divide 4"},
        {"'model_type':'llama','hidden_size':64,'num_hidden_layers':1099511627776,"
         "'num_attention_heads':4",
         "num_hidden_layers: expected a whole number from 1 to 10000, found "
         "1099511627776"},
        {"'model_type':'llama','hidden_size':64,'num_hidden_layers':0",
         "num_hidden_layers: expected a whole number from 1 to 10000, found 0"},
        {LLAMA ",'num_attention_heads':4,'num_key_value_heads':4,'head_dim':2000000",
         "head_dim: expected a whole number from 1 to 1048576, found 2000000"},
        {LLAMA ",'num_attention_heads':4,'num_key_value_heads':0",
         "num_key_value_heads: expected a whole number from 1 to 1048576, found 0"},
        {"'model_type':'mixtral','hidden_size':64,'num_hidden_layers':2,"
         "'num_attention_heads':4,'vocab_size':100,'intermediate_size':128,"
         "'num_local_experts':4,'num_experts_per_tok':8",
         "a token cannot go to 8 of 4 experts"},
        {"'model_type':'mixtral','hidden_size':64,'num_hidden_layers':2,"
         "'num_attention_heads':4,'vocab_size':100,'intermediate_size':128",
         "num_local_experts: expected a whole number from 1 to 65536, found nothing"},
        {"'model_type':'qwen3_moe','hidden_size':64,'num_hidden_layers':4,"
         "'num_attention_heads':4,'vocab_size':100,'intermediate_size':128,"
         "'num_experts':8,'num_experts_per_tok':2,'moe_intermediate_size':64,"
         "'mlp_only_layers':[2]",
         "layers without experts must come first"},
        {"'model_type':'deepseek_v3','hidden_size':64,'num_hidden_layers':4,"
         "'num_attention_heads':4,'vocab_size':100,'intermediate_size':128",
         "kv_lora_rank: expected a whole number from 1"},
        {"'model_type':'any','text_config':{'model_type':'granite','vocab_size':100}",
         "text_config.hidden_size: expected a whole number from 1 to 1048576, found "
         "nothing"},
        {"'model_type':'llava','text_config':{}",
         "text_config.model_type: expected a known family"},
        {"'model_type':'bloom','n_embed':-1",
         "n_embed: expected a whole number from 1 to 1048576, found -1"},
        {LLAMA ",'num_attention_heads':1e300", "num_attention_heads: expected"},
        {LLAMA ",'num_attention_heads':-4", "num_attention_heads: expected"},
        {LLAMA ",'num_attention_heads':4.5", "num_attention_heads: expected"},
        {LLAMA ",'num_attention_heads':4,'tie_word_embeddings':'yes'",
         "tie_word_embeddings: expected"},
        {"'model_type':'llama','hidden_size':'64'",
         "hidden_size: expected a whole number from 1 to 1048576, found \"64\""},
        {SHAPE ("mimo_v2_flash", 4096, 48, 64, 4, 16384, 152576,
                ",'swa_num_key_value_heads':8,'moe_layer_freq':[0,1]"),
         "swa_num_key_value_heads: layers with other heads: not supported"},
        {SHAPE ("step3p5", 4096, 45, 64, 8, 11264, 128896,
                ",'attention_other_setting':{'num_attention_heads':96}"),
         "attention_other_setting: layers with other heads"},
        {SHAPE ("phi3small", 4096, 32, 32, 8, 14336, 100352,
                ",'blocksparse_block_size':64"),
         "blocksparse_block_size: block-sparse attention"},
        {"'model_type':'openelm','model_dim':1280,'ffn_multipliers':[0.5,1.0]",
         "ffn_multipliers: layers of different shapes"},
        {"'model_type':'rwkv7','hidden_size':2048,'decay_low_rank_dim':96",
         "decay_low_rank_dim: recurrent layers"},
        {SHAPE ("hunyuan", 6400, 64, 80, 8, 18304, 129024,
                ",'num_experts':16,'moe_topk':1,'num_shared_expert':1,'use_cla':true"),
         "use_cla: layers that share keys and values"},
        {"'d_model':768,'n_layer':24,'vocab_size':50277,'ssm_cfg':{}",
         "ssm_cfg: selective scans (Mamba 1)"},
        {"'d_model':768,'n_layer':24,'vocab_size':50277,'ssm_cfg':{'layer':'Mamba2'},"
         "'attn_layer_idx':[9]",
         "attn_layer_idx: layers beside Mamba-2"},
        {"'d_model':768,'n_layer':24,'vocab_size':50277,'ssm_cfg':{'layer':'Mamba2'},"
         "'d_intermediate':1024",
         "d_intermediate: layers beside Mamba-2"},
        {"'hidden_size':768", "model_type: expected a known family"},
        {SHAPE (
             "qwen3_next", 2048, 4, 16, 2, 5120, 151936,
             ",'layer_types':['linear_attention','linear_attention','linear_attention',"
             "'window']"),
         "layer_types[3]: expected a kind of layer"},
        {SHAPE ("qwen3_next", 2048, 4, 16, 2, 5120, 151936, ",'mlp_only_layers':[1]"),
         "mlp_only_layers: layers without experts are not supported here"},
        {SHAPE ("nemotron_h", 4480, 56, 40, 8, 15680, 131072,
                ",'hybrid_override_pattern':'M-M*'"),
         "hybrid_override_pattern: 4 letters for 56 layers"},
        {SHAPE ("nemotron_h", 4480, 4, 40, 8, 15680, 131072,
                ",'hybrid_override_pattern':'M-Mx'"),
         "hybrid_override_pattern: letter 4 is of no kind of layer"},
        {SHAPE ("nemotron_h", 4480, 2, 40, 8, 15680, 131072,
                ",'hybrid_override_pattern':'ME','moe_latent_size':1024"),
         "moe_latent_size: experts of a narrower width"},
        {SHAPE ("nemotron_h", 4480, 257, 40, 8, 15680, 131072),
         "num_hidden_layers: 257 layers of several kinds: at most 256"},
        {"'model_type':'mamba2','hidden_size':2560,'num_hidden_layers':64,'num_heads':80,"
         "'head_dim':80,'vocab_size':50288",
         "num_heads: 80 heads of width 80 are not the inner width of 5120"},
        {"'model_type':'mamba2','hidden_size':2560,'num_hidden_layers':64,'num_heads':80,"
         "'head_dim':64,'n_groups':3,'vocab_size':50288",
         "3 groups do not divide 80 heads"},
        {SHAPE ("granitemoehybrid", 4096, 40, 32, 8, 512, 100352,
                ",'shared_intermediate_size':1024,'layer_types':['attention','mamba']"),
         "layer_types: 2 kinds for 40 layers"},
        {SHAPE ("bamba", 4096, 4, 32, 8, 512, 100352, ",'attn_layer_indices':[4]"),
         "attn_layer_indices[0]: expected"},
        {SHAPE ("falcon_h1", 1024, 36, 8, 2, 2048, 32784, ",'projectors_bias':true"),
         "projectors_bias: not supported"},
        {SHAPE ("jamba", 4096, 32, 32, 8, 14336, 65536, ",'mamba_d_state':16"),
         "mamba_d_state: state-space layers"},
        {SHAPE ("zamba2", 3584, 81, 32, 32, 14336, 32000, ",'mamba_headdim':64"),
         "mamba_headdim: state-space layers"},
        {SHAPE ("sala", 4096, 2, 32, 2, 16384, 73448,
                ",'mixer_types':['attention','lightning-attn']"),
         "mixer_types[1]: expected attention"},
        {SHAPE ("yuan", 2048, 24, 16, 16, 8192, 135040,
                ",'moe_config':{'moe_num_experts':32}"),
         "moe_config: experts of an unknown family"},
        {SHAPE ("deberta-v2", 768, 12, 12, 12, 3072, 128100,
                ",'attention_probs_dropout_prob':0.1,'type_vocab_size':0"),
         "attention_probs_dropout_prob: BERT's layers: not supported"},
        {SHAPE ("molmo", 3584, 28, 28, 4, 37888, 152064,
                ",'use_position_ids':true,'qkv_bias':true"),
         "use_position_ids: an MLP whose width counts both halves"},
        {"'model_type':'opt','hidden_size':64,'num_hidden_layers':2,"
         "'num_attention_heads':4,'ffn_dim':128,'max_position_embeddings':30,"
         "'vocab_size':100,'layer_norm_elementwise_affine':false",
         "layer_norm_elementwise_affine: norms without parameters"},
        {SHAPE ("deepseek_v32", 7168, 61, 128, 128, 18432, 129280, ",'index_n_heads':64"),
         "index_n_heads: an indexer of sparse attention"},
        {SHAPE ("bert", 768, 12, 12, 12, 3072, 30522, ",'type_vocab_size':2"),
         "type_vocab_size: an encoder alone"},
        {SHAPE ("odd", 2048, 28, 16, 4, 5632, 126464,
                ",'num_experts':64,'num_experts_per_tok':6,'moe_intermediate_size':1408,"
                "'num_odd_experts':2"),
         "num_odd_experts: experts of an unknown family: not supported"},
        {SHAPE ("arctic", 7168, 35, 56, 8, 4864, 32000,
                ",'num_local_experts':128,'num_experts_per_tok':2,"
                "'parallel_attn_mlp_res':true"),
         "parallel_attn_mlp_res: an MLP beside the experts: not supported"},
        /* also of a known family */
        {SHAPE ("minimax_m2", 6144, 60, 64, 4, 3072, 200064,
                ",'num_local_experts':128,'num_experts_per_tok':4,"
                "'sparse_attention_config':{'sparse_topk_blocks':16}"),
         "sparse_attention_config: an indexer of sparse attention: not supported"},
        {SHAPE ("minicpm", 2304, 40, 36, 36, 5760, 122753,
                ",'num_experts':8,'num_experts_per_tok':2"),
         "num_experts: experts of an unknown family: not supported"},
        {"'model_type':'step3_text','hidden_size':7168,'num_attention_groups':1,"
         "'moe_num_experts':48",
         "moe_num_experts: experts of an unknown family: not supported"},
        {SHAPE ("git", 8192, 64, 64, 8, 32768, 131072,
                ",'num_local_experts':8,'num_experts_per_tok':2,'residual_moe':true"),
         "residual_moe: an MLP beside the experts"},
        {SHAPE ("hrm_text", 1536, 128, 12, 12, 4096, 151808, ",'H_cycles':2"),
         "H_cycles: layers that are run several times"},
        {SHAPE ("gemma4_unified_text", 5376, 60, 32, 16, 21504, 262144,
                ",'attention_k_eq_v':true"),
         "attention_k_eq_v: keys that are the values"},
        {SHAPE ("deci", 4096, 32, 32, 8, 11008, 32000,
                ",'num_key_value_heads_per_layer':[4,2]"),
         "num_key_value_heads_per_layer: layers with other heads"},
        {SHAPE ("modernbert", 768, 22, 12, 12, 1152, 50368,
                ",'architectures':['ModernBertForMaskedLM']"),
         "architectures[0]: an encoder alone: not supported"},
        {SHAPE ("odd", 768, 12, 12, 12, 3072, 30522, ",'expert_count':2"),
         "expert_count: experts of an unknown family: not supported"},
        {"'model_type':'opt','hidden_size':1024,'num_hidden_layers':24,"
         "'num_attention_heads':16,'ffn_dim':4096,'max_position_embeddings':2048,"
         "'vocab_size':50272,'word_embed_proj_dim':512",
         "word_embed_proj_dim: embeddings narrower than the layers"},
        {"'model_type':'llama','hidden_size':64,'num_hidden_layers':2,"
         "'intermediate_size':128,'vocab_size':100,'num_attention_heads':[4,8]",
         "num_attention_heads[1]: layers of different shapes are not supported"},
        {SHAPE ("stablelm", 64, 2, 4, 4, 128, 100, ",'qk_layernorm':true"),
         "qk_layernorm: a norm for every head"},
        {SHAPE ("stablelm", 64, 2, 4, 4, 128, 100, ",'use_parallel_residual':true"),
         "use_parallel_residual: parallel residuals"},
        {SHAPE ("ernie4_5_moe", 64, 4, 4, 4, 128, 100,
                ",'moe_num_experts':4,'moe_k':2,'moe_intermediate_size':64,"
                "'moe_layer_end_index':2"),
         "moe_layer_end_index: layers"},
        {"'model_type':'dbrx','d_model':64,'n_layers':2,'n_heads':4,'vocab_size':100,"
         "'ffn_config':{'moe_num_experts':4}",
         "dbrx needs ffn_config with ffn_hidden_size"},
        {"'model_type':'mpt','d_model':64,'n_layers':2,'n_heads':4,'vocab_size':100,"
         "'attn_config':{'kv_n_heads':0}",
         "attn_config.kv_n_heads: expected"}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct workload_model m;
        struct error err = {""};

        expect (read_fields (bad[i].fields, &m, NULL, &err), &err, bad[i].says);
    }
}

/* MPT's positions are ALiBi's or learned, its biases everywhere or nowhere. */
TEST (mosaic)
{
    static const struct {
        const char *more;
        int positions, ffn;
        bool biased;
    } of[] = {
        {"", 2048, 256, false},
        {",'no_bias':true,'attn_config':{'alibi':true}", 0, 256, false},
        {",'no_bias':false,'expansion_ratio':3", 2048, 192, true},
        {",'expansion_ratio':3,'ffn_config':{'ffn_hidden_size':100}", 2048, 100, false}};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct workload_model m, again;
        struct error err = {""};
        char fields[512];
        json_t *doc;

        snprintf (
            fields, sizeof fields,
            "'model_type':'mpt','d_model':64,'n_layers':2,'n_heads':4,'vocab_size':100,"
            "'max_seq_len':2048%s",
            of[i].more);
        ok (read_fields (fields, &m, NULL, &err), &err);
        assert_int_equal (m.positions, of[i].positions);
        assert_int_equal (m.context, 2048);
        assert_int_equal (m.ffn, of[i].ffn);
        assert_true (m.qkv_bias == of[i].biased && m.out_bias == of[i].biased);
        assert_int_equal (m.norm, of[i].biased ? NORM_LAYER : NORM_LAYER_WEIGHT);
        doc = workload_model_to_json (&m);
        ok (workload_model_from_json (doc, "again", "m", &again, NULL, &err), &err);
        json_decref (doc);
        assert_true (workload_model_params (&again) == workload_model_params (&m));
        assert_int_equal (again.positions, m.positions);
    }
}

/* Layers without experts, as a number, a list of layers and a list of kinds. */
TEST (dense_first)
{
    static const struct {
        const char *more;
        int dense; /* -1: refused */
    } of[] = {{"", 0},
              {",'first_k_dense_replace':2", 2},
              {",'mlp_layer_types':['dense','sparse','sparse']", 1},
              {",'first_k_dense_replace':2,'mlp_layer_types':['sparse','sparse']", 0},
              {",'mlp_layer_types':['sparse','dense']", -1},
              {",'mlp_layer_types':[true]", -1},
              {",'moe_layer_freq':[0,0,1]", 2},
              {",'moe_layer_freq':[1,0,1]", -1},
              {",'first_k_dense_replace':1,'moe_layer_freq':1", 1}};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct workload_model m;
        struct error err = {""};
        char fields[512];
        enum status st;

        snprintf (fields, sizeof fields, "%s%s",
                  SHAPE ("glm4_moe", 64, 3, 4, 4, 128, 100,
                         ",'n_routed_experts':4,'num_experts_per_tok':2,'moe_"
                         "intermediate_size':8"),
                  of[i].more);
        st = read_fields (fields, &m, NULL, &err);
        assert_int_equal (st, of[i].dense < 0 ? ST_INVALID : ST_OK);
        if (of[i].dense >= 0)
            assert_int_equal (m.dense_layers, of[i].dense);
    }
}

/* What is not read as it stands, or left out of the estimate, is said: an unknown model_type is
 * read as the family whose fields it has, of a model with others the language part; an activation
 * may not be that of gates. */
TEST (noted)
{
#define NEW(...) SHAPE ("new", 64, 2, 4, 4, 128, 100, __VA_ARGS__)
#define PLAIN(...) SHAPE ("llama", 64, 2, 4, 4, 128, 100, __VA_ARGS__)
#define INSIDE "{" SHAPE ("qwen2", 64, 2, 4, 4, 128, 100) "}"
    static const char unknown[] = "\"new\" is not known: read as",
                      part[] = "only the language model is counted";
    static const struct {
        const char *fields, *type;
        int notes;
        const char *says; /* the last one */
    } of[] = {
        {NEW (), "llama", 1, unknown},
        {NEW (",'num_local_experts':8,'num_experts_per_tok':2"), "mixtral", 1, unknown},
        {NEW (",'num_experts':8,'num_experts_per_tok':2,'moe_intermediate_size':64"),
         "qwen3_moe", 1, unknown},
        {"'model_type':'new','n_embd':768,'n_layer':12,'n_head':12,'n_positions':1024,"
         "'vocab_size':50257",
         "gpt2", 1, unknown},
        {NEW (",'num_experts':8,'num_experts_per_tok':2,'moe_intermediate_size':64,"
              "'num_shared_experts':1"),
         "bailing_moe", 1, unknown},
        {NEW (",'num_experts':8,'num_experts_per_tok':2,'moe_intermediate_size':64,"
              "'shared_expert_intermediate_size':0"),
         "qwen3_moe", 1, unknown},
        {NEW (",'num_experts':8,'num_experts_per_tok':2,'moe_intermediate_size':64,"
              "'shared_expert_intermediate_size':64"),
         "qwen2_moe", 1, unknown},
        {NEW (",'num_local_experts':8,'num_experts_per_tok':2,"
              "'shared_intermediate_size':64"),
         "granitemoeshared", 1, unknown},
        {NEW (",'use_qk_norm':true"), "hunyuan_v1_dense", 1, unknown},
        {NEW (",'use_qk_norm':false,'use_qkv_bias':true"), "qwen2", 1, unknown},
        {NEW (",'hidden_act':'relu2'"), "llama", 2, "hidden_act: with \"relu2\""},
        {NEW (",'hidden_act':'silu'"), "llama", 1, unknown},
        {"'hidden_size':64,'num_hidden_layers':2,'num_attention_heads':4,"
         "'intermediate_size':128,'vocab_size':100",
         "llama", 1, "no model_type: read as \"llama\", whose fields it has"},
        /* by its class, unless that is code of the model's own or has fields that it lacks */
        {NEW (",'architectures':['Ernie4_5_ForCausalLM']"), "ernie4_5", 1,
         "read as \"ernie4_5\", whose class it has"},
        {NEW (",'architectures':['Qwen3ForCausalLM'],'auto_map':{}"), "llama", 1,
         unknown},
        {NEW (",'architectures':['Qwen3MoeForCausalLM']"), "llama", 1, unknown},
        {NEW (",'architectures':['GPTNeoXForSequenceClassification']"), "llama", 1,
         unknown},
        /* a format that never has a type */
        {"'d_model':64,'n_layer':2,'vocab_size':100,'ssm_cfg':{'layer':'Mamba2','headdim'"
         ":"
         "32}",
         "mamba2", 0, NULL},
        {"'model_type':'llava','text_config':" INSIDE, "qwen2", 1, part},
        {"'model_type':'internvl_chat','llm_config':" INSIDE, "qwen2", 1, part},
        {"'model_type':'deepseek_vl_v2','language_config':" INSIDE, "qwen2", 1, part},
        {"'model_type':'qwen2_5_omni','thinker_config':{'model_type':'thinker',"
         "'text_config':" INSIDE "}",
         "qwen2", 1, part},
        {PLAIN (), "llama", 0, NULL},
        {PLAIN (",'sliding_window':4096"), "llama", 0, NULL},
        {PLAIN (",'num_nextn_predict_layers':1"), "llama", 1,
         "multi-token prediction is not counted"},
        {PLAIN (",'num_mtp_modules':3"), "llama", 1,
         "num_mtp_modules: multi-token prediction is not counted without --mtp"},
        {SHAPE ("qwen3_5_text", 64, 4, 4, 4, 128, 100, ",'mtp_num_hidden_layers':1"),
         "qwen3_5_text", 1,
         "mtp_num_hidden_layers: multi-token prediction is not counted"},
        {SHAPE ("hunyuan", 64, 2, 4, 4, 128, 100,
                ",'num_experts':1,'moe_topk':[1,1],'num_shared_expert':1"),
         "hunyuan_v1_dense", 0, NULL},
        {PLAIN (",'num_nextn_predict_layers':0"), "llama", 0, NULL}};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct workload_model m;
        struct notes notes = {0};
        struct error err = {""};

        ok (read_fields (of[i].fields, &m, &notes, &err), &err);
        assert_string_equal (m.type, of[i].type);
        assert_int_equal (notes.n, of[i].notes);
        if (of[i].says)
            assert_non_null (strstr (notes.line[notes.n - 1], of[i].says));
        if (strcmp (m.type, "mamba2") == 0)
            assert_true (m.vocab == 104 && m.lin_heads == 4 && m.tied);
        notes_free (&notes);
    }
}

/* What is no preset's name has near ones. */
TEST (names)
{
    struct text near = {0};
    struct workload_model m;
    struct error err = {""};

    workload_presets_near ("lama-2-7b", &near);
    assert_non_null (strstr (text_str (&near), "llama-2-7b"));
    text_free (&near);
    workload_presets_near ("deepseek", &near);
    assert_non_null (strstr (text_str (&near), "deepseek-"));
    text_free (&near);
    workload_presets_near ("unlike-any-other", &near);
    assert_int_equal (near.len, 0);
    text_free (&near);
    assert_int_equal (workload_model_read ("someone/lama-2-7b", &m, NULL, &err), ST_IO);
    assert_non_null (strstr (err.text, "near it: llama-2-7b"));
    assert_non_null (strstr (err.text, "`hf download someone/lama-2-7b config.json"));
    assert_int_equal (workload_model_read ("./lama-2-7b", &m, NULL, &err), ST_IO);
    assert_null (strstr (err.text, "hf download"));
}

static const char llama_text[] =
    "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":4,\"intermediate_size\":128,\"vocab_size\":100}";

/* A model is named for its file, or for the folder of its config.json. */
TEST (named_for_the_folder)
{
    static const char *const file[] = {"mine.json", "my-llama/config.json"},
                             *const name[] = {"mine", "my-llama"};
    struct workload_model m;
    struct error err = {""};

    assert_int_equal (mkdir (in_folder ("my-llama"), 0777), 0);
    for (int i = 0; i < 2; i++) {
        write_in_folder (file[i], llama_text, sizeof llama_text - 1);
        ok (workload_model_read (in_folder (file[i]), &m, NULL, &err), &err);
        assert_string_equal (m.name, name[i]);
    }
}

/* A folder of the Hugging Face cache: the revision that is main there, named for the model. */
TEST (cached)
{
    static const char *const made[] = {
        "models--me--Lla-ma-2.5-x", "models--me--Lla-ma-2.5-x/refs",
        "models--me--Lla-ma-2.5-x/snapshots", "models--me--Lla-ma-2.5-x/snapshots/12ab"};
    struct workload_model m;
    struct error err = {""};

    for (int i = 0; i < 4; i++)
        assert_int_equal (mkdir (in_folder (made[i]), 0777), 0);
    assert_int_equal (workload_model_read (in_folder (made[0]), &m, NULL, &err), ST_IO);
    write_in_folder ("models--me--Lla-ma-2.5-x/refs/main", "12ab\n", 5);
    assert_int_equal (workload_model_read (in_folder (made[0]), &m, NULL, &err), ST_IO);
    assert_non_null (strstr (err.text, "/snapshots/12ab/config.json: No such file"));
    write_in_folder ("models--me--Lla-ma-2.5-x/snapshots/12ab/config.json", llama_text,
                     sizeof llama_text - 1);
    for (int i = 0; i < 4; i += 3) {
        ok (workload_model_read (in_folder (made[i]), &m, NULL, &err), &err);
        assert_string_equal (m.name, "Lla-ma-2.5-x");
    }
}
