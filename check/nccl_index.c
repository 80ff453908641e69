/* A map from three numbers to one: a table that is at most half full, searched from the number's
 * place on. */
#include "check/nccl_private.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix (uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static struct nccl_entry *find (struct nccl_entry *e, size_t room, const uint64_t *key)
{
    size_t at = mix (key[0] + mix (key[1] + mix (key[2]))) & (room - 1);

    while (e[at].used && memcmp (e[at].key, key, sizeof e[at].key) != 0)
        at = (at + 1) & (room - 1);
    return &e[at];
}

static bool widen (struct nccl_index *x)
{
    size_t room = x->room ? 2 * x->room : 64;
    struct nccl_entry *e = calloc (room, sizeof *e);

    if (!e)
        return false;
    for (size_t i = 0; i < x->room; i++)
        if (x->entry[i].used)
            *find (e, room, x->entry[i].key) = x->entry[i];
    free (x->entry);
    x->entry = e;
    x->room = room;
    return true;
}

int *nccl_index_at (struct nccl_index *x, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t key[3] = {a, b, c};
    struct nccl_entry *e;

    if (2 * x->n >= x->room && !widen (x))
        return NULL;
    e = find (x->entry, x->room, key);
    if (!e->used) {
        memcpy (e->key, key, sizeof key);
        e->used = true;
        e->value = -1;
        x->n++;
    }
    return &e->value;
}

void nccl_index_free (struct nccl_index *x)
{
    free (x->entry);
    *x = (struct nccl_index){0};
}
