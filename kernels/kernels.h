/* kernels.h - devices, device memory and the one table of operations (public face of kernels/).
 *
 * The PPO algorithm is written once, in trainer/, over this table; kernels/cpu is reference, fallback and test oracle,
 * kernels/cuda the fast one. Rules for every operation:
 *   - pointers are device memory (kern_alloc), row-major; sizes are rows/columns;
 *   - void pointers marked "act" are numbers of the activation type, ops->act_size bytes each: f32, or bf16 after
 *     kern_precision_set(KERN_BF16); whatever else is f32 unless its type says otherwise. Sums are f32 or better;
 *   - it never allocates and never waits for the device (so a rollout or an epoch can be captured as a graph);
 *   - it cannot fail on the CPU; on a device a launch failure is sticky and is reported by kern_sync;
 *   - scalars that anneal or differ between trials come from struct kern_hyper in device memory, not from arguments;
 *   - outputs are overwritten unless "adds" is said; reductions have a fixed order for a given number of threads.
 * Shapes: N agents, T horizon, B segments of a minibatch, M = T*B tokens (token t*B + b, time-major), H width, A logits
 * (sum of head_sizes), O = A + 1 policy outputs: logits, then the value in the last column. */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

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

struct kern_heads {
    int n_heads;
    int sizes[ENV_MAX_HEADS];
    int n_logits; /* A */
};

/* A matrix or vector (cols 1) within the flat parameter vector. */
struct kern_tensor {
    size_t offset, rows, cols;
    bool is_matrix;
};

#define KERN_MAX_GATHER 24
/* One tensor that a minibatch takes: dst (T, B, row_bytes) = src (T, N, row_bytes)[:, idx]. */
struct kern_gather {
    void *dst;
    const void *src;
    size_t row_bytes, T;
};

/* One step's tensors, agent-major; A = n_envs * n_agents. What struct env_io is to a game on the host. */
struct kern_env_io {
    const int32_t *actions; /* (A, n_heads) */
    float *rewards; /* (A) unclipped */
    uint8_t *terms, *truncs; /* (A) 0/1 */
    void *obs; /* (A, obs_size) act; of the new episode where one ended */
    void *final_obs; /* (A, obs_size) act, only where truncs is 1; or NULL */
    uint8_t *mask; /* (A, sum of head_sizes), or NULL if !has_mask */
};

/* Shape of a policy network (docs/ppo.md) and where its tensors lie in the flat parameter vector: for operations that
 * run the whole network. encoder (H, D) + (H) -> n_layers core layers -> heads (O, H) + (O). */
#define KERN_MAX_LAYERS 16
#define KERN_MAX_TENSORS (3 * KERN_MAX_LAYERS + 16)
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

struct kern_ops {
    const char *name; /* "cpu", "cuda f32", "cuda bf16" */
    size_t act_size; /* bytes of an activation: 4 or 2 */

    /* w (n) act = params (n). Not called when act is f32: the parameters themselves are then the weights. */
    void (*weights_cast)(struct kern *k, void *w, const float *params, size_t n);

    /* -- linear: y (M, N) act = act(x (M, K) act  w (N, K)^T act + b (N) act or NULL) -- */
    void (*linear_forward)(struct kern *k, void *y, const void *x, const void *w, const void *b, size_t M, size_t N,
                           size_t K, enum kern_act act);
    /* dy (M, N) act is turned in place into the gradient before the activation, then dw (N, K) = dy^T x, db (N) =
     * column sums (NULL: none), both f32, and dx (M, K) act = dy w (NULL: none; add_dx: adds to dx). add_dw: adds to dw
     * and db. y is linear_forward's output, not looked at without an activation. */
    void (*linear_backward)(struct kern *k, void *dx, float *dw, float *db, void *dy, const void *y, const void *x,
                            const void *w, size_t M, size_t N, size_t K, enum kern_act act, bool add_dx, bool add_dw);
    /* The policy's last layer, few columns and f32 throughout: out (M, O) = x (M, H) act  w (O, H)^T + b (O). */
    void (*heads_forward)(struct kern *k, float *out, const void *x, const float *w, const float *b, size_t M, size_t O,
                          size_t H);
    /* dx (M, H) act = dout w, dw (O, H) = dout^T x, db (O) = column sums; add_dw as above. */
    void (*heads_backward)(struct kern *k, void *dx, float *dw, float *db, const float *dout, const void *x,
                           const float *w, size_t M, size_t O, size_t H, bool add_dw);

