/* Shell scripts as data: nothing is ever run.
 *
 * Read are assignments, arrays, words with quotes and $..., and the `if`s whose test is one of two
 * words.  A command that names a Python program has options; where there is none, every array
 * and variable with options counts, and a file whose first word is an option is a list of them.
 * What cannot be evaluated ($(...), $1, loops) is noted and left empty. */
#include "jobs/shell_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define IFS_MAX 64 /* inside each other */

/* An `if`: are its lines taken now, was one of its branches, is its test unknown? */
struct branch {
    bool taking, took, unknown;
};

struct shell {
    struct jobs_script in;
    struct branch branch[IFS_MAX];
    int depth;
    bool ran, noted_if; /* a Python program; said once */
};

/* ---- options ---- */

static bool is_option (const char *word)
{
    return strncmp (word, "--", 2) == 0 && isalpha ((unsigned char) word[2]);
}

/* "|", "2>&1", "&>", which stand in variables that are run. */
static bool ends_command (const char *word)
{
    const char *at = word + strspn (word, "0123456789&");

    return *at == '>' || word[0] == '<' || word[0] == '&' || strcmp (word, "|") == 0;
}

/* --key value ..., --key=value, a flag alone. */
static void say_options (struct jobs_script *s, const struct jobs_words *w)
{
    for (int i = 0; i < w->n && s->st == ST_OK;) {
        const char *equals = strchr (w->word[i], '=');
        struct text value = {0};
        char key[128];
        bool said = equals != NULL;
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
                ends_command (w->word[i]))
                break;
            text_add (&value, "%s%s", value.len ? " " : "", w->word[i]);
            said = true;
        }
        s->st = value.failed ? err_nomem (s->r->err)
                             : jobs_say (s->r, w->line[at], key,
                                         said ? text_str (&value) : "true");
        text_free (&value);
    }
}

/* One value of all: an assignment is not cut at blanks. */
static void join_words (struct jobs_script *s, const char *before, struct jobs_words *w)
{
    struct jobs_words whole = {0};
    struct text t = {0};

    text_add (&t, "%s", before);
    for (int i = 0; i < w->n; i++)
        text_add (&t, "%s%s", i ? " " : "", w->word[i]);
    if (t.failed)
        s->st = err_nomem (s->r->err);
    else
        jobs_words_add (s, &whole, text_str (&t), t.len);
    text_free (&t);
    jobs_words_free (w);
    *w = whole;
}

/* NAME=value, NAME=(words), NAME+=...; s->at is behind the `=`. */
static void assign (struct jobs_script *s, const char *name, size_t len, bool append,
                    bool taken)
{
    bool array = *s->at == '(';
    struct jobs_words w = {0};
    struct jobs_variable *v;

    s->at += array;
    jobs_words_read (s, array ? ")" : " \t\n;&|)", array, &w);
    s->at += array && *s->at == ')';
    v = taken ? jobs_variable_of (s, name, len, true) : NULL;
    for (int i = 0; v && array && append && i < w.n; i++)
        jobs_words_add (s, &v->words, w.word[i], strlen (w.word[i]));
    if (v && !(array && append)) {
        if (!array)
            join_words (s, append && v->words.n > 0 ? v->words.word[0] : "", &w);
        jobs_words_free (&v->words);
        v->words = w;
        return;
    }
    jobs_words_free (&w);
}

/* ---- branches ---- */

/* Two words of a test; -1: it is another test. */
static int tested (const struct jobs_words *w)
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
static int read_test (struct jobs_script *s)
{
    struct jobs_words w = {0};
    int is = -1;
    bool noted = s->noted_value; /* a test may look at what nobody needs */

    s->noted_value = true;
    jobs_words_read (s, ";\n&|", false, &w);
    s->noted_value = noted;
    if (*s->at != '&' && *s->at != '|')
        is = tested (&w);
    s->at += strcspn (s->at, "\n;");
    jobs_words_free (&w);
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
        notes_add (s->in.r->notes,
                   "%s:%d: whether this branch is taken cannot be told without running "
                   "it: all such branches are read, and the last statement of an option "
                   "holds",
                   file_title (s->in.r->file[s->in.r->at]), s->in.line);
    s->noted_if = s->noted_if || unknown;
}

static bool word_is (const char *at, size_t n, const char *word)
{
    return n == strlen (word) && strncmp (at, word, n) == 0;
}

