/* GPU types by the names that people, drivers and clouds give them.  Private to topology/, but for
 * what topology.h has. */
#ifndef TOPOLOGY_GPU_NAMES_H
#define TOPOLOGY_GPU_NAMES_H

#include <stdbool.h>

/** The name of the built-in type of a product, such as "NVIDIA H100 80GB HBM3".
 *
 *  A product with several memory sizes under one name is the usual one of them unless
 *  memory_bytes tells otherwise; one with another memory than any type has no answer.
 *
 *  @param[in] product       as cuDeviceGetName, nvidia-smi or nccl-tests give it
 *  @param[in] memory_bytes  what the driver reports, or 0 when not known
 *  @return a name that topology_gpu_type_builtin knows, or NULL
 */
const char *topology_gpu_type_of_product (const char *product, double memory_bytes);

#endif