    /* -- convolution: y act = act(x act  convolved with w (out, kernel, kernel, in) act + b (out) act).
     * Shapes in struct kern_conv. scratch: kern_conv_scratch_bytes, NULL when that is 0 -- */
    void (*conv_forward)(struct kern *k, void *y, const void *x, const void *w, const void *b, void *scratch,
                         const struct kern_conv *conv, size_t M, enum kern_act act);
    /* dy (as y) act is turned in place into the gradient before the activation, then dw (as w), db (out) f32 and dx (as
     * x) act (NULL: none). add_dw: adds to dw and db. */
    void (*conv_backward)(struct kern *k, void *dx, float *dw, float *db, void *dy, const void *y, const void *x,
                          const void *w, void *scratch, const struct kern_conv *conv, size_t M, enum kern_act act,
                          bool add_dw);

    /* -- MinGRU layer (docs/ppo.md): gates = [a, g, p] = x W^T with W (3H, H), computed by linear_forward -- */
    /* One step of N agents. h (N, H) f32 is carried in place, zeroed first where reset (N) u8 is 1. out (N, H) act. */
    void (*mingru_step)(struct kern *k, void *out, float *h, const void *gates, const void *x, const uint8_t *reset,
                        size_t N, size_t H);
    /* out, h (T, B, H) act from gates (T, B, 3H), x (T, B, H) act, h0 (B, H) f32: state before the first step, reset
     * (T, B). The state itself is f32; h keeps it for the way back. */
    void (*mingru_forward)(struct kern *k, void *out, void *h, const void *gates, const void *x, const float *h0,
                           const uint8_t *reset, size_t T, size_t B, size_t H);
    /* From dout (T, B, H) act: dgates (T, B, 3H), dx (T, B, H) act of the highway path (linear_backward then adds W's
     * part). No gradient flows into h0. dx may alias dout. */
    void (*mingru_backward)(struct kern *k, void *dx, void *dgates, const void *dout, const void *h, const void *gates,
                            const void *x, const float *h0, const uint8_t *reset, size_t T, size_t B, size_t H);

    /* -- LSTM layer (docs/ppo.md): gates = [i, f, g, o] (.., 4H) = x W_ih^T + b, computed by linear_forward; w_hh (4H,
     * H) act. state (.., 2H) f32 is a row [h, c] for each agent -- */
    /* One step of N agents: state is carried in place, zeroed first where reset (N) u8 is 1. out (N, H) act = h. gates
     * (N, 4H) act is overwritten. */
    void (*lstm_step)(struct kern *k, void *out, float *state, void *gates, const void *w_hh, const uint8_t *reset,
                      size_t N, size_t H);
    /* out (T, B, H) act from gates (T, B, 4H) act, reset (T, B). state (B, 2H) is that before the first step and
     * becomes that after the last. Kept for the way back: h_prev, c_prev (T, B, H) act, state before each step, 0 where
     * reset; in gates, the four after their sigmoid or tanh. */
    void (*lstm_forward)(struct kern *k, void *out, void *h_prev, void *c_prev, void *gates, float *state,
                         const void *w_hh, const uint8_t *reset, size_t T, size_t B, size_t H);
    /* From dout (T, B, H) act: gates (T, B, 4H) become their gradient before sigmoid and tanh (linear_backward then
     * gives what x and W_ih, with h_prev also W_hh get). dstate (2, B, H) f32 becomes the gradient of h and of c before
     * the first step; those after the last have none of their own. */
    void (*lstm_backward)(struct kern *k, void *gates, float *dstate, const void *dout, const void *c_prev,
                          const void *w_hh, const uint8_t *reset, size_t T, size_t B, size_t H);

