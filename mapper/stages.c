/* Layers to stages under the memory limit, and which class of GPU a stage needs: a MIP
 * solved by GLPK.
 *
 * Variables per stage i and class k: y_ik = 1 if the slowest GPU that stage i may use is
 * of class k, and l_ik its layers then.  Classes are ordered fastest first, and a stage
 * may use anything at least as fast as its class, so the slots that stages up to class k
 * need may not exceed the slots of classes 0..k.  Memory caps l_ik.  The objective is the
 * step's estimate without its sends,
 *
 *     T >= sum of all F and B + n (sum over stages a..b of F and B and the sends between)
 *          + w_b B_b + rest (F_b + B_b)
 *
 * for single stages, short runs of stages and all of them (bound.c tells why), plus stage
 * 0's synchronisation.  The runs keep full stages apart: two in a row set a slower pace
 * than one, since their sends come on top. */
#include "mapper/mapper_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    struct costmodel_volume v;
    struct costmodel_ring ring = {.bytes_per_s = pool->intra_bytes_per_s,
                                  .latency_s = c->deg.tp * pool->intra_latency_s};
    double speed = pool->class[q].speed, f1, b1, f2, b2, tp = 0.0;
    struct class_time t;

    costmodel_compute (p->model, p->job, c, p->profile, pool->class[q].type, &k);
    costmodel_volume (p->model, p->job, c, p->profile, &v);
    if (c->deg.tp > pool->max_node_gpus)
        ring = (struct costmodel_ring){
            .bytes_per_s =
                fmin (pool->inter_bytes_per_s * c->deg.tp, pool->node_bytes_per_s),
            .latency_s = c->deg.tp * pool->inter_latency_s};
    if (c->deg.tp > 1 && ring.bytes_per_s > 0)
        tp = costmodel_allreduce_s (p->profile, &ring, c->deg.tp, v.tp_bytes);
    costmodel_stage_compute (c, p->profile, &k, -1, 1, &f1, &b1);
    costmodel_stage_compute (c, p->profile, &k, -1, 2, &f2, &b2);
    t.fwd_s = (f2 - f1) / speed + 2.0 * tp;
    t.back_s = (b2 - b1) / speed + (c->recompute == RECOMPUTE_FULL ? 4.0 : 2.0) * tp;
    t.inner_fwd_s = (2.0 * f1 - f2) / speed;
    t.inner_back_s = (2.0 * b1 - b2) / speed;
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

/* The MIP's columns: T, then y_ik, then l_ik. */
static int col_y (int i, int k, int classes)
{
    return 2 + i * classes + k;
}

static int col_l (int i, int k, int classes, int pp)
{
    return 2 + pp * classes + i * classes + k;
}

static void add_columns (glp_prob *mip, const struct pool *pool,
                         const struct workload_config *c, const int *caps)
{
    int pp = c->deg.pp, classes = pool->n_classes;
    double tail_s = bound_tail_s (pool, c);

    glp_add_cols (mip, 1 + 2 * pp * classes);
    glp_set_col_bnds (mip, 1, GLP_LO, 0, 0);
    glp_set_obj_coef (mip, 1, 1);
    for (int i = 0; i < pp; i++)
        for (int k = 0; k < classes; k++) {
            int y = col_y (i, k, classes), l = col_l (i, k, classes, pp);
            int cap = caps[k * pp + i];

            glp_set_col_kind (mip, y, GLP_BV);
            glp_set_col_kind (mip, l, GLP_IV);
            if (cap < 1)
                glp_set_col_bnds (mip, y, GLP_FX, 0, 0);
            if (cap < 1)
                glp_set_col_bnds (mip, l, GLP_FX, 0, 0);
            else
                glp_set_col_bnds (mip, l, GLP_DB, 0, cap);
            glp_set_obj_coef (mip, l, i == 0 ? tail_s : 0);
        }
}

