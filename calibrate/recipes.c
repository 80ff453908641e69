/* What the recipes of published runs set that their tables do not say.
 *
 * NVIDIA's performance summary of Megatron Bridge names a recipe by model, GPU type,
 * precision and container; whether that hides experts' all-to-alls is in the recipes
 * themselves (moe_a2a_overlap in github.com/NVIDIA-NeMo/Megatron-Bridge,
 * scripts/performance/configs/..., workload_base_configs.py).  Their versions do not name a
 * container: a row has the version with its degrees and micro-batch, and where two have the
 * same (Qwen3-235B and DeepSeek-V3 on GB200, Qwen3-235B on GB300) the later container has the
 * later version. */
#include "calibrate/calibrate_private.h"

#include <string.h>

#define BRIDGE "megatron_bridge_perf_archive"

/* The first that a row meets decides. */
static const struct recipe {
    const char *source, *model; /* the model's name begins so */
    const char *gpu;            /* as the source spells it */
    const char *notes;          /* contain the container's version */
    enum workload_choice overlap;
} recipes[] = {
    /* MXFP8 with micro-batches of 1 (DeepSeek-V3) or 2 in whole-step CUDA graphs */
    {BRIDGE, "DeepSeekV3", "GB300", "26.06", CHOICE_YES},
    {BRIDGE, "DeepSeekV3", "GB200", "26.06", CHOICE_YES},
    {BRIDGE, "Qwen3_235B", "GB300", "26.06", CHOICE_YES},
    {BRIDGE, "Qwen3_235B", "GB200", "26.06", CHOICE_YES},
    {BRIDGE, "DeepSeekV3", "B200", "26.04.01", CHOICE_YES}, /* ep 32 with DeepEP */
    {BRIDGE, "Qwen3_235B", "B300", "26.02", CHOICE_YES},
    {BRIDGE, "Qwen3_235B", "H100-SXM5-80GB", "", CHOICE_YES},
    {BRIDGE, "DeepSeekV3", "H100-SXM5-80GB", "25.09", CHOICE_YES}, /* a2a_1f1b */
    {BRIDGE, "", NULL, "", CHOICE_NO},
};

enum workload_choice calibrate_recipe_overlap (const struct row *r)
{
    const char *source = calibrate_cell (r, "source"),
               *model = calibrate_cell (r, "model"), *gpu = calibrate_cell (r, "gpu"),
               *notes = calibrate_cell (r, "notes");

    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        const struct recipe *k = &recipes[i];

        if (strcmp (source, k->source) == 0 &&
            strncmp (model, k->model, strlen (k->model)) == 0 &&
            (!k->gpu || strcmp (gpu, k->gpu) == 0) &&
            calibrate_contains (notes, k->notes))
            return k->overlap;
    }
    return CHOICE_PROFILE;
}
