/* Numbers as few characters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "report/report_private.h"

static const char digit[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The `digits` lowest base-64 digits of x, the highest first. */
static void add_digits (struct text *t, unsigned x, int digits)
{
    while (digits-- > 0)
        text_add_mem (t, &digit[x >> 6 * digits & 63], 1);
}

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

static void add_numbers (json_t *doc, const double *gb_per_s, size_t n)
{
    json_t *list = json_array ();

    for (size_t k = 0; k < n; k++)
        json_array_append_new (list, report_rate (gb_per_s[k] * UNITS_GB));
    json_object_set_new (doc, "gb_per_s", list);
}

json_t *report_rates (const double *gb_per_s, size_t n, int digits)
{
    double low = INFINITY, high = 0.0, scale;
    json_t *doc = json_object ();
    struct text code = {0};

    if (digits == 0) {
        add_numbers (doc, gb_per_s, n);
        return doc;
    }
    for (size_t k = 0; k < n; k++)
        if (!isnan (gb_per_s[k])) {
            low = fmin (low, gb_per_s[k]);
            high = fmax (high, gb_per_s[k]);
        }
    scale = high > low ? ((1 << 6 * digits) - 2) / log (high / low) : 0.0;
    for (size_t k = 0; k < n; k++)
        add_digits (&code,
                    isnan (gb_per_s[k])
                        ? 0
                        : 1 + (unsigned) lround (scale * log (gb_per_s[k] / low)),
                    digits);
    json_object_set_new (doc, "low_gb_per_s", json_number_or_null (low));
    json_object_set_new (doc, "high_gb_per_s", json_number_or_null (high));
    json_object_set_new (doc, "digits", json_integer (digits));
    json_object_set_new (doc, "code", json_stringn (text_str (&code), code.len));
    text_free (&code);
    return doc;
}
