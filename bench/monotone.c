/* More hardware is never a slower plan: drawn labs are planned as they are and changed, each
 * change giving a plan everything that it had before.
 *
 *     make bench-monotone                    30 problems; LINKWISE_LONG=1: 200
 *     build/bench/monotone PROBLEMS [FIRST]  so many, from problem FIRST on
 *     build/bench/monotone 1 17              problem 17 again, and nothing else
 *
 * A lab has 8 to 37 GPUs of one to three types, nodes of one to eight GPUs, and uneven links.  A
 * problem's number is its seed.  Every change after which the step is over .1 % longer has a line
 * of its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "base/stats.h"
#include "base/text.h"
#include "bench/bench.h"
#include "mapper/mapper.h"
#include "topology/edit/edit.h"

#define NODES_MOST 12
#define GPUS_LEAST 8
#define GPUS_MOST 37
#define ALLOWED 1e-3 /* of the step: what a change may cost */

static const struct {
    const char *name;
    double inside; /* GB/s */
} types[] = {{"h100-sxm5-80g", 370}, {"a100-sxm4-80g", 230}, {"a100-pcie-80g", 20},
             {"l40s", 20},           {"rtx-3090", 12},       {"a10g", 11}};
#define TYPES ((int) (sizeof types / sizeof *types))
static const char slow_type[] = "rtx-2080-ti";
#define SLOW_INSIDE 10

static const char *const models[] = {"gpt2-xl",    "llama-3.2-3b", "qwen2.5-7b",
                                     "llama-2-7b", "mistral-7b",   "llama-2-13b"};
#define MODELS ((int) (sizeof models / sizeof *models))

struct lab {
    int n, gpus;
    struct {
        const char *type;
        double inside;
        int gpus;
        double last_speed; /* of the last GPU; the others' is 1 */
    } node[NODES_MOST];
    double rate[NODES_MOST][NODES_MOST]; /* GB/s from node to node */
    int order[NODES_MOST];               /* of the nodes in the file */
};

struct drawn_problem {
    struct lab lab;
    const char *model;
    struct workload_job job;
};

/* ---- drawing ---- */

static double between (struct rng *r, double low, double high)
{
    return low + (high - low) * rng_unit (r);
}

/* Links of one rate but for a few percent; one in eight is several times as slow. */
static double draw_rate (struct rng *r, double usual)
{
    double rate = usual * between (r, .92, 1.08);

    return rng_below (r, 8) ? rate : rate * between (r, .25, .6);
}

/* Alike nodes, in one lab of three; or nodes of several sizes and types. */
static void draw_nodes (struct rng *r, struct lab *l)
{
    int of[3] = {rng_below (r, TYPES), rng_below (r, TYPES), rng_below (r, TYPES)};
    int kinds = 1 + rng_below (r, 3), size = 4 << rng_below (r, 2);
    bool alike = rng_below (r, 3) == 0;

    do {
        l->n = (alike && size == 8 ? 2 : 3) + rng_below (r, alike && size == 8 ? 3 : 6);
        l->gpus = 0;
        for (int i = 0; i < l->n; i++) {
            int t = of[alike ? 0 : rng_below (r, kinds)];

            l->node[i].type = types[t].name;
            l->node[i].inside = types[t].inside;
            l->node[i].gpus = alike ? size : rng_below (r, 5) ? 4 : 1 + rng_below (r, 8);
            l->node[i].last_speed = rng_below (r, 6) ? 1 : between (r, .6, .9);
            l->gpus += l->node[i].gpus;
        }
    } while (l->gpus < GPUS_LEAST || l->gpus > GPUS_MOST);
}

static void draw_lab (struct rng *r, struct lab *l)
{
    static const double usual[] = {1.2, 3, 12, 24, 48};
    double rate = usual[rng_below (r, 5)];

    draw_nodes (r, l);
    for (int i = 0; i < l->n; i++) {
        l->order[i] = i;
        for (int k = 0; k < l->n; k++)
            l->rate[i][k] = draw_rate (r, rate);
    }
}

