/* Arrays that grow entry by entry, allocations that failed where nobody looks, and several that end
 * together. */
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

/** free a list of n texts, and them; it may be NULL. */
void memory_free_texts (char **list, int n);

/** Was anything lost that was not told yet?  It is taken for told then. */
bool memory_take_lost (void);

/** Make room for one more entry in an array that holds n.
 *
 *  The room is doubled at 16, 32, 64, ... entries, so that n alone tells how much there is:
 *  only this function may allocate the array, and n grows by one at a time.
 *
 *  @param[in,out] array  address of the pointer to the entries, which is NULL at first; free it
 *  @param[in]     size   of an entry, in bytes
 *  @return false when out of memory; the array is as it was
 */
bool array_grow (void *array, size_t n, size_t size);

#endif
