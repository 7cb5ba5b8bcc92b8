/* trainer.h - PPO training of one policy on one env (public face of trainer/). Formulas: docs/ppo.md.
 * The trainer knows nothing of trials, stores or networks: it reports by callback and returns a result. */
#pragma once

#include "base/base.h"
#include "base/config/opt.h"
#include "envs/envs.h"
#include "kernels/kernels.h"

/* [policy] encoder (linear, or convolutions and linear) -> num_layers core layers -> fused heads (logits and value). */
struct policy_settings {
    int64_t hidden_size;
    int64_t num_layers; /* core layers */
    int core; /* enum policy_core */
    int activation; /* of mlp layers and convolutions, enum kern_act */
    int encoder_activation; /* of the encoder's last layer, enum policy_activation */
    int encoder; /* enum policy_encoder */
    int64_t conv_layers, conv_channels, conv_stride; /* of encoder conv */
    int action_std, action_bounds; /* of actions that are numbers: enum policy_std, enum policy_bounds */
    double action_std_init; /* in half widths of the action's range */
    bool norm_obs;
    int value_net; /* enum policy_value_net */
    int64_t value_bins, value_max; /* 0: the value is a number; else a distribution over bins from -value_max to it */
    int64_t frame_stack; /* of frames_opt_table; 0: 1 */
};
enum policy_core { POLICY_CORE_NONE, POLICY_CORE_MLP, POLICY_CORE_MINGRU, POLICY_CORE_LSTM };
/* AUTO: by the core (policy_init). */
enum policy_activation {
    POLICY_ACTIVATION_AUTO,
    POLICY_ACTIVATION_NONE,
    POLICY_ACTIVATION_RELU,
    POLICY_ACTIVATION_TANH
};
enum policy_encoder { POLICY_ENCODER_LINEAR, POLICY_ENCODER_CONV };
enum policy_value_net { POLICY_VALUE_SHARED, POLICY_VALUE_SEPARATE };
enum policy_std { POLICY_STD_FIXED, POLICY_STD_STATE };
enum policy_bounds { POLICY_BOUNDS_CLIP, POLICY_BOUNDS_TANH };
extern const struct opt_table policy_opt_table;
#define TRAIN_FRAMES_MAX 64
/* [env] frame_stack, the trainer's as it is the same for every game: policy_settings has it once the config is read. */
struct frames_settings {
    int64_t frame_stack;
};
extern const struct opt_table frames_opt_table;

/* [train] */
struct train_settings {
    int64_t total_timesteps; /* env steps (agent decisions) */
    double max_seconds; /* stop by the clock; 0: off */
    int64_t seed;
    int64_t total_agents, horizon, minibatch_size; /* minibatch_size in tokens, a multiple of horizon unless
                                                       steps are shuffled */
    int shuffle; /* enum train_shuffle */
    double replay_ratio; /* samples trained per sample collected */
    int replay_rounding; /* enum train_rounding */
    double learning_rate, min_lr_ratio;
    bool anneal_lr;
    double decay_share; /* of the run, at its end: over this everything anneals */
    double decay_steps; /* of a schedule without an end, instead of annealing; 0: off */
    int optimizer; /* enum train_optimizer */
    double beta1, beta2, eps, weight_decay, max_grad_norm;
    double gamma, gae_lambda;
    bool vtrace;
    double rho_clip, c_clip;
    double clip_coef, vf_coef, vf_clip_coef, ent_coef, target_kl;
    bool norm_adv, scale_reward;
    double reward_clip;
    double e3b_coef, e3b_scale; /* bonus for what is new in an episode; 0: none */
    double prio_alpha, prio_beta0; /* alpha 0: segments are shuffled, each once per epoch */
    int device; /* enum kern_kind: auto|cpu|cuda */
    int64_t devices; /* that share the agents and each minibatch; 0: as 1 */
    double rank_timeout_s; /* a device that the others have waited for for this long is taken for hung */
    int64_t threads; /* CPU threads, 0: one per core */
    char from_policy[OPT_STR_MAX]; /* a checkpoint whose weights training begins with; absolute; "": none */
    char vector_units[OPT_STR_MAX]; /* that a CPU run was made with; "": unknown. For messages, changes nothing */
    int precision; /* enum train_precision; the CPU has f32 only */
    bool population; /* one block of a GPU trains it, where its shape allows that */
    bool graphs; /* a GPU replays recorded operations; false: they are launched one by one */
    double device_timeout_s; /* a GPU that finishes nothing for this long is taken for hung */
    int64_t eval_episodes, eval_max_steps; /* of the evaluation that a run ends with (eval_settings_of) */
    double log_interval_s; /* how often on_metrics is called; a point is always made at the end */
    double checkpoint_interval_s; /* 0: only at the end */
};
enum train_optimizer { TRAIN_ADAM, TRAIN_MUON };
enum train_shuffle { TRAIN_SHUFFLE_SEGMENTS, TRAIN_SHUFFLE_STEPS };
enum train_rounding { TRAIN_ROUNDING_CARRY, TRAIN_ROUNDING_FLOOR };
enum train_precision { TRAIN_PRECISION_AUTO, TRAIN_F32, TRAIN_BF16 };
extern const struct opt_table train_opt_table;

