/* Runs files as people write them, in the form that the readers of rows want.
 *
 * The table that is read is a copy of the file's: columns under their documented names, numbers
 * without units and marks, words of switches as 0 and 1, nothing where a cell says so.  What is not
 * understood stays as it is, and the row is refused with it. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells ---- */

/* Words for nothing; "none" is a word of its own where it means that a thing is not done. */
static const char *const nothing[] = {
    "n/a", "na",           "n.a.",         "nan",          "null", "nil",
    "-",   "--",           "\xe2\x80\x93", "\xe2\x80\x94", "?",    "unknown",
    "tbd", "not reported", "not stated",   "unspecified"};

static bool says_nothing (const char *cell, enum calibrate_kind kind)
{
    bool number = kind == CELL_WHOLE || kind == CELL_NUMBER || kind == CELL_PARTS;

    for (size_t i = 0; i < COUNT_OF (nothing); i++)
        if (strcasecmp (cell, nothing[i]) == 0)
            return true;
    return number && strcasecmp (cell, "none") == 0;
}

/* Kinds of networks, which say nothing of their rate. */
static const char networks[] =
    "ib infiniband ndr hdr edr roce rocev2 efa ethernet slingshot";

#define LINKS_MOST \
    16 /* of a node: a smaller number before a network counts them, "8 HDR" */

/* Cut words for a network off both ends, "EFA 3200", "8x400G NDR", but not behind a bare number
 * that may be of links. */
static void cut_networks (const char *cell, char *out, size_t size)
{
    char *end, word[CALIBRATE_JOINED];
    size_t n = 1;

    while (n > 0) {
        size_t len = strcspn (cell, " ");

        snprintf (word, sizeof word, "%.*s", (int) len, cell);
        calibrate_join (word, word);
        n = word[0] && text_has_word (networks, word) ? len + strspn (cell + len, " ")
                                                      : 0;
        cell += n;
    }
    snprintf (out, size, "%s", cell);
    while ((end = strrchr (out, ' '))) {
        calibrate_join (end, word);
        if (word[0] && (!text_has_word (networks, word) ||
                        (strspn (out, "0123456789") == (size_t) (end - out) &&
                         strtod (out, NULL) <= LINKS_MOST)))
            return;
        *end = '\0';
    }
}

/* Marks for what the row above has. */
static bool is_ditto (const char *cell)
{
    static const char *const marks[] = {"''",   "\xe2\x80\xb3", "\xe3\x80\x83",  "ditto",
                                        "idem", "as above",     "same as above", "same"};

    for (size_t i = 0; i < COUNT_OF (marks); i++)
        if (strcasecmp (cell, marks[i]) == 0)
            return true;
    return false;
}

/* A check mark or a cross as a word.  @return the cell itself where it is neither */
static const char *ticked (const char *cell)
{
    static const char *const yes[] = {"\xe2\x9c\x93", "\xe2\x9c\x94", "\xe2\x9c\x85"},
                             *const no[] = {"\xe2\x9c\x97", "\xe2\x9c\x98",
                                            "\xe2\x9d\x8c"};

    for (size_t i = 0; i < COUNT_OF (yes); i++)
        if (strcmp (cell, yes[i]) == 0 || strcmp (cell, no[i]) == 0)
            return strcmp (cell, yes[i]) == 0 ? "yes" : "no";
    return cell;
}

/* A cell of another kind than text without a mark that it is uncertain, "8?", or of a network its
 * name, or of parameters those that are active.  @return the cell itself where it has neither */
