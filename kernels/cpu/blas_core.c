/* blas_core.c - makes OpenBLAS run on the vector units that this machine has.
 *
 * OpenBLAS picks its kernels by CPU model when it is loaded, and for a model newer than itself it falls back to
 * "Prescott": 0.3.21 runs SSE3 code on an Emerald Rapids Xeon, at a fifth of the speed. OPENBLAS_CORETYPE names others,
 * but it is read by OpenBLAS's constructor, when main has not begun and the C library's environment cannot be written.
 * So the choice is made once more by our own constructor, which runs after OpenBLAS's and before any product: with the
 * same two functions that OpenBLAS calls itself. They are weak here: a build of OpenBLAS with one fixed set of kernels
 * has none. Only the fallback is overruled, and never a value that the user set; what the CPU can do is asked of the
 * CPU. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"

#include <cblas.h>

const char *cpu_blas_core(void)
{
    return openblas_get_corename();
}

#ifdef __x86_64__

extern void gotoblas_dynamic_quit(void) __attribute__((weak));
extern void gotoblas_dynamic_init(void) __attribute__((weak));

static const char *best_core(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "Haswell";
    return NULL;
}

__attribute__((constructor)) static void blas_core_choose(void)
{
    const char *core = best_core();

    if (core == NULL || gotoblas_dynamic_quit == NULL || gotoblas_dynamic_init == NULL ||
        strcmp(openblas_get_corename(), "Prescott") != 0 || setenv("OPENBLAS_CORETYPE", core, 0) != 0)
        return;
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
}

#endif
