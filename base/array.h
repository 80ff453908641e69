/* Arrays that grow entry by entry. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

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
