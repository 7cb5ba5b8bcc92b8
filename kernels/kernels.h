/* kernels.h - devices, device memory and the one table of operations (public face of kernels/).
 *
 * The PPO algorithm is written once, in trainer/, over this table; kernels/cpu is reference, fallback and test oracle,
 * kernels/cuda the fast one. Rules for every operation:
 *   - pointers are device memory (kern_alloc), row-major; sizes are rows/columns;
 *   - void pointers marked "act" are numbers of the activation type, ops->act_size bytes each: f32, or bf16 after
 *     kern_precision_set(KERN_BF16); all others are f32 unless their type is another. Sums are f32 or better;
 *   - it never allocates and never waits for the device (so a rollout or an epoch can be captured as a graph);
 *   - it cannot fail on the CPU; on a device a launch failure is sticky and is reported by kern_sync;
 *   - scalars that anneal or differ between trials come from struct kern_hyper in device memory, not from arguments;
 *   - outputs are overwritten unless "adds" is said; reductions have a fixed order for a given number of threads.
 * Shapes: N agents, T horizon, B segments of a minibatch, M = T*B tokens (token t*B + b, time-major), H width, A
 * columns of the heads (struct kern_heads), O policy outputs: the heads' columns, then those of the value
 * (kern_heads_out). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/status.h"
#include "envs/envs.h"

struct kern; /* an opened device with one stream; used by one thread at a time */
struct kern_env; /* a batch of games living on that device */

/* Activations whose derivative follows from their output. */
enum kern_act { KERN_ACT_NONE, KERN_ACT_RELU, KERN_ACT_TANH };

/* An agent's action: one word of 32 bits for each head, a choice (i32) or, where the size is 0, a number (the bits of
 * an f32: u of kernels/gauss.h). Columns of the policy's output: for each head in turn its logits or its number's mean,
 * then, for each number in turn, the log of its standard deviation. */
struct kern_heads {
    int n_heads;
    int sizes[ENV_MAX_HEADS];
    int n_logits; /* A */
    int n_reals; /* heads that are numbers; their log-deviations are the last n_reals of the A columns */
    bool squash; /* numbers by tanh into their range; false: clipped */
    float low[ENV_MAX_HEADS], high[ENV_MAX_HEADS]; /* of numbers */
    /* The value's columns after the A: one, the number itself; or one for each bin of a distribution, whose outermost
     * bins stand for -x and x with value_log = log(1 + x) (kernels/bins.h). */
    int n_bins; /* 0: a number; else 3 to KERN_MAX_BINS */
    float value_log;
};
#define KERN_MAX_BINS 255
/* O */
ENV_FN size_t kern_heads_out(const struct kern_heads *heads)
{
    return (size_t)heads->n_logits + (heads->n_bins > 0 ? (size_t)heads->n_bins : 1);
}
/* Beyond these a log of a standard deviation counts as the limit, and has no gradient. */
#define KERN_LOG_STD_MIN (-10.0f)
#define KERN_LOG_STD_MAX 4.0f
void kern_heads_init(struct kern_heads *heads, const struct env_shape *shape, bool squash);

/* A matrix or vector (cols 1) within the flat parameter vector. */
struct kern_tensor {
    size_t offset, rows, cols;
    bool is_matrix;
};

/* One step's tensors, agent-major; A = n_envs * n_agents. What struct env_io is to a game on the host. */
struct kern_env_io {
    const int32_t *actions; /* (A, n_heads) */
    const float *reals; /* (A, n_heads) numbers of the heads of size 0; NULL when there are none */
    float *rewards; /* (A) unclipped */
    uint8_t *terms, *truncs; /* (A) 0/1 */
    void *obs; /* (A, obs_size) act, or bytes as the game gives them; of the new episode where one ended */
    void *final_obs; /* the same, only where truncs is 1; or NULL */
    uint8_t *mask; /* (A, sum of head_sizes), or NULL if !has_mask */
};

