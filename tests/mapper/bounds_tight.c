/* How close the lower bounds are: on tiny clusters the best of all placements and splits is found
 * by trying them.  No bound may be above it nor further below than it was.  One that is closer
 * now either got better, and its row, which is printed, is written anew, or is too high where a
 * bound is not close: there nothing else would tell, so that both sides are checked. */
#include "tests/lib/bounds.h"

enum { SPLIT = 5, FIGURES };

static const enum bound_level levels[] = {BOUND_FRACTIONS, BOUND_SPLITS, BOUND_RUNS};

static double limit_pct; /* of memory */

/* The least step over every order of the GPUs from `k` on. */
static double best_order (const struct setting *s, int *gpu, int k)
{
    int n = s->cluster->n_gpus;
    double best = INFINITY;

    if (k == workload_world (&s->config.deg))
        return least_limit_pct (s, gpu) <= limit_pct ? step_of (s, gpu, NULL) : INFINITY;
    for (int i = k; i < n; i++) {
        int x = gpu[k];

        gpu[k] = gpu[i], gpu[i] = x;
        best = fmin (best, best_order (s, gpu, k + 1));
        gpu[i] = gpu[k], gpu[k] = x;
    }
    return best;
}

/* ... and every split of the layers. */
static double best_plan (struct setting *s, int stage, int left)
{
    double best = INFINITY;
    int gpu[8], unit, least;

    if (stage == s->config.deg.pp) {
        in_file_order (gpu, s->cluster->n_gpus);
        return left == 0 ? best_order (s, gpu, 0) : INFINITY;
    }
    layer_units (s, &least, &unit);
    for (int n = least; n <= left; n += unit) {
        s->layers[stage] = n;
        best = fmin (best, best_plan (s, stage + 1, left - n));
    }
    return best;
}

#define FLAT "4x1 a100-sxm4-80g inter:5 inter-us:30"
#define PAIRS "2x2 h100-sxm5-80g intra:200 inter:5 intra-us:9 inter-us:40"
#define NODE "1x4 a100-sxm4-80g intra:20 intra-us:60"
#define OUT "2x2 a100-sxm4-80g intra:100 inter:8 node:9"
#define WAY "2x2 a100-sxm4-80g intra:6 inter:8 node:5"
#define TWO "2x1 h100-sxm5-80g + 2x1 a100-sxm4-80g inter:6 inter-us:20"
#define ODD "1x3 a100-sxm4-80g intra:100 inter:4 + 1x2 v100-sxm2-32g intra:50 inter:4"
#define NEEDED "3x1 a100-sxm4-80g inter:10 + 1x1 a100-sxm4-80g inter:1"
#define NEEDED_PAIR \
    "2x2 a100-sxm4-80g intra:100 inter:10 + 1x2 a100-sxm4-80g intra:100 inter:2"
#define SPANS \
    "1x3 a100-sxm4-80g intra:100 inter:6 inter-us:20 + 1x1 a100-sxm4-80g inter:6"
#define THREE \
    "1x1 h100-sxm5-80g inter:6 + 1x1 a100-sxm4-80g inter:6 + 2x1 v100-sxm2-32g inter:6"
#define TRIO                                                                       \
    "1x2 h100-sxm5-80g intra:200 inter:6 + 1x2 a100-sxm4-80g intra:100 inter:6 + " \
    "1x1 v100-sxm2-32g inter:6"
#define THIRDS "2x3 a100-sxm4-80g intra:100 inter:20 inter-us:1 node:2"
#define SPARE "4x1 a100-sxm4-80g inter:10 + 1x1 a100-sxm4-80g inter:1"

#define F1B "1f1b"
#define GP "gpipe"
#define IL "interleaved"
#define ZB1 "zb1p"
#define ZB2 "zb2p"
#define ZBV "zbv"

/* Of six layers. */
enum job {
    PLAIN,
    ZERO_0,
    ZERO_2,
    ZERO_3,
    SELECTIVE,
    FULL,
    TIED,
    FEW,     /* two micro-batches of one sequence, fewer than stages */
    LIMITED, /* to the memory of an even split in file order */
    EXPERTS,
    EXPERTS_FULL,
    DENSE,
    EVERY
};
static const struct {
    int zero, recompute, experts, dense, every;
    bool tied, limited;
} jobs[] = {
    [PLAIN] = {1, 0, 0, 0, 1, false, false},
    [ZERO_0] = {0, 0, 0, 0, 1, false, false},
    [ZERO_2] = {2, 0, 0, 0, 1, false, false},
    [ZERO_3] = {3, 0, 0, 0, 1, false, false},
    [SELECTIVE] = {1, RECOMPUTE_SELECTIVE, 0, 0, 1, false, false},
    [FULL] = {1, RECOMPUTE_FULL, 0, 0, 1, false, false},
    [TIED] = {1, 0, 0, 0, 1, true, false},
    [FEW] = {1, 0, 0, 0, 1, false, false},
    [LIMITED] = {1, 0, 0, 0, 1, false, true},
    [EXPERTS] = {1, 0, 4, 0, 1, false, false},
    [EXPERTS_FULL] = {1, RECOMPUTE_FULL, 4, 0, 1, false, false},
    [DENSE] = {1, 0, 4, 1, 1, false, false},
    [EVERY] = {1, 0, 4, 0, 2, false, false},
};

