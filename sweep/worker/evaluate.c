/* evaluate.c - the evaluation at the end of a run in this process, and how its result is written.
 * Invariant: it shows progress, and a signal ends it. */
#include "sweep/worker/evaluate.h"

#include "base/text/duration.h"
#include "sweep/signals.h"
#include "sweep/term.h"
#include "trainer/trainer.h"

#define SHOW_S 2.0 /* between lines, and before the first */
#define LINE_WIDTH 100 /* of a list of numbers */

struct evaluation {
    bool quiet;
    double shown_s;
};

static bool on_progress(void *ctx, const struct eval_progress *p)
{
    struct evaluation *e = ctx;
    double now_s = clock_mono_s();

    if (!e->quiet && now_s - e->shown_s >= SHOW_S) {
        e->shown_s = now_s;
        fprintf(term_err(), "evaluating: %lld of %lld episodes have ended, step %lld of at most %lld\n",
                (long long)p->finished, (long long)p->episodes, (long long)p->steps, (long long)p->max_steps);
    }
    return !signals_stop();
}

enum status evaluate(struct trainer *trainer, const struct eval_settings *settings, bool quiet,
                     struct eval_result *ret_result, struct error *err)
{
    struct evaluation e = {.quiet = quiet, .shown_s = clock_mono_s()};
    struct eval_settings own = *settings;

    own.ctx = &e;
    own.on_progress = on_progress;
    return trainer_eval(trainer, &own, ret_result, err);
}

/* "256 episodes", or the number of episodes that ended within the step limit. */
static const char *episodes_text(const struct eval_result *r, char buf[160])
{
    if (r->unfinished == 0)
        snprintf(buf, 160, "%lld episode%s", (long long)r->episodes, PLURAL(r->episodes));
    else
        snprintf(buf, 160, "%lld of %lld episodes ended within %lld steps; the others count with what they had",
                 (long long)(r->episodes - r->unfinished), (long long)r->episodes, (long long)r->max_steps);
    return buf;
}

void evaluate_add_json(cJSON *json, const struct env_def *env, const struct eval_result *r)
{
    json_add_f64(json, "score", r->score);
    json_add_f64(json, "score_se", r->score_se);
    json_add_f64(json, "perf", r->perf);
    json_add_f64(json, "perf_se", r->perf_se);
    json_add_f64(json, "ep_return", r->ep_return);
    json_add_f64(json, "ep_return_se", r->ep_return_se);
    json_add_f64(json, "ep_length", r->ep_length);
    json_add_f64(json, "ep_length_se", r->ep_length_se);
    json_add_i64(json, "episodes", r->episodes);
    json_add_i64(json, "unfinished", r->unfinished);
    json_add_i64(json, "max_steps", r->max_steps);
    json_add_f64(json, "eval_s", r->eval_s);
    for (size_t i = 0; i < env->n_numbers; i++)
        json_add_f64(json, env->number_names[i], r->numbers[i]);
}

const char *evaluate_perf_text(double perf, char buf[32])
{
    if (isfinite(perf))
        snprintf(buf, 32, "%.4f", perf);
    else
        snprintf(buf, 32, "unknown");
    return buf;
}

/* " +- 0.02"; of one game alone the spread, and with it the error, is unknown. */
static const char *error_text(double se, char buf[32])
{
    buf[0] = '\0';
    if (isfinite(se))
        snprintf(buf, 32, " +- %.2g", se);
    return buf;
}

static void print_numbers(const struct env_def *env, const struct eval_result *r)
{
    int width = 0;

    for (size_t i = 0; i < env->n_numbers; i++) {
        char text[160];
        int n = snprintf(text, sizeof text, "%s %.6g", env->number_names[i], r->numbers[i]);
        bool fits = width + 2 + n <= LINE_WIDTH;

        if (!isfinite(r->numbers[i]))
            continue;
        printf("%s%s", width == 0 ? "" : fits ? "  " : "\n", text);
        width = width > 0 && fits ? width + 2 + n : n;
    }
    if (width > 0)
        printf("\n");
}

void evaluate_print(const struct env_def *env, const struct eval_result *r)
{
    char text[160], time[32], perf[32], score_se[32], perf_se[32];

    if (r->episodes == 0) {
        printf("no score: " EVAL_NO_EPISODE " (%lld steps of each agent, in %s)\n", (long long)r->steps,
               format_seconds(r->eval_s, time));
        return;
    }
    printf("score %.6g%s  perf %s%s  return %.6g  length %.6g  (mean%s of %s, in %s)\n", r->score,
           error_text(r->score_se, score_se), evaluate_perf_text(r->perf, perf),
           error_text(isfinite(r->perf) ? r->perf_se : NAN, perf_se), r->ep_return, r->ep_length,
           isfinite(r->score_se) ? " and standard error" : "", episodes_text(r, text), format_seconds(r->eval_s, time));
    print_numbers(env, r);
}
