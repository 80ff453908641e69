/* The space: every configuration of the axes that divides model, job and pool. */
#include "mapper/pool/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define TP_WIDE 8 /* on smaller nodes tp is tried up to here, across nodes */
#define CP_TOKENS 4096
#define STRIDE 0.618       /* of the parts, from one that is listed to the next */
#define BETWEEN_LOOKS 4096 /* configurations between two looks at the clock */

/* A sorted list of different numbers. */
struct values {
    int *v;
    int n;
    int last; /* where the last one is: the same often comes again */
};

static bool values_add (struct values *s, int x)
{
    int at = s->n;

    if (s->last < s->n && s->v[s->last] == x)
        return true;
    while (at > 0 && s->v[at - 1] >= x) {
        at--;
        s->last = at;
        if (s->v[at] == x)
            return true;
    }
    if (!array_grow (&s->v, s->n, sizeof *s->v))
        return false;
    memmove (s->v + at + 1, s->v + at, (size_t) (s->n - at) * sizeof (int));
    s->v[at] = x;
    s->n++;
    return true;
}

/* The divisors of n up to `most`, or the one fixed value. */
static bool divisors (int n, long long most, int fixed, struct values *out)
{
    out->n = 0;
    if (fixed != MAPPER_FREE)
        return values_add (out, fixed);
    for (int d = 1; (long long) d * d <= n; d++)
        if (n % d == 0) {
            if (d <= most && !values_add (out, d))
                return false;
            if (n / d <= most && !values_add (out, n / d))
                return false;
        }
    return true;
}

enum { SHARD = 9, AXES };
static const char *const axis_key[AXES] = {"tp",  "pp",  "dp",          "cp",   "ep",
                                           "etp", "vpp", "micro_batch", "zero", "shard"};

struct enumeration {
    const struct pool *pool;
    int threads; /* at most */
    struct workload_config *list;
    long n;
    struct values axis[AXES]; /* that occur */
    bool sp[2], schedule[SCHEDULES];
    /* What may be recomputed, and whether it occurs */
    struct workload_config way[3 + WORKLOAD_SEARCHED_MAX];
    bool way_taken[3 + WORKLOAD_SEARCHED_MAX];
    int n_ways;
    bool selective_frees;
    struct workload_stage all; /* the model's layers */
    struct pool_limit *limit;  /* of all parts; NULL: none */
    bool ended;                /* early */
    bool failed;
};

/* What one thread lists at a time. */
struct part {
    int tp, cp, pp;
    struct enumeration e;
};

/* The layers of the largest of so many chunks. */
static int largest_chunk (int layers, int chunks)
{
    return (layers + chunks - 1) / chunks;
}

/* Is a number of chunks worth a try where these may be uneven?  Even stages need the fewest whose
 * largest holds no more layers than so, stages of unlike layers perhaps one more. */
static bool chunks_tell (int layers, int pp, int vpp)
{
    int largest = largest_chunk (layers, pp * vpp);

    return vpp < 3 ||
           largest_chunk (layers, pp * (vpp - (largest > 2 ? 1 : 2))) > largest;
}

/* Do the stages have layers for all their chunks?  Numbers that divide the layers are tried, and
 * those that tell where chunks may be uneven; a V has two, whatever they hold. */
static bool chunks_divide (const struct mapper_problem *p,
                           const struct workload_config *c)
{
    const struct workload_degrees *d = &c->deg;
    int layers = p->model->layers;

    if (layers % d->vpp == 0 && layers / d->vpp >= d->pp)
        return true;
    return workload_layers_unit (c, p->profile) < d->vpp &&
           (p->axes.vpp != MAPPER_FREE || workload_schedule_is_v (c->schedule) ||
            chunks_tell (layers, d->pp, d->vpp));
}

