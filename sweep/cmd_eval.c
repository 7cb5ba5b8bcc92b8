/* cmd_eval.c - `trawl eval`: plays a checkpoint's policy on fresh games. */
#include "sweep/sweep.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "kernels/kernels.h"

struct eval_cmd {
    struct eval_settings settings;
    bool json;
    struct setup *setup;
    struct run run;
};

static cJSON *result_json(const struct eval_cmd *e, const char *checkpoint, const struct eval_result *r)
{
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL && json_add_str(json, "checkpoint", checkpoint) &&
              json_add_str(json, "env", e->setup->env->name) && json_add_f64(json, "score", r->score) &&
              json_add_f64(json, "perf", r->perf) && json_add_f64(json, "perf_std", r->perf_std) &&
              json_add_f64(json, "ep_return", r->ep_return) && json_add_f64(json, "ep_length", r->ep_length) &&
              json_add_f64(json, "episodes", r->episodes) && json_add_bool(json, "greedy", e->settings.greedy) &&
              json_add_i64(json, "seed", e->settings.seed);
    if (!ok) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

static enum status load_config(struct eval_cmd *e, const char *checkpoint, struct error *err)
{
    char *text = NULL;
    enum status rc = checkpoint_read_config(checkpoint, &text, err);

    if (rc == ST_OK)
        rc = config_load_text(e->setup->config, checkpoint, text, err);
    mem_free(text);
    return rc == ST_OK ? setup_finish(e->setup, err) : rc;
}

static enum status run_eval(struct eval_cmd *e, const char *checkpoint, struct error *err)
{
    struct eval_result r;

    TRY(load_config(e, checkpoint, err));
    TRY(run_open(&e->run, e->setup, err));
    TRY(trainer_load(e->run.trainer, checkpoint, err));
    TRY(trainer_eval(e->run.trainer, &e->settings, &r, err));
    if (e->json)
        return cli_print_json(result_json(e, checkpoint, &r), err);
    if (!(r.episodes > 0))
        return FAIL(err, ST_LIMIT, "no episode ended within %lld decisions; raise --max-steps",
                    (long long)e->settings.max_steps);
    printf("score %.6g  perf %.4f +- %.4f  return %.6g  length %.6g  over %.0f episodes of %s\n", r.score, r.perf,
           isfinite(r.perf_std) ? r.perf_std : 0.0, r.ep_return, r.ep_length, r.episodes, e->setup->env->name);
    return ST_OK;
}

enum status cmd_eval(int argc, char **argv, struct error *err)
{
    struct eval_cmd e = {.settings = {.episodes = 100, .agents = 0, .seed = 1, .max_steps = 1000000}};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"episodes", 'n', CLI_INT, &e.settings.episodes, "N", "play at least this many episodes (100)"},
        {"agents", 0, CLI_INT, &e.settings.agents, "N",
         "play on this many games at a time (as many as episodes, at most 256)"},
        {"seed", 0, CLI_INT, &e.settings.seed, "N", "seed of the games (1)"},
        {"max-steps", 0, CLI_INT, &e.settings.max_steps, "N", "stop after this many decisions of each agent (1M)"},
        {"greedy", 0, CLI_FLAG, &e.settings.greedy, NULL, "take the likeliest action in place of sampling"},
        {"json", 0, CLI_FLAG, &e.json, NULL, "print the result as one JSON object"},
    };
    const struct cli cli = {
        .name = "eval",
        .synopsis = "trawl eval CHECKPOINT [--episodes N] [--json]",
        .about =
            "Plays the policy of a checkpoint on fresh games. Every agent's first episodes count equally, so that\n"
            "short ones are not favoured.",
        .examples = "  trawl eval cartpole.ckpt\n"
                    "  trawl eval breakout.ckpt --episodes 1000 --greedy --json",
        .opts = opts,
        .n_opts = sizeof opts / sizeof opts[0],
        .min_words = 1,
        .max_words = 1,
        .words_text = "a checkpoint",
    };
    enum status rc = setup_create(&e.setup, err);

    if (rc == ST_OK)
        rc = config_take_args(e.setup->config, &argc, argv, err);
    if (rc == ST_OK)
        rc = cli_parse(&cli, argc, argv, &words, err);
    if (rc == ST_OK && !words.help && e.settings.episodes < 1)
        rc = FAIL(err, ST_USAGE, "eval: --episodes is 0, at least 1 is needed");
    if (e.settings.agents == 0)
        e.settings.agents = e.settings.episodes < 256 ? e.settings.episodes : 256;
    if (rc == ST_OK && !words.help)
        rc = run_eval(&e, words.v[0], err);
    run_close(&e.run);
    setup_destroy(e.setup);
    return rc;
}
