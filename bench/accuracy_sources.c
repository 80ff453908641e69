/* Every runs file of a folder on one line, the estimates being those that `linkwise
 * validate` makes by itself: a part of make accuracy RUNS=DIR.  Below, what fitting constants to
 * a few runs of a source gains on its others. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "base/stats.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/joint.h"
#include "bench/runs_dir.h"
#include "mapper/search/search.h"

#define DRAWS 20
#define DRAWN 5
#define FEW_LEAST 8  /* step times that a source needs for draws */
#define FEW_MOST 200 /* of more, every k-th is taken */

/* The figures of a source, in tables: from T_LEFT_ROWS, PEAKS, DRAWN_FROM and P_DRAWN_FROM on. */
enum {
    TIMES,
    T_MAPE,
    T_MEDIAN,
    T_BIAS,
    T_RANK,
    T_REGRET,
    T_INSIDE,
    T_LEFT_ROWS,
    T_LEFT,
    T_LEFT_MEDIAN,
    T_LEFT_RANK,
    T_LEFT_REGRET,
    T_LEFT_INSIDE,
    PEAKS,
    P_MAPE,
    P_MEDIAN,
    P_INSIDE,
    RAN,
    RISKY,
    REFUSED,
    DRAWN_FROM,
    UNFITTED,
    FIVE,
    WORSE,
    LEFT_DRAWN_FROM,                    /* and as many figures */
    P_DRAWN_FROM = LEFT_DRAWN_FROM + 4, /* and as many */
    P_DRAWN_INSIDE = P_DRAWN_FROM + 4,
    P_FIVE_INSIDE,
    FIGURES
};

/* How a table shows them, and which is the worst of several. */
static const struct {
    const char *header, *format;
    enum { COUNT, LARGEST, LEAST, FARTHEST } worst; /* FARTHEST: from 0 */
} look[FIGURES] = {{"steps", "%.0f", COUNT},        {"MAPE %", "%.1f", LARGEST},
                   {"median", "%.1f", LARGEST},     {"bias", "%+.1f", FARTHEST},
                   {"rank", "%.3f", LEAST},         {"regret", "%.1f", LARGEST},
                   {"inside", "%.0f", LEAST},       {"rows", "%.0f", COUNT},
                   {"left out %", "%.1f", LARGEST}, {"median", "%.1f", LARGEST},
                   {"rank", "%.3f", LEAST},         {"regret", "%.1f", LARGEST},
                   {"inside", "%.0f", LEAST},       {"peaks", "%.0f", COUNT},
                   {"MAPE %", "%.1f", LARGEST},     {"median", "%.1f", LARGEST},
                   {"inside", "%.0f", LEAST},       {"ran", "%.0f", COUNT},
                   {"risky %", "%.0f", LARGEST},    {"refused %", "%.1f", LARGEST},
                   {"steps", "%.0f", COUNT},        {"MAPE %", "%.1f", LARGEST},
                   {"5 fitted %", "%.1f", LARGEST}, {"worse %", "%.0f", LARGEST},
                   {"steps", "%.0f", COUNT},        {"left out %", "%.1f", LARGEST},
                   {"5 fitted %", "%.1f", LARGEST}, {"worse %", "%.0f", LARGEST},
                   {"peaks", "%.0f", COUNT},        {"MAPE %", "%.1f", LARGEST},
                   {"5 fitted %", "%.1f", LARGEST}, {"worse %", "%.0f", LARGEST},
                   {"inside %", "%.0f", LEAST},     {"5 inside %", "%.0f", LEAST}};

/* fitted: a profile names the source; composed, other: nothing was fitted on it. */
enum kind { FITTED, COMPOSED, OTHER };

static struct source {
    char name[64], profile[64];
    char nothing[256]; /* why no row is usable; "" */
    enum kind kind;
    double figure[FIGURES]; /* NAN: none */
    struct calibrate_runs runs;
    bool *use; /* [runs.n] has a step time that counts; NULL: no row */
} * source;
static int n_sources;

/* One file that is being measured. */
struct file {
    struct calibrate_runs runs;
    struct workload_profile *p; /* [runs.n] */
    bool *use;                  /* [runs.n] has a step time that counts */
    double *step_s, *open;      /* [runs.n] */
};

/* A peak alone that is over the GPU's memory is a formula's. */
static bool ran (const struct calibrate_run *run)
{
    return run->oom == 0 || (run->oom < 0 && (!isnan (run->iter_time_s) ||
                                              run->peak_bytes <= run->gpu_bytes));
}

