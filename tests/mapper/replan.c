/* Replanning moves as few ranks as pays: none where nothing changed or moving costs more,
 * those of a lost node or a bad link otherwise; the list of moves leads from the old plan to
 * the new one. */
#include "tests/lib/clusters.h"
#include "tests/lib/search.h"

static struct setting a_job (struct topology_cluster *c, int tp, int pp, int dp)
{
    return small_job_as (c, 8, 2048, 64, config_of (tp, pp, dp, 1));
}

/* A plan of the setting's configuration. */
static struct workload_plan plan_of (const struct setting *s)
{
    struct mapper_problem p = search_config (s);
    struct found o = search (&p, NULL);
    struct workload_plan plan;
    struct error err = {""};

    ok (mapper_result_to_plan (&p, &o.r, &plan, &err), &err);
    found_release (&o);
    return plan;
}

struct outcome {
    struct mapper_result r;
    struct mapper_info info;
    struct mapper_replanned x;
};

static struct outcome replan_with (const struct mapper_problem *p,
                                   const struct workload_plan *old,
                                   const struct mapper_replan_settings *how)
{
    struct mapper_settings settings = mapper_settings_default ();
    struct outcome o;
    struct error err = {""};

    ok (mapper_replan (p, old, &settings, how, &o.r, &o.info, &o.x, &err), &err);
    assert_true (o.r.lower_bound_s <= o.r.estimate.step_s);
    return o;
}

static void release (struct outcome *o)
{
    mapper_result_release (&o->r);
    mapper_info_release (&o->info);
    mapper_replanned_release (&o->x);
}

/* The cluster with other rates of some links, both ways; [n][2], in GB/s. */
static struct topology_cluster *with_links (int nodes, int gpus, double usual,
                                            const int (*pair)[2], int n, double rate)
{
    double gb[16 * 16];

    for (int k = 0; k < nodes * nodes; k++)
        gb[k] = usual;
    for (int k = 0; k < n; k++)
        gb[pair[k][0] * nodes + pair[k][1]] = gb[pair[k][1] * nodes + pair[k][0]] = rate;
    return cluster_of_rates (nodes, gpus, "a100-sxm4-80g", false, gb);
}

static int node_of (const struct topology_cluster *c, const struct workload_plan *plan,
                    int rank)
{
    return topology_node_find (c, plan->place[rank].node);
}

/* ---- tests ---- */

TEST (nothing_changed)
{
    struct rng r = seeded (3);
    struct mapper_replan_settings how = mapper_replan_settings_default ();
    int rounds = getenv ("LINKWISE_LONG") ? 2 : 1;

    for (int round = 0; round < rounds; round++) {
        struct setting s = a_job (random_cluster (&r, 9, 2, 3, 0, false, false), 2, 4, 2);
        struct workload_plan old = plan_of (&s);
        struct mapper_problem p = search_problem (&s);
        struct outcome o = replan_with (&p, &old, &how);

        assert_int_equal (o.x.verdict, MAPPER_STAY);
        assert_int_equal (o.x.ranks_moved, 0);
        assert_int_equal (o.x.n_moves, 0);
        CLOSE (o.r.estimate.step_s, o.x.stay_step_s, 1e-12);
        for (int k = 0; k < old.n_ranks; k++)
            assert_int_equal (s.cluster->node_of_gpu[o.r.gpu[k]],
                              node_of (s.cluster, &old, k));
        release (&o);
        workload_plan_release (&old);
        topology_cluster_destroy (s.cluster);
    }
}

/* One link of a pipeline goes bad: one exchange with the idle node, and what it is worth. */
TEST (a_bad_link)
{
    struct setting s = a_job (with_links (9, 2, 20, NULL, 0, 0), 2, 4, 2);
    struct workload_plan old = plan_of (&s);
    const int bad[1][2] = {{node_of (s.cluster, &old, 0), node_of (s.cluster, &old, 4)}};
    struct topology_cluster *now = with_links (9, 2, 20, bad, 1, 0.5);
    struct mapper_replan_settings how = mapper_replan_settings_default ();
    struct setting later = s;

    later.cluster = now;

    struct mapper_problem p = search_problem (&later), before = search_problem (&s);
    struct outcome o = replan_with (&p, &old, &how);
    double gain_s = o.x.stay_step_s - o.r.estimate.step_s;

    assert_int_equal (o.x.verdict, MAPPER_MOVE);
    assert_true (gain_s > 0.01 * o.x.stay_step_s);
    /* Two ranks move to the idle node, or four change places with two others. */
    assert_true (o.x.ranks_moved > 0 && o.x.ranks_moved <= 4);
    assert_int_equal (o.x.n_moves, 1);
    CLOSE (o.x.move[0].gain_s, gain_s, 1e-9);

    /* Worth it or not is a matter of the steps left. */
    struct mapper_replan_settings dear = how;
    struct outcome d;

    dear.move_cost_s = 100 * gain_s;
    dear.remaining_steps = 99;
    d = replan_with (&p, &old, &dear);
    assert_int_equal (d.x.verdict, MAPPER_STAY);
    assert_int_equal (d.x.ranks_moved, 0);
    CLOSE (d.r.estimate.step_s, d.x.stay_step_s, 1e-12);
    CLOSE (d.x.best_step_s, o.r.estimate.step_s, 1e-12);
    CLOSE (d.x.pays_after_steps, 100.0, 1e-9);
    release (&d);
    dear.remaining_steps = 101;
    d = replan_with (&p, &old, &dear);
    assert_int_equal (d.x.verdict, MAPPER_MOVE);
    release (&d);
    release (&o);

    /* On the cluster as it was, the old plan stays. */
    o = replan_with (&before, &old, &how);
    assert_int_equal (o.x.verdict, MAPPER_STAY);
    release (&o);
    workload_plan_release (&old);
    topology_cluster_destroy (s.cluster);
    topology_cluster_destroy (now);
}

