/* How a row's job was split and run. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Megatron's list, "[layernorm moe_act]"; a recipe may name modules that its model has not. */
static bool read_modules (char *list, const struct workload_model *m,
                          struct workload_config *c)
{
    size_t n = strlen (list);

    if (n < 2 || list[0] != '[' || list[n - 1] != ']')
        return workload_modules_parse (list, &c->recompute_modules);
    list[n - 1] = '\0';
    if (list[1] && !workload_modules_parse (list + 1, &c->recompute_modules))
        return false;
    c->recompute_modules &= workload_modules_of (m);
    if (c->recompute_modules == 0)
        c->recompute = RECOMPUTE_NONE;
    return true;
}

static bool read_recompute (const struct row *r, const struct workload_model *m,
                            struct workload_config *c)
{
    const char *s = calibrate_cell (r, "recompute");
    int layers = calibrate_note_int (r, "recompute-num-layers", 0);
    char method[64] = "", word[WORKLOAD_RECOMPUTE_TEXT],
         list[WORKLOAD_RECOMPUTE_TEXT] = "";
    size_t n = strcspn (s, "(");

    /* "selective (per op)": what the brackets say is the framework's way, but all of them is not
     * "full (every other layer)". */
    if (s[n] && strncasecmp (s, "full", 4) == 0 && !calibrate_idle_brackets (s + n))
        return false;
    while (n > 0 && s[n - 1] == ' ')
        n--;
    snprintf (word, sizeof word, "%.*s", (int) n, s);
    for (char *letter = word; *letter; letter++)
        *letter = (char) tolower ((unsigned char) *letter);
    if (!workload_recompute_parse (*s ? word : "selective", c))
        return false;
    if (c->recompute == RECOMPUTE_SELECTIVE && c->recompute_modules == 0 &&
        calibrate_note (r, "recompute-modules", list, sizeof list) &&
        !read_modules (list, m, c))
        return false;
    /* Megatron's block method recomputes so many layers of a stage, its uniform method all
     * of them in groups. */
    calibrate_note (r, "recompute-method", method, sizeof method);
    if (c->recompute == RECOMPUTE_FULL && strcmp (method, "block") == 0 && layers > 0)
        c->recompute_layers = layers;
    return true;
}

bool calibrate_schedule_noted (const char *notes, struct workload_config *c)
{
    static const struct {
        const char *word;
        enum workload_schedule s;
    } words[] = {{"1f1b-interleaved", SCHEDULE_INTERLEAVED},
                 {"interleaved1f1b", SCHEDULE_INTERLEAVED}, /* PyTorch's name */
                 {"1f1b", SCHEDULE_1F1B},
                 {"gpipe", SCHEDULE_GPIPE},
                 {"zero-bubble", SCHEDULE_ZB1P},
                 {"zbb", SCHEDULE_ZB1P},
                 {"zb1p", SCHEDULE_ZB1P},
                 {"zb2p", SCHEDULE_ZB2P},
                 {"zbv", SCHEDULE_ZBV},
                 {"v-half", SCHEDULE_V_HALF},
                 {"v-min", SCHEDULE_V_MIN},
                 {"dualpipev", SCHEDULE_DUALPIPEV}};
    const char *said = strstr (notes, "schedule=");
    size_t i = 0, n = COUNT_OF (words);

    c->schedule = c->deg.pp > 1 && c->deg.vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    while (said && i < n &&
           strncasecmp (said + 9, words[i].word, strlen (words[i].word)) != 0)
        i++;
    if (i == n)
        return c->deg.pp == 1; /* it may be of learning rates */
    if (said)
        c->schedule = words[i].s;
    /* The file's vpp is what the tool was given; a chunk more is no other memory. */
    if (c->schedule != SCHEDULE_INTERLEAVED)
        c->deg.vpp = workload_default_vpp (c->schedule);
    return true;
}

#define DEGREE_FAR (1 << 24) /* more than any has */

