/* The run from its beginning to its end. */
#include "bwprobe/coordinator.h"

#include <math.h>
#include <stdio.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "bwprobe/preflight.h"

/* Nobody needs longer to leave. */
#define LEAVE_S 3.0
/* A connection that is silent for so long is dead, though nobody closed it; where the user's
 * time-out is short, twice that. */
#define SILENCE_S 6.0
#define SILENCE_MIN_S 3.0

/* A connection a rank, and the ranks' own: more than a shell usually allows. */
static enum status allow_connections (int size, struct error *err)
{
    rlim_t need = (rlim_t) size + 256;
    struct rlimit l;

    if (getrlimit (RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= need)
        return ST_OK;
    if (l.rlim_max != RLIM_INFINITY && l.rlim_max < need)
        return err_set (
            err, ST_IO,
            "%d ranks need %llu open files, and the limit is %llu (ulimit -n)", size,
            (unsigned long long) need, (unsigned long long) l.rlim_max);
    l.rlim_cur = need;
    return setrlimit (RLIMIT_NOFILE, &l) == 0
               ? ST_OK
               : err_set (err, ST_IO, "the limit on open files cannot be raised");
}

enum status coordinator_create (const struct coordinator_settings *set, int size,
                                struct net_place *place, const struct net_token *token,
                                struct coordinator **out, struct error *err)
{
    struct coordinator *c = calloc (1, sizeof *c);
    double silence_s =
        set->timeout_s > 0 ? fmax (SILENCE_MIN_S, 2 * set->timeout_s) : SILENCE_S;
    enum status st = ST_OK;

    if (!c)
        return err_nomem (err);
    c->set = *set;
    c->rng = (struct rng){set->seed};
    c->wake[0] = c->wake[1] = -1;
    if (pipe2 (c->wake, O_CLOEXEC | O_NONBLOCK) != 0)
        st = err_set (err, ST_IO, "no pipe");
    THEN (st, allow_connections (size, err));
    THEN (st, roster_create (place, token, size, fmin (silence_s, SILENCE_S), c->wake[0],
                             &c->roster, err));
    if (st != ST_OK) {
        coordinator_destroy (c);
        return st;
    }
    *out = c;
    return ST_OK;
}

void coordinator_destroy (struct coordinator *c)
{
    if (!c)
        return;
    roster_destroy (c->roster);
    results_release (&c->results);
    journal_close (c->journal, false);
    preflight_destroy (c->preflight);
    for (int k = 0; k < 2; k++)
        if (c->wake[k] >= 0)
            close (c->wake[k]);
    FREE_ALL (c->end, c->node, c->first, c->stride, c->done, c->fault, c);
}

void coordinator_interrupt (struct coordinator *c)
{
    /* A full pipe has said it already. */
    ssize_t n = write (c->wake[1], "", 1);

    (void) n;
}

/* ---- the journal ---- */

static bool keeps_journal (const struct coordinator *c)
{
    return strcmp (c->set.output, "-") != 0 && !c->set.dry_run && !c->set.plan;
}

static enum status begin_journal (struct coordinator *c, struct error *err)
{
    const char **name;
    struct journal_run run;
    struct notes notes = {.n = 0};
    enum status st;

    if (!keeps_journal (c))
        return ST_OK;
    if (!(name = calloc ((size_t) c->shape.n + 1, sizeof *name)))
        return err_nomem (err);
    for (int i = 0; i < c->shape.n; i++)
        name[i] = c->end[i].name;
    run = (struct journal_run){.transport = c->transport->name,
                               .name = name,
                               .n = c->shape.n,
                               .resume = c->set.resume,
                               .take = passes_take,
                               .context = c};
    st = journal_open (c->set.output, &run, &c->journal, &notes, err);
    for (int i = 0; i < notes.n; i++)
        coordinator_say (c, "%s", notes.line[i]);
    notes_free (&notes);
    free (name);
    if (st == ST_OK && c->set.resume)
        coordinator_say (c,
                         run.taken > 0
                             ? "%ld values of the earlier run are reused"
                             : "nothing to resume from (%ld values): starting anew",
                         run.taken);
    return st;
}

/* ---- the end ---- */

/* Whether an earlier fault or a failed pair leaves the record with holes. */
static bool anything_failed (const struct coordinator *c)
{
    if (c->n_faults > 0)
        return true;
    for (size_t i = 0; i < c->results.n; i++) {
        const struct results_pair *p = &c->results.pair[i];

        if (p->failures > 0 && p->n[RESULTS_ALONE] == 0)
            return true;
    }
    return false;
}

/* Everybody leaves, this process's own rank too. */
static void say_goodbye (struct coordinator *c, const struct coordinator_outcome *out)
{
    /* Ranks that measured what falls short have done their part: a launcher that ends a job at
     * a rank's failure must leave rank 0 the time to tell. */
    bool failed = out->exit_code != PREFLIGHT_SHORT;
    struct msg_bye bye = {.exit_code = failed ? (uint32_t) out->exit_code : 0,
                          .faults = out->faults};
    double deadline = clock_s () + LEAVE_S;
    int size = roster_size (c->roster), here = 0;

    for (int i = 0; i < size; i++) {
        struct member *m = roster_member (c->roster, i);

        ROSTER_TELL (c->roster, m, MSG_BYE, messages_bye, &bye);
        here += m->state == MEMBER_HERE;
    }
    /* Rank 0's process is the last to go: its launcher may end the job with it. */
    while (here > 0) {
        struct roster_event e = roster_next (c->roster, deadline);

        if (e.what == ROSTER_NOTHING)
            break;
        here -= e.what == ROSTER_GONE;
        if (e.what == ROSTER_WAKE)
            coordinator_unexpected (c, &e);
    }
}

static struct coordinator_outcome write_down (struct coordinator *c)
{
    struct estimate_tier tier[ESTIMATE_TIERS];
    struct error err = {""};
    bool complete = !c->interrupted && !anything_failed (c);
    enum status st = estimate_try (c, tier, &err);

