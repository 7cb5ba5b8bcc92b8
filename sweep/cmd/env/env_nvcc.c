/* env_nvcc.c - the GPU half of `trawl env build`. */
#include "sweep/cmd/env/env_nvcc.h"

#include "base/os/file.h"
#include "kernels/kernels.h"
#include "sweep/cmd/env/compiler.h"

#define USUAL_NVCC "/usr/local/cuda/bin/nvcc"

static bool on_path(char ret_path[PATH_MAX])
{
    const char *path = getenv("PATH");

    for (size_t n; path != NULL && *path != '\0'; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        if (n > 0 && snprintf(ret_path, PATH_MAX, "%.*s/nvcc", (int)n, path) < PATH_MAX && access(ret_path, X_OK) == 0)
            return true;
    }
    return false;
}

enum status env_nvcc_find(char ret_path[PATH_MAX], struct error *err)
{
    const char *own = getenv("NVCC");

    if (kern_env_device_text() == NULL)
        return FAIL(err, ST_NOTFOUND, "this trawl was built without CUDA, so it plays on the CPU alone");
    if (own != NULL && own[0] != '\0') {
        snprintf(ret_path, PATH_MAX, "%s", own);
        return ST_OK;
    }
    if (on_path(ret_path))
        return ST_OK;
    snprintf(ret_path, PATH_MAX, "%s", USUAL_NVCC);
    if (access(ret_path, X_OK) == 0)
        return ST_OK;
    return FAIL(err, ST_NOTFOUND, "no nvcc on PATH and none at " USUAL_NVCC "; NVCC names one");
}

/* Runs nvcc and frees its words. */
static enum status run(struct compiler *c, const char *folder, struct error *err)
{
    char log[PATH_MAX + 32];

    snprintf(log, sizeof log, "%s/nvcc.log", folder);
    enum status rc = compiler_run(c, log, err);
    compiler_free(c);
    return rc;
}

enum status env_nvcc_compile(const char *nvcc, const char *header, const char *name, const char *folder,
                             const char *flags, struct error *err)
{
    char path[PATH_MAX + 32], text[PATH_MAX + 1024];
    struct compiler c = {.n = 0};

    snprintf(path, sizeof path, "%s/trawl_env_device.cuh", folder);
    TRY(file_write_all(path, kern_env_device_text(), strlen(kern_env_device_text()), err));
    snprintf(path, sizeof path, "%s/device.cu", folder);
    snprintf(text, sizeof text,
             "#include \"trawl_env.h\"\n#include \"%s\"\n#ifdef ENV_GAME_BYTES\n#define ENV_DEVICE_DEFAULT "
             "env_gpu_bytes\n#else\n#define ENV_DEVICE_DEFAULT env_gpu_direct\n#endif\n#define ENV_GAME %s\n#include "
             "\"trawl_env.h\"\n#define ENV_GAMES(X) X(%s)\n#include \"trawl_env_device.cuh\"\n",
             header, name, name);
    TRY(file_write_all(path, text, strlen(text), err));
    compiler_add(&c, "", nvcc);
    /* as the program's own kernels are compiled; -fmad=false: the same bytes as on the host */
    compiler_add_words(&c, "-O3 -std=c++17 -fmad=false -w -Xcompiler "
                           "-fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics");
    compiler_add_words(&c, kern_env_device_flags());
    compiler_add_flags(&c, flags, "DUI"); /* by which a header finds what it needs */
    compiler_add(&c, "-I", folder);
    compiler_add_words(&c, "-c");
    compiler_add(&c, "", path);
    compiler_add_words(&c, "-o");
    compiler_add(&c, folder, "/device.o");
    return run(&c, folder, err);
}

enum status env_nvcc_link(const char *nvcc, const char *folder, const char *out, const char *flags, struct error *err)
{
    struct compiler c = {.n = 0};

    compiler_add(&c, "", nvcc);
    compiler_add_words(&c, "-shared -cudart static -Xlinker --as-needed,--exclude-libs=ALL");
    compiler_add_words(&c, kern_env_device_flags());
    compiler_add(&c, folder, "/glue.o");
    compiler_add(&c, folder, "/device.o");
    compiler_add_words(&c, "-o");
    compiler_add(&c, "", out);
    compiler_add_flags(&c, flags, "Ll"); /* by which the linker finds its libraries */
    compiler_add_words(&c, "-lm");
    return run(&c, folder, err);
}