static const char *bare_cell (const char *cell, const struct calibrate_column *c,
                              char *out, size_t size)
{
    const char *active =
        strcmp (c->name, "params_b") == 0 ? strcasestr (cell, "-a") : NULL;
    size_t n = strlen (cell);

    if (active && (active == cell || !isdigit ((unsigned char) active[2])))
        active = NULL;
    if (c->kind == CELL_TEXT || n < 2 || n >= size)
        return cell;
    if (strcmp (c->name, "inter_node_gbps") == 0)
        cut_networks (cell, out, size);
    else if (strcmp (c->name, "peak_mem_gb") == 0 &&
             strchr (cell, '/')) /* "61 / 80 GB" */
        snprintf (out, size, "%.*s", (int) strcspn (cell, "/"), cell);
    else if (c->kind == CELL_WHOLE && strcmp (cell, "-1") == 0) /* what is left */
        out[0] = '\0';
    else if (active) /* "235B-A22B" */
        snprintf (out, size, "%.*s", (int) (active - cell), cell);
    else if (cell[n - 1] == '?')
        snprintf (out, size, "%s", cell);
    else
        return cell;
    for (n = strlen (out); n > 1 && strchr ("? ", out[n - 1]);)
        out[--n] = '\0';
    return out;
}

/* Words of cells that are no numbers, joined, and what they say. */
static const struct {
    enum calibrate_kind kind;
    const char *said, *is;
} words[] = {
    {CELL_FLAG, "true yes y on oom outofmemory cudaoutofmemory cudaoom", "1"},
    {CELL_FLAG, "false no n off none ok fits ran success passed completed done", "0"},
    {CELL_STAGE, "none no off false ddp torchddp noshard zero0 stage0 zerostage0 z0",
     "0"},
    {CELL_STAGE, "true yes on", ""}, /* whichever is usual */
    /* Megatron-FSDP's words beside those of ZeRO, and Paddle's of what is sharded. */
    {CELL_STAGE,
     "zero1 stage1 zerostage1 z1 distributedoptimizer distopt deepspeedzero1 "
     "shardingstage1 optim os",
     "1"},
    {CELL_STAGE,
     "zero2 stage2 zerostage2 z2 shardgradop fsdpshardgradop hybridshardzero2 "
     "deepspeedzero2 shardingstage2 optimgrads osg shardedddp",
     "2"},
    {CELL_STAGE,
     "zero3 stage3 zerostage3 z3 fullshard fsdpfullshard hybridshard fsdp fsdp1 fsdp2 "
     "hsdp deepspeedzero3 zeropp shardingstage3 optimgradsparams pgos gemini mics "
     "fsdpfull hybrid sharded",
     "3"},
    /* What stands in brackets is read again (calibrate/job.c). */
    {CELL_STAGE, "zero1offload zero1cpu z1offload", "1 (offload)"},
    {CELL_STAGE, "zero2offload zero2cpu z2offload stage2offload zerooffload",
     "2 (offload)"},
    {CELL_STAGE, "zero3offload zero3cpu z3offload stage3offload zeroinfinity",
     "3 (offload)"},
    {CELL_FSDP, "false no off none n 0 noshard ddp disabled", "none"},
    {CELL_FSDP, "true yes on y enabled fullshard fsdp fsdp1 fsdp2 zero3", "yes"},
    {CELL_FSDP, "hybridshard hsdp", "yes (hybrid)"},
    {CELL_FSDP, "hybridshardzero2", "zero2 (hybrid)"},
    {CELL_FSDP, "shardgradop zero2", "zero2"},
    {CELL_FSDP, "zero1", "zero1"},
    {CELL_ATTENTION,
     "true yes on enabled 1 2 3 v1 v2 v3 fa fmha te full dense slidingwindow windowed "
     "striped usp",
     "flash"},
    {CELL_ATTENTION, "baddbmm maskedsoftmaxfusion scaleduppertriangmaskedsoftmax",
     "fused"},
    {CELL_ATTENTION, "false no off none disabled", "unfused"},
    {CELL_ATTENTION, "default autoselected mha gqa mqa mla groupedquery multihead",
     "auto"},
    {CELL_PRECISION, "default auto", ""},
    {CELL_PRECISION, "o1 o2 apex apexo1 apexo2", "fp16 amp"},
    {CELL_PRECISION, "true yes on", "amp"},
    {CELL_PRECISION, "false no off", "fp32"},
    {CELL_RECOMPUTE, "default auto", ""},
    {CELL_RECOMPUTE, "false no n off 0 disabled noac noactivationcheckpointing", "none"},
    {CELL_RECOMPUTE,
     "true yes on 1 all enabled fullac ac activationcheckpointing "
     "gradientcheckpointing fullactivationcheckpointing fullrecompute "
     "fullrecomputation checkpointing fac alllayers everylayer block uniform remat "
     "fullremat recompute recomputation perlayer unsloth ckpt "
     "gradientcheckpointingon checkpointingfull",
     "full"},
    {CELL_RECOMPUTE,
     "sac selectiveac selectiveactivationcheckpointing selectiverecompute "
     "selectiverecomputation op perop selectiveop partial attn attention "
     "attentiononly",
     "selective"},
    /* JAX's policies: dots are kept, or next to nothing. */
    {CELL_RECOMPUTE, "everythingsaveable saveeverything saveall", "none"},
    {CELL_RECOMPUTE,
     "minimal minimalflash minimalwithcontext dots dotssaveable savedots savedotonly "
     "dotswithnobatchdims dotswithnobatchdimssaveable checkpointdots "
     "checkpointdotswithnobatchdims savedotexceptlogits savedotexceptmlpwi "
     "savedotproducts savedotwithnobatchdim savedotwithnobatchdims "
     "savedotexceptlogitsffn1",
     "selective"},
    {CELL_RECOMPUTE,
     "savenothing nothingsaveable saveqkvproj saveoutproj savedotexceptmlp "
     "savedotwithcontextexceptmlp qkvprojoffloaded savecontext saveqkvoutproj "
     "savecontextandoutproj saveencodedandoutproj saveiterationinput "
     "savetransformerlayeroutput",
     "full"},
};

