/* What the cells of a row say, and why a row is left out. */
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
    return strcasestr (s, part) != NULL;
}

size_t calibrate_spelled (const char *s, const char *name)
{
    static const char between[] = " -_";
    const char *a = s, *end = s;

    while (*name && tolower ((unsigned char) *a) == tolower ((unsigned char) *name)) {
        end = a + 1;
        a += 1 + strspn (a + 1, between);
        name += 1 + strspn (name + 1, between);
    }
    return *name == '\0' ? (size_t) (end - s) : 0;
}

/* Letters of a name that may stand in other words: "verl" in "overlap". */
#define SHORT_NAME 5

bool calibrate_contains_name (const char *s, const char *name)
{
    bool whole = strlen (name) <= SHORT_NAME;

    for (const char *at = s; *at; at++) {
        size_t n = calibrate_spelled (at, name);

        if (n > 0 && !calibrate_denied (s, at, n) &&
            !(whole && ((at > s && isalnum ((unsigned char) at[-1])) ||
                        isalpha ((unsigned char) at[n]))))
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

/* ---- what is said, and what is denied ---- */

#define WORD 24      /* bytes of a word that is looked at */
#define WORDS_AWAY 3 /* that a word which denies may stand from what it denies */

/* The word that begins at s: letters and digits, "w/o" and "2.5" whole.  @return its length */
static size_t word_at (const char *s, char word[WORD])
{
    size_t n = 0;

    while (isalnum ((unsigned char) s[n]) || (n > 0 && strchr ("'", s[n]) && s[n]) ||
           (n > 0 && s[n] == '.' && isdigit ((unsigned char) s[n + 1])) ||
           (n == 1 && strncasecmp (s, "w/o", 3) == 0))
        n++;
    snprintf (word, WORD, "%.*s", (int) n, s);
    for (char *c = word; *c; c++)
        *c = (char) tolower ((unsigned char) *c);
    return n;
}

/* Does a word of the same clause before it, or a "!" at its word, deny what begins at `at`? */
static bool denied_before (const char *s, const char *at)
{
    static const char no[] = "no not non without w/o never instead than vs versus",
                      stop[] = "with and but plus";
    const char *from = at;
    char word[WORDS_AWAY][WORD];
    int n = 0;

    while (from > s && isalnum ((unsigned char) from[-1])) /* "!QLoRA" is no LoRA */
        from--;
    if (from > s && from[-1] == '!')
        return true;
    while (from > s && !strchr (",;()+", from[-1]))
        from--;
    while (from < at) {
        size_t len = word_at (from, word[n % WORDS_AWAY]);

        n += len > 0;
        from += len + (len == 0);
    }
    for (int i = n - 1; i >= 0 && i >= n - WORDS_AWAY; i--) {
        if (text_has_word (no, word[i % WORDS_AWAY]))
            return true;
        if (text_has_word (stop, word[i % WORDS_AWAY]))
            return false;
    }
    return false;
}

/* Do the words behind it switch it off? */
static bool denied_behind (const char *s)
{
    static const char off[] = "none false off 0 disabled not unused never isn't wasn't "
                              "ooms didn't",
                      idle[] = "is was were be device used using ing ed to cpu of state "
                               "states param params kernel kernels attention attn";
    char word[WORD];
    size_t n;

    for (;;) {
        s += strspn (s, " =:_-\"'");
        if (*s == '(') {
            n = word_at (s + 1, word);
            return s[1 + n] == ')' && text_has_word ("no none false off disabled", word);
        }
        n = word_at (s, word);
        s += n;
        if (n == 0 || text_has_word (off, word))
            return n > 0;
        if (strcmp (word, "no") == 0) /* "LoRA no flash" is of flash */
            return s[strspn (s, " )")] == '\0' || strchr (",;", s[strspn (s, " )")]);
        if (!text_has_word (idle, word))
            return false;
    }
}

bool calibrate_denied (const char *s, const char *at, size_t n)
{
    return denied_before (s, at) || denied_behind (at + n);
}

enum calibrate_said calibrate_says (const char *s, const char *name)
{
    enum calibrate_said said = SAID_NOTHING;

    for (const char *at = s; *at && said != SAID_YES; at++) {
        size_t n = calibrate_spelled (at, name);

        if (n > 0)
            said = calibrate_denied (s, at, n) ? SAID_NO : SAID_YES;
    }
    return said;
}

bool calibrate_says_word (const char *s, const char *name)
{
    for (const char *at = s; *at; at++) {
        size_t n =
            at > s && isalnum ((unsigned char) at[-1]) ? 0 : calibrate_spelled (at, name);

        if (n > 0 && !isalnum ((unsigned char) at[n]) && !calibrate_denied (s, at, n))
            return true;
    }
    return false;
}

bool calibrate_next_item (const char **s, char item[CALIBRATE_ITEM])
{
    size_t n, end;
    bool denied;

    *s += strspn (*s, " ,;");
    denied = **s == '!';
    *s += denied;
    n = end = strcspn (*s, ",;");
    while (end > 0 && (*s)[end - 1] == ' ')
        end--;
    snprintf (item, CALIBRATE_ITEM, "%s%.*s", denied ? "no " : "", (int) end, *s);
    *s += n;
    return denied || end > 0;
}

const char *calibrate_next_word (const char *s, char word[CALIBRATE_ITEM])
{
    size_t n = 0, most;
    bool digits;

    while (*s && !isalnum ((unsigned char) *s))
        s++;
    most = tolower ((unsigned char) *s) == 'x' ? 1 : CALIBRATE_ITEM - 1;
    digits = isdigit ((unsigned char) *s);
    while (n < most && isalnum ((unsigned char) s[n]) &&
           digits == !!isdigit ((unsigned char) s[n])) {
        word[n] = (char) tolower ((unsigned char) s[n]);
        n++;
    }
    word[n] = '\0';
    return n > 0 ? s + n : NULL;
}

/* ---- why rows are left out ---- */

const char *calibrate_refuse (const struct row *r, const char *column,
                              const char *expected)
{
    snprintf (r->why, CALIBRATE_REASON, "%s \"%.40s\": expected %s", column,
              calibrate_cell (r, column), expected);
    text_clean_line (r->why);
    return r->why;
}

int calibrate_count_reason (struct calibrate_reason *list, int *n, const char *why,
                            int row)
{
    int i = 0;

    while (i < *n && strncmp (list[i].reason, why, sizeof list->reason - 1) != 0)
        i++;
    if (i == CALIBRATE_REASONS_MAX)
        i--; /* the last stands for all others */
    if (i == *n) {
        list[i] = (struct calibrate_reason){.first_row = row};
        snprintf (list[i].reason, sizeof list->reason, "%s", why);
        ++*n;
    }
    list[i].count++;
    return i;
}
