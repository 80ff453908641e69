/* NVLink errors as DCGM exports them: dcgm-exporter's text for Prometheus, of one machine
 * or of many one after another, or a CSV with a column for each field,
 *
 *     DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{gpu="0",UUID="GPU-..",Hostname="n1"} 0
 *
 *     Hostname,gpu,UUID,DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL
 *     n1,0,GPU-..,0
 *
 * `dcgmi dmon` is not read: its columns have short names, and it names no host.
 */
#include "topology/measured/links_import_private.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

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

/* ---- CSV ---- */

enum { COLUMNS_MAX = 256 };

/* Does the first line have several columns, and one of NVLink's errors? */
static bool is_csv (const char *text)
{
    const char *end = text + strcspn (text, "\r\n"),
               *field = strcasestr (text, "nvlink_"), *comma = strchr (text, ',');

    return field && comma && field < end && comma < end && *text != '#' &&
           !memchr (text, '{', (size_t) (end - text));
}

/* A column's counter, "DCGM_FI_DEV_NVLINK_..." or "nvlink_...", in place; NULL: none. */
static const char *counter_of (char *column)
{
    for (char *c = column; *c; c++)
        *c = (char) toupper ((unsigned char) *c);
    if (strncmp (column, PREFIX, sizeof PREFIX - 1) == 0)
        column += sizeof PREFIX - 1;
    return topology_counter_spelled (column) ? column : NULL;
}

/* The column of one of these names, or -1. */
static int find_column (char **column, int n, const char *names)
{
    for (int i = 0; i < n; i++)
        for (char *c = column[i]; *c; c++)
            *c = (char) tolower ((unsigned char) *c);
    for (int i = 0; i < n; i++)
        if (text_has_word (names, column[i]))
            return i;
    return -1;
}

/* A host without the exporter's port, "n1:9400", in place; NULL: none is given. */
static const char *host_of (char *cell)
{
    char *port = strchr (cell, ':');

    if (port && strspn (port + 1, "0123456789") == strlen (port + 1))
        *port = '\0';
    return *cell ? cell : NULL;
}

static enum status read_csv (struct links_table *t)
{
    char *column[COLUMNS_MAX], *cell[COLUMNS_MAX], *line = links_line (t);
    const char *counter[COLUMNS_MAX];
    int n = text_cells (line, ',', LINKS_BLANKS, column, COLUMNS_MAX),
        host = find_column (column, n, "hostname host node instance"),
        uuid = find_column (column, n, "uuid gpu_uuid"),
        gpu = find_column (column, n, "gpu gpu_id gpuid index entity");

    for (int i = 0; i < n; i++)
        counter[i] = counter_of (column[i]);
    if (gpu < 0)
        return links_fail (t, "expected a column gpu, found %d others", n);
    while ((line = links_line (t))) {
        int cells;
        long index;

        text_clean_line (line);
        cells = text_cells (line, ',', LINKS_BLANKS, cell, COLUMNS_MAX);
        if (cells <= 1 && (cells == 0 || !*cell[0]))
            continue;
        if (cells != n)
            return links_fail (t, "expected %d cells, found %d", n, cells);
        if (strncasecmp (cell[gpu], "gpu ", 4) == 0)
            cell[gpu] += 4;
        if (!links_whole (cell[gpu], 0, 1023, &index))
            return links_fail (t, "expected a GPU's number, found \"%.40s\"", cell[gpu]);

        struct links_counter at = {.node = host >= 0 ? host_of (cell[host]) : NULL,
                                   .uuid = uuid >= 0 && *cell[uuid] ? cell[uuid] : NULL,
                                   .gpu = (int) index};

        for (int i = 0; i < n; i++)
            if (counter[i])
                TRY (links_table_count (t, &at, counter[i], cell[i]));
    }
    return ST_OK;
}

static bool matches (const char *text)
{
    return (strstr (text, PREFIX "NVLINK_") && strstr (text, "UUID=\"")) || is_csv (text);
}

static enum status read_line (struct links_table *t, char *line)
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
        return links_fail (t, "expected a label gpu=\"N\", found \"%.40s\"", gpu);
    if (text_words (end + 1, word, 2) < 1)
        return links_fail (t, "expected a count after the labels, found nothing");

    struct links_counter at = {
        .node = host[0] ? host : NULL, .uuid = uuid[0] ? uuid : NULL, .gpu = (int) index};

    return links_table_count (t, &at, line + sizeof PREFIX - 1, word[0]);
}

static enum status read (struct links_table *t)
{
    if (is_csv (t->next))
        return read_csv (t);
    for (char *line; (line = links_line (t));)
        TRY (read_line (t, line + strspn (line, " \t")));
    return ST_OK;
}

const struct links_format links_format_dcgm = {
    .name = "dcgm", .matches = matches, .read = read};
