/* What the NVIDIA driver's management library (NVML) tells about the GPUs, loaded at run
 * time: a machine without it has none.  Private to topology/. */
#ifndef TOPOLOGY_NVML_H
#define TOPOLOGY_NVML_H

#include <stdbool.h>

#include "topology/machine/machine.h"

#define NVML_LINKS_MAX 36

struct nvml_gpu {
    char pci[MACHINE_PCI_TEXT];
    char model[96], uuid[96];
    int n_links; /* NVLinks that are up */
    struct {
        char pci[MACHINE_PCI_TEXT]; /* of the other end, "" when it has none */
        bool is_switch;
    } link[NVML_LINKS_MAX];
};

/** The GPUs that this process may use, in NVML's order (by PCI address).
 *
 *  @param[out] out  [return value], to be freed; NULL when there are none
 *  @param[out] why  what is missing, in words, when the library or driver is not there;
 *                   NULL otherwise
 *  @return how many
 */
int nvml_gpus (struct nvml_gpu **out, const char **why);

#endif