const char *calibrate_word_of (const char *joined, enum calibrate_kind kind)
{
    for (size_t i = 0; i < COUNT_OF (words); i++)
        if (words[i].kind == kind && text_has_word (words[i].said, joined))
            return words[i].is;
    return NULL;
}

bool calibrate_idle_brackets (const char *s)
{
    char joined[CALIBRATE_JOINED];

    calibrate_join (s, joined);
    return strncmp (joined, "usereentrant", 12) == 0 ||
           text_has_word ("full fits fit oom default assumed uncertain guessed inferred "
                          "likely notstated",
                          joined);
}

/* All of a cell, or what stands before brackets that say nothing else: "True
 * (use_reentrant=False)"; of a stage's, what is offloaded stays. */
static const char *word_meant (const char *cell, enum calibrate_kind kind, char *out,
                               size_t size)
{
    char joined[CALIBRATE_JOINED], before[CALIBRATE_JOINED];
    const char *word, *brackets = strchr (cell, '(');

    calibrate_join (cell, joined);
    if ((word = calibrate_word_of (joined, kind)) || !brackets)
        return word;
    snprintf (before, sizeof before, "%.*s", (int) (brackets - cell), cell);
    calibrate_join (before, joined);
    word = calibrate_word_of (joined, kind);
    if (word && !*word) /* "default (full)" says more than what is usual */
        return NULL;
    if (!word || calibrate_idle_brackets (brackets))
        return word;
    if (kind != CELL_STAGE || !calibrate_contains (brackets, "offload") ||
        strpbrk (brackets, "0123456789"))
        return NULL;
    snprintf (out, size, "%s %s", word, brackets);
    return out;
}

/* The end of a joined cell is cut off where it is that.  @return was it? */
static bool cut_end (char *joined, const char *end)
{
    size_t n = strlen (joined), len = strlen (end);
    bool is = n > len && strcmp (joined + n - len, end) == 0;

    if (is)
        joined[n - len] = '\0';
    return is;
}

/* FSDP's column: a strategy, and behind it what the Trainer's list of options has besides,
 * "full_shard auto_wrap offload"; or ranks, of which one is none that shards where others are
 * more, else a yes. */
