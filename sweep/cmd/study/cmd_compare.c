/* cmd_compare.c - `trawl compare`: two studies in numbers that can be compared.
 * Invariant: both hypervolumes are to one reference, the worst of the two studies'. */
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/status.h"
#include "gp/gp.h"
#include "store/store.h"
#include "study/promise.h"
#include "study/study_view.h"
#include "sweep/cli.h"
#include "sweep/cmd/commands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct side { /* of the comparison */
    struct study_view view;
    double hypervolume;
    size_t best, cheapest; /* view.n: none; cheapest: run that reached the score */
    struct promise promise; /* of the best */
    double spent; /* cost of all trials until the score was reached first; NaN: it was not */
};

static enum status check(const struct study_view *a, const struct study_view *b, struct error *err)
{
    if (strcmp(a->study.metric, b->study.metric) != 0 || a->study.maximize != b->study.maximize)
        return FAIL(err, ST_USAGE, "compare: %s has %s %s and %s has %s %s; only scores of one kind can be compared",
                    a->study.name, study_direction(&a->study), a->study.metric, b->study.name,
                    study_direction(&b->study), b->study.metric);
    if (a->search.cost != b->search.cost)
        return FAIL(err, ST_USAGE, "compare: costs are counted in %s by %s and otherwise by %s (sweep.cost)",
                    study_cost_unit(a->search.cost), a->study.name, b->study.name);
    if (study_view_best_run(a) == a->n || study_view_best_run(b) == b->n)
        return FAIL(err, ST_NOTFOUND, "compare: %s has no finished trial yet",
                    study_view_best_run(a) == a->n ? a->study.name : b->study.name);
    return ST_OK;
}

/* The score that both have reached, in the direction of gp. */
static double common_score(const struct side *sides)
{
    double a = sides[0].view.gp[study_view_best_run(&sides[0].view)].score;
    double b = sides[1].view.gp[study_view_best_run(&sides[1].view)].score;

    return fmin(a, b);
}

static void judge(struct side *s, const struct pareto_ref *ref, double score)
{
    const struct study_view *v = &s->view;
    size_t first = v->n;

    s->hypervolume = pareto_hypervolume(&v->history, ref);
    s->best = study_view_pick(v, GP_BEST);
    if (s->best < v->n)
        study_view_promise(v, s->best, &s->promise);
    s->cheapest = v->n;
    for (size_t i = 0; i < v->n; i++) {
        if (v->gp[i].state != GP_TRIAL_DONE || v->gp[i].score < score)
            continue;
        if (s->cheapest == v->n || v->gp[i].cost < v->gp[s->cheapest].cost)
            s->cheapest = i;
        if (first == v->n || v->trials[i].finished_ms < v->trials[first].finished_ms)
            first = i;
    }
    s->spent = first < v->n ? 0 : NAN;
    for (size_t i = 0; first < v->n && i < v->n; i++) {
        double cost = study_view_trial_cost(v, &v->trials[i]);
        if (v->trials[i].finished_ms > 0 && v->trials[i].finished_ms <= v->trials[first].finished_ms && isfinite(cost))
            s->spent += cost;
    }
}

static cJSON *side_json(const struct side *s)
{
    const struct study_view *v = &s->view;
    cJSON *json = cJSON_CreateObject();
    bool reached = s->cheapest < v->n;

    json_add_str(json, "study", v->study.name);
    json_add_i64(json, "trials", (int64_t)v->n);
    json_add_i64(json, "n_front", (int64_t)study_view_front_size(v));
    json_add_f64(json, "cost_s", study_view_cost(v));
    json_add_f64(json, "hypervolume", s->hypervolume);
    json_add_f64(json, "best", s->best < v->n ? (double)v->trials[s->best].number : (double)NAN);
    json_add_f64(json, "best_score", s->best < v->n ? s->promise.score : (double)NAN);
    json_add_f64(json, "best_run_score", v->trials[study_view_best_run(v)].score);
    json_add_f64(json, "reached_by", reached ? (double)v->trials[s->cheapest].number : (double)NAN);
    json_add_f64(json, "reached_cost", reached ? study_view_trial_cost(v, &v->trials[s->cheapest]) : (double)NAN);
    json_add_f64(json, "spent_until_reached", s->spent);
    return json;
}

static void print_line(const char *what, const char *a, const char *b)
{
    printf("%-34s %22s %22s\n", what, a, b);
}

static void best_text(const struct side *s, char *buf, size_t size)
{
    if (s->best < s->view.n)
        snprintf(buf, size, "%.4g (trial %lld)", s->promise.score, (long long)s->view.trials[s->best].number);
    else
        snprintf(buf, size, "-");
}

static void reached_text(const struct side *s, char *buf, size_t size)
{
    const struct study_view *v = &s->view;
    char cost[32];

    if (s->cheapest < v->n)
        snprintf(buf, size, "%s (trial %lld)",
                 study_view_cost_text(v, study_view_trial_cost(v, &v->trials[s->cheapest]), cost),
                 (long long)v->trials[s->cheapest].number);
    else
        snprintf(buf, size, "never");
}

