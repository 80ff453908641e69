/* --gemm and --compute: how fast a GPU multiplies, copies and starts kernels. */
#include "bwprobe/cuda.h"

#include "bwprobe/cuda_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/progress.h"
#include "base/rng.h"
#include "base/stats.h"

/* Sizes of products on a GPU without room for the large ones are divided by SMALLER. */
enum { N_LARGE = 8192, SMALLER = 4, TIMES = 15, LAUNCHES = 500, RANDOM = 1 << 20 };

/* Clocks settle within this time under load; then they only follow the kind of work. */
#define WARM_UP_S 1.0
#define NEXT_WARM_UP_S 0.2
#define GIVE_UP_S 30.0

/* Numbers are +-[1, 2): `base` with random bits where `mask` has them. */
struct precision {
    const char *name;
    cudaDataType_t type;
    cublasComputeType_t compute;
    size_t bytes;
    int from, below; /* compute capability x 10 of the GPUs on which it is measured */
    uint32_t base, mask;
};

/* The first one that the GPU has is that of --gemm. */
static const struct precision precisions[] = {
    {"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2, 80, 1000, 0x3f803f80, 0x807f807f},
    {"fp16", CUDA_R_16F, CUBLAS_COMPUTE_32F, 2, 0, 80, 0x3c003c00, 0x83ff83ff},
    {"fp8", CUDA_R_8F_E4M3, CUBLAS_COMPUTE_32F, 1, 89, 1000, 0x38383838, 0x87878787},
    {"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, 80, 1000, 0x3f800000,
     0x807fffff},
    {"fp32", CUDA_R_32F, CUBLAS_COMPUTE_32F, 4, 0, 1000, 0x3f800000, 0x807fffff},
};

/* A large square (--gemm's), an MLP's way up and down over 4,096 tokens, a short inner
 * dimension, few rows.  None has more than N_LARGE^2 numbers in a matrix. */
static const struct shape {
    int m, n, k;
} shapes[] = {{N_LARGE, N_LARGE, N_LARGE},
              {14336, 4096, 4096},
              {4096, 4096, 14336},
              {N_LARGE, N_LARGE, 1024},
              {N_LARGE, 512, N_LARGE}};

enum {
    PRECISIONS = sizeof precisions / sizeof *precisions,
    SHAPES = sizeof shapes / sizeof *shapes
};

_Static_assert(PRECISIONS *SHAPES <= MESSAGES_PRODUCTS, "all products fit a message");

/* ---- fp8 ---- */

/* A product in fp8, which cuBLASLt alone has, as frameworks run it: E4M3 in, fast accumulation,
 * bf16 out; the first matrix is transposed, the only way that all GPUs with fp8 take. */
struct fp8 {
    const struct cuda_blaslt *f;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t layout[3]; /* of a, b and c */
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t kernel;
};

static bool good (cublasStatus_t st)
{
    return st == CUBLAS_STATUS_SUCCESS;
}

static bool describe_fp8 (struct fp8 *x, int m, int n, int k)
{
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const int8_t fast = 1;
    const struct {
        cudaDataType_t type;
        int rows, columns;
    } matrix[] = {{CUDA_R_8F_E4M3, k, m}, {CUDA_R_8F_E4M3, k, n}, {CUDA_R_16BF, m, n}};
    bool ok =
        good (x->f->cublasLtMatmulDescCreate (&x->product, CUBLAS_COMPUTE_32F,
                                              CUDA_R_32F)) &&
        good (x->f->cublasLtMatmulDescSetAttribute (
            x->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed)) &&
        good (x->f->cublasLtMatmulDescSetAttribute (
            x->product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast));

    for (int i = 0; i < 3 && ok; i++)
        ok = good (x->f->cublasLtMatrixLayoutCreate (
            &x->layout[i], matrix[i].type, (uint64_t) matrix[i].rows,
            (uint64_t) matrix[i].columns, matrix[i].rows));
    return ok;
}

/* Without a workspace, so that there is nothing to allocate. */
static bool choose_fp8 (struct fp8 *x)
{
    const size_t none = 0;
    int found = 0;

    return good (x->f->cublasLtMatmulPreferenceCreate (&x->preference)) &&
           good (x->f->cublasLtMatmulPreferenceSetAttribute (
               x->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &none,
               sizeof none)) &&
           good (x->f->cublasLtMatmulAlgoGetHeuristic (
               x->handle, x->product, x->layout[0], x->layout[1], x->layout[2],
               x->layout[2], x->preference, 1, &x->kernel, &found)) &&
           found > 0;
}

/* Choose the kernel of a product of m x k by k x n; end it with end_fp8, also after a failure.
 * @return ST_OK, or ST_IO where the library or the GPU has none */
static enum status begin_fp8 (struct fp8 *x, int m, int n, int k, struct error *err)
{
    *x = (struct fp8){.f = cuda_load_blaslt (err)};
    if (!x->f)
        return ST_IO;
    return good (x->f->cublasLtCreate (&x->handle)) && describe_fp8 (x, m, n, k) &&
                   choose_fp8 (x)
               ? ST_OK
               : err_set (err, ST_IO, "cuBLASLt has no fp8 product for this GPU");
}

static enum status multiply_fp8 (const struct fp8 *x, const void *a, const void *b,
                                 void *c, cudaStream_t stream, struct error *err)
{
    const float one = 1, zero = 0;
    cublasStatus_t st = x->f->cublasLtMatmul (
        x->handle, x->product, &one, a, x->layout[0], b, x->layout[1], &zero, c,
        x->layout[2], c, x->layout[2], &x->kernel.algo, NULL, 0, stream);

    return good (st)
               ? ST_OK
               : err_set (err, ST_IO, "cuBLASLt: the product failed (%d)", (int) st);
}

static void end_fp8 (struct fp8 *x)
{
    if (x->preference)
        x->f->cublasLtMatmulPreferenceDestroy (x->preference);
    for (int i = 0; i < 3; i++)
        if (x->layout[i])
            x->f->cublasLtMatrixLayoutDestroy (x->layout[i]);
    if (x->product)
        x->f->cublasLtMatmulDescDestroy (x->product);
    if (x->handle)
        x->f->cublasLtDestroy (x->handle);
    *x = (struct fp8){0};
}

/* ---- one execution ---- */

struct gpu_work {
    const struct cuda_runtime *rt;
    const struct cuda_blas *blas;
    cublasHandle_t handle;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    void *a, *b, *c;  /* [bytes] */
    size_t bytes;     /* N_LARGE^2 numbers of 4 bytes, or fewer */
    int divide;       /* sizes by this */
    int capability;   /* x 10 */
    uint32_t *random; /* [RANDOM] bits */
    const struct precision *precision;
    struct shape shape;
    struct fp8 fp8;
    double enqueued_s; /* the host's time for the last launches */
};

static enum status multiply (struct gpu_work *w, struct error *err)
{
    const float one = 1, zero = 0;
    const struct precision *p = w->precision;
    const struct shape *s = &w->shape;
    cublasStatus_t st;

    if (p->bytes == 1)
        return multiply_fp8 (&w->fp8, w->a, w->b, w->c, w->stream, err);
    st = w->blas->cublasGemmEx (w->handle, CUBLAS_OP_N, CUBLAS_OP_N, s->m, s->n, s->k,
                                &one, w->a, p->type, s->m, w->b, p->type, s->k, &zero,
                                w->c, p->type, s->m, p->compute, CUBLAS_GEMM_DEFAULT);
    return st == CUBLAS_STATUS_SUCCESS
               ? ST_OK
               : err_set (err, ST_IO, "cuBLAS: the product failed (%d)", (int) st);
}

static enum status copy (struct gpu_work *w, struct error *err)
{
    return cuda_check (w->rt->cudaMemcpyAsync (w->c, w->a, w->bytes,
                                               cudaMemcpyDeviceToDevice, w->stream),
                       "copy on the GPU", err);
}

/* Tiny kernels one after another. */
static enum status launch (struct gpu_work *w, struct error *err)
{
    double begun = clock_s ();

    for (int i = 0; i < LAUNCHES; i++)
        TRY (cuda_check (w->rt->cudaMemsetAsync (w->c, 0, 4, w->stream), "a tiny kernel",
                         err));
    w->enqueued_s = clock_s () - begun;
    return ST_OK;
}

/* One timed execution. */
static enum status timed (struct gpu_work *w,
                          enum status (*work) (struct gpu_work *, struct error *),
                          double *seconds, struct error *err)
{
    double deadline = clock_s () + GIVE_UP_S;
    cudaError_t result;
    float ms = 0;

    TRY (cuda_check (w->rt->cudaEventRecord (w->begin, w->stream), "event", err));
    TRY (work (w, err));
    TRY (cuda_check (w->rt->cudaEventRecord (w->end, w->stream), "event", err));
    while ((result = w->rt->cudaEventQuery (w->end)) == cudaErrorNotReady) {
        if (clock_s () > deadline)
            return err_set (err, ST_IO, "the GPU did not finish within %g s", GIVE_UP_S);
        usleep (50);
    }
    TRY (cuda_check (result, "the GPU", err));
    TRY (cuda_check (w->rt->cudaEventElapsedTime (&ms, w->begin, w->end), "event", err));
    *seconds = (double) ms * 1e-3;
    return ST_OK;
}

/* The median of several executions.
 * @param[out] host_s  of the host's time in `launch`; may be NULL */
static enum status median_of (struct gpu_work *w, double warm_up_s,
                              enum status (*work) (struct gpu_work *, struct error *),
                              double *seconds, double *host_s, struct error *err)
{
    double t[TIMES], host[TIMES], until = clock_s () + warm_up_s;

    while (clock_s () < until)
        TRY (timed (w, work, t, err));
    for (int i = 0; i < TIMES; i++) {
        TRY (timed (w, work, &t[i], err));
        host[i] = w->enqueued_s;
    }
    *seconds = stats_median (t, TIMES);
    if (host_s)
        *host_s = stats_median (host, TIMES);
    return *seconds > 0 ? ST_OK : err_set (err, ST_IO, "no time was measured");
}

/* ---- the GPU's memory ---- */

/* Fill a matrix with random numbers of a precision. */
static enum status fill (struct gpu_work *w, void *matrix, const struct precision *p,
                         struct error *err)
{
    const size_t chunk = RANDOM * sizeof *w->random;
    struct rng rng = {p->base};
    enum status st = ST_OK;

    for (int i = 0; i < RANDOM; i++)
        w->random[i] = p->base | ((uint32_t) rng_next (&rng) & p->mask);
    for (size_t at = 0; at < w->bytes && st == ST_OK; at += chunk) {
        size_t n = w->bytes - at < chunk ? w->bytes - at : chunk;

        st = cuda_check (w->rt->cudaMemcpy ((char *) matrix + at, w->random, n,
                                            cudaMemcpyHostToDevice),
                         "copy to the GPU", err);
    }
    return st;
}

/* Room for the three matrices: of 4 bytes a number with `all`, else of 2. */
static enum status allocate (struct gpu_work *w, bool all, struct error *err)
{
    size_t free_bytes = 0, total = 0,
           largest = (size_t) N_LARGE * N_LARGE * (all ? 4 : 2);
    void **matrix[] = {&w->a, &w->b, &w->c};

    TRY (cuda_check (w->rt->cudaMemGetInfo (&free_bytes, &total), "cudaMemGetInfo", err));
    w->divide = free_bytes > 4 * largest ? 1 : SMALLER;
    w->bytes = largest / (size_t) (w->divide * w->divide);
    for (int i = 0; i < 3; i++)
        TRY (cuda_check (w->rt->cudaMalloc (matrix[i], w->bytes), "cudaMalloc", err));
    return (w->random = malloc (RANDOM * sizeof *w->random)) ? ST_OK : err_nomem (err);
}

static enum status prepare (struct gpu_work *w, int device, bool all, struct error *err)
{
    const struct cuda_runtime *rt = w->rt;
    int major = 0, minor = 0;

    TRY (cuda_check (rt->cudaSetDevice (device), "cudaSetDevice", err));
    TRY (cuda_check (
        rt->cudaDeviceGetAttribute (&major, cudaDevAttrComputeCapabilityMajor, device),
        "cudaDeviceGetAttribute", err));
    TRY (cuda_check (
        rt->cudaDeviceGetAttribute (&minor, cudaDevAttrComputeCapabilityMinor, device),
        "cudaDeviceGetAttribute", err));
    w->capability = 10 * major + minor;
    TRY (allocate (w, all, err));
    TRY (cuda_check (rt->cudaStreamCreateWithFlags (&w->stream, cudaStreamNonBlocking),
                     "stream", err));
    TRY (cuda_check (rt->cudaEventCreate (&w->begin), "event", err));
    TRY (cuda_check (rt->cudaEventCreate (&w->end), "event", err));
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
    free (w->random);
}

/* ---- what is measured ---- */

static enum status one_product (struct gpu_work *w, struct msg_computed *out,
                                struct error *err)
{
    const struct shape *s = &w->shape;
    struct msg_product *p = &out->product[out->n_products];
    double seconds;

    TRY (median_of (w, out->n_products == 0 ? WARM_UP_S : NEXT_WARM_UP_S, multiply,
                    &seconds, NULL, err));
    *p = (struct msg_product){.m = (uint32_t) s->m,
                              .n = (uint32_t) s->n,
                              .k = (uint32_t) s->k,
                              .flop_per_s = 2.0 * s->m * s->n * s->k / seconds};
    snprintf (p->precision, sizeof p->precision, "%s", w->precision->name);
    out->n_products++;
    return ST_OK;
}

/* @param[in] n  shapes, from the first */
static enum status products_in (struct gpu_work *w, const struct precision *p, int n,
                                struct msg_computed *out, struct error *err)
{
    w->precision = p;
    TRY (fill (w, w->a, p, err));
    TRY (fill (w, w->b, p, err));
    for (int i = 0; i < n; i++) {
        enum status st = ST_OK;

        w->shape = (struct shape){shapes[i].m / w->divide, shapes[i].n / w->divide,
                                  shapes[i].k / w->divide};
        /* A driver or library of before fp8 is no failure. */
        if (p->bytes == 1 &&
            begin_fp8 (&w->fp8, w->shape.m, w->shape.n, w->shape.k, NULL) != ST_OK)
            n = 0;
        else
            st = one_product (w, out, err);
        end_fp8 (&w->fp8);
        TRY (st);
    }
    return ST_OK;
}

static enum status measure (struct gpu_work *w, bool all, struct msg_computed *out,
                            struct error *err)
{
    double seconds, host_s;

    for (int i = 0; i < PRECISIONS && (all || out->n_products == 0); i++)
        if (w->capability >= precisions[i].from && w->capability < precisions[i].below)
            TRY (products_in (w, &precisions[i], all ? SHAPES : 1, out, err));
    TRY (median_of (w, NEXT_WARM_UP_S, copy, &seconds, NULL, err));
    out->copy_bytes_per_s = 2.0 * (double) w->bytes / seconds;
    if (!all)
        return ST_OK;
    TRY (median_of (w, NEXT_WARM_UP_S, launch, &seconds, &host_s, err));
    out->launch_s = host_s / LAUNCHES;
    out->kernel_s = seconds / LAUNCHES;
    return ST_OK;
}

enum status cuda_compute (int device, bool all, struct msg_computed *out,
                          struct error *err)
{
    struct gpu_work w = {.rt = cuda_load_runtime (err)};
    enum status st;

    w.blas = w.rt ? cuda_load_blas (err) : NULL;
    if (!w.blas)
        return ST_IO;
    st = prepare (&w, device, all, err);
    THEN (st, measure (&w, all, out, err));
    release (&w);
    return st;
}
