/* Preloaded into a command, makes one of its calls go wrong: `make check-faults`.
 *
 *   FAULT=memory  an allocation fails
 *   FAULT=kill    the process is killed by a call that changes files, a write half-way
 *   FAULT=full    that call and all later ones that take room fail: the disk is full
 *
 * FAULT_AT=N says at which of them, from 1; FAULT_COUNT=FILE is where the numbers of all three
 * go. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void *__libc_malloc (size_t);
void *__libc_calloc (size_t, size_t);
void *__libc_realloc (void *, size_t);

enum fault { MEMORY, KILL, FULL, FAULTS };
static const char *const name[FAULTS] = {"memory", "kill", "full"};
static long count[FAULTS], at = -1;

/* Is FAULT this, and the time for it?  The environment is read without allocations. */
static bool now (enum fault fault, bool ever_after)
{
    const char *which = getenv ("FAULT");

    if (at < 0)
        at = atol (getenv ("FAULT_AT") ? getenv ("FAULT_AT") : "0");
    count[fault]++;
    return which && strcmp (which, name[fault]) == 0 && at > 0 &&
           (ever_after ? count[fault] >= at : count[fault] == at);
}

__attribute__ ((destructor)) static void tell (void)
{
    const char *file = getenv ("FAULT_COUNT");
    FILE *f = file ? fopen (file, "w") : NULL;

    if (f) {
        for (int k = 0; k < FAULTS; k++)
            fprintf (f, "%s=%ld\n", name[k], count[k]);
        fclose (f);
    }
}

/* ---- memory ---- */

static bool no_memory (void)
{
    if (!now (MEMORY, false))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc (size_t n)
{
    return no_memory () ? NULL : __libc_malloc (n);
}
void *calloc (size_t n, size_t m)
{
    return no_memory () ? NULL : __libc_calloc (n, m);
}
void *realloc (void *p, size_t n)
{
    return no_memory () ? NULL : __libc_realloc (p, n);
}

/* ---- files ---- */

static void kill_now (void)
{
    if (now (KILL, false))
        kill (getpid (), SIGKILL);
}

static bool full (void)
{
    if (!now (FULL, true))
        return false;
    errno = ENOSPC;
    return true;
}

/* A call of the C library that changes files: its result, before which the disk may be full,
 * and after which the process may be killed. */
#define CHANGES(takes_room, type, name, parameters, arguments)                    \
    type name parameters                                                          \
    {                                                                             \
        type (*real) parameters = (type (*) parameters) dlsym (RTLD_NEXT, #name); \
        type result = (takes_room) && full () ? (type) -1 : real arguments;       \
                                                                                  \
        kill_now ();                                                              \
        return result;                                                            \
    }

CHANGES (false, int, rename, (const char *from, const char *to), (from, to))
CHANGES (false, int, unlink, (const char *path), (path))
CHANGES (false, int, remove, (const char *path), (path))
CHANGES (false, int, rmdir, (const char *path), (path))
CHANGES (false, int, fchmod, (int fd, mode_t mode), (fd, mode))
CHANGES (false, int, ftruncate, (int fd, off_t n), (fd, n))
CHANGES (access (path, F_OK) != 0, int, mkdir, (const char *path, mode_t mode),
         (path, mode))
CHANGES (true, int, mkstemp, (char *path), (path))
CHANGES (true, int, fsync, (int fd), (fd))

int posix_fallocate (int fd, off_t from, off_t n)
{
    int (*real) (int, off_t, off_t) =
        (int (*) (int, off_t, off_t)) dlsym (RTLD_NEXT, "posix_fallocate");
    int result = full () ? ENOSPC : real (fd, from, n);

    kill_now ();
    return result;
}

int open (const char *path, int flags, ...)
{
    int (*real) (const char *, int, ...) =
        (int (*) (const char *, int, ...)) dlsym (RTLD_NEXT, "open");
    va_list ap;
    int fd;

    va_start (ap, flags);
    if (flags & O_CREAT && full ())
        fd = -1;
    else
        fd = real (path, flags, flags & O_CREAT ? va_arg (ap, mode_t) : 0);
    va_end (ap);
    if (flags & O_CREAT)
        kill_now ();
    return fd;
}

ssize_t write (int fd, const void *data, size_t n)
{
    ssize_t (*real) (int, const void *, size_t) =
        (ssize_t (*) (int, const void *, size_t)) dlsym (RTLD_NEXT, "write");

    if (fd <= STDERR_FILENO)
        return real (fd, data, n);
    if (full ())
        return -1;
    if (now (KILL, false)) {
        if (real (fd, data, n / 2) >= 0)
            kill (getpid (), SIGKILL);
    }
    return real (fd, data, n);
}
