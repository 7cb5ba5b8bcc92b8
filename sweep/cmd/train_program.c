/* train_program.c - a config of [sweep] command, run once: the program's output goes to stderr, the result to
 * stdout. */
#include "sweep/cmd/train_program.h"

#include "base/text/duration.h"
#include "base/text/json.h"
#include "study/setup/setup.h"
#include "sweep/cli.h"
#include "sweep/program/once.h"
#include "sweep/program/trial_program.h"
#include "sweep/signals.h"

static cJSON *result_json(const struct setup *setup, const char *dir, const struct program_end *end,
                          const struct metric_line *last)
{
    cJSON *json = cJSON_CreateObject(), *metrics = cJSON_CreateObject();

    for (size_t i = 0; i < last->n; i++)
        json_add_f64(metrics, last->metrics[i].name, last->metrics[i].value);
    json_add_str(json, "state", program_outcome_name(end->outcome));
    json_add_f64(json, "score", end->score);
    json_add_f64(json, "cost_s", end->cost);
    json_add_f64(json, "wall_s", end->wall_s);
    json_add_i64(json, "env_steps", end->step);
    json_add_i64(json, "seed", setup->program.trial_seed);
    json_add_str(json, "dir", dir);
    json_add(json, "metrics", metrics);
    return json;
}

static void print_result(const struct setup *setup, const char *dir, const struct program_end *end,
                         const struct metric_line *last)
{
    char number[NUM_TEXT_MAX], time[32];

    for (size_t i = 0; i < last->n; i++)
        printf("%s%s %.6g", i > 0 ? "  " : "", last->metrics[i].name, last->metrics[i].value);
    printf("%scost %s%s, wall time %s, seed %lld\noutput in %s/output.log\n", last->n > 0 ? "\n" : "",
           num_format_short(end->cost, number), end->cost_reported ? "" : " s", format_seconds(end->wall_s, time),
           (long long)setup->program.trial_seed, dir);
}

enum status train_program(const struct setup *setup, const char *name, bool json, bool quiet, struct error *err)
{
    size_t n = strlen(name);
    char dir[PATH_MAX];
    MEM_LOCAL char *text = NULL;
    struct trial_program trial = {
        .setup = setup, .metric = setup->sweep.metric, .attempt = 1, .dir = dir, .gpu = -1, .echo = !quiet};
    MEM_LOCAL struct program_end *end = mem_alloc(sizeof *end);
    MEM_LOCAL struct metric_line *last = mem_alloc(sizeof *last);

    snprintf(dir, sizeof dir, "%.*s.run", (int)(word_ends_in(name, ".ini") ? n - 4 : n), name);
    signals_catch();
    TRY(setup_to_ini(setup, &text, err));
    trial.config = text;
    TRY(program_once(&trial, end, last, err));
    if (json)
        cli_print_json(result_json(setup, dir, end, last));
    else
        print_result(setup, dir, end, last);
    if (end->outcome == PROGRAM_STOPPED)
        return FAIL(err, ST_INTERRUPTED, "interrupted; the program was stopped");
    return end->outcome == PROGRAM_FAILED ? FAIL(err, ST_LIMIT, "the program failed: %s", end->reason) : ST_OK;
}