static const char *fsdp_meant (const char *cell, bool degrees, char *out, size_t size)
{
    char joined[CALIBRATE_JOINED];
    bool offload = false, cut = true;
    const char *word;

    if (strcmp (cell, "1") == 0)
        return degrees ? "none" : "yes";
    calibrate_join (cell, joined);
    while (cut) {
        bool host = cut_end (joined, "cpuoffload") || cut_end (joined, "offload");

        offload = offload || host;
        cut = cut_end (joined, "autowrap") || host;
    }
    word = strchr (cell, '(') ? NULL : calibrate_word_of (joined, CELL_FSDP);
    if (word && offload) {
        snprintf (out, size, "%s (offload)", word);
        word = out;
    }
    return word ? word : cell;
}

/* Commas between groups of three digits are no part of a number, nor are underscores; other commas
 * are decimal points, as is that of "0,125", and as all are in numbers with parts where semicolons
 * separate cells. */
static void plain_digits (const char *s, bool decimal, char *out, size_t size)
{
    size_t n = 0;

    for (; *s && n < size - 1; s++) {
        size_t digits = strspn (s + 1, "0123456789");
        bool below_1 = n == 1 && out[0] == '0';

        if (*s == '_' || (*s == ',' && digits == 3 && !decimal && !below_1))
            continue;
        out[n++] = *s == ',' ? '.' : *s;
    }
    out[n] = '\0';
}

/* What stands behind a number of things each of which has some: the 400 of "8x400", "8 * 400G".
 * @param[in,out] end  behind the first number, then behind the second */
static double times (const struct calibrate_column *c, char **end)
{
    char *at = *end + strspn (*end, " "), *behind;
    double each;

    if (strcmp (c->name, "gpus") != 0 && strcmp (c->name, "inter_node_gbps") != 0)
        return 1.0;
    if (*at != 'x' && *at != 'X' && *at != '*')
        return 1.0;
    at += 1 + strspn (at + 1, " ");
    each = *at >= '0' && *at <= '9' ? strtod (at, &behind) : 0.0;
    if (!(each > 0.0))
        return 1.0;
    *end = behind;
    return each;
}

/* "~8,192", "10.5 s", "128K", "45 %", "10.5 (mean)", "10.5 +- 0.2" as plain numbers.
 * @return false: it is none of these, or plain already */
static bool tidy (const char *cell, const struct calibrate_column *c, double factor,
                  bool decimal, char *out, size_t size)
{
    char said[64], unit[CALIBRATE_JOINED], *end;
    const struct calibrate_unit *u = NULL;
    double x;

    cell += strspn (cell, "~ ");
    plain_digits (cell, decimal && c->kind != CELL_WHOLE, said, sizeof said);
    x = strtod (said, &end);
    if (!strchr ("+-.0123456789", said[0]) || end == said || !isfinite (x))
        return false;
    x *= times (c, &end);
    end += strspn (end, " ");
    snprintf (unit, sizeof unit, "%.*s", (int) strcspn (end, "(+\xc2"), end);
    for (size_t n = strlen (unit); n > 0 && unit[n - 1] == ' ';)
        unit[--n] = '\0';
    if (unit[0] && !(u = calibrate_unit_of (c, unit)))
        return false;
    snprintf (out, size, "%.17g", x * (u ? u->factor : factor));
    return true;
}

/* What a column of the file is read as. */
struct meaning {
    const struct calibrate_column *column; /* NULL: nothing that is known */
    double factor;                         /* of its numbers */
    bool degrees;                          /* it has a number above 1 */
    bool denied;                           /* its yes is the column's no: of "fits" */
    const struct calibrate_note *note;     /* that it is of instead; NULL: of none */
};

/* A cell in its usual form; itself where there is none. */
static const char *usual_cell (const char *cell, const struct meaning *m, bool decimal,
                               char *out, size_t size)
{
    const struct calibrate_column *c = m->column;
    const char *word;
    double x;

    if (says_nothing (cell, c->kind) || cell[0] == '\0')
        return "";
    if (c->kind == CELL_FSDP)
        return fsdp_meant (cell, m->degrees, out, size);
    if ((word = word_meant (cell, c->kind, out, size)))
        return word;
    if (calibrate_is_text (c->kind) ||
        (calibrate_number (cell, &x) && m->factor == 1.0 && !decimal))
        return cell;
    return tidy (cell, c, m->factor, decimal, out, size) ? out : cell;
}

