/* A first look at all configurations: each is sketched (mapper/place/sketch.h) in the order of the
 * bounds, as long as these are below the best sketch.  The order of the sketches says far more than
 * that of the bounds about which configuration will be best. */
#include "mapper/search/looks.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/rng.h"

#define BATCH 64          /* configurations sketched between two looks at the best */
#define IN_ALL_WAYS 300   /* of the best, laid out in all ways; fewer in large pools */
#define PROBED BATCH      /* of the lowest */
#define IN_A_TURN 8       /* configurations of the same degrees */
#define FAR 1.25          /* times the best sketch: no layout makes up for so much */
#define LUCK 0xffffffffff /* above it: the round's number */

enum status looks_add (struct looks *l, long index, double bound, struct sketch *k,
                       struct error *err)
{
    if (!array_grow (&l->look, (size_t) l->n, sizeof *l->look)) {
        sketch_release (k);
        return err_nomem (err);
    }
    l->look[l->n++] = (struct look){index, bound, *k};
    return ST_OK;
}

/* ---- order ---- */

double look_value (const struct search *x, const struct look *l)
{
    return l->sketch.price.step_s * mapper_weight (x->p, &x->config[l->index]);
}

double look_energy (const struct search *x, const struct look *l)
{
    return look_value (x, l) * (1.0 + MAPPER_UNMEASURED * l->sketch.price.unmeasured);
}

/* A look and what it is sorted by: qsort takes no context. */
struct sorted {
    struct look look;
    int unmeasured; /* 0 where the value counts them */
    double value;
};

static int by_value (const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;

    if (x->unmeasured != y->unmeasured)
        return x->unmeasured < y->unmeasured ? -1 : 1;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->look.index > y->look.index) - (x->look.index < y->look.index);
}

enum status looks_sort (const struct search *x, struct looks *l, bool midway,
                        struct error *err)
{
    struct sorted *s = malloc (((size_t) l->n + 1) * sizeof *s);

    if (!s)
        return err_nomem (err);
    for (long i = 0; i < l->n; i++) {
        const struct look *k = &l->look[i];

        s[i] = midway
                   ? (struct sorted){*k, 0, look_energy (x, k)}
                   : (struct sorted){*k, k->sketch.price.unmeasured, look_value (x, k)};
    }
    qsort (s, (size_t) l->n, sizeof *s, by_value);
    for (long i = 0; i < l->n; i++)
        l->look[i] = s[i].look;
    free (s);
    return ST_OK;
}

/* What is over so many times the best first layout is not moved. */
static double far_of (const struct search *x)
{
    return x->odd && x->pool.n_gpus > LOOKS_GENERATIONS_GPUS ? LOOKS_FAR : INFINITY;
}

static double far_energy (const struct search *x, const struct looks *l)
{
    return l->n > 0 ? far_of (x) * look_energy (x, &l->look[0]) : INFINITY;
}

int looks_pick (const struct search *x, const struct looks *l, double below,
                int of_degrees, int most, long *pick)
{
    int n = 0, of_pace = (of_degrees + 1) / 2;
    double far = far_energy (x, l);

    /* Last those that had to make room. */
    for (int part = 0; part < 2; part++, of_pace = of_degrees)
        for (long i = 0; i < l->n && n < most; i++) {
            const struct workload_config *c = &x->config[l->look[i].index];
            int alike = 0, paced = 0;
            bool had = i > 0 &&
                       (l->look[i].bound >= below || look_energy (x, &l->look[i]) > far);

            for (int k = 0; k < n && !had; k++) {
                const struct workload_config *other = &x->config[l->look[pick[k]].index];

                had = pick[k] == i;
                if (look_same_degrees (c, other)) {
                    alike++;
                    paced += look_same_pace (c, other);
                }
            }
            if (!had && alike < of_degrees && paced < of_pace)
                pick[n++] = i;
        }
    return n;
}

