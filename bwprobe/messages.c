#include "bwprobe/messages.h"

static void place (struct wire *w, struct net_place *p)
{
    wire_text (w, p->address, sizeof p->address);
    wire_u32 (w, &p->port);
}

void messages_hello (struct wire *w, struct msg_hello *m)
{
    wire_bytes (w, m->token.byte, sizeof m->token.byte);
    wire_u32 (w, &m->version);
    wire_u32 (w, &m->rank);
    wire_u32 (w, &m->size);
    wire_text (w, m->node, sizeof m->node);
    place (w, &m->door);
    wire_u32 (w, &m->gpus);
    wire_u8 (w, &m->nccl);
    wire_text (w, m->no_nccl, sizeof m->no_nccl);
}

void messages_welcome (struct wire *w, struct msg_welcome *m)
{
    wire_text (w, m->transport, sizeof m->transport);
    wire_u32 (w, &m->local);
    wire_f64 (w, &m->alone_s);
    wire_f64 (w, &m->together_s);
    wire_f64 (w, &m->timeout_s);
    wire_u64 (w, &m->max_bytes);
}

void messages_opened (struct wire *w, struct msg_opened *m)
{
    wire_u8 (w, &m->ok);
    wire_u32 (w, &m->gpu.index);
    wire_text (w, m->gpu.bus, sizeof m->gpu.bus);
    wire_text (w, m->gpu.uuid, sizeof m->gpu.uuid);
    wire_text (w, m->gpu.product, sizeof m->gpu.product);
    wire_f64 (w, &m->gpu.memory_bytes);
    wire_text (w, m->versions, sizeof m->versions);
    wire_text (w, m->reason, sizeof m->reason);
}

void messages_parent (struct wire *w, struct msg_parent *m)
{
    wire_u32 (w, &m->generation);
    wire_u32 (w, &m->size);
    wire_u32 (w, &m->rank);
    wire_u8 (w, &m->make_id);
    wire_bytes (w, m->id, sizeof m->id);
}

void messages_parent_done (struct wire *w, struct msg_parent_done *m)
{
    wire_u32 (w, &m->generation);
    wire_u8 (w, &m->ok);
    wire_bytes (w, m->id, sizeof m->id);
    wire_text (w, m->reason, sizeof m->reason);
}

void messages_run (struct wire *w, struct msg_run *m)
{
    wire_u32 (w, &m->seq);
    wire_u8 (w, &m->kind);
    wire_u8 (w, &m->lead);
    wire_u8 (w, &m->split);
    wire_u32 (w, &m->color);
    wire_u64 (w, &m->bytes);
    wire_u32 (w, &m->partner);
    wire_text (w, m->partner_node, sizeof m->partner_node);
    place (w, &m->door);
}

void messages_seq (struct wire *w, struct msg_seq *m)
{
    wire_u32 (w, &m->seq);
    wire_u8 (w, &m->direction);
}

void messages_result (struct wire *w, struct msg_result *m)
{
    wire_u32 (w, &m->seq);
    wire_u8 (w, &m->ok[0]);
    wire_u8 (w, &m->ok[1]);
    wire_u8 (w, &m->collective);
    wire_u8 (w, &m->measured);
    wire_f64 (w, &m->bytes_per_s);
    wire_f64 (w, &m->latency_s);
    wire_f64 (w, &m->residual);
    wire_u32 (w, &m->refused);
    wire_text (w, m->refused_from, sizeof m->refused_from);
    wire_text (w, m->reason[0], sizeof m->reason[0]);
    wire_text (w, m->reason[1], sizeof m->reason[1]);
}

void messages_abort (struct wire *w, struct msg_abort *m)
{
    wire_u32 (w, &m->seq);
    wire_text (w, m->reason, sizeof m->reason);
}

void messages_compute (struct wire *w, struct msg_compute *m)
{
    wire_u8 (w, &m->all);
}

/* How many entries follow; there is room for `most`. */
static void count (struct wire *w, uint32_t *n, uint32_t most)
{
    wire_u32 (w, n);
    if (*n > most) {
        w->bad = true;
        *n = 0;
    }
}

void messages_computed (struct wire *w, struct msg_computed *m)
{
    wire_u8 (w, &m->ok);
    count (w, &m->n_products, MESSAGES_PRODUCTS);
    for (uint32_t i = 0; i < m->n_products; i++) {
        struct msg_product *p = &m->product[i];

        wire_text (w, p->precision, sizeof p->precision);
        wire_u32 (w, &p->m);
        wire_u32 (w, &p->n);
        wire_u32 (w, &p->k);
        wire_f64 (w, &p->flop_per_s);
    }
    wire_f64 (w, &m->copy_bytes_per_s);
    wire_f64 (w, &m->launch_s);
    wire_f64 (w, &m->kernel_s);
    count (w, &m->n_attention, MESSAGES_ATTENTION);
    for (uint32_t i = 0; i < m->n_attention; i++) {
        struct msg_attention *a = &m->attention[i];

        wire_text (w, a->kernels, sizeof a->kernels);
        wire_u32 (w, &a->tokens);
        wire_u32 (w, &a->heads);
        wire_u32 (w, &a->width);
        wire_f64 (w, &a->flop_per_s);
    }
    wire_text (w, m->reason, sizeof m->reason);
}

void messages_bye (struct wire *w, struct msg_bye *m)
{
    wire_u32 (w, &m->exit_code);
    wire_u8 (w, &m->faults);
}

void side_note_write (const struct side_note *n, unsigned char out[SIDE_NOTE])
{
    wire_put (out, n->what, 4);
    wire_put (out + 4, n->count, 4);
    wire_put (out + 8, n->bytes, 8);
}

bool side_note_read (const unsigned char in[SIDE_NOTE], struct side_note *n)
{
    *n = (struct side_note){.what = (uint32_t) wire_get (in, 4),
                            .count = (uint32_t) wire_get (in + 4, 4),
                            .bytes = wire_get (in + 8, 8)};
    return n->what >= SIDE_BLOCK && n->what <= SIDE_END && n->count <= 1u << 20 &&
           n->bytes <= (uint64_t) 1 << 40;
}
