/* OpenMP where the compiler has it; one thread otherwise. */
#ifndef BASE_THREADS_H
#define BASE_THREADS_H

#define THREADS_MOST 4096

#ifdef _OPENMP
#include <omp.h>
/* OMP_NUM_THREADS may be any number. */
static inline int threads_max (void)
{
    int n = omp_get_max_threads ();

    return n < THREADS_MOST ? n : THREADS_MOST;
}
/* Which thread of a parallel loop this is, from 0. */
static inline int threads_self (void)
{
    return omp_get_thread_num ();
}
#else
static inline int threads_self (void)
{
    return 0;
}
static inline int threads_max (void)
{
    return 1;
}
#endif

#endif
