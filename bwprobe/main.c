/* The program: options, the rank, and on rank 0 the coordinator beside it. */
#include <argp.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/progress.h"
#include "base/usage.h"
#include "base/version.h"
#include "bwprobe/coordinator.h"
#include "bwprobe/cuda.h"
#include "bwprobe/interface.h"
#include "bwprobe/orders.h"
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
    uint32_t port;
    const char *color;
};

enum {
    OPT_TRANSPORT = 256,
    OPT_PASSES,
    OPT_BUDGET,
    OPT_PLAN,
    OPT_PAUSE,
    OPT_MEASURE,
    OPT_MAX_SIZE,
    OPT_TIMEOUT,
    OPT_START,
    OPT_INTERFACE,
    OPT_PORT,
    OPT_GEMM,
    OPT_COMPUTE,
    OPT_RESUME,
    OPT_DRY_RUN,
    OPT_SEED,
    OPT_COLOR
};

static const struct argp_option option_table[] = {
    {"output", 'o', "LINKS", 0, "the links file (links.json); - is standard output", 0},
    {"transport", OPT_TRANSPORT, "nccl|socket|auto", 0,
     "nccl: GPU memory; socket: host memory over TCP; auto (default): nccl if every rank "
     "has a GPU, NCCL and CUDA",
     0},
    {"passes", OPT_PASSES, "N", 0, "measure each link this many times (3)", 0},
    {"budget", OPT_BUDGET, "S", 0,
     "seconds for the whole run (600; 90 with --plan); if too short for all pairs, those "
     "that plans use first are measured",
     0},
    {"plan", OPT_PLAN, "PLAN", 0,
     "measure this plan's groups instead of all pairs, all groups of a kind at once, and "
     "compare with what it was priced with: name the links, nodes and GPUs that fall "
     "short.  Started as the job itself, rank by rank",
     0},
    {"gemm", OPT_GEMM, NULL, 0,
     "also measure each GPU's rate of matrix products and "
     "copies",
     0},
    {"compute", OPT_COMPUTE, NULL, 0,
     "more than --gemm, under a minute: products in every precision and several shapes, "
     "copies, launches, and attention where python3 has PyTorch; `linkwise cluster "
     "merge` makes constants of the GPU types of them",
     0},
    {"resume", OPT_RESUME, NULL, 0, "continue the unfinished run in LINKS.part", 0},
    {"dry-run", OPT_DRY_RUN, NULL, 0, "print the rounds and the expected time", 0},
    {"interface", OPT_INTERFACE, "NAME|NETWORK", 0,
     "use only this network interface, also for NCCL's sockets: ib0, 10.0.0.0/8 or an "
     "address (NCCL_SOCKET_IFNAME)",
     0},
    {"port", OPT_PORT, "N", 0, "port where rank 0 listens, without MPI (MASTER_PORT)", 0},
    {"timeout", OPT_TIMEOUT, "S", 0,
     "a pair fails after S seconds without progress (socket 3, nccl 10)", 0},
    {"start-timeout", OPT_START, "S", 0,
     "leave out ranks that do not connect, or then do not open their transport, within S "
     "seconds (60); twice as long a silence of rank 0 ends the others",
     0},
    {"measure", OPT_MEASURE, "S", 0,
     "seconds for each direction of a pair (socket 0.1, nccl 0.02)", 0},
    {"max-size", OPT_MAX_SIZE, "MIB", 0, "largest message, MiB (socket 64, nccl 256)", 0},
    {"pause", OPT_PAUSE, "S", 0, "seconds between passes (2)", 0},
    {"seed", OPT_SEED, "N", 0, "seed for the order of the rounds (the clock)", 0},
    {"color", OPT_COLOR, "auto|always|never", 0, "colours in the heat map (auto)", 0},
    {0}};

static double number_option (const char *arg, const char *name, double lo, double hi,
                             struct argp_state *state)
{
    char *end;
    double x = strtod (arg, &end);

