/* A plan that hardly runs out of memory, and beside it what a larger chance would gain.
 *
 * The first search knows the limit alone.  A plan of it whose chance is small is the best of those
 * with a small chance too.  Only where it is not, a second search goes through the configurations
 * that the chance leaves; bounds of the first hold for these as well.
 *
 * Where nothing fits, what the profile can offload is tried in searches of their own, so that the
 * space of those who need none does not grow. */
#include "base/progress.h"
#include "mapper/search/search_private.h"

#define WORTH 0.005 /* of the objective: a gain that is worth to be told */

/* Is a chance of MAPPER_RISK a stricter limit than the problem's, and nobody's wish against it? */
static bool is_stricter (const struct mapper_problem *p, const struct mapper_settings *s)
{
    /* That of a stage with nothing but states, which is the largest. */
    double largest = memest_limit (p->profile, 1.0, 0.0, MAPPER_RISK) /
                     (1.0 - memest_states_less (p->profile, MAPPER_RISK));

    return p->limit_free && s->tie > 0 && p->memory_model == MEMEST_LINKWISE &&
           largest < p->memory_limit_pct / 100;
}

/* What the risky plan knows into the safe one. */
static void hand_over (const struct mapper_problem *p, const struct mapper_result *risky,
                       double chance, struct mapper_result *safe)
{
    double step_s = safe->estimate.step_s, risky_s = risky->estimate.step_s;

    if (p->objective == MAPPER_STEP) /* otherwise bounds are in each plan's own GPUs */
        safe->lower_bound_s =
            fmin (step_s, fmax (safe->lower_bound_s, risky->lower_bound_s));
    if (mapper_objective_of (p, &risky->config, risky_s) <
        mapper_objective_of (p, &safe->config, step_s) * (1 - WORTH))
        safe->riskier = (struct mapper_riskier){risky->config, risky_s, chance};
}

/* mapper_search; where nothing fits in memory, once more with what the profile can keep in the
 * host's: the first that helps of those that nobody fixed. */
static enum status search_offloading (struct mapper_problem *p,
                                      const struct mapper_settings *s,
                                      struct mapper_result *r, struct mapper_info *info,
                                      struct error *err)
{
    double start_s = clock_s ();
    enum status st = mapper_search (p, s, r, info, err);

    if (st != ST_NOFIT || !info->missed || p->axes.offload != MAPPER_FREE)
        return st;
    for (int i = 0; i < MAPPER_RESORTS; i++) {
        struct mapper_settings left = mapper_settings_left (s, clock_s () - start_s);
        struct mapper_info more = {0};
        struct error why;

        if (!mapper_can_offload (p, mapper_resorts[i]))
            continue;
        p->axes.offload = (int) mapper_resorts[i];
        st = mapper_search (p, &left, r, &more, &why);
        if (st == ST_OK) {
            mapper_info_release (info);
            *info = more;
            info->seconds = clock_s () - start_s;
            return ST_OK;
        }
        mapper_info_release (&more);
    }
    p->axes.offload = MAPPER_FREE;
    info->resorted = true;
    return ST_NOFIT;
}

enum status mapper_search_prudent (struct mapper_problem *p,
                                   const struct mapper_settings *s,
                                   struct mapper_result *r, struct mapper_info *info,
                                   struct error *err)
{
    struct mapper_settings left;
    struct mapper_result safe = {0};
    struct mapper_info more = {0};
    struct error why;
    double chance, start_s = clock_s ();
    enum status st;

    TRY (search_offloading (p, s, r, info, err));
    chance = mapper_chance (p, r);
    if (!is_stricter (p, s) || chance <= MAPPER_RISK)
        return ST_OK;
    if (info->stopped) {
        info->safer = MAPPER_SAFER_STOPPED;
        return ST_OK;
    }
    left = mapper_settings_left (s, info->seconds);
    p->oom_risk = MAPPER_RISK;
    st = mapper_search (p, &left, &safe, &more, &why);
    if (st != ST_OK) { /* what may run out is better than nothing */
        p->oom_risk = 0;
        info->safer = MAPPER_SAFER_NONE;
        mapper_info_release (&more);
        if (st != ST_NOMEM)
            return ST_OK;
        mapper_result_release (r);
        return err_nomem (err);
    }
    hand_over (p, r, chance, &safe);
    mapper_result_release (r);
    mapper_info_release (info);
    *r = safe;
    *info = more;
    info->safer = MAPPER_SAFER_FOUND;
    info->seconds = clock_s () - start_s;
    return ST_OK;
}
