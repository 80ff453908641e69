/* Layers to stages under the memory limit, and which class of GPU a stage needs: a MIP
 * solved by GLPK.
 *
 * Variables per stage i and class k: y_ik = 1 if the slowest GPU that stage i reckons with
 * is of class k, and l_ik its layers then.  Classes are ordered fastest first, so the
 * slots that stages up to class k reckon with may not exceed the slots of classes 0..k.
 * Speed is a wish; memory is the law: z_ij = 1 if stage i needs memory of level j or
 * larger, which caps its layers, and the stages that need up to level j may not need more
 * GPUs than have it.  The objective is the step's estimate without its sends,
 *
 *     T >= sum of all F and B + n (sum over stages a..b of F and B and the sends between)
 *          + w_b B_b + rest (F_b + B_b)
 *
 * for single stages, short runs of stages and all of them (recursion.c tells why), plus stage
 * 0's synchronisation.  The runs keep full stages apart: two in a row set a slower pace
 * than one, since their sends come on top. */
#include "mapper/bound/bound.h"
#include "mapper/milp.h"
#include "mapper/place/place_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"

#define MILP_NODES 400
#define RUN_MAX 4 /* runs of up to so many stages are rows */

/* Times of one class at its slowest GPU. */
struct class_time {
    double fwd_s, back_s;             /* per layer */
    double first_fwd_s, first_back_s; /* fixed, stage 0 */
    double inner_fwd_s, inner_back_s;
    double last_fwd_s, last_back_s;
};

static struct class_time time_of (const struct pool *pool,
                                  const struct workload_config *c, int q)
{
    const struct mapper_problem *p = pool->problem;
    struct costmodel_compute k;
    double speed = pool->class[q].speed, tp = bound_tp_s (pool, c, q), fwd_ops, back_ops;
    struct workload_stage one = {.dense = 1}, none = {0};
    struct costmodel_stage_time layer, empty;
    struct class_time t;

    pool_compute (pool, c, q, &k);
    costmodel_untold_mean (p->model, &k);
    /* Of a model with experts, every layer counts as one with them. */
    if (p->model->experts > 0)
        one = (struct workload_stage){.expert = 1};
    costmodel_stage_compute (c, p->profile, &k, &none, &empty);
    costmodel_stage_compute (c, p->profile, &k, &one, &layer);
    costmodel_tp_operations (p->model, c, &one, &fwd_ops, &back_ops);
    t.fwd_s = (layer.fwd_s - empty.fwd_s) / speed + fwd_ops * tp;
    t.back_s = (layer.back_s - empty.back_s) / speed + back_ops * tp;
    t.inner_fwd_s = empty.fwd_s / speed;
    t.inner_back_s = empty.back_s / speed;
    t.first_fwd_s = t.inner_fwd_s + k.embed_fwd_s / speed + tp;
    t.first_back_s = t.inner_back_s + k.embed_back_s / speed;
    t.last_fwd_s = t.inner_fwd_s + k.head_fwd_s / speed;
    t.last_back_s = t.inner_back_s + k.head_back_s / speed + tp;
    return t;
}

static void fixed_time (const struct class_time *t, int stage, int pp, double *fwd,
                        double *back)
{
    bool first = stage == 0, last = stage == pp - 1;

    *fwd = first ? t->first_fwd_s : last ? t->last_fwd_s : t->inner_fwd_s;
    *back = first ? t->first_back_s : last ? t->last_back_s : t->inner_back_s;
    if (first && last) {
        *fwd += t->last_fwd_s - t->inner_fwd_s;
        *back += t->last_back_s - t->inner_back_s;
    }
}

/* One split: its input, and room for a row. */
struct split {
    const struct pool *pool;
    const struct workload_config *c;
    int classes; /* that the times tell apart */
    struct class_time t[CLASSES_MAX];
    const int *slots; /* [classes], or NULL */
    int levels;       /* different memory limits, the largest first */
    double limit_bytes[CLASSES_MAX];
    int have[CLASSES_MAX]; /* GPUs of this level or larger, on the nodes allowed */
    int *cap;              /* [levels * pp] most layers of a stage at a level */
    int *class_cap;        /* [classes of the pool * pp] the same by class */
    int *at;               /* [columns + 1] */
    double *coef;
};

