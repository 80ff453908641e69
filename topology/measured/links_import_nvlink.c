/* Error counters of a machine's NVLinks: `nvidia-smi nvlink -e`, and the tables of
 * `dcgmi nvlink -e`, which have frames around the same words:
 *
 *     GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)         | GPU 0                    |
 *          Link 0: Replay Errors: 0                        | Link 0        |          |
 *                                                          | -> Replay Error | 0      |
 *
 * nvidia-smi gives the GPUs' UUIDs; neither says which host it is.
 */
#include "topology/measured/links_import_private.h"

#include <stdio.h>

enum { WORDS_MAX = 16, GPUS_MAX = 1024, LINKS_MAX = 1024 };

struct place {
    long gpu, link; /* -1: not yet */
    char uuid[64];
};

/* The number after a word such as "Link", -1 if it is too large; true where the line has one. */
static bool numbered (char **word, int n, const char *what, long most, long *number)
{
    for (int i = 0; i + 1 < n; i++) {
        char digits[8];
        int k = i + 1 + (strcmp (word[i + 1], "ID:") == 0);
        size_t len = k < n ? strspn (word[k], "0123456789") : 0;

        if (strcmp (word[i], what) != 0 || len == 0 || !strchr (":", word[k][len]))
            continue;
        snprintf (digits, sizeof digits, "%.*s", len < sizeof digits ? (int) len : 0,
                  word[k]);
        if (!links_whole (digits, 0, most, number))
            *number = -1;
        return true;
    }
    return false;
}

static void read_uuid (const char *line, struct place *at)
{
    const char *uuid = strstr (line, "(UUID: ");

    at->uuid[0] = '\0';
    if (uuid && strcspn (uuid + 7, ")") < sizeof at->uuid)
        snprintf (at->uuid, sizeof at->uuid, "%.*s", (int) strcspn (uuid + 7, ")"),
                  uuid + 7);
    text_clean_line (at->uuid);
}

static const char *counter_in (const char *line)
{
    return strstr (line, "Replay")     ? "nvlink_replay"
           : strstr (line, "Recovery") ? "nvlink_recovery"
           : strstr (line, "CRC FLIT") ? "nvlink_crc_flit"
           : strstr (line, "CRC Data") ? "nvlink_crc_data"
           : strstr (line, "CRC")      ? "nvlink_crc"
                                       : NULL;
}

static enum status read_count (struct links_table *t, const struct place *at,
                               const char *counter, const char *word)
{
    char port[32];
    struct links_counter where = {
        .uuid = at->uuid[0] ? at->uuid : NULL, .port = port, .gpu = (int) at->gpu};

    if (at->gpu < 0 || at->link < 0)
        return links_fail (t, "expected a GPU and a link above a counter");
    snprintf (port, sizeof port, "nvlink %ld", at->link);
    return links_table_count (t, &where, counter, word);
}

static enum status read (struct links_table *t)
{
    struct place at = {-1, -1, ""};

    for (char *line; (line = links_line (t));) {
        const char *counter = counter_in (line);
        char *word[WORDS_MAX];
        int n;

        if (strstr (line, "GPU") && !counter)
            read_uuid (line, &at);
        for (char *s = line; *s; s++)
            if (*s == '|')
                *s = ' ';
        n = text_words (line, word, WORDS_MAX);
        if (!counter && numbered (word, n, "GPU", GPUS_MAX - 1, &at.gpu))
            at.link = -1;
        numbered (word, n, "Link", LINKS_MAX - 1, &at.link);
        if (counter && n > 0)
            TRY (read_count (t, &at, counter, word[n - 1]));
    }
    return ST_OK;
}

const struct links_format links_format_nvlink = {
    .name = "nvlink", .text_has = {"GPU ", "Link 0", "Replay Error"}, .read = read};
