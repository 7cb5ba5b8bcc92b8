/* test_model.c - covariance, minimiser and Gaussian process against finite differences, dense algebra and hard data. */
#include <cblas.h>

#include "tests/gp/gp_test.h"
#include "gp/model/exp.h"
#include "gp/model/model_priv.h"

#define N 24
#define N_MAX 96

struct rows {
    double u[N_MAX * SPACE_MAX_DIM], mean[N_MAX], ss[N_MAX], repeats[N_MAX];
    struct model_data data;
};

static struct space some_space(size_t dim, bool categorical)
{
    struct space space = unit_space(dim);
    if (categorical) {
        space.params[dim - 1] = param_of("test.choice", SPACE_CATEGORICAL, false, 0, 2);
    }
    return space;
}

static void fill_rows(struct rows *rows, const struct space *space, size_t n, uint64_t seed)
{
    struct rng r = rng_seed(seed);
    for (size_t j = 0; j < n; j++) {
        double *u = rows->u + j * space->dim, x[SPACE_MAX_DIM];
        for (size_t i = 0; i < space->dim; i++)
            u[i] = rng_f64(&r);
        space_from_unit(space, u, x);
        space_to_unit(space, x, u);
        rows->mean[j] = 100.0 + 7.0 * sin(3.0 * u[0]) + u[space->dim - 1] + 0.1 * rng_f64(&r);
        rows->repeats[j] = j % 5 == 0 ? 3.0 : 1.0;
        rows->ss[j] = j % 5 == 0 ? 0.02 : 0.0;
    }
    rows->data = (struct model_data){n, rows->u, rows->mean, rows->ss, rows->repeats, NULL, false};
}

TEST(covariance)
{
    struct cov cov = {.dim = 2, .categorical = {false, true}, .inv_sq = {4.0, 0.25}, .variance = 1.7};
    double x[2][8] = {{0.1, 0.2, 0.3, 0.5, 0.9, 1.0, 0.0, 60.0}, {0, 1, 2, 0, 1, 2, 0, 0}}, point[2] = {0.3, 0};
    double k[8], h[8], k2[8];
    cov_row(&cov, &x[0][0], 8, 8, point, k, h);
    cov_row(&cov, &x[0][0], 8, 8, point, k2, NULL);
    for (int j = 0; j < 8; j++) {
        double d = point[0] - x[0][j], r = sqrt(4.0 * d * d + (x[1][j] != 0.0 ? 0.25 : 0.0));
        double want = 1.7 * (1.0 + sqrt(5.0) * r + 5.0 / 3.0 * r * r) * exp(-sqrt(5.0) * r);
        assert_near(k[j], want, 1e-14 * want + 1e-300);
        assert_near(k2[j], want, 1e-14 * want + 1e-300);
        assert_near(h[j], 1.7 * 5.0 / 3.0 * (1.0 + sqrt(5.0) * r) * exp(-sqrt(5.0) * r), 1e-14);
    }
    cov.smooth = true;
    cov_row(&cov, &x[0][0], 8, 8, point, k, h);
    cov_row(&cov, &x[0][0], 8, 8, point, k2, NULL);
    for (int j = 0; j < 8; j++) { /* the choice has no slope */
        double d = point[0] - x[0][j], e = 1.7 * exp(-0.5 * (4.0 * d * d + (x[1][j] != 0.0 ? 0.25 : 0.0)));
        double want = e + 0.5 * 1.7 * (point[0] - 0.5) * (x[0][j] - 0.5);
        assert_near(k[j], want, 1e-14);
        assert_near(k2[j], want, 1e-14);
        assert_near(h[j], e, 1e-14);
    }
    assert_near(cov_variance(&cov, point, 1), 1.7 + 0.5 * 1.7 * 0.04, 1e-15);
    double weight[8] = {1, 2, 3, 4, 5, 6, 7, 0};
    assert_near(cov_weighted_sq(&cov, 1, x[1], 8, 0.0, weight), 2 + 3 + 5 + 6, 1e-12);
    assert_near(cov_weighted_sq(&cov, 0, x[0], 2, 0.0, weight), 0.01 + 2 * 0.04, 1e-15);
}

