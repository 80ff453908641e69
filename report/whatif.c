#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"

#define ALL "all together"

/* ---- reading ---- */

enum status report_what_read (const struct topology_cluster *from, const char *statement,
                              struct report_what *one, struct error *err)
{
    one->change = strdup (statement);
    return one->change ? topology_change (from, statement, &one->changed, err)
                       : err_nomem (err);
}

/* Each change to the cluster as it is, and to that which has those before it. */
static enum status read_all (const struct topology_cluster *c, char **statement, int n,
                             struct report_whatif *w, struct error *err)
{
    struct report_what *all = n > 1 ? &w->what[n + 1] : NULL;
    enum status st = ST_OK;

    w->n = all ? n + 2 : n + 1;
    if (all && !(all->change = strdup (ALL)))
        return err_nomem (err);
    for (int k = 0; k < n && st == ST_OK; k++) {
        st = report_what_read (c, statement[k], &w->what[k + 1], err);
        if (st == ST_OK && all)
            st = topology_change (k ? all->changed.c : c, statement[k], &all->changed,
                                  err);
        if (st != ST_OK && st != ST_NOMEM)
            err_prefix (err, "--what-if: statement %d", k + 1);
    }
    return st;
}

enum status report_whatif_read (const struct topology_cluster *c, const char *text,
                                struct report_whatif *w, struct error *err)
{
    struct report_whatif x = {0};
    char **statement;
    enum status st;
    int n;

    st = topology_changes_split (text, &statement, &n, err);
    if (st != ST_OK) {
        err_prefix (err, "--what-if");
        return st;
    }
    x.what = calloc ((size_t) n + 2, sizeof *x.what);
    st = x.what ? read_all (c, statement, n, &x, err) : err_nomem (err);
    memory_free_texts (statement, n);
    if (st == ST_OK)
        *w = x;
    else
        report_whatif_release (&x);
    return st;
}

void report_what_release (struct report_what *one)
{
    free (one->change);
    topology_changed_release (&one->changed);
    mapper_result_release (&one->replanned.plan);
    mapper_info_release (&one->replanned.info);
    *one = (struct report_what){0};
}

void report_whatif_release (struct report_whatif *w)
{
    for (int k = 0; k < w->n; k++)
        report_what_release (&w->what[k]);
    free (w->what);
    *w = (struct report_whatif){0};
}

/* ---- in place ---- */

/* "n7 holds ranks 8 to 15": the first node that is lost, and how many are on others. */
static void say_lost (const struct report_whatif_plan *plan, const int *gpu, int world,
                      char why[256])
{
    const struct topology_cluster *c = plan->p->cluster;
    int first = 0, last = 0, here = 0, others = 0, on;

    while (gpu[first] >= 0)
        first++;
    on = c->node_of_gpu[plan->gpu[first]];
    for (int r = first; r < world; r++) {
        if (gpu[r] >= 0)
            continue;
        if (c->node_of_gpu[plan->gpu[r]] == on) {
            last = r;
            here++;
        } else
            others++;
    }
    if (here == 1)
        snprintf (why, 256, "%.120s holds rank %d", c->node[on].name, first);
    else if (here == last - first + 1)
        snprintf (why, 256, "%.120s holds ranks %d to %d", c->node[on].name, first, last);
    else
        snprintf (why, 256, "%.120s holds %d ranks, the first %d, the last %d",
                  c->node[on].name, here, first, last);
    if (others > 0)
        snprintf (why + strlen (why), 256 - strlen (why), "; %d ranks on other nodes",
                  others);
}

/* The plan's placement on another cluster.
 * @param[out] step_s  INFINITY: not possible, why says so; else `found` is the result */
static enum status put_in_place (const struct report_whatif_plan *plan,
                                 const struct mapper_problem *there, double *step_s,
                                 struct mapper_result *found, char why[256],
                                 struct error *err)
{
    int world = (int) workload_world (&plan->config->deg), nodes;
    int *gpu = calloc ((size_t) world, sizeof *gpu);
    struct workload_profile serving = *there->profile;
    struct mapper_problem mine = *there;
    struct error wrong = {""};
    enum status st = ST_OK;

    if (!gpu)
        return err_nomem (err);
    *step_s = INFINITY;
    if (report_carry (plan->p->cluster, there->cluster, plan->gpu, world, gpu) > 0)
        say_lost (plan, gpu, world, why);
    else if (there->max_nodes > 0 && (nodes = topology_nodes_under (
                                          there->cluster, gpu, world)) > there->max_nodes)
        snprintf (why, 256, "the plan is on %d nodes", nodes);
    else {
        mine.profile = &serving;
        st = costmodel_profile_used (&serving, mine.cluster, gpu, world, mine.model,
                                     mine.job, &wrong);
        THEN (st,
              mapper_result_put (&mine, plan->config, plan->layers, gpu, found, &wrong));
    }
    free (gpu);
    if (st == ST_NOMEM)
        return err_nomem (err);
    if (st != ST_OK)
        snprintf (why, 256, "%.255s", wrong.text);
    else if (found->gpu)
        *step_s = found->estimate.step_s;
    return ST_OK;
}

