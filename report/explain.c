/* Changes of the cluster are tried as statements of a what-if, so that each gain is what
 * --what-if, or the same edit of the file, says.  One cluster is made at a time: it is priced in
 * place and dropped, and made again for the few that are placed anew. */
#include "report/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/units.h"
#include "topology/typical.h"

#define MOST 12        /* of nodes and GPUs that are tried */
#define RIVALS_MOST 4  /* of the plan file's list */
#define DEGREE_STEPS 6 /* of pairs of degrees */

/* At most: as it is, the best of each kind, a node drained, more memory, degrees, rivals. */
#define SEARCHES (1 + REPORT_KINDS + 1 + 1 + DEGREE_STEPS + RIVALS_MOST)

struct explaining {
    struct report_whatif_plan plan;
    struct mapper_settings settings;
    struct mapper_problem problem; /* its search keeps tp, pp, cp, ep and etp alone */
    const struct workload_plan *old;
    struct report_explained *x;
    struct mapper_result base; /* as it is, placed anew */
    void (*show) (void *context, double share, const char *what);
    void *context;
    int searched; /* of SEARCHES; those that there is no need for count too */
    struct error *err;
};

const char *report_kind_name (enum report_kind k)
{
    static const char *const name[REPORT_KINDS] = {"link", "link inside", "pair",
                                                   "node", "GPU",         "setting"};

    return name[k];
}

/* -INFINITY where there is no step. */
static double saved (double step_s, double of_s)
{
    return isfinite (step_s) && isfinite (of_s) ? 1.0 - step_s / of_s : -INFINITY;
}

/* Share of the step that it saves: in place of the plan's, placed anew of what that gives without
 * it (settings: of the plan's); the larger of the two, below 0 where both are longer.
 * -INFINITY: neither is possible. */
static double gain_share (const struct report_explained *x, const struct report_gain *g)
{
    return fmax (
        saved (g->in_place_s, x->estimate.step_s),
        saved (g->replanned_s, g->is_change ? x->replanned_s : x->estimate.step_s));
}

const char *report_gain_surely (const struct report_explained *x,
                                const struct report_gain *g)
{
    return !isfinite (g->share)                                       ? NULL
           : saved (g->in_place_s, x->estimate.step_s) > REPORT_WORTH ? "in place"
           : g->certain > 0                                           ? "yes"
                                                                      : "within the gap";
}

static void tell (const struct explaining *e, const char *what)
{
    if (e->show)
        e->show (e->context, (double) e->searched / SEARCHES, what);
}

static struct report_gain *add (struct explaining *e, enum report_kind kind)
{
    struct report_explained *x = e->x;

    if (!array_grow (&x->gain, (size_t) x->n_gains, sizeof *x->gain)) {
        err_nomem (e->err);
        return NULL;
    }
    x->gain[x->n_gains] =
        (struct report_gain){.kind = kind, .in_place_s = NAN, .replanned_s = NAN};
    return &x->gain[x->n_gains++];
}

/* ---- changes of the cluster ---- */

/* Try one; what the cluster has no place for is left out. */
static enum status try (struct explaining *e, enum report_kind kind,
                        const char *statement)
{
    struct report_whatif_plan in_place = e->plan;
    struct report_what one = {0};
    struct report_gain *g = NULL;
    enum status st;

    tell (e, statement);
    in_place.settings = NULL;
    st = report_what_read (e->plan.p->cluster, statement, &one, e->err);
    if (st == ST_INVALID) {
        report_what_release (&one);
        return ST_OK;
    }
    if (st == ST_OK)
        st = report_what_run (&in_place, &one, e->err);
    if (st == ST_OK && !(g = add (e, kind)))
        st = ST_NOMEM;
    if (st == ST_OK) {
        g->is_change = true;
        g->in_place_s = one.in_place_s;
        snprintf (g->what, sizeof g->what, "%s", statement);
        memcpy (g->why, one.why, sizeof g->why);
    }
    report_what_release (&one);
    return st;
}

/* Nodes that are tried, in the order in which something was found about them. */
struct suspects {
    bool *is;  /* [n_nodes] */
    int *node; /* [n] */
    int n;
};

static void suspect (struct suspects *s, int node)
{
    if (!s->is[node])
        s->node[s->n++] = node;
    s->is[node] = true;
}

