/* cmd_compare.c - `trawl compare`: two studies in numbers that can be compared.
 * Invariant: both hypervolumes are to one reference, the worst of the two studies', and of what is believed, as on the
 * pages. */
#include "base/text/duration.h"
#include "base/os/file.h"
#include "base/text/json.h"
#include "study/findings/believed.h"
#include "study/findings/comparison.h"
#include "study/view/promise.h"
#include "study/view/study_view.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"
#include "web/report/report.h"

#include <strings.h>

struct side { /* of the comparison */
    struct study_view view;
    double hypervolume;
    size_t best, cheapest; /* view.n: none; cheapest: run that reached the score */
    struct promise promise; /* of the best */
    double spent; /* cost of all trials until the score was reached first; NaN: it was not */
};

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

    s->hypervolume = believed_volume(v, ref, BELIEVED_NOW);
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

/* ---- what is shown ---- */

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
    json_add_f64(json, "best_run_score", study_view_run_score(v, study_view_best_run(v)));
    json_add_f64(json, "reached_by", reached ? (double)v->trials[s->cheapest].number : (double)NAN);
    json_add_f64(json, "reached_cost", reached ? study_view_trial_cost(v, &v->trials[s->cheapest]) : (double)NAN);
    json_add_f64(json, "spent_until_reached", s->spent);
    return json;
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

#define ROWS 6
#define TEXT_BYTES 96
struct rows { /* what is compared, as texts */
    char what[ROWS][TEXT_BYTES], texts[ROWS][2][TEXT_BYTES];
    const char *lists[ROWS][2];
    struct report_row rows[ROWS];
};

static void make_rows(const struct side *sides, double score, struct rows *r)
{
    snprintf(r->what[0], TEXT_BYTES, "trials");
    snprintf(r->what[1], TEXT_BYTES, "training of all trials");
    snprintf(r->what[2], TEXT_BYTES, "expected hypervolume");
    snprintf(r->what[3], TEXT_BYTES, "best %.20s, expected", sides->view.study.metric);
    snprintf(r->what[4], TEXT_BYTES, "cheapest run to reach %.4g", score);
    snprintf(r->what[5], TEXT_BYTES, "cost of all trials until then");
    for (int i = 0; i < 2; i++) {
        const struct side *s = &sides[i];
        snprintf(r->texts[0][i], TEXT_BYTES, "%zu", s->view.n);
        (void)format_seconds(study_view_cost(&s->view), r->texts[1][i]);
        snprintf(r->texts[2][i], TEXT_BYTES, "%.5g", s->hypervolume);
        best_text(s, r->texts[3][i], TEXT_BYTES);
        reached_text(s, r->texts[4][i], TEXT_BYTES);
        (void)study_view_cost_text(&s->view, s->spent, r->texts[5][i]);
    }
    for (size_t k = 0; k < ROWS; k++) {
        r->lists[k][0] = r->texts[k][0];
        r->lists[k][1] = r->texts[k][1];
        r->rows[k] = (struct report_row){.what = r->what[k], .texts = r->lists[k]};
    }
}

static void print_rows(const struct side *s, const struct rows *r)
{
    printf("%-34s %22s %22s\n", "", s[0].view.study.name, s[1].view.study.name);
    for (size_t k = 0; k < ROWS; k++)
        printf("%-34s %22s %22s\n", r->what[k], r->texts[k][0], r->texts[k][1]);
}

static void print_json(const struct side *s, const struct pareto_ref *ref, double score)
{
    cJSON *json = cJSON_CreateObject(), *reference = cJSON_AddObjectToObject(json, "reference");

    json_add_f64(reference, "cost", ref->cost);
    json_add_f64(reference, "score", study_view_score(&s[0].view, ref->score));
    json_add_str(json, "metric", s[0].view.study.metric);
    json_add_str(json, "direction", study_direction(&s[0].view.study));
    json_add_str(json, "cost_unit", study_cost_unit(s[0].view.search.cost));
    json_add_f64(json, "score", study_view_score(&s[0].view, score));
    cJSON *studies = cJSON_AddArrayToObject(json, "studies");
    for (int i = 0; i < 2; i++)
        cJSON_AddItemToArray(studies, side_json(&s[i]));
    cli_print_json(json);
}

