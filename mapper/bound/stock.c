#include "mapper/bound/stock.h"

#include <math.h>

#include "base/extremes.h"

/* What a unit of a kind would gain, and the stage that would take it. */
struct wish {
    double gain;
    int stage;
};

static double gain_of (const struct assignment *a, int stage, int kind)
{
    return a->most[stage * KINDS_MAX + kind];
}

/* The best that the stage before the first can gain with a unit of each kind, others moving
 * to make room. */
static void find_wishes (const struct assignment *a, struct wish wish[KINDS_MAX])
{
    for (int j = 0; j < a->kinds; j++)
        wish[j] = (struct wish){gain_of (a, a->first, j), a->first};
    for (int round = 1; round < a->kinds; round++)
        for (int s = a->first + 1; s < a->p; s++)
            for (int j = 0; j < a->kinds; j++) {
                double gain =
                    wish[a->of[s]].gain + gain_of (a, s, j) - gain_of (a, s, a->of[s]);

                if (gain > wish[j].gain)
                    wish[j] = (struct wish){gain, s};
            }
}

bool assign_next (struct assignment *a)
{
    struct wish wish[KINDS_MAX];
    int to = -1, mover;

    a->first--;
    find_wishes (a, wish);
    for (int j = 0; j < a->kinds; j++)
        if (a->left[j] > 0 && (to < 0 || wish[j].gain > wish[to].gain))
            to = j;
    if (to < 0)
        return false;
    a->left[to]--;
    a->held += wish[to].gain;
    do {
        int was;

        mover = wish[to].stage;
        was = a->of[mover];
        a->of[mover] = to;
        to = was;
    } while (mover != a->first);
    return true;
}

bool assign_unit (struct assignment *a, int kind)
{
    while (kind >= 0 && a->left[kind] == 0)
        kind--;
    if (kind >= 0)
        a->left[kind]--;
    return kind >= 0;
}

double stock_most_gain (const double *gain, int p, int kinds, const int *price, int most,
                        double *work)
{
    double *now = work, *next;
    int dearest = 0;

    for (int j = 0; j < kinds; j++)
        dearest = price[j] > dearest ? price[j] : dearest;
    most = most < p * dearest ? most : p * dearest;
    next = work + most + 1;
    for (int c = 0; c <= most && c <= dearest; c++)
        now[c] = 0.0;
    for (int k = 0; k < p; k++, gain += KINDS_MAX) {
        /* Less than that leaves more than the other stages can spend; more than dearest
         * a stage buys nothing. */
        int low = most - dearest * (p - 1 - k), high = dearest * (k + 1);
        double *was = now;

        low = low > 0 ? low : 0;
        high = high < most ? high : most;
        for (int c = low; c <= high; c++)
            next[c] = -INFINITY;
        for (int j = 0; j < kinds; j++)
            for (int c = low > price[j] ? low : price[j]; c <= high && gain[j] >= 0.0;
                 c++)
                next[c] = larger (next[c], now[c - price[j]] + gain[j]);
        for (int c = high + 1; c <= most && c <= high + dearest; c++)
            next[c] = next[high];
        now = next;
        next = was;
    }
    return now[most];
}
