/* progress.c - what a sweep shows: a live block on a terminal (front as a small plot), else a line per trial; and the
 * summary at the end. */
#include "sweep/scheduler.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

#define PLOT_ROWS 10
#define PLOT_COLUMNS 60
#define BLOCK_MAX 8192
#define FRONT_MAX_ROWS 20
#define FLIGHTS_SHOWN 4

struct text {
    char *buf;
    size_t n, size;
};

static void PRINTF_LIKE(2, 3) put(struct text *t, const char *fmt, ...)
{
    va_list args;
    int wrote;

    va_start(args, fmt);
    wrote = vsnprintf(t->buf + t->n, t->size - t->n, fmt, args);
    va_end(args);
    if (wrote > 0)
        t->n = (size_t)wrote < t->size - t->n ? t->n + (size_t)wrote : t->size - 1;
}

static size_t front_size(const struct study_view *v)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++)
        n += v->on_front[i];
    return n;
}

/* "-" while the reference still moves: numbers that fall would only puzzle. */
static const char *hypervolume_text(const struct study_view *v, char text[32])
{
    if (study_view_count(v, TRIAL_DONE) < PARETO_REF_TRIALS)
        return "-";
    snprintf(text, 32, "%.4g", pareto_hypervolume(&v->history, &v->ref));
    return text;
}

static int64_t ended(const struct study_view *v)
{
    return (int64_t)v->n - study_view_count(v, TRIAL_QUEUED) - study_view_count(v, TRIAL_RUNNING);
}

/* Range of cost and score over the finished trials; false when there are none. */
static bool plot_range(const struct study_view *v, double lo[2], double hi[2])
{
    bool any = false;

    for (size_t i = 0; i < v->n; i++) {
        double p[2] = {log(v->gp[i].cost), v->gp[i].score};
        if (v->gp[i].state != GP_TRIAL_DONE)
            continue;
        for (int k = 0; k < 2; k++) {
            lo[k] = any ? fmin(lo[k], p[k]) : p[k];
            hi[k] = any ? fmax(hi[k], p[k]) : p[k];
        }
        any = true;
    }
    return any;
}

static int cell(double value, double lo, double hi, int n)
{
    return hi > lo ? (int)((value - lo) / (hi - lo) * (n - 1) + 0.5) : n / 2;
}

/* Score over log cost: '.' dominated, 'o' on the front, '*' the best. */
static void put_plot(struct text *t, const struct study_view *v)
{
    char grid[PLOT_ROWS][PLOT_COLUMNS + 1], a[32], b[32];
    double lo[2], hi[2], sign = v->study.maximize ? 1 : -1;
    size_t best = study_view_best(v);

    if (!plot_range(v, lo, hi))
        return;
    for (int r = 0; r < PLOT_ROWS; r++) {
        memset(grid[r], ' ', PLOT_COLUMNS);
        grid[r][PLOT_COLUMNS] = '\0';
    }
    for (int pass = 0; pass < 2; pass++) /* the front over the rest */
        for (size_t i = 0; i < v->n; i++) {
            int column, row;
            if (v->gp[i].state != GP_TRIAL_DONE || v->on_front[i] != (pass == 1))
                continue;
            column = cell(log(v->gp[i].cost), lo[0], hi[0], PLOT_COLUMNS);
            row = PLOT_ROWS - 1 - cell(v->gp[i].score, lo[1], hi[1], PLOT_ROWS);
            grid[row][column] = i == best ? '*' : pass == 1 ? 'o' : '.';
        }
    for (int r = 0; r < PLOT_ROWS; r++) {
        if (r == 0 || r == PLOT_ROWS - 1)
            put(t, "%9.4g |%s\n", sign * (r == 0 ? hi[1] : lo[1]), grid[r]);
        else
            put(t, "%9s |%s\n", "", grid[r]);
    }
    put(t, "%9s +", v->study.metric);
    for (int i = 0; i < PLOT_COLUMNS; i++)
        put(t, "-");
    put(t, "\n%9s  %-*s%s\n", "cost", PLOT_COLUMNS - 7, format_seconds(exp(lo[0]), a), format_seconds(exp(hi[0]), b));
}

static double fraction_done(const struct progress *p)
{
    return study_limits_fraction(p->run, study_run_running_s(p->run, p->sched), clock_mono_s());
}

static const char *time_left(const struct progress *p, char buf[32])
{
    double spent_s = clock_mono_s() - p->begin_s, f = fraction_done(p), gained = f - p->fraction_before;

    return format_seconds(gained > 0 ? spent_s * (1 - f) / gained : NAN, buf);
}

