/* A cluster on one line: `2x8 h100-sxm5-80g intra:370 inter:48 + 1x4 l40s intra:20`.
 *
 * It is turned into the document of a cluster file, so that one reader checks both.  Links that
 * it does not give are nominal: those of the GPU type's usual machines (usual.c). */
#include "topology/topology_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topology/links_doc.h"

struct part {
    int nodes, gpus;
    char type[64];
    double intra, inter, node; /* GB/s; 0: not given */
    double usual_node;         /* the same of what machines of this name or type have */
    double intra_us, inter_us;
    unsigned given; /* fields, by bit */
    bool nominal;   /* intra */
    int domain;     /* nodes that share NVLink, by which inter is nominal; 1: none */
};

#define NOMINAL "the usual machines of the GPU type, nothing measured"
#define NIC_PAYLOAD 0.96 /* of a NIC's rate: nccl-tests see 46 to 49 GB/s of 400 Gbit/s */
#define DOUBTED 3        /* times what is usual: bits taken for bytes are 8 */

#define PARTS_MAX 64
#define FIELDS_MAX 32 /* words of a part */

static bool is_more_nodes (const char *word)
{
    int nodes, gpus;

    return sscanf (word, "%d%*1[xX]%d", &nodes, &gpus) == 2 ||
           topology_gpu_type_meant (word) != NULL;
}

static enum status parse_field (char *word, struct part *p, struct error *err)
{
    const struct {
        const char *name;
        double *value;
        bool zero_ok;
    } field[] = {{"intra", &p->intra, false},
                 {"inter", &p->inter, false},
                 {"node", &p->node, false},
                 {"intra-us", &p->intra_us, true},
                 {"inter-us", &p->inter_us, true}};
    char *colon = strchr (word, ':');

    if (!colon)
        return err_set (err, ST_INVALID,
                        "cluster on one line: expected NAME:VALUE, as inter:50, found "
                        "\"%s\"%s",
                        word,
                        is_more_nodes (word)
                            ? "; + joins unlike nodes, as in \"4x8 h100 + "
                              "2x8 a100\""
                            : "");
    *colon = '\0';
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        if (strcmp (word, field[i].name) == 0) {
            double x;

            if (!text_number (colon + 1, &x) || x < 0 || (x <= 0 && !field[i].zero_ok))
                return err_set (
                    err, ST_INVALID, "cluster on one line: %s: expected %s, found \"%s\"",
                    word,
                    field[i].zero_ok ? "microseconds, a number >= 0"
                                     : "GB/s, a number > 0 (400 Gbit/s are 50 GB/s)",
                    colon + 1);
            if (p->given & 1u << i)
                return err_set (err, ST_INVALID, "cluster on one line: %s appears twice",
                                word);
            p->given |= 1u << i;
            *field[i].value = x;
            return ST_OK;
        }
    return err_set (err, ST_INVALID,
                    "cluster on one line: unknown field \"%s\" (intra, inter, node, "
                    "intra-us, inter-us)",
                    word);
}

/* The type's own name for a short one. */
static void name_type (struct part *p, struct notes *notes)
{
    const struct topology_gpu_type *t = topology_gpu_type_meant (p->type);
    struct topology_gpu_reading named = {.type = NULL};

    if (t && strcmp (t->name, p->type) != 0) {
        notes_add (notes, "%s: taken as %s", p->type, t->name);
        topology_gpu_read (p->type, 0.0, &named);
        strcpy (p->type, t->name);
    }
    p->usual_node = named.node_bytes_per_s > 0
                        ? named.node_bytes_per_s / UNITS_GB
                        : topology_usual_links (p->type).node_gb_per_s;
}

/* The words of a type, as many as there are before the fields if together they mean one, "rtx
 * 5090"; else the first.  @return how many */
static int take_type (char **word, int n, struct part *p)
{
    char name[sizeof p->type] = "";
    int words = 0;

    while (words < n && !strchr (word[words], ':') &&
           strlen (name) + strlen (word[words]) + 1 < sizeof name) {
        strcat (strcat (name, words ? " " : ""), word[words]);
        words++;
    }
    if (words < 2 || !topology_gpu_type_meant (name)) {
        words = 1;
        snprintf (name, sizeof name, "%s", word[0]);
    }
    strcpy (p->type, name);
    return words;
}

static enum status parse_part (char *text, struct part *p, struct notes *notes,
                               struct error *err)
{
    char *save, *word = strtok_r (text, " \t", &save), *field[FIELDS_MAX];
    int used = 0, n, first;

