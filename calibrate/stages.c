/* The layers of every stage of a measured run: as the row says, else as its framework
 * spreads them. */
#include "calibrate/calibrate_private.h"

#include <stdlib.h>
#include <string.h>

/* So many on the first and the last stage (0: as the others), the rest even. */
static void fill_ends (int layers, int pp, int first, int last, int *out)
{
    int inner = pp - (first > 0) - (last > 0);

    if (inner > 0)
        workload_layers_even (layers - first - last, inner, out + (first > 0));
    if (first > 0)
        out[0] = first;
    if (last > 0)
        out[pp - 1] = last;
}

/* ---- a cut of the framework's list of modules ---- */

/* Whole numbers with commas between them, up to a semicolon or the end.
 * @param[out] x  [most]
 * @return how many; 0: it is something else, or more than `most` */
static int read_list (const char *s, int *x, int most)
{
    for (int n = 0;; n++) {
        char *end;
        long value = strtol (s, &end, 10);

        if (end == s || n == most || value < 0 || value > 1 << 20)
            return 0;
        x[n] = (int) value;
        s = end + strspn (end, " ");
        if (*s == '\0' || *s == ';')
            return n + 1;
        if (*s++ != ',')
            return 0;
    }
}

/* Layers of the modules from .. to, of a list with `before` modules ahead of the layers. */
static int layers_within (int from, int to, int before, int layers)
{
    int first = from > before ? from - before : 0;
    int end = to - before < layers ? to - before : layers;

    return end > first ? end - first : 0;
}

/* "partition 0, 9, 15, 21, 30": where parts begin in the list of modules, and its end.
 * The list is the layers alone; with embedding and head; or DeepSpeed's of Megatron's GPT-2:
 * the embedding, a reshape, the layers, a reshape, the norm, the head, a cast.
 * @param[in]  bound   [parts + 1]
 * @param[out] out     [parts]
 * @return false where it is no such cut, or leaves a part with fewer layers than `least` */
static bool cut_modules (const int *bound, int parts, int layers, int least, int *out)
{
    static const struct {
        int more, before;
    } lists[] = {{0, 0}, {2, 1}, {6, 2}};
    int before = -1;

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (bound[parts] == layers + lists[i].more)
            before = lists[i].before;
    if (bound[0] != 0 || before < 0)
        return false;
    for (int i = 0; i < parts; i++) {
        out[i] = layers_within (bound[i], bound[i + 1], before, layers);
        if (bound[i + 1] < bound[i] || out[i] < least)
            return false;
    }
    return true;
}

/* The parts that the notes state, in those words among prose. */
static bool stated_cut (const struct row *r, int parts, int layers, int least, int *out)
{
    static const char word[] = "partition ";
    const char *s = calibrate_cell (r, "notes");
    int *bound = malloc (((size_t) parts + 1) * sizeof *bound);
    bool found = false;

    while (bound && !found && (s = strstr (s, word))) {
        s += sizeof word - 1;
        found = read_list (s, bound, parts + 1) == parts + 1 &&
                cut_modules (bound, parts, layers, least, out);
    }
    free (bound);
    return found;
}

/* The chunks that the notes state, in the order of the layers, some of them empty.
 * @return the layers of every stage, which has some; NULL: none are stated */
static const int *stated_chunks (const struct row *r, struct calibrate_run *run)
{
    int pp = run->config.deg.pp, v = run->config.deg.vpp,
        behind = WORKLOAD_PARTITIONS * pp;
    bool turns = workload_schedule_is_v (run->config.schedule), found;
    int *round, *layers;

    if (v == 1 || (long long) pp * v >= run->model.layers + pp)
        return NULL;
    round = malloc ((size_t) (pp * v) * sizeof *round);
    layers = realloc (run->layers, (size_t) (behind + pp * v) * sizeof *layers);
    run->layers = layers ? layers : run->layers;
    found = round && layers && stated_cut (r, pp * v, run->model.layers, 0, round);
    for (int i = 0; i < pp && found; i++) {
        layers[i] = 0;
        for (int k = 0; k < v; k++)
            layers[i] += layers[behind + i * v + k] =
                round[k * pp + (turns && k % 2 ? pp - 1 - i : i)];
        found = layers[i] > 0;
    }
    free (round);
    run->chunks = found ? layers + behind : NULL;
    return found ? layers : NULL;
}

/* As the framework has them under a partition. */
static void spread (const struct calibrate_run *run, int p, int *out)
{
    int pp = run->config.deg.pp, layers = run->model.layers, ends = (layers + 2) / pp - 1;
    bool as_layers = pp > 2 && layers % pp != 0 && (layers + 2) % pp == 0;

    if (p == PARTITION_EVEN && as_layers)
        fill_ends (layers, pp, ends, ends, out);
    else
        workload_layers_split (&run->model, (enum workload_partition) p, pp, out);
}

bool calibrate_spread_layers (struct calibrate_run *run)
{
    size_t pp = (size_t) run->config.deg.pp;
    int *layers = calloc (WORKLOAD_PARTITIONS * pp, sizeof *layers);

    if (!layers)
        return false;
    free (run->layers);
    run->layers = layers;
    run->chunks = NULL;
    for (int p = 0; p < WORKLOAD_PARTITIONS; p++)
        spread (run, p, layers + (size_t) p * pp);
    return true;
}

const char *calibrate_read_layers (const struct row *r, struct calibrate_run *run)
{
    int pp = run->config.deg.pp, layers = run->model.layers;
    int first = calibrate_note_int (r, "decoder-first-pipeline-num-layers", 0);
    int last = calibrate_note_int (r, "decoder-last-pipeline-num-layers", 0);
    int inner = pp - (first > 0) - (last > 0);
    const int *stages;

    if (first < 0 || last < 0 || inner < 0 || (long long) layers - first - last < inner ||
        (inner == 0 && first + last != layers))
        return "the layers of its first and last stage do not fit";
    if (!calibrate_spread_layers (run))
        return "out of memory";
    stages = stated_chunks (r, run);
    for (int p = 0; p < WORKLOAD_PARTITIONS; p++) {
        int *out = run->layers + p * pp;

        if (stages)
            memmove (out, stages, (size_t) pp * sizeof *out);
        else if (first > 0 || last > 0)
            fill_ends (layers, pp, first, last, out);
        else if (!stated_cut (r, pp, layers, 1, out))
            spread (run, p, out); /* a wrong one may have been begun */
    }
    return NULL;
}