/* A node's name, or a GPU's. */
static void name_end (const struct topology_cluster *c, int gpu, bool single,
                      char out[300])
{
    const char *node = c->node[c->node_of_gpu[gpu]].name;

    if (single)
        snprintf (out, 300, "%s:%d", node, topology_gpu_index (c, gpu));
    else
        snprintf (out, 300, "%s", node);
}

/* What is found slow at the same level of three sorts. */
static const struct sort {
    enum costmodel_slow slow;
    enum report_kind kind;
    const char *statement;
} sorts[] = {{COSTMODEL_INSIDE, REPORT_INSIDE, "link"},
             {COSTMODEL_TOTALS, REPORT_PAIR, "pair"},
             {COSTMODEL_BETWEEN, REPORT_LINK, "link"}};
#define SORTS ((int) (sizeof sorts / sizeof *sorts))

static enum status try_slow (struct explaining *e, const struct sort *sort,
                             const struct costmodel_binding *b, struct suspects *found)
{
    const struct topology_cluster *c = e->plan.p->cluster;
    int from_node = c->node_of_gpu[b->src_gpu], to_node = c->node_of_gpu[b->dst_gpu];
    bool single =
        sort->kind == REPORT_INSIDE || (sort->kind == REPORT_LINK && c->has_gpu_links);
    char from[300], to[300], statement[700];

    if (!(b->bytes_per_s < 0.99 * b->median_bytes_per_s))
        return ST_OK;
    suspect (found, from_node);
    suspect (found, to_node);
    if (sort->kind == REPORT_INSIDE && topology_inside_alike (c, from_node))
        return ST_OK; /* it is the node that is slow, not one link */
    name_end (c, b->src_gpu, single, from);
    name_end (c, b->dst_gpu, single, to);
    snprintf (statement, sizeof statement, "%s %s->%s = %.6g", sort->statement, from, to,
              b->median_bytes_per_s / UNITS_GB);
    return try (e, sort->kind, statement);
}

/* The slowest of each sort, then the second of each: nodes are tried in this order. */
static enum status try_links (struct explaining *e, struct suspects *found)
{
    const struct mapper_problem *p = e->plan.p;
    struct costmodel_problem priced = mapper_priced (p, e->plan.config, e->plan.layers);
    struct costmodel_binding slow[SORTS][COSTMODEL_SLOW_LINKS];
    int n[SORTS];

    for (int s = 0; s < SORTS; s++)
        TRY (costmodel_slow_links (&priced, e->plan.gpu, sorts[s].slow, slow[s], &n[s],
                                   e->err));
    for (int k = 0; k < COSTMODEL_SLOW_LINKS; k++)
        for (int s = 0; s < SORTS; s++)
            if (k < n[s])
                TRY (try_slow (e, &sorts[s], &slow[s][k], found));
    return ST_OK;
}

struct slow_gpu {
    int gpu;
    double speed;
};

static int by_speed (const void *a, const void *b)
{
    const struct slow_gpu *x = a, *y = b;

    return x->speed != y->speed ? (x->speed > y->speed) - (x->speed < y->speed)
                                : x->gpu - y->gpu;
}

static enum status try_gpus (struct explaining *e, struct suspects *found)
{
    const struct topology_cluster *c = e->plan.p->cluster;
    int world = (int) workload_world (&e->plan.config->deg), n = 0;
    struct slow_gpu *slow = calloc ((size_t) world, sizeof *slow);
    enum status st = slow ? ST_OK : err_nomem (e->err);

    for (int r = 0; slow && r < world; r++) {
        double speed = topology_gpu_speed (c, e->plan.gpu[r]);

        if (speed < 1.0)
            slow[n++] = (struct slow_gpu){e->plan.gpu[r], speed};
    }
    if (n > 1)
        qsort (slow, (size_t) n, sizeof *slow, by_speed);
    for (int k = 0; k < n && k < MOST && st == ST_OK; k++) {
        int node = c->node_of_gpu[slow[k].gpu];
        char statement[300];

        snprintf (statement, sizeof statement, "gpu %s:%d speed 1", c->node[node].name,
                  topology_gpu_index (c, slow[k].gpu));
        st = try (e, REPORT_GPU, statement);
        suspect (found, node);
    }
    free (slow);
    return st;
}

static enum status try_nodes (struct explaining *e, const struct suspects *found)
{
    const struct topology_cluster *c = e->plan.p->cluster;
    char statement[300];

    for (int k = 0; k < found->n && k < MOST; k++) {
        snprintf (statement, sizeof statement, "mend %s", c->node[found->node[k]].name);
        TRY (try (e, REPORT_NODE, statement));
    }
    return ST_OK;
}

