/* One order.  The sender of a direction decides what comes next and announces it on the side
 * connection, so that slow and fast links take the same time; the receiver follows.
 *
 * Sizes.  The largest message takes about a twentieth of the time that a direction has, the
 * others a half and a quarter of it: three points of a line whose slope is the bandwidth,
 * whatever a message costs besides its bytes.  The latency is half of a short round trip.
 *
 * Messages of one size follow each other, and the first of them is thrown away: what a rate
 * limiter or a buffer lets through at once, it takes from the message after, so that only
 * messages after their like take the time that their bytes take.
 */
#include "bwprobe/station.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/progress.h"
#include "base/rng.h"
#include "base/stats.h"
#include "bwprobe/transport.h"

enum {
    SHORT_BYTES = 8,
    SHORT_MAX = 64, /* round trips for the latency */
    SIZES = 3,      /* of the line */
    LIKE = 4,       /* messages of one size after each other, the first for nothing */
    FIRST_BYTES = 65536, /* first guess at a size */
    CHECK_BYTES = 1 << 20,
    SAMPLES_MAX = 4096
};

/* Of a direction's time: one largest message; what is thrown away at its beginning when
 * others start at the same moment, and what may run over its end. */
#define MESSAGE_SHARE 0.06
#define HEAD_SHARE 0.15
#define TAIL_SHARE 0.1
/* Round trips of short messages take at most this part of it. */
#define SHORT_SHARE 0.1
/* A median absolute deviation above this part of the median is noise; it is met with so many
 * more streams at most. */
#define NOISE 0.01
enum { LONGER = 3 };

/* Bytes that differ from message to message and tell where they stand. */
static void pattern (const struct station *s, int direction, unsigned char *data,
                     size_t n)
{
    struct rng r = {(uint64_t) s->seq << 1 | (uint64_t) direction};

    for (size_t i = 0; i < n; i += 8) {
        uint64_t x = rng_next (&r);

        memcpy (data + i, &x, n - i < 8 ? n - i : 8);
    }
}

static enum status tell (struct station *s, const struct pair *p, enum side_what what,
                         size_t bytes, int count, struct error *err)
{
    struct side_note note = {.what = what, .count = (uint32_t) count, .bytes = bytes};
    unsigned char out[SIDE_NOTE];

    side_note_write (&note, out);
    return station_write (s, p->side, out, sizeof out, err);
}

static enum status hear (struct station *s, const struct pair *p, struct side_note *note,
                         struct error *err)
{
    unsigned char in[SIDE_NOTE];

    TRY (station_read (s, p->side, in, sizeof in, err));
    return side_note_read (in, note)
               ? ST_OK
               : err_set (err, ST_IO, "the partner sent a broken note");
}

/* ---- the sender ---- */

struct samples {
    double bytes[SAMPLES_MAX], seconds[SAMPLES_MAX];
    int n;
};

/* Announce and send messages of one size.  @param[out] seconds [count] */
static enum status block (struct station *s, const struct pair *p, size_t bytes,
                          int count, double *seconds, struct error *err)
{
    TRY (tell (s, p, SIDE_BLOCK, bytes, count, err));
    return s->transport->send (s, p, bytes, count, seconds, err);
}

/* Half of a short round trip, after some that warm the connection up. */
static enum status measure_latency (struct station *s, const struct pair *p,
                                    double time_s, double *latency_s, struct error *err)
{
    double t[SHORT_MAX];
    int n;

    TRY (block (s, p, SHORT_BYTES, 4, t, err));
    n = (int) fmin (SHORT_MAX, fmax (5, SHORT_SHARE * time_s / t[3]));
    TRY (block (s, p, SHORT_BYTES, n, t, err));
    *latency_s = 0.5 * stats_median (t, n);
    return ST_OK;
}

static size_t whole_size (double bytes, uint64_t most)
{
    /* A multiple of 4 pages, so that halves and quarters are whole pages. */
    double x = fmin (fmax (bytes, 16384), (double) most);

    return (size_t) x / 16384 * 16384;
}

/* The size that takes MESSAGE_SHARE of the time; what is sent meanwhile also brings the
 * connection to its full rate. */
static enum status find_size (struct station *s, const struct pair *p, double time_s,
                              double latency_s, size_t *bytes, struct error *err)
{
    double target = MESSAGE_SHARE * time_s, t = 0;
    size_t size = whole_size (FIRST_BYTES, s->how.max_bytes);

    for (int tries = 0; tries < 8; tries++) {
        size_t next;

        TRY (block (s, p, size, 1, &t, err));
        t = fmax (t - latency_s, 1e-9);
        next = whole_size (fmin (target / t * (double) size, 16.0 * (double) size),
                           s->how.max_bytes);
        if (next <= size + size / 2) {
            size = next;
            break;
        }
        size = next;
    }
    *bytes = size;
    return ST_OK;
}

