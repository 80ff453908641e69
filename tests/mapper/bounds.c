/* The lower bound at sizes that cannot be enumerated: below every placement of clusters of
 * unlike GPUs, the planner's own ones included, and its recursion over splits equal to
 * GLPK's MIP of the same rows. */
#include "mapper/bound/bound_private.h"
#include "mapper/milp.h"
#include "mapper/mapper.h"
#include "tests/lib/fixture.h"

/* Two or three types or speeds, nodes of a few sizes, links that differ by type. */
static struct topology_cluster *mixed_cluster (struct rng *r)
{
    static const char *const type[] = {"h100-sxm5-80g", "a100-sxm4-80g", "v100-sxm2-32g"};
    static const double rate[] = {48, 24, 12}, inside[] = {370, 230, 130};
    struct text t = {0};
    int nodes = 2 + rng_below (r, 4), gpus = 2 << rng_below (r, 3), of[8];
    bool slow_gpus = rng_below (r, 2), totals = rng_below (r, 3) == 0;

    text_add (&t, "{\"version\":1,\"name\":\"mixed\",\"nodes\":[");
    for (int i = 0; i < nodes; i++) {
        of[i] = slow_gpus ? 0 : rng_below (r, 3);
        text_add (&t, "%s{\"name\":\"n%d\",\"gpus\":%d,\"gpu_type\":\"%s\"", i ? "," : "",
                  i, gpus, type[of[i]]);
        if (slow_gpus && rng_below (r, 2)) {
            text_add (&t, ",\"speed\":[");
            for (int k = 0; k < gpus; k++)
                text_add (&t, "%s%g", k ? "," : "", rng_below (r, 4) ? 1.0 : 0.67);
            text_add (&t, "]");
        }
        text_add (&t, "}");
    }
    text_add (&t, "],\"links\":{\"intra\":[");
    for (int i = 0; i < nodes; i++)
        text_add (&t, "%s{\"latency_us\":8,\"bandwidth_gb_per_s\":%g}", i ? "," : "",
                  inside[of[i]]);
    text_add (&t, "],\"inter\":{\"latency_us\":12,");
    if (totals)
        text_add (&t, "\"node_gb_per_s\":%g,", 48.0 * (1 + rng_below (r, gpus)));
    text_add (&t, "\"bandwidth_gb_per_s\":[");
    for (int i = 0; i < nodes; i++) {
        text_add (&t, "%s[", i ? "," : "");
        for (int j = 0; j < nodes; j++)
            text_add (&t, "%s%.3f", j ? "," : "",
                      rate[of[i] > of[j] ? of[i] : of[j]] * (0.8 + 0.4 * rng_unit (r)));
        text_add (&t, "]");
    }
    text_add (&t, "]}}}");

    struct topology_cluster *c = cluster_from (text_str (&t));

    text_free (&t);
    return c;
}

/* GPUs in file order, at random, a few exchanged, or stage after stage of one kind. */
static void draw_order (struct rng *r, const struct topology_cluster *c, int *gpu)
{
    int n = c->n_gpus, how = rng_below (r, 4);

    for (int k = 0; k < n; k++)
        gpu[k] = how == 3 ? n - 1 - k : k;
    if (how == 1)
        shuffle (r, gpu, n);
    for (int k = 0; k < 3 && how == 2; k++) {
        int a = rng_below (r, n), b = rng_below (r, n), x = gpu[a];

        gpu[a] = gpu[b];
        gpu[b] = x;
    }
}

static void draw_layers (struct rng *r, struct setting *s)
{
    int left = s->model.layers, pp = s->config.deg.pp;

    workload_layers_even (left, pp, s->layers);
    for (int moves = rng_below (r, 6); moves > 0; moves--) {
        int from = rng_below (r, pp), to = rng_below (r, pp);

        if (s->layers[from] > 1) {
            s->layers[from]--;
            s->layers[to]++;
        }
    }
}

static struct mapper_problem problem_for (const struct setting *s)
{
    return (struct mapper_problem){.model = &s->model,
                                   .job = &s->job,
                                   .profile = &s->profile,
                                   .cluster = s->cluster,
                                   .axes = mapper_axes_free (),
                                   .memory_limit_pct = 95};
}

static void check_below (const struct mapper_problem *p, const struct workload_config *c,
                         double step_s, const char *what)
{
    struct pool pool;
    struct error err = {""};

    ok (pool_init (&pool, p, &err), &err);
    for (int how = BOUND_FRACTIONS; how <= BOUND_RUNS; how++) {
        double bound = bound_of (&pool, c, (enum bound_level) how);

        /* Infinite where nothing fits in memory; an order by hand does not ask. */
        if (isfinite (bound) && !(step_s >= bound * (1 - 1e-9)))
            fail_msg (
                "%s, tp %d pp %d dp %d cp %d, micro-batch %d, zero %d, recompute %d: "
                "step %.9g below bound %d, %.9g",
                what, c->deg.tp, c->deg.pp, c->deg.dp, c->deg.cp, c->micro_batch, c->zero,
                (int) c->recompute, step_s, how, bound);
    }
    pool_release (&pool);
}

