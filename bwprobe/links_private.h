/* Shared by the files that write the links file: links.c and links_matrix.c. */
#ifndef BWPROBE_LINKS_PRIVATE_H
#define BWPROBE_LINKS_PRIVATE_H

#include "bwprobe/coordinator_private.h"

struct links_writer {
    struct coordinator *c;
    struct estimate_tier *tier;
    bool estimates; /* among the links that were written last */
    json_t *doc;
    struct error *err;
};

/** "DIR/NAME-what", where the links file is DIR/NAME.json.
 *  @param[out] base  the name in its folder, a part of the result
 *  @return to be freed; NULL: out of memory */
char *links_beside (const struct links_writer *w, const char *what, const char **base);

/** Add the matrices to the document's `links`.  @return ST_OK, ST_IO or ST_NOMEM */
enum status links_add (struct links_writer *w);

#endif
