/* What bwprobe/nvidia.h declares is what NVIDIA's headers say, where these are found: types,
 * constants, structs and functions, compared by the compiler. */
#include "tests/lib/fixture.h"

#if defined(__has_include)
#if __has_include(<nccl.h>) && __has_include(<cuda.h>) && __has_include(<cublasLt.h>) && \
    __has_include(<cublas_v2.h>)
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#define NVIDIA_HEADERS
#endif
#endif

#include "bwprobe/nvidia.h"

TEST (headers_agree)
{
#ifdef NVIDIA_HEADERS
#define TYPE(name, type)                                      \
    _Static_assert(__builtin_types_compatible_p (name, type), \
                   #name " is another type in NVIDIA's headers");
#define CONSTANT(name, value) \
    _Static_assert(name == value, #name " is another number in NVIDIA's headers");
#define SIZE(name, bytes)                                                         \
    _Static_assert(sizeof (name) == bytes, #name " has another size in NVIDIA's " \
                                                 "headers");
#define FIELD(name, at)                                 \
    _Static_assert(offsetof (ncclConfig_t, name) == at, \
                   #name " is elsewhere in NCCL's headers");
#define FUNCTION(result, name, parameters)                                              \
    _Static_assert(__builtin_types_compatible_p (__typeof__ (name), result parameters), \
                   #name " is another function in NVIDIA's headers");
    NVIDIA_TYPES (TYPE)
    NVIDIA_CONSTANTS (CONSTANT)
    NVIDIA_SIZES (SIZE)
    NVIDIA_NCCL_CONFIG_FIELDS (FIELD)
    CUDA_DRIVER (FUNCTION)
    CUDA_RUNTIME (FUNCTION)
    CUDA_NCCL (FUNCTION)
    CUDA_BLAS (FUNCTION)
    CUDA_BLASLT (FUNCTION)
#else
#define SIZE(name, bytes) assert_int_equal (sizeof (name), bytes);
#define FIELD(name, at) assert_int_equal (offsetof (ncclConfig_t, name), at);
    NVIDIA_SIZES (SIZE)
    NVIDIA_NCCL_CONFIG_FIELDS (FIELD)
#endif
}
