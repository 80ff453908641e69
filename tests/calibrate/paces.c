/* What runs of one model have in common is kept by the model's name. */
#include "tests/lib/runs.h"

/* Runs of the models named, each in three configurations, that take `factor` times what the profile
 * says. */
static struct calibrate_runs named_runs (const char (*name)[128], int models,
                                         const struct workload_profile *p,
                                         const double *factor)
{
    struct calibrate_runs r;
    struct text t = {0};

    text_add (&t, "%s\n", RUNS_HEADER);
    for (int i = 0; i < 3 * models; i++) {
        char model[160], tp[32], micro[32];

        snprintf (model, sizeof model, "model=%s", name[i / 3]);
        snprintf (tp, sizeof tp, "tp=%d", i % 3 == 2 ? 4 : 2);
        snprintf (micro, sizeof micro, "micro_batch=%d", 1 + i % 3 % 2);
        ROW (&t, model, tp, micro, "layers=8", "hidden=2048", "heads=16", "ffn=8192");
    }
    r = runs_of (text_str (&t));
    text_free (&t);
    assert_int_equal (r.n, 3 * models);
    for (int i = 0; i < r.n; i++)
        r.run[i].iter_time_s = runs_step (&r.run[i], p) * factor[i / 3];
    return r;
}

/* Long names that differ at their end are of two models; two spellings of a preset's are of one,
 * and go on from the pace that the profile has, within what a file may say.  One that is not UTF-8
 * no file can hold. */
TEST (paces_by_name)
{
    static const double apart[] = {1.25, 1.0}, same[] = {1.3, 1.3}, far[] = {20.0, 1.0};
    static const char latin[2][128] = {"mod\xe9l-a", "mod\xe9l-b"};
    static const char spelled[2][128] = {"Llama-2-7B", "llama2_7b"};
    char name[2][128] = {""};
    struct workload_profile start = profile_of ("nemo"), p = start;
    struct calibrate_runs r;
    struct calibrate_fit fit;
    struct error err = {""};

    for (int i = 0; i < 2; i++)
        snprintf (name[i], sizeof name[i], "%0100d", i);
    r = named_runs (name, 2, &start, apart);
    ok (calibrate_fit (&r, CALIBRATE_TIME, NULL, &p, &fit, &err), &err);
    assert_int_equal (p.n_paces, 2);
    assert_string_equal (p.pace[0].model, name[0]);
    assert_string_equal (p.pace[1].model, name[1]);
    assert_true (p.pace[0].factor > 1.01 && p.pace[1].factor < 0.99);
    calibrate_runs_release (&r);

    p = start;
    r = named_runs (latin, 2, &start, same);
    ok (calibrate_fit (&r, CALIBRATE_TIME, NULL, &p, &fit, &err), &err);
    assert_true (p.n_paces == 0 && p.time.gemm != start.time.gemm);
    calibrate_runs_release (&r);

    p = start;
    p.pace[p.n_paces++] = (struct workload_pace){"llama-2-7b", PREC_BF16, 1.1};
    r = named_runs (spelled, 2, &start, same);
    ok (calibrate_fit (&r, CALIBRATE_TIME, NULL, &p, &fit, &err), &err);
    assert_int_equal (p.n_paces, 1);
    assert_true (p.pace[0].factor > 1.11 && p.pace[0].factor < 1.3);
    calibrate_runs_release (&r);

    p = start;
    p.pace[p.n_paces++] = (struct workload_pace){"llama-2-7b", PREC_BF16, 9.9};
    r = named_runs (spelled, 1, &start, far);
    ok (calibrate_fit (&r, CALIBRATE_TIME, NULL, &p, &fit, &err), &err);
    assert_true (p.pace[0].factor == WORKLOAD_PACE_MOST);
    calibrate_runs_release (&r);
}

/* Of more models than have room, constants answer for the others. */
TEST (more_models)
{
    enum { MODELS = WORKLOAD_PACED_MAX / 2 + 4 };
    double factor[MODELS];
    char name[MODELS][128];
    struct workload_profile start = profile_of ("nemo"), p = start;
    struct calibrate_runs r;
    struct calibrate_fit fit;
    struct error err = {""};

    for (int i = 0; i < MODELS; i++) {
        snprintf (name[i], sizeof name[i], "model-%d", i);
        factor[i] = i % 2 ? 1.3 : 1.15;
    }
    for (int i = 0; i < WORKLOAD_PACED_MAX - MODELS + 2; i++) { /* two have no room */
        p.pace[p.n_paces] = (struct workload_pace){"", PREC_BF16, 1.0};
        snprintf (p.pace[p.n_paces].model, sizeof p.pace->model, "other-%d", i);
        p.n_paces++;
    }
    r = named_runs (name, MODELS, &start, factor);
    ok (calibrate_fit (&r, CALIBRATE_TIME, NULL, &p, &fit, &err), &err);
    assert_int_equal (p.n_paces, WORKLOAD_PACED_MAX);
    for (int i = 0; i < MODELS; i++)
        assert_int_equal (!workload_pace_of (&p, name[i], PREC_BF16), i >= MODELS - 2);
    assert_true (workload_pace_of (&p, name[1], PREC_BF16)->factor >
                 workload_pace_of (&p, name[0], PREC_BF16)->factor);
    assert_true (workload_pace_of (&p, "other-0", PREC_BF16)->factor == 1.0);
    calibrate_runs_release (&r);
}
