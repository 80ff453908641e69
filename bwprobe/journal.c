#include "bwprobe/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"

/* More than this is not kept for a disk that stays full. */
#define PENDING_MAX ((size_t) 64 << 20)
/* No link does more, or takes longer: a line that says so is damaged. */
#define GB_PER_S_MAX 1e9
#define US_MAX 1e9

struct journal {
    char path[PATH_MAX];
    int fd;
    off_t good; /* length of what is whole on disk */
    struct text pending;
    double written_s;
    char trouble[256]; /* "" when all is well */
};

void journal_item_take (const struct journal_item *item, struct results_pair *p)
{
    bool together = item->kind < SCHEDULE_KINDS && schedule_is_together (item->kind);

    results_add (p, together ? RESULTS_TOGETHER : RESULTS_ALONE, item->bytes_per_s);
    if (together && item->counts_as_alone)
        results_add (p, RESULTS_ALONE, item->bytes_per_s);
    results_add (p, RESULTS_LATENCY, item->latency_s);
    p->residual = fmaxf (p->residual, (float) item->residual);
}

/* ---- reading ---- */

/* The endpoints of the run that wrote a part of the file, as this run numbers them. */
struct numbering {
    int *here; /* [n] -1: not there any more */
    int n;
};

/* Most often it stands where it stood. */
static int find_name (const char *const *name, int n, const char *wanted, size_t guess)
{
    if (guess < (size_t) n && strcmp (name[guess], wanted) == 0)
        return (int) guess;
    for (int i = 0; i < n; i++)
        if (strcmp (name[i], wanted) == 0)
            return i;
    return -1;
}

static enum status read_header (const char *path, const json_t *line,
                                const struct journal_run *run, struct numbering *out,
                                struct error *err)
{
    const json_t *ends = json_object_get (line, "endpoints");
    const char *used = json_member_text (line, "transport");
    size_t count = json_array_size (ends);
    int *here;

    if (!used || !json_is_array (ends) || count > INT_MAX)
        return err_set (err, ST_INVALID, "%s: not a journal of bwprobe", path);
    if (strcmp (used, run->transport) != 0)
        return err_set (err, ST_INVALID,
                        "%s: measured over %s, not over %s: its values cannot be joined "
                        "with this run's; remove it to begin anew",
                        path, used, run->transport);
    here = malloc ((count + 1) * sizeof *here);
    if (!here)
        return err_nomem (err);
    for (size_t i = 0; i < count; i++) {
        const char *s = json_string_value (json_array_get (ends, i));

        here[i] = s ? find_name (run->name, run->n, s, i) : -1;
    }
    free (out->here);
    *out = (struct numbering){here, (int) count};
    return ST_OK;
}

/* [src, dst, kind, pass, alone, GB/s | null, us, residual, reason?]; an end is -1 where it is no
 * part of this job. */
static bool read_item (const json_t *line, const struct numbering *num,
                       struct journal_item *item)
{
    double v[8];
    size_t n = json_array_size (line);

    if (n < 8)
        return false;
    for (size_t i = 0; i < 8; i++) {
        json_t *x = json_array_get (line, i);

        if (!json_is_number (x) && !(i == 5 && json_is_null (x)))
            return false;
        v[i] = json_number_value (x);
    }
    if (v[0] < 0 || v[0] >= num->n || v[1] < 0 || v[1] >= num->n || v[2] < 0 ||
        v[2] > SCHEDULE_KINDS || v[3] < 0 || v[3] > 1e6 || v[5] < 0 ||
        v[5] > GB_PER_S_MAX || v[6] < 0 || v[6] > US_MAX || !isfinite (v[7]))
        return false;
    *item = (struct journal_item){.src = num->here[(int) v[0]],
                                  .dst = num->here[(int) v[1]],
                                  .kind = (enum schedule_kind) (int) v[2],
                                  .pass = (int) v[3],
                                  .counts_as_alone = v[4] != 0,
                                  .failed = json_is_null (json_array_get (line, 5)),
                                  .bytes_per_s = v[5] * 1e9,
                                  .latency_s = v[6] * 1e-6,
                                  .residual = v[7],
                                  .reason = json_string_value (json_array_get (line, 8))};
    return item->src != item->dst || item->src < 0;
}

static enum status read_all (struct journal *j, struct journal_run *run,
                             struct notes *notes, struct error *err)
{
    char *data;
    long damaged = 0;
    size_t len, at = 0;
    struct numbering num = {NULL, 0};
    enum status st = ST_OK;

    TRY (file_read_bytes (j->path, &data, &len, err));
    while (at < len && st == ST_OK) {
        const char *end = memchr (data + at, '\n', len - at);
        json_t *line =
            end ? json_loadb (data + at, (size_t) (end - data) - at, 0, NULL) : NULL;
        struct journal_item item;

        if (!line && at == 0 && len > 0)
            st = err_set (err, ST_INVALID, "%s: not a journal of bwprobe", j->path);
        /* Only the last line can have been cut off; what else cannot be read is left aside. */
        if (!end)
            break;
        if (json_is_object (line))
            st = read_header (j->path, line, run, &num, err);
        else if (!line || !num.here || !read_item (line, &num, &item))
            damaged++;
        else if (item.src >= 0 && item.dst >= 0) {
            run->take (run->context, &item);
            run->taken++;
        }
        json_decref (line);
        at = (size_t) (end - data) + 1;
    }
    j->good = (off_t) at;
    if (st == ST_OK && damaged > 0)
        notes_add (notes, "%s: %ld lines are damaged: their values are measured again",
                   j->path, damaged);
    free (num.here);
    free (data);
    return st;
}

