/* Files are written whole or not at all. */
#include "tests/lib/fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char dir[64];

static int make_dir (void **state)
{
    (void) state;
    strcpy (dir, "/tmp/linkwise-file.XXXXXX");
    return mkdtemp (dir) ? 0 : -1;
}

static int remove_dir (void **state)
{
    char command[128];
    (void) state;

    snprintf (command, sizeof command, "rm -rf %s", dir);
    return system (command);
}

static char *path_of (const char *name)
{
    static char path[256];

    snprintf (path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void write_and_read (void **state)
{
    struct error err = {""};
    char *data;
    size_t len;
    struct stat sb;
    (void) state;

    ok (file_write (path_of ("f"), "one", 3, &err), &err);
    chmod (path_of ("f"), 0600);
    ok (file_write (path_of ("f"), "three", 5, &err), &err);
    ok (file_read (path_of ("f"), &data, &len, &err), &err);
    assert_int_equal (len, 5);
    assert_string_equal (data, "three");
    free (data);
    assert_int_equal (stat (path_of ("f"), &sb), 0);
    assert_int_equal (sb.st_mode & 0777, 0600); /* kept */
}

static void missing_and_folders (void **state)
{
    struct error err = {""};
    char *data = NULL;
    size_t len;
    (void) state;

    assert_int_equal (file_read (path_of ("none"), &data, &len, &err), ST_IO);
    assert_non_null (strstr (err.text, "none: No such file"));
    assert_int_equal (file_read (dir, &data, &len, &err), ST_IO);
    assert_non_null (strstr (err.text, "found a folder"));
    assert_int_equal (file_write (path_of ("no/such/folder"), "x", 1, &err), ST_IO);
    assert_null (data);
}

/* A device is written in place, never renamed over. */
static void device (void **state)
{
    struct error err = {""};
    struct stat sb;
    (void) state;

    ok (file_write ("/dev/null", "x", 1, &err), &err);
    assert_int_equal (stat ("/dev/null", &sb), 0);
    assert_true (S_ISCHR (sb.st_mode));
    assert_int_equal (file_write ("/dev/full", "x", 1, &err), ST_IO);
}

static void set_all_or_none (void **state)
{
    const struct file_item good[] = {{"a", "A", 1, 0644}, {"x/y/b", "B", 1, 0755}};
    const struct file_item bad[] = {{"p/q", "A", 1, 0644}, {"x", "B", 1, 0644}};
    struct error err = {""};
    char *data;
    size_t len;
    struct stat sb;
    (void) state;

    ok (file_write_set (path_of ("set"), good, 2, &err), &err);
    ok (file_read (path_of ("set/x/y/b"), &data, &len, &err), &err);
    assert_string_equal (data, "B");
    free (data);
    assert_int_equal (stat (path_of ("set/x/y/b"), &sb), 0);
    assert_true (sb.st_mode & 0100);
    /* x is a folder there: nothing of the second set may appear. */
    assert_int_equal (file_write_set (path_of ("set"), bad, 2, &err), ST_IO);
    assert_int_not_equal (stat (path_of ("set/p"), &sb), 0);
    /* A file stands where the folder should be. */
    ok (file_write (path_of ("plain"), "", 0, &err), &err);
    assert_int_equal (file_write_set (path_of ("plain"), good, 2, &err), ST_IO);
}

static void digest (void **state)
{
    char hex[65];
    (void) state;

    file_sha256 ("abc", 3, hex); /* FIPS 180-2, appendix B.1 */
    assert_string_equal (
        hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (write_and_read), cmocka_unit_test (missing_and_folders),
        cmocka_unit_test (device), cmocka_unit_test (set_all_or_none),
        cmocka_unit_test (digest)};

    return cmocka_run_group_tests (tests, make_dir, remove_dir);
}
