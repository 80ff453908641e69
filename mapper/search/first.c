/* The first bounds.  A space has millions of configurations, most of which take longer than the
 * best plan by their compute alone.  So all get that bound, which costs next to nothing, and only
 * the lowest of them are asked for their memory and bounded further: as many as come before
 * what the search would take next. */
#include "mapper/search/search_private.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/threads.h"

#define LISTED_LEAST (1L << 20) /* a second's: smaller spaces are listed whole */
#define SHOWN 4096              /* configurations between two looks at the progress */
#define AWAITED_S 1.5           /* a first plan, when it is late */
#define BATCH 512               /* bounded further at once */
#define LATE \
    32768 /* bounded further, though it is late: the best of a few would be poor */

/* What is looked at while configurations are listed. */
struct watch {
    const struct search *x;
    const struct pool_limit *limit;
};

static bool is_late (void *context)
{
    const struct watch *w = context;
    const struct search *x = w->x;
    long listed;

    if (x->s->progress && threads_self () == 0) {
#pragma omp atomic read
        listed = w->limit->listed;
        x->s->progress (x->s->context, 0, listed, INFINITY, 0.0);
    }
    return deadline_passed (&x->deadline);
}

/* All configurations of so many GPUs, or those that there is time for. */
static enum status list (struct search *x, struct error *err)
{
    bool whole = x->p->cost_model != COSTMODEL_CRITICAL_PATH;
    struct pool_limit limit = {.least = whole ? LONG_MAX : LISTED_LEAST,
                               .gpus = x->gpus_least};
    struct watch watch = {x, &limit};
    struct deadline deadline = {INFINITY, is_late, &watch};

    limit.deadline = &deadline;
    TRY (pool_configurations (&x->pool, x->threads, &limit, &x->config, &x->n,
                              &x->info->space, err));
    x->info->configurations = x->n;
    if (limit.cut)
        x->unlisted_bound_s =
            bound_gpu_seconds (&x->pool) /
            (x->p->objective == MAPPER_GPU_HOURS ? 1.0 : x->pool.n_gpus);
    return ST_OK;
}

enum status search_list (struct search *x, struct error *err)
{
    bool known = x->p->cost_model == COSTMODEL_CRITICAL_PATH, failed = false;

    TRY (list (x, err));
    x->heap = malloc ((size_t) x->n * sizeof *x->heap);
    x->listed = malloc ((size_t) x->n * sizeof *x->listed);
    x->placed_at = calloc ((size_t) x->n, sizeof *x->placed_at);
    if (!x->heap || !x->listed || !x->placed_at)
        return err_nomem (err);
#pragma omp parallel num_threads(x->threads)
    {
        struct bound_works *works = bound_works_create ();

        if (!works)
#pragma omp atomic write
            failed = true;
#pragma omp for schedule(static)
        for (long i = 0; i < x->n; i++) {
            const struct workload_config *c = &x->config[i];
            double s =
                known ? bound_work (works, &x->pool, c) * mapper_weight (x->p, c) : 0;

            x->listed[i] = (struct entry){s, i, BOUND_WORK};
            if (i % SHOWN == 0 && x->s->progress && threads_self () == 0)
                x->s->progress (x->s->context, i, x->n, INFINITY, 0.0);
        }
        bound_works_destroy (works);
    }
    if (failed)
        return err_nomem (err);
    while (x->listed_n < x->n)
        heap_push (x->listed, &x->listed_n, x->listed[x->listed_n]);
    return ST_OK;
}

bool search_is_over (struct search *x)
{
    if (x->best >= 0 || !deadline_passed (&x->deadline))
        return false;
    x->late_s = fmin (x->late_s, clock_s ());
    return clock_s () > x->late_s + AWAITED_S;
}

/* Refuse what does not fit in memory and bound the rest.  States, which are told soonest, are too
 * much of most where a model is too large. */
static void bound_batch (struct search *x, struct entry *batch, int n)
{
    const struct workload_stage all = workload_all_layers (x->p->model);
    bool fits[BATCH];

#pragma omp parallel for if (n > 1) schedule(dynamic, 16) num_threads(x->threads)
    for (int i = 0; i < n; i++) {
        const struct workload_config *c = &x->config[batch[i].index];

        fits[i] =
            pool_states_fit (&x->pool, c, &all) && pool_memory_fits (&x->pool, c, NULL);
        if (fits[i])
            batch[i].bound_s =
                fmax (batch[i].bound_s,
                      search_bound (x, c, BOUND_FRACTIONS, 0, search_reach (x)));
        batch[i].level = BOUND_FRACTIONS;
    }
    for (int i = 0; i < n; i++) {
        if (!fits[i])
            x->info->refused_memory++;
        else if (isfinite (batch[i].bound_s))
            search_push (x, batch[i]);
        else
            x->info->unplaced++;
    }
    search_show_progress (x);
}

void search_fill (struct search *x, double below, long least)
{
    while (x->listed_n > 0) {
        struct entry batch[BATCH];
        int n = 0;

        bool enough = x->best >= 0 || (x->heap_n > 0 && x->n - x->listed_n >= LATE);

        if ((enough && deadline_passed (&x->deadline)) || search_is_over (x))
            return;
        while (n < BATCH && x->listed_n > 0 && x->listed[0].bound_s < below &&
               (x->heap_n < least || x->heap_n == 0 ||
                !(x->heap[0].bound_s < x->listed[0].bound_s)))
            batch[n++] = heap_pop (x->listed, &x->listed_n);
        if (n == 0)
            return;
        bound_batch (x, batch, n);
    }
}
