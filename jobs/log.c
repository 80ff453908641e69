/* Logs: lines by who prints them, and what many print alike. */
#include "jobs/jobs_private.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"

static const struct jobs_dialect *const dialects[] = {
    &jobs_nemo, &jobs_torchtitan, &jobs_nanotron, &jobs_deepspeed, &jobs_megatron};

/* Escape sequences of coloured lines go, in place. */
static void plain (char *line)
{
    char *to = line;

    for (char *s = line; *s;) {
        if (*s == '\033' && s[1] == '[') {
            s += 2;
            s += strspn (s, "0123456789;?");
            s += *s != '\0';
        } else
            *to++ = *s++;
    }
    *to = '\0';
}

/* "  tensor_model_parallel_size ........ 8", as argparse's namespaces are printed. */
static enum status take_dotted (struct jobs_reading *r, char *line)
{
    char *dots = strstr (line, " ...."), *key, *value, *end;

    if (!dots)
        return ST_OK;
    for (key = dots; key > line && !isspace ((unsigned char) key[-1]); key--)
        ;
    value = dots + 1 + strspn (dots + 1, ".");
    value += strspn (value, " \t");
    end = value + strlen (value);
    while (end > value && isspace ((unsigned char) end[-1]))
        *--end = '\0';
    *dots = '\0';
    if (key == dots || !*value || *value == ':' || strcmp (value, "None") == 0 ||
        !(isalpha ((unsigned char) *key) || *key == '_'))
        return ST_OK;
    return jobs_say (r, r->number, key, value);
}

/* "NVIDIA H100 80GB HBM3" wherever a line names a product. */
static enum status take_product (struct jobs_reading *r, const char *line)
{
    const char *at = strstr (line, "NVIDIA ");
    double gib = 0;
    char name[64], memory[32];
    size_t n = 0;

    if (!at)
        at = strstr (line, "AMD Instinct ");
    if (!at)
        return ST_OK;
    while (n < sizeof name - 1 && at[n] && !strchr (",;(|'\"\t\n\r:", at[n]) &&
           strncmp (at + n, " with ", 6) != 0)
        n++;
    snprintf (name, sizeof name, "%.*s", (int) n, at);
    while (n > 0 && name[n - 1] == ' ')
        name[--n] = '\0';
    jobs_after (at, " with ", &gib);
    if (!topology_gpu_type_of_product (name, gib * 1073741824.0) && gib == 0)
        return ST_OK;
    TRY (jobs_say (r, r->number, "gpu", name));
    snprintf (memory, sizeof memory, "%.0f", gib);
    return gib > 0 ? jobs_say (r, r->number, "gpu_mem_gb", memory) : ST_OK;
}

/* "comm 0x55 rank 3 nRanks 16 nNodes 2 localRanks 8 ...", or "... nranks 16 cudaDev 3 ...": the
 * largest communicator counts.  @return false: it is no line of NCCL's */
static bool take_nccl (struct jobs_run *run, const char *line)
{
    double ranks, nodes = 0;

    if (!strstr (line, "NCCL INFO "))
        return false;
    if ((!jobs_after (line, " nRanks ", &ranks) &&
         !jobs_after (line, " nranks ", &ranks)) ||
        ranks > 1 << 24 || ranks < (double) run->nccl_ranks)
        return true;
    run->nccl_ranks = (long) ranks;
    if (jobs_after (line, " nNodes ", &nodes) && nodes >= 1 && nodes <= ranks)
        run->nccl_nodes = (long) nodes;
    return true;
}

/* One line of a log; the last run is the one that prints. */
static enum status take_line (struct jobs_reading *r, char *line)
{
    struct jobs_run *run = &r->run[r->n_runs - 1];

    plain (line);
    if (strstr (line, " arguments ---------") && !strstr (line, "end of") &&
        !(run = jobs_starting (r, run)))
        return ST_NOMEM;
    if (take_nccl (run, line))
        return ST_OK;
    if (strstr (line, "CUDA out of memory") || strstr (line, "HIP out of memory") ||
        strstr (line, "OutOfMemoryError"))
        run->oom = true;
    for (size_t i = 0; i < COUNT_OF (dialects); i++)
        if (dialects[i]->log (r, run, line)) {
            run = &r->run[r->n_runs - 1];
            /* Megatron's lines are others' too: the first that is sure stays. */
            if (!run->dialect || run->dialect == &jobs_megatron)
                run->dialect = dialects[i];
            return ST_OK;
        }
    TRY (take_product (r, line));
    return take_dotted (r, line);
}

enum status jobs_log_read (struct jobs_reading *r, char *text, bool *known)
{
    int first = r->n_runs, said = r->n_said;
    char *line = text, *end;

    r->number = 1;
    if (!jobs_begin_run (r, NULL))
        return ST_NOMEM;
    for (; *line; line = end) {
        bool ends;

        end = line + strcspn (line, "\r\n"); /* progress bars go back by '\r' */
        ends = *end == '\n';
        if (!*end && line > text)
            break; /* cut while it was written: its numbers may lack digits */
        if (*end)
            *end++ = '\0';
        TRY (take_line (r, line));
        TRY (r->st);
        r->number += ends;
    }
    *known = r->n_said > said;
    for (int i = first; i < r->n_runs; i++)
        *known = *known || r->run[i].dialect || r->run[i].oom || r->run[i].nccl_ranks > 0;
    return ST_OK;
}
