/* Stands in for libcuda, libcudart, libnccl and libcublas where there is no GPU: one "GPU" whose
 * memory is the host's, a stream that is a thread, and communicators that are local sockets.
 * Like the real ones it answers at once, works later, and waits for ever for a partner that is
 * gone until the communicator is aborted.  Parts of a job are told apart by the id alone.  Its
 * events tell the time for which the GPU worked: what sockets took, and an exact time for each
 * product, copy and kernel, so that no busy machine changes what --compute measures. */
#include "bwprobe/nvidia.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define DECLARE(result, name, parameters) result name parameters;
CUDA_DRIVER (DECLARE)
CUDA_RUNTIME (DECLARE)
CUDA_NCCL (DECLARE)
CUDA_BLAS (DECLARE)
CUDA_BLASLT (DECLARE)

/* What the real ones answer beside what bwprobe asks about. */
enum {
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_INVALID_DEVICE = 101,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidDevice = 101,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
};

/* What --compute is to find. */
#define KERNEL_S 2e-6
#define COPY_BYTES_PER_S 2.5e12
#define BF16_FLOP_PER_S 500e12
#define FP8_FLOP_PER_S 800e12
#define TF32_FLOP_PER_S 250e12
#define FP32_FLOP_PER_S 40e12

/* ---- driver ---- */

