/* Changes of a cluster in words: a statement's form is found, and what it says is done to a copy of
 * the cluster's document (change_forms.c).  The copy is then read as every cluster file is, so that
 * a what-if means what the same edit of the file means, and is checked as strictly. */
#include "topology/edit/edit.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "topology/edit/change_private.h"

/* Do the words have the form?  Then its arguments are known. */
static bool fits (const struct change_form *f, char **word, int n, struct change *x)
{
    char form[64], *part[8];
    int parts;

    snprintf (form, sizeof form, "%s", f->words);
    parts = text_words (form, part, 8);
    x->n = 0;
    for (int k = 0; k < parts; k++) {
        bool plus = part[k][0] == '+', open = strstr (part[k], "...") != NULL;

        if (k >= n || (plus && word[k][0] != '+'))
            return false;
        if (!isupper ((unsigned char) part[k][plus])) {
            if (strcmp (part[k], word[k]) != 0)
                return false;
            continue;
        }
        x->arg[x->n++] = word[k];
        for (int more_of = k + 1; open && more_of < n; more_of++)
            x->arg[x->n++] = word[more_of];
        if (open)
            return true;
    }
    return parts == n;
}

/* "drain NODES..." for words that begin as it does; all forms where none does. */
static enum status refuse (char **word, int n, struct error *err)
{
    struct text expected = {0};
    const struct change_form *f;
    enum status st;

    for (int all = 0; all < 2 && expected.len == 0; all++)
        for (f = change_forms; f->words; f++)
            if (all ||
                (n > 0 && strcspn (f->words, " ") == strlen (word[0]) &&
                 strncmp (f->words, word[0], strlen (word[0])) == 0) ||
                (n > 0 && word[0][0] == '+' && f->words[0] == '+'))
                text_add (&expected, "%s\"%s\"", expected.len ? " or " : "", f->words);
    st = err_set (err, ST_USAGE, "expected %s", text_str (&expected));
    text_free (&expected);
    return st;
}

/* The statement's words, '=' always one of them. */
static char *spaced (const char *statement)
{
    struct text t = {0};

    for (const char *s = statement; *s; s++)
        text_add (&t, *s == '=' ? " = " : "%c", *s);
    return t.s ? t.s : strdup ("");
}

static enum status apply (struct change *x, const char *statement)
{
    char *word[CHANGE_WORDS_MAX], *text = spaced (statement);
    const struct change_form *f = change_forms;
    enum status st;
    int n;

    if (!text)
        return err_nomem (x->err);
    n = text_words (text, word, CHANGE_WORDS_MAX);
    while (f->words && !fits (f, word, n, x))
        f++;
    st = f->words ? f->apply (x) : refuse (word, n, x->err);
    free (text);
    return st;
}

enum status topology_change (const struct topology_cluster *c, const char *statement,
                             struct topology_changed *out, struct error *err)
{
    struct change x = {.c = c, .doc = json_deep_copy (c->doc), .err = err};
    struct topology_cluster *changed = NULL;
    enum status st = x.doc ? apply (&x, statement) : err_nomem (err);

    THEN (st,
          topology_cluster_from_json (x.doc, c->name, c->folder, &changed, NULL, err));
    json_decref (x.doc);
    if (st != ST_OK) {
        err_prefix (err, "\"%.200s\"", statement);
        return st;
    }
    topology_cluster_destroy (out->c);
    out->c = changed;
    if (x.max_nodes > 0)
        out->max_nodes = x.max_nodes;
    return ST_OK;
}

void topology_changed_release (struct topology_changed *x)
{
    topology_cluster_destroy (x->c);
    *x = (struct topology_changed){0};
}

/* ---- statements ---- */

enum status topology_changes_split (const char *text, char ***list, int *n,
                                    struct error *err)
{
    char **out = calloc (strlen (text) + 2, sizeof *out);
    int k = 0, number = 1;

    if (!out)
        return err_nomem (err);
    for (const char *s = text;; number++) {
        const char *end = s + strcspn (s, ";"), *last = end;

        while (s < last && isspace ((unsigned char) *s))
            s++;
        while (last > s && isspace ((unsigned char) last[-1]))
            last--;
        if (s < last && !(out[k++] = strndup (s, (size_t) (last - s)))) {
            memory_free_texts (out, k - 1);
            return err_nomem (err);
        }
        if (s < last)
            text_clean_line (out[k - 1]);
        if (s == last && (*end || k == 0)) { /* only the last may be empty */
            memory_free_texts (out, k);
            return err_set (err, ST_USAGE,
                            "statement %d: expected one, as \"%s\", found nothing",
                            number, change_forms[0].words);
        }
        if (!*end)
            break;
        s = end + 1;
    }
    *list = out;
    *n = k;
    return ST_OK;
}
