/* What a search lists: the same on any number of threads; what is kept of compute times from
 * one configuration to the next changes no bound; where states have no room nothing fits, and a
 * listing can leave that out, and few GPUs; a listing that ends early has some of everything; and
 * a search that is late at once has a plan and a bound that holds. */
#include "mapper/bound/bound.h"
#include "tests/lib/clusters.h"
#include "tests/lib/search.h"
#include "topology/edit/edit.h"

static int ended; /* listings, early */

static void check_alike (const struct workload_config *a, const struct workload_config *b)
{
    struct mapper_axes x = mapper_axes_of (a), y = mapper_axes_of (b);

    assert_memory_equal (&x, &y, sizeof x); /* integers alone */
}

static bool at_once (void *context)
{
    (void) context;
    return true;
}

/* What ends early is a part of the whole, in its order, with every tp. */
static void check_ended (const struct pool *pool, const struct workload_config *whole,
                         long whole_n)
{
    const struct deadline passed = {INFINITY, at_once, NULL};
    struct pool_limit limit = {.deadline = &passed, .least = whole_n / 2};
    struct workload_config *list;
    json_t *space;
    struct error err;
    unsigned long tps = 0, whole_tps = 0;
    long n, at = 0;

    ok (pool_configurations (pool, 2, &limit, &list, &n, &space, &err), &err);
    assert_true (limit.cut ? n >= whole_n / 2 && n < whole_n : n == whole_n);
    assert_int_equal (limit.listed, n);
    for (long i = 0; i < whole_n; i++) {
        struct mapper_axes a = mapper_axes_of (&whole[i]), b = mapper_axes_of (&list[at]);

        whole_tps |= 1ul << whole[i].deg.tp;
        if (memcmp (&a, &b, sizeof a) == 0 && at < n - 1)
            tps |= 1ul << list[at++].deg.tp;
    }
    assert_int_equal (at, n - 1);
    assert_true (tps == whole_tps);
    ended += limit.cut;
    free (list);
    json_decref (space);
}

/* Those with room for their states, or of so many GPUs, in the order of all. */
static void check_some (const struct pool *pool, const struct workload_config *whole,
                        long whole_n, bool roomy, int gpus)
{
    const struct deadline never = {INFINITY, NULL, NULL};
    struct pool_limit limit = {.deadline = &never, .roomy = roomy, .gpus = gpus};
    struct workload_stage layers = workload_all_layers (pool->problem->model);
    struct workload_config *list;
    json_t *space;
    struct error err;
    long n, at = 0;

    ok (pool_configurations (pool, 2, &limit, &list, &n, &space, &err), &err);
    for (long i = 0; i < whole_n; i++)
        if (workload_world (&whole[i].deg) >= gpus &&
            (!roomy || pool_states_fit (pool, &whole[i], &layers))) {
            assert_true (at < n);
            check_alike (&whole[i], &list[at++]);
        }
    assert_int_equal (at, n);
    free (list);
    json_decref (space);
}

static void check_listed (const struct pool *pool)
{
    struct bound_works *works = bound_works_create ();
    struct workload_stage layers = workload_all_layers (pool->problem->model);
    struct workload_config *list, *other;
    json_t *space, *other_space;
    struct error err;
    long n, other_n, tight = 0;
    double of_all = bound_gpu_seconds (pool);

    assert_non_null (works);
    ok (pool_configurations (pool, 1, NULL, &list, &n, &space, &err), &err);
    ok (pool_configurations (pool, 3, NULL, &other, &other_n, &other_space, &err), &err);
    assert_int_equal (n, other_n);
    assert_true (json_equal (space, other_space));
    for (long i = 0; i < n; i++) {
        const struct workload_config *c = &list[i];
        double least = bound_of (pool, c, BOUND_WORK);

        check_alike (c, &other[i]);
        assert_true (least * (double) workload_world (&c->deg) >= of_all * (1 - 1e-12));
        assert_true (least > 0 && least == bound_work (works, pool, c));
        if (!pool_states_fit (pool, c, &layers)) {
            assert_false (pool_layers_alike (pool) && pool_memory_fits (pool, c, NULL));
            tight++;
        }
    }
    assert_true (tight > 0 && tight < n);
    assert_true (of_all > 0);
    check_ended (pool, list, n);
    check_some (pool, list, n, true, 0);
    check_some (pool, list, n, false, pool->n_gpus / 2);
    free (list);
    free (other);
    json_decref (space);
    json_decref (other_space);
    bound_works_destroy (works);
}

static const char *const models[] = {"llama-2-13b", "mixtral-8x7b",
                                     "nemotron-nano-9b-v2"};

static struct setting setting_of (const char *model, const char *cluster)
{
    return (struct setting){.cluster = cluster_of (cluster),
                            .model = model_of (model),
                            .job = {.seq = 4096, .global_batch = 24},
                            .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
}

TEST (listed)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct setting s =
            setting_of (models[i], "2x8 a100-sxm4-40g intra:250 inter:20 + 1x4 "
                                   "h100-sxm5-80g intra:370 inter:48");
        struct mapper_problem p = search_problem (&s);
        struct pool pool;
        struct error err;

