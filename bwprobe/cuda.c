#include "bwprobe/cuda.h"

#include "bwprobe/cuda_private.h"

#include <ctype.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- libraries ---- */

/* Two steps, so that a name that nvidia.h renames is taken as renamed. */
#define QUOTE(name) #name
#define SYMBOL(result, name, parameters) QUOTE (name),

enum { FILES = 4 }; /* names of one library at most */

struct library {
    const char *file[FILES];
    const char *const *symbol; /* in the order of the pointers in the functions' struct */
    int symbols;
};

struct search {
    const char *const
        *file;     /* [FILES] names to try in turn, NULL where there are fewer */
    void *lib;     /* what was found */
    char why[256]; /* what the loader said of a file that is there; "": none is */
};

static void try_to_open (struct search *s, const char *path)
{
    const char *why;

    s->lib = dlopen (path, RTLD_NOW | RTLD_LOCAL);
    why = s->lib ? NULL : dlerror ();
    if (why && strchr (path, '/'))
        snprintf (s->why, sizeof s->why, ": %s", why);
}

/* Every file of the library's names in folders that a pattern names. */
static void look_in (struct search *s, const char *folders)
{
    char pattern[4096];
    glob_t found;

    for (int i = 0; i < FILES && s->file[i] && !s->lib; i++) {
        snprintf (pattern, sizeof pattern, "%s/%s", folders, s->file[i]);
        if (glob (pattern, GLOB_BRACE, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc && !s->lib; k++)
            try_to_open (s, found.gl_pathv[k]);
        globfree (&found);
    }
}

/* The packages of the Pythons whose programs are in PATH, and the user's own: wheels bring
 * NVIDIA's libraries along. */
static void look_in_wheels (struct search *s)
{
    static const char wheels[] = "lib/python3*/{site,dist}-packages/nvidia/*/lib";
    const char *home = getenv ("HOME"), *path = getenv ("PATH");
    char folders[4096];

    for (path = path ? path : ""; *path && !s->lib; path += strspn (path, ":")) {
        int n = (int) strcspn (path, ":");

        snprintf (folders, sizeof folders, "%.*s/../%s", n, path, wheels);
        look_in (s, folders);
        path += n;
    }
    if (home && !s->lib) {
        snprintf (folders, sizeof folders, "%s/.local/%s", home, wheels);
        look_in (s, folders);
    }
}

/* @return the library, or NULL with what was missing and where it was looked for */
static void *find_library (const char *const file[FILES], struct error *err)
{
    const char *set = getenv ("CUDA_HOME"), *home = set ? set : "/usr/local/cuda";
    struct search s = {.file = file};
    char folders[4096];

    for (int i = 0; i < FILES && file[i] && !s.lib; i++)
        try_to_open (&s, file[i]);
    snprintf (folders, sizeof folders, "%s/{lib64,lib}", home);
    if (!s.lib)
        look_in (&s, folders);
    if (!s.lib)
        look_in_wheels (&s);
    if (!s.lib)
        err_set (err, ST_IO,
                 "%s is missing: not where the system looks (LD_LIBRARY_PATH), nor in "
                 "%.60s/lib64 (CUDA_HOME), nor in nvidia/*/lib of a Python in PATH or "
                 "~/.local%s",
                 file[0], home, s.why);
    return s.lib;
}

static bool load (const struct library *l, void *functions, struct error *err)
{
    void *lib = find_library (l->file, err);

    if (!lib)
        return false;
    for (int i = 0; i < l->symbols; i++) {
        void *f = dlsym (lib, l->symbol[i]);

        if (!f) {
            err_set (err, ST_IO, "%s is too old: it has no %s", l->file[0], l->symbol[i]);
            return false;
        }
        memcpy ((char *) functions + (size_t) i * sizeof f, &f, sizeof f);
    }
    return true;
}

#define COUNT(array) ((int) (sizeof array / sizeof *array))

/* cuda_load_KIND: the functions of one library, looked up once. */
#define LOADER(kind, symbols, ...)                                                     \
    const struct cuda_##kind *cuda_load_##kind (struct error *err)                     \
    {                                                                                  \
        static const char *const symbol[] = {symbols};                                 \
        static const struct library library = {{__VA_ARGS__}, symbol, COUNT (symbol)}; \
        static struct cuda_##kind f;                                                   \
        static bool loaded;                                                            \
        _Static_assert(sizeof f == sizeof symbol, "pointers to functions alone");      \
                                                                                       \
        loaded = loaded || load (&library, &f, err);                                   \
        return loaded ? &f : NULL;                                                     \
    }

LOADER (driver, CUDA_DRIVER (SYMBOL), "libcuda.so.1")
LOADER (runtime, CUDA_RUNTIME (SYMBOL), "libcudart.so.13", "libcudart.so.12",
        "libcudart.so")
LOADER (nccl, CUDA_NCCL (SYMBOL), "libnccl.so.2", "libnccl.so")
LOADER (blas, CUDA_BLAS (SYMBOL), "libcublas.so.13", "libcublas.so.12", "libcublas.so")
LOADER (blaslt, CUDA_BLASLT (SYMBOL), "libcublasLt.so.13", "libcublasLt.so.12",
        "libcublasLt.so")

enum status cuda_check (cudaError_t result, const char *what, struct error *err)
{
    if (result == cudaSuccess)
        return ST_OK;
    return err_set (err, ST_IO, "%s: %s", what,
                    cuda_load_runtime (NULL)->cudaGetErrorString (result));
}

/* ---- GPUs ---- */

int cuda_gpus (struct error *err)
{
    const struct cuda_driver *f = cuda_load_driver (err);
    CUresult result;
    int n = 0;

    if (!f)
        return 0;
    result = f->cuInit (0);
    if (result == CUDA_SUCCESS)
        result = f->cuDeviceGetCount (&n);
    if (result != CUDA_SUCCESS || n < 1) {
        err_set (err, ST_IO, "no GPU (the driver says %d)", (int) result);
        return 0;
    }
    return n;
}

static bool bus_of (const struct cuda_driver *f, int device, char bus[32])
{
    CUdevice dev;

    if (f->cuDeviceGet (&dev, device) != CUDA_SUCCESS ||
        f->cuDeviceGetPCIBusId (bus, 32, dev) != CUDA_SUCCESS)
        return false;
    for (char *s = bus; *s; s++)
        *s = (char) tolower ((unsigned char) *s);
    return true;
}

void cuda_describe (int device, struct gpu_description *gpu)
{
    struct gpu_description g = {.index = 0};
    int n = cuda_gpus (NULL);
    const struct cuda_driver *f = cuda_load_driver (NULL);
    char other[32];
    CUdevice dev;
    CUuuid id;
    size_t bytes;

    if (!f || device < 0 || device >= n || !bus_of (f, device, g.bus) ||
        f->cuDeviceGet (&dev, device) != CUDA_SUCCESS)
        return;
    for (int i = 0; i < n; i++)
        g.index += bus_of (f, i, other) && strcmp (other, g.bus) < 0;
    if (f->cuDeviceGetName (g.product, (int) sizeof g.product, dev) != CUDA_SUCCESS)
        g.product[0] = '\0';
    if (f->cuDeviceTotalMem (&bytes, dev) == CUDA_SUCCESS)
        g.memory_bytes = (double) bytes;
    if (f->cuDeviceGetUuid (&id, dev) == CUDA_SUCCESS) {
        int at = snprintf (g.uuid, sizeof g.uuid, "GPU-");

        for (int i = 0; i < 16; i++)
            at += snprintf (g.uuid + at, sizeof g.uuid - (size_t) at, "%s%02x",
                            i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                            (unsigned char) id.bytes[i]);
    }
    *gpu = g;
}

enum status cuda_can_nccl (struct error *err)
{
    return cuda_gpus (err) > 0 && cuda_load_runtime (err) && cuda_load_nccl (err) ? ST_OK
                                                                                  : ST_IO;
}
