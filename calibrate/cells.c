/* What the cells of a row say. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *calibrate_cell (const struct row *r, const char *name)
{
    const struct csv_table *t = r->table;
    int column = csv_table_column (t, name, 0);

    return column < 0
               ? ""
               : t->cell[(size_t) r->index * (size_t) t->columns + (size_t) column];
}

bool calibrate_number (const char *s, double *x)
{
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
    if (!calibrate_number (calibrate_cell (r, name), &x) || x < 0 || x > 1 << 30 ||
        x != floor (x))
        return -1;
    return (int) x;
}

bool calibrate_stated (const struct row *r, const char *name, double absent, double *x)
{
    *x = absent;
    return calibrate_cell (r, name)[0] == '\0' ||
           (calibrate_number (calibrate_cell (r, name), x) && *x > 0);
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
    end += end == value ? 0 : strspn (end, " ");
    return end == value || *end || n < 0 || n > 1 << 30 ? -1 : (int) n;
}

bool calibrate_note_true (const struct row *r, const char *key)
{
    char value[64];

    return calibrate_note (r, key, value, sizeof value) && strcmp (value, "true") == 0;
}
