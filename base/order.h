/* Comparisons for qsort and bsearch. */
#ifndef BASE_ORDER_H
#define BASE_ORDER_H

#include <stddef.h>

/** Texts, or structs whose first member is one: `char *`, not NULL. */
int order_texts (const void *a, const void *b);

/** Structs whose first n members are int: by the first, of equal ones by the next. */
int order_ints (const void *a, const void *b, int n);

/** Sort n of them, each of `size` bytes, so by their first `ints` members. */
void order_by_ints (void *v, size_t n, size_t size, int ints);

/** double, or structs whose first member is one. */
int order_numbers (const void *a, const void *b);

/** int, the largest first. */
int order_ints_down (const void *a, const void *b);

#endif
