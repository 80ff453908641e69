/* Runs of stages in a row on one node, each as long as it can be: two runs that fit one node
 * together cross at a boundary more than need be.  Stage 0's run may go round, with stages
 * at both ends of the pipeline. */
#include "mapper/bound_cuts.h"

struct runs {
    int per_node, beside;
    uint64_t *sets;
    int n; /* beyond CUTS_MAX: too many */
};

/* Add a set unless it has all of another; those that have all of it go. */
static void add (struct runs *r, uint64_t set)
{
    int kept = 0;

    if (r->n > CUTS_MAX)
        return;
    for (int i = 0; i < r->n; i++)
        if ((r->sets[i] & ~set) == 0)
            return;
    for (int i = 0; i < r->n; i++)
        if ((set & ~r->sets[i]) != 0)
            r->sets[kept++] = r->sets[i];
    r->n = kept;
    if (r->n == CUTS_MAX) {
        r->n = CUTS_MAX + 1;
        return;
    }
    r->sets[r->n++] = set;
}

/* The runs from stage `at` to stage `end` - 1; `before` are on the node of the stage before,
 * which has room for `room`. */
static void from (struct runs *r, int at, int end, int before, int room, uint64_t set)
{
    if (at == end) {
        add (r, set);
        return;
    }
    for (int run = 1; run <= r->per_node && at + run <= end && r->n <= CUTS_MAX; run++)
        if (before + run > room)
            from (r, at + run, end, run, r->per_node,
                  set | UINT64_C (1) << (at + run - 1));
}

/* With `first` stages on stage 0's node, and `last` at the other end. */
static void with_ends (struct runs *r, int stages, int first, int last)
{
    if (first + last == stages)
        add (r, 0);
    else
        from (r, first, stages - last, first + last, r->beside,
              UINT64_C (1) << (first - 1));
}

int bound_cuts (int stages, bool round, int per_node, int beside, uint64_t *sets)
{
    struct runs r = {per_node, beside, sets, 0};

    if (stages > CUTS_STAGES)
        return 0;
    for (int first = 1; first <= beside && first <= stages; first++)
        for (int last = 0; first + last <= beside && first + last <= stages; last++)
            if (last == 0 || round)
                with_ends (&r, stages, first, last);
    for (int i = 0; i < r.n && i < CUTS_MAX && !round; i++)
        sets[i] &= ~(UINT64_C (1) << (stages - 1));
    return r.n > CUTS_MAX ? 0 : r.n;
}
