/* cmd_eval.c - `trawl eval`: plays a checkpoint's policy on fresh games. */
#include "base/text/json.h"
#include "study/setup/setup.h"
#include "sweep/cmd/commands.h"
#include "sweep/cmd/policy/video.h"
#include "sweep/game_output.h"
#include "sweep/signals.h"
#include "sweep/worker/evaluate.h"
#include "sweep/worker/session.h"

#define NOT_GIVEN (-1) /* no user can give it */

struct eval_cmd {
    struct eval_settings settings;
    struct video_settings video;
    bool json;
    struct setup *setup;
    struct session session;
};

static cJSON *result_json(const struct eval_cmd *e, const char *checkpoint, const struct eval_result *r)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "checkpoint", checkpoint);
    json_add_str(json, "env", e->setup->env->name);
    evaluate_add_json(json, e->setup->env, r);
    json_add_bool(json, "greedy", e->settings.greedy);
    json_add_i64(json, "seed", e->settings.seed);
    return json;
}

static enum status load_config(struct eval_cmd *e, const char *checkpoint, struct error *err)
{
    MEM_LOCAL char *text = NULL;
    enum status rc = checkpoint_read_config(checkpoint, &text, err);

    THEN(rc, config_load_text(e->setup->config, checkpoint, text, err));
    THEN(rc, setup_finish(e->setup, err));
    e->setup->train.devices = 1; /* the first evaluates */
    return rc;
}

/* What the command line leaves open is as at the end of training. */
static void fill_settings(struct eval_cmd *e)
{
    struct eval_settings usual;

    eval_settings_of(&e->setup->train, &usual);
    if (e->settings.episodes == NOT_GIVEN)
        e->settings.episodes = usual.episodes;
    if (e->settings.agents == NOT_GIVEN)
        e->settings.agents = usual.agents;
    if (e->settings.max_steps == NOT_GIVEN)
        e->settings.max_steps = usual.max_steps;
}

static enum status check_usage(const struct eval_cmd *e, struct error *err)
{
    const struct eval_settings *s = &e->settings;
    const char *name = s->episodes == 0 ? "episodes" : s->agents == 0 ? "agents" : "max-steps";

    if (s->episodes != 0 && s->agents != 0 && s->max_steps != 0)
        return ST_OK;
    return FAIL(err, ST_USAGE, "eval: --%s is 0; at least 1 is needed", name);
}

static enum status run_eval(struct eval_cmd *e, const char *checkpoint, struct error *err)
{
    struct eval_result r;

    TRY(load_config(e, checkpoint, err));
    TRY(video_check(&e->video, e->setup, err));
    fill_settings(e);
    game_output_begin("eval", e->setup->env);
    TRY(session_open(&e->session, e->setup, err));
    TRY(trainer_load_weights(e->session.trainer, checkpoint, err));
    signals_bound(NULL, NULL);
    TRY(evaluate(e->session.trainer, &e->settings, false, &r, err));
    if (r.stopped)
        return FAIL(err, ST_INTERRUPTED, "interrupted after %lld steps", (long long)r.steps);
    if (r.unfinished > 0)
        log_warn("%lld of %lld episodes had not ended after %lld steps; --max-steps is the limit",
                 (long long)r.unfinished, (long long)r.episodes, (long long)r.max_steps);
    game_output_end(false);
    if (e->json)
        cli_print_json(result_json(e, checkpoint, &r));
    else
        evaluate_print(e->setup->env, &r);
    game_output_begin("eval", e->setup->env);
    e->video.seed = e->settings.seed;
    e->video.greedy = e->settings.greedy;
    return video_make(checkpoint, &e->video, e->setup, err);
}

enum status cmd_eval(int argc, char **argv, struct error *err)
{
    struct eval_cmd e = {.settings = {.episodes = NOT_GIVEN, .agents = NOT_GIVEN, .max_steps = NOT_GIVEN, .seed = 1},
                         .video = {.steps = 1000}};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"episodes", 'n', CLI_INT, &e.settings.episodes, "N", "play at least this many episodes (train.eval_episodes)"},
        {"agents", 0, CLI_INT, &e.settings.agents, "N",
         "play with this many agents at a time (as many as episodes, at most 1024)"},
        {"seed", 0, CLI_INT, &e.settings.seed, "N", "seed of the games (1)"},
        {"max-steps", 0, CLI_INT, &e.settings.max_steps, "N",
         "stop after this many decisions of each agent, rounded up to a multiple of 32 (train.eval_max_steps)"},
        {"greedy", 0, CLI_FLAG, &e.settings.greedy, NULL, "take the likeliest action instead of sampling"},
        {"video", 0, CLI_TEXT, &e.video.path, "FILE",
         "also play one episode into a video, 25 decisions a second: .gif, or .mp4 if ffmpeg is installed"},
        {"video-steps", 0, CLI_INT, &e.video.steps, "N", "end the video after this many decisions (1000)"},
        {"json", 0, CLI_FLAG, &e.json, NULL, "print the result as one JSON object"},
    };
    const struct cli cli = {
        .name = "eval",
        .synopsis = "trawl eval CHECKPOINT [--episodes N] [--video FILE] [--json]",
        .about = "Plays the policy of a checkpoint on fresh games, not those at the end of its training. Only the "
                 "first\nepisodes of each game count, so that short ones are not favoured. An episode that is "
                 "unfinished at\nthe step limit counts with its score so far, and the result reports it. +- is the "
                 "standard error of\nthe mean over the games, which one game of many agents does not have.",
        .examples = "  trawl eval cartpole.ckpt\n"
                    "  trawl eval breakout.ckpt --episodes 1000 --greedy --json\n"
                    "  trawl eval pong.ckpt --video pong.gif",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a checkpoint"),
    };
    enum status rc = setup_create(&e.setup, err);

    THEN(rc, config_take_args(e.setup->config, &argc, argv, err));
    THEN(rc, cli_parse_beside(&cli, e.setup->config, argc, argv, &words, err));
    if (rc == ST_OK && !words.help)
        rc = check_usage(&e, err);
    if (rc == ST_OK && !words.help)
        rc = run_eval(&e, words.v[0], err);
    game_output_end(rc != ST_OK);
    session_close(&e.session);
    setup_destroy(e.setup);
    return rc;
}
