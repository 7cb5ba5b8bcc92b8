/* trainer_priv.h - the parts of trainer/ as they see each other.
 *
 * Symbols as in kernels.h: N agents, T horizon, B segments of a minibatch, M = T * B tokens, D observation size,
 * H width, L core layers, S recurrent state of a layer, A logits, O = A + 1. Tensors are time-major.
 * Invariant between iterations: slot T of obs, mask and reset holds what comes before the next decision, h the
 * recurrent state before that slot's reset is applied. A rollout begins by moving slot T to slot 0. */
#pragma once

#include "trainer/trainer.h"

#define PLAN_MAX_ITEMS 192
#define TENSOR_NAME_MAX 32
#define POLICY_MAX_LAYERS KERN_MAX_LAYERS
#define POLICY_MAX_CONVS 6
#define POLICY_MAX_CHANNELS 128
#define WINDOW_MAX 512 /* buckets of the result window */

/* ---- plan.c: every device tensor is planned first, then checked against the device's memory, then allocated ---- */
struct plan_item {
    void *slot; /* address of the pointer that gets the memory */
    size_t bytes;
    const char *what;
    void *mem;
};
struct plan {
    struct plan_item items[PLAN_MAX_ITEMS];
    size_t n;
    size_t total; /* bytes; SIZE_MAX once it overflowed */
};
/* size * a * b * c bytes; slot is the address of a pointer, NULL: counted only (memory that others allocate). */
void plan_add(struct plan *plan, void *slot, const char *what, size_t size, size_t a, size_t b, size_t c);
bool plan_fits(const struct plan *plan, const struct kern *kern);
bool plan_could_fit(const struct plan *plan, const struct kern *kern); /* were all of the device free */
enum status plan_check(const struct plan *plan, const struct kern *kern, const char *lower, struct error *err) MUST_USE;
enum status plan_alloc(struct plan *plan, struct kern *kern, struct error *err) MUST_USE;
void plan_clear(const struct plan *plan, struct kern *kern); /* all zero, as after plan_alloc */
void plan_free(struct plan *plan, struct kern *kern);
void plan_format_bytes(size_t bytes, char *buf, size_t size); /* "812 GB"; for messages */

/* ---- policy.c, policy_encoder.c ---- */
struct policy {
    struct policy_settings set;
    const struct kern_ops *ops; /* of the precision it runs in */
    struct kern_heads heads;
    enum kern_act act, encoder_act; /* of mlp layers and convolutions; of the encoder's last layer */
    size_t obs_size, width, n_layers; /* D, H, L; L is 0 without a core */
    size_t n_nets; /* 2: the first H / 2 units are the policy's, the others the value's, and no weight joins them */
    /* An observation is the last n_frames frames of frame_size numbers (kern_frames), each as a game shows it: a grid
     * and a list. In memory a number has 1 byte where games show bytes, else act_size. The last n_floats of a frame are
     * f32 among bytes: a stack has those of all frames at its end (env_mixed_bytes). On a GPU all of it is act numbers
     * then. */
    size_t frame_size, n_frames, n_floats;
    size_t row_bytes, frame_bytes; /* of an observation, and of a frame */
    size_t grid_size; /* numbers of D that are the grid's; the encoder's convolutions read them alone */
    float byte_scale; /* of bytes: the first layer sees byte * byte_scale */
    size_t wide_bytes; /* of kern_source, of all the device's threads; 0: observations are act numbers as they are */
    size_t n_logits, n_out; /* A, O */
    size_t n_gates; /* G: 3 (MinGRU), 4 (LSTM), else 0 */
    size_t state_size; /* S of one layer and agent: 0, H (MinGRU) or 2H (LSTM: h, c) */
    bool recurrent; /* S > 0 and L > 0 */
    struct kern_conv convs[POLICY_MAX_CONVS];
    size_t n_convs; /* 0: the encoder is linear */
    size_t encoded_size; /* numbers that the encoder's linear layer takes: D, or those of the last convolution */
    size_t n_encoder_tensors;
    size_t conv_scratch_bytes; /* of all the device's threads */
    struct kern_tensor tensors[KERN_MAX_TENSORS];
    char names[KERN_MAX_TENSORS][TENSOR_NAME_MAX]; /* "core.0.weight" */
    size_t n_tensors, n_params;
};