/* Phases of the profile, in the order of the table in docs/metrics.md. */
enum train_phase {
    PHASE_ENV,
    PHASE_FORWARD,
    PHASE_COPY,
    PHASE_ADVANTAGE,
    PHASE_LOSS,
    PHASE_OPTIMISER,
    PHASE_OTHER,
    PHASE_COUNT
};
const char *train_phase_name(enum train_phase phase); /* "env", "forward", ... */

/* Every logged number; names, units and meaning in docs/metrics.md. Non-finite where unknown (no episode ended). */
struct train_metrics {
    int64_t env_steps, updates; /* updates: minibatches so far */
    double wall_s; /* of training so far, over resumes; counted as cost_s of struct train_result */
    double steps_per_s; /* since the last report */
    double episodes; /* ended since the last report */
    double score, perf, ep_return, ep_length; /* means over them; NaN when none ended */
    double window_score, window_perf, window_ep_return, window_ep_length; /* as in struct train_result */
    double policy_loss, value_loss, entropy, approx_kl, clip_fraction, explained_variance, grad_norm;
    double lr;
    int64_t memory; /* bytes, as planned */
    double phase_s[PHASE_COUNT]; /* seconds in each phase since training began */
    double outside; /* share of the time in which processes of the game's own stepped it; NaN: it has none */
    /* Numbers of the game's own (struct env_def), means over the episodes since the last report; NaN when none
     * ended. */
    const struct env_def *env; /* borrowed: their names */
    double numbers[ENV_MAX_NUMBERS];
};

/* One row per metric: drives the store, JSON, trackers and docs/metrics.md, so that names are the same everywhere. */
struct train_metric_def {
    const char *name; /* "score", "train/policy_loss", "profile/env" */
    size_t offset; /* of a double or int64_t in struct train_metrics */
    bool is_int;
    bool by_clock; /* differs from run to run of the same bytes: nothing to search by */
    const char *unit, *help;
};
extern const struct train_metric_def train_metric_defs[];
extern const size_t train_n_metric_defs;
double train_metric_value(const struct train_metrics *metrics, size_t i);
/* Those of the table, and after them the numbers of the game's own: how many, and by index. */
size_t train_metrics_count(const struct env_def *env);
const char *train_metrics_name(const struct env_def *env, size_t i);
double train_metrics_value(const struct train_metrics *metrics, size_t i);

