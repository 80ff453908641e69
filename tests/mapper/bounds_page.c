/* docs/bounds.md is true: its example is read from the page and computed anew with the
 * library's own bound and schedule, so that page and code cannot drift apart. */
#include "mapper/bound/bound_private.h"
#include "mapper/bound/rows.h"
#include "tests/lib/fixture.h"

#include "base/file.h"

#define PAGE "docs/bounds.md"
#define MS 1e-3
#define SLOW 1.5

static char *page;

static int read_page (void **state)
{
    struct error err = {""};
    size_t size;

    (void) state;
    ok (file_read (PAGE, &page, &size, &err), &err);
    return 0;
}

ALL_BETWEEN (read_page, NULL)

/* ---- what the page says ---- */

/* The text after `key`, which the page must have. */
static const char *after (const char *key)
{
    const char *at = strstr (page, key);

    if (!at)
        fail_msg ("%s has no \"%s\"", PAGE, key);
    return at + strlen (key);
}

/* The number in a table's row `| key | number ...`. */
static double row_of (const char *key)
{
    char start[96], *end;
    const char *at;
    double x;

    snprintf (start, sizeof start, "\n| %s | ", key);
    at = after (start);
    x = strtod (at, &end);
    if (end == at)
        fail_msg ("%s: row \"%s\" has no number", PAGE, key);
    return x;
}

/* Does the page have these words, broken over lines in any way? */
static void must_say (const char *words)
{
    for (const char *at = page; *at; at++) {
        const char *a = at, *w = words;

        while (*w && (*a == *w || (*w == ' ' && *a == '\n')))
            a++, w++;
        if (!*w)
            return;
    }
    fail_msg ("%s does not say \"%s\"", PAGE, words);
}

/* ---- the example ---- */

#define STAGES 3

struct example {
    struct workload_profile profile; /* nothing hides */
    struct workload_model model;
    struct config_times times;
    struct bound_pipeline pipeline; /* the same for rows.h, one send a direction */
    double send_s, fwd_s, back_s, head_fwd_s, head_back_s, tail_s;
};

static void set_slot (const struct example *x, double slower, struct slot_times *s,
                      struct bound_slot *other)
{
    *s = (struct slot_times){.fwd_s = slower * x->fwd_s,
                             .back_s = slower * x->back_s,
                             .head_fwd_s = slower * x->head_fwd_s,
                             .head_back_s = slower * x->head_back_s};
    *other = (struct bound_slot){.head_fwd_s = s->head_fwd_s,
                                 .head_back_s = s->head_back_s,
                                 .head_input_s = s->head_back_s};
    other->layer[0] = other->layer[1] =
        (struct bound_layer){s->fwd_s, s->back_s, s->back_s};
    other->first.layer_s = other->other.layer_s = x->times.tail_layer_s[0];
    for (int span = 0; span < SPANS; span++)
        other->first.sync_layer_s[span] = other->other.sync_layer_s[span] =
            x->times.sync_layer_s[0][span];
}

