#include "bwprobe/start.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "topology/topology.h"

enum { RANKS_MAX = 1000000, PORT_FIRST = 15000, PORTS = 15000 };

/* ---- variables ---- */

/* A whole number from a variable.  @return ST_OK with *set false when it is not there */
static enum status number (char *(*get) (const char *), const char *name, uint32_t max,
                           uint32_t *out, bool *set, struct error *err)
{
    const char *text = get (name);
    long x;

    *set = text && text[0];
    if (!*set)
        return ST_OK;
    if (text[0] < '0' || text[0] > '9' || !text_whole (text, 0, max, &x))
        return err_set (err, ST_USAGE,
                        "%s: expected a whole number up to %u, found \"%.60s\"", name,
                        max, text);
    *out = (uint32_t) x;
    return ST_OK;
}

/* A launcher's words for rank, size and where rank 0 is. */
struct dialect {
    const char *by, *rank, *size, *host;
};

static const struct dialect dialects[] = {
    {"RANK and WORLD_SIZE", "RANK", "WORLD_SIZE", "MASTER_ADDR"},
    {"Open MPI's variables and MASTER_ADDR", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE", "MASTER_ADDR"},
    {"MPICH's variables and MASTER_ADDR", "PMI_RANK", "PMI_SIZE", "MASTER_ADDR"},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NODELIST"}};

static bool is_slurm (const struct dialect *d)
{
    return strcmp (d->by, "Slurm") == 0;
}

/* The dialect whose three words are all there, or NULL. */
static const struct dialect *find_dialect (char *(*get) (const char *) )
{
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        const struct dialect *d = &dialects[i];

        if (get (d->rank) && get (d->size) && get (d->host))
            return d;
    }
    return NULL;
}

/* Job and step number, or the meeting point: what other jobs do not share. */
static void job_name (char *(*get) (const char *), const struct dialect *d,
                      struct text *out)
{
    static const char *const slurm[] = {"SLURM_JOB_ID", "SLURM_STEP_ID",
                                        "SLURM_CLUSTER_NAME"};
    static const char *const other[] = {"MASTER_ADDR", "MASTER_PORT",
                                        "TORCHELASTIC_RUN_ID"};
    const char *const *name = is_slurm (d) ? slurm : other;

    text_add (out, "bwprobe");
    for (int i = 0; i < 3; i++)
        text_add (out, " %s", get (name[i]) ? get (name[i]) : "");
}

/* Many systems give their own name an address such as 127.0.1.1, which is no use to others:
 * who gets it is on rank 0's host, and takes the address that others see. */
static enum status resolve (const char *host, char *address, struct error *err)
{
    enum status st = net_resolve (host, address, err);

    if (st == ST_OK && strncmp (address, "127.", 4) == 0 &&
        strcmp (address, "127.0.0.1") != 0)
        st = net_own_address (NULL, address, NULL, err);
    return st;
}

/* Rank 0's host: with Slurm the first of the step's list. */
static enum status find_host (const char *text, bool slurm, char *address,
                              struct error *err)
{
    char **names;
    int n;

    if (!slurm)
        return resolve (text, address, err);
    TRY (topology_hostlist_expand (text, &names, &n, err));

    enum status st = n > 0 ? resolve (names[0], address, err)
                           : err_set (err, ST_USAGE, "Slurm's list of nodes is empty");

    topology_hostlist_free (names);
    return st;
}

static enum status find_port (char *(*get) (const char *), const struct net_token *job,
                              uint32_t asked, uint32_t *port, struct error *err)
{
    const char *store = get ("TORCHELASTIC_USE_AGENT_STORE");
    bool set;

    *port = asked;
    if (asked > 0)
        return ST_OK;
    TRY (number (get, "MASTER_PORT", 65534, port, &set, err));
    if (set && store && strcmp (store, "True") == 0)
        ++*port;
    else if (!set)
        *port = PORT_FIRST + (job->byte[0] | (uint32_t) job->byte[1] << 8) % PORTS;
    return ST_OK;
}

/* The job's secret: the user's, or the key that Open MPI's mpirun draws for each job.  Where others
 * can reach rank 0, there is no doing without; `token` stays as it is on the loopback. */
static enum status find_secret (char *(*get) (const char *), const struct start *s,
                                struct net_token *token, struct error *err)
{
    const char *given = get ("BWPROBE_TOKEN");
    char made[2 * NET_TOKEN + 1];
    struct net_token random;

    if (!given || !given[0])
        given = get ("OMPI_MCA_orte_precondition_transports");
    if (given && given[0]) {
        net_token_of_text (given, token);
        return ST_OK;
    }
    if (strcmp (s->meet.address, "127.0.0.1") == 0 ||
        strcmp (s->meet.address, "::1") == 0)
        return ST_OK;
    if (s->rank > 0)
        return err_set (err, ST_USAGE, "BWPROBE_TOKEN is not set: rank 0 says more");
    TRY (net_token_random (&random, err));
    for (int i = 0; i < NET_TOKEN; i++)
        snprintf (made + 2 * i, 3, "%02x", random.byte[i]);
    return err_set (err, ST_USAGE,
                    "without MPI the ranks need a secret, since others can reach %s too: "
                    "give all of them the same BWPROBE_TOKEN, for example "
                    "export BWPROBE_TOKEN=%s",
                    s->meet.address, made);
}

enum status start_from_variables (char *(*get) (const char *), uint32_t port,
                                  struct start *s, struct error *err)
{
    const struct dialect *d = find_dialect (get);
    struct start found = {.mpi = false};
    struct text job = {0};
    bool set;
    enum status st;

    if (!d)
        return err_set (err, ST_USAGE,
                        "this process is not a rank of a job: start it with mpirun, with "
                        "srun, or with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set "
                        "(--compute measures one GPU without)");
    TRY (number (get, d->size, RANKS_MAX, &found.size, &set, err));
    TRY (number (get, d->rank, RANKS_MAX, &found.rank, &set, err));
    if (found.rank >= found.size)
        return err_set (err, ST_USAGE, "%s is %u, but %s is %u", d->rank, found.rank,
                        d->size, found.size);
    job_name (get, d, &job);
    net_token_of_text (text_str (&job), &found.token);
    st = find_port (get, &found.token, port, &found.meet.port, err);
    text_free (&job);
    THEN (st, find_host (get (d->host), is_slurm (d), found.meet.address, err));
    THEN (st, find_secret (get, &found, &found.token, err));
    snprintf (found.by, sizeof found.by, "%s", d->by);
    if (st == ST_OK)
        *s = found;
    return st;
}

/* ---- MPI ----
 *
 * Loaded at run time: one program starts under Open MPI's mpirun and MPICH's mpiexec, and was built
 * without either.  Where a launcher is, so is its library.  What is declared here is the binary
 * interface of Open MPI 4 and 5, and of MPICH 3.1 to 4 and all that keep to its ABI (Intel MPI,
 * MVAPICH2, Cray). */

enum { SUCCESS = 0, THREAD_FUNNELED = 1, VERSION_MAX = 8192 };

/* Open MPI's handles are pointers to objects in its library, MPICH's are ints: a register holds
 * either. */
typedef uintptr_t handle;

static struct {
    int (*MPI_Init_thread) (int *, char ***, int, int *);
    int (*MPI_Comm_set_errhandler) (handle, handle);
    int (*MPI_Comm_rank) (handle, int *);
    int (*MPI_Comm_size) (handle, int *);
    int (*MPI_Get_library_version) (char *, int *);
    int (*MPI_Bcast) (void *, int, handle, int, handle);
    int (*MPI_Finalize) (void);
    handle world, byte, errors_return;
} mpi;

/* A launcher that is known by a variable, and the library of its ranks. */
static const struct family {
    const char *sign[2], *file[2], *package;
    struct {
        const char *name; /* NULL: the number is it */
        handle number;
    } world, byte, errors_return;
} families[] = {{{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"},
                 {"libmpi.so.40", NULL},
                 "libopenmpi3",
                 {"ompi_mpi_comm_world", 0},
                 {"ompi_mpi_byte", 0},
                 {"ompi_mpi_errors_return", 0}},
                {{"MPI_LOCALNRANKS", "MPI_LOCALNRANKS"},
                 {"libmpi.so.12", "libmpich.so.12"},
                 "libmpich12",
                 {NULL, 0x44000000},
                 {NULL, 0x4c00010d},
                 {NULL, 0x54000001}}};

static const struct family *family_here (void)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (getenv (families[i].sign[0]) || getenv (families[i].sign[1]))
            return &families[i];
    return NULL;
}

/* @return false where the library lacks one of them */
static bool take_functions (void *lib)
{
    static const struct {
        const char *name;
        void *at;
    } functions[] = {{"MPI_Init_thread", &mpi.MPI_Init_thread},
                     {"MPI_Comm_set_errhandler", &mpi.MPI_Comm_set_errhandler},
                     {"MPI_Comm_rank", &mpi.MPI_Comm_rank},
                     {"MPI_Comm_size", &mpi.MPI_Comm_size},
                     {"MPI_Get_library_version", &mpi.MPI_Get_library_version},
                     {"MPI_Bcast", &mpi.MPI_Bcast},
                     {"MPI_Finalize", &mpi.MPI_Finalize}};

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym (lib, functions[i].name);

        if (!f)
            return false;
        memcpy (functions[i].at, &f, sizeof f);
    }
    return true;
}

