/* What compute takes, kept from one configuration to the next: a space has far fewer kinds of
 * layers than configurations.  Threads share what they find, and need not wait for each other,
 * since two that look for the same find the same. */
#include "mapper/pool/pool.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROOM (1 << 16)
#define PLACES 8 /* that are looked at: where all hold others, nothing is kept */

struct kept {
    struct costmodel_compute_key key;
    const struct topology_gpu_type *type;
    struct costmodel_compute compute;
};

struct pool_computes {
    _Atomic (struct kept *) at[ROOM]; /* NULL: free; never changed once it is not */
};

struct pool_computes *pool_computes_create (void)
{
    return calloc (1, sizeof (struct pool_computes));
}

void pool_computes_destroy (struct pool_computes *k)
{
    for (size_t i = 0; i < ROOM && k; i++)
        free (atomic_load (&k->at[i]));
    free (k);
}

/* The one of that key and type, or the first free place for it; both NULL: there is none. */
static const struct kept *find (struct pool_computes *k,
                                const struct costmodel_compute_key *key,
                                const struct topology_gpu_type *type,
                                _Atomic (struct kept *) **place)
{
    size_t first = costmodel_compute_hash (key) ^ (uintptr_t) type >> 4;

    *place = NULL;
    for (size_t i = 0; i < PLACES; i++) {
        const struct kept *here = atomic_load (&k->at[(first + i) % ROOM]);

        if (!here) {
            *place = &k->at[(first + i) % ROOM];
            return NULL;
        }
        if (here->type == type && memcmp (&here->key, key, sizeof *key) == 0)
            return here;
    }
    return NULL;
}

/* Keep it, unless another thread has taken the place or there is no memory. */
static void keep (_Atomic (struct kept *) *place, const struct kept *own)
{
    struct kept *new = place ? malloc (sizeof *new) : NULL, *none = NULL;

    if (!new)
        return;
    *new = *own;
    if (!atomic_compare_exchange_strong (place, &none, new))
        free (new);
}

void pool_compute (const struct pool *pool, const struct workload_config *c, int class,
                   struct costmodel_compute *out)
{
    const struct mapper_problem *p = pool->problem;
    struct kept own = {.key = costmodel_compute_key (p->job, c, p->profile),
                       .type = pool->class[class].type};
    _Atomic (struct kept *) *place;
    const struct kept *known = find (pool->computes, &own.key, own.type, &place);

    if (!known) {
        costmodel_compute_alike (p->model, p->job, c, p->profile, own.type, &own.compute);
        keep (place, &own);
        known = &own;
    }
    *out = known->compute;
    costmodel_compute_rest (p->model, p->job, c, p->profile, own.type, out);
}
