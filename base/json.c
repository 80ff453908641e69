#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

/* ---- memory ----
 *
 * Documents are built by calls of which nobody looks at each.  So jansson's own allocations are
 * watched, and json_dumped, through which all documents pass, makes no text of half of one. */

static json_malloc_t allocate;

/* Where reading ends that gets no memory: jansson (2.14, lex_scan_string) would go on beyond the
 * end of a string that could not grow.  What it has read until then is never freed. */
static _Thread_local jmp_buf *reader;

static void *watched (size_t size)
{
    void *p = allocate (size);

    if (!p && size > 0) {
        memory_lost ();
        if (reader)
            longjmp (*reader, 1);
    }
    return p;
}

/* Whoever has given jansson functions of his own before keeps them. */
__attribute__ ((constructor)) static void watch (void)
{
    json_free_t release;

    json_get_alloc_funcs (&allocate, &release);
    json_set_alloc_funcs (watched, release);
}

char *json_dumped (const json_t *root, size_t flags)
{
    char *s = memory_take_lost () ? NULL : json_dumps (root, flags);

    if (!s)
        memory_lost ();
    return s;
}

/* ---- reading ---- */

#define TOLD_EVERY (1 << 24) /* bytes between two calls that tell of reading */

/* Text that jansson asks for piece by piece. */
struct feed {
    const char *name, *data;
    size_t len, at, told;
    const struct notes *notes;
};

static size_t next_piece (void *buffer, size_t room, void *context)
{
    struct feed *f = context;
    size_t n = f->len - f->at < room ? f->len - f->at : room;

    memcpy (buffer, f->data + f->at, n);
    f->at += n;
    if (f->at - f->told >= TOLD_EVERY) {
        notes_reading (f->notes, f->name, (double) f->at / (double) f->len);
        f->told = f->at;
    }
    return n;
}

/* NULL: not JSON, or no memory */
static json_t *load (struct feed *f, json_error_t *why)
{
    size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
    jmp_buf end;
    json_t *v;

    reader = &end;
    if (setjmp (end) != 0) {
        reader = NULL;
        return NULL;
    }
    v = f->len < TOLD_EVERY ? json_loadb (f->data, f->len, flags, why)
                            : json_load_callback (next_piece, f, flags, why);
    reader = NULL;
    return v;
}

static enum status parse (const char *name, const char *data, size_t len,
                          const struct notes *notes, json_t **root, struct error *err)
{
    size_t mark = file_mark (data, len);
    struct feed feed = {name, data + mark, len - mark, 0, 0, notes};
    json_error_t why;
    json_t *v = load (&feed, &why);

    if (memory_take_lost ()) {
        json_decref (v);
        return err_nomem (err);
    }
    if (!v && len == 0)
        return err_set (err, ST_INVALID, "%s: expected JSON, found an empty file", name);
    if (!v && file_not_text (data, len))
        return err_set (err, ST_INVALID, "%s: %s", name, file_not_text (data, len));
    if (!v)
        return err_set (err, ST_INVALID, "%s: line %d, column %d: not valid JSON: %s",
                        name, why.line, why.column, why.text);
    *root = v;
    return ST_OK;
}

enum status json_parse (const char *name, const char *data, size_t len, json_t **root,
                        struct error *err)
{
    return parse (name, data, len, NULL, root, err);
}

enum status json_read_told (const char *path, const struct notes *notes, json_t **root,
                            struct error *err)
{
    char *data;
    size_t len;
    enum status st;

    TRY (file_read (path, &data, &len, err));
    notes_reading (notes, file_title (path), 0.0);
    st = parse (file_title (path), data, len, notes, root, err);
    notes_reading (notes, file_title (path), 1.0);
    free (data);
    return st;
}

enum status json_read (const char *path, json_t **root, struct error *err)
{
    return json_read_told (path, NULL, root, err);
}

/* What Python's json writes for numbers that JSON does not have, and what stands in their place,
 * as long as they are, so that faults behind them keep their columns. */
static const struct {
    const char *word, *instead;
} no_numbers[] = {{"Infinity", "null    "}, {"-Infinity", "null     "}, {"NaN", "\"?\""}};

