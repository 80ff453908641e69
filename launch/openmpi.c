/* Open MPI 4 and 5: a rankfile.
 *
 * A hostfile is no order there: repeated lines merge, and the launching node goes first.
 * A rankfile is one; the line of rank 0 comes first.  Its slots are CPU cores, not GPUs.
 * In 4, `slot=*` binds to all of the host's cores and leaves finer binding to the wrapper.
 * 5 (PRRTE) reads core numbers alone, and none of them with --bind-to none. */
#include "launch/launch_private.h"

#include <stdlib.h>
#include <string.h>

static bool is_address (const char *name)
{
    return strspn (name, "0123456789.") == strlen (name) && strchr (name, '.');
}

/* Its lexer takes a name of digits for a number and words of its own for themselves; a
 * name with a dot must begin with a letter (or be an address). */
static bool name_ok (const char *name)
{
    size_t digits = strspn (name, "0123456789");

    if (text_has_word ("rank slot slots username user-name user_name", name))
        return false;
    if (is_address (name))
        return true;
    return name[digits] && (digits == 0 || !strchr (name, '.'));
}

/* It compares names up to the first dot; addresses whole. */
static int by_short_name (const void *a, const void *b)
{
    const char *x = *(const char *const *) a, *y = *(const char *const *) b;
    size_t nx = topology_host_length (x), ny = topology_host_length (y);
    int order = strncmp (x, y, nx < ny ? nx : ny);

    return order ? order : (nx > ny) - (nx < ny);
}

static enum status check_names (const struct launch_input *in, struct error *err)
{
    const struct topology_cluster *c = in->cluster;
    const char **used = calloc ((size_t) in->nodes + 1, sizeof *used);
    int n = 0;
    enum status st = used ? ST_OK : err_nomem (err);

    for (int i = 0; i < c->n_nodes && st == ST_OK; i++) {
        if (in->ranks_on_node[i] == 0)
            continue;
        used[n++] = c->node[i].name;
        if (!name_ok (c->node[i].name))
            st = err_set (err, ST_NOFIT,
                          "a rankfile cannot hold the host name \"%s\"; use mpich or "
                          "env, or another name in the cluster file",
                          c->node[i].name);
    }
    if (st == ST_OK)
        qsort (used, (size_t) n, sizeof *used, by_short_name);
    for (int i = 1; i < n && st == ST_OK; i++)
        if (by_short_name (&used[i - 1], &used[i]) == 0)
            st = err_set (err, ST_NOFIT,
                          "it cuts names at the first dot, so the hosts %s and %s are "
                          "one to it; use mpich, slurm or env",
                          used[i - 1], used[i]);
    free (used);
    return st;
}

enum status launch_rankfile (const struct launch_input *in, const char *slot,
                             struct text *ranks, struct text *hosts, struct error *err)
{
    const struct topology_cluster *c = in->cluster;
    const struct workload_plan *p = in->plan;

    TRY (check_names (in, err));
    for (int r = 0; r < p->n_ranks; r++)
        text_add (ranks, "rank %d=%s slot=%s\n", r, p->place[r].node, slot);
    for (int i = 0; i < c->n_nodes; i++)
        if (in->ranks_on_node[i] > 0)
            text_add (hosts, "%s slots=%d\n", c->node[i].name, in->ranks_on_node[i]);
    return ST_OK;
}

static enum status write_openmpi (const struct launch_input *in, struct launch_files *f,
                                  struct text *readme, struct error *err)
{
    struct text ranks = {0}, hosts = {0};
    struct text *five;
    enum status st;

    TRY (launch_rankfile (in, "*", &ranks, &hosts, err));
    five = launch_file (f, "openmpi5/README", 0644);
    text_add (launch_file (f, "openmpi5/hostfile", 0644), "%s", text_str (&hosts));
    *launch_file (f, "openmpi/rankfile", 0644) = ranks;
    *launch_file (f, "openmpi/hostfile", 0644) = hosts;
    hosts = ranks = (struct text){0};
    st = launch_rankfile (in, "0", launch_file (f, "openmpi5/rankfile", 0644), &hosts,
                          err);
    text_free (&hosts);
    text_add (five,
              "Open MPI 5:\n\n"
              "    mpirun -np %d --hostfile openmpi5/hostfile --bind-to none \\\n"
              "        --map-by rankfile:FILE=openmpi5/rankfile ./exec.sh PROGRAM\n",
              in->plan->n_ranks);
    text_add (readme,
              "Open MPI 4:\n\n"
              "    mpirun -np %d --hostfile openmpi/hostfile -rf openmpi/rankfile \\\n"
              "        ./exec.sh PROGRAM\n"
              "\n%s",
              in->plan->n_ranks, text_str (five));
    return st;
}

const struct launcher launch_openmpi = {
    .target = {"openmpi", "Open MPI 4 and 5: rankfile and hostfile"},
    .readme = "openmpi/README",
    .paths = {"openmpi/rankfile", "openmpi/hostfile", "openmpi5/rankfile",
              "openmpi5/hostfile", "openmpi5/README"},
    .write = write_openmpi,
};
