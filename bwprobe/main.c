/* The program: options, the rank, and on rank 0 the coordinator beside it. */
#include <argp.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/progress.h"
#include "base/text.h"
#include "base/usage.h"
#include "base/version.h"
#include "bwprobe/coordinator.h"
#include "bwprobe/cuda.h"
#include "bwprobe/station.h"
#include "bwprobe/start.h"

const char *argp_program_version = "bwprobe " LINKWISE_VERSION;

/* A rank whose rank 0 does not say goodbye after a signal leaves by itself. */
enum { LEAVE_S = 15 };

/* Usual budgets. */
enum { BUDGET_S = 600, PLAN_BUDGET_S = 90 };

struct options {
    struct coordinator_settings set;
    const char *interface;
    char own[NET_ADDRESS];    /* what to bind to; "": nobody said anything */
    enum status no_interface; /* why `own` could not be found: all ranks are told */
    struct error why;
    double passes, port, seed, max_mib; /* the settings' whole numbers as they are read */
    const char *color;
};

#define AT(member) offsetof (struct options, member)

/* Options by name, or letter; where the value goes, by its kind. */
static const struct probe_option {
    const char *name;
    int letter;
    const char *argument, *help;
    enum { FLAG, TEXT, WORD, NUMBER, WHOLE } kind; /* WORD: one of argument's */
    size_t at;                                     /* a bool, a text or a double */
    double lo, hi;
} option_table[] = {
    {"output", 'o', "LINKS", "the links file (links.json); - is standard output", TEXT,
     AT (set.output), 0, 0},
    {"transport", 0, "nccl|socket|auto",
     "nccl: GPU memory; socket: host memory over TCP; auto (default): nccl if every rank "
     "has a GPU, NCCL and CUDA",
     WORD, AT (set.transport), 0, 0},
    {"passes", 0, "N", "measure each link this many times (3)", WHOLE, AT (passes), 1,
     1000},
    {"budget", 0, "S",
     "seconds for the whole run (600; 90 with --plan); if too short for all pairs, those "
     "that plans use first are measured",
     NUMBER, AT (set.budget_s), 1, 1e6},
    {"plan", 0, "PLAN",
     "measure this plan's groups instead of all pairs, all groups of a kind at once, and "
     "compare with what it was priced with: name the links, nodes and GPUs that fall "
     "short.  Started as the job itself, rank by rank",
     TEXT, AT (set.plan), 0, 0},
    {"gemm", 0, NULL, "also measure each GPU's rate of matrix products and copies", FLAG,
     AT (set.gemm), 0, 0},
    {"compute", 0, NULL,
     "more than --gemm, under a minute: products in every precision and several shapes, "
     "copies, launches, and attention where python3 has PyTorch; `linkwise cluster "
     "merge` makes constants of the GPU types of them",
     FLAG, AT (set.compute), 0, 0},
    {"resume", 0, NULL, "continue the unfinished run in LINKS.part", FLAG,
     AT (set.resume), 0, 0},
    {"dry-run", 0, NULL, "print the rounds and the expected time", FLAG, AT (set.dry_run),
     0, 0},
    {"interface", 0, "NAME|NETWORK",
     "use only this network interface, also for NCCL's sockets: ib0, 10.0.0.0/8 or an "
     "address (NCCL_SOCKET_IFNAME)",
     TEXT, AT (interface), 0, 0},
    {"port", 0, "N", "port where rank 0 listens, without MPI (MASTER_PORT)", WHOLE,
     AT (port), 1, 65535},
    {"timeout", 0, "S",
     "a pair fails after S seconds without progress (socket 3, nccl 10)", NUMBER,
     AT (set.timeout_s), 0.1, 600},
    {"start-timeout", 0, "S",
     "leave out ranks that do not connect, or then do not open their transport, within S "
     "seconds (60); twice as long a silence of rank 0 ends the others",
     NUMBER, AT (set.start_s), 0.1, 3600},
    {"measure", 0, "S", "seconds for each direction of a pair (socket 0.1, nccl 0.02)",
     NUMBER, AT (set.measure_s), 0.001, 60},
    {"max-size", 0, "MIB", "largest message, MiB (socket 64, nccl 256)", NUMBER,
     AT (max_mib), 1, 65536},
    {"pause", 0, "S", "seconds between passes (2)", NUMBER, AT (set.pause_s), 0, 1e5},
    {"seed", 0, "N", "seed for the order of the rounds (the clock)", WHOLE, AT (seed), 0,
     1e15},
    {"color", 0, "auto|always|never", "colours in the heat map (auto)", WORD, AT (color),
     0, 0},
};
enum { OPTIONS = sizeof option_table / sizeof *option_table };

static double number_of (const struct probe_option *line, const char *arg,
                         struct argp_state *state)
{
    double x = NAN;

    if (!text_number (arg, &x) || x < line->lo || x > line->hi)
        usage_error (state, "--%s: expected a number from %g to %g, found \"%s\"",
                     line->name, line->lo, line->hi, arg);
    if (line->kind == WHOLE && x != floor (x))
        usage_error (state, "--%s: expected a whole number, found \"%s\"", line->name,
                     arg);
    return x;
}

