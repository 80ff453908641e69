/* JSON with messages that name file, place, expected and found.
 *
 * jansson parses; a struct json_at remembers how a value was reached, so that a reader
 * is a list of json_get_* calls and every fault reads like
 *     cluster.json: links.inter.bandwidth_gb_per_s[0][1]: expected a number > 0, found -1
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/** A value and the way to it.  Lives on the stack; `up` must outlive it. */
struct json_at {
    json_t *v;                /* borrowed; NULL when the key is absent */
    const struct json_at *up; /* NULL at the root */
    const char *key;          /* at the root: the file's name; NULL for an array entry */
    size_t index;             /* of an array entry */
};

/** Parse JSON text.  Duplicate keys, NaN, trailing text and numbers that overflow are
 *  refused with line and column.
 *
 *  @param[in]  name  for messages
 *  @param[out] root  a new reference: json_decref it
 */
enum status json_parse (const char *name, const char *data, size_t len, json_t **root,
                        struct error *err);

/** Read a file ("-" is standard input) and parse it. */
enum status json_read (const char *path, json_t **root, struct error *err);
/** The same; `notes` are told how much of a large file is parsed (NULL: nobody is). */
enum status json_read_told (const char *path, const struct notes *notes, json_t **root,
                            struct error *err);

/** Parse a model's config.json as Python's json writes it: where it has NaN, Infinity or -Infinity,
 *  which other documents are refused for, nothing that can be used as a number is found. */
enum status json_parse_config (const char *name, const char *text, json_t **root,
                               struct error *err);
/** The same of a file of at most 64 MiB. */
enum status json_read_config (const char *path, json_t **root, struct error *err);

/** json_dumps, or NULL where memory ran out, now or while the document was built. */
char *json_dumped (const json_t *root, size_t flags);

/** A document as text with two-blank indentation, arrays of numbers and texts on one line,
 *  and a newline at its end; to be freed.  NULL when out of memory. */
char *json_text (const json_t *root);

/** Write a document as json_text gives it, whole or not at all. */
enum status json_write (const char *path, const json_t *root, struct error *err);

/** The root of a document. */
struct json_at json_root (json_t *v, const char *name);
/** An object's member; .v is NULL when it is absent or `at` is not an object. */
struct json_at json_key (const struct json_at *at, const char *key);
/** An array's entry; .v is NULL beyond its end. */
struct json_at json_entry (const struct json_at *at, size_t index);
/** A loop over an array's entries, as in `json_each (&list, one) TRY (read (&one, err));`. */
#define json_each(list, one)                               \
    for (struct json_at one = json_entry (list, 0); one.v; \
         one = json_entry (list, one.index + 1))

/** "file: place: expected WHAT, found VALUE" with ST_INVALID. */
enum status json_fail (const struct json_at *at, struct error *err, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
/** "file: place: TEXT" with ST_INVALID. */
enum status json_fail_text (const struct json_at *at, struct error *err, const char *fmt,
                            ...) __attribute__ ((format (printf, 3, 4)));

/** json_decref each of these. */
#define JSON_DECREF_ALL(...)                         \
    json_decref_all ((json_t *const[]){__VA_ARGS__}, \
                     sizeof (json_t *const[]){__VA_ARGS__} / sizeof (json_t *))
void json_decref_all (json_t *const *v, size_t n);

/** True if the member is there and not null. */
bool json_has (const struct json_at *at, const char *key);

/* Each returns ST_INVALID with a message when the value is absent or of another kind;
 * outputs are untouched then. */
enum status json_want_object (const struct json_at *at, struct error *err);
/** @param[out] n  the array's length; may be NULL */
enum status json_want_array (const struct json_at *at, size_t *n, struct error *err);
/** @param[out] s  borrowed from the document */
enum status json_want_string (const struct json_at *at, const char **s,
                              struct error *err);
enum status json_want_bool (const struct json_at *at, bool *b, struct error *err);
/** A whole number (12 or 12.0) from lo to hi. */
enum status json_want_int (const struct json_at *at, long long lo, long long hi,
                           long long *n, struct error *err);
/** A finite number x with lo < x (or lo <= x when lo_ok) and x <= hi. */
enum status json_want_number (const struct json_at *at, double lo, bool lo_ok, double hi,
                              double *x, struct error *err);

/* The same of an object's member. */
enum status json_get_string (const struct json_at *at, const char *key, const char **s,
                             struct error *err);
enum status json_get_bool (const struct json_at *at, const char *key, bool *b,
                           struct error *err);
enum status json_get_int (const struct json_at *at, const char *key, int lo, int hi,
                          int *n, struct error *err);
enum status json_get_number (const struct json_at *at, const char *key, double lo,
                             bool lo_ok, double hi, double *x, struct error *err);

/** One of these of a member that may be missing or null, as `TRY_MEMBER (json_get_int, &at, "gpu",
 *  0, 7, &gpu, err)`: where it is, the output stays. */
#define TRY_MEMBER(get, at, key, ...)         \
    do {                                      \
        if (json_has (at, key))               \
            TRY (get (at, key, __VA_ARGS__)); \
    } while (0)

/** Note every member whose name is not among the words of `known`. */
void json_note_unknown (const struct json_at *at, const char *known, struct notes *notes);

/** A member of an object: a text or NULL, a number or 0, a whole number or 0. */
static inline const char *json_member_text (const json_t *object, const char *key)
{
    return json_string_value (json_object_get (object, key));
}
static inline double json_member_number (const json_t *object, const char *key)
{
    return json_number_value (json_object_get (object, key));
}
static inline json_int_t json_member_int (const json_t *object, const char *key)
{
    return json_integer_value (json_object_get (object, key));
}

/** A member that is an object, or a list; an empty one is made where there is none.  Borrowed. */
json_t *json_object_in (json_t *object, const char *key);
json_t *json_array_in (json_t *object, const char *key);

/** The i-th of a list of lists, which has i or more; an empty one is made where it has i.
 *  Borrowed. */
json_t *json_row_in (json_t *rows, int i);

/** The number of a key in an object that numbers its keys 0, 1, ... as they come; a new one gets
 *  the next.
 *  @return -1 when out of memory */
int json_number_of (json_t *numbers, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

/** A JSON number, or null when x is not finite.  A new reference. */
json_t *json_number_or_null (double x);

#endif
