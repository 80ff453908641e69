/* Which GPU type a name means: as people shorten it, as tables of runs spell it, as drivers print
 * it, or as clouds call the machine.
 *
 * A name is cut into words of letters and of digits, "h100-80g" into h 100 80 g.  The first family
 * of the table whose words stand in it, one behind the other, is meant; of its rows those of the
 * board that is named; of these the one of the memory that is said. */
#include "topology/topology.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define WORDS_MAX 192

/* A family's words, the word of a board (NULL: of names without any), memory in GB as it is sold or
 * else said, and the type (NULL: it is none that is built in).  The first of a family is the usual
 * one. */
static const struct named {
    const char *family, *board;
    double gb;
    const char *type;
} table[] = {
    {"mig", NULL, 0, NULL},
    {"laptop", NULL, 0, NULL},
    {"mobile", NULL, 0, NULL},
    {"pro 6000", NULL, 96, "rtx-pro-6000"},
    {"max q", NULL, 0, NULL},
    {"gb 300", NULL, 288, "gb300-288g"},
    {"gb 200", NULL, 192, "gb200-192g"},
    {"gb 10", NULL, 128, "gb10"},
    {"dgx spark", NULL, 128, "gb10"},
    {"gh 200", NULL, 96, "gh200-96g"},
    {"gh 200", NULL, 480, "gh200-96g"},
    {"gh 200", NULL, 120, "gh200-96g"},
    {"gh 200", NULL, 144, "gh200-144g"},
    {"grace hopper", NULL, 96, "gh200-96g"},
    {"grace hopper", NULL, 480, "gh200-96g"},
    {"grace hopper", NULL, 120, "gh200-96g"},
    {"grace hopper", NULL, 144, "gh200-144g"},
    {"b 300", NULL, 288, "b300-288g"},
    {"b 200", NULL, 192, "b200-192g"},
    {"b 200", NULL, 180, "b200-192g"},
    {"b 100", NULL, 192, "b100-192g"},
    {"h 200", NULL, 141, "h200-sxm-141g"},
    {"h 200", "nvl", 141, "h200-nvl-141g"},
    {"h 800", NULL, 80, "h800-sxm5-80g"},
    {"h 800", "pcie", 80, "h800-pcie-80g"},
    {"h 100", NULL, 80, "h100-sxm5-80g"},
    {"h 100", NULL, 96, "h100-sxm5-96g"},
    {"h 100", NULL, 94, "h100-nvl-94g"},
    {"h 100", "sxm", 80, "h100-sxm5-80g"},
    {"h 100", "sxm", 96, "h100-sxm5-96g"},
    {"h 100", "nvl", 94, "h100-nvl-94g"},
    {"h 100", "pcie", 80, "h100-pcie-80g"},
    {"h 20", NULL, 96, "h20-96g"},
    {"h 20", NULL, 141, "h20-141g"},
    {"h 20", "3 e", 141, "h20-141g"},
    {"a 800", NULL, 80, "a800-sxm4-80g"},
    {"a 800", NULL, 40, "a800-pcie-40g"},
    {"a 800", "pcie", 80, "a800-pcie-80g"},
    {"a 800", "pcie", 40, "a800-pcie-40g"},
    {"a 100", NULL, 80, "a100-sxm4-80g"},
    {"a 100", NULL, 40, "a100-sxm4-40g"},
    {"a 100", "pcie", 80, "a100-pcie-80g"},
    {"a 100", "pcie", 40, "a100-pcie-40g"},
    {"v 100 s", NULL, 32, "v100s-pcie-32g"},
    {"v 100", NULL, 32, "v100-sxm2-32g"},
    {"v 100", NULL, 16, "v100-sxm2-16g"},
    {"v 100", "pcie", 32, "v100-pcie-32g"},
    {"v 100", "pcie", 16, "v100-pcie-16g"},
    {"mi 355", NULL, 288, "mi355x"},
    {"mi 350", NULL, 288, "mi350x"},
    {"mi 325", NULL, 256, "mi325x"},
    {"mi 300 a", NULL, 128, "mi300a"},
    {"mi 300", NULL, 192, "mi300x"},
    {"mi 250 x", NULL, 64, "mi250x"},
    {"mi 250 x", NULL, 128, "mi250x"},
    {"mi 250", NULL, 64, "mi250"},
    {"mi 250", NULL, 128, "mi250"},
    {"mi 210", NULL, 64, "mi210"},
    {"mi 100", NULL, 32, "mi100"},
    {"6000 ada", NULL, 48, "rtx-6000-ada"},
    {"quadro rtx 6000", NULL, 24, "quadro-rtx-6000"},
    {"5000 ada", NULL, 32, "rtx-5000-ada"},
    {"4000 ada", NULL, 20, NULL},
    {"rtx 6000", NULL, 48, "rtx-6000-ada"},
    {"rtx 8000", NULL, 48, "rtx-8000"},
    {"a 6000", NULL, 48, "rtx-a6000"},
    {"a 5000", NULL, 24, "rtx-a5000"},
    {"a 4000", NULL, 16, "rtx-a4000"},
    {"titan rtx", NULL, 24, "titan-rtx"},
    {"rtx titan", NULL, 24, "titan-rtx"},
    {"titan v", NULL, 12, "titan-v"},
    {"5090", NULL, 32, "rtx-5090"},
    {"5090", "d", 32, NULL},
    {"5080", NULL, 16, "rtx-5080"},
    {"5070 ti", NULL, 16, "rtx-5070-ti"},
    {"5070", NULL, 12, "rtx-5070"},
    {"5060 ti", NULL, 16, "rtx-5060-ti"},
    {"4090", NULL, 24, "rtx-4090"},
    {"4090", "d", 24, "rtx-4090-d"},
    {"4080", NULL, 16, "rtx-4080"},
    {"4070 ti", NULL, 12, "rtx-4070-ti"},
    {"4070 ti", "super", 16, "rtx-4070-ti-super"},
    {"4070", NULL, 12, "rtx-4070"},
    {"4070", "super", 12, NULL},
    {"4060 ti", NULL, 16, "rtx-4060-ti"},
    {"3090 ti", NULL, 24, "rtx-3090-ti"},
    {"3090", NULL, 24, "rtx-3090"},
    {"3080 ti", NULL, 12, "rtx-3080-ti"},
    {"3080", NULL, 10, "rtx-3080"},
    {"3070", NULL, 8, "rtx-3070"},
    {"3070", "ti", 8, NULL},
    {"3060", NULL, 12, "rtx-3060"},
    {"3060", "ti", 8, NULL},
    {"2080 ti", NULL, 11, "rtx-2080-ti"},
    {"2080", NULL, 8, "rtx-2080"},
    {"2080", "super", 8, NULL},
    {"a 40", NULL, 48, "a40"},
    {"a 30", NULL, 24, "a30"},
    {"a 10 g", NULL, 24, "a10g"},
    {"a 10", NULL, 24, "a10"},
    {"l 40 s", NULL, 48, "l40s"},
    {"l 40", NULL, 48, "l40"},
    {"l 20", NULL, 48, "l20"},
    {"l 4", NULL, 24, "l4"},
    {"t 4", NULL, 16, "t4"},
};