/* Shape of a policy network (docs/ppo.md) and where its tensors lie in the flat parameter vector: for operations that
 * run the whole network. encoder (H, D) + (H) -> n_layers core layers -> heads (O, H) + (O). */
#define KERN_MAX_LAYERS 16
#define KERN_MAX_TENSORS (3 * KERN_MAX_LAYERS + 20)
enum kern_core { KERN_CORE_NONE, KERN_CORE_MLP, KERN_CORE_MINGRU, KERN_CORE_LSTM };
struct kern_net {
    enum kern_core core; /* LSTM: W_hh lies after W_ih (core_w) */
    enum kern_act encoder_act, act; /* of the encoder, of mlp layers */
    size_t obs_size, width, n_layers; /* D, H, L */
    struct kern_heads heads;
    size_t encoder_w, encoder_b, core_w[KERN_MAX_LAYERS], core_b[KERN_MAX_LAYERS], heads_w, heads_b; /* offsets */
};

/* A whole rollout of T steps of N agents; slot T of obs, mask, reset is what comes before the next decision, and slot 0
 * was already moved there. Tensors as in trainer/rollout.c. */
struct kern_rollout {
    const struct kern_net *net;
    const void *weights; /* (n_params) act */
    const float *params; /* (n_params) f32, for the heads */
    struct kern_env *env;
    const struct kern_hyper *hyper;
    struct rng *rng; /* as sample, one draw of n_heads for each step */
    size_t T, N;
    size_t first; /* as of struct kern_sample */
    void *obs; /* (T + 1, N, D) act */
    uint8_t *mask; /* (T + 1, N, A) or NULL */
    uint8_t *reset; /* (T + 1, N) */
    int32_t *actions; /* (T, N, n_heads) */
    float *logp, *rewards, *boot; /* (T, N); rewards clipped by hyper->reward_clip */
    float *values; /* (T + 1, N) */
    uint8_t *terms, *truncs; /* (T, N) */
    float *h; /* (L, N, H) carried */
};

/* A convolution over a grid, channels last, zeros beyond its border: x (M, height, width, in) becomes
 * y (M, kern_conv_height, kern_conv_width, out). */
struct kern_conv {
    size_t height, width, in, out;
    size_t kernel, stride, pad; /* square; kernel <= height + 2 pad, and width */
};
static inline size_t kern_conv_height(const struct kern_conv *c)
{
    return (c->height + 2 * c->pad - c->kernel) / c->stride + 1;
}
static inline size_t kern_conv_width(const struct kern_conv *c)
{
    return (c->width + 2 * c->pad - c->kernel) / c->stride + 1;
}

/* Hyper-parameters in device memory; symbols of docs/ppo.md. */
struct kern_hyper {
    float lr; /* after annealing */
    float gamma, gae_lambda;
    float rho_clip, c_clip;
    float clip_coef; /* eps */
    float vf_clip_coef; /* eps_v; <= 0: value loss is not clipped */
    float vf_coef, ent_coef;
    float max_grad_norm; /* <= 0: no clipping */
    float beta1, beta2, eps; /* Adam; beta1 is Muon's momentum mu */
    float weight_decay; /* decoupled; 0: none */
    float reward_clip; /* <= 0: off; else rewards are clamped to [-x, x] */
    float prio_alpha, prio_beta; /* beta after annealing */
    float target_kl; /* <= 0: off */
    float e3b_coef; /* of struct kern_novelty */
    int32_t norm_adv; /* 0 or 1 */
};

/* Running sums of an update phase in device memory; zeroed by the trainer, read after kern_sync. */
struct kern_stats {
    double n_tokens, n_minibatches;
    double policy_loss, value_loss, entropy, approx_kl, clip_fraction; /* sums over tokens */
    /* Of returns and of (return - new value): explained variance = 1 - var err / var ret. */
    double ret_sum, ret_sq, err_sum, err_sq;
    double grad_norm; /* sum over minibatches, before clipping */
    double last_kl; /* mean over the last minibatch */
    int32_t nonfinite; /* minibatches whose loss or gradient norm was NaN or Inf: their optimiser step was skipped */
    int32_t stop; /* set by minibatch_stats: the optimiser steps of this phase do nothing */
};