/* What a finished (or stopped) run did: means over the last tenth of its steps (at least the last rollout; widened
 * until it holds an episode and an update), so they depend on the run alone and not on when reports were made. NaN when
 * no episode ended at all. They lag the policy, and short episodes are counted more often: trainer_eval measures what
 * the policy is worth. */
struct train_result {
    struct train_metrics window; /* means over that window; what counts from the beginning, as it is at the end */
    int64_t env_steps;
    double cost_s; /* seconds of training on a device that the run has for itself, over resumes */
    bool cost_calibrated; /* cost_s is the time of an iteration alone times iterations; false: time that passed */
    /* In cost_s, of this process: handing over the first iteration (a GPU loads kernels and chooses products), and
     * recording. */
    double first_s, recording_s;
    int64_t n_params;
    bool stopped; /* a callback asked to end early */
};

/* How runs that share a device come by a time alone on it, which their cost is measured in. A run enters it to be alone
 * (the first iterations, and a few now and then), else shared with others; whenever it leaves, nothing of it is on the
 * device. Time in enter is not counted. Called on the training thread. */
struct train_gate {
    void *ctx;
    void (*enter)(void *ctx, bool alone);
    void (*leave)(void *ctx);
    bool (*wanted)(
        void *ctx); /* asked before each iteration, cheap: does another trial wait to be alone? Then the run leaves */
    struct train_pace *pace; /* what runs have measured for each other; NULL: each measures for itself */
    size_t n_runs; /* that share the device when all are there */
};

/* Times of an iteration alone on one device, as runs of each kind have measured them in the last minute: runs of one
 * kind have the same work in an iteration, so one of them measures for all. Any thread. */
struct train_pace;
struct train_pace *train_pace_create(void) MUST_USE;
void train_pace_destroy(struct train_pace *pace); /* NULL is fine */

struct train_callbacks {
    void *ctx;
    int64_t until; /* also ends before the iteration that would begin at this many env steps or more; 0: off */
    const struct train_gate *gate; /* NULL: the run has its device for itself */
    /* Called at every report, on the training thread; returns false to stop. */
    bool (*on_metrics)(void *ctx, const struct train_metrics *metrics);
    /* Asked between updates (cheap): true stops at once. May be NULL. */
    bool (*should_stop)(void *ctx);
};

struct trainer;

/* What trainer_create would refuse by the settings alone, before it asks a device: ST_CONFIG with the settings that do
 * not go together and what to set. Cheap, allocates nothing, any thread. */
enum status trainer_check(const struct env_def *def, const void *env_settings, const struct policy_settings *policy,
                          const struct train_settings *train, struct error *err) MUST_USE;

/* Everything is checked and the memory need is computed before anything large is allocated: ST_CONFIG or ST_NOMEM with
 * numbers and the settings to lower. env_settings: filled from def->options. kern is borrowed. Of train->devices it is
 * the first; the others, CUDA devices with the numbers after its own, are opened here, each used by a thread of its own
 * (team/team.c). After a failure that leaves one of those hanging, kern_is_lost(kern) holds. */
enum status trainer_create(struct trainer **ret_trainer, struct kern *kern, const struct env_def *def,
                           const void *env_settings, const struct policy_settings *policy,
                           const struct train_settings *train, struct error *err) MUST_USE;
void trainer_destroy(struct trainer *trainer);

/* ---- several hosts ----
 * Processes that train one policy, each with some of train->devices: the first listens, has the trainer and all
 * results, and calls; the others join it and follow. Whoever knows the secret in `where` can take part, and the
 * connections are not encrypted, as NCCL's are not. One thread. */
struct train_hosts;
/* n processes; listen_at: an address of this machine, with a port or a free one (borrowed), NULL: all addresses, under
 * the machine's name. program: the build, which has to be the same on all. */
enum status train_hosts_listen(struct train_hosts **ret_hosts, size_t n, const char *listen_at, const char *program,
                               struct error *err) MUST_USE;
