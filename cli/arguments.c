/* Tables of options into argp's, and what was given into the struct that they name.  Every
 * table is a group of argp's with a struct group as its input; parse serves them all. */
#include "cli/arguments.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/cli.h"
#include "jobs/jobs.h"

/* ---- tables ---- */

#define OPTIONS_MAX 32
#define GROUPS_MAX (CLI_PARTS_MAX + 1)

/* One table as argp wants it: the command's own, or a part's. */
struct group {
    const struct cli_command *command; /* NULL: a part's */
    const struct cli_options *options;
    char *input;
    int arguments; /* that were given */
    struct argp argp;
    struct argp_option option[OPTIONS_MAX + 1];
};

/* ---- one option ---- */

#define TYPE_PLACE "; the GPU's type stands in the cluster, as in \"4x8 h100\""

/* The option of the same table that a number was meant for: argp takes --sequence for the only
 * option that begins so, --sequence-parallel, and that is no number.  NULL: none */
static const char *number_option (const struct cli_option *o, const struct group *g)
{
    for (const struct cli_option *line = g->options->line; line->name; line++)
        if (line->kind == CLI_KIND_INT &&
            strncmp (o->name, line->name, strlen (line->name)) == 0)
            return line->name;
    return NULL;
}

/* --name: expected a, b or c, found "x" */
static void refuse_word (const struct cli_option *o, const char *given,
                         struct argp_state *state)
{
    struct text words = {0};
    const char *word = o->argument, *end, *other, *dtype = jobs_dtype_of (given);
    struct text_near near = {.asked = dtype ? dtype : given};
    char hint[TEXT_HINT];
    long n;

    for (; (end = strchr (word, '|')); word = end + 1) {
        text_add (&words, "%s%.*s", word == o->argument ? "" : ", ", (int) (end - word),
                  word);
        text_near_try (&near, word, (size_t) (end - word));
    }
    text_near_try (&near, word, strlen (word));
    if (text_whole (given, LONG_MIN, LONG_MAX, &n) &&
        (other = number_option (o, state->input)))
        snprintf (near.word, sizeof near.word, "--%s", other);
    usage_error (state, "--%s: expected %s or %s, found \"%s\"%s", o->name,
                 text_str (&words), word, given, text_near_hint (&near, "", hint));
}

/* "8k", "4,096" and "4_096" are said in digits. */
static void refuse_number (const struct cli_option *o, const char *given,
                           struct argp_state *state)
{
    char digits[16], hint[64] = "";
    size_t n = 0;
    long whole;

    for (const char *s = given; *s && n < sizeof digits - 1; s++)
        if (*s != '_' && (*s != ',' || strspn (s + 1, "0123456789") != 3))
            digits[n++] = *s;
    digits[n] = '\0';
    if (n > 1 && strchr ("kK", digits[n - 1])) {
        digits[n - 1] = '\0';
        if (text_whole (digits, 1, (long) o->hi / 1024, &whole))
            snprintf (hint, sizeof hint, "; did you mean %ld?", 1024 * whole);
    } else if (text_whole (digits, (long) o->lo, (long) o->hi, &whole)) {
        snprintf (hint, sizeof hint, "; did you mean %ld?", whole);
    }
    usage_error (state, "--%s: expected a whole number from %.0f to %.0f, found \"%s\"%s",
                 o->name, o->lo, o->hi, given, hint);
}

static void take (const struct cli_option *o, const char *given, void *value,
                  struct argp_state *state)
{
    long n = 0;
    double x = 0;