/* Element i of act numbers. */
static inline void *act_at(const struct kern_ops *ops, const void *base, size_t i)
{
    return (char *)base + i * ops->act_size;
}

/* Observation i. */
static inline void *policy_obs_at(const struct policy *p, const void *base, size_t i)
{
    return (char *)base + i * p->row_bytes;
}

/* How operations find numbers in observations; a layer needs a place to widen them too. */
struct kern_source policy_obs_source(const struct policy *p);

/* The weights twice: as they are trained, and as layers of act numbers want them. */
struct policy_weights {
    const float *params; /* (n_params), for the heads */
    const void *act; /* (n_params) act; the same memory when act is f32 */
};

/* Buffers of a single step for up to n rows. */
struct policy_step {
    void *x[2]; /* (n, H) act */
    void *gates; /* (n, GH) act; recurrent only */
    float *out; /* (n, O) */
    void *conv[2]; /* (n, largest convolution) act */
    void *conv_scratch, *wide;
};

/* Activations of a training pass, kept for the way back. */
struct policy_pass {
    void *encoded; /* (M, H) act */
    void *gates[POLICY_MAX_LAYERS]; /* (M, GH) act */
    void *state[POLICY_MAX_LAYERS]; /* (M, H) act. MinGRU: h of each step; LSTM: h before each step */
    void *cell[POLICY_MAX_LAYERS]; /* (M, H) act. LSTM: c before each step */
    void *core[POLICY_MAX_LAYERS]; /* (M, H) act, layer outputs */
    float *out; /* (M, O) */
    float *dout; /* (M, O) */
    void *dx[2]; /* (shards, n_block, H) act */
    void *dgates; /* (shards, n_block, 3H) act; MinGRU only, an LSTM's gates become their gradient */
    float *dstate; /* (shards, n_block, S), used as (shards, 2, segments, H); LSTM only */
    void *conv[POLICY_MAX_CONVS]; /* (M, numbers of the convolution) act */
    void *dconv[2]; /* (shards, n_block, largest convolution) act */
    void *conv_scratch, *wide;
    size_t n_block; /* tokens */
    size_t n_shards;
};

/* The encoder's settings against what the game shows. */
enum status policy_check_encoder(const struct policy_settings *set, const char *env, const struct env_shape *shape,
                                 struct error *err) MUST_USE;
/* Of checked settings; the operations are those of kern's precision in force. */
void policy_init(struct policy *p, const struct kern *kern, const struct policy_settings *set,
                 const struct env_shape *shape);
void policy_fill_net(const struct policy *p, struct kern_net *ret_net);
/* May kern_ops->rollout play it: one linear layer reads what the game shows, as it shows it. */
bool policy_plays_at_once(const struct policy *p);
void policy_plan_step(const struct policy *p, struct policy_step *s, struct plan *plan, size_t n);
/* n_tokens are kept from forward to backward; a backward call takes up to n_block of them, one in each shard at a
 * time. */
void policy_plan_pass(const struct policy *p, struct policy_pass *s, struct plan *plan, size_t n_tokens, size_t n_block,
                      size_t n_shards);
/* The pass from its token on, with the shard's own part of what only the way back needs. */
struct policy_pass policy_pass_at(const struct policy *p, const struct policy_pass *s, size_t token, size_t shard);
/* params (n_params) on the host. */
void policy_fill_params(const struct policy *p, struct rng rng, float *params);
/* out (n, O) of s from obs (n, D). h (L, h_rows, S): rows [0, n) of each layer advance in place, zeroed first where
 * reset (n). */