TEST(exponential_against_libm)
{
    for (double x = 0.0; x > -700.0; x -= 0.0137)
        assert_near(exp_of_negative(x), exp(x), 1e-15 * exp(x));
    assert_true(exp_of_negative(0.0) == 1.0);
    assert_true(exp_of_negative(-1e6) == 0.0 && exp_of_negative(-INFINITY) == 0.0);
    assert_true(isnan(exp_of_negative(NAN)));
}

static double rosenbrock(void *ctx, const double *x, double *g)
{
    (*(int *)ctx)++;
    double a = 1.0 - x[0], b = x[1] - x[0] * x[0];
    g[0] = -2.0 * a - 400.0 * x[0] * b;
    g[1] = 200.0 * b;
    return a * a + 100.0 * b * b;
}

TEST(minimiser)
{
    int evals = 0;
    double lo[2] = {-2.0, -2.0}, hi[2] = {2.0, 2.0}, x[2] = {-1.2, 1.0};
    assert_true(optimise_box(rosenbrock, &evals, 2, lo, hi, 200, x) < 1e-6);
    assert_near(x[0], 1.0, 1e-2);
    evals = 0;
    optimise_box(rosenbrock, &evals, 2, lo, hi, 7, x);
    assert_true(evals <= 7);
    double hi_tight[2] = {0.5, 2.0}, y[2] = {9.0, -9.0}; /* start outside, minimum on a bound at (0.5, 0.25) */
    assert_near(optimise_box(rosenbrock, &evals, 2, lo, hi_tight, 200, y), 0.25, 1e-5);
    assert_near(y[0], 0.5, 1e-12);
    assert_near(y[1], 0.25, 1e-3);
}

TEST(likelihood_gradient)
{
    for (size_t dim = 1; dim <= 7; dim += 3)
        for (int trial = 0; trial < 4; trial++) {
            struct space space = some_space(dim, dim > 1);
            struct rows rows;
            struct model m;
            struct rng r = rng_seed(100 + (uint64_t)trial);
            fill_rows(&rows, &space, N, 3);
            rows.data.smooth = *fixture != NULL;
            model_init(&m, &space, N);
            model_set_data(&m, &rows.data);
            double theta[OPTIMISE_MAX_DIM], g[OPTIMISE_MAX_DIM], unused[OPTIMISE_MAX_DIM];
            for (size_t i = 0; i < dim + 2; i++)
                theta[i] = m.theta[i] + 2.0 * rng_f64(&r) - 1.0;
            assert_true(isfinite(model_objective(&m, theta, g)));
            for (size_t i = 0; i < dim + 2; i++) {
                const double step = 1e-5;
                double at = theta[i];
                theta[i] = at + step;
                double up = model_objective(&m, theta, unused);
                theta[i] = at - step;
                double down = model_objective(&m, theta, unused);
                theta[i] = at;
                assert_near(g[i], (up - down) / (2.0 * step), 1e-5 * (1.0 + fabs(g[i])));
            }
            model_free(&m);
        }
}

/* Two repeats of one point as one row must weigh as two rows do. */
TEST(merged_repeats_are_exact)
{
    struct space space = unit_space(1);
    struct model merged, apart;
    double u1[] = {0.1, 0.4, 0.9}, y1[] = {1.0, -1.0, 0.0}, ss1[] = {0.18, 0.0, 0.0}, r1[] = {2, 1, 1};
    double u2[] = {0.1, 0.1, 0.4, 0.9}, y2[] = {1.3, 0.7, -1.0, 0.0}, ss2[4] = {0}, r2[] = {1, 1, 1, 1};
    model_init(&merged, &space, 3);
    model_init(&apart, &space, 4);
    model_set_data(&merged, &(struct model_data){3, u1, y1, ss1, r1, NULL, false});
    model_set_data(&apart, &(struct model_data){4, u2, y2, ss2, r2, NULL, false});
    for (int j = 0; j < 3; j++)
        merged.y[j] = y1[j]; /* unscaled, so that both see the same numbers */
    merged.repeat_ss = 0.18;
    for (int j = 0; j < 4; j++)
        apart.y[j] = y2[j];
    double g[3], a[3] = {-1.0, 0.1, -2.0}, b[3] = {-0.3, -0.4, -4.0};
    double d1 = model_objective(&merged, a, g) - model_objective(&merged, b, g);
    double d2 = model_objective(&apart, a, g) - model_objective(&apart, b, g);
    assert_near(d1, d2, 1e-9); /* up to a constant */
    model_free(&merged);
    model_free(&apart);
}