static struct drawn_problem draw_problem (struct rng *r)
{
    struct drawn_problem d = {.model = models[rng_below (r, MODELS)]};

    draw_lab (r, &d.lab);
    d.job.seq = 1024 << rng_below (r, 3);
    d.job.global_batch = 16 * (2 + rng_below (r, 7));
    return d;
}

/* ---- changes ---- */

static void add_slow_node (struct rng *r, struct lab *l)
{
    double least = INFINITY;

    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < l->n; k++)
            least = fmin (least, l->rate[i][k]);
    l->node[l->n].type = slow_type;
    l->node[l->n].inside = SLOW_INSIDE;
    l->node[l->n].gpus = 1 + rng_below (r, 4);
    l->node[l->n].last_speed = 1;
    for (int i = 0; i <= l->n; i++)
        l->rate[i][l->n] = l->rate[l->n][i] = least * between (r, .5, 1);
    l->order[l->n] = l->n;
    l->n++;
}

/* It has the links of the first; between the two is what the first has to some other. */
static void add_copy (struct rng *r, struct lab *l)
{
    int of = rng_below (r, l->n), other = (of + 1) % l->n, new = l->n;

    l->node[new] = l->node[of];
    for (int i = 0; i < l->n; i++) {
        l->rate[i][new] = l->rate[i][of];
        l->rate[new][i] = l->rate[of][i];
    }
    l->rate[of][new] = l->rate[of][other];
    l->rate[new][of] = l->rate[other][of];
    l->order[new] = new;
    l->n++;
}

static void raise_links (struct rng *r, struct lab *l)
{
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < l->n; k++)
            if (rng_below (r, 4) == 0)
                l->rate[i][k] *= between (r, 1.1, 2);
}

static void shuffle_nodes (struct rng *r, struct lab *l)
{
    for (int i = l->n - 1; i > 0; i--) {
        int k = rng_below (r, i + 1), had = l->order[i];

        l->order[i] = l->order[k];
        l->order[k] = had;
    }
}

static const struct change {
    const char *name;
    void (*make) (struct rng *r, struct lab *l); /* NULL: nothing */
    const char *statement;                       /* of a what-if; NULL: none */
} changes[] = {{"a slow node more", add_slow_node, NULL},
               {"a copy of a node", add_copy, NULL},
               {"memory x 1.2", NULL, "memory x 1.2"},
               {"some links faster", raise_links, NULL},
               {"another order", shuffle_nodes, NULL}};
#define CHANGES ((int) (sizeof changes / sizeof *changes))

/* ---- plans ---- */

static void add_node (struct text *t, const struct lab *l, int i)
{
    text_add (t, "{\"name\":\"n%d\",\"gpus\":%d,\"gpu_type\":\"%s\",\"speed\":[", i,
              l->node[i].gpus, l->node[i].type);
    for (int k = 0; k < l->node[i].gpus - 1; k++)
        text_add (t, "1,");
    text_add (t, "%.4g]}", l->node[i].last_speed);
}

/* The cluster file. */
static void write_lab (struct text *t, const struct lab *l)
{
    text_add (t, "{\"version\":1,\"name\":\"lab\",\"nodes\":[");
    for (int i = 0; i < l->n; i++) {
        text_add (t, i ? "," : "");
        add_node (t, l, l->order[i]);
    }
    text_add (t, "],\"links\":{\"intra\":[");
    for (int i = 0; i < l->n; i++)
        text_add (t, "%s{\"latency_us\":8,\"bandwidth_gb_per_s\":%g}", i ? "," : "",
                  l->node[l->order[i]].inside);
    text_add (t, "],\"inter\":{\"latency_us\":15,\"bandwidth_gb_per_s\":[");
    for (int i = 0; i < l->n; i++) {
        text_add (t, i ? ",[" : "[");
        for (int k = 0; k < l->n; k++)
            if (i == k)
                text_add (t, k ? ",null" : "null");
            else
                text_add (t, "%s%.4g", k ? "," : "", l->rate[l->order[i]][l->order[k]]);
        text_add (t, "]");
    }
    text_add (t, "]}}}");
}

