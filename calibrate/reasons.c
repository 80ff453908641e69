/* Why rows are left out. */
#include "calibrate/calibrate_private.h"

#include <string.h>

const char *calibrate_refuse (const struct row *r, const char *column,
                              const char *expected)
{
    snprintf (r->why, CALIBRATE_REASON, "%s \"%.40s\": expected %s", column,
              calibrate_cell (r, column), expected);
    text_clean_line (r->why);
    return r->why;
}

void calibrate_count_reason (struct calibrate_reason *list, int *n, const char *why,
                             int row)
{
    char reason[sizeof list->reason];
    int i = 0;

    snprintf (reason, sizeof reason, "%s", why);
    while (i < *n && strcmp (list[i].reason, reason) != 0)
        i++;
    if (i == CALIBRATE_REASONS_MAX)
        i--; /* the last stands for all others */
    if (i == *n) {
        list[i] = (struct calibrate_reason){.first_row = row};
        memcpy (list[i].reason, reason, sizeof reason);
        ++*n;
    }
    list[i].count++;
}