/* Degrees are tp, pp, dp, cp, ep, vpp.  Shares of the best plan, in ten-thousandths: the bound
 * with fractions of layers, with whole ones, the closest; those of the two published models;
 * and the best plan's of the best one with the split of layers that bound_split proposes. */
static const struct tight {
    const char *cluster, *schedule;
    int deg[6];
    enum job job;
    int share[FIGURES];
} known[] = {
    {FLAT, F1B, {1, 1, 4, 1, 1, 1}, PLAIN, {10000, 10000, 10000, 10000, 7382, 10000}},
    {FLAT, F1B, {1, 2, 2, 1, 1, 1}, PLAIN, {7705, 9999, 9999, 9382, 8342, 8668}},
    {FLAT, F1B, {1, 3, 1, 1, 1, 1}, PLAIN, {8579, 9999, 9999, 8464, 8928, 10000}},
    {FLAT, F1B, {1, 4, 1, 1, 1, 1}, PLAIN, {8999, 9775, 9999, 10000, 10000, 10000}},
    {FLAT, F1B, {2, 1, 2, 1, 1, 1}, PLAIN, {9686, 9686, 9686, 4361, 3460, 10000}},
    {FLAT, F1B, {2, 2, 1, 1, 1, 1}, PLAIN, {9792, 9999, 9999, 3988, 3362, 10000}},
    {FLAT, F1B, {4, 1, 1, 1, 1, 1}, PLAIN, {10000, 10000, 10000, 2675, 2288, 10000}},
    {PAIRS, F1B, {1, 1, 4, 1, 1, 1}, PLAIN, {10000, 10000, 10000, 10000, 7328, 10000}},
    {PAIRS, F1B, {1, 2, 2, 1, 1, 1}, PLAIN, {9225, 9897, 9897, 8857, 9632, 10000}},
    {PAIRS, F1B, {1, 3, 1, 1, 1, 1}, PLAIN, {9269, 9999, 9999, 9188, 9501, 10000}},
    {PAIRS, F1B, {1, 4, 1, 1, 1, 1}, PLAIN, {8873, 9957, 9999, 10000, 10000, 10000}},
    {PAIRS, F1B, {2, 1, 2, 1, 1, 1}, PLAIN, {10000, 10000, 10000, 6144, 5937, 10000}},
    {PAIRS, F1B, {2, 2, 1, 1, 1, 1}, PLAIN, {9650, 9977, 9977, 7298, 7437, 10000}},
    {PAIRS, F1B, {4, 1, 1, 1, 1, 1}, PLAIN, {9105, 9105, 9105, 3759, 3296, 10000}},
    {NODE, F1B, {1, 1, 4, 1, 1, 1}, PLAIN, {10000, 10000, 10000, 6978, 8743, 10000}},
    {NODE, F1B, {1, 2, 2, 1, 1, 1}, PLAIN, {8765, 9999, 9999, 7989, 9066, 10000}},
    {NODE, F1B, {1, 3, 1, 1, 1, 1}, PLAIN, {8562, 9999, 9999, 8362, 8922, 10000}},
    {NODE, F1B, {1, 4, 1, 1, 1, 1}, PLAIN, {9437, 9740, 10000, 10000, 10000, 10000}},
    {NODE, F1B, {2, 1, 2, 1, 1, 1}, PLAIN, {9737, 9737, 9737, 5298, 5017, 10000}},
    {NODE, F1B, {2, 2, 1, 1, 1, 1}, PLAIN, {9698, 9999, 9999, 5601, 5192, 10000}},
    {NODE, F1B, {4, 1, 1, 1, 1, 1}, PLAIN, {10000, 10000, 10000, 3858, 3379, 10000}},
    {OUT, F1B, {1, 1, 4, 1, 1, 1}, PLAIN, {10000, 10000, 10000, 10000, 7848, 10000}},
    {OUT, F1B, {1, 2, 2, 1, 1, 1}, PLAIN, {9104, 9999, 9999, 8536, 9310, 9908}},
    {OUT, F1B, {1, 3, 1, 1, 1, 1}, PLAIN, {8561, 9999, 9999, 8374, 8922, 10000}},
    {OUT, F1B, {1, 4, 1, 1, 1, 1}, PLAIN, {9644, 9914, 9999, 10000, 10000, 10000}},
    {OUT, F1B, {2, 1, 2, 1, 1, 1}, PLAIN, {9471, 9903, 9903, 6613, 6354, 10000}},
    {OUT, F1B, {2, 2, 1, 1, 1, 1}, PLAIN, {9598, 9999, 9999, 7217, 7310, 10000}},
    {OUT, F1B, {4, 1, 1, 1, 1, 1}, PLAIN, {9880, 9880, 9880, 3966, 3481, 10000}},
    {TWO, F1B, {1, 1, 4, 1, 1, 1}, PLAIN, {9840, 10000, 10000, 9661, 7333, 10000}},
    {TWO, F1B, {1, 2, 2, 1, 1, 1}, PLAIN, {7883, 9943, 9999, 9690, 8637, 8714}},
    {TWO, F1B, {1, 3, 1, 1, 1, 1}, PLAIN, {9009, 10000, 10000, 9214, 9501, 10000}},
    {TWO, F1B, {1, 4, 1, 1, 1, 1}, PLAIN, {8718, 9933, 9999, 10000, 9972, 10000}},
    {TWO, F1B, {2, 1, 2, 1, 1, 1}, PLAIN, {9579, 9701, 9701, 4550, 3710, 10000}},
    {TWO, F1B, {2, 2, 1, 1, 1, 1}, PLAIN, {9824, 9987, 9999, 4346, 3677, 10000}},
    {TWO, F1B, {4, 1, 1, 1, 1, 1}, PLAIN, {9935, 9999, 9999, 3017, 2613, 10000}},
    {ODD, F1B, {1, 1, 4, 1, 1, 1}, PLAIN, {9538, 10000, 10000, 8491, 6704, 10000}},
    {ODD, F1B, {1, 2, 2, 1, 1, 1}, PLAIN, {8715, 9979, 9999, 7928, 8999, 10000}},
    {ODD, F1B, {1, 3, 1, 1, 1, 1}, PLAIN, {8560, 10000, 10000, 8332, 8920, 10000}},
    {ODD, F1B, {1, 4, 1, 1, 1, 1}, PLAIN, {9376, 9919, 9999, 10000, 9975, 9484}},
    {ODD, F1B, {2, 1, 2, 1, 1, 1}, PLAIN, {9577, 10000, 10000, 5270, 5212, 10000}},
    {ODD, F1B, {2, 2, 1, 1, 1, 1}, PLAIN, {9565, 9987, 9999, 7004, 7037, 10000}},
    {ODD, F1B, {4, 1, 1, 1, 1, 1}, PLAIN, {9696, 9889, 9889, 3676, 3238, 10000}},
    {FLAT, F1B, {1, 1, 4, 1, 4, 1}, EXPERTS, {9527, 9527, 9527, 5935, 2552, 10000}},
    {FLAT, F1B, {1, 2, 2, 1, 2, 1}, EXPERTS_FULL, {9491, 9999, 9999, 5035, 3500, 10000}},
    {FLAT, GP, {1, 3, 1, 1, 1, 1}, SELECTIVE, {8587, 9999, 9999, 8420, 8928, 10000}},
    {FLAT, IL, {1, 2, 2, 1, 1, 3}, PLAIN, {9066, 9932, 9999, 9382, 8342, 10000}},
    {FLAT, ZB1, {1, 3, 1, 1, 1, 1}, PLAIN, {8045, 9925, 9925, 8464, 8928, 10000}},
    {FLAT, F1B, {1, 1, 4, 1, 1, 1}, ZERO_3, {10000, 10000, 10000, 10000, 7382, 10000}},
    {FLAT, F1B, {1, 2, 1, 2, 1, 1}, PLAIN, {8739, 9945, 9945, 7688, 7252, 10000}},
    {PAIRS, F1B, {1, 1, 4, 1, 4, 1}, EXPERTS, {9488, 9488, 9488, 6116, 2900, 10000}},
    {PAIRS, F1B, {1, 2, 2, 1, 2, 1}, EXPERTS_FULL, {9458, 9930, 9930, 7964, 8257, 10000}},
    {PAIRS, GP, {1, 3, 1, 1, 1, 1}, SELECTIVE, {9271, 9999, 9999, 9168, 9501, 10000}},
    {PAIRS, IL, {1, 2, 2, 1, 1, 3}, PLAIN, {8473, 9538, 9999, 8857, 9632, 10000}},
    {PAIRS, ZB1, {1, 3, 1, 1, 1, 1}, PLAIN, {8750, 9865, 9865, 9188, 9501, 10000}},
    {PAIRS, F1B, {1, 1, 4, 1, 1, 1}, ZERO_3, {10000, 10000, 10000, 10000, 7328, 10000}},
    {PAIRS, F1B, {1, 2, 1, 2, 1, 1}, PLAIN, {9618, 9973, 9973, 8797, 9279, 10000}},
    {FLAT, F1B, {1, 1, 4, 1, 1, 1}, ZERO_2, {10000, 10000, 10000, 10000, 7382, 10000}},
    {FLAT, F1B, {1, 1, 4, 1, 1, 1}, ZERO_0, {9997, 9997, 9997, 10000, 7382, 10000}},
    {NODE, F1B, {1, 2, 1, 2, 1, 1}, PLAIN, {9376, 9965, 9965, 7920, 8319, 10000}},
    {NODE, F1B, {1, 1, 4, 1, 2, 1}, EXPERTS, {9727, 9727, 9727, 5208, 5125, 10000}},
    {OUT, IL, {1, 2, 2, 1, 1, 3}, PLAIN, {8126, 9587, 9999, 8536, 9310, 10000}},
    {OUT, F1B, {1, 1, 4, 1, 4, 1}, EXPERTS, {9009, 9009, 9009, 5532, 3126, 10000}},
    {TWO, GP, {1, 4, 1, 1, 1, 1}, PLAIN, {8754, 9999, 9999, 10000, 9972, 10000}},
    {TWO, IL, {1, 2, 2, 1, 1, 3}, PLAIN, {9273, 9920, 9999, 9690, 8637, 10000}},
    {TWO, ZBV, {1, 2, 2, 1, 1, 2}, PLAIN, {5475, 8259, 8259, 9686, 7728, 9882}},
    {TWO, F1B, {1, 2, 2, 1, 2, 1}, EXPERTS, {9457, 9956, 9999, 5835, 3819, 10000}},
    {ODD, GP, {1, 4, 1, 1, 1, 1}, PLAIN, {9465, 9930, 9999, 10000, 9975, 9988}},
    {ODD, IL, {1, 2, 2, 1, 1, 3}, PLAIN, {7743, 9167, 9999, 7928, 8999, 10000}},
    {ODD, ZBV, {1, 2, 2, 1, 1, 2}, PLAIN, {8524, 9127, 9206, 8132, 9107, 10000}},
    {ODD, F1B, {1, 2, 2, 1, 2, 1}, EXPERTS, {8829, 9822, 9822, 6532, 7381, 10000}},
    {NEEDED, F1B, {1, 1, 4, 1, 1, 1}, PLAIN, {10000, 10000, 10000, 1931, 1546, 10000}},
    {NEEDED, F1B, {1, 4, 1, 1, 1, 1}, PLAIN, {7563, 7839, 8099, 8447, 9806, 9967}},
    {NEEDED, F1B, {2, 2, 1, 1, 1, 1}, PLAIN, {6030, 6205, 6205, 3131, 3097, 4518}},
    {NEEDED, F1B, {1, 2, 2, 1, 1, 1}, PLAIN, {2917, 8656, 8656, 7789, 4118, 6804}},
    {SPARE, F1B, {1, 1, 4, 1, 1, 1}, PLAIN, {10000, 10000, 10000, 10000, 8076, 10000}},
    {SPARE, F1B, {1, 4, 1, 1, 1, 1}, PLAIN, {9337, 9678, 9999, 10000, 10000, 10000}},
    {SPARE, F1B, {2, 2, 1, 1, 1, 1}, PLAIN, {9717, 9999, 9999, 5291, 4800, 10000}},
    {SPARE, F1B, {1, 2, 2, 1, 1, 1}, PLAIN, {8256, 9999, 9999, 9243, 8780, 10000}},
    {PAIRS, ZB1, {1, 4, 1, 1, 1, 1}, PLAIN, {8026, 9519, 9519, 10000, 10000, 9760}},
    {TWO, ZB1, {1, 4, 1, 1, 1, 1}, PLAIN, {7838, 9344, 9344, 10000, 9972, 9886}},
    {TWO, ZB2, {1, 4, 1, 1, 1, 1}, PLAIN, {8636, 9958, 9958, 10000, 9972, 9705}},
    {FLAT, IL, {2, 2, 1, 1, 1, 3}, PLAIN, {9551, 9944, 9999, 3988, 3362, 10000}},
    {FLAT, ZB1, {2, 2, 1, 1, 1, 1}, PLAIN, {9458, 9822, 9822, 3988, 3362, 10000}},
    {FLAT, ZBV, {2, 2, 1, 1, 1, 2}, PLAIN, {9331, 9939, 9939, 3816, 3281, 10000}},
    {FLAT, GP, {2, 2, 1, 1, 1, 1}, PLAIN, {9518, 9719, 9719, 3988, 3362, 10000}},
    {PAIRS, IL, {2, 2, 1, 1, 1, 3}, PLAIN, {9445, 9924, 9999, 7298, 7437, 10000}},
    {PAIRS, ZB1, {2, 2, 1, 1, 1, 1}, PLAIN, {9436, 9773, 9773, 7298, 7437, 10000}},
    {PAIRS, ZBV, {2, 2, 1, 1, 1, 2}, PLAIN, {9398, 9715, 9715, 7183, 7267, 10000}},
    {PAIRS, GP, {2, 2, 1, 1, 1, 1}, PLAIN, {9765, 9954, 9954, 7298, 7437, 10000}},
    {TWO, IL, {2, 2, 1, 1, 1, 3}, PLAIN, {9648, 9940, 9999, 4346, 3677, 10000}},
    {TWO, ZB1, {2, 2, 1, 1, 1, 1}, PLAIN, {9548, 9801, 9801, 4346, 3677, 10000}},
    {TWO, ZBV, {2, 2, 1, 1, 1, 2}, PLAIN, {9439, 9906, 9906, 4167, 3636, 10000}},
    {TWO, GP, {2, 2, 1, 1, 1, 1}, PLAIN, {9567, 9679, 9999, 4346, 3677, 10000}},
    {NEEDED, IL, {2, 2, 1, 1, 1, 3}, PLAIN, {2583, 2703, 2720, 1356, 1279, 10000}},
    {NEEDED, ZB1, {2, 2, 1, 1, 1, 1}, PLAIN, {6027, 6306, 6306, 3131, 3097, 4313}},
    {NEEDED, ZBV, {2, 2, 1, 1, 1, 2}, PLAIN, {4014, 4272, 4272, 2099, 1883, 6741}},
    {NEEDED, GP, {2, 2, 1, 1, 1, 1}, PLAIN, {5986, 6160, 6160, 3131, 3097, 4463}},
    {SPANS, IL, {2, 2, 1, 1, 1, 3}, PLAIN, {7063, 9436, 9436, 4358, 4097, 10000}},
    {SPANS, ZB1, {2, 2, 1, 1, 1, 1}, PLAIN, {9015, 9337, 9337, 5732, 5659, 7801}},
    {SPANS, ZBV, {2, 2, 1, 1, 1, 2}, PLAIN, {9099, 9369, 9369, 5656, 5622, 7801}},
    {SPANS, GP, {2, 2, 1, 1, 1, 1}, PLAIN, {8938, 9390, 9390, 5732, 5659, 7756}},
    {SPANS, F1B, {2, 2, 1, 1, 1, 1}, PLAIN, {8999, 9613, 9613, 5732, 5659, 7874}},
    {SPANS, IL, {2, 2, 1, 1, 1, 2}, PLAIN, {9004, 9294, 9461, 5732, 5659, 7784}},
    {SPANS, ZB2, {2, 2, 1, 1, 1, 1}, PLAIN, {9046, 9369, 9369, 5732, 5659, 7792}},
    {SPANS, F1B, {2, 2, 1, 1, 1, 1}, FULL, {9244, 9710, 9710, 5604, 5659, 7571}},
    {SPANS, F1B, {1, 2, 2, 1, 1, 1}, PLAIN, {6076, 7485, 7485, 8447, 7015, 9696}},
    {SPANS, F1B, {4, 1, 1, 1, 1, 1}, PLAIN, {6995, 6995, 6995, 3170, 2738, 10000}},
    {SPANS, F1B, {2, 1, 2, 1, 1, 1}, PLAIN, {7356, 7694, 7694, 3702, 3330, 10000}},
    {PAIRS, IL, {1, 2, 2, 1, 2, 3}, EXPERTS, {8610, 9588, 9999, 7896, 8257, 10000}},
    {PAIRS, ZB1, {1, 2, 2, 1, 2, 1}, EXPERTS, {9056, 9791, 9791, 7896, 8257, 10000}},
    {PAIRS, GP, {1, 2, 2, 1, 2, 1}, DENSE, {8823, 9845, 9985, 7896, 8299, 10000}},
    {NODE, IL, {1, 2, 2, 1, 2, 3}, EXPERTS, {8767, 9752, 9846, 5905, 5865, 10000}},
    {NODE, ZB1, {1, 2, 2, 1, 2, 1}, EXPERTS, {8639, 9609, 9609, 5905, 5865, 10000}},
    {NODE, GP, {1, 2, 2, 1, 2, 1}, DENSE, {8077, 8918, 8918, 5905, 5934, 10000}},
    {TWO, IL, {1, 2, 2, 1, 2, 3}, EXPERTS, {9084, 9937, 9999, 5835, 3819, 10000}},
    {TWO, ZB1, {1, 2, 2, 1, 2, 1}, EXPERTS, {8736, 9611, 9611, 5835, 3819, 10000}},
    {TWO, GP, {1, 2, 2, 1, 2, 1}, DENSE, {7834, 9258, 9417, 5835, 3888, 10000}},
    {SPANS, IL, {1, 2, 2, 1, 2, 3}, EXPERTS, {4928, 7319, 7346, 4566, 4061, 10000}},
    {SPANS, ZB1, {1, 2, 2, 1, 2, 1}, EXPERTS, {5995, 7556, 7556, 6205, 5327, 8136}},
    {SPANS, GP, {1, 2, 2, 1, 2, 1}, DENSE, {6910, 8558, 8597, 6205, 5491, 7281}},
    {PAIRS, IL, {1, 2, 2, 1, 2, 2}, DENSE, {8783, 9620, 9985, 7896, 8299, 10000}},
    {PAIRS, F1B, {1, 2, 2, 1, 2, 1}, EVERY, {8795, 9835, 9835, 8512, 9041, 10000}},
    {PAIRS, ZBV, {1, 2, 2, 1, 2, 2}, EXPERTS, {9365, 9772, 9772, 7892, 8219, 10000}},
    {PAIRS, IL, {1, 2, 2, 1, 2, 3}, EVERY, {8137, 9302, 9917, 8581, 8783, 10000}},
    {PAIRS, ZB1, {1, 4, 1, 1, 1, 1}, DENSE, {8060, 9579, 9579, 9993, 9999, 9806}},
    {TWO, IL, {1, 2, 2, 1, 2, 2}, DENSE, {8078, 9361, 9391, 5835, 3888, 10000}},
    {TWO, F1B, {1, 2, 2, 1, 2, 1}, EVERY, {7140, 8794, 9140, 7029, 4738, 10000}},
    {TWO, ZBV, {1, 2, 2, 1, 2, 2}, EXPERTS, {6398, 8442, 8442, 5833, 3597, 10000}},
    {TWO, IL, {1, 2, 2, 1, 2, 3}, EVERY, {5130, 6042, 8452, 6061, 4107, 10000}},
    {TWO, ZB1, {1, 4, 1, 1, 1, 1}, DENSE, {7855, 9482, 9482, 9994, 9945, 9677}},
    {FLAT, IL, {1, 2, 2, 1, 1, 2}, PLAIN, {8217, 9890, 9999, 9382, 8342, 8569}},
    {FLAT, F1B, {1, 2, 2, 1, 1, 1}, TIED, {8109, 9999, 9999, 9382, 8342, 7793}},
    {FLAT, F1B, {1, 4, 1, 1, 1, 1}, TIED, {9234, 9828, 9999, 10000, 10000, 10000}},
    {FLAT, ZB1, {1, 3, 1, 1, 1, 1}, TIED, {6276, 8234, 8234, 8464, 8928, 10000}},
    {PAIRS, IL, {1, 2, 2, 1, 1, 2}, PLAIN, {8842, 9590, 9999, 8857, 9632, 10000}},
    {PAIRS, F1B, {1, 2, 2, 1, 1, 1}, TIED, {6401, 9929, 9929, 8857, 9632, 10000}},
    {PAIRS, F1B, {1, 4, 1, 1, 1, 1}, TIED, {8615, 9657, 9697, 10000, 10000, 10000}},
    {PAIRS, ZB1, {1, 3, 1, 1, 1, 1}, TIED, {8465, 9631, 9631, 9188, 9501, 10000}},
    {ODD, IL, {1, 2, 2, 1, 1, 2}, PLAIN, {8366, 9620, 9999, 7928, 8999, 10000}},
    {ODD, F1B, {1, 2, 2, 1, 1, 1}, TIED, {6124, 9986, 9999, 7928, 8999, 10000}},
    {ODD, F1B, {1, 4, 1, 1, 1, 1}, TIED, {8945, 9453, 9529, 10000, 9975, 9962}},
    {ODD, ZB1, {1, 3, 1, 1, 1, 1}, TIED, {8014, 9904, 9904, 8332, 8920, 9511}},
    {TWO, IL, {1, 2, 2, 1, 1, 2}, PLAIN, {8454, 9871, 9999, 9690, 8637, 10000}},
    {TWO, F1B, {1, 2, 2, 1, 1, 1}, TIED, {8243, 9953, 9999, 9690, 8637, 8909}},
    {TWO, F1B, {1, 4, 1, 1, 1, 1}, TIED, {8999, 9948, 9999, 10000, 9972, 10000}},
    {TWO, ZB1, {1, 3, 1, 1, 1, 1}, TIED, {6791, 8912, 8912, 9214, 9501, 10000}},
    {TWO, F1B, {1, 3, 1, 1, 1, 1}, LIMITED, {9009, 10000, 10000, 9214, 9501, 10000}},
    {TWO, ZB1, {1, 3, 1, 1, 1, 1}, LIMITED, {8629, 9699, 9699, 9214, 9501, 10000}},
    {TWO, F1B, {1, 4, 1, 1, 1, 1}, LIMITED, {8164, 9739, 9999, 10000, 9971, 10000}},
    {ODD, F1B, {1, 3, 1, 1, 1, 1}, LIMITED, {8554, 9999, 9999, 8332, 8920, 10000}},
    {ODD, ZB1, {1, 3, 1, 1, 1, 1}, LIMITED, {8133, 9999, 9999, 8332, 8920, 10000}},
    {ODD, IL, {1, 2, 2, 1, 1, 2}, LIMITED, {8366, 9620, 9999, 7928, 8999, 10000}},
    {ODD, F1B, {1, 4, 1, 1, 1, 1}, LIMITED, {9376, 9919, 9999, 10000, 9975, 9484}},
    {THREE, F1B, {1, 3, 1, 1, 1, 1}, LIMITED, {8582, 9938, 9999, 8426, 9457, 10000}},
    {THREE, ZB1, {1, 3, 1, 1, 1, 1}, LIMITED, {8412, 9737, 9737, 8426, 9457, 10000}},
    {THREE, IL, {1, 2, 2, 1, 1, 2}, LIMITED, {8149, 9646, 9909, 8755, 8073, 10000}},
    {THREE, F1B, {1, 4, 1, 1, 1, 1}, LIMITED, {8355, 9992, 9999, 8825, 9249, 10000}},
    {FLAT, F1B, {1, 3, 1, 1, 1, 1}, LIMITED, {8579, 9999, 9999, 8464, 8928, 10000}},
    {FLAT, ZB1, {1, 3, 1, 1, 1, 1}, LIMITED, {8045, 9925, 9925, 8464, 8928, 10000}},
    {FLAT, F1B, {1, 4, 1, 1, 1, 1}, LIMITED, {8698, 9999, 9999, 10000, 10000, 10000}},
    {THREE, F1B, {1, 2, 2, 1, 1, 1}, PLAIN, {7502, 9748, 9999, 8755, 8073, 10000}},
    {THREE, F1B, {1, 4, 1, 1, 1, 1}, PLAIN, {8355, 9992, 9999, 8825, 9249, 10000}},
    {THREE, F1B, {1, 3, 1, 1, 1, 1}, PLAIN, {8582, 9938, 9999, 8426, 9457, 10000}},
    {THREE, F1B, {2, 2, 1, 1, 1, 1}, PLAIN, {9627, 9990, 9999, 4288, 3727, 10000}},
    {THREE, F1B, {1, 1, 4, 1, 1, 1}, PLAIN, {9442, 10000, 10000, 8203, 6717, 10000}},
    {THREE, F1B, {1, 2, 1, 2, 1, 1}, PLAIN, {8564, 9861, 9868, 7727, 7435, 10000}},
    {THREE, GP, {1, 2, 2, 1, 1, 1}, PLAIN, {7397, 9670, 9999, 8755, 8073, 10000}},
    {THREE, IL, {1, 2, 2, 1, 1, 3}, PLAIN, {8764, 9487, 9645, 8755, 8073, 10000}},
    {THREE, ZB1, {1, 4, 1, 1, 1, 1}, PLAIN, {7470, 9708, 9708, 8825, 9249, 10000}},
    {THREE, ZBV, {1, 2, 2, 1, 1, 2}, PLAIN, {5224, 8446, 8446, 8767, 7272, 10000}},
    {THREE, F1B, {1, 2, 2, 1, 2, 1}, EXPERTS, {8926, 9855, 9999, 5363, 3698, 10000}},
    {THREE, ZB2, {1, 3, 1, 1, 1, 1}, SELECTIVE, {8572, 9966, 9966, 8305, 9457, 10000}},
    {TRIO, F1B, {1, 2, 2, 1, 1, 1}, PLAIN, {9284, 9890, 9977, 8816, 9524, 10000}},
    {TRIO, F1B, {2, 2, 1, 1, 1, 1}, PLAIN, {9697, 9990, 9999, 7385, 7281, 10000}},
    {TRIO, IL, {1, 2, 2, 1, 1, 3}, PLAIN, {8588, 9579, 9976, 8816, 9524, 10000}},
    {TRIO, GP, {1, 5, 1, 1, 1, 1}, PLAIN, {8192, 9938, 9999, 9992, 9972, 9912}},
    {TRIO, F1B, {1, 5, 1, 1, 1, 1}, PLAIN, {8394, 9820, 9959, 9992, 9972, 10000}},
    {TRIO, ZB1, {1, 2, 2, 1, 1, 1}, PLAIN, {9082, 9780, 9780, 8816, 9524, 10000}},
    {ODD, F1B, {1, 1, 2, 2, 2, 1}, DENSE, {8760, 9171, 9171, 8306, 5028, 10000}},
    {TRIO, F1B, {1, 1, 2, 2, 2, 1}, DENSE, {9091, 9271, 9271, 8688, 5817, 10000}},
    {OUT, F1B, {2, 1, 1, 2, 2, 1}, DENSE, {7603, 8473, 8473, 5125, 4797, 10000}},
    {OUT, F1B, {2, 1, 2, 1, 2, 1}, DENSE, {7658, 8720, 8720, 4326, 3882, 10000}},
    {NEEDED, GP, {1, 2, 1, 2, 2, 1}, DENSE, {4888, 7215, 7215, 4415, 3439, 5422}},
    {WAY, F1B, {1, 4, 1, 1, 1, 1}, PLAIN, {9133, 9779, 9999, 10000, 10000, 10000}},
    {WAY, IL, {1, 2, 2, 1, 1, 3}, PLAIN, {8486, 9617, 9999, 6853, 8656, 10000}},
    {FLAT, F1B, {1, 4, 1, 1, 1, 1}, FEW, {10000, 10000, 10000, 10000, 9999, 10000}},
    {NEEDED, F1B, {1, 2, 2, 1, 1, 1}, TIED, {2273, 6081, 6081, 7789, 4118, 7624}},
    {NEEDED, IL, {1, 2, 2, 1, 1, 3}, PLAIN, {1990, 9112, 9999, 7789, 3309, 10000}},
    {NEEDED_PAIR, IL, {1, 2, 3, 1, 1, 3}, PLAIN, {2898, 5568, 6267, 8398, 3747, 10000}},
    {THIRDS, F1B, {2, 3, 1, 1, 1, 1}, PLAIN, {7371, 9999, 10000, 5054, 4543, 5748}},
};

