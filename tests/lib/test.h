/* TEST (name) { ... } is a test: a program runs those of its file one after another as they
 * stand. */
#ifndef TESTS_LIB_TEST_H
#define TESTS_LIB_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

static struct {
    struct CMUnitTest list[64];
    size_t n;
    CMFixtureFunction before, after; /* all of them */
} tests;

/* With what is done before and after it.  Constructors run in the order in which they stand. */
#define TEST_BETWEEN(NAME, BEFORE, AFTER)                                              \
    static void NAME (void **);                                                        \
    __attribute__ ((constructor)) static void list_##NAME (void)                       \
    {                                                                                  \
        if (tests.n == sizeof tests.list / sizeof *tests.list)                         \
            abort ();                                                                  \
        tests.list[tests.n++] =                                                        \
            (struct CMUnitTest) cmocka_unit_test_setup_teardown (NAME, BEFORE, AFTER); \
    }                                                                                  \
    static void NAME (__attribute__ ((unused)) void **state)

#define TEST(NAME) TEST_BETWEEN (NAME, NULL, NULL)

/* What is done before the first test and after the last. */
#define ALL_BETWEEN(BEFORE, AFTER)                              \
    __attribute__ ((constructor)) static void around_all (void) \
    {                                                           \
        tests.before = BEFORE;                                  \
        tests.after = AFTER;                                    \
    }

int main (void)
{
    return _cmocka_run_group_tests ("tests", tests.list, tests.n, tests.before,
                                    tests.after);
}

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