static void replace_no_numbers (char *s)
{
    static const char of_words[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789_+-.";
    size_t n;

    for (; *s; s += n) {
        if (*s == '"') {
            for (n = 1; s[n] && s[n] != '"'; n++)
                n += s[n] == '\\' && s[n + 1];
            n += s[n] == '"';
            continue;
        }
        n = strspn (s, of_words);
        for (size_t i = 0; i < sizeof no_numbers / sizeof *no_numbers; i++)
            if (n == strlen (no_numbers[i].word) &&
                memcmp (s, no_numbers[i].word, n) == 0)
                memcpy (s, no_numbers[i].instead, n);
        n = n > 0 ? n : 1;
    }
}

enum status json_parse_config (const char *name, const char *text, json_t **root,
                               struct error *err)
{
    char *copy = strdup (text);
    enum status st;

    if (!copy)
        return err_nomem (err);
    replace_no_numbers (copy);
    st = json_parse (name, copy, strlen (copy), root, err);
    free (copy);
    return st;
}

enum status json_read_config (const char *path, json_t **root, struct error *err)
{
    char *text;
    size_t len;
    enum status st;

    TRY (file_read_small (path, &text, &len, err));
    st = json_parse_config (file_title (path), text, root, err);
    free (text);
    return st;
}

/* The end of an array that begins at s and holds no array or object, or NULL. */
static const char *flat_array_end (const char *s)
{
    bool quoted = false;

    for (s++; *s; s++) {
        if (quoted && *s == '\\')
            s++;
        else if (*s == '"')
            quoted = !quoted;
        else if (!quoted && (*s == '[' || *s == '{'))
            return NULL;
        else if (!quoted && *s == ']')
            return s;
    }
    return NULL;
}

/* Copy an array's text without its line breaks: jansson's stand after '[' and ',' and
 * before ']', followed by blanks, and never inside a text. */
static void add_flat (struct text *t, const char *s, const char *end)
{
    while (s <= end) {
        size_t n = strcspn (s, "\n");

        if (s + n > end)
            n = (size_t) (end - s) + 1;
        text_add_mem (t, s, n);
        s += n;
        if (s > end)
            return;
        s += 1 + strspn (s + 1, " ");
        if (s[-1] == ' ' && *s != ']' && t->len > 0 && t->s[t->len - 1] == ',')
            text_add_mem (t, " ", 1);
    }
}

char *json_text (const json_t *root)
{
    char *s = json_dumped (root, JSON_INDENT (2) | JSON_REAL_PRECISION (15));
    struct text t = {0};
    bool quoted = false;

    if (!s)
        return NULL;
    for (const char *p = s; *p;) {
        const char *end = *p == '[' && !quoted ? flat_array_end (p) : NULL;
        size_t n = 1;

        if (end) {
            add_flat (&t, p, end);
            p = end + 1;
            continue;
        }
        if (quoted && *p == '\\')
            n = 2;
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted)
            /* On to the next text or array. */
            n += strcspn (p + 1, "\"[");
        text_add_mem (&t, p, n);
        p += n;
    }
    text_add_mem (&t, "\n", 1);
    free (s);
    if (t.failed)
        text_free (&t);
    return t.s;
}

enum status json_write (const char *path, const json_t *root, struct error *err)
{
    char *s = json_text (root);
    enum status st = s ? file_write (path, s, strlen (s), err) : err_nomem (err);

    free (s);
    return st;
}

struct json_at json_root (json_t *v, const char *name)
{
    return (struct json_at){.v = v, .key = name};
}

struct json_at json_key (const struct json_at *at, const char *key)
{
    return (struct json_at){.v = json_object_get (at->v, key), .up = at, .key = key};
}

struct json_at json_entry (const struct json_at *at, size_t index)
{
    return (struct json_at){.v = json_array_get (at->v, index), .up = at, .index = index};
}

/* Write "file: a.b[3]" for the value. */
static void describe_place (const struct json_at *at, struct text *t)
{
    if (!at->up) {
        text_add (t, "%s", at->key);
        return;
    }
    describe_place (at->up, t);
    if (!at->key)
        text_add (t, "[%zu]", at->index);
    else
        text_add (t, "%s%s", at->up->up ? "." : ": ", at->key);
}

static void describe_value (const json_t *v, struct text *t)
{
    if (!v) {
        text_add (t, "nothing");
        return;
    }
    switch (json_typeof (v)) {
    case JSON_OBJECT:
        text_add (t, "an object");
        break;
    case JSON_ARRAY:
        text_add (t, "an array of %zu", json_array_size (v));
        break;
    case JSON_STRING:
        text_add (t, "\"");
        for (const char *s = json_string_value (v); *s && t->len < 600; s++)
            text_add (t, "%c", *s);
        text_add (t, "\"");
        break;
    case JSON_INTEGER:
        text_add (t, "%lld", (long long) json_integer_value (v));
        break;
    case JSON_REAL:
        text_add (t, "%g", json_real_value (v));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        text_add (t, json_is_true (v) ? "true" : "false");
        break;
    case JSON_NULL:
        text_add (t, "null");
        break;
    }
}

/* "PLACE: WHAT", with what was expected and found there where `fmt` is the expectation. */
static enum status fail (const struct json_at *at, struct error *err, bool expects,
                         const char *fmt, va_list ap)
{
    struct text t = {0};
    char what[1024];

    vsnprintf (what, sizeof what, fmt, ap);
    describe_place (at, &t);
    text_add (&t, ": %s%s", expects ? "expected " : "", what);
    if (expects) {
        text_add (&t, ", found ");
        describe_value (at->v, &t);
    }
    err_set (err, ST_INVALID, "%s", text_str (&t));
    text_free (&t);
    return ST_INVALID;
}

enum status json_fail (const struct json_at *at, struct error *err, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    fail (at, err, true, fmt, ap);
    va_end (ap);
    return ST_INVALID;
}

enum status json_fail_text (const struct json_at *at, struct error *err, const char *fmt,
                            ...)
{
    va_list ap;

    va_start (ap, fmt);
    fail (at, err, false, fmt, ap);
    va_end (ap);
    return ST_INVALID;
}