CUresult cuInit (unsigned int flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuDeviceGetCount (int *n)
{
    *n = 1;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet (CUdevice *d, int i)
{
    *d = i;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName (char *s, int n, CUdevice d)
{
    const char *name = getenv ("FAKE_GPU");

    snprintf (s, (size_t) n, "%s", name ? name : d ? "No GPU" : "Fake GPU 0");
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId (char *s, int n, CUdevice d)
{
    snprintf (s, (size_t) n, "0000:0%d:00.0", d);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid (CUuuid *u, CUdevice d)
{
    const char *rank = getenv ("FAKE_APART") ? getenv ("RANK") : NULL;

    memset (u, 0x11 + d + (rank ? atoi (rank) : 0), sizeof *u);
    return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem (size_t *n, CUdevice d)
{
    *n = getenv ("FAKE_GPU") ? 85000000000 : 1u << 30;
    return d ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
CUresult cuDriverGetVersion (int *v)
{
    *v = 13000;
    return CUDA_SUCCESS;
}

/* ---- the stream ---- */

struct ncclComm {
    char name[80]; /* where the two of a pair meet */
    int rank, size, splits;
    atomic_int fd, aborted;
};

struct event {
    atomic_int done;
    double at;
};

struct op {
    enum { OP_EVENT, OP_SEND, OP_RECV, OP_WORK } what;
    void *p;
    size_t n;
    struct ncclComm *comm;
    double seconds; /* of OP_WORK */
};

static struct op queue[4096];
static unsigned head, tail;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;

static double now (void)
{
    struct timespec t;

    clock_gettime (CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

/* Move all bytes, or stop when the communicator is aborted. */
static void move (const struct op *o)
{
    size_t at = 0;

    while (at < o->n && !o->comm->aborted) {
        int fd = o->comm->fd;
        struct pollfd p = {.fd = fd, .events = o->what == OP_SEND ? POLLOUT : POLLIN};
        ssize_t k;

        if (poll (&p, 1, 20) <= 0)
            continue;
        k = o->what == OP_SEND
                ? send (fd, (char *) o->p + at, o->n - at, MSG_NOSIGNAL | MSG_DONTWAIT)
                : recv (fd, (char *) o->p + at, o->n - at, MSG_DONTWAIT);
        if (k > 0)
            at += (size_t) k;
        else
            usleep (1000); /* NCCL does not notice that a partner is gone either */
    }
}

static void *work (void *arg)
{
    double worked_s = 0;

    for (;;) {
        double begun;
        struct op o;

        pthread_mutex_lock (&lock);
        while (head == tail)
            pthread_cond_wait (&more, &lock);
        o = queue[tail % 4096];
        pthread_mutex_unlock (&lock);
        if (o.what == OP_EVENT) {
            ((struct event *) o.p)->at = worked_s;
            ((struct event *) o.p)->done = 1;
        } else if (o.what == OP_WORK) {
            worked_s += o.seconds;
        } else {
            begun = now ();
            move (&o);
            worked_s += now () - begun;
        }
        pthread_mutex_lock (&lock);
        tail++;
        pthread_mutex_unlock (&lock);
    }
    return arg;
}

static void put (struct op o)
{
    static int started;
    pthread_t t;

    if (!started++)
        pthread_create (&t, NULL, work, NULL);
    pthread_mutex_lock (&lock);
    queue[head++ % 4096] = o;
    pthread_cond_signal (&more);
    pthread_mutex_unlock (&lock);
}

static void put_work (double seconds)
{
    put ((struct op){OP_WORK, NULL, 0, NULL, seconds});
}

/* ---- runtime ---- */

const char *cudaGetErrorString (cudaError_t e)
{
    return e ? "fake error" : "no error";
}
cudaError_t cudaSetDevice (int d)
{
    return d ? cudaErrorInvalidDevice : cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute (int *v, unsigned a, int d)
{
    *v = a == cudaDevAttrComputeCapabilityMajor ? 9 : d;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion (int *v)
{
    *v = 13000;
    return cudaSuccess;
}
cudaError_t cudaMalloc (void **p, size_t n)
{
    *p = malloc (n);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree (void *p)
{
    free (p);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync (void *p, int x, size_t n, cudaStream_t s)
{
    (void) s;
    memset (p, x, n);
    put_work (KERNEL_S);
    return cudaSuccess;
}
cudaError_t cudaMemcpy (void *to, const void *from, size_t n, unsigned k)
{
    memcpy (to, from, n);
    return k ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaMemcpyAsync (void *to, const void *from, size_t n, unsigned k,
                             cudaStream_t s)
{
    (void) s;
    put_work (2.0 * (double) n / COPY_BYTES_PER_S);
    return cudaMemcpy (to, from, n, k);
}
cudaError_t cudaMemGetInfo (size_t *a, size_t *b)
{
    *a = *b = 1u << 28;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags (cudaStream_t *s, unsigned int f)
{
    *s = malloc (1 + f);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy (cudaStream_t s)
{
    free (s);
    return cudaSuccess;
}
cudaError_t cudaStreamQuery (cudaStream_t s)
{
    unsigned left;

    (void) s;
    pthread_mutex_lock (&lock);
    left = head - tail;
    pthread_mutex_unlock (&lock);
    return left ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventCreate (cudaEvent_t *e)
{
    *e = calloc (1, sizeof (struct event));
    return cudaSuccess;
}
cudaError_t cudaEventDestroy (cudaEvent_t e)
{
    free (e);
    return cudaSuccess;
}
cudaError_t cudaEventRecord (cudaEvent_t e, cudaStream_t s)
{
    (void) s;
    ((struct event *) e)->done = 0;
    put ((struct op){.what = OP_EVENT, .p = e});
    return cudaSuccess;
}
/* Ranks are more than processors: one that would ask again and again lets the others work. */
cudaError_t cudaEventQuery (cudaEvent_t e)
{
    if (!((struct event *) e)->done)
        usleep (300);
    return ((struct event *) e)->done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime (float *ms, cudaEvent_t a, cudaEvent_t b)
{
    *ms = (float) (1e3 * (((struct event *) b)->at - ((struct event *) a)->at));
    return cudaSuccess;
}

/* ---- NCCL ---- */

ncclResult_t ncclGetVersion (int *v)
{
    *v = 22809;
    return ncclSuccess;
}
const char *ncclGetErrorString (ncclResult_t r)
{
    return r ? "fake error" : "no error";
}
const char *ncclGetLastError (ncclComm_t c)
{
    (void) c;
    return "";
}
ncclResult_t ncclGetUniqueId (ncclUniqueId *id)
{
    static int n;
    const char *log = getenv ("FAKE_NCCL_LOG"), *name = getenv ("NCCL_SOCKET_IFNAME");
    FILE *f = log ? fopen (log, "a") : NULL;

    /* The real one reads it here. */
    if (f) {
        fprintf (f, "%s\n", name ? name : "");
        fclose (f);
    }
    memset (id, 0, sizeof *id);
    snprintf (id->internal, sizeof id->internal, "fake-nccl-%d-%d", (int) getpid (), n++);
    return ncclSuccess;
}

/* The first of a pair listens, the second knocks until somebody opens. */
static void *meet (void *arg)
{
    struct ncclComm *c = arg;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int s = socket (AF_UNIX, SOCK_STREAM, 0), fd = -1;

    memcpy (a.sun_path + 1, c->name, strlen (c->name));
    if (c->rank == 0 &&
        (bind (s, (struct sockaddr *) &a, sizeof a) != 0 || listen (s, 1) != 0))
        abort ();
    while (fd < 0 && !c->aborted) {
        struct pollfd p = {.fd = s, .events = POLLIN};

        if (c->rank == 0)
            fd = poll (&p, 1, 20) > 0 ? accept (s, NULL, NULL) : -1;
        else if (connect (s, (struct sockaddr *) &a, sizeof a) == 0)
            fd = dup (s);
        else
            usleep (1000);
    }
    close (s);
    c->fd = fd;
    return NULL;
}

static struct ncclComm *comm_of (const char *name, int rank, int size)
{
    struct ncclComm *c = calloc (1, sizeof *c);
    pthread_t t;

    snprintf (c->name, sizeof c->name, "%.79s", name);
    c->rank = rank;
    c->size = size;
    c->fd = size == 2 ? -1 : 0;
    if (size == 2 && pthread_create (&t, NULL, meet, c) == 0)
        pthread_detach (t);
    return c;
}

ncclResult_t ncclCommInitRankConfig (ncclComm_t *c, int n, ncclUniqueId id, int rank,
                                     ncclConfig_t *config)
{
    if (config->blocking != 0)
        return ncclInvalidArgument;
    *c = comm_of (id.internal, rank, n);
    return ncclInProgress;
}

ncclResult_t ncclCommSplit (ncclComm_t parent, int color, int key, ncclComm_t *c,
                            ncclConfig_t *config)
{
    char name[128];

    (void) config;
    *c = NULL;
    snprintf (name, sizeof name, "%.50s/%d/%d", parent->name, parent->splits++, color);
    if (color >= 0)
        *c = comm_of (name, key, 2);
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError (ncclComm_t c, ncclResult_t *r)
{
    *r = c->fd < 0 ? ncclInProgress : ncclSuccess;
    return ncclSuccess;
}
ncclResult_t ncclCommFinalize (ncclComm_t c)
{
    return c->aborted ? ncclInvalidUsage : ncclInProgress;
}
ncclResult_t ncclCommAbort (ncclComm_t c)
{
    c->aborted = 1;
    if (c->fd > 0)
        shutdown (c->fd, SHUT_RDWR);
    return ncclSuccess;
}
ncclResult_t ncclCommDestroy (ncclComm_t c)
{
    return ncclCommAbort (c);
}
ncclResult_t ncclSend (const void *p, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
                       cudaStream_t s)
{
    (void) s;
    if (t != ncclUint8 || peer != !c->rank || c->size != 2)
        return ncclInvalidArgument;
    put ((struct op){OP_SEND, (void *) (uintptr_t) p, n, c, 0});
    return ncclInProgress;
}
ncclResult_t ncclRecv (void *p, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
                       cudaStream_t s)
{
    (void) s;
    if (t != ncclUint8 || peer != !c->rank || c->size != 2)
        return ncclInvalidArgument;
    put ((struct op){OP_RECV, p, n, c, 0});
    return ncclInProgress;
}

/* ---- cuBLAS ---- */

cublasStatus_t cublasCreate (cublasHandle_t *h)
{
    *h = malloc (1);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy (cublasHandle_t h)
{
    free (h);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream (cublasHandle_t h, cudaStream_t s)
{
    return h && s ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasGemmEx (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb,
                             int m, int n, int k, const void *alpha, const void *a,
                             cudaDataType_t at, int lda, const void *b, cudaDataType_t bt,
                             int ldb, const void *beta, void *c, cudaDataType_t ct,
                             int ldc, cublasComputeType_t ctype, cublasGemmAlgo_t algo)
{
    const double rate = at == CUDA_R_16BF                       ? BF16_FLOP_PER_S
                        : ctype == CUBLAS_COMPUTE_32F_FAST_TF32 ? TF32_FLOP_PER_S
                                                                : FP32_FLOP_PER_S;

    (void) h, (void) ta, (void) tb, (void) alpha, (void) a, (void) b, (void) bt;
    (void) beta, (void) c, (void) ct, (void) algo;
    put_work (2.0 * m * n * k / rate);
    usleep (1000);
    return n > 0 && lda == m && ldb == k && ldc == m ? CUBLAS_STATUS_SUCCESS
                                                     : CUBLAS_STATUS_INVALID_VALUE;
}

/* ---- cuBLASLt ---- */

struct cublasLtMatmulDesc {
    uint64_t data[32];
};
struct cublasLtMatrixLayout {
    uint64_t data[8];
};
struct cublasLtMatmulPreference {
    uint64_t data[8];
};

cublasStatus_t cublasLtCreate (cublasLtHandle_t *h)
{
    *h = malloc (1);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy (cublasLtHandle_t h)
{
    free (h);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate (cublasLtMatmulDesc_t *d, cublasComputeType_t c,
                                         cudaDataType_t t)
{
    *d = calloc (1, sizeof **d);
    return c == CUBLAS_COMPUTE_32F && t == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS
                                                      : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulDescDestroy (cublasLtMatmulDesc_t d)
{
    free (d);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute (cublasLtMatmulDesc_t d,
                                               cublasLtMatmulDescAttributes_t a,
                                               const void *x, size_t n)
{
    (void) a;
    return d && x && n ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate (cublasLtMatrixLayout_t *l, cudaDataType_t t,
                                           uint64_t rows, uint64_t columns, int64_t ld)
{
    *l = calloc (1, sizeof **l);
    (*l)->data[0] = rows;
    (*l)->data[1] = columns;
    (*l)->data[2] = (uint64_t) t;
    return (int64_t) rows == ld ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutDestroy (cublasLtMatrixLayout_t l)
{
    free (l);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate (cublasLtMatmulPreference_t *p)
{
    *p = calloc (1, sizeof **p);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy (cublasLtMatmulPreference_t p)
{
    free (p);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatmulPreferenceSetAttribute (cublasLtMatmulPreference_t p,
                                      cublasLtMatmulPreferenceAttributes_t a,
                                      const void *x, size_t n)
{
    (void) a;
    return p && x && n ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
/* As on a GPU without fp8 where FAKE_NO_FP8 is set; sizes must fit each other. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic (
    cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t to,
    cublasLtMatmulPreference_t p, int n, cublasLtMatmulHeuristicResult_t *out, int *found)
{
    (void) h, (void) d, (void) to, (void) p;
    memset (out, 0, sizeof *out);
    *found = !getenv ("FAKE_NO_FP8");
    return n == 1 && a->data[0] == b->data[0] && a->data[1] == c->data[0] &&
                   b->data[1] == c->data[1] && a->data[2] == CUDA_R_8F_E4M3
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmul (
    cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *a,
    cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta,
    const void *c, cublasLtMatrixLayout_t lc, void *to, cublasLtMatrixLayout_t lto,
    const cublasLtMatmulAlgo_t *algo, void *room, size_t bytes, cudaStream_t s)
{
    (void) h, (void) d, (void) alpha, (void) beta, (void) c, (void) lc, (void) to;
    (void) lto, (void) algo, (void) room, (void) bytes, (void) s;
    put_work (2.0 * (double) (la->data[0] * la->data[1] * lb->data[1]) / FP8_FLOP_PER_S);
    usleep (1000);
    return a && b ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