/* Ways to split a model, as letters and in words. */
static const struct {
    const char *degree, *word;
} ways[] = {{"tp", "tensor"},  {"pp", "pipeline"}, {"dp", "data"},
            {"cp", "context"}, {"cp", "ulysses"},  {"ep", "expert"}};
static const char beside_ways[] = "x model parallel parallelism size degree";

/* A degree of one cell for all: "TP8 PP4", "tp=8, pp=4", "DP2-TP4", "TP8xPP4", "8-way TP", "tensor
 * parallel 8".
 * @return 0: not among them */
static int split_said (const char *s, const char *degree)
{
    char word[CALIBRATE_ITEM];
    bool named = false;
    int before = 0, number = 0; /* the last one, and that of "8-way" */

    while ((s = calibrate_next_word (s, word))) {
        bool is = strcmp (word, degree) == 0;

        if (isdigit ((unsigned char) word[0])) {
            long said = strtol (word, NULL, 10);

            number = said < DEGREE_FAR ? (int) said : DEGREE_FAR;
            if (named && !(calibrate_next_word (s, word) && strcmp (word, "way") == 0))
                return number; /* the 16 of "TP, 16-way PP" is the next one's */
            continue;
        }
        for (size_t i = 0; i < COUNT_OF (ways); i++)
            is = is || (strcmp (ways[i].degree, degree) == 0 &&
                        strcmp (ways[i].word, word) == 0);
        if (strcmp (word, "way") == 0) {
            before = number;
            continue;
        }
        if (is && before > 0)
            return before;
        named = is || (named && text_has_word (beside_ways, word));
        before = text_has_word (beside_ways, word) ? before : 0;
        number = 0;
    }
    return 0;
}

/* Is an item of the notes degrees and nothing else? */
static bool is_split (const char *item)
{
    char word[CALIBRATE_ITEM];

    while ((item = calibrate_next_word (item, word))) {
        bool is = isdigit ((unsigned char) word[0]) || strcmp (word, "way") == 0 ||
                  text_has_word (beside_ways, word);

        for (size_t i = 0; i < COUNT_OF (ways); i++)
            is = is || strcmp (ways[i].degree, word) == 0 ||
                 strcmp (ways[i].word, word) == 0;
        if (!is)
            return false;
    }
    return true;
}

/* A degree where no column of its own says it: in that for all, behind a framework, "Colossal-AI
 * (TP4 PP2)", or among the notes. */
static int degree_told (const struct row *r, const char *name)
{
    int all = split_said (calibrate_cell (r, "parallelism"), name),
        split = all > 0 ? all : split_said (calibrate_cell (r, "framework"), name);
    const char *notes = calibrate_cell (r, "notes");
    char item[CALIBRATE_ITEM];

    while (split == 0 && calibrate_next_item (&notes, item))
        split = is_split (item) ? split_said (item, name) : 0;
    return split;
}

int calibrate_degree (const struct row *r, const char *name, int absent, bool *said)
{
    int split = degree_told (r, name);

    if (said)
        *said = calibrate_cell (r, name)[0] != '\0' || split > 0;
    return calibrate_whole (r, name, split > 0 ? split : absent);
}

/* As calibrate_degree, of a way to split that is off at 0. */
static int degree_or_off (const struct row *r, const char *name, bool *said)
{
    int degree = calibrate_degree (r, name, 1, said);

    return degree == 0 ? 1 : degree;
}

/* One is no default where the stated degrees leave room: what they do is pipeline stages; where
 * tensor parallelism is not stated either, that of a node first, but with experts, whose recipes
 * have little of it.
 * @return false where nothing makes up the GPUs */
static bool fill_degrees (struct calibrate_run *run, int dp, long long *rest)
{
    struct workload_degrees *d = &run->config.deg;
    int more = (int) (run->gpus / (*rest * dp)),
        tp = run->tp_said || run->model.experts > 0 ? 1 : more;

    while (tp > 8 || (tp > 1 && more % tp != 0))
        tp--;
    if (*rest * dp * more != run->gpus)
        return false;
    d->tp *= tp;
    d->etp *= tp;
    d->pp *= more / tp;
    *rest *= more;
    return true;
}