/* Machines of clouds: Amazon's, of which some need their size behind them, Google's, Azure's and
 * Oracle's; and the network that their makers state for eight GPUs, 0: the type's usual. */
static const struct machine_name {
    const char *words, *type;
    double gbit_per_s;
    bool sized;
} machines[] = {{"p 3 dn", "v100-sxm2-32g", 100, false},
                {"p 3", "v100-sxm2-16g", 25, true},
                {"p 4 de", "a100-sxm4-80g", 400, false},
                {"p 4 d", "a100-sxm4-40g", 400, false},
                {"p 5 en", "h200-sxm-141g", 3200, false},
                {"p 5 e", "h200-sxm-141g", 3200, false},
                {"p 5", "h100-sxm5-80g", 3200, true},
                {"p 6 b 200", "b200-192g", 3200, false},
                {"p 6 b 300", "b300-288g", 6400, false},
                {"p 6 e gb 200", "gb200-192g", 0, false},
                {"p 6 e gb 300", "gb300-288g", 0, false},
                {"g 4 dn", "t4", 100, false},
                {"g 5", "a10g", 100, true},
                {"g 6 e", "l40s", 400, false},
                {"g 6", "l4", 100, true},
                {"a 2 highgpu", "a100-sxm4-40g", 100, false},
                {"a 2 megagpu", "a100-sxm4-40g", 100, false},
                {"a 2 ultragpu", "a100-sxm4-80g", 100, false},
                {"a 3 highgpu", "h100-sxm5-80g", 800, false},
                {"a 3 megagpu", "h100-sxm5-80g", 1600, false},
                {"a 3 ultragpu", "h200-sxm-141g", 3200, false},
                {"a 4 highgpu", "b200-192g", 3200, false},
                {"a 4 x highgpu", "gb200-192g", 0, false},
                {"a 4 x maxgpu", "gb300-288g", 0, false},
                {"nd 96 asr", "a100-sxm4-40g", 1600, false},
                {"nd 96 isr v 5", "h100-sxm5-80g", 3200, false},
                {"nd 40 rs", "v100-sxm2-32g", 100, false},
                {"ads a 100", "a100-pcie-80g", 0, false},
                {"ads h 100", "h100-nvl-94g", 0, false},
                {"adis h 100", "h100-nvl-94g", 0, false},
                {"bm gpu 4 8", "a100-sxm4-40g", 1600, false},
                {"dgx 2", "v100-sxm2-32g", 0, false}};

