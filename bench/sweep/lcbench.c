/* lcbench.c - the LCBench surrogate of YAHPO: time and validation accuracy of a small network's training,
 * predicted by a residual network over (task, 8 parameters). bench/sweep/lcbench.py makes lcbench.bin out of the
 * published ONNX file; here is the forward pass.
 * lcbench.bin: the 8 bytes "TRAWLLC1", then f32, little-endian, rows first, in the order of struct weights; batch
 * normalisations are folded into what follows them.
 * Score: accuracy in points, noise of sd 1. Cost: seconds, noise of 5 %. Integers: epoch, batch, layers, units.
 * Invariant: weights are read-only after open; work memory lives for one call. */
#include "bench/sweep/problem.h"

#include <cblas.h>

#include "base/os/file.h"

#define LC_MAGIC "TRAWLLC1"
#define LC_BLOCK 256 /* points of one pass */
#define N_TASK 36
#define N_EMBED 24
#define N_CONT 8
#define N_IN (N_EMBED + N_CONT)
#define N_WIDE 128
#define N_GATED 455
#define N_LAYER 3

struct weights {
    float cont_log[N_CONT], cont_shift[N_CONT], cont_scale[N_CONT]; /* (log(x + 1e-12) or x - shift) / scale */
    float embed[N_TASK][N_EMBED];
    float first[N_WIDE][N_IN], first_b[N_WIDE];
    struct {
        float up[2 * N_GATED][N_WIDE], up_b[2 * N_GATED]; /* h = W x + b; z = h[:455] * relu(h[455:]) */
        float down[N_WIDE][N_GATED], down_b[N_WIDE]; /* x += V z + c */
    } layer[N_LAYER];
    float last_scale[N_WIDE], last_shift[N_WIDE]; /* relu(scale x + shift) */
    float head[2][N_WIDE], head_b[2]; /* sigmoids of time and of log accuracy */
    float out_scale[2], out_shift[2];
};

struct lcbench {
    struct weights w;
    size_t task; /* row of embed */
};

/* Tasks by their row in the surrogate's table, encoding.json. */
static const struct {
    const char *name;
    size_t row;
} tasks[] = {{"lcbench-167168", 10}, {"lcbench-189906", 30}, {"lcbench-3945", 34}, {"lcbench-189354", 24}};

static void fill_space(struct space *space)
{
    static const struct space_param params[N_CONT] = {
        {.key = "train.epoch", .scale = SPACE_LINEAR, .is_int = true, .min = 1, .max = 52},
        {.key = "train.batch_size", .scale = SPACE_LOG, .is_int = true, .min = 16, .max = 512},
        {.key = "train.learning_rate", .scale = SPACE_LOG, .min = 1e-4, .max = 1e-1},
        {.key = "train.momentum", .scale = SPACE_LINEAR, .min = 0.1, .max = 0.99},
        {.key = "train.weight_decay", .scale = SPACE_LINEAR, .min = 1e-5, .max = 1e-1},
        {.key = "policy.layers", .scale = SPACE_LINEAR, .is_int = true, .min = 1, .max = 5},
        {.key = "policy.units", .scale = SPACE_LOG, .is_int = true, .min = 64, .max = 1024},
        {.key = "policy.dropout", .scale = SPACE_LINEAR, .min = 0, .max = 1},
    };
    space->dim = N_CONT;
    memcpy(space->params, params, sizeof params);
}

static enum status lcbench_open(struct problem *problem, const char *const *dirs, size_t n_dirs, struct error *err)
{
    char path[4096], *bytes = NULL;
    size_t n = 0, magic = strlen(LC_MAGIC);
    struct lcbench *lc;

    TRY(problem_find("lcbench.bin", dirs, n_dirs, path, sizeof path, err));
    TRY(file_read_all(path, magic + sizeof lc->w + 1, &bytes, &n, err));
    if (n != magic + sizeof lc->w || memcmp(bytes, LC_MAGIC, magic) != 0) {
        mem_free(bytes);
        return FAIL(err, ST_CORRUPT, "%s: %zu bytes, %zu with the head '%s' are needed; make it again with lcbench.py",
                    path, n, magic + sizeof lc->w, LC_MAGIC);
    }
    lc = mem_alloc(sizeof *lc);
    memcpy(&lc->w, bytes + magic, sizeof lc->w);
    mem_free(bytes);
    for (size_t i = 0; i < COUNT(tasks); i++)
        if (strcmp(tasks[i].name, problem->name) == 0)
            lc->task = tasks[i].row;
    problem->data = lc;
    fill_space(&problem->space);
    return ST_OK;
}

