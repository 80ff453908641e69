/* Words of a shell line, with what quotes, variables and arithmetic make of them. */
#include "jobs/shell_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

#define WORDS_MAX 20000               /* of a script, all together */
#define BYTES_MAX ((size_t) 16 << 20) /* of these words */
#define TERM_MAX (1LL << 60)          /* of arithmetic, so that two never overflow */
#define NUMBER_MAX (1L << 40)         /* of what is written */

void jobs_script_fail (struct jobs_script *s, const char *what)
{
    if (s->st == ST_OK)
        s->st = jobs_refuse (s->r, s->line, "%s", what);
}

void jobs_script_release (struct jobs_script *s)
{
    for (int i = 0; i < s->n_variables; i++) {
        free (s->variable[i].name);
        jobs_words_free (&s->variable[i].words);
    }
    free (s->variable);
}

void jobs_words_free (struct jobs_words *w)
{
    memory_free_texts (w->word, w->n);
    free (w->line);
    *w = (struct jobs_words){0};
}

void jobs_words_add (struct jobs_script *s, struct jobs_words *w, const char *text,
                     size_t len)
{
    char *copy;

    if (s->st != ST_OK)
        return;
    s->n_bytes += len;
    if (len > JOBS_VALUE_MAX || ++s->n_words > WORDS_MAX || s->n_bytes > BYTES_MAX) {
        jobs_script_fail (s, len > JOBS_VALUE_MAX
                                 ? "a value is too long"
                                 : "its words are too many to be a job's");
        return;
    }
    copy = strndup (text, len);
    if (!copy || !array_grow (&w->word, (size_t) w->n, sizeof *w->word) ||
        !array_grow (&w->line, (size_t) w->n, sizeof *w->line)) {
        free (copy);
        s->st = err_nomem (s->r->err);
        return;
    }
    w->line[w->n] = s->line;
    w->word[w->n++] = copy;
}

/* ---- variables ---- */

struct jobs_variable *jobs_variable_of (struct jobs_script *s, const char *name,
                                        size_t len, bool make)
{
    struct jobs_variable *v;

    for (int i = 0; i < s->n_variables; i++)
        if (strncmp (s->variable[i].name, name, len) == 0 &&
            s->variable[i].name[len] == '\0')
            return &s->variable[i];
    if (!make || s->st != ST_OK)
        return NULL;
    if (!array_grow (&s->variable, (size_t) s->n_variables, sizeof *s->variable)) {
        s->st = err_nomem (s->r->err);
        return NULL;
    }
    v = &s->variable[s->n_variables];
    *v = (struct jobs_variable){.name = strndup (name, len)};
    if (!v->name) {
        s->st = err_nomem (s->r->err);
        return NULL;
    }
    s->n_variables++;
    return v;
}

size_t jobs_name_length (const char *s)
{
    size_t n = 0;

    if (isalpha ((unsigned char) *s) || *s == '_')
        while (isalnum ((unsigned char) s[n]) || s[n] == '_')
            n++;
    return n;
}

static void note_unknown (struct jobs_script *s, const char *what, size_t len)
{
    if (!s->noted_value)
        notes_add (s->r->notes,
                   "%s:%d: %.*s cannot be evaluated without running it, and is taken as "
                   "empty; so are others like it",
                   file_title (s->r->file[s->r->at]), s->line,
                   (int) (len < 60 ? len : 60), what);
    s->noted_value = true;
}

/* ---- arithmetic: + - * / % and brackets on whole numbers ---- */

struct sum {
    struct jobs_script *s;
    const char *at;
    int depth;
    bool bad;
};

static long long chain (struct sum *e, bool sums);

static long long number_of (struct sum *e, const char *name, size_t len)
{
    const struct jobs_variable *v = jobs_variable_of (e->s, name, len, false);
    long x;

    if (v && v->words.n && text_whole (v->words.word[0], -NUMBER_MAX, NUMBER_MAX, &x))
        return x;
    e->bad = true;
    return 0;
}

