/* How much of the time a job makes progress, when GPUs fail: checkpoints, restarts, and waiting
 * for repair where no spare node is left. */
#ifndef MAPPER_GOODPUT_H
#define MAPPER_GOODPUT_H

/** What fails and what it costs, in seconds; all above 0. */
struct mapper_reliability {
    /* from one failure to the next, of one GPU with its share of the host, network and power; a
     * job of n GPUs fails n times as often */
    double gpu_mtbf_s;
    double checkpoint_s; /* that the job stands still to write one */
    double restart_s; /* from a failure to training again: found, started, read, warm */
    double repair_s;  /* until the node that failed can be used again */
};

/** Llama 3's 419 unexpected interruptions in 54 days on 16,384 H100 (arXiv 2407.21783, section
 *  3.3.4) are 50,700 hours of a GPU; 15 minutes to be back are
 *  MegaScale's (NSDI 2024, section 6.3).  A minute of writing and a day of repair are
 *  assumptions. */
#define MAPPER_RELIABILITY_USUAL \
    ((struct mapper_reliability){50700.0 * 3600, 60, 15 * 60, 24 * 3600})

struct mapper_goodput {
    double mtbf_s;             /* of the job */
    double checkpoint_every_s; /* the best time between checkpoints */
    double saved;   /* share of the running time that is kept training: not writing, not
                                  lost at a failure, not restarting */
    int spares;     /* nodes that can take a failed one's place */
    double waiting; /* share of the time that more nodes are in repair than spares */
    double share;   /* saved x (1 - waiting): training over all of the time; steps are
                       divided by it, so it is MAPPER_GOODPUT_LEAST or more */
};
#define MAPPER_GOODPUT_LEAST 1e-12

/** Goodput of a job of `gpus` GPUs with `spares` idle nodes.
 *
 *  Checkpoints come as often as is best, and cost what they cost, by Daly (A higher order
 *  estimate of the optimum checkpoint interval for restart dumps, FGCS 22, 2006; equations 20
 *  and 37), with M = mtbf_s, d = checkpoint_s, R = restart_s:
 *
 *      t = sqrt (2 d M) (1 + sqrt (d / 2M) / 3 + (d / 2M) / 9) - d, M where d >= 2 M
 *      saved = t / (M e^(R/M) (e^((t + d)/M) - 1))
 *
 *  Every failure takes a node to repair.  With s spares the job waits when s + 1 are there, and
 *  nothing fails meanwhile: that share of time is Erlang's loss formula of s + 1 servers at a
 *  load of repair_s / M.
 *
 *  @param gpus  1 or more  @param spares  0 or more
 */
struct mapper_goodput mapper_goodput (const struct mapper_reliability *r, double gpus,
                                      int spares);

#endif
