/* The beginning: who is there, over which transport, on which GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "bwprobe/coordinator_private.h"
#include "topology/links_doc.h"
#include "topology/topology.h"

#define COMPUTE_S 180.0 /* for --gemm and --compute */

static void wait_for_hellos (struct coordinator *c)
{
    int size = roster_size (c->roster), come = 0;
    double deadline = clock_s () + c->set.start_s;

    while (come < size && !c->interrupted) {
        struct roster_event e =
            roster_next (c->roster, fmin (deadline, clock_s () + 0.5));

        if (e.what == ROSTER_HELLO)
            come++;
        else if (e.what == ROSTER_NOTHING && clock_s () >= deadline)
            break;
        else
            coordinator_unexpected (c, &e);
        snprintf (c->doing, sizeof c->doing, "%d of %d ranks have connected", come, size);
        coordinator_show (c);
    }
    for (int i = 0; i < size; i++) {
        struct member *m = roster_member (c->roster, i);

        if (m->state != MEMBER_ABSENT)
            continue;
        /* From here on it would be too late. */
        m->state = MEMBER_GONE;
        snprintf (m->gone, sizeof m->gone, "it did not connect within %g s",
                  c->set.start_s);
        coordinator_fault (c, "rank %d: %s", i, m->gone);
    }
}

/* ---- the transport ---- */

static enum status choose_transport (struct coordinator *c, struct error *err)
{
    const struct coordinator_settings *set = &c->set;
    const struct transport_defaults *usual;
    const char *name = set->transport;
    const struct member *cannot = NULL;
    int can = 0;

    for (int i = 0; i < roster_size (c->roster); i++) {
        const struct member *m = roster_member (c->roster, i);

        if (m->state != MEMBER_HERE)
            continue;
        if (m->hello.nccl)
            can++;
        else if (!cannot)
            cannot = m;
    }
    if (strcmp (name, "auto") == 0) {
        name = cannot ? "socket" : "nccl";
        if (cannot)
            coordinator_say (
                c,
                "measuring host memory over TCP: NCCL cannot be used on %s (rank %u): %s",
                cannot->hello.node, cannot->rank, cannot->hello.no_nccl);
    } else if (strcmp (name, "nccl") == 0 && can == 0 && cannot) {
        return err_set (err, ST_IO, "NCCL cannot be used on %s (rank %u): %s",
                        cannot->hello.node, cannot->rank, cannot->hello.no_nccl);
    }
    c->transport = transport_find (name);
    usual = &c->transport->defaults;
    c->how = (struct msg_welcome){
        .alone_s = set->measure_s > 0 ? set->measure_s : usual->alone_s,
        .together_s = set->measure_s > 0 ? 1.5 * set->measure_s : usual->together_s,
        .timeout_s = set->timeout_s > 0 ? set->timeout_s : usual->timeout_s,
        .max_bytes = set->max_bytes > 0 ? set->max_bytes : usual->max_bytes};
    snprintf (c->how.transport, sizeof c->how.transport, "%s", name);
    return ST_OK;
}

/* Wait for one message of a type from each member that is there. */
static void collect (struct coordinator *c, enum message type, double seconds,
                     const char *what,
                     void (*take) (struct coordinator *, struct member *, struct wire *))
{
    double deadline = clock_s () + seconds;
    int size = roster_size (c->roster), left = 0;

    for (int i = 0; i < size; i++) {
        roster_member (c->roster, i)->work = 0;
        left += roster_member (c->roster, i)->state == MEMBER_HERE;
    }
    while (left > 0 && !c->interrupted) {
        struct roster_event e =
            roster_next (c->roster, fmin (deadline, clock_s () + 0.5));
        bool waited_for = e.member && e.member->work == 0;

        if (e.what == ROSTER_MESSAGE && e.frame->type == type && waited_for) {
            take (c, e.member, e.frame);
        } else if (e.what == ROSTER_NOTHING && clock_s () >= deadline) {
            for (int i = 0; i < size; i++)
                if (roster_member (c->roster, i)->work == 0)
                    roster_drop (c->roster, roster_member (c->roster, i),
                                 "it did not %s within %g s", what, seconds);
        } else {
            coordinator_unexpected (c, &e);
            waited_for &= e.what == ROSTER_GONE;
        }
        if (waited_for) {
            e.member->work = -1;
            left--;
        }
        snprintf (c->doing, sizeof c->doing, "waiting for %d ranks to %s", left, what);
        coordinator_show (c);
    }
    for (int i = 0; i < size; i++)
        roster_member (c->roster, i)->work = -1;
}

