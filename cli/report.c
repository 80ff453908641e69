/* linkwise report: a plan, a cluster or a comparison as one HTML page, a plan as a picture. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/version.h"
#include "report/report.h"

struct report_input {
    const char *place[2]; /* PLAN or CLUSTER, CLUSTER */
    const char *out;
    bool compare, force, svg;
};

#define INPUT struct report_input

/* Changed links that are listed, and what counts as a change where there are no intervals. */
#define CHANGES 100
#define CHANGE 0.1

/* ---- inputs ---- */

/* One argument, read once: it may be standard input. */
struct source {
    const char *arg;
    json_t *doc; /* NULL: a cluster on one line */
    char sha256[65];
};

static enum status source_read (const char *arg, struct source *s, struct error *err)
{
    struct stat sb;
    char *text;
    size_t len;
    enum status st;

    s->arg = arg;
    if (strchr (arg, ' ') && stat (arg, &sb) != 0) {
        file_sha256 (arg, strlen (arg), s->sha256);
        return ST_OK;
    }
    TRY (file_read (arg, &text, &len, err));
    st = topology_file_sha256 (arg, text, len, s->sha256, err);
    THEN (st, json_parse (file_title (arg), text, len, &s->doc, err));
    free (text);
    return st;
}

static bool is_plan (const struct source *s)
{
    return json_object_get (s->doc, "ranks") != NULL;
}

/* @param[in] partial  what planning needs may be missing */
static enum status source_cluster (const struct source *s, bool partial,
                                   struct topology_cluster **out, struct notes *notes,
                                   struct error *err)
{
    char *folder;
    enum status st;

    TRY (topology_folder (s->arg, &folder, err));
    if (is_plan (s))
        st = err_set (err, ST_INVALID, "%s: expected a cluster, found a plan",
                      file_title (s->arg));
    else if (!s->doc)
        st = topology_cluster_read (s->arg, out, notes, err);
    else
        st = (partial ? topology_cluster_from_json_partial : topology_cluster_from_json) (
            s->doc, file_title (s->arg), folder, out, notes, err);
    free (folder);
    return st;
}

/* ---- what every page says ---- */

/* A text with names of files: where one is not UTF-8, its bytes as in "caf\xe9.json". */
static json_t *names_json (const char *s)
{
    json_t *names = json_string (s);
    struct text t = {0};

    if (names)
        return names;
    for (; *s; s++)
        text_add (&t, *s & 0x80 ? "\\x%02x" : "%c", (unsigned char) *s);
    names = json_string (text_str (&t));
    text_free (&t);
    return names;
}

/* An input that the page would take the place of is refused. */
static enum status add_input (const struct report_input *in, json_t *page,
                              const char *what, const char *file, const char *sha256,
                              struct error *err)
{
    if (!file_is_stream (in->out) && file_same (in->out, file))
        return err_set (err, ST_USAGE, "-o %s: expected another file, found an input",
                        in->out);
    json_array_append_new (json_object_get (page, "inputs"),
                           json_pack ("{s:s, s:o, s:s}", "what", what, "file",
                                      names_json (file), "sha256", sha256));
    return ST_OK;
}

/* The command, as a shell takes it. */
static json_t *command_json (const struct report_input *in)
{
    struct text t = {0};
    json_t *line;

    text_add (&t, "linkwise report%s%s", in->compare ? " --compare" : "",
              in->force ? " --force" : "");
    for (int k = 0; k < 2 && in->place[k]; k++) {
        text_add (&t, " ");
        text_add_sh (&t, in->place[k]);
    }
    text_add (&t, " -o ");
    text_add_sh (&t, in->out);
    line = names_json (text_str (&t));
    text_free (&t);
    return line;
}

static enum status add_cluster (json_t *page, const char *key,
                                const struct topology_cluster *c, double most,
                                struct error *err)
{
    struct progress progress;
    struct topology_watch watch = cli_watch (&progress);
    json_t *doc = NULL;
    enum status st = report_cluster (c, most, &watch, &doc, err);

    progress_end (&progress);
    if (st == ST_OK)
        json_object_set_new (page, key, doc);
    return st;
}