/* ---- the table ---- */

/* Does a column hold a number above 1, so that its ones are degrees and no yes? */
static bool has_degrees (const struct csv_table *t, int column)
{
    bool has = false;

    for (int i = column; i < t->cells && !has; i += t->columns)
        has = strtod (t->cell[i], NULL) > 1;
    return has;
}

static bool is_there (const struct meaning *m, int n, const char *name)
{
    bool there = false;

    for (int i = 0; i < n; i++)
        there = there || (m[i].column && strcmp (m[i].column->name, name) == 0);
    return there;
}

/* Do steps of accumulation stand beside it?  Micro-batches may be those of a pipeline. */
static bool accumulates (const struct csv_table *t, const struct meaning *m)
{
    bool does = false;

    for (int i = 0; i < t->columns; i++)
        does = does ||
               (m[i].column && strcmp (m[i].column->name, "gradient_accumulation") == 0 &&
                !calibrate_contains (t->header[i], "micro"));
    return does;
}

/* A batch of nothing further is the global one, unless that is there, too: then a micro-batch, or
 * nothing where that is there as well.  Where steps are accumulated each row says which
 * (calibrate/runs.c). */
static void settle_batch (const struct csv_table *t, struct meaning *m)
{
    int n = t->columns;

    for (int i = 0; i < n; i++) {
        bool global = is_there (m, n, "global_batch");

        if (m[i].column && strcmp (m[i].column->name, "batch_size") == 0 &&
            (global || !accumulates (t, m)))
            m[i].column =
                calibrate_column_named (!global                           ? "global_batch"
                                        : !is_there (m, n, "micro_batch") ? "micro_batch"
                                                                          : "",
                                        &m[i].factor);
    }
}

/* "GPUs" whose cells have names of types, "8x H100", is what `gpu` is, where nothing else is. */
static void settle_gpus (const struct csv_table *t, struct meaning *m)
{
    struct topology_gpu_reading type;

    for (int i = 0; i < t->cells && !is_there (m, t->columns, "gpu"); i++) {
        struct meaning *is = &m[i % t->columns];

        if (is->column && strcmp (is->column->name, "gpus") == 0 &&
            topology_gpu_read (t->cell[i], 0.0, &type))
            is->column = calibrate_column_named ("gpu", &is->factor);
    }
}

/* How well a title names its column: as documented, in other case and marks, by another name, by
 * one that may be of a host. */
static int rank (const struct calibrate_column *c, const char *title)
{
    static const char hosts[] =
        "machine machinetype instance instancetype hardware device";
    char own[CALIBRATE_JOINED], joined[CALIBRATE_JOINED];

    calibrate_join (c->name, own);
    calibrate_join (title, joined);
    return strcmp (c->name, title) == 0     ? 0
           : strcmp (own, joined) == 0      ? 1
           : !text_has_word (hosts, joined) ? 2
                                            : 3;
}

/* Is column i the one of its name that is read: the best named, of these the first? */
static bool is_read (const struct csv_table *t, const struct meaning *m, int i)
{
    int own = rank (m[i].column, t->header[i]);

    for (int k = 0; k < t->columns; k++)
        if (m[k].column == m[i].column && k != i && own > 0 &&
            (rank (m[k].column, t->header[k]) < own ||
             (rank (m[k].column, t->header[k]) == own && k < i)))
            return false;
    return true;
}

/* A column that the unit in all of its cells names, "3500 tokens/s/GPU"; NULL: none does */
static const struct calibrate_column *named_by_cells (const struct csv_table *t,
                                                      int column, double *factor)
{
    const char *unit = "";

    for (int i = column; i < t->cells; i += t->columns) {
        const char *cell = t->cell[i], *own = cell + strspn (cell, "~0123456789., ");

        if (cell[0] == '\0' || says_nothing (cell, CELL_NUMBER) ||
            calibrate_is_oom (cell))
            continue;
        if (unit[0] && strcasecmp (unit, own) != 0)
            return NULL;
        unit = own;
    }
    return unit[0] ? calibrate_column_named (unit, factor) : NULL;
}