/* ---- placed anew ---- */

/* The same change with a search; the base is what a search finds without it. */
static enum status replan (struct explaining *e, struct report_gain *g)
{
    struct report_what one = {0};
    enum status st;

    tell (e, g->what);
    st = report_what_read (e->plan.p->cluster, g->what, &one, e->err);
    if (st == ST_OK)
        st = report_what_run (&e->plan, &one, e->err);
    e->searched++;
    if (st == ST_OK) {
        g->replanned_s =
            one.replanned.fits ? one.replanned.plan.estimate.step_s : INFINITY;
        if (one.replanned.fits)
            g->certain = report_certain (&e->base, &one.replanned.plan);
        else
            memcpy (g->why, one.replanned.why, sizeof g->why);
    }
    report_what_release (&one);
    return st;
}

/* The kind's largest gain in place; -1: none gains. */
static int best_of_kind (const struct report_explained *x, enum report_kind kind)
{
    int best = -1;

    for (int k = 0; k < x->n_gains; k++)
        if (x->gain[k].kind == kind && x->gain[k].is_change &&
            (best < 0 || x->gain[k].in_place_s < x->gain[best].in_place_s))
            best = k;
    return best;
}

static enum status replan_best (struct explaining *e)
{
    struct report_what as_it_is = {0};
    enum status st;

    tell (e, "the cluster as it is");
    st = report_what_run (&e->plan, &as_it_is, e->err);
    e->searched++;
    if (st == ST_OK && as_it_is.replanned.fits) {
        e->x->replanned_s = as_it_is.replanned.plan.estimate.step_s;
        e->base = as_it_is.replanned.plan;
        as_it_is.replanned.plan = (struct mapper_result){0};
    }
    report_what_release (&as_it_is);
    for (int kind = 0; kind < REPORT_KINDS && st == ST_OK && e->base.gpu; kind++) {
        int k = best_of_kind (e->x, (enum report_kind) kind);

        if (k >= 0)
            st = replan (e, &e->x->gain[k]);
        else
            e->searched++;
    }
    return st;
}

/* The node whose mending gains most, without it. */
static enum status try_drain (struct explaining *e)
{
    int k = best_of_kind (e->x, REPORT_NODE);
    struct report_gain *g;

    if (k < 0 || !e->base.gpu) {
        e->searched++;
        return ST_OK;
    }
    if (!(g = add (e, REPORT_NODE)))
        return ST_NOMEM;
    g->is_change = true;
    snprintf (g->what, sizeof g->what, "drain %.300s",
              e->x->gain[k].what + strlen ("mend "));
    return replan (e, g);
}

/* ---- settings ---- */

/* The plan's placement and layers of another configuration of the same degrees, or the best of
 * one that is to be placed anew: its step, its breakdown, or why there is none. */
static enum status price (struct explaining *e, const struct workload_config *c,
                          const struct workload_job *job, bool anew, double *step_s,
                          struct costmodel_breakdown *part, char why[256])
{
    struct mapper_problem p = *e->plan.p;
    struct mapper_result r = {.lower_bound_s = 0};
    struct mapper_info info = {0};
    struct error wrong = {""};
    enum status st;

    p.job = job;
    p.axes = mapper_axes_of (c);
    *step_s = INFINITY;
    st = workload_config_check (p.model, p.job, c, &wrong);
    if (st == ST_OK)
        st = workload_config_offered (c, p.profile, &wrong);
    if (st == ST_OK)
        st = !anew ? mapper_result_put (&p, c, e->plan.layers, e->plan.gpu, &r, &wrong)
                   : mapper_search (&p, e->plan.settings, &r, &info, &wrong);
    if (st == ST_OK) {
        *step_s = r.estimate.step_s;
        if (part)
            *part = r.estimate.part;
    } else if (info.missed)
        snprintf (why, 256, "stage %d needs %.1f GiB, the limit is %.1f GiB",
                  info.miss.stage, info.miss.memory.peak_bytes / UNITS_GIB,
                  info.miss.limit_bytes / UNITS_GIB);
    else
        snprintf (why, 256, "%.255s", wrong.text);
    e->searched += anew;
    mapper_result_release (&r);
    mapper_info_release (&info);
    return st == ST_NOMEM ? err_nomem (e->err) : ST_OK;
}

