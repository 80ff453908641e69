/* --what-if of plan and eval: the table. */
#include "cli/cli.h"

#include <math.h>

struct showing {
    struct progress progress;
    int done, n;
};

static void show (void *context, const char *what)
{
    struct showing *s = context;

    progress_part (&s->progress, (double) s->done / s->n, "what if %d of %d: %.80s",
                   s->done + 1, s->n, what);
    s->done++;
}

enum status cli_whatif_run (const struct report_whatif_plan *plan,
                            struct report_whatif *w, struct error *err)
{
    struct showing s = {.n = w->n};
    enum status st;

    cli_progress_start (&s.progress);
    st = report_whatif_run (plan, w, show, &s, err);
    progress_end (&s.progress);
    return st;
}

/* A step, and by how much it is longer than another. */
static void step_cells (struct table *t, double step_s, double base_s)
{
    cli_cell (t, "%.4f", step_s);
    cli_cell (t, "%+.2f", 100 * (step_s / base_s - 1));
}

static void row (struct table *t, const struct report_what *base,
                 const struct report_what *what)
{
    const struct report_best *b = &what->replanned, *of = &base->replanned;
    char config[CLI_CONFIG_TEXT];

    table_cell (t, "%s", what->change ? what->change : "as it is");
    step_cells (t, what->in_place_s, base->in_place_s);
    step_cells (t, b->fits ? b->plan.estimate.step_s : NAN,
                of->fits ? of->plan.estimate.step_s : NAN);
    cli_cell (t, "%.2f",
              b->fits ? 100 * (b->plan.estimate.step_s / b->plan.lower_bound_s - 1)
                      : NAN);
    table_cell (t, "%s",
                what == base || !b->fits || !of->fits
                    ? "-"
                    : report_surely (&of->plan, &b->plan));
    table_cell (t, "%s",
                what == base || !b->fits ? "-"
                : !of->fits              ? cli_config_text (&b->plan.config, config)
                : cli_config_change (&b->plan.config, &of->plan.config, config)[0]
                    ? config
                    : "same degrees and settings");
}

void cli_whatif_print (const struct report_whatif *w)
{
    struct table *t = TABLE_OF ("<what if", "in place s", "%", "replanned s", "%",
                                "gap %", "<surely", "<new plan (what differs)");
    bool unsure = false, compared = w->what->replanned.fits;
    char config[CLI_CONFIG_TEXT];

    for (int k = 0; k < w->n; k++) {
        const struct report_best *b = &w->what[k].replanned, *of = &w->what->replanned;

        row (t, w->what, &w->what[k]);
        unsure = unsure ||
                 (k && b->fits && of->fits && report_certain (&of->plan, &b->plan) == 0);
    }
    cli_print ("\n");
    table_end (t, stdout);
    if (compared)
        cli_print ("as it is, replanned: %s\n",
                   cli_config_text (&w->what->replanned.plan.config, config));
    for (int k = 0; k < w->n; k++) {
        const struct report_what *one = &w->what[k];
        const char *what = one->change ? one->change : "as it is";

        if (!isfinite (one->in_place_s))
            cli_print ("%s: not possible in place: %s\n", what, one->why);
        if (!one->replanned.fits)
            cli_print ("%s: no plan: %s\n", what, one->replanned.why);
    }
    if (unsure)
        cli_print (
            "within the gap: the difference is no larger than what the searches may "
            "have missed\n");
}
