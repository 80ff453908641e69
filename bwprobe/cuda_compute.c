/* --gemm: how fast a GPU multiplies and copies. */
#include "bwprobe/cuda.h"

#include "bwprobe/cuda_private.h"

#ifdef BWPROBE_NCCL

#include <stdio.h>
#include <unistd.h>

#include "base/progress.h"
#include "base/stats.h"

enum { N_LARGE = 8192, N_SMALL = 2048, TIMES = 15 };

/* Clocks settle within this time under load. */
#define WARM_UP_S 1.0
#define GIVE_UP_S 30.0

struct gpu_work {
    const struct cuda_runtime *rt;
    const struct cuda_blas *blas;
    cublasHandle_t handle;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    void *a, *b, *c; /* [n*n] of 2 bytes */
    int n;
    cudaDataType_t type;
};

static enum status multiply (struct gpu_work *w, struct error *err)
{
    const float one = 1, zero = 0;
    cublasStatus_t st = w->blas->cublasGemmEx (
        w->handle, CUBLAS_OP_N, CUBLAS_OP_N, w->n, w->n, w->n, &one, w->a, w->type, w->n,
        w->b, w->type, w->n, &zero, w->c, w->type, w->n, CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT);

    return st == CUBLAS_STATUS_SUCCESS
               ? ST_OK
               : err_set (err, ST_IO, "cuBLAS: the product failed (%d)", (int) st);
}

static enum status copy (struct gpu_work *w, struct error *err)
{
    size_t bytes = (size_t) w->n * (size_t) w->n * 2;

    return cuda_check (
        w->rt,
        w->rt->cudaMemcpyAsync (w->c, w->a, bytes, cudaMemcpyDeviceToDevice, w->stream),
        "copy on the GPU", err);
}

/* One timed execution. */
static enum status timed (struct gpu_work *w,
                          enum status (*work) (struct gpu_work *, struct error *),
                          double *seconds, struct error *err)
{
    double deadline = clock_s () + GIVE_UP_S;
    cudaError_t result;
    float ms = 0;

    TRY (cuda_check (w->rt, w->rt->cudaEventRecord (w->begin, w->stream), "event", err));
    TRY (work (w, err));
    TRY (cuda_check (w->rt, w->rt->cudaEventRecord (w->end, w->stream), "event", err));
    while ((result = w->rt->cudaEventQuery (w->end)) == cudaErrorNotReady) {
        if (clock_s () > deadline)
            return err_set (err, ST_IO, "the GPU did not finish within %g s", GIVE_UP_S);
        usleep (50);
    }
    TRY (cuda_check (w->rt, result, "the GPU", err));
    TRY (cuda_check (w->rt, w->rt->cudaEventElapsedTime (&ms, w->begin, w->end), "event",
                     err));
    *seconds = (double) ms * 1e-3;
    return ST_OK;
}

static enum status median_of (struct gpu_work *w,
                              enum status (*work) (struct gpu_work *, struct error *),
                              double *seconds, struct error *err)
{
    double t[TIMES], until = clock_s () + WARM_UP_S;

    while (clock_s () < until)
        TRY (timed (w, work, t, err));
    for (int i = 0; i < TIMES; i++)
        TRY (timed (w, work, &t[i], err));
    *seconds = stats_median (t, TIMES);
    return *seconds > 0 ? ST_OK : err_set (err, ST_IO, "no time was measured");
}

static enum status prepare (struct gpu_work *w, int device, struct error *err)
{
    const struct cuda_runtime *rt = w->rt;
    size_t free_bytes = 0, all = 0, bytes;
    int major = 0;
    void **matrix[] = {&w->a, &w->b, &w->c};

    TRY (cuda_check (rt, rt->cudaSetDevice (device), "cudaSetDevice", err));
    TRY (cuda_check (rt, rt->cudaMemGetInfo (&free_bytes, &all), "cudaMemGetInfo", err));
    TRY (cuda_check (
        rt,
        rt->cudaDeviceGetAttribute (&major, cudaDevAttrComputeCapabilityMajor, device),
        "cudaDeviceGetAttribute", err));
    w->n = free_bytes > (size_t) 8 * N_LARGE * N_LARGE ? N_LARGE : N_SMALL;
    w->type = major >= 8 ? CUDA_R_16BF : CUDA_R_16F;
    bytes = (size_t) w->n * (size_t) w->n * 2;
    for (int i = 0; i < 3; i++) {
        TRY (cuda_check (rt, rt->cudaMalloc (matrix[i], bytes), "cudaMalloc", err));
        /* 0x3c3c is about 1 in fp16 and 0.01 in bf16: zeros would draw less power. */
        TRY (
            cuda_check (rt, rt->cudaMemset (*matrix[i], 0x3c, bytes), "cudaMemset", err));
    }
    TRY (cuda_check (rt,
                     rt->cudaStreamCreateWithFlags (&w->stream, cudaStreamNonBlocking),
                     "stream", err));
    TRY (cuda_check (rt, rt->cudaEventCreate (&w->begin), "event", err));
    TRY (cuda_check (rt, rt->cudaEventCreate (&w->end), "event", err));
    return w->blas->cublasCreate (&w->handle) == CUBLAS_STATUS_SUCCESS &&
                   w->blas->cublasSetStream (w->handle, w->stream) ==
                       CUBLAS_STATUS_SUCCESS
               ? ST_OK
               : err_set (err, ST_IO, "cuBLAS does not start");
}

static void release (struct gpu_work *w)
{
    if (w->handle)
        w->blas->cublasDestroy (w->handle);
    if (w->begin)
        w->rt->cudaEventDestroy (w->begin);
    if (w->end)
        w->rt->cudaEventDestroy (w->end);
    if (w->stream)
        w->rt->cudaStreamDestroy (w->stream);
    w->rt->cudaFree (w->a);
    w->rt->cudaFree (w->b);
    w->rt->cudaFree (w->c);
}

enum status cuda_compute (int device, struct msg_computed *out, struct error *err)
{
    struct gpu_work w = {.rt = cuda_load_runtime (err)};
    double gemm_s = 0, copy_s = 0, n;
    enum status st;

    w.blas = w.rt ? cuda_load_blas (err) : NULL;
    if (!w.blas)
        return ST_IO;
    st = prepare (&w, device, err);
    if (st == ST_OK)
        st = median_of (&w, multiply, &gemm_s, err);
    if (st == ST_OK)
        st = median_of (&w, copy, &copy_s, err);
    if (st == ST_OK) {
        n = w.n;
        out->gemm_flop_per_s = 2 * n * n * n / gemm_s;
        out->copy_bytes_per_s = 2 * n * n * 2 / copy_s;
        snprintf (out->precision, sizeof out->precision, "%s",
                  w.type == CUDA_R_16BF ? "bf16" : "fp16");
    }
    release (&w);
    return st;
}

#else

enum status cuda_compute (int device, struct msg_computed *out, struct error *err)
{
    (void) device;
    (void) out;
    cuda_gpus (err);
    return ST_IO;
}

#endif