/* ---- what an operation takes ----
 * One struct for a layer or a purpose, by designated initialisers; it lies in host memory and is read before the call
 * returns. Each operation names what it reads and writes; the rest may be left 0. "-> x": x is written. */

/* How an operation finds observations where they are not (rows, numbers) act: rows `row` numbers apart, perhaps bytes,
 * which count as byte * scale. A layer whose x is such gets no dx. */
struct kern_source {
    size_t row; /* numbers from one row to the next; 0: x is (rows, numbers) act, and nothing else here counts */
    size_t first; /* number of a row that the operation's first one is; x is where the row begins */
    bool bytes;
    float scale; /* of bytes */
    size_t n_floats; /* of bytes, CPU alone: the last numbers of a row that are f32 all the same (env_mixed_bytes) */
    void *wide; /* kern_wide_bytes: where a part of it is widened at a time */
};

/* Linear layer: y = act(x w^T + b).
 * linear_forward: x, w, b -> y
 * linear_backward: dy, y, x, w -> dy in place before the activation, dw = dy^T x, db = column sums, dx = dy w */
struct kern_linear {
    size_t M, N, K;
    enum kern_act act;
    const void *x, *w, *b; /* (M, K), (N, K), (N) act; b NULL: none */
    void *y; /* (M, N) act; backward does not look at it without an activation */
    void *dy; /* (M, N) act */
    void *dx; /* (M, K) act; NULL: none */
    float *dw, *db; /* (N, K), (N); db NULL: none */
    bool add_y; /* forward: adds to y before bias and activation */
    bool add_dx, add_dw; /* adds to dx; to dw and db */
    struct kern_source from; /* of x */
};

/* The policy's last layer, few columns and f32 throughout: out = x w^T + b.
 * heads_forward: x, w, b -> out
 * heads_backward: dout, x, w -> dw = dout^T x, db = column sums, dx = dout w */
struct kern_heads_layer {
    size_t M, O, H;
    const void *x; /* (M, H) act */
    const float *w, *b; /* (O, H), (O) */
    float *out; /* (M, O) */
    const float *dout; /* (M, O) */
    void *dx; /* (M, H) act */
    float *dw, *db; /* (O, H), (O) */
    bool add_dw; /* adds to dw and db */
};

/* Convolution: y = act(x convolved with w, + b).
 * conv_forward, conv_backward: as of struct kern_linear */
struct kern_conv_layer {
    const struct kern_conv *shape;
    size_t M;
    enum kern_act act;
    const void *x, *w, *b; /* (M, height, width, in), (out, kernel, kernel, in), (out) act */
    void *y, *dy; /* (M, kern_conv_height, kern_conv_width, out) act */
    void *dx; /* as x; NULL: none */
    float *dw, *db; /* as w, b */
    bool add_dw; /* adds to dw and db */
    void *scratch; /* kern_conv_scratch_bytes; NULL when that is 0 */
    struct kern_source from; /* of x */
};

/* MinGRU layer (docs/ppo.md): gates = [a, g, p] = x W^T with W (3H, H), computed by linear_forward.
 * mingru_step: one step of B agents; gates, x, reset -> out, state in place, zeroed first where reset is 1
 * mingru_forward: gates, x, h0, reset -> out, and h, kept for the way back; the state itself is f32
 * mingru_backward: dout, h, gates, x, h0, reset -> dgates, and dx of the highway path (linear_backward then adds W's
 * part). No gradient flows into h0
 * With `product`, the layer that makes the gates, forward makes them too, and backward is followed by its
 * linear_backward; dgates is then scratch */