/* Is it one of the space? */
static bool belongs (const struct enumeration *e, const struct workload_config *c)
{
    const struct mapper_problem *p = e->pool->problem;

    /* Frameworks recompute as many layers in each chunk. */
    return chunks_divide (p, c) && workload_world (&c->deg) >= e->pool->n_pinned &&
           (p->axes.vpp != MAPPER_FREE || c->recompute_layers % c->deg.vpp == 0) &&
           workload_config_check (p->model, p->job, c, NULL) == ST_OK &&
           workload_config_offered (p->model, c, p->profile, NULL) == ST_OK;
}

/* @return whether it is one of the space */
static bool take (struct enumeration *e, const struct workload_config *c)
{
    const struct workload_degrees *d = &c->deg;
    const int value[AXES] = {d->tp,  d->pp,  d->dp,          d->cp,   d->ep,
                             d->etp, d->vpp, c->micro_batch, c->zero, c->shard};

    if (!belongs (e, c))
        return false;
    if (!array_grow (&e->list, e->n, sizeof *e->list)) {
        e->failed = true;
        return false;
    }
    e->list[e->n++] = *c;
    for (int i = 0; i < AXES; i++)
        e->failed |= !values_add (&e->axis[i], value[i]);
    e->sp[c->sequence_parallel] = true;
    e->schedule[c->schedule] = true;
    return true;
}

/* Does the framework's selective recomputation free anything?  Flash attention keeps no
 * scores. */
static bool selective_frees (const struct mapper_problem *p)
{
    return p->profile->selective != SELECTIVE_ATTENTION ||
           !workload_attention_is_flash (p->job->attention) ||
           p->model->decoder_layers > 0 || p->memory_model != MEMEST_LINKWISE;
}

/* What may be recomputed: the way that is fixed, or none, the framework's selective, the sets
 * of modules that the profile has searched, as far as the model has these, and all. */
static void list_ways (struct enumeration *e)
{
    const struct mapper_problem *p = e->pool->problem;
    const struct mapper_axes *a = &p->axes;
    unsigned own = workload_modules_of (p->model);

    if (a->recompute != MAPPER_FREE || a->offload == OFFLOAD_CHECKPOINTS) {
        e->way[e->n_ways++] = mapper_axes_config (a);
        return;
    }
    e->way[e->n_ways++].recompute = RECOMPUTE_NONE;
    e->selective_frees = selective_frees (p);
    e->way[e->n_ways++].recompute = RECOMPUTE_SELECTIVE;
    for (int i = 0; i < p->profile->n_searched && p->memory_model == MEMEST_LINKWISE;
         i++) {
        struct workload_config way = {.recompute = RECOMPUTE_SELECTIVE,
                                      .recompute_modules = p->profile->searched[i] & own};
        int k = 0; /* those of no modules are in the list */

        while (k < e->n_ways && e->way[k].recompute_modules != way.recompute_modules)
            k++;
        if (k == e->n_ways)
            e->way[e->n_ways++] = way;
    }
    e->way[e->n_ways++] = (struct workload_config){
        .recompute = RECOMPUTE_FULL, .recompute_layers = a->recompute_layers};
}

static void set_way (struct workload_config *c, const struct workload_config *way)
{
    c->recompute = way->recompute;
    c->recompute_layers = way->recompute_layers;
    c->recompute_modules = way->recompute_modules;
}

/* Does the even split fit when so much is recomputed? */
static bool fits_evenly (const struct enumeration *e, struct workload_config c,
                         enum workload_recompute recompute)
{
    set_way (&c, &(struct workload_config){.recompute = recompute});
    return pool_even_split_fits (e->pool, &c, recompute == RECOMPUTE_NONE);
}

/* What is recomputed, of one configuration that is whole but for that and has room for its
 * states or not.  Where the even split
 * fits with nothing recomputed, modules would only take time.  Where it does not, they are tried
 * in place of what frees nothing, if it fits with all recomputed. */