/* Messages of the three sizes in turn until the time is over and there are enough of them;
 * samples are appended. */
static enum status stream (struct station *s, const struct pair *p, double time_s,
                           bool together, size_t largest, struct samples *out,
                           struct error *err)
{
    double start = clock_s (), head = together ? HEAD_SHARE * time_s : 0,
           tail = together ? (1 + TAIL_SHARE) * time_s : INFINITY;
    int had = out->n;

    while ((clock_s () - start < time_s || out->n - had < SIZES * LIKE) &&
           out->n + SIZES * LIKE <= SAMPLES_MAX) {
        for (int k = 0; k < SIZES; k++) {
            size_t size = largest >> k;
            double begun = clock_s () - start, t[LIKE];

            TRY (block (s, p, size, LIKE, t, err));
            if (begun < head || (clock_s () - start > tail && out->n >= SIZES * LIKE))
                continue;
            for (int i = 1; i < LIKE; i++) {
                out->bytes[out->n] = (double) size;
                out->seconds[out->n++] = t[i];
            }
        }
    }
    return ST_OK;
}

/* One message whose content the receiver compares.  @param data  [n], is overwritten */
static enum status send_check (struct station *s, const struct pair *p, int direction,
                               unsigned char *data, size_t n, struct error *err)
{
    struct side_note answer;
    double t;

    pattern (s, direction, data, n);
    TRY (s->transport->load (s, data, n, err));
    TRY (tell (s, p, SIDE_CHECK, n, 1, err));
    TRY (s->transport->send (s, p, n, 1, &t, err));
    TRY (hear (s, p, &answer, err));
    return answer.what == SIDE_ANSWER && answer.count == 1
               ? ST_OK
               : err_set (err, ST_IO, "the data arrived changed (checksum)");
}

static enum status check (struct station *s, const struct pair *p, int direction,
                          size_t largest, struct error *err)
{
    size_t n = largest < CHECK_BYTES ? largest : CHECK_BYTES;
    unsigned char *data = malloc (n);
    enum status st = data ? send_check (s, p, direction, data, n, err) : err_nomem (err);

    free (data);
    return st;
}

/* What a message took beside a short one's way there and back.  Where that is nearly all of it,
 * as where two processes take turns on one GPU, the rest is noise. */
#define REST_MIN 0.1
static double sending_s (const struct samples *v, int i, double latency_s)
{
    return fmax (fmax (v->seconds[i] - 2 * latency_s, REST_MIN * v->seconds[i]), 1e-9);
}

/* Amid others a rate changes while they come and go: what was moved over the time it took. */
static double mean_rate (const struct samples *v, double latency_s)
{
    double bytes = 0, seconds = 0;

    for (int i = 0; i < v->n; i++) {
        bytes += v->bytes[i];
        seconds += sending_s (v, i, latency_s);
    }
    return bytes / seconds;
}

/* The line through the samples; where it has no slope, the largest messages' rate. */
static void fit (const struct samples *v, double latency_s, struct msg_result *r)
{
    struct stats_line line = stats_fit_line (v->bytes, v->seconds, v->n);
    double rate[SAMPLES_MAX], largest = 0;
    int n = 0;

    r->latency_s = latency_s;
    r->residual = line.residual;
    r->bytes_per_s = line.groups >= 2 && line.slope > 0 ? 1 / line.slope : NAN;
    for (int i = 0; i < v->n; i++)
        largest = fmax (largest, v->bytes[i]);
    for (int i = 0; i < v->n; i++)
        if (v->bytes[i] >= largest)
            rate[n++] = v->bytes[i] / sending_s (v, i, latency_s);

    /* A slope far from what the large messages reach is noise, not the link. */
    double plain = stats_median (rate, n);

    if (!(r->bytes_per_s < 1.5 * plain && r->bytes_per_s > 0.67 * plain))
        r->bytes_per_s = plain;
}

/* Wait for rank 0's GO of this direction. */
static enum status wait_for_go (struct station *s, const struct msg_run *run,
                                int direction, struct error *err)
{
    struct msg_seq ready = {.seq = run->seq, .direction = (uint8_t) direction};
    double deadline = clock_s () + 4 * s->how.timeout_s;

    TRY (STATION_TELL (s, MSG_READY, messages_seq, &ready, err));
    while (s->gone <= direction) {
        if (clock_s () > deadline)
            return err_set (err, ST_IO, "rank 0 never said go");
        TRY (station_pause (s, -1, 0.05, err));
    }
    return ST_OK;
}

/* Do the largest messages' times scatter, as they do where a processor is late? */
static bool is_noisy (const struct samples *v, size_t largest)
{
    double t[SAMPLES_MAX];
    struct stats_spread s;
    int n = 0;

    for (int i = 0; i < v->n; i++)
        if (v->bytes[i] >= (double) largest)
            t[n++] = v->seconds[i];
    s = stats_spread_of (t, n);
    return s.mad > NOISE * s.median;
}