struct kern_mingru {
    size_t T, B, H; /* a step has no T */
    const void *gates, *x; /* (T, B, 3H), (T, B, H) act */
    const uint8_t *reset; /* (T, B) */
    void *out; /* (T, B, H) act */
    float *state; /* (B, H) of a step */
    const float *h0; /* (B, H) before the first step of a sequence */
    void *h; /* (T, B, H) act: after each step */
    const void *dout; /* (T, B, H) act */
    void *dx, *dgates; /* (T, B, H), (T, B, 3H) act; dx may be dout */
    const struct kern_linear *product; /* y is gates, dy is dgates, add_dx; NULL: none */
};

/* LSTM layer (docs/ppo.md): gates = [i, f, g, o] = x W_ih^T + b, computed by linear_forward.
 * lstm_step: one step of B agents; gates, w_hh, reset -> out = h, state in place, zeroed first where reset is 1; gates
 * are overwritten
 * lstm_forward: the same for T steps; kept for the way back: h_prev, c_prev, the state before each step, 0 where reset,
 * and in gates the four after their sigmoid or tanh
 * lstm_backward: dout, gates, c_prev, w_hh, reset -> gates become their gradient before sigmoid and tanh
 * (linear_backward then gives what x and W_ih, with h_prev also W_hh get), dstate */
struct kern_lstm {
    size_t T, B, H; /* a step has no T */
    void *gates; /* (T, B, 4H) act */
    const void *w_hh; /* (4H, H) act */
    const uint8_t *reset; /* (T, B) */
    float *state; /* (B, 2H), a row [h, c] for each agent: before the first step, then after the last */
    void *out, *h_prev, *c_prev; /* (T, B, H) act */
    const void *dout; /* (T, B, H) act */
    float *dstate; /* (2, B, H): gradient of h and of c before the first step; those after the last have none */
};

/* sample: out, mask -> actions sampled for each head (greedy: argmax), logp summed over heads, value. A head whose mask
 * allows nothing is unmasked, here and in segments_keep and ppo_loss. Agent i draws head j from
 * rng_split(*rng, first + i) at counter rng->counter + j; then rng->counter += n_heads, unless agents of the same step
 * are left (partial). A number's action is u (greedy: its mean), and reals has what the game gets of it. */
struct kern_sample {
    size_t N;
    size_t first; /* the first one's number among all of the step, on all devices */
    const struct kern_heads *heads; /* host memory */
    bool greedy, partial;
    const float *out; /* (N, O) */
    const uint8_t *mask; /* (N, A) or NULL */
    struct rng *rng; /* device memory */
    int32_t *actions; /* (N, n_heads) */
    float *reals; /* (N, n_heads), written where the head is a number; NULL: nobody asks */
    float *logp, *value; /* (N) */
};

/* frames_stack: dst, an observation of the last k frames, the newest last: of each pixel its channels frame by frame,
 * then the plain list frame by frame. It follows from old (may be dst) and the newest frame; where reset is 1, or old
 * is NULL, all k are that one. */
struct kern_frames {
    size_t N, k;
    size_t pixels, channels, list; /* of a frame: (pixels, channels), then (list) */
    size_t number_bytes; /* 1, 2 or 4 */
    size_t frame_row,
        row; /* CPU alone: bytes from one frame to the next, and of old and dst; 0: they lie side by side */
    const void *frame; /* (N, pixels * channels + list) */
    const void *old;
    void *dst; /* (N, k * (pixels * channels + list)) */
    const uint8_t *reset; /* (N); NULL: 0 */
    const uint8_t *only; /* (N): the other rows of dst keep their bytes; NULL: all are written */
};

/* step_post: rewards are clamped by hyper->reward_clip in place; reset = terms | truncs. */
struct kern_step_post {
    size_t N;
    const uint8_t *terms, *truncs; /* (N) */
    const struct kern_hyper *hyper;
    float *rewards; /* (N) */
    uint8_t *reset; /* (N) */
};

/* Running mean and variance of D columns, and rows that are normalised by them.
 * norm_add: x -> sums, those of the rows that came before and of these
 * norm_freeze: sums -> scale; without a row yet: mean 0, deviation 1
 * norm_apply: scale -> x = (x - mean) / deviation, clipped to +-10, in place
 * norm_join: parts -> sums, each part's rows in turn; a part without rows changes nothing. The parts become zero */
