/* optim.cu - gradient norm, Adam, the count of updates and the end of a minibatch. Muon is in muon.cu.
 * Invariant: with a norm that is NaN or the stop flag set nothing is written: not weights, not moments, not the
 * step. */
#include "kernels/cuda/learn/optim.h"

#include "kernels/cuda/number.h"

#define BLOCK 256
#define NORM_BLOCKS 128 /* at most: the last one adds their sums */
#define NORM_EACH 8 /* numbers of a thread in a small vector */
#define ADAM_EACH 4

/* ---- norm ---- */

static __global__ void __launch_bounds__(BLOCK) grad_norm_k(float *norm, struct kern_stats *stats, const float *g,
                                                            size_t n, bool wide, double *partials, unsigned *ticket)
{
    ptx_chained();
    __shared__ double scratch[BLOCK / CUDA_WARP];
    size_t at = (size_t)blockIdx.x * BLOCK + threadIdx.x, step = (size_t)gridDim.x * BLOCK, n_wide = wide ? n / 4 : 0;
    double sum = 0.0;

    for (size_t i = at; i < n_wide; i += step) {
        float4 x = ((const float4 *)g)[i];
        sum += (double)x.x * (double)x.x + (double)x.y * (double)x.y + (double)x.z * (double)x.z +
               (double)x.w * (double)x.w;
    }
    for (size_t i = n_wide * 4 + at; i < n; i += step)
        sum += (double)g[i] * (double)g[i];
    sum = num_block_sum(sum, scratch);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
    if (!num_last_block(ticket, gridDim.x))
        return;
    sum = num_block_sum(threadIdx.x < gridDim.x ? ((volatile double *)partials)[threadIdx.x] : 0.0, scratch);
    if (threadIdx.x > 0)
        return;
    double value = sqrt(sum);
    bool is_finite = isfinite((float)value);
    *norm = is_finite ? (float)value : NAN;
    if (stats->stop != 0)
        return;
    if (is_finite)
        stats->grad_norm += value;
    else
        stats->nonfinite++;
}

void cuda_grad_norm(struct kern *k, float *norm, struct kern_stats *stats, const float *g, size_t n)
{
    struct cuda *cuda = cuda_of(k);
    unsigned grid = cuda_ceil_div(n > 0 ? n : 1, BLOCK * NORM_EACH);

    grid = grid < NORM_BLOCKS ? grid : NORM_BLOCKS;
    cuda_chain(k, "grad_norm", grad_norm_k, grid, BLOCK, 0, norm, stats, g, n, ((uintptr_t)g & 15) == 0,
               (double *)cuda->partials, cuda->tickets);
}

/* ---- Adam ---- */

static __global__ void __launch_bounds__(BLOCK)
    adam_k(float *w, float *m, float *v, const float *g, const float *norm, const struct kern_stats *stats,
           const int64_t *step, const struct kern_hyper *hyper, size_t n, bool wide)
{
    ptx_chained();
    size_t at = ((size_t)blockIdx.x * BLOCK + threadIdx.x) * ADAM_EACH;

    if (optim_is_off(norm, stats) || at >= n)
        return;
    const struct adam_rates a = adam_rates_of(norm, hyper, *step + 1);
    if (wide && at + ADAM_EACH <= n) {
        float wi[ADAM_EACH], mi[ADAM_EACH], vi[ADAM_EACH], gi[ADAM_EACH];
        num_load<ADAM_EACH>(wi, w + at), num_load<ADAM_EACH>(mi, m + at);
        num_load<ADAM_EACH>(vi, v + at), num_load<ADAM_EACH>(gi, g + at);
#pragma unroll
        for (int i = 0; i < ADAM_EACH; i++)
            adam_one(&wi[i], &mi[i], &vi[i], gi[i], &a);
        num_store<ADAM_EACH>(w + at, wi), num_store<ADAM_EACH>(m + at, mi), num_store<ADAM_EACH>(v + at, vi);
    } else {
        for (size_t i = at; i < at + ADAM_EACH && i < n; i++)
            adam_one(&w[i], &m[i], &v[i], g[i], &a);
    }
}

void cuda_adam(struct kern *k, const struct kern_optimiser *o)
{
    bool wide = (((uintptr_t)o->w | (uintptr_t)o->m | (uintptr_t)o->v | (uintptr_t)o->g) & 15) == 0;

    if (o->n == 0)
        return;
    cuda_chain(k, "adam", adam_k, cuda_ceil_div(o->n, BLOCK * ADAM_EACH), BLOCK, 0, o->w, o->m, o->v, o->g, o->norm,
               o->stats, o->step, o->hyper, o->n, wide);
}

/* ---- counts ---- */

static __global__ void optimiser_tick_k(int64_t *step, const float *norm, const struct kern_stats *stats)
{
    ptx_chained();
    if (!optim_is_off(norm, stats))
        ++*step;
}

void cuda_optimiser_tick(struct kern *k, int64_t *step, const float *norm, const struct kern_stats *stats)
{
    cuda_chain(k, "optimiser_tick", optimiser_tick_k, 1, 1, 0, step, norm, stats);
}

static __global__ void minibatch_stats_k(struct kern_stats *stats, struct kern_stats *parts, size_t n_parts,
                                         const struct kern_hyper *hyper)
{
    ptx_chained();
    struct kern_stats s = *stats;
    bool is_off = s.stop != 0;

    s.n_minibatches += 1.0;
    s.last_kl = 0.0;
    for (size_t i = 0; i < n_parts; i++) {
        struct kern_stats p = parts[i];
        s.n_tokens += p.n_tokens;
        s.policy_loss += p.policy_loss;
        s.value_loss += p.value_loss;
        s.entropy += p.entropy;
        s.approx_kl += p.approx_kl;
        s.clip_fraction += p.clip_fraction;
        s.ret_sum += p.ret_sum;
        s.ret_sq += p.ret_sq;
        s.err_sum += p.err_sum;
        s.err_sq += p.err_sq;
        s.last_kl += p.last_kl;
        parts[i] = (struct kern_stats){};
    }
    if (hyper->target_kl > 0.0f && s.last_kl > (double)hyper->target_kl)
        s.stop = 1;
    if (!is_off)
        *stats = s;
}

void cuda_minibatch_stats(struct kern *k, struct kern_stats *stats, struct kern_stats *parts, size_t n_parts,
                          const struct kern_hyper *hyper)
{
    cuda_chain(k, "minibatch_stats", minibatch_stats_k, 1, 1, 0, stats, parts, n_parts, hyper);
}
