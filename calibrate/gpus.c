/* The GPUs and machines of a measured run, as sources spell them. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* What a node's network may reach: a modem to a hundred times what there is. */
#define GBPS_MIN 1e-5
#define GBPS_MAX 1e6

/* ---- networks ---- */

/* Amazon's machines: what their network has (docs.aws.amazon.com, accelerated computing
 * instances), and the most that NCCL's TCP sockets were seen to reach of it, Gbit/s: on a
 * fast line they end at the host's copies, on a slow one at the line.  37 of 100 on
 * p3dn.24xlarge (NVIDIA/nccl issue 398); AMP's trials tell 14 of 50 on g4dn.12xlarge, over
 * what `link` and `link_out` then leave; T4s elsewhere stand in such machines too. */
static const struct {
    const char *word;
    double gbps, sockets_gbps;
} instances[] = {
    {"p3.8xlarge", 10, 10},
    {"p3.16xlarge", 25, 25},
    {"p3dn.24xlarge", 100, 40},
    {"p4d.24xlarge", 400, 400},
    {"p4de.24xlarge", 400, 400},
    {"p5.48xlarge", 3200, 3200},
    {"g4dn.12xlarge", 50, 16},
    {"g4dn.metal", 100, 16},
    {"g5.12xlarge", 40, 40},
    {"g5.48xlarge", 100, 40},
    {"t4", 50, 16},
};

/* Is the word in the spelling, and no part of a longer number (T4 in "T40")?  One of two letters
 * stands alone. */
static bool names (const char *spelled, const char *word)
{
    size_t n = strlen (word);

    for (const char *s = spelled; *s; s++) {
        if (strncasecmp (s, word, n) != 0 || isdigit ((unsigned char) s[n]))
            continue;
        if (n > 2 || s == spelled || !isalnum ((unsigned char) s[-1]))
            return true;
    }
    return false;
}

/* What a network reaches on machines of that spelling.  @param stated  0: not stated */
static double reached_gbps (const char *spelled, double stated)
{
    for (size_t i = 0; i < sizeof instances / sizeof *instances; i++)
        if (names (spelled, instances[i].word))
            return fmin (stated > 0 ? stated : instances[i].gbps,
                         instances[i].sockets_gbps);
    return stated;
}

/* One positive number for all parts, or one for each with a "/" or "+" between them.
 * @param[out] x  [n] 0 where the cell is empty
 * @return false when it is something else */
static bool for_parts (const struct row *r, const char *name, double *x, int n)
{
    const char *s = calibrate_cell (r, name);
    char *end;

    if (calibrate_stated (r, name, 0, x)) {
        for (int i = 1; i < n; i++)
            x[i] = x[0];
        return true;
    }
    for (int i = 0; i < n; i++) {
        x[i] = strtod (s, &end);
        if (end == s || !isfinite (x[i]) || x[i] <= 0)
            return false;
        s = end + strspn (end, " ");
        if (i < n - 1 ? *s != '/' && *s != '+' : *s != '\0')
            return false;
        s++;
    }
    return true;
}

static const char *read_network (const struct row *r,
                                 char spelled[][CALIBRATE_SPELLED_MAX],
                                 struct calibrate_run *run)
{
    double gbps[CALIBRATE_TYPES_MAX];

    if (!for_parts (r, "inter_node_gbps", gbps, run->n_parts))
        return "inter_node_gbps is not a positive number";
    for (int i = 0; i < run->n_parts; i++) {
        if (gbps[i] > 0 && (gbps[i] < GBPS_MIN || gbps[i] > GBPS_MAX))
            return "inter_node_gbps is out of range";
        run->part[i].inter_bytes_per_s = reached_gbps (spelled[i], gbps[i]) * 1e9 / 8.0;
    }
    return NULL;
}

/* ---- mixes ---- */

/* A unit of memory behind a number: "80G", "80 GiB", "16-GB"; but "8 GB200" is a name. */
static bool is_memory (const char *s)
{
    static const char *const units[] = {"gib", "gb", "g"};

    s += strspn (s, " -");
    for (size_t i = 0; i < COUNT_OF (units); i++) {
        size_t n = strlen (units[i]);

        if (strncasecmp (s, units[i], n) == 0)
            return !isalnum ((unsigned char) s[n]);
    }
    return false;
}

static bool names_type (const char *part)
{
    struct topology_gpu_reading g;

    return topology_gpu_type_builtin (part) || topology_gpu_read (part, 0.0, &g);
}

/* "8 A100", where the name of a type follows and nothing else. */
static int counted_plainly (const char *cell)
{
    int n = 0, used = 0;

    return sscanf (cell, "%5d %n", &n, &used) == 1 && n > 0 && used > 0 &&
                   isalpha ((unsigned char) cell[used]) &&
                   topology_gpu_type_meant (cell + used)
               ? n
               : 0;
}

