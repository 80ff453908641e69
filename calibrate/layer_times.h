/* Times of single layers that other tools measured, and what they tell of a GPU type. */
#ifndef CALIBRATE_LAYER_TIMES_H
#define CALIBRATE_LAYER_TIMES_H

#include "base/error.h"
#include "topology/topology.h"
#include "workload/workload.h"

/** What one micro-batch takes on one GPU, without communication. */
struct calibrate_layer_time {
    char place[64]; /* in the file, for messages */
    int micro_batch, tp;
    int seq;              /* 0: the job's */
    int layers;           /* that the times are of */
    bool embedding, head; /* the times hold these, too */
    int model_layers;     /* of the model; 0: the file does not say */
    double fwd_s, back_s; /* NAN: not measured; back without recomputation */
};

struct calibrate_layer_times {
    const char *format;               /* its name */
    struct calibrate_layer_time *row; /* [n] */
    int n;
    int others; /* times of the file that are of other kinds of layers */
};

/** Why a row tells nothing of products. */
enum calibrate_layer_left {
    LAYER_LEFT_FAST, /* faster than the estimate with products at the peak */
    LAYER_LEFT_SLOW, /* slower than any efficiency explains */
    LAYER_LEFT_FLAT, /* launches or memory decide it */
    CALIBRATE_LAYER_LEFT
};

/** Read a file of layer times; its format is told by its content: Galvatron's computation
 *  profile, a log of Megatron's with timers of level 2, or a CSV table with columns
 *  micro_batch, tp, forward_ms and, optional, backward_ms and seq.
 *
 *  @param[out] out  release with calibrate_layer_times_release
 *  @return ST_OK; ST_IO; ST_NOMEM; ST_INVALID, with the place, for a time that is not above
 *          0, and for timers that hold more than compute (tensor or context parallelism,
 *          recomputation)
 */
enum status calibrate_layer_times_read (const char *path,
                                        struct calibrate_layer_times *out,
                                        struct error *err);
void calibrate_layer_times_release (struct calibrate_layer_times *t);

/** What layer times say of a GPU type. */
struct calibrate_layer_fit {
    const char *key;   /* of the cluster file's type: "gemm_efficiency", ... */
    double efficiency; /* 0 to 1 */
    int used;          /* rows */
    struct {
        int n;
        const char *first;        /* place; of the times */
    } left[CALIBRATE_LAYER_LEFT]; /* the other rows */
    double spread; /* largest relative error of the rows used, with the efficiency */
};

/** The efficiency of matrix products with which the estimates of layers meet measured
 *  times: for each row the one that meets it, and their median.
 *
 *  @param[in] j     its seq is for rows without one; its global_batch is not looked at
 *  @return ST_OK, or ST_INVALID for a model with experts, a row that is no split of the
 *          model, one above 1.05 x the type's peak, or rows that tell nothing of products
 */
enum status calibrate_layer_times_fit (const struct calibrate_layer_times *t,
                                       const struct workload_model *m,
                                       const struct workload_job *j,
                                       const struct workload_profile *p,
                                       const struct topology_gpu_type *type,
                                       struct calibrate_layer_fit *out,
                                       struct error *err);

#endif
