/* The columns of a runs file, under the names that people give them. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/file.h"

/* ---- the table ---- */

static const struct calibrate_unit seconds[] = {
    {"s", 1},        {"sec", 1},        {"secs", 1},         {"second", 1},
    {"seconds", 1},  {"ms", 1e-3},      {"msec", 1e-3},      {"milliseconds", 1e-3},
    {"s/it", 1},     {"s/iter", 1},     {"s/step", 1},       {"sec/it", 1},
    {"sec/iter", 1}, {"sec/step", 1},   {"seconds/step", 1}, {"seconds/iteration", 1},
    {"ms/it", 1e-3}, {"ms/iter", 1e-3}, {"ms/step", 1e-3},   {"min", 60},
    {"minutes", 60}, {NULL, 0}};
static const struct calibrate_unit gib[] = {
    {"gb", 1},           {"gib", 1},         {"g", 1}, {"mb", 1.0 / 1024},
    {"mib", 1.0 / 1024}, {"bytes", 0x1p-30}, {NULL, 0}};
/* Whose case tells bits from bytes, in cells and in names of columns. */
static const struct calibrate_unit gbits[] = {
    {"Gbps", 1}, {"gbps", 1},      {"Gbit/s", 1}, {"Gbits/s", 1}, {"Tbps", 1000},
    {"Gb/s", 1}, {"GB/s", 8},      {"GBps", 8},   {"G", 1},       {"GbE", 1},
    {"T", 1000}, {"Tbit/s", 1000}, {NULL, 0}};
static const struct calibrate_unit rates[] = {
    {"k", 1e3},       {"m", 1e6},          {"tok/s", 1},         {"tokens/s", 1},
    {"tok/s/gpu", 1}, {"tokens/s/gpu", 1}, {"tokens", 1},        {"t/s", 1},
    {"tok/sec", 1},   {"tokens/sec", 1},   {"tokens/second", 1}, {"tokens/sec/gpu", 1},
    {NULL, 0}};
static const struct calibrate_unit sequences[] = {
    {"samples/s", 1},     {"samples/sec", 1},     {"sequences/s", 1}, {"seq/s", 1},
    {"samples/s/gpu", 1}, {"samples/sec/gpu", 1}, {"seq/s/gpu", 1},   {NULL, 0}};
static const struct calibrate_unit iterations[] = {
    {"it/s", 1}, {"iter/s", 1}, {"steps/s", 1}, {NULL, 0}};
static const struct calibrate_unit tflops[] = {
    {"tflops", 1},      {"tflop/s", 1},      {"tflops/s", 1}, {"tflops/gpu", 1},
    {"tflop/s/gpu", 1}, {"tflops/s/gpu", 1}, {"pflops", 1e3}, {NULL, 0}};
static const struct calibrate_unit shares[] = {
    {"%", .01}, {"pct", .01}, {"percent", .01}, {NULL, 0}};
static const struct calibrate_unit billions[] = {{"b", 1},    {"bn", 1},  {"billion", 1},
                                                 {"m", 1e-3}, {"t", 1e3}, {NULL, 0}};
static const struct calibrate_unit powers[] = {{"k", 1024}, {"m", 1048576}, {"tokens", 1},
                                               {"t", 1},    {"packed", 1},  {NULL, 0}};
static const struct calibrate_unit batches[] = {
    {"k", 1024}, {"seqs", 1}, {"sequences", 1}, {"samples", 1}, {NULL, 0}};
static const struct calibrate_unit thousands[] = {{"k", 1000}, {NULL, 0}};
static const struct calibrate_unit millions[] = {
    {"k", 1024}, {"m", 1048576}, {"tokens", 1}, {NULL, 0}};
static const struct calibrate_unit pieces[] = {{"gpus", 1}, {"x", 1}, {NULL, 0}};
static const struct calibrate_unit none[] = {{NULL, 0}};

/* A documented column, what else it is called, joined to letters and digits, and its cells.  Behind
 * a name its unit may stand, and words as "num" and "size" are none of it. */
