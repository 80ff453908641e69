/* Slurm host lists: comma-separated names, each a product of fixed text and bracketed
 * ranges; a range's leading zeros are its width (slurm.conf(5), "NodeName"). */
#include "topology/topology.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define HOSTS_MAX 1000000

struct list {
    char **name;
    int n;
};

static enum status list_add (struct list *l, const char *name, struct error *err)
{
    if (!topology_name_ok (name))
        return err_set (err, ST_USAGE, "host list: \"%s\" is no node name", name);
    if (l->n == HOSTS_MAX)
        return err_set (err, ST_USAGE, "a host list has more than %d names", HOSTS_MAX);
    if (!array_grow (&l->name, l->n, sizeof *l->name) || !(l->name[l->n] = strdup (name)))
        return err_nomem (err);
    l->n++;
    return ST_OK;
}

static enum status expand (struct text *head, const char *rest, struct list *l,
                           struct error *err);

/* One range "lo" or "lo-hi" of a bracket: every number, then what follows the bracket. */
static enum status expand_range (struct text *head, const char *range, size_t len,
                                 const char *rest, struct list *l, struct error *err)
{
    const char *dash = memchr (range, '-', len), *high = dash ? dash + 1 : range;
    size_t lo_len = dash ? (size_t) (dash - range) : len, at = head->len;
    size_t hi_len = dash ? len - lo_len - 1 : len;
    long lo = strtol (range, NULL, 10), hi = strtol (high, NULL, 10);

    if (lo_len == 0 || hi_len == 0 || lo_len > 9 || hi_len > 9 ||
        strspn (range, "0123456789") != lo_len || strspn (high, "0123456789") != hi_len)
        return err_set (err, ST_USAGE, "host list: a bad range \"%.*s\"", (int) len,
                        range);
    if (lo > hi)
        return err_set (err, ST_USAGE, "host list: the range %.*s runs backwards",
                        (int) len, range);
    for (long k = lo; k <= hi; k++) {
        head->len = at;
        text_add (head, "%0*ld", (int) lo_len, k);
        TRY (expand (head, rest, l, err));
    }
    return ST_OK;
}

/* One name of the list: head is expanded already, rest is not. */
static enum status expand (struct text *head, const char *rest, struct list *l,
                           struct error *err)
{
    const char *open = strchr (rest, '['), *close = open ? strchr (open, ']') : NULL;
    size_t at, len;

    if (head->len + strlen (rest) > 4 * TOPOLOGY_NAME_MAX)
        return err_set (err, ST_USAGE, "host list: a name is too long");
    if (open && !close)
        return err_set (err, ST_USAGE, "host list: \"[\" without \"]\"");
    text_add_mem (head, rest, open ? (size_t) (open - rest) : strlen (rest));
    if (head->failed)
        return err_nomem (err);
    if (!open)
        return list_add (l, text_str (head), err);
    at = head->len;
    for (const char *p = open + 1; p <= close; p += len + 1) {
        head->len = at;
        len = strcspn (p, ",]");
        TRY (expand_range (head, p, len, close + 1, l, err));
    }
    return ST_OK;
}

/* End a name at its comma, which stands outside brackets.  @return the next; NULL: none */
static char *cut_name (char *name)
{
    int depth = 0;

    for (; *name && (depth > 0 || *name != ','); name++)
        depth += *name == '[' ? 1 : *name == ']' ? -1 : 0;
    if (*name == '\0')
        return NULL;
    *name = '\0';
    return name + 1;
}

/* @param copy  of the list; it is cut up */
static enum status expand_all (const char *list, char *copy, struct text *head,
                               struct list *l, struct error *err)
{
    for (char *name = copy, *next; name; name = next) {
        next = cut_name (name);
        if (*name == '\0')
            return err_set (err, ST_USAGE, "host list: an empty name in \"%.60s\"", list);
        if (strpbrk (name, " \t\n\v\f\r"))
            return err_set (err, ST_USAGE, "host list: a blank in \"%.60s\"", list);
        head->len = 0;
        TRY (expand (head, name, l, err));
    }
    return array_grow (&l->name, l->n, sizeof *l->name) ? ST_OK : err_nomem (err);
}

enum status topology_hostlist_expand (const char *list, char ***names, int *n,
                                      struct error *err)
{
    struct list l = {0};
    struct text head = {0};
    char *copy = strdup (list);
    enum status st = copy ? expand_all (list, copy, &head, &l, err) : err_nomem (err);

    text_free (&head);
    free (copy);
    if (st != ST_OK) {
        while (l.n > 0)
            free (l.name[--l.n]);
        free (l.name);
        return st;
    }
    l.name[l.n] = NULL;
    *names = l.name;
    *n = l.n;
    return ST_OK;
}

void topology_hostlist_free (char **names)
{
    for (int i = 0; names && names[i]; i++)
        free (names[i]);
    free (names);
}
