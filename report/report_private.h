/* Shared by the files of report/ alone. */
#ifndef REPORT_REPORT_PRIVATE_H
#define REPORT_REPORT_PRIVATE_H

#include "base/json.h"
#include "report/report.h"

/** The parts of the page, by their files in report/page/. */
extern const struct text_shipped report_shipped_page[];

/** Append x in as few base-64 digits (A-Z a-z 0-9 + /) as it needs: five bits each, the lowest
 *  first, and 32 where another one follows. */
void report_add_varint (struct text *t, unsigned x);

/** Rates as an object: a list `gb_per_s`, or in `code` as many base-64 digits of each, on a
 *  logarithmic scale from `low_gb_per_s`, 1, to `high_gb_per_s`; 0 is unmeasured.
 *  @param[in] gb_per_s  [n] NaN: unmeasured
 *  @param[in] digits    1 or 2; 0: the list */
json_t *report_rates (const double *gb_per_s, size_t n, int digits);

/** A rate in GB/s with four digits; null where it is not above 0, which is unmeasured. */
json_t *report_rate (double bytes_per_s);

/** The schedule of the plan's binding replica, for the page's time line. */
enum status report_schedule (const struct costmodel_problem *p, const int *gpu,
                             const struct costmodel_estimate *e, json_t **out,
                             struct error *err);

#endif