/* A node is lost: its ranks go to the idle one, nobody else moves where links are alike. */
TEST (a_lost_node)
{
    struct setting s = a_job (with_links (9, 2, 20, NULL, 0, 0), 2, 4, 2);
    struct workload_plan old = plan_of (&s);
    struct mapper_problem p = search_problem (&s);
    struct mapper_replan_settings how = mapper_replan_settings_default ();
    bool allowed[9];
    int lost = node_of (s.cluster, &old, 6);

    for (int i = 0; i < 9; i++)
        allowed[i] = i != lost;
    p.node_allowed = allowed;
    how.move_cost_s = 1e9; /* it has to move whatever that costs */

    struct outcome o = replan_with (&p, &old, &how);

    assert_int_equal (o.x.verdict, MAPPER_MOVE);
    assert_int_equal (o.x.ranks_gone, 2);
    assert_int_equal (o.x.ranks_moved, 2);
    assert_false (isfinite (o.x.stay_step_s));
    assert_int_equal (o.x.n_moves, 1);
    assert_true (o.x.move[0].forced);
    for (int k = 0; k < old.n_ranks; k++)
        assert_int_not_equal (s.cluster->node_of_gpu[o.r.gpu[k]], lost);
    release (&o);

    /* Two nodes lost, and eight are needed: other degrees on what is left. */
    allowed[node_of (s.cluster, &old, 0)] = false;
    o = replan_with (&p, &old, &how);
    assert_int_equal (o.x.verdict, MAPPER_RESTART);
    assert_true (strstr (o.x.old_degrees, "needs 16 GPUs, 14 can be used") != NULL);
    assert_true (workload_world (&o.r.config.deg) <= 14);
    assert_int_equal (o.x.ranks_moved, workload_world (&o.r.config.deg));
    release (&o);

    /* An axis that is fixed to something else asks for other degrees too. */
    p.node_allowed = NULL;
    p.axes.pp = 2;
    o = replan_with (&p, &old, &how);
    assert_int_equal (o.x.verdict, MAPPER_RESTART);
    assert_int_equal (o.r.config.deg.pp, 2);
    release (&o);
    workload_plan_release (&old);
    topology_cluster_destroy (s.cluster);
}

/* The moves in order, each with its gain, lead from the old step to the new one. */
static void check_moves (const struct setting *s, const struct workload_plan *old,
                         const struct outcome *o)
{
    int *gpu = malloc ((size_t) old->n_ranks * sizeof *gpu), moved = 0;
    struct setting price = *s;
    struct error err = {""};
    double before;

    price.config = old->config;
    memcpy (price.layers, old->layers_per_stage,
            (size_t) old->config.deg.pp * sizeof (int));
    ok (costmodel_plan_gpus (old, s->cluster, gpu, &err), &err);
    before = step_of (&price, gpu, NULL);
    CLOSE (before, o->x.stay_step_s, 1e-12);
    for (int k = 0; k < o->x.n_moves; k++) {
        const struct mapper_move *m = &o->x.move[k];
        double after;

        for (int i = 0; i < m->n_ranks; i++) {
            assert_int_not_equal (gpu[m->rank[i]], o->r.gpu[m->rank[i]]);
            gpu[m->rank[i]] = o->r.gpu[m->rank[i]];
        }
        moved += m->n_ranks;
        for (int a = 0; a < old->n_ranks; a++)
            for (int b = 0; b < a; b++)
                assert_int_not_equal (gpu[a], gpu[b]);
        after = step_of (&price, gpu, NULL);
        assert_true (fabs (before - after - m->gain_s) <= 1e-9 * after);
        before = after;
    }
    assert_int_equal (moved, o->x.ranks_moved);
    CLOSE (before, o->r.estimate.step_s, 1e-12);
    free (gpu);
}

