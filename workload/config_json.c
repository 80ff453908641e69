/* Degrees and settings of a configuration as members of JSON documents. */
#include "workload/workload.h"

#include "base/json.h"

json_t *workload_degrees_to_json (const struct workload_degrees *d)
{
    return json_pack ("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "tp", d->tp, "pp", d->pp,
                      "dp", d->dp, "cp", d->cp, "ep", d->ep, "etp", d->etp, "vpp",
                      d->vpp);
}

json_t *workload_settings_to_json (const struct workload_config *c)
{
    char recompute[WORKLOAD_RECOMPUTE_TEXT];
    json_t *doc = json_pack ("{s:i, s:i, s:b, s:s, s:s}", "micro_batch", c->micro_batch,
                             "zero", c->zero, "sequence_parallel", c->sequence_parallel,
                             "recompute", workload_recompute_text (c, recompute),
                             "schedule", workload_schedule_name (c->schedule));

    if (doc && c->offload != OFFLOAD_NONE)
        json_object_set_new (doc, "offload",
                             json_string (workload_offload_name (c->offload)));
    if (doc && workload_shard_copies (c) > 1)
        json_object_set_new (doc, "shard", json_integer (c->shard));
    return doc;
}

enum status workload_degrees_from_json (const struct json_at *at,
                                        struct workload_degrees *d, struct error *err)
{
    const struct {
        const char *key;
        int *value;
        bool needed;
    } degree[] = {{"tp", &d->tp, true},   {"pp", &d->pp, true},  {"dp", &d->dp, true},
                  {"cp", &d->cp, false},  {"ep", &d->ep, false}, {"etp", &d->etp, false},
                  {"vpp", &d->vpp, false}};

    *d = (struct workload_degrees){.cp = 1, .ep = 1, .vpp = 1};
    TRY (json_want_object (at, err));
    for (size_t i = 0; i < sizeof degree / sizeof *degree; i++)
        if (degree[i].needed || json_has (at, degree[i].key))
            TRY (json_get_int (at, degree[i].key, 1, WORKLOAD_RANKS_MAX, degree[i].value,
                               err));
    if (!json_has (at, "etp"))
        d->etp = d->tp;
    return ST_OK;
}

enum status workload_settings_from_json (const struct json_at *at,
                                         struct workload_config *c, struct error *err)
{
    struct json_at recompute = json_key (at, "recompute"),
                   offload = json_key (at, "offload"),
                   schedule = json_key (at, "schedule");
    const char *s;

    TRY (json_get_int (at, "micro_batch", 1, 1 << 30, &c->micro_batch, err));
    TRY (json_get_int (at, "zero", 0, 3, &c->zero, err));
    TRY (json_get_bool (at, "sequence_parallel", &c->sequence_parallel, err));
    TRY (json_want_string (&recompute, &s, err));
    if (!workload_recompute_parse (s, c))
        return json_fail (&recompute, err,
                          "none, selective, full, full:K or modules (layernorm,mlp)");
    c->shard = 0;
    if (json_has (at, "shard"))
        TRY (json_get_int (at, "shard", 1, WORKLOAD_RANKS_MAX, &c->shard, err));
    if (json_has (at, "optimizer_bytes"))
        TRY (json_get_int (at, "optimizer_bytes", 1, WORKLOAD_OPTIMIZER_BYTES_MAX,
                           &c->optimizer_bytes, err));
    if (json_has (at, "offload")) {
        TRY (json_want_string (&offload, &s, err));
        if (!workload_offload_parse (s, &c->offload))
            return json_fail (&offload, err, "none, optimizer, all or checkpoints");
    }
    TRY (json_want_string (&schedule, &s, err));
    return workload_schedule_parse (s, &c->schedule)
               ? ST_OK
               : json_fail (&schedule, err, "the name of a schedule");
}
