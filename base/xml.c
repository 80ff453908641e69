#include "base/xml.h"

#include <expat.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    const char *name;
    XML_Parser parser;
    struct xml *root, *at; /* the outermost element, and the one that is open */
    struct xml *last;      /* the child of `at` that was closed last, or NULL */
    int depth, elements;
    enum status st;
    struct error *err;
};

static void stop (struct reading *r, enum status st, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

static void stop (struct reading *r, enum status st, const char *fmt, ...)
{
    char what[512];
    va_list ap;

    if (r->st != ST_OK)
        return;
    va_start (ap, fmt);
    vsnprintf (what, sizeof what, fmt, ap);
    va_end (ap);
    r->st = st;
    if (st == ST_NOMEM)
        err_nomem (r->err);
    else
        err_set (r->err, st, "%s: line %lu: %s", r->name,
                 (unsigned long) XML_GetCurrentLineNumber (r->parser), what);
    XML_StopParser (r->parser, XML_FALSE);
}

static bool copy_attributes (struct xml *x, const char **attr)
{
    size_t n = 0;

    while (attr[n])
        n++;
    if (!(x->attr = calloc (n + 1, sizeof *x->attr)))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!(x->attr[i] = strdup (attr[i])))
            return false;
    return true;
}

static void on_start (void *context, const char *name, const char **attr)
{
    struct reading *r = context;
    struct xml *x;

    if (++r->depth > XML_DEPTH_MAX) {
        stop (r, ST_INVALID, "more than %d elements inside each other", XML_DEPTH_MAX);
        return;
    }
    if (++r->elements > XML_ELEMENTS_MAX) {
        stop (r, ST_INVALID, "more than %d elements", XML_ELEMENTS_MAX);
        return;
    }
    if (r->st != ST_OK)
        return;
    if (!(x = calloc (1, sizeof *x))) {
        stop (r, ST_NOMEM, "out of memory");
        return;
    }
    x->up = r->at;
    x->line = (int) XML_GetCurrentLineNumber (r->parser);
    if (!r->at)
        r->root = x;
    else if (r->last)
        r->last->next = x;
    else
        r->at->first = x;
    r->at = x;
    r->last = NULL;
    if (!(x->name = strdup (name)) || !copy_attributes (x, attr))
        stop (r, ST_NOMEM, "out of memory");
}

static void on_end (void *context, const char *name)
{
    struct reading *r = context;

    (void) name;
    if (r->st != ST_OK)
        return;
    r->depth--;
    r->last = r->at;
    r->at = r->at->up;
}

static void on_text (void *context, const char *s, int len)
{
    struct reading *r = context;

    if (r->st != ST_OK || !r->at)
        return;
    text_add_mem (&r->at->text, s, (size_t) len);
    if (r->at->text.failed)
        stop (r, ST_NOMEM, "out of memory");
}

static void on_entity (void *context, const char *name, int is_parameter,
                       const char *value, int value_len, const char *base,
                       const char *system, const char *public, const char *notation)
{
    (void) is_parameter, (void) value, (void) value_len, (void) base, (void) public,
        (void) notation;
    stop (context, ST_INVALID, "declares %s entity \"%.40s\": refused",
          system ? "the external" : "the", name);
}

static void on_skipped (void *context, const char *name, int is_parameter)
{
    (void) is_parameter;
    stop (context, ST_INVALID, "uses the entity \"%.40s\": refused", name);
}

enum status xml_parse (const char *name, const char *data, size_t len, struct xml **root,
                       struct error *err)
{
    struct reading r = {.name = name, .err = err};

    if (len > INT_MAX)
        return err_set (err, ST_INVALID, "%s: XML of more than 2 GiB", name);
    if (!(r.parser = XML_ParserCreate (NULL)))
        return err_nomem (err);
    XML_SetUserData (r.parser, &r);
    XML_SetElementHandler (r.parser, on_start, on_end);
    XML_SetCharacterDataHandler (r.parser, on_text);
    XML_SetEntityDeclHandler (r.parser, on_entity);
    XML_SetSkippedEntityHandler (r.parser, on_skipped);
    if (XML_Parse (r.parser, data, (int) len, XML_TRUE) == XML_STATUS_ERROR)
        stop (&r, ST_INVALID, "not well-formed XML: %s",
              XML_ErrorString (XML_GetErrorCode (r.parser)));
    XML_ParserFree (r.parser);
    if (r.st != ST_OK) {
        xml_free (r.root);
        return r.st;
    }
    *root = r.root;
    return ST_OK;
}

void xml_free (struct xml *root)
{
    struct xml *x = root;

    /* Without recursion: go down to a leaf, release it, go on from its parent. */
    while (x) {
        if (x->first) {
            struct xml *child = x->first;

            x->first = child->next;
            x = child;
            continue;
        }

        struct xml *up = x == root ? NULL : x->up;

        for (size_t i = 0; x->attr && x->attr[i]; i++)
            free (x->attr[i]);
        free (x->attr);
        free (x->name);
        text_free (&x->text);
        free (x);
        x = up;
    }
}

const char *xml_attr (const struct xml *x, const char *key)
{
    for (size_t i = 0; x->attr[i]; i += 2)
        if (strcmp (x->attr[i], key) == 0)
            return x->attr[i + 1];
    return NULL;
}

const struct xml *xml_next (const struct xml *x, const struct xml *top)
{
    if (x->first)
        return x->first;
    while (x != top && !x->next)
        x = x->up;
    return x == top ? NULL : x->next;
}

const struct xml *xml_common (const struct xml *a, const struct xml *b)
{
    for (a = a->up; a; a = a->up)
        for (const struct xml *x = b->up; x; x = x->up)
            if (x == a)
                return a;
    return NULL;
}
