/* Replanning: the old degrees from the old placement, beside a search that does not know it,
 * and what the difference is worth. */
#include "mapper/replan/replan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "mapper/replan/moves.h"

#define DAY_S 86400.0
#define TRIM 0.5 /* of the tie: what all moves that are taken back may cost together */

struct mapper_replan_settings mapper_replan_settings_default (void)
{
    return (struct mapper_replan_settings){.tie = MAPPER_USUAL_TIE};
}

static void drop_moves (struct mapper_replanned *x)
{
    for (int k = 0; k < x->n_moves; k++) {
        FREE_ALL (x->move[k].rank, x->move[k].node);
    }
    free (x->move);
    x->move = NULL;
    x->n_moves = x->ranks_moved = 0;
}

void mapper_replanned_release (struct mapper_replanned *x)
{
    drop_moves (x);
    *x = (struct mapper_replanned){0};
}

/* ---- the old placement here ---- */

/* Cluster-wide GPU of each old rank, -1 where it may not be used any more. */
static int find_homes (const struct mapper_problem *p, const struct workload_plan *old,
                       int *home)
{
    const struct topology_cluster *c = p->cluster;
    int gone = 0;

    for (int r = 0; r < old->n_ranks; r++) {
        int node = topology_node_find (c, old->place[r].node);
        bool may = node >= 0 && mapper_node_allowed (p, node);

        home[r] = may ? topology_gpu_find (c, node, old->place[r].gpu) : -1;
        gone += home[r] < 0;
    }
    return gone;
}

/* ---- the old degrees ---- */

/* Ranks of another placement numbered so that few move: its replicas in another turn of
 * their ring, where that costs nothing. */
static void turn_replicas (struct mover *x, const int *gpu, int *turned)
{
    const struct workload_degrees *d = &x->priced.config->deg;
    int inner = d->tp * d->cp, best_moved = x->world + 1;
    struct costmodel_price at_best;

    mover_put (x, gpu);
    at_best = mover_price (x);
    at_best.step_s *= 1.0 + 1e-9; /* sums in another order are rounded otherwise */
    memcpy (turned, gpu, (size_t) x->world * sizeof (int));
    for (int turn = 0; turn < d->dp && d->dp <= 64; turn++) {
        int *try = x->order, moved = 0;
        struct costmodel_price price;

        for (int r = 0; r < x->world; r++) {
            int stage = r / (inner * d->dp), replica = r / inner % d->dp;

            try[r] = gpu[(stage * d->dp + (replica + turn) % d->dp) * inner + r % inner];
            moved += try[r] != x->home[r];
        }
        if (moved >= best_moved)
            continue;
        mover_put (x, try);
        price = mover_price (x);
        if (!mover_legal (x, mover_gpus (x)) || mapper_price_less (&at_best, &price))
            continue;
        best_moved = moved;
        memcpy (turned, mover_gpus (x), (size_t) x->world * sizeof (int));
    }
}

/* Did the search of its own find a legal placement better by more than the tie?  Then it is
 * in hand. */
static void consider (struct mover *x, const struct mapper_result *found, double tie,
                      int *keep, int *turned)
{
    struct costmodel_price ours = mover_price (x), theirs;

    memcpy (keep, mover_gpus (x), (size_t) x->world * sizeof (int));
    if (!mover_legal (x, found->gpu)) /* it has other layers */
        return;
    turn_replicas (x, found->gpu, turned);
    mover_put (x, turned);
    theirs = mover_price (x);
    if (theirs.unmeasured < ours.unmeasured || !isfinite (ours.step_s))
        return;
    if (theirs.unmeasured > ours.unmeasured || theirs.step_s >= ours.step_s * (1.0 - tie))
        mover_put (x, keep);
}

/* Did the old plan give every node consecutive ranks? */
static bool was_by_node (const struct workload_plan *old)
{
    for (int r = 2; r < old->n_ranks; r++) {
        if (strcmp (old->place[r].node, old->place[r - 1].node) == 0)
            continue;
        for (int k = 0; k < r - 1; k++)
            if (strcmp (old->place[k].node, old->place[r].node) == 0)
                return false;
    }
    return true;
}