/* The MIP's columns: T, then y_ik, then l_ik, then z_ij. */
static int col_y (const struct split *x, int i, int k)
{
    return 2 + i * x->classes + k;
}

static int col_l (const struct split *x, int i, int k)
{
    return 2 + (x->c->deg.pp + i) * x->classes + k;
}

static int n_before_z (const struct split *x)
{
    return 1 + 2 * x->c->deg.pp * x->classes;
}

static int cap_at (const struct split *x, int i, int level)
{
    return x->cap[level * x->c->deg.pp + i];
}

static void add_columns (glp_prob *mip, const struct split *x)
{
    int pp = x->c->deg.pp;
    double tail_s = bound_tail_s (x->pool, x->c);

    glp_add_cols (mip, n_before_z (x));
    glp_set_col_bnds (mip, 1, GLP_LO, 0, 0);
    glp_set_obj_coef (mip, 1, 1);
    for (int i = 0; i < pp; i++)
        for (int k = 0; k < x->classes; k++) {
            int l = col_l (x, i, k);

            glp_set_col_kind (mip, col_y (x, i, k), GLP_BV);
            glp_set_col_kind (mip, l, GLP_IV);
            glp_set_col_bnds (mip, l, GLP_DB, 0, cap_at (x, i, 0));
            glp_set_obj_coef (mip, l, i == 0 ? tail_s : 0);
        }
}

/* One class a stage, its layers only with it, all layers placed, slots enough. */
static void add_assignment (glp_prob *mip, const struct split *x)
{
    int pp = x->c->deg.pp, layers = x->pool->problem->model->layers, n, have = 0;
    int *at = x->at;
    double *coef = x->coef;

    for (int i = 0; i < pp; i++) {
        for (int k = 0; k < x->classes; k++) {
            at[k + 1] = col_y (x, i, k);
            coef[k + 1] = 1;
        }
        milp_row (mip, GLP_FX, 1, 1, x->classes, at, coef);
        for (int k = 0; k < x->classes; k++) {
            at[1] = col_l (x, i, k);
            at[2] = col_y (x, i, k);
            coef[1] = 1;
            coef[2] = -cap_at (x, i, 0);
            milp_row (mip, GLP_UP, 0, 0, 2, at, coef);
            coef[2] = -1; /* at least one layer */
            milp_row (mip, GLP_LO, 0, 0, 2, at, coef);
        }
    }
    n = 0;
    for (int i = 0; i < pp; i++)
        for (int k = 0; k < x->classes; k++) {
            at[++n] = col_l (x, i, k);
            coef[n] = 1;
        }
    milp_row (mip, GLP_FX, layers, layers, n, at, coef);
    for (int upto = 0; upto < x->classes - 1; upto++) {
        have += x->slots[upto];
        n = 0;
        for (int i = 0; i < pp; i++)
            for (int k = 0; k <= upto; k++) {
                at[++n] = col_y (x, i, k);
                coef[n] = x->c->deg.dp;
            }
        milp_row (mip, GLP_UP, 0, have, n, at, coef);
    }
}

/* Columns z_ij = 1 if stage i needs memory of level j, after `before` others, and their
 * rows: one level a stage, GPUs enough.  What the rows ask is what a placement needs: a
 * level's GPUs serve every stage that needs less. */
static void add_levels (glp_prob *mip, const struct split *x, int before)
{
    int pp = x->c->deg.pp, n;
    long long world = workload_world (&x->c->deg);

    glp_add_cols (mip, pp * x->levels);
    for (int i = 0; i < pp; i++) {
        for (int j = 0; j < x->levels; j++) {
            int z = before + 1 + i * x->levels + j;

            glp_set_col_kind (mip, z, GLP_BV);
            if (cap_at (x, i, j) < 1)
                glp_set_col_bnds (mip, z, GLP_FX, 0, 0);
            x->at[j + 1] = z;
            x->coef[j + 1] = 1;
        }
        milp_row (mip, GLP_FX, 1, 1, x->levels, x->at, x->coef);
    }
    for (int upto = 0; upto < x->levels; upto++) {
        n = 0;
        for (int i = 0; i < pp; i++)
            for (int j = 0; j <= upto; j++) {
                x->at[++n] = before + 1 + i * x->levels + j;
                x->coef[n] = (double) world / pp;
            }
        milp_row (mip, GLP_UP, 0, x->have[upto], n, x->at, x->coef);
    }
}

