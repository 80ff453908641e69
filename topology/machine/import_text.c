/* Texts as importers read them: line by line. */
#include <ctype.h>
#include <string.h>

#include "topology/machine/machine.h"

bool import_line (const char **at, struct text *line)
{
    const char *p = *at;
    size_t n;

    if (!p || !*p)
        return false;
    n = strcspn (p, "\n");
    line->len = 0;
    text_add_mem (line, "", 0);
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\033' && i + 1 < n && p[i + 1] == '[') {
            /* An escape sequence ends with a letter. */
            for (i += 2; i < n && !isalpha ((unsigned char) p[i]);)
                i++;
            continue;
        }
        if (p[i] != '\r')
            text_add_mem (line, &p[i], 1);
    }
    *at = p[n] ? p + n + 1 : p + n;
    return !line->failed;
}

enum status import_lines (const struct import *in,
                          enum status (*take) (void *context, char *line, int number),
                          void *context)
{
    const char *at = in->data;
    struct text line = {0};
    enum status st = ST_OK;

    for (int number = 1; st == ST_OK && import_line (&at, &line); number++)
        st = take (context, line.s, number);
    if (st == ST_OK && line.failed)
        st = err_nomem (in->err);
    text_free (&line);
    return st;
}
