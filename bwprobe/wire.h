/* Frames on the control channel: a length, a type, and fields.
 *
 * One function per message writes and reads it (messages.h), so that the two cannot differ.
 * Reading never goes past the frame's end: the first field that would marks the frame as bad,
 * and all further ones read as zero.
 */
#ifndef BWPROBE_WIRE_H
#define BWPROBE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A frame is at most this long.  Nobody sends a longer one, so it is no message of ours. */
enum { WIRE_MAX = 16384, WIRE_HEADER = 5 };

struct wire {
    bool writing;
    bool bad; /* a field did not fit */
    uint8_t type;
    size_t at, len; /* place in data; end of the frame */
    unsigned char data[WIRE_MAX];
};

/** Begin writing a frame of a type. */
void wire_begin (struct wire *w, uint8_t type);
/** Finish it: w->data[0 .. w->len) is ready to be sent. */
void wire_end (struct wire *w);

/** Take one frame from the front of received bytes.
 *
 *  @param[out] used  bytes of buf that the frame took; 0 when it is not complete
 *  @return false when the bytes are no frame (a length out of range)
 */
bool wire_take (struct wire *w, const unsigned char *buf, size_t len, size_t *used);

/** True if everything was read and nothing is left over. */
bool wire_good (const struct wire *w);

/** Write a whole number into n bytes, or read it from them: little-endian. */
void wire_put (unsigned char *p, uint64_t x, int n);
uint64_t wire_get (const unsigned char *p, int n);

/* Fields, little-endian.  A text has at most size - 1 characters and no NUL. */
void wire_u8 (struct wire *w, uint8_t *x);
void wire_u32 (struct wire *w, uint32_t *x);
void wire_u64 (struct wire *w, uint64_t *x);
void wire_f64 (struct wire *w, double *x);
void wire_bytes (struct wire *w, void *bytes, size_t n);
void wire_text (struct wire *w, char *s, size_t size);

#endif