#define CELLS(KIND, UNITS, EXPECTED) .kind = KIND, .unit = UNITS, .expected = EXPECTED
#define WHOLE(UNITS) CELLS (CELL_WHOLE, UNITS, "a whole number")
#define NUMBER(UNITS, EXPECTED) CELLS (CELL_NUMBER, UNITS, EXPECTED)
#define TEXT CELLS (CELL_TEXT, none, NULL)
#define OPTIONAL .optional = true
static const struct calibrate_column columns[] = {
    {"source", "paper reference", TEXT},
    {"framework", "library trainer trainingframework stack", TEXT, OPTIONAL},
    {"container", "image", TEXT, OPTIONAL},
    {"framework_version", "libraryversion frameworkrelease", TEXT, OPTIONAL},
    {"date", "", TEXT, OPTIONAL},
    {"model", "modelname modelid", TEXT},
    {"params_b",
     "params parameters numparams nparams modelsize modelparams paramsbillion "
     "paramsinb parametersb modelsizeb paramcount",
     NUMBER (billions, "1e9 parameters, as in 6.7")},
    {"layers", "nlayer numlayer hiddenlayers transformerlayers blocks depth",
     WHOLE (none)},
    {"hidden", "dmodel nembd hiddendim embeddim embeddingdim dim modeldim", WHOLE (none)},
    {"heads", "nhead attentionheads attnheads queryheads", WHOLE (none)},
    {"kv_heads", "keyvalueheads querygroups kvhead", WHOLE (none)},
    {"ffn", "ffnhidden intermediate dff ffndim mlpdim feedforward", WHOLE (none)},
    {"vocab", "vocabulary nvocab", WHOLE (thousands)},
    {"seq",
     "seqlen seqlength sequence sequencelen sequencelength context contextlen "
     "contextlength contextwindow ctx ctxlen cutofflen maxtargetlength maxseqlen "
     "maxseqlength maxlength maxlen blocksize",
     WHOLE (powers)},
    {"gpu",
     "gputype gpumodel gpuname accelerator acceleratortype device devicetype hardware "
     "instance instancetype machine machinetype",
     TEXT},
    {"gpu_mem_gb", "gpumemsize gpumemorysize", CELLS (CELL_PARTS, gib, "GB of one GPU")},
    {"gpus",
     "ngpu numgpu gpucount worldsize totalgpus gpustotal numdevices chips nogpus "
     "numberofchips ngpus gpusused",
     WHOLE (pieces)},
    {"gpus_per_node",
     "gpusnode gpuspernode gpusperhost gpupernode ngpuspernode nprocpernode",
     WHOLE (pieces)},
    {"inter_node_gbps",
     "networkbandwidth interconnectbandwidth internodebandwidth nodebandwidth "
     "networkgbps interconnectgbps internodegbps nodegbps",
     CELLS (CELL_PARTS, gbits, "Gbit/s of one node, as in 400")},
    {"tp",
     "icitensorparallelism tensorparallel tensorparallelism tensormodelparallel mp "
     "modelparallel",
     WHOLE (none)},
    {"pp", "pipelineparallel pipelineparallelism pipelinemodelparallel pipelinestages",
     WHOLE (none)},
    {"vpp",
     "vp virtualpp virtualpipeline virtualpipelineparallel virtualpipelinemodelparallel "
     "interleave modelchunks virtualstages virtualpipelinestages",
     WHOLE (none)},
    {"dp", "dataparallel dataparallelism dcndataparallelism", WHOLE (none)},
    {"cp",
     "contextparallel contextparallelism sequenceparallelsize seqparallelsize spsize "
     "sepparallel ulysses ulyssesdegree",
     WHOLE (none)},
    {"ep", "expertparallel expertparallelism expertmodelparallel", WHOLE (none)},
    {"sp", "sequenceparallel sequenceparallelism seqparallel",
     CELLS (CELL_FLAG, none, "0 or 1, and a degree in cp")},
    {"zero",
     "deepspeedstage deepspeed zerooptimization zerostage sharding shardingstrategy "
     "fsdpsharding fsdpshardingstrategy dpstrategy "
     "dataparallelstrategy fsdpstrategy distributedoptimizer usedistributedoptimizer",
     CELLS (CELL_STAGE, none, "0 to 3")},
    {"fsdp", "icifsdp icifsdpparallelism fsdpparallelism fsdpparallel",
     CELLS (CELL_FSDP, none, NULL), OPTIONAL},
    {"shard",
     "dpshard shardingparallel dataparallelshard dataparallelsharddegree shardgroup "
     "sharddegree "
     "shardingdegree shardgroupsize micsshard hsdpshard",
     WHOLE (none), OPTIONAL},
    {"micro_batch",
     "mbs microbatch microbs bsgpu batchgpu batchpergpu batchsizepergpu perdevicebatch "
     "perdevicetrainbatch "
     "perdevicebatchsize perdevicetrainbatchsize trainmicrobatchsizepergpu "
     "trainmicrobatchpergpu localbatch pergpubatch devicebatch bspergpu batchperdevice",
     WHOLE (none)},
    {"global_batch", "gbs totalbatch batchsizeglobal trainbatch globalbs effectivebatch",
     WHOLE (batches)},
    {"precision", "dtype datatype mixedprecision computedtype trainingprecision numerics",
     CELLS (CELL_PRECISION, none, NULL)},
    {"attention",
     "flashattention flashattn useflashattention useflashattn attn attentionimpl "
     "attentionimplementation attnimplementation attnimpl "
     "attentiontype",
     CELLS (CELL_ATTENTION, none, NULL)},
    {"recompute",
     "rematpolicy recomputation activationcheckpointing activationcheckpoint ac acmode "
     "remat "
     "gradientcheckpointing checkpointing activationrecompute activationrecomputation "
     "recomputegranularity gradckpt activationckpt checkpointactivations "
     "gradientcheckpoint actckpt gc",
     CELLS (CELL_RECOMPUTE, none, "none, selective, full or modules")},
    {"iter_time_s",
     "itertime iterationtime steptime timeperstep timeperiteration timeperiter sper "
     "sstep sit sperstep sperit siter speriter speriteration secstep secperstep "
     "secondsperstep "
     "seciter secperiter secondsperiteration elapsedtimeperiteration timestep "
     "timeiteration",
     NUMBER (seconds, "seconds, as in 10.5")},
    {"tokens_per_s_per_gpu",
     "throughputtsgpu throughputtoksgpu throughputtokenssgpu tokensschip tokschip "
     "tokensscard tokenscards tokensseccard tokgpus tokenssecgpu tokenssecondgpu "
     "tokenspersecpergpu "
     "tokenspersecondpergpu tokenssgpu toksgpu tokspergpu "
     "tokenspergpupers tokenspergpupersec tokenspergpupersecond tokenspersgpu "
     "tokensgpus tpspergpu tpsgpu wps tgs throughputpergpu tokensperdevicepersecond "
     "tokenssdevice tokpersecpergpu tokspersecpergpu toksdev tokenspersecondperdevice "
     "tokensspergpu toksspergpu",
     NUMBER (rates, "tokens a second of one GPU")},
    {"tflops_per_gpu",
     "modeltflop modeltflopgpu modeltflopsgpu tflopschip tflopchipsec tflopsdevices "
     "tflopsdevice tflops tflopsgpu tflopgpu tflopssgpu tflopsgpu "
     "tflopspersgpu modeltflops "
     "modeltflopspergpu achievedtflops achievedtflopspergpu tflopsperdevice "
     "tflopspersecpergpu tflopsspergpu",
     NUMBER (tflops, "TFLOP/s of one GPU")},
    {"mfu", "modelflopsutilization modelflopsutilisation modelfloputilization",
     NUMBER (shares, "a share, as in 0.45, or a percentage, as in 45 %")},
    {"hfu", "hardwareflopsutilization hardwareflopsutilisation",
     NUMBER (shares, "a share, as in 0.45, or a percentage, as in 45 %"), OPTIONAL},
    {"peak_mem_gb",
     "peakmem vramusage vramused gpumemusage peakmemorygpu peakmemory peakgpumem "
     "peakgpumemory mem memory memoryused maxmem "
     "maxmemory maxmemoryallocated maxmemoryreserved memoryusage memusage gpumemused "
     "gpumemoryused peakvram memorypergpu memgpu peakmemorypergpu peakmempergpu "
     "maxgpumem maxgpumemory cudamaxmem peakmemoryallocated peakmemoryreserved "
     "hbmused hbmusage usedmemory usedmem allocatedmemory reservedmemory allocated "
     "reserved peakmemgpu "
     "maxmemalloc peakallocated peakreserved peakactivemem memperg",
     NUMBER (gib, "GiB, as in 61.5")},
    {"oom", "outofmemory ranout isoom", CELLS (CELL_FLAG, none, "0 or 1")},
    {"optimizer", "optim optimiser optimizername", TEXT, OPTIONAL},
    {"tuning",
     "finetuning finetuningtype finetuningmethod tuningmethod tunertype traintype "
     "trainingmethod method peft peftmethod",
     TEXT, OPTIONAL},
    {"notes", "note comment comments remark remarks", TEXT},
    /* What others follow from. */
    {"tokens_per_s",
     "throughputts tokenssec tokenssecond tokenspersec tokenspersecond tokenss toks tps "
     "tokensec tokpersec toksec "
     "throughputtoks throughputtokenss throughputtokenspers totaltokenspers",
     NUMBER (rates, "tokens a second"), OPTIONAL},
    {"samples_per_s",
     "seqsec seqss sequencessec throughputsampless throughputss "
     "samplessec samplespersec samplespersecond sampless sequencespers "
     "sequencespersecond "
     "sequencess examplespersecond",
     NUMBER (sequences, "sequences a second"), OPTIONAL},
    {"samples_per_s_per_gpu", "samplessgpu samplespersecondpergpu samplessecgpu seqsgpu",
     NUMBER (sequences, "sequences a second of one GPU"), OPTIONAL},
    {"steps_per_s",
     "stepss its iterss itersec iterssec stepspersecond iterationspersecond iterspersec",
     NUMBER (iterations, "steps a second"), OPTIONAL},
    {"batch_size", "batch bs", WHOLE (none), OPTIONAL},
    {"batch_tokens",
     "batchsizetokens globalbatchsizetokens batchsizeintokens batchintokens "
     "globalbatchtokens tokensperbatch tokensperstep tokensbatch",
     NUMBER (millions, "tokens, as in 4M"), OPTIONAL},
    {"gradient_accumulation",
     "gradientaccumulationsteps ga gradaccum gradaccumsteps gas accumulationsteps "
     "gradacc accumulation microbatches",
     WHOLE (none), OPTIONAL},
    {"parallelism",
     "parallelisms parallelization parallelconfig parallelstrategy parallellayout layout "
     "strategy",
     TEXT, OPTIONAL},
    {"nodes", "numnode nnodes nnode hosts numhosts nodecount", WHOLE (none), OPTIONAL},
};

