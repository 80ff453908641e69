/* Small XML documents as a tree, read by expat.
 *
 * Meant for machine descriptions from anywhere: nothing outside the document is ever
 * fetched, and a document that declares entities (the means of "billion laughs" and of
 * reading foreign files) is refused, whatever it would do with them.
 */
#ifndef BASE_XML_H
#define BASE_XML_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

#define XML_DEPTH_MAX 256
#define XML_ELEMENTS_MAX 1000000

/** An element.  All of it belongs to the document. */
struct xml {
    char *name;
    char **attr;      /* name, value, name, value, ..., NULL */
    struct text text; /* character data directly inside */
    int line;
    struct xml *up, *first, *next; /* parent, first child, next sibling */
};

/** Parse a document.
 *
 *  @param[in]  name  for messages
 *  @param[out] root  its outermost element; xml_free it
 *  @return ST_OK; ST_NOMEM; ST_INVALID with the line for what is not well-formed,
 *          declares or uses entities of its own, is deeper than XML_DEPTH_MAX or has more
 *          than XML_ELEMENTS_MAX elements
 */
enum status xml_parse (const char *name, const char *data, size_t len, struct xml **root,
                       struct error *err);

/** Safe on NULL. */
void xml_free (struct xml *root);

/** An attribute's value, or NULL. */
const char *xml_attr (const struct xml *x, const char *key);

/** The innermost element around both, not one of them itself; NULL when one is the root. */
const struct xml *xml_common (const struct xml *a, const struct xml *b);

/** The element after x in document order inside top, or NULL: for loops over a whole tree
 *  without recursion, starting at top itself. */
const struct xml *xml_next (const struct xml *x, const struct xml *top);

#endif
