/* The cluster file's GPU types: its own, and the built-in ones by name. */
#include "topology/topology_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* What measured a type's constants: an object for each key. */
static enum status read_sources (struct reader *r, const struct json_at *at,
                                 struct topology_gpu_type *t)
{
    struct json_at all = json_key (at, "measured");
    const char *key, *by;
    json_t *value;

    if (!json_has (at, "measured"))
        return ST_OK;
    TRY (json_want_object (&all, r->err));
    json_object_foreach (all.v, key, value)
    {
        struct json_at one = json_key (&all, key);

        TRY (json_want_object (&one, r->err));
        TRY (json_get_string (&one, "by", &by, r->err));
        if (!json_has (at, key))
            return json_fail_text (&one, r->err,
                                   "says what measured a key that is not there");
    }
    t->measured = all.v;
    return ST_OK;
}

static enum status read_gpu_type (struct reader *r, const struct json_at *at,
                                  const char *name, struct topology_gpu_type *t)
{
    const struct {
        const char *key;
        double *value, unit, max;
        bool zero_ok;
    } field[] = {
        {"memory_gb", &t->memory_bytes, UNITS_GB, 1e5, false},
        {"memory_gb_per_s", &t->hbm_bytes_per_s, UNITS_GB, 1e6, false},
        {"bf16_tflop_per_s", &t->bf16_flop_per_s, 1e12, 1e6, true},
        {"fp16_tflop_per_s", &t->fp16_flop_per_s, 1e12, 1e6, true},
        {"fp8_tflop_per_s", &t->fp8_flop_per_s, 1e12, 1e6, true},
        {"fp4_tflop_per_s", &t->fp4_flop_per_s, 1e12, 1e6, true},
        {"fp32_tflop_per_s", &t->fp32_flop_per_s, 1e12, 1e6, false},
        {"tf32_tflop_per_s", &t->tf32_flop_per_s, 1e12, 1e6, true},
        {"gemm_efficiency", &t->gemm_efficiency, 1, 1, false},
        {"nvls_efficiency", &t->nvls_efficiency, 1, 1, true},
        {"fp8_gemm_efficiency", &t->fp8_gemm_efficiency, 1, 1, true},
        {"fp4_gemm_efficiency", &t->fp4_gemm_efficiency, 1, 1, true},
        {"flash_efficiency", &t->flash_efficiency, 1, 1, true},
        {"flash2_efficiency", &t->flash2_efficiency, 1, 1, true},
        {"host_factor", &t->host_factor, 1, 100, true},
        {"tf32_gemm_efficiency", &t->tf32_gemm_efficiency, 1, 1, true},
        {"fp32_gemm_efficiency", &t->fp32_gemm_efficiency, 1, 1, true},
        {"copy_gb_per_s", &t->copy_bytes_per_s, UNITS_GB, 1e6, true},
        {"host_link_gb_per_s", &t->host_bytes_per_s, UNITS_GB, 1e6, true},
        {"host_memory_gb_per_s", &t->host_memory_bytes_per_s, UNITS_GB, 1e6, true}};
    struct json_at like = json_key (at, "like");
    const struct topology_gpu_type *base = topology_gpu_type_builtin (name);
    const char *like_name;
    struct text known = {0};

    TRY (json_want_object (at, r->err));
    if (json_has (at, "like")) {
        TRY (json_want_string (&like, &like_name, r->err));
        if (!(base = topology_gpu_type_builtin (like_name)))
            return json_fail (&like, r->err, "a built-in GPU type");
    }
    *t = base ? *base : (struct topology_gpu_type){.gemm_efficiency = 0.6};
    t->like = base;
    snprintf (t->name, sizeof t->name, "%s", name);
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        struct json_at f = json_key (at, field[i].key);
        double x;

        if (base ? !json_has (at, field[i].key)
                 : !f.v && (field[i].zero_ok ||
                            strcmp (field[i].key, "gemm_efficiency") == 0))
            continue;
        TRY (json_want_number (&f, 0, field[i].zero_ok, field[i].max, &x, r->err));
        *field[i].value = x * field[i].unit;
    }
    if (!base || json_has (at, "multiprocessors"))
        TRY (
            json_get_int (at, "multiprocessors", 1, 100000, &t->multiprocessors, r->err));
    text_add (&known, "like multiprocessors measured source");
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        text_add (&known, " %s", field[i].key);
    json_note_unknown (at, text_str (&known), r->notes);
    text_free (&known);
    t->source = base ? topology_gpu_type_source (base) : "the cluster file";
    TRY_MEMBER (json_get_string, at, "source", &t->source, r->err);
    return read_sources (r, at, t);
}

enum status topology_type_in (const json_t *doc, const char *name,
                              struct topology_gpu_type *t, struct error *err)
{
    struct reader r = {.err = err};
    struct json_at root = json_root ((json_t *) doc, "gpu_types"),
                   types = json_key (&root, "gpu_types"), one = json_key (&types, name);
    const struct topology_gpu_type *builtin =
        name ? topology_gpu_type_meant (name) : NULL;

    if (json_object_get (types.v, name))
        return read_gpu_type (&r, &one, name, t);
    if (!builtin)
        return err_set (err, ST_INVALID, "unknown GPU type \"%.60s\"", name);
    *t = *builtin;
    return ST_OK;
}

enum status topology_types_read (struct reader *r, const struct json_at *root)
{
    struct json_at at = json_key (root, "gpu_types");
    const char *name;
    json_t *value;

    if (!json_has (root, "gpu_types"))
        return ST_OK;
    TRY (json_want_object (&at, r->err));
    if (!(r->c->type = calloc (json_object_size (at.v) + 1, sizeof *r->c->type)))
        return err_nomem (r->err);
    json_object_foreach (at.v, name, value)
    {
        struct json_at one = json_key (&at, name);

        if (!topology_name_ok (name) || strlen (name) >= sizeof r->c->type->name)
            return json_fail_text (
                &one, r->err, "expected a name matching [A-Za-z0-9][A-Za-z0-9._-]{0,62}");
        TRY (read_gpu_type (r, &one, name, &r->c->type[r->c->n_types]));
        r->c->n_types++;
    }
    return ST_OK;
}

enum status topology_type_find (struct reader *r, const struct json_at *at,
                                const struct topology_gpu_type **out)
{
    const char *name;
    char hint[TEXT_HINT];

    TRY (json_want_string (at, &name, r->err));
    for (int i = 0; i < r->c->n_types; i++)
        if (strcmp (r->c->type[i].name, name) == 0) {
            *out = &r->c->type[i];
            return ST_OK;
        }
    if ((*out = topology_gpu_type_meant (name))) {
        if (strcmp ((*out)->name, name) != 0 &&
            (!r->meant || strcmp (r->meant, name) != 0)) /* of its nodes the first */
            notes_add (r->notes, "%s: taken as %s", name, (*out)->name);
        r->meant = name;
        return ST_OK;
    }
    return json_fail_text (at, r->err,
                           "unknown GPU type \"%.60s\"%s (`linkwise gpus` lists the "
                           "built-in ones, gpu_types adds others)",
                           name, topology_gpu_type_hint (name, hint));
}
