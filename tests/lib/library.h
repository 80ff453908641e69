/* For tests of liblinkwise by its one header: a cluster, a model and a plan, and what is made of a
 * status. */
#ifndef TESTS_LIB_LIBRARY_H
#define TESTS_LIB_LIBRARY_H

#include "tests/lib/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "linkwise.h"

#define CLUSTER "4x8 a100-sxm4-80g intra:230 inter:20"

static inline void good (enum linkwise_status st, const struct linkwise_error *err)
{
    if (st != LINKWISE_OK)
        fail_msg ("%s", err->text);
}

/* A refusal: the status, and a text that holds a word. */
static inline void refused (enum linkwise_status st, enum linkwise_status expected,
                            struct linkwise_error *err, const char *word)
{
    if (st != expected || !strstr (err->text, word))
        fail_msg ("status %d, expected %d; \"%s\" expected in: %s", (int) st,
                  (int) expected, word, err->text);
    err->text[0] = '\0';
}

/* What most tests need. */
static struct {
    struct linkwise_cluster *cluster;
    struct linkwise_model *model;
    struct linkwise_plan *plan;
    struct linkwise_job job;
} w;
static struct linkwise_error world_err, *const err = &world_err;

static int set_up (void **state)
{
    struct linkwise_config c = linkwise_config ();

    (void) state;
    w.job = linkwise_job (4096, 128);
    good (linkwise_cluster_read (CLUSTER, &w.cluster, NULL, err), err);
    good (linkwise_model_read ("llama-2-13b", &w.model, NULL, err), err);
    c.tp = 4;
    c.pp = 2;
    good (
        linkwise_search (w.cluster, w.model, NULL, &w.job, &c, NULL, &w.plan, NULL, err),
        err);
    return 0;
}

static int tear_down (void **state)
{
    (void) state;
    /* In the order that is not that of their creation. */
    linkwise_cluster_destroy (w.cluster);
    linkwise_model_destroy (w.model);
    linkwise_plan_destroy (w.plan);
    return 0;
}

ALL_BETWEEN (set_up, tear_down)

#endif
