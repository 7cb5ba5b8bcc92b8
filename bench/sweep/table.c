/* table.c - problems that are tables of recorded training runs: rows of parameters, several seeds each, the
 * score at several checkpoints. Between the rows a forest of random cuts smooths (forest.c).
 *
 * NAME.tbl: the 8 bytes "TRAWLTB1", u32 bytes of the header, the header (JSON), then f32, little-endian:
 * x (rows, dim) in natural values, y (rows, seeds, checkpoints) with NaN where the run failed; more may follow.
 * Header: params [{key, scale, int, min, max, choices, parent, parent_value, fill}], rows, seeds, checkpoints [steps],
 * budget (index of the parameter that says how far a run goes, -1: always to the last checkpoint), min_leaf, trees,
 * cost {start, const, linear [dim], quadratic [dim * dim], sd}. A parameter with a parent counts only where the
 * parent has parent_value, and is fill elsewhere.
 *
 * With weights w_i(x) of the rows, mean scores m_i(t) of a row's runs, f(x, t) = sum_i w_i m_i(t):
 *   a trial   draws a row i by w and one of its seeds s; it fails where that run did; its score is
 *             f(x, t) + y_is(t) - f(x_i, t), so the noise is that of real runs nearby, whole curves of it
 *   the truth is the exact mean of that over the runs that do not fail
 *   the cost  is start + exp(const + linear u + u' quadratic u), noise of sd in the log
 * Invariant: read-only after open. */
#include "bench/sweep/problem.h"

#include "base/os/file.h"
#include "bench/sweep/forest.h"

#define TABLE_MAGIC "TRAWLTB1"
#define TABLE_MAX_BYTES (64u << 20)
#define TABLE_MAX_ROWS 20000
#define TABLE_MAX_CHECKPOINTS 64

struct table {
    size_t n, dim, n_seeds, n_points;
    int64_t budget, trees, min_leaf;
    int64_t parent[SPACE_MAX_DIM]; /* -1: none */
    double parent_value[SPACE_MAX_DIM], fill[SPACE_MAX_DIM];
    double log_steps[TABLE_MAX_CHECKPOINTS];
    double cost_start, cost_const, cost_sd, linear[SPACE_MAX_DIM], *quadratic;
    float *u; /* (n, dim) filled and mapped; the budget's column is 0 */
    float *mean; /* (n, n_points) m_i(t) */
    float *resid; /* (n, n_seeds, n_points) y_is(t) - f(x_i, t); NaN where failed */
    double *sum_resid, *share_ok; /* (n, n_points) sum of resid over seeds / n_seeds; share of seeds that do not fail */
    struct forest *forest;
};

/* ---- reading ---- */

static bool read_param(const cJSON *json, struct space_param *p, struct table *t, size_t i)
{
    static const char *const scales[] = {"linear", "log", "logit", "pow2", "categorical"};
    const char *key = json_get_str(json, "key"), *scale = json_get_str(json, "scale");

    if (key == NULL || scale == NULL || strlen(key) >= sizeof p->key)
        return false;
    strcpy(p->key, key);
    for (int s = 0; s < (int)COUNT(scales); s++)
        if (strcmp(scales[s], scale) == 0)
            p->scale = (enum space_scale)s;
    int64_t choices = json_i64_or(json, "choices", 0);
    p->n_choices = (size_t)choices;
    t->parent[i] = -1;
    (void)json_get_i64(json, "parent", &t->parent[i]);
    (void)json_get_f64(json, "parent_value", &t->parent_value[i]);
    (void)json_get_f64(json, "fill", &t->fill[i]);
    return json_get_bool(json, "int", &p->is_int) && json_get_f64(json, "min", &p->min) &&
           json_get_f64(json, "max", &p->max) && t->parent[i] < (int64_t)i;
}

