#include "base/order.h"

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

int order_ints_down (const void *a, const void *b)
{
    int x = *(const int *) a, y = *(const int *) b;

    return (x < y) - (x > y);
}
