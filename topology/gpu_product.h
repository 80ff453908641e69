/* GPU types by the product name that drivers and tools print. */
#ifndef TOPOLOGY_GPU_PRODUCT_H
#define TOPOLOGY_GPU_PRODUCT_H

#include <stdbool.h>

/** The name of the built-in type of a product, such as "NVIDIA H100 80GB HBM3".
 *
 *  Only what the text settles: a product with several memory sizes or boards under one name
 *  has no answer unless memory_bytes tells them apart.
 *
 *  @param[in] product       as cuDeviceGetName, nvidia-smi or nccl-tests give it
 *  @param[in] memory_bytes  what the driver reports, or 0 when not known
 *  @return a name that topology_gpu_type_builtin knows, or NULL
 */
const char *topology_gpu_type_of_product (const char *product, double memory_bytes);

/** Is it a product that is known to be none of the built-in types ("h100-nvl")? */
bool topology_gpu_product_other (const char *product);

#endif