/* One class a stage, its layers only with it, all layers placed, slots enough. */
static void add_assignment (glp_prob *mip, const struct pool *pool,
                            const struct workload_config *c, const int *slots,
                            const int *caps, int *at, double *coef)
{
    int pp = c->deg.pp, classes = pool->n_classes, row, n, have = 0;

    for (int i = 0; i < pp; i++) {
        row = glp_add_rows (mip, 1);
        for (int k = 0; k < classes; k++) {
            at[k + 1] = col_y (i, k, classes);
            coef[k + 1] = 1;
        }
        glp_set_row_bnds (mip, row, GLP_FX, 1, 1);
        glp_set_mat_row (mip, row, classes, at, coef);
        for (int k = 0; k < classes; k++) {
            at[1] = col_l (i, k, classes, pp);
            at[2] = col_y (i, k, classes);
            coef[1] = 1;
            coef[2] = -fmax (1, caps[k * pp + i]);
            row = glp_add_rows (mip, 2);
            glp_set_row_bnds (mip, row, GLP_UP, 0, 0);
            glp_set_mat_row (mip, row, 2, at, coef);
            coef[2] = -1; /* at least one layer */
            glp_set_row_bnds (mip, row + 1, GLP_LO, 0, 0);
            glp_set_mat_row (mip, row + 1, 2, at, coef);
        }
    }
    row = glp_add_rows (mip, 1);
    n = 0;
    for (int i = 0; i < pp; i++)
        for (int k = 0; k < classes; k++) {
            at[++n] = col_l (i, k, classes, pp);
            coef[n] = 1;
        }
    glp_set_row_bnds (mip, row, GLP_FX, pool->problem->model->layers,
                      pool->problem->model->layers);
    glp_set_mat_row (mip, row, n, at, coef);
    for (int upto = 0; upto < classes - 1; upto++) {
        have += slots[upto];
        n = 0;
        for (int i = 0; i < pp; i++)
            for (int k = 0; k <= upto; k++) {
                at[++n] = col_y (i, k, classes);
                coef[n] = c->deg.dp;
            }
        row = glp_add_rows (mip, 1);
        glp_set_row_bnds (mip, row, GLP_UP, 0, have);
        glp_set_mat_row (mip, row, n, at, coef);
    }
}

/* How often a row counts stage i's F and B beyond once. */
struct weights {
    double fwd, back;
};

/* The row of the run of stages first..last: its T is at least every F and B once, n times
 * round the run, and what stage `last` has left. */
static void add_run (glp_prob *mip, const struct pool *pool,
                     const struct workload_config *c, const struct class_time *t,
                     int first, int last, double send_s, int *at, double *coef)
{
    int pp = c->deg.pp, classes = pool->n_classes, n = 0;
    int m = workload_microbatches (pool->problem->job, c), length = last - first + 1;
    int wait = pp - 1 - last < m - 1 ? pp - 1 - last : m - 1;
    int rounds = (m - 1 - wait) / length, rest = m - 1 - wait - rounds * length;
    int row;

    if (c->schedule == SCHEDULE_GPIPE) { /* every stage's pace is its own */
        if (length > 1)
            return;
        wait = 0;
        rounds = m - 1;
        rest = 0;
    }
    row = glp_add_rows (mip, 1);
    at[++n] = 1;
    coef[n] = 1;
    for (int i = 0; i < pp; i++)
        for (int k = 0; k < classes; k++) {
            struct weights w = {1, 1};
            double fwd, back;

            if (i >= first && i <= last) {
                w.fwd += rounds;
                w.back += rounds;
            }
            if (i == last) {
                w.fwd += rest;
                w.back += rest + wait;
            }
            fixed_time (&t[k], i, pp, &fwd, &back);
            at[++n] = col_y (i, k, classes);
            coef[n] = -(w.back * back + w.fwd * fwd);
            at[++n] = col_l (i, k, classes, pp);
            coef[n] = -(w.back * t[k].back_s + w.fwd * t[k].fwd_s);
        }
    glp_set_row_bnds (mip, row, GLP_LO, rounds * (length - 1) * send_s, 0);
    glp_set_mat_row (mip, row, n, at, coef);
}

static void add_pace (glp_prob *mip, const struct pool *pool,
                      const struct workload_config *c, const struct class_time *t,
                      int *at, double *coef)
{
    int pp = c->deg.pp;
    double send_s = pp > 1 ? bound_send_s (pool, c) : 0.0;

    for (int last = 0; last < pp; last++)
        for (int first = last; first >= 0 && last - first < RUN_MAX; first--)
            add_run (mip, pool, c, t, first, last, send_s, at, coef);
    if (pp > RUN_MAX)
        add_run (mip, pool, c, t, 0, pp - 1, send_s, at, coef);
}