static void read_example (struct example *x)
{
    double optimizer_s = MS * row_of ("optimizer"),
           sync_s = MS * row_of ("synchronisation");

    *x = (struct example){.model = {.layers = (int) row_of ("layers"), .expert_every = 1},
                          .send_s = MS * row_of ("one send"),
                          .fwd_s = MS * row_of ("forward of a layer"),
                          .back_s = MS * row_of ("backward of a layer"),
                          .head_fwd_s = MS * row_of ("forward of the head"),
                          .head_back_s = MS * row_of ("backward of the head"),
                          .tail_s = optimizer_s + sync_s};
    assert_int_equal ((int) row_of ("stages"), STAGES);
    x->times = (struct config_times){.m = (int) row_of ("micro-batches"),
                                     .p = STAGES,
                                     .layers = x->model.layers,
                                     .send = {.any_s = 2 * x->send_s},
                                     .profile = &x->profile,
                                     .hides = 1};
    x->pipeline = (struct bound_pipeline){.model = &x->model,
                                          .profile = &x->profile,
                                          .schedule = SCHEDULE_1F1B,
                                          .m = x->times.m,
                                          .p = STAGES,
                                          .v = 1,
                                          .unit = 1,
                                          .least = 1,
                                          .span = {[SPAN_NONE] = true},
                                          .first_span = {[SPAN_NONE] = true},
                                          .any_s = x->send_s,
                                          .cross_s = x->send_s,
                                          .hides = 1,
                                          .most_s = INFINITY};
    for (int a = 0; a < 2; a++) {
        x->times.tail_layer_s[a] = optimizer_s;
        for (int span = 0; span < SPANS; span++)
            x->times.sync_layer_s[a][span] = sync_s;
        for (int b = 0; b < 2; b++) {
            x->times.pair_s[a][b] = 2 * x->send_s;
            x->pipeline.pair_s[a][b] = x->send_s;
        }
    }
    for (int kind = 0; kind < 2; kind++)
        set_slot (x, kind ? SLOW : 1.0, &x->times.slot[kind], &x->pipeline.slot[kind]);
}

/* A stage's forward and backward in a split, on the slow slot where it is stage `slow`. */
static void times_of (const struct example *x, const int *layers, int stages, int k,
                      int slow, double *fwd_s, double *back_s)
{
    double times = k == slow ? SLOW : 1.0;

    *fwd_s = times * (layers[k] * x->fwd_s + (k == stages - 1 ? x->head_fwd_s : 0));
    *back_s = times * (layers[k] * x->back_s + (k == stages - 1 ? x->head_back_s : 0));
}

/* The step of a split, played out. */
static double played_s (const struct example *x, const int *layers, int m, int slow,
                        double *end_s)
{
    double fwd[STAGES], back[STAGES], send[STAGES], step = 0;
    double work[COSTMODEL_SCHEDULE_WORK (STAGES, 1)];
    struct costmodel_pipeline p = {.stages = STAGES,
                                   .microbatches = m,
                                   .chunks = 1,
                                   .fwd_s = fwd,
                                   .back_s = back,
                                   .send_s = send,
                                   .return_s = send};

    for (int k = 0; k < STAGES; k++) {
        times_of (x, layers, STAGES, k, slow, &fwd[k], &back[k]);
        send[k] = x->send_s;
    }
    costmodel_schedule (SCHEDULE_1F1B, &p, false, end_s, work);
    for (int k = 0; k < STAGES; k++)
        step = fmax (step, end_s[k] + layers[k] * x->tail_s);
    return step;
}

/* S, and what rows (1) and (2) of stage k ask for beyond it. */
struct row_sums {
    double way_s, first_s, second_s;
};

static struct row_sums rows_of (const struct example *x, const int *layers, int k)
{
    const struct config_times *t = &x->times;
    struct row_sums r = {.way_s = (t->p - 1) * t->send.any_s};
    double fwd, back, wf, wb, below = 0;

    for (int i = 0; i < t->p; i++) {
        times_of (x, layers, t->p, i, -1, &fwd, &back);
        r.way_s += fwd + back;
        below += i > k ? fwd + back + t->send.any_s : 0;
    }
    times_of (x, layers, t->p, k, -1, &fwd, &back);
    bound_row_weights (t, k, &wf, &wb);
    r.first_s = wb * back + wf * fwd;
    r.second_s = bound_rounds_left (t, k) * (fwd + back) + below;
    return r;
}

/* ---- tests ---- */

