/* The built-in GPU types.
 *
 * memory_bytes is what the driver reports to a program (cudaMemGetInfo's total; 8.5e10 on
 * an 80 GB A100 or H100), rates are the dense peaks of the vendors' data sheets, without
 * sparsity.  gemm_efficiency is the part of the bf16 (fp16 where there is none) peak that
 * large matrix products are known to reach: .74 was fitted on measured A100 training runs
 * (docs/accuracy.md); the others are the ratio of published large-GEMM rates to the peak.
 * nvls_efficiency is NCCL's (src/graph/tuning.cc, nvlsEfficiency: .85 on Hopper, .74 on
 * Blackwell); measured on eight H100: 480 GB/s of bus bandwidth, 365 to 370 by ring
 * (NVIDIA/nccl issue 1455), which is .84.  SXM types are taken to sit behind NVSwitches, as
 * on HGX boards of eight; boards of four H100 without say so in gpu_types.
 * An mi250x or mi250 is one of its two dies, which is what a rank gets.  GeForce cards sum products
 * of 16 bits in fp32 at half the rate of their data sheets' first line: that half is theirs here.
 *
 * Where the constants that composed profiles take come from stands below, by the type's name.
 * host_factor of the Grace types is 2.5 times an H100's: what a linear layer costs the two hosts
 * (NVIDIA/TransformerEngine issue 2053: 13.5 us, 33 beside a GH200, 37 beside a GB200).
 * B300 and GB300 have twice the exponentials, which attention waits for (FlashAttention 4), and a
 * GB300 1,400 W in place of a GB200's 1,200.  fp4_gemm_efficiency makes products 1.87 times as
 * fast as fp8's, as measured on B300 (Transformer Engine's documentation,
 * low_precision_training), on all types.
 */
#include "topology/topology.h"

#include <string.h>

#define TF(X) ((X) *1e12)
#define GB(X) ((X) *1e9)

/* name, memory, memory bandwidth, bf16, fp16, fp8, fp32, tf32, SMs, GEMM and NVLS efficiency,
 * fp8 GEMM and two flash efficiencies, host_factor, fp4 and its GEMM efficiency; what measurements
 * tell stays 0.
 * topology/gpu_names.c has what names mean them. */
#define BOTH_TYPE(NAME, MEMORY, BANDWIDTH, BF16, FP16, FP8, FP32, TF32, ...)       \
    {                                                                              \
        .name = NAME, GB (MEMORY), GB (BANDWIDTH), TF (BF16), TF (FP16), TF (FP8), \
        TF (FP32), TF (TF32), __VA_ARGS__                                          \
    }
/* One rate for bf16 and fp16, and fp16 alone. */
#define TYPE(NAME, MEMORY, BANDWIDTH, HALF, ...) \
    BOTH_TYPE (NAME, MEMORY, BANDWIDTH, HALF, HALF, __VA_ARGS__)
#define FP16_TYPE(NAME, MEMORY, BANDWIDTH, FP16, ...) \
    BOTH_TYPE (NAME, MEMORY, BANDWIDTH, 0, FP16, __VA_ARGS__)
