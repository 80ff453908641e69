/* perfquery of infiniband-diags: counters of a port, `Name:....value` a line, below a line
 * `# Port extended counters: Lid 12 port 1 (...)`; several ports one after another.
 *
 * The text does not say which host's port it is.
 */
#include "topology/measured/links_import_private.h"

#include <stdio.h>

/* "# Port extended counters: Lid 12 port 1 (CapMask: 0x5300)" -> "lid 12 port 1" */
static bool read_port (const char *line, char *port, size_t room)
{
    const char *lid = line[0] == '#' ? strstr (line, " Lid ") : NULL,
               *number = lid ? strstr (lid, " port ") : NULL;

    if (!number)
        return false;
    snprintf (port, room, "lid %.*s port %.*s", (int) strspn (lid + 5, "0123456789") % 16,
              lid + 5, (int) strcspn (number + 6, " (") % 16, number + 6);
    text_clean_line (port);
    return true;
}

static bool matches (const char *text)
{
    return strstr (text, " Lid ") && strstr (text, "PortSelect:.");
}

static enum status read (struct links_table *t, char *text)
{
    struct links_lines lines = {.next = text};
    char port[64] = "";

    for (char *line; (line = links_line (&lines));) {
        char *name = line + strspn (line, " \t"), *colon = strchr (name, ':'), *word[1];
        struct links_counter at = {.port = port, .gpu = -1};

        if (read_port (name, port, sizeof port) || *name == '#' || !colon)
            continue;
        *colon++ = '\0';
        colon += strspn (colon, ".");
        if (!topology_counter_spelled (name))
            continue;
        if (!*port)
            return links_fail (t, lines.number,
                               "expected `# Port counters: Lid N port N` above %s, found "
                               "no such line",
                               name);
        if (links_words (colon, '\0', word, 1) != 1)
            return links_fail (t, lines.number, "%s: expected a count, found nothing",
                               name);
        TRY (links_table_count (t, lines.number, &at, name, word[0]));
    }
    return ST_OK;
}

const struct links_format links_format_perfquery = {"perfquery", matches, read, NULL};
