/* Arguments of a statement: numbers, counts, nodes, the ends of a link. */
#include <stdio.h>
#include <string.h>

#include "topology/edit/change_private.h"
#include "topology/topology_private.h"

/* Products with what a file says stay numbers. */
#define NUMBER_MIN 1e-9
#define NUMBER_MAX 1e9

enum status change_number_of (struct change *x, int arg, double *out)
{
    return text_number (x->arg[arg], out) && *out >= NUMBER_MIN && *out <= NUMBER_MAX
               ? ST_OK
               : err_set (x->err, ST_USAGE,
                          "expected a number from %g to %g, found \"%s\"", NUMBER_MIN,
                          NUMBER_MAX, x->arg[arg]);
}

enum status change_count_of (struct change *x, const char *word, int most, int *out)
{
    long n;

    if (!text_whole (word, 1, most, &n))
        return err_set (x->err, ST_USAGE,
                        "expected a whole number from 1 to %d, found \"%s\"", most, word);
    *out = (int) n;
    return ST_OK;
}

enum status change_node_of (struct change *x, const char *name, int *out)
{
    struct text_near near = {.asked = name};
    char hint[TEXT_HINT];

    *out = topology_node_find (x->c, name);
    if (*out >= 0)
        return ST_OK;
    for (int i = 0; i < x->c->n_nodes; i++)
        text_near_try (&near, x->c->node[i].name, strlen (x->c->node[i].name));
    return err_set (x->err, ST_INVALID, "the cluster %s has no node \"%s\"%s", x->c->name,
                    name, text_near_hint (&near, "", hint));
}

enum status change_for_nodes (struct change *x, int n_lists,
                              enum status (*each) (struct change *x, int node))
{
    enum status st = ST_OK;

    for (int a = 0; a < n_lists && st == ST_OK; a++) {
        char **names = NULL;
        int n;

        st = topology_hostlist_expand (x->arg[a], &names, &n, x->err);
        for (int k = 0; st == ST_OK && k < n; k++) {
            int node;

            st = change_node_of (x, names[k], &node);
            THEN (st, each (x, node));
        }
        topology_hostlist_free (names);
    }
    return st;
}

/* NODE or NODE:GPU. */
static enum status check_end (struct change *x, const char *end)
{
    char name[TOPOLOGY_NAME_MAX + 1];
    int node;

    snprintf (name, sizeof name, "%.*s", (int) strcspn (end, ":"), end);
    return change_node_of (x, name, &node);
}

/* A->B or A<->B into its ends. */
enum status change_ends_of (struct change *x, char **from, char **to, bool *both)
{
    char *arrow = strstr (x->arg[0], "->");

    if (!arrow || arrow == x->arg[0] || !arrow[2])
        return err_set (x->err, ST_USAGE, "expected A->B or A<->B, found \"%s\"",
                        x->arg[0]);
    *both = arrow[-1] == '<';
    arrow[*both ? -1 : 0] = '\0';
    *from = x->arg[0];
    *to = arrow + 2;
    TRY (check_end (x, *from));
    TRY (check_end (x, *to));
    return strcmp (*from, *to) != 0
               ? ST_OK
               : err_set (x->err, ST_INVALID,
                          "expected two nodes or two GPUs, found %s twice", *from);
}