/* ---- the first look ---- */

bool look_same_degrees (const struct workload_config *a, const struct workload_config *b)
{
    return a->deg.tp == b->deg.tp && a->deg.pp == b->deg.pp && a->deg.dp == b->deg.dp &&
           a->deg.cp == b->deg.cp && a->deg.ep == b->deg.ep && a->deg.etp == b->deg.etp;
}

bool look_same_pace (const struct workload_config *a, const struct workload_config *b)
{
    return a->deg.vpp == b->deg.vpp && a->micro_batch == b->micro_batch &&
           a->schedule == b->schedule;
}

static bool same_shape (const struct workload_config *a, const struct workload_config *b)
{
    return look_same_degrees (a, b) && a->deg.vpp == b->deg.vpp &&
           a->micro_batch == b->micro_batch && a->schedule == b->schedule &&
           a->recompute == b->recompute && a->recompute_modules == b->recompute_modules;
}

static uint64_t axes_hash (uint64_t seed, const struct workload_config *c)
{
    const int of[] = {c->deg.tp,
                      c->deg.pp,
                      c->deg.dp,
                      c->deg.cp,
                      c->deg.ep,
                      c->deg.etp,
                      c->deg.vpp,
                      c->micro_batch,
                      c->zero,
                      c->shard,
                      c->sequence_parallel,
                      (int) c->recompute,
                      c->recompute_layers,
                      (int) c->recompute_modules,
                      (int) c->schedule};
    struct rng mix = {seed};

    for (int i = 0; i < (int) (sizeof of / sizeof *of); i++)
        mix = (struct rng){rng_next (&mix) + (uint64_t) of[i]};
    return rng_next (&mix);
}

uint64_t looks_luck (const struct search *x, const struct workload_config *c)
{
    return axes_hash (x->s->seed, c) & LUCK;
}

/* The member of each shape that stands for it, by a hash of the shape. */
struct shapes {
    size_t room; /* a power of two */
    struct member {
        long at; /* in the heap; -1: free */
        double tail_s;
        bool taken;
    } * member; /* [room] */
};

static struct member *member_of (struct shapes *s, const struct search *x,
                                 const struct workload_config *c)
{
    struct workload_config shape = *c;
    size_t at;

    shape.zero = shape.shard = shape.recompute_layers = 0;
    shape.sequence_parallel = false;
    at = axes_hash (0, &shape) & (s->room - 1);
    while (s->member[at].at >= 0 &&
           !same_shape (&x->config[x->heap[s->member[at].at].index], c))
        at = (at + 1) & (s->room - 1);
    return &s->member[at];
}

/* Do they differ in what they synchronise alone?  Else a short tail may be what slower layers
 * hide. */
static bool same_layers (const struct workload_config *a, const struct workload_config *b)
{
    return a->sequence_parallel == b->sequence_parallel &&
           a->recompute_layers == b->recompute_layers && (a->zero == 3) == (b->zero == 3);
}

/* The first of each shape in the heap; or, where others are not tried in its place, of those whose
 * layers take as long the one whose synchronisation shows least. */
static enum status shapes_init (struct shapes *s, const struct search *x, bool first,
                                struct error *err)
{
    for (s->room = 16; s->room < 2 * (size_t) x->heap_n;)
        s->room *= 2;
    s->member = malloc (s->room * sizeof *s->member);
    if (!s->member)
        return err_nomem (err);
    for (size_t i = 0; i < s->room; i++)
        s->member[i] = (struct member){-1, INFINITY, false};
    for (long i = 0; i < x->heap_n; i++) {
        const struct workload_config *c = &x->config[x->heap[i].index];
        struct member *m = member_of (s, x, c);
        double tail_s;

        if (m->at >= 0 && (first || !same_layers (c, &x->config[x->heap[m->at].index])))
            continue;
        tail_s = first ? 0.0 : bound_tail_s (&x->pool, c);
        if (m->at < 0 || tail_s < m->tail_s) {
            m->at = i;
            m->tail_s = tail_s;
        }
    }
    return ST_OK;
}