/* Random clusters, some links far worse than they were: never slower than to stay, nor by
 * more than 0.2 % slower than a search that moves everything. */
TEST (random_changes)
{
    static const struct {
        int nodes, gpus, tp, pp, dp;
    } cases[] = {{5, 1, 1, 2, 2},
                 {9, 2, 2, 4, 2},
                 {7, 1, 1, 3, 2},
                 {4, 2, 1, 4, 2},
                 {6, 4, 2, 4, 2}}; /* the largest, in the long form alone */
    struct rng r = seeded (17);
    bool long_run = getenv ("LINKWISE_LONG");
    int rounds = long_run ? 30 : 1, moves = 0;
    size_t n = sizeof cases / sizeof *cases - !long_run;

    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < n; i++) {
            int nodes = cases[i].nodes, gpus = cases[i].gpus;
            struct setting s =
                a_job (random_cluster (&r, nodes, gpus, 2, 0, false, false), cases[i].tp,
                       cases[i].pp, cases[i].dp);
            struct workload_plan old = plan_of (&s);
            struct mapper_replan_settings how = mapper_replan_settings_default ();
            struct setting now = s;
            struct found fresh;

            now.cluster = random_cluster (&r, nodes, gpus, 8, 0, false, false);

            struct mapper_problem p = search_problem (&now);
            struct outcome o = replan_with (&p, &old, &how);

            assert_true (o.r.estimate.step_s <= o.x.stay_step_s * (1 + 1e-12));
            if (o.x.verdict == MAPPER_MOVE) {
                check_moves (&now, &old, &o);
                moves += o.x.n_moves;
            }
            p = search_config (&now);
            fresh = search (&p, NULL);
            if (memcmp (fresh.r.layers, old.layers_per_stage,
                        (size_t) cases[i].pp * sizeof (int)) == 0)
                assert_true (o.r.estimate.step_s <= fresh.r.estimate.step_s * 1.002);
            found_release (&fresh);
            release (&o);
            workload_plan_release (&old);
            topology_cluster_destroy (now.cluster);
            topology_cluster_destroy (s.cluster);
        }
    assert_true (moves > 0);
}

/* Ranks move by the cost model that was asked for: what the moves gain is what the step
 * loses under it. */
TEST (moves_by_the_model_asked_for)
{
    static const enum costmodel_kind kinds[] = {COSTMODEL_CRITICAL_PATH,
                                                COSTMODEL_PIPETTE, COSTMODEL_AMP};
    struct rng r = seeded (29);
    int moves[3] = {0};

    for (int round = 0; round < 2; round++) {
        struct setting s = a_job (random_cluster (&r, 9, 2, 2, 0, false, false), 2, 4, 2);
        struct workload_plan old = plan_of (&s);
        struct mapper_replan_settings how = mapper_replan_settings_default ();
        struct setting now = s;
        struct mapper_problem p;

        now.cluster = random_cluster (&r, 9, 2, 8, 0, false, false);
        p = search_config (&now);
        for (int i = 0; i < 3; i++) {
            struct outcome o;
            double gains = 0.0;

            p.cost_model = kinds[i];
            o = replan_with (&p, &old, &how);
            for (int k = 0; k < o.x.n_moves; k++)
                gains += o.x.move[k].gain_s;
            assert_true (fabs (o.x.stay_step_s - o.r.estimate.step_s - gains) <=
                         1e-9 * o.x.stay_step_s);
            moves[i] += o.x.n_moves;
            release (&o);
        }
        workload_plan_release (&old);
        topology_cluster_destroy (now.cluster);
        topology_cluster_destroy (s.cluster);
    }
    for (int i = 0; i < 3; i++)
        assert_true (moves[i] > 0);
}

/* A plan that recomputes some of a stage's layers is the old degrees, not others. */
TEST (some_layers_recomputed)
{
    struct rng r = seeded (5);
    struct setting s = a_job (random_cluster (&r, 4, 2, 2, 0, false, false), 2, 2, 2);
    struct mapper_replan_settings how = mapper_replan_settings_default ();
    struct workload_plan old;
    struct mapper_problem p;
    struct outcome o;

    s.config.recompute = RECOMPUTE_FULL;
    s.config.recompute_layers = 2;
    old = plan_of (&s);
    p = search_problem (&s);
    o = replan_with (&p, &old, &how);
    assert_int_equal (o.x.verdict, MAPPER_STAY);
    assert_string_equal (o.x.old_degrees, "");
    assert_int_equal (o.r.config.recompute_layers, 2);
    release (&o);
    workload_plan_release (&old);
    topology_cluster_destroy (s.cluster);
}
