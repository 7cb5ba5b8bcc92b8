/* briefing.c - the briefing of a study, in numbers and in sentences. */
#include "study/findings/briefing.h"

#include "base/text/duration.h"
#include "base/text/human.h"
#include "study/view/resume_command.h"
#include "study/view/study_view.h"

#define TEXT_MAX (1 << 16)

static const char *const next_names[] = {"early", "widen", "continue", "stop"}; /* of enum briefing_next */

/* ---- numbers ---- */

static bool leans(const struct study_view *v, const struct briefing *b)
{
    for (size_t k = 0; k < v->search.space.dim; k++)
        if (b->edges[k].side != 0)
            return true;
    return false;
}

static bool space_is_exhausted(const struct study_view *v)
{
    return v->study.state == STUDY_ENDED && v->study.end_rule != NULL && strcmp(v->study.end_rule, "space") == 0;
}

static enum briefing_next find_next(const struct study_view *v, const struct briefing *b)
{
    if (space_is_exhausted(v))
        return BRIEFING_WIDEN;
    if (!isfinite(b->growth.share))
        return BRIEFING_EARLY;
    if (b->growth.share >= BRIEFING_WORTH)
        return BRIEFING_CONTINUE;
    return leans(v, b) ? BRIEFING_WIDEN : BRIEFING_STOP;
}

void briefing_make(const struct study_view *v, const struct gp_insight *insight, int64_t since_ms, struct briefing *ret)
{
    struct briefing b = {.since_ms = since_ms, .best_before = v->n};

    if (insight != NULL && insight->note == NULL)
        memcpy(b.edges, insight->edges, sizeof b.edges);
    for (size_t i = 0; i < v->n; i++) {
        const struct trial *t = &v->trials[i];
        if (t->finished_ms <= since_ms)
            continue;
        b.n_done += t->state == TRIAL_DONE;
        b.n_failed += t->state == TRIAL_FAILED || t->state == TRIAL_LOST;
        b.n_confirmed += t->state == TRIAL_DONE && trial_is_confirming(t);
    }
    b.best = study_view_pick(v, GP_BEST);
    b.volume = believed_volume(v, &v->ref, BELIEVED_NOW);
    b.volume_before = since_ms > 0 ? believed_volume(v, &v->ref, since_ms) : 0;
    if (since_ms > 0)
        b.best_before = believed_best(v, since_ms);
    if (b.best < v->n)
        study_view_promise(v, b.best, &b.promise);
    if (b.best_before < v->n)
        study_view_promise(v, b.best_before, &b.promise_before);
    failures_find(v, &b.failures);
    gain_expected(v, &b.growth);
    b.next = find_next(v, &b);
    *ret = b;
}

void briefing_free(struct briefing *b)
{
    failures_free(&b->failures);
    *b = (struct briefing){0};
}

/* ---- sentences ---- */

static void add_count(struct strbuf *out, size_t n, const char *one, const char *many)
{
    strbuf_addf(out, "%zu %s", n, n == 1 ? one : many);
}

static void gained_text(const struct study_view *v, const struct briefing *b, struct strbuf *out)
{
    char now[HUMAN_TEXT_MAX], before[HUMAN_TEXT_MAX];

    if (b->since_ms == 0)
        return;
    if (b->n_done + b->n_failed == 0) {
        strbuf_addf(out, "No trial has ended since %s.", text_time(b->since_ms, now));
        return;
    }
    add_count(out, b->n_done, "trial has a result", "trials have a result");
    if (b->n_confirmed > 0)
        strbuf_addf(out, " (%zu under fresh seeds)", b->n_confirmed);
    if (b->n_failed > 0)
        strbuf_addf(out, " and %zu failed", b->n_failed);
    strbuf_addf(out, " since %s.", text_time(b->since_ms, now));
    if (b->volume_before > 0)
        strbuf_addf(out, " Hypervolume %+.1f %%.", 100 * (b->volume / b->volume_before - 1));
    if (b->best >= v->n || b->best_before >= v->n)
        return;
    if (study_view_same_point(v, b->best, b->best_before))
        strbuf_addf(out, " The best is still trial %lld.", (long long)v->trials[b->best].number);
    else
        strbuf_addf(out, " The best is now trial %lld, expected %s; of what was there before, trial %lld, %s.",
                    (long long)v->trials[b->best].number, text_number(b->promise.score, now),
                    (long long)v->trials[b->best_before].number, text_number(b->promise_before.score, before));
}

