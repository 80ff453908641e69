#include "bwprobe/start.h"

#ifdef BWPROBE_MPI

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool start_mpi_is_here (void)
{
#ifdef OPEN_MPI
    static const char *const sign[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"};
#else
    static const char *const sign[] = {"PMI_RANK", "PMIX_RANK"};
#endif
    return getenv (sign[0]) || getenv (sign[1]);
}

enum status start_mpi_begin (int *argc, char ***argv, struct start *s, struct error *err)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int given, rank, size, len;

    /* Rank 0 has a second thread, which never calls MPI. */
    if (MPI_Init_thread (argc, argv, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS)
        return err_set (err, ST_IO, "MPI does not start");
    MPI_Comm_set_errhandler (MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank (MPI_COMM_WORLD, &rank);
    MPI_Comm_size (MPI_COMM_WORLD, &size);
    if (MPI_Get_library_version (version, &len) != MPI_SUCCESS)
        version[0] = '\0';
    version[strcspn (version, ",\n")] = '\0';
    for (char *c = version; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    s->mpi = true;
    s->rank = (uint32_t) rank;
    s->size = (uint32_t) size;
#ifdef OPEN_MPI
    s->outlives = getenv ("SLURM_PROCID") == NULL;
#endif
    snprintf (s->by, sizeof s->by, "%.*s", (int) sizeof s->by - 1, version);
    return ST_OK;
}

enum status start_mpi_share (struct start_meeting *m, struct error *err)
{
    if (MPI_Bcast (m, (int) sizeof *m, MPI_BYTE, 0, MPI_COMM_WORLD) != MPI_SUCCESS)
        return err_set (err, ST_IO, "MPI does not reach rank 0");
    return ST_OK;
}

void start_mpi_finish (void)
{
    MPI_Finalize ();
}

#else

bool start_mpi_is_here (void)
{
    return false;
}

enum status start_mpi_begin (int *argc, char ***argv, struct start *s, struct error *err)
{
    (void) argc, (void) argv, (void) s;
    return err_set (err, ST_IO, "this bwprobe was built without MPI");
}

enum status start_mpi_share (struct start_meeting *m, struct error *err)
{
    (void) m;
    return err_set (err, ST_IO, "this bwprobe was built without MPI");
}

void start_mpi_finish (void)
{
}

#endif
