/* A line a link, for spreadsheets and scripts. */
#include "base/units.h"
#include "topology/export/export_private.h"

static void add (struct text *t, double x)
{
    if (x > 0)
        text_add (t, ",%.7g", x);
    else
        text_add (t, ",");
}

static void line (void *context, const struct topology_visited *v)
{
    const struct exporting *x = context;
    char from[TOPOLOGY_END_TEXT], to[TOPOLOGY_END_TEXT];
    bool total = x->c->has_pair_totals && v->from.node != v->to.node;

    text_add (x->file, "%s,%s,%.0f", topology_end_text (x->c, v->from, from),
              topology_end_text (x->c, v->to, to), v->alike);
    add (x->file, v->link.measured ? v->link.bytes_per_s / UNITS_GB : 0);
    add (x->file, v->link.measured ? v->link.latency_s / UNITS_US : 0);
    text_add (x->file, ",%s", export_known (x->c, v));
    /* An unmeasured total is NaN, which is not above 0. */
    add (x->file,
         total ? topology_matrix_at (&x->c->pair_bytes_per_s, v->from.node, v->to.node) /
                     UNITS_GB
               : 0);
    text_add (x->file, "\n");
}

static enum status write (struct exporting *x, struct error *err)
{
    (void) err;
    text_add (x->file, "from,to,links,bandwidth_gb_per_s,latency_us,known,"
                       "node_pair_gb_per_s\n");
    export_visit (x, line, x);
    return ST_OK;
}

const struct export_format export_csv = {
    .format = {"csv", "a line a link: rate, latency, how it is known"}, .write = write};
