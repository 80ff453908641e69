#include "bwprobe/cuda.h"

int cuda_gpus (struct error *err)
{
    err_set (err, ST_IO, "this bwprobe was built without the headers of CUDA and NCCL");
    return 0;
}

void cuda_describe (int device, struct gpu_description *gpu)
{
    (void) device;
    (void) gpu;
}

enum status cuda_can_nccl (struct error *err)
{
    return err_set (err, ST_IO, "built without the headers of CUDA and NCCL");
}

enum status cuda_compute (int device, struct msg_computed *out, struct error *err)
{
    (void) device;
    (void) out;
    return err_set (err, ST_IO, "built without the headers of CUDA and NCCL");
}
