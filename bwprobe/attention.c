#include "bwprobe/cuda.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/progress.h"

/* To load PyTorch from a slow disk, and to measure. */
#define GIVE_UP_S 60.0
#define END_S 1.0 /* for a killed Python; one that waits for a disk or a driver is left */
#define SAID 4096 /* of what the script says, a few short lines */
#define LEAST 1e9 /* FLOP/s of a GPU */

extern char **environ;

/* Start the script with `out` as its output; warnings go nowhere.  @return 0, or an errno */
static int start (int device, int out, pid_t *child)
{
    char number[16];
    char *const argv[] = {"python3", "-c", (char *) attention_script[0].text, number,
                          NULL};
    posix_spawn_file_actions_t files;
    int failed;

    snprintf (number, sizeof number, "%d", device);
    if ((failed = posix_spawn_file_actions_init (&files)) != 0)
        return failed;
    failed = posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
    if (failed == 0)
        failed = posix_spawn_file_actions_addopen (&files, 2, "/dev/null", O_WRONLY, 0);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2 (&files, out, 1);
    if (failed == 0)
        failed = posix_spawnp (child, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy (&files);
    return failed;
}

/* What comes until the end, as far as there is room.  @return false: it took too long */
static bool read_all (int in, char said[SAID])
{
    double deadline = clock_s () + GIVE_UP_S;
    size_t n = 0;

    for (;;) {
        struct pollfd p = {.fd = in, .events = POLLIN};
        char beyond[512];
        double left = deadline - clock_s ();
        bool room = n < SAID - 1;
        int ready = left > 0 ? poll (&p, 1, (int) (left * 1e3) + 1) : 0;
        ssize_t got;

        said[n] = '\0';
        if (ready == 0)
            return false;
        if (ready < 0)
            continue;
        got = read (in, room ? said + n : beyond, room ? SAID - 1 - n : sizeof beyond);
        if (got == 0)
            return true;
        if (got > 0 && room)
            n += (size_t) got;
    }
}

/* A line of the script's, or false: it is none. */
static bool read_line (const char *line, struct msg_attention *a)
{
    char more;

    return sscanf (line, "%7s %u %u %u %lf %c", a->kernels, &a->tokens, &a->heads,
                   &a->width, &a->flop_per_s, &more) == 5 &&
           (strcmp (a->kernels, "cudnn") == 0 || strcmp (a->kernels, "flash2") == 0) &&
           a->tokens > 0 && a->flop_per_s > LEAST && a->flop_per_s < 1e18;
}

/* Whole lines; the first reason is kept. */
static void read_lines (char *said, struct msg_computed *out, struct error *err)
{
    for (char *line = said, *end; (end = strchr (line, '\n')); line = end + 1) {
        *end = '\0';
        if (out->n_attention < MESSAGES_ATTENTION &&
            read_line (line, &out->attention[out->n_attention]))
            out->n_attention++;
        else if (strncmp (line, "no ", 3) == 0 && !err->text[0])
            err_set (err, ST_IO, "%.200s", line);
    }
}

enum status attention_measure (int device, struct msg_computed *out, struct error *err)
{
    char said[SAID];
    double deadline;
    int tube[2], failed;
    bool ended;
    pid_t child;

    out->n_attention = 0;
    if (pipe2 (tube, O_CLOEXEC) != 0)
        return err_set (err, ST_IO, "no pipe to python3");
    failed = start (device, tube[1], &child);
    close (tube[1]);
    ended = failed == 0 && read_all (tube[0], said);
    close (tube[0]);
    if (failed != 0)
        return err_set (err, ST_IO, "python3 does not start: %s", strerror (failed));
    if (!ended)
        kill (child, SIGKILL);
    deadline = clock_s () + END_S;
    while (waitpid (child, NULL, WNOHANG) == 0 && clock_s () < deadline)
        usleep (1000);
    err->text[0] = '\0';
    read_lines (said, out, err);
    if (!ended)
        err_set (err, ST_IO, "python3 did not end in %g s", GIVE_UP_S);
    else if (!err->text[0])
        err_set (err, ST_IO, "python3 ended without a word");
    return out->n_attention > 0 ? ST_OK : ST_IO;
}
