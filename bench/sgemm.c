/* sgemm.c - what this machine's matrix product reaches: the yardstick for the speed of training.
 * usage: sgemm M N K   C (M, N) = A (M, K) B (N, K)^T in f32, the best of several runs, as a JSON object. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/os/clock.h"
#include "base/mem.h"

#define RUNS 7
#define RUN_S 0.3 /* each run repeats the product for at least this long */

static double gflops_of_run(size_t m, size_t n, size_t k, const float *a, const float *b, float *c)
{
    double from = clock_mono_s(), s;
    size_t products = 0;

    do {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)n, (int)k, 1.0f, a, (int)k, b, (int)k, 0.0f,
                    c, (int)n);
        products++;
        s = clock_mono_s() - from;
    } while (s < RUN_S);
    return 2e-9 * (double)m * (double)n * (double)k * (double)products / s;
}

int main(int argc, char **argv)
{
    size_t size[3];
    double best = 0.0;
    float *a, *b, *c;

    for (int i = 0; i < 3; i++)
        if (argc != 4 || (size[i] = strtoul(argv[i + 1], NULL, 10)) < 1 || size[i] > 100000) {
            fprintf(stderr, "usage: sgemm M N K, each from 1 to 100000\n");
            return 2;
        }
    a = mem_array2(size[0], size[2], sizeof *a);
    b = mem_array2(size[1], size[2], sizeof *b);
    c = mem_array2(size[0], size[1], sizeof *c);
    for (size_t i = 0; i < size[0] * size[2]; i++)
        a[i] = (float)(i % 17) * 0.125f - 1.0f;
    for (size_t i = 0; i < size[1] * size[2]; i++)
        b[i] = (float)(i % 13) * 0.125f - 0.75f;
    for (int run = 0; run < RUNS; run++) {
        double gflops = gflops_of_run(size[0], size[1], size[2], a, b, c);
        if (gflops > best)
            best = gflops;
    }
    printf("{\"m\": %zu, \"n\": %zu, \"k\": %zu, \"gflops\": %.1f, \"core\": \"%s\"}\n", size[0], size[1], size[2],
           best, openblas_get_corename());
    mem_free(a);
    mem_free(b);
    mem_free(c);
    return 0;
}