static struct topology_cluster *cluster_of (const struct lab *l, const char *statement)
{
    struct topology_changed changed = {0};
    struct topology_cluster *c = NULL;
    struct text t = {0};
    struct error err = {"out of memory"};
    json_t *doc;

    write_lab (&t, l);
    doc = json_loads (text_str (&t), 0, NULL);
    if (!doc || topology_cluster_from_json (doc, "lab", NULL, &c, NULL, &err) != ST_OK)
        die (&err);
    json_decref (doc);
    text_free (&t);
    if (!statement)
        return c;
    if (topology_change (c, statement, &changed, &err) != ST_OK)
        die (&err);
    topology_cluster_destroy (c);
    return changed.c;
}

/* Where a lab's GPUs stand in its file. */
static void find_gpus (const struct lab *l, int *first)
{
    for (int i = 0, at = 0; i < l->n; at += l->node[l->order[i++]].gpus)
        first[l->order[i]] = at;
}

/* What is planned. */
struct instance {
    struct lab lab;
    struct topology_cluster *c;
    struct workload_model model;
    struct workload_profile profile;
    struct mapper_problem p;
};

static void instance_init (const struct drawn_problem *d, const struct change *change,
                           unsigned long seed, struct instance *x)
{
    struct rng r = {seed ^ 0x6d6f7265};
    struct error err = {""};

    x->lab = d->lab;
    if (change && change->make)
        change->make (&r, &x->lab);
    x->c = cluster_of (&x->lab, change ? change->statement : NULL);
    if (workload_model_read (d->model, &x->model, NULL, &err) != ST_OK ||
        workload_profile_read (WORKLOAD_PROFILE_DEFAULT, &x->profile, NULL, &err) !=
            ST_OK)
        die (&err);
    x->p = (struct mapper_problem){.model = &x->model,
                                   .job = &d->job,
                                   .profile = &x->profile,
                                   .cluster = x->c,
                                   .axes = mapper_axes_free (),
                                   .memory_limit_pct = 95};
}

/* @return false where nothing fits */
static bool plan (const struct instance *x, struct mapper_result *found)
{
    struct mapper_settings settings = mapper_settings_default ();
    struct mapper_info info;
    struct error err = {""};
    enum status st = mapper_search (&x->p, &settings, found, &info, &err);

    if (st != ST_OK && st != ST_NOFIT)
        die (&err);
    mapper_info_release (&info);
    return st == ST_OK;
}

/* A plan's step where the GPUs are others: the same nodes, wherever they stand in the file. */
static double step_there (const struct mapper_result *found, const struct instance *from,
                          const struct instance *to)
{
    int there[NODES_MOST], *gpu = calloc ((size_t) to->c->n_gpus, sizeof *gpu);
    int world = (int) workload_world (&found->config.deg);
    struct costmodel_problem q = mapper_priced (&to->p, &found->config, found->layers);
    struct costmodel_estimate e;
    struct error err = {"out of memory"};

    if (!gpu)
        die (&err);
    find_gpus (&to->lab, there);
    for (int r = 0; r < world; r++) {
        int node = from->c->node_of_gpu[found->gpu[r]];

        gpu[r] =
            there[from->lab.order[node]] + found->gpu[r] - from->c->node[node].first_gpu;
    }
    if (costmodel_estimate (&q, gpu, true, &e, &err) != ST_OK)
        die (&err);
    free (e.unmeasured);
    free (gpu);
    return e.step_s;
}

/* ---- the table ---- */

/* How much longer the step is after each change, of every problem. */
struct tally {
    double *worse[CHANGES]; /* [problems] */
    double *gap;            /* [problems] of the plans before, of the step */
    int n;
};

/* What a better plan may save at most, of the step. */
static double gap_of (const struct mapper_result *r)
{
    return 1 - r->lower_bound_s / r->estimate.step_s;
}

static void print_plan (const struct mapper_result *r)
{
    const struct workload_degrees *d = &r->config.deg;

    printf ("%.5f s (gap %.1f %%, tp %d pp %d dp %d micro-batch %d %s)",
            r->estimate.step_s, 100 * gap_of (r), d->tp, d->pp, d->dp,
            r->config.micro_batch, workload_schedule_name (r->config.schedule));
}

