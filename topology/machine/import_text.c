/* Texts as importers read them: names, lines, words, the first tag. */
#include <ctype.h>
#include <string.h>

#include "topology/machine/import_private.h"

bool import_is_xml (const char *data, const char *root)
{
    size_t n = strlen (root);

    for (;;) {
        data += strspn (data, " \t\r\n");
        if (*data != '<')
            return false;
        if (strncmp (data, "<!--", 4) == 0) {
            data = strstr (data, "-->");
            if (!data)
                return false;
            data += 3;
        } else if (data[1] == '?' || data[1] == '!') {
            /* A document type may hold tags of its own; they come before the root. */
            bool subset = false;

            for (; *data && (*data != '>' || subset); data++)
                subset = *data == '[' || (subset && *data != ']');
            if (!*data++)
                return false;
        } else
            return strncmp (data + 1, root, n) == 0 &&
                   strchr (" \t\r\n>/", data[n + 1]) != NULL && data[n + 1] != '\0';
    }
}

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