static enum status try_config (struct explaining *e, const struct workload_config *c,
                               bool anew, const char *what)
{
    struct report_gain *g = add (e, REPORT_SETTING);

    if (!g)
        return ST_NOMEM;
    tell (e, what);
    snprintf (g->what, sizeof g->what, "%s", what);
    return price (e, c, e->plan.p->job, anew, anew ? &g->replanned_s : &g->in_place_s,
                  NULL, g->why);
}

/* The same batches, one micro-batch more in each: the step for as many sequences as before. */
static enum status try_microbatch (struct explaining *e)
{
    struct report_gain *g = add (e, REPORT_SETTING);
    const struct workload_config *c = e->plan.config;
    struct workload_job job = *e->plan.p->job;

    if (!g)
        return ST_NOMEM;
    job.global_batch += c->micro_batch * c->deg.dp;
    snprintf (g->what, sizeof g->what, "one more micro-batch (global batch %d)",
              job.global_batch);
    TRY (price (e, c, &job, false, &g->in_place_s, NULL, g->why));
    g->in_place_s *= (double) e->plan.p->job->global_batch / job.global_batch;
    return ST_OK;
}

static enum status try_recompute (struct explaining *e)
{
    static const struct {
        enum workload_recompute way;
        const char *what;
    } way[] = {{RECOMPUTE_NONE, "recompute none"},
               {RECOMPUTE_SELECTIVE, "recompute selective"},
               {RECOMPUTE_FULL, "recompute full"}};

    for (size_t k = 0; k < sizeof way / sizeof *way; k++) {
        struct workload_config c = *e->plan.config;

        if (c.recompute == way[k].way && c.recompute_layers == 0 &&
            c.recompute_modules == 0)
            continue;
        c.recompute = way[k].way;
        c.recompute_layers = 0;
        c.recompute_modules = 0;
        TRY (try_config (e, &c, false, way[k].what));
    }
    return ST_OK;
}

/* Twice and half the micro-batch; ZeRO one stage up and down; sequence parallelism. */
static enum status try_numbers (struct explaining *e)
{
    const struct workload_config *now = e->plan.config;
    struct workload_config c = *now;
    char what[64];

    for (int up = 1; up >= 0; up--) {
        c.micro_batch = up ? 2 * now->micro_batch : now->micro_batch / 2;
        snprintf (what, sizeof what, "micro-batch %d", c.micro_batch);
        if (c.micro_batch > 0)
            TRY (try_config (e, &c, false, what));
    }
    c = *now;
    for (int by = -1; by <= 1; by += 2) {
        c.zero = now->zero + by;
        snprintf (what, sizeof what, "zero %d", c.zero);
        if (c.zero >= 0 && c.zero <= 3)
            TRY (try_config (e, &c, false, what));
    }
    c = *now;
    c.sequence_parallel = !c.sequence_parallel;
    return c.deg.tp > 1 ? try_config (e, &c, false,
                                      c.sequence_parallel ? "sequence parallelism on"
                                                          : "sequence parallelism off")
                        : ST_OK;
}

/* One degree doubled, another one halved. */
static enum status try_degrees (struct explaining *e)
{
#define DEGREE(d) offsetof (struct workload_degrees, d), #d
    static const struct {
        size_t up;
        const char *up_name;
        size_t down;
        const char *down_name;
    } step[DEGREE_STEPS] = {{DEGREE (tp), DEGREE (dp)}, {DEGREE (dp), DEGREE (tp)},
                            {DEGREE (pp), DEGREE (dp)}, {DEGREE (dp), DEGREE (pp)},
                            {DEGREE (tp), DEGREE (pp)}, {DEGREE (pp), DEGREE (tp)}};

    for (size_t k = 0; k < DEGREE_STEPS; k++) {
        struct workload_config c = *e->plan.config;
        int *up = (int *) (void *) ((char *) &c.deg + step[k].up),
            *down = (int *) (void *) ((char *) &c.deg + step[k].down);
        char what[64];

        if (*down % 2) { /* nothing to halve */
            e->searched++;
            continue;
        }
        *up *= 2;
        *down /= 2;
        if (c.deg.etp == e->plan.config->deg.tp)
            c.deg.etp = c.deg.tp;
        c.sequence_parallel = c.sequence_parallel && c.deg.tp > 1;
        snprintf (what, sizeof what, "%s %d, %s %d", step[k].up_name, *up,
                  step[k].down_name, *down);
        TRY (try_config (e, &c, true, what));
    }
    return ST_OK;
}

/* ---- rivals ---- */

