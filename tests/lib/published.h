/* Tests on published figures, which lie beside a developer's checkout alone. */
#ifndef TESTS_LIB_PUBLISHED_H
#define TESTS_LIB_PUBLISHED_H

#include <stdbool.h>
#include <unistd.h>

/** Is the file or folder missing?  Says so, and the test should return: cmocka's skip ()
 *  would write "not ok # SKIP", which counts as a failure. */
static inline bool published_missing (const char *path)
{
    if (access (path, R_OK) == 0)
        return false;
    print_message ("# skipped: %s is not beside this checkout\n", path);
    return true;
}

#endif
