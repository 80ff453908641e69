/* Plans made by hand, and what a target of emit says of them. */
#ifndef TESTS_LIB_TARGETS_H
#define TESTS_LIB_TARGETS_H

#include "launch/launch_private.h"
#include "tests/lib/folder.h"

#define RANKS 8
#define STAGES_MAX 5

/* A plan's ranks on GPUs of a cluster. */
struct made {
    struct topology_cluster *cluster;
    struct workload_plan plan;
    struct workload_profile profile; /* the default */
    struct workload_place place[RANKS];
    int on_node[RANKS];
    int layers[STAGES_MAX];
    struct launch_input in;
};

static inline void make (struct made *m, const char *cluster, int n, const int *gpu)
{
    *m = (struct made){.cluster = cluster_of (cluster),
                       .plan.n_ranks = n,
                       .profile = profile_of (WORKLOAD_PROFILE_DEFAULT)};
    m->in = (struct launch_input){.plan = &m->plan,
                                  .profile = &m->profile,
                                  .cluster = m->cluster,
                                  .gpu = gpu,
                                  .ranks_on_node = m->on_node,
                                  .linkwise = "linkwise"};
    m->plan.place = m->place;
    for (int r = 0; r < n; r++) {
        int node = m->cluster->node_of_gpu[gpu[r]];

        m->place[r].node = m->cluster->node[node].name;
        m->place[r].gpu = gpu[r] - m->cluster->node[node].first_gpu;
        m->in.nodes += m->on_node[node]++ == 0;
        if (m->on_node[node] > m->in.most_ranks)
            m->in.most_ranks = m->on_node[node];
    }
}

static inline void configure (struct made *m, const struct workload_config *c,
                              const int *layers, enum workload_precision precision)
{
    memcpy (m->layers, layers, sizeof m->layers);
    m->plan.layers_per_stage = m->layers;
    m->plan.config = *c;
    m->plan.config.micro_batch = 1;
    m->plan.job =
        (struct workload_job){.seq = 4096, .global_batch = 64, .precision = precision};
}

/* What a target says: the file at a path, or its refusal. */
static inline void says (const struct launcher *l, const struct made *m, const char *path,
                         struct text *said)
{
    struct launch_files f = {.generation = "0123456789abcdef"};
    struct text readme = {0};
    struct error err = {""};

    said->len = 0;
    if (launch_write (l, &m->in, &f, &readme, &err) != ST_OK)
        text_add (said, "%s", err.text);
    if (strcmp (path, l->readme) == 0)
        text_add (said, "%s", text_str (&readme));
    for (int i = 0; i < f.n; i++) {
        if (err.text[0] == '\0' && strcmp (f.file[i].path, path) == 0)
            text_add (said, "%s", text_str (&f.file[i].text));
        text_free (&f.file[i].text);
    }
    text_free (&readme);
}

static inline void expect_says (const struct launcher *l, const struct made *m,
                                const char *path, const char *expected, const char *what)
{
    struct text said = {0};

    says (l, m, path, &said);
    if (!strstr (text_str (&said), expected) ||
        (expected[0] == '\0' && text_str (&said)[0] != '\0'))
        fail_msg ("%s: expected \"%s\", found \"%s\"", what, expected, text_str (&said));
    text_free (&said);
}

#endif