/* Without them no row can be used; where the header has no `model`, sizes are needed too. */
static const char needed[] = "seq gpu gpus";

/* Columns that may stand for one that is not there. */
static const struct {
    const char *name, *by;
} instead[] = {{"gpus", "nodes"}, {"gpus", "dp"}, {"gpus", "gpu"}};

/* ---- names ---- */

static void lower (char *s)
{
    for (; *s; s++)
        *s = (char) tolower ((unsigned char) *s);
}

/* A name's letters and digits; without the words that say nothing, if asked. */
static void join (const char *name, bool all, char out[CALIBRATE_JOINED])
{
    static const char idle[] = "num n number of size degree the";
    size_t n = 0;

    while (*name) {
        size_t len = 0, from = n;
        char word[CALIBRATE_JOINED];

        while (isalnum ((unsigned char) name[len]) && n < CALIBRATE_JOINED - 1)
            out[n++] = name[len++];
        out[n] = '\0';
        snprintf (word, sizeof word, "%s", out + from);
        lower (word);
        if (!all && text_has_word (idle, word))
            n = from;
        name += len + (name[len] != '\0');
    }
    out[n] = '\0';
}

void calibrate_join (const char *name, char out[CALIBRATE_JOINED])
{
    join (name, true, out);
    lower (out);
}