/* A profile's name, whatever the release: as many characters. */
static int plain_name (const struct workload_profile *p)
{
    return (int) strcspn (p->name, "@");
}

static void describe (const struct file *f, struct source *s)
{
    int n = plain_name (&f->p[0]);

    snprintf (s->profile, sizeof s->profile, "%.*s", n, f->p[0].name);
    s->kind = OTHER;
    for (int i = 0; i < f->runs.n; i++) {
        enum kind kind = f->p[i].compute_of_type                       ? COMPOSED
                         : runs_dir_fitted (&f->p[i], &f->runs.run[i]) ? FITTED
                                                                       : OTHER;

        if (plain_name (&f->p[i]) != n ||
            strncmp (f->p[i].name, f->p[0].name, (size_t) n) != 0)
            snprintf (s->profile, sizeof s->profile, "several");
        if (kind < s->kind)
            s->kind = kind;
    }
}

static struct calibrate_time_scores scores_of (const struct calibrate_runs *r,
                                               const double *step_s, const bool *use)
{
    struct calibrate_time_scores score;
    struct error err;

    if (calibrate_score_times (r, step_s, use, &score, &err) != ST_OK)
        die (&err);
    return score;
}

static struct calibrate_errors errors_of (const struct calibrate_runs *r,
                                          const double *step_s, const bool *use)
{
    return scores_of (r, step_s, use).errors;
}

static void score_times (const struct file *f, double *figure)
{
    struct calibrate_time_scores scores = scores_of (&f->runs, f->step_s, f->use);
    struct calibrate_errors e = scores.errors;
    double *far = calloc ((size_t) f->runs.n, sizeof *far);
    int n = 0;

    for (int i = 0; i < f->runs.n; i++)
        if (f->use[i])
            far[n++] = log (f->step_s[i] / f->runs.run[i].iter_time_s);
    figure[TIMES] = n;
    if (n > 0) {
        figure[T_MAPE] = 100 * e.mape;
        figure[T_MEDIAN] = 100 * e.median;
        figure[T_BIAS] = 100 * stats_median (far, n);
        figure[T_RANK] = e.spearman;
        figure[T_REGRET] = 100 * scores.regret.mean;
        figure[T_INSIDE] =
            100 * calibrate_time_coverage (&f->runs, f->p, f->step_s, f->open, f->use);
    }
    free (far);
}

static void score_memory (const struct file *f, double *figure)
{
    struct calibrate_errors e;
    struct error err;
    int n = 0, refused = 0, risky = 0;

    if (calibrate_memory_errors (&f->runs, f->p, false, NULL, &e, &err) != ST_OK)
        die (&err);
    figure[PEAKS] = e.n;
    if (e.n > 0) {
        figure[P_MAPE] = 100 * e.mape;
        figure[P_MEDIAN] = 100 * e.median;
        figure[P_INSIDE] = 100 * calibrate_memory_coverage (&f->runs, f->p, NULL);
    }
    for (int i = 0; i < f->runs.n; i++) {
        const struct calibrate_run *run = &f->runs.run[i];
        double need = calibrate_need (run, &f->p[i], MEMEST_LINKWISE);

        if (!ran (run))
            continue;
        n++;
        risky += calibrate_chance (run, &f->p[i]) > MAPPER_RISK;
        refused += need > run->gpu_bytes;
    }
    figure[RAN] = n;
    figure[RISKY] = n > 0 ? 100.0 * risky / n : NAN;
    figure[REFUSED] = n > 0 ? 100.0 * refused / n : NAN;
}

/* ---- a few runs of a source fitted ---- */

/* MAPE of `others` under the time constants fitted to all but these. */
static double fitted_mape (const struct calibrate_runs *r, const bool *others,
                           struct workload_profile p)
{
    struct workload_profile *all = calloc ((size_t) r->n, sizeof *all);
    bool *use = calloc ((size_t) r->n, sizeof *use);
    struct calibrate_fit fit;
    struct calibrate_steps steps;
    struct error err;
    double mape;

    for (int i = 0; i < r->n; i++)
        use[i] = !others[i];
    if (calibrate_fit (r, CALIBRATE_TIME, use, &p, &fit, &err) != ST_OK ||
        calibrate_profiles (r, &p, all, &err) != ST_OK ||
        calibrate_steps_estimate (r, all, NULL, NULL, &steps, &err) != ST_OK)
        die (&err);
    mape = errors_of (r, steps.step_s, others).mape;
    calibrate_steps_release (&steps);
    FREE_ALL (all, use);
    return mape;
}