/* ---- words ---- */

/* Words that others are glued to: "RTXA6000", "TeslaV100". */
static bool ends_with_maker (const char *words)
{
    static const char *const makers[] = {" rtx", " tesla", " nvidia", " geforce",
                                         " quadro"};
    size_t n = strlen (words);
    bool ends = false;

    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        size_t m = strlen (makers[i]);

        ends = ends || (n >= m && strcmp (words + n - m, makers[i]) == 0);
    }
    return ends;
}

/* " h 100 80 gb " of "8x H100-80GB": words between blanks, numbers of GPUs in front left out. */
static void cut (const char *name, char out[WORDS_MAX])
{
    size_t n = 0;
    bool capital = false,
         after_capital = false; /* of the last letter, and of that before it */
    char *end;

    while (isdigit ((unsigned char) *name)) {
        strtol (name, &end, 10);
        end += strspn (end, " ");
        if (tolower ((unsigned char) *end) != 'x')
            break;
        name = end + 1 + strspn (end + 1, " ");
    }
    out[n++] = ' ';
    for (; *name && n < WORDS_MAX - 3; name++) {
        bool word = isalnum ((unsigned char) *name),
             digit = isdigit ((unsigned char) *name),
             digits = isdigit ((unsigned char) out[n - 1]);

        capital = isalpha ((unsigned char) *name) ? isupper ((unsigned char) *name) != 0
                                                  : capital;
        if (*name == 's' && digits && after_capital && !isalnum ((unsigned char) name[1]))
            continue; /* "V100s" are several V100, "V100S" and "v100s" are cards */
        after_capital = capital;
        out[n] = '\0';
        if (out[n - 1] != ' ' && (!word || digit != digits || ends_with_maker (out)))
            out[n++] = ' ';
        if (word)
            out[n++] = (char) tolower ((unsigned char) *name);
    }
    if (out[n - 1] != ' ')
        out[n++] = ' ';
    out[n] = '\0';
}

/* Where words stand in others, each between blanks. */
static char *find_words (char *in, const char *words)
{
    char spaced[32];

    snprintf (spaced, sizeof spaced, " %s ", words);
    return strstr (in, spaced);
}

/* The first row of the family that a name means, whose words go, so that what is left says board
 * and memory.  @param[out] after  what stands behind them */
static const struct named *take_family (char *words, const char **after)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char *at = find_words (words, table[i].family);

        if (at) {
            *after = at + strlen (table[i].family) + 1;
            memset (at, ' ', strlen (table[i].family) + 1);
            return &table[i];
        }
    }
    return NULL;
}

/* Rows of one family stand together. */
static bool same_family (const struct named *a, const struct named *b)
{
    return b < table + sizeof table / sizeof *table && strcmp (a->family, b->family) == 0;
}

/* A number of gigabytes at the beginning of words: "80 gb". */
static bool is_gb (const char *s, double *n)
{
    char unit[8] = "";

    return isdigit ((unsigned char) *s) && sscanf (s, "%lf %7s", n, unit) == 2 &&
           text_has_word ("g gb gib", unit);
}

/* Words beside a family's that say nothing more of it. */
static const char plain[] = "nvidia amd tesla quadro geforce rtx instinct radeon sxm "
                            "pcie pci nvl hbm e dgx hgx "
                            "oam generation blackwell hopper ada ampere server "
                            "workstation edition max q tensor "
                            "core gpu gpus g gb gib x d super ti";