const char *train_hosts_where(const struct train_hosts *hosts); /* "HOST:PORT/SECRET", for train_hosts_join */
size_t train_hosts_missing(const struct train_hosts *hosts);
/* Takes those that come, until all are there, wait_s has passed or there is news for people: a host has come or left,
 * and how many are here. ret_news: (TRAIN_NEWS_MAX), "" where there is none. */
#define TRAIN_NEWS_MAX 640
enum status train_hosts_wait(struct train_hosts *hosts, double wait_s, char *ret_news, struct error *err) MUST_USE;
/* How many of n_ranks the first host has on a CPU. */
size_t train_hosts_share(const struct train_hosts *hosts, size_t n_ranks);
/* Are the others needed for n_ranks, beside kern and the GPUs after it? On CPUs: as soon as each can have one. */
bool train_hosts_wanted(const struct train_hosts *hosts, size_t n_ranks, const struct kern *kern);
bool train_hosts_broken(const struct train_hosts *hosts); /* of no use any more; NULL is fine: false */
/* Of use, and not complete: after a failed trainer_create_on one of them could not take part. NULL: false. */
bool train_hosts_short(const struct train_hosts *hosts);
bool train_hosts_lost(const struct train_hosts *hosts); /* broken, since one is gone or silent */
/* The name of a host that asks for the end of the training, since it has to leave; NULL: none, also without hosts. */
const char *train_hosts_leaving(const struct train_hosts *hosts);
void train_hosts_close(struct train_hosts *hosts); /* NULL is fine */
/* trainer_create by the first of them, when all are there; config: the run's, for the others. hosts is borrowed. A host
 * that cannot take part is let go, which err names: then it is missing, and another may come. After any other failure
 * on any of them hosts is of no use any more. */
enum status trainer_create_on(struct trainer **ret_trainer, struct train_hosts *hosts, const char *config,
                              struct kern *kern, const struct env_def *def, const void *env_settings,
                              const struct policy_settings *policy, const struct train_settings *train,
                              struct error *err) MUST_USE;

/* The others: join, then again and again a training's part, its config, and either follow or refuse. */
struct train_part {
    enum kern_kind kind; /* of the devices, */
    size_t n_threads; /* and of each on a CPU: sums are made in the same parts on all */
    size_t first, n, n_all; /* the ranks here, and all */
};
enum status train_hosts_join(struct train_hosts **ret_hosts, const char *where, const char *program, int n_gpus,
                             double patience_s, struct error *err) MUST_USE;
/* Waits for it. *ret_config is the caller's (mem_free); NULL: there are no more. ST_IO: the first host is gone. */
enum status train_hosts_next(struct train_hosts *hosts, char **ret_config, struct train_part *ret_part,
                             struct error *err) MUST_USE;
enum status train_hosts_refuse(struct train_hosts *hosts, const struct error *why, struct error *err) MUST_USE;
bool train_hosts_called(const struct train_hosts *hosts, double wait_s); /* would train_hosts_next return at once? */
/* To the end of this training, which the first host is asked for once should_stop (may be NULL) returns true. */
enum status train_follow(struct train_hosts *hosts, struct kern *kern, const struct env_def *def,
                         const void *env_settings, const struct policy_settings *policy,
                         const struct train_settings *train, bool (*should_stop)(void), struct error *err) MUST_USE;

/* Keeps what destroyed trainers had (memory, games, recorded operations) for the next ones of the same shape: those
 * then start in milliseconds. Used by one thread; outlives its trainers, and the device outlives it. */
struct trainer_cache;
struct trainer_cache *trainer_cache_create(void) MUST_USE;
/* For a cache beside others on one device: keeps at most max_bytes of device memory. wait (may be NULL) is called when
 * a new trainer would fit the device but not what is free, and nothing is left to drop: it waits until others may have
 * given memory back and returns true; false: none will. */