static handle handle_of (void *lib, const char *name, handle number)
{
    return name ? (handle) dlsym (lib, name) : number;
}

/* Load the MPI of the launcher that started this process, by its variables.
 * @param[out] here  it is loaded; false also where no such launcher did
 * @return ST_OK, or ST_USAGE with the library that is missing and what to do about it */
static enum status mpi_find (bool *here, struct error *err)
{
    const struct family *f = family_here ();
    void *lib = NULL;

    *here = false;
    if (!f)
        return ST_OK;
    /* Global, since Open MPI's plugins look for its names. */
    for (int i = 0; i < 2 && f->file[i] && !lib; i++)
        lib = dlopen (f->file[i], RTLD_NOW | RTLD_GLOBAL);
    if (lib && take_functions (lib)) {
        mpi.world = handle_of (lib, f->world.name, f->world.number);
        mpi.byte = handle_of (lib, f->byte.name, f->byte.number);
        mpi.errors_return =
            handle_of (lib, f->errors_return.name, f->errors_return.number);
        *here = mpi.world && mpi.byte && mpi.errors_return;
    }
    return *here ? ST_OK
                 : err_set (err, ST_USAGE,
                            "an MPI launcher started this process, but MPI's library %s "
                            "cannot be loaded: install it (package %s) or set "
                            "LD_LIBRARY_PATH; or give all ranks MASTER_ADDR (rank 0's "
                            "host), MASTER_PORT and BWPROBE_TOKEN",
                            f->file[0], f->package);
}

