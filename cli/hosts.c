/* Host lists that options name: on the command line, or in a file. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"

bool cli_hosts_stdin (const char *list)
{
    return list && strcmp (list, "@-") == 0;
}

enum status cli_hosts_read (const struct topology_cluster *c, const char *option,
                            bool empty_ok, const char **list, struct text *kept,
                            struct notes *notes, struct error *err)
{
    const char *file = *list ? *list + 1 : NULL, *name = cli_input_name (file);
    char *text = NULL;
    size_t len;
    enum status st;

    if (!*list || **list != '@')
        return ST_OK;
    TRY (file_read (file, &text, &len, err));
    st =
        topology_hostlist_known (c, name, text + file_mark (text, len), kept, notes, err);
    free (text);
    if (st != ST_OK)
        return st;
    if (kept->len == 0 && !empty_ok)
        return err_set (err, ST_INVALID, "%s: %s names no node of the cluster %s", option,
                        name, c->name);
    *list = kept->len > 0 ? text_str (kept) : NULL;
    return ST_OK;
}
