/* Layers to stages, for the lower bound: the least step over every split, in fractions
 * (cheap) or in whole layers within memory.
 *
 * What is bounded is one replica: the one with the most stages on slow slots (bound.c says
 * how many at least).  With C_k = F_k + B_k, S one micro-batch's way down and up (all C and
 * all sends X), w = p-1-k the forwards that stage k does before its forwards and backwards
 * take turns, and r_k those that it still has to do after its first backward, 1F1B has for
 * every stage k
 *
 *     end of stage 0 >= S + (m-1) B_k + r_k F_k                                        (1)
 *     end of stage 0 >= S + (m-1-w) C_k + sum over i > k of C_i and the sends from k on (2)
 *
 * (1) is the way of the first micro-batch to stage k's first backward, what stage k has to
 * do from then on, and the way up.  (2) ends otherwise: after stage k's last forward that
 * micro-batch still goes down to the last stage and up again; it needs m-1 > w.  In the
 * steady state a run of r stages k..p-1 hands r micro-batches round in the time of its C
 * and the sends between them, so that in (2) M C_k, M = m-2-w, may be replaced by
 *
 *     floor (M / r) (sum over the run of C and X) + (M mod r) C_k.                     (3)
 *
 * These are linear in the layers and know only the stage itself and those after it, so a
 * recursion from the last stage to the first over (layers, stages on slow slots) finds the
 * split with the least sum of C among those whose rows ask for at most P beyond S; then
 * end = S + P.  What is left is one number, P: a larger one allows a smaller S (more layers
 * on fast slots) and other layers on stage 0, which sets the tail.  Between two values of
 * P the sum falls and P rises, so an interval has a bound, and the interval with the lowest
 * is halved until it is narrow. */
#include "mapper/bound/bound_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/extremes.h"
#include "base/memory.h"

/* Widths as parts of the bound at which the search for P ends. */
#define NARROW 2e-5
#define INTERVALS 96
#define RUNS_CELLS 1000000 /* beyond, runs are not looked at: seconds a configuration */
#define NEAR_KNOWN 0.98    /* of what is known: runs tell no more beside splits */
#define STATES_MAX 1000000 /* models of more layers than there are get fractions */

#define RUNS 8    /* longest run whose sums are kept */
#define FIGURES 4 /* of a state, where runs are looked at */

/* How a state was reached. */
struct choice {
    short layers, slow_after; /* of this stage; stages on slow slots after it */
    bool slow, slow_next;     /* this stage and the one after it */
};

/* What is known of the stages so far, each figure at its least over the splits that lead
 * to a state (so that together they are a bound, not a split). */
struct figures {
    double sum;       /* of all C and of the sends by kinds of slots */
    double bare;      /* of all C */
    double run[RUNS]; /* of the first 1, 2, ... stages' C and the sends between them */
};

/* Room for the recursion over one configuration.  A state is (layers, stages on slow slots,
 * kind of the first slot); it keeps several figures where one would blur them. */
struct recursion {
    const struct bound_case *x;
    struct choice *choice;      /* [p * states], or NULL: not asked for */
    struct choice first;        /* stage 0's in the best split */
    int width;                  /* slow + 1 */
    int states;                 /* (layers + 1) * width * 2 */
    int keep, runs;             /* figures of a state, sums of runs */
    struct figures *now, *next; /* [states * keep] */
    int *n_now, *n_next;        /* [states] figures that are there */
    int *room;      /* [p + 1] layers that the stages before k can hold at most */
    double least_s; /* least_end */
};

static int state_of (const struct recursion *r, int layers, int slow, int kind)
{
    return (layers * r->width + slow) * 2 + kind;
}

/* How often a run of so many stages goes round, and what is left for the stage alone. */
struct turns {
    double rounds, rest;
};

/* What stage k's rows count. */
struct counts {
    double wf, wb;              /* forwards and backwards of row (1) */
    int run, left;              /* stages from it on; rounds of row (2) */
    struct turns all, of[RUNS]; /* of all stages from it on, of the first i + 1 of them */
};

static struct turns turns_of (int left, int run)
{
    return (struct turns){(left - 1) / run, (left - 1) % run + 1};
}

static struct counts counts_of (const struct config_times *times, int k)
{
    struct counts n = {.run = times->p - k, .left = bound_rounds_left (times, k)};

    bound_row_weights (times, k, &n.wf, &n.wb);
    n.all = turns_of (n.left, n.run);
    for (int i = 0; i < RUNS; i++)
        n.of[i] = turns_of (n.left, i + 1);
    return n;
}

/* Rows (1) and (2) with (3) of a stage that takes fwd and back before stages and sends that
 * sum up to `after`. */
