/* Shared by the files of jobs/ alone.
 *
 * A file becomes statements: option, value, line.  A dialect's table says which fact each option
 * states, in one vocabulary for all: the columns of a runs file, and Megatron's option names for
 * what goes among the notes of a row.  What a fact needs more than a table for, the dialect's
 * `finish` works out.  row.c makes the row. */
#ifndef JOBS_JOBS_PRIVATE_H
#define JOBS_JOBS_PRIVATE_H

#include <stddef.h>

#include "jobs/jobs.h"

#define COUNT_OF(ARRAY) (sizeof (ARRAY) / sizeof *(ARRAY))

#define JOBS_VALUE_MAX 65536 /* bytes of a shell variable, and of any value */
#define JOBS_SAID_MAX 20000  /* statements of a file */
#define JOBS_KEY_MAX 512     /* bytes of an option's name */
#define JOBS_WORD_MAX 128    /* bytes of a word of the lists of options and facts */

struct jobs_dialect;

/** An option as a file says it. */
struct jobs_said {
    char *key, *value; /* a flag alone is "true" */
    int file, line;
    int run; /* of the logs; -1: it is no log */
};

/** A fact: the last statement of it. */
struct jobs_fact {
    char *name, *value;
    int file, line; /* file -1: worked out, or given on the command line */
    bool log;
};

/** Numbers that a log repeats. */
struct jobs_samples {
    double *x; /* [n] */
    int n;
};

/** A run that a log shows. */
struct jobs_run {
    const struct jobs_dialect *dialect; /* whose lines they are; NULL: none yet */
    struct jobs_samples steps_s, tokens_per_s, samples_per_s; /* tokens of one GPU */
    struct jobs_samples timer_s[JOBS_TIMERS];
    double tflops, mfu;                     /* the last ones; 0: none */
    double reserved_bytes, allocated_bytes; /* peaks; 0: none */
    long iteration;                         /* the last one; -1: none */
    long nccl_ranks, nccl_nodes; /* of NCCL's largest communicator; 0: it printed none */
    bool oom;
    int file;
};

struct jobs_reading {
    const char *const *file; /* [n_files] */
    int n_files;
    int at;              /* the file that is read */
    bool log;            /* it is read as a log: what it states is of the last run, */
    int number;          /* at this line */
    struct text formats; /* as struct jobs has it */
    struct jobs_said *said;
    int n_said;
    struct jobs_run *run;
    int n_runs;
    struct jobs_fact *fact; /* of the job at hand */
    int n_facts;
    bool has_model;
    struct workload_model model;
    const struct jobs_dialect *of_file[JOBS_FILES_MAX]; /* NULL: a log or a model */
    enum status
        st; /* the first failure of what returns none; no fact is stated after it */
    struct notes *notes;
    struct error *err;
};

struct jobs_dialect {
    const char *name;                /* "Megatron-LM" */
    const char *framework;           /* as runs files spell it */
    const struct jobs_dialect *like; /* whose options it has besides; or NULL */
    /** What options state: words "option:fact" with blanks between, or "option" alone where the
     *  fact has its name.  The first option of a fact is the one that is written. */
    const char *keys;
    /** Options of no matter: words with blanks between that they begin with, with a '*' in front
     *  that are within, with a '=' behind whole; or NULL. */
    const char *harmless;
    /** A key as the table has it, in place; NULL: it is already. */
    void (*normalise) (char *key);
    bool reserved; /* its runs' peaks are what the allocator reserved */
    /** Facts that follow from several. */
    void (*finish) (struct jobs_reading *r);
    /** Take what a log's line says; false: it is not of this framework. */
    bool (*log) (struct jobs_reading *r, struct jobs_run *run, const char *line);
};

extern const struct jobs_dialect jobs_megatron, jobs_nemo, jobs_torchtitan,
    jobs_deepspeed, jobs_nanotron, jobs_trainer;

/** Take what a line says that Megatron prints, as struct jobs_dialect has it. */
bool jobs_megatron_log (struct jobs_reading *r, struct jobs_run *run, const char *line);

/** A flavor of TorchTitan's models that is a preset, up to a NULL preset. */
struct jobs_flavor {
    const char *model, *flavor, *preset;
};
extern const struct jobs_flavor jobs_titan_flavors[];
/** What a writer of a framework's file cannot tell it, and what works: ST_NOFIT where something is
 *  so; like TRY it may leave the function. */
#define CANNOT(IF, ...)                                  \
    do {                                                 \
        if (IF)                                          \
            return err_set (err, ST_NOFIT, __VA_ARGS__); \
    } while (0)

/** PyTorch's name of a schedule; NULL: it has none. */
const char *jobs_titan_schedule (enum workload_schedule s);

/* ---- names of options: words.c ---- */

/** The next word of a list with blanks between; false: there is none. */
bool jobs_next_word (const char **list, char word[JOBS_WORD_MAX]);
/** For struct jobs_dialect's normalise: without the section in front, and whether it was there;
 *  with dashes for underscores. */
bool jobs_strip (char *key, const char *section);
void jobs_dash (char *key);
/** The fact that an option states, as a file spells it; false: none. */
bool jobs_fact_of (const struct jobs_dialect *d, const char *said,
                   char fact[JOBS_WORD_MAX]);
/** The other way: the option that states a fact, one that the dialect has. */
void jobs_key_of (const struct jobs_dialect *d, const char *fact, char key[JOBS_KEY_MAX]);
/** Is it none of those of no matter? */
bool jobs_matters (const struct jobs_dialect *d, const char *said);

/* ---- statements and facts: said.c ---- */