static enum status mpi_begin (int *argc, char ***argv, struct start *s, struct error *err)
{
    char version[VERSION_MAX];
    int given, rank, size, len;

    /* Rank 0 has a second thread, which never calls MPI. */
    if (mpi.MPI_Init_thread (argc, argv, THREAD_FUNNELED, &given) != SUCCESS)
        return err_set (err, ST_IO, "MPI does not start");
    mpi.MPI_Comm_set_errhandler (mpi.world, mpi.errors_return);
    mpi.MPI_Comm_rank (mpi.world, &rank);
    mpi.MPI_Comm_size (mpi.world, &size);
    if (mpi.MPI_Get_library_version (version, &len) != SUCCESS)
        version[0] = '\0';
    version[strcspn (version, ",\n")] = '\0';
    for (char *c = version; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    s->mpi = true;
    s->rank = (uint32_t) rank;
    s->size = (uint32_t) size;
    s->outlives = family_here () == &families[0] && getenv ("SLURM_PROCID") == NULL;
    snprintf (s->by, sizeof s->by, "%.*s", (int) sizeof s->by - 1, version);
    return ST_OK;
}

/* ---- all together ---- */

enum status start_find (int *argc, char ***argv, uint32_t port, bool alone,
                        struct start *s, struct error *err)
{
    /* Slurm's words tell enough for srun, but not for a launcher that srun started. */
    bool enough = getenv ("MASTER_ADDR") ||
                  (getenv ("SLURM_PROCID") && !getenv ("OMPI_COMM_WORLD_SIZE") &&
                   !getenv ("MPI_LOCALNRANKS")),
         here;
    enum status st = mpi_find (&here, err);

    if (here) {
        *s = (struct start){.rank = 0};
        return mpi_begin (argc, argv, s, err);
    }
    if (st == ST_OK && alone && !find_dialect (getenv)) {
        *s = (struct start){.by = "no launcher",
                            .size = 1,
                            .meet = {.address = "127.0.0.1", .port = port}};
        return net_token_random (&s->token, err);
    }
    return st == ST_OK || enough ? start_from_variables (getenv, port, s, err) : st;
}

enum status start_share (const struct start *s, struct start_meeting *m,
                         struct error *err)
{
    if (s->mpi && mpi.MPI_Bcast (m, (int) sizeof *m, mpi.byte, 0, mpi.world) != SUCCESS)
        return err_set (err, ST_IO, "MPI does not reach rank 0");
    return m->ok ? ST_OK : err_set (err, ST_IO, "rank 0 does not start");
}

void start_mpi_finish (void)
{
    mpi.MPI_Finalize ();
}
