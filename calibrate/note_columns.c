/* Columns of their own for what the documented form has among the notes: "lora", "torch_compile",
 * "num_experts".  Their cells are read as notes, key=value. */
#include "calibrate/calibrate_private.h"

#include <string.h>

static const struct calibrate_note notes_of_columns[] = {
    {"compile", "compiled torchcompile usecompile usetorchcompile", false},
    {"lora", "uselora lorar lorarank", false},
    {"qlora", "useqlora", false},
    {"load_in_4bit", "", false},
    {"load_in_8bit", "", false},
    {"cpu_offload", "offload offloadtocpu usecpuoffload fsdpcpuoffload fsdpoffloadparams",
     false},
    {"offload_optimizer", "optimizeroffload offloadoptimizerdevice optimizercpuoffload",
     false},
    {"offload_param", "offloadparams paramoffload offloadparamdevice parameteroffload",
     false},
    {"Liger kernel", "liger useliger ligerkernels useligerkernel useligerkernels", false},
    {"precision=bf16", "bf16", false},
    {"precision=fp16", "fp16", false},
    {"precision=fp8", "fp8", false},
    {"schedule", "ppschedule pipelineschedule pipelineparallelschedule", true},
    {"sliding-window", "attentionwindow", true},
    {"num-experts", "experts nexperts numlocalexperts numberofexperts", true},
    {"moe-router-topk", "topk moetopk numexpertspertok expertspertok activeexperts",
     true},
    {"moe-ffn-hidden-size", "moeintermediatesize expertffn", true},
    {"moe-shared-expert-intermediate-size", "sharedexpertintermediatesize", true},
    {"moe-layer-freq", "", true},
    {"moe-token-dispatcher-type", "", true},
    {"kv-channels", "", true},
    {"recompute-method", "", true},
    {"recompute-num-layers", "", true},
    {"recompute-modules", "", true},
    {"cuda-graph-impl", "", true},
    {"multi-latent-attention", "", false},
    {"swiglu", "", false},
    {"disable-bias-linear", "", false},
    {"untie-embeddings-and-output-weights", "", false},
    {"overlap-grad-reduce", "", false},
    {"tp-comm-overlap", "", false},
    {"grad-reduce-in-bf16", "", false},
    {"fp8-param-gather", "", false},
    {"overlap-comm", "", false},
};

const struct calibrate_note *calibrate_note_of (const char *title)
{
    char joined[CALIBRATE_JOINED], own[CALIBRATE_JOINED];

    calibrate_join (title, joined);
    for (size_t i = 0; i < COUNT_OF (notes_of_columns); i++) {
        const struct calibrate_note *n = &notes_of_columns[i];

        calibrate_join (n->key, own);
        if (joined[0] && (strcmp (own, joined) == 0 || text_has_word (n->also, joined)))
            return n;
    }
    return NULL;
}

void calibrate_add_note (struct text *notes, const struct calibrate_note *n,
                         const char *value)
{
    const char *key = n->key;
    bool whole = strchr (key, '=') != NULL;
    enum workload_offload what = OFFLOAD_NONE;

    if (!n->valued && strcmp (value, "1") == 0)
        value = "true";
    if (!n->valued && strcmp (value, "0") == 0)
        value = "false";
    if (strcmp (key, "compile") == 0 &&
        text_has_word ("default inductor max-autotune reduce-overhead", value))
        value = "true";
    if (strcmp (key, "cpu_offload") == 0 && workload_offload_parse (value, &what) &&
        what != OFFLOAD_NONE)
        key = "offload"; /* it says what */
    if (value[0] == '\0' || (whole && text_has_word ("false auto default", value)))
        return;
    text_add (notes, "%s%s", notes->len ? "; " : "", key);
    if (!whole)
        text_add (notes, "=%s", value);
}
