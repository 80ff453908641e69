#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_bool lost;

void memory_lost (void)
{
    lost = true;
}

void *memory_zeros (size_t n, size_t size)
{
    void *p = calloc (n, size);

    if (!p)
        memory_lost ();
    return p;
}

bool memory_take_lost (void)
{
    return atomic_exchange (&lost, false);
}

void memory_free_all (void *const *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free (p[i]);
}

void memory_free_texts (char **list, int n)
{
    for (int i = 0; list && i < n; i++)
        free (list[i]);
    free (list);
}

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