static void below_everything (void **state)
{
    static const char *const profiles[] = {"megatron-core", "megatron-deepspeed"};
    struct rng r = seeded (17);
    int rounds = getenv ("LINKWISE_LONG") ? 1500 : 60, tried = 0;
    (void) state;

    for (int round = 0; round < rounds; round++) {
        struct setting s = {.cluster = mixed_cluster (&r),
                            .model = small_model (6 + rng_below (&r, 20)),
                            .job = {.seq = 512 << rng_below (&r, 4),
                                    .global_batch = 8 << rng_below (&r, 4)},
                            .profile = profile_of (profiles[rng_below (&r, 2)])};
        struct mapper_problem p = problem_for (&s);
        struct mapper_settings settings = mapper_settings_default ();
        struct mapper_result result;
        struct mapper_info info;
        struct error err = {""};

        for (int i = 0; i < 60; i++) {
            int gpu[128], dp = 1 << rng_below (&r, 5);

            s.config = config_of (1 << rng_below (&r, 4), 1 + rng_below (&r, 8), dp,
                                  1 << rng_below (&r, 2));
            s.config.deg.cp = rng_below (&r, 5) ? 1 : 2;
            s.config.zero = rng_below (&r, s.config.deg.pp == 1 ? 4 : 2);
            s.config.recompute = (enum workload_recompute) rng_below (&r, 3);
            s.config.schedule = rng_below (&r, 5) ? SCHEDULE_1F1B : SCHEDULE_GPIPE;
            if (workload_config_check (&s.model, &s.job, &s.config, NULL) != ST_OK ||
                workload_world (&s.config.deg) > s.cluster->n_gpus)
                continue;
            tried++;
            draw_layers (&r, &s);
            draw_order (&r, s.cluster, gpu);
            check_below (&p, &s.config, step_of (&s, gpu, NULL), "by hand");
        }
        settings.top = 50;
        if (round % 4 == 0) { /* the planner's own */
            ok (mapper_search (&p, &settings, &result, &info, &err), &err);
            for (int i = 0; i < result.n_top; i++)
                check_below (&p, &result.top[i].config, result.top[i].step_s, "planned");
            assert_true (info.proven);
            mapper_result_release (&result);
            mapper_info_release (&info);
        }
        topology_cluster_destroy (s.cluster);
    }
    assert_true (tried > 10 * rounds);
}

/* ---- the recursion against GLPK ---- */

static void put (glp_prob *mip, int n, const int *at, const double *coef, double least)
{
    int row = glp_add_rows (mip, 1);

    glp_set_row_bnds (mip, row, GLP_LO, least, 0);
    glp_set_mat_row (mip, row, n, at, coef);
}

/* Columns: 1 the step, then for every stage y (is it slow?) and its layers on either kind.
 * The row says: step >= S + own * (F, B of stage k) + after * (C of the stages after). */
static void put_row (glp_prob *mip, const struct bound_case *x, int k, double fwd,
                     double back, double after)
{
    const struct config_times *times = x->times;
    int at[64], n = 0;
    double coef[64], fixed = times->dearer_s + times->tail_fixed_s[0];

    at[++n] = 1;
    coef[n] = 1;
    for (int i = 0; i < times->p; i++) {
        struct stage_times l[2] = {stage_times_of (x, i, 0), stage_times_of (x, i, 1)};
        double wf = 1 + (i == k ? fwd : i > k ? after : 0);
        double wb = 1 + (i == k ? back : i > k ? after : 0);
        double more[2];

        for (int kind = 0; kind < 2; kind++) {
            more[kind] = wf * l[kind].fwd_s + wb * l[kind].back_s;
            at[++n] = 3 + 3 * i + kind;
            coef[n] = -(wf * l[kind].layer_fwd_s + wb * l[kind].layer_back_s) -
                      (i == 0 ? times->tail_layer_s[0] : 0);
        }
        fixed += more[0];
        at[++n] = 2 + 3 * i;
        coef[n] = -(more[1] - more[0]);
    }
    put (mip, n, at, coef, fixed);
}

