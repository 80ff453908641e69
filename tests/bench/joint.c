/* One fit of shared constants to several sources. */
#include "bench/joint.h"

#include <math.h>

#include "tests/lib/runs.h"

#define SOURCES 4
#define ROWS 6

struct lab {
    struct calibrate_runs runs[SOURCES];
    struct joint_source source[SOURCES];
    bool use[ROWS];
};

/* Sources of two frameworks on H100, the last one's on A100, whose steps take `slower` of what is
 * estimated on H100. */
static void lab_open (struct lab *l, double slower)
{
    static const char *const where[SOURCES][2] = {
        {"gpu=H100-SXM5-80GB", "framework=nemo"},
        {"gpu=H100-SXM5-80GB", "framework=fsdp"},
        {"gpu=H100-SXM5-80GB", "framework=torchtitan"},
        {"gpu=A100-SXM4-80GB", "framework=fsdp"}};
    static const char *const size[ROWS][2] = {
        {"seq=2048", "hidden=4096"}, {"seq=4096", "hidden=4096"},
        {"seq=8192", "hidden=4096"}, {"seq=2048", "hidden=8192"},
        {"seq=4096", "hidden=8192"}, {"seq=8192", "hidden=8192"}};
    struct error err = {""};

    for (int s = 0; s < SOURCES; s++) {
        struct text t = {0};

        text_add (&t, "%s\n", RUNS_HEADER);
        for (int i = 0; i < ROWS; i++)
            ROW (&t, where[s][0], where[s][1], size[i][0], size[i][1], "precision=bf16",
                 "micro_batch=2", "pp=1", "gpus=8", "tp=1", "zero=1", "iter_time_s=1");
        ok (runs_read (text_str (&t), &l->runs[s], &err), &err);
        assert_int_equal (l->runs[s].n, ROWS);
        text_free (&t);
        for (int i = 0; i < ROWS; i++) {
            struct calibrate_run *run = &l->runs[s].run[i];
            struct calibrate_runs one_run = {.run = run, .n = 1};
            struct workload_profile p;

            ok (calibrate_profiles (&one_run, NULL, &p, &err), &err);
            run->iter_time_s = runs_step (run, &p) * (s < 3 ? slower : 1.0);
            l->use[i] = true;
        }
        l->source[s] = (struct joint_source){&l->runs[s], l->use};
    }
}

static void lab_close (struct lab *l)
{
    for (int s = 0; s < SOURCES; s++)
        calibrate_runs_release (&l->runs[s]);
}

static struct joint_constant of_name (const struct joint_fit *j, const char *name)
{
    for (int i = 0; i < j->n; i++)
        if (strcmp (j->constant[i].name, name) == 0)
            return j->constant[i];
    fail_msg ("no constant %s", name);
    return j->constant[0];
}

/* What is met stays as it is; what no run has is not told. */
TEST (met)
{
    struct lab l;
    struct joint_fit j;
    struct error err = {""};

    lab_open (&l, 1.0);
    ok (joint_fit (l.source, SOURCES, &j, &err), &err);
    for (int i = 0; i < j.n; i++)
        assert_true (fabs (log (j.constant[i].factor)) < 1e-6);
    for (int s = 0; s < SOURCES; s++)
        for (int i = 0; i < ROWS; i++)
            CLOSE (j.left_out_s[s][i], l.runs[s].run[i].iter_time_s, 1e-6);
    assert_false (of_name (&j, "V100 gemm_efficiency").told);
    CLOSE (of_name (&j, "V100 gemm_efficiency").spread, 0.12, 1e-9);
    joint_release (&j);
    lab_close (&l);
}

/* Three slow sources on H100 say that H100 is slow, also to the one that is left out; not A100. */
TEST (slower)
{
    struct lab l;
    struct joint_fit j;
    struct error err = {""};

    lab_open (&l, 1.15);
    ok (joint_fit (l.source, SOURCES, &j, &err), &err);
    assert_true (of_name (&j, "Hopper gemm_efficiency").factor < 0.97);
    assert_true (of_name (&j, "Hopper gemm_efficiency").told);
    CLOSE (of_name (&j, "A100 gemm_efficiency").factor, 1.0, 0.03);
    for (int i = 0; i < ROWS; i++) {
        double over = l.runs[0].run[i].iter_time_s / j.left_out_s[0][i];

        assert_true (over > 1.0 && over < 1.12);
    }
    joint_release (&j);
    lab_close (&l);
}

TEST (refused)
{
    struct joint_fit j;
    struct error err = {""};

    assert_int_equal (joint_fit (NULL, 0, &j, &err), ST_INVALID);
    assert_non_null (strstr (err.text, "not 0"));
}
