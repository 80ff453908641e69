/* Measured compute becomes constants of GPU types: numbers of single GPUs are checked, of one
 * GPU the newest hold, and each type gets the medians over its GPUs. */

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/stats.h"
#include "base/units.h"
#include "topology/links_doc.h"
#include "topology/topology_private.h"

/* Part of a product's rate alone that products reach in training, beside other kernels and
 * under the power limit: the median of the built-in efficiencies over the largest published
 * rates (docs/formulas.md, T21). */
#define TRAINING_PART .85
/* Clocks may be above those that a data sheet's peak is for. */
#define PEAK_MARGIN 1.05

#define PEAK(field) offsetof (struct topology_gpu_type, field)

/* What is measured, the peak that it cannot pass, and the constant that it gives.  Of two
 * that give one constant the first holds. */
static const struct quantity {
    const char *name; /* of products their precision; NULL: copies */
    bool attention;   /* name is its kernels' */
    size_t peak;
    double unit;
    double part; /* of it that is left in training */
    const char *key;
} quantities[] = {
    {"bf16", false, PEAK (bf16_flop_per_s), 1e12, TRAINING_PART, "gemm_efficiency"},
    {"fp16", false, PEAK (fp16_flop_per_s), 1e12, TRAINING_PART, "gemm_efficiency"},
    {"fp8", false, PEAK (fp8_flop_per_s), 1e12, TRAINING_PART, "fp8_gemm_efficiency"},
    {"fp4", false, PEAK (fp4_flop_per_s), 1e12, TRAINING_PART, "fp4_gemm_efficiency"},
    {"tf32", false, PEAK (tf32_flop_per_s), 1e12, TRAINING_PART, "tf32_gemm_efficiency"},
    {"fp32", false, PEAK (fp32_flop_per_s), 1e12, TRAINING_PART, "fp32_gemm_efficiency"},
    /* The built-in ones are rates alone, too (docs/formulas.md, T20). */
    {"cudnn", true, PEAK (bf16_flop_per_s), 1e12, 1, "flash_efficiency"},
    {"flash2", true, PEAK (bf16_flop_per_s), 1e12, 1, "flash2_efficiency"},
    {NULL, false, PEAK (hbm_bytes_per_s), UNITS_GB, 1, "copy_gb_per_s"},
};

#define QUANTITIES ((int) (sizeof quantities / sizeof *quantities))

/* A GPU that was measured. */
struct measured_gpu {
    const char *type;
    double rate[QUANTITIES]; /* per s; 0: not measured */
    int source;              /* the newest */
};

struct gathering {
    const json_t *into;
    const struct topology_compute_source *from;
    json_t *nodes, *index;    /* node name -> node; "node:gpu" -> place in gpu */
    struct measured_gpu *gpu; /* [n] */
    int n;
    struct error *err;
};

static double peak_of (const struct topology_gpu_type *t, const struct quantity *q)
{
    return *(const double *) (const void *) ((const char *) t + q->peak);
}

/* A positive number that the type can reach. */
static enum status read_rate (const struct json_at *at, const struct topology_gpu_type *t,
                              const struct quantity *q, double *rate, struct error *err)
{
    double peak = peak_of (t, q), x;

    TRY (json_want_number (at, 0, false, 1e9, &x, err));
    if (!(x * q->unit <= PEAK_MARGIN * peak))
        return json_fail_text (at, err,
                               "%.4g is more than 105 %% of what a %s can do (%.4g): is "
                               "the GPU of that type?",
                               x, t->name, peak / q->unit);
    *rate = x * q->unit > *rate ? x * q->unit : *rate;
    return ST_OK;
}

/* The same of attention, as it would be where the built-in constants hold. */
static enum status read_attention (const struct json_at *at,
                                   const struct topology_gpu_type *t,
                                   const struct quantity *q, double *rate,
                                   struct error *err)
{
    struct json_at speed = json_key (at, "tflop_per_s");
    double here = 0;
    int tokens, heads;