static enum status write_page(const struct comparison *c, const struct rows *r, const char *path, struct error *err)
{
    STRBUF(out, OUTPUT_MAX_BYTES);

    TRY(report_write_comparison(&out, c, r->rows, ROWS, err));
    TRY(file_write_all(path, out.text, out.len, err));
    fprintf(stderr, "wrote %s (%zu bytes)\n", path, out.len);
    return ST_OK;
}

static enum status compare(struct side *s, const char *score_text, const char *path, bool as_json, struct error *err)
{
    struct study_view *const views[] = {&s[0].view, &s[1].view};
    COMPARISON(c);
    MEM_LOCAL struct rows *rows = mem_alloc(sizeof *rows);

    for (int i = 0; i < 2; i++)
        TRY(study_view_advise(&s[i].view, err));
    TRY(comparison_make(views, 2, c, err));
    double score = common_score(s);
    if (score_text != NULL && !num_parse_f64(score_text, &score))
        return FAIL(err, ST_USAGE, "compare: --score is '%s', a number is needed", score_text);
    if (score_text != NULL && !s[0].view.study.maximize)
        score = -score;
    for (int i = 0; i < 2; i++)
        judge(&s[i], &c->ref, score);
    make_rows(s, study_view_score(&s[0].view, score), rows);
    if (as_json)
        print_json(s, &c->ref, score);
    else if (path == NULL)
        print_rows(s, rows);
    return path != NULL ? write_page(c, rows, path, err) : ST_OK;
}

static enum status check_page(const char *path, struct error *err)
{
    const char *dot = strrchr(path, '.');

    TRY(check_output(path, OUTPUT_OTHER, NULL, 0, err));
    if (dot == NULL || (strcasecmp(dot, ".html") != 0 && strcasecmp(dot, ".htm") != 0))
        return FAIL(err, ST_USAGE, "compare: %s does not end in .html, the only format of this page", path);
    return ST_OK;
}

enum status cmd_compare(int argc, char **argv, struct error *err)
{
    const char *path = "trawl.db", *other_path = NULL, *score = NULL, *output = NULL;
    bool json = false;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &path, "FILE", "the store (trawl.db)"},
        {"other", 0, CLI_STORE, &other_path, "FILE", "the store of the second study, if different"},
        {"score", 0, CLI_TEXT, &score, "X", "the score to reach (the best that both have reached)"},
        {"output", 'o', CLI_TEXT, &output, "FILE.html",
         "write a page there: both fronts in one chart, and how their configs differ"},
        {"json", 0, CLI_FLAG, &json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "compare",
        .synopsis = "trawl compare NAME NAME [--score X] [--store FILE] [--other FILE] [-o FILE.html] [--json]",
        .about = "Compares two studies of one metric: the hypervolumes of their fronts to one common reference, what "
                 "their\nbest configs are expected to score, and what it cost to reach a score. With -o as an HTML "
                 "page, which needs no network\nand no script.",
        .examples = "  trawl compare first second --store my.db\n"
                    "  trawl compare first first --other their.db --score 0.9\n"
                    "  trawl compare first second --store my.db -o compare.html",
        CLI_OPTS(opts),
        CLI_WORDS(2, 2, "one of two studies"),
    };

    CLI_PARSE(cli, words);
    if (output != NULL)
        TRY(check_page(output, err));
    MEM_LOCAL struct side *sides = mem_array(2, sizeof *sides);
    enum status rc = study_view_open(path, words.v[0], &sides[0].view, err);
    THEN(rc, study_view_open(other_path != NULL ? other_path : path, words.v[1], &sides[1].view, err));
    THEN(rc, compare(sides, score, output, json, err));
    study_view_free(&sides[0].view);
    study_view_free(&sides[1].view);
    return rc;
}
