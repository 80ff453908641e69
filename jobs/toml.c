/* The part of TOML that job descriptions use: tables, bare, quoted and dotted keys, strings,
 * numbers, booleans, and arrays of these, over several lines too.  What else there is (multi-line
 * strings, inline tables, arrays of tables) is refused by line. */
#include "jobs/jobs_private.h"

#include <ctype.h>
#include <string.h>

#define KEY_MAX 256

struct toml {
    struct jobs_reading *r;
    int line;
    const char *at;
    char table[KEY_MAX];
};

static enum status refuse (const struct toml *t, const char *what)
{
    return jobs_refuse (t->r, t->line, "%s", what);
}

/* Blanks and comments; newlines too where `lines`. */
static void skip (struct toml *t, bool lines)
{
    for (;;) {
        t->at += strspn (t->at, " \t\r");
        if (*t->at == '#')
            t->at += strcspn (t->at, "\n");
        if (*t->at != '\n' || !lines)
            return;
        t->line++;
        t->at++;
    }
}

static bool is_bare (char c)
{
    return isalnum ((unsigned char) c) || c == '_' || c == '-';
}

/* a.b or a."b" behind what `out` holds. */
static enum status read_key (struct toml *t, char out[KEY_MAX])
{
    size_t n = strlen (out);

    for (;;) {
        char quote = *t->at == '"' || *t->at == '\'' ? *t->at++ : '\0';
        const char *from = t->at;
        size_t len;

        while (*t->at && *t->at != '\n' && (quote ? *t->at != quote : is_bare (*t->at)))
            t->at++;
        len = (size_t) (t->at - from);
        if ((quote && *t->at != quote) || (!quote && len == 0))
            return refuse (t, "expected a name");
        t->at += quote != '\0';
        if (n + len + 2 > KEY_MAX)
            return refuse (t, "a name is too long");
        if (n > 0)
            out[n++] = '.';
        memcpy (out + n, from, len);
        out[n += len] = '\0';
        skip (t, false);
        if (*t->at != '.')
            return ST_OK;
        t->at++;
        skip (t, false);
    }
}

static enum status read_string (struct toml *t, struct text *out)
{
    char quote = *t->at;

    if (strncmp (t->at, quote == '"' ? "\"\"\"" : "'''", 3) == 0)
        return refuse (t, "strings of several lines are not read");
    for (t->at++; *t->at && *t->at != '\n' && *t->at != quote; t->at++) {
        if (quote == '"' && *t->at == '\\' && t->at[1] && t->at[1] != '\n')
            t->at++;
        text_add_mem (out, t->at, 1);
    }
    if (*t->at != quote)
        return refuse (t, "a string does not end on its line");
    t->at++;
    return ST_OK;
}

/* A value; of an array, its entries with blanks between them. */
static enum status read_value (struct toml *t, struct text *out, int depth)
{
    if (*t->at == '"' || *t->at == '\'')
        return read_string (t, out);
    if (*t->at == '{')
        return refuse (t, "tables in braces are not read");
    if (*t->at == '[') {
        if (depth == 4)
            return refuse (t, "arrays nested too deep");
        for (t->at++;;) {
            skip (t, true);
            if (*t->at == ']') {
                t->at++;
                return ST_OK;
            }
            if (out->len)
                text_add (out, "%s", *t->at == '[' ? "," : " ");
            TRY (read_value (t, out, depth + 1));
            skip (t, true);
            if (*t->at == ',')
                t->at++;
            else if (*t->at != ']')
                return refuse (t, "expected , or ] in an array");
        }
    }
    if (!is_bare (*t->at) && *t->at != '+' && *t->at != '.')
        return refuse (t, "expected a value");
    while (is_bare (*t->at) || *t->at == '+' || *t->at == '.' || *t->at == ':')
        text_add_mem (out, t->at++, 1);
    return ST_OK;
}

static enum status read_line (struct toml *t)
{
    char key[KEY_MAX];
    struct text value = {0};
    int line;
    enum status st;

    if (*t->at == '[') {
        if (t->at[1] == '[')
            return refuse (t, "arrays of tables are not read");
        t->at++;
        t->table[0] = '\0';
        skip (t, false);
        TRY (read_key (t, t->table));
        if (*t->at++ != ']')
            return refuse (t, "expected ] behind a table's name");
        return ST_OK;
    }
    memcpy (key, t->table, KEY_MAX);
    TRY (read_key (t, key));
    if (*t->at != '=')
        return refuse (t, "expected = behind a name");
    t->at++;
    skip (t, false);
    line = t->line;
    st = read_value (t, &value, 0);
    THEN (st, value.failed ? err_nomem (t->r->err)
                           : jobs_say (t->r, line, key, text_str (&value)));
    text_free (&value);
    return st;
}

enum status jobs_toml_read (struct jobs_reading *r, char *text)
{
    struct toml t = {.r = r, .line = 1, .at = text};

    for (skip (&t, true); *t.at; skip (&t, true)) {
        TRY (read_line (&t));
        skip (&t, false);
        if (*t.at && *t.at != '\n')
            return refuse (&t, "expected the line's end");
    }
    return ST_OK;
}
