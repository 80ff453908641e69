/* spawn COMMAND ARGUMENT...: a builtin of bash that runs a command as the shell itself does, but
 * does not fork.  A fork shares the shell's memory page by page and copies what either changes,
 * which takes longer than most programs that tests start. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* What bash gives and takes, as in its command.h, builtins.h and externs.h since 4.3. */
struct word {
    char *text;
    int flags;
};
struct words {
    struct words *next;
    struct word *word;
};
struct builtin {
    char *name;
    int (*function) (struct words *);
    int flags;
    char *const *help;
    const char *usage;
    char *unused;
};
enum { ENABLED = 1, HASHED = 1, NOT_STARTED = 126, NOT_FOUND = 127, KILLED = 128 };
extern char **export_env;
void maybe_make_export_env (void);
char *search_for_command (const char *name, int flags);
void builtin_error (const char *format, ...);
extern struct builtin spawn_struct;

/* Its exit status as the shell counts.  Until it has ended, the shell's handler of ended children
 * must not see it. */
static int run (const char *path, char **argv)
{
    posix_spawnattr_t as;
    sigset_t ended, before;
    int rc, status = 0;
    pid_t pid;

    sigemptyset (&ended);
    sigaddset (&ended, SIGCHLD);
    sigprocmask (SIG_BLOCK, &ended, &before);
    posix_spawnattr_init (&as);
    posix_spawnattr_setflags (&as, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask (&as, &before);
    rc = posix_spawn (&pid, path, NULL, &as, argv, export_env);
    while (rc == 0 && waitpid (pid, &status, 0) < 0 && errno == EINTR)
        continue;
    posix_spawnattr_destroy (&as);
    sigprocmask (SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        builtin_error ("%s: %s", path, strerror (rc));
        return rc == ENOENT ? NOT_FOUND : NOT_STARTED;
    }
    return WIFSIGNALED (status) ? KILLED + WTERMSIG (status) : WEXITSTATUS (status);
}

static int spawn (struct words *words)
{
    char **argv, *path = words ? search_for_command (words->word->text, HASHED) : NULL;
    int n = 0, status = NOT_FOUND;

    if (!path) {
        builtin_error ("%s: command not found", words ? words->word->text : "");
        return NOT_FOUND;
    }
    for (struct words *w = words; w; w = w->next)
        n++;
    argv = calloc ((size_t) n + 1, sizeof *argv);
    n = 0;
    for (struct words *w = words; argv && w; w = w->next)
        argv[n++] = w->word->text;
    if (argv) {
        maybe_make_export_env ();
        status = run (path, argv);
    }
    free (argv);
    free (path);
    return status;
}

static char *const help[] = {(char[]){"Run a command without a fork."}, NULL};
struct builtin spawn_struct = {(char[]){"spawn"},           spawn, ENABLED, help,
                               "spawn COMMAND ARGUMENT...", NULL};
