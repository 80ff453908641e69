/* The table of launchers, and writing their files together. */
#include "launch/launch_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct launcher *const launchers[] = {
    &launch_openmpi, &launch_mpich,      &launch_slurm,           &launch_torchrun,
    &launch_env,     &launch_deepspeed,  &launch_kubernetes,      &launch_megatron,
    &launch_nemo,    &launch_torchtitan, &launch_deepspeed_config};

#define N_LAUNCHERS ((int) (sizeof launchers / sizeof *launchers))

const struct text_choice *launch_target_at (int i)
{
    return i < N_LAUNCHERS ? &launchers[i]->target : NULL;
}

/* ---- the request ---- */

enum choice { NOT_CHOSEN, BY_ALL, BY_NAME };

/* Which targets does the list name? */
static enum status choose (const char *to, enum choice *chosen, struct error *err)
{
    const char *p = to;

    while (*p) {
        size_t n = strcspn (p, ",");
        bool all = n == 3 && strncmp (p, "all", 3) == 0, known = all;

        for (int i = 0; i < N_LAUNCHERS; i++) {
            const char *name = launchers[i]->target.name;
            bool this = strlen (name) == n && strncmp (name, p, n) == 0;

            if (this)
                chosen[i] = BY_NAME;
            else if (all && chosen[i] == NOT_CHOSEN)
                chosen[i] = BY_ALL;
            known = known || this;
        }
        if (!known) {
            struct text list = {0};
            char asked[TEXT_FAR], hint[TEXT_HINT];
            struct text_near near = {.asked = asked};

            snprintf (asked, sizeof asked, "%.*s", (int) n, p);
            for (int i = 0; i < N_LAUNCHERS; i++) {
                const char *name = launchers[i]->target.name;

                text_add (&list, "%s, ", name);
                text_near_try (&near, name, strlen (name));
            }
            err_set (err, ST_USAGE, "--to: unknown launcher \"%.*s\"%s (%sall)", (int) n,
                     p, text_near_hint (&near, "", hint), text_str (&list));
            text_free (&list);
            return ST_USAGE;
        }
        p += n;
        p += *p == ',';
    }
    return *to ? ST_OK : err_set (err, ST_USAGE, "--to: no launcher named");
}

/* ---- what is in the folder already ---- */

static bool path_in (struct text *path, const char *dir, const char *name)
{
    path->len = 0;
    text_add (path, "%s/%s", dir, name);
    return !path->failed;
}

/* What is the same for all files of the plan on its cluster, and of no other. */
static enum status name_generation (const struct launch_request *r,
                                    char generation[LAUNCH_GENERATION], struct error *err)
{
    char *cluster =
        json_dumped (json_object_get (r->doc, "cluster"), JSON_COMPACT | JSON_SORT_KEYS);
    struct text all = {0};
    char hex[65];

    workload_plan_digest (r->plan, hex);
    text_add (&all, "%s%s", hex, cluster ? cluster : "");
    file_sha256 (text_str (&all), all.len, hex);
    memcpy (generation, hex, LAUNCH_GENERATION - 1);
    generation[LAUNCH_GENERATION - 1] = '\0';

    bool whole = cluster && !all.failed;

    free (cluster);
    text_free (&all);
    return whole ? ST_OK : err_nomem (err);
}

/* Does dir hold files of another plan, of the same one on a cluster that changed, or of a run
 * that was killed? */
static bool holds_another (const char *dir, const char *generation)
{
    struct text path = {0};
    char *seal = NULL;
    size_t len;
    bool another =
        path_in (&path, dir, "map.txt") && access (text_str (&path), F_OK) == 0;

    if (another && path_in (&path, dir, LAUNCH_SEAL) &&
        file_read (text_str (&path), &seal, &len, NULL) == ST_OK)
        another = strncmp (seal, generation, LAUNCH_GENERATION - 1) != 0;
    free (seal);
    text_free (&path);
    return another;
}

/* ---- the files ---- */

/* One target's files and its part of the README, or why there are none. */
static enum status compose_target (const struct launcher *l,
                                   const struct launch_input *in, bool named,
                                   struct launch_files *f, struct text *readme,
                                   struct notes *refused, struct error *err)
{
    struct text own = {0};
    struct error why = {""};
    enum status st = launch_write (l, in, f, &own, &why);

    if (st == ST_OK) {
        text_add (readme, "\n%s", text_str (&own));
        *launch_file (f, l->readme, 0644) = own;
        return ST_OK;
    }
    text_free (&own);
    if (st == ST_NOFIT && !named) {
        text_add (readme, "\nNot for %s: %s.\n", l->target.name, why.text);
        if (!l->optional)
            notes_add (refused, "%s: %s", l->target.name, why.text);
        return ST_OK;
    }
    return err_set (err, st, "%s: %s", l->target.name, why.text);
}

