/* Allocations that failed where nobody looks. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/** An allocation failed in a list of JSON calls, a growing text or a table.  What is made of it is
 *  not whole; whoever hands that out asks memory_take_lost first. */
void memory_lost (void);

/** calloc that tells: for those who build a part of a document and have no error to return. */
void *memory_zeros (size_t n, size_t size);

/** Was anything lost that was not told yet?  It is taken for told then. */
bool memory_take_lost (void);

#endif