    TRY (json_get_int (at, "tokens", 1, 1 << 30, &tokens, err));
    TRY (json_get_int (at, "heads", 1, 1 << 20, &heads, err));
    TRY (read_rate (&speed, t, q, &here, err));
    *rate = fmax (*rate, here * topology_flash_over (t, TOPOLOGY_FLASH_FWD, tokens,
                                                     (double) tokens * heads));
    return ST_OK;
}

/* An entry of `products`, or of `attention`. */
static enum status read_entry (const struct json_at *at, bool attention,
                               const struct topology_gpu_type *t, double *rate,
                               struct error *err)
{
    struct json_at name = json_key (at, attention ? "kernels" : "precision"),
                   speed = json_key (at, "tflop_per_s");
    const char *word;

    TRY (json_want_string (&name, &word, err));
    for (int q = 0; q < QUANTITIES; q++)
        if (quantities[q].name && quantities[q].attention == attention &&
            strcmp (quantities[q].name, word) == 0)
            return attention ? read_attention (at, t, &quantities[q], &rate[q], err)
                             : read_rate (&speed, t, &quantities[q], &rate[q], err);
    return json_fail (
        &name, err, attention ? "cudnn or flash2" : "bf16, fp16, fp8, fp4, tf32 or fp32");
}

/* The place of a GPU's numbers, emptied. */
static struct measured_gpu *room_for (struct gathering *g, const char *node, int gpu)
{
    int i = json_number_of (g->index, "%s:%d", node, gpu);

    if (i < 0 || (i == g->n && !array_grow (&g->gpu, g->n, sizeof *g->gpu)))
        return NULL;
    g->n += i == g->n;
    g->gpu[i] = (struct measured_gpu){0};
    return &g->gpu[i];
}

/* A list of an endpoint, which may be missing. */
static enum status read_list (const struct json_at *at, bool attention,
                              const struct topology_gpu_type *t, double *rate,
                              struct error *err)
{
    struct json_at list = json_key (at, attention ? "attention" : "products");

    if (list.v)
        TRY (json_want_array (&list, NULL, err));
    json_each (&list, one)
        TRY (read_entry (&one, attention, t, rate, err));
    return ST_OK;
}

static enum status read_endpoint (struct gathering *g, const struct json_at *at,
                                  int source)
{
    struct json_at name = json_key (at, "node"), copies = json_key (at, "copy_gb_per_s");
    struct topology_gpu_type type;
    struct measured_gpu *m;
    const json_t *node;
    const char *s;
    int gpu;

    if (!json_object_get (at->v, "products"))
        return ST_OK;
    TRY (json_want_string (&name, &s, g->err));
    TRY (json_get_int (at, "gpu", 0, TOPOLOGY_NODE_GPUS_MAX - 1, &gpu, g->err));
    node = json_object_get (g->nodes, s);
    if (!node || gpu >= json_member_int (node, "gpus"))
        return json_fail_text (at, g->err, "GPU %d of node %s is not in the cluster", gpu,
                               s);
    if (!json_member_text (node, "gpu_type"))
        return ST_OK;
    TRY (topology_type_in (g->into, json_member_text (node, "gpu_type"), &type, g->err));
    if (!(m = room_for (g, s, gpu)))
        return err_nomem (g->err);
    m->type = json_member_text (node, "gpu_type");
    m->source = source;
    TRY (read_list (at, false, &type, m->rate, g->err));
    TRY (read_list (at, true, &type, m->rate, g->err));
    return read_rate (&copies, &type, &quantities[QUANTITIES - 1],
                      &m->rate[QUANTITIES - 1], g->err);
}

static enum status gather (struct gathering *g, int sources)
{
    for (int k = 0; k < sources; k++) {
        struct json_at root = json_root ((json_t *) g->from[k].doc, g->from[k].name),
                       measured = json_key (&root, "measured"),
                       ends = json_key (&measured, "endpoints");

        json_each (&ends, one)
            TRY (read_endpoint (g, &one, k));
    }
    return ST_OK;
}