/* The first run with the profile, and its release, that most of those in use have: a fit is to one
 * of them. */
static int usual_profile (const struct file *f)
{
    int most = 0, best = 0;

    for (int i = 0; i < f->runs.n; i++) {
        int n = 0;

        for (int k = 0; k < f->runs.n && f->use[i]; k++)
            n += f->use[k] && strcmp (f->p[k].name, f->p[i].name) == 0;
        if (n > most) {
            most = n;
            best = i;
        }
    }
    return best;
}

/* Draw DRAWN of n runs; the others are marked. */
static void choose (struct rng *rng, int n, bool *others)
{
    for (int i = 0; i < n; i++)
        others[i] = true;
    for (int left = DRAWN; left > 0;) {
        int i = rng_below (rng, n);

        left -= others[i];
        others[i] = false;
    }
}

/* Write DRAWN_FROM to WORSE, or as many from LEFT_DRAWN_FROM on. */
static void draw (const struct file *f, double times, double *figure)
{
    size_t size = (size_t) f->runs.n;
    struct calibrate_runs some = {.run = calloc (size, sizeof *some.run)};
    double *step_s = calloc (size, sizeof *step_s), none[DRAWS], five[DRAWS];
    bool *others = calloc (size, sizeof *others);
    int every = ((int) times + FEW_MOST - 1) / FEW_MOST, worse = 0;
    int first = usual_profile (f);
    struct rng rng = {1};

    for (int i = first, seen = 0; i < f->runs.n; i++)
        if (f->use[i] && strcmp (f->p[i].name, f->p[first].name) == 0 &&
            seen++ % every == 0) {
            step_s[some.n] = f->step_s[i];
            some.run[some.n++] = f->runs.run[i];
        }
    if (some.n >= FEW_LEAST) { /* many profiles may share a source's runs */
        for (int d = 0; d < DRAWS; d++) {
            choose (&rng, some.n, others);
            none[d] = errors_of (&some, step_s, others).mape;
            five[d] = fitted_mape (&some, others, f->p[first]);
            worse += five[d] > none[d] + 0.01;
        }
        *figure++ = some.n;
        *figure++ = 100 * stats_median (none, DRAWS);
        *figure++ = 100 * stats_median (five, DRAWS);
        *figure = 100.0 * worse / DRAWS;
    }
    FREE_ALL (some.run, step_s, others);
}

/* The same of peaks. */
static double peaks_mape (const struct calibrate_runs *r, const bool *others,
                          const struct workload_profile *p, struct workload_profile *all,
                          double *inside)
{
    struct calibrate_errors e;
    struct error err;

    if (calibrate_profiles (r, p, all, &err) != ST_OK ||
        calibrate_memory_errors (r, all, false, others, &e, &err) != ST_OK)
        die (&err);
    *inside += 100 * calibrate_memory_coverage (r, all, others) / DRAWS;
    return e.mape;
}

/* Write P_DRAWN_FROM to P_FIVE_INSIDE. */
static void draw_peaks (const struct file *f, double *figure)
{
    size_t size = (size_t) f->runs.n;
    struct calibrate_runs some = {.run = calloc (size, sizeof *some.run)};
    struct workload_profile *all = calloc (size, sizeof *all);
    bool *others = calloc (size, sizeof *others), *given = calloc (size, sizeof *given);
    int every = ((int) figure[PEAKS] + FEW_MOST - 1) / FEW_MOST, worse = 0, seen = 0;
    double none[DRAWS], five[DRAWS], inside[2] = {0, 0};
    struct rng rng = {1};

    for (int i = 0; i < f->runs.n; i++)
        if (!isnan (f->runs.run[i].peak_bytes) && seen++ % every == 0)
            some.run[some.n++] = f->runs.run[i];
    for (int d = 0; d < DRAWS; d++) {
        struct workload_profile p = f->p[0];
        struct calibrate_fit fit;
        struct error err;

        choose (&rng, some.n, others);
        for (int i = 0; i < some.n; i++)
            given[i] = !others[i];
        none[d] = peaks_mape (&some, others, &p, all, &inside[0]);
        if (calibrate_fit (&some, CALIBRATE_MEMORY, given, &p, &fit, &err) != ST_OK)
            die (&err);
        five[d] = peaks_mape (&some, others, &p, all, &inside[1]);
        worse += five[d] > none[d] + 0.01;
    }
    figure[P_DRAWN_FROM] = some.n;
    figure[P_DRAWN_FROM + 1] = 100 * stats_median (none, DRAWS);
    figure[P_DRAWN_FROM + 2] = 100 * stats_median (five, DRAWS);
    figure[P_DRAWN_FROM + 3] = 100.0 * worse / DRAWS;
    figure[P_DRAWN_INSIDE] = inside[0];
    figure[P_FIVE_INSIDE] = inside[1];
    FREE_ALL (some.run, all, others, given);
}

