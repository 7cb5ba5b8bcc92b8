/* settings.c - the option tables [policy] and [train]: every field of their settings structs, once.
 * Defaults suit a CPU and small games; ranges for sweeps are those in common use (docs/ppo.md),
 * of sizes those around the config's own. */
#include "trainer/trainer.h"

#define PROW_INT(...) OPT_ROW_INT(struct policy_settings, __VA_ARGS__)
#define PROW_FLOAT(...) OPT_ROW_FLOAT(struct policy_settings, __VA_ARGS__)
#define PROW_BOOL(...) OPT_ROW_BOOL(struct policy_settings, __VA_ARGS__)
#define PROW_ENUM(...) OPT_ROW_ENUM(struct policy_settings, __VA_ARGS__)
#define ROW_BOOL(...) OPT_ROW_BOOL(struct train_settings, __VA_ARGS__)
#define ROW_INT(...) OPT_ROW_INT(struct train_settings, __VA_ARGS__)
#define ROW_FLOAT(...) OPT_ROW_FLOAT(struct train_settings, __VA_ARGS__)
#define ROW_STR(...) OPT_ROW_STR(struct train_settings, __VA_ARGS__)
#define ROW_ENUM(...) OPT_ROW_ENUM(struct train_settings, __VA_ARGS__)

static const struct opt_def policy_defs[] = {
    PROW_INT(hidden_size, "64", 1, 65536, OPT_POW2, 0, 0, "units",
             "Sets the width of the encoder and of every core layer.", .sweep_factor = 4),
    PROW_INT(num_layers, "1", 0, 16, OPT_LINEAR, 1, 8, "layers",
             "Sets the number of core layers; 0 is the same as core none.", .depends = "policy.core = mlp|mingru|lstm"),
    PROW_ENUM(core, "mlp", "none|mlp|mingru|lstm", OPT_CATEGORICAL,
              "Chooses the layers between encoder and heads; mingru and lstm have memory.",
              .depends = "policy.num_layers > 0"),
    PROW_ENUM(activation, "relu", "none|relu|tanh", OPT_CATEGORICAL,
              "Chooses the activation of mlp layers and convolutions.",
              .depends = "policy.core = none|mlp or policy.encoder = conv"),
    PROW_ENUM(
        encoder_activation, "auto", "auto|none|relu|tanh", OPT_CATEGORICAL,
        "Chooses the activation of the encoder's last layer; auto: none before mingru and lstm, else activation."),
    PROW_ENUM(encoder, "linear", "linear|conv", OPT_CATEGORICAL,
              "Chooses what reads the observation; conv is for games that show a grid."),
    PROW_INT(conv_layers, "2", 1, 6, OPT_LINEAR, 1, 3, "layers", "Sets the number of 3x3 convolutions of encoder conv.",
             .depends = "policy.encoder = conv"),
    PROW_INT(conv_channels, "32", 8, 128, OPT_POW2, 8, 64, "channels",
             "Sets the filters of each convolution, a multiple of 8.", .depends = "policy.encoder = conv"),
    PROW_INT(conv_stride, "1", 1, 3, OPT_FIXED, 0, 0, "cells",
             "Moves each convolution this far; 2 halves the grid, for pixels.", .depends = "policy.encoder = conv"),
    PROW_ENUM(action_std, "fixed", "fixed|state", OPT_FIXED,
              "Chooses the standard deviation of actions that are numbers: learned, the same in every state, or an "
              "output of the network."),
    PROW_FLOAT(action_std_init, "1", 1e-3, 10, OPT_FIXED, 0, 0, "",
               "Sets that standard deviation at the start, in half widths of the action's range."),
    PROW_ENUM(action_bounds, "clip", "clip|tanh", OPT_FIXED,
              "Keeps actions that are numbers in their range: clipped, or squashed by tanh."),
    PROW_ENUM(value_net, "shared", "shared|separate", OPT_FIXED,
              "Estimates the value by the policy's own layers, or by a second network of hidden_size units that shares "
              "convolutions alone; usual where actions are numbers."),
    PROW_INT(
        value_bins, "0", 0, KERN_MAX_BINS, OPT_FIXED, 0, 0, "bins",
        "Estimates the value as a distribution over this many bins, trained by cross entropy; 0: as a number. 51 is "
        "usual."),
    PROW_INT(value_max, "1000", 1, 1e12, OPT_FIXED, 0, 0, "",
             "Sets the largest return that the bins hold, and minus it the least; they are denser around 0 (symlog).",
             .depends = "policy.value_bins > 0"),
    PROW_BOOL(norm_obs, "false",
              "Normalises each number of an observation by its running mean and deviation, kept with the policy."),
};

