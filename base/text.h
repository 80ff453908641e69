/* A growing string, a list of lines, and aligned tables. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** A string that grows.  Zero-initialise it; text_free releases it.  After an allocation
 *  fails, `failed` stays true and further appends do nothing, so that one check at the
 *  end is enough. */
struct text {
    char *s; /* NUL-terminated, or NULL while empty */
    size_t len, cap;
    bool failed;
};

void text_add (struct text *t, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
void text_add_mem (struct text *t, const char *bytes, size_t n);
/** The string so far, "" while empty; owned by t. */
const char *text_str (const struct text *t);
void text_free (struct text *t);

/** Replace control characters, those that break or reorder a line, and bytes that are not UTF-8,
 *  by '?': a hostile file's names must not reach a terminal as they are.  All but text_clean_line
 *  keep newlines. */
void text_clean (struct text *t);
void text_clean_lines (char *lines);
void text_clean_line (char *line);

/** Cut a line into words in place, at blanks and tabs.
 *  @param[out] word  [max]
 *  @return how many; words beyond max are dropped */
int text_words (char *line, char **word, int max);

/** Cut a line into cells in place at the separator, and drop blanks (characters of `trim`) around
 *  them.  They may be empty.
 *  @param[out] cell  [max]
 *  @return how many; cells beyond max are dropped */
int text_cells (char *line, char separator, const char *trim, char **cell, int max);

/** Is the word among `words`, which have one blank between them? */
bool text_has_word (const char *words, const char *word);

/** Is the whole text a number, from lo to hi or finite?  Blanks may stand before it.
 *  @param[out] out  untouched where it is not */
bool text_whole (const char *s, long lo, long hi, long *out);
bool text_number (const char *s, double *out);

/** How many letters must be added, dropped, changed or swapped with the next to come from one
 *  word to the other, whatever their case; TEXT_FAR where one is too long to be a word. */
#define TEXT_FAR 64
int text_distance (const char *a, const char *b);

/** The end of a noun behind a count: "1 node", "2 nodes". */
#define TEXT_S(n) ((n) == 1 ? "" : "s")

/** Looks for the word that was meant: start with {asked}, try words. */
struct text_near {
    const char *asked;
    char word[TEXT_FAR]; /* "" while none is near */
    int distance;        /* of word */
};
/** Is the word nearer than those before, and is at most a third of what was asked for
 *  changed?
 *  @param[in] n  of its letters
 *  @return true: it is in near->word now */
bool text_near_try (struct text_near *near, const char *word, size_t n);
/** "; did you mean WORD?", or "" while none is near.  buf of TEXT_HINT bytes. */
#define TEXT_HINT (TEXT_FAR + 24)
const char *text_near_hint (const struct text_near *near, const char *before,
                            char buf[TEXT_HINT]);

/** What can be chosen by name, and what it is on one line. */
struct text_choice {
    const char *name, *what;
};

/** A file that is built in: its name and its text.  Tables of them are generated and end with a
 *  NULL name. */
struct text_shipped {
    const char *name, *text;
};

/** Append s as one POSIX shell word in single quotes: it is never expanded. */
void text_add_sh (struct text *t, const char *s);

/** A list of one-line notes (warnings) that a reader hands to its caller: library code
 *  does not print.  Zero-initialise; at most NOTES_MAX are kept, the rest are counted. */
#define NOTES_MAX 20
struct notes {
    char *line[NOTES_MAX];
    int n;       /* kept in line[] */
    int dropped; /* beyond NOTES_MAX */
    /* Told now and then which share of a large file is read, 1 at its end; or NULL. */
    void (*reading) (void *context, const char *file, double share);
    void *context;
};

/** Tell of reading; n may be NULL. */
void notes_reading (const struct notes *n, const char *file, double share);

/** Add a note; n may be NULL (the note is lost). */
void notes_add (struct notes *n, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
void notes_free (struct notes *n);

/** A table of text cells, printed with aligned columns and two blanks between them.
 *  Columns whose header begins with '<' are aligned left (the mark is not printed),
 *  the others right. */
struct table;

/** @param[in] header  NULL-terminated list of column names with their units
 *  @return NULL when out of memory */
struct table *table_create (const char *const *header);
/** A table with these columns. */
#define TABLE_OF(...) table_create ((const char *const[]){__VA_ARGS__, NULL})
/** Set the next cell of the current row; a full row starts the next by itself. */
void table_cell (struct table *t, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
/** The same of one number: "-" where it is not finite.  @param[in] format  of a double */
void table_number (struct table *t, const char *format, double x);
void table_print (const struct table *t, FILE *out);
void table_destroy (struct table *t);
/** Print the table, and destroy it. */
void table_end (struct table *t, FILE *out);

#endif