TEST (split_by_hand)
{
    const int layers[STAGES] = {3, 3, 2};
    struct example x;

    read_example (&x);
    for (int k = 0; k < STAGES; k++) {
        struct row_sums r = rows_of (&x, layers, k);
        double fwd, back, wf, wb, below = 0, f, b;
        int left = bound_rounds_left (&x.times, k);
        char row[240];

        times_of (&x, layers, STAGES, k, -1, &fwd, &back);
        bound_row_weights (&x.times, k, &wf, &wb);
        for (int i = k + 1; i < STAGES; i++) {
            times_of (&x, layers, STAGES, i, -1, &f, &b);
            below += f + b;
        }
        snprintf (
            row, sizeof row,
            "| %d | %d | %d | %g | %g + %g x %g + %g x %g = %g | %g + %d x %g + %g + "
            "%g = %g |",
            k, layers[k], STAGES - 1 - k, wf, r.way_s / MS, wb, back / MS, wf, fwd / MS,
            (r.way_s + r.first_s) / MS, r.way_s / MS, left, (fwd + back) / MS, below / MS,
            (STAGES - 1 - k) * x.times.send.any_s / MS, (r.way_s + r.second_s) / MS);
        must_say (row);
    }
}

TEST (splits_of_the_table)
{
    static const int splits[][STAGES] = {{3, 3, 2}, {4, 2, 2}, {4, 3, 1},
                                         {2, 4, 2}, {2, 3, 3}, {3, 2, 3}};
    struct example x;
    double least = INFINITY, fastest = INFINITY, end_s[STAGES];

    read_example (&x);
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        const int *l = splits[i];
        double most = 0, way = 0, end, tail = l[0] * x.tail_s,
               step = played_s (&x, l, x.times.m, -1, end_s);
        char row[120];

        for (int k = 0; k < STAGES; k++) {
            struct row_sums r = rows_of (&x, l, k);

            way = r.way_s;
            most = fmax (most, fmax (r.first_s, r.second_s));
        }
        end = way + most;
        snprintf (row, sizeof row, "| %d, %d, %d | %g | %g | %g | %g | %g |", l[0], l[1],
                  l[2], most / MS, end / MS, tail / MS, (end + tail) / MS, step / MS);
        must_say (row);
        least = fmin (least, end + tail);
        fastest = fmin (fastest, step);
    }
    CLOSE (least, MS * row_of ("bound over splits"), 1e-9);
    CLOSE (fastest, MS * row_of ("best split played out"), 1e-9);
}

TEST (levels)
{
    struct example x;
    struct bound_case one = {.times = &x.times, .span = SPAN_NONE};
    struct error err = {""};
    int layers[STAGES];
    bool slow[STAGES];
    char words[120];
    double step_s, weights = 0, first = 0, wf, wb;

    read_example (&x);
    CLOSE (bound_least_way_s (&one), MS * row_of ("S of every split"), 1e-9);
    CLOSE (bound_least_rest_s (&one), MS * row_of ("P in fractions"), 1e-9);
    CLOSE (bound_fractions (&one), MS * row_of ("bound in fractions"), 1e-9);
    /* Narrowed to 2e-5 of itself from below. */
    CLOSE (bound_splits (&one), MS * row_of ("bound over splits"), 3e-5);
    CLOSE (bound_runs (&one), MS * row_of ("bound over splits"), 3e-5);
    ok (bound_least_split (&one, &step_s, layers, slow, &err), &err);
    assert_true (layers[0] == 3 && layers[1] == 3 && layers[2] == 2);
    for (int k = 0; k < STAGES; k++) {
        bound_row_weights (&x.times, k, &wf, &wb);
        weights += 1 / (wf * x.fwd_s + wb * x.back_s);
    }
    first = (x.times.layers + 1) / weights; /* the head is a layer */
    CLOSE (round (first / MS * 10) / 10, row_of ("P of rows (1), in fractions"), 1e-9);
    bound_row_weights (&x.times, 0, &wf, &wb);
    snprintf (words, sizeof words, "P >= (%d + 1) / (1/%g + 1/%g + 1/%g) = %.1f ms",
              x.times.layers, (wf * x.fwd_s + wb * x.back_s) / MS,
              ((wf + 1) * x.fwd_s + wb * x.back_s) / MS,
              ((wf + 2) * x.fwd_s + wb * x.back_s) / MS, first / MS);
    must_say (words);
    snprintf (words, sizeof words, "Together %g + %g + %g = %g ms",
              bound_least_way_s (&one) / MS, bound_least_rest_s (&one) / MS,
              first_tail_s (&one, 1, 0, 0) / MS, bound_fractions (&one) / MS);
    must_say (words);
}

