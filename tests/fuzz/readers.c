/* Every reader of a file or message takes any bytes: it answers or refuses, without a fault.
 *
 * With -DFUZZ this is a libFuzzer target (`make fuzz`); else a test that runs the inputs that are
 * kept in tests/fuzz/seeds, one folder a kind of input: samples of each format, and what was once
 * found, under the name of what was wrong.  Most targets are a command of the program, since what a
 * reader lets through matters only in what is done with it. */
#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "bwprobe/journal.h"
#include "bwprobe/messages.h"
#include "cli/cli.h"
#include "topology/edit/edit.h"

/* ---- what is read ---- */

#define ARGUMENTS_MAX 24

struct target {
    const char *name;
    const char *kind; /* of its inputs: their folder below tests/fuzz/seeds */
    const char *file; /* where the input lies; NULL: it is the last argument */
    const struct cli_command *command;
    const char *arguments;               /* one blank between them */
    void (*read) (const char *, size_t); /* instead of a command, or NULL */
};

static void read_message (struct wire *w)
{
    union {
        struct msg_hello hello;
        struct msg_welcome welcome;
        struct msg_opened opened;
        struct msg_parent parent;
        struct msg_parent_done parent_done;
        struct msg_run run;
        struct msg_seq seq;
        struct msg_result result;
        struct msg_abort abort;
        struct msg_compute compute;
        struct msg_computed computed;
        struct msg_bye bye;
    } m = {0};

    switch (w->type) {
    case MSG_HELLO:
        messages_hello (w, &m.hello);
        break;
    case MSG_WELCOME:
        messages_welcome (w, &m.welcome);
        break;
    case MSG_OPENED:
        messages_opened (w, &m.opened);
        break;
    case MSG_PARENT:
        messages_parent (w, &m.parent);
        break;
    case MSG_PARENT_DONE:
        messages_parent_done (w, &m.parent_done);
        break;
    case MSG_RUN:
        messages_run (w, &m.run);
        break;
    case MSG_READY:
    case MSG_GO:
        messages_seq (w, &m.seq);
        break;
    case MSG_RESULT:
        messages_result (w, &m.result);
        break;
    case MSG_ABORT:
        messages_abort (w, &m.abort);
        break;
    case MSG_COMPUTE:
        messages_compute (w, &m.compute);
        break;
    case MSG_COMPUTED:
        messages_computed (w, &m.computed);
        break;
    case MSG_BYE:
        messages_bye (w, &m.bye);
        break;
    }
}

static void read_wire (const char *data, size_t len)
{
    static struct wire w;
    struct side_note note;
    size_t used;

    if (len >= SIDE_NOTE)
        side_note_read ((const unsigned char *) data, &note);
    while (wire_take (&w, (const unsigned char *) data, len, &used) && used > 0) {
        read_message (&w);
        data += used;
        len -= used;
    }
}

static void take_item (void *context, const struct journal_item *item)
{
    struct results_pair pair = {0};

    (void) context;
    if (!item->failed)
        journal_item_take (item, &pair);
}

static void read_journal (const char *data, size_t len)
{
    static const char *const name[] = {"n1/0", "n1/1", "n2/0"};
    struct journal_run run = {"socket", name, 3, true, take_item, NULL, 0};
    struct journal *j = NULL;
    struct notes notes = {0};

    (void) data;
    (void) len;
    if (journal_open ("links.json", &run, &j, &notes, NULL) == ST_OK)
        journal_close (j, true);
    notes_free (&notes);
}

/* Statements of a what-if, each on a cluster that has all that they may change. */
static void read_changes (const char *data, size_t len)
{
    struct topology_cluster *c = NULL;
    char *text = strndup (data, len), **statement = NULL;
    struct error err = {""};
    int n = 0;

    if (topology_cluster_read ("rich.json", &c, NULL, &err) != ST_OK)
        _exit (1);
    if (topology_changes_split (text, &statement, &n, &err) == ST_OK) {
        for (int k = 0; k < n; k++) {
            struct topology_changed changed = {0};

            topology_change (c, statement[k], &changed, &err);
            topology_changed_release (&changed);
        }
        memory_free_texts (statement, n);
    }
    topology_cluster_destroy (c);
    free (text);
}

