/* How far step times may be off: experts, mixes of GPUs, and GPU types that a profile was not fitted on
 * add to its residual, as squares. */
#include <math.h>

#include "tests/lib/fixture.h"

static const struct workload_model dense = {.layers = 2},
                                   moe = {.layers = 2, .experts = 8};

static void grows (void **state)
{
    struct workload_profile p = profile_of ("nemo");
    double own = p.time.residual, experts = workload_step_spread (&p, &moe, false, false),
           mixed = workload_step_spread (&p, &dense, false, true);
    (void) state;

    assert_true (workload_step_spread (&p, &dense, false, false) == own);
    assert_true (experts > own && mixed > experts);
    assert_true (fabs (workload_step_spread (&p, &moe, false, true) -
                       sqrt (experts * experts + mixed * mixed - own * own)) < 1e-12);
}

/* A fitted profile elsewhere is as unsure as a composed one. */
static void off_its_fit (void **state)
{
    static const struct {
        const char *profile, *gpu;
        const struct workload_model *m;
        bool fitted;
    } known[] = {{"megatron-core", "a100-sxm4-80g", &dense, true},
                 {"megatron-core", "a100-sxm4-80g", &moe, false},
                 {"megatron-core", "h100-sxm5-80g", &dense, false},
                 {"megatron-v100", "v100-sxm2-16g", &dense, true},
                 {"nemo", "h100-sxm5-80g", &dense, false}};
    struct workload_profile p = profile_of ("megatron-core");
    double composed = profile_of ("megatron-core-composed").time.residual,
           off = workload_step_spread (&p, &dense, false, false);
    (void) state;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct workload_profile own = profile_of (known[i].profile);

        assert_int_equal (workload_is_fitted (&own, known[i].m, known[i].gpu),
                          known[i].fitted);
    }
    assert_true (workload_step_spread (&p, &dense, true, false) == p.time.residual);
    assert_true (fabs (off - composed) < 1e-12);
    assert_true (workload_step_spread (&p, &moe, false, false) > off);
    p.fitted_experts = true;
    assert_true (workload_is_fitted (&p, &moe, "a100-sxm4-80g"));
    p.n_fitted_on = 0; /* an older file does not say */
    assert_true (workload_is_fitted (&p, &moe, "h100-sxm5-80g"));
}

/* Where none is named: the default where it was fitted, elsewhere its composed form, which has its
 * facts. */
static void serves (void **state)
{
    static const struct {
        const char *gpu, *profile;
    } known[] = {{"a100-sxm4-80g", "megatron-core"},
                 {"a100-pcie-80g", "megatron-core"},
                 {"a800-sxm4-80g", "megatron-core"},
                 {"h100-sxm5-80g", "megatron-core-composed"},
                 {"v100-sxm2-32g", "megatron-core-composed"},
                 {"mine", "megatron-core-composed"}};
    struct workload_profile p, fitted = profile_of (WORKLOAD_PROFILE_DEFAULT);
    struct error err = {""};
    (void) state;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        ok (workload_profile_default (known[i].gpu, &p, &err), &err);
        assert_string_equal (p.name, known[i].profile);
        assert_true (p.why[0] != '\0');
        assert_true (p.schedules == fitted.schedules && p.zero == fitted.zero &&
                     p.recompute_modules == fitted.recompute_modules &&
                     p.optimizer_choices == fitted.optimizer_choices);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (grows),
                                       cmocka_unit_test (off_its_fit),
                                       cmocka_unit_test (serves)};

    return cmocka_run_group_tests (tests, NULL, NULL);
}