/* The sentences about the split 3, 3, 2 and its neighbour. */
TEST (sentences)
{
    const int best[STAGES] = {3, 3, 2}, next[STAGES] = {4, 3, 1};
    struct example x;
    struct bound_case one = {.times = &x.times, .span = SPAN_NONE};
    struct row_sums r, n;
    double layer, tail, all, sends, end_s[STAGES], step, wf, wb;
    int units;
    char words[400];

    read_example (&x);
    r = rows_of (&x, best, 0); /* row (2) of stage 0 is the largest */
    n = rows_of (&x, next, 0);
    units = x.times.layers + 1;
    layer = (x.fwd_s + x.back_s) / MS;
    tail = best[0] * x.tail_s / MS;
    all = units * layer;
    sends = (STAGES - 1) * x.times.send.any_s / MS;
    snprintf (words, sizeof words,
              "take %d x %g = %g ms, two boundaries 2 x %g = %g ms: S = %g ms", units,
              layer, all, x.times.send.any_s / MS, sends, r.way_s / MS);
    must_say (words);
    snprintf (words, sizeof words,
              "**The rows of the split 3, 3, 2.** Every stage has C = %g ms", 3 * layer);
    must_say (words);
    snprintf (words, sizeof words, "The largest is %g ms, so P = %g ms.",
              (r.way_s + r.second_s) / MS, r.second_s / MS);
    must_say (words);
    snprintf (
        words, sizeof words,
        "Stage 0 holds %d layers, its tail is %d x %g = %g ms: no placement of this "
        "split is faster than %g ms",
        best[0], best[0], x.tail_s / MS, tail, (r.way_s + r.second_s) / MS + tail);
    must_say (words);
    step = played_s (&x, best, x.times.m, -1, end_s);
    snprintf (words, sizeof words,
              "`bound_splits` gives %.0f ms, and this pipeline really takes %g ms",
              bound_splits (&one) / MS, step / MS);
    must_say (words);
    snprintf (words, sizeof words,
              "The split 4, 3, 1 shows what rows do not know: played out, it takes %g ms "
              "where its rows say %g.",
              played_s (&x, next, x.times.m, -1, end_s) / MS,
              (n.way_s + n.second_s + next[0] * x.tail_s) / MS);
    must_say (words);
    bound_row_weights (&x.times, 0, &wf, &wb);
    snprintf (words, sizeof words,
              "Rows (1) ask for %g, %g and %g ms a layer on stages 0, 1 and 2",
              (wf * x.fwd_s + wb * x.back_s) / MS,
              ((wf + 1) * x.fwd_s + wb * x.back_s) / MS,
              ((wf + 2) * x.fwd_s + wb * x.back_s) / MS);
    must_say (words);
    snprintf (words, sizeof words, "give P >= %d x %g = %g ms", units, layer,
              bound_least_rest_s (&one) / MS);
    must_say (words);
    snprintf (words, sizeof words, "the tail is at least %g ms",
              first_tail_s (&one, 1, 0, 0) / MS);
    must_say (words);
    snprintf (words, sizeof words, "S, down and up: %g ms -||-------- P: %g ms -",
              r.way_s / MS, r.second_s / MS);
    must_say (words);
    snprintf (words, sizeof words, "all takes %g times as long", SLOW);
    must_say (words);
    must_say ("splits are 4, 2, 2 with stage 1 on the slow slot, and 4, 3, 1 with stage "
              "2 on it");
}