/* What a number before them counts. */
static const char things[] =
    "core cores cpu cpus vcpu vcpus thread threads gpu gpus node nodes card cards way";

/* Is the number of a count, "x16", "(96 cores)", not of gigabytes?
 * @param[in] s  in `words` */
static bool is_count (const char *words, const char *s)
{
    char behind[16] = "";

    sscanf (s, "%*s %15s", behind);
    return (s >= words + 3 && strncmp (s - 3, " x ", 3) == 0) ||
           text_has_word (things, behind);
}

/* The memory that words say; or a number behind the family that is one of its, last of all or with
 * nothing between that is no part of its name: the 80 of "A100-SXM4-80" and "A100 NVLink 80", but
 * not the 96 of "H100 (ND96isr_v5)". */
static double said_gb (const struct named *f, const char *words, const char *after)
{
    double bare = 0.0;
    bool near = true;

    for (const char *s = words; *s; s += strcspn (s, " ")) {
        char word[WORDS_MAX];
        double n;

        s += strspn (s, " ");
        if (is_gb (s, &n))
            return n;
        snprintf (word, sizeof word, "%.*s", (int) strcspn (s, " "), s);
        if (s < after || bare > 0 || is_count (words, s))
            continue;
        near = near && (isdigit ((unsigned char) *s) || text_has_word (plain, word));
        n = near || strlen (s) == strlen (word) + 1 ? strtod (word, NULL) : 0.0;
        for (const struct named *v = f; same_family (f, v) && n > 0; v++)
            bare = fabs (n - v->gb) < 0.5 ? n : bare;
    }
    return bare;
}

static bool is_plain (const char *words)
{
    char copy[WORDS_MAX], *word[WORDS_MAX / 2];
    int n;

    snprintf (copy, sizeof copy, "%s", words);
    n = text_words (copy, word, WORDS_MAX / 2);
    for (int i = 0; i < n; i++)
        if (!isdigit ((unsigned char) word[i][0]) && !text_has_word (plain, word[i]))
            return false;
    return true;
}

/* ---- types ---- */

/* Drivers report up to a tenth less or more than a size as it is sold. */
#define MEMORY_APART 0.1

/* The machine that a name in words means; "DGX 2x H100" counts machines. */
static const struct machine_name *machine_of (const char *name, char *words)
{
    bool sized = find_words (words, "xlarge") || find_words (words, "metal"),
         counted = !strcasestr (name, "dgx-2") && !strcasestr (name, "dgx2");

    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if ((sized || !machines[i].sized) && find_words (words, machines[i].words) &&
            !(counted && strcmp (machines[i].words, "dgx 2") == 0))
            return &machines[i];
    return NULL;
}

/* Of a family's rows, those of the board that the words name or of none, the nearest in memory. */
static const struct named *nearest (const struct named *f, char *words, double gb)
{
    const struct named *best = NULL;
    bool board = false;

    for (const struct named *v = f; same_family (f, v); v++)
        board = board || (v->board && find_words (words, v->board));
    for (const struct named *v = f; same_family (f, v); v++) {
        bool fits = board ? v->board && find_words (words, v->board) : !v->board;

        if (fits &&
            (!best || (gb > 0 && fabs (log (gb / v->gb)) < fabs (log (gb / best->gb)))))
            best = v;
    }
    return best;
}

/* Is the type one of the family's? */
static bool has_type (const struct named *f, const char *type)
{
    bool has = false;

    for (const struct named *v = f; same_family (f, v); v++)
        has = has || (v->type && strcmp (v->type, type) == 0);
    return has;
}

/* Do the words left name a family that the type is none of?  Those of its own go. */
static bool names_another (char *words, const char *type)
{
    const struct named *f;
    const char *after;
    bool another = false;

    while (!another && (f = take_family (words, &after)))
        another = f->gb > 0 && !has_type (f, type); /* a PRO 6000 may be Max-Q */
    return another;
}

#define MEMORY_FAR 0.5 /* of a family's: of the host, or GPUs of "a2-ultragpu-8g" */

