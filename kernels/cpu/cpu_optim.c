/* cpu_optim.c - gradient norm, Adam and Muon over the flat parameter vector.
 * Invariant: with a norm that is NaN or the stop flag set nothing is written: not weights, not moments, not the
 * step. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"

#define FLOAT_GRAIN 1024
#define ROW_GRAIN 16
#define MUON_STEPS 5

/* X <- a X + b (X X^T) X + c (X X^T)^2 X */
static const float muon_coef[MUON_STEPS][3] = {
    {4.0848f, -6.8946f, 2.9270f}, {3.9505f, -6.3029f, 2.6377f}, {3.7418f, -5.5913f, 2.3037f},
    {2.8769f, -3.1427f, 1.2046f}, {2.8366f, -3.0525f, 1.2012f},
};

static bool step_is_off(const float *norm, const struct kern_stats *stats)
{
    return !isfinite(*norm) || stats->stop != 0;
}

static float clip_scale(const float *norm, const struct kern_hyper *hyper)
{
    float scale = hyper->max_grad_norm / (*norm + 1e-6f);
    return hyper->max_grad_norm > 0.0f && scale < 1.0f ? scale : 1.0f;
}

/* |x|^2 in f64 */
static double sum_sq(const float *x, size_t n)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

struct norm_job {
    struct cpu *cpu;
    const float *g;
};

static void norm_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct norm_job *job = (const struct norm_job *)ctx;
    job->cpu->partials[worker * CPU_PARTIALS] = sum_sq(job->g + from, to - from);
}

void cpu_grad_norm(struct kern *k, float *norm, struct kern_stats *stats, const float *g, size_t n)
{
    struct norm_job job = {.cpu = cpu_of(k), .g = g};

    cpu_run(k, n, FLOAT_GRAIN, norm_part, &job);
    double value = sqrt(cpu_partial_sum(k, 0));
    *norm = isfinite((float)value) ? (float)value : NAN;
    if (stats->stop)
        return;
    if (isnan(*norm))
        stats->nonfinite++;
    else
        stats->grad_norm += value;
}

struct adam_job {
    const struct kern_optimiser *of;
    float scale, beta1, beta2, rate, inv_sqrt2, eps, keep;
};

static void adam_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct adam_job a = *(const struct adam_job *)ctx;
    float *ws = a.of->w, *ms = a.of->m, *vs = a.of->v;
    const float *gs = a.of->g;

    (void)worker;
#pragma omp simd
    for (size_t i = from; i < to; i++) {
        float g = gs[i] * a.scale;
        float m = a.beta1 * ms[i] + (1.0f - a.beta1) * g;
        float v = a.beta2 * vs[i] + (1.0f - a.beta2) * g * g;
        ms[i] = m;
        vs[i] = v;
        ws[i] = ws[i] * a.keep - a.rate * m / (sqrtf(v) * a.inv_sqrt2 + a.eps);
    }
}

/* w -= lr m^ / (sqrt(v^) + eps), after w *= 1 - lr weight_decay; m^ = m / (1 - beta1^t), v^ = v / (1 - beta2^t) */
void cpu_adam(struct kern *k, const struct kern_optimiser *o)
{
    const struct kern_hyper *hyper = o->hyper;
    double t = (double)(*o->step + 1);
    struct adam_job a = {.of = o, .beta1 = hyper->beta1, .beta2 = hyper->beta2, .eps = hyper->eps};

    if (step_is_off(o->norm, o->stats))
        return;
    a.scale = clip_scale(o->norm, hyper);
    a.rate = (float)((double)hyper->lr / (1.0 - pow((double)hyper->beta1, t)));
    a.inv_sqrt2 = (float)(1.0 / sqrt(1.0 - pow((double)hyper->beta2, t)));
    a.keep = 1.0f - hyper->lr * hyper->weight_decay;
    cpu_run(k, o->n, FLOAT_GRAIN, adam_part, &a);
}

struct gemm_job {
    bool a_t;
    size_t n, k;
    float alpha, beta;
    const float *a, *b;
    float *c;
    size_t lda, ldb;
};

/* Rows [from, to) of c (m, n); b is never transposed. */
static void gemm_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct gemm_job *j = (const struct gemm_job *)ctx;
    (void)worker;
    if (from < to)
        cpu_gemm(j->a_t, false, to - from, j->n, j->k, j->alpha, j->a + (j->a_t ? from : from * j->lda), j->lda, j->b,
                 j->ldb, j->beta, j->c + from * j->n, j->n);
}

/* u = g scale + mu m after m = mu m + g scale, over n numbers, into x (may not be m); returns |u|_F. */
static double muon_momentum(float *x, float *m, const float *g, float scale, float mu, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float gi = g[i] * scale;
        m[i] = mu * m[i] + gi;
        x[i] = gi + mu * m[i];
    }
    return sqrt(sum_sq(x, n));
}