/* More micro-batches, a slow slot, and the rows of the other schedules: what the text says. */
TEST (text_says)
{
    const int even[STAGES] = {3, 3, 2}, slow[2][STAGES] = {{4, 2, 2}, {4, 3, 1}};
    struct example x;
    struct bound_case one = {.times = &x.times, .span = SPAN_NONE};
    struct pipeline_case pc;
    double end_s[STAGES], step;
    char words[240];
    int work[2 * STAGES];

    read_example (&x);
    rows_init (&pc, &x.pipeline, (struct stage_placing){SPAN_NONE, NULL}, work);
    snprintf (words, sizeof words,
              "stage 0 of the split 3, 3, 2 gets %.0f ms from either",
              rows_end_s (&pc, 0, 0, 3, 5) / MS);
    must_say (words);

    x.times.m = 12;
    snprintf (
        words, sizeof words,
        "With 12 micro-batches M is %d on stage 0 and the run has %d stages: two of its "
        "rounds of %.0f ms replace six of %.0f ms",
        bound_rounds_left (&x.times, 0) - 1, STAGES, rows_of (&x, even, 0).way_s / MS,
        3 * (x.fwd_s + x.back_s) / MS);
    must_say (words);
    step = played_s (&x, even, 12, -1, end_s);
    snprintf (
        words, sizeof words,
        "the played schedule ends after %.0f ms. The bound is %.0f ms, the step %.0f ms: "
        "a gap of %.1f %%",
        end_s[0] / MS, bound_splits (&one) / MS, step / MS,
        100 * (step / bound_splits (&one) - 1));
    must_say (words);
    snprintf (words, sizeof words, "Row (2) says %.0f ms, row (3) %.0f ms",
              (rows_of (&x, even, 0).way_s + rows_of (&x, even, 0).second_s) / MS,
              (bound_splits (&one) - 3 * x.tail_s) / MS);
    must_say (words);

    x.times.m = 4;
    one.slow = 1;
    for (int i = 0; i < 2; i++) {
        double work_s = 0, sends_s = (STAGES - 1) * x.times.send.any_s, fwd, back;

        for (int k = 0; k < STAGES; k++) {
            times_of (&x, slow[i], STAGES, k, i + 1, &fwd, &back);
            work_s += fwd + back;
        }
        snprintf (
            words, sizeof words,
            "its work is %.0f ms, S is %.0f ms, and the largest row asks for P = %.0f ms",
            work_s / MS, (work_s + sends_s) / MS,
            (bound_splits (&one) - 4 * x.tail_s - work_s - sends_s) / MS);
        must_say (words);
    }
    snprintf (words, sizeof words, "the bound is %.0f ms; in fractions it is %.0f ms",
              bound_splits (&one) / MS, bound_fractions (&one) / MS);
    must_say (words);
    for (int i = 0; i < 2; i++)
        CLOSE (played_s (&x, slow[i], 4, i + 1, end_s), bound_splits (&one), 3e-5);
}

