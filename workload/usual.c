/* The job that a model is usually trained with, where nobody says: presets' as published, others'
 * by a rule of thumb. */
#include "workload/workload.h"

#include <string.h>

#define USUAL_SEQ 4096
#define USUAL_TOKENS (4L << 20) /* of a step */

/* Pre-training's main part.  GPT-2: its report; GPT-3: Brown et al. 2020, Table 2.1 (tokens, over
 * 2048); Llama 2 and 3: Touvron et al. 2023, Dubey et al. 2024 (16 million tokens); DeepSeek-V2 and
 * V3: their reports, after the ramp; GPT-NeoX: Black et al. 2022 (1538, here what divides); BLOOM,
 * Falcon: their model cards. */
static const struct {
    const char *name; /* or its beginning */
    int seq, batch;   /* 0: by the rule */
} usual[] = {{"gpt2-xl", 1024, 512},       {"gpt3-175b", 2048, 1536},
             {"gpt3-", 2048, 1024},        {"llama-2-", 4096, 1024},
             {"llama-3-405b", 8192, 2048}, {"llama-3", 8192, 0},
             {"deepseek-v2", 4096, 9216},  {"deepseek-v3", 4096, 15360},
             {"gpt-neox-20b", 2048, 1536}, {"bloom-176b", 2048, 2048},
             {"falcon-40b", 2048, 1152}};
#define N_USUAL (sizeof usual / sizeof *usual)

static int least_of (int a, int b)
{
    return b > 0 && b < a ? b : a;
}

void workload_job_usual (const struct workload_model *m, struct workload_job *j,
                         struct notes *notes)
{
    size_t i = 0;
    int seq = USUAL_SEQ, batch = 1;

    while (i < N_USUAL && strncmp (m->name, usual[i].name, strlen (usual[i].name)) != 0)
        i++;
    if (i < N_USUAL)
        seq = usual[i].seq;
    seq = least_of (least_of (seq, m->positions), m->context);
    if (j->seq == 0) {
        j->seq = seq;
        notes_add (notes, "no --seq: %d tokens, as %s is usually trained", seq, m->name);
    }
    if (j->global_batch != 0)
        return;
    while (2L * batch * j->seq <= USUAL_TOKENS)
        batch *= 2;
    if (i < N_USUAL && usual[i].batch > 0 && usual[i].seq == j->seq)
        batch = usual[i].batch;
    j->global_batch = batch;
    notes_add (notes, "no --global-batch: %d sequences, %.1f million tokens a step",
               batch, (double) batch * j->seq / 1e6);
}