/* "8x A100", "2x8 H100" of nodes and their GPUs.  @return 0: there is no number in front */
static int counted_gpus (const char *cell)
{
    int n = 0, each = 0, used = 0, more = 0;

    if (sscanf (cell, "%5d %*1[xX]%n", &n, &used) != 1 || used == 0 || n < 1)
        return counted_plainly (cell);
    cell += used;
    if (sscanf (cell, "%2d%n", &each, &more) == 1 && each > 0 &&
        !isdigit ((unsigned char) cell[more]) && /* "8x 4090" is a name */
        !is_memory (cell + more))
        n *= each;
    return n;
}

/* Is the number behind it one of lanes, "PCIe x8", "PCIe Gen5 x16", "PCIe 4.0 x16"? */
static bool ends_with_bus (const char *part)
{
    size_t n = strlen (part), from;

    while (n > 0 && part[n - 1] == ' ')
        n--;
    for (from = n;
         from > 0 && (isalnum ((unsigned char) part[from - 1]) || part[from - 1] == '.');)
        from--;
    part += from;
    n -= from;
    return (n == 4 && strncasecmp (part, "pcie", 4) == 0) ||
           (n == 4 && strncasecmp (part, "gen", 3) == 0) ||
           (n == 3 && strncmp (part + 1, ".0", 2) == 0);
}

/* The number behind a type, which is cut off: "TYPE:4", "TYPE x4", "A100x4", "TYPE*4".  @return 0:
 * there is none */
static int cut_number (char *part)
{
    for (char *at = part; *at; at++) {
        char mark = *at, *end;
        /* but the X of "MI300X 192" */
        bool is =
            strchr (":*", mark) ||
            (at > part && tolower ((unsigned char) mark) == 'x' &&
             (isdigit ((unsigned char) at[-1]) ? isdigit ((unsigned char) at[1])
                                               : !isalpha ((unsigned char) at[-1])));
        long n = is ? strtol (at + 1, &end, 10) : 0;

        if (n < 1 || n > 1 << 24 || end[strspn (end, " ")] != '\0')
            continue;
        *at = '\0';
        if (strchr (":*", mark) ||
            (names_type (part) && !ends_with_bus (part))) /* but "8x4090" */
            return (int) n;
        *at = mark;
    }
    return 0;
}

/* The next part of a cell, cut off in place at a mark outside of brackets.
 * @param[in,out] joined  true behind a mark that joins
 * @return NULL: there is none */
static char *next_part (char **left, bool *joined)
{
    char *part = *left, *s = part;

    if (!part)
        return NULL;
    for (int depth = 0; *s && (depth > 0 || !strchr ("+&,;", *s)); s++)
        depth += (*s == '(') - (*s == ')');
    *joined = *joined || *s == '+' || *s == '&';
    *left = *s ? s + 1 : NULL;
    *s = '\0';
    return part + strspn (part, " ");
}

/* What stands beside GPUs and is none. */
static bool is_beside (const char *part)
{
    char joined[CALIBRATE_JOINED];

    calibrate_join (part, joined);
    return text_has_word ("nvlink nvswitch ib infiniband cpu", joined);
}

/* "TYPE:N+TYPE:N", "N x TYPE, N x TYPE", in node order, or types alone with "+" or "&" between
 * them, which are as many each: spellings, and numbers in `nodes`.  Behind "," and ";" there may be
 * remarks where no two parts have numbers.
 * @return how many; 0: it is no mix; -1: it is one that is not understood */
static int cut_mix (const char *cell, char spelled[][CALIBRATE_SPELLED_MAX],
                    struct calibrate_run *run)
{
    char copy[CALIBRATE_TYPES_MAX * CALIBRATE_SPELLED_MAX], *left = copy, *part;
    int n = 0, counted = 0, numbers = 0;
    bool joined = false, strange = false;

    if (strlen (cell) >= sizeof copy)
        return -1;
    snprintf (copy, sizeof copy, "%s", cell);
    while ((part = next_part (&left, &joined))) {
        int count = cut_number (part);

        count = count > 0 ? count : counted_gpus (part);
        numbers += count > 0;
        if (!names_type (part)) {
            strange = strange || !is_beside (part);
            continue;
        }
        if (n == CALIBRATE_TYPES_MAX)
            return -1;
        counted += count > 0;
        run->part[n].nodes = count;
        snprintf (spelled[n++], CALIBRATE_SPELLED_MAX, "%s", part);
    }
    if (n == 0)
        return 0;
    if ((joined || numbers > 1) && (strange || (n > 1 && counted > 0 && counted < n)))
        return -1;
    if (!(n > 1 && (joined || counted == n)) && !(strchr (cell, ':') && counted == n))
        return 0;
    for (int i = 0; i < n && counted == 0; i++)
        run->part[i].nodes = run->gpus % n == 0 ? run->gpus / n : 0;
    return n;
}

/* The most GPUs, up to a node's usual ones, that each part is whole nodes of. */
static int common_node (const struct calibrate_run *run)
{
    int per = run->gpus_per_node;
    bool whole = false;

    /* No node is larger than its part, nor than any cluster may have. */
    for (int i = 0; i < run->n_parts; i++)
        per = per < run->part[i].nodes ? per : run->part[i].nodes;
    per = per < TOPOLOGY_NODE_GPUS_MAX ? per : TOPOLOGY_NODE_GPUS_MAX;
    while (per > 1 && !whole) {
        whole = true;
        for (int i = 0; i < run->n_parts; i++)
            whole = whole && run->part[i].nodes % per == 0;
        per -= !whole;
    }
    return per;
}

