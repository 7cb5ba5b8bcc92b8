/* suggest_bench.c - time of one proposal of `pareto`, or of a batch of them, one thread:
 * suggest_bench [N [DIM [PENDING [REPEATS [BATCH]]]]].
 * A made-up study of N finished trials over DIM parameters and PENDING running ones; at every repeat one more has ended
 * and a suggester that lives through them all is asked. The first call fits hyper-parameters, as after a resume. Prints
 * one JSON object; times are of this thread's CPU (the machine may be shared) and of the wall. */

#include <cblas.h>

#include "base/rng.h"
#include "gp/gp.h"

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long argument(int argc, char **argv, int at, long def)
{
    long value = argc > at ? strtol(argv[at], NULL, 10) : def;
    return value > 0 ? value : def;
}

int main(int argc, char **argv)
{
    size_t n = (size_t)argument(argc, argv, 1, 200), dim = (size_t)argument(argc, argv, 2, 12);
    size_t n_pending = argc > 3 ? (size_t)strtol(argv[3], NULL, 10) : 0, repeats = (size_t)argument(argc, argv, 4, 21);
    size_t batch = (size_t)argument(argc, argv, 5, 1), n_made;
    struct space space = {.dim = dim};
    struct error err = {0};
    openblas_set_num_threads(1);
    mem_keep_freed((size_t)64 << 20); /* as the controller's thread of proposals */
    if (dim > SPACE_MAX_DIM)
        return 2;
    for (size_t i = 0; i < dim; i++) {
        struct space_param *p = &space.params[i];
        snprintf(p->key, sizeof p->key, "bench.p%zu", i);
        p->scale = i % 4 == 0 ? SPACE_LOG : i % 4 == 1 ? SPACE_LINEAR : i % 4 == 2 ? SPACE_POW2 : SPACE_LOGIT;
        p->min = i % 4 == 2 ? 8 : 0.01;
        p->max = i % 4 == 2 ? 4096 : 0.99;
    }
    size_t n_all = n + repeats + n_pending;
    struct gp_trial *trials = mem_array(n_all, sizeof *trials);
    double *x = mem_array2(n_all, dim, sizeof *x), *cpu = mem_array(repeats, sizeof *cpu),
           *wall = mem_array(repeats, sizeof *wall);
    struct rng r = rng_seed(1);
    for (size_t k = 0; k < n_all; k++) {
        double u[SPACE_MAX_DIM];
        for (size_t i = 0; i < dim; i++)
            u[i] = rng_f64(&r);
        space_from_unit(&space, u, x + k * dim);
        double bump = exp(-4.0 * (u[0] - 0.4) * (u[0] - 0.4) - 3.0 * (u[1 % dim] - 0.6) * (u[1 % dim] - 0.6));
        trials[k] = (struct gp_trial){.x = x + k * dim, .state = k < n ? GP_TRIAL_DONE : GP_TRIAL_PENDING};
        trials[k].cost = 10.0 * exp(3.0 * u[2 % dim] + 0.05 * rng_f64(&r));
        trials[k].score = bump * (1.0 - exp(-1.0 - 2.0 * u[2 % dim])) + 0.02 * rng_f64(&r);
    }
    struct suggest_settings settings = {.method = SUGGEST_PARETO, .seed = 1};
    struct suggester *s;
    struct suggestion *made = mem_array(batch, sizeof *made);
    if (suggester_create(&s, &space, &settings, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double first = 0.0;
    for (size_t k = 0; k < repeats; k++) { /* a trial has ended, and a worker asks */
        trials[n + k].state = GP_TRIAL_DONE;
        struct gp_history history = {.n = n + k + 1 + n_pending, .trials = trials};
        double cpu_0 = seconds(CLOCK_THREAD_CPUTIME_ID), wall_0 = seconds(CLOCK_MONOTONIC);
        if (suggester_batch(s, &history, (int64_t)history.n, batch, made, &n_made, &err) != ST_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        cpu[k] = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu_0;
        wall[k] = seconds(CLOCK_MONOTONIC) - wall_0;
        first = k == 0 ? cpu[0] : first;
    }
    suggester_destroy(s);
    num_sort(cpu, repeats);
    num_sort(wall, repeats);
    printf("{\"observations\": %zu, \"dim\": %zu, \"pending\": %zu, \"repeats\": %zu, \"batch\": %zu, "
           "\"cpu_ms_first\": %.2f, "
           "\"cpu_ms_p50\": %.2f, \"cpu_ms_p95\": %.2f, \"wall_ms_p50\": %.2f, \"wall_ms_p95\": %.2f}\n",
           n, dim, n_pending, repeats, batch, 1e3 * first, 1e3 * cpu[repeats / 2], 1e3 * cpu[repeats * 95 / 100],
           1e3 * wall[repeats / 2], 1e3 * wall[repeats * 95 / 100]);
    mem_free(made);
    mem_free(trials);
    mem_free(x);
    mem_free(cpu);
    mem_free(wall);
    return 0;
}