    /* -- acting -- */
    /* From out (N, O): actions (N, n_heads) i32 sampled per head (greedy: argmax), logp (N) summed over heads, value
     * (N). mask (N, A) u8 or NULL; a head whose mask allows nothing is unmasked, here and in ratio and ppo_loss. Agent
     * i draws head j from rng_split(*rng, i) at counter rng->counter + j; then rng->counter += n_heads. rng is device
     * memory. */
    void (*sample)(struct kern *k, int32_t *actions, float *logp, float *value, const float *out, const uint8_t *mask,
                   const struct kern_heads *heads, struct rng *rng, bool greedy, size_t N);

    /* -- games -- */
    /* obs act, mask as in struct kern_env_io. */
    void (*env_reset)(struct kern *k, struct kern_env *env, void *obs, uint8_t *mask);
    void (*env_step)(struct kern *k, struct kern_env *env, const struct kern_env_io *io);
    void (*env_observe)(struct kern *k, struct kern_env *env, void *obs, uint8_t *mask);
    /* *log (device memory) = sum of the games' logs in index order, which are then cleared. */
    void (*env_log_take)(struct kern *k, struct kern_env *env, struct env_log *log);
    /* rewards (N) clamped by hyper->reward_clip in place; reset (N) = terms | truncs. */
    void (*step_post)(struct kern *k, float *rewards, uint8_t *reset, const uint8_t *terms, const uint8_t *truncs,
                      const struct kern_hyper *hyper, size_t N);

    /* The same as linear_forward, mingru_step, heads_forward, sample, env_step and step_post in turn T times, and the
     * value of slot T. False: this backend does not play this net and game in one go, and nothing was done. NULL:
     * never. */
    bool (*rollout)(struct kern *k, const struct kern_rollout *r);

    /* -- advantage (docs/ppo.md): adv, ret (T, N) from rewards (T, N), values (T + 1, N), boot (T, N): value of the
     * last observation where truncs is 1; log_ratio (T, N), log of the probability ratios, or NULL for GAE: ratios of 1
     * that nothing clips -- */
    void (*advantage)(struct kern *k, float *adv, float *ret, const float *rewards, const float *values,
                      const float *boot, const uint8_t *terms, const uint8_t *truncs, const float *log_ratio,
                      const struct kern_hyper *hyper, size_t T, size_t N);
    /* mean_std (2): mean and standard deviation (n in the denominator) of x (n). */
    void (*mean_std)(struct kern *k, float *mean_std, const float *x, size_t n);

    /* -- minibatches -- */
    /* perm (N) i32: the uniform permutation of [0, N) that *rng names: the order of i by draw i (u32), then by i. *rng
     * is not advanced. A minibatch takes B entries. */
    void (*segments_shuffle)(struct kern *k, int32_t *perm, const struct rng *rng, size_t N);
    /* Prioritised: prob (N) from adv (T, N), then idx (B) by systematic sampling, weight (B) = (N p)^-prio_beta. */
    void (*segments_priority)(struct kern *k, float *prob, const float *adv, const struct kern_hyper *hyper, size_t T,
                              size_t N);
    void (*segments_pick)(struct kern *k, int32_t *idx, float *weight, const float *prob, struct rng *rng,
                          const struct kern_hyper *hyper, size_t N, size_t B);
    void (*rng_advance)(struct kern *k, struct rng *rng, uint64_t n); /* counter += n */
    /* The ratios that a pass over these B segments has found, kept for their next use: log_ratio (T, N) = new log-prob
     * - old_logp at the columns idx (B), from out (T, B, O). An entry equal to the one before it (idx[-1], if
     * has_before) is left out: that one stores the same. */
    void (*segments_keep)(struct kern *k, float *log_ratio, const float *out, const int32_t *actions,
                          const float *old_logp, const uint8_t *mask, const struct kern_heads *heads,
                          const int32_t *idx, bool has_before, size_t N, size_t T, size_t B);
    /* Every item's rows idx (B) of N. At most KERN_MAX_GATHER items. */
    void (*gather)(struct kern *k, const struct kern_gather *items, size_t n_items, const int32_t *idx, size_t N,
                   size_t B);

