#include "bwprobe/wire.h"

#include <string.h>

void wire_begin (struct wire *w, uint8_t type)
{
    w->writing = true;
    w->bad = false;
    w->type = type;
    w->at = WIRE_HEADER;
    w->len = 0;
}

void wire_put (unsigned char *p, uint64_t x, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = (unsigned char) (x >> 8 * i);
}

uint64_t wire_get (const unsigned char *p, int n)
{
    uint64_t x = 0;

    for (int i = 0; i < n; i++)
        x |= (uint64_t) p[i] << 8 * i;
    return x;
}

void wire_end (struct wire *w)
{
    w->len = w->at;
    wire_put (w->data, w->len, 4);
    w->data[4] = w->type;
}

bool wire_take (struct wire *w, const unsigned char *buf, size_t len, size_t *used)
{
    *used = 0;
    if (len < 4)
        return true;

    size_t n = (size_t) wire_get (buf, 4);

    if (n < WIRE_HEADER || n > WIRE_MAX)
        return false;
    if (len < n)
        return true;
    w->writing = false;
    w->bad = false;
    w->at = WIRE_HEADER;
    w->len = n;
    w->type = buf[4];
    memcpy (w->data, buf, n);
    *used = n;
    return true;
}

bool wire_good (const struct wire *w)
{
    return !w->bad && w->at == w->len;
}

/* Where the next n bytes lie, or NULL when they do not fit. */
static unsigned char *field (struct wire *w, size_t n)
{
    size_t end = w->writing ? WIRE_MAX : w->len;

    if (w->bad || n > end - w->at) {
        w->bad = true;
        return NULL;
    }
    w->at += n;
    return w->data + w->at - n;
}

static uint64_t integer (struct wire *w, uint64_t x, int n)
{
    unsigned char *p = field (w, (size_t) n);

    if (!p)
        return 0;
    if (w->writing)
        wire_put (p, x, n);
    return wire_get (p, n);
}

void wire_u8 (struct wire *w, uint8_t *x)
{
    *x = (uint8_t) integer (w, *x, 1);
}

void wire_u32 (struct wire *w, uint32_t *x)
{
    *x = (uint32_t) integer (w, *x, 4);
}

void wire_u64 (struct wire *w, uint64_t *x)
{
    *x = integer (w, *x, 8);
}

void wire_f64 (struct wire *w, double *x)
{
    uint64_t bits;

    memcpy (&bits, x, sizeof bits);
    wire_u64 (w, &bits);
    memcpy (x, &bits, sizeof bits);
}

void wire_bytes (struct wire *w, void *bytes, size_t n)
{
    unsigned char *p = field (w, n);

    if (!p) {
        if (!w->writing)
            memset (bytes, 0, n);
        return;
    }
    if (w->writing)
        memcpy (p, bytes, n);
    else
        memcpy (bytes, p, n);
}

void wire_text (struct wire *w, char *s, size_t size)
{
    uint32_t n = w->writing ? (uint32_t) strnlen (s, size - 1) : 0;

    wire_u32 (w, &n);
    if (!w->writing && n >= size)
        w->bad = true;
    if (w->bad) {
        if (!w->writing)
            s[0] = '\0';
        return;
    }
    wire_bytes (w, s, n);
    if (!w->writing) {
        s[w->bad ? 0 : n] = '\0';
        if (strlen (s) != n && !w->bad)
            w->bad = true;
    }
}