struct kern_norm {
    size_t n, D;
    size_t row; /* numbers from one row of x to the next, at least D; 0: D */
    void *x; /* (n, D) act */
    double *parts; /* (n_parts, D, 3), each as sums */
    size_t n_parts;
    double *sums; /* (D, 3): number of rows, mean, sum of squared distances from the mean */
    float *scale; /* (D, 2): mean, 1 / deviation */
};

/* reward_scale: rewards are divided by the running deviation of discounted sums of rewards, this rollout's included,
 * and clipped to +-10. carry <- gamma carry + reward, 0 after the end of an episode. In two calls where several devices
 * have parts of the sums: the first adds to them and leaves the rewards, the second, with all sums, does the rest. */
enum kern_reward_part { KERN_REWARD_ALL, KERN_REWARD_ADD, KERN_REWARD_APPLY };
struct kern_reward_scale {
    enum kern_reward_part part;
    size_t T, N;
    float *rewards; /* (T, N) in place */
    const uint8_t *terms, *truncs; /* (T, N) */
    const struct kern_hyper *hyper;
    float *carry; /* (N) */
    float *discounted; /* (T, N) scratch */
    double *sums; /* (3) as of struct kern_norm with D 1 */
    float *scale; /* (2) */
};

/* novelty (docs/ppo.md, E3B): rewards += hyper->e3b_coef times how new the observation after each step is among those
 * of its episode, 0 to 1; nothing where the step ended one. Features f = sqrt(2 / F) cos(obs projection + phase), F =
 * KERN_NOVELTY_FEATURES; the covariance of an episode's features, C = ridge I + sum of f f', is kept as
 * known = I - ridge C^-1 by Sherman and Morrison's update, all 0 at an episode's start. A new observation is worth
 * f' (I - known) f, an old one nothing. */
#define KERN_NOVELTY_FEATURES 32
#define KERN_NOVELTY_RIDGE 0.1f
struct kern_novelty {
    size_t T, N, D;
    const void *obs; /* (T + 1, N, D) act, or as `from` says; row t + 1 is after step t */
    struct kern_source from; /* of obs; wide is not needed */
    const uint8_t *reset; /* (T + 1, N): a new episode begins with this row */
    const float *projection; /* (D + 1, F): weights, in the last row the phases */
    const struct kern_hyper *hyper;
    float *known; /* (N, F, F) symmetric, carried */
    float *rewards; /* (T, N) */
};

/* advantage (docs/ppo.md): -> adv, ret */
struct kern_advantage {
    size_t T, N;
    const float *rewards, *values; /* (T, N), (T + 1, N) */
    const float *boot; /* (T, N): value of the last observation, looked at where truncs is 1 */
    const uint8_t *terms, *truncs; /* (T, N) */
    const float *log_ratio; /* (T, N), log of the probability ratios; NULL for GAE: ratios of 1 that nothing clips */
    const struct kern_hyper *hyper;
    float *adv, *ret; /* (T, N) */
};

/* Prioritised segments. segments_priority: adv -> prob
 * segments_pick: prob -> idx by systematic sampling, weight = (N p)^-prio_beta; *rng advances */
struct kern_segments {
    size_t T, N, B;
    const float *adv; /* (T, N) */
    const struct kern_hyper *hyper;
    struct rng *rng;
    float *prob; /* (N) */
    int32_t *idx; /* (B) */
    float *weight; /* (B) */
};

/* gather: every item's rows idx of N. One item: dst (T, B, row_bytes) = src (T, N, row_bytes)[:, idx]. */
#define KERN_MAX_GATHER 24
struct kern_gather_item {
    void *dst;
    const void *src;
    size_t row_bytes, T;
};
struct kern_gather {
    size_t N, B;
    const int32_t *idx; /* (B) */
    const struct kern_gather_item *items; /* (n_items) in host memory, at most KERN_MAX_GATHER */
    size_t n_items;
};