void policy_forward_step(const struct policy *p, struct kern *k, struct policy_step *s, const struct policy_weights *w,
                         const void *obs, float *h, size_t h_rows, const uint8_t *reset, size_t n);
/* out (T, B, O) of s from obs (T, B, D), h0 (L, B, S), reset (T, B). An LSTM leaves the last state in h0. */
void policy_forward(const struct policy *p, struct kern *k, struct policy_pass *s, const struct policy_weights *w,
                    const void *obs, float *h0, const uint8_t *reset, size_t T, size_t B);
/* Gradients of weights that stay 0 become 0: those between two networks, those of deviations that are fixed. */
void policy_mask_gradient(const struct policy *p, struct kern *k, float *grads);
/* grads (n_params) from s->dout, which is overwritten; add: adds to grads. */
void policy_backward(const struct policy *p, struct kern *k, struct policy_pass *s, const struct policy_weights *w,
                     float *grads, const void *obs, const float *h0, const uint8_t *reset, size_t T, size_t B,
                     bool add);

double rng_normal(struct rng *rng); /* a standard normal number */

/* Parts of policy.c and policy_encoder.c for each other. */
void policy_add_tensor(struct policy *p, const char *layer, const char *kind, size_t rows, size_t cols, bool is_matrix);
const void *policy_w(const struct policy *p, const struct policy_weights *w, size_t i); /* tensor i, act */
void policy_init_encoder(struct policy *p, const struct kern *kern, const struct env_shape *shape);
void policy_plan_encoder_step(const struct policy *p, struct policy_step *s, struct plan *plan, size_t n);
void policy_plan_encoder_pass(const struct policy *p, struct policy_pass *s, struct plan *plan, size_t n_tokens,
                              size_t n_block, size_t n_shards);
void policy_encoder_at(const struct policy *p, struct policy_pass *at, size_t token, size_t shard);
/* s->x[0] (n, H); s->encoded (M, H); and back from dy (M, H), which is overwritten. */
void policy_encode_step(const struct policy *p, struct kern *k, struct policy_step *s, const struct policy_weights *w,
                        const void *obs, size_t n);
void policy_encode(const struct policy *p, struct kern *k, struct policy_pass *s, const struct policy_weights *w,
                   const void *obs, size_t M);
void policy_encode_backward(const struct policy *p, struct kern *k, struct policy_pass *s,
                            const struct policy_weights *w, float *grads, void *dy, const void *obs, size_t M,
                            bool add);

struct trainer;

/* ---- rollout buffers and minibatch buffers, device memory ---- */
struct rollout {
    void *obs; /* (T + 1, N), policy.row_bytes each, like all observations here */
    void *frame, *final_frame; /* (N) of frame_bytes, of a step where an observation is several frames; else NULL */
    uint8_t *mask; /* (T + 1, N, A); NULL without masks */
    uint8_t *reset; /* (T + 1, N): the step begins a new episode */
    int32_t *actions; /* (T, N, n_heads) */
    float *reals; /* (N, n_heads) of the step; NULL when every action is a choice */
    float *logp; /* (T, N) */
    float *values; /* (T + 1, N) */
    float *boot; /* (T, N) value of the last observation, where truncs */
    float *rewards; /* (T, N) clipped */
    uint8_t *terms, *truncs; /* (T, N) */
    float *adv, *ret; /* (T, N) */
    float *log_ratio; /* (T, N) of the last use of each, 0 before; vtrace only */
    float *prob; /* (trainer_segments) */
    float *h, *h0; /* (L, N, S) now, and at the rollout's start */
    float *h_tmp; /* (L, N, S) packed or copied states for bootstraps */
    void *final_obs, *pack_obs; /* (N) observations */
    float *tmp_value, *tmp_logp; /* (N) */
    int32_t *tmp_actions; /* (N, n_heads) */
    uint8_t *no_reset; /* (N) zeros */
    int64_t *n_packed;
};

