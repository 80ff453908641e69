#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <sha2.h>

#define FILE_MAX_BYTES ((size_t) 4 << 30)

const char *file_title (const char *path)
{
    return strcmp (path, "-") == 0 ? "standard input" : path;
}

const char *file_name (const char *path)
{
    const char *slash = strrchr (path, '/');

    return slash ? slash + 1 : path;
}

int file_stem (const char *path)
{
    size_t n = strlen (path);

    return (int) n - (n > 5 && strcmp (path + n - 5, ".json") == 0 ? 5 : 0);
}

enum status file_failed (const char *path, struct error *err)
{
    return err_set (err, ST_IO, "%s: %s", path, strerror (errno));
}

static enum status read_fd (int fd, const char *name, char **data, size_t *len,
                            struct error *err)
{
    size_t cap = 1 << 16, n = 0;
    struct stat st;

    if (fstat (fd, &st) == 0) {
        if (S_ISDIR (st.st_mode))
            return err_set (err, ST_IO, "%s: expected a file, found a folder", name);
        if (S_ISREG (st.st_mode) && st.st_size > 0)
            cap = (size_t) st.st_size + 1;
    }
    if (cap > FILE_MAX_BYTES)
        return err_set (err, ST_IO, "%s: larger than 4 GiB", name);

    char *buf = malloc (cap + 1);

    if (!buf)
        return err_nomem (err);
    for (;;) {
        ssize_t got = read (fd, buf + n, cap - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            enum status failed = file_failed (name, err);

            free (buf);
            return failed;
        }
        if (got == 0)
            break;
        n += (size_t) got;
        if (n == cap) {
            char *more = cap * 2 > FILE_MAX_BYTES ? NULL : realloc (buf, cap * 2 + 1);

            if (!more) {
                free (buf);
                return cap * 2 > FILE_MAX_BYTES
                           ? err_set (err, ST_IO, "%s: larger than 4 GiB", name)
                           : err_nomem (err);
            }
            buf = more;
            cap *= 2;
        }
    }
    buf[n] = '\0';
    *data = buf;
    *len = n;
    return ST_OK;
}