static long long factor (struct sum *e)
{
    long long x = 0;
    size_t n;
    char *end;

    e->at += strspn (e->at, " \t");
    if (*e->at == '(' && ++e->depth < 50) {
        e->at++;
        x = chain (e, true);
        e->at += strspn (e->at, " \t");
        e->bad = e->bad || *e->at != ')';
        e->at += *e->at == ')';
        return x;
    }
    if (isdigit ((unsigned char) *e->at)) {
        x = strtoll (e->at, &end, 10);
        e->at = end;
        e->bad = e->bad || x > NUMBER_MAX;
        return x;
    }
    e->at += *e->at == '$';
    if (*e->at == '{' && (n = jobs_name_length (e->at + 1)) > 0 && e->at[n + 1] == '}') {
        x = number_of (e, e->at + 1, n);
        e->at += n + 2;
    } else if ((n = jobs_name_length (e->at)) > 0) {
        x = number_of (e, e->at, n);
        e->at += n;
    } else
        e->bad = true;
    return x;
}

/* Terms with + and - between them, or the factors of one. */
static long long chain (struct sum *e, bool sums)
{
    long long x = sums ? chain (e, false) : factor (e);

    for (;;) {
        long long y;
        char op;

        e->at += strspn (e->at, " \t");
        op = *e->at;
        if (e->bad || !op || !strchr (sums ? "+-" : "*/%", op))
            return x;
        e->at++;
        y = sums ? chain (e, false) : factor (e);
        if (op == '*')
            e->bad = e->bad || (y != 0 && llabs (x) > TERM_MAX / llabs (y));
        else if (!sums)
            e->bad = e->bad || y == 0;
        if (!e->bad)
            x = op == '+'   ? x + y
                : op == '-' ? x - y
                : op == '*' ? x * y
                : op == '/' ? x / y
                            : x % y;
        e->bad = e->bad || llabs (x) > TERM_MAX;
    }
}

/* ---- words ---- */

/* A word that grows, and where it goes: an unquoted $X is cut at blanks. */
struct growing {
    struct text text;
    bool any; /* quotes make an empty word one */
    struct jobs_words *out;
};

static void end_word (struct jobs_script *s, struct growing *g)
{
    if (g->any || g->text.len)
        jobs_words_add (s, g->out, text_str (&g->text), g->text.len);
    if (g->text.failed)
        s->st = err_nomem (s->r->err);
    text_free (&g->text);
    g->any = false;
}

static void put (struct jobs_script *s, struct growing *g, const char *value, bool quoted)
{
    if (g->text.len + strlen (value) > JOBS_VALUE_MAX) {
        jobs_script_fail (s, "a value is too long");
        return;
    }
    if (quoted) {
        text_add_mem (&g->text, value, strlen (value));
        return;
    }
    for (; *value; value++)
        if (isspace ((unsigned char) *value))
            end_word (s, g);
        else
            text_add_mem (&g->text, value, 1);
}

static void put_variable (struct jobs_script *s, struct growing *g,
                          const struct jobs_variable *v, bool all, bool quoted)
{
    int n = all ? v->words.n : v->words.n > 0;

    for (int i = 0; i < n && s->st == ST_OK; i++) {
        if (i > 0)
            end_word (s, g);
        put (s, g, v->words.word[i], quoted);
    }
}

/* The end of a bracket that opens at *at, or NULL. */
static const char *closing (const char *at, char open, char close)
{
    int depth = 0;

    for (; *at; at++) {
        depth += *at == open;
        depth -= *at == close;
        if (*at == close && depth == 0)
            return at;
    }
    return NULL;
}

/* ${NAME}, ${NAME[@]}, ${NAME:-default}, ${1:-default}; `at` is behind the brace. */
static void put_braced (struct jobs_script *s, struct growing *g, const char *at,
                        const char *end, bool quoted)
{
    size_t n = jobs_name_length (at);
    const struct jobs_variable *v = n ? jobs_variable_of (s, at, n, false) : NULL;
    bool all;

    while (n == 0 && isdigit ((unsigned char) at[n]))
        n++;
    all = strncmp (at + n, "[@]", 3) == 0 || strncmp (at + n, "[*]", 3) == 0;
    if (v && (at + n == end || all || at[n] == ':' || at[n] == '-')) {
        put_variable (s, g, v, all, quoted);
        return;
    }
    if (!v && n > 0 &&
        (at[n] == '-' || (at[n] == ':' && (at[n + 1] == '-' || at[n + 1] == '=')))) {
        const char *from = at + n + (at[n] == ':' ? 2 : 1);
        size_t len = (size_t) (end - from);
        char *word;

        if (len > 1 && (*from == '"' || *from == '\'') && from[len - 1] == *from) {
            from++;
            len -= 2;
        }
        if (memchr (from, '$', len) || !(word = strndup (from, len))) {
            note_unknown (s, at, (size_t) (end - at));
            return;
        }
        put (s, g, word, quoted);
        free (word);
        return;
    }
    if (!all)
        note_unknown (s, at - 2, (size_t) (end - at) + 3);
}