TEST(prediction_against_dense_algebra)
{
    struct space space = some_space(4, true);
    struct rows rows;
    AT_END(model_free) struct model m = {0};
    fill_rows(&rows, &space, N, 5);
    rows.data.smooth = *fixture != NULL;
    model_init(&m, &space, N);
    model_set_data(&m, &rows.data);
    model_fit(&m, 30, N);
    OK(model_factor(&m, err));
    /* solve (K + noise) v = k by Gauss elimination */
    double point[4] = {0.3, 0.8, 0.1, 0.5}, a[N][N + 1], k[N];
    cov_row(&m.cov, m.x, m.ld, N, point, k, NULL);
    for (size_t i = 0; i < N; i++) {
        double row[4];
        for (size_t c = 0; c < 4; c++)
            row[c] = m.x[c * m.ld + i];
        cov_row(&m.cov, m.x, m.ld, N, row, a[i], NULL);
        a[i][i] += m.noise * m.share[i] + m.jitter;
        a[i][N] = k[i];
    }
    for (size_t p = 0; p < N; p++)
        for (size_t i = p + 1; i < N; i++) {
            double f = a[i][p] / a[p][p];
            for (size_t j = p; j <= N; j++)
                a[i][j] -= f * a[p][j];
        }
    double mean = model_trend(&m, point, 1), var = cov_variance(&m.cov, point, 1);
    for (size_t i = N; i-- > 0;) {
        for (size_t j = i + 1; j < N; j++)
            a[i][N] -= a[i][j] * a[j][N];
        a[i][N] /= a[i][i];
        mean += a[i][N] * m.y[i];
        var -= a[i][N] * k[i];
    }
    double cross[N], got_mean, got_sd, gm, gs, dm[4], ds[4];
    model_predict(&m, point, 1, cross, &got_mean, &got_sd);
    assert_near(got_mean, mean, 1e-8);
    assert_near(got_sd * got_sd, var, 1e-8);
    model_predict_gradient(&m, point, &gm, &gs, dm, ds);
    assert_near(gm, got_mean, 1e-10);
    assert_near(gs, got_sd, 1e-8);
    for (size_t i = 0; i < 4; i++) {
        double up[4], down[4], mu, su, md, sd;
        memcpy(up, point, sizeof up);
        memcpy(down, point, sizeof down);
        up[i] += 1e-5;
        down[i] -= 1e-5;
        model_predict(&m, up, 1, cross, &mu, &su);
        model_predict(&m, down, 1, cross, &md, &sd);
        if (i == 3) {
            assert_true(dm[i] == 0.0 && ds[i] == 0.0);
        } else {
            assert_near(dm[i], (mu - md) / 2e-5, 1e-5);
            assert_near(ds[i], (su - sd) / 2e-5, 1e-5);
        }
    }
}

/* Points that are believed move no mean, and their factors are those of one factorisation of all rows, whether a few
 * join or many. */
