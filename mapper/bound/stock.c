#include "mapper/bound/stock.h"

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
    for (int c = 0; c <= most; c++)
        work[c] = 0.0;
    for (int k = 0; k < p; k++, gain += KINDS_MAX)
        for (int c = most; c >= 0; c--) {
            double best = -1.0;

            for (int j = 0; j < kinds; j++)
                if (price[j] <= c && gain[j] >= 0.0 && work[c - price[j]] >= 0.0 &&
                    work[c - price[j]] + gain[j] > best)
                    best = work[c - price[j]] + gain[j];
            work[c] = best;
        }
    return work[most];
}