const struct calibrate_unit *calibrate_unit_of (const struct calibrate_column *c,
                                                const char *said)
{
    char own[CALIBRATE_JOINED], joined[CALIBRATE_JOINED];

    join (said, true, joined);
    for (int strict = 1; strict >= 0; strict--)
        for (const struct calibrate_unit *u = c->unit; u->word; u++) {
            join (u->word, true, own);
            if (own[0] == '\0' ? strcmp (u->word, said) == 0
                : strict       ? strcmp (own, joined) == 0
                               : strcasecmp (own, joined) == 0)
                return u;
        }
    return NULL;
}

/* What may stand behind a name: nothing, "size", "degree" or a unit.
 * @param[out] factor  the unit's */
static bool is_rest (const struct calibrate_column *c, const char *rest, double *factor)
{
    const struct calibrate_unit *u = calibrate_unit_of (c, rest);

    if (strcasecmp (rest, "min") == 0) /* the shortest, or minutes */
        return false;
    *factor = rest[0] != '\0' && u ? u->factor : 1.0;
    return rest[0] == '\0' || u || strcasecmp (rest, "size") == 0 ||
           strcasecmp (rest, "degree") == 0;
}

/* What the unit that ends the documented name is worth as a title spells it: 8 of
 * inter_node_GBps. */