/* Where the old configuration's ranks go, into the result. */
static enum status move_ranks (struct mover *x, const struct workload_plan *old,
                               const struct mapper_problem *p,
                               const struct mapper_settings *s, double tie,
                               struct mapper_result *r, struct mapper_replanned *out,
                               struct error *err)
{
    bool groups = s->granularity == MAPPER_GPU ||
                  (s->granularity == MAPPER_AUTO && !was_by_node (old));
    int *keep = malloc (2 * (size_t) x->world * sizeof *keep);
    struct costmodel_price most; /* of what is taken back */
    enum status st;

    if (!keep)
        return err_nomem (err);
    mover_descend (x, groups);
    consider (x, r, tie, keep, keep + x->world);
    most = mover_price (x);
    most.step_s *= 1.0 + TRIM * tie;
    st = mover_trim_groups (x, &most, err);
    if (st == ST_OK) {
        mover_bring_home (x, groups, &most);
        memcpy (keep, mover_gpus (x), (size_t) x->world * sizeof (int));
        st = mapper_result_put (p, &old->config, old->layers_per_stage, keep, r, err);
    }
    THEN (st, mover_list (x, &out->move, &out->n_moves, err));
    for (int k = 0; st == ST_OK && k < x->world; k++)
        out->ranks_moved += keep[k] != x->home[k];
    free (keep);
    return st;
}

/* Stay, or go?  The best is in r. */
static bool worth_it (const struct mapper_replan_settings *how,
                      const struct mapper_result *r, struct mapper_replanned *out)
{
    double gain_s = out->stay_step_s - r->estimate.step_s;

    out->best_step_s = r->estimate.step_s;
    out->move_cost_s = how->move_cost_s;
    out->remaining_steps = how->remaining_steps;
    if (out->remaining_steps <= 0)
        out->remaining_steps =
            DAY_S / (isfinite (out->stay_step_s) ? out->stay_step_s : out->best_step_s);
    if (!isfinite (out->stay_step_s) || out->ranks_gone > 0)
        return true;
    out->pays_after_steps = gain_s > 0 ? how->move_cost_s / gain_s : INFINITY;
    if (r->estimate.n_unmeasured != out->stay_unmeasured)
        return r->estimate.n_unmeasured < out->stay_unmeasured;
    return gain_s > how->tie * out->stay_step_s &&
           gain_s * out->remaining_steps > how->move_cost_s;
}

/* The old placement as it is, where it can run. */
static enum status price_stay (const struct mapper_problem *p,
                               const struct workload_plan *old, const int *home,
                               struct mapper_replanned *out, struct error *err)
{
    struct mapper_result r = {.lower_bound_s = INFINITY};
    enum status st;

    out->stay_step_s = INFINITY;
    if (out->ranks_gone > 0)
        return ST_OK;
    st = mapper_result_put (p, &old->config, old->layers_per_stage, home, &r, err);
    if (st == ST_OK) {
        out->stay_step_s = r.estimate.step_s;
        out->stay_unmeasured = r.estimate.n_unmeasured;
        mapper_result_release (&r);
    }
    return st == ST_NOMEM ? st : ST_OK;
}

/* The old degrees on the cluster as it is: the best placement in r, and stay or go. */
static enum status same_degrees (const struct mapper_problem *p,
                                 const struct workload_plan *old,
                                 const struct mapper_settings *s,
                                 const struct mapper_replan_settings *how,
                                 const int *home, struct mapper_result *r,
                                 struct mapper_replanned *out, struct error *err)
{
    struct pool pool;
    struct mover x = {0};
    enum status st;

    TRY (pool_init (&pool, p, err));
    st = mover_init (&x, &pool, &old->config, old->layers_per_stage, home, err);
    THEN (st, move_ranks (&x, old, p, s, how->tie, r, out, err));
    if (st == ST_OK) {
        bool go = worth_it (how, r, out) && out->ranks_moved > 0;

        out->verdict = go ? MAPPER_MOVE : MAPPER_STAY;
        if (!go) {
            drop_moves (out);
            st = mapper_result_put (p, &old->config, old->layers_per_stage, home, r, err);
        }
    }
    mover_release (&x);
    pool_release (&pool);
    return st;
}

/* ---- other degrees ---- */

/* Is a plan of any degrees worth more than one of the old ones, which is in `same`? */
static bool restart_pays (const struct mapper_problem *p,
                          const struct mapper_replan_settings *how,
                          const struct mapper_result *same,
                          const struct mapper_result *any,
                          const struct mapper_replanned *out)
{
    double weight = mapper_weight (p, &any->config) / mapper_weight (p, &same->config);
    double gain_s = same->estimate.step_s - any->estimate.step_s * weight;
    double cost_s = out->verdict == MAPPER_STAY ? how->move_cost_s : 0.0;

    if (same->estimate.n_unmeasured != any->estimate.n_unmeasured)
        return any->estimate.n_unmeasured < same->estimate.n_unmeasured;
    return gain_s > how->tie * same->estimate.step_s &&
           gain_s * out->remaining_steps > cost_s;
}