    /* -- loss -- */
    /* Loss and its gradient dout (M, O) in one pass, formulas of docs/ppo.md. These B segments belong to a minibatch of
     * B_all, and the mean is over its T * B_all tokens. adv, ret, old_value, old_logp (M); weight (B) or NULL; mean_std
     * of the minibatch's adv (used when hyper->norm_adv). Adds to *part, this lane's statistics of the minibatch. A
     * loss that is not finite makes dout[0] NaN, so that grad_norm sees it. */
    void (*ppo_loss)(struct kern *k, float *dout, struct kern_stats *part, const float *out, const int32_t *actions,
                     const float *old_logp, const float *adv, const float *ret, const float *old_value,
                     const float *weight, const float *mean_std, const uint8_t *mask, const struct kern_heads *heads,
                     const struct kern_hyper *hyper, size_t T, size_t B, size_t B_all);
    /* Ends a minibatch: adds its parts (n_parts), one of each lane, to *stats in order and clears them. stats->stop = 1
     * when target_kl > 0 and the minibatch's last_kl > target_kl; once it is set, parts are cleared and not added. */
    void (*minibatch_stats)(struct kern *k, struct kern_stats *stats, struct kern_stats *parts, size_t n_parts,
                            const struct kern_hyper *hyper);

    /* -- optimiser, over the flat parameter vector (n) -- */
    /* norm (1) = |g|_2 and stats->grad_norm += it; not finite: stats->nonfinite++ and norm = NaN. stats is left alone
     * once stats->stop is set. */
    void (*grad_norm)(struct kern *k, float *norm, struct kern_stats *stats, const float *g, size_t n);
    /* Both skip when norm is NaN or stats->stop. step (1) i64: number of updates made so far, advanced by
     * optimiser_tick once after all tensors of a minibatch. Gradients are scaled by min(1, max_grad_norm / (norm +
     * 1e-6)). */
    void (*adam)(struct kern *k, float *w, float *m, float *v, const float *g, const float *norm,
                 const struct kern_stats *stats, const int64_t *step, const struct kern_hyper *hyper, size_t n);
    /* Matrices: momentum, five Newton-Schulz steps, scaled update; vectors: momentum. tensors lie in host memory, at
     * most KERN_MAX_TENSORS. scratch: kern_muon_scratch_bytes. */
    void (*muon)(struct kern *k, float *w, float *m, const float *g, const float *norm, void *scratch,
                 const struct kern_stats *stats, const struct kern_hyper *hyper, const struct kern_tensor *tensors,
                 size_t n_tensors);
    void (*optimiser_tick)(struct kern *k, int64_t *step, const float *norm, const struct kern_stats *stats);

    /* -- plain -- */
    void (*zero)(struct kern *k, void *p, size_t bytes);
    void (*copy)(struct kern *k, void *dst, const void *src, size_t bytes);
    /* x (rows, n): row 0 becomes the sum of all rows, added in order. */
    void (*sum_rows)(struct kern *k, float *x, size_t rows, size_t n);
    /* rows of src (N, row_bytes) with flag (N) u8 set, packed in order into dst; *n_packed (device, i64). */
    void (*pack_rows)(struct kern *k, void *dst, int64_t *n_packed, const void *src, const uint8_t *flag,
                      size_t row_bytes, size_t N);
    /* The way back: the flagged rows of dst (N, row_bytes) are taken in order from src; the others keep their bytes. */
    void (*unpack_rows)(struct kern *k, void *dst, const void *src, const uint8_t *flag, size_t row_bytes, size_t N);
    /* *ns (device memory) = a clock's time when all operations before have finished; only differences mean
     * something. */
    void (*mark)(struct kern *k, uint64_t *ns);
};

#include "kernels/kern.h" /* devices, memory and games on them */

#endif
