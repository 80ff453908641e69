/* Is a running job where its plan says?  And if not, what does it cost? */
#include "check/check.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

/* ---- the table ---- */

static enum status bad_line (const char *name, int line, const char *expected,
                             const char *found, size_t len, struct error *err)
{
    char shown[64];
    size_t n = len < sizeof shown - 1 ? len : sizeof shown - 1;

    for (size_t i = 0; i < n; i++)
        shown[i] = isprint ((unsigned char) found[i]) ? found[i] : '?';
    shown[n] = '\0';
    return err_set (err, ST_INVALID, "%s: line %d: expected %s, found \"%s\"", name, line,
                    expected, shown);
}

static bool gpu_ok (const char *s)
{
    return strcmp (s, "-") == 0 ||
           (isalnum ((unsigned char) *s) &&
            strspn (s,
                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") ==
                strlen (s));
}

/* @param[in] whole  the line as it was; s is cut up */
static enum status parse_line (const char *name, int line, char *s, const char *whole,
                               int n_ranks, struct check_place *place, struct error *err)
{
    struct check_place found = {"", ""};
    char expected[64], *word[4];
    int words;

    for (char *p = s; (p = strchr (p, '\r'));)
        *p = ' ';
    words = text_words (s, word, 4);
    if (words == 0 || *word[0] == '#')
        return ST_OK;
    if (words != 3)
        return bad_line (name, line, "`rank host gpu`", whole, strcspn (whole, "\n"),
                         err);
    snprintf (expected, sizeof expected, "a rank from 0 to %d", n_ranks - 1);

    long rank;

    if (!isdigit ((unsigned char) *word[0]) ||
        !text_whole (word[0], 0, n_ranks - 1, &rank))
        return bad_line (name, line, expected, word[0], strlen (word[0]), err);
    if (strlen (word[1]) < sizeof found.host)
        strcpy (found.host, word[1]);
    if (strlen (word[2]) < sizeof found.gpu)
        strcpy (found.gpu, word[2]);
    if (!topology_name_ok (found.host))
        return bad_line (name, line, "a host's name", word[1], strlen (word[1]), err);
    if (!gpu_ok (found.gpu))
        return bad_line (name, line, "a GPU's UUID or index, or -", word[2],
                         strlen (word[2]), err);
    if (place[rank].host[0])
        return err_set (err, ST_INVALID, "%s: line %d: rank %ld appears twice", name,
                        line, rank);
    place[rank] = found;
    return ST_OK;
}

enum status check_running_parse (const char *name, const char *text, int n_ranks,
                                 struct check_place *place, struct error *err)
{
    char *copy = strdup (text), *next = copy, *s;
    enum status st = copy ? ST_OK : err_nomem (err);

    memset (place, 0, (size_t) n_ranks * sizeof *place);
    for (int line = 1; st == ST_OK && (s = strsep (&next, "\n")); line++)
        st = parse_line (name, line, s, text + (s - copy), n_ranks, place, err);
    free (copy);
    return st;
}

/* ---- hosts and GPUs by what the job calls them ---- */

/* UUIDs with and without "GPU-" are the same. */
static bool same_uuid (const char *a, const char *b)
{
    a += strncasecmp (a, "GPU-", 4) == 0 ? 4 : 0;
    b += strncasecmp (b, "GPU-", 4) == 0 ? 4 : 0;
    return strcasecmp (a, b) == 0;
}

enum { GPU_UNKNOWN = -1, GPU_FOREIGN = -2 };

/* The place in its node of the GPU that a rank reports: by the machine's number, which
 * counts drained ones too, or by UUID; "none" is foreign to every node. */
static int find_gpu (const struct topology_cluster *c, int node, const char *gpu)
{
    const struct topology_node *n = &c->node[node];

    if (strspn (gpu, "0123456789") == strlen (gpu) && strlen (gpu) < 5) {
        int k = topology_gpu_find (c, node, atoi (gpu));

        return k >= 0 ? k - n->first_gpu : GPU_FOREIGN;
    }
    if (strcmp (gpu, CHECK_NO_GPU) == 0)
        return GPU_FOREIGN;
    if (strcmp (gpu, "-") == 0 || !n->gpu_uuid)
        return GPU_UNKNOWN;
    for (int k = 0; k < n->gpus; k++)
        if (same_uuid (n->gpu_uuid[k], gpu))
            return k;
    return GPU_FOREIGN;
}

/* ---- the comparison ---- */

struct comparison {
    const struct workload_plan *p;
    const struct topology_cluster *c;
    const struct check_place *place;
    int *planned; /* [n_ranks] cluster-wide GPUs */
    int *node; /* [n_ranks] where each runs; -1: a host that the cluster does not have */
    int *gpu;  /* [n_ranks] place there, or GPU_UNKNOWN, GPU_FOREIGN */
    int unknown, strangers, shared[2];
    int blind;            /* ranks that see no GPU of their own */
    const char *stranger; /* a host that the cluster does not have */
};

static void locate (struct comparison *x, struct check_running *out)
{
    for (int r = 0; r < x->p->n_ranks; r++) {
        const struct check_place *here = &x->place[r];
        const struct topology_node *n = &x->c->node[x->c->node_of_gpu[x->planned[r]]];
        struct check_difference d = {.rank = r};

        x->node[r] = here->host[0] ? topology_node_of_host (x->c, here->host) : -1;
        x->gpu[r] = GPU_UNKNOWN;
        if (here->host[0]) {
            out->reported++;
            x->blind += strcmp (here->gpu, CHECK_NO_GPU) == 0;
            if (x->node[r] >= 0)
                x->gpu[r] = find_gpu (x->c, x->node[r], here->gpu);
            else if (x->strangers++ == 0)
                x->stranger = here->host;
            x->unknown += x->node[r] >= 0 && x->gpu[r] == GPU_UNKNOWN;
            d.host = x->node[r] < 0 || &x->c->node[x->node[r]] != n;
            d.gpu = x->gpu[r] == GPU_FOREIGN ||
                    (x->gpu[r] >= 0 && x->gpu[r] != x->planned[r] - n->first_gpu);
        }
        if (!here->host[0] || d.host || d.gpu)
            out->difference[out->n_differences++] = d;
    }
}

static int by_reported (const void *a, const void *b)
{
    const struct check_place *const *x = a, *const *y = b;
    int order = strcmp ((*x)->host, (*y)->host);

    return order ? order : strcmp ((*x)->gpu, (*y)->gpu);
}

/* Two ranks on one GPU, by what they report themselves. */
static enum status find_shared (struct comparison *x, struct error *err)
{
    const struct check_place **sorted = calloc ((size_t) x->p->n_ranks, sizeof *sorted);

    if (!sorted)
        return err_nomem (err);
    for (int r = 0; r < x->p->n_ranks; r++)
        sorted[r] = &x->place[r];
    qsort (sorted, (size_t) x->p->n_ranks, sizeof *sorted, by_reported);
    x->shared[0] = -1;
    for (int i = 1; i < x->p->n_ranks && x->shared[0] < 0; i++)
        if (sorted[i]->host[0] && strcmp (sorted[i]->gpu, "-") != 0 &&
            strcmp (sorted[i]->gpu, CHECK_NO_GPU) != 0 &&
            by_reported (&sorted[i - 1], &sorted[i]) == 0) {
            x->shared[0] = (int) (sorted[i - 1] - x->place);
            x->shared[1] = (int) (sorted[i] - x->place);
        }
    free (sorted);
    return ST_OK;
}

/* The GPU of every rank as the job runs: what is known, then the planned GPU where it is
 * free, then the first free one of the node.  @return NULL, or why there is none */
static const char *running_gpus (const struct comparison *x, bool *taken, int *gpu)
{
    const struct topology_cluster *c = x->c;

    for (int r = 0; r < x->p->n_ranks; r++) {
        if (!x->place[r].host[0])
            return "some ranks did not report";
        if (x->node[r] < 0 || x->gpu[r] == GPU_FOREIGN)
            return x->blind > 0 ? "some ranks see no GPU of their own"
                                : "the job uses GPUs that are not in the cluster file";
        gpu[r] = x->gpu[r] >= 0 ? c->node[x->node[r]].first_gpu + x->gpu[r] : -1;
        if (gpu[r] >= 0 && taken[gpu[r]])
            return "two ranks share a GPU";
        if (gpu[r] >= 0)
            taken[gpu[r]] = true;
    }
    for (int r = 0; r < x->p->n_ranks; r++)
        if (gpu[r] < 0 && c->node_of_gpu[x->planned[r]] == x->node[r] &&
            !taken[x->planned[r]])
            taken[gpu[r] = x->planned[r]] = true;
    for (int r = 0; r < x->p->n_ranks; r++) {
        const struct topology_node *n = &c->node[x->node[r]];

        for (int k = 0; gpu[r] < 0 && k < n->gpus; k++)
            if (!taken[n->first_gpu + k])
                taken[gpu[r] = n->first_gpu + k] = true;
        if (gpu[r] < 0)
            return "a host runs more ranks than it has GPUs";
    }
    return NULL;
}

static enum status price (const struct comparison *x,
                          const struct workload_profile *profile, struct check_report *r,
                          struct check_running *out, struct error *err)
{
    struct costmodel_problem problem = costmodel_plan_problem (x->p, x->c, profile);
    bool *taken = calloc ((size_t) x->c->n_gpus, sizeof *taken);
    int *gpu = calloc ((size_t) x->p->n_ranks, sizeof *gpu);
    struct costmodel_estimate e = {0};
    struct error reason = {""};
    enum status st = taken && gpu ? ST_OK : err_nomem (err);
    const char *why = st == ST_OK ? running_gpus (x, taken, gpu) : NULL;

    if (st == ST_OK &&
        costmodel_estimate (&problem, x->planned, true, &e, &reason) == ST_OK)
        out->planned_step_s = e.step_s;
    free (e.unmeasured);
    e = (struct costmodel_estimate){0};
    if (st == ST_OK && !why) {
        if (costmodel_estimate (&problem, gpu, true, &e, &reason) == ST_OK)
            out->step_s = e.step_s;
        else
            why = reason.text;
        free (e.unmeasured);
    }
    if (st == ST_OK && why)
        check_say (r, "running step", CHECK_NOTE, "cannot be estimated: %.200s", why);
    else if (st == ST_OK)
        check_say (r, "running step", CHECK_NOTE,
                   "%.6g s as the job runs, %.6g s as planned: %+.2f %%", out->step_s,
                   out->planned_step_s,
                   100.0 * (out->step_s / out->planned_step_s - 1.0));
    FREE_ALL (taken, gpu);
    return st;
}

static void report (const struct comparison *x, const struct check_running *out,
                    struct check_report *r)
{
    int hosts = 0, gpus = 0;

    for (int i = 0; i < out->n_differences; i++) {
        hosts += out->difference[i].host;
        gpus += out->difference[i].gpu && !out->difference[i].host;
    }
    check_say (r, "running ranks",
               out->reported == out->n_ranks ? CHECK_OK : CHECK_FAILED,
               "%d of %d ranks reported", out->reported, out->n_ranks);
    if (x->strangers > 0)
        check_say (
            r, "running hosts", CHECK_FAILED,
            "%d ranks are on another host than planned; %.64s is not in the cluster "
            "file",
            hosts, x->stranger);
    else
        check_say (r, "running hosts", hosts ? CHECK_FAILED : CHECK_OK,
                   "%d ranks are on another host than planned", hosts);
    if (x->shared[0] >= 0)
        check_say (r, "running GPUs", CHECK_FAILED,
                   "ranks %d and %d are on the same GPU, %.64s on %.64s", x->shared[0],
                   x->shared[1], x->place[x->shared[0]].gpu, x->place[x->shared[0]].host);
    else if (x->blind > 0)
        check_say (r, "running GPUs", CHECK_FAILED,
                   "%d ranks see no device LOCAL_RANK: a mask or the scheduler hides it",
                   x->blind);
    else if (gpus > 0)
        check_say (r, "running GPUs", CHECK_FAILED,
                   "%d ranks are on the planned host, but not on the planned GPU", gpus);
    else if (x->unknown > 0)
        check_say (
            r, "running GPUs", CHECK_NOTE,
            "%d ranks have an unknown GPU: the cluster file has no UUIDs, or none was "
            "reported",
            x->unknown);
    else
        check_say (r, "running GPUs", CHECK_OK,
                   "%d ranks are on another GPU than planned", gpus);
}

enum status check_running (const struct workload_plan *p,
                           const struct topology_cluster *c,
                           const struct workload_profile *profile,
                           const struct check_place *place, struct check_report *r,
                           struct check_running *out, struct error *err)
{
    size_t n = (size_t) p->n_ranks;
    struct comparison x = {.p = p,
                           .c = c,
                           .place = place,
                           .planned = calloc (n, sizeof (int)),
                           .node = calloc (n, sizeof (int)),
                           .gpu = calloc (n, sizeof (int))};
    struct check_running found = {.n_ranks = p->n_ranks,
                                  .difference = calloc (n, sizeof *found.difference),
                                  .planned_step_s = NAN,
                                  .step_s = NAN};
    enum status st = ST_OK;

    if (!x.planned || !x.node || !x.gpu || !found.difference)
        st = err_nomem (err);
    THEN (st, costmodel_plan_gpus (p, c, x.planned, err));
    THEN (st, find_shared (&x, err));
    if (st == ST_OK) {
        locate (&x, &found);
        report (&x, &found, r);
        st = price (&x, profile, r, &found, err);
    }
    FREE_ALL (x.planned, x.node, x.gpu);
    if (st == ST_OK)
        *out = found;
    else
        free (found.difference);
    return st;
}