static void take_opened (struct coordinator *c, struct member *m, struct wire *w)
{
    messages_opened (w, &m->opened);
    if (!wire_good (w))
        m->opened.ok = 0;
    if (!m->opened.ok)
        coordinator_fault (c, "rank %u (%s) is left out: %s", m->rank, m->hello.node,
                           m->opened.reason);
}

/* ---- nodes and endpoints ---- */

/* What makes a node: its host's name, up to the first dot as `linkwise topo` has it unless these
 * repeat, and its address where one name has several. */
static void node_key (const struct member *m, bool whole, bool by_address, char *out,
                      size_t size)
{
    char text[MESSAGES_NAME + NET_ADDRESS + 2], name[TOPOLOGY_NAME_MAX + 1];

    snprintf (text, sizeof text, by_address ? "%.*s-%s" : "%.*s",
              (int) (whole ? sizeof text : topology_host_length (m->hello.node)),
              m->hello.node, m->hello.door.address);
    topology_links_name (text, name);
    snprintf (out, size, "%s", name);
}

/* What hosts' names leave open.
 * @param[out] by_address  some name came from several addresses
 * @param[out] whole       some names differ behind the first dot alone */
static void compare_names (struct coordinator *c, bool *by_address, bool *whole)
{
    *by_address = *whole = false;
    for (int i = 0; i < roster_size (c->roster); i++)
        for (int k = 0; k < i; k++) {
            const struct member *m = roster_member (c->roster, i),
                                *other = roster_member (c->roster, k);
            const char *name = m->hello.node, *address = m->hello.door.address;
            size_t n = topology_host_length (name);

            if (!m->opened.ok || !other->opened.ok)
                continue;
            if (strcmp (name, other->hello.node) != 0) {
                *whole |= n == topology_host_length (other->hello.node) &&
                          strncmp (name, other->hello.node, n) == 0;
            } else if (!*by_address && strcmp (address, other->hello.door.address) != 0) {
                *by_address = true;
                coordinator_say (c,
                                 "the host name %s is that of %s and of %s: names of "
                                 "nodes get the address too",
                                 name, other->hello.door.address, address);
            }
        }
}

static int by_place (const void *a, const void *b)
{
    const struct endpoint *x = a, *y = b;
    const struct gpu_description *g = &x->member->opened.gpu, *h = &y->member->opened.gpu;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (strcmp (g->bus, h->bus) != 0)
        return strcmp (g->bus, h->bus);
    return x->member->rank < y->member->rank ? -1 : x->member->rank > y->member->rank;
}

/* Number a node's GPUs: as their ranks see them, or in order where these do not see all. */
static void number_gpus (struct coordinator *c, int node)
{
    int from = c->first[node], to = c->first[node + 1], most = 0;
    bool usable = true;

    for (int i = from; i < to; i++) {
        const struct member *m = c->end[i].member;

        c->end[i].gpu = (int) m->opened.gpu.index;
        most = (int) m->hello.gpus > most ? (int) m->hello.gpus : most;
        usable &= m->opened.gpu.index < TOPOLOGY_NODE_GPUS_MAX &&
                  (i == from || c->end[i].gpu > c->end[i - 1].gpu);
    }
    for (int i = from; i < to && !usable; i++)
        c->end[i].gpu = i - from;
    c->node[node].gpus = c->end[to - 1].gpu + 1;
    if (most > c->node[node].gpus && most <= TOPOLOGY_NODE_GPUS_MAX)
        c->node[node].gpus = most;
}

/* Ranks that were meant to have a GPU each: what is measured between them is no link. */
static void say_shared (struct coordinator *c)
{
    for (int i = 1; i < c->shape.n; i++) {
        const struct endpoint *e = &c->end[i], *before = e - 1;
        const char *uuid = e->member->opened.gpu.uuid;

        if (e->node != before->node || !uuid[0] ||
            strcmp (uuid, before->member->opened.gpu.uuid) != 0)
            continue;
        coordinator_say (c,
                         "ranks %u and %u are on one GPU, %s of %s: what is measured "
                         "between them is no link.  Does each rank see its own?",
                         before->member->rank, e->member->rank, uuid,
                         c->node[e->node].name);
        return;
    }
}

static enum status number_endpoints (struct coordinator *c, struct error *err)
{
    int size = roster_size (c->roster), n = 0, nodes = 0;
    bool by_address, whole;