static int by_bound (const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->bound_s != y->bound_s)
        return x->bound_s < y->bound_s ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

void looks_sort_heap (struct search *x)
{
    qsort (x->heap, (size_t) x->heap_n, sizeof *x->heap, by_bound);
}

/* An entry of the heap, and its turn. */
struct turn {
    const struct workload_config *c;
    long at, round; /* at: by its bound */
};

static int by_degrees (const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    const struct workload_degrees *d = &x->c->deg, *e = &y->c->deg;

    return d->tp != e->tp   ? d->tp - e->tp
           : d->pp != e->pp ? d->pp - e->pp
           : d->cp != e->cp ? d->cp - e->cp
           : d->ep != e->ep ? d->ep - e->ep
                            : (x->at > y->at) - (x->at < y->at);
}

static int by_round (const void *a, const void *b)
{
    const struct turn *x = a, *y = b;

    return x->round != y->round ? (x->round > y->round) - (x->round < y->round)
                                : (x->at > y->at) - (x->at < y->at);
}

/* The entries of the heap, which is sorted, in the order in which they are sketched.  Where not all
 * can be, degrees take turns: bounds of unlike degrees are loose by unlike amounts.
 * @return a new array; NULL: no memory */
static struct turn *take_turns (const struct search *x, long most)
{
    long n = x->heap_n, first = 0;
    struct turn *turn = malloc (((size_t) n + 1) * sizeof *turn);

    for (long i = 0; i < n && turn; i++)
        turn[i] = (struct turn){&x->config[x->heap[i].index], i, 0};
    if (!turn || n <= most)
        return turn;
    qsort (turn, (size_t) n, sizeof *turn, by_degrees);
    for (long i = 0; i < n; i++) {
        const struct workload_degrees *d = &turn[i].c->deg, *e = &turn[first].c->deg;

        if (d->tp != e->tp || d->pp != e->pp || d->cp != e->cp || d->ep != e->ep)
            first = i;
        turn[i].round = (i - first) / IN_A_TURN;
    }
    qsort (turn, (size_t) n, sizeof *turn, by_round);
    return turn;
}

/* The probe's sketch of a configuration, if there is one, taken over. */
static void take_probed (struct search *x, long index, struct sketch *out)
{
    for (long i = 0; x->probed && i < x->probed->n; i++) {
        struct look *k = &x->probed->look[i];

        if (k->index == index && k->sketch.gpu) {
            *out = k->sketch;
            k->sketch = (struct sketch){0};
            return;
        }
    }
}

/* @param[in] best  value of the best sketch so far */
static enum status sketch_batch (struct search *x, struct looks *l, bool joint,
                                 const struct entry *e, int n, double best,
                                 struct error *err)
{
    /* One walk does not keep to nodes that measured links join. */
    enum sketch_ways ways = joint || x->pool.n_islands > 1 ? SKETCH_WALKS : SKETCH_USUAL;
    struct sketch sketch[BATCH] = {{0}};
    enum status st[BATCH] = {ST_OK};
    struct error why;
    bool failed = false;

    for (int i = 0; i < n; i++)
        TRY (search_need_groups (x, x->config[e[i].index].deg.tp, err));
    for (int i = 0; i < n && !joint; i++)
        take_probed (x, e[i].index, &sketch[i]);
#pragma omp parallel for if (n > 1) schedule(dynamic, 1) \
    num_threads(x->threads) private(why)
    for (int i = 0; i < n; i++) {
        const struct workload_config *c = &x->config[e[i].index];
        double far_s = (joint ? far_of (x) : FAR) * best / mapper_weight (x->p, c);

        if (!sketch[i].gpu)
            st[i] = deadline_passed (&x->deadline)
                        ? ST_NOFIT
                        : sketch_build (&x->pool, &l->walks, search_groups (x, c->deg.tp),
                                        c, ways, far_s, &sketch[i], &why);
    }
    for (int i = 0; i < n; i++) {
        failed = failed || st[i] == ST_NOMEM;
        if (failed)
            sketch_release (&sketch[i]);
        else if (st[i] == ST_OK)
            failed = looks_add (l, e[i].index, e[i].bound_s, &sketch[i], err) != ST_OK;
    }
    return failed ? err_nomem (err) : ST_OK;
}

