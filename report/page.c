/* The page: its parts are built in as text, the document goes between them; and numbers as few
 * characters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/report_private.h"

/* Numbers of a page have that many digits. */
#define DIGITS 12

static void add_shipped (struct text *out, const char *end)
{
    for (const struct text_shipped *s = report_shipped_page; s->name; s++) {
        const char *dot = strrchr (s->name, '.');

        if (dot && strcmp (dot, end) == 0)
            text_add_mem (out, s->text, strlen (s->text));
    }
}

/* JSON in which nothing can end the element that it is in: all beyond ASCII is escaped
 * by jansson, and what HTML reads occurs only in strings. */
static enum status add_document (struct text *out, const json_t *doc, struct error *err)
{
    char *json = json_dumped (doc, JSON_COMPACT | JSON_ENSURE_ASCII |
                                       JSON_REAL_PRECISION (DIGITS));

    if (!json)
        return err_nomem (err);
    for (const char *s = json; *s;) {
        size_t plain = strcspn (s, "<>&");

        text_add_mem (out, s, plain);
        s += plain;
        if (*s)
            text_add (out, "\\u%04x", (unsigned) *s++);
    }
    free (json);
    return ST_OK;
}

enum status report_page (const json_t *doc, struct text *out, struct error *err)
{
    struct text page = {0};
    enum status st = ST_OK;
    const char *s;

    add_shipped (&page, ".html");
    for (s = text_str (&page); *s && st == ST_OK;) {
        size_t plain = strcspn (s, "@");

        text_add_mem (out, s, plain);
        s += plain;
        if (strncmp (s, "@style@", 7) == 0)
            add_shipped (out, ".css");
        else if (strncmp (s, "@script@", 8) == 0)
            add_shipped (out, ".js");
        else if (strncmp (s, "@data@", 6) == 0)
            st = add_document (out, doc, err);
        s += *s ? strcspn (s + 1, "@") + 2 : 0;
    }
    if (st == ST_OK && (out->failed || page.failed))
        st = err_nomem (err);
    text_free (&page);
    return st;
}

/* ---- numbers ---- */

static const char digit[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void report_add_varint (struct text *t, unsigned x)
{
    for (; x >= 32; x >>= 5)
        text_add_mem (t, &digit[32 | (x & 31)], 1);
    text_add_mem (t, &digit[x], 1);
}

json_t *report_rate (double bytes_per_s)
{
    char four[32];

    if (!(bytes_per_s > 0))
        return json_null ();
    snprintf (four, sizeof four, "%.4g", bytes_per_s / UNITS_GB);
    return json_real (strtod (four, NULL));
}

json_t *report_rates (const double *gb_per_s, size_t n, int digits)
{
    double low = INFINITY, high = 0.0, scale;
    json_t *doc = json_object (), *list;
    struct text code = {0};

    if (digits == 0) {
        list = json_array ();
        for (size_t k = 0; k < n; k++)
            json_array_append_new (list, report_rate (gb_per_s[k] * UNITS_GB));
        json_object_set_new (doc, "gb_per_s", list);
        return doc;
    }
    for (size_t k = 0; k < n; k++)
        if (!isnan (gb_per_s[k])) {
            low = fmin (low, gb_per_s[k]);
            high = fmax (high, gb_per_s[k]);
        }
    scale = high > low ? ((1 << 6 * digits) - 2) / log (high / low) : 0.0;
    for (size_t k = 0; k < n; k++) {
        unsigned x = isnan (gb_per_s[k])
                         ? 0
                         : 1 + (unsigned) lround (scale * log (gb_per_s[k] / low));

        for (int i = digits - 1; i >= 0; i--) /* the highest digit first */
            text_add_mem (&code, &digit[x >> 6 * i & 63], 1);
    }
    json_object_set_new (doc, "low_gb_per_s", json_number_or_null (low));
    json_object_set_new (doc, "high_gb_per_s", json_number_or_null (high));
    json_object_set_new (doc, "digits", json_integer (digits));
    json_object_set_new (doc, "code", json_stringn (text_str (&code), code.len));
    text_free (&code);
    return doc;
}