/** Refuse the file that is read: "file: line N: ...", ST_INVALID. */
enum status jobs_refuse (struct jobs_reading *r, int line, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
/** Add a statement of the file that is read. */
enum status jobs_say (struct jobs_reading *r, int line, const char *key,
                      const char *value);
/** Forget statements and runs but for so many, the first ones. */
void jobs_drop (struct jobs_reading *r, int said, int runs);
/** State a fact; one that was stated otherwise in another file is noted.  Out of memory, as in all
 *  that follow, is in r->st.
 *  @param file  -1: it is worked out */
void jobs_set (struct jobs_reading *r, const char *name, const char *value, int file,
               int line, bool log);
/** The same, of what is worked out, whatever was stated; and unless it was stated. */
void jobs_override (struct jobs_reading *r, const char *name, const char *value);
void jobs_default (struct jobs_reading *r, const char *name, const char *value);
void jobs_default_flag (struct jobs_reading *r, const char *name, bool is);
void jobs_default_int (struct jobs_reading *r, const char *name, long value);
/** Several defaults: words "fact=value" with blanks between, or "option?fact=value" where that
 *  option has to choose something. */
void jobs_defaults (struct jobs_reading *r, const char *list);
void jobs_forget (struct jobs_reading *r, const char *name);
void jobs_forget_all (struct jobs_reading *r);
struct jobs_fact *jobs_find (const struct jobs_reading *r, const char *name);
/** The fact's value, or NULL. */
const char *jobs_value (const struct jobs_reading *r, const char *name);
/** Does a value choose something?  Not "", "none", false, 0 and the like, as a dump of all options
 *  has them; NULL does not either. */
bool jobs_chooses (const char *value);
/** Is it stated, and chooses something? */
bool jobs_true (const struct jobs_reading *r, const char *name);
/** Is it stated as this word, whatever its case? */
bool jobs_is (const struct jobs_reading *r, const char *name, const char *word);
/** A whole number from 0; `absent` where it is not stated or something else. */
long jobs_int (const struct jobs_reading *r, const char *name, long absent);
/** The model's layers, by a config.json or a preset beside too. */
long jobs_layers (const struct jobs_reading *r, long absent);

/* ---- syntaxes ---- */

/* Each reads the file r->at. */

/** Find out what it is, and read it. */
enum status jobs_file_read (struct jobs_reading *r);
/** Options of the commands of a shell script, or of a file of options. */
enum status jobs_shell_read (struct jobs_reading *r, char *text);
/** Entries of a YAML document as "a.b" or "a.0". */
enum status jobs_yaml_read (struct jobs_reading *r, const char *text, size_t len);
/** Entries of a TOML file as "table.key"; what it does not know of TOML is refused. */
enum status jobs_toml_read (struct jobs_reading *r, char *text);
/** Members of a JSON document as "a.b". */
enum status jobs_json_read (struct jobs_reading *r, json_t *doc);

/* ---- lists of layers: patterns.c ---- */

#define JOBS_CHUNKS_MAX 4096 /* of a pipeline */

/** A pipeline layout, "Et|(tt|)*3tL": the layers of its parts.
 *  @param[out] part  [JOBS_CHUNKS_MAX]
 *  @return how many parts; 0: it is none, or there are more */
int jobs_layout (const char *s, int *part);
/** Has every one of pp stages a layer, where parts go round after round? */
bool jobs_stages_filled (const int *part, int parts, long pp);
/** State the layers of every part, in the words of a runs file: "0, 1, 3, 5, 7, 8". */
void jobs_partition (struct jobs_reading *r, const int *part, int parts);
/** Layers without experts, then those with: "[0, 0, 1, 1]", "'([0]*2+[1]*2)'" and the like.
 *  @return false where it is no such list */
bool jobs_frequency (const char *s, long *dense, long *sparse);

/* ---- logs: log.c, and lines.c below it ---- */

enum status jobs_log_read (struct jobs_reading *r, char *text, bool *known);
/** Add to a run's samples. */
void jobs_sample (struct jobs_reading *r, struct jobs_samples *to, double value);
/** The number after a phrase, with "K", "M", "G" or "T" as a factor of 1000 each and commas
 *  among its digits; blanks, ':', '=' and '|' may stand between.  false: not there, x is
 *  untouched. */
bool jobs_after (const char *line, const char *phrase, double *x);
/** Raise a peak to that number.  @param[in] unit  its bytes */
void jobs_peak (const char *line, const char *phrase, double unit, double *peak_bytes);
/** A whole number printed by the last run, as a fact of it. */
void jobs_printed (struct jobs_reading *r, const char *key, double value);
/** The same of the number after a phrase.  false: not there. */
bool jobs_printed_after (struct jobs_reading *r, const char *line, const char *phrase,
                         const char *key);
/** Another run, which has printed nothing yet.  @return NULL when out of memory */
struct jobs_run *jobs_begin_run (struct jobs_reading *r,
                                 const struct jobs_dialect *dialect);
/** The run of a line that programs print as they start: another one where steps came before.
 *  @return NULL when out of memory */
struct jobs_run *jobs_starting (struct jobs_reading *r, struct jobs_run *run);
/** Note the iteration after a phrase, if it is there; one that goes back begins another run.
 *  @return the run that the line is of; NULL when out of memory */
struct jobs_run *jobs_iteration (struct jobs_reading *r, struct jobs_run *run,
                                 const char *line, const char *phrase);

/* ---- the model and the row ---- */

/** Facts from the model's shape, where nothing else states them. */
void jobs_model_facts (struct jobs_reading *r);
/** A preset by a looser name; false: none. */
bool jobs_preset (struct jobs_reading *r, const char *name);
/** The row of the facts and the run.  @param run  may be NULL */
enum status jobs_row (struct jobs_reading *r, const struct jobs_given *given,
                      const struct jobs_run *run, struct jobs_job *out);

#endif
