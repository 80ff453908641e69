/* Runs files for tests: a header, rows with some cells set, a file that goes away. */
#ifndef TESTS_LIB_RUNS_H
#define TESTS_LIB_RUNS_H

#include "calibrate/calibrate.h"
#include "tests/lib/folder.h"

#define RUNS_HEADER                                                                    \
    "source,model,params_b,layers,hidden,heads,kv_heads,ffn,vocab,seq,gpu,gpu_mem_gb," \
    "gpus,gpus_per_node,inter_node_gbps,tp,pp,vpp,dp,cp,ep,sp,zero,micro_batch,"       \
    "global_batch,precision,attention,recompute,iter_time_s,tokens_per_s_per_gpu,"     \
    "tflops_per_gpu,mfu,peak_mem_gb,oom,notes,framework"

/* A plain run that can be read. */
static const char *const runs_usual[][2] = {{"source", "lab"},
                                            {"model", "llama-x"},
                                            {"layers", "32"},
                                            {"hidden", "4096"},
                                            {"heads", "32"},
                                            {"ffn", "11008"},
                                            {"vocab", "32000"},
                                            {"seq", "4096"},
                                            {"gpu", "A100-SXM4-80GB"},
                                            {"gpus", "16"},
                                            {"tp", "2"},
                                            {"pp", "2"},
                                            {"micro_batch", "1"},
                                            {"global_batch", "64"},
                                            {"recompute", "none"}};

/* Append a row: the usual cells, but for `cell` ("column=value"; NULL-terminated). */
static inline void runs_row (struct text *t, const char *const *cell)
{
    char header[] = RUNS_HEADER, *save, *name = strtok_r (header, ",", &save);

    for (bool first = true; name; name = strtok_r (NULL, ",", &save), first = false) {
        const char *value = "";

        for (size_t i = 0; i < sizeof runs_usual / sizeof *runs_usual; i++)
            if (strcmp (runs_usual[i][0], name) == 0)
                value = runs_usual[i][1];
        for (int i = 0; cell && cell[i]; i++)
            if (strncmp (cell[i], name, strlen (name)) == 0 &&
                cell[i][strlen (name)] == '=')
                value = cell[i] + strlen (name) + 1;
        text_add (t, strchr (value, ',') ? "%s\"%s\"" : "%s%s", first ? "" : ",", value);
    }
    text_add (t, "\n");
}

#define ROW(T, ...) runs_row (T, (const char *const[]){__VA_ARGS__, NULL})

/* Read a text as a runs file. */
static inline enum status runs_read (const char *text, struct calibrate_runs *r,
                                     struct error *err)
{
    write_in_folder ("runs", text, strlen (text));
    return calibrate_runs_read (in_folder ("runs"), r, err);
}

/* The same of a text that can be read. */
static inline struct calibrate_runs runs_of (const char *text)
{
    struct calibrate_runs r;
    struct error err = {""};

    ok (runs_read (text, &r, &err), &err);
    return r;
}

/* The profile that the only run is estimated by. */
static inline struct workload_profile runs_profile (const struct calibrate_runs *r)
{
    struct workload_profile p;
    struct error err = {""};

    assert_int_equal (r->n, 1);
    ok (calibrate_profiles (r, NULL, &p, &err), &err);
    return p;
}

/* A runs file of one row. */
static inline struct calibrate_runs one (const char *const *cell)
{
    struct calibrate_runs r;
    struct text t = {0};

    text_add (&t, "%s\n", RUNS_HEADER);
    runs_row (&t, cell);
    r = runs_of (text_str (&t));
    assert_int_equal (r.n, 1);
    text_free (&t);
    return r;
}

#define ONE(...) one ((const char *const[]){__VA_ARGS__, NULL})

static inline double runs_step (const struct calibrate_run *run,
                                const struct workload_profile *p)
{
    struct topology_cluster *c;
    struct error err = {""};
    double step_s;

    ok (calibrate_cluster (run, p, &c, &err), &err);
    ok (calibrate_step (run, c, p, &step_s, NULL, &err), &err);
    topology_cluster_destroy (c);
    return step_s;
}

#endif
