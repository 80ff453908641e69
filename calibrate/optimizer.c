/* A row's optimizer, and what it keeps. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Optimizers by their names' letters and digits; the first one's moments are as its framework has
 * them. */
static const struct optimizer {
    const char *names;
    struct calibrate_moments moments;
} optimizers[] = {
    {"adam adamw adamtorch adamwtorch adamwtorchfused adamtorchfused torchadam "
     "torchadamw "
     "adamwtorchxla adamwtorchnpufused adamwhf adamwapexfused adamwanyprecision "
     "fusedadam "
     "fusedadamw adamfused adamwfused foreachadamw apexfusedadam tefusedadam cpuadam "
     "deepspeedcpuadam distributedadam distributedfusedadam distadam pagedadamw "
     "distributedoptimizer decoupledadamw zerofusedadam",
     {NAN, NAN}},
    {"pagedadamw32bit adamw32bit adamwbnb32bit", {8, 8}},
    {"adam8bit adamw8bit 8bitadam 8bitadamw adamwbnb8bit bnbadamw8bit pagedadam8bit "
     "pagedadamw8bit paged8bitadam paged8bitadamw",
     {2, 2}},
    {"adafactor", {0, 0}},
    {"lion8bit 8bitlion pagedlion8bit", {1, 1}},
    {"lion lion32bit pagedlion pagedlion32bit", {2, 4}},
    {"sgdmomentum sgdm sgdwithmomentum momentum", {2, 4}},
    {"sgd", {0, 0}}};

static const struct optimizer *optimizer_of (const char *name)
{
    char joined[CALIBRATE_JOINED];

    calibrate_join (name, joined);
    for (size_t i = 0; i < COUNT_OF (optimizers); i++)
        if (text_has_word (optimizers[i].names, joined))
            return &optimizers[i];
    return NULL;
}

/* All of a cell, or the first name in it: "AdamW (8-bit)", "AdamW, momentum 0.9". */
static const struct optimizer *optimizer_in (const char *cell)
{
    const struct optimizer *o = optimizer_of (cell);
    char first[CALIBRATE_ITEM];

    snprintf (first, sizeof first, "%.*s", (int) strcspn (cell, "(,;+"), cell);
    if (!o && (o = optimizer_of (first)) && strcmp (o->names, "sgd") == 0 &&
        calibrate_says (cell, "momentum") == SAID_YES)
        o = optimizer_of ("momentum");
    return o;
}

#define PAGED_WEIGHT 2.0  /* bytes a parameter on the GPU where all else is paged ... */
#define PAGED_MOMENTS 2.0 /* ... and of that */

/* "16 B/parameter" among the notes, or moments paged out beside weights alone, since a layer's
 * gradients go as soon as it has stepped. */
static void read_state_bytes (const struct row *r, struct calibrate_run *run)
{
    const char *notes = calibrate_cell (r, "notes"), *at = strstr (notes, " B/parameter");
    double bytes;

    if (!at && calibrate_contains (notes, "paged 8-bit") &&
        calibrate_contains (notes, "fused in backward")) {
        run->state_bytes = PAGED_WEIGHT;
        run->job.paged_bytes = PAGED_MOMENTS;
    }
    while (at && at > notes && (isdigit ((unsigned char) at[-1]) || at[-1] == '.'))
        at--;
    bytes = at ? strtod (at, NULL) : 0.0;
    if (bytes >= 2.0 && bytes <= 64.0)
        run->state_bytes = bytes;
}

const char *calibrate_read_optimizer (const struct row *r, struct calibrate_run *run)
{
    const char *notes = calibrate_cell (r, "notes");
    const struct optimizer *o = NULL;
    char said[CALIBRATE_ITEM];
    bool wide = run->job.precision == PREC_FP32 || run->job.precision == PREC_TF32;

    read_state_bytes (r, run);
    snprintf (said, sizeof said, "%s", calibrate_cell (r, "optimizer"));
    if (said[0] || calibrate_note (r, "optimizer", said, sizeof said) ||
        calibrate_note (r, "optim", said, sizeof said)) {
        if (!(o = optimizer_in (said)) && run->state_bytes <= 0.0)
            return calibrate_cell (r, "optimizer")[0] != '\0'
                       ? calibrate_refuse (r, "optimizer",
                                           "AdamW, 8-bit AdamW, Adafactor, Lion or SGD")
                       : "the optimizer among the notes is not known";
    }
    while (!o && calibrate_next_item (&notes, said))
        o = optimizer_of (said);
    if (!o || isnan (o->moments.narrow))
        return NULL;
    run->moments = &o->moments;
    return wide && !run->job.lora && o->moments.wide < 8
               ? "in fp32 optimizers other than AdamW are not supported"
               : NULL;
}
