/* Shared by the files of calibrate/ alone. */
#ifndef CALIBRATE_CALIBRATE_PRIVATE_H
#define CALIBRATE_CALIBRATE_PRIVATE_H

#include "calibrate/calibrate.h"

#define COUNT_OF(ARRAY) (sizeof (ARRAY) / sizeof *(ARRAY))

#define CALIBRATE_SPELLED_MAX 96 /* bytes of a GPU type's spelling */

/** A row of a runs file, in its usual form. */
struct row {
    const struct csv_table *table;
    int index;
    char *why;    /* [CALIBRATE_REASON] room for why it is skipped */
    bool trainer; /* the table's header is of the Trainer of transformers */
};

/** Leave the function with why the row is skipped, where the call says so. */
#define TRY_ROW(call)              \
    do {                           \
        const char *why_ = (call); \
                                   \
        if (why_)                  \
            return why_;           \
    } while (0)

#define CALIBRATE_JOINED 96 /* bytes of a name's letters and digits */

/** What cells of a column are. */
enum calibrate_kind {
    CELL_TEXT,
    CELL_WHOLE, /* a number without parts */
    CELL_NUMBER,
    CELL_PARTS,     /* a number, or one for each part of a mix of GPUs */
    CELL_FLAG,      /* 0 or 1 */
    CELL_STAGE,     /* of ZeRO */
    CELL_RECOMPUTE, /* words */
    CELL_FSDP,      /* words or a degree */
    CELL_PRECISION,
    CELL_ATTENTION
};

/** Are its cells words, but for those that say nothing? */
static inline bool calibrate_is_text (enum calibrate_kind kind)
{
    return kind == CELL_TEXT || kind >= CELL_RECOMPUTE;
}

/** A unit of a column, and what a number in it is multiplied by. */
struct calibrate_unit {
    const char *word;
    double factor;
};

/** A column that is read. */
struct calibrate_column {
    const char *name,
        *also; /* documented; what else it is called, joined, with blanks between */
    enum calibrate_kind kind;
    const struct calibrate_unit *unit; /* NULL word behind the last */
    const char *expected;              /* in its cells */
    bool optional;                     /* a header may lack it without a word */
};

/** A name's letters and digits, in lower case. */
void calibrate_join (const char *name, char out[CALIBRATE_JOINED]);

/** The column that a title means, or NULL.  @param[out] factor  of a unit in the title, else 1 */
const struct calibrate_column *calibrate_column_named (const char *title, double *factor);

/** A key of the notes, what a column of it is called besides, joined, and whether it has values
 *  beside yes and no.  Behind a key with a value of its own, "precision=bf16", a column says
 *  whether that is so. */
struct calibrate_note {
    const char *key, *also;
    bool valued;
};

/** The note that a column of its own is of, by its title, or NULL. */
const struct calibrate_note *calibrate_note_of (const char *title);

/** Put such a column's cell among a row's notes; "true" and "false" in a word each. */
void calibrate_add_note (struct text *notes, const struct calibrate_note *n,
                         const char *value);

/** What columns a title may mean of which it is not clear which; NULL: it is no such title. */
const char *calibrate_unclear (const char *title);

/** The unit that is said behind a number, or NULL. */
const struct calibrate_unit *calibrate_unit_of (const struct calibrate_column *c,
                                                const char *said);

/** A copy of the file's table in the form that rows are read from.
 *  @param[out] usual  with CALIBRATE_SPARE empty columns behind the others; release it with
 *                     csv_table_release
 *  @param[in,out] runs  its `meant` and `unread` are written */
#define CALIBRATE_SPARE 8
enum status calibrate_usual_form (struct calibrate_runs *runs, struct csv_table *usual,
                                  struct error *err);

/** What a word, joined, says in cells of that kind; NULL: it is none of theirs. */
const char *calibrate_word_of (const char *joined, enum calibrate_kind kind);

/** Fill empty cells with what items of the notes say of them and of nothing else.
 *  @param[in,out] t  in its usual form; for columns that it lacks it has spare ones */
enum status calibrate_fill_cells (struct csv_table *t, struct error *err);

/** Do brackets behind a word change nothing of what it says: "(use_reentrant=False)", "(fits)"? */
bool calibrate_idle_brackets (const char *s);

/** Why the row is skipped for a cell that is no number or word of its column; NULL: none is so. */
const char *calibrate_unread_cell (const struct row *r);

/** 'COLUMN "FOUND": expected EXPECTED', in the row's room. */
const char *calibrate_refuse (const struct row *r, const char *column,
                              const char *expected);

/** Does a cell say that the run ran out of memory? */
bool calibrate_is_oom (const char *cell);

/** The columns of a model's shape. */
#define CALIBRATE_SIZES "layers hidden heads ffn vocab"

/** The model of a row.  @return NULL, or why the row must be skipped (a literal) */
const char *calibrate_read_model (const struct row *r, struct calibrate_run *run);