static void vary_recompute (struct enumeration *e, struct workload_config c, bool room)
{
    bool fixed = e->n_ways == 1, taken = true, ample, modules;

    /* What nothing is recomputed of is taken first.  It takes less time to see that it is
     * impossible, as most are in large spaces, than what fits. */
    set_way (&c, &e->way[0]);
    if (!belongs (e, &c))
        return;
    ample = !fixed && room && fits_evenly (e, c, RECOMPUTE_NONE);
    modules = fixed || (!ample && room && fits_evenly (e, c, RECOMPUTE_FULL));
    for (int i = 0; i < e->n_ways && taken; i++) {
        const struct workload_config *way = &e->way[i];
        bool own = way->recompute == RECOMPUTE_SELECTIVE && way->recompute_modules == 0;

        if ((way->recompute_modules && !modules) ||
            (own && !fixed && !ample && !e->selective_frees))
            continue;
        set_way (&c, way);
        taken = take (e, &c);
        e->way_taken[i] |= taken;
    }
}

/* End a part, where the listing has a limit and is late.
 * @param[in] more  configurations listed since this was last asked */
static void end_late (struct enumeration *e, long more)
{
    struct pool_limit *x = e->limit;
    long listed;

    if (!x)
        return;
#pragma omp atomic read
    e->ended = x->cut;
#pragma omp atomic capture
    listed = x->listed += more;
    if (e->ended || listed / BETWEEN_LOOKS == (listed - more) / BETWEEN_LOOKS)
        return;
    e->ended = deadline_passed (x->deadline) && listed >= x->least;
    if (e->ended)
#pragma omp atomic write
        x->cut = true;
}

/* The ranks of as few whole nodes as have room for the states, for hybrid sharding: groups within
 * a node where that does; 0: these are all ranks, or it is not offered.  Stages that gather weights
 * or reduce gradients after every micro-batch alone gain by it what they cost between nodes. */
static int node_shard (const struct enumeration *e, struct workload_config c)
{
    const struct pool *pool = e->pool;
    int slot = c.deg.tp * c.deg.cp;

    if (c.zero < 2 || !(pool->problem->profile->shard_stages >> c.zero & 1) ||
        pool->max_node_gpus % slot != 0)
        return 0;
    for (c.shard = pool->max_node_gpus / slot;
         c.shard < c.deg.dp && c.deg.dp % c.shard == 0; c.shard *= 2)
        if (pool_states_fit (pool, &c, &e->all))
            return c.shard > 1 ? c.shard : 0;
    return 0;
}

/* The highest ZeRO stage that is tried where it is free.  Beside a pipeline, frameworks that gather
 * layer by layer under 2 too keep under 3 what they gathered as long (workload_reduces_once). */
static int most_zero (const struct mapper_problem *p, const struct workload_config *c)
{
    const struct workload_profile *profile = p->profile;
    bool same = profile->gathers_by_layer && (profile->zero_stages >> 2 & 1) &&
                !profile->scanned_layers && c->offload == OFFLOAD_NONE;

    return c->deg.pp == 1                            ? 3
           : same && profile->zero_with_pipeline > 2 ? 2
                                                     : profile->zero_with_pipeline;
}

/* The axes that change neither degrees nor batch. */
static void vary_rest (struct enumeration *e, struct workload_config c)
{
    const struct mapper_axes *a = &e->pool->problem->axes;
    int zero_lo = a->zero == MAPPER_FREE ? 0 : a->zero;
    int zero_hi = a->zero != MAPPER_FREE ? a->zero : most_zero (e->pool->problem, &c);
    bool room[4][2]; /* for the states */
    int shard[4][2]; /* over all ranks, or over those of nodes */

    if (zero_lo < 0 || zero_hi > 3)
        return;
    for (c.zero = zero_lo; c.zero <= zero_hi; c.zero++)
        for (int i = 0; i < 2; i++) {
            c.shard = a->shard != MAPPER_FREE ? a->shard : i ? node_shard (e, c) : 0;
            shard[c.zero][i] = c.shard;
            room[c.zero][i] = i && c.shard == shard[c.zero][0]
                                  ? room[c.zero][0]
                                  : pool_states_fit (e->pool, &c, &e->all);
        }
    for (int sp = 0; sp <= 1; sp++) {
        /* One rank has nothing to split the sequence over. */
        bool possible =
            (c.deg.tp > 1 || sp == 0) &&
            (a->sequence_parallel == MAPPER_FREE || a->sequence_parallel == sp);

        c.sequence_parallel = sp;
        for (c.zero = zero_lo; c.zero <= zero_hi && possible; c.zero++)
            for (int i = 0; i < 2; i++) {
                c.shard = shard[c.zero][i];
                if ((i == 0 || c.shard != shard[c.zero][0]) &&
                    (room[c.zero][i] || !e->limit || !e->limit->roomy))
                    vary_recompute (e, c, room[c.zero][i]);
            }
    }
}

