/* Allocations that failed where nobody looks, and several that end together. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/** An allocation failed in a list of JSON calls, a growing text or a table.  What is made of it is
 *  not whole; whoever hands that out asks memory_take_lost first. */
void memory_lost (void);

/** calloc that tells: for those who build a part of a document and have no error to return. */
void *memory_zeros (size_t n, size_t size);

/** free each of these. */
#define FREE_ALL(...)                              \
    memory_free_all ((void *const[]){__VA_ARGS__}, \
                     sizeof (void *const[]){__VA_ARGS__} / sizeof (void *))
void memory_free_all (void *const *p, size_t n);

/** Was anything lost that was not told yet?  It is taken for told then. */
bool memory_take_lost (void);

#endif