/* ---- all files ---- */

static void measure (struct source *s)
{
    const struct calibrate_runs *runs = &s->runs;
    size_t n = (size_t) runs->n;
    struct file f = {*runs, calloc (n, sizeof *f.p), calloc (n, sizeof *f.use), NULL,
                     NULL};
    struct calibrate_steps steps;
    struct error err;

    if (calibrate_profiles (runs, NULL, f.p, &err) != ST_OK ||
        calibrate_steps_estimate (runs, f.p, NULL, NULL, &steps, &err) != ST_OK)
        die (&err);
    f.step_s = steps.step_s;
    f.open = steps.open;
    for (int i = 0; i < runs->n; i++)
        f.use[i] = !isnan (runs->run[i].iter_time_s) && isfinite (f.step_s[i]) &&
                   !runs_dir_disturbed (runs, &runs->run[i]);
    describe (&f, s);
    score_times (&f, s->figure);
    score_memory (&f, s->figure);
    if (s->figure[TIMES] >= FEW_LEAST)
        draw (&f, s->figure[TIMES], &s->figure[DRAWN_FROM]);
    if (s->figure[PEAKS] >= FEW_LEAST)
        draw_peaks (&f, s->figure);
    if (s->figure[TIMES] + s->figure[PEAKS] + s->figure[RAN] <= 0)
        snprintf (s->nothing, sizeof s->nothing,
                  "%d rows, none with a step time, a peak or a word that it ran",
                  runs->n);
    calibrate_steps_release (&steps);
    free (f.p);
    s->use = f.use;
}

/* How many rows of a left out source have an estimate, and the percent of these within the interval
 * that one which nobody fitted gets. */
static void count_inside (struct source *s, const struct joint_fit *j, int k)
{
    int n = 0, inside = 0;

    for (int i = 0; i < s->runs.n; i++) {
        double left_s = j->left_out_s[k][i],
               interval = workload_interval (j->left_out_spread[k][i]);

        if (!s->use[i] || !isfinite (left_s))
            continue;
        n++;
        inside += fabs (log (left_s / s->runs.run[i].iter_time_s)) <= log (interval);
    }
    s->figure[T_LEFT_ROWS] = n;
    s->figure[T_LEFT_INSIDE] = n > 0 ? 100.0 * inside / n : NAN;
}

/* The same for a source by constants that have not seen it, left_s: measured times are taken for
 * what they are over those estimates, times those of the profile that it gets unnamed. */
static void draw_left_out (struct source *s, const double *left_s)
{
    size_t n = (size_t) s->runs.n;
    struct file f = {.runs = s->runs};
    struct calibrate_steps steps;
    struct error err;
    int times = 0;

    f.runs.run = calloc (n, sizeof *f.runs.run);
    f.p = calloc (n, sizeof *f.p);
    f.use = calloc (n, sizeof *f.use);
    for (size_t i = 0; i < n; i++) {
        f.runs.run[i] = s->runs.run[i];
        if (f.runs.run[i].framework[0])
            snprintf (f.runs.run[i].source, sizeof f.runs.run[i].source, "-");
    }
    if (calibrate_profiles (&f.runs, NULL, f.p, &err) != ST_OK ||
        calibrate_steps_estimate (&f.runs, f.p, NULL, NULL, &steps, &err) != ST_OK)
        die (&err);
    f.step_s = steps.step_s;
    for (size_t i = 0; i < n; i++) {
        f.use[i] = s->use[i] && isfinite (left_s[i]) && isfinite (steps.step_s[i]);
        times += f.use[i];
        f.runs.run[i].iter_time_s *= steps.step_s[i] / left_s[i];
    }
    if (times >= FEW_LEAST)
        draw (&f, times, &s->figure[LEFT_DRAWN_FROM]);
    calibrate_steps_release (&steps);
    FREE_ALL (f.runs.run, f.p, f.use);
}

