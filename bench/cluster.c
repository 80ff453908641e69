/* Loading large clusters: seconds and memory, each in a process of its own.
 *
 *     make bench
 *
 * The limits that the cluster file is made for: 16,384 GPUs in 0.5 s and 200 MB, 131,072 in
 * 5 s.  Files are drawn into a temporary folder first (1.1 GB for the largest). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/progress.h"
#include "base/rng.h"
#include "base/text.h"
#include "bench/bench.h"
#include "topology/edit/edit.h"
#include "topology/topology.h"

#define LOOKUPS 5000000

struct figures {
    double load_s, mib, lookup_ns;
    int gpus;
};

static struct figures measure (const char *path)
{
    struct topology_cluster *c;
    struct error err = {""};
    struct rusage use;
    struct rng r = {1};
    struct figures f;
    double start = clock_s (), sum = 0;

    if (topology_cluster_read (path, &c, NULL, &err) != ST_OK)
        die (&err);
    f.load_s = clock_s () - start;
    getrusage (RUSAGE_SELF, &use);
    f.mib = (double) use.ru_maxrss / 1024;
    f.gpus = c->n_gpus;
    start = clock_s ();
    for (int i = 0; i < LOOKUPS; i++) {
        int a = rng_below (&r, c->n_gpus), b = rng_below (&r, c->n_gpus);

        sum += topology_link (c, a, a == b ? (a + 1) % c->n_gpus : b).bytes_per_s;
    }
    f.lookup_ns = (clock_s () - start) / LOOKUPS * 1e9;
    if (sum <= 0)
        f.lookup_ns = 0;
    topology_cluster_destroy (c);
    return f;
}

static void bench (struct table *t, const char *what, const char *path)
{
    struct figures f = {0};
    int tube[2];
    pid_t child;

    fflush (stdout);
    if (pipe (tube) != 0 || (child = fork ()) < 0)
        exit (1);
    if (child == 0) {
        f = measure (path);
        _exit (write (tube[1], &f, sizeof f) == sizeof f ? 0 : 1);
    }
    close (tube[1]);
    if (read (tube[0], &f, sizeof f) != sizeof f)
        exit (1);
    close (tube[0]);
    waitpid (child, NULL, 0);
    table_cell (t, "%s", what);
    table_cell (t, "%d", f.gpus);
    table_cell (t, "%.3f", f.load_s);
    table_cell (t, "%.0f", f.mib);
    table_cell (t, "%.0f", f.lookup_ns);
}

static void draw (const char *path, int nodes)
{
    struct topology_synth s = topology_synth_default ();
    struct topology_document d = {0};
    struct error err = {""};

    s.preset = "busy";
    s.nodes = nodes;
    if (topology_synthesize (&s, &d, NULL, &err) != ST_OK ||
        topology_document_write (&d, path, &err) != ST_OK)
        die (&err);
    topology_document_release (&d);
}

/* A matrix for each of eight rails, and a thousand GPU pairs that differ. */
static void add_rails (const char *from, const char *to)
{
    json_t *doc, *inter, *rails = json_array (), *list = json_array ();
    struct error err = {""};
    char a[32], b[32];

    if (json_read (from, &doc, &err) != ST_OK)
        die (&err);
    inter = json_object_get (json_object_get (doc, "links"), "inter");
    for (int k = 0; k < 8; k++)
        json_array_append_new (rails,
                               json_pack ("{s:O, s:f}", "bandwidth_gb_per_s",
                                          json_object_get (inter, "bandwidth_gb_per_s"),
                                          "latency_us", 10.0));
    for (int k = 0; k < 1000; k++) {
        snprintf (a, sizeof a, "n%d:%d", k, k % 8);
        snprintf (b, sizeof b, "n%d:%d", k + 7, k % 8);
        json_array_append_new (list, json_pack ("{s:s, s:s, s:f}", "from", a, "to", b,
                                                "bandwidth_gb_per_s", 3.0));
    }
    json_object_set_new (inter, "rails", rails);
    json_object_set_new (json_object_get (doc, "links"), "exceptions", list);
    if (json_write (to, doc, &err) != ST_OK)
        die (&err);
    json_decref (doc);
}

int main (void)
{
    struct table *t = TABLE_OF ("<loading a cluster", "GPUs", "s", "MiB", "ns / link");
    const char *tmp = getenv ("TMPDIR");
    char folder[256], path[512], command[600];

    snprintf (folder, sizeof folder, "%s/linkwise-bench.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp (folder))
        return 1;
    snprintf (path, sizeof path, "%s/a.json", folder);
    draw (path, 2048);
    bench (t, "2,048 nodes, a matrix over nodes", path);
    snprintf (command, sizeof command, "%s/rails.json", folder);
    add_rails (path, command);
    bench (t, "the same with 8 rails and 1,000 exceptions", command);
    snprintf (path, sizeof path, "%s/b.json", folder);
    draw (path, 16384);
    bench (t, "16,384 nodes, a matrix over nodes", path);
    table_end (t, stdout);
    snprintf (command, sizeof command, "rm -rf '%s'", folder);
    return system (command) == 0 ? 0 : 1;
}
