/* What many tests need: cmocka, a cluster on one line, a problem, random clusters. */
#ifndef TESTS_LIB_FIXTURE_H
#define TESTS_LIB_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "mapper/mapper.h"
#include "topology/topology.h"
#include "workload/workload.h"
#include "tests/lib/skip.h"

#define CLOSE(A, B, REL) assert_true (fabs ((A) - (B)) <= (REL) *fabs (B) + 1e-300)

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

/* Experts' all-to-alls that hide under compute: none, a part or all, at some cost. */
static inline void draw_overlap (struct rng *r, struct workload_profile *p)
{
    p->time.moe_overlap = .5 * rng_below (r, 3);
    p->time.overlap_slowdown = rng_below (r, 3) ? 0 : .3;
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

/* What all GPUs of one node send to another's, of some pairs not known. */
static inline void random_pair_totals (struct text *t, struct rng *r, int nodes, int gpus)
{
    text_add (t, "\"node_pair_gb_per_s\":[");
    for (int i = 0; i < nodes; i++) {
        text_add (t, "%s[", i ? "," : "");
        for (int j = 0; j < nodes; j++)
            if (rng_below (r, 10) == 0)
                text_add (t, "%snull", j ? "," : "");
            else
                text_add (t, "%s%.1f", j ? "," : "", 5.0 + 20.0 * gpus * rng_unit (r));
        text_add (t, "]");
    }
    text_add (t, "],");
}

/* A cluster with random directed links: log-uniform bandwidths over a factor `spread`,
 * inside nodes around 200 GB/s, every other time one number a node, and between them around
 * 20.  Some are unmeasured. */
static inline struct topology_cluster *random_cluster (struct rng *r, int nodes, int gpus,
                                                       double spread, double unmeasured,
                                                       bool node_totals, bool gpu_links)
{
    struct text t = {0};
    int n = gpu_links ? nodes * gpus : nodes;

    text_add (&t, "{\"version\":1,\"name\":\"random\",\"nodes\":[");
    for (int i = 0; i < nodes; i++)
        text_add (&t, "%s{\"name\":\"n%d\",\"gpus\":%d,\"gpu_type\":\"a100-sxm4-80g\"}",
                  i ? "," : "", i, gpus);
    text_add (&t, "],\"links\":{");
    if (!gpu_links && gpus > 1) {
        bool plain = rng_below (r, 2);

        text_add (&t, "\"intra\":[");
        for (int k = 0; k < nodes; k++) {
            text_add (&t, "%s{\"latency_us\":3,\"bandwidth_gb_per_s\":", k ? "," : "");
            if (plain)
                text_add (&t, "%.3f}", 200.0 * pow (spread, rng_unit (r) - 0.5));
            for (int i = 0; i < gpus && !plain; i++) {
                text_add (&t, "%s[", i ? "," : "[");
                for (int j = 0; j < gpus; j++)
                    text_add (&t, "%s%.3f", j ? "," : "",
                              200.0 * pow (spread, rng_unit (r) - 0.5));
                text_add (&t, i == gpus - 1 ? "]]}" : "]");
            }
        }
        text_add (&t, "]%s", nodes > 1 ? "," : "");
    }
    if (nodes > 1 || gpu_links) {
        text_add (&t, "\"%s\":{\"latency_us\":10,", gpu_links ? "gpu" : "inter");
        if (node_totals)
            text_add (&t, "\"node_gb_per_s\":%.1f,", 20.0 * (1 + rng_below (r, gpus)));
        if (node_totals && rng_below (r, 2))
            random_pair_totals (&t, r, nodes, gpus);
        text_add (&t, "\"bandwidth_gb_per_s\":[");
        for (int i = 0; i < n; i++) {
            text_add (&t, "%s[", i ? "," : "");
            for (int j = 0; j < n; j++) {
                bool inside = gpu_links && i / gpus == j / gpus;

                if (i != j && rng_unit (r) < unmeasured)
                    text_add (&t, "%snull", j ? "," : "");
                else
                    text_add (&t, "%s%.3f", j ? "," : "",
                              (inside ? 200.0 : 20.0) * pow (spread, rng_unit (r) - 0.5));
            }
            text_add (&t, "]");
        }
        text_add (&t, "]}");
    }
    text_add (&t, "}}");

    struct topology_cluster *c = cluster_from (text_str (&t));

    text_free (&t);
    return c;
}

static inline void shuffle (struct rng *r, int *v, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int k = rng_below (r, i + 1), x = v[i];

        v[i] = v[k];
        v[k] = x;
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
