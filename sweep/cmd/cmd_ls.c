/* cmd_ls.c - `trawl ls` and `trawl show`: the studies of a store, and one study with its trials. Both only read. */
#include "base/config/config.h"
#include "base/text/duration.h"
#include "base/text/json.h"
#include "study/findings/believed.h"
#include "study/findings/briefing.h"
#include "study/findings/calibration.h"
#include "study/view/insight_text.h"
#include "study/view/promise.h"
#include "study/view/study_insight.h"
#include "study/view/study_view.h"
#include "study/findings/node_list.h"
#include "study/findings/timeline.h"
#include "sweep/cmd/commands.h"
#include "sweep/control/served.h"
#include "sweep/show/study_json.h"
#include "sweep/show/summary.h"
#include "sweep/term.h"

#define SINCE_S (12 * 3600)

struct best { /* of a study, as `show` and `export --pick best` have it */
    int64_t trial; /* -1: none */
    struct promise promise;
};

/* A study that cannot be read as a search has none; `trawl show` has the reason. */
static void find_best(struct store *store, const char *study, struct best *ret)
{
    STUDY_VIEW(view);
    struct error why = {0};
    size_t i;

    *ret = (struct best){.trial = -1};
    if (study_view_load(store, study, view, &why) == ST_OK && study_view_advise(view, &why) == ST_OK &&
        (i = study_view_pick(view, GP_BEST)) < view->n) {
        ret->trial = view->trials[i].number;
        study_view_promise(view, i, &ret->promise);
    }
}

static void add_best(cJSON *json, const struct best *best)
{
    const struct promise *p = &best->promise;

    if (best->trial < 0) {
        json_add_str(json, "best_trial", NULL);
        json_add_str(json, "best_score", NULL);
        return;
    }
    json_add_i64(json, "best_trial", best->trial);
    json_add_f64(json, "best_score", p->score);
    json_add_i64(json, "best_seeds", (int64_t)p->n_seeds);
    if (p->is_known) {
        json_add_f64(json, "best_lo", p->lo);
        json_add_f64(json, "best_hi", p->hi);
    }
}

static cJSON *row_json(const struct study *s, const struct study_counts *counts, const struct best *best,
                       const char *now)
{
    cJSON *json = cJSON_CreateObject(), *states = cJSON_AddObjectToObject(json, "counts");
    int64_t n = 0;

    for (int i = 0; i < TRIAL_STATES; i++) {
        n += counts->n[i];
        json_add_i64(states, trial_state_name((enum trial_state)i), counts->n[i]);
    }
    json_add_str(json, "name", s->name);
    json_add_str(json, "method", s->method);
    json_add_str(json, "metric", s->metric);
    json_add_str(json, "direction", study_direction(s));
    json_add_i64(json, "trials", n);
    json_add_i64(json, "trials_max", s->limits.trials_max);
    json_add_f64(json, "budget_s", s->limits.budget_s);
    json_add_f64(json, "cost_s", counts->cost_s);
    add_best(json, best);
    json_add_f64(json, "best_run_score", counts->best_score);
    json_add_str(json, "state", study_state_name(s->state));
    json_add_str(json, "now", now);
    json_add_str(json, "end_rule", s->end_rule);
    json_add_str(json, "end_text", s->end_text);
    json_add_i64(json, "priority", s->limits.priority);
    json_add_i64(json, "seed", s->seed);
    json_add_str(json, "program", s->program);
    json_add_str(json, "note", s->note);
    json_add_str(json, "tags", s->tags);
    json_add_i64(json, "created_ms", s->created_ms);
    return json;
}

