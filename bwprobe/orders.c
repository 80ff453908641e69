/* A rank carries out what rank 0 asks. */
#include "bwprobe/station.h"

#include <stdio.h>
#include <string.h>

#include "bwprobe/cuda.h"
#include "bwprobe/transport.h"

/* No message is larger (--max-size), nor smaller than what a size is rounded to. */
#define MOST_BYTES ((uint64_t) 65536 << 20)
#define LEAST_BYTES 16384

static bool is_welcome (const struct station *s, const struct msg_welcome *how)
{
    return wire_good (&s->order) && !s->transport && how->max_bytes >= LEAST_BYTES &&
           how->max_bytes <= MOST_BYTES;
}

static enum status do_welcome (struct station *s, struct error *err)
{
    struct msg_opened opened = {.ok = 0};
    struct msg_welcome how;
    struct error why = {""};
    int gpus = cuda_gpus (NULL);

    messages_welcome (&s->order, &how);
    if (!is_welcome (s, &how))
        return err_set (err, ST_IO, "rank 0 sent a broken order");
    s->how = how;
    s->transport = transport_find (s->how.transport);
    if (!s->transport)
        return err_set (err, ST_IO, "rank 0 asked for a transport that this rank lacks");
    if (gpus > 0)
        cuda_describe ((int) s->how.local % gpus, &opened.gpu);
    opened.ok = s->transport->open (s, &opened, &why) == ST_OK;
    snprintf (opened.reason, sizeof opened.reason, "%.*s", MESSAGES_REASON - 1, why.text);
    return STATION_TELL (s, MSG_OPENED, messages_opened, &opened, err);
}

static enum status do_parent (struct station *s, struct error *err)
{
    struct msg_parent parent;
    struct msg_parent_done done = {.ok = 0};
    struct error why = {""};
    enum status st = ST_OK;

    messages_parent (&s->order, &parent);
    if (!wire_good (&s->order) || !s->state || !s->transport->parent)
        return err_set (err, ST_IO, "rank 0 asked for a parent where there is none");
    done.generation = parent.generation;
    s->seq = STATION_PARENT | parent.generation;
    s->aborted = false;
    if (parent.make_id)
        st = s->transport->make_id (s, done.id, &why);
    else
        st = s->transport->parent (s, &parent, &why);
    done.ok = st == ST_OK;
    s->seq = 0;
    snprintf (done.reason, sizeof done.reason, "%.*s", MESSAGES_REASON - 1, why.text);
    return STATION_TELL (s, MSG_PARENT_DONE, messages_parent_done, &done, err);
}

static enum status do_run (struct station *s, struct error *err)
{
    struct msg_run run;
    struct msg_result result;

    messages_run (&s->order, &run);
    if (!wire_good (&s->order) || !s->state || run.seq == 0)
        return err_set (err, ST_IO, "rank 0 sent a broken order");
    /* Words for this order may have come before it: none does, since rank 0 waits. */
    s->seq = run.seq;
    s->aborted = s->collective = false;
    s->gone = 0;
    probe_run (s, &run, &result);
    result.collective = s->collective;
    result.refused = s->door.refused;
    memcpy (result.refused_from, s->door.refused_from, sizeof result.refused_from);
    s->door.refused = 0;
    s->seq = 0;
    s->aborted = false;
    return STATION_TELL (s, MSG_RESULT, messages_result, &result, err);
}

static enum status do_compute (struct station *s, struct error *err)
{
    struct msg_compute order;
    struct msg_computed done = {.ok = 0};
    struct error why = {""};
    int gpus = cuda_gpus (&why);

    messages_compute (&s->order, &order);
    if (!wire_good (&s->order))
        return err_set (err, ST_IO, "rank 0 sent a broken order");
    if (gpus > 0)
        done.ok =
            cuda_compute ((int) s->how.local % gpus, order.all, &done, &why) == ST_OK;
    if (done.ok && order.all &&
        attention_measure ((int) s->how.local % gpus, &done, &why) == ST_OK)
        why.text[0] = '\0';
    snprintf (done.reason, sizeof done.reason, "%.*s", MESSAGES_REASON - 1, why.text);
    return STATION_TELL (s, MSG_COMPUTED, messages_computed, &done, err);
}

enum status orders_work (struct station *s, struct error *err)
{
    for (;;) {
        enum status st = station_await_order (s, err);

        if (st != ST_OK || s->bye)
            return st;
        s->has_order = false;
        switch (s->order.type) {
        case MSG_WELCOME:
            TRY (do_welcome (s, err));
            break;
        case MSG_PARENT:
            TRY (do_parent (s, err));
            break;
        case MSG_RUN:
            TRY (do_run (s, err));
            break;
        case MSG_COMPUTE:
            TRY (do_compute (s, err));
            break;
        default:
            break;
        }
    }
}