        ok (pool_init (&pool, &p, &err), &err);
        check_listed (&pool);
        pool_release (&pool);
        topology_cluster_destroy (s.cluster);
    }
    assert_true (ended > 0);
}

/* ZeRO stages that the profile's framework has not are not listed, unless they are fixed. */
TEST (zero_stages)
{
    struct setting s = setting_of ("llama-3-8b", "1x8 h100-sxm5-80g intra:370");
    struct mapper_problem p = search_problem (&s);
    unsigned seen = 0;

    s.profile = profile_of ("torchtitan");
    for (int fixed = 0; fixed < 2; fixed++) {
        struct pool pool;
        struct workload_config *list;
        json_t *space;
        struct error err;
        long n;

        p.axes.zero = fixed ? 3 : MAPPER_FREE;
        ok (pool_init (&pool, &p, &err), &err);
        ok (pool_configurations (&pool, 1, NULL, &list, &n, &space, &err), &err);
        for (seen = 0; n > 0; n--)
            seen |= 1u << list[n - 1].zero;
        assert_int_equal (seen, fixed ? 1 << 3 : 1 << 0 | 1 << 2 | 1 << 3);
        free (list);
        json_decref (space);
        pool_release (&pool);
    }
    topology_cluster_destroy (s.cluster);
}

/* Shards over nodes are listed where the framework has them, of the fewest that have room, and for
 * the stages that gain; a size that is given is the only one. */
TEST (shards)
{
    static const struct {
        const char *profile, *model;
        int zero, fixed, shard; /* the most that is listed */
    } t[] = {{"torchtitan", "llama-3-8b", 3, MAPPER_FREE, 8},
             {"fsdp", "llama-3-8b", 2, MAPPER_FREE, 8},
             {"torchtitan", "llama-3-70b", 3, MAPPER_FREE, 16},
             {"torchtitan", "llama-3-8b", 3, 0, 0},
             {"torchtitan", "llama-3-8b", 3, 4, 4},
             {"litgpt", "llama-3-8b", 3, MAPPER_FREE, 0},
             {"megatron-core", "llama-3-8b", 1, MAPPER_FREE, 0},
             {"megatron-core", "llama-3-8b", 1, 8, 8}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct setting s =
            setting_of (t[i].model, "4x8 h100-sxm5-80g intra:370 inter:48");
        struct mapper_problem p = search_problem (&s);
        struct pool pool;
        struct workload_config *list;
        json_t *space;
        struct error err;
        long n, over_all = 0, others = 0;

        s.profile = profile_of (t[i].profile);
        s.job.global_batch = 64;
        p.axes = mapper_axes_free ();
        p.axes.tp = p.axes.pp = p.axes.cp = 1;
        p.axes.dp = 32;
        p.axes.zero = t[i].zero;
        p.axes.shard = t[i].fixed;
        ok (pool_init (&pool, &p, &err), &err);
        ok (pool_configurations (&pool, 1, NULL, &list, &n, &space, &err), &err);
        for (long k = 0; k < n; k++)
            if (list[k].shard == 0)
                over_all++;
            else if (list[k].shard == t[i].shard)
                others++;
            else
                fail_msg ("%s: shard %d", t[i].profile, list[k].shard);
        assert_true ((others > 0) == (t[i].shard > 0));
        assert_true ((over_all > 0) == (t[i].fixed <= 0));
        assert_true ((json_object_get (space, "shard") != NULL) == (t[i].shard > 0));
        free (list);
        json_decref (space);
        pool_release (&pool);
        topology_cluster_destroy (s.cluster);
    }
}

/* Outside the long form a part of all that there is to search: what time decides is the same. */
static void of_few (struct mapper_problem *p)
{
    if (!getenv ("LINKWISE_LONG"))
        p->axes.micro_batch = 1;
}

TEST (late)
{
    static const char *const least[] = {"1x4 a100-sxm4-80g intra:250",
                                        "2x8 a100-sxm4-80g intra:250 inter:20",
                                        "1x8 a100-sxm4-80g intra:250"};

    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct setting s = setting_of (models[i], least[i]);
        struct mapper_problem p = search_problem (&s);
        struct mapper_settings how = mapper_settings_default ();
        struct found whole, some;
        struct error err;

        of_few (&p);
        ok (try_search (&p, &how, &whole, &err), &err);
        how.time_limit_s = 1e-9;
        ok (try_search (&p, &how, &some, &err), &err);
        assert_true (some.info.stopped != some.info.proven);
        assert_true (some.r.lower_bound_s > 0);
        assert_true (some.r.lower_bound_s <= whole.r.estimate.step_s);
        assert_true (some.r.lower_bound_s <= whole.r.lower_bound_s * (1 + 1e-9));
        found_release (&whole);
        found_release (&some);
        topology_cluster_destroy (s.cluster);
    }
}

/* A search that is late at once has a plan, at most so many times as long as one with time.
 * @return configurations that it placed */
