/* Odd pools too large to be tried whole: layers and places moved together come to the best of all
 * splits and placements, or within .5 % of it; sketches keep to limits on nodes, and lay groups
 * across them, and take usual links for what a good placement may take; which are moved on.
 * sketch_moves.c has the moves themselves. */
#include "mapper/place/place.h"
#include "mapper/place/sketch.h"
#include "mapper/search/looks.h"
#include "topology/edit/edit.h"
#include "tests/lib/search.h"
#include "tests/lib/clusters.h"

#define LAYERS 12
#define GPUS_MOST 12

static struct topology_cluster *odd_cluster (struct rng *r, int nodes, int gpus)
{
    return drawn_cluster (r, &(struct cluster_draw){.nodes = nodes,
                                                    .gpus = gpus,
                                                    .most_gpus = GPUS_MOST,
                                                    .types = 3,
                                                    .speeds = 4,
                                                    .inside = {50, 300},
                                                    .between = {.2, 3}});
}

/* Every split and placement of a pipeline. */
struct all {
    const struct setting *s;
    struct costmodel_state *state;
    int gpu[GPUS_MOST], layers[4];
    bool used[GPUS_MOST];
    double step_s;
};

static void every_split (struct all *x, int stage, int left)
{
    int pp = x->s->config.deg.pp;

    if (stage == pp - 1) {
        x->layers[stage] = left;
        costmodel_state_layers (x->state, x->layers);
        costmodel_state_exchange (x->state, NULL, NULL, 0);
        x->step_s = fmin (x->step_s, costmodel_state_price (x->state).step_s);
        return;
    }
    for (int n = 1; n <= left - (pp - 1 - stage); n++) {
        x->layers[stage] = n;
        every_split (x, stage + 1, left - n);
    }
}

static void every_placement (struct all *x, int at)
{
    int n = x->s->cluster->n_gpus;

    if (at == (int) workload_world (&x->s->config.deg)) {
        for (int g = 0, k = at; g < n; g++)
            if (!x->used[g])
                x->gpu[k++] = g;
        costmodel_state_reset (x->state, x->gpu);
        every_split (x, 0, LAYERS);
        return;
    }
    for (int g = 0; g < n; g++)
        if (!x->used[g]) {
            x->used[g] = true;
            x->gpu[at] = g;
            every_placement (x, at + 1);
            x->used[g] = false;
        }
}

static double best_of_all (const struct setting *s)
{
    struct costmodel_problem p = problem_of (s);
    struct all x = {.s = s, .step_s = INFINITY};
    struct error err = {""};

    for (int g = 0; g < s->cluster->n_gpus; g++)
        x.gpu[g] = g;
    ok (costmodel_state_create (&p, x.gpu, s->cluster->n_gpus, &x.state, &err), &err);
    every_placement (&x, 0);
    costmodel_state_destroy (x.state);
    return x.step_s;
}

TEST (near_the_best_of_all)
{
    static const int degrees[][2] = {{3, 1}, {2, 2}, {4, 1}};
    struct rng r = seeded (231);
    bool long_run = getenv ("LINKWISE_LONG");
    int rounds = long_run ? 60 : 3, nodes = long_run ? 9 : 7, best = 0;

    for (int i = 0; i < rounds; i++) {
        const int *d = degrees[i % 3];
        struct setting s = small_job_as (odd_cluster (&r, nodes, 1), LAYERS, 512, 16,
                                         config_of (1, d[0], d[1], 1));
        struct mapper_problem p = search_config (&s);
        struct mapper_settings settings = mapper_settings_default ();
        struct found o;
        double least;

        settings.granularity = MAPPER_GPU;
        o = search (&p, &settings);
        least = best_of_all (&s);
        assert_true (o.r.estimate.step_s <= least * 1.005);
        assert_true (o.r.lower_bound_s <= least * (1 + 1e-9));
        assert_false (o.info.proven && o.r.estimate.step_s > least * (1 + 1e-9));
        best += o.r.estimate.step_s <= least * (1 + 1e-9);
        found_release (&o);
        topology_cluster_destroy (s.cluster);
    }
    assert_true (best >= rounds * 8 / 10);
}