static void take (const struct probe_option *line, const char *arg,
                  struct argp_state *state)
{
    void *value = (char *) state->input + line->at;

    if (line->kind == WORD && usage_word (line->argument, arg) < 0)
        usage_error (state, "--%s: unknown word \"%s\"", line->name, arg);
    if (line->kind == FLAG)
        *(bool *) value = true;
    else if (line->kind == TEXT || line->kind == WORD)
        *(const char **) value = arg;
    else
        *(double *) value = number_of (line, arg, state);
}

static void check (struct options *o, struct argp_state *state)
{
    struct coordinator_settings *s = &o->set;

    if (!s->output[0])
        usage_error (state, "--output: expected a file's name");
    if (s->resume && strcmp (s->output, "-") == 0)
        usage_error (state, "--resume needs --output FILE");
    if (s->resume && s->plan)
        usage_error (state, "--plan is measured anew: expected no --resume");
    if (s->budget_s == 0)
        s->budget_s = s->plan ? PLAN_BUDGET_S : BUDGET_S;
    s->passes = (int) o->passes;
    s->seed = (uint64_t) o->seed;
    s->max_bytes = (uint64_t) o->max_mib << 20;
}

/* Options without a letter have numbers above all characters. */
static int key_of (int i)
{
    return option_table[i].letter ? option_table[i].letter : 256 + i;
}

static error_t parse_option (int key, char *arg, struct argp_state *state)
{
    if (key == ARGP_KEY_ARG)
        usage_error (state, "unexpected argument \"%s\"", arg);
    if (key == ARGP_KEY_END)
        check (state->input, state);
    for (int i = 0; i < OPTIONS; i++)
        if (key == key_of (i)) {
            take (&option_table[i], arg, state);
            return 0;
        }
    return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}

static struct options read_options (int argc, char **argv)
{
    struct argp_option all[OPTIONS + 1] = {{0}};
    const struct argp argp = {
        all,
        parse_option,
        NULL,
        "  mpirun --enable-recovery -np 16 --hostfile hosts bwprobe -o "
        "links.json\n\nMeasure every directed link between the ranks of this job, one "
        "rank per GPU (or per host), and write a links file for linkwise.  Defaults are "
        "in parentheses.\vIt also runs under `srun --mpi=pmix`, under plain srun, and "
        "with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set.  With --gemm or "
        "--compute it needs no launcher for this machine's first GPU alone.  Exit codes: "
        "0 all pairs within the budget were measured, 1 something failed (the links file "
        "says what), 2 bad options, 3 nothing to measure, 4 a plan's groups fall short.",
        NULL,
        NULL,
        NULL};
    struct options o = {
        .set = {.transport = "auto", .output = "links.json", .pause_s = 2, .start_s = 60},
        .passes = 3,
        .seed = (double) time (NULL),
        .color = "auto"};
    const char *no_color = getenv ("NO_COLOR");

    for (int i = 0; i < OPTIONS; i++)
        all[i] = (struct argp_option){.name = option_table[i].name,
                                      .key = key_of (i),
                                      .arg = option_table[i].argument,
                                      .doc = option_table[i].help};
    argp_err_exit_status = 2;
    argp_parse (&argp, argc, argv, 0, NULL, &o);
    o.set.color = strcmp (o.color, "always") == 0 ||
                  (strcmp (o.color, "auto") == 0 && isatty (STDOUT_FILENO) &&
                   !(no_color && no_color[0]));
    return o;
}

/* ---- signals ---- */

static struct coordinator *to_interrupt; /* rank 0's, for the handler */

/* Rank 0 ends the run in order; the others wait for its goodbye, but not for ever. */
static void on_signal (int number)
{
    (void) number;
    if (to_interrupt)
        coordinator_interrupt (to_interrupt);
    alarm (LEAVE_S);
}

static void handle_signals (void)
{
    struct sigaction leave = {.sa_handler = on_signal, .sa_flags = SA_RESTART},
                     ignore = {.sa_handler = SIG_IGN};

    sigaction (SIGINT, &leave, NULL);
    sigaction (SIGTERM, &leave, NULL);
    sigaction (SIGPIPE, &ignore, NULL);
}

/* ---- rank 0's second half ---- */

struct second_half {
    pthread_t thread;
    struct coordinator *coordinator;
    struct coordinator_outcome outcome;
};

static void *run_coordinator (void *arg)
{
    struct second_half *h = arg;

    h->outcome = coordinator_run (h->coordinator);
    return NULL;
}

static enum status begin_rank0 (const struct options *o, const struct start *s,
                                struct start_meeting *m, struct second_half *h,
                                struct error *err)
{
    struct coordinator_settings set = o->set;
    enum status st = o->no_interface;