void trainer_cache_share(struct trainer_cache *cache, size_t max_bytes, bool (*wait)(void *ctx), void *ctx);
void trainer_cache_clear(struct trainer_cache *cache);
void trainer_cache_destroy(struct trainer_cache *cache); /* NULL is fine */
/* As trainer_create, with the same numbers to the bit; trainer_destroy then gives back to the cache. NULL: no cache. */
enum status trainer_create_cached(struct trainer **ret_trainer, struct trainer_cache *cache, struct kern *kern,
                                  const struct env_def *def, const void *env_settings,
                                  const struct policy_settings *policy, const struct train_settings *train,
                                  struct error *err) MUST_USE;

/* Does a run of these settings hold every shorter one: the same bytes up to the steps of that one? */
bool train_holds_shorter(const struct train_settings *train);

/* Trains to the end of total_timesteps, max_seconds, `until` (a further call continues) or a stop: never more steps
 * than asked, and fewer only by less than one of each agent, for which the last rollout is shortened. ST_NUMERIC names
 * the tensor and the step. */
enum status trainer_run(struct trainer *trainer, const struct train_callbacks *callbacks,
                        struct train_result *ret_result, struct error *err) MUST_USE;
/* One rollout and its updates; for tests and benchmarks. On a GPU it may return before they have ended: metrics are
 * then those of the iterations before, until trainer_sync has waited for all. */
enum status trainer_iterate(struct trainer *trainer, struct error *err) MUST_USE;
enum status trainer_sync(struct trainer *trainer, struct error *err) MUST_USE;
void trainer_get_metrics(struct trainer *trainer, struct train_metrics *ret_metrics);
/* Env steps, over resumes, and iterations of this trainer that have ended; cheap. On the training thread. */
void trainer_get_progress(const struct trainer *trainer, int64_t *ret_env_steps, int64_t *ret_iterations);

/* Checkpoints: versioned, checksummed, written whole or not at all. text is stored with it (the resolved config, ini).
 * Within a callback of trainer_run too; its time is then not counted. */
enum status trainer_save(struct trainer *trainer, const char *path, const char *config_text,
                         struct error *err) MUST_USE;
/* The policy alone, from another thread while the training's hangs in a game; it cannot be resumed. */
enum status trainer_save_policy(struct trainer *trainer, const char *path, const char *config_text,
                                struct error *err) MUST_USE;
/* Everything: weights, optimiser, rng, schedule, env state; the trainer must be of the same shape. Bit-exact resume. */
enum status trainer_load(struct trainer *trainer, const char *path, struct error *err) MUST_USE;
/* The same for a training that begins with it: what observations were normalised by comes too, and the game may be
 * another one of the same shape. On a new trainer. */
enum status trainer_begin_from(struct trainer *trainer, const char *path, struct error *err) MUST_USE;
bool checkpoint_is_one(const char *path); /* by its first bytes; false also when it cannot be read */
/* The policy's weights alone, also into a trainer of other agents, optimiser or horizon; to evaluate it. */
enum status trainer_load_weights(struct trainer *trainer, const char *path, struct error *err) MUST_USE;
/* Writes the checkpoint `from` to another file, with another text. */
enum status checkpoint_copy(const char *from, const char *to, const char *config_text, struct error *err) MUST_USE;
/* The config text of a checkpoint, for `trawl eval CHECKPOINT`; caller: mem_free. */
enum status checkpoint_read_config(const char *path, char **ret_text, struct error *err) MUST_USE;

/* Plays at least `episodes` episodes with the policy's weights on fresh games (their streams are apart from
 * training's). Every game's first episodes count and no others, so short ones are not favoured. One that is unfinished
 * after max_steps decisions of each agent (rounded up to a multiple of 32) counts with what it has. Same weights and
 * settings, same bytes; training is left as it was. */
