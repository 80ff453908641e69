/* Shell scripts: words below (shell_words.c), statements above (shell.c). */
#ifndef JOBS_SHELL_PRIVATE_H
#define JOBS_SHELL_PRIVATE_H

#include "jobs/jobs_private.h"

struct jobs_words {
    char **word;
    int *line;
    int n;
};

struct jobs_variable {
    char *name;
    struct jobs_words words; /* of an array; one word or none otherwise */
};

/** A script that is read: where, and what is known so far. */
struct jobs_script {
    struct jobs_reading *r;
    int line;
    char *at; /* what is left of it */
    struct jobs_variable *variable;
    int n_variables, n_words;
    size_t n_bytes;   /* of the words */
    bool noted_value; /* said once */
    enum status st;   /* the first failure; nothing is read after it */
};

/** Fail with a message of the line, unless the script failed before. */
void jobs_script_fail (struct jobs_script *s, const char *what);
void jobs_script_release (struct jobs_script *s);

/** How long the name is that `s` begins with; 0: none. */
size_t jobs_name_length (const char *s);
/** The variable of a name, made if it is to be; NULL: there is none, or the script failed. */
struct jobs_variable *jobs_variable_of (struct jobs_script *s, const char *name,
                                        size_t len, bool make);

/** Words from s->at up to one of the characters `stop`, or the end; that is not taken.
 *  @param lines  are line ends among them counted?
 *  @param out    appended to; free it also where the script failed */
void jobs_words_read (struct jobs_script *s, const char *stop, bool lines,
                      struct jobs_words *out);
/** A variable's words cut at blanks, as where it stands without quotes. */
void jobs_words_cut (struct jobs_script *s, const struct jobs_words *from,
                     struct jobs_words *out);
void jobs_words_add (struct jobs_script *s, struct jobs_words *w, const char *text,
                     size_t len);
void jobs_words_free (struct jobs_words *w);

#endif
