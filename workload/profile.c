/* Framework profiles: shipped ones are linked into the library from
 * workload/profiles/<name>.json, others are read from files of the same form. */
#include "workload/workload.h"

#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "workload/workload_private.h"

struct constant {
    const char *key;
    size_t offset;
    double unit, max;
};

#define MEMORY(KEY, FIELD, UNIT, MAX)                                    \
    {                                                                    \
        KEY, offsetof (struct workload_profile, memory.FIELD), UNIT, MAX \
    }
#define TIME(KEY, FIELD, UNIT, MAX)                                    \
    {                                                                  \
        KEY, offsetof (struct workload_profile, time.FIELD), UNIT, MAX \
    }

static const struct constant memory_constants[] = {
    MEMORY ("gradient_bytes", gradient_bytes, 1, 16),
    MEMORY ("optimizer_bytes", optimizer_bytes, 1, 64),
    MEMORY ("norm_bytes", norm_bytes, 1, 256),
    MEMORY ("gated_mlp_bytes", gated_mlp_bytes, 1, 256),
    MEMORY ("plain_mlp_bytes", plain_mlp_bytes, 1, 256),
    MEMORY ("dropout_bytes", dropout_bytes, 1, 64),
    MEMORY ("score_bytes", score_bytes, 1, 256),
    MEMORY ("logit_bytes", logit_bytes, 1, 256),
    MEMORY ("recompute_workspace", recompute_workspace, 1, 16),
    MEMORY ("base_gb", base_bytes, UNITS_GB, 64),
    MEMORY ("group_gb", group_bytes, UNITS_GB, 64),
    MEMORY ("fragmentation", fragmentation, 1, 4),
};

static const struct constant time_constants[] = {
    TIME ("gemm", gemm, 1, 4),
    TIME ("attention", attention, 1, 1),
    TIME ("attention_back", attention_back, 1, 1),
    TIME ("memory_bandwidth", memory_bandwidth, 1, 1),
    TIME ("layer_launch_fwd_us", layer_launch_fwd_s, UNITS_US, 1e6),
    TIME ("layer_launch_back_us", layer_launch_back_s, UNITS_US, 1e6),
    TIME ("link", link, 1, 4),
    TIME ("collective_us", collective_s, UNITS_US, 1e6),
    TIME ("microbatch_us", microbatch_s, UNITS_US, 1e6),
};

/* Rates and efficiencies must be above 0, all else may be 0. */
static bool zero_ok (const char *key)
{
    static const char *const rates[] = {"gemm",           "attention",
                                        "attention_back", "memory_bandwidth",
                                        "link",           "fragmentation"};

    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (strcmp (rates[i], key) == 0)
            return false;
    return true;
}

static enum status read_constants (const struct json_at *at, const struct constant *k,
                                   size_t n, struct workload_profile *p,
                                   struct notes *notes, struct error *err)
{
    const char *known[64] = {0};
    enum status st = json_want_object (at, err);

    for (size_t i = 0; i < n && st == ST_OK; i++) {
        struct json_at one = json_key (at, k[i].key);
        double x;

        known[i] = k[i].key;
        st = json_want_number (&one, 0, zero_ok (k[i].key), k[i].max, &x, err);
        if (st == ST_OK)
            *(double *) (void *) ((char *) p + k[i].offset) = x * k[i].unit;
    }
    if (st == ST_OK)
        json_note_unknown (at, known, notes);
    return st;
}

static enum status read_document (json_t *doc, const char *file,
                                  struct workload_profile *out, struct notes *notes,
                                  struct error *err)
{
    static const char *const known[] = {"version", "name", "source",
                                        "memory",  "time", NULL};
    struct json_at root = json_root (doc, file), version = json_key (&root, "version"),
                   name = json_key (&root, "name"), memory = json_key (&root, "memory"),
                   time = json_key (&root, "time");
    struct workload_profile p = {0};
    const char *s;
    long long v;
    enum status st = json_want_object (&root, err);

    if (st == ST_OK)
        st = json_want_int (&version, 1, 1, &v, err);
    if (st == ST_OK)
        st = json_want_string (&name, &s, err);
    if (st != ST_OK)
        return st;
    snprintf (p.name, sizeof p.name, "%.63s", s);
    snprintf (p.from, sizeof p.from, "%.255s", file);
    st = read_constants (&memory, memory_constants,
                         sizeof memory_constants / sizeof *memory_constants, &p, notes,
                         err);
    if (st == ST_OK)
        st = read_constants (&time, time_constants,
                             sizeof time_constants / sizeof *time_constants, &p, notes,
                             err);
    if (st != ST_OK)
        return st;
    json_note_unknown (&root, known, notes);
    *out = p;
    return ST_OK;
}

enum status workload_profile_read (const char *arg, struct workload_profile *p,
                                   struct notes *notes, struct error *err)
{
    const struct workload_shipped *shipped = workload_shipped_profiles;
    struct error why;
    json_t *doc = NULL;
    enum status st = ST_OK;

    while (shipped->name && strcmp (shipped->name, arg) != 0)
        shipped++;
    if (shipped->name) {
        st = json_parse (shipped->name, shipped->text, strlen (shipped->text), &doc, err);
    } else if ((st = json_read (arg, &doc, &why)) != ST_OK) {
        struct text list = {0};

        for (const struct workload_shipped *k = workload_shipped_profiles; k->name; k++)
            text_add (&list, "%s%s", k == workload_shipped_profiles ? "" : ", ", k->name);
        err_set (err, st, "profile: %s%s%s%s", why.text,
                 st == ST_IO ? " (shipped profiles: " : "",
                 st == ST_IO ? text_str (&list) : "", st == ST_IO ? ")" : "");
        text_free (&list);
    }
    if (st == ST_OK)
        st = read_document (doc, arg, p, notes, err);
    json_decref (doc);
    return st;
}
