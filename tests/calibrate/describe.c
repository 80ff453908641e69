/* Where a fit starts, and what the fitted profile says of itself. */
#include "tests/lib/runs.h"

#include <string.h>

/* Three runs by TorchTitan on H100, with ZeRO 3 over tensor parallelism, and one of DeepSpeed with
 * experts on A100. */
static struct calibrate_runs lab_runs (void)
{
    struct calibrate_runs runs;
    struct text t = {0};

    text_add (&t, "%s\n", RUNS_HEADER);
    ROW (&t, "framework=deepspeed", "zero=1", "pp=1", "tp=1");
    for (int i = 0; i < 3; i++)
        ROW (&t, "source=titan", "framework=torchtitan", "gpu=H100-SXM5-80GB", "pp=1",
             "zero=3");
    runs = runs_of (text_str (&t));
    text_free (&t);
    assert_int_equal (runs.n, 4);
    return runs;
}

TEST (starts_from_most_rows)
{
    struct calibrate_runs runs = lab_runs ();
    struct workload_profile p;
    struct notes notes = {0};
    struct error err = {""};

    ok (calibrate_usual_profile (&runs, &p, &notes, &err), &err);
    assert_string_equal (p.name, "torchtitan");
    assert_int_equal (notes.n, 1);
    assert_non_null (strstr (notes.line[0], "1 of 4 rows usually take another profile"));
    notes_free (&notes);
    calibrate_runs_release (&runs);
}

TEST (says_what_it_saw)
{
    struct calibrate_runs runs = lab_runs (), timed = runs, none = {0};
    struct workload_profile p = profile_of ("megatron-core"), q;

    p.n_fitted_on = p.n_sources = 0;
    p.parallelism = 0;
    p.zero_stages = 1u << 1;
    p.zero_with_tensor = 1;
    q = p;
    timed.run = runs.run + 1;
    timed.n = 3;
    calibrate_describe (&runs, &timed, &p);
    assert_int_equal (p.n_sources, 2);
    assert_string_equal (p.source[0], "lab");
    assert_string_equal (p.source[1], "titan");
    assert_int_equal (p.n_fitted_on, 1);
    assert_string_equal (p.fitted_on[0], "h100-sxm5-80g");
    assert_false (p.fitted_experts);
    assert_true (p.parallelism & 1u << PARALLEL_TP);
    assert_false (p.parallelism & 1u << PARALLEL_PP);
    assert_int_equal (p.zero_stages, 1u << 1 | 1u << 3);
    assert_int_equal (p.zero_with_tensor, 3);
    assert_int_equal (p.zero_with_pipeline, q.zero_with_pipeline);

    calibrate_describe (&runs, &none, &q);
    assert_int_equal (q.n_fitted_on, 0);
    calibrate_runs_release (&runs);
}