/* Do they say a memory that a type of another size in the family has, "40GB or 80GB"? */
static bool says_another (const struct named *f, char *words,
                          const struct topology_gpu_type *type)
{
    double n;
    bool another = false;

    for (const char *s = words; *s && !another; s += strcspn (s, " ")) {
        const struct named *of;

        s += strspn (s, " ");
        of = is_gb (s, &n) ? nearest (f, words, n) : NULL;
        another =
            of && of->type && fabs (log (n / of->gb)) < MEMORY_FAR &&
            topology_gpu_type_builtin (of->type)->memory_bytes != type->memory_bytes;
    }
    return another;
}

bool topology_gpu_is_slice (const char *name)
{
    bool is = false;

    for (const char *s = name; *s && !is; s++)
        is = s > name && isdigit ((unsigned char) s[-1]) &&
             strncasecmp (s, "g.", 2) == 0 && isdigit ((unsigned char) s[2]);
    return is;
}

bool topology_gpu_read (const char *name, double gb, struct topology_gpu_reading *out)
{
    char words[WORDS_MAX];
    const struct machine_name *machine;
    const struct named *f, *best;
    const char *after;

    if (topology_gpu_is_slice (name))
        return false;
    cut (name, words);
    *out = (struct topology_gpu_reading){.type = NULL};
    if ((machine = machine_of (name, words))) {
        out->type = topology_gpu_type_builtin (machine->type);
        out->node_bytes_per_s = machine->gbit_per_s * UNITS_GB / 8;
    }
    f = take_family (words, &after);
    if (out->type) {
        out->several =
            f && (!has_type (f, out->type->name) || says_another (f, words, out->type) ||
                  names_another (words, out->type->name));
        return true;
    }
    if (!f)
        return false;
    out->said_gb = said_gb (f, words, after);
    gb = out->said_gb > 0 ? out->said_gb : gb;
    best = nearest (f, words, gb);
    out->type = best->type ? topology_gpu_type_builtin (best->type) : NULL;
    out->strange = !is_plain (words);
    out->other_memory = gb > 0 && fabs (log (gb / best->gb)) > MEMORY_APART;
    if (!out->other_memory)
        out->said_gb = 0.0; /* the type's own */
    out->several = out->type && (says_another (f, words, out->type) ||
                                 names_another (words, best->type));
    return true;
}

const struct topology_gpu_type *topology_gpu_type_meant (const char *name)
{
    const struct topology_gpu_type *exact = topology_gpu_type_builtin (name);
    struct topology_gpu_reading r;

    if (exact || !topology_gpu_read (name, 0.0, &r))
        return exact;
    return r.other_memory || r.strange || r.several ? NULL : r.type;
}

enum status topology_gpu_type_take (const char *option, const char *name,
                                    const struct topology_gpu_type **out,
                                    struct notes *notes, struct error *err)
{
    char hint[TEXT_HINT];

    if (!(*out = topology_gpu_type_meant (name)))
        return err_set (err, ST_USAGE,
                        "%s: unknown GPU type \"%.60s\"%s (`linkwise gpus` lists them)",
                        option, name, topology_gpu_type_hint (name, hint));
    if (strcmp ((*out)->name, name) != 0)
        notes_add (notes, "%s: taken as %s", name, (*out)->name);
    return ST_OK;
}

const char *topology_gpu_type_of_product (const char *product, double memory_bytes)
{
    struct topology_gpu_reading r;

    if (!topology_gpu_read (product, memory_bytes / UNITS_GIB, &r) || !r.type ||
        r.strange || r.other_memory)
        return NULL;
    /* A card of that name with another memory is another type. */
    return memory_bytes > 0 &&
                   fabs (memory_bytes - r.type->memory_bytes) > 0.1 * r.type->memory_bytes
               ? NULL
               : r.type->name;
}

const char *topology_gpu_type_hint (const char *name, char buf[TEXT_HINT])
{
    struct text_near near = {.asked = name};
    struct topology_gpu_reading r;
    bool known = topology_gpu_read (name, 0.0, &r);
    int n;
    const struct topology_gpu_type *types = topology_gpu_types_builtin (&n);

    if (known && !r.type) {
        snprintf (buf, TEXT_HINT, "; that GPU is not built in");
        return buf;
    }
    for (int i = 0; i < n && !known; i++) {
        const char *own = types[i].name;

        if (text_near_try (&near, own, strlen (own)) ||
            text_near_try (&near, own, strcspn (own, "-")))
            snprintf (near.word, sizeof near.word, "%s", own);
    }
    if (known)
        snprintf (near.word, sizeof near.word, "%s", r.type->name);
    return text_near_hint (&near, "", buf);
}