static void print_row(const struct study *s, const struct study_counts *c, const struct best *b, const char *state)
{
    int64_t n = 0;
    char cost[32], best[32] = "-", when[32] = "", interval[PROMISE_TEXT_MAX], seeds[PROMISE_TEXT_MAX];
    time_t seconds = (time_t)(s->created_ms / 1000);
    struct tm tm;

    for (int i = 0; i < TRIAL_STATES; i++)
        n += c->n[i];
    if (b->trial >= 0)
        snprintf(best, sizeof best, "%.4g", b->promise.score);
    if (gmtime_r(&seconds, &tm) != NULL)
        strftime(when, sizeof when, "%Y-%m-%d %H:%MZ", &tm);
    printf("%-20s %-11s %6lld %6lld %6lld %10s %10s  %-10s %-8s %-17s", s->name, state, (long long)n,
           (long long)c->n[TRIAL_DONE], (long long)c->n[TRIAL_FAILED], best, format_seconds(c->cost_s, cost), s->metric,
           s->method, when);
    if (b->trial >= 0)
        printf("  trial %lld: %s%s%s", (long long)b->trial,
               b->promise.is_known ? promise_interval_text(&b->promise, interval) : "", b->promise.is_known ? ", " : "",
               promise_seeds_text(&b->promise, seeds));
    printf("\n");
}

static enum status list(struct store *store, bool json, struct error *err)
{
    struct study *studies = NULL;
    struct served served;
    size_t n = 0;
    cJSON *array = json ? cJSON_CreateArray() : NULL;
    enum status rc = store_study_list(store, &studies, &n, err);

    if (rc == ST_OK && !json && n == 0)
        printf("no studies in %s; `trawl sweep` begins one\n", store_path(store));
    if (rc == ST_OK && !json && n > 0)
        printf("%-20s %-11s %6s %6s %6s %10s %10s  %-10s %-8s %-17s  %s\n", "study", "state", "trials", "done",
               "failed", "best", "spent", "metric", "method", "begun", "the best: 95 % and seeds");
    served_ask(store_path(store), &served);
    for (size_t i = 0; rc == ST_OK && i < n; i++) {
        struct study_counts counts;
        struct best best;
        rc = store_study_counts(store, &studies[i], &counts, err);
        if (rc != ST_OK)
            break;
        const char *now = served_state(&served, &studies[i], counts.n[TRIAL_RUNNING]);
        find_best(store, studies[i].name, &best);
        if (!json) {
            print_row(&studies[i], &counts, &best, now);
            continue;
        }
        cJSON_AddItemToArray(array, row_json(&studies[i], &counts, &best, now));
    }
    served_free(&served);
    study_list_free(studies, n);
    if (rc == ST_OK && json) {
        cli_print_json(array);
        return ST_OK;
    }
    cJSON_Delete(array);
    return rc;
}

enum status cmd_ls(int argc, char **argv, struct error *err)
{
    const char *path = "trawl.db";
    bool json = false;
    AT_END(store_close_at) struct store *store = NULL;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &path, "FILE", "the store: a file, or postgresql://HOST/DATABASE (trawl.db)"},
        {"json", 0, CLI_FLAG, &json, NULL, "print a JSON array"},
    };
    const struct cli cli = {
        .name = "ls",
        .synopsis = "trawl ls [--store FILE] [--json]",
        .about =
            "Lists the studies of a store. It only reads, also while a sweep runs. A study that could continue "
            "is\nrunning (a controller runs it), waiting (a controller has the store and runs others), interrupted "
            "(no\ncontroller, and trials were cut off) or idle (no controller); otherwise it is paused or ended. In "
            "JSON\nthis is \"now\", beside the store's \"state\".",
        .examples = "  trawl ls --store my.db\n"
                    "  trawl ls --json",
        CLI_OPTS(opts),
    };

    CLI_PARSE(cli, words);
    TRY(store_open_reader(&store, path, err));
    return list(store, json, err);
}

/* On a terminal (width > 0) a piece that does not fit continues below, right of trial and state. */
static void print_piece(const char *piece, int width, int *column)
{
    int n = (int)strlen(piece) + 2;

    if (width > 0 && *column + n > width) {
        printf("\n%14s", "");
        *column = 14;
    }
    printf("  %s", piece);
    *column += n;
}

static void print_words(const char *what, const char *text, int width, int *column)
{
    char piece[320];

    if (text == NULL)
        return;
    snprintf(piece, sizeof piece, "%s%.300s", what, text);
    print_piece(piece, width, column);
}

static int third_width(const struct study_view *v)
{
    int n = (int)strlen(v->search.outcomes.third);

    return n > 10 ? n : 10;
}

