/* Why a configuration does not fit, and the smallest change that would make it. */
#include "memest/memest.h"

#include <stdlib.h>

const char *memest_largest_kind (const struct memest_stage *s, double *bytes)
{
    const struct {
        const char *name;
        double bytes;
    } kind[] = {{"weights", s->weights_bytes},
                {"gradients", s->gradients_bytes},
                {"optimizer state", s->optimizer_bytes},
                {"activations", s->activations_bytes},
                {"logits", s->logits_bytes},
                {"buffers", s->buffers_bytes},
                {"overhead", s->overhead_bytes}};
    int most = 0;

    for (int i = 1; i < 7; i++)
        if (kind[i].bytes > kind[most].bytes)
            most = i;
    *bytes = kind[most].bytes;
    return kind[most].name;
}

struct attempt {
    const struct memest_problem *p;
    const int *layers;
    double limit_bytes;
};

static bool fits (const struct attempt *a, const struct workload_config *c)
{
    struct memest_problem p = *a->p;
    int pp = c->deg.pp, *split = NULL;
    bool ok = workload_config_check (p.model, p.job, c, NULL) == ST_OK &&
              workload_config_offered (p.model, c, p.profile, NULL) == ST_OK;

    if (!ok)
        return false;
    if (pp != p.config->deg.pp) {
        if (!(split = malloc ((size_t) pp * sizeof (int))))
            return false;
        workload_layers_split (p.model, p.profile->partition, pp, split);
    }
    p.config = c;
    for (int i = 0; i < pp && ok; i++) {
        struct workload_stage held =
            workload_stage_of (p.model, c, split ? split : a->layers, i);
        struct memest_stage s;

        memest_stage (&p, i, &held, &s);
        ok = memest_fits (&p, &s, a->limit_bytes);
    }
    free (split);
    return ok;
}

/* The fewest layers to recompute; memory falls as they grow. */
static bool recompute_some (const struct attempt *a, struct workload_config *c)
{
    int lo = 1, hi = a->p->model->layers;

    c->recompute = RECOMPUTE_FULL;
    c->recompute_layers = 0;
    c->recompute_modules = 0;
    if (!fits (a, c))
        return false;
    while (lo < hi) {
        c->recompute_layers = lo + (hi - lo) / 2;
        if (fits (a, c))
            hi = c->recompute_layers;
        else
            lo = c->recompute_layers + 1;
    }
    c->recompute_layers = lo;
    return true;
}

/* The largest micro-batch that fits below the one that is; memory never falls as it grows,
 * and it divides a replica's sequences.  @return false if none does */
static bool smaller_micro_batch (const struct attempt *a, struct workload_config *c)
{
    int sequences = a->p->job->global_batch / c->deg.dp, now = c->micro_batch, best = 0;

    for (int i = 1; i <= sequences / i; i++)
        for (int way = 0; way < 2 && sequences % i == 0; way++) {
            c->micro_batch = way ? sequences / i : i;
            if (c->micro_batch < now && c->micro_batch > best && fits (a, c))
                best = c->micro_batch;
        }
    c->micro_batch = best;
    return best > 0;
}

/* Double one degree until it fits. */
static bool grow (const struct attempt *a, struct workload_config *c, int *degree)
{
    while (*degree < 4096) {
        *degree *= 2;
        if (degree == &c->deg.tp) {
            c->deg.etp = c->deg.tp;
            c->sequence_parallel = true;
        }
        if (fits (a, c))
            return true;
    }
    return false;
}

/* The degree that needs the fewest GPUs when it alone grows. */
static bool fewest_gpus (const struct attempt *a, struct workload_config *out,
                         struct text *words)
{
    static const char *const degree[] = {"dp", "cp", "pp", "tp"};
    const struct workload_config *now = a->p->config;
    long long fewest = 0;
    int best = 0, grown = 0;

    for (int way = 0; way < 4; way++) {
        struct workload_config c = *now;
        int *const values[] = {&c.deg.dp, &c.deg.cp, &c.deg.pp, &c.deg.tp},
                   *value = values[way];

        if (!grow (a, &c, value) || (fewest > 0 && workload_world (&c.deg) >= fewest))
            continue;
        fewest = workload_world (&c.deg);
        best = way;
        grown = *value;
        *out = c;
    }
    if (fewest > 0)
        text_add (words, "%s %d (%lld GPUs instead of %lld)", degree[best], grown, fewest,
                  workload_world (&now->deg));
    return fewest > 0;
}

bool memest_smallest_change (const struct memest_problem *p, const int *layers,
                             double limit_bytes, struct workload_config *out,
                             struct text *words)
{
    struct attempt a = {p, layers, limit_bytes};
    const struct workload_config *now = p->config;
    struct workload_config c = *now;
    char word[WORKLOAD_RECOMPUTE_TEXT];

    c.sequence_parallel = c.deg.tp > 1;
    if (!now->sequence_parallel && c.sequence_parallel && fits (&a, &c)) {
        text_add (words, "sequence parallelism on");
        *out = c;
        return true;
    }
    c = *now;
    c.zero = 1;
    if (now->zero < 1 && fits (&a, &c)) {
        text_add (words, "zero 1 instead of 0");
        *out = c;
        return true;
    }
    c = *now;
    c.recompute = RECOMPUTE_SELECTIVE;
    if (now->recompute == RECOMPUTE_NONE && fits (&a, &c)) {
        text_add (words, "recompute selective");
        *out = c;
        return true;
    }
    c = *now;
    if (smaller_micro_batch (&a, &c)) {
        text_add (words, "micro-batch %d instead of %d", c.micro_batch, now->micro_batch);
        *out = c;
        return true;
    }
    c = *now;
    if ((now->recompute != RECOMPUTE_FULL || now->recompute_layers > 0) &&
        recompute_some (&a, &c)) {
        text_add (words, "recompute %s", workload_recompute_text (&c, word));
        *out = c;
        return true;
    }
    c = *now;
    for (c.zero = now->zero < 1 ? 2 : now->zero + 1; c.zero <= 3; c.zero++)
        if (fits (&a, &c)) {
            text_add (words, "zero %d instead of %d", c.zero, now->zero);
            *out = c;
            return true;
        }
    return fewest_gpus (&a, out, words);
}