    if (end == arg || *end || !(x >= lo && x <= hi))
        usage_error (state, "--%s: expected a number from %g to %g, found \"%s\"", name,
                     lo, hi, arg);
    return x;
}

static double whole_option (const char *arg, const char *name, double lo, double hi,
                            struct argp_state *state)
{
    double x = number_option (arg, name, lo, hi, state);

    if (x != floor (x))
        usage_error (state, "--%s: expected a whole number, found \"%s\"", name, arg);
    return x;
}

static void word_option (const char *arg, const char *name, const char *const *words,
                         struct argp_state *state)
{
    for (int i = 0; words[i]; i++)
        if (strcmp (arg, words[i]) == 0)
            return;
    usage_error (state, "--%s: unknown word \"%s\"", name, arg);
}

static error_t parse_option (int key, char *arg, struct argp_state *state)
{
    static const char *const transports[] = {"nccl", "socket", "auto", NULL},
                             *const colors[] = {"auto", "always", "never", NULL};
    struct options *o = state->input;
    struct coordinator_settings *s = &o->set;

    switch (key) {
    case 'o':
        s->output = arg;
        if (!arg[0])
            usage_error (state, "--output: expected a file's name");
        break;
    case OPT_TRANSPORT:
        word_option (arg, "transport", transports, state);
        s->transport = arg;
        break;
    case OPT_PASSES:
        s->passes = (int) whole_option (arg, "passes", 1, 1000, state);
        break;
    case OPT_BUDGET:
        s->budget_s = number_option (arg, "budget", 1, 1e6, state);
        break;
    case OPT_PLAN:
        s->plan = arg;
        break;
    case OPT_PAUSE:
        s->pause_s = number_option (arg, "pause", 0, 1e5, state);
        break;
    case OPT_MEASURE:
        s->measure_s = number_option (arg, "measure", 0.001, 60, state);
        break;
    case OPT_MAX_SIZE:
        s->max_bytes = (uint64_t) (number_option (arg, "max-size", 1, 65536, state))
                       << 20;
        break;
    case OPT_TIMEOUT:
        s->timeout_s = number_option (arg, "timeout", 0.1, 600, state);
        break;
    case OPT_START:
        s->start_s = number_option (arg, "start-timeout", 0.1, 3600, state);
        break;
    case OPT_INTERFACE:
        o->interface = arg;
        break;
    case OPT_PORT:
        o->port = (uint32_t) whole_option (arg, "port", 1, 65535, state);
        break;
    case OPT_GEMM:
        s->gemm = true;
        break;
    case OPT_COMPUTE:
        s->compute = true;
        break;
    case OPT_RESUME:
        s->resume = true;
        break;
    case OPT_DRY_RUN:
        s->dry_run = true;
        break;
    case OPT_SEED:
        s->seed = (uint64_t) whole_option (arg, "seed", 0, 1e15, state);
        break;
    case OPT_COLOR:
        word_option (arg, "color", colors, state);
        o->color = arg;
        break;
    case ARGP_KEY_ARG:
        usage_error (state, "unexpected argument \"%s\"", arg);
        break;
    case ARGP_KEY_END:
        if (s->resume && strcmp (s->output, "-") == 0)
            usage_error (state, "--resume needs --output FILE");
        if (s->resume && s->plan)
            usage_error (state, "--plan is measured anew: expected no --resume");
        if (s->budget_s == 0)
            s->budget_s = s->plan ? PLAN_BUDGET_S : BUDGET_S;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static struct options read_options (int argc, char **argv)
{
    static const struct argp argp = {
        option_table,
        parse_option,
        NULL,
        "  mpirun --enable-recovery -np 16 --hostfile hosts bwprobe -o "
        "links.json\n\nMeasure every directed link between the ranks of this job, one "
        "rank per GPU (or per host), and write a links file for linkwise.  Defaults are "
        "in parentheses.\vIt also runs under `srun --mpi=pmix`, under plain srun, and "
        "with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set.  Exit codes: 0 all "
        "pairs within the budget were measured, 1 something failed (the links file says "
        "what), 2 bad options, 3 nothing to measure, 4 a plan's groups fall short.",
        NULL,
        NULL,
        NULL};
    struct options o = {.set = {.transport = "auto",
                                .output = "links.json",
                                .passes = 3,
                                .pause_s = 2,
                                .start_s = 60,
                                .seed = (uint64_t) time (NULL)},
                        .color = "auto"};
    const char *no_color = getenv ("NO_COLOR");

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

/* Where rank 0 listens: without MPI, where the others will look for it. */
static enum status rank0_place (const struct options *o, const struct start *s,
                                struct net_place *place, struct error *err)
{
    *place = s->meet;
    if (o->no_interface != ST_OK) {
        *err = o->why;
        return o->no_interface;
    }
    return s->mpi ? net_own_address (o->own[0] ? o->own : NULL, place->address, err)
                  : ST_OK;
}

static enum status begin_rank0 (const struct options *o, const struct start *s,
                                struct start_meeting *m, struct second_half *h,
                                struct error *err)
{
    struct coordinator_settings set = o->set;
    enum status st = rank0_place (o, s, &m->place, err);

    m->token = s->token;
    set.started_by = s->by;
    set.mpi_outlives = s->outlives;
    if (st == ST_OK && s->mpi)
        st = net_token_random (&m->token, err);
    if (st == ST_OK)
        st = coordinator_create (&set, (int) s->size, &m->place, &m->token,
                                 &h->coordinator, err);
    m->ok = st == ST_OK;
    return st;
}

/* ---- every rank ---- */

static void describe (const struct station *s, const struct start_meeting *m,
                      struct msg_hello *hello)
{
    struct error why = {""};

    *hello = (struct msg_hello){.token = m->token,
                                .version = MESSAGES_VERSION,
                                .rank = s->rank,
                                .size = s->size,
                                .door = s->door.place,
                                .gpus = (uint32_t) cuda_gpus (NULL)};
    if (gethostname (hello->node, sizeof hello->node - 1) != 0 || !hello->node[0])
        snprintf (hello->node, sizeof hello->node, "host-%s", s->door.place.address);
    hello->nccl = cuda_can_nccl (&why) == ST_OK;
    snprintf (hello->no_nccl, sizeof hello->no_nccl, "%.*s", MESSAGES_REASON - 1,
              why.text);
}

/* Where this rank's sockets are bound. */
static enum status own_address (const struct options *o, const struct start *start,
                                const struct start_meeting *m, char own[NET_ADDRESS],
                                struct error *err)
{
    if (o->no_interface != ST_OK) {
        *err = o->why;
        return o->no_interface;
    }
    if (!o->own[0] && start->rank > 0)
        return net_address_towards (&m->place, own, err);
    memcpy (own, o->own[0] ? o->own : m->place.address, NET_ADDRESS);
    return ST_OK;
}

static enum status be_a_rank (const struct options *o, const struct start *start,
                              const struct start_meeting *m, struct station *s,
                              struct error *err)
{
    char own[NET_ADDRESS];
    double deadline = clock_s () + o->set.start_s;
    struct msg_hello hello;

    s->rank = start->rank;
    s->size = start->size;
    s->patience_s = o->set.start_s;
    TRY (own_address (o, start, m, own, err));
    TRY (station_open_door (s, own, &m->token, err));
    /* Looking for GPUs may take seconds, and rank 0 hears only who speaks at once. */
    describe (s, m, &hello);
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
    if (st == ST_OK)
        st = start_find (&argc, &argv, o.port, &start, &err);
    if (st != ST_OK) {
        free (station);
        return complain (&start, st, &err);
    }
    o.no_interface = interface_settle (o.interface, o.own, &o.why);
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