void briefing_take_text(const struct study_view *v, const struct briefing *b, struct strbuf *out)
{
    char text[PROMISE_TEXT_MAX];

    if (b->best >= v->n)
        return;
    if (b->promise.is_known)
        strbuf_addf(out, "Take trial %lld, expected %s %s", (long long)v->trials[b->best].number, v->study.metric,
                    promise_text(&b->promise, text));
    else
        strbuf_addf(out, "Best single run so far: trial %lld, %s %s, without a model yet",
                    (long long)v->trials[b->best].number, v->study.metric, promise_text(&b->promise, text));
    strbuf_addf(out, ", at a cost of %s.", promise_cost_text(&b->promise, v->search.cost, text));
}

/* Names of the parameters whose bound the front leans on. */
static void add_leaning(const struct study_view *v, const struct briefing *b, struct strbuf *out)
{
    size_t n = 0;

    for (size_t k = 0; k < v->search.space.dim; k++) {
        const struct gp_edge *e = &b->edges[k];
        char to[NUM_TEXT_MAX];
        if (e->side != 0)
            strbuf_addf(out, "%s%s (%s = %s)", n++ > 0 ? ", " : "", search_param_name(v->search.space.params[k].key),
                        e->side < 0 ? "min" : "max", num_format_f64(e->suggested, to));
    }
}

void briefing_next_text(const struct study_view *v, const struct briefing *b, struct strbuf *out)
{
    char ahead[32];
    const struct gain_expected *g = &b->growth;

    format_seconds(g->ahead_s, ahead);
    switch (b->next) {
    case BRIEFING_EARLY:
        strbuf_add(out, b->best >= v->n && b->failures.n > 0
                            ? "No trial has a result: find out why the trials failed before running more."
                            : "Continue: too few trials have ended to estimate what more would bring.");
        break;
    case BRIEFING_CONTINUE:
        strbuf_addf(out, "Continue: another %s of work is expected to add about %.1f %% to the hypervolume.", ahead,
                    100 * g->share);
        break;
    case BRIEFING_WIDEN:
        strbuf_add(out, "Widen the space or stop: ");
        if (space_is_exhausted(v))
            strbuf_add(out, "it has no new point that can be run");
        else
            strbuf_addf(out, "another %s in this one is expected to add about %.1f %%", ahead, 100 * g->share);
        if (leans(v, b))
            strbuf_add(out, ", and the front leans on ");
        add_leaning(v, b, out);
        strbuf_add(out, ".");
        break;
    case BRIEFING_STOP:
        strbuf_addf(out, "Stop: another %s of work is expected to add only about %.1f %% to the hypervolume.", ahead,
                    100 * g->share);
        break;
    }
    if (b->best < v->n && b->promise.n_seeds < 2)
        strbuf_addf(out, " Trial %lld has been seen once: confirm it under fresh seeds before you rely on it.",
                    (long long)v->trials[b->best].number);
}

static void add_place(const struct study_view *v, struct strbuf *out)
{
    strbuf_add_shell(out, v->study.name);
    if (v->store_path != NULL) {
        strbuf_add(out, " --store ");
        strbuf_add_shell(out, v->store_path);
    }
}

static void take_command(const struct study_view *v, const struct briefing *b, struct strbuf *out)
{
    if (b->best >= v->n)
        return;
    strbuf_add(out, "trawl export ");
    add_place(v, out);
    strbuf_add(out, " --pick best -o best.ini && trawl train best.ini");
}

static void next_command(const struct study_view *v, const struct briefing *b, struct strbuf *out)
{
    if (b->next == BRIEFING_STOP || (b->next == BRIEFING_WIDEN && !leans(v, b)))
        return;
    study_resume_command(v, v->store_path, out);
    for (size_t k = 0; b->next == BRIEFING_WIDEN && k < v->search.space.dim; k++) {
        const struct gp_edge *e = &b->edges[k];
        char to[NUM_TEXT_MAX];
        if (e->side != 0)
            strbuf_addf(out, " --sweep.%s.%s %s", v->search.space.params[k].key, e->side < 0 ? "min" : "max",
                        num_format_f64(e->suggested, to));
    }
}

static void confirm_command(const struct study_view *v, const struct briefing *b, struct strbuf *out)
{
    if (b->best >= v->n)
        return;
    strbuf_add(out, "trawl rerun ");
    add_place(v, out);
    strbuf_addf(out, " --trial %lld --seeds %d", (long long)v->trials[b->best].number, GP_PROMISE_SEEDS);
}

/* ---- the terminal and programs ---- */

typedef void sentence_fn(const struct study_view *view, const struct briefing *briefing, struct strbuf *out);

static void print_sentence(const struct study_view *v, const struct briefing *b, const char *head, sentence_fn *fn)
{
    STRBUF(text, TEXT_MAX);

    fn(v, b, &text);
    if (text.len > 0)
        printf("%s%s\n", head, text.text);
}

