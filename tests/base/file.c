/* Files are written whole or not at all. */
#include "tests/lib/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TEST (write_and_read)
{
    struct error err = {""};
    char *data;
    size_t len;
    struct stat sb;

    ok (file_write (in_folder ("f"), "one", 3, &err), &err);
    chmod (in_folder ("f"), 0600);
    ok (file_write (in_folder ("f"), "three", 5, &err), &err);
    ok (file_read (in_folder ("f"), &data, &len, &err), &err);
    assert_int_equal (len, 5);
    assert_string_equal (data, "three");
    free (data);
    assert_int_equal (stat (in_folder ("f"), &sb), 0);
    assert_int_equal (sb.st_mode & 0777, 0600); /* kept */
}

TEST (missing_and_folders)
{
    struct error err = {""};
    char *data = NULL;
    size_t len;

    assert_int_equal (file_read (in_folder ("none"), &data, &len, &err), ST_IO);
    assert_non_null (strstr (err.text, "none: No such file"));
    assert_int_equal (file_read (folder, &data, &len, &err), ST_IO);
    assert_non_null (strstr (err.text, "found a folder"));
    assert_int_equal (file_write (in_folder ("no/such/folder"), "x", 1, &err), ST_IO);
    assert_null (data);
}

/* What is no text is refused as that, not once memory is full of it. */
TEST (no_text)
{
    static const char head[] = "\x58\1\0\0\0\0\0\0{}";
    struct error err = {""};
    char *data = NULL;
    size_t len;

    write_in_folder ("weights", head, sizeof head - 1);
    assert_int_equal (truncate (in_folder ("weights"), 3L << 30), 0);
    for (int i = 0; i < 3; i++) {
        const char *path[] = {"/dev/zero", "/dev/urandom", in_folder ("weights")};

        assert_int_equal (file_read (path[i], &data, &len, &err), ST_INVALID);
        assert_non_null (strstr (err.text, "binary data: expected text"));
    }
    assert_int_equal (file_read_small (in_folder ("weights"), &data, &len, &err), ST_IO);
    assert_non_null (strstr (err.text, "weights: larger than 64 MiB"));
    assert_null (data);
    write_in_folder ("weights", head, sizeof head - 1);
    ok (file_read_bytes (in_folder ("weights"), &data, &len, &err), &err);
    assert_int_equal (len, sizeof head - 1);
    assert_memory_equal (data, head, len);
    free (data);
}

/* A device is written in place, never renamed over. */
TEST (device)
{
    struct error err = {""};
    struct stat sb;

    ok (file_write ("/dev/null", "x", 1, &err), &err);
    assert_int_equal (stat ("/dev/null", &sb), 0);
    assert_true (S_ISCHR (sb.st_mode));
    assert_int_equal (file_write ("/dev/full", "x", 1, &err), ST_IO);
}

static void holds (const char *name, const char *text)
{
    struct error err = {""};
    char *data;
    size_t len;

    ok (file_read (in_folder (name), &data, &len, &err), &err);
    assert_string_equal (data, text);
    free (data);
}

/* What a rename would take from a file stays: links to it, a link in its place, its owner. */
TEST (links_and_owners)
{
    const struct file_item item[] = {{"set-link", "4", 1, 0644}};
    struct error err = {""};
    struct stat sb;
    char target[256];

    ok (file_write (in_folder ("real"), "one", 3, &err), &err);
    assert_int_equal (symlink ("real", in_folder ("link")), 0);
    ok (file_write (in_folder ("link"), "two", 3, &err), &err);
    assert_int_equal (lstat (in_folder ("link"), &sb), 0);
    assert_true (S_ISLNK (sb.st_mode));
    holds ("real", "two");
    assert_int_equal (symlink ("later", in_folder ("dangling")), 0);
    ok (file_write (in_folder ("dangling"), "new", 3, &err), &err);
    holds ("later", "new");

    strcpy (target, in_folder ("real"));
    assert_int_equal (link (target, in_folder ("hard")), 0);
    ok (file_write (target, "3", 1, &err), &err);
    holds ("hard", "3");
    assert_int_equal (symlink ("hard", in_folder ("set-link")), 0);
    ok (file_write_set (folder, item, 1, &err), &err);
    holds ("real", "4");
    if (geteuid () == 0) {
        assert_int_equal (chown (in_folder ("later"), 12, 34), 0);
        ok (file_write (in_folder ("later"), "x", 1, &err), &err);
        assert_int_equal (stat (in_folder ("later"), &sb), 0);
        assert_true (sb.st_uid == 12 && sb.st_gid == 34);
    }
}

/* A file that can be written, in a folder that cannot: as root by a read-only owner alone. */
TEST (folder_without_room)
{
    struct error err = {""};
    char name[300];
    int child, how;

    if (geteuid () != 0) {
        print_message ("# skipped: not root, cannot become another user\n");
        return;
    }
    snprintf (name, sizeof name, "%s", in_folder ("their.json"));
    ok (file_write (name, "first", 5, &err), &err);
    assert_int_equal (chmod (name, 0666), 0);
    assert_int_equal (chmod (folder, 0755), 0);
    if ((child = fork ()) == 0) {
        if (setgid (65534) != 0 || setuid (65534) != 0)
            _exit (2);
        _exit (file_write (name, "2nd", 3, &err) == ST_OK &&
                       file_write (in_folder ("other"), "", 0, &err) == ST_IO
                   ? 0
                   : 1);
    }
    assert_int_equal (waitpid (child, &how, 0), child);
    assert_int_equal (how, 0);
    holds ("their.json", "2nd");
}

