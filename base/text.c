#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static bool text_reserve (struct text *t, size_t more)
{
    if (t->failed)
        return false;
    if (t->len + more + 1 > t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 256;

        while (cap < t->len + more + 1)
            cap *= 2;
        char *s = realloc (t->s, cap);

        if (!s) {
            memory_lost ();
            t->failed = true;
            return false;
        }
        t->s = s;
        t->cap = cap;
    }
    return true;
}

void text_add_mem (struct text *t, const char *bytes, size_t n)
{
    if (!text_reserve (t, n))
        return;
    memcpy (t->s + t->len, bytes, n);
    t->len += n;
    t->s[t->len] = '\0';
}

void text_add (struct text *t, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    int n = vsnprintf (NULL, 0, fmt, ap);
    va_end (ap);
    if (n < 0 || !text_reserve (t, (size_t) n))
        return;
    va_start (ap, fmt);
    vsnprintf (t->s + t->len, (size_t) n + 1, fmt, ap);
    va_end (ap);
    t->len += (size_t) n;
}

const char *text_str (const struct text *t)
{
    return t->s ? t->s : "";
}

void text_free (struct text *t)
{
    free (t->s);
    *t = (struct text){0};
}

/* Bytes of the character at s in UTF-8 (RFC 3629), 0 where none begins. */
static size_t utf8_length (const unsigned char *s)
{
    size_t n = s[0] < 0x80    ? 1
               : s[0] < 0xc2  ? 0
               : s[0] < 0xe0  ? 2
               : s[0] < 0xf0  ? 3
               : s[0] <= 0xf4 ? 4
                              : 0;

    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* Does the character turn the direction of what follows it (U+202A to U+202E, U+2066 to U+2069), or
 * end the line (U+2028, U+2029)? */
static bool reorders (const unsigned char *s)
{
    return s[0] == 0xe2 && ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
                            (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

/* Control characters: ASCII's, those of ISO 8859, which UTF-8 has as C2 80 to C2 9F, those that
 * show other text in another order, and single bytes that are no text. */
static void clean (char *line, bool keeps_newlines)
{
    for (unsigned char *s = (unsigned char *) line; *s;) {
        size_t n = utf8_length (s);
        bool control =
            n == 0 || (n == 1 && iscntrl (*s) && !(keeps_newlines && *s == '\n')) ||
            (n == 2 && s[0] == 0xc2 && s[1] < 0xa0) || (n == 3 && reorders (s));

        n = n ? n : 1;
        if (control)
            memset (s, '?', n);
        s += n;
    }
}

void text_clean (struct text *t)
{
    if (t->s)
        clean (t->s, true);
}

void text_clean_lines (char *lines)
{
    clean (lines, true);
}

void text_clean_line (char *line)
{
    clean (line, false);
}

int text_words (char *line, char **word, int max)
{
    char *rest, *w;
    int n = 0;

    while (n < max && (w = strtok_r (n ? NULL : line, " \t", &rest)))
        word[n++] = w;
    return n;
}

int text_cells (char *line, char separator, const char *trim, char **cell, int max)
{
    int n = 0;

    for (char *s = line, *end; s && n < max; s = end) {
        if ((end = strchr (s, separator)))
            *end++ = '\0';
        s += strspn (s, trim);
        for (char *last = s + strlen (s); last > s && strchr (trim, last[-1]);)
            *--last = '\0';
        cell[n++] = s;
    }
    return n;
}

bool text_whole (const char *s, long lo, long hi, long *out)
{
    char *end;
    long x;

    errno = 0;
    x = strtol (s, &end, 10);
    if (end == s || *end || errno || x < lo || x > hi)
        return false;
    *out = x;
    return true;
}

bool text_number (const char *s, double *out)
{
    char *end;
    double x = strtod (s, &end);

    if (end == s || *end || !isfinite (x))
        return false;
    *out = x;
    return true;
}

bool text_has_word (const char *words, const char *word)
{
    size_t len = strcspn (word, " ");

    if (len == 0 || word[len])
        return false;
    /* Cells of runs files ask for each of their words in many lists, most of which lack it. */
    for (const char *at = words; (at = strstr (at, word)); at++)
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

/* Row i of the table: distances of a's first i letters to all beginnings of b. */
int text_distance (const char *a, const char *b)
{
    int row[3][TEXT_FAR], n = (int) strlen (b);

    if (strlen (a) >= TEXT_FAR || n >= TEXT_FAR)
        return TEXT_FAR;
    for (int k = 0; k <= n; k++)
        row[0][k] = k;
    for (int i = 1; a[i - 1]; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];

        now[0] = i;
        for (int k = 1; k <= n; k++) {
            int x = tolower ((unsigned char) a[i - 1]),
                y = tolower ((unsigned char) b[k - 1]);
            int least = last[k - 1] + (x != y);

            if (i > 1 && k > 1 && x == tolower ((unsigned char) b[k - 2]) &&
                y == tolower ((unsigned char) a[i - 2]) && before[k - 2] + 1 < least)
                least = before[k - 2] + 1;
            if (last[k] + 1 < least)
                least = last[k] + 1;
            now[k] = now[k - 1] + 1 < least ? now[k - 1] + 1 : least;
        }
    }
    return row[strlen (a) % 3][n];
}

bool text_near_try (struct text_near *near, const char *word, size_t n)
{
    char copy[TEXT_FAR];
    size_t asked = strlen (near->asked);
    int d, most = near->word[0] ? near->distance - 1 : (int) (asked + 1) / 3;

    if (n == 0 || n >= TEXT_FAR)
        return false;
    snprintf (copy, sizeof copy, "%.*s", (int) n, word);
    /* Of two that are as near, one that was begun: h100 for h10, not a10. */
    if (near->word[0] && strncmp (copy, near->asked, asked) == 0 &&
        strncmp (near->word, near->asked, asked) != 0)
        most++;
    d = text_distance (near->asked, copy);
    if (d == TEXT_FAR || d > most)
        return false;
    memcpy (near->word, copy, sizeof copy);
    near->distance = d;
    return true;
}

const char *text_near_hint (const struct text_near *near, const char *before,
                            char buf[TEXT_HINT])
{
    buf[0] = '\0';
    if (near->word[0])
        snprintf (buf, TEXT_HINT, "; did you mean %s%s?", before, near->word);
    return buf;
}

void text_add_sh (struct text *t, const char *s)
{
    text_add_mem (t, "'", 1);
    for (; *s; s++) {
        if (*s == '\'')
            text_add_mem (t, "'\\''", 4);
        else
            text_add_mem (t, s, 1);
    }
    text_add_mem (t, "'", 1);
}

void notes_add (struct notes *n, const char *fmt, ...)
{
    if (!n)
        return;
    if (n->n == NOTES_MAX) {
        n->dropped++;
        return;
    }

    va_list ap;
    char line[1024];

    va_start (ap, fmt);
    vsnprintf (line, sizeof line, fmt, ap);
    va_end (ap);
    text_clean_line (line);
    if ((n->line[n->n] = strdup (line)))
        n->n++;
    else
        memory_lost ();
}

void notes_reading (const struct notes *n, const char *file, double share)
{
    if (n && n->reading)
        n->reading (n->context, file, share);
}

void notes_free (struct notes *n)
{
    for (int i = 0; i < n->n; i++)
        free (n->line[i]);
    *n = (struct notes){0};
}

struct table {
    int columns;
    int cells; /* header included */
    char **cell;
};

static void table_put (struct table *t, const char *s)
{
    char *copy = array_grow (&t->cell, t->cells, sizeof *t->cell) ? strdup (s) : NULL;

    if (!copy) {
        memory_lost ();
        return;
    }
    text_clean_line (copy);
    t->cell[t->cells++] = copy;
}

struct table *table_create (const char *const *header)
{
    struct table *t = calloc (1, sizeof *t);

    if (!t) {
        memory_lost ();
        return NULL;
    }
    while (header[t->columns])
        table_put (t, header[t->columns++]);
    return t;
}

void table_cell (struct table *t, const char *fmt, ...)
{
    if (!t)
        return;

    char s[256];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (s, sizeof s, fmt, ap);
    va_end (ap);
    table_put (t, s);
}

void table_number (struct table *t, const char *format, double x)
{
    table_cell (t, isfinite (x) ? format : "-", x);
}

void table_print (const struct table *t, FILE *out)
{
    int *width = t ? calloc ((size_t) t->columns, sizeof *width) : NULL;

    if (!width) {
        memory_lost ();
        return;
    }
    for (int i = 0; i < t->cells; i++) {
        int w = (int) strlen (t->cell[i]) - (i < t->columns && t->cell[i][0] == '<');

        if (w > width[i % t->columns])
            width[i % t->columns] = w;
    }
    for (int row = 0; row < t->cells; row += t->columns) {
        int filled = t->columns;

        while (filled > 1 && row + filled <= t->cells && !t->cell[row + filled - 1][0])
            filled--;
        for (int col = 0; col < filled && row + col < t->cells; col++) {
            bool left = t->cell[col][0] == '<', last = col == filled - 1;
            const char *s = t->cell[row + col] + (row == 0 && left ? 1 : 0);

            /* No blanks at a line's end. */
            if (left && last)
                fputs (s, out);
            else
                fprintf (out, left ? "%-*s" : "%*s", width[col], s);
            fputs (last ? "\n" : "  ", out);
        }
    }
    free (width);
}

void table_destroy (struct table *t)
{
    if (!t)
        return;
    memory_free_texts (t->cell, t->cells);
    free (t);
}

void table_end (struct table *t, FILE *out)
{
    table_print (t, out);
    table_destroy (t);
}
