/* NVIDIA's libraries, loaded at run time, so that one program starts everywhere and says what
 * is missing. */
#ifndef BWPROBE_CUDA_H
#define BWPROBE_CUDA_H

#include "base/error.h"
#include "bwprobe/messages.h"

/** How many GPUs this process sees, by libcuda alone; no context is made.
 *  @param[out] err  why there are none; may be NULL
 *  @return 0 without a driver, without a GPU, and in a build without CUDA's headers */
int cuda_gpus (struct error *err);

/** Describe a GPU; untouched where there is no such one. */
void cuda_describe (int device, struct gpu_description *gpu);

/** ST_OK if the NCCL transport was built, its libraries load and there is a GPU. */
enum status cuda_can_nccl (struct error *err);

/** Measure a GPU: the rate of large matrix products in the precision that training uses on
 *  it, and the rate at which it copies its own memory (read and written bytes).
 *
 *  After a warm-up that brings the clocks to where they stay, the median of several.
 *
 *  @param[in] device   as this process numbers them
 *  @return ST_OK, or ST_IO with what is missing or failed
 */
enum status cuda_compute (int device, struct msg_computed *out, struct error *err);

#endif
