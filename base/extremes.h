/* The larger and the smaller of two numbers: fmax and fmin are calls into libm, which are
 * too slow for inner loops. */
#ifndef BASE_EXTREMES_H
#define BASE_EXTREMES_H

static inline double larger (double a, double b)
{
    return a > b ? a : b;
}

static inline double smaller (double a, double b)
{
    return a < b ? a : b;
}

#endif
