/* A rank carries out what rank 0 asks. */
#ifndef BWPROBE_ORDERS_H
#define BWPROBE_ORDERS_H

#include "bwprobe/station.h"

/** Until rank 0 says goodbye or is gone. */
enum status orders_work (struct station *s, struct error *err);

#endif
