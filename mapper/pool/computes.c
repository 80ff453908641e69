/* What compute takes, kept from one configuration to the next: a space has far fewer kinds of
 * layers than configurations.  Threads share what they find, and need not wait for each other,
 * since two that look for the same find the same. */
#include "mapper/pool/pool.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LISTS (1 << 14)

struct kept {
    struct costmodel_compute_key key;
    const struct topology_gpu_type *type;
    struct costmodel_compute compute;
    struct kept *next;
};

struct pool_computes {
    _Atomic (struct kept *)
        list[LISTS]; /* by the key's hash; what is in one never changes */
};

struct pool_computes *pool_computes_create (void)
{
    return calloc (1, sizeof (struct pool_computes));
}

void pool_computes_destroy (struct pool_computes *k)
{
    for (size_t i = 0; i < LISTS && k; i++)
        for (struct kept *x = atomic_load (&k->list[i]), *next; x; x = next) {
            next = x->next;
            free (x);
        }
    free (k);
}

/* Keep it, unless there is no memory. */
static void keep (_Atomic (struct kept *) *list, const struct kept *own)
{
    struct kept *new = malloc (sizeof *new);

    if (!new)
        return;
    *new = *own;
    new->next = atomic_load (list);
    while (!atomic_compare_exchange_weak (list, &new->next, new))
        ;
}

void pool_compute (const struct pool *pool, const struct workload_config *c, int class,
                   struct costmodel_compute *out)
{
    const struct mapper_problem *p = pool->problem;
    struct kept own = {.key = costmodel_compute_key (p->job, c, p->profile),
                       .type = pool->class[class].type};
    size_t hash = costmodel_compute_hash (&own.key) ^ (uintptr_t) own.type >> 4;
    _Atomic (struct kept *) *list = &pool->computes->list[hash % LISTS];
    const struct kept *known = atomic_load (list);

    while (known && (known->type != own.type ||
                     memcmp (&known->key, &own.key, sizeof own.key) != 0))
        known = known->next;
    if (!known) {
        costmodel_compute_alike (p->model, p->job, c, p->profile, own.type, &own.compute);
        keep (list, &own);
        known = &own;
    }
    *out = known->compute;
    costmodel_compute_rest (p->model, p->job, c, p->profile, own.type, out);
}