static void believing_extends_the_factors(size_t n_new, bool smooth)
{
    enum { OLD = 90, NEW = 24 };
    struct space space = some_space(4, true);
    static struct rows rows;
    static double cross[4 * 120];
    AT_END(model_free) struct model m = {0};
    double u[16], mean[4], sd[4], mean_2[4], sd_2[4], mean_3[4], sd_3[4];
    fill_rows(&rows, &space, OLD, 6);
    rows.data.smooth = smooth;
    for (int i = 0; i < 16; i++)
        u[i] = i % 4 == 3 ? rows.u[i] : 0.05 + 0.055 * i;
    model_init(&m, &space, OLD + NEW);
    model_set_data(&m, &rows.data);
    model_fit(&m, 30, OLD);
    OK(model_factor(&m, err));
    model_predict(&m, u, 4, cross, mean, sd);
    double believed[NEW * 4];
    memcpy(believed, u, sizeof u);
    memcpy(believed + 16, rows.u, (NEW - 4) * 4 * sizeof *u); /* the others are rows that are there */
    OK(model_believe(&m, believed, n_new, err));
    model_predict(&m, u, 4, cross, mean_2, sd_2);
    double gradient_mean, gradient_sd, unused[4];
    model_predict_gradient(&m, u, &gradient_mean, &gradient_sd, unused, unused);
    assert_near(gradient_sd, sd_2[0], 1e-7); /* through the inverse */
    OK(model_factor(&m, err));
    model_predict(&m, u, 4, cross, mean_3, sd_3);
    for (int i = 0; i < 4; i++) {
        assert_near(mean_2[i], mean[i], 1e-8);
        assert_true(sd_2[i] < sd[i]);
        assert_near(mean_3[i], mean_2[i], 1e-8);
        assert_near(sd_3[i], sd_2[i], 1e-8);
    }
}

TEST(believing_extends_the_factors)
{
    believing_extends_the_factors(5, *fixture != NULL);
    believing_extends_the_factors(24, *fixture != NULL);
}

/* Points of a field that join it leave the spreads of the others as a model that believes them does. */
TEST(a_field_narrows_like_the_model)
{
    enum { OLD = 60, POINTS = 30, JOINED = 5 };
    struct space space = some_space(4, true);
    static struct rows rows, others;
    static double cross[POINTS * 72];
    double mean[POINTS], sd[POINTS];
    struct field field;
    AT_END(model_free) struct model m = {0};
    fill_rows(&rows, &space, OLD, 6);
    fill_rows(&others, &space, POINTS, 7);
    rows.data.smooth = *fixture != NULL;
    model_init(&m, &space, OLD + JOINED);
    model_set_data(&m, &rows.data);
    model_fit(&m, 30, OLD);
    OK(model_factor(&m, err));
    field_init(&field, &m, others.u, POINTS, JOINED);
    model_predict(&m, others.u, POINTS, cross, mean, sd);
    for (size_t p = 0; p < POINTS; p++) {
        assert_near(field.mean[p], mean[p], 1e-9);
        assert_near(field_sd(&field, p), sd[p], 1e-9);
    }
    for (size_t p = 0; p < JOINED; p++)
        field_join(&field, p);
    double after[POINTS];
    for (size_t p = 0; p < POINTS; p++)
        after[p] = field_sd(&field, p);
    field_free(&field); /* the model changes now */
    OK(model_believe(&m, others.u, JOINED, err));
    model_predict(&m, others.u, POINTS, cross, mean, sd);
    for (size_t p = 0; p < POINTS; p++)
        assert_near(after[p], sd[p], 1e-8);
}

