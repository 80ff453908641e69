/* A cluster drawn over many days, as links files and counters files: links drift, some fail
 * for good on some day, other traffic disturbs single measurements. */
#ifndef TESTS_LIB_DAYS_H
#define TESTS_LIB_DAYS_H

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"

#define DAYS_NODES 16

/** What happens; rates are of GB/s between nodes. */
struct days_weather {
    double noise;      /* sd of one measurement */
    double drift;      /* sd of a link's change from day to day */
    double collisions; /* part of the measurements at half of the rate */
    double covered;    /* part of the links that a day measures */
    int failing; /* nodes whose network card falls to half, on some day; counters tell */
    int late;    /* more of them, on the last day */
    int broken;  /* pairs that fall to 0.3, on some day; no counter tells */
};

struct days {
    struct days_weather weather;
    struct rng rng;
    int day;                             /* 0 before the first */
    double rate[DAYS_NODES][DAYS_NODES]; /* of the day */
    int fails[DAYS_NODES];               /* on which day; 0: never */
    int breaks[DAYS_NODES][DAYS_NODES];
    long errors[DAYS_NODES]; /* counted so far */
};

static inline double days_normal (struct rng *r)
{
    return sqrt (-2 * log (1 - rng_unit (r))) * cos (2 * M_PI * rng_unit (r));
}

/** @param[in] last  faults come on days 2 to last, the newest that is measured */
static inline struct days days_begin (struct days_weather weather, int last,
                                      unsigned long seed)
{
    struct days d = {.weather = weather, .rng = {seed}};

    for (int i = 0; i < DAYS_NODES; i++)
        for (int j = 0; j < DAYS_NODES; j++)
            d.rate[i][j] = 48 * exp (0.034 * days_normal (&d.rng));
    for (int k = 0; k < weather.failing; k++)
        d.fails[rng_below (&d.rng, DAYS_NODES)] = 2 + rng_below (&d.rng, last - 1);
    for (int k = 0; k < weather.late; k++)
        d.fails[rng_below (&d.rng, DAYS_NODES)] = last;
    for (int k = 0; k < weather.broken; k++)
        d.breaks[rng_below (&d.rng, DAYS_NODES)][rng_below (&d.rng, DAYS_NODES)] =
            2 + rng_below (&d.rng, last - 1);
    return d;
}

/** The next day: the true rates, and the counters at its end. */
static inline void days_next (struct days *d)
{
    d->day++;
    for (int i = 0; i < DAYS_NODES; i++) {
        bool failed = d->fails[i] && d->day >= d->fails[i];

        d->errors[i] += rng_below (&d->rng, failed ? 1000 : 4) + (failed ? 50 : 0);
        for (int j = 0; j < DAYS_NODES; j++) {
            d->rate[i][j] *= exp (d->weather.drift * days_normal (&d->rng));
            if (d->day == d->fails[i] || d->day == d->fails[j])
                d->rate[i][j] *= 0.5;
            if (d->day == d->breaks[i][j])
                d->rate[i][j] *= 0.3;
        }
    }
}

/* Noon of the day, as files have it. */
static inline json_t *days_when (const struct days *d)
{
    time_t at = 1767268800 + 86400 * (time_t) d->day; /* from 2026-01-01 */
    struct tm utc;
    char when[32];

    strftime (when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r (&at, &utc));
    return json_string (when);
}

/** A cluster file of what was seen on the day, or of what is true. */
static inline json_t *days_links (struct days *d, int gpus, bool truth)
{
    json_t *nodes = json_array (), *rows = json_array ();

    for (int i = 0; i < DAYS_NODES; i++) {
        json_t *row = json_array ();
        char name[16];

        snprintf (name, sizeof name, "n%d", i);
        json_array_append_new (nodes, json_pack ("{s:s, s:i, s:s}", "name", name, "gpus",
                                                 gpus, "gpu_type", "h100-sxm5-80g"));
        for (int j = 0; j < DAYS_NODES; j++) {
            double x = d->rate[i][j] * exp (d->weather.noise * days_normal (&d->rng)),
                   met = rng_unit (&d->rng), seen = rng_unit (&d->rng);

            x = truth ? d->rate[i][j] : met < d->weather.collisions ? x / 2 : x;
            json_array_append_new (row, i == j || (!truth && seen >= d->weather.covered)
                                            ? json_null ()
                                            : json_real (x));
        }
        json_array_append_new (rows, row);
    }
    return json_pack ("{s:i, s:o, s:{s:{s:i, s:i}, s:{s:o, s:i}}, s:{s:o}}", "version", 1,
                      "nodes", nodes, "links", "intra", "bandwidth_gb_per_s", 370,
                      "latency_us", 8, "inter", "bandwidth_gb_per_s", rows, "latency_us",
                      12, "measured", "when", days_when (d));
}

/** The counters of the day. */
static inline json_t *days_counters (const struct days *d)
{
    json_t *list = json_array ();

    for (int i = 0; i < DAYS_NODES; i++) {
        char name[16];

        snprintf (name, sizeof name, "n%d", i);
        json_array_append_new (
            list, json_pack ("{s:s, s:s, s:{s:I}}", "node", name, "port", "mlx5_0/1",
                             "counts", "symbol_error", (json_int_t) d->errors[i]));
    }
    return json_pack ("{s:i, s:[], s:{}, s:{s:o, s:o}}", "version", 1, "nodes", "links",
                      "measured", "when", days_when (d), "counters", list);
}

/** Draw that many days into FOLDER/N.json and FOLDER/cN.json, and go on to the next.
 *  @return false where a file cannot be written */
static inline bool days_write (struct days *d, int days, int gpus, const char *dir)
{
    bool good = true;

    for (int k = 1; k <= days; k++) {
        char path[256];
        json_t *links, *counters;

        days_next (d);
        links = days_links (d, gpus, false);
        counters = days_counters (d);
        snprintf (path, sizeof path, "%s/%d.json", dir, k);
        good = good && json_dump_file (links, path, 0) == 0;
        snprintf (path, sizeof path, "%s/c%d.json", dir, k);
        good = good && json_dump_file (counters, path, 0) == 0;
        json_decref (links);
        json_decref (counters);
    }
    days_next (d);
    return good;
}

#endif
