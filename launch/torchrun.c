/* torchrun: agents under the static rendezvous.
 *
 * An agent's ranks are consecutive, and begin where those of the agents before it end: there is
 * one for every run of ranks on one node, of any length.  The c10d rendezvous would sort hosts by
 * name instead. */
#include "launch/launch_private.h"

static enum status write_torchrun (const struct launch_input *in, struct launch_files *f,
                                   struct text *readme, struct error *err)
{
    const struct workload_plan *p = in->plan;
    struct text *agents = launch_file (f, "torchrun/agents.txt", 0644);

    (void) err;
    for (int r = 0, agent = 0, ranks; r < p->n_ranks; r += ranks, agent++) {
        for (ranks = 1; r + ranks < p->n_ranks; ranks++)
            if (launch_node_of (in, r + ranks) != launch_node_of (in, r))
                break;
        text_add (agents, "%s %d %d\n", p->place[r].node, agent, ranks);
    }
    launch_script (f, "torchrun/node.sh", "torchrun-node.sh");
    launch_script (f, "node-lib.sh", "node-lib.sh");
    launch_script (f, "each-node.sh", "each-node.sh");
    text_add (readme,
              "torchrun with the static rendezvous, %s (torchrun/agents.txt:\n`host "
              "node_rank nproc`).  On every host at once:\n\n"
              "    torchrun/node.sh PROGRAM\n"
              "\nor from one place, over ssh:\n\n"
              "    ./each-node.sh torchrun/node.sh PROGRAM\n"
              "\nPROGRAM is an executable, as in `torchrun/node.sh python3 train.py`.  "
              "LINKWISE_TORCHRUN\nis the command (default torchrun), where it needs "
              "options of its own.\n",
              launch_by_node (in) ? "one agent per host"
                                  : "an agent for every run\nof ranks on one host");
    return ST_OK;
}

const struct launcher launch_torchrun = {
    .target = {"torchrun", "torchrun agents under the static rendezvous"},
    .readme = "torchrun/README",
    .paths = {"torchrun/agents.txt", "torchrun/node.sh"},
    .write = write_torchrun,
};
