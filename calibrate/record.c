/* The accuracy on record: calibrate/record.json, as `make record` writes it, built in as text. */
#include "calibrate/calibrate_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static bool is (const json_t *record, const char *key, const char *value, size_t len)
{
    const char *found = json_member_text (record, key);

    return found && strlen (found) == len && strncmp (found, value, len) == 0;
}

/* What several records have together: how many steps and peaks, the names of `key`, and between
 * which errors the steps' means are. */
static json_t *together (const json_t *records, const char *key)
{
    json_t *names = json_array (), *one;
    double least = NAN, most = NAN;
    json_int_t steps = 0, peaks = 0;
    const char *last = "";
    size_t k;

    json_array_foreach (records, k, one)
    {
        double mape = json_number_value (json_object_get (one, "step_mape"));
        json_int_t n = json_integer_value (json_object_get (one, "steps"));

        steps += n;
        peaks += json_integer_value (json_object_get (one, "peaks"));
        least = n > 0 ? fmin (least, mape) : least;
        most = n > 0 ? fmax (most, mape) : most;
        if (strcmp (last, json_member_text (one, key)) != 0) /* they are in order */
            json_array_append (names, json_object_get (one, key));
        last = json_member_text (one, key);
    }
    return json_pack ("{s:I, s:I, s:o, s:o, s:o}", "steps", steps, "peaks", peaks,
                      "step_mape_least", json_number_or_null (least), "step_mape_most",
                      json_number_or_null (most), "names", names);
}

json_t *calibrate_record (const struct workload_profile *p, const char *gpu)
{
    const struct text_shipped *s = calibrate_shipped_record;
    size_t letters = strcspn (p->from, "@"), k;
    json_t *here = json_array (), *gpus = json_array (), *profiles = json_array ();
    json_t *doc = NULL, *out = NULL, *one;

    if (json_parse (s->name, s->text, strlen (s->text), &doc, NULL) == ST_OK) {
        json_array_foreach (json_object_get (doc, "records"), k, one)
        {
            bool own = is (one, "profile", p->from, letters),
                 on = is (one, "gpu", gpu, strlen (gpu));

            if (own || on)
                json_array_append (own && on ? here : own ? gpus : profiles, one);
        }
        out = json_pack ("{s:O, s:o, s:o}", "here", here, "other_gpus",
                         together (gpus, "gpu"), "other_profiles",
                         together (profiles, "profile"));
    }
    JSON_DECREF_ALL (doc, here, gpus, profiles);
    return out;
}

/* How far a GPU's share of its peak may be off before anybody ran on it: the joint fit's prior of a
 * generation with few runs (bench/joint.c). */
#define SPREAD_TYPE 0.12

/* Letters of a type's name of n letters before its memory ("a100-sxm4" of a100-sxm4-80g). */
static size_t without_memory (const char *name, size_t n)
{
    size_t end = n > 0 && name[n - 1] == 'g' ? n - 1 : 0;

    while (end > 0 && isdigit ((unsigned char) name[end - 1]))
        end--;
    return end > 1 && end < n - 1 && name[end - 1] == '-' ? end - 1 : n;
}

/* Is there a record with steps on this type, or on the same GPU with other memory?  `make record`
 * writes one record a line: every estimate asks, and to parse them all takes longer than the rest
 * of it. */
static bool has_steps (const char *gpu)
{
    static const char before_gpu[] = "\"gpu\": \"", before_steps[] = "\"steps\": ";
    const char *at = calibrate_shipped_record->text, *steps;
    size_t letters = without_memory (gpu, strlen (gpu));

    while ((at = strstr (at, before_gpu))) {
        at += strlen (before_gpu);
        steps = strstr (at, before_steps);
        if (without_memory (at, strcspn (at, "\"")) == letters &&
            strncmp (at, gpu, letters) == 0 && steps &&
            atoi (steps + strlen (before_steps)) > 0)
            return true;
    }
    return false;
}

double calibrate_type_spread (const struct topology_gpu_type *t)
{
    return t->measured || has_steps (t->like ? t->like->name : t->name) ? 0.0
                                                                        : SPREAD_TYPE;
}

void calibrate_step_types_add (struct calibrate_step_types *t,
                               const struct workload_profile *p,
                               const struct workload_model *m,
                               const struct topology_gpu_type *type)
{
    for (int i = 0; i < t->n && i < CALIBRATE_STEP_TYPES; i++)
        if (t->type[i] == type)
            return;
    if (t->n < CALIBRATE_STEP_TYPES)
        t->type[t->n] = type;
    t->n++;
    if (workload_is_fitted (p, m, type->name))
        return;
    t->unfitted = true;
    t->most = fmax (t->most, calibrate_type_spread (type));
}

double calibrate_step_spread (const struct calibrate_step_types *t,
                              const struct workload_profile *p,
                              const struct workload_model *m)
{
    return hypot (workload_step_spread (p, m, !t->unfitted, t->n > 1), t->most);
}