/* How much longer the step is, of the old plan there. */
static double worse_by (unsigned long seed, const struct drawn_problem *d,
                        const struct change *change, const struct instance *old,
                        const struct mapper_result *before)
{
    struct instance x;
    struct mapper_result after;
    double worse = INFINITY, there;

    instance_init (d, change, seed, &x);
    if (!plan (&x, &after))
        die (&(struct error){"what had a plan has none"});
    there = step_there (before, old, &x);
    worse = after.estimate.step_s / before->estimate.step_s - 1;
    if (worse > ALLOWED) {
        printf ("problem %lu, %s, seq %d, batch %d, %d GPUs; %s: ", seed, d->model,
                d->job.seq, d->job.global_batch, d->lab.gpus, change->name);
        print_plan (before);
        printf (", there %.5f s -> ", there);
        print_plan (&after);
        printf (", %+.2f %%\n", 100 * worse);
        fflush (stdout);
    }
    mapper_result_release (&after);
    topology_cluster_destroy (x.c);
    return worse;
}

/* @return false where nothing fits, and another problem is to be drawn */
static bool try_problem (unsigned long seed, struct tally *t)
{
    struct rng r = {seed};
    struct drawn_problem d = draw_problem (&r);
    struct instance x;
    struct mapper_result before;
    bool fits;

    instance_init (&d, NULL, seed, &x);
    fits = plan (&x, &before);
    for (int k = 0; k < CHANGES && fits; k++)
        t->worse[k][t->n] = worse_by (seed, &d, &changes[k], &x, &before);
    if (fits) {
        t->gap[t->n] = gap_of (&before);
        mapper_result_release (&before);
    }
    topology_cluster_destroy (x.c);
    t->n += fits;
    return fits;
}

static void print_tally (struct tally *t)
{
    struct table *table =
        TABLE_OF ("<change", "problems", "worse by > .1 %", "worst %", "median %");
    double sum = 0.0;

    for (int k = 0; k < CHANGES; k++) {
        int over = 0;

        for (int i = 0; i < t->n; i++)
            over += t->worse[k][i] > ALLOWED;
        stats_sort (t->worse[k], t->n);
        table_cell (table, "%s", changes[k].name);
        table_cell (table, "%d", t->n);
        table_cell (table, "%d", over);
        table_cell (table, "%.2f", 100 * fmax (0, t->worse[k][t->n - 1]));
        table_cell (table, "%.2f", 100 * stats_quantile (t->worse[k], t->n, .5));
    }
    table_end (table, stdout);
    for (int i = 0; i < t->n; i++)
        sum += t->gap[i];
    stats_sort (t->gap, t->n);
    printf ("gaps before the changes: mean %.2f %%, median %.2f %%, worst %.2f %%\n",
            100 * sum / t->n, 100 * stats_quantile (t->gap, t->n, .5),
            100 * t->gap[t->n - 1]);
    printf ("%.2f processor seconds a plan\n",
            (double) clock () / CLOCKS_PER_SEC / (t->n * (CHANGES + 1)));
}

int main (int argc, char **argv)
{
    int problems = argc > 1 ? atoi (argv[1]) : getenv ("LINKWISE_LONG") ? 200 : 30;
    unsigned long seed = argc > 2 ? strtoul (argv[2], NULL, 10) : 1;
    struct tally t = {0};

    if (problems < 1)
        die (&(struct error){"usage: monotone [PROBLEMS [FIRST]]"});
    for (int k = 0; k < CHANGES; k++)
        if (!(t.worse[k] = calloc ((size_t) problems, sizeof (double))))
            die (&(struct error){"out of memory"});
    if (!(t.gap = calloc ((size_t) problems, sizeof (double))))
        die (&(struct error){"out of memory"});
    for (; t.n < problems; seed++)
        try_problem (seed, &t);
    print_tally (&t);
    for (int k = 0; k < CHANGES; k++)
        free (t.worse[k]);
    free (t.gap);
    return 0;
}