static double own_factor (const struct calibrate_column *c, const char *joined)
{
    const char *own = strrchr (c->name, '_');
    size_t n = own ? strlen (own + 1) : 0, len = strlen (joined);
    const char *end = joined + (len > n ? len - n : 0);
    const struct calibrate_unit *u = NULL;

    if (own && strcasecmp (end, own + 1) == 0)
        u = calibrate_unit_of (c, end);
    return u ? u->factor : 1.0;
}

/* Is the title this name, of n characters, and what may stand behind it? */
static bool is_named (const struct calibrate_column *c, const char *name, size_t n,
                      const char *joined, double *factor)
{
    if (strncasecmp (name, joined, n) != 0 || !is_rest (c, joined + n, factor))
        return false;
    if (joined[n] == '\0')
        *factor = own_factor (c, joined);
    return true;
}

/* Is it a name of the column?  @param[out] factor  of a unit in it, else 1 */
static bool is_called (const struct calibrate_column *c, const char *joined,
                       double *factor)
{
    char own[CALIBRATE_JOINED];

    calibrate_join (c->name, own);
    if (is_named (c, own, strlen (own), joined, factor))
        return true;
    for (const char *w = c->also; *w; w += strspn (w, " ")) {
        size_t n = strcspn (w, " ");

        if (is_named (c, w, n, joined, factor))
            return true;
        w += n;
    }
    return false;
}

/* Is it of speeds?  An average of these is one, but that of lengths or memory is not what a job
 * has. */
static bool is_speed (const struct calibrate_column *c)
{
    return c->unit == seconds || c->unit == rates || c->unit == sequences ||
           c->unit == iterations || c->unit == tflops || c->unit == shares;
}

/* A title behind "num" or, of speeds, a word that says how or where they were measured. */
static const char *without_prefix (const struct calibrate_column *c, const char *joined)
{
    static const char *const words[] = {"num",  "train",  "perf",   "avg",
                                        "mean", "median", "average"};

    for (size_t i = 0; i < (is_speed (c) ? COUNT_OF (words) : 1); i++)
        if (strncasecmp (joined, words[i], strlen (words[i])) == 0)
            return joined + strlen (words[i]);
    return joined;
}

const struct calibrate_column *calibrate_column_named (const char *title, double *factor)
{
    for (int all = 1; all >= 0; all--) {
        char joined[CALIBRATE_JOINED];

        join (title, all, joined);
        for (size_t i = 0; i < COUNT_OF (columns) && joined[0]; i++) {
            const char *name = without_prefix (&columns[i], joined);

            if (is_called (&columns[i], joined, factor) ||
                (name != joined && is_called (&columns[i], name, factor)))
                return &columns[i];
            /* "ms/step", "step_ms" */
            if (columns[i].unit == seconds &&
                ((strncasecmp (joined, "ms", 2) == 0 &&
                  is_called (&columns[i], joined + 1, factor)) ||
                 text_has_word ("stepms iterms iterationms", joined))) {
                *factor = 1e-3;
                return &columns[i];
            }
        }
    }
    return NULL;
}

