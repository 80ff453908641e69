#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <sha2.h>

#define FILE_MAX_BYTES ((size_t) 4 << 30)
#define SMALL_MAX_BYTES ((size_t) 64 << 20) /* hundreds of times a long config.json */
#define PIECE ((size_t) 1 << 20)            /* is read before it is looked at */

const char *file_title (const char *path)
{
    return strcmp (path, "-") == 0 ? "standard input" : path;
}

const char *file_name (const char *path)
{
    const char *slash = strrchr (path, '/');

    return slash ? slash + 1 : path;
}

char *file_folder (const char *path)
{
    const char *name = file_name (path);

    return name > path ? strndup (path, (size_t) (name - path)) : strdup (".");
}

char *file_behind (const char *path)
{
    struct stat sb;
    bool is_link = lstat (path, &sb) == 0 && S_ISLNK (sb.st_mode);
    char *behind = is_link ? realpath (path, NULL) : NULL;

    return behind ? behind : strdup (path);
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

/* A file while it is read. */
struct input {
    const char *name;
    size_t most;
    bool text;
    char *buf; /* [cap + 1] */
    size_t cap, len;
};

static enum status make_room (struct input *in, size_t cap, struct error *err)
{
    char *more;

    if (cap - 1 > in->most)
        return err_set (err, ST_IO, "%s: larger than %zu MiB", in->name, in->most >> 20);
    if (!(more = realloc (in->buf, cap + 1)))
        return err_nomem (err);
    in->buf = more;
    in->cap = cap;
    return ST_OK;
}

/* All bytes of a file.  Of text, up to a NUL: what has one may be of any size, or a device
 * without an end. */
static enum status read_fd (int fd, struct input *in, struct error *err)
{
    struct stat sb;
    bool known = fstat (fd, &sb) == 0;
    const char *why;
    ssize_t got;

    if (known && S_ISDIR (sb.st_mode))
        return err_set (err, ST_IO, "%s: expected a file, found a folder", in->name);
    known = known && S_ISREG (sb.st_mode) && sb.st_size > 0;
    TRY (make_room (in, known ? (size_t) sb.st_size + 1 : 1 << 16, err));
    do {
        if (in->len == in->cap)
            TRY (make_room (in, 2 * in->cap, err));
        got = read (fd, in->buf + in->len,
                    in->cap - in->len < PIECE ? in->cap - in->len : PIECE);
        if (got < 0 && errno != EINTR)
            return file_failed (in->name, err);
        in->len += got > 0 ? (size_t) got : 0;
    } while (got < 0 || (got > 0 && !(in->text && memchr (in->buf + in->len - got, '\0',
                                                          (size_t) got))));
    in->buf[in->len] = '\0';
    why = in->text ? file_not_text (in->buf, in->len) : NULL;
    return why ? err_set (err, ST_INVALID, "%s: %s", in->name, why) : ST_OK;
}

static enum status read_path (const char *path, size_t most, bool text, char **data,
                              size_t *len, struct error *err)
{
    struct input in = {.name = file_title (path), .most = most, .text = text};
    bool is_input = strcmp (path, "-") == 0;
    int fd = is_input ? STDIN_FILENO : open (path, O_RDONLY | O_CLOEXEC);
    enum status st = fd < 0 ? file_failed (path, err) : read_fd (fd, &in, err);

    if (!is_input && fd >= 0)
        close (fd);
    if (st == ST_OK) {
        *data = in.buf;
        *len = in.len;
    } else {
        free (in.buf);
    }
    return st;
}

enum status file_read (const char *path, char **data, size_t *len, struct error *err)
{
    return read_path (path, FILE_MAX_BYTES, true, data, len, err);
}

enum status file_read_small (const char *path, char **data, size_t *len,
                             struct error *err)
{
    return read_path (path, SMALL_MAX_BYTES, true, data, len, err);
}

enum status file_read_bytes (const char *path, char **data, size_t *len,
                             struct error *err)
{
    return read_path (path, FILE_MAX_BYTES, false, data, len, err);
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

/* ---- one file ---- */

/* A file about to be written: its bytes wait under a temporary name, or, where a rename would
 * lose something, the room for them is taken in the file itself. */
struct pending {
    char name[PATH_MAX]; /* behind symbolic links */
    char tmp[PATH_MAX];  /* "": in place */
    const char *data;
    size_t len;
    int fd;       /* in place; -1 */
    bool regular; /* in place */
    off_t size;   /* before */
};

int file_open_number (const char *path)
{
    static const char *const folder[] = {"/dev/fd/", "/proc/self/fd/"};

    if (strcmp (path, "-") == 0 || strcmp (path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp (path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folder / sizeof *folder; i++) {
        const char *digits = path + strlen (folder[i]);
        size_t n;

        if (strncmp (path, folder[i], strlen (folder[i])) != 0)
            continue;
        n = strspn (digits, "0123456789");
        if (n > 0 && n < 10 && !digits[n])
            return atoi (digits);
    }
    return -1;
}

bool file_is_stream (const char *path)
{
    struct stat sb;

    return file_open_number (path) >= 0 ||
           (stat (path, &sb) == 0 && !S_ISREG (sb.st_mode) && !S_ISDIR (sb.st_mode));
}

/* The bytes of a file that is new, onto the disk. */
static enum status fill (int fd, const char *name, const char *data, size_t len,
                         mode_t mode, struct error *err)
{
    bool ok = write_all (fd, data, len) && fchmod (fd, mode) == 0 && fsync (fd) == 0;
    enum status st = ok ? ST_OK : file_failed (name, err);

    if (close (fd) != 0 && ok)
        st = file_failed (name, err);
    return st;
}

/* Open the file itself, and take the room that the bytes need before any of its own goes. */
static enum status open_in_place (struct pending *p, struct error *err)
{
    struct stat sb;

    p->tmp[0] = '\0';
    p->fd = open (p->name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    if (p->fd < 0 || fstat (p->fd, &sb) != 0)
        return file_failed (p->name, err);
    p->regular = S_ISREG (sb.st_mode);
    p->size = sb.st_size;
    if (p->regular && p->len > 0)
        errno = posix_fallocate (p->fd, 0, (off_t) p->len);
    return p->regular && p->len > 0 && errno != 0 ? file_failed (p->name, err) : ST_OK;
}

/* Nothing is written after all. */
static void drop (struct pending *p)
{
    if (p->tmp[0])
        unlink (p->tmp);
    if (p->fd >= 0 && p->regular && ftruncate (p->fd, p->size) != 0)
        errno = 0; /* what stands there is as long as it can be made */
    if (p->fd >= 0)
        close (p->fd);
    p->tmp[0] = '\0';
    p->fd = -1;
}

/* Make ready to write the bytes: commit or drop follows, also after a failure.
 * @param[in] mode  of the file; -1: its own, of a new one what the umask leaves */
static enum status prepare (const char *path, const char *data, size_t len, int mode,
                            struct pending *p, struct error *err)
{
    struct stat sb, link;
    bool exists = stat (path, &sb) == 0;
    bool dangling = !exists && lstat (path, &link) == 0;
    mode_t mask = umask (0);

    umask (mask);
    *p = (struct pending){.data = data, .len = len, .fd = -1};
    if (strlen (path) + sizeof ".XXXXXX" > sizeof p->name)
        return err_set (err, ST_IO, "%s: the name is too long", path);
    if (exists && S_ISDIR (sb.st_mode))
        return err_set (err, ST_IO, "%s: expected a file, found a folder", path);
    if (!exists || !realpath (path, p->name))
        strcpy (p->name, path);
    if (dangling || (exists && (!S_ISREG (sb.st_mode) || sb.st_nlink > 1)))
        return open_in_place (p, err);
    if (mode < 0)
        mode = (int) (exists ? sb.st_mode & 07777 : 0666 & ~mask);
    if ((size_t) snprintf (p->tmp, sizeof p->tmp, "%s.XXXXXX", p->name) >= sizeof p->tmp)
        return err_set (err, ST_IO, "%s: the name is too long", path);

    int fd = mkstemp (p->tmp);

    if (fd < 0) {
        p->tmp[0] = '\0';
        /* A folder that takes no new file may hold one that can be written. */
        return exists && (errno == EACCES || errno == EPERM || errno == EROFS)
                   ? open_in_place (p, err)
                   : file_failed (path, err);
    }
    if (exists && (sb.st_uid != geteuid () || sb.st_gid != getegid ()) &&
        fchown (fd, sb.st_uid, sb.st_gid) != 0) {
        close (fd);
        unlink (p->tmp);
        return open_in_place (p, err);
    }
    return fill (fd, p->name, data, len, (mode_t) mode, err);
}

static enum status commit (struct pending *p, struct error *err)
{
    bool ok = p->tmp[0] ? rename (p->tmp, p->name) == 0
                        : write_all (p->fd, p->data, p->len) &&
                              (!p->regular || (ftruncate (p->fd, (off_t) p->len) == 0 &&
                                               fsync (p->fd) == 0));
    enum status st = ok ? ST_OK : file_failed (p->name, err);

    if (ok) {
        p->tmp[0] = '\0';
        p->regular = false; /* its length is the new one */
    }
    return st;
}

enum status file_write (const char *path, const char *data, size_t len, struct error *err)
{
    int open = file_open_number (path);
    struct pending p;
    enum status st;

    if (open >= 0)
        return write_all (open, data, len)
                   ? ST_OK
                   : file_failed (open == STDOUT_FILENO ? "standard output" : path, err);
    st = prepare (path, data, len, -1, &p, err);
    THEN (st, commit (&p, err));
    drop (&p);
    return st;
}

/* ---- sets ---- */

/* A signal that would end the program half-way waits for the whole set. */
static void hold_signals (sigset_t *before)
{
    sigset_t ending;

    sigemptyset (&ending);
    sigaddset (&ending, SIGHUP);
    sigaddset (&ending, SIGINT);
    sigaddset (&ending, SIGTERM);
    pthread_sigmask (SIG_BLOCK, &ending, before);
}

static enum status join (const char *folder, const char *between, const char *name,
                         char path[PATH_MAX], struct error *err)
{
    return snprintf (path, PATH_MAX, "%s%s%s", folder, between, name) < PATH_MAX
               ? ST_OK
               : err_set (err, ST_IO, "%s: the name is too long", folder);
}

enum status file_write_set (const char *dir, const struct file_item *item, int n,
                            struct error *err)
{
    struct pending *p = calloc ((size_t) n + 1, sizeof *p);
    enum status st = p ? ST_OK : err_nomem (err);
    sigset_t before;
    int begun = 0;

    hold_signals (&before);
    for (int i = 0; i < n && st == ST_OK; i++) {
        char path[PATH_MAX];

        st = join (dir, "/", item[i].path, path, err);
        if (st == ST_OK) {
            st =
                prepare (path, item[i].data, item[i].len, (int) item[i].mode, &p[i], err);
            begun = i + 1;
        }
    }
    for (int i = 0; i < n && st == ST_OK; i++)
        st = commit (&p[i], err);
    for (int i = 0; i < begun; i++)
        drop (&p[i]);
    free (p);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    return st;
}

/* ---- folders ----
 *
 * The files are written to a folder beside the one that they are for.  Where that one is new, one
 * rename makes it.  One that is there stays itself, with what others keep in it, since a job may
 * run in it and a shared file system cannot exchange two folders: its seal goes first, then each
 * file takes its name, and the new seal comes last.  Whoever dies in between leaves no seal. */

#define NEW_FOLDER ".linkwise-new"
#define MADE_MAX 256

static int remove_one (const char *path, const struct stat *sb, int kind, struct FTW *at)
{
    (void) sb;
    (void) kind;
    (void) at;
    return remove (path);
}

static void remove_tree (const char *path)
{
    nftw (path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Make the folders that path lies in; those made here are appended to made[], a list of at most
 * cap names, so that they can be removed. */
static enum status make_parents (const char *path, char **made, int *n_made, int cap,
                                 struct error *err)
{
    char part[PATH_MAX];
    struct stat sb;

    for (const char *slash = strchr (path + 1, '/'); slash;
         slash = strchr (slash + 1, '/')) {
        memcpy (part, path, (size_t) (slash - path));
        part[slash - path] = '\0';
        if (mkdir (part, 0777) == 0) {
            if (*n_made < cap && (made[*n_made] = strdup (part)))
                ++*n_made;
        } else if (errno != EEXIST) {
            return file_failed (part, err);
        } else if (stat (part, &sb) == 0 && !S_ISDIR (sb.st_mode)) {
            return err_set (err, ST_IO, "%s: expected a folder, found a file", part);
        }
    }
    return ST_OK;
}

/* Make the folder where files wait, empty, and keep others out of it: what a killed process left
 * there goes.  @param[out] lock  close it */
static enum status open_new (const char *folder, int *lock, struct error *err)
{
    if (mkdir (folder, 0777) != 0 && errno != EEXIST)
        return file_failed (folder, err);
    *lock = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return file_failed (folder, err);
    if (flock (*lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close (*lock);
        *lock = -1;
        return err_set (err, ST_IO, "%s: another process writes there", folder);
    }
    remove_tree (folder);
    return mkdir (folder, 0777) == 0 ? ST_OK : file_failed (folder, err);
}

static enum status write_new (const char *path, const struct file_item *item,
                              struct error *err)
{
    int n_made = 0, fd;

    TRY (make_parents (path, NULL, &n_made, 0, err));
    fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return fd < 0 ? file_failed (path, err)
                  : fill (fd, path, item->data, item->len, item->mode, err);
}

/* The item, from the folder where it waits to its own. */
static enum status move_item (const char *from, const char *dir,
                              const struct file_item *item, struct error *err)
{
    char old[PATH_MAX], new[PATH_MAX];

    TRY (join (from, "/", item->path, old, err));
    TRY (join (dir, "/", item->path, new, err));
    return rename (old, new) == 0 ? ST_OK : file_failed (new, err);
}

/* Remove an old file, and its folder once that is empty. */
static enum status remove_old (const char *dir, const char *name, struct error *err)
{
    char path[PATH_MAX];

    TRY (join (dir, "/", name, path, err));
    if (unlink (path) != 0 && errno != ENOENT && errno != ENOTDIR)
        return err_set (err, ST_IO, "%s: the old file cannot be removed: %s", path,
                        strerror (errno));
    if (strchr (name, '/')) {
        *strrchr (path, '/') = '\0';
        rmdir (path);
    }
    return ST_OK;
}

static enum status replace (const char *from, const char *dir,
                            const struct file_item *item, int n, const char *const *gone,
                            struct error *err)
{
    TRY (remove_old (dir, item[n - 1].path, err));
    for (int i = 0; i < n - 1; i++)
        TRY (move_item (from, dir, &item[i], err));
    for (; *gone; gone++)
        TRY (remove_old (dir, *gone, err));
    return move_item (from, dir, &item[n - 1], err);
}

enum status file_write_folder (const char *dir, const struct file_item *item, int n,
                               const char *const *gone, struct error *err)
{
    char from[PATH_MAX], path[PATH_MAX], *made[MADE_MAX];
    int n_made = 0, lock = -1;
    struct stat sb;
    bool is_new = stat (dir, &sb) != 0;
    size_t length = strlen (dir);
    sigset_t before;
    enum status st;

    while (length > 1 && dir[length - 1] == '/')
        length--;
    snprintf (path, sizeof path, "%.*s", (int) length, dir);
    TRY (join (path, is_new ? "" : "/", NEW_FOLDER, from, err));
    hold_signals (&before);
    st = make_parents (from, made, &n_made, MADE_MAX, err);
    THEN (st, open_new (from, &lock, err));
    for (int i = 0; i < n && st == ST_OK; i++) {
        st = join (dir, "/", item[i].path, path, err);
        if (st == ST_OK && stat (path, &sb) == 0 && S_ISDIR (sb.st_mode))
            st = err_set (err, ST_IO, "%s: expected a file, found a folder", path);
        /* While the old files are whole: what takes room may fail. */
        if (st == ST_OK && !is_new)
            st = make_parents (path, made, &n_made, MADE_MAX, err);
        THEN (st, join (from, "/", item[i].path, path, err));
        THEN (st, write_new (path, &item[i], err));
    }
    if (st == ST_OK && is_new)
        st = rename (from, dir) == 0 ? ST_OK : file_failed (dir, err);
    else if (st == ST_OK)
        st = replace (from, dir, item, n, gone, err);
    if (lock >= 0) {
        remove_tree (from);
        close (lock);
    }
    for (int i = n_made - 1; i >= 0; i--) {
        if (st != ST_OK)
            rmdir (made[i]);
        free (made[i]);
    }
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    return st;
}

void file_sha256 (const char *data, size_t len, char hex[65])
{
    SHA256Data ((const uint8_t *) data, len, hex);
}

bool file_same (const char *a, const char *b)
{
    struct stat x, y;

    return stat (a, &x) == 0 && stat (b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}