/** Sequence, batch, precision, kernels, adapters and states of the row, and the release that ran
 *  it.  @return NULL, or why the row must be skipped (a literal) */
const char *calibrate_read_job (const struct row *r, struct calibrate_run *run);

/** The optimizer of a row and what it keeps: by the cell or note that names it, else by an item of
 *  the notes that is a name and nothing else.  @return NULL, or why the row must be skipped */
const char *calibrate_read_optimizer (const struct row *r, struct calibrate_run *run);

/** What a row has of the one before it, if it says so. */
void calibrate_take_before (const struct row *r, const struct calibrate_run *before,
                            struct calibrate_run *run);

/** Degrees, micro-batch, ZeRO, recomputation and schedule of the row.
 *  @return NULL, or why the row must be skipped */
const char *calibrate_read_config (const struct row *r, struct calibrate_run *run);

/** A degree's cell, else what the column for all or the notes tell of it, "TP8 PP4", "8-way TP".
 *  @param[out] said  is it told?  NULL: not asked */
int calibrate_degree (const struct row *r, const char *name, int absent, bool *said);

/** Micro-batches that each replica sums before a step.  @return `absent`: the row does not say;
 *  -1: it is no number */
int calibrate_accumulation (const struct row *r, const struct calibrate_run *run,
                            int absent);

/** A batch that the row does not state: of its tokens, of its step's time and tokens a second, or
 *  micro-batches on all replicas.  0: nothing says */
int calibrate_implied_batch (const struct row *r, const struct calibrate_run *run);

/** Step time, peak and whether it ran out, as stated or by the rates that are.
 *  @return NULL, or why the row must be skipped (a literal) */
const char *calibrate_read_measured (const struct row *r, struct calibrate_run *run);

/** Doubt what the run says was measured where it cannot be, and count it. */
void calibrate_doubt (struct calibrate_runs *runs, struct calibrate_run *run);

/** The GPUs and machines of the row: gpus, gpus_per_node, gpu, gpu_mem_gb,
 *  inter_node_gbps.  A number for each part of a mix has "/" or "+" between them.
 *  @return NULL, or why the row must be skipped (a literal) */
const char *calibrate_read_machines (const struct row *r, struct calibrate_run *run);

/** The layers of the row's stages under every partition: from Megatron's options for a
 *  smaller first or last stage, from a cut of the list of modules ("partition 0, 15, 30")
 *  into stages or chunks among the notes, else from the framework's partition.  An even one whose
 *  layers do not divide, but would if embedding and head were one each, counts those as layers
 *  (DeepSpeed's type:transformer|embedding, Megatron's account-for-embedding-in-pipeline-split).
 *  @param[in,out] run  its model and degrees are read; `layers` is allocated
 *  @return NULL, or why the row must be skipped (a literal) */
const char *calibrate_read_layers (const struct row *r, struct calibrate_run *run);

/** The layers of stages as frameworks spread them; what `layers` had is freed.
 *  @return false: out of memory, and nothing has changed */
bool calibrate_spread_layers (struct calibrate_run *run);

/** Fill in what the row leaves out, and the ways it may have been run (see assume.c).
 *  @param[in,out] run  read but for that; its way and n_ways are written */
void calibrate_assume (struct calibrate_run *run, const struct workload_profile *served);

/** The run as it is in one of its ways. */
void calibrate_set_way (struct calibrate_run *run, const struct calibrate_way *w);

/** Is the profile of that source's framework? */
bool calibrate_names_source (const struct workload_profile *p, const char *source);

/** Is the profile the run's by its source or its framework, not by its GPU type alone? */
bool calibrate_serves (const struct workload_profile *p, const struct calibrate_run *run);

/** The shipped profiles, read once for many runs. */
struct calibrate_shelf {
    struct workload_profile *profile; /* [n] */
    int n;
};

enum status calibrate_shelf_open (struct calibrate_shelf *shelf, struct error *err);
void calibrate_shelf_close (struct calibrate_shelf *shelf);

/** As calibrate_profiles; reads `source` and GPU types of the run.  @param[out] out  a
 *  copy */
void calibrate_shelf_find (const struct calibrate_shelf *shelf,
                           const struct calibrate_run *run, struct workload_profile *out);

/** Count a row under a reason; the last of CALIBRATE_REASONS_MAX takes all that is new.
 *  @return the place of the reason in the list */
int calibrate_count_reason (struct calibrate_reason *list, int *n, const char *why,
                            int row);

/** Has the run figures that the part's fit looks at? */
bool calibrate_has_figures (const struct calibrate_run *run, enum calibrate_part part);

/** Find the contract's columns in the table of a runs file; what is absent is noted.
 *  @param[in] t  in its usual form
 *  @return ST_OK; ST_INVALID, naming it, for a column that is twice there or that no row can
 *          do without */
enum status calibrate_check_columns (const char *path, const struct csv_table *t,
                                     struct calibrate_runs *runs, struct error *err);

