/* One process per rank with the variables of env:// (RANK, WORLD_SIZE, MASTER_ADDR, ...):
 * a script that starts a host's ranks, and one that runs a script on every host. */
#include "launch/launch_private.h"

static enum status write_env (const struct launch_input *in, struct launch_files *f,
                              struct text *readme, struct error *err)
{
    (void) in;
    (void) err;
    launch_script (f, "env/node.sh", "env-node.sh");
    launch_script (f, "node-lib.sh", "node-lib.sh");
    launch_script (f, "each-node.sh", "each-node.sh");
    text_add (readme, "One process per rank, for env:// (RANK, WORLD_SIZE, LOCAL_RANK, "
                      "MASTER_ADDR,\nMASTER_PORT).  On every host at once:\n\n"
                      "    env/node.sh PROGRAM\n"
                      "\nor from one place, over ssh:\n\n"
                      "    ./each-node.sh env/node.sh PROGRAM\n");
    return ST_OK;
}

const struct launcher launch_env = {
    .target = {"env", "one process per rank, for env://"},
    .readme = "env/README",
    .paths = {"env/node.sh"},
    .write = write_env,
};
