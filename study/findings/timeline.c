/* timeline.c - when each slot of a study had a trial, and when it had none, from the times in the store.
 *
 * A slot is busy from the moment its trial is marked running until its result is recorded. Time in which the whole
 * study stood still for PAUSE_MS or longer (it was interrupted) counts for no slot. Training is the part of the busy
 * time that the trials themselves count; the rest is what starting and recording them took. A trial that ran again is
 * shown where it ran last; its earlier attempts show as idle, and as the trial counts their training too, the training
 * of the last one is at most its time. */
#include "study/findings/timeline.h"

#include "base/text/duration.h"
#include "study/view/study_view.h"

#define PAUSE_MS 10000
#define BAR 38 /* fits with the numbers into 80 columns */

struct span {
    int64_t from_ms, to_ms;
    const char *slot;
    double training_s; /* 0: unknown */
};

struct row { /* of a slot */
    const char *slot;
    int64_t n;
    double busy_ms, idle_ms, training_ms;
    double cells[BAR]; /* busy ms in each part of the whole time */
};

struct timeline {
    size_t n_spans, n_rows;
    struct span *spans; /* (n_spans) by from_ms, with pauses taken out of the times; owned */
    struct row *rows; /* (n_rows) by name; owned */
    int64_t begin_ms; /* as it was on the clock */
    double whole_ms, pause_ms; /* without pauses; pauses */
};

static int by_time(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    return (x->from_ms > y->from_ms) - (x->from_ms < y->from_ms);
}

/* "cpu/9" before "cpu/10". */
static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct row *)a)->slot, ((const struct row *)b)->slot);
}

static void timeline_free(struct timeline *t)
{
    mem_free(t->spans);
    mem_free(t->rows);
}

/* Moves what lies after a pause to before it. */
static void take_out_pauses(struct timeline *t)
{
    int64_t end_ms = t->n_spans > 0 ? t->spans[0].from_ms : 0, cut_ms = 0;

    t->begin_ms = end_ms;
    for (size_t i = 0; i < t->n_spans; i++) {
        struct span *s = &t->spans[i];
        if (s->from_ms - cut_ms - end_ms >= PAUSE_MS)
            cut_ms = s->from_ms - end_ms;
        s->from_ms -= cut_ms;
        s->to_ms -= cut_ms;
        if (s->to_ms > end_ms)
            end_ms = s->to_ms;
    }
    t->pause_ms = (double)cut_ms;
    t->whole_ms = (double)(end_ms - t->begin_ms);
}

static void add_to_row(struct timeline *t, struct row *r, const struct span *s, int64_t *last_ms)
{
    double cell_ms = t->whole_ms / BAR;

    r->n++;
    r->busy_ms += (double)(s->to_ms - s->from_ms);
    r->training_ms += fmin(1e3 * s->training_s, (double)(s->to_ms - s->from_ms));
    if (r->n > 1 && s->from_ms > *last_ms)
        r->idle_ms += (double)(s->from_ms - *last_ms);
    *last_ms = s->to_ms;
    for (int k = 0; k < BAR && cell_ms > 0; k++) {
        double from = fmax((double)(s->from_ms - t->begin_ms), k * cell_ms);
        double to = fmin((double)(s->to_ms - t->begin_ms), (k + 1) * cell_ms);
        r->cells[k] += fmax(to - from, 0);
    }
}

static void collect_rows(struct timeline *t)
{
    MEM_LOCAL int64_t *last_ms = mem_array(t->n_spans, sizeof *last_ms); /* one a row: no more rows than spans */
    size_t cap = 0;

    for (size_t i = 0; i < t->n_spans; i++) {
        size_t k = 0;
        while (k < t->n_rows && strcmp(t->rows[k].slot, t->spans[i].slot) != 0)
            k++;
        if (k == t->n_rows) {
            MEM_ROOM(t->rows, k, cap);
            t->rows[t->n_rows++] = (struct row){.slot = t->spans[i].slot};
        }
        add_to_row(t, &t->rows[k], &t->spans[i], &last_ms[k]);
    }
    if (t->n_rows > 1)
        qsort(t->rows, t->n_rows, sizeof *t->rows, by_name);
}