/* Every source by constants fitted to the others together, as if no profile named it. */
static void leave_out (void)
{
    struct joint_source *in = calloc ((size_t) n_sources + 1, sizeof *in);
    int *of = calloc ((size_t) n_sources + 1, sizeof *of), n = 0;
    struct joint_fit joint;
    struct error err;

    for (int i = 0; i < n_sources; i++)
        if (source[i].figure[TIMES] > 0) {
            in[n] = (struct joint_source){&source[i].runs, source[i].use};
            of[n++] = i;
        }
    if (n > 0 && joint_fit (in, n, &joint, &err) != ST_OK)
        die (&err);
    for (int k = 0; k < n; k++) {
        struct source *s = &source[of[k]];
        struct calibrate_time_scores left =
            scores_of (&s->runs, joint.left_out_s[k], s->use);

        s->figure[T_LEFT] = 100 * left.errors.mape;
        s->figure[T_LEFT_MEDIAN] = 100 * left.errors.median;
        s->figure[T_LEFT_RANK] = left.errors.spearman;
        s->figure[T_LEFT_REGRET] = 100 * left.regret.mean;
        count_inside (s, &joint, k);
        draw_left_out (s, joint.left_out_s[k]);
    }
    if (n > 0)
        joint_release (&joint);
    FREE_ALL (in, of);
}

static void read_source (const char *dir, const char *file, struct source *s)
{
    struct error err;
    char path[4096];

    snprintf (path, sizeof path, "%s/%s", dir, file);
    snprintf (s->name, sizeof s->name, "%.*s", (int) strlen (file) - 4, file);
    for (int i = 0; i < FIGURES; i++)
        s->figure[i] = NAN;
    if (runs_dir_read (path, &s->runs, &err) == ST_OK) {
        measure (s);
    } else {
        const char *why = strstr (err.text, ".csv: "); /* without the folder */

        snprintf (s->nothing, sizeof s->nothing, "%.250s", why ? why + 6 : err.text);
    }
}

/* ---- the tables ---- */

/* Of the sources of these kinds that have the figure; a count's median is the sum. */
static double summary (int column, const bool *of_kind, bool worst)
{
    double *v = calloc ((size_t) n_sources + 1, sizeof *v), sum = 0, out;
    int n = 0;

    for (int i = 0; i < n_sources; i++)
        if (of_kind[source[i].kind] && !isnan (source[i].figure[column]))
            sum += v[n++] = source[i].figure[column];
    out = stats_median (v, n); /* sorts them */
    if (look[column].worst == COUNT)
        out = worst ? NAN : sum;
    else if (worst && n > 0)
        out = look[column].worst == LEAST ||
                      (look[column].worst == FARTHEST && -v[0] > v[n - 1])
                  ? v[0]
                  : v[n - 1];
    free (v);
    return out;
}

static void cells (struct table *t, int first, int end, const double *figure)
{
    for (int c = first; c < end; c++)
        table_number (t, look[c].format, figure[c]);
}

/* Has the source none of these figures? */
static bool has_none (const struct source *s, int first, int end)
{
    bool none = true;

    for (int c = first; c < end; c++)
        none = none && isnan (s->figure[c]);
    return none;
}

/* The columns from `first` to before `end`, a line for each source that has one of them; with
 * what it was estimated by, or its name alone. */
static void print_sources (int first, int end, bool by)
{
    static const struct {
        const char *of;
        bool kind[3];
    } group[] = {{"of the fitted", {[FITTED] = true}},
                 {"of composed and other", {[COMPOSED] = true, [OTHER] = true}},
                 {"of the sources", {true, true, true}}};
    static const char *const kinds[] = {"fitted", "composed", "other"};
    const char *header[FIGURES + 4] = {"<file", "<profile", "<kind"};
    struct table *t;
    int at = by ? 3 : 1;

    for (int c = first; c < end; c++)
        header[at++] = look[c].header;
    header[at] = NULL;
    t = table_create (header);
    for (int i = 0; i < n_sources; i++) {
        const struct source *s = &source[i];

        if (s->nothing[0] || has_none (s, first, end))
            continue;
        table_cell (t, "%s", s->name);
        if (by) {
            table_cell (t, "%s", s->profile);
            table_cell (t, "%s", kinds[s->kind]);
        }
        cells (t, first, end, s->figure);
    }
    for (int line = 0; line < 6; line++) {
        double figure[FIGURES];

        for (int c = first; c < end; c++)
            figure[c] = summary (c, group[line / 2].kind, line % 2);
        table_cell (t, "%s %s", line % 2 ? "worst" : "median", group[line / 2].of);
        for (int c = 0; c < 2 && by; c++)
            table_cell (t, "%s", "");
        cells (t, first, end, figure);
    }
    table_end (t, stdout);
}

