/* Refusing an argument of the command line. */
#ifndef BASE_USAGE_H
#define BASE_USAGE_H

#include <argp.h>

/** argp_error, with control characters of what was given as '?': ends the program. */
void usage_error (const struct argp_state *state, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

/** Which of "a|b|c" it is; -1: none. */
int usage_word (const char *words, const char *given);

#endif