/* ---- writing ---- */

/* Write what is pending; of what a full disk took only in part the whole lines stay. */
void journal_flush (struct journal *j)
{
    size_t at = 0, all = j->pending.len;

    j->written_s = clock_s ();
    if (all == 0)
        return;
    while (at < all) {
        ssize_t n = pwrite (j->fd, j->pending.s + at, all - at, j->good + (off_t) at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        at += (size_t) n;
    }
    if (at == all && fdatasync (j->fd) == 0) {
        j->trouble[0] = '\0';
    } else {
        snprintf (j->trouble, sizeof j->trouble, "%s", strerror (errno));
        while (at > 0 && j->pending.s[at - 1] != '\n')
            at--;
    }
    j->good += (off_t) at;
    memmove (j->pending.s, j->pending.s + at, all - at + 1);
    j->pending.len -= at;
    /* Reading ends at a line that is not whole, so a rest that stays does no harm. */
    if (at < all && ftruncate (j->fd, j->good) != 0)
        snprintf (j->trouble, sizeof j->trouble, "%s", strerror (errno));
    if (j->pending.len > PENDING_MAX)
        text_free (&j->pending);
}

static void add_header (struct journal *j, const struct journal_run *run)
{
    json_t *ends = json_array ();
    json_t *head =
        json_pack ("{s:s, s:o}", "transport", run->transport, "endpoints", ends);
    char *s;

    for (int i = 0; i < run->n; i++)
        json_array_append_new (ends, json_string (run->name[i]));
    s = json_dumps (head, JSON_COMPACT);
    if (s)
        text_add (&j->pending, "%s\n", s);
    free (s);
    json_decref (head);
}

/* An older run's work is not thrown away because somebody forgot an option, nor is what was set
 * aside before: the first name that is free. */
static enum status set_aside (const char *path, struct notes *notes, struct error *err)
{
    char old[PATH_MAX + 16];
    struct stat sb;

    snprintf (old, sizeof old, "%s.old", path);
    for (int i = 2; lstat (old, &sb) == 0; i++)
        snprintf (old, sizeof old, "%s.old%d", path, i);
    if (rename (path, old) != 0)
        return file_failed (path, err);
    notes_add (
        notes,
        "%s is from an unfinished run, which --resume would have continued; it is now "
        "named %s",
        path, old);
    return ST_OK;
}

enum status journal_open (const char *links_path, struct journal_run *run,
                          struct journal **out, struct notes *notes, struct error *err)
{
    struct journal *j = calloc (1, sizeof *j);
    struct stat sb;
    enum status st = ST_OK;

    if (!j)
        return err_nomem (err);
    run->taken = 0;
    j->fd = -1;
    if ((size_t) snprintf (j->path, sizeof j->path, "%s.part", links_path) >=
        sizeof j->path)
        st = err_set (err, ST_IO, "%s: the name is too long", links_path);
    if (st == ST_OK && stat (links_path, &sb) == 0 && S_ISDIR (sb.st_mode))
        st = err_set (err, ST_IO, "%s: expected a file, found a folder", links_path);
    sb.st_size = 0;
    if (st == ST_OK && stat (j->path, &sb) == 0 && !S_ISREG (sb.st_mode))
        st = err_set (err, ST_IO, "%s: expected a file, found something else", j->path);
    if (st == ST_OK && sb.st_size > 0)
        st =
            run->resume ? read_all (j, run, notes, err) : set_aside (j->path, notes, err);
    if (st == ST_OK) {
        j->fd = open (j->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (j->fd < 0)
            st = file_failed (j->path, err);
    }
    if (st != ST_OK) {
        free (j);
        return st;
    }
    /* A line that was cut off goes. */
    if (ftruncate (j->fd, j->good) != 0)
        snprintf (j->trouble, sizeof j->trouble, "%s", strerror (errno));
    add_header (j, run);
    journal_flush (j);
    *out = j;
    return ST_OK;
}

void journal_add (struct journal *j, const struct journal_item *item)
{
    text_add (&j->pending, "[%d,%d,%d,%d,%d,", item->src, item->dst, (int) item->kind,
              item->pass, item->counts_as_alone);
    if (item->failed) {
        json_t *reason = json_string (item->reason ? item->reason : "");
        char *s = reason ? json_dumps (reason, JSON_ENCODE_ANY) : NULL;

        text_add (&j->pending, "null,0,0,%s]\n", s ? s : "\"\"");
        free (s);
        json_decref (reason);
    } else {
        text_add (&j->pending, "%.7g,%.5g,%.3g]\n", item->bytes_per_s * 1e-9,
                  item->latency_s * 1e6,
                  item->residual == item->residual ? item->residual : 0);
    }
    journal_keep (j);
}

void journal_keep (struct journal *j)
{
    if (clock_s () - j->written_s >= 1)
        journal_flush (j);
}

const char *journal_trouble (const struct journal *j)
{
    return j->trouble[0] ? j->trouble : NULL;
}

void journal_close (struct journal *j, bool remove)
{
    if (!j)
        return;
    if (remove)
        unlink (j->path);
    else
        journal_flush (j);
    close (j->fd);
    text_free (&j->pending);
    free (j);
}