/* Search the space that the problem's axes leave. */
static enum status search_any (const struct mapper_problem *p,
                               const struct mapper_settings *s,
                               const struct mapper_replan_settings *how,
                               struct mapper_result *r, bool have_same,
                               struct mapper_info *info, struct mapper_replanned *out,
                               struct error *err)
{
    struct mapper_result any = {0};
    struct mapper_info more = {0};
    enum status st = mapper_search (p, s, &any, &more, err);

    if (st != ST_OK) {
        if (have_same && st != ST_NOMEM) { /* the axes given leave nothing else */
            mapper_info_release (&more);
            return ST_OK;
        }
        mapper_info_release (info);
        *info = more;
        return st;
    }
    if (!have_same || restart_pays (p, how, r, &any, out)) {
        mapper_result_release (r);
        *r = any;
        drop_moves (out);
        worth_it (how, r, out);
        out->verdict = MAPPER_RESTART;
        out->ranks_moved = (int) workload_world (&r->config.deg);
    } else {
        /* The bound and the list are those of the space asked for. */
        r->lower_bound_s = fmin (any.lower_bound_s, r->lower_bound_s);
        free (r->top);
        r->top = any.top;
        r->n_top = any.n_top;
        any.top = NULL;
        mapper_result_release (&any);
    }
    mapper_info_release (info);
    *info = more;
    return ST_OK;
}

/* The search and the moves of the old degrees.  @param[out] why the old degrees cannot
 * serve, with ST_INVALID and ST_NOFIT */
static enum status
keep_degrees (const struct mapper_problem *p, const struct workload_plan *old,
              const struct mapper_settings *s, const struct mapper_replan_settings *how,
              const int *home, struct mapper_result *r, struct mapper_info *info,
              struct mapper_replanned *out, struct error *why)
{
    struct mapper_problem same = *p;
    struct mapper_settings best = *s;
    enum status st;

    if (!mapper_axes_hold (&p->axes, &old->config))
        return err_set (why, ST_INVALID, "the options ask for others");
    same.axes = mapper_axes_of (&old->config);
    best.tie = 0;
    st = mapper_search (&same, &best, r, info, why);
    return st == ST_OK ? same_degrees (&same, old, s, how, home, r, out, why) : st;
}

enum status mapper_replan (const struct mapper_problem *p,
                           const struct workload_plan *old,
                           const struct mapper_settings *s,
                           const struct mapper_replan_settings *how,
                           struct mapper_result *r, struct mapper_info *info,
                           struct mapper_replanned *out, struct error *err)
{
    struct mapper_replanned x = {.stay_step_s = INFINITY};
    struct mapper_result found = {0};
    struct error why = {""};
    int *home = malloc ((size_t) old->n_ranks * sizeof *home);
    bool have_same = false;
    enum status st = home ? ST_OK : err_nomem (err);
    struct mapper_problem own = *p;

    if (own.axes.optimizer_bytes == MAPPER_FREE)
        own.axes.optimizer_bytes = mapper_axes_resumed (&old->config).optimizer_bytes;
    if (own.axes.offload == MAPPER_FREE)
        own.axes.offload = (int) old->config.offload;
    p = &own;
    *info = (struct mapper_info){0};
    if (st == ST_OK) {
        x.ranks_gone = find_homes (p, old, home);
        st = price_stay (p, old, home, &x, err);
    }
    if (st == ST_OK) {
        st = keep_degrees (p, old, s, how, home, &found, info, &x, &why);
        have_same = st == ST_OK;
        if (st == ST_NOFIT || st == ST_INVALID) {
            snprintf (x.old_degrees, sizeof x.old_degrees, "%.255s", why.text);
            st = ST_OK;
        } else if (st != ST_OK)
            err_set (err, st, "%s", why.text);
    }
    if (st == ST_OK && (how->any_degrees || !have_same))
        st = search_any (p, s, how, &found, have_same, info, &x, err);
    free (home);
    if (st == ST_OK) {
        *r = found;
        *out = x;
    } else {
        mapper_result_release (&found);
        mapper_replanned_release (&x);
    }
    return st;
}