/* A column that says of runs what "oom" denies: yes or no, but no rate of success. */
static bool says_fits (const struct csv_table *t, int column)
{
    char joined[CALIBRATE_JOINED];

    calibrate_join (t->header[column], joined);
    if (!text_has_word ("fits success trainable", joined))
        return false;
    for (int i = column; i < t->cells; i += t->columns) {
        const char *cell = ticked (t->cell[i]);

        if (!text_has_word ("0 1", cell) && !word_meant (cell, CELL_FLAG, NULL, 0) &&
            !says_nothing (cell, CELL_FLAG) && !is_ditto (cell) &&
            !calibrate_is_oom (cell) && cell[0] != '\0')
            return false;
    }
    return true;
}

/* What the columns mean. */
static void find_columns (const struct csv_table *t, struct meaning *m, bool *read)
{
    for (int i = 0; i < t->columns; i++) {
        m[i].column = calibrate_column_named (t->header[i], &m[i].factor);
        m[i].note = m[i].column ? NULL : calibrate_note_of (t->header[i]);
        m[i].denied = says_fits (t, i);
        if (m[i].denied)
            m[i].column = calibrate_column_named ("oom", &m[i].factor);
        if (!m[i].column && calibrate_unclear (t->header[i]))
            m[i].column = named_by_cells (t, i, &m[i].factor);
    }
    settle_batch (t, m);
    settle_gpus (t, m);
    for (int i = 0; i < t->columns; i++)
        read[i] = m[i].column && is_read (t, m, i);
}

/* What is told of the columns. */
static void tell_columns (const struct csv_table *t, const struct meaning *m,
                          const bool *read, struct calibrate_runs *runs)
{
    struct text meant = {0}, unread = {0}, ignored = {0};
    const struct {
        struct text *told;
        char *out; /* [512] */
    } lists[] = {
        {&meant, runs->meant}, {&unread, runs->unread}, {&ignored, runs->ignored}};

    for (int i = 0; i < t->columns; i++) {
        const char *title = t->header[i], *unclear = calibrate_unclear (title);
        double own;

        if (read[i] && strcmp (m[i].column->name, title) != 0)
            text_add (&meant, ", %s as %s", title, m[i].column->name);
        else if (m[i].note)
            text_add (&meant, ", %s as notes", title);
        else if (!m[i].column && calibrate_column_named (title, &own))
            text_add (&unread, ", %s (global_batch and micro_batch say it)", title);
        else if (!m[i].column && unclear)
            text_add (&unread, ", %s (%s)", title, unclear);
        else if (!read[i] && title[0] &&
                 strncmp (title, "est_", 4) != 0) /* of an earlier call */
            text_add (&ignored, ", %s", title);
    }
    for (size_t i = 0; i < COUNT_OF (lists); i++) {
        if (lists[i].told->len > 0)
            snprintf (lists[i].out, sizeof runs->meant, "%s",
                      text_str (lists[i].told) + 2);
        text_clean_line (lists[i].out);
        text_free (lists[i].told);
    }
}

static void read_header (const struct csv_table *t, struct meaning *m, bool *read,
                         struct calibrate_runs *runs)
{
    find_columns (t, m, read);
    tell_columns (t, m, read, runs);
    for (int i = 0; i < t->columns; i++)
        if (!read[i])
            m[i].column = NULL;
        else if (m[i].column->kind == CELL_FSDP)
            m[i].degrees = has_degrees (t, i);
}

/* The column of the table that notes go to: their own, or the first that is of a note.
 * @return -1: there are none */
static int notes_column (const struct meaning *m, int n)
{
    int first = -1;

    for (int i = n - 1; i >= 0; i--)
        first = m[i].note ? i : first;
    for (int i = 0; i < n; i++)
        if (m[i].column && strcmp (m[i].column->name, "notes") == 0)
            return i;
    return first;
}