static double rows (const struct counts *n, double fwd, double back, double after)
{
    double most = n->wb * back + n->wf * fwd;

    if (n->left > 0) {
        double both = fwd + back, round_s = larger (both * n->run, both + after);

        /* The run's pace or the stage's own. */
        most = larger (most, n->all.rounds * round_s + n->all.rest * both + after);
    }
    return most;
}

/* Row (2) with (3) of the runs that are kept, of which `runs` have a sum. */
static double run_rows (const struct counts *n, int runs, double after,
                        const struct figures *f)
{
    double most = 0.0;

    if (n->left <= 0)
        return most;
    for (int i = 1; i < runs && i < n->run; i++)
        most = larger (most,
                       n->of[i].rounds * f->run[i] + n->of[i].rest * f->run[0] + after);
    return most;
}

/* The most layers that stage k may hold on this kind of slot: row (1) and memory. */
static int most_layers (const struct bound_case *x, int k, int kind, double most)
{
    const struct config_times *times = x->times;
    struct stage_times l = stage_times_of (x, k, kind);
    double wf, wb, fixed, per_layer, n = times->layers - times->p + 1;

    bound_row_weights (times, k, &wf, &wb);
    fixed = wb * l.back_s + wf * l.fwd_s;
    per_layer = wb * l.layer_back_s + wf * l.layer_fwd_s;
    if (per_layer > 0)
        n = smaller (n, floor ((most - fixed) / per_layer * (1 + 1e-12)));
    if (x->cap)
        n = smaller (n, x->cap[kind * times->p + k]);
    return n < 0 ? 0 : (int) n;
}

static void take_least (const struct recursion *r, struct figures *a,
                        const struct figures *b)
{
    a->sum = smaller (a->sum, b->sum);
    a->bare = smaller (a->bare, b->bare);
    for (int i = 0; i < r->runs; i++)
        a->run[i] = smaller (a->run[i], b->run[i]);
}

/* How much is lost when two are taken as one; 0 where one is nowhere above the other. */
static double blur (const struct figures *a, const struct figures *b)
{
    double up = larger (0.0, b->sum - a->sum), all = b->sum - a->sum;

    for (int i = 0; i < RUNS; i++) {
        double d = b->run[i] - a->run[i];

        up += larger (0.0, d);
        all += d;
    }
    return smaller (up, up - all);
}

/* Add figures to a state; where it is full, those that are most alike become one.
 * @return do they have the least sum? */
static bool add_figures (struct recursion *r, int state, const struct figures *f)
{
    struct figures *list = r->next + (size_t) state * (size_t) r->keep;
    int n = r->n_next[state], nearest = 0;
    double least = INFINITY, loss = INFINITY;

    for (int i = 0; i < n; i++) {
        double d = r->keep > 1 ? blur (&list[i], f) : 0.0;

        least = smaller (least, list[i].sum);
        if (d < loss) {
            loss = d;
            nearest = i;
        }
    }
    if (n > 0 && (n == r->keep || loss <= 0.0))
        take_least (r, &list[nearest], f);
    else
        list[r->n_next[state]++] = *f;
    return f->sum < least;
}

/* A stage on a kind of slot. */
struct adding {
    int k, kind;
    struct stage_times l;
    struct counts counts;
    double base; /* sends from it on at least */
    double most; /* its rows may ask for */
};

/* Give the stage `here` layers before the stages of a state.  @return can it hold them? */
static bool add_here (struct recursion *r, const struct adding *a, int here, int from)
{
    const struct config_times *times = r->x->times;
    int slow = from / 2 % r->width, layers = from / 2 / r->width, kind = a->kind;
    int to = state_of (r, layers + here,
                       slow + kind < r->width ? slow + kind : r->width - 1, kind);
    double fwd = a->l.fwd_s + here * a->l.layer_fwd_s,
           back = a->l.back_s + here * a->l.layer_back_s;
    double both = fwd + back,
           send = a->k < times->p - 1 ? times->pair_s[kind][from % 2] : 0.0;
    bool can = false;

    for (int i = 0; i < r->n_now[from]; i++) {
        const struct figures *f = &r->now[(size_t) from * (size_t) r->keep + (size_t) i];
        double after = larger (f->sum + send, f->bare + a->base);
        struct figures now = {.sum = f->sum + send + both, .bare = f->bare + both};

        if (rows (&a->counts, fwd, back, after) > a->most)
            continue;
        if (r->runs > 0) {
            now.run[0] = both;
            for (int n = 1; n < r->runs; n++)
                now.run[n] = f->run[n - 1] + send + both;
            if (run_rows (&a->counts, r->runs, after, &now) > a->most)
                continue;
        }
        can = true;
        if (add_figures (r, to, &now) && r->choice)
            r->choice[(size_t) a->k * (size_t) r->states + (size_t) to] =
                (struct choice){(short) here, (short) slow, kind == 1, from % 2 == 1};
    }
    return can;
}