/* ---- normalise.c: device memory; each half NULL where its option is off ---- */
struct normaliser {
    size_t n_numbers; /* of a frame that are normalised: the last ones */
    double *obs_sums; /* (n_numbers, 3) */
    float *obs_scale; /* (n_numbers, 2) of this rollout */
    double *reward_sums; /* (3) */
    float *reward_scale; /* (2) of the last rollout */
    float *carry; /* (N) discounted sums of rewards, of episodes that are running */
    float *discounted; /* (T, N) */
    /* Of several ranks: what each has added since the sums were last joined, (ranks, n_numbers, 3) and (ranks, 3). */
    double *obs_parts, *reward_parts;
};
/* Each does nothing where its option is off. */
void normalise_plan(struct trainer *t);
void normalise_join(struct trainer *t); /* of several ranks: what each has added becomes part of the sums of all */
void normalise_freeze(struct trainer *t); /* the sums so far, as they were joined last, become the scale */
void normalise_forget(struct trainer *t); /* of several ranks: what was added and not joined */
void normalise_add(struct trainer *t, void *obs, size_t n); /* n frames, as the games gave them */
void normalise_apply(struct trainer *t, void *obs, size_t n); /* in place */
void normalise_rewards(struct trainer *t); /* of the rollout that was played */

/* ---- novelty.c: nothing is done without train.e3b_coef ---- */
struct novelty { /* as of struct kern_novelty */
    float *projection; /* (D + 1, features) */
    float *known; /* (N, features, features) */
};
void novelty_plan(struct trainer *t);
enum status novelty_start(struct trainer *t, struct error *err) MUST_USE;
void novelty_add(struct trainer *t); /* to the rewards of the rollout that was played */

/* ---- rollout.c: observations of several frames. Nothing is done where they are of one ---- */
/* n observations dst follow from old ones and as many frames, as struct kern_frames has it: pixels of a stack lie
 * together as channels, so that convolutions take them. old NULL: an episode's first observation, which repeats its
 * frame. */
size_t frames_place(const struct trainer *t, size_t j, size_t f); /* of an observation: number j of frame f */
void frames_stack(struct trainer *t, void *dst, const void *old, const void *frame, const uint8_t *reset,
                  const uint8_t *only, size_t n);

/* Segments [from, from + n) of a minibatch, taken through the network at once by one shard, whose segments end at
 * `end`. */
struct block {
    size_t from, n, end;
};
struct block update_block_first(const struct trainer *t, size_t shard); /* n is 0 when the shard has none */
struct block update_block_next(const struct trainer *t, struct block b); /* n is 0 after the last */

/* A minibatch is kept in blocks, each time-major: a block begins at token from * T (h0: from * L). See update.c. */
struct minibatch {
    int32_t *perm; /* (trainer_segments) */
    int32_t *idx; /* (B), prioritised */
    float *weight; /* (B), prioritised */
    void *obs; /* policy.row_bytes each */
    float *h0, *logp, *values, *adv, *ret, *mean_std;
    float *mean_std_parts; /* (ranks, 2); NULL with one */
    uint8_t *mask, *reset;
    int32_t *actions;
};

/* Numbers that a checkpoint keeps as they are. */
struct trainer_counters {
    int64_t env_steps, updates;
    double wall_s;
    double minibatch_carry; /* in (-1/2, 1/2]: minibatches owed by replay_ratio */
    double phase_s[PHASE_COUNT];
    /* since the last report */
    int64_t report_env_steps, report_updates;
    double report_wall_s;
    struct env_log log;
    struct kern_stats stats;
};

/* ---- metrics.c: the result window, sums of logs and statistics over runs of iterations ---- */
struct window_bucket {
    int64_t env_steps, updates; /* at its end */
    struct env_log log;
    struct kern_stats stats;
};
struct window_sum {
    struct env_log log;
    struct kern_stats stats;
    int64_t updates; /* optimiser steps that stats are of */
};
struct window {
    int64_t n, per_bucket, in_last; /* iterations a bucket holds; those in the last one */
    struct window_bucket buckets[WINDOW_MAX];
};