/* Files, READMEs and the plan, as texts.  kept: the folder when what it holds stays. */
static enum status compose (const struct launch_request *r, const struct launch_input *in,
                            const enum choice *chosen, const char *kept,
                            struct launch_files *f, struct notes *refused,
                            struct error *err)
{
    struct text *readme = launch_file (f, "README", 0644), path = {0};
    char *plan = json_dumped (r->doc, JSON_INDENT (1) | JSON_REAL_PRECISION (15));
    enum status st = plan ? launch_generic (in, f, readme, err) : err_nomem (err);

    if (st == ST_OK)
        text_add (launch_file (f, "plan.json", 0644), "%s\n", plan);
    free (plan);
    for (int i = 0; i < N_LAUNCHERS && st == ST_OK; i++) {
        const struct launcher *l = launchers[i];

        if (chosen[i] != NOT_CHOSEN)
            st = compose_target (l, in, chosen[i] == BY_NAME, f, readme, refused, err);
        else if (kept && path_in (&path, kept, l->readme) &&
                 access (text_str (&path), F_OK) == 0)
            text_add (readme, "\nFor %s, from an earlier run: %s.\n", l->target.name,
                      l->readme);
    }
    text_free (&path);
    return st;
}

/* A name for the list of what goes, unless a new file has it. */
static void add_gone (const char *name, const struct launch_files *new, const char **gone,
                      int *n)
{
    for (int i = 0; i < new->n; i++)
        if (strcmp (new->file[i].path, name) == 0)
            return;
    gone[(*n)++] = name;
}

/* What the wrapper reads belongs to this plan alone; scripts that launchers share stay with
 * their files. */
static const char *const tables[] = {"gpu-uuid.txt", "gpu-numa.txt", NULL};
static const char *const shared[] = {"node-lib.sh", "each-node.sh", NULL};

static enum status write_all (const char *dir, bool another, const struct launch_files *f,
                              struct error *err)
{
    struct file_item item[LAUNCH_FILES_MAX];
    const char *gone[4 + N_LAUNCHERS * 7 + 1] = {NULL};
    int n_gone = 0;

    for (int i = 0; i < f->n; i++) {
        int k = (i + 1) % f->n; /* the seal, which is the first, last */

        item[i] = (struct file_item){f->file[k].path, text_str (&f->file[k].text),
                                     f->file[k].text.len, f->file[k].mode};
        if (f->file[k].text.failed)
            return err_nomem (err);
    }
    /* Files of another placement would mislead beside the new ones. */
    for (const char *const *p = tables; *p; p++)
        add_gone (*p, f, gone, &n_gone);
    for (const char *const *p = shared; another && *p; p++)
        add_gone (*p, f, gone, &n_gone);
    for (int i = 0; another && i < N_LAUNCHERS; i++) {
        add_gone (launchers[i]->readme, f, gone, &n_gone);
        for (const char *const *p = launchers[i]->paths; *p; p++)
            add_gone (*p, f, gone, &n_gone);
    }
    return file_write_folder (dir, item, f->n, gone, err);
}

enum status launch_emit (const struct launch_request *r, const char *dir,
                         struct notes *refused, struct error *err)
{
    const struct topology_cluster *c = r->cluster;
    int *ranks_on_node = calloc ((size_t) c->n_nodes, sizeof (int));
    struct launch_input in = {.plan = r->plan,
                              .profile = r->profile,
                              .cluster = c,
                              .gpu = r->gpu,
                              .ranks_on_node = ranks_on_node,
                              .linkwise = r->linkwise};
    struct launch_files files = {0};
    enum choice chosen[sizeof launchers / sizeof *launchers] = {NOT_CHOSEN};
    enum status st = ranks_on_node ? choose (r->to, chosen, err) : err_nomem (err);
    bool another = false;

    THEN (st, name_generation (r, files.generation, err));
    if (st == ST_OK) {
        text_add (launch_file (&files, LAUNCH_SEAL, 0644), "%s\n", files.generation);
        another = holds_another (dir, files.generation);
    }

    for (int k = 0; k < r->plan->n_ranks && st == ST_OK; k++) {
        int n = ++ranks_on_node[c->node_of_gpu[r->gpu[k]]];

        in.nodes += n == 1;
        in.most_ranks = n > in.most_ranks ? n : in.most_ranks;
    }
    THEN (st, compose (r, &in, chosen, another ? NULL : dir, &files, refused, err));
    THEN (st, write_all (dir, another, &files, err));
    for (int i = 0; i < files.n; i++)
        text_free (&files.file[i].text);
    free (ranks_on_node);
    return st;
}
