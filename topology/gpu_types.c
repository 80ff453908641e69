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
 * An mi250x is one of its two dies, which is what a rank gets.
 */
#include "topology/topology.h"

#include <string.h>

#define TF 1e12
#define GB 1e9

/* name, memory, memory bandwidth, bf16, fp16, fp8, fp32, SMs, GEMM and NVLS efficiency */
static const struct topology_gpu_type types[] = {
    {"v100-sxm2-16g", 16.9 * GB, 900 * GB, 0, 125 * TF, 0, 15.7 * TF, 80, .72, 0},
    {"v100-sxm2-32g", 34.1 * GB, 900 * GB, 0, 125 * TF, 0, 15.7 * TF, 80, .72, 0},
    {"t4", 15.8 * GB, 320 * GB, 0, 65 * TF, 0, 8.1 * TF, 40, .40, 0},
    {"a10g", 23.7 * GB, 600 * GB, 70 * TF, 70 * TF, 0, 35 * TF, 80, .75, 0},
    {"l4", 23.7 * GB, 300 * GB, 121 * TF, 121 * TF, 242 * TF, 30.3 * TF, 58, .50, 0},
    {"l40s", 47.7 * GB, 864 * GB, 362 * TF, 362 * TF, 733 * TF, 91.6 * TF, 142, .65, 0},
    {"rtx-4090", 25.4 * GB, 1008 * GB, 165 * TF, 165 * TF, 330 * TF, 82.6 * TF, 128, .90,
     0},
    {"rtx-3090", 25.4 * GB, 936 * GB, 71 * TF, 71 * TF, 0, 35.6 * TF, 82, .85, 0},
    {"a100-sxm4-40g", 42.3 * GB, 1555 * GB, 312 * TF, 312 * TF, 0, 19.5 * TF, 108, .74,
     0},
    {"a100-sxm4-80g", 85.0 * GB, 2039 * GB, 312 * TF, 312 * TF, 0, 19.5 * TF, 108, .74,
     0},
    {"a100-pcie-80g", 85.0 * GB, 1935 * GB, 312 * TF, 312 * TF, 0, 19.5 * TF, 108, .66,
     0},
    {"a800-sxm4-80g", 85.0 * GB, 2039 * GB, 312 * TF, 312 * TF, 0, 19.5 * TF, 108, .74,
     0},
    {"h100-sxm5-80g", 85.0 * GB, 3350 * GB, 989 * TF, 989 * TF, 1979 * TF, 67 * TF, 132,
     .66, .85},
    {"h100-pcie-80g", 85.0 * GB, 2039 * GB, 756 * TF, 756 * TF, 1513 * TF, 51 * TF, 114,
     .58, 0},
    {"h200-sxm-141g", 150.1 * GB, 4800 * GB, 989 * TF, 989 * TF, 1979 * TF, 67 * TF, 132,
     .70, .85},
    {"b200-192g", 191.5 * GB, 8000 * GB, 2250 * TF, 2250 * TF, 4500 * TF, 75 * TF, 148,
     .70, .74},
    {"b300-288g", 287.0 * GB, 8000 * GB, 2250 * TF, 2250 * TF, 4500 * TF, 75 * TF, 148,
     .70, .74},
    {"gb200-192g", 198.7 * GB, 8000 * GB, 2500 * TF, 2500 * TF, 5000 * TF, 80 * TF, 152,
     .70, .74},
    {"gb300-288g", 297.0 * GB, 8000 * GB, 2500 * TF, 2500 * TF, 5000 * TF, 80 * TF, 152,
     .70, .74},
    {"mi250x", 68.7 * GB, 1638 * GB, 191.5 * TF, 191.5 * TF, 0, 23.9 * TF, 110, .60, 0},
    {"mi300x", 206.1 * GB, 5300 * GB, 1307 * TF, 1307 * TF, 2615 * TF, 163 * TF, 304, .50,
     0},
    {"mi355x", 309.2 * GB, 8000 * GB, 2300 * TF, 2300 * TF, 4600 * TF, 157 * TF, 256, .55,
     0},
};

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
