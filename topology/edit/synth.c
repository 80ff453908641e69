/* Clusters drawn from presets, with the unevenness that was measured on real ones:
 *
 *   calm     each node's network is off by 1.5 % (standard deviation), each directed link
 *            by 3.4 %, so that the two directions of a pair differ by 4 % on average;
 *            another epoch moves every link by 2 % on average
 *            (16 A100 nodes measured twice: CV 3-4 %, asymmetry 4 %, drift 2 %)
 *   busy     calm, and a pair in different pods reaches 0.83 of it, and 10 % of the pairs
 *            under different leaves half, drawn anew in every epoch (collisions of routes)
 *   failing  calm, and 1 node in 32 has half its rate, 1 GPU in 200 runs at 0.67 of its
 *            speed, 1 pair of nodes in 200 reaches 0.3
 *   mixed    calm, and a quarter of the nodes are of the GPU generation before, with half
 *            the network
 *
 * Every number comes from a hash of the seed and of what it is for, so that it does not
 * depend on the order of drawing.
 *
 * A planted optimum: pp stages by dp replicas of whole nodes in a hidden order.  The links
 * that pipelines and rings in that order use, both ways, all have one rate; every other
 * link has less.  So for tp = the node's GPUs, these pp and dp, no placement is better.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/rng.h"
#include "topology/edit/edit.h"
#include "topology/topology_private.h"
#include "topology/links_doc.h"
#include "topology/topology.h"

enum preset { CALM, BUSY, FAILING, MIXED };

static const struct text_choice presets[] = {
    {"calm", "small differences between nodes and links"},
    {"busy", "routes collide: slower across pods, a tenth of the pairs at half rate"},
    {"failing", "a few half-rate nodes, slow GPUs and bad links"},
    {"mixed", "a quarter of the nodes have the previous GPU generation"}};

#define N_PRESETS ((int) (sizeof presets / sizeof *presets))

const struct text_choice *topology_preset_at (int i)
{
    return i < N_PRESETS ? &presets[i] : NULL;
}

struct topology_synth topology_synth_default (void)
{
    return (struct topology_synth){.nodes = 16,
                                   .gpus = 8,
                                   .gpu_type = "h100-sxm5-80g",
                                   .seed = 1,
                                   .leaf = 16,
                                   .pod = 8};
}

struct drawing {
    const struct topology_synth *s;
    enum preset preset;
    double intra, inter, older_intra, older_inter; /* GB/s */
    const char *older;                             /* type */
    int first_older;                               /* nodes from here on are older */
    double *node;                                  /* [nodes] factor of its network */
    bool *slow_gpus;                               /* [nodes] has any */
    int *planted;                                  /* [pp * dp] stage-major, or NULL */
    int *place;                                    /* [nodes] in planted, or -1 */
    int dp;
    double best; /* rate of planted links */
};

/* ---- drawing ---- */

enum what {
    NODE_FACTOR,
    LINK_FACTOR,
    DRIFT,
    COLLISION,
    HALF_NODE,
    SLOW_GPU,
    BAD_LINK,
    ORDER
};

/* A generator for one thing. */
static struct rng rng_for (const struct drawing *d, enum what what, uint64_t a,
                           uint64_t b, uint64_t epoch)
{
    struct rng r = {d->s->seed};

    r.state = rng_next (&r) ^ (uint64_t) what;
    r.state = rng_next (&r) ^ a;
    r.state = rng_next (&r) ^ b;
    r.state = rng_next (&r) ^ epoch;
    return r;
}

/* A normal variate of mean 0 and variance 1 (Box and Muller 1958), at most 4 off. */
static double normal (struct rng r)
{
    double u = rng_unit (&r), v = rng_unit (&r);
    double z = sqrt (-2 * log (1 - u)) * cos (2 * M_PI * v);

    return z > 4 ? 4 : z < -4 ? -4 : z;
}

static bool happens (struct rng r, double share)
{
    return rng_unit (&r) < share;
}

static bool is_older (const struct drawing *d, int node)
{
    return node >= d->first_older;
}