/* Each row is left out in turn and predicted by a model of the others with the same hyper-parameters. */
TEST(what_it_explains_of_rows_that_it_does_not_know)
{
    struct space space = unit_space(3);
    for (int noisy = 0; noisy < 2; noisy++) {
        struct rows rows, others;
        struct rng r = rng_seed(31);
        AT_END(model_free) struct model m = {0};
        double missed = 0.0, all = 0.0;
        fill_rows(&rows, &space, N, 9);
        rows.data.smooth = true;
        for (size_t j = 0; j < N && noisy; j++) {
            rows.mean[j] = noise(&r);
            rows.ss[j] *= 100.0;
        }
        model_init(&m, &space, N);
        model_set_data(&m, &rows.data);
        model_fit(&m, 40, N);
        OK(model_factor(&m, err));
        double explained = model_explained(&m);
        for (size_t out = 0; out < N; out++) {
            AT_END(model_free) struct model left = {0};
            double cross[N], mean, sd, plain = 0.0, runs = 0.0;
            others = rows;
            others.data = rows.data;
            memmove(others.u + 3 * out, others.u + 3 * (out + 1), 3 * (N - 1 - out) * sizeof *others.u);
            memmove(others.mean + out, others.mean + out + 1, (N - 1 - out) * sizeof *others.mean);
            memmove(others.ss + out, others.ss + out + 1, (N - 1 - out) * sizeof *others.ss);
            memmove(others.repeats + out, others.repeats + out + 1, (N - 1 - out) * sizeof *others.repeats);
            others.data = (struct model_data){N - 1, others.u, others.mean, others.ss, others.repeats, NULL, true};
            model_init(&left, &space, N - 1);
            model_set_data(&left, &others.data);
            for (size_t j = 0; j < N - 1; j++) { /* in the whole model's units */
                left.y[j] = (others.mean[j] - m.y_mean) / m.y_sd;
                plain += others.repeats[j] * left.y[j];
                runs += others.repeats[j];
            }
            memcpy(left.theta, m.theta, sizeof left.theta);
            OK(model_factor(&left, err));
            model_predict(&left, rows.u + 3 * out, 1, cross, &mean, &sd);
            double y = (rows.mean[out] - m.y_mean) / m.y_sd;
            missed += rows.repeats[out] * (y - mean) * (y - mean);
            all += rows.repeats[out] * (y - plain / runs) * (y - plain / runs);
        }
        print_message("# %g explained\n", explained);
        assert_near(explained, 1.0 - missed / all, 1e-6);
        assert_true(noisy ? explained < 0.3 : explained > 0.8);
    }
}

TEST(it_learns)
{
    struct space space = unit_space(3);
    struct rows rows;
    AT_END(model_free) struct model m = {0};
    fill_rows(&rows, &space, 40, 6);
    rows.data.smooth = *fixture != NULL;
    for (size_t j = 0; j < 40; j++) {
        rows.mean[j] = sin(5.0 * rows.u[3 * j]) + 0.5 * rows.u[3 * j + 1];
        rows.repeats[j] = 1.0;
        rows.ss[j] = 0.0;
    }
    model_init(&m, &space, 40);
    model_set_data(&m, &rows.data);
    double g[5], before = model_objective(&m, m.theta, g);
    model_fit(&m, 40, 40);
    assert_true(model_objective(&m, m.theta, g) < before - 10.0);
    assert_true(m.theta[2] > m.theta[0] + 1.0); /* the idle dimension gets a long length */
    OK(model_factor(&m, err));
    double cross[40], mean, sd, worst = 0.0;
    for (size_t j = 0; j < 40; j++) { /* at the data, little noise */
        model_predict(&m, rows.u + 3 * j, 1, cross, &mean, &sd);
        assert_near(m.y_mean + m.y_sd * mean, rows.mean[j], 0.02);
        assert_true(sd >= 0.0 && sd < 0.1);
    }
    struct rng r = rng_seed(8);
    for (int t = 0; t < 200; t++) {
        double u[3] = {0.1 + 0.8 * rng_f64(&r), rng_f64(&r), rng_f64(&r)};
        model_predict(&m, u, 1, cross, &mean, &sd);
        worst = fmax(worst, fabs(m.y_mean + m.y_sd * mean - sin(5.0 * u[0]) - 0.5 * u[1]));
        assert_true(sd >= 0.0);
    }
    assert_true(worst < 0.2);
}

