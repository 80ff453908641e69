/* The functions of NVIDIA's libraries that are used, as pointers: the libraries are needed only to
 * run. */
#ifndef BWPROBE_CUDA_PRIVATE_H
#define BWPROBE_CUDA_PRIVATE_H

#include "base/error.h"
#include "bwprobe/nvidia.h"

#define CUDA_FIELD(result, name, parameters) result (*name) parameters;

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
struct cuda_blaslt {
    CUDA_BLASLT (CUDA_FIELD)
};

/** Load a library once.
 *  @return its functions, for as long as the program runs, or NULL */
const struct cuda_driver *cuda_load_driver (struct error *err);
const struct cuda_runtime *cuda_load_runtime (struct error *err);
const struct cuda_nccl *cuda_load_nccl (struct error *err);
const struct cuda_blas *cuda_load_blas (struct error *err);
const struct cuda_blaslt *cuda_load_blaslt (struct error *err);

/** Turn a result of the runtime, which is loaded, into a status; `what` is what was tried. */
enum status cuda_check (cudaError_t result, const char *what, struct error *err);

#endif