/* An open file by its name goes on where it stands; nobody loses what is before or after. */
TEST (open_files)
{
    struct error err = {""};
    char name[32];
    int fd = open (in_folder ("log"), O_RDWR | O_CREAT, 0600);

    assert_int_equal (write (fd, "before ", 7), 7);
    snprintf (name, sizeof name, "/dev/fd/%d", fd);
    assert_int_equal (file_open_number (name), fd);
    assert_true (file_is_stream (name));
    ok (file_write (name, "it ", 3, &err), &err);
    assert_int_equal (write (fd, "after", 5), 5);
    close (fd);
    holds ("log", "before it after");
    assert_int_equal (file_write (name, "x", 1, &err), ST_IO);
    assert_int_equal (file_open_number ("-"), 1);
    assert_int_equal (file_open_number ("/dev/stdout"), 1);
    assert_int_equal (file_open_number ("/dev/stderr"), 2);
    assert_int_equal (file_open_number ("/proc/self/fd/17"), 17);
    assert_int_equal (file_open_number ("/dev/fd/"), -1);
    assert_int_equal (file_open_number ("/dev/fd/1x"), -1);
    assert_int_equal (file_open_number ("stdout"), -1);
}

/* A pipe passes the bytes on, also one of a set. */
TEST (pipes)
{
    const struct file_item item = {"pipe", "PQ", 2, 0644};
    struct error err = {""};
    char got[8] = "";
    struct stat sb;
    int fd;

    assert_int_equal (mkfifo (in_folder ("pipe"), 0600), 0);
    assert_true (file_is_stream (in_folder ("pipe")) && file_is_stream ("-") &&
                 file_is_stream ("/dev/null") && !file_is_stream (in_folder ("none")));
    fd = open (in_folder ("pipe"), O_RDWR);
    ok (file_write_set (folder, &item, 1, &err), &err);
    assert_int_equal (read (fd, got, sizeof got), 2);
    assert_string_equal (got, "PQ");
    close (fd);
    assert_int_equal (stat (in_folder ("pipe"), &sb), 0);
    assert_true (S_ISFIFO (sb.st_mode));
}

TEST (set_all_or_none)
{
    const struct file_item bad[] = {{"one", "A", 1, 0644}, {"no/two", "B", 1, 0644}};
    struct error err = {""};
    struct stat sb;

    assert_int_equal (file_write_set (folder, bad, 2, &err), ST_IO);
    assert_int_not_equal (stat (in_folder ("one"), &sb), 0);
}

TEST (folder_all_or_none)
{
    const struct file_item good[] = {
        {"a", "A", 1, 0644}, {"x/y/b", "B", 1, 0755}, {"seal", "1", 1, 0644}};
    const struct file_item bad[] = {{"p/q", "A", 1, 0644}, {"x", "B", 1, 0644}};
    const struct file_item clash[] = {{"p/q", "A", 1, 0644}, {"p", "B", 1, 0644}};
    const struct file_item new[] = {{"a", "C", 1, 0644}, {"seal", "2", 1, 0644}};
    const struct file_item below[] = {
        {"z/b", "D", 1, 0644}, {"own/b", "D", 1, 0644}, {"seal", "3", 1, 0644}};
    const char *const none[] = {NULL}, *const old[] = {"x/y/b", NULL};
    struct error err = {""};
    struct stat sb;

    ok (file_write_folder (in_folder ("set/"), good, 3, none, &err), &err);
    holds ("set/x/y/b", "B");
    assert_int_equal (stat (in_folder ("set/x/y/b"), &sb), 0);
    assert_true (sb.st_mode & 0100);
    /* x is a folder there: nothing of the second set may appear. */
    assert_int_equal (file_write_folder (in_folder ("set"), bad, 2, none, &err), ST_IO);
    assert_int_not_equal (stat (in_folder ("set/p"), &sb), 0);
    holds ("set/seal", "1");
    /* What a killed process left goes, what is not of the set stays. */
    assert_int_equal (mkdir (in_folder ("set/.linkwise-new"), 0700), 0);
    ok (file_write (in_folder ("set/.linkwise-new/a"), "half", 4, &err), &err);
    ok (file_write (in_folder ("set/own"), "mine", 4, &err), &err);
    ok (file_write_folder (in_folder ("set"), new, 2, old, &err), &err);
    assert_int_not_equal (stat (in_folder ("set/.linkwise-new"), &sb), 0);
    assert_int_not_equal (stat (in_folder ("set/x/y"), &sb), 0);
    holds ("set/own", "mine");
    holds ("set/a", "C");
    holds ("set/seal", "2");
    /* A file stands where the folder should be, or one in it: the old seal stays. */
    assert_int_equal (file_write_folder (in_folder ("set"), below, 3, none, &err), ST_IO);
    holds ("set/seal", "2");
    assert_int_not_equal (stat (in_folder ("set/z"), &sb), 0);
    ok (file_write (in_folder ("plain"), "", 0, &err), &err);
    assert_int_equal (file_write_folder (in_folder ("plain"), good, 3, none, &err),
                      ST_IO);
    /* Nothing is left of folders made for a set that fails. */
    assert_int_equal (file_write_folder (in_folder ("new/deep"), clash, 2, none, &err),
                      ST_IO);
    assert_int_not_equal (stat (in_folder ("new"), &sb), 0);
}

TEST (digest)
{
    char hex[65];

    file_sha256 ("abc", 3, hex); /* FIPS 180-2, appendix B.1 */
    assert_string_equal (
        hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