static double solve (const struct bound_case *x)
{
    const struct config_times *times = x->times;
    glp_prob *mip = glp_create_prob ();
    int all[64], n = 0;
    double one[64], step;
    struct error err = {""};
    bool proven;

    glp_set_obj_dir (mip, GLP_MIN);
    glp_add_cols (mip, 1 + 3 * times->p);
    glp_set_col_bnds (mip, 1, GLP_LO, 0, 0);
    glp_set_obj_coef (mip, 1, 1);
    for (int k = 0; k < times->p; k++) {
        int y = 2 + 3 * k, left = bound_rounds_left (times, k);
        double wf, wb;

        glp_set_col_kind (mip, y, GLP_BV);
        for (int kind = 0; kind < 2; kind++) {
            double cap = x->cap[kind * times->p + k], sign = kind ? 1 : -1;

            glp_set_col_kind (mip, y + 1 + kind, GLP_IV);
            glp_set_col_bnds (mip, y + 1 + kind, GLP_DB, 0, cap > 0 ? cap : 1);
            /* 1 to cap layers on this kind, or none. */
            put (mip, 2, (int[]){0, y, y + 1 + kind}, (double[]){0, sign * cap, -1},
                 kind ? 0 : -cap);
            put (mip, 2, (int[]){0, y, y + 1 + kind}, (double[]){0, -sign, 1},
                 kind ? 0 : 1);
            all[++n] = y + 1 + kind;
            one[n] = 1;
        }
        bound_row_weights (times, k, &wf, &wb);
        put_row (mip, x, k, wf, wb, 0);
        if (left > 0) {
            int run = times->p - k, rounds = (left - 1) / run;

            put_row (mip, x, k, left, left, 1);
            put_row (mip, x, k, left - rounds * (run - 1), left - rounds * (run - 1),
                     1 + rounds);
        }
    }
    glp_add_rows (mip, 2);
    glp_set_row_bnds (mip, glp_get_num_rows (mip), GLP_FX, times->layers, times->layers);
    glp_set_mat_row (mip, glp_get_num_rows (mip), n, all, one);
    n = 0;
    for (int k = 0; k < times->p; k++) {
        all[++n] = 2 + 3 * k;
        one[n] = 1;
    }
    put (mip, n, all, one, x->slow);
    if (milp_solve (&mip, 100000, &proven, &err) != ST_OK)
        step = INFINITY;
    else {
        assert_true (proven);
        step = glp_mip_obj_val (mip);
    }
    milp_done (mip);
    return step;
}

static void equal_to_glpk (void **state)
{
    struct rng r = seeded (5);
    int rounds = getenv ("LINKWISE_LONG") ? 1000 : 60, found = 0;
    (void) state;

    for (int round = 0; round < rounds; round++) {
        struct setting s = {.cluster = mixed_cluster (&r),
                            .model = small_model (6 + rng_below (&r, 7)),
                            .job = {.seq = 1024, .global_batch = 4 << rng_below (&r, 5)},
                            .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
        struct mapper_problem p = problem_for (&s);
        struct pool pool;
        struct error err = {""};
        struct config_times times;
        int cap[16];
        struct bound_case x = {.times = &times, .cap = cap};

        ok (pool_init (&pool, &p, &err), &err);
        s.config = config_of (1, 2 + rng_below (&r, 4), 1, 1);
        if (workload_config_check (&s.model, &s.job, &s.config, NULL) == ST_OK) {
            double mip, mine;

            bound_divided (&pool, &s.config, pool.n_classes > 1 ? 1 : 0, NULL, &times,
                           NULL);
            /* Kinds that differ, a count of slow stages, limits of memory; no sends. */
            times.slot[1].fwd_s *= 1.0 + rng_unit (&r);
            times.slot[1].back_s *= 1.0 + rng_unit (&r);
            times.slot[1].micro_s *= 1.3;
            times.tail_layer_s[1] = times.tail_layer_s[0];
            times.tail_fixed_s[1] = times.tail_fixed_s[0];
            times.send = (struct boundary_sends){0.0, 0.0, 0.0};
            memset (times.pair_s, 0, sizeof times.pair_s);
            x.slow = rng_below (&r, times.p + 1);
            for (int k = 0; k < 2 * times.p; k++)
                cap[k] = 1 + rng_below (&r, times.layers);
            mip = solve (&x);
            mine = bound_splits (&x);
            found += isfinite (mip);
            assert_true (isfinite (mip) == isfinite (mine));
            /* GLPK's presolver let a row be broken by 0.04 and 0.14 % in two of 5,000
             * cases. */
            if (isfinite (mip))
                assert_true (mine >= mip * (1 - 1e-4) && mine <= mip * (1 + 3e-3));
        }
        pool_release (&pool);
        topology_cluster_destroy (s.cluster);
    }
    assert_true (found > rounds / 4);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (below_everything),
                                       cmocka_unit_test (equal_to_glpk)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
