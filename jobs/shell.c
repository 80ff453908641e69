/* Shell scripts as data: nothing is ever run.
 *
 * Read are assignments, arrays, words with quotes and $..., and the `if`s whose test is one of two
 * words.  A command that names a Python program has options; where there is none, every array
 * and variable with options counts, and a file whose first word is an option is a list of them.
 * What cannot be evaluated ($(...), $1, loops) is noted and left empty. */
#include "jobs/jobs_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"

#define WORDS_MAX 20000 /* of a script, all together */
#define IFS_MAX 64      /* inside each other */

struct words {
    char **word;
    int *line;
    int n;
};

struct variable {
    char *name;
    struct words words; /* of an array; one word otherwise */
    bool array;
};

/* An `if`: are its lines taken now, was one of its branches, is its test unknown? */
struct branch {
    bool taking, took, unknown;
};

struct shell {
    struct jobs_reading *r;
    int file, line;
    char *at; /* what is left of the script */
    struct variable *variable;
    int n_variables, n_words;
    struct branch branch[IFS_MAX];
    int depth;
    bool ran, noted_value, noted_if; /* a Python program; said once each */
    enum status st;
};

static void fail (struct shell *s, const char *what)
{
    if (s->st == ST_OK)
        s->st = err_set (s->r->err, ST_INVALID, "%s: line %d: %s",
                         file_title (s->r->file[s->file]), s->line, what);
}

static void free_words (struct words *w)
{
    for (int i = 0; i < w->n; i++)
        free (w->word[i]);
    free (w->word);
    free (w->line);
    *w = (struct words){0};
}

