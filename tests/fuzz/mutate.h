/* libFuzzer's mutations, for inputs that are JSON: a value, a key or a text is changed, and what
 * comes out is JSON again.  Other inputs, and some of these too, are changed as bytes. */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate (uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max, unsigned seed);

/* A value's place: a member or an entry. */
struct mutate_place {
    json_t *in; /* NULL: not found yet */
    const char *key;
    size_t index;
};

/* The left-th value below v, from 0 in document order.  @param[in,out] left  what is left to go */
static void mutate_find (json_t *v, long *left, struct mutate_place *p)
{
    const char *key;
    json_t *child;
    size_t i;

    json_object_foreach (v, key, child)
    {
        if (!p->in && (*left)-- == 0)
            *p = (struct mutate_place){v, key, 0};
        if (!p->in)
            mutate_find (child, left, p);
    }
    json_array_foreach (v, i, child)
    {
        if (!p->in && (*left)-- == 0)
            *p = (struct mutate_place){v, NULL, i};
        if (!p->in)
            mutate_find (child, left, p);
    }
}

/* Any value of the document but the root. */
static struct mutate_place mutate_draw (json_t *root)
{
    long left = 1L << 40;
    struct mutate_place p = {0};

    mutate_find (root, &left, &p);

    long n = (1L << 40) - left;

    left = n > 0 ? rand () % n : 0;
    mutate_find (root, &left, &p);
    return p;
}

/* What numbers and texts are wrong in, as JSON. */
static const char *const mutate_hard[] = {"0",
                                          "-0.0",
                                          "-1",
                                          "1",
                                          "2",
                                          "7",
                                          "64",
                                          "1024",
                                          "65536",
                                          "0.5",
                                          "1e308",
                                          "-1e308",
                                          "1e-310",
                                          "5e-324",
                                          "1e-9",
                                          "1e18",
                                          "2147483647",
                                          "2147483648",
                                          "1e9",
                                          "1e15",
                                          "9007199254740993",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "null",
                                          "true",
                                          "false",
                                          "\"\"",
                                          "\"-\"",
                                          "\"a/b\"",
                                          "\"..\"",
                                          "\"n[0-99]\"",
                                          "\"\\u001b[2J\\n\\u009b\"",
                                          "\"%s%n\"",
                                          "\"$(id)`id`'\\\"\"",
                                          "[]",
                                          "{}",
                                          "[[]]",
                                          "[null, null]"};

/* A text, changed as bytes; another as long as many fields are not. */
static json_t *mutate_text (const char *s)
{
    char text[5000];
    size_t n = strlen (s) < 1000 ? strlen (s) : 1000;

    if (rand () % 8 == 0) {
        memset (text, 'x', sizeof text);
        return json_stringn (text, (size_t) (rand () % (int) sizeof text));
    }
    memcpy (text, s, n);
    n = LLVMFuzzerMutate ((uint8_t *) text, n, n + 16);
    return json_stringn (text, n);
}

static json_t *mutate_number (const json_t *v)
{
    static const double factor[] = {-1, 0.5, 2, 10, 1e-3, 1e3, 1e-12, 1e12, 1.0000001};
    double x = json_number_value (v);

    if (rand () % 2)
        return json_is_real (v)
                   ? json_real (x + 1)
                   : json_integer ((json_int_t) (x < 1e15 && x > -1e15 ? x : 0) +
                                   rand () % 5 - 2);
    return json_real (x * factor[(size_t) rand () % (sizeof factor / sizeof *factor)]);
}

/* What is to stand in the place of v; a new reference or NULL. */
static json_t *mutate_value (json_t *root, json_t *v)
{
    struct mutate_place other;
    const char *hard =
        mutate_hard[(size_t) rand () % (sizeof mutate_hard / sizeof *mutate_hard)];

    switch (rand () % 4) {
    case 0:
        return json_loads (hard, JSON_DECODE_ANY, NULL);
    case 1:
        other = mutate_draw (root);
        return json_deep_copy (other.key ? json_object_get (other.in, other.key)
                                         : json_array_get (other.in, other.index));
    default:
        return json_is_string (v)   ? mutate_text (json_string_value (v))
               : json_is_number (v) ? mutate_number (v)
                                    : json_loads (hard, JSON_DECODE_ANY, NULL);
    }
}

/* Change, drop or double one value. */
static void mutate_once (json_t *root)
{
    struct mutate_place p = mutate_draw (root);
    int what = rand () % 8;
    char key[64];
    json_t *v;

    if (!p.in)
        return;
    v = p.key ? json_object_get (p.in, p.key) : json_array_get (p.in, p.index);
    if (p.key) {
        snprintf (key, sizeof key, "%s", p.key);
        if (what == 0)
            json_object_del (p.in, key);
        else if (what == 1)
            json_object_set_new (p.in, strncat (key, "2", sizeof key - strlen (key) - 1),
                                 json_deep_copy (v));
        else
            json_object_set_new (p.in, key, mutate_value (root, v));
    } else {
        if (what == 0)
            json_array_remove (p.in, p.index);
        else if (what == 1)
            json_array_insert_new (p.in, p.index, json_deep_copy (v));
        else
            json_array_set_new (p.in, p.index, mutate_value (root, v));
    }
}

size_t LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max, unsigned seed)
{
    json_t *root = json_loadb ((char *) data, size, 0, NULL);
    size_t n = 0;

    srand (seed);
    if (root && rand () % 8) {
        for (int k = 1 + rand () % 3; k > 0; k--)
            mutate_once (root);

        char *text = json_dumps (root, JSON_COMPACT | JSON_REAL_PRECISION (17));

        n = text ? strlen (text) : 0;
        if (n <= max)
            memcpy (data, text ? text : "", n);
        else
            n = 0;
        free (text);
    }
    json_decref (root);
    return n > 0 ? n : LLVMFuzzerMutate (data, size, max);
}

#endif
