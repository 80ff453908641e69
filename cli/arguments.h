/* A command is a table: one line an option, saying what --help shows and where the value
 * goes.  arguments.c makes argp's tables of it and parses. */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "base/usage.h"

/* ---- options ---- */

enum cli_kind {
    CLI_KIND_FLAG,   /* bool */
    CLI_KIND_TEXT,   /* const char * */
    CLI_KIND_INT,    /* int, from lo to hi */
    CLI_KIND_ABOVE,  /* double, above lo, at most hi */
    CLI_KIND_FROM_0, /* double, from 0, which counts, to hi */
    CLI_KIND_WORD,   /* one of the argument's words; int: its place among them, from 0 */
    CLI_KIND_PARSED, /* one of the argument's words, as parse has it */
    CLI_KIND_TAKEN   /* what take makes of it */
};

struct cli_option {
    const char *name;     /* NULL ends a table */
    char letter;          /* 0: none */
    const char *argument; /* as --help shows it, a|b|c where words are given */
    const char *help;
    enum cli_kind kind;
    size_t at; /* where the value is in the struct that the table fills */
    double lo, hi;
    bool (*parse) (const char *given, void *value); /* false: not a word that it knows */
    void (*take) (const struct cli_option *o, const char *given, void *value,
                  struct argp_state *state);
    const char *usual; /* the default, as text; NULL: what init leaves there */
    bool needed;       /* a text that must be given; places.required is the error */
    const char *alone; /* its name in messages: no --json where its text is "-" */
    int group;         /* of argp, above the table's: later in --help */
};

/* The end of an option's line: kind, member of the struct that the table fills, limits.
 * The file defines INPUT to be that struct.  A member of another type is warned about. */
#define CLI_AT(type, member) \
    (offsetof (INPUT, member) + 0 * sizeof ((type *) 0 == &((INPUT *) 0)->member))
#define CLI_KIND(is, type, member) .kind = CLI_KIND_##is, .at = CLI_AT (type, member)
#define CLI_FLAG(member) CLI_KIND (FLAG, bool, member)
#define CLI_TEXT(member) CLI_KIND (TEXT, const char *, member)
#define CLI_INT(member, least, most) CLI_KIND (INT, int, member), .lo = least, .hi = most
#define CLI_ABOVE(member, below, most) \
    CLI_KIND (ABOVE, double, member), .lo = below, .hi = most
#define CLI_FROM_0(member, most) CLI_KIND (FROM_0, double, member), .hi = most
#define CLI_WORD(member) CLI_KIND (WORD, int, member)
#define CLI_PARSED(by, type, member) CLI_KIND (PARSED, type, member), .parse = by
#define CLI_TAKEN(by, type, member) CLI_KIND (TAKEN, type, member), .take = by

/** A table of options, of one command or of several. */
struct cli_options {
    const struct cli_option *line;
    int group;                  /* of argp: lower ones come first in --help */
    void (*init) (void *input); /* set defaults in what is zeros; or NULL */
    /* After all of them: refuse what contradicts, by usage_error; or NULL. */
    void (*check) (void *input, struct argp_state *state);
};

/** A table of others among the options of a command. */
struct cli_part {
    const struct cli_options *options; /* NULL: there is none */
    size_t at;                         /* of its struct in the command's */
    const char *heading;               /* above it in --help */
    int group;
};

#define CLI_PARTS_MAX 4

/* ---- commands ---- */

/** Arguments that are no options. */
struct cli_places {
    int needed, most;
    const char *expected; /* "PLAN and CLUSTER", as in "... expected, found "x" too"; with
                             no arguments, a hint, or NULL */
    const char *required; /* "PLAN is required": the error when some are missing */
};

struct cli_list {
    const char *const *arg; /* [n] borrowed from main's */
    int n;
};
#define CLI_PLACE(member) CLI_AT (const char *, member)
#define CLI_LIST(member) CLI_AT (struct cli_list, member)

struct cli_command {
    const char *arguments; /* "PLAN [CLUSTER]" */
    const char *help;      /* what it does, '\v', an example and the rest */
    const struct text_choice *(*choice) (int i); /* listed after help; or NULL */
    int choice_width;                            /* of their names */
    void (*add_help) (struct text *out); /* what tables know, after these; or NULL */
    struct cli_options options;
    struct cli_part parts[CLI_PARTS_MAX];
    struct cli_places places;
    bool list;           /* any number is taken, all into one struct cli_list */
    const char *counted; /* these are expected, as is said when all else was well */
    size_t at[2];        /* where arguments go: CLI_PLACE, or CLI_LIST */
    size_t input_size;   /* of the struct that is filled */
    enum status (*run) (void *input, struct notes *notes, struct error *err);
};
#define CLI_RUN(function) .input_size = sizeof (INPUT), .run = function

/** Fill input, zeros at first, with defaults and what the command line says; a usage error,
 *  --help and the like end the program.  argv[0] begins messages. */
void cli_parse (const struct cli_command *c, int argc, char **argv, void *input);

#endif
