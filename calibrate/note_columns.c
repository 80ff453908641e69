/* Columns of their own for what the documented form has among the notes: "lora", "torch_compile",
 * "num_experts".  Their cells are read as notes, key=value. */
#include "calibrate/calibrate_private.h"

#include <string.h>

/* A key of the notes, and what a column of it is called besides, joined; behind a key with a value
 * of its own, "precision=bf16", a column says yes or no. */
static const struct {
    const char *key, *also;
} keys[] = {
    {"compile", "compiled torchcompile usecompile usetorchcompile"},
    {"lora", "uselora lorar lorarank"},
    {"qlora", "useqlora"},
    {"load_in_4bit", ""},
    {"load_in_8bit", ""},
    {"cpu_offload", "offload offloadtocpu usecpuoffload fsdpcpuoffload fsdpoffloadparams"},
    {"offload_optimizer", "optimizeroffload offloadoptimizerdevice optimizercpuoffload"},
    {"offload_param", "offloadparams paramoffload offloadparamdevice parameteroffload"},
    {"Liger kernel", "liger useliger ligerkernels useligerkernel useligerkernels"},
    {"precision=bf16", "bf16"},
    {"precision=fp16", "fp16"},
    {"precision=fp8", "fp8"},
    {"schedule", "ppschedule pipelineschedule pipelineparallelschedule"},
    {"num-experts", "experts nexperts numlocalexperts numberofexperts"},
    {"moe-router-topk", "topk moetopk numexpertspertok expertspertok activeexperts"},
    {"moe-ffn-hidden-size", "moeintermediatesize expertffn"},
    {"moe-shared-expert-intermediate-size", "sharedexpertintermediatesize"},
    {"moe-layer-freq", ""},
    {"sliding-window", "attentionwindow"},
    {"multi-latent-attention", ""},
    {"kv-channels", ""},
    {"swiglu", ""},
    {"disable-bias-linear", ""},
    {"untie-embeddings-and-output-weights", ""},
    {"recompute-method", ""},
    {"recompute-num-layers", ""},
    {"recompute-modules", ""},
    {"overlap-grad-reduce", ""},
    {"tp-comm-overlap", ""},
    {"grad-reduce-in-bf16", ""},
    {"fp8-param-gather", ""},
    {"overlap-comm", ""},
    {"cuda-graph-impl", ""},
    {"moe-token-dispatcher-type", ""},
};

const char *calibrate_note_of (const char *title)
{
    char joined[CALIBRATE_JOINED], own[CALIBRATE_JOINED];

    calibrate_join (title, joined);
    for (size_t i = 0; i < COUNT_OF (keys); i++) {
        calibrate_join (keys[i].key, own);
        if (joined[0] && (strcmp (own, joined) == 0 || text_has_word (keys[i].also, joined)))
            return keys[i].key;
    }
    return NULL;
}

void calibrate_add_note (struct text *notes, const char *key, const char *value)
{
    bool flag = strchr (key, '=') != NULL;

    if (value[0] == '\0' || (flag && strcmp (value, "true") != 0))
        return;
    text_add (notes, "%s%s", notes->len ? "; " : "", key);
    if (!flag)
        text_add (notes, "=%s", value);
}