struct eval_progress {
    int64_t steps, max_steps; /* decisions of each agent: so far, at most */
    int64_t finished, episodes; /* episodes that have ended, and that are to */
};
struct eval_settings {
    int64_t episodes, max_steps;
    int64_t agents; /* at a time; 0: as many as episodes, at most 1024 */
    int64_t seed;
    bool greedy; /* argmax instead of sampling */
    const struct train_gate *gate; /* NULL: the device is this run's alone */
    void *ctx;
    /* Called after every few steps, on the calling thread; returns false to stop. May be NULL. */
    bool (*on_progress)(void *ctx, const struct eval_progress *progress);
};
/* What to do when episodes is 0: of games whose running episode is not known (those of Gymnasium, of PufferLib). */
#define EVAL_NO_EPISODE                                                                                                \
    "no episode ended in the evaluation; raise train.eval_max_steps, or limit the length of an episode in the game"
struct eval_result {
    double score, perf, ep_return, ep_length; /* means; NaN when it was stopped at once, or no episode ended */
    double score_se, perf_se, ep_return_se, ep_length_se; /* their standard errors, over games; NaN of a single one */
    int64_t episodes, unfinished; /* that the means are over; those of them that had not ended */
    int64_t steps, max_steps; /* decisions of each agent: made, at most */
    double eval_s; /* time that it took */
    double numbers[ENV_MAX_NUMBERS]; /* the game's own: means over the same episodes; NaN: unknown */
    bool stopped; /* a callback asked to end early: what it has is not the result */
};
/* What the evaluation at the end of a run plays; caller adds what else it wants. */
void eval_settings_of(const struct train_settings *train, struct eval_settings *ret_settings);
enum status trainer_eval(struct trainer *trainer, const struct eval_settings *settings, struct eval_result *ret_result,
                         struct error *err) MUST_USE;

/* The value of a logged metric that a run is worth: score, perf, ep_return, ep_length and the game's own numbers by its
 * evaluation (NULL or stopped: by the end of training), all others by the end of training. NaN: no such metric.
 * *ret_se: its standard error, NaN when unknown. */
double train_outcome(const struct train_result *result, const struct eval_result *eval, const char *metric,
                     double *ret_se);

/* Weights of the policy, flat (n) f32 on the host; for tests and exporters. */
size_t trainer_n_params(const struct trainer *trainer);
enum status trainer_get_params(struct trainer *trainer, float *ret_params, struct error *err) MUST_USE;

/* The policy in a form that other programs run (docs/export.md), appended to out, whose limit holds. name: what a C
 * header calls it. On the CPU's f32 trainer. */
enum policy_form { POLICY_ONNX, POLICY_SAFETENSORS, POLICY_HEADER };
struct strbuf;
enum status trainer_export(struct trainer *trainer, enum policy_form form, const char *name, struct strbuf *out,
                           struct error *err) MUST_USE;

/* One game played by a checkpoint's policy, to be watched (player.c); policy and env settings: those of its config.
 * kern: a CPU is enough; borrowed. One thread. */
struct player;
struct player_frame {
    int64_t step, episode;
    double reward, ep_return; /* mean over the game's agents */
    bool ended; /* an episode ended with this step; the state is the next one's first */
    double score, perf, ep_length; /* of the ended episode; NaN, NaN, 0 else */
};
enum status player_create(struct player **ret_player, struct kern *kern, const struct env_def *def,
                          const void *env_settings, const struct policy_settings *policy,
                          const struct train_settings *train, const char *checkpoint, int64_t seed, bool greedy,
                          struct error *err) MUST_USE;
void player_destroy(struct player *player); /* NULL is fine */
enum status player_step(struct player *player, struct player_frame *ret_frame, struct error *err) MUST_USE;
const void *player_state(const struct player *player); /* of the game, for env_draw */
struct trainer *player_trainer(struct player *player); /* borrowed, for trainer_export */
/* As player_step, and a line of JSON: what the first agent's policy was given and what it gave. */
enum status player_trace(struct player *player, struct strbuf *out, struct error *err) MUST_USE;