/* ---- a plan ---- */

/* What tells two clusters apart: the digest of all that is in them. */
static enum status cluster_digest (const json_t *doc, char hex[65], struct error *err)
{
    char *text = json_text (doc);

    if (!text)
        return err_nomem (err);
    file_sha256 (text, strlen (text), hex);
    free (text);
    return ST_OK;
}

/* Digests of the plan's own cluster and of the one that is shown. */
static enum status cluster_digests (const struct linkwise_plan *x, const struct source *c,
                                    char own[65], char shown[65], struct error *err)
{
    const json_t *doc = json_object_get (x->plan.doc, "cluster");
    const char *sha256 = json_member_text (doc, "sha256");
    json_t *given;
    enum status st;

    if (sha256) {
        strcpy (shown, c->arg ? c->sha256 : "");
        snprintf (own, 65, "%s", sha256);
        if (!c->arg)
            strcpy (shown, own); /* reading the plan compared them */
        return ST_OK;
    }
    TRY (cluster_digest (doc, own, err));
    if (!(given = topology_cluster_to_json (x->cluster->c)))
        return err_nomem (err);
    st = cluster_digest (given, shown, err);
    json_decref (given);
    return st;
}

/* A plan of another cluster is refused, or shown under a banner. */
static enum status add_origin (const struct report_input *in, json_t *page,
                               const struct linkwise_plan *x, const struct source *c,
                               bool *own_cluster, struct error *err)
{
    char own[65], shown[65];
    const char *file =
        json_member_text (json_object_get (x->plan.doc, "cluster"), "file");

    TRY (cluster_digests (x, c, own, shown, err));
    TRY (add_input (in, page, "cluster",
                    c->arg ? c->arg
                    : file ? file
                           : "in the plan",
                    shown, err));
    *own_cluster = strcmp (own, shown) == 0;
    if (*own_cluster)
        return ST_OK;
    if (!in->force)
        return err_set (
            err, ST_INVALID,
            "%s: expected the cluster of the plan (sha256 %.12s...), found another "
            "one (%.12s...); --force shows the plan on it",
            file_title (c->arg), own, shown);
    json_object_set_new (
        page, "banner",
        json_string (
            "This plan was made for another cluster than the one shown here. Figures "
            "are estimates of its placement on this cluster; results of the search "
            "are left out."));
    return ST_OK;
}

/* The plan file without what the page has in another form; without the search's results where
 * they are not of this placement here. */
static json_t *plan_json (const struct linkwise_plan *x, bool own_cluster)
{
    static const char *const of_search[] = {"estimate", "memory", "search", "replan",
                                            "unmeasured_links_used"};
    json_t *doc = json_copy (x->plan.doc);
    const char *said = json_member_text (json_object_get (doc, "estimate"), "digest");
    char digest[65];

    json_object_del (doc, "cluster");
    json_object_del (doc, "ranks");
    workload_plan_digest (&x->plan, digest);
    if (!own_cluster || !said || strcmp (said, digest) != 0)
        for (size_t i = 0; i < sizeof of_search / sizeof *of_search; i++)
            json_object_del (doc, of_search[i]);
    return doc;
}

/* Of the stage that is nearest to its limit. */
static double peak_factor (const struct mapper_problem *p, const struct linkwise_plan *x,
                           const int *gpu)
{
    struct memest_stage tightest = {0};
    double most = 0;

    for (int i = 0; i < x->plan.config.deg.pp; i++) {
        struct memest_stage s;
        double gpu_bytes = mapper_stage_memory (p, &x->plan.config,
                                                x->plan.layers_per_stage, gpu, i, &s);

        if (mapper_stage_full (p, &s, gpu_bytes) > most) {
            most = mapper_stage_full (p, &s, gpu_bytes);
            tightest = s;
        }
    }
    return cli_peak_interval (p->memory_model, &x->profile, &tightest);
}

static enum status add_plan (json_t *page, const struct linkwise_plan *x,
                             struct notes *notes, struct error *err)
{
    const struct topology_cluster *c = x->cluster->c;
    struct mapper_problem p = api_plan_problem (x, c);
    json_t *shown = NULL;
    int *gpu = NULL;
    enum status st = api_plan_gpus (x, c, &gpu, notes, err);

