/* What Megatron's programs print: the ranks, a line for every few iterations, memory and timers
 * (megatron/training/training.py, megatron/core/timers.py). */
#include "jobs/jobs_private.h"

#include <stdlib.h>
#include <string.h>

static bool take_world (struct jobs_reading *r, struct jobs_run *run, const char *line)
{
    static const struct {
        const char *phrase, *key;
    } sizes[] = {{"world size", "world-size"},
                 {" tensor-model-parallel size", "tensor-model-parallel-size"},
                 {" pipeline-model-parallel size", "pipeline-model-parallel-size"},
                 {" context-parallel size", "context-parallel-size"}};

    if (!strstr (line, "using world size"))
        return false;
    run = jobs_starting (r, run);
    for (size_t i = 0; i < COUNT_OF (sizes) && run; i++)
        jobs_printed_after (r, line, sizes[i].phrase, sizes[i].key);
    return true;
}

static const char *const timers[JOBS_TIMERS] = {[JOBS_TIMER_PASSES] = "forward-backward",
                                                [JOBS_TIMER_GRADIENTS] = "all-grads-sync",
                                                [JOBS_TIMER_OPTIMIZER] = "optimizer"};

/* "    optimizer ......: (20.05, 21.11)", the least and the most of all ranks, or the most alone.
 */
static bool take_timer (struct jobs_reading *r, struct jobs_run *run, const char *line)
{
    const char *dots = strstr (line, " ..."), *value, *name;
    bool known = false;
    size_t n;
    char *end;
    double ms;

    if (!dots || (value = dots + 1 + strspn (dots + 1, "."))[0] != ':')
        return false;
    for (name = dots; name > line && name[-1] != ' '; name--)
        ;
    n = (size_t) (dots - name);
    value += strcspn (value, "(0123456789");
    if (*value == '(')
        value += strcspn (value, ",") + (strchr (value, ',') != NULL);
    ms = strtod (value, &end);
    for (int k = 0; k < JOBS_TIMERS && end != value; k++) {
        if (n != strlen (timers[k]) || strncmp (name, timers[k], n) != 0)
            continue;
        known = true;
        jobs_sample (r, &run->timer_s[k], ms / 1e3);
    }
    return known;
}

bool jobs_megatron_log (struct jobs_reading *r, struct jobs_run *run, const char *line)
{
    double ms;

    if (strstr (line, "memory (MB) |") || strstr (line, "| max allocated:")) {
        jobs_peak (line, "max reserved", 1048576.0, &run->reserved_bytes);
        jobs_peak (line, "max allocated", 1048576.0, &run->allocated_bytes);
        return true;
    }
    if (take_world (r, run, line) || take_timer (r, run, line))
        return true;
    if (strstr (line, "padded vocab (size:")) {
        jobs_printed_after (r, line, "padded vocab (size:", "vocab-size");
        return true;
    }
    if (!jobs_after (line, "elapsed time per iteration (ms)", &ms))
        return false;
    if (!(run = jobs_iteration (r, run, line, "iteration ")))
        return true;
    jobs_sample (r, &run->steps_s, ms / 1e3);
    if (!jobs_after (line, "throughput per GPU (TFLOP/s/GPU)", &run->tflops))
        jobs_after (line, "| TFLOPs", &run->tflops);
    jobs_printed_after (r, line, "global batch size", "global-batch-size");
    return true;
}
