/* What explain found: kept, ranked and told. */
#include "report/report_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/memory.h"

void report_explain_tell (const struct report_explaining *e, const char *what)
{
    e->show (e->context, (double) e->searched / REPORT_SEARCHES, what);
}

struct report_gain *report_explain_add (struct report_explaining *e,
                                        enum report_kind kind)
{
    struct report_explained *x = e->x;

    if (!array_grow (&x->gain, (size_t) x->n_gains, sizeof *x->gain)) {
        err_nomem (e->err);
        return NULL;
    }
    x->gain[x->n_gains] =
        (struct report_gain){.kind = kind, .in_place_s = NAN, .replanned_s = NAN};
    return &x->gain[x->n_gains++];
}

void report_explained_release (struct report_explained *x)
{
    FREE_ALL (x->gain, x->rival);
    *x = (struct report_explained){0};
}

/* ---- ranked ---- */

const char *report_kind_name (enum report_kind k)
{
    static const char *const name[REPORT_KINDS] = {"link", "link inside", "pair",
                                                   "node", "GPU",         "setting"};

    return name[k];
}

/* -INFINITY where there is no step. */
static double saved (double step_s, double of_s)
{
    return isfinite (step_s) && isfinite (of_s) ? 1.0 - step_s / of_s : -INFINITY;
}

const char *report_gain_surely (const struct report_explained *x,
                                const struct report_gain *g)
{
    return !isfinite (g->share)                                       ? NULL
           : saved (g->in_place_s, x->estimate.step_s) > REPORT_WORTH ? "in place"
           : g->certain > 0                                           ? "yes"
                                                                      : "within the gap";
}

static int by_share (const void *a, const void *b)
{
    double x = ((const struct report_gain *) a)->share,
           y = ((const struct report_gain *) b)->share;

    return (x < y) - (x > y);
}

void report_explain_rank (struct report_explained *x)
{
    double step_s = x->estimate.step_s;

    /* In place of the plan's step, placed anew of what that gives without the change (settings: of
     * the plan's); the larger of the two, below 0 where both are longer.  -INFINITY: neither is
     * possible. */
    for (struct report_gain *g = x->gain; g < x->gain + x->n_gains; g++)
        g->share = fmax (saved (g->in_place_s, step_s),
                         saved (g->replanned_s, g->is_change ? x->replanned_s : step_s));
    if (x->n_gains > 1)
        qsort (x->gain, (size_t) x->n_gains, sizeof *x->gain, by_share);
}

/* ---- told ---- */

#define PARTS_TOLD 3 /* the largest */

const char *report_more_text (const struct costmodel_breakdown *more_s,
                              char buf[REPORT_MORE_TEXT])
{
    double whole = 0.0;
    bool told[COSTMODEL_PARTS] = {false};
    size_t len = 0;

    buf[0] = '\0';
    for (int k = 0; k < COSTMODEL_PARTS; k++)
        whole = fmax (whole, fabs (costmodel_part_s (more_s, k)));
    for (int n = 0; n < PARTS_TOLD; n++) {
        int most = COSTMODEL_PARTS;

        for (int k = 0; k < COSTMODEL_PARTS; k++)
            if (!told[k] &&
                (most == COSTMODEL_PARTS || fabs (costmodel_part_s (more_s, k)) >
                                                fabs (costmodel_part_s (more_s, most))))
                most = k;
        if (fabs (costmodel_part_s (more_s, most)) <= 0.02 * whole)
            break;
        told[most] = true;
        len += (size_t) snprintf (buf + len, REPORT_MORE_TEXT - len, "%s%.3g s %s %s",
                                  len ? ", " : "", fabs (costmodel_part_s (more_s, most)),
                                  costmodel_part_s (more_s, most) > 0 ? "more" : "less",
                                  costmodel_parts[most].words);
    }
    if (len == 0)
        snprintf (buf, REPORT_MORE_TEXT, "no part of the step differs");
    return buf;
}

static json_t *gain_json (const struct report_explained *x, const struct report_gain *g)
{
    json_t *doc = json_pack (
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:s?}", "kind", report_kind_name (g->kind),
        "what", g->what, "what_if", g->is_change ? json_string (g->what) : json_null (),
        "in_place_step_s", json_number_or_null (g->in_place_s), "replanned_step_s",
        json_number_or_null (g->replanned_s), "gain", json_number_or_null (g->share),
        "surely", report_gain_surely (x, g));

    if (doc && g->why[0])
        json_object_set_new (doc, "why", json_string (g->why));
    return doc;
}

json_t *report_explained_to_json (const struct report_explained *x)
{
    json_t *gains = json_array (), *rivals = json_array ();

    for (int k = 0; k < x->n_gains; k++)
        json_array_append_new (gains, gain_json (x, &x->gain[k]));
    for (int k = 0; k < x->n_rivals; k++) {
        const struct report_rival *r = &x->rival[k];
        json_t *doc = report_config_json (&r->config);

        json_object_set_new (doc, "step_s", json_number_or_null (r->step_s));
        if (isfinite (r->step_s))
            json_object_set_new (doc, "more_s", costmodel_breakdown_to_json (&r->more_s));
        else
            json_object_set_new (doc, "why", json_string (r->why));
        json_array_append_new (rivals, doc);
    }
    return json_pack ("{s:i, s:f, s:o, s:o, s:o}", "version", 1, "step_s",
                      x->estimate.step_s, "replanned_step_s",
                      json_number_or_null (x->replanned_s), "gains", gains, "next_best",
                      rivals);
}