static void check_hard(struct rows *rows, const struct space *space)
{
    AT_END(model_free) struct model m = {0};
    size_t n = rows->data.n;
    model_init(&m, space, n + 4);
    model_set_data(&m, &rows->data);
    model_fit(&m, 25, 16); /* also with thinned rows */
    for (size_t i = 0; i < space->dim; i++) /* lengths do not run away */
        assert_true(m.theta[i] >= log(0.02) && m.theta[i] <= log(50.0));
    OK(model_factor(&m, err));
    OK(model_believe(&m, rows->u, 4, err)); /* four exact duplicates */
    double cross[N_MAX + 8], mean, sd;
    struct rng r = rng_seed(9);
    for (int t = 0; t < 50; t++) {
        double u[SPACE_MAX_DIM];
        for (size_t i = 0; i < space->dim; i++)
            u[i] = t < 20 ? rows->u[(size_t)t % n * space->dim + i] : rng_f64(&r);
        model_predict(&m, u, 1, cross, &mean, &sd);
        assert_true(isfinite(mean) && isfinite(sd) && sd >= 0.0);
        assert_true(isfinite(m.y_mean + m.y_sd * mean) && isfinite(m.y_sd * sd));
        double dm[SPACE_MAX_DIM], ds[SPACE_MAX_DIM];
        model_predict_gradient(&m, u, &mean, &sd, dm, ds);
        for (size_t i = 0; i < space->dim; i++)
            assert_true(isfinite(dm[i]) && isfinite(ds[i]));
    }
}

TEST(hard_data)
{
    struct space space = unit_space(3);
    struct rows rows;
    const double scales[] = {1e-300, 1e-12, 1.0, 1e12, 1e300};
    for (int s = 0; s < 5; s++) {
        fill_rows(&rows, &space, 30, 10);
        rows.data.smooth = *fixture != NULL;
        for (size_t j = 0; j < 30; j++)
            rows.mean[j] = scales[s] * (rows.mean[j] - 100.0);
        check_hard(&rows, &space);
    }
    fill_rows(&rows, &space, 30, 11);
    rows.data.smooth = *fixture != NULL;
    for (size_t j = 0; j < 30; j++)
        rows.mean[j] = 0.1; /* constant, and not a sum of powers of two */
    check_hard(&rows, &space);
    fill_rows(&rows, &space, 30, 12);
    rows.data.smooth = *fixture != NULL;
    for (size_t j = 0; j < 30 * 3; j++) /* near duplicates with jumping outputs */
        rows.u[j] = 0.5 + 1e-13 * (double)(j % 7);
    check_hard(&rows, &space);
    fill_rows(&rows, &space, 30, 13);
    rows.data.smooth = *fixture != NULL;
    rows.mean[7] = -1e9; /* one outlier */
    check_hard(&rows, &space);
    fill_rows(&rows, &space, 4, 14);
    rows.data.smooth = *fixture != NULL;
    check_hard(&rows, &space);
}

TEST(thinning_puts_rows_back)
{
    struct space space = unit_space(2);
    struct rows rows;
    AT_END(model_free) struct model m = {0};
    fill_rows(&rows, &space, 50, 15);
    model_init(&m, &space, 50);
    model_set_data(&m, &rows.data);
    model_fit(&m, 5, 12);
    assert_int_equal(m.n, 50);
    for (size_t j = 0; j < 50; j++) {
        assert_true(m.x[j] == rows.u[2 * j] && m.x[m.ld + j] == rows.u[2 * j + 1]);
        assert_near(m.y_mean + m.y_sd * (m.y[j] + model_trend(&m, m.x + j, m.ld)), rows.mean[j], 1e-9);
    }
}

int main(void)
{
    openblas_set_num_threads(1);
    static int smooth; /* the state of tests of the other kind of models */
    const struct CMUnitTest of_smooth[] = {
        {"smooth_likelihood_gradient", test_likelihood_gradient, NULL, NULL, &smooth},
        {"smooth_prediction_against_dense_algebra", test_prediction_against_dense_algebra, NULL, NULL, &smooth},
        {"smooth_believing_extends_the_factors", test_believing_extends_the_factors, NULL, NULL, &smooth},
        {"smooth_a_field_narrows_like_the_model", test_a_field_narrows_like_the_model, NULL, NULL, &smooth},
        {"smooth_it_learns", test_it_learns, NULL, NULL, &smooth},
        {"smooth_hard_data", test_hard_data, NULL, NULL, &smooth},
    };
    for (size_t i = 0; i < COUNT(of_smooth); i++)
        unit_test_add(__LINE__, of_smooth[i]);
    return run_cases("gp.model", NULL, NULL);
}