/* The median over the GPUs of a type; NAN where nobody measured it.
 * @param[out] gpus, source  how many have it, and the newest file that does */
static double median_of (const struct gathering *g, const char *type, int q, double *work,
                         int *gpus, int *source)
{
    *gpus = *source = 0;
    for (int i = 0; i < g->n; i++) {
        const struct measured_gpu *m = &g->gpu[i];

        if (strcmp (m->type, type) != 0 || !(m->rate[q] > 0))
            continue;
        work[(*gpus)++] = m->rate[q];
        *source = m->source > *source ? m->source : *source;
    }
    return stats_median (work, *gpus);
}

static json_t *source_json (const struct topology_compute_source *s, double rate,
                            const struct quantity *q, int gpus)
{
    const json_t *measured = json_object_get (s->doc, "measured");
    json_t *o =
        json_pack ("{s:s, s:s, s:i}", "by", "bwprobe", "file", s->name, "gpus", gpus);

    json_object_set (o, "when", json_object_get (measured, "when"));
    if (q->name) {
        json_object_set_new (o, q->attention ? "kernels" : "precision",
                             json_string (q->name));
        json_object_set_new (o, "alone_tflop_per_s",
                             topology_links_number (rate / q->unit));
    }
    return o;
}

/* The constants of one type. */
static enum status apply_type (struct gathering *g, json_t *into, const char *name,
                               double *work, struct notes *notes)
{
    struct topology_gpu_type type;
    bool given[QUANTITIES] = {false};

    TRY (topology_type_in (into, name, &type, g->err));
    for (int q = 0; q < QUANTITIES; q++) {
        const struct quantity *what = &quantities[q];
        json_t *t = json_object_in (json_object_in (into, "gpu_types"), name),
               *sources = json_object_in (t, "measured");
        const char *by = json_member_text (json_object_get (sources, what->key), "by");
        json_t *value;
        int gpus, source;
        double rate = median_of (g, name, q, work, &gpus, &source), x;

        if (gpus == 0 || (by && strcmp (by, "bwprobe") != 0) ||
            (q > 0 && given[q - 1] && strcmp (quantities[q - 1].key, what->key) == 0))
            continue;
        given[q] = true;
        x = what->name ? what->part * rate / peak_of (&type, what) : rate / what->unit;
        value = topology_links_number (x);
        /* A merged file has the constants of its own measurements already. */
        if (by && json_equal (value, json_object_get (t, what->key))) {
            json_decref (value);
            continue;
        }
        json_object_set_new (t, what->key, value);
        json_object_set_new (sources, what->key,
                             source_json (&g->from[source], rate, what, gpus));
        notes_add (notes, "gpu_types.%s: %s is %.4g, measured on %d GPUs (%s)", name,
                   what->key, x, gpus, g->from[source].name);
    }
    return ST_OK;
}

enum status topology_compute_apply (json_t *into,
                                    const struct topology_compute_source *from, int n,
                                    struct notes *notes, struct error *err)
{
    struct gathering g = {.into = into,
                          .from = from,
                          .nodes = json_object (),
                          .index = json_object (),
                          .err = err};
    double *work = NULL;
    enum status st;
    json_t *node;
    size_t k;

    json_array_foreach (json_object_get (into, "nodes"), k, node)
        json_object_set (g.nodes, json_member_text (node, "name"), node);
    st = gather (&g, n);
    if (st == ST_OK && !(work = calloc ((size_t) g.n + 1, sizeof *work)))
        st = err_nomem (err);
    for (int i = 0; i < g.n && st == ST_OK; i++) {
        bool seen = false;

        for (int j = 0; j < i && !seen; j++)
            seen = strcmp (g.gpu[j].type, g.gpu[i].type) == 0;
        if (!seen)
            st = apply_type (&g, into, g.gpu[i].type, work, notes);
    }
    JSON_DECREF_ALL (g.nodes, g.index);
    FREE_ALL (work, g.gpu);
    return st;
}
