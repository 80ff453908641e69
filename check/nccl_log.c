/* NCCL's logs: the lines of files, folders, patterns and pipes. */
#include "check/nccl_private.h"

#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"

#define LINE_MAX_BYTES 16384 /* NCCL prints a kilobyte; what is longer is cut */
#define STREAM_MAX_BYTES \
    (16 << 20) /* without a line of NCCL, of what is no text and no file */

/* Let the reader see a buffer's whole lines, or all of it where it is full or the last.
 * @return bytes that it used */
static size_t read_lines (struct nccl_reader *x, char *buf, size_t n, bool last,
                          bool *skip)
{
    size_t from = 0;

    while (from < n) {
        char *end = memchr (buf + from, '\n', n - from);
        bool cut = !end && !last && from == 0 && n == LINE_MAX_BYTES;

        if (!end && !last && !cut)
            break;
        if (!end)
            end = buf + n;
        *end = '\0';
        if (end > buf + from && end[-1] == '\r')
            end[-1] = ' ';
        for (char *hole = buf + from;
             (hole = memchr (hole, '\0', (size_t) (end - hole)));)
            *hole = ' '; /* as several writers leave them in one file */
        if (!*skip)
            nccl_line_read (x, buf + from);
        *skip = cut;
        from = (size_t) (end - buf) + !cut;
    }
    return from < n ? from : n;
}

static enum status read_stream (struct nccl_reader *x, const char *path, FILE *f,
                                struct error *err)
{
    char buf[LINE_MAX_BYTES + 1];
    size_t n = 0, got;
    long long before = x->log->lines.nccl;
    const char *why = NULL;
    bool first = true, skip = false;
    struct stat sb;
    bool ends = fstat (fileno (f), &sb) == 0 && S_ISREG (sb.st_mode);
    long long left = STREAM_MAX_BYTES;

    while ((got = fread (buf + n, 1, LINE_MAX_BYTES - n, f)) > 0) {
        size_t used;

        if (first)
            why = file_not_text (buf, got);
        first = false;
        n += got;
        used = read_lines (x, buf, n, false, &skip);
        n -= used;
        memmove (buf, buf + used, n);
        left -= (long long) got;
        if (why && !ends && left < 0 && x->log->lines.nccl == before)
            break; /* a device may have no end */
    }
    if (ferror (f))
        return file_failed (path, err);
    read_lines (x, buf, n, true, &skip);
    if (why && x->log->lines.nccl == before)
        return err_set (err, ST_INVALID, "%s: %s", file_title (path), why);
    return x->failed ? err_nomem (err) : ST_OK;
}

static enum status read_file (struct nccl_reader *x, const char *path, struct error *err)
{
    struct check_nccl_lines *l = &x->log->lines;
    bool dash = strcmp (path, "-") == 0;
    FILE *f = dash ? stdin : fopen (path, "r");
    enum status st;

    if (!f)
        return file_failed (path, err);
    if (!array_grow (&l->name, (size_t) l->names, sizeof *l->name) ||
        !(l->name[l->names] = strdup (file_title (path)))) {
        st = err_nomem (err);
    } else {
        x->file = l->name[l->names++];
        x->line = 0;
        l->files++;
        st = read_stream (x, path, f, err);
    }
    if (!dash)
        fclose (f);
    return st;
}

static bool is_a (const char *path, mode_t kind)
{
    struct stat sb;

    return stat (path, &sb) == 0 && (sb.st_mode & S_IFMT) == kind;
}

/* Every file that a pattern means; a pipe among them would be waited for. */
static enum status read_pattern (struct nccl_reader *x, const char *path,
                                 const char *pattern, struct error *err)
{
    glob_t g;
    int rc = glob (pattern, 0, NULL, &g);
    enum status st = ST_OK;

    if (rc != 0) {
        globfree (&g);
        errno = ENOENT;
        return rc == GLOB_NOSPACE ? err_nomem (err)
               : is_a (path, S_IFDIR)
                   ? err_set (err, ST_INVALID, "%s: expected logs, found an empty folder",
                              path)
                   : file_failed (path, err);
    }
    for (size_t i = 0; i < g.gl_pathc && st == ST_OK; i++)
        if (is_a (g.gl_pathv[i], S_IFREG))
            st = read_file (x, g.gl_pathv[i], err);
    globfree (&g);
    return st;
}

/* A folder's own name may have a pattern's characters in it. */
static enum status read_folder (struct nccl_reader *x, const char *path,
                                struct error *err)
{
    struct text pattern = {0};
    enum status st;

    for (const char *s = path; *s; s++)
        text_add (&pattern, strchr ("*?[\\", *s) ? "\\%c" : "%c", *s);
    text_add (&pattern, "/*");
    st = pattern.failed ? err_nomem (err)
                        : read_pattern (x, path, text_str (&pattern), err);
    text_free (&pattern);
    return st;
}

static enum status read_path (struct nccl_reader *x, const char *path, struct error *err)
{
    struct stat sb;

    if (strcmp (path, "-") == 0)
        return read_file (x, path, err);
    if (is_a (path, S_IFDIR))
        return read_folder (x, path, err);
    if (stat (path, &sb) != 0 && strpbrk (path, "*?["))
        return read_pattern (x, path, path, err);
    return read_file (x, path, err);
}

enum status nccl_log_read (const char *const *path, int n, struct nccl_log *log,
                           struct error *err)
{
    struct nccl_reader x = {.log = log};
    enum status st = ST_OK;

    *log = (struct nccl_log){0};
    for (int i = 0; i < n && st == ST_OK; i++)
        st = read_path (&x, path[i], err);
    nccl_reader_release (&x);
    if (st != ST_OK)
        return st;
    if (log->lines.nccl == 0)
        return err_set (
            err, ST_INVALID,
            "%s: expected lines of NCCL (\"host:pid:tid [0] NCCL INFO ...\", with "
            "NCCL_DEBUG=INFO), found %s%lld lines without any",
            file_title (path[0]), log->lines.files > 1 ? "in all files " : "",
            log->lines.all);
    for (int i = 0; i < log->n_members; i++)
        if (log->member[i].n_ranks > 0)
            return ST_OK;
    return err_set (
        err, ST_INVALID,
        "%s: expected a communicator (\"comm ... Init COMPLETE\", with "
        "NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET), found none in "
        "%lld lines of NCCL",
        file_title (path[0]), log->lines.nccl);
}

void nccl_log_release (struct nccl_log *log)
{
    memory_free_texts (log->host, log->n_hosts);
    memory_free_texts (log->lines.name, log->lines.names);
    FREE_ALL (log->seat, log->member, log->edge, log->order, log->rank);
    *log = (struct nccl_log){0};
}