/** The text of a cell by the column's name. */
const char *calibrate_cell (const struct row *r, const char *name);
/** A number, which words in brackets may follow ("1(8)" is 1); false when empty or none. */
bool calibrate_number (const char *cell, double *x);
/** A whole number of a cell, 0 to 2^30; absent when empty, -1 when it is none. */
int calibrate_whole (const struct row *r, const char *name, int absent);
/** A positive number of a cell, `absent` when it is empty; false when it is something
 *  else. */
bool calibrate_stated (const struct row *r, const char *name, double absent, double *x);
/** Does s contain part, whatever the case? */
bool calibrate_contains (const char *s, const char *part);

/** The same, whether words are joined by blanks, hyphens, underscores or nothing; a name of up to
 *  five letters stands by itself or before a number ("FSDP2").  One that is denied is not there,
 *  "Megatron (no NeMo)". */
bool calibrate_contains_name (const char *s, const char *name);

/** How much of s is the name that it begins with, whether words are joined by blanks, hyphens,
 *  underscores or nothing; 0: it does not begin with it. */
size_t calibrate_spelled (const char *s, const char *name);

/** Is what s has at `at`, n bytes of it, denied or switched off: by "no", "not", "without" and the
 *  like up to three words before it in its clause, by a "!" at its word, or by "none", "false",
 *  "off", "0", "disabled", "was not used" and the like behind it? */
bool calibrate_denied (const char *s, const char *at, size_t n);

/** What s says of a thing, whose name may be part of a word there, its words joined by blanks,
 *  hyphens, underscores or nothing. */
enum calibrate_said {
    SAID_NOTHING,
    SAID_NO, /* that it is not, wherever it is named */
    SAID_YES
};
enum calibrate_said calibrate_says (const char *s, const char *name);

/** Does s say so of a name that is whole words there? */
bool calibrate_says_word (const char *s, const char *name);

/** The next item of notes, between commas or semicolons; "!x" is "no x".
 *  @param[in,out] s  what follows
 *  @return false: there is none */
#define CALIBRATE_ITEM 128
bool calibrate_next_item (const char **s, char item[CALIBRATE_ITEM]);

/** The next run of letters or of digits, in lower case; an x that begins one is one of its own,
 *  "TP8xPP4".  @return what follows; NULL: there is none */
const char *calibrate_next_word (const char *s, char word[CALIBRATE_ITEM]);

/** The value of `key=value` among the notes (separated by ";"). */
bool calibrate_note (const struct row *r, const char *key, char *value, size_t size);
/** A whole number among the notes, as calibrate_whole. */
int calibrate_note_int (const struct row *r, const char *key, int absent);
/** Is there key=true? */
bool calibrate_note_true (const struct row *r, const char *key);

/** Are model, GPUs, batch, precision, recomputation and degrees alike? */
bool calibrate_same_shape (const struct calibrate_run *a, const struct calibrate_run *b);

/** Runs of one configuration: of one shape, with one estimate.
 *  @param[in]  estimate  [runs->n] NAN: left out
 *  @param[out] first     [runs->n] the first run of its configuration; -1: left out
 *  @param[out] n         configurations
 *  @return ST_OK or ST_NOMEM */
enum status calibrate_configurations (const struct calibrate_runs *runs,
                                      const double *estimate, int *first, int *n,
                                      struct error *err);

#define CALIBRATE_FEW_MOST 64 /* up to so many configurations are few (few.c) */
/** Configurations that a profile's residual counts as. */
#define CALIBRATE_RESIDUAL_RUNS 5.0

/** Of a place's step times about the model's, root mean square, in logarithms. */
#define CALIBRATE_SCALE_SPREAD 0.12
/** Of its runs about that, where there are too few to say. */
#define CALIBRATE_ROW_SPREAD 0.06

/** Is it how far runs scatter? */
bool calibrate_is_residual (const struct workload_constant *k);

/** May a fit move this constant of time? */
bool calibrate_may_move (const struct workload_constant *k, struct workload_profile *p);

/** How far its logarithm may be off in one place, its scale told, where runs are few. */
double calibrate_few_spread (const struct workload_constant *k);

/** d log (step time) / d log (constant); NAN where the time cannot be estimated. */
double calibrate_slope (const struct calibrate_run *run,
                        const struct topology_cluster *cluster,
                        const struct workload_profile *p,
                        const struct workload_constant *k);

/** Step times of a few configurations. */
struct calibrate_few {
    const struct calibrate_run **run;  /* [n] one of each */
    struct topology_cluster **cluster; /* [n] their machines */
    /* [n] logarithms of measured over estimated by the profile that the fit starts at: the mean
     * of its runs, and their variance about it */
    double *error, *noise;
    int n;
};

/** Fit a profile's time constants to a few configurations; see few.c.
 *  @param[out] taken  the part of the fit that is
 *  @return ST_OK or ST_NOMEM */
enum status calibrate_few (const struct calibrate_few *runs, struct workload_profile *p,
                           double *taken, struct error *err);

/** calibrate/record.json. */
extern const struct text_shipped calibrate_shipped_record[];

#endif