static void put_flight(struct text *t, const struct flight *f, const struct scheduler *s)
{
    const struct study_view *v = &f->run->view;
    const struct trial *trial = &v->trials[f->i];
    char steps[NUM_TEXT_MAX], time[32];

    put(t, "trial %lld (%s) on %s: %s steps, %s", (long long)trial->number, trial->origin, f->slot->name,
        num_format_short((double)f->env_steps, steps), format_seconds(s->now_s - f->start_s, time));
    if (isfinite(f->score))
        put(t, ", %s %.4g", v->study.metric, f->score);
    put(t, "\n");
}

static void put_flights(struct text *t, const struct progress *p)
{
    int n = 0;

    for (size_t i = 0; i < p->sched->n_workers; i++)
        for (int lane = 0; lane < p->sched->workers[i].spec.lanes; lane++) {
            const struct flight *f = p->sched->workers[i].slots[lane].flight;
            if (f != NULL && f->run == p->run && n++ < FLIGHTS_SHOWN)
                put_flight(t, f, p->sched);
        }
    if (n > FLIGHTS_SHOWN)
        put(t, "and %d more\n", n - FLIGHTS_SHOWN);
}

static void on_tick(void *ctx)
{
    const struct progress *p = ctx;
    char buf[BLOCK_MAX], bar[80], left[32], hv[32];
    struct text t = {.buf = buf, .size = sizeof buf};
    const struct study_view *v = &p->run->view;
    size_t best = study_view_best(v);
    double f;

    if (!p->tty)
        return;
    f = fraction_done(p);
    buf[0] = '\0';
    put(&t, "sweep %s: %s %s of %s by %s\n", v->study.name, v->study.maximize ? "maximize" : "minimize",
        v->study.metric, p->run->setup->env->name, v->study.method);
    put(&t, "%s %3.0f %%   left %s\n", term_bar(f, 30, bar), 100 * f, time_left(p, left));
    put(&t, "done %lld  failed %lld  stopped %lld  front %zu  hypervolume %s",
        (long long)study_view_count(v, TRIAL_DONE), (long long)study_view_count(v, TRIAL_FAILED),
        (long long)study_view_count(v, TRIAL_STOPPED), front_size(v), hypervolume_text(v, hv));
    if (best < v->n)
        put(&t, "  best %.4g (trial %lld)", v->trials[best].score, (long long)v->trials[best].number);
    put(&t, "\n");
    put_flights(&t, p);
    put_plot(&t, v);
    term_draw(buf);
}

/* left: NULL, unknown. */
static void print_trial_line(const struct study_view *v, const struct trial *trial, int64_t n, const char *left,
                             bool stopping)
{
    char cost[32], hv[32];

    fprintf(stderr, "%lld", (long long)n);
    if (v->study.trials_max > 0)
        fprintf(stderr, "/%lld", (long long)v->study.trials_max);
    fprintf(stderr, "  trial %lld %s", (long long)trial->number, trial_state_name(trial->state));
    if (trial->state == TRIAL_DONE)
        fprintf(stderr, "  %s %.4g  cost %s  front %zu  hv %s%s%s\n", v->study.metric, trial->score,
                format_seconds(trial->cost_s, cost), front_size(v), hypervolume_text(v, hv),
                left != NULL ? "  left " : "", left != NULL ? left : "");
    else if (trial->state == TRIAL_QUEUED)
        fprintf(stderr, "  it runs again%s\n", stopping ? " on resume" : "");
    else
        fprintf(stderr, "  %s\n", trial->reason != NULL ? trial->reason : "");
}

void progress_print_trial(const struct study_view *view, const struct trial *trial, int64_t n)
{
    print_trial_line(view, trial, n, NULL, false);
}

static void on_trial_end(void *ctx, const struct study_run *run, const struct trial *trial)
{
    struct progress *p = ctx;
    const struct study_view *v = &run->view;
    char left[32];

    if (p->quiet || run != p->run)
        return;
    if (p->tty) {
        on_tick(p);
        return;
    }
    print_trial_line(v, trial, ended(v), time_left(p, left), p->sched->stopping);
}

void progress_begin(struct progress *p, struct scheduler *sched, const struct study_run *run, bool quiet)
{
    const struct study_view *v = &run->view;

    *p = (struct progress){.sched = sched, .run = run, .quiet = quiet, .begin_s = clock_mono_s()};
    p->fraction_before = fraction_done(p);
    p->tty = !quiet && term_begin();
    sched->listener = (struct sched_listener){.ctx = p, .on_trial_end = on_trial_end, .on_tick = on_tick};
    if (!quiet && !p->tty)
        fprintf(stderr, "sweep %s: %s %s by %s over %zu parameters of %s\n", v->study.name,
                v->study.maximize ? "maximizing" : "minimizing", v->study.metric, v->study.method, v->search.space.dim,
                run->setup->env->name);
}