bool memory_fits (const struct pool *pool, const struct workload_config *c, int *caps)
{
    const struct mapper_problem *p = pool->problem;
    int pp = c->deg.pp, room = 0, layers = p->model->layers;
    double largest = 0;
    struct memest_problem memory = {p->model, p->job, c, p->profile, p->memory_model};

    if (!caps) {
        /* A quick yes: the even split on the class with the most memory. */
        bool fits = true;

        for (int q = 0; q < pool->n_classes; q++)
            largest = fmax (largest, pool->class[q].limit_bytes);
        for (int i = 0; i < pp && fits; i++) {
            struct workload_stage held =
                workload_stage_guess (p->model, c, i, (layers + pp - 1) / pp);
            struct memest_stage s;

            memest_stage (&memory, i, &held, &s);
            fits = s.peak_bytes <= largest;
        }
        if (fits)
            return true;
    }
    for (int i = 0; i < pp; i++) {
        int most = 0;

        for (int q = 0; q < (caps ? pool->n_classes : 1); q++) {
            double limit = caps ? pool->class[q].limit_bytes : largest;
            int cap = memest_max_layers (&memory, i, layers, limit);

            if (caps)
                caps[q * pp + i] = cap;
            most = cap > most ? cap : most;
        }
        if (most < 1)
            return false;
        room += most;
    }
    return room >= layers;
}

/* What to take when GLPK finds nothing within its limit: as even as the caps of the
 * slowest class allow, which any GPU may serve. */
static enum status even_split (const struct pool *pool, const struct workload_config *c,
                               const int *caps, int *layers, int *class_of_stage,
                               struct error *err)
{
    int pp = c->deg.pp, last = pool->n_classes - 1, rest = 0;

    workload_layers_even (pool->problem->model->layers, pp, layers);
    for (int i = 0; i < pp; i++) {
        int cap = caps[last * pp + i];

        class_of_stage[i] = last;
        if (layers[i] > cap) {
            rest += layers[i] - cap;
            layers[i] = cap;
        }
    }
    for (int i = 0; i < pp && rest > 0; i++) {
        int room = caps[last * pp + i] - layers[i];
        int take = room < rest ? room : rest;

        layers[i] += take;
        rest -= take;
    }
    for (int i = 0; i < pp; i++)
        if (layers[i] < 1)
            rest = 1;
    return rest == 0 ? ST_OK
                     : err_set (err, ST_NOFIT, "no split of the layers was found");
}

enum status stages_split (const struct pool *pool, const struct workload_config *c,
                          const int *slots, int *layers, int *class_of_stage,
                          struct error *err)
{
    int pp = c->deg.pp, classes = pool->n_classes;
    size_t columns = 2 + 2 * (size_t) pp * (size_t) classes;
    int *caps = malloc ((size_t) pp * (size_t) classes * sizeof (int));
    int *at = malloc ((columns + 1) * sizeof (int));
    double *coef = malloc ((columns + 1) * sizeof (double));
    struct class_time t[CLASSES_MAX];
    glp_prob *mip = NULL;
    bool proven, fits = false;
    enum status st = caps && at && coef ? ST_OK : err_nomem (err);

    if (st == ST_OK && !(fits = memory_fits (pool, c, caps)))
        st = err_set (err, ST_NOFIT, "no split of the layers fits in memory");
    if (st == ST_OK) {
        for (int q = 0; q < classes; q++)
            t[q] = time_of (pool, c, q);
        mip = glp_create_prob ();
        glp_set_obj_dir (mip, GLP_MIN);
        add_columns (mip, pool, c, caps);
        add_assignment (mip, pool, c, slots, caps, at, coef);
        add_pace (mip, pool, c, t, at, coef);
        st = milp_solve (&mip, MILP_NODES, &proven, err);
    }
    for (int i = 0; i < pp && st == ST_OK; i++)
        for (int k = 0; k < classes; k++)
            if (glp_mip_col_val (mip, col_y (i, k, classes)) > 0.5) {
                class_of_stage[i] = k;
                layers[i] =
                    (int) lround (glp_mip_col_val (mip, col_l (i, k, classes, pp)));
            }
    milp_done (mip);
    if (st == ST_NOFIT && fits)
        st = even_split (pool, c, caps, layers, class_of_stage, err);
    free (caps);
    free (at);
    free (coef);
    return st;
}