/* A pass's tokens of B segments, which belong to a minibatch of B_all.
 * ppo_loss: loss and its gradient dout in one pass, formulas of docs/ppo.md; the mean is over the minibatch's T * B_all
 * tokens. Adds to *part, this shard's statistics of the minibatch. A loss that is not finite makes dout[0] NaN, so that
 * grad_norm sees it
 * segments_keep: the ratios found, for their next use: log_ratio = new log-prob - old_logp at the columns idx. An entry
 * equal to the one before it (idx[-1], if has_before) is left out: that one stores the same */
struct kern_loss {
    size_t T, B, B_all;
    const struct kern_heads *heads; /* host memory */
    const struct kern_hyper *hyper;
    const float *out; /* (M, O) */
    const int32_t *actions; /* (M, n_heads) */
    const uint8_t *mask; /* (M, A) or NULL */
    const float *old_logp, *old_value, *adv, *ret; /* (M) */
    const float *weight; /* (B) or NULL */
    const float *mean_std; /* (2) of the minibatch's adv; used when hyper->norm_adv */
    float *dout; /* (M, O) */
    struct kern_stats *part; /* (1) */
    const int32_t *idx; /* (B) of N */
    bool has_before;
    float *log_ratio; /* (T, N) */
    size_t N;
};

/* One step of an optimiser over the flat parameter vector; skipped when norm is NaN or stats->stop is set. Gradients
 * are scaled by min(1, max_grad_norm / (norm + 1e-6)).
 * adam: g, n -> w, m, v
 * muon: g, tensors -> w, m. Matrices: momentum, five Newton-Schulz steps, scaled update; vectors: momentum */
struct kern_optimiser {
    float *w, *m, *v; /* (n) */
    const float *g, *norm; /* (n), (1) */
    const struct kern_stats *stats;
    const struct kern_hyper *hyper;
    const int64_t *step; /* (1): updates made before this one; optimiser_tick advances it after all tensors */
    size_t n;
    const struct kern_tensor *tensors; /* (n_tensors) in host memory, at most KERN_MAX_TENSORS */
    size_t n_tensors;
    void *scratch; /* kern_muon_scratch_bytes */
};

/* pack_rows: rows of src with flag set, packed in order into dst; *n_packed = their number
 * unpack_rows, the way back: the flagged rows of dst are taken in order from src; the others keep their bytes */
struct kern_pack {
    size_t N, row_bytes;
    void *dst;
    const void *src; /* (N, row_bytes) the one, (at most N, row_bytes) the other */
    const uint8_t *flag; /* (N) */
    int64_t *n_packed; /* (1) */
};

/* exchange: what the ranks of a training give each other (ranks.h); all of them call it, in the same order and with the
 * same sizes. sum becomes the sum over the ranks, the same bytes on each (on the CPU added in their order); of rows
 * each rank has filled its own, and gets the others'. */
struct kern_exchange {
    float *sum; /* (n); n 0: none */
    size_t n;
    void *rows; /* (ranks, row_bytes); row_bytes 0: none */
    size_t row_bytes;
};

/* Whole iterations, each a rollout and its updates, of a training that one block of the device makes alone, so that as
 * many trainings as it has multiprocessors run side by side. Tensors as in trainer/rollout.c and update.c; statistics,
 * log and step lie in `report`, which is copied out after each iteration. All belong to the
 * caller and stay until the slot is taken; pointers are of device memory unless they say otherwise. */
