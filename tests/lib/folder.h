/* A folder of the program's own: there before its tests run, and gone at the end with all in it. */
#ifndef TESTS_LIB_FOLDER_H
#define TESTS_LIB_FOLDER_H

#include "tests/lib/fixture.h"

#include "base/file.h"

enum { FOLDER_PATH = 256 };

static char folder[FOLDER_PATH / 2];

__attribute__ ((constructor)) static void make_folder (void)
{
    const char *top = getenv ("TMPDIR");

    snprintf (folder, sizeof folder, "%s/linkwise-test.XXXXXX", top ? top : "/tmp");
    if (!mkdtemp (folder))
        abort ();
}

__attribute__ ((destructor)) static void remove_folder (void)
{
    char command[FOLDER_PATH];

    snprintf (command, sizeof command, "rm -rf '%s'", folder);
    if (system (command) != 0)
        abort ();
}

/* A path in it; the next call writes over it. */
static inline const char *in_folder (const char *name)
{
    static char path[FOLDER_PATH];

    snprintf (path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline void write_in_folder (const char *name, const char *text, size_t len)
{
    FILE *f = fopen (in_folder (name), "w");

    assert_non_null (f);
    assert_int_equal (fwrite (text, 1, len, f), len);
    assert_int_equal (fclose (f), 0);
}

#endif