#define JOB " --seq 2048 --global-batch 16"
static const struct target targets[] = {
    {"cluster", "cluster", "in.json", &cli_cluster_show, "in.json", NULL},
    {"cluster-json", "cluster", "in.json", &cli_cluster_show, "in.json --json", NULL},
    {"cluster-line", "line", NULL, &cli_cluster_check, "--", NULL},
    {"cluster-time", "cluster", "in.json", &cli_time,
     "in.json llama-2-7b --tp 2 --pp 2" JOB, NULL},
    {"links", "links", "in.json", &cli_cluster_merge, "nodes.json in.json -o -", NULL},
    {"merge", "cluster", "in.json", &cli_cluster_merge,
     "in.json --gpu-type h100-sxm5-80g -o -", NULL},
    {"import", "import", "in.txt", &cli_cluster_import, "in.txt -o -", NULL},
    {"machine", "machine", "in.txt", &cli_topo, "--from in.txt -o -", NULL},
    {"layers", "layers", "in.txt", &cli_cluster_layers,
     "llama-2-7b in.txt --gpu h100-sxm5-80g --seq 2048 -o -", NULL},
    {"compare", "cluster", "in.json", &cli_compare, "nodes.json in.json --json", NULL},
    {"drain", "hosts", NULL, &cli_cluster_drain, "-o - nodes.json --", NULL},
    {"npy", "npy", "in.npy", &cli_cluster_show, "matrix.json --json", NULL},
    {"model", "model", "in.json", &cli_mem,
     "in.json --gpu h100-sxm5-80g --tp 2 --json" JOB, NULL},
    {"profile", "profile", "in.json", &cli_time,
     "nodes.json llama-2-7b --profile in.json --tp 2 --pp 2 --json" JOB, NULL},
    {"check", "plan", "in.json", &cli_check, "in.json", NULL},
    {"running", "running", "in.txt", &cli_check, "plan.json --running in.txt", NULL},
    {"nccl_log", "nccl", "in.log", &cli_check, "plan.json --nccl-log in.log --json",
     NULL},
    {"eval", "plan", "in.json", &cli_eval, "in.json --json", NULL},
    {"report", "plan", "in.json", &cli_report, "in.json -o -", NULL},
    {"emit", "plan", "in.json", &cli_emit, "in.json -d out", NULL},
    {"bind", "plan", "in.json", &cli_bind, "in.json --only n0,n1 -o -", NULL},
    {"from", "plan", "in.json", &cli_plan, "--from in.json --threads 1 -o -", NULL},
    {"validate", "runs", "in.csv", &cli_validate, "in.csv --per-row -", NULL},
    {"calibrate", "runs", "in.csv", &cli_calibrate, "in.csv -o -", NULL},
    {"job", "job", "in.txt", &cli_import_job,
     "in.txt --gpus 8 --seq 2048 --gpu h100 --no-plan --json", NULL},
    {"changes", "changes", "in.txt", NULL, NULL, read_changes},
    {"wire", "wire", "in", NULL, NULL, read_wire},
    {"journal", "journal", "links.json.part", NULL, NULL, read_journal}};

/* ---- reading it ---- */

/* A command with these arguments, and one more, as cli/main.c runs it. */
static enum status run (const struct cli_command *c, const char *arguments,
                        const char *more)
{
    char *argv[ARGUMENTS_MAX] = {"linkwise"}, *words = strdup (arguments), *rest = words;
    int argc = 1;
    void *input = calloc (1, c->input_size);
    struct notes notes = {0};
    struct error err = {""};
    enum status st;

    while ((argv[argc] = strsep (&rest, " ")))
        argc++;
    if (more)
        argv[argc++] = (char *) more;
    cli_parse (c, argc, argv, input);
    st = c->run (input, &notes, &err);
    cli_warn (argv[0], &notes);
    if (st != ST_OK)
        fprintf (stderr, "%s\n", err.text);
    free (input);
    free (words);
    return memory_take_lost () ? ST_NOMEM : st;
}

/* Not file_write: thousands of inputs a second need not reach a disk. */
static void put (const char *path, const char *data, size_t len)
{
    FILE *f = fopen (path, "w");

    if (!f || fwrite (data, 1, len, f) != len || fclose (f) != 0) {
        perror (path);
        _exit (1);
    }
}

static void read_input (const struct target *t, const char *data, size_t len)
{
    char *text = strndup (data, len); /* an argument ends at a NUL */

    if (t->file)
        put (t->file, data, len);
    if (t->read)
        t->read (data, len);
    else
        run (t->command, t->arguments, t->file ? NULL : text);
    free (text);
}