static void add_word (struct shell *s, struct words *w, const char *text, size_t len)
{
    char *copy;

    if (s->st != ST_OK)
        return;
    if (len > JOBS_VALUE_MAX || ++s->n_words > WORDS_MAX) {
        fail (s, len > JOBS_VALUE_MAX ? "a value is too long"
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

static struct variable *variable_of (struct shell *s, const char *name, size_t len,
                                     bool make)
{
    struct variable *v;

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
    *v = (struct variable){.name = strndup (name, len)};
    if (!v->name) {
        s->st = err_nomem (s->r->err);
        return NULL;
    }
    s->n_variables++;
    return v;
}

static size_t name_length (const char *s)
{
    size_t n = 0;

    if (isalpha ((unsigned char) *s) || *s == '_')
        while (isalnum ((unsigned char) s[n]) || s[n] == '_')
            n++;
    return n;
}

static void note_unknown (struct shell *s, const char *what, size_t len)
{
    if (!s->noted_value)
        notes_add (s->r->notes,
                   "%s:%d: %.*s cannot be evaluated without running it, and is taken as "
                   "empty; so are others like it",
                   file_title (s->r->file[s->file]), s->line, (int) (len < 60 ? len : 60),
                   what);
    s->noted_value = true;
}

/* ---- arithmetic: + - * / % and brackets on whole numbers ---- */

struct sum {
    struct shell *s;
    const char *at;
    int depth;
    bool bad;
};

static long long term (struct sum *e);

static long long number_of (struct shell *s, const char *name, size_t len, bool *bad)
{
    const struct variable *v = variable_of (s, name, len, false);
    char *end = NULL;
    long long x = v && v->words.n ? strtoll (v->words.word[0], &end, 10) : 0;

    if (!v || !v->words.n || *end != '\0' || end == v->words.word[0] || x > 1LL << 40 ||
        x < -(1LL << 40))
        *bad = true;
    return *bad ? 0 : x;
}

static long long sum_of (struct sum *e)
{
    long long x = term (e);

    for (;;) {
        e->at += strspn (e->at, " \t");
        if (e->bad || (*e->at != '+' && *e->at != '-'))
            return x;
        x = *e->at++ == '+' ? x + term (e) : x - term (e);
    }
}

static long long factor (struct sum *e)
{
    long long x = 0;
    size_t n;
    char *end;

    e->at += strspn (e->at, " \t");
    if (*e->at == '(' && ++e->depth < 50) {
        e->at++;
        x = sum_of (e);
        e->at += strspn (e->at, " \t");
        e->bad = e->bad || *e->at != ')';
        e->at += *e->at == ')';
        return x;
    }
    if (isdigit ((unsigned char) *e->at)) {
        x = strtoll (e->at, &end, 10);
        e->at = end;
        e->bad = e->bad || x > 1LL << 40;
        return x;
    }
    e->at += *e->at == '$';
    if (*e->at == '{' && (n = name_length (e->at + 1)) > 0 && e->at[n + 1] == '}') {
        x = number_of (e->s, e->at + 1, n, &e->bad);
        e->at += n + 2;
    } else if ((n = name_length (e->at)) > 0) {
        x = number_of (e->s, e->at, n, &e->bad);
        e->at += n;
    } else
        e->bad = true;
    return x;
}

static long long term (struct sum *e)
{
    long long x = factor (e);

    for (;;) {
        char op;
        long long y;

        e->at += strspn (e->at, " \t");
        op = *e->at;
        if (e->bad || (op != '*' && op != '/' && op != '%'))
            return x;
        e->at++;
        y = factor (e);
        if (op == '*' ? llabs (x) > 1LL << 20 && llabs (y) > 1LL << 40 : y == 0)
            e->bad = true;
        else
            e->bad =
                e->bad || (op == '*' && y != 0 && llabs (x) > (1LL << 60) / llabs (y));
        if (!e->bad)
            x = op == '*' ? x * y : op == '/' ? x / y : x % y;
    }
}

/* ---- words ---- */

/* A word that grows, and where it goes: an unquoted $X is cut at blanks. */
struct growing {
    struct text text;
    bool any; /* quotes make an empty word one */
    struct words *out;
};

static void end_word (struct shell *s, struct growing *g)
{
    if (g->any || g->text.len)
        add_word (s, g->out, text_str (&g->text), g->text.len);
    if (g->text.failed)
        s->st = err_nomem (s->r->err);
    text_free (&g->text);
    g->any = false;
}

static void put (struct shell *s, struct growing *g, const char *value, bool quoted)
{
    if (g->text.len + strlen (value) > JOBS_VALUE_MAX) {
        fail (s, "a value is too long");
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

static void put_variable (struct shell *s, struct growing *g, const struct variable *v,
                          bool all, bool quoted)
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
static void put_braced (struct shell *s, struct growing *g, const char *at,
                        const char *end, bool quoted)
{
    size_t n = name_length (at);
    const struct variable *v = n ? variable_of (s, at, n, false) : NULL;
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
static size_t put_dollar (struct shell *s, struct growing *g, const char *at, bool quoted)
{
    const char *end;
    size_t n;

    if (strncmp (at, "$((", 3) == 0 && (end = closing (at + 1, '(', ')')) &&
        end[-1] == ')') {
        struct sum e = {.s = s, .at = at + 3};
        long long x = sum_of (&e);
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
    n = name_length (at + 1);
    if (n > 0) {
        const struct variable *v = variable_of (s, at + 1, n, false);

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
static void put_quoted (struct shell *s, struct growing *g)
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
static void read_words (struct shell *s, const char *stop, bool lines, struct words *out)
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

/* ---- statements ---- */

static bool is_option (const char *word)
{
    return strncmp (word, "--", 2) == 0 && isalpha ((unsigned char) word[2]);
}

/* --key value ..., --key=value, a flag alone. */
static void say_options (struct shell *s, const struct words *w)
{
    for (int i = 0; i < w->n && s->st == ST_OK;) {
        const char *equals = strchr (w->word[i], '=');
        struct text value = {0};
        char key[128];
        int at = i++;

        if (!is_option (w->word[at]))
            continue;
        snprintf (key, sizeof key, "%.*s",
                  (int) (equals ? equals - w->word[at] - 2 : 120), w->word[at] + 2);
        if (equals)
            text_add (&value, "%s", equals + 1);
        for (; !equals && i < w->n && !is_option (w->word[i]); i++) {
            size_t n = strlen (w->word[i]);

            if ((n > 3 && strcmp (w->word[i] + n - 3, ".py") == 0) ||
                strcmp (w->word[i], "|") == 0)
                break;
            text_add (&value, "%s%s", value.len ? " " : "", w->word[i]);
        }
        s->st = value.failed
                    ? err_nomem (s->r->err)
                    : jobs_say (s->r, s->file, w->line[at], -1, key,
                                value.len || equals ? text_str (&value) : "true");
        text_free (&value);
    }
}

static void assign (struct shell *s, const char *name, size_t len, bool append)
{
    struct words w = {0};
    struct variable *v;
    bool array = *s->at == '(';

    if (array) {
        s->at++;
        read_words (s, ")", true, &w);
        s->at += *s->at == ')';
    } else
        read_words (s, " \t\n;&|)", false, &w);
    v = variable_of (s, name, len, true);
    if (!v) {
        free_words (&w);
        return;
    }
    if (append && array) {
        for (int i = 0; i < w.n; i++)
            add_word (s, &v->words, w.word[i], strlen (w.word[i]));
        free_words (&w);
        return;
    }
    /* One value: "$A $B" was one word in quotes. */
    if (append && w.n > 0 && v->words.n > 0) {
        struct text t = {0};

        text_add (&t, "%s%s", v->words.word[0], w.word[0]);
        free_words (&w);
        add_word (s, &w, text_str (&t), t.len);
        text_free (&t);
    }
    free_words (&v->words);
    v->words = w;
    v->array = array;
}

/* Two words of a test; -1: it is another test. */
static int tested (const struct words *w)
{
    const char *op;

    if (w->n == 4 && strcmp (w->word[1], "-z") == 0)
        return w->word[2][0] == '\0';
    if (w->n == 4 && strcmp (w->word[1], "-n") == 0)
        return w->word[2][0] != '\0';
    if (w->n != 5 || (strcmp (w->word[0], "[") != 0 && strcmp (w->word[0], "[[") != 0))
        return -1;
    op = w->word[2];
    if (strcmp (op, "==") == 0 || strcmp (op, "=") == 0 || strcmp (op, "-eq") == 0)
        return strcmp (w->word[1], w->word[3]) == 0;
    if (strcmp (op, "!=") == 0 || strcmp (op, "-ne") == 0)
        return strcmp (w->word[1], w->word[3]) != 0;
    if (strcmp (op, "-gt") == 0)
        return atol (w->word[1]) > atol (w->word[3]);
    if (strcmp (op, "-lt") == 0)
        return atol (w->word[1]) < atol (w->word[3]);
    return -1;
}

/* The test behind `if` and `elif`, to the end of its line or its `;`. */
static int read_test (struct shell *s)
{
    struct words w = {0};
    int is = -1;
    bool noted = s->noted_value; /* a test may look at what nobody needs */

    s->noted_value = true;
    read_words (s, ";\n&|", false, &w);
    s->noted_value = noted;
    if (*s->at != '&' && *s->at != '|')
        is = tested (&w);
    s->at += strcspn (s->at, "\n;");
    free_words (&w);
    return is;
}

static bool taking (const struct shell *s)
{
    for (int i = 0; i < s->depth; i++)
        if (!s->branch[i].taking)
            return false;
    return true;
}

/* What is read now: is it in a branch that may not be taken? */
static void note_branch (struct shell *s)
{
    bool unknown = false;

    for (int i = 0; i < s->depth; i++)
        unknown = unknown || s->branch[i].unknown;
    if (unknown && !s->noted_if)
        notes_add (s->r->notes,
                   "%s:%d: whether this branch is taken cannot be told without running "
                   "it: all such branches are read, and the last statement of an option "
                   "holds",
                   file_title (s->r->file[s->file]), s->line);
    s->noted_if = s->noted_if || unknown;
}

/* Words of the language.  @return false: it is none of them */
static bool control (struct shell *s, size_t n)
{
    struct branch *b = &s->branch[s->depth > 0 ? s->depth - 1 : 0];
    bool is_if = n == 2 && strncmp (s->at, "if", 2) == 0;
    int is;

    if (is_if || (s->depth > 0 && n == 4 && strncmp (s->at, "elif", 4) == 0)) {
        if (is_if && s->depth == IFS_MAX) {
            fail (s, "too many ifs inside each other");
            return true;
        }
        if (is_if) {
            b = &s->branch[s->depth];
            *b = (struct branch){.taking = true};
        }
        s->at += n;
        is = read_test (s);
        if (is_if)
            s->depth++;
        b->unknown = b->unknown || is < 0;
        b->taking = !b->took && is != 0;
        b->took = b->took || is == 1;
        return true;
    }
    if (s->depth > 0 && n == 4 && strncmp (s->at, "else", 4) == 0)
        b->taking = !b->took;
    else if (s->depth > 0 && n == 2 && strncmp (s->at, "fi", 2) == 0)
        s->depth--;
    else if (!(n == 4 && strncmp (s->at, "then", 4) == 0))
        return false;
    s->at += n;
    return true;
}

/* Do the words start a Python program, or ms-swift's? */
static bool starts_program (const struct words *w)
{
    for (int i = 0; i < w->n; i++) {
        size_t n = strlen (w->word[i]);
        const char *next = i + 1 < w->n ? w->word[i + 1] : NULL;

        if ((n > 3 && strcmp (w->word[i] + n - 3, ".py") == 0) ||
            (next && strcmp (w->word[i], "-m") == 0) ||
            (next && strcmp (w->word[i], "megatron") == 0 &&
             text_has_word ("pt sft rlhf", next)))
            return true;
    }
    return false;
}

static void command (struct shell *s)
{
    struct words w = {0};

    /* Options without a program are no command: a pipe inside a value is none. */
    read_words (s, is_option (s->at) ? "\n;&" : "\n;&|", false, &w);
    if (taking (s) && (starts_program (&w) || (w.n > 0 && is_option (w.word[0])))) {
        s->ran = true;
        note_branch (s);
        say_options (s, &w);
    }
    free_words (&w);
}

/* "#SBATCH --nodes=4" */
static void comment (struct shell *s)
{
    size_t n = strcspn (s->at, "\n");
    struct words w = {0};
    char *end = s->at + n, old = *end;

    *end = '\0';
    if (strncmp (s->at, "#SBATCH ", 8) == 0) {
        s->at += 8;
        read_words (s, "", false, &w);
        say_options (s, &w);
    }
    free_words (&w);
    *end = old;
    s->at = end;
}

static void statement (struct shell *s)
{
    size_t n;

    s->at += strspn (s->at, " \t\r;&|");
    if (*s->at == '#') {
        comment (s);
        return;
    }
    for (;;) { /* words in front of an assignment */
        n = strcspn (s->at, " \t\r\n;");
        if (!((n == 6 && strncmp (s->at, "export", 6) == 0) ||
              (n == 5 && strncmp (s->at, "local", 5) == 0) ||
              (n == 8 && strncmp (s->at, "readonly", 8) == 0) ||
              (n == 7 && strncmp (s->at, "declare", 7) == 0)))
            break;
        s->at += n;
        s->at += strspn (s->at, " \t");
    }
    if (control (s, n))
        return;
    n = name_length (s->at);
    if (n > 0 && (s->at[n] == '=' || (s->at[n] == '+' && s->at[n + 1] == '='))) {
        const char *name = s->at;
        bool append = s->at[n] == '+';
        char *from = s->at + n + 1 + append;

        s->at = from;
        if (taking (s)) {
            note_branch (s);
            assign (s, name, n, append);
        } else {
            struct words w = {0};

            s->at += *from == '(';
            read_words (s, *from == '(' ? ")" : " \t\n;", *from == '(', &w);
            free_words (&w);
        }
        return;
    }
    command (s);
}

static void release (struct shell *s)
{
    for (int i = 0; i < s->n_variables; i++) {
        free (s->variable[i].name);
        free_words (&s->variable[i].words);
    }
    free (s->variable);
}

/* Options that a variable holds, as GPT_ARGS="--num-layers 24 ..." does, and CMD="train.py ...". */
static void say_variable (struct shell *s, const struct variable *v)
{
    struct words w = {0};
    struct growing g = {.out = &w};

    for (int i = 0; i < v->words.n && s->st == ST_OK; i++) {
        s->line = v->words.line[i];
        put (s, &g, v->words.word[i], false);
        end_word (s, &g);
    }
    if (w.n > 0 && (is_option (w.word[0]) || starts_program (&w)))
        say_options (s, &w);
    free_words (&w);
}

enum status jobs_shell_read (struct jobs_reading *r, int file, char *text)
{
    struct shell s = {.r = r, .file = file, .line = 1, .at = text};

    while (*s.at && s.st == ST_OK) {
        char *from = s.at;

        if (*s.at == '\n') {
            s.line++;
            s.at++;
            continue;
        }
        statement (&s);
        s.at += s.at == from; /* a character that begins nothing */
    }
    for (int i = 0; i < s.n_variables && !s.ran && s.st == ST_OK; i++)
        say_variable (&s, &s.variable[i]);
    release (&s);
    return s.st;
}
