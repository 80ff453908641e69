/* Layers of several kinds: what a stage has of them together, and the linear mixers' widths and
 * FLOPs. */
#include "workload/workload.h"

#include <math.h>
#include <string.h>

bool workload_has_parts (const struct workload_model *m, unsigned parts)
{
    for (int i = 0; i < WORKLOAD_KINDS && m->kinds[i]; i++)
        if (workload_kind_parts (m, i) & parts)
            return true;
    return !m->pattern[0] && (parts & (PART_ATTENTION | PART_MLP | PART_EXPERTS)) != 0;
}

int workload_kind_of (const struct workload_model *m, int index)
{
    return m->pattern[0] ? (int) (strchr (m->kinds, m->pattern[index]) - m->kinds)
                         : workload_is_expert_layer (m, index);
}

struct workload_stage workload_one_layer (const struct workload_model *m, int kind)
{
    struct workload_stage one = {.dense = 0};

    if (!m->pattern[0])
        return (struct workload_stage){.dense = kind == 0, .expert = kind == 1};
    one.of[kind] = 1;
    one.expert = (workload_kind_parts (m, kind) & PART_EXPERTS) != 0;
    one.dense = !one.expert;
    return one;
}

struct workload_stage workload_all_layers (const struct workload_model *m)
{
    struct workload_stage s = {.dense = 0};

    for (int i = 0; i < m->layers; i++) {
        *(workload_is_expert_layer (m, i) ? &s.expert : &s.dense) += 1;
        if (m->pattern[0])
            s.of[workload_kind_of (m, i)]++;
    }
    return s;
}

/* ---- sums over a stage ---- */

double workload_least_layer (const struct workload_model *m, bool expert,
                             workload_of_parts *of, const void *about)
{
    double least = INFINITY, any = INFINITY;

    if (!m->pattern[0])
        return of (about, expert ? WORKLOAD_EXPERT_PARTS : WORKLOAD_DENSE_PARTS);
    for (int i = 0; i < WORKLOAD_KINDS && m->kinds[i]; i++) {
        unsigned parts = workload_kind_parts (m, i);
        double here = of (about, parts);

        any = fmin (any, here);
        if (((parts & PART_EXPERTS) != 0) == expert)
            least = fmin (least, here);
    }
    return isfinite (least) ? least : any;
}

double workload_class_sum (const struct workload_model *m, const struct workload_stage *s,
                           bool expert, workload_of_parts *of, const void *about,
                           double *most)
{
    int layers = expert ? s->expert : s->dense;
    double sum = 0.0;

    *most = 0.0;
    if (layers == 0)
        return 0.0;
    if (!m->pattern[0] || !workload_kinds_told (s)) {
        *most = workload_least_layer (m, expert, of, about);
        return layers * *most;
    }
    for (int i = 0; i < WORKLOAD_KINDS; i++) {
        unsigned parts = s->of[i] > 0 ? workload_kind_parts (m, i) : 0;
        double here;

        if (parts == 0 || ((parts & PART_EXPERTS) != 0) != expert)
            continue;
        here = of (about, parts);
        *most = fmax (*most, here);
        sum += s->of[i] * here;
    }
    return sum;
}

double workload_held_sum (const struct workload_model *m, const struct workload_stage *s,
                          workload_of_parts *of, const void *about)
{
    double most, dense;

    if (!m->pattern[0])
        return (s->dense > 0 ? s->dense * of (about, WORKLOAD_DENSE_PARTS) : 0.0) +
               (s->expert > 0 ? s->expert * of (about, WORKLOAD_EXPERT_PARTS) : 0.0);
    dense = workload_class_sum (m, s, false, of, about, &most);
    return dense + workload_class_sum (m, s, true, of, about, &most);
}

/* ---- linear mixers ---- */

struct workload_mixer workload_mixer_of (const struct workload_model *m, double t)
{
    double inner = m->lin_heads * (double) m->lin_width / t,
           keys = m->lin_groups * (double) m->lin_state / t, heads = m->lin_heads / t;
    struct workload_mixer x = {
        .heads = heads, .inner = inner, .keys = keys, .states = inner * m->lin_state};

    switch (m->linear) {
    case LINEAR_SSM: /* z, x, B, C, dt */
        x.in = 2.0 * inner + 2.0 * keys + heads;
        x.conv = inner + 2.0 * keys;
        break;
    case LINEAR_DELTA: /* q, k, v, z, b, a */
        x.in = 2.0 * keys + 2.0 * inner + 2.0 * heads;
        x.conv = 2.0 * keys + inner;
        break;
    case LINEAR_LIGHTNING: /* q, k, v, gate */
        x.in = 4.0 * inner;
        break;
    case LINEAR_CONV: /* B, C, x */
        x.in = 3.0 * inner;
        x.conv = inner;
        break;
    case LINEAR_NONE:
        break;
    }
    return x;
}

void workload_scan_flop (const struct workload_model *m, double t, double *fwd,
                         double *again)
{
    struct workload_mixer x = workload_mixer_of (m, t);
    double chunk = m->lin_chunk, n = m->lin_state, p = m->lin_width;

    *fwd = *again = 0.0;
    if (m->linear == LINEAR_SSM || m->linear == LINEAR_LIGHTNING) {
        *fwd = 2.0 * chunk * (x.keys + x.inner) + 4.0 * x.states;
        *again = 2.0 * chunk * x.keys + 2.0 * x.states;
    } else if (m->linear == LINEAR_DELTA) {
        *fwd = x.heads *
               (chunk * (6.0 * n + 4.0 * p) + 6.0 * n * p + 2.0 / 3.0 * chunk * chunk);
        *again = x.heads * (chunk * (2.0 * n + 2.0 * p) + 4.0 * n * p);
    }
}

double workload_recurrence_flop (const struct workload_model *m)
{
    double states = workload_mixer_of (m, 1.0).states;

    switch (m->linear) {
    case LINEAR_SSM:
        return 7.0 * states;
    case LINEAR_DELTA:
        return 8.0 * states;
    case LINEAR_LIGHTNING:
        return 4.0 * states;
    case LINEAR_CONV:
    case LINEAR_NONE:
        break;
    }
    return 0.0;
}