/* Perf that a game gives outside of [0, 1] counts, on average over a log, as the nearer end; a warning names the
 * first. */
void log_bound_perf(struct trainer *t, struct env_log *log);
void window_add(struct window *w, int64_t env_steps, int64_t updates, const struct env_log *log,
                const struct kern_stats *stats);
void window_sum(const struct window *w, int64_t env_steps, struct window_sum *ret_sum);
void stats_add(struct kern_stats *sum, const struct kern_stats *stats);

/* ---- iterate.c: what is issued and what is recorded ---- */
#define ISSUED_MAX 2
#define RECORDINGS_MAX 16
#define MARKS_MAX 2048 /* of each piece */

/* What an iteration leaves in device memory for the host; copied as a whole. */
struct report {
    struct kern_stats stats;
    int64_t opt_step;
    struct env_log logs[]; /* (ranks) */
};
static inline size_t report_bytes(size_t n_ranks)
{
    return sizeof(struct report) + n_ranks * sizeof(struct env_log);
}

enum piece { PIECE_ROLLOUT, PIECE_UPDATE, PIECE_COUNT };

/* Points in time that a piece notes down while it runs: times [first, first + n) of trainer.mark_times. */
struct marks {
    size_t first, n;
    uint8_t phases[MARKS_MAX]; /* that ends at each; PHASE_COUNT: none */
};

/* An iteration that was handed to the device and not collected yet. */
struct issued {
    struct kern_slot *report;
    const struct marks *marks[PIECE_COUNT]; /* NULL: it has no profile */
    float lr;
    double carry; /* minibatch_carry after it was handed over */
    int64_t env_steps; /* that it plays */
};

/* A training by one block of the device (train.population, kern_ops->solo). */
struct solo {
    struct kern_slot *slot; /* of the job; NULL: this is none */
    struct kern_solo_turn turns[KERN_SOLO_MAX]; /* (n) issued; the first n_collected of them were looked at */
    size_t n, n_collected;
    bool launched; /* as one job */
};

struct recording {
    struct kern_graph *graph; /* NULL: free */
    enum piece piece;
    int64_t n_minibatches; /* of an update */
    bool profiled;
    struct marks marks;
    uint64_t used; /* when last, by trainer.recording_clock */
};

/* ---- cost.c ---- */
enum cost_state { COST_WALL, COST_WARM, COST_WINDOW, COST_SHARED };
struct cost {
    const struct train_gate *gate; /* borrowed; NULL: none */
    enum cost_state state;
    uint64_t n_warm; /* iterations before a window */
    uint64_t from_collected, from_recorded; /* n_collected, n_recorded, and below, when the state began */
    double from_wall_s, from_carry;
    double seen_wall_s, seen_carry; /* wall_s when the last iteration was looked at, minibatch_carry after it */
    int n_spoilt; /* windows in a row that something was recorded in */
    uint64_t n_windows; /* measured here or by another run of this kind */
    double iteration_s; /* by the last window; 0: there was none yet */
    uint64_t again_collected; /* the next window is when this many iterations have ended, */
    double again_wall_s; /* counted from this cost */
};