/* The setting of a case, on a cluster of its own. */
static struct setting setting_of (const struct tight *t)
{
    const int *d = t->deg;
    struct setting s = small_job_as (cluster_of (t->cluster), 6, 1024, 16,
                                     config_of (d[0], d[1], d[2], 1));

    if (t->job == FEW)
        s.job.global_batch = 2;
    s.config.deg.cp = d[3];
    s.config.deg.ep = d[4];
    s.config.deg.vpp = d[5];
    s.config.zero = jobs[t->job].zero;
    s.config.recompute = (enum workload_recompute) jobs[t->job].recompute;
    assert_true (workload_schedule_parse (t->schedule, &s.config.schedule));
    s.model.tied = jobs[t->job].tied;
    s.model.experts = jobs[t->job].experts;
    s.model.top_k = s.model.experts ? 2 : 0;
    s.model.expert_ffn = s.model.experts ? 2048 : 0;
    s.model.dense_layers = jobs[t->job].dense;
    s.model.expert_every = jobs[t->job].every;
    return s;
}

/* The best step with the split of layers that the bound proposes. */
static double best_proposed (struct setting *s, const struct pool *pool)
{
    int caps[64], class_of_stage[8], gpu[8];
    struct error err = {""};

    if (!pool_memory_fits (pool, &s->config, caps) ||
        bound_split (pool, &s->config, true, caps, s->layers, class_of_stage, &err) !=
            ST_OK)
        return INFINITY;
    in_file_order (gpu, s->cluster->n_gpus);
    return best_order (s, gpu, 0);
}

