/* Counters of network ports and NVLinks: their names, and by how much they may grow. */
#ifndef TOPOLOGY_COUNTERS_H
#define TOPOLOGY_COUNTERS_H

/** One kind of counter. */
struct topology_counter {
    const char *name;      /* in `measured.counters[].counts` */
    const char *spellings; /* as tools print it, one blank between them */
    /* A counter that grows by more between two readings accuses its link; by that much a
     * second with `per_second`.  Infinite: it tells of traffic, not of a fault. */
    double allowed;
    int per_second;
};

/** The counter that a tool names so, or that files name so; NULL: none. */
const struct topology_counter *topology_counter_spelled (const char *spelling);
const struct topology_counter *topology_counter_named (const char *name);

/** How far it may grow in that time and accuse nobody. */
double topology_counter_allowed (const struct topology_counter *c, double seconds);

#endif
