/* What the coordinator tells: its progress, faults, and what nobody was waiting for. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "bwprobe/coordinator_private.h"

/* Without a terminal, how often a line says how far the run is. */
#define SAY_S 20.0

double coordinator_elapsed (const struct coordinator *c)
{
    return clock_s () - c->begun_s;
}

static void say (struct coordinator *c, const char *fmt, va_list ap)
{
    progress_end (&c->progress);
    fputs ("bwprobe: ", stderr);
    vfprintf (stderr, fmt, ap);
    fputc ('\n', stderr);
}

void coordinator_say (struct coordinator *c, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    say (c, fmt, ap);
    va_end (ap);
}

void coordinator_fault (struct coordinator *c, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    say (c, fmt, ap);
    va_end (ap);
    if (!array_grow (&c->fault, c->n_faults, sizeof *c->fault))
        return;
    va_start (ap, fmt);
    vsnprintf (c->fault[c->n_faults++], sizeof *c->fault, fmt, ap);
    va_end (ap);
}

void coordinator_show (struct coordinator *c)
{
    double now = clock_s ();
    long rounds = c->rounds_all - c->rounds_done;
    char left[96] = ""; /* while nobody can know */

    if (c->progress.on ? now - c->progress.last_s < 0.1 : now - c->said_s < SAY_S)
        return;
    if (rounds > 0) {
        int s = (int) (c->plan.seconds * (double) rounds / (double) c->rounds_all);

        snprintf (left, sizeof left, ", %ld of %ld rounds, %d:%02d left", c->rounds_done,
                  c->rounds_all, s / 60, s % 60);
    }
    if (c->progress.on) {
        progress_show (&c->progress, "bwprobe: %s%s", c->doing, left);
    } else {
        c->said_s = now;
        coordinator_say (c, "%s%s", c->doing, left);
    }
}

void coordinator_unexpected (struct coordinator *c, const struct roster_event *e)
{
    char byte[16];

    if (e->what == ROSTER_WAKE) {
        while (read (c->wake[0], byte, sizeof byte) > 0)
            ;
        if (!c->interrupted)
            coordinator_say (c, "interrupted: the measurements so far are written");
        c->interrupted = true;
    } else if (e->what == ROSTER_GONE) {
        const char *name = e->member->endpoint >= 0 ? c->end[e->member->endpoint].name
                                                    : e->member->hello.node;

        coordinator_fault (c, "rank %u (%s) is gone: %s", e->member->rank, name,
                           e->member->gone);
    }
}

void coordinator_check_journal (struct coordinator *c)
{
    if (!c->journal || !journal_trouble (c->journal) || c->journal_told)
        return;
    c->journal_told = true;
    coordinator_fault (c, "%s.part: %s: the latest measurements are not on disk",
                       c->set.output, journal_trouble (c->journal));
}