const struct opt_table policy_opt_table = {
    .section = "policy",
    .title = "Policy",
    .defs = policy_defs,
    .n_defs = COUNT(policy_defs),
    .settings_size = sizeof(struct policy_settings),
};

static const struct opt_def frames_defs[] = {
    OPT_ROW_INT(struct frames_settings, frame_stack, "1", 1, TRAIN_FRAMES_MAX, OPT_FIXED, 0, 0, "frames",
                "Shows the policy this many of the last observations as one, of a grid as further channels."),
};

const struct opt_table frames_opt_table = {
    .section = "env",
    .title = "Observations",
    .defs = frames_defs,
    .n_defs = COUNT(frames_defs),
    .settings_size = sizeof(struct frames_settings),
};

static const struct opt_def train_defs[] = {
    ROW_INT(total_timesteps, "1M", 1, 1e13, OPT_LOG, 0, 0, "steps",
            "Ends training after this many env steps (agent decisions).", .sweep_factor = 8),
    ROW_FLOAT(max_seconds, "0", 0, 1e9, OPT_FIXED, 0, 0, "s", "Ends training by the clock; 0 is off."),
    ROW_INT(seed, "1", 0, 9007199254740992.0, OPT_FIXED, 0, 0, "", "Starts every random stream of the run."),
    ROW_STR(from_policy, "",
            "Starts from the weights of this checkpoint's policy; agents, optimiser, device, seed and all else are the "
            "config's own. A relative path is that of the config file's folder."),
    ROW_INT(total_agents, "128", 1, 16777216, OPT_POW2, 0, 0, "agents", "Plays this many agents side by side.",
            .sweep_factor = 8),
    ROW_INT(horizon, "32", 1, 65536, OPT_POW2, 0, 0, "steps", "Collects this many steps of each agent before updating.",
            .sweep_factor = 8),
    ROW_INT(minibatch_size, "1024", 1, 1e9, OPT_POW2, 0, 0, "steps",
            "Samples in one update, with train.shuffle segments a multiple of horizon.", .sweep_factor = 8),
    ROW_ENUM(shuffle, "segments", "segments|steps", OPT_FIXED,
             "Makes minibatches of whole segments, horizon steps of one agent each, or of single steps of any agent: "
             "better for small minibatches of policies without memory, as in MuJoCo's tasks."),
    ROW_FLOAT(replay_ratio, "2", 0, 1000, OPT_LINEAR, 0.25, 4, "",
              "Trains on each collected sample this many times on average."),
    ROW_ENUM(replay_rounding, "carry", "carry|floor", OPT_FIXED,
             "Rounds the number of a rollout's minibatches: carry keeps the remainder for the next rollout, floor "
             "drops it (as PufferLib does)."),
    ROW_FLOAT(learning_rate, "0.015", 0, 100, OPT_LOG, 1e-5, 0.1, "1/update",
              "Sets the optimiser's step size at the start."),
    ROW_FLOAT(min_lr_ratio, "0", 0, 1, OPT_FIXED, 0, 0, "",
              "Anneals the step size down to this share of learning_rate.", .depends = "train.anneal_lr = true"),
    ROW_BOOL(anneal_lr, "true", "Anneals the step size by a cosine over total_timesteps.",
             .depends = "train.decay_steps = 0"),
    ROW_FLOAT(decay_share, "1", 0, 1, OPT_LINEAR, 0.1, 1, "",
              "Holds what is annealed until this last share of the run; 1 anneals over all of it, 0 never.",
              .depends = "train.anneal_lr = true"),
    ROW_FLOAT(decay_steps, "0", 0, 1e13, OPT_FIXED, 0, 0, "steps",
              "Divides the step size by (1 + env_steps / this) squared and anneals nothing: such a run contains every "
              "shorter one (sweep.branches). About half of the shortest run of interest, with a learning_rate 2 to 4 "
              "times as high, is a start; 0 anneals."),
    ROW_ENUM(optimizer, "muon", "adam|muon", OPT_CATEGORICAL,
             "Chooses the optimiser; muon suits step sizes about 10 times adam's."),
    ROW_FLOAT(beta1, "0.9", 0, 0.999999, OPT_LOGIT, 0.5, 0.999, "",
              "Sets adam's first-moment decay and muon's momentum."),
    ROW_FLOAT(beta2, "0.999", 0, 0.99999999, OPT_LOGIT, 0.9, 0.99999, "", "Sets adam's second-moment decay.",
              .depends = "train.optimizer = adam"),
    ROW_FLOAT(eps, "1e-8", 1e-20, 1, OPT_LOG, 1e-14, 1e-4, "", "Keeps adam from dividing by zero.",
              .depends = "train.optimizer = adam"),
    ROW_FLOAT(weight_decay, "0", 0, 10, OPT_FIXED, 0, 0, "1/update",
              "Shrinks weights by learning_rate times this at each update."),
    ROW_FLOAT(max_grad_norm, "1", 0, 1e9, OPT_LINEAR, 0.1, 5, "",
              "Scales larger gradients down to this global norm; 0 is off."),
    ROW_FLOAT(gamma, "0.99", 0, 1, OPT_LOGIT, 0.8, 0.9999, "1/step", "Discounts the reward of later steps."),
    ROW_FLOAT(gae_lambda, "0.95", 0, 1, OPT_LOGIT, 0.2, 0.995, "1/step",
              "Weighs long against short returns in the advantage."),
    ROW_BOOL(vtrace, "true",
             "Corrects the advantages of segments that are used again by the ratios of their last use."),
    ROW_FLOAT(rho_clip, "1", 0, 1e6, OPT_LINEAR, 0.1, 5, "",
              "Limits the ratio that scales each temporal difference (vtrace).", .depends = "train.vtrace = true"),
    ROW_FLOAT(c_clip, "1", 0, 1e6, OPT_LINEAR, 0.1, 5, "",
              "Limits the ratio that carries advantages backwards (vtrace).", .depends = "train.vtrace = true"),
    ROW_FLOAT(clip_coef, "0.2", 0, 1e6, OPT_LINEAR, 0.01, 1, "",
              "Limits how far one update may move the probability ratio from 1."),
    ROW_FLOAT(vf_coef, "1", 0, 1e6, OPT_LINEAR, 0.1, 5, "", "Weighs the value loss."),
    ROW_FLOAT(vf_clip_coef, "0", 0, 1e9, OPT_LINEAR, 0.01, 5, "",
              "Limits how far one update may move the value; 0 is off. A value of bins has no such limit.",
              .depends = "policy.value_bins = 0"),
    ROW_FLOAT(ent_coef, "0.01", 0, 1e6, OPT_LOG, 1e-5, 0.2, "", "Rewards the entropy of the policy."),
    ROW_FLOAT(target_kl, "0", 0, 1e6, OPT_FIXED, 0, 0, "nat",
              "Ends the updates of a rollout when the policy moved further; 0 is off."),
    ROW_BOOL(norm_adv, "true", "Normalises advantages over each minibatch."),
    ROW_BOOL(scale_reward, "false", "Divides rewards by the running deviation of their discounted sums."),
    ROW_FLOAT(reward_clip, "0", 0, 1e9, OPT_FIXED, 0, 0, "",
              "Clamps rewards to plus or minus this before training; 0 is off."),
    ROW_FLOAT(e3b_coef, "0", 0, 1e6, OPT_FIXED, 0, 0, "",
              "Rewards observations that are new in their episode (E3B) with up to this; 0 is off. For games whose "
              "rewards are rare."),
    ROW_FLOAT(e3b_scale, "1", 1e-6, 1e6, OPT_FIXED, 0, 0, "",
              "Sets how far apart observations are that count as different, in their own unit (with policy.norm_obs in "
              "deviations).",
              .depends = "train.e3b_coef > 0"),
    ROW_FLOAT(prio_alpha, "0", 0, 1, OPT_LINEAR, 0, 1, "", "Prefers segments of large advantage; 0 shuffles them."),
    ROW_FLOAT(prio_beta0, "0.4", 0, 1, OPT_LINEAR, 0, 1, "",
              "Corrects for the preference by this exponent at the start.", .depends = "train.prio_alpha > 0"),
    ROW_ENUM(device, "auto", "auto|cpu|cuda", OPT_FIXED,
             "Chooses the device; auto: a GPU where there is one, else the CPU. Of several GPUs cuda is the first that "
             "CUDA_VISIBLE_DEVICES leaves; a sweep is given others by --devices cuda:N.",
             .also = "gpu=cuda|cuda:0=cuda"),
    ROW_INT(devices, "1", 1, KERN_RANKS_MAX, OPT_POW2, 1, 8, "devices",
            "Trains on this many devices together, of this machine or of several hosts (docs/cuda.md), each with its "
            "share of the agents and of every minibatch, with the result of one device. On a CPU they share its "
            "threads."),
    ROW_FLOAT(rank_timeout_s, "20", 0.1, 1e6, OPT_FIXED, 0, 0, "s",
              "Gives up on a device for which the others have waited for this long.", .depends = "train.devices > 1"),
    ROW_INT(threads, "0", 0, 1024, OPT_FIXED, 0, 0, "threads", "Uses this many CPU threads; 0 is one per core."),
    ROW_STR(vector_units, "",
            "Names the vector units with which the CPU run of an exported trial was made; another machine then reports "
            "that it cannot give the same bytes."),
    ROW_ENUM(precision, "auto", "auto|f32|bf16", OPT_FIXED,
             "Chooses the number format of weights and activations; auto: bf16 on a GPU, f32 on a CPU.",
             .also = "float32=f32|fp32=f32|bfloat16=bf16"),
    ROW_BOOL(population, "false",
             "Trains on one multiprocessor of a GPU, so that up to 128 trials train side by side "
             "(sweep.runs_per_device); for small rollouts and networks of up to 128 units without memory, which are "
             "too small for the whole device; others train as without it.",
             .depends = "train.device = auto|cuda"),
    ROW_BOOL(graphs, "true", "Replays recorded operations on a GPU; false launches them one by one, for comparison.",
             .depends = "train.device = auto|cuda"),
    ROW_FLOAT(device_timeout_s, "120", 0, 1e6, OPT_FIXED, 0, 0, "s",
              "Gives up on a GPU that finishes nothing for this long.", .depends = "train.device = auto|cuda"),
    ROW_INT(eval_episodes, "256", 1, 1e7, OPT_FIXED, 0, 0, "episodes",
            "Ends a run with an evaluation of this many whole episodes: the score. Its time is not part of the cost."),
    ROW_INT(eval_max_steps, "20000", 1, 1e12, OPT_FIXED, 0, 0, "steps",
            "Ends the evaluation after this many decisions of each agent, rounded up to a multiple of 32; an "
            "unfinished episode then counts as it is, and the result reports it."),
    ROW_FLOAT(log_interval_s, "1", 0, 1e6, OPT_FIXED, 0, 0, "s",
              "Reports metrics this often, and at least about 24 times a run; 0 reports after every rollout."),
    ROW_FLOAT(checkpoint_interval_s, "0", 0, 1e9, OPT_FIXED, 0, 0, "s",
              "Writes a checkpoint this often; 0 writes one at the end."),
};

const struct opt_table train_opt_table = {
    .section = "train",
    .title = "Training",
    .defs = train_defs,
    .n_defs = COUNT(train_defs),
    .settings_size = sizeof(struct train_settings),
};