/* A mix counts nodes; one whose numbers make up the GPUs instead counts those. */
static const char *count_nodes (const struct row *r, int nodes, struct calibrate_run *run)
{
    long long sum = 0;
    int per = common_node (run);

    for (int i = 0; i < run->n_parts; i++)
        sum += run->part[i].nodes;
    if (sum == nodes)
        return NULL;
    if (sum != run->gpus ||
        (per != run->gpus_per_node && calibrate_cell (r, "gpus_per_node")[0] != '\0'))
        return "the nodes of its GPU mix do not make up gpus";
    run->gpus_per_node = per;
    for (int i = 0; i < run->n_parts; i++)
        run->part[i].nodes /= per;
    return NULL;
}

static const char *read_types (const struct row *r, bool mixed,
                               char spelled[][CALIBRATE_SPELLED_MAX],
                               struct calibrate_run *run)
{
    double gb[CALIBRATE_TYPES_MAX];

    if (!for_parts (r, "gpu_mem_gb", gb, run->n_parts))
        return "gpu_mem_gb is not a positive number";
    run->gpu_bytes = INFINITY;
    for (int i = 0; i < run->n_parts; i++) {
        const struct topology_gpu_type *exact = topology_gpu_type_builtin (spelled[i]);
        struct topology_gpu_reading g = {.type = exact};

        if (!exact && (!topology_gpu_read (spelled[i], gb[i], &g) || !g.type))
            return calibrate_refuse (
                r, "gpu", "one of `linkwise gpus`, as in h100 or A100-SXM4-80GB");
        if (g.several)
            return calibrate_refuse (r, "gpu", "one type, or a mix TYPE:N+TYPE:N");
        run->part[i].type = g.type;
        run->gpu_bytes = fmin (run->gpu_bytes, g.type->memory_bytes);
        gb[i] = gb[i] > 0 ? gb[i] : g.said_gb;
    }
    /* The row's own size, or its name's, where it is not the type's. */
    if (!mixed && gb[0] > 0 && fabs (gb[0] * UNITS_GIB / run->gpu_bytes - 1.0) > 0.12)
        run->gpu_bytes = gb[0] * UNITS_GIB;
    return NULL;
}

static const char *read_gpu (const struct row *r, struct calibrate_run *run)
{
    int nodes = (int) ((run->gpus + run->gpus_per_node - 1LL) / run->gpus_per_node);
    const char *cell = calibrate_cell (r, "gpu");
    char spelled[CALIBRATE_TYPES_MAX][CALIBRATE_SPELLED_MAX] = {""};
    int mixed;

    if (cell[0] == '\0')
        return "gpu unknown";
    mixed = cut_mix (cell, spelled, run);
    if (mixed < 0)
        return calibrate_refuse (r, "gpu",
                                 "a mix TYPE:N+TYPE:N, each one of `linkwise gpus`");
    run->n_parts = mixed > 0 ? mixed : 1;
    if (!mixed) {
        snprintf (spelled[0], CALIBRATE_SPELLED_MAX, "%s", cell);
        run->part[0].nodes = nodes;
    }
    TRY_ROW (read_types (r, mixed > 0, spelled, run));
    if (mixed)
        TRY_ROW (count_nodes (r, nodes, run));
    return read_network (r, spelled, run);
}

/* GPUs that nobody states: of so many nodes, of the degrees, or as its name says.
 * @return 0: nothing does */
static int implied_gpus (const struct row *r, const struct calibrate_run *run)
{
    static const char *const degrees[] = {"dp", "tp", "pp", "cp"};
    double n = calibrate_whole (r, "nodes", 0) * (double) run->gpus_per_node;
    char name[CALIBRATE_SPELLED_MAX];

    if (n <= 0.0 && calibrate_whole (r, "dp", 0) > 0) {
        n = 1.0;
        for (size_t i = 0; i < COUNT_OF (degrees); i++)
            n *= calibrate_whole (r, degrees[i], 1);
    }
    if (n <= 0.0) {
        snprintf (name, sizeof name, "%.*s", CALIBRATE_SPELLED_MAX - 1,
                  calibrate_cell (r, "gpu"));
        n = counted_gpus (name);
        n = n > 0.0 ? n : cut_number (name);
        if (calibrate_contains (name, "dgx") || calibrate_contains (name, "xlarge"))
            n *= run->gpus_per_node; /* machines */
    }
    return n > 0.0 && n < 1 << 30 ? (int) n : 0;
}

const char *calibrate_read_machines (const struct row *r, struct calibrate_run *run)
{
    run->gpus_per_node = calibrate_whole (r, "gpus_per_node", 8);
    if (run->gpus_per_node < 1)
        return "gpus_per_node is not a whole number";
    run->gpus = calibrate_whole (r, "gpus", implied_gpus (r, run));
    if (run->gpus < 1)
        return "gpus unknown";
    return read_gpu (r, run);
}
