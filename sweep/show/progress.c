/* progress.c - shows a running sweep: a status block on a terminal, else a line for each trial. */
#include "sweep/show/progress.h"

#include "base/text/duration.h"
#include "study/findings/believed.h"
#include "study/setup/setup.h"
#include "sweep/control/status_json.h"
#include "sweep/controller/sched_study.h"
#include "sweep/show/status_block.h"
#include "sweep/term.h"

#define BLOCK_MAX 65536

/* "-" while the reference still moves: numbers that fall would only puzzle. */
static const char *hypervolume_text(const struct study_view *v, char text[32])
{
    if (study_view_count(v, TRIAL_DONE) < PARETO_REF_TRIALS)
        return "-";
    snprintf(text, 32, "%.4g", believed_volume(v, &v->ref, BELIEVED_NOW));
    return text;
}

static int64_t ended(const struct study_view *v)
{
    return (int64_t)study_view_n_runs(v) - study_view_count(v, TRIAL_QUEUED) - study_view_count(v, TRIAL_RUNNING);
}

static double fraction_done(const struct progress *p)
{
    return stop_rules_fraction(p->ss, sched_study_running_s(p->ss, p->sched), clock_mono_s());
}

static double seconds_left(const struct progress *p)
{
    double spent_s = clock_mono_s() - p->begin_s, f = fraction_done(p), gained = f - p->fraction_before;

    return gained > 0 ? spent_s * (1 - f) / gained : NAN;
}

static void on_tick(void *ctx)
{
    struct progress *p = ctx;
    struct sweep_status status;
    struct term_style style;

    if (!p->tty)
        return;
    STRBUF(text, BLOCK_MAX);
    sweep_status_take(p->sched, p->ss, &status);
    term_style_take(&style);
    status_block_write(&(struct status_block){&p->ss->view, p->ss->setup->env->name, &status, seconds_left(p)}, &style,
                       &text);
    if (text.len > 0)
        term_draw(text.text);
}

/* left: NULL, unknown. */
static void print_trial_line(const struct study_view *v, const struct trial *trial, int64_t n, const char *left,
                             bool stopping)
{
    char cost[32], hv[32];

    fprintf(stderr, "%lld", (long long)n);
    if (v->study.limits.trials_max > 0)
        fprintf(stderr, "/%lld", (long long)v->study.limits.trials_max);
    fprintf(stderr, "  trial %lld %s", (long long)trial->number, trial_state_name(trial->state));
    if (v->search.envs.n > 0)
        fprintf(stderr, " on %s", study_view_env(v, (size_t)trial->number));
    if (trial_is_seed(trial))
        fprintf(stderr, ", another seed of trial %lld", (long long)study_view_first_run(v, trial->number));
    if (trial_is_confirming(trial))
        fprintf(stderr, ", confirming trial %lld", (long long)study_view_first_run(v, trial->number));
    if (trial->state == TRIAL_DONE)
        fprintf(stderr, "  %s %.4g  cost %s  front %zu  hv %s%s%s\n", v->study.metric, trial->score,
                study_view_cost_text(v, study_view_trial_cost(v, trial), cost), study_view_front_size(v),
                hypervolume_text(v, hv), left != NULL ? "  left " : "", left != NULL ? left : "");
    else if (trial->state == TRIAL_QUEUED)
        fprintf(stderr, "  it runs again%s\n", stopping ? " on resume" : "");
    else
        fprintf(stderr, "  %s\n", trial->reason != NULL ? trial->reason : "");
}

void progress_print_trial(const struct study_view *view, const struct trial *trial, int64_t n)
{
    print_trial_line(view, trial, n, NULL, false);
}

static void on_trial_end(void *ctx, const struct sched_study *ss, const struct trial *trial)
{
    struct progress *p = ctx;
    const struct study_view *v = &ss->view;
    char left[32];

    if (p->quiet || ss != p->ss)
        return;
    if (p->tty) {
        on_tick(p);
        return;
    }
    print_trial_line(v, trial, ended(v), format_seconds(seconds_left(p), left), p->sched->stopping);
}

void progress_begin(struct progress *p, struct scheduler *sched, struct sched_study *ss, bool quiet)
{
    const struct study_view *v = &ss->view;

    *p = (struct progress){.sched = sched, .ss = ss, .quiet = quiet, .begin_s = clock_mono_s()};
    p->fraction_before = fraction_done(p);
    p->tty = !quiet && term_begin();
    sched->listener = (struct sched_listener){.ctx = p, .on_trial_end = on_trial_end, .on_tick = on_tick};
    if (!quiet && !p->tty)
        fprintf(stderr, "sweep %s: %s %s by %s over %zu parameter%s of %s\n", v->study.name,
                v->study.maximize ? "maximizing" : "minimizing", v->study.metric, v->study.method, v->search.space.dim,
                v->search.space.dim == 1 ? "" : "s",
                ss->setup->envs.n > 0 ? ss->setup->sweep.envs : ss->setup->env->name);
}

void progress_end(struct progress *p)
{
    if (p->tty)
        term_end();
    p->tty = false;
}