#define FSDP_VERSIONS 2 /* "FSDP2" is none that two ranks shard */

/* Over how many ranks FSDP shards, by its column or that for all; 0: nothing says.  "FSDP2" is
 * a version there, "FSDP=2" none. */
static int fsdp_degree (const struct row *r)
{
    const char *all = calibrate_cell (r, "parallelism");
    int own = calibrate_whole (r, "fsdp", 0), split = split_said (all, "fsdp"),
        least = strcasestr (all, "fsdp=") || strcasestr (all, "fsdp =")
                    ? 2
                    : FSDP_VERSIONS + 1;

    return own > 1 ? own : split >= least ? split : 0;
}

/* Ranks that share a sequence beside no tensor parallelism, as Ulysses counts them; 1: no such. */
static int sequence_ranks (const struct row *r, int tp)
{
    int sp =
        calibrate_whole (r, "sp", split_said (calibrate_cell (r, "parallelism"), "sp"));

    return tp == 1 && sp > 1 ? sp : 1;
}

/* A degree in the column of sequence parallelism is that of the tensor-parallel ranks, or else of
 * cp, which Megatron does not have in this form: there it is of tp, and must stand there. */
static bool sequence_ranks_clear (const struct row *r, const struct workload_degrees *d)
{
    int sp = calibrate_whole (r, "sp", 0);
    const char *framework = calibrate_cell (r, "framework");
    bool megatron = (calibrate_contains (framework, "megatron") ||
                     calibrate_contains (framework, "nemo")) &&
                    !calibrate_contains (framework, "deepspeed");

    return sp == 0 || sp == 1 || (sp > 1 && sp == d->tp) ||
           (sp > 1 && d->tp == 1 && sp == d->cp && !megatron);
}

/* The number of chunks in an item of the notes: "VPP=6", "interleave 4", "interleaved schedule (6
 * chunks)", "4 virtual stages".  Around it there may be words for such things alone: the 8 of
 * "interleaved, tp 8" is another's.
 * @return 0: it says none */
static int chunks_in (const char *item)
{
    static const char *const names[] = {"vpp", "interleav", "virtual pipeline",
                                        "virtual stage", "model chunk"};
    static const char idle[] =
        "e ed ing s size stage stages degree factor schedule pipeline "
        "model parallel parallelism chunk chunks of with by x per gpu "
        "rank device";
    const char *at = item;
    char word[CALIBRATE_ITEM], *end;
    size_t n = 0;
    long number = 0;

    for (; *at && n == 0; at += n == 0)
        for (size_t i = 0; i < COUNT_OF (names) && n == 0; i++)
            n = calibrate_spelled (at, names[i]);
    if (n == 0 || calibrate_denied (item, at, n))
        return 0;
    for (const char *s = at + n; (s = calibrate_next_word (s, word));) {
        bool digits = isdigit ((unsigned char) word[0]);

        if (digits ? number > 0 || isalpha ((unsigned char) *s)
                   : !text_has_word (idle, word))
            return 0; /* "1F1B", "with 8 micro-batches" */
        number = digits ? strtol (word, NULL, 10) : number;
    }
    if (number == 0) {
        number = strtol (item, &end, 10);
        number = end + strspn (end, " -") == at ? number : 0;
    }
    return number > 0 && number < DEGREE_FAR ? (int) number : 0;
}

/* The chunks that the notes tell where no column does, unless they tell several. */
static void read_chunks (const struct row *r, struct calibrate_run *run)
{
    const char *notes = calibrate_cell (r, "notes");
    char item[CALIBRATE_ITEM];
    int told = 0;
    bool agree = !run->vpp_said && run->config.deg.pp > 1;

    while (agree && calibrate_next_item (&notes, item)) {
        int chunks = chunks_in (item);

        agree = chunks == 0 || told == 0 || chunks == told;
        told = chunks > 0 ? chunks : told;
    }
    if (agree && told > 0) {
        run->vpp_said = true;
        run->config.deg.vpp = told;
    }
}