static const struct topology_gpu_type types[] = {
    FP16_TYPE ("v100-sxm2-32g", 34.1, 900, 125, 0, 15.7, 0, 80, .72, 0, 0, 0, 0, 1.15),
    FP16_TYPE ("v100-sxm2-16g", 16.9, 900, 125, 0, 15.7, 0, 80, .72, 0, 0, 0, 0, 1.15),
    FP16_TYPE ("v100-pcie-32g", 34.1, 900, 112, 0, 14, 0, 80, .72, 0, 0, 0, 0, 1.15),
    FP16_TYPE ("v100-pcie-16g", 16.9, 900, 112, 0, 14, 0, 80, .72, 0, 0, 0, 0, 1.15),
    FP16_TYPE ("v100s-pcie-32g", 34.1, 1134, 130, 0, 16.4, 0, 80, .72, 0, 0, 0, 0, 1.15),
    FP16_TYPE ("t4", 15.8, 320, 65, 0, 8.1, 0, 40, .40, 0, 0, 0, 0, 1.15),
    FP16_TYPE ("titan-rtx", 25.4, 672, 130.5, 0, 16.3, 0, 72, .60, 0, 0, 0, 0, 1.15),
    FP16_TYPE ("titan-v", 12.6, 653, 110, 0, 14.9, 0, 80, .72, 0, 0, 0, 0, 1.15),
    FP16_TYPE ("rtx-2080-ti", 11.5, 616, 53.8, 0, 13.4, 0, 68, .90, 0, 0, 0, 0, 1.15),
    FP16_TYPE ("rtx-2080", 8.4, 448, 40.3, 0, 10.1, 0, 46, .90, 0, 0, 0, 0, 1.15),
    FP16_TYPE ("quadro-rtx-6000", 25.4, 672, 130.5, 0, 16.3, 0, 72, .60, 0, 0, 0, 0,
               1.15),
    FP16_TYPE ("rtx-8000", 50.9, 672, 130.5, 0, 16.3, 0, 72, .60, 0, 0, 0, 0, 1.15),
    TYPE ("a10", 24.1, 600, 125, 0, 31.2, 62.5, 72, .60, 0, 0, .45, .45, 1),
    TYPE ("a10g", 23.7, 600, 70, 0, 35, 35, 80, .75, 0, 0, .5, .5, 1),
    TYPE ("a30", 25.4, 933, 165, 0, 10.3, 82.5, 56, .70, 0, 0, .55, .55, 1),
    TYPE ("a40", 48.3, 696, 149.7, 0, 37.4, 74.8, 84, .65, 0, 0, .5, .5, 1),
    TYPE ("rtx-a4000", 16.9, 448, 76.7, 0, 19.2, 38.3, 48, .65, 0, 0, .5, .5, 1),
    TYPE ("rtx-a5000", 25.4, 768, 111.1, 0, 27.8, 55.6, 64, .70, 0, 0, .5, .5, 1),
    TYPE ("rtx-a6000", 51, 768, 154.8, 0, 38.7, 77.4, 84, .65, 0, 0, .5, .5, 1),
    TYPE ("l4", 23.7, 300, 121, 242, 30.3, 60, 58, .50, 0, .5, .45, .45, 1),
    TYPE ("l40", 47.7, 864, 181, 362, 90.5, 90.5, 142, .75, 0, .65, .55, .55, 1),
    TYPE ("l20", 48.3, 864, 119.5, 239, 59.8, 59.8, 92, .80, 0, .70, .6, .6, 1),
    TYPE ("l40s", 47.7, 864, 362, 733, 91.6, 183, 142, .65, 0, .55, .45, .45, 1),
    TYPE ("rtx-5000-ada", 34, 576, 261.1, 522.2, 65.3, 130.6, 100, .60, 0, .55, .45, .45,
          1),
    TYPE ("rtx-6000-ada", 51, 960, 364, 728, 91.1, 182, 142, .60, 0, .55, .45, .45, 1),
    TYPE ("rtx-4090", 25.4, 1008, 165, 330, 82.6, 82.6, 128, .90, 0, .8, .6, .6, 1),
    TYPE ("rtx-4090-d", 25.4, 1008, 147.1, 294.2, 73.5, 73.5, 114, .90, 0, .8, .6, .6, 1),
    TYPE ("rtx-3090", 25.4, 936, 71, 0, 35.6, 35.6, 82, .85, 0, 0, .6, .6, 1),
    TYPE ("rtx-3060", 12.6, 360, 25.5, 0, 12.7, 12.7, 28, .85, 0, 0, .6, .6, 1),
    TYPE ("rtx-3070", 8.4, 448, 40.6, 0, 20.3, 20.3, 46, .85, 0, 0, .6, .6, 1),
    TYPE ("rtx-3080", 10.5, 760, 59.5, 0, 29.8, 29.8, 68, .85, 0, 0, .6, .6, 1),
    TYPE ("rtx-3080-ti", 12.6, 912, 68.2, 0, 34.1, 34.1, 80, .85, 0, 0, .6, .6, 1),
    TYPE ("rtx-3090-ti", 25.4, 1008, 80, 0, 40, 40, 84, .85, 0, 0, .6, .6, 1),
    TYPE ("rtx-4060-ti", 17.1, 288, 44.1, 88.2, 22.1, 22.1, 34, .90, 0, .8, .6, .6, 1),
    TYPE ("rtx-4070", 12.6, 504, 58.3, 116.6, 29.1, 29.1, 46, .90, 0, .8, .6, .6, 1),
    TYPE ("rtx-4070-ti-super", 17.1, 672, 88.2, 176.4, 44.1, 44.1, 66, .90, 0, .8, .6, .6,
          1),
    TYPE ("rtx-4070-ti", 12.6, 504, 80.2, 160.4, 40.1, 40.1, 60, .90, 0, .8, .6, .6, 1),
    TYPE ("rtx-4080", 17.1, 717, 97.5, 195, 48.7, 48.7, 76, .90, 0, .8, .6, .6, 1),
    TYPE ("rtx-5070", 12.6, 672, 61.7, 123.4, 30.9, 30.9, 48, .95, 0, .85, .7, .7, .8,
          TF (494), .40),
    TYPE ("rtx-5070-ti", 17.1, 896, 87.9, 175.8, 43.9, 43.9, 70, .95, 0, .85, .7, .7, .8,
          TF (703), .40),
    TYPE ("rtx-5080", 17.1, 960, 112.6, 225.1, 56.3, 56.3, 84, .95, 0, .85, .7, .7, .8,
          TF (900), .40),
    TYPE ("rtx-5060-ti", 17.1, 448, 47.4, 94.9, 23.7, 23.7, 36, .95, 0, .85, .7, .7, .8,
          TF (379.6), .40),
    TYPE ("rtx-5090", 33.7, 1792, 209.5, 419, 104.8, 104.8, 170, .95, 0, .85, .7, .7, .8,
          TF (1676), .40),
    TYPE ("rtx-pro-6000", 102.6, 1792, 503.8, 1007.6, 126, 251.9, 188, .70, 0, .6, .5, .5,
          .8, TF (2015), .56),
    TYPE ("gb10", 128, 273, 125, 250, 31, 62.5, 48, .70, 0, .6, .5, .5, 1, TF (500), .56),
    TYPE ("a100-sxm4-80g", 85, 2039, 312, 0, 19.5, 156, 108, .74, 0, 0, .64, .64, 1),
    TYPE ("a100-sxm4-40g", 42.3, 1555, 312, 0, 19.5, 156, 108, .74, 0, 0, .64, .64, 1),
    TYPE ("a100-pcie-80g", 85, 1935, 312, 0, 19.5, 156, 108, .66, 0, 0, .58, .58, 1),
    TYPE ("a100-pcie-40g", 42.3, 1555, 312, 0, 19.5, 156, 108, .66, 0, 0, .58, .58, 1),
    TYPE ("a800-sxm4-80g", 85, 2039, 312, 0, 19.5, 156, 108, .74, 0, 0, .64, .64, 1),
    TYPE ("a800-pcie-80g", 85, 1935, 312, 0, 19.5, 156, 108, .66, 0, 0, .58, .58, 1),
    TYPE ("a800-pcie-40g", 42.3, 1555, 312, 0, 19.5, 156, 108, .66, 0, 0, .58, .58, 1),
    TYPE ("h100-sxm5-80g", 85, 3350, 989, 1979, 67, 494.5, 132, .66, .85, .64, .585, .345,
          .8),
    TYPE ("h100-pcie-80g", 85, 2039, 756, 1513, 51, 378, 114, .58, 0, .5, .5, .3, .8),
    TYPE ("h100-sxm5-96g", 102.6, 2400, 989, 1979, 67, 494.5, 132, .50, .85, .45, .5, .30,
          .8),
    TYPE ("h100-nvl-94g", 100.5, 3938, 835, 1671, 60, 417.5, 132, .60, 0, .54, .54, .32,
          .8),
    TYPE ("h800-pcie-80g", 85, 2039, 756, 1513, 51, 378, 114, .58, 0, .5, .5, .3, .8),
    TYPE ("h800-sxm5-80g", 85, 3350, 989, 1979, 67, 494.5, 132, .66, .85, .64, .585, .345,
          .8),
    TYPE ("h20-96g", 102.6, 4000, 148, 296, 44, 74, 78, .85, .85, .85, .75, .6, .8),
    TYPE ("h20-141g", 150.1, 4800, 148, 296, 44, 74, 78, .85, .85, .85, .75, .6, .8),
    TYPE ("gh200-96g", 102.6, 4000, 989, 1979, 67, 494.5, 132, .70, 0, .66, .585, .345,
          2.0),
    TYPE ("gh200-144g", 154.6, 4900, 989, 1979, 67, 494.5, 132, .70, 0, .66, .585, .345,
          2.0),
    TYPE ("h200-sxm-141g", 150.1, 4800, 989, 1979, 67, 494.5, 132, .70, .85, .64, .585,
          .345, .8),
    TYPE ("h200-nvl-141g", 150.1, 4800, 835, 1671, 60, 417.5, 132, .64, 0, .54, .54, .32,
          .8),
    TYPE ("b100-192g", 191.5, 8000, 1750, 3500, 60, 875, 148, .72, .74, .66, .54, .3, .6,
          TF (7000), .62),
    TYPE ("b200-192g", 191.5, 8000, 2250, 4500, 75, 1100, 148, .70, .74, .60, .54, .3, .6,
          TF (9000), .56),
    TYPE ("b300-288g", 287, 8000, 2250, 4500, 75, 1100, 148, .70, .74, .60, .62, .3, .6,
          TF (13500), .37),
    TYPE ("gb200-192g", 198.7, 8000, 2500, 5000, 80, 1250, 152, .66, .74, .56, .5, .28,
          2.0, TF (10000), .52),
    TYPE ("gb300-288g", 297, 8000, 2500, 5000, 80, 1250, 152, .74, .74, .64, .58, .28,
          2.0, TF (15000), .40),
    BOTH_TYPE ("mi100", 34.3, 1229, 92.3, 184.6, 0, 46.1, 0, 120, .60, 0, 0, .35, .3, 1),
    TYPE ("mi210", 68.7, 1638, 181, 0, 22.6, 0, 104, .60, 0, 0, .35, .3, 1),
    TYPE ("mi250", 68.7, 1638, 181, 0, 22.6, 0, 104, .60, 0, 0, .35, .3, 1),
    TYPE ("mi250x", 68.7, 1638, 191.5, 0, 23.9, 0, 110, .60, 0, 0, .35, .3, 1),
    TYPE ("mi300a", 137.4, 5300, 980.6, 1961, 122.6, 490.3, 228, .46, 0, .40, .4, .3, .8),
    TYPE ("mi300x", 206.1, 5300, 1307, 2615, 163, 653.7, 304, .46, 0, .40, .4, .3, .8),
    TYPE ("mi325x", 274.9, 6000, 1307, 2615, 163, 653.7, 304, .54, 0, .46, .45, .33, .8),
    TYPE ("mi350x", 309.2, 8000, 2300, 4600, 144, 0, 256, .52, 0, .5, .4, .3, .8,
          TF (9200), .47),
    TYPE ("mi355x", 309.2, 8000, 2516, 5033, 157, 0, 256, .53, 0, .457, .366, .274, .8,
          TF (10066), .43),
};