/* The rate of the link from node i to node j without anything planted. */
static double link_rate (const struct drawing *d, int i, int j)
{
    const struct topology_synth *s = d->s;
    uint64_t a = (uint64_t) i, b = (uint64_t) j;
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    double rate = is_older (d, i) || is_older (d, j) ? d->older_inter : d->inter;

    rate *= d->node[i] * d->node[j];
    rate *= 1 + 0.034 * normal (rng_for (d, LINK_FACTOR, a, b, 0));
    if (s->epoch > 0)
        rate *= 1 + 0.025 * normal (rng_for (d, DRIFT, a, b, s->epoch));
    if (d->preset == BUSY && i / s->leaf != j / s->leaf) {
        if (i / s->leaf / s->pod != j / s->leaf / s->pod)
            rate *= 0.83;
        if (happens (rng_for (d, COLLISION, low, high, s->epoch), 0.10))
            rate *= 0.5;
    }
    if (d->preset == FAILING && happens (rng_for (d, BAD_LINK, low, high, 0), 0.005))
        rate *= 0.3;
    return rate;
}

/* ---- what is planted ---- */

/* Whether the planted placement uses i -> j: neighbours in a pipeline, its two ends (tied
 * embeddings), neighbours in the ring of a stage; both ways. */
static bool is_planted (const struct drawing *d, int i, int j)
{
    int x = d->place[i], y = d->place[j], pp = d->s->plant;
    int stages, replicas;

    if (x < 0 || y < 0)
        return false;
    stages = abs (x / d->dp - y / d->dp);
    replicas = abs (x % d->dp - y % d->dp);
    return (replicas == 0 && (stages == 1 || stages == pp - 1)) ||
           (stages == 0 && (replicas == 1 || replicas == d->dp - 1));
}

/* Healthy nodes in a random order, as many as whole pipelines take. */
static enum status plant (struct drawing *d, struct error *err)
{
    const struct topology_synth *s = d->s;
    struct rng r = rng_for (d, ORDER, 0, 0, 0);
    int n = 0;

    d->planted = malloc ((size_t) s->nodes * sizeof *d->planted);
    d->place = malloc ((size_t) s->nodes * sizeof *d->place);
    if (!d->planted || !d->place)
        return err_nomem (err);
    for (int i = 0; i < s->nodes; i++) {
        d->place[i] = -1;
        if (!is_older (d, i) && !d->slow_gpus[i] && d->node[i] > 0.75)
            d->planted[n++] = i;
    }
    for (int i = n - 1; i > 0; i--) {
        int k = rng_below (&r, i + 1), x = d->planted[i];

        d->planted[i] = d->planted[k];
        d->planted[k] = x;
    }
    d->dp = n / s->plant;
    if (d->dp == 0)
        return err_set (err, ST_USAGE,
                        "--plant %d: the cluster has only %d healthy nodes of one type",
                        s->plant, n);
    for (int k = 0; k < d->dp * s->plant; k++)
        d->place[d->planted[k]] = k;
    return ST_OK;
}

static json_t *planted_json (const struct drawing *d)
{
    json_t *stages = json_array ();

    for (int p = 0; p < d->s->plant; p++)
        for (int r = 0; r < d->dp; r++) {
            char name[24];

            snprintf (name, sizeof name, "n%d", d->planted[p * d->dp + r]);
            json_array_append_new (json_row_in (stages, p), json_string (name));
        }
    return json_pack ("{s:i, s:i, s:i, s:f, s:o}", "tp", d->s->gpus, "pp", d->s->plant,
                      "dp", d->dp, "gb_per_s", d->best, "stages", stages);
}

/* ---- the document ---- */

static enum status draw_matrix (const struct drawing *d, float *v, struct error *err)
{
    const struct topology_synth *s = d->s;
    bool stopped = false;

    for (int from = 0; from < s->nodes && !stopped; from += 64) {
        int to = from + 64 < s->nodes ? from + 64 : s->nodes;

#pragma omp parallel for schedule(static)
        for (int i = from; i < to; i++)
            for (int j = 0; j < s->nodes; j++) {
                double rate = i == j ? NAN : link_rate (d, i, j);

                if (i != j && d->planted)
                    rate = is_planted (d, i, j) ? d->best
                                                : fmin (0.6 * rate, 0.75 * d->best);
                v[(size_t) i * (size_t) s->nodes + (size_t) j] =
                    (float) (round (rate * 1e3) / 1e3);
            }
        stopped = s->progress && s->progress (s->context, (double) to / s->nodes);
    }
    return stopped ? err_set (err, ST_IO, "stopped") : ST_OK;
}