    *p = (struct part){.domain = 1,
                       .intra_us = TOPOLOGY_INTRA_LATENCY_US,
                       .inter_us = TOPOLOGY_INTER_LATENCY_US};
    if (!word || strlen (word) > 15 ||
        sscanf (word, "%d%*1[xX]%d%n", &p->nodes, &p->gpus, &used) != 2 || word[used] ||
        p->nodes < 1 || p->nodes > TOPOLOGY_LINE_NODES_MAX || p->gpus < 1 ||
        p->gpus > TOPOLOGY_NODE_GPUS_MAX)
        return err_set (err, ST_INVALID,
                        "cluster on one line: expected NODESxGPUS (1 to %d nodes of 1 to "
                        "%d GPUs), found \"%s\"",
                        TOPOLOGY_LINE_NODES_MAX, TOPOLOGY_NODE_GPUS_MAX,
                        word ? word : "");
    n = text_words (save, field, FIELDS_MAX);
    if (n == 0 || strlen (field[0]) >= sizeof p->type)
        return err_set (err, ST_INVALID,
                        "cluster on one line: expected a GPU type after %dx%d", p->nodes,
                        p->gpus);
    first = take_type (field, n, p);
    name_type (p, notes);
    for (int i = first; i < n; i++)
        TRY (parse_field (field[i], p, err));
    return ST_OK;
}

/* What usual machines give between nodes: a node in all, and a pair of GPUs.  A GPU has its own NIC
 * where the node has as many. */
static double usual_between (const struct part *p, double *node)
{
    double usual = p->usual_node, nic = NIC_PAYLOAD * fmin (usual, TOPOLOGY_NIC_GB_PER_S);
    int counted = topology_usual_node_gpus (p->type);
    int nics = topology_usual_rack (p->type) || p->gpus < counted ? p->gpus : counted;

    *node = fmax (nic, NIC_PAYLOAD * usual * nics / counted);
    return fmin (*node, fmax (nic, *node / p->gpus));
}

/* A rate between nodes that must be Gbit/s, by its size. */
static void doubt_unit (const struct part *p, struct notes *say)
{
    double node, usual = usual_between (p, &node);

    if (p->inter >= DOUBTED * usual && !topology_usual_rack (p->type))
        notes_add (say,
                   "inter:%g is in GB/s, %.2g times what machines with %s usually have; "
                   "of %g Gbit/s inter:%g is right",
                   p->inter, p->inter / usual, p->type, p->inter, p->inter / 8);
}

/* Links that nobody gave.  Between nodes they are all nominal or none is: a part without `inter`
 * has what the others have.
 * @return are those between nodes? */
static bool fill_nominal (struct part *part, int n_parts, int n_nodes,
                          struct notes *notes)
{
    bool inter = n_nodes > 1;

    for (int i = 0; i < n_parts; i++)
        inter = inter && !(part[i].inter > 0);
    for (struct part *p = part; p < part + n_parts; p++) {
        struct notes *say = topology_gpu_type_builtin (p->type) ? notes : NULL;
        int rack = topology_usual_rack (p->type);
        double node;

        doubt_unit (p, say);
        p->nominal = p->gpus > 1 && !(p->intra > 0);
        if (p->nominal) {
            p->intra = topology_usual_links (p->type).intra_gb_per_s;
            notes_add (say,
                       "links inside nodes of %s are nominal, %g GB/s: intra:GB/S "
                       "sets them",
                       p->type, p->intra);
        }
        if (!inter)
            continue;
        p->inter = usual_between (p, &node);
        if (n_parts == 1 && !(p->node > 0))
            p->domain = topology_usual_domain (p->type, p->nodes, p->gpus);
        p->node = p->node > 0 ? p->node : node;
        if (p->domain < p->nodes || p->nodes == 1)
            notes_add (say,
                       "links between nodes of %s are nominal, %g GB/s a pair of GPUs "
                       "and %g a node: inter:GB/S and node:GB/S set them",
                       p->type, p->inter, p->node);
        if (p->domain > 1)
            notes_add (say,
                       "nodes of %s are taken to share NVLink in racks of %d nodes: "
                       "inter:GB/S sets links without it",
                       p->type, p->domain);
        else if (rack && p->gpus < rack)
            notes_add (say,
                       "nodes of %s that share a rack reach each other over NVLink: a "
                       "rack is one node, as in \"1x%d %s\"",
                       p->type, rack, p->type);
    }
    return inter;
}

static json_t *mark_nominal (json_t *links)
{
    json_object_set_new (links, "nominal", json_true ());
    json_object_set_new (links, "source", json_string (NOMINAL));
    return links;
}

static json_t *intra_json (const struct part *p)
{
    json_t *intra = p->intra > 0 ? json_pack ("{s:f, s:f}", "bandwidth_gb_per_s",
                                              p->intra, "latency_us", p->intra_us)
                                 : json_null ();

    return p->nominal ? mark_nominal (intra) : intra;
}

/* One entry per node from a field of its part; null where the part does not have it and
 * `fallback` is 0. */
static json_t *per_node (const struct part *part, int n_parts, size_t field,
                         double fallback)
{
    json_t *list = json_array ();

    for (int i = 0; i < n_parts; i++)
        for (int a = 0; a < part[i].nodes; a++) {
            double x = *(const double *) ((const char *) &part[i] + field);

            x = x > 0 ? x : fallback;
            json_array_append_new (list, x > 0 ? json_real (x) : json_null ());
        }
    return list;
}