/* Experts over the ranks of a stage: every split of the experts, then of each. */
static void vary_experts (struct enumeration *e, struct workload_config c)
{
    const struct mapper_problem *p = e->pool->problem;
    int ranks = c.deg.tp * c.deg.cp * c.deg.dp;
    struct values ep = {0}, etp = {0};

    if (p->model->experts == 0) {
        c.deg.ep = p->axes.ep == MAPPER_FREE ? 1 : p->axes.ep;
        c.deg.etp = p->axes.etp == MAPPER_FREE ? c.deg.tp : p->axes.etp;
        vary_rest (e, c);
        return;
    }
    e->failed |= !divisors (p->model->experts, ranks, p->axes.ep, &ep) ||
                 !divisors (c.deg.tp, c.deg.tp, p->axes.etp, &etp);
    for (int i = 0; i < ep.n; i++)
        for (int k = etp.n - 1; k >= 0 && !e->failed; k--) {
            c.deg.ep = ep.v[i];
            c.deg.etp = etp.v[k];
            vary_rest (e, c);
        }
    FREE_ALL (ep.v, etp.v);
}

static void vary_batch (struct enumeration *e, struct workload_config c)
{
    const struct mapper_problem *p = e->pool->problem;
    long long replica = (long long) c.deg.tp * c.deg.cp * c.deg.pp;
    long long rest = e->pool->n_gpus / replica;
    struct values dp = {0}, micro = {0};

    e->failed |= !divisors (p->job->global_batch, rest, p->axes.dp, &dp);
    for (int i = 0; i < dp.n && !e->failed && !e->ended; i++) {
        if (dp.v[i] > rest || dp.v[i] < 1 || p->job->global_batch % dp.v[i] != 0 ||
            (e->limit && dp.v[i] * replica < e->limit->gpus))
            continue;
        c.deg.dp = dp.v[i];

        int local = p->job->global_batch / c.deg.dp;

        e->failed |= !divisors (local, local, p->axes.micro_batch, &micro);
        for (int k = 0; k < micro.n && !e->failed && !e->ended; k++) {
            long before = e->n;

            c.micro_batch = micro.v[k];
            vary_experts (e, c);
            end_late (e, e->n - before);
        }
    }
    FREE_ALL (dp.v, micro.v);
}

/* How many chunks an interleaved pipeline can have: divisors of the layers, and what is told where
 * they may be uneven. */
static bool interleaved_chunks (const struct mapper_problem *p, int pp,
                                struct values *vpp)
{
    int layers = p->model->layers;

    if (!divisors (layers, layers / pp, p->axes.vpp, vpp))
        return false;
    for (int v = 2;
         p->axes.vpp == MAPPER_FREE && p->profile->uneven_chunks && pp * (v - 1) < layers;
         v++)
        if (chunks_tell (layers, pp, v) && !values_add (vpp, v))
            return false;
    return true;
}