/* Queries in a block, whose time a multiprocessor idles in the mean when the last ones run out. */
#define FLASH_BLOCK 128.0
/* Where flash_efficiency holds. */
#define FLASH_SEQ 16384.0
#define FLASH_HEADS 16.0

static double flash_overhead (const struct topology_gpu_type *t, double fixed, double seq,
                              double rows)
{
    return (1.0 + fixed / seq) * (1.0 + FLASH_BLOCK * t->multiprocessors / rows);
}

double topology_flash_over (const struct topology_gpu_type *t, double fixed, double seq,
                            double rows)
{
    return flash_overhead (t, fixed, seq, rows) /
           flash_overhead (t, TOPOLOGY_FLASH_FWD, FLASH_SEQ, FLASH_SEQ * FLASH_HEADS);
}

const struct topology_gpu_type *topology_gpu_type_builtin (const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp (types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

const struct topology_gpu_type *topology_gpu_types_builtin (int *n)
{
    *n = (int) (sizeof types / sizeof *types);
    return types;
}

/* The first row that a name begins with holds. */
static const struct {
    const char *prefix, *source;
} sources[] = {
    {"a100-sxm",
     "products fitted on A100 training runs, attention from FlashAttention 2's "
     "charts"},
    {"a800-", "an A100's"},
    {"h100-sxm5-96g", "500 W and HBM2e, as TorchTitan's: FBGEMM issue 2546"},
    {"h100-sxm",
     "published GEMMs less what training loses (stas00/ml-engineering, Azure's "
     "benchmarking guide), attention from FlashAttention 3's charts (arXiv "
     "2407.08608)"},
    {"h200-",
     "published GEMMs less what training loses, attention from FlashAttention 3's "
     "charts (arXiv 2407.08608)"},
    {"h800-", "an H100's"},
    {"b200-",
     "fp8 set on MLPerf's and Megatron Bridge's runs, attention from FlashAttention "
     "4's charts (arXiv 2603.05451)"},
    {"b300-", "as B200's, twice the exponentials"},
    {"gb200-", "fp8 set on MLPerf's and Megatron Bridge's runs, attention as B200's"},
    {"gb300-", "fp8 set on MLPerf's and Megatron Bridge's runs, attention as B300's"},
    {"mi300x", ".85 of AMD's achieved rates (rocm.blogs.amd.com, Max-Achievable FLOPs, "
               "2025), in fp8 a little less"},
    {"mi325x", ".85 of AMD's achieved rates (rocm.blogs.amd.com, Typical Attained FLOPs, "
               "2026)"},
    {"", "published large GEMMs over the peak, or the kin's"},
};

const char *topology_gpu_type_source (const struct topology_gpu_type *t)
{
    size_t i = 0;

    while (strncmp (t->name, sources[i].prefix, strlen (sources[i].prefix)) != 0)
        i++;
    return t->source ? t->source : sources[i].source;
}