static void lcbench_close(struct problem *problem)
{
    mem_free(problem->data);
}

/* ret (n, n_out) = a (n, n_in) w^T (n_in, n_out) + b, or added to what ret holds. */
static void affine(size_t n, size_t n_in, size_t n_out, const float *a, const float *w, const float *b, bool add,
                   float *ret)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n_out; j++)
            ret[i * n_out + j] = b[j] + (add ? ret[i * n_out + j] : 0.0f);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)n_out, (int)n_in, 1.0f, a, (int)n_in, w,
                (int)n_in, 1.0f, ret, (int)n_out);
}

struct work {
    float in[LC_BLOCK][N_IN], x[LC_BLOCK][N_WIDE], h[LC_BLOCK][2 * N_GATED], z[LC_BLOCK][N_GATED], out[LC_BLOCK][2];
};

static void block_forward(const struct lcbench *lc, size_t n, const double *x, struct work *k, struct outcome *ret)
{
    const struct weights *w = &lc->w;

    for (size_t i = 0; i < n; i++) {
        memcpy(k->in[i], w->embed[lc->task], sizeof w->embed[0]);
        for (size_t j = 0; j < N_CONT; j++) {
            float v = (float)x[i * N_CONT + j];
            if (w->cont_log[j] != 0.0f)
                v = logf(v + 1e-12f);
            k->in[i][N_EMBED + j] = (v - w->cont_shift[j]) / w->cont_scale[j];
        }
    }
    affine(n, N_IN, N_WIDE, k->in[0], w->first[0], w->first_b, false, k->x[0]);
    for (size_t l = 0; l < N_LAYER; l++) {
        affine(n, N_WIDE, 2 * N_GATED, k->x[0], w->layer[l].up[0], w->layer[l].up_b, false, k->h[0]);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < N_GATED; j++)
                k->z[i][j] = k->h[i][j] * fmaxf(k->h[i][N_GATED + j], 0.0f);
        affine(n, N_GATED, N_WIDE, k->z[0], w->layer[l].down[0], w->layer[l].down_b, true, k->x[0]);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < N_WIDE; j++)
            k->x[i][j] = fmaxf(w->last_scale[j] * k->x[i][j] + w->last_shift[j], 0.0f);
    affine(n, N_WIDE, 2, k->x[0], w->head[0], w->head_b, false, k->out[0]);
    for (size_t i = 0; i < n; i++) {
        double v[2];
        for (size_t o = 0; o < 2; o++)
            v[o] = (double)w->out_scale[o] / (1.0 + exp(-(double)k->out[i][o])) + (double)w->out_shift[o];
        ret[i] = (struct outcome){.score = exp(v[1]), .cost = v[0]};
    }
}

static void lcbench_truth(const struct problem *problem, size_t n, const double *x, struct outcome *ret)
{
    MEM_LOCAL struct work *k = mem_alloc(sizeof *k);

    for (size_t i = 0; i < n; i += LC_BLOCK) {
        size_t m = n - i < LC_BLOCK ? n - i : LC_BLOCK;
        if (k != NULL) {
            block_forward(problem->data, m, x + i * N_CONT, k, ret + i);
            continue;
        }
        for (size_t j = i; j < i + m; j++)
            ret[j] = (struct outcome){.failed = true, .score = (double)NAN, .cost = 1.0};
    }
}

static void lcbench_draw(const struct problem *problem, const double *x, struct rng *rng, struct outcome *ret)
{
    lcbench_truth(problem, 1, x, ret);
    ret->score += problem_normal(rng);
    ret->cost *= exp(0.05 * problem_normal(rng));
}

const struct problem_ops problem_lcbench_ops = {lcbench_open, lcbench_close, lcbench_truth, lcbench_draw};