static long late_at_once (const struct mapper_problem *p, double times)
{
    struct mapper_settings how = mapper_settings_default ();
    struct found whole = search (p, &how), some;
    double most_s = whole.r.estimate.step_s * times;
    long placed;

    found_release (&whole);
    how.time_limit_s = 1e-9;
    some = search (p, &how);
    placed = some.info.placed;
    assert_true (some.info.stopped);
    assert_true (some.r.estimate.step_s <= most_s);
    found_release (&some);
    return placed;
}

/* An odd pool's first plan comes from sketches of a few: it is a plan, late or not, and not far
 * from the one that there is time for. */
TEST (late_in_odd_pool)
{
    struct setting s =
        small_job (cluster_of ("1x4 a100-sxm4-80g intra:230 inter:2 + 1x3 l40s intra:20 "
                               "inter:2 + 1x4 h100-sxm5-80g intra:370 inter:2"),
                   16, 2048, 48);
    struct mapper_problem p = search_problem (&s);

    s.model.hidden = 4096;
    s.model.head_dim = 256;
    s.model.ffn = 14336;
    p.axes.tp = 1;
    of_few (&p);
    assert_true (late_at_once (&p, 1.1) <= 2);
    topology_cluster_destroy (s.cluster);
}

/* So does that of alike nodes on slow links, not from the lowest bound: 16 % longer there. */
TEST (late_on_slow_links)
{
    struct setting s = {.model = model_of ("gpt2-medium"),
                        .job = {.seq = 1024, .global_batch = 32},
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
    struct mapper_problem p;

    s.cluster = cluster_of ("6x2 a100-sxm4-40g intra:12 inter:0.29");
    p = search_problem (&s);
    p.axes.micro_batch = 2;
    late_at_once (&p, 1.05);
    topology_cluster_destroy (s.cluster);
}

/* The plan of alike nodes with failing links is not far either, where the configuration of the
 * lowest bound takes nearly half as long again. */
TEST (late_among_failing_links)
{
    struct topology_synth y = topology_synth_default ();
    struct setting s = {.model = model_of ("llama-2-13b"),
                        .job = {.seq = 4096, .global_batch = 512},
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
    struct mapper_problem p;

    y.preset = "failing";
    y.nodes = 36;
    s.cluster = cluster_synthesized (&y);
    p = search_problem (&s);
    late_at_once (&p, 1.1);
    topology_cluster_destroy (s.cluster);
}

/* With time enough a limit changes nothing that an odd pool's search finds and proves. */
TEST (time_enough)
{
    struct setting s = small_job (cluster_of ("4x8 a100-sxm4-80g intra:230 inter:20 + "
                                              "12x8 h100-sxm5-80g intra:370 inter:40"),
                                  32, 2048, 256);
    struct mapper_problem p = search_problem (&s);
    struct mapper_settings how = mapper_settings_default ();
    struct found whole, limited;
    struct error err;

    s.model.hidden = 4096;
    s.model.head_dim = 256;
    s.model.ffn = 14336;
    p.axes.tp = 8;
    of_few (&p);
    ok (try_search (&p, &how, &whole, &err), &err);
    how.time_limit_s = 1e6;
    ok (try_search (&p, &how, &limited, &err), &err);
    assert_true (whole.info.proven && limited.info.proven);
    assert_true (limited.r.estimate.step_s <= whole.r.estimate.step_s);
    assert_true (limited.r.lower_bound_s == whole.r.lower_bound_s);
    found_release (&whole);
    found_release (&limited);
    topology_cluster_destroy (s.cluster);
}

/* A large pool, of which few GPUs are best: a plan of nearly all tells that they may be. */
TEST (few_gpus_are_best)
{
    struct setting s = setting_of ("gpt2", "32x8 a100-sxm4-80g intra:250 inter:20");
    struct mapper_problem p = search_problem (&s);
    struct found free;

    s.job.seq = 1024;
    s.job.global_batch = 8;
    p.axes.micro_batch = 1;
    free = search (&p, NULL);
    assert_true (workload_world (&free.r.config.deg) < 128);
    for (p.axes.dp = 1; p.axes.dp <= 8; p.axes.dp *= 2) {
        struct found one = search (&p, NULL);

        assert_true (one.r.estimate.step_s >= free.r.estimate.step_s * (1 - 1e-9));
        found_release (&one);
    }
    found_release (&free);
    topology_cluster_destroy (s.cluster);
}

/* Half of the GPUs in one axis are within the tie of all of them in two. */
TEST (few_gpus_are_simplest)
{
    struct setting s = setting_of ("llama-2-7b", "32x8 h100");
    struct mapper_problem p = search_problem (&s);
    struct mapper_settings how = mapper_settings_default ();
    struct found o;

    s.job.seq = 4096;
    s.job.global_batch = 128;
    how.tie = 1.0;
    o = search (&p, &how);
    assert_int_equal (workload_world (&o.r.config.deg), 128);
    assert_int_equal (o.r.config.deg.dp, 128);
    found_release (&o);
    topology_cluster_destroy (s.cluster);
}
