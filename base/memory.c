#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

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