/* @param[out] v  room for the samples */
static enum status send_direction (struct station *s, const struct pair *p, int direction,
                                   struct samples *v, struct msg_result *r,
                                   struct error *err)
{
    bool together = p->run->kind == RUN_TOGETHER;
    double time_s = together ? s->how.together_s : s->how.alone_s, latency_s;
    size_t largest;

    TRY (measure_latency (s, p, time_s, &latency_s, err));
    TRY (find_size (s, p, time_s, latency_s, &largest, err));
    if (p->run->bytes > 0 && p->run->bytes < largest)
        largest = whole_size ((double) p->run->bytes, s->how.max_bytes);
    if (together)
        TRY (wait_for_go (s, p->run, direction, err));
    v->n = 0;
    /* Alone, what is noisy is measured longer; together, everybody measures for the same time. */
    for (int i = 0; i == 0 || (i <= LONGER && !together && is_noisy (v, largest)); i++)
        TRY (stream (s, p, time_s, together, largest, v, err));
    TRY (check (s, p, direction, largest, err));
    TRY (tell (s, p, SIDE_END, 0, 0, err));
    fit (v, latency_s, r);
    if (together)
        r->bytes_per_s = mean_rate (v, latency_s);
    r->measured = 1;
    return ST_OK;
}

/* ---- the receiver ---- */

static enum status answer_check (struct station *s, const struct pair *p, int direction,
                                 size_t n, struct error *err)
{
    unsigned char *got = malloc (2 * n + 1), *wanted = got ? got + n : NULL;
    enum status st = got ? s->transport->unload (s, got, n, err) : err_nomem (err);
    bool same = false;

    if (st == ST_OK) {
        pattern (s, direction, wanted, n);
        same = memcmp (got, wanted, n) == 0;
        st = tell (s, p, SIDE_ANSWER, 0, same, err);
    }
    free (got);
    return st != ST_OK || same
               ? st
               : err_set (err, ST_IO, "the data arrived changed (checksum)");
}

static enum status receive_direction (struct station *s, const struct pair *p,
                                      int direction, struct error *err)
{
    bool together = p->run->kind == RUN_TOGETHER;

    for (;;) {
        struct side_note note;

        /* In a round with others, the sender may be waiting for the slowest of them. */
        if (together)
            TRY (station_wait (s, p->side, POLLIN, clock_s () + 5 * s->how.timeout_s,
                               err));
        TRY (hear (s, p, &note, err));
        if (note.what == SIDE_END)
            return ST_OK;
        if ((note.what != SIDE_BLOCK && note.what != SIDE_CHECK) || note.count < 1 ||
            note.bytes < 1 || note.bytes > s->how.max_bytes)
            return err_set (err, ST_IO, "the partner sent a broken note");
        TRY (s->transport->recv (s, p, note.bytes, (int) note.count, err));
        if (note.what == SIDE_CHECK)
            TRY (answer_check (s, p, direction, note.bytes, err));
    }
}

/* ---- the order ---- */

static void failed (struct msg_result *r, int direction, const struct error *why)
{
    r->ok[direction] = 0;
    snprintf (r->reason[direction], sizeof r->reason[direction], "%.*s",
              MESSAGES_REASON - 1, why->text);
}

void probe_run (struct station *s, const struct msg_run *run, struct msg_result *result)
{
    struct pair p = {.run = run, .side = -1};
    struct net_greeting from = {
        .purpose = NET_SIDE, .seq = run->seq, .from = run->partner};
    double deadline = clock_s () + s->how.timeout_s;
    struct error why = {""};
    struct samples *v;
    enum status st;
    int done = 0;

    *result = (struct msg_result){.seq = run->seq};
    if (run->kind == RUN_SIT_OUT) {
        st = s->transport->sit_out ? s->transport->sit_out (s, &why) : ST_OK;
        result->ok[0] = result->ok[1] = st == ST_OK;
        for (int k = 0; k < 2 && st != ST_OK; k++)
            failed (result, k, &why);
        return;
    }
    v = malloc (sizeof *v);
    st = v ? ST_OK : err_nomem (&why);
    THEN (st, run->lead ? station_knock (s, &run->door, NET_SIDE, deadline, &p.side, &why)
                        : station_admit (s, &from, deadline, &p.side, &why));
    THEN (st, s->transport->connect (s, &p, &why));
    for (; done < 2 && st == ST_OK; done++) {
        bool sends = done == (run->lead ? 0 : 1);

        st = sends ? send_direction (s, &p, done, v, result, &why)
                   : receive_direction (s, &p, done, &why);
        if (st != ST_OK)
            break;
        result->ok[done] = 1;
    }
    free (v);
    for (int k = done; k < 2 && st != ST_OK; k++)
        failed (result, k, &why);
    s->transport->disconnect (s, st != ST_OK);
    if (p.side >= 0)
        close (p.side);
}