bool json_has (const struct json_at *at, const char *key)
{
    json_t *v = json_object_get (at->v, key);

    return v && !json_is_null (v);
}

enum status json_want_object (const struct json_at *at, struct error *err)
{
    return json_is_object (at->v) ? ST_OK : json_fail (at, err, "an object");
}

enum status json_want_array (const struct json_at *at, size_t *n, struct error *err)
{
    if (!json_is_array (at->v))
        return json_fail (at, err, "an array");
    if (n)
        *n = json_array_size (at->v);
    return ST_OK;
}

enum status json_want_string (const struct json_at *at, const char **s, struct error *err)
{
    if (!json_is_string (at->v))
        return json_fail (at, err, "a text");
    *s = json_string_value (at->v);
    return ST_OK;
}

enum status json_want_bool (const struct json_at *at, bool *b, struct error *err)
{
    if (!json_is_boolean (at->v))
        return json_fail (at, err, "true or false");
    *b = json_is_true (at->v);
    return ST_OK;
}

enum status json_want_int (const struct json_at *at, long long lo, long long hi,
                           long long *n, struct error *err)
{
    double x = json_number_value (at->v);

    if (json_is_integer (at->v) && json_integer_value (at->v) >= lo &&
        json_integer_value (at->v) <= hi) {
        *n = json_integer_value (at->v);
        return ST_OK;
    }
    if (json_is_real (at->v) && x == floor (x) && fabs (x) < 9e15 && x >= (double) lo &&
        x <= (double) hi) {
        *n = (long long) x;
        return ST_OK;
    }
    if (lo == hi)
        return json_fail (at, err, "%lld", lo);
    return json_fail (at, err, "a whole number from %lld to %lld", lo, hi);
}

enum status json_want_number (const struct json_at *at, double lo, bool lo_ok, double hi,
                              double *x, struct error *err)
{
    if (json_is_number (at->v)) {
        double v = json_number_value (at->v);

        if (isfinite (v) && (lo_ok ? v >= lo : v > lo) && v <= hi) {
            *x = v;
            return ST_OK;
        }
    }

    return isfinite (hi) ? json_fail (at, err, "a number %s %g and <= %g",
                                      lo_ok ? ">=" : ">", lo, hi)
                         : json_fail (at, err, "a number %s %g", lo_ok ? ">=" : ">", lo);
}

enum status json_get_string (const struct json_at *at, const char *key, const char **s,
                             struct error *err)
{
    struct json_at one = json_key (at, key);

    return json_want_string (&one, s, err);
}

enum status json_get_bool (const struct json_at *at, const char *key, bool *b,
                           struct error *err)
{
    struct json_at one = json_key (at, key);

    return json_want_bool (&one, b, err);
}

enum status json_get_int (const struct json_at *at, const char *key, int lo, int hi,
                          int *n, struct error *err)
{
    struct json_at one = json_key (at, key);
    long long x;

    TRY (json_want_int (&one, lo, hi, &x, err));
    *n = (int) x;
    return ST_OK;
}

enum status json_get_number (const struct json_at *at, const char *key, double lo,
                             bool lo_ok, double hi, double *x, struct error *err)
{
    struct json_at one = json_key (at, key);

    return json_want_number (&one, lo, lo_ok, hi, x, err);
}

void json_note_unknown (const struct json_at *at, const char *known, struct notes *notes)
{
    const char *key;
    json_t *value;

    json_object_foreach (at->v, key, value)
    {
        struct json_at child = json_key (at, key);
        struct text t = {0};

        if (text_has_word (known, key))
            continue;
        describe_place (&child, &t);
        notes_add (notes, "%s: unknown key, ignored", text_str (&t));
        text_free (&t);
    }
}

json_t *json_object_in (json_t *object, const char *key)
{
    if (!json_is_object (json_object_get (object, key)))
        json_object_set_new (object, key, json_object ());
    return json_object_get (object, key);
}

json_t *json_array_in (json_t *object, const char *key)
{
    if (!json_is_array (json_object_get (object, key)))
        json_object_set_new (object, key, json_array ());
    return json_object_get (object, key);
}

json_t *json_row_in (json_t *rows, int i)
{
    if ((size_t) i == json_array_size (rows))
        json_array_append_new (rows, json_array ());
    return json_array_get (rows, (size_t) i);
}

int json_number_of (json_t *numbers, const char *fmt, ...)
{
    int n = (int) json_object_size (numbers);
    const json_t *known;
    char *key;
    va_list ap;

    va_start (ap, fmt);
    if (vasprintf (&key, fmt, ap) < 0)
        key = NULL;
    va_end (ap);
    if (key && (known = json_object_get (numbers, key)))
        n = (int) json_integer_value (known);
    else if (!key || json_object_set_new (numbers, key, json_integer (n)) != 0)
        n = -1;
    free (key);
    if (n < 0)
        memory_lost ();
    return n;
}

void json_decref_all (json_t *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_decref (v[i]);
}

json_t *json_number_or_null (double x)
{
    return isfinite (x) ? json_real (x) : json_null ();
}
