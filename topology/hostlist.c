/* Slurm host lists: comma-separated names, each a product of fixed text and bracketed
 * ranges; a range's leading zeros are its width (slurm.conf(5), "NodeName"). */
#include "topology/topology.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define HOSTS_MAX 1000000

struct list {
    char **name;
    int n;
};

static enum status list_add (struct list *l, const char *name, struct error *err)
{
    if (l->n == HOSTS_MAX)
        return err_set (err, ST_USAGE, "a host list has more than %d names", HOSTS_MAX);
    if (!array_grow (&l->name, l->n, sizeof *l->name) || !(l->name[l->n] = strdup (name)))
        return err_nomem (err);
    l->n++;
    return ST_OK;
}

static enum status expand_one (const char *head, const char *rest, struct list *l,
                               struct error *err);

/* One range "lo" or "lo-hi" of a bracket: every number, then what follows the bracket. */
static enum status expand_range (const char *head, const char *range, size_t len,
                                 const char *rest, struct list *l, struct error *err)
{
    char lo_text[32] = "", hi_text[32] = "";
    const char *dash = memchr (range, '-', len);
    size_t lo_len = dash ? (size_t) (dash - range) : len;
    size_t hi_len = dash ? len - lo_len - 1 : len;

    if (lo_len == 0 || hi_len == 0 || lo_len > 9 || hi_len > 9)
        return err_set (err, ST_USAGE, "host list: a bad range \"%.*s\"", (int) len,
                        range);
    memcpy (lo_text, range, lo_len);
    memcpy (hi_text, dash ? dash + 1 : range, hi_len);
    if (strspn (lo_text, "0123456789") != lo_len ||
        strspn (hi_text, "0123456789") != hi_len)
        return err_set (err, ST_USAGE, "host list: a bad range \"%.*s\"", (int) len,
                        range);

    long lo = strtol (lo_text, NULL, 10), hi = strtol (hi_text, NULL, 10);

    if (lo > hi)
        return err_set (err, ST_USAGE, "host list: the range %s-%s runs backwards",
                        lo_text, hi_text);
    for (long k = lo; k <= hi; k++) {
        struct text t = {0};

        text_add (&t, "%s%0*ld", head, (int) lo_len, k);

        enum status st =
            t.failed ? err_nomem (err) : expand_one (text_str (&t), rest, l, err);

        text_free (&t);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

/* One name of the list: head is expanded already, rest is not. */
static enum status expand_one (const char *head, const char *rest, struct list *l,
                               struct error *err)
{
    const char *open = strchr (rest, '[');

    if (strlen (head) + strlen (rest) > 4 * TOPOLOGY_NAME_MAX)
        return err_set (err, ST_USAGE, "host list: a name is too long");
    if (!open) {
        struct text t = {0};

        text_add (&t, "%s%s", head, rest);

        enum status st = ST_OK;

        if (t.failed)
            st = err_nomem (err);
        else if (!topology_name_ok (text_str (&t)))
            st = err_set (err, ST_USAGE, "host list: \"%s\" is no node name",
                          text_str (&t));
        else
            st = list_add (l, text_str (&t), err);
        text_free (&t);
        return st;
    }

    const char *close = strchr (open, ']');

    if (!close)
        return err_set (err, ST_USAGE, "host list: \"[\" without \"]\"");

    struct text t = {0};
    enum status st = ST_OK;

    text_add (&t, "%s%.*s", head, (int) (open - rest), rest);
    for (const char *p = open + 1; st == ST_OK && !t.failed;) {
        size_t len = strcspn (p, ",]");

        st = expand_range (text_str (&t), p, len, close + 1, l, err);
        p += len;
        if (*p++ == ']')
            break;
    }
    if (t.failed)
        st = err_nomem (err);
    text_free (&t);
    return st;
}

enum status topology_hostlist_expand (const char *list, char ***names, int *n,
                                      struct error *err)
{
    struct list l = {0};
    enum status st = ST_OK;

    for (const char *p = list; st == ST_OK;) {
        size_t len = 0;
        int depth = 0;

        for (; p[len] && (depth > 0 || p[len] != ','); len++) {
            if (isspace ((unsigned char) p[len]))
                st = err_set (err, ST_USAGE, "host list: a blank in \"%.60s\"", list);
            depth += p[len] == '[' ? 1 : p[len] == ']' ? -1 : 0;
        }

        char *one = strndup (p, len);

        if (!one)
            st = err_nomem (err);
        else if (len == 0)
            st = err_set (err, ST_USAGE, "host list: an empty name in \"%.60s\"", list);
        else if (st == ST_OK)
            st = expand_one ("", one, &l, err);
        free (one);
        if (p[len] == '\0')
            break;
        p += len + 1;
    }
    if (st == ST_OK && !array_grow (&l.name, l.n, sizeof *l.name))
        st = err_nomem (err);
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
