/* A program on liblinkwise: the best plan of a job, and where its first ranks go. */
#include <stdio.h>

#include <linkwise.h>

int main (void)
{
    struct linkwise_cluster *cluster = NULL;
    struct linkwise_model *model = NULL;
    struct linkwise_plan *plan = NULL;
    struct linkwise_job job = linkwise_job (4096, 128);
    struct linkwise_estimate e = linkwise_estimate ();
    struct linkwise_error err;
    enum linkwise_status st;

    st = linkwise_cluster_read ("4x8 h100-sxm5-80g intra:370 inter:48", &cluster, NULL,
                                &err);
    if (st == LINKWISE_OK)
        st = linkwise_model_read ("llama-2-13b", &model, NULL, &err);
    if (st == LINKWISE_OK)
        st = linkwise_search (cluster, model, NULL, &job, NULL, NULL, &plan, NULL, &err);
    if (st == LINKWISE_OK)
        st = linkwise_plan_estimate (plan, NULL, NULL, &e, &err);
    if (st == LINKWISE_OK)
        printf ("%s: %.3f s a step\n", linkwise_model_name (model), e.step_s);
    for (int i = 0; st == LINKWISE_OK && i < 4; i++) {
        struct linkwise_rank r = {.size = sizeof r};

        st = linkwise_plan_rank (plan, i, &r, &err);
        if (st == LINKWISE_OK)
            printf ("rank %d: %s GPU %d\n", i, r.node, r.gpu);
    }
    if (st != LINKWISE_OK)
        fprintf (stderr, "%s\n", err.text);
    linkwise_plan_destroy (plan);
    linkwise_model_destroy (model);
    linkwise_cluster_destroy (cluster);
    return st != LINKWISE_OK;
}