    compare_names (c, &by_address, &whole);
    c->end = calloc ((size_t) size + 1, sizeof *c->end);
    c->node = calloc ((size_t) size + 1, sizeof *c->node);
    c->first = calloc ((size_t) size + 2, sizeof *c->first);
    if (!c->end || !c->node || !c->first)
        return err_nomem (err);
    for (int i = 0; i < size; i++) {
        struct member *m = roster_member (c->roster, i);
        char key[MESSAGES_NAME];
        int node = 0;

        if (m->state != MEMBER_HERE || !m->opened.ok)
            continue;
        node_key (m, whole, by_address, key, sizeof key);
        while (node < nodes && strcmp (c->node[node].name, key) != 0)
            node++;
        if (node == nodes)
            snprintf (c->node[nodes++].name, sizeof key, "%s", key);
        c->end[n++] = (struct endpoint){.member = m, .node = node};
    }
    if (n > 0)
        qsort (c->end, (size_t) n, sizeof *c->end, by_place);
    for (int i = 0; i < n; i++) {
        c->end[i].member->endpoint = i;
        c->first[c->end[i].node + 1] = i + 1;
    }
    for (int k = 0; k < nodes; k++) {
        if (c->first[k + 1] - c->first[k] > TOPOLOGY_NODE_GPUS_MAX)
            return err_set (err, ST_INVALID,
                            "%d ranks are on %s: expected one a GPU, at most %d a node",
                            c->first[k + 1] - c->first[k], c->node[k].name,
                            TOPOLOGY_NODE_GPUS_MAX);
        number_gpus (c, k);
    }
    for (int i = 0; i < n; i++)
        snprintf (c->end[i].name, sizeof c->end[i].name, "%s/%d",
                  c->node[c->end[i].node].name, c->end[i].gpu);
    c->shape = (struct schedule_shape){.n = n, .nodes = nodes, .first = c->first};
    say_shared (c);
    if (n >= 2 || (n == 1 && size == 1 && coordinator_computes (&c->set) &&
                   !c->set.plan && !c->set.dry_run))
        return ST_OK;
    return err_set (err, ST_NOFIT, "%d of %d ranks can measure: at least 2 are needed", n,
                    size);
}

enum status gather_ranks (struct coordinator *c, struct error *err)
{
    wait_for_hellos (c);
    if (c->interrupted)
        return err_set (err, ST_IO, "ended before all ranks had connected");
    TRY (choose_transport (c, err));
    for (int i = 0; i < roster_size (c->roster); i++) {
        struct member *m = roster_member (c->roster, i);
        struct msg_welcome how = c->how;

        /* Launchers do not agree on a local rank, so it is counted here. */
        for (int k = 0; k < i; k++) {
            const struct msg_hello *other = &roster_member (c->roster, k)->hello;

            how.local += strcmp (other->node, m->hello.node) == 0 &&
                         strcmp (other->door.address, m->hello.door.address) == 0;
        }
        ROSTER_TELL (c->roster, m, MSG_WELCOME, messages_welcome, &how);
    }
    collect (c, MSG_OPENED, c->set.start_s, "open the transport", take_opened);
    return number_endpoints (c, err);
}

/* ---- --gemm, --compute ---- */

static void take_computed (struct coordinator *c, struct member *m, struct wire *w)
{
    struct endpoint *e = m->endpoint >= 0 ? &c->end[m->endpoint] : NULL;

    if (!e)
        return;
    messages_computed (w, &e->computed);
    e->has_computed = wire_good (w) && e->computed.ok && e->computed.n_products > 0;
    if (!e->has_computed)
        coordinator_fault (c, "%s: its GPU was not measured: %s", e->name,
                           e->computed.reason);
}

void gather_compute (struct coordinator *c)
{
    struct msg_compute order = {.all = c->set.compute};
    const struct endpoint *without = NULL; /* attention, the first */
    int n = 0;

    for (int i = 0; i < roster_size (c->roster); i++) {
        ROSTER_TELL (c->roster, roster_member (c->roster, i), MSG_COMPUTE,
                     messages_compute, &order);
    }
    collect (c, MSG_COMPUTED, COMPUTE_S, "measure their GPU", take_computed);
    for (int i = 0; i < c->shape.n; i++)
        if (c->end[i].has_computed && c->end[i].computed.n_attention == 0) {
            without = without ? without : &c->end[i];
            n++;
        }
    if (c->set.compute && without)
        coordinator_say (c, "attention was not measured on %d GPU%s: %s: %s", n,
                         TEXT_S (n), without->name, without->computed.reason);
}