/* A configuration of the plan file's list.  @return false: it is not one */
static bool read_config (const json_t *one, struct workload_config *c)
{
    const char *recompute = json_member_text (one, "recompute"),
               *schedule = json_member_text (one, "schedule");

    c->recompute_layers = 0;
    c->recompute_modules = 0;
    c->deg = (struct workload_degrees){.tp = (int) json_member_int (one, "tp"),
                                       .pp = (int) json_member_int (one, "pp"),
                                       .dp = (int) json_member_int (one, "dp"),
                                       .cp = (int) json_member_int (one, "cp"),
                                       .ep = (int) json_member_int (one, "ep"),
                                       .etp = (int) json_member_int (one, "etp"),
                                       .vpp = (int) json_member_int (one, "vpp")};
    c->micro_batch = (int) json_member_int (one, "micro_batch");
    c->zero = (int) json_member_int (one, "zero");
    c->sequence_parallel = json_is_true (json_object_get (one, "sequence_parallel"));
    return recompute && schedule && workload_recompute_parse (recompute, c) &&
           workload_schedule_parse (schedule, &c->schedule);
}

#define PARTS_TOLD 3 /* the largest */

static enum status find_rivals (struct explaining *e)
{
    json_t *top = json_object_get (json_object_get (e->old->doc, "search"), "top"), *one;
    struct report_explained *x = e->x;
    size_t i;

    json_array_foreach (top, i, one)
    {
        struct report_rival rival = {.config = *e->plan.config};
        struct mapper_axes own = mapper_axes_of (e->plan.config);

        if (!read_config (one, &rival.config) || x->n_rivals == RIVALS_MOST ||
            mapper_axes_hold (&own, &rival.config))
            continue;
        tell (e, "the next-best configurations");
        TRY (price (e, &rival.config, e->plan.p->job, true, &rival.step_s, &rival.more_s,
                    rival.why));
        if (isfinite (rival.step_s))
            costmodel_breakdown_less (&rival.more_s, &x->estimate.part);
        if (!array_grow (&x->rival, (size_t) x->n_rivals, sizeof *x->rival))
            return err_nomem (e->err);
        x->rival[x->n_rivals++] = rival;
    }
    return ST_OK;
}

const char *report_more_text (const struct costmodel_breakdown *more_s,
                              char buf[REPORT_MORE_TEXT])
{
    double whole = 0.0;
    bool told[COSTMODEL_PARTS] = {false};
    size_t len = 0;

    buf[0] = '\0';
    for (int k = 0; k < COSTMODEL_PARTS; k++)
        whole = fmax (whole, fabs (costmodel_part_s (more_s, k)));
    for (int n = 0; n < PARTS_TOLD; n++) {
        int most = COSTMODEL_PARTS;

        for (int k = 0; k < COSTMODEL_PARTS; k++)
            if (!told[k] &&
                (most == COSTMODEL_PARTS || fabs (costmodel_part_s (more_s, k)) >
                                                fabs (costmodel_part_s (more_s, most))))
                most = k;
        if (fabs (costmodel_part_s (more_s, most)) <= 0.02 * whole)
            break;
        told[most] = true;
        len += (size_t) snprintf (buf + len, REPORT_MORE_TEXT - len, "%s%.3g s %s %s",
                                  len ? ", " : "", fabs (costmodel_part_s (more_s, most)),
                                  costmodel_part_s (more_s, most) > 0 ? "more" : "less",
                                  costmodel_parts[most].words);
    }
    if (len == 0)
        snprintf (buf, REPORT_MORE_TEXT, "no part of the step differs");
    return buf;
}

/* ---- all of it ---- */

static int by_share (const void *a, const void *b)
{
    double x = ((const struct report_gain *) a)->share,
           y = ((const struct report_gain *) b)->share;

    return (x < y) - (x > y);
}

/* What is slow, from the surest to blame on a node to the least. */
static enum status try_slow_parts (struct explaining *e)
{
    size_t n = (size_t) e->plan.p->cluster->n_nodes;
    struct suspects found = {calloc (n, sizeof *found.is), calloc (n, sizeof *found.node),
                             0};
    enum status st = found.is && found.node ? try_gpus (e, &found) : err_nomem (e->err);

    if (st == ST_OK)
        st = try_links (e, &found);
    if (st == ST_OK)
        st = try_nodes (e, &found);
    free (found.is);
    free (found.node);
    return st;
}