/* Has no class up to k (as fast) the memory of level j (as large)? */
static bool excludes (const struct split *x, int k, int j)
{
    for (int q = 0; q <= k; q++)
        if (x->pool->class[q].limit_bytes >= x->limit_bytes[j])
            return false;
    return true;
}

/* A stage's layers fit its level, and some class is as fast and as large as it asks. */
static void add_memory (glp_prob *mip, const struct split *x)
{
    int pp = x->c->deg.pp, before = n_before_z (x);

    add_levels (mip, x, before);
    for (int i = 0; i < pp; i++) {
        int n = 0;

        for (int k = 0; k < x->classes; k++) {
            x->at[++n] = col_l (x, i, k);
            x->coef[n] = 1;
        }
        for (int j = 0; j < x->levels; j++) {
            x->at[++n] = before + 1 + i * x->levels + j;
            x->coef[n] = -cap_at (x, i, j);
        }
        milp_row (mip, GLP_UP, 0, 0, n, x->at, x->coef);
        for (int k = 0; k < x->classes && x->slots; k++)
            for (int j = 0; j < x->levels; j++) {
                if (!excludes (x, k, j))
                    continue;
                x->at[1] = col_y (x, i, k);
                x->at[2] = before + 1 + i * x->levels + j;
                x->coef[1] = x->coef[2] = 1;
                milp_row (mip, GLP_UP, 0, 1, 2, x->at, x->coef);
            }
    }
}

/* The row of the run of stages first..last: its T is at least every F and B once, n times
 * round the run, and what stage `last` has left. */
static void add_run (glp_prob *mip, const struct split *x, int first, int last,
                     double send_s)
{
    const struct class_time *t = x->t;
    int pp = x->c->deg.pp, classes = x->classes, n = 0, *at = x->at;
    double *coef = x->coef;
    int m = workload_microbatches (x->pool->problem->job, x->c),
        length = last - first + 1;
    int wait = pp - 1 - last < m - 1 ? pp - 1 - last : m - 1;
    int rounds = (m - 1 - wait) / length, rest = m - 1 - wait - rounds * length;

    if (x->c->schedule == SCHEDULE_GPIPE) { /* every stage's pace is its own */
        if (length > 1)
            return;
        wait = 0;
        rounds = m - 1;
        rest = 0;
    }
    at[++n] = 1;
    coef[n] = 1;
    for (int i = 0; i < pp; i++)
        for (int k = 0; k < classes; k++) {
            /* How often the row counts its F; and its B. */
            double times =
                1 + (i >= first && i <= last ? rounds : 0) + (i == last ? rest : 0);
            double times_back = times + (i == last ? wait : 0), fwd, back;

            fixed_time (&t[k], i, pp, &fwd, &back);
            at[++n] = col_y (x, i, k);
            coef[n] = -(times_back * back + times * fwd);
            at[++n] = col_l (x, i, k);
            coef[n] = -(times_back * t[k].back_s + times * t[k].fwd_s);
        }
    milp_row (mip, GLP_LO, rounds * (length - 1) * send_s, 0, n, at, coef);
}

static void add_pace (glp_prob *mip, const struct split *x)
{
    int pp = x->c->deg.pp;
    double send_s = pp > 1 ? bound_send_s (x->pool, x->c) : 0.0;

    for (int last = 0; last < pp; last++)
        for (int first = last; first >= 0 && last - first < RUN_MAX; first--)
            add_run (mip, x, first, last, send_s);
    if (pp > RUN_MAX)
        add_run (mip, x, 0, pp - 1, send_s);
}

/* The least cap of every stage when as many layers as can be have room: a transportation
 * problem, whose linear optimum is whole. */
static enum status widest_caps (const struct split *x, int *cap, struct error *err)
{
    glp_prob *mip = glp_create_prob ();
    int pp = x->c->deg.pp;
    enum status st;

