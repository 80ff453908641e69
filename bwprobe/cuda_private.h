/* The functions of NVIDIA's libraries that are used, as pointers: the headers are needed to
 * build, the libraries only to run. */
#ifndef BWPROBE_CUDA_PRIVATE_H
#define BWPROBE_CUDA_PRIVATE_H

#ifdef BWPROBE_NCCL

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "base/error.h"

#define CUDA_DRIVER(F)      \
    F (cuInit)              \
    F (cuDeviceGetCount)    \
    F (cuDeviceGet)         \
    F (cuDeviceGetName)     \
    F (cuDeviceGetPCIBusId) \
    F (cuDeviceGetUuid)     \
    F (cuDeviceTotalMem)    \
    F (cuDriverGetVersion)

#define CUDA_RUNTIME(F)           \
    F (cudaSetDevice)             \
    F (cudaDeviceGetAttribute)    \
    F (cudaRuntimeGetVersion)     \
    F (cudaMalloc)                \
    F (cudaFree)                  \
    F (cudaMemset)                \
    F (cudaMemcpy)                \
    F (cudaMemcpyAsync)           \
    F (cudaMemGetInfo)            \
    F (cudaStreamCreateWithFlags) \
    F (cudaStreamDestroy)         \
    F (cudaStreamQuery)           \
    F (cudaEventCreate)           \
    F (cudaEventDestroy)          \
    F (cudaEventRecord)           \
    F (cudaEventQuery)            \
    F (cudaEventElapsedTime)      \
    F (cudaGetErrorString)

#define CUDA_NCCL(F)           \
    F (ncclGetVersion)         \
    F (ncclGetUniqueId)        \
    F (ncclCommInitRankConfig) \
    F (ncclCommSplit)          \
    F (ncclCommGetAsyncError)  \
    F (ncclCommFinalize)       \
    F (ncclCommDestroy)        \
    F (ncclCommAbort)          \
    F (ncclSend)               \
    F (ncclRecv)               \
    F (ncclGetErrorString)     \
    F (ncclGetLastError)

#define CUDA_BLAS(F)    \
    F (cublasCreate)    \
    F (cublasDestroy)   \
    F (cublasSetStream) \
    F (cublasGemmEx)

/* Headers rename some functions to later versions; the fields follow. */
#define CUDA_FIELD(name) __typeof__ (name) *name;

struct cuda_driver {
    CUDA_DRIVER (CUDA_FIELD)
};
struct cuda_runtime {
    CUDA_RUNTIME (CUDA_FIELD)
};
struct cuda_nccl {
    CUDA_NCCL (CUDA_FIELD)
};
struct cuda_blas {
    CUDA_BLAS (CUDA_FIELD)
};

/** Load a library once.
 *  @return its functions, for as long as the program runs, or NULL */
const struct cuda_driver *cuda_load_driver (struct error *err);
const struct cuda_runtime *cuda_load_runtime (struct error *err);
const struct cuda_nccl *cuda_load_nccl (struct error *err);
const struct cuda_blas *cuda_load_blas (struct error *err);

/** Turn a runtime call's result into a status; `what` is what was tried. */
enum status cuda_check (const struct cuda_runtime *rt, cudaError_t result,
                        const char *what, struct error *err);

#endif
#endif