static enum status explain_cluster (struct explaining *e)
{
    TRY (try_slow_parts (e));
    TRY (try (e, REPORT_SETTING, "nics x 2"));
    TRY (try (e, REPORT_SETTING, "pairs x 2"));
    TRY (replan_best (e));
    TRY (try_drain (e));
    if (!e->base.gpu)
        return ST_OK;
    TRY (try (e, REPORT_SETTING, "memory x 1.1"));
    return replan (e, &e->x->gain[e->x->n_gains - 1]);
}

static enum status explain_settings (struct explaining *e)
{
    TRY (try_microbatch (e));
    TRY (try_recompute (e));
    TRY (try_numbers (e));
    TRY (try_degrees (e));
    return find_rivals (e);
}

static void loosen (struct mapper_problem *p, const struct workload_config *c)
{
    p->axes = mapper_axes_resumed (c);
    p->axes.tp = c->deg.tp;
    p->axes.pp = c->deg.pp;
    p->axes.cp = c->deg.cp;
    p->axes.ep = c->deg.ep;
    p->axes.etp = c->deg.etp;
}

enum status report_explain (const struct mapper_problem *p,
                            const struct workload_plan *plan, const int *gpu,
                            void (*show) (void *context, double share, const char *what),
                            void *context, struct report_explained *out,
                            struct error *err)
{
    static const struct mapper_nodes all;
    struct report_explained x = {.replanned_s = INFINITY};
    struct explaining e = {.settings = mapper_settings_default (),
                           .problem = *p,
                           .old = plan,
                           .x = &x,
                           .show = show,
                           .context = context,
                           .err = err};
    struct costmodel_problem priced =
        mapper_priced (p, &plan->config, plan->layers_per_stage);
    enum status st;

    loosen (&e.problem, &plan->config);
    e.plan = (struct report_whatif_plan){.p = &e.problem,
                                         .nodes = &all,
                                         .settings = &e.settings,
                                         .config = &plan->config,
                                         .layers = plan->layers_per_stage,
                                         .gpu = gpu};
    st = costmodel_estimate (&priced, gpu, true, &x.estimate, err);
    if (st == ST_OK) {
        free (x.estimate.unmeasured);
        x.estimate.unmeasured = NULL;
        st = explain_cluster (&e);
    }
    if (st == ST_OK)
        st = explain_settings (&e);
    mapper_result_release (&e.base);
    if (st != ST_OK) {
        report_explained_release (&x);
        return st;
    }
    for (int k = 0; k < x.n_gains; k++)
        x.gain[k].share = gain_share (&x, &x.gain[k]);
    qsort (x.gain, (size_t) x.n_gains, sizeof *x.gain, by_share);
    *out = x;
    return ST_OK;
}

void report_explained_release (struct report_explained *x)
{
    free (x->gain);
    free (x->rival);
    *x = (struct report_explained){0};
}

/* ---- JSON ---- */

static json_t *gain_json (const struct report_explained *x, const struct report_gain *g)
{
    json_t *doc = json_pack (
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:s?}", "kind", report_kind_name (g->kind),
        "what", g->what, "what_if", g->is_change ? json_string (g->what) : json_null (),
        "in_place_step_s", json_number_or_null (g->in_place_s), "replanned_step_s",
        json_number_or_null (g->replanned_s), "gain", json_number_or_null (g->share),
        "surely", report_gain_surely (x, g));

    if (doc && g->why[0])
        json_object_set_new (doc, "why", json_string (g->why));
    return doc;
}

static json_t *rival_json (const struct report_rival *r)
{
    json_t *doc = report_config_json (&r->config);

    json_object_set_new (doc, "step_s", json_number_or_null (r->step_s));
    if (isfinite (r->step_s))
        json_object_set_new (doc, "more_s", costmodel_breakdown_to_json (&r->more_s));
    else
        json_object_set_new (doc, "why", json_string (r->why));
    return doc;
}

json_t *report_explained_to_json (const struct report_explained *x)
{
    json_t *gains = json_array (), *rivals = json_array ();

    for (int k = 0; k < x->n_gains; k++)
        json_array_append_new (gains, gain_json (x, &x->gain[k]));
    for (int k = 0; k < x->n_rivals; k++)
        json_array_append_new (rivals, rival_json (&x->rival[k]));
    return json_pack ("{s:i, s:f, s:o, s:o, s:o}", "version", 1, "step_s",
                      x->estimate.step_s, "replanned_step_s",
                      json_number_or_null (x->replanned_s), "gains", gains, "next_best",
                      rivals);
}