    progress_end (&c->progress);
    if (st == ST_OK) {
        st = links_write (c,
                          complete         ? "complete"
                          : c->interrupted ? "interrupted"
                                           : "faults",
                          tier, &err);
        if (st == ST_OK)
            report_print (c, tier);
        estimate_release (tier);
    }
    if (st == ST_OK) {
        journal_close (c->journal, complete);
        c->journal = NULL;
        if (!complete && keeps_journal (c) && c->shape.n > 1)
            coordinator_say (c,
                             "the same command with --resume measures what is missing");
    } else {
        coordinator_fault (c, "%s", err.text);
        if (c->journal) {
            journal_flush (c->journal);
            coordinator_check_journal (c);
            coordinator_say (c,
                             "the measurements so far are in %s.part: --resume continues",
                             c->set.output);
        }
    }
    complete = complete && st == ST_OK;
    return (struct coordinator_outcome){.exit_code = !complete, .faults = !complete};
}

static struct coordinator_outcome measure (struct coordinator *c)
{
    struct error err = {""};
    struct coordinator_outcome out;
    bool pairs = !c->preflight && c->shape.n > 1;
    enum status st = begin_journal (c, &err);

    if (st == ST_OK && coordinator_computes (&c->set) && !c->interrupted)
        gather_compute (c);
    if (st == ST_OK && c->preflight)
        st = preflight_run (c, &err);
    if (st != ST_OK) {
        coordinator_fault (c, "%s", err.text);
        return (struct coordinator_outcome){1, true};
    }
    if (c->shape.n == 1 && !c->interrupted && !c->end[0].has_computed) {
        coordinator_fault (c, "nothing was measured, and no file is written");
        journal_close (c->journal, true);
        c->journal = NULL;
        return (struct coordinator_outcome){status_exit_code (ST_NOFIT), true};
    }
    if (pairs) {
        passes_prepare (c);
        passes_run (c);
    }
    if (pairs && !c->interrupted)
        suspects_run (c);
    out = write_down (c);
    /* What falls short is told where all of it was measured, and where a rank was lost. */
    if (c->preflight && !c->interrupted && c->preflight->below > 0)
        out.exit_code = PREFLIGHT_SHORT;
    return out;
}

struct coordinator_outcome coordinator_run (struct coordinator *c)
{
    struct coordinator_outcome out = {0, false};
    struct error err = {""};
    bool lost = false;
    enum status st;

    progress_start (&c->progress);
    c->said_s = c->begun_s = clock_s ();
    st = gather_ranks (c, &err);
    if (st == ST_OK && c->set.plan)
        st = preflight_prepare (c, &err);
    if (st != ST_OK) {
        coordinator_fault (c, "%s", err.text);
        out = (struct coordinator_outcome){status_exit_code (st), true};
    } else {
        /* The budget is for measuring: ranks may have come late. */
        c->begun_s = clock_s ();
        if (c->set.dry_run && c->preflight) {
            progress_end (&c->progress);
            preflight_report_plan (c, stdout);
        } else if (c->set.dry_run) {
            passes_prepare (c);
            progress_end (&c->progress);
            report_plan (c);
        } else {
            out = measure (c);
        }
    }
    progress_end (&c->progress);
    for (int i = 0; i < roster_size (c->roster); i++)
        lost |= roster_member (c->roster, i)->state == MEMBER_GONE;
    if (out.faults && lost && c->set.mpi_outlives)
        coordinator_say (c, "the remaining ranks end now; if mpirun keeps waiting for a "
                            "lost host, end it with kill -9");
    fflush (stdout);
    say_goodbye (c, &out);
    return out;
}