/* Two stages of two chunks. */
TEST (interleaved)
{
    struct example x;
    double fwd[4], back[4], send[2], end_s[2], work[COSTMODEL_SCHEDULE_WORK (2, 2)];
    struct costmodel_pipeline p = {.stages = 2,
                                   .chunks = 2,
                                   .fwd_s = fwd,
                                   .back_s = back,
                                   .send_s = send,
                                   .return_s = send};
    double tail, bound;
    char words[240];

    read_example (&x);
    x.pipeline.schedule = SCHEDULE_INTERLEAVED;
    x.pipeline.p = x.pipeline.v = x.pipeline.unit = x.pipeline.least = 2;
    p.microbatches = x.times.m;
    for (int c = 0; c < 4; c++) { /* chunk c / 2 of stage c % 2, two layers each */
        fwd[c] = 2 * x.fwd_s + (c == 3 ? x.head_fwd_s : 0);
        back[c] = 2 * x.back_s + (c == 3 ? x.head_back_s : 0);
    }
    send[0] = send[1] = x.send_s;
    costmodel_schedule (SCHEDULE_INTERLEAVED, &p, false, end_s, work);
    bound = bound_by_end (&x.pipeline, BOUND_SPLITS);
    tail = 4 * x.tail_s;
    snprintf (words, sizeof words,
              "Down and through: %.0f + 3 x %.0f = %.0f ms. It may do n = %d forwards",
              (x.model.layers + 1) * x.fwd_s / MS, x.send_s / MS,
              ((x.model.layers + 1) * x.fwd_s + 3 * x.send_s) / MS,
              workload_forwards_first (SCHEDULE_INTERLEAVED, 2, 2, 4, 1));
    must_say (words);
    snprintf (
        words, sizeof words,
        "so 4 - 3/2 = 2.5 rounds of its layers remain: 2.5 x %.0f = %.0f ms. The head "
        "comes once for each micro-batch but one: 3 x %.0f = %.0f ms. Up: %.0f + 3 x "
        "%.0f = %.0f ms.",
        4 * (x.fwd_s + x.back_s) / MS, 10 * (x.fwd_s + x.back_s) / MS,
        (x.head_fwd_s + x.head_back_s) / MS, 3 * (x.head_fwd_s + x.head_back_s) / MS,
        (x.model.layers + 1) * x.back_s / MS, x.send_s / MS,
        ((x.model.layers + 1) * x.back_s + 3 * x.send_s) / MS);
    must_say (words);
    snprintf (
        words, sizeof words,
        "The end is %.0f ms, the tail of stage 0's four layers %.0f ms, the bound %.0f "
        "ms; played out, the step takes %.0f ms",
        (bound - tail) / MS, tail / MS, bound / MS, (end_s[0] + tail) / MS);
    must_say (words);
}

/* ---- the drawing ---- */

#define CELL_S (10 * MS)

static char drawn[STAGES][64];

/* Half a cell is one, whichever way it was rounded. */
static int cell_of (double s)
{
    return (int) floor (s / CELL_S + 0.5 + 1e-6);
}

static void draw (void *context, const struct costmodel_event *e)
{
    int from = cell_of (e->start_s), to = cell_of (e->end_s);
    (void) context;

    for (int i = from; i < to; i++)
        drawn[e->stage][i] = e->what == OPERATION_FORWARD ? 'F' : 'B';
    drawn[e->stage][from] = (char) ('1' + e->micro);
}

TEST (drawing)
{
    const int layers[STAGES] = {3, 3, 2};
    struct example x;
    double fwd[STAGES], back[STAGES], send[STAGES], end_s[STAGES];
    struct costmodel_pipeline p = {.stages = STAGES,
                                   .chunks = 1,
                                   .fwd_s = fwd,
                                   .back_s = back,
                                   .send_s = send,
                                   .return_s = send};
    struct costmodel_watch watch = {draw, NULL};
    char words[96];

    read_example (&x);
    p.microbatches = x.times.m;
    memset (drawn, ' ', sizeof drawn);
    for (int k = 0; k < STAGES; k++) {
        times_of (&x, layers, STAGES, k, -1, &fwd[k], &back[k]);
        send[k] = x.send_s;
    }
    assert_true (costmodel_play (SCHEDULE_1F1B, &p, false, end_s, &watch));
    snprintf (words, sizeof words, "F = %.0f ms, B = %.0f ms and %.0f ms a send",
              fwd[0] / MS, back[0] / MS, x.send_s / MS);
    must_say (words);
    snprintf (words, sizeof words, "%.0f ms down, %.0f ms up, %d sends of %.0f ms",
              STAGES * fwd[0] / MS, STAGES * back[0] / MS, 2 * (STAGES - 1),
              x.send_s / MS);
    must_say (words);
    for (int k = 0; k < STAGES; k++) {
        char line[96];

        drawn[k][cell_of (end_s[k])] = '\0';
        snprintf (line, sizeof line, "\nstage %d    %.63s\n", k, drawn[k]);
        after (line);
    }
}