/* "3D (8x4x8)": degrees of which it is not said what each is, but of HSDP's two. */
static bool is_unnamed_split (const char *s)
{
    bool is = false;

    for (const char *x = s; *x && !is; x++)
        is = x > s && isdigit ((unsigned char) x[-1]) &&
             tolower ((unsigned char) *x) == 'x' && isdigit ((unsigned char) x[1]);
    return is && !calibrate_contains (s, "sdp");
}

/* A column for all that says how, and nothing says over how many: "TP + FSDP".  Beside a stated dp
 * one way alone is over what that leaves. */
static bool is_split_open (const struct row *r)
{
    static const struct {
        const char *degree, *word;
    } named[] = {
        {"tp", "tp"},      {"tp", "tensor parallel"},   {"tp", "tensor parallelism"},
        {"pp", "pp"},      {"pp", "pipeline parallel"}, {"pp", "pipeline parallelism"},
        {"pp", "pipeline"}};
    bool tp = false, pp = false, left = calibrate_degree (r, "dp", 0, NULL) > 0, tp_said;

    for (size_t i = 0; i < COUNT_OF (named); i++) {
        bool *open = named[i].degree[0] == 't' ? &tp : &pp;

        *open = *open ||
                (calibrate_cell (r, named[i].degree)[0] == '\0' &&
                 calibrate_says_word (calibrate_cell (r, "parallelism"), named[i].word) &&
                 degree_told (r, named[i].degree) == 0);
    }
    calibrate_degree (r, "tp", 1, &tp_said);
    return left ? pp && !tp_said : tp || pp;
}

static const char *read_degrees (const struct row *r, struct calibrate_run *run)
{
    struct workload_degrees *d = &run->config.deg;
    long long rest;
    int dp;

    if (is_unnamed_split (calibrate_cell (r, "parallelism")) || is_split_open (r))
        return calibrate_refuse (r, "parallelism", "degrees by name, as in TP8 PP4");

    d->tp = calibrate_degree (r, "tp", 1, &run->tp_said);
    d->pp = calibrate_degree (r, "pp", 1, &run->pp_said);
    d->cp = calibrate_degree (r, "cp", sequence_ranks (r, d->tp), NULL);
    d->ep = degree_or_off (r, "ep", &run->ep_said);
    d->vpp = degree_or_off (r, "vpp", &run->vpp_said);
    d->etp = calibrate_note_int (r, "expert-tensor-parallel-size", d->tp);
    if (d->tp < 1 || d->pp < 1 || d->cp < 1 || d->ep < 1 || d->vpp < 1 || d->etp < 1)
        return "a degree is not a whole number";
    rest = (long long) d->tp * d->pp;
    if (rest <= run->gpus)
        rest *= d->cp;
    dp = calibrate_degree (r, "dp", 0, NULL);
    if (calibrate_cell (r, "dp")[0] != '\0' && dp < 1)
        return "dp is not a whole number";
    if (fsdp_degree (r) > 0) /* replicas of what FSDP shards */
        dp = dp > 0 && (long long) dp * fsdp_degree (r) <= run->gpus
                 ? dp * fsdp_degree (r)
                 : 0;
    if (!run->pp_said && dp > 0 && rest * dp < run->gpus &&
        (long long) d->ep * rest * dp != run->gpus && !fill_degrees (run, dp, &rest))
        return "pp unknown: the other degrees do not make up gpus";
    read_chunks (r, run);
    /* The GPUs are what is certain: some sources' dp counts cp too, or less. */
    if (run->gpus % rest != 0)
        return "tp x pp x cp does not divide gpus";
    d->dp = (int) (run->gpus / rest);
    /* Megatron's recipes with more expert ranks than dp x cp leave experts whole. */
    if (d->ep > 1 && (long long) d->dp * d->cp % d->ep != 0 &&
        calibrate_note_int (r, "expert-tensor-parallel-size", 0) == 0)
        d->etp = 1;
    return NULL;
}

#define STAGES_UNCLEAR (-1)