/* Words of the language.  @return false: it is none of them */
static bool control (struct shell *s, size_t n)
{
    struct branch *b = &s->branch[s->depth > 0 ? s->depth - 1 : 0];
    bool is_if = word_is (s->in.at, n, "if");
    int is;

    if (is_if || (s->depth > 0 && word_is (s->in.at, n, "elif"))) {
        if (is_if && s->depth == IFS_MAX) {
            jobs_script_fail (&s->in, "too many ifs inside each other");
            return true;
        }
        if (is_if) {
            b = &s->branch[s->depth];
            *b = (struct branch){.taking = true};
        }
        s->in.at += n;
        is = read_test (&s->in);
        if (is_if)
            s->depth++;
        b->unknown = b->unknown || is < 0;
        b->taking = !b->took && is != 0;
        b->took = b->took || is == 1;
        return true;
    }
    if (s->depth > 0 && word_is (s->in.at, n, "else"))
        b->taking = !b->took;
    else if (s->depth > 0 && word_is (s->in.at, n, "fi"))
        s->depth--;
    else if (!word_is (s->in.at, n, "then"))
        return false;
    s->in.at += n;
    return true;
}

/* ---- statements ---- */

/* Do the words start a Python program, or ms-swift's? */
static bool starts_program (const struct jobs_words *w)
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

/* The words of a command that another shell is given, as of `srun sh -c "python train.py"`. */
static void unwrap (struct jobs_script *s, struct jobs_words *w)
{
    for (int i = 1; i + 1 < w->n; i++) {
        size_t n = strlen (w->word[i - 1]);
        struct jobs_words inner = {0}, whole = {.word = &w->word[i + 1],
                                                .line = &w->line[i + 1],
                                                .n = 1};

        if (strcmp (w->word[i], "-c") != 0 || n < 2 ||
            strcmp (w->word[i - 1] + n - 2, "sh") != 0)
            continue;
        jobs_words_cut (s, &whole, &inner);
        jobs_words_free (w);
        *w = inner;
        return;
    }
}

static void command (struct shell *s)
{
    struct jobs_words w = {0};

    /* Options without a program are no command: a pipe inside a value is none. */
    jobs_words_read (&s->in, is_option (s->in.at) ? "\n;&" : "\n;&|", false, &w);
    unwrap (&s->in, &w);
    if (taking (s) && (starts_program (&w) || (w.n > 0 && is_option (w.word[0])))) {
        s->ran = true;
        note_branch (s);
        say_options (&s->in, &w);
    }
    jobs_words_free (&w);
}

/* ---- Slurm ---- */

/* A word in place of another, and of the one behind it where `both`. */
static void put_word (struct jobs_words *w, int at, char *word, bool both)
{
    free (w->word[at]);
    w->word[at] = word;
    if (!both)
        return;
    free (w->word[at + 1]);
    w->n--;
    for (int i = at + 1; i < w->n; i++) {
        w->word[i] = w->word[i + 1];
        w->line[i] = w->line[i + 1];
    }
}

/* Letters that sbatch takes for its options, with their values at them or behind them. */
static void spell_out (struct jobs_words *w)
{
    static const struct {
        char letter;
        const char *option;
    } letters[] = {{'N', "--nodes="}, {'n', "--ntasks="}, {'G', "--gpus="}};

    for (int i = 0; i < w->n; i++)
        for (size_t k = 0; k < COUNT_OF (letters); k++) {
            struct text t = {0};
            bool behind;

            if (w->word[i][0] != '-' || w->word[i][1] != letters[k].letter)
                continue;
            behind = !w->word[i][2] && i + 1 < w->n;
            text_add (&t, "%s%s", letters[k].option,
                      behind ? w->word[i + 1] : w->word[i] + 2);
            if (t.failed)
                return;
            put_word (w, i, t.s, behind);
        }
}

/* "gpu:h100:8(S:0-1),nvme:100" as 8, "gpu" as 1.  @return false: no resource is GPUs */
static bool count_gpus (struct jobs_said *said)
{
    char *at = said->value;
    const char *last;
    bool named;

    while (strcmp (said->key, "gres") == 0 && strncmp (at, "gpu", 3) != 0) {
        at += strcspn (at, ",");
        if (!*at++)
            return false;
    }
    named = strncmp (at, "gpu", 3) == 0;
    at[strcspn (at, ",(")] = '\0';
    last = strrchr (at, ':');
    last = last ? last + 1 : at;
    memmove (said->value, last, strlen (last) + 1);
    said->value[strspn (said->value, "0123456789")] = '\0';
    if (named && !*said->value)
        memcpy (said->value, "1", 2);
    return true;
}

