/* What is known about GPU types without measuring: how machines name them, and the rates
 * of their data sheets.  Private to topology/. */
#ifndef TOPOLOGY_KNOWN_H
#define TOPOLOGY_KNOWN_H

#include <jansson.h>

/** The built-in GPU type of a device; any argument may be unknown (NULL, 0).
 *
 *  @param[in] model           as the driver prints it, as in "NVIDIA A100-SXM4-80GB"
 *  @param[in] vendor, device  PCI numbers
 *  @return its name, or NULL
 */
const char *known_gpu_type (const char *model, unsigned vendor, unsigned device);

/** GB/s one way that one NVLink (or xGMI link) of a type carries; 0: it has none, or the
 *  type is not known. */
double known_link_gb_per_s (const char *type);

/** The same by compute capability x 10. */
double known_sm_link_gb_per_s (int sm);

/** GB/s one way between any two GPUs of one node of a type, where the data sheet is
 *  enough to know it: all links through a switch, or PCIe; 0 otherwise. */
double known_pair_gb_per_s (const char *type);

/** `intra` of a node from what is known about its type: NVLinks counted in gpu_path times
 *  the rate of one; without any there, known_pair_gb_per_s between all.  Where only some
 *  pairs have NVLink, the others are null.
 *
 *  @param[in] node             its gpus and gpu_path are read
 *  @param[in] type             or NULL
 *  @param[in] link_gb_per_s    used where the type does not tell; 0: unknown
 *  @return a new reference; NULL where nothing is known
 */
json_t *known_intra (const json_t *node, const char *type, double link_gb_per_s);

/** `intra` of the rates that a description gives; equal ones become one number.
 *  @param[in] gb_per_s  [n*n] row-major, one way; 0: no link; n is 2 or more */
json_t *known_intra_of (const double *gb_per_s, size_t n, const char *source);

#endif