static bool read_array(const cJSON *json, const char *key, double *ret, size_t n)
{
    const cJSON *array = json_get(json, key);

    if (!cJSON_IsArray(array) || (size_t)cJSON_GetArraySize(array) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        ret[i] = cJSON_GetNumberValue(cJSON_GetArrayItem(array, (int)i));
    return true;
}

static bool read_header(const cJSON *json, struct space *space, struct table *t)
{
    const cJSON *params = json_get(json, "params"), *points = json_get(json, "checkpoints"),
                *cost = json_get(json, "cost");
    int64_t rows = 0, seeds = 0;

    space->dim = t->dim = (size_t)cJSON_GetArraySize(params);
    t->n_points = (size_t)cJSON_GetArraySize(points);
    if (t->dim < 1 || t->dim > SPACE_MAX_DIM || t->n_points < 1 || t->n_points > TABLE_MAX_CHECKPOINTS ||
        !json_get_i64(json, "rows", &rows) || !json_get_i64(json, "seeds", &seeds) || rows < 2 ||
        rows > TABLE_MAX_ROWS || seeds < 1 || seeds > 1000 || !json_get_i64(json, "budget", &t->budget) ||
        t->budget >= (int64_t)t->dim || !json_get_i64(json, "trees", &t->trees) || t->trees < 1 || t->trees > 1000 ||
        !json_get_i64(json, "min_leaf", &t->min_leaf) || t->min_leaf < 1)
        return false;
    t->n = (size_t)rows;
    t->n_seeds = (size_t)seeds;
    for (size_t i = 0; i < t->dim; i++)
        if (!read_param(cJSON_GetArrayItem(params, (int)i), &space->params[i], t, i))
            return false;
    if (!read_array(json, "checkpoints", t->log_steps, t->n_points))
        return false;
    for (size_t k = 0; k < t->n_points; k++)
        t->log_steps[k] = log(t->log_steps[k]);
    t->quadratic = mem_array2(t->dim, t->dim, sizeof *t->quadratic);
    return t->quadratic != NULL && json_get_f64(cost, "start", &t->cost_start) &&
           json_get_f64(cost, "const", &t->cost_const) && json_get_f64(cost, "sd", &t->cost_sd) &&
           read_array(cost, "linear", t->linear, t->dim) &&
           read_array(cost, "quadratic", t->quadratic, t->dim * t->dim);
}

/* ---- the smooth table ---- */

/* What the forest sees of a point: parameters that do not count are filled, the budget is left out. */
static void forest_coordinates(const struct problem *problem, const double *x, double *ret_u)
{
    const struct table *t = problem->data;
    double filled[SPACE_MAX_DIM];

    memcpy(filled, x, t->dim * sizeof *x);
    for (size_t j = 0; j < t->dim; j++)
        if (t->parent[j] >= 0 && filled[t->parent[j]] != t->parent_value[j])
            filled[j] = t->fill[j];
    space_to_unit(&problem->space, filled, ret_u);
    if (t->budget >= 0)
        ret_u[t->budget] = 0.0;
}

/* Mean of each row's runs; where all failed, the lowest mean of the checkpoint, so that the trees see them as bad. */
static void row_means(struct table *t, const float *y)
{
    size_t T = t->n_points;

    for (size_t k = 0; k < T; k++) {
        float worst = INFINITY;
        for (size_t i = 0; i < t->n; i++) {
            double sum = 0.0;
            size_t n = 0;
            for (size_t s = 0; s < t->n_seeds; s++) {
                float v = y[(i * t->n_seeds + s) * T + k];
                if (isfinite(v)) {
                    sum += (double)v;
                    n++;
                }
            }
            t->mean[i * T + k] = n > 0 ? (float)(sum / (double)n) : NAN;
            if (n > 0)
                worst = fminf(worst, t->mean[i * T + k]);
        }
        for (size_t i = 0; i < t->n; i++)
            if (!isfinite(t->mean[i * T + k]))
                t->mean[i * T + k] = isfinite(worst) ? worst : 0.0f;
    }
}

/* The means with each checkpoint in units of its own spread: the trees must not look at the last alone. */
static float *standardised(const struct table *t)
{
    float *ret = mem_array2(t->n, t->n_points, sizeof *ret);

    for (size_t k = 0; k < t->n_points; k++) {
        double sum = 0.0, sq = 0.0, n = (double)t->n;
        for (size_t i = 0; i < t->n; i++)
            sum += (double)t->mean[i * t->n_points + k];
        for (size_t i = 0; i < t->n; i++)
            sq += pow((double)t->mean[i * t->n_points + k] - sum / n, 2);
        double sd = sqrt(sq / n);
        for (size_t i = 0; i < t->n; i++)
            ret[i * t->n_points + k] = sd > 0.0 ? (float)(((double)t->mean[i * t->n_points + k] - sum / n) / sd) : 0.0f;
    }
    return ret;
}

static void residuals(struct table *t, const float *y, double *w)
{
    size_t T = t->n_points;
    double u[SPACE_MAX_DIM];

    for (size_t i = 0; i < t->n; i++) {
        for (size_t j = 0; j < t->dim; j++)
            u[j] = (double)t->u[i * t->dim + j];
        forest_weights(t->forest, u, w);
        for (size_t k = 0; k < T; k++) {
            double f = 0.0, sum = 0.0, ok = 0.0;
            for (size_t r = 0; r < t->n; r++)
                f += w[r] * (double)t->mean[r * T + k];
            for (size_t s = 0; s < t->n_seeds; s++) {
                size_t at = (i * t->n_seeds + s) * T + k;
                t->resid[at] = isfinite(y[at]) ? y[at] - (float)f : NAN;
                if (isfinite(y[at])) {
                    sum += (double)t->resid[at];
                    ok += 1.0;
                }
            }
            t->sum_resid[i * T + k] = sum / (double)t->n_seeds;
            t->share_ok[i * T + k] = ok / (double)t->n_seeds;
        }
    }
}

static void smooth(struct problem *problem, const float *body)
{
    struct table *t = problem->data;
    const float *y = body + t->n * t->dim;
    double x[SPACE_MAX_DIM], u[SPACE_MAX_DIM];
    MEM_LOCAL double *w = mem_array(t->n, sizeof *w);

    t->u = mem_array2(t->n, t->dim, sizeof *t->u);
    t->mean = mem_array2(t->n, t->n_points, sizeof *t->mean);
    t->resid = mem_array2(t->n, t->n_seeds * t->n_points, sizeof *t->resid);
    t->sum_resid = mem_array2(t->n, t->n_points, sizeof *t->sum_resid);
    t->share_ok = mem_array2(t->n, t->n_points, sizeof *t->share_ok);
    for (size_t i = 0; i < t->n; i++) {
        for (size_t j = 0; j < t->dim; j++)
            x[j] = (double)body[i * t->dim + j];
        forest_coordinates(problem, x, u);
        for (size_t j = 0; j < t->dim; j++)
            t->u[i * t->dim + j] = (float)u[j];
    }
    row_means(t, y);
    MEM_LOCAL float *targets = standardised(t);
    t->forest = forest_create(t->n, t->dim, t->u, t->n_points, targets, (size_t)t->trees, (size_t)t->min_leaf);
    residuals(t, y, w);
}

static void table_close(struct problem *problem)
{
    struct table *t = problem->data;

    if (t == NULL)
        return;
    forest_destroy(t->forest);
    mem_free(t->quadratic);
    mem_free(t->u);
    mem_free(t->mean);
    mem_free(t->resid);
    mem_free(t->sum_resid);
    mem_free(t->share_ok);
    mem_free(t);
}

/* bytes: the whole file. */
static enum status parse(struct problem *problem, const char *path, const char *bytes, size_t n, struct error *err)
{
    struct table *t = problem->data;
    size_t magic = strlen(TABLE_MAGIC), at = magic + sizeof(uint32_t);
    uint32_t header = 0;
    cJSON *json = NULL;

    if (n >= at)
        memcpy(&header, bytes + magic, sizeof header);
    if (n < at || memcmp(bytes, TABLE_MAGIC, magic) != 0 || header > n - at)
        return FAIL(err, ST_CORRUPT, "%s: no table; make it again as bench/sweep/README.md says", path);
    TRY(json_parse(bytes + at, header, &json, err));
    bool ok = read_header(json, &problem->space, t);
    cJSON_Delete(json);
    size_t need = ok ? (t->n * t->dim + t->n * t->n_seeds * t->n_points) * sizeof(float) : 0;
    if (!ok || n - at - header < need)
        return FAIL(err, ST_CORRUPT, "%s: the header is not whole or %zu bytes of numbers are missing", path, need);
    TRY(space_check(&problem->space, err));
    MEM_LOCAL float *body = mem_alloc(need);
    memcpy(body, bytes + at + header, need);
    smooth(problem, body);
    return ST_OK;
}

static enum status table_open(struct problem *problem, const char *const *dirs, size_t n_dirs, struct error *err)
{
    char path[4096], file[PROBLEM_NAME_MAX + 8];
    MEM_LOCAL char *bytes = NULL;
    size_t n = 0;

    snprintf(file, sizeof file, "%s.tbl", problem->name);
    TRY(problem_find(file, dirs, n_dirs, path, sizeof path, err));
    TRY(file_read_all(path, TABLE_MAX_BYTES, &bytes, &n, err));
    problem->data = mem_alloc(sizeof(struct table));
    return parse(problem, path, bytes, n, err);
}

/* ---- a point ---- */

/* The checkpoints on both sides of where the run ends: value = (1 - part) at lo + part at lo + 1. */
static void place(const struct table *t, const double *x, size_t *ret_lo, double *ret_part)
{
    double at = t->budget >= 0 ? log(x[t->budget]) : t->log_steps[t->n_points - 1];
    size_t lo = 0;

    while (lo + 2 < t->n_points && t->log_steps[lo + 1] <= at)
        lo++;
    *ret_lo = lo;
    *ret_part = 0.0;
    if (t->n_points > 1)
        *ret_part = fmin(1.0, fmax(0.0, (at - t->log_steps[lo]) / (t->log_steps[lo + 1] - t->log_steps[lo])));
}

static double table_cost(const struct problem *problem, const double *x)
{
    const struct table *t = problem->data;
    double u[SPACE_MAX_DIM], sum = t->cost_const;

    space_to_unit(&problem->space, x, u);
    for (size_t i = 0; i < t->dim; i++) {
        sum += t->linear[i] * u[i];
        for (size_t j = 0; j < t->dim; j++)
            sum += t->quadratic[i * t->dim + j] * u[i] * u[j];
    }
    return t->cost_start + exp(sum);
}

static double between(const struct table *t, size_t row, size_t lo, double part, const double *values)
{
    const double *v = values + row * t->n_points + lo;
    return part > 0.0 ? (1.0 - part) * v[0] + part * v[1] : v[0];
}

static double smooth_mean(const struct table *t, const double *w, size_t lo, double part)
{
    double f = 0.0;

    for (size_t i = 0; i < t->n; i++)
        if (w[i] > 0.0) {
            const float *m = t->mean + i * t->n_points + lo;
            f += w[i] * (part > 0.0 ? (1.0 - part) * (double)m[0] + part * (double)m[1] : (double)m[0]);
        }
    return f;
}

static void table_truth(const struct problem *problem, size_t n, const double *x, struct outcome *ret)
{
    const struct table *t = problem->data;
    double w[TABLE_MAX_ROWS], u[SPACE_MAX_DIM];

    for (size_t p = 0; p < n; p++, x += t->dim) {
        double part, ok = 0.0, sum = 0.0;
        size_t lo;
        place(t, x, &lo, &part);
        forest_coordinates(problem, x, u);
        forest_weights(t->forest, u, w);
        for (size_t i = 0; i < t->n; i++)
            if (w[i] > 0.0) {
                ok += w[i] * between(t, i, lo, part, t->share_ok);
                sum += w[i] * between(t, i, lo, part, t->sum_resid);
            }
        ret[p] = (struct outcome){.score = smooth_mean(t, w, lo, part) + (ok > 0.0 ? sum / ok : 0.0),
                                  .cost = table_cost(problem, x)};
    }
}

/* The run that a trial draws: ret_w (n) the weights at x; its residuals at the checkpoints. */
static const float *draw_run(const struct problem *problem, const double *x, struct rng *rng, double *ret_w)
{
    const struct table *t = problem->data;
    double u[SPACE_MAX_DIM], pick = rng_f64(rng);
    size_t row = 0, seed = rng_below(rng, (uint32_t)t->n_seeds);

    forest_coordinates(problem, x, u);
    forest_weights(t->forest, u, ret_w);
    for (double sum = ret_w[0]; row + 1 < t->n && sum <= pick; sum += ret_w[row])
        row++;
    return t->resid + (row * t->n_seeds + seed) * t->n_points;
}

static void table_draw(const struct problem *problem, const double *x, struct rng *rng, struct outcome *ret)
{
    const struct table *t = problem->data;
    double w[TABLE_MAX_ROWS], part;
    size_t lo;

    place(t, x, &lo, &part);
    const float *r = draw_run(problem, x, rng, w) + lo;
    double noise = part > 0.0 ? (1.0 - part) * (double)r[0] + part * (double)r[1] : (double)r[0];
    ret->failed = !isfinite(noise);
    ret->score = ret->failed ? (double)NAN : smooth_mean(t, w, lo, part) + noise;
    ret->cost = table_cost(problem, x) * exp(t->cost_sd * problem_normal(rng));
}

const struct problem_ops problem_table_ops = {table_open, table_close, table_truth, table_draw};