TEST (limits_hold)
{
    struct rng r = seeded (232);
    int step = getenv ("LINKWISE_LONG") ? 1 : 6;

    for (int i = 5; i >= 0; i -= step) {
        struct setting s = small_job_as (odd_cluster (&r, 6, 2), LAYERS, 512, 16,
                                         config_of (1, 3, 2, 1));
        struct mapper_problem p = search_config (&s);
        struct mapper_settings settings = mapper_settings_default ();
        bool pinned[6] = {false};
        struct found o;
        int uses[6] = {0}, n = 0;

        pinned[i] = true;
        settings.polish = 0; /* limits hold before it */
        p.max_nodes = 5;
        p.node_pinned = pinned;
        if (s.cluster->n_gpus - s.cluster->node[i].gpus < 6)
            continue;
        o = search (&p, &settings);
        for (int k = 0; k < 6; k++)
            uses[s.cluster->node_of_gpu[o.r.gpu[k]]]++;
        for (int k = 0; k < 6; k++)
            n += uses[k] > 0;
        assert_true (n <= 5);
        assert_true (uses[i] > 0);
        found_release (&o);
        topology_cluster_destroy (s.cluster);
    }
}

/* Alike nodes with uneven links: which random numbers are drawn does not decide the plan. */
TEST (luck_does_not_matter)
{
    struct rng r = seeded (4329);
    bool long_run = getenv ("LINKWISE_LONG");
    uint64_t seeds = long_run ? 3 : 2;
    int rounds = long_run ? 30 : 1;

    for (int i = 0; i < rounds; i++) {
        struct setting s =
            small_job (random_cluster (&r, 4, 4, 8, 0, false, false), LAYERS, 512, 32);
        struct mapper_problem p = search_problem (&s);
        struct mapper_settings settings = mapper_settings_default ();
        double least = INFINITY, most = 0.0;

        p.axes.pp = 4;
        settings.granularity = MAPPER_GPU;
        for (settings.seed = 1; settings.seed <= seeds; settings.seed++) {
            struct found o = search (&p, &settings);

            least = fmin (least, o.r.estimate.step_s);
            most = fmax (most, o.r.estimate.step_s);
            found_release (&o);
        }
        assert_true (most <= least * 1.001);
        topology_cluster_destroy (s.cluster);
    }
}

/* A slower node more that stays idle is no longer step: the plan of the others is sought too. */
TEST (idle_nodes_do_not_matter)
{
    struct rng r = seeded (231);
    bool long_run = getenv ("LINKWISE_LONG");
    int rounds = long_run ? 30 : 1, gpus = long_run ? 3 : 2, dp = long_run ? 2 : 1;

    for (int i = 0; i < rounds; i++) {
        struct setting s = small_job_as (odd_cluster (&r, 5, gpus), LAYERS, 512, 16,
                                         config_of (1, 3, dp, 1));
        struct topology_changed more = {0}, slow = {0};
        struct mapper_settings settings = mapper_settings_default ();
        struct mapper_problem p = search_config (&s);
        struct found with, without = search (&p, &settings);
        struct error err = {""};

        ok (topology_change (s.cluster, "+1 nodes like n0", &more, &err), &err);
        ok (topology_change (more.c, "node new1 speed 0.01", &slow, &err), &err);
        p.cluster = slow.c;
        with = search (&p, &settings);
        for (int k = 0; k < (int) workload_world (&with.r.config.deg); k++)
            if (slow.c->node_of_gpu[with.r.gpu[k]] == slow.c->n_nodes - 1)
                fail_msg ("problem %d uses the slow node", i);
        assert_true (with.r.estimate.step_s <= without.r.estimate.step_s * (1 + 1e-9));
        found_release (&with);
        found_release (&without);
        topology_changed_release (&slow);
        topology_changed_release (&more);
        topology_cluster_destroy (s.cluster);
    }
}

/* A sketch of the configuration.  @param[out] out  release it */
static void sketch (const struct mapper_problem *p, const struct workload_config *c,
                    enum sketch_ways ways, struct sketch *out)
{
    struct pool pool;
    struct groups groups;
    struct walks walks;
    struct error err = {""};