/* Add stage k to every state. */
static void add_stage (struct recursion *r, int k, double most)
{
    const struct config_times *times = r->x->times;
    int layers = times->layers, others = times->p - 1 - k;

    memset (r->n_next, 0, (size_t) r->states * sizeof (int));
    for (int kind = 0; kind < 2; kind++) {
        int room = most_layers (r->x, k, kind, most);

        struct adding a = {.k = k,
                           .kind = kind,
                           .l = stage_times_of (r->x, k, kind),
                           .counts = counts_of (times, k),
                           .base = bound_run_sends_s (times, times->p - k),
                           .most = most};

        if (kind == 1 && r->x->slow == 0 && room <= most_layers (r->x, k, 0, most))
            continue;
        for (int n = others; n <= layers - k - 1; n++) {
            /* What the stages before cannot hold must be here. */
            int least = layers - n - r->room[k], end = layers - k - n;

            least = least > 1 ? least : 1;
            end = room < end ? room : end;
            for (int at = state_of (r, n, 0, 0); at < state_of (r, n + 1, 0, 0); at++)
                if (r->n_now[at] > 0 && at / 2 % r->width + kind + k >= r->x->slow)
                    for (int here = least; here <= end && add_here (r, &a, here, at);)
                        here++; /* and more, as long as it can hold them */
        }
    }
}

static void find_room (struct recursion *r, double most)
{
    r->room[0] = 0;
    for (int k = 0; k < r->x->times->p; k++) {
        int fast = most_layers (r->x, k, 0, most), slow = most_layers (r->x, k, 1, most);

        r->room[k + 1] = r->room[k] + (fast > slow ? fast : slow);
    }
}

/* The least step when stage 0, on a kind of slot, takes the layers that a state leaves. */
static double first_step (const struct recursion *r, int kind, int from, double least,
                          double most)
{
    const struct config_times *times = r->x->times;
    struct stage_times l = stage_times_of (r->x, 0, kind);
    int here = times->layers - from / 2 / r->width;
    double fwd = l.fwd_s + here * l.layer_fwd_s, back = l.back_s + here * l.layer_back_s;
    double both = fwd + back, send = times->p > 1 ? times->pair_s[kind][from % 2] : 0.0;
    double best = INFINITY;
    struct counts counts = counts_of (times, 0);

    for (int i = 0; i < r->n_now[from]; i++) {
        const struct figures *f = &r->now[(size_t) from * (size_t) r->keep + (size_t) i];
        double after =
            larger (f->sum + send, f->bare + bound_run_sends_s (times, times->p));
        double own = rows (&counts, fwd, back, after), end;
        struct figures now;

        now.run[0] = both;
        for (int n = 1; n < r->runs; n++)
            now.run[n] = f->run[n - 1] + send + both;
        if (r->runs > 0)
            own = larger (own, run_rows (&counts, r->runs, after, &now));
        if (own > most)
            continue;
        end = larger (least, own) + (times->dearer_s + both + after);
        best = smaller (best,
                        end + first_tail_s (r->x, here, kind,
                                            bound_ahead (r->x, here, end, r->least_s)));
    }
    return best;
}

static double add_first (struct recursion *r, double least, double most)
{
    const struct config_times *times = r->x->times;
    double best = INFINITY;

    for (int kind = 0; kind < 2; kind++) {
        int room = most_layers (r->x, 0, kind, most);
        int from = state_of (r, room < times->layers ? times->layers - room : 0, 0, 0);

        for (int at = from; at < state_of (r, times->layers, 0, 0); at++) {
            double step;

            if (r->n_now[at] == 0 || at / 2 % r->width + kind < r->x->slow)
                continue;
            step = first_step (r, kind, at, least, most);
            if (!(step < best))
                continue;
            best = step;
            r->first =
                (struct choice){(short) (times->layers - at / 2 / r->width),
                                (short) (at / 2 % r->width), kind == 1, at % 2 == 1};
        }
    }
    return best;
}

/* The least step of the splits whose rows ask for at most `most`, when the end is S + P,
 * P >= `least`. */
static double step_of (struct recursion *r, double least, double most)
{
    const struct config_times *times = r->x->times;

    find_room (r, most);
    if (r->room[times->p] < times->layers)
        return INFINITY;
    memset (r->n_now, 0, (size_t) r->states * sizeof (int));
    r->n_now[0] = 1;
    r->now[0] = (struct figures){0};
    for (int k = times->p - 1; k > 0; k--) {
        struct figures *now = r->now;
        int *n_now = r->n_now;

        add_stage (r, k, most);
        r->now = r->next;
        r->n_now = r->n_next;
        r->next = now;
        r->n_next = n_now;
    }
    return add_first (r, least, most);
}

/* An interval of P and its bound. */
struct interval {
    double least, most, step_s;
};

