/* status_block.c - the block on the terminal of a sweep: how far, how good, the front, the slots, the last events. */
#include "sweep/show/status_block.h"

#include "base/text/duration.h"
#include "study/findings/believed.h"
#include "study/view/promise.h"
#include "study/view/study_view.h"
#include "sweep/control/status_json.h"
#include "sweep/show/plot.h"
#include "sweep/term.h"

#define SLOTS_SHOWN 6
#define EVENTS_SHOWN 4
#define NARROW 72 /* columns: below, lines are folded or left out */
#define PLOT_MIN 5
#define PLOT_MAX 18

static void add_painted(struct strbuf *out, const struct term_style *style, enum term_color color, const char *text)
{
    strbuf_addf(out, "%s%s%s", term_paint(style, color), text, term_paint(style, COLOR_NONE));
}

static void add_limit(struct strbuf *out, double spent_s, double max_s, const char *what, bool *any)
{
    char a[32], b[32];

    if (max_s <= 0)
        return;
    strbuf_addf(out, "%s%s of %s %s", *any ? ", " : "", format_seconds(spent_s, a), format_seconds(max_s, b), what);
    *any = true;
}

static void write_limits(const struct study_view *v, double wall_s, struct strbuf *out)
{
    const struct study *s = &v->study;
    bool any = false;
    double device_s = 0;

    for (size_t i = 0; i < v->n; i++)
        device_s += isfinite(v->trials[i].device_s) && !v->gp[i].is_branch ? v->trials[i].device_s : 0;
    if (s->limits.trials_max > 0) {
        strbuf_addf(out, "%lld of %lld trial%s", (long long)study_view_n_runs(v), (long long)s->limits.trials_max,
                    PLURAL(s->limits.trials_max));
        any = true;
    }
    add_limit(out, study_view_cost(v), s->limits.budget_s, "training", &any);
    add_limit(out, isfinite(wall_s) ? wall_s : s->wall_used_s, s->limits.wall_max_s, "at work", &any);
    add_limit(out, device_s, s->limits.device_max_s, "of devices", &any);
    if (s->limits.has_target) {
        strbuf_addf(out, "%starget %s %.4g", any ? ", " : "", s->metric, s->limits.target_score);
        any = true;
    }
    if (!any)
        strbuf_addf(out, "%zu trial%s", v->n, PLURAL(v->n));
}

static void add_head(const struct status_block *b, const struct term_style *style, struct strbuf *out)
{
    const struct study_view *v = b->view;
    char bar[80], left[32];
    int width = style->width >= 60 ? 24 : 10;
    double f = isfinite(b->status->fraction) ? b->status->fraction : 0;

    add_painted(out, style, COLOR_HEAD, v->study.name);
    strbuf_addf(out, "  %s %s of %s by %s%s\n", v->study.maximize ? "maximize" : "minimize", v->study.metric, b->env,
                v->study.method,
                v->study.state == STUDY_PAUSED ? ", PAUSED (`trawl continue` resumes it)"
                : b->status->daemon            ? ", by the daemon"
                                               : "");
    strbuf_addf(out, "%s %3.0f %%  ", term_bar(f, width, bar), 100 * f);
    if (isfinite(b->left_s))
        strbuf_addf(out, "left %s  ", format_seconds(b->left_s, left));
    write_limits(v, b->status->wall_s, out);
    strbuf_add(out, "\n");
}

static int64_t running_confirming(const struct study_view *v)
{
    int64_t n = 0;

    for (size_t i = 0; i < v->n; i++)
        n += v->trials[i].state == TRIAL_RUNNING && trial_is_confirming(&v->trials[i]);
    return n;
}

/* "best 0.93 (0.9 to 0.95, 3 seeds, mean 0.93)  trial 7, cost 0.4 s" */
static void add_pick(const struct study_view *v, size_t i, const char *what, enum term_color color,
                     const struct term_style *style, struct strbuf *out)
{
    char score[32], interval[PROMISE_TEXT_MAX], seeds[PROMISE_TEXT_MAX], cost[32];
    struct promise p;

    study_view_promise(v, i, &p);
    strbuf_addf(out, "%s ", what);
    snprintf(score, sizeof score, "%.4g", p.score);
    add_painted(out, style, color, score);
    if (style->width >= NARROW)
        strbuf_addf(out, " (%s%s%s)", p.is_known ? promise_interval_text(&p, interval) : "", p.is_known ? ", " : "",
                    promise_seeds_text(&p, seeds));
    strbuf_addf(out, "  trial %lld, cost %s", (long long)v->trials[i].number, study_view_cost_text(v, p.cost, cost));
}