/* What follows a '$'; s->at is on it.  @return how far it went */
static size_t put_dollar (struct jobs_script *s, struct growing *g, const char *at,
                          bool quoted)
{
    const char *end;
    size_t n;

    if (strncmp (at, "$((", 3) == 0 && (end = closing (at + 1, '(', ')')) &&
        end[-1] == ')') {
        struct sum e = {.s = s, .at = at + 3};
        long long x = chain (&e, true);
        char value[32];

        e.at += strspn (e.at, " \t");
        snprintf (value, sizeof value, "%lld", x);
        if (e.bad || *e.at != ')')
            note_unknown (s, at, (size_t) (end - at) + 1);
        else
            put (s, g, value, quoted);
        return (size_t) (end - at) + 1;
    }
    if (at[1] == '(' && (end = closing (at + 1, '(', ')'))) {
        note_unknown (s, at, (size_t) (end - at) + 1);
        return (size_t) (end - at) + 1;
    }
    if (at[1] == '{' && (end = closing (at + 1, '{', '}'))) {
        put_braced (s, g, at + 2, end, quoted);
        return (size_t) (end - at) + 1;
    }
    n = jobs_name_length (at + 1);
    if (n > 0) {
        const struct jobs_variable *v = jobs_variable_of (s, at + 1, n, false);

        if (v)
            put_variable (s, g, v, false, quoted);
        else
            note_unknown (s, at, n + 1);
        return n + 1;
    }
    if (at[1] && strchr ("@*#?!$0123456789", at[1])) {
        if (at[1] != '@' && at[1] != '*')
            note_unknown (s, at, 2);
        return 2;
    }
    put (s, g, "$", true);
    return 1;
}

/* In double quotes, from behind the first to behind the last. */
static void put_quoted (struct jobs_script *s, struct growing *g)
{
    g->any = true;
    while (*s->at && *s->at != '"' && s->st == ST_OK) {
        if (*s->at == '\\' && s->at[1] == '\n') {
            s->line++;
            s->at += 2;
        } else if (*s->at == '\\' && s->at[1] && strchr ("\"\\$`", s->at[1])) {
            text_add_mem (&g->text, s->at + 1, 1);
            s->at += 2;
        } else if (*s->at == '$') {
            s->at += put_dollar (s, g, s->at, true);
        } else {
            s->line += *s->at == '\n';
            text_add_mem (&g->text, s->at++, 1);
        }
    }
    s->at += *s->at == '"';
}

/* Words up to one of the characters `stop`, or the end; that is not taken. */
void jobs_words_read (struct jobs_script *s, const char *stop, bool lines,
                      struct jobs_words *out)
{
    struct growing g = {.out = out};

    while (*s->at && s->st == ST_OK && !strchr (stop, *s->at)) {
        char c = *s->at;

        if (c == '\\' && (s->at[1] == '\n' || strncmp (s->at + 1, "\r\n", 2) == 0)) {
            s->at += s->at[1] == '\n' ? 2 : 3;
            s->line++;
        } else if (c == '\\' && s->at[1]) {
            text_add_mem (&g.text, s->at + 1, 1);
            s->at += 2;
        } else if (c == '\'') {
            size_t n = strcspn (s->at + 1, "'");

            g.any = true;
            for (size_t i = 1; i <= n; i++)
                s->line += s->at[i] == '\n';
            text_add_mem (&g.text, s->at + 1, n);
            s->at += n + 1 + (s->at[n + 1] == '\'');
        } else if (c == '"') {
            s->at++;
            put_quoted (s, &g);
        } else if (c == '$') {
            s->at += put_dollar (s, &g, s->at, false);
        } else if (c == '#' && g.text.len == 0 && !g.any) {
            s->at += strcspn (s->at, "\n");
        } else if (isspace ((unsigned char) c)) {
            end_word (s, &g);
            s->line += c == '\n' && lines;
            s->at++;
        } else {
            text_add_mem (&g.text, s->at++, 1);
        }
    }
    end_word (s, &g);
}

void jobs_words_cut (struct jobs_script *s, const struct jobs_words *from,
                     struct jobs_words *out)
{
    struct growing g = {.out = out};

    for (int i = 0; i < from->n && s->st == ST_OK; i++) {
        s->line = from->line[i];
        put (s, &g, from->word[i], false);
        end_word (s, &g);
    }
}