static void print_failures(const struct study_view *v, const struct failures *f)
{
    if (f->n == 0)
        return;
    printf("failed: %zu of %zu trial%s\n", f->n, v->n, PLURAL(v->n));
    for (size_t k = 0; k < f->n_reasons; k++)
        printf("  %4zu x  %s (trial %zu)\n", f->reasons[k].n, f->reasons[k].text, f->reasons[k].first);
    if (f->n_other > 0)
        printf("  %4zu x  for other reasons\n", f->n_other);
    STRBUF(text, TEXT_MAX);
    failures_ini(v, f, &text);
    if (text.len > 0)
        printf("to keep the next study away from there:\n%s", text.text);
}

void briefing_print(const struct study_view *v, const struct briefing *b)
{
    print_sentence(v, b, "\n", gained_text);
    print_sentence(v, b, "", briefing_take_text);
    print_sentence(v, b, "  ", take_command);
    print_failures(v, &b->failures);
    print_sentence(v, b, "", briefing_next_text);
    if (b->promise.n_seeds < 2)
        print_sentence(v, b, "  ", confirm_command);
}

static void add_sentence(cJSON *json, const char *key, const struct study_view *v, const struct briefing *b,
                         sentence_fn *fn)
{
    STRBUF(text, TEXT_MAX);

    fn(v, b, &text);
    json_add_str(json, key, text.len > 0 ? text.text : NULL);
}

static cJSON *reasons_json(const struct failures *f)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t k = 0; k < f->n_reasons; k++) {
        cJSON *row = cJSON_CreateObject();
        json_add_str(row, "reason", f->reasons[k].text);
        json_add_i64(row, "trials", (int64_t)f->reasons[k].n);
        json_add_i64(row, "first", (int64_t)f->reasons[k].first);
        cJSON_AddItemToArray(list, row);
    }
    return list;
}

static cJSON *failures_json(const struct study_view *v, const struct failures *f)
{
    cJSON *json = cJSON_CreateObject(), *list;
    STRBUF(text, TEXT_MAX);

    json_add_i64(json, "trials", (int64_t)f->n);
    json_add(json, "reasons", reasons_json(f));
    json_add_i64(json, "other", (int64_t)f->n_other);
    list = cJSON_AddArrayToObject(json, "rules");
    for (size_t k = 0; k < f->n_rules; k++) {
        strbuf_clear(&text);
        failure_rule_text(v, &f->rules[k], &text);
        cJSON_AddItemToArray(list, cJSON_CreateString(text.text));
    }
    strbuf_clear(&text);
    failures_ini(v, f, &text);
    json_add_str(json, "ini", text.len > 0 ? text.text : NULL);
    return json;
}

static void add_pick(cJSON *json, const char *key, const struct study_view *v, size_t i)
{
    if (i < v->n)
        json_add_i64(json, key, v->trials[i].number);
    else
        json_add_str(json, key, NULL);
}

cJSON *briefing_to_json(const struct study_view *v, const struct briefing *b)
{
    cJSON *json = cJSON_CreateObject(), *gained = cJSON_AddObjectToObject(json, "gained"), *take, *next;

    json_add_i64(gained, "since_ms", b->since_ms);
    json_add_i64(gained, "done", (int64_t)b->n_done);
    json_add_i64(gained, "confirmed", (int64_t)b->n_confirmed);
    json_add_i64(gained, "failed", (int64_t)b->n_failed);
    json_add_f64(gained, "hypervolume_before", b->volume_before);
    json_add_f64(gained, "hypervolume", b->volume);
    add_pick(gained, "best_before", v, b->best_before);
    add_sentence(gained, "text", v, b, gained_text);
    take = cJSON_AddObjectToObject(json, "take");
    add_pick(take, "trial", v, b->best);
    add_sentence(take, "text", v, b, briefing_take_text);
    add_sentence(take, "command", v, b, take_command);
    add_sentence(take, "confirm_command", v, b, confirm_command);
    json_add_i64(take, "n_seeds", (int64_t)b->promise.n_seeds);
    json_add(json, "failures", failures_json(v, &b->failures));
    next = cJSON_AddObjectToObject(json, "next");
    json_add_str(next, "advice", next_names[b->next]);
    json_add_f64(next, "work_s", b->growth.work_s);
    json_add_f64(next, "ahead_s", b->growth.ahead_s);
    if (isfinite(b->growth.share))
        json_add_f64(next, "expected_share", b->growth.share);
    else
        json_add_str(next, "expected_share", NULL);
    add_sentence(next, "text", v, b, briefing_next_text);
    add_sentence(next, "command", v, b, next_command);
    return json;
}