enum status file_read (const char *path, char **data, size_t *len, struct error *err)
{
    bool is_input = strcmp (path, "-") == 0;
    int fd = is_input ? STDIN_FILENO : open (path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return file_failed (path, err);

    enum status st = read_fd (fd, file_title (path), data, len, err);

    if (!is_input)
        close (fd);
    return st;
}

const char *file_not_text (const char *data, size_t len)
{
    static const struct {
        const char *magic;
        size_t len;
        const char *what;
    } kind[] = {
        {"\x1f\x8b", 2, "compressed with gzip: unpack it first"},
        {"BZh", 3, "compressed with bzip2: unpack it first"},
        {"\xfd\x37zXZ", 5, "compressed with xz: unpack it first"},
        {"\x28\xb5\x2f\xfd", 4, "compressed with zstd: unpack it first"},
        {"PK\x03\x04", 4, "a zip archive: unpack it first"},
        {"\x93NUMPY", 6, "a .npy matrix, which a cluster file names: expected text"},
        {"\xff\xfe", 2, "UTF-16 text: convert it to UTF-8 first"},
        {"\xfe\xff", 2, "UTF-16 text: convert it to UTF-8 first"}};

    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        if (len >= kind[i].len && memcmp (data, kind[i].magic, kind[i].len) == 0)
            return kind[i].what;
    return memchr (data, '\0', len) ? "binary data: expected text" : NULL;
}

size_t file_mark (const char *data, size_t len)
{
    return len >= 3 && memcmp (data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static bool write_all (int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write (fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t) n;
    }
    return true;
}

/* Write data under a fresh temporary name beside path; tmp receives that name. */
static enum status write_temp (const char *path, const char *data, size_t len,
                               unsigned mode, char *tmp, size_t tmp_size,
                               struct error *err)
{
    if ((size_t) snprintf (tmp, tmp_size, "%s.XXXXXX", path) >= tmp_size)
        return err_set (err, ST_IO, "%s: the name is too long", path);

    int fd = mkstemp (tmp);

    if (fd < 0)
        return file_failed (path, err);

    bool ok = write_all (fd, data, len) && fchmod (fd, mode) == 0 && fsync (fd) == 0;
    enum status st = ok ? ST_OK : file_failed (path, err);

    if (close (fd) != 0 && ok)
        st = file_failed (path, err);
    if (st != ST_OK)
        unlink (tmp);
    return st;
}

enum status file_write (const char *path, const char *data, size_t len, struct error *err)
{
    struct stat st;
    bool exists = strcmp (path, "-") != 0 && stat (path, &st) == 0;

    if (strcmp (path, "-") == 0)
        return write_all (STDOUT_FILENO, data, len)
                   ? ST_OK
                   : file_failed ("standard output", err);
    if (exists && !S_ISREG (st.st_mode)) {
        int fd = open (path, O_WRONLY | O_CLOEXEC);

        if (fd < 0)
            return file_failed (path, err);

        enum status written = write_all (fd, data, len) ? ST_OK : file_failed (path, err);

        close (fd);
        return written;
    }

    char tmp[PATH_MAX];
    mode_t mask = umask (0);

    umask (mask);

    unsigned mode = exists ? st.st_mode & 07777 : 0666 & ~mask;

    TRY (write_temp (path, data, len, mode, tmp, sizeof tmp, err));
    if (rename (tmp, path) == 0)
        return ST_OK;
    file_failed (path, err);
    unlink (tmp);
    return ST_IO;
}

/* Make the folders that path (below base_len bytes) lies in; those made here are
 * appended to made[], a list of at most cap names, so that they can be removed. */
static enum status make_parents (const char *path, char **made, int *n_made, int cap,
                                 struct error *err)
{
    char part[PATH_MAX];

    if (strlen (path) >= sizeof part)
        return err_set (err, ST_IO, "%s: the name is too long", path);
    for (const char *slash = strchr (path + 1, '/'); slash;
         slash = strchr (slash + 1, '/')) {
        memcpy (part, path, (size_t) (slash - path));
        part[slash - path] = '\0';
        if (mkdir (part, 0777) == 0) {
            if (*n_made < cap && (made[*n_made] = strdup (part)))
                ++*n_made;
        } else if (errno != EEXIST) {
            return file_failed (part, err);
        }
    }
    return ST_OK;
}

enum status file_write_set (const char *dir, const struct file_item *item, int n,
                            struct error *err)
{
    enum { MADE_MAX = 256 };
    char *made[MADE_MAX];
    int n_made = 0, n_tmp = 0;
    char (*tmp)[PATH_MAX] = calloc ((size_t) n + 1, sizeof *tmp);
    char (*name)[PATH_MAX] = calloc ((size_t) n + 1, sizeof *name);
    enum status st = tmp && name ? ST_OK : err_nomem (err);
    sigset_t ending, before;

    /* A signal that would end the program half-way waits for the whole set. */
    sigemptyset (&ending);
    sigaddset (&ending, SIGHUP);
    sigaddset (&ending, SIGINT);
    sigaddset (&ending, SIGTERM);
    pthread_sigmask (SIG_BLOCK, &ending, &before);

    for (int i = 0; i < n && st == ST_OK; i++) {
        struct stat sb;

        if ((size_t) snprintf (name[i], sizeof name[i], "%s/%s", dir, item[i].path) >=
            sizeof name[i])
            st = err_set (err, ST_IO, "%s: the name is too long", dir);
        if (st == ST_OK)
            st = make_parents (name[i], made, &n_made, MADE_MAX, err);
        if (st == ST_OK && stat (name[i], &sb) == 0 && S_ISDIR (sb.st_mode))
            st = err_set (err, ST_IO, "%s: expected a file, found a folder", name[i]);
        if (st == ST_OK)
            st = write_temp (name[i], item[i].data, item[i].len, item[i].mode, tmp[i],
                             sizeof tmp[i], err);
        if (st == ST_OK)
            n_tmp = i + 1;
    }
    for (int i = 0; i < n && st == ST_OK; i++)
        if (rename (tmp[i], name[i]) != 0)
            st = file_failed (name[i], err);
    if (st != ST_OK) {
        for (int i = 0; i < n_tmp; i++)
            unlink (tmp[i]);
        for (int i = n_made - 1; i >= 0; i--)
            rmdir (made[i]);
    }
    for (int i = 0; i < n_made; i++)
        free (made[i]);
    free (tmp);
    free (name);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    return st;
}

void file_sha256 (const char *data, size_t len, char hex[65])
{
    SHA256Data ((const uint8_t *) data, len, hex);
}
