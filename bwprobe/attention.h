/* How fast attention kernels are, by the PyTorch that is there: bwprobe has none of its own. */
#ifndef LINKWISE_BWPROBE_ATTENTION_H
#define LINKWISE_BWPROBE_ATTENTION_H

#include "base/error.h"
#include "base/text.h"
#include "bwprobe/messages.h"

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