    switch (o->kind) {
    case CLI_KIND_FLAG:
        *(bool *) value = true;
        return;
    case CLI_KIND_TEXT:
        *(const char **) value = given;
        return;
    case CLI_KIND_INT:
        if (!text_whole (given, (long) o->lo, (long) o->hi, &n))
            refuse_number (o, given, state);
        *(int *) value = (int) n;
        return;
    case CLI_KIND_ABOVE:
        if (!text_number (given, &x) || x <= o->lo || x > o->hi)
            usage_error (state,
                         "--%s: expected a number above %g, at most %g, found \"%s\"%s",
                         o->name, o->lo, o->hi, given,
                         /* --gpu is a beginning of --gpu-mtbf */
                         topology_gpu_type_meant (given) ? TYPE_PLACE : "");
        *(double *) value = x;
        return;
    case CLI_KIND_FROM_0:
        if (!text_number (given, &x) || x < 0 || x > o->hi)
            usage_error (state, "--%s: expected a number from 0 to %g, found \"%s\"",
                         o->name, o->hi, given);
        *(double *) value = x;
        return;
    case CLI_KIND_WORD:
        *(int *) value = usage_word (o->argument, given);
        if (*(int *) value < 0)
            refuse_word (o, given, state);
        return;
    case CLI_KIND_PARSED:
        if (!o->parse (given, value))
            refuse_word (o, given, state);
        return;
    case CLI_KIND_TAKEN:
        o->take (o, given, value, state);
        return;
    }
}

/* ---- unknown options ---- */

/* Beside argp's own. */
static const struct option argp_own[] = {{"quiet", no_argument, NULL, 0},
                                         {"help", no_argument, NULL, 0},
                                         {"usage", no_argument, NULL, 0},
                                         {"version", no_argument, NULL, 0}};
#define OWN (sizeof argp_own / sizeof *argp_own)

/* What getopt wants: long options, each with a number of its own, by which it tells abbreviations
 * of several; and letters ("o:j").
 * @param[out] all  [GROUPS_MAX * OPTIONS_MAX + OWN + 1]; @param[out] letters  [2 * that] */
#define LONG_OPTION 256 /* their numbers, above all letters */
static void list_options (const struct group *g, struct option *all, char *letters)
{
    struct option *next = all;

    for (int i = 0; i < GROUPS_MAX; i++)
        for (const struct argp_option *o = g[i].option; o->name; o++) {
            *next++ = (struct option){o->name, o->arg ? required_argument : no_argument,
                                      NULL, 0};
            if (o->key < 256) {
                *letters++ = (char) o->key;
                if (o->arg)
                    *letters++ = ':';
            }
        }
    memcpy (next, argp_own, sizeof argp_own);
    next[OWN] = (struct option){0};
    for (struct option *o = all; o->name; o++)
        o->val = LONG_OPTION + (int) (o - all);
    strcpy (letters, "?Vq");
}

/* What other programs call an option, by a word of its name; GPUs are counted by nodes here. */
static const char *const other_words[][2] = {
    {"gpus", "nodes"},       {"ngpus", "nodes"},
    {"world-size", "nodes"}, {"tensor", "tp"},
    {"pipeline", "pp"},      {"data", "dp"},
    {"context", "cp"},       {"expert", "ep"},
    {"gbs", "global-batch"}, {"batch-size", "global-batch"},
    {"mbs", "micro-batch"},  {"dtype", "precision"},
    {"bf16", "precision"},   {"fp8", "precision"},
    {"fsdp", "zero"},        {"checkpointing", "recompute"},
    {"flash", "attention"},  {"framework", "profile"}};

/* Has a name of words between dashes this one, or these? */
static bool has_words (const char *name, const char *words)
{
    size_t n = strlen (words);

    for (const char *s = name; (s = strstr (s, words)); s++)
        if ((s == name || s[-1] == '-') && (s[n] == '-' || !s[n]))
            return true;
    return false;
}

/* Of an option that is like no other: the longest that it begins with, one that is a word of it or
 * has it as a part, or what other programs' word in it means. */
static void guess_option (const struct option *all, struct text_near *near)
{
    const char *asked = near->asked, *found = NULL;
    size_t most = 2;

    for (const struct option *o = all; o->name; o++)
        if (strlen (o->name) > most && strncmp (asked, o->name, strlen (o->name)) == 0) {
            found = o->name;
            most = strlen (o->name);
        }
    for (const struct option *o = all; o->name && !found; o++)
        if (has_words (asked, o->name) || (strlen (asked) > 2 && strstr (o->name, asked)))
            found = o->name;
    for (size_t i = 0; i < sizeof other_words / sizeof *other_words && !found; i++)
        for (const struct option *o = all; o->name && !found; o++)
            if (has_words (asked, other_words[i][0]) &&
                strcmp (o->name, other_words[i][1]) == 0)
                found = o->name;
    if (found)
        snprintf (near->word, sizeof near->word, "%s", found);
}