/* The schedules that may be used, each with the chunks it can have. */
static void vary_schedule (struct enumeration *e, struct workload_config c)
{
    const struct mapper_problem *p = e->pool->problem;
    const struct mapper_axes *a = &p->axes;
    struct values vpp = {0};
    /* Published models tell none from the other. */
    unsigned schedules = p->cost_model == COSTMODEL_CRITICAL_PATH ? p->profile->schedules
                                                                  : 1u << SCHEDULE_1F1B;

    for (int s = 0; s < SCHEDULES && !e->failed && !e->ended; s++) {
        int usual = workload_default_vpp ((enum workload_schedule) s);

        c.schedule = (enum workload_schedule) s;
        if (a->schedule != MAPPER_FREE ? s != a->schedule : !(schedules >> s & 1))
            continue;
        vpp.n = 0;
        if (a->vpp == MAPPER_FREE && s != SCHEDULE_INTERLEAVED)
            e->failed |= !values_add (&vpp, usual);
        else
            e->failed |= !interleaved_chunks (p, c.deg.pp, &vpp);
        for (int i = 0; i < vpp.n && !e->failed && !e->ended; i++) {
            c.deg.vpp = vpp.v[i];
            vary_batch (e, c);
        }
    }
    free (vpp.v);
}

static json_t *values_json (const struct values *s)
{
    json_t *list = json_array ();

    for (int i = 0; i < s->n; i++)
        json_array_append_new (list, json_integer (s->v[i]));
    return list;
}

static json_t *space_json (const struct enumeration *e)
{
    int bytes = e->pool->problem->axes.optimizer_bytes,
        offload = e->pool->problem->axes.offload;
    const struct values *shard = &e->axis[SHARD];
    json_t *sp = json_array (), *recompute = json_array (), *schedule = json_array (),
           *space;

    for (int i = 0; i < 2; i++)
        if (e->sp[i])
            json_array_append_new (sp, json_boolean (i));
    for (int i = 0; i < e->n_ways; i++) {
        char word[WORKLOAD_RECOMPUTE_TEXT];

        if (e->way_taken[i])
            json_array_append_new (
                recompute, json_string (workload_recompute_text (&e->way[i], word)));
    }
    for (int i = 0; i < SCHEDULES; i++)
        if (e->schedule[i])
            json_array_append_new (schedule, json_string (workload_schedule_name (
                                                 (enum workload_schedule) i)));
    space = json_pack ("{s:i}", "gpus", e->pool->n_gpus);
    for (int i = 0; i < SHARD; i++)
        json_object_set_new (space, axis_key[i], values_json (&e->axis[i]));
    json_object_set_new (space, "sequence_parallel", sp);
    json_object_set_new (space, "recompute", recompute);
    json_object_set_new (space, "schedule", schedule);
    if (bytes != MAPPER_FREE)
        json_object_set_new (space, "optimizer_bytes", json_pack ("[i]", bytes));
    if (offload > OFFLOAD_NONE)
        json_object_set_new (
            space, "offload",
            json_pack ("[s]", workload_offload_name ((enum workload_offload) offload)));
    if (shard->n > 1 || (shard->n == 1 && shard->v[0] > 0))
        json_object_set_new (space, axis_key[SHARD], values_json (shard));
    return space;
}

/* Ranks of so many groups of so many, or more than any job has. */
static int ranks_of (int groups, int ranks)
{
    return groups <= WORKLOAD_RANKS_MAX / ranks ? groups * ranks : WORKLOAD_RANKS_MAX + 1;
}

/* Does the framework have what is fixed?  A ZeRO stage is of several replicas, a split sequence of
 * several tensor-parallel ranks, where the degree is free. */
static enum status check_offered (const struct mapper_problem *p, struct error *err)
{
    const struct mapper_axes *a = &p->axes;
    struct workload_config c = mapper_axes_config (a);

    if (a->dp == MAPPER_FREE)
        c.deg.dp = ranks_of (2, a->shard > 0 ? a->shard : 1);
    if (a->sequence_parallel == 1 && a->tp == MAPPER_FREE)
        c.deg.tp = 2;
    c.sequence_parallel = a->sequence_parallel == 1;
    mapper_axes_usual (a, p->profile, &c);
    return workload_config_offered (p->model, &c, p->profile, err);
}