    ok (pool_init (&pool, p, &err), &err);
    ok (groups_init (&groups, &pool, c, &err), &err);
    ok (walks_init (&walks, &pool, &err), &err);
    ok (sketch_build (&pool, &walks, &groups, c, ways, INFINITY, out, &err), &err);
    walks_release (&walks);
    groups_release (&groups);
    pool_release (&pool);
}

/* A node that holds a stage and a part keeps the part idle, rather than that gradients cross. */
TEST (stages_keep_to_nodes)
{
    struct setting s = small_job_as (cluster_of ("3x7 l40s intra:100 inter:0.5"), LAYERS,
                                     512, 16, config_of (1, 3, 4, 1));
    struct mapper_problem p = search_config (&s);
    struct sketch k;

    sketch (&p, &s.config, SKETCH_WALKS, &k);
    for (int i = 0; i < 3; i++)
        node_of_stage (s.cluster, k.gpu, 4, i);
    sketch_release (&k);
    topology_cluster_destroy (s.cluster);
}

/* A V100 holds a layer of Mixtral, but not beside the embedding or the head: both ends are on the
 * GPUs that do, though the walk has these first. */
TEST (ends_get_room)
{
    struct setting s = {.model = model_of ("mixtral-8x7b"),
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT),
                        .job = {.seq = 4096, .global_batch = 64},
                        .cluster = cluster_of (
                            "1x2 h200-sxm-141g intra:370 inter:1.2 + 6x4 v100-sxm2-32g"),
                        .config = config_of (1, 25, 1, 1)};
    struct mapper_problem p = search_config (&s);
    struct sketch k;

    s.config.recompute = RECOMPUTE_FULL;
    sketch (&p, &s.config, SKETCH_USUAL, &k);
    assert_int_equal (node_of_stage (s.cluster, k.gpu, 1, 0), 0);
    assert_int_equal (node_of_stage (s.cluster, k.gpu, 1, 24), 0);
    sketch_release (&k);
    topology_cluster_destroy (s.cluster);
}

/* Places serve a configuration of other chunks too, though a stage's layers do not divide into
 * these: they are poured anew. */
TEST (places_serve_other_chunks)
{
    struct setting s = small_job_as (
        cluster_of ("1x2 h100-sxm5-80g intra:370 inter:24 + 1x2 l40s intra:20"), LAYERS,
        512, 24, config_of (1, 4, 1, 1));
    struct mapper_problem p = search_config (&s);
    const struct costmodel_price none = {.step_s = INFINITY, .smooth_s = INFINITY};
    int layers[] = {5, 5, 1, 1}, gpu[] = {0, 1, 2, 3}, sum = 0;
    const struct sketch from = {layers, gpu, none};
    struct workload_config other = s.config;
    struct sketch k;
    struct pool pool;
    struct walks walks;
    struct error err = {""};

    other.deg.vpp = 2;
    other.schedule = SCHEDULE_INTERLEAVED;
    ok (pool_init (&pool, &p, &err), &err);
    ok (walks_init (&walks, &pool, &err), &err);
    ok (sketch_adopt (&pool, &walks, &other, &from, &k, &err), &err);
    for (int i = 0; i < 4; i++) {
        assert_true (k.layers[i] >= 2);
        assert_int_equal (k.gpu[i], gpu[i]);
        sum += k.layers[i];
    }
    assert_int_equal (sum, LAYERS);
    s.config = other;
    for (int i = 0; i < 2; i++) { /* by speed in whole rounds of chunks, and even ones */
        memcpy (s.layers, i ? (int[]){3, 3, 3, 3} : (int[]){4, 4, 2, 2},
                4 * sizeof (int));
        assert_true (k.price.step_s <= step_of (&s, gpu, NULL) * (1 + 1e-9));
    }
    assert_true (isfinite (k.price.step_s));
    sketch_release (&k);
    walks_release (&walks);
    pool_release (&pool);
    topology_cluster_destroy (s.cluster);
}

/* Which sketches are moved on: of the same degrees at most half of one pace, where others may still
 * be best; and by themselves near degrees and those of the least bounds. */