/* inter as one number, or by node where the parts differ. */
static json_t *inter_json (const struct part *part, int n_parts, int n_nodes)
{
    double latency = 0, highest = 0;
    bool same = true, node_bw = false;

    for (int i = 0; i < n_parts; i++) {
        latency = part[i].inter_us > latency ? part[i].inter_us : latency;
        highest = part[i].inter > highest ? part[i].inter : highest;
        same = same && part[i].inter == part[0].inter;
        node_bw = node_bw || part[i].node > 0;
    }
    if (highest <= 0)
        return json_null ();

    /* A part of one node needs no inter of its own: then the others' hold. */
    json_t *inter = json_pack ("{s:f}", "latency_us", latency);
    json_t *bw = same ? json_real (highest)
                      : json_pack ("{s:o}", "by_node",
                                   per_node (part, n_parts, offsetof (struct part, inter),
                                             highest));

    json_object_set_new (inter, "bandwidth_gb_per_s", bw);
    if (node_bw && n_nodes > 1)
        json_object_set_new (inter, "node_gb_per_s",
                             per_node (part, n_parts, offsetof (struct part, node), 0));
    return inter;
}

/* The same of one part whose nodes share NVLink in racks: inside a rack as inside a node, and of
 * what leaves it a node has its NICs' rate to each other node.  All in one rack are alike. */
static json_t *racks_json (const struct part *p)
{
    double nvlink =
        p->intra > 0 ? p->intra : topology_usual_links (p->type).intra_gb_per_s;

    if (p->domain == p->nodes)
        return json_pack ("{s:f, s:f, s:f}", "bandwidth_gb_per_s", nvlink, "latency_us",
                          p->intra_us, "node_gb_per_s", nvlink * p->gpus);
    return json_pack ("{s:{s:[f,f]}, s:{s:[f,f]}, s:f, s:{s:[f,f]}}",
                      "bandwidth_gb_per_s", "by_hops", nvlink, p->inter, "latency_us",
                      "by_hops", p->intra_us, p->inter_us, "node_gb_per_s",
                      nvlink * p->gpus, "node_pair_gb_per_s", "by_hops", nvlink * p->gpus,
                      p->node);
}

static json_t *node_json (const struct part *p, int number)
{
    char name[32], rack[32];
    json_t *node;

    snprintf (name, sizeof name, "n%d", number);
    node =
        json_pack ("{s:s, s:i, s:s}", "name", name, "gpus", p->gpus, "gpu_type", p->type);
    snprintf (rack, sizeof rack, "rack%d", number / p->domain);
    if (p->domain > 1 && p->domain < p->nodes)
        json_object_set_new (node, "switches", json_pack ("[s]", rack));
    return node;
}

static enum status build (struct part *part, int n_parts, const char *line,
                          struct notes *notes, json_t **doc, struct error *err)
{
    json_t *nodes = json_array (), *intra = json_array (), *links = json_object (),
           *inter;
    int n = 0;
    bool nominal;

    for (int i = 0; i < n_parts; i++)
        n += part[i].nodes;
    nominal = fill_nominal (part, n_parts, n, notes);
    n = 0;
    for (int i = 0; i < n_parts; i++)
        for (int a = 0; a < part[i].nodes; a++, n++) {
            json_array_append_new (nodes, node_json (&part[i], n));
            json_array_append_new (intra, intra_json (&part[i]));
        }
    json_object_set (links, "intra", n_parts == 1 ? json_array_get (intra, 0) : intra);
    inter = part->domain > 1 ? racks_json (part) : inter_json (part, n_parts, n);
    json_object_set_new (links, "inter", nominal ? mark_nominal (inter) : inter);
    json_decref (intra);
    *doc = json_pack ("{s:i, s:s, s:o, s:o}", "version", 1, "name", line, "nodes", nodes,
                      "links", links);
    return *doc ? ST_OK : err_nomem (err);
}

/* The parts of a text, which is cut up. */
static enum status parse_parts (char *text, struct part *part, int *n,
                                struct notes *notes, struct error *err)
{
    int n_nodes = 0;

    for (*n = 0; text; ++*n) {
        char *plus = strstr (text, " + ");

        if (plus)
            *plus = '\0';
        if (*n == PARTS_MAX)
            return err_set (err, ST_INVALID, "cluster on one line: more than %d parts",
                            PARTS_MAX);
        TRY (parse_part (text, &part[*n], notes, err));
        n_nodes += part[*n].nodes;
        if (n_nodes > TOPOLOGY_LINE_NODES_MAX)
            return err_set (err, ST_INVALID, "cluster on one line: more than %d nodes",
                            TOPOLOGY_LINE_NODES_MAX);
        text = plus ? plus + 3 : NULL;
    }
    return ST_OK;
}

enum status topology_line_to_json (const char *line, json_t **doc, struct notes *notes,
                                   struct error *err)
{
    struct part part[PARTS_MAX];
    int n_parts = 0;
    char *copy = strdup (line);
    enum status st =
        copy ? parse_parts (copy, part, &n_parts, notes, err) : err_nomem (err);

    free (copy);
    return st == ST_OK ? build (part, n_parts, line, notes, doc, err) : st;
}