static void print_trial(const struct study_view *v, size_t i)
{
    const struct trial *t = &v->trials[i];
    int width = isatty(STDOUT_FILENO) ? term_width(STDOUT_FILENO) : 0;
    int column = 49 + (study_view_has_third(v) ? third_width(v) + 2 : 0);
    char cost[32], score[32] = "-", third[NUM_TEXT_MAX] = "-", value[64], piece[CONFIG_KEY_MAX + 80], broken[200];

    if (isfinite(t->score))
        snprintf(score, sizeof score, "%.4g", t->score);
    printf("%5lld%c %-8s ", (long long)t->number, v->on_front[i] ? '*' : ' ', trial_state_name(t->state));
    printf("%10s %12s  ", score, study_view_cost_text(v, study_view_trial_cost(v, t), cost));
    if (isfinite(study_view_third(v, i)))
        num_format_short(study_view_third(v, i), third);
    if (study_view_has_third(v))
        printf("%*s  ", third_width(v), third);
    printf("%-10s", t->origin != NULL ? t->origin : "");
    print_words("", study_view_env(v, i), width, &column);
    for (size_t k = 0; k < v->search.space.dim; k++) {
        const char *dot = strrchr(v->search.space.params[k].key, '.');
        study_view_param_text(v, i, k, value, sizeof value);
        snprintf(piece, sizeof piece, "%s %s", dot != NULL ? dot + 1 : v->search.space.params[k].key, value);
        print_piece(piece, width, &column);
    }
    if (t->reason != NULL)
        print_piece(t->reason, width, &column);
    study_view_explain_limit(v, i, broken, sizeof broken);
    print_words("infeasible: ", broken[0] != '\0' ? broken : NULL, width, &column);
    print_words("dropped: ", t->dropped, width, &column);
    print_words("note: ", t->note, width, &column);
    print_words("tags: ", t->tags, width, &column);
    printf("\n");
}

static void print_state(const struct study_view *v, const char *store_path)
{
    const struct study *s = &v->study;
    struct served served;

    served_ask(store_path, &served);
    const char *now = served_state(&served, s, study_view_count(v, TRIAL_RUNNING));
    served_free(&served);
    printf("state %s", now);
    if (strcmp(now, "interrupted") == 0 || strcmp(now, "idle") == 0)
        printf(
            " (no controller runs it; `trawl sweep --resume %s --store %s` or `trawl daemon --store %s` continues it)",
            s->name, SHELL_WORD(store_path), SHELL_WORD(store_path));
    if (s->end_rule != NULL)
        printf(" (%s)", s->end_rule);
    if (s->end_text != NULL)
        printf(": %s", s->end_text);
    if (s->limits.priority != 1)
        printf(", priority %lld", (long long)s->limits.priority);
    printf("\n");
}

static void print_study(struct study_view *v, const char *store_path)
{
    char cost[32], budget[32], text[600];
    size_t n_infeasible = study_view_count_infeasible(v);

    printf("study %s: %s %s by %s, seed %lld, %s\n", v->study.name, study_direction(&v->study), v->study.metric,
           v->study.method, (long long)v->study.seed, v->study.program);
    print_state(v, store_path);
    outcomes_text(&v->search.outcomes, text, sizeof text);
    if (text[0] != '\0')
        printf("also: %s\n", text);
    if (v->study.note != NULL)
        printf("note: %s\n", v->study.note);
    if (v->study.tags != NULL)
        printf("tags: %s\n", v->study.tags);
    if (v->n_branches > 0)
        printf("%zu trials, of which %zu %s of others; %zu run%s", v->n, v->n_branches,
               v->n_branches == 1 ? "is a branch" : "are branches", study_view_n_runs(v), PLURAL(study_view_n_runs(v)));
    else
        printf("%zu trial%s", v->n, PLURAL(v->n));
    if (v->study.limits.trials_max > 0)
        printf(" of %lld", (long long)v->study.limits.trials_max);
    printf(", %s of training", format_seconds(study_view_cost(v), cost));
    if (v->study.limits.budget_s > 0)
        printf(" of %s", format_seconds(v->study.limits.budget_s, budget));
    printf(", hypervolume %.4g", believed_volume(v, &v->ref, BELIEVED_NOW));
    if (n_infeasible > 0)
        printf(", %zu infeasible", n_infeasible);
    printf("\n");
    summary_print_cap(v);
    printf("%5s  %-8s %10s %12s  ", "trial", "state", v->study.metric, "cost");
    if (study_view_has_third(v))
        printf("%*s  ", third_width(v), v->search.outcomes.third);
    printf("%-10s  %s\n", "origin", "parameters (*: on the front)");
    for (size_t i = 0; i < v->n; i++)
        print_trial(v, i);
}

