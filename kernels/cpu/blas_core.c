/* blas_core.c - makes OpenBLAS run on the vector units that this machine has.
 *
 * OpenBLAS picks its kernels by CPU model when it is loaded, and a release older than the CPU picks its oldest ones: 0.3.21
 * runs SSE3 code on an Emerald Rapids Xeon, a fifth of the speed. It reads OPENBLAS_CORETYPE at that moment, before main. A
 * function in the executable's .preinit_array runs before the constructors of every shared library, so the
 * variable can be set there. What the CPU can do is asked of the CPU, not of its model number.
 * A value that the user set is left alone; a build of OpenBLAS with one fixed set of kernels does not read the variable. */
#include "kernels/cpu/cpu_priv.h"

#include <cblas.h>
#include <stdlib.h>

const char *cpu_blas_core(void)
{
    return openblas_get_corename();
}

#if defined(__x86_64__) && defined(__linux__)

/* Runs before anything of ours and before a sanitizer is set up: touches nothing but the environment. */
__attribute__((no_sanitize("address", "undefined", "thread"))) static void blas_core_choose(int argc, char **argv,
                                                                                            char **envp)
{
    (void)argc, (void)argv, (void)envp;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        setenv("OPENBLAS_CORETYPE", "Haswell", 0);
}

typedef void preinit_fn(int argc, char **argv, char **envp);
__attribute__((section(".preinit_array"), used)) static preinit_fn *const blas_core_preinit = blas_core_choose;

#endif
