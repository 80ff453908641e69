/* linkwise check: is a plan what it says? */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "check/check.h"
#include "cli/cli.h"

#define SHOWN 20 /* ranks that are printed one by one */

/* --nccl-log: what to read, as often as it was given. */
struct check_logs {
    const char **path; /* [n]; release with free */
    int n, n_stdins;
};

struct check_input {
    const char *plan, *cluster, *running;
    struct check_logs logs;
    bool json;
};

#define INPUT struct check_input

static const struct cli_option options[] = {
    {"running", 'r', "TABLE",
     "compare the plan with a running job: lines `rank host gpu-uuid`, as the emitted "
     "where.sh prints them; - is standard input",
     CLI_TEXT (running)},
    {CLI_JSON},
    {0}};

static void take_log (const struct cli_option *o, const char *given, void *value,
                      struct argp_state *state)
{
    struct check_logs *x = value;

    (void) o;
    if (!array_grow (&x->path, (size_t) x->n, sizeof *x->path))
        argp_failure (state, 1, 0, "out of memory");
    x->path[x->n++] = given;
    x->n_stdins += cli_is_dash (given);
}

static const struct cli_option log_options[] = {
    {"nccl-log", 'n', "LOG",
     "compare the rings, trees, channels and transports in NCCL's log with those that "
     "the step-time estimate assumes: a log of NCCL_DEBUG=INFO, "
     "NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET (repeatable), a folder or a pattern of them; - is "
     "standard input",
     .kind = CLI_KIND_TAKEN, .take = take_log},
    {0}};

static const struct cli_options logs_options = {.line = log_options};

static void check (void *input, struct argp_state *state)
{
    const struct check_input *in = input;

    cli_one_stdin (cli_is_dash (in->plan) + cli_is_dash (in->running) + in->logs.n_stdins,
                   state);
}

/* ---- a running job beside its plan ---- */

struct running {
    struct check_place *place; /* [n_ranks]; NULL without --running */
    struct check_running found;
};

/* Ranks that are elsewhere: the first as rows of a table, all as entries of a list. */
static void add_differences (const struct workload_plan *p, const struct running *run,
                             struct table *t, json_t *list)
{
    for (int i = 0; i < run->found.n_differences; i++) {
        int r = run->found.difference[i].rank;
        const struct workload_place *plan = &p->place[r];
        const struct check_place *here = &run->place[r];
        bool reported = here->host[0] != '\0';
        struct table *shown = i < SHOWN ? t : NULL;

        table_cell (shown, "%d", r);
        table_cell (shown, "%s", plan->node);
        table_cell (shown, "%d", plan->gpu);
        table_cell (shown, "%s", reported ? here->host : "(no report)");
        table_cell (shown, "%s", here->gpu);
        json_array_append_new (
            list, json_pack ("{s:i, s:s, s:i, s:o, s:o}", "rank", r, "planned_node",
                             plan->node, "planned_gpu", plan->gpu, "host",
                             reported ? json_string (here->host) : json_null (), "gpu",
                             reported ? json_string (here->gpu) : json_null ()));
    }
}

/* ---- what NCCL chose ---- */

static json_t *link_json (const struct topology_cluster *c,
                          const struct check_nccl_link *l)
{
    if (l->src_gpu < 0)
        return json_null ();
    return json_pack (
        "{s:s, s:i, s:s, s:i, s:f}", "from", c->node[c->node_of_gpu[l->src_gpu]].name,
        "from_gpu", topology_gpu_index (c, l->src_gpu), "to",
        c->node[c->node_of_gpu[l->dst_gpu]].name, "to_gpu",
        topology_gpu_index (c, l->dst_gpu), "gb_per_s", l->bytes_per_s / 1e9);
}

static json_t *worst_json (const struct topology_cluster *c,
                           const struct check_nccl_group *g)
{
    const struct check_nccl_hops *h = &g->hops;
    json_t *hops = json_pack ("{s:i, s:i, s:i, s:o, s:o, s:o}", "both", h->both,
                              "only_priced", h->laid, "only_nccl", h->chosen,
                              "slowest_both", link_json (c, &h->slowest[0]),
                              "slowest_only_priced", link_json (c, &h->slowest[1]),
                              "slowest_only_nccl", link_json (c, &h->slowest[2]));

    return json_pack (
        "{s:i, s:i, s:i, s:i, s:o, s:i, s:i, s:o, s:o, s:s, s:i, s:o}", "first_rank",
        g->first, "ranks", g->n, "channels", g->channels, "unread_channels", g->unread,
        "hops", hops, "priced_lanes", h->laid_lanes, "nccl_lanes", h->chosen_lanes,
        "priced_s", json_number_or_null (g->laid_s), "nccl_s",
        json_number_or_null (g->chosen_s), "all_reduce", workload_all_reduce_name (g->by),
        "tree_edges", g->tree_hops, "slowest_tree_edge",
        g->tree_hops ? link_json (c, &g->tree) : json_null ());
}

