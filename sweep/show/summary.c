/* summary.c - the front as a table, and the summary of a sweep: results, failures with their reasons, next commands.
 * To stdout. */
#include "sweep/show/summary.h"

#include "base/text/duration.h"
#include "study/findings/failures.h"
#include "study/view/promise.h"
#include "study/view/resume_command.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "study/version.h"
#include "sweep/controller/trial/checkpoints.h"
#include "sweep/term.h"

#define FRONT_MAX_ROWS 20

/* What is believed of trial i, as the front's table shows it. */
static double shown_cost(const struct study_view *v, size_t i)
{
    const struct gp_belief *b = study_view_belief(v, i);

    return b != NULL ? exp(b->log_cost) : v->gp[i].cost;
}

/* Rows of the front by cost. */
static size_t sorted_front(const struct study_view *v, size_t *ret_rows, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++) {
        size_t k = n;
        if (!v->on_front[i])
            continue;
        if (n == max) { /* keep the most expensive: they are the best */
            memmove(ret_rows, ret_rows + 1, (--n) * sizeof *ret_rows);
            k = n;
        }
        while (k > 0 && shown_cost(v, ret_rows[k - 1]) > shown_cost(v, i)) {
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

#define FIRST_COLUMNS 64 /* width of trial, cost, score, interval and seeds */

/* Cost and score are the models' expectation for a config, not the result of its one run. */
static void print_promise_columns(const struct study_view *v, size_t i)
{
    char cost[32], score[32] = "-", interval[PROMISE_TEXT_MAX] = "-", seeds[32], third[NUM_TEXT_MAX];
    struct promise p;

    study_view_promise(v, i, &p);
    if (p.is_known)
        promise_interval_text(&p, interval);
    snprintf(score, sizeof score, "%.4g", p.score);
    if (p.n_seeds > 1)
        snprintf(seeds, sizeof seeds, "%zu", p.n_seeds);
    else
        snprintf(seeds, sizeof seeds, "once");
    printf("%12s %10s ", study_view_cost_text(v, shown_cost(v, i), cost), score);
    if (study_view_has_third(v))
        printf("%10s ", num_format_short(study_view_expected_third(v, i), third));
    printf("%22s %5s ", interval, seeds);
}

/* The front's trials with parameters [from, end); cost and score stand in the first block. */
static void print_front_block(const struct study_view *v, const size_t *rows, size_t n, size_t from, size_t end)
{
    printf("%6s ", "trial");
    if (from == 0)
        printf("%12s %10s ", "cost", v->study.metric);
    if (from == 0 && study_view_has_third(v))
        printf("%10s ", v->search.outcomes.third);
    if (from == 0)
        printf("%22s %5s ", "95 %", "seen");
    for (size_t k = from; k < end; k++)
        printf(" %s", column_name(v, k));
    printf("\n");
    for (size_t r = 0; r < n; r++) {
        const struct trial *t = &v->trials[rows[r]];
        char value[64];
        printf("%6lld ", (long long)t->number);
        if (from == 0)
            print_promise_columns(v, rows[r]);
        for (size_t k = from; k < end; k++) {
            study_view_param_text(v, rows[r], k, value, sizeof value);
            printf(" %*s", (int)strlen(column_name(v, k)), value);
        }
        printf("\n");
    }
}

void print_front_table(const struct study_view *v)
{
    size_t rows[FRONT_MAX_ROWS], n = sorted_front(v, rows, FRONT_MAX_ROWS), all = study_view_front_size(v), from = 0;
    int width = isatty(STDOUT_FILENO) ? term_width(STDOUT_FILENO) : INT_MAX;

    if (n == 0) {
        printf(v->search.outcomes.n_limits > 0 && study_view_count(v, TRIAL_DONE) > 0
                   ? "no trial keeps all limits yet, so there is no front\n"
                   : "no trial is done yet, so there is no front\n");
        return;
    }
    if (study_view_has_third(v))
        printf("front of cost, %s and %s%s, expected:\n", v->study.metric, v->search.outcomes.third,
               n < all ? " (its most expensive part)" : "");
    else
        printf("front of cost and %s%s, expected:\n", v->study.metric, n < all ? " (its most expensive part)" : "");
    do {
        size_t end = columns_that_fit(v, from, width - (from == 0 ? FIRST_COLUMNS : 9));
        print_front_block(v, rows, n, from, end);
        from = end;
    } while (from < v->search.space.dim);
}

/* ---- what failed ---- */

static void print_failures(const struct study_view *v, const char *store)
{
    AT_END(failures_free) struct failures f = {0};

    failures_find(v, &f);
    if (f.n > 0)
        printf("\nfailed:\n");
    for (size_t k = 0; k < f.n_reasons; k++)
        printf("  %4zu x  %s (trial %zu)\n", f.reasons[k].n, f.reasons[k].text, f.reasons[k].first);
    if (f.n_other > 0)
        printf("  %4zu x  for other reasons; see `trawl show %s --store %s`\n", f.n_other, v->study.name, store);
}

/* ---- a cap that no trial has kept ---- */

void summary_print_cap(struct study_view *v)
{
    size_t n_init, n_done = 0;
    double cap, cheapest = INFINITY;
    struct setup *setup;
    char cap_text[32], cost_text[32];

    if (study_view_setup(v, &setup, NULL) != ST_OK || !(setup->sweep.max_cost > 0))
        return;
    cap = setup->sweep.max_cost;
    n_init = (size_t)setup->sweep.seeds * suggester_n_init(v->search.space.dim, (size_t)setup->sweep.n_init);
    for (size_t i = 0; i < v->n; i++)
        if (v->trials[i].state == TRIAL_DONE) {
            n_done++;
            cheapest = fmin(cheapest, study_view_trial_cost(v, &v->trials[i]));
        }
    if (n_done >= n_init && isfinite(cheapest) && cheapest > cap)
        printf("warning: no trial so far cost less than sweep.max_cost (%s); the cheapest cost %s\n",
               study_view_cost_text(v, cap, cap_text), study_view_cost_text(v, cheapest, cost_text));
}

/* ---- what to do next ---- */

/* With twice the limit that has ended it; one that has not is still good. */
static void print_resume(const struct study_view *v, const char *store_path)
{
    const struct study *s = &v->study;
    bool at_target = s->state == STUDY_ENDED && s->end_rule != NULL && strcmp(s->end_rule, "target") == 0;
    STRBUF(command, OUTPUT_MAX_BYTES);

    study_resume_command(v, store_path, &command);
    printf("  %s", command.text);
    if (at_target)
        printf("     # a better one than %.6g", s->limits.target_score);
    printf("\n");
}

static void print_pick(const struct study_view *v, size_t i, const char *what)
{
    char text[PROMISE_TEXT_MAX], cost[PROMISE_TEXT_MAX];
    struct promise p;

    study_view_promise(v, i, &p);
    printf("  %-8s trial %lld, %s %s at a cost of %s\n", what, (long long)v->trials[i].number, v->study.metric,
           promise_text(&p, text), promise_cost_text(&p, v->search.cost, cost));
}

static void print_best_run(const struct study_view *v, size_t i)
{
    char cost[32];

    printf("  %-8s trial %lld, %s %.5g at a cost of %s in that run, which may be luck\n", "best-run",
           (long long)v->trials[i].number, v->study.metric, study_view_run_score(v, i),
           study_view_cost_text(v, v->gp[i].cost, cost));
}

/* What the front offers, by the names of `export --pick`, and the commands that make use of it. */
static void print_next(const struct study_view *v, const char *store, const char *store_path)
{
    const char *name = v->study.name;
    size_t best = study_view_pick(v, GP_BEST), run = study_view_best_run(v), knee = study_view_pick(v, GP_KNEE);
    struct promise p;

    if (best < v->n) {
        printf("\nrecommended (95 %%: interval of the mean of %d runs under fresh seeds):\n", GP_PROMISE_SEEDS);
        print_pick(v, best, "best");
        if (knee < v->n && knee != best)
            print_pick(v, knee, "knee");
        if (!study_view_same_point(v, run, best))
            print_best_run(v, run);
    }
    printf("\nnext:\n  trawl report %s --store %s -o report.html\n", name, store);
    if (best < v->n) {
        study_view_promise(v, best, &p);
        printf("  trawl export %s --store %s --pick best -o best.ini && trawl train best.ini\n", name, store);
        printf("  trawl rerun %s --store %s --trial %lld --seeds %d     # %s\n", name, store,
               (long long)v->trials[best].number, GP_PROMISE_SEEDS,
               p.n_seeds < 2 ? "it was seen once: was it luck?" : "fresh seeds");
    }
    if (study_view_count(v, TRIAL_FAILED) > 0 && best == v->n)
        printf("  trawl show %s --store %s\n", name, store);
    if (v->study.state == STUDY_RUNNING)
        printf("  trawl show %s --store %s     # the daemon still runs it\n", name, store);
    else
        print_resume(v, store_path);
}

/* How much of it went into runs under fresh seeds. */
static void print_confirmed(const struct study_view *v)
{
    int64_t n = 0;
    double cost_s = 0;
    char text[32];

    for (size_t i = 0; i < v->n; i++)
        if (trial_is_confirming(&v->trials[i])) {
            n++;
            cost_s += isfinite(v->trials[i].cost_s) ? v->trials[i].cost_s : 0;
        }
    if (n > 0)
        printf("confirming: %lld of the trials (%s) ran configs of the front again under fresh seeds\n", (long long)n,
               format_seconds(cost_s, text));
}

static void print_checkpoints(const struct study_view *v, const char *store_path)
{
    char folder[PATH_MAX];
    int64_t n;
    double bytes;

    checkpoints_usage(store_path, v->study.name, &n, &bytes);
    checkpoints_folder(store_path, folder);
    if (n > 0)
        printf("checkpoints: %lld, %.1f MB, in %s\n", (long long)n, bytes / 1e6, folder);
}

enum status progress_print_summary(struct study_view *v, const char *store_path, struct error *err)
{
    const struct study *s = &v->study;
    char cost[32], wall[32];

    TRY(study_view_advise(v, err));
    STRBUF(store, OUTPUT_MAX_BYTES);
    strbuf_add_shell(&store, store_path);
    printf("%s: %lld done, %lld failed, %lld stopped, %lld waiting; %s of training", s->name,
           (long long)study_view_count(v, TRIAL_DONE), (long long)study_view_count(v, TRIAL_FAILED),
           (long long)study_view_count(v, TRIAL_STOPPED),
           (long long)(study_view_count(v, TRIAL_QUEUED) + study_view_count(v, TRIAL_RUNNING)),
           format_seconds(study_view_cost(v), cost));
    if (s->wall_used_s > 0)
        printf(" in %s", format_seconds(s->wall_used_s, wall));
    printf("\n");
    if (s->end_rule != NULL)
        printf("%s (%s): %s\n", study_state_name(s->state), s->end_rule, s->end_text != NULL ? s->end_text : "");
    summary_print_cap(v);
    print_confirmed(v);
    print_front_table(v);
    print_failures(v, store.text);
    print_checkpoints(v, store_path);
    print_next(v, store.text, store_path);
    return ST_OK;
}