void progress_end(struct progress *p)
{
    if (p->tty)
        term_end();
    p->tty = false;
}

/* Rows of the front by cost. */
static size_t sorted_front(const struct study_view *v, size_t *ret_rows, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++) {
        size_t k = n;
        if (!v->on_front[i])
            continue;
        if (n == max) { /* keep the dearest: they are the best */
            memmove(ret_rows, ret_rows + 1, (--n) * sizeof *ret_rows);
            k = n;
        }
        while (k > 0 && v->gp[ret_rows[k - 1]].cost > v->gp[i].cost) {
            ret_rows[k] = ret_rows[k - 1];
            k--;
        }
        ret_rows[k] = i;
        n++;
    }
    return n;
}

static const char *column_name(const struct study_view *v, size_t k)
{
    const char *dot = strrchr(v->search.space.params[k].key, '.');

    return dot != NULL ? dot + 1 : v->search.space.params[k].key;
}

/* End of the parameters from `from` on whose columns fill at most width, one at least. */
static size_t columns_that_fit(const struct study_view *v, size_t from, int width)
{
    size_t end = from;

    while (end < v->search.space.dim && (end == from || (int)strlen(column_name(v, end)) < width)) {
        width -= (int)strlen(column_name(v, end)) + 1;
        end++;
    }
    return end;
}

/* The front's trials with parameters [from, end); cost and score stand in the first block. */
static void print_front_block(const struct study_view *v, const size_t *rows, size_t n, size_t from, size_t end)
{
    printf("%6s ", "trial");
    if (from == 0)
        printf("%10s %10s ", "cost", v->study.metric);
    for (size_t k = from; k < end; k++)
        printf(" %s", column_name(v, k));
    printf("\n");
    for (size_t r = 0; r < n; r++) {
        const struct trial *t = &v->trials[rows[r]];
        char cost[32], value[64];
        printf("%6lld ", (long long)t->number);
        if (from == 0)
            printf("%10s %10.4g ", format_seconds(t->cost_s, cost), t->score);
        for (size_t k = from; k < end; k++) {
            search_show(&v->search, k, v->x[rows[r]][k], value, sizeof value);
            printf(" %*s", (int)strlen(column_name(v, k)), value);
        }
        printf("\n");
    }
}

void print_front_table(const struct study_view *v)
{
    size_t rows[FRONT_MAX_ROWS], n = sorted_front(v, rows, FRONT_MAX_ROWS), all = front_size(v), from = 0;
    int width = isatty(STDOUT_FILENO) ? term_width(STDOUT_FILENO) : INT_MAX;

    if (n == 0) {
        printf("no trial is done yet, so there is no front\n");
        return;
    }
    printf("front of cost and %s%s:\n", v->study.metric, n < all ? " (its dearest part)" : "");
    do {
        size_t end = columns_that_fit(v, from, width - (from == 0 ? 31 : 9));
        print_front_block(v, rows, n, from, end);
        from = end;
    } while (from < v->search.space.dim);
}

void progress_print_summary(const struct study_view *v, const char *store_path)
{
    struct strbuf store;
    char cost[32];

    printf("%s: %lld done, %lld failed, %lld stopped, %lld waiting; %s of training\n", v->study.name,
           (long long)study_view_count(v, TRIAL_DONE), (long long)study_view_count(v, TRIAL_FAILED),
           (long long)study_view_count(v, TRIAL_STOPPED),
           (long long)(study_view_count(v, TRIAL_QUEUED) + study_view_count(v, TRIAL_RUNNING)),
           format_seconds(study_view_cost(v), cost));
    print_front_table(v);
    strbuf_init(&store, OUTPUT_MAX_BYTES);
    strbuf_add_shell(&store, store_path);
    printf("\nnext:\n  trawl report %s --store %s -o report.html\n", v->study.name, store.text);
    if (study_view_best(v) < v->n)
        printf("  trawl export %s --store %s --pick best -o best.ini && trawl train best.ini\n", v->study.name,
               store.text);
    printf("  trawl sweep --resume %s --store %s", v->study.name, store.text);
    if (v->study.trials_max > 0)
        printf(" --trials %lld", (long long)(2 * v->study.trials_max));
    if (v->study.budget_s > 0) {
        double twice_s = ceil(2 * v->study.budget_s), unit_s = fmod(twice_s, 3600) == 0 ? 3600
                                                               : fmod(twice_s, 60) == 0 ? 60
                                                                                        : 1;
        printf(" --budget %.0f%c", twice_s / unit_s, unit_s == 3600 ? 'h' : unit_s == 60 ? 'm' : 's');
    }
    printf("\n");
    strbuf_free(&store);
}
