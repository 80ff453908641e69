/* One configuration in hand: its layers, its priced state, and room for its placements. */
#include "mapper/place/place_private.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

/* TP x CP groups of each class, a group counting as its slowest GPU. */
static void count_slots (const struct pool *pool, const struct groups *g,
                         const struct workload_config *c, int *slots)
{
    const struct topology_cluster *cl = pool->problem->cluster;

    memset (slots, 0, CLASSES_MAX * sizeof *slots);
    for (int i = 0; i < pool->n_nodes; i++) {
        int node = pool->node[i], first = cl->node[node].first_gpu;

        for (int k = 0; k + c->deg.tp <= g->grouped[node]; k += c->deg.tp)
            slots[pool_slowest_class (pool, g->gpu + first + k, c->deg.tp)]++;
    }
    for (int q = 0; q < pool->n_classes; q++)
        slots[q] /= c->deg.cp;
}

static enum status create_state (struct placer *x, struct error *err)
{
    const struct mapper_problem *p = x->pool->problem;
    struct costmodel_problem problem = mapper_priced (p, x->c, x->layers);
    enum status st = pool_default_order (x->pool, x->order, err);

    return st == ST_OK ? costmodel_state_create (&problem, x->order, x->n, &x->state, err)
                       : st;
}

enum status placer_new_layers (struct placer *x, const int *layers, struct error *err)
{
    memcpy (x->layers, layers, (size_t) x->c->deg.pp * sizeof (int));
    pool_stage_classes (x->pool, x->c, x->layers, x->allowed);
    costmodel_state_destroy (x->state);
    x->state = NULL;
    return create_state (x, err);
}

static enum status placer_allocate (struct placer *x, struct error *err)
{
    size_t all = (size_t) x->pool->all_gpus, nodes = (size_t) x->pool->n_nodes;
    size_t pp = (size_t) x->c->deg.pp;
    size_t cluster_nodes = (size_t) x->pool->problem->cluster->n_nodes;

    x->n = x->pool->all_gpus;
    x->world = (int) workload_world (&x->c->deg);
    x->per_stage = x->world / x->c->deg.pp;
    x->layers = malloc (pp * sizeof (int));
    x->class_of_stage = calloc (pp, sizeof (int));
    x->stage_at = malloc (pp * sizeof (int));
    x->allowed = calloc (pp * (size_t) x->pool->n_classes, sizeof (bool));
    x->layout.seq = malloc (nodes * sizeof (int));
    x->chosen = calloc (cluster_nodes, sizeof (bool));
    x->block_first = malloc (2 * nodes * sizeof (int));
    x->position = malloc (3 * all * sizeof (int));
    x->uses = calloc (cluster_nodes, sizeof (int));
    x->mark = malloc ((all > cluster_nodes ? all : cluster_nodes) * sizeof (bool));
    if (!x->layers || !x->class_of_stage || !x->stage_at || !x->allowed ||
        !x->layout.seq || !x->chosen || !x->block_first || !x->position || !x->uses ||
        !x->mark)
        return err_nomem (err);
    x->block_n = x->block_first + nodes;
    x->order = x->position + all;
    x->late = x->order + all;
    return ST_OK;
}

enum status placer_init (struct placer *x, bool by_speed, const struct begun *known,
                         struct error *err)
{
    int slots[CLASSES_MAX];
    size_t stages = (size_t) x->c->deg.pp * sizeof (int);
    enum status st = placer_allocate (x, err);

    if (st == ST_OK && known && known->layers) {
        memcpy (x->layers, known->layers, stages);
        memcpy (x->class_of_stage, known->class_of_stage, stages);
    } else if (st == ST_OK) {
        count_slots (x->pool, x->groups, x->c, slots);
        st = stages_split (x->pool, x->c, by_speed ? slots : NULL, x->layers,
                           x->class_of_stage, err);
    }
    if (st == ST_OK)
        pool_stage_classes (x->pool, x->c, x->layers, x->allowed);
    return st == ST_OK ? create_state (x, err) : st;
}

void placer_release (struct placer *x)
{
    FREE_ALL (x->layers, x->class_of_stage, x->stage_at, x->allowed, x->layout.seq,
              x->chosen, x->block_first, x->position, x->uses, x->mark);
    costmodel_state_destroy (x->state);
}

enum status candidate_init (const struct placer *x, struct candidate *k,
                            struct error *err)
{
    k->price = NO_PRICE;
    k->gpu = malloc ((size_t) x->n * sizeof (int));
    k->layers = malloc ((size_t) x->c->deg.pp * sizeof (int));
    k->layout.seq = malloc ((size_t) x->pool->n_nodes * sizeof (int));
    if (!k->gpu || !k->layers || !k->layout.seq)
        return err_nomem (err);
    memcpy (k->layers, x->layers, (size_t) x->c->deg.pp * sizeof (int));
    /* Something to copy even where no start is legal. */
    memcpy (k->layout.seq, x->pool->node, (size_t) x->pool->n_nodes * sizeof (int));
    return pool_default_order (x->pool, k->gpu, err);
}

void candidate_release (struct candidate *k)
{
    FREE_ALL (k->gpu, k->layers, k->layout.seq);
}

void candidate_take (const struct placer *x, struct costmodel_price price,
                     struct candidate *k)
{
    k->price = price;
    layout_copy (&k->layout, &x->layout, x->pool->n_nodes);
    memcpy (k->gpu, x->order, (size_t) x->n * sizeof (int));
}

void candidate_copy (const struct placer *x, const struct candidate *from,
                     struct candidate *to)
{
    to->price = from->price;
    layout_copy (&to->layout, &from->layout, x->pool->n_nodes);
    memcpy (to->gpu, from->gpu, (size_t) x->n * sizeof (int));
    memcpy (to->layers, from->layers, (size_t) x->c->deg.pp * sizeof (int));
}
