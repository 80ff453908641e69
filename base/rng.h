/* A small generator with its whole state in one word, so that every task of a search can
 * have its own: splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next (struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/** A whole number from 0 to n-1; n from 1 to 2^31. */
static inline int rng_below (struct rng *r, int n)
{
    return (int) ((rng_next (r) >> 32) * (uint64_t) n >> 32);
}

/** A number in [0, 1). */
static inline double rng_unit (struct rng *r)
{
    return (double) (rng_next (r) >> 11) * 0x1p-53;
}

#endif