TEST (what_is_moved_on)
{
    static const struct {
        int pp, vpp, zero;
        double step_s, bound_s;
    } drawn[] = {{4, 1, 0, 1.0, .9},    {4, 1, 1, 1.01, .9},  {4, 1, 2, 1.02, .9},
                 {4, 1, 3, 1.03, .9},   {2, 1, 0, 1.05, .95}, {16, 1, 0, 1.2, 1.1},
                 {12, 1, 0, 1.25, .85}, {4, 2, 0, 1.3, .7},   {4, 4, 0, 1.4, 1.2},
                 {8, 1, 0, 1.5, .8},    {6, 1, 0, 1.6, .87}};
    enum { N = sizeof drawn / sizeof *drawn };
    const int by_themselves[] = {4, 2, 8, 12};
    const long picked[] = {0, 1, 4, 6, 7, 9, 10, 2}, near[] = {0, 1, 4, 6, 7, 9, 2};
    struct mapper_problem p = {0};
    struct workload_config config[N];
    struct look look[N];
    struct search x = {.p = &p, .config = config};
    struct looks l = {.look = look, .n = N};
    const struct workload_config *like[LOOKS_DEGREES_MOST];
    long pick[N];
    int n;

    for (int i = 0; i < N; i++) {
        config[i] = config_of (1, drawn[i].pp, 4, 1);
        config[i].deg.vpp = drawn[i].vpp;
        config[i].zero = drawn[i].zero;
        look[i] = (struct look){i, drawn[i].bound_s, {.price.step_s = drawn[i].step_s}};
    }
    l.n = 4;
    assert_int_equal (looks_pick (&x, &l, 1, 4, N, pick), 4); /* no other pace */
    l.n = N;
    assert_int_equal (looks_pick (&x, &l, 1, 4, N, pick), 8);
    assert_memory_equal (pick, picked, sizeof picked);
    n = looks_degrees (&x, &l, LOOKS_DEGREES_MOST, 2, like);
    assert_int_equal (n, 4);
    for (int i = 0; i < n; i++)
        assert_int_equal (like[i]->deg.pp, by_themselves[i]);
    assert_int_equal (looks_degrees (&x, &l, 3, 2, like), 3);
    assert_int_equal (looks_degrees (&x, &l, 1, 0, like), 1);
    /* A large pool has too few moves to make up for a first layout over 1.5 times the best. */
    x.odd = true;
    x.pool.n_gpus = LOOKS_GENERATIONS_GPUS + 1;
    assert_int_equal (looks_pick (&x, &l, 1, 4, N, pick), 7);
    assert_memory_equal (pick, near, sizeof near);
}

/* A configuration has the same random numbers wherever the list has it, others than any other one
 * has, and others with another seed. */
TEST (luck_is_its_own)
{
    struct mapper_settings settings = mapper_settings_default ();
    struct search x = {.s = &settings};
    struct workload_config all[7];
    uint64_t first;

    for (int i = 0; i < 7; i++)
        all[i] = config_of (2, 4, 2, 1);
    all[1].deg.pp = 8;
    all[2].deg.vpp = 2;
    all[3].zero = 2;
    all[4].micro_batch++;
    all[5].recompute_modules = 1;
    first = looks_luck (&x, &all[0]);
    for (int i = 1; i < 6; i++)
        assert_true (looks_luck (&x, &all[i]) != first);
    assert_true (looks_luck (&x, &all[6]) == first);
    settings.seed++;
    assert_true (looks_luck (&x, &all[0]) != first);
}

/* Fast GPUs among slow ones in every stage: one stage gets them all, and layers with them.  Each of
 * them alone would make no stage faster. */
