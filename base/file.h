/* Files read whole and written whole or not at all. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/** What messages call the input at path: "standard input" for "-". */
const char *file_title (const char *path);

/** The name of a file in its folder. */
const char *file_name (const char *path);
/** Its folder, with a '/' at the end, or "."; to be freed.  NULL: out of memory. */
char *file_folder (const char *path);

/** The file behind symbolic links, where matrices beside it lie; any other path, also of a link to
 *  nothing, as it is.  To be freed.  NULL: out of memory. */
char *file_behind (const char *path);

/** Length of a path without its ".json", for "%.*s". */
int file_stem (const char *path);

/** The error of a call of the system on that file, by errno.  @return ST_IO */
enum status file_failed (const char *path, struct error *err);

/** Read a whole text file; "-" is standard input.  What is no text is refused at its first NUL:
 *  weights or a device take no longer than a short file.
 *
 *  @param[in]  path   a file, a pipe or "-"
 *  @param[out] data   NUL-terminated bytes, to be freed by the caller
 *  @param[out] len    bytes without that NUL
 *  @return ST_OK, ST_IO (missing, a folder, unreadable, over 4 GiB), ST_INVALID (no text),
 *          ST_NOMEM; the message names the file
 */
enum status file_read (const char *path, char **data, size_t *len, struct error *err);
/** The same of what is written by hand or is as short: at most 64 MiB. */
enum status file_read_small (const char *path, char **data, size_t *len,
                             struct error *err);
/** The same of any bytes, as of a matrix. */
enum status file_read_bytes (const char *path, char **data, size_t *len,
                             struct error *err);

/** Why bytes cannot be a text file: "compressed with gzip: unpack it first" and the like.
 *  @return a phrase that follows "FILE: ", or NULL when they may be text */
const char *file_not_text (const char *data, size_t len);

/** Bytes of the byte-order mark that a text begins with, as some editors and spreadsheets
 *  write it: 3 or 0. */
size_t file_mark (const char *data, size_t len);

/** The open file that a name for output means: "-" and /dev/stdout are 1, /dev/stderr is 2, and
 *  /dev/fd/N and /proc/self/fd/N are N.
 *  @return -1 of another name */
int file_open_number (const char *path);

/** Does what is written there pass on: "-", an open file, a device, a pipe?  False for a file, new
 *  or not. */
bool file_is_stream (const char *path);

/** Write a file whole or not at all: the bytes go to a temporary file in the same
 *  folder, reach the disk, and take the name in one rename.  Mode bits and owner of an
 *  existing file are kept.  What file_open_number knows gets the bytes where it
 *  stands, and what is not a regular file (a device, a pipe) is written in place.  Behind a
 *  symbolic link its target is written.
 *
 *  In place too, after the room for the bytes is taken, goes what a rename would take from the
 *  file (other hard links, an owner that this process cannot give) and a file in a folder
 *  that takes no new ones.
 *
 *  @return ST_OK or ST_IO; on failure the old file, if any, is as it was, unless a disk breaks
 *          while it is written in place
 */
enum status file_write (const char *path, const char *data, size_t len,
                        struct error *err);

/** One file of a set: a path below the set's folder, its text, and its mode. */
struct file_item {
    const char *path; /* relative, with '/' between folders */
    const char *data;
    size_t len;
    unsigned mode; /* 0644 or 0755 */
};

/** Write a set of files of a folder, each as file_write does, all or none: none takes its name
 *  before all are on disk.  SIGHUP, SIGINT and SIGTERM wait until it is done.
 *
 *  @return ST_OK or ST_IO
 */
enum status file_write_set (const char *dir, const struct file_item *item, int n,
                            struct error *err);

/** Write a folder's files, all or none; other files in it stay.  The last item is the seal: what
 *  is in the folder belongs together where the seal is there, also after a kill.  Missing
 *  folders are made, and removed again on failure.  SIGHUP, SIGINT and SIGTERM wait until it is
 *  done.
 *
 *  @param[in] item  [n] one or more
 *  @param[in] gone  names of old files that are removed, up to a NULL
 *  @return ST_OK or ST_IO; on failure before the old seal is removed all is as it was
 */
enum status file_write_folder (const char *dir, const struct file_item *item, int n,
                               const char *const *gone, struct error *err);

/** Are these one and the same file or folder, by whatever names?  No, where one is not there. */
bool file_same (const char *a, const char *b);

/** SHA-256 of bytes as 64 lower-case hexadecimal digits and a NUL. */
void file_sha256 (const char *data, size_t len, char hex[65]);

#endif