static void print_briefing(const struct study_view *v, int64_t since_ms)
{
    AT_END(briefing_free) struct briefing briefing = {0};

    if (since_ms < v->study.created_ms)
        since_ms = v->study.created_ms;
    briefing_make(v, v->has_insight ? &v->advice : NULL, since_ms, &briefing);
    briefing_print(v, &briefing);
}

static void print_foresight(const struct study_view *v)
{
    char text[FORESIGHT_TEXT_MAX];
    struct foresight f;

    foresight_make(v, &f);
    if (f.n > 0)
        printf("\npredictions: %s\n", foresight_text(&f, text));
}

static enum status print_nodes(const struct study_view *v, const char *store_path, struct error *err)
{
    AT_END(store_close_at) struct store *store = NULL;

    TRY(store_open_reader(&store, store_path, err));
    return node_list_print(store, v->study.id, err);
}

static enum status read_since(const char *text, int64_t *ret_ms, struct error *err)
{
    double seconds = SINCE_S;

    if (text != NULL && !parse_seconds(text, &seconds))
        return FAIL(err, ST_USAGE, "show: --since is '%.40s', a time like 30m, 12h or 2d is needed", text);
    *ret_ms = clock_utc_ms() - (int64_t)(1e3 * seconds);
    return ST_OK;
}

enum status cmd_show(int argc, char **argv, struct error *err)
{
    const char *path = "trawl.db", *since = NULL;
    bool json = false, front = false, timeline = false;
    AT_END(study_view_free) struct study_view view = {0};
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &path, "FILE", "the store: a file, or postgresql://HOST/DATABASE (trawl.db)"},
        {"front", 0, CLI_FLAG, &front, NULL, "print the front alone"},
        {"since", 0, CLI_TEXT, &since, "TIME", "print what was gained in the last TIME (12h)"},
        {"timeline", 0, CLI_FLAG, &timeline, NULL, "print when each slot had a trial, and its idle time"},
        {"json", 0, CLI_FLAG, &json, NULL, "print {\"study\": ..., \"trials\": [...]}"},
    };
    const struct cli cli = {
        .name = "show",
        .synopsis = "trawl show NAME [--store FILE] [--since TIME | --front | --timeline] [--json]",
        .about = "Shows a study and all its trials: state, score, cost, parameters and reasons of failures; then "
                 "what\nwas gained lately, the recommended trial, the values at which trials fail, whether to "
                 "continue the\nsearch, how much each parameter matters, bounds that the front leans on, and how "
                 "well proposals were\npredicted. It only reads.",
        .examples = "  trawl show first --store my.db\n"
                    "  trawl show first --store my.db --json >first.json",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a study's name (`trawl ls` lists them)"),
    };
    enum status rc = ST_OK;
    int64_t since_ms = 0;

    CLI_PARSE(cli, words);
    TRY(read_since(since, &since_ms, err));
    TRY(study_view_open(path, words.v[0], &view, err));
    if (json)
        rc = study_view_print_json(&view, path, err);
    else if (timeline)
        timeline_print(&view);
    else if (front && (rc = study_view_advise(&view, err)) == ST_OK)
        print_front_table(&view);
    else if (!front && (rc = study_view_insight(&view, err)) == ST_OK) {
        print_study(&view, path);
        print_briefing(&view, since_ms);
        rc = insight_print(&view, path, err);
        print_foresight(&view);
        THEN(rc, print_nodes(&view, path, err));
    }
    return rc;
}