/* Names that may mean several columns, and these: they are not read. */
static const struct {
    const char *names, *meant;
} unclear[] = {{"gpumem gpumemory gpuram vram gpumemgb gpumemorygb vramgb",
                "gpu_mem_gb is the GPU's, peak_mem_gb what was used"},
               {"throughput speed",
                "tokens_per_s_per_gpu, tokens_per_s and samples_per_s say of what"},
               {"time times duration", "iter_time_s is of one step"},
               {"steptimemin itertimemin iterationtimemin", "the shortest, or minutes"},
               {"network interconnect", "inter_node_gbps is a number"}};

const char *calibrate_unclear (const char *title)
{
    char joined[CALIBRATE_JOINED];

    calibrate_join (title, joined);
    for (size_t i = 0; i < COUNT_OF (unclear); i++)
        if (text_has_word (unclear[i].names, joined))
            return unclear[i].meant;
    return NULL;
}

/* ---- the header ---- */

/* What it lacks, and what it has that may be that. */
static enum status refuse_header (const char *path, const struct csv_table *t,
                                  const char *lacks, const char *why, struct error *err)
{
    struct text has = {0};

    for (int i = 0; i < t->columns; i++)
        if (t->header[i][0]) /* room for columns that are made has no name */
            text_add (&has, "%s%.40s", has.len > 0 ? ", " : "", t->header[i]);
    err_set (err, ST_INVALID,
             "%s: the header lacks %s%s; it has %s (docs/runs.md lists the names)",
             file_title (path), lacks, why, text_str (&has));
    text_free (&has);
    return ST_INVALID;
}

enum status calibrate_check_columns (const char *path, const struct csv_table *t,
                                     struct calibrate_runs *runs, struct error *err)
{
    bool named = csv_table_column (t, "model", 0) >= 0;
    struct text missing = {0}, refused = {0};
    enum status st = ST_OK;

    for (size_t i = 0; i < COUNT_OF (columns); i++) {
        const char *name = columns[i].name;
        int at = csv_table_column (t, name, 0);
        bool replaced = false;

        for (size_t k = 0; k < COUNT_OF (instead); k++)
            replaced = replaced || (strcmp (instead[k].name, name) == 0 &&
                                    csv_table_column (t, instead[k].by, 0) >= 0);
        if (at < 0 && !columns[i].optional) {
            text_add (&missing, "%s%s", missing.len ? ", " : "", name);
            if ((text_has_word (needed, name) && !replaced) ||
                (!named && text_has_word (CALIBRATE_SIZES, name)))
                text_add (&refused, "%s%s", refused.len ? ", " : "", name);
        } else if (at >= 0 && csv_table_column (t, name, at + 1) >= 0) {
            st = err_set (err, ST_INVALID, "%s: the header has %s twice",
                          file_title (path), name);
        }
    }
    if (refused.len > 0)
        st = refuse_header (path, t, text_str (&refused),
                            named ? ""
                                  : ": a runs file needs them, or a model's name for its "
                                    "sizes",
                            err);
    if (missing.len > 0)
        snprintf (runs->absent, sizeof runs->absent, "%s", text_str (&missing));
    text_free (&missing);
    text_free (&refused);
    return st;
}

bool calibrate_is_oom (const char *cell)
{
    char joined[CALIBRATE_JOINED];

    calibrate_join (cell, joined);
    return strncmp (joined, "oom", 3) == 0 || strncmp (joined, "outofmemory", 11) == 0 ||
           text_has_word ("cudaoutofmemory cudaoom", joined);
}

const char *calibrate_unread_cell (const struct row *r)
{
    for (size_t i = 0; i < COUNT_OF (columns); i++) {
        const struct calibrate_column *c = &columns[i];
        const char *cell = calibrate_cell (r, c->name);
        bool parts = c->kind == CELL_PARTS && strpbrk (cell, "/+");
        double x;

        if (cell[0] == '\0' || parts || calibrate_is_text (c->kind) ||
            calibrate_is_oom (cell))
            continue;
        if (!calibrate_number (cell, &x) || (c->kind == CELL_WHOLE && x != floor (x)))
            return calibrate_refuse (r, c->name, c->expected);
    }
    return NULL;
}
