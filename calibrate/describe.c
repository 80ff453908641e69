/* The profile that a fit starts from, and what it says of itself afterwards. */
#include "calibrate/calibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status calibrate_usual_profile (const struct calibrate_runs *runs,
                                     struct workload_profile *p, struct notes *notes,
                                     struct error *err)
{
    struct workload_profile *each = calloc ((size_t) runs->n, sizeof *each);
    enum status st = each ? calibrate_profiles (runs, NULL, each, err) : err_nomem (err);
    int most = 0;

    for (int i = 0; i < runs->n && st == ST_OK; i++) {
        int n = 0;

        if (i > 0 && strcmp (each[i].name, each[i - 1].name) == 0)
            continue;
        for (int k = 0; k < runs->n; k++)
            n += strcmp (each[i].name, each[k].name) == 0;
        if (n > most) {
            most = n;
            *p = each[i];
        }
    }
    if (st == ST_OK && most < runs->n)
        notes_add (notes,
                   "%d of %d rows usually take another profile, or release of it, than "
                   "%s; the fit "
                   "starts from that one for all rows: better calibrate them apart",
                   runs->n - most, runs->n, p->name);
    p->unknown = false; /* the runs tell what it keeps */
    free (each);
    return st;
}

/* The fitted profile serves the runs' sources. */
static void name_sources (const struct calibrate_runs *runs, struct workload_profile *p)
{
    p->n_sources = 0;
    for (int i = 0; i < runs->n && p->n_sources < WORKLOAD_SOURCES_MAX; i++) {
        bool known = false;

        for (int k = 0; k < p->n_sources; k++)
            known |= strcmp (p->source[k], runs->run[i].source) == 0;
        if (!known && runs->run[i].source[0])
            snprintf (p->source[p->n_sources++], sizeof p->source[0], "%s",
                      runs->run[i].source);
    }
}

/* Its constants of time are of the runs' GPU types, and of models with experts if they had any. */
static void name_machines (const struct calibrate_runs *timed, struct workload_profile *p)
{
    p->elsewhere[0] = '\0';
    if (timed->n == 0)
        return;
    p->n_fitted_on = 0;
    p->fitted_experts = false;
    for (int i = 0; i < timed->n; i++) {
        const char *gpu = timed->run[i].part[0].type->name;

        p->fitted_experts |= timed->run[i].model.experts > 0;
        if (p->n_fitted_on < WORKLOAD_FITTED_MAX &&
            (p->n_fitted_on == 0 ||
             !workload_is_fitted (p, &(struct workload_model){0}, gpu)))
            snprintf (p->fitted_on[p->n_fitted_on++], sizeof *p->fitted_on, "%s", gpu);
    }
}

static void at_least (int *most, int x)
{
    *most = x > *most ? x : *most;
}

/* What the runs were split over the framework has. */
static void take_splits (const struct calibrate_runs *runs, struct workload_profile *p)
{
    for (int i = 0; i < runs->n; i++) {
        const struct workload_config *c = &runs->run[i].config;
        const struct workload_degrees *d = &c->deg;
        const bool split[] = {[PARALLEL_TP] = d->tp > 1,
                              [PARALLEL_SP] = d->tp > 1 && c->sequence_parallel,
                              [PARALLEL_PP] = d->pp > 1,
                              [PARALLEL_CP] = d->cp > 1,
                              [PARALLEL_EP] = d->ep > 1};

        for (int k = 0; k < WORKLOAD_PARALLELS; k++)
            p->parallelism |= (unsigned) split[k] << k;
        p->zero_stages |= 1u << c->zero;
        if (d->pp > 1)
            at_least (&p->zero_with_pipeline, c->zero);
        if (d->tp > 1)
            at_least (&p->zero_with_tensor, c->zero);
        if (d->ep > 1)
            at_least (&p->zero_with_experts, c->zero);
    }
}

void calibrate_describe (const struct calibrate_runs *runs,
                         const struct calibrate_runs *timed, struct workload_profile *p)
{
    name_sources (runs, p);
    name_machines (timed, p);
    take_splits (runs, p);
}
