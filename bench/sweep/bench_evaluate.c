/* bench_evaluate.c - `trawl-bench evaluate`: a problem at the end of a pipe, so that a method of any language can be
 * measured by the same draws and the same measures. One request a line, one answer a line:
 *   space                       the search space as JSON
 *   truth X1 ... XD             ok SCORE COST      the true means, for whoever checks a problem
 *   study METHOD SEED TRIALS [BRANCHES]   ok       begins a study; BRANCHES: shorter runs that each run gives
 *   point X1 ... XD [SECONDS]   ok SCORE COST | failed COST     one trial; SECONDS: how long the proposal took
 *   branches                    [{x, score, cost}, ...]         of the latest trial
 *   end                         the study's measures as JSON, as of `trawl-bench sweep --json`
 * A request that cannot be met is answered "error TEXT" and ends the program. */
#include "bench/sweep/play.h"

#include "bench/bench_commands.h"
#include "base/text/json.h"
#include "gp/gp_priv.h"
#include "sweep/cli.h"

#define MAX_WORDS (SPACE_MAX_DIM + 2)
#define MAX_TRIALS 20000
#define MAX_LINE 8192
#define MAX_BRANCHES 64

struct evaluator {
    struct problem problem;
    struct known known;
    bool has_known, has_study;
    const char *fronts;
    struct play study;
    char method[64];
    double now;
};

static cJSON *param_json(const struct space_param *p, bool is_steps)
{
    static const char *const scales[] = {"linear", "log", "logit", "pow2", "categorical"};
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "key", p->key);
    json_add_str(json, "scale", scales[p->scale]);
    json_add_bool(json, "int", p->is_int);
    json_add_f64(json, "min", p->min);
    json_add_f64(json, "max", p->max);
    json_add_i64(json, "choices", (int64_t)p->n_choices);
    json_add_bool(json, "steps", is_steps); /* the length of a run */
    return json;
}

static void answer_space(const struct evaluator *e)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; i < e->problem.space.dim; i++)
        cJSON_AddItemToArray(array, param_json(&e->problem.space.params[i], i == space_steps_param(&e->problem.space)));
    cli_print_json(array);
}

/* words[1 .. dim] as a point that a trial can have. */
static enum status read_point(const struct evaluator *e, char **words, size_t n, double *ret_x, struct error *err)
{
    const struct space *space = &e->problem.space;
    double u[SPACE_MAX_DIM];

    if (n < space->dim + 1)
        return FAIL(err, ST_USAGE, "'%s' needs %zu numbers, found %zu", words[0], space->dim, n - 1);
    for (size_t i = 0; i < space->dim; i++)
        if (!num_parse_f64(words[i + 1], &ret_x[i]))
            return FAIL(err, ST_USAGE, "'%s' is not a number", words[i + 1]);
    for (size_t i = 0; i < space->dim; i++) { /* whole values as they are; a float must not move by a rounding */
        const struct space_param *p = &space->params[i];
        if (ret_x[i] < p->min || ret_x[i] > p->max)
            return FAIL(err, ST_USAGE, "%s is %s, outside its range", p->key, words[i + 1]);
    }
    space_to_unit(space, ret_x, u);
    double snapped[SPACE_MAX_DIM];
    space_from_unit(space, u, snapped);
    for (size_t i = 0; i < space->dim; i++) {
        const struct space_param *p = &space->params[i];
        if (p->is_int || p->scale == SPACE_POW2 || p->scale == SPACE_CATEGORICAL)
            ret_x[i] = snapped[i];
    }
    return ST_OK;
}

static void print_outcome(const struct outcome *o)
{
    char score[NUM_TEXT_MAX], cost[NUM_TEXT_MAX];

    if (o->failed)
        printf("failed %s\n", num_format_f64(o->cost, cost));
    else
        printf("ok %s %s\n", num_format_f64(o->score, score), num_format_f64(o->cost, cost));
}

static enum status answer_truth(const struct evaluator *e, char **words, size_t n, struct error *err)
{
    double x[SPACE_MAX_DIM];
    struct outcome o;

    TRY(read_point(e, words, n, x, err));
    e->problem.ops->truth(&e->problem, 1, x, &o);
    print_outcome(&o);
    return ST_OK;
}

static enum status answer_study(struct evaluator *e, char **words, size_t n, struct error *err)
{
    int64_t seed, trials, branches = 0;

    if (n < 4 || n > 5 || !num_parse_i64(words[2], &seed) || !num_parse_i64(words[3], &trials) || seed < 0 ||
        trials < 1 || trials > MAX_TRIALS || strlen(words[1]) >= sizeof e->method ||
        (n == 5 && (!num_parse_i64(words[4], &branches) || branches < 0 || branches > MAX_BRANCHES)))
        return FAIL(err, ST_USAGE, "needed: study METHOD SEED TRIALS (1 to %d) [BRANCHES (0 to %d)]", MAX_TRIALS,
                    MAX_BRANCHES);
    if (!e->has_known)
        TRY(known_load(&e->known, e->fronts, e->problem.name, err));
    e->has_known = true;
    if (e->has_study)
        play_free(&e->study);
    e->has_study = false;
    strcpy(e->method, words[1]);
    play_init(&e->study, &e->problem, e->method, (uint64_t)seed, (size_t)trials, 1);
    e->study.branches = (size_t)branches;
    e->has_study = true;
    e->now = 0.0;
    puts("ok");
    return ST_OK;
}

