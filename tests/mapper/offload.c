/* Offloading is the last resort: not tried where something fits without, found where nothing does,
 * in a space with a bound of its own that holds; what hosts have no room for does not fit. */
#include "tests/lib/search.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

static enum status find (struct mapper_problem *p, struct found *o, struct error *err)
{
    struct mapper_settings how = mapper_settings_default ();

    *o = (struct found){0};
    how.tie = 0;
    return mapper_search_prudent (p, &how, &o->r, &o->info, err);
}

/* Four GPUs with so much memory for a model whose optimizer takes most of it. */
static struct setting job_on (const char *gib_of_host, double gpu_gb)
{
    char text[1024];
    struct setting s;

    snprintf (text, sizeof text,
              "{\"version\": 1, \"name\": \"c\", \"gpu_types\": {\"small\": {\"like\": "
              "\"a100-sxm4-40g\", \"memory_gb\": %g}}, \"nodes\": [{\"name\": \"a\", "
              "\"gpus\": 2, \"gpu_type\": \"small\"%s}, {\"name\": \"b\", \"gpus\": 2, "
              "\"gpu_type\": \"small\"}], \"links\": {\"intra\": "
              "{\"bandwidth_gb_per_s\": 100, \"latency_us\": 5}, \"inter\": "
              "{\"bandwidth_gb_per_s\": 20, \"latency_us\": 9}}}",
              gpu_gb, gib_of_host);
    s = small_job (cluster_from (text), 24, 1024, 16);
    s.model.hidden = 4096;
    s.model.heads = s.model.kv_heads = 32;
    s.model.head_dim = 128;
    s.model.ffn = 11008;
    return s;
}

/* Is it said that something fits with the optimizer on the host? */
static bool promises (const struct mapper_problem *p, const struct mapper_info *info)
{
    struct text words = {0};
    bool says;

    mapper_explain_miss (p, info, &words);
    says = strstr (text_str (&words), "it would fit with --offload optimizer") != NULL;
    text_free (&words);
    return says;
}

/* With room nothing changes; with none the host helps, unless it may not. */
TEST (last_resort)
{
    for (int small = 0; small <= 1; small++) {
        struct setting s = job_on ("", small ? 22 : 60);
        struct mapper_problem p = search_problem (&s);
        struct found free, none;
        struct error err = {""};

        ok (find (&p, &free, &err), &err);
        assert_int_equal (free.r.config.offload,
                          small ? OFFLOAD_OPTIMIZER : OFFLOAD_NONE);
        p = search_problem (&s);
        p.axes.offload = OFFLOAD_NONE;
        if (small) {
            assert_int_equal (find (&p, &none, &err), ST_NOFIT);
            assert_true (none.info.missed && !none.info.resorted);
            assert_true (promises (&p, &none.info));
            none.info.resorted =
                true; /* no plan after all, as on GPUs of unlike memory */
            assert_true (!promises (&p, &none.info));
        } else {
            ok (find (&p, &none, &err), &err);
            assert_true (none.info.configurations == free.info.configurations);
            CLOSE (none.r.estimate.step_s, free.r.estimate.step_s, 0);
            CLOSE (none.r.lower_bound_s, free.r.lower_bound_s, 0);
        }
        found_release (&free);
        found_release (&none);
        topology_cluster_destroy (s.cluster);
    }
}

/* Every tp, pp and dp by itself is not below the bound, nor is the least of them below what was
 * found; the plan's step is that of its placement. */
TEST (bound_holds)
{
    struct setting s = job_on ("", 22);
    struct mapper_problem p = search_problem (&s);
    struct error err = {""};
    struct found best, one;
    int found = 0;

    p.axes.offload = OFFLOAD_OPTIMIZER;
    p.axes.micro_batch = 1;
    best = search (&p, NULL);
    assert_true (best.info.proven);
    for (int tp = 1; tp <= 4; tp *= 2)
        for (int pp = 1; pp * tp <= 4; pp *= 2)
            for (int dp = 1; dp * pp * tp <= 4; dp *= 2) {
                p.axes.tp = tp;
                p.axes.pp = pp;
                p.axes.dp = dp;
                if (try_search (&p, NULL, &one, &err) != ST_OK)
                    continue;
                found++;
                assert_true (one.r.estimate.step_s >= best.r.lower_bound_s * (1 - 1e-9));
                assert_true (best.r.estimate.step_s <=
                             one.r.estimate.step_s * (1 + 1e-9));
                take (&s, &one.r);
                CLOSE (step_of (&s, one.r.gpu, NULL), one.r.estimate.step_s, 1e-9);
                found_release (&one);
            }
    assert_true (found > 1);
    found_release (&best);
    topology_cluster_destroy (s.cluster);
}

/* The least share of a GPU among nodes that tell theirs is the limit. */
TEST (hosts_are_limits)
{
    struct setting s = job_on (", \"host_memory_gib\": 1000", 22);
    struct mapper_problem p = search_problem (&s);
    struct error err = {""};
    struct text words = {0};
    struct found o;
    double bytes;

    ok (find (&p, &o, &err), &err);
    assert_true (mapper_fullest_host (&p, &o.r, &bytes) >= 0);
    assert_true (bytes <= 1000 * GIB && bytes > 10 * GIB);
    found_release (&o);
    topology_cluster_destroy (s.cluster);

    s = job_on (", \"host_memory_gib\": 8", 22);
    p = search_problem (&s);
    assert_int_equal (find (&p, &o, &err), ST_NOFIT);
    assert_int_equal (p.axes.offload, MAPPER_FREE);
    assert_true (o.info.resorted);
    mapper_explain_miss (&p, &o.info, &words);
    assert_non_null (strstr (text_str (&words), "hosts have not: 4.0 GiB"));
    text_free (&words);
    found_release (&o);
    topology_cluster_destroy (s.cluster);
}

/* A profile without it is not asked for it. */
TEST (not_offered)
{
    struct setting s = job_on ("", 22);
    struct mapper_problem p = search_problem (&s);
    struct error err = {""};
    struct found o;

    s.profile.offloads = 0;
    assert_int_equal (find (&p, &o, &err), ST_NOFIT);
    found_release (&o);
    p.axes.offload = OFFLOAD_OPTIMIZER;
    assert_int_equal (find (&p, &o, &err), ST_INVALID);
    assert_non_null (strstr (err.text, "does not have it"));
    found_release (&o);
    topology_cluster_destroy (s.cluster);
}