static json_t *groups_json (const struct check_nccl *x, const struct topology_cluster *c)
{
    json_t *list = json_array ();

    for (int i = 0; i < CHECK_NCCL_KINDS; i++) {
        const struct check_nccl_kind *k = &x->kind[i];

        if (k->planned == 0 && k->found == 0)
            continue;
        json_array_append_new (
            list,
            json_pack ("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "group",
                       check_nccl_kind_text (i), "planned", k->planned, "found", k->found,
                       "partly_known", k->partly, "reordered", k->reordered, "compared",
                       k->compared, "differ", k->differ, "worst",
                       k->compared ? worst_json (c, &k->worst) : json_null ()));
    }
    return list;
}

static json_t *ways_json (const struct check_nccl *x, const struct topology_cluster *c)
{
    json_t *list = json_array ();

    for (int i = 0; i < x->n_ways; i++) {
        const struct check_nccl_way *w = &x->way[i];
        json_t *way = json_pack ("{s:s, s:s}", "from", c->node[w->a].name, "to",
                                 c->node[w->b].name);

        for (int k = 0; k < CHECK_NCCL_VIAS; k++)
            json_object_set_new (way, check_nccl_via_name (k),
                                 json_integer (w->times[k]));
        json_array_append_new (list, way);
    }
    return list;
}

static json_t *lines_json (const struct check_nccl_lines *l)
{
    json_t *at = json_array (), *versions = json_array ();

    for (int i = 0; i < CHECK_NCCL_PLACES && i < l->unread; i++) {
        json_t *file = json_string (l->place[i].file); /* NULL: not UTF-8 */

        json_array_append_new (at, json_pack ("{s:o, s:I}", "file",
                                              file ? file : json_null (), "line",
                                              (json_int_t) l->place[i].line));
    }
    for (int i = 0; i < l->versions; i++)
        json_array_append_new (versions, json_string (l->version[i]));
    return json_pack ("{s:i, s:I, s:I, s:I, s:o, s:I, s:o}", "files", l->files, "lines",
                      (json_int_t) l->all, "nccl", (json_int_t) l->nccl, "not_understood",
                      (json_int_t) l->unread, "not_understood_at", at, "unplaced",
                      (json_int_t) l->unplaced, "versions", versions);
}

/* What was found, as `nccl` of docs/outputs.md. */
static json_t *nccl_json (const struct check_nccl *x, const struct topology_cluster *c)
{
    return json_pack ("{s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:o, s:o}", "log",
                      lines_json (&x->lines), "processes", x->processes, "communicators",
                      x->communicators, "others", x->other, "ambiguous", x->ambiguous,
                      "unfinished", x->unfinished, "jobs", x->jobs, "ranks_known",
                      x->ranks_known, "compared", !x->moved, "groups", groups_json (x, c),
                      "ways", ways_json (x, c));
}

/* What groups ring as, and what it costs, where a group was compared. */
static void print_nccl (const struct check_nccl *x)
{
    struct table *t = TABLE_OF ("<group", "found", "compared", "differ", "<worst: ranks",
                                "hops in both", "only priced", "only NCCL's",
                                "lanes priced", "NCCL's", "priced, s", "NCCL's, s");
    int rows = 0;

    for (int i = 0; i < CHECK_NCCL_KINDS; i++) {
        const struct check_nccl_kind *k = &x->kind[i];
        const struct check_nccl_group *g = &k->worst;

        if (k->compared == 0)
            continue;
        rows++;
        table_cell (t, "%s", check_nccl_kind_text (i));
        table_cell (t, "%d", k->found);
        table_cell (t, "%d", k->compared);
        table_cell (t, "%d", k->differ);
        table_cell (t, "%d from %d", g->n, g->first);
        table_cell (t, "%d", g->hops.both);
        table_cell (t, "%d", g->hops.laid);
        table_cell (t, "%d", g->hops.chosen);
        table_cell (t, "%d", g->hops.laid_lanes);
        table_cell (t, "%d", g->hops.chosen_lanes);
        cli_cell (t, "%.6g", g->laid_s);
        cli_cell (t, "%.6g", g->chosen_s);
    }
    if (rows > 0) {
        cli_print ("\n");
        table_print (t, stdout);
    }
    table_destroy (t);
}

/* ---- the command ---- */

