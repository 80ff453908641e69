/* The page: its parts are built in as text, the document goes between them. */
#include <stdlib.h>
#include <string.h>

#include "report/report_private.h"

/* Numbers of a page have that many digits. */
#define DIGITS 12

static void add_shipped (struct text *out, const char *end)
{
    for (const struct text_shipped *s = report_shipped_page; s->name; s++) {
        const char *dot = strrchr (s->name, '.');

        if (dot && strcmp (dot, end) == 0)
            text_add_mem (out, s->text, strlen (s->text));
    }
}

/* JSON in which nothing can end the element that it is in: all beyond ASCII is escaped
 * by jansson, and what HTML reads occurs only in strings. */
static enum status add_document (struct text *out, const json_t *doc, struct error *err)
{
    char *json = json_dumped (doc, JSON_COMPACT | JSON_ENSURE_ASCII |
                                       JSON_REAL_PRECISION (DIGITS));

    if (!json)
        return err_nomem (err);
    for (const char *s = json; *s;) {
        size_t plain = strcspn (s, "<>&");

        text_add_mem (out, s, plain);
        s += plain;
        if (*s)
            text_add (out, "\\u%04x", (unsigned) *s++);
    }
    free (json);
    return ST_OK;
}

enum status report_page (const json_t *doc, struct text *out, struct error *err)
{
    struct text page = {0};
    enum status st = ST_OK;
    const char *s;

    add_shipped (&page, ".html");
    for (s = text_str (&page); *s && st == ST_OK;) {
        size_t plain = strcspn (s, "@");

        text_add_mem (out, s, plain);
        s += plain;
        if (strncmp (s, "@style@", 7) == 0)
            add_shipped (out, ".css");
        else if (strncmp (s, "@script@", 8) == 0)
            add_shipped (out, ".js");
        else if (strncmp (s, "@data@", 6) == 0)
            st = add_document (out, doc, err);
        s += *s ? strcspn (s + 1, "@") + 2 : 0;
    }
    if (st == ST_OK && (out->failed || page.failed))
        st = err_nomem (err);
    text_free (&page);
    return st;
}
