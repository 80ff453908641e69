/* What is made of a cluster's GPU types: whose pace a job goes at, and what is said of a precision
 * that they lack. */
#include "tests/lib/fixture.h"

#include "costmodel/costmodel.h"

/* The slowest type that is in use, wherever it stands. */
TEST (pace)
{
    static const struct {
        const char *line, *slowest;
        int drained; /* a node, or -1 */
    } t[] = {
        {"1x2 h100-sxm5-80g intra:400 inter:40 + 1x2 v100-sxm2-32g intra:100 inter:10 + "
         "1x2 a100-sxm4-80g intra:200 inter:20",
         "v100-sxm2-32g", -1},
        {"1x2 v100-sxm2-32g intra:100 inter:10 + 1x2 h100-sxm5-80g intra:400 inter:40",
         "v100-sxm2-32g", -1},
        {"1x2 v100-sxm2-32g intra:100 inter:10 + 1x2 h100-sxm5-80g intra:400 inter:40",
         "h100-sxm5-80g", 0},
        {"1x2 h100-sxm5-80g intra:400 inter:40", "h100-sxm5-80g", 0}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct topology_cluster *c = cluster_of (t[i].line);

        if (t[i].drained >= 0)
            c->node[t[i].drained].drained = true;
        assert_string_equal (costmodel_pace (c)->name, t[i].slowest);
        topology_cluster_destroy (c);
    }
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
