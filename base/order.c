#include "base/order.h"

#include <stdlib.h>
#include <string.h>

int order_texts (const void *a, const void *b)
{
    return strcmp (*(const char *const *) a, *(const char *const *) b);
}

int order_ints (const void *a, const void *b, int n)
{
    const int *x = a, *y = b;
    int k = 0;

    while (k < n - 1 && x[k] == y[k])
        k++;
    return (x[k] > y[k]) - (x[k] < y[k]);
}

static int by_ints (const void *a, const void *b, void *n)
{
    return order_ints (a, b, *(int *) n);
}

void order_by_ints (void *v, size_t n, size_t size, int ints)
{
    if (n > 0)
        qsort_r (v, n, size, by_ints, &ints);
}

int order_numbers (const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

int order_ints_down (const void *a, const void *b)
{
    int x = *(const int *) a, y = *(const int *) b;

    return (x < y) - (x > y);
}