static void add_counts(const struct status_block *b, const struct term_style *style, struct strbuf *out)
{
    const struct study_view *v = b->view;
    int64_t failed = study_view_count(v, TRIAL_FAILED), stopped = study_view_count(v, TRIAL_STOPPED);
    size_t pick = study_view_pick(v, GP_BEST), knee = study_view_pick(v, GP_KNEE);
    int64_t confirming = running_confirming(v);
    char text[64];

    strbuf_addf(out, "done %lld  running %lld", (long long)study_view_count(v, TRIAL_DONE),
                (long long)study_view_count(v, TRIAL_RUNNING));
    if (confirming > 0)
        strbuf_addf(out, " (%lld confirming)", (long long)confirming);
    if (stopped > 0)
        strbuf_addf(out, "  stopped %lld", (long long)stopped);
    strbuf_add(out, "  ");
    snprintf(text, sizeof text, "failed %lld", (long long)failed);
    add_painted(out, style, failed > 0 ? COLOR_BAD : COLOR_NONE, text);
    strbuf_addf(out, "%sfront %zu  ", style->width < NARROW ? "\n" : "  ", study_view_front_size(v));
    if (study_view_count(v, TRIAL_DONE) < PARETO_REF_TRIALS)
        strbuf_add(out, "hypervolume -");
    else
        strbuf_addf(out, "hypervolume %.4g", believed_volume(v, &v->ref, BELIEVED_NOW));
    if (isfinite(b->status->gain))
        strbuf_addf(out, " (%+.1f %%/h)", 100 * b->status->gain);
    strbuf_add(out, "\n");
    if (pick == v->n)
        return;
    add_pick(v, pick, "best", COLOR_BEST, style, out);
    if (knee < v->n && knee != pick && style->width >= NARROW) {
        strbuf_add(out, "   ");
        add_pick(v, knee, "knee", COLOR_NONE, style, out);
    }
    strbuf_add(out, "\n");
}

static void add_memory(struct strbuf *out, int64_t bytes, const char *what)
{
    if (bytes > 0)
        strbuf_addf(out, bytes < 1 << 30 ? "  %4.0f MB%s" : "  %4.1f GB%s",
                    (double)bytes / (bytes < 1 << 30 ? 1 << 20 : 1 << 30), what);
}

static void add_slot(const struct status_block *b, const struct status_slot *slot, const struct term_style *style,
                     struct strbuf *out)
{
    char steps[NUM_TEXT_MAX], time[32];
    bool bad = strcmp(slot->state, "quarantined") == 0;

    strbuf_addf(out, "%-9s ", slot->name);
    if (isfinite(slot->utilisation))
        strbuf_addf(out, "%3.0f %%", 100 * fmin(fmax(slot->utilisation, 0), 1));
    else
        strbuf_add(out, "    -");
    add_memory(out, slot->memory_bytes, "");
    add_memory(out, slot->device_memory_bytes, " GPU");
    strbuf_add(out, "  ");
    if (slot->study[0] == '\0') {
        add_painted(out, style, bad ? COLOR_BAD : COLOR_DIM, slot->state);
    } else {
        if (strcmp(slot->study, b->view->study.name) != 0)
            strbuf_addf(out, "%s ", slot->study);
        strbuf_addf(out, "trial %lld  %s steps  %s", (long long)slot->trial,
                    num_format_short((double)slot->env_steps, steps), format_seconds(slot->elapsed_s, time));
        if (isfinite(slot->score))
            strbuf_addf(out, "  %s %.4g",
                        strcmp(slot->study, b->view->study.name) == 0 ? b->view->study.metric : "score", slot->score);
        if (strcmp(slot->state, "stopping") == 0)
            strbuf_add(out, "  stopping");
    }
    strbuf_add(out, "\n");
}

static void add_events(const struct status_block *b, size_t max, const struct term_style *style, struct strbuf *out)
{
    size_t from = b->status->n_events > max ? b->status->n_events - max : 0;

    for (size_t i = from; i < b->status->n_events; i++) {
        const struct ring_event *e = &b->status->events[i];
        time_t seconds = (time_t)(e->at_ms / 1000);
        char when[16] = "";
        struct tm tm;
        if (localtime_r(&seconds, &tm) != NULL)
            strftime(when, sizeof when, "%H:%M:%S", &tm);
        add_painted(out, style, COLOR_DIM, when);
        strbuf_addf(out, " %.*s\n", (int)strcspn(e->text, "\n"), e->text);
    }
}

void status_block_write(const struct status_block *b, const struct term_style *style, struct strbuf *out)
{
    /* head and counts; the cursor's line stays free */
    int lines_left = style->height - 2 - 4 - (style->width < NARROW);
    size_t n_slots = b->status->n_slots, n_events = b->status->n_events;
    bool plots = study_view_best_run(b->view) < b->view->n;

    if (n_slots > SLOTS_SHOWN)
        n_slots = SLOTS_SHOWN;
    if (n_events > EVENTS_SHOWN)
        n_events = EVENTS_SHOWN;
    while (n_slots > 1 && lines_left - (int)n_slots < PLOT_MIN + 2)
        n_slots--;
    int more = (int)(b->status->n_slots - n_slots + b->status->n_more);
    lines_left -= (int)n_slots + (more > 0);
    while (n_events > 0 && lines_left - (int)n_events < PLOT_MIN + 2)
        n_events--;
    lines_left -= (int)n_events;
    int plot = lines_left - 2 < PLOT_MAX ? lines_left - 2 : PLOT_MAX;
    add_head(b, style, out);
    add_counts(b, style, out);
    if (plots && plot >= PLOT_MIN)
        plot_front(b->view, style, plot, out);
    if (style->height < 8)
        return;
    for (size_t i = 0; i < n_slots; i++)
        add_slot(b, &b->status->slots[i], style, out);
    if (more > 0)
        strbuf_addf(out, "and %d more slots\n", more);
    add_events(b, n_events, style, out);
}
