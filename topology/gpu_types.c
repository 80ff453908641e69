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
 * B300 and GB300 have twice the exponentials, which attention waits for (FlashAttention 4), and a
 * GB300 1,400 W in place of a GB200's 1,200.  fp4_gemm_efficiency makes products 1.87 times as
 * fast as fp8's, as measured on B300 (Transformer Engine's documentation,
 * low_precision_training), on all types.
 */
#include "topology/topology.h"

#include <string.h>

#define TF 1e12
#define GB 1e9

/* name, memory, memory bandwidth, bf16, fp16, fp8, fp32, tf32, SMs, GEMM and NVLS efficiency,
 * fp8 GEMM and two flash efficiencies, host_factor, fp4 and its GEMM efficiency; what measurements
 * tell stays 0.
 * topology/gpu_names.c has what names mean them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const struct topology_gpu_type types[] = {
    {"v100-sxm2-32g", 34.1 * GB, 900 * GB, 0, 125 * TF, 0, 15.7 * TF, 0, 80, .72, 0, 0, 0,
     0, 1.15},
    {"v100-sxm2-16g", 16.9 * GB, 900 * GB, 0, 125 * TF, 0, 15.7 * TF, 0, 80, .72, 0, 0, 0,
     0, 1.15},
    {"v100-pcie-32g", 34.1 * GB, 900 * GB, 0, 112 * TF, 0, 14 * TF, 0, 80, .72, 0, 0, 0,
     0, 1.15},
    {"v100-pcie-16g", 16.9 * GB, 900 * GB, 0, 112 * TF, 0, 14 * TF, 0, 80, .72, 0, 0, 0,
     0, 1.15},
    {"v100s-pcie-32g", 34.1 * GB, 1134 * GB, 0, 130 * TF, 0, 16.4 * TF, 0, 80, .72, 0, 0,
     0, 0, 1.15},
    {"t4", 15.8 * GB, 320 * GB, 0, 65 * TF, 0, 8.1 * TF, 0, 40, .40, 0, 0, 0, 0, 1.15},
    {"titan-rtx", 25.4 * GB, 672 * GB, 0, 130.5 * TF, 0, 16.3 * TF, 0, 72, .60, 0, 0, 0,
     0, 1.15},
    {"titan-v", 12.6 * GB, 653 * GB, 0, 110 * TF, 0, 14.9 * TF, 0, 80, .72, 0, 0, 0, 0,
     1.15},
    {"rtx-2080-ti", 11.5 * GB, 616 * GB, 0, 53.8 * TF, 0, 13.4 * TF, 0, 68, .90, 0, 0, 0,
     0, 1.15},
    {"rtx-2080", 8.4 * GB, 448 * GB, 0, 40.3 * TF, 0, 10.1 * TF, 0, 46, .90, 0, 0, 0, 0,
     1.15},
    {"quadro-rtx-6000", 25.4 * GB, 672 * GB, 0, 130.5 * TF, 0, 16.3 * TF, 0, 72, .60, 0,
     0, 0, 0, 1.15},
    {"rtx-8000", 50.9 * GB, 672 * GB, 0, 130.5 * TF, 0, 16.3 * TF, 0, 72, .60, 0, 0, 0, 0,
     1.15},
    {"a10", 24.1 * GB, 600 * GB, 125 * TF, 125 * TF, 0, 31.2 * TF, 62.5 * TF, 72, .60, 0,
     0, .45, .45, 1},
    {"a10g", 23.7 * GB, 600 * GB, 70 * TF, 70 * TF, 0, 35 * TF, 35 * TF, 80, .75, 0, 0,
     0.5, 0.5, 1},
    {"a30", 25.4 * GB, 933 * GB, 165 * TF, 165 * TF, 0, 10.3 * TF, 82.5 * TF, 56, .70, 0,
     0, .55, .55, 1},
    {"a40", 48.3 * GB, 696 * GB, 149.7 * TF, 149.7 * TF, 0, 37.4 * TF, 74.8 * TF, 84, .65,
     0, 0, .5, .5, 1},
    {"rtx-a4000", 16.9 * GB, 448 * GB, 76.7 * TF, 76.7 * TF, 0, 19.2 * TF, 38.3 * TF, 48,
     .65, 0, 0, .5, .5, 1},
    {"rtx-a5000", 25.4 * GB, 768 * GB, 111.1 * TF, 111.1 * TF, 0, 27.8 * TF, 55.6 * TF,
     64, .70, 0, 0, .5, .5, 1},
    {"rtx-a6000", 51.0 * GB, 768 * GB, 154.8 * TF, 154.8 * TF, 0, 38.7 * TF, 77.4 * TF,
     84, .65, 0, 0, .5, .5, 1},
    {"l4", 23.7 * GB, 300 * GB, 121 * TF, 121 * TF, 242 * TF, 30.3 * TF, 60 * TF, 58, .50,
     0, 0.5, 0.45, 0.45, 1},
    {"l40", 47.7 * GB, 864 * GB, 181 * TF, 181 * TF, 362 * TF, 90.5 * TF, 90.5 * TF, 142,
     .75, 0, .65, .55, .55, 1},
    {"l20", 48.3 * GB, 864 * GB, 119.5 * TF, 119.5 * TF, 239 * TF, 59.8 * TF, 59.8 * TF,
     92, .80, 0, .70, .6, .6, 1},
    {"l40s", 47.7 * GB, 864 * GB, 362 * TF, 362 * TF, 733 * TF, 91.6 * TF, 183 * TF, 142,
     .65, 0, 0.55, 0.45, 0.45, 1},
    {"rtx-5000-ada", 34.0 * GB, 576 * GB, 261.1 * TF, 261.1 * TF, 522.2 * TF, 65.3 * TF,
     130.6 * TF, 100, .60, 0, .55, .45, .45, 1},
    {"rtx-6000-ada", 51.0 * GB, 960 * GB, 364 * TF, 364 * TF, 728 * TF, 91.1 * TF,
     182 * TF, 142, .60, 0, .55, .45, .45, 1},
    {"rtx-4090", 25.4 * GB, 1008 * GB, 165 * TF, 165 * TF, 330 * TF, 82.6 * TF, 82.6 * TF,
     128, .90, 0, 0.8, 0.6, 0.6, 1},
    {"rtx-4090-d", 25.4 * GB, 1008 * GB, 147.1 * TF, 147.1 * TF, 294.2 * TF, 73.5 * TF,
     73.5 * TF, 114, .90, 0, .8, .6, .6, 1},
    {"rtx-3090", 25.4 * GB, 936 * GB, 71 * TF, 71 * TF, 0, 35.6 * TF, 35.6 * TF, 82, .85,
     0, 0, 0.6, 0.6, 1},
    {"rtx-3060", 12.6 * GB, 360 * GB, 25.5 * TF, 25.5 * TF, 0, 12.7 * TF, 12.7 * TF, 28,
     .85, 0, 0, .6, .6, 1},
    {"rtx-3070", 8.4 * GB, 448 * GB, 40.6 * TF, 40.6 * TF, 0, 20.3 * TF, 20.3 * TF, 46,
     .85, 0, 0, .6, .6, 1},
    {"rtx-3080", 10.5 * GB, 760 * GB, 59.5 * TF, 59.5 * TF, 0, 29.8 * TF, 29.8 * TF, 68,
     .85, 0, 0, .6, .6, 1},
    {"rtx-3080-ti", 12.6 * GB, 912 * GB, 68.2 * TF, 68.2 * TF, 0, 34.1 * TF, 34.1 * TF,
     80, .85, 0, 0, .6, .6, 1},
    {"rtx-3090-ti", 25.4 * GB, 1008 * GB, 80 * TF, 80 * TF, 0, 40 * TF, 40 * TF, 84, .85,
     0, 0, .6, .6, 1},
    {"rtx-4060-ti", 17.1 * GB, 288 * GB, 44.1 * TF, 44.1 * TF, 88.2 * TF, 22.1 * TF,
     22.1 * TF, 34, .90, 0, .8, .6, .6, 1},
    {"rtx-4070", 12.6 * GB, 504 * GB, 58.3 * TF, 58.3 * TF, 116.6 * TF, 29.1 * TF,
     29.1 * TF, 46, .90, 0, .8, .6, .6, 1},
    {"rtx-4070-ti-super", 17.1 * GB, 672 * GB, 88.2 * TF, 88.2 * TF, 176.4 * TF,
     44.1 * TF, 44.1 * TF, 66, .90, 0, .8, .6, .6, 1},
    {"rtx-4070-ti", 12.6 * GB, 504 * GB, 80.2 * TF, 80.2 * TF, 160.4 * TF, 40.1 * TF,
     40.1 * TF, 60, .90, 0, .8, .6, .6, 1},
    {"rtx-4080", 17.1 * GB, 717 * GB, 97.5 * TF, 97.5 * TF, 195 * TF, 48.7 * TF,
     48.7 * TF, 76, .90, 0, .8, .6, .6, 1},
    {"rtx-5070", 12.6 * GB, 672 * GB, 61.7 * TF, 61.7 * TF, 123.4 * TF, 30.9 * TF,
     30.9 * TF, 48, .95, 0, .85, .7, .7, .8, 494 * TF, .40},
    {"rtx-5070-ti", 17.1 * GB, 896 * GB, 87.9 * TF, 87.9 * TF, 175.8 * TF, 43.9 * TF,
     43.9 * TF, 70, .95, 0, .85, .7, .7, .8, 703 * TF, .40},
    {"rtx-5080", 17.1 * GB, 960 * GB, 112.6 * TF, 112.6 * TF, 225.1 * TF, 56.3 * TF,
     56.3 * TF, 84, .95, 0, .85, .7, .7, .8, 900 * TF, .40},
    {"rtx-5060-ti", 17.1 * GB, 448 * GB, 47.4 * TF, 47.4 * TF, 94.9 * TF, 23.7 * TF,
     23.7 * TF, 36, .95, 0, .85, .7, .7, .8, 379.6 * TF, .40},
    {"rtx-5090", 33.7 * GB, 1792 * GB, 209.5 * TF, 209.5 * TF, 419 * TF, 104.8 * TF,
     104.8 * TF, 170, .95, 0, .85, .7, .7, .8, 1676 * TF, .40},
    {"rtx-pro-6000", 102.6 * GB, 1792 * GB, 503.8 * TF, 503.8 * TF, 1007.6 * TF, 126 * TF,
     251.9 * TF, 188, .70, 0, .6, .5, .5, .8, 2015 * TF, .56},
    {"gb10", 128 * GB, 273 * GB, 125 * TF, 125 * TF, 250 * TF, 31 * TF, 62.5 * TF, 48,
     .70, 0, .6, .5, .5, 1, 500 * TF, .56},
    {"a100-sxm4-80g", 85.0 * GB, 2039 * GB, 312 * TF, 312 * TF, 0, 19.5 * TF, 156 * TF,
     108, .74, 0, 0, 0.64, 0.64, 1},
    {"a100-sxm4-40g", 42.3 * GB, 1555 * GB, 312 * TF, 312 * TF, 0, 19.5 * TF, 156 * TF,
     108, .74, 0, 0, 0.64, 0.64, 1},
    {"a100-pcie-80g", 85.0 * GB, 1935 * GB, 312 * TF, 312 * TF, 0, 19.5 * TF, 156 * TF,
     108, .66, 0, 0, 0.58, 0.58, 1},
    {"a100-pcie-40g", 42.3 * GB, 1555 * GB, 312 * TF, 312 * TF, 0, 19.5 * TF, 156 * TF,
     108, .66, 0, 0, 0.58, 0.58, 1},
    {"a800-sxm4-80g", 85.0 * GB, 2039 * GB, 312 * TF, 312 * TF, 0, 19.5 * TF, 156 * TF,
     108, .74, 0, 0, 0.64, 0.64, 1},
    {"a800-pcie-80g", 85.0 * GB, 1935 * GB, 312 * TF, 312 * TF, 0, 19.5 * TF, 156 * TF,
     108, .66, 0, 0, 0.58, 0.58, 1},
    {"a800-pcie-40g", 42.3 * GB, 1555 * GB, 312 * TF, 312 * TF, 0, 19.5 * TF, 156 * TF,
     108, .66, 0, 0, 0.58, 0.58, 1},
    {"h100-sxm5-80g", 85.0 * GB, 3350 * GB, 989 * TF, 989 * TF, 1979 * TF, 67 * TF,
     494.5 * TF, 132, .66, .85, 0.64, 0.585, 0.345, 0.8},
    {"h100-pcie-80g", 85.0 * GB, 2039 * GB, 756 * TF, 756 * TF, 1513 * TF, 51 * TF,
     378 * TF, 114, .58, 0, 0.5, 0.5, 0.3, 0.8},
    {"h100-sxm5-96g", 102.6 * GB, 2400 * GB, 989 * TF, 989 * TF, 1979 * TF, 67 * TF,
     494.5 * TF, 132, .50, 0.85, .45, .5, .30, .8},
    {"h100-nvl-94g", 100.5 * GB, 3938 * GB, 835 * TF, 835 * TF, 1671 * TF, 60 * TF,
     417.5 * TF, 132, .60, 0, .54, .54, .32, .8},
    {"h800-pcie-80g", 85.0 * GB, 2039 * GB, 756 * TF, 756 * TF, 1513 * TF, 51 * TF,
     378 * TF, 114, .58, 0, 0.5, 0.5, 0.3, 0.8},
    {"h800-sxm5-80g", 85 * GB, 3350 * GB, 989 * TF, 989 * TF, 1979 * TF, 67 * TF,
     494.5 * TF, 132, .66, .85, .64, .585, .345, .8},
    {"h20-96g", 102.6 * GB, 4000 * GB, 148 * TF, 148 * TF, 296 * TF, 44 * TF, 74 * TF, 78,
     .85, .85, .85, .75, .6, .8},
    {"h20-141g", 150.1 * GB, 4800 * GB, 148 * TF, 148 * TF, 296 * TF, 44 * TF, 74 * TF,
     78, .85, .85, .85, .75, .6, .8},
    {"gh200-96g", 102.6 * GB, 4000 * GB, 989 * TF, 989 * TF, 1979 * TF, 67 * TF,
     494.5 * TF, 132, .70, 0, .66, .585, .345, .7},
    {"gh200-144g", 154.6 * GB, 4900 * GB, 989 * TF, 989 * TF, 1979 * TF, 67 * TF,
     494.5 * TF, 132, .70, 0, .66, .585, .345, .7},
    {"h200-sxm-141g", 150.1 * GB, 4800 * GB, 989 * TF, 989 * TF, 1979 * TF, 67 * TF,
     494.5 * TF, 132, .70, .85, 0.64, 0.585, 0.345, 0.8},
    {"h200-nvl-141g", 150.1 * GB, 4800 * GB, 835 * TF, 835 * TF, 1671 * TF, 60 * TF,
     417.5 * TF, 132, .64, 0, .54, .54, .32, .8},
    {"b100-192g", 191.5 * GB, 8000 * GB, 1750 * TF, 1750 * TF, 3500 * TF, 60 * TF,
     875 * TF, 148, .72, .74, .66, .54, .3, .6, 7000 * TF, .62},
    {"b200-192g", 191.5 * GB, 8000 * GB, 2250 * TF, 2250 * TF, 4500 * TF, 75 * TF,
     1100 * TF, 148, .70, .74, .60, 0.54, 0.3, 0.6, 9000 * TF, .56},
    {"b300-288g", 287.0 * GB, 8000 * GB, 2250 * TF, 2250 * TF, 4500 * TF, 75 * TF,
     1100 * TF, 148, .70, .74, .60, 0.62, 0.3, 0.6, 13500 * TF, .37},
    {"gb200-192g", 198.7 * GB, 8000 * GB, 2500 * TF, 2500 * TF, 5000 * TF, 80 * TF,
     1250 * TF, 152, .70, .74, .56, 0.5, 0.28, 0.7, 10000 * TF, .52},
    {"gb300-288g", 297.0 * GB, 8000 * GB, 2500 * TF, 2500 * TF, 5000 * TF, 80 * TF,
     1250 * TF, 152, .74, .74, .64, 0.58, 0.28, 0.7, 15000 * TF, .40},
    {"mi100", 34.3 * GB, 1229 * GB, 92.3 * TF, 184.6 * TF, 0, 46.1 * TF, 0, 120, .60, 0,
     0, .35, .3, 1},
    {"mi210", 68.7 * GB, 1638 * GB, 181 * TF, 181 * TF, 0, 22.6 * TF, 0, 104, .60, 0, 0,
     0.35, 0.3, 1},
    {"mi250", 68.7 * GB, 1638 * GB, 181 * TF, 181 * TF, 0, 22.6 * TF, 0, 104, .60, 0, 0,
     0.35, 0.3, 1},
    {"mi250x", 68.7 * GB, 1638 * GB, 191.5 * TF, 191.5 * TF, 0, 23.9 * TF, 0, 110, .60, 0,
     0, 0.35, 0.3, 1},
    {"mi300a", 137.4 * GB, 5300 * GB, 980.6 * TF, 980.6 * TF, 1961 * TF, 122.6 * TF,
     490.3 * TF, 228, .46, 0, .40, 0.4, 0.3, 0.8},
    {"mi300x", 206.1 * GB, 5300 * GB, 1307 * TF, 1307 * TF, 2615 * TF, 163 * TF,
     653.7 * TF, 304, .46, 0, .40, 0.4, 0.3, 0.8},
    {"mi325x", 274.9 * GB, 6000 * GB, 1307 * TF, 1307 * TF, 2615 * TF, 163 * TF,
     653.7 * TF, 304, .54, 0, .46, .45, .33, .8},
    {"mi350x", 309.2 * GB, 8000 * GB, 2300 * TF, 2300 * TF, 4600 * TF, 144 * TF, 0, 256,
     .52, 0, .5, .4, .3, .8, 9200 * TF, .47},
    {"mi355x", 309.2 * GB, 8000 * GB, 2516 * TF, 2516 * TF, 5033 * TF, 157 * TF, 0, 256,
     .53, 0, .457, .366, .274, 0.8, 10066 * TF, .43},
};
#pragma GCC diagnostic pop

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