static json_t *node_json (const struct drawing *d, int i)
{
    const struct topology_synth *s = d->s;
    char name[24], leaf[24], pod[24];
    json_t *node;

    snprintf (name, sizeof name, "n%d", i);
    snprintf (leaf, sizeof leaf, "leaf%d", i / s->leaf);
    snprintf (pod, sizeof pod, "pod%d", i / s->leaf / s->pod);
    node = json_pack ("{s:s, s:i, s:s, s:[s, s, s]}", "name", name, "gpus", s->gpus,
                      "gpu_type", is_older (d, i) ? d->older : s->gpu_type, "switches",
                      leaf, pod, "core");
    if (d->slow_gpus[i]) {
        json_t *speed = json_array ();

        for (int k = 0; k < s->gpus; k++)
            json_array_append_new (
                speed,
                json_real (
                    happens (rng_for (d, SLOW_GPU, (uint64_t) i, (uint64_t) k, 0), 0.005)
                        ? 0.67
                        : 1.0));
        json_object_set_new (node, "speed", speed);
    }
    return node;
}

static json_t *intra_json (double gb)
{
    return json_pack ("{s:f, s:f}", "bandwidth_gb_per_s", gb, "latency_us",
                      TOPOLOGY_INTRA_LATENCY_US);
}

static json_t *all_intra_json (const struct drawing *d)
{
    json_t *list;

    if (d->s->gpus < 2)
        return NULL;
    if (d->first_older >= d->s->nodes)
        return intra_json (d->intra);
    list = json_array ();
    for (int i = 0; i < d->s->nodes; i++)
        json_array_append_new (list,
                               intra_json (is_older (d, i) ? d->older_intra : d->intra));
    return list;
}

static enum status build (const struct drawing *d, struct topology_document *out,
                          struct error *err)
{
    const struct topology_synth *s = d->s;
    json_t *nodes = json_array (), *links = json_object (), *intra = all_intra_json (d),
           *inter;
    char name[128];
    enum status st;

    for (int i = 0; i < s->nodes; i++)
        json_array_append_new (nodes, node_json (d, i));
    if (intra)
        json_object_set_new (links, "intra", intra);
    snprintf (name, sizeof name, "%s-%dx%d-seed%lu", s->preset, s->nodes, s->gpus,
              s->seed);
    out->doc = json_pack ("{s:i, s:s, s:s, s:{s:s, s:I, s:I}, s:o, s:o}", "version", 1,
                          "name", name, "source", "linkwise cluster synth", "synth",
                          "preset", s->preset, "seed", (json_int_t) s->seed, "epoch",
                          (json_int_t) s->epoch, "nodes", nodes, "links", links);
    if (!out->doc)
        return err_nomem (err);
    if (d->planted)
        json_object_set_new (out->doc, "planted", planted_json (d));
    if (s->nodes == 1)
        return ST_OK;
    inter = json_pack ("{s:n, s:f}", "bandwidth_gb_per_s", "latency_us",
                       TOPOLOGY_INTER_LATENCY_US);
    json_object_set_new (links, "inter", inter);

    float *v = topology_matrix_room (s->nodes);

    if (!v)
        return err_nomem (err);
    st = draw_matrix (d, v, err);
    if (st == ST_OK)
        return topology_document_matrix (out, inter, "bandwidth_gb_per_s", v, s->nodes,
                                         s->npy, err);
    topology_matrix_drop (v);
    return st;
}

/* ---- settings ---- */

/* The generation before, for mixed clusters. */
static const char *older_type (const char *type)
{
    static const char *const pairs[][2] = {
        {"b200", "h100-sxm5-80g"},  {"b300", "b200-192g"},
        {"gb200", "h100-sxm5-80g"}, {"gb300", "gb200-192g"},
        {"h100", "a100-sxm4-80g"},  {"h200", "a100-sxm4-80g"},
        {"l40s", "a10g"},           {"l4", "t4"},
        {"rtx-4090", "rtx-3090"},   {"mi355x", "mi300x"}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strncmp (type, pairs[i][0], strlen (pairs[i][0])) == 0)
            return pairs[i][1];
    return NULL;
}