/* Why is the space empty?  Fixed values are checked one by one against the rest at 1. */
static enum status explain_empty (const struct pool *pool, struct error *err)
{
    const struct mapper_problem *p = pool->problem;
    const struct mapper_axes *a = &p->axes;
    struct workload_config c = mapper_axes_config (a);
    long long fixed;

    if (a->pp == MAPPER_FREE)
        c.deg.pp = workload_default_vpp (c.schedule);
    if (a->dp == MAPPER_FREE) {
        c.deg.dp = 1;
        if (p->model->experts > 0) /* ep divides dp x cp */
            c.deg.dp = c.deg.ep % c.deg.cp == 0 ? c.deg.ep / c.deg.cp : c.deg.ep;
        if (c.shard > 0)
            c.deg.dp = ranks_of (c.deg.dp, c.shard);
    }
    if (a->zero == MAPPER_FREE)
        c.zero = a->shard > 0 || a->optimizer_bytes != MAPPER_FREE;
    c.sequence_parallel = a->sequence_parallel == 1 && c.deg.tp > 1;
    if (a->recompute == MAPPER_FREE)
        set_way (&c, &(struct workload_config){.recompute = RECOMPUTE_NONE});

    enum status st = workload_config_check (p->model, p->job, &c, err);

    if (st != ST_OK)
        return st;
    if (!chunks_divide (p, &c))
        return err_set (err, ST_INVALID,
                        "vpp %d: %d layers do not divide into %d chunks of %d stages",
                        c.deg.vpp, p->model->layers, c.deg.vpp, c.deg.pp);
    if (a->sequence_parallel == 1 && a->tp == 1)
        return err_set (err, ST_INVALID, "sequence parallelism needs tp above 1");
    fixed = workload_world (&c.deg);
    if (fixed > pool->n_gpus)
        return err_set (err, ST_INVALID,
                        "tp %d x cp %d x pp %d x dp %d needs %lld GPUs, %d can be used: "
                        "lower a degree, leave one free, or use more nodes",
                        c.deg.tp, c.deg.cp, c.deg.pp, c.deg.dp, fixed, pool->n_gpus);
    if (fixed < pool->n_pinned)
        return err_set (err, ST_INVALID,
                        "%d nodes are pinned, but no configuration has that many ranks",
                        pool->n_pinned);
    return err_set (err, ST_INVALID,
                    "no configuration divides the model, the batch of %d and %d GPUs",
                    p->job->global_batch, pool->n_gpus);
}

/* The sequence is split as long as every rank keeps CP_TOKENS of it: shorter pieces do not
 * hide their exchange. */
int pool_cp_most (const struct mapper_problem *p)
{
    int most = p->job->seq / CP_TOKENS;

    return most > 1 && p->model->decoder_layers == 0 ? most : 1;
}

static void release_values (struct enumeration *e)
{
    for (int i = 0; i < AXES; i++)
        free (e->axis[i].v);
}

/* What a part has found, into the whole, whose list has room; the part is released. */
static void join (struct enumeration *e, struct enumeration *part)
{
    e->failed |= part->failed;
    for (int i = 0; i < AXES; i++)
        for (int k = 0; k < part->axis[i].n; k++)
            e->failed |= !values_add (&e->axis[i], part->axis[i].v[k]);
    for (int i = 0; i < 2; i++)
        e->sp[i] |= part->sp[i];
    for (int i = 0; i < SCHEDULES; i++)
        e->schedule[i] |= part->schedule[i];
    for (int i = 0; i < e->n_ways; i++)
        e->way_taken[i] |= part->way_taken[i];
    if (part->n > 0)
        memcpy (e->list + e->n, part->list, (size_t) part->n * sizeof *e->list);
    e->n += part->n;
    free (part->list);
    release_values (part);
}

/* The largest degree that is tried: 1 of what the framework cannot split. */
static long long most_of (const struct mapper_problem *p, enum workload_parallel over,
                          long long most)
{
    return p->profile->parallelism >> over & 1 ? most : 1;
}