/* @param[out] bound, best  of each figure of `share` */
static void find_figures (const struct tight *t, double bound[FIGURES],
                          double best[FIGURES])
{
    struct setting s = setting_of (t);
    int gpu[8];

    in_file_order (gpu, s.cluster->n_gpus);
    limit_pct = jobs[t->job].limited ? least_limit_pct (&s, gpu) : 1e9;
    for (int kind = COSTMODEL_CRITICAL_PATH; kind <= COSTMODEL_AMP; kind++) {
        struct mapper_problem p;
        struct pool pool;
        struct error err = {""};

        s.kind = (enum costmodel_kind) kind;
        p = search_problem (&s);
        p.memory_limit_pct = limit_pct;
        p.cost_model = s.kind;
        ok (pool_init (&pool, &p, &err), &err);
        best[kind + 2] = best_plan (&s, 0, 6);
        if (kind == COSTMODEL_CRITICAL_PATH) {
            best[0] = best[1] = best[2];
            for (int level = 0; level < 3; level++)
                bound[level] = bound_of (&pool, &s.config, levels[level]);
            bound[SPLIT] = best[2];
            best[SPLIT] = best_proposed (&s, &pool);
        } else {
            bound[kind + 2] = bound_published (&pool, &s.config);
        }
        pool_release (&pool);
    }
    topology_cluster_destroy (s.cluster);
}

TEST (as_close)
{
    int wrong = 0;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double bound[FIGURES], best[FIGURES];
        int now[FIGURES];
        bool same = true;

        find_figures (&known[i], bound, best);
        for (int k = 0; k < FIGURES; k++) {
            now[k] = (int) floor (bound[k] / best[k] * 1e4);
            if (bound[k] > best[k] * (1 + 1e-9))
                fail_msg ("case %zu, bound %d is above the best plan: %.9g of it", i, k,
                          bound[k] / best[k]);
            same = same && abs (now[k] - known[i].share[k]) <= 1;
        }
        if (!same)
            print_message ("case %zu: {%d, %d, %d, %d, %d, %d}\n", i, now[0], now[1],
                           now[2], now[3], now[4], now[5]);
        wrong += !same;
    }
    assert_int_equal (wrong, 0);
}