enum status looks_closer (struct search *x, struct looks *l, struct error *err)
{
    long most = search_fewer (x, IN_ALL_WAYS), n = l->n < most ? l->n : most;
    double far = far_energy (x, l);
    bool failed = false;

#pragma omp parallel for if (n > 1) schedule(dynamic, 1) num_threads(x->threads) \
    reduction(||                                                                 \
              : failed)
    for (long i = 0; i < n; i++) {
        struct look *k = &l->look[i];
        const struct workload_config *c = &x->config[k->index];
        struct sketch other;
        struct error why;
        enum status st =
            look_energy (x, k) > far || deadline_passed (&x->deadline)
                ? ST_NOFIT
                : sketch_build (&x->pool, &l->walks, search_groups (x, c->deg.tp), c,
                                SKETCH_ALL, INFINITY, &other, &why);

        failed = failed || st == ST_NOMEM;
        if (st != ST_OK)
            continue;
        sketch_release (&k->sketch);
        k->sketch = other;
    }
    return failed ? err_nomem (err) : looks_sort (x, l, false, err);
}

enum status looks_take (struct search *x, bool joint, long most, struct looks *l,
                        struct error *err)
{
    struct shapes shapes = {0};
    struct turn *turn;
    struct entry batch[BATCH];
    double best = INFINITY;
    enum status st;
    int n = 0;

    *l = (struct looks){0};
    looks_sort_heap (x);
    turn = take_turns (x, most);
    st = turn ? walks_init (&l->walks, &x->pool, err) : err_nomem (err);
    THEN (st, shapes_init (&shapes, x, joint, err));
    for (long i = 0; i < x->heap_n && st == ST_OK; i++) {
        bool last = l->n + n >= most || deadline_passed (&x->deadline);
        struct member *m = member_of (&shapes, x, turn[i].c);
        const struct entry *e = &x->heap[m->at];

        if (!last && e->bound_s < best && !m->taken) {
            batch[n++] = *e;
            m->taken = true;
        }
        if (n == BATCH || ((last || i + 1 == x->heap_n) && n > 0)) {
            long from = l->n;

            st = sketch_batch (x, l, joint, batch, n, best, err);
            n = 0;
            for (; from < l->n; from++)
                if (l->look[from].sketch.price.unmeasured == x->needed)
                    best = fmin (best, look_value (x, &l->look[from]));
        }
        if (last)
            break;
    }
    THEN (st, looks_sort (x, l, false, err));
    FREE_ALL (shapes.member, turn);
    return st;
}

enum status looks_probe (struct search *x, struct entry *e, struct error *err)
{
    const struct looks *l;

    looks_forget_probe (x);
    x->probed = calloc (1, sizeof *x->probed);
    if (!x->probed)
        return err_nomem (err);
    TRY (looks_take (x, false, PROBED, x->probed, err));
    l = x->probed;
    e->index = -1;
    if (l->n > 0)
        *e = (struct entry){l->look[0].bound, l->look[0].index, BOUND_RUNS};
    return ST_OK;
}

void looks_forget_probe (struct search *x)
{
    if (x->probed)
        looks_release (x->probed);
    free (x->probed);
    x->probed = NULL;
}

void looks_release (struct looks *l)
{
    for (long i = 0; i < l->n; i++)
        sketch_release (&l->look[i].sketch);
    free (l->look);
    walks_release (&l->walks);
}
