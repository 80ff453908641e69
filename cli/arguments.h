/* A command is a table: one line an option, saying what --help shows and where the value
 * goes.  arguments.c makes argp's tables of it and parses. */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include <argp.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/* ---- options ---- */

struct cli_option;

/** A kind of option: put what was given into *value, or end with argp_error. */
typedef void cli_take (const struct cli_option *o, const char *given, void *value,
                       struct argp_state *state);

struct cli_option {
    const char *name; /* NULL ends a table */
    char letter;      /* 0: none */
    const char
        *argument; /* as --help shows it, a|b|c where words are given; NULL: a flag */
    const char *help;
    cli_take *take;
    size_t at;     /* where the value is in the struct that the table fills */
    double lo, hi; /* limits of a number */
    bool (*parse) (const char *given, void *value); /* of cli_take_parsed */
};

/* The end of an option's line, its kind: the name of a member of the struct that the table
 * fills, for which the file defines INPUT, and limits.  A member of another type is warned
 * about. */
#define CLI_AT(type, member) \
    (offsetof (INPUT, member) + 0 * sizeof ((type *) 0 == &((INPUT *) 0)->member))
#define CLI_TAKE(take_it, type, member) .take = take_it, .at = CLI_AT (type, member)
#define CLI_FLAG(member) CLI_TAKE (cli_take_flag, bool, member)
#define CLI_TEXT(member) CLI_TAKE (cli_take_text, const char *, member)
/** A whole number. */
#define CLI_INT(member, least, most) \
    CLI_TAKE (cli_take_int, int, member), .lo = least, .hi = most
/** From 0 to 2^30. */
#define CLI_SEED(member) \
    CLI_TAKE (cli_take_seed, unsigned long, member), .lo = 0, .hi = 1 << 30
/** A number above the first, at most the second. */
#define CLI_ABOVE(member, below, most) \
    CLI_TAKE (cli_take_above, double, member), .lo = below, .hi = most
/** A number from 0, which counts. */
#define CLI_FROM_0(member, most) CLI_TAKE (cli_take_from_0, double, member), .hi = most
/** One of the argument's words: its place among them, from 0. */
#define CLI_WORD(member) CLI_TAKE (cli_take_word, int, member)
/** One of the argument's words, as a function has it: false for another. */
#define CLI_PARSED(parse_it, type, member) \
    CLI_TAKE (cli_take_parsed, type, member), .parse = parse_it

cli_take cli_take_flag, cli_take_text, cli_take_int, cli_take_seed, cli_take_above,
    cli_take_from_0, cli_take_word, cli_take_parsed;

/** A table of options, of one command or of several. */
struct cli_options {
    const struct cli_option *line;
    int group; /* of argp: tables of a lower one come first in --help */
    /* After all of them: refuse what contradicts, by argp_error; or NULL. */
    void (*check) (void *input, struct argp_state *state);
};

/** A table among the options of a command. */
struct cli_part {
    const struct cli_options *options; /* NULL ends a list of parts */
    size_t at;                         /* of its struct in the command's */
    const char
        *heading; /* above it in --help; NULL: its lines go with the command's own */
    int group;
};

/* ---- commands ---- */

/** Arguments that are no options. */
struct cli_places {
    int needed, most; /* CLI_ANY: all go to one struct cli_list */
    const char
        *expected; /* "PLAN and CLUSTER", as in "... expected, found "x" too"; where
                           * there are none, what else does, or NULL */
    const char *required; /* "PLAN is required": fewer than needed were given */
    size_t at[2];         /* CLI_PLACE or CLI_LIST, where they go */
};
#define CLI_ANY INT_MAX
#define CLI_PLACE(member) CLI_AT (const char *, member)
#define CLI_LIST(member) CLI_AT (struct cli_list, member)

struct cli_list {
    const char *const *arg; /* [n] borrowed from main's */
    int n;
};

struct cli_command {
    const char *name; /* "cluster show" */
    const char *what; /* one line for the list of commands */

    const char *arguments;               /* "PLAN [CLUSTER]" */
    const char *help;                    /* what it does, '\v', an example and the rest */
    void (*add_help) (struct text *out); /* what tables know, after help; or NULL */
    struct cli_options options;
    const struct cli_part *parts; /* tables of options that others have too; or NULL */

    struct cli_places places;
    size_t input_size;          /* of the struct that is filled, zeros at first */
    void (*init) (void *input); /* set defaults; or NULL */
    enum status (*run) (void *input, struct notes *notes, struct error *err);
};

/** Fill input with what the command line says; a usage error, --help and the like end the
 *  program.  argv[0] is the command's last word; it becomes "linkwise NAME". */
void cli_parse (const struct cli_command *c, int argc, char **argv, void *input);

/** Is it "-", standard input or output?  False for NULL. */
bool cli_is_dash (const char *arg);

/** "-" as messages name it, other arguments as they are. */
const char *cli_input_name (const char *arg);

/** End with a usage error if more than one of the inputs is standard input.
 *  @param[in] n  how many are */
void cli_one_stdin (int n, struct argp_state *state);

/** The same if a document and that option's file both want standard output. */
void cli_one_stdout (bool json, const char *option, const char *file,
                     struct argp_state *state);

#endif