static enum status answer (const struct check_input *in, const struct workload_plan *p,
                           const struct check_report *r, const struct running *run,
                           json_t *nccl, const struct check_nccl *logs, struct error *err)
{
    const struct check_running *found = &run->found;
    struct table *t = TABLE_OF ("<check", "<", "<found"),
                 *moved = TABLE_OF ("rank", "<planned host", "GPU", "<runs on", "<GPU");
    json_t *checks = json_array (), *list = json_array (), *doc;
    enum status st;

    for (int i = 0; i < r->n; i++)
        cli_finding (t, checks, r->item[i].what, r->item[i].verdict, r->item[i].text);
    add_differences (p, run, moved, list);
    doc = json_pack ("{s:i, s:b, s:o, s:o}", "version", 1, "ok", r->failed == 0, "step_s",
                     r->step_s > 0 ? json_real (r->step_s) : json_null (), "checks",
                     checks);
    if (run->place)
        json_object_set_new (
            doc, "running",
            json_pack ("{s:i, s:i, s:o, s:o, s:O}", "ranks", found->n_ranks, "reported",
                       found->reported, "planned_step_s",
                       json_number_or_null (found->planned_step_s), "step_s",
                       json_number_or_null (found->step_s), "differences", list));
    json_decref (list);
    if (nccl)
        json_object_set_new (doc, "nccl", nccl);
    st = cli_answer (in->json, t, doc, err);
    if (!in->json && found->n_differences > 0) {
        cli_print ("\n");
        table_print (moved, stdout);
        if (found->n_differences > SHOWN)
            cli_print ("and %d more\n", found->n_differences - SHOWN);
    }
    table_destroy (moved);
    if (!in->json && in->logs.n > 0)
        print_nccl (logs);
    if (st == ST_OK && r->failed > 0)
        st = err_set (err, ST_INVALID, "%s: %d of %d checks failed", in->plan, r->failed,
                      r->n);
    return st;
}

static enum status compare (const struct check_input *in, const struct linkwise_plan *x,
                            struct running *run, struct check_report *r,
                            struct error *err)
{
    char *text;
    size_t len;
    enum status st;

    TRY (file_read (in->running, &text, &len, err));
    run->place = calloc ((size_t) x->plan.n_ranks, sizeof *run->place);
    st = run->place ? check_running_parse (cli_input_name (in->running),
                                           text + file_mark (text, len), x->plan.n_ranks,
                                           run->place, err)
                    : err_nomem (err);
    free (text);
    TRY (st);
    return check_running (&x->plan, x->cluster->c, &x->profile, run->place, r,
                          &run->found, err);
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct check_input *in = input;
    struct linkwise_plan x = {.cluster = NULL};
    struct check_report r;
    struct running job = {0};
    struct check_nccl nccl = {.way = NULL};
    enum status st = cli_plan_read (in->plan, in->cluster, &x, notes, err);

    THEN (st, check_plan (&x.plan, x.cluster->c, &x.profile, &r, err));
    if (st == ST_OK && in->running)
        st = compare (in, &x, &job, &r, err);
    if (st == ST_OK && in->logs.n > 0)
        st = check_nccl (&x.plan, x.cluster->c, &x.profile, in->logs.path, in->logs.n, &r,
                         &nccl, err);
    THEN (st,
          answer (in, &x.plan, &r, &job,
                  in->logs.n > 0 ? nccl_json (&nccl, x.cluster->c) : NULL, &nccl, err));
    check_nccl_release (&nccl);
    FREE_ALL (in->logs.path, job.place, job.found.difference);
    api_plan_release (&x);
    return st;
}

const struct cli_command cli_check = {
    .arguments = "PLAN [CLUSTER]",
    .help = "Check a plan independently of the search: GPUs, degrees, memory, step time, "
            "bound.  With --running, also check that a job's ranks are where the plan "
            "says, and estimate what the difference costs; with --nccl-log, compare "
            "NCCL's rings and transports with those that the estimate assumes.\v"
            "Example: linkwise check plan.json\n  srun ... ./exec.sh ./where.sh | "
            "linkwise check plan.json --running -\n  linkwise check plan.json --nccl-log "
            "logs/\n\n"
            "CLUSTER defaults to the plan's own.  Exit code 1: a check failed.",
    .options = {.line = options, .check = check},
    .parts = {{&logs_options, offsetof (INPUT, logs), "What NCCL chose:", 1}},
    .places = {1, 2, "PLAN and CLUSTER",
               "PLAN is required, as in: linkwise check plan.json"},
    .at = {CLI_PLACE (plan), CLI_PLACE (cluster)},
    CLI_RUN (run)};