/* The stage behind a word for it: the 2 of "-stage-2".  @return -1: none */
static int stage_behind (const char *s)
{
    static const char between[] = " -_=:";

    s += strspn (s, between);
    if (strncasecmp (s, "stage", 5) == 0)
        s += 5 + strspn (s + 5, between);
    return *s >= '0' && *s <= '3' && !isdigit ((unsigned char) s[1]) ? *s - '0' : -1;
}

/* The stages that follow a word, a bit each. */
static unsigned stages_of (const char *s, const char *word)
{
    unsigned stages = 0;

    for (const char *at = s; *at; at++) {
        size_t n = calibrate_spelled (at, word);
        int stage = n > 0 && !calibrate_denied (s, at, n) ? stage_behind (at + n) : -1;

        stages |= stage >= 0 ? 1U << stage : 0;
    }
    return stages;
}

/* What PyTorch's names of its ways say: DDP shards nothing, FSDP all but by its strategies. */
static unsigned stages_of_torch (const char *s)
{
    enum calibrate_said fsdp = calibrate_says (s, "fsdp"),
                        hsdp = calibrate_says (s, "hsdp"),
                        ddp = calibrate_says (s, "ddp"),
                        whole = calibrate_says (s, "distributed data parallel");
    unsigned stages = ddp == SAID_YES || whole == SAID_YES ? 1U : 0;

    if (fsdp == SAID_YES || hsdp == SAID_YES)
        stages |= calibrate_says (s, "no shard") == SAID_YES        ? 1U
                  : calibrate_says (s, "shard grad op") == SAID_YES ? 4U
                                                                    : 8U;
    else if (fsdp == SAID_NO && !calibrate_contains (s, "megatron"))
        stages |= 1U; /* Megatron's own optimizer shards */
    return stages;
}

/* The ZeRO stage of the column for all, or of a framework's name ("DeepSpeed ZeRO-2", "PyTorch
 * DDP").
 * @param[out] said  does it say one?
 * @return STAGES_UNCLEAR: it says several */
static int stage_said (const char *s, bool *said)
{
    unsigned stages = stages_of (s, "zero");
    int stage = 0;

    if (calibrate_contains (s, "deepspeed"))
        stages |= stages_of (s, "stage");
    if (stages == 0)
        stages = calibrate_says (s, "zero offload") == SAID_YES    ? 4U
                 : calibrate_says (s, "zero infinity") == SAID_YES ? 8U
                 : calibrate_says (s, "zero") == SAID_NO           ? 1U
                                                                   : stages_of_torch (s);
    *said = stages != 0;
    while (*said && !(stages >> stage & 1))
        stage++;
    return *said && stages != 1U << stage ? STAGES_UNCLEAR : stage;
}

/* The stage of a column of FSDP alone, of words (calibrate/forms.c) or a degree; -1: it is none. */
static int fsdp_stage (const struct row *r)
{
    static const char *const words[] = {"none", "zero1", "zero2", "yes"};
    const char *cell = calibrate_cell (r, "fsdp");
    size_t n = strcspn (cell, " ");
    int stage = COUNT_OF (words) - 1;

    if (calibrate_whole (r, "fsdp", 0) > 1)
        return 3;
    while (stage >= 0 &&
           (strncmp (cell, words[stage], n) != 0 || words[stage][n] != '\0'))
        stage--;
    return stage;
}

static const char *read_zero (const struct row *r, struct calibrate_run *run)
{
    static const char *const columns[] = {"parallelism", "framework"};
    bool own = calibrate_cell (r, "fsdp")[0] != '\0';
    int zero = own ? fsdp_stage (r) : 0;

    if (zero < 0)
        return calibrate_refuse (r, "fsdp",
                                 "yes, no, a strategy as FULL_SHARD, or its ranks");
    run->zero_said = calibrate_cell (r, "zero")[0] != '\0' || zero > 0;
    for (size_t i = 0; i < COUNT_OF (columns) && !run->zero_said; i++) {
        const char *cell = calibrate_cell (r, columns[i]);

        if (own && !calibrate_contains (cell, "zero"))
            continue; /* its no is of FSDP */
        zero = stage_said (cell, &run->zero_said);
        if (zero == STAGES_UNCLEAR)
            return calibrate_refuse (r, columns[i], "one stage of ZeRO, FSDP or DDP");
    }
    run->zero_said = run->zero_said || own;
    run->config.zero = calibrate_whole (r, "zero", zero);
    return run->config.zero < 0 || run->config.zero > 3 ? "zero is not 0 to 3" : NULL;
}

