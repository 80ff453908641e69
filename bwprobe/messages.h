/* What rank 0 and the others say to each other on the control channel.
 *
 *     rank                          rank 0
 *     HELLO    who I am        ->
 *                              <-   WELCOME  how to measure, over which transport
 *     OPENED   my device       ->
 *                              <-   PARENT   build a communicator over these ranks (NCCL)
 *     PARENT_DONE              ->
 *                              <-   RUN      measure with this partner, both directions
 *     READY    may send        ->            (together only, for each direction)
 *                              <-   GO       all send now
 *     RESULT                   ->
 *                              <-   ABORT    give up what you measure: the reason
 *                              <-   COMPUTE  measure your GPU
 *     COMPUTED                 ->
 *     PING, PONG               <->  PING, PONG   are you there? yes
 *                              <-   BYE      close and leave with this exit code
 */
#ifndef BWPROBE_MESSAGES_H
#define BWPROBE_MESSAGES_H

#include "bwprobe/net.h"
#include "bwprobe/wire.h"

enum { MESSAGES_VERSION = 5, MESSAGES_REASON = 256, MESSAGES_NAME = 256, NCCL_ID = 128 };

enum message {
    MSG_HELLO = 1,
    MSG_WELCOME,
    MSG_OPENED,
    MSG_PARENT,
    MSG_PARENT_DONE,
    MSG_RUN,
    MSG_READY,
    MSG_GO,
    MSG_RESULT,
    MSG_ABORT,
    MSG_COMPUTE,
    MSG_COMPUTED,
    MSG_PING,
    MSG_PONG,
    MSG_BYE
};

struct msg_hello {
    struct net_token token;
    uint32_t version, rank, size;
    char node[MESSAGES_NAME]; /* host name */
    struct net_place door;    /* where partners connect */
    uint32_t gpus;            /* GPUs that this rank sees */
    uint8_t nccl;             /* it can use NCCL */
    char no_nccl[MESSAGES_REASON];
};

struct msg_welcome {
    char transport[16];
    uint32_t local;             /* rank among those of its node */
    double alone_s, together_s; /* time for which a direction is measured */
    double timeout_s;           /* without progress */
    uint64_t max_bytes;         /* largest message */
};

/** A rank's GPU, as far as it is known: texts "" and numbers 0 where it is not. */
struct gpu_description {
    uint32_t
        index; /* among all that the rank sees, in the order of their PCI addresses */
    char bus[32], uuid[64], product[128];
    double memory_bytes;
};

struct msg_opened {
    uint8_t ok;
    struct gpu_description gpu;
    char versions[256]; /* "nccl 2.28.9, cuda runtime 13.0, cuda driver 13.0" */
    char reason[MESSAGES_REASON];
};

struct msg_parent {
    uint32_t generation, size, rank; /* of this rank in it */
    uint8_t make_id;                 /* answer with an id before anybody joins */
    unsigned char id[NCCL_ID];
};

struct msg_parent_done {
    uint32_t generation;
    uint8_t ok;
    unsigned char id[NCCL_ID]; /* when it was asked for */
    char reason[MESSAGES_REASON];
};

enum run_kind { RUN_ALONE, RUN_TOGETHER, RUN_SIT_OUT };

struct msg_run {
    uint32_t seq;
    uint8_t kind;     /* enum run_kind */
    uint8_t lead;     /* this rank connects, and sends first */
    uint8_t split;    /* a pair communicator by splitting the parent; else a fresh one */
    uint32_t color;   /* of the split */
    uint64_t bytes;   /* largest message; 0: what fits the time */
    uint32_t partner; /* rank */
    char partner_node[MESSAGES_NAME]; /* for messages */
    struct net_place door;            /* the partner's */
};

struct msg_seq { /* READY, GO */
    uint32_t seq;
    uint8_t direction; /* 0: the lead sends, 1: the other does */
};

/** What one rank found in one order. */
struct msg_result {
    uint32_t seq;
    uint8_t ok[2];      /* by direction, as far as this rank saw */
    uint8_t collective; /* the parent communicator failed, not the pair */
    uint8_t measured;   /* this rank sent: the numbers below are there */
    double bytes_per_s, latency_s;
    double residual;  /* of the fit, relative */
    uint32_t refused; /* foreign connections turned away since the last result */
    char refused_from[NET_ADDRESS];
    char reason[2][MESSAGES_REASON]; /* of a failure, by direction */
};

struct msg_abort {
    uint32_t seq;
    char reason[MESSAGES_REASON];
};

struct msg_compute {
    uint8_t
        all; /* every precision and shape, and launches; else one product and copies */
};

/** A product of m x k by k x n numbers of a precision. */
struct msg_product {
    char precision[8]; /* "bf16", "fp16", "fp8", "tf32", "fp32" */
    uint32_t m, n, k;
    double flop_per_s;
};

/** Causal attention, forward, by one kind of kernels. */
struct msg_attention {
    char kernels[8]; /* "flash2", "cudnn" */
    uint32_t tokens, heads, width;
    double flop_per_s;
};

enum { MESSAGES_PRODUCTS = 32, MESSAGES_ATTENTION = 4 };

struct msg_computed {
    uint8_t ok;
    uint32_t n_products; /* 1 or more: the first is the large square in 16 bits */
    struct msg_product product[MESSAGES_PRODUCTS];
    double copy_bytes_per_s;
    double launch_s, kernel_s; /* the host's and the GPU's time for a tiny kernel; 0: not
                                  measured */
    uint32_t n_attention;
    struct msg_attention attention[MESSAGES_ATTENTION];
    char reason[MESSAGES_REASON]; /* why it, or with `ok` attention, was not measured */
};

struct msg_bye {
    uint32_t exit_code;
    uint8_t faults; /* something failed: do not finalize MPI */
};

/* Each writes the message's fields into a frame that was begun, or reads them from one that
 * was taken. */
void messages_hello (struct wire *w, struct msg_hello *m);
void messages_welcome (struct wire *w, struct msg_welcome *m);
void messages_opened (struct wire *w, struct msg_opened *m);
void messages_parent (struct wire *w, struct msg_parent *m);
void messages_parent_done (struct wire *w, struct msg_parent_done *m);
void messages_run (struct wire *w, struct msg_run *m);
void messages_seq (struct wire *w, struct msg_seq *m);
void messages_result (struct wire *w, struct msg_result *m);
void messages_abort (struct wire *w, struct msg_abort *m);
void messages_compute (struct wire *w, struct msg_compute *m);
void messages_computed (struct wire *w, struct msg_computed *m);
void messages_bye (struct wire *w, struct msg_bye *m);

/* ---- between the two partners of an order, on their side connection ---- */

enum side_what {
    SIDE_BLOCK = 1, /* the sender: `count` messages of `bytes` follow */
    SIDE_CHECK,     /* the sender: one message of `bytes` follows, to be compared */
    SIDE_ANSWER,    /* the receiver: `count` 1: it was as expected */
    SIDE_END        /* the sender: this direction is done */
};

struct side_note {
    uint32_t what, count;
    uint64_t bytes;
};

enum { SIDE_NOTE = 16 };

void side_note_write (const struct side_note *n, unsigned char out[SIDE_NOTE]);
/** @return false for anything that no partner sends */
bool side_note_read (const unsigned char in[SIDE_NOTE], struct side_note *n);

#endif
