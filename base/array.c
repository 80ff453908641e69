#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_LEAST ((size_t) 16)

bool array_grow (void *array, size_t n, size_t size)
{
    bool full = n == 0 || (n >= ROOM_LEAST && (n & (n - 1)) == 0);
    void *old, *more;

    if (!full)
        return true;
    /* Copied, since the pointer is of another type than void *. */
    memcpy (&old, array, sizeof old);
    more = realloc (old, (n == 0 ? ROOM_LEAST : 2 * n) * size);
    if (more)
        memcpy (array, &more, sizeof more);
    return more != NULL;
}
