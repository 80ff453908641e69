/* NVLink errors as DCGM exports them: dcgm-exporter's text for Prometheus, of one machine
 * or of many one after another,
 *
 *     DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{gpu="0",UUID="GPU-..",Hostname="n1"} 0
 *
 * `dcgmi dmon` is not read: its columns have short names, and it names no host.
 */
#include "topology/measured/links_import_private.h"

#include <stdio.h>

#define PREFIX "DCGM_FI_DEV_"

/* The value of a label; "" where the line has none, or one that is too long. */
static void label (const char *labels, const char *name, char *value, size_t room)
{
    size_t len = strlen (name);

    value[0] = '\0';
    for (const char *s = labels; s && *s && *s != '}';) {
        const char *quote = strchr (s, '"'),
                   *end = quote ? strchr (quote + 1, '"') : NULL;

        if (!end)
            break;
        s += strspn (s, "{, \t");
        if (strncmp (s, name, len) == 0 && s[len] == '=')
            snprintf (value, room, "%.*s",
                      (size_t) (end - quote) <= room ? (int) (end - quote - 1) : 0,
                      quote + 1);
        s = end + 1;
    }
    text_clean_line (value);
}

static bool matches (const char *text)
{
    return strstr (text, PREFIX "NVLINK_") && strstr (text, "UUID=\"");
}

static enum status read_line (struct links_table *t, int number, char *line)
{
    char *labels = strchr (line, '{'), *end = strrchr (line, '}'), *word[2];
    char gpu[16], uuid[64], host[256];
    long index;

    if (strncmp (line, PREFIX, sizeof PREFIX - 1) != 0 || !labels)
        return ST_OK;
    label (labels, "gpu", gpu, sizeof gpu);
    label (labels, "UUID", uuid, sizeof uuid);
    label (labels, "Hostname", host, sizeof host);
    *labels = '\0';
    if (!topology_counter_spelled (line + sizeof PREFIX - 1))
        return ST_OK;
    if (!end || !links_whole (gpu, 0, 1023, &index))
        return links_fail (t, number, "expected a label gpu=\"N\", found \"%.40s\"", gpu);
    if (links_words (end + 1, '\0', word, 2) < 1)
        return links_fail (t, number, "expected a count after the labels, found nothing");

    struct links_counter at = {
        .node = host[0] ? host : NULL, .uuid = uuid[0] ? uuid : NULL, .gpu = (int) index};

    return links_table_count (t, number, &at, line + sizeof PREFIX - 1, word[0]);
}

static enum status read (struct links_table *t, char *text)
{
    struct links_lines lines = {.next = text};

    for (char *line; (line = links_line (&lines));)
        TRY (read_line (t, lines.number, line + strspn (line, " \t")));
    return ST_OK;
}

const struct links_format links_format_dcgm = {"dcgm", matches, read, NULL};