static enum status answer_point(struct evaluator *e, char **words, size_t n, struct error *err)
{
    struct play *study = &e->study;
    double x[SPACE_MAX_DIM], seconds;

    if (!e->has_study || study->n_started == study->max_trials)
        return FAIL(err, ST_USAGE, "no study is open that could take one trial more");
    TRY(read_point(e, words, n, x, err));
    if (n == e->problem.space.dim + 2 && num_parse_f64(words[n - 1], &seconds))
        study->latency_s[study->n_latency++] = seconds;
    play_start(study, x, e->now);
    study->order[study->n_done] = study->n_done;
    e->now = study->trials[study->n_done].end;
    print_outcome(&study->trials[study->n_done++].seen);
    return ST_OK;
}

static enum status answer_branches(const struct evaluator *e, struct error *err)
{
    const struct play *study = &e->study;
    size_t dim = e->problem.space.dim;
    double x[MAX_BRANCHES * SPACE_MAX_DIM];
    struct outcome seen[MAX_BRANCHES + 1];

    if (!e->has_study || study->n_done == 0)
        return FAIL(err, ST_USAGE, "no trial has been made that could have branches");
    size_t n = play_branches(study, study->n_done - 1, x, seen);
    cJSON *array = cJSON_CreateArray();
    for (size_t k = 0; k < n; k++) {
        cJSON *branch = cJSON_CreateObject();
        json_add(branch, "x", cJSON_CreateDoubleArray(x + k * dim, (int)dim));
        json_add_f64(branch, "score", seen[k].score);
        json_add_f64(branch, "cost", seen[k].cost);
        cJSON_AddItemToArray(array, branch);
    }
    cli_print_json(array);
    return ST_OK;
}

static enum status answer(struct evaluator *e, char *line, struct error *err)
{
    char *words[MAX_WORDS], *rest = NULL;
    size_t n = 0;

    for (char *w = strtok_r(line, " \t\r\n", &rest); w != NULL && n < MAX_WORDS; w = strtok_r(NULL, " \t\r\n", &rest))
        words[n++] = w;
    if (n == 0)
        return ST_OK;
    if (strcmp(words[0], "space") == 0) {
        answer_space(e);
        return ST_OK;
    }
    if (strcmp(words[0], "truth") == 0)
        return answer_truth(e, words, n, err);
    if (strcmp(words[0], "study") == 0)
        return answer_study(e, words, n, err);
    if (strcmp(words[0], "point") == 0)
        return answer_point(e, words, n, err);
    if (strcmp(words[0], "branches") == 0)
        return answer_branches(e, err);
    if (strcmp(words[0], "end") == 0 && e->has_study) {
        cli_print_json(play_measure(&e->study, &e->known));
        return ST_OK;
    }
    return FAIL(err, ST_USAGE, "'%s' is not one of space, truth, study, point, branches, end (after a study)",
                words[0]);
}

static enum status evaluate_run(struct evaluator *e, const char *problem, const char *data, struct error *err)
{
    char line[MAX_LINE];
    enum status rc = problem_open(&e->problem, problem, data, err);

    while (rc == ST_OK && fgets(line, sizeof line, stdin) != NULL) {
        rc = answer(e, line, err);
        if (rc != ST_OK && err != NULL)
            printf("error %s\n", err->text);
        fflush(stdout);
    }
    if (e->has_study)
        play_free(&e->study);
    problem_close(&e->problem);
    return rc;
}

enum status bench_evaluate(int argc, char **argv, struct error *err)
{
    struct evaluator e = {.fronts = "bench/sweep/fronts.json"};
    const char *problem = NULL, *data = NULL;
    const struct cli_opt opts[] = {
        {"problem", 0, CLI_TEXT, &problem, "P", "a problem of `trawl-bench sweep`"},
        {"data", 0, CLI_TEXT, &data, "DIR", "where data from outside the repository lie"},
        {"fronts", 0, CLI_TEXT, &e.fronts, "FILE", "best known fronts (bench/sweep/fronts.json)"},
    };
    const struct cli cli = {
        .name = "bench evaluate",
        .synopsis = "trawl-bench evaluate --problem P [options]",
        .about = "Reads requests from stdin and answers each with one line on stdout:\n"
                 "  space                      the search space as JSON\n"
                 "  truth X1 ... XD            ok SCORE COST\n"
                 "  study METHOD SEED TRIALS [BRANCHES]   ok (BRANCHES: shorter runs that each run gives)\n"
                 "  point X1 ... XD [SECONDS]  ok SCORE COST, or: failed COST (SECONDS: what the proposal took)\n"
                 "  branches                   those of the latest trial, as JSON: x, score, cost\n"
                 "  end                        the study's measures, as of `trawl-bench sweep --json`",
        .examples = "  echo space | trawl-bench evaluate --problem rl-toy",
        CLI_OPTS(opts),
    };

    CLI_PARSE(cli, words);
    if (problem == NULL)
        return FAIL(err, ST_USAGE, "bench evaluate: --problem is missing; `trawl-bench sweep --help` lists them");
    return evaluate_run(&e, problem, data, err);
}