/* Does an option's name begin with the word of an argument, as --model does with MODEL's? */
static bool is_argument (const char *arguments, const char *name)
{
    for (const char *s = arguments; *s; s++) {
        size_t n = strspn (s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

        if (n > 0 && strncasecmp (s, name, n) == 0 && (!name[n] || name[n] == '-'))
            return true;
        s += n > 0 ? n - 1 : 0;
    }
    return false;
}

/* A size of the model, which no option gives. */
static bool is_size (const char *name)
{
    static const char *const sizes[] = {"layers", "hidden",     "hidden-size", "heads",
                                        "ffn",    "vocab-size", "params"};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (has_words (name, sizes[i]))
            return true;
    return false;
}

/* What says an option that is none, where the answer is no option but the cluster, the model, or
 * the degrees of a program that has none. */
static const char *hint_argument (const struct option *all, const char *name)
{
    static const char *const counts[] = {"gpus", "ngpus", "world-size"};
    bool one = false;

    if (is_size (name))
        return "; a model's sizes stand in its config.json, which is MODEL";
    for (const struct option *o = all; o->name; o++)
        one = one || strcmp (o->name, "gpu") == 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (has_words (name, counts[i]))
            return one ? "; how many GPUs is what --dp, --tp and the like make, as in "
                         "--dp 8"
                       : "; fewer GPUs are fewer nodes, or a smaller cluster, as \"2x8 "
                         "h100\"";
    return has_words (name, "gpu-type") || has_words (name, "gpu") ? TYPE_PLACE : "";
}

/* An option that is none, or the beginning of several. */
static void refuse_option (const struct option *all, const char *arguments,
                           const char *program, const char *name)
{
    struct text_near near = {.asked = name};
    struct text line = {0};
    char hint[TEXT_HINT];
    bool argument = is_argument (arguments, name), known = argument || is_size (name);
    int n = 0;

    text_add (&line, "unrecognized option '--%s'", name);
    for (const struct option *o = all; o->name; o++)
        if (strncmp (o->name, name, strlen (name)) == 0)
            text_add (&line, "%s--%s",
                      n++ > 0 ? ", " : ": more than one option begins so, ", o->name);
    for (const struct option *o = all; o->name && n == 0 && !known; o++)
        text_near_try (&near, o->name, strlen (o->name));
    if (!near.word[0] && n == 0 && !known)
        guess_option (all, &near);
    text_add (&line, "%s", text_near_hint (&near, "--", hint));
    if (argument)
        text_add (&line, "; it is an argument without a name: %s %.*s", program,
                  (int) strcspn (arguments, "\n"), arguments);
    else
        text_add (&line, "%s", hint_argument (all, name));
    if (n == 0 && !near.word[0] && !known)
        text_add (&line, " (`%s --help` lists them)", program);
    text_clean (&line);
    fprintf (stderr, "%s: %s\n", program, text_str (&line));
    text_free (&line);
    exit (2);
}

/* "-tp 8" is letters; the option of that name, or NULL. */
static const char *one_dash (const struct option *all, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        for (const struct option *o = all; o->name && argv[i][0] == '-'; o++)
            if (strlen (o->name) == strcspn (argv[i] + 1, "=") &&
                strncmp (o->name, argv[i] + 1, strlen (o->name)) == 0)
                return o->name;
    return NULL;
}

/* Options that nobody knows, which getopt's own messages show as they were given.  Goes through a
 * copy of the line, since getopt sorts it. */
static void refuse_unknown (const struct group *g, int argc, char **argv)
{
    struct option all[GROUPS_MAX * OPTIONS_MAX + OWN + 1];
    char letters[2 * GROUPS_MAX * OPTIONS_MAX + 5];
    char **copy = malloc (((size_t) argc + 1) * sizeof *copy), name[256];
    const char *last;
    int key = 0;

    if (!copy)
        return; /* argp says that the option is unknown */
    memcpy (copy, argv, ((size_t) argc + 1) * sizeof *copy);
    list_options (g, all, letters);
    opterr = optind = optopt = 0;
    while (key != -1 && (key != '?' || (optopt != 0 && (optopt >= LONG_OPTION ||
                                                        strchr (letters, optopt)))))
        key = getopt_long (argc, copy, letters, all, NULL);
    last = key == '?' ? copy[optind - 1] : "";
    free (copy);
    if (key == '?' && optopt != 0) {
        const char *meant = one_dash (all, argc, argv);

        fprintf (stderr, "%s: invalid option -- '%c'%s%s%s (`%s --help` lists them)\n",
                 argv[0], optopt < ' ' || optopt > '~' ? '?' : optopt,
                 meant ? "; did you mean --" : "", meant ? meant : "", meant ? "?" : "",
                 argv[0]);
        exit (2);
    }
    if (key == '?') {
        last += strspn (last, "-");
        snprintf (name, sizeof name, "%.*s", (int) strcspn (last, "="), last);
        refuse_option (all, g->command->arguments, argv[0], name);
    }
}

/* ---- parsing ---- */

static void take_arguments (struct group *g, char **arg, int n, struct argp_state *state)
{
    const struct cli_places *p = &g->command->places;
    const size_t *at = g->command->at;

    g->arguments = n;
    if (g->command->list) {
        *(struct cli_list *) (g->input + at[0]) =
            (struct cli_list){(const char *const *) arg, n};
        return;
    }
    if (p->most == 0)
        usage_error (state, "no argument expected, found \"%s\"%s", arg[0],
                     p->expected ? p->expected : "");
    if (n > p->most) {
        struct text hint = {0};
        int nodes, gpus;
        char more;

        /* "4x8 h100" without quotes is two. */
        for (int i = 0; i + 1 < n && hint.len == 0; i++)
            if (sscanf (arg[i], "%dx%d%c", &nodes, &gpus, &more) == 2)
                text_add (&hint, "; quote the cluster: \"%s %s\"", arg[i], arg[i + 1]);
        if (hint.len == 0 && g->options->line->name &&
            strcmp (g->options->line->name, "gpu") == 0 &&
            topology_gpu_type_meant (arg[p->most]))
            text_add (&hint, ": a GPU type goes with --gpu");
        usage_error (state, "%s expected, found \"%s\" too%s", p->expected, arg[p->most],
                     text_str (&hint));
    }
    for (int i = 0; i < n; i++)
        *(const char **) (g->input + at[i]) = arg[i];
}

static const char *text_of (const struct group *g, const struct cli_option *line)
{
    return *(const char **) (g->input + line->at);
}

static bool is_complete (const struct group *g)
{
    const struct cli_command *c = g->command;

    for (const struct cli_option *line = g->options->line; line->name; line++)
        if (line->needed && !text_of (g, line))
            return false;
    return g->arguments >= c->places.needed || c->counted;
}

static void refuse_contradictions (const struct group *g, struct argp_state *state)
{
    const char *alone = NULL;
    bool json = false, verbose = false;

    for (const struct cli_option *line = g->options->line; line->name; line++) {
        if (line->alone && cli_is_dash (text_of (g, line)))
            alone = line->alone;
        if (line->letter == 'j')
            json = *(bool *) (g->input + line->at);
        if (line->letter == 'v')
            verbose = *(bool *) (g->input + line->at);
    }
    if (json && alone)
        usage_error (state, "--json and %s - both want standard output", alone);
    if (verbose && cli_is_quiet ())
        usage_error (state, "--verbose and --quiet contradict each other");
}

static error_t parse (int key, char *given, struct argp_state *state)
{
    struct group *g = state->input;
    const struct cli_command *c = g->command;

    switch (key) {
    case ARGP_KEY_INIT: /* groups of parts follow their command's */
        for (int i = 0; c && i < CLI_PARTS_MAX && c->parts[i].options; i++)
            state->child_inputs[i] = g + 1 + i;
        return 0;
    case ARGP_KEY_ARGS: /* the command's own group is asked before its parts */
        take_arguments (g, state->argv + state->next, state->argc - state->next, state);
        return 0;
    case ARGP_KEY_END:
        if (c && !is_complete (g))
            usage_error (state, "%s", c->places.required);
        if (g->options->check)
            g->options->check (g->input, state);
        refuse_contradictions (g, state);
        return 0;
    default:
        for (int i = 0; g->option[i].name; i++)
            if (key == g->option[i].key) {
                const struct cli_option *line = &g->options->line[i];

                take (line, given, g->input + line->at, state);
                return 0;
            }
        return ARGP_ERR_UNKNOWN;
    }
}

/* --quiet, which all commands have. */
static const struct argp_option quiet_option[] = {
    {"quiet", 'q', NULL, 0, "show no progress line and no warnings", -1}, {0}};

static error_t parse_quiet (int key, char *given, struct argp_state *state)
{
    (void) given;
    (void) state;
    if (key != 'q')
        return ARGP_ERR_UNKNOWN;
    cli_be_quiet ();
    return 0;
}

static const struct argp quiet_argp = {.options = quiet_option, .parser = parse_quiet};

static void fill_group (struct group *g, const struct cli_options *options, void *input)
{
    const struct cli_option *line = options->line;

    g->options = options;
    g->input = input;
    if (options->init)
        options->init (input);
    for (int i = 0; line->name; i++, line++) {
        assert (i < OPTIONS_MAX);
        g->option[i] = (struct argp_option){
            line->name,
            line->letter ? line->letter : 256 + i, /* after all characters */
            line->argument,
            0,
            line->help,
            options->group + line->group};
        if (line->usual)
            take (line, line->usual, g->input + line->at, NULL);
    }
    g->argp = (struct argp){.options = g->option, .parser = parse};
}

static void print_version (FILE *out, struct argp_state *state)
{
    (void) state;
    fputs ("linkwise " LINKWISE_VERSION "\n", out);
}

void cli_parse (const struct cli_command *c, int argc, char **argv, void *input)
{
    struct group group[GROUPS_MAX] = {{.command = c}};
    struct argp_child child[CLI_PARTS_MAX + 2] = {{0}};
    struct text help = {0};
    int n_parts = 0;

    for (; n_parts < CLI_PARTS_MAX && c->parts[n_parts].options; n_parts++) {
        const struct cli_part *part = &c->parts[n_parts];
        struct group *g = &group[n_parts + 1];

        fill_group (g, part->options, (char *) input + part->at);
        child[n_parts] = (struct argp_child){&g->argp, 0, part->heading, part->group};
    }
    child[n_parts].argp = &quiet_argp;
    fill_group (&group[0], &c->options, input); /* and defaults over the parts' */
    text_add (&help, "%s", c->help);
    for (int i = 0; c->choice && c->choice (i); i++)
        text_add (&help, "  %-*s %s\n", c->choice_width, c->choice (i)->name,
                  c->choice (i)->what);
    if (c->add_help)
        c->add_help (&help);
    group[0].argp.args_doc = c->arguments;
    group[0].argp.doc = text_str (&help);
    group[0].argp.children = child;

    refuse_unknown (group, argc, argv);
    argp_err_exit_status = 2;
    argp_program_version_hook = print_version;
    errno = argp_parse (&group[0].argp, argc, argv, 0, NULL, &group[0]);
    text_free (&help);
    if (errno != 0 || memory_take_lost ()) {
        fprintf (stderr, "%s: out of memory\n", argv[0]);
        exit (1);
    }

    const struct cli_places *p = &c->places;
    int n = group[0].arguments;

    if (c->counted && (n < p->needed || n > p->most)) {
        fprintf (stderr, "%s: expected %s, found %d argument%s\n", argv[0], c->counted, n,
                 TEXT_S (n));
        exit (2);
    }
}
