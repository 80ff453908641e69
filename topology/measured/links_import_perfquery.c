/* perfquery of infiniband-diags: counters of a port, `Name:....value` a line, below a line
 * `# Port extended counters: Lid 12 port 1 (...)`; several ports one after another.
 *
 * The text does not say which host's port it is.
 */
#include "topology/measured/links_import_private.h"

#include <stdio.h>

#define DIGITS_MAX 10 /* of 32 bits */

/* "# Port extended counters: Lid 12 port 1 (CapMask: 0x5300)" -> "lid 12 port 1"; other
 * lines leave the port as it is. */
static enum status read_port (struct links_table *t, const char *text, char *port,
                              size_t room)
{
    static const char digits[] = "0123456789";
    const char *lid = text[0] == '#' ? strstr (text, " Lid ") : NULL,
               *number = lid ? strstr (lid, " port ") : NULL;
    size_t n, m;

    if (!number)
        return ST_OK;
    n = strspn (lid += 5, digits);
    m = strspn (number += 6, digits);
    if (n == 0 || n > DIGITS_MAX || m == 0 || m > DIGITS_MAX)
        return links_fail (t,
                           "expected `Lid N port N` with numbers of up to %d digits, "
                           "found \"%.80s\"",
                           DIGITS_MAX, text);
    snprintf (port, room, "lid %.*s port %.*s", (int) n, lid, (int) m, number);
    return ST_OK;
}

static enum status read (struct links_table *t)
{
    char port[64] = "";

    for (char *line; (line = links_line (t));) {
        char *name = line + strspn (line, " \t"), *colon = strchr (name, ':'), *word[1];
        struct links_counter at = {.port = port, .gpu = -1};

        TRY (read_port (t, name, port, sizeof port));
        if (*name == '#' || !colon)
            continue;
        *colon++ = '\0';
        colon += strspn (colon, ".");
        if (!topology_counter_spelled (name))
            continue;
        if (!*port)
            return links_fail (t,
                               "expected `# Port counters: Lid N port N` above %s, found "
                               "no such line",
                               name);
        if (text_words (colon, word, 1) != 1)
            return links_fail (t, "%s: expected a count, found nothing", name);
        TRY (links_table_count (t, &at, name, word[0]));
    }
    return ST_OK;
}

const struct links_format links_format_perfquery = {
    .name = "perfquery", .text_has = {" Lid ", "PortSelect:."}, .read = read};
