/* What is made of a cluster's GPU types: which are in use, and what is said of a precision that
 * they lack. */
#include "tests/lib/fixture.h"

#include "costmodel/costmodel.h"

/* Each type that is in use, once; of nodes that are all drained, too. */
TEST (in_use)
{
    static const char line[] =
        "1x2 h100-sxm5-80g intra:400 inter:40 + 1x2 v100-sxm2-32g intra:100 inter:10 + "
        "2x2 h100-sxm5-80g intra:400 inter:40";
    struct topology_cluster *c = cluster_of (line);
    static const int drained[] = {-1, 1, 0, 2, 3}, types[] = {2, 1, 1, 1, 2};

    for (int i = 0; i < 5; i++) {
        struct workload_gpus all = {.n = 0};

        if (drained[i] >= 0)
            c->node[drained[i]].drained = true;
        costmodel_gpus (c, &all);
        assert_int_equal (all.n, types[i]);
        assert_string_equal (all.name[0], "h100-sxm5-80g");
        costmodel_gpus (c, &all);
        assert_int_equal (all.n, types[i]);
    }
    topology_cluster_destroy (c);
}

/* Types without bf16 are named once each, where it is asked for. */
TEST (lacking)
{
    struct topology_cluster *c =
        cluster_of ("2x2 v100-sxm2-32g intra:100 inter:10 + 1x2 a100-sxm4-80g intra:200 "
                    "inter:20");
    static const enum workload_precision asked[] = {PREC_FP16, PREC_FP32, PREC_BF16};

    for (int i = 0; i < 3; i++) {
        struct notes notes = {0};

        costmodel_note_types (c, asked[i], &notes);
        assert_int_equal (notes.n, i == 2);
        if (i == 2)
            assert_non_null (strstr (notes.line[0], "v100-sxm2-32g has no bf16"));
        notes_free (&notes);
    }
    topology_cluster_destroy (c);
}