TEST (fast_gpus_gather)
{
    enum { STAGES = 4, REPLICAS = 8, N = STAGES * REPLICAS };
    struct setting s = small_job_as (
        cluster_of ("1x8 h100-sxm5-80g intra:300 inter:100 + 3x8 l40s intra:100"),
        5 * LAYERS, 2048, 64, config_of (1, STAGES, REPLICAS, 1));
    struct mapper_problem p = search_config (&s);
    const struct costmodel_price none = {.step_s = INFINITY, .smooth_s = INFINITY};
    int layers[STAGES], gpu[N];
    const struct sketch from = {layers, gpu, none};
    struct sketch k;
    struct pool pool;
    struct walks walks;
    struct error err = {""};
    int most = 0;

    for (int i = 0; i < STAGES; i++)
        layers[i] = 5 * LAYERS / STAGES;
    for (int i = 0; i < N; i++)
        gpu[i] = i % STAGES * REPLICAS + i / STAGES;
    ok (pool_init (&pool, &p, &err), &err);
    ok (walks_init (&walks, &pool, &err), &err);
    ok (sketch_copy (&from, STAGES, N, &k, &err), &err);
    ok (sketch_anneal (&pool, &walks, &s.config, 500, 1e-3, 1,
                       &(struct deadline){.until_s = INFINITY}, &k, &err),
        &err);
    for (int i = 0; i < STAGES; i++) {
        int fast = 0;

        for (int r = 0; r < REPLICAS; r++)
            fast += k.gpu[i * REPLICAS + r] < REPLICAS;
        most = fast > most ? fast : most;
        if (fast == REPLICAS)
            assert_true (k.layers[i] > 5 * LAYERS / STAGES);
    }
    assert_int_equal (most, REPLICAS);
    sketch_release (&k);
    walks_release (&walks);
    pool_release (&pool);
    topology_cluster_destroy (s.cluster);
}

/* The setting's problem in chunks that may be uneven. */
static struct mapper_problem interleaved (struct setting *s, int vpp)
{
    s->config.deg.vpp = vpp;
    s->config.schedule = SCHEDULE_INTERLEAVED;
    return search_config (s);
}

/* What nodes have left over beside a stage each is a stage together. */
TEST (what_is_over_is_a_stage)
{
    enum { STAGES = 8, REPLICAS = 3 };
    struct setting s = small_job_as (
        cluster_of ("4x4 l40s intra:20 inter:3 + 1x3 l40s intra:20 + 1x7 l40s intra:20"),
        6 * STAGES, 1024, 48, config_of (1, STAGES, REPLICAS, 1));
    struct mapper_problem p;
    struct error err = {""};
    struct sketch k;
    int whole = 0;

    ok (workload_model_read ("gpt2-xl", &s.model, NULL, &err), &err);
    p = interleaved (&s, 2);
    sketch (&p, &s.config, SKETCH_ALL, &k);
    for (int i = 0; i < STAGES; i++) {
        const int *gpu = k.gpu + REPLICAS * i, *node = s.cluster->node_of_gpu;

        whole += node[gpu[0]] == node[gpu[1]] && node[gpu[0]] == node[gpu[2]];
    }
    assert_int_equal (whole, STAGES - 1);
    sketch_release (&k);
    topology_cluster_destroy (s.cluster);
}

/* The gradients of tied embeddings stay within a node. */
TEST (tied_stages_share_a_node)
{
    struct setting s = small_job_as (cluster_of ("3x8 l40s intra:100 inter:0.5"), LAYERS,
                                     512, 16, config_of (1, 6, 4, 1));
    struct mapper_problem p = search_config (&s);
    struct sketch k;

    for (int tied = 0; tied < 2; tied++) {
        s.model.tied = tied;
        sketch (&p, &s.config, SKETCH_WALKS, &k);
        assert_int_equal (tied, node_of_stage (s.cluster, k.gpu, 4, 0) ==
                                    node_of_stage (s.cluster, k.gpu, 4, 5));
        sketch_release (&k);
    }
    topology_cluster_destroy (s.cluster);
}

/* Chunks may be uneven: a slow stage holds a few layers less than the others, not a round of all
 * its chunks. */
TEST (layers_are_poured_singly)
{
    enum { CHUNKED = 32, STAGES = 4 };
    struct setting s = small_job_as (
        cluster_of ("3x2 h100-sxm5-80g intra:300 inter:100 + 1x2 a100-sxm4-80g"), CHUNKED,
        2048, 32, config_of (1, STAGES, 2, 1));
    struct mapper_problem p;
    struct sketch k;
    int most = 0, least = CHUNKED;

    p = interleaved (&s, 4);
    sketch (&p, &s.config, SKETCH_WALKS, &k);
    for (int i = 0; i < STAGES; i++) {
        most = k.layers[i] > most ? k.layers[i] : most;
        least = k.layers[i] < least ? k.layers[i] : least;
    }
    assert_true (least < most && most < CHUNKED / STAGES + 4);
    sketch_release (&k);
    topology_cluster_destroy (s.cluster);
}

