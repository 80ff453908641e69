/* Tests on files that are not part of the product. */
#ifndef TESTS_LIB_SKIP_H
#define TESTS_LIB_SKIP_H

#include <unistd.h>

/* Leave a test whose file is not beside this checkout, and say so.  cmocka's own skip()
 * prints "not ok # SKIP" (1.1.5), which prove takes for a failure. */
#define SKIP_WITHOUT(path)                                                       \
    do {                                                                         \
        if (access (path, R_OK) != 0) {                                          \
            print_message ("# skipped: %s is not beside this checkout\n", path); \
            return;                                                              \
        }                                                                        \
    } while (0)

#endif
