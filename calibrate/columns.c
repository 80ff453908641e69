/* The columns of a runs file, and what their cells say. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define COLUMNS                                                                        \
    "source model params_b layers hidden heads kv_heads ffn vocab seq gpu gpu_mem_gb " \
    "gpus gpus_per_node inter_node_gbps tp pp vpp dp cp ep sp zero micro_batch "       \
    "global_batch precision attention recompute iter_time_s tokens_per_s_per_gpu "     \
    "tflops_per_gpu mfu peak_mem_gb oom notes"

/* Without them no row can be used; where the header has no `model`, sizes are needed too. */
static const char needed[] = "seq gpu gpus";

enum status calibrate_check_columns (const char *path, struct calibrate_runs *runs,
                                     struct error *err)
{
    const struct csv_table *t = &runs->table;
    char columns[] = COLUMNS, *column[64];
    int n = text_words (columns, column, 64);
    bool named = csv_table_column (t, "model", 0) >= 0;
    struct text missing = {0}, refused = {0};
    enum status st = ST_OK;

    for (int i = 0; i < n; i++) {
        int at = csv_table_column (t, column[i], 0);

        if (at < 0) {
            text_add (&missing, "%s%s", missing.len ? ", " : "", column[i]);
            if (text_has_word (needed, column[i]) ||
                (!named && text_has_word (CALIBRATE_SIZES, column[i])))
                text_add (&refused, "%s%s", refused.len ? ", " : "", column[i]);
        } else if (csv_table_column (t, column[i], at + 1) >= 0) {
            st = err_set (err, ST_INVALID, "%s: the header has %s twice",
                          file_title (path), column[i]);
        }
    }
    if (refused.len > 0)
        st = err_set (
            err, ST_INVALID, "%s: the header lacks %s%s", file_title (path),
            text_str (&refused),
            named ? "" : ": a runs file needs them, or a model's name for its sizes");
    if (missing.len > 0)
        snprintf (runs->absent, sizeof runs->absent, "%s", text_str (&missing));
    text_free (&missing);
    text_free (&refused);
    return st;
}

const char *calibrate_cell (const struct row *r, const char *name)
{
    const struct csv_table *t = r->table;
    int column = csv_table_column (t, name, 0);

    return column < 0
               ? ""
               : t->cell[(size_t) r->index * (size_t) t->columns + (size_t) column];
}

/* A number, which words in brackets may follow ("1(8)" is 1); false when empty or none. */
static bool number (const struct row *r, const char *name, double *x)
{
    const char *s = calibrate_cell (r, name);
    char *end;
    double value = strtod (s, &end);

    if (end == s || !isfinite (value))
        return false;
    end += strspn (end, " ");
    if (*end != '\0' && *end != '(')
        return false;
    *x = value;
    return true;
}

int calibrate_whole (const struct row *r, const char *name, int absent)
{
    double x;

    if (calibrate_cell (r, name)[0] == '\0')
        return absent;
    if (!number (r, name, &x) || x < 0 || x > 1 << 30 || x != floor (x))
        return -1;
    return (int) x;
}

bool calibrate_stated (const struct row *r, const char *name, double absent, double *x)
{
    *x = absent;
    return calibrate_cell (r, name)[0] == '\0' || (number (r, name, x) && *x > 0);
}

bool calibrate_contains (const char *s, const char *part)
{
    size_t n = strlen (part);

    for (; *s; s++)
        if (strncasecmp (s, part, n) == 0)
            return true;
    return false;
}

bool calibrate_contains_name (const char *s, const char *name)
{
    static const char between[] = " -_";

    for (; *s; s++) {
        const char *a = s, *b = name;

        while (*b && tolower ((unsigned char) *a) == tolower ((unsigned char) *b)) {
            a += 1 + strspn (a + 1, between);
            b += 1 + strspn (b + 1, between);
        }
        if (*b == '\0')
            return true;
    }
    return false;
}

bool calibrate_note (const struct row *r, const char *key, char *value, size_t size)
{
    const char *s = calibrate_cell (r, "notes");
    size_t n = strlen (key);

    while (*s) {
        size_t len = strcspn (s, ";"), skip = strspn (s, " ");

        if (len > skip + n && strncmp (s + skip, key, n) == 0 && s[skip + n] == '=') {
            snprintf (value, size, "%.*s", (int) (len - skip - n - 1), s + skip + n + 1);
            return true;
        }
        s += len + (s[len] == ';');
    }
    return false;
}

int calibrate_note_int (const struct row *r, const char *key, int absent)
{
    char value[64], *end;
    long n;

    if (!calibrate_note (r, key, value, sizeof value))
        return absent;
    n = strtol (value, &end, 10);
    return end == value || n < 0 || n > 1 << 30 ? -1 : (int) n;
}

bool calibrate_note_true (const struct row *r, const char *key)
{
    char value[64];

    return calibrate_note (r, key, value, sizeof value) && strcmp (value, "true") == 0;
}