/* A figure in percent of the rows that `rows` counts, over the rows of all sources. */
static double pooled (int column, int rows, bool fitted, double *n)
{
    double sum = 0;

    *n = 0;
    for (int i = 0; i < n_sources; i++)
        if (source[i].figure[rows] > 0 && (fitted || source[i].kind != FITTED)) {
            *n += source[i].figure[rows];
            sum += source[i].figure[rows] * source[i].figure[column];
        }
    return sum / *n;
}

static void print_inside (const char *of, bool fitted)
{
    double n, inside = pooled (T_LEFT_INSIDE, T_LEFT_ROWS, fitted, &n);

    if (n > 0)
        printf ("Of %.0f rows of sources left out%s %.1f %% are inside.\n", n, of,
                inside);
}

static void print_refused (const char *of, bool fitted)
{
    double n, risky = pooled (RISKY, RAN, fitted, &n),
              refused = pooled (REFUSED, RAN, fitted, &n);

    if (n > 0)
        printf ("Of %.0f runs%s that ran, %.1f %% are risky, %.1f %% refused.\n", n, of,
                risky, refused);
}

static void print_all (void)
{
    printf ("\nSources, each estimated as `linkwise validate` does by itself. fitted: a "
            "profile names it; composed,\n"
            "other: nothing was fitted on it. median: of the errors, %%; bias: median of "
            "log (estimate /\n"
            "measured), %%; rank: Spearman; regret: of groups of one model, GPUs, "
            "sequence and batch, what\n"
            "choosing by estimates loses in the mean, %%; inside: share in the 90 %% "
            "interval; left out: by\n"
            "constants that a joint fit of the other sources tells, no profile naming "
            "the source, of at most\n"
            "40 rows; risky: of the runs that ran, those with a chance above 1 %% of "
            "running out, which `plan`\n"
            "avoids; refused: those that need more than the GPU has. Lines of medians "
            "have the rows of all\n"
            "their sources.\n");
    print_sources (TIMES, T_LEFT_ROWS, true);
    printf ("\nThe same sources left out:\n");
    print_sources (T_LEFT_ROWS, PEAKS, false);
    print_inside ("", true);
    print_inside (", composed and other,", false);
    printf ("\nThe memory of all:\n");
    print_sources (PEAKS, DRAWN_FROM, false);
    print_refused ("", true);
    print_refused (" of composed and other", false);
    printf ("Step times are without the rows whose notes say SLOW: nanotron's steps that "
            "an unsteady cluster\ndisturbed.  No usable row:\n");
    for (int i = 0; i < n_sources; i++)
        if (source[i].nothing[0])
            printf ("  %s: %s\n", source[i].name, source[i].nothing);
    printf ("\nFitting to %d runs, drawn %d times: MAPE of the others with nothing "
            "fitted, and "
            "with the time\nconstants fitted to those %d (medians of the draws); worse: "
            "share "
            "of the draws in which the fit\nloses more than a point.  Fitted sources' "
            "profiles "
            "have seen all of their runs; left out: the\nsame from constants that have "
            "not.  At "
            "most %d rows of a source, every k-th.\n",
            DRAWN, DRAWS, DRAWN, FEW_MOST);
    print_sources (DRAWN_FROM, P_DRAWN_FROM, false);
    printf ("\nThe same of peaks and the memory constants, and the share of the others' "
            "peaks "
            "in their 90 %%\nintervals, before and after (means of the draws).\n");
    print_sources (P_DRAWN_FROM, FIGURES, false);
}

int main (int argc, char **argv)
{
    struct dirent **file;

    runs_dir_check (argc);
    n_sources = runs_dir_files (argv[1], &file);
    source = calloc ((size_t) n_sources + 1, sizeof *source);
    for (int i = 0; i < n_sources; i++) {
        read_source (argv[1], file[i]->d_name, &source[i]);
        free (file[i]);
    }
    leave_out ();
    print_all ();
    for (int i = 0; i < n_sources; i++) {
        if (source[i].use)
            calibrate_runs_release (&source[i].runs);
        free (source[i].use);
    }
    FREE_ALL (file, source);
    return 0;
}
