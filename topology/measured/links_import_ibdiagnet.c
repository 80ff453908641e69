/* ibdiagnet2.db_csv: tables one after another, each between START_NAME and END_NAME, with
 * its columns in the first line.  NODES says whose the GUIDs are, LINKS what is plugged
 * into what, PM_INFO has the counters.
 *
 * A switch port's counters tell of the cable to the host at its other end, and are put
 * there.  Between two switches they tell of no single host's link: they are left out.
 */
#include "topology/measured/links_import_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/memory.h"

enum { COLUMNS_MAX = 256, PORT_TEXT = 80 };

/* One counter of a port, until all tables are there.  The texts lie in the file's. */
struct count {
    const char *guid, *port, *name, *word;
    int line;
};

struct fabric {
    json_t *hosts; /* GUID -> NodeDesc of a host's card */
    json_t *peers; /* "GUID PORT" -> the same of the other end */
    struct count *count;
    int n;
};

enum section { NODES, LINKS, COUNTERS, OTHER };

static enum section section_of (const char *line)
{
    return strcmp (line, "START_NODES") == 0     ? NODES
           : strcmp (line, "START_LINKS") == 0   ? LINKS
           : strcmp (line, "START_PM_INFO") == 0 ? COUNTERS
                                                 : OTHER;
}

/* A table's columns and one of its rows. */
struct row {
    char *column[COLUMNS_MAX], *cell[COLUMNS_MAX];
    int columns, cells;
};

static const char *cell_of (const struct row *r, const char *name)
{
    for (int i = 0; i < r->columns && i < r->cells; i++)
        if (strcasecmp (r->column[i], name) == 0)
            return r->cell[i];
    return NULL;
}

static const char *end_text (const char *guid, const char *port, char buf[PORT_TEXT])
{
    snprintf (buf, PORT_TEXT, "%.40s %.30s", guid, port);
    return buf;
}

static enum status read_node (struct links_table *t, struct fabric *f,
                              const struct row *r)
{
    const char *guid = cell_of (r, "NodeGUID"), *type = cell_of (r, "NodeType"),
               *what = cell_of (r, "NodeDesc");

    if (!guid || !type || !what)
        return links_fail (t, "expected NodeGUID, NodeType and NodeDesc in table NODES");
    if (strcmp (type, "1") == 0)
        json_object_set_new (f->hosts, guid, json_string (what));
    return ST_OK;
}

static enum status read_link (struct links_table *t, struct fabric *f,
                              const struct row *r)
{
    static const char *const key[] = {"NodeGuid1", "PortNum1", "NodeGuid2", "PortNum2"};
    const char *v[4];
    char a[PORT_TEXT], b[PORT_TEXT];

    for (int i = 0; i < 4; i++)
        if (!(v[i] = cell_of (r, key[i])))
            return links_fail (t, "expected %s in table LINKS", key[i]);
    end_text (v[0], v[1], a);
    end_text (v[2], v[3], b);
    json_object_set_new (f->peers, a, json_string (b));
    json_object_set_new (f->peers, b, json_string (a));
    return ST_OK;
}

static enum status read_counts (struct links_table *t, struct fabric *f,
                                const struct row *r)
{
    const char *guid = cell_of (r, "NodeGUID"), *port = cell_of (r, "PortNumber");

    if (!guid || !port)
        return links_fail (t, "expected NodeGUID and PortNumber in table PM_INFO");
    for (int i = 0; i < r->columns && i < r->cells; i++) {
        if (!topology_counter_spelled (r->column[i]))
            continue;
        if (!array_grow (&f->count, f->n, sizeof *f->count))
            return err_nomem (t->err);
        f->count[f->n++] = (struct count){guid, port, r->column[i], r->cell[i], t->line};
    }
    return ST_OK;
}

/* Each port's counters to the host that they tell of. */
static enum status place_counts (struct links_table *t, const struct fabric *f)
{
    int between = 0;

    for (int i = 0; i < f->n; i++) {
        const struct count *c = &f->count[i];
        char own[PORT_TEXT], desc[256], port[256], *word[2];
        const char *what = json_member_text (f->hosts, c->guid), *there = NULL;
        struct links_counter at = {.port = port, .gpu = -1};
        int words;

        t->line = c->line;
        if (!what) {
            there = json_member_text (f->peers, end_text (c->guid, c->port, own));
            snprintf (desc, sizeof desc, "%.*s", there ? (int) strcspn (there, " ") : 0,
                      there ? there : "");
            what = json_member_text (f->hosts, desc);
        }
        if (!what) {
            between++;
            continue;
        }
        snprintf (desc, sizeof desc, "%s", what);
        words = text_words (desc, word, 2);
        if (words == 0)
            return links_fail (t, "%.40s: expected a host's name as NodeDesc", c->guid);
        snprintf (port, sizeof port, "%.80s/%.20s%s", words > 1 ? word[1] : "port",
                  there ? there + strcspn (there, " ") + (*there != '\0') : c->port,
                  there ? " (switch)" : "");
        at.node = word[0];
        TRY (links_table_count (t, &at, c->name, c->word));
    }
    if (between > 0)
        notes_add (t->notes,
                   "%s: %d counters are left out: they are of ports between switches, "
                   "which tell of no single host",
                   t->file, between);
    return ST_OK;
}

static enum status read_tables (struct links_table *t, struct fabric *f)
{
    static enum status (*const reader[]) (struct links_table *, struct fabric *,
                                          const struct row *) = {read_node, read_link,
                                                                 read_counts};
    enum section section = OTHER;
    int begun = 0;
    struct row r = {.columns = 0};

    for (char *line; (line = links_line (t));) {
        if (strncmp (line, "START_", 6) == 0) {
            section = section_of (line);
            begun = t->line;
            r.columns = 0;
        } else if (strncmp (line, "END_", 4) == 0) {
            section = OTHER;
        } else if (section != OTHER && *line && r.columns == 0) {
            r.columns = text_cells (line, ',', LINKS_BLANKS, r.column, COLUMNS_MAX);
        } else if (section != OTHER && *line) {
            r.cells = text_cells (line, ',', LINKS_BLANKS, r.cell, COLUMNS_MAX);
            for (int i = 0; i < r.cells; i++)
                text_clean_line (r.cell[i]);
            TRY (reader[section](t, f, &r));
        }
    }
    if (section == OTHER)
        return ST_OK;
    t->line = begun;
    return links_fail (t, "expected the table's END_ line, found the end "
                          "of the file");
}

static enum status read (struct links_table *t)
{
    struct fabric f = {.hosts = json_object (), .peers = json_object ()};
    enum status st = f.hosts && f.peers ? ST_OK : err_nomem (t->err);

    THEN (st, read_tables (t, &f));
    THEN (st, place_counts (t, &f));
    JSON_DECREF_ALL (f.hosts, f.peers);
    free (f.count);
    return st;
}

const struct links_format links_format_ibdiagnet = {
    .name = "ibdiagnet", .text_has = {"START_PM_INFO", "START_NODES"}, .read = read};