    add_levels (mip, x, 0);
    glp_set_obj_dir (mip, GLP_MAX);
    for (int i = 0; i < pp; i++)
        for (int j = 0; j < x->levels; j++)
            glp_set_obj_coef (mip, 1 + i * x->levels + j, cap_at (x, i, j));
    st = milp_solve (&mip, MILP_NODES, err);
    for (int i = 0; i < pp && st == ST_OK; i++)
        for (int j = 0; j < x->levels; j++)
            if (glp_mip_col_val (mip, 1 + i * x->levels + j) > 0.5)
                cap[i] = cap_at (x, i, j);
    milp_done (mip);
    return st;
}

/* What to take when GLPK finds nothing within its limit: as even as the memory allows. */
static enum status even_split (const struct split *x, int *layers, int *class_of_stage,
                               struct error *err)
{
    int pp = x->c->deg.pp, rest = 0, *cap = malloc ((size_t) pp * sizeof (int));
    enum status st = cap ? widest_caps (x, cap, err) : err_nomem (err);

    if (st == ST_OK)
        workload_layers_even (x->pool->problem->model->layers, pp, layers);
    for (int i = 0; i < pp && st == ST_OK; i++) {
        class_of_stage[i] = x->pool->n_classes - 1;
        if (layers[i] > cap[i]) {
            rest += layers[i] - cap[i];
            layers[i] = cap[i];
        }
    }
    for (int i = 0; i < pp && st == ST_OK && rest > 0; i++) {
        int room = cap[i] - layers[i], take = room < rest ? room : rest;

        layers[i] += take;
        rest -= take;
    }
    free (cap);
    if (st == ST_OK && rest > 0)
        st = ST_NOFIT;
    return st == ST_NOFIT
               ? err_set (err, ST_NOFIT,
                          "no split of the layers fits in the memory of these GPUs")
               : st;
}

/* Several chunks a stage: every chunk of a stage holds as many layers. */
static enum status chunk_split (const struct split *x, int *layers, int *class_of_stage,
                                struct error *err)
{
    int pp = x->c->deg.pp, *cap = malloc ((size_t) pp * sizeof (int));
    enum status st = cap ? widest_caps (x, cap, err) : err_nomem (err);

    if (st == ST_OK && !chunks_spread (x->pool, x->c, cap, layers))
        st = err_set (err, ST_NOFIT, "no split of the chunks fits in memory");
    for (int i = 0; i < pp && st == ST_OK; i++)
        class_of_stage[i] = x->pool->n_classes - 1;
    free (cap);
    return st;
}

/* Different memory limits, and how many GPUs each has at most on the nodes allowed. */
static enum status find_levels (struct split *x, struct error *err)
{
    const struct pool *pool = x->pool;
    const struct topology_cluster *c = pool->problem->cluster;
    int most = pool->problem->max_nodes;
    int *size = malloc ((size_t) pool->n_nodes * sizeof (int));

    if (!size)
        return err_nomem (err);
    for (int q = 0; q < pool->n_classes; q++) {
        double limit = pool->class[q].limit_bytes;
        int j = 0;

        while (j < x->levels && x->limit_bytes[j] > limit)
            j++;
        if (j < x->levels && x->limit_bytes[j] >= limit)
            continue;
        memmove (x->limit_bytes + j + 1, x->limit_bytes + j,
                 (size_t) (x->levels++ - j) * sizeof (double));
        x->limit_bytes[j] = limit;
    }
    for (int j = 0; j < x->levels; j++) {
        for (int i = 0; i < pool->n_nodes; i++) {
            const struct topology_node *n = &c->node[pool->node[i]];
            const struct gpu_class *k = &pool->class[pool->class_of_gpu[n->first_gpu]];

            size[i] = k->limit_bytes >= x->limit_bytes[j] ? n->gpus : 0;
        }
        qsort (size, (size_t) pool->n_nodes, sizeof (int), order_ints_down);
        x->have[j] = 0;
        for (int i = 0; i < pool->n_nodes && (most == 0 || i < most); i++)
            x->have[j] += size[i];
    }
    free (size);
    return ST_OK;
}

