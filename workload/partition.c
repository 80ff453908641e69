/* How frameworks spread layers over stages. */
#include "workload/workload.h"

#include <math.h>
#include <stdlib.h>

void workload_layers_even (int n_layers, int pp, int *layers)
{
    int rest = n_layers % pp, first = (pp - rest + 1) / 2;

    for (int i = 0; i < pp; i++)
        layers[i] = n_layers / pp + (i >= first && i < first + rest ? 1 : 0);
}

/* A short list may leave an end without a layer.  @return none was */
static bool one_each (int pp, int *layers)
{
    bool none = false;

    for (int i = 0; i < pp; i++)
        while (layers[i] < 1) {
            int most = 0;

            for (int k = 1; k < pp; k++)
                most = layers[k] > layers[most] ? k : most;
            layers[most]--;
            layers[i]++;
            none = true;
        }
    return !none;
}

/* DeepSpeed's programme: of the first i items in j parts, the cut that makes the fullest and the
 * emptiest part differ least, the last of those that do; it builds on the best cuts of fewer items
 * alone (`fewer`, in one part less), so that it is followed step by step rather than solved. */
struct cut {
    double most, least;
    int from; /* where the last part begins */
};

static struct cut cut_best (const double *sum, int i, int j, const struct cut *fewer)
{
    struct cut best = {INFINITY, INFINITY, 0};
    double differ = INFINITY;

    for (int k = j - 1; k < (j == 1 ? 1 : i); k++) {
        double part = sum[i] - sum[k], most = fewer[k].most, least = fewer[k].least;

        most = most > part ? most : part;
        least = least < part ? least : part;
        if (most - least <= differ) {
            differ = most - least;
            best = (struct cut){most, least, k};
        }
    }
    return best;
}

#define LAYERS_BALANCED 512
static bool layers_by_parameters (const struct workload_model *m, int pp, int *layers)
{
    int n = m->layers, end = n + 2, row = end + 1; /* embedding, layers, head */
    struct cut *cuts = NULL;
    double sum[LAYERS_BALANCED + 3] = {0.0, workload_embedding_params (m, 1)};

    if (n <= LAYERS_BALANCED)
        cuts = malloc ((size_t) row * (size_t) (pp + 1) * sizeof *cuts);
    if (!cuts) {
        workload_layers_even (n, pp, layers);
        return false;
    }
    for (int i = 1; i <= n; i++)
        sum[i + 1] = sum[i] + workload_layer_params (m, 1);
    sum[end] = sum[end - 1] + workload_head_params (m, 1, pp == 1);
    cuts[0] = (struct cut){0.0, INFINITY, 0};
    for (int j = 1; j <= pp; j++)
        for (int i = j; i <= end; i++)
            cuts[j * row + i] = cut_best (sum, i, j, cuts + (j - 1) * row);
    for (int j = pp; j > 0; j--) {
        int from = cuts[j * row + end].from;

        layers[j - 1] = end - from - (j == 1) - (j == pp);
        end = from;
    }
    free (cuts);
    return one_each (pp, layers);
}

static bool layers_by_modules (int n_layers, int pp, int *layers)
{
    int modules = n_layers + 3;

    for (int i = 0; i < pp; i++)
        layers[i] = modules / pp + (i < modules % pp);
    layers[0] -= 1;      /* the embedding */
    layers[pp - 1] -= 2; /* final norm and head */
    return one_each (pp, layers);
}

/* Stage after stage takes layers until it has passed its share. */
static void layers_by_cost (const struct workload_model *m, int pp, int *layers)
{
    double h = m->hidden, layer = 4.0 * h * h + 3.0 * h * m->ffn, head = h * m->vocab;
    double share = (m->layers * layer + head) / pp;
    int rest = m->layers;

    for (int i = 0; i < pp; i++) {
        int later = pp - 1 - i,
            wanted = (int) fmin (floor (share / layer) + 1.0, 1 << 20);

        layers[i] = later == 0 || wanted > rest - later ? rest - later : wanted;
        rest -= layers[i];
    }
}

bool workload_layers_split (const struct workload_model *m, enum workload_partition by,
                            int pp, int *layers)
{
    if (by == PARTITION_PARAMETERS)
        return layers_by_parameters (m, pp, layers);
    if (by == PARTITION_MODULES)
        return layers_by_modules (m->layers, pp, layers);
    if (by == PARTITION_COST)
        layers_by_cost (m, pp, layers);
    else
        workload_layers_even (m->layers, pp, layers);
    return true;
}
