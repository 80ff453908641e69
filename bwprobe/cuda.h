/* NVIDIA's libraries, loaded at run time, so that one program starts everywhere and says what
 * is missing. */
#ifndef BWPROBE_CUDA_H
#define BWPROBE_CUDA_H

#include "base/error.h"
#include "base/text.h"
#include "bwprobe/messages.h"

/** How many GPUs this process sees, by libcuda alone; no context is made.
 *  @param[out] err  why there are none; may be NULL
 *  @return 0 without a driver and without a GPU */
int cuda_gpus (struct error *err);

/** Describe a GPU; untouched where there is no such one. */
void cuda_describe (int device, struct gpu_description *gpu);

/** ST_OK if the libraries of the NCCL transport load and there is a GPU. */
enum status cuda_can_nccl (struct error *err);

/** Measure a GPU: the rates of matrix products, the rate at which it copies its own memory
 *  (read and written bytes), and what a tiny kernel costs.
 *
 *  Products of random numbers: constant ones draw less power, and clocks then stay higher
 *  than in training.  After a warm-up that brings the clocks to where they stay, the median
 *  of several.
 *
 *  @param[in]  device  as this process numbers them
 *  @param[in]  all     every precision that the GPU has in several shapes, and launches; else
 *                      one large square product in 16 bits, and copies
 *  @param[out] out     all but `ok` and `reason`
 *  @return ST_OK, or ST_IO with what is missing or failed
 */
enum status cuda_compute (int device, bool all, struct msg_computed *out,
                          struct error *err);

/* ---- attention.c: how fast attention kernels are, by the PyTorch that is there ---- */

/** attention.py, and an entry without a name. */
extern const struct text_shipped attention_script[];

/** Run attention.py on one GPU by the `python3` in PATH, and read what it prints.
 *
 *  @param[in]  device  as CUDA counts them for this process
 *  @param[out] out     n_attention and attention[]; 0 where nothing was measured
 *  @param[out] err     why nothing was measured: no Python, no PyTorch, its own words, or too slow
 *  @return ST_OK: one kind of kernels or more was measured */
enum status attention_measure (int device, struct msg_computed *out, struct error *err);

#endif