    THEN (st, report_placement (&p, &x->plan, gpu, &shown, err));
    if (st == ST_OK) {
        json_object_update (page, shown);
        json_object_set_new (
            page, "step_factor",
            json_number_or_null (cli_step_interval (COSTMODEL_CRITICAL_PATH, &x->profile,
                                                    p.model, c, gpu, x->plan.n_ranks)));
        json_object_set_new (page, "peak_factor",
                             json_number_or_null (peak_factor (&p, x, gpu)));
        json_object_set_new (page, "parts",
                             cli_parts_json (&x->profile, c->node, c->n_nodes));
    }
    json_decref (shown);
    free (gpu);
    return st;
}

static enum status add_picture (const struct linkwise_plan *x, bool own_cluster,
                                struct text *out, struct error *err)
{
    json_t *doc = plan_json (x, own_cluster);
    int *gpu = NULL;
    enum status st = api_plan_gpus (x, x->cluster->c, &gpu, NULL, err);

    THEN (st, report_picture (x->cluster->c, &x->plan, gpu,
                              json_object_get (doc, "estimate"), out, err));
    json_decref (doc);
    free (gpu);
    return st;
}

/* The page's document, or the whole picture. */
static enum status plan_page (const struct report_input *in, struct source *s,
                              json_t *page, struct text *picture, struct notes *notes,
                              struct error *err)
{
    struct linkwise_plan x = {.cluster = NULL};
    struct topology_cluster *c = NULL;
    bool own_cluster;
    enum status st = add_input (in, page, "plan", in->place[0], s[0].sha256, err);

    if (st == ST_OK && s[1].arg) {
        st = source_cluster (&s[1], false, &c, notes, err);
        THEN (st, api_cluster_of (c, s[1].arg, &x.cluster, err));
    }
    THEN (st, api_plan_from_json (s[0].doc, file_title (s[0].arg), NULL, &x, notes, err));
    THEN (st, add_origin (in, page, &x, &s[1], &own_cluster, err));
    if (st == ST_OK && in->svg)
        st = add_picture (&x, own_cluster, picture, err);
    else if (st == ST_OK)
        st = add_cluster (page, "cluster", x.cluster->c, REPORT_MATRIX_MAX, err);
    if (st == ST_OK && !in->svg)
        st = add_plan (page, &x, notes, err);
    if (st == ST_OK && !in->svg)
        json_object_set_new (page, "plan", plan_json (&x, own_cluster));
    api_plan_release (&x);
    return st;
}

/* ---- clusters ---- */

static enum status add_diff (json_t *page, const struct topology_cluster *a,
                             const struct topology_cluster *b, struct error *err)
{
    struct topology_diff diff;

    if (!topology_same_cluster (a, b)) {
        json_object_set_new (page, "diff", json_null ());
        return ST_OK;
    }
    TRY (topology_diff_collect (a, b, CHANGE, CHANGES, &diff, err));
    json_object_set_new (page, "diff", cli_diff_json (a, &diff));
    json_object_set_new (page, "changed_share", json_real (CHANGE));
    topology_diff_release (&diff);
    return ST_OK;
}

/* One cluster, or two. */
static enum status clusters_page (const struct report_input *in, struct source *s,
                                  json_t *page, struct notes *notes, struct error *err)
{
    static const char *const key[] = {"cluster", "other"};
    struct topology_cluster *c[2] = {NULL, NULL};
    int n = s[1].arg ? 2 : 1;
    enum status st = ST_OK;

    for (int k = 0; k < n && st == ST_OK; k++) {
        st = source_cluster (&s[k], true, &c[k], notes, err);
        THEN (st, add_input (in, page, "cluster", s[k].arg, s[k].sha256, err));
    }
    for (int k = 0; k < n && st == ST_OK; k++)
        st = add_cluster (page, key[k], c[k], REPORT_MATRIX_MAX / n, err);
    if (st == ST_OK && n == 2)
        st = add_diff (page, c[0], c[1], err);
    for (int k = 0; k < n; k++)
        topology_cluster_destroy (c[k]);
    return st;
}

