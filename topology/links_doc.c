#include "topology/links_doc.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "topology/topology.h"

#define TIME_MAX_S 2.5e11 /* years of four digits */

json_t *topology_links_time (double seconds)
{
    time_t at = fabs (seconds) < TIME_MAX_S ? (time_t) seconds : 0;
    struct tm utc;
    char when[32];

    if (at == 0 || !gmtime_r (&at, &utc) ||
        !strftime (when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc))
        return json_null ();
    return json_string (when);
}

json_t *topology_links_now (void)
{
    return topology_links_time ((double) time (NULL));
}

/* What follows the seconds of a time: parts of a second, then nothing or "Z", or how far its
 * clock is ahead of UTC, "+02:00".  @return false: something else */
static bool read_zone (const char *s, double *ahead_s)
{
    int hours, minutes = 0, n = 0;

    if (*s == '.')
        s += 1 + strspn (s + 1, "0123456789");
    *ahead_s = 0;
    if (*s == '\0' || strcmp (s, "Z") == 0)
        return true;
    if ((*s != '+' && *s != '-') || !isdigit ((unsigned char) s[1]) ||
        sscanf (s + 1, "%2d%n:%2d%n", &hours, &n, &minutes, &n) < 1 || s[1 + n])
        return false;
    *ahead_s = (*s == '-' ? -60.0 : 60.0) * (60 * hours + minutes);
    return true;
}

double topology_links_seconds (const json_t *when)
{
    struct tm t = {0};
    const char *s = json_string_value (when), *rest = NULL;
    double ahead_s;

    if (json_is_number (when))
        return json_number_value (when);
    if (s)
        rest = strptime (s, "%Y-%m-%dT%H:%M:%S", &t);
    return rest && read_zone (rest, &ahead_s) ? (double) timegm (&t) - ahead_s : NAN;
}

json_t *topology_links_doc_create (const char *tool)
{
    return json_pack ("{s:i, s:[], s:{}, s:{s:s, s:o, s:s}}", "version", 1, "nodes",
                      "links", "measured", "tool", tool, "when", topology_links_now (),
                      "status", "complete");
}

json_t *topology_links_doc_node (json_t *doc, const char *name, int gpus,
                                 const char *gpu_type)
{
    json_t *node =
        json_pack ("{s:s, s:i, s:s?}", "name", name, "gpus", gpus, "gpu_type", gpu_type);

    if (json_array_append_new (json_object_get (doc, "nodes"), node) != 0)
        return NULL;
    return node;
}

const json_t *topology_measured_end (const json_t *measured, const json_t *pair,
                                     const char *side)
{
    return json_array_get (json_object_get (measured, "endpoints"),
                           (size_t) json_member_int (pair, side));
}

void topology_links_name (const char *text, char *out)
{
    int n = 0;

    for (const char *s = text; *s && n < TOPOLOGY_NAME_MAX; s++, n++)
        out[n] = isalnum ((unsigned char) *s) || (n > 0 && strchr ("._-", *s)) ? *s : '-';
    if (n == 0)
        out[n++] = 'n';
    if (!isalnum ((unsigned char) out[0]))
        out[0] = 'n';
    out[n] = '\0';
}

json_t *topology_intra_short (json_t *list)
{
    json_t *first = json_array_get (list, 0);

    for (size_t i = 1; i < json_array_size (list); i++)
        if (!json_equal (json_array_get (list, i), first))
            return list;
    json_incref (first);
    json_decref (list);
    return first;
}

json_t *topology_links_number (double x)
{
    char s[32];

    if (!isfinite (x))
        return json_null ();
    snprintf (s, sizeof s, "%.7g", x);
    return json_real (strtod (s, NULL));
}

json_t *topology_links_spread (const struct stats_spread *s, double unit)
{
    return json_pack ("{s:i, s:o, s:o, s:o, s:o, s:o}", "samples", s->n, "median",
                      topology_links_number (s->median / unit), "mad",
                      topology_links_number (s->mad / unit), "low",
                      topology_links_number (s->low / unit), "high",
                      topology_links_number (s->high / unit), "confidence",
                      topology_links_number (s->confidence));
}

json_t *topology_links_matrix (const double *v, int n, double unit)
{
    json_t *rows = json_array ();

    for (int i = 0; i < n && rows; i++) {
        json_t *row = json_array ();

        for (int j = 0; j < n; j++)
            json_array_append_new (
                row, i == j ? json_null ()
                            : topology_links_number (
                                  v[(size_t) i * (size_t) n + (size_t) j] / unit));
        if (json_array_append_new (rows, row) != 0) {
            json_decref (rows);
            return NULL;
        }
    }
    return rows;
}