#define KERN_SOLO_MAX 8 /* iterations of a call */
#define KERN_SOLO_BYTES(report_bytes) (KERN_SOLO_MAX * ((report_bytes) + sizeof(uint64_t)) + sizeof(uint64_t))
struct kern_solo_turn {
    struct kern_hyper hyper;
    size_t T; /* of this rollout, at most that of all */
    int64_t n_minibatches;
};
struct kern_solo {
    const struct kern_net *net;
    const struct kern_tensor *tensors; /* (n_tensors) in host memory */
    size_t n_tensors, n_params;
    struct kern_env *env;
    float *params, *m, *v, *grads, *norm; /* v NULL: muon, else adam */
    void *weights; /* (n_params) act */
    int64_t *step;
    struct kern_stats *stats;
    struct env_log *log;
    struct rng *rng_sample, *rng_segments;
    size_t T, N, B;
    void *obs; /* (T + 1, N, D) act, and so on as of struct kern_rollout and kern_advantage */
    uint8_t *reset, *terms, *truncs;
    int32_t *actions, *perm;
    float *logp, *rewards, *boot, *values, *adv, *ret;
    float *log_ratio; /* NULL: no vtrace */
    const void *report;
    size_t report_bytes;
    /* (KERN_SOLO_BYTES(report_bytes)): the reports, u64 nanoseconds of each, a u64 of the device's */
    struct kern_slot *slot;
    size_t n;
    struct kern_solo_turn turns[KERN_SOLO_MAX];
};

struct kern_ops {
    const char *name; /* "cpu", "cuda f32", "cuda bf16" */
    size_t act_size; /* bytes of an activation: 4 or 2 */

    /* Not in every table.
     * w (n) act = params (n). Not called when act is f32: the parameters themselves are then the weights. */
    void (*weights_cast)(struct kern *k, void *w, const float *params, size_t n);
    /* The same as linear_forward, mingru_step, heads_forward, sample, kern_env_step and step_post in turn T times, and
     * the value of slot T. False: this backend does not play this net and game in one go, and nothing was done. NULL:
     * never. */
    bool (*rollout)(struct kern *k, const struct kern_rollout *r);
    /* False: this backend does not train this net and game so, and nothing was done. With n = 0 nothing is done either.
     * NULL: never. */
    bool (*solo)(struct kern *k, const struct kern_solo *s);

    /* In every table, in the order of KERN_EACH_OP (kern_priv.h). Layers: */
    void (*linear_forward)(struct kern *k, const struct kern_linear *l);
    void (*linear_backward)(struct kern *k, const struct kern_linear *l);
    void (*heads_forward)(struct kern *k, const struct kern_heads_layer *l);
    void (*heads_backward)(struct kern *k, const struct kern_heads_layer *l);
    void (*conv_forward)(struct kern *k, const struct kern_conv_layer *l);
    void (*conv_backward)(struct kern *k, const struct kern_conv_layer *l);
    void (*mingru_step)(struct kern *k, const struct kern_mingru *l);
    void (*mingru_forward)(struct kern *k, const struct kern_mingru *l);
    void (*mingru_backward)(struct kern *k, const struct kern_mingru *l);
    void (*lstm_step)(struct kern *k, const struct kern_lstm *l);
    void (*lstm_forward)(struct kern *k, const struct kern_lstm *l);
    void (*lstm_backward)(struct kern *k, const struct kern_lstm *l);

    /* Games; obs act, mask as in struct kern_env_io. *log (device memory) = sum of the games' logs in index order,
     * which are then cleared. */
    void (*env_reset)(struct kern *k, struct kern_env *env, void *obs, uint8_t *mask);
    /* Begins a part of a step; io is that of all agents. Actions of the part are there before, and what it gives may be
     * looked at after env_wait: where the host plays and the device decides, one part is decided while another is
     * played. Parts are begun and waited for in order, each once a step. */
    void (*env_begin)(struct kern *k, struct kern_env *env, const struct kern_env_io *io, size_t part);
    void (*env_wait)(struct kern *k, struct kern_env *env, size_t part);
    void (*env_observe)(struct kern *k, struct kern_env *env, void *obs, uint8_t *mask);
    void (*env_log_take)(struct kern *k, struct kern_env *env, struct env_log *log);

    /* Acting. */
    void (*sample)(struct kern *k, const struct kern_sample *s);
    void (*frames_stack)(struct kern *k, const struct kern_frames *f);
    void (*step_post)(struct kern *k, const struct kern_step_post *p);