struct trainer {
    struct kern *kern; /* borrowed */
    struct trainer_cache *home; /* borrowed: gets the trainer when it is destroyed; NULL: none */
    const struct kern_ops *ops;
    const struct env_def *def;
    void *env_settings; /* own copy */
    struct env_shape shape;
    struct train_settings set;
    struct policy policy;
    /* N, T, B; the last rollout of a run may be shorter: T is that of now. Of several ranks N and B are this one's
     * share, settings and counts are those of all. */
    size_t n_agents, horizon, n_segments, n_envs;
    struct team *team; /* what the caller's trainer owns: that of rank 0; NULL: another rank's, or there is one rank */
    size_t n_ranks, rank; /* 1 and 0 without a team */
    size_t first_agent, first_segment; /* the numbers of its first ones among those of all ranks */
    size_t horizon_full; /* that memory is planned for, and T between iterations */
    size_t n_shards; /* P */
    bool direct; /* operations are done when they return (CPU): counts and clocks may be read within an iteration */
    size_t n_block; /* segments of a block, at most those of a shard */
    struct plan plan;
    struct kern_env *env;
    /* device */
    float *params, *moment1, *moment2; /* (n_params) */
    void *weights; /* (n_params) act: params as layers want them; params itself when act is f32 */
    float *grads; /* (P, n_params): each shard's; the first row becomes their sum */
    float *norm;
    void *muon_scratch;
    int64_t *opt_step;
    struct kern_hyper *hyper;
    struct report *report; /* stats and opt_step lie in it */
    struct kern_stats *stats, *shard_stats; /* (1), (ranks, P) */
    uint64_t *mark_times; /* (PIECE_COUNT * MARKS_MAX) */
    struct rng *rng_sample, *rng_tmp, *rng_segments;
    struct rollout roll;
    struct normaliser norm_of;
    struct novelty novelty;
    struct minibatch mb;
    struct policy_step step;
    struct policy_pass pass;
    /* host */
    struct rng root;
    struct kern_hyper host_hyper;
    struct trainer_counters count;
    struct window window;
    struct issued issued[KERN_SOLO_MAX]; /* ISSUED_MAX of them, but for a training by one block */
    struct solo solo;
    struct kern_slot *times_slot; /* of mark_times */
    uint64_t n_issued, n_collected; /* iterations handed over, and looked at */
    float lr; /* of the last one looked at */
    double numbers[ENV_MAX_NUMBERS]; /* the game's own, by the last report that knew them */
    struct recording recordings[RECORDINGS_MAX];
    uint64_t recording_clock, n_recorded;
    double first_s, recording_s; /* of struct train_result */
    bool played[PIECE_COUNT]; /* has run once without being recorded */
    struct marks plain_marks[PIECE_COUNT];
    struct marks *marking; /* takes the marks of what is being called; NULL: none are made */
    double profile_s[PHASE_COUNT]; /* of the last iteration that was profiled */
    double begun_wall_s; /* wall_s when this training began, or was resumed */
    double settled_wall_s; /* wall_s when time was last given to phases, */
    int64_t unsettled_n; /* iterations since */
    uint64_t mark_ns; /* direct: when the last phase ended */
    uint64_t clock_ns; /* wall_s is up to date with it */
    double ticked_s; /* sum of the times between ticks of this process, */
    uint64_t n_ticks; /* and how many */
    unsigned stops; /* clock_stops at the last tick */
    struct cost cost;
    bool running, failed; /* failed: the weights are no longer to be saved */
    bool perf_outside; /* the game gave a perf outside of [0, 1], which was logged */
    size_t n_looked; /* tensors that numeric_diagnose looked at before it found the bad one */
};

/* Streams that hang off the seed. */
enum trainer_stream { STREAM_INIT = 1, STREAM_SAMPLE, STREAM_SEGMENTS, STREAM_ENV, STREAM_EVAL, STREAM_NOVELTY };

static inline struct policy_weights trainer_weights(const struct trainer *t)
{
    return (struct policy_weights){.params = t->params, .act = t->weights};
}
/* Steps of a segment, what minibatches are made of: a whole horizon of one agent, or a single step. */
static inline size_t trainer_segment_steps(const struct trainer *t)
{
    return t->set.shuffle == TRAIN_SHUFFLE_STEPS ? 1 : t->horizon;
}
/* Segments of a rollout. One begins at column i of (T, N): (T, N) is (1, T N) where segments are single steps. */
static inline size_t trainer_segments(const struct trainer *t)
{
    return t->horizon / trainer_segment_steps(t) * t->n_agents;
}
/* After params changed. */
void trainer_weights_cast(struct trainer *t);