/* Halve the interval with the lowest bound until it is narrow. */
static struct interval narrow (struct recursion *r, double least, double most)
{
    struct interval list[INTERVALS];
    int n = 1;

    list[0] = (struct interval){least, most, step_of (r, least, most)};
    for (;;) {
        struct interval *low, upper;
        double middle;
        int at = 0;

        for (int i = 1; i < n; i++)
            if (list[i].step_s < list[at].step_s)
                at = i;
        low = &list[at];
        if (n == INTERVALS || !(low->most - low->least > NARROW * low->step_s))
            return *low;
        middle = 0.5 * (low->least + low->most);
        upper = (struct interval){middle, low->most,
                                  larger (low->step_s, step_of (r, middle, low->most))};
        low->most = middle;
        low->step_s = larger (low->step_s, step_of (r, low->least, middle));
        list[n++] = upper;
    }
}

static bool recursion_init (struct recursion *r, const struct bound_case *x, int keep,
                            int runs)
{
    const struct config_times *times = x->times;
    size_t states = (size_t) (times->layers + 1) * (size_t) (x->slow + 1) * 2;

    *r = (struct recursion){0};
    if (states * (size_t) keep > STATES_MAX)
        return false;
    *r = (struct recursion){.x = x,
                            .width = x->slow + 1,
                            .states = (int) states,
                            .keep = keep,
                            .runs = runs,
                            .least_s = bound_least_end (x)};
    r->now = malloc (2 * states * (size_t) keep * sizeof *r->now);
    r->n_now = malloc (2 * states * sizeof *r->n_now);
    r->room = malloc ((size_t) (times->p + 1) * sizeof (int));
    r->next = r->now ? r->now + states * (size_t) keep : NULL;
    r->n_next = r->n_now ? r->n_now + states : NULL;
    return r->now && r->n_now && r->room;
}

static void recursion_release (struct recursion *r)
{
    FREE_ALL (r->now < r->next ? r->now : r->next,
              r->n_now < r->n_next ? r->n_now : r->n_next, r->room, r->choice);
}

/* The interval of P that the bound comes from; false when no split fits. */
static bool best_interval (struct recursion *r, struct interval *out)
{
    double sum = bound_least_way_s (r->x);
    double least = bound_least_rest_s (r->x) * (1.0 - 1e-9);
    double most = least, step = step_of (r, least, INFINITY);

    if (!isfinite (step))
        return false;
    /* Up to where some split is possible, and as far as a larger P could pay. */
    for (double width = 0.01 * most + 1e-9 * step;
         !isfinite (step = step_of (r, most, most)); width *= 2) {
        least = most;
        most += width;
    }
    *out = step <= r->x->known_s ? (struct interval){most, most, step}
                                 : narrow (r, least, larger (most, step - sum));
    return true;
}

static double splits_with (const struct bound_case *x, int keep, int runs)
{
    double loose = bound_fractions (x);
    struct recursion r = {0};
    struct interval at = {.step_s = INFINITY};

    if (isfinite (loose)) {
        if (!recursion_init (&r, x, keep, runs))
            at.step_s = loose;
        else if (best_interval (&r, &at))
            at.step_s = larger (loose, at.step_s);
    }
    recursion_release (&r);
    return at.step_s;
}

double bound_splits (const struct bound_case *x)
{
    return splits_with (x, 1, 0);
}

double bound_runs (const struct bound_case *x)
{
    const struct config_times *times = x->times;
    double cells = 2.0 * FIGURES * times->p * (times->layers + 1.0) * (x->slow + 1.0),
           splits = bound_splits (x);

    return cells > RUNS_CELLS || splits < x->known_s * NEAR_KNOWN
               ? splits
               : splits_with (x, FIGURES, RUNS);
}

enum status bound_least_split (const struct bound_case *x, double *step_s, int *layers,
                               bool *slow, struct error *err)
{
    struct recursion r;
    struct interval at;
    enum status st = ST_OK;

    if (!recursion_init (&r, x, 1, 0) || !best_interval (&r, &at))
        st = err_set (err, ST_NOFIT, "no split of the layers was found");
    if (st == ST_OK && !(r.choice = malloc ((size_t) x->times->p * (size_t) r.states *
                                            sizeof *r.choice)))
        st = err_nomem (err);
    if (st == ST_OK) {
        struct choice c;
        int left = x->times->layers;

        *step_s = step_of (&r, at.least, at.most);
        c = r.first;
        for (int k = 0;; k++) {
            layers[k] = c.layers;
            slow[k] = c.slow;
            left -= c.layers;
            if (k == x->times->p - 1)
                break;
            c = r.choice[(size_t) (k + 1) * (size_t) r.states +
                         (size_t) state_of (&r, left, c.slow_after, c.slow_next)];
        }
    }
    recursion_release (&r);
    return st;
}