/* The best of all degrees by the profile in use, of the axes that the first search had. */
static enum status restart_used (struct mapper_problem *p,
                                 const struct workload_profile *of_all,
                                 const struct mapper_settings *s, struct mapper_result *r,
                                 struct mapper_info *info, struct error *err)
{
    struct mapper_problem asked = *p;
    const struct mapper_settings left = mapper_settings_left (s, info->seconds);
    bool limit_free = p->limit_free;
    enum status st;

    asked.profile = of_all;
    asked.axes.optimizer_bytes = mapper_axes_of (&r->config).optimizer_bytes;
    asked.axes.offload = (int) r->config.offload;
    asked.limit_free = false;
    st = mapper_search_serving (&asked, p, &left, r, info, err);
    p->limit_free = limit_free;
    return st;
}

/* The old placement by the profile in use. */
static enum status price_stay_again (const struct mapper_problem *p,
                                     const struct workload_plan *old,
                                     struct mapper_replanned *x, struct error *err)
{
    int *home = malloc ((size_t) old->n_ranks * sizeof *home);
    enum status st;

    if (!home)
        return err_nomem (err);
    find_homes (p, old, home);
    st = price_stay (p, old, home, x, err);
    free (home);
    return st;
}

enum status mapper_replanned_use (struct mapper_problem *p,
                                  struct workload_profile *profile,
                                  const struct workload_plan *old,
                                  const struct mapper_settings *s,
                                  struct mapper_result *r, struct mapper_info *info,
                                  struct mapper_replanned *x, struct error *err)
{
    const struct workload_profile of_all = *profile;
    struct workload_gpus on = {.n = 0};
    double to = r->estimate.step_s, gain_s = x->stay_step_s - x->best_step_s;

    TRY (mapper_result_use (p, profile, r, err));
    if (strcmp (profile->name, of_all.name) == 0)
        return ST_OK;
    to = r->estimate.step_s / to;
    if (x->verdict == MAPPER_RESTART && !info->stopped)
        TRY (restart_used (p, &of_all, s, r, info, err));
    x->best_step_s = x->verdict == MAPPER_STAY ? x->best_step_s * to : r->estimate.step_s;
    costmodel_gpus_of_plan (p->cluster, old, &on);
    if (!workload_profile_strange (profile, p->model, &on))
        TRY (price_stay_again (p, old, x, err));
    for (int k = 0; k < x->n_moves; k++)
        x->move[k].gain_s *= to;
    if (x->pays_after_steps > 0 && x->stay_step_s > x->best_step_s)
        x->pays_after_steps *= gain_s / (x->stay_step_s - x->best_step_s);
    return ST_OK;
}

/* ---- the plan file ---- */

static json_t *move_json (const struct topology_cluster *c, const struct mapper_move *m)
{
    json_t *ranks = json_array (), *nodes = json_array ();

    for (int k = 0; k < m->n_ranks; k++)
        json_array_append_new (ranks, json_integer (m->rank[k]));
    for (int k = 0; k < m->n_nodes; k++)
        json_array_append_new (nodes, json_string (c->node[m->node[k]].name));
    return json_pack ("{s:o, s:o, s:b, s:o}", "ranks", ranks, "nodes", nodes, "forced",
                      m->forced, "gain_s", json_number_or_null (m->gain_s));
}

json_t *mapper_replanned_to_json (const struct mapper_problem *p,
                                  const struct mapper_replanned *x, const char *from)
{
    static const char *const verdict[] = {"stay", "move", "restart"};
    json_t *moves = json_array (), *doc;

    for (int k = 0; k < x->n_moves; k++)
        json_array_append_new (moves, move_json (p->cluster, &x->move[k]));
    doc = json_pack ("{s:s, s:s, s:o, s:f, s:i, s:i, s:f, s:f, s:o, s:o}", "from", from,
                     "verdict", verdict[x->verdict], "stay_step_s",
                     json_number_or_null (x->stay_step_s), "best_step_s", x->best_step_s,
                     "ranks_gone", x->ranks_gone, "ranks_moved", x->ranks_moved,
                     "move_cost_s", x->move_cost_s, "remaining_steps", x->remaining_steps,
                     "pays_after_steps", json_number_or_null (x->pays_after_steps),
                     "moves", moves);
    if (doc && x->old_degrees[0])
        json_object_set_new (doc, "old_degrees", json_string (x->old_degrees));
    return doc;
}