/* Over how many ranks ZeRO shards: as many as are said, in as many groups as are said, or those of
 * a node, as PyTorch's hybrid sharding has it. */
static const char *read_shard (const struct row *r, struct calibrate_run *run)
{
    struct workload_config *c = &run->config;
    int copies = calibrate_note_int (r, "num-distributed-optimizer-instances", 1),
        slot = c->deg.tp * c->deg.cp, node = run->gpus_per_node / slot;
    bool hybrid = calibrate_contains (calibrate_cell (r, "notes"), "hsdp") ||
                  calibrate_contains (calibrate_cell (r, "fsdp"), "hybrid") ||
                  calibrate_contains (calibrate_cell (r, "parallelism"), "hsdp");

    c->shard = calibrate_whole (r, "shard", calibrate_note_int (r, "shard", 0));
    if (c->shard < 0 || copies < 1)
        return "shard is not a whole number";
    if (c->shard == 0 && fsdp_degree (r) > 1 && c->deg.dp % fsdp_degree (r) == 0)
        c->shard = fsdp_degree (r);
    if (c->shard == 0 && copies > 1)
        c->shard = c->deg.dp % copies == 0 ? c->deg.dp / copies : -1;
    else if (c->shard == 0 && hybrid && node > 1 && c->deg.dp % node == 0)
        c->shard = node;
    return c->shard >= 0 && (c->shard == 0 || c->deg.dp % c->shard == 0)
               ? NULL
               : "shard does not divide dp";
}

/* What says what is in the host's memory. */
static const struct {
    const char *name;
    enum workload_offload what; /* NONE: as the stage has it */
    bool vague;                 /* in prose it may be of anything */
} offload_words[] = {{"offload", OFFLOAD_NONE, true},
                     {"cpu offload", OFFLOAD_NONE, false},
                     {"offload to cpu", OFFLOAD_NONE, false},
                     {"offload optimizer", OFFLOAD_OPTIMIZER, false},
                     {"optimizer offload", OFFLOAD_OPTIMIZER, false},
                     {"optimizer cpu offload", OFFLOAD_OPTIMIZER, false},
                     {"zero offload", OFFLOAD_OPTIMIZER, false},
                     {"offload param", OFFLOAD_ALL, false},
                     {"param offload", OFFLOAD_ALL, false},
                     {"parameter offload", OFFLOAD_ALL, false},
                     {"zero infinity", OFFLOAD_ALL, false}};

/* Of cells anywhere in them, of an item of the notes at its beginning: what follows there may be of
 * other rows. */
static void offload_in (const char *s, bool item, struct calibrate_run *run)
{
    enum workload_offload *what = &run->config.offload;

    s += item ? calibrate_spelled (s, "enable") : 0;
    s += item ? strspn (s, "_- ") : 0;
    for (size_t i = 0; i < COUNT_OF (offload_words); i++) {
        const char *name = offload_words[i].name;
        size_t n = calibrate_spelled (s, name);
        bool said = !item
                        ? calibrate_says (s, name) == SAID_YES
                        : n > 0 && !offload_words[i].vague && !calibrate_denied (s, s, n);

        if (!said)
            continue;
        run->offload_open = true;
        *what = offload_words[i].what > *what ? offload_words[i].what : *what;
    }
}

