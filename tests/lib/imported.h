/* Texts of other tools as links files, through a file of the test's own. */
#ifndef TESTS_LIB_IMPORTED_H
#define TESTS_LIB_IMPORTED_H

#include "tests/lib/folder.h"

#include "base/json.h"
#include "topology/measured/links_import.h"

static struct notes notes; /* of the last import */

static inline enum status import_as (const char *format, const char *text, size_t len,
                                     json_t **doc, struct error *err)
{
    write_in_folder ("f", text, len);
    notes_free (&notes);
    return topology_links_import (in_folder ("f"), format, doc, &notes, err);
}

static inline json_t *imported (const char *text, const char *tool)
{
    struct error err = {""};
    json_t *doc = NULL;

    ok (import_as ("auto", text, strlen (text), &doc, &err), &err);
    assert_string_equal (json_member_text (json_object_get (doc, "measured"), "tool"),
                         tool);
    return doc;
}

static inline bool noted (const char *words)
{
    for (int i = 0; i < notes.n; i++)
        if (strstr (notes.line[i], words))
            return true;
    return false;
}

#endif
