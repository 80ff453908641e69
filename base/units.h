/* Units at the edges.  Inside, everything is SI base units and bytes; GB/s (1e9) is the
 * unit of the files, GiB (2^30) that of printed memory. */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#define UNITS_GB 1e9
#define UNITS_GIB 1073741824.0
#define UNITS_US 1e-6

#endif