/* ---- iterate.c ---- */
/* The time since the last call belongs to this phase; begin: to none. */
void trainer_phase_begin(struct trainer *t);
void trainer_phase(struct trainer *t, enum train_phase phase);

void trainer_profile_settle(struct trainer *t);
void trainer_tick(struct trainer *t); /* brings wall_s up to date */
void trainer_tick_skip(struct trainer *t); /* what passed since is not counted */
int64_t trainer_issued_steps(const struct trainer *t); /* count.env_steps and those of issued iterations */
void recordings_free(struct trainer *t);

/* ---- metrics.c ---- */
/* The numbers of the game's own since the last report. */
void metrics_take_numbers(struct trainer *t, struct train_metrics *metrics);
/* The metrics of a result (trainer.h). */
void metrics_of_window(struct trainer *t, struct train_metrics *ret_metrics);

/* ---- eval.c ---- */
size_t eval_bytes(struct trainer *t); /* device memory that the evaluation at the end takes */

/* ---- cost.c ---- */
void cost_begin(struct trainer *t, const struct train_gate *gate); /* starts the clock */
enum status cost_turn(struct trainer *t, struct error *err) MUST_USE; /* before each iteration */
void cost_end(struct trainer *t); /* after the last one has ended, or a failure */

/* As trainer_iterate, with a rollout of `horizon` steps, at most horizon_full. */
enum status iterate_for(struct trainer *t, size_t horizon, struct error *err) MUST_USE;

/* ---- parts of public calls that each rank does, on the thread that uses its device ---- */
/* Of a trainer that has its memory: will one block of the device train it? */
enum status solo_open(struct trainer *t, struct error *err) MUST_USE;
void solo_close(struct trainer *t);
void solo_forget(struct trainer *t); /* waits for a job that nobody will look at */
enum status rank_iterate(struct trainer *t, size_t horizon, struct error *err) MUST_USE; /* iterate.c */
enum status rank_sync(struct trainer *t, struct error *err) MUST_USE;
/* trainer.c: a trainer of rank `rank`, whose kern has joined the ranks; kept memory is taken from cache (may be
 * NULL). */
enum status rank_create(struct trainer **ret_trainer, struct trainer_cache *cache, struct kern *kern,
                        const struct env_def *def, const void *env_settings, const struct policy_settings *policy,
                        const struct train_settings *train, size_t rank, struct error *err) MUST_USE;

/* ---- team/team.c: several devices ---- */
struct hosted {
    struct train_hosts *hosts; /* borrowed; NULL: this process alone */
    const char *config; /* of the run, for them; of one that follows NULL */
};
/* Every rank's trainer and its thread; *ret_trainer is that of this process's first rank, and owns the team. */
enum status team_create(struct trainer **ret_trainer, const struct hosted *on, struct kern *kern,
                        const struct env_def *def, const void *env_settings, const struct policy_settings *policy,
                        const struct train_settings *train, struct error *err) MUST_USE;
void team_destroy(struct team *team); /* with its trainer */
/* fn for each rank's trainer, at the same time, on its own thread; returns when all have ended or one is found hung.
 * The first failure is the result; where not all ranks failed it ends the team, and every later call fails. Without a
 * team: for this trainer, on the calling thread. fn does not call it. Of this process alone. */
typedef enum status rank_fn(void *ctx, struct trainer *t, struct error *err);
enum status ranks_run(struct trainer *t, rank_fn *fn, void *ctx, struct error *err) MUST_USE;
/* The same of an fn within which ranks exchange: when one fails the others are let go. */
enum status ranks_meet(struct trainer *t, rank_fn *fn, void *ctx, struct error *err) MUST_USE;