static enum status check (const struct topology_synth *s, struct drawing *d,
                          struct error *err)
{
    struct text names = {0};
    struct text_near near = {.asked = s->preset};
    char hint[TEXT_HINT];

    d->preset = N_PRESETS;
    for (int i = 0; i < N_PRESETS; i++) {
        text_add (&names, "%s%s",
                  i == 0              ? ""
                  : i < N_PRESETS - 1 ? ", "
                                      : " or ",
                  presets[i].name);
        text_near_try (&near, presets[i].name, strlen (presets[i].name));
        if (strcmp (presets[i].name, s->preset) == 0)
            d->preset = (enum preset) i;
    }
    if ((int) d->preset == N_PRESETS) {
        err_set (err, ST_USAGE, "unknown preset \"%.40s\": expected %s%s%s", s->preset,
                 text_str (&names), text_near_hint (&near, "", hint),
                 strchr (s->preset, ' ')
                     ? "; a cluster on one line is written by `linkwise cluster merge`"
                     : "");
        text_free (&names);
        return ST_USAGE;
    }
    text_free (&names);
    d->intra =
        s->intra_gb_per_s > 0 ? s->intra_gb_per_s : known_pair_gb_per_s (s->gpu_type);
    /* One 400 Gbit/s NIC for a GPU since Hopper, 200 before. */
    d->inter = s->inter_gb_per_s > 0                       ? s->inter_gb_per_s
               : known_link_gb_per_s (s->gpu_type) >= 20.6 ? 48
                                                           : 24;
    if (d->intra <= 0 && s->gpus > 1)
        return err_set (err, ST_USAGE,
                        "the rate of links between %s GPUs is unknown: give --intra GB/s",
                        s->gpu_type);
    d->first_older = s->nodes;
    if (d->preset != MIXED)
        return ST_OK;
    d->older = older_type (s->gpu_type);
    if (!d->older)
        return err_set (err, ST_USAGE, "mixed: no GPU type older than %s is known",
                        s->gpu_type);
    d->first_older = s->nodes - s->nodes / 4;
    d->older_intra = known_pair_gb_per_s (d->older);
    d->older_inter = d->inter / 2;
    return ST_OK;
}

static enum status draw_nodes (struct drawing *d, struct error *err)
{
    const struct topology_synth *s = d->s;

    d->node = malloc ((size_t) s->nodes * sizeof *d->node);
    d->slow_gpus = calloc ((size_t) s->nodes, sizeof *d->slow_gpus);
    if (!d->node || !d->slow_gpus)
        return err_nomem (err);
    for (int i = 0; i < s->nodes; i++) {
        uint64_t a = (uint64_t) i;

        d->node[i] = 1 + 0.015 * normal (rng_for (d, NODE_FACTOR, a, 0, 0));
        if (d->preset != FAILING)
            continue;
        if (happens (rng_for (d, HALF_NODE, a, 0, 0), 1.0 / 32))
            d->node[i] *= 0.5;
        for (int k = 0; k < s->gpus; k++)
            if (happens (rng_for (d, SLOW_GPU, a, (uint64_t) k, 0), 0.005))
                d->slow_gpus[i] = true;
    }
    return ST_OK;
}

enum status topology_synthesize (const struct topology_synth *s,
                                 struct topology_document *out, struct notes *notes,
                                 struct error *err)
{
    struct topology_synth own = *s;
    struct drawing d = {.s = &own};
    struct topology_document x = {0};
    const struct topology_gpu_type *type;
    enum status st =
        topology_gpu_type_take ("--gpu-type", s->gpu_type, &type, notes, err);

    if (st == ST_OK) {
        own.gpu_type = type->name;
        st = check (&own, &d, err);
    }
    d.best = d.inter;
    THEN (st, draw_nodes (&d, err));
    if (st == ST_OK && s->plant > 0)
        st = plant (&d, err);
    THEN (st, build (&d, &x, err));
    FREE_ALL (d.node, d.slow_gpus, d.planted, d.place);
    if (st == ST_OK)
        *out = x;
    else
        topology_document_release (&x);
    return st;
}