/* Single bad links are not seen where the usual ones of their nodes are priced; a node whose links
 * all are bad is.  One that nobody measured is what it is priced at, as good here. */
TEST (usual_links)
{
    enum { NODES = 6, GPUS = 2, N = NODES * GPUS };
    enum { GOOD, PAIR, NODE, UNKNOWN, KINDS };
    double rate[N * N], usual_s[KINDS], walked_s[KINDS];

    for (int kind = 0; kind < KINDS; kind++) {
        struct setting s = small_job (NULL, LAYERS, 2048, 48);
        struct mapper_problem p;
        struct sketch k;

        for (int i = 0; i < N * N; i++) {
            int from = i / N / GPUS, to = i % N / GPUS;
            bool pair = from < 2 && to < 2,
                 bad = kind == PAIR ? pair : kind == NODE && (from == 0 || to == 0);

            rate[i] = from == to ? 100 : kind == UNKNOWN && !pair ? NAN : bad ? 1 : 10;
        }
        s.config = config_of (2, 1, NODES, 1);
        s.cluster = cluster_of_rates (NODES, GPUS, "h100-sxm5-80g", true, rate);
        p = search_config (&s);
        sketch (&p, &s.config, SKETCH_USUAL, &k);
        usual_s[kind] = k.price.step_s;
        sketch_release (&k);
        sketch (&p, &s.config, SKETCH_WALKS, &k);
        walked_s[kind] = k.price.step_s;
        sketch_release (&k);
        topology_cluster_destroy (s.cluster);
    }
    assert_true (fabs (usual_s[PAIR] / usual_s[GOOD] - 1) < 1e-9);
    assert_true (fabs (usual_s[UNKNOWN] / usual_s[GOOD] - 1) < 1e-9);
    assert_true (walked_s[PAIR] > 1.05 * walked_s[GOOD]);
    assert_true (usual_s[NODE] > 1.05 * usual_s[GOOD]);
}

/* Where links between nodes are the faster ones, TP groups lie across nodes, on as many as may be
 * used, and slow links stay out of their rings.  Node 8 has slow ones alone. */
static void lie_across (int nodes, int most)
{
    enum { NODES = 9, GPUS = 4, N = NODES * GPUS };
    static const double between[NODES][NODES] = {
        {0, 13, 25, 6, 26, 23, 6, 22, 5},   {25, 0, 23, 22, 23, 9, 25, 24, 3},
        {23, 23, 0, 24, 23, 22, 25, 25, 4}, {23, 6, 14, 0, 24, 24, 24, 9, 4},
        {24, 22, 22, 23, 0, 24, 23, 9, 4},  {24, 23, 23, 24, 23, 0, 26, 26, 3},
        {23, 24, 23, 25, 25, 13, 0, 24, 4}, {24, 26, 12, 25, 23, 23, 22, 0, 5},
        {5, 3, 4, 4, 4, 3, 4, 5, 0}};
    double rate[N * N];
    struct workload_config c = config_of (4, 1, most, 4);
    struct setting s = small_job (NULL, LAYERS, 2048, 4 * most);
    int n = nodes * GPUS;
    struct mapper_problem p;
    struct sketch laid;
    struct found whole;

    for (int k = 0; k < n * n; k++) {
        int from = k / n / GPUS, to = k % n / GPUS;

        rate[k] = from == to ? 12 : between[from][to];
    }
    s.config = c;
    s.cluster = cluster_of_rates (nodes, GPUS, "rtx-3090", true, rate);
    p = search_config (&s);
    p.max_nodes = nodes == NODES ? 0 : most;
    sketch (&p, &c, SKETCH_WALKS, &laid);
    whole = search (&p, &(struct mapper_settings){
                            .granularity = MAPPER_NODE, .seed = 1, .effort = 1});
    assert_true (laid.price.step_s < .82 * whole.r.estimate.step_s);
    found_release (&whole);
    sketch_release (&laid);
    topology_cluster_destroy (s.cluster);
}

TEST (groups_lie_across)
{
    lie_across (8, 8);
    lie_across (8, 6);
    lie_across (9, 8);
}