/* What commands need beside the input, in the folder where it lies. */
static void make_others (void)
{
    static const char matrix[] =
        "{\"version\": 1, \"nodes\": [{\"name\": \"a\", \"gpus\": 1, \"gpu_type\": "
        "\"h100-sxm5-80g\"}, {\"name\": \"b\", \"gpus\": 1, \"gpu_type\": "
        "\"h100-sxm5-80g\"}], "
        "\"links\": {\"gpu\": {\"bandwidth_gb_per_s\": {\"npy\": \"in.npy\"}, "
        "\"latency_us\": "
        "5}}}";

    static const char rich[] =
        "{\"version\": 1, \"nodes\": [{\"name\": \"a\", \"gpus\": 2, \"gpu_type\": "
        "\"t4\"}, {\"name\": \"b\", \"gpus\": 2, \"gpu_type\": \"t4\"}, {\"name\": "
        "\"c\", \"gpus\": 2, \"gpu_type\": \"t4\"}], \"links\": {\"intra\": "
        "{\"bandwidth_gb_per_s\": [[null, 9], [3, null]], \"latency_us\": 1}, \"inter\": "
        "{\"bandwidth_gb_per_s\": {\"by_node\": [5, 6, null]}, \"latency_us\": 2, "
        "\"node_gb_per_s\": [7, 8, 9], \"node_pair_gb_per_s\": {\"by_node\": [5, null, "
        "6]}}}}";

    put ("rich.json", rich, sizeof rich - 1);
    put ("matrix.json", matrix, sizeof matrix - 1);
    if (run (&cli_cluster_synth,
             "calm --nodes 2 --gpus 2 --gpu-type h100-sxm5-80g --seed 1 -o nodes.json",
             NULL) != ST_OK ||
        run (&cli_plan,
             "nodes.json llama-3.2-1b --tp 2 --pp 2 --threads 1 -o plan.json" JOB,
             NULL) != ST_OK)
        _exit (1);
}

static const struct target *find (const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (name && strcmp (targets[i].name, name) == 0)
            return &targets[i];
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        fprintf (stderr, "%s %s\n", targets[i].name, targets[i].kind);
    _exit (2);
}

#ifdef FUZZ

#include "tests/fuzz/mutate.h"

/* TARGET in the environment says which; the current folder is written to. */
static const struct target *target;

int LLVMFuzzerInitialize (int *argc, char ***argv);
int LLVMFuzzerInitialize (int *argc, char ***argv)
{
    (void) argc;
    (void) argv;
    target = find (getenv ("TARGET"));
    make_others ();
    return 0;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput (const uint8_t *data, size_t len)
{
    read_input (target, (const char *) data, len);
    return 0;
}

#else

static int remove_one (const char *path, const struct stat *sb, int kind, struct FTW *at)
{
    (void) sb;
    (void) kind;
    (void) at;
    return remove (path);
}

/* Run what is kept for a target.  @return how many inputs */
static int run_kept (const struct target *t, const char *seeds, FILE *tap)
{
    char path[2 * PATH_MAX];
    struct dirent **entry;
    int n = 0, m;

    snprintf (path, sizeof path, "%s/%s", seeds, t->kind);
    m = scandir (path, &entry, NULL, alphasort);
    for (int i = 0; i < m; i++) {
        char *data;
        size_t len;

        snprintf (path, sizeof path, "%s/%s/%s", seeds, t->kind, entry[i]->d_name);
        if (file_read_bytes (path, &data, &len, NULL) == ST_OK) {
            fprintf (tap, "# %s: %s/%s\n", t->name, t->kind, entry[i]->d_name);
            fflush (tap);
            read_input (t, data, len);
            free (data);
            n++;
        }
        free (entry[i]);
    }
    if (m >= 0)
        free (entry);
    return n;
}

/* Without arguments a TAP test of all that is kept, to be run from the root; with a target and a
 * file that input alone, with all that it says. */
int main (int argc, char **argv)
{
    char folder[] = "/tmp/linkwise-readers.XXXXXX", seeds[PATH_MAX], *data = NULL;
    int n = sizeof targets / sizeof *targets, failed = 0;
    FILE *tap = fdopen (dup (STDOUT_FILENO), "w");
    const struct target *one = argc > 2 ? find (argv[1]) : NULL;
    size_t len;

    if (!tap || !realpath ("tests/fuzz/seeds", seeds) ||
        (one && file_read_bytes (argv[2], &data, &len, NULL) != ST_OK) ||
        !mkdtemp (folder) || chdir (folder) != 0) {
        perror (argv[0]);
        return 1;
    }
    if (!one &&
        (!freopen ("/dev/null", "w", stdout) || !freopen ("/dev/null", "w", stderr)))
        return 1;
    make_others ();
    if (one)
        read_input (one, data, len);
    free (data);
    for (int i = 0; i < n && !one; i++) {
        int inputs = run_kept (&targets[i], seeds, tap);

        failed += inputs == 0;
        fprintf (tap, "%sok %d - %s: %d inputs\n", inputs > 0 ? "" : "not ", i + 1,
                 targets[i].name, inputs);
    }
    if (!one)
        fprintf (tap, "1..%d\n", n);
    fclose (tap);
    nftw (folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return failed > 0;
}

#endif