static void timeline_init(struct timeline *t, const struct study_view *v)
{
    memset(t, 0, sizeof *t);
    t->spans = mem_array(v->n, sizeof *t->spans);
    for (size_t i = 0; i < v->n; i++) {
        const struct trial *trial = &v->trials[i];
        bool training = isfinite(trial->cost_s) && trial->cost_s > 0;
        if (trial->slot == NULL || trial->started_ms == 0 || trial->finished_ms < trial->started_ms)
            continue; /* not run, running, or the clock was set back */
        t->spans[t->n_spans++] = (struct span){.from_ms = trial->started_ms,
                                               .to_ms = trial->finished_ms,
                                               .slot = trial->slot,
                                               .training_s = training ? trial->cost_s : 0};
    }
    if (t->n_spans > 1)
        qsort(t->spans, t->n_spans, sizeof *t->spans, by_time);
    take_out_pauses(t);
    collect_rows(t);
}

static double share(double part, double of)
{
    return of > 0 ? 100 * part / of : 0;
}

void timeline_print(const struct study_view *v)
{
    struct timeline t;
    char when[32] = "", text[32];
    struct tm tm;

    timeline_init(&t, v);
    time_t seconds = (time_t)(t.begin_ms / 1000);
    if (gmtime_r(&seconds, &tm) != NULL)
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%SZ", &tm);
    if (t.n_rows == 0) {
        printf("no trial has ended yet, so there is no timeline\n");
        timeline_free(&t);
        return;
    }
    printf("timeline from %s, %s", when, format_seconds(t.whole_ms / 1e3, text));
    if (t.pause_ms > 0)
        printf(" (without %s in which nothing ran)", format_seconds(t.pause_ms / 1e3, text));
    printf("\n%-12s %-*s %6s  %7s %9s\n", "slot", BAR + 2, "#: busy  +: half  .: idle", "trials", "idle", "training");
    for (size_t k = 0; k < t.n_rows; k++) {
        const struct row *r = &t.rows[k];
        char bar[BAR + 1];
        for (int c = 0; c < BAR; c++) {
            double busy = share(r->cells[c], t.whole_ms / BAR);
            bar[c] = busy > 90 ? '#' : busy > 10 ? '+' : '.';
        }
        bar[BAR] = '\0';
        printf("%-12s|%s| %6lld  %5.2f %% %7.2f %%\n", r->slot, bar, (long long)r->n,
               share(r->idle_ms, r->busy_ms + r->idle_ms), share(r->training_ms, r->busy_ms + r->idle_ms));
    }
    printf("shares of the time between a slot's first and last trial: without one; with one\n"
           "that trained\n");
    timeline_free(&t);
}

cJSON *timeline_to_json(const struct study_view *v)
{
    AT_END(timeline_free) struct timeline t = {0};
    cJSON *json = cJSON_CreateObject(), *slots;

    timeline_init(&t, v);
    json_add_i64(json, "begin_ms", t.begin_ms);
    json_add_f64(json, "whole_s", t.whole_ms / 1e3);
    json_add_f64(json, "pause_s", t.pause_ms / 1e3);
    slots = cJSON_AddArrayToObject(json, "slots");
    for (size_t k = 0; k < t.n_rows; k++) {
        const struct row *r = &t.rows[k];
        cJSON *row = cJSON_CreateObject();
        json_add_str(row, "slot", r->slot);
        json_add_i64(row, "trials", r->n);
        json_add_f64(row, "busy_s", r->busy_ms / 1e3);
        json_add_f64(row, "idle_s", r->idle_ms / 1e3);
        json_add_f64(row, "training_s", r->training_ms / 1e3);
        cJSON_AddItemToArray(slots, row);
    }
    return json;
}
