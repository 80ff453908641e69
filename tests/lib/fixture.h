/* What many tests need: cmocka, a cluster on one line, a problem and its step. */
#ifndef TESTS_LIB_FIXTURE_H
#define TESTS_LIB_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "mapper/mapper.h"
#include "topology/topology.h"
#include "workload/workload.h"
#include "tests/lib/test.h"

#define CLOSE(A, B, REL) \
    assert_true (fabs ((A) - (B)) <= (REL) *fabs ((double) (B)) + 1e-300)

static inline void ok (enum status st, const struct error *err)
{
    if (st != ST_OK)
        fail_msg ("status %d: %s", st, err->text);
}

/* A test's own random numbers, or others where LINKWISE_SEED is a number. */
static inline struct rng seeded (uint64_t own)
{
    const char *seed = getenv ("LINKWISE_SEED");

    return (struct rng){own + (seed ? 0x1000 * strtoull (seed, NULL, 10) : 0)};
}

/* A cluster from a file or one line. */
static inline struct topology_cluster *cluster_of (const char *arg)
{
    struct topology_cluster *c = NULL;
    struct error err = {""};

    ok (topology_cluster_read (arg, &c, NULL, &err), &err);
    return c;
}

/* A cluster from a document's text. */
static inline struct topology_cluster *cluster_from (const char *text)
{
    struct topology_cluster *c = NULL;
    struct error err = {""};
    json_t *doc = json_loads (text, 0, NULL);

    assert_non_null (doc);
    ok (topology_cluster_from_json (doc, "test", NULL, &c, NULL, &err), &err);
    json_decref (doc);
    return c;
}

/* What a cluster's text is refused with: the status, and words of the message. */
static inline enum status cluster_refused (const char *text, const char *says)
{
    struct topology_cluster *c = NULL;
    struct error err = {""};
    json_t *doc = json_loads (text, 0, NULL);
    enum status st;

    assert_non_null (doc);
    st = topology_cluster_from_json (doc, "test", NULL, &c, NULL, &err);
    assert_null (c);
    if (!strstr (err.text, says))
        fail_msg ("\"%s\" does not say \"%s\"", err.text, says);
    json_decref (doc);
    return st;
}

static inline struct workload_model model_of (const char *name)
{
    struct workload_model m;
    struct error err = {""};

    ok (workload_model_read (name, &m, NULL, &err), &err);
    return m;
}

static inline struct workload_profile profile_of (const char *name)
{
    struct workload_profile p;
    struct error err = {""};

    ok (workload_profile_read (name, &p, NULL, &err), &err);
    return p;
}

/* A small Llama shape whose communication matters beside its compute. */
static inline struct workload_model small_model (int layers)
{
    return (struct workload_model){.name = "small",
                                   .type = "llama",
                                   .layers = layers,
                                   .hidden = 1024,
                                   .heads = 16,
                                   .kv_heads = 8,
                                   .head_dim = 64,
                                   .ffn = 4096,
                                   .vocab = 32000,
                                   .gated_mlp = true,
                                   .norm = NORM_RMS,
                                   .norms = 2,
                                   .expert_every = 1};
}

static inline struct workload_config config_of (int tp, int pp, int dp, int micro_batch)
{
    return (struct workload_config){.deg = {tp, pp, dp, 1, 1, tp, 1},
                                    .micro_batch = micro_batch,
                                    .zero = 1,
                                    .sequence_parallel = tp > 1};
}

/* All of a problem in one place. */
struct setting {
    struct topology_cluster *cluster;
    struct workload_model model;
    struct workload_job job;
    struct workload_profile profile;
    struct workload_config config;
    int layers[512];
    enum costmodel_kind kind;
};

/* Small Llama layers on a cluster, in the usual profile, but for launches: these would take longer
 * than such layers, and as long on every GPU. */
static inline struct setting small_job (struct topology_cluster *c, int layers, int seq,
                                        int global_batch)
{
    struct setting s = {.cluster = c,
                        .model = small_model (layers),
                        .job = {.seq = seq, .global_batch = global_batch},
                        .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};

    s.profile.time.layer_launch_fwd_s = 600e-6;
    s.profile.time.layer_launch_back_s = 900e-6;
    return s;
}

/* The same split evenly over a configuration's stages. */
static inline struct setting small_job_as (struct topology_cluster *c, int layers,
                                           int seq, int global_batch,
                                           struct workload_config config)
{
    struct setting s = small_job (c, layers, seq, global_batch);

    s.config = config;
    workload_layers_even (layers, config.deg.pp, s.layers);
    return s;
}

static inline struct costmodel_problem problem_of (const struct setting *s)
{
    return (struct costmodel_problem){.model = &s->model,
                                      .job = &s->job,
                                      .config = &s->config,
                                      .profile = &s->profile,
                                      .cluster = s->cluster,
                                      .layers = s->layers,
                                      .kind = s->kind};
}

/* What a placement takes, whose links all have a price. */
static inline struct costmodel_estimate estimate_of (const struct setting *s,
                                                     const int *gpu)
{
    struct costmodel_problem p = problem_of (s);
    struct costmodel_estimate e;
    struct error err = {""};

    ok (costmodel_estimate (&p, gpu, true, &e, &err), &err);
    return e;
}

/* A small job with nothing hidden and nothing in pieces: what closed forms say. */
static inline struct setting plain_job (const char *cluster, int layers, int tp, int pp,
                                        int dp)
{
    struct setting s = small_job_as (cluster_of (cluster), layers, 1024, 16 * dp,
                                     config_of (tp, pp, dp, 1));

    s.profile.time.dp_overlap = s.profile.time.dp_bucket_bytes = 0;
    s.profile.time.link_out = s.profile.time.send_link = 1;
    return s;
}

static inline void shuffle (struct rng *r, int *v, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int k = rng_below (r, i + 1), x = v[i];

        v[i] = v[k];
        v[k] = x;
    }
}

static inline void in_file_order (int *v, int n)
{
    for (int i = 0; i < n; i++)
        v[i] = i;
}

/* Any split of `left` layers or chunks, one to a stage at least. */
static inline void split_anyhow (struct rng *r, int left, int stages, int *layers)
{
    for (int k = 0; k < stages; k++) {
        int rest = stages - 1 - k;

        layers[k] = rest ? 1 + rng_below (r, left - rest) : left;
        left -= layers[k];
    }
}

/* The step of a placement; INFINITY when its ranks are not connected. */
static inline double step_of (const struct setting *s, const int *gpu, int *unmeasured)
{
    struct costmodel_problem p = problem_of (s);
    struct costmodel_estimate e;
    struct error err = {""};
    enum status st = costmodel_estimate (&p, gpu, true, &e, &err);

    if (st == ST_NOFIT)
        return INFINITY;
    ok (st, &err);
    if (unmeasured)
        *unmeasured = e.n_unmeasured;
    free (e.unmeasured);
    return e.step_s;
}

#endif