/* One Newton-Schulz step of x (rows, cols) into next, with S = X X^T (wide) or X^T X (tall), whichever is smaller:
 * a X + (b S + c S^2) X, or X (b S + c S^2) on the right. s, poly: (side, side). */
static void muon_iterate(struct kern *k, float *next, const float *x, float *s, float *poly, const float coef[3],
                         size_t rows, size_t cols)
{
    bool tall = rows > cols;
    size_t side = tall ? cols : rows;

    if (tall) {
        struct gemm_job xtx = {
            .a_t = true, .n = side, .k = rows, .alpha = 1.0f, .a = x, .lda = cols, .b = x, .ldb = cols, .c = s};
        cpu_run(k, side, ROW_GRAIN, gemm_part, &xtx);
    } else { /* X X^T through a transposed copy in next, which is free until the end */
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < cols; j++)
                next[j * rows + i] = x[i * cols + j];
        struct gemm_job xxt = {
            .n = side, .k = cols, .alpha = 1.0f, .a = x, .lda = cols, .b = next, .ldb = rows, .c = s};
        cpu_run(k, side, ROW_GRAIN, gemm_part, &xxt);
    }
    for (size_t i = 0; i < side * side; i++)
        poly[i] = s[i];
    struct gemm_job square = {
        .n = side, .k = side, .alpha = coef[2], .beta = coef[1], .a = s, .lda = side, .b = s, .ldb = side, .c = poly};
    cpu_run(k, side, ROW_GRAIN, gemm_part, &square);
    for (size_t i = 0; i < rows * cols; i++)
        next[i] = x[i];
    struct gemm_job last =
        (struct gemm_job){.n = cols, .k = side, .alpha = 1.0f, .beta = coef[0], .c = next, .lda = side, .ldb = cols};
    last.a = tall ? x : poly;
    last.b = tall ? poly : x;
    cpu_run(k, rows, ROW_GRAIN, gemm_part, &last);
}

static void muon_apply(float *w, const float *x, float scale, const struct kern_hyper *hyper, size_t n)
{
    float keep = 1.0f - hyper->lr * hyper->weight_decay, rate = hyper->lr * scale;
    for (size_t i = 0; i < n; i++)
        w[i] = w[i] * keep - rate * x[i];
}

static void muon_matrix(struct kern *k, const struct kern_optimiser *o, const struct kern_tensor *t)
{
    size_t rows = t->rows, cols = t->cols, n = rows * cols, side = rows < cols ? rows : cols;
    float *x = o->scratch, *next = x + n, *s = next + n, *poly = s + side * side;
    double length =
        muon_momentum(x, o->m + t->offset, o->g + t->offset, clip_scale(o->norm, o->hyper), o->hyper->beta1, n);
    float inv = length > 0.0 ? (float)(1.0 / length) : 0.0f;

    for (size_t i = 0; i < n; i++)
        x[i] *= inv;
    for (int i = 0; i < MUON_STEPS; i++) {
        float *swap = x;
        muon_iterate(k, next, x, s, poly, muon_coef[i], rows, cols);
        x = next;
        next = swap;
    }
    muon_apply(o->w + t->offset, x, rows > cols ? sqrtf((float)rows / (float)cols) : 1.0f, o->hyper, n);
}

static void muon_vector(const struct kern_optimiser *o, const struct kern_tensor *t)
{
    const struct kern_hyper *hyper = o->hyper;
    float *w = o->w + t->offset, *m = o->m + t->offset, clip = clip_scale(o->norm, hyper);
    float mu = hyper->beta1, keep = 1.0f - hyper->lr * hyper->weight_decay;
    const float *g = o->g + t->offset;

    for (size_t i = 0; i < t->rows; i++) {
        float gi = g[i] * clip;
        m[i] = mu * m[i] + gi;
        w[i] = w[i] * keep - hyper->lr * (gi + mu * m[i]);
    }
}

void cpu_muon(struct kern *k, const struct kern_optimiser *o)
{
    unsigned mode = cpu_flush_begin();

    for (size_t i = 0; i < o->n_tensors && !step_is_off(o->norm, o->stats); i++) {
        if (o->tensors[i].is_matrix)
            muon_matrix(k, o, &o->tensors[i]);
        else
            muon_vector(o, &o->tensors[i]);
    }
    cpu_flush_end(mode);
}

void cpu_optimiser_tick(struct kern *k, int64_t *step, const float *norm, const struct kern_stats *stats)
{
    (void)k;
    if (!step_is_off(norm, stats))
        ++*step;
}