    /* Without MPI rank 0 listens where the others will look for it. */
    m->place = s->meet;
    if (st != ST_OK)
        *err = o->why;
    else if (s->mpi)
        st = net_own_address (o->own[0] ? o->own : NULL, m->place.address, NULL, err);
    m->token = s->token;
    set.started_by = s->by;
    set.mpi_outlives = s->outlives;
    if (st == ST_OK && s->mpi)
        st = net_token_random (&m->token, err);
    THEN (st, coordinator_create (&set, (int) s->size, &m->place, &m->token,
                                  &h->coordinator, err));
    m->ok = st == ST_OK;
    return st;
}

/* ---- every rank ---- */

static enum status be_a_rank (const struct options *o, const struct start *start,
                              const struct start_meeting *m, struct station *s,
                              struct error *err)
{
    char own[NET_ADDRESS]; /* where this rank's sockets are bound */
    double deadline = clock_s () + o->set.start_s;
    struct msg_hello hello = {.token = m->token,
                              .version = MESSAGES_VERSION,
                              .rank = start->rank,
                              .size = start->size};
    struct error why = {""};

    s->rank = start->rank;
    s->patience_s = o->set.start_s;
    if (o->no_interface != ST_OK) {
        *err = o->why;
        return o->no_interface;
    }
    memcpy (own, o->own[0] ? o->own : m->place.address, NET_ADDRESS);
    if (!o->own[0] && start->rank > 0)
        TRY (net_address_towards (&m->place, own, err));
    TRY (station_open_door (s, own, &m->token, err));
    /* Looking for GPUs may take seconds, and rank 0 hears only who speaks at once. */
    hello.door = s->door.place;
    hello.gpus = (uint32_t) cuda_gpus (NULL);
    hello.nccl = cuda_can_nccl (&why) == ST_OK;
    snprintf (hello.no_nccl, sizeof hello.no_nccl, "%.*s", MESSAGES_REASON - 1, why.text);
    if (gethostname (hello.node, sizeof hello.node - 1) != 0 || !hello.node[0])
        snprintf (hello.node, sizeof hello.node, "host-%s", hello.door.address);
    /* Without MPI the way to rank 0 is the launcher's choice, not --interface's. */
    TRY (station_join (s, &m->place, start->mpi ? own : NULL, &hello, deadline, err));
    return orders_work (s, err);
}

static int complain (const struct start *s, enum status st, const struct error *err)
{
    if (s->size > 0)
        fprintf (stderr, "bwprobe: rank %u: %s\n", s->rank, err->text);
    else
        fprintf (stderr, "bwprobe: %s\n", err->text);
    return status_exit_code (st);
}

/* Help that did not reach its reader is no success; argp prints it and exits. */
static bool has_begun;

static void flush_help (void)
{
    if (has_begun || (fflush (stdout) == 0 && !ferror (stdout)))
        return;
    fputs ("bwprobe: standard output: write error\n", stderr);
    _exit (1);
}

/* After a fault MPI_Finalize would wait for those who are lost. */
static void leave (const struct start *s, int code, bool faults)
{
    if (!s->mpi)
        exit (code);
    if (!faults)
        start_mpi_finish ();
    fflush (NULL);
    _exit (code);
}

int main (int argc, char **argv)
{
    atexit (flush_help);

    struct options o = read_options (argc, argv);
    struct station *station = calloc (1, sizeof *station);
    struct start start = {.size = 0};
    struct start_meeting meeting = {.ok = 1};
    struct second_half half = {.coordinator = NULL};
    struct error err = {""};
    enum status st = station ? ST_OK : err_nomem (&err);
    bool thread = false, faults = true;
    int code = 1;

    has_begun = true;
    THEN (st, start_find (&argc, &argv, (uint32_t) o.port,
                          coordinator_computes (&o.set) && !o.set.plan, &start, &err));
    if (st != ST_OK) {
        free (station);
        return complain (&start, st, &err);
    }
    o.no_interface = net_settle (o.interface, o.own, &o.why);
    station->control = station->door.fd = -1;
    meeting.place = start.meet;
    meeting.token = start.token;
    if (start.rank == 0 &&
        (st = begin_rank0 (&o, &start, &meeting, &half, &err)) != ST_OK)
        code = complain (&start, st, &err);
    to_interrupt = half.coordinator;
    handle_signals ();
    if (start_share (&start, &meeting, &err) != ST_OK)
        st = ST_IO;
    else if (half.coordinator) {
        thread = pthread_create (&half.thread, NULL, run_coordinator, &half) == 0;
        st = thread ? ST_OK : ST_NOMEM;
    }
    if (st == ST_OK) {
        st = be_a_rank (&o, &start, &meeting, station, &err);
        code = st == ST_OK ? (int) station->last_word.exit_code
                           : complain (&start, st, &err);
        faults = st != ST_OK || station->last_word.faults;
    }
    station_close (station);
    free (station);
    if (thread) {
        pthread_join (half.thread, NULL);
        code = half.outcome.exit_code;
        faults = half.outcome.faults;
    }
    /* From here on a signal has nobody to tell. */
    signal (SIGINT, SIG_DFL);
    signal (SIGTERM, SIG_DFL);
    to_interrupt = NULL;
    coordinator_destroy (half.coordinator);
    leave (&start, code, faults);
}