/* A row's notes, with the cells of columns that are of notes. */
static void join_notes (const struct meaning *m, int columns, char *const *cell, int own,
                        struct text *notes)
{
    text_add (notes, "%s", m[own].column ? cell[own] : "");
    for (int i = 0; i < columns; i++) {
        const char *word =
            m[i].note ? word_meant (ticked (cell[i]), CELL_FLAG, NULL, 0) : NULL;

        if (m[i].note && !says_nothing (cell[i], CELL_TEXT))
            calibrate_add_note (notes, m[i].note,
                                !word          ? cell[i]
                                : *word == '1' ? "true"
                                               : "false");
    }
}

/* A cell with the sign of multiplication as an x. */
static void add_ascii (struct text *to, const char *cell)
{
    static const char sign[] = "\xc3\x97";

    for (const char *at; (at = strstr (cell, sign)); cell = at + 2) {
        text_add_mem (to, cell, (size_t) (at - cell));
        text_add (to, "x");
    }
    text_add (to, "%s", cell);
}

static enum status copy_cells (const struct csv_table *t, const struct meaning *m,
                               struct csv_table *out, struct error *err)
{
    char number[CALIBRATE_JOINED + 16], bare[CALIBRATE_JOINED];
    int notes_at = notes_column (m, t->columns);

    for (int i = 0; i < out->columns; i++)
        if (!(out->header[i] = strdup (i >= t->columns ? ""
                                       : m[i].column   ? m[i].column->name
                                       : i == notes_at ? "notes"
                                                       : t->header[i])))
            return err_nomem (err);
    for (int i = 0; i < t->cells; i++) {
        int to = i + i / t->columns * CALIBRATE_SPARE;
        const struct meaning *is = &m[i % t->columns];
        const char *cell = t->cell[i];
        struct text own = {0};

        if (i % t->columns == notes_at)
            join_notes (m, t->columns, t->cell + (i - notes_at), notes_at, &own);
        else
            add_ascii (&own, cell);
        if (is->column && is_ditto (cell) && i >= t->columns)
            cell = out->cell[to - out->columns];
        else if (is->column)
            cell = usual_cell (
                bare_cell (ticked (text_str (&own)), is->column, bare, sizeof bare), is,
                t->separator == ';', number, sizeof number);
        else
            cell = text_str (&own);
        if (is->denied && is->column && !calibrate_is_oom (t->cell[i]) &&
            !is_ditto (t->cell[i]))
            cell = strcmp (cell, "1") == 0 ? "0" : strcmp (cell, "0") == 0 ? "1" : cell;
        out->cell[to] = own.failed ? NULL : strdup (cell);
        text_free (&own);
        if (!out->cell[to])
            return err_nomem (err);
    }
    for (int i = 0; i < out->cells; i++) /* the spare ones */
        if (!out->cell[i] && !(out->cell[i] = strdup ("")))
            return err_nomem (err);
    for (int i = 0; i < t->rows; i++)
        out->found[i] = t->found[i] + CALIBRATE_SPARE;
    return ST_OK;
}

enum status calibrate_usual_form (struct calibrate_runs *runs, struct csv_table *usual,
                                  struct error *err)
{
    const struct csv_table *t = &runs->table;
    size_t columns = (size_t) t->columns + CALIBRATE_SPARE,
           cells = columns * (size_t) t->rows;
    struct meaning *m = calloc (columns, sizeof *m);
    bool *read = calloc (columns, sizeof *read);
    struct csv_table out = {.columns = (int) columns,
                            .rows = t->rows,
                            .cells = (int) cells,
                            .separator = t->separator,
                            .header = calloc (columns, sizeof *out.header),
                            .cell = calloc (cells + 1, sizeof *out.cell),
                            .found = calloc ((size_t) t->rows + 1, sizeof *out.found)};
    enum status st =
        m && read && out.header && out.cell && out.found ? ST_OK : err_nomem (err);

    if (st == ST_OK) {
        read_header (t, m, read, runs);
        st = copy_cells (t, m, &out, err);
    }
    free (read);
    free (m);
    if (st == ST_OK)
        *usual = out;
    else
        csv_table_release (&out);
    return st;
}