/* The variable that Slurm sets for an option of sbatch. */
static void set_variables (struct jobs_script *s, const struct jobs_said *said)
{
    static const struct {
        const char *option, *variable;
    } set[] = {{"nodes", "SLURM_NNODES"},
               {"nodes", "SLURM_JOB_NUM_NODES"},
               {"ntasks", "SLURM_NTASKS"},
               {"ntasks-per-node", "SLURM_NTASKS_PER_NODE"},
               {"gpus-per-node", "SLURM_GPUS_PER_NODE"},
               {"gpus-per-node", "SLURM_GPUS_ON_NODE"},
               {"gres", "SLURM_GPUS_ON_NODE"}};

    for (size_t k = 0; k < COUNT_OF (set); k++) {
        struct jobs_variable *v;

        if (strcmp (said->key, set[k].option) != 0 || !*said->value ||
            !(v = jobs_variable_of (s, set[k].variable, strlen (set[k].variable), true)))
            continue;
        jobs_words_free (&v->words);
        jobs_words_add (s, &v->words, said->value, strlen (said->value));
    }
}

/* @param[in] w  an option, and what stands behind it */
static void batch_option (struct jobs_script *s, const struct jobs_words *w)
{
    struct jobs_said *said;
    int from = s->r->n_said;

    say_options (s, w);
    if (s->r->n_said == from)
        return;
    said = &s->r->said[from];
    if ((strncmp (said->key, "gres", 4) == 0 || strncmp (said->key, "gpus", 4) == 0) &&
        !count_gpus (said))
        jobs_drop (s->r, from, s->r->n_runs);
    else
        set_variables (s, said);
}

/* "#SBATCH --nodes=4 --gres=gpu:8": words from s->at on. */
static void batch_options (struct jobs_script *s)
{
    struct jobs_words w = {0};

    jobs_words_read (s, "", false, &w);
    spell_out (&w);
    for (int at = 0, next; at < w.n; at = next) {
        bool valued;

        for (next = at + 1; next < w.n && !is_option (w.word[next]); next++)
            ;
        valued = next > at + 1; /* what follows a value is letters and remarks */
        batch_option (s, &(struct jobs_words){
                             .word = w.word + at, .line = w.line + at, .n = 1 + valued});
    }
    jobs_words_free (&w);
}

static void comment (struct shell *s)
{
    size_t n = strcspn (s->in.at, "\n");
    char *end = s->in.at + n, old = *end;

    *end = '\0';
    if (strncmp (s->in.at, "#SBATCH ", 8) == 0) {
        s->in.at += 8;
        batch_options (&s->in);
    }
    *end = old;
    s->in.at = end;
}

static bool before_assignment (const char *at, size_t n)
{
    return word_is (at, n, "export") || word_is (at, n, "local") ||
           word_is (at, n, "readonly") || word_is (at, n, "declare");
}

static void statement (struct shell *s)
{
    const char *name;
    bool append, declares = false;
    size_t n;

    s->in.at += strspn (s->in.at, " \t\r;&|");
    if (*s->in.at == '#') {
        comment (s);
        return;
    }
    while (n = strcspn (s->in.at, " \t\r\n;"),
           before_assignment (s->in.at, n) || (declares && *s->in.at == '-')) {
        declares = true; /* what follows a dash is its options */
        s->in.at += n + strspn (s->in.at + n, " \t");
    }
    if (control (s, n))
        return;
    n = jobs_name_length (s->in.at);
    append = n > 0 && s->in.at[n] == '+';
    if (n == 0 || s->in.at[n + append] != '=') {
        command (s);
        return;
    }
    name = s->in.at;
    s->in.at += n + append + 1;
    if (taking (s))
        note_branch (s);
    assign (&s->in, name, n, append, taking (s));
}

/* Options that a variable holds, as GPT_ARGS="--num-layers 24 ..." does, and CMD="train.py ...". */
static void say_variable (struct jobs_script *s, const struct jobs_variable *v)
{
    struct jobs_words w = {0};

    jobs_words_cut (s, &v->words, &w);
    if (w.n > 0 && (is_option (w.word[0]) || starts_program (&w)))
        say_options (s, &w);
    jobs_words_free (&w);
}

enum status jobs_shell_read (struct jobs_reading *r, char *text)
{
    struct shell s = {.in = {.r = r, .line = 1, .at = text}};
    struct jobs_script *in = &s.in;

    while (*in->at && in->st == ST_OK) {
        const char *from = in->at;

        if (*in->at == '\n') {
            in->line++;
            in->at++;
            continue;
        }
        statement (&s);
        in->at += in->at == from; /* a character that begins nothing */
    }
    for (int i = 0; i < in->n_variables && !s.ran && in->st == ST_OK; i++)
        say_variable (in, &in->variable[i]);
    jobs_script_release (in);
    return in->st;
}
