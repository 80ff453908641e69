/* A folder of a test's own: there while its functions run, and gone with all in it. */
#ifndef TESTS_LIB_FOLDER_H
#define TESTS_LIB_FOLDER_H

#include "tests/lib/fixture.h"

#include "base/file.h"

enum { FOLDER_PATH = 256 };

static char folder[FOLDER_PATH / 2];

/* Before and after a group of tests. */
static inline int make_folder (void **state)
{
    const char *top = getenv ("TMPDIR");

    (void) state;
    snprintf (folder, sizeof folder, "%s/linkwise-test.XXXXXX", top ? top : "/tmp");
    return mkdtemp (folder) ? 0 : 1;
}

static inline int remove_folder (void **state)
{
    char command[FOLDER_PATH];

    (void) state;
    snprintf (command, sizeof command, "rm -rf '%s'", folder);
    return system (command);
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
    struct error err = {""};

    ok (file_write (in_folder (name), text, len, &err), &err);
}

#endif
