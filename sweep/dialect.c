/* dialect.c - names and values of the PufferLib ini family, as data: what maps to an option of ours, and what is
 * accepted and ignored (with one warning) because it steers machinery that Trawl does not have. */
#include "sweep/sweep.h"

#include <string.h>
#include <strings.h>

#define IGNORED(key) {key, NULL}

const struct config_alias dialect_aliases[] = {
    {"base.env_name", "env.name"},
    {"base.seed", "train.seed"},
    {"base.max_suggestion_cost", "sweep.max_cost"},
    IGNORED("base.package"),
    IGNORED("base.policy_name"),
    IGNORED("base.rnn_name"),
    IGNORED("base.vec"),
    IGNORED("base.rank"),
    IGNORED("base.world_size"),
    IGNORED("base.gpu_id"),
    IGNORED("base.nccl_id"),
    IGNORED("base.profile"),
    IGNORED("base.checkpoint_dir"),
    IGNORED("base.checkpoint_interval"),
    IGNORED("base.log_dir"),
    IGNORED("base.eval_episodes"),
    IGNORED("base.cudagraphs"),
    IGNORED("base.reset_state"),
    IGNORED("base.render_mode"),
    IGNORED("base.save_frames"),
    IGNORED("base.gif_path"),
    IGNORED("base.fps"),
    IGNORED("base.max_runs"),
    IGNORED("base.wandb"),
    IGNORED("base.wandb_project"),
    IGNORED("base.wandb_group"),
    IGNORED("base.neptune"),
    IGNORED("base.tag"),

    {"vec.total_agents", "train.total_agents"},
    {"vec.num_threads", "train.threads"},
    IGNORED("vec.num_envs"),
    IGNORED("vec.num_workers"),
    IGNORED("vec.num_buffers"),
    IGNORED("vec.batch_size"),
    IGNORED("vec.zero_copy"),
    IGNORED("vec.backend"),
    IGNORED("vec.seed"),

    /* inside [env]: the shape of their batch, and sizes of a field that our rules fix */
    IGNORED("env.num_envs"),
    IGNORED("env.num_agents"),
    IGNORED("env.continuous"),
    IGNORED("env.width"),
    IGNORED("env.height"),
    IGNORED("env.initial_paddle_width"),
    IGNORED("env.paddle_width"),
    IGNORED("env.paddle_height"),
    IGNORED("env.paddle_speed"),
    IGNORED("env.ball_width"),
    IGNORED("env.ball_height"),
    IGNORED("env.ball_speed"),
    IGNORED("env.initial_ball_speed"),
    IGNORED("env.max_ball_speed"),
    IGNORED("env.ball_initial_speed_x"),
    IGNORED("env.ball_initial_speed_y"),
    IGNORED("env.ball_speed_y_increment"),
    IGNORED("env.ball_max_speed_y"),
    IGNORED("env.brick_width"),
    IGNORED("env.brick_height"),
    IGNORED("env.brick_rows"),
    IGNORED("env.brick_cols"),
    IGNORED("env.max_score"),

    {"rnn.hidden_size", "policy.hidden_size"},
    {"rnn.num_layers", "policy.num_layers"},
    IGNORED("rnn.input_size"),
    IGNORED("policy.input_size"),
    IGNORED("policy.expansion_factor"),
    IGNORED("torch.network"),
    IGNORED("torch.encoder"),
    IGNORED("torch.decoder"),

    {"train.bptt_horizon", "train.horizon"},
    {"train.update_epochs", "train.replay_ratio"},
    {"train.momentum", "train.beta1"},
    {"train.adam_beta1", "train.beta1"},
    {"train.adam_beta2", "train.beta2"},
    {"train.adam_eps", "train.eps"},
    {"train.vtrace_rho_clip", "train.rho_clip"},
    {"train.vtrace_c_clip", "train.c_clip"},
    IGNORED("train.name"),
    IGNORED("train.project"),
    IGNORED("train.batch_size"),
    IGNORED("train.max_minibatch_size"),
    IGNORED("train.num_minibatches"),
    IGNORED("train.gpus"),
    IGNORED("train.compile"),
    IGNORED("train.compile_mode"),
    IGNORED("train.compile_fullgraph"),
    IGNORED("train.cpu_offload"),
    IGNORED("train.torch_deterministic"),
    IGNORED("train.use_rnn"),
    IGNORED("train.data_dir"),
    IGNORED("train.checkpoint_interval"),
    IGNORED("train.norm_reward"),
    IGNORED("train.anneal_ent_coef"),
    IGNORED("train.min_ent_coef_ratio"),
    IGNORED("train.amp"),

    {"sweep.max_suggestion_cost", "sweep.max_cost"},
    {"sweep.max_runs", "sweep.trials"},
    IGNORED("sweep.metric_distribution"),
    IGNORED("sweep.gpus"),
    IGNORED("sweep.downsample"),
    IGNORED("sweep.use_gpu"),
    IGNORED("sweep.prune_pareto"),
    IGNORED("sweep.early_stop_quantile"),
    IGNORED("sweep.match_enemy_model_path"),
    IGNORED("sweep.match_num_games"),
    IGNORED("sweep.match_enemy_hidden_size"),
    IGNORED("sweep.match_enemy_num_layers"),

    IGNORED("selfplay.enabled"),
    IGNORED("selfplay.max_size"),
    IGNORED("selfplay.swap_winrate"),
    IGNORED("selfplay.min_games"),
    IGNORED("selfplay.elo_init"),
    IGNORED("selfplay.elo_k"),
    IGNORED("selfplay.seed"),
    IGNORED("selfplay.snapshot_interval"),
    IGNORED("selfplay.opp_timeout_steps"),
};
const size_t dialect_n_aliases = sizeof dialect_aliases / sizeof dialect_aliases[0];

static const struct {
    const char *key, *from, *to;
} values[] = {
    {"sweep.method", "protein", "pareto"},
    {"sweep.method", "carbs", "pareto"},
    {"sweep.metric", "environment/score", "score"},
    {"sweep.metric", "environment/perf", "perf"},
    {"sweep.metric", "env/score", "score"},
    {"sweep.metric", "env/perf", "perf"},
    {"train.precision", "float32", "f32"},
    {"train.precision", "bfloat16", "bf16"},
};
#define N_VALUES (sizeof values / sizeof values[0])

const char *const dialect_value_keys[] = {"sweep.method", "sweep.metric", "train.precision"};
const size_t dialect_n_value_keys = sizeof dialect_value_keys / sizeof dialect_value_keys[0];

const char *dialect_value(const char *key, const char *value)
{
    for (size_t i = 0; i < N_VALUES; i++)
        if (strcmp(values[i].key, key) == 0 && strcasecmp(values[i].from, value) == 0)
            return values[i].to;
    return NULL;
}