/* ---- all ---- */

static enum status make (const struct report_input *in, struct source *s, json_t *page,
                         struct text *picture, struct notes *notes, struct error *err)
{
    if (is_plan (&s[0]) && !in->compare)
        return plan_page (in, s, page, picture, notes, err);
    if (in->svg)
        return err_set (err, ST_INVALID,
                        "%s: expected a plan, found a cluster (`linkwise cluster export "
                        "--to svg` draws it)",
                        file_title (s[0].arg));
    if (in->place[1] && !in->compare)
        return err_set (err, ST_INVALID,
                        "%s: expected a plan, found a cluster (--compare takes two)",
                        file_title (s[0].arg));
    return clusters_page (in, s, page, notes, err);
}

static enum status run (void *input, struct notes *notes, struct error *err)
{
    const struct report_input *in = input;
    struct source s[2] = {{0}};
    struct text out = {0};
    json_t *page = NULL;
    enum status st = ST_OK;

    for (int k = 0; k < 2 && in->place[k] && st == ST_OK; k++)
        st = source_read (in->place[k], &s[k], err);
    if (st == ST_OK) {
        page = json_pack ("{s:i, s:s, s:s, s:o, s:[], s:n}", "version", 1, "kind",
                          in->compare       ? "compare"
                          : is_plan (&s[0]) ? "plan"
                                            : "cluster",
                          "program", "linkwise " LINKWISE_VERSION, "command",
                          command_json (in), "inputs", "banner");
        st = page ? make (in, s, page, &out, notes, err) : err_nomem (err);
    }
    if (st == ST_OK && !in->svg)
        st = report_page (page, &out, err);
    THEN (st, file_write (in->out, text_str (&out), out.len, err));
    text_free (&out);
    JSON_DECREF_ALL (page, s[0].doc, s[1].doc);
    return st;
}

static const struct cli_option options[] = {
    {"output", 'o', "FILE", "file to write (- is standard output)", CLI_TEXT (out),
     .needed = true},
    {"compare", 'c', NULL, "show two clusters, or one at two times, and what changed",
     CLI_FLAG (compare)},
    {"force", 'f', NULL,
     "show a plan on a cluster that it was not made for, with a banner",
     CLI_FLAG (force)},
    {"svg", 0, NULL, "draw the placement alone, as a picture, of at most 64 nodes",
     CLI_FLAG (svg)},
    {0}};

static void check (void *input, struct argp_state *state)
{
    const struct report_input *in = input;

    if (in->out[0] == '\0')
        usage_error (state, "-o: expected a file, found \"\"");
    if (in->compare && !in->place[1])
        usage_error (state, "--compare takes two CLUSTERs");
    if (in->force && (in->compare || !in->place[1]))
        usage_error (state, "--force goes with PLAN CLUSTER");
    if (in->svg && in->compare)
        usage_error (state, "--svg draws a PLAN, --compare two CLUSTERs");
    cli_one_stdin (cli_is_dash (in->place[0]) + cli_is_dash (in->place[1]), state);
}

const struct cli_command cli_report = {
    .arguments = "PLAN [CLUSTER]\nCLUSTER\n--compare CLUSTER CLUSTER",
    .help = "Write one HTML page that needs no network.  It shows the heat map of a "
            "cluster; of a plan also placement, memory, schedule, step and best "
            "configurations.\v"
            "Example: linkwise report plan.json -o plan.html\n"
            "  linkwise report --svg plan.json -o plan.svg\n"
            "  linkwise report examples/clusters/h100-17.json -o cluster.html\n\n"
            "CLUSTER defaults to the plan's own.  Exit code 1: the plan is of another "
            "cluster.",
    .options = {.line = options, .check = check},
    .places = {1, 2, "PLAN or CLUSTER, and CLUSTER",
               "PLAN or CLUSTER, and -o FILE, are required, as in: linkwise report "
               "plan.json -o plan.html"},
    .at = {CLI_PLACE (place[0]), CLI_PLACE (place[1])},
    CLI_RUN (run)};
