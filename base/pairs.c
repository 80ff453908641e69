/* Open addressing, linear probing, at most half full. */
#include "base/pairs.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"

struct pairs {
    uint64_t *key; /* [cap] the pair + 1; 0 is free */
    double *value;
    size_t n, cap; /* cap is a power of two */
};

static uint64_t key_of (int i, int j)
{
    return ((uint64_t) (unsigned) i << 32 | (unsigned) j) + 1;
}

/* Where the key is, or the free place where it belongs. */
static size_t slot (const struct pairs *p, uint64_t key)
{
    size_t at = (size_t) (key * 0x9e3779b97f4a7c15u >> 20) & (p->cap - 1);

    while (p->key[at] && p->key[at] != key)
        at = (at + 1) & (p->cap - 1);
    return at;
}

static bool grow (struct pairs *p)
{
    struct pairs old = *p;

    p->cap = old.cap ? old.cap * 2 : 64;
    p->key = calloc (p->cap, sizeof *p->key);
    p->value = malloc (p->cap * sizeof *p->value);
    if (!p->key || !p->value) {
        FREE_ALL (p->key, p->value);
        *p = old;
        return false;
    }
    for (size_t k = 0; k < old.cap; k++)
        if (old.key[k]) {
            size_t at = slot (p, old.key[k]);

            p->key[at] = old.key[k];
            p->value[at] = old.value[k];
        }
    FREE_ALL (old.key, old.value);
    return true;
}

bool pairs_set (struct pairs **map, int i, int j, double x)
{
    struct pairs *p = *map ? *map : calloc (1, sizeof *p);

    if (!p)
        return false;
    *map = p;
    if (2 * (p->n + 1) > p->cap && !grow (p))
        return false;

    size_t at = slot (p, key_of (i, j));

    p->n += p->key[at] == 0;
    p->key[at] = key_of (i, j);
    p->value[at] = x;
    return true;
}

bool pairs_get (const struct pairs *p, int i, int j, double *x)
{
    if (!p || p->n == 0)
        return false;

    size_t at = slot (p, key_of (i, j));

    if (!p->key[at])
        return false;
    *x = p->value[at];
    return true;
}

bool pairs_next (const struct pairs *p, size_t *at, int *i, int *j, double *x)
{
    for (; p && *at < p->cap; ++*at)
        if (p->key[*at]) {
            uint64_t key = p->key[*at] - 1;

            *i = (int) (key >> 32);
            *j = (int) (key & 0xffffffffu);
            *x = p->value[*at];
            ++*at;
            return true;
        }
    return false;
}

void pairs_free (struct pairs *p)
{
    if (!p)
        return;
    FREE_ALL (p->key, p->value, p);
}