/* Every tp, cp and pp.  @param[out] part  free it  @return how many; -1 out of memory */
static long list_parts (const struct enumeration *e, struct part **part)
{
    const struct pool *pool = e->pool;
    const struct mapper_problem *p = pool->problem;
    const struct mapper_axes *a = &p->axes;
    int wide = pool->n_gpus < TP_WIDE ? pool->n_gpus : TP_WIDE;
    int tp_hi = pool->max_node_gpus < wide ? wide : pool->max_node_gpus;
    struct values cp = {0};
    bool room =
        divisors (p->job->seq, most_of (p, PARALLEL_CP, pool_cp_most (p)), a->cp, &cp);
    long n = 0;

    for (int tp = a->tp == MAPPER_FREE ? 1 : a->tp;
         tp <= (a->tp == MAPPER_FREE ? most_of (p, PARALLEL_TP, tp_hi) : a->tp); tp++)
        for (int k = 0; k < cp.n && p->model->heads % tp == 0; k++) {
            long long most = pool->n_gpus / ((long long) tp * cp.v[k]);
            long long pp = a->pp == MAPPER_FREE ? 1 : a->pp;
            long long pp_hi =
                a->pp == MAPPER_FREE ? most_of (p, PARALLEL_PP, p->model->layers) : a->pp;

            for (; pp <= pp_hi && pp <= most && room; pp++) {
                room = array_grow (part, (size_t) n, sizeof **part);
                if (room)
                    (*part)[n++] = (struct part){tp, cp.v[k], (int) pp, *e};
            }
        }
    free (cp.v);
    return room ? n : -1;
}

/* Which of n parts is listed i-th: any few that follow each other are spread over all of them,
 * so that what ends early has seen something of everything. */
static long spread (long i, long n)
{
    long step = (long) (STRIDE * (double) n) + 1;

    while (mapper_common_divisor (step, n) > 1)
        step++;
    return i * step % n;
}

/* All parts, put together in their order. */
static void list_all (struct enumeration *e)
{
    const struct workload_config fixed = mapper_axes_config (&e->pool->problem->axes);
    struct part *part = NULL;
    long n = list_parts (e, &part), sum = 0;

#pragma omp parallel for if (n > 1) schedule(dynamic, 1) num_threads(e->threads)
    for (long i = 0; i < n; i++) {
        struct part *x = &part[spread (i, n)];
        struct workload_config c = {.deg = {.tp = x->tp, .cp = x->cp, .pp = x->pp},
                                    .optimizer_bytes = fixed.optimizer_bytes,
                                    .offload = fixed.offload};

        end_late (&x->e, 0);
        if (!x->e.ended)
            vary_schedule (&x->e, c);
    }
    for (long i = 0; i < n; i++)
        sum += part[i].e.n;
    if (sum > 0)
        e->list = malloc ((size_t) sum * sizeof *e->list);
    e->failed = n < 0 || (sum > 0 && !e->list);
    for (long i = 0; i < n; i++) {
        if (e->failed)
            part[i].e.n = 0;
        join (e, &part[i].e);
    }
    free (part);
}

enum status pool_configurations (const struct pool *pool, int threads,
                                 struct pool_limit *limit, struct workload_config **list,
                                 long *n, json_t **space, struct error *err)
{
    struct enumeration e = {.pool = pool,
                            .threads = threads,
                            .all = workload_all_layers (pool->problem->model),
                            .limit = limit};
    enum status st = ST_OK;

    TRY (check_offered (pool->problem, err));
    list_ways (&e);
    list_all (&e);
    if (e.failed)
        st = err_nomem (err);
    else if (e.n == 0)
        st = explain_empty (pool, err);
    if (st == ST_OK) {
        *list = e.list;
        *n = e.n;
        *space = space_json (&e);
        e.list = NULL;
    }
    free (e.list);
    release_values (&e);
    return st;
}