/* Caps by level out of caps by class. */
static enum status split_init (struct split *x, struct error *err)
{
    int pp = x->c->deg.pp;
    size_t columns;
    enum status st = find_levels (x, err);

    columns = (size_t) n_before_z (x) + (size_t) pp * (size_t) x->levels;
    x->cap = calloc ((size_t) pp * (size_t) x->pool->n_classes, sizeof (int));
    x->class_cap = malloc ((size_t) pp * (size_t) x->pool->n_classes * sizeof (int));
    x->at = malloc ((columns + 1) * sizeof (int));
    x->coef = malloc ((columns + 1) * sizeof (double));
    if (st == ST_OK && (!x->cap || !x->class_cap || !x->at || !x->coef))
        st = err_nomem (err);
    if (st == ST_OK && !pool_memory_fits (x->pool, x->c, x->class_cap))
        st = err_set (err, ST_NOFIT, "no split of the layers fits in memory");
    if (st == ST_OK)
        pool_sure_caps (x->pool, x->c, x->class_cap);
    for (int j = 0; st == ST_OK && j < x->levels; j++)
        for (int q = 0; q < x->pool->n_classes; q++)
            if (!(x->pool->class[q].limit_bytes < x->limit_bytes[j]) &&
                !(x->pool->class[q].limit_bytes > x->limit_bytes[j]))
                memcpy (x->cap + j * pp, x->class_cap + q * pp,
                        (size_t) pp * sizeof (int));
    return st;
}

/* Are there GPUs enough with the memory that each stage needs? */
static bool enough_memory (const struct split *x, const int *layers)
{
    int pp = x->c->deg.pp, needed = 0;
    int per_stage = (int) (workload_world (&x->c->deg) / pp);

    for (int j = 0; j < x->levels; j++) {
        for (int i = 0; i < pp; i++) {
            bool here = cap_at (x, i, j) >= layers[i];

            for (int less = j + 1; less < x->levels; less++)
                here = here && cap_at (x, i, less) < layers[i];
            needed += here ? per_stage : 0;
        }
        if (needed > x->have[j])
            return false;
    }
    return needed == pp * per_stage;
}

static enum status solve_mip (struct split *x, int *layers, int *class_of_stage,
                              struct error *err)
{
    glp_prob *mip = glp_create_prob ();
    enum status st;

    for (int q = 0; q < x->classes; q++)
        x->t[q] = time_of (x->pool, x->c, q);
    glp_set_obj_dir (mip, GLP_MIN);
    add_columns (mip, x);
    add_assignment (mip, x);
    add_memory (mip, x);
    add_pace (mip, x);
    st = milp_solve (&mip, MILP_NODES, err);
    for (int i = 0; i < x->c->deg.pp && st == ST_OK; i++)
        for (int k = 0; k < x->classes; k++)
            if (glp_mip_col_val (mip, col_y (x, i, k)) > 0.5) {
                class_of_stage[i] = x->slots ? k : x->pool->n_classes - 1;
                layers[i] = (int) lround (glp_mip_col_val (mip, col_l (x, i, k)));
            }
    milp_done (mip);
    return st == ST_NOFIT ? even_split (x, layers, class_of_stage, err) : st;
}

enum status stages_split (const struct pool *pool, const struct workload_config *c,
                          const int *slots, int *layers, int *class_of_stage,
                          struct error *err)
{
    struct split x = {
        .pool = pool, .c = c, .classes = slots ? pool->n_classes : 1, .slots = slots};
    enum status st = split_init (&x, err);

    if (st == ST_OK && c->deg.vpp > 1 &&
        workload_schedule_splits_backward (c->schedule)) {
        st = chunk_split (&x, layers, class_of_stage, err);
    } else if (st == ST_OK) {
        st = bound_split (pool, c, slots != NULL, x.class_cap, layers, class_of_stage,
                          err);
        if (st == ST_NOFIT || (st == ST_OK && !enough_memory (&x, layers)))
            st = c->deg.vpp > 1 ? chunk_split (&x, layers, class_of_stage, err)
                                : solve_mip (&x, layers, class_of_stage, err);
    }
    FREE_ALL (x.cap, x.class_cap, x.at, x.coef);
    return st;
}