/* ---- planned anew ---- */

/* Where the search found less than the placement in place, this is the plan. */
static void take_in_place (struct report_best *best, struct mapper_result *in_place)
{
    if (!best->fits || !(in_place->estimate.step_s < best->plan.estimate.step_s)) {
        mapper_result_release (in_place);
        return;
    }
    in_place->lower_bound_s = fmin (best->plan.lower_bound_s, in_place->estimate.step_s);
    mapper_result_release (&best->plan);
    best->plan = *in_place;
}

enum status report_what_run (const struct report_whatif_plan *plan,
                             struct report_what *what, struct error *err)
{
    struct mapper_problem there = *plan->p;
    struct mapper_nodes nodes = *plan->nodes;
    struct mapper_result in_place = {.gpu = NULL};
    struct workload_profile serving = *plan->p->profile;
    bool *marks = NULL;
    enum status st;

    if (what->changed.c)
        there.cluster = what->changed.c;
    there.profile = &serving;
    if (what->changed.max_nodes > 0 &&
        (nodes.nodes == 0 || what->changed.max_nodes < nodes.nodes))
        nodes.nodes = what->changed.max_nodes;
    st = mapper_choose_nodes (&nodes, &there, &marks, err);
    THEN (st, mapper_profile_allowed (&there, &serving, err));
    if (st == ST_NOFIT) { /* no node is left */
        what->in_place_s = INFINITY;
        snprintf (what->why, sizeof what->why, "%.255s", err->text);
        snprintf (what->replanned.why, sizeof what->replanned.why, "%.255s", err->text);
        st = ST_OK;
    } else if (st == ST_OK) {
        st = put_in_place (plan, &there, &what->in_place_s, &in_place, what->why, err);
        if (st == ST_OK && !what->change && in_place.gpu && plan->lower_bound_s > 0) {
            /* The plan in hand is what the search found: it is not searched again. */
            in_place.lower_bound_s = plan->lower_bound_s;
            what->replanned.fits = true;
            what->replanned.plan = in_place;
            free (marks);
            return ST_OK;
        }
        if (st == ST_OK && plan->settings)
            st = report_find_best (&there, plan->settings, &serving, &what->replanned,
                                   err);
        if (st == ST_OK && in_place.gpu && plan->p->objective == MAPPER_STEP)
            take_in_place (&what->replanned, &in_place);
        else
            mapper_result_release (&in_place);
    }
    free (marks);
    return st;
}

enum status report_whatif_run (const struct report_whatif_plan *plan,
                               struct report_whatif *w,
                               void (*show) (void *context, const char *what),
                               void *context, struct error *err)
{
    for (int k = 0; k < w->n; k++) {
        show (context, k ? w->what[k].change : "the cluster as it is");
        TRY (report_what_run (plan, &w->what[k], err));
    }
    return ST_OK;
}

int report_certain (const struct mapper_result *before, const struct mapper_result *after)
{
    return after->estimate.step_s < before->lower_bound_s   ? 1
           : after->lower_bound_s > before->estimate.step_s ? -1
                                                            : 0;
}

const char *report_surely (const struct mapper_result *before,
                           const struct mapper_result *after)
{
    static const char *const word[] = {"longer", "within the gap", "shorter"};

    return word[1 + report_certain (before, after)];
}

/* ---- JSON ---- */

json_t *report_config_json (const struct workload_config *c)
{
    json_t *doc = json_pack ("{s:o}", "degrees", workload_degrees_to_json (&c->deg));

    json_object_update_new (doc, workload_settings_to_json (c));
    return doc;
}

static json_t *replanned_json (const struct report_what *base,
                               const struct report_what *what)
{
    const struct report_best *b = &what->replanned;
    json_t *doc;

    if (!b->fits)
        return json_pack ("{s:b, s:s}", "fits", 0, "why", b->why);
    doc = report_config_json (&b->plan.config);
    json_object_update_new (
        doc, json_pack ("{s:b, s:f, s:f, s:f}", "fits", 1, "step_s",
                        b->plan.estimate.step_s, "lower_bound_s", b->plan.lower_bound_s,
                        "gap", b->plan.estimate.step_s / b->plan.lower_bound_s - 1.0));
    if (base->replanned.fits && base != what)
        json_object_set_new (
            doc, "surely", json_string (report_surely (&base->replanned.plan, &b->plan)));
    return doc;
}

json_t *report_whatif_to_json (const struct report_whatif *w)
{
    json_t *list = json_array ();

    for (int k = 0; k < w->n; k++) {
        const struct report_what *one = &w->what[k];
        bool can = isfinite (one->in_place_s);
        json_t *doc =
            json_pack ("{s:o, s:{s:b, s:o}, s:o}", "change",
                       one->change ? json_string (one->change) : json_null (), "in_place",
                       "possible", can, "step_s", json_number_or_null (one->in_place_s),
                       "replanned", replanned_json (w->what, one));

        if (!can)
            json_object_set_new (json_object_get (doc, "in_place"), "why",
                                 json_string (one->why));
        json_array_append_new (list, doc);
    }
    return list;
}