    /* Normalisation. */
    void (*norm_add)(struct kern *k, const struct kern_norm *n);
    void (*norm_freeze)(struct kern *k, const struct kern_norm *n);
    void (*norm_apply)(struct kern *k, const struct kern_norm *n);
    void (*norm_join)(struct kern *k, const struct kern_norm *n);
    void (*reward_scale)(struct kern *k, const struct kern_reward_scale *r);
    void (*novelty)(struct kern *k, const struct kern_novelty *n);

    /* Advantages and segments. */
    void (*advantage)(struct kern *k, const struct kern_advantage *a);
    /* mean_std (2): mean and standard deviation (n in the denominator) of x (n). */
    void (*mean_std)(struct kern *k, float *mean_std, const float *x, size_t n);
    /* That of n_parts sets of the same size, by each one's own: parts (n_parts, 2). */
    void (*mean_std_join)(struct kern *k, float *mean_std, const float *parts, size_t n_parts);
    /* perm (N) i32: the uniform permutation of [0, N) that *rng names: the order of i by draw i (u32), then by i. *rng
     * is not advanced. A minibatch takes B entries. */
    void (*segments_shuffle)(struct kern *k, int32_t *perm, const struct rng *rng, size_t N);
    void (*segments_priority)(struct kern *k, const struct kern_segments *s);
    void (*segments_pick)(struct kern *k, const struct kern_segments *s);
    void (*segments_keep)(struct kern *k, const struct kern_loss *l);
    void (*rng_advance)(struct kern *k, struct rng *rng, uint64_t n); /* counter += n */
    void (*gather)(struct kern *k, const struct kern_gather *g);

    /* Loss. */
    void (*ppo_loss)(struct kern *k, const struct kern_loss *l);
    /* Ends a minibatch: adds its parts (n_parts), one of each shard, to *stats in order and clears them. stats->stop
     * becomes 1 when target_kl > 0 and the minibatch's last_kl > target_kl; from then on parts are cleared and not
     * added. */
    void (*minibatch_stats)(struct kern *k, struct kern_stats *stats, struct kern_stats *parts, size_t n_parts,
                            const struct kern_hyper *hyper);

    /* Optimiser. norm (1) = |g|_2 of g (n) and stats->grad_norm += it; not finite: stats->nonfinite++ and norm = NaN.
     * stats is left alone once stats->stop is set. optimiser_tick skips as adam and muon do. */
    void (*grad_norm)(struct kern *k, float *norm, struct kern_stats *stats, const float *g, size_t n);
    void (*adam)(struct kern *k, const struct kern_optimiser *o);
    void (*muon)(struct kern *k, const struct kern_optimiser *o);
    void (*optimiser_tick)(struct kern *k, int64_t *step, const float *norm, const struct kern_stats *stats);

    /* Between devices; only of a kern that has joined ranks. Does nothing once they were aborted. */
    void (*exchange)(struct kern *k, const struct kern_exchange *e);

    /* Plain. */
    void (*zero)(struct kern *k, void *p, size_t bytes);
    /* n rows of `bytes` bytes, `stride` bytes apart, become 0; p, bytes and stride are multiples of 4. */
    void (*zero_rows)(struct kern *k, void *p, size_t bytes, size_t stride, size_t n);
    void (*copy)(struct kern *k, void *dst, const void *src, size_t bytes);
    /* x (rows, n): row 0 becomes the sum of all rows, added in order. */
    void (*sum_rows)(struct kern *k, float *x, size_t rows, size_t n);
    void (*pack_rows)(struct kern *k, const struct kern_pack *p);
    void (*unpack_rows)(struct kern *k, const struct kern_pack *p);
    /* *ns (device memory) = a clock's time when all operations before have finished; only differences mean
     * something. */
    void (*mark)(struct kern *k, uint64_t *ns);
};

#include "kernels/kern.h" /* devices, memory and games on them */
#include "kernels/ranks.h" /* several devices that train one policy */