static void offload_told (const struct row *r, struct calibrate_run *run)
{
    static const char *const columns[] = {"zero", "fsdp", "parallelism", "framework"};
    const char *notes = calibrate_cell (r, "notes");
    char item[CALIBRATE_ITEM];

    for (size_t i = 0; i < COUNT_OF (columns); i++)
        offload_in (calibrate_cell (r, columns[i]), false, run);
    while (calibrate_next_item (&notes, item))
        offload_in (item, true, run);
    if (run->config.offload != OFFLOAD_NONE)
        run->offload_open = false;
}

/* What lies in the host's memory: said in our word, or told. */
static const char *read_offload (const struct row *r, struct calibrate_run *run)
{
    const char *notes = calibrate_cell (r, "notes");
    enum workload_offload *what = &run->config.offload;
    char word[32];

    if (calibrate_note (r, "offload", word, sizeof word))
        return workload_offload_parse (word, what)
                   ? NULL
                   : "offload is not none, optimizer, all or checkpoints";
    offload_told (r, run);
    if (calibrate_contains (notes, "with CPU offload") ||
        calibrate_contains (notes, "and CPU offload") ||
        calibrate_contains (notes, "offloads to host memory"))
        return "offloading to the host is not supported";
    if (calibrate_says (notes, "activation offloading") == SAID_YES ||
        calibrate_says (notes, "checkpointing and offloading") == SAID_YES)
        *what = OFFLOAD_CHECKPOINTS; /* whose copies run beside the compute */
    return NULL;
}

/* Do the notes say that stages have no chunks, or how they are cut without any? */
static bool denies_chunks (const char *notes)
{
    static const char *const names[] = {"vpp", "interleav", "virtual pipeline"};
    const char *cut = strstr (notes, "partition ");
    bool denied =
        (strstr (notes, "schedule=") && !calibrate_contains (notes, "interleav")) ||
        (cut && isdigit ((unsigned char) cut[10]));

    for (size_t i = 0; i < COUNT_OF (names); i++)
        denied = denied || calibrate_says (notes, names[i]) == SAID_NO;
    return denied || (calibrate_contains (notes, "1f1b") &&
                      calibrate_says (notes, "interleav") == SAID_NOTHING);
}

const char *calibrate_read_config (const struct row *r, struct calibrate_run *run)
{
    struct workload_config *c = &run->config;
    const char *sp = calibrate_cell (r, "sp"), *all = calibrate_cell (r, "parallelism");

    TRY_ROW (read_degrees (r, run));
    c->micro_batch = calibrate_whole (r, "micro_batch", 1);
    run->micro_batch_said = calibrate_cell (r, "micro_batch")[0] != '\0';
    if (c->micro_batch < 1)
        return "micro_batch is not a whole number";
    TRY_ROW (read_zero (r, run));
    TRY_ROW (read_offload (r, run));
    TRY_ROW (read_shard (r, run));
    if (!run->zero_said && c->shard > 0)
        c->zero = 1; /* until the profile says which */
    if (!sequence_ranks_clear (r, &c->deg))
        return calibrate_refuse (r, "sp", "0 or 1; a degree is of cp");
    run->splits_sequences =
        calibrate_whole (r, "sp", calibrate_says_word (all, "sp")) >= 1;
    run->sequence_parallel_said = sp[0] != '\0' || run->splits_sequences;
    c->sequence_parallel = c->deg.tp > 1 && run->splits_sequences;
    run->recompute_said = calibrate_cell (r, "recompute")[0] != '\0';
    c->optimizer_bytes = calibrate_note_int (r, "optimizer-bytes", 0);
    if (c->optimizer_bytes < 0 || c->optimizer_bytes > WORKLOAD_OPTIMIZER_BYTES_MAX)
        return "optimizer-bytes is out of range";
    if (!read_recompute (r, &run->model, c))
        return calibrate_refuse (r, "recompute", "none, selective, full or modules");
    if (!calibrate_schedule_noted (calibrate_cell (r, "notes"), c))
        return "schedule not understood";
    run->vpp_said = run->vpp_said || denies_chunks (calibrate_cell (r, "notes"));
    if (run->model.experts == 0)
        c->deg.etp = c->deg.tp;
    return NULL;
}