static void print_sides(const struct side *s, double score)
{
    char a[64], b[64], what[96];

    print_line("", s[0].view.study.name, s[1].view.study.name);
    snprintf(a, sizeof a, "%zu", s[0].view.n);
    snprintf(b, sizeof b, "%zu", s[1].view.n);
    print_line("trials", a, b);
    print_line("cost of all trials", study_view_cost_text(&s[0].view, study_view_cost(&s[0].view), a),
               study_view_cost_text(&s[1].view, study_view_cost(&s[1].view), b));
    snprintf(a, sizeof a, "%.5g", s[0].hypervolume);
    snprintf(b, sizeof b, "%.5g", s[1].hypervolume);
    print_line("hypervolume, one reference", a, b);
    best_text(&s[0], a, sizeof a);
    best_text(&s[1], b, sizeof b);
    snprintf(what, sizeof what, "best %.20s, expected", s->view.study.metric);
    print_line(what, a, b);
    reached_text(&s[0], a, sizeof a);
    reached_text(&s[1], b, sizeof b);
    snprintf(what, sizeof what, "cheapest run to reach %.4g", score);
    print_line(what, a, b);
    print_line("cost of all trials until then", study_view_cost_text(&s[0].view, s[0].spent, a),
               study_view_cost_text(&s[1].view, s[1].spent, b));
}

static enum status compare(struct side *s, const char *score_text, bool as_json, struct error *err)
{
    struct pareto_ref ref;
    double score;

    TRY(check(&s[0].view, &s[1].view, err));
    for (int i = 0; i < 2; i++)
        TRY(study_view_advise(&s[i].view, err));
    score = common_score(s);
    if (score_text != NULL && !num_parse_f64(score_text, &score))
        return FAIL(err, ST_USAGE, "compare: --score is '%s', a number is needed", score_text);
    if (score_text != NULL && !s[0].view.study.maximize)
        score = -score;
    ref.cost = fmax(s[0].view.ref.cost, s[1].view.ref.cost);
    ref.score = fmin(s[0].view.ref.score, s[1].view.ref.score);
    for (int i = 0; i < 2; i++)
        judge(&s[i], &ref, score);
    if (!as_json) {
        print_sides(s, study_view_score(&s[0].view, score));
        return ST_OK;
    }
    cJSON *json = cJSON_CreateObject(), *reference = cJSON_AddObjectToObject(json, "reference");
    json_add_f64(reference, "cost", ref.cost);
    json_add_f64(reference, "score", study_view_score(&s[0].view, ref.score));
    json_add_str(json, "metric", s[0].view.study.metric);
    json_add_str(json, "direction", study_direction(&s[0].view.study));
    json_add_str(json, "cost_unit", study_cost_unit(s[0].view.search.cost));
    json_add_f64(json, "score", study_view_score(&s[0].view, score));
    cJSON *studies = cJSON_AddArrayToObject(json, "studies");
    for (int i = 0; i < 2; i++)
        cJSON_AddItemToArray(studies, side_json(&s[i]));
    cli_print_json(json);
    return ST_OK;
}

enum status cmd_compare(int argc, char **argv, struct error *err)
{
    const char *path = "trawl.db", *other_path = NULL, *score = NULL;
    bool json = false;
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_TEXT, &path, "FILE", "the store (trawl.db)"},
        {"other", 0, CLI_TEXT, &other_path, "FILE", "the store of the second study, if it is another"},
        {"score", 0, CLI_TEXT, &score, "X", "the score to reach (the best that both have reached)"},
        {"json", 0, CLI_FLAG, &json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "compare",
        .synopsis = "trawl compare NAME NAME [--score X] [--store FILE] [--other FILE] [--json]",
        .about = "Compares two studies of one metric: the hypervolumes of their fronts to one common reference, what "
                 "their\nbest configs are expected to score, and what it cost to reach a score.",
        .examples = "  trawl compare first second --store my.db\n"
                    "  trawl compare first first --other their.db --score 0.9",
        .opts = opts,
        .n_opts = sizeof opts / sizeof opts[0],
        .min_words = 2,
        .max_words = 2,
        .words_text = "one of two studies",
    };

    TRY(cli_parse(&cli, argc, argv, &words, err));
    if (words.help)
        return ST_OK;
    struct side *sides = mem_array(2, sizeof *sides);
    enum status rc = study_view_open(path, words.v[0], &sides[0].view, err);
    if (rc == ST_OK)
        rc = study_view_open(other_path != NULL ? other_path : path, words.v[1], &sides[1].view, err);
    if (rc == ST_OK)
        rc = compare(sides, score, json, err);
    study_view_free(&sides[0].view);
    study_view_free(&sides[1].view);
    mem_free(sides);
    return rc;
}
