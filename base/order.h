/* Comparisons for qsort and bsearch. */
#ifndef BASE_ORDER_H
#define BASE_ORDER_H

/** Texts, or structs whose first member is one: `char *`, not NULL. */
int order_texts (const void *a, const void *b);

/** Structs whose first n members are int: by the first, of equal ones by the next. */
int order_ints (const void *a, const void *b, int n);

/** int, the largest first. */
int order_ints_down (const void *a, const void *b);

#endif