/* The same of what ranks on other hosts do too: each gets `in`, and gives out_bytes. */
enum rank_call {
    RANK_ITERATE, /* in: the horizon, size_t */
    RANK_SYNC,
    RANK_PARAMS, /* out: the weights */
    RANK_JOIN_SUMS, /* what observations and rewards are normalised by */
    RANK_PACK, /* out: its parts of a checkpoint */
    RANK_LOAD, /* in: a checkpoint's bytes, text: its path */
    RANK_LOAD_WEIGHTS,
    RANK_BEGIN_FROM,
    RANK_NUMBERS, /* out: sums of the game's own numbers */
};
struct rank_args {
    const char *text; /* NULL: none */
    const void *in;
    size_t in_bytes;
    void *out; /* (ranks, out_bytes) */
    size_t out_bytes;
    size_t first; /* rank of which out begins */
};
static inline void *rank_out(const struct rank_args *args, const struct trainer *t)
{
    return (char *)args->out + (t->rank - args->first) * args->out_bytes;
}
enum status ranks_call(struct trainer *t, enum rank_call call, const struct rank_args *args,
                       struct error *err) MUST_USE;
rank_fn rank_iterate_for, rank_sync_each; /* iterate.c */
rank_fn rank_join_sums, rank_pack, rank_load, rank_load_weights, rank_begin_from; /* checkpoint.c */
rank_fn rank_numbers; /* metrics.c */
/* All ranks have the same weights to the bit; ST_DEVICE names one that has not. */
enum status ranks_compare(struct trainer *t, struct error *err) MUST_USE;

/* ---- trainer.c, cache.c ---- */
/* A trainer of this shape that was given back, NULL if there is none; taken out. want: filled as far as
 * trainer_describe. */
struct trainer *trainer_cache_take(struct trainer_cache *cache, const struct trainer *want);
/* Takes over the trainer; false: it is not for keeping. */
bool trainer_cache_give(struct trainer_cache *cache, struct trainer *t);
bool trainer_cache_drop_oldest(struct trainer_cache *cache); /* false: it is empty */
bool trainer_cache_wait(struct trainer_cache *cache); /* for memory; false: in vain */
void trainer_free(struct trainer *t); /* NULL and half-built trainers are fine */

/* ---- rollout.c, update.c, numeric.c, schedule.c ---- */
void rollout_plan(struct trainer *t);
enum status rollout_run(struct trainer *t, struct error *err) MUST_USE;
void update_plan(struct trainer *t);
/* Segments of a block: as many as fit a shard's cache. */
size_t update_block_segments(const struct kern *kern, size_t T, size_t B);
/* The updates of one rollout, fewer when target_kl or a number that is not finite ends them. */
enum status update_run(struct trainer *t, int64_t n_minibatches, struct error *err) MUST_USE;
/* Parts of it, for tests: one minibatch of the segments idx (B, device) gathered and run forward; its loss, gradient
 * and statistics. keep: its ratios are kept for when its segments are used again. */
void update_forward(struct trainer *t, const int32_t *idx);
void update_backward(struct trainer *t, const int32_t *idx, const float *weight, bool keep);
/* Advantages of the whole rollout by the ratios of now, into roll.adv and roll.ret. */
void update_advantage(struct trainer *t);
/* Names the first tensor that is not finite; always returns ST_NUMERIC. */
enum status numeric_diagnose(struct trainer *t, struct error *err) MUST_USE;
void schedule_hyper(const struct train_settings *set, int64_t env_steps, struct kern_hyper *ret_hyper);
/* Of a rollout of `horizon` steps. */
double schedule_mean_minibatches(const struct train_settings *set, size_t horizon);
int64_t schedule_minibatches(const struct train_settings *set, size_t horizon, double *carry);
/* Steps of the next rollout after env_steps: set->horizon, fewer where total_timesteps is nearer, 0 where the run
 * ends. */
size_t schedule_horizon(const struct train_settings *set, int64_t env_steps);
