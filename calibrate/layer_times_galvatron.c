/* Galvatron's computation profile (PKU-DAIR/Hetu-Galvatron, core/profiler): a JSON object
 * whose layertype_0_bszB_seqS is the forward time of one layer in ms over B, the difference
 * of runs with more and fewer layers on one GPU. */
#include "calibrate/layer_times_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

static bool is_galvatron (const char *text)
{
    return text[strspn (text, " \t\r\n")] == '{' && strstr (text, "\"layertype_");
}

static enum status read_galvatron (const char *path, const char *text,
                                   struct calibrate_layer_times *out, struct error *err)
{
    json_t *doc = NULL, *value;
    enum status st = json_parse (path, text, strlen (text), &doc, err);
    struct json_at root = json_root (doc, path);
    const char *key;

    THEN (st, json_want_object (&root, err));
    json_object_foreach (doc, key, value)
    {
        struct json_at at = json_key (&root, key);
        struct calibrate_layer_time one = {.tp = 1, .layers = 1, .back_s = NAN};
        int length = 0, kind;
        double ms;

        if (sscanf (key, "layertype_0_bsz%d_seq%d%n", &one.micro_batch, &one.seq,
                    &length) != 2 ||
            key[length]) {
            out->others += sscanf (key, "layertype_%d_", &kind) == 1;
            continue;
        }
        if (st == ST_OK && (one.micro_batch < 1 || one.seq < 1))
            st = json_fail_text (&at, err, "no batch and sequence above 0");
        THEN (st, json_want_number (&at, 0, false, 1e9, &ms, err));
        if (st != ST_OK)
            break;
        one.fwd_s = ms * 1e-3 * one.micro_batch;
        snprintf (one.place, sizeof one.place, "%.63s", key);
        st = layer_times_add (out, &one, err);
    }
    json_decref (doc);
    return st;
}

const struct layer_times_format layer_times_galvatron = {"galvatron", is_galvatron,
                                                         read_galvatron};
